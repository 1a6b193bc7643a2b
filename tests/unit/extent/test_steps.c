/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of commits, step by step: which commits count in which step, and how long each step took, on a ring that holds
 * the write of the log, that of the data, or the flush. */
#include "extent/engine.h"

#include "fixture.h"
#include "tests/fake/fault_ring.h"

#define HOLD_NS (20 * NS_PER_MS)

static _Atomic int held_kind = -1; /* kind that is held, or fails with -EIO */
static const char *_Atomic held_name;
static _Atomic int held_result = FAULT_HOLD;

static int
hook(const struct fault_io *io)
{
	if ((int)io->kind != held_kind || strncmp(io->name, held_name, strlen(held_name)) != 0)
		return 0;
	return held_result;
}

static void
hold(enum fault_kind kind, const char *name)
{
	held_name = name;
	held_result = FAULT_HOLD;
	held_kind = (int)kind;
}

static void
release(void)
{
	held_kind = -1;
}

/* Waits until the log is stamped: a stamp that is held, or fails, would come before the PUT. */
static void
settle(void)
{
	loop_for(&l, 30 * NS_PER_MS);
}

static struct store_times at[UNTIL_NR]; /* as note() found them */

static void
note(void)
{
	memcpy(at, disk_info().commit, sizeof at);
}

/* The growth of a step since note(). */
static uint64_t
count(enum commit_until until)
{
	struct store_unit_info i = disk_info();
	uint64_t n = 0;

	for (int b = 0; b < LATENCY_NR; b++)
		n += i.commit[until].buckets[b] - at[until].buckets[b];
	return n;
}

static uint64_t
waited(enum commit_until until)
{
	return disk_info().commit[until].sum_ns - at[until].sum_ns;
}

/* Since note(): `till` commits for each step up to `last`, and `rest` for each step after it. */
static void
assert_counts(enum commit_until last, uint64_t till, uint64_t rest)
{
	for (int u = 0; u < UNTIL_NR; u++)
		assert_int_equal(count((enum commit_until)u), u <= (int)last ? till : rest);
}

/* A PUT that is under way. */
struct under_way {
	struct store_put put;
	struct buf *b;
};

static void
begin(struct under_way *w, const char *name, uint32_t size)
{
	struct store_key k = key_of("b", name);
	struct store_commit c = { .last_len = size };

	memset(&w->put, 0, sizeof w->put);
	w->b = bufpool_get(&l.bufs, BUF_LARGE);
	check(w->b);
	fill(w->b->mem, size, 1, 0);
	c.last = w->b;
	assert_int_equal(store_put_init(l.p, &w->put, &k, size), 0);
	w->put.op.done = on_put;
	assert_int_equal(store_put_commit(l.p, &w->put, &c), 0);
}

static int
end(struct under_way *w)
{
	int r = op_wait(&l, &w->put.op);

	store_put_abort(l.p, &w->put);
	bufpool_put(&l.bufs, w->b);
	return r;
}

static int
setup(void **state)
{
	int r;

	release();
	fault_ring_hook = hook;
	r = make_store(100 * MIB);
	settle();
	return r;
}

static int
teardown(void **state)
{
	release();
	return remove_store(state);
}

/* Once for each step of a PUT, of whatever size; not for reads, removals and buckets. */
static void
test_one_each(void **state)
{
	static const uint64_t sizes[] = { 0, 10, 100000, 3 * MIB, 9 * MIB };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint64_t began_ns = clock_ns(), sum_ns = 0;

		note();
		assert_int_equal(put_simple(&l, "b", "x", sizes[i], 1), 0);
		assert_counts(UNTIL_ANSWERED, 1, 0);
		for (int u = 0; u < UNTIL_NR; u++)
			sum_ns += waited((enum commit_until)u);
		/* The steps do not overlap. */
		assert_true(sum_ns > 0 && sum_ns <= clock_ns() - began_ns);
	}
	note();
	assert_int_equal(obj_check(&l, "b", "x", 9 * MIB, 1), 0);
	assert_int_equal(obj_delete(&l, "b", "x", NULL), 1);
	assert_int_equal(bucket_make(&l, "c"), 0);
	/* Stamps and what the leader commits itself. */
	loop_for(&l, 50 * NS_PER_MS);
	assert_counts(UNTIL_ANSWERED, 0, 0);
}

/* Each wait is counted in its step. */
static void
test_order(void **state)
{
	static const struct {
		enum fault_kind kind;
		const char *name;
		enum commit_until step; /* step that waits */
	} waits[] = {
		{ FAULT_WRITE, "log", UNTIL_WRITTEN },
		{ FAULT_WRITE, "seg-", UNTIL_WRITTEN },
		{ FAULT_FLUSH, "log", UNTIL_FLUSHED },
	};
	static struct under_way w;

	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
		uint64_t began_ns, sum_ns = 0;

		settle();
		began_ns = clock_ns();
		note();
		hold(waits[i].kind, waits[i].name);
		begin(&w, "x", 100000);
		loop_for(&l, HOLD_NS);
		assert_counts((enum commit_until)(waits[i].step - 1), 1, 0);
		release();
		assert_int_equal(end(&w), 0);
		assert_counts(UNTIL_ANSWERED, 1, 0);
		/* Before the hold began, some turns may have passed. */
		assert_true(waited(waits[i].step) > HOLD_NS / 2);
		for (int u = 0; u < UNTIL_NR; u++)
			sum_ns += waited((enum commit_until)u);
		assert_true(sum_ns <= clock_ns() - began_ns);
	}
}

/* Records that wait for the block before them are in one block, and count one by one; their time is that of each. */
static void
test_one_block(void **state)
{
	static struct under_way w[5];
	uint64_t commits = disk_number("commits");
	char name[] = "a";

	note();
	hold(FAULT_FLUSH, "log");
	for (int i = 0; i < 5; i++) {
		name[0] = (char)('a' + i);
		begin(&w[i], name, 5000);
	}
	loop_for(&l, HOLD_NS);
	assert_int_equal(count(UNTIL_SUBMITTED), 5);
	assert_int_equal(count(UNTIL_LED), 1);
	assert_int_equal(count(UNTIL_WRITTEN), 1);
	assert_int_equal(count(UNTIL_FLUSHED), 0);
	release();
	for (int i = 0; i < 5; i++)
		assert_int_equal(end(&w[i]), 0);
	assert_counts(UNTIL_ANSWERED, 5, 0);
	assert_int_equal(disk_number("commits") - commits, 2);
	assert_true(waited(UNTIL_LED) > 4 * HOLD_NS / 2);
	assert_true(waited(UNTIL_FLUSHED) > HOLD_NS / 2);
}

/* A commit counts up to where it came. */
static void
test_no_commit(void **state)
{
	const struct store_pre new = { .kind = PRE_ABSENT };
	struct put_args a = { .bucket = "b", .key = "x", .size = 100000, .seed = 1, .pre = &new };

	assert_int_equal(obj_put(&l, &a), 0);
	note();
	assert_int_equal(obj_put(&l, &a), -EEXIST);
	assert_counts(UNTIL_SUBMITTED, 1, 0);
	settle();
	note();
	held_name = "log";
	held_result = -EIO;
	held_kind = FAULT_FLUSH;
	assert_int_equal(put_simple(&l, "b", "y", 100000, 1), -ECANCELED);
	assert_counts(UNTIL_WRITTEN, 1, 0);
	release();
}

/* The ends of the log's write and of the flush come between two requests, without a turn; the end of the data's write does not. */
static void
test_first(void **state)
{
	static struct under_way w;

	note();
	begin(&w, "x", 100000);
	assert_int_equal(ring_first(l.ring), 1);
	assert_int_equal(ring_first(l.ring), 0);
	assert_counts(UNTIL_LED, 1, 0);
	assert_true(ring_turn(l.ring, 0) > 0);
	assert_counts(UNTIL_WRITTEN, 1, 0);
	/* The log's, and the segment's where that is flushed by itself. */
	assert_in_range(ring_first(l.ring), 1, 2);
	assert_counts(UNTIL_PUBLISHED, 1, 0);
	assert_int_equal(obj_check(&l, "b", "x", 100000, 1), 0);
	assert_int_equal(end(&w), 0);
	assert_counts(UNTIL_ANSWERED, 1, 0);
}

/* The counts stay when a port goes, and another one has its place. */
static void
test_port_goes(void **state)
{
	note();
	assert_int_equal(put_simple(&l, "b", "x", 10, 1), 0);
	loop_stop(&l);
	assert_counts(UNTIL_ANSWERED, 1, 0);
	loop_start(&l, st);
	assert_int_equal(put_simple(&l, "b", "x", 10, 1), 0);
	assert_counts(UNTIL_ANSWERED, 2, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_each, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_block, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_commit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_port_goes, setup, teardown),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_steps", tests, NULL, NULL);
}
