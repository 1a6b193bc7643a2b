/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes become the inside of a JSON string or a part of a URL, whole characters at a time. */
#include "base/escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void
json_is(const char *text, size_t len, const char *want, bool want_whole)
{
	char out[128];
	bool is_whole;

	assert_int_equal(escape_json(out, sizeof out, text, len, &is_whole), strlen(want));
	assert_string_equal(out, want);
	assert_int_equal(is_whole, want_whole);
}

static void
test_json(void **state)
{
	json_is("", 0, "", true);
	json_is("a?b", 3, "a?b", true);
	json_is("\"\\\n\x7f\0x", 6, "\\\"\\\\\\u000a\\u007f\\u0000x", true);
	json_is("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", true);
	/* Alone, cut short, too long, a surrogate, beyond the last character. */
	json_is("\xff", 1, "?", false);
	json_is("a\xc3", 2, "a?", false);
	json_is("\xe2\x82", 2, "??", false);
	json_is("\xc0\xaf", 2, "??", false);
	json_is("\xe0\x80\xaf", 3, "???", false);
	json_is("\xed\xa0\x80", 3, "???", false);
	json_is("\xf4\x90\x80\x80", 4, "????", false);
	json_is("\xf5", 1, "?", false);
}

static void
test_json_room(void **state)
{
	char out[8];
	bool is_whole;

	for (size_t cap = 0; cap <= sizeof out; cap++) {
		size_t want = cap >= 8 ? 7 : cap >= 7 ? 6 : 0;

		memset(out, 'x', sizeof out);
		assert_int_equal(escape_json(out, cap, "\na", 2, &is_whole), want);
		assert_int_equal(is_whole, want == 7);
		for (size_t i = cap; i < sizeof out; i++)
			assert_int_equal(out[i], 'x');
	}
}

static void
test_url(void **state)
{
	char out[ESCAPE_URL_BYTES(12)], few[5];

	assert_int_equal(escape_url(out, sizeof out, "a-z/0.9_~ %\xff", 12), 18);
	assert_string_equal(out, "a-z/0.9_~%20%25%FF");
	assert_int_equal(escape_url(few, sizeof few, "abcd", 4), 2);
	assert_string_equal(few, "ab");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_room),
		cmocka_unit_test(test_url),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
