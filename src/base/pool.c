/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of pieces of memory, see pool.h. */
#include "base/pool.h"

#include "base/check.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define PAGE_BYTES 4096u

struct pool_free {
	struct pool_free *next;
};

int
pool_init(struct pool *p, size_t bytes, int nr)
{
	size_t whole = (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);

	size_t align = whole % PAGE_BYTES == 0 ? PAGE_BYTES : _Alignof(max_align_t);

	/* Zeroed by the kernel when a page is first used, not here. */
	*p = (struct pool){ .room = calloc(1, (size_t)nr * whole + align), .bytes = whole, .nr = nr };
	p->mem = (unsigned char *)(((uintptr_t)p->room + align - 1) & ~(uintptr_t)(align - 1));
	return p->room ? 0 : -ENOMEM;
}

void
pool_fini(struct pool *p)
{
	check(p->used == 0);
	free(p->room);
	*p = (struct pool){ 0 };
}

void *
pool_get(struct pool *p)
{
	struct pool_free *f = p->free;

	if (!f && p->begun == p->nr)
		return NULL;
	p->used++;
	if (!f)
		return p->mem + (size_t)p->begun++ * p->bytes;
	p->free = f->next;
	return f;
}

void
pool_put(struct pool *p, void *piece)
{
	struct pool_free *f = piece;

	check(p->used > 0);
	p->used--;
	f->next = p->free;
	p->free = f;
}
