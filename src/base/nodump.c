/* SPDX-License-Identifier: Apache-2.0 */
/* See nodump.h. */
#include "base/nodump.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

void
nodump(const void *p, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)p & ~(page - 1), to = ((uintptr_t)p + len + page - 1) & ~(page - 1);

	if (len)
		madvise((void *)from, to - from, MADV_DONTDUMP);
}
