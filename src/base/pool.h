/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of memory blocks of one size, made at start and never grown. A block that was never taken costs no
 * physical memory: the kernel allocates a page when a block in this page is first used, and the block that
 * was returned last is taken first. A pool may therefore be as large as the largest possible need. Owned by
 * one thread; no locking. */
#ifndef GANTRY_BASE_POOL_H
#define GANTRY_BASE_POOL_H

#include <stddef.h>

struct pool_free;

struct pool {
	unsigned char *mem; /* begins at a page */
	size_t bytes;       /* size of a block in bytes */
	int nr;             /* number of blocks */
	int begun;          /* number of blocks that were ever taken: the first `begun` blocks of mem */
	int used;           /* number of blocks that are taken now */
	/* list of free blocks that were taken before; the block that was returned last is first */
	struct pool_free *free;
};

/* Makes a pool of nr blocks of `bytes` bytes. Blocks of a multiple of 4096 bytes are aligned to 4096. Zeroed memory is an empty pool, too. Returns 0 or -ENOMEM. */
int pool_init(struct pool *p, size_t bytes, int nr);
/* Frees the memory of a pool to which every block was returned. A pool that was never made is allowed. */
void pool_fini(struct pool *p);
/* Takes a block, which contains zeroes or data of its previous use. Returns NULL if no block is free. */
void *pool_get(struct pool *p);
/* Returns a block to its pool. */
void pool_put(struct pool *p, void *piece);
/* Returns the number of free blocks. */
static inline int
pool_avail(const struct pool *p)
{
	return p->nr - p->used;
}

#endif
