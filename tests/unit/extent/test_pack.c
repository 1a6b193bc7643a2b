/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small objects are moved together: they take the room they need then, are what they were to whoever reads them or
 * judges by them, and give back their unit when the last of them is gone.
 */
#include "extent/engine.h"
#include "fixture.h"

#define KEYS 200
#define UNIT FMT_UNIT_BYTES

static uint64_t size_of_key[KEYS], seed_of_key[KEYS]; /* size 0: not there */

static int
setup(void **state)
{
	int r;

	memset(size_of_key, 0, sizeof size_of_key);
	dir_make(dir);
	conf = conf_for(&dc, dir, 100 * MIB);
	conf.disks.pack_rate = 1024 * MIB;
	r = store_format(&conf, false, err, sizeof err);
	if (r < 0)
		return r;
	open_store();
	return bucket_make(&l, "b");
}

static const char *
name_of(int k)
{
	static char name[32];

	snprintf(name, sizeof name, "key/%d", k);
	return name;
}

static void
put(int k, uint64_t size)
{
	seed_of_key[k] += 1000;
	size_of_key[k] = size;
	assert_int_equal(put_simple(&l, "b", name_of(k), size, seed_of_key[k] + (uint64_t)k), 0);
}

static void
drop(int k)
{
	assert_int_equal(obj_delete(&l, "b", name_of(k), NULL), 1);
	size_of_key[k] = 0;
}

static void
check_all(void)
{
	for (int k = 0; k < KEYS; k++) {
		int r = obj_check(&l, "b", name_of(k), size_of_key[k], seed_of_key[k] + (uint64_t)k);

		if (r != (size_of_key[k] ? 0 : -ENOENT))
			fail_msg("key %d of %llu bytes: %d", k, (unsigned long long)size_of_key[k], r);
	}
}

static uint64_t
used_bytes(void)
{
	return disk_info().size_bytes - disk_info().free_bytes;
}

/* Until so many objects at most have a unit of their own, and no more than that take. */
static void
wait_packed(uint64_t loose, uint64_t units)
{
	wait_usual(PACK_USUAL_NS,
		   disk_number("loose_objects") <= loose && disk_number("packed_units") <= units)
		loop_for(&l, 10 * NS_PER_MS);
}

static void
fill_with(uint64_t size)
{
	for (int k = 0; k < KEYS; k++)
		put(k, size);
}

static void
test_room(void **state)
{
	static const struct {
		uint64_t size, percent;
	} what[] = { { 1024, 250 }, { 4096, 150 } };

	for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
		uint64_t room = disk_info().free_bytes, full, took;

		fill_with(what[i].size);
		full = room - disk_info().free_bytes;
		wait_packed(16, KEYS);
		/* The units of their own come back by and by; what is held back for snapshots may change. */
		wait_free(room, KEYS * what[i].size * what[i].percent / 100);
		took = room - disk_info().free_bytes;
		assert_true(took < full);
		check_all();
		for (int k = 0; k < KEYS; k++)
			drop(k);
		wait_free(room, 0);
		assert_int_equal(disk_number("packed_objects"), 0);
		assert_int_equal(disk_number("packed_units"), 0);
	}
}

static void
test_restart(void **state)
{
	uint64_t packed, units, used;

	for (int k = 0; k < KEYS; k++)
		put(k, 300 + 37 * (uint64_t)k);
	put(0, 100);
	put(1, 8192);
	put(2, 8193);
	put(3, 70000);
	put(4, 257);
	wait_packed(16, KEYS);
	check_all();
	/* What is loose may still be moved until the store is closed. */
	packed = disk_number("packed_objects");
	conf.disks.pack_rate = 0;
	close_store();
	open_store();
	assert_true(disk_number("packed_objects") >= packed);
	check_all();
	for (int i = 0; i < 3; i++) {
		packed = disk_number("packed_objects");
		units = disk_number("packed_units");
		used = used_bytes();
		assert_true(packed >= KEYS - 19 && units < KEYS / 2);
		if (i == 1) {
			make_snapshot();
			make_snapshot();
		}
		close_store();
		assert_int_equal(store_fsck(&conf, false, NULL, NULL), 0);
		open_store();
		assert_int_equal(disk_number("packed_objects"), packed);
		assert_int_equal(disk_number("packed_units"), units);
		assert_true(used_bytes() <= used + 64 * UNIT);
		check_all();
	}
	for (int k = 0; k < KEYS; k++)
		drop(k);
	wait_until(disk_number("packed_units") == 0)
		loop_for(&l, 5 * NS_PER_MS);
}

/* What was most of a unit goes: the rest of many is moved into few. */
static void
test_sparse(void **state)
{
	fill_with(1024);
	wait_packed(16, KEYS);
	for (int k = 0; k < KEYS; k++) {
		if (k % 5)
			drop(k);
	}
	/* 40 KiB. */
	wait_packed(16, 6);
	check_all();
}

/* Version, ETag and attributes stay, and so does what is judged by them; readers and changes of attributes are in the
 * way of nothing. */
static void
test_same(void **state)
{
	struct store_pre pre = { .kind = PRE_MATCH, .etag_nr = 1 };
	struct store_obj *obj = calloc(KEYS, sizeof *obj), now;
	struct store_etag etag = { .sum = "0123456789abcde" };
	uint64_t room = disk_info().free_bytes;
	struct put_args a = { .bucket = "b", .size = 2000, .etag = etag, .attrs = "attrs", .attrs_len = 5 };

	for (int k = 0; k < KEYS; k++) {
		a.key = name_of(k);
		a.seed = (uint64_t)k;
		assert_int_equal(obj_put(&l, &a), 0);
		assert_int_equal(obj_open(&l, "b", name_of(k), &obj[k]), 0);
	}
	wait_packed(8, KEYS);
	for (int k = 0; k < KEYS; k++) {
		assert_int_equal(obj_open(&l, "b", name_of(k), &now), 0);
		assert_int_equal(now.version, obj[k].version);
		assert_int_equal(now.crc64, obj[k].crc64);
		assert_int_equal(now.meta.mtime_ns, obj[k].meta.mtime_ns);
		assert_memory_equal(now.meta.etag.sum, etag.sum, 16);
		assert_int_equal(now.meta.attrs_len, 5);
		assert_memory_equal(now.meta.attrs, "attrs", 5);
		/* Of both places. */
		assert_int_equal(obj_read(&l, &obj[k], (uint64_t)k), 0);
		assert_int_equal(obj_read(&l, &now, (uint64_t)k), 0);
		store_close(l.p, &now);
	}
	/* The units of their own are still read. */
	assert_true(disk_info().free_bytes + KEYS * UNIT < room);
	for (int k = 0; k < KEYS; k++)
		store_close(l.p, &obj[k]);
	wait_free(room, KEYS * UNIT / 4);
	pre.etags[0] = etag;
	assert_int_equal(obj_delete(&l, "b", name_of(7), &pre), 1);
	pre.etags[0].sum[3] ^= 1;
	assert_int_equal(obj_delete(&l, "b", name_of(8), &pre), -ESTALE);
	free(obj);
}

/* Until there is no background work; then all of it is done, and no further wait is needed. */
static void
settle(void)
{
	wait_usual(PACK_USUAL_NS, !store_background(st))
		loop_for(&l, 5 * NS_PER_MS);
}

static void
test_background(void **state)
{
	uint64_t room, snapshots;
	struct store_obj obj;

	settle();
	room = disk_info().free_bytes;
	fill_with(4096);
	/* What came last is not moved yet. */
	assert_string_equal(store_background(st), "packing");
	settle();
	assert_true(disk_number("loose_objects") <= 16);
	check_all();
	/* What a reader has open is removed after its end. */
	assert_int_equal(obj_open(&l, "b", name_of(0), &obj), 0);
	for (int k = 0; k < KEYS; k++)
		drop(k);
	wait_until(disk_number("packed_units") <= 1)
		loop_for(&l, 5 * NS_PER_MS);
	assert_int_equal(disk_number("packed_units"), 1);
	assert_string_equal(store_background(st), "removal");
	store_close(l.p, &obj);
	settle();
	assert_int_equal(disk_number("packed_units"), 0);
	assert_true(disk_info().free_bytes >= room);
	snapshots = disk_number("snapshots");
	assert_int_equal(store_snapshot(st), 0);
	assert_non_null(store_background(st));
	settle();
	assert_int_equal(disk_number("snapshots"), snapshots + 1);
	/* Objects that do not fill a unit stay as they are: they are no work. */
	put(0, 4096);
	put(1, 4096);
	settle();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_room, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_restart, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_sparse, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_same, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_background, setup, remove_store),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
