/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_buf - buffers that a back end makes for work of its own.
 */
#ifndef GANTRY_STORE_OWN_BUF_H
#define GANTRY_STORE_OWN_BUF_H

#include "base/buf.h"
#include "ring/ring.h"

#include <stdlib.h>

/*
 * Gives a buffer that is all zeros memory of its own, for cap_bytes, registered nowhere: those of a core are the requests'.  The caller
 * frees mem.  False: there is no memory.  One that has it already is left as it is.
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
