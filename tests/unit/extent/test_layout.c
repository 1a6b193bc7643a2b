/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store whose segment came back from a copy with holes, or gets them while it serves: it says so, flushes the segment
 * itself whenever it was written, and no longer when zeros lie where the holes were.
 */
#include "extent/engine.h" /* ahead of the fixture, whose names it does not know */

#include "crumbs.h"
#include "fixture.h"
#include "extent/disk/file.h"
#include "extent/disk/format.h"
#include "tests/fake/fault_ring.h"

#include <linux/falloc.h>
#include <pthread.h>
#include <time.h>

/* The helper rests between two pieces, as requests come first: here there are none. */
int
nanosleep(const struct timespec *duration, struct timespec *ret_rest)
{
	return 0;
}

static _Atomic unsigned seg_flushes;
static _Atomic bool mends_later; /* the helper does not get on with what it writes */
static _Atomic bool fails_flush; /* flushes of segments by the helper fail */
static pthread_t ours;
static char said[4096];

static int
hook(const struct fault_io *io)
{
	if (strncmp(io->name, "seg-", 4) != 0)
		return 0;
	if (io->kind == FAULT_FLUSH) {
		atomic_fetch_add(&seg_flushes, 1);
		return fails_flush && !pthread_equal(pthread_self(), ours) ? -EIO : 0;
	}
	return io->kind == FAULT_WRITE && mends_later && !pthread_equal(pthread_self(), ours) ? FAULT_HOLD
											      : 0;
}

static void
say(void *cookie, const char *line)
{
	size_t n = strlen(said);

	snprintf(said + n, sizeof said - n, "%s\n", line);
}

static int
open_segment(void)
{
	char path[256];
	int fd;

	snprintf(path, sizeof path, "%s/seg-0000", dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* As cp --sparse=always leaves it: what was zeros all over has no blocks. */
static void
make_holes(void)
{
	static uint8_t buf[FMT_ALIGN], zero[FMT_ALIGN];
	int fd = open_segment();
	struct stat sb;

	assert_int_equal(fstat(fd, &sb), 0);
	for (off_t off = 0; off < sb.st_size; off += (off_t)sizeof buf) {
		assert_int_equal(pread(fd, buf, sizeof buf, off), sizeof buf);
		if (memcmp(buf, zero, sizeof buf) == 0)
			assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off,
						   (off_t)sizeof buf),
					 0);
	}
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

/* One flush covers the disk here, and the file system says where it has things. */
static bool
is_known(void)
{
	struct file_odd odd;
	uint64_t off = 0;
	char why[160];
	int fd = open_segment();
	bool known = file_check_fs(fd, why, sizeof why) == 1 && file_next_odd(fd, FMT_ALIGN, &off, &odd) >= 0;

	close(fd);
	return known;
}

/* Counts the flushes of segments that PUTs make. */
static unsigned
flushes_of_puts(void)
{
	unsigned before = atomic_load(&seg_flushes);

	for (int i = 0; i < 10; i++)
		assert_int_equal(put_simple(&l, "b", "flushed", 20000, (uint64_t)i), 0);
	return atomic_load(&seg_flushes) - before;
}

static int
setup(void **state)
{
	fault_ring_hook = hook;
	atomic_store(&seg_flushes, 0);
	mends_later = fails_flush = false;
	ours = pthread_self();
	said[0] = 0;
	return make_store(32 * MIB);
}

static int
teardown(void **state)
{
	/* A store does not stop before its helper does, also where a test has failed. */
	mends_later = fails_flush = false;
	return remove_store(state);
}

static void
is_mended(void)
{
	wait_until(!disk_info().reason[0])
		loop_for(&l, 5 * NS_PER_MS);
}

static void
test_holes(void **state)
{
	if (!is_known()) {
		assert_int_equal(put_simple(&l, "b", "k", 50000, 1), 0);
		assert_true(flushes_of_puts() >= 10);
		print_message("the file system of the temporary directory is neither ext4 nor XFS\n");
		skip();
	}
	assert_int_equal(put_simple(&l, "b", "k", 50000, 1), 0);
	assert_int_equal(disk_number("segments_to_rewrite"), 0);
	assert_int_equal(flushes_of_puts(), 0);
	close_store();
	make_holes();

	assert_int_equal(store_fsck(&conf, false, say, NULL), 0);
	assert_non_null(strstr(said, "have holes"));

	/* The helper is at it from the first moment on. */
	mends_later = true;
	open_store();
	assert_int_equal(disk_number("segments_to_rewrite"), 1);
	if (!strstr(disk_info().reason, "holes"))
		fail_msg("health says: %s", disk_info().reason);
	assert_true(flushes_of_puts() >= 10);
	assert_int_equal(obj_check(&l, "b", "k", 50000, 1), 0);
	mends_later = false;

	/* What is in use since the start is rewritten, and what is free; then what came meanwhile, since another. */
	for (int i = 0; i < 2; i++) {
		is_mended();
		close_store();
		open_store();
	}
	assert_int_equal(disk_number("segments_to_rewrite"), 0);
	assert_int_equal(flushes_of_puts(), 0);
	assert_int_equal(obj_check(&l, "b", "k", 50000, 1), 0);
}

/* The next look at all segments comes now, not in ten seconds. */
static void
look_now(void)
{
	static uint64_t now;

	now = clock_ns() + 11 * NS_PER_S;
	clock_fake(&now);
	/* Turns take a tenth of a millisecond of the other clock. */
	for (int i = 0; disk_number("segments_to_rewrite") == 0 && i < 300000; i++) {
		helper_ring(&extent_store(st)->vol->helper);
		loop_turn(&l);
	}
	clock_fake(NULL);
}

/* Somebody makes them while the store serves: it notices, says so, and flushes what it writes there from then on. */
static void
test_while_serving(void **state)
{
	if (!is_known())
		skip(); /* test_holes says why */
	assert_int_equal(put_simple(&l, "b", "k", 50000, 1), 0);
	assert_int_equal(flushes_of_puts(), 0);
	/* What it has begun it gets on with: it could not look. */
	wait_segments(&l);
	wait_stamped(&l);
	mends_later = true;
	make_holes();
	look_now();
	assert_int_equal(disk_number("segments_to_rewrite"), 1);
	if (!strstr(disk_info().reason, "holes"))
		fail_msg("health says: %s", disk_info().reason);
	assert_true(flushes_of_puts() >= 10);
	assert_int_equal(obj_check(&l, "b", "k", 50000, 1), 0);
	mends_later = false;
	for (int i = 0; i < 2; i++) {
		is_mended();
		close_store();
		open_store();
	}
	assert_int_equal(disk_number("segments_to_rewrite"), 0);
	assert_int_equal(flushes_of_puts(), 0);
	assert_int_equal(obj_check(&l, "b", "k", 50000, 1), 0);
}

/* The flush of a segment that the helper has rewritten fails: any write before it may be lost, so the disk has failed, and no later flush that
 * goes well is taken for that one. */
static void
test_flush_fails(void **state)
{
	struct stat sb;
	int fd;

	if (!is_known())
		skip(); /* test_holes says why */
	assert_int_equal(put_simple(&l, "b", "k", 50000, 1), 0);
	close_store();
	/* A hole at the end, where no object is: all of it is rewritten in the first pass. */
	fd = open_segment();
	assert_int_equal(fstat(fd, &sb), 0);
	assert_int_equal(
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, sb.st_size - FMT_ALIGN, FMT_ALIGN),
		0);
	assert_int_equal(fsync(fd), 0);
	close(fd);
	mends_later = true;
	open_store();
	assert_int_equal(disk_number("segments_to_rewrite"), 1);
	fails_flush = true;
	mends_later = false;
	wait_until(disk_info().state == UNIT_FAILED || !disk_info().reason[0])
		loop_for(&l, 5 * NS_PER_MS);
	fails_flush = false;
	assert_int_equal(disk_info().state, UNIT_FAILED);
	assert_non_null(strstr(disk_info().reason, "a flush failed"));
	assert_int_equal(put_simple(&l, "b", "after", 10, 1), -EROFS);
	assert_int_equal(obj_check(&l, "b", "k", 50000, 1), 0);
	close_store();
	open_store();
	assert_int_equal(put_simple(&l, "b", "after", 10, 1), 0);
	assert_int_equal(obj_check(&l, "b", "k", 50000, 1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_holes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_while_serving, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flush_fails, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
