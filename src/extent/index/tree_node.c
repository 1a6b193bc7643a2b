/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of the tree: search, copy, insert, split, remove, merge.  See tree_int.h for the layout.  Searching
 * is any reader's; the rest is the writer's, and touches no node that was published.
 *
 * The common insert copies the node in two pieces and adds an entry.  Everything less common (another prefix,
 * split, merge, removal) goes through a list of views of the entries, from which nodes are rebuilt.
 */
#include "extent/index/tree_int.h"

#include "base/check.h"

/* ---- search ---- */

/* Where key lies to the node's prefix: < 0 before all that begin so, > 0 after, 0 among them. */
static int
compare_prefix(const struct tree_node *n, const char *key, size_t key_len)
{
	size_t m = key_len < n->prefix_len ? key_len : n->prefix_len;
	int c = memcmp(key, node_prefix(n), m);

	return c ? c : key_len < n->prefix_len ? -1 : 0;
}

/* Returns the index of the first entry from lo on whose key is >= key. */
static inline unsigned
search(const struct tree_node *n, unsigned lo, const char *key, size_t key_len, bool *ret_exact)
{
	unsigned hi = n->nr;
	int c = compare_prefix(n, key, key_len);

	*ret_exact = false;
	if (c)
		return c < 0 ? lo : hi;
	key += n->prefix_len;
	key_len -= n->prefix_len;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2, len;
		const char *suffix = node_suffix(n, mid, &len);

		c = tree_compare(suffix, len, key, key_len);
		if (c == 0) {
			*ret_exact = true;
			return mid;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

unsigned
node_lower_bound(const struct tree_node *n, const char *key, size_t key_len, bool *ret_exact)
{
	return search(n, 0, key, key_len, ret_exact);
}

unsigned
node_child_of(const struct tree_node *n, const char *key, size_t key_len)
{
	bool exact;
	unsigned i = search(n, 1, key, key_len, &exact);

	/* The child of the last separator <= key. */
	return exact ? i : i - 1;
}

size_t
node_key(const struct tree_node *n, unsigned i, char *buf)
{
	unsigned len;
	const char *suffix = node_suffix(n, i, &len);

	memcpy(buf, node_prefix(n), n->prefix_len);
	memcpy(buf + n->prefix_len, suffix, len);
	return (size_t)n->prefix_len + len;
}

/* ---- making nodes ---- */

static struct tree_node *
node_alloc(struct tree *t, unsigned bytes, unsigned level)
{
	struct tree_node *n = arena_alloc(&t->arena, bytes, true);

	check(n); /* tree_reserve() and the arena's overdraft saw to that */
	*n = (struct tree_node){ .birth = t->gen,
				 .cap = (uint16_t)arena_class_bytes(bytes),
				 .level = (uint8_t)level };
	t->nodes++;
	t->node_bytes += n->cap;
	return n;
}

/* There is room. */
static void
add_entry(struct tree_node *n, unsigned pos, const char *head, size_t head_len, const char *tail,
	  size_t tail_len, uint32_t ref)
{
	size_t len = head_len + tail_len;
	unsigned char *e;

	n->heap = (uint16_t)(n->heap + node_entry_bytes(len));
	check(NODE_HEADER + 2u * (n->nr + 1u) + n->heap <= n->cap);
	memmove(&n->slot[pos + 1], &n->slot[pos], (n->nr - pos) * sizeof n->slot[0]);
	n->slot[pos] = n->heap;
	n->nr++;
	e = (unsigned char *)node_entry(n, pos);
	memcpy(e, &ref, 4);
	e += 4;
	if (len < NODE_SUFFIX_LONG) {
		*e++ = (unsigned char)len;
	} else {
		*e++ = NODE_SUFFIX_LONG;
		*e++ = (unsigned char)len;
		*e++ = (unsigned char)(len >> 8);
	}
	memcpy(e, head, head_len);
	memcpy(e + head_len, tail, tail_len);
}

/* A copy of n with room for `bytes` in all, without dead bytes. */
static struct tree_node *
copy(struct tree *t, const struct tree_node *n, unsigned bytes)
{
	struct tree_node *c = node_alloc(t, bytes, n->level);

	c->prefix_len = n->prefix_len;
	if (n->dead) {
		c->heap = c->prefix_len;
		memcpy((char *)c + c->cap - c->prefix_len, node_prefix(n), c->prefix_len);
		for (unsigned i = 0; i < n->nr; i++) {
			unsigned len;
			const char *suffix = node_suffix(n, i, &len);

			add_entry(c, i, suffix, len, "", 0, node_ref(n, i));
		}
		return c;
	}
	c->nr = n->nr;
	c->heap = n->heap;
	memcpy(c->slot, n->slot, n->nr * sizeof n->slot[0]);
	memcpy((char *)c + c->cap - c->heap, (const char *)n + n->cap - n->heap, n->heap);
	return c;
}

struct tree_node *
node_writable(struct tree *t, struct tree_node *n)
{
	struct tree_node *c;

	if (n->birth == t->gen)
		return n;
	c = copy(t, n, node_live(n));
	limbo_node(t, n);
	return c;
}

/* ---- building from views ---- */

static unsigned char
view_byte(const struct node_view *v, size_t i)
{
	return (unsigned char)(i < v->head_len ? v->head[i] : v->tail[i - v->head_len]);
}

static size_t
view_len(const struct node_view *v)
{
	return (size_t)v->head_len + v->tail_len;
}

static size_t
view_common(const struct node_view *a, const struct node_view *b)
{
	size_t n = view_len(a) < view_len(b) ? view_len(a) : view_len(b), i = 0;

	while (i < n && view_byte(a, i) == view_byte(b, i))
		i++;
	return i;
}

/* Views of n's entries, all after the first base_len bytes of its prefix; returns how many. */
static unsigned
view_node(const struct tree_node *n, size_t base_len, struct node_view *v)
{
	const char *head = node_prefix(n) + base_len;

	for (unsigned i = 0; i < n->nr; i++) {
		unsigned len;
		const char *suffix = node_suffix(n, i, &len);

		v[i] = (struct node_view){ head, suffix, (uint16_t)(n->prefix_len - base_len), (uint16_t)len,
					   node_ref(n, i) };
	}
	return n->nr;
}

/* How much longer than the base the prefix of a node of these views is.  keyless: the first entry has no key
 * (inner node). */
static size_t
views_common(const struct node_view *v, unsigned nr, bool keyless)
{
	if (nr == keyless)
		return 0;
	return view_common(&v[keyless], &v[nr - 1]);
}

/* Bytes of a node of these views with a prefix of base_len + more. */
static unsigned
views_bytes(const struct node_view *v, unsigned nr, size_t base_len, size_t more, bool keyless)
{
	unsigned bytes = (unsigned)(NODE_HEADER + base_len + more);

	for (unsigned i = 0; i < nr; i++)
		bytes += 2 + node_entry_bytes(i < keyless ? 0 : view_len(&v[i]) - more);
	return bytes;
}

struct tree_node *
node_build(struct tree *t, unsigned level, const struct node_view *v, unsigned nr, const char *base,
	   size_t base_len)
{
	bool keyless = level > 0;
	size_t more = views_common(v, nr, keyless), more_head = 0;
	struct tree_node *n;

	if (nr == keyless)
		base_len = 0;
	n = node_alloc(t, views_bytes(v, nr, base_len, more, keyless), level);
	n->prefix_len = (uint16_t)(base_len + more);
	n->heap = n->prefix_len;
	memcpy((char *)n + n->cap - n->prefix_len, base, base_len);
	if (more) {
		char *to = (char *)n + n->cap - more;

		more_head = more < v[keyless].head_len ? more : v[keyless].head_len;
		memcpy(to, v[keyless].head, more_head);
		memcpy(to + more_head, v[keyless].tail, more - more_head);
	}
	for (unsigned i = 0; i < nr; i++) {
		size_t in_head = more < v[i].head_len ? more : v[i].head_len;

		if (i < keyless)
			add_entry(n, i, "", 0, "", 0, v[i].ref);
		else
			add_entry(n, i, v[i].head + in_head, v[i].head_len - in_head,
				  v[i].tail + (more - in_head), v[i].tail_len - (more - in_head), v[i].ref);
	}
	return n;
}

struct tree_node *
node_first(struct tree *t, const char *key, size_t key_len, uint32_t ref)
{
	struct node_view v = { "", key, 0, (uint16_t)key_len, ref };

	return node_build(t, 0, &v, 1, "", 0);
}

struct tree_node *
node_root(struct tree *t, struct tree_node *left, const struct node_split *split)
{
	struct node_view v[2] = { { "", "", 0, 0, arena_ref(&t->arena, left) },
				  { "", split->sep, 0, split->sep_len, arena_ref(&t->arena, split->right) } };

	check(left->level + 1 < TREE_DEPTH_MAX);
	return node_build(t, left->level + 1u, v, 2, "", 0);
}

/* ---- insert ---- */

/* The index of the first entry that goes to the right, so that both halves are about the same size. */
static unsigned
middle(const struct node_view *v, unsigned nr)
{
	size_t total = 0, left = 0;

	for (unsigned i = 0; i < nr; i++)
		total += 2 + node_entry_bytes(view_len(&v[i]));
	for (unsigned i = 0; i < nr; i++) {
		size_t e = 2 + node_entry_bytes(view_len(&v[i]));

		/* Its middle lies beyond the middle of all: it is the first on the right. */
		if (2 * left + e > total)
			return i < 1 ? 1 : i;
		left += e;
	}
	return nr - 1;
}

/* What separates v[m - 1] from v[m]: as short as can be for leaves, v[m]'s own key for inner nodes. */
static void
set_separator(struct node_split *split, const struct node_view *v, unsigned m, bool leaf, const char *base,
	      size_t base_len)
{
	size_t len = leaf ? view_common(&v[m - 1], &v[m]) + 1 : view_len(&v[m]);
	size_t in_head = len < v[m].head_len ? len : v[m].head_len;

	split->sep_len = (uint16_t)(base_len + len);
	memcpy(split->sep, base, base_len);
	memcpy(split->sep + base_len, v[m].head, in_head);
	memcpy(split->sep + base_len + in_head, v[m].tail, len - in_head);
}

/* n's entries and the new one, with another prefix or in two nodes. */
static struct tree_node *
rebuild(struct tree *t, struct tree_node *n, unsigned pos, const char *key, size_t key_len, uint32_t ref,
	bool sequential, struct node_split *split)
{
	bool keyless = n->level > 0;
	size_t base_len = node_common(node_prefix(n), n->prefix_len, key, key_len);
	const char *base = node_prefix(n);
	struct node_view *v = t->view;
	struct tree_node *left;
	unsigned nr, m, bytes;

	if (n->nr == keyless)
		base_len = 0;
	check(n->nr < NODE_VIEWS_MAX);
	nr = view_node(n, base_len, v);
	memmove(&v[pos + 1], &v[pos], (nr - pos) * sizeof *v);
	v[pos] = (struct node_view){ "", key + base_len, 0, (uint16_t)(key_len - base_len), ref };
	nr++;
	bytes = views_bytes(v, nr, base_len, views_common(v, nr, keyless), keyless);
	if (bytes <= NODE_BYTES || nr <= NODE_ENTRIES_MIN) {
		left = node_build(t, n->level, v, nr, base, base_len);
		limbo_node(t, n);
		return left;
	}
	/* Where the new key lies before or after all that share the prefix, it goes apart, so that they keep it: one short key
	 * among a hundred long and similar ones must not make a node of a hundred long ones.  Where keys come in order, what
	 * lies before is complete and stays full. */
	if (base_len < n->prefix_len || sequential)
		m = pos == nr - 1 ? pos : pos + 1;
	else
		m = middle(v, nr);
	set_separator(split, v, m, !keyless, base, base_len);
	left = node_build(t, n->level, v, m, base, base_len);
	split->right = node_build(t, n->level, v + m, nr - m, base, base_len);
	limbo_node(t, n);
	return left;
}

struct tree_node *
node_insert(struct tree *t, struct tree_node *n, unsigned pos, const char *key, size_t key_len, uint32_t ref,
	    struct node_split *split)
{
	bool mine = n->birth == t->gen;
	bool sequential = t->last_node == n && pos == t->last_pos + 1;
	bool shares = key_len >= n->prefix_len && memcmp(key, node_prefix(n), n->prefix_len) == 0;
	size_t suffix_len = key_len - n->prefix_len;
	struct tree_node *c = n;
	unsigned need, bytes;

	split->right = NULL;
	if (!shares)
		return rebuild(t, n, pos, key, key_len, ref, false, split);
	need = 2 + node_entry_bytes(suffix_len);
	bytes = node_live(n) + need;
	if (bytes > NODE_BYTES && n->nr >= NODE_ENTRIES_MIN) {
		c = rebuild(t, n, pos, key, key_len, ref, sequential, split);
		if (!c->level) {
			t->last_node = pos < c->nr ? c : split->right;
			t->last_pos = pos < c->nr ? pos : pos - c->nr;
		}
		return c;
	}
	if (!mine || NODE_HEADER + 2u * n->nr + n->heap + need > n->cap) {
		/* A node that grows within one batch, in order, gets its full size at once. */
		c = copy(t, n, mine && sequential && bytes < NODE_BYTES ? NODE_BYTES : bytes);
		limbo_node(t, n);
	}
	add_entry(c, pos, key + c->prefix_len, suffix_len, "", 0, ref);
	if (!c->level) {
		t->last_node = c;
		t->last_pos = pos;
	}
	return c;
}

/* ---- remove ---- */

struct tree_node *
node_remove(struct tree *t, struct tree_node *n, unsigned pos)
{
	struct tree_node *c;
	unsigned len, nr;

	t->last_node = NULL;
	if (n->nr == 1) {
		limbo_node(t, n);
		return NULL;
	}
	if (n->birth == t->gen && (pos > 0 || n->level == 0)) {
		node_suffix(n, pos, &len);
		n->dead = (uint16_t)(n->dead + node_entry_bytes(len));
		n->nr--;
		memmove(&n->slot[pos], &n->slot[pos + 1], (n->nr - pos) * sizeof n->slot[0]);
		return n;
	}
	check(n->nr <= NODE_VIEWS_MAX);
	nr = view_node(n, n->prefix_len, t->view);
	nr--;
	memmove(&t->view[pos], &t->view[pos + 1], (nr - pos) * sizeof t->view[0]);
	c = node_build(t, n->level, t->view, nr, node_prefix(n), n->prefix_len);
	limbo_node(t, n);
	return c;
}

struct tree_node *
node_merge(struct tree *t, struct tree_node *left, struct tree_node *right, const char *sep, size_t sep_len)
{
	bool keyless = left->level > 0;
	const char *base = node_prefix(left->nr == keyless ? right : left);
	size_t base_len =
		node_common(node_prefix(left), left->prefix_len, node_prefix(right), right->prefix_len);
	struct node_view *v = t->view;
	struct tree_node *c;
	unsigned nr, r;

	/* A cheap look first: the prefixes in common cannot make it smaller by more than this. */
	if (node_live(left) + node_live(right) > NODE_MERGED + NODE_BYTES / 4)
		return NULL;
	if (keyless)
		base_len = node_common(base, base_len, sep, sep_len);
	nr = view_node(left, base_len, v);
	r = nr;
	nr += view_node(right, base_len, v + nr);
	if (keyless)
		v[r] = (struct node_view){ "", sep + base_len, 0, (uint16_t)(sep_len - base_len), v[r].ref };
	if (views_bytes(v, nr, base_len, views_common(v, nr, keyless), keyless) > NODE_MERGED)
		return NULL;
	c = node_build(t, left->level, v, nr, base, base_len);
	limbo_node(t, left);
	limbo_node(t, right);
	t->last_node = NULL;
	return c;
}
