/* SPDX-License-Identifier: Apache-2.0 */
/* Method and target to operation, bucket and key, in both dialects: uri.c. */
#include "build.h"

#include <stdio.h>
#include <stdlib.h>

static void
s3_operations(void **state)
{
	static const struct {
		const char *method, *target;
		enum fault f;
		enum op op;
		const char *bucket, *key;
	} cases[] = {
		{ "GET", "/", FAULT_NONE, OP_LIST_BUCKETS, "", "" },
		{ "GET", "/?x-id=ListBuckets", FAULT_NONE, OP_LIST_BUCKETS, "", "" },
		{ "HEAD", "/", FAULT_METHOD },
		{ "PUT", "/", FAULT_METHOD },
		{ "DELETE", "/", FAULT_METHOD },
		{ "POST", "/", FAULT_METHOD },
		{ "OPTIONS", "*", FAULT_BAD_URI },
		{ "OPTIONS", "/", FAULT_METHOD },
		{ "OPTIONS", "/bkt", FAULT_NONE, OP_OPTIONS, "bkt", "" },
		{ "OPTIONS", "/bkt/obj?uploads", FAULT_NONE, OP_OPTIONS, "bkt", "obj" },
		{ "PATCH", "/bkt/obj", FAULT_METHOD },
		{ "TRACE", "/", FAULT_METHOD },
		{ "get", "/", FAULT_METHOD },
		{ "", "/", FAULT_METHOD },
		{ "PUT", "/bkt", FAULT_NONE, OP_CREATE_BUCKET, "bkt", "" },
		{ "PUT", "/bkt/", FAULT_NONE, OP_CREATE_BUCKET, "bkt", "" },
		{ "HEAD", "/bkt", FAULT_NONE, OP_HEAD_BUCKET, "bkt", "" },
		{ "DELETE", "/bkt/", FAULT_NONE, OP_DELETE_BUCKET, "bkt", "" },
		{ "GET", "/bkt", FAULT_NONE, OP_LIST_OBJECTS, "bkt", "" },
		{ "GET", "/bkt/", FAULT_NONE, OP_LIST_OBJECTS, "bkt", "" },
		{ "POST", "/bkt", FAULT_PRECONDITION },
		{ "POST", "/bkt/obj", FAULT_METHOD },
		{ "GET", "/bkt/obj", FAULT_NONE, OP_GET_OBJECT, "bkt", "obj" },
		{ "HEAD", "/bkt/obj", FAULT_NONE, OP_HEAD_OBJECT, "bkt", "obj" },
		{ "DELETE", "/bkt/obj", FAULT_NONE, OP_DELETE_OBJECT, "bkt", "obj" },
		{ "DELETE", "/bkt/obj?x-id=DeleteObject", FAULT_NONE, OP_DELETE_OBJECT, "bkt", "obj" },
		{ "GET", "/b%6bt/obj", FAULT_NONE, OP_GET_OBJECT, "bkt", "obj" },
		{ "GET", "/bkt%2Fobj", FAULT_NONE, OP_GET_OBJECT, "bkt", "obj" },
		{ "GET", "http://10.0.0.9:9000/bkt/obj", FAULT_NONE, OP_GET_OBJECT, "bkt", "obj" },
		{ "GET", "HTTPS://10.0.0.9:9000/bkt/obj?x-id=GetObject", FAULT_NONE, OP_GET_OBJECT, "bkt",
		  "obj" },
		{ "GET", "http://10.0.0.9:9000", FAULT_NONE, OP_LIST_BUCKETS, "", "" },
		{ "GET", "http://10.0.0.9:9000?x-id=1", FAULT_BAD_URI },
		/* Whoever is on the way may have gone by one or the other. */
		{ "GET", "http://10.0.0.9/bkt/obj", FAULT_BAD_REQUEST },
		{ "GET", "http://10.0.0.9:9000@evil/bkt/obj", FAULT_BAD_REQUEST },
		{ "GET", "http://u@10.0.0.9:9000/bkt/obj", FAULT_BAD_REQUEST },
		{ "GET", "http:///bkt/obj", FAULT_BAD_REQUEST },
		{ "GET", "http://evil", FAULT_BAD_REQUEST },
		{ "GET", "ftp://host/bkt/obj", FAULT_BAD_URI },
		{ "GET", "", FAULT_BAD_URI },
		{ "GET", "*", FAULT_BAD_URI },
		{ "GET", "bkt/obj", FAULT_BAD_URI },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rq *r = s3(cases[i].method, cases[i].target);
		enum fault f;

		if (strcmp(cases[i].method, "PUT") == 0)
			rq_field(r, "content-length", "0");
		f = rq_parse(r);
		if (f != cases[i].f)
			fail_msg("%s %s: fault %d, %s", cases[i].method, cases[i].target, f, r->why);
		if (f)
			continue;
		assert_int_equal(r->t.op, cases[i].op);
		assert_string_equal(r->t.bucket, cases[i].bucket);
		assert_string_equal(r->t.key, cases[i].key);
		assert_int_equal(r->t.bucket_len, strlen(cases[i].bucket));
		assert_int_equal(r->t.key_len, strlen(cases[i].key));
	}
}

static void
bucket_names(void **state)
{
	static const char *const good[] = {
		"abc",       "a-b",
		"a.b",       "123",
		"a1.b2-c3",  "1.2.3",
		"1.2.3.4.5", "256.1.1.1",
		"a--b",      "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz1"
	};
	static const char *const bad[] = {
		"ab",       "a",         "Abc",
		"aBc",      "a_b",       "a..b",
		".abc",     "abc.",      "-abc",
		"abc-",     "1.2.3.4",   "10.0.0.5",
		"a%20b",    "%ff%ff%ff", "a:b",
		".scality", "a+b",       "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz12"
	};
	static const char *const hyphens[] = { "a.-b", "a-.b", "abc.d-.e" };
	char target[128];

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		snprintf(target, sizeof target, "/%s", good[i]);
		assert_fault(rq_parse(s3("HEAD", target)), FAULT_NONE);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(target, sizeof target, "/%s", bad[i]);
		assert_fault(rq_parse(s3("HEAD", target)), FAULT_BAD_BUCKET_NAME);
		snprintf(target, sizeof target, "/%s/key", bad[i]);
		assert_fault(rq_parse(s3("GET", target)), FAULT_BAD_BUCKET_NAME);
	}
	/* A label is not made with a hyphen at its end; what is called so goes on. */
	for (size_t i = 0; i < sizeof hyphens / sizeof *hyphens; i++) {
		snprintf(target, sizeof target, "/%s", hyphens[i]);
		assert_fault(rq_parse(s3("PUT", target)), FAULT_BAD_BUCKET_NAME);
		assert_fault(rq_parse(s3("HEAD", target)), FAULT_NONE);
		assert_fault(rq_parse(s3("DELETE", target)), FAULT_NONE);
	}
	assert_fault(rq_parse(s3("PUT", "/a-b.c-d")), FAULT_NONE);
	assert_fault(rq_parse(s3("GET", "//key")), FAULT_BAD_BUCKET_NAME);
	assert_fault(rq_parse(s3("GET", "/a%zzb/key")), FAULT_BAD_URI);
	assert_fault(rq_parse(s3("GET", "/abc%00/key")), FAULT_BAD_URI);
}

static void
s3_keys(void **state)
{
	static const struct {
		const char *raw;
		enum fault f;
		const char *key;
	} cases[] = {
		{ "a%20b", FAULT_NONE, "a b" },
		{ "a+b", FAULT_NONE, "a+b" },
		{ "a%2Bb", FAULT_NONE, "a+b" },
		{ "a%2fb", FAULT_NONE, "a/b" },
		{ "a//b", FAULT_NONE, "a//b" },
		{ "/a", FAULT_NONE, "/a" },
		{ "a/", FAULT_NONE, "a/" },
		{ "../../etc/passwd", FAULT_NONE, "../../etc/passwd" },
		{ "%2e%2e/x", FAULT_NONE, "../x" },
		{ ".", FAULT_NONE, "." },
		{ "%2520", FAULT_NONE, "%20" }, /* decoded once */
		{ "100%25", FAULT_NONE, "100%" },
		{ "a&b=c", FAULT_NONE, "a&b=c" },
		{ "%3Facl", FAULT_NONE, "?acl" },
		{ "%C3%A9", FAULT_NONE, "\xc3\xa9" },
		{ "\xc3\xa9", FAULT_NONE, "\xc3\xa9" },
		{ "%f0%9f%98%80", FAULT_NONE, "\xf0\x9f\x98\x80" },
		{ "%0a", FAULT_BAD_URI },
		{ "a%7f", FAULT_BAD_URI },
		{ "a%01b", FAULT_BAD_URI },
		{ "%00", FAULT_BAD_URI },
		{ "a%00b", FAULT_BAD_URI },
		{ "%", FAULT_BAD_URI },
		{ "%4", FAULT_BAD_URI },
		{ "a%4", FAULT_BAD_URI },
		{ "%zz", FAULT_BAD_URI },
		{ "%4g", FAULT_BAD_URI },
		{ "%-1", FAULT_BAD_URI },
		{ "%u0041", FAULT_BAD_URI },
		{ "%ff", FAULT_BAD_URI },
		{ "%c3", FAULT_BAD_URI },
		{ "%c3%28", FAULT_BAD_URI },
		{ "%c0%af", FAULT_BAD_URI },          /* overlong */
		{ "%e0%80%af", FAULT_BAD_URI },       /* overlong */
		{ "%ed%a0%80", FAULT_BAD_URI },       /* surrogate */
		{ "%f4%90%80%80", FAULT_BAD_URI },    /* beyond U+10FFFF */
		{ "%f8%88%80%80%80", FAULT_BAD_URI }, /* five bytes */
		{ "%80", FAULT_BAD_URI },
		{ "%e2%82", FAULT_BAD_URI },
		{ "a b", FAULT_BAD_URI },
		{ "a\tb", FAULT_BAD_URI },
		{ "a#b", FAULT_BAD_URI },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char target[128];
		struct rq *r;
		enum fault f;

		snprintf(target, sizeof target, "/bkt/%s", cases[i].raw);
		r = s3("GET", target);
		f = rq_parse(r);
		if (f != cases[i].f)
			fail_msg("%s: fault %d, %s", cases[i].raw, f, r->why);
		if (f == FAULT_NONE)
			assert_string_equal(r->t.key, cases[i].key);
	}
}

static void
key_length(void **state)
{
	char target[4 * DIALECT_KEY_MAX];

	for (int over = 0; over < 2; over++) {
		enum fault want = over ? FAULT_KEY_TOO_LONG : FAULT_NONE;
		size_t n = DIALECT_KEY_MAX + (size_t)over;
		struct rq *r;

		memset(target, 'k', sizeof target);
		memcpy(target, "/bkt/", 5);
		target[5 + n] = 0;
		r = s3("GET", target);
		assert_fault(rq_parse(r), want);
		assert_true(over || r->t.key_len == DIALECT_KEY_MAX);
		target[0] = 'k';
		/* The same through percent signs: decoded bytes count. */
		strcpy(target, "/bkt/");
		for (size_t i = 0; i < n; i++)
			strcat(target, "%6b");
		assert_fault(rq_parse(s3("GET", target)), want);
		/* Scality: as long, and 400 as well. */
		memset(target, 'k', sizeof target);
		target[0] = '/';
		target[1 + n] = 0;
		assert_fault(rq_parse(scality("GET", target)), want);
		r = scality("GET", target);
		r->listen.decode = false;
		assert_fault(rq_parse(r), want);
	}
}

/* Keys are read by eights: each byte counts at each place. */
static void
key_bytes(void **state)
{
	static const struct {
		const char *bytes;
		enum fault want;
	} cases[] = {
		{ "%C3%A9", FAULT_NONE }, { "%F0%9F%92%BE", FAULT_NONE }, { "%7E", FAULT_NONE },
		{ "%01", FAULT_BAD_URI }, { "%1F", FAULT_BAD_URI },       { "%7F", FAULT_BAD_URI },
		{ "%FF", FAULT_BAD_URI }, { "%C3", FAULT_BAD_URI },       { "%A9", FAULT_BAD_URI },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int before = 0; before < 20; before++) {
			char target[64];

			snprintf(target, sizeof target, "/bkt/%.*s%sz", before, "0123456789abcdefghij",
				 cases[i].bytes);
			assert_fault(rq_parse(s3("GET", target)), cases[i].want);
		}
	}
}

static void
query_keys(void **state)
{
	static const struct {
		const char *query;
		enum fault read, write;
	} odd[] = {
		/* What S3 has and we have not, or what another operation has. */
		{ "versions", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "inventory", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "retention&acl", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "torrent", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "restore", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "location", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "policy", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "cors", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "lifecycle", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "list-type=2", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "prefix=a", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "delete", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "append", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "renameObject", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "select", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "max-keys=1", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "acl&cors", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		/* In other letters. */
		{ "ACL", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "Tagging", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "UPLOADS", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "versionid=1", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "Torrent", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "x-amz-signature=1", FAULT_BAD_ARGUMENT, FAULT_BAD_ARGUMENT },
		{ "signature=1", FAULT_BAD_ARGUMENT, FAULT_BAD_ARGUMENT },
		{ "x-amz-acl=private", FAULT_NONE, FAULT_NONE },
		{ "x-amz-acl=public-read", FAULT_NO_ACLS, FAULT_NO_ACLS },
		{ "X-AMZ-new=1", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "x-rdma-info=1", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "X-Scal-Rdma=1", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "x-gantry-a", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		/* Nobody's: a request that changes nothing may have it. */
		{ "v=123", FAULT_NONE, FAULT_NOT_IMPLEMENTED },
		{ "Version=2006-03-01", FAULT_NONE, FAULT_NOT_IMPLEMENTED },
		/* Beside a subresource that has ids it names one; else it is nobody's. */
		{ "id=1", FAULT_NONE, FAULT_NOT_IMPLEMENTED },
		{ "metadata=true", FAULT_NONE, FAULT_NOT_IMPLEMENTED },
		{ "X-ID=1", FAULT_NONE, FAULT_NOT_IMPLEMENTED },
		{ "\xff=1", FAULT_NONE, FAULT_NOT_IMPLEMENTED },
		{ "v=1&v=2", FAULT_NONE, FAULT_NOT_IMPLEMENTED },
		{ "acl%00", FAULT_BAD_URI, FAULT_BAD_URI },
		{ "acl%", FAULT_BAD_URI, FAULT_BAD_URI },
	};
	static const char *const known[] = {
		"",
		"&",
		"&&",
		"=",
		"=x",
		"x-id=PutObject",
		"x-id",
		"x-id=a&x-id=b",
		"x-job=7&x-=&x-a",
		"X-Amz-Signature=0",
		"X%2DAmz-Signature=0",
		"AWSAccessKeyId=x&Signature=y&Expires=1",
		("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2Fb&X-Amz-Date=1&X-Amz-Expires=1"
		 "&X-Amz-SignedHeaders=host&X-Amz-Security-Token=t&X-Amz-Signature=0&x-id=PutObject"),
	};
	static const char *const methods[] = { "PUT", "DELETE", "GET", "HEAD" };
	char target[400];

	for (size_t m = 0; m < 4; m++) {
		for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
			enum fault want = m < 2 ? odd[i].write : odd[i].read;
			struct rq *r;

			snprintf(target, sizeof target, "/bkt/obj?%s", odd[i].query);
			r = s3(methods[m], target);
			rq_field(r, "content-length", "0");
			if (rq_parse(r) != want)
				fail_msg("%s %s: fault %d, %s", methods[m], target, rq_parse(r), r->why);
		}
		for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
			struct rq *r;

			snprintf(target, sizeof target, "/bkt/obj?%s", known[i]);
			r = s3(methods[m], target);
			rq_field(r, "content-length", "0");
			assert_fault(rq_parse(r), FAULT_NONE);
			assert_string_equal(r->t.key, "obj");
			assert_int_equal(dialect_query_signed(&r->in), i >= 9);
		}
	}
	/* On a bucket as well: PUT /bkt?versioning must not create it. */
	assert_fault(rq_parse(s3("PUT", "/bkt?location")), FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(s3("DELETE", "/bkt?cors&policy")), FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(s3("DELETE", "/bkt?versioning")), FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(s3("PUT", "/bkt?Versioning")), FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(s3("POST", "/bkt/obj?uploads&v=1")), FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(s3("GET", "/?acl")), FAULT_NOT_IMPLEMENTED);
	/* minio-go, minio-js, libcloud */
	assert_fault(rq_parse(s3("GET", "/bkt?lifecycle=&withUpdatedAt=true")), FAULT_NONE);
	assert_fault(rq_parse(s3("GET", "/bkt?list-type=2&metadata=true")), FAULT_NONE);
}

/* item 94: with and without decoding */
static void
scality_keys(void **state)
{
	static const struct {
		const char *raw, *decoded;
	} cases[] = {
		{ "key-17", "key-17" },
		{ "12345678901234567890", "12345678901234567890" },
		{ "a/b/c", "a/b/c" },
		{ "a//b/", "a//b/" },
		{ "/a", "/a" },
		{ "../x", "../x" },
		{ "a+b", "a+b" },
		{ "a%2Bb", "a+b" },
		{ "a%20b", "a b" },
		{ "a b", "a b" },
		{ "100%", "100%" },
		{ "50%zz", "50%zz" },
		{ "%2", "%2" },
		{ "%2525", "%25" },
		{ "a?b=c", "a?b=c" },
		{ "?acl", "?acl" },
		{ "bkt/obj?uploads", "bkt/obj?uploads" },
		{ "a#b", "a#b" },
		{ "\xff\xfe", "\xff\xfe" },
		{ "%ff", "\xff" },
		{ "v1/x", "v1/x" },
		{ "AB_c", "AB_c" },
		{ "\t\x01", "\t\x01" },
	};
	static const char *const methods[] = { "PUT", "GET", "HEAD", "DELETE" };
	static const enum op ops[] = { OP_PUT_OBJECT, OP_GET_OBJECT, OP_HEAD_OBJECT, OP_DELETE_OBJECT };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int m = 0; m < 4; m++) {
			for (int decode = 0; decode < 2; decode++) {
				char target[64];
				struct rq *r;

				snprintf(target, sizeof target, "/%s", cases[i].raw);
				r = scality(methods[m], target);
				if (m == 0)
					rq_field(r, "content-length", "1");
				r->listen.decode = decode;
				assert_fault(rq_parse(r), FAULT_NONE);
				assert_int_equal(r->t.op, ops[m]);
				assert_string_equal(r->t.bucket, ".scality");
				assert_string_equal(r->t.key, decode ? cases[i].decoded : cases[i].raw);
				assert_int_equal(r->t.key_len, strlen(r->t.key));
			}
		}
	}
}

static void
scality_nul(void **state)
{
	struct rq *r;

	assert_fault(rq_parse(scality("GET", "/a%00b")), FAULT_BAD_URI);
	r = scality("GET", "/a%00b");
	r->listen.decode = false;
	assert_fault(rq_parse(r), FAULT_NONE);
	for (int decode = 0; decode < 2; decode++) {
		r = scality("GET", "/ab");
		r->target = "/a\0b";
		r->target_len = 4;
		r->listen.decode = decode;
		assert_fault(rq_parse(r), FAULT_BAD_URI);
	}
}

/* item 93: the prefix; item 99: what is an S3 operation by its look is a key here. */
static void
scality_paths(void **state)
{
	static const char *const nothing[] = { "/", "/v1", "/v1/", "/x", "/v2/key", "/V1/key", "/v1key" };
	struct rq *r;

	for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
		r = scality("GET", nothing[i]);
		r->listen.v1_prefix = true;
		assert_fault(rq_parse(r), FAULT_NOT_FOUND);
	}
	r = rq_with(scality("PUT", "/v1/a/b"), "content-length", "0", "x-scal-rdma", DC81, NULL);
	r->listen.v1_prefix = true;
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_string_equal(r->t.key, "a/b");

	/* No method reaches a bucket operation. */
	assert_fault(rq_parse(scality("GET", "/")), FAULT_NOT_FOUND);
	assert_fault(rq_parse(scality("PUT", "/")), FAULT_NOT_FOUND);
	assert_fault(rq_parse(scality("POST", "/bkt")), FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(scality("OPTIONS", "/bkt")), FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(scality("PATCH", "/bkt")), FAULT_METHOD);
	assert_fault(rq_parse(scality("GET", "key")), FAULT_BAD_URI);
	r = rq_with(scality("PUT", "/bkt"), "content-length", "0", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.op, OP_PUT_OBJECT);
	r = scality("DELETE", "/bkt/");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.op, OP_DELETE_OBJECT);
	assert_string_equal(r->t.key, "bkt/");
	/* A namespace as an operator may misname it. */
	r = scality("GET", "/k");
	r->listen.bucket = (char *)"abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz12";
	assert_fault(rq_parse(r), FAULT_INTERNAL);
	/* The reverse: the namespace's default name is no S3 bucket name. */
	assert_fault(rq_parse(s3("GET", "/.scality/key")), FAULT_BAD_BUCKET_NAME);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s3_operations), cmocka_unit_test(bucket_names),
		cmocka_unit_test(s3_keys),       cmocka_unit_test(key_length),
		cmocka_unit_test(key_bytes),     cmocka_unit_test(query_keys),
		cmocka_unit_test(scality_keys),  cmocka_unit_test(scality_nul),
		cmocka_unit_test(scality_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
