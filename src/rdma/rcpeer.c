/* SPDX-License-Identifier: Apache-2.0 */
/* The clients of the table of connections, by address; see rc_int.h. */
#include "rdma/rc_int.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define PEERS_MAX 16384

void
rc_address(const struct sockaddr *sa, uint8_t ret_addr[16])
{
	if (!gid_from_sockaddr(sa, ret_addr))
		memset(ret_addr, 0, 16);
}

void
rc_peer_drop(struct rc_table *t, struct rc_peer *p)
{
	list_del(&p->bucket);
	t->peer_nr--;
	free(p);
}

struct rc_peer *
rc_peer_get(struct rc_table *t, const uint8_t addr[16], uint64_t now)
{
	uint8_t key[16];
	struct list *b;
	struct rc_peer *found = NULL;

	memcpy(key, addr, 16);
	if (!gid_is_v4(key))
		memset(key + 8, 0, 8);
	b = rc_bucket(t, t->peers, key);
	list_for_each_safe(l, b)
	{
		struct rc_peer *p = container_of(l, struct rc_peer, bucket);

		if (memcmp(p->addr, key, 16) == 0)
			found = p;
		else if (p->conns == 0 && p->waiting == 0 && p->next_ns <= now)
			rc_peer_drop(t, p);
	}
	if (found || t->peer_nr == PEERS_MAX)
		return found;
	found = calloc(1, sizeof *found);
	if (!found)
		return NULL;
	memcpy(found->addr, key, 16);
	list_push_tail(b, &found->bucket);
	t->peer_nr++;
	return found;
}

bool
rc_rate_take(const struct rc_table *t, struct rc_peer *p, uint64_t now)
{
	uint64_t each = NS_PER_S / (uint64_t)t->conf.connect_rate;
	uint64_t from = p->next_ns > now ? p->next_ns : now;

	if (from - now > NS_PER_S - each)
		return false;
	p->next_ns = from + each;
	return true;
}
