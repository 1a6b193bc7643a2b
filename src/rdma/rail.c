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
 * A device that stays fatal is reopened (reopen.c); its rails stay LOST until that has worked.  State
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
	/* A broken rail is to be expected of a device that is fatal, and all of the device is made again. */
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
	for (int i = 0; i < rail->dev->transport_nr; i++) {
		size_t n = strlen(ret_info->transports);

		snprintf(ret_info->transports + n, sizeof ret_info->transports - n, "%s%s", n ? ", " : "",
			 rail->dev->transport[i]->name);
	}
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
	int leased = atomic_load_explicit(&rail->stats.eps.leased, memory_order_relaxed) +
		     atomic_load_explicit(&rail->stats.conns.leased, memory_order_relaxed);
	bool far = asker->numa_node >= 0 && rail->dev->numa_node >= 0 &&
		   asker->numa_node != rail->dev->numa_node;

	return far ? 2 * leased + 1 : leased;
}

int
route_by_address(struct rdma *rd, const struct token *tok, const struct rdma_asker *asker,
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

int
rdma_route(struct rdma *rd, const struct token *tok, const struct rdma_asker *asker,
	   struct rail_route *ret_route)
{
	const struct rdma_ep_ops *ops = NULL;

	for (int i = 0; i < rd->rail_nr && !ops; i++)
		ops = rail_transport_for(rd->rail[i], tok->kind);
	return ops && ops->route ? ops->route(rd, tok, asker, ret_route)
				 : route_by_address(rd, tok, asker, ret_route);
}
