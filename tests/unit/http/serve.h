/*
 * A server for the tests of http/: one thread with a loop of its own, on loopback, over the scripted requests
 * of fake_req. The test's thread is the client, with raw sockets.
 */
#ifndef GANTRY_TESTS_HTTP_SERVE_H
#define GANTRY_TESTS_HTTP_SERVE_H

#include "../../fake/fake_req.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "http/http.h"
#include "ring/ring.h"
#include "stats/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct serve {
	struct conf conf;
	struct ring *ring;
	struct http *http;
	struct reqs *reqs;
	struct timers timers;
	struct mailbox mb;
	struct ring_op accept_op, mail_op;
	struct stats_core stats;
	int lfd, port;
	pthread_t thread;
	_Atomic bool ready, stop, drain, abandon;
	_Atomic int conns;
	_Atomic uint64_t turns;
	struct msg wake;
};

static void
serve_on_accept(struct ring_op *op, int res, bool more)
{
	struct serve *s = (struct serve *)((char *)op - offsetof(struct serve, accept_op));
	struct sockaddr_storage peer;
	socklen_t len = sizeof peer;

	if (res >= 0 && getpeername(res, (struct sockaddr *)&peer, &len) == 0)
		http_add(s->http, 0, res, (struct sockaddr *)&peer, len);
	else if (res >= 0)
		close(res);
	if (!more && !s->stop)
		ring_accept(s->ring, op, s->lfd);
}

static void
serve_on_mail(struct ring_op *op, int res, bool more)
{
	struct serve *s = (struct serve *)((char *)op - offsetof(struct serve, mail_op));

	if (!more && !s->stop)
		ring_poll(s->ring, op, s->mb.efd, POLLIN, true);
}

static void
serve_on_wake(struct msg *m)
{
}

static void
serve_turn(struct serve *s)
{
	uint64_t now, wait = http_timeout_ns(s->http);
	bool asleep;

	if (timers_next(&s->timers) != UINT64_MAX) {
		now = clock_ns();
		wait = timers_next(&s->timers) <= now         ? 0
		       : timers_next(&s->timers) - now < wait ? timers_next(&s->timers) - now
							      : wait;
	}
	asleep = wait && mailbox_sleep(&s->mb);
	check(ring_turn(s->ring, asleep ? wait : 0) >= 0);
	if (asleep)
		mailbox_wake(&s->mb);
	mailbox_run(&s->mb, 0);
	timers_run(&s->timers, clock_ns());
	reqs_run(s->reqs);
	http_run(s->http);
	s->conns = http_connections(s->http);
	s->turns++;
}

static void *
serve_thread(void *arg)
{
	struct serve *s = arg;
	struct req_env env = {
		.conf = &s->conf, .timers = &s->timers, .stats = &s->stats, .ops = &http_reply_ops
	};

	check(ring_new(&(struct ring_params){ .entries = 64 }, &s->ring) == 0);
	check(reqs_new(&env, &s->reqs) == 0);
	check(http_new(&s->conf, s->ring, &s->stats, &s->http) == 0);
	http_set_reqs(s->http, s->reqs);
	s->accept_op.done = serve_on_accept;
	s->mail_op.done = serve_on_mail;
	ring_accept(s->ring, &s->accept_op, s->lfd);
	ring_poll(s->ring, &s->mail_op, s->mb.efd, POLLIN, true);
	s->ready = true;
	while (!s->stop) {
		serve_turn(s);
		if (s->drain)
			http_drain(s->http);
	}
	if (!s->abandon) {
		http_abort(s->http);
		while (http_connections(s->http) || reqs_live(s->reqs))
			serve_turn(s);
	}
	ring_cancel(s->ring, &s->accept_op);
	ring_cancel(s->ring, &s->mail_op);
	http_free(s->http);
	/* What the requests still had under way. */
	while (reqs_live(s->reqs)) {
		ring_turn(s->ring, NS_PER_MS);
		timers_run(&s->timers, clock_ns());
	}
	while (ring_inflight(s->ring))
		ring_turn(s->ring, NS_PER_MS);
	reqs_free(s->reqs);
	ring_free(s->ring);
	return NULL;
}

static struct serve *
serve_start(int connections, uint64_t idle_ns)
{
	struct serve *s = calloc(1, sizeof *s);
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof sa;

	s->conf.limits.connections = connections;
	s->conf.limits.idle_ns = idle_ns;
	s->conf.limits.requests = 64;
	s->conf.listen_nr = 1;
	s->conf.listen[0].address = "test";
	s->lfd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(bind(s->lfd, (struct sockaddr *)&sa, len) == 0 && listen(s->lfd, 128) == 0);
	check(getsockname(s->lfd, (struct sockaddr *)&sa, &len) == 0);
	s->port = ntohs(sa.sin_port);
	check(mailbox_init(&s->mb) == 0);
	memset(&fake_req_counts, 0, sizeof fake_req_counts);
	check(pthread_create(&s->thread, NULL, serve_thread, s) == 0);
	while (!s->ready)
		usleep(100);
	return s;
}

static inline void
serve_nudge(struct serve *s)
{
	mailbox_post(&s->mb, &s->wake, serve_on_wake);
}

static void
serve_stop(struct serve *s)
{
	s->stop = true;
	serve_nudge(s);
	pthread_join(s->thread, NULL);
	assert_int_equal(fake_req_counts.begun, fake_req_counts.ended);
	assert_int_equal(fake_req_counts.live, 0);
	mailbox_fini(&s->mb);
	close(s->lfd);
	free(s);
}

/* ---- the client
 * --------------------------------------------------------------------------------------------------- */

static int
client(struct serve *s)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)s->port) };
	struct timeval tv = { .tv_sec = 10 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	return fd;
}

static void
put_bytes(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		assert_true(n > 0);
		p += n;
		len -= (size_t)n;
	}
}

static inline void
put_text(int fd, const char *text)
{
	put_bytes(fd, text, strlen(text));
}

/* Everything until the other side ends; *ret_err: 0 for a clean end.  Freed by the caller, terminated. */
static inline char *
get_all(int fd, size_t *ret_len, int *ret_err)
{
	size_t cap = 65536, len = 0;
	char *buf = malloc(cap + 1);
	ssize_t n;

	while ((n = recv(fd, buf + len, cap - len, 0)) > 0) {
		len += (size_t)n;
		if (len == cap)
			buf = realloc(buf, (cap *= 2) + 1);
	}
	buf[len] = 0;
	if (ret_len)
		*ret_len = len;
	*ret_err = n < 0 ? errno : 0;
	return buf;
}

struct answer {
	int status;
	char head[8192];
	size_t body_len;
	long long content_length;
	int lengths; /* how often Content-Length came */
	bool has_close;
};

/* The value of a header, lower case name; NULL. */
static inline const char *
answer_header(const struct answer *a, const char *name, char *out, size_t cap)
{
	const char *p = a->head;
	size_t n = strlen(name);

	while ((p = strstr(p, "\r\n"))) {
		p += 2;
		if (strncasecmp(p, name, n) == 0 && p[n] == ':') {
			const char *v = p + n + 1;
			size_t len;

			while (*v == ' ')
				v++;
			len = strcspn(v, "\r");
			len = len < cap ? len : cap - 1;
			memcpy(out, v, len);
			out[len] = 0;
			return out;
		}
	}
	return NULL;
}

/* One answer: its head, byte by byte so that nothing of the next is taken, and its body into *ret_body (may
 * be NULL: thrown away).  False: the connection ended (or failed: errno) before the head was in. */
static inline bool
get_answer(int fd, struct answer *a, bool is_head, char **ret_body)
{
	size_t n = 0;
	char v[64], *body, *p;

	memset(a, 0, sizeof *a);
	while (n < 4 || memcmp(a->head + n - 4, "\r\n\r\n", 4) != 0) {
		ssize_t r;

		assert_true(n < sizeof a->head - 1);
		r = recv(fd, a->head + n, 1, 0);
		if (r <= 0) {
			if (r == 0)
				errno = 0;
			return false;
		}
		n++;
	}
	assert_int_equal(sscanf(a->head, "HTTP/1.%*d %d", &a->status), 1);
	a->content_length = -1;
	if (answer_header(a, "content-length", v, sizeof v))
		a->content_length = atoll(v);
	for (p = a->head; (p = strcasestr(p, "\r\ncontent-length:")); p++)
		a->lengths++;
	a->has_close = answer_header(a, "connection", v, sizeof v) && strcasecmp(v, "close") == 0;
	if (ret_body)
		*ret_body = NULL;
	if (is_head || a->content_length <= 0)
		return true;
	body = malloc((size_t)a->content_length + 1);
	while (a->body_len < (size_t)a->content_length) {
		ssize_t r = recv(fd, body + a->body_len, (size_t)a->content_length - a->body_len, 0);

		if (r <= 0)
			break;
		a->body_len += (size_t)r;
	}
	body[a->body_len] = 0;
	if (ret_body)
		*ret_body = body;
	else
		free(body);
	return true;
}

/* The other side closed, and said nothing more; reset allowed or not. */
static inline void
expect_end(int fd)
{
	char c;

	assert_int_equal(recv(fd, &c, 1, 0), 0);
}

/* Waits until *v is what it should be, at most five seconds. */
#define wait_for(cond)                                                                                       \
	do {                                                                                                 \
		uint64_t until_ = clock_ns() + 5 * NS_PER_S;                                                 \
		while (!(cond)) {                                                                            \
			assert_true(clock_ns() < until_);                                                    \
			usleep(1000);                                                                        \
		}                                                                                            \
	} while (0)

#endif
