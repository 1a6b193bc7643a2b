/* SPDX-License-Identifier: Apache-2.0 */
/* Writes on their way to the disk: counted, flushed where they went, and left to a worker of the kernel when the
 * disk does not vouch for itself.  On a ring that reports its flushes. */
#include "extent/engine.h"

#include "crumbs.h"
#include "fixture.h"
#include "tests/fake/fault_ring.h"

static char flushed[16][16];
static _Atomic int flushed_nr;

static int
hook(const struct fault_io *io)
{
	if (io->kind == FAULT_FLUSH && flushed_nr < 16)
		snprintf(flushed[flushed_nr++], sizeof flushed[0], "%s", io->name);
	return 0;
}

static int
setup(void **state)
{
	int r;

	fault_ring_hook = hook;
	r = make_store(100 * MIB);
	wait_segments(&l);
	loop_for(&l, 30 * NS_PER_MS);
	return r;
}

static uint64_t
times(const struct store_unit_info *i, enum disk_io io)
{
	uint64_t n = 0;

	for (int b = 0; b < LATENCY_NR; b++)
		n += i->latency[io].buckets[b];
	return n;
}

static void
test_counts(void **state)
{
	struct store_unit_info a = disk_info(), b;
	uint64_t len = align_up(100000, FMT_ALIGN) + FMT_ALIGN; /* with its CRC block */

	assert_int_equal(put_simple(&l, "b", "x", 100000, 1), 0);
	b = disk_info();
	assert_int_equal(b.written_bytes - a.written_bytes, len);
	assert_int_equal(b.write_ops - a.write_ops, 1);
	assert_int_equal(times(&b, DISK_WRITE) - times(&a, DISK_WRITE), 1);
	assert_int_equal(times(&b, DISK_READ) - times(&a, DISK_READ), 0);
	a = b;
	assert_int_equal(obj_check(&l, "b", "x", 100000, 1), 0);
	b = disk_info();
	assert_int_equal(b.read_bytes - a.read_bytes, len);
	assert_int_equal(b.read_ops - a.read_ops, 1);
	assert_int_equal(times(&b, DISK_READ) - times(&a, DISK_READ), 1);
	assert_int_equal(times(&b, DISK_WRITE) - times(&a, DISK_WRITE), 0);
	assert_int_equal(b.errors, 0);
	/* Piece by piece through single units, from whichever one. */
	make_crumbs(&l);
	assert_int_equal(put_simple(&l, "b", "y", 3 * MIB, 2), 0);
	assert_int_equal(obj_check(&l, "b", "y", 3 * MIB, 2), 0);
	a = disk_info();
	/* Each unit, that of the CRC block, the map. */
	assert_int_equal(a.write_ops - b.write_ops, 3 * MIB / 16384 + 2);
	assert_int_equal(a.written_bytes - b.written_bytes, 3 * MIB + 2 * FMT_ALIGN);
	assert_int_equal(extent_store(st)->vol->disk.queued, 0);
}

static bool
was_flushed(const char *name)
{
	for (int i = 0; i < flushed_nr; i++) {
		if (strcmp(flushed[i], name) == 0)
			return true;
	}
	return false;
}

/* Where one flush does not cover the disk, the file that was written to is flushed before the answer, and it
 * alone beside the log. */
static void
test_flushes_where_written(void **state)
{
	struct vol *vol = extent_store(st)->vol;
	const struct rec *r;
	struct store_key k = key_of("b", "x");
	uint8_t key[KEY_BYTES_MAX];
	char name[32];
	unsigned seg;

	free(vol->flush.ops);
	vol->flush.ops = calloc(1 + vol->disk.geo.seg_nr, sizeof *vol->flush.ops);
	check(vol->flush.ops);
	vol->disk.flush_all = true;
	for (int n = 0; n < 12; n++) {
		/* Through several segments. */
		flushed_nr = 0;
		assert_int_equal(put_simple(&l, "b", "x", 7 * MIB, 1), 0);
		r = tree_get(vol->tree, key, (size_t)key_object(key, &k));
		seg = (unsigned)(ext_unit(((const uint64_t *)rec_entries(r))[0]) /
				 geo_seg_units(&vol->disk.geo));
		snprintf(name, sizeof name, "seg-%04u", seg);
		assert_true(was_flushed(name));
		assert_true(was_flushed("log"));
		/* What was not touched since is not flushed again. */
		loop_for(&l, 20 * NS_PER_MS);
		flushed_nr = 0;
		assert_int_equal(put_simple(&l, "b", "inline", 10, 1), 0);
		assert_false(was_flushed(name));
		assert_true(was_flushed("log"));
		snprintf(name, sizeof name, "x%d", n);
		assert_int_equal(put_simple(&l, "b", name, 5 * MIB, 1), 0);
	}
	assert_true(seg > 0);
	loop_for(&l, 30 * NS_PER_MS);
	flushed_nr = 0;
	store_snapshot(st);
	while (disk_number("snapshot_runs"))
		loop_for(&l, NS_PER_MS);
	assert_true(disk_number("snapshots") > 0);
	seg = 0;
	for (int i = 0; i < flushed_nr; i++)
		seg += strncmp(flushed[i], "seg-", 4) == 0;
	assert_true(seg > 0);
}

/* Writes are left to a worker while nothing has ended for 5 ms, or the device's queue may be full; a block
 * device needs none. */
static void
test_by_worker(void **state)
{
	static struct disk d;

	d.inline_max = 10;
	assert_true(xio_by_worker(&d));
	xio_note_progress(&d);
	assert_false(xio_by_worker(&d));
	d.queued = 9;
	xio_note_progress(&d);
	assert_false(xio_by_worker(&d));
	d.queued = 10;
	xio_note_progress(&d);
	assert_true(xio_by_worker(&d));
	d.queued = 0;
	d.progress_ns = clock_ns() - 6 * NS_PER_MS;
	assert_true(xio_by_worker(&d));
	d.is_device = true;
	assert_false(xio_by_worker(&d));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counts, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_flushes_where_written, setup, remove_store),
		cmocka_unit_test(test_by_worker),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_xio", tests, NULL, NULL);
}
