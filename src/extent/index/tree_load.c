/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many keys in order into a tree: what a start does with a snapshot.  Keys are gathered until they fill a
 * leaf, which is then built in one piece and hung to the tree's right edge: no descent, no search, no node
 * built twice.
 *
 * How full?  A tree that grew by keys in no order has leaves of every size between half and whole, few large
 * ones, many small ones (density 1/x^2), and stays so: as many grow into a size as grow out of it.  Leaves
 * that were all full would, as soon as the tree grows, all be split, one after the other, and the places of
 * full ones, of a size hardly wanted any more, would lie idle in slabs that a few others hold on to: 40 bytes
 * a key.  Half-full ones would all grow at once.  So leaves are made as they are in a tree that grew.  That
 * costs a header for each of 1.4 times as many leaves, not the room in them: a node is as large as what is in
 * it.
 */
#include "extent/index/tree_int.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

#define LOAD_KEY_BYTES (32u << 10) /* gathered at once; the least a leaf may hold fits */
#define LOAD_VIEWS_MAX 160u        /* entries of 7 bytes and more in NODE_BYTES */
_Static_assert(LOAD_KEY_BYTES >= (NODE_ENTRIES_MIN + 1) * TREE_KEY_MAX, "keys too long for 1 KiB");
_Static_assert(LOAD_VIEWS_MAX >= NODE_BYTES / 7 && LOAD_VIEWS_MAX <= NODE_VIEWS_MAX, "as many as fit");

struct tree_load {
	struct tree *t;
	unsigned nr;       /* gathered */
	size_t used;       /* bytes of their keys */
	size_t longest;    /* of them */
	size_t prefix_len; /* what they have in common */
	uint32_t leaf_nr;  /* built */
	size_t edge_len;
	char edge[TREE_KEY_MAX]; /* the last key of the last leaf built */
	struct node_view view[LOAD_VIEWS_MAX];
	char key[LOAD_KEY_BYTES];
};

struct tree_load *
tree_load_new(struct tree *t)
{
	struct tree_load *l = malloc(sizeof *l);

	check(!t->work);
	if (!l)
		return NULL;
	l->t = t;
	l->nr = 0;
	l->leaf_nr = 0;
	l->edge_len = 0;
	return l;
}

/* Bytes of the leaf that is built next. */
static unsigned
target(const struct tree_load *l)
{
	/* The golden ratio's multiples fall evenly into [0, 1); 1 / (2 - u) then has the density 1/x^2. */
	uint32_t u = l->leaf_nr * 0x9e3779b9u;

	return (unsigned)(((uint64_t)NODE_BYTES << 32) / (((uint64_t)2 << 32) - u));
}

/* Bytes of a leaf of nr keys, `used` in all; rather too many than too few. */
static size_t
leaf_bytes(unsigned nr, size_t used, size_t prefix_len, size_t longest)
{
	return NODE_HEADER + prefix_len + used - nr * prefix_len +
	       nr * (2 + node_entry_bytes(longest - prefix_len) - (longest - prefix_len));
}

/* The shortest string after the last leaf's keys and not after the first one gathered. */
static void
separator(const struct tree_load *l, struct node_split *split)
{
	const struct node_view *v = &l->view[0];

	split->sep_len = (uint16_t)(node_common(l->edge, l->edge_len, v->tail, v->tail_len) + 1);
	memcpy(split->sep, v->tail, split->sep_len);
}

static void
flush(struct tree_load *l)
{
	const struct node_view *end;
	struct tree *t = l->t;
	struct tree_node *leaf;

	if (!l->nr)
		return;
	leaf = node_build(t, 0, l->view, l->nr, "", 0);
	if (t->work) {
		struct node_split *split = &t->split[0];
		struct tree_path path;

		split->right = leaf;
		separator(l, split);
		tree_descend(t, &path, l->view[0].tail, l->view[0].tail_len);
		tree_ascend(t, &path, path.node[path.depth], split);
	} else {
		t->work = leaf;
	}
	end = &l->view[l->nr - 1];
	l->leaf_nr++;
	l->edge_len = end->tail_len;
	memcpy(l->edge, end->tail, end->tail_len);
	l->nr = 0;
}

static bool
is_next(const struct tree_load *l, const char *key, size_t key_len)
{
	const char *last = l->nr ? l->view[l->nr - 1].tail : l->edge;
	size_t last_len = l->nr ? l->view[l->nr - 1].tail_len : l->edge_len;

	return tree_compare(last, last_len, key, key_len) < 0;
}

void *
tree_load_put(struct tree_load *l, const void *key, size_t key_len, void *rec)
{
	const struct node_view *v = &l->view[0];
	size_t prefix_len = key_len, longest = key_len;

	check(key_len > 0 && key_len <= TREE_KEY_MAX);
	if (!is_next(l, key, key_len)) {
		flush(l);
		return tree_put(l->t, key, key_len, rec);
	}
	if (l->nr) {
		prefix_len = node_common(v->tail, l->prefix_len, key, key_len);
		longest = key_len > l->longest ? key_len : l->longest;
		if (l->nr == LOAD_VIEWS_MAX || l->used + key_len > LOAD_KEY_BYTES ||
		    (l->nr >= NODE_ENTRIES_MIN &&
		     leaf_bytes(l->nr + 1, l->used + key_len, prefix_len, longest) > target(l))) {
			flush(l);
			prefix_len = longest = key_len;
		}
	}
	if (!l->nr)
		l->used = 0;
	memcpy(l->key + l->used, key, key_len);
	l->view[l->nr++] = (struct node_view){ "", l->key + l->used, 0, (uint16_t)key_len,
					       arena_ref(&l->t->arena, rec) };
	l->used += key_len;
	l->prefix_len = prefix_len;
	l->longest = longest;
	tree_spend(l->t);
	l->t->dirty = true;
	l->t->keys++;
	return NULL;
}

void
tree_load_end(struct tree_load *l)
{
	if (!l)
		return;
	flush(l);
	l->t->last_node = NULL;
	free(l);
}
