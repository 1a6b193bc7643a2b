/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buckets - the record of a set about changes of buckets: the changes that engines out of service have missed,
 * and the number of removals. The record has a separate lock, and calls no other module under this lock. Any
 * thread may call these functions, unless stated otherwise.
 */
#ifndef GANTRY_SET_BUCKETS_H
#define GANTRY_SET_BUCKETS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct set;

struct set_buckets {
	pthread_mutex_t lock;  /* protects missed[], nr and cap */
	struct missed *missed; /* entries sorted by bucket name */
	size_t nr, cap;
	/* number of removals since the start, including removals that were only begun */
	_Atomic uint64_t removed;
	_Atomic uint64_t last_made_ns; /* creation time of the newest bucket, in ns since 1970 */
};

/* Reserves memory for one more entry in the list of missed changes. Called by the owner of the map change
 * lock. Returns 0 or -ENOMEM. */
int set_expect_missed(struct set *s);
/* Notes a change that the engines out of service have missed: the bucket was made (is_there) or removed (not
 * is_there). but: bitmap of engines that have not missed the change. */
void set_note_missed(struct set *s, const char *name, size_t len, bool is_there, uint64_t but);
/* Returns true if an engine may have missed a change of the bucket; the engine's records of the bucket then
 * do not count. *ret_is_there: true if the bucket was made, false if it was removed. */
bool set_has_missed(struct set *s, int engine, const char *name, size_t len, bool *ret_is_there);

/* Counts a removal of a bucket, which may be incomplete. */
void set_note_removed(struct set *s);
/* Returns the number of removals that set_note_removed() has counted since the start. */
uint64_t set_removed(const struct set *s);

/* Returns the creation time of a new bucket, in ns since 1970. A start distinguishes buckets of one name only
 * by this time (M32). The function returns each time only once in a process, because two buckets could
 * otherwise get the same time from a coarse clock, or on two cores. If the clock is set back, later results
 * are earlier, too. */
uint64_t change_birth_time(struct set *s);

#endif
