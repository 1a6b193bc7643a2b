/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drivers of devices, CUDA and ROCm of two generations, by their stand-ins (tests/gpu): each answer of a driver that
 * matters, and what the library makes of it.  Each driver has a process of its own.
 */
#include "client/gpu.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

typedef unsigned long long devptr;

/* Which driver this process has. */
static const struct mode {
	const char *name, *library, *driver;
	int hip_version;
} * mode;
static const struct mode modes[] = { { "cuda", "libcuda.so.1", "CUDA", 0 },
				     { "rocm6", "libamdhip64.so.6", "ROCm", 60000000 },
				     { "rocm5", "libamdhip64.so.6", "ROCm", 50000000 } };

/* What a program calls, and the stand-in's own: both drivers' have it. */
static struct {
	int (*init)(unsigned flags);
	int (*current)(void *ctx);
	int (*retain)(void **ctx, int device);
	int (*alloc)(devptr *ret, size_t size);
	int (*free)(devptr ptr);
	int (*to_device)(devptr to, const void *from, size_t len);
	int (*to_host)(void *to, devptr from, size_t len);
	int (*fill)(devptr to, unsigned char value, size_t len, void *stream);
	int (*stream)(void **ret, unsigned flags);
	int (*event)(void **ret, unsigned flags);
	int (*record)(void *event, void *stream);
	int (*reserve)(devptr *ret, size_t size, size_t align, devptr at, unsigned long long flags);
	int (*create)(devptr *ret, size_t size, const void *prop, unsigned long long flags);
	int (*map)(devptr at, size_t size, size_t offset, devptr handle, unsigned long long flags);
	int (*unmap)(devptr at, size_t size);
	int (*release)(devptr handle);
	int (*no_stream)(void *stream);
	int (*no_event)(void *event);
	int (*attribute)(int *ret, int attribute, int device);
	int (*set)(const char *name, long value);
	long (*get)(const char *name);
	void (*known)(const void *ptr, size_t size, unsigned type, unsigned is_managed);
	void (*hip_version)(int version);
	int (*last_error)(void);
} cu;

static void *
open_standin(const char *name)
{
	char self[512], path[700];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	assert_true(n > 0);
	self[n] = 0;
	/* build/<variant>/unit/client/test_drivers */
	for (int i = 0; i < 3; i++)
		*strrchr(self, '/') = 0;
	snprintf(path, sizeof path, "%s/tests/gpu/%s", self, name);
	return dlopen(path, RTLD_LAZY);
}

static void
load(void)
{
	const struct {
		const char *name;
		void *fn;
	} symbol[] = { { "cuInit", &cu.init },
		       { "cuCtxSetCurrent", &cu.current },
		       { "cuDevicePrimaryCtxRetain", &cu.retain },
		       { "cuMemAlloc_v2", &cu.alloc },
		       { "cuMemFree_v2", &cu.free },
		       { "cuMemcpyHtoD_v2", &cu.to_device },
		       { "cuMemcpyDtoH_v2", &cu.to_host },
		       { "cuMemsetD8Async", &cu.fill },
		       { "cuStreamCreate", &cu.stream },
		       { "cuEventCreate", &cu.event },
		       { "cuEventRecord", &cu.record },
		       { "cuMemAddressReserve", &cu.reserve },
		       { "cuMemCreate", &cu.create },
		       { "cuMemMap", &cu.map },
		       { "cuMemUnmap", &cu.unmap },
		       { "cuMemRelease", &cu.release },
		       { "cuStreamDestroy_v2", &cu.no_stream },
		       { "cuEventDestroy_v2", &cu.no_event },
		       { "cuDeviceGetAttribute", &cu.attribute },
		       { "standin_set", &cu.set },
		       { "standin_get", &cu.get },
		       { "standin_memory", &cu.known },
		       { "standin_hip_version", &cu.hip_version },
		       { "hipGetLastError", &cu.last_error } };
	void *lib = open_standin(mode->library), *ctx;

	assert_non_null(lib);
	for (size_t i = 0; i < sizeof symbol / sizeof *symbol; i++)
		*(void **)symbol[i].fn = dlsym(lib, symbol[i].name);
	if (mode->hip_version) {
		assert_non_null(open_standin("libhsa-runtime64.so.1"));
		cu.hip_version(mode->hip_version);
	}
	assert_int_equal(cu.init(0), 0);
	assert_int_equal(cu.retain(&ctx, 0), 0);
	assert_int_equal(cu.current(ctx), 0);
}

static char *
allocate(size_t size)
{
	devptr p = 0;

	assert_int_equal(cu.alloc(&p, size), 0);
	return (char *)(uintptr_t)p;
}

static void
release(char *p)
{
	assert_int_equal(cu.free((uintptr_t)p), 0);
}

/* A driver that could be found is not looked for until the program has loaded it. */
static void
no_driver(void **state)
{
	static char host[100];
	char why[200], *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gantry_memory_info info = { .size = sizeof info };
	struct gpu_range range;

	assert_null(gpu_look(host, &range));
	assert_int_equal(gantry_memory_look(host, &info), -EOPNOTSUPP);
	assert_int_equal(memory_kind(host, sizeof host, true), 0);
	assert_int_equal(memory_kind(none, 4096, false), 1);
	assert_int_equal(gpu_wait(host, GANTRY_WAIT_STREAM, NULL, why, sizeof why), -EOPNOTSUPP);
	assert_non_null(strstr(why, "no driver of a device is loaded"));
	assert_null(gpu_ids_of(host, sizeof host));
	assert_int_equal(gpu_ids_hold(NULL, host, sizeof host), GPU_SAME);
	munmap(none, 4096);
	load();
}

static void
kinds(void **state)
{
	static char host[4096], managed[4096], pinned[4096];
	char *p = allocate(3 * MIB), *small = allocate(1000);
	struct gantry_memory_info info = { .size = sizeof info };

	cu.known(managed, sizeof managed, 2, 1);
	cu.known(pinned, sizeof pinned, 1, 0);
	assert_int_equal(gantry_memory_type(p), GANTRY_MEM_DEVICE);
	assert_int_equal(gantry_memory_type(p + 3 * MIB - 1), GANTRY_MEM_DEVICE);
	assert_int_equal(gantry_memory_type(small + 999), GANTRY_MEM_DEVICE);
	assert_int_equal(gantry_memory_type(managed), GANTRY_MEM_MANAGED);
	assert_int_equal(gantry_memory_type(pinned), GANTRY_MEM_SYSTEM);
	assert_int_equal(gantry_memory_type(host), GANTRY_MEM_SYSTEM);
	assert_int_equal(gantry_memory_type(NULL), GANTRY_MEM_INVALID);
	assert_int_equal(gantry_memory_type((void *)(uintptr_t)4096), GANTRY_MEM_INVALID);
	assert_non_null(strstr(memory_name(p, 10), mode->driver));
	assert_int_equal(gantry_memory_look(p + 5, &info), 0);
	assert_int_equal(info.type, GANTRY_MEM_DEVICE);
	assert_true(info.start == (uintptr_t)p && info.length == 3 * MIB && info.id != 0 && info.device == 0);
	assert_string_equal(info.driver, mode->driver);
	assert_int_equal(gantry_memory_look(host, &info), -ENOENT);
	/* An older program's struct is not written beyond its end. */
	info = (struct gantry_memory_info){ .size = offsetof(struct gantry_memory_info, id), .id = 77 };
	assert_int_equal(gantry_memory_look(p, &info), 0);
	assert_true(info.id == 77 && info.length == 3 * MIB);
	/* Freed memory stays mapped without access, and nobody knows it. */
	release(p);
	assert_int_equal(gantry_memory_type(p), GANTRY_MEM_UNKNOWN);
	assert_int_equal(memory_kind(p, 10, false), -EFAULT);
	/* The program's own last error is not ours. */
	assert_true(!cu.last_error || cu.last_error() == 0);
	release(small);
}

static void
what_a_call_may_touch(void **state)
{
	static char host[10000];
	char why[200], *p = allocate(2 * MIB);

	assert_int_equal(memory_kind(host, sizeof host, false), 0);
	assert_int_equal(memory_kind(p, 2 * MIB, false), 1);
	assert_int_equal(memory_kind(p + 2 * MIB - 1, 1, true), 1);
	/* Past the end. */
	assert_int_equal(memory_kind(p, 200 * MIB, false), -EFAULT);
	assert_int_equal(memory_kind((void *)(uintptr_t)4096, 1, false), -EFAULT);
	explain_unmapped(p, 5, why, sizeof why);
	assert_non_null(strstr(why, "not mapped"));
	assert_non_null(strstr(why, mode->driver));
	release(p);
}

static int export(const char *ptr, size_t size, uint64_t *ret_offset, char *why, size_t why_len)
{
	struct gpu_range range;
	const struct gpu_driver *d = gpu_look(ptr, &range);

	assert_non_null(d);
	*why = 0;
	return gpu_dmabuf(d, &range, ptr, size, ret_offset, why, why_len);
}

static void
exports(void **state)
{
	char why[200], *p = allocate(3 * MIB);
	uint64_t offset;
	int fd = export(p + 5000, 1000, &offset, why, sizeof why), before;

	/* All of the allocation, and mmap() of it fails, with 524 as NVIDIA's driver has it. */
	assert_true(fd >= 0 && offset == 5000);
	assert_int_equal(lseek(fd, 0, SEEK_END), 3 * MIB);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(errno, mode->hip_version ? EACCES : 524);
	close(fd);
	/* On a thread without a context, and nothing is held afterwards. */
	before = (int)cu.get("retained");
	cu.current(NULL);
	fd = export(p, 3 * MIB, &offset, why, sizeof why);
	assert_true(fd >= 0 && offset == 0 && cu.get("retained") == before);
	close(fd);
	/* Descriptors are not kept. */
	int next = dup(0);

	close(next);
	for (int i = 0; i < 3; i++)
		close(export(p, 10, &offset, why, sizeof why));
	fd = dup(0);
	assert_int_equal(fd, next);
	close(fd);
	/* Refused. */
	cu.set("export", 801);
	assert_int_equal(export(p, 10, &offset, why, sizeof why), -EOPNOTSUPP);
	assert_non_null(strstr(why, "exports no dma-buf of it (error "));
	assert_true(mode->hip_version || strstr(why, "(error 801)"));
	cu.set("export", 0);
	struct gpu_range host = { .start = 0 };

	assert_null(gpu_look(why, &host));
	/* A device that says that it has no dma-bufs is asked all the same: its answer is the export's. */
	int is_supported = 1;

	cu.set("attribute", 0);
	assert_int_equal(cu.attribute(&is_supported, 124, 0), 0);
	assert_int_equal(is_supported, 0);
	close(export(p, 10, &offset, why, sizeof why));
	cu.set("attribute", 1);
	void *ctx;

	cu.retain(&ctx, 0);
	cu.current(ctx);
	release(p);
}

/* A part of a memory pool: what it lies in is exported, else why not is said. */
static void
pools(void **state)
{
	char why[200], *p;
	uint64_t offset;
	int fd;

	if (mode->hip_version)
		return;
	cu.set("pool", 1);
	p = allocate(4 * MIB);
	/* Its neighbours of the same mapping are not the device's here, so that only an aligned one is exported. */
	fd = export(p, 4 * MIB, &offset, why, sizeof why);
	if (fd >= 0)
		assert_int_equal((uintptr_t)p % (2 * MIB), 0);
	else
		assert_non_null(strstr(why, "exports no dma-buf of this part of a memory pool (error 1)"));
	if (fd >= 0)
		close(fd);
	release(p);
	cu.set("pool", 0);
}

static void
ids(void **state)
{
	char *p = allocate(3 * MIB), *q;
	struct gpu_ids *ids = gpu_ids_of(p + 10, MIB), *two;
	devptr at, piece[3];

	assert_non_null(ids);
	assert_int_equal(gpu_ids_hold(ids, p + 10, MIB), GPU_SAME);
	release(p);
	assert_int_equal(gpu_ids_hold(ids, p + 10, MIB), GPU_GONE);
	q = allocate(3 * MIB);
	assert_ptr_equal(q, p);
	assert_int_equal(gpu_ids_hold(ids, p + 10, MIB), GPU_ANOTHER);
	free(ids);
	/* A driver that has none. */
	cu.set("ids", 0);
	assert_null(gpu_ids_of(q, MIB));
	cu.set("ids", 1);
	release(q);
	assert_null(gpu_ids_of(q, MIB));
	/* Of two pieces the one that is used counts. */
	assert_int_equal(cu.reserve(&at, 4 * MIB, 0, 0, 0), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cu.create(&piece[i], 2 * MIB, &at, 0), 0);
	assert_int_equal(cu.map(at, 2 * MIB, 0, piece[0], 0), 0);
	assert_int_equal(cu.map(at + 2 * MIB, 2 * MIB, 0, piece[1], 0), 0);
	p = (char *)(uintptr_t)at;
	two = gpu_ids_of(p, 4 * MIB);
	assert_non_null(two);
	assert_int_equal(two->nr, 2);
	assert_int_equal(cu.unmap(at + 2 * MIB, 2 * MIB), 0);
	assert_int_equal(gpu_ids_hold(two, p, 4 * MIB), GPU_GONE);
	assert_int_equal(gpu_ids_hold(two, p, 2 * MIB), GPU_SAME);
	assert_int_equal(cu.map(at + 2 * MIB, 2 * MIB, 0, piece[2], 0), 0);
	assert_int_equal(gpu_ids_hold(two, p + 2 * MIB, 1), GPU_ANOTHER);
	assert_int_equal(gpu_ids_hold(two, p, 2 * MIB), GPU_SAME);
	free(two);
	assert_int_equal(cu.unmap(at, 4 * MIB), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cu.release(piece[i]), 0);
}

static struct gpu_stream *
stream_for(const char *p)
{
	struct gpu_stream *s = NULL;
	struct gpu_range range;
	const struct gpu_driver *d = gpu_look(p, &range);
	char why[200];

	assert_non_null(d);
	assert_true(d->can_stage());
	assert_int_equal(gpu_stream_new(d, &range, &s, why, sizeof why), 0);
	return s;
}

static void
copies(void **state)
{
	char *p = allocate(MIB), *host = aligned_alloc(4096, MIB), why[200] = "";
	long streams = cu.get("streams") - cu.get("destroyed"), retained = cu.get("retained");
	struct gpu_stream *s = stream_for(p);

	memset(host, 7, MIB);
	assert_true(gpu_pin(s, host, MIB));
	assert_int_equal(cu.get("pinned"), 1);
	assert_int_equal(cu.to_device((uintptr_t)p, host, MIB), 0);
	/* Nothing is there before somebody waits. */
	memset(host, 1, MIB);
	assert_int_equal(gpu_copy_start(s, host, p, MIB, GANTRY_TO_HOST, why, sizeof why), 0);
	assert_int_equal(host[0], 1);
	assert_int_equal(gpu_copy_wait(s, why, sizeof why), 0);
	assert_true(host[0] == 7 && host[MIB - 1] == 7);
	/* Pinned bytes are read when their turn comes. */
	memset(host, 2, MIB);
	assert_int_equal(gpu_copy_start(s, p, host, MIB, GANTRY_TO_DEVICE, why, sizeof why), 0);
	memset(host, 3, MIB);
	assert_int_equal(gpu_copy_wait(s, why, sizeof why), 0);
	memset(host, 0, MIB);
	assert_int_equal(cu.to_host(host, (uintptr_t)p, MIB), 0);
	assert_true(host[0] == 3 && host[MIB - 1] == 3);
	assert_int_equal(cu.get("unpinned_copies"), 0);
	/* Errors, in the driver's own words. */
	cu.set("copy", 700);
	assert_int_equal(gpu_copy_start(s, p, host, MIB, GANTRY_TO_DEVICE, why, sizeof why), -EIO);
	assert_non_null(strstr(why, mode->hip_version ? "ROCm: error 700, hipErrorIllegalAddress"
						      : "CUDA: error 700, CUDA_ERROR_ILLEGAL_ADDRESS"));
	assert_true(s->has_failed);
	cu.set("copy", 0);
	gpu_unpin(s->driver, s->ordinal, host);
	gpu_stream_free(s);
	assert_int_equal(cu.get("pinned"), 0);
	/* A stream that could not be made leaves nothing. */
	struct gpu_range range;
	const struct gpu_driver *d = gpu_look(p, &range);

	cu.set("stream", 700);
	assert_int_equal(gpu_stream_new(d, &range, &s, why, sizeof why), -EIO);
	cu.set("stream", 0);
	assert_int_equal(cu.get("streams") - cu.get("destroyed"), streams);
	assert_int_equal(cu.get("retained"), retained);
	assert_true(!cu.last_error || cu.last_error() == 0);
	free(host);
	release(p);
}

static void
waits(void **state)
{
	char *p = allocate(MIB), byte, why[200];
	void *own, *event, *number[] = { NULL, (void *)1, (void *)2 };
	struct gpu_stream *s = stream_for(p);

	assert_int_equal(cu.stream(&own, 1), 0);
	assert_int_equal(cu.event(&event, 0), 0);
	for (int i = 0; i < 5; i++) {
		void *stream = i < 3 ? number[i] : own;

		assert_int_equal(cu.fill((uintptr_t)p, (unsigned char)(i + 1), MIB, stream), 0);
		assert_int_equal(cu.record(event, stream), 0);
		/* It waits for its own copies alone. */
		assert_int_equal(gpu_copy_start(s, &byte, p, 1, GANTRY_TO_HOST, why, sizeof why), 0);
		assert_int_equal(gpu_copy_wait(s, why, sizeof why), 0);
		assert_int_not_equal(byte, i + 1);
		assert_int_equal(gpu_wait(p, i < 4 ? GANTRY_WAIT_STREAM : GANTRY_WAIT_EVENT,
					  i < 4 ? stream : event, why, sizeof why),
				 0);
		assert_int_equal(gpu_copy_start(s, &byte, p, 1, GANTRY_TO_HOST, why, sizeof why), 0);
		assert_int_equal(gpu_copy_wait(s, why, sizeof why), 0);
		assert_int_equal(byte, i + 1);
	}
	assert_int_equal(gpu_wait(p, 9, NULL, why, sizeof why), -EINVAL);
	/* What a NIC wrote is made visible, where a driver has to be asked. */
	long flushes = cu.get("flushes");

	assert_int_equal(gpu_flush(p, why, sizeof why), 0);
	assert_int_equal(cu.get("flushes"), flushes + (mode->hip_version == 0));
	gpu_stream_free(s);
	assert_int_equal(cu.no_stream(own), 0);
	assert_int_equal(cu.no_event(event), 0);
	release(p);
}

static int
run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_driver), cmocka_unit_test(kinds), cmocka_unit_test(what_a_call_may_touch),
		cmocka_unit_test(exports),   cmocka_unit_test(pools), cmocka_unit_test(ids),
		cmocka_unit_test(copies),    cmocka_unit_test(waits),
	};

	return cmocka_run_group_tests_name(mode->name, tests, NULL, NULL);
}

int
main(void)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		pid_t child;
		int status = 1;

		fflush(stdout);
		child = fork();
		if (child == 0) {
			mode = &modes[i];
			exit(run() ? 1 : 0);
		}
		failed |= child < 0 || waitpid(child, &status, 0) != child || status != 0;
	}
	return failed;
}
