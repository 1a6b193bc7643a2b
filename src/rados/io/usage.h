/* SPDX-License-Identifier: Apache-2.0 */
/* The usage of buckets, and quotas (usage.c). */
#ifndef GANTRY_RADOS_IO_USAGE_H
#define GANTRY_RADOS_IO_USAGE_H

#include "rados/io/codec.h"

struct rbucket;
struct rshard;
struct rstore;
struct txn;

/* Adds the row of a bucket to the quota ledger when the bucket enters the cache. usage_leave() removes the
 * row. */
void usage_enter(struct rbucket *rb);
void usage_leave(struct rbucket *rb);
/* Checks the change of the usage against the quota when the change is about to be sent, and holds it in
 * the ledger. Returns 0 or -EDQUOT. */
int usage_judge(struct txn *t);
/* Sets the size of a bucket's documents in the quota ledger. */
void usage_set_docs(struct rstore *st, const char *name, size_t len, uint32_t doc_bytes);
/* Reserves space for all bytes of a PUT in progress, or changes the reservation. Returns 0 or -EDQUOT. */
int usage_reserve(struct rstore *st, const char *name, size_t len, uint64_t whole_bytes,
		  struct quota_hold *hold);
/* Releases the held change of the usage. */
void usage_release(struct txn *t);
/* Counts the changes of an operation that has set this gateway's row in a shard, and releases what its
 * transactions held. Called under the lock of the shard. */
void usage_commit(struct rshard *s, const struct quota_change *sum, const uint8_t row[COUNTER_BYTES],
		  struct txn *riders);
/* Stores this gateway's row as read from the shard. */
void usage_take_own(struct rshard *s, const uint8_t *val, size_t len);
/* Removes the row of a former gateway from the table of buckets. For a helper thread. */
void usage_forget(struct rstore *st, uint32_t instance);
/* Sets the limits of a bucket in the quota ledger, after this gateway has changed or removed its quota. */
void usage_bound(struct rstore *st, const char *name, size_t len, const struct store_use *max);
int usage_start(struct rstore *st);

#endif
