/* SPDX-License-Identifier: Apache-2.0 */
/* Preflights, and header fields in the query: every row of the tables, with every operation. */
#include "build.h"

#include "dialect/query_keys.h"

#include <stdio.h>

static const char *const query_keys[] = {
#define QUERY(id, key, ...) key,
#define MISSING(key) key,
#include "dialect/query.def"
};

static const char *const wire_headers[] = {
#define WIRE(id, header, ...) header,
#include "dialect/wire.def"
};

/* ---- preflights ---- */

static void
must_be_preflight(struct rq *r, const char *what)
{
	enum fault f = rq_parse(r);

	if (f != FAULT_NONE || r->t.op != OP_OPTIONS)
		fail_msg("OPTIONS %s, %s: fault %d, %s", r->target, what, f, r->why);
	assert_string_equal(r->t.bucket, "bkt");
	assert_string_equal(r->t.key, "a/k");
	assert_int_equal(r->t.wire, WIRE_NONE);
	assert_int_equal(r->t.unknown_header.len, 0);
	assert_false(dialect_query_signed(&r->in));
}

/* What a preflight asks about is its path: the query is of the request to come. */
static void
preflight_queries(void **state)
{
	static const char *const queries[] = {
		"",
		"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2F20130524%2Fus-east-1%2Fs3%2Faws4_"
		"request&"
		"X-Amz-Date=20130524T000000Z&X-Amz-Expires=1&X-Amz-SignedHeaders=host&X-Amz-Signature=0",
		"X-Amz-Signature=",
		"x-amz-signature=0&X-AMZ-SIGNATURE=1",
		"X-Amz-Signature=0&X-Amz-Signature=1",
		"AWSAccessKeyId=a&Signature=b&Expires=1",
		"X-Amz-Algorithm=AWS4-ECDSA-P256-SHA256",
		"X-Amz-Meta-A=1&x-amz-meta-a=2",
		"%",
		"a=%zz&%00=%00",
		"\"<>{}|\\^`",
		"&&&=&==",
		"partNumber=x&uploadId=y&list-type=9&max-keys=-1",
		"acl&acl&ACL",
		"torrent",
		"nobody-knows-me=1",
		"x-gantry-copies=2",
	};
	char target[1024];

	for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
		snprintf(target, sizeof target, "/bkt/a%%2Fk?%s", queries[i]);
		must_be_preflight(s3("OPTIONS", target), "odd query");
	}
	for (size_t i = 0; i < sizeof query_keys / sizeof *query_keys; i++) {
		snprintf(target, sizeof target, "/bkt/a/k?%s=%%25&%s=2", query_keys[i], query_keys[i]);
		must_be_preflight(s3("OPTIONS", target), query_keys[i]);
	}
	for (size_t i = 0; i < sizeof wire_headers / sizeof *wire_headers; i++) {
		snprintf(target, sizeof target, "/bkt/a/k?%s=1", wire_headers[i]);
		must_be_preflight(s3("OPTIONS", target), wire_headers[i]);
	}
	/* The path is still one that could be a key's. */
	assert_fault(rq_parse(s3("OPTIONS", "/bkt/%zz")), FAULT_BAD_URI);
	assert_fault(rq_parse(s3("OPTIONS", "/b_t/k?X-Amz-Signature=0")), FAULT_BAD_BUCKET_NAME);
	assert_fault(rq_parse(s3("OPTIONS", "/?X-Amz-Signature=0")), FAULT_METHOD);
	assert_fault(rq_parse(scality("OPTIONS", "/bkt/k")), FAULT_NOT_IMPLEMENTED);
}

/* Nor do its headers say anything of a token, or of what is asked for. */
static void
preflight_headers(void **state)
{
	static const char *const headers[][2] = {
		{ "Authorization", "AWS4-HMAC-SHA256 nonsense" },
		{ "Authorization", "Bearer x" },
		{ "x-amz-date", "never" },
		{ "x-amz-content-sha256", "nonsense" },
		{ "x-amz-acl", "public-read" },
		{ "x-amz-expected-bucket-owner", "somebody" },
		{ "x-amz-copy-source", "//" },
		{ "x-amz-nobody-knows", "1" },
		{ "x-gantry-copies", "7" },
	};

	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
		must_be_preflight(rq_with(s3("OPTIONS", "/bkt/a/k"), headers[i][0], headers[i][1], NULL),
				  headers[i][0]);
	for (size_t i = 0; i < sizeof wire_headers / sizeof *wire_headers; i++)
		must_be_preflight(rq_with(s3("OPTIONS", "/bkt/a/k"), wire_headers[i], DC81, wire_headers[i],
					  "nonsense", NULL),
				  wire_headers[i]);
	/* Framing is of the message. */
	assert_fault(rq_parse(rq_with(s3("OPTIONS", "/bkt/k"), "content-length", "5", NULL)),
		     FAULT_BAD_REQUEST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(preflight_queries),
		cmocka_unit_test(preflight_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
