/* SPDX-License-Identifier: Apache-2.0 */
/* Who a request says it is from, whatever else is wrong with it. */
#include "auth/auth.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const char *
claimed(enum conf_dialect dialect, const char *target, const char *authorization, size_t cap)
{
	static char out[256];
	struct conf_listen listen = { .dialect = dialect };
	struct field f = { "Authorization", authorization ? authorization : "", 13,
			   (uint32_t)(authorization ? strlen(authorization) : 0) };
	struct dialect_in in = {
		.listen = &listen, .method = "GET", .fields = &f, .field_nr = authorization != NULL
	};
	static char text[8192];
	static struct uri uri;

	strcpy(text, target);
	dialect_read_target(&in, text, strlen(text), &uri);
	in.uri = &uri;
	memset(out, '#', sizeof out);
	out[auth_claimed_key(&in, out, cap)] = 0;
	return out;
}

static void
test_header(void **state)
{
	static const char *const of[][2] = {
		{ "AWS4-HMAC-SHA256 Credential=AKGOOD/20260101/us-east-1/s3/aws4_request, "
		  "SignedHeaders=host, Signature=0",
		  "AKGOOD" },
		{ "AWS4-HMAC-SHA256 SignedHeaders=host,Signature=0,Credential=AKLAST/20260101", "AKLAST" },
		{ "AWS4-ECDSA-P256-SHA256 credential=AKOTHER", "AKOTHER" },
		{ "AWS4-HMAC-SHA256 Credential=AKSHORT", "AKSHORT" },
		{ "AWS4-HMAC-SHA256 Credential=AK\"\\\x1b[31m/x", "AK\"\\\x1b[31m" },
		{ "AWS AKTWO:frJIUN8DYpKDtOLCwo//yllqDzg=", "AKTWO" },
		{ "AWS4-HMAC-SHA256 Credential=", "" },
		{ "AWS4-HMAC-SHA256 Credential=/20260101", "" },
		{ "Bearer token", "" },
		{ "Basic YTpi", "" },
		{ "AWS", "" },
		{ "AWS ", "" },
		{ "Credential", "" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		assert_string_equal(claimed(DIALECT_S3, "/b/k", of[i][0], 128), of[i][1]);
	/* The header is what would have counted. */
	assert_string_equal(claimed(DIALECT_S3, "/b/k?X-Amz-Credential=AKQUERY", "AWS AKHEAD:x", 128),
			    "AKHEAD");
	assert_string_equal(claimed(DIALECT_S3, "/b/k", "AWS AKLONG:x", 4), "AKLO");
}

static void
test_query(void **state)
{
	static const char *const of[][2] = {
		{ "/b/"
		  "k?X-Amz-Algorithm=x&X-Amz-Credential=AKGOOD%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&a="
		  "b",
		  "AKGOOD" },
		{ "/b/k?x-amz-credential=AKLOWER/20260101", "AKLOWER" },
		{ "/b/k?AWSAccessKeyId=AKTWO&Signature=x&Expires=1", "AKTWO" },
		{ "/b/k?X-Amz-Credential=AK%0Aline%22/x", "AK\nline\"" },
		{ "/b/k?X-Amz-Credential=%", "" },
		{ "/b/k?X-Amz-Credential=a%00b", "" },
		{ "/b/k?X-Amz-Credential", "" },
		{ "/b/k?X-Amz-Credentials=AK", "" },
		{ "/b/k?X-Amz-Credential=AKAK/x", "AKAK" },
		{ "/b/X-Amz-Credential=AK", "" },
		{ "", "" },
	};
	char longer[4096] = "/b/k?X-Amz-Credential=";

	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		assert_string_equal(claimed(DIALECT_S3, of[i][0], NULL, 128), of[i][1]);
	memset(longer + strlen(longer), 'A', 3000);
	assert_int_equal(strlen(claimed(DIALECT_S3, longer, NULL, 128)), 128);
	/* There is no signature in that dialect, so nobody claims to be anybody. */
	assert_string_equal(claimed(DIALECT_SCALITY, "/k?X-Amz-Credential=AK/x", "AWS AK:x", 128), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_query),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
