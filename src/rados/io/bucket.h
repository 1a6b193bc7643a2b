/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets and their shards, and the cache of buckets (cache.c). */
#ifndef GANTRY_RADOS_IO_BUCKET_H
#define GANTRY_RADOS_IO_BUCKET_H

#include "base/list.h"
#include "rados/io/codec.h"

#include <pthread.h>
#include <stdatomic.h>

struct rstore;

/* A shard of a bucket's index, or the table of buckets: an object of the meta pool to which changes are
 * committed. */
struct rshard {
	char name[64];
	pthread_mutex_t lock;
	/* last generation after which this gateway has read its own row and so was not declared dead; 0:
	 * none (rule 5) */
	_Atomic uint64_t known;
	bool is_busy;             /* an operation of this gateway on the shard is in progress */
	_Atomic uint64_t busy_ns; /* start of that operation; 0: none */
	struct list queue;        /* list of struct txn: changes for the next operation */
	/* Usage of the shard: changes of this gateway; changes of all other gateways, as read last; the
	 * sum of both that the quota ledger contains. */
	struct quota_change own, others, booked;
	/* This gateway's row of counters, which only operations of this gateway change; unsure: the row is
	 * read before the next operation. */
	uint8_t own_row[COUNTER_BYTES];
	size_t own_len; /* 0: no row */
	bool is_own_unsure;
	struct list dirty;      /* link in the gateway's list, under the gateway's lock */
	struct rbucket *bucket; /* NULL: this is the table of buckets */
};

struct rbucket {
	struct rbucket *next; /* link in the cache */
	_Atomic uint32_t refs;
	struct rstore *store;
	bool is_cached;
	_Atomic bool is_doubtful;  /* the row in the table of buckets must be read before the next use */
	_Atomic uint64_t there_ns; /* time of the last answer of the cluster that the bucket exists */
	uint64_t serial;           /* number of this struct, unique in the process */
	uint64_t seen;             /* last turn of usage.c in which the table had the bucket */
	_Atomic uint64_t bounded;  /* turn of usage.c in which this gateway last set the limits */
	_Atomic uint32_t finds;    /* number of consecutive look-ups of GETs that found an object */
	/* State of recall.c: number of consecutive look-ups of PUTs that found no object; end of the pause
	 * after a wrong assumption. */
	_Atomic uint32_t absences;
	_Atomic uint64_t recall_after_ns;
	char name[STORE_BUCKET_MAX];
	uint8_t name_len;
	struct bucket_row row;
	struct rshard shard[];
};

/* ---- the cache ---- */

/* Returns a cached bucket, with a reference for the caller, or NULL. */
struct rbucket *rbucket_get(struct rstore *st, const char *name, size_t len);
/* Puts a bucket into the cache, in the place of another bucket of that name, and returns it with a
 * reference for the caller. Returns NULL without memory. */
struct rbucket *rbucket_put_in(struct rstore *st, const char *name, size_t len, const struct bucket_row *row);
/* Notes that the cluster has answered that the bucket exists. */
void rbucket_is_there(struct rbucket *rb);
/* Notes that the bucket may have been removed: its row is read before the next use. */
void rbucket_doubt(struct rbucket *rb);
/* Removes a bucket from the cache, because it no longer exists. */
void rbucket_drop(struct rbucket *rb);
/* Returns all cached buckets, with a reference for each; the caller frees the list. Returns NULL without
 * memory. */
struct rbucket **rbuckets_all(struct rstore *st, uint32_t *ret_nr);
/* Drops a reference. NULL is allowed. */
void rbucket_release(struct rbucket *rb);
void rbuckets_fini(struct rstore *st);
struct rshard *rbucket_shard(struct rbucket *rb, const char *key, size_t len);
void shard_init(struct rshard *s, const char *name, struct rbucket *rb);
void shard_fini(struct rshard *s);

#endif
