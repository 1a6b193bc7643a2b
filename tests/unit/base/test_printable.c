/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others on its way to a terminal: what stays and what does not. */
#include "base/printable.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void
rows(void **state)
{
	static const struct {
		const char *text, *keep, *want;
	} row[] = {
		{ "", "", "" },
		{ "a b~", "", "a b~" },
		{ "\x1b]0;PWN\x07x", "", "?]0;PWN?x" },
		{ "a\tb\r\nc\x7f", "", "a b  c?" },
		{ "a\tb\r\nc", "\n", "a b \nc" },
		/* C1: as a character, as a byte; U+00A0 is none. */
		{ "\xc2\x9b"
		  "31m",
		  "", "?31m" },
		{ "\xc2\x80\xc2\x9f\xc2\xa0", "", "??\xc2\xa0" },
		{ "\x9b"
		  "31m\x85",
		  "", "?31m?" },
		/* What is read from right to left. */
		{ "a\xe2\x80\xae"
		  "b\xe2\x81\xa6",
		  "", "a?b?" },
		{ "\xe2\x80\xa8\xe2\x80\xa7", "", "?\xe2\x80\xa7" },
		/* Letters, and what is none: cut, too long a form, a surrogate, beyond the last. */
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\xc3", "", "?" },
		{ "\xe2\x82", "", "??" },
		{ "\xc1\x9b", "", "??" },
		{ "\xe0\x80\x9b", "", "???" },
		{ "\xed\xa0\x80", "", "???" },
		{ "\xf4\x90\x80\x80", "", "????" },
		{ "\xff\xfe", "", "??" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char text[64];

		strcpy(text, row[i].text);
		if (printable(text, row[i].keep) != (strcmp(row[i].text, row[i].want) != 0) ||
		    strcmp(text, row[i].want) != 0)
			fail_msg("row %zu: \"%s\"", i, text);
		/* Once is enough. */
		assert_false(printable(text, row[i].keep));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
