/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The S3 surface: bodies that come in pieces of any size, forms, deletions of many, clients
 * that leave at any moment.
 */
#include "tests/unit/ops/surface.h"

#include "base/base64.h"
#include "base/crc64.h"

#include <errno.h>

/* ---- bodies that are text ---- */

static void
test_text(void **state)
{
	static const char body[] =
		"<Delete><Object><Key>a</Key></Object><Object><Key>b</Key></Object></Delete>";
	char out[4096];
	struct xchg x;

	put_object("a", 1000, 1);
	assert_int_equal(text_request("POST", "/bkt?delete", body, out, sizeof out), 200);
	assert_non_null(strstr(out, "<Deleted><Key>a</Key></Deleted><Deleted><Key>b</Key></Deleted>"));
	/* The MD5 of other bytes. */
	begin_body(&x, "POST", "/bkt?delete", sizeof body - 1);
	x_field(&x, "content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==");
	assert_int_equal(with_body(&x, body, sizeof body - 1, 10), 400);
	assert_non_null(strstr(req_reply(x.rq)->text, "BadDigest"));
	x_end(&x);
	/* Too large: said before any of it was read.  Without a length it is not taken at all. */
	begin_body(&x, "POST", "/bkt?delete", 100000);
	x_md5(&x, body);
	x_begin(&x);
	rig_until(req_is_ready(x.rq));
	assert_int_equal(req_reply(x.rq)->status, 400);
	assert_non_null(strstr(req_reply(x.rq)->text, "MaxMessageLengthExceeded"));
	assert_true(req_reply(x.rq)->close);
	x_end(&x);
	x_init(&x, 0, "POST", "/bkt?delete");
	x_field(&x, "transfer-encoding", "chunked");
	assert_int_equal(with_body(&x, body, sizeof body - 1, 1000), 411);
	x_end(&x);
	/* It ends before its time; nobody is there any more. */
	begin_body(&x, "POST", "/bkt?delete", sizeof body - 1);
	x_md5(&x, body);
	assert_int_equal(with_body(&x, body, 20, 10), 400);
	assert_non_null(strstr(req_reply(x.rq)->text, "IncompleteBody"));
	x_end(&x);
	begin_body(&x, "POST", "/bkt?delete", sizeof body - 1);
	x_md5(&x, body);
	x_begin(&x);
	assert_int_equal(req_body(x.rq, body, 20), 20);
	x_end(&x);
}

/* The same in frames, of a client without a signature; the checksum behind them is of these bytes. */
static void
test_text_frames(void **state)
{
	static const char frames[] =
		"2b\r\n<Delete><Object><Key>a</Key></Object></Dele\r\n4\r\nte>\n\r\n0\r\n";
	static const struct {
		const char *trailer;
		int status;
		const char *answer;
	} cases[] = {
		{ "x-amz-checksum-crc64nvme:AAAAAAAAAAA=\r\n\r\n", 400, "BadDigest" },
		{ "x-amz-checksum-crc64nvme:%s\r\n\r\nx", 400, "InvalidChunkSizeError" },
		{ "\r\n", 400, "MalformedTrailerError" },
		{ "x-amz-checksum-crc64nvme:%s", 400, "IncompleteBody" },
		{ "x-amz-checksum-crc64nvme:%s\r\n\r\n", 200, "<Deleted><Key>a</Key></Deleted>" },
	};
	static const char whole[] = "<Delete><Object><Key>a</Key></Object></Delete>\n";
	uint64_t crc = crc64_nvme(0, whole, sizeof whole - 1);
	uint8_t be[8];
	char sum[16] = "", body[256], trailer[128];

	for (int i = 0; i < 8; i++)
		be[i] = (uint8_t)(crc >> (56 - 8 * i));
	base64_encode(be, sizeof be, sum);
	put_object("a", 1000, 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *mark = strstr(cases[i].trailer, "%s");
		struct xchg x;

		snprintf(trailer, sizeof trailer, "%.*s%s%s",
			 mark ? (int)(mark - cases[i].trailer) : (int)strlen(cases[i].trailer),
			 cases[i].trailer, mark ? sum : "", mark ? mark + 2 : "");
		snprintf(body, sizeof body, "%s%s", frames, trailer);
		begin_body(&x, "POST", "/bkt?delete", strlen(body));
		x_field(&x, "x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER");
		x_field(&x, "x-amz-decoded-content-length", "47");
		x_field(&x, "x-amz-trailer", "x-amz-checksum-crc64nvme");
		if (with_body(&x, body, strlen(body), 1 + draw(100)) != cases[i].status ||
		    !strstr(req_reply(x.rq)->text, cases[i].answer))
			fail_msg("%zu: %d %s", i, req_reply(x.rq)->status, req_reply(x.rq)->text);
		x_end(&x);
	}
}

/* Rules of the bucket show in the answers about its objects, a second behind at most. */
static void
test_expiration(void **state)
{
	static const char rules[] =
		"<LifecycleConfiguration><Rule><ID>a b</ID><Status>Enabled</Status><Filter><And>"
		"<Prefix>x/</Prefix><ObjectSizeGreaterThan>10</ObjectSizeGreaterThan></And></Filter>"
		"<Expiration><Days>5</Days></Expiration></Rule></LifecycleConfiguration>";
	static const struct {
		const char *method, *target;
		size_t len;
		bool has;
	} cases[] = { { "PUT", "/bkt/x/1", 11, true },   { "PUT", "/bkt/x/2", 10, false },
		      { "PUT", "/bkt/y", 100, false },   { "HEAD", "/bkt/x/1", 0, true },
		      { "GET", "/bkt/x/1", 0, true },    { "HEAD", "/bkt/x/2", 0, false },
		      { "DELETE", "/bkt/x/1", 0, false } };
	struct mem_store_tuning at_once = { .seed = seed, .stat_at_once = 100 };
	const char *v;

	/* While rules are being read the answer does without them. */
	mem_store_tune(rig.store, &at_once);
	rig.conf->lifecycle.day_ns = 86400 * NS_PER_S;
	assert_int_equal(text_request("PUT", "/bkt?lifecycle", rules, NULL, 0), 200);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char body[128] = { 0 };
		struct xchg x;

		if (cases[i].len) {
			begin_body(&x, cases[i].method, cases[i].target, cases[i].len);
			with_body(&x, body, cases[i].len, 7);
		} else {
			x_init(&x, 0, cases[i].method, cases[i].target);
			x_run(&x);
		}
		assert_int_equal(req_reply(x.rq)->status / 100, 2);
		v = x_header(&x, "x-amz-expiration");
		if (!v != !cases[i].has)
			fail_msg("%s %s: %s", cases[i].method, cases[i].target, v ? v : "none");
		if (v)
			assert_true(strncmp(v, "expiry-date=\"", 13) == 0 &&
				    strstr(v, " 00:00:00 GMT\", rule-id=\"a%20b\""));
		x_end(&x);
	}
}

/* s3.etag: random makes no MD5 where nobody sent one; what a request began with holds to its end. */
static void
test_etag(void **state)
{
	static const char md5[] = "\"900150983cd24fb0d6963f7d28e17f72\"";
	static const struct {
		enum conf_etag etag, later;
		bool given, random;
	} cases[] = { { S3_ETAG_MD5, S3_ETAG_RANDOM, false, false },
		      { S3_ETAG_RANDOM, S3_ETAG_MD5, false, true },
		      { S3_ETAG_RANDOM, S3_ETAG_RANDOM, true, false } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xchg x;
		const char *v;

		rig.conf->s3.etag = cases[i].etag;
		begin_body(&x, "PUT", "/bkt/e", 3);
		if (cases[i].given)
			x_field(&x, "content-md5", "kAFQmDzST7DWlj99KOF/cg==");
		x_begin(&x);
		rig.conf->s3.etag = cases[i].later;
		feed(&x, "abc", 3, 2);
		rig_until(req_is_ready(x.rq));
		assert_int_equal(req_reply(x.rq)->status, 200);
		v = x_header(&x, "etag");
		assert_non_null(v);
		if (cases[i].random)
			assert_true(strlen(v) == 36 && strcmp(v + 33, "-r\"") == 0);
		else
			assert_string_equal(v, md5);
		x_end(&x);
	}
}

/* A core has so much for text and no more: 503, and then it works again. */
static void
test_text_bound(void **state)
{
	struct xchg x;

	rig.reqs->text_bytes = REQ_TEXT_TOTAL;
	x_init(&x, 0, "GET", "/bkt?list-type=2");
	assert_int_equal(x_run(&x), 503);
	x_end(&x);
	begin_body(&x, "POST", "/bkt?delete", 100);
	x_md5(&x, "");
	x_begin(&x);
	req_body(x.rq, "<Delete>", 8);
	rig_until(req_is_ready(x.rq));
	assert_int_equal(req_reply(x.rq)->status, 503);
	x_end(&x);
	rig_until(reqs_live(rig.reqs) == 0);
	assert_int_equal(rig.reqs->text_bytes, REQ_TEXT_TOTAL);
	rig.reqs->text_bytes = 0;
	assert_int_equal(text_request("GET", "/bkt?list-type=2", "", NULL, 0), 200);
}

/* ---- deletion of many ---- */

static void
test_deletes(void **state)
{
	char body[8192] = "<Delete>", out[16384];
	unsigned errors = 0;
	struct xchg x;

	for (int i = 0; i < 100; i++) {
		char key[64];

		snprintf(key, sizeof key, "many/%d", i);
		put_object(key, 100, 1);
		snprintf(body + strlen(body), sizeof body - strlen(body), "<Object><Key>%s</Key></Object>",
			 key);
	}
	strcat(body, "</Delete>");
	/* A key that fails does not keep the others. */
	mem_store_fail(rig.store, MEM_DELETE, -EROFS, 10, 3);
	assert_int_equal(text_request("POST", "/bkt?delete", body, out, sizeof out), 200);
	mem_store_fail(rig.store, MEM_DELETE, 0, 0, 0);
	for (const char *p = out; (p = strstr(p, "<Error>")); p++)
		errors++;
	assert_int_equal(errors, 3);
	/* The client leaves in the middle. */
	begin_body(&x, "POST", "/bkt?delete", strlen(body));
	x_md5(&x, body);
	x_begin(&x);
	mem_store_hold(rig.store, true);
	feed(&x, body, strlen(body), 1000);
	for (int i = 0; i < 10; i++)
		rig_turn();
	assert_false(req_is_ready(x.rq));
	x_end(&x);
	assert_int_equal(reqs_live(rig.reqs), 1);
	mem_store_hold(rig.store, false);
	rig_until(reqs_live(rig.reqs) == 0);
}

/* ---- forms ---- */

static size_t
make_form(char *out, size_t cap, const char *key, const unsigned char *file, size_t len)
{
	size_t n = (size_t)snprintf(
		out, cap,
		"--XY\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\n%s\r\n"
		"--XY\r\nContent-Disposition: form-data; name=\"x-amz-meta-a\"\r\n\r\nb\r\n"
		"--XY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n",
		key);

	assert_true(n + len + 64 < cap);
	memcpy(out + n, file, len);
	return n + len + (size_t)snprintf(out + n + len, 64, "\r\n--XY--\r\n");
}

static void
post_form(const char *body, size_t len, size_t piece, int want)
{
	struct xchg x;

	begin_body(&x, "POST", "/bkt", len);
	x_field(&x, "content-type", "multipart/form-data; boundary=XY");
	if (with_body(&x, body, len, piece) != want)
		fail_msg("a form in pieces of %zu: %d %s", piece, req_reply(x.rq)->status, x.rq->error);
	x_end(&x);
}

/* Whatever the pieces are that it comes in; a file that looks like a boundary all over. */
static void
test_form(void **state)
{
	enum { SMALL = 400, LARGE = 700001 };
	unsigned char *file = malloc(LARGE), *back = malloc(LARGE);
	char *body = malloc(LARGE + 1000);
	size_t len;

	for (size_t i = 0; i < LARGE; i++)
		file[i] = (unsigned char)"\r\n--X-a\r"[draw(8)];
	len = make_form(body, LARGE + 1000, "form", file, SMALL);
	for (size_t piece = 1; piece <= len; piece += piece < 40 ? 1 : 37) {
		post_form(body, len, piece, 204);
		assert_int_equal(get_body("/bkt/form", back, LARGE), SMALL);
		assert_memory_equal(file, back, SMALL);
	}
	len = make_form(body, LARGE + 1000, "form", file, LARGE);
	for (int i = 0; i < 8; i++) {
		post_form(body, len, 1 + draw(i < 4 ? 3000 : 200000), 204);
		assert_int_equal(get_body("/bkt/form", back, LARGE), LARGE);
		assert_memory_equal(file, back, LARGE);
	}
	/* Cut short: the old one stays. */
	body[len - 3] = 'Z';
	post_form(body, len, 5000, 400);
	assert_int_equal(get_body("/bkt/form", back, LARGE), LARGE);
	free(file);
	free(back);
	free(body);
}

/* A form that names the status it wants to see; asserts the answer, but only when the request is gone. */
static void
form_with_status(const char *status, int want, const char *want_body)
{
	const char *etag, *location, *type;
	char body[1024], out[1024] = "";
	struct xchg x;
	const struct reply *r;
	enum reply_body kind;
	int got, n = snprintf(
			 body, sizeof body,
			 "--XY\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\na b&c\r\n"
			 "--XY\r\nContent-Disposition: form-data; name=\"success_action_status\"\r\n\r\n"
			 "%s\r\n--XY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
			 "abc\r\n--XY--\r\n",
			 status);

	assert_true(n > 0 && (size_t)n < sizeof body);
	begin_body(&x, "POST", "/bkt", (size_t)n);
	x_field(&x, "content-type", "multipart/form-data; boundary=XY");
	got = with_body(&x, body, (size_t)n, 100);
	r = req_reply(x.rq);
	kind = r->body;
	snprintf(out, sizeof out, "%.*s", kind == REPLY_TEXT ? (int)r->len_bytes : 0, r->text);
	etag = x_header(&x, "etag");
	location = x_header(&x, "location");
	type = x_header(&x, "content-type");
	x_end(&x);
	assert_int_equal(got, want);
	assert_string_equal(out, want_body);
	assert_int_equal(kind, *want_body ? REPLY_TEXT : REPLY_EMPTY);
	assert_string_equal(type ? type : "", *want_body ? "application/xml" : "");
	assert_string_equal(etag ? etag : "", "\"900150983cd24fb0d6963f7d28e17f72\"");
	assert_string_equal(location ? location : "", "http://127.0.0.1:9000/bkt/a%20b%26c");
}

/* The answer to a form has a body when the form asked for 201, and only then. */
static void
test_form_status(void **state)
{
	form_with_status("201", 201,
			 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<PostResponse>"
			 "<Location>http://127.0.0.1:9000/bkt/a%20b%26c</Location>"
			 "<Bucket>bkt</Bucket><Key>a b&amp;c</Key>"
			 "<ETag>&quot;900150983cd24fb0d6963f7d28e17f72&quot;</ETag></PostResponse>");
	form_with_status("200", 200, "");
	form_with_status("204", 204, "");
	/* Any other one is none that a form may ask for. */
	form_with_status("202", 204, "");
}

/* ---- anything, and the client leaves whenever it likes ---- */

static void
random_request(struct xchg *x, const char *id)
{
	static const struct {
		const char *method, *target, *body;
	} kinds[] = {
		{ "GET", "/bkt?list-type=2&max-keys=3", NULL },
		{ "GET", "/bkt?list-type=2&delimiter=/", NULL },
		{ "GET", "/bkt?uploads", NULL },
		{ "GET", "/bkt?versions", NULL },
		{ "GET", "/", NULL },
		{ "GET", "/bkt/k?tagging", NULL },
		{ "GET", "/bkt/k?attributes", NULL },
		{ "GET", "/bkt?cors", NULL },
		{ "DELETE", "/bkt?cors", NULL },
		{ "DELETE", "/bkt/k", NULL },
		{ "POST", "/bkt/k?uploads", "" },
		{ "PUT", "/bkt/k", "some bytes of an object" },
		{ "PUT", "/bkt/k?tagging",
		  "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>" },
		{ "POST", "/bkt?delete",
		  "<Delete><Object><Key>k</Key></Object><Object><Key>x</Key></Object></Delete>" },
		{ "PUT", "/bkt?cors",
		  "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</"
		  "AllowedMethod>"
		  "</CORSRule></CORSConfiguration>" },
		{ "PUT", "/bkt/k?uploadId=ID&partNumber=1", "some bytes of a part" },
		{ "GET", "/bkt/k?uploadId=ID", NULL },
		{ "POST", "/bkt/k?uploadId=ID",
		  "<CompleteMultipartUpload><Part><PartNumber>1</"
		  "PartNumber><ETag>\"00000000000000000000000000000000\""
		  "</ETag></Part></CompleteMultipartUpload>" },
		{ "COPY", "/bkt/c", NULL },
		{ "OPTIONS", "/bkt/k", NULL },
	};
	size_t n = draw(sizeof kinds / sizeof *kinds);
	const char *body = kinds[n].body, *at;
	bool copy = strcmp(kinds[n].method, "COPY") == 0;
	static char target[256];

	at = strstr(kinds[n].target, "ID");
	snprintf(target, sizeof target, "%.*s%s%s", at ? (int)(at - kinds[n].target) : 200, kinds[n].target,
		 at ? id : "", at ? at + 2 : "");
	x_init(x, 0, copy ? "PUT" : kinds[n].method, target);
	if (copy)
		x_field(x, "x-amz-copy-source", "bkt/k");
	if (draw(3) == 0)
		x_field(x, "origin", "http://x.test");
	if (body)
		x_field(x, "content-length", "%zu", strlen(body));
	if (strstr(target, "?delete"))
		x_md5(x, body);
	/* Those that were left behind may still wait for the store. */
	rig_until(reqs_live(rig.reqs) < rig.reqs->nr);
	x_begin(x);
	if (body && body[0] && draw(4))
		feed(x, body, strlen(body), 1 + draw(30));
	else if (body && draw(2))
		req_body_end(x->rq);
	for (uint32_t turns = draw(2) ? draw(30) : 3000; turns > 0 && !req_is_ready(x->rq); turns--)
		rig_turn();
	x_end(x);
}

static void
test_random(void **state)
{
	struct mem_store_tuning tuning = {
		.seed = seed, .delay_max_us = 100, .open_at_once = 50, .stat_at_once = 50, .other_at_once = 30
	};
	struct xchg x;
	char id[64];

	mem_store_tune(rig.store, &tuning);
	make_upload("k", id);
	for (int i = 0; i < 1500; i++) {
		if (draw(10) == 0)
			mem_store_fail(rig.store, (enum mem_fault)draw(MEM_FAULT_NR),
				       draw(2) ? -EIO : -ENOSPC, draw(3), 1 + draw(2));
		random_request(&x, id);
	}
	for (int k = 0; k < MEM_FAULT_NR; k++)
		mem_store_fail(rig.store, (enum mem_fault)k, 0, 0, 0);
	rig_until(reqs_live(rig.reqs) == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_text, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_text_frames, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_expiration, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_etag, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_text_bound, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_deletes, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_form, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_form, narrow_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_form_status, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_random, s3_start, s3_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
