/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3 against values of the reference implementation. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/siphash.h"

static void
test_values(void **state)
{
	static const uint64_t none[2], key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };

	assert_true(siphash(none, NULL, 0) == 0xd1fba762150c532c);
	assert_true(siphash(none, "", 1) == 0x68a914128e01e473);
	assert_true(siphash(none, "siphash", 7) == 0x8264ceeccb16bcbe);
	assert_true(siphash(none, "digest-sip_hash", 15) == 0xce31007e34130c0a);
	assert_true(siphash(key, NULL, 0) == 0xabac0158050fc4dc);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_values) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
