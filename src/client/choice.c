/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which port a token names: all in turn, but for a while not the one that a server said it cannot reach.  A
 * machine may have eight of which the server sees two; a server need not see what another does.
 *
 * Of a port that this server has said nothing about one call finds out; calls of other threads take another port meanwhile, or wait for
 * what comes of it, so that many threads cost no more declines than one.
 *
 *     (unknown) -- taken --> TRIED -- answered --> REACHED -- 10 min --> (unknown)
 *                              | '-- no answer, or it takes long --> (unknown)
 *                              '---- not reached --> AVOIDED -- 1 min --> (unknown)
 *
 * The same of transports: one that a server was found to lack is not tried for a minute.
 */
#include "client/client_int.h"

#include "base/clock.h"
#include "base/siphash.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define AVOID_NS (60 * NS_PER_S)
#define REACHED_NS (600 * NS_PER_S)
#define TRIED_NS (1 * NS_PER_S)
#define WAIT_NS (300 * NS_PER_MS) /* a decline is there by then */

size_t
server_len(const char *url)
{
	const char *host = strstr(url, "://");

	host = host ? host + 3 : url;
	return (size_t)(host - url) + strcspn(host, "/?#");
}

uint64_t
server_of(const char *url)
{
	static const uint64_t key[2];

	return siphash(key, url, server_len(url));
}

/* What is known, locked; NULL: nothing any more. */
static struct reach *
find(struct gantry *g, int port, uint64_t server)
{
	uint64_t now = clock_ns();

	for (int i = 0; i < REACH_MAX; i++) {
		struct reach *k = &g->reach[i];

		if (now < k->until_ns && k->port == port && k->server == server)
			return k;
	}
	return NULL;
}

/* Locked. */
static void
note(struct gantry *g, int port, uint64_t server, enum reach_state state, uint64_t ns)
{
	struct reach *k = find(g, port, server);

	if (!k) {
		/* The one that ends first. */
		k = g->reach;
		for (int i = 1; i < REACH_MAX; i++) {
			if (g->reach[i].until_ns < k->until_ns)
				k = &g->reach[i];
		}
	}
	*k = (struct reach){ .server = server, .port = port, .state = state, .until_ns = clock_ns() + ns };
	if (state != REACH_TRIED && g->choice_waits)
		pthread_cond_broadcast(&g->settled);
}

static bool
can_use(const struct gantry *g, const struct region *r, int port)
{
	return !g->port[port].is_down && (!r || r->mr[port]);
}

struct port *
port_choose(struct gantry *g, const struct region *r)
{
	unsigned at = g->port_nr > 1 ? g->map_lock[stripe_mine()].turn++ : 0;

	for (int i = 0; i < g->port_nr; i++) {
		int k = (int)((at + (unsigned)i) % (unsigned)g->port_nr);

		if (can_use(g, r, k))
			return &g->port[k];
	}
	return NULL;
}

/* Locked.  The port in turn from `at` on; -1: none.  *ret_wait: it is one of which another call is finding out. */
static int
take(struct gantry *g, const struct region *r, uint64_t server, unsigned at, bool *ret_wait)
{
	int first = -1, tried = -1;

	*ret_wait = false;
	for (int i = 0; i < g->port_nr; i++) {
		int port = (int)((at + (unsigned)i) % (unsigned)g->port_nr);
		const struct reach *k;

		if (!can_use(g, r, port))
			continue;
		k = find(g, port, server);
		if (!k)
			note(g, port, server, REACH_TRIED, TRIED_NS);
		if (!k || k->state == REACH_REACHED)
			return port;
		if (first < 0)
			first = port;
		if (tried < 0 && k->state == REACH_TRIED)
			tried = port;
	}
	*ret_wait = tried >= 0;
	/* All are avoided: the server may have changed its mind, and a decline costs little. */
	return tried >= 0 ? tried : first;
}

struct port *
port_take(struct gantry *g, const struct region *r, uint64_t server)
{
	uint64_t until = clock_ns() + WAIT_NS;
	struct timespec ts = { .tv_sec = (time_t)(until / NS_PER_S), .tv_nsec = (long)(until % NS_PER_S) };
	struct port *only;
	unsigned at;
	bool wait;
	int port, e = 0;

	if (g->port_nr < 2) {
		map_rdlock(g);
		only = port_choose(g, r);
		map_rdunlock(g);
		return only;
	}
	at = g->map_lock[stripe_mine()].turn++;
	for (;;) {
		map_rdlock(g);
		pthread_mutex_lock(&g->lock);
		port = take(g, r, server, at, &wait);
		map_rdunlock(g);
		if (!wait || e)
			break;
		g->choice_waits++;
		e = pthread_cond_timedwait(&g->settled, &g->lock, &ts);
		g->choice_waits--;
		pthread_mutex_unlock(&g->lock);
	}
	pthread_mutex_unlock(&g->lock);
	return port < 0 ? NULL : &g->port[port];
}

void
port_settle(struct gantry *g, const struct port *p, uint64_t server, bool reached)
{
	int port = (int)(p - g->port);
	struct reach *k;

	if (g->port_nr < 2)
		return;
	pthread_mutex_lock(&g->lock);
	k = find(g, port, server);
	if (reached && k && k->state != REACH_TRIED) {
		/* Known, or somebody was told otherwise meanwhile. */
	} else if (reached) {
		note(g, port, server, REACH_REACHED, REACHED_NS);
	} else if (k && k->state == REACH_TRIED) {
		k->until_ns = 0;
		if (g->choice_waits)
			pthread_cond_broadcast(&g->settled);
	}
	pthread_mutex_unlock(&g->lock);
}

bool
port_avoid(struct gantry *g, const struct port *p, const struct region *r, uint64_t server)
{
	bool is_other_left = false;

	map_rdlock(g);
	pthread_mutex_lock(&g->lock);
	note(g, (int)(p - g->port), server, REACH_AVOIDED, AVOID_NS);
	for (int i = 0; i < g->port_nr; i++) {
		const struct reach *k = can_use(g, r, i) ? find(g, i, server) : NULL;

		is_other_left |= can_use(g, r, i) && (!k || k->state != REACH_AVOIDED);
	}
	pthread_mutex_unlock(&g->lock);
	map_rdunlock(g);
	return is_other_left;
}

/* ---- the transport ---- */

static const char *const transport_name[] = { "", "DC", "RC" };

/* Locked.  NULL: nothing is known against it. */
static struct lack *
find_lack(struct gantry *g, uint64_t server, enum gantry_transport transport)
{
	uint64_t now = clock_ns();

	for (int i = 0; i < LACKS_MAX; i++) {
		struct lack *l = &g->lack[i];

		if (now < l->until_ns && l->transport == transport && l->server == server)
			return l;
	}
	return NULL;
}

enum gantry_transport
transport_take(struct gantry *g, const struct port *p, uint64_t server, char *why, size_t why_len)
{
	enum gantry_transport chosen = g->transport;
	const struct lack *dc = NULL, *rc = NULL;

	*why = 0;
	if (chosen == GANTRY_TRANSPORT_DC || !g->rc)
		return GANTRY_TRANSPORT_DC;
	pthread_mutex_lock(&g->lock);
	if (chosen == GANTRY_TRANSPORT_AUTO && p->has_dc)
		dc = find_lack(g, server, GANTRY_TRANSPORT_DC);
	rc = find_lack(g, server, GANTRY_TRANSPORT_RC);
	if (chosen == GANTRY_TRANSPORT_AUTO && p->has_dc && !dc)
		chosen = GANTRY_TRANSPORT_DC;
	else
		chosen = rc ? GANTRY_TRANSPORT_AUTO : GANTRY_TRANSPORT_RC;
	/* With neither, the server's answer to the token says more than that it has no other transport either. */
	if (chosen == GANTRY_TRANSPORT_AUTO)
		snprintf(why, why_len, "%s", dc ? dc->why : rc->why);
	pthread_mutex_unlock(&g->lock);
	return chosen;
}

void
transport_lacks(struct gantry *g, const char *url, enum gantry_transport transport, const char *why)
{
	uint64_t server = server_of(url);
	struct lack *l;

	pthread_mutex_lock(&g->lock);
	l = find_lack(g, server, transport);
	if (!l) {
		l = g->lack;
		for (int i = 1; i < LACKS_MAX; i++) {
			if (g->lack[i].until_ns < l->until_ns)
				l = &g->lack[i];
		}
	}
	*l = (struct lack){ .server = server, .transport = transport, .until_ns = clock_ns() + AVOID_NS };
	snprintf(l->why, sizeof l->why, "%s", why);
	pthread_mutex_unlock(&g->lock);
	client_log(g, GANTRY_LOG_INFO, "%.*s: no transfers by %s for a minute: %s", (int)server_len(url), url,
		   transport_name[transport], why);
}
