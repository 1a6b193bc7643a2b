/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow. Any thread, each with its own arrays. */
#ifndef GANTRY_RADOS_IO_ARRAY_H
#define GANTRY_RADOS_IO_ARRAY_H

#include <stddef.h>
#include <stdlib.h>

/* Returns an array with room for one more element, perhaps at another address. NULL: no memory; the array
 * is unchanged. */
static inline void *
room_for_one(void *array, size_t nr, size_t *cap, size_t element_bytes)
{
	size_t more = nr + nr / 2 + 4;
	void *new = nr < *cap ? array : reallocarray(array, more, element_bytes);

	if (new &&nr == *cap)
		*cap = more;
	return new;
}

#endif
