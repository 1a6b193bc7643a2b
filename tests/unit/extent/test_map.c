/* SPDX-License-Identifier: Apache-2.0 */
/* An object in more extents than its record holds: they lie in a map on the disk, for which there is room where
 * there is any, and which a start believes only if it is the one that was written. */
#include "extent/engine.h"

#include "crumbs.h"
#include "fixture.h"

#define SIZE (3 * MIB)

static int
setup(void **state)
{
	return make_store(100 * MIB);
}

/* Where the map of an object lies: its segment's file, and where in it. */
static void
find_map(const char *key, char path[160], off_t *ret_off)
{
	uint8_t bytes[KEY_BYTES_MAX];
	struct store_key k = key_of("b", key);
	struct vol *vol = extent_store(st)->vol;
	struct map_ref map;
	const struct rec *r;
	uint64_t off;
	char *end;

	r = tree_get(vol->tree, bytes, (size_t)key_object(bytes, &k));
	assert_non_null(r);
	assert_true(rec_map(r, &map));
	snprintf(path, 32, "/proc/self/fd/%d", disk_addr(&vol->disk, ext_unit(map.ext[0]), &off));
	end = realpath(path, NULL);
	assert_non_null(end);
	snprintf(path, 160, "%s", end);
	free(end);
	*ret_off = (off_t)off;
}

/* Two extents in each other's place: as long, as free of what others have, and other bytes. */
static void
swap_extents(const char *path, off_t off)
{
	uint64_t e[2], swapped[2];
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, e, sizeof e, off), sizeof e);
	assert_int_equal(ext_nr(e[0]), ext_nr(e[1]));
	swapped[0] = e[1];
	swapped[1] = e[0];
	assert_int_equal(pwrite(fd, swapped, sizeof swapped, off), sizeof swapped);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

static char said[4096];

static void
say(void *cookie, const char *line)
{
	strncat(said, line, sizeof said - strlen(said) - 1);
}

static void
test_damaged(void **state)
{
	char path[160];
	off_t off;

	make_crumbs(&l);
	assert_int_equal(put_simple(&l, "b", "mapped", SIZE, 1), 0);
	assert_int_equal(put_simple(&l, "b", "other", 1000, 2), 0);
	find_map("mapped", path, &off);
	close_store();
	open_store();
	assert_int_equal(obj_check(&l, "b", "mapped", SIZE, 1), 0);
	close_store();
	swap_extents(path, off);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -ENOTRECOVERABLE);
	st = NULL;
	assert_non_null(strstr(err, "the map of an object of bucket 'b'"));
	assert_non_null(strstr(err, "is damaged"));
	assert_int_equal(store_fsck(&conf, false, say, NULL), -ENOTRECOVERABLE);
	assert_non_null(strstr(said, "b/mapped"));
	/* Put right again, all is there. */
	swap_extents(path, off);
	open_store();
	assert_int_equal(obj_check(&l, "b", "mapped", SIZE, 1), 0);
	assert_int_equal(obj_check(&l, "b", "other", 1000, 2), 0);
}

/* The units that an object takes, in pieces of one, and one in a hundred more: what an operator reckons with. */
static uint64_t
room_for(uint64_t bytes)
{
	uint64_t unit = FMT_UNIT_BYTES, chunks = (bytes + FMT_CHUNK_BYTES - 1) / FMT_CHUNK_BYTES;
	uint64_t units = align_up(bytes, unit) / unit + chunks;

	units += align_up(units * sizeof(uint64_t), unit) / unit;
	return units + (units + 99) / 100;
}

/* Not two units of what is free lie side by side, and an object takes all of it: its map, too. */
static void
test_room(void **state)
{
	static const uint64_t sizes[] = { 40000, 2 * MIB, 56 * MIB, 64 * MIB, 66 * MIB };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint64_t size = sizes[i], free_bytes;

		wait_segments(&l);
		free_bytes = disk_info().free_bytes;
		make_crumbs(&l);
		loop_for(&l, 50 * NS_PER_MS);
		leave_units(&l, room_for(size));
		assert_int_equal(put_simple(&l, "b", "large", size, i), 0);
		/* Others have it no more when the store is opened again. */
		close_store();
		open_store();
		assert_int_equal(obj_check(&l, "b", "large", size, i), 0);
		assert_int_equal(obj_delete(&l, "b", "large", NULL), 1);
		/* The next one finds all of it: snapshots hold a little. */
		wait_free(free_bytes, 2 * MIB);
	}
}

/* There is room for the bytes and none for the map, but some is on its way back. */
static void
test_waits(void **state)
{
	uint64_t units = align_up(stored_bytes(SIZE), FMT_UNIT_BYTES) / FMT_UNIT_BYTES;

	assert_int_equal(put_simple(&l, "b", "old", 100000, 1), 0);
	make_crumbs(&l);
	loop_for(&l, 50 * NS_PER_MS);
	leave_units(&l, units);
	assert_int_equal(put_simple(&l, "b", "new", SIZE, 2), -ENOSPC);
	loop_for(&l, 50 * NS_PER_MS);
	assert_int_equal(obj_delete(&l, "b", "old", NULL), 1);
	assert_int_equal(put_simple(&l, "b", "new", SIZE, 2), 0);
	close_store();
	open_store();
	assert_int_equal(obj_check(&l, "b", "new", SIZE, 2), 0);
}

static int
setup_room(void **state)
{
	return make_store(200 * MIB);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_damaged, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_waits, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_room, setup_room, remove_store),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_map", tests, NULL, NULL);
}
