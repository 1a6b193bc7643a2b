/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 that says of pointers what it is told: what gpu.sh gives to programs in the place of the driver. */
#include <stdint.h>
#include <string.h>

static struct range {
	uintptr_t from, to;
	unsigned type, is_managed;
} ranges[8];
static int nr;

void fake_memory(const void *ptr, size_t size, unsigned type, unsigned is_managed);
int cuPointerGetAttributes(unsigned n, const int *attribute, void **data, unsigned long long ptr);

/* Makes memory known: type 1 of the host, 2 of the device. */
void
fake_memory(const void *ptr, size_t size, unsigned type, unsigned is_managed)
{
	ranges[nr++] = (struct range){ (uintptr_t)ptr, (uintptr_t)ptr + size, type, is_managed };
}

/* Of a pointer that is not known it says 0, and that this is no error, as the driver does. */
int
cuPointerGetAttributes(unsigned n, const int *attribute, void **data, unsigned long long ptr)
{
	struct range none = { 0 }, *r = &none;

	for (int i = 0; i < nr; i++)
		if (ptr >= ranges[i].from && ptr < ranges[i].to)
			r = &ranges[i];
	for (unsigned i = 0; i < n; i++) {
		if (attribute[i] != 2 && attribute[i] != 8)
			return 1;
		memcpy(data[i], attribute[i] == 2 ? &r->type : &r->is_managed, sizeof(unsigned));
	}
	return 0;
}
