/* SPDX-License-Identifier: Apache-2.0 */
/* http/ over real sockets: replies of every kind, bodies, streams, waiting, clients that go away, draining
 * and stopping. */
#include "serve.h"

#include "base/crc64.h"
#include "tests/fake/hook_clock.h"

#include <poll.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define HEAD(path) "HEAD " path " HTTP/1.1\r\nHost: x\r\n\r\n"

static void
test_replies(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	int fd = client(s);
	struct answer a;
	char *body, v[64];

	/* All on one connection. */
	put_text(fd, GET("/now"));
	expect_status(fd, &a, 200);
	assert_int_equal(a.content_length, 0);
	assert_int_equal(a.lengths, 1);
	assert_false(a.has_close);
	assert_non_null(strstr(a.head, "\r\nx-amz-request-id: 0123456789ABCDEF\r\n")); /* the case is ours */
	assert_non_null(answer_header(&a, "date", v, sizeof v));
	put_text(fd, "PUT /now HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
	expect_status(fd, &a, 200);
	assert_false(a.has_close);
	put_text(fd, GET("/text/100000"));
	assert_true(get_answer(fd, &a, false, &body));
	assert_int_equal(a.body_len, 100000);
	assert_int_equal(strspn(body, "x"), 100000);
	free(body);
	put_text(fd, HEAD("/text/5368709120"));
	assert_true(get_answer(fd, &a, true, NULL));
	assert_int_equal(a.content_length, 5368709120);
	assert_int_equal(a.lengths, 1);
	put_text(fd, HEAD("/text/0"));
	assert_true(get_answer(fd, &a, true, NULL));
	assert_int_equal(a.content_length, 0);
	put_text(fd, GET("/text/0"));
	assert_true(get_answer(fd, &a, false, NULL));
	assert_int_equal(a.content_length, 0);
	put_text(fd, GET("/delay/20"));
	expect_status(fd, &a, 200);
	put_text(fd, GET("/status/304"));
	expect_status(fd, &a, 304);
	put_text(fd, GET("/now"));
	assert_true(get_answer(fd, &a, false, NULL));
	assert_int_equal(s->conns, 1);
	close(fd);
	wait_for(s->conns == 0);
	assert_int_equal(fake_req_counts.sent, 9);
	serve_stop(s);
}

/* Replies without a body are made over again from the last one: nothing of that may be seen. */
static void
test_replies_again(void **state)
{
	static const char *const paths[] = { "/status/200", "/status/404", "/status/204", "/now",
					     "/now",        "/status/412", "/text/3",     "/status/200",
					     "/reject",     "/status/200" };
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	int fd = client(s);

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		char request[128], v[64];
		struct answer a;
		int status = strncmp(paths[i], "/status/", 8) == 0 ? atoi(paths[i] + 8) : 200;

		snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", paths[i]);
		put_text(fd, request);
		assert_true(get_answer(fd, &a, false, NULL));
		assert_non_null(answer_header(&a, "x-path", v, sizeof v));
		assert_string_equal(v, paths[i]);
		assert_non_null(strstr(a.head, "\r\nx-amz-request-id: 0123456789ABCDEF\r\n"));
		if (strcmp(paths[i], "/reject") != 0) {
			assert_int_equal(a.status, status);
			assert_false(a.has_close);
			continue;
		}
		assert_int_equal(a.status, 403);
		assert_true(a.has_close);
		close(fd);
		fd = client(s);
	}
	close(fd);
	wait_for(s->conns == 0);
	serve_stop(s);
}

static void
test_fields(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	int fd = client(s);
	struct answer a;
	char *body;

	/* Raw target, repeats, order, blanks around values, empty values. */
	put_text(fd, "GET /fields%2Fa%20b/?x=%41&y&z=+ HTTP/1.1\r\nHost: x\r\nX-A: 1\r\nx-a:  2 "
		     "\r\nEmpty:\r\nX-a: 3\r\n\r\n");
	assert_true(get_answer(fd, &a, false, &body));
	assert_string_equal(body,
			    "GET /fields%2Fa%20b/?x=%41&y&z=+\nHost: x\nX-A: 1\nx-a: 2\nEmpty: \nX-a: 3\n");
	free(body);
	close(fd);
	serve_stop(s);
}

static void
test_body(void **state)
{
	enum { N = 300000 };
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	int fd = client(s);
	struct answer a;
	char *data = malloc(N), *body, head[128];

	for (int i = 0; i < N; i++)
		data[i] = (char)(i * 7 >> 3);
	snprintf(head, sizeof head, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", N);
	put_text(fd, head);
	put_bytes(fd, data, N);
	assert_true(get_answer(fd, &a, false, &body));
	assert_int_equal(a.body_len, N);
	assert_memory_equal(body, data, N);
	assert_false(a.has_close);
	free(body);
	/* Chunked. */
	put_text(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
		     "chunked\r\n\r\n5;ext=1\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n"
		     "0\r\nTrailer: y\r\n\r\n");
	assert_true(get_answer(fd, &a, false, &body));
	assert_string_equal(body, "hello world");
	free(body);
	/* What stands behind chunks is never taken for a request. */
	assert_true(a.has_close);
	expect_end(fd);
	close(fd);
	fd = client(s);
	/* An empty body of either kind. */
	put_text(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
	expect_status(fd, &a, 200);
	assert_true(a.has_close);
	expect_end(fd);
	close(fd);
	fd = client(s);
	/* One that is taken in small parts, with pauses in which nothing is taken. */
	put_text(fd, "PUT /slow/3000/2 HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n");
	put_bytes(fd, data, 60000);
	assert_true(get_answer(fd, &a, false, &body));
	assert_string_equal(body, "60000");
	free(body);
	close(fd);
	free(data);
	serve_stop(s);
}

/* A reply in the middle of a body: the rest is read and thrown away, and the connection lives. */
static void
test_mid_body(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	int fd = client(s);
	struct answer a;
	char data[50000] = { 0 };

	put_text(fd, "PUT /mid/1000 HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n");
	put_bytes(fd, data, sizeof data);
	put_text(fd, GET("/now"));
	expect_status(fd, &a, 403);
	expect_status(fd, &a, 200);
	close(fd);
	serve_stop(s);
}

/* One that is not to wait for the rest of a body leaves while that still comes, and the connection with
 * it. */
static void
test_mid_body_at_once(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	struct pollfd p = { .events = POLLIN };
	struct answer a;

	p.fd = client(s);
	put_text(p.fd, "PUT /mid-at-once/3 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
	/* Never so still that it would look stalled. */
	while (poll(&p, 1, 10) == 0)
		put_text(p.fd, "x");
	expect_status(p.fd, &a, 403);
	assert_true(a.has_close);
	expect_end(p.fd);
	close(p.fd);
	serve_stop(s);
}

/* A reply before any of the body: it arrives although the client goes on sending,
 * and the connection closes. */
static void
test_early_reply(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	static char data[1 << 20];
	static const char *const paths[] = { "/reject", "/late-reject/20", "/full" };

	for (int i = 0; i < 3; i++) {
		int fd = client(s);
		struct answer a;
		char head[128];

		snprintf(head, sizeof head, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n",
			 paths[i]);
		put_text(fd, head);
		for (int k = 0; k < 2; k++)
			put_bytes(fd, data, sizeof data);
		expect_status(fd, &a, i == 2 ? 503 : 403);
		assert_true(a.has_close);
		expect_end(fd);
		close(fd);
	}
	wait_for(s->conns == 0);
	serve_stop(s);
}

static void
test_expect(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	int fd = client(s);
	struct answer a;
	char *body;

	/* A body that is wanted: 100, then the answer. */
	put_text(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
	expect_status(fd, &a, 100);
	put_text(fd, "abc");
	assert_true(get_answer(fd, &a, false, &body));
	assert_int_equal(a.status, 200);
	assert_string_equal(body, "abc");
	free(body);
	/* Nothing to be sent: 100 at once, the connection lives, and the field is there as it was sent. */
	put_text(fd,
		 "PUT /delay/10 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n");
	expect_status(fd, &a, 100);
	expect_status(fd, &a, 200);
	put_text(fd, "PUT /fields HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 0\r\n\r\n");
	expect_status(fd, &a, 100);
	assert_true(get_answer(fd, &a, false, &body));
	assert_int_equal(a.status, 200);
	assert_false(a.has_close);
	assert_non_null(strstr(body, "\nExpect: 100-Continue\n"));
	free(body);
	/* Refused before the body: the final answer instead of 100. */
	put_text(
		fd,
		"PUT /reject HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n");
	expect_status(fd, &a, 403);
	assert_true(a.has_close);
	close(fd);
	/* The same when it takes a while to know. */
	fd = client(s);
	put_text(fd, "PUT /late-reject/20 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
		     "1000000\r\n\r\n");
	expect_status(fd, &a, 403);
	expect_end(fd);
	close(fd);
	serve_stop(s);
}

static void
expect_stream(const char *body, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (body[i] != fake_req_byte(i))
			fail_msg("byte %zu differs", i);
	}
}

static void
test_stream(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	static const struct {
		const char *get;
		size_t len;
	} t[] = { { GET("/stream/1"), 1 },
		  { GET("/stream/5000000"), 5000000 },
		  { GET("/stream/1000000/50000/1"), 1000000 },
		  { GET("/stream/0"), 0 } };
	int fd = client(s);

	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct answer a;
		char *body;

		put_text(fd, t[i].get);
		assert_true(get_answer(fd, &a, false, &body));
		assert_int_equal(a.status, 200);
		assert_int_equal(a.content_length, t[i].len);
		assert_int_equal(a.body_len, t[i].len);
		assert_false(a.has_close);
		expect_stream(body, a.body_len);
		free(body);
	}
	close(fd);
	serve_stop(s);
}

/* A stream that fails, stalls or clogs ends with a reset: nobody takes it for the whole. */
static void
test_stream_fails(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	static const char *const gets[] = { GET("/broken/1000000/300000"), GET("/broken/100/0"),
					    GET("/stall/100000"), GET("/clog/400000000") };

	for (size_t i = 0; i < sizeof gets / sizeof *gets; i++) {
		int fd = client(s), err;
		size_t len;
		char *all;

		put_text(fd, gets[i]);
		wait_for(fake_req_counts.begun == (int)i + 1);
		if (i >= 2)
			hook_clock_skip(200 * NS_PER_MS);
		if (i == 3)
			wait_for(fake_req_counts.ended == 4); /* it is not read meanwhile */
		all = get_all(fd, &len, &err);
		assert_int_equal(err, ECONNRESET);
		free(all);
		close(fd);
		wait_for(s->conns == 0);
	}
	assert_int_equal(fake_req_counts.sent, 0);
	serve_stop(s);
}

/* Every connection that ends is freed, though an older one is open: the library alone (0.9.75) frees some only
 * when they are the oldest. */
static void
test_ends_among_others(void **state)
{
	/* SERVER: the daemon resets it, or closes it; CLOSE, RESET: the client does. */
	enum end { SERVER, CLOSE, RESET };
	static const struct {
		const char *text;
		enum end end;
	} t[] = {
		{ GET("/stall/100000"), SERVER },
		{ GET("/broken/100000/50000/20"), SERVER },
		{ GET("/broken/100000/50000"), SERVER },
		{ GET("/clog/400000000"), SERVER },
		{ "GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", SERVER },
		{ "GET / \r\n\r\n", SERVER },
		{ "PUT /reject HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", SERVER },
		{ "PUT /mid-at-once/3 HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", SERVER },
		{ GET("/delay/50"), CLOSE },
		{ GET("/delay/50"), RESET },
		{ GET("/stream/100000/50000/50"), CLOSE },
		{ GET("/stream/100000/50000/50"), RESET },
		{ GET("/stream/400000000"), CLOSE },
		{ GET("/stream/400000000"), RESET },
		{ "PUT /slow/3/50 HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabcdef", CLOSE },
		{ "PUT /slow/3/50 HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabcdef", RESET },
		{ "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", CLOSE },
		{ "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", RESET },
		{ "PUT /never HTTP/1.1\r\nHost: x\r\nx-amz-rdma-token: t\r\nContent-Length: 0\r\n\r\n",
		  RESET },
		{ "GET /now HTTP/1.1\r\nHo", CLOSE },
		{ "GET /now HTTP/1.1\r\nHo", RESET },
	};
	struct serve *s = serve_start(64, 3600 * NS_PER_S);
	struct linger reset = { .l_onoff = 1 };
	int old = client(s), fd[sizeof t / sizeof *t], err;
	struct answer a;

	put_text(old, GET("/now"));
	expect_status(old, &a, 200);
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		fd[i] = client(s);
		put_text(fd[i], t[i].text);
		hook_clock_skip(10 * NS_PER_MS);
		if (t[i].end == RESET)
			setsockopt(fd[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		if (t[i].end != SERVER)
			close(fd[i]);
		hook_clock_skip(2 * NS_PER_S);
		if (s->conns != 1)
			fail_msg("%d: %d connections", (int)i, s->conns);
		if (t[i].end == SERVER) {
			free(get_all(fd[i], NULL, &err));
			close(fd[i]);
		}
	}
	close(old);
	serve_stop(s);
}

/* item 28: the client of a tokened request goes away while it waits. */
static void
test_gone(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	int fd = client(s);

	put_text(fd, "PUT /never HTTP/1.1\r\nHost: x\r\nx-amz-rdma-token: t\r\nContent-Length: 0\r\n\r\n");
	wait_for(fake_req_counts.begun == 1);
	hook_clock_skip(20 * NS_PER_MS);
	assert_int_equal(fake_req_counts.gone, 0);
	close(fd);
	wait_for(fake_req_counts.gone == 1);
	wait_for(s->conns == 0 && fake_req_counts.live == 0);
	/* Without a token it is not told, and simply ends when it would have. */
	fd = client(s);
	put_text(fd, GET("/delay/100"));
	wait_for(fake_req_counts.begun == 2);
	close(fd);
	hook_clock_skip(100 * NS_PER_MS);
	wait_for(s->conns == 0);
	assert_int_equal(fake_req_counts.gone, 1);
	/* Remembered for what was sent ahead: the second finds its client gone. */
	fd = client(s);
	put_text(fd, GET("/delay/100") "PUT /never HTTP/1.1\r\nHost: x\r\nx-amz-rdma-token: "
				       "t\r\nContent-Length: 0\r\n\r\n");
	shutdown(fd, SHUT_WR);
	wait_for(fake_req_counts.gone == 2 || fake_req_counts.begun == 3);
	close(fd);
	wait_for(s->conns == 0 && fake_req_counts.live == 0);
	serve_stop(s);
}

/* Having sent everything and closed that direction is legal where bytes come over HTTP. */
static void
test_half_close(void **state)
{
	struct serve *s = serve_start(16, 60 * NS_PER_S);
	static const char *const sends[] = {
		GET("/now"), GET("/delay/50"), GET("/now") GET("/delay/20") GET("/now"),
		GET("/stream/300000/10000/1"), "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
	};

	for (size_t i = 0; i < sizeof sends / sizeof *sends; i++) {
		int fd = client(s), err;
		char *all;

		put_text(fd, sends[i]);
		shutdown(fd, SHUT_WR);
		all = get_all(fd, NULL, &err);
		assert_int_equal(err, 0);
		assert_non_null(strstr(all, "HTTP/1.1 200"));
		free(all);
		close(fd);
	}
	serve_stop(s);
}

/* item 28's other half: many clients come, ask, and go in the middle. */
static void
test_abandoned(void **state)
{
	enum { N = 60 };
	struct serve *s = serve_start(N, 60 * NS_PER_S);
	static const char *const sends[] = {
		GET("/delay/30"),
		GET("/stream/3000000/100000/1"),
		"PUT /slow/100/5 HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\nabcdefghijklm",
		"PUT /never HTTP/1.1\r\nHost: x\r\nx-amz-rdma-token: t\r\nContent-Length: 0\r\n\r\n",
		"GET /now HTTP/1.1\r\nHo",
		GET("/now"),
	};

	for (int round = 0; round < 3; round++) {
		int fd[N];

		for (int i = 0; i < N; i++) {
			fd[i] = client(s);
			put_text(fd[i], sends[i % 6]);
		}
		usleep(3000 * (unsigned)round);
		for (int i = 0; i < N; i++)
			close(fd[i]);
		wait_for(s->conns == 0 && fake_req_counts.live == 0);
	}
	serve_stop(s);
}

/* One connection more than there may be takes the place of the one that is idle longest. */
static void
test_connection_limit(void **state)
{
	struct serve *s = serve_start(3, 60 * NS_PER_S);
	int fd[3], more;
	struct answer a;

	for (int i = 0; i < 3; i++) {
		fd[i] = client(s);
		put_text(fd[i], GET("/now"));
		assert_true(get_answer(fd[i], &a, false, NULL));
	}
	more = client(s);
	put_text(more, GET("/now"));
	assert_true(get_answer(more, &a, false, NULL));
	expect_end(fd[0]);
	wait_for(s->conns == 3);
	close(more);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	serve_stop(s);
}

/* A connection has memory for a head only while a request runs, or half of a head is in. */
static void
test_idle_is_small(void **state)
{
	struct serve *s = serve_start(64, 60 * NS_PER_S);
	int fd[64];
	struct answer a;

	for (int i = 0; i < 64; i++) {
		fd[i] = client(s);
		put_text(fd[i], GET("/now"));
		assert_true(get_answer(fd[i], &a, false, NULL));
	}
	/* It is told at the end of a turn, behind the answer. */
	wait_for(s->conns == 64);
	/* They came one after the other, so one or two were enough (the end of one is told after its
	 * answer). */
	assert_in_range(s->heads_begun, 1, 4);
	/* Half a head on each: as many heads as connections, and not one more when these go without
	 * another byte. */
	for (int i = 0; i < 64; i++)
		put_text(fd[i], "GET /now HTTP/1.1\r\nHo");
	wait_for(s->heads_begun == 64);
	for (int i = 0; i < 64; i++)
		close(fd[i]);
	wait_for(s->conns == 0);
	for (int i = 0; i < 64; i++) {
		fd[i] = client(s);
		put_text(fd[i], GET("/now"));
		assert_true(get_answer(fd[i], &a, false, NULL));
	}
	for (int i = 0; i < 64; i++)
		close(fd[i]);
	wait_for(s->conns == 0);
	assert_int_equal(s->heads_used, 0);
	assert_int_equal(s->long_targets_begun, 0);
	serve_stop(s);
}

/* Targets of every length go through unchanged, and what a long one took is given back with its request. */
static void
test_long_targets(void **state)
{
	struct serve *s = serve_start(4, 60 * NS_PER_S);
	int fd = client(s);

	for (size_t len = 1020; len < 8192; len += len < 1030 ? 1 : 1021) {
		char request[9000], target[8300], want[48], got[48];
		struct answer a;

		memset(target, 'x', len);
		memcpy(target, "/now?", 5);
		target[len] = 0;
		snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target);
		put_text(fd, request);
		assert_true(get_answer(fd, &a, false, NULL));
		snprintf(want, sizeof want, "%zu %016llx", len,
			 (unsigned long long)crc64_nvme(0, target, len));
		assert_non_null(answer_header(&a, "x-target", got, sizeof got));
		assert_string_equal(got, want);
	}
	close(fd);
	wait_for(s->conns == 0);
	assert_int_equal(s->long_targets_begun, 1);
	assert_int_equal(s->long_targets_used, 0);
	serve_stop(s);
}

/* A reply to a body that has stopped coming leaves all the same, and ends the connection; while the body
 * flows it waits for the body's end. */
static void
test_stalled_body(void **state)
{
	struct serve *s = serve_start(8, 60 * NS_PER_S);
	int stalled = client(s), chunked = client(s), flows = client(s);
	struct answer a;

	put_text(stalled, "PUT /patience/600 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
	put_text(chunked,
		 "PUT /patience/600 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
	put_text(flows, "PUT /patience/600 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n");
	for (int i = 0; i < 10; i++) {
		hook_clock_skip(100 * NS_PER_MS);
		put_text(flows, "x");
	}
	print_message("%llu turns\n", (unsigned long long)s->turns);
	/* Waiting is not asking again and again. */
	assert_true(s->turns < 1000);
	for (int i = 0; i < 3; i++) {
		int fd = i == 0 ? stalled : i == 1 ? chunked : flows;

		expect_status(fd, &a, 403);
		expect_end(fd);
		close(fd);
	}
	serve_stop(s);
}

/* A line of a body in chunks for which the library has no room: the server does not spin on it, and the
 * ends of other connections are noticed meanwhile. */
static void
test_long_chunk_line(void **state)
{
	static char ext[100000];
	struct serve *s = serve_start(8, 60 * NS_PER_S);
	int lines = client(s), other;

	memset(ext, 'a', sizeof ext);
	put_text(lines, "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;");
	put_bytes(lines, ext, sizeof ext);
	wait_for(fake_req_counts.begun == 1);
	other = client(s);
	put_text(other, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
	wait_for(fake_req_counts.begun == 2);
	close(other);
	wait_for(s->conns == 1 && fake_req_counts.live == 1);
	/* It ends the program if the server spins. */
	hook_clock_skip(20 * NS_PER_MS);
	close(lines);
	serve_stop(s);
}

/* A reply in the middle of a body that stops a moment later, or of which nothing was taken and nothing more
 * comes: it leaves, and the request and the connection with it, long before their idle time. */
static void
test_stalls_behind_reply(void **state)
{
	static const char *const puts[] = {
		"PUT /mid/3 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabcde",
		"PUT /mid/3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabcde",
		"PUT /choke/50 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabcde",
		("PUT /choke/600 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
		 "10\r\n\r\nabcde"),
	};
	struct serve *s = serve_start(8, 600 * NS_PER_S);

	for (int i = 0; i < 4; i++) {
		int fd = client(s);
		struct answer a;

		put_text(fd, puts[i]);
		wait_for(fake_req_counts.begun == i + 1);
		hook_clock_skip(650 * NS_PER_MS);
		assert_true(get_answer(fd, &a, false, NULL));
		if (a.status == 100)
			assert_true(get_answer(fd, &a, false, NULL));
		assert_int_equal(a.status, 403);
		assert_int_equal(a.content_length, 0);
		assert_true(a.has_close);
		/* The request is over with the answer, the connection a moment later. */
		wait_for(fake_req_counts.live == 0 && fake_req_counts.sent == i + 1);
		hook_clock_skip(1100 * NS_PER_MS);
		wait_for(s->conns == 0);
		expect_end(fd);
		close(fd);
	}
	serve_stop(s);
}

/* The client goes before its answer is written past its body: nobody writes it any more, and whoever has the
 * connection's place next is none the wiser. */
static void
test_gone_before_reply(void **state)
{
	struct serve *s = serve_start(2, 600 * NS_PER_S);
	struct answer a;
	int fd, next;

	for (int i = 0; i < 4; i++) {
		fd = client(s);
		put_text(fd, "PUT /mid/3 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabcde");
		wait_for(fake_req_counts.begun == 2 * i + 1 && fake_req_counts.body_bytes >= 3);
		close(fd);
		wait_for(s->conns == 0 && fake_req_counts.live == 0);
		next = client(s);
		put_text(next, "PUT /slow/10/400 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n");
		wait_for(fake_req_counts.begun == 2 * i + 2);
		put_text(next, "abcdefghij");
		expect_status(next, &a, 200);
		close(next);
		wait_for(s->conns == 0);
	}
	serve_stop(s);
}

/* The same when the rest comes, but byte by byte: limits.s3_progress later. */
static void
test_drips_behind_reply(void **state)
{
	struct serve *s;
	struct answer a;
	struct pollfd p = { .events = POLLIN };
	int dripped = 0;

	serve_progress_ns = NS_PER_S;
	s = serve_start(8, 600 * NS_PER_S);
	serve_progress_ns = 60 * NS_PER_S;
	p.fd = client(s);
	put_text(p.fd, "PUT /mid/3 HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabcde");
	while (poll(&p, 1, 0) == 0) {
		put_text(p.fd, "x");
		hook_clock_skip(20 * NS_PER_MS);
		assert_true(++dripped < 3000);
	}
	assert_true(get_answer(p.fd, &a, false, NULL));
	assert_int_equal(a.status, 403);
	/* No reset, whatever comes now. */
	put_text(p.fd, "xxx");
	wait_for(s->conns == 0);
	put_text(p.fd, "xxx");
	expect_end(p.fd);
	close(p.fd);
	serve_stop(s);
}

/* Idle connections go after their time, waiting ones do not. */
static void
test_idle(void **state)
{
	struct serve *s = serve_start(8, NS_PER_S);
	int idle = client(s), busy = client(s), half = client(s);
	struct answer a;
	uint64_t turns;

	put_text(busy, GET("/delay/1800"));
	put_text(half, "GET /now HTTP/1.1\r\n");
	wait_for(fake_req_counts.begun == 1);
	hook_clock_skip(10 * NS_PER_MS);
	turns = s->turns;
	hook_clock_skip(500 * NS_PER_MS);
	/* Nobody spins while nothing happens. */
	assert_true(s->turns - turns < 20);
	hook_clock_skip(600 * NS_PER_MS);
	expect_end(idle);
	expect_end(half);
	hook_clock_skip(700 * NS_PER_MS);
	expect_status(busy, &a, 200);
	close(idle);
	close(busy);
	close(half);
	serve_stop(s);
}

/* However a connection ends, its place is free again: many more of them than there are places. */
static void
test_places(void **state)
{
	static const char *const how[] = { "GET /now HTTP/1.1\r\nHost: x\r\n\r\n",
					   "GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
					   "GET /now HTTP/1.0\r\nHost: x\r\n\r\n", "no request\r\n\r\n" };
	struct serve *s = serve_start(2, 60 * NS_PER_S);
	struct linger reset = { .l_onoff = 1 };
	struct answer a;

	for (int i = 0; i < 48; i++) {
		bool served = false;

		/* The one before may not be gone yet. */
		for (int n = 0; n < 2000 && !served; n++) {
			int fd = client(s);

			put_text(fd, how[i % 4]);
			served = get_answer(fd, &a, false, NULL);
			if (i % 8 >= 4)
				setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
			else if (i % 4 && served)
				expect_end(fd);
			close(fd);
			if (!served)
				usleep(1000);
		}
		assert_true(served);
	}
	serve_stop(s);
}

/* Drain: idle connections close, running requests end well and say that the connection closes. */
static void
test_drain(void **state)
{
	struct serve *s = serve_start(8, 60 * NS_PER_S);
	int idle = client(s), busy = client(s), fresh = client(s);
	struct answer a;

	put_text(idle, GET("/now"));
	assert_true(get_answer(idle, &a, false, NULL));
	put_text(busy, GET("/delay/4000"));
	wait_for(fake_req_counts.begun == 2 && s->conns == 3);
	s->drain = true;
	serve_nudge(s);
	expect_end(idle);
	expect_end(fresh);
	hook_clock_skip(4 * NS_PER_S);
	expect_status(busy, &a, 200);
	assert_true(a.has_close);
	expect_end(busy);
	wait_for(s->conns == 0);
	close(idle);
	close(busy);
	close(fresh);
	serve_stop(s);
}

/* Stopping with connections in every state, in the core's order and without warning. */
static void
test_stop_busy(void **state)
{
	for (int abandon = 0; abandon < 2; abandon++) {
		struct serve *s = serve_start(8, 60 * NS_PER_S);
		int fd[6];

		for (int i = 0; i < 6; i++)
			fd[i] = client(s);
		/* One that is accepted after http_abort() would be served. */
		wait_for(s->conns == 6);
		put_text(
			fd[0],
			"PUT /never HTTP/1.1\r\nHost: x\r\nx-amz-rdma-token: t\r\nContent-Length: 0\r\n\r\n");
		put_text(fd[1], GET("/delay/100000"));
		put_text(fd[2], GET("/stream/100000000/10000000/50"));
		put_text(fd[3], "PUT /slow/10/100000 HTTP/1.1\r\nHost: x\r\nContent-Length: "
				"10000\r\n\r\nabcdefghijklmnop");
		put_text(fd[4], "PUT /reject HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\nabc");
		wait_for(fake_req_counts.begun == 5);
		s->abandon = abandon;
		serve_stop(s);
		for (int i = 0; i < 6; i++)
			close(fd[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_replies_again),
		cmocka_unit_test(test_idle_is_small),
		cmocka_unit_test(test_long_targets),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_body),
		cmocka_unit_test(test_mid_body),
		cmocka_unit_test(test_mid_body_at_once),
		cmocka_unit_test(test_early_reply),
		cmocka_unit_test(test_expect),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_stream_fails),
		cmocka_unit_test(test_ends_among_others),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_half_close),
		cmocka_unit_test(test_abandoned),
		cmocka_unit_test(test_connection_limit),
		cmocka_unit_test(test_stalled_body),
		cmocka_unit_test(test_long_chunk_line),
		cmocka_unit_test(test_gone_before_reply),
		cmocka_unit_test(test_stalls_behind_reply),
		cmocka_unit_test(test_drips_behind_reply),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_stop_busy),
	};

	if (getenv("T"))
		cmocka_set_test_filter(getenv("T"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
