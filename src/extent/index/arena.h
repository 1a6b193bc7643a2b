/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena - the index's memory: one bounded range of addresses, cut into 64 KiB slabs of one size class each.
 *
 * An arena belongs to one tree and is used by the tree's writer only (see tree.h for who that is).  What lies
 * in it is named by a 32-bit reference (its distance from the base in 16-byte steps), which is what tree
 * nodes hold: 64 GiB at most.  Empty slabs change their class, so that memory follows what the index holds.
 * Pages are touched when first used.
 */
#ifndef GANTRY_EXTENT_INDEX_ARENA_H
#define GANTRY_EXTENT_INDEX_ARENA_H

#include <stddef.h>
#include <stdint.h>

#define ARENA_SLAB_BYTES (64u << 10)
#define ARENA_ALLOC_MAX 21760u /* three to a slab */
#define ARENA_CLASS_MAX 96

struct arena_slab;

struct arena {
	char *base;
	size_t map_bytes;
	uint32_t slab_bound;    /* how many slabs the bound allows */
	uint32_t slab_max;      /* how many may be used; a start may use more (arena_extend()) */
	uint32_t slab_touched;  /* slabs ever used; those behind are virgin */
	uint32_t slab_live;     /* slabs that hold something; more than slab_max when overdrawn */
	uint32_t slab_reserved; /* free ones kept for publishing: arena_alloc() does not take them */
	struct arena_slab *empty;
	struct arena_slab *partial[ARENA_CLASS_MAX];
	uint64_t bytes_used; /* blocks handed out, in class sizes */
};

/* Maps the range.  bytes: the bound, at least 4 MiB.  0, -EINVAL or -ENOMEM. */
int arena_init(struct arena *a, uint64_t bytes);
void arena_fini(struct arena *a);
/* Lets an eighth and a little more than the bound be used; or, when that is over, no more than the bound, or what is in use
 * and `spare` slabs. */
void arena_extend(struct arena *a);
void arena_end_extension(struct arena *a, uint32_t spare);

/* Returns a block, 16-byte aligned, not cleared; NULL when the bound is reached.  bytes <=
 * ARENA_ALLOC_MAX. */
void *arena_alloc(struct arena *a, size_t bytes);
/* Returns a block out of what is reserved, and beyond the bound if the reservation was too small: for
 * the tree itself. */
void *arena_alloc_reserved(struct arena *a, size_t bytes);
/* Frees a block at once: nobody may still read it. */
void arena_free(struct arena *a, void *p);
/* Returns what a block of `bytes` takes. */
size_t arena_class_bytes(size_t bytes);

static inline uint32_t
arena_slabs_free(const struct arena *a)
{
	return a->slab_live < a->slab_max ? a->slab_max - a->slab_live : 0;
}

static inline void *
arena_ptr(const struct arena *a, uint32_t ref)
{
	return a->base + (size_t)ref * 16;
}

static inline uint32_t
arena_ref(const struct arena *a, const void *p)
{
	return (uint32_t)((size_t)((const char *)p - a->base) / 16);
}

#endif
