/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The skeleton of the walks, with a walker that does next to nothing: it lists the objects of each bucket and
 * says how much that cost.  When a walk begins, in which order it takes the buckets, how fast it goes, how it
 * is paused and ended, and what the store may do to it meanwhile.
 */
#include "tests/unit/walk/rig.h"

#include "walk/walk.h"

#define INTERVAL_NS (1000 * NS_PER_S)
#define FIRST_NS (10 * NS_PER_S)

static struct toy {
	struct walk walk;
	struct store_list ls;
	int begun, ended, steps;
	int begin_with;    /* what begun() returns */
	uint64_t units;    /* what a bucket's step costs */
	int steps_max;     /* in each bucket */
	char order[64];    /* first letters of the buckets, as they came */
	char why[64];      /* "": the last walk came to its end */
	uint64_t ended_ns; /* when that was */
	int last_result;   /* of the list */
} * toy;

static struct toy *
toy_of(struct walk *w)
{
	return container_of(w, struct toy, walk);
}

static int
on_begun(struct walk *w)
{
	struct toy *t = toy_of(w);

	assert_true(w->running);
	t->begun++;
	t->order[0] = 0;
	return t->begin_with;
}

static void
on_ended(struct walk *w, const char *why)
{
	struct toy *t = toy_of(w);

	assert_true(!w->running && !w->busy);
	t->ended++;
	t->ended_ns = rig.now_ns;
	snprintf(t->why, sizeof t->why, "%s", why ? why : "");
}

static bool
on_object(struct store_list *ls, const struct store_entry *e)
{
	return true;
}

static void step_list(struct walk *w);

static void
step_leave(struct walk *w)
{
	struct toy *t = toy_of(w);

	if (++t->steps < t->steps_max)
		walk_go(w, step_list);
	else
		walk_next_bucket(w);
}

static void
listed(struct walk *w)
{
	struct toy *t = toy_of(w);

	assert_false(w->busy);
	t->last_result = t->ls.op.result;
	if (t->last_result < 0 && t->last_result != -ENXIO)
		walk_end(w, strerror(-t->last_result));
	else
		walk_go_paced(w, t->units, step_leave);
}

static void
on_listed(struct store_op *op)
{
	walk_done(&container_of(op, struct toy, ls.op)->walk);
}

static void
step_list(struct walk *w)
{
	struct toy *t = toy_of(w);

	memset(&t->ls, 0, sizeof t->ls);
	t->ls.bucket = w->bucket;
	t->ls.bucket_len = w->bucket_len;
	t->ls.max = 10;
	t->ls.entry = on_object;
	t->ls.op.done = on_listed;
	walk_await(w, &t->ls.op, store_list(w->env.store, &t->ls), listed);
}

static void
on_bucket(struct walk *w)
{
	struct toy *t = toy_of(w);
	size_t n = strlen(t->order);

	assert_int_equal(strlen(w->bucket), w->bucket_len);
	assert_true(n + 1 < sizeof t->order);
	t->order[n] = w->bucket[0];
	t->order[n + 1] = 0;
	t->steps = 0;
	step_list(w);
}

static uint64_t interval_ns, first_max_ns;

static void
set_conf(struct walk *w, const struct conf *conf)
{
	w->interval_ns = interval_ns;
	w->first_max_ns = first_max_ns;
	w->rate = 1000;
}

static void
set_interval(uint64_t ns)
{
	interval_ns = ns;
	walk_set_conf(&toy->walk, NULL);
}

static const struct walk_ops toy_ops = { .bytes = sizeof(struct toy),
					 .set_conf = set_conf,
					 .begun = on_begun,
					 .bucket = on_bucket,
					 .ended = on_ended,
					 .bucket_units = 1 };
static struct walk_public pub;

static void
make_toy(uint64_t first_ns)
{
	struct walk_env env = { .store = rig.port, .timers = &rig.timers };
	struct walk *w;

	interval_ns = INTERVAL_NS;
	first_max_ns = first_ns;
	assert_int_equal(walk_new(&toy_ops, &env, NULL, &pub, &w), 0);
	toy = toy_of(w);
	toy->units = 1;
	toy->steps_max = 1;
}

static int
setup(void **state)
{
	rig_start(state);
	make_toy(FIRST_NS);
	return 0;
}

static int
teardown(void **state)
{
	walk_pause(&toy->walk, true);
	rig.is_held = false;
	while (walk_busy(&toy->walk))
		rig_turn();
	walk_free(&toy->walk);
	return rig_stop(state);
}

static void
make_buckets(const char *letters)
{
	for (; *letters; letters++) {
		char name[] = { *letters, *letters, *letters, 0 };

		make_bucket(name);
		make_object(name, "o");
	}
}

static void
wait_ends(int nr)
{
	rig_until(toy->ended >= nr);
	assert_int_equal(toy->ended, nr);
}

/* Until a step of the walk waits for the store. */
static void
hold_busy(void)
{
	struct mem_store_tuning slow = { .seed = 1 };

	mem_store_tune(rig.store, &slow);
	rig_until(toy->walk.busy);
	rig.is_held = true;
}

/* ---- the tests ---- */

/* Nothing to walk over; the first walk is not far from the start, the others are an interval apart. */
static void
test_empty(void **state)
{
	wait_ends(1);
	assert_int_equal(toy->ended_ns, BEGAN_NS + FIRST_NS);
	assert_string_equal(toy->why, "");
	assert_string_equal(toy->order, "");
	wait_ends(2);
	assert_int_equal(toy->ended_ns, BEGAN_NS + FIRST_NS + INTERVAL_NS);
	wait_ends(3);
	assert_int_equal(toy->ended_ns, BEGAN_NS + FIRST_NS + 2 * INTERVAL_NS);
	assert_int_equal(toy->begun, 3);
}

/* Of several processes over one store each walks its share of the keys of every bucket: all together each key once. */
static void
test_shares(void **state)
{
	int seen[300] = { 0 };

	make_buckets("ab");
	for (uint32_t share = 0; share < 3; share++) {
		int before = 0, now = 0;

		mem_store_share(rig.store, 3, share);
		wait_ends((int)share + 1);
		assert_string_equal(toy->order, "ab");
		for (int i = 0; i < 300; i++) {
			char key[16];
			int len = snprintf(key, sizeof key, "key/%d", i);

			before += seen[i];
			seen[i] += walk_has(&toy->walk, key, (size_t)len);
			now += seen[i];
		}
		assert_true(now - before > 60 && now - before < 140);
	}
	for (int i = 0; i < 300; i++)
		assert_int_equal(seen[i], 1);
	mem_store_share(rig.store, 0, 0);
	assert_true(walk_has(&toy->walk, "key/1", 5) && walk_has(&toy->walk, "key/2", 5));
}

/* A first rest that is longer than the interval is not taken. */
static void
test_first(void **state)
{
	walk_free(&toy->walk);
	make_toy(UINT64_MAX);
	wait_ends(1);
	assert_int_equal(toy->ended_ns, BEGAN_NS + INTERVAL_NS);
}

static void
test_on_request(void **state)
{
	make_buckets("ab");
	/* None comes by itself. */
	set_interval(0);
	assert_int_equal(timers_next(&rig.timers), UINT64_MAX);
	assert_int_equal(walk_begin(&toy->walk), 0);
	assert_int_equal(walk_begin(&toy->walk), -EALREADY);
	wait_ends(1);
	assert_string_equal(toy->order, "ab");
	assert_int_equal(timers_next(&rig.timers), UINT64_MAX);
	/* An interval counts from the end of the last one; the cap was for the first alone. */
	rig_pass(5 * NS_PER_S);
	set_interval(100 * NS_PER_S);
	assert_int_equal(timers_next(&rig.timers), toy->ended_ns + 100 * NS_PER_S);
	set_interval(100 * NS_PER_S);
	assert_int_equal(timers_next(&rig.timers), toy->ended_ns + 100 * NS_PER_S);
	/* One that has passed already. */
	set_interval(NS_PER_S);
	rig_pass(0);
	assert_int_equal(toy->begun, 2);
	/* Under way, it changes the next rest only. */
	set_interval(50 * NS_PER_S);
	wait_ends(2);
	assert_int_equal(timers_next(&rig.timers), toy->ended_ns + 50 * NS_PER_S);
	assert_int_equal(toy->begun, 2);
	assert_string_equal(toy->order, "ab");
	walk_pause(&toy->walk, true);
	assert_int_equal(walk_begin(&toy->walk), -EBUSY);
}

/* Each bucket once, in order; what comes and goes meanwhile does not lead it astray. */
static void
test_buckets(void **state)
{
	make_buckets("bdfh");
	toy->units = 10;
	rig_until(strcmp(toy->order, "bd") == 0);
	/* Behind it and before it, and the one in which it is goes. */
	make_buckets("ceg");
	assert_int_equal(remove_object("ddd", "o"), 1);
	remove_bucket("ddd");
	assert_int_equal(remove_object("hhh", "o"), 1);
	remove_bucket("hhh");
	wait_ends(1);
	assert_string_equal(toy->order, "bdefg");
	assert_string_equal(toy->why, "");
	wait_ends(2);
	assert_string_equal(toy->order, "bcefg");
	/* Gone between the step that found it and the one that looks into it. */
	rig_until(toy->begun == 3);
	rig_until(strcmp(toy->walk.bucket, "eee") == 0);
	assert_string_equal(toy->order, "bc");
	assert_int_equal(remove_object("eee", "o"), 1);
	remove_bucket("eee");
	rig_until(strcmp(toy->order, "bce") == 0);
	rig_until(!toy->walk.busy);
	assert_int_equal(toy->last_result, -ENXIO);
	wait_ends(3);
	assert_string_equal(toy->order, "bcefg");
}

/* So many units a second; time that was lost is made up for, but not much of it. */
static void
test_pace(void **state)
{
	uint64_t began;

	make_buckets("abcdefghij");
	toy->units = 499;
	toy->steps_max = 2;
	assert_int_equal(walk_begin(&toy->walk), 0);
	began = rig.now_ns;
	wait_ends(1);
	/* 10 buckets of 1 + 2 * 499 units, 1000 a second. */
	assert_int_equal(rig.now_ns - began, 9990 * NS_PER_MS);
	/* Another rate, from the next step on. */
	assert_int_equal(walk_begin(&toy->walk), 0);
	rig_until(strcmp(toy->order, "abcde") == 0);
	toy->walk.rate = 1000000;
	began = rig.now_ns;
	wait_ends(2);
	assert_true(rig.now_ns - began < 600 * NS_PER_MS);
	/* A second in which the store did nothing: a tenth of it is made up for. */
	toy->walk.rate = 1000;
	assert_int_equal(walk_begin(&toy->walk), 0);
	began = rig.now_ns;
	rig_until(strcmp(toy->order, "ab") == 0);
	hold_busy();
	rig_pass(5 * NS_PER_S);
	rig.is_held = false;
	wait_ends(3);
	assert_in_range(rig.now_ns - began, (9990 + 5000 - 100 - 500) * NS_PER_MS, (9990 + 5000) * NS_PER_MS);
	assert_string_equal(toy->order, "abcdefghij");
	/* A little late each time is not made up for more than once. */
	toy->units = 49;
	assert_int_equal(walk_begin(&toy->walk), 0);
	began = rig.now_ns;
	while (toy->ended == 3) {
		rig_until(toy->walk.busy || toy->ended == 4);
		rig.now_ns += 30 * NS_PER_MS;
		while (toy->walk.busy)
			rig_turn();
	}
	/* 990 units. */
	assert_true(rig.now_ns - began >= (990 - 100) * NS_PER_MS);
}

static void
test_pause(void **state)
{
	uint64_t at;

	make_buckets("abc");
	toy->units = 1000;
	/* While it rests: the walk comes when it may. */
	walk_pause(&toy->walk, true);
	walk_pause(&toy->walk, true);
	assert_int_equal(timers_next(&rig.timers), UINT64_MAX);
	rig_pass(3 * INTERVAL_NS);
	assert_int_equal(toy->begun, 0);
	walk_pause(&toy->walk, false);
	rig_pass(0);
	assert_int_equal(toy->begun, 1);
	/* Between two steps: on where it was, and not before its time. */
	rig_until(toy->order[0] == 'a');
	rig_until(!toy->walk.busy && timers_next(&rig.timers) > rig.now_ns + 500 * NS_PER_MS);
	at = timers_next(&rig.timers);
	walk_pause(&toy->walk, true);
	assert_true(toy->walk.running && toy->walk.paused);
	rig_pass(10 * NS_PER_MS);
	walk_pause(&toy->walk, false);
	assert_int_equal(timers_next(&rig.timers), at);
	/* With an operation in flight: its end is taken note of, nothing else begins. */
	rig_until(strcmp(toy->order, "ab") == 0);
	hold_busy();
	walk_pause(&toy->walk, true);
	assert_true(toy->walk.busy);
	rig.is_held = false;
	while (toy->walk.busy)
		rig_turn();
	assert_int_equal(timers_next(&rig.timers), UINT64_MAX);
	rig_pass(INTERVAL_NS);
	assert_int_equal(toy->ended, 0);
	walk_pause(&toy->walk, false);
	wait_ends(1);
	assert_string_equal(toy->order, "abc");
	/* Paused and let go on while it is in flight. */
	hold_busy();
	walk_pause(&toy->walk, true);
	walk_pause(&toy->walk, false);
	assert_int_equal(timers_next(&rig.timers), UINT64_MAX);
	rig.is_held = false;
	wait_ends(2);
	assert_string_equal(toy->order, "abc");
}

static void
test_cancel(void **state)
{
	make_buckets("abc");
	toy->units = 1000;
	assert_int_equal(walk_cancel(&toy->walk), -EALREADY);
	/* Between two steps. */
	assert_int_equal(walk_begin(&toy->walk), 0);
	rig_until(toy->order[0] == 'a' && !toy->walk.busy);
	assert_int_equal(walk_cancel(&toy->walk), 0);
	assert_int_equal(toy->ended, 1);
	assert_string_equal(toy->why, "on request");
	assert_int_equal(walk_cancel(&toy->walk), -EALREADY);
	assert_int_equal(timers_next(&rig.timers), toy->ended_ns + INTERVAL_NS);
	/* With an operation in flight. */
	assert_int_equal(walk_begin(&toy->walk), 0);
	rig_until(toy->order[0] == 'a');
	hold_busy();
	assert_int_equal(walk_cancel(&toy->walk), 0);
	assert_int_equal(walk_cancel(&toy->walk), -EALREADY);
	assert_int_equal(walk_begin(&toy->walk), -EALREADY);
	assert_int_equal(toy->ended, 1);
	rig.is_held = false;
	while (toy->walk.busy)
		rig_turn();
	assert_int_equal(toy->ended, 2);
	assert_string_equal(toy->why, "on request");
	/* While it is paused; then it rests until it may. */
	assert_int_equal(walk_begin(&toy->walk), 0);
	rig_until(toy->order[0] == 'a' && !toy->walk.busy);
	walk_pause(&toy->walk, true);
	assert_int_equal(walk_cancel(&toy->walk), 0);
	assert_int_equal(toy->ended, 3);
	rig_pass(2 * INTERVAL_NS);
	assert_int_equal(toy->begun, 3);
	walk_pause(&toy->walk, false);
	wait_ends(4);
	assert_string_equal(toy->why, "");
	assert_string_equal(toy->order, "abc");
}

/* An error ends the walk; the next begins anew, after its rest. */
static void
test_errors(void **state)
{
	make_buckets("abc");
	/* Of the list of buckets, at first and in the middle; of the walker's own. */
	for (unsigned skip = 0; skip < 7; skip++) {
		int was = toy->ended;
		uint64_t at;

		mem_store_fail(rig.store, MEM_LIST, -EIO, skip, 1);
		wait_ends(was + 1);
		assert_string_equal(toy->why, strerror(EIO));
		assert_int_equal(strlen(toy->order), (skip + 1) / 2);
		at = toy->ended_ns + INTERVAL_NS;
		assert_int_equal(timers_next(&rig.timers), at);
		wait_ends(was + 2);
		assert_string_equal(toy->why, "");
		assert_string_equal(toy->order, "abc");
	}
	/* Not begun at all. */
	toy->begin_with = -ENOMEM;
	wait_ends(toy->ended + 1);
	assert_string_equal(toy->why, strerror(ENOMEM));
	assert_string_equal(toy->order, "");
	toy->begin_with = 0;
	wait_ends(toy->ended + 1);
	assert_string_equal(toy->order, "abc");
}

/* A result that is there at once, one that comes later, and a start that fails. */
static void
test_starts(void **state)
{
	struct mem_store_tuning t = { .seed = 1 };
	int was = 0;

	make_buckets("ab");
	for (t.open_at_once = 0; t.open_at_once <= 100; t.open_at_once += 100) {
		mem_store_tune(rig.store, &t);
		wait_ends(++was);
		assert_string_equal(toy->order, "ab");
		assert_string_equal(toy->why, "");
	}
	assert_int_equal(walk_begin(&toy->walk), 0);
	timer_disarm(&rig.timers, &toy->walk.timer);
	walk_await(&toy->walk, &toy->ls.op, -EROFS, listed);
	assert_int_equal(toy->last_result, -EROFS);
	assert_string_equal(toy->why, strerror(EROFS));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shares, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_on_request, setup, teardown),
		cmocka_unit_test_setup_teardown(test_buckets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cancel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_starts, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
