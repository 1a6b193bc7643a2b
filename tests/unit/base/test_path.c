/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that are written alike. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/path.h"

static void
test_same(void **state)
{
	static const char *const pairs[][2] = {
		{ "/srv/old", "/srv/old" },
		{ "/srv/old", "/srv/old/" },
		{ "/srv/old", "/srv//old///" },
		{ "//srv/old", "/srv/old" },
		{ "/", "/" },
		{ "/", "//" },
		{ "disk0", "disk0/" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		assert_true(path_same(pairs[i][0], pairs[i][1]));
		assert_true(path_same(pairs[i][1], pairs[i][0]));
	}
}

static void
test_others(void **state)
{
	static const char *const pairs[][2] = {
		{ "/srv/old", "/srv/ol" },
		{ "/srv/old", "/srv/old1" },
		{ "/srv/old", "/srv/old/1" },
		{ "/srv/old", "/srvold" },
		{ "/srv/old", "srv/old" },
		{ "/", "" },
		{ "/a", "/" },
		{ "", "a" },
		{ "/srv/old", "/srv/./old" },
	};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		assert_false(path_same(pairs[i][0], pairs[i][1]));
		assert_false(path_same(pairs[i][1], pairs[i][0]));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
