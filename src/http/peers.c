/* SPDX-License-Identifier: Apache-2.0 */
/* The table of client addresses, see peers.h: chains in an array, under one lock. */
#include "http/peers.h"

#include "base/address.h"
#include "base/check.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/siphash.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct peer {
	struct peer *next;
	struct in6_addr client;
	_Atomic int nr;
};

struct peers {
	pthread_mutex_t lock;
	struct pool pool;
	uint64_t seed[2]; /* nobody can choose addresses that share a chain */
	size_t mask;
	struct peer **chain;
};

int
peers_new(int max, struct peers **ret_peers)
{
	struct peers *p = calloc(1, sizeof *p);
	size_t chains = 64;

	if (!p)
		return -ENOMEM;
	while (chains < (size_t)max)
		chains *= 2;
	p->mask = chains - 1;
	p->chain = calloc(chains, sizeof(struct peer *));
	if (!p->chain || pool_init(&p->pool, sizeof(struct peer), max) < 0) {
		free(p->chain);
		free(p);
		return -ENOMEM;
	}
	/* Without randomness chains can be made long on purpose, which costs time and nothing else. */
	if (getrandom(p->seed, sizeof p->seed, GRND_NONBLOCK) < 0)
		p->seed[0] = (uintptr_t)p;
	pthread_mutex_init(&p->lock, NULL);
	*ret_peers = p;
	return 0;
}

void
peers_free(struct peers *p)
{
	if (!p)
		return;
	pool_fini(&p->pool);
	pthread_mutex_destroy(&p->lock);
	free(p->chain);
	free(p);
}

static struct peer **
chain_of(struct peers *p, const struct in6_addr *client)
{
	return &p->chain[siphash(p->seed, client, sizeof *client) & p->mask];
}

int
peers_add(struct peers *p, const struct sockaddr *sa, int cap, struct peer **ret_peer)
{
	struct in6_addr client;
	struct peer **chain, *e;
	int rc = 0;

	address_client(sa, &client);
	pthread_mutex_lock(&p->lock);
	chain = chain_of(p, &client);
	for (e = *chain; e && memcmp(&e->client, &client, sizeof client) != 0; e = e->next)
		;
	if (e && cap && e->nr >= cap) {
		rc = -EUSERS;
	} else if (e) {
		e->nr++;
	} else if ((e = pool_get(&p->pool)) != NULL) {
		*e = (struct peer){ .next = *chain, .client = client, .nr = 1 };
		*chain = e;
	} else {
		rc = -ENOSPC;
	}
	pthread_mutex_unlock(&p->lock);
	*ret_peer = rc == 0 ? e : NULL;
	return rc;
}

void
peers_remove(struct peers *p, struct peer *peer)
{
	pthread_mutex_lock(&p->lock);
	check(peer->nr > 0);
	if (--peer->nr == 0) {
		struct peer **at = chain_of(p, &peer->client);

		while (*at != peer)
			at = &(*at)->next;
		*at = peer->next;
		pool_put(&p->pool, peer);
	}
	pthread_mutex_unlock(&p->lock);
}

int
peers_count(const struct peer *peer)
{
	return peer->nr;
}
