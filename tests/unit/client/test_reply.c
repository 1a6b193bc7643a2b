/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer means: the honesty of the client. */
#include "client/client_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* status, then header lines, then how many body bytes came */
static struct reply
answer(int status, const char *lines, uint64_t body)
{
	struct reply r;

	reply_init(&r);
	while (*lines) {
		size_t n = strcspn(lines, "\n");

		reply_header(&r, lines, n);
		lines += n + (lines[n] != 0);
	}
	r.status = status;
	r.body_bytes = body;
	return r;
}

#define BYTES_100 "\nx-amz-rdma-bytes-transferred: 100"

/* item 116 */
static void
put_needs_2xx_and_reply(void **state)
{
	static const struct {
		int status;
		const char *lines;
		enum verdict want;
	} row[] = {
		{ 200, "x-amz-rdma-reply: 200" BYTES_100, VERDICT_RDMA },
		{ 200, "X-Amz-Rdma-Reply:200", VERDICT_RDMA },
		{ 200, "x-amz-rdma-reply: 206", VERDICT_RDMA },
		{ 200, "x-amz-rdma-reply: 200\nx-amz-rdma-bytes-transferred: 99", VERDICT_FAILED },
		/* An ETag alone says nothing. */
		{ 200, "etag: \"abc\"", VERDICT_DECLINED },
		{ 200, "x-amz-rdma-reply: 501", VERDICT_DECLINED },
		{ 501, "x-amz-rdma-reply: 501", VERDICT_DECLINED },
		{ 501, "", VERDICT_DECLINED },
		{ 200, "x-amz-rdma-reply: 204", VERDICT_FAILED },
		{ 200, "x-amz-rdma-reply: 500", VERDICT_FAILED },
		{ 200, "x-amz-rdma-reply: ok", VERDICT_FAILED },
		{ 500, "x-amz-rdma-reply: 500", VERDICT_FAILED },
		{ 500, "x-amz-rdma-reply: 200", VERDICT_FAILED },
		{ 500, "", VERDICT_ERROR },
		{ 400, "", VERDICT_ERROR },
		{ 404, "", VERDICT_ERROR },
		{ 503, "", VERDICT_BUSY },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct reply r = answer(row[i].status, row[i].lines, 0);
		const char *why;
		enum verdict v = judge_put(&r, GANTRY_S3, 100, &why);

		if (v != row[i].want)
			fail_msg("row %zu: verdict %d, want %d", i, (int)v, (int)row[i].want);
		assert_true((v == VERDICT_DECLINED || v == VERDICT_FAILED) == (*why != 0));
	}
	struct reply r = answer(200, "x-amz-rdma-reply: 200", 7);
	const char *why;

	assert_int_equal(judge_put(&r, GANTRY_S3, 100, &why), VERDICT_FAILED);
}

/* item 116 */
static void
get_needs_the_bytes_header(void **state)
{
	static const struct {
		int status;
		const char *lines;
		uint64_t body, offset;
		enum verdict want;
		uint64_t bytes;
	} row[] = {
		{ 206, "x-amz-rdma-reply: 206\ncontent-range: bytes 0-99/500" BYTES_100, 0, 0, VERDICT_RDMA,
		  100 },
		{ 206, "x-amz-rdma-reply: 206\ncontent-range: bytes 50-99/100\nx-amz-rdma-bytes: 50/100", 0,
		  50, VERDICT_RDMA, 50 },
		{ 200, "x-amz-rdma-reply: 200\nx-amz-rdma-bytes: 0", 0, 0, VERDICT_RDMA, 0 },
		{ 206, "x-amz-rdma-reply: 206\ncontent-range: bytes 0-99/500", 0, 0, VERDICT_DECLINED, 0 },
		{ 206, "x-amz-rdma-reply: 206\nx-amz-rdma-bytes: x", 0, 0, VERDICT_DECLINED, 0 },
		/* More than was asked, another place, a body beside it. */
		{ 200, "x-amz-rdma-reply: 200\nx-amz-rdma-bytes: 101", 0, 0, VERDICT_FAILED, 0 },
		{ 206, "x-amz-rdma-reply: 206\ncontent-range: bytes 1-100/500" BYTES_100, 0, 0,
		  VERDICT_FAILED, 0 },
		{ 206, "x-amz-rdma-reply: 206\ncontent-range: bytes 0-49/500" BYTES_100, 0, 0, VERDICT_FAILED,
		  0 },
		{ 200, "x-amz-rdma-reply: 200" BYTES_100, 0, 7, VERDICT_FAILED, 0 },
		{ 206, "x-amz-rdma-reply: 206\ncontent-range: bytes 0-99/500" BYTES_100, 5, 0, VERDICT_FAILED,
		  0 },
		/* Declined, with the data or without. */
		{ 206, "x-amz-rdma-reply: 501\ncontent-range: bytes 0-99/500", 100, 0, VERDICT_BODY, 100 },
		{ 206, "content-range: bytes 0-99/500", 100, 0, VERDICT_BODY, 100 },
		{ 200, "content-length: 60", 60, 0, VERDICT_BODY, 60 },
		{ 200, "transfer-encoding: chunked", 60, 0, VERDICT_BODY, 60 },
		/* It ended where the connection did: who knows whether that is all? */
		{ 200, "", 60, 0, VERDICT_DECLINED, 0 },
		{ 200, "content-length: 60", 60, 7, VERDICT_DECLINED, 0 },
		{ 206, "x-amz-rdma-reply: 501\ncontent-range: bytes 0-99/500", 0, 0, VERDICT_DECLINED, 0 },
		{ 206, "x-amz-rdma-reply: 501\ncontent-range: bytes 0-99/500", 50, 0, VERDICT_DECLINED, 0 },
		{ 501, "x-amz-rdma-reply: 501", 0, 0, VERDICT_DECLINED, 0 },
		{ 500, "x-amz-rdma-reply: 500", 0, 0, VERDICT_FAILED, 0 },
		/* Fewer than there are: RFC 9110 15.3.7 lets a cache answer so, and the rest stays away. */
		{ 206,
		  "x-amz-rdma-reply: 206\ncontent-range: bytes 0-49/500\nx-amz-rdma-bytes-transferred: 50", 0,
		  0, VERDICT_FAILED, 0 },
		{ 206, "x-amz-rdma-reply: 206\ncontent-range: bytes 0-49/50\nx-amz-rdma-bytes: 50", 0, 0,
		  VERDICT_RDMA, 50 },
		{ 206, "x-amz-rdma-reply: 206\ncontent-range: bytes 0-49/*\nx-amz-rdma-bytes: 50", 0, 0,
		  VERDICT_FAILED, 0 },
		{ 206, "x-amz-rdma-reply: 206\ncontent-range: bytes 0-99/*" BYTES_100, 0, 0, VERDICT_RDMA,
		  100 },
		{ 206, "x-amz-rdma-reply: 206\ncontent-range: bytes 0-99/99" BYTES_100, 0, 0, VERDICT_FAILED,
		  0 },
		{ 206, "x-amz-rdma-reply: 206\nx-amz-rdma-bytes: 50", 0, 0, VERDICT_FAILED, 0 },
		{ 206, "x-amz-rdma-reply: 206" BYTES_100, 0, 0, VERDICT_RDMA, 100 },
		{ 200, "x-amz-rdma-reply: 200\nx-amz-rdma-bytes: 50", 0, 0, VERDICT_RDMA, 50 },
		{ 200, "x-amz-rdma-reply: 206\nx-amz-rdma-bytes: 50", 0, 0, VERDICT_FAILED, 0 },
		{ 206, "content-range: bytes 0-49/500", 50, 0, VERDICT_DECLINED, 0 },
		{ 206, "", 50, 0, VERDICT_DECLINED, 0 },
		{ 200, "content-length: 70", 60, 0, VERDICT_DECLINED, 0 },
		{ 404, "", 0, 0, VERDICT_ERROR, 0 },
		{ 416, "content-range: bytes */0", 0, 0, VERDICT_END, 0 },
		{ 503, "", 0, 0, VERDICT_BUSY, 0 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct reply r = answer(row[i].status, row[i].lines, row[i].body);
		uint64_t bytes = 0;
		const char *why;
		enum verdict v = judge_get(&r, GANTRY_S3, row[i].offset, 100, &bytes, &why);

		if (v != row[i].want)
			fail_msg("row %zu: verdict %d, want %d", i, (int)v, (int)row[i].want);
		assert_int_equal(bytes, row[i].bytes);
	}
}

static void
scality_takes_any_2xx(void **state)
{
	const char *why;
	uint64_t bytes = 0;
	struct reply r = answer(204, "", 0);

	assert_int_equal(judge_put(&r, GANTRY_SCALITY, 100, &why), VERDICT_RDMA);
	r = answer(501, "", 0);
	assert_int_equal(judge_put(&r, GANTRY_SCALITY, 100, &why), VERDICT_DECLINED);
	assert_int_equal(judge_get(&r, GANTRY_SCALITY, 0, 100, &bytes, &why), VERDICT_DECLINED);
	r = answer(500, "", 0);
	assert_int_equal(judge_put(&r, GANTRY_SCALITY, 100, &why), VERDICT_FAILED);
	r = answer(206, "content-range: bytes 10-29/30", 0);
	assert_int_equal(judge_get(&r, GANTRY_SCALITY, 10, 100, &bytes, &why), VERDICT_RDMA);
	assert_int_equal(bytes, 20);
	assert_int_equal(judge_get(&r, GANTRY_SCALITY, 10, 19, &bytes, &why), VERDICT_FAILED);
	assert_int_equal(judge_get(&r, GANTRY_SCALITY, 0, 100, &bytes, &why), VERDICT_FAILED);
	r = answer(206, "content-range: bytes 10-29/31", 0);
	assert_int_equal(judge_get(&r, GANTRY_SCALITY, 10, 100, &bytes, &why), VERDICT_FAILED);
	r = answer(200, "", 0);
	assert_int_equal(judge_get(&r, GANTRY_SCALITY, 0, 100, &bytes, &why), VERDICT_DECLINED);
	r = answer(200, "content-length: 50", 50);
	assert_int_equal(judge_get(&r, GANTRY_SCALITY, 0, 100, &bytes, &why), VERDICT_BODY);
	assert_int_equal(bytes, 50);
}

static void
headers_are_read_strictly(void **state)
{
	struct reply r = answer(
		206,
		"ETag: \"5b2c\"\nContent-Range: bytes 5-9/ 10\nx-amz-rdma-reply: 1000\nx-amz-rdma-bytes: -1\n"
		"x-gantry-rdma-reason:  no rail \t\nretry-after: 7\nno colon here\nx-amz-rdma-checksum: "
		"CRC64NVME abc=\n",
		0);

	assert_string_equal(r.etag, "\"5b2c\"");
	assert_true(r.has_range);
	assert_false(r.has_total);
	assert_true(r.has_reply);
	assert_int_equal(r.code, -1);
	assert_false(r.has_bytes);
	assert_string_equal(r.reason, "no rail");
	assert_int_equal(r.retry_after_s, 7);
	assert_string_equal(r.checksum, "CRC64NVME abc=");
	r = answer(416, "content-range: bytes */3145728", 0);
	assert_false(r.has_range);
	assert_true(r.has_total);
	assert_int_equal(r.range_total, 3145728);
	r = answer(206, "content-range: bytes 9-5/10", 0);
	assert_false(r.has_range);
	/* The longer name wins, whichever comes first. */
	r = answer(206, "x-amz-rdma-bytes: 5\nx-amz-rdma-bytes-transferred: 6\nx-amz-rdma-bytes: 7", 0);
	assert_int_equal(r.bytes, 6);
	r = answer(200, "x-amz-rdma-reply: 200:012a00000000", 0);
	assert_int_equal(r.code, 200);
	r = answer(206, "content-range: bytes 0-18446744073709551616/5", 0);
	assert_false(r.has_range);
}

/* They end on somebody's terminal. */
static void
strings_are_clean(void **state)
{
	struct reply r = answer(200,
				"etag: \"a\x1b[2J\"\nx-gantry-rdma-reason: a\x1b]0;b\x07\xc2\x9b\n"
				"last-modified: \x9b"
				"x\nx-amz-checksum-crc64nvme: \xe2\x80\xae=",
				0);
	static const char xml[] = "<Error><Message>a\x1b[2Jb\xc2\x85</Message>";
	char text[64];

	assert_string_equal(r.etag, "");
	assert_string_equal(r.reason, "a?]0;b??");
	assert_string_equal(r.last_modified, "?x");
	assert_string_equal(r.stored_checksum, "?=");
	memcpy(r.error, xml, sizeof xml - 1);
	r.error_len = sizeof xml - 1;
	reply_xml(&r, "Message", text, sizeof text);
	assert_string_equal(text, "a?[2Jb?");
	/* What is no ASCII and does nothing stays. */
	r = answer(200, "etag: \"\xc3\xa4\"", 0);
	assert_string_equal(r.etag, "\"\xc3\xa4\"");
}

static void
errors_are_named(void **state)
{
	static const char xml[] =
		"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>a &lt;b&gt; \n&amp;c</Message>";
	struct reply r = answer(404, "", 0);
	char text[64];

	memcpy(r.error, xml, sizeof xml - 1);
	r.error_len = sizeof xml - 1;
	reply_xml(&r, "Code", text, sizeof text);
	assert_string_equal(text, "NoSuchKey");
	reply_xml(&r, "Message", text, sizeof text);
	assert_string_equal(text, "a <b>  &c");
	reply_xml(&r, "Resource", text, sizeof text);
	assert_string_equal(text, "");
	reply_xml(&r, "Code", text, 4);
	assert_string_equal(text, "NoS");
	assert_int_equal(status_errno(&r), -ENOENT);
	r.status = 507;
	assert_int_equal(status_errno(&r), -ENOSPC);
	r.status = 500;
	assert_int_equal(status_errno(&r), -EIO);
}

static void
urls_are_encoded(void **state)
{
	char *u = url_clean("http://h:1/b/a b%20\xc3\xa4?#x");

	assert_string_equal(u, "http://h:1/b/a%20b%20%C3%A4?%23x");
	free(u);
	u = gantry_url_join("http://h:1/b", "dir/a b%?.txt");
	assert_string_equal(u, "http://h:1/b/dir/a%20b%25%3F.txt");
	free(u);
	u = gantry_url_join("http://h:1/b/", "k");
	assert_string_equal(u, "http://h:1/b/k");
	free(u);
	char text[13];

	gantry_crc64nvme_text(gantry_crc64nvme(0, "123456789", 9), text);
	assert_string_equal(text, "rosUhgp5mIg="); /* protocol.md 4.6 */
	assert_int_equal(
		gantry_crc64nvme_combine(gantry_crc64nvme(0, "1234", 4), gantry_crc64nvme(0, "56789", 5), 5),
		gantry_crc64nvme(0, "123456789", 9));
}

static void
take_header(void *cookie, const char *name, const char *value)
{
	char *out = cookie;

	snprintf(out, 64, "%s=%s", name, value);
}

static void
headers_are_handed_on(void **state)
{
	static const char *const is[][2] = {
		{ "ETag: \"x\"\r\n", "etag=\"x\"" },
		{ "X-Amz-Meta-A:\t b: c \t\r\n", "x-amz-meta-a=b: c" },
		{ "x:\r\n", "x=" },
		{ "x: a\033[31mb\r\n", "x=a?[31mb" },
		{ "no header\r\n", "" },
		{ ": nothing\r\n", "" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
		char out[64] = "";

		reply_header_to(is[i][0], strlen(is[i][0]), take_header, out);
		assert_string_equal(out, is[i][1]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put_needs_2xx_and_reply), cmocka_unit_test(get_needs_the_bytes_header),
		cmocka_unit_test(scality_takes_any_2xx),   cmocka_unit_test(headers_are_read_strictly),
		cmocka_unit_test(strings_are_clean),       cmocka_unit_test(errors_are_named),
		cmocka_unit_test(urls_are_encoded),        cmocka_unit_test(headers_are_handed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
