/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_store - the functions of the store in memory (mem_store.c) for tests, in addition to store.h.  Any thread.
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
	uint32_t delay_max_us; /* largest delay of a completion; default 200 */
	uint32_t
		open_at_once; /* number of 100 opens and listings that finish in the start call; default 50 */
	uint32_t stat_at_once;  /* the same for looks at buckets and uploads; default 50 */
	uint32_t other_at_once; /* the same for reads, writes, commits and deletes; default 0 */
};
/* Takes effect with the next operation. Without it an engine of a set finishes nothing but look-ups in the start call. */
void mem_store_tune(struct store *st, const struct mem_store_tuning *tuning);

/* Sets the limits, at most the constants of store.h. No operation may be in flight. */
void mem_store_limit(struct store *st, const struct store_limits *limits);
/* Makes store_share() answer that all of `shares` shares except number `share` belong to another process. */
void mem_store_share(struct store *st, uint32_t shares, uint32_t share);

/* While the store is held, no operation completes, not even at once. */
void mem_store_hold(struct store *st, bool hold);
/* true: mem_store_step() does the operations instead of the store's thread, so that the seed of a test repeats
 * their order. */
void mem_store_manual(struct store *st, bool manual);
/* Does up to nr of the started operations, in random order; their done() runs from the mailbox.  Returns the
 * number of the other ones. */
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
 * After `skip` more operations of this kind, the next `times` end with error (-EBADMSG, -ENOSPC,
 * -EROFS ...).  MEM_COMMIT with -ECANCELED: the write is made or not, at random.  MEM_DELETE: bucket
 * operations too; MEM_BUCKET_DELETE: removals of buckets alone.  times 0: ends the fault.
 */
void mem_store_fail(struct store *st, enum mem_fault kind, int error, unsigned skip, unsigned times);

/* Inverts one bit of the stored bytes: later reads of that granule end with -EBADMSG.  Returns 0, -ENOENT or
 * -ERANGE. */
int mem_store_spoil(struct store *st, const char *bucket, const char *key, uint64_t off);

/* Return the number of operations in flight; of open objects; of PUTs that are neither committed nor aborted. */
unsigned mem_store_inflight(struct store *st);
unsigned mem_store_open_nr(struct store *st);
unsigned mem_store_put_nr(struct store *st);
/* Returns the number of calls of store_open_to_read(). */
unsigned mem_store_to_read_nr(struct store *st);
/* Returns the number of bytes in the last of these calls. */
uint64_t mem_store_to_read_want(struct store *st);

#endif
