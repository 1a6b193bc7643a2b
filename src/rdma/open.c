/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From rdma.devices to rails, at the start and whenever the machine is looked at again (look.c); see rdma.h.
 *
 * New devices are opened first, all that could matter; then every selector (or `auto`) picks ports; then the
 * rails are made ready, and at last everybody sees them.  A device that no rail uses is closed again.  One look at a time; rails
 * and devices stay where they are until rdma_close().
 */
#define LOG_MODULE "rdma"
#include "rdma/rc_int.h"
#include "rdma/rdma_int.h"

#include "base/log.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

/* Devices and rails that were found and are not visible to other threads: in rd they are after the visible ones. */
struct found {
	struct rdma *rd;
	int dev_nr, rail_nr;        /* with the new ones */
	bool sel[CONF_DEVICES_MAX]; /* the selectors that something was found for */
};

/* ---- rails ---- */

static struct rdma_rail *
rail_find(const struct found *f, const struct rdma_device *dev, int port)
{
	for (int i = 0; i < f->rail_nr; i++) {
		if (f->rd->rail[i]->dev == dev && f->rd->rail[i]->port == port)
			return f->rd->rail[i];
	}
	return NULL;
}

static bool
is_new(const struct found *f, const struct rdma_device *dev)
{
	for (int i = 0; i < f->rd->dev_nr; i++) {
		if (f->rd->dev[i] == dev)
			return false;
	}
	return true;
}

/* The rail of this port, made if it is not there yet.
 * NULL: no memory, no room, or the port does not answer. */
static struct rdma_rail *
rail_add(struct found *f, struct rdma_device *dev, int port)
{
	struct rdma_rail *rail = rail_find(f, dev, port);
	struct rdma_context *c;
	struct ibv_port_attr attr;
	int r;

	if (rail)
		return rail;
	if (f->rail_nr == RDMA_RAILS_MAX)
		return NULL;
	c = context_get(dev);
	r = c ? ibv_query_port(c->ctx, (uint8_t)port, &attr) : ENODEV;
	if (c)
		context_put(c);
	/* A port without a GID table is a representor of somebody else's port. */
	if (r || attr.gid_tbl_len == 0)
		return NULL;
	rail = calloc(1, sizeof *rail);
	if (!rail)
		return NULL;
	rail->rd = f->rd;
	rail->dev = dev;
	rail->port = (uint8_t)port;
	rail->is_ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	rail->port_up = rail->was_up = attr.state == IBV_PORT_ACTIVE;
	atomic_init(&rail->state, rail->port_up ? RAIL_UP : RAIL_DOWN);
	f->rd->rail[f->rail_nr++] = rail;
	return rail;
}

static void
rail_only(struct rdma_rail *rail, const uint8_t gid[16])
{
	if (rail->only_nr < CONF_DEVICES_MAX)
		memcpy(rail->only[rail->only_nr++], gid, 16);
}

/* Which port has this GID?  0: none. */
static int
port_of_gid(struct rdma_device *dev, const uint8_t gid[16])
{
	struct rdma_context *c = context_get(dev);
	struct ibv_gid_entry *e = NULL;
	ssize_t n = c ? context_gids(c, &e) : 0;
	int port = 0;

	for (ssize_t i = 0; i < n && !port; i++) {
		if (e[i].gid_type != IBV_GID_TYPE_ROCE_V1 && memcmp(e[i].gid.raw, gid, 16) == 0)
			port = (int)e[i].port_num;
	}
	free(e);
	if (c)
		context_put(c);
	return port;
}

static struct rdma_device *
device_named(const struct found *f, const char *name)
{
	for (int i = 0; i < f->dev_nr; i++) {
		if (strcmp(f->rd->dev[i]->name, name) == 0)
			return f->rd->dev[i];
	}
	return NULL;
}

/* ---- selectors ---- */

static int
select_address(struct found *f, const struct selector *sel, char *err, size_t err_len)
{
	struct rdma_device *dev;
	struct rdma_rail *rail;
	char name[64];
	int port, r;

	for (int i = 0; i < f->dev_nr; i++) {
		dev = f->rd->dev[i];
		port = port_of_gid(dev, sel->gid);
		if (!port)
			continue;
		rail = rail_find(f, dev, port);
		/* A port that was chosen as a whole stays so. */
		if (rail && rail->only_nr == 0)
			return 0;
		rail = rail_add(f, dev, port);
		if (!rail)
			break;
		pthread_rwlock_wrlock(&f->rd->table_lock);
		rail_only(rail, sel->gid);
		pthread_rwlock_unlock(&f->rd->table_lock);
		if (!is_new(f, dev))
			rail_refresh(rail, NULL);
		return 0;
	}
	r = selector_by_cm(sel, name, sizeof name, &port);
	dev = r == 0 ? device_named(f, name) : NULL;
	rail = dev ? rail_add(f, dev, port) : NULL;
	if (!rail) {
		snprintf(err, err_len, "rdma.devices: %s is in no GID table of a usable device%s%s%s",
			 sel->text, r < 0 ? ", and the connection manager does not know it: " : "",
			 r < 0 ? strerror(-r) : "", f->dev_nr ? "" : " (there is none)");
		return -ENODEV;
	}
	pthread_rwlock_wrlock(&f->rd->table_lock);
	if (rail->ip_nr < RAIL_IPS_MAX)
		memcpy(rail->ip[rail->ip_nr++], sel->gid, 16);
	pthread_rwlock_unlock(&f->rd->table_lock);
	if (!is_new(f, dev))
		rail_refresh(rail, NULL);
	return 0;
}

static int
select_named(struct found *f, const struct selector *sel, char *err, size_t err_len)
{
	struct rdma_device *dev = device_named(f, sel->device);
	int found = 0;

	for (int port = 1; dev && port <= dev->attr.phys_port_cnt; port++) {
		struct rdma_rail *rail;

		if (sel->port && sel->port != port)
			continue;
		rail = rail_add(f, dev, port);
		if (!rail)
			continue;
		rail->only_nr = 0;
		found++;
	}
	if (found)
		return 0;
	snprintf(err, err_len, "rdma.devices: %s: %s", sel->text,
		 dev ? "no such port" : "no such device (see --list-devices)");
	return -ENODEV;
}

/* Those that have not been found yet.  what: why the first of those that are not found now is not; "": all are. */
static void
select_listed(struct found *f, char *what, size_t cap)
{
	struct rdma *rd = f->rd;

	*what = 0;
	for (int i = 0; i < rd->conf.device_nr; i++) {
		const struct selector *sel = &rd->look.sel[i];
		char err[256];
		int r;

		if (f->sel[i])
			continue;
		r = sel->is_address ? select_address(f, sel, err, sizeof err)
				    : select_named(f, sel, err, sizeof err);
		f->sel[i] = r == 0;
		if (r < 0 && !*what)
			snprintf(what, cap, "%s", err);
	}
}

/* Every port, whatever its state: a switch may start later than we do. */
static void
select_auto(struct found *f)
{
	for (int i = f->rd->dev_nr; i < f->dev_nr; i++) {
		for (int port = 1; port <= f->rd->dev[i]->attr.phys_port_cnt; port++)
			rail_add(f, f->rd->dev[i], port);
	}
}

/* ---- devices ---- */

/* A device that has rails, under its name or another; or one whose context has died, which is reopened by its
 * name (reopen.c). */
static bool
is_known(const struct rdma *rd, struct ibv_device *ibdev)
{
	for (int i = 0; i < rd->dev_nr; i++) {
		const struct rdma_device *dev = rd->dev[i];

		if (dev->guid ? dev->guid == ibv_get_device_guid(ibdev)
			      : strcmp(dev->name, ibv_get_device_name(ibdev)) == 0)
			return true;
		if (!atomic_load(&dev->serving) && strcmp(dev->name, ibv_get_device_name(ibdev)) == 0)
			return true;
	}
	return false;
}

/* What is remembered of a device that is not used; NULL: it was not seen by the last look. */
static struct unused *
unused_find(struct rdma_look *look, struct ibv_device *ibdev)
{
	for (int i = 0; i < look->unused_nr; i++) {
		struct unused *u = &look->unused[i];

		if (u->guid == ibv_get_device_guid(ibdev) && strcmp(u->name, ibv_get_device_name(ibdev)) == 0)
			return u;
	}
	return NULL;
}

static void
unused_add(struct rdma_look *look, struct ibv_device *ibdev, bool opened)
{
	struct unused *u;

	if (look->unused_nr == UNUSED_MAX || unused_find(look, ibdev))
		return;
	u = &look->unused[look->unused_nr++];
	*u = (struct unused){ .guid = ibv_get_device_guid(ibdev), .opened = opened };
	snprintf(u->name, sizeof u->name, "%s", ibv_get_device_name(ibdev));
}

/* Who went away is new when it comes again. */
static void
unused_forget(struct rdma_look *look, struct ibv_device **list, int nr)
{
	int n = 0;

	for (int i = 0; i < look->unused_nr; i++) {
		bool there = false;

		for (int k = 0; k < nr; k++)
			there |= unused_find(look, list[k]) == &look->unused[i];
		if (there)
			look->unused[n++] = look->unused[i];
	}
	look->unused_nr = n;
}

/* Opens one; NULL: it cannot be opened, or nobody asks for what it can do. */
static struct rdma_device *
open_one(struct rdma *rd, struct ibv_device *ibdev, char *what, size_t cap)
{
	struct unused *u = unused_find(&rd->look, ibdev);
	const char *name = ibv_get_device_name(ibdev), *why;
	struct rdma_device *dev;
	int r;

	if (u && u->opened && rd->conf.mode == RDMA_AUTO)
		return NULL;
	r = device_open(rd, ibdev, &dev, &why);
	if (r < 0) {
		if (!u)
			log_info("device %s is not used: %s: %s", name, why, strerror(-r));
		unused_add(&rd->look, ibdev, false);
		if (mlx5dv_is_supported(ibdev))
			snprintf(what, cap, "device %s is not used: %s: %s", name, why, strerror(-r));
		return NULL;
	}
	if (!device_serves(dev) && rd->conf.mode == RDMA_AUTO) {
		log_info("device %s is not used: %s", name, dev->cur->why);
		unused_add(&rd->look, ibdev, true);
		device_free(dev);
		return NULL;
	}
	return dev;
}

/* what: why an adapter that could do DC cannot be opened; "": none is like that. */
static void
open_devices(struct found *f, char *what, size_t cap)
{
	struct rdma_device *without[RDMA_RAILS_MAX];
	struct rdma *rd = f->rd;
	int nr = 0, without_nr = 0;
	struct ibv_device **list;

	*what = 0;
	errno = 0;
	list = ibv_get_device_list(&nr);
	if (!list || nr == 0) {
		/* ENOSYS: there is nothing of RDMA in this kernel, which is as good as no device. */
		bool why = !list && errno && errno != ENOSYS;

		if (!rd->look.said_none)
			log_warn("no RDMA device%s%s; nothing goes by RDMA until one comes", why ? ": " : "",
				 why ? strerror(errno) : "");
		rd->look.said_none = true;
	}
	unused_forget(&rd->look, list, list ? nr : 0);
	for (int i = 0; list && i < nr && f->dev_nr + without_nr < RDMA_RAILS_MAX; i++) {
		struct rdma_device *dev = is_known(rd, list[i]) ? NULL : open_one(rd, list[i], what, cap);

		if (dev && device_serves(dev))
			rd->dev[f->dev_nr++] = dev;
		else if (dev)
			without[without_nr++] = dev;
	}
	/* Only who is named can be one of these, and not by an address that a better one has too (Soft-RoCE
	 * on an adapter's interface). */
	for (int i = 0; i < without_nr; i++)
		rd->dev[f->dev_nr++] = without[i];
	if (list)
		ibv_free_device_list(list);
}

static void
close_unused(struct found *f)
{
	struct rdma *rd = f->rd;
	int n = rd->dev_nr;

	for (int i = n; i < f->dev_nr; i++) {
		bool used = false;

		for (int k = 0; k < f->rail_nr; k++)
			used |= rd->rail[k]->dev == rd->dev[i];
		if (used) {
			rd->dev[i]->index = n;
			rd->dev[n++] = rd->dev[i];
		} else {
			device_free(rd->dev[i]);
		}
	}
	f->dev_nr = n;
}

/* ---- making them ready ---- */

static int
start_rail(struct rdma *rd, int nr)
{
	struct rdma_rail *rail = rd->rail[nr];
	int ahs = (rd->conf.ah_cache < 16 ? 16 : rd->conf.ah_cache) * rail_paths(rail);
	struct rdma_rail_info info;
	char gid[INET6_ADDRSTRLEN];
	int r;

	rail_refresh(rail, NULL);
	r = ah_cache_init(rail, ahs);
	if (r == 0)
		r = recovery_start(rail);
	if (r < 0)
		return r;
	rdma_rail_get_info(rail, &info);
	log_note("rail %d: %s port %d, firmware %s, %s, %s, %s, MTU %d, %d reads at once", nr, info.device,
		 info.port, info.fw_ver, info.is_ethernet ? "Ethernet" : "InfiniBand",
		 gid_text(info.gid, gid, sizeof gid), info.state == RAIL_UP ? "up" : "down", info.active_mtu,
		 info.max_rd_atomic);
	if (!info.serves)
		log_warn("rail %d: %s serves no token: %s", nr, info.device, rail->dev->cur->why);
	if (rail->view.gid_nr == 0 && rail->is_ethernet)
		log_warn("rail %d: port %s:%d has no RoCEv2 address: no client can be reached from it", nr,
			 info.device, info.port);
	if (rail->is_ethernet && rd->conf.service_level > 7 && rd->conf.service_level != CONF_LEVEL_AUTO)
		log_warn("rdma.service_level %d: Ethernet has 0 to 7; 7 is used on %s",
			 rd->conf.service_level, info.device);
	return 0;
}

/* Shows the new ones to everybody; 0 or -errno. */
static int
show(struct found *f)
{
	struct rdma *rd = f->rd;
	int r = 0;

	pthread_mutex_lock(&rd->region_lock);
	for (int i = rd->dev_nr; r == 0 && i < f->dev_nr; i++)
		r = regions_register(rd, rd->dev[i]->cur);
	if (r == 0) {
		memcpy(rd->look.found, f->sel, sizeof rd->look.found);
		atomic_store(&rd->dev_nr, f->dev_nr);
		atomic_store(&rd->rail_nr, f->rail_nr);
	}
	pthread_mutex_unlock(&rd->region_lock);
	return r;
}

static void
rail_free(struct rdma_rail *rail)
{
	recovery_stop(rail);
	ah_cache_fini(rail);
	free(rail);
}

static void
drop(struct found *f)
{
	struct rdma *rd = f->rd;

	for (int i = rd->rail_nr; i < f->rail_nr; i++)
		rail_free(rd->rail[i]);
	for (int i = rd->dev_nr; i < f->dev_nr; i++)
		device_free(rd->dev[i]);
}

/* ---- looking ---- */

static bool
all_found(const struct rdma *rd)
{
	bool all = rd->conf.mode != RDMA_AUTO;

	for (int i = 0; i < rd->conf.device_nr; i++)
		all &= rd->look.found[i];
	return all;
}

int
rdma_look_once(struct rdma *rd)
{
	struct found f = { .rd = rd, .dev_nr = rd->dev_nr, .rail_nr = rd->rail_nr };
	char why[WHY_MISSING_BYTES], missing[WHY_MISSING_BYTES] = "";
	int r = 0, new;

	if (all_found(rd))
		return 0;
	memcpy(f.sel, rd->look.found, sizeof f.sel);
	open_devices(&f, why, sizeof why);
	if (rd->conf.mode == RDMA_AUTO)
		select_auto(&f);
	else
		select_listed(&f, missing, sizeof missing);
	close_unused(&f);
	for (int i = rd->rail_nr; r == 0 && i < f.rail_nr; i++)
		r = start_rail(rd, i);
	for (int i = rd->dev_nr; r == 0 && i < f.dev_nr; i++)
		r = fd_nonblock(rd->dev[i]->async_fd);
	new = f.rail_nr - rd->rail_nr;
	if (r == 0)
		r = show(&f);
	if (r < 0)
		drop(&f);
	look_missing(rd, r < 0 ? strerror(-r) : *missing ? missing : rd->rail_nr == 0 ? why : "");
	if (r == 0 && new > 0) {
		trust_refresh(rd);
		async_wake(rd);
		watches_notify(rd);
	}
	return r;
}

void
rdma_prepare(void)
{
	/* Destroying what belongs to a device that is gone then frees the library's memory.  That the library
	 * calls it done proves nothing about the hardware: rdma_ep_free(). */
	setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 0);
}

static int
open_all(struct rdma *rd, char *err, size_t err_len)
{
	int up = 0, r;

	for (int i = 0; i < rd->conf.device_nr; i++) {
		if (selector_parse(rd->conf.devices[i], &rd->look.sel[i]) < 0) {
			snprintf(err, err_len, "rdma.devices: %s is no device, address or GID",
				 rd->conf.devices[i]);
			return -EINVAL;
		}
	}
	r = async_init(rd);
	if (r == 0)
		r = cm_oracle_new(&rd->oracle);
	if (r == 0)
		r = ah_helpers_start(&rd->helpers);
	if (r == 0)
		r = rdma_look_once(rd);
	if (r == 0)
		r = async_start(rd);
	if (r == 0)
		r = rc_table_new(rd);
	if (r == 0)
		r = look_start(rd);
	for (int i = 0; i < rd->rail_nr; i++)
		up += rdma_rail_state(rd->rail[i]) == RAIL_UP;
	if (r < 0)
		snprintf(err, err_len, "rdma: %s", strerror(-r));
	if (r == 0 && rd->rail_nr && !up)
		log_warn("no RDMA port is active; nothing goes by RDMA until one is");
	return r;
}

int
rdma_open(const struct conf_rdma *conf, struct rdma **ret_rdma, char *err, size_t err_len)
{
	struct rdma *rd = calloc(1, sizeof *rd);
	int r;

	if (!rd) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	rd->conf = *conf;
	rd->async.stop_fd = rd->async.wake_fd = -1;
	pthread_mutex_init(&rd->region_lock, NULL);
	pthread_rwlock_init(&rd->table_lock, NULL);
	pthread_mutex_init(&rd->state_lock, NULL);
	list_init(&rd->watches);
	rd->region_free = -1;
	look_init(rd);
	r = conf->mode == RDMA_NONE ? 0 : open_all(rd, err, err_len);
	if (r < 0) {
		rdma_close(rd);
		return r;
	}
	*ret_rdma = rd;
	return 0;
}

void
rdma_close(struct rdma *rd)
{
	if (!rd)
		return;
	look_stop(rd);
	rc_table_free(rd);
	async_stop(rd);
	ah_helpers_stop(&rd->helpers);
	cm_oracle_free(rd->oracle);
	/* All of them first: reopening a device looks at every rail. */
	for (int i = 0; i < rd->rail_nr; i++)
		recovery_stop(rd->rail[i]);
	for (int i = 0; i < rd->rail_nr; i++)
		rail_free(rd->rail[i]);
	async_fini(rd);
	for (int i = 0; i < rd->dev_nr; i++)
		device_free(rd->dev[i]);
	pthread_rwlock_destroy(&rd->table_lock);
	pthread_mutex_destroy(&rd->state_lock);
	pthread_mutex_destroy(&rd->region_lock);
	free(rd->region);
	free(rd);
}
