/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What requests are made of: a request that was another's before is as good as one that never was, and a pool
 * of parts that is empty is 503 SlowDown until one comes back.
 */
#include "tests/unit/ops/surface.h"

#define FORM_HEAD                                                                                            \
	"--XY\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nform\r\n"                               \
	"--XY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
#define FORM_TAIL "\r\n--XY--\r\n"

/* ---- used memory ---- */

/* Each operation that has parts of its own, and those that have none; in this order. */
static const struct {
	const char *method, *target, *field, *value, *body;
	int status;
} asked[] = {
	{ "PUT", "/bkt/a", "x-amz-meta-colour", "blue", "bytes of an object", 200 },
	{ "GET", "/bkt/a", NULL, NULL, NULL, 200 },
	{ "GET", "/bkt/a", "range", "bytes=2-4", NULL, 206 },
	{ "GET", "/bkt/a", "range", "bytes=100-", NULL, 416 },
	{ "HEAD", "/bkt/a", NULL, NULL, NULL, 200 },
	{ "GET", "/bkt/none", NULL, NULL, NULL, 404 },
	{ "GET", "/bkt/a?torrent", NULL, NULL, NULL, 501 },
	{ "PUT", "/bkt/a", "x-amz-checksum-crc32", "AAAAAA==", "bytes of an object", 400 },
	{ "PUT", "/bkt/b", "x-amz-copy-source", "/bkt/a", NULL, 200 },
	{ "PUT", "/bkt/a?tagging", NULL, NULL,
	  "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>", 200 },
	{ "GET", "/bkt/a?tagging", NULL, NULL, NULL, 200 },
	{ "GET", "/bkt/a?attributes", "x-amz-object-attributes", "ETag,ObjectSize", NULL, 200 },
	{ "PUT", "/bkt?cors", NULL, NULL,
	  "<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin>"
	  "</CORSRule></CORSConfiguration>",
	  200 },
	{ "GET", "/bkt/a", "origin", "https://x.example", NULL, 200 },
	{ "GET", "/bkt/a", NULL, NULL, NULL, 200 },
	{ "GET", "/bkt?list-type=2&prefix=a&delimiter=/", NULL, NULL, NULL, 200 },
	{ "GET", "/", NULL, NULL, NULL, 200 },
	{ "POST", "/bkt/c?uploads", "x-amz-checksum-algorithm", "CRC32", "", 200 },
	{ "GET", "/bkt?uploads&prefix=x", NULL, NULL, NULL, 200 },
	{ "POST", "/bkt", "content-type", "multipart/form-data; boundary=XY", FORM_HEAD "file" FORM_TAIL,
	  204 },
	{ "HEAD", "/bkt", NULL, NULL, NULL, 200 },
	{ "GET", "/bkt?location", NULL, NULL, NULL, 200 },
	{ "POST", "/bkt?delete", "content-md5", "FMGF1LVmlFR/YjEQ92zT8w==",
	  "<Delete><Object><Key>b</Key></Object><Object><Key>c</Key></Object></Delete>", 200 },
	{ "DELETE", "/bkt/a", NULL, NULL, NULL, 204 },
};

struct told {
	char text[32 << 10];
	size_t len;
};

/* What varies by itself, and is as long each time. */
static bool
varies(const char *name)
{
	return strcmp(name, "x-amz-request-id") == 0 || strcasecmp(name, "last-modified") == 0;
}

static void
on_header(void *cookie, const char *name, const char *value)
{
	struct told *t = cookie;

	t->len += (size_t)snprintf(t->text + t->len, sizeof t->text - t->len, "%s: %s\n", name,
				   varies(name) ? "-" : value);
	assert_true(t->len < sizeof t->text);
}

/* Fills what the next request will get with bytes that mean nothing. */
static void
spoil(int byte)
{
	struct reqs *rs = rig.reqs;
	struct req *rq = &rs->pool[0];
	struct list link = rq->link;
	struct digest digest = rq->digest;

	rig_until(reqs_live(rs) == 0);
	memset(rq, byte, sizeof *rq);
	rq->link = link;
	rq->digest = digest;
	for (int i = 0; i < POOL_NR; i++) {
		struct pool *p = &rs->parts[i];

		assert_int_equal(p->used, 0);
		memset(p->mem, byte, (size_t)p->nr * p->bytes);
		p->begun = 0;
		p->free = NULL;
	}
}

/* All of asked[], each after spoil(byte); what was answered, but for what varies, in t. */
static void
tell(struct told *t, int byte)
{
	t->len = 0;
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		size_t len = asked[i].body ? strlen(asked[i].body) : 0;
		const struct reply *r;
		struct xchg x;
		int status;

		if (byte >= 0)
			spoil(byte);
		x_init(&x, 0, asked[i].method, asked[i].target);
		if (asked[i].body)
			x_field(&x, "content-length", "%zu", len);
		if (asked[i].field)
			x_field(&x, asked[i].field, "%s", asked[i].value);
		status = asked[i].body ? with_body(&x, asked[i].body, len, 7) : x_run(&x);
		if (status != asked[i].status)
			fail_msg("%s %s after 0x%02x: %d %s", asked[i].method, asked[i].target, byte, status,
				 x.rq->error);
		r = req_reply(x.rq);
		t->len += (size_t)snprintf(t->text + t->len, sizeof t->text - t->len,
					   "%s %s: %d %d %llu %d\n", asked[i].method, asked[i].target, status,
					   r->body, (unsigned long long)r->len_bytes, r->close);
		req_reply_headers(x.rq, on_header, t);
		x_end(&x);
	}
}

static void
test_used(void **state)
{
	static struct told fresh, used;

	tell(&fresh, -1);
	for (int byte = 0; byte <= 255; byte += 85) {
		tell(&used, byte);
		assert_string_equal(used.text, fresh.text);
	}
}

/* By descriptor too, where a lease and pieces are the request's. */
static void
test_used_by_rdma(void **state)
{
	unsigned char want[5000];

	pattern(want, sizeof want, 3);
	for (int byte = 0; byte <= 255; byte += 51) {
		struct xchg x;

		spoil(byte);
		put_object("r", sizeof want, 3);
		spoil(byte);
		x_init(&x, 0, "GET", "/bkt/r");
		x_token(&x, "x-amz-rdma-token", 0, sizeof want);
		assert_int_equal(x_run(&x), 200);
		x_end(&x);
		assert_memory_equal(rig.win, want, sizeof want);
	}
}

/* ---- pools that are empty ---- */

static void
begin_form(struct xchg *x)
{
	begin_body(x, "POST", "/bkt", sizeof FORM_HEAD - 1 + sizeof FORM_TAIL - 1);
	x_field(x, "content-type", "multipart/form-data; boundary=XY");
	x_begin(x);
}

static int
end_form(struct xchg *x)
{
	static const char body[] = FORM_HEAD FORM_TAIL;
	int status;

	feed(x, body, sizeof body - 1, 30);
	rig_until(req_is_ready(x->rq));
	status = req_reply(x->rq)->status;
	x_end(x);
	return status;
}

/* Forms are large jobs.  Were there fewer of these than requests, those that find none would be told so,
 * and nobody else would be kept from being served. */
static void
test_exhaustion(void **state)
{
	enum { REQUESTS = 16, LARGE = REQUESTS / 4 };
	struct pool *p = &rig.reqs->parts[POOL_LARGE_JOB];
	struct xchg x[LARGE], more;

	assert_int_equal(p->nr, REQUESTS);
	p->nr = LARGE;
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < LARGE; i++) {
			begin_form(&x[i]);
			assert_false(req_is_ready(x[i].rq));
		}
		assert_int_equal(p->used, LARGE);
		begin_form(&more);
		assert_true(req_is_ready(more.rq));
		assert_int_equal(req_reply(more.rq)->status, 503);
		assert_non_null(strstr(req_reply(more.rq)->text, "<Code>SlowDown</Code>"));
		assert_header(&more, "retry-after", "1");
		x_end(&more);
		put_object("beside", 1000, 1);
		/* One that ends makes room for one. */
		assert_int_equal(end_form(&x[0]), 204);
		begin_form(&x[0]);
		assert_false(req_is_ready(x[0].rq));
		for (int i = 0; i < LARGE; i++)
			assert_int_equal(end_form(&x[i]), 204);
		assert_int_equal(p->used, 0);
	}
	/* No more of it was ever touched than was used at once. */
	assert_int_equal(p->begun, LARGE);
	assert_true(rig.reqs->parts[POOL_CHANGE].begun <= LARGE + 1);
	assert_int_equal(rig.reqs->begun_nr, LARGE + 1);
}

static int
few_start(void **state)
{
	int r;

	rig_small.requests = 16;
	r = s3_start(state);
	rig_small.requests = 0;
	return r;
}

static int
one_start(void **state)
{
	int r;

	rig_small.requests = 1;
	r = s3_start(state);
	rig_small.requests = 0;
	return r;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_used, one_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_used_by_rdma, one_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_exhaustion, few_start, s3_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
