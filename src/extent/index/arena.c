/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs; see arena.h.  A slab begins with its header; blocks follow.  Blocks that were never used are taken
 * from `fresh`, freed ones from the slab's list, so that opening a slab costs nothing per block and touches
 * no page before it is needed.
 *
 * Under AddressSanitizer free blocks are poisoned: a reader that holds a node for too long is told.
 */
#include "extent/index/arena.h"

#include "base/check.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define HEADER_BYTES 64u
#ifndef ARENA_BYTES_MIN
#define ARENA_BYTES_MIN ((uint64_t)4 << 20)
#endif
#define ARENA_BYTES_MAX ((uint64_t)60 << 30)
#define CLASSES_BEGUN 8u /* slabs that a tree made again has begun beyond those of the one it is made of */
#define ARENA_BYTES_MOST ((uint64_t)62 << 30) /* with the overdraft below 2^32 references */

struct free_block {
	struct free_block *next;
};

struct arena_slab {
	struct list link; /* in partial[cls], or in empty */
	struct free_block *free;
	uint32_t block_bytes;
	uint16_t cls;
	uint16_t total, used, fresh; /* blocks: in all, handed out, from here on never used */
};
_Static_assert(sizeof(struct arena_slab) <= HEADER_BYTES, "the header has its place");

/* Steps of 16 up to 256, then eight classes for each doubling: at most 1/8 is wasted. */
static unsigned
class_of(size_t bytes, uint32_t *ret_block_bytes)
{
	unsigned shift, step;

	if (bytes <= 256) {
		unsigned n = bytes ? (unsigned)(bytes + 15) / 16 : 1;

		*ret_block_bytes = n * 16;
		return n - 1;
	}
	shift = 63 - (unsigned)__builtin_clzll(bytes - 1); /* 2^shift < bytes <= 2^(shift + 1) */
	step = (unsigned)((bytes - 1 - ((size_t)1 << shift)) >> (shift - 3));
	*ret_block_bytes = (1u << shift) + (step + 1) * (1u << (shift - 3));
	if (*ret_block_bytes > ARENA_ALLOC_MAX)
		*ret_block_bytes = ARENA_ALLOC_MAX;
	return 16 + (shift - 8) * 8 + step;
}

/*
 * Beyond the bound there is a little overdraft, for blocks from the reserve alone: a reservation is an
 * estimate, and a change that is on the disk already must get into the index.
 */
static uint32_t
overdraft(uint32_t slabs)
{
	return 64 + slabs / 64;
}

/* More than a tree that grew in order takes when it is made again, with leaves of all sizes. */
static uint32_t
extension(uint32_t slabs)
{
	uint32_t most = (uint32_t)(ARENA_BYTES_MOST / ARENA_SLAB_BYTES), more = slabs / 8 + CLASSES_BEGUN;

	return slabs + more > most ? most - slabs : more;
}

int
arena_init(struct arena *a, uint64_t bytes)
{
	uint32_t slabs = (uint32_t)(bytes / ARENA_SLAB_BYTES), most;
	char *p, *end, *aligned;
	size_t len;

	if (bytes < ARENA_BYTES_MIN)
		return -EINVAL;
	if (bytes > ARENA_BYTES_MAX)
		slabs = (uint32_t)(ARENA_BYTES_MAX / ARENA_SLAB_BYTES);
	most = slabs + extension(slabs);
	len = (size_t)(most + overdraft(most)) * ARENA_SLAB_BYTES;
	p = mmap(NULL, len + ARENA_SLAB_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	aligned = (char *)(((uintptr_t)p + ARENA_SLAB_BYTES - 1) & ~(uintptr_t)(ARENA_SLAB_BYTES - 1));
	end = p + len + ARENA_SLAB_BYTES;
	if (aligned > p)
		munmap(p, (size_t)(aligned - p));
	if (end > aligned + len)
		munmap(aligned + len, (size_t)(end - aligned - len));
	/* Lookups miss the TLB at every level otherwise.  Refused: slower and right. */
	madvise(aligned, len, MADV_HUGEPAGE);
	memset(a, 0, sizeof *a);
	list_init(&a->empty);
	for (unsigned i = 0; i < ARENA_CLASS_MAX; i++)
		list_init(&a->partial[i]);
	a->base = aligned;
	a->map_bytes = len;
	a->slab_max = a->slab_bound = slabs;
	return 0;
}

void
arena_fini(struct arena *a)
{
	if (!a->base)
		return;
	UNPOISON(a->base, a->map_bytes);
	munmap(a->base, a->map_bytes);
	memset(a, 0, sizeof *a);
}

void
arena_extend(struct arena *a)
{
	a->slab_max = a->slab_bound + extension(a->slab_bound);
}

void
arena_end_extension(struct arena *a, uint32_t spare)
{
	uint32_t most = a->slab_bound + extension(a->slab_bound);
	uint32_t want = a->slab_live + spare < most ? a->slab_live + spare : most;

	a->slab_max = want > a->slab_bound ? want : a->slab_bound;
}

/* An empty slab becomes one of class cls; NULL when there is none for this caller. */
static struct arena_slab *
open_slab(struct arena *a, unsigned cls, uint32_t block_bytes, bool reserved)
{
	struct arena_slab *s;
	struct list *l;

	if (!reserved && arena_slabs_free(a) <= a->slab_reserved)
		return NULL;
	l = list_pop(&a->empty);
	if (l) {
		s = container_of(l, struct arena_slab, link);
	} else {
		if (a->slab_touched >= a->slab_max + overdraft(a->slab_max))
			return NULL;
		s = (struct arena_slab *)(a->base + (size_t)a->slab_touched++ * ARENA_SLAB_BYTES);
	}
	a->slab_live++;
	if (reserved && a->slab_reserved)
		a->slab_reserved--;
	*s = (struct arena_slab){ .cls = (uint16_t)cls,
				  .block_bytes = block_bytes,
				  .total = (uint16_t)((ARENA_SLAB_BYTES - HEADER_BYTES) / block_bytes) };
	POISON((char *)s + HEADER_BYTES, ARENA_SLAB_BYTES - HEADER_BYTES);
	list_push_head(&a->partial[cls], &s->link);
	return s;
}

void *
arena_alloc(struct arena *a, size_t bytes, bool reserved)
{
	uint32_t block_bytes;
	unsigned cls;
	struct arena_slab *s;
	struct list *l;
	void *p;

	check(bytes <= ARENA_ALLOC_MAX);
	cls = class_of(bytes, &block_bytes);
	l = list_first(&a->partial[cls]);
	s = l ? container_of(l, struct arena_slab, link) : open_slab(a, cls, block_bytes, reserved);
	if (!s)
		return NULL;
	if (s->free) {
		p = s->free;
		UNPOISON(p, block_bytes);
		s->free = s->free->next;
	} else {
		p = (char *)s + HEADER_BYTES + (size_t)s->fresh++ * block_bytes;
		UNPOISON(p, block_bytes);
	}
	a->bytes_used += block_bytes;
	if (++s->used == s->total)
		list_del(&s->link);
	return p;
}

static struct arena_slab *
slab_of(const void *p)
{
	return (struct arena_slab *)((uintptr_t)p & ~(uintptr_t)(ARENA_SLAB_BYTES - 1));
}

void
arena_free(struct arena *a, void *p)
{
	struct arena_slab *s = slab_of(p);
	struct free_block *b = p;

	check(s->used > 0);
	a->bytes_used -= s->block_bytes;
	if (s->used == s->total)
		list_push_head(&a->partial[s->cls], &s->link);
	b->next = s->free;
	s->free = b;
	POISON(p, s->block_bytes);
	if (--s->used > 0)
		return;
	list_del(&s->link);
	list_push_head(&a->empty, &s->link);
	a->slab_live--;
}

size_t
arena_class_bytes(size_t bytes)
{
	uint32_t block_bytes;

	class_of(bytes, &block_bytes);
	return block_bytes;
}
