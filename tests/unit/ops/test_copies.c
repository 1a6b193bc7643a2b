/* SPDX-License-Identifier: Apache-2.0 */
/* The S3 surface: uploads whose parts are copies of odd pieces, and the CRCs of what they make. */
#include "tests/unit/ops/surface.h"

#include "base/base64.h"
#include "base/crc64.h"

#include <errno.h>

#define ODD ((5u << 20) + 1)

static void
put_part(const char *key, const char *id, int number, size_t len, unsigned pat, char etag[64])
{
	char target[256];
	struct xchg x;

	snprintf(target, sizeof target, "/bkt/%s?uploadId=%s&partNumber=%d", key, id, number);
	pattern(rig.win, len, pat);
	x_init(&x, 0, "PUT", target);
	x_token(&x, "x-amz-rdma-token", 0, len);
	if (x_run(&x) != 200)
		fail_msg("part: %d %s", req_reply(x.rq)->status, x.rq->error);
	snprintf(etag, 64, "%s", x_header(&x, "etag"));
	x_end(&x);
	memset(rig.win, GUARD, WIN_MAX);
}

static int
copy_part(const char *key, const char *id, int number, const char *range, char etag[64])
{
	char target[256];
	struct xchg x;
	int status;

	snprintf(target, sizeof target, "/bkt/%s?uploadId=%s&partNumber=%d", key, id, number);
	x_init(&x, 0, "PUT", target);
	x_field(&x, "x-amz-copy-source", "/bkt/odd");
	x_field(&x, "x-amz-copy-source-range", "bytes=%s", range);
	status = x_run(&x);
	if (status == 200) {
		char text[2048], raw[128];

		snprintf(text, sizeof text, "%.*s", (int)req_reply(x.rq)->len_bytes, req_reply(x.rq)->text);
		field_of(text, "ETag", raw, sizeof raw);
		/* &quot;...&quot; */
		snprintf(etag, 64, "%.*s", (int)strlen(raw) - 12, raw + 6);
	}
	x_end(&x);
	return status;
}

static void
test_odd_copies(void **state)
{
	static const char *const ranges[] = {
		"0-0",         "0-5242880",     "1-5242881",       "5242880-5242881", "5242881-5342880",
		"100-5342880", "65536-5300000", "5242879-5242882", "5177345-5308416", "0-5342880"
	};
	char id[64], e1[64], e2[64], body[512], target[128];
	unsigned char *whole = malloc(ODD + 100000), *back = malloc(ODD + 100000);

	make_upload("odd", id);
	put_part("odd", id, 1, ODD, 1, e1);
	put_part("odd", id, 7, 100000, 2, e2);
	pattern(whole, ODD, 1);
	pattern(whole + ODD, 100000, 2);
	snprintf(target, sizeof target, "/bkt/odd?uploadId=%s", id);
	snprintf(body, sizeof body,
		 "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>"
		 "<Part><PartNumber>7</PartNumber><ETag>%s</ETag></Part></CompleteMultipartUpload>",
		 e1, e2);
	assert_int_equal(text_request("POST", target, body, NULL, 0), 200);
	assert_int_equal(get_body("/bkt/odd", back, ODD + 100000), ODD + 100000);
	assert_memory_equal(whole, back, ODD + 100000);
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		unsigned long long from, to;
		char out[2048];

		assert_int_equal(sscanf(ranges[i], "%llu-%llu", &from, &to), 2);
		make_upload("copy", id);
		assert_int_equal(copy_part("copy", id, 1, ranges[i], e1), 200);
		snprintf(target, sizeof target, "/bkt/copy?uploadId=%s", id);
		snprintf(body, sizeof body,
			 "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>"
			 "</CompleteMultipartUpload>",
			 e1);
		if (text_request("POST", target, body, out, sizeof out) != 200)
			fail_msg("%s: %s", ranges[i], out);
		assert_int_equal(get_body("/bkt/copy", back, ODD + 100000), to - from + 1);
		if (memcmp(whole + from, back, to - from + 1) != 0)
			fail_msg("a copy of %s differs", ranges[i]);
	}
	make_upload("copy", id);
	assert_int_equal(copy_part("copy", id, 1, "5-5342881", e1), 400);
	/* What fails on the way, and who leaves. */
	for (unsigned skip = 0; skip < 6; skip++) {
		mem_store_fail(rig.store, skip % 2 ? MEM_READ : MEM_WRITE, -EIO, skip / 2, 1);
		assert_int_equal(copy_part("copy", id, 1, "100-5342880", e1), 500);
		mem_store_fail(rig.store, MEM_READ, 0, 0, 0);
		mem_store_fail(rig.store, MEM_WRITE, 0, 0, 0);
	}
	for (int i = 0; i < 30; i++) {
		struct xchg x;

		snprintf(target, sizeof target, "/bkt/copy?uploadId=%s&partNumber=2", id);
		x_init(&x, 0, "PUT", target);
		x_field(&x, "x-amz-copy-source", "/bkt/odd");
		x_begin(&x);
		for (uint32_t n = draw(20); n > 0; n--)
			rig_turn();
		x_end(&x);
	}
	rig_until(reqs_live(rig.reqs) == 0);
	free(whole);
	free(back);
}

/* ---- CRCs put together ---- */

static void
test_combine(void **state)
{
	static const enum checksum_kind kinds[] = { SUM_CRC32, SUM_CRC32C };
	unsigned char data[5000];
	struct digest dg = { 0 };

	pattern(data, sizeof data, 3);
	for (int i = 0; i < 2; i++) {
		for (size_t cut = 0; cut <= sizeof data; cut += 1 + draw(300)) {
			uint32_t crc[3];
			size_t from[] = { 0, cut, 0 }, to[] = { cut, sizeof data, sizeof data };

			for (int k = 0; k < 3; k++) {
				uint8_t v[32];

				assert_int_equal(digest_begin(&dg, DIGEST_BIT(digest_of_sum(kinds[i]))), 0);
				digest_update(&dg, data + from[k], to[k] - from[k]);
				digest_value(&dg, digest_of_sum(kinds[i]), v);
				crc[k] = (uint32_t)v[0] << 24 | (uint32_t)v[1] << 16 | (uint32_t)v[2] << 8 |
					 v[3];
			}
			assert_int_equal(sum_crc32_combine(kinds[i], crc[0], crc[1], sizeof data - cut),
					 crc[2]);
		}
	}
	digest_fini(&dg);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_odd_copies, s3_start, s3_stop),
		cmocka_unit_test(test_combine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
