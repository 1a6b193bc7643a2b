/* SPDX-License-Identifier: Apache-2.0 */
/* Ids for the program: their creation and end, their addresses and routes. */
#include "softnic/cm.h"
#include "softnic/cm_fabric.h"
#include "softnic/cm_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull

CM_EXPORT int
rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	       enum rdma_port_space ps)
{
	uint8_t type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
	bool sync = !channel;
	struct cm_id *i;

	if (sync && !(channel = rdma_create_event_channel()))
		return -1;
	pthread_mutex_lock(&cm_lock);
	i = cm_id_new(channel, context, ps, type);
	if (i)
		i->sync = sync;
	pthread_mutex_unlock(&cm_lock);
	if (!i && sync)
		rdma_destroy_event_channel(channel);
	if (!i)
		return cm_err(ENOMEM);
	*id = &i->pub;

	return 0;
}

/* Refuses the requests to a listening id that the program has not fetched. */
static void
refuse_all(struct cm_id *listener)
{
	struct cm_id *next;

	cm_forget(listener);
	for (struct cm_id *i = cm_ids; i; i = next) {
		next = i->next;
		if (i->listener == listener) {
			cm_send_rej(i, CM_REJ_CONSUMER, NULL, 0);
			cm_id_free(i);
		}
	}
}

CM_EXPORT int
rdma_destroy_id(struct rdma_cm_id *id)
{
	struct cm_id *i = cm_id(id);
	struct rdma_event_channel *own = i->sync ? id->channel : NULL;

	if (id->event) {
		rdma_ack_cm_event(id->event);
		id->event = NULL;
	}
	pthread_mutex_lock(&cm_lock);
	if (i->state == CM_REQUESTED)
		cm_send_rej(i, CM_REJ_CONSUMER, NULL, 0);
	cm_forget(i);
	while (i->got != i->acked)
		pthread_cond_wait(&i->acks, &cm_lock);
	refuse_all(i);
	cm_id_free(i);
	pthread_mutex_unlock(&cm_lock);
	if (own)
		rdma_destroy_event_channel(own);

	return 0;
}

/* ---- bind ---- */

/* Binds an id to a port, 0 for a free one, of its source address. */
static int
bind_port(struct cm_id *i, const struct sockaddr *a)
{
	static uint16_t next;
	uint16_t port = cm_port_of(a);
	int r = EADDRINUSE;

	if (port)
		r = cm_name_bind(a, port, &i->bound);
	if (!port && !next)
		next = (uint16_t)getpid();
	for (int k = 0; !port && k < 28232 && r == EADDRINUSE; k++) {
		uint16_t one = (uint16_t)(32768 + next++ % 28232);

		r = cm_name_bind(a, one, &i->bound);
		if (r == 0)
			((struct sockaddr_in *)&i->pub.route.addr.src_addr)->sin_port = htons(one);
	}

	return r;
}

static int
bind_locked(struct cm_id *i, const struct sockaddr *a)
{
	socklen_t len = a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	struct cm_dev *d;
	int r;

	if (i->state != CM_IDLE)
		return EINVAL;
	if (!cm_gid_of(a, &i->from))
		return EAFNOSUPPORT;
	if (!cm_is_any(a)) {
		d = cm_dev_of_gid(&i->from, &i->sgid_index);
		r = d ? cm_dev_open(d) : ENODEV;
		if (r)
			return r;
		i->dev = d;
	}
	memcpy(&i->pub.route.addr.src_storage, a, len);
	r = bind_port(i, a);
	if (r) {
		i->dev = NULL;
		return r;
	}
	if (i->dev)
		cm_id_bind_dev(i, i->dev);
	i->state = CM_BOUND;

	return 0;
}

CM_EXPORT int
rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	int r;

	pthread_mutex_lock(&cm_lock);
	r = bind_locked(cm_id(id), addr);
	pthread_mutex_unlock(&cm_lock);

	return cm_err(r);
}

CM_EXPORT int
rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct cm_id *i = cm_id(id);
	int r = 0;

	pthread_mutex_lock(&cm_lock);
	if (i->state == CM_IDLE)
		r = bind_locked(i, (struct sockaddr *)&any);
	if (r == 0 && i->state != CM_BOUND)
		r = EINVAL;
	if (r == 0 && listen(i->bound, 4096) < 0)
		r = errno;
	if (r == 0)
		r = cm_watch(i, i->bound);
	if (r == 0) {
		i->backlog = backlog > 0 && backlog < 1024 ? (unsigned)backlog : 1024;
		i->state = CM_LISTEN;
	}
	pthread_mutex_unlock(&cm_lock);

	return cm_err(r);
}

/* ---- resolve ---- */

static int
resolve(struct cm_id *i, const struct sockaddr *src, const struct sockaddr *dst, uint64_t limit_ns)
{
	socklen_t len = dst->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	struct cm_dev *d = NULL;
	uint64_t wait_ns = 0;
	int r = 0;

	if (i->state == CM_IDLE && src) {
		r = bind_locked(i, src);
		if (r)
			return r;
	}
	if (i->state != CM_IDLE && i->state != CM_BOUND)
		return EINVAL;
	if (!cm_gid_of(dst, &i->to))
		return EAFNOSUPPORT;
	memcpy(&i->pub.route.addr.dst_storage, dst, len);
	if (i->dev)
		r = softnic_cm_route(i->dev->watch ? i->dev->watch : i->dev->verbs, &i->to, &wait_ns);
	else
		r = cm_dev_to(&i->to, &d, &i->from, &wait_ns);
	if (r == 0 && !i->dev) {
		uint16_t port = cm_port_of(&i->pub.route.addr.src_addr);

		cm_addr_of(&i->from, port ? port : (uint16_t)(32768 + random() % 28232),
			   &i->pub.route.addr.src_storage);
		i->dev = cm_dev_of_gid(&i->from, &i->sgid_index);
		r = i->dev ? cm_dev_open(i->dev) : ENODEV;
	}
	i->state = CM_ADDR_QUERY;
	if (wait_ns > limit_ns)
		wait_ns = limit_ns;
	if (!cm_raise(i, r ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, -r, wait_ns))
		return ENOMEM;

	return 0;
}

CM_EXPORT int
rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr, int timeout_ms)
{
	uint64_t limit_ns = timeout_ms > 0 ? (uint64_t)timeout_ms * NS_PER_MS : 0;
	int r;

	if (!dst_addr)
		return cm_err(EINVAL);
	pthread_mutex_lock(&cm_lock);
	r = resolve(cm_id(id), src_addr, dst_addr, limit_ns);
	pthread_mutex_unlock(&cm_lock);

	return r ? cm_err(r) : cm_complete(id);
}

CM_EXPORT int
rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct cm_id *i = cm_id(id);
	int r = EINVAL;

	pthread_mutex_lock(&cm_lock);
	if (i->state == CM_ADDR) {
		i->state = CM_ROUTE_QUERY;
		r = cm_raise(i, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, 0) ? 0 : ENOMEM;
	}
	pthread_mutex_unlock(&cm_lock);

	return r ? cm_err(r) : cm_complete(id);
}

/* ---- small calls ---- */

CM_EXPORT __be16
rdma_get_src_port(struct rdma_cm_id *id)
{
	return htons(cm_port_of(&id->route.addr.src_addr));
}

CM_EXPORT __be16
rdma_get_dst_port(struct rdma_cm_id *id)
{
	return htons(cm_port_of(&id->route.addr.dst_addr));
}

CM_EXPORT int
rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	if (level == RDMA_OPTION_ID && optname == RDMA_OPTION_ID_ACK_TIMEOUT && optlen == 1) {
		if (*(uint8_t *)optval > 31)
			return cm_err(EINVAL);
		cm_id(id)->ack_timeout = *(uint8_t *)optval;
		return 0;
	}
	/* The traffic class is not modelled, and a name is free as soon as its id is destroyed. */
	if (level == RDMA_OPTION_ID &&
	    (optname == RDMA_OPTION_ID_TOS || optname == RDMA_OPTION_ID_REUSEADDR ||
	     optname == RDMA_OPTION_ID_AFONLY))
		return 0;

	return cm_err(ENOSYS);
}
