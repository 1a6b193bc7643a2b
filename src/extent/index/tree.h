/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - the index of one disk: a copy-on-write B+tree in memory, keys in byte order, one record per key.
 *
 * Threads.  One *writer* at a time: the commit leader, whoever that is (leadership passes with release and
 * acquire). Readers, on any thread that takes part in the quiescence (quiesce.h), load the root and never
 * lock; what they found stays good until their next quiesce_point() or quiesce_sleep().
 *
 * Keys are any bytes, 1 to TREE_KEY_MAX of them (type byte, bucket, 0, object key).  The tree keeps a copy of
 * the key, shortened by what the keys of one node have in common; records need not hold theirs.  A *record*
 * is opaque memory from tree_rec_alloc() of the same tree.
 *
 * A write:   tree_reserve()             no memory: -ENOSPC (507), before anything is written to disk
 *            tree_rec_alloc()           may fail too
 *            ...the log block is written and flushed...
 *            tree_put(), tree_del()     cannot fail; what readers see does not change yet
 *            tree_publish()             one release store: now it does
 *            tree_reclaim()             now and then: frees what no reader can hold any more
 * There is no way back from tree_put() and tree_del(): they are for what has been flushed.
 *
 * A replaced or deleted record is the caller's: when nothing else needs it (extents, pins), tree_rec_retire()
 * frees it after a grace period.  All functions of a writer may be called without readers too (recovery); one
 * publish at the end will do then.
 */
#ifndef GANTRY_EXTENT_INDEX_TREE_H
#define GANTRY_EXTENT_INDEX_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quiesce;
struct tree;
struct tree_load;
struct tree_node;

#define TREE_KEY_MAX 1120
#define TREE_REC_MAX 21760 /* bytes of one record */
#define TREE_DEPTH_MAX 32
#define TREE_PINS_MAX 4

/* Makes an empty tree.  bytes: bound of nodes and records together, 4 MiB to 60 GiB.  0, -EINVAL, -ENOMEM. */
int tree_new(uint64_t bytes, struct quiesce *q, struct tree **ret_t);
/* Frees t, whose readers and pins are gone.  NULL is fine. */
void tree_free(struct tree *t);

/* Lets a start fill the tree by tree_reserve_deletes() alone: one that grew in order takes less than the one
 * that is made anew of what it held, so an eighth more than the bound may be used. */
void tree_start_begin(struct tree *t);
/* Ends that: new records are refused until the tree is within the bound again. */
void tree_start_end(struct tree *t);

/* ---- writer ---- */

/* Sets memory aside for `ops` more puts or deletes; each of them uses up one.  0 or -ENOSPC (then nothing was
 * set aside). */
int tree_reserve(struct tree *t, unsigned ops);
/* Sets memory aside for deletes, which may use what is kept back for them: a full index can still be
 * emptied. */
int tree_reserve_deletes(struct tree *t, unsigned ops);
/* Gives up reservations that will not be used. */
void tree_unreserve(struct tree *t, unsigned ops);

/* Puts a record and returns the one that was there, or NULL.  Needs a reservation. */
void *tree_put(struct tree *t, const void *key, size_t key_len, void *rec);
/* Deletes a key and returns its record, or NULL when there was none.  Needs a reservation (and gives it
 * back if there was none). */
void *tree_del(struct tree *t, const void *key, size_t key_len);
/*
 * Begins to put many keys in order into an empty tree, faster, and so that later ones find room (see
 * tree_load.c).  What was put so is in the tree behind tree_load_end(); until then the tree is not to be
 * used in other ways. NULL: no memory.
 */
struct tree_load *tree_load_new(struct tree *t);
/* Puts one, as tree_put() does.  A key that is not greater than the one before is put all the same. */
void *tree_load_put(struct tree_load *l, const void *key, size_t key_len, void *rec);
/* Frees l; NULL is fine. */
void tree_load_end(struct tree_load *l);
/* Finds a record in the writer's own state, unpublished changes included. */
void *tree_find(const struct tree *t, const void *key, size_t key_len);
/* Asks the processor for what tree_put() and tree_find() of that key will touch: called some keys ahead. */
void tree_prefetch(const struct tree *t, const void *key, size_t key_len);
/* Makes the state being built the one that readers see. */
void tree_publish(struct tree *t);

/* Frees what a grace period has passed for; returns how many nodes and records.  Call it after publishing and
 * from the idle timer. */
unsigned tree_reclaim(struct tree *t);

/* Returns the number of the state being built; it grows by one per tree_publish(). */
uint64_t tree_gen(const struct tree *t);

/* Returns memory for a record, 16-byte aligned, not cleared.  NULL: none (-ENOSPC). */
void *tree_rec_alloc(struct tree *t, size_t bytes);
/*
 * Frees rec, which is not in the state being built any more, after the next publish and a grace period, and
 * after every and after every pin that may see it.  birth: tree_gen() when it was put, so that a pin
 * younger or older than its life does not hold it; 0: not known.
 */
void tree_rec_retire(struct tree *t, void *rec, uint64_t birth);
/* Frees rec at once: no reader ever saw it, or there are none. */
void tree_rec_free(struct tree *t, void *rec);

/*
 * Pins the published state: its nodes, and records with a birth up to it, stay until tree_unpin(), while what
 * is born later is reclaimed as ever.  Not between a put or delete and its publish.  The walk itself
 * (tree_cursor_init() with *ret_root) may be done by any one thread, over any time, and needs no quiescence.
 * Returns a handle >= 0, or -EBUSY.
 */
int tree_pin(struct tree *t, const struct tree_node **ret_root);
void tree_unpin(struct tree *t, int pin);

struct tree_cursor;
/*
 * Promises that c will be the only one to walk this pinned state, once, forwards, from a root it has just
 * been given: what it has left behind is kept no longer than anything else.
 */
void tree_cursor_once(struct tree_cursor *c, int pin);

/* ---- readers ---- */

/* Returns the published state; NULL is an empty one. */
const struct tree_node *tree_root(const struct tree *t);
/* Returns the published record of a key, or NULL. */
void *tree_get(const struct tree *t, const void *key, size_t key_len);

/* About 1.4 KiB; the caller's. */
struct tree_cursor {
	const struct tree *tree;
	const struct tree_node *root;
	/* where it stands; valid while the last call returned true */
	void *rec;
	uint16_t key_len;
	uint16_t depth; /* levels on the path; the last one is the leaf */
	uint32_t mark;  /* tree_cursor_once() */
	const struct tree_node *node[TREE_DEPTH_MAX];
	uint16_t at[TREE_DEPTH_MAX];
	char key[TREE_KEY_MAX];
};

/* Sets c up for a state: tree_root() or a pinned one. */
void tree_cursor_init(struct tree_cursor *c, const struct tree *t, const struct tree_node *root);
/* Moves to the first key >= key (strictly > with `after`).  false: none. */
bool tree_seek(struct tree_cursor *c, const void *key, size_t key_len, bool after);
/* Moves to the next key.  After false: still false. */
bool tree_next(struct tree_cursor *c);
/* Moves to the first key behind all that begin with the first prefix_len bytes of the current key. */
bool tree_skip(struct tree_cursor *c, size_t prefix_len);

/* ---- what operators see; written by the writer, read by any thread ---- */

struct tree_stats {
	uint64_t keys, nodes, depth;
	uint64_t node_bytes, rec_bytes; /* handed out, in size classes */
	uint64_t used_bytes;            /* slabs in use: what the process has of it */
	uint64_t max_bytes;
	uint64_t limbo; /* nodes and records waiting for a grace period or a pin */
	uint64_t gen;
};
void tree_stats(const struct tree *t, struct tree_stats *ret_stats);

#endif
