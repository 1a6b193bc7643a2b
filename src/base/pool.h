/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of pieces of memory of one size, made at start and never grown.
 *
 * What was not used yet is address space only: a page is there once a piece of it was given out, and the
 * piece that came back last is given out first.  So a pool may be as large as the most that could ever be
 * needed.  One thread's; no locking.
 */
#ifndef GANTRY_BASE_POOL_H
#define GANTRY_BASE_POOL_H

#include <stddef.h>

struct pool_free;

struct pool {
	unsigned char *mem;
	size_t bytes;           /* of a piece */
	int nr;                 /* pieces in all */
	int begun;              /* that were ever given out: the first `begun` of mem */
	int used;               /* that are out now */
	struct pool_free *free; /* of those begun; the latest first */
};

/* Makes a pool of nr pieces.  Zeroed memory is an empty pool, too.  0 or -ENOMEM. */
int pool_init(struct pool *p, size_t bytes, int nr);
/* Frees the memory; every piece must be back.  Fine on a pool that was never made. */
void pool_fini(struct pool *p);
/* Gives a piece out; its content is what was in it before, or zeroes.  NULL: none is left. */
void *pool_get(struct pool *p);
/* Takes a piece back. */
void pool_put(struct pool *p, void *piece);

#endif
