/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buckets - the memory of a set about changes of buckets: which ones engines out of service have missed, how many removals there were, and how many
 * changes are in flight that take no turns.  Its lock is its own, and nothing is called with it.  Any thread, but for what says otherwise.
 */
#ifndef GANTRY_SET_BUCKETS_H
#define GANTRY_SET_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct set;
struct set_buckets;

/* Makes it, empty.  0 or -ENOMEM. */
int set_buckets_new(struct set_buckets **ret_buckets);
/* Frees it.  NULL is fine. */
void set_buckets_free(struct set_buckets *b);

/* Makes sure that there is memory for one more bucket that engines miss.  For the owner of the map change lock.  0 or -ENOMEM. */
int set_expect_missed(struct set *s);
/* Notes that a bucket was made (is_there) or removed, which engines out of service do not know, but for those of the bitmap `but`. */
void set_note_missed(struct set *s, const char *name, size_t len, bool is_there, uint64_t but);
/* Returns true if an engine may have missed a change of that bucket: its records of the bucket do not count then. */
bool set_has_missed(struct set *s, int engine, const char *name, size_t len, bool *ret_is_there);

/* Notes that a bucket was removed, or that its removal was begun; and counts such notes. */
void set_note_removed(struct set *s);
uint64_t set_buckets_removed(const struct set *s);

/* Notes that a change that takes no turn begins, or has ended; and counts those in flight. */
void set_begin_through(struct set *s);
void set_end_through(struct set *s);
int set_through_nr(const struct set *s);

/*
 * Returns the time of a bucket that is made now.  A start knows a bucket from another one of its name by nothing else (M32), and a coarse clock, or one
 * that is read on two cores at the same time, may give two buckets one time: so no two buckets of a life have the same.  A clock that was set back
 * stays back.
 */
uint64_t change_birth_time(struct set *s);

#endif
