/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of the network: which ports are on one link layer, which addresses are in whose subnets, how long it takes to learn
 * that a neighbour is not there.  softnicctl reach and route say so in the fabric; without them every GID is reachable from every
 * port of its kind, at once.  On any thread.
 */
#include "softnic/softnic.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

bool
sn_has_row(const struct fab_port *port, uint32_t index)
{
	return port->gid[index].type != FAB_GID_NONE && port->gid[index].type != FAB_GID_GONE &&
	       !atomic_load(&port->no_gids);
}

static bool
has_gid(const struct fab_port *port, const uint8_t gid[16])
{
	for (int i = 0; i < FAB_GIDS && port->gid[i].type != FAB_GID_NONE; i++) {
		if (port->gid[i].type != FAB_GID_GONE && memcmp(port->gid[i].raw, gid, 16) == 0)
			return true;
	}

	return false;
}

static bool
has_route(const struct fab_port *port, uint32_t dev, const uint8_t gid[16])
{
	struct fabric *f = sn_self.fab;

	for (int i = 0; i < FAB_GIDS && port->gid[i].type != FAB_GID_NONE; i++) {
		if (port->gid[i].type != FAB_GID_GONE &&
		    fab_prefix_equal(port->gid[i].raw, gid, port->gid[i].prefix))
			return true;
	}
	for (int i = 0; i < FAB_ROUTES; i++) {
		if (atomic_load(&f->route[i].dev) == dev + 1 &&
		    fab_prefix_equal(f->route[i].raw, gid, f->route[i].prefix))
			return true;
	}

	return false;
}

struct sn_dest
sn_dest_of(const struct ibv_ah_attr *a)
{
	bool is_global = a->is_global;
	struct sn_dest to = { .dlid = a->dlid,
			      .is_global = is_global,
			      .marks = FAB_MARKS(is_global ? a->grh.traffic_class : 0, a->sl,
						 is_global ? a->grh.sgid_index : 0),
			      .flow_label = is_global ? a->grh.flow_label : 0 };

	memcpy(to.dgid, a->grh.dgid.raw, 16);

	return to;
}

bool
sn_good_av(const struct sn_ctx *ctx, const struct ibv_ah_attr *a)
{
	const struct fab_port *port = sn_port(ctx);

	if (a->port_num != 1 || (port->lid ? a->sl > 15 : !a->is_global || a->sl > 7))
		return false;

	return !a->is_global || sn_has_row(port, a->grh.sgid_index);
}

int
sn_look_up(const struct sn_ctx *ctx, const uint8_t gid[16], uint64_t *ret_wait_ns)
{
	const struct fab_port *port = sn_port(ctx);

	*ret_wait_ns = 0;
	if (atomic_load(&sn_self.fab->reach) == FAB_REACH_SUBNET && !has_route(port, ctx->dev->index, gid))
		return ENETUNREACH;
	for (int i = 0; i < FAB_DEVS; i++) {
		if (!sn_self.fab->port[i].lid && has_gid(&sn_self.fab->port[i], gid))
			return 0;
	}
	*ret_wait_ns = atomic_load(&sn_self.fab->absent_ns);

	return ETIMEDOUT;
}

int
sn_resolve(const struct sn_ctx *ctx, const struct sn_dest *to)
{
	uint64_t absent_ns;
	int r;

	/* InfiniBand needs no address resolution. */
	if (sn_port(ctx)->lid)
		return 0;
	r = sn_look_up(ctx, to->dgid, &absent_ns);
	if (r != ETIMEDOUT)
		return r;
	/* In small naps: who ends the rule ends the wait. */
	for (uint64_t end = sn_now_ns() + absent_ns, now;
	     (now = sn_now_ns()) < end && atomic_load(&sn_self.fab->absent_ns);)
		sn_sleep_ns(end - now < SN_NAP_NS ? end - now : SN_NAP_NS);

	return absent_ns ? ETIMEDOUT : 0;
}

bool
sn_delivers(const struct fab_port *from, uint32_t from_dev, const struct fab_port *port,
	    const struct sn_dest *to)
{
	if (!from->lid != !port->lid)
		return false;
	if (port->lid)
		return to->dlid == port->lid && (!to->is_global || has_gid(port, to->dgid));

	return has_gid(port, to->dgid) &&
	       (atomic_load(&sn_self.fab->reach) != FAB_REACH_SUBNET || has_route(from, from_dev, to->dgid));
}

/* An interface of this host, as the adapter's own would be; addresses that no interface has stay without one. */
uint32_t
sn_ifindex(const struct fab_port *port, const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool v4 = memcmp(gid, mapped, sizeof(mapped)) == 0;
	struct ifaddrs *all;
	uint32_t index = 0;

	if (port->lid || getifaddrs(&all) < 0)
		return 0;
	for (struct ifaddrs *i = all; i && !index; i = i->ifa_next) {
		bool same = false;

		if (i->ifa_addr && v4 && i->ifa_addr->sa_family == AF_INET)
			same = memcmp(&((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, gid + 12, 4) ==
			       0;
		else if (i->ifa_addr && !v4 && i->ifa_addr->sa_family == AF_INET6)
			same = memcmp(&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr, gid, 16) == 0;
		if (same)
			index = if_nametoindex(i->ifa_name);
	}
	freeifaddrs(all);

	return index;
}
