/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which port a token names: all in turn, but for a while not the one that a server said it cannot reach.  A
 * machine may have eight of which the server sees two; a server need not see what another does.
 */
#include "client/client_int.h"

#include "base/clock.h"
#include "base/siphash.h"

#include <string.h>

#define AVOID_NS (60 * NS_PER_S)

uint64_t
server_of(const char *url)
{
	static const uint64_t key[2];
	const char *host = strstr(url, "://");
	size_t len;

	host = host ? host + 3 : url;
	len = (size_t)(host - url) + strcspn(host, "/?#");
	return siphash(key, url, len);
}

/* Locked. */
static struct avoided *
find_avoided(struct gantry *g, int port, uint64_t server)
{
	for (int i = 0; i < AVOIDED_MAX; i++) {
		struct avoided *a = &g->avoided[i];

		if (a->until_ns && a->port == port && a->server == server)
			return a;
	}
	return NULL;
}

/* Locked. */
static bool
is_avoided(struct gantry *g, int port, uint64_t server)
{
	struct avoided *a = find_avoided(g, port, server);

	return a && clock_ns() < a->until_ns;
}

static bool
can_use(const struct gantry *g, const struct region *r, int port)
{
	return !g->port[port].is_down && (!r || r->mr[port]);
}

struct port *
port_choose(struct gantry *g, const struct region *r, uint64_t server)
{
	int first = -1, chosen = -1;
	unsigned at = g->next_port++;
	bool avoids = server && g->avoids;

	if (avoids)
		pthread_mutex_lock(&g->lock);
	for (int i = 0; i < g->port_nr && chosen < 0; i++) {
		int k = (int)((at + (unsigned)i) % (unsigned)g->port_nr);

		if (!can_use(g, r, k))
			continue;
		if (first < 0)
			first = k;
		if (!avoids || !is_avoided(g, k, server))
			chosen = k;
	}
	if (avoids)
		pthread_mutex_unlock(&g->lock);
	/* All are avoided: the server may have changed its mind, and a decline costs little. */
	if (chosen < 0)
		chosen = first;
	return chosen < 0 ? NULL : &g->port[chosen];
}

bool
port_avoid(struct gantry *g, const struct port *p, const struct region *r, uint64_t server)
{
	int port = (int)(p - g->port);
	bool is_other_left = false;
	struct avoided *a;

	pthread_rwlock_rdlock(&g->map_lock);
	pthread_mutex_lock(&g->lock);
	a = find_avoided(g, port, server);
	if (!a) {
		/* The one that ends first. */
		a = g->avoided;
		for (int i = 1; i < AVOIDED_MAX; i++) {
			if (g->avoided[i].until_ns < a->until_ns)
				a = &g->avoided[i];
		}
	}
	*a = (struct avoided){ .server = server, .port = port, .until_ns = clock_ns() + AVOID_NS };
	g->avoids = true;
	for (int i = 0; i < g->port_nr; i++)
		is_other_left |= can_use(g, r, i) && !is_avoided(g, i, server);
	pthread_mutex_unlock(&g->lock);
	pthread_rwlock_unlock(&g->map_lock);
	return is_other_left;
}
