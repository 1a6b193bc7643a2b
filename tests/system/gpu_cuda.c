/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 that says of pointers what it is told: what gpu.sh gives to programs in the place of the driver. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* What makes a context here is a device that was retained and pushed by this thread. */
static _Thread_local void *current;
static int retained, exports;

static struct range {
	uintptr_t from, to;
	unsigned type, is_managed;
	int fd; /* of what is behind it, from its beginning on, or -1 */
} ranges[8];
static int nr;

void fake_memory(const void *ptr, size_t size, unsigned type, unsigned is_managed);
void fake_allocation(const void *ptr, size_t size, int fd);
void fake_context(int is_there);
int fake_exports(void);
int fake_retained(void);
int cuPointerGetAttributes(unsigned n, const int *attribute, void **data, unsigned long long ptr);
int cuMemGetHandleForAddressRange(void *handle, unsigned long long ptr, size_t size, int type,
				  unsigned long long flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(void *ctx);
int cuCtxPopCurrent_v2(void **ctx);

/* Makes memory known: type 1 of the host, 2 of the device. */
void
fake_memory(const void *ptr, size_t size, unsigned type, unsigned is_managed)
{
	ranges[nr++] = (struct range){ (uintptr_t)ptr, (uintptr_t)ptr + size, type, is_managed, -1 };
}

/* Makes memory of the device known that can be exported. */
void
fake_allocation(const void *ptr, size_t size, int fd)
{
	ranges[nr++] = (struct range){ (uintptr_t)ptr, (uintptr_t)ptr + size, 2, 0, fd };
}

void
fake_context(int is_there)
{
	current = is_there ? &nr : NULL;
}

int
fake_exports(void)
{
	return exports;
}

int
fake_retained(void)
{
	return retained;
}

static struct range *
range_of(unsigned long long ptr)
{
	static struct range none;

	for (int i = 0; i < nr; i++)
		if (ptr >= ranges[i].from && ptr < ranges[i].to)
			return &ranges[i];
	return &none;
}

/* Of a pointer that is not known it says 0, and that this is no error, as the driver does. */
int
cuPointerGetAttributes(unsigned n, const int *attribute, void **data, unsigned long long ptr)
{
	struct range *r = range_of(ptr);
	unsigned long long start = r->from;
	size_t size = r->to - r->from;
	int ordinal = 3;

	for (unsigned i = 0; i < n; i++) {
		if (attribute[i] == 2)
			memcpy(data[i], &r->type, sizeof r->type);
		else if (attribute[i] == 8)
			memcpy(data[i], &r->is_managed, sizeof r->is_managed);
		else if (attribute[i] == 9)
			memcpy(data[i], &ordinal, sizeof ordinal);
		else if (attribute[i] == 11)
			memcpy(data[i], &start, sizeof start);
		else if (attribute[i] == 12)
			memcpy(data[i], &size, sizeof size);
		else
			return 1;
	}
	return 0;
}

/* Only whole pages, from the beginning of an allocation to its end, and on a thread with a context, as the driver. */
int
cuMemGetHandleForAddressRange(void *handle, unsigned long long ptr, size_t size, int type,
			      unsigned long long flags)
{
	struct range *r = range_of(ptr);
	int fd;

	if (!current)
		return 201;
	if (r->type != 2 || r->fd < 0)
		return 801;
	if (type != 1 || flags || ptr % 4096 || size % 4096 || ptr != r->from || ptr + size != r->to)
		return 1;
	fd = dup(r->fd);
	memcpy(handle, &fd, sizeof fd);
	exports++;
	return 0;
}

int
cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal + 10;
	return ordinal == 3 ? 0 : 101;
}

int
cuDevicePrimaryCtxRetain(void **ctx, int device)
{
	*ctx = &ranges;
	retained++;
	return device == 13 ? 0 : 101;
}

int
cuDevicePrimaryCtxRelease_v2(int device)
{
	retained--;
	return device == 13 ? 0 : 101;
}

int
cuCtxPushCurrent_v2(void *ctx)
{
	current = ctx;
	return 0;
}

int
cuCtxPopCurrent_v2(void **ctx)
{
	*ctx = current;
	current = NULL;
	return 0;
}
