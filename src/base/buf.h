/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payload buffers: hugepage-backed, registered once with the ring (fixed buffers) and with every rail.
 *
 * A pool belongs to one core; get and put run only there. Memory is laid out in *regions* of at most 1 GiB
 * (the limit of one io_uring registration); a buffer knows its region, so the ring and the rails find their
 * registration by index. There are two classes, 64 KiB and 1 MiB, each followed by BUF_SLACK bytes (room for
 * a trailer read from or written to the disk).
 *
 * In a pool with *runs* four large buffers are adjacent, and while none of the four is in use they can be
 * taken as one buffer of 4 MiB. Single buffers are taken from broken runs as long as there are any, so that
 * as many runs as possible remain complete.
 */
#ifndef GANTRY_BASE_BUF_H
#define GANTRY_BASE_BUF_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define BUF_SMALL_BYTES (64u << 10)
#define BUF_LARGE_BYTES (1u << 20)
#define BUF_SLACK_BYTES (8u << 10)
#define BUF_REGIONS_MAX 16
#define BUF_RUN_NR 4 /* large buffers in a run */
#define BUF_RUN_BYTES (BUF_RUN_NR * BUF_LARGE_BYTES)

/* Size class of a buffer. BUF_RUN is not a separate class: a run is counted as its four large buffers. */
enum buf_class { BUF_SMALL, BUF_LARGE, BUF_CLASS_NR, BUF_RUN = BUF_CLASS_NR };

struct buf {
	/* memory of the buffer, 4 KiB aligned: cap_bytes of payload, and BUF_SLACK_BYTES after them */
	char *mem;
	uint32_t cap_bytes; /* capacity for payload in bytes, without the slack */
	uint16_t region;    /* index of the region of the pool that contains the buffer */
	uint8_t cls;        /* size class, an enum buf_class */
	bool in_use;
	struct buf *next; /* link in the free list */
};

/* A run: large buffers that are adjacent in memory. */
struct buf_run {
	struct buf whole;
	struct buf *free; /* free large buffers of this run */
	int free_nr;
	struct list link; /* link in `whole` or `broken`, while one of the buffers is free */
};

/* Kind of memory pages of a pool. THP: the kernel accepted madvise() for transparent huge pages. */
enum buf_backing { BUF_HUGETLB, BUF_THP, BUF_SMALL_PAGES };

struct bufpool {
	struct iovec region[BUF_REGIONS_MAX]; /* memory to register, in the order of the regions */
	int region_nr;
	enum buf_backing backing;
	struct buf *bufs;
	int buf_nr;
	struct buf *free[BUF_CLASS_NR];
	struct buf_run *runs;      /* runs, which contain all large buffers; NULL: a pool without runs */
	struct list whole, broken; /* whole: runs with four free buffers; broken: runs with one to three free
	                            * buffers */
	/* total: number of buffers; avail: number of free buffers; low: smallest value of avail since the
	 * start */
	int total[BUF_CLASS_NR], avail[BUF_CLASS_NR], low[BUF_CLASS_NR];
};

/* Allocates `bytes` bytes of memory and splits them into buffers: about 1/8 into small buffers, the rest into
 * large buffers, at least one of each. Returns 0 or -ENOMEM. */
int bufpool_init(struct bufpool *bp, size_t bytes);
/* Makes a pool like bufpool_init(), with at least one run. Returns 0 or -ENOMEM. */
int bufpool_init_runs(struct bufpool *bp, size_t bytes);
/* Makes a pool of buffers of one class, with at least one buffer. region_base: number of the first region of
 * this pool, greater than 0 if the regions of another pool are registered first. Returns 0 or -ENOMEM. */
int bufpool_init_class(struct bufpool *bp, enum buf_class cls, size_t bytes, int region_base);
/* Frees the memory of a pool. Every buffer was returned to the pool before. */
void bufpool_fini(struct bufpool *bp);

/* Takes a buffer. Returns NULL if no buffer is free; the caller then waits in a queue. Never blocks, never
 * allocates. */
struct buf *bufpool_get(struct bufpool *bp, enum buf_class cls);
/* Takes a run as one buffer. Returns NULL if no run is whole, or the pool has no runs. */
struct buf *bufpool_get_run(struct bufpool *bp);
/* Returns a buffer to its pool. b must not be NULL. */
void bufpool_put(struct bufpool *bp, struct buf *b);

/* Returns the smallest class whose buffers hold len bytes; BUF_LARGE if len exceeds 1 MiB. */
static inline enum buf_class
buf_class_for(size_t len_bytes)
{
	return len_bytes <= BUF_SMALL_BYTES ? BUF_SMALL : BUF_LARGE;
}

/* Returns the number of buffers of its pool that b consists of: BUF_RUN_NR for a run, otherwise 1. */
static inline int
buf_nr(const struct buf *b)
{
	return b->cls == BUF_RUN ? BUF_RUN_NR : 1;
}

#endif
