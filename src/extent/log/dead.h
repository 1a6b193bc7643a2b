/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead - records that were replaced or deleted, until their space and their memory may be used again.
 *
 * All functions are the leader's (or the start's); the pool grows by a block when it is empty.
 */
#ifndef GANTRY_EXTENT_LOG_DEAD_H
#define GANTRY_EXTENT_LOG_DEAD_H

#include "extent/index/pin.h"
#include "extent/log/gc.h"

struct commit;
struct rec;
struct vol;

struct dead {
	struct dead *next;
	struct pin_wait wait;
	struct vol *vol;
	struct rec *rec;
	uint64_t seq;    /* of the block that killed it */
	uint64_t pin_id; /* what its readers pin */
	bool is_shared;  /* what replaced it has its extents */
	uint64_t epoch;  /* quiesce.h: when this has passed, no reader is between looking up and pinning */
	struct gc_job gc;
};

/* Takes one from the pool.  NULL: no memory. */
struct dead *dead_get(struct vol *vol);
void dead_put(struct vol *vol, struct dead *dead);
/* Frees the pool. */
void dead_fini(struct vol *vol);

/* Counts a record that came into the index and one that left it (NULL: none). */
void rec_count(struct vol *vol, const uint8_t *key, size_t key_len, const struct rec *born,
	       const struct rec *died);
/* Gives a dead record's memory back once no reader and no snapshot can see it. */
void rec_retire(struct vol *vol, struct rec *r);
/* Tells the allocator what the snapshots of the index take. */
void rec_hold_back(struct vol *vol);
/* Tells whether the index may grow by a commit of that many bytes, its records' and those' that go with it, so
 * that there will be room for its snapshots. */
bool rec_may_grow(struct vol *vol, const struct commit *c, size_t bytes);

#endif
