/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a token to a rail, a source GID and an address handle's attributes: protocol.md 2.8 (items 22, 23,
 * 26).  Pure functions, any thread; rail.c keeps the views.
 */
#include "rdma/rdma_int.h"

#include <errno.h>
#include <string.h>

/* How well a source fits; the order of the terms is the order of protocol.md 2.8. */
enum { FIT_USABLE = 1, FIT_SAME_ADDRESS = 2, FIT_KNOWN_SUBNET = 4, FIT_LOCAL_RAIL = 8, FIT_SAME_SUBNET = 16 };

static bool
rail_has_address(const struct rail_view *v, const uint8_t addr[16])
{
	for (int i = 0; i < v->gid_nr; i++) {
		if (memcmp(v->gid[i].raw, addr, 16) == 0)
			return true;
	}
	for (int i = 0; i < v->ip_nr; i++) {
		if (memcmp(v->ip[i], addr, 16) == 0)
			return true;
	}
	return false;
}

static int
fit_ethernet(const struct rail_gid *g, const struct token *tok, const uint8_t *local, bool local_rail)
{
	bool same_subnet;

	if (gid_is_v4(g->raw) != gid_is_v4(tok->gid))
		return 0;
	/* An address of one link means nothing on another, and a packet from it cannot leave. */
	if (gid_is_link_local(g->raw) != gid_is_link_local(tok->gid))
		return 0;
	same_subnet = gid_prefix_equal(g->raw, tok->gid, g->prefix);
	/* One whose subnet is unknown may be in another network namespace than we are.  A client that comes
	 * through routers comes by any rail, whichever address all of them were told. */
	return FIT_USABLE + (g->prefix < 128 ? FIT_KNOWN_SUBNET : 0) +
	       (same_subnet ? FIT_SAME_SUBNET + (local_rail ? FIT_LOCAL_RAIL : 0) : 0) +
	       (local && memcmp(g->raw, local, 16) == 0 ? FIT_SAME_ADDRESS : 0);
}

/* How well an Ethernet rail fits, by the best of its sources; 0: not at all. */
static int
take_ethernet(const struct rail_view *v, const struct token *tok, const uint8_t *local, bool local_rail,
	      struct rdma_ah_key *ret_key)
{
	int best = 0;

	for (int k = 0; k < v->gid_nr; k++) {
		int fit = fit_ethernet(&v->gid[k], tok, local, local_rail);

		if (fit <= best)
			continue;
		best = fit;
		*ret_key = (struct rdma_ah_key){ .is_global = true, .sgid_index = v->gid[k].index };
		memcpy(ret_key->dgid, tok->gid, 16);
	}
	/* Whose address it was has chosen the source; it makes no rail better than another. */
	return best & ~FIT_SAME_ADDRESS;
}

static int
take_infiniband(const struct rail_view *v, const struct token *tok, bool local_rail,
		struct rdma_ah_key *ret_key)
{
	bool same = !tok->have_gid;

	*ret_key = (struct rdma_ah_key){ .dlid = tok->lid, .sgid_index = v->gid_nr ? v->gid[0].index : 0 };
	for (int i = 0; i < v->gid_nr && !same; i++) {
		same = gid_prefix_equal(v->gid[i].raw, tok->gid, 64);
		if (same)
			ret_key->sgid_index = v->gid[i].index;
	}
	ret_key->is_global = !same;
	/* Within a subnet it is not sent; the path is asked for by it. */
	if (tok->have_gid)
		memcpy(ret_key->dgid, tok->gid, 16);
	return FIT_USABLE + (same ? FIT_SAME_SUBNET + (local_rail ? FIT_LOCAL_RAIL : 0) : 0);
}

/* Which link layer the token's port is on: RoCE ports have no LID, and only they have IPv4 addresses.  A LID beside any other GID
 * is InfiniBand's where we have that. */
static bool
is_infiniband(const struct rail_view *const *views, int view_nr, const struct token *tok)
{
	bool have_ib = false;

	for (int i = 0; i < view_nr; i++)
		have_ib |= !views[i]->is_ethernet;
	return have_ib && (!tok->have_gid || (tok->lid != 0 && !gid_is_v4(tok->gid)));
}

/* Why no rail was found. */
static int
why_none(const struct rail_view *const *views, int view_nr, unsigned up, const struct token *tok)
{
	bool have_ib = false, ib_up = false, eth_up = false;

	for (int i = 0; i < view_nr; i++) {
		have_ib |= !views[i]->is_ethernet;
		if (up & 1u << i)
			*(views[i]->is_ethernet ? &eth_up : &ib_up) = true;
	}
	if (ib_up && tok->have_gid && tok->lid == 0 && !gid_is_v4(tok->gid))
		return -ENETUNREACH;
	return eth_up && !have_ib && !tok->have_gid ? -EINVAL : -ENETDOWN;
}

int
rdma_choose(const struct rail_view *const *views, int view_nr, unsigned up, const int *cost,
	    const struct token *tok, const struct rdma_asker *asker, struct rail_route *ret_route)
{
	struct rail_route best[RDMA_RAILS_MAX]; /* equal ones */
	uint8_t addr[16];
	bool have_local = gid_from_sockaddr(asker->local, addr), ib = is_infiniband(views, view_nr, tok);
	int best_fit = 0, best_cost = 0, nr = 0;

	for (int i = 0; i < view_nr; i++) {
		const struct rail_view *v = views[i];
		bool local_rail = have_local && rail_has_address(v, addr);
		struct rdma_ah_key key;
		int fit, rail_cost = cost ? cost[i] : 0;

		if (!(up & ~asker->tried & 1u << i) || v->is_ethernet == ib)
			continue;
		if (ib)
			fit = tok->lid ? take_infiniband(v, tok, local_rail, &key) : 0;
		else
			fit = tok->have_gid
				      ? take_ethernet(v, tok, have_local ? addr : NULL, local_rail, &key)
				      : 0;
		if (!fit || fit < best_fit || (fit == best_fit && rail_cost > best_cost))
			continue;
		if (fit > best_fit || rail_cost < best_cost)
			nr = 0;
		best_fit = fit;
		best_cost = rail_cost;
		best[nr++] = (struct rail_route){ .rail = i, .key = key };
	}
	if (!nr)
		return why_none(views, view_nr, up, tok);
	*ret_route = best[asker->turn % (unsigned)nr];
	ret_route->key.must_route = asker->must_route;
	return 0;
}

struct ah_params
rail_ah_params(const struct rdma_rail *rail)
{
	const struct conf_rdma *c = &rail->rd->conf;
	int level = c->service_level == CONF_LEVEL_AUTO ? 0 : c->service_level;
	int sl_max = rail->is_ethernet ? 7 : 15; /* 2.8 */

	return (struct ah_params){
		.service_level = (uint8_t)(level < sl_max ? level : sl_max),
		.traffic_class = (uint8_t)atomic_load_explicit(&rail->class, memory_order_relaxed),
		.hop_limit = (uint8_t)c->hop_limit,
	};
}

/* Of RoCE the adapter makes the UDP source port of it, which is what switches and bonds go by; with 0 it would take any, once for all. */
static uint32_t
flow_label(const struct rdma_ah_key *key)
{
	uint64_t h = 0xcbf29ce484222325ull;
	uint32_t label;

	for (int i = 0; i < 16; i++)
		h = (h ^ key->dgid[i]) * 0x100000001b3ull;
	h = (h ^ (key->path + 1u)) * 0x100000001b3ull;
	label = (uint32_t)(h >> 40) & 0xfffff;
	return label ? label : 1;
}

void
rdma_ah_build(const struct rdma_ah_key *key, uint8_t port, const struct ah_params *params,
	      struct ibv_ah_attr *ret_attr)
{
	*ret_attr = (struct ibv_ah_attr){
		.dlid = key->dlid, /* 0 on Ethernet */
		.sl = params->service_level,
		.is_global = key->is_global,
		.port_num = port,
	};
	if (!key->is_global)
		return;
	memcpy(ret_attr->grh.dgid.raw, key->dgid, 16);
	ret_attr->grh.sgid_index = (uint8_t)key->sgid_index;
	ret_attr->grh.hop_limit = params->hop_limit;
	ret_attr->grh.traffic_class = params->traffic_class;
	ret_attr->grh.flow_label = flow_label(key);
}
