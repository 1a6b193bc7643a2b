/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena - the index's memory: one bounded range of addresses, cut into 64 KiB slabs of one size class each.
 *
 * An arena belongs to one tree and is used only by the tree's writer (see tree.h). Tree nodes refer to a
 * block by a 32-bit number: its distance from the base in steps of 16 bytes. An arena therefore has at most
 * 64 GiB. Empty slabs can change their class, so the memory adapts to the contents of the index. A page takes
 * physical memory when it is first used.
 */
#ifndef GANTRY_EXTENT_INDEX_ARENA_H
#define GANTRY_EXTENT_INDEX_ARENA_H

#include "base/list.h"

#include <stddef.h>
#include <stdint.h>

#define ARENA_SLAB_BYTES (64u << 10)
#define ARENA_ALLOC_MAX 21760u /* largest size of a block, in bytes: three blocks fit into a slab */
#define ARENA_CLASS_MAX 96

struct arena {
	char *base;
	size_t map_bytes;
	uint32_t slab_bound; /* number of slabs within the memory limit */
	/* number of slabs that may be used; larger than slab_bound during a start (arena_extend()) */
	uint32_t slab_max;
	uint32_t slab_touched; /* number of slabs ever used; slabs with larger indices are untouched */
	uint32_t slab_live;    /* number of slabs that contain a block; may exceed slab_max */
	/* number of free slabs that are reserved for publishing, for reserved blocks alone */
	uint32_t slab_reserved;
	/* slabs without a block, and, for each class, slabs with a free block: lists of struct arena_slab */
	struct list empty, partial[ARENA_CLASS_MAX];
	uint64_t bytes_used; /* number of bytes of the blocks in use, rounded up to the class sizes */
};

/* Maps the arena's range of addresses. bytes: memory limit, at least 4 MiB. Returns 0, -EINVAL or -ENOMEM. */
int arena_init(struct arena *a, uint64_t bytes);
void arena_fini(struct arena *a);
/* Raises the limit by a little more than an eighth, for a start. */
void arena_extend(struct arena *a);
/* Lowers the limit to its normal value, but not below the number of slabs in use plus `spare`. */
void arena_end_extension(struct arena *a, uint32_t spare);

/* Returns a block of memory, 16-byte aligned, not cleared; NULL: the limit is reached. bytes <=
 * ARENA_ALLOC_MAX. reserved: the block is from the reserve; if the reserve is too small, the block is allocated beyond
 * the limit. Only for nodes of the tree. */
void *arena_alloc(struct arena *a, size_t bytes, bool reserved);
/* Frees a block immediately. No thread may still read it. */
void arena_free(struct arena *a, void *p);
/* Returns the size in bytes that a block of `bytes` occupies. */
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
