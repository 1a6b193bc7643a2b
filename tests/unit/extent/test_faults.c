/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk says no: failed flushes and writes of every kind, failed reads, reads that come late, in any
 * order.  On a ring that fails on demand.
 */
/* A change that finds the log full waits for two seconds: a snapshot that failed is tried again after that time. */
#define WAIT_USUAL_NS (10 * NS_PER_S)

#include "extent/engine.h" /* ahead of the fixture, whose names it does not know */

#include "crumbs.h"
#include "fixture.h"
#include "tests/fake/fault_ring.h"

/* What fails: the kind, the file's beginning, and after how many of them. */
static _Atomic int bad_kind;
static const char *_Atomic bad_name;
static _Atomic int bad_after, bad_result; /* the helper's ring asks, too */
static _Atomic int bad_times;
static _Atomic char first_written; /* 'l': the log, 's': a segment; 0: neither yet */

static _Atomic bool asks;            /* a table is asked for by the next write of a snapshot */
static _Atomic unsigned super_tried; /* bits of the superblocks that were to be written */
static void ask_table(void);

static int
hook(const struct fault_io *io)
{
	const char *name = bad_name;
	int after;

	if (io->kind == FAULT_WRITE && strncmp(io->name, "seg-", 4) == 0 && asks)
		ask_table();
	if (io->kind == FAULT_WRITE && strncmp(io->name, "super", 5) == 0)
		super_tried = super_tried | 1u << (io->name[5] != 0);
	if (io->kind == FAULT_WRITE && !first_written && (strcmp(io->name, "log") == 0 || io->name[3] == '-'))
		first_written = io->name[0];
	if (!name || (int)io->kind != bad_kind || strncmp(io->name, name, strlen(name)) != 0)
		return 0;
	after = atomic_fetch_sub(&bad_after, 1);
	return after > 0 || after <= -bad_times ? 0 : bad_result;
}

static void
bad(enum fault_kind kind, const char *name, int after, int result)
{
	bad_kind = (int)kind;
	bad_after = after;
	bad_times = 1 << 30;
	bad_result = result;
	bad_name = name;
}

static void
good(void)
{
	bad_name = NULL;
}

static void
table_done(struct store_table_write *w, int result)
{
	assert_true(result < 0);
}

static struct store_table_write table_write = { table_done };

static void
ask_table(void)
{
	struct disk *d = &extent_store(st)->vol->disk;

	asks = false;
	disk_ask_table(d, &d->sb.table, &table_write);
}

/* Will the helper make another segment by itself?  See is_due() in disk/segment.c. */
static bool
segments_come(void)
{
	struct vol *vol = extent_store(st)->vol;
	uint64_t ahead = geo_units(&vol->disk.geo) / 16, two = 2 * geo_seg_units(&vol->disk.geo);
	struct alloc_stats as;

	alloc_stats(vol->disk.alloc, &as);
	return as.units < geo_units(&vol->disk.geo) && as.free < (ahead < two ? two : ahead) + as.held_back;
}

/* Waits until the helper made all segments, so that its writes are not mixed with ours. */
static void
wait_due_segments(void)
{
	wait_until(!segments_come()) {
		helper_ring(&extent_store(st)->vol->helper);
		loop_for(&l, 10 * NS_PER_MS);
	}
	loop_for(&l, 20 * NS_PER_MS);
}

static int
setup(void **state)
{
	int r;

	good();
	fault_ring_hook = hook;
	r = make_store(100 * MIB);
	wait_due_segments();
	return r;
}

static int
teardown(void **state)
{
	good();
	return remove_store(state);
}

/* From now on: reads go, writes are refused, the reason stands in the state. */
static void
is_read_only(void)
{
	struct store_unit_info info;

	good();
	store_unit_info(st, 0, &info);
	assert_int_equal(info.state, UNIT_FAILED);
	assert_true(strlen(info.reason) > 5);
	assert_int_equal(obj_check(&l, "b", "before", 3 * MIB, 1), 0);
	assert_int_equal(put_simple(&l, "b", "after", 10, 1), -EROFS);
	assert_int_equal(put_simple(&l, "b", "after", 100000, 1), -EROFS);
	assert_int_equal(obj_delete(&l, "b", "before", NULL), -EROFS);
	assert_int_equal(bucket_make(&l, "c"), -EROFS);
	loop_for(&l, 30 * NS_PER_MS);
	assert_int_equal(obj_check(&l, "b", "before", 3 * MIB, 1), 0);
	/* a restart is the way out; what was acknowledged is there */
	close_store();
	open_store();
	assert_int_equal(obj_check(&l, "b", "before", 3 * MIB, 1), 0);
	assert_int_equal(put_simple(&l, "b", "after", 100000, 1), 0);
}

static void
test_flush_fails(void **state)
{
	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	bad(FAULT_FLUSH, "log", 0, -EIO);
	assert_int_equal(put_simple(&l, "b", "x", 100000, 1), -ECANCELED);
	is_read_only();
}

static void
test_flush_of_large_fails(void **state)
{
	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	loop_for(&l, 30 * NS_PER_MS);
	bad(FAULT_FLUSH, "log", 0, -EIO);
	assert_int_equal(put_simple(&l, "b", "x", 9 * MIB, 1), -EROFS);
	is_read_only();
}

/* A chunk may be in the log, whose write has failed: no other write gets its space. */
static void
test_log_write_of_chunk_fails(void **state)
{
	uint64_t free_bytes;
	int r;

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	wait_stamped(&l);
	free_bytes = disk_info().free_bytes;
	bad(FAULT_WRITE, "log", 0, -EIO);
	r = put_simple(&l, "b", "x", FMT_CHUNK_BYTES + MIB, 1);
	assert_true(r == -ECANCELED || r == -EROFS);
	loop_for(&l, 30 * NS_PER_MS);
	assert_true(disk_info().free_bytes + FMT_CHUNK_BYTES <= free_bytes);
	is_read_only();
}

static void
test_log_write_fails(void **state)
{
	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	loop_for(&l, 30 * NS_PER_MS);
	bad(FAULT_WRITE, "log", 0, -EIO);
	assert_int_equal(put_simple(&l, "b", "x", 100, 1), -ECANCELED);
	is_read_only();
}

static void
test_data_write_fails(void **state)
{
	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	bad(FAULT_WRITE, "seg-", 0, -EIO);
	/* with its record: nobody knows; before it: known not to be */
	assert_int_equal(put_simple(&l, "b", "x", 100000, 1), -ECANCELED);
	is_read_only();
	wait_due_segments();
	bad(FAULT_WRITE, "seg-", 1, -EIO);
	assert_int_equal(put_simple(&l, "b", "y", 5 * MIB, 1), -EROFS);
	is_read_only();
	wait_due_segments();
	bad(FAULT_WRITE, "seg-", 9, -EIO);
	assert_int_equal(put_simple(&l, "b", "y", 10 * MIB, 1), -EROFS);
	is_read_only();
}

/* A stamp that fails is a failed write like any other. */
static void
test_stamp_fails(void **state)
{
	struct store_unit_info info;

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	bad(FAULT_WRITE, "log", 0, -EIO);
	loop_for(&l, 50 * NS_PER_MS);
	store_unit_info(st, 0, &info);
	assert_int_equal(info.state, UNIT_FAILED);
	is_read_only();
}

static void
test_read_fails(void **state)
{
	struct store_unit_info info;

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	/* the CRC block and the first piece; later the CRC block is known */
	for (int after = 0; after < 3; after++) {
		bad(FAULT_READ, "seg-", after, -EIO);
		assert_int_equal(obj_check(&l, "b", "before", 3 * MIB, 1), -EIO);
		good();
		assert_int_equal(obj_check(&l, "b", "before", 3 * MIB, 1), 0);
	}
	/* reading is not final */
	store_unit_info(st, 0, &info);
	assert_int_equal(info.state, UNIT_OK);
	assert_true(info.errors >= 3);
	assert_int_equal(put_simple(&l, "b", "x", 100000, 1), 0);
}

/* A device that says that it wrote, and did not: found by the reader. */
static void
test_lost_write(void **state)
{
	bad(FAULT_WRITE, "seg-", 0, FAULT_LIE);
	assert_int_equal(put_simple(&l, "b", "lost", 100000, 1), 0);
	good();
	assert_int_equal(obj_check(&l, "b", "lost", 100000, 1), -EBADMSG);
}

/* What is written in part, twice, is no write, of the log as of data: else a record behind the part would be taken
 * for one that is there.  The rest has found no room, and the disk lives on. */
static void
test_short(void **state)
{
	static char attrs[12000];
	struct put_args a = {
		.bucket = "b", .key = "x", .size = 10, .seed = 1, .attrs = attrs, .attrs_len = sizeof attrs
	};

	memset(attrs, 0xa5, sizeof attrs); /* no zeros, which the log has already */
	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	loop_for(&l, 30 * NS_PER_MS);
	bad(FAULT_WRITE, "log", 0, FAULT_SHORT);
	assert_int_equal(obj_put(&l, &a), -ENOSPC);
	assert_int_equal(disk_info().state, UNIT_OK);
	assert_int_equal(obj_check(&l, "b", "x", 10, 1), -ENOENT);
	good();
	wait_due_segments();
	bad(FAULT_WRITE, "seg-", 0, FAULT_SHORT);
	assert_int_equal(put_simple(&l, "b", "y", 100000, 1), -ENOSPC);
	good();
	assert_int_equal(disk_info().state, UNIT_OK);
	assert_int_equal(obj_check(&l, "b", "y", 100000, 1), -ENOENT);
	bad(FAULT_READ, "seg-", 0, FAULT_SHORT);
	assert_int_equal(obj_check(&l, "b", "before", 3 * MIB, 1), -EIO);
	good();
	assert_int_equal(obj_check(&l, "b", "before", 3 * MIB, 1), 0);
}

/* The kernel has no memory, or a signal ends it, once: it is done all the same.  Again and again: this PUT is
 * not now, and everything else goes on, with the space that it had. */
static void
test_no_memory(void **state)
{
	static const int errors[] = { -ENOMEM, -EAGAIN, -EINTR, -ENOBUFS, FAULT_SHORT };
	static const uint64_t sizes[] = { 1000, 100000, 3 * MIB, 9 * MIB, 66 * MIB };

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		for (size_t s = 0; s < (i ? 4 : 5); s++) {
			int r;

			bad(FAULT_WRITE, "seg-", (int)s, errors[i]);
			bad_times = 1;
			assert_int_equal(put_simple(&l, "b", "x", sizes[s], 2), 0);
			assert_int_equal(obj_check(&l, "b", "x", sizes[s], 2), 0);
			assert_int_equal(obj_delete(&l, "b", "x", NULL), 1);
			assert_true(obj_delete(&l, "b", "y", NULL) >= 0);
			loop_for(&l, 30 * NS_PER_MS);
			bad(FAULT_WRITE, "seg-", 0, errors[i]);
			r = put_simple(&l, "b", "y", sizes[s], 3);
			assert_true(errors[i] == FAULT_SHORT ? r == -ENOSPC
							     : r == -EAGAIN || r == -ECANCELED);
			good();
			assert_int_equal(disk_info().state, UNIT_OK);
			assert_int_equal(put_simple(&l, "b", "y", sizes[s], 4), 0);
			assert_int_equal(obj_check(&l, "b", "y", sizes[s], 4), 0);
			bad(FAULT_READ, "seg-", 0, errors[i]);
			bad_times = 1;
			assert_int_equal(obj_check(&l, "b", "before", 3 * MIB, 1), 0);
			good();
		}
		bad(FAULT_WRITE, "log", 0, errors[i]);
		bad_times = 1;
		assert_int_equal(put_simple(&l, "b", "z", 10, 5), 0);
		good();
	}
	loop_for(&l, 30 * NS_PER_MS);
	close_store();
	open_store();
	assert_int_equal(obj_check(&l, "b", "before", 3 * MIB, 1), 0);
	assert_int_equal(obj_check(&l, "b", "y", 9 * MIB, 4), 0);
}

/* Faults at start end the start; the next one, without, finds everything. */
static void
test_start_fails(void **state)
{
	static const struct {
		enum fault_kind kind;
		const char *name;
	} t[] = { { FAULT_READ, "log" },
		  { FAULT_FLUSH, "log" },
		  { FAULT_WRITE, "log" },
		  { FAULT_WRITE, NULL }, /* the older superblock */
		  { FAULT_FLUSH, NULL } };
	struct super sb;

	assert_int_equal(put_simple(&l, "b", "x", 100000, 1), 0);
	close_store();
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		bad(t[i].kind, t[i].name ? t[i].name : super_file[!read_super(&sb)], 0, -EIO);
		assert_int_equal(store_start(&conf, &st, err, sizeof err), -EIO);
		assert_non_null(strstr(err, dir));
		good();
		open_store();
		assert_int_equal(obj_check(&l, "b", "x", 100000, 1), 0);
		close_store();
	}
	/* the second flush: after the epoch block */
	bad(FAULT_FLUSH, "log", 1, -EIO);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -EIO);
	good();
	open_store();
	assert_int_equal(obj_check(&l, "b", "x", 100000, 1), 0);
}

/* A snapshot that does not get on: the log fills, 503; and when it is done, the next one is made for those
 * who wait. */
static void
test_snapshot_full(void **state)
{
	static char attrs[12000];
	struct put_args a = {
		.bucket = "b", .key = "x", .size = 10, .seed = 1, .attrs = attrs, .attrs_len = sizeof attrs
	};
	struct store_unit_info info;
	int n = 0, r;

	bad(FAULT_WRITE, "seg-", 0, FAULT_HOLD);
	while ((r = obj_put(&l, &a)) == 0)
		check(n++ < 2000);
	assert_int_equal(r, -EAGAIN);
	store_unit_info(st, 0, &info);
	assert_int_equal(info.state, UNIT_OK);
	assert_true(store_unit_number(&info, "log_used_bytes") > store_unit_number(&info, "log_bytes") / 2);
	/* deletes still go */
	assert_int_equal(obj_delete(&l, "b", "x", NULL), 1);
	good();
	wait_until((r = obj_put(&l, &a)) != -EAGAIN)
		loop_for(&l, 5 * NS_PER_MS);
	assert_int_equal(r, 0);
}

/* A snapshot that the disk refuses, whatever errno it gives,
 * or does not give back as written, ends the disk. */
static void
test_snapshot_fails(void **state)
{
	static char attrs[12000];
	static const struct {
		enum fault_kind kind;
		int result;
	} t[] = { { FAULT_WRITE, -EIO },
		  { FAULT_WRITE, -EREMOTEIO },
		  { FAULT_WRITE, FAULT_LIE },
		  { FAULT_READ, -ENODATA } };
	struct put_args a = {
		.bucket = "b", .key = "x", .size = 10, .seed = 1, .attrs = attrs, .attrs_len = sizeof attrs
	};
	struct store_unit_info info;

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		int n = 0;

		wait_due_segments();
		bad(t[i].kind, "seg-", 0, t[i].result);
		do {
			obj_put(&l, &a);
			store_unit_info(st, 0, &info);
		} while (info.state == UNIT_OK && n++ < 3000);
		assert_int_equal(info.state, UNIT_FAILED);
		assert_non_null(strstr(info.reason, "snapshot"));
		is_read_only();
	}
}

/* A table is written in the middle of a snapshot, and cannot be: what is there of that superblock then nobody knows, and the snapshot
 * leaves the other one alone. */
static void
test_table_fails(void **state)
{
	static char attrs[12000];
	struct put_args a = {
		.bucket = "b", .key = "x", .size = 10, .seed = 1, .attrs = attrs, .attrs_len = sizeof attrs
	};
	struct store_unit_info info;
	int n = 0;

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	wait_due_segments();
	super_tried = 0;
	bad(FAULT_WRITE, "super", 0, -EIO);
	asks = true;
	do {
		obj_put(&l, &a);
		store_unit_info(st, 0, &info);
	} while (info.state == UNIT_OK && n++ < 3000);
	assert_int_equal(info.state, UNIT_FAILED);
	wait_until(atomic_load(&extent_store(st)->vol->snap.state) != SNAP_WANTED)
		loop_for(&l, NS_PER_MS);
	loop_for(&l, 10 * NS_PER_MS);
	assert_true(super_tried == 1 || super_tried == 2);
	is_read_only();
}

/* Any order of completions. */
static void
test_any_order(void **state)
{
	uint64_t seed = seed_from_env();

	for (int round = 0; round < 5; round++) {
		close_store();
		fault_ring_seed = seed + (uint64_t)round;
		open_store();
		for (int i = 0; i < 30; i++) {
			char name[32];

			snprintf(name, sizeof name, "o%d", i);
			assert_int_equal(put_simple(&l, "b", name, (uint64_t)i * 77777 + 1, (uint64_t)i), 0);
			assert_int_equal(obj_check(&l, "b", name, (uint64_t)i * 77777 + 1, (uint64_t)i), 0);
		}
	}
	fault_ring_seed = 0;
}

/* The disk fails while a flush is under way, which then says that all is well: nothing is acknowledged any more. */
static void
test_fails_behind_flush(void **state)
{
	static struct store_put put;
	struct store_commit sc = { .inline_data = "x", .inline_len = 1 };
	struct store_key k = key_of("b", "x");

	assert_int_equal(put_simple(&l, "b", "before", 3 * MIB, 1), 0);
	loop_for(&l, 50 * NS_PER_MS);
	bad(FAULT_FLUSH, "log", 0, FAULT_HOLD);
	op_arm(&put.op, l.p);
	assert_int_equal(store_put_init(l.p, &put, &k, 1), 0);
	assert_int_equal(store_put_commit(l.p, &put, &sc), 0);
	loop_for(&l, 20 * NS_PER_MS);
	assert_non_null(put.op.port);
	disk_fail(&extent_store(st)->vol->disk, "a test says so");
	good();
	assert_int_equal(op_wait(&l, &put.op), -ECANCELED);
	is_read_only();
}

/* Deletes go on where nothing else does, but leave room in the log: a start has a block of its own to write, and needs no
 * snapshot in front of it, for which there may be no room. */
static void
test_room_for_a_start(void **state)
{
	static char attrs[12000];
	char key[32];
	struct put_args a = {
		.bucket = "b", .key = key, .size = 10, .attrs = attrs, .attrs_len = sizeof attrs
	};
	int n = 0, gone = 0, r;

	bad(FAULT_WRITE, "seg-", 0, FAULT_HOLD);
	for (;; n++) {
		snprintf(key, sizeof key, "k%d", n);
		if ((r = obj_put(&l, &a)) != 0)
			break;
	}
	assert_int_equal(r, -EAGAIN);
	for (;; gone++) {
		assert_true(gone < n);
		snprintf(key, sizeof key, "k%d", gone);
		if ((r = obj_delete(&l, "b", key, NULL)) != 1)
			break;
	}
	assert_int_equal(r, -EAGAIN);
	assert_true(disk_number("log_used_bytes") > disk_number("log_bytes") / 100 * 85);
	/* The snapshot that would trim it is not to be had. */
	bad_result = -EIO;
	wait_until(disk_info().state != UNIT_OK)
		loop_for(&l, 5 * NS_PER_MS);
	close_store();
	good();
	first_written = 0;
	open_store();
	assert_int_equal(first_written, 'l');
	snprintf(key, sizeof key, "k%d", gone);
	assert_int_equal(obj_check(&l, "b", key, 10, 0), 0);
	assert_int_equal(obj_check(&l, "b", "k0", 10, 0), -ENOENT);
	assert_int_equal(put_simple(&l, "b", "after", 100000, 1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flush_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flush_of_large_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_log_write_of_chunk_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_log_write_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_data_write_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stamp_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_start_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_snapshot_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_snapshot_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_any_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fails_behind_flush, setup, teardown),
		cmocka_unit_test_setup_teardown(test_room_for_a_start, setup, teardown),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_faults", tests, NULL, NULL);
}
