/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rails: a port with its usable GIDs, its state, and who is notified when that changes.
 *
 *   UP <--- port events, or what the port says when asked ---> DOWN
 *     \                                                         /
 *      `--> LOST: device fatal, a kernel call that hangs, <----'
 *           a broken completion queue
 *             `--> UP or DOWN, when that is over
 *
 * A device that stays fatal is opened anew (reopen.c); its rails stay LOST until that has worked.  State
 * changes run on the async helper or, for a hanging call, on a core; reading is for any thread.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/check.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const char *const state_name[RAIL_STATE_NR] = { "up", "down", "lost" };

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

/* ---- the GID table ---- */

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

/* Is that another path than endpoints were connected for?  Under table_lock. */
static bool
is_other_path(const struct rdma_rail *rail, const struct rail_view *view, const struct ibv_port_attr *attr,
	      uint16_t pkey, int class)
{
	const struct rail_gid *was = &rail->view.gid[0], *is = &view->gid[0];

	if (!rail->rd->conf.path_mtu && rail->port_attr.active_mtu != attr->active_mtu)
		return true;
	return rail->pkey != pkey || rail->class != class ||
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

/* ---- state ---- */

unsigned
rdma_rail_context(const struct rdma_rail *rail)
{
	return atomic_load_explicit(&rail->dev->serving, memory_order_acquire);
}

enum rail_state
rdma_rail_state(const struct rdma_rail *rail)
{
	return (enum rail_state)atomic_load_explicit(&rail->state, memory_order_acquire);
}

unsigned
rdma_rail_generation(const struct rdma_rail *rail)
{
	return atomic_load_explicit(&rail->generation, memory_order_acquire);
}

/* Under state_lock. */
static void
notify(struct rdma *rd)
{
	list_for_each(l, &rd->watches)
	{
		struct rdma_watch *w = container_of(l, struct rdma_watch, link);

		w->changed(w);
	}
}

/* Under state_lock. */
static void
state_update(struct rdma_rail *rail)
{
	bool lost = rail->dev->fatal || rail->broken || rail->stuck > 0;
	enum rail_state state = lost ? RAIL_LOST : rail->port_up ? RAIL_UP : RAIL_DOWN;
	enum rail_state was = rdma_rail_state(rail);

	if (state == was)
		return;
	atomic_store_explicit(&rail->state, (int)state, memory_order_release);
	if (state == RAIL_UP)
		log_event(LOG_EV_RAIL_UP, LOG_NOTE, "rail %s:%d is up again", rail->dev->name, rail->port);
	else
		log_event(LOG_EV_RAIL_DOWN, LOG_WARN, "rail %s:%d is %s: nothing goes by it", rail->dev->name,
			  rail->port, state_name[state]);
	notify(rail->rd);
}

static void
rail_set_port(struct rdma_rail *rail, bool port_up)
{
	pthread_mutex_lock(&rail->rd->state_lock);
	rail->port_up = port_up;
	rail->was_up |= port_up;
	state_update(rail);
	pthread_mutex_unlock(&rail->rd->state_lock);
}

void
device_set_fatal(struct rdma_device *dev, bool fatal)
{
	struct rdma *rd = dev->rd;

	pthread_mutex_lock(&rd->state_lock);
	dev->fatal = fatal;
	for (int i = 0; i < rd->rail_nr; i++) {
		if (rd->rail[i]->dev != dev)
			continue;
		if (fatal)
			atomic_fetch_add_explicit(&rd->rail[i]->generation, 1, memory_order_acq_rel);
		state_update(rd->rail[i]);
	}
	if (fatal)
		notify(rd); /* the generation is news even to a rail that was lost already */
	pthread_mutex_unlock(&rd->state_lock);
}

void
watches_notify(struct rdma *rd)
{
	pthread_mutex_lock(&rd->state_lock);
	notify(rd);
	pthread_mutex_unlock(&rd->state_lock);
}

void
device_refresh(struct rdma_device *dev, int port)
{
	struct rdma *rd = dev->rd;
	bool news = false;

	for (int i = 0; i < rd->rail_nr; i++) {
		struct rdma_rail *rail = rd->rail[i];
		bool answers, changed;

		if (rail->dev != dev || (port && rail->port != port))
			continue;
		answers = rail_refresh(rail, &changed);
		news |= changed;
		ah_cache_forget_all(rail);
		rail_set_port(rail, answers && rail->port_attr.state == IBV_PORT_ACTIVE);
	}
	trust_refresh(rd);
	if (news)
		watches_notify(rd);
}

void
rail_reread(struct rdma_rail *rail)
{
	bool changed, answers = rail_refresh(rail, &changed);

	if (!answers || !changed)
		return;
	ah_cache_forget_all(rail);
	trust_refresh(rail->rd);
	watches_notify(rail->rd);
}

void
rdma_rail_suspect(struct rdma_rail *rail)
{
	if (!atomic_exchange(&rail->suspect, true))
		async_wake(rail->rd);
}

unsigned
rdma_rail_path(const struct rdma_rail *rail)
{
	return atomic_load_explicit(&rail->path, memory_order_acquire);
}

bool
device_is_broken(struct rdma_device *dev)
{
	struct rdma *rd = dev->rd;
	bool broken = false;

	pthread_mutex_lock(&rd->state_lock);
	for (int i = 0; i < rd->rail_nr; i++)
		broken |= rd->rail[i]->dev == dev && rd->rail[i]->broken;
	pthread_mutex_unlock(&rd->state_lock);
	return broken;
}

void
device_renew(struct rdma_device *dev, const struct rdma_context *c)
{
	struct rdma *rd = dev->rd;

	pthread_rwlock_wrlock(&rd->table_lock);
	dev->attr = c->attr;
	pthread_rwlock_unlock(&rd->table_lock);
	pthread_mutex_lock(&rd->state_lock);
	for (int i = 0; i < rd->rail_nr; i++) {
		if (rd->rail[i]->dev != dev)
			continue;
		rd->rail[i]->broken = false;
		atomic_fetch_add(&rd->rail[i]->stats.reopens, 1);
	}
	pthread_mutex_unlock(&rd->state_lock);
}

void
rdma_rail_stuck(struct rdma_rail *rail, int by)
{
	pthread_mutex_lock(&rail->rd->state_lock);
	rail->stuck += by;
	check(rail->stuck >= 0);
	/* Of a device that is fatal the log knows already. */
	if (by > 0 && !rail->dev->fatal)
		log_error("rail %s:%d: the kernel does not return from destroying a queue pair",
			  rail->dev->name, rail->port);
	state_update(rail);
	pthread_mutex_unlock(&rail->rd->state_lock);
}

void
rdma_rail_share(struct rdma_rail *rail, int share, uint64_t until_ns)
{
	atomic_store(&rail->stats.eps_share, share);
	atomic_store(&rail->stats.eps_share_until_ns, until_ns);
	watches_notify(rail->rd);
}

static void
give_up_on(struct rdma_rail *rail, const char *why, bool even_fatal)
{
	bool fatal, news;

	pthread_mutex_lock(&rail->rd->state_lock);
	fatal = rail->dev->fatal;
	news = !rail->broken && (!fatal || even_fatal);
	if (news && !fatal)
		log_event(LOG_EV_RAIL_DOWN, LOG_ERROR,
			  "rail %s:%d: %s; it stays out of use until its device is re-opened",
			  rail->dev->name, rail->port, why);
	if (news) {
		rail->broken = true;
		state_update(rail);
	}
	pthread_mutex_unlock(&rail->rd->state_lock);
	if (news)
		async_wake(rail->rd);
}

void
rdma_rail_broken(struct rdma_rail *rail, const char *why)
{
	/* Of a device that is fatal nothing else is to be expected, and all of it is made anew. */
	give_up_on(rail, why, false);
}

void
device_lost_region(struct rdma_device *dev)
{
	/* It may be well again before it is given up, and would serve without the region then. */
	give_up_on(device_first_rail(dev), "the device does not answer", true);
}

void
rdma_watch_add(struct rdma *rd, struct rdma_watch *w)
{
	pthread_mutex_lock(&rd->state_lock);
	list_push_tail(&rd->watches, &w->link);
	pthread_mutex_unlock(&rd->state_lock);
}

void
rdma_watch_del(struct rdma *rd, struct rdma_watch *w)
{
	pthread_mutex_lock(&rd->state_lock);
	list_del(&w->link);
	pthread_mutex_unlock(&rd->state_lock);
}

/* ---- asking ---- */

int
rail_reads_max(const struct rdma_rail *rail)
{
	pthread_rwlock_t *lock = &rail->rd->table_lock;
	int reads;

	pthread_rwlock_rdlock(lock);
	reads = rail->dev->attr.max_qp_init_rd_atom;
	pthread_rwlock_unlock(lock);
	return reads > 0 ? min_int(reads, reads_wanted(&rail->rd->conf)) : 1;
}

int
rail_paths(const struct rdma_rail *rail)
{
	return rail->rd->conf.paths > 0 ? rail->rd->conf.paths : rail->is_ethernet ? PATHS_ROCE : 1;
}

struct rdma_rail *
device_first_rail(const struct rdma_device *dev)
{
	struct rdma *rd = dev->rd;

	for (int i = 0; i < rd->rail_nr; i++) {
		if (rd->rail[i]->dev == dev)
			return rd->rail[i];
	}
	check(!"a device without a rail is closed at the start");
	return NULL;
}

bool
rdma_has_family(struct rdma *rd, const uint8_t gid[16])
{
	bool has = false;

	pthread_rwlock_rdlock(&rd->table_lock);
	for (int i = 0; i < rd->rail_nr; i++) {
		const struct rail_view *v = &rd->rail[i]->view;

		for (int k = 0; k < v->gid_nr && v->is_ethernet && device_serves(rd->rail[i]->dev); k++)
			has |= gid_is_v4(v->gid[k].raw) == gid_is_v4(gid);
	}
	pthread_rwlock_unlock(&rd->table_lock);
	return has;
}

bool
rdma_has_infiniband(struct rdma *rd)
{
	bool has = false;

	for (int i = 0; i < rd->rail_nr; i++)
		has |= !rd->rail[i]->is_ethernet && device_serves(rd->rail[i]->dev);
	return has;
}

const struct rdma_ep_ops *
rdma_rail_transport(const struct rdma_rail *rail, int i)
{
	return i < rail->dev->transport_nr ? rail->dev->transport[i] : NULL;
}

int
rdma_rail_nr(const struct rdma *rd)
{
	return rd->rail_nr;
}

struct rdma_rail *
rdma_rail(struct rdma *rd, int i)
{
	check(i >= 0 && i < rd->rail_nr);
	return rd->rail[i];
}

struct rdma_rail_stats *
rdma_rail_stats(struct rdma_rail *rail)
{
	return &rail->stats;
}

void
rdma_rail_get_info(const struct rdma_rail *rail, struct rdma_rail_info *ret_info)
{
	pthread_rwlock_t *lock = &rail->rd->table_lock;
	const struct rail_view *v = &rail->view;
	int reads = rail_reads_max(rail);
	const uint8_t *gid;

	pthread_rwlock_rdlock(lock);
	*ret_info = (struct rdma_rail_info){
		.device = rail->dev->name,
		.port = rail->port,
		.is_ethernet = v->is_ethernet,
		.state = rdma_rail_state(rail),
		.lid = v->lid,
		.active_mtu = mtu_bytes(rail->port_attr.active_mtu),
		.max_msg_bytes = rail->port_attr.max_msg_sz,
		.max_rd_atomic = reads,
		.max_eps = rail->dev->attr.max_qp,
		.max_cq_depth = rail->dev->attr.max_cqe,
		.numa_node = rail->dev->numa_node,
		.traffic_class = rail_ah_params(rail).traffic_class,
		.paths = rail_paths(rail),
		.relaxed_ordering = relaxed_ordering(&rail->rd->conf),
		.serves = device_serves(rail->dev),
		.spare = rail->rd->conf.mode == RDMA_AUTO && !rail->was_up,
	};
	snprintf(ret_info->fw_ver, sizeof ret_info->fw_ver, "%.*s", (int)sizeof rail->dev->attr.fw_ver,
		 rail->dev->attr.fw_ver);
	gid = v->gid_nr ? v->gid[0].raw : NULL;
	for (int i = v->gid_nr - 1; i >= 0; i--) {
		if (gid_is_v4(v->gid[i].raw))
			gid = v->gid[i].raw;
	}
	if (gid)
		memcpy(ret_info->gid, gid, 16);
	pthread_rwlock_unlock(lock);
}

/* What a rail has to do already.  On another node than the core's it counts double, so that it helps when the near one is busy. */
static int
cost_of(const struct rdma_rail *rail, const struct rdma_asker *asker)
{
	int leased = atomic_load_explicit(&rail->stats.eps_leased, memory_order_relaxed);
	bool far = asker->numa_node >= 0 && rail->dev->numa_node >= 0 &&
		   asker->numa_node != rail->dev->numa_node;

	return far ? 2 * leased + 1 : leased;
}

int
rdma_route(struct rdma *rd, const struct token *tok, const struct rdma_asker *asker,
	   struct rail_route *ret_route)
{
	const struct rail_view *views[RDMA_RAILS_MAX];
	int cost[RDMA_RAILS_MAX];
	unsigned up = 0;
	bool served = false;
	int r;

	for (int i = 0; i < rd->rail_nr; i++) {
		views[i] = &rd->rail[i]->view;
		cost[i] = cost_of(rd->rail[i], asker);
		if (!rail_transport_for(rd->rail[i], tok->kind))
			continue;
		served = true;
		if (rdma_rail_state(rd->rail[i]) == RAIL_UP)
			up |= 1u << i;
	}
	if (!served)
		return -ENODEV;
	pthread_rwlock_rdlock(&rd->table_lock);
	r = rdma_choose(views, rd->rail_nr, up, cost, tok, asker, ret_route);
	pthread_rwlock_unlock(&rd->table_lock);
	if (r == 0) {
		ret_route->ops = rail_transport_for(rd->rail[ret_route->rail], tok->kind);
		ret_route->key.path =
			(uint8_t)(asker->core % (unsigned)rail_paths(rd->rail[ret_route->rail]));
	}
	return r;
}
