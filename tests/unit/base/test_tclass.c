/* SPDX-License-Identifier: Apache-2.0 */
/* What the file of a port's traffic class may say. */
#include "base/tclass.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static void
parse(void **state)
{
	assert_int_equal(tclass_parse("Global tclass=106\n"), 106);
	assert_int_equal(tclass_parse("106\n"), 106);
	assert_int_equal(tclass_parse("0x6a"), 106);
	assert_int_equal(tclass_parse("255"), 255);
	assert_int_equal(tclass_parse(""), -1);
	assert_int_equal(tclass_parse("0\n"), -1);
	assert_int_equal(tclass_parse("Global tclass=\n"), -1);
	assert_int_equal(tclass_parse("256"), -1);
	assert_int_equal(tclass_parse("-4"), -1);
	assert_int_equal(tclass_parse("none"), -1);
	assert_int_equal(tclass_forced("no such device", 1), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(parse) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
