/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions: changes and look-ups of the index (txn.c, txn_keys.c, op.c). */
#ifndef GANTRY_RADOS_IO_TXN_H
#define GANTRY_RADOS_IO_TXN_H

#include "base/clock.h"
#include "base/list.h"
#include "model/decide.h"
#include "rados/io/rows.h"

#include <stdlib.h>
#include <string.h>

struct rbucket;
struct rport;
struct rshard;

/*
 * A transaction on one shard: the values of up to TXN_KEYS keys are read, decide() sets the new values, and
 * one operation compares all keys with the values that were read and writes the new ones. If the comparison
 * fails, the keys are read and decided again. A look-up is a transaction whose decide() changes nothing.
 */
#define TXN_KEYS 3

struct bytes {
	char *p; /* NULL: no value */
	size_t len;
};

enum fate { FATE_COMPARE, FATE_SET, FATE_REMOVE };

struct txn_key {
	char *key;
	uint16_t len;
	enum fate fate; /* set by decide() */
	struct bytes old, set;
};

/* A key that is set or removed without a comparison: garbage, parts. */
struct txn_more {
	char *key;
	uint16_t len;
	struct bytes set; /* p NULL: the key is removed */
};

/* Use of a cached record in the place of a look-up: not allowed; allowed; the transaction was decided on a
 * cached record; no longer allowed. */
enum guess { GUESS_NEVER, GUESS_FIRST, GUESS_MADE, GUESS_OVER };

enum txn_say { TXN_OVER, TXN_COMMIT, TXN_LATER, TXN_AGAIN };

struct txn {
	struct row_read look;
	struct msg msg;   /* sends the transaction from the queue of the shard back to its port */
	struct list link; /* link in the queue of the shard */
	struct txn *next; /* next in the batch */
	struct rport *port;
	struct store_op *op; /* operation of the caller, for op.c */
	const void *asker;   /* owner of the transaction */
	rados_xattrs_iter_t xattrs;
	int xattrs_rv;
	/* Set by the caller. */
	/* Decides. TXN_OVER: the end, with t->result; TXN_COMMIT: the keys are changed; TXN_LATER: the
	 * caller calls txn_go_on(); TXN_AGAIN: the keys are read again. */
	enum txn_say (*decide)(struct txn *t);
	void (*over)(struct txn *t); /* runs at the end, with t->result; frees no memory of t */
	/* names, owned by the caller; object NULL: the transaction is on the table of buckets */
	const char *bucket, *object;
	uint16_t bucket_len, object_len;
	int key_nr;
	struct txn_key key[TXN_KEYS];
	enum guess guess; /* GUESS_FIRST if decide() may use a cached record */
	/* Private to txn.c and shard.c. */
	struct rbucket *rb;
	struct rshard *shard;
	uint64_t generation; /* generation of the shard when the keys were read */
	uint64_t epoch;      /* epoch that the transaction pins */
	bool is_pinned, is_alone;
	/* set by the caller: changes nothing; a look-up that finds a value need not read the generation */
	bool is_read;
	bool is_brief; /* the look-up does not read the generation */
	uint32_t more_nr;
	size_t more_cap;
	struct txn_more *more;
	struct quota_change delta; /* change of the bucket's usage, set by decide() */
	bool is_held;              /* the quota ledger contains delta as held */
	int commit_result;         /* result of the operation on the shard */
	uint32_t restarts;
	int result;
};

static inline bool
bytes_new(struct bytes *b, size_t len)
{
	b->p = malloc(len ? len : 1);
	b->len = len;
	return b->p != NULL;
}

static inline bool
bytes_copy(struct bytes *b, const void *from, size_t len)
{
	if (!bytes_new(b, len))
		return false;
	memcpy(b->p, from, len);
	return true;
}

static inline void
bytes_free(struct bytes *b)
{
	free(b->p);
	*b = (struct bytes){ 0 };
}

/* Adds a key to read and to compare, before txn_start(). Returns 0 or -ENOMEM. */
int txn_add_key(struct txn *t, const char *key, size_t len);
/* Adds to a write: sets the owner of a data object or map, which is bucket, NUL, key. The clean-up after a
 * dead gateway reads it. */
void txn_set_owner(rados_write_op_t op, const struct txn *t);
/* Begins a transaction. over() always runs, after the return. */
void txn_start(struct rport *p, struct txn *t);
/* Continues a transaction after TXN_LATER, with the final result of decide(). */
void txn_go_on(struct txn *t, enum txn_say say);
/* Sets a key to a value of len bytes. Returns memory for the value, with t->result 0; NULL: no memory, and
 * t->result is -ENOMEM. Called by decide(), like the next function, which removes a key. */
void *txn_set(struct txn *t, int key, size_t len);
void txn_remove(struct txn *t, int key);
/* Sets one more key, or (value.p NULL) removes it. Returns 0 or -ENOMEM; the value is taken over, also
 * after an error. */
int txn_more(struct txn *t, const char *key, size_t len, struct bytes value);
/* Adds to a change: the data of a removed or replaced record is garbage. Returns 0 or -errno. */
int txn_garbage(struct txn *t, const struct record *old);
int txn_garbage_data(struct txn *t, const struct garbage_data *data, uint32_t nr, const struct rid *map);
/* Sets a key to a record. Returns the result of decide(), with t->result 0, -ENOMEM, or -EOPNOTSUPP: the
 * record has a field that the format of the pools lacks (format.c). */
enum txn_say txn_set_record(struct txn *t, int key, const struct record *new);
/* Sets a key to a new record with the given metadata, which replaces old (NULL: none); the data of old
 * becomes garbage. Sets the version, and the time if the metadata has none. Returns the result of
 * decide(), with t->result 0 or an error. */
enum txn_say txn_put_record(struct txn *t, int key, struct record *new, const struct store_meta *meta,
			    const struct record *old);
/* Removes the further keys of txn_more(). */
void txn_more_free(struct txn *t);
/* Frees the memory that a transaction owns. */
void txn_fini(struct txn *t);

/* Finds the generation of a shard among its attributes. Returns 0 or -EBADMSG. */
int generation_of(rados_xattrs_iter_t xattrs, uint64_t *ret_generation);

/* Returns the version of a record that replaces a record of version old. 0: no record is replaced. */
static inline uint64_t
next_version(uint64_t old)
{
	uint64_t now = clock_wall_ns();

	return old >= now ? old + 1 : now;
}

/* ---- op.c: operations of store.h that begin with a transaction ---- */

/* Allocates an operation of the given size, zeroed, whose first member is a transaction on an object. The
 * operation has copies of the names, because those of the caller are valid only until the start returns.
 * Its keys are the upload's (upload_id NULL: none), and the object's (has_object). Returns NULL without
 * memory. */
void *txn_op_new(struct rport *p, size_t bytes, const struct store_key *k, const uint8_t *upload_id,
		 bool has_object);
/* Frees an operation that has not begun. NULL is allowed. */
void txn_op_drop(void *op);
/* Begins the operation of the caller, and its transaction. Returns 0. */
int txn_op_start(struct txn *t, struct store_op *op, enum txn_say (*decide)(struct txn *t),
		 void (*over)(struct txn *t));
/* Frees the operation, and ends the operation of the caller. */
void txn_op_end(struct txn *t, int result);
/* Frees the operation, and ends the operation of the caller with the result of the transaction. Used as
 * over() by operations with no further steps. */
void txn_op_over(struct txn *t);
/* Begins an ended transaction again, with the same names and keys. */
void txn_again(struct txn *t, enum txn_say (*decide)(struct txn *t), void (*over)(struct txn *t));

#endif
