/* SPDX-License-Identifier: Apache-2.0 */
/* UUIDs as text. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/uuid.h"

#include <errno.h>
#include <string.h>

static void
test_text(void **state)
{
	static const uint8_t uuid[UUID_BYTES] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
						  0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10 };
	uint8_t back[UUID_BYTES];
	char text[UUID_TEXT];

	uuid_write(text, uuid);
	assert_string_equal(text, "01234567-89ab-cdef-fedc-ba9876543210");
	assert_int_equal(uuid_parse(text, back), 0);
	assert_memory_equal(back, uuid, sizeof uuid);
	assert_int_equal(uuid_parse("01234567-89AB-CDEF-FEDC-BA9876543210", back), 0);
	assert_memory_equal(back, uuid, sizeof uuid);
}

static void
test_not_one(void **state)
{
	static const char *const texts[] = { "",
					     "01234567-89ab-cdef-fedc-ba987654321",
					     "01234567-89ab-cdef-fedc-ba98765432100",
					     "0123456789ab-cdef-fedc-ba9876543210-",
					     "01234567-89ab-cdef-fedc-ba987654321g",
					     "01234567+89ab-cdef-fedc-ba9876543210" };
	uint8_t uuid[UUID_BYTES];

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_int_equal(uuid_parse(texts[i], uuid), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_text), cmocka_unit_test(test_not_one) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
