/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of fixed-size pieces of memory, made at start and never grown.
 *
 * Memory that was never used is only address space: a page is allocated when a piece of it is first taken,
 * and the piece that was returned last is taken first. A pool may therefore be as large as the largest
 * possible need. Owned by one thread; no locking.
 */
#ifndef GANTRY_BASE_POOL_H
#define GANTRY_BASE_POOL_H

#include <stddef.h>

struct pool_free;

struct pool {
	unsigned char *mem;
	size_t bytes; /* size of a piece in bytes */
	int nr;       /* number of pieces */
	int begun;    /* number of pieces that were ever taken: these are the first `begun` pieces of mem */
	int used;     /* number of pieces that are taken now */
	/* list of free pieces among those ever taken; the one returned last is first */
	struct pool_free *free;
};

/* Makes a pool of nr pieces.  Zeroed memory is an empty pool, too.  0 or -ENOMEM. */
int pool_init(struct pool *p, size_t bytes, int nr);
/* Frees the memory; every piece must have been returned. A pool that was never made is allowed. */
void pool_fini(struct pool *p);
/* Takes a piece, which has the contents of its previous use, or zeroes. Returns NULL if no piece is free. */
void *pool_get(struct pool *p);
/* Returns a piece to the pool. */
void pool_put(struct pool *p, void *piece);

#endif
