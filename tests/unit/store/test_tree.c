/*
 * The tree against a sorted array: random puts, deletes, lookups, walks and pins over several kinds of keys;
 * and readers that walk while a writer writes.  SEED= repeats a run.
 */
#include "base/check.h"
#include "store/quiesce.h"
#include "store/tree.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
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
	int handle;
	const struct tree_node *root;
	uint64_t stamp[KEYS];
};

static void
change(struct tree *t, struct model *m, int i, bool put, uint64_t *counter)
{
	struct rec *old, *r;

	assert_ptr_equal(tree_find(t, m->key[i].bytes, m->key[i].len), m->rec[i]);
	if (put) {
		assert_int_equal(tree_reserve(t, 1), 0);
		r = tree_rec_alloc(t, sizeof *r);
		assert_non_null(r);
		*r = (struct rec){ .id = (uint64_t)i, .stamp = ++*counter, .gen = tree_gen(t) };
		old = tree_put(t, m->key[i].bytes, m->key[i].len, r);
	} else {
		assert_int_equal(tree_reserve_deletes(t, 1), 0);
		r = NULL;
		old = tree_del(t, m->key[i].bytes, m->key[i].len);
	}
	assert_ptr_equal(old, m->rec[i]);
	if (old)
		tree_rec_retire(t, old, *counter % 7 ? old->gen : 0);
	m->rec[i] = r;
	m->stamp[i] = r ? r->stamp : 0;
}

static void
model_run(enum kind kind, int rounds, uint64_t s)
{
	static struct model m;
	static struct pinned pin[TREE_PINS_MAX];
	struct quiesce *q;
	struct quiesce_user *u;
	struct tree *t;
	struct tree_stats st;
	uint64_t counter = 0;
	bool pinned[TREE_PINS_MAX] = { false };

	model_init(&m, kind, &s);
	assert_int_equal(quiesce_new(4, &q), 0);
	u = quiesce_join(q);
	assert_int_equal(tree_new(64 << 20, q, &t), 0);
	for (int round = 0; round < rounds; round++) {
		int batch = (int)(rnd(&s) % 200), p = (int)(rnd(&s) % (TREE_PINS_MAX * 8));
		int puts = round / 25 % 4; /* of 4: grow, shrink, empty, ... */
		bool sequential = rnd(&s) % 8 == 0;
		int at = (int)(rnd(&s) % (uint64_t)m.nr);

		for (int i = 0; i < batch; i++) {
			at = sequential ? (at + 1) % m.nr : (int)(rnd(&s) % (uint64_t)m.nr);
			change(t, &m, at, (int)(rnd(&s) % 4) < 4 - puts || sequential, &counter);
		}
		tree_publish(t);
		quiesce_point(u);
		tree_reclaim(t);
		if (p < TREE_PINS_MAX && pinned[p]) {
			compare_walk(t, pin[p].root, &m, pin[p].stamp);
			tree_unpin(t, pin[p].handle);
			pinned[p] = false;
		} else if (p < TREE_PINS_MAX) {
			pin[p].handle = tree_pin(t, &pin[p].root);
			assert_true(pin[p].handle >= 0);
			memcpy(pin[p].stamp, m.stamp, sizeof m.stamp);
			pinned[p] = true;
		}
		if (round % 10 == 0) {
			compare_walk(t, tree_root(t), &m, m.stamp);
			compare_seeks(t, &m, &s);
		}
	}
	/* Everything goes: nothing may be left over. */
	for (int i = 0; i < TREE_PINS_MAX; i++) {
		if (!pinned[i])
			continue;
		compare_walk(t, pin[i].root, &m, pin[i].stamp);
		tree_unpin(t, pin[i].handle);
	}
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
	assert_int_equal(st.used_bytes, 0);
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

	assert_int_equal(tree_reserve(t, 1), 0);
	r = tree_rec_alloc(t, sizeof *r);
	assert_non_null(r);
	r->id = i;
	assert_null(tree_put(t, key, (size_t)n, r));
}

/* Keys that come in order (a snapshot being loaded) leave full nodes. */
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
	assert_int_equal(tree_reserve(t, 6), 0);
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
	assert_true(tree_rec_bytes(r[0]) >= 40);
	tree_unreserve(t, 1);
	tree_free(t);
	quiesce_free(q);
}

/* A full index refuses puts, takes deletes, and is of use again afterwards. */
static void
test_full(void **state)
{
	struct quiesce *q;
	struct tree *t;
	struct tree_stats st;
	uint64_t n = 0;
	char key[80];

	assert_int_equal(quiesce_new(1, &q), 0);
	assert_int_equal(tree_new(8 << 20, q, &t), 0);
	for (int round = 0; round < 3; round++) {
		for (n = 0;; n++) {
			struct rec *r;
			int len = sprintf(key, "%016llx", (unsigned long long)(n * 0x9e3779b97f4a7c15ull));

			if (tree_reserve(t, 1) < 0)
				break;
			r = tree_rec_alloc(t, 300);
			if (!r) {
				tree_unreserve(t, 1);
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
		tree_stats(t, &st);
		assert_true(st.used_bytes <= st.max_bytes);
		while (n-- > 0) {
			int len = sprintf(key, "%016llx", (unsigned long long)(n * 0x9e3779b97f4a7c15ull));
			struct rec *r;

			assert_int_equal(tree_reserve_deletes(t, 1), 0);
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

/*
 * What an object takes, all in: 66-byte keys that are hashes (the worst for sharing), records of 80 bytes,
 * put in batches as a leader does. BENCH=keys for other numbers than the default, with times.
 */
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
		char key[80] = "okv\0";

		for (int j = 0; j < 4; j++)
			sprintf(key + 4 + 16 * j, "%016llx", (unsigned long long)rnd(&s));
		assert_int_equal(tree_reserve(t, 1), 0);
		assert_null(tree_put(t, key, 66, tree_rec_alloc(t, 80)));
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
		char key[80] = "okv\0";

		for (int j = 0; j < 4; j++)
			sprintf(key + 4 + 16 * j, "%016llx", (unsigned long long)rnd(&s));
		found += tree_get(t, key, 66) != NULL;
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
	       (unsigned long long)nr, (double)st.used_bytes / (double)nr, (double)st.node_bytes / (double)nr,
	       (double)st.rec_bytes / (double)nr, (unsigned long long)st.depth);
	printf("put %.3f us, get %.3f us, walk %.3f us each (making the key included)\n",
	       US(t0, t1) / (double)nr, US(t1, t2) / (double)nr, US(t2, t3) / (double)nr);
	assert_true(st.used_bytes / nr <= 160);
	tree_free(t);
	quiesce_free(q);
}

/* ---- readers beside a writer ---- */

#define PAR_KEYS 2000
#define PAR_READERS 2
#define PAR_BYTES (16u << 20)

static struct tree *par_tree;
static struct quiesce *par_q;
static _Atomic bool par_stop;
static _Atomic int par_turns;

static int
par_key(uint64_t i, char *buf)
{
	return sprintf(buf, "bucket/%08llx/%llu", (unsigned long long)(i * 2654435761u % 0xffffffff),
		       (unsigned long long)i);
}

static void *
par_reader(void *arg)
{
	struct quiesce_user *u = quiesce_join(par_q);
	uint64_t s = seed + (uint64_t)(uintptr_t)arg;
	struct tree_cursor c;
	char key[64], prev[64];

	while (!atomic_load(&par_stop)) {
		for (int i = 0; i < 50; i++) {
			uint64_t id = rnd(&s) % PAR_KEYS;
			struct rec *r = tree_get(par_tree, key, (size_t)par_key(id, key));

			check(!r || r->id == id);
		}
		tree_cursor_init(&c, par_tree, tree_root(par_tree));
		prev[0] = 0;
		if (tree_seek(&c, "bucket/8", 8, false)) {
			for (int i = 0; i < 100; i++) {
				check(par_key(((struct rec *)c.rec)->id, key) == c.key_len);
				check(memcmp(key, c.key, c.key_len) == 0);
				check(strcmp(prev, key) < 0);
				strcpy(prev, key);
				if (!tree_next(&c))
					break;
			}
		}
		atomic_fetch_add(&par_turns, 1);
		if (rnd(&s) % 16 == 0) {
			quiesce_sleep(u);
			nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
			quiesce_wake(u);
		} else {
			quiesce_point(u);
		}
	}
	quiesce_leave(u);
	return NULL;
}

struct snap {
	const struct tree_node *root;
	uint64_t keys;
	_Atomic int state; /* 0 idle, 1 walk, 2 done */
};

/* A helper that walks pinned states and takes part in nothing. */
static void *
par_snapshot(void *arg)
{
	struct snap *sn = arg;
	struct tree_cursor c;
	char key[64];

	while (!atomic_load(&par_stop)) {
		uint64_t n = 0;

		if (atomic_load(&sn->state) != 1) {
			nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
			continue;
		}
		tree_cursor_init(&c, par_tree, sn->root);
		for (bool more = tree_seek(&c, "", 0, false); more; more = tree_next(&c), n++) {
			check(par_key(((struct rec *)c.rec)->id, key) == c.key_len);
			check(memcmp(key, c.key, c.key_len) == 0);
		}
		check(n == sn->keys);
		atomic_store(&sn->state, 2);
	}
	return NULL;
}

static void
test_concurrent(void **state)
{
	static struct snap sn;
	pthread_t th[PAR_READERS], snapper;
	uint64_t s = seed;
	int pin = -1, batches = 0, pins = 0;
	struct tree_stats st;

	assert_int_equal(quiesce_new(PAR_READERS, &par_q), 0);
	assert_int_equal(tree_new(PAR_BYTES, par_q, &par_tree), 0);
	for (intptr_t i = 0; i < PAR_READERS; i++)
		pthread_create(&th[i], NULL, par_reader, (void *)i);
	pthread_create(&snapper, NULL, par_snapshot, &sn);
	while (batches < 3000 || atomic_load(&par_turns) < 1000 || pins < 5) {
		for (uint64_t n = rnd(&s) % 10; n-- > 0;) {
			uint64_t id = rnd(&s) % PAR_KEYS;
			char key[64];
			size_t len = (size_t)par_key(id, key);
			struct rec *r = NULL, *old;

			assert_int_equal(tree_reserve(par_tree, 1), 0);
			if (rnd(&s) % 3) {
				r = tree_rec_alloc(par_tree, sizeof *r);
				assert_non_null(r);
				*r = (struct rec){ .id = id, .gen = tree_gen(par_tree) };
				old = tree_put(par_tree, key, len, r);
			} else {
				old = tree_del(par_tree, key, len);
			}
			if (old)
				tree_rec_retire(par_tree, old, old->gen);
		}
		tree_publish(par_tree);
		/* A reader or a walker that does not get the CPU holds everything up: what waits is bounded
		 * by waiting for it. */
		do {
			tree_reclaim(par_tree);
			tree_stats(par_tree, &st);
		} while (st.used_bytes > PAR_BYTES / 2 && (pin < 0 || atomic_load(&sn.state) == 1) &&
			 sched_yield() == 0);
		batches++;
		if (pin < 0 && rnd(&s) % 64 == 0) {
			pin = tree_pin(par_tree, &sn.root);
			sn.keys = st.keys;
			atomic_store(&sn.state, 1);
		} else if (pin >= 0 && atomic_load(&sn.state) == 2) {
			tree_unpin(par_tree, pin);
			pin = -1;
			pins++;
			atomic_store(&sn.state, 0);
		}
	}
	atomic_store(&par_stop, true);
	for (int i = 0; i < PAR_READERS; i++)
		pthread_join(th[i], NULL);
	pthread_join(snapper, NULL);
	tree_free(par_tree);
	quiesce_free(par_q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),    cmocka_unit_test(test_sequential),
		cmocka_unit_test(test_extremes), cmocka_unit_test(test_full),
		cmocka_unit_test(test_memory),   cmocka_unit_test(test_concurrent),
	};
	const char *s = getenv("SEED");

	seed = s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);
	seed = seed ? seed : 1;
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
