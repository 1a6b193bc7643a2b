/* SPDX-License-Identifier: Apache-2.0 */
/* What a PUT carries besides its bytes: checksums and attributes: sums.c, attrs.c. */
#include "build.h"

#include <errno.h>
#include <stdlib.h>

static const struct {
	enum checksum_kind kind;
	const char *value, *of_empty; /* value: of "123456789" */
	int len;
} sums[] = {
	{ SUM_CRC64NVME, "rosUhgp5mIg=", "AAAAAAAAAAA=", 8 },
	{ SUM_CRC32, "y/Q5Jg==", "AAAAAA==", 4 },
	{ SUM_CRC32C, "4waSgw==", "AAAAAA==", 4 },
	{ SUM_SHA1, "98O8HYCOBHMqC5oZs8lNKQLYrA8=", "2jmj7l5rSw0yVb/vlWAYkK/YBwk=", 20 },
	{ SUM_SHA256, "FeKw09t5BhY41ygP8bvlQpFTRteLg8Nd3FLlnvuprCU=",
	  "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", 32 },
	{ SUM_MD5, "JfnnlDI7RTiF9RgfG2JNCw==", "1B2M2Y8AsgTpgAmY7PhCfg==", 16 },
};
#define D_EXPIRES "Wed, 21 Oct 2015 07:28:00 GMT"
#define SHA_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SHA_OTHER "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"

/* item 44: given, decoded, most significant byte first */
static void
values(void **state)
{
	for (size_t i = 0; i < 6; i++) {
		for (int window = 0; window < 2; window++) {
			const char *name = checksum_header[sums[i].kind];
			struct rq *r = rq_with(window ? put_dc() : put_body(), name, sums[i].value, NULL);

			assert_fault(rq_parse(r), FAULT_NONE);
			for (int k = 0; k < SUM_NR; k++)
				assert_int_equal(r->t.sum[k].given, k == (int)sums[i].kind);
			assert_int_equal(r->t.sum[sums[i].kind].len, sums[i].len);
			assert_false(r->t.sum[sums[i].kind].payload_hash);
			assert_false(r->t.sums_of_empty_ignored);
		}
	}
	struct rq *r = rq_with(put_dc(), "x-amz-checksum-crc64nvme", "rosUhgp5mIg=", NULL);

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_memory_equal(r->t.sum[SUM_CRC64NVME].value, "\xae\x8b\x14\x86\x0a\x79\x98\x88", 8);
}

static void
bad_values(void **state)
{
	for (size_t i = 0; i < 6; i++) {
		const char *name = checksum_header[sums[i].kind];
		enum fault want = sums[i].kind == SUM_MD5 ? FAULT_INVALID_DIGEST : FAULT_BAD_REQUEST;
		char cut[64];

		assert_fault(rq_parse(rq_with(put_body(), name, "", NULL)), want);
		assert_fault(rq_parse(rq_with(put_body(), name, "!", NULL)), want);
		assert_fault(rq_parse(rq_with(put_body(), name, "AAAA", NULL)), want);
		assert_fault(rq_parse(rq_with(put_body(), name, SHA_EMPTY, NULL)), want);
		strcpy(cut, sums[i].value);
		cut[strlen(cut) - 1] = 0;
		assert_fault(rq_parse(rq_with(put_body(), name, cut, NULL)), want);
		assert_fault(rq_parse(rq_with(put_body(), name, sums[i].value, name, sums[i].value, NULL)),
			     want);
		assert_fault(rq_parse(rq_with(put_dc(), name, cut, NULL)), want);
	}
	/* What we cannot verify is not taken for verified. */
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-checksum-xxhash64", "AAAAAAAAAAA=", NULL)),
		     FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-checksum-type", "FULL_OBJECT", NULL)), FAULT_NONE);
	/* Elsewhere these headers mean nothing. */
	assert_fault(rq_parse(rq_with(s3("GET", "/bkt/obj"), "x-amz-checksum-crc32", "!", NULL)), FAULT_NONE);
}

/* item 45 */
static void
sums_of_empty(void **state)
{
	for (size_t i = 0; i < 6; i++) {
		const char *name = checksum_header[sums[i].kind];
		struct rq *r = rq_with(put_dc(), name, sums[i].of_empty, NULL);

		assert_fault(rq_parse(r), FAULT_NONE);
		assert_false(r->t.sum[sums[i].kind].given);
		assert_true(r->t.sums_of_empty_ignored);
		/* Without a window it is what it says. */
		r = rq_with(put_body(), name, sums[i].of_empty, NULL);
		assert_fault(rq_parse(r), FAULT_NONE);
		assert_true(r->t.sum[sums[i].kind].given);
		assert_false(r->t.sums_of_empty_ignored);
	}
	/* It does not count as a second algorithm, and its own algorithm is then computed. */
	struct rq *r = rq_with(put_dc(), "x-amz-checksum-crc32", "AAAAAA==", "x-amz-checksum-crc64nvme",
			       "rosUhgp5mIg=", NULL);

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.sum[SUM_CRC64NVME].given);
	r = rq_with(put_dc(), "x-amz-checksum-crc32", "AAAAAA==", "x-amz-sdk-checksum-algorithm", "CRC32",
		    NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.sum[SUM_CRC32].wanted && !r->t.sum[SUM_CRC32].given);
}

/* item 46 */
static void
algorithms(void **state)
{
	static const struct {
		const char *name;
		enum checksum_kind kind;
	} names[] = {
		{ "CRC64NVME", SUM_CRC64NVME }, { "CRC32", SUM_CRC32 },   { "CRC32C", SUM_CRC32C },
		{ "SHA1", SUM_SHA1 },           { "SHA256", SUM_SHA256 }, { "crc64nvme", SUM_CRC64NVME }
	};
	static const char *const headers[] = { "x-amz-checksum-algorithm", "x-amz-sdk-checksum-algorithm" };
	struct rq *r;

	for (size_t i = 0; i < 6; i++) {
		for (int h = 0; h < 2; h++) {
			for (int window = 0; window < 2; window++) {
				r = rq_with(window ? put_dc() : put_body(), headers[h], names[i].name, NULL);
				assert_fault(rq_parse(r), FAULT_NONE);
				for (int k = 0; k < SUM_NR; k++)
					assert_int_equal(r->t.sum[k].wanted, k == (int)names[i].kind);
			}
		}
	}
	r = rq_with(put_dc(), "x-amz-sdk-checksum-algorithm", "CRC32C", "x-amz-checksum-crc32c",
		    "4waSgw==", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.sum[SUM_CRC32C].given && !r->t.sum[SUM_CRC32C].wanted);
	assert_fault(rq_parse(rq_with(put_dc(), headers[0], "MD5", NULL)), FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(put_dc(), headers[0], "", NULL)), FAULT_BAD_REQUEST);
	/* More than one algorithm. */
	assert_fault(rq_parse(rq_with(put_dc(), headers[0], "CRC32", headers[1], "SHA1", NULL)),
		     FAULT_BAD_REQUEST);
	assert_fault(
		rq_parse(rq_with(put_dc(), headers[0], "CRC32", "x-amz-checksum-crc32c", "4waSgw==", NULL)),
		FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-checksum-crc32", "y/Q5Jg==", "x-amz-checksum-crc32c",
				      "4waSgw==", NULL)),
		     FAULT_BAD_REQUEST);
	/* Content-MD5 is not one of them. */
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-checksum-crc32", "y/Q5Jg==", "content-md5",
				      "JfnnlDI7RTiF9RgfG2JNCw==", NULL)),
		     FAULT_NONE);
	/* What the reader asks for. */
	r = rq_with(s3("GET", "/bkt/obj"), "x-amz-checksum-mode", "ENABLED", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.checksum_mode);
	r = rq_with(s3("HEAD", "/bkt/obj"), "x-amz-checksum-mode", "off", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_false(r->t.checksum_mode);
}

/* item 47 */
static void
payload_hash(void **state)
{
	static const char *const streaming[] = { "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
						 "STREAMING-UNSIGNED-PAYLOAD-TRAILER" };
	static const char *const odd[] = { "", "unsigned-payload", "UNSIGNED", "e3b0", SHA_EMPTY "0", "zz" };
	struct rq *r;

	assert_fault(rq_parse(rq_with(put_dc(), "x-amz-content-sha256", "UNSIGNED-PAYLOAD", NULL)),
		     FAULT_NONE);
	r = rq_with(put_dc(), "x-amz-content-sha256", SHA_EMPTY, NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_false(r->t.sum[SUM_SHA256].given);
	assert_fault(rq_parse(rq_with(put_dc(), "x-amz-content-sha256", SHA_OTHER, NULL)),
		     FAULT_SHA_MISMATCH);
	for (int i = 0; i < 2; i++) {
		assert_fault(rq_parse(rq_with(put_dc(), "x-amz-content-sha256", streaming[i], NULL)),
			     FAULT_BAD_REQUEST);
		r = rq_with(put_body(), "x-amz-content-sha256", streaming[i], NULL);
		assert_fault(rq_parse(r), FAULT_NONE);
		assert_true(r->t.aws_chunked && !r->t.sum[SUM_SHA256].given);
	}
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		assert_fault(rq_parse(rq_with(put_dc(), "x-amz-content-sha256", odd[i], NULL)),
			     FAULT_BAD_ARGUMENT);
		assert_fault(rq_parse(rq_with(put_body(), "x-amz-content-sha256", odd[i], NULL)),
			     FAULT_BAD_ARGUMENT);
	}
	/* A body: to be verified, but it is not an x-amz-checksum. */
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-content-sha256", "UNSIGNED-PAYLOAD", NULL)),
		     FAULT_NONE);
	r = rq_with(put_body(), "x-amz-content-sha256", SHA_OTHER, NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.sum[SUM_SHA256].given && r->t.sum[SUM_SHA256].payload_hash &&
		    r->t.sum[SUM_SHA256].len == 32);
	assert_int_equal(r->t.sum[SUM_SHA256].value[0], 0x15);
	r = rq_with(put_body(), "x-amz-content-sha256", SHA_OTHER, "x-amz-checksum-algorithm", "SHA256",
		    NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.sum[SUM_SHA256].given && r->t.sum[SUM_SHA256].wanted &&
		    !r->t.sum[SUM_SHA256].payload_hash);
	r = rq_with(put_body(), "x-amz-content-sha256", SHA_EMPTY, "x-amz-checksum-sha256",
		    "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.sum[SUM_SHA256].given && !r->t.sum[SUM_SHA256].payload_hash);
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-content-sha256", SHA_OTHER, "x-amz-checksum-sha256",
				      "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", NULL)),
		     FAULT_SHA_MISMATCH);
	r = rq_with(put_body(), "x-amz-content-sha256", SHA_OTHER, "x-amz-checksum-crc32", "y/Q5Jg==", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.sum[SUM_SHA256].given && r->t.sum[SUM_CRC32].given);
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-content-sha256", SHA_EMPTY, "x-amz-content-sha256",
				      SHA_EMPTY, NULL)),
		     FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256", "whatever", NULL)),
		     FAULT_NONE);
}

static char listed[8192];

static void
list(void *cookie, const char *name, size_t name_len, const char *value, size_t value_len)
{
	strncat(listed, name, name_len);
	strcat(listed, "=");
	strncat(listed, value, value_len);
	strcat(listed, "\n");
}

static const char *
attrs_of(struct rq *r)
{
	listed[0] = 0;
	assert_int_equal(dialect_attrs_each(r->t.attrs, r->t.attrs_len, list, NULL), 0);
	return listed;
}

/* item 49 */
static void
attributes(void **state)
{
	struct rq *r = rq_with(put_dc(), "Content-Type", "text/plain; charset=utf-8", "content-encoding",
			       "gzip", "Content-Language", "de", "Content-Disposition",
			       "attachment; filename=\"x\"", "Cache-Control", "no-cache", "Expires",
			       D_EXPIRES, "X-Amz-Meta-Owner", " Jo\tAnn ", "x-amz-meta-empty", "",
			       "x-amz-meta-utf8", "\xc3\xa9", "accept", "*/*", "x-amz-acl", "private", NULL);

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_string_equal(attrs_of(r), "content-type=text/plain; charset=utf-8\n"
					 "content-encoding=gzip\n"
					 "content-language=de\n"
					 "content-disposition=attachment; filename=\"x\"\n"
					 "cache-control=no-cache\n"
					 "expires=" D_EXPIRES "\n"
					 "x-amz-meta-owner=Jo\tAnn\n"
					 "x-amz-meta-empty=\n"
					 "x-amz-meta-utf8=\xc3\xa9\n");
	/* Repeated metadata is joined, repeated content headers are refused. */
	r = rq_with(put_body(), "x-amz-meta-a", "1", "x-amz-meta-b", "2", "X-Amz-Meta-A", "3", "content-type",
		    "", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_string_equal(attrs_of(r), "x-amz-meta-a=1,3\nx-amz-meta-b=2\n");
	assert_fault(rq_parse(rq_with(put_body(), "content-type", "a/b", "Content-Type", "c/d", NULL)),
		     FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-meta-", "1", NULL)), FAULT_BAD_REQUEST);
	/* Scality has content headers and no metadata. */
	r = rq_with(scality("PUT", "/k"), "content-length", "1", "content-type", "a/b", "x-amz-meta-a", "1",
		    NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_string_equal(attrs_of(r), "content-type=a/b\n");
	/* Only a PUT brings any. */
	r = rq_with(s3("GET", "/bkt/obj"), "content-type", "a/b", "x-amz-meta-a", "1", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.attrs_len, 0);
}

/* Moved into a URL that is signed, as SDKs for JavaScript do. */
static void
attributes_in_the_query(void **state)
{
	static const struct {
		const char *method, *target;
		enum fault fault;
	} bad[] = {
		{ "PUT", "/bkt/obj?x-amz-meta-=1", FAULT_BAD_REQUEST },
		{ "PUT", "/bkt/obj?x-amz-meta-a=%0d%0ab", FAULT_BAD_ARGUMENT },
		{ "PUT", "/bkt/obj?x-amz-meta-a=%zz", FAULT_BAD_URI },
		{ "PUT", "/bkt/obj?x-amz-meta-a%20b=c", FAULT_BAD_ARGUMENT },
		/* A signature sorts them: whoever carries the URL could choose which comes first. */
		{ "PUT", "/bkt/obj?x-amz-meta-a=1&x-amz-meta-a=2", FAULT_BAD_ARGUMENT },
		{ "PUT", "/bkt/obj?x-amz-meta-a=1&x-amz-meta-A=2", FAULT_BAD_ARGUMENT },
		{ "PUT", "/bkt/obj?x-amz-meta-a=1&x-amz-meta-%61=2", FAULT_BAD_ARGUMENT },
		{ "PUT", "/bkt/obj?x-amz-tagging=a%3D1&x-amz-tagging=b%3D2", FAULT_BAD_ARGUMENT },
		{ "PUT", "/bkt/obj?x-amz-storage-class=COLD", FAULT_INVALID_STORAGE_CLASS },
		/* item 102; 4.5: a descriptor comes in a header, or not at all */
		{ "PUT", "/bkt/obj?x-amz-meta-rdma-token=0", FAULT_NOT_IMPLEMENTED },
		{ "PUT", "/bkt/obj?x-amz-meta-rdma%2dtoken=0", FAULT_NOT_IMPLEMENTED },
		{ "PUT", "/bkt/obj?x-amz-rdma-token=0", FAULT_NOT_IMPLEMENTED },
		{ "PUT", "/bkt/obj?partNumber=1&uploadId=x&x-amz-meta-a=b", FAULT_NO_SUCH_UPLOAD },
		{ "GET", "/bkt/obj?x-amz-meta-a=b", FAULT_NONE },
		{ "PUT", "/bkt/obj?x-amz-server-side-encryption=AES256", FAULT_NOT_IMPLEMENTED },
	};
	struct rq *r =
		rq_with(s3("PUT", "/bkt/obj?X-Amz-Signature=0&X-Amz-Meta-Owner=Jo%20A+n%2B&x-amz-meta-e="
				  "&x-amz%2dmeta-b%7C=%c3%a9&x-amz-tagging=a%3D1%26b%3D2"
				  "&x-amz-storage-class=STANDARD_IA"),
			"content-length", "1", "x-amz-meta-owner", "first", NULL);
	static char target[DIALECT_META_MAX + 64];

	assert_fault(rq_parse(r), FAULT_NONE);
	/* In the order of their encoded names: that of the URL says nothing. */
	assert_string_equal(attrs_of(r), "x-amz-meta-owner=first,Jo A n+\n"
					 "x-amz-meta-b|=\xc3\xa9\n"
					 "x-amz-meta-e=\n"
					 "x-amz-storage-class=STANDARD_IA\n"
					 "x-amz-tagging=a=1&b=2\n");
	assert_int_equal(r->t.tag_nr, 2);
	r = s3("POST", "/bkt/obj?uploads&x-amz-meta-a=b");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_string_equal(attrs_of(r), "x-amz-meta-a=b\n");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		r = s3(bad[i].method, bad[i].target);
		if (strcmp(bad[i].method, "PUT") == 0)
			rq_field(r, "content-length", "1");
		assert_fault(rq_parse(r), bad[i].fault);
	}
	/* The same limit. */
	for (int more = 0; more < 2; more++) {
		int n = snprintf(target, sizeof target, "/bkt/obj?x-amz-meta-a=");

		memset(target + n, 'v', DIALECT_META_MAX - 1 + (size_t)more);
		target[n + DIALECT_META_MAX - 1 + more] = 0;
		r = rq_with(s3("PUT", target), "content-length", "1", NULL);
		assert_fault(rq_parse(r), more ? FAULT_META_TOO_LARGE : FAULT_NONE);
	}
	/* And no more fields than headers may be. */
	r = s3("PUT", "/bkt/obj?x-amz-meta-a=b");
	for (int i = 0; i < DIALECT_FIELDS_MAX - 1; i++)
		rq_field(r, "x-other", "1");
	rq_field(r, "content-length", "1");
	assert_fault(rq_parse(r), FAULT_HEADERS_TOO_LARGE);
}

static void
metadata_limit(void **state)
{
	static char value[DIALECT_META_MAX + 2];
	struct rq *r;

	/* "k" and its value. */
	memset(value, 'v', sizeof value);
	value[DIALECT_META_MAX - 1] = 0;
	r = rq_with(put_dc(), "x-amz-meta-k", value, NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_fault(rq_parse(rq_with(put_dc(), "x-amz-meta-k", value, "x-amz-meta-l", "", NULL)),
		     FAULT_META_TOO_LARGE);
	assert_fault(rq_parse(rq_with(put_dc(), "x-amz-meta-k", value, "x-amz-meta-k", "", NULL)),
		     FAULT_META_TOO_LARGE);
	value[DIALECT_META_MAX - 1] = 'v';
	value[DIALECT_META_MAX] = 0;
	assert_fault(rq_parse(rq_with(put_dc(), "x-amz-meta-k", value, NULL)), FAULT_META_TOO_LARGE);

	static char name[DIALECT_META_MAX + 20] = "x-amz-meta-";

	memset(name + 11, 'n', DIALECT_META_MAX);
	assert_fault(rq_parse(rq_with(put_dc(), name, "", NULL)), FAULT_NONE);
	assert_fault(rq_parse(rq_with(put_dc(), name, "1", NULL)), FAULT_META_TOO_LARGE);
}

static void
content_headers_limit(void **state)
{
	static char value[DIALECT_ATTRS_MAX];
	struct rq *r;

	memset(value, 'v', sizeof value - 1);
	value[sizeof value - 600] = 0;
	r = rq_with(put_dc(), "content-type", value, NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	/* There is room for checksums behind whatever came. */
	for (int k = 0; k < 6; k++)
		assert_int_equal(dialect_attrs_add(r->t.attrs, &r->t.attrs_len, DIALECT_ATTRS_MAX,
						   "x-amz-checksum-crc64nvme", 24,
						   "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", 44),
				 0);
	value[sizeof value - 600] = 'v';
	assert_fault(rq_parse(rq_with(put_dc(), "content-type", value, NULL)), FAULT_META_TOO_LARGE);
}

static void
attrs_codec(void **state)
{
	unsigned char a[32];
	uint32_t len = 0;

	assert_int_equal(dialect_attrs_add(a, &len, sizeof a, "Name", 4, "Value", 5), 0);
	assert_int_equal(len, 13);
	assert_int_equal(dialect_attrs_add(a, &len, 32, "0123456789", 10, "01234", 5), 0);
	assert_int_equal(len, 32);
	assert_int_equal(dialect_attrs_add(a, &len, 32, "", 0, "", 0), -ENOSPC);
	listed[0] = 0;
	assert_int_equal(dialect_attrs_each(a, len, list, NULL), 0);
	assert_string_equal(listed, "name=Value\n0123456789=01234\n");
	assert_int_equal(dialect_attrs_each(a, 0, list, NULL), 0);
}

/* Bytes that we did not write: cut, with lengths beyond the end, with what would split a response header. */
static void
attrs_damaged(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{ "\1", 1 },
		{ "\1\0\0", 3 },
		{ "\1\0\0\0", 4 },
		{ "\1\0\1\0n", 5 },
		{ "\0\0\1\0v", 5 },
		{ "\xff\xff\xff\xffnv", 6 },
		{ "\1\0\1\0n\nx", 6 },
		{ "\1\0\1\0\nv", 6 },
		{ "\1\0\1\0Nv", 6 },
		{ "\1\0\1\0:v", 6 },
		{ "\1\0\1\0 v", 6 },
		{ "\1\0\1\0\x80v", 6 },
		{ "\1\0\1\0n\x7f", 6 },
		{ "\1\0\1\0n\0", 6 },
		{ "\1\0\1\0nv\0", 7 },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		unsigned char *copy = malloc(bad[i].len);

		memcpy(copy, bad[i].bytes, bad[i].len);
		listed[0] = 0;
		if (dialect_attrs_each(copy, bad[i].len, list, NULL) != -EINVAL)
			fail_msg("case %zu", i);
		free(copy);
	}
}

/* As it was sent, but for what says how the body travelled. */
static void
content_encoding(void **state)
{
	static const struct {
		const char *sent, *kept;
	} rows[] = {
		{ "gzip", "gzip" },
		{ " deflate, gzip ", "deflate, gzip" },
		{ "deflate,gzip", "deflate,gzip" },
		{ "deflate , gzip", "deflate , gzip" },
		{ "aws-chunked", NULL },
		{ "AWS-Chunked, gzip", "gzip" },
		{ "gzip, aws-chunked", "gzip" },
		{ "deflate, aws-chunked, gzip", "deflate, gzip" },
		{ "aws-chunked,aws-chunked", NULL },
		{ " , ", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rq *r = rq_with(s3("PUT", "/bkt/obj"), "content-length", "100", "content-encoding",
				       rows[i].sent, NULL);
		const char *v;
		size_t len;

		assert_fault(rq_parse(r), FAULT_NONE);
		v = dialect_attr(r->t.attrs, r->t.attrs_len, "content-encoding", &len);
		if (!v != !rows[i].kept ||
		    (v && (len != strlen(rows[i].kept) || memcmp(v, rows[i].kept, len) != 0)))
			fail_msg("\"%s\": \"%.*s\"", rows[i].sent, (int)len, v ? v : "");
	}
}

/* x-gantry-ttl: its bounds, once, and on the operations that write an object. */
static void
ttl(void **state)
{
	static const char *const bad[] = { "0",   "",    "-1",  "+5",        "abc",
					   "1.5", "5 5", "5,5", "315360001", "18446744073709551617" };
	static const struct {
		const char *text;
		uint32_t s;
	} good[] = { { "1", 1 }, { " 5 ", 5 }, { "0005", 5 }, { "315360000", 315360000 } };
	struct rq *r;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		for (int window = 0; window < 2; window++) {
			r = rq_with(window ? put_dc() : put_body(), "x-gantry-ttl", good[i].text, NULL);
			assert_fault(rq_parse(r), FAULT_NONE);
			assert_int_equal(r->t.ttl_s, good[i].s);
		}
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		r = rq_with(put_body(), "x-gantry-ttl", bad[i], NULL);
		assert_fault(rq_parse(r), FAULT_BAD_ARGUMENT);
		assert_non_null(strstr(r->why, "x-gantry-ttl"));
	}
	r = rq_with(put_body(), "x-gantry-ttl", "5", "X-Gantry-TTL", "5", NULL);
	assert_fault(rq_parse(r), FAULT_BAD_ARGUMENT);
	r = put_body();
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.ttl_s, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_encoding),
		cmocka_unit_test(values),
		cmocka_unit_test(bad_values),
		cmocka_unit_test(ttl),
		cmocka_unit_test(sums_of_empty),
		cmocka_unit_test(algorithms),
		cmocka_unit_test(payload_hash),
		cmocka_unit_test(attributes),
		cmocka_unit_test(attributes_in_the_query),
		cmocka_unit_test(metadata_limit),
		cmocka_unit_test(content_headers_limit),
		cmocka_unit_test(attrs_codec),
		cmocka_unit_test(attrs_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
