/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's driver as a table of functions (gpu.h).  Its library, libcuda.so.1, is found only where the program has loaded it.
 * Names, numbers and signatures are those of its published interface, and part of its ABI.
 */
#include "client/gpu.h"

#include <dlfcn.h>
#include <pthread.h>

typedef unsigned long long devptr;

/* Attributes of a pointer. */
enum {
	CUDA_CONTEXT = 1,
	CUDA_MEMORY_TYPE = 2,
	CUDA_BUFFER_ID = 7,
	CUDA_IS_MANAGED = 8,
	CUDA_ORDINAL = 9,
	CUDA_RANGE_START = 11,
	CUDA_RANGE_SIZE = 12,
	CUDA_MEMPOOL = 17
};
enum { CUDA_HOST = 1, CUDA_DEVICE = 2 };
enum { CUDA_DMA_BUF_FD = 1 };
enum { CUDA_INVALID_CONTEXT = 201, CUDA_NOT_SUPPORTED = 801 };
enum { CUDA_HOST_PORTABLE = 1, CUDA_STREAM_NON_BLOCKING = 1 };
enum { CUDA_FLUSH_CURRENT_CONTEXT = 0, CUDA_FLUSH_TO_ALL_DEVICES = 200 };

/* The driver's functions: any but the first may be missing in an old one. */
static struct {
	int (*attributes)(unsigned nr, const int *attribute, void **data, devptr ptr);
	int (*address_range)(devptr *base, size_t *size, devptr ptr);
	int (*export)(void *handle, devptr ptr, size_t size, int type, unsigned long long flags);
	int (*device)(int *device, int ordinal);
	int (*retain)(void **ctx, int device);
	int (*release)(int device);
	int (*state)(int device, unsigned *flags, int *active);
	int (*push)(void *ctx);
	int (*pop)(void **ctx);
	int (*host_register)(void *ptr, size_t size, unsigned flags);
	int (*host_unregister)(void *ptr);
	int (*stream_create)(void **stream, unsigned flags);
	int (*stream_destroy)(void *stream);
	int (*stream_synchronize)(void *stream);
	int (*event_synchronize)(void *event);
	int (*to_device)(devptr dst, const void *src, size_t size, void *stream);
	int (*to_host)(void *dst, devptr src, size_t size, void *stream);
	int (*flush)(int target, int scope);
	int (*error_name)(int error, const char **name);
} cuda;
static _Atomic bool has_cuda;

static bool
cuda_find(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const struct {
		const char *name;
		void *fn;
	} symbol[] = { { "cuPointerGetAttributes", &cuda.attributes },
		       { "cuMemGetAddressRange_v2", &cuda.address_range },
		       { "cuMemGetHandleForAddressRange", &cuda.export },
		       { "cuDeviceGet", &cuda.device },
		       { "cuDevicePrimaryCtxRetain", &cuda.retain },
		       { "cuDevicePrimaryCtxRelease_v2", &cuda.release },
		       { "cuDevicePrimaryCtxGetState", &cuda.state },
		       { "cuCtxPushCurrent_v2", &cuda.push },
		       { "cuCtxPopCurrent_v2", &cuda.pop },
		       { "cuMemHostRegister_v2", &cuda.host_register },
		       { "cuMemHostUnregister", &cuda.host_unregister },
		       { "cuStreamCreate", &cuda.stream_create },
		       { "cuStreamDestroy_v2", &cuda.stream_destroy },
		       { "cuStreamSynchronize", &cuda.stream_synchronize },
		       { "cuEventSynchronize", &cuda.event_synchronize },
		       { "cuMemcpyHtoDAsync_v2", &cuda.to_device },
		       { "cuMemcpyDtoHAsync_v2", &cuda.to_host },
		       { "cuFlushGPUDirectRDMAWrites", &cuda.flush },
		       { "cuGetErrorName", &cuda.error_name } };
	void *lib = has_cuda ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (lib) {
		/* A handle of its own keeps it there. */
		pthread_mutex_lock(&lock);
		for (size_t i = 0; !has_cuda && i < sizeof symbol / sizeof *symbol; i++)
			*(void **)symbol[i].fn = dlsym(lib, symbol[i].name);
		has_cuda = cuda.attributes != NULL;
		pthread_mutex_unlock(&lock);
	}
	return has_cuda;
}

static bool
has_contexts(void)
{
	return cuda.device && cuda.retain && cuda.release && cuda.push && cuda.pop;
}

static bool
cuda_can_stage(void)
{
	return has_contexts() && cuda.stream_create && cuda.stream_destroy && cuda.stream_synchronize &&
	       cuda.to_device && cuda.to_host;
}

static bool
cuda_can_export(void)
{
	return cuda.export != NULL;
}

static enum gantry_memory
cuda_type(const void *ptr)
{
	static const int attribute[] = { CUDA_MEMORY_TYPE, CUDA_IS_MANAGED };
	unsigned type = 0, is_managed = 0;
	void *data[] = { &type, &is_managed };

	if (cuda.attributes(2, attribute, data, (uintptr_t)ptr) != 0)
		return GANTRY_MEM_UNKNOWN;
	if (is_managed)
		return GANTRY_MEM_MANAGED;
	return type == CUDA_DEVICE ? GANTRY_MEM_DEVICE
	       : type == CUDA_HOST ? GANTRY_MEM_SYSTEM
				   : GANTRY_MEM_UNKNOWN;
}

/* One attribute that an old driver may not have; data stays as it is then. */
static void
attribute_of(const void *ptr, int attribute, void *data)
{
	cuda.attributes(1, &attribute, &data, (uintptr_t)ptr);
}

static int
cuda_look(const void *ptr, struct gpu_range *ret)
{
	static const int attribute[] = { CUDA_ORDINAL, CUDA_RANGE_START, CUDA_RANGE_SIZE };
	devptr start = 0;
	size_t size = 0;
	int ordinal = 0, e;
	void *data[] = { &ordinal, &start, &size }, *ctx = NULL, *pool = NULL;
	unsigned long long id = 0;

	e = cuda.attributes(3, attribute, data, (uintptr_t)ptr);
	if (e != 0)
		return e;
	/* Of an allocation that was made of pieces, the piece. */
	if (!size && cuda.address_range)
		cuda.address_range(&start, &size, (uintptr_t)ptr);
	attribute_of(ptr, CUDA_BUFFER_ID, &id);
	attribute_of(ptr, CUDA_CONTEXT, &ctx);
	attribute_of(ptr, CUDA_MEMPOOL, &pool);
	*ret = (struct gpu_range){ .start = (uintptr_t)start,
				   .size = size,
				   .id = id,
				   .ctx = ctx,
				   .ordinal = ordinal,
				   .is_pool = pool != NULL };
	return 0;
}

/* ---- contexts ---- */

static int
retain(int ordinal, void **ret_ctx)
{
	int device, e = has_contexts() ? cuda.device(&device, ordinal) : CUDA_INVALID_CONTEXT;

	return e == 0 ? cuda.retain(ret_ctx, device) : e;
}

static void
cuda_unhold(int ordinal)
{
	int device;

	if (cuda.device(&device, ordinal) == 0)
		cuda.release(device);
}

static int
cuda_hold(int ordinal, void **ctx)
{
	unsigned flags;
	int device, is_active = 1, e;
	void *shared;

	/* A program that makes contexts of its own need not get another from us. */
	if (*ctx && cuda.state && cuda.device(&device, ordinal) == 0)
		cuda.state(device, &flags, &is_active);
	if (!is_active)
		return 0;
	e = retain(ordinal, &shared);
	if (e != 0)
		return *ctx ? 0 : e;
	if (*ctx && *ctx != shared)
		cuda_unhold(ordinal);
	else
		*ctx = NULL;
	return 0;
}

static int
cuda_enter(struct gpu_place *p)
{
	void *ctx = p->ctx;
	int e;

	if (!ctx) {
		e = retain(p->ordinal, &ctx);
		if (e != 0)
			return e;
		p->is_held = true;
	}
	e = cuda.push ? cuda.push(ctx) : CUDA_INVALID_CONTEXT;
	if (e != 0 && p->is_held)
		cuda_unhold(p->ordinal);
	return e;
}

static void
cuda_leave(struct gpu_place *p)
{
	void *popped;

	cuda.pop(&popped);
	if (p->is_held)
		cuda_unhold(p->ordinal);
}

/* ---- dma-bufs, copies ---- */

static int
cuda_export(const struct gpu_range *range, uintptr_t start, size_t size, int *ret_fd, uint64_t *ret_offset)
{
	struct gpu_place p = { .ordinal = range->ordinal, .ctx = range->ctx };
	int e = cuda.export(ret_fd, start, size, CUDA_DMA_BUF_FD, 0);

	*ret_offset = 0;
	if (e != CUDA_INVALID_CONTEXT)
		return e;
	/* A thread that has none. */
	e = cuda_enter(&p);
	if (e != 0)
		return e;
	e = cuda.export(ret_fd, start, size, CUDA_DMA_BUF_FD, 0);
	cuda_leave(&p);
	return e;
}

static int
cuda_pin(void *ptr, size_t size)
{
	return cuda.host_register ? cuda.host_register(ptr, size, CUDA_HOST_PORTABLE) : CUDA_NOT_SUPPORTED;
}

static int
cuda_unpin(void *ptr)
{
	return cuda.host_unregister ? cuda.host_unregister(ptr) : CUDA_NOT_SUPPORTED;
}

static int
cuda_stream_new(void **ret_stream)
{
	return cuda.stream_create(ret_stream, CUDA_STREAM_NON_BLOCKING);
}

static int
cuda_stream_free(void *stream)
{
	return cuda.stream_destroy(stream);
}

static int
cuda_copy(void *dst, const void *src, size_t size, enum gantry_copy_to to, void *stream)
{
	return to == GANTRY_TO_DEVICE ? cuda.to_device((uintptr_t)dst, src, size, stream)
				      : cuda.to_host(dst, (uintptr_t)src, size, stream);
}

static int
cuda_stream_wait(void *stream)
{
	return cuda.stream_synchronize ? cuda.stream_synchronize(stream) : CUDA_NOT_SUPPORTED;
}

static int
cuda_event_wait(void *event)
{
	return cuda.event_synchronize ? cuda.event_synchronize(event) : CUDA_NOT_SUPPORTED;
}

/* Where the platform orders writes by itself the driver does nothing; where it cannot be asked, there is nothing to do. */
static int
cuda_flush(void)
{
	int e = cuda.flush ? cuda.flush(CUDA_FLUSH_CURRENT_CONTEXT, CUDA_FLUSH_TO_ALL_DEVICES) : 0;

	return e == CUDA_NOT_SUPPORTED ? 0 : e;
}

static const char *
cuda_error_name(int error)
{
	const char *name = NULL;

	return cuda.error_name && cuda.error_name(error, &name) == 0 ? name : NULL;
}

const struct gpu_driver gpu_cuda = { .name = "CUDA",
				     .peer = "peer memory (nvidia-peermem)",
				     .find = cuda_find,
				     .can_stage = cuda_can_stage,
				     .type = cuda_type,
				     .look = cuda_look,
				     .hold = cuda_hold,
				     .unhold = cuda_unhold,
				     .can_export = cuda_can_export,
				     .export = cuda_export,
				     .enter = cuda_enter,
				     .leave = cuda_leave,
				     .pin = cuda_pin,
				     .unpin = cuda_unpin,
				     .stream_new = cuda_stream_new,
				     .stream_free = cuda_stream_free,
				     .copy = cuda_copy,
				     .stream_wait = cuda_stream_wait,
				     .event_wait = cuda_event_wait,
				     .flush = cuda_flush,
				     .error_name = cuda_error_name };
