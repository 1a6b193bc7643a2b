/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage - what the buckets of a volume hold, in the book of quotas (store/quota.h): counted by the leader when it
 * publishes, judged by it in the order of the log, counted anew by a start.
 *
 * The leader's but for usage_early().
 */
#ifndef GANTRY_EXTENT_LOG_USAGE_H
#define GANTRY_EXTENT_LOG_USAGE_H

#include "store/quota.h"

struct commit;
struct rec;
struct rec_view;
struct vol;

/* Begins and ends judging: in between the book is locked, if there is a bound at all. */
void usage_judge_begin(struct vol *vol);
void usage_judge_end(struct vol *vol);
/* Says what c would add; old_bytes: of what it replaces, if that exists. */
struct quota_change usage_change(const struct commit *c, bool exists, uint64_t old_bytes);
/* Judges that: 0 or -EDQUOT. */
int usage_judge(struct vol *vol, const struct commit *c, const struct quota_change *change);
/* Notes that c is in the block; a bucket gets its row before (usage_make()). */
void usage_pend(struct vol *vol, const struct commit *c, const struct quota_change *change);
/* Sets the memory aside for a bucket that is to be made.  0 or -ENOMEM. */
int usage_make(struct vol *vol, const struct commit *c);

/* Begins publishing a block; then each of its records is told, with what it replaced; then, when the index shows them, it ends. */
void usage_publish_begin(struct vol *vol);
void usage_published(struct vol *vol, const struct commit *c, const struct rec *old);
void usage_publish_end(struct vol *vol);
/* Forgets what was in a block that is not published. */
void usage_drop(struct vol *vol);

/* Counts one record of an index that is complete: all of them, buckets first.  0 or -ENOMEM. */
int usage_start(struct vol *vol, struct quota_book *book, const uint8_t *key, size_t len,
		const struct rec *r);

/* ---- on a port's thread ---- */

/* Judges an object, or a part (of that upload), before its bytes are moved: 0 or -EDQUOT.  size_bytes may be
 * STORE_SIZE_UNKNOWN. */
int usage_early(struct vol *vol, const uint8_t *bucket_key, size_t bucket_key_len, const uint8_t *key,
		size_t key_len, uint64_t size_bytes);

/* ---- a bucket's own bound, in the attributes of a record ---- */

#define USAGE_BOUND_BYTES 24
void usage_bound_pack(const struct store_use *max, uint8_t out[USAGE_BOUND_BYTES]);
/* Reads it; NULL: there is no such record, and no bound. */
struct store_use usage_bound_of(const struct rec *r);

#endif
