/* SPDX-License-Identifier: Apache-2.0 */
/* The door, the descriptor headers, and what an operation may carry:
 * parse.c, fields.c, headers.c, refused.c. */
#include "build.h"

#include <stdio.h>

static void
host(void **state)
{
	assert_fault(rq_parse(rq_bare(DIALECT_S3, "GET", "/bkt/obj")), FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(s3("GET", "/bkt/obj"), "host", "other", NULL)), FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_bare(DIALECT_SCALITY, "GET", "/key")), FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(rq_bare(DIALECT_S3, "GET", "/bkt/obj"), "hOsT", "h", NULL)),
		     FAULT_NONE);
}

/* x-gantry-copies of a new bucket, and of nothing else. */
static void
copies(void **state)
{
	static const char *const bad[] = { "", "0", "3", "-1", "01", "2,2", "1, 2", "two", "2.0", "12" };
	struct rq *r;

	for (int n = 1; n <= 2; n++) {
		r = rq_with(s3("PUT", "/bkt"), "X-Gantry-Copies", n == 1 ? "1" : "2", NULL);
		assert_fault(rq_parse(r), FAULT_NONE);
		assert_int_equal(r->t.copies, n);
	}
	r = s3("PUT", "/bkt");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.copies, 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_fault(rq_parse(rq_with(s3("PUT", "/bkt"), "x-gantry-copies", bad[i], NULL)),
			     FAULT_BAD_ARGUMENT);
	assert_fault(
		rq_parse(rq_with(s3("PUT", "/bkt"), "x-gantry-copies", "2", "x-gantry-copies", "2", NULL)),
		FAULT_BAD_REQUEST);
	r = rq_with(s3("GET", "/bkt"), "x-gantry-copies", "7", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.copies, 0);
}

/* Values are read by eights: a control character is found at each place, and nothing else is one. */
static void
texts(void **state)
{
	char text[40];

	for (size_t len = 1; len < 20; len++) {
		for (size_t at = 0; at < len; at++) {
			for (int c = 0; c < 256; c++) {
				bool good = (c >= 0x20 || c == '\t') && c != 0x7f;

				memset(text, c % 2 ? 0xff : '\t', sizeof text);
				memset(text + 3, '~', len);
				text[3 + at] = (char)c;
				if (dialect_is_text(text + 3, len) != good)
					fail_msg("%zu bytes, 0x%02x at %zu", len, (unsigned)c, at);
				/* Bytes before and after are none of its business. */
				memset(text, 0x01, 3);
				memset(text + 3 + len, 0x7f, sizeof text - 3 - len);
				assert_int_equal(dialect_is_text(text + 3, len), good);
			}
		}
	}
	assert_true(dialect_is_text("", 0));
}

static void
framing(void **state)
{
	static const char *const bad[] = { "",
					   " ",
					   "-1",
					   "+1",
					   "0x10",
					   "1 2",
					   "1,1",
					   "5, 5",
					   "1.0",
					   "18446744073709551616",
					   "99999999999999999999999",
					   "1e3",
					   "\xd9\xa1" };
	static const char *const codings[] = { "gzip",        "gzip, chunked", "chunked, chunked",
					       "chunked;q=1", "identity",      "" };
	struct rq *r;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj"), "content-length", bad[i], NULL)),
			     FAULT_BAD_REQUEST);
	for (size_t i = 0; i < sizeof codings / sizeof *codings; i++)
		assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj"), "transfer-encoding", codings[i], NULL)),
			     FAULT_NOT_IMPLEMENTED);
	/* Two statements about the end of the body, equal ones too. */
	assert_fault(
		rq_parse(rq_with(s3("PUT", "/bkt/obj"), "content-length", "5", "Content-Length", "6", NULL)),
		FAULT_BAD_REQUEST);
	assert_fault(
		rq_parse(rq_with(s3("PUT", "/bkt/obj"), "content-length", "5", "Content-Length", "5", NULL)),
		FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj"), "content-length", "5", "transfer-encoding",
				      "chunked", NULL)),
		     FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj"), "transfer-encoding", "chunked",
				      "transfer-encoding", "chunked", NULL)),
		     FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(scality("PUT", "/k"), "content-length", "5", "transfer-encoding",
				      "chunked", NULL)),
		     FAULT_BAD_REQUEST);

	r = rq_with(s3("PUT", "/bkt/obj"), "content-length", "18446744073709551615", "expect", "100-Continue",
		    NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.have_content_length && r->t.content_length == UINT64_MAX && r->t.expect_continue &&
		    !r->t.chunked);
	r = rq_with(s3("PUT", "/bkt/obj"), "transfer-encoding", "Chunked", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.chunked && !r->t.have_content_length && !r->t.expect_continue);

	/* HTTP/1.0 has no Transfer-Encoding, and everything else. */
	r = rq_with(s3("PUT", "/bkt/obj"), "transfer-encoding", "chunked", NULL);
	r->in.http_1_0 = true;
	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
	assert_non_null(strstr(r->why, "HTTP/1.0"));
	r = rq_with(s3("PUT", "/bkt/obj"), "content-length", "5", NULL);
	r->in.http_1_0 = true;
	assert_fault(rq_parse(r), FAULT_NONE);
}

static void
characters(void **state)
{
	for (int c = 0; c < 256; c++) {
		bool in_name = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			       (c && strchr("!#$%&'*+-.^_`|~", c));
		bool in_value = c == '\t' || (c >= 0x20 && c != 0x7f);
		char text[] = "x?y";
		struct rq *r;

		text[1] = (char)c;
		r = s3("GET", "/bkt/obj");
		r->fields[r->in.field_nr++] = (struct field){ text, "v", 3, 1 };
		assert_fault(rq_parse(r), in_name ? FAULT_NONE : FAULT_BAD_REQUEST);
		r = s3("GET", "/bkt/obj");
		r->fields[r->in.field_nr++] = (struct field){ "n", text, 1, 3 };
		assert_fault(rq_parse(r), in_value ? FAULT_NONE : FAULT_BAD_REQUEST);
	}
	assert_fault(rq_parse(rq_with(s3("GET", "/bkt/obj"), "", "v", NULL)), FAULT_BAD_REQUEST);
}

static void
too_many_fields(void **state)
{
	struct rq *r = s3("GET", "/bkt/obj");

	while (r->in.field_nr < DIALECT_FIELDS_MAX)
		rq_field(r, "x-filler", "1");
	assert_fault(rq_parse(r), FAULT_NONE);
	rq_field(r, "x-filler", "1");
	assert_fault(rq_parse(r), FAULT_HEADERS_TOO_LARGE);
}

/* Each header gives its form; the descriptor is decoded only by the second half.  item 100, item 101 */
static void
forms(void **state)
{
	static const struct {
		enum conf_dialect d;
		const char *header, *value;
		enum wire_form wire;
		bool declined;
	} cases[] = {
		{ DIALECT_S3, "x-amz-rdma-token", DC81, WIRE_AMZ, false },
		{ DIALECT_S3, "X-Amz-RDMA-Token", DC115, WIRE_AMZ, false },
		{ DIALECT_S3, "x-amz-rdma-token", SHIM, WIRE_AMZ, true },                      /* item T1 */
		{ DIALECT_S3, "x-amz-rdma-token", "0:10:ofi1:xnet.1:0200:1", WIRE_AMZ, true }, /* item T2 */
		{ DIALECT_S3, "x-amz-rdma-token", HIP88, WIRE_HIP, true },  /* item T4, item 103 */
		{ DIALECT_S3, "x-amz-rdma-token", HIP122, WIRE_HIP, true }, /* item T4, item 103 */
		{ DIALECT_S3, "x-rdma-info", DC81, WIRE_DELL, false },
		{ DIALECT_S3, "x-rdma-info", SHIM, WIRE_DELL, true },
		{ DIALECT_S3, "x-cuobj-rdma-descr", DC81, WIRE_TRIO, false },
		{ DIALECT_SCALITY, "x-scal-rdma", DC81, WIRE_SCAL, false },
		{ DIALECT_SCALITY, "x-scal-rdma", SCAL_RC, WIRE_SCAL, true }, /* item 15 */
		{ DIALECT_SCALITY, "x-scal-rdma", SHIM, WIRE_SCAL, true },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int put = 0; put < 2; put++) {
			struct rq *r = rq_new(cases[i].d, put ? "PUT" : "GET", "/bkt/obj");

			rq_with(r, cases[i].header, cases[i].value, "content-length", "0",
				"x-cuobj-content-length", "1048576", NULL);
			assert_fault(rq_parse(r), FAULT_NONE);
			assert_int_equal(r->t.wire, cases[i].wire);
			assert_int_equal(r->t.token.size, 0);
			assert_fault(dialect_token(&r->in, &r->t, &r->why), FAULT_NONE);
			assert_int_equal(r->t.token.kind != TOKEN_DC, cases[i].declined);
			if (!cases[i].declined) {
				assert_true(r->t.token.addr == 0x73967e5ff000);
				assert_true(r->t.token.size ==
					    (cases[i].wire == WIRE_TRIO ? 0x100000 : 0x400000));
			}
		}
	}
}

/* item 43: malformed ones, on every header; item T3, item 96 */
static void
bad_descriptors(void **state)
{
	static const struct {
		enum conf_dialect d;
		const char *header, *value;
	} cases[] = {
		{ DIALECT_S3, "x-amz-rdma-token", "" },
		{ DIALECT_S3, "x-amz-rdma-token", "x" },
		{ DIALECT_S3, "x-amz-rdma-token", "0:10:ofi:xnet.1:0200:1" },
		{ DIALECT_S3, "x-amz-rdma-token", "0:10:1:ofi1:xnet.1:0200:1" },
		{ DIALECT_S3, "x-amz-rdma-token", SCAL_RC },
		{ DIALECT_S3, "x-rdma-info", DC115 },
		{ DIALECT_S3, "x-rdma-info", "" },
		{ DIALECT_S3, "x-cuobj-rdma-descr", DC115 },
		{ DIALECT_SCALITY, "x-scal-rdma", DC115 },
		{ DIALECT_SCALITY, "x-scal-rdma", "000073967e5ff000:00400000" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int put = 0; put < 2; put++) {
			struct rq *r = rq_new(cases[i].d, put ? "PUT" : "GET", "/bkt/obj");

			rq_with(r, cases[i].header, cases[i].value, "content-length", "0",
				"x-cuobj-content-length", "1", NULL);
			/* Before authorisation nothing is said about it. */
			assert_fault(rq_parse(r), FAULT_NONE);
			assert_fault(dialect_token(&r->in, &r->t, &r->why), FAULT_BAD_TOKEN);
		}
	}
}

/* item 39: T = 0; item 64, item 9: a GET may still find an empty object, or a smaller one */
static void
size_zero(void **state)
{
	static const char zero_size[] =
		"000073967e5ff000:00000000:01f2e973:0000:007a03:1:00000000000000000000ffff0f0f0fdf";
	static const char zero_addr[] =
		"0000000000000000:00400000:01f2e973:0000:007a03:1:00000000000000000000ffff0f0f0fdf";
	static const char largest[] =
		"000073967e5ff000:ffffffff:01f2e973:0000:007a03:1:00000000000000000000ffff0f0f0fdf";

	assert_fault(rq_token(rq_with(s3("PUT", "/bkt/obj"), "x-amz-rdma-token", zero_size, NULL)),
		     FAULT_BAD_TOKEN);
	assert_fault(rq_token(rq_with(s3("PUT", "/bkt/obj"), "x-amz-rdma-token", zero_addr, NULL)),
		     FAULT_BAD_TOKEN);
	assert_fault(
		rq_token(rq_with(s3("PUT", "/bkt/obj"), "x-amz-rdma-token", DC81 ":73967e5ff000:0", NULL)),
		FAULT_BAD_TOKEN);
	assert_fault(rq_token(rq_with(s3("GET", "/bkt/obj"), "x-amz-rdma-token", zero_size, NULL)),
		     FAULT_NONE);
	assert_fault(rq_token(rq_with(s3("GET", "/bkt/obj"), "x-amz-rdma-token", zero_addr, NULL)),
		     FAULT_NONE);
	assert_fault(rq_token(rq_with(s3("GET", "/bkt/obj"), "x-amz-rdma-token", largest, NULL)), FAULT_NONE);
	assert_fault(rq_token(rq_with(scality("PUT", "/k"), "x-scal-rdma", zero_size, NULL)),
		     FAULT_BAD_TOKEN);
}

/* item 39, item 40, item 72 */
static void
put_bodies(void **state)
{
	static const char *const headers[] = { "x-amz-rdma-token", "x-rdma-info", "x-cuobj-rdma-descr" };

	for (size_t i = 0; i < 3; i++) {
		struct rq *r;

		assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj"), headers[i], DC81, "content-length", "1",
					      NULL)),
			     FAULT_BAD_REQUEST);
		assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj"), headers[i], DC81, "transfer-encoding",
					      "chunked", NULL)),
			     FAULT_BAD_REQUEST);
		r = rq_with(s3("PUT", "/bkt/obj"), headers[i], DC81, "x-cuobj-content-length", "9", NULL);
		assert_fault(rq_token(r), FAULT_NONE);
		assert_true(!r->t.have_content_length && r->t.content_length == 0);
		/* item 44 of the table in 4.4: a copy has no payload. */
		assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj"), headers[i], DC81, "x-amz-copy-source",
					      "/a/b", NULL)),
			     FAULT_BAD_REQUEST);
		assert_fault(rq_token(rq_with(s3("GET", "/bkt/obj"), headers[i], DC81, "content-length", "0",
					      NULL)),
			     FAULT_NONE);
	}
	assert_fault(
		rq_parse(rq_with(scality("PUT", "/k"), "x-scal-rdma", DC81, "content-length", "1", NULL)),
		FAULT_BAD_REQUEST);
	assert_fault(rq_token(rq_with(scality("PUT", "/k"), "x-scal-rdma", DC81, NULL)), FAULT_NONE);
	/* Without a descriptor the end of the body must be known. */
	assert_fault(rq_parse(s3("PUT", "/bkt/obj")), FAULT_LENGTH_REQUIRED);
	assert_fault(rq_parse(scality("PUT", "/k")), FAULT_LENGTH_REQUIRED);
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj"), "content-length", "0", "x-amz-copy-source",
				      "/a/b", NULL)),
		     FAULT_BAD_ARGUMENT); /* no bucket has a name of one letter */
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj"), "content-length", "9", "content-range",
				      "bytes 0-8/10", NULL)),
		     FAULT_BAD_REQUEST);
}

static void
bodies_elsewhere(void **state)
{
	static const char *const methods[] = { "GET", "HEAD", "DELETE" };
	static const char *const targets[] = { "/bkt/obj", "/bkt" };

	for (int m = 0; m < 3; m++) {
		for (int k = m == 0 ? 0 : 1; k >= 0; k--) {
			assert_fault(
				rq_parse(rq_with(s3(methods[m], targets[k]), "content-length", "0", NULL)),
				FAULT_NONE);
			assert_fault(
				rq_parse(rq_with(s3(methods[m], targets[k]), "content-length", "1", NULL)),
				FAULT_BAD_REQUEST);
			assert_fault(rq_parse(rq_with(s3(methods[m], targets[k]), "transfer-encoding",
						      "chunked", NULL)),
				     FAULT_BAD_REQUEST);
		}
	}
	/* CreateBucket may bring its configuration. */
	assert_fault(rq_parse(s3("PUT", "/bkt")), FAULT_NONE);
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt"), "content-length", "65536", NULL)), FAULT_NONE);
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt"), "content-length", "65537", NULL)), FAULT_TOO_LARGE);
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt"), "transfer-encoding", "chunked", NULL)),
		     FAULT_LENGTH_REQUIRED);
}

/* item 11 */
static void
several_descriptors(void **state)
{
	static const char *const headers[] = { "x-amz-rdma-token", "x-rdma-info", "x-cuobj-rdma-descr",
					       "x-amz-meta-rdma-token" };
	static const char *const methods[] = { "PUT", "GET", "HEAD" };
	struct rq *r;

	for (int m = 0; m < 3; m++) {
		for (int a = 0; a < 4; a++) {
			for (int b = 0; b < 4; b++) {
				r = s3(methods[m], "/bkt/obj");
				rq_with(r, headers[a], DC81, headers[b], DC81, "content-length", "0", NULL);
				assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
			}
		}
	}
	assert_fault(rq_parse(rq_with(scality("GET", "/k"), "x-scal-rdma", DC81, "x-scal-rdma", DC81, NULL)),
		     FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj"), "x-cuobj-rdma-descr", DC81,
				      "x-cuobj-content-length", "1", "x-cuobj-content-length", "1", NULL)),
		     FAULT_BAD_REQUEST);
	assert_fault(
		rq_parse(rq_with(s3("GET", "/bkt/obj"), "x-cuobj-rdma-descr", DC81,
				 "x-cuobj-remote-buf-start", "1", "x-cuobj-remote-buf-start", "1", NULL)),
		FAULT_BAD_REQUEST);
	/* Of one header's values the first says how the answer looks. */
	r = rq_with(s3("GET", "/bkt/obj"), "x-amz-rdma-token", DC81, "x-amz-rdma-token", HIP88, NULL);
	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
	assert_int_equal(r->t.wire, WIRE_AMZ);
	r = rq_with(s3("GET", "/bkt/obj"), "x-amz-rdma-token", HIP88, "x-amz-rdma-token", DC81, NULL);
	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
	assert_int_equal(r->t.wire, WIRE_HIP);
}

/* 4.4: a descriptor of the other dialect; the exception of 1.3 is not offered. */
static void
foreign_descriptors(void **state)
{
	static const char *const headers[] = { "x-amz-rdma-token", "x-rdma-info", "x-cuobj-rdma-descr",
					       "x-amz-meta-rdma-token" };
	struct rq *r;

	for (int i = 0; i < 4; i++)
		assert_fault(rq_parse(rq_with(scality("GET", "/k"), headers[i], DC81, NULL)),
			     FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(s3("GET", "/bkt/obj"), "x-scal-rdma", DC81, NULL)), FAULT_BAD_REQUEST);
	assert_fault(
		rq_parse(rq_with(s3("GET", "/bkt/obj"), "x-scal-rdma", DC81, "x-amz-rdma-token", DC81, NULL)),
		FAULT_BAD_REQUEST);
	/* Ordinary words in that header mean nothing to Scality. */
	r = rq_with(scality("GET", "/k"), "x-amz-meta-rdma-token", "note", NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_int_equal(r->t.wire, WIRE_NONE);
}

/* item 12: parts of the trio */
static void
trio(void **state)
{
	struct rq *r = rq_with(s3("GET", "/bkt/obj"), "x-cuobj-content-length", "1",
			       "x-cuobj-remote-buf-start", "zz", NULL);

	assert_fault(rq_token(r), FAULT_NONE);
	assert_int_equal(r->t.wire, WIRE_NONE);
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj"), "x-cuobj-content-length", "1", NULL)),
		     FAULT_LENGTH_REQUIRED);
	/* A PUT needs the length, a GET does not. */
	assert_fault(rq_token(rq_with(s3("PUT", "/bkt/obj"), "x-cuobj-rdma-descr", DC81, NULL)),
		     FAULT_BAD_TOKEN);
	r = rq_with(s3("GET", "/bkt/obj"), "x-cuobj-rdma-descr", DC81, NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_true(r->t.token.size == 0x400000);
	r = rq_with(s3("PUT", "/bkt/obj"), "x-cuobj-rdma-descr", DC81, "x-cuobj-content-length", "1048576",
		    "x-cuobj-remote-buf-start", "127090202505216", "content-length", "0", NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_true(r->t.token.addr == 0x73967e5ff000 && r->t.token.size == 0x100000);
	r = rq_with(s3("PUT", "/bkt/obj"), "x-cuobj-rdma-descr", DC81, "x-cuobj-content-length", "1048576",
		    "x-cuobj-remote-buf-start", "127090202505215", "content-length", "0", NULL);
	assert_fault(rq_token(r), FAULT_BAD_TOKEN);
}

/* item 102 */
static void
meta_token(void **state)
{
	struct rq *r;

	/* Off: of exact shape it is declined, PUT and GET; what else is wrong is said before. */
	r = rq_with(s3("PUT", "/bkt/obj"), "x-amz-meta-rdma-token", DC81, "content-length", "0", NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_int_equal(r->t.wire, WIRE_META);
	assert_int_equal(r->t.token.kind, TOKEN_OFF);
	r = rq_with(s3("PUT", "/bkt/obj"), "x-amz-meta-rdma-token", DC81, "content-length", "7", NULL);
	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
	r = rq_with(s3("GET", "/bkt/obj"), "x-amz-meta-rdma-token", DC81, NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_int_equal(r->t.token.kind, TOKEN_OFF);
	assert_fault(rq_parse(rq_with(s3("HEAD", "/bkt/obj"), "x-amz-meta-rdma-token", DC81, NULL)),
		     FAULT_NONE);
	/* Off: any other value is metadata. */
	r = rq_with(s3("PUT", "/bkt/obj"), "x-amz-meta-rdma-token", "not a token", "content-length", "7",
		    NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_int_equal(r->t.wire, WIRE_NONE);
	assert_true(r->t.attrs_len > 0);
	/* On: consumed, not stored. */
	r = rq_with(s3("PUT", "/bkt/obj"), "x-amz-meta-rdma-token", DC81, "content-length", "0", NULL);
	r->rdma.meta_token = true;
	assert_fault(rq_token(r), FAULT_NONE);
	assert_int_equal(r->t.wire, WIRE_META);
	assert_true(r->t.token.size == 0x400000);
	assert_int_equal(r->t.attrs_len, 0);
	r = rq_with(s3("PUT", "/bkt/obj"), "x-amz-meta-rdma-token", "not a token", "content-length", "0",
		    NULL);
	r->rdma.meta_token = true;
	assert_fault(rq_token(r), FAULT_BAD_TOKEN);
}

/* item 76, item 77: operations that move nothing ignore a descriptor, even a bad one. */
static void
ignored_tokens(void **state)
{
	static const struct {
		const char *method, *target;
	} cases[] = { { "HEAD", "/bkt/obj" }, { "DELETE", "/bkt/obj" }, { "PUT", "/bkt" },
		      { "HEAD", "/bkt" },     { "DELETE", "/bkt" },     { "GET", "/" } };
	static const char *const values[] = { DC81, "rubbish", HIP88 };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int v = 0; v < 3; v++) {
			struct rq *r = rq_with(s3(cases[i].method, cases[i].target), "x-amz-rdma-token",
					       values[v], NULL);

			assert_fault(rq_token(r), FAULT_NONE);
			assert_int_equal(r->t.wire, WIRE_NONE);
		}
	}
	struct rq *r = rq_with(s3("HEAD", "/bkt/obj"), "x-amz-rdma-token", DC81, "range", "bytes=0-1", NULL);

	assert_fault(rq_token(r), FAULT_NONE);
	/* item 76: the true length. */
	assert_int_equal(r->t.range.kind, RANGE_NONE);
}

/* item 104: the form is known whatever else is wrong. */
static void
hip_form_is_known_early(void **state)
{
	struct rq *r;

	r = rq_with(rq_bare(DIALECT_S3, "GET", "/bkt/obj"), "x-amz-rdma-token", HIP88, NULL);
	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
	assert_int_equal(r->t.wire, WIRE_HIP);
	r = rq_with(s3("GET", "/bkt/obj"), "x-amz-rdma-token", HIP122, "x-amz-rdma-token", HIP122, NULL);
	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
	assert_int_equal(r->t.wire, WIRE_HIP);
	r = rq_with(s3("GET", "/B/obj"), "x-amz-rdma-token", HIP122, NULL);
	assert_fault(rq_parse(r), FAULT_BAD_BUCKET_NAME);
	assert_int_equal(r->t.wire, WIRE_HIP);
	r = rq_with(s3("PUT", "/bkt/obj"), "x-amz-rdma-token", HIP122, "content-length", "5", NULL);
	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
	assert_int_equal(r->t.wire, WIRE_HIP);
}

/* item 84 */
static void
agent(void **state)
{
	struct rq *r = rq_with(put_dc(), "x-amz-rdma-agent", "cuobj", NULL);

	assert_fault(rq_token(r), FAULT_NONE);
	assert_true(r->t.rdma_agent_cuobj);
	r = rq_with(put_dc(), "x-amz-rdma-agent", "other", NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_false(r->t.rdma_agent_cuobj);
	r = rq_with(put_body(), "x-amz-rdma-agent", "cuobj", NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_false(r->t.rdma_agent_cuobj);
}

static void
refused_headers(void **state)
{
	static const struct {
		const char *name, *value;
		enum fault f, windowed;
	} cases[] = {
		{ "x-amz-acl", "private", FAULT_NONE, FAULT_NONE },
		{ "x-amz-acl", "bucket-owner-full-control", FAULT_NONE, FAULT_NONE },
		{ "x-amz-acl", "public-read", FAULT_NO_ACLS, FAULT_NO_ACLS },
		{ "X-AMZ-ACL", "public-read-write", FAULT_NO_ACLS, FAULT_NO_ACLS },
		{ "x-amz-grant-read", "id=1", FAULT_NO_ACLS, FAULT_NO_ACLS },
		{ "x-amz-grant-full-control", "id=1", FAULT_NO_ACLS, FAULT_NO_ACLS },
		{ "x-amz-acl", "nonsense", FAULT_NO_ACLS, FAULT_NO_ACLS },
		{ "x-amz-storage-class", "STANDARD", FAULT_NONE, FAULT_NONE },
		{ "x-amz-storage-class", "GLACIER", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "x-amz-storage-class", "STANDARD_IA", FAULT_NONE, FAULT_NONE },
		{ "x-amz-storage-class", "standard", FAULT_INVALID_STORAGE_CLASS,
		  FAULT_INVALID_STORAGE_CLASS },
		{ "x-amz-storage-class", "", FAULT_NONE, FAULT_NONE },
		{ "x-amz-tagging", "a=b", FAULT_NONE, FAULT_NONE },
		{ "x-amz-tagging", "", FAULT_NONE, FAULT_NONE },
		{ "x-amz-server-side-encryption", "AES256", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "x-amz-server-side-encryption-customer-key", "k", FAULT_NOT_IMPLEMENTED,
		  FAULT_NOT_IMPLEMENTED },
		{ "x-amz-server-side-encryption-aws-kms-key-id", "k", FAULT_NOT_IMPLEMENTED,
		  FAULT_NOT_IMPLEMENTED },
		{ "x-amz-object-lock-mode", "GOVERNANCE", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "x-amz-object-lock-legal-hold", "ON", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "x-amz-website-redirect-location", "/x", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "x-amz-write-offset-bytes", "0", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "x-amz-expected-bucket-owner", "1", FAULT_ACCESS_DENIED, FAULT_ACCESS_DENIED },
		{ "x-amz-expected-bucket-owner", "111122223333", FAULT_ACCESS_DENIED, FAULT_ACCESS_DENIED },
		{ "x-amz-expected-bucket-owner", "gantry", FAULT_NONE, FAULT_NONE },
		{ "x-amz-source-expected-bucket-owner", "gantry", FAULT_NONE, FAULT_NONE },
		{ "x-amz-source-expected-bucket-owner", "other", FAULT_ACCESS_DENIED, FAULT_ACCESS_DENIED },
		{ "x-amz-if-match-size", "1", FAULT_NONE, FAULT_NONE },
		{ "x-amz-mfa", "1", FAULT_NOT_IMPLEMENTED, FAULT_NOT_IMPLEMENTED },
		{ "x-amz-trailer", "x-amz-checksum-crc32", FAULT_BAD_REQUEST, FAULT_BAD_REQUEST },
		{ "x-amz-decoded-content-length", "1", FAULT_NONE, FAULT_NONE },
		{ "content-encoding", "aws-chunked", FAULT_NONE, FAULT_BAD_REQUEST },
		{ "content-encoding", "gzip,AWS-chunked", FAULT_NONE, FAULT_BAD_REQUEST },
		{ "content-encoding", "aws-chunked , gzip", FAULT_NONE, FAULT_BAD_REQUEST },
		{ "content-encoding", "gzip", FAULT_NONE, FAULT_NONE },
		{ "content-encoding", "xaws-chunked", FAULT_NONE, FAULT_NONE },
		{ "x-amz-date", "20260101T000000Z", FAULT_NONE, FAULT_NONE },
		{ "x-amz-request-payer", "requester", FAULT_NONE, FAULT_NONE },
		{ "x-amz-meta-acl", "public-read", FAULT_NONE, FAULT_NONE },
		{ "x-amzn-trace-id", "1", FAULT_NONE, FAULT_NONE },
		{ "accept", "*/*", FAULT_NONE, FAULT_NONE },
	};
	struct rq *r;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		enum fault f = rq_parse(rq_with(put_body(), cases[i].name, cases[i].value, NULL));

		if (f != cases[i].f)
			fail_msg("%s: %s gives %d", cases[i].name, cases[i].value, f);
		f = rq_parse(rq_with(put_dc(), cases[i].name, cases[i].value, NULL));
		if (f != cases[i].windowed)
			fail_msg("with a descriptor, %s: %s gives %d", cases[i].name, cases[i].value, f);
	}
	/* The sentence names the header. */
	r = rq_with(put_body(), "x-amz-grant-read", "a", NULL);
	rq_parse(r);
	assert_non_null(strstr(r->why, "x-amz-grant"));
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt"), "x-amz-bucket-object-lock-enabled", "true", NULL)),
		     FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt"), "x-amz-bucket-object-lock-enabled", "false", NULL)),
		     FAULT_NONE);
	assert_fault(
		rq_parse(rq_with(s3("PUT", "/bkt"), "x-amz-object-ownership", "BucketOwnerEnforced", NULL)),
		FAULT_NONE);
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt"), "x-amz-object-ownership", "ObjectWriter", NULL)),
		     FAULT_NOT_IMPLEMENTED);
	/* Scality knows none of this. */
	assert_fault(
		rq_parse(rq_with(scality("PUT", "/k"), "content-length", "1", "x-amz-tagging", "a=b", NULL)),
		FAULT_NONE);
	/* Of a new bucket it is called otherwise. */
	assert_fault(
		rq_parse(rq_with(s3("PUT", "/bkt"), "content-length", "0", "x-amz-acl", "public-read", NULL)),
		FAULT_BUCKET_ACL);
	assert_fault(
		rq_parse(rq_with(s3("PUT", "/bkt"), "content-length", "0", "x-amz-grant-read", "id=1", NULL)),
		FAULT_BUCKET_ACL);
	assert_fault(
		rq_parse(rq_with(s3("PUT", "/bkt"), "content-length", "0", "x-amz-acl", "private", NULL)),
		FAULT_NONE);
}

/* Headers that S3 has invented since are found; those that it has, and that we take or refuse, are not. */
static void
unknown_headers(void **state)
{
	static const struct {
		const char *name, *value;
		bool known;
	} cases[] = {
		{ "x-amz-foo-new-thing", "1", false },
		{ "X-AMZ-Foo", "", false },
		{ "x-amz-", "1", false },
		{ "x-amz-9", "1", false },
		{ "x-amz-checksum", "1", false },
		{ "x-amz-acl-2", "private", false },
		{ "x-amz-rdma-new", "1", false },
		{ "x-amz-meta-a", "1", true },
		{ "x-amz-acl", "private", true },
		{ "X-Amz-Date", "20130524T000000Z", true },
		{ "x-amz-content-sha256", "UNSIGNED-PAYLOAD", true },
		{ "x-amz-request-payer", "requester", true },
		{ "x-amz-checksum-mode", "ENABLED", true },
		{ "x-amz-rdma-token", DC81, true },
		{ "x-amz-rdma-agent", "cuobj", true },
		{ "x-amz-server-side-encryption", "", true },
		{ "x-amz-object-lock-mode", "", true },
		{ "x-amzn-trace-id", "1", true },
		{ "user-agent", "x", true },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rq *r = rq_with(s3("GET", "/bkt/obj"), cases[i].name, cases[i].value, NULL);
		enum fault f = rq_parse(r);

		if (f != FAULT_NONE || (r->t.unknown_header.len == 0) != cases[i].known)
			fail_msg("%s: fault %d, unknown \"%.*s\"", cases[i].name, f,
				 (int)r->t.unknown_header.len, r->t.unknown_header.p);
		if (!cases[i].known)
			assert_string_equal(r->t.unknown_header.p, cases[i].name);
	}
	/* Every form of a descriptor is known; the other dialect knows none of these names. */
	assert_fault(rq_parse(rq_with(scality("GET", "/k"), "x-amz-foo", "1", NULL)), FAULT_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies),
		cmocka_unit_test(host),
		cmocka_unit_test(framing),
		cmocka_unit_test(characters),
		cmocka_unit_test(too_many_fields),
		cmocka_unit_test(forms),
		cmocka_unit_test(bad_descriptors),
		cmocka_unit_test(size_zero),
		cmocka_unit_test(put_bodies),
		cmocka_unit_test(bodies_elsewhere),
		cmocka_unit_test(several_descriptors),
		cmocka_unit_test(foreign_descriptors),
		cmocka_unit_test(trio),
		cmocka_unit_test(meta_token),
		cmocka_unit_test(texts),
		cmocka_unit_test(ignored_tokens),
		cmocka_unit_test(hip_form_is_known_early),
		cmocka_unit_test(agent),
		cmocka_unit_test(refused_headers),
		cmocka_unit_test(unknown_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
