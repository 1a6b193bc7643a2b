/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - the index of one disk: a copy-on-write B+tree in memory, keys in byte order, one record per key.
 *
 * Threads. One *writer* at a time: the commit leader of the moment (leadership passes with release and
 * acquire). Readers, on any thread that takes part in the quiescence (quiesce.h), load the root and never
 * lock; a record found by a reader stays valid until the next quiesce_point() or quiesce_sleep() of the
 * reader's thread.
 *
 * Keys are any bytes, 1 to TREE_KEY_MAX of them (type byte, bucket, 0, object key). The tree keeps a copy of
 * the key, shortened by the common prefix of the keys of one node; a record need not contain its key. A
 * *record* is opaque memory from tree_rec_alloc() of the same tree.
 *
 * A write: tree_reserve() no memory: -ENOSPC (507), before anything is written to disk
 *            tree_rec_alloc()           can fail, too
 *            ...the log block is written and flushed...
 *            tree_put(), tree_del()     cannot fail; readers do not see the changes yet
 *            tree_publish()             one release store: readers see the changes
 *            tree_reclaim()             from time to time: frees memory that no reader uses any longer
 * tree_put() and tree_del() cannot be undone: only flushed changes use them.
 *
 * A replaced or deleted record belongs to the caller: when its extents and pins need the record no longer,
 * tree_rec_retire() frees it after a grace period. All functions of the writer may also be called without
 * readers (recovery); then one publish at the end is enough.
 */
#ifndef GANTRY_EXTENT_INDEX_TREE_H
#define GANTRY_EXTENT_INDEX_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct quiesce;
struct tree;
struct tree_load;
struct tree_node;

#define TREE_KEY_MAX 1120
#define TREE_DEPTH_MAX 32

/* Allocates an empty tree. bytes: memory limit of nodes and records together, 4 MiB to 60 GiB. Returns 0,
 * -EINVAL, -ENOMEM. */
int tree_new(uint64_t bytes, struct quiesce *q, struct tree **ret_t);
/* Frees a tree that has no readers and no pins. NULL is allowed. */
void tree_free(struct tree *t);

/* Allows a start to use an eighth more memory than the limit, through tree_reserve() for deletes only. A tree
 * that is rebuilt may need more memory than the previous tree, which was filled in the order of keys. */
void tree_start_begin(struct tree *t);
/* Ends the permission of tree_start_begin(). New records are refused until the tree is within the limit
 * again. */
void tree_start_end(struct tree *t);

/* ---- writer ---- */

/* Reserves memory for one more put or delete; of a delete also from a reserve that only deletes may use, so that records can be
 * deleted from a full index. Returns 0, or -ENOSPC without a reservation. */
int tree_reserve(struct tree *t, bool is_delete);
/* Releases an unused reservation. */
void tree_unreserve(struct tree *t);

/* Puts a record under a key. Returns the previous record, or NULL. Uses a reservation. */
void *tree_put(struct tree *t, const void *key, size_t key_len, void *rec);
/* Deletes a key. Returns its record, or NULL if the key does not exist. Uses a reservation only if the key
 * exists. */
void *tree_del(struct tree *t, const void *key, size_t key_len);
/*
 * Begins to put many keys in order into an empty tree. This is faster than tree_put(), and leaves free space
 * for later keys (see tree_load.c). The keys are in the tree after tree_load_end(); until then the tree must
 * not be used in other ways. Returns NULL if there is no memory.
 */
struct tree_load *tree_load_new(struct tree *t);
/* Puts a record under a key into the tree that is being loaded. The keys should ascend; a smaller or equal
 * key is put by tree_put(). Uses a reservation. Returns the record that the key had, or
 * NULL. */
void *tree_load_put(struct tree_load *l, const void *key, size_t key_len, void *rec);
/* Ends a load and frees it. NULL is allowed. */
void tree_load_end(struct tree_load *l);
/* Finds a record in the state under construction, which includes unpublished changes. For the writer. */
void *tree_find(const struct tree *t, const void *key, size_t key_len);
/* Prefetches the memory that tree_put() and tree_find() of this key will access. Called some keys ahead. */
void tree_prefetch(const struct tree *t, const void *key, size_t key_len);
/* Publishes the state under construction to the readers. */
void tree_publish(struct tree *t);

/* Frees nodes and records whose grace period has passed, and returns their number. The writer calls this
 * function after tree_publish() and from its idle timer. */
unsigned tree_reclaim(struct tree *t);

/* Returns the number of the state under construction. Each tree_publish() increments the number. */
uint64_t tree_gen(const struct tree *t);

/* Allocates memory for a record, 16-byte aligned, not cleared. Returns NULL if the memory limit of the index
 * is reached; the caller reports this as -ENOSPC. */
void *tree_rec_alloc(struct tree *t, size_t bytes);
/*
 * Frees a record that is not in the state under construction any longer. The memory is freed after the next
 * publish, a grace period, and the end of the pin, if it may see the record. birth: tree_gen() at the time
 * the record was put, so that a pin of another state does not delay the release; 0: unknown.
 */
void tree_rec_retire(struct tree *t, void *rec, uint64_t birth);
/* Frees a record immediately. No reader has seen the record, or the tree has no readers. */
void tree_rec_free(struct tree *t, void *rec);

/*
 * Pins the published state: its nodes and its records stay until tree_unpin(), while later records are
 * reclaimed as usual. Must not be called between a put or delete and its publish. The scan of the state
 * (tree_cursor_init() with *ret_root) may run on any one thread, at any pace, and needs no quiescence.
 * One state at a time is pinned.
 */
void tree_pin(struct tree *t, const struct tree_node **ret_root);
void tree_unpin(struct tree *t);

struct tree_cursor;
/*
 * Declares that c is the only cursor on this pinned state, and that the caller will move it once, forwards, from
 * the root. The pin does not keep the nodes that c has passed.
 */
void tree_cursor_once(struct tree_cursor *c);

/* ---- readers ---- */

/* Compares two keys in byte order. Returns a number < 0, 0 or > 0. */
static inline int
tree_compare(const void *a, size_t a_len, const void *b, size_t b_len)
{
	int c = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return c ? c : (a_len > b_len) - (a_len < b_len);
}

/* Returns the root of the published state; NULL: the tree is empty. */
const struct tree_node *tree_root(const struct tree *t);
/* Returns the published record of a key; NULL: the key does not exist. */
void *tree_get(const struct tree *t, const void *key, size_t key_len);

/* A cursor on a state of the tree, owned by the caller; about 1.4 KiB. */
struct tree_cursor {
	const struct tree *tree;
	const struct tree_node *root;
	/* current record; valid while the last call returned true */
	void *rec;
	uint16_t key_len;
	uint16_t depth; /* number of levels on the path; the last level is the leaf */
	uint32_t mark;  /* mark of the pin, for tree_cursor_once() */
	const struct tree_node *node[TREE_DEPTH_MAX];
	uint16_t at[TREE_DEPTH_MAX];
	char key[TREE_KEY_MAX];
};

/* Initializes a cursor for a state of the tree: a published root or a pinned one. */
void tree_cursor_init(struct tree_cursor *c, const struct tree *t, const struct tree_node *root);
/* Moves to the first key that is not less than `key`; if `after` is true, to the first key that is greater.
 * Returns false if there is no further key. */
bool tree_seek(struct tree_cursor *c, const void *key, size_t key_len, bool after);
/* Moves to the next key. Returns false at the end of the tree, and in every call after that. */
bool tree_next(struct tree_cursor *c);
/* Initializes a cursor for the published state, and moves to the first key as tree_seek() does. */
static inline bool
tree_begin(struct tree_cursor *c, const struct tree *t, const void *key, size_t key_len, bool after)
{
	tree_cursor_init(c, t, tree_root(t));
	return tree_seek(c, key, key_len, after);
}
/* Returns true if the key at the cursor begins with these bytes. */
static inline bool
tree_begins(const struct tree_cursor *c, const void *bytes, size_t len)
{
	return c->key_len >= len && memcmp(c->key, bytes, len) == 0;
}
/* Moves to the first key after all keys that share the first prefix_len bytes of the current key. Returns
 * false if there is no such key. */
bool tree_skip(struct tree_cursor *c, size_t prefix_len);

/* ---- statistics ---- */

/* Returns the number of bytes of the slabs in use, which is memory of the process, and their limit. Any thread. */
uint64_t tree_used_bytes(const struct tree *t);
uint64_t tree_max_bytes(const struct tree *t);

/* The contents of a tree, in the state under construction. For the writer. */
struct tree_stats {
	uint64_t keys, nodes, depth;
	/* bytes of nodes and of records in use, rounded up to the class sizes */
	uint64_t node_bytes, rec_bytes;
	uint64_t limbo; /* number of nodes and records that wait for a grace period or a pin */
};
void tree_stats(const struct tree *t, struct tree_stats *ret_stats);

#endif
