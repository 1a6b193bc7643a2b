/* SPDX-License-Identifier: Apache-2.0 */
/* See hook_alloc.h. */
#include "hook_alloc.h"

#define alloc_take alloc_take_unhooked
#include "src/extent/disk/alloc.c"
#undef alloc_take

void (*hook_alloc_full)(void);

int alloc_take(struct alloc *a, struct alloc_run *run, uint32_t units, struct extent *ret_x);

int
alloc_take(struct alloc *a, struct alloc_run *run, uint32_t units, struct extent *ret_x)
{
	int r = alloc_take_unhooked(a, run, units, ret_x);
	void (*full)(void) = hook_alloc_full;

	if (r < 0 && full) {
		hook_alloc_full = NULL;
		full();
	}
	return r;
}
