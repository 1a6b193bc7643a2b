/* SPDX-License-Identifier: Apache-2.0 */
/* fsck - compares the index with the data objects that are there.  Blocking; any thread. */
#ifndef GANTRY_RADOS_USE_FSCK_H
#define GANTRY_RADOS_USE_FSCK_H

#include "rados/io/rados_int.h"

/* Says through say(), a line a call, what is wrong; repair: removes what nothing names.  As store_fsck(). */
int fsck_store(rados_ioctx_t meta, rados_ioctx_t data, uint32_t object_bytes, bool repair,
	       void (*say)(void *cookie, const char *line), void *cookie);

#endif
