/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x-amz-expiration: what it says of an object, how long rules are believed, and that nobody waits for them.
 */
#include "tests/unit/walk/rules.h"

#include "walk/expiry.h"

#define DAYS(n) "<Expiration><Days>" n "</Days></Expiration>"
#define MADE_NS (1699963200 * NS_PER_S) /* 14 November 2023, 12:00 */

static struct expiry *ex;
static struct text out;

static int
setup(void **state)
{
	rig_start(state);
	assert_int_equal(expiry_new(rig.port, &ex), 0);
	make_bucket("bkt");
	return 0;
}

static int
teardown(void **state)
{
	while (rig_is_busy())
		rig_turn();
	expiry_free(ex);
	text_free(&out);
	return rig_stop(state);
}

/* The value for an object of that key; NULL: none. */
static const char *
said(const char *bucket, const char *key)
{
	struct store_key k = rig_key(bucket, key);
	struct store_meta meta = { .mtime_ns = MADE_NS };

	return expiry_text(ex, &k, 100, &meta, rig.now_ns, &out) ? out.p : NULL;
}

/* The same when the rules have come. */
static const char *
known(const char *bucket, const char *key)
{
	said(bucket, key);
	while (rig_is_busy())
		rig_turn();
	return said(bucket, key);
}

static void
test_says_when(void **state)
{
	struct store_key k = rig_key("bkt", "tmp/x");
	struct store_meta meta = { .mtime_ns = MADE_NS };

	assert_null(known("bkt", "tmp/x"));
	assert_null(known("nowhere", "tmp/x"));
	set_rules("bkt",
		  "<Rule><ID>a b</ID><Status>Enabled</Status><Filter><And><Prefix>tmp/</Prefix>"
		  "<ObjectSizeGreaterThan>10</ObjectSizeGreaterThan></And></Filter>" DAYS("5") "</Rule>");
	rig_pass(NS_PER_S);
	assert_string_equal(known("bkt", "tmp/x"),
			    "expiry-date=\"Mon, 20 Nov 2023 00:00:00 GMT\", rule-id=\"a%20b\"");
	assert_null(said("bkt", "keep/x"));
	/* What was in out is left alone where there is nothing to say. */
	assert_true(strncmp(out.p, "expiry-date", 11) == 0);
	assert_false(expiry_text(ex, &k, 10, &meta, rig.now_ns, &out));
	assert_true(expiry_text(ex, &k, 11, &meta, rig.now_ns, &out));
	assert_false(expiry_text(NULL, &k, 11, &meta, rig.now_ns, &out));
}

/* Rules are a second old at most; what is asked anew goes on being said until it is known. */
static void
test_a_second_old(void **state)
{
	struct mem_store_tuning slow = { .seed = 1 };

	mem_store_tune(rig.store, &slow);
	set_rules("bkt", RULE("", DAYS("1")));
	/* Nobody waits: the first answer has none. */
	assert_null(said("bkt", "x"));
	assert_true(mem_store_inflight(rig.store) > 0);
	assert_null(said("bkt", "x"));
	while (rig_is_busy())
		rig_turn();
	assert_non_null(said("bkt", "x"));
	assert_int_equal(mem_store_inflight(rig.store), 0);
	set_rules("bkt", NULL);
	rig_pass(NS_PER_S - 1);
	assert_non_null(said("bkt", "x"));
	assert_int_equal(mem_store_inflight(rig.store), 0);
	rig_pass(1);
	assert_non_null(said("bkt", "x"));
	assert_int_equal(mem_store_inflight(rig.store), 1);
	while (rig_is_busy())
		rig_turn();
	assert_null(said("bkt", "x"));
	/* What cannot be read is as if there were none. */
	set_rules("bkt", RULE("", DAYS("1")));
	rig_pass(NS_PER_S);
	assert_non_null(known("bkt", "x"));
	mem_store_fail(rig.store, MEM_STAT, -EIO, 0, 1);
	rig_pass(NS_PER_S);
	assert_null(known("bkt", "x"));
	mem_store_fail(rig.store, MEM_STAT, -EIO, 1, 1);
	rig_pass(NS_PER_S);
	assert_null(known("bkt", "x"));
	rig_pass(NS_PER_S);
	assert_non_null(known("bkt", "x"));
}

/* More buckets than are kept: each has its own rules, whoever asks in between. */
static void
test_many_buckets(void **state)
{
	char name[16], want[64];

	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof name, "many-%d", i);
		make_bucket(name);
		snprintf(want, sizeof want, "<Rule><ID>rule-%d</ID><Status>Enabled</Status>", i);
		if (i % 3) {
			char rule[256];

			snprintf(rule, sizeof rule, "%s<Filter/>" DAYS("1") "</Rule>", want);
			set_rules(name, rule);
		}
	}
	for (int round = 0; round < 200; round++) {
		int i = (round * 7) % 60;
		const char *text;

		snprintf(name, sizeof name, "many-%d", i);
		snprintf(want, sizeof want, "rule-id=\"rule-%d\"", i);
		text = said(name, "x");
		/* Not known yet is fine, another's is not. */
		if (text && !strstr(text, want))
			fail_msg("%s: %s", name, text);
		if (round % 5 == 0)
			continue;
		text = known(name, "x");
		if (!text != !(i % 3) || (text && !strstr(text, want)))
			fail_msg("%s: %s", name, text ? text : "none");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_says_when, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_second_old, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_buckets, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
