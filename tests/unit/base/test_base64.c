/* SPDX-License-Identifier: Apache-2.0 */
/* Base64: RFC 4648's own examples, the checksums of protocol.md 4.6, and everything that must not decode. */
#include "base/base64.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *plain, *text;
} pairs[] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "f\x6f", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
	{ "\xff\xfe\xfb", "//77" },
};

static void
examples(void **state)
{
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		char text[32];
		uint8_t back[32];
		size_t n = strlen(pairs[i].plain), len = 99;

		base64_encode(pairs[i].plain, n, text);
		assert_string_equal(text, pairs[i].text);
		assert_int_equal(strlen(text), BASE64_LEN(n));
		assert_int_equal(base64_decode(text, strlen(text), back, sizeof back, &len), 0);
		assert_int_equal(len, n);
		assert_memory_equal(back, pairs[i].plain, n);
	}
}

static void
refused(void **state)
{
	static const char *const bad[] = {
		"Z",     "Zg",   "Zg=",  "Zg===",    "=",        "==",     "====",
		"Z===",  "Zh==", "Zm9=", "Zg==Zg==", "Zm9v Zm9", "Zm9v\n", " Zg==",
		"Zg== ", "Zm-v", "Zm_v", "Zm9v====", "Zm=v",     "=m9v",   "Z=9v"
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		size_t n = strlen(bad[i]), len = 99;
		char *copy = malloc(n);
		uint8_t back[32];

		memcpy(copy, bad[i], n);
		if (base64_decode(copy, n, back, sizeof back, &len) != -EINVAL)
			fail_msg("%s", bad[i]);
		assert_int_equal(len, 99);
		free(copy);
	}
}

static void
capacity(void **state)
{
	uint8_t back[4] = { 0 };
	size_t len;

	assert_int_equal(base64_decode("Zm9vYg==", 8, back, 3, &len), -EMSGSIZE);
	assert_int_equal(base64_decode("Zm9vYg==", 8, back, 4, &len), 0);
	assert_int_equal(len, 4);
}

static void
every_byte(void **state)
{
	for (int a = 0; a < 256; a++) {
		for (int n = 1; n <= 3; n++) {
			uint8_t in[3] = { (uint8_t)a, (uint8_t)~a, (uint8_t)(a * 7) }, out[3];
			char text[5];
			size_t len;

			base64_encode(in, (size_t)n, text);
			assert_int_equal(base64_decode(text, 4, out, 3, &len), 0);
			assert_int_equal(len, n);
			assert_memory_equal(in, out, (size_t)n);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples),
		cmocka_unit_test(refused),
		cmocka_unit_test(capacity),
		cmocka_unit_test(every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
