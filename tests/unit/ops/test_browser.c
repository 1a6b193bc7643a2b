/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims TM30, TM32: what a stranger's web page can make a browser send to a listener that serves unsigned
 * requests: writes without preflight, and requests under a name that was pointed here.  What browsers send
 * with leave goes on.
 */
#include "tests/unit/ops/surface.h"

#include <strings.h>

#define FORM                                                                                                 \
	"--XY\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nform\r\n"                               \
	"--XY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nfile\r\n--XY--\r\n"
#define ALL_OF "<Delete><Object><Key>none</Key></Object></Delete>"

/* Headers, "name: value" lines; Host is 127.0.0.1:9000 unless they say another. */
static void
set_headers(struct xchg *x, const char *headers)
{
	for (const char *p = headers; *p;) {
		size_t len = strcspn(p, "\n"), name = strcspn(p, ":");
		char *copy = x->text + x->used;

		memcpy(copy, p, name);
		copy[name] = 0;
		x->used += name + 1;
		x_field(x, copy, "%.*s", (int)(len - name - 2), p + name + 2);
		if (strcasecmp(copy, "host") == 0)
			x->fields[0] = x->fields[--x->field_nr];
		p += len + (p[len] != 0);
	}
}

static int
ask(int listen, const char *method, const char *target, const char *headers, const char *body, char *why,
    size_t cap)
{
	struct xchg x;
	const struct reply *r;
	int status;

	x_init(&x, listen, method, target);
	set_headers(&x, headers);
	if (body)
		x_field(&x, "content-length", "%zu", strlen(body));
	if (strstr(target, "?delete"))
		x_md5(&x, body);
	status = body ? with_body(&x, body, strlen(body), 7) : x_run(&x);
	r = req_reply(x.rq);
	snprintf(why, cap, "%.*s", r->body == REPLY_TEXT ? (int)r->len_bytes : 0,
		 r->body == REPLY_TEXT ? r->text : "");
	x_end(&x);
	return status;
}

static void
expect(int listen, const char *method, const char *target, const char *headers, const char *body, int want)
{
	char why[4096];
	int status = ask(listen, method, target, headers, body, why, sizeof why);

	if (status != want)
		fail_msg("%s %s with \"%s\": %d, not %d: %s", method, target, headers, status, want, why);
	if (want == 403 &&
	    (!strstr(why, "AccessDenied") ||
	     (!strstr(why, "Host:") && !strstr(why, "Origin:") && !strstr(why, "Sec-Fetch-Site:"))))
		fail_msg("%s %s with \"%s\": nothing says why: %s", method, target, headers, why);
}

#define CROSS "sec-fetch-site: cross-site"
#define EVIL "origin: http://evil.example"

/* Everything that changes something and needs no preflight, and what does. */
static void
test_writes(void **state)
{
	static const struct {
		const char *method, *target, *type, *body;
		int good;
	} writes[] = {
		{ "POST", "/bkt", "content-type: multipart/form-data; boundary=XY", FORM, 204 },
		{ "POST", "/bkt?delete", "content-type: text/plain", ALL_OF, 200 },
		{ "POST", "/bkt/key?uploads", "content-type: text/plain", "", 200 },
		{ "PUT", "/bkt/key", "content-type: text/plain", "bytes", 200 },
		{ "PUT", "/bkt/copy", "x-amz-copy-source: /bkt/key", NULL, 200 },
		{ "DELETE", "/bkt/key", "x: y", NULL, 204 },
		{ "PUT", "/bkt?tagging", "x: y",
		  "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>", 200 },
		{ "PUT", "/another", "x: y", NULL, 200 },
	};
	static const struct {
		const char *headers;
		bool good;
	} senders[] = {
		{ "user-agent: curl", true },
		{ CROSS, false },
		{ EVIL, false },
		{ CROSS "\n" EVIL, false },
		{ CROSS "\norigin: null", false },
		{ "origin: null", false },
		/* Another port of this machine is another origin. */
		{ "sec-fetch-site: same-site\norigin: http://127.0.0.1:8080", false },
		{ "sec-fetch-site: same-site", false },
		/* The contradiction is nobody's who means well. */
		{ CROSS "\norigin: http://127.0.0.1:9000", false },
		{ "origin: http://127.0.0.1:9000.evil.example", false },
		{ "origin: ftp://127.0.0.1:9000", false },
		/* A page that lies in a bucket here, and what the person at the browser typed. */
		{ "sec-fetch-site: same-origin\norigin: http://127.0.0.1:9000", true },
		{ "origin: http://127.0.0.1:9000", true },
		{ "sec-fetch-site: none", true },
		/* The page's name was pointed here: it is the same origin as far as a browser knows. */
		{ "host: evil.example:9000\norigin: http://evil.example:9000", false },
	};

	for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
		for (size_t k = 0; k < sizeof senders / sizeof *senders; k++) {
			char headers[512];

			/* What the request finds is the same each time. */
			expect(0, "PUT", "/bkt/key", "", "bytes", 200);
			snprintf(headers, sizeof headers, "%s\n%s", writes[i].type, senders[k].headers);
			if (strcmp(writes[i].target, "/another") == 0 && senders[k].good)
				expect(0, "DELETE", "/another", "", NULL, k == 0 ? 404 : 204);
			expect(0, writes[i].method, writes[i].target, headers, writes[i].body,
			       senders[k].good ? writes[i].good : 403);
		}
	}
	/* Nothing that was refused is there. */
	expect(0, "PUT", "/bkt/never", CROSS, "bytes", 403);
	expect(0, "GET", "/bkt/never", "", NULL, 404);
	/* What changes nothing is shown to nobody else by the browser itself. */
	expect(0, "GET", "/bkt/key", CROSS "\n" EVIL, NULL, 200);
	expect(0, "HEAD", "/bkt/key", CROSS, NULL, 200);
	expect(0, "GET", "/bkt", CROSS, NULL, 200);
}

/* The owner of the bucket has said that pages of that origin may. */
static void
test_cors(void **state)
{
	expect(0, "PUT", "/bkt?cors", "",
	       "<CORSConfiguration><CORSRule><AllowedMethod>PUT</AllowedMethod>"
	       "<AllowedOrigin>https://*.example.org</AllowedOrigin></CORSRule></CORSConfiguration>",
	       200);
	expect(0, "PUT", "/bkt/key", CROSS "\norigin: https://app.example.org", "bytes", 200);
	expect(0, "PUT", "/bkt/key", "origin: https://app.example.org", "bytes", 200);
	/* Another method, another origin, another bucket, no origin at all. */
	expect(0, "DELETE", "/bkt/key", CROSS "\norigin: https://app.example.org", NULL, 403);
	expect(0, "PUT", "/bkt/key", CROSS "\n" EVIL, "bytes", 403);
	expect(0, "PUT", "/new-bucket", CROSS "\norigin: https://app.example.org", NULL, 403);
	expect(0, "PUT", "/bkt/key", CROSS, "bytes", 403);
	expect(0, "POST", "/bkt?delete", CROSS "\norigin: https://app.example.org", ALL_OF, 403);
	expect(0, "OPTIONS", "/bkt/key",
	       CROSS "\norigin: https://app.example.org\naccess-control-request-method: PUT", NULL, 200);
}

/* A page sees why its request was refused, also where the request was not understood: the refusal has the headers of the rule. */
static void
test_refusals(void **state)
{
	static const struct {
		const char *method, *target, *headers;
		int status;
		bool allowed;
	} cases[] = {
		{ "GET", "/bkt/absent", "origin: http://app.test", 404, true },
		{ "PUT", "/bkt/key", "origin: http://app.test\nx-amz-acl: public-read", 400, true },
		{ "PUT", "/bkt/key",
		  "origin: http://app.test\ncontent-length: 0\nx-amz-storage-class: GLACIER", 501, true },
		{ "PUT", "/bkt/key?torrent", "origin: http://app.test", 501, true },
		{ "PUT", "/bkt/key?partNumber=0&uploadId=u00000000000000000000000000000007",
		  "origin: http://app.test", 400, true },
		{ "GET", "/bkt/key?versionId=7", "origin: http://app.test", 404, true },
		{ "GET", "/bkt?list-type=2&max-keys=x", "origin: http://app.test", 400, true },
		/* No page of that origin, no such method, no such bucket. */
		{ "PUT", "/bkt/key?torrent", "origin: http://other.test", 501, false },
		{ "DELETE", "/bkt/key?torrent", "origin: http://app.test", 501, false },
		{ "PUT", "/other/key?torrent", "origin: http://app.test", 501, false },
		/* What follows such a head is no body: nothing is waited for. */
		{ "PUT", "/bkt/key", "origin: http://app.test\ntransfer-encoding: chunked\ncontent-length: 5",
		  400, false },
	};
	struct xchg x;
	int status;

	expect(0, "PUT", "/bkt?cors", "",
	       "<CORSConfiguration><CORSRule><AllowedMethod>PUT</AllowedMethod><AllowedMethod>GET"
	       "</AllowedMethod><AllowedOrigin>http://app.test</AllowedOrigin></CORSRule></"
	       "CORSConfiguration>",
	       200);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		x_init(&x, 0, cases[i].method, cases[i].target);
		set_headers(&x, cases[i].headers);
		status = x_run(&x);
		if (status != cases[i].status ||
		    !!x_header(&x, "access-control-allow-origin") != cases[i].allowed)
			fail_msg("%s %s with \"%s\": %d, or the rule's headers", cases[i].method,
				 cases[i].target, cases[i].headers, status);
		x_end(&x);
	}
}

/* A name that a stranger's name server points at a loopback address. */
static void
test_names(void **state)
{
	static const char *const ours[] = { "127.0.0.1", "127.0.0.1:9000", "localhost:9000", "[::1]:9000" };
	static char domain[] = "s3.test";
	struct conf_s3 s3 = { .domains = { domain }, .domain_nr = 1 };
	struct xchg x;

	expect(0, "PUT", "/bkt/key", "", "bytes", 200);
	expect(1, "PUT", "/key", "", "bytes", 200);
	/* On an address that others reach any name may be the right one. */
	expect(0, "GET", "/bkt/key", "host: store.example", NULL, 200);
	expect(1, "GET", "/key", "host: store.example", NULL, 200);
	for (int i = 0; i < 2; i++)
		memcpy(&rig.conf->listen[i].sa, &rig_sa, sizeof rig_sa);
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
		char headers[64];

		snprintf(headers, sizeof headers, "host: %s", ours[i]);
		expect(0, "GET", "/bkt/key", headers, NULL, 200);
		expect(1, "GET", "/key", headers, NULL, 200);
	}
	expect(0, "GET", "/bkt/key", "host: evil.example:9000", NULL, 403);
	expect(0, "GET", "/", "host: evil.example:9000", NULL, 403);
	expect(0, "POST", "/bkt", "host: evil.example:9000\ncontent-type: multipart/form-data; boundary=XY",
	       FORM, 403);
	expect(0, "GET", "/bkt/key", "host: bkt.s3.test", NULL, 403);
	x_init(&x, 0, "GET", "/key");
	x.field_nr = 0;
	x_field(&x, "host", "bkt.s3.test:9000");
	x.in.in.s3 = &s3;
	assert_int_equal(x_run(&x), 200);
	x_end(&x);
	/* The dialect without XML: the status is what counts. */
	x_init(&x, 1, "GET", "/key");
	x.field_nr = 0;
	x_field(&x, "host", "evil.example:10000");
	assert_int_equal(x_run(&x), 403);
	x_end(&x);
	x_init(&x, 1, "DELETE", "/key");
	x_field(&x, "origin", "http://evil.example");
	assert_int_equal(x_run(&x), 403);
	x_end(&x);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_writes, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_cors, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_refusals, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_names, s3_start, s3_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
