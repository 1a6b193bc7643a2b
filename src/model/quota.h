/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota - the usage of the buckets of a store, and limits of the usage: for one bucket, or for each bucket of
 * a pattern.
 *
 * For back ends; callers know the store_..._quota...() of store.h. The quota ledger (struct quota_book) has a
 * row for each bucket. Each engine has a *counter* in every row: the usage of the bucket in this engine. A
 * back end without engines has one counter. The sum over all counters is compared with the limits.
 *
 * 	quota_lock(); quota_judge(), quota_pend() for each change, in the order of the log; quota_unlock()
 * 	...the changes are made durable, or not...
 * 	quota_lock(); quota_unpend(); quota_count() for each that is published; quota_unlock()
 *
 * With this order of calls a limit is not exceeded, neither by changes that are checked together nor by
 * engines that check changes at the same time. There are exceptions. If a removal that was checked is not
 * made, the usage can exceed the limit by the size of the removal. The removal of a bucket is different: the
 * usage of the bucket counts until the removal is published, so a change that is checked together with the
 * removal may be refused although the removal makes room for it. When a store gets its first limit, three
 * kinds of bytes are not counted: those of changes that are already in a block of a log (the usage can exceed
 * the limit by the size of these changes), and, until they end, those of PUTs in progress and of removed
 * objects that are being read. On RADOS the changes that other gateways made in the last ten seconds are not
 * known, so the usage can exceed the limit by their size, and removed objects that are being read count
 * nowhere.
 *
 * The bytes in progress are bytes that take space and are not in the usage: all bytes of each PUT until the
 * change of the PUT is published or the PUT has ended, and the bytes of each copy of a removed or overwritten
 * object or part until the last reader of the copy has ended (at least QUOTA_PART_BYTES if the bytes are not
 * in the record). A PUT begins only if the bytes in progress, with its own bytes, do not exceed the limit. A
 * published change only moves bytes between the usage and the bytes in progress. Both together therefore
 * never exceed twice the limit, apart from what QUOTA_PART_BYTES adds to smaller objects. A row remains, and
 * counts as a bucket, after its bucket was removed, while it has bytes in progress.
 *
 * The bytes of an object or a part count once for each copy of its key, and the object, the upload and the
 * documents of a bucket count once. A key has as many copies as its bucket had when the key was written; the
 * number of copies of a bucket changes only while the bucket is empty. The counter of the primary counts both
 * copies, also while the secondary has no copy yet, has failed, or is copied again; foreign records count for
 * no bucket. Neither a resynchronisation nor a move therefore changes the usage.
 *
 * Any thread may call these functions with the lock held; one thread at a time uses the counter of an engine.
 * The functions wait only for the lock. A row takes about 200 bytes in addition to the bucket's name, 120 for
 * each counter, and 4 for each pattern that matches the name.
 */
#ifndef GANTRY_MODEL_QUOTA_H
#define GANTRY_MODEL_QUOTA_H

#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct quota_row;
struct quota_rule;

struct quota_book {
	_Atomic bool is_active; /* true: a bucket or a pattern has a limit */
	pthread_mutex_t lock;   /* protects all other fields */
	int counter_nr, rule_nr;
	struct quota_rule *rules;
	struct quota_row **slots;
	size_t slot_nr, row_nr, bound_nr; /* bound_nr: number of quota_rows that have a limit */
	struct quota_counter {
		/* row of the bucket that was looked up last, because consecutive changes often concern one
		 * bucket */
		struct quota_row *last;
		/* list of the rows that have unpublished changes, or whose bucket does not exist yet in the
		 * counter's engine */
		struct quota_row *pending;
	} counter[STORE_DISKS_MAX];
};

/* A change of a bucket's usage in objects, in bytes of all copies, and in uploads. Negative numbers: the
 * usage decreases. */
struct quota_change {
	int64_t objects, bytes, uploads;
};

/* The reservation of a PUT in progress. The PUT owns the reservation, and zeroes it before the first use.
 * Changed under the lock. */
struct quota_hold {
	bool has_two;             /* true: the key has two copies; set by the PUT */
	struct quota_row *row;    /* row of the bucket, which stays; NULL: there is no reservation */
	struct quota_change more; /* growth of the usage that the commit of the PUT will cause, as far as it
	                           * is known */
	/* number of bytes of all copies of the PUT; bytes that replace those of an existing object count,
	 * too */
	int64_t whole_bytes;
};

/* A planned creation of a bucket, or a planned growth of a bucket's documents (attributes), for a back end
 * that publishes each change by itself. The caller owns the plan; changed under the lock. */
struct quota_plan {
	bool is_made;
	int64_t doc_bytes; /* planned growth of the bucket's documents, in bytes */
};

/* Smallest number of bytes for which a part is counted: the allocation unit of a disk, because a smaller part
 * takes a whole unit. */
#define QUOTA_PART_BYTES (16u << 10)

/* Returns the number of bytes for which a part of size_bytes bytes is counted. */
static inline uint64_t
quota_part_bytes(uint64_t size_bytes)
{
	return size_bytes > QUOTA_PART_BYTES ? size_bytes : QUOTA_PART_BYTES;
}

/* Returns the number of bytes for which a removed object or part is counted while it is read; is_inline: its bytes are in
 * the record. */
static inline int64_t
quota_kept_bytes(uint64_t size_bytes, bool is_inline)
{
	return (int64_t)(is_inline ? size_bytes : quota_part_bytes(size_bytes));
}

static inline void
quota_add(struct quota_change *to, const struct quota_change *c)
{
	to->objects += c->objects;
	to->bytes += c->bytes;
	to->uploads += c->uploads;
}

static inline struct quota_change
quota_negative(const struct quota_change *c)
{
	return (struct quota_change){ -c->objects, -c->bytes, -c->uploads };
}

/* Returns true if limits limit anything. */
static inline bool
quota_is_bound(const struct store_use *max)
{
	return max->objects != STORE_UNBOUNDED || max->bytes != STORE_UNBOUNDED ||
	       max->uploads != STORE_UNBOUNDED;
}

/* Returns true if a change alters the usage. */
static inline bool
quota_is_any(const struct quota_change *c)
{
	return c->objects || c->bytes || c->uploads;
}

/* Returns the change of usage for all copies of a key. c: the change for one copy. */
static inline struct quota_change
quota_of_copies(struct quota_change c, bool has_two)
{
	c.bytes *= 1 + has_two;
	return c;
}

/* Makes a quota ledger without rows, for counter_nr counters. Returns 0 or -ENOMEM. */
int quota_book_new(int counter_nr, struct quota_book **ret_book);
/* Makes room for more counters, on any thread, while other threads count. Returns 0, or -ENOMEM without a
 * change. */
int quota_book_grow(struct quota_book *book, int counter_nr);
/* Frees a ledger. NULL is allowed. */
void quota_book_free(struct quota_book *book);

/* Returns true if a limit exists. Needs no lock, and costs one load. */
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

/* Finds the row of a bucket. Returns NULL if the bucket has no row. */
struct quota_row *quota_find(struct quota_book *book, int counter, const void *name, size_t len);
/* Makes a row for a bucket that will be made. If quota_born() is not called, the next quota_unpend() removes
 * the row. Returns 0 or -ENOMEM. */
int quota_make(struct quota_book *book, int counter, const void *name, size_t len);
/* Checks the limits of all patterns that match the name of a bucket to be made. doc_bytes: size of the
 * bucket's documents in bytes. The bucket counts as an object of each pattern. A bucket that an engine has
 * already is never refused. Returns 0; or -EDQUOT or -EMLINK, each of which is counted as a refusal. */
int quota_judge_bucket(struct quota_book *book, const void *name, size_t len, uint64_t doc_bytes);
/* Returns the row of an existing bucket with this version. Makes the row if the bucket has no row. Returns
 * NULL if there is no memory. */
struct quota_row *quota_enter(struct quota_book *book, int counter, const void *name, size_t len,
			      uint64_t version);
/* Notes that the bucket of a row exists with this version. */
void quota_born(struct quota_book *book, int counter, struct quota_row *row, uint64_t version);
/* Notes that a bucket was removed from the counter's engine with all its usage. The removal from the first
 * engine also removes the limit of the bucket. */
void quota_gone(struct quota_book *book, int counter, struct quota_row *row);
/* Returns the usage of all buckets, in the bytes of all copies. */
void quota_total(struct quota_book *book, struct store_use *ret_use);
/* Returns the version that was passed to quota_born(); 0: the bucket does not exist. */
uint64_t quota_version(const struct quota_row *row, int counter);
/* Checks the limits of a bucket's patterns for documents that will have doc_bytes bytes in the counter's
 * engine. Every engine has all documents of a bucket, but a document counts only once. Returns 0, and in
 * *ret_more the growth of the documents in bytes; or -EDQUOT, which is counted as a refusal. */
int quota_judge_docs(struct quota_book *book, int counter, struct quota_row *row, int64_t doc_bytes,
		     int64_t *ret_more);
/* Adds `more` bytes to the documents of a bucket in the counter's engine; a negative number subtracts
 * bytes. */
void quota_count_docs(struct quota_book *book, int counter, struct quota_row *row, int64_t more);
/* Returns the bytes of a bucket's documents in the counter's engine. */
int64_t quota_docs(const struct quota_row *row, int counter);
/* Checks the limits for documents that will have doc_bytes bytes, of a bucket that exists or (makes) will be made, and
 * counts their growth, and the new bucket, as planned until quota_plan_end(). There is no plan, and no refusal, for a
 * new bucket that exists already, and for documents of a bucket that does not. Takes the lock. Returns 0; -EDQUOT or
 * -EMLINK, each of which is counted as a refusal; or -ENOMEM. */
int quota_plan(struct quota_book *book, int counter, const void *name, size_t len, bool makes,
	       int64_t doc_bytes, struct quota_plan *ret_plan);
/* Ends a plan, after the planned change was counted or has failed; does nothing without a plan. Takes the lock. */
void quota_plan_end(struct quota_book *book, int counter, const void *name, size_t len, struct quota_plan *p);
/* Sets the limits of the bucket. If all members are STORE_UNBOUNDED, removes the limits. */
void quota_bound(struct quota_book *book, struct quota_row *row, const struct store_use *max);

/* Checks the limits of a bucket for a change in the counter's engine. Returns 0, or -EDQUOT, which is counted
 * as a refusal. A change without growth is never refused. pending: true: the usage of this check includes
 * unpublished changes. */
int quota_judge(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c,
		bool pending);
/* Adds a change that will later be published or dropped. */
void quota_pend(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c);
/* Adds `more` bytes by which a bucket's documents will grow when a change is published. If the change fails,
 * quota_unpend() removes the bytes. Documents count for the limits of patterns, not for the limit of the
 * bucket itself. Every disk has the documents of a bucket, and the counter of every disk publishes the
 * change, but the bytes are counted only once. */
void quota_pend_docs(struct quota_book *book, int counter, struct quota_row *row, int64_t more);
/* Removes all changes that quota_pend() and quota_pend_docs() added for this counter. */
void quota_unpend(struct quota_book *book, int counter);
/* Adds a planned change, for a back end that publishes each change by itself. Negative numbers remove a
 * planned change. The removal of a bucket removes its planned changes. */
void quota_hold(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c);
/* Adds a published change to the usage. */
void quota_count(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c);
/* Moves the usage of keys that another engine has now from one counter of their bucket to another, if the bucket
 * has a row. use: the usage for one copy of each key. */
void quota_move(struct quota_book *book, int from, int to, const void *name, size_t len,
		const struct store_use *use, bool has_two);

/* Ends the growth of a reservation, when the change of the PUT is added by quota_pend(). All bytes of the PUT
 * stay in progress. */
void quota_settle(struct quota_book *book, int counter, struct quota_hold *hold);
/* Ends a reservation when the change of the PUT is published. */
void quota_release(struct quota_book *book, int counter, struct quota_hold *hold);
/* Adds the bytes of a removed object or part that is being read to the bytes in progress. The row stays until
 * quota_keep_end(). */
void quota_keep(struct quota_book *book, int counter, struct quota_row *row, int64_t bytes);
/* Ends quota_keep(), with the same arguments. */
void quota_keep_end(struct quota_book *book, int counter, struct quota_row *row, int64_t bytes);

/* ---- functions that take the lock ---- */

/* Makes or changes the reservation of a PUT before its bytes are received. c: growth of the usage by one
 * copy; whole_bytes: number of bytes of one copy. Returns 0, also if no limit applies to the bucket; -ENXIO
 * if a limit exists and the counter's engine does not have the bucket; or -EDQUOT, without a change, in two
 * cases: the sum of the usage, all reservations and this growth exceeds the limit; or the sum of all bytes of
 * this PUT and of the other bytes in progress exceeds the limit. */
int quota_reserve(struct quota_book *book, int counter, const void *name, size_t len,
		  const struct quota_change *c, uint64_t whole_bytes, struct quota_hold *hold);
/* Ends the reservation of a PUT that has ended; does nothing without a reservation. */
void quota_end(struct quota_book *book, int counter, struct quota_hold *hold);
/* Returns true if a limit applies to a bucket of this name, also if the bucket has no struct quota_row yet. */
bool quota_concerns(struct quota_book *book, const void *name, size_t len);
/* Copies the usage and the limits of a bucket. Returns 0 or -ENXIO. */
int quota_look(struct quota_book *book, const void *name, size_t len, struct store_quota_info *ret_info);
/* Sets the fields of st that describe a bucket's quota. */
void quota_fill_stat(struct quota_book *book, const void *name, size_t len, struct store_stat *st);
/* Implements store_set_quotas(). */
int quota_set_rules(struct quota_book *book, const struct store_pattern_quota *quota, int nr);
/* Implements store_largest_buckets(). */
int quota_largest(struct quota_book *book, struct store_quota_info *list, int max);
/* Implements store_list_quotas(). */
int quota_list(struct quota_book *book, struct store_quota_info **ret_list);

#endif
