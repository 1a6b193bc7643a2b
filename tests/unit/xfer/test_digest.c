/* SPDX-License-Identifier: Apache-2.0 */
/* Digests against published check values, in one go and in odd portions. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hex.h"
#include "xfer/digest.h"

#include <string.h>

static void
one(enum digest_kind k, const char *data, const char *want)
{
	struct digest d = { 0 };
	size_t len = strlen(data);

	for (size_t step = 1; step <= len + 1; step += 3) {
		uint8_t v[32];
		char text[65] = "";
		size_t n;

		assert_int_equal(digest_begin(&d, DIGEST_BIT(k)), 0);
		for (size_t at = 0; at < len; at += step)
			digest_update(&d, data + at, len - at < step ? len - at : step);
		n = digest_value(&d, k, v);
		hex_write(text, v, n);
		assert_string_equal(text, want);
	}
	digest_fini(&d);
}

static void
test_values(void **state)
{
	one(DIGEST_MD5, "", "d41d8cd98f00b204e9800998ecf8427e");
	one(DIGEST_MD5, "abc", "900150983cd24fb0d6963f7d28e17f72");
	one(DIGEST_SHA1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d");
	one(DIGEST_SHA256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	one(DIGEST_CRC32, "123456789", "cbf43926");
	one(DIGEST_CRC32C, "123456789", "e3069283"); /* protocol.md 4.6 */
	one(DIGEST_CRC32, "", "00000000");
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_values) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
