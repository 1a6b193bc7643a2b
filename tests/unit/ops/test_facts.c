/* SPDX-License-Identifier: Apache-2.0 */
/* What S3 clients rely on beyond the reference (docs/s3.md): which checksum answers carry, what they echo,
 * what is taken. */
#include "tests/unit/ops/surface.h"

#include "base/hex.h"

/* A request with up to three fields and a body (NULL: none), up to its reply. */
static int
ask(struct xchg *x, const char *method, const char *target, const char *const fields[][2], const char *body)
{
	x_init(x, 0, method, target);
	for (int i = 0; fields && i < 3 && fields[i][0]; i++)
		x_field(x, fields[i][0], "%s", fields[i][1]);
	if (!body)
		return x_run(x);
	x_field(x, "content-length", "%zu", strlen(body));
	return with_body(x, body, strlen(body), 1 + draw(100));
}

/* How many header fields of the reply begin so. */
struct counting {
	const char *prefix;
	int nr;
};

static void
count_header(void *cookie, const char *name, const char *value)
{
	struct counting *c = cookie;

	c->nr += strncmp(name, c->prefix, strlen(c->prefix)) == 0;
}

static int
headers_that_begin(struct xchg *x, const char *prefix)
{
	struct counting c = { prefix, 0 };

	req_reply_headers(x->rq, count_header, &c);
	return c.nr;
}

static const char *const mode[3][2] = { { "x-amz-checksum-mode", "ENABLED" } };

/* ---- checksums of answers ---- */

/* The one that the object was stored with, or CRC64NVME; never two. */
static void
test_one_checksum(void **state)
{
	static const char *const crc32[3][2] = { { "x-amz-checksum-crc32", "y/Q5Jg==" } };
	static const struct {
		const char *const (*fields)[2];
		const char *name, *value;
	} cases[] = { { NULL, "x-amz-checksum-crc64nvme", "rosUhgp5mIg=" },
		      { crc32, "x-amz-checksum-crc32", "y/Q5Jg==" } };
	static const char *const methods[] = { "GET", "HEAD" };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xchg x;

		assert_int_equal(ask(&x, "PUT", "/bkt/o", cases[i].fields, "123456789"), 200);
		x_end(&x);
		for (int m = 0; m < 2; m++) {
			assert_int_equal(ask(&x, methods[m], "/bkt/o", mode, NULL), 200);
			assert_header(&x, cases[i].name, cases[i].value);
			assert_header(&x, "x-amz-checksum-type", "FULL_OBJECT");
			assert_int_equal(headers_that_begin(&x, "x-amz-checksum-"), 2);
			x_end(&x);
		}
	}
}

/* A 304 carries neither the checksum nor anything else of the bytes that do not come; 412 and 416 none
 * either. */
static void
test_no_checksum_of_nothing(void **state)
{
	static const char *const put[3][2] = { { "x-amz-checksum-crc32", "y/Q5Jg==" },
					       { "cache-control", "max-age=7" },
					       { "content-type", "a/b" } };
	static const struct {
		const char *name, *value;
		int status;
	} cases[] = { { "if-none-match", "*", 304 },
		      { "if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT", 304 },
		      { "if-match", "\"x\"", 412 },
		      { "range", "bytes=9-", 416 } };
	static const char *const methods[] = { "GET", "HEAD" };
	struct xchg x;

	assert_int_equal(ask(&x, "PUT", "/bkt/o", put, "123456789"), 200);
	x_end(&x);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *const fields[3][2] = { { "x-amz-checksum-mode", "ENABLED" },
						   { cases[i].name, cases[i].value } };

		for (int m = 0; m < 2; m++) {
			/* A HEAD has no range. */
			if (m && cases[i].status == 416)
				continue;
			assert_int_equal(ask(&x, methods[m], "/bkt/o", fields, NULL), cases[i].status);
			assert_int_equal(headers_that_begin(&x, "x-amz-checksum-"), 0);
			if (cases[i].status == 304) {
				assert_non_null(x_header(&x, "etag"));
				assert_header(&x, "cache-control", "max-age=7");
				assert_int_equal(headers_that_begin(&x, "content-"), 0);
				assert_no_header(&x, "accept-ranges");
			}
			x_end(&x);
		}
	}
}

/* ... and the reply of the PUT says the type, where it says a checksum. */
static void
test_put_type(void **state)
{
	static const char *const crc32[3][2] = { { "x-amz-checksum-crc32", "y/Q5Jg==" } };
	struct xchg x;

	assert_int_equal(ask(&x, "PUT", "/bkt/o", crc32, "123456789"), 200);
	assert_header(&x, "x-amz-checksum-type", "FULL_OBJECT");
	x_end(&x);
	assert_int_equal(ask(&x, "PUT", "/bkt/o", NULL, "123456789"), 200);
	assert_no_header(&x, "x-amz-checksum-type");
	x_end(&x);
}

/* Completes an upload of one small part, declared so (NULL: not at all); its ETag's text is `etag`. */
static void
one_part(const char *algorithm, const char *type, const char *etag, char id[64], char *out, size_t cap)
{
	const char *const create[3][2] = { { "x-amz-checksum-algorithm", algorithm },
					   { type ? "x-amz-checksum-type" : NULL, type } };
	char target[256], body[512];
	struct xchg x;

	assert_int_equal(ask(&x, "POST", "/bkt/m?uploads", algorithm ? create : NULL, ""), 200);
	field_of(req_reply(x.rq)->text, "UploadId", id, 64);
	x_end(&x);
	snprintf(target, sizeof target, "/bkt/m?uploadId=%s&partNumber=7", id);
	assert_int_equal(ask(&x, "PUT", target, NULL, "123456789"), 200);
	assert_no_header(&x, "x-amz-checksum-type");
	x_end(&x);
	snprintf(target, sizeof target, "/bkt/m?uploadId=%s", id);
	snprintf(body, sizeof body,
		 "<CompleteMultipartUpload><Part><PartNumber>7</PartNumber><ETag>%s</ETag></Part>"
		 "</CompleteMultipartUpload>",
		 etag);
	assert_int_equal(text_request("POST", target, body, out, cap), 200);
}

#define MD5_9 "25f9e794323b453885f5181f1b624d0b"

/* GET and HEAD of a part: its checksum, and the type of the object's. */
static void
test_part_checksum(void **state)
{
	static const struct {
		const char *algorithm, *type, *name, *value, *of_type;
	} cases[] = {
		{ "CRC32", NULL, "x-amz-checksum-crc32", "y/Q5Jg==", "COMPOSITE" },
		{ "CRC32", "FULL_OBJECT", "x-amz-checksum-crc32", "y/Q5Jg==", "FULL_OBJECT" },
		{ "SHA1", NULL, "x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE=", "COMPOSITE" },
		{ "CRC64NVME", NULL, "x-amz-checksum-crc64nvme", "rosUhgp5mIg=", "FULL_OBJECT" },
		{ NULL, NULL, "x-amz-checksum-crc64nvme", "rosUhgp5mIg=", "FULL_OBJECT" },
	};
	static const char *const methods[] = { "GET", "HEAD" };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char id[64], out[2048];
		struct xchg x;

		one_part(cases[i].algorithm, cases[i].type, MD5_9, id, out, sizeof out);
		for (int m = 0; m < 2; m++) {
			assert_int_equal(ask(&x, methods[m], "/bkt/m?partNumber=1", mode, NULL), 206);
			assert_header(&x, cases[i].name, cases[i].value);
			assert_header(&x, "x-amz-checksum-type", cases[i].of_type);
			assert_int_equal(headers_that_begin(&x, "x-amz-checksum-"), 2);
			x_end(&x);
		}
		assert_int_equal(ask(&x, "GET", "/bkt/m?partNumber=1", NULL, NULL), 206);
		assert_int_equal(headers_that_begin(&x, "x-amz-checksum-"), 0);
		x_end(&x);
	}
}

/* A completion that is sent again is answered as the first was. */
static void
test_complete_again(void **state)
{
	static const char *const algorithms[] = { "SHA256", "CRC32", "CRC64NVME", NULL };

	for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
		char id[64], first[2048], again[2048], target[256];
		static const char body[] =
			"<CompleteMultipartUpload><Part><PartNumber>7</PartNumber><ETag>" MD5_9
			"</ETag></Part></CompleteMultipartUpload>";

		one_part(algorithms[i], NULL, MD5_9, id, first, sizeof first);
		snprintf(target, sizeof target, "/bkt/m?uploadId=%s", id);
		assert_int_equal(text_request("POST", target, body, again, sizeof again), 200);
		assert_string_equal(again, first);
		/* The object was replaced: what it was is not known any more. */
		put_object("m", 100, 1);
		assert_int_equal(text_request("POST", target, body, again, sizeof again), 404);
	}
}

/* Sends a completion again while the first is in progress, a few turns later each time: both are answered the same. */
static void
test_complete_together(void **state)
{
	static const char create[] = "/bkt/m?uploads",
			  body[] = "<CompleteMultipartUpload><Part><PartNumber>7</PartNumber><ETag>" MD5_9
				   "</ETag></Part></CompleteMultipartUpload>";

	for (int turns = 0; turns < 40; turns++) {
		char id[64], out[2048], target[256];
		struct xchg x, first, again;

		assert_int_equal(text_request("POST", create, "", out, sizeof out), 200);
		field_of(out, "UploadId", id, sizeof id);
		snprintf(target, sizeof target, "/bkt/m?uploadId=%s&partNumber=7", id);
		assert_int_equal(ask(&x, "PUT", target, NULL, "123456789"), 200);
		x_end(&x);
		snprintf(target, sizeof target, "/bkt/m?uploadId=%s", id);
		begin_body(&first, "POST", target, strlen(body));
		begin_body(&again, "POST", target, strlen(body));
		x_begin(&first);
		feed(&first, body, strlen(body), sizeof body);
		for (int i = 0; i < turns % 20; i++)
			rig_turn();
		x_begin(&again);
		feed(&again, body, strlen(body), sizeof body);
		rig_until(req_is_ready(first.rq) && req_is_ready(again.rq));
		assert_int_equal(req_reply(first.rq)->status, 200);
		assert_int_equal(req_reply(again.rq)->status, 200);
		x_end(&first);
		x_end(&again);
	}
}

/* ---- conditions ---- */

/* DELETE of what is not there is 204, with a condition too; what is there must meet it. */
static void
test_delete_if(void **state)
{
	static const char *const values[] = { "*", "\"" MD5_9 "\"", "\"x\"" };

	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		const char *const fields[3][2] = { { "if-match", values[i] } };
		struct xchg x;

		assert_int_equal(ask(&x, "DELETE", "/bkt/absent", fields, NULL), 204);
		x_end(&x);
		assert_int_equal(ask(&x, "DELETE", "/nobucket/absent", fields, NULL), 404);
		x_end(&x);
		assert_int_equal(ask(&x, "PUT", "/bkt/o", NULL, "123456789"), 200);
		x_end(&x);
		assert_int_equal(ask(&x, "DELETE", "/bkt/o", fields, NULL), i < 2 ? 204 : 412);
		x_end(&x);
	}
}

/* If-None-Match with ETags on a write: 412 when one matches, else it is written. */
static void
test_put_unless(void **state)
{
	static const char other[] = "\"00000000000000000000000000000000\"", own[] = "\"" MD5_9 "\"";
	static const struct {
		const char *none, *match;
		int present, absent;
	} cases[] = {
		{ own, NULL, 412, 200 },
		{ other, NULL, 200, 200 },
		{ "\"x\"", NULL, 200, 200 },
		{ "\"00000000000000000000000000000000\", \"" MD5_9 "\"", NULL, 412, 200 },
		{ "*", NULL, 412, 200 },
		{ other, own, 200, 404 },
		{ own, own, 412, 404 },
		{ own, other, 412, 404 },
		{ "*", own, 412, 404 },
		{ own, "*", 501, 501 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *const fields[3][2] = { { "if-none-match", cases[i].none },
						   { cases[i].match ? "if-match" : NULL, cases[i].match } };
		const char *const copy[3][2] = { { "x-amz-copy-source", "bkt/source" },
						 { "if-none-match", cases[i].none },
						 { cases[i].match ? "if-match" : NULL, cases[i].match } };
		struct xchg x;

		put_object("source", 100, 1);
		for (int there = 0; there < 2; there++) {
			int want = there ? cases[i].present : cases[i].absent;

			for (int way = 0; way < 2; way++) {
				ask(&x, "DELETE", "/bkt/o", NULL, NULL);
				x_end(&x);
				if (there) {
					assert_int_equal(ask(&x, "PUT", "/bkt/o", NULL, "123456789"), 200);
					x_end(&x);
				}
				if ((way ? ask(&x, "PUT", "/bkt/o", copy, NULL)
					 : ask(&x, "PUT", "/bkt/o", fields, "new")) != want)
					fail_msg("%zu, there %d, way %d: %d", i, there, way,
						 req_reply(x.rq)->status);
				x_end(&x);
			}
		}
	}
}

/* ---- DeleteObjects ---- */

/* It is refused without a checksum of its body, as on S3; one that is only named, or signed, does not do. */
static void
test_delete_sums(void **state)
{
	static const char body[] = "<Delete><Object><Key>a</Key></Object></Delete>";
	static const struct {
		const char *name, *value;
		int status;
	} cases[] = {
		{ NULL, NULL, 400 },
		{ "x-amz-sdk-checksum-algorithm", "CRC32", 400 },
		{ "x-amz-checksum-algorithm", "SHA256", 400 },
		{ "x-amz-content-sha256", "%SHA256%", 400 },
		{ "content-md5", "%MD5%", 200 },
		{ "x-amz-checksum-sha256", "%BASE64%", 200 },
	};
	uint8_t hash[32];
	struct digest d = { 0 };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[80] = "";
		struct xchg x;

		put_object("a", 100, 1);
		begin_body(&x, "POST", "/bkt?delete", sizeof body - 1);
		digest_begin(&d, DIGEST_BIT(DIGEST_SHA256));
		digest_update(&d, body, sizeof body - 1);
		digest_value(&d, DIGEST_SHA256, hash);
		if (cases[i].name && strcmp(cases[i].value, "%MD5%") == 0) {
			x_md5(&x, body);
		} else if (cases[i].name) {
			snprintf(text, sizeof text, "%s", cases[i].value);
			if (strcmp(text, "%SHA256%") == 0)
				hex_write(text, hash, 32);
			else if (strcmp(text, "%BASE64%") == 0)
				base64_encode(hash, 32, text);
			x_field(&x, cases[i].name, "%.64s", text);
		}
		if (with_body(&x, body, sizeof body - 1, 10) != cases[i].status)
			fail_msg("%zu: %d", i, req_reply(x.rq)->status);
		if (cases[i].status == 400)
			assert_non_null(strstr(req_reply(x.rq)->text, "InvalidRequest"));
		x_end(&x);
		assert_int_equal(ask(&x, "HEAD", "/bkt/a", NULL, NULL), cases[i].status == 400 ? 200 : 404);
		x_end(&x);
	}
	digest_fini(&d);
}

/* ---- encryption ---- */

#define SSE "x-amz-server-side-encryption"

static int
sse(const char *method, const char *target, const char *value, const char *body, const char *said)
{
	const char *const fields[3][2] = { { value ? SSE : NULL, value } };
	struct xchg x;
	int status = ask(&x, method, target, fields, body);
	const char *v = x_header(&x, SSE);

	if (!v != !said || (v && strcmp(v, said) != 0))
		fail_msg("%s %s: %d, %s", method, target, status, v ? v : "nothing is said");
	x_end(&x);
	return status;
}

/* AES256 is taken where the operator says that the disks do it, and then every reply about an object says
 * so; nothing else is, anywhere. */
static void
test_encryption(void **state)
{
	static const char
		aes[] = "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>"
			"<SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule>"
			"</ServerSideEncryptionConfiguration>",
		kms[] = "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>"
			"<SSEAlgorithm>aws:kms</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule>"
			"</ServerSideEncryptionConfiguration>";
	static const char *const copy[3][2] = { { "x-amz-copy-source", "bkt/o" } };
	static const char *const customer[3][2] = { { SSE "-customer-algorithm", "AES256" } };
	struct xchg x;
	char id[64], out[2048];

	for (int below = 0; below < 2; below++) {
		const char *said = below ? "AES256" : NULL;

		rig.conf->s3.encrypted_below = below;
		assert_int_equal(sse("PUT", "/bkt/o", "AES256", "123456789", said), below ? 200 : 501);
		assert_int_equal(sse("PUT", "/bkt/o", "aws:kms", "123456789", NULL), 501);
		assert_int_equal(sse("PUT", "/bkt/o", "aes256", "123456789", NULL), 501);
		assert_int_equal(ask(&x, "PUT", "/bkt/o", customer, "123456789"), 501);
		x_end(&x);
		assert_int_equal(sse("PUT", "/bkt/o", NULL, "123456789", said), 200);
		assert_int_equal(sse("GET", "/bkt/o", NULL, NULL, said), 200);
		assert_int_equal(sse("HEAD", "/bkt/o", NULL, NULL, said), 200);
		assert_int_equal(sse("GET", "/bkt/none", NULL, NULL, NULL), 404);
		assert_int_equal(sse("DELETE", "/bkt/none", NULL, NULL, NULL), 204);
		assert_int_equal(sse("GET", "/bkt", NULL, NULL, NULL), 200);
		assert_int_equal(sse("POST", "/bkt/m?uploads", below ? "AES256" : NULL, "", said), 200);
		assert_int_equal(ask(&x, "PUT", "/bkt/c", copy, NULL), 200);
		assert_int_equal(!x_header(&x, SSE), !below);
		x_end(&x);
		one_part(NULL, NULL, MD5_9, id, out, sizeof out);
		assert_int_equal(sse("GET", "/bkt/m", NULL, NULL, said), 200);
		assert_int_equal(text_request("GET", "/bkt?encryption", "", out, sizeof out),
				 below ? 200 : 404);
		assert_int_equal(!strstr(out, "<SSEAlgorithm>AES256<"), !below);
		assert_int_equal(text_request("PUT", "/bkt?encryption", aes, out, sizeof out),
				 below ? 200 : 501);
		assert_int_equal(text_request("PUT", "/bkt?encryption", kms, out, sizeof out), 501);
		assert_int_equal(sse("DELETE", "/bkt?encryption", NULL, NULL, NULL), 204);
	}
	rig.conf->s3.encrypted_below = false;
}

/* ---- browsers ---- */

/* claim TM68: what an unsigned link may not say of somebody's bytes; and bytes of which nobody says what
 * they are. */
static void
test_browsers(void **state)
{
	static const struct {
		const char *type;
		bool sniffed;
	} cases[] = { { NULL, true },
		      { "text/html", false },
		      { "application/octet-stream", false },
		      { "nonsense", true },
		      { "unknown/unknown", true },
		      { "Application/Unknown; a=b", true },
		      { "*/*", true },
		      { "text/plain; charset=utf-8", false } };
	static const char *const methods[] = { "GET", "HEAD" };
	struct xchg x;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *const fields[3][2] = { { cases[i].type ? "content-type" : NULL, cases[i].type } };

		assert_int_equal(ask(&x, "PUT", "/bkt/o", fields, "<script>"), 200);
		x_end(&x);
		for (int m = 0; m < 2; m++) {
			const char *v;

			assert_int_equal(ask(&x, methods[m], "/bkt/o", NULL, NULL), 200);
			v = x_header(&x, "x-content-type-options");
			if (!v != !cases[i].sniffed || (v && strcmp(v, "nosniff") != 0))
				fail_msg("%s: %s", cases[i].type ? cases[i].type : "no type",
					 v ? v : "nothing");
			x_end(&x);
			assert_int_equal(
				ask(&x, methods[m], "/bkt/o?response-content-type=text%2Fhtml", NULL, NULL),
				400);
			if (m == 0)
				assert_non_null(strstr(req_reply(x.rq)->text, "InvalidRequest"));
			x_end(&x);
		}
	}
	/* None on what has no body that a browser could see. */
	x_init(&x, 0, "GET", "/bkt/o");
	x_token(&x, "x-amz-rdma-token", 0, 4096);
	assert_int_equal(x_run(&x), 200);
	assert_no_header(&x, "x-content-type-options");
	x_end(&x);
}

/* ---- buckets ---- */

/* One's own bucket is made once more in us-east-1, which "any" is, and nowhere else. */
static void
test_bucket_again(void **state)
{
	static const struct {
		const char *region;
		int status;
	} cases[] = { { "us-east-1", 200 }, { CONF_ANY_REGION, 200 }, { "eu-west-1", 409 } };
	char *region = rig.conf->auth.region;
	struct xchg x;

	put_object("o", 100, 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		rig.conf->auth.region = (char *)(uintptr_t)cases[i].region;
		assert_int_equal(ask(&x, "PUT", "/bkt", NULL, ""), cases[i].status);
		if (cases[i].status == 409)
			assert_non_null(strstr(req_reply(x.rq)->text, "BucketAlreadyOwnedByYou"));
		x_end(&x);
		assert_int_equal(ask(&x, "HEAD", "/bkt/o", NULL, NULL), 200);
		x_end(&x);
	}
	rig.conf->auth.region = region;
}

/* The number of copies: what is asked for is answered, and said of a bucket that is there; this store has one disk. */
static void
test_bucket_copies(void **state)
{
	static const struct {
		const char *value, *code;
		int status;
	} cases[] = { { "1", NULL, 200 },
		      { "2", "InvalidArgument", 400 },
		      { "3", "InvalidArgument", 400 },
		      { "0", "InvalidArgument", 400 },
		      { "", "InvalidArgument", 400 },
		      { "12", "InvalidArgument", 400 },
		      { "-1", "InvalidArgument", 400 } };
	static const char *const one[][2] = { { "x-gantry-copies", "1" }, { NULL } };
	char *region = rig.conf->auth.region;
	struct xchg x;

	put_object("o", 100, 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int is_new = 0; is_new < 2; is_new++) {
			const char *const fields[][2] = { { "x-gantry-copies", cases[i].value }, { NULL } };

			assert_int_equal(ask(&x, "PUT", is_new ? "/new" : "/bkt", fields, ""),
					 cases[i].status);
			if (cases[i].code) {
				assert_non_null(strstr(req_reply(x.rq)->text, cases[i].code));
				assert_no_header(&x, "x-gantry-copies");
			} else {
				assert_header(&x, "x-gantry-copies", "1");
			}
			x_end(&x);
		}
	}
	assert_int_equal(ask(&x, "HEAD", "/new", NULL, NULL), 200);
	assert_header(&x, "x-gantry-copies", "1");
	x_end(&x);
	assert_int_equal(ask(&x, "PUT", "/bkt", NULL, ""), 200);
	assert_no_header(&x, "x-gantry-copies");
	x_end(&x);
	/* also where a bucket is not made once more */
	rig.conf->auth.region = (char *)(uintptr_t) "eu-west-1";
	assert_int_equal(ask(&x, "PUT", "/bkt", one, ""), 409);
	assert_header(&x, "x-gantry-copies", "1");
	x_end(&x);
	rig.conf->auth.region = region;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_checksum, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_no_checksum_of_nothing, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_put_type, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_part_checksum, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_complete_again, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_complete_together, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_delete_if, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_put_unless, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_delete_sums, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_encryption, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_browsers, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_bucket_again, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_bucket_copies, s3_start, s3_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
