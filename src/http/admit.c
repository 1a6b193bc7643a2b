/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may have a connection, and for how long without a request.
 *
 * A head has limits.head from its first byte to its last, a TLS handshake likewise.  libmicrohttpd knows a
 * time-out of inactivity only, which a byte now and then keeps from passing, and says nothing before a head
 * is whole.  So the kernel is asked: it counts what came on a connection, and what belongs to requests was
 * counted here.  What is more is the beginning of a head.  Each open connection is looked at in turn, a few at
 * a time, all of them in a tenth of limits.head; one that is in a request is passed over.  No request pays for
 * it (over HTTPS one system call), and where nothing comes and no head is under way nobody looks.
 *
 * When limits.connections are open, a new one takes the place of another: of the oldest that has not brought
 * a whole head yet, else of the oldest idle one of the address that has most (of those with an idle one).  So
 * who opens many loses his own, and who sends its request at once gets in.  There are some connections more
 * than limits.connections says, since one that has to go takes a turn of the loop to do so.
 */
#include "http/http_int.h"
#include "tls/handshake.h"

#include "base/clock.h"
#include "base/tcp.h"
#include "stats/stats.h"

#include <string.h>

#define LOOK_NR 32 /* connections that are looked at in one turn: some 15 us */
#define LOOK_LATE_NR 256
#define ROUND_MAX_NS NS_PER_S

/* ---- heads ---- */

/* Counts the records that came over TLS; where the library has no number, there was none. */
static uint64_t
records(gnutls_session_t session)
{
	unsigned char nr[8] = { 0 };
	uint64_t n = 0;

	gnutls_record_get_state(session, 1, NULL, NULL, NULL, nr);
	for (int i = 0; i < 8; i++)
		n = n << 8 | nr[i];
	return n;
}

static gnutls_session_t
session_of(const struct hconn *c)
{
	return MHD_get_connection_info(c->mc, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session;
}

/* The client's last word in a handshake is in: what comes from now on belongs to a request. */
static int
on_finished(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
	    const gnutls_datum_t *msg)
{
	struct hconn *c = gnutls_db_get_ptr(session); /* the library has no use for this pointer */
	struct tcp_came came;

	if (!incoming)
		return 0;
	c->shaken = true;
	c->head_ns = 0;
	/* It is a record of its own among those that are counted only before TLS 1.3. */
	c->taken = gnutls_protocol_get_version(session) >= GNUTLS_TLS1_3 ? 0 : 1;
	c->bytes = tcp_came(c->fd, &came) == 0 ? came.bytes : 0;
	return 0;
}

void
admit_opened(struct hconn *c)
{
	gnutls_session_t session;

	if (!c->l->cert)
		return;
	session = session_of(c);
	gnutls_db_set_ptr(session, c);
	gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST, on_finished);
}

void
admit_request_over(struct hconn *c)
{
	struct tcp_came came;

	c->stamp = ++c->l->h->stamps;
	c->head_ns = 0;
	if (!c->l->cert)
		return;
	c->taken = records(session_of(c));
	c->bytes = tcp_came(c->fd, &came) == 0 ? came.bytes : 0;
}

/* TLS hides how many bytes a request had; its records are counted instead, and one that is not whole shows
 * because more bytes came than had at the end of the request before. */
static bool
tls_began(struct hconn *c, uint64_t bytes)
{
	if (!c->shaken)
		return bytes > c->taken;
	return records(session_of(c)) != c->taken || bytes > c->bytes;
}

/* Too late.  Over plain HTTP the client is told why; nothing else can be on its way there. */
static void
end_head(struct hconn *c)
{
	stats_event(c->l->h->stats, STATS_CLOSED_LATE_HEAD);
	if (c->l->cert) {
		conn_abort(c);
		return;
	}
	(void)past_refuse(c, FAULT_LATE_HEAD, NULL);
	conn_dismiss(c);
}

static void
look_at(struct hconn *c, uint64_t now)
{
	struct http *h = c->l->h;
	struct tcp_came came;

	if (c->stage != STAGE_IDLE || c->leaving || c->aborted || c->gone || tcp_came(c->fd, &came) < 0)
		return;
	if (c->l->cert ? !tls_began(c, came.bytes) : came.bytes <= c->taken)
		return;
	if (!c->head_ns) {
		c->head_ns = came.last_ns < now ? now - came.last_ns : now;
		if (!list_linked(&c->unfinished))
			list_push_tail(&h->unfinished, &c->unfinished);
	}
	h->stirred = true; /* it has to be looked at again */
	if (now - c->head_ns >= h->conf->limits.head_ns)
		end_head(c);
}

static uint64_t
round_ns(const struct http *h)
{
	uint64_t ns = h->conf->limits.head_ns / 10;

	return ns < ROUND_MAX_NS ? ns : ROUND_MAX_NS;
}

void
admit_run(struct http *h, uint64_t now)
{
	int turns = (h->open_nr + LOOK_NR - 1) / LOOK_NR, nr = LOOK_NR;
	uint64_t gap = round_ns(h) / (unsigned)(turns ? turns : 1);

	if (now < h->look_ns || (h->look_left <= 0 && !h->stirred))
		return;
	if (h->look_left <= 0) {
		h->look_left = h->open_nr;
		h->stirred = false;
	} else if (now - h->look_ns > gap) {
		nr = LOOK_LATE_NR; /* the loop had other work */
	}
	for (int i = 0; i < nr && h->look_left > 0 && !list_empty(&h->open); i++, h->look_left--) {
		struct hconn *c = container_of(list_pop(&h->open), struct hconn, link);

		list_push_tail(&h->open, &c->link);
		look_at(c, now);
	}
	if (list_empty(&h->open))
		h->look_left = 0;
	h->look_ns = now + gap;
}

uint64_t
admit_due_ns(const struct http *h)
{
	return h->look_left > 0 || h->stirred ? h->look_ns : UINT64_MAX;
}

/* ---- room ---- */

static bool
is_idle(const struct hconn *c)
{
	return c->stage == STAGE_IDLE && !c->suspended && !c->leaving && !c->aborted && !c->gone;
}

/* Chooses the address: *ret_nr is how many of its connections may go before another has as many. */
static const struct peer *
greediest(const struct http *h, int *ret_nr)
{
	const struct peer *most = NULL;
	int first = 0, second = 0;

	list_for_each(l, &h->open)
	{
		const struct hconn *c = container_of(l, struct hconn, link);
		int n;

		if (c->peer_count == most || !is_idle(c))
			continue;
		n = peers_count(c->peer_count);
		if (n > first) {
			second = first;
			first = n;
			most = c->peer_count;
		} else if (n > second) {
			second = n;
		}
	}
	*ret_nr = first - second + 1;
	return most;
}

/* Notes the oldest idle connections of that address, in order. */
static void
note_oldest(struct http *h, const struct peer *peer, int max)
{
	list_for_each(l, &h->open)
	{
		struct hconn *c = container_of(l, struct hconn, link);
		int at = h->victim_nr;

		if (c->peer_count != peer || !is_idle(c))
			continue;
		if (at == max && c->stamp > h->victim[at - 1].stamp)
			continue;
		at -= at == max;
		for (; at > 0 && h->victim[at - 1].stamp > c->stamp; at--)
			h->victim[at] = h->victim[at - 1];
		h->victim[at].c = c;
		h->victim[at].stamp = c->stamp;
		h->victim_nr += h->victim_nr < max;
	}
}

/* Looking through all connections costs as much as taking ten new ones, so it finds several at a time. */
static struct hconn *
idle_victim(struct http *h)
{
	const struct peer *peer;
	int nr;

	for (int round = 0; round < 2; round++) {
		while (h->victim_at < h->victim_nr) {
			struct hconn *c = h->victim[h->victim_at].c;

			if (h->victim[h->victim_at++].stamp == c->stamp && c->where == CONN_OPEN &&
			    is_idle(c))
				return c;
		}
		h->victim_nr = h->victim_at = 0;
		peer = greediest(h, &nr);
		if (!peer)
			return NULL;
		note_oldest(h, peer, nr < VICTIMS_MAX ? nr : VICTIMS_MAX);
	}
	return NULL;
}

bool
admit_half_head(struct http *h)
{
	struct list *l = list_pop(&h->unfinished);
	struct hconn *c;

	if (!l)
		return false;
	c = container_of(l, struct hconn, unfinished);
	if (c->where == CONN_PREFACE)
		conn_drop(c);
	else
		conn_abort(c);
	stats_event(h->stats, STATS_CLOSED_HALF_HEAD);
	return true;
}

bool
admit_room(struct http *h)
{
	struct hconn *c;

	if (h->open_nr - h->leaving_nr < h->conf->limits.connections || admit_half_head(h))
		return true;
	c = idle_victim(h);
	if (!c)
		return false;
	conn_dismiss(c);
	stats_event(h->stats, STATS_CLOSED_IDLE);
	return true;
}
