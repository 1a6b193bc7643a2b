/* SPDX-License-Identifier: Apache-2.0 */
/* Spans: cutting, trimming, numbers, percent sequences. */
#include "base/span.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

static void
test_compare(void **state)
{
	assert_true(span_is(span_of("abc"), "abc"));
	assert_false(span_is(span_of("abc"), "ab"));
	assert_false(span_is(span_of("abc"), "aBc"));
	assert_true(span_is_nocase(span_of("abc"), "aBc"));
	assert_false(span_is_nocase(span_of("abc"), "aBcd"));
	assert_true(span_begins(span_of("abc"), ""));
	assert_true(span_begins(span_of("abc"), "ab"));
	assert_false(span_begins(span_of("abc"), "abcd"));
	assert_false(span_begins(span_of("abc"), "AB"));
	assert_true(span_begins_nocase(span_of("abc"), "AB"));
	assert_false(span_begins_nocase(span_of("a"), "AB"));
}

/* All bytes in all places of names of all lengths up to two words and a half. */
static void
test_name(void **state)
{
	static const char name[] = "x-amz-date-0123456789-az", upper[] = "X-AMZ-DATE-0123456789-AZ";
	char text[sizeof name];

	for (size_t len = 0; len < sizeof name; len++) {
		assert_true(span_is_name(upper, name, len));
		for (size_t at = 0; at < len; at++) {
			memcpy(text, name, sizeof name);
			for (int c = 0; c < 256; c++) {
				text[at] = (char)c;
				assert_int_equal(span_is_name(text, name, len),
						 text[at] == name[at] || text[at] == upper[at]);
			}
		}
	}
}

static void
test_trim(void **state)
{
	assert_true(span_is(span_trim(span_of(" \ta b\t ")), "a b"));
	assert_true(span_is(span_trim(span_of("a\n")), "a\n"));
	assert_true(span_is(span_trim(span_of(" \t ")), ""));
	assert_true(span_is(span_trim(span_of("")), ""));
}

static void
test_cut(void **state)
{
	struct span rest = span_of("a,,b=c,"), one;

	assert_true(span_is(span_cut(&rest, ','), "a"));
	assert_true(span_is(span_cut(&rest, ','), ""));
	one = span_cut(&rest, ',');
	assert_int_equal(rest.len, 0); /* a separator at the end has nothing behind it */
	assert_true(span_is(span_cut(&one, '='), "b"));
	assert_true(span_is(span_cut(&one, '='), "c"));
	assert_true(span_is(span_cut(&one, '='), ""));
	rest = (struct span){ NULL, 0 };
	assert_int_equal(span_cut(&rest, ',').len, 0);
}

static void
test_decimal(void **state)
{
	static const char *const bad[] = {
		"", " 1", "1 ", "+1", "-1", "0x1", "18446744073709551616", "99999999999999999999"
	};
	uint64_t v = 7;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(span_decimal(span_of(bad[i]), &v), -EINVAL);
	assert_int_equal(v, 7);
	assert_int_equal(span_decimal(span_of("0018446744073709551615"), &v), 0);
	assert_true(v == UINT64_MAX);
}

static void
test_decode(void **state)
{
	static const struct {
		const char *text;
		unsigned how;
		size_t cap;
		int r;
		const char *out;
	} cases[] = {
		{ "a%41%2fb", 0, 8, 4, "aA/b" },
		{ "a+b", 0, 8, 3, "a+b" },
		{ "a+%2b", DECODE_PLUS, 8, 3, "a +" },
		{ "%4", 0, 8, 2, "%4" },
		{ "%4", DECODE_STRICT, 8, -EINVAL, "" },
		{ "%g1", DECODE_STRICT, 8, -EINVAL, "" },
		{ "%00", 0, 8, -EINVAL, "" },
		{ "%41%41", DECODE_STRICT, 2, 2, "AA" },
		{ "%41%41", DECODE_STRICT, 1, -E2BIG, "" },
		{ "abc%00", 0, 2, -EINVAL, "" },
		{ "abc%", DECODE_STRICT, 2, -EINVAL, "" },
		{ "", DECODE_STRICT, 0, 0, "" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char out[8];
		int r = span_decode(span_of(cases[i].text), cases[i].how, out, cases[i].cap);

		if (r != cases[i].r || (r > 0 && memcmp(out, cases[i].out, (size_t)r) != 0))
			fail_msg("%s: %d", cases[i].text, r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compare), cmocka_unit_test(test_name),    cmocka_unit_test(test_trim),
		cmocka_unit_test(test_cut),     cmocka_unit_test(test_decimal), cmocka_unit_test(test_decode),
	};

	return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
