/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree against a sorted array: loads, random puts, deletes, lookups, walks and pins over several kinds of
 * keys.  SEED= repeats a run.
 */
#include "extent/index/quiesce.h"
#include "extent/index/tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <time.h>
#include <setjmp.h>
#include <cmocka.h>

#define KEYS 3000

static uint64_t seed;

static uint64_t
rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* ---- keys and records ---- */

struct key {
	size_t len;
	char *bytes;
};

/* What a record says about itself: checked whenever one is found. */
struct rec {
	uint64_t id;    /* index of its key */
	uint64_t stamp; /* counts up */
	uint64_t gen;
	char pad[56];
};

enum kind { HEX, DEEP, LONG, BINARY, MIXED, KIND_NR };

static void
make_key(struct key *k, enum kind kind, uint64_t i, uint64_t *s)
{
	char buf[TREE_KEY_MAX + 64];
	size_t len = 0;

	switch (kind) {
	case HEX: /* hashes, 66 bytes in all */
		len = (size_t)sprintf(buf, "okv%c%016llx%016llx%016llx%014llx", 0, (unsigned long long)rnd(s),
				      (unsigned long long)rnd(s), (unsigned long long)rnd(s),
				      (unsigned long long)(rnd(s) >> 8));
		break;
	case DEEP: /* paths that share much */
		len = (size_t)sprintf(buf, "obucket%cdata/%llu/images/%05llu/%llu.bin", 0,
				      (unsigned long long)(rnd(s) % 3), (unsigned long long)(rnd(s) % 50),
				      (unsigned long long)i);
		break;
	case LONG: /* long, similar up to the end */
		len = 900 + rnd(s) % 180;
		memset(buf, 'x', len);
		if (rnd(s) % 2)
			buf[rnd(s) % len] = 'y';
		len += (size_t)sprintf(buf + len, "%llu", (unsigned long long)i);
		break;
	case BINARY: /* any bytes; prefixes of each other */
		len = 1 + rnd(s) % 6;
		for (size_t j = 0; j < len; j++)
			buf[j] = (char)(rnd(s) % 3 ? 0xff : rnd(s) % 3);
		memcpy(buf + len, &i, 3);
		len += 3;
		break;
	default:
		make_key(k, (enum kind)(rnd(s) % MIXED), i, s);
		return;
	}
	k->len = len;
	k->bytes = malloc(len);
	memcpy(k->bytes, buf, len);
}

static int
key_cmp(const void *va, const void *vb)
{
	const struct key *a = va, *b = vb;
	int c = memcmp(a->bytes, b->bytes, a->len < b->len ? a->len : b->len);

	return c ? c : (a->len > b->len) - (a->len < b->len);
}

/* ---- the model: keys sorted, a record or none for each ---- */

struct model {
	struct key key[KEYS];
	struct rec *rec[KEYS];
	uint64_t stamp[KEYS]; /* of rec; kept apart, so that a lost record is seen */
	int nr;
};

static void
model_init(struct model *m, enum kind kind, uint64_t *s)
{
	int nr = 0;

	memset(m, 0, sizeof *m);
	for (int i = 0; i < KEYS; i++)
		make_key(&m->key[i], kind, (uint64_t)i, s);
	qsort(m->key, KEYS, sizeof m->key[0], key_cmp);
	for (int i = 0; i < KEYS; i++) {
		if (nr && key_cmp(&m->key[nr - 1], &m->key[i]) == 0)
			free(m->key[i].bytes);
		else
			m->key[nr++] = m->key[i];
	}
	m->nr = nr;
}

static void
model_fini(struct model *m)
{
	for (int i = 0; i < m->nr; i++)
		free(m->key[i].bytes);
}

/* Walks root and compares with what the model held when the copies were made. */
static void
compare_walk(const struct tree *t, const struct tree_node *root, const struct model *m, const uint64_t *stamp)
{
	struct tree_cursor c;
	bool more;
	int i = 0;

	tree_cursor_init(&c, t, root);
	for (more = tree_seek(&c, "", 0, false); more; more = tree_next(&c), i++) {
		struct rec *r = c.rec;

		while (i < m->nr && !stamp[i])
			i++;
		assert_true(i < m->nr);
		assert_int_equal(c.key_len, m->key[i].len);
		assert_memory_equal(c.key, m->key[i].bytes, c.key_len);
		assert_int_equal(r->id, i);
		assert_int_equal(r->stamp, stamp[i]);
	}
	while (i < m->nr && !stamp[i])
		i++;
	assert_int_equal(i, m->nr);
	assert_false(tree_next(&c));
}

static void
compare_seeks(const struct tree *t, const struct model *m, uint64_t *s)
{
	struct tree_cursor c;

	tree_cursor_init(&c, t, tree_root(t));
	for (int n = 0; n < 20; n++) {
		int i = (int)(rnd(s) % (uint64_t)m->nr), want;
		bool after = rnd(s) % 2, found;
		size_t len = rnd(s) % 2 ? m->key[i].len : rnd(s) % (m->key[i].len + 1);
		struct key probe = { len, m->key[i].bytes };

		for (want = 0; want < m->nr; want++) {
			int cmp = key_cmp(&m->key[want], &probe);

			if (m->stamp[want] && (after ? cmp > 0 : cmp >= 0))
				break;
		}
		found = tree_seek(&c, probe.bytes, probe.len, after);
		assert_int_equal(found, want < m->nr);
		if (!found)
			continue;
		assert_int_equal(((struct rec *)c.rec)->id, want);
		/* and from there past all that share a prefix */
		len = rnd(s) % (m->key[want].len + 1);
		for (i = want; want < m->nr; want++) {
			if (m->stamp[want] &&
			    (m->key[want].len < len || memcmp(m->key[want].bytes, m->key[i].bytes, len) != 0))
				break;
		}
		found = tree_skip(&c, len);
		assert_int_equal(found, want < m->nr);
		if (found)
			assert_int_equal(((struct rec *)c.rec)->id, want);
	}
}

struct pinned {
	const struct tree_node *root;
	uint64_t stamp[KEYS];
	bool once; /* walked bit by bit, and what lies behind is given up */
	bool more;
	struct tree_cursor c;
	int at;
};

static void
pin(struct tree *t, struct pinned *p, const struct model *m, bool once)
{
	tree_pin(t, &p->root);
	memcpy(p->stamp, m->stamp, sizeof m->stamp);
	p->once = once;
	p->at = 0;
	if (!once)
		return;
	tree_cursor_init(&p->c, t, p->root);
	tree_cursor_once(&p->c);
	p->more = tree_seek(&p->c, "", 0, false);
}

static void
walk_on(struct pinned *p, const struct model *m, uint64_t steps)
{
	for (; p->more && steps; steps--, p->at++, p->more = tree_next(&p->c)) {
		while (p->at < m->nr && !p->stamp[p->at])
			p->at++;
		assert_true(p->at < m->nr);
		assert_int_equal(p->c.key_len, m->key[p->at].len);
		assert_memory_equal(p->c.key, m->key[p->at].bytes, p->c.key_len);
		assert_int_equal(((struct rec *)p->c.rec)->stamp, p->stamp[p->at]);
	}
}

static void
unpin(struct tree *t, struct pinned *p, const struct model *m)
{
	if (p->once) {
		walk_on(p, m, UINT64_MAX);
		while (p->at < m->nr && !p->stamp[p->at])
			p->at++;
		assert_int_equal(p->at, m->nr);
	} else {
		compare_walk(t, p->root, m, p->stamp);
	}
	tree_unpin(t);
}

static void
change(struct tree *t, struct model *m, int i, bool put, uint64_t *counter)
{
	struct rec *old, *r;

	assert_ptr_equal(tree_find(t, m->key[i].bytes, m->key[i].len), m->rec[i]);
	if (put) {
		assert_int_equal(tree_reserve(t, false), 0);
		r = tree_rec_alloc(t, sizeof *r);
		assert_non_null(r);
		*r = (struct rec){ .id = (uint64_t)i, .stamp = ++*counter, .gen = tree_gen(t) };
		old = tree_put(t, m->key[i].bytes, m->key[i].len, r);
	} else {
		assert_int_equal(tree_reserve(t, true), 0);
		r = NULL;
		old = tree_del(t, m->key[i].bytes, m->key[i].len);
	}
	assert_ptr_equal(old, m->rec[i]);
	if (old)
		tree_rec_retire(t, old, *counter % 7 ? old->gen : 0);
	m->rec[i] = r;
	m->stamp[i] = r ? r->stamp : 0;
}

/* A start: some of the keys in order, a few again and out of order. */
static void
load(struct tree *t, struct model *m, uint64_t *s, uint64_t *counter)
{
	struct tree_load *l = tree_load_new(t);
	uint64_t one_of = 1 + rnd(s) % 3;

	assert_non_null(l);
	for (int n = 0; n < m->nr; n++) {
		int i = rnd(s) % 256 ? n : (int)(rnd(s) % (uint64_t)m->nr);
		struct rec *r, *old;

		if (rnd(s) % one_of)
			continue;
		assert_int_equal(tree_reserve(t, true), 0);
		r = tree_rec_alloc(t, sizeof *r);
		assert_non_null(r);
		*r = (struct rec){ .id = (uint64_t)i, .stamp = ++*counter, .gen = tree_gen(t) };
		old = tree_load_put(l, m->key[i].bytes, m->key[i].len, r);
		assert_ptr_equal(old, m->rec[i]);
		if (old)
			tree_rec_free(t, old);
		m->rec[i] = r;
		m->stamp[i] = r->stamp;
	}
	tree_load_end(l);
	tree_publish(t);
	compare_walk(t, tree_root(t), m, m->stamp);
	compare_seeks(t, m, s);
}

static void
model_run(enum kind kind, int rounds, uint64_t s)
{
	static struct model m;
	static struct pinned snap;
	struct quiesce *q;
	struct quiesce_user *u;
	struct tree *t;
	struct tree_stats st;
	uint64_t counter = 0;
	bool is_pinned = false;

	model_init(&m, kind, &s);
	assert_int_equal(quiesce_new(4, &q), 0);
	u = quiesce_join(q);
	assert_int_equal(tree_new(64 << 20, q, &t), 0);
	if (rnd(&s) % 4)
		load(t, &m, &s, &counter);
	for (int round = 0; round < rounds; round++) {
		int batch = (int)(rnd(&s) % 200);
		bool turns = rnd(&s) % 8 == 0; /* the state is pinned, or the pin ends */
		int puts = round / 25 % 4;     /* of 4: grow, shrink, empty, ... */
		bool sequential = rnd(&s) % 8 == 0;
		int at = (int)(rnd(&s) % (uint64_t)m.nr);

		for (int i = 0; i < batch; i++) {
			at = sequential ? (at + 1) % m.nr : (int)(rnd(&s) % (uint64_t)m.nr);
			change(t, &m, at, (int)(rnd(&s) % 4) < 4 - puts || sequential, &counter);
		}
		tree_publish(t);
		quiesce_point(u);
		tree_reclaim(t);
		if (turns && is_pinned)
			unpin(t, &snap, &m);
		else if (turns)
			pin(t, &snap, &m, rnd(&s) % 2);
		is_pinned ^= turns;
		if (is_pinned && snap.once)
			walk_on(&snap, &m, rnd(&s) % 100);
		if (round % 10 == 0) {
			compare_walk(t, tree_root(t), &m, m.stamp);
			compare_seeks(t, &m, &s);
		}
	}
	/* Everything goes: nothing may be left over. */
	if (is_pinned)
		unpin(t, &snap, &m);
	for (int i = 0; i < m.nr; i++)
		change(t, &m, i, false, &counter);
	tree_publish(t);
	assert_null(tree_root(t));
	quiesce_point(u);
	tree_reclaim(t);
	tree_stats(t, &st);
	assert_int_equal(st.keys, 0);
	assert_int_equal(st.nodes, 0);
	assert_int_equal(st.node_bytes, 0);
	assert_int_equal(st.rec_bytes, 0);
	assert_int_equal(st.limbo, 0);
	assert_int_equal(tree_used_bytes(t), 0);
	tree_free(t);
	quiesce_leave(u);
	quiesce_free(q);
	model_fini(&m);
}

static void
test_model(void **state)
{
	for (int kind = 0; kind < KIND_NR; kind++) {
		for (uint64_t i = 0; i < 3; i++)
			model_run((enum kind)kind, 200, seed + i * 1000003);
	}
}

/* ---- order, extremes ---- */

static void
put_number(struct tree *t, uint64_t i, const char *prefix)
{
	char key[80];
	int n = sprintf(key, "%s%060llu", prefix, (unsigned long long)i);
	struct rec *r;

	assert_int_equal(tree_reserve(t, false), 0);
	r = tree_rec_alloc(t, sizeof *r);
	assert_non_null(r);
	r->id = i;
	assert_null(tree_put(t, key, (size_t)n, r));
}

/* Keys that are put in order leave full nodes. */
static void
test_sequential(void **state)
{
	struct quiesce *q;
	struct tree *t;
	struct tree_stats st;

	assert_int_equal(quiesce_new(1, &q), 0);
	assert_int_equal(tree_new(64 << 20, q, &t), 0);
	for (uint64_t i = 0; i < 50000; i++)
		put_number(t, i, "key/");
	tree_publish(t);
	tree_stats(t, &st);
	assert_int_equal(st.keys, 50000);
	/* 64-byte keys, of which a node's share nearly all */
	assert_true(st.node_bytes / st.keys < 24);
	tree_free(t);
	quiesce_free(q);
}

/* Both ends of the alphabet, empty suffixes, the longest key. */
static void
test_extremes(void **state)
{
	static const char max[TREE_KEY_MAX] = { (char)0xff };
	struct quiesce *q;
	struct tree *t;
	struct rec *r[4];

	assert_int_equal(quiesce_new(1, &q), 0);
	assert_int_equal(tree_new(4 << 20, q, &t), 0);
	assert_null(tree_get(t, "a", 1));
	for (int i = 0; i < 6; i++)
		assert_int_equal(tree_reserve(t, false), 0);
	assert_null(tree_del(t, "a", 1));
	for (int i = 0; i < 4; i++)
		r[i] = tree_rec_alloc(t, 40);
	assert_null(tree_put(t, max, sizeof max, r[0]));
	assert_null(tree_put(t, "\0", 1, r[1]));
	assert_null(tree_put(t, max, 1, r[2]));
	assert_null(tree_put(t, max, 2, r[3]));
	assert_null(tree_get(t, max, 1)); /* not published */
	assert_ptr_equal(tree_find(t, max, 1), r[2]);
	tree_publish(t);
	assert_ptr_equal(tree_get(t, max, sizeof max), r[0]);
	assert_ptr_equal(tree_get(t, "\0", 1), r[1]);
	assert_ptr_equal(tree_get(t, max, 1), r[2]);
	assert_ptr_equal(tree_get(t, max, 2), r[3]);
	assert_null(tree_get(t, max, 3));
	tree_unreserve(t);
	tree_free(t);
	quiesce_free(q);
}

/* A full index refuses puts, takes deletes, and is of use again afterwards. */
static void
test_full(void **state)
{
	struct quiesce *q;
	struct tree *t;
	uint64_t n = 0;
	char key[80];

	assert_int_equal(quiesce_new(1, &q), 0);
	assert_int_equal(tree_new(8 << 20, q, &t), 0);
	for (int round = 0; round < 3; round++) {
		for (n = 0;; n++) {
			struct rec *r;
			int len = sprintf(key, "%016llx", (unsigned long long)(n * 0x9e3779b97f4a7c15ull));

			if (tree_reserve(t, false) < 0)
				break;
			r = tree_rec_alloc(t, 300);
			if (!r) {
				tree_unreserve(t);
				break;
			}
			assert_null(tree_put(t, key, (size_t)len, r));
			if (n % 100 == 0) {
				tree_publish(t);
				tree_reclaim(t);
			}
		}
		tree_publish(t);
		tree_reclaim(t);
		assert_true(n > 10000);
		assert_true(tree_used_bytes(t) <= tree_max_bytes(t));
		while (n-- > 0) {
			int len = sprintf(key, "%016llx", (unsigned long long)(n * 0x9e3779b97f4a7c15ull));
			struct rec *r;

			assert_int_equal(tree_reserve(t, true), 0);
			r = tree_del(t, key, (size_t)len);
			assert_non_null(r);
			tree_rec_retire(t, r, 0);
			tree_publish(t);
			tree_reclaim(t);
		}
	}
	tree_free(t);
	quiesce_free(q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_sequential),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_full),
	};
	const char *s = getenv("SEED");

	seed = s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);
	seed = seed ? seed : 1;
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
