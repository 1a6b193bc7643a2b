/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nic URL [MIB]: device memory over the software NIC (SOFTNIC_CUDA=1), through libgantry and a gantryd: URL is
 * http://host:port/bucket.  Each kind of memory of the CUDA driver is put, and got into other memory, which a kernel
 * compares on the device; the bytes around it too.  At the end MIB MiB (256) for the speed.  Prints a row for each
 * check; exit 0: all right, 1: not, 77: no CUDA here.
 *
 * Only the driver is needed (libcuda.so.1, by dlopen), or the stand-in of this folder.
 */
#include <dlfcn.h>
#include <gantry.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long ptr_t;

/* ---- the driver's interface ---- */

struct location {
	int type; /* 1: device */
	int id;
};
struct prop {
	int type; /* 1: pinned */
	int handle_types;
	struct location location;
	void *win32;
	uint8_t compression, rdma_capable;
	uint16_t usage;
	uint8_t reserved[4];
};
struct access {
	struct location location;
	int flags; /* 3: read and write */
};

static struct {
	int (*init)(unsigned flags);
	int (*version)(int *version);
	int (*count)(int *count);
	int (*device)(int *device, int ordinal);
	int (*name)(char *name, int len, int device);
	int (*retain)(void **ctx, int device);
	int (*current)(void *ctx);
	int (*create)(void **ctx, unsigned flags, int device);
	int (*destroy)(void *ctx);
	int (*alloc)(ptr_t *ret, size_t size);
	int (*free)(ptr_t ptr);
	int (*granularity)(size_t *ret, const struct prop *prop, int option);
	int (*reserve)(ptr_t *ret, size_t size, size_t align, ptr_t addr, unsigned long long flags);
	int (*memory)(ptr_t *handle, size_t size, const struct prop *prop, unsigned long long flags);
	int (*map)(ptr_t ptr, size_t size, size_t offset, ptr_t handle, unsigned long long flags);
	int (*allow)(ptr_t ptr, size_t size, const struct access *desc, size_t nr);
	int (*to_device)(ptr_t to, const void *from, size_t len);
	int (*to_host)(void *to, ptr_t from, size_t len);
	int (*set)(ptr_t ptr, unsigned char value, size_t len);
	int (*load)(void **module, const void *image);
	int (*function)(void **function, void *module, const char *name);
	int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		      unsigned bz, unsigned shared, void *stream, void **param, void **extra);
	int (*wait)(void);
} cu;

static const struct {
	const char *name;
	void *fn;
} symbols[] = { { "cuInit", &cu.init },
		{ "cuDriverGetVersion", &cu.version },
		{ "cuDeviceGetCount", &cu.count },
		{ "cuDeviceGet", &cu.device },
		{ "cuDeviceGetName", &cu.name },
		{ "cuDevicePrimaryCtxRetain", &cu.retain },
		{ "cuCtxSetCurrent", &cu.current },
		{ "cuCtxCreate_v2", &cu.create },
		{ "cuCtxDestroy_v2", &cu.destroy },
		{ "cuMemAlloc_v2", &cu.alloc },
		{ "cuMemFree_v2", &cu.free },
		{ "cuMemGetAllocationGranularity", &cu.granularity },
		{ "cuMemAddressReserve", &cu.reserve },
		{ "cuMemCreate", &cu.memory },
		{ "cuMemMap", &cu.map },
		{ "cuMemSetAccess", &cu.allow },
		{ "cuMemcpyHtoD_v2", &cu.to_device },
		{ "cuMemcpyDtoH_v2", &cu.to_host },
		{ "cuMemsetD8_v2", &cu.set },
		{ "cuModuleLoadData", &cu.load },
		{ "cuModuleGetFunction", &cu.function },
		{ "cuLaunchKernel", &cu.launch },
		{ "cuCtxSynchronize", &cu.wait } };

/* Counts the bytes that differ between a and b. */
static const char differ_ptx[] = ".version 6.4\n"
				 ".target sm_75\n"
				 ".address_size 64\n"
				 ".visible .entry gantry_differ(\n"
				 "	.param .u64 pa, .param .u64 pb, .param .u64 pn, .param .u64 pc)\n"
				 "{\n"
				 "	.reg .pred %p<3>;\n"
				 "	.reg .b16 %h<3>;\n"
				 "	.reg .b32 %r<5>;\n"
				 "	.reg .b64 %d<12>;\n"
				 "	ld.param.u64 %d1, [pa];\n"
				 "	ld.param.u64 %d2, [pb];\n"
				 "	ld.param.u64 %d3, [pn];\n"
				 "	ld.param.u64 %d4, [pc];\n"
				 "	cvta.to.global.u64 %d1, %d1;\n"
				 "	cvta.to.global.u64 %d2, %d2;\n"
				 "	cvta.to.global.u64 %d4, %d4;\n"
				 "	mov.u32 %r1, %ctaid.x;\n"
				 "	mov.u32 %r2, %ntid.x;\n"
				 "	mov.u32 %r3, %tid.x;\n"
				 "	mov.u32 %r4, %nctaid.x;\n"
				 "	mul.wide.u32 %d5, %r1, %r2;\n"
				 "	cvt.u64.u32 %d6, %r3;\n"
				 "	add.u64 %d5, %d5, %d6;\n"
				 "	mul.wide.u32 %d7, %r4, %r2;\n"
				 "	mov.u64 %d8, 0;\n"
				 "next:\n"
				 "	setp.ge.u64 %p1, %d5, %d3;\n"
				 "	@%p1 bra done;\n"
				 "	add.u64 %d9, %d1, %d5;\n"
				 "	add.u64 %d10, %d2, %d5;\n"
				 "	ld.global.u8 %h1, [%d9];\n"
				 "	ld.global.u8 %h2, [%d10];\n"
				 "	setp.ne.u16 %p2, %h1, %h2;\n"
				 "	@%p2 add.u64 %d8, %d8, 1;\n"
				 "	add.u64 %d5, %d5, %d7;\n"
				 "	bra next;\n"
				 "done:\n"
				 "	setp.eq.u64 %p1, %d8, 0;\n"
				 "	@%p1 bra end;\n"
				 "	atom.global.add.u64 %d11, [%d4], %d8;\n"
				 "end:\n"
				 "	ret;\n"
				 "}\n";

/* ---- rows ---- */

static int rows, wrong;
static pthread_mutex_t rows_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((format(printf, 2, 3))) static void
row(const char *why, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&rows_lock);
	rows++;
	wrong += why != NULL;
	printf("%s  ", why ? "WRONG" : "right");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("%s%s\n", why ? ": " : "", why ? why : "");
	fflush(stdout);
	pthread_mutex_unlock(&rows_lock);
}

static _Noreturn void
give_up(const char *what, int r)
{
	char why[32];

	snprintf(why, sizeof why, "error %d", r);
	row(why, "%s", what);
	exit(1);
}
#define must(call)                                                                                           \
	do {                                                                                                 \
		int must_ = (call);                                                                          \
		if (must_ != 0)                                                                              \
			give_up(#call, must_);                                                               \
	} while (0)

/* ---- bytes ---- */

enum { EDGE = 0xee };
static struct gantry *g;
static const char *base;
static void *context, *differ_fn;
static ptr_t count;       /* of the bytes that differ, on the device */
static ptr_t model, edge; /* what was put, and EDGE everywhere; of model_size bytes */
static size_t model_size;
static uint8_t *host;

/* On the device.  Threads take turns. */
static unsigned long long
differ(ptr_t a, ptr_t b, unsigned long long n)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	void *param[] = { &a, &b, &n, &count };
	unsigned long long found = 0;

	pthread_mutex_lock(&lock);
	must(cu.to_device(count, &found, sizeof found));
	if (n)
		must(cu.launch(differ_fn, 264, 1, 1, 256, 1, 1, 0, NULL, param, NULL));
	must(cu.wait());
	must(cu.to_host(&found, count, sizeof found));
	pthread_mutex_unlock(&lock);
	return found;
}

/* Something that no two places a power of two apart have in common. */
static void
fill_model(void)
{
	uint64_t x = 88172645463325252u;

	for (size_t i = 0; i < model_size; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		host[i] = (uint8_t)x;
	}
	must(cu.to_device(model, host, model_size));
	must(cu.set(edge, EDGE, model_size));
}

struct memory {
	const char *name;
	ptr_t from, to; /* of size bytes each */
	size_t size;
};

/* Puts [at, at + len) of one and gets it to the other, where nothing else changes.  NULL or what is wrong. */
static const char *
round_trip(const struct memory *m, size_t at, size_t len, size_t to, char why[512], int nr)
{
	struct gantry_result res = { .size = sizeof res };
	char url[512];
	int r;

	snprintf(url, sizeof url, "%s/nic-%d", base, nr);
	must(cu.to_device(m->from, host, m->size));
	must(cu.set(m->to, EDGE, m->size));
	must(cu.wait());
	r = gantry_put(g, url, (void *)(uintptr_t)(m->from + at), len, NULL, &res);
	if (r != 0 || res.path != GANTRY_PATH_RDMA || res.bytes != len) {
		snprintf(why, 512, "put: %d, path %d, %s %s", r, res.path, res.message, res.reason);
		return why;
	}
	r = gantry_get(g, url, (void *)(uintptr_t)(m->to + to), len, 0, NULL, &res);
	if (r != 0 || res.path != GANTRY_PATH_RDMA || res.bytes != len) {
		snprintf(why, 512, "get: %d, path %d, %s %s", r, res.path, res.message, res.reason);
		return why;
	}
	if (!res.has_crc64nvme || res.crc64nvme != gantry_crc64nvme(0, host + at, len))
		return "the server's checksum is not that of the bytes";
	if (differ(m->to + to, model + at, len))
		return "other bytes came back";
	if (differ(m->to, edge, to) || differ(m->to + to + len, edge, m->size - to - len))
		return "bytes around the window changed";
	if (differ(m->from, model, m->size))
		return "bytes of the source changed";
	return NULL;
}

/* Registered for each call and for all of them. */
static void
test_memory(const struct memory *m)
{
	const size_t n = m->size;
	const size_t cases[][3] = { { 0, n, 0 },         { 1, n - 2, 2 },
				    { n / 3, 1, n / 2 }, { n / 5 + 1, n / 2 + 3, n / 4 + 1 },
				    { n - 1, 1, 0 },     { 0, n / 7 + 1, n - n / 7 - 1 } };
	void *from = (void *)(uintptr_t)m->from, *to = (void *)(uintptr_t)m->to;
	char why[512];

	for (int all = 0; all < 2; all++) {
		if (all && (gantry_register(g, from, n, 0) != 0 || gantry_register(g, to, n, 0) != 0)) {
			row(gantry_register_error(), "%s, registered", m->name);
			return;
		}
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
			row(round_trip(m, cases[i][0], cases[i][1], cases[i][2], why, 0),
			    "%s, %zu bytes%s: %zu of %zu on", m->name, n, all ? ", registered" : "",
			    cases[i][1], cases[i][0]);
	}
	gantry_deregister(g, from);
	gantry_deregister(g, to);
}

/* ---- kinds of memory ---- */

static ptr_t
alloc(size_t size)
{
	ptr_t p = 0;

	must(cu.alloc(&p, size));
	return p;
}

/* Addresses of their own with so many pieces of memory behind them. */
static ptr_t
alloc_pieces(size_t piece, unsigned nr)
{
	const struct prop prop = { .type = 1, .location = { 1, 0 }, .rdma_capable = 1 };
	const struct access rw = { .location = { 1, 0 }, .flags = 3 };
	ptr_t p = 0, handle = 0;

	must(cu.reserve(&p, piece * nr, 0, 0, 0));
	for (unsigned i = 0; i < nr; i++) {
		must(cu.memory(&handle, piece, &prop, 0));
		must(cu.map(p + piece * i, piece, 0, handle, 0));
	}
	must(cu.allow(p, piece * nr, &rw, 1));
	return p;
}

static size_t
granule(void)
{
	const struct prop prop = { .type = 1, .location = { 1, 0 }, .rdma_capable = 1 };
	size_t size = 0;

	must(cu.granularity(&size, &prop, 0));
	return size;
}

static void
test_kinds(int device, size_t big)
{
	const size_t piece = granule();
	struct memory m[] = { { "cuMemAlloc", alloc(big), alloc(big), big },
			      { "cuMemAlloc", alloc(1000), alloc(1000), 1000 },
			      { "virtual, one piece", alloc_pieces(piece, 1), alloc_pieces(piece, 1), piece },
			      { "virtual, three pieces", alloc_pieces(piece, 3), alloc_pieces(piece, 3),
				piece * 3 },
			      { "from and to of two kinds", 0, 0, piece } };
	struct memory own = { .name = "cuMemAlloc in a context of its own", .size = 1 << 20 };
	void *ctx;

	m[4].from = m[0].from;
	m[4].to = m[3].to;
	for (size_t i = 0; i < sizeof m / sizeof *m; i++)
		test_memory(&m[i]);
	must(cu.create(&ctx, 0, device));
	own.from = alloc(own.size);
	own.to = alloc(own.size);
	must(cu.current(context));
	test_memory(&own);
	must(cu.destroy(ctx));
}

/* ---- threads ---- */

enum { THREADS = 4 };

static void *
run_thread(void *arg)
{
	struct memory *m = arg;
	const char *bad = NULL;
	char why[512];

	must(cu.current(context));
	for (size_t i = 0; i < 6 && !bad; i++)
		bad = round_trip(m, i * 1000, m->size / 2 + i, i * 3001, why, 1 + (int)(m->from % 100003));
	row(bad, "%s", m->name);
	return NULL;
}

static void
test_threads(void)
{
	struct memory m[THREADS];
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++) {
		m[i] = (struct memory){ "one of four threads", 0, 0, (size_t)(3 + i) << 20 };
		m[i].from = alloc(m[i].size);
		m[i].to = alloc(m[i].size);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run_thread, &m[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* ---- speed ---- */

static double
seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The best of three. */
static void
test_speed(size_t size)
{
	struct gantry_result res = { .size = sizeof res };
	ptr_t from = alloc(size), to = alloc(size);
	double put = 1e9, get = 1e9, start;
	char url[512];
	int r = 0;

	snprintf(url, sizeof url, "%s/nic-speed", base);
	for (size_t at = 0; at < size; at += model_size)
		must(cu.to_device(from + at, host, size - at < model_size ? size - at : model_size));
	if (gantry_register(g, (void *)(uintptr_t)from, size, 0) ||
	    gantry_register(g, (void *)(uintptr_t)to, size, 0)) {
		row(gantry_register_error(), "%zu MiB registered", size >> 20);
		return;
	}
	for (int i = 0; i < 3 && r == 0; i++) {
		start = seconds();
		r = gantry_put(g, url, (void *)(uintptr_t)from, size, NULL, &res);
		put = seconds() - start < put ? seconds() - start : put;
		start = seconds();
		if (r == 0)
			r = gantry_get(g, url, (void *)(uintptr_t)to, size, 0, NULL, &res);
		get = seconds() - start < get ? seconds() - start : get;
	}
	row(r                        ? res.message
	    : differ(to, from, size) ? "other bytes came back"
				     : NULL,
	    "%zu MiB: put %.0f MB/s, get %.0f MB/s", size >> 20, (double)size / put / 1e6,
	    (double)size / get / 1e6);
}

/* ---- start ---- */

static void
no_cuda(const char *why)
{
	printf("no CUDA here: %s\n", why);
	exit(77);
}

static int
start_cuda(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *module;
	int devices = 0, device = 0, version = 0, r;
	char name[128] = "";

	if (!lib)
		no_cuda(dlerror());
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		*(void **)symbols[i].fn = dlsym(lib, symbols[i].name);
		if (!*(void **)symbols[i].fn)
			no_cuda(symbols[i].name);
	}
	if (cu.init(0) != 0 || cu.count(&devices) != 0 || devices == 0)
		no_cuda("no device");
	must(cu.device(&device, 0));
	must(cu.retain(&context, device));
	must(cu.current(context));
	cu.name(name, sizeof name, device);
	cu.version(&version);
	printf("%s, CUDA %d.%d\n", name, version / 1000, version % 1000 / 10);
	r = cu.load(&module, differ_ptx);
	if (r == 0)
		r = cu.function(&differ_fn, module, "gantry_differ");
	if (r != 0)
		give_up("the kernel that compares", r);
	return device;
}

int
main(int argc, char **argv)
{
	const size_t mib = argc > 2 ? (size_t)atol(argv[2]) : 256, big = (mib << 16) + 12345;
	struct gantry_options o = { .size = sizeof o, .config_file = "", .flags = GANTRY_RDMA_ONLY };
	int device;

	if (argc < 2) {
		fprintf(stderr, "usage: nic http://HOST:PORT/BUCKET [MIB]\n");
		return 2;
	}
	base = argv[1];
	device = start_cuda();
	model_size = big < (size_t)16 << 20 ? (size_t)16 << 20 : big;
	host = malloc(model_size);
	model = alloc(model_size);
	edge = alloc(model_size);
	count = alloc(sizeof(unsigned long long));
	fill_model();
	/* A comparison that finds nothing must be able to find something. */
	must(cu.set(edge + 12345, (unsigned char)~EDGE, 3));
	ptr_t clean = alloc(model_size);

	must(cu.set(clean, EDGE, model_size));
	row(differ(edge, clean, model_size) == 3 ? NULL : "not so",
	    "the device counts three bytes that differ");
	must(cu.set(edge, EDGE, model_size));
	row(differ(edge, clean, model_size) == 0 ? NULL : "not so", "and none");
	must(gantry_open(&o, &g));
	row(gantry_is_connected(g) ? NULL : gantry_rdma_reason(g), "RDMA on %s",
	    gantry_is_connected(g) ? "the software NIC" : "no device");
	test_kinds(device, big);
	test_threads();
	test_speed(mib << 20);
	gantry_close(g);
	printf("%d rows, %d wrong\n", rows, wrong);

	return wrong ? 1 : 0;
}
