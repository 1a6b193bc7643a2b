/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that is full, of data, of records that take no data, or of both: it says so (-ENOSPC, never for long
 * "not now"), everything can be deleted, also behind a restart, and then it takes objects again.
 */
/* A change that finds the log full waits for two seconds: a snapshot that failed is tried again after that time. */
#define WAIT_USUAL_NS (10 * NS_PER_S)

#include "extent/engine.h"
#include "crumbs.h"
#include "fixture.h"
#include "many.h"
#include "tests/fake/fault_ring.h"

#define DISK (48 * MIB)
#define ATTRS 11000u

static const char *
small_name(char name[MANY_NAME], uint64_t i)
{
	snprintf(name, MANY_NAME, "small-%06llu", (unsigned long long)i);
	return name;
}

static char attrs[ATTRS];
static struct many small;

static _Atomic bool is_overwritten, is_alone; /* the superblock names one snapshot */

/* What the superblocks name is never written to, up to the moment at which they name it no more. */
static int
look_at_writes(const struct fault_io *io)
{
	struct super sb = { 0 };
	unsigned seg;

	if (io->kind != FAULT_WRITE || sscanf(io->name, "seg-%u", &seg) != 1)
		return 0;
	read_super(&sb);
	if (!sb.snap[1].id)
		is_alone = true;
	for (int i = 0; i < 2; i++) {
		uint64_t per_seg = geo_seg_units(&sb.geo), unit = ext_unit(sb.snap[i].head_ext);
		uint64_t off = unit % per_seg * sb.geo.unit_bytes;

		if (sb.snap[i].block_nr && unit / per_seg == seg && io->off < off + FMT_ALIGN &&
		    off < io->off + io->len)
			is_overwritten = true;
	}
	return 0;
}

static int
setup(void **state)
{
	fault_ring_hook = NULL;
	small = (struct many){ .at_once = 32, .name = small_name, .attrs = attrs, .attrs_len = ATTRS };
	return make_store(DISK);
}

static bool
has_one_snapshot(void)
{
	return strstr(disk_info().reason, "only one snapshot");
}

/* Data until there is no room for any. */
static int
fill_data(void)
{
	static const uint64_t sizes[] = { MIB, 16000 };
	char name[32];
	int n = 0, r;

	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		for (r = 0; r == 0; n += r == 0) {
			snprintf(name, sizeof name, "data-%d", n);
			r = put_simple(&l, "b", name, sizes[s], (uint64_t)n);
		}
		assert_int_equal(r, -ENOSPC);
	}
	return n;
}

/* Everything, each at once. */
static void
delete_all(uint64_t small_nr, int data_nr)
{
	char name[MANY_NAME];

	for (int i = 0; i < data_nr; i++) {
		snprintf(name, sizeof name, "data-%d", i);
		assert_int_equal(obj_delete(&l, "b", name, NULL), 1);
	}
	for (uint64_t i = 0; i < small_nr; i++)
		assert_true(obj_delete(&l, "b", small_name(name, i), NULL) >= 0);
	assert_int_equal(put_simple(&l, "b", "again", 3 * MIB, 1), 0);
	assert_int_equal(obj_check(&l, "b", "again", 3 * MIB, 1), 0);
	assert_int_equal(disk_info().state, UNIT_OK);
}

static void
restart(void)
{
	close_store();
	open_store();
}

/* Records that the index grows by, on a disk with and without data in front. */
static void
test_records(void **state)
{
	uint64_t n = put_many(&small, 0, UINT64_MAX);

	assert_true(small.taken > 100);
	restart();
	delete_all(n, 0);
}

static void
test_data_then_records(void **state)
{
	uint64_t n = put_many(&small, 0, 200);
	int data = fill_data();

	n = put_many(&small, n, UINT64_MAX);
	/* What is there may be written again. */
	put_many(&small, 0, 50);
	restart();
	n += put_many(&small, n, UINT64_MAX) - n;
	delete_all(n, data);
}

/* The room for snapshots is gone, as a store of an earlier version could use it up: the log is trimmed all the
 * same, by the space of the older snapshot; it is said, and there are two again when there is room. */
static void
test_older_given_up(void **state)
{
	struct vol *vol = extent_store(st)->vol;
	struct extent x[4096];
	uint64_t snapshots, i = 0;
	int n = 0;

	put_many(&small, 0, 100);
	make_snapshot();
	make_snapshot();
	wait_segments(&l);
	while (alloc_take_held(vol->disk.alloc, 1, &x[n]) == 0)
		check(++n < 4096);
	fault_ring_hook = look_at_writes;
	snapshots = disk_number("snapshots");
	wait_until(has_one_snapshot() || disk_number("snapshots") > snapshots)
		put_many(&small, i++ % 100, 1);
	/* Either it is the only one just now, or there is another since: in the older one's place. */
	wait_until(disk_number("snapshots") > snapshots && !has_one_snapshot())
		loop_for(&l, 5 * NS_PER_MS);
	/* Until it was there some may have been told to come again, on a slow disk; from now on nobody is. */
	small.later = 0;
	put_many(&small, 0, 100);
	assert_int_equal(small.later, 0);
	fault_ring_hook = NULL;
	assert_true(is_alone);
	assert_false(is_overwritten);
	for (int k = 0; k < n; k++)
		alloc_free(vol->disk.alloc, &x[k], true);
	restart();
	assert_int_equal(put_simple(&l, "b", "again", MIB, 1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_records, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_data_then_records, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_older_given_up, setup, remove_store),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_full", tests, NULL, NULL);
}
