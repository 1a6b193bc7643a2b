/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead - records that were replaced or deleted, until their space and their memory may be used again.
 *
 * Threads: the leader, or the start. The pool grows by a block when it is empty, without a limit: a job of gc keeps its dead record
 * until it has removed the last chunk or part, and each of these removals takes a dead record. In a pool of fixed size all of
 * them could be those of jobs that wait for one.
 */
#ifndef GANTRY_EXTENT_LOG_DEAD_H
#define GANTRY_EXTENT_LOG_DEAD_H

#include "extent/index/pin.h"
#include "extent/log/gc.h"

struct commit;
struct quota_row;
struct rec;
struct vol;

struct dead {
	struct dead *next;
	struct pin_wait wait;
	struct vol *vol;
	struct rec *rec;
	uint64_t seq;    /* sequence number of the block whose record replaced or deleted this record */
	uint64_t pin_id; /* id that readers of the record pin */
	bool is_shared;  /* true: the record that replaced this one has the same extents */
	uint64_t epoch;  /* epoch (quiesce.h) after which no reader is between look-up and pin */
	/* row of the bucket in the quota ledger, during the publishing of the block, and while kept_bytes count in
	 * the row; NULL: none */
	struct quota_row *row;
	int64_t kept_bytes;
	/* number of events for which the record waits before its pins are checked: the end of the grace period,
	 * and, if kept_bytes count, the end of the last reader */
	_Atomic unsigned left;
	struct gc_job gc;
};

/* Takes a struct dead from the pool. Returns NULL if there is no memory. */
struct dead *dead_get(struct vol *vol);
void dead_put(struct vol *vol, struct dead *dead);
/* Allocates all memory for publishing a record, before anything is written. replaces: the index has a record of the key.
 * Returns 0 or -ENOSPC. */
int commit_set_aside(struct vol *vol, struct commit *c, bool replaces);
/* Frees the memory of a record that will not be published. */
void commit_put_back(struct vol *vol, struct commit *c);
/* Frees the space of a dead record, and its memory when no reader and no snapshot can see the record any longer. */
void dead_end(struct vol *vol, struct dead *dead);
/* Frees the pool. */
void dead_fini(struct vol *vol);

/* Counts a record that was added to the index (born) and a record that was removed from it (died); NULL:
 * none. */
void rec_count(struct vol *vol, const uint8_t *key, size_t key_len, const struct rec *born,
	       const struct rec *died);
/* Reserves space in the allocator for the snapshots of the index. */
void rec_hold_back(struct vol *vol);
/* Returns true if the index may grow by the commit c, whose records have `bytes` in all, so that the space
 * for the snapshots of the index is sufficient. */
bool rec_may_grow(struct vol *vol, const struct commit *c, size_t bytes);

#endif
