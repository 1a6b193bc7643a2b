/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a device: what kind it is, and whether the CPU can read it, found out without a touch.  The kernel reads a
 * byte for us and says when it cannot; CUDA is asked only where the program has loaded it already.  Any thread; no lock.
 */
#include "client/client_int.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- what CUDA says ---- */

/* Of the driver's interface; these numbers are part of its ABI. */
enum {
	CUDA_MEMORY_TYPE = 2,
	CUDA_IS_MANAGED = 8,
	CUDA_ORDINAL = 9,
	CUDA_RANGE_START = 11,
	CUDA_RANGE_SIZE = 12
};
enum { CUDA_HOST = 1, CUDA_DEVICE = 2 };
enum { CUDA_DMA_BUF_FD = 1 };
enum { CUDA_INVALID_CONTEXT = 201 };

/* The driver's functions: those that export memory may be missing, an old one has none of it. */
static struct cuda {
	int (*attributes)(unsigned nr, const int *attribute, void **data, unsigned long long ptr);
	int (*export)(void *handle, unsigned long long ptr, size_t size, int type, unsigned long long flags);
	int (*device)(int *device, int ordinal);
	int (*retain)(void **ctx, int device);
	int (*push)(void *ctx);
	int (*pop)(void **ctx);
	int (*release)(int device);
} driver;
static _Atomic bool has_driver;

/* Finds the driver; NULL in a program that has no CUDA loaded, and so has no memory of it. */
static const struct cuda *
cuda(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const struct {
		const char *name;
		void *fn;
	} symbol[] = { { "cuPointerGetAttributes", &driver.attributes },
		       { "cuMemGetHandleForAddressRange", &driver.export },
		       { "cuDeviceGet", &driver.device },
		       { "cuDevicePrimaryCtxRetain", &driver.retain },
		       { "cuCtxPushCurrent_v2", &driver.push },
		       { "cuCtxPopCurrent_v2", &driver.pop },
		       { "cuDevicePrimaryCtxRelease_v2", &driver.release } };
	void *lib = has_driver ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (lib) {
		/* A handle of its own keeps it there. */
		pthread_mutex_lock(&lock);
		for (size_t i = 0; !has_driver && i < sizeof symbol / sizeof *symbol; i++)
			*(void **)symbol[i].fn = dlsym(lib, symbol[i].name);
		has_driver = driver.attributes != NULL;
		pthread_mutex_unlock(&lock);
	}
	return has_driver ? &driver : NULL;
}

/* UNKNOWN: it knows nothing of this pointer, or there is no CUDA. */
static enum gantry_memory
cuda_type(const void *ptr)
{
	static const int attribute[] = { CUDA_MEMORY_TYPE, CUDA_IS_MANAGED };
	unsigned type = 0, is_managed = 0;
	void *data[] = { &type, &is_managed };
	const struct cuda *c = cuda();

	if (!c || c->attributes(2, attribute, data, (uintptr_t)ptr) != 0)
		return GANTRY_MEM_UNKNOWN;
	if (is_managed)
		return GANTRY_MEM_MANAGED;
	return type == CUDA_DEVICE ? GANTRY_MEM_DEVICE
	       : type == CUDA_HOST ? GANTRY_MEM_SYSTEM
				   : GANTRY_MEM_UNKNOWN;
}

/* ---- memory that CUDA exports ---- */

bool
gpu_look(const void *ptr, struct gpu_range *ret)
{
	static const int attribute[] = { CUDA_ORDINAL, CUDA_RANGE_START, CUDA_RANGE_SIZE };
	unsigned long long start = 0;
	size_t size = 0;
	int ordinal = 0;
	void *data[] = { &ordinal, &start, &size };
	const struct cuda *c = cuda();

	if (cuda_type(ptr) != GANTRY_MEM_DEVICE || c->attributes(3, attribute, data, (uintptr_t)ptr) != 0)
		return false;
	*ret = (struct gpu_range){ .start = (uintptr_t)start, .size = size, .ordinal = ordinal };
	return true;
}

/* Asks on a thread that has no context, with the one of the device that all share. */
static int
export_with_context(const struct cuda *c, int ordinal, int *ret_fd, uintptr_t start, size_t size)
{
	void *ctx = NULL, *popped;
	int device, r;

	if (!c->device || !c->retain || !c->push || !c->pop || !c->release)
		return CUDA_INVALID_CONTEXT;
	r = c->device(&device, ordinal);
	if (r == 0)
		r = c->retain(&ctx, device);
	if (r != 0)
		return r;
	r = c->push(ctx);
	if (r == 0) {
		r = c->export(ret_fd, start, size, CUDA_DMA_BUF_FD, 0);
		c->pop(&popped);
	}
	c->release(device);
	return r;
}

int
gpu_dmabuf(const struct gpu_range *range, const void *ptr, size_t size, uint64_t *ret_offset, char *why,
	   size_t why_len)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1, from = (uintptr_t)ptr;
	const struct cuda *c = cuda();
	/* The whole allocation: a part of one has no descriptor of its own. */
	bool is_inside =
		from >= range->start && size <= range->size && from - range->start <= range->size - size;
	uintptr_t start = (is_inside ? range->start : from) & ~page;
	uintptr_t end = ((is_inside ? range->start + range->size : from + size) + page) & ~page;
	int fd = -1, r;

	if (!c || !c->export) {
		snprintf(why, why_len, "the CUDA driver exports no memory (11.7 and later do)");
		return -EOPNOTSUPP;
	}
	r = c->export(&fd, start, end - start, CUDA_DMA_BUF_FD, 0);
	if (r == CUDA_INVALID_CONTEXT)
		r = export_with_context(c, range->ordinal, &fd, start, end - start);
	if (r != 0) {
		snprintf(why, why_len, "the CUDA driver exports it not as a dma-buf (error %d)", r);
		return -EOPNOTSUPP;
	}
	*ret_offset = from - start;
	return fd;
}

/* ---- what the CPU reaches ---- */

/* Memory of a device is mapped in pieces of at least this size, at multiples of it. */
#define STEP ((uintptr_t)2 << 20)
#define PROBES 64

/* Has the kernel read one byte at each address.  1 or 0, or -errno where it does not do such things. */
static int
probe(const struct iovec *at, unsigned nr)
{
	char bytes[PROBES];
	struct iovec to = { .iov_base = bytes, .iov_len = nr };
	ssize_t n = process_vm_readv(getpid(), &to, 1, at, nr, 0);

	if (n < 0 && errno != EFAULT)
		return -errno;
	return n == (ssize_t)nr;
}

bool
maps_reach(FILE *maps, uintptr_t from, uintptr_t to)
{
	char *line = NULL;
	size_t cap = 0;

	while (from < to && getline(&line, &cap, maps) > 0) {
		char *end;
		uintptr_t first = strtoull(line, &end, 16);
		uintptr_t behind = *end == '-' ? strtoull(end + 1, &end, 16) : 0;

		if (behind <= from)
			continue;
		if (first > from || end[0] != ' ' || end[1] != 'r' || strstr(end, " /dev/nvidia"))
			break;
		from = behind;
	}
	free(line);
	return from >= to;
}

bool
cpu_reaches_all(const void *ptr, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool reaches;

	/* Nobody to ask. */
	if (!maps)
		return true;
	reaches = maps_reach(maps, (uintptr_t)ptr, (uintptr_t)ptr + size);
	fclose(maps);
	return reaches;
}

bool
cpu_reaches(const void *ptr, size_t size)
{
	uintptr_t first = (uintptr_t)ptr, last = first + size - 1, at = first;
	struct iovec piece[PROBES];
	unsigned nr = 0;

	for (bool more = size > 0 && last >= first; more;) {
		piece[nr++] = (struct iovec){ .iov_base = (void *)at, .iov_len = 1 };
		more = at != last;
		at = (last & ~(STEP - 1)) > at ? (at | (STEP - 1)) + 1 : last;
		if (nr == PROBES || !more) {
			int r = probe(piece, nr);

			if (r <= 0)
				return r < 0 && cpu_reaches_all(ptr, size);
			nr = 0;
		}
	}
	return true;
}

/* ---- the kind of it ---- */

enum gantry_memory
gantry_memory_type(const void *ptr)
{
	uintptr_t page = (uintptr_t)ptr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	enum gantry_memory type = ptr ? cuda_type(ptr) : GANTRY_MEM_INVALID;
	unsigned char vec;

	if (type != GANTRY_MEM_UNKNOWN)
		return type;
	if (cpu_reaches(ptr, 1))
		return GANTRY_MEM_SYSTEM;
	return mincore((void *)page, 1, &vec) < 0 ? GANTRY_MEM_INVALID : GANTRY_MEM_UNKNOWN;
}

const char *
memory_name(const void *ptr, size_t size)
{
	static const char *const name[] = { [GANTRY_MEM_SYSTEM] = "memory of a device",
					    [GANTRY_MEM_MANAGED] = "managed memory (CUDA)",
					    [GANTRY_MEM_DEVICE] = "device memory (CUDA)",
					    [GANTRY_MEM_UNKNOWN] = "memory that the CPU cannot read",
					    [GANTRY_MEM_INVALID] = "memory that is not mapped" };

	enum gantry_memory type = gantry_memory_type(ptr);

	if (type == GANTRY_MEM_SYSTEM && !cpu_reaches_all(ptr, size))
		return "memory of which the CPU cannot read every page";
	return name[type];
}
