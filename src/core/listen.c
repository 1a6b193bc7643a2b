/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets, and what becomes of accepted ones.
 *
 * Listener i is accepted on by core i % cores; each socket goes to the less loaded of two cores, by message
 * unless that is the accepting one.  (Every core listening for itself, by SO_REUSEPORT, leaves cores idle
 * when connections are few.)
 */
#define LOG_MODULE "core"
#include "core/core_int.h"

#include "base/clock.h"
#include "base/fds.h"
#include "base/list.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 4096
#define ACCEPT_PAUSE_NS (100 * NS_PER_MS)

/* ---- listening: main thread ---- */

static int
bind_to(const struct conf_listen *l, const struct sockaddr_storage *sa, socklen_t len)
{
	/* "*" means both families through one socket, "[::]" just what it says. */
	int both = l->address && l->address[0] == '*', six_only = !both, one = 1, rc;
	int fd = socket(sa->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (sa->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &six_only, sizeof six_only);
	if (bind(fd, (const struct sockaddr *)sa, len) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static int
open_one(const struct conf_listen *l)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY) };
	struct sockaddr_storage sa = { 0 };
	int fd = bind_to(l, &l->sa, l->sa_len);

	/* "*" on a machine without IPv6. */
	if (fd == -EAFNOSUPPORT && l->address && l->address[0] == '*' && l->sa.ss_family == AF_INET6) {
		any.sin_port = ((const struct sockaddr_in6 *)&l->sa)->sin6_port;
		memcpy(&sa, &any, sizeof any);
		fd = bind_to(l, &sa, sizeof any);
	}
	return fd;
}

/* A socket that was handed in: is it what we need? */
static int
take_one(int fd)
{
	int on = 0, flags;
	socklen_t len = sizeof on;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) < 0)
		return -errno;
	if (!on)
		return -EINVAL;
	/* The ring waits by itself, and answers EAGAIN on a non-blocking listener. */
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return -errno;
	return fd;
}

static int
port_of(int fd)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof sa;

	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		return -errno;
	if (sa.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&sa)->sin6_port);
	return sa.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)&sa)->sin_port) : -EAFNOSUPPORT;
}

int
listen_open(struct cores *cs, const int *fds, char *err, size_t err_len)
{
	for (int i = 0; i < cs->conf->listen_nr; i++) {
		const struct conf_listen *l = &cs->conf->listen[i];
		bool given = fds && fds[i] >= 0;
		int fd = given ? take_one(fds[i]) : open_one(l);
		int port = fd < 0 ? fd : port_of(fd);

		if (port < 0) {
			snprintf(err, err_len, "cannot listen on %s%s: %s", l->address,
				 given ? " (socket handed in)" : "", strerror(-port));
			if (fd >= 0 && !given)
				close(fd);
			return port;
		}
		cs->listen_fds[i] = fd;
		cs->listen_own[i] = !given;
		cs->listen_ports[i] = port;
		cs->listen_nr++;
	}
	return 0;
}

void
listen_close(struct cores *cs)
{
	for (int i = 0; i < cs->listen_nr; i++) {
		if (cs->listen_own[i])
			close(cs->listen_fds[i]);
	}
	cs->listen_nr = 0;
}

/* ---- handing over ---- */

struct handover {
	struct msg msg;
	struct core *to;
	int fd, listener;
	struct sockaddr_storage peer;
};

static socklen_t
sa_len(const struct sockaddr_storage *sa)
{
	return sa->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static void
take_over(struct core *c, int listener, int fd, const struct sockaddr_storage *peer)
{
	int rc = http_add(c->http, listener, fd, (const struct sockaddr *)peer, sa_len(peer));

	if (rc == -EBUSY)
		log_limited(LOG_WARN,
			    "core %d: connection refused, limits.connections (%d) are open and have requests",
			    c->index, c->cs->conf->limits.connections);
	else if (rc == -EUSERS)
		log_limited(LOG_WARN,
			    "core %d: connection refused, its address has limits.connections_per_address",
			    c->index);
	else if (rc < 0)
		log_limited(LOG_WARN, "core %d: connection refused: %s", c->index, strerror(-rc));
}

static void
on_handover(struct msg *m)
{
	struct handover *ho = container_of(m, struct handover, msg);
	struct core *c = ho->to;

	atomic_fetch_sub(&c->pub.coming, 1);
	/* A message that came when the core had ended already is run by main. */
	if (c->http && c->phase < CORE_ABORT)
		take_over(c, ho->listener, ho->fd, &ho->peer);
	else
		close(ho->fd);
	free(ho);
}

static int
load_of(const struct core *c)
{
	return atomic_load_explicit(&c->pub.connections, memory_order_relaxed) +
	       atomic_load_explicit(&c->pub.coming, memory_order_relaxed);
}

/* The less loaded of two: one in turn, one by chance. */
static struct core *
pick(struct core *self)
{
	struct cores *cs = self->cs;
	struct core *a, *b;

	if (cs->nr == 1)
		return self;
	self->pick_b ^= self->pick_b << 13;
	self->pick_b ^= self->pick_b >> 17;
	self->pick_b ^= self->pick_b << 5;
	a = &cs->core[self->pick_a++ % (unsigned)cs->nr];
	b = &cs->core[((unsigned)a->index + 1 + self->pick_b % (unsigned)(cs->nr - 1)) % (unsigned)cs->nr];
	if (!atomic_load(&a->pub.serving) || (atomic_load(&b->pub.serving) && load_of(b) < load_of(a)))
		a = b;
	return atomic_load(&a->pub.serving) ? a : self;
}

static void
hand_over(struct acceptor *ac, int fd)
{
	struct core *self = ac->core, *to = pick(self);
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof peer;
	struct handover *ho;

	if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0) {
		close(fd); /* gone already */
		return;
	}
	if (to == self) {
		take_over(self, ac->listener, fd, &peer);
		core_publish(self);
		return;
	}
	ho = malloc(sizeof *ho);
	if (!ho) {
		close(fd);
		return;
	}
	*ho = (struct handover){ .to = to, .fd = fd, .listener = ac->listener, .peer = peer };
	atomic_fetch_add(&to->pub.coming, 1);
	mailbox_post(&to->mb, &ho->msg, on_handover);
}

/* ---- accepting: the core's thread ---- */

static void on_accept(struct ring_op *op, int res, bool more);

static void
accept_on(struct acceptor *ac)
{
	ac->active = true;
	ac->op.done = on_accept;
	ring_accept(ac->core->ring, &ac->op, ac->fd);
}

static void
on_pause_over(struct timer *t)
{
	struct acceptor *ac = container_of(t, struct acceptor, again);

	if (ac->core->phase < CORE_ABORT)
		accept_on(ac);
}

static void
on_accept(struct ring_op *op, int res, bool more)
{
	struct acceptor *ac = container_of(op, struct acceptor, op);
	struct core *c = ac->core;

	ac->active = more;
	if (res >= 0 && c->phase >= CORE_ABORT) {
		close(res);
	} else if (res >= 0 && fd_is_kept(res, 1) && (fd_is_kept(res, 2) || !http_make_room(c->http))) {
		/* A client in whose favour another one is just ending may have one of the first half of the kept ones. */
		log_limited(LOG_WARN,
			    "connection refused, the descriptors are used up (LimitNOFILE=, ulimit -n)");
		close(res);
	} else if (res >= 0) {
		hand_over(ac, res);
	}
	if (more || c->phase >= CORE_ABORT)
		return;
	/* Out of descriptors or memory: without a pause the loop would spin on it. */
	if (res == -EMFILE || res == -ENFILE || res == -ENOBUFS || res == -ENOMEM) {
		log_limited(LOG_ERROR, "accept on %s: %s", c->cs->conf->listen[ac->listener].address,
			    strerror(-res));
		timer_arm(&c->timers, &ac->again, clock_ns() + ACCEPT_PAUSE_NS, on_pause_over);
		return;
	}
	if (res == -EBADF || res == -EINVAL || res == -ENOTSOCK) {
		log_error("accept on %s: %s", c->cs->conf->listen[ac->listener].address, strerror(-res));
		return;
	}
	accept_on(ac);
}

void
accept_start(struct core *c)
{
	for (int i = c->index; i < c->cs->listen_nr; i += c->cs->nr) {
		struct acceptor *ac = &c->acceptors[c->acceptor_nr++];

		*ac = (struct acceptor){ .core = c, .listener = i, .fd = c->cs->listen_fds[i] };
		accept_on(ac);
	}
}

void
accept_stop(struct core *c)
{
	for (int i = 0; i < c->acceptor_nr; i++) {
		timer_disarm(&c->timers, &c->acceptors[i].again);
		if (c->acceptors[i].active)
			ring_cancel(c->ring, &c->acceptors[i].op);
	}
}
