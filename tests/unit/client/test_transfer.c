/*
 * Registration, tokens, put and get on the software NIC, against a small HTTP server in this process that
 * says exactly what a test wants.  The program starts itself again with the software NIC's libraries in
 * front; without them it is skipped. Bytes that "the server moved" are copied to the address in the token:
 * the data plane itself is the system tests'.
 */
#include "client/client_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "token/token.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the server -------------------------------------------------------------------------- */

struct request {
	char head[4096];
	char method[16], target[256];
	char *body;
	size_t body_len;
	int nr; /* how many came before it in this test */
};

typedef void serve_fn(int fd, const struct request *rq);

static int listener;
static char url[64];
static serve_fn *volatile serve;
static _Atomic int requests;
static _Atomic bool hold; /* answers wait while it is set */

static bool
header_of(const struct request *rq, const char *name, char *out, size_t cap)
{
	const char *at = strcasestr(rq->head, name);

	if (!at || at == rq->head || at[-1] != '\n' || at[strlen(name)] != ':')
		return false;
	at += strlen(name) + 1;
	at += strspn(at, " ");
	snprintf(out, cap, "%.*s", (int)strcspn(at, "\r\n"), at);
	return true;
}

static bool
token_of(const struct request *rq, struct token *t)
{
	char text[128];
	const char *why;

	return (header_of(rq, "x-amz-rdma-token", text, sizeof text) ||
		header_of(rq, "x-scal-rdma", text, sizeof text)) &&
	       token_parse(text, strlen(text), t, &why) == 0;
}

static void
answer(int fd, const char *text)
{
	ssize_t n = send(fd, text, strlen(text), MSG_NOSIGNAL);

	(void)n;
}

static bool
read_request(int fd, struct request *rq)
{
	size_t len = 0;
	char *end = NULL, length[32] = "0";

	while (!end) {
		ssize_t n = recv(fd, rq->head + len, sizeof rq->head - 1 - len, 0);

		if (n <= 0)
			return false;
		len += (size_t)n;
		rq->head[len] = 0;
		end = strstr(rq->head, "\r\n\r\n");
	}
	size_t more = len - (size_t)(end + 4 - rq->head);

	sscanf(rq->head, "%15s %255s", rq->method, rq->target);
	header_of(rq, "content-length", length, sizeof length);
	rq->body_len = strtoul(length, NULL, 10);
	rq->body = malloc(rq->body_len + 1);
	memcpy(rq->body, end + 4, more);
	end[2] = 0;
	while (more < rq->body_len) {
		ssize_t n = recv(fd, rq->body + more, rq->body_len - more, 0);

		if (n <= 0)
			return false;
		more += (size_t)n;
	}
	rq->nr = requests++;
	return true;
}

static void *
connection(void *arg)
{
	int fd = (int)(intptr_t)arg;

	for (;;) {
		struct request rq = { .body = NULL };
		bool good = read_request(fd, &rq);

		while (good && hold)
			usleep(1000);
		if (good)
			serve(fd, &rq);
		free(rq.body);
		if (!good)
			break;
	}
	close(fd);
	return NULL;
}

static void *
accept_loop(void *arg)
{
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		pthread_t t;

		if (fd < 0)
			return NULL;
		if (pthread_create(&t, NULL, connection, (void *)(intptr_t)fd) == 0)
			pthread_detach(t);
		else
			close(fd);
	}
}

static pthread_t accept_thread;

static int
group_setup(void **state)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof sa;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&sa, len) < 0 || listen(listener, 64) < 0 ||
	    getsockname(listener, (struct sockaddr *)&sa, &len) < 0)
		return -1;
	snprintf(url, sizeof url, "http://127.0.0.1:%d/bkt/key", ntohs(sa.sin_port));
	return pthread_create(&accept_thread, NULL, accept_loop, NULL) == 0 ? 0 : -1;
}

static int
group_teardown(void **state)
{
	shutdown(listener, SHUT_RDWR);
	pthread_join(accept_thread, NULL);
	close(listener);
	usleep(100000); /* detached connection threads see their peer's end */
	return 0;
}

/* ---- a context and a buffer per test -------------------------------------------------------- */

#define BUF_LEN 100000
struct fix {
	struct gantry *g;
	unsigned char *buf;
	struct gantry_result res;
};

static int
open_with(struct fix *f, unsigned flags, enum gantry_dialect d, unsigned timeout_ms)
{
	struct gantry_options o = {
		.size = sizeof o, .flags = flags, .dialect = d, .config_file = "", .timeout_ms = timeout_ms
	};

	return gantry_open(&o, &f->g);
}

static int
setup(void **state)
{
	static struct fix f;

	f = (struct fix){ .res = { .size = sizeof f.res } };
	f.buf = malloc(BUF_LEN);
	for (int i = 0; i < BUF_LEN; i++)
		f.buf[i] = (unsigned char)(i * 7 + i / 256);
	requests = 0;
	hold = false;
	*state = &f;
	return open_with(&f, 0, GANTRY_S3, 5000);
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	gantry_close(f->g);
	free(f->buf);
	return 0;
}

/* ---- tokens ------------------------------------------------------------------------------------ */

/* item 112, item 113, item 114, item 115 */
static void
tokens_name_exactly_the_window(void **state)
{
	struct fix *f = *state;
	struct token t;
	char *text, *other, copy[100];
	const char *why;
	size_t len;

	assert_int_equal(gantry_is_connected(f->g), 1);
	assert_string_equal(gantry_rdma_reason(f->g), "");
	assert_non_null(gantry_port(f->g, 0));
	assert_int_equal(gantry_token_get(f->g, f->buf, 100, 0, GANTRY_OP_GET, &text, &len), -ENOENT);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	assert_int_equal(gantry_register(f->g, f->buf + 10, 5, 0), -EEXIST);
	assert_int_equal(gantry_token_get(f->g, f->buf, 4096, 1234, GANTRY_OP_GET, &text, &len), 0);
	assert_int_equal(len, 82);
	assert_int_equal(strlen(text), 81);
	assert_int_equal(token_parse(text, 81, &t, &why), 0);
	assert_int_equal(t.addr, (uintptr_t)f->buf + 1234);
	assert_int_equal(t.size, 4096);
	assert_true(t.have_gid);
	assert_int_equal(t.lid, 0);
	assert_int_equal(t.dctn, f->g->port[0].shared->dctn);
	assert_memory_equal(t.gid, f->g->port[0].gid, 16);
	/* Byte for byte the form of 2.1. */
	snprintf(copy, sizeof copy,
		 "%016llx:%08x:%08x:0000:%06x:1:", (unsigned long long)(uintptr_t)f->buf + 1234, 4096, t.rkey,
		 t.dctn);
	for (int i = 0; i < 16; i++)
		snprintf(copy + 49 + 2 * i, 3, "%02x", t.gid[i]);
	assert_string_equal(text, copy);
	/* Outside of what is registered; too large; nothing. */
	assert_int_equal(gantry_token_get(f->g, f->buf, BUF_LEN, 1, GANTRY_OP_PUT, &other, &len), -ENOENT);
	assert_int_equal(gantry_token_get(f->g, f->buf, 1ull << 32, 0, GANTRY_OP_PUT, &other, &len), -EFBIG);
	assert_int_equal(gantry_token_get(f->g, f->buf, 0, 0, GANTRY_OP_PUT, &other, &len), -EINVAL);
	assert_int_equal(gantry_token_get(f->g, f->buf, 1, 0, GANTRY_OP_INVALID, &other, &len), -EINVAL);
	assert_int_equal(gantry_register(f->g, (void *)4096, 1ull << 32, 0), -EFBIG);
	assert_int_equal(gantry_token_put(f->g, text), 0);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	assert_int_equal(gantry_deregister(f->g, f->buf), -ENOENT);
	assert_int_equal(gantry_memory_type(f->buf), GANTRY_MEM_SYSTEM);
	assert_int_equal(gantry_memory_type(NULL), GANTRY_MEM_INVALID);
}

struct kept {
	char *descr[4];
	size_t len;
	off_t offset[4];
	size_t size[4];
	int nr;
	ssize_t give;
};

static ssize_t
keep(const void *handle, size_t size, off_t offset, const struct gantry_io_info *info)
{
	struct kept *k = gantry_handle_ctx(handle);

	k->descr[k->nr] = (char *)(uintptr_t)info->descr;
	k->len = info->descr_len;
	k->offset[k->nr] = offset;
	k->size[k->nr++] = size;
	return k->give < 0 ? k->give : (ssize_t)size;
}

static ssize_t
on_get(const void *handle, char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	return keep(handle, size, offset, info);
}

static ssize_t
on_put(const void *handle, const char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	return keep(handle, size, offset, info);
}

/* item 115, and the rest of the operations table (protocol.md 6) */
static void
callbacks_get_tokens_that_live_on(void **state)
{
	struct fix *f = *state;
	static const struct gantry_ops ops = { .get = on_get, .put = on_put };
	struct gantry_options o = { .size = sizeof o, .config_file = "", .max_callback_bytes = 40000 };
	struct kept k = { .nr = 0 };
	struct token t;
	const char *why;

	gantry_close(f->g);
	assert_int_equal(gantry_open(&o, &f->g), 0);
	assert_int_equal(gantry_set_ops(f->g, &ops, 1000), -EPROTONOSUPPORT);
	assert_int_equal(gantry_set_ops(f->g, &ops, GANTRY_PROTOCOL_RDMA_DC_V1), 0);
	assert_int_equal(gantry_obj_get(f->g, &k, f->buf, 10, 0, 0), -ENOENT);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	assert_int_equal(gantry_max_callback_size(f->g, f->buf), 40000);
	/* Three pieces, offsets advancing in both. */
	assert_int_equal(gantry_obj_get(f->g, &k, f->buf, 90000, 1000, 500), 90000);
	assert_int_equal(k.nr, 3);
	assert_int_equal(k.offset[2], 81000);
	assert_int_equal(k.size[2], 10000);
	assert_int_equal(k.len, 82);
	/* Long after the callbacks. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(token_parse(k.descr[i], 81, &t, &why), 0);
		assert_int_equal(t.addr, (uintptr_t)f->buf + 500 + 40000 * (uintptr_t)i);
	}
	k = (struct kept){ .give = -1 };
	assert_int_equal(gantry_obj_put(f->g, &k, f->buf, 100, 0, 0), -ECANCELED);
	assert_int_equal(k.nr, 1);
	assert_int_equal(gantry_obj_put(f->g, &k, f->buf, BUF_LEN, 0, 1), -ENOENT);
}

/* ---- puts ---------------------------------------------------------------------------------------- */

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
	assert_true(list_first(&f->g->regions) != NULL);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	assert_true(list_empty(&f->g->regions));
}

/* What the next answer is to a request with a token; without one the body is stored. */
static const char *volatile with_token;

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

/* ---- gets ------------------------------------------------------------------------------------------ */

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

static void
scality_dialect(void **state)
{
	struct fix *f = *state;

	gantry_close(f->g);
	assert_int_equal(open_with(f, 0, GANTRY_SCALITY, 5000), 0);
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

/* ---- the end of a window ------------------------------------------------------------------------------ */

static struct token late;

static void
serve_late(int fd, const struct request *rq)
{
	token_of(rq, &late);
	hold = true;
	while (hold)
		usleep(1000);
	answer(fd, "HTTP/1.1 200 OK\r\nx-amz-rdma-reply: 200\r\ncontent-length: 0\r\n\r\n");
}

/* One byte to the window of a token, as a server's NIC would: the completion's status. */
static enum ibv_wc_status
write_to(const struct port *p, const struct token *t)
{
	static char byte = 'x';
	struct ibv_cq *cq = ibv_create_cq(p->ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex qa = { .qp_type = IBV_QPT_DRIVER,
					  .send_cq = cq,
					  .recv_cq = cq,
					  .pd = p->pd,
					  .cap = { .max_send_wr = 4, .max_send_sge = 1 },
					  .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					  .send_ops_flags =
						  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ };
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI } };
	struct ibv_qp *qp = mlx5dv_create_qp(p->ctx, &qa, &dv);
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024 };
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 1, .rnr_retry = 1, .max_rd_atomic = 1
	};
	struct ibv_ah_attr aa = { .is_global = 1,
				  .port_num = 1,
				  .grh = { .sgid_index = p->gid_index, .hop_limit = 4 } };
	struct ibv_mr *mr = ibv_reg_mr(p->pd, &byte, 1, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;

	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), 0);
	assert_int_equal(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_PATH_MTU), 0);
	assert_int_equal(ibv_modify_qp(qp, &rts,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
	memcpy(aa.grh.dgid.raw, t->gid, 16);
	struct ibv_ah *ah = ibv_create_ah(p->pd, &aa);
	struct ibv_qp_ex *qx = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(qx);
	qx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qx, t->rkey, t->addr);
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qx), ah, t->dctn, DEFAULT_DC_KEY);
	ibv_wr_set_sge(qx, mr->lkey, (uintptr_t)&byte, 1);
	assert_int_equal(ibv_wr_complete(qx), 0);
	while (ibv_poll_cq(cq, 1, &wc) == 0)
		usleep(100);
	ibv_destroy_qp(qp);
	ibv_destroy_ah(ah);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	return wc.status;
}

/* A server that answers too late finds nobody: the memory stays as it was (protocol.md 6, last paragraph). */
static void
a_timeout_closes_the_window(void **state)
{
	struct fix *f = *state;
	struct gantry_request req = { .size = sizeof req, .timeout_ms = 200 };
	struct token other;
	char *text;
	const char *why;

	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	assert_int_equal(gantry_token_get(f->g, f->buf, 10, 0, GANTRY_OP_GET, &text, NULL), 0);
	assert_int_equal(token_parse(text, 81, &other, &why), 0);
	serve = serve_late;
	unsigned char before = f->buf[0];

	assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 0, &req, &f->res), -ETIMEDOUT);
	assert_true(hold); /* it has the token, and has not answered */
	assert_int_equal(late.addr, (uintptr_t)f->buf);
	assert_int_not_equal(write_to(&f->g->port[0], &late), IBV_WC_SUCCESS);
	assert_int_equal(f->buf[0], before);
	/* Only that call's window: the registration and other tokens live on. */
	assert_int_equal(write_to(&f->g->port[0], &other), IBV_WC_SUCCESS);
	assert_int_equal(f->buf[0], 'x');
	hold = false;
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	assert_int_not_equal(write_to(&f->g->port[0], &other), IBV_WC_SUCCESS);
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

/* ---- without a device ------------------------------------------------------------------------------------
 */

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

/* On the software NIC, in a fabric of our own. */
static void
start_on_the_nic(char **argv)
{
	char self[512], libs[600], dir[] = "/tmp/gantry-transfer.XXXXXX", *slash = self;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (getenv("GANTRY_TEST_NIC"))
		return;
	self[n < 0 ? 0 : n] = 0;
	/* build/<variant>/unit/client/test_transfer */
	for (int i = 0; i < 3; i++)
		if ((slash = strrchr(self, '/')))
			*slash = 0;
	snprintf(libs, sizeof libs, "%s/softnic", self);
	char probe[640];

	snprintf(probe, sizeof probe, "%s/libibverbs.so.1", libs);
	if (access(probe, F_OK) != 0 || !mkdtemp(dir)) {
		printf("%s is not built\n", probe);
		exit(77);
	}
	setenv("LD_LIBRARY_PATH", libs, 1);
	setenv("SOFTNIC_DIR", dir, 1);
	setenv("SOFTNIC_RETRY_US", "20000", 1);
	setenv("GANTRY_TEST_NIC", dir, 1);
	execv("/proc/self/exe", argv);
	exit(1);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tokens_name_exactly_the_window, setup, teardown),
		cmocka_unit_test_setup_teardown(callbacks_get_tokens_that_live_on, setup, teardown),
		cmocka_unit_test_setup_teardown(put_by_rdma, setup, teardown),
		cmocka_unit_test_setup_teardown(put_falls_back, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_are_passed_on, setup, teardown),
		cmocka_unit_test_setup_teardown(busy_is_tried_again, setup, teardown),
		cmocka_unit_test_setup_teardown(get_by_rdma, setup, teardown),
		cmocka_unit_test_setup_teardown(get_takes_the_body_of_a_decline, setup, teardown),
		cmocka_unit_test_setup_teardown(scality_dialect, setup, teardown),
		cmocka_unit_test_setup_teardown(a_timeout_closes_the_window, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_do_not_meet, setup, teardown),
		cmocka_unit_test_setup_teardown(everything_works_without_rdma, setup, teardown),
	};
	char path[128];

	start_on_the_nic(argv);
	int failed = cmocka_run_group_tests(tests, group_setup, group_teardown);

	snprintf(path, sizeof path, "%s/fabric", getenv("GANTRY_TEST_NIC"));
	unlink(path);
	rmdir(getenv("GANTRY_TEST_NIC"));
	return failed ? 1 : 0;
}
