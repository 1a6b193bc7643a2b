/* SPDX-License-Identifier: Apache-2.0 */
/* How the standard header fields of answers are spelled: each row of reply_field.def. */
#include "dialect/dialect.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>

/* Words begin with a capital and go on in small letters, but for the one that everybody spells otherwise. */
static void
as_aws_spells(const char *lower, char *out)
{
	bool first = true;

	if (strcmp(lower, "etag") == 0) {
		strcpy(out, "ETag");
		return;
	}
	for (; *lower; lower++) {
		*out++ = (char)(first ? toupper((unsigned char)*lower) : *lower);
		first = *lower == '-';
	}
	*out = 0;
}

static void
test_names(void **state)
{
	for (enum reply_field h = 0; h < FIELD_NR; h++) {
		const char *s3 = field_name[DIALECT_S3][h], *scality = field_name[DIALECT_SCALITY][h];
		char want[64];

		for (const char *p = scality; *p; p++)
			assert_true(islower((unsigned char)*p) || *p == '-');
		as_aws_spells(scality, want);
		assert_string_equal(s3, want);
		assert_int_equal(reply_field_find(scality, strlen(scality)), h);
		assert_int_equal(reply_field_find(s3, strlen(s3)), FIELD_NR);
		assert_true(strncmp(scality, "x-amz-", 6) != 0 && strncmp(scality, "x-gantry-", 9) != 0);
	}
	assert_int_equal(reply_field_find("content-typ", 11), FIELD_NR);
	assert_int_equal(reply_field_find("", 0), FIELD_NR);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
