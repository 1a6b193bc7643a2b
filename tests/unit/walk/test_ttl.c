/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The removal of expired objects (x-gantry-ttl): the queue of names, and the remover over the store in memory, with a
 * clock that the test moves. tests/system/ttl.sh has the real daemon.
 */
#include "tests/unit/walk/rules.h"

#include "base/age_clock.h"
#include "conf/conf.h"
#include "stats/stats.h"
#include "walk/ttl.h"
#include "walk/walks.h"

static struct conf conf;
static struct stats *stats;
static struct ttl_queue *queue;
static struct walk *ttl;
static struct walk_public pub;
static bool has_all; /* the store had no object with an expiry at the start */

static void
start(uint64_t grace_ns, uint32_t room)
{
	struct walk_env env = { .store = rig.port, .timers = &rig.timers, .stats = stats_core(stats, 0) };

	conf.store.backend = grace_ns ? BACKEND_RADOS : BACKEND_DISKS;
	assert_int_equal(ttl_queue_new(room, 1 << 20, has_all, &queue), 0);
	env.queue = queue;
	assert_int_equal(walk_new(&ttl_walk, &env, &conf, &pub, &ttl), 0);
}

static void
stop(void)
{
	walk_pause(ttl, true);
	while (walk_busy(ttl))
		rig_turn();
	walk_free(ttl);
	ttl_queue_free(queue);
}

static int
setup(void **state)
{
	static const struct stats_names names;

	rig_start(state);
	age_clock_reset();
	assert_int_equal(stats_new(1, &names, &stats), 0);
	memset(&conf, 0, sizeof conf);
	conf.lifecycle.rate = 1000;
	has_all = false;
	make_bucket("bkt");
	return 0;
}

static int
teardown(void **state)
{
	stats_free(stats);
	return rig_stop(state);
}

static uint64_t
removed(void)
{
	return stats_get(&stats_core(stats, 0)->events[STATS_TTL_REMOVED]);
}

/* Makes an object that expires after so many seconds; notes: its name goes into the queue. */
static void
make(const char *key, uint64_t ttl_s, bool notes)
{
	static struct store_put put;
	struct store_key k = rig_key("bkt", key);
	struct store_commit c = { .inline_data = "abc",
				  .inline_len = 3,
				  .meta.expires_ns = rig.now_ns + ttl_s * NS_PER_S };

	assert_int_equal(store_put_init(rig.port, &put, &k, 3), 0);
	assert_int_equal(RIG_DO(&put.op, store_put_commit(rig.port, &put, &c)), 0);
	if (notes)
		ttl_queue_note(queue, "bkt", 3, key, strlen(key), c.meta.expires_ns);
}

static bool
count(struct store_list *ls, const struct store_entry *e)
{
	return true;
}

/* Returns the number of objects in the bucket, with all: also of those that have expired. */
static int
objects(bool all)
{
	static struct store_list ls;

	ls = (struct store_list){
		.bucket = "bkt", .bucket_len = 3, .max = 1000, .shows_gone = all, .entry = count
	};
	return RIG_DO(&ls.op, store_list(rig.port, &ls));
}

/* Returns the number of objects that the usage of the bucket counts. */
static uint64_t
counted(void)
{
	struct store_quota_info info;

	assert_int_equal(store_bucket_quota(rig.store, "bkt", 3, &info), 0);
	return info.used.objects;
}

/* ---- the queue ---- */

static void
assert_next(uint64_t now_ns, const char *key)
{
	struct ttl_name *n = ttl_queue_take(queue, now_ns);

	assert_int_equal(n != NULL, key != NULL);
	if (n) {
		assert_int_equal(n->bucket_len, 3);
		assert_int_equal(n->key_len, strlen(key));
		assert_memory_equal(n->names, "bkt", 3);
		assert_memory_equal(n->names + 3, key, strlen(key));
	}
	free(n);
}

static void
note(uint64_t due_ns)
{
	char key[16];

	ttl_queue_note(queue, "bkt", 3, key,
		       (size_t)snprintf(key, sizeof key, "%llu", (unsigned long long)due_ns), due_ns);
}

static void
test_queue(void **state)
{
	uint64_t last = 0, nr = 0;
	struct ttl_name *n;

	assert_int_equal(ttl_queue_new(64, 1 << 20, false, &queue), 0);
	assert_true(ttl_queue_wants_walk(queue)); /* nothing is known of the objects that were there */
	ttl_queue_walks(queue);
	assert_false(ttl_queue_wants_walk(queue));
	note(30);
	note(10);
	note(20);
	assert_next(9, NULL);
	assert_next(10, "10");
	assert_next(10, NULL);
	assert_next(100, "20");
	assert_next(100, "30");
	assert_next(UINT64_MAX, NULL);
	/* Twice the room, in an order of its own: the earliest stay, none twice, and a walk finds the others. */
	for (uint64_t i = 0; i < 128; i++)
		note(1000 + i * 37 % 128);
	for (uint64_t i = 0; i < 16; i++)
		note(1000 + i);
	for (; (n = ttl_queue_take(queue, UINT64_MAX)); nr++, free(n)) {
		assert_true(n->due_ns >= last);
		last = n->due_ns;
	}
	assert_in_range(nr, 32, 64 + 16);
	assert_true(last < 1128 - 16);
	assert_true(ttl_queue_wants_walk(queue));
	note(5000);
	assert_next(UINT64_MAX, NULL);
	ttl_queue_walks(queue);
	note(5000);
	assert_next(UINT64_MAX, "5000");
	/* One name many times has room. */
	for (int i = 0; i < 1000; i++)
		note(7);
	assert_false(ttl_queue_wants_walk(queue));
	ttl_queue_missed(queue);
	assert_true(ttl_queue_wants_walk(queue));
	ttl_queue_note(NULL, "bkt", 3, "k", 1, 1);
	ttl_queue_free(queue);
}

static void
test_queue_bytes(void **state)
{
	static char key[1024];

	assert_int_equal(ttl_queue_new(64, 16 << 10, false, &queue), 0);
	ttl_queue_walks(queue);
	for (uint64_t i = 0; i < 40; i++)
		ttl_queue_note(queue, "bkt", 3, key, sizeof key, i);
	assert_true(ttl_queue_wants_walk(queue));
	ttl_queue_free(queue);
}

/* ---- the remover ---- */

static void
test_noted(void **state)
{
	start(0, 64);
	rig_pass(2 * NS_PER_S); /* the first walk */
	make("soon", 5, true);
	make("later", 100, true);
	make("never", 0, false);
	make_object("bkt", "plain");
	rig_pass(4 * NS_PER_S);
	assert_true(is_there("bkt", "soon"));
	assert_int_equal(removed(), 0);
	rig_pass(2 * NS_PER_S);
	assert_false(is_there("bkt", "soon"));
	assert_int_equal(removed(), 1);
	/* Replaced by one that stays: the name in the queue does no harm. */
	make_object("bkt", "later");
	rig_pass(200 * NS_PER_S);
	assert_int_equal(removed(), 1);
	assert_true(is_there("bkt", "later") && is_there("bkt", "plain"));
	assert_false(is_there("bkt", "never"));
	stop();
}

/* A gateway waits longer than the clocks of the others may differ. */
static void
test_grace(void **state)
{
	start(TTL_GRACE_NS, 64);
	rig_pass(2 * NS_PER_S);
	make("soon", 5, true);
	rig_pass(60 * NS_PER_S);
	assert_int_equal(objects(false), 0);
	assert_int_equal(objects(true), 1);
	rig_pass(7 * NS_PER_S);
	assert_int_equal(objects(true), 0);
	stop();
}

/* Objects of an earlier process, more than the queue has room for: several walks remove them. */
static void
test_walks(void **state)
{
	char key[16];

	make_objects("bkt", "plain/", 300);
	for (int i = 0; i < 300; i++) {
		snprintf(key, sizeof key, "k%03d", i);
		make(key, 10 + (uint64_t)i / 10, false);
	}
	start(0, 64);
	rig_pass(5 * NS_PER_S);
	assert_int_equal(removed(), 0);
	rig_pass(60 * NS_PER_S);
	assert_int_equal(objects(false), 300);
	assert_int_equal(objects(true), 300);
	assert_int_equal(removed(), 300);
	stop();
}

/* No walk after a start that has shown that no object has an expiry; the queue has what is written after it. */
static void
test_no_walk(void **state)
{
	make("unnoted", 1, false);
	has_all = true;
	start(0, 64);
	make("noted", 1, true);
	rig_pass(60 * NS_PER_S);
	assert_int_equal(removed(), 1);
	assert_int_equal(objects(true), 1); /* a walk would have found it */
	stop();
}

/* A hundred objects that expire within a second are removed, and count no longer, ten seconds later. */
static void
test_hundred(void **state)
{
	char key[16];

	start(0, 64);
	rig_pass(2 * NS_PER_S);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "k%03d", i);
		make(key, 5, true);
		rig_pass(10 * NS_PER_MS);
	}
	assert_int_equal(counted(), 100);
	rig_pass(14 * NS_PER_S);
	assert_int_equal(counted(), 0);
	assert_int_equal(objects(true), 0);
	assert_int_equal(removed(), 100);
	stop();
}

/* A store that refuses for a while, and a list that fails: later. */
static void
test_later(void **state)
{
	mem_store_fail(rig.store, MEM_LIST, -EIO, 0, 1);
	make("before", 1, false);
	start(0, 64);
	rig_pass(10 * NS_PER_S);
	assert_int_equal(objects(true), 1);
	rig_pass(60 * NS_PER_S);
	assert_int_equal(objects(true), 0);
	mem_store_fail(rig.store, MEM_DELETE, -EAGAIN, 0, 3);
	make("soon", 1, true);
	rig_pass(3 * NS_PER_S);
	assert_int_equal(objects(true), 1);
	rig_pass(30 * NS_PER_S);
	assert_int_equal(objects(true), 0);
	assert_int_equal(removed(), 2);
	walk_pause(ttl, true);
	make("paused", 1, true);
	rig_pass(10 * NS_PER_S);
	assert_int_equal(objects(true), 1);
	walk_pause(ttl, false);
	rig_pass(NS_PER_S);
	assert_int_equal(objects(true), 0);
	walk_set_conf(ttl, &conf);
	stop();
}

/* Another gateway ends, and its queue with it: its share of the keys is this gateway's, and a walk finds its objects. */
static void
test_share(void **state)
{
	char key[16];

	mem_store_share(rig.store, 2, 0);
	start(0, 64);
	rig_pass(5 * NS_PER_S);
	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof key, "k%03d", i);
		make(key, 10, false);
	}
	rig_pass(100 * NS_PER_S);
	assert_int_equal(objects(true), 20);
	mem_store_share(rig.store, 0, 0);
	rig_pass(5 * NS_PER_S);
	assert_int_equal(objects(true), 0);
	assert_int_equal(removed(), 20);
	stop();
}

/* A disk that fails and comes back: a walk finds what could not be removed. */
static void
test_failed(void **state)
{
	static const int errors[] = { -EROFS, -ENODEV, -EIO };

	start(0, 64);
	rig_pass(2 * NS_PER_S);
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		mem_store_fail(rig.store, MEM_DELETE, errors[i], 0, 1);
		make("soon", 1, true);
		rig_pass(3 * NS_PER_S);
		assert_int_equal(objects(true), 1);
		rig_pass(70 * NS_PER_S);
		assert_int_equal(objects(true), 0);
		assert_int_equal(removed(), i + 1);
	}
	stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_queue_bytes),
		cmocka_unit_test_setup_teardown(test_noted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_grace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_walks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hundred, setup, teardown),
		cmocka_unit_test_setup_teardown(test_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_share, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed, setup, teardown),
	};

	return cmocka_run_group_tests_name("ttl", tests, NULL, NULL);
}
