/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing: from rdma.devices to rails.  Main thread; see rdma.h.
 *
 * Devices are opened first, all that could matter; then every selector (or `auto`) picks ports; then the
 * helpers start.  A device that no rail uses is closed again.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- rails ---- */

static struct rdma_rail *
rail_find(struct rdma *rd, const struct rdma_device *dev, int port)
{
	for (int i = 0; i < rd->rail_nr; i++) {
		if (rd->rail[i]->dev == dev && rd->rail[i]->port == port)
			return rd->rail[i];
	}
	return NULL;
}

/* The rail of this port, made if it is not there yet.
 * NULL: no memory, no room, or the port does not answer. */
static struct rdma_rail *
rail_add(struct rdma *rd, struct rdma_device *dev, int port)
{
	struct rdma_rail *rail = rail_find(rd, dev, port);
	struct ibv_port_attr attr;

	if (rail)
		return rail;
	/* A port without a GID table is a representor, behind which is somebody else's. */
	if (rd->rail_nr == RDMA_RAILS_MAX || ibv_query_port(dev->cur->ctx, (uint8_t)port, &attr) ||
	    attr.gid_tbl_len == 0)
		return NULL;
	rail = calloc(1, sizeof *rail);
	if (!rail)
		return NULL;
	rail->rd = rd;
	rail->dev = dev;
	rail->port = (uint8_t)port;
	rail->is_ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	rail->port_up = rail->was_up = attr.state == IBV_PORT_ACTIVE;
	atomic_init(&rail->state, rail->port_up ? RAIL_UP : RAIL_DOWN);
	rd->rail[rd->rail_nr++] = rail;
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
	struct ibv_gid_entry *e;
	ssize_t n = context_gids(dev->cur, &e);
	int port = 0;

	for (ssize_t i = 0; i < n && !port; i++) {
		if (e[i].gid_type != IBV_GID_TYPE_ROCE_V1 && memcmp(e[i].gid.raw, gid, 16) == 0)
			port = (int)e[i].port_num;
	}
	free(e);
	return port;
}

static struct rdma_device *
device_named(struct rdma *rd, const char *name)
{
	for (int i = 0; i < rd->dev_nr; i++) {
		if (strcmp(rd->dev[i]->name, name) == 0)
			return rd->dev[i];
	}
	return NULL;
}

static int
select_address(struct rdma *rd, const struct selector *sel, char *err, size_t err_len)
{
	struct rdma_device *dev;
	struct rdma_rail *rail;
	char name[64];
	int port, r;

	for (int i = 0; i < rd->dev_nr; i++) {
		port = port_of_gid(rd->dev[i], sel->gid);
		if (!port)
			continue;
		rail = rail_find(rd, rd->dev[i], port);
		/* A port that was chosen as a whole stays so. */
		if (rail && rail->only_nr == 0)
			return 0;
		rail = rail_add(rd, rd->dev[i], port);
		if (!rail)
			break;
		rail_only(rail, sel->gid);
		return 0;
	}
	r = selector_by_cm(sel, name, sizeof name, &port);
	dev = r == 0 ? device_named(rd, name) : NULL;
	rail = dev ? rail_add(rd, dev, port) : NULL;
	if (!rail) {
		snprintf(err, err_len, "rdma.devices: %s is in no GID table of a usable device%s%s%s",
			 sel->text, r < 0 ? ", and the connection manager does not know it: " : "",
			 r < 0 ? strerror(-r) : "", rd->dev_nr ? "" : " (there is none)");
		return -ENODEV;
	}
	if (rail->ip_nr < RAIL_IPS_MAX)
		memcpy(rail->ip[rail->ip_nr++], sel->gid, 16);
	return 0;
}

static int
select_named(struct rdma *rd, const struct selector *sel, char *err, size_t err_len)
{
	struct rdma_device *dev = device_named(rd, sel->device);
	int found = 0;

	for (int port = 1; dev && port <= dev->attr.phys_port_cnt; port++) {
		struct rdma_rail *rail;

		if (sel->port && sel->port != port)
			continue;
		rail = rail_add(rd, dev, port);
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

/* ---- devices ---- */

static int
open_devices(struct rdma *rd)
{
	struct rdma_device *without[RDMA_RAILS_MAX];
	int nr = 0, without_nr = 0;
	struct ibv_device **list;

	errno = 0;
	list = ibv_get_device_list(&nr);
	if (!list || nr == 0) {
		/* ENOSYS: there is nothing of RDMA in this kernel, which is as good as no device. */
		bool why = !list && errno && errno != ENOSYS;

		log_warn("no RDMA device%s%s; everything is served over HTTP", why ? ": " : "",
			 why ? strerror(errno) : "");
		if (list)
			ibv_free_device_list(list);
		return 0;
	}
	for (int i = 0; i < nr && rd->dev_nr + without_nr < RDMA_RAILS_MAX; i++) {
		const char *name = ibv_get_device_name(list[i]), *why;
		struct rdma_device *dev;
		int r = device_open(rd, list[i], &dev, &why);

		if (r < 0) {
			log_info("device %s is not used: %s: %s", name, why, strerror(-r));
		} else if (device_serves(dev)) {
			rd->dev[rd->dev_nr++] = dev;
		} else if (rd->conf.mode == RDMA_LIST) {
			without[without_nr++] = dev;
		} else {
			log_info("device %s is not used: %s", name, dev->cur->why);
			device_free(dev);
		}
	}
	/* Only who is named can be one of these, and not by an address that a better one has too (Soft-RoCE
	 * on an adapter's interface). */
	for (int i = 0; i < without_nr; i++)
		rd->dev[rd->dev_nr++] = without[i];
	ibv_free_device_list(list);
	return 0;
}

/* Every port, whatever its state: a switch may start later than we do. */
static void
select_auto(struct rdma *rd)
{
	int up = 0;

	for (int i = 0; i < rd->dev_nr; i++) {
		for (int port = 1; port <= rd->dev[i]->attr.phys_port_cnt; port++) {
			struct rdma_rail *rail = rail_add(rd, rd->dev[i], port);

			up += rail && rail->port_up;
		}
	}
	if (rd->dev_nr && !up)
		log_warn("no RDMA port is active; everything is served over HTTP until one is");
}

static void
close_unused(struct rdma *rd)
{
	int n = 0;

	for (int i = 0; i < rd->dev_nr; i++) {
		bool used = false;

		for (int k = 0; k < rd->rail_nr; k++)
			used |= rd->rail[k]->dev == rd->dev[i];
		if (used) {
			rd->dev[i]->index = n;
			rd->dev[n++] = rd->dev[i];
		} else {
			device_free(rd->dev[i]);
		}
	}
	rd->dev_nr = n;
}

static int
start_rails(struct rdma *rd)
{
	int ahs = rd->conf.ah_cache < 16 ? 16 : rd->conf.ah_cache;
	int r;

	for (int i = 0; i < rd->rail_nr; i++) {
		struct rdma_rail *rail = rd->rail[i];
		struct rdma_rail_info info;
		char gid[INET6_ADDRSTRLEN];

		rail_refresh(rail);
		r = ah_cache_init(rail, ahs);
		if (r == 0)
			r = recovery_start(rail);
		if (r < 0)
			return r;
		rdma_rail_get_info(rail, &info);
		log_note("rail %d: %s port %d, firmware %s, %s, %s, %s, MTU %d, %d reads at once", i,
			 info.device, info.port, info.fw_ver, info.is_ethernet ? "Ethernet" : "InfiniBand",
			 gid_text(info.gid, gid, sizeof gid), info.state == RAIL_UP ? "up" : "down",
			 info.active_mtu, info.max_rd_atomic);
		if (!info.serves)
			log_warn("rail %d: %s serves no token: %s", i, info.device, rail->dev->cur->why);
		if (rail->view.gid_nr == 0 && rail->is_ethernet)
			log_warn("rail %d: port %s:%d has no RoCEv2 address: nobody can be reached from it",
				 i, info.device, info.port);
		if (rail->is_ethernet && rd->conf.service_level > 7)
			log_warn("rdma.service_level %d: Ethernet has 0 to 7; 7 is used on %s",
				 rd->conf.service_level, info.device);
	}
	trust_refresh(rd);
	if (rd->rail_nr == 0)
		return 0;
	r = ah_helpers_start(&rd->helpers);
	return r < 0 ? r : async_start(rd);
}

void
rdma_prepare(void)
{
	/* Destroying what belongs to a device that is gone then frees the library's memory.  That the library
	 * calls it done proves nothing about the hardware: rdma_ep_free(). */
	setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 0);
}

int
rdma_open(const struct conf_rdma *conf, struct rdma **ret_rdma, char *err, size_t err_len)
{
	struct rdma *rd = calloc(1, sizeof *rd);
	int r = 0;

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
	if (conf->mode == RDMA_NONE)
		goto out;
	r = open_devices(rd);
	if (conf->mode == RDMA_AUTO)
		select_auto(rd);
	for (int i = 0; conf->mode == RDMA_LIST && r == 0 && i < conf->device_nr; i++) {
		struct selector sel;

		if (selector_parse(conf->devices[i], &sel) < 0) {
			snprintf(err, err_len, "rdma.devices: %s is no device, address or GID",
				 conf->devices[i]);
			r = -ENODEV;
		} else {
			r = sel.is_address ? select_address(rd, &sel, err, err_len)
					   : select_named(rd, &sel, err, err_len);
		}
	}
	close_unused(rd);
	if (r == 0) {
		r = start_rails(rd);
		if (r < 0)
			snprintf(err, err_len, "rdma: %s", strerror(-r));
	}
	if (r < 0) {
		rdma_close(rd);
		return r;
	}
out:
	*ret_rdma = rd;
	return 0;
}

void
rdma_close(struct rdma *rd)
{
	if (!rd)
		return;
	async_stop(rd);
	ah_helpers_stop(&rd->helpers);
	/* All of them first: opening a device anew looks at every rail. */
	for (int i = 0; i < rd->rail_nr; i++)
		recovery_stop(rd->rail[i]);
	for (int i = 0; i < rd->rail_nr; i++) {
		ah_cache_fini(rd->rail[i]);
		free(rd->rail[i]);
	}
	async_fini(rd);
	for (int i = 0; i < rd->dev_nr; i++)
		device_free(rd->dev[i]);
	pthread_rwlock_destroy(&rd->table_lock);
	pthread_mutex_destroy(&rd->state_lock);
	pthread_mutex_destroy(&rd->region_lock);
	free(rd);
}
