/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rawclient's HTTP/1.1: exact bytes out, whole responses in, many connections from one thread.
 */
#include "raw.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct conn *conns;
static FILE *reply_log;

void
replies_to(const char *path)
{
	reply_log = fopen(path, "ae");
	if (!reply_log)
		raw_die(EXIT_SCRIPT, "%s: %s", path, strerror(errno));
	setlinebuf(reply_log);
}

static uint64_t
clock_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* What CLOCK_MONOTONIC was at a time of CLOCK_REALTIME in the recent past; late by a few microseconds at
 * most, never early. */
static uint64_t
monotonic_of(uint64_t real_ns)
{
	for (int i = 0;; i++) {
		uint64_t before = clock_of(CLOCK_MONOTONIC), real = clock_of(CLOCK_REALTIME);
		uint64_t after = clock_of(CLOCK_MONOTONIC);

		/* Else somebody else ran in between. */
		if (after - before < 3000 || i == 1000)
			return real > real_ns ? after - (real - real_ns) : after;
	}
}

/* A line for every window whose token is in the request: from now on it is the client's own. */
static void
log_end(const struct conn *c, const char *what)
{
	const char *reply = c->resp.head ? resp_header(&c->resp, "x-amz-rdma-reply") : NULL;

	if (!reply_log || !c->out)
		return;
	for (const struct window *w = window_first(); w; w = w->next) {
		char rkey[16];

		snprintf(rkey, sizeof rkey, ":%08x:", w->rkey);
		if (rc_is_on())
			snprintf(rkey, sizeof rkey, ":%08x\r\n", w->rkey);
		if (memmem(c->out, c->out_len, rkey, strlen(rkey)))
			fprintf(reply_log, "%s %llu %d %s %s %#x %#x\n", what,
				(unsigned long long)(c->first_ns ? c->first_ns : clock_of(CLOCK_MONOTONIC)),
				c->resp.status, reply ? reply : "-", w->name, window_qpn(w), w->rkey);
	}
}

struct conn *
conn_find(const char *name)
{
	for (struct conn *c = conns; c; c = c->next)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

struct conn *
conn_get(const char *name, const char *server)
{
	struct conn *c = conn_find(name);

	if (!c) {
		c = calloc(1, sizeof *c);
		snprintf(c->name, sizeof c->name, "%s", name);
		c->fd = -1;
		c->next = conns;
		conns = c;
	}
	if (strcmp(c->server, server) != 0) {
		conn_close(c, false);
		snprintf(c->server, sizeof c->server, "%s", server);
	}
	return c;
}

/* A socket that speaks from the IPv4 address behind the slash of "127.0.0.1:9000/127.0.0.2". */
static int
socket_from(int family, const char *from)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!from || fd < 0)
		return fd;
	if (inet_pton(AF_INET, from, &sa.sin_addr) != 1 || bind(fd, (struct sockaddr *)&sa, sizeof sa) < 0)
		raw_die(EXIT_SCRIPT, "no such address to speak from: %s", from);
	return fd;
}

/* "127.0.0.1:9000", "[::1]:9000", "127.0.0.1:9000/127.0.0.2" */
static int
connect_to(const char *text)
{
	char host[128], server[128];

	snprintf(server, sizeof server, "%s", text);

	char *slash = strchr(server, '/');

	if (slash)
		*slash++ = 0;

	const char *colon = strrchr(server, ':');
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *ai;

	if (!colon)
		raw_die(EXIT_SCRIPT, "server \"%s\": want HOST:PORT", server);
	const char *from = *server == '[' ? server + 1 : server;
	int len = (int)(colon - from) - (*server == '[');

	snprintf(host, sizeof host, "%.*s", len, from);
	if (getaddrinfo(host, colon + 1, &hints, &ai) != 0)
		raw_die(EXIT_SCRIPT, "server \"%s\": no such address", server);
	int fd = socket_from(ai->ai_family, slash), one = 1;
	int r = fd < 0 ? -errno : connect(fd, ai->ai_addr, ai->ai_addrlen) < 0 ? -errno : 0;

	freeaddrinfo(ai);
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		return r;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	/* When the packet came, not when we got round to it: with the log of replies that is a promise's
	 * time. */
	if (reply_log)
		setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
	return fd;
}

int
conn_open(struct conn *c)
{
	char byte;

	/* A kept connection that the server closed meanwhile is opened again. */
	if (c->fd >= 0 && !c->busy && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		conn_close(c, false);
	if (c->fd >= 0)
		return 0;
	int fd = connect_to(c->server);

	if (fd < 0)
		return fd;
	c->fd = fd;
	c->in_len = 0;
	return 0;
}

void
conn_close(struct conn *c, bool reset)
{
	struct linger l = { .l_onoff = 1, .l_linger = 0 };

	if (c->fd < 0)
		return;
	if (c->busy) {
		c->first_ns = 0;
		log_end(c, "hangup");
	}
	if (reset)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
	close(c->fd);
	c->fd = -1;
	c->busy = false;
	c->in_len = 0;
	free(c->out);
	c->out = NULL;
}

void
resp_reset(struct resp *r)
{
	free(r->head);
	free(r->body);
	*r = (struct resp){ 0 };
}

void
conn_start(struct conn *c, char *out, size_t len, bool head_request)
{
	resp_reset(&c->resp);
	free(c->out);
	c->out = out;
	c->out_len = len;
	c->out_pos = 0;
	c->head_request = head_request;
	c->start_ms = raw_now_ms();
	c->first_ns = 0;
	int r = conn_open(c);

	if (r < 0) {
		c->resp.done = true;
		snprintf(c->resp.err, sizeof c->resp.err, "connect: %s", strerror(-r));
		return;
	}
	c->busy = true;
}

static void
failed(struct conn *c, const char *why)
{
	c->resp.done = c->resp.closed = true;
	snprintf(c->resp.err, sizeof c->resp.err, "%s", why);
	c->resp.ms = raw_now_ms() - c->start_ms;
	log_end(c, "failure");
	c->busy = false;
	conn_close(c, false);
}

const char *
resp_header(const struct resp *r, const char *name)
{
	static char values[2][2048];
	static int turn;
	size_t n = strlen(name);

	for (const char *line = r->head ? strstr(r->head, "\r\n") : NULL; line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, n) != 0 || line[n] != ':')
			continue;
		const char *v = line + n + 1 + strspn(line + n + 1, " \t");
		char *out = values[turn ^= 1];

		snprintf(out, sizeof values[0], "%.*s", (int)strcspn(v, "\r\n"), v);
		return out;
	}
	return NULL;
}

int
resp_header_count(const struct resp *r, const char *name)
{
	size_t n = strlen(name);
	int nr = 0;

	for (const char *line = r->head ? strstr(r->head, "\r\n") : NULL; line; line = strstr(line, "\r\n")) {
		line += 2;
		nr += strncasecmp(line, name, n) == 0 && line[n] == ':';
	}
	return nr;
}

/* Chunked body at p: decoded length and bytes used; -1 not whole yet, -2 malformed.  Copies to out unless
 * NULL. */
static long
unchunk(const unsigned char *p, size_t len, unsigned char *out, size_t *ret_used)
{
	size_t at = 0, done = 0;

	for (;;) {
		const unsigned char *nl = memchr(p + at, '\n', len - at);

		if (!nl)
			return -1;
		if (!isxdigit(p[at]))
			return -2;
		size_t n = strtoul((const char *)p + at, NULL, 16);

		at = (size_t)(nl - p) + 1;
		if (n == 0)
			break;
		if (len - at < n + 2)
			return -1;
		if (out)
			memcpy(out + done, p + at, n);
		done += n;
		at += n + 2;
	}
	/* Trailers, up to an empty line. */
	for (;;) {
		const unsigned char *nl = memchr(p + at, '\n', len - at);

		if (!nl)
			return -1;
		size_t line = (size_t)(nl - p) - at;

		at += line + 1;
		if (line <= 1)
			break;
	}
	*ret_used = at;
	return (long)done;
}

static void
consume(struct conn *c, size_t n)
{
	memmove(c->in, c->in + n, c->in_len - n);
	c->in_len -= n;
}

static void
finish(struct conn *c, size_t used, bool closes)
{
	c->resp.done = true;
	c->resp.ms = raw_now_ms() - c->start_ms;
	log_end(c, "reply");
	consume(c, used);
	c->busy = false;
	const char *conn_header = resp_header(&c->resp, "connection");

	if (closes || (conn_header && !strcasecmp(conn_header, "close"))) {
		c->resp.closed = true;
		conn_close(c, false);
	}
}

/* Takes the header block off c->in; false while it is not whole. */
static bool
take_head(struct conn *c)
{
	unsigned char *end = memmem(c->in, c->in_len, "\r\n\r\n", 4);

	if (!end)
		return false;
	size_t n = (size_t)(end - c->in) + 4;
	int status = 0;

	if (sscanf((char *)c->in, "HTTP/1.%*c %3d", &status) != 1) {
		failed(c, "not an HTTP response");
		return false;
	}
	if (status < 200) {
		c->resp.interim_nr++;
		consume(c, n);
		return take_head(c);
	}
	c->resp.status = status;
	c->resp.head = malloc(n + 1);
	memcpy(c->resp.head, c->in, n);
	c->resp.head[n] = 0;
	c->resp.head_len = n;
	consume(c, n);
	return true;
}

static void
parse(struct conn *c, bool eof)
{
	struct resp *r = &c->resp;

	if (!r->head && (!c->in_len || !take_head(c))) {
		if (eof && !r->done)
			failed(c,
			       c->in_len ? "closed inside the response header" : "closed without a response");
		return;
	}
	const char *length = resp_header(r, "content-length"), *coding = resp_header(r, "transfer-encoding");

	if (c->head_request || r->status == 204 || r->status == 304) {
		finish(c, 0, eof);
	} else if (coding && !strcasecmp(coding, "chunked")) {
		size_t used = 0;
		long n = unchunk(c->in, c->in_len, NULL, &used);

		if (n >= 0) {
			r->body = malloc((size_t)n + 1);
			r->body_len = (size_t)unchunk(c->in, c->in_len, r->body, &used);
			finish(c, used, eof);
		} else if (n == -2 || eof) {
			failed(c, n == -2 ? "malformed chunk" : "closed inside a chunked body");
		}
	} else if (length) {
		size_t n = strtoull(length, NULL, 10);

		if (c->in_len < n) {
			if (eof)
				failed(c, "closed inside the body");
			return;
		}
		r->body = malloc(n + 1);
		memcpy(r->body, c->in, n);
		r->body_len = n;
		finish(c, n, eof);
	} else if (eof) {
		r->body = malloc(c->in_len + 1);
		memcpy(r->body, c->in, c->in_len);
		r->body_len = c->in_len;
		finish(c, c->in_len, true);
	}
}

/* recv(), and when it is the first of a response, its time: the kernel's own stamp if there is one. */
static ssize_t
receive(struct conn *c)
{
	char control[CMSG_SPACE(sizeof(struct timespec))];
	struct iovec iov = { .iov_base = c->in + c->in_len, .iov_len = c->in_cap - c->in_len };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
	};
	ssize_t n = recvmsg(c->fd, &m, MSG_DONTWAIT);

	if (n <= 0 || c->first_ns)
		return n;
	c->first_ns = clock_of(CLOCK_MONOTONIC);
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		struct timespec ts;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&ts, CMSG_DATA(h), sizeof ts);
		c->first_ns = monotonic_of((uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec);
	}
	return n;
}

static void
pump_in(struct conn *c)
{
	if (c->in_cap - c->in_len < 65536) {
		c->in_cap = c->in_cap ? c->in_cap * 2 : 131072;
		c->in = realloc(c->in, c->in_cap);
	}
	ssize_t n = receive(c);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0)
		c->in_len += (size_t)n;
	if (n < 0)
		failed(c, strerror(errno));
	else
		parse(c, n == 0);
}

static void
pump_out(struct conn *c)
{
	ssize_t n = send(c->fd, c->out + c->out_pos, c->out_len - c->out_pos, MSG_DONTWAIT | MSG_NOSIGNAL);

	/* A server that refuses early closes its side: the answer may still be readable. */
	if (n < 0 && errno != EAGAIN)
		c->out_pos = c->out_len;
	else if (n > 0)
		c->out_pos += (size_t)n;
}

int
conns_drive(struct conn **cs, int nr, double deadline_ms, bool any)
{
	struct pollfd *pfd = calloc((size_t)nr, sizeof *pfd);
	int done;

	for (;;) {
		int busy = 0;

		done = 0;
		for (int i = 0; i < nr; i++) {
			struct conn *c = cs[i];

			if (c->busy && c->in_len)
				parse(c, false);
			bool on = c->busy && c->fd >= 0;

			pfd[i] = (struct pollfd){
				.fd = on ? c->fd : -1,
				.events = (short)(POLLIN | (c->out_pos < c->out_len ? POLLOUT : 0))
			};
			busy += on;
			done += c->resp.done;
		}
		double left = deadline_ms - raw_now_ms();

		if (!busy || (any && done) || left <= 0)
			break;
		poll(pfd, (nfds_t)nr, (int)left + 1);
		for (int i = 0; i < nr; i++) {
			if (pfd[i].fd < 0 || !pfd[i].revents)
				continue;
			if (pfd[i].revents & POLLOUT)
				pump_out(cs[i]);
			if (pfd[i].revents & (POLLIN | POLLHUP | POLLERR))
				pump_in(cs[i]);
		}
	}
	free(pfd);
	return done;
}

void
resp_print(const struct conn *c)
{
	const struct resp *r = &c->resp;

	if (!r->done) {
		printf("[%s] no response yet\n", c->name);
		return;
	}
	if (*r->err) {
		printf("[%s] no response: %s\n", c->name, r->err);
		return;
	}
	for (const char *p = r->head; *p; p++)
		if (*p != '\r')
			putchar(*p);
	char sum[13];

	raw_crc64_base64(raw_crc64(0, r->body, r->body_len), sum);
	printf("(%zu body bytes, crc64nvme %s, %.1f ms%s)\n", r->body_len, sum, r->ms,
	       r->closed ? ", closed" : "");
	bool text = r->body_len > 0;

	for (size_t i = 0; i < r->body_len && i < 2000; i++)
		text = text && (isprint(r->body[i]) || isspace(r->body[i]));
	if (text)
		printf("%.*s\n", (int)(r->body_len < 2000 ? r->body_len : 2000), (char *)r->body);
}
