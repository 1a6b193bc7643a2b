/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds on what buckets hold, on the real store: a bucket's own survives restarts and is gone with the bucket, what is
 * there is counted anew, what is sure to be refused is refused before a byte is taken.  How it is judged is in the
 * contract suite, and that the counters are right at every moment in the simulation.
 */
#include "fixture.h"

static int
bound(const char *bucket, uint64_t objects, uint64_t bytes, uint64_t uploads)
{
	static struct store_bucket_set op;
	struct store_use max = { objects, bytes, uploads };

	int r;

	op.op.done = on_put;
	r = store_bucket_set_quota(l.p, bucket, strlen(bucket), &max, &op);
	return r == 0 ? op_wait(&l, &op.op) : r;
}

static struct store_quota_info
quota_of(const char *bucket)
{
	struct store_quota_info info = { 0 };

	assert_int_equal(store_bucket_quota(st, bucket, strlen(bucket), &info), 0);
	return info;
}

static int
setup(void **state)
{
	return make_store(256 * MIB);
}

/* claim TM71: over clean stops, with the log replayed and with a snapshot. */
static void
test_restart(void **state)
{
	struct store_quota_info before, after;

	assert_int_equal(put_simple(&l, "b", "one", 300000, 1), 0);
	assert_int_equal(put_simple(&l, "b", "two", 100, 2), 0);
	assert_int_equal(bucket_make(&l, "other"), 0);
	assert_int_equal(bound("b", 2, 400000, STORE_UNBOUNDED), 0);
	assert_int_equal(bound("other", 0, 0, 0), 0);
	for (int i = 0; i < 3; i++) {
		before = quota_of("b");
		assert_true(before.has_bound && before.used.objects == 2 && before.used.bytes == 300100);
		if (i == 1)
			assert_int_equal(store_snapshot(st), 0);
		close_store();
		open_store();
		after = quota_of("b");
		assert_memory_equal(&after.used, &before.used, sizeof after.used);
		assert_memory_equal(&after.max, &before.max, sizeof after.max);
		assert_int_equal(put_simple(&l, "b", "three", 1, 3), -EDQUOT);
		assert_int_equal(put_simple(&l, "b", "one", 399901, 3), -EDQUOT);
		assert_int_equal(put_simple(&l, "other", "x", 0, 3), -EDQUOT);
	}
	/* of a bucket that was removed and made again nothing is left, nor comes back */
	assert_int_equal(bucket_remove(&l, "other"), 0);
	assert_int_equal(bucket_make(&l, "other"), 0);
	assert_int_equal(put_simple(&l, "other", "x", 10, 3), 0);
	assert_int_equal(bound("b", STORE_UNBOUNDED, STORE_UNBOUNDED, STORE_UNBOUNDED), 0);
	close_store();
	open_store();
	assert_false(quota_of("b").has_bound);
	assert_false(quota_of("other").has_bound);
	assert_int_equal(put_simple(&l, "b", "three", 1, 3), 0);
	assert_int_equal(put_simple(&l, "other", "y", 1, 3), 0);
}

/* What is sure is said before anything is moved; what is not, at the commit. */
static void
test_early(void **state)
{
	static struct store_put put;
	struct store_key old = key_of("b", "old"), new = key_of("b", "new");

	assert_int_equal(put_simple(&l, "b", "old", 1000, 1), 0);
	assert_int_equal(bound("b", 1, 5000, 0), 0);
	assert_int_equal(store_put_init(l.p, &put, &new, 10), -EDQUOT);
	assert_int_equal(store_put_init(l.p, &put, &new, STORE_SIZE_UNKNOWN), -EDQUOT);
	assert_int_equal(store_put_init(l.p, &put, &old, 5001), -EDQUOT);
	assert_int_equal(store_put_init(l.p, &put, &old, 5000), 0);
	store_put_abort(l.p, &put);
	assert_int_equal(store_put_init(l.p, &put, &old, STORE_SIZE_UNKNOWN), 0);
	store_put_abort(l.p, &put);
	assert_int_equal(quota_of("b").refused, 3);
}

/* Writes pieces of 1 MiB of a PUT that gives no length, up to the first that is refused.  Returns how many were taken. */
static int
pieces_taken(struct store_put *put, int error)
{
	static struct store_write w;
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);
	int nr = 0, r = 0;

	assert_non_null(b);
	fill(b->mem, STORE_PIECE, 1, 0);
	while (r == 0 && nr < 20) {
		w.op.done = on_put;
		r = store_put_write(l.p, put, &w, b, STORE_PIECE, false);
		if (r == 0)
			r = op_wait(&l, &w.op);
		nr += r == 0;
	}
	assert_int_equal(r, error);
	bufpool_put(&l.bufs, b);
	store_put_abort(l.p, put);
	return nr;
}

/* claim TM71: a PUT or a part without a length ends when it is larger than what is left. */
static void
test_no_length(void **state)
{
	static struct store_put put;
	static struct store_upload u;
	struct store_key k = key_of("b", "new"), old = key_of("b", "old");

	assert_int_equal(put_simple(&l, "b", "old", MIB, 1), 0);
	u.op.done = on_put;
	assert_int_equal(store_upload_create(l.p, &k, "", 0, &u), 0);
	assert_int_equal(op_wait(&l, &u.op), 0);
	assert_int_equal(bound("b", 9, 5 * MIB, 9), 0);
	assert_int_equal(store_put_init(l.p, &put, &k, STORE_SIZE_UNKNOWN), 0);
	assert_int_equal(pieces_taken(&put, -EDQUOT), 4);
	assert_int_equal(store_put_init(l.p, &put, &old, STORE_SIZE_UNKNOWN), 0);
	assert_int_equal(pieces_taken(&put, -EDQUOT), 5);
	assert_int_equal(store_put_init_part(l.p, &put, &k, u.id, 1, STORE_SIZE_UNKNOWN), 0);
	assert_int_equal(pieces_taken(&put, -EDQUOT), 4);
	assert_int_equal(quota_of("b").refused, 3);
	assert_true(quota_of("b").used.bytes == MIB);
	assert_int_equal(bound("b", STORE_UNBOUNDED, STORE_UNBOUNDED, STORE_UNBOUNDED), 0);
	assert_int_equal(store_put_init(l.p, &put, &k, STORE_SIZE_UNKNOWN), 0);
	assert_int_equal(pieces_taken(&put, 0), 20);
}

/* claim TM71: growth is reserved at the beginning of a PUT, objects and bytes; replacing takes as much again at most. */
static void
test_reserved(void **state)
{
	static struct store_put a, c;
	static struct store_del d;
	struct store_key k = key_of("b", "new"), other = key_of("b", "other"), old = key_of("b", "old");
	const struct store_pattern_quota pattern = { "b", 1, true, { 9, 3 * MIB, 9 }, STORE_UNBOUNDED };

	assert_int_equal(put_simple(&l, "b", "old", MIB, 1), 0);
	assert_int_equal(bound("b", 2, 4 * MIB, 9), 0);
	assert_int_equal(store_put_init(l.p, &a, &k, MIB), 0);
	/* the object, then the bytes: another of the same key as well, since either may be the first */
	assert_int_equal(store_put_init(l.p, &c, &other, 0), -EDQUOT);
	assert_int_equal(store_put_init(l.p, &c, &old, 3 * MIB + 1), -EDQUOT);
	assert_int_equal(store_put_init(l.p, &c, &old, 3 * MIB), 0);
	assert_true(quota_of("b").in_progress_bytes == 4 * MIB && quota_of("b").used.bytes == MIB);
	store_put_abort(l.p, &a);
	store_put_abort(l.p, &c);
	assert_true(quota_of("b").in_progress_bytes == 0);
	/* a quota that was full may be overwritten whole, once at a time */
	assert_int_equal(put_simple(&l, "b", "old", 4 * MIB, 1), 0);
	assert_int_equal(store_put_init(l.p, &a, &old, 4 * MIB), 0);
	assert_int_equal(store_put_init(l.p, &c, &old, 1), -EDQUOT);
	store_put_abort(l.p, &a);
	/* removing the bucket gives nothing back of what is being put in it */
	assert_int_equal(put_simple(&l, "b", "old", 0, 1), 0);
	assert_int_equal(store_put_init(l.p, &a, &k, 4 * MIB), 0);
	d.op.done = on_put;
	assert_int_equal(store_delete(l.p, &old, NULL, &d), 0);
	assert_int_equal(op_wait(&l, &d.op), 1);
	assert_int_equal(bucket_remove(&l, "b"), 0);
	assert_int_equal(bucket_make(&l, "b"), 0);
	assert_int_equal(bound("b", 2, 4 * MIB, 9), 0);
	assert_int_equal(store_put_init(l.p, &c, &k, 1), -EDQUOT);
	assert_true(quota_of("b").in_progress_bytes == 4 * MIB);
	store_put_abort(l.p, &a);
	assert_true(quota_of("b").in_progress_bytes == 0);
	assert_int_equal(store_put_init(l.p, &c, &k, 4 * MIB), 0);
	store_put_abort(l.p, &c);
	/* nor does a body without a length grow uncounted when its bucket has gone */
	assert_int_equal(store_set_quotas(st, &pattern, 1), 0);
	assert_int_equal(store_put_init(l.p, &a, &k, STORE_SIZE_UNKNOWN), 0);
	assert_int_equal(bucket_remove(&l, "b"), 0);
	assert_int_equal(pieces_taken(&a, -EDQUOT), 3);
}

/* claim TM71: the bytes of a PUT stay in progress until its change is published: then those that it replaces are given back, or
 * begin to count as being read. */
static void
test_overwritten(void **state)
{
	static struct store_put a, c;
	struct store_key old = key_of("b", "old");
	struct store_commit sc = { .last_len = MIB };
	struct store_obj *reader = calloc(1, sizeof *reader);

	sc.last = bufpool_get(&l.bufs, BUF_LARGE);
	assert_non_null(sc.last);
	assert_int_equal(put_simple(&l, "b", "old", MIB, 1), 0);
	assert_int_equal(bound("b", 2, MIB, 9), 0);
	for (int is_read = 0; is_read < 2; is_read++) {
		if (is_read)
			assert_int_equal(obj_open(&l, "b", "old", reader), 0);
		fill(sc.last->mem, MIB, 1, 0);
		assert_int_equal(store_put_init(l.p, &a, &old, MIB), 0);
		a.op.done = on_put;
		assert_int_equal(store_put_commit(l.p, &a, &sc), 0);
		assert_int_equal(store_put_init(l.p, &c, &old, MIB), -EDQUOT);
		assert_int_equal(op_wait(&l, &a.op), 0);
		assert_true(quota_of("b").in_progress_bytes == (is_read ? MIB : 0));
		assert_int_equal(store_put_init(l.p, &c, &old, MIB), is_read ? -EDQUOT : 0);
		store_put_abort(l.p, &c);
	}
	/* long after the space would have come back */
	loop_for(&l, 50 * NS_PER_MS);
	assert_true(quota_of("b").in_progress_bytes == MIB);
	assert_int_equal(obj_read(&l, reader, 1), 0);
	store_close(l.p, reader);
	assert_true(quota_of("b").in_progress_bytes == 0);
	assert_int_equal(store_put_init(l.p, &c, &old, MIB), 0);
	store_put_abort(l.p, &c);
	bufpool_put(&l.bufs, sc.last);
	free(reader);
}

/* claim TM71: the usage of a bucket that is removed counts until the removal is published. */
static void
test_removed_in_block(void **state)
{
	static struct store_del before, del, make;
	static struct store_upload first, second;
	struct store_pattern_quota q = { .any_suffix = true,
					 .max = { STORE_UNBOUNDED, STORE_UNBOUNDED, 1 },
					 .max_buckets = STORE_UNBOUNDED };
	struct store_key one = key_of("one", "key"), two = key_of("two", "key");

	before.op.done = del.op.done = make.op.done = first.op.done = second.op.done = on_put;
	assert_int_equal(bucket_make(&l, "one"), 0);
	assert_int_equal(store_set_quotas(st, &q, 1), 0);
	assert_int_equal(store_upload_create(l.p, &one, NULL, 0, &first), 0);
	assert_int_equal(op_wait(&l, &first.op), 0);
	/* The changes that come while a block is written are in the next block. */
	assert_int_equal(store_bucket_create(l.p, "before", 6, 0, &before), 0);
	assert_int_equal(store_bucket_delete(l.p, "one", 3, &del), 0);
	assert_int_equal(store_bucket_create(l.p, "two", 3, 0, &make), 0);
	assert_int_equal(store_upload_create(l.p, &two, NULL, 0, &second), 0);
	assert_int_equal(op_wait(&l, &before.op), 0);
	assert_int_equal(op_wait(&l, &del.op), 0);
	assert_int_equal(op_wait(&l, &make.op), 0);
	assert_int_equal(op_wait(&l, &second.op), -EDQUOT);
	assert_int_equal(store_upload_create(l.p, &two, NULL, 0, &second), 0);
	assert_int_equal(op_wait(&l, &second.op), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_restart, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_early, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_no_length, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_reserved, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_overwritten, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_removed_in_block, setup, remove_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
