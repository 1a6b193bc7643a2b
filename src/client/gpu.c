/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a device: what kind it is, and whether the CPU can read it, found out without a touch.  The kernel reads a
 * byte for us and says when it cannot; CUDA is asked only where the program has loaded it already.  Any thread; no lock.
 */
#include "client/client_int.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- what CUDA says ---- */

/* Of cuPointerGetAttributes() in the driver's interface; these numbers are part of its ABI. */
enum { CUDA_MEMORY_TYPE = 2, CUDA_IS_MANAGED = 8 };
enum { CUDA_HOST = 1, CUDA_DEVICE = 2 };
typedef int cuda_attributes_fn(unsigned nr, const int *attribute, void **data, unsigned long long ptr);

/* The driver's function; NULL in a program that has no CUDA loaded, and so has no memory of it. */
static cuda_attributes_fn *
cuda(void)
{
	static _Atomic(cuda_attributes_fn *) found;
	cuda_attributes_fn *fn = found;
	void *lib = fn ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (lib) {
		/* A handle of its own keeps it there. */
		*(void **)(void *)&fn = dlsym(lib, "cuPointerGetAttributes");
		found = fn;
	}
	return fn;
}

/* UNKNOWN: it knows nothing of this pointer, or there is no CUDA. */
static enum gantry_memory
cuda_type(const void *ptr)
{
	static const int attribute[] = { CUDA_MEMORY_TYPE, CUDA_IS_MANAGED };
	unsigned type = 0, is_managed = 0;
	void *data[] = { &type, &is_managed };
	cuda_attributes_fn *fn = cuda();

	if (!fn || fn(2, attribute, data, (uintptr_t)ptr) != 0)
		return GANTRY_MEM_UNKNOWN;
	if (is_managed)
		return GANTRY_MEM_MANAGED;
	return type == CUDA_DEVICE ? GANTRY_MEM_DEVICE
	       : type == CUDA_HOST ? GANTRY_MEM_SYSTEM
				   : GANTRY_MEM_UNKNOWN;
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
