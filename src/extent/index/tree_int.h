/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the tree: the layout of a node, and the declarations shared by tree*.c.
 *
 *	+--------+----------------------+ ... free ... +---------+--- ... ---+--------+
 *	| header | slot[0] .. slot[nr-1]               | entry   | entries   | prefix |
 *	+--------+----------------------+ ... free ... +---------+--- ... ---+--------+
 *	                                               |<------------ heap ----------->|
 *
 * A slot is an entry's distance from the node's end, so the heap moves to a block of another size in one
 * piece.  An entry is a reference (4 bytes: record, or child), the length of its suffix (1 byte, or 255 and 2
 * bytes) and the suffix: the part of its key after the node's prefix.  Entry 0 of an inner node stands for
 * "anything smaller" and has no key; the others' keys are separators: the shortest string greater than all on
 * the left and not greater than anything on the right.
 *
 * Blocks have the size of their contents, in the arena's classes, and not all 1 KiB and two thirds full:
 * every change of a published node copies the node, so the copy may have any size. A node of more than
 * NODE_BYTES is split, unless it has at most NODE_ENTRIES_MIN entries, so that keys too long for 1 KiB are
 * possible.
 */
#ifndef GANTRY_EXTENT_INDEX_TREE_INT_H
#define GANTRY_EXTENT_INDEX_TREE_INT_H

#include "extent/index/arena.h"
#include "extent/index/tree.h"

#include <stdatomic.h>
#include <string.h>

#define NODE_BYTES 1024u
#define NODE_ENTRIES_MIN 4u
/* a smaller node is merged with a neighbour if both together stay below NODE_MERGED */
#define NODE_UNDERFULL 256u
#define NODE_MERGED 896u
#define NODE_VIEWS_MAX 1024 /* most entries of two nodes together; a node of 4.6 KiB has at most 655 */

struct tree_node {
	uint64_t birth; /* tree_gen() when the node was made */
	uint16_t cap;   /* bytes of the block */
	uint16_t nr;
	uint16_t heap; /* bytes of the heap, including removed entries and the prefix */
	uint16_t prefix_len;
	uint16_t dead; /* bytes of removed entries in the heap */
	uint8_t level; /* 0: leaf */
	uint8_t unused;
	/* mark of the struct tree_pin whose cursor has passed the node; the only field that changes in a
	 * published node, and readers do not use this field */
	_Atomic uint32_t walked;
	uint16_t slot[];
};
#define NODE_HEADER offsetof(struct tree_node, slot)

/* One entry of a node to be built: the key of the entry is base prefix + head + tail. */
struct node_view {
	const char *head, *tail;
	uint16_t head_len, tail_len;
	uint32_t ref;
};

/* A descent from the root of the state being built; node[depth] is the leaf. */
struct tree_path {
	unsigned depth;
	struct tree_node *node[TREE_DEPTH_MAX];
	unsigned at[TREE_DEPTH_MAX];
};

/* The entry that an insert splits off to the right. */
struct node_split {
	struct tree_node *right; /* NULL: no split */
	uint16_t sep_len;
	char sep[TREE_KEY_MAX];
};

enum limbo_kind { LIMBO_EPOCH, LIMBO_NODE, LIMBO_REC };

/* word: birth of the node or record; for LIMBO_EPOCH the epoch of the following batch, 0 while the batch is
 * not published. */
struct limbo_entry {
	uint64_t word;
	uint32_t ref, kind;
};

#define LIMBO_PAGE_ENTRIES 63u
struct limbo_page {
	struct limbo_page *next;
	uint32_t first, nr; /* entries [first, nr) are valid */
	struct limbo_entry entry[LIMBO_PAGE_ENTRIES];
};

struct limbo {
	struct limbo_page *head, *tail;
};

struct tree_pin {
	bool used;
	uint32_t mark;     /* mark of this pin, never used before */
	uint64_t gen;      /* number of the pinned state */
	struct limbo held; /* entries freed since the pin was made that no newer pin sees */
	uint32_t look_nr;  /* number of held entries to be checked again */
};

struct tree {
	_Alignas(64) _Atomic(struct tree_node *) root; /* published */
	/* The other fields belong to the writer. */
	_Alignas(64) struct arena arena;
	struct quiesce *quiesce;
	struct tree_node *work; /* root of the state being built */
	uint64_t gen;
	bool dirty; /* work differs from root */
	unsigned reserved_ops;
	uint64_t owed; /* number of records returned to the caller and not retired yet */
	struct limbo limbo;
	struct limbo_entry *open; /* LIMBO_EPOCH of the batch not published yet */
	struct tree_pin pin[TREE_PINS_MAX];
	uint32_t pins; /* number of pins made so far */
	/* location of the last insert, to detect sequential loads */
	const struct tree_node *last_node;
	unsigned last_pos;
	/* scratch memory of an insert or merge */
	struct node_split split[2];
	struct node_view view[NODE_VIEWS_MAX];
	uint64_t keys, nodes, node_bytes, limbo_nr, limbo_bytes;
	struct {
		_Atomic uint64_t keys, nodes, depth, node_bytes, rec_bytes, used_bytes, limbo, gen;
	} stats;
};

/* ---- tree_node.c ---- */

/* Returns the first entry whose key is >= key.  Leaves only. */
unsigned node_lower_bound(const struct tree_node *n, const char *key, size_t key_len, bool *ret_exact);
/* Returns the entry of the child in which key belongs.  Inner nodes only. */
unsigned node_child_of(const struct tree_node *n, const char *key, size_t key_len);
/* Returns a node that may be changed in place of n: n itself if it was not published, otherwise a copy (and n
 * is retired). */
struct tree_node *node_writable(struct tree *t, struct tree_node *n);
struct tree_node *node_insert(struct tree *t, struct tree_node *n, unsigned pos, const char *key,
			      size_t key_len, uint32_t ref, struct node_split *split);
/* Removes an entry. NULL: the node is empty. */
struct tree_node *node_remove(struct tree *t, struct tree_node *n, unsigned pos);
/* Merges both nodes into one, or returns NULL if one node would be too large. sep: their separator in the
 * parent. */
struct tree_node *node_merge(struct tree *t, struct tree_node *left, struct tree_node *right, const char *sep,
			     size_t sep_len);
/* Makes a leaf of one record. */
struct tree_node *node_first(struct tree *t, const char *key, size_t key_len, uint32_t ref);
/* Makes a root of two nodes, left and split->right. */
struct tree_node *node_root(struct tree *t, struct tree_node *left, const struct node_split *split);
/* Makes a node of these views, with the first base_len bytes of base before each key, of the smallest
 * sufficient size. */
struct tree_node *node_build(struct tree *t, unsigned level, const struct node_view *v, unsigned nr,
			     const char *base, size_t base_len);
/* Copies the whole key of entry i to buf; returns its length. */
size_t node_key(const struct tree_node *n, unsigned i, char *buf);

#define NODE_SUFFIX_LONG 255u

static inline unsigned
node_entry_bytes(size_t suffix_len)
{
	return (unsigned)(4 + (suffix_len < NODE_SUFFIX_LONG ? 1 : 3) + suffix_len);
}

/* Returns the length of the common prefix of a and b. */
static inline size_t
node_common(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t n = a_len < b_len ? a_len : b_len, i = 0;

	while (i < n && a[i] == b[i])
		i++;
	return i;
}

static inline const char *
node_prefix(const struct tree_node *n)
{
	return (const char *)n + n->cap - n->prefix_len;
}

static inline char *
node_entry(const struct tree_node *n, unsigned i)
{
	return (char *)n + n->cap - n->slot[i];
}

static inline uint32_t
node_ref(const struct tree_node *n, unsigned i)
{
	uint32_t ref;

	memcpy(&ref, node_entry(n, i), sizeof ref);
	return ref;
}

static inline void
node_set_ref(struct tree_node *n, unsigned i, uint32_t ref)
{
	memcpy(node_entry(n, i), &ref, sizeof ref);
}

static inline const char *
node_suffix(const struct tree_node *n, unsigned i, unsigned *ret_len)
{
	const unsigned char *e = (const unsigned char *)node_entry(n, i) + 4;

	if (e[0] < 255) {
		*ret_len = e[0];
		return (const char *)e + 1;
	}
	*ret_len = e[1] | (unsigned)e[2] << 8;
	return (const char *)e + 3;
}

static inline struct tree_node *
node_child(const struct tree *t, const struct tree_node *n, unsigned i)
{
	return arena_ptr(&t->arena, node_ref(n, i));
}

/* Prefetches the usual size of a node: its actual size is unknown until it is loaded. */
static inline void
node_prefetch(const struct tree_node *n)
{
	for (unsigned at = 0; at < NODE_BYTES; at += 64)
		__builtin_prefetch((const char *)n + at);
}

/* Returns the bytes that the contents of a node need. */
static inline unsigned
node_live(const struct tree_node *n)
{
	return (unsigned)NODE_HEADER + 2u * n->nr + n->heap - n->dead;
}

/* ---- tree_limbo.c: nodes and records that wait to be freed ---- */

/* Retires n, which is not part of the state under construction any longer. */
void limbo_node(struct tree *t, struct tree_node *n);
void limbo_rec(struct tree *t, void *rec, uint64_t birth);
/* Names the epoch of the entries added to limbo so far, none of which is in a published state. */
void limbo_seal(struct tree *t);

/* ---- tree.c ---- */

/* Returns the leaf to which key belongs, and the path to it. */
struct tree_node *tree_descend(const struct tree *t, struct tree_path *path, const char *key, size_t key_len);
/*
 * Updates the ancestors after the node at the path's end has become n, and split->right was split off (NULL:
 * no split). The two split structs of the tree alternate: the separator of one level is the key of the next.
 */
void tree_ascend(struct tree *t, struct tree_path *path, struct tree_node *n, struct node_split *split);
/* Uses up a reservation. */
void tree_spend(struct tree *t);
/* Updates the numbers of tree_stats(). */
void tree_stats_update(struct tree *t);

#endif
