/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a token to a rail, a source GID and an address handle's attributes: protocol.md 2.8 (items 22, 23,
 * 26).  Pure functions, any thread; rail.c keeps the views.
 */
#include "rdma/rdma_int.h"

#include <errno.h>
#include <string.h>

/* How well a source fits; the order of the terms is the order of protocol.md 2.8. */
enum { FIT_USABLE = 1, FIT_SAME_ADDRESS = 2, FIT_SAME_SUBNET = 4, FIT_LOCAL_RAIL = 8 };

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
	if (gid_is_v4(g->raw) != gid_is_v4(tok->gid))
		return 0;
	/* An address of one link means nothing on another, and a packet from it cannot leave. */
	if (gid_is_link_local(g->raw) != gid_is_link_local(tok->gid))
		return 0;
	return FIT_USABLE + (local_rail ? FIT_LOCAL_RAIL : 0) +
	       (gid_prefix_equal(g->raw, tok->gid, g->prefix) ? FIT_SAME_SUBNET : 0) +
	       (local && memcmp(g->raw, local, 16) == 0 ? FIT_SAME_ADDRESS : 0);
}

static int
fit_infiniband(const struct rail_view *v, const struct token *tok, bool local_rail)
{
	bool same = !tok->have_gid;

	for (int i = 0; i < v->gid_nr && !same; i++)
		same = gid_prefix_equal(v->gid[i].raw, tok->gid, 64);
	return FIT_USABLE + (local_rail ? FIT_LOCAL_RAIL : 0) + (same ? FIT_SAME_SUBNET : 0);
}

int
rdma_choose(const struct rail_view *const *views, int view_nr, unsigned up, const struct token *tok,
	    const struct sockaddr *local, struct rail_route *ret_route)
{
	struct rail_route best = { 0 };
	uint8_t addr[16];
	bool have_local = gid_from_sockaddr(local, addr), refused = false, needs_router = false;
	int best_fit = 0;

	for (int i = 0; i < view_nr; i++) {
		const struct rail_view *v = views[i];
		bool local_rail = have_local && rail_has_address(v, addr);

		if (!(up & 1u << i))
			continue;
		if (v->is_ethernet && !tok->have_gid) {
			refused = true;
			continue;
		}
		for (int k = 0; v->is_ethernet && k < v->gid_nr; k++) {
			int fit = fit_ethernet(&v->gid[k], tok, have_local ? addr : NULL, local_rail);

			if (fit > best_fit) {
				best_fit = fit;
				best = (struct rail_route){
					.rail = i, .key = { .is_global = true, .sgid_index = v->gid[k].index }
				};
				memcpy(best.key.dgid, tok->gid, 16);
			}
		}
		if (v->is_ethernet || (tok->have_gid && gid_is_v4(tok->gid)))
			continue; /* an IPv4-mapped GID names a RoCE port */
		if (tok->lid == 0) {
			needs_router = true;
			continue;
		}
		if (fit_infiniband(v, tok, local_rail) > best_fit) {
			best_fit = fit_infiniband(v, tok, local_rail);
			best = (struct rail_route){ .rail = i,
						    .key = { .is_global = tok->have_gid, .dlid = tok->lid } };
			if (tok->have_gid) {
				memcpy(best.key.dgid, tok->gid, 16);
				best.key.sgid_index = v->gid_nr ? v->gid[0].index : 0;
			}
		}
	}
	if (!best_fit)
		return needs_router ? -ENETUNREACH : refused ? -EINVAL : -ENETDOWN;
	*ret_route = best;
	return 0;
}

struct ah_params
rail_ah_params(const struct rdma_rail *rail)
{
	const struct conf_rdma *c = &rail->rd->conf;
	int sl_max = rail->is_ethernet ? 7 : 15; /* 2.8 */

	return (struct ah_params){
		.service_level = (uint8_t)(c->service_level < sl_max ? c->service_level : sl_max),
		.traffic_class = (uint8_t)c->traffic_class,
		.hop_limit = (uint8_t)c->hop_limit,
	};
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
}
