/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lingering close: when we answer before we have read everything and close, the kernel meets what still comes
 * with a reset, and that can destroy the answer before the client has read it.  So such a socket is kept a
 * while after the library has let go of it (its writing end is shut already) and what comes is read and
 * thrown away.
 */
#include "http/http_int.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define LINGER_NS (2 * NS_PER_S)
#define LINGER_BYTES (64ull << 20)
#define LINGER_TURN_BYTES (1u << 20) /* at most so much per look: others want to be served */

void
linger_begin(struct hconn *c)
{
	struct http *h = c->l->h;

	c->linger_fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
	if (c->linger_fd < 0)
		return; /* out of descriptors: then without */
	c->where = CONN_LINGERS;
	c->linger_until_ns = clock_ns() + LINGER_NS;
	c->lingered_bytes = 0;
	list_push_tail(&h->lingering, &c->link);
	/* The poll for the closing end may still be in flight: linger_poll() arms ours when it comes back. */
	if (!c->polling)
		linger_poll(c);
}

static void
end(struct hconn *c)
{
	close(c->linger_fd);
	c->linger_fd = -1;
	list_del(&c->link);
	c->where = CONN_CLOSED;
	if (c->polling)
		ring_cancel(c->l->h->ring, &c->poll);
	else
		conn_release(c);
}

void
linger_poll(struct hconn *c)
{
	struct http *h = c->l->h;
	char sink[16 << 10];
	size_t turn = 0;
	ssize_t n;

	do {
		n = recv(c->linger_fd, sink, sizeof sink, MSG_DONTWAIT);
		turn += n > 0 ? (size_t)n : 0;
	} while (n > 0 && turn < LINGER_TURN_BYTES);
	c->lingered_bytes += turn;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || c->lingered_bytes > LINGER_BYTES) {
		end(c);
		return;
	}
	c->polling = true;
	h->polls++;
	ring_poll(h->ring, &c->poll, c->linger_fd, POLLIN, false);
}

void
linger_end_oldest(struct http *h)
{
	struct list *first = list_first(&h->lingering);

	if (first)
		end(container_of(first, struct hconn, link));
}

uint64_t
linger_run(struct http *h, uint64_t now_ns, bool all)
{
	list_for_each_safe(l, &h->lingering)
	{
		struct hconn *c = container_of(l, struct hconn, link);

		if (!all && c->linger_until_ns > now_ns)
			return c->linger_until_ns; /* in order of their ends */
		end(c);
	}
	return UINT64_MAX;
}
