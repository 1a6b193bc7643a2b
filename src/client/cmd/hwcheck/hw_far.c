/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry hwcheck: the side that is written to and read from.  It has targets in a few slots, each with memory
 * of its own, and does what it is asked: by a call in the same process, or over a TCP connection.  There, any
 * client that connects may have memory registered that holds nothing but patterns, so the worst is work and,
 * up to the limit of the command line, memory; both end with the connection, which ends when nothing was
 * asked for a minute, and after half an hour in any case.
 */
#include "client/cmd/hwcheck/hw.h"

#include "base/address.h"
#include "base/clock.h"
#include "client/cmd/common/content.h"
#include "client/cmd/common/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_NS (60 * NS_PER_S)
#define SESSION_NS (1800 * NS_PER_S)
#define CONNECT_MS 5000
#define ANSWER_NS (300 * NS_PER_S) /* for a gibibyte to be mapped, registered, compared on a slow machine */

/* ---- what is asked ---- */

static int
open_slot(struct hw_side *s, struct hw_target *t, const struct hw_ask *q, struct hw_answer *ret)
{
	int r;

	if (t->port)
		return -EEXIST;
	if (q->len > s->largest + 2 * HW_GUARD)
		return -EFBIG;
	r = q->is_rc ? hw_rc_target_new(t, s->port, q->len, q->dct_access, q->mr_access)
		     : hw_target_new(t, s->port, q->len, q->dct_access, q->mr_access, q->dc_key,
				     (enum ibv_mtu)q->mtu);
	if (r == 0) {
		t->mtu = (enum ibv_mtu)q->mtu;
		r = hw_target_token(t, &ret->token);
		if (r < 0)
			hw_target_free(t);
	}
	return r;
}

static int
register_again(struct hw_target *t, const struct hw_ask *q, struct hw_answer *ret)
{
	if (t->mr)
		return -EEXIST;
	errno = 0;
	t->mr = ibv_reg_mr(t->port->pd, t->buf, t->len, q->mr_access);
	if (!t->mr)
		return errno ? -errno : -EIO;
	return hw_target_token(t, &ret->token);
}

static int
deregister(struct hw_target *t)
{
	int r = t->mr ? -ibv_dereg_mr(t->mr) : -ENOENT;

	if (r == 0)
		t->mr = NULL;
	return r;
}

static int
connect_slot(struct hw_target *t, const struct hw_ask *q)
{
	struct hw_end peer = { .qpn = (uint32_t)q->at,
			       .psn = (uint32_t)q->seed & 0xffffff,
			       .gid = q->gid,
			       .lid = (uint16_t)q->len,
			       .mtu = (enum ibv_mtu)q->mtu };

	if (t->mtu || !peer.mtu)
		peer.mtu = t->mtu ? t->mtu : t->port->mtu;

	return hw_rc_target_connect(t, &peer);
}

static int
hello(struct hw_side *s, struct hw_answer *ret)
{
	struct hw_target nobody = { .port = s->port };
	struct ibv_device_attr a;

	ret->mtu = (uint8_t)s->port->mtu;
	ret->is_ib = s->port->is_ib;
	ret->has_rc = true;
	if (ibv_query_device(s->port->ctx, &a) == 0)
		snprintf(ret->firmware, sizeof ret->firmware, "%.47s", a.fw_ver);
	ret->value = s->largest;
	return hw_target_token(&nobody, &ret->token);
}

/* Does what is asked.  Whatever stands in q, nothing but this side's own memory is touched. */
static void
obey(struct hw_side *s, const struct hw_ask *q, struct hw_answer *ret)
{
	struct hw_target *t = &s->slot[q->slot];

	*ret = (struct hw_answer){ 0 };
	if (q->op > HW_OPEN && !t->port) {
		ret->error = -ENOENT;
		return;
	}
	if ((q->op == HW_FILL || q->op == HW_SAME) && (q->at > t->len || q->len > t->len - q->at)) {
		ret->error = -EINVAL;
		return;
	}
	switch (q->op) {
	case HW_HELLO:
		ret->error = hello(s, ret);
		break;
	case HW_OPEN:
		ret->error = open_slot(s, t, q, ret);
		break;
	case HW_FILL:
		content_fill(t->buf + q->at, q->len, q->seed);
		break;
	case HW_SAME:
		ret->value = content_compare(t->buf + q->at, q->len, q->seed) == q->len;
		break;
	case HW_DEREGISTER:
		ret->error = deregister(t);
		break;
	case HW_REGISTER:
		ret->error = register_again(t, q, ret);
		break;
	case HW_END:
		ret->error = t->dct ? -ibv_destroy_qp(t->dct) : -ENOENT;
		if (ret->error == 0)
			t->dct = NULL;
		break;
	case HW_CLOSE:
		ret->error = hw_target_free(t);
		break;
	case HW_CONNECT:
		ret->error = connect_slot(t, q);
		break;
	default:
		ret->error = -EOPNOTSUPP;
	}
}

/* Ends all targets and registrations. */
static void
close_slots(struct hw_side *s)
{
	for (int i = 0; i < HW_SLOTS; i++)
		if (s->slot[i].port)
			hw_target_free(&s->slot[i]);
}

/* ---- connections ---- */

/* All of it before the deadline: 0, or -errno; -EPIPE at the end of the connection. */
static int
move(int fd, uint8_t *raw, size_t len, bool is_write, uint64_t deadline)
{
	while (len > 0) {
		struct pollfd p = { .fd = fd, .events = is_write ? POLLOUT : POLLIN };
		uint64_t now = clock_ns();
		ssize_t n;

		if (now >= deadline)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1) < 0 && errno != EINTR)
			return -errno;
		if (!p.revents)
			continue;
		n = is_write ? send(fd, raw, len, MSG_NOSIGNAL | MSG_DONTWAIT)
			     : recv(fd, raw, len, MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n == 0 && !is_write)
			return -EPIPE;
		if (n > 0) {
			raw += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int
ask_over(struct hw_far *f, const struct hw_ask *q, struct hw_answer *ret)
{
	uint64_t deadline = clock_ns() + ANSWER_NS;
	uint8_t raw[HW_ASK_BYTES], back[HW_ANSWER_BYTES];
	int r;

	hw_ask_encode(q, raw);
	r = move(f->fd, raw, sizeof raw, true, deadline);
	if (r == 0)
		r = move(f->fd, back, sizeof back, false, deadline);
	if (r == 0 && !hw_answer_decode(back, ret))
		r = -EPROTO;
	if (r == 0)
		return ret->error;
	snprintf(f->why, sizeof f->why, "the connection to the other host: %s",
		 r == -EPROTO  ? "it does not answer as gantry hwcheck --listen does"
		 : r == -EPIPE ? "it ended it"
			       : strerror(-r));
	return r;
}

int
hw_far_ask(struct hw_far *f, const struct hw_ask *q, struct hw_answer *ret)
{
	*ret = (struct hw_answer){ 0 };
	if (*f->why)
		return -ENOTCONN;
	if (f->fd >= 0)
		return ask_over(f, q, ret);
	obey(&f->side, q, ret);
	return ret->error;
}

/* HOST, HOST:PORT, [V6]:PORT, :PORT or nothing. */
static int
resolve(const char *where, bool is_listen, struct addrinfo **ret, char *why, size_t why_len)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICSERV | (is_listen ? AI_PASSIVE : 0) };
	char host[256], port[16];
	const char *colon = strrchr(where, ':'), *end = where + strlen(where);
	int r;

	/* Colons without brackets are an address of IPv6. */
	if (colon && memchr(where, ':', (size_t)(colon - where)) && !(colon > where && colon[-1] == ']'))
		colon = NULL;
	snprintf(port, sizeof port, "%s", colon ? colon + 1 : "");
	if (!*port)
		snprintf(port, sizeof port, "%d", HW_PORT_NR);
	if (colon)
		end = colon;
	if (*where == '[' && end > where + 1 && end[-1] == ']') {
		where++;
		end--;
	}
	snprintf(host, sizeof host, "%.*s", (int)(end - where), where);
	r = getaddrinfo(*host ? host : "127.0.0.1", port, &hint, ret);
	if (r)
		snprintf(why, why_len, "%s, port %s: %s", *host ? host : "127.0.0.1", port, gai_strerror(r));
	return r ? -EINVAL : 0;
}

static int
connect_within(const struct addrinfo *a, int *ret_fd)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r = 0;
	socklen_t len = sizeof r;

	if (fd < 0)
		return -errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		if (errno != EINPROGRESS)
			r = errno;
		else if (poll(&p, 1, CONNECT_MS) != 1)
			r = ETIMEDOUT;
		else
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &r, &len);
	}
	if (r) {
		close(fd);
		return -r;
	}
	*ret_fd = fd;
	return 0;
}

int
hw_far_connect(struct hw_far *f, const char *host)
{
	struct addrinfo *all, *a;
	int r = resolve(host, false, &all, f->why, sizeof f->why);

	if (r < 0)
		return r;
	f->fd = -1;
	for (a = all; a && f->fd < 0; a = a->ai_next)
		r = connect_within(a, &f->fd);
	freeaddrinfo(all);
	if (f->fd >= 0)
		return 0;
	snprintf(f->why, sizeof f->why, "%.80s: %s (does gantry hwcheck --listen run there?)", host,
		 strerror(-r));
	return r;
}

void
hw_far_close(struct hw_far *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	close_slots(&f->side);
}

/* ---- listening ---- */

/* One checker, until it leaves, says what nobody should, or its time is over. */
static void
serve(struct hw_side *s, int fd, const char *who, bool quiet)
{
	uint64_t began = clock_ns(), deadline;
	const char *end = "done";
	unsigned asked = 0;

	for (;; asked++) {
		uint8_t raw[HW_ASK_BYTES], back[HW_ANSWER_BYTES];
		struct hw_answer a;
		struct hw_ask q;
		int r;

		deadline = clock_ns() + IDLE_NS;
		if (deadline > began + SESSION_NS)
			deadline = began + SESSION_NS;
		r = move(fd, raw, sizeof raw, false, deadline);
		if (r < 0) {
			end = r == -EPIPE ? "done" : strerror(-r);
			break;
		}
		if (!hw_ask_decode(raw, &q)) {
			end = "that is no message of gantry hwcheck";
			break;
		}
		obey(s, &q, &a);
		hw_answer_encode(&a, back);
		r = move(fd, back, sizeof back, true, deadline);
		if (r < 0) {
			end = strerror(-r);
			break;
		}
	}
	close_slots(s);
	if (!quiet)
		printf("%s: %u questions, %.1f s: %s\n", who, asked, (double)(clock_ns() - began) / 1e9, end);
	fflush(stdout);
}

static int
open_listener(const char *where, char *why, size_t why_len)
{
	struct addrinfo *a;
	int fd, on = 1;

	if (resolve(where, true, &a, why, why_len) < 0)
		return -1;
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 4) < 0) {
		snprintf(why, why_len, "%s: %s", *where ? where : "127.0.0.1", strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(a);
	return fd;
}

int
hw_listen(struct hw_port *p, const char *name, const char *where, uint64_t largest, int count, bool quiet)
{
	struct hw_side side = { .port = p, .largest = largest > HW_SMALLEST ? largest : HW_SMALLEST };
	struct sockaddr_storage sa;
	socklen_t len = sizeof sa;
	char text[ADDRESS_TEXT_BYTES], why[320];
	int fd = open_listener(where, why, sizeof why);

	if (fd < 0) {
		fprintf(stderr, "gantry: hwcheck --listen: %s\n", why);
		return EXIT_FAILED;
	}
	if (getsockname(fd, (struct sockaddr *)&sa, &len) == 0) {
		/* The port is at the same place in both families. */
		printf("listening on %s port %d for %s\n", address_text((struct sockaddr *)&sa, text),
		       ntohs(((struct sockaddr_in *)&sa)->sin_port), name);
		fflush(stdout);
	}
	for (int n = 0; count == 0 || n < count; n++) {
		int peer;

		len = sizeof sa;
		peer = accept4(fd, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC);
		if (peer < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			fprintf(stderr, "gantry: hwcheck --listen: %s\n", strerror(errno));
			close(fd);
			return EXIT_FAILED;
		}
		serve(&side, peer, address_text((struct sockaddr *)&sa, text), quiet);
		close(peer);
	}
	close(fd);
	return EXIT_OK;
}
