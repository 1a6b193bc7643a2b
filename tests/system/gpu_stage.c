/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_stage MODE URL: a program whose data lies in memory of the stand-in of CUDA (tests/gpu/cuda_standin.c), which no
 * adapter registers.  gpu_stage.sh runs it; it ends with 0, or says what was not so.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gantry.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define SIZE (24 * MIB)
#define STAGE (8 * MIB)
#define PIECE (STAGE / 4)
#define must(x) ((x) ? (void)0 : failed(#x, __LINE__))

typedef unsigned long long devptr;

static struct gantry *g;
static struct gantry_result res;
static unsigned char host[SIZE] __attribute__((aligned(2 * MIB))),
	back[SIZE] __attribute__((aligned(2 * MIB)));
static char url[512];
static const char *base;
static unsigned char *device;
static int own_streams;

static _Noreturn void
failed(const char *what, int line)
{
	fprintf(stderr,
		"gpu_stage.c:%d: not so: %s; path %d, status %d, ETag %s, sum %d %d, message \"%s\", reason "
		"\"%s\", registration \"%s\"\n",
		line, what, (int)res.path, res.status, res.etag, res.has_crc64nvme, res.checksum_verified,
		res.message, res.reason, gantry_register_error());
	_exit(1);
}

/* ---- the driver ---- */

static struct {
	int (*init)(unsigned flags);
	int (*retain)(void **ctx, int device);
	int (*current)(void *ctx);
	int (*alloc)(devptr *ret, size_t size);
	int (*free)(devptr ptr);
	int (*to_device)(devptr to, const void *from, size_t len);
	int (*to_host)(void *to, devptr from, size_t len);
	int (*fill)(devptr to, unsigned char value, size_t len, void *stream);
	int (*copy_async)(devptr to, const void *from, size_t len, void *stream);
	int (*stream)(void **ret, unsigned flags);
	int (*event)(void **ret, unsigned flags);
	int (*record)(void *event, void *stream);
	int (*set)(const char *name, long value);
	long (*get)(const char *name);
} cu;

static void
load(void)
{
	const struct {
		const char *name;
		void *fn;
	} symbol[] = { { "cuInit", &cu.init },
		       { "cuDevicePrimaryCtxRetain", &cu.retain },
		       { "cuCtxSetCurrent", &cu.current },
		       { "cuMemAlloc_v2", &cu.alloc },
		       { "cuMemFree_v2", &cu.free },
		       { "cuMemcpyHtoD_v2", &cu.to_device },
		       { "cuMemcpyDtoH_v2", &cu.to_host },
		       { "cuMemsetD8Async", &cu.fill },
		       { "cuMemcpyHtoDAsync_v2", &cu.copy_async },
		       { "cuStreamCreate", &cu.stream },
		       { "cuEventCreate", &cu.event },
		       { "cuEventRecord", &cu.record },
		       { "standin_set", &cu.set },
		       { "standin_get", &cu.get } };
	const char *rocm = getenv("ROCM"); /* the stand-in of its HIP */
	void *lib = dlopen(rocm ? rocm : "libcuda.so.1", RTLD_LAZY), *ctx;

	must(lib != NULL);
	must(!rocm || dlopen("libhsa-runtime64.so.1", RTLD_LAZY));
	for (size_t i = 0; i < sizeof symbol / sizeof *symbol; i++) {
		*(void **)symbol[i].fn = dlsym(lib, symbol[i].name);
		must(*(void **)symbol[i].fn != NULL);
	}
	must(cu.init(0) == 0 && cu.retain(&ctx, 0) == 0 && cu.current(ctx) == 0);
}

static unsigned char *
allocate(size_t size)
{
	devptr p;

	must(cu.alloc(&p, size) == 0);
	return (unsigned char *)(uintptr_t)p;
}

static void
to_device(void *to, const void *from, size_t n)
{
	must(cu.to_device((uintptr_t)to, from, n) == 0);
}

static void
to_host(void *to, const void *from, size_t n)
{
	must(cu.to_host(to, (uintptr_t)from, n) == 0);
}

/* ---- objects ---- */

static const char *
object(const char *name)
{
	snprintf(url, sizeof url, "%s/%s", base, name);
	return url;
}

static void
open_with(struct gantry_options o)
{
	o.size = sizeof o;
	o.config_file = "";
	gantry_close(g);
	g = NULL;
	res = (struct gantry_result){ .size = sizeof res };
	must(gantry_open(&o, &g) == 0);
}

static void
pattern(size_t seed)
{
	static unsigned char bytes[SIZE + 4096];
	static bool is_made;

	/* Computed once; another seed begins at another byte. */
	for (size_t i = 0; !is_made && i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * 13 + i / 251);
	is_made = true;
	memcpy(host, bytes + seed % 4093, SIZE);
	to_device(device, host, SIZE);
}

/* Puts part of the device's memory and gets it to another place of it, byte for byte, by that path. */
static void
round_trip(size_t from, size_t to, size_t size, enum gantry_path path)
{
	const struct gantry_request plain = { .size = sizeof plain, .no_rdma = 1 },
				    sum = { .size = sizeof sum, .checksum = 1 };
	const char *end;

	pattern(size);
	must(gantry_put(g, object("o"), device + from, size, &sum, &res) == 0);
	must(res.path == path && res.bytes == size && res.object_size == size && res.requests > 0);
	must(res.has_crc64nvme && res.crc64nvme == gantry_crc64nvme(0, host + from, size));
	/* An upload in parts shows in the ETag. */
	end = strrchr(res.etag, '-');
	must(size > STAGE && path == GANTRY_PATH_RDMA_STAGED ? end && atoi(end + 1) == 2
							     : !end || !atoi(end + 1));
	must((path == GANTRY_PATH_RDMA) == !*res.reason);
	/* What the server has. */
	must(gantry_get(g, url, back, SIZE, 0, &plain, &res) == 0 && res.path == GANTRY_PATH_HTTP);
	must(res.bytes == size && !memcmp(back, host + from, size));
	must(gantry_get(g, url, device + to, size, 0, NULL, &res) == 0);
	must(res.path == path && res.bytes == size);
	must(path != GANTRY_PATH_RDMA_STAGED || size > PIECE ||
	     (res.checksum_verified && res.crc64nvme == gantry_crc64nvme(0, back, size)));
	must(res.has_object_size && res.object_size == size && *res.etag && *res.last_modified);
	to_host(back, device, SIZE);
	memmove(host + to, host + from, size);
	must(!memcmp(back, host, SIZE));
	/* A range of it, more than there is, and none. */
	must(size < 10 || gantry_get(g, url, device + to, 5, size - 5, NULL, &res) == 0);
	must(gantry_get(g, url, device, SIZE, 0, NULL, &res) == 0 && res.bytes == size && res.path == path);
	must(gantry_get(g, url, device + to, 5, size + 1, NULL, &res) == -ERANGE);
	must(res.has_object_size && res.object_size == size);
}

static const size_t sizes[] = { 1, 4095, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, STAGE, STAGE + 1, 11000003 };
#define SIZES (sizeof sizes / sizeof *sizes)

/* Nothing is left of what the library took from the driver. */
static void
nothing_is_left(void)
{
	gantry_close(g);
	g = NULL;
	must(cu.get("streams") == cu.get("destroyed") + own_streams);
	must(cu.get("pinned") == 0 && cu.get("retained") == 1 && cu.get("queued") == 0);
}

static void
staged(void)
{
	open_with((struct gantry_options){ .stage = 1, .stage_bytes = STAGE });
	for (size_t i = 0; i < SIZES; i++)
		round_trip(1000 + i, 12000003 - i, sizes[i], GANTRY_PATH_RDMA_STAGED);
	must(cu.get("pinned") == 1 && cu.get("unpinned_copies") == 0);
	/* Memory of the host as ever. */
	must(gantry_put(g, object("h"), host, 100000, NULL, &res) == 0 && res.path == GANTRY_PATH_RDMA);
	/* Conditions, for one request and for an upload. */
	for (int i = 0; i < 2; i++) {
		const struct gantry_request none = { .size = sizeof none, .if_none_match = "*" },
					    wrong = { .size = sizeof wrong, .if_match = "\"x\"" };
		size_t size = i ? STAGE + 1 : 1000;

		gantry_delete(g, object("c"), NULL, &res);
		must(gantry_put(g, url, device, size, &none, &res) == 0);
		must(gantry_put(g, url, device, size, &none, &res) == -ESTALE && res.status == 412);
		must(gantry_put(g, url, device, size, &wrong, &res) == -ESTALE);
		must(gantry_get(g, url, device, size, 0, &wrong, &res) == -ESTALE);
		must(!strcmp(res.code, "PreconditionFailed") && *res.message);
	}
	must(gantry_get(g, object("not-there"), device, STAGE, 0, NULL, &res) == -ENOENT);
	must(!strcmp(res.code, "NoSuchKey"));
	/* A part, which cannot be of parts. */
	char id[GANTRY_UPLOAD_ID_MAX];
	struct gantry_part part[2] = { { .number = 1 }, { .number = 2 } };

	must(gantry_upload_begin(g, object("p"), NULL, id, &res) == 0);
	must(gantry_upload_put(g, url, id, 1, device, STAGE + 5, NULL, &res) == 0 &&
	     res.path == GANTRY_PATH_HTTP);
	must(strstr(res.reason, "larger than the stage"));
	memcpy(part[0].etag, res.etag, sizeof part[0].etag);
	must(gantry_upload_put(g, url, id, 2, device + 7, 1000, NULL, &res) == 0);
	must(res.path == GANTRY_PATH_RDMA_STAGED);
	memcpy(part[1].etag, res.etag, sizeof part[1].etag);
	must(gantry_upload_complete(g, url, id, part, 2, NULL, &res) == 0);
	to_host(back, device, SIZE);
	must(gantry_get(g, url, host, SIZE, 0, NULL, &res) == 0 && res.bytes == STAGE + 5 + 1000);
	must(!memcmp(host, back, STAGE + 5) && !memcmp(host + STAGE + 5, back + 7, 1000));
	/* RDMA or nothing. */
	open_with((struct gantry_options){ .stage = 1, .flags = GANTRY_RDMA_ONLY });
	must(gantry_put(g, object("r"), device, SIZE, NULL, &res) == 0 &&
	     res.path == GANTRY_PATH_RDMA_STAGED);
	must(res.requests == 1);
	nothing_is_left();
}

/* A DC key that is not the server's, and no RDMA at all: bodies of HTTP, through the stage. */
static void
http(void)
{
	static const char *const key[] = { "0x1234", NULL };

	for (int i = 0; i < 2; i++) {
		open_with((struct gantry_options){ .stage = 1,
						   .stage_bytes = STAGE,
						   .flags = i ? GANTRY_NO_RDMA : 0,
						   .dc_key = key[i] });
		for (size_t k = i ? 0 : 3; k < (i ? SIZES : 5); k++)
			round_trip(1000 + k, 12000003 - k, sizes[k], GANTRY_PATH_HTTP);
		must(cu.get("unpinned_copies") == 0);
	}
	/* One piece at a time, where others have the rest: see threads(). */
	open_with((struct gantry_options){ .stage = 1, .dc_key = "0x1234", .flags = GANTRY_RDMA_ONLY });
	must(gantry_put(g, object("r"), device, 100000, NULL, &res) == -EOPNOTSUPP);
	must(strstr(res.message, "not by RDMA"));
	/* The driver's errors are the call's. */
	open_with((struct gantry_options){ .stage = 1, .flags = GANTRY_NO_RDMA });
	cu.set("copy", 700);
	must(gantry_put(g, object("e"), device, 100000, NULL, &res) == -EIO);
	must(strstr(res.message, "CUDA: error 700, CUDA_ERROR_ILLEGAL_ADDRESS"));
	cu.set("copy", 0);
	must(gantry_get(g, object("o"), device, 100000, 0, NULL, &res) == 0);
	nothing_is_left();
}

/* The program's streams and events. */
static void
order(void)
{
	struct gantry_request req = { .size = sizeof req, .wait = GANTRY_WAIT_STREAM };
	static void *streams[4] = { NULL, (void *)1, (void *)2, NULL }, *event;

	must(cu.stream(&streams[3], 1) == 0 && cu.event(&event, 0) == 0);
	own_streams++;
	open_with((struct gantry_options){ .stage = 1, .stage_bytes = STAGE });
	for (int i = 0; i < 5; i++) {
		void *s = streams[i < 4 ? i : 3];

		pattern((size_t)i);
		must(cu.fill((uintptr_t)device, (unsigned char)(0xa0 + i), 3 * MIB, s) == 0);
		req.wait_for = s;
		if (i == 4) {
			must(cu.record(event, s) == 0);
			req.wait = GANTRY_WAIT_EVENT;
			req.wait_for = event;
		}
		must(gantry_put(g, object("w"), device, 4 * MIB, &req, &res) == 0);
		must(res.path == GANTRY_PATH_RDMA_STAGED);
		must(gantry_get(g, url, back, 4 * MIB, 0, NULL, &res) == 0);
		memset(host, 0xa0 + i, 3 * MIB);
		must(!memcmp(back, host, 4 * MIB));
		/* A get after work that writes there. */
		must(cu.fill((uintptr_t)device, 0x55, 4 * MIB, s) == 0);
		if (i == 4)
			must(cu.record(event, s) == 0);
		must(gantry_get(g, url, device, 4 * MIB, 0, &req, &res) == 0);
		to_host(back, device, SIZE);
		must(!memcmp(back, host, SIZE));
	}
	/* In front of an HTTP body as well, and of memory of the host. */
	req.no_rdma = 1;
	must(cu.fill((uintptr_t)device, 0x77, 1000, streams[3]) == 0 && cu.record(event, streams[3]) == 0);
	must(gantry_put(g, object("w"), device, 1000, &req, &res) == 0 && res.path == GANTRY_PATH_HTTP);
	must(gantry_get(g, url, back, 1000, 0, NULL, &res) == 0 && back[0] == 0x77 && back[999] == 0x77);
	must(cu.fill((uintptr_t)device, 0x78, 1000, streams[3]) == 0 && cu.record(event, streams[3]) == 0);
	must(gantry_put(g, url, host, 1000, &req, &res) == 0);
	to_host(back, device, 1000);
	must(back[0] == 0x78);
	req.wait = 7;
	must(gantry_put(g, url, device, 1000, &req, &res) == -EINVAL && strstr(res.message, "no kind 7"));
	nothing_is_left();
}

/* A copy that no server has to do with. */
static void
to_host_alone(void)
{
	struct gantry_request req = { .size = sizeof req, .wait = GANTRY_WAIT_STREAM };
	static void *stream;

	open_with((struct gantry_options){ .stage = 1, .stage_bytes = STAGE });
	pattern(5);
	memset(back, 0, SIZE);
	must(gantry_copy_to_host(g, back + 3, device + 7, SIZE - 10, NULL, &res) == 0 && !res.requests);
	must(!memcmp(back + 3, host + 7, SIZE - 10) && !back[2] && !back[SIZE - 7]);
	/* After the work of a stream. */
	must(cu.stream(&stream, 1) == 0);
	own_streams++;
	must(cu.fill((uintptr_t)device, 0x66, 1000, stream) == 0);
	req.wait_for = stream;
	must(gantry_copy_to_host(g, back, device, 1001, &req, &res) == 0);
	must(back[0] == 0x66 && back[999] == 0x66 && back[1000] == host[1000]);
	cu.set("copy", 700);
	must(gantry_copy_to_host(g, back, device, 100, NULL, &res) == -EIO &&
	     strstr(res.message, "error 700"));
	cu.set("copy", 0);
	must(gantry_copy_to_host(g, back, host, 100, NULL, NULL) == -EFAULT);
	nothing_is_left();
	open_with((struct gantry_options){ .stage = 0 });
	must(gantry_copy_to_host(g, back, device, 100, NULL, &res) == -EOPNOTSUPP &&
	     strstr(res.message, "stages nothing"));
}

/* Who refused what. */
static void
refusals(void)
{
	open_with((struct gantry_options){ .device = "mlx5_0" });
	/* As NVIDIA's driver at attach; then the peer-memory driver was asked. */
	must(gantry_register(g, device, SIZE, 0) == -EFAULT);
	must(strstr(gantry_register_error(), "device memory (CUDA), 25165824 bytes"));
	must(strstr(gantry_register_error(), "refuses the dma-buf: not supported"));
	must(strstr(gantry_register_error(), "nvidia-peermem): Bad address"));
	must(!strstr(gantry_register_error(), "524"));
	/* The same sentence. */
	must(gantry_put(g, object("n"), device, SIZE, NULL, &res) == -EOPNOTSUPP);
	must(!strcmp(res.reason, gantry_register_error()) &&
	     strstr(res.message, "not by RDMA: device memory"));
	must(gantry_get(g, object("n"), device, SIZE, 0, NULL, &res) == -EOPNOTSUPP);
	must(!strcmp(res.reason, gantry_register_error()));
	cu.set("export", 801);
	must(gantry_register(g, device, SIZE, 0) == -EFAULT);
	must(strstr(gantry_register_error(), "CUDA exports no dma-buf of it (error 801)"));
	must(gantry_put(g, object("n"), device, SIZE, NULL, &res) == -EOPNOTSUPP);
	must(!strcmp(res.reason, gantry_register_error()));
	cu.set("export", 0);
	/* A part of a pool: what it lies in is exported, or why not is said. */
	cu.set("pool", 1);
	cu.set("map", 1);
	unsigned char *odd = allocate(100000);

	must(gantry_register(g, odd, 100000, 0) == -EFAULT);
	must(strstr(gantry_register_error(), "this part of a memory pool"));
	cu.set("pool", 0);
	/* What the driver says of memory. */
	struct gantry_memory_info info = { .size = sizeof info };

	must(gantry_memory_look(device + 5, &info) == 0 && info.type == GANTRY_MEM_DEVICE && info.id);
	must(info.start == (uintptr_t)device && info.length == SIZE && info.device == 0);
	must(!strcmp(info.driver, "CUDA"));
	must(gantry_memory_look(host, &info) == -ENOENT);
	/* None of it without a stage: a checksum, a body. */
	const struct gantry_request sum = { .size = sizeof sum, .checksum = 1 };

	must(gantry_put(g, object("n"), device, 1000, &sum, &res) == -EOPNOTSUPP);
	must(strstr(res.message, "a checksum of device memory (CUDA) takes a copy function"));
	struct gantry_options bad = {
		.size = sizeof bad, .config_file = "", .stage = 1, .stage_bytes = 1000
	};
	struct gantry *no;

	must(gantry_open(&bad, &no) == -EINVAL && strstr(gantry_open_error(), "256 KiB"));
	bad.stage = 2;
	must(gantry_open(&bad, &no) == -EINVAL);
}

static int
copy(void *cookie, void *dst, const void *src, size_t size, enum gantry_copy_to to)
{
	/* What a program does with memory that it takes for its own. */
	memcpy(dst, src, size);
	return 0;
}

/* Memory that was freed: mapped without access, and nobody knows it. */
static void
freed(void)
{
	const struct gantry_request sum = { .size = sizeof sum, .checksum = 1 },
				    plain = { .size = sizeof plain, .no_rdma = 1 };
	unsigned char *gone = allocate(3 * MIB);

	must(cu.free((uintptr_t)gone) == 0);
	must(gantry_memory_type(gone) == GANTRY_MEM_UNKNOWN);
	for (int i = 0; i < 4; i++) {
		open_with((struct gantry_options){ .stage = i & 1, .copy = i & 2 ? copy : NULL });
		must(gantry_put(g, object("f"), gone, MIB, NULL, &res) == -EFAULT);
		must(strstr(res.message, "not mapped") && res.requests == 0);
		must(gantry_put(g, object("f"), gone, MIB, &sum, &res) == -EFAULT);
		must(gantry_put(g, object("f"), gone, MIB, &plain, &res) == -EFAULT);
		must(gantry_get(g, object("f"), gone, MIB, 0, NULL, &res) == -EFAULT);
		must(gantry_get(g, object("f"), gone, MIB, 0, &plain, &res) == -EFAULT);
		must(gantry_register(g, gone, MIB, 0) == -EFAULT);
		must(strstr(gantry_register_error(), "not mapped"));
		must(gantry_register(g, gone, MIB, GANTRY_DEVICE) == -EFAULT);
		must(strstr(gantry_register_error(), "not mapped"));
		/* Past the end of what is there, and nothing at all. */
		must(gantry_put(g, object("f"), device, SIZE + 100 * MIB, NULL, &res) == -EFAULT);
		must(gantry_put(g, object("f"), (void *)4096, 10, NULL, &res) == -EFAULT);
	}
}

/* A registration whose memory is freed, and allocated again at the same address. */
static void
again(void)
{
	unsigned char *p = allocate(3 * MIB), *q;
	char *token;

	cu.set("map", 1);
	open_with((struct gantry_options){ .size = 0 });
	must(gantry_register(g, p, 3 * MIB, 0) == 0);
	must(gantry_token_get(g, p, 1000, 0, GANTRY_OP_PUT, &token, NULL) == 0);
	memset(host, 1, 3 * MIB);
	to_device(p, host, 3 * MIB);
	must(gantry_put(g, object("a"), p, 3 * MIB, NULL, &res) == 0 && res.path == GANTRY_PATH_RDMA);
	must(cu.free((uintptr_t)p) == 0);
	/* Gone: each use says so, and the bytes that its pages had are nobody's. */
	must(gantry_put(g, object("a"), p + 10, MIB, NULL, &res) == -EFAULT &&
	     strstr(res.message, "not mapped"));
	must(gantry_get(g, object("a"), p, MIB, 0, NULL, &res) == -EFAULT);
	must(gantry_token_put(g, token) == 0);
	must(gantry_token_get(g, p, 1000, 0, GANTRY_OP_PUT, &token, NULL) == -EFAULT);
	must(gantry_obj_put(g, NULL, p, 1000, 0, 0) < 0);
	/* Another at the same place. */
	q = allocate(3 * MIB);
	must(q == p);
	memset(host, 2, 3 * MIB);
	to_device(q, host, 3 * MIB);
	long exports = cu.get("exports");

	must(gantry_put(g, object("a"), q, 3 * MIB, NULL, &res) == 0 && res.path == GANTRY_PATH_RDMA);
	must(cu.get("exports") == exports + 1);
	must(gantry_get(g, url, back, 3 * MIB, 0, NULL, &res) == 0 && !memcmp(back, host, 3 * MIB));
	/* Once for all. */
	must(gantry_get(g, url, q + 1, 2 * MIB, 0, NULL, &res) == 0 && res.path == GANTRY_PATH_RDMA);
	must(cu.get("exports") == exports + 1 && (getenv("ROCM") || cu.get("flushes") > 0));
	must(gantry_token_get(g, q, 1000, 0, GANTRY_OP_PUT, &token, NULL) == 0);
	/* Under a token. */
	must(cu.free((uintptr_t)q) == 0 && allocate(3 * MIB) == q);
	must(gantry_token_get(g, q, 1000, 0, GANTRY_OP_PUT, &token, NULL) == 0);
	must(cu.get("exports") == exports + 2);
	must(gantry_deregister(g, q) == 0 && gantry_deregister(g, q) == -ENOENT);
	/* A driver without ids is taken at its word. */
	cu.set("ids", 0);
	must(gantry_register(g, q, 3 * MIB, 0) == 0);
	must(gantry_put(g, object("a"), q, 3 * MIB, NULL, &res) == 0 && res.path == GANTRY_PATH_RDMA);
}

/* ---- several at once ---- */

static _Atomic int bad;

static void *
mover(void *arg)
{
	const size_t mine = (size_t)(uintptr_t)arg, room = 3 * MIB;
	unsigned char *at = device + mine * room, *want = host + mine * room, *have = back + mine * room;
	struct gantry_result r = { .size = sizeof r };
	void *ctx;
	char name[600];

	must(cu.retain(&ctx, 0) == 0 && cu.current(ctx) == 0);
	snprintf(name, sizeof name, "%s/t%zu", base, mine);
	for (int i = 0; i < 6; i++) {
		size_t size = room - 1000 * (size_t)i - mine;

		if (gantry_put(g, name, at, size, NULL, &r) || gantry_get(g, name, have, size, 0, NULL, &r) ||
		    memcmp(have, want, size) || gantry_get(g, name, at, size, 0, NULL, &r)) {
			fprintf(stderr, "thread %zu: %s\n", mine, r.message);
			bad++;
		}
	}
	return NULL;
}

/* More than the stage has room for: large ones wait for all of it, and small ones for one piece. */
static void
threads(void)
{
	pthread_t thread[8];

	for (int pass = 0; pass < 2; pass++) {
		open_with((struct gantry_options){
			.stage = 1, .stage_bytes = 4 * MIB, .flags = pass ? GANTRY_NO_RDMA : 0 });
		pattern((size_t)pass);
		for (size_t i = 0; i < 8; i++)
			must(pthread_create(&thread[i], NULL, mover, (void *)(uintptr_t)i) == 0);
		for (size_t i = 0; i < 8; i++)
			pthread_join(thread[i], NULL);
		must(bad == 0);
		to_host(back, device, SIZE);
		must(!memcmp(back, host, SIZE));
	}
	gantry_close(g);
	g = NULL;
}

static _Atomic bool ends;

static void *
replacer(void *arg)
{
	struct gantry *own;
	struct gantry_result r = { .size = sizeof r };
	const struct gantry_options o = { .size = sizeof o, .config_file = "" };
	static unsigned char bytes[2][8 * MIB];

	must(gantry_open(&o, &own) == 0);
	memset(bytes[0], 1, sizeof bytes[0]);
	memset(bytes[1], 2, sizeof bytes[1]);
	for (int i = 0; !ends; i++)
		must(gantry_put(own, arg, bytes[i & 1], sizeof bytes[0], NULL, &r) == 0);
	gantry_close(own);
	return NULL;
}

/* A get in pieces of an object that is replaced all the time has one version, or says that it has none. */
static void
replaced(void)
{
	static char name[600];
	pthread_t thread;
	int whole = 0;

	open_with((struct gantry_options){ .stage = 1, .stage_bytes = 4 * MIB });
	snprintf(name, sizeof name, "%s/replaced", base);
	memset(host, 1, 8 * MIB);
	must(gantry_put(g, name, host, 8 * MIB, NULL, &res) == 0);
	must(pthread_create(&thread, NULL, replacer, name) == 0);
	for (int i = 0; i < 40; i++) {
		int e = gantry_get(g, name, device, 8 * MIB, 0, NULL, &res);

		must(e == 0 || (e == -ESTALE && strstr(res.message, "replaced")));
		if (e < 0)
			continue;
		whole++;
		to_host(back, device, 8 * MIB);
		must(!memcmp(back, back + 1, 8 * MIB - 1));
	}
	ends = true;
	pthread_join(thread, NULL);
	/* Now it is left alone. */
	must(gantry_get(g, name, device, 8 * MIB, 0, NULL, &res) == 0 && res.path == GANTRY_PATH_RDMA_STAGED);
	printf("%d of 40 while it was replaced\n", whole);
}

/* What the adapter refuses as a dma-buf, a peer-memory driver registers. */
static void
peer(void)
{
	open_with((struct gantry_options){ .size = 0 });
	must(gantry_register(g, device, SIZE, 0) == 0);
	pattern(3);
	must(gantry_put(g, object("peer"), device + 5, 3 * MIB, NULL, &res) == 0 &&
	     res.path == GANTRY_PATH_RDMA);
	must(gantry_deregister(g, device) == 0);
	must(gantry_get(g, url, device, 3 * MIB, 0, NULL, &res) == 0 && res.path == GANTRY_PATH_RDMA);
	to_host(back, device, SIZE);
	must(!memcmp(back, host + 5, 3 * MIB) && !memcmp(back + 3 * MIB, host + 3 * MIB, SIZE - 3 * MIB));
}

/* Memory of the host that cannot be pinned serves as well. */
static void
unpinned(void)
{
	open_with((struct gantry_options){ .stage = 1, .stage_bytes = STAGE });
	round_trip(7, 12000000, 3 * MIB, GANTRY_PATH_RDMA_STAGED);
	must(cu.get("unpinned_copies") > 0);
	nothing_is_left();
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} mode[] = { { "staged", staged },
		     { "http", http },
		     { "order", order },
		     { "refusals", refusals },
		     { "freed", freed },
		     { "again", again },
		     { "threads", threads },
		     { "replaced", replaced },
		     { "peer", peer },
		     { "unpinned", unpinned },
		     { "to_host_alone", to_host_alone } };

	must(argc == 3);
	base = argv[2];
	/* Page faults were a third of the CPU time. */
	madvise(host, SIZE, MADV_HUGEPAGE);
	madvise(back, SIZE, MADV_HUGEPAGE);
	load();
	device = allocate(SIZE);
	for (size_t i = 0; i < sizeof mode / sizeof *mode; i++) {
		if (!strcmp(mode[i].name, argv[1])) {
			mode[i].fn();
			gantry_close(g);
			return 0;
		}
	}
	must(!"a mode");
}
