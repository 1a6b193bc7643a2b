/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes that find no room below the disk (a quota, a thin device, a limit on files), whatever the errno: the
 * disk lives on, changes that need the room end with -ENOSPC, and work again once there is room, without a
 * restart.  On a ring that fails on demand.
 */
#include "extent/engine.h" /* ahead of the fixture, whose names it does not know */

#include "fixture.h"
#include "tests/fake/fault_ring.h"

static const char *_Atomic bad_name; /* of files, the beginning; NULL: all writes are taken */
static _Atomic int bad_result;
static _Atomic unsigned refused;

static int
hook(const struct fault_io *io)
{
	const char *name = bad_name;

	if (!name || io->kind != FAULT_WRITE || strncmp(io->name, name, strlen(name)) != 0)
		return 0;
	refused++;
	return bad_result;
}

static void
bad(const char *name, int result)
{
	bad_result = result;
	refused = 0;
	bad_name = name;
}

static int
setup(void **state)
{
	int r;

	bad_name = NULL;
	fault_ring_hook = hook;
	r = make_store(100 * MIB);
	wait_until(!disk_segments_left(&extent_store(st)->vol->disk)) {
		atomic_store(&extent_store(st)->vol->disk.seg_hungry, true);
		helper_ring(&extent_store(st)->vol->helper);
		loop_for(&l, 10 * NS_PER_MS);
	}
	return r;
}

static int
teardown(void **state)
{
	bad_name = NULL;
	return remove_store(state);
}

/* Waits until that many writes were refused; asks for snapshots, too. */
static void
wait_refused(unsigned nr)
{
	/* The helper waits for seconds before it tries again. */
	wait_usual(10 * NS_PER_S, refused >= nr) {
		store_snapshot(st);
		helper_ring(&extent_store(st)->vol->helper);
		loop_for(&l, 5 * NS_PER_MS);
	}
}

/* Puts until it is taken, for as long as the disk says that there is no room. */
static int
put_at_last(const char *key, uint64_t size)
{
	int r;

	wait_until((r = put_simple(&l, "b", key, size, 1)) != -ENOSPC)
		loop_for(&l, 5 * NS_PER_MS);
	return r;
}

static void
all_is_there(void)
{
	assert_int_equal(disk_info().state, UNIT_OK);
	assert_int_equal(obj_check(&l, "b", "before", 3 * MIB, 1), 0);
	assert_int_equal(put_at_last("after", 100000), 0);
	assert_int_equal(put_at_last("large", 5 * MIB), 0);
	close_store();
	open_store();
	assert_int_equal(disk_info().state, UNIT_OK);
	assert_int_equal(obj_check(&l, "b", "before", 3 * MIB, 1), 0);
	assert_int_equal(obj_check(&l, "b", "after", 100000, 1), 0);
	assert_int_equal(obj_check(&l, "b", "large", 5 * MIB, 1), 0);
	assert_int_equal(obj_check(&l, "b", "x", 100000, 1), -ENOENT);
}

static const int no_room[] = { -ENOSPC, -EDQUOT, -EFBIG, FAULT_SHORT };

/* The errno that is reported: a write that ends short tells none. */
static int
reported(int result)
{
	return result == FAULT_SHORT ? ENOSPC : -result;
}

static void
test_data(void **state)
{
	uint64_t free_bytes;

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	for (size_t i = 0; i < sizeof no_room / sizeof *no_room; i++) {
		assert_int_equal(put_at_last("old", 100000), 0);
		bad("seg-", no_room[i]);
		assert_int_equal(put_simple(&l, "b", "x", 100000, 1), -ENOSPC);
		assert_int_equal(put_simple(&l, "b", "x", 5 * MIB, 1), -ENOSPC);
		assert_int_equal(disk_info().state, UNIT_OK);
		assert_int_equal(disk_number("no_room"), reported(no_room[i]));
		/* Changes that need none of it work. */
		assert_int_equal(obj_delete(&l, "b", "old", NULL), 1);
		assert_int_equal(put_simple(&l, "b", "in the log", 10, 1), 0);
		bad_name = NULL;
	}
	/* What was refused keeps nothing. */
	free_bytes = disk_info().free_bytes;
	bad("seg-", -EDQUOT);
	for (int i = 0; i < 300; i++)
		assert_int_equal(put_simple(&l, "b", "x", 900000, 1), -ENOSPC);
	bad_name = NULL;
	wait_free(free_bytes, 2 * MIB);
	all_is_there();
}

static void
test_log(void **state)
{
	uint64_t free_bytes;

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	loop_for(&l, 30 * NS_PER_MS);
	free_bytes = disk_info().free_bytes;
	for (size_t i = 0; i < sizeof no_room / sizeof *no_room; i++) {
		bad("log", no_room[i]);
		assert_int_equal(put_simple(&l, "b", "x", 100000, 1), -ENOSPC);
		assert_int_equal(put_simple(&l, "b", "x", 10, 1), -ENOSPC);
		assert_int_equal(obj_delete(&l, "b", "before", NULL), -ENOSPC);
		assert_int_equal(put_simple(&l, "b", "x", 5 * MIB, 1), -ENOSPC);
		assert_int_equal(disk_info().state, UNIT_OK);
		assert_int_equal(disk_number("no_room"), reported(no_room[i]));
		bad_name = NULL;
		assert_int_equal(put_at_last("old", 10), 0);
	}
	wait_free(free_bytes, 2 * MIB);
	all_is_there();
}

/* Waits for an operation whose start said r. */
static int
over(struct store_op *op, int r)
{
	return r == 0 ? op_wait(&l, op) : r < 0 ? r : op->result;
}

/* What needs no room is done all the same: the set opens a gate only once. */
static void
test_gate(void **state)
{
	const struct store_key g = { .bucket = "g", .bucket_len = 1 };
	const struct store_change make = {
		.act = ACT_MAKE_BUCKET, .key = g, .copies = 1, .ctime_ns = clock_wall_ns(), .is_gated = true
	};
	const struct store_change open = { .act = ACT_GATE_BUCKET, .key = g, .gate = GATE_OPEN };
	struct store_del op = { .op.done = on_put };

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	assert_int_equal(over(&op.op, l.p->ops->apply(l.p, &make, &op.op)), 0);
	assert_int_equal(put_simple(&l, "g", "x", 10, 1), -ENXIO);
	bad("log", -EDQUOT);
	assert_int_equal(put_simple(&l, "b", "x", 10, 1), -ENOSPC);
	op = (struct store_del){ .op.done = on_put };
	assert_int_equal(over(&op.op, l.p->ops->apply(l.p, &open, &op.op)), 0);
	bad_name = NULL;
	assert_int_equal(put_at_last("old", 10), 0);
	assert_int_equal(put_simple(&l, "g", "x", 10, 1), 0);
	all_is_there();
}

/* Snapshots, and the superblock that names one, are made as soon as there is room. */
static void
test_snapshot(void **state)
{
	static const char *const name[] = { "seg-", "super" };

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		uint64_t before = disk_number("snapshots");

		bad(name[i], -EDQUOT);
		wait_refused(2);
		assert_int_equal(disk_info().state, UNIT_OK);
		assert_int_equal(disk_number("snapshots"), before);
		assert_int_equal(disk_number("no_room"), EDQUOT);
		bad_name = NULL;
		make_snapshot();
		make_snapshot();
	}
	all_is_there();
}

/* The log fills while no snapshot finds room, until PUTs are refused before they become commits. Once there is room, such a
 * PUT is enough for the next snapshot. Deletes fill a large log so far; here the number says so. */
static void
test_full_log(void **state)
{
	static char attrs[4000];
	struct vol *vol = extent_store(st)->vol;
	struct snapshot *snap = &vol->snap;
	char key[32];
	struct put_args a = {
		.bucket = "b", .key = key, .size = 8, .attrs = attrs, .attrs_len = sizeof attrs
	};
	uint64_t most = vol->disk.geo.log_bytes / 100 * 95;
	int r = 0;

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	bad("seg-", -ENOSPC);
	for (int i = 0; r == 0 && i < 3000; i++) {
		snprintf(key, sizeof key, "r%d", i);
		r = obj_put(&l, &a);
	}
	assert_int_equal(r, -EAGAIN);
	wait_until(atomic_load(&snap->retry_ns) != 0 && atomic_load(&snap->state) == SNAP_IDLE)
		loop_for(&l, 5 * NS_PER_MS);
	loop_for(&l, 50 * NS_PER_MS); /* work that waits for a leader */
	atomic_fetch_add(&vol->log_used, most + 1 - atomic_load(&vol->log_used));
	bad_name = NULL;
	atomic_store(&snap->retry_ns, 0);
	wait_until((r = obj_put(&l, &a)) != -EAGAIN)
		loop_for(&l, 5 * NS_PER_MS);
	assert_int_equal(r, 0);
	all_is_there();
}

static _Atomic int table_result;

static void
table_done(struct store_table_write *w, int result)
{
	table_result = result;
}

static void
test_table(void **state)
{
	static struct store_table_write w = { table_done };
	struct disk *d = &extent_store(st)->vol->disk;

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	bad("super", -EDQUOT);
	table_result = 1;
	disk_ask_table(d, &d->sb.table, &w);
	wait_refused(2);
	assert_int_equal(table_result, 1);
	bad_name = NULL;
	wait_until(table_result != 1) {
		helper_ring(&extent_store(st)->vol->helper);
		loop_for(&l, 5 * NS_PER_MS);
	}
	assert_int_equal(table_result, 0);
	all_is_there();
}

static void
test_host(void **state)
{
	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	bad("host", -EDQUOT);
	wait_refused(2);
	assert_int_equal(disk_info().state, UNIT_OK);
	bad_name = NULL;
	all_is_there();
}

/* A segment that cannot be made is room that is counted as free. */
static void
test_segment(void **state)
{
	struct disk *d;

	fault_ring_hook = hook;
	bad("seg-0001", -EDQUOT);
	assert_int_equal(make_store(100 * MIB), 0);
	d = &extent_store(st)->vol->disk;
	wait_until(disk_number("no_room") != 0) {
		atomic_store(&d->seg_hungry, true);
		helper_ring(&extent_store(st)->vol->helper);
		loop_for(&l, 5 * NS_PER_MS);
	}
	assert_int_equal(disk_number("no_room"), EDQUOT);
	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	bad_name = NULL;
	wait_until(!disk_number("no_room")) {
		atomic_store(&d->seg_hungry, true);
		helper_ring(&extent_store(st)->vol->helper);
		loop_for(&l, 5 * NS_PER_MS);
	}
	assert_int_equal(disk_number("no_room"), 0);
	all_is_there();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_data, setup, teardown),
		cmocka_unit_test_setup_teardown(test_log, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_snapshot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_log, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_host, setup, teardown),
		cmocka_unit_test_teardown(test_segment, teardown),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_no_room", tests, NULL, NULL);
}
