/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - the index of one disk: a copy-on-write B+tree in memory, keys in byte order, one record per key.
 *
 * Threads.  One *writer* at a time: the commit leader of the moment (leadership passes with release and
 * acquire). Readers, on any thread that takes part in the quiescence (quiesce.h), load the root and never
 * lock; the records they found stay valid until their next quiesce_point() or quiesce_sleep().
 *
 * Keys are any bytes, 1 to TREE_KEY_MAX of them (type byte, bucket, 0, object key).  The tree keeps a copy of
 * the key, shortened by the common prefix of the keys of one node; records need not hold theirs.  A *record*
 * is opaque memory from tree_rec_alloc() of the same tree.
 *
 * A write:   tree_reserve()             no memory: -ENOSPC (507), before anything is written to disk
 *            tree_rec_alloc()           may fail too
 *            ...the log block is written and flushed...
 *            tree_put(), tree_del()     cannot fail; what readers see does not change yet
 *            tree_publish()             one release store: now it does
 *            tree_reclaim()             now and then: frees what no reader can hold any more
 * tree_put() and tree_del() cannot be undone: they are for flushed changes.
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

/* Makes an empty tree. bytes: limit of nodes and records together, 4 MiB to 60 GiB. 0, -EINVAL, -ENOMEM. */
int tree_new(uint64_t bytes, struct quiesce *q, struct tree **ret_t);
/* Frees t, whose readers and pins are gone.  NULL is allowed. */
void tree_free(struct tree *t);

/* Allows a start to fill the tree with tree_reserve_deletes() only: the rebuilt tree may need more memory
 * than the old one that grew in key order, so an eighth more than the limit may be used. */
void tree_start_begin(struct tree *t);
/* Ends that: new records are refused until the tree is within the limit again. */
void tree_start_end(struct tree *t);

/* ---- writer ---- */

/* Reserves memory for `ops` more puts or deletes; each of them uses up one. 0 or -ENOSPC (then nothing was
 * reserved). */
int tree_reserve(struct tree *t, unsigned ops);
/* Reserves memory for deletes, also from the reserve for them: a full index can still be emptied. */
int tree_reserve_deletes(struct tree *t, unsigned ops);
/* Releases unused reservations. */
void tree_unreserve(struct tree *t, unsigned ops);

/* Puts a record and returns the previous one, or NULL. Needs a reservation. */
void *tree_put(struct tree *t, const void *key, size_t key_len, void *rec);
/* Deletes a key and returns its record, or NULL if there was none. Needs a reservation (and returns it if
 * there was none). */
void *tree_del(struct tree *t, const void *key, size_t key_len);
/*
 * Begins to put many keys in order into an empty tree, faster, and so that later keys find room (see
 * tree_load.c). They are in the tree after tree_load_end(); until then the tree must not be used in other
 * ways. NULL: no memory.
 */
struct tree_load *tree_load_new(struct tree *t);
/* Puts one record, as tree_put() does. A key that is not greater than the previous one is allowed. */
void *tree_load_put(struct tree_load *l, const void *key, size_t key_len, void *rec);
/* Frees l; NULL is allowed. */
void tree_load_end(struct tree_load *l);
/* Finds a record in the writer's own state, unpublished changes included. */
void *tree_find(const struct tree *t, const void *key, size_t key_len);
/* Prefetches the memory that tree_put() and tree_find() of that key will access: called some keys ahead. */
void tree_prefetch(const struct tree *t, const void *key, size_t key_len);
/* Publishes the state under construction to readers. */
void tree_publish(struct tree *t);

/* Frees nodes and records whose grace period has passed; returns their number. Call it after publishing and
 * from the idle timer. */
unsigned tree_reclaim(struct tree *t);

/* Returns the number of the state under construction; it is incremented by each tree_publish(). */
uint64_t tree_gen(const struct tree *t);

/* Returns memory for a record, 16-byte aligned, not cleared.  NULL: none (-ENOSPC). */
void *tree_rec_alloc(struct tree *t, size_t bytes);
/*
 * Frees rec, which is not in the state under construction any longer, after the next publish and a grace
 * period, and after every pin that may see it. birth: tree_gen() when it was put, so that a pin outside its
 * lifetime does not hold it; 0: unknown.
 */
void tree_rec_retire(struct tree *t, void *rec, uint64_t birth);
/* Frees rec immediately: no reader ever saw it, or there are none. */
void tree_rec_free(struct tree *t, void *rec);

/*
 * Pins the published state: its nodes, and records with a birth up to it, stay until tree_unpin(), while
 * later ones are reclaimed as usual. Not between a put or delete and its publish. The scan itself
 * (tree_cursor_init() with *ret_root) may be done by any one thread, at any pace, and needs no quiescence.
 * Returns a handle >= 0, or -EBUSY.
 */
int tree_pin(struct tree *t, const struct tree_node **ret_root);
void tree_unpin(struct tree *t, int pin);

struct tree_cursor;
/*
 * Declares that c is the only cursor on this pinned state, and scans it once, forwards, from a root it has
 * just been given: nodes that it has passed are kept no longer than others.
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
	/* the current record; valid while the last call returned true */
	void *rec;
	uint16_t key_len;
	uint16_t depth; /* levels on the path; the last one is the leaf */
	uint32_t mark;  /* tree_cursor_once() */
	const struct tree_node *node[TREE_DEPTH_MAX];
	uint16_t at[TREE_DEPTH_MAX];
	char key[TREE_KEY_MAX];
};

/* Initializes c for a state: tree_root() or a pinned one. */
void tree_cursor_init(struct tree_cursor *c, const struct tree *t, const struct tree_node *root);
/* Moves to the first key >= key (strictly > with `after`).  false: none. */
bool tree_seek(struct tree_cursor *c, const void *key, size_t key_len, bool after);
/* Moves to the next key.  After false: still false. */
bool tree_next(struct tree_cursor *c);
/* Moves to the first key after all keys that begin with the first prefix_len bytes of the current key. */
bool tree_skip(struct tree_cursor *c, size_t prefix_len);

/* ---- what operators see; written by the writer, read by any thread ---- */

struct tree_stats {
	uint64_t keys, nodes, depth;
	uint64_t node_bytes, rec_bytes; /* in use, in size classes */
	uint64_t used_bytes;            /* slabs in use: memory of the process for them */
	uint64_t max_bytes;
	uint64_t limbo; /* nodes and records waiting for a grace period or a pin */
	uint64_t gen;
};
void tree_stats(const struct tree *t, struct tree_stats *ret_stats);

#endif
