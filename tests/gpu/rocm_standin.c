/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libamdhip64.so.6 and, with -DHSA, a libhsa-runtime64.so.1 for machines without a GPU: ROCm's names over the memory, the
 * streams and the settings of cuda_standin.c, which is part of this file.  HIP has no contexts that a program must make; its
 * errors are kept for hipGetLastError(); kinds of memory have the numbers of ROCm 6, or with standin_hip_version(50000000)
 * those of ROCm 5, where memory that is not known is an error.  mmap() of a dma-buf fails with EACCES.
 *
 * Build: gcc -std=gnu17 -D_GNU_SOURCE -shared -fPIC -O1 [-DHSA] -Wl,-soname,NAME -o DIR/NAME tests/gpu/rocm_standin.c
 */
#ifdef HSA
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

int hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *fd, uint64_t *offset);
int hsa_amd_portable_close_dmabuf(int fd);

int
hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *fd, uint64_t *offset)
{
	void *hip = dlopen("libamdhip64.so.6", RTLD_LAZY | RTLD_NOLOAD);
	int (*export)(const void *ptr, size_t size, int *fd, uint64_t *offset) = NULL;

	if (hip)
		*(void **)&export = dlsym(hip, "standin_hsa_export");
	return export ? export(ptr, size, fd, offset) : 4096;
}

int
hsa_amd_portable_close_dmabuf(int fd)
{
	return close(fd) == 0 ? 0 : 4096;
}
#else
#include "cuda_standin.c"

struct hip_attributes {
	int type, device;
	void *device_pointer, *host_pointer;
	int is_managed;
	unsigned flags;
};

static int version = 60000000;
static _Thread_local int last_error, device_now;

void standin_hip_version(int v);
void
standin_hip_version(int v)
{
	version = v;
}

static void
enter(void)
{
	pthread_mutex_lock(&lock);
	init_pid = init_pid ? init_pid : getpid();
	pthread_mutex_unlock(&lock);
	cuCtxPushCurrent_v2(&primary);
}

static int
leave(int error)
{
	void *popped;

	cuCtxPopCurrent_v2(&popped);
	last_error = error ? error : last_error;
	return error;
}

CALL(hipRuntimeGetVersion, int *ret)
{
	*ret = version;
	return OK;
}

CALL(hipGetLastError, void)
{
	int e = last_error;

	last_error = 0;
	return e;
}

CALL(hipGetDevice, int *ret)
{
	*ret = device_now;
	return OK;
}

CALL(hipSetDevice, int device)
{
	device_now = device;
	return OK;
}

const char *hipGetErrorName(int error);
const char *
hipGetErrorName(int error)
{
	return error == INVALID_VALUE   ? "hipErrorInvalidValue"
	       : error == 700           ? "hipErrorIllegalAddress"
	       : error == NOT_SUPPORTED ? "hipErrorNotSupported"
					: "hipErrorUnknown";
}

CALL(hipPointerGetAttributes, struct hip_attributes *ret, const void *ptr)
{
	static const int attribute[] = { 2, 8 };
	unsigned type = 0, is_managed = 0;
	void *data[] = { &type, &is_managed };
	bool is_old = version < 60000000;

	enter();
	cuPointerGetAttributes(2, attribute, data, (uintptr_t)ptr);
	if (!type && is_old)
		return leave(INVALID_VALUE);
	*ret = (struct hip_attributes){ .type = is_old ? (int)type - 1 : (int)type,
					.is_managed = (int)is_managed };
	return leave(OK);
}

CALL(hipPointerGetAttribute, void *data, int attribute, void *ptr)
{
	enter();
	return leave(cuPointerGetAttribute(data, attribute, (uintptr_t)ptr));
}

CALL(hipMemGetAddressRange, void **start, size_t *size, void *ptr)
{
	ptr_t from = 0;
	int e;

	enter();
	e = cuMemGetAddressRange_v2(&from, size, (uintptr_t)ptr);
	*start = (void *)(uintptr_t)from;
	return leave(e);
}

CALL(hipHostRegister, void *ptr, size_t size, unsigned flags)
{
	enter();
	return leave(cuMemHostRegister_v2(ptr, size, flags));
}

CALL(hipHostUnregister, void *ptr)
{
	enter();
	return leave(cuMemHostUnregister(ptr));
}

CALL(hipStreamCreateWithFlags, void **ret, unsigned flags)
{
	enter();
	return leave(cuStreamCreate(ret, flags));
}

CALL(hipStreamDestroy, void *stream)
{
	enter();
	return leave(cuStreamDestroy_v2(stream));
}

CALL(hipStreamSynchronize, void *stream)
{
	enter();
	/* Of the numbers only 0 and 2 are streams before ROCm 6.4. */
	return leave(stream == (void *)1 ? INVALID_HANDLE : cuStreamSynchronize(stream));
}

CALL(hipEventSynchronize, void *event)
{
	enter();
	return leave(cuEventSynchronize(event));
}

CALL(hipMemcpyAsync, void *to, const void *from, size_t size, int kind, void *stream)
{
	enter();
	if (kind != 1 && kind != 2)
		return leave(INVALID_VALUE);
	return leave(kind == 1 ? cuMemcpyHtoDAsync_v2((uintptr_t)to, from, size, stream)
			       : cuMemcpyDtoHAsync_v2(to, (uintptr_t)from, size, stream));
}

/* Where dma-bufs are not to be mapped: no copy of this descriptor is either, whatever its number (errno EACCES). */
static int
unmappable(int fd)
{
	char path[40];
	int other;

	if (set(MAP) || fd < 0)
		return fd;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	other = open(path, O_WRONLY | O_CLOEXEC);
	close(fd);
	return other;
}

/* The whole allocation, and where the pointer is in it. */
int standin_hsa_export(const void *ptr, size_t size, int *fd, uint64_t *offset);
int
standin_hsa_export(const void *ptr, size_t size, int *fd, uint64_t *offset)
{
	struct range *r;
	int e = 4096;

	pthread_mutex_lock(&lock);
	r = range_of((uintptr_t)ptr);
	if (r && r->type == DEVICE && !set(EXPORT) && (uintptr_t)ptr - r->start + size <= r->memory->size) {
		*offset = (uintptr_t)ptr - r->start;
		*fd = unmappable(export(r->start, r->memory->size));
		e = *fd < 0 ? 4096 : 0;
		counts[EXPORTS].value += e == 0;
	}
	pthread_mutex_unlock(&lock);
	return e;
}
#endif
