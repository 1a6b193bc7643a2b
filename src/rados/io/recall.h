/* SPDX-License-Identifier: Apache-2.0 */
/* Cached records of objects (recall.c). */
#ifndef GANTRY_RADOS_IO_RECALL_H
#define GANTRY_RADOS_IO_RECALL_H

#include "rados/io/codec.h"

#include <pthread.h>

struct rbucket;
struct txn;
struct txn_key;

#define RECALL_SLOTS 4096u
#define RECALL_LOCKS 16u
#define RECALL_BYTES 1024u /* maximum size of key and record in the cache */

#define RECALL_NAMES 65536u

/* The data objects that a record named when this gateway last saw the record. */
struct data_seen {
	uint64_t hash; /* hash of bucket and key */
	struct rid data;
	uint64_t size_bytes; /* 0: empty entry */
	bool has_trailers;
	bool is_doubtful; /* the last parallel read was of other data objects */
};

struct recall_table {
	pthread_mutex_t lock[RECALL_LOCKS]; /* each protects a part of the slots */
	struct remembered *slot[RECALL_SLOTS];
	struct data_seen named[RECALL_NAMES];
};

/*
 * A record is cached after this gateway has set or removed it. After some PUTs of a bucket that found no
 * object, a key that is not cached is assumed to have none. Cached records and assumptions may be wrong: a
 * change that relies on them compares them in its operation on the shard.
 */

void recall_init(struct recall_table *r);
void recall_fini(struct recall_table *r);
/* Sets the old values of a transaction from the cache. Returns false if a look-up is needed. */
bool recall(struct txn *t);
/* Caches the records that a successful change has set, before the next operation on the shard begins. */
void recall_note(const struct txn *t);
/* Counts the result of a look-up. recall_wrong() drops cached records after a wrong assumption, and begins
 * a pause. */
void recall_looked(const struct txn *t);
void recall_wrong(const struct txn *t);
/* Caches the data objects of a record; NULL: the object does not exist. is_doubtful: a parallel read had
 * other data objects, so the next look-up has no parallel read. */
void recall_seen(struct recall_table *r, const struct rbucket *rb, const struct txn_key *k,
		 const struct record *rec, bool is_doubtful);
/* Returns the cached data objects of a record. False: none are cached, or they are doubtful. */
bool recall_named(struct recall_table *r, const struct rbucket *rb, const struct txn_key *k,
		  struct data_seen *ret_named);

#endif
