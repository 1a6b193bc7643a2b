/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an event: one line of JSON, whatever bytes it is made of, in which no two keys look the same. */
#include "audit/audit_int.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define WHEN (1795953600ull * NS_PER_S + 1234567)

static void
text_is(const struct audit_event *e, uint64_t held, const char *want)
{
	char out[AUDIT_TEXT_BYTES];
	size_t len = audit_text(e, WHEN, held, out);

	assert_int_equal(out[len - 1], '\n');
	out[len - 1] = 0;
	assert_string_equal(out, want);
}

static void
test_members(void **state)
{
	text_is(&(struct audit_event){ .op = "Start" }, 0,
		"{\"time\":\"2026-11-29T12:00:00.001234Z\",\"op\":\"Start\"}");
	text_is(&(struct audit_event){ .op = "PutObject",
				       .has_status = true,
				       .status = 200,
				       .bucket = { "bkt", 3 },
				       .key = { "a\"b\n", 4 },
				       .has_size = true,
				       .size_bytes = 0,
				       .etag = "00ff",
				       .peer = "10.0.0.5",
				       .access_key = "AK",
				       .request = "a1",
				       .is_request = true,
				       .us = 12,
				       .rdma_bytes = 1,
				       .http_bytes = 2,
				       .declined = "busy" },
		0,
		"{\"time\":\"2026-11-29T12:00:00.001234Z\",\"op\":\"PutObject\",\"status\":200,\"bucket\":"
		"\"bkt\","
		"\"key\":\"a\\\"b\\u000a\",\"size\":0,\"etag\":\"00ff\",\"peer\":\"10.0.0.5\",\"access_key\":"
		"\"AK\","
		"\"request\":\"a1\",\"rdma_bytes\":1,\"http_bytes\":2,\"us\":12,\"declined\":\"busy\"}");
	text_is(&(struct audit_event){ .op = "Control",
				       .subject = "/control/drain",
				       .args = "{\"a\":\"b\"}",
				       .has_status = true,
				       .status = 401,
				       .fault = "F",
				       .claimed_access_key = "x\xff",
				       .secret_id = "0a1b2c3d" },
		7,
		"{\"time\":\"2026-11-29T12:00:00.001234Z\",\"op\":\"Control\",\"subject\":\"/control/drain\","
		"\"args\":{\"a\":\"b\"},\"status\":401,\"fault\":\"F\",\"claimed_access_key\":\"x?\","
		"\"secret_id\":\"0a1b2c3d\",\"held_"
		"back\":7}");
}

static void
test_keys(void **state)
{
	text_is(&(struct audit_event){ .op = "Expire", .key = { "\xff/?", 3 } }, 0,
		"{\"time\":\"2026-11-29T12:00:00.001234Z\",\"op\":\"Expire\",\"key_url\":\"%FF/%3F\"}");
	text_is(&(struct audit_event){ .op = "Expire", .key = { "?/?", 3 } }, 0,
		"{\"time\":\"2026-11-29T12:00:00.001234Z\",\"op\":\"Expire\",\"key\":\"?/?\"}");
}

/* The longest names, each byte of which takes most room, are all there. */
static void
test_longest(void **state)
{
	char key[1024], bucket[64], claimed[129], out[AUDIT_TEXT_BYTES];
	struct audit_event e = { .op = "GetBucketLifecycleConfiguration",
				 .has_status = true,
				 .status = 403,
				 .fault = "ServerSideEncryptionConfigurationNotFoundError",
				 .bucket = { bucket, sizeof bucket },
				 .key = { key, sizeof key },
				 .peer = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
				 .claimed_access_key = claimed,
				 .request = "a1a1a1a1a1a1a1a1",
				 .is_request = true,
				 .us = UINT64_MAX,
				 .rdma_bytes = UINT64_MAX,
				 .http_bytes = UINT64_MAX,
				 .declined = "unsupported-transport" };
	size_t len;

	memset(key, 1, sizeof key);
	memset(bucket, 1, sizeof bucket);
	memset(claimed, 1, sizeof claimed);
	claimed[128] = 0;
	len = audit_text(&e, WHEN, UINT64_MAX, out);
	assert_true(len > 6 * (sizeof key + sizeof bucket + 128));
	assert_memory_equal(out + len - 23, ":18446744073709551615}\n", 23);
	assert_non_null(memmem(out, len, "\"held_back\":", 12));
	assert_non_null(memmem(out, len, "\"declined\":\"unsupported-transport\"", 34));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
