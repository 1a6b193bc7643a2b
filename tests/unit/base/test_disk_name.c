/* SPDX-License-Identifier: Apache-2.0 */
/* Names of disks for people. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/disk_name.h"

#include <string.h>

#define UUID "89ee12ab-2fa1-11d2-883f-0016d3cca427"

static void
test_name(void **state)
{
	char name[DISK_NAME_BYTES], path[2 * DISK_NAME_BYTES];
	uint8_t uuid[UUID_BYTES], none[UUID_BYTES] = { 0 };

	assert_string_equal(disk_name(name, UUID, "/srv/disk0"), "89ee12ab /srv/disk0");
	assert_string_equal(disk_name(name, UUID, ""), "89ee12ab");
	assert_string_equal(disk_name(name, UUID, NULL), "89ee12ab");
	assert_string_equal(disk_name(name, NULL, "/srv/disk0"), "/srv/disk0");
	assert_string_equal(disk_name(name, "", "/srv/disk0"), "/srv/disk0");
	assert_int_equal(uuid_parse(UUID, uuid), 0);
	assert_string_equal(disk_name_of(name, uuid, "/srv/disk0"), "89ee12ab /srv/disk0");
	assert_string_equal(disk_name_of(name, none, "/srv/disk0"), "/srv/disk0");
	memset(path, 'p', sizeof path - 1);
	path[sizeof path - 1] = 0;
	assert_int_equal(strlen(disk_name(name, UUID, path)), DISK_NAME_BYTES - 1);
}

static void
test_digits(void **state)
{
	assert_true(disk_digits_are("89ee12ab", UUID));
	assert_true(disk_digits_are("89EE12AB", UUID));
	assert_false(disk_digits_are("89ee12a", UUID));
	assert_false(disk_digits_are("89ee12ab-", UUID));
	assert_false(disk_digits_are("89ee12ac", UUID));
	assert_false(disk_digits_are("", UUID));
	assert_false(disk_digits_are("89ee12ab", ""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_name), cmocka_unit_test(test_digits) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
