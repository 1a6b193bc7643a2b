/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an object takes in the index's memory, and that it stays so when the index grows: 66-byte keys that
 * are hashes (the worst for sharing), records of 80 bytes.
 */
#include "extent/index/quiesce.h"
#include "extent/index/tree.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <time.h>
#include <setjmp.h>
#include <cmocka.h>

#define KEY_BYTES 66
#define REC_BYTES 80
#define AIM_BYTES 160 /* what an object may take */
#define SNAP_BYTES 195

static uint64_t seed;

static uint64_t
rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void
make_key(char *key, uint64_t *s)
{
	memcpy(key, "okv", 4);
	for (int j = 0; j < 4; j++)
		sprintf(key + 4 + 16 * j, "%016llx", (unsigned long long)rnd(s));
}

/* Put in batches, as a leader does.  BENCH=keys for other numbers than the default, with times. */
static void
test_memory(void **state)
{
	const char *env = getenv("BENCH");
	uint64_t nr = env ? strtoull(env, NULL, 0) : 100000, s = seed, found = 0;
	struct quiesce *q;
	struct tree *t;
	struct tree_stats st;
	struct timespec t0, t1, t2, t3;
	struct tree_cursor c;

	assert_int_equal(quiesce_new(1, &q), 0);
	assert_int_equal(tree_new(nr * 200 + (64 << 20), q, &t), 0);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	for (uint64_t i = 0; i < nr; i++) {
		char key[80];

		make_key(key, &s);
		assert_int_equal(tree_reserve(t, false), 0);
		assert_null(tree_put(t, key, KEY_BYTES, tree_rec_alloc(t, REC_BYTES)));
		if (i % 8 == 7) {
			tree_publish(t);
			tree_reclaim(t);
		}
	}
	tree_publish(t);
	tree_reclaim(t);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	tree_stats(t, &st);
	s = seed;
	for (uint64_t i = 0; i < nr; i++) {
		char key[80];

		make_key(key, &s);
		found += tree_get(t, key, KEY_BYTES) != NULL;
	}
	assert_int_equal(found, nr);
	clock_gettime(CLOCK_MONOTONIC, &t2);
	tree_cursor_init(&c, t, tree_root(t));
	for (bool more = tree_seek(&c, "", 0, false); more; more = tree_next(&c))
		found--;
	assert_int_equal(found, 0);
	clock_gettime(CLOCK_MONOTONIC, &t3);
#define US(a, b) ((double)((b).tv_sec - (a).tv_sec) * 1e6 + (double)((b).tv_nsec - (a).tv_nsec) / 1e3)
	printf("%llu keys of 66 bytes, records of 80: %.1f B each (nodes %.1f, records %.1f), depth %llu\n",
	       (unsigned long long)nr, (double)tree_used_bytes(t) / (double)nr,
	       (double)st.node_bytes / (double)nr, (double)st.rec_bytes / (double)nr,
	       (unsigned long long)st.depth);
	printf("put %.3f us, get %.3f us, walk %.3f us each (making the key included)\n",
	       US(t0, t1) / (double)nr, US(t1, t2) / (double)nr, US(t2, t3) / (double)nr);
	assert_true(tree_used_bytes(t) / nr <= AIM_BYTES);
	tree_free(t);
	quiesce_free(q);
}

/* ---- after a start ---- */

struct grown {
	struct quiesce *q;
	struct quiesce_user *u;
	struct tree *t;
	uint64_t nr;
};

static int
by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, KEY_BYTES);
}

static void *
new_rec(struct grown *g)
{
	void *r;

	assert_int_equal(tree_reserve(g->t, false), 0);
	r = tree_rec_alloc(g->t, REC_BYTES);
	assert_non_null(r);
	g->nr++;
	return r;
}

static void
say(const struct grown *g, const char *when, uint64_t at_most)
{
	struct tree_stats st;

	tree_stats(g->t, &st);
	printf("%-28s %8llu keys: %.1f B each (nodes %.1f), %llu nodes\n", when, (unsigned long long)g->nr,
	       (double)tree_used_bytes(g->t) / (double)g->nr, (double)st.node_bytes / (double)g->nr,
	       (unsigned long long)st.nodes);
	assert_int_equal(st.keys, g->nr);
	assert_true(tree_used_bytes(g->t) / g->nr <= at_most);
}

/* More keys in no order; published by the hundred, as by a leader, or all at once, as when a log is read. */
static void
grow(struct grown *g, uint64_t by, bool publishes, uint64_t *s)
{
	char key[80];

	for (uint64_t i = 0; i < by; i++) {
		make_key(key, s);
		assert_null(tree_put(g->t, key, KEY_BYTES, new_rec(g)));
		if (publishes && i % 100 == 0) {
			tree_publish(g->t);
			tree_reclaim(g->t);
			quiesce_point(g->u);
		}
	}
	tree_publish(g->t);
	quiesce_point(g->u);
	tree_reclaim(g->t);
}

/*
 * A snapshot is loaded, the log behind it brings more, then the store is served and grows on.  At no time do
 * the places of nodes that were split lie idle: with full leaves from the snapshot a twentieth more keys
 * makes it 190 bytes each.
 */
static void
run_start(bool log)
{
	uint64_t s = seed, nr = 200000;
	struct grown g = { .nr = 0 };
	struct tree_load *l;
	char(*keys)[80] = malloc(nr * sizeof *keys);

	assert_non_null(keys);
	for (uint64_t i = 0; i < nr; i++)
		make_key(keys[i], &s);
	qsort(keys, nr, sizeof *keys, by_bytes);
	assert_int_equal(quiesce_new(1, &g.q), 0);
	g.u = quiesce_join(g.q);
	assert_int_equal(tree_new(nr * 400 + (64 << 20), g.q, &g.t), 0);
	l = tree_load_new(g.t);
	assert_non_null(l);
	for (uint64_t i = 0; i < nr; i++)
		assert_null(tree_load_put(l, keys[i], KEY_BYTES, new_rec(&g)));
	tree_load_end(l);
	if (log)
		grow(&g, nr / 10, false, &s);
	tree_publish(g.t);
	say(&g, log ? "loaded, with a log" : "loaded", AIM_BYTES);
	for (uint64_t i = 0; i < nr; i++)
		assert_non_null(tree_get(g.t, keys[i], KEY_BYTES));
	for (int i = 0; i < 5; i++) {
		grow(&g, nr / 20, true, &s);
		say(&g, "and grown by a twentieth", AIM_BYTES + 4);
	}
	tree_free(g.t);
	quiesce_leave(g.u);
	quiesce_free(g.q);
	free(keys);
}

static void
test_start(void **state)
{
	run_start(false);
	run_start(true);
}

/* ---- while a snapshot is made ---- */

/*
 * A fifth more keys come while a pinned state is walked.  What was walked is not kept twice: 25 bytes a key
 * less than with a pin that holds everything up to its end.
 */
static void
test_snapshot(void **state)
{
	uint64_t s = seed, nr = 100000, most = 0;
	const struct tree_node *root;
	struct grown g = { .nr = 0 };
	struct tree_cursor c;
	bool more;

	assert_int_equal(quiesce_new(1, &g.q), 0);
	g.u = quiesce_join(g.q);
	assert_int_equal(tree_new(nr * 600 + (64 << 20), g.q, &g.t), 0);
	grow(&g, nr, true, &s);
	tree_pin(g.t, &root);
	tree_cursor_init(&c, g.t, root);
	tree_cursor_once(&c);
	more = tree_seek(&c, "", 0, false);
	for (int i = 0; i < 100; i++) {
		grow(&g, nr / 500, true, &s);
		for (uint64_t n = 0; more && n < nr / 100; n++)
			more = tree_next(&c);
		most = tree_used_bytes(g.t) / g.nr > most ? tree_used_bytes(g.t) / g.nr : most;
	}
	assert_false(more);
	printf("%llu keys, then a fifth more while those are walked: at most %llu B each\n",
	       (unsigned long long)nr, (unsigned long long)most);
	assert_true(most <= SNAP_BYTES);
	tree_unpin(g.t);
	tree_free(g.t);
	quiesce_leave(g.u);
	quiesce_free(g.q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_snapshot),
	};
	const char *env = getenv("SEED");

	seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL);
	seed = seed ? seed : 1;
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
