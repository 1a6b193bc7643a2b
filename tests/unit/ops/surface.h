/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The S3 surface on the store in memory: requests with bodies that come in pieces of any size, as one call
 * each. SEED= repeats the sizes.  At the end of each test nothing may be left: neither requests nor buffers
 * nor the text they held.  Included once per program.
 */
#ifndef GANTRY_TESTS_REQ_SURFACE_H
#define GANTRY_TESTS_REQ_SURFACE_H

#include "tests/unit/ops/rig.h"
#include "tests/fake/mem_store.h"
#include "base/base64.h"
#include "xfer/digest.h"

static uint64_t seed;

static inline uint32_t
draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static inline int
s3_start(void **state)
{
	const char *s = getenv("SEED");

	seed = s ? strtoull(s, NULL, 0) : 1;
	return rig_start(state);
}

static inline int
s3_stop(void **state)
{
	rig_check_empty();
	assert_int_equal(rig.reqs->text_bytes, 0);
	assert_int_equal(mem_store_open_nr(rig.store), 0);
	assert_int_equal(mem_store_put_nr(rig.store), 0);
	return rig_stop(state);
}

/* With two buffers for bodies: what comes waits for the store. */
static inline int
narrow_start(void **state)
{
	int r;

	rig_small.http_bytes = 2 * (BUF_SMALL_BYTES + 8192);
	r = s3_start(state);
	rig_small.http_bytes = 0;
	return r;
}

/* Hands a body in, in pieces; all of it, or until the reply is there. */
static inline void
feed(struct xchg *x, const char *data, size_t len, size_t piece)
{
	size_t at = 0;

	while (at < len && !req_is_ready(x->rq)) {
		size_t n = len - at < piece ? len - at : piece, took = req_body(x->rq, data + at, n);

		assert_true(took <= n);
		at += took;
		if (took < n)
			rig_turn();
	}
	if (!req_is_ready(x->rq))
		req_body_end(x->rq);
}

static inline void
begin_body(struct xchg *x, const char *method, const char *target, size_t len)
{
	x_init(x, 0, method, target);
	x_field(x, "content-length", "%zu", len);
}

/* What DeleteObjects must have. */
static inline void
x_md5(struct xchg *x, const char *body)
{
	struct digest d = { 0 };
	uint8_t md5[32];
	char text[32];

	assert_int_equal(digest_begin(&d, DIGEST_BIT(DIGEST_MD5)), 0);
	digest_update(&d, body, strlen(body));
	base64_encode(md5, digest_value(&d, DIGEST_MD5, md5), text);
	digest_fini(&d);
	x_field(x, "content-md5", "%s", text);
}

/* A request with a body, up to its reply. */
static inline int
with_body(struct xchg *x, const char *data, size_t len, size_t piece)
{
	x_begin(x);
	feed(x, data, len, piece);
	rig_until(req_is_ready(x->rq));
	return req_reply(x->rq)->status;
}

static inline int
text_request(const char *method, const char *target, const char *body, char *out, size_t cap)
{
	struct xchg x;
	const struct reply *r;
	int status;

	begin_body(&x, method, target, strlen(body));
	if (strstr(target, "?delete"))
		x_md5(&x, body);
	status = with_body(&x, body, strlen(body), 1 + draw(200));
	r = req_reply(x.rq);
	if (out) {
		size_t n = r->body == REPLY_TEXT && r->len_bytes < cap ? (size_t)r->len_bytes : 0;

		memcpy(out, r->body == REPLY_TEXT ? r->text : "", n);
		out[n] = 0;
	}
	x_end(&x);
	return status;
}

/* The object's bytes, over HTTP. */
static inline size_t
get_body(const char *target, unsigned char *out, size_t cap)
{
	struct xchg x;
	uint64_t at = 0;

	x_init(&x, 0, "GET", target);
	if (x_run(&x) != 200)
		fail_msg("GET %s: %d", target, req_reply(x.rq)->status);
	assert_true(req_reply(x.rq)->len_bytes <= cap);
	while (at < req_reply(x.rq)->len_bytes) {
		ssize_t n = req_stream_read(x.rq, at, out + at, cap - at);

		assert_true(n >= 0);
		at += (uint64_t)n;
		if (n == 0)
			rig_turn();
	}
	x_end(&x);
	return at;
}

static inline void
field_of(const char *xml, const char *name, char *out, size_t cap)
{
	char open[64];
	const char *p, *end;

	snprintf(open, sizeof open, "<%s>", name);
	p = strstr(xml, open);
	assert_non_null(p);
	p += strlen(open);
	end = strchr(p, '<');
	assert_true((size_t)(end - p) < cap);
	memcpy(out, p, (size_t)(end - p));
	out[end - p] = 0;
}

static inline void
make_upload(const char *key, char id[64])
{
	char target[128], out[1024];

	snprintf(target, sizeof target, "/bkt/%s?uploads", key);
	assert_int_equal(text_request("POST", target, "", out, sizeof out), 200);
	field_of(out, "UploadId", id, 64);
}

#endif
