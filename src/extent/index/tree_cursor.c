/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking the tree in key order, from a root that stays as it is: a reader's within one loop turn, or a
 * pinned one.  A cursor is a path; going on means the next entry of the leaf, or up until there is a next one
 * and down its left edge.
 */
#include "extent/index/tree_int.h"

#include "base/check.h"

void
tree_cursor_init(struct tree_cursor *c, const struct tree *t, const struct tree_node *root)
{
	c->tree = t;
	c->root = root;
	c->rec = NULL;
	c->key_len = 0;
	c->depth = 0;
	c->mark = 0;
}

void
tree_cursor_once(struct tree_cursor *c)
{
	c->mark = c->tree->pin.mark;
}

/* The writer may free n after this. */
static void
leave(const struct tree_cursor *c, const struct tree_node *n)
{
	if (c->mark)
		atomic_store_explicit(&((struct tree_node *)(uintptr_t)n)->walked, c->mark,
				      memory_order_release);
}

/* A leaf is entered at its left end: most who come so want its records, and the next leaf. */
static void
ahead(const struct tree_cursor *c)
{
	const struct tree_node *n = c->node[c->depth - 1], *above = c->node[c->depth - 2];
	unsigned next = c->at[c->depth - 2] + 1u;

	if (next < above->nr)
		node_prefetch(node_child(c->tree, above, next));
	for (unsigned i = 0; i < n->nr; i++)
		__builtin_prefetch(arena_ptr(&c->tree->arena, node_ref(n, i)));
}

/* Goes down the left edge below the entry at[depth - 1], to the leaf. */
static void
down_left(struct tree_cursor *c)
{
	while (c->node[c->depth - 1]->level) {
		const struct tree_node *n = c->node[c->depth - 1];

		check(c->depth < TREE_DEPTH_MAX);
		c->node[c->depth] = node_child(c->tree, n, c->at[c->depth - 1]);
		c->at[c->depth++] = 0;
		if (n->level == 1)
			ahead(c);
	}
}

/* The path is at an entry, or just after the leaf's last one. */
static bool
settle(struct tree_cursor *c)
{
	while (c->depth && c->at[c->depth - 1] >= c->node[c->depth - 1]->nr) {
		leave(c, c->node[c->depth - 1]);
		if (--c->depth)
			c->at[c->depth - 1]++;
	}
	if (!c->depth) {
		c->rec = NULL;
		c->key_len = 0;
		return false;
	}
	down_left(c);
	c->key_len = (uint16_t)node_key(c->node[c->depth - 1], c->at[c->depth - 1], c->key);
	c->rec = arena_ptr(&c->tree->arena, node_ref(c->node[c->depth - 1], c->at[c->depth - 1]));
	return true;
}

bool
tree_seek(struct tree_cursor *c, const void *key, size_t key_len, bool after)
{
	const struct tree_node *n = c->root;
	unsigned at;
	bool exact;

	c->depth = 0;
	if (!n)
		return settle(c);
	for (; n->level; n = node_child(c->tree, n, at)) {
		check(c->depth + 1 < TREE_DEPTH_MAX);
		at = node_child_of(n, key, key_len);
		c->node[c->depth] = n;
		c->at[c->depth++] = (uint16_t)at;
	}
	at = node_lower_bound(n, key, key_len, &exact);
	c->node[c->depth] = n;
	c->at[c->depth++] = (uint16_t)(at + (exact && after));
	return settle(c);
}

bool
tree_next(struct tree_cursor *c)
{
	if (!c->depth)
		return false;
	c->at[c->depth - 1]++;
	return settle(c);
}

bool
tree_skip(struct tree_cursor *c, size_t prefix_len)
{
	char bound[TREE_KEY_MAX];

	if (!c->depth)
		return false;
	check(prefix_len <= c->key_len);
	memcpy(bound, c->key, prefix_len);
	/* The least string after all that begin so: the last byte one more; without the ones that have no
	 * more. */
	while (prefix_len && (unsigned char)bound[prefix_len - 1] == 0xff)
		prefix_len--;
	if (!prefix_len) {
		c->depth = 0;
		return settle(c);
	}
	bound[prefix_len - 1] = (char)(bound[prefix_len - 1] + 1);
	return tree_seek(c, bound, prefix_len, false);
}
