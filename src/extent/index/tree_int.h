/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_int - the layout of a node, and the declarations shared by tree*.c.
 *
 * 	+--------+----------------------+ ... free ... +---------+--- ... ---+--------+
 * 	| header | slot[0] .. slot[nr-1]               | entry   | entries   | prefix |
 * 	+--------+----------------------+ ... free ... +---------+--- ... ---+--------+
 * 	                                               |<------------ heap ----------->|
 *
 * A slot is an entry's distance from the node's end, so the heap moves to a block of another size in one
 * piece. An entry is a reference (4 bytes: record, or child), the length of its suffix (1 byte, or 255 and 2
 * bytes) and the suffix: the part of its key after the node's prefix. Entry 0 of an inner node is for all
 * smaller keys and has no key itself. The key of any other entry is a separator: the shortest string that is
 * greater than all keys to its left and not greater than any key to its right.
 *
 * A block has the size of its contents, rounded up to a class of the arena: every change of a published node
 * copies the node, so the copy may have another size. (Blocks of a fixed size of 1 KiB would be two thirds
 * full.) A node of more than NODE_BYTES is split, unless it has at most NODE_ENTRIES_MIN entries, so that
 * keys too long for 1 KiB are possible.
 */
#ifndef GANTRY_EXTENT_INDEX_TREE_INT_H
#define GANTRY_EXTENT_INDEX_TREE_INT_H

#include "extent/index/arena.h"
#include "extent/index/tree.h"

#include <stdatomic.h>
#include <string.h>

#define NODE_BYTES 1024u
#define NODE_ENTRIES_MIN 4u
/* size in bytes below which a node is merged with a neighbour, if both together stay below NODE_MERGED */
#define NODE_UNDERFULL 256u
#define NODE_MERGED 896u
/* largest number of entries in two nodes together; a node of 4.6 KiB has at most 655 entries */
#define NODE_VIEWS_MAX 1024

struct tree_node {
	uint64_t birth; /* tree_gen() at the time the node was made */
	uint16_t cap;   /* size of the block, in bytes */
	uint16_t nr;
	uint16_t heap; /* size of the heap in bytes, including removed entries and the prefix */
	uint16_t prefix_len;
	uint16_t dead; /* number of bytes of removed entries in the heap */
	uint8_t level; /* level of the node; 0: leaf */
	uint8_t unused;
	/* mark of the pin (struct tree_pin) whose cursor has passed the node. No other field changes in a
	 * published node, and readers do not use this field */
	_Atomic uint32_t walked;
	uint16_t slot[];
};
#define NODE_HEADER offsetof(struct tree_node, slot)

/* An entry of a node to be built. The key of the entry is the base prefix, followed by head and tail. */
struct node_view {
	const char *head, *tail;
	uint16_t head_len, tail_len;
	uint32_t ref;
};

/* A path from the root of the state under construction to a leaf, which is node[depth]. */
struct tree_path {
	unsigned depth;
	struct tree_node *node[TREE_DEPTH_MAX];
	unsigned at[TREE_DEPTH_MAX];
};

/* The new right node of a split, with the separator for the parent. */
struct node_split {
	struct tree_node *right; /* new right node; NULL: the node was not split */
	uint16_t sep_len;
	char sep[TREE_KEY_MAX];
};

enum limbo_kind { LIMBO_EPOCH, LIMBO_NODE, LIMBO_REC };

/* An entry of a limbo list: a node or record that waits to be freed, or (LIMBO_EPOCH) the mark before a batch
 * of them. word: birth of the node or record; for LIMBO_EPOCH the epoch that must pass before the batch is
 * freed, 0 while the batch is not published. */
struct limbo_entry {
	uint64_t word;
	uint32_t ref, kind;
};

#define LIMBO_PAGE_ENTRIES 63u
struct limbo_page {
	struct limbo_page *next;
	uint32_t first, nr; /* range of valid entries: [first, nr) */
	struct limbo_entry entry[LIMBO_PAGE_ENTRIES];
};

struct limbo {
	struct limbo_page *head, *tail;
};

struct tree_pin {
	bool used;
	uint32_t mark; /* mark of the pin, > 0; no earlier pin had it */
	uint64_t gen;  /* number of the pinned state */
	/* retired nodes and records that wait for the end of the pin */
	struct limbo held;
	uint32_t look_nr; /* number of entries in `held` that must be checked again */
};

struct tree {
	_Alignas(64) _Atomic(struct tree_node *) root; /* root of the published state */
	/* memory of nodes and records; this field and all later ones, except used_bytes, belong to the writer */
	_Alignas(64) struct arena arena;
	struct quiesce *quiesce;
	struct tree_node *work; /* root of the state under construction */
	uint64_t gen;
	bool dirty; /* true: `work` differs from `root` */
	unsigned reserved_ops;
	uint64_t owed; /* number of records that were returned to the caller and have not been retired */
	struct limbo limbo;
	struct limbo_entry *open; /* LIMBO_EPOCH entry of the batch that is not published yet */
	struct tree_pin pin;      /* the pin, or the last one */
	/* leaf and position of the last insert, to detect keys that arrive in order */
	const struct tree_node *last_node;
	unsigned last_pos;
	/* memory for the splits of an insert or merge */
	struct node_split split[2];
	struct node_view view[NODE_VIEWS_MAX];
	uint64_t keys, nodes, node_bytes, limbo_nr, limbo_bytes;
	_Atomic uint64_t used_bytes; /* bytes of the slabs in use, for other threads */
};

/* ---- tree_node.c ---- */

/* Returns the index of the first entry of a leaf whose key is >= key. *ret_exact: true: the keys are
 * equal. */
unsigned node_lower_bound(const struct tree_node *n, const char *key, size_t key_len, bool *ret_exact);
/* Returns the index of the child of an inner node to which the key belongs. */
unsigned node_child_of(const struct tree_node *n, const char *key, size_t key_len);
/* Returns a node that may be changed in place of n. Returns n itself if n was not published; otherwise
 * returns a copy of n, and retires n. */
struct tree_node *node_writable(struct tree *t, struct tree_node *n);
struct tree_node *node_insert(struct tree *t, struct tree_node *n, unsigned pos, const char *key,
			      size_t key_len, uint32_t ref, struct node_split *split);
/* Removes an entry from a node. Returns NULL if the node is empty. */
struct tree_node *node_remove(struct tree *t, struct tree_node *n, unsigned pos);
/* Merges two nodes into one. Returns NULL if the result would be too large. sep: separator of the two nodes
 * in their parent. */
struct tree_node *node_merge(struct tree *t, struct tree_node *left, struct tree_node *right, const char *sep,
			     size_t sep_len);
/* Makes a leaf with one record. */
struct tree_node *node_first(struct tree *t, const char *key, size_t key_len, uint32_t ref);
/* Makes a root with two children, left and split->right. */
struct tree_node *node_root(struct tree *t, struct tree_node *left, const struct node_split *split);
/* Makes a node of nr entries, in the smallest block that is sufficient. The first base_len bytes of base
 * precede the key of each entry. */
struct tree_node *node_build(struct tree *t, unsigned level, const struct node_view *v, unsigned nr,
			     const char *base, size_t base_len);
/* Copies the whole key of entry i to buf. Returns the length of the key in bytes. */
size_t node_key(const struct tree_node *n, unsigned i, char *buf);

#define NODE_SUFFIX_LONG 255u

static inline unsigned
node_entry_bytes(size_t suffix_len)
{
	return (unsigned)(4 + (suffix_len < NODE_SUFFIX_LONG ? 1 : 3) + suffix_len);
}

/* Returns the length of the common prefix of a and b, in bytes. */
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

/* Prefetches as many bytes of a node as a node usually has, because the actual size is unknown until the node
 * is loaded. */
static inline void
node_prefetch(const struct tree_node *n)
{
	for (unsigned at = 0; at < NODE_BYTES; at += 64)
		__builtin_prefetch((const char *)n + at);
}

/* Returns the number of bytes that the contents of a node need. */
static inline unsigned
node_live(const struct tree_node *n)
{
	return (unsigned)NODE_HEADER + 2u * n->nr + n->heap - n->dead;
}

/* ---- tree_limbo.c: nodes and records that wait to be freed ---- */

/* Retires a node that is not part of the state under construction any longer. */
void limbo_node(struct tree *t, struct tree_node *n);
/* Ends the current batch of the limbo list, and sets the epoch that must pass before the batch is freed. No
 * published state contains an entry of the batch. */
void limbo_seal(struct tree *t);

/* ---- tree.c ---- */

/* Returns the leaf to which a key belongs, and the path to the leaf. */
struct tree_node *tree_descend(const struct tree *t, struct tree_path *path, const char *key, size_t key_len);
/*
 * Updates the ancestors of a changed node: n replaces the node at the end of the path, and split->right was
 * split off (NULL: no split). The two split structs of the tree are used alternately: the separator of one
 * level is the key of the next level.
 */
void tree_ascend(struct tree *t, struct tree_path *path, struct tree_node *n, struct node_split *split);
/* Uses one reservation of tree_reserve(). */
void tree_spend(struct tree *t);
/* Notes how much memory is in use, for tree_used_bytes(). */
void tree_note_used(struct tree *t);

#endif
