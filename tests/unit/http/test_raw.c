/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must not get past the door (claim TM20): requests whose end is a matter of opinion, malformed heads,
 * heads that are too large; and what must: pipelines in order.  Every case proves the same thing: nothing
 * behind a refused request on that connection is taken for a request.
 */
#include "serve.h"

/* What an attacker wants to have taken for a request of its own; /now counts in fake_req_counts.begun. */
#define HTTP_TEST_TARGET 9000
#define SMUGGLED "GET /now HTTP/1.1\r\nHost: x\r\n\r\n"

struct attack {
	const char *name, *text;
	int status; /* of the first and only answer */
};

/* The server may answer what it refuses, and must then close; begun: requests that req/ may have seen (its
 * 400 included). */
static void
expect_refused(struct serve *s, const char *text, size_t len, const char *name, int status)
{
	int fd = client(s), err, before = fake_req_counts.begun;
	char *all, *second;

	put_bytes(fd, text, len);
	all = get_all(fd, NULL, &err);
	second = strstr(all + (*all ? 1 : 0), "HTTP/1.1 ");
	/* The library sends the head of its own answer to a malformed Content-Length twice. */
	if (second && strncmp(all, second, (size_t)(second - all)) == 0 && strstr(second, "<html>"))
		second = strstr(second + 1, "HTTP/1.1 ");
	if (strncmp(all, "HTTP/1.1 ", 9) != 0 || atoi(all + 9) != status || second || err)
		fail_msg("%s: wanted one %d, got (errno %d):\n%s", name, status, err, all);
	if (!strcasestr(all, "\r\nconnection: close\r\n"))
		fail_msg("%s: does not say that it closes:\n%s", name, all);
	assert_true(fake_req_counts.begun <= before + 1);
	free(all);
	close(fd);
}

static const struct attack attacks[] = {
	{ "CL.TE",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: "
	  "chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
	  400 },
	{ "TE.CL",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: "
	  "4\r\n\r\n0\r\n\r\n" SMUGGLED,
	  400 },
	{ "CL.TE without a body",
	  "GET /now HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" SMUGGLED,
	  400 },
	{ "CL.CL, 0 first",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 31\r\n\r\n" SMUGGLED, 400 },
	{ "CL.CL, 0 last",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 31\r\nContent-Length: 0\r\n\r\n" SMUGGLED, 400 },
	{ "CL.CL, equal",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\ncontent-length: 0\r\n\r\n" SMUGGLED, 400 },
	{ "CL list", "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 0\r\n\r\n" SMUGGLED, 400 },
	{ "CL sign", "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +31\r\n\r\n" SMUGGLED, 400 },
	{ "CL negative", "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n" SMUGGLED, 400 },
	{ "CL hexadecimal", "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1f\r\n\r\n" SMUGGLED, 400 },
	{ "CL empty", "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n" SMUGGLED, 400 },
	{ "TE twice",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
	  "chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
	  400 },
	{ "TE identity", "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n" SMUGGLED,
	  400 },
	{ "TE list",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
	  400 },
	{ "TE in disguise",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" SMUGGLED, 400 },
	{ "TE with a vertical tab",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n" SMUGGLED, 400 },
	{ "blank before the colon", "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length : 31\r\n\r\n" SMUGGLED,
	  400 },
	{ "tab before the colon",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n" SMUGGLED, 400 },
	{ "lone CR in a value", "PUT /now HTTP/1.1\r\nHost: x\r\nX: a\rContent-Length: 31\r\n\r\n" SMUGGLED,
	  400 },
	{ "control character in a name",
	  "PUT /now HTTP/1.1\r\nHost: x\r\nCon\001tent-Length: 31\r\n\r\n" SMUGGLED, 400 },
	{ "fold in front of a coding",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding:\r\n "
	  "chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
	  400 },
	{ "no Host", "GET /now HTTP/1.1\r\n\r\n" SMUGGLED, 400 },
	{ "two Hosts", "GET /now HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" SMUGGLED, 400 },
	{ "blank in the target", "GET /now /b HTTP/1.1\r\nHost: x\r\n\r\n" SMUGGLED, 400 },
	{ "method that is none", "G(T /now HTTP/1.1\r\nHost: x\r\n\r\n" SMUGGLED, 400 },
	{ "chunk size that is none",
	  "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n" SMUGGLED, 400 },
};

static void
test_smuggling(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);

	for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++)
		expect_refused(s, attacks[i].text, strlen(attacks[i].text), attacks[i].name,
			       attacks[i].status);
	wait_for(s->conns == 0);
	serve_stop(s);
}

/* The library ends a chunk's line at a bare LF, a reader that waits for CRLF does not, so a request may
 * lie in what is one body to that one: it is answered, and nothing behind it on that connection. */
static void
test_behind_chunks(void **state)
{
#define CHUNKED "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	static const char *const texts[] = {
		CHUNKED "3\r\nabc\r\n0\r\n\r\n" SMUGGLED,
		CHUNKED "3;\nabc\r\n0\r\n\r\n" SMUGGLED "\r\n0\r\n\r\n",
		CHUNKED "3\nabc\n0\n\n" SMUGGLED,
		CHUNKED "3\r\nabc\n0\r\nX: y\r\n\r\n" SMUGGLED,
	};
#undef CHUNKED
	struct serve *s = serve_start(16, 60 * NS_PER_S);

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		int fd = client(s), before = fake_req_counts.begun;
		struct answer a;
		char *body;

		put_text(fd, texts[i]);
		assert_true(get_answer(fd, &a, false, &body));
		assert_string_equal(body, "abc");
		assert_true(a.has_close);
		expect_end(fd);
		assert_int_equal(fake_req_counts.begun, before + 1);
		free(body);
		close(fd);
	}
	wait_for(s->conns == 0);
	serve_stop(s);
}

/* NUL ends texts in the library: nothing may hide behind it. */
static void
test_nul(void **state)
{
#define LENGTH "Content-Length: 31\r\n"
	static const char in_value[] = "PUT /now HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n" LENGTH "\r\n" SMUGGLED;
	static const char in_last[] =
		"PUT /now HTTP/1.1\r\nHost: x\r\n" LENGTH "X: a\0\0\0b\r\n\r\n" SMUGGLED;
	static const char in_name[] = "PUT /now HTTP/1.1\r\nHost: x\r\n" LENGTH "X\0Y: a\r\n\r\n" SMUGGLED;
	static const char in_target[] = "PUT /now\0w HTTP/1.1\r\nHost: x\r\n" LENGTH "\r\n" SMUGGLED;
	static const char in_query[] = "PUT /now?a\0w HTTP/1.1\r\nHost: x\r\n" LENGTH "\r\n" SMUGGLED;
#undef LENGTH
	struct serve *s = serve_start(16, 60 * NS_PER_S);

	expect_refused(s, in_value, sizeof in_value - 1, "NUL in a value", 400);
	expect_refused(s, in_last, sizeof in_last - 1, "NUL in the last value", 400);
	expect_refused(s, in_name, sizeof in_name - 1, "NUL in a name", 400);
	expect_refused(s, in_target, sizeof in_target - 1, "NUL in the target", 400);
	expect_refused(s, in_query, sizeof in_query - 1, "NUL in the query", 400);
	serve_stop(s);
}

/* Folded lines: 0.9.75 glues what follows to the field's *name*; refused as RFC 9112 5.2 allows, wherever
 * they come. */
static void
test_fold(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	static const char *const texts[] = {
		"GET /now HTTP/1.1\r\nHost: x\r\nX-A: one\r\n\ttwo\r\n   three\r\nX-B: b\r\n\r\n" SMUGGLED,
		"GET /now HTTP/1.1\r\nHost: x\r\nX-A:\r\n two\r\n\r\n" SMUGGLED,
		"GET /now HTTP/1.1\nHost: x\nX-A:\n two\n\n" SMUGGLED,
		"GET /now HTTP/1.1\r\nHost: x\r\nX-A: one\r\n \r\n\r\n" SMUGGLED,
		"GET /now HTTP/1.1\r\nHost:\r\n x\r\nX-B: b\r\n\r\n" SMUGGLED,
		"PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n "
		"chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" SMUGGLED,
		"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\t31\r\n\r\n" SMUGGLED,
		"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n 1\r\n\r\n" SMUGGLED,
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		expect_refused(s, texts[i], strlen(texts[i]), texts[i], 400);
	serve_stop(s);
}

/* Line ends of LF alone are taken, everywhere alike; absolute targets come through raw. */
static void
test_liberal(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	int fd = client(s);
	struct answer a;
	char *body;

	put_text(fd, "PUT /echo HTTP/1.1\nHost: x\nContent-Length: 3\n\nabc" SMUGGLED);
	assert_true(get_answer(fd, &a, false, &body));
	assert_string_equal(body, "abc");
	free(body);
	expect_status(fd, &a, 200);
	put_text(fd, "GET http://other:80/fields?a=b HTTP/1.1\r\nHost: x\r\n\r\n");
	expect_status(fd, &a, 404); /* the script does not know it: it came as it was */
	put_text(fd, "GET /fields?http://x/%00?&=;a HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_true(get_answer(fd, &a, false, &body));
	assert_non_null(strstr(body, "GET /fields?http://x/%00?&=;a\n"));
	free(body);
	/* HTTP/1.0 closes by itself. */
	put_text(fd, "GET /now HTTP/1.0\r\nHost: x\r\n\r\n");
	expect_status(fd, &a, 200);
	expect_end(fd);
	close(fd);
	serve_stop(s);
}

/* A head of n bytes. */
static char *
head_of(size_t n)
{
	static const char begin[] = "GET /now HTTP/1.1\r\nHost: x\r\n";
	char *p = malloc(n + 1), *q = p + sizeof begin - 1;

	memcpy(p, begin, sizeof begin);
	while ((size_t)(q - p) + 4 < n) {
		size_t len = n - (size_t)(q - p) - 2;

		len = len > 1010 ? 1000 : len; /* lines of 1000, the rest in the last one */
		memcpy(q, "X-Pad: ", 7);
		memset(q + 7, 'p', len - 9);
		memcpy(q + len - 2, "\r\n", 2);
		q += len;
	}
	memcpy(q, "\r\n", 3);
	assert_int_equal(q + 2 - p, n);
	return p;
}

/* A head of some 15000 bytes in so many fields. */
static char *
fields_of(int nr)
{
	char *p = malloc(16384), *q = p + sprintf(p, "GET /now HTTP/1.1\r\nHost: x\r\n");

	for (int i = 0; i < nr; i++)
		q += sprintf(q, "X-%03d: %0*d\r\n", i, 15000 / nr - 9, i);
	memcpy(q, "\r\n", 3);
	return p;
}

static void
expect_taken(struct serve *s, const char *head)
{
	int fd = client(s);
	struct answer a;

	put_text(fd, head);
	expect_status(fd, &a, 200);
	assert_false(a.has_close);
	close(fd);
}

static void
test_sizes(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	static const size_t fits[] = { 1000, 8000, 15000 }, too_large[] = { 17000, 24000, 40000, 100000 };
	char *p, many[8192], *q = many;

	for (size_t i = 0; i < 3; i++) {
		p = head_of(fits[i]);
		expect_taken(s, p);
		free(p);
	}
	for (size_t i = 0; i < 4; i++) {
		p = head_of(too_large[i]);
		expect_refused(s, p, too_large[i], "head too large", 431);
		free(p);
	}
	/* More fields than there are places for. */
	q += sprintf(q, "GET /now HTTP/1.1\r\nHost: x\r\n");
	for (int i = 0; i < DIALECT_FIELDS_MAX; i++)
		q += sprintf(q, "X-%d: %d\r\n", i, i);
	q += sprintf(q, "\r\n" SMUGGLED);
	expect_refused(s, many, (size_t)(q - many), "too many fields", 431);
	/* As much text, and what each field takes besides. */
	p = fields_of(60);
	expect_taken(s, p);
	free(p);
	p = fields_of(100);
	expect_refused(s, p, strlen(p), "many long fields", 431);
	free(p);
	/* A target beyond what is kept. */
	p = malloc(HTTP_TEST_TARGET + 64);
	q = p + sprintf(p, "GET /");
	memset(q, 'a', HTTP_TEST_TARGET);
	q += HTTP_TEST_TARGET;
	q += sprintf(q, " HTTP/1.1\r\nHost: x\r\n\r\n");
	expect_refused(s, p, (size_t)(q - p), "target too long", 400);
	free(p);
	serve_stop(s);
}

/* 200 requests in one go, with and without waiting, bodies between them: answered in order. */
static void
test_pipeline(void **state)
{
	enum { N = 200 };
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	int fd = client(s);
	char *text = malloc(N * 128), *p = text;
	struct answer a;

	for (int i = 0; i < N; i++) {
		if (i % 4 == 0)
			p += sprintf(p, "GET /status/%d HTTP/1.1\r\nHost: x\r\n\r\n", 200 + i);
		else if (i % 4 == 1)
			p += sprintf(p, "GET /delay/%d HTTP/1.1\r\nHost: x\r\n\r\n", i % 3);
		else if (i % 4 == 2)
			p += sprintf(p, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n%04d", i);
		else
			p += sprintf(p, "GET /stream/%d/50/0 HTTP/1.1\r\nHost: x\r\n\r\n", i % 40 + 1);
	}
	put_text(fd, text);
	for (int i = 0; i < N; i++) {
		char want[16], *body;

		assert_true(get_answer(fd, &a, i % 4 == 0 && (200 + i == 204 || 200 + i == 304), &body));
		snprintf(want, sizeof want, "%04d", i);
		if (i % 4 == 0)
			assert_int_equal(a.status, 200 + i);
		else
			assert_int_equal(a.status, 200);
		if (i % 4 == 2)
			assert_string_equal(body, want);
		if (i % 4 == 3)
			assert_int_equal(a.body_len, i % 40 + 1);
		assert_false(a.has_close);
		free(body);
	}
	close(fd);
	free(text);
	serve_stop(s);
}

/* A head in single bytes, and an answer refused in the middle of a pipeline: what is behind it is not looked
 * at. */
static void
test_pieces(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	static const char text[] =
		"PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
	int fd = client(s), before;
	struct answer a;
	char *body;

	for (size_t i = 0; i + 1 < sizeof text; i++) {
		put_bytes(fd, text + i, 1);
		if (i % 8 == 0)
			usleep(500);
	}
	assert_true(get_answer(fd, &a, false, &body));
	assert_string_equal(body, "abc");
	free(body);
	close(fd);
	fd = client(s);
	before = fake_req_counts.begun;
	put_text(fd, SMUGGLED "GET /reject HTTP/1.1\r\nHost: x\r\n\r\n" SMUGGLED SMUGGLED);
	expect_status(fd, &a, 200);
	expect_status(fd, &a, 403);
	assert_true(a.has_close);
	expect_end(fd);
	assert_int_equal(fake_req_counts.begun, before + 2);
	close(fd);
	serve_stop(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_smuggling), cmocka_unit_test(test_nul),
		cmocka_unit_test(test_fold),      cmocka_unit_test(test_liberal),
		cmocka_unit_test(test_sizes),     cmocka_unit_test(test_pipeline),
		cmocka_unit_test(test_pieces),    cmocka_unit_test(test_behind_chunks),
	};

	if (getenv("T"))
		cmocka_set_test_filter(getenv("T"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
