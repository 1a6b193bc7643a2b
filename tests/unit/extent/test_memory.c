/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index that is as full as memory.index lets it be starts again with the same, whatever the order in which
 * it grew; with less it says how much it wants, and starts with that.
 */
#include "fixture.h"
#include "many.h"

#define INDEX (4 * MIB)

static struct many objects;

static const char *
in_order(char name[MANY_NAME], uint64_t i)
{
	snprintf(name, MANY_NAME, "%040llu", (unsigned long long)i);
	return name;
}

static const char *
in_no_order(char name[MANY_NAME], uint64_t i)
{
	return in_order(name, i * 0x9e3779b97f4a7c15u);
}

static uint64_t
fill_index(many_name_fn *name)
{
	objects = (struct many){ .at_once = MANY_AT_ONCE, .name = name };
	return put_many(&objects, 0, UINT64_MAX);
}

static int
setup(void **state)
{
	dir_make(dir);
	conf = conf_for(&dc, dir, 256 * MIB);
	conf.disks.index_bytes = INDEX;
	if (store_format(&conf, false, err, sizeof err) < 0)
		return -1;
	open_store();
	return bucket_make(&l, "b");
}

static void
starts_again(many_name_fn *name_of)
{
	uint64_t n = fill_index(name_of), nr;
	char name[MANY_NAME];
	int r;

	nr = disk_number("objects");
	assert_true(nr == objects.taken && disk_number("index_max_bytes") == INDEX);
	for (int i = 0; i < 2; i++) {
		/* From the log, then from a snapshot. */
		close_store();
		open_store();
		assert_int_equal(disk_number("objects"), nr);
		store_snapshot(st);
		wait_until(disk_number("snapshots"))
			loop_for(&l, 5 * NS_PER_MS);
	}
	/* Deletes make room, and then it takes objects again. */
	for (uint64_t i = 0; i < n / 8; i++)
		assert_true(obj_delete(&l, "b", name_of(name, i), NULL) >= 0);
	wait_until((r = put_simple(&l, "b", "again", 1, 1)) != -ENOSPC)
		loop_for(&l, 10 * NS_PER_MS);
	assert_int_equal(r, 0);
}

static void
test_in_order(void **state)
{
	starts_again(in_order);
}

static void
test_in_no_order(void **state)
{
	starts_again(in_no_order);
}

/* Grown with more memory than there is now. */
static void
test_less(void **state)
{
	uint64_t mib;
	char *at;

	close_store();
	conf.disks.index_bytes = 2 * INDEX;
	open_store();
	fill_index(in_order);
	close_store();
	conf.disks.index_bytes = INDEX;
	/* A configuration's fault: exit 78. */
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "memory.index: it is 4 MiB, about "));
	at = strstr(err, "about ") + 6;
	mib = strtoull(at, NULL, 10);
	assert_true(mib > 4 && mib < 12);
	conf.disks.index_bytes = mib * MIB;
	open_store();
	assert_int_equal(disk_number("objects"), objects.taken);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_order, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_in_no_order, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_less, setup, remove_store),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_memory", tests, NULL, NULL);
}
