/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of pieces of memory, see pool.h. */
#include "base/pool.h"

#include "base/check.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

struct pool_free {
	struct pool_free *next;
};

static size_t
pool_bytes(const struct pool *p)
{
	/* mmap() refuses a length of 0. */
	return p->nr ? (size_t)p->nr * p->bytes : 1;
}

int
pool_init(struct pool *p, size_t bytes, int nr)
{
	size_t whole = (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);

	check(nr >= 0 && (nr == 0 || whole <= SIZE_MAX / (size_t)nr));
	*p = (struct pool){ .bytes = whole, .nr = nr };
	/* calloc() clears, and so touches, memory that was freed before; mmap() does not. */
	p->mem = mmap(NULL, pool_bytes(p), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->mem != MAP_FAILED)
		return 0;
	*p = (struct pool){ 0 };
	return -ENOMEM;
}

void
pool_fini(struct pool *p)
{
	check(p->used == 0);
	if (p->mem)
		munmap(p->mem, pool_bytes(p));
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
