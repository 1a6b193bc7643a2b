/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Put, get and the rest against a server that says exactly what a test wants, on the software NIC.  Bytes
 * that "the server moved" are copied to the address in the token: the data plane itself is the system tests'.
 */
#include "tests/fake/client_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- puts ---- */

static unsigned char stored[BUF_LEN];
static size_t stored_len;

/* Takes the bytes as a good server would. */
static void
serve_put(int fd, const struct request *rq)
{
	struct token t;
	char length[16];

	if (!token_of(rq, &t) || strcmp(rq->method, "PUT") != 0 ||
	    !header_of(rq, "content-length", length, sizeof length) || strcmp(length, "0") != 0) {
		answer(fd, "HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n");
		return;
	}
	memcpy(stored, (void *)(uintptr_t)t.addr, t.size);
	stored_len = t.size;
	char text[256];

	snprintf(text, sizeof text,
		 "HTTP/1.1 200 OK\r\netag: \"e1\"\r\nx-amz-rdma-reply: 200\r\nx-amz-rdma-bytes-transferred: "
		 "%zu\r\n"
		 "content-length: 0\r\n\r\n",
		 stored_len);
	answer(fd, text);
}

/* item 116 */
static void
put_by_rdma(void **state)
{
	struct fix *f = *state;

	serve = serve_put;
	assert_int_equal(gantry_put(f->g, url, f->buf, 5000, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_RDMA);
	assert_int_equal(f->res.bytes, 5000);
	assert_int_equal(f->res.requests, 1);
	assert_string_equal(f->res.etag, "\"e1\"");
	assert_string_equal(f->res.reason, "");
	assert_int_equal(stored_len, 5000);
	assert_memory_equal(stored, f->buf, 5000);
	/* From the middle of registered memory. */
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	assert_int_equal(gantry_put(f->g, url, f->buf + 77, 100, NULL, &f->res), 0);
	assert_memory_equal(stored, f->buf + 77, 100);
	assert_int_equal(f->g->map.nr, 1);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	assert_int_equal(f->g->map.nr, 0);
}

/* What the next answer is to a request with a token; without one the body is stored. */
static const char *volatile with_token;

/* A page that asks for a password is a 200, too. */
static void
serve_portal(int fd, const struct request *rq)
{
	answer(fd, "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 5\r\n\r\nlogin");
}

static void
a_put_is_stored_when_there_is_an_etag(void **state)
{
	struct fix *f = *state;
	struct gantry_request rq = { .size = sizeof rq, .no_rdma = 1 };

	serve = serve_portal;
	assert_int_equal(gantry_put(f->g, url, f->buf, 5000, &rq, &f->res), -EPROTO);
	assert_int_equal(f->res.path, GANTRY_PATH_NONE);
	assert_non_null(strstr(f->res.message, "without an ETag"));
}

static void
serve_decline(int fd, const struct request *rq)
{
	struct token t;

	if (token_of(rq, &t)) {
		answer(fd, with_token);
		return;
	}
	memcpy(stored, rq->body, rq->body_len);
	stored_len = rq->body_len;
	answer(fd, "HTTP/1.1 200 OK\r\netag: \"e2\"\r\ncontent-length: 0\r\n\r\n");
}

static void
put_falls_back(void **state)
{
	struct fix *f = *state;
	static const struct {
		const char *text, *reason;
		int requests;
	} row[] = {
		{ "HTTP/1.1 200 OK\r\nx-amz-rdma-reply: 501\r\nx-gantry-rdma-reason: "
		  "no_rail\r\ncontent-length: 0\r\n\r\n",
		  "no_rail", 2 },
		{ "HTTP/1.1 200 OK\r\netag: \"empty\"\r\ncontent-length: 0\r\n\r\n",
		  "the server ignored the token", 2 },
		{ "HTTP/1.1 501 No\r\ncontent-length: 0\r\n\r\n",
		  "the server does not support this kind of token", 2 },
		/* A failure is tried once more with a new token. */
		{ "HTTP/1.1 500 Oops\r\nx-amz-rdma-reply: 500\r\ncontent-length: 0\r\n\r\n",
		  "the transfer failed", 3 },
	};

	serve = serve_decline;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		with_token = row[i].text;
		stored_len = 0;
		assert_int_equal(gantry_put(f->g, url, f->buf, 3000, NULL, &f->res), 0);
		assert_int_equal(f->res.path, GANTRY_PATH_HTTP);
		assert_string_equal(f->res.reason, row[i].reason);
		assert_int_equal(f->res.requests, row[i].requests);
		assert_int_equal(stored_len, 3000);
		assert_memory_equal(stored, f->buf, 3000);
		assert_string_equal(f->res.etag, "\"e2\"");
	}
	/* Nothing to move: no token. */
	assert_int_equal(gantry_put(f->g, url, f->buf, 0, NULL, &f->res), 0);
	assert_int_equal(f->res.requests, 1);
	assert_int_equal(stored_len, 0);
	/* RDMA or nothing. */
	gantry_close(f->g);
	assert_int_equal(open_with(f, GANTRY_RDMA_ONLY, GANTRY_S3, 0), 0);
	with_token = row[0].text;
	assert_int_equal(gantry_put(f->g, url, f->buf, 3000, NULL, &f->res), -EOPNOTSUPP);
	assert_non_null(strstr(f->res.message, "no_rail"));
	assert_int_equal(f->res.path, GANTRY_PATH_NONE);
}

static void
serve_error(int fd, const struct request *rq)
{
	answer(fd, with_token);
}

static void
errors_are_passed_on(void **state)
{
	struct fix *f = *state;

	serve = serve_error;
	with_token = "HTTP/1.1 404 Not Found\r\ncontent-length: 72\r\n\r\n"
		     "<Error><Code>NoSuchBucket</Code><Message>No such bucket</Message></Error>";
	assert_int_equal(gantry_put(f->g, url, f->buf, 3000, NULL, &f->res), -ENOENT);
	assert_string_equal(f->res.code, "NoSuchBucket");
	assert_string_equal(f->res.message, "No such bucket");
	assert_int_equal(f->res.status, 404);
	assert_int_equal(f->res.requests, 1);
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 0, NULL, &f->res), -ENOENT);
	with_token = "HTTP/1.1 204 No Content\r\n\r\n";
	assert_int_equal(gantry_delete(f->g, url, NULL, &f->res), 0);
	with_token = "HTTP/1.1 200 OK\r\ncontent-length: 1234\r\netag: \"h\"\r\nlast-modified: then\r\n\r\n";
	assert_int_equal(gantry_head(f->g, url, NULL, &f->res), 0);
	assert_int_equal(f->res.object_size, 1234);
	assert_string_equal(f->res.etag, "\"h\"");
	assert_string_equal(f->res.last_modified, "then");
	assert_int_equal(gantry_put(f->g, "http://127.0.0.1:1/x", f->buf, 10, NULL, &f->res), -ECONNREFUSED);
	assert_true(*f->res.message);
	assert_int_equal(gantry_put(f->g, NULL, f->buf, 10, NULL, NULL), -EINVAL);
}

static void
serve_busy(int fd, const struct request *rq)
{
	if (rq->nr < 2)
		answer(fd, "HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\n\r\n");
	else
		serve_put(fd, rq);
}

static void
busy_is_tried_again(void **state)
{
	struct fix *f = *state;

	serve = serve_busy;
	assert_int_equal(gantry_put(f->g, url, f->buf, 3000, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_RDMA);
	assert_int_equal(f->res.requests, 3);
}

/* ---- gets ---- */

static const char *volatile get_headers;
static uint64_t object_len;
static unsigned char corrupt;

/* Moves the range into the window; the object is i % 251. */
static void
serve_get(int fd, const struct request *rq)
{
	struct token t;
	char range[64], text[1024];
	unsigned long long first = 0, last = 0;

	header_of(rq, "range", range, sizeof range);
	sscanf(range, "bytes=%llu-%llu", &first, &last);
	if (first >= object_len) {
		snprintf(text, sizeof text,
			 "HTTP/1.1 416 Range\r\ncontent-range: bytes */%llu\r\ncontent-length: 0\r\n\r\n",
			 (unsigned long long)object_len);
		answer(fd, text);
		return;
	}
	if (last >= object_len)
		last = object_len - 1;
	size_t n = (size_t)(last - first + 1);
	unsigned char *data = malloc(n);
	char sum[13];

	for (size_t i = 0; i < n; i++)
		data[i] = (unsigned char)((first + i) % 251);
	gantry_crc64nvme_text(gantry_crc64nvme(0, data, n), sum);
	if (token_of(rq, &t) && !get_headers) {
		memcpy((void *)(uintptr_t)t.addr, data, n < t.size ? n : t.size);
		*(unsigned char *)(uintptr_t)t.addr ^= corrupt;
		snprintf(text, sizeof text,
			 "HTTP/1.1 206 Partial\r\ncontent-range: bytes %llu-%llu/%llu\r\nx-amz-rdma-reply: "
			 "206\r\n"
			 "x-amz-rdma-bytes-transferred: %zu\r\nx-amz-rdma-bytes: %zu\r\nx-amz-rdma-checksum: "
			 "CRC64NVME %s\r\n"
			 "etag: \"e3\"\r\ncontent-length: 0\r\n\r\n",
			 first, last, (unsigned long long)object_len, n, n, sum);
		answer(fd, text);
	} else {
		snprintf(text, sizeof text,
			 "HTTP/1.1 206 Partial\r\ncontent-range: bytes %llu-%llu/%llu\r\n%scontent-length: "
			 "%zu\r\n\r\n",
			 first, last, (unsigned long long)object_len, token_of(rq, &t) ? get_headers : "", n);
		answer(fd, text);
		send(fd, data, n, MSG_NOSIGNAL);
	}
	free(data);
}

static void
check_object(const unsigned char *p, uint64_t offset, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(p[i], (offset + i) % 251);
}

/* item 116 */
static void
get_by_rdma(void **state)
{
	struct fix *f = *state;
	unsigned char after = f->buf[3000];

	serve = serve_get;
	get_headers = NULL;
	corrupt = 0;
	object_len = 5000;
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 1000, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_RDMA);
	assert_int_equal(f->res.bytes, 3000);
	assert_int_equal(f->res.checksum_verified, 1);
	assert_int_equal(f->res.object_size, 5000);
	check_object(f->buf, 1000, 3000);
	assert_int_equal(f->buf[3000], after);
	/* The object ends inside the window. */
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 4000, NULL, &f->res), 0);
	assert_int_equal(f->res.bytes, 1000);
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 5000, NULL, &f->res), -ERANGE);
	object_len = 0;
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 0, NULL, &f->res), 0);
	assert_int_equal(f->res.bytes, 0);
	assert_true(f->res.has_object_size);
	assert_int_equal(f->res.object_size, 0);
	/* A byte that changed on its way is noticed, twice; then HTTP brings it. */
	object_len = 5000;
	corrupt = 1;
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 0, NULL, &f->res), 0);
	assert_int_equal(f->res.requests, 3);
	assert_int_equal(f->res.path, GANTRY_PATH_HTTP);
	assert_int_equal(f->res.checksum_verified, 0);
	assert_non_null(strstr(f->res.reason, "checksum"));
	check_object(f->buf, 0, 3000);
	corrupt = 0;
}

static void
get_takes_the_body_of_a_decline(void **state)
{
	struct fix *f = *state;

	serve = serve_get;
	get_headers = "x-amz-rdma-reply: 501\r\nx-gantry-rdma-reason: device_lost\r\n";
	object_len = 5000;
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 2500, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_HTTP);
	assert_string_equal(f->res.reason, "device_lost");
	assert_int_equal(f->res.requests, 1);
	assert_int_equal(f->res.bytes, 2500);
	check_object(f->buf, 2500, 2500);
	get_headers = "";
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 0, NULL, &f->res), 0);
	assert_int_equal(f->res.requests, 1);
	check_object(f->buf, 0, 3000);
	/* A success without the number of bytes is none: asked again. */
	get_headers = "x-amz-rdma-reply: 206\r\n";
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 0, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_HTTP);
	assert_int_equal(f->res.requests, 2);
	get_headers = NULL;
}

/* ---- answers that are not the whole ---- */

/* Sends the text, then as many bytes of the object i % 251 as body_len says. */
static const char *volatile said;
static volatile size_t body_len;

static void
serve_said(int fd, const struct request *rq)
{
	unsigned char data[20000];
	size_t n = strcmp(rq->method, "HEAD") != 0 ? body_len : 0; /* once answered, it is the next one's */

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i % 251);
	answer(fd, said);
	if (n)
		send(fd, data, n, MSG_NOSIGNAL);
}

/* What HTTP brings is all that was asked for, or ends where the answer says that the object ends. */
static void
get_over_http_takes_no_part_for_the_whole(void **state)
{
	struct fix *f = *state;
	struct gantry_request req = { .size = sizeof req, .no_rdma = 1 };
	static const struct {
		const char *text;
		size_t body, bytes;
		int e;
	} row[] = {
#define PARTIAL(range, length)                                                                               \
	"HTTP/1.1 206 Partial\r\ncontent-range: bytes " range "\r\ncontent-length: " length "\r\n\r\n"
		{ PARTIAL("0-2999/5000", "3000"), 3000, 3000, 0 },
		{ PARTIAL("0-1999/2000", "2000"), 2000, 2000, 0 },
		{ PARTIAL("0-999/5000", "1000"), 1000, 0, -EPROTO },
		{ PARTIAL("0-999/1000", "0"), 0, 0, -EPROTO },
		{ PARTIAL("0-999/1000", "999"), 999, 0, -EPROTO },
		{ PARTIAL("0-999/*", "1000"), 1000, 0, -EPROTO },
		{ PARTIAL("0-2999/*", "3000"), 3000, 3000, 0 },
		{ PARTIAL("0-999/999", "1000"), 1000, 0, -EPROTO },
		{ PARTIAL("1-2999/3000", "2999"), 2999, 0, -EPROTO },
		{ PARTIAL("0-2999/5000", "4000"), 4000, 0, -EPROTO },
		{ "HTTP/1.1 206 Partial\r\ncontent-length: 1000\r\n\r\n", 1000, 0, -EPROTO },
		/* The range is ignored. */
		{ "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", 1000, 1000, 0 },
		{ "HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n", 4000, 3000, 0 },
		{ "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 0, 0, 0 },
		/* 416: an object that is empty, or not, or does not say. */
		{ "HTTP/1.1 416 Range\r\ncontent-range: bytes */0\r\ncontent-length: 0\r\n\r\n", 0, 0, 0 },
		{ "HTTP/1.1 416 Range\r\ncontent-range: bytes */9\r\ncontent-length: 0\r\n\r\n", 0, 0,
		  -ERANGE },
		{ "HTTP/1.1 416 Range\r\ncontent-length: 0\r\n\r\n", 0, 0, -ERANGE },
#undef PARTIAL
	};

	serve = serve_said;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		said = row[i].text;
		body_len = row[i].body;
		int e = gantry_get(f->g, url, f->buf, 3000, 0, &req, &f->res);

		if (e != row[i].e || f->res.bytes != row[i].bytes)
			fail_msg("row %zu: %d, %llu bytes: %s", i, e, (unsigned long long)f->res.bytes,
				 f->res.message);
		if (e < 0)
			assert_int_equal(f->res.path, GANTRY_PATH_NONE);
		check_object(f->buf, 0, row[i].bytes);
	}
}

/* Without RDMA at the end of it: a checksum that is wrong twice, then a 206 of nothing. */
static void
serve_wrong_then_nothing(int fd, const struct request *rq)
{
	struct token t;

	answer(fd, token_of(rq, &t)
			   ? "HTTP/1.1 206 Partial\r\ncontent-range: bytes 0-999/1000\r\nx-amz-rdma-reply: "
			     "206\r\nx-amz-rdma-bytes: 1000\r\nx-amz-rdma-checksum: CRC64NVME "
			     "AAAAAAAAAAA=\r\ncontent-length: 0\r\n\r\n"
			   : "HTTP/1.1 206 Partial\r\ncontent-range: bytes 0-999/1000\r\ncontent-length: "
			     "0\r\n\r\n");
}

static void
serve_short(int fd, const struct request *rq)
{
	struct token t;

	if (!token_of(rq, &t)) {
		serve_get(fd, rq);
		return;
	}
	answer(fd, "HTTP/1.1 206 Partial\r\ncontent-range: bytes 0-999/5000\r\nx-amz-rdma-reply: 206\r\n"
		   "x-amz-rdma-bytes: 1000\r\ncontent-length: 0\r\n\r\n");
}

static void
get_by_rdma_takes_no_part_for_the_whole(void **state)
{
	struct fix *f = *state;

	serve = serve_wrong_then_nothing;
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 0, NULL, &f->res), -EPROTO);
	assert_int_equal(f->res.requests, 3);
	assert_int_equal(f->res.bytes, 0);
	serve = serve_short;
	get_headers = NULL;
	object_len = 5000;
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 0, NULL, &f->res), 0);
	assert_int_equal(f->res.requests, 3);
	assert_int_equal(f->res.path, GANTRY_PATH_HTTP);
	assert_int_equal(f->res.bytes, 3000);
	check_object(f->buf, 0, 3000);
}

/* What follows a body is no answer. */
static void
trailers_change_nothing(void **state)
{
	struct fix *f = *state;
	struct gantry_request req = { .size = sizeof req, .no_rdma = 1 };

	serve = serve_said;
	body_len = 0;
	said = "HTTP/1.1 103 Early\r\netag: \"early\"\r\n\r\n"
	       "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\netag: \"right\"\r\n\r\n"
	       "5\r\nabcde\r\n0\r\nHTTP/1.1: 200 OK\r\netag: \"trailer\"\r\ncontent-range: bytes "
	       "0-9/10\r\n\r\n";
	if (gantry_get(f->g, url, f->buf, 3000, 0, &req, &f->res) < 0)
		fail_msg("%s", f->res.message);
	assert_int_equal(f->res.bytes, 5);
	assert_memory_equal(f->buf, "abcde", 5);
	assert_string_equal(f->res.etag, "\"right\"");
	assert_false(f->res.has_object_size);
}

static void
scality_dialect(void **state)
{
	struct fix *f = *state;

	gantry_close(f->g);
	assert_int_equal(open_with(f, 0, GANTRY_SCALITY, 60000), 0);
	serve = serve_get;
	get_headers = NULL;
	object_len = 5000;
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 0, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_RDMA);
	assert_int_equal(f->res.bytes, 3000);
	serve = serve_put;
	assert_int_equal(gantry_put(f->g, url, f->buf, 3000, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_RDMA);
	with_token = "HTTP/1.1 501 No\r\ncontent-length: 0\r\n\r\n";
	serve = serve_decline;
	assert_int_equal(gantry_put(f->g, url, f->buf, 3000, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_HTTP);
}

static void *
many(void *arg)
{
	struct fix *f = arg;
	unsigned char *mine = malloc(4096);
	intptr_t bad = 0;

	for (int i = 0; i < 50; i++) {
		struct gantry_result res = { .size = sizeof res };

		memset(mine, 0, 4096);
		bad += gantry_get(f->g, url, mine, 4096, (uint64_t)i, NULL, &res) != 0;
		bad += res.path != GANTRY_PATH_RDMA || mine[0] != i % 251 || mine[4095] != (i + 4095) % 251;
	}
	free(mine);
	return (void *)bad;
}

static void
threads_do_not_meet(void **state)
{
	struct fix *f = *state;
	pthread_t t[8];

	serve = serve_get;
	get_headers = NULL;
	object_len = 100000;
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&t[i], NULL, many, f), 0);
	for (int i = 0; i < 8; i++) {
		void *bad;

		pthread_join(t[i], &bad);
		assert_int_equal((intptr_t)bad, 0);
	}
}

/* Targets that are old when they come back, and a thread that destroys the idle ones meanwhile. */
static void
targets_come_and_go(void **state)
{
	struct fix *f = *state;
	struct gantry_options o = {
		.size = sizeof o, .config_file = "", .timeout_ms = 60000, .target_life_ms = 1
	};

	gantry_close(f->g);
	assert_int_equal(gantry_open(&o, &f->g), 0);
	threads_do_not_meet(state);
}

/* ---- without a device ---- */

static void
everything_works_without_rdma(void **state)
{
	struct fix *f = *state;
	struct gantry_options o = { .size = sizeof o, .config_file = "", .device = "mlx5_77" };
	struct gantry *none;

	assert_int_equal(gantry_open(&o, &none), -ENODEV);
	assert_non_null(strstr(gantry_open_error(), "mlx5_77"));
	gantry_close(f->g);
	assert_int_equal(open_with(f, GANTRY_NO_RDMA, GANTRY_S3, 0), 0);
	assert_int_equal(gantry_is_connected(f->g), 0);
	assert_int_equal(gantry_register(f->g, f->buf, 100, 0), -ENODEV);
	serve = serve_decline;
	assert_int_equal(gantry_put(f->g, url, f->buf, 3000, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_HTTP);
	assert_string_equal(f->res.reason, "RDMA is switched off");
	serve = serve_get;
	object_len = 5000;
	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 4000, NULL, &f->res), 0);
	assert_int_equal(f->res.bytes, 1000);
	check_object(f->buf, 4000, 1000);
	gantry_close(NULL);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(put_by_rdma, setup, teardown),
		cmocka_unit_test_setup_teardown(a_put_is_stored_when_there_is_an_etag, setup, teardown),
		cmocka_unit_test_setup_teardown(put_falls_back, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_are_passed_on, setup, teardown),
		cmocka_unit_test_setup_teardown(busy_is_tried_again, setup, teardown),
		cmocka_unit_test_setup_teardown(get_by_rdma, setup, teardown),
		cmocka_unit_test_setup_teardown(get_takes_the_body_of_a_decline, setup, teardown),
		cmocka_unit_test_setup_teardown(get_over_http_takes_no_part_for_the_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(get_by_rdma_takes_no_part_for_the_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(trailers_change_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(scality_dialect, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_do_not_meet, setup, teardown),
		cmocka_unit_test_setup_teardown(targets_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(everything_works_without_rdma, setup, teardown),
	};

	start_on_the_nic(argv);
	return end_on_the_nic(cmocka_run_group_tests(tests, rig_start, rig_stop));
}
