/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log over many laps: snapshots, trims, restarts at any point; a disk that is used up; a log that cannot
 * be trimmed fast enough; an index that is full.
 */
#include "extent/engine.h"
#include "fixture.h"
#include "many.h"

static int
setup(void **state)
{
	return make_store(100 * MIB);
}

static int
setup_tiny(void **state)
{
	return make_store(40 * MIB);
}

/* A PUT that is told "not now" comes again. */
static int
put_patient(const char *key, uint64_t size, uint64_t seed, uint32_t attrs_len)
{
	static char attrs[STORE_ATTRS_MAX];
	struct put_args a = {
		.bucket = "b", .key = key, .size = size, .seed = seed, .attrs = attrs, .attrs_len = attrs_len
	};
	int r;

	wait_until((r = obj_put(&l, &a)) != -EAGAIN)
		loop_for(&l, 10 * NS_PER_MS);
	return r;
}

/* Objects from PREFIX<n> on, until one is refused: the number of that one. */
static int
fill_up(const char *prefix, int n, uint64_t size, uint32_t attrs_len)
{
	char name[32];
	int r;

	for (;; n++) {
		snprintf(name, sizeof name, "%s%d", prefix, n);
		r = put_patient(name, size, (uint64_t)n, attrs_len);
		if (r < 0)
			break;
	}
	assert_int_equal(r, -ENOSPC);
	return n;
}

#define KEYS 60

static void
test_laps(void **state)
{
	uint64_t rng = seed_from_env(), seeds[KEYS] = { 0 }, sizes[KEYS] = { 0 };
	struct store_unit_info i;

	/* 4 MiB of log, 12 KiB of attributes: some 300 records a lap */
	for (int n = 0; n < 3000; n++) {
		int k = (int)(rnd(&rng) % KEYS);
		char name[32];

		snprintf(name, sizeof name, "k%d", k);
		seeds[k] = (uint64_t)n + 1;
		sizes[k] = rnd(&rng) % 100000;
		assert_int_equal(put_patient(name, sizes[k], seeds[k], STORE_ATTRS_MAX), 0);
		if (rnd(&rng) % 300 == 0) {
			close_store();
			open_store();
		}
	}
	for (int k = 0; k < KEYS; k++) {
		char name[32];

		snprintf(name, sizeof name, "k%d", k);
		if (seeds[k])
			assert_int_equal(obj_check(&l, "b", name, sizes[k], seeds[k]), 0);
	}
	i = disk_info();
	assert_true(store_unit_number(&i, "log_used_bytes") < store_unit_number(&i, "log_bytes"));
	close_store();
	assert_int_equal(store_fsck(&conf, false, NULL, NULL), 0);
	open_store();
	for (int k = 0; k < KEYS; k++) {
		char name[32];

		snprintf(name, sizeof name, "k%d", k);
		if (seeds[k])
			assert_int_equal(obj_check(&l, "b", name, sizes[k], seeds[k]), 0);
	}
}

/* Full: 507, reads and deletes go on, and what is deleted can be used again; a snapshot is possible all the
 * time. */
static void
test_full(void **state)
{
	int n = 0;
	char name[32];

	for (int round = 0; round < 3; round++) {
		n = fill_up("f", n, 700000, 0);
		assert_true(n > 50);
		strcpy(name, "full");
		/* it stays so, and small objects in the log still go */
		assert_int_equal(put_patient(name, 700000, 1, 0), -ENOSPC);
		assert_int_equal(put_patient("small", 100, 1, 0), 0);
		assert_int_equal(obj_check(&l, "b", "f0", 700000, 0), 0);
		close_store();
		open_store();
		assert_int_equal(put_patient(name, 700000, 1, 0), -ENOSPC);
		for (int k = 20; k < n; k++) {
			snprintf(name, sizeof name, "f%d", k);
			assert_int_equal(obj_delete(&l, "b", name, NULL), 1);
		}
		n = 20;
	}
	for (int k = 0; k < 20; k++) {
		snprintf(name, sizeof name, "f%d", k);
		assert_int_equal(obj_check(&l, "b", name, 700000, (uint64_t)k), 0);
	}
}

#define TWO_CHUNKS (66 * MIB) /* a chunk has 64 MiB */

/*
 * Full: what was deleted a moment ago is space for the next PUT, which waits for it and is not refused.  An
 * object of several chunks has records of its own for them, which die behind it: there must be no moment at
 * which nothing seems to be on its way.
 */
static void
test_full_at_once(void **state)
{
	int n = fill_up("f", 0, TWO_CHUNKS, 0);

	assert_int_equal(n, 1);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(obj_delete(&l, "b", "f0", NULL), 1);
		assert_int_equal(put_patient("f0", TWO_CHUNKS, (uint64_t)i, 0), 0);
	}
}

/* A full disk can still take enough deletes and overwrites of small objects to wrap its log. */
static void
test_full_and_wrap(void **state)
{
	int n = fill_up("f", 0, 900000, 0);
	char name[32];
	uint64_t laps = 0;

	for (int i = 0; i < 1500; i++)
		assert_int_equal(put_patient("small", 100, (uint64_t)i, 12000), 0);
	laps = disk_number("snapshots");
	assert_true(laps >= 3);
	for (int k = 0; k < n; k++) {
		snprintf(name, sizeof name, "f%d", k);
		assert_int_equal(obj_delete(&l, "b", name, NULL), 1);
	}
	assert_int_equal(put_patient("again", 5 * MIB, 5, 0), 0);
	assert_int_equal(obj_check(&l, "b", "again", 5 * MIB, 5), 0);
}

static void
snapshot_and_wait(void)
{
	uint64_t before = disk_number("snapshots");

	store_snapshot(st);
	wait_until(!disk_number("snapshot_runs"))
		loop_for(&l, 10 * NS_PER_MS);
	assert_true(disk_number("snapshots") > before);
}

/* On request, although next to nothing is in the log: what came before it need not be read again, and all is
 * there. */
static void
test_on_request(void **state)
{
	char name[32];
	uint64_t used;

	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "s%d", i);
		assert_int_equal(put_patient(name, 300, (uint64_t)i, 1000), 0);
	}
	assert_int_equal(disk_number("snapshots"), 0);
	used = disk_number("log_used_bytes");
	/* The log is trimmed to where the one before the newest begins. */
	snapshot_and_wait();
	snapshot_and_wait();
	assert_true(disk_number("log_used_bytes") < used / 2);
	close_store();
	open_store();
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "s%d", i);
		assert_int_equal(obj_check(&l, "b", name, 300, (uint64_t)i), 0);
	}
}

/* The index's memory is bounded: no new objects, but deletes. */
static void
test_index_full(void **state)
{
	int n = 0, r;
	char name[32];

	close_store();
	conf.disks.index_bytes = 4 * MIB;
	open_store();
	n = fill_up("i", n, 10, 12000);
	assert_true(n > 100);
	for (int k = 0; k < n; k++) {
		snprintf(name, sizeof name, "i%d", k);
		assert_int_equal(obj_check(&l, "b", name, 10, (uint64_t)k), 0);
		wait_until((r = obj_delete(&l, "b", name, NULL)) != -EAGAIN)
			loop_for(&l, 10 * NS_PER_MS);
		assert_int_equal(r, 1);
	}
	/* Memory comes back by and by: a snapshot may hold some, for as long as the disk takes. */
	wait_until((r = put_patient("i", 10, 1, 12000)) != -ENOSPC)
		loop_for(&l, 10 * NS_PER_MS);
	assert_int_equal(r, 0);
}

/* Segments are made while it serves: a PUT that outruns them waits. */
static void
test_outruns_segments(void **state)
{
	assert_int_equal(put_patient("big", 60 * MIB, 1, 0), 0);
	assert_int_equal(obj_check(&l, "b", "big", 60 * MIB, 1), 0);
}

/* A disk in crumbs: an object of hundreds of extents, which lie in a map. */
static void
test_crumbs(void **state)
{
	struct store_unit_info before;
	char name[32];
	int n = 0;

	before = disk_info();
	assert_int_equal(put_patient("base", 6 * MIB, 1, 0), 0);
	n = fill_up("c", n, 10000, 0);
	for (int k = 0; k < n; k += 2) {
		snprintf(name, sizeof name, "c%d", k);
		assert_int_equal(obj_delete(&l, "b", name, NULL), 1);
	}
	loop_for(&l, 50 * NS_PER_MS);
	assert_int_equal(put_patient("many", MIB + 3, 7, 0), 0);
	assert_int_equal(put_patient("more", 8 * MIB + 3, 8, 0), 0);
	assert_int_equal(obj_check(&l, "b", "many", MIB + 3, 7), 0);
	for (int i = 0; i < 2; i++) {
		close_store();
		assert_int_equal(store_fsck(&conf, false, NULL, NULL), 0);
		open_store();
		assert_int_equal(obj_check(&l, "b", "many", MIB + 3, 7), 0);
		assert_int_equal(obj_check(&l, "b", "more", 8 * MIB + 3, 8), 0);
	}
	for (int k = 1; k < n; k += 2) {
		snprintf(name, sizeof name, "c%d", k);
		assert_int_equal(obj_check(&l, "b", name, 10000, (uint64_t)k), 0);
		assert_int_equal(obj_delete(&l, "b", name, NULL), 1);
	}
	assert_int_equal(obj_delete(&l, "b", "base", NULL), 1);
	assert_int_equal(obj_delete(&l, "b", "many", NULL), 1);
	assert_int_equal(obj_delete(&l, "b", "more", NULL), 1);
	wait_free(before.free_bytes, 2 * MIB); /* snapshots hold a little */
}

static const char *
name_of(char name[MANY_NAME], uint64_t i)
{
	snprintf(name, MANY_NAME, "many-%06llu", (unsigned long long)i);
	return name;
}

/* Objects up to this number are written again, in turn, for some snapshots: the least log between two of them, in
 * hundredths of the ring. */
static uint64_t
least_interval(struct many *m, uint64_t objects)
{
	struct vol *vol = extent_store(st)->vol;
	uint64_t at = 0, begin = 0, least = UINT64_MAX;

	for (int nr = 0; nr < 4;) {
		uint64_t now;

		put_many(m, at, 50);
		at = at + 50 + m->at_once < objects ? at + 50 : 0;
		/* No commit waits for room, so none comes early. */
		wait_until(vol->snap.state == SNAP_IDLE)
			loop_turn(&l);
		now = vol->snap.begin;
		if (now == begin)
			continue;
		if (++nr > 2 && now - begin < least)
			least = now - begin;
		begin = now;
	}
	return least * 100 / vol->disk.geo.log_bytes;
}

/* What snapshots write is bounded by what the log does, as far as the log goes; beyond, that is said. */
static void
test_interval(void **state)
{
	static const char attrs[4000];
	struct many m = { .at_once = 32, .name = name_of, .attrs = attrs, .attrs_len = sizeof attrs };
	uint64_t few = put_many(&m, 0, 200), many = put_many(&m, few, 1700), got;

	got = least_interval(&m, many);
	assert_in_range(got, 36, 42);
	assert_non_null(strstr(disk_info().reason, "snapshots write "));
	for (uint64_t i = few; i < many; i++) {
		char name[MANY_NAME];

		assert_true(obj_delete(&l, "b", name_of(name, i), NULL) >= 0);
	}
	got = least_interval(&m, few);
	assert_in_range(got, 30, 35);
	assert_string_equal(disk_info().reason, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_laps, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_full, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_full_at_once, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_full_and_wrap, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_on_request, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_index_full, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_outruns_segments, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_crumbs, setup_tiny, remove_store),
		cmocka_unit_test_setup_teardown(test_interval, setup, remove_store),
	};

	log_init(LOG_PLAIN, LOG_WARN);
	return cmocka_run_group_tests_name("store_log", tests, NULL, NULL);
}
