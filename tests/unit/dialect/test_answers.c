/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves: the reply matrix of protocol.md 4.1 and 4.2 row by row, error bodies, the list of buckets. */
#include "build.h"

#include <stdio.h>

#define FLAG_BYTES 1
#define FLAG_ETAG 2
#define FLAG_DATA 4
#define FLAG_ERROR 8

struct row {
	enum wire_form w;
	enum op op;
	enum outcome_kind kind;
	bool partial;
	enum fault f;
	int status, reply, flags;
};

static void
check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct row *r = &rows[i];
		struct outcome o = dialect_outcome(r->w, r->op, r->kind, r->partial, r->f);
		int flags = (o.bytes ? FLAG_BYTES : 0) | (o.etag ? FLAG_ETAG : 0) |
			    (o.body_data ? FLAG_DATA : 0) | (o.body_error ? FLAG_ERROR : 0);

		if (o.status != r->status || o.reply != r->reply || flags != r->flags)
			fail_msg("row %zu: status %d, reply %d, flags %d", i, o.status, o.reply, flags);
	}
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof rows / sizeof *rows)

/* item 33, item 34, item 50, item 57, item 58, item 59, item 60, item 64, item 65 */
static void
done(void **state)
{
	static const enum wire_form forms[] = { WIRE_AMZ, WIRE_DELL, WIRE_META, WIRE_TRIO };

	for (int i = 0; i < 4; i++) {
		struct row rows[] = {
			{ forms[i], OP_PUT_OBJECT, OUT_DONE, false, FAULT_NONE, 200, 200,
			  FLAG_BYTES | FLAG_ETAG },
			{ forms[i], OP_PUT_OBJECT, OUT_DONE, true, FAULT_NONE, 200, 200,
			  FLAG_BYTES | FLAG_ETAG },
			{ forms[i], OP_GET_OBJECT, OUT_DONE, false, FAULT_NONE, 200, 200,
			  FLAG_BYTES | FLAG_ETAG },
			{ forms[i], OP_GET_OBJECT, OUT_DONE, true, FAULT_NONE, 206, 206,
			  FLAG_BYTES | FLAG_ETAG },
		};

		CHECK_ROWS(rows);
	}
}

/* item 87, item 88: nothing of S3 is needed there. */
static void
done_scality(void **state)
{
	static const struct row rows[] = {
		{ WIRE_SCAL, OP_PUT_OBJECT, OUT_DONE, false, FAULT_NONE, 200, 0, FLAG_ETAG },
		{ WIRE_SCAL, OP_GET_OBJECT, OUT_DONE, false, FAULT_NONE, 200, 0, FLAG_ETAG },
		{ WIRE_SCAL, OP_GET_OBJECT, OUT_DONE, true, FAULT_NONE, 206, 0, FLAG_ETAG },
	};

	CHECK_ROWS(rows);
}

/* item 73, item 76: plain HTTP has no reply header. */
static void
done_plain(void **state)
{
	static const struct row rows[] = {
		{ WIRE_NONE, OP_PUT_OBJECT, OUT_DONE, false, FAULT_NONE, 200, 0, FLAG_ETAG },
		{ WIRE_NONE, OP_GET_OBJECT, OUT_DONE, false, FAULT_NONE, 200, 0, FLAG_ETAG | FLAG_DATA },
		{ WIRE_NONE, OP_GET_OBJECT, OUT_DONE, true, FAULT_NONE, 206, 0, FLAG_ETAG | FLAG_DATA },
		{ WIRE_NONE, OP_HEAD_OBJECT, OUT_DONE, false, FAULT_NONE, 200, 0, FLAG_ETAG },
		{ WIRE_NONE, OP_DELETE_OBJECT, OUT_DONE, false, FAULT_NONE, 204, 0, 0 },
		{ WIRE_NONE, OP_CREATE_BUCKET, OUT_DONE, false, FAULT_NONE, 200, 0, 0 },
		{ WIRE_NONE, OP_HEAD_BUCKET, OUT_DONE, false, FAULT_NONE, 200, 0, 0 },
		{ WIRE_NONE, OP_DELETE_BUCKET, OUT_DONE, false, FAULT_NONE, 204, 0, 0 },
		{ WIRE_NONE, OP_LIST_BUCKETS, OUT_DONE, false, FAULT_NONE, 200, 0, 0 },
	};

	CHECK_ROWS(rows);
}

/* item 37, item 67, item 95, item 100, item 101, item 102, item 103: an error that no client takes for
 * success */
static void
declined(void **state)
{
	static const enum wire_form forms[] = { WIRE_AMZ, WIRE_HIP, WIRE_DELL, WIRE_META, WIRE_TRIO };
	static const enum op ops[] = { OP_PUT_OBJECT, OP_UPLOAD_PART, OP_GET_OBJECT };
	static const struct row others[] = {
		{ WIRE_SCAL, OP_PUT_OBJECT, OUT_DECLINED, false, FAULT_NONE, 501, 0, FLAG_ERROR },
		{ WIRE_SCAL, OP_GET_OBJECT, OUT_DECLINED, false, FAULT_NONE, 501, 0, FLAG_ERROR },
		/* The same met while parsing: the connections of rc: tokens (item T8). */
		{ WIRE_HIP, OP_NONE, OUT_ERROR, false, FAULT_RDMA_NOT_SUPPORTED, 501, 501, FLAG_ERROR },
	};

	for (int f = 0; f < 5; f++) {
		for (int k = 0; k < 6; k++) {
			struct row r = { forms[f],   ops[k % 3], OUT_DECLINED, k >= 3,
					 FAULT_NONE, 501,        501,          FLAG_ERROR };

			check_rows(&r, 1);
		}
	}
	CHECK_ROWS(others);
}

/* For clients that turn to HTTP on a 2xx only (rdma.decline_2xx).  item 37, item 67 */
static void
declined_2xx(void **state)
{
	static const enum wire_form forms[] = { WIRE_AMZ, WIRE_HIP, WIRE_DELL, WIRE_META, WIRE_TRIO };

	for (int f = 0; f < 5; f++) {
		struct row rows[] = {
			/* No body and no ETag on a PUT. */
			{ forms[f], OP_PUT_OBJECT, OUT_DECLINED_2XX, false, FAULT_NONE, 200, 501, 0 },
			{ forms[f], OP_UPLOAD_PART, OUT_DECLINED_2XX, false, FAULT_NONE, 200, 501, 0 },
			{ forms[f], OP_GET_OBJECT, OUT_DECLINED_2XX, false, FAULT_NONE, 200, 501,
			  FLAG_ETAG | FLAG_DATA },
			{ forms[f], OP_GET_OBJECT, OUT_DECLINED_2XX, true, FAULT_NONE, 206, 501,
			  FLAG_ETAG | FLAG_DATA },
			/* Without a reply code a 2xx would say that it was done: whatever a rule says. */
			{ WIRE_SCAL, OP_PUT_OBJECT, OUT_DECLINED_2XX, false, FAULT_NONE, 501, 0, FLAG_ERROR },
			{ WIRE_SCAL, OP_GET_OBJECT, OUT_DECLINED_2XX, true, FAULT_NONE, 501, 0, FLAG_ERROR },
		};

		CHECK_ROWS(rows);
	}
}

/* item 41, item 75: the data plane */
static void
failed(void **state)
{
	static const struct row rows[] = {
		{ WIRE_AMZ, OP_PUT_OBJECT, OUT_FAILED, false, FAULT_TRANSFER, 500, 500, FLAG_ERROR },
		{ WIRE_AMZ, OP_GET_OBJECT, OUT_FAILED, true, FAULT_TRANSFER, 500, 500, FLAG_ERROR },
		{ WIRE_AMZ, OP_GET_OBJECT, OUT_FAILED, false, FAULT_DAMAGED, 500, 500, FLAG_ERROR },
		{ WIRE_DELL, OP_PUT_OBJECT, OUT_FAILED, false, FAULT_TRANSFER, 500, 500, FLAG_ERROR },
		{ WIRE_META, OP_PUT_OBJECT, OUT_FAILED, false, FAULT_TRANSFER, 500, 500, FLAG_ERROR },
		{ WIRE_TRIO, OP_GET_OBJECT, OUT_FAILED, false, FAULT_TRANSFER, 500, 500, FLAG_ERROR },
		{ WIRE_SCAL, OP_PUT_OBJECT, OUT_FAILED, false, FAULT_TRANSFER, 500, 0, FLAG_ERROR },
		{ WIRE_NONE, OP_GET_OBJECT, OUT_FAILED, false, FAULT_DAMAGED, 500, 0, FLAG_ERROR },
		/* Not the data plane after all. */
		{ WIRE_AMZ, OP_PUT_OBJECT, OUT_FAILED, false, FAULT_UNAVAILABLE, 503, 0, FLAG_ERROR },
		{ WIRE_AMZ, OP_PUT_OBJECT, OUT_FAILED, false, FAULT_DEADLINE, 503, 0, FLAG_ERROR },
	};

	CHECK_ROWS(rows);
}

/* item 43, item 68, item 86: no reply header; item 104: but always one on the 88-digit form. */
static void
errors(void **state)
{
	for (enum fault f = FAULT_NONE + 1; f < FAULT_NR; f++) {
		const struct fault_info *fi = fault_info(f);

		assert_in_range(fi->status, 304, 507);
		assert_true(strlen(fi->code) > 3 && strlen(fi->message) > 10);
		for (enum wire_form w = WIRE_NONE; w < WIRE_NR; w++) {
			for (enum op op = OP_NONE; op < OP_NR; op++) {
				struct outcome o = dialect_outcome(w, op, OUT_ERROR, false, f);
				bool head = op == OP_HEAD_OBJECT || op == OP_HEAD_BUCKET;

				assert_int_equal(o.status, fi->status);
				assert_int_equal(o.body_error, !head && f != FAULT_NOT_MODIFIED);
				assert_int_equal(o.etag, f == FAULT_NOT_MODIFIED);
				assert_true(!o.bytes && !o.body_data);
				if (w == WIRE_HIP)
					assert_int_equal(o.reply, fi->status);
				else if (f != FAULT_RDMA_NOT_SUPPORTED)
					assert_int_equal(o.reply, 0);
			}
		}
	}
}

/* The names of 4.8. */
static void
names(void **state)
{
	static const struct {
		enum fault f;
		int status;
		const char *code;
	} rows[] = {
		{ FAULT_BAD_TOKEN, 400, "InvalidRDMAToken" },
		{ FAULT_BAD_REQUEST, 400, "InvalidRequest" },
		{ FAULT_BAD_DIGEST, 400, "BadDigest" },
		{ FAULT_TOO_LARGE, 400, "EntityTooLarge" },
		{ FAULT_RANGE, 416, "InvalidRange" },
		{ FAULT_TRANSFER, 500, "RDMATransferFailed" },
		{ FAULT_RDMA_NOT_SUPPORTED, 501, "RDMANotSupported" },
		{ FAULT_BUSY, 503, "SlowDown" },
		{ FAULT_UNAVAILABLE, 503, "ServiceUnavailable" },
		{ FAULT_NO_DISK, 503, "ServiceUnavailable" },
		{ FAULT_FULL, 507, "InsufficientStorage" },
		{ FAULT_ACCESS_DENIED, 403, "AccessDenied" },
		{ FAULT_QUOTA, 403, "QuotaExceeded" },
		{ FAULT_TOO_MANY_BUCKETS, 400, "TooManyBuckets" },
		{ FAULT_NO_SUCH_KEY, 404, "NoSuchKey" },
		{ FAULT_NO_SUCH_BUCKET, 404, "NoSuchBucket" },
		{ FAULT_PRECONDITION, 412, "PreconditionFailed" },
		{ FAULT_LENGTH_REQUIRED, 411, "MissingContentLength" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(fault_info(rows[i].f)->status, rows[i].status);
		assert_string_equal(fault_info(rows[i].f)->code, rows[i].code);
	}
	for (enum op op = 0; op < OP_NR; op++)
		assert_non_null(op_name[op]);
}

/* item 62, item 63: what the CRT fork looks for */
static void
error_of_range(void **state)
{
	struct error_detail e = { .request_id = "1-2",
				  .resource = "/bkt/obj",
				  .resource_len = 8,
				  .have_size = true,
				  .size_bytes = 0,
				  .range_text = "bytes=8-9" };
	char out[1024];
	size_t n = dialect_error_body(DIALECT_S3, FAULT_RANGE, &e, out, sizeof out);

	out[n] = 0;
	assert_string_equal(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
				 "<Error><Code>InvalidRange</Code>"
				 "<Message>The range begins at or beyond the end of the object.</Message>"
				 "<Resource>/bkt/obj</Resource><RangeRequested>bytes=8-9</RangeRequested>"
				 "<ActualObjectSize>0</ActualObjectSize><RequestId>1-2</RequestId></Error>");
	e.size_bytes = 3145728;
	n = dialect_error_body(DIALECT_S3, FAULT_RANGE, &e, out, sizeof out);
	out[n] = 0;
	assert_non_null(strstr(out, "<ActualObjectSize>3145728</ActualObjectSize>"));
}

static void
error_escapes(void **state)
{
	struct error_detail e = { .message = "a<b>&\"'c",
				  .resource = "/b/<\x01\n\0\xff>",
				  .resource_len = 9 };
	char out[1024];
	size_t n = dialect_error_body(DIALECT_S3, FAULT_BAD_REQUEST, &e, out, sizeof out);

	out[n] = 0;
	assert_int_equal(strlen(out), n);
	assert_non_null(strstr(out, "<Message>a&lt;b&gt;&amp;&quot;&apos;c</Message>"));
	assert_non_null(strstr(out, "<Resource>/b/&lt;????&gt;</Resource>"));
	assert_null(strstr(out, "ActualObjectSize"));
	assert_null(strstr(out, "RequestId"));
}

/* At every capacity: never beyond it, and the resource goes first. */
static void
error_capacity(void **state)
{
	char key[1000], out[8192];
	struct error_detail e = { .request_id = "r", .resource = key, .resource_len = sizeof key };
	size_t full;

	memset(key, '\'', sizeof key);
	full = dialect_error_body(DIALECT_S3, FAULT_NO_SUCH_KEY, &e, out, sizeof out);
	assert_true(full > 6000);
	for (size_t cap = 0; cap <= full; cap++) {
		size_t n;

		memset(out, 'z', sizeof out);
		n = dialect_error_body(DIALECT_S3, FAULT_NO_SUCH_KEY, &e, out, cap);
		assert_true(n <= cap);
		assert_int_equal(out[cap], 'z');
		assert_true(n == 0 || memcmp(out + n - 8, "</Error>", 8) == 0);
		assert_true(cap < 200 || n > 0);
		assert_true((cap == full) == (n == full));
	}
	assert_int_equal(dialect_error_body(DIALECT_SCALITY, FAULT_NO_SUCH_KEY, &e, out, 5), 0);
}

/* 4.2: a small text */
static void
error_scality(void **state)
{
	struct error_detail e = { .message = "No rail." };
	char out[256];
	size_t n = dialect_error_body(DIALECT_SCALITY, FAULT_RDMA_NOT_SUPPORTED, &e, out, sizeof out);

	out[n] = 0;
	assert_string_equal(out, "RDMANotSupported: No rail.\n");
	e.message = NULL;
	n = dialect_error_body(DIALECT_SCALITY, FAULT_RDMA_NOT_SUPPORTED, &e, out, sizeof out);
	assert_true(n > 20 && n < 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(done),           cmocka_unit_test(done_scality),
		cmocka_unit_test(done_plain),     cmocka_unit_test(declined),
		cmocka_unit_test(declined_2xx),   cmocka_unit_test(failed),
		cmocka_unit_test(errors),         cmocka_unit_test(names),
		cmocka_unit_test(error_of_range), cmocka_unit_test(error_escapes),
		cmocka_unit_test(error_capacity), cmocka_unit_test(error_scality),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
