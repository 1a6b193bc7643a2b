/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_buf - buffers that a back end allocates for internal work.
 */
#ifndef GANTRY_STORE_OWN_BUF_H
#define GANTRY_STORE_OWN_BUF_H

#include "base/buf.h"
#include "ring/ring.h"

#include <stdlib.h>

/*
 * Allocates cap_bytes of unregistered memory for a zeroed struct buf, because the buffers of a core are
 * reserved for requests. A buffer that already has memory is left unchanged. The caller frees mem. Returns
 * false if there is no memory.
 */
static inline bool
store_buf_make(struct buf *b, uint32_t cap_bytes)
{
	void *mem;

	if (b->mem)
		return true;
	if (posix_memalign(&mem, 4096, (size_t)cap_bytes + 2 * BUF_SLACK_BYTES) != 0)
		return false;
	*b = (struct buf){ .mem = mem, .cap_bytes = cap_bytes, .region = RING_NO_REGION };
	return true;
}

#endif
