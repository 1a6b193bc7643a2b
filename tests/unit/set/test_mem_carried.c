/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PUTs whose keys go to another disk in memory between their beginning and their commit: all kinds of PUTs are replayed there, validated there,
 * and leave nothing on the former disk, and their callers do not notice.  SEED= repeats a run.
 */
#include "mem_rig.h"

#include "tests/fake/mem_store.h"
#include "tests/unit/set/put_steps.h"

static uint64_t seed;

static int
setup_of(int nr)
{
	rig_begin(seed, nr);
	up();
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	return 0;
}

static int
setup_two(void **state)
{
	return setup_of(2);
}

static int
setup_three(void **state)
{
	return setup_of(3);
}

static int
setup_four(void **state)
{
	return setup_of(4);
}

static int
teardown(void **state)
{
	down();
	rig_end();
	return 0;
}

static struct store *
disk_store(int disk)
{
	return set_engine(set_of(st), disk);
}

/* Tells whether no disk has a PUT or an open object, and no replay is in progress. */
static bool
is_idle(void)
{
	bool idle = !set_port(store_user_port(user, 0))->inflight;

	for (int i = 0; i < set_engines(set_of(st)); i++)
		idle &= mem_store_put_nr(disk_store(i)) == 0 && mem_store_open_nr(disk_store(i)) == 0;
	return idle;
}

static void
test_objects(void **state)
{
	put_kinds(ONE, kinds, KINDS, 2);
	assert_true(is_idle());
}

static void
test_two_copies(void **state)
{
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	put_kinds(TWO, kinds, KINDS, 3);
	assert_true(is_idle());
}

static void
test_parts(void **state)
{
	put_parts(ONE, 2);
	assert_true(is_idle());
}

static void
test_parts_of_two(void **state)
{
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	put_parts(TWO, 3);
	assert_true(is_idle());
}

/* ---- judged where the key is ---- */

static void
put_now(const struct store_key *k, uint64_t size)
{
	struct slow s;

	begin_put(&s, k, size, true, NULL, 0);
	assert_int_equal(commit_put(&s), 0);
}

static void
judge(const char *bucket, int nr)
{
	enum { ABSENT, THERE, MATCH, NO_MATCH, KEPT, NONE_MATCH, VERSION, CASES };
	static const int results[] = { 0, -EEXIST, 0, -ESTALE, -EPERM, -EEXIST, -ESTALE };
	char names[CASES][32];
	uint64_t was[DISKS];

	for (int i = 0; i < CASES; i++) {
		struct store_key k = key_at(names[i], bucket, 0);

		if (i != ABSENT)
			put_now(&k, 1000);
		note_room(was, nr);
		begin_put(&slow[i], &k, 2 * MIB, i % 2, NULL, 0);
		slow[i].c.pre.kind = i == MATCH || i == NO_MATCH ? PRE_MATCH
				     : i == NONE_MATCH           ? PRE_NONE_MATCH
				     : i == VERSION              ? PRE_VERSION
				     : i == KEPT                 ? PRE_NONE
								 : PRE_ABSENT;
		slow[i].c.pre.keep = i == KEPT;
		slow[i].c.pre.version = 77;
		slow[i].c.pre.etag_nr = i == MATCH || i == NO_MATCH || i == NONE_MATCH;
		/* What is there when it begins, and what is there when it ends. */
		slow[i].c.pre.etags[0] = (struct store_etag){ .parts = 0 };
		memcpy(slow[i].c.pre.etags[0].sum, &(uint64_t){ i == NO_MATCH ? 1000 : 1001 },
		       sizeof(uint64_t));
	}
	drain(paths[0]);
	for (int i = 0; i < CASES; i++) {
		if (i != ABSENT)
			put_now(&slow[i].key, 1001);
		assert_int_equal(commit_put(&slow[i]), results[i]);
		if (results[i] == 0)
			must_be_there(&slow[i], slow[i].put.version);
	}
	assert_true(is_idle());
}

static void
test_judged(void **state)
{
	judge(ONE, 2);
}

static void
test_judged_two(void **state)
{
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	judge(TWO, 3);
}

/* The upload of a part is aborted, and a bucket is removed, before the commit. */
static void
test_gone(void **state)
{
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint64_t was[2];
	char name[32];
	struct store_key k = key_at(name, ONE, 0), in;

	note_room(was, 2);
	assert_int_equal(upload_begin(user, k.bucket, k.key, id), 0);
	begin_put(&slow[0], &k, 2 * MIB, true, id, 1);
	assert_int_equal(make_bucket(user, "empty", 1), 0);
	in = key_at(name, "empty", 0);
	begin_put(&slow[1], &in, 2 * MIB, true, NULL, 0);
	drain(paths[0]);
	assert_int_equal(upload_abort(user, ONE, slow[0].name, id), 0);
	assert_int_equal(remove_bucket(user, "empty"), 0);
	assert_int_equal(commit_put(&slow[0]), -ENOENT);
	assert_int_equal(commit_put(&slow[1]), -ENXIO);
	wait_free(0, was[0]);
	wait_free(1, was[1]);
}

static void
test_quota(void **state)
{
	struct store_use max = { STORE_UNBOUNDED, 5 * MIB, STORE_UNBOUNDED };
	struct store_bucket_set op;
	uint64_t was[2];
	char name[32];
	struct store_key k = key_at(name, ONE, 0);

	note_room(was, 2);
	begin_put(&slow[0], &k, 4 * MIB, true, NULL, 0);
	k = key_at(name, ONE, 0);
	begin_put(&slow[1], &k, 3 * MIB, true, NULL, 0);
	drain(paths[0]);
	assert_int_equal(
		STORE_DO(user, &op.op,
			 store_bucket_set_quota(store_user_port(user, 0), ONE, strlen(ONE), &max, &op)),
		0);
	assert_int_equal(commit_put(&slow[0]), 0);
	assert_int_equal(commit_put(&slow[1]), -EDQUOT);
	must_leave_nothing(1, was, 2);
}

/* The current disk has no room: the caller is told by the commit, and the disk is as full as before. */
static void
test_no_room(void **state)
{
	char name[32];
	struct store_key k = key_at(name, ONE, 0);
	uint64_t was = free_bytes(0), full;

	begin_put(&slow[0], &k, 20 * MIB, true, NULL, 0);
	k = key_at(name, ONE, 0);
	begin_put(&slow[1], &k, 300000, true, NULL, 0);
	k = key_at(name, ONE, 0);
	begin_put(&slow[2], &k, 5, true, NULL, 0);
	drain(paths[0]);
	mem_disk_leave_free(paths[1], 65536);
	full = free_bytes(1);
	assert_int_equal(commit_put(&slow[0]), -ENOSPC);
	assert_int_equal(commit_put(&slow[1]), -ENOSPC);
	assert_int_equal(free_bytes(1), full);
	assert_int_equal(commit_put(&slow[2]), 0);
	must_be_there(&slow[2], slow[2].put.version);
	wait_free(0, was);
	assert_true(is_idle());
}

/* A PUT that is aborted leaves nothing, wherever its key is. */
static void
test_aborted(void **state)
{
	uint64_t was[2];
	char name[32];

	note_room(was, 2);
	for (unsigned i = 0; i < KINDS; i++) {
		struct store_key k = key_at(name, ONE, 0);

		begin_put(&slow[i], &k, kinds[i].size, kinds[i].rides, NULL, 0);
	}
	drain(paths[0]);
	for (unsigned i = 0; i < KINDS; i++)
		abort_put(&slow[i]);
	wait_free(0, was[0]);
	wait_free(1, was[1]);
	assert_true(is_idle());
}

static bool
refuse(struct store_carrier *c, struct store_put *put)
{
	return false;
}

/* A PUT that cannot be replayed is -EXDEV, and gives all back. */
static void
test_refused(void **state)
{
	struct set_port *p = set_port(store_user_port(user, 0));
	uint64_t was[2];
	char name[32];

	note_room(was, 2);
	for (unsigned i = 0; i < KINDS; i++) {
		struct store_key k = key_at(name, ONE, 0);

		begin_put(&slow[i], &k, kinds[i].size, kinds[i].rides, NULL, 0);
	}
	drain(paths[0]);
	p->carrier.carry = refuse;
	for (unsigned i = 0; i < KINDS; i++) {
		assert_int_equal(commit_put(&slow[i]), -EXDEV);
		assert_int_equal(get(user, ONE, slow[i].name), 0);
	}
	wait_free(0, was[0]);
	wait_free(1, was[1]);
	assert_true(is_idle());
}

/* A PUT of which each disk says that the key is elsewhere is not replayed for ever. */
static void
test_nowhere(void **state)
{
	uint64_t was[3];
	char name[32];
	struct store_key k = key_at(name, ONE, 0);
	int is;

	note_room(was, 3);
	begin_put(&slow[0], &k, 3 * MIB, true, NULL, 0);
	drain(paths[0]);
	/* The placement names a disk that does not have the key. */
	is = set_primary(set_of(st), &k);
	set_assign(set_of(st), store_place(&k), SET_PRIMARY, is == 1 ? 2 : 1);
	assert_int_equal(commit_put(&slow[0]), -EXDEV);
	set_assign(set_of(st), store_place(&k), SET_PRIMARY, is);
	assert_int_equal(get(user, ONE, name), 0);
	for (int i = 0; i < 3; i++)
		wait_free(i, was[i]);
	assert_true(is_idle());
}

/* The checksum that the client expects of its bytes is validated before anything else. */
static void
test_other_bytes(void **state)
{
	char name[32];
	struct store_key k = key_at(name, ONE, 0);

	begin_put(&slow[0], &k, 2 * MIB, true, NULL, 0);
	drain(paths[0]);
	slow[0].c.have_expect_crc64 = true;
	slow[0].c.expect_crc64 = 4711;
	assert_int_equal(commit_put(&slow[0]), -EILSEQ);
	assert_int_equal(get(user, ONE, slow[0].name), 0);
	assert_true(is_idle());
}

/* ---- in the middle of a replay ---- */

/* Commits, and hangs the former disk when the replay has begun to read there. */
static int
commit_reading(struct slow *s, int former)
{
	int r = commit_start(s);

	assert_int_equal(r, 0);
	while (!mem_store_open_nr(disk_store(former)))
		store_user_turn(user);
	mem_disk_hang(paths[former], true);
	return r;
}

/* Commits, and hangs the current disk, to which the replay writes. */
static int
commit_writing(struct slow *s, int current)
{
	int r;

	mem_disk_hang(paths[current], true);
	r = commit_start(s);
	assert_int_equal(r, 0);
	while (!mem_store_inflight(disk_store(current)))
		store_user_turn(user);
	return r;
}

static void
move_twice(const char *bucket, int nr, uint64_t size)
{
	uint64_t was[DISKS];
	char name[32];
	struct store_key k = key_at(name, bucket, 0);
	int next, r;

	note_room(was, nr);
	begin_put(&slow[0], &k, size, true, NULL, 0);
	drain(paths[0]);
	next = home_of(&slow[0].key);
	r = commit_reading(&slow[0], 0);
	drain(paths[next]);
	assert_int_not_equal(home_of(&slow[0].key), next);
	/* The lock of a key with two copies is held, and who opens the key waits. */
	if (!has_two(bucket))
		assert_int_equal(get(user, bucket, name), 0);
	mem_disk_hang(paths[0], false);
	assert_int_equal(commit_end(&slow[0], r), 0);
	must_be_there(&slow[0], slow[0].put.version);
	must_leave_nothing(1, was, nr);
}

static void
test_twice(void **state)
{
	move_twice(ONE, 3, 3 * MIB);
}

static void
test_twice_of_two(void **state)
{
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	move_twice(TWO, 4, 3 * MIB);
}

/* ---- disks that fail ---- */

static void
test_old_unreadable(void **state)
{
	uint64_t was[2];
	char name[32];

	note_room(was, 2);
	for (int i = 0; i < 3; i++) {
		struct store_key k = key_at(name, ONE, 0);

		begin_put(&slow[i], &k, i == 2 ? 5 : 3 * MIB, true, NULL, 0);
	}
	drain(paths[0]);
	mem_disk_unreadable(paths[0], true);
	assert_int_equal(commit_put(&slow[0]), -EXDEV);
	assert_int_equal(get(user, ONE, slow[0].name), 0);
	assert_int_equal(commit_put(&slow[2]), 0); /* whose bytes are in memory */
	mem_disk_unreadable(paths[0], false);
	assert_int_equal(commit_put(&slow[1]), 0);
	must_be_there(&slow[1], slow[1].put.version);
	assert_int_equal(delete_key(&slow[1].key), 1);
	assert_int_equal(delete_key(&slow[2].key), 1);
	wait_free(0, was[0]);
	wait_free(1, was[1]);
	assert_true(is_idle());
}

/* The former disk hangs while a replay reads there, and then its reads fail. */
static void
test_old_fails(void **state)
{
	uint64_t was;
	char name[32];
	struct store_key k = key_at(name, ONE, 0);
	int r;

	was = free_bytes(1);
	begin_put(&slow[0], &k, 3 * MIB, true, NULL, 0);
	drain(paths[0]);
	r = commit_reading(&slow[0], 0);
	/* Only the replay waits. */
	assert_int_equal(put(user, ONE, "another", 5), 0);
	assert_int_equal(del(user, ONE, "another"), 1);
	mem_disk_unreadable(paths[0], true);
	mem_disk_hang(paths[0], false);
	assert_int_equal(commit_end(&slow[0], r), -EXDEV);
	assert_int_equal(get(user, ONE, slow[0].name), 0);
	wait_free(1, was);
	assert_true(is_idle());
}

static void
test_new_fails(void **state)
{
	char name[32];
	struct store_key k = key_at(name, ONE, 0);
	int next, r;

	begin_put(&slow[0], &k, 3 * MIB, true, NULL, 0);
	begin_put(&slow[1], &k, 3 * MIB, true, NULL, 0);
	drain(paths[0]);
	next = home_of(&slow[0].key);
	r = commit_writing(&slow[0], next);
	mem_disk_fail(paths[next], 0);
	mem_disk_hang(paths[next], false);
	assert_int_equal(commit_end(&slow[0], r), -EROFS);
	assert_int_equal(get(user, ONE, slow[0].name), 0);
	assert_int_equal(commit_put(&slow[1]), -EROFS);
	assert_true(is_idle());
}

/* Of two copies the secondary becomes the primary meanwhile. */
static void
test_two_new_fails(void **state)
{
	char name[32];
	struct store_key k;
	int next, r;

	assert_int_equal(make_bucket(user, TWO, 2), 0);
	k = key_at(name, TWO, 0);
	begin_put(&slow[0], &k, 3 * MIB, true, NULL, 0);
	begin_put(&slow[1], &k, 3 * MIB, true, NULL, 0);
	drain(paths[0]);
	next = home_of(&slow[0].key);
	r = commit_writing(&slow[0], next);
	mem_disk_fail(paths[next], 0);
	mem_disk_hang(paths[next], false);
	r = commit_end(&slow[0], r);
	assert_true(r == 0 || r == -EROFS || r == -ECANCELED);
	/* The second PUT is replayed at the new primary. */
	for (uint64_t until = clock_ns() + PATIENCE_NS; home_of(&slow[0].key) == next && clock_ns() < until;)
		store_user_turn(user);
	assert_int_equal(commit_put(&slow[1]), 0);
	must_be_on(&slow[1], slow[1].put.version, 1);
	assert_true(is_idle());
}

int
main(void)
{
#define T(f, setup) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_objects, setup_two),        T(test_two_copies, setup_three),
		T(test_parts, setup_two),          T(test_parts_of_two, setup_three),
		T(test_judged, setup_two),         T(test_judged_two, setup_three),
		T(test_gone, setup_two),           T(test_quota, setup_two),
		T(test_no_room, setup_two),        T(test_aborted, setup_two),
		T(test_refused, setup_two),        T(test_nowhere, setup_three),
		T(test_other_bytes, setup_two),    T(test_twice, setup_three),
		T(test_twice_of_two, setup_four),  T(test_old_unreadable, setup_two),
		T(test_old_fails, setup_two),      T(test_new_fails, setup_three),
		T(test_two_new_fails, setup_four),
	};

	seed = turns_seed();
	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
