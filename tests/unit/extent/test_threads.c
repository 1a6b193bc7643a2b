/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three ports on three threads, committing, reading and deleting at once, sleeping in between; then the same
 * with a port that leaves and comes back.  For ThreadSanitizer as much as for itself.  SEED= repeats the
 * choices.
 */
#include "fixture.h"

#include <poll.h>
#include <pthread.h>

#define THREADS 3
#define SHARED 8 /* keys that all of them write */

static uint64_t seed;
static int ops_per_thread = 300;

struct thread {
	pthread_t id;
	int nr;
	uint64_t rng;
	struct loop l;
};

/* A pause as a core makes one: asleep for the store, woken by the doorbell. */
static void
nap(struct loop *mine)
{
	struct pollfd pfd = { .fd = mine->mb.efd, .events = POLLIN };

	if (!mailbox_sleep(&mine->mb))
		return;
	store_turn(mine->p, TURN_SLEEPS);
	poll(&pfd, 1, 3);
	store_turn(mine->p, TURN_WAKES);
	mailbox_wake(&mine->mb);
}

/* Whatever a shared key holds, it is one of the objects that somebody wrote, whole: its seed is its size. */
static void
check_shared(struct loop *mine, const char *name)
{
	struct store_obj *obj = calloc(1, sizeof *obj);
	int r = obj_open(mine, "b", name, obj);

	check(r == 0 || r == -ENOENT);
	if (r == 0)
		check(obj_read(mine, obj, obj->size_bytes) == 0);
	store_close(mine->p, obj);
	free(obj);
}

static void
one_op(struct thread *t, int i)
{
	struct loop *mine = &t->l;
	char name[32];
	uint64_t size = 1 + rnd(&t->rng) % (rnd(&t->rng) % 4 ? 20000 : 1500000);

	switch (rnd(&t->rng) % 8) {
	case 0:
		nap(mine);
		break;
	case 1:
	case 2:
		snprintf(name, sizeof name, "shared%d", (int)(rnd(&t->rng) % SHARED));
		check(put_simple(mine, "b", name, size, size) == 0);
		break;
	case 3:
	case 4:
		snprintf(name, sizeof name, "shared%d", (int)(rnd(&t->rng) % SHARED));
		check_shared(mine, name);
		break;
	case 5:
		snprintf(name, sizeof name, "shared%d", (int)(rnd(&t->rng) % SHARED));
		check(obj_delete(mine, "b", name, NULL) >= 0);
		break;
	default:
		snprintf(name, sizeof name, "own%d-%d", t->nr, i % 10);
		check(put_simple(mine, "b", name, size, (uint64_t)i) == 0);
		check(obj_check(mine, "b", name, size, (uint64_t)i) == 0);
		break;
	}
}

static void *
thread_main(void *cookie)
{
	struct thread *t = cookie;

	loop_start(&t->l, st);
	for (int i = 0; i < ops_per_thread; i++) {
		one_op(t, i);
		/* leaves, with whatever it leads, and comes back */
		if (t->nr == 2 && i % 60 == 59) {
			loop_stop(&t->l);
			loop_start(&t->l, st);
		}
	}
	loop_stop(&t->l);
	return NULL;
}

static void
test_threads(void **state)
{
	/* one that refuses nothing: readers of what is removed are counted */
	static const struct store_pattern_quota quota = {
		"b", 1, true, { STORE_UNBOUNDED, 1ull << 40, STORE_UNBOUNDED }, STORE_UNBOUNDED
	};
	static struct thread t[THREADS];
	struct store_quota_info use;
	struct store_unit_info info;

	assert_int_equal(make_store(256 * MIB), 0);
	assert_int_equal(store_set_quotas(st, &quota, 1), 0);
	loop_stop(&l);
	for (int i = 0; i < THREADS; i++) {
		t[i].nr = i;
		t[i].rng = seed + (uint64_t)i;
		assert_int_equal(pthread_create(&t[i].id, NULL, thread_main, &t[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i].id, NULL);
	assert_int_equal(store_bucket_quota(st, "b", 1, &use), 0);
	assert_true(use.in_progress_bytes == 0 && use.used.objects > 0);
	store_unit_info(st, 0, &info);
	assert_int_equal(info.state, UNIT_OK);
	assert_int_equal(store_unit_number(&info, "pins"), 0);
	assert_int_equal(store_unit_number(&info, "crc_errors"), 0);
	store_stop(st);
	st = NULL;
	assert_int_equal(store_fsck(&conf, false, NULL, NULL), 0);
	remove_store(NULL);
}

/* Two ports race for one key that must not exist: exactly one wins. */
static _Atomic int winners, ready;

static void *
race_main(void *cookie)
{
	/* Asked for by the client in the one half, told by its access key in the other. */
	struct store_pre absent = { .kind = PRE_ABSENT }, keep = { .keep = true };
	struct thread *t = cookie;

	loop_start(&t->l, st);
	for (int i = 0; i < 100; i++) {
		char name[32];
		struct put_args a = {
			.bucket = "b", .key = name, .size = 100, .seed = 1, .pre = i % 2 ? &keep : &absent
		};
		int r;

		snprintf(name, sizeof name, "race%d", i);
		atomic_fetch_add(&ready, 1);
		wait_until(atomic_load(&ready) >= (i + 1) * 2)
			loop_turn(&t->l);
		r = obj_put(&t->l, &a);
		check(r == 0 || r == (i % 2 ? -EPERM : -EEXIST));
		atomic_fetch_add(&winners, r == 0);
		/* both are told the truth: the object is there now */
		check(obj_check(&t->l, "b", name, 100, 1) == 0);
	}
	loop_stop(&t->l);
	return NULL;
}

static void
test_race(void **state)
{
	static struct thread t[2];

	assert_int_equal(make_store(256 * MIB), 0);
	loop_stop(&l);
	for (int i = 0; i < 2; i++) {
		t[i].nr = i;
		assert_int_equal(pthread_create(&t[i].id, NULL, race_main, &t[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i].id, NULL);
	assert_int_equal(winners, 100);
	store_stop(st);
	st = NULL;
	remove_store(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_race),
	};

	log_init(LOG_PLAIN, LOG_WARN);
	seed = seed_from_env();
	return cmocka_run_group_tests_name("store_threads", tests, NULL, NULL);
}
