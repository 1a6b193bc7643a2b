/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifecycle rules, executed: what is due goes and nothing else, at the rate that is set; errors, rules that
 * are taken back, buckets that go, and pauses on the way.  tests/system/s3_buckets.sh has the real daemon.
 */
#include "tests/unit/walk/rules.h"

#include "base/age_clock.h"
#include "conf/conf.h"
#include "stats/stats.h"
#include "tests/fake/tick_clock.h"
#include "walk/walks.h"

#define INTERVAL_NS (60 * NS_PER_S) /* as from the start to the first walk */

static struct conf conf;
static struct stats *stats;
static struct walk *lf;
static struct walk_public pub;

static int
setup(void **state)
{
	static const struct stats_names names;
	struct walk_env env = { .timers = &rig.timers };

	rig_start(state);
	assert_int_equal(stats_new(1, &names, &stats), 0);
	memset(&conf, 0, sizeof conf);
	conf.lifecycle.interval_ns = INTERVAL_NS;
	conf.lifecycle.day_ns = 86400 * NS_PER_S;
	conf.lifecycle.rate = 1000;
	env.store = rig.port;
	env.stats = stats_core(stats, 0);
	assert_int_equal(walk_new(&lifecycle_walk, &env, &conf, &pub, &lf), 0);
	make_bucket("bkt");
	return 0;
}

static int
teardown(void **state)
{
	walk_pause(lf, true);
	while (walk_busy(lf))
		rig_turn();
	walk_free(lf);
	stats_free(stats);
	return rig_stop(state);
}

static uint64_t
counted(enum stats_event ev)
{
	return stats_get(&stats_core(stats, 0)->events[ev]);
}

static struct store_upload up;

static void
make_upload(const char *bucket, const char *key)
{
	struct store_key k = rig_key(bucket, key);

	assert_int_equal(RIG_DO(&up.op, store_upload_create(rig.port, &k, NULL, 0, &up)), 0);
}

static void
wait_walks(uint64_t nr)
{
	nr += counted(STATS_LIFE_WALKS);
	rig_until(counted(STATS_LIFE_WALKS) >= nr);
}

/* ---- the tests ---- */

static void
test_expires(void **state)
{
	make_bucket("a");
	make_bucket("other");
	make_objects("bkt", "keep/", 5);
	make_objects("bkt", "tmp/", 150);
	make_objects("other", "tmp/", 2);
	set_rules("bkt", RULE("tmp/", PAST));
	wait_walks(1);
	assert_int_equal(rig.now_ns / INTERVAL_NS, (BEGAN_NS + INTERVAL_NS) / INTERVAL_NS);
	assert_int_equal(counted(STATS_EXPIRED), 150);
	assert_true(is_there("bkt", "keep/0004") && is_there("other", "tmp/0001"));
	assert_false(is_there("bkt", "tmp/0000") || is_there("bkt", "tmp/0149"));
	/* The next is an interval away. */
	make_object("bkt", "tmp/x");
	rig_pass(INTERVAL_NS - NS_PER_S);
	assert_int_equal(counted(STATS_LIFE_WALKS), 1);
	assert_int_equal(pub.state, WALK_IDLE);
	assert_true(is_there("bkt", "tmp/x"));
	rig_pass(2 * NS_PER_S);
	assert_int_equal(counted(STATS_LIFE_WALKS), 2);
	assert_false(is_there("bkt", "tmp/x"));
}

/* With a long interval the first walk comes soon after the start; another interval holds for the rest that has begun; and a walk
 * on request comes now. */
static void
test_when(void **state)
{
	uint64_t from_ns;

	conf.lifecycle.interval_ns = 86400 * NS_PER_S;
	walk_set_conf(lf, &conf);
	rig_pass(59 * NS_PER_S);
	assert_int_equal(counted(STATS_LIFE_WALKS), 0);
	rig_pass(2 * NS_PER_S);
	assert_int_equal(counted(STATS_LIFE_WALKS), 1);
	rig_pass(3600 * NS_PER_S);
	assert_int_equal(counted(STATS_LIFE_WALKS), 1);
	conf.lifecycle.interval_ns = 4000 * NS_PER_S;
	walk_set_conf(lf, &conf);
	from_ns = rig.now_ns;
	wait_walks(1);
	assert_in_range(rig.now_ns - from_ns, 395 * NS_PER_S, 401 * NS_PER_S);
	make_objects("bkt", "tmp/", 3);
	set_rules("bkt", RULE("tmp/", PAST));
	from_ns = rig.now_ns;
	assert_int_equal(walk_begin(lf), 0);
	assert_int_not_equal(pub.state, WALK_IDLE);
	assert_int_equal(walk_begin(lf), -EALREADY);
	wait_walks(1);
	assert_true(rig.now_ns - from_ns < 10 * NS_PER_S);
	assert_int_equal(counted(STATS_EXPIRED), 3);
	walk_pause(lf, true);
	assert_int_equal(walk_begin(lf), -EBUSY);
}

#define DAYS_30                                                                                              \
	"<Expiration><Days>30</Days></Expiration><AbortIncompleteMultipartUpload><DaysAfterInitiation>30</"  \
	"DaysAfterInitiation></AbortIncompleteMultipartUpload>"

/* The wall clock is 400 days ahead for a while: what is young stays.  Where it stays so for an hour, it is right. */
static void
test_clock_jumps(void **state)
{
	static const uint64_t day_ns = 86400 * NS_PER_S;
	uint64_t wall_ns = rig.now_ns;

	age_clock_reset();
	conf.lifecycle.interval_ns = 60 * NS_PER_S;
	walk_set_conf(lf, &conf);
	make_objects("bkt", "tmp/", 3);
	make_upload("bkt", "tmp/up");
	set_rules("bkt", RULE("tmp/", DAYS_30));
	wait_walks(1);
	clock_fake_wall(&wall_ns);
	for (int i = 0; i < 59; i++) {
		wall_ns = rig.now_ns + 400 * day_ns;
		wait_walks(1);
		assert_int_equal(counted(STATS_EXPIRED) + counted(STATS_UPLOAD_EXPIRED), 0);
	}
	wall_ns = rig.now_ns;
	wait_walks(1);
	for (int i = 0; i < 2; i++) {
		wall_ns = rig.now_ns + 400 * day_ns;
		wait_walks(1);
		assert_int_equal(counted(STATS_EXPIRED) + counted(STATS_UPLOAD_EXPIRED), 0);
	}
	for (int i = 0; i < 61; i++) {
		wall_ns = rig.now_ns + 400 * day_ns;
		wait_walks(1);
	}
	assert_int_equal(counted(STATS_EXPIRED), 3);
	assert_int_equal(counted(STATS_UPLOAD_EXPIRED), 1);
	clock_fake_wall(NULL);
	age_clock_reset();
}

/* More than a page has; a day that is none. */
static void
test_pages(void **state)
{
	make_objects("bkt", "tmp/", 2100);
	conf.lifecycle.day_ns = 2 * NS_PER_S;
	walk_set_conf(lf, &conf);
	set_rules("bkt", RULE("tmp/1", "<Expiration><Days>1</Days></Expiration>"));
	wait_walks(1);
	assert_int_equal(counted(STATS_EXPIRED), 1000);
	assert_true(is_there("bkt", "tmp/0999") && is_there("bkt", "tmp/2000"));
	assert_false(is_there("bkt", "tmp/1000") || is_there("bkt", "tmp/1999"));
}

/* Never more than the rate in any second, and not much less. */
static void
test_keeps_to_its_rate(void **state)
{
	uint64_t began;

	make_objects("bkt", "tmp/", 300);
	set_rules("bkt", RULE("tmp/", PAST));
	conf.lifecycle.rate = 10;
	walk_set_conf(lf, &conf);
	rig_until(counted(STATS_EXPIRED) == 1);
	began = rig.now_ns;
	for (int i = 1; i <= 5; i++) {
		uint64_t was = counted(STATS_EXPIRED);

		rig_pass(NS_PER_S);
		assert_true(counted(STATS_EXPIRED) - was <= 11);
	}
	rig_until(counted(STATS_EXPIRED) == 300);
	/* 300 looked at and 300 deleted, 10 a second; a page more than once where it had too many. */
	assert_in_range(rig.now_ns - began, 50 * NS_PER_S, 62 * NS_PER_S);
	/* Another one counts at once. */
	make_objects("bkt", "tmp/", 300);
	conf.lifecycle.rate = 1000;
	walk_set_conf(lf, &conf);
	wait_walks(1);
	began = rig.now_ns;
	wait_walks(1);
	assert_true(rig.now_ns - began < INTERVAL_NS + 2 * NS_PER_S);
	assert_int_equal(counted(STATS_EXPIRED), 600);
}

/* A disk that fails, or a damaged record, has no part in it, and ends no walk. */
static void
test_failed_disk(void **state)
{
	static const int errors[] = { -EROFS, -ENODEV, -EBADMSG };

	set_rules("bkt", RULE("tmp/", PAST));
	for (int i = 0; i < 3; i++) {
		uint64_t expired, walks;

		wait_walks(1);
		make_objects("bkt", "tmp/", 10);
		expired = counted(STATS_EXPIRED);
		walks = counted(STATS_LIFE_WALKS);
		mem_store_fail(rig.store, MEM_DELETE, errors[i], 2, 3);
		rig_until(counted(STATS_LIFE_WALKS) == walks + 1);
		assert_int_equal(counted(STATS_EXPIRED) - expired, 7);
		rig_until(counted(STATS_LIFE_WALKS) == walks + 2);
		assert_int_equal(counted(STATS_EXPIRED) - expired, 10);
	}
}

/* A bucket whose list or documents are damaged is left out; the next one is not. */
static void
test_damaged_bucket(void **state)
{
	static const enum mem_fault steps[] = { MEM_LIST, MEM_STAT };

	make_bucket("next");
	make_objects("bkt", "tmp/", 3);
	set_rules("bkt", RULE("tmp/", PAST));
	set_rules("next", RULE("tmp/", PAST));
	for (int i = 0; i < 2; i++) {
		uint64_t before = counted(STATS_EXPIRED);

		make_objects("next", "tmp/", 10);
		/* The first list is that of the buckets. */
		mem_store_fail(rig.store, steps[i], -EBADMSG, steps[i] == MEM_LIST, 1);
		wait_walks(1);
		assert_int_equal(counted(STATS_EXPIRED) - before, 10);
		assert_true(is_there("bkt", "tmp/0002"));
	}
	wait_walks(1);
	assert_false(is_there("bkt", "tmp/0002"));
}

/* The walk goes on behind errors, and while the core drains it rests. */
static void
test_errors_and_pauses(void **state)
{
	uint64_t before;

	make_objects("bkt", "keep/", 5);
	make_objects("bkt", "tmp/", 150);
	set_rules("bkt", RULE("tmp/", PAST));
	mem_store_fail(rig.store, MEM_LIST, -EIO, 2, 3);
	mem_store_fail(rig.store, MEM_DELETE, -EIO, 20, 2);
	rig_until(counted(STATS_EXPIRED) == 150);
	/* Each of the errors ended a walk. */
	assert_true(rig.now_ns > BEGAN_NS + 5 * INTERVAL_NS);
	assert_int_equal(counted(STATS_LIFE_WALKS), 0);
	wait_walks(1);
	/* Paused in the middle, with something in flight. */
	make_objects("bkt", "tmp/", 20);
	before = counted(STATS_EXPIRED);
	rig_until(counted(STATS_EXPIRED) == before + 5);
	rig_until(walk_busy(lf));
	walk_pause(lf, true);
	walk_pause(lf, true);
	while (walk_busy(lf))
		rig_turn();
	before = counted(STATS_EXPIRED);
	assert_true(before < 170);
	assert_int_equal(timers_next(&rig.timers), UINT64_MAX);
	rig_pass(10 * INTERVAL_NS);
	assert_int_equal(counted(STATS_EXPIRED), before);
	walk_pause(lf, false);
	wait_walks(1);
	assert_int_equal(counted(STATS_EXPIRED), 170);
	/* ... and while it rests. */
	walk_pause(lf, true);
	rig_pass(10 * INTERVAL_NS);
	walk_pause(lf, false);
	wait_walks(1);
	assert_true(is_there("bkt", "keep/0004"));
}

/* Rules that cannot be read condemn nothing. */
static void
test_unreadable_rules(void **state)
{
	/* Read: for the objects; before each deletion, by their version first; for the uploads. */
	static const struct {
		unsigned skip, times, expired;
		bool ends;
	} cases[] = {
		{ 0, 1, 0, true }, { 1, 1, 2, false }, { 1, 2, 0, true }, { 2, 2, 1, true }, { 3, 1, 2, true }
	};

	set_rules("bkt", RULE("tmp/", PAST));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t walks, expired;

		wait_walks(1);
		make_objects("bkt", "tmp/", 2);
		walks = counted(STATS_LIFE_WALKS);
		expired = counted(STATS_EXPIRED);
		mem_store_fail(rig.store, MEM_STAT, -EIO, cases[i].skip, cases[i].times);
		rig_pass(INTERVAL_NS + NS_PER_S);
		assert_int_equal(counted(STATS_EXPIRED) - expired, cases[i].expired);
		assert_int_equal(counted(STATS_LIFE_WALKS) - walks, !cases[i].ends);
	}
}

/* The rule says nothing of uploads; the limit does. */
static void
test_uploads(void **state)
{
	make_upload("bkt", "tmp/up");
	make_upload("bkt", "keep/up");
	make_object("bkt", "z/behind-them"); /* objects are walked over first */
	set_rules("bkt", RULE("tmp/", PAST));
	wait_walks(1);
	assert_int_equal(counted(STATS_UPLOAD_EXPIRED), 0);
	conf.limits.upload_expire_ns = INTERVAL_NS * 3;
	walk_set_conf(lf, &conf);
	wait_walks(1);
	assert_int_equal(counted(STATS_UPLOAD_EXPIRED), 0);
	wait_walks(1);
	assert_int_equal(counted(STATS_UPLOAD_EXPIRED), 2);
	conf.limits.upload_expire_ns = 0;
	walk_set_conf(lf, &conf);
	/* A rule of their own; more of them than are kept at once. */
	for (int i = 0; i < 100; i++)
		make_upload("bkt", "tmp/up");
	make_upload("bkt", "keep/up");
	set_rules("bkt", RULE("tmp/", "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1"
				      "</DaysAfterInitiation></AbortIncompleteMultipartUpload>"));
	wait_walks(1);
	assert_int_equal(counted(STATS_UPLOAD_EXPIRED), 2);
	rig_pass(2 * 86400 * NS_PER_S);
	assert_int_equal(counted(STATS_UPLOAD_EXPIRED), 102);
}

/* What was found due is not deleted when the rules are gone by then; another attribute changes nothing. */
static void
test_rules_taken_back(void **state)
{
	uint64_t expired, walks;

	make_objects("bkt", "tmp/", 10);
	conf.lifecycle.rate = 20;
	walk_set_conf(lf, &conf);
	set_rules("bkt", RULE("tmp/", PAST));
	rig_until(counted(STATS_EXPIRED) > 0);
	assert_int_not_equal(pub.state, WALK_IDLE);
	walks = counted(STATS_LIFE_WALKS);
	set("bkt", BUCKET_TAGGING, "a=b", 3);
	rig_until(counted(STATS_EXPIRED) >= 3);
	assert_int_equal(counted(STATS_LIFE_WALKS), walks);
	/* One may be on its way. */
	expired = counted(STATS_EXPIRED) + (uint64_t)walk_busy(lf);
	set_rules("bkt", NULL);
	wait_walks(2);
	assert_true(counted(STATS_EXPIRED) <= expired);
	assert_true(is_there("bkt", "tmp/0009"));
	/* Others in their place: the next walk's business, not that page's. */
	set_rules("bkt", RULE("tmp/", PAST));
	expired = counted(STATS_EXPIRED);
	rig_until(counted(STATS_EXPIRED) == expired + 2);
	walks = counted(STATS_LIFE_WALKS);
	expired += 2 + (uint64_t)walk_busy(lf);
	set_rules("bkt", RULE("tmp/0008", PAST));
	wait_walks(1);
	assert_true(counted(STATS_EXPIRED) <= expired);
	wait_walks(1);
	assert_false(is_there("bkt", "tmp/0008"));
	assert_true(is_there("bkt", "tmp/0009"));
}

/* An object that is written while it waits to be deleted stays. */
static void
test_written_meanwhile(void **state)
{
	make_objects("bkt", "tmp/", 10);
	conf.lifecycle.rate = 20;
	walk_set_conf(lf, &conf);
	set_rules("bkt", RULE("tmp/", PAST));
	rig_until(counted(STATS_EXPIRED) == 2);
	make_object("bkt", "tmp/0008");
	assert_int_equal(remove_object("bkt", "tmp/0009"), 1);
	wait_walks(1);
	assert_true(is_there("bkt", "tmp/0008"));
	assert_int_equal(counted(STATS_EXPIRED), 8);
	wait_walks(1);
	assert_false(is_there("bkt", "tmp/0008"));
}

/* A bucket that goes while its objects are being deleted does not end the walk for the others. */
static void
test_bucket_goes(void **state)
{
	make_bucket("next");
	make_objects("bkt", "tmp/", 3);
	make_objects("next", "tmp/", 3);
	set_rules("bkt", RULE("tmp/", PAST));
	set_rules("next", RULE("tmp/", PAST));
	/* As an error of the deletions alone ... */
	mem_store_fail(rig.store, MEM_DELETE, -ENXIO, 0, 3);
	wait_walks(1);
	assert_int_equal(counted(STATS_EXPIRED), 3);
	wait_walks(1);
	assert_int_equal(counted(STATS_EXPIRED), 6);
	/* ... and really, at each turn of the walk. */
	for (int at = 0; at < 12; at++) {
		make_objects("bkt", "tmp/", 3);
		make_objects("next", "tmp/", 3);
		rig_pass(INTERVAL_NS - NS_PER_S);
		rig_until(walk_busy(lf));
		for (int i = 0; i < at; i++)
			rig_turn();
		for (int i = 0; i < 3; i++) {
			char key[16];

			snprintf(key, sizeof key, "tmp/%04d", i);
			/* The walk may have been faster. */
			assert_true(remove_object("bkt", key) >= 0);
		}
		remove_bucket("bkt");
		wait_walks(1);
		assert_false(is_there("next", "tmp/0000") || is_there("next", "tmp/0002"));
		make_bucket("bkt");
		set_rules("bkt", RULE("tmp/", PAST));
	}
}

/* Claim TM73.  Rules that take long to compare with: here each object takes 50 us.  No turn of the loop takes more than
 * WALK_HOLD_NS of that, and all of them no more than one in WALK_PART of the time. */
static void
test_leaves_the_core_alone(void **state)
{
	uint64_t longest = 0, began;

	make_objects("bkt", "keep/", 600);
	set_rules("bkt", RULE("tmp/", PAST));
	conf.lifecycle.rate = 1000000;
	walk_set_conf(lf, &conf);
	rig_pass(INTERVAL_NS - NS_PER_S);
	began = INTERVAL_NS + BEGAN_NS;
	tick_ns = 50 * NS_PER_US;
	while (counted(STATS_LIFE_WALKS) == 0) {
		uint64_t from;

		if (!rig_is_busy())
			rig.now_ns = timers_next(&rig.timers);
		from = rig.now_ns;
		rig_turn();
		if (rig.now_ns - from > longest)
			longest = rig.now_ns - from;
	}
	tick_ns = 0;
	/* A page's entries read the clock twice each, and some readings come on top. */
	assert_in_range(longest, 0, 3 * WALK_HOLD_NS);
	assert_in_range(rig.now_ns - began, 600 * 50 * NS_PER_US * WALK_PART,
			2 * 600 * 50 * NS_PER_US * WALK_PART);
}

static void
test_none(void **state)
{
	/* Nothing there at all. */
	remove_bucket("bkt");
	wait_walks(2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_expires, setup, teardown),
		cmocka_unit_test_setup_teardown(test_when, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clock_jumps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keeps_to_its_rate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged_bucket, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors_and_pauses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unreadable_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_uploads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rules_taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bucket_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leaves_the_core_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
