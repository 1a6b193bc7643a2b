/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes before HTTP and TLS on connections from balancers (listen[].proxy): a header that says whose
 * connection it is.  Exactly its bytes are read here, then the connection is the library's, and to everybody
 * above it is that client's.
 *
 * Until then it is no client's: it counts among the connections without a whole head, and has limits.head
 * from its beginning.  Who connects to such a listener and is no balancer is served as anywhere; only a header
 * from there is answered with 400.
 */
#include "http/http_int.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "stats/stats.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static bool
is_balancer(const struct listener *l, const struct sockaddr_storage *peer)
{
	const struct conf_nets *nets = &l->conf->proxy;
	struct in6_addr a;

	return address_in6((const struct sockaddr *)peer, &a) && conf_nets_have(nets->net, nets->nr, &a);
}

static void
say(const struct hconn *c, const char *what)
{
	char text[ADDRESS_TEXT_BYTES];

	log_limited(LOG_WARN, "http: a connection to %s from %s was closed: %s", c->l->conf->address,
		    address_text((const struct sockaddr *)&c->peer, text), what);
}

static void
wait_for_more(struct hconn *c)
{
	c->polling = true;
	c->l->h->polls++;
	ring_poll(c->l->h->ring, &c->poll, c->fd, POLLIN, false);
}

/* The connection is HTTP, or TLS, from here on. */
static void
leave(struct hconn *c)
{
	if (conn_count_peer(c) < 0) {
		say(c, "its address has limits.connections_per_address");
		conn_drop(c);
		return;
	}
	c->head_ns = 0;
	pool_put(&c->l->h->prefaces, c->preface);
	c->preface = NULL;
	list_del(&c->link);
	conn_start(c);
}

/* ---- who is no balancer ---- */

/* The library would close without a word.  Who waits for an answer to TLS could not read this one. */
static void
answer_stranger(struct hconn *c)
{
	int fd = c->fd;

	stats_event(c->l->h->stats, STATS_HTTP_REFUSED);
	if (!c->l->cert)
		(void)past_refuse(c, FAULT_BAD_REQUEST,
				  "A PROXY header came from an address that is not in listen[].proxy.");
	shutdown(fd, SHUT_WR);
	list_del(&c->link);
	conn_uncount(c);
	pool_put(&c->l->h->prefaces, c->preface);
	c->preface = NULL;
	c->where = CONN_CLOSED;
	/* So that what is not read yet does not cost it the answer. */
	linger_begin(c);
	close(fd);
	if (c->where == CONN_CLOSED)
		conn_release(c);
}

/* Looks at the first bytes and leaves them where they are. */
static void
look(struct hconn *c)
{
	uint8_t first[PROXY_SIGNATURE];
	int one = 1;
	ssize_t n = recv(c->fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		wait_for_more(c);
		return;
	}
	setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
	if (n == sizeof first && proxy_is_header(first))
		answer_stranger(c);
	else
		leave(c);
}

/* ---- balancers ---- */

/* The balancer's mistake: it is said, so that its operator finds it. */
static void
refuse(struct hconn *c, const char *what)
{
	stats_event(c->l->h->stats, STATS_CLOSED_PROXY);
	say(c, what);
	conn_drop(c);
}

static const char *
what_is_wrong(int rc)
{
	return rc == -EPROTONOSUPPORT ? "this balancer's PROXY header is of version 1; configure version 2 "
					"(HAProxy: send-proxy-v2)"
				      : "this balancer sent no PROXY header of version 2";
}

static void
take(struct hconn *c)
{
	struct preface *p = c->preface;
	struct sockaddr_storage from;
	bool own;

	if (proxy_source(p->bytes, p->have, &own, &from) < 0) {
		refuse(c, "this balancer's PROXY header is too short for its addresses");
		return;
	}
	if (!own) {
		c->peer = from;
		conn_unmap(&c->peer);
	}
	c->taken = p->need;
	leave(c);
}

/* Reads what is there of the header, and no byte more. */
static void
read_header(struct hconn *c)
{
	struct preface *p = c->preface;
	uint8_t rest[1024];
	ssize_t n;
	int rc;

	while (p->have < p->need) {
		bool keep = p->have < sizeof p->bytes;
		size_t most = keep ? sizeof p->bytes - p->have : sizeof rest;

		if (most > p->need - p->have)
			most = p->need - p->have;
		n = recv(c->fd, keep ? p->bytes + p->have : rest, most, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			wait_for_more(c);
			return;
		}
		/* One that says nothing and goes is how balancers look whether we are there. */
		if (n <= 0 && p->have == 0) {
			conn_drop(c);
			return;
		}
		if (n <= 0) {
			refuse(c, "this balancer's connection ended in its PROXY header");
			return;
		}
		p->have += (size_t)n;
		if (p->have == PROXY_FIRST && p->need == PROXY_FIRST) {
			rc = proxy_length(p->bytes);
			if (rc < 0) {
				refuse(c, what_is_wrong(rc));
				return;
			}
			p->need = (size_t)rc;
		}
	}
	take(c);
}

/* ---- both ---- */

void
preface_read(struct hconn *c)
{
	if (c->preface->stranger)
		look(c);
	else
		read_header(c);
}

void
preface_begin(struct hconn *c)
{
	struct http *h = c->l->h;

	int least = PROXY_SIGNATURE;

	c->preface = pool_get(&h->prefaces);
	*c->preface = (struct preface){ .need = PROXY_FIRST, .stranger = !is_balancer(c->l, &c->peer) };
	/* No request is shorter, and a byte that is only looked at would be news again and again. */
	if (c->preface->stranger)
		setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
	c->where = CONN_PREFACE;
	c->head_ns = clock_ns();
	list_push_tail(&h->prefacing, &c->link);
	preface_read(c);
}

uint64_t
preface_run(struct http *h, uint64_t now_ns)
{
	list_for_each_safe(l, &h->prefacing)
	{
		struct hconn *c = container_of(l, struct hconn, link);

		if (now_ns - c->head_ns < h->conf->limits.head_ns)
			return c->head_ns + h->conf->limits.head_ns; /* they came in this order */
		stats_event(h->stats, STATS_CLOSED_LATE_HEAD);
		conn_drop(c);
	}
	return UINT64_MAX;
}
