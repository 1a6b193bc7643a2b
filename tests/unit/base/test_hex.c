/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal text: hex.c. */
#include "base/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void
every_byte(void **state)
{
	for (unsigned v = 0; v < 256; v++) {
		unsigned char byte = (unsigned char)v, back = (unsigned char)~v;
		char want[3], text[4] = "???";

		snprintf(want, sizeof want, "%02x", v);
		hex_write(text, &byte, 1);
		assert_memory_equal(text, want, 2);
		assert_int_equal(text[2], '?');
		assert_int_equal(hex_bytes(text, &back, 1), 0);
		assert_int_equal(back, byte);
	}
}

/* Four bytes are written at a time, and the last ones alone. */
static void
every_length(void **state)
{
	unsigned char bytes[40];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * 167 + 13);
	for (size_t n = 0; n <= sizeof bytes; n++) {
		char want[2 * sizeof bytes + 2] = "", text[2 * sizeof bytes + 2];

		memset(text, '?', sizeof text);
		for (size_t i = 0; i < n; i++)
			snprintf(want + 2 * i, 3, "%02x", bytes[i]);
		hex_write(text, bytes, n);
		assert_memory_equal(text, want, 2 * n);
		assert_int_equal(text[2 * n], '?');
	}
}

static void
numbers(void **state)
{
	char text[17];
	uint64_t v;

	hex_write_u64(text, UINT64_C(0x0123456789abcdef));
	assert_string_equal(text, "0123456789abcdef");
	assert_int_equal(hex_u64("FEDCBA9876543210", 16, &v), 0);
	assert_int_equal(v, UINT64_C(0xfedcba9876543210));
	assert_int_equal(hex_u64("f", 1, &v), 0);
	assert_int_equal(v, 15);
	for (const char *bad = "/:@G`g \xff"; *bad; bad++) {
		char two[2] = { '0', *bad };
		unsigned char byte;

		assert_true(hex_u64(two, 2, &v) < 0);
		assert_true(hex_bytes(two, &byte, 1) < 0);
	}
	assert_true(hex_u64("", 0, &v) < 0);
	assert_true(hex_u64("00000000000000000", 17, &v) < 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_byte), cmocka_unit_test(every_length),
					    cmocka_unit_test(numbers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
