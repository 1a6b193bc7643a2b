/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree's readers, and a helper that walks pinned states, beside a writer: each on a thread of its own.
 * SEED= repeats what the writer does.
 */
#include "base/check.h"
#include "extent/index/quiesce.h"
#include "extent/index/tree.h"

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

static uint64_t seed;

static uint64_t
rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

struct rec {
	uint64_t id; /* of its key: checked whenever one is found */
	uint64_t gen;
};

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
		if (sn->keys % 2)
			tree_cursor_once(&c);
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
	int batches = 0, pins = 0;
	bool is_pinned = false;
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

			assert_int_equal(tree_reserve(par_tree, false), 0);
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
		} while (tree_used_bytes(par_tree) > PAR_BYTES / 2 &&
			 (!is_pinned || atomic_load(&sn.state) == 1) && sched_yield() == 0);
		batches++;
		if (!is_pinned && rnd(&s) % 64 == 0) {
			tree_pin(par_tree, &sn.root);
			is_pinned = true;
			sn.keys = st.keys;
			atomic_store(&sn.state, 1);
		} else if (is_pinned && atomic_load(&sn.state) == 2) {
			tree_unpin(par_tree);
			is_pinned = false;
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
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_concurrent) };
	const char *s = getenv("SEED");

	seed = s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);
	seed = seed ? seed : 1;
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
