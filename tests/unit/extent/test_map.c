/* SPDX-License-Identifier: Apache-2.0 */
/* An object in more extents than its record holds: they lie in a map on the disk, which a start believes only
 * if it is the one that was written. */
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
	snprintf(path, 32, "/proc/self/fd/%d", disk_addr(&vol->disk, ext_unit(map.ext), &off));
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
	assert_non_null(strstr(err, "the map of 'b/mapped'"));
	assert_non_null(strstr(err, "is damaged"));
	assert_int_equal(store_fsck(&conf, false, say, NULL), -ENOTRECOVERABLE);
	assert_non_null(strstr(said, "b/mapped"));
	/* Put right again, all is there. */
	swap_extents(path, off);
	open_store();
	assert_int_equal(obj_check(&l, "b", "mapped", SIZE, 1), 0);
	assert_int_equal(obj_check(&l, "b", "other", 1000, 2), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_damaged, setup, remove_store),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_map", tests, NULL, NULL);
}
