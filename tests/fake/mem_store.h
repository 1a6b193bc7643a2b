/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test may do to the store in memory (mem_store.c) beyond store.h.  Any thread, unless said otherwise.
 *
 * Seed: SEED= of the environment, else 1; mem_store_tune() sets another.
 */
#ifndef TESTS_FAKE_MEM_STORE_H
#define TESTS_FAKE_MEM_STORE_H

#include "store/store.h"

/* A back end: .ops of struct store_conf. */
extern const struct store_ops mem_store_ops;

struct mem_store_tuning {
	uint64_t seed;
	uint32_t delay_max_us;  /* a completion comes after 0 to this; default 200 */
	uint32_t open_at_once;  /* of 100 opens and listings, how many finish in the start call; default 50 */
	uint32_t stat_at_once;  /* the same of looks at buckets and uploads; default 50 */
	uint32_t other_at_once; /* the same of reads, writes, commits and deletes; default 0 */
};
/* From the next operation on. */
void mem_store_tune(struct store *st, const struct mem_store_tuning *tuning);

/* Takes less at once from now on: nothing may be in flight.  At most what store.h's constants say. */
void mem_store_limit(struct store *st, const struct store_limits *limits);
/* Says of each of `shares` shares, but for number `share`, that it is another process's. */
void mem_store_share(struct store *st, uint32_t shares, uint32_t share);

/* While held, nothing that was started completes (and nothing finishes at once). */
void mem_store_hold(struct store *st, bool hold);
/* true: the store's thread does nothing any more; what was started is done by mem_store_step(), so that a
 * test's seed replays it. */
void mem_store_manual(struct store *st, bool manual);
/* Does up to nr of the operations started, in random order; their done() runs from the mailbox.  Returns how
 * many there were left to do. */
unsigned mem_store_step(struct store *st, unsigned nr);

enum mem_fault {
	MEM_OPEN,
	MEM_STAT,
	MEM_READ,
	MEM_PUT_INIT,
	MEM_WRITE,
	MEM_COMMIT,
	MEM_DELETE,
	MEM_LIST,
	MEM_BUCKET_DELETE,
	MEM_FAULT_NR
};
/*
 * After `skip` more operations of this kind that go well, the next `times` end with error (-EBADMSG, -ENOSPC,
 * -EROFS ...).  MEM_COMMIT with -ECANCELED: by chance the write survives or not.  MEM_DELETE: bucket
 * operations too; MEM_BUCKET_DELETE: removals of buckets alone.  times 0: no fault any more.
 */
void mem_store_fail(struct store *st, enum mem_fault kind, int error, unsigned skip, unsigned times);

/* One bit of the stored bytes turns over: reads of that granule end with -EBADMSG from now on.  0, or
 * -ENOENT, -ERANGE. */
int mem_store_spoil(struct store *st, const char *bucket, const char *key, uint64_t off);

/* Operations started and not done; objects open; puts started and neither committed nor aborted. */
unsigned mem_store_inflight(struct store *st);
unsigned mem_store_open_nr(struct store *st);
unsigned mem_store_put_nr(struct store *st);
/* How often store_open_to_read() was called. */
unsigned mem_store_to_read_nr(struct store *st);
/* How many bytes it was told of last. */
uint64_t mem_store_to_read_want(struct store *st);

#endif
