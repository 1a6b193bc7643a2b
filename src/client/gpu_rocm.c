/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ROCm as a table of functions (gpu.h): HIP's runtime says what memory is and copies it, HSA's exports it.  Both are found
 * only where the program has loaded HIP's library.  Names, numbers and signatures are those of the published interfaces of ROCm 5 to 7.
 */
#include "client/gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

/* The beginning of hipPointerAttribute_t, the same since ROCm 5; the numbers of the kinds changed with 6. */
struct attributes {
	int type;
	int device;
	void *device_pointer, *host_pointer;
	int is_managed;
	unsigned flags;
	unsigned char room[64]; /* for what a later one may add */
};
enum { ROCM_6 = 60000000 };
enum { OLD_HOST = 0, OLD_DEVICE = 1, OLD_MANAGED = 4 };
enum { NEW_HOST = 1, NEW_DEVICE = 2, NEW_MANAGED = 3 };
enum { HIP_BUFFER_ID = 7 };
enum { HIP_TO_DEVICE = 1, HIP_TO_HOST = 2 };
enum { HIP_HOST_PORTABLE = 1, HIP_STREAM_NON_BLOCKING = 1 };
enum { HIP_NOT_SUPPORTED = 801 };

static struct {
	int (*attributes)(struct attributes *a, const void *ptr);
	int (*attribute)(void *data, int attribute, void *ptr);
	int (*address_range)(void **base, size_t *size, void *ptr);
	int (*version)(int *version);
	int (*last_error)(void);
	int (*get_device)(int *device);
	int (*set_device)(int device);
	int (*host_register)(void *ptr, size_t size, unsigned flags);
	int (*host_unregister)(void *ptr);
	int (*stream_create)(void **stream, unsigned flags);
	int (*stream_destroy)(void *stream);
	int (*stream_synchronize)(void *stream);
	int (*event_synchronize)(void *event);
	int (*copy)(void *dst, const void *src, size_t size, int kind, void *stream);
	const char *(*error_name)(int error);
	/* Of HSA. */
	int (*export)(const void *ptr, size_t size, int *fd, uint64_t *offset);
	int (*close_export)(int fd);
} hip;
static bool has_new_kinds;
static _Atomic bool has_hip;

/* Locked. */
static void
find_hsa(void)
{
	void *lib = dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (!lib)
		return;
	*(void **)&hip.export = dlsym(lib, "hsa_amd_portable_export_dmabuf");
	*(void **)&hip.close_export = dlsym(lib, "hsa_amd_portable_close_dmabuf");
}

static bool
rocm_find(void)
{
	static const char *const library[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
					       "libamdhip64.so" };
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const struct {
		const char *name;
		void *fn;
	} symbol[] = { { "hipPointerGetAttributes", &hip.attributes },
		       { "hipPointerGetAttribute", &hip.attribute },
		       { "hipMemGetAddressRange", &hip.address_range },
		       { "hipRuntimeGetVersion", &hip.version },
		       { "hipGetLastError", &hip.last_error },
		       { "hipGetDevice", &hip.get_device },
		       { "hipSetDevice", &hip.set_device },
		       { "hipHostRegister", &hip.host_register },
		       { "hipHostUnregister", &hip.host_unregister },
		       { "hipStreamCreateWithFlags", &hip.stream_create },
		       { "hipStreamDestroy", &hip.stream_destroy },
		       { "hipStreamSynchronize", &hip.stream_synchronize },
		       { "hipEventSynchronize", &hip.event_synchronize },
		       { "hipMemcpyAsync", &hip.copy },
		       { "hipGetErrorName", &hip.error_name } };
	int version = 0;
	void *lib = NULL;

	for (size_t i = 0; !has_hip && !lib && i < sizeof library / sizeof *library; i++)
		lib = dlopen(library[i], RTLD_LAZY | RTLD_NOLOAD);
	if (lib) {
		pthread_mutex_lock(&lock);
		for (size_t i = 0; !has_hip && i < sizeof symbol / sizeof *symbol; i++)
			*(void **)symbol[i].fn = dlsym(lib, symbol[i].name);
		if (!has_hip) {
			find_hsa();
			has_new_kinds = hip.version && hip.version(&version) == 0 && version >= ROCM_6;
		}
		has_hip = hip.attributes != NULL;
		pthread_mutex_unlock(&lock);
	}
	return has_hip;
}

/* An error that a call of ours left is not for the program to find. */
static int
forget(int e)
{
	if (e != 0 && hip.last_error)
		hip.last_error();
	return e;
}

static bool
rocm_can_stage(void)
{
	return hip.get_device && hip.set_device && hip.stream_create && hip.stream_destroy &&
	       hip.stream_synchronize && hip.copy;
}

static bool
rocm_can_export(void)
{
	return hip.export != NULL;
}

static enum gantry_memory
rocm_type(const void *ptr)
{
	struct attributes a = { .type = -1 };

	if (forget(hip.attributes(&a, ptr)) != 0)
		return GANTRY_MEM_UNKNOWN;
	if (a.is_managed || a.type == (has_new_kinds ? NEW_MANAGED : OLD_MANAGED))
		return GANTRY_MEM_MANAGED;
	if (a.type == (has_new_kinds ? NEW_DEVICE : OLD_DEVICE))
		return GANTRY_MEM_DEVICE;
	return a.type == (has_new_kinds ? NEW_HOST : OLD_HOST) ? GANTRY_MEM_SYSTEM : GANTRY_MEM_UNKNOWN;
}

static int
rocm_look(const void *ptr, struct gpu_range *ret)
{
	struct attributes a = { .type = -1 };
	void *base = NULL, *at = (void *)(uintptr_t)ptr;
	uint64_t id = 0;
	size_t size = 0;
	int e = forget(hip.attributes(&a, ptr));

	if (e == 0 && hip.address_range)
		e = forget(hip.address_range(&base, &size, at));
	if (e != 0)
		return e;
	if (hip.attribute && forget(hip.attribute(&id, HIP_BUFFER_ID, at)) != 0)
		id = 0;
	*ret = (struct gpu_range){ .start = (uintptr_t)base, .size = size, .id = id, .ordinal = a.device };
	return 0;
}

/* HIP has no contexts to hold: a device's memory and streams are the process's. */
static int
rocm_hold(int ordinal, void **ctx)
{
	return 0;
}

static void
rocm_unhold(int ordinal)
{
}

static int
rocm_enter(struct gpu_place *p)
{
	int e;

	if (!hip.get_device || !hip.set_device)
		return HIP_NOT_SUPPORTED;
	e = forget(hip.get_device(&p->saved));
	return e == 0 ? forget(hip.set_device(p->ordinal)) : e;
}

static void
rocm_leave(struct gpu_place *p)
{
	forget(hip.set_device(p->saved));
}

static int
rocm_export(const struct gpu_range *range, uintptr_t start, size_t size, int *ret_fd, uint64_t *ret_offset)
{
	int fd = -1, e = hip.export((const void *)start, size, &fd, ret_offset);

	if (e != 0)
		return e;
	/* The caller closes its descriptor as any other; HSA keeps books of its own. */
	*ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (hip.close_export)
		hip.close_export(fd);
	else
		close(fd);
	return *ret_fd < 0 ? -errno : 0;
}

static int
rocm_pin(void *ptr, size_t size)
{
	return hip.host_register ? forget(hip.host_register(ptr, size, HIP_HOST_PORTABLE))
				 : HIP_NOT_SUPPORTED;
}

static int
rocm_unpin(void *ptr)
{
	return hip.host_unregister ? forget(hip.host_unregister(ptr)) : HIP_NOT_SUPPORTED;
}

static int
rocm_stream_new(void **ret_stream)
{
	return forget(hip.stream_create(ret_stream, HIP_STREAM_NON_BLOCKING));
}

static int
rocm_stream_free(void *stream)
{
	return forget(hip.stream_destroy(stream));
}

static int
rocm_copy(void *dst, const void *src, size_t size, enum gantry_copy_to to, void *stream)
{
	return forget(hip.copy(dst, src, size, to == GANTRY_TO_DEVICE ? HIP_TO_DEVICE : HIP_TO_HOST, stream));
}

/* The default stream is 0 in every version; only late ones know it as 1 as well. */
static int
rocm_stream_wait(void *stream)
{
	stream = stream == (void *)1 ? NULL : stream;
	return hip.stream_synchronize ? forget(hip.stream_synchronize(stream)) : HIP_NOT_SUPPORTED;
}

static int
rocm_event_wait(void *event)
{
	return hip.event_synchronize ? forget(hip.event_synchronize(event)) : HIP_NOT_SUPPORTED;
}

static const char *
rocm_error_name(int error)
{
	return hip.error_name ? hip.error_name(error) : NULL;
}

const struct gpu_driver gpu_rocm = { .name = "ROCm",
				     .peer = "peer memory (amdgpu)",
				     .find = rocm_find,
				     .can_stage = rocm_can_stage,
				     .type = rocm_type,
				     .look = rocm_look,
				     .hold = rocm_hold,
				     .unhold = rocm_unhold,
				     .can_export = rocm_can_export,
				     .export = rocm_export,
				     .enter = rocm_enter,
				     .leave = rocm_leave,
				     .pin = rocm_pin,
				     .unpin = rocm_unpin,
				     .stream_new = rocm_stream_new,
				     .stream_free = rocm_stream_free,
				     .copy = rocm_copy,
				     .stream_wait = rocm_stream_wait,
				     .event_wait = rocm_event_wait,
				     .error_name = rocm_error_name };
