/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a set's disks: label, name for people, and the disk that a person means. */
#include "mem_rig.h"

#include "set/disk_names.h"
#include "set/set_int.h"

#include <ctype.h>

static char digits[DISKS][DISK_DIGITS + 1];

static void
begin(int nr)
{
	struct store_unit_info info;

	rig_begin(7, nr);
	up();
	for (int i = 0; i < nr; i++) {
		store_unit_info(st, i, &info);
		snprintf(digits[i], sizeof digits[i], "%s", info.uuid);
	}
}

static void
end(void)
{
	down();
	rig_end();
}

static const char *
label_of(int unit)
{
	static struct store_unit_info info;

	store_unit_info(st, unit, &info);
	return info.label;
}

static void
test_names(void **state)
{
	char name[DISK_NAME_BYTES], want[DISK_NAME_BYTES], upper[DISK_DIGITS + 1];
	struct store_unit_info info;

	begin(3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(label_of(i), digits[i]);
		snprintf(want, sizeof want, "%s %s", digits[i], paths[i]);
		assert_string_equal(disk_called(set_of(st), i, name), want);
		store_unit_info(st, i, &info);
		snprintf(upper, sizeof upper, "%s", digits[i]);
		for (char *p = upper; *p; p++)
			*p = (char)toupper((unsigned char)*p);
		assert_int_equal(disk_find(set_of(st), digits[i]), i);
		assert_int_equal(disk_find(set_of(st), upper), i);
		assert_int_equal(disk_find(set_of(st), info.uuid), i);
		assert_int_equal(disk_find(set_of(st), paths[i]), i);
	}
	/* The indexes of the tables name nothing, nor do other lengths of a UUID. */
	assert_int_equal(disk_find(set_of(st), "0"), -ENOENT);
	assert_int_equal(disk_find(set_of(st), "1"), -ENOENT);
	snprintf(want, sizeof want, "%.7s", digits[0]);
	assert_int_equal(disk_find(set_of(st), want), -ENOENT);
	snprintf(want, sizeof want, "%.9s", info.uuid);
	assert_int_equal(disk_find(set_of(st), want), -ENOENT);
	/* A drain by the digits names the disk. */
	assert_int_equal(change_disks(DISK_DRAIN, "1"), -ENOENT);
	assert_int_equal(ask(DISK_DRAIN, digits[1]), 0);
	snprintf(want, sizeof want, "disk %s %s is being drained", digits[1], paths[1]);
	assert_string_equal(rig_said, want);
	end();
}

/* Two of three disks have the same first digits: their labels are longer, and the digits alone are refused. */
static void
test_same_digits(void **state)
{
	struct set_member *unit;
	struct store_unit_info info;

	begin(3);
	unit = set_of(st)->members.unit;
	memcpy(unit[1].uuid, unit[0].uuid, DISK_DIGITS);
	for (int i = 0; i < 2; i++)
		assert_string_equal(label_of(i), unit[i].uuid);
	assert_string_equal(label_of(2), digits[2]);
	assert_int_equal(disk_find(set_of(st), digits[0]), -ENOTUNIQ);
	assert_int_equal(disk_find(set_of(st), unit[1].uuid), 1);
	assert_int_equal(disk_find(set_of(st), paths[0]), 0);
	assert_int_equal(disk_find(set_of(st), digits[2]), 2);
	assert_int_equal(change_disks(DISK_DRAIN, digits[0]), -ENOTUNIQ);
	assert_string_equal(
		rig_said, "the UUIDs of two disks begin with these digits: give the path or the whole UUID");
	store_unit_info(st, 1, &info);
	assert_true(info.state == UNIT_OK);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names),
					    cmocka_unit_test(test_same_digits) };

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
