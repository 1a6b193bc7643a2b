/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the connection manager, and their addresses. */
#include "softnic/cm.h"
#include "softnic/cm_fabric.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct cm_dev *devs;

/* The thread of a device: waits for its loss. */
static void *
wait_loss(void *arg)
{
	struct cm_dev *d = arg;
	struct ibv_async_event ev = { .event_type = IBV_EVENT_PORT_ACTIVE };
	struct ibv_context *watch = d->watch;

	pthread_setname_np(pthread_self(), "softnic-cm");
	while (ev.event_type != IBV_EVENT_DEVICE_FATAL) {
		if (ibv_get_async_event(watch, &ev) == 0)
			ibv_ack_async_event(&ev);
	}
	pthread_mutex_lock(&cm_lock);
	for (struct cm_id *i = cm_ids; i; i = i->next) {
		if (i->dev == d)
			cm_raise(i, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, 0);
	}
	d->watch = NULL;
	pthread_mutex_unlock(&cm_lock);
	ibv_close_device(watch);

	return NULL;
}

static bool
start(struct cm_dev *d)
{
	pthread_attr_t at;
	sigset_t all, old;
	pthread_t t;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&at);
	pthread_attr_setdetachstate(&at, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&t, &at, wait_loss, d);
	pthread_attr_destroy(&at);
	pthread_sigmask(SIG_SETMASK, &old, NULL);

	return r == 0;
}

static void
add(struct ibv_device *device, __be64 guid)
{
	struct cm_dev *d = calloc(1, sizeof(*d));

	if (!d)
		return;
	d->guid = guid;
	d->watch = ibv_open_device(device);
	if (!d->watch || !start(d)) {
		if (d->watch)
			ibv_close_device(d->watch);
		free(d);
		return;
	}
	d->next = devs;
	devs = d;
}

void
cm_devs_refresh(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct cm_dev *d;

	for (int i = 0; list && list[i]; i++) {
		__be64 guid = ibv_get_device_guid(list[i]);

		for (d = devs; d && !(d->watch && d->guid == guid); d = d->next)
			;
		if (!d)
			add(list[i], guid);
	}
	if (list)
		ibv_free_device_list(list);
}

int
cm_dev_open(struct cm_dev *d)
{
	if (!d->watch)
		return ENODEV;
	if (!d->verbs)
		d->verbs = ibv_open_device(d->watch->device);

	return d->verbs ? 0 : errno ? errno : ENODEV;
}

/* ---- addresses ---- */

bool
cm_is_any(const struct sockaddr *a)
{
	static const uint8_t zero[16];

	return a->sa_family == AF_INET ? ((const struct sockaddr_in *)a)->sin_addr.s_addr == 0
				       : memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, zero, 16) == 0;
}

bool
cm_gid_of(const struct sockaddr *a, union ibv_gid *ret_gid)
{
	memset(ret_gid, 0, sizeof(*ret_gid));
	if (a->sa_family == AF_INET6) {
		memcpy(ret_gid->raw, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
	} else {
		ret_gid->raw[10] = ret_gid->raw[11] = 0xff;
		memcpy(ret_gid->raw + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
	}

	return a->sa_family == AF_INET || a->sa_family == AF_INET6;
}

static bool
is_v4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, mapped, 12) == 0;
}

void
cm_addr_of(const union ibv_gid *gid, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (is_v4(gid)) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, gid->raw + 12, 4);
	} else {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		memcpy(&v6->sin6_addr, gid->raw, 16);
	}
}

uint16_t
cm_port_of(const struct sockaddr *a)
{
	/* The port is at the same place in both kinds of addresses. */
	return a->sa_family == AF_INET || a->sa_family == AF_INET6
		       ? ntohs(((const struct sockaddr_in *)a)->sin_port)
		       : 0;
}

/* Finds the first address (RoCE v2) of a device that is gid, or, with like true, of the same family and not link-local. */
static bool
find_row(struct cm_dev *d, const union ibv_gid *gid, bool like, struct ibv_gid_entry *ret)
{
	struct ibv_port_attr port = { 0 };
	union ibv_gid g;

	ibv_query_port(d->watch, 1, &port);
	for (int i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid(d->watch, 1, i, &g))
			continue;
		bool link = g.raw[0] == 0xfe && (g.raw[1] & 0xc0) == 0x80;

		if (like ? link || is_v4(&g) != is_v4(gid) : memcmp(g.raw, gid->raw, 16) != 0)
			continue;
		if (ibv_query_gid_ex(d->watch, 1, (uint32_t)i, ret, 0) == 0 &&
		    ret->gid_type == IBV_GID_TYPE_ROCE_V2)
			return true;
	}

	return false;
}

struct cm_dev *
cm_dev_of_gid(const union ibv_gid *gid, uint32_t *ret_index)
{
	struct ibv_gid_entry e;

	cm_devs_refresh();
	for (struct cm_dev *d = devs; d; d = d->next) {
		if (d->watch && find_row(d, gid, false, &e)) {
			*ret_index = e.gid_index;
			return d;
		}
	}

	return NULL;
}

int
cm_dev_to(const union ibv_gid *to, struct cm_dev **ret_dev, union ibv_gid *ret_from, uint64_t *ret_wait_ns)
{
	uint32_t index;
	struct cm_dev *own = cm_dev_of_gid(to, &index);
	struct ibv_gid_entry e;
	int r = ENETUNREACH;

	*ret_wait_ns = 0;
	if (own) {
		*ret_dev = own;
		*ret_from = *to;
		return 0;
	}
	for (struct cm_dev *d = devs; d; d = d->next) {
		uint64_t wait_ns;
		int one;

		if (!d->watch || !find_row(d, to, true, &e))
			continue;
		one = softnic_cm_route(d->watch, to, &wait_ns);
		if (one == 0) {
			*ret_dev = d;
			*ret_from = e.gid;
			return 0;
		}
		if (r == ENETUNREACH) {
			r = one;
			*ret_wait_ns = wait_ns;
		}
	}

	return r;
}

/* ---- calls ---- */

CM_EXPORT struct ibv_context **
rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	int n = 0;

	pthread_mutex_lock(&cm_lock);
	cm_devs_refresh();
	for (struct cm_dev *d = devs; d; d = d->next)
		n++;
	list = calloc((size_t)n + 1, sizeof(struct ibv_context *));
	n = 0;
	for (struct cm_dev *d = devs; list && d; d = d->next) {
		if (cm_dev_open(d) == 0)
			list[n++] = d->verbs;
	}
	pthread_mutex_unlock(&cm_lock);
	if (num_devices)
		*num_devices = list ? n : 0;

	return list;
}

CM_EXPORT void
rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
