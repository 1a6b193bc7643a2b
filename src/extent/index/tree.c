/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree's writer: reserve, put, delete, publish; and the readers' plain lookup.  See tree.h for who calls,
 * tree_int.h for the layout.  Descents remember their path; changes go up it, and stop where a node need not
 * change.
 */
#include "extent/index/tree_int.h"

#include "base/check.h"
#include "extent/index/quiesce.h"

#include <errno.h>
#include <stdlib.h>

int
tree_new(uint64_t bytes, struct quiesce *q, struct tree **ret_t)
{
	struct tree *t = aligned_alloc(64, sizeof *t);
	int r;

	if (!t)
		return -ENOMEM;
	memset(t, 0, sizeof *t);
	r = arena_init(&t->arena, bytes);
	if (r < 0) {
		free(t);
		return r;
	}
	t->quiesce = q;
	t->gen = 1;
	*ret_t = t;
	return 0;
}

void
tree_free(struct tree *t)
{
	if (!t)
		return;
	arena_fini(&t->arena);
	free(t);
}

/* ---- readers ---- */

const struct tree_node *
tree_root(const struct tree *t)
{
	return atomic_load_explicit(&t->root, memory_order_acquire);
}

static void *
find(const struct tree *t, const struct tree_node *n, const char *key, size_t key_len)
{
	bool exact;
	unsigned i;

	if (!n)
		return NULL;
	while (n->level)
		n = node_child(t, n, node_child_of(n, key, key_len));
	i = node_lower_bound(n, key, key_len, &exact);
	return exact ? arena_ptr(&t->arena, node_ref(n, i)) : NULL;
}

void *
tree_get(const struct tree *t, const void *key, size_t key_len)
{
	return find(t, tree_root(t), key, key_len);
}

void *
tree_find(const struct tree *t, const void *key, size_t key_len)
{
	return find(t, t->work, key, key_len);
}

void
tree_prefetch(const struct tree *t, const void *key, size_t key_len)
{
	const struct tree_node *n = t->work;

	if (!n || !n->level)
		return;
	while (n->level > 1)
		n = node_child(t, n, node_child_of(n, key, key_len));
	node_prefetch(node_child(t, n, node_child_of(n, key, key_len)));
}

/* ---- reservations ---- */

/*
 * Slabs that `ops` changes may need: a copy of each node on their paths (no more than there are), what the
 * new entries add, a new root; the list of what they retire; and some size classes in which a slab is begun.
 * It is an estimate: long keys and many splits can take more, for a moment, and that the arena's overdraft
 * has.
 */
static uint64_t
slabs_for(const struct tree *t, unsigned ops)
{
	uint64_t depth = t->work ? t->work->level + 1u : 0;
	uint64_t copies = ops * depth < t->nodes ? ops * depth : t->nodes;
	uint64_t dead = copies + ops + t->owed;
	uint64_t kib = copies + ops / 4 + depth + 2 + dead / (LIMBO_PAGE_ENTRIES - 1);

	return kib / 60 + 4;
}

/* Deletes need memory before they give any back: records leave this much alone, and puts half of it. */
static uint64_t
slabs_for_deletes(const struct tree *t)
{
	return 6 + t->arena.slab_max / 128;
}

int
tree_reserve(struct tree *t, bool is_delete)
{
	uint64_t slabs = slabs_for(t, t->reserved_ops + 1), keep = is_delete ? 0 : slabs_for_deletes(t) / 2;

	if (slabs + keep > arena_slabs_free(&t->arena))
		return -ENOSPC;
	/* What only a start may use beyond the bound is for deletes. */
	if (keep && t->arena.slab_live + slabs + keep > t->arena.slab_bound)
		return -ENOSPC;
	t->reserved_ops++;
	t->arena.slab_reserved = (uint32_t)slabs;
	return 0;
}

void
tree_start_begin(struct tree *t)
{
	arena_extend(&t->arena);
}

void
tree_start_end(struct tree *t)
{
	arena_end_extension(&t->arena, (uint32_t)(2 * slabs_for_deletes(t)));
}

static void
settle_reserve(struct tree *t)
{
	t->arena.slab_reserved = t->reserved_ops ? (uint32_t)slabs_for(t, t->reserved_ops) : 0;
}

void
tree_unreserve(struct tree *t)
{
	tree_spend(t);
	settle_reserve(t);
}

void
tree_spend(struct tree *t)
{
	check(t->reserved_ops > 0);
	t->reserved_ops--;
}

/* ---- put ---- */

struct tree_node *
tree_descend(const struct tree *t, struct tree_path *path, const char *key, size_t key_len)
{
	struct tree_node *n = t->work;

	path->depth = 0;
	for (;; path->depth++) {
		check(path->depth < TREE_DEPTH_MAX);
		path->node[path->depth] = n;
		if (!n->level)
			break;
		path->at[path->depth] = node_child_of(n, key, key_len);
		n = node_child(t, n, path->at[path->depth]);
	}
	return n;
}

void
tree_ascend(struct tree *t, struct tree_path *path, struct tree_node *n, struct node_split *split)
{
	for (unsigned i = path->depth; i-- > 0;) {
		struct tree_node *parent = path->node[i];
		struct node_split *up = split == &t->split[0] ? &t->split[1] : &t->split[0];

		if (n == path->node[i + 1] && !split->right)
			return;
		up->right = NULL;
		if (n != path->node[i + 1]) {
			parent = node_writable(t, parent);
			node_set_ref(parent, path->at[i], arena_ref(&t->arena, n));
		}
		if (split->right)
			parent = node_insert(t, parent, path->at[i] + 1, split->sep, split->sep_len,
					     arena_ref(&t->arena, split->right), up);
		n = parent;
		split = up;
	}
	t->work = split->right ? node_root(t, n, split) : n;
}

void *
tree_put(struct tree *t, const void *key, size_t key_len, void *rec)
{
	uint32_t ref = arena_ref(&t->arena, rec);
	struct tree_path path;
	struct tree_node *leaf, *n;
	void *old = NULL;
	unsigned pos;
	bool exact;

	check(key_len > 0);
	check(key_len <= TREE_KEY_MAX);
	tree_spend(t);
	t->dirty = true;
	if (!t->work) {
		t->work = node_first(t, key, key_len, ref);
		t->keys++;
		return NULL;
	}
	leaf = tree_descend(t, &path, key, key_len);
	pos = node_lower_bound(leaf, key, key_len, &exact);
	if (exact) {
		old = arena_ptr(&t->arena, node_ref(leaf, pos));
		n = node_writable(t, leaf);
		node_set_ref(n, pos, ref);
		t->split[0].right = NULL;
		t->owed++;
	} else {
		n = node_insert(t, leaf, pos, key, key_len, ref, &t->split[0]);
		t->keys++;
	}
	tree_ascend(t, &path, n, &t->split[0]);
	return old;
}

/* ---- delete ---- */

/* child, at[i] of the writable parent, is nearly empty: one node of it and a neighbour,
 * if they fit into one. */
static struct tree_node *
merge_child(struct tree *t, struct tree_node *parent, unsigned at, struct tree_node *child)
{
	char *sep = t->split[0].sep;

	for (unsigned side = 0; side < 2; side++) {
		unsigned l = side == 0 ? at : at - 1; /* the right neighbour first */
		struct tree_node *other, *both;
		size_t sep_len;

		if (side == 0 ? at + 1 >= parent->nr : at == 0)
			continue;
		other = node_child(t, parent, side == 0 ? at + 1 : at - 1);
		sep_len = node_key(parent, l + 1, sep);
		both = node_merge(t, side == 0 ? child : other, side == 0 ? other : child, sep, sep_len);
		if (both) {
			node_set_ref(parent, l, arena_ref(&t->arena, both));
			return node_remove(t, parent, l + 1);
		}
	}
	return parent;
}

void *
tree_del(struct tree *t, const void *key, size_t key_len)
{
	struct tree_path path;
	struct tree_node *leaf, *n;
	void *old;
	unsigned pos;
	bool exact;

	tree_spend(t);
	if (!t->work)
		return NULL;
	leaf = tree_descend(t, &path, key, key_len);
	pos = node_lower_bound(leaf, key, key_len, &exact);
	if (!exact)
		return NULL;
	t->dirty = true;
	t->keys--;
	t->owed++;
	old = arena_ptr(&t->arena, node_ref(leaf, pos));
	n = node_remove(t, leaf, pos);
	for (unsigned i = path.depth; i-- > 0;) {
		struct tree_node *parent = path.node[i];

		if (!n) {
			n = node_remove(t, parent, path.at[i]);
			continue;
		}
		parent = node_writable(t, parent);
		node_set_ref(parent, path.at[i], arena_ref(&t->arena, n));
		n = node_live(n) < NODE_UNDERFULL ? merge_child(t, parent, path.at[i], n) : parent;
	}
	while (n && n->level && n->nr == 1) {
		struct tree_node *child = node_child(t, n, 0);

		limbo_node(t, n);
		n = child;
	}
	t->work = n;
	return old;
}

/* ---- publish ---- */

void
tree_note_used(struct tree *t)
{
	atomic_store_explicit(&t->used_bytes, (uint64_t)t->arena.slab_live * ARENA_SLAB_BYTES,
			      memory_order_relaxed);
}

void
tree_publish(struct tree *t)
{
	if (t->dirty) {
		atomic_store_explicit(&t->root, t->work, memory_order_release);
		t->gen++;
		t->dirty = false;
	}
	/* Not before: a reader that is quiescent from here on cannot find the old nodes. */
	limbo_seal(t);
	settle_reserve(t);
	tree_note_used(t);
}

uint64_t
tree_gen(const struct tree *t)
{
	return t->gen;
}

uint64_t
tree_used_bytes(const struct tree *t)
{
	return atomic_load_explicit(&t->used_bytes, memory_order_relaxed);
}

uint64_t
tree_max_bytes(const struct tree *t)
{
	return (uint64_t)t->arena.slab_bound * ARENA_SLAB_BYTES;
}

void
tree_stats(const struct tree *t, struct tree_stats *ret_stats)
{
	*ret_stats = (struct tree_stats){ .keys = t->keys,
					  .nodes = t->nodes,
					  .depth = t->work ? t->work->level + 1u : 0,
					  .node_bytes = t->node_bytes,
					  .rec_bytes = t->arena.bytes_used - t->node_bytes - t->limbo_bytes,
					  .limbo = t->limbo_nr };
}

/* ---- records ---- */

void *
tree_rec_alloc(struct tree *t, size_t bytes)
{
	uint32_t reserved = t->arena.slab_reserved;
	void *rec;

	t->arena.slab_reserved = reserved + (uint32_t)slabs_for_deletes(t);
	rec = arena_alloc(&t->arena, bytes, false);
	t->arena.slab_reserved = reserved;
	return rec;
}

void
tree_rec_free(struct tree *t, void *rec)
{
	t->owed -= t->owed > 0;
	arena_free(&t->arena, rec);
}
