/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota - what the buckets of a store hold, and bounds on that: one for a bucket, one for all the buckets of a pattern.
 *
 * For back ends; callers know the store_..._quota...() of store.h.  A *book* has a row for each bucket.  Whatever has
 * a log of its own is a *counter* (an engine is one, a back end without engines has one): it counts what it has of a
 * bucket, and sums over the counters are held against the bounds.
 *
 *	quota_lock(); quota_judge(), quota_pend() for each change, in the order of the log; quota_unlock()
 *	...the changes are made durable, or not...
 *	quota_lock(); quota_unpend(); quota_count() for each that is published; quota_unlock()
 *
 * So a bound is never exceeded, neither by changes that are judged together nor by counters that judge at the same time;
 * where what a counter judged to be removed is not removed after all, it may be, by that much.
 *
 * Threads: any, with the lock; a counter is one thread at a time.  No function waits for anything but the lock.  A row
 * takes about 200 bytes beside the bucket's name, 80 more for each further counter, 8 for each pattern that it fits.
 */
#ifndef GANTRY_STORE_QUOTA_H
#define GANTRY_STORE_QUOTA_H

#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct quota_row;
struct quota_rule;

struct quota_book {
	_Atomic bool is_active; /* there is a bound at all */
	pthread_mutex_t lock;   /* of the rest */
	int counter_nr, rule_nr;
	struct quota_rule *rules;
	struct quota_row **slots;
	size_t slot_nr, row_nr, bound_nr; /* bound_nr: rows with a bound of their own */
	struct quota_counter {
		struct quota_row *last; /* that was found: most changes follow one of the same bucket */
		struct quota_row
			*pending; /* rows with changes that are not published, or with none of a bucket */
	} counter[STORE_DISKS_MAX];
};

/* What a change adds to a bucket; negative: takes away. */
struct quota_change {
	int64_t objects, bytes, uploads;
};

/* Makes a book without rows.  0 or -ENOMEM. */
int quota_book_new(int counter_nr, struct quota_book **ret_book);
/* Makes room for more counters; any thread, while others count.  0 or -ENOMEM, and then nothing has changed. */
int quota_book_grow(struct quota_book *book, int counter_nr);
/* Frees a book; NULL is allowed. */
void quota_book_free(struct quota_book *book);

/* Returns true if there is any bound: without the lock, one load. */
static inline bool
quota_is_active(const struct quota_book *book)
{
	return atomic_load_explicit(&book->is_active, memory_order_relaxed);
}

static inline void
quota_lock(struct quota_book *book)
{
	pthread_mutex_lock(&book->lock);
}
static inline void
quota_unlock(struct quota_book *book)
{
	pthread_mutex_unlock(&book->lock);
}

/* ---- under the lock ---- */

/* Finds the row of a bucket.  NULL: no counter has it. */
struct quota_row *quota_find(struct quota_book *book, int counter, const void *name, size_t len);
/* Makes sure that a bucket which is about to be made has a row.  It goes with quota_unpend() unless the bucket is born
 * by then.  0 or -ENOMEM. */
int quota_make(struct quota_book *book, int counter, const void *name, size_t len);
/* Makes sure that a bucket which is there, as that version, has a row.  NULL: no memory. */
struct quota_row *quota_enter(struct quota_book *book, int counter, const void *name, size_t len,
			      uint64_t version);
/* Notes that the bucket is there, as that version; it has a row. */
void quota_born(struct quota_book *book, int counter, struct quota_row *row, uint64_t version);
/* Notes that the bucket is gone from this counter, with all that was in it; with the first counter its bound goes. */
void quota_gone(struct quota_book *book, int counter, struct quota_row *row);
/* Returns the version that was born; 0: the bucket is not there. */
uint64_t quota_version(const struct quota_row *row, int counter);
/* Returns true if any bound concerns a bucket of that name that has a row, or would have one. */
bool quota_concerns(struct quota_book *book, const void *name, size_t len);
/* Bounds the bucket; all members STORE_UNBOUNDED: not at all. */
void quota_bound(struct quota_book *book, struct quota_row *row, const struct store_use *max);

/* Says to a counter whether a bucket may grow so: 0 or -EDQUOT, which is counted.  What does not grow is never refused.
 * pending: what is not published counts, too. */
int quota_judge(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c,
		bool pending);
/* Adds what will be published, or dropped. */
void quota_pend(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c);
/* Takes back all that quota_pend() added. */
void quota_unpend(struct quota_book *book, int counter);
/* Adds what a change is to bring, for a counter whose changes end one by one; or (negative) takes it back.  What is held
 * of a bucket that goes is taken back with it. */
void quota_hold(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c);
/* Adds what was published. */
void quota_count(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c);

/* ---- with a lock of their own ---- */

/* Judges before anything is moved, by what is published: -EDQUOT; or 0, which the commit may not confirm, also where the
 * lock is not free. */
int quota_judge_early(struct quota_book *book, const void *name, size_t len, const struct quota_change *c);
/* Copies what a bucket holds, and its bound.  0 or -ENXIO. */
int quota_look(struct quota_book *book, const void *name, size_t len, struct store_quota_info *ret_info);
/* Sets what a look at a bucket says of quotas. */
void quota_fill_stat(struct quota_book *book, const void *name, size_t len, struct store_stat *st);
/* Does what store_set_quotas() promises, and store_list_quotas(). */
int quota_set_rules(struct quota_book *book, const struct store_pattern_quota *quota, int nr);
int quota_list(struct quota_book *book, struct store_quota_info **ret_list);

#endif
