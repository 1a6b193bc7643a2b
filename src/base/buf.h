/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payload buffers: hugepage-backed, registered once with the ring (fixed buffers) and with every rail.
 *
 * A pool belongs to one core; get and put only there.  Memory is laid out in *regions* of at most 1 GiB (the
 * limit of one io_uring registration); a buffer knows its region, so the ring and the rails find their
 * registration by index. Two classes: 64 KiB and 1 MiB, each followed by BUF_SLACK bytes (a trailer on its
 * way to or from the disk).
 */
#ifndef GANTRY_BASE_BUF_H
#define GANTRY_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define BUF_SMALL_BYTES (64u << 10)
#define BUF_LARGE_BYTES (1u << 20)
#define BUF_SLACK_BYTES (8u << 10)
#define BUF_REGIONS_MAX 16

enum buf_class { BUF_SMALL, BUF_LARGE, BUF_CLASS_NR };

struct buf {
	char *mem;          /* 4 KiB aligned; cap_bytes + BUF_SLACK_BYTES are ours */
	uint32_t cap_bytes; /* payload capacity, without the slack */
	uint16_t region;    /* index of the pool's region */
	uint8_t cls;        /* enum buf_class */
	bool in_use;
	struct buf *next; /* free list */
};

enum buf_backing { BUF_HUGETLB, BUF_THP, BUF_SMALL_PAGES }; /* THP: madvise was accepted */

struct bufpool {
	struct iovec region[BUF_REGIONS_MAX]; /* what to register, in order */
	int region_nr;
	enum buf_backing backing;
	struct buf *bufs;
	int buf_nr;
	struct buf *free[BUF_CLASS_NR];
	int total[BUF_CLASS_NR], avail[BUF_CLASS_NR], low[BUF_CLASS_NR]; /* low: least ever available */
};

/* Splits bytes into buffers: about 1/8 of it small ones, the rest large ones, at least one of each.  0 or
 * -ENOMEM. */
int bufpool_init(struct bufpool *bp, size_t bytes);
/* Makes buffers of one class, at least one.  Its buffers' regions are numbered from region_base on: their
 * memory is registered behind another pool's. */
int bufpool_init_class(struct bufpool *bp, enum buf_class cls, size_t bytes, int region_base);
/* Frees the memory; every buffer must be back. */
void bufpool_fini(struct bufpool *bp);

/* Takes a buffer.  NULL: none is left, the caller queues.  Never blocks, never allocates. */
struct buf *bufpool_get(struct bufpool *bp, enum buf_class cls);
/* Gives a buffer back.  NULL is not. */
void bufpool_put(struct bufpool *bp, struct buf *b);

/* Returns the smallest class that holds len bytes (len > 1 MiB: BUF_LARGE). */
static inline enum buf_class
buf_class_for(size_t len_bytes)
{
	return len_bytes <= BUF_SMALL_BYTES ? BUF_SMALL : BUF_LARGE;
}

#endif
