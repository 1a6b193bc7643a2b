/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GIDs of a rail, the subnets around them, and the addresses that tokens may name. The async helper reads the table of a
 * port again after its events; any thread asks.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/check.h"
#include "base/log.h"
#include "base/tclass.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int
mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << mtu : 0;
}

enum ibv_mtu
mtu_enum(int bytes)
{
	int mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 128 << (mtu + 1) <= bytes)
		mtu++;
	return (enum ibv_mtu)mtu;
}

int
port_class(const struct conf_rdma *conf, const char *device, int port)
{
	int class = conf->traffic_class;

	if (class == CONF_CLASS_AUTO)
		class = tclass_forced(device, (unsigned)port);
	return class < 0 ? TRAFFIC_CLASS : class;
}

ssize_t
context_gids(const struct rdma_context *c, struct ibv_gid_entry **ret_entries)
{
	size_t max = 0;
	ssize_t n;

	*ret_entries = NULL;
	/* One entry too few, and nothing at all is told. */
	for (int port = 1; port <= c->attr.phys_port_cnt; port++) {
		struct ibv_port_attr attr;

		if (ibv_query_port(c->ctx, (uint8_t)port, &attr) == 0 && attr.gid_tbl_len > 0)
			max += (size_t)attr.gid_tbl_len;
	}
	if (max == 0)
		return 0;
	*ret_entries = calloc(max, sizeof **ret_entries);
	if (!*ret_entries)
		return -ENOMEM;
	n = ibv_query_gid_table(c->ctx, *ret_entries, max, 0);
	return n;
}

struct if_prefix {
	uint8_t addr[16];
	uint8_t prefix;
};

/* The subnets around the machine's addresses; a GID table has none. */
static int
read_prefixes(struct if_prefix *ret, int max)
{
	struct ifaddrs *all;
	int n = 0;

	if (getifaddrs(&all) < 0)
		return 0;
	for (struct ifaddrs *i = all; i && n < max; i = i->ifa_next) {
		uint8_t mask[16];
		unsigned bits = 0;

		if (!i->ifa_netmask || !gid_from_sockaddr(i->ifa_addr, ret[n].addr) ||
		    !gid_from_sockaddr(i->ifa_netmask, mask))
			continue;
		for (int k = i->ifa_addr->sa_family == AF_INET ? 96 : 0;
		     k < 128 && mask[k / 8] & 0x80 >> k % 8; k++)
			bits++;
		ret[n++].prefix = (uint8_t)(bits + (i->ifa_addr->sa_family == AF_INET ? 96 : 0));
	}
	freeifaddrs(all);
	return n;
}

static bool
is_wanted(const struct rdma_rail *rail, const uint8_t gid[16])
{
	pthread_rwlock_t *lock = &rail->rd->table_lock;
	bool is;

	pthread_rwlock_rdlock(lock);
	is = rail->only_nr == 0;
	for (int i = 0; i < rail->only_nr; i++)
		is |= memcmp(rail->only[i], gid, 16) == 0;
	pthread_rwlock_unlock(lock);
	return is;
}

static void
read_gids(const struct rdma_rail *rail, const struct rdma_context *c, struct rail_view *view)
{
	enum { PREFIXES = 1024 };
	struct ibv_gid_entry *e;
	struct if_prefix *p = calloc(PREFIXES, sizeof *p);
	static const uint8_t zero[16];
	ssize_t n = context_gids(c, &e);
	int pn = p ? read_prefixes(p, PREFIXES) : 0, more = 0;

	if (n < 0)
		log_warn("%s: the GID table cannot be read: %s", rail->dev->name, strerror((int)-n));
	for (ssize_t i = 0; i < n; i++) {
		struct rail_gid *g;

		/* An address handle has 8 bits for the index. */
		if (e[i].port_num != rail->port || e[i].gid_index > 255 ||
		    memcmp(e[i].gid.raw, zero, 16) == 0)
			continue;
		if (e[i].gid_type != (view->is_ethernet ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB))
			continue;
		if (view->is_ethernet && !is_wanted(rail, e[i].gid.raw))
			continue;
		if (view->gid_nr == RAIL_GIDS_MAX) {
			more++;
			continue;
		}
		g = &view->gid[view->gid_nr];
		memcpy(g->raw, e[i].gid.raw, 16);
		g->index = e[i].gid_index;
		g->ifindex = e[i].ndev_ifindex;
		g->prefix = gid_is_v4(g->raw) && gid_is_loopback(g->raw) ? 96 + 8 : 128;
		for (int k = 0; k < pn; k++) {
			if (memcmp(p[k].addr, g->raw, 16) == 0)
				g->prefix = p[k].prefix;
		}
		view->gid_nr++;
	}
	view->gids_cut = more;
	free(e);
	free(p);
}

/* Not by memcmp(): what lies between the fields says nothing. */
static bool
view_equal(const struct rail_view *a, const struct rail_view *b)
{
	if (a->is_ethernet != b->is_ethernet || a->lid != b->lid || a->gid_nr != b->gid_nr ||
	    a->gids_cut != b->gids_cut || a->ip_nr != b->ip_nr || memcmp(a->ip, b->ip, sizeof a->ip) != 0)
		return false;
	for (int i = 0; i < a->gid_nr; i++) {
		const struct rail_gid *g = &a->gid[i], *h = &b->gid[i];

		if (memcmp(g->raw, h->raw, 16) != 0 || g->index != h->index || g->ifindex != h->ifindex ||
		    g->prefix != h->prefix)
			return false;
	}
	return true;
}

/* Do queue pairs have to be connected with other values, whatever their source?  Under table_lock. */
static bool
is_other_link(const struct rdma_rail *rail, const struct ibv_port_attr *attr, uint16_t pkey, int class)
{
	return (!rail->rd->conf.path_mtu && rail->port_attr.active_mtu != attr->active_mtu) ||
	       rail->pkey != pkey || rail->class != class;
}

/* Is that another path than initiators were connected for?  Under table_lock. */
static bool
is_other_path(const struct rdma_rail *rail, const struct rail_view *view, const struct ibv_port_attr *attr,
	      uint16_t pkey, int class)
{
	const struct rail_gid *was = &rail->view.gid[0], *is = &view->gid[0];

	return is_other_link(rail, attr, pkey, class) ||
	       (view->is_ethernet && (was->index != is->index || memcmp(was->raw, is->raw, 16) != 0));
}

/* Under table_lock. */
static void
take_over(struct rdma_rail *rail, const struct rail_view *view, const struct ibv_port_attr *attr,
	  uint16_t pkey, int class)
{
	if (rail->is_read && is_other_path(rail, view, attr, pkey, class)) {
		atomic_fetch_add(&rail->path, 1);
		log_note("rail %s:%d: MTU, P_Key, traffic class or source address has changed (MTU %d, P_Key "
			 "%04x, class %d): "
			 "initiators are connected again",
			 rail->dev->name, rail->port, mtu_bytes(attr->active_mtu), pkey, class);
	}
	if (rail->is_read && is_other_link(rail, attr, pkey, class))
		atomic_fetch_add(&rail->link, 1);
	if (!view_equal(&rail->view, view))
		atomic_fetch_add(&rail->addresses, 1);
	if (view->gids_cut && view->gids_cut != rail->view.gids_cut)
		log_warn("%s:%d has %d GIDs; the last %d are not used", rail->dev->name, rail->port,
			 view->gid_nr + view->gids_cut, view->gids_cut);
	rail->is_read = true;
	rail->view = *view;
	rail->port_attr = *attr;
	rail->pkey = pkey;
	atomic_store(&rail->class, class);
}

bool
rail_refresh(struct rdma_rail *rail, bool *ret_changed)
{
	struct rdma_context *c = context_get(rail->dev);
	struct ibv_port_attr attr;
	struct rail_view *view;
	int class = port_class(&rail->rd->conf, rail->dev->name, rail->port);
	__be16 pkey = 0;
	int r = c ? ibv_query_port(c->ctx, rail->port, &attr) : ENODEV;

	if (ret_changed)
		*ret_changed = false;

	if (r) {
		log_debug("%s:%d cannot be queried: %s", rail->dev->name, rail->port, strerror(r));
		if (c)
			context_put(c);
		return false;
	}
	view = calloc(1, sizeof *view);
	if (!view) {
		context_put(c);
		return true; /* the old one serves on */
	}
	view->is_ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	view->port = rail->port;
	view->lid = attr.lid;
	pthread_rwlock_rdlock(&rail->rd->table_lock);
	view->ip_nr = rail->ip_nr;
	memcpy(view->ip, rail->ip, sizeof view->ip);
	pthread_rwlock_unlock(&rail->rd->table_lock);
	read_gids(rail, c, view);
	if (ibv_query_pkey(c->ctx, rail->port, rail->rd->conf.pkey_index, &pkey))
		pkey = 0;
	context_put(c);
	pthread_rwlock_wrlock(&rail->rd->table_lock);
	if (ret_changed)
		*ret_changed = is_other_path(rail, view, &attr, ntohs(pkey), class) ||
			       !view_equal(&rail->view, view);
	take_over(rail, view, &attr, ntohs(pkey), class);
	pthread_rwlock_unlock(&rail->rd->table_lock);
	free(view);
	return true;
}

/* After any rail_refresh().  A rail that serves no token leads nowhere, so its subnets are none of ours. */
void
trust_refresh(struct rdma *rd)
{
	const struct rail_view *views[RDMA_RAILS_MAX];
	int nr = 0;

	pthread_rwlock_wrlock(&rd->table_lock);
	for (int i = 0; i < rd->rail_nr; i++) {
		if (device_serves(rd->rail[i]->dev))
			views[nr++] = &rd->rail[i]->view;
	}
	rdma_trust_build(views, nr, &rd->trust);
	pthread_rwlock_unlock(&rd->table_lock);
}

bool
any_rail_serves(const struct rdma *rd)
{
	for (int i = 0; i < rd->rail_nr; i++) {
		if (device_serves(rd->rail[i]->dev))
			return true;
	}
	return false;
}

int
rdma_gid_allowed(const struct rdma *rd, const struct conf_rdma *conf, const uint8_t *gid,
		 const struct sockaddr *peer)
{
	pthread_rwlock_t *lock = (pthread_rwlock_t *)(uintptr_t)&rd->table_lock;
	int r;

	/* Without a rail that serves nobody is reached and there is no subnet to compare with: the request is
	 * declined later, and its data goes over HTTP. */
	if (!any_rail_serves(rd))
		return 0;
	pthread_rwlock_rdlock(lock);
	r = rdma_trust_check(&rd->trust, conf, gid, peer);
	pthread_rwlock_unlock(lock);
	return r;
}

bool
rdma_shares_subnet(const struct rdma *rd, const struct sockaddr *listen)
{
	pthread_rwlock_t *lock = (pthread_rwlock_t *)(uintptr_t)&rd->table_lock;
	bool shares;

	pthread_rwlock_rdlock(lock);
	shares = rdma_trust_shares(&rd->trust, listen);
	pthread_rwlock_unlock(lock);
	return shares;
}
