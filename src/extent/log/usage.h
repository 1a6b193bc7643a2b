/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage - the usage of a volume's buckets, in the quota ledger (model/quota.h): the leader counts changes
 * when it publishes a block and judges commits in the order of the log; a start counts all records again.
 *
 * All functions run on the leader, except usage_reserve() and usage_keep_end().
 */
#ifndef GANTRY_EXTENT_LOG_USAGE_H
#define GANTRY_EXTENT_LOG_USAGE_H

#include "model/decide.h"
#include "model/record.h"

struct commit;
struct dead;
struct rec;
struct rec_view;
struct vol;

/* Begins the judging of commits: locks the ledger if any quota is set. */
void usage_judge_begin(struct vol *vol);
/* Ends the judging of commits and unlocks the ledger. */
void usage_judge_end(struct vol *vol);
/* Judges a change of usage by c: 0 or -EDQUOT. *change: the change of one copy, which becomes that of all copies; of
 * documents of a bucket the function computes it. */
int usage_judge(struct vol *vol, const struct commit *c, struct quota_change *change);
/* Judges a bucket that will be made, with its documents: 0, -EDQUOT or -EMLINK. */
int usage_judge_bucket(struct vol *vol, const struct commit *c);
/* Notes that c is in the block; usage_make() makes the row of a new bucket before. */
void usage_pend(struct vol *vol, const struct commit *c, const struct quota_change *change);
/* Reserves the memory for a bucket that will be made. Returns 0 or -ENOMEM. */
int usage_make(struct vol *vol, const struct commit *c);

/* Begins the publishing of a block: usage_published() follows for each record, with the replaced record,
 * and usage_publish_end() when the index has the records. */
void usage_publish_begin(struct vol *vol);
void usage_published(struct vol *vol, const struct commit *c, const struct rec *old);
void usage_publish_end(struct vol *vol);
/* Returns the row of the bucket to which a removed record belongs; NULL: none, or no limit exists. */
struct quota_row *usage_row_of_dead(const struct vol *vol, const uint8_t *key, size_t len,
				    const struct rec *r);
/* Counts the bytes of a removed record with readers in dead->row, during the publishing of a block. */
void usage_keep(struct vol *vol, struct dead *dead);
/* Ends the counting of these bytes, on any thread. */
void usage_keep_end(struct dead *dead);
/* Discards the noted usage of a block that is not published. */
void usage_drop(struct vol *vol);

/* Counts one record of a complete index; called for all records, buckets first. Returns 0 or -ENOMEM. */
int usage_start(struct vol *vol, struct quota_book *book, const uint8_t *key, size_t len,
		const struct rec *r);

/* ---- on a port's thread ---- */

/* Reserves for an object or a part, before its bytes are taken, or changes the reservation: 0, -EDQUOT or -ENXIO.
 * name: key of the object, or of the part's upload; key: of the object or part. size_bytes: all bytes of the PUT, with the taken ones, of one copy;
 * STORE_SIZE_UNKNOWN: none yet. A commit ends the reservation when it is published; quota_end() ends it otherwise. */
int usage_reserve(struct vol *vol, const uint8_t *name, size_t name_len, const uint8_t *key, size_t key_len,
		  uint64_t size_bytes, struct quota_hold *hold);

/* ---- a bucket's quota, in the attributes of a record ---- */

/* Reads the quota from the record r, to which use_move() has written it; NULL: no record, and no quota. */
struct store_use usage_bound_of(const struct rec *r);

#endif
