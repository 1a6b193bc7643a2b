/* SPDX-License-Identifier: Apache-2.0 */
/* Connections, as the program makes and ends them. cm_peer.c has the messages. */
#include "softnic/cm.h"
#include "softnic/cm_fabric.h"

#include <stdlib.h>
#include <string.h>

#define NS_PER_US 1000ull
#define GIVE_UP_NS 68719476736ull /* sixteen times 4.3 s, as the kernel's connection manager tries */

/* Time in ns after which the peer counts as unreachable; SOFTNIC_RETRY_US sets it as for queue pairs. */
static uint64_t
give_up_ns(void)
{
	const char *us = getenv("SOFTNIC_RETRY_US");

	return us && *us ? strtoull(us, NULL, 10) * NS_PER_US : GIVE_UP_NS;
}

/* Fills a message with the parameters of the program. Returns 0 or EINVAL. */
static int
fill(struct cm_id *i, const struct rdma_conn_param *p, struct cm_msg *m, unsigned room)
{
	struct ibv_device_attr a = { 0 };
	uint8_t in, out;

	if (p && p->private_data_len > room)
		return EINVAL;
	ibv_query_device(i->pub.verbs, &a);
	in = (uint8_t)a.max_qp_rd_atom;
	out = (uint8_t)a.max_qp_init_rd_atom;
	memset(m, 0, sizeof(*m));
	m->psn = i->psn = (uint32_t)random() & 0xffffff;
	m->qpn = i->pub.qp ? i->pub.qp->qp_num : p ? p->qp_num : 0;
	m->srq = i->pub.qp ? i->pub.qp->srq != NULL : p ? p->srq : 0;
	m->responder_resources =
		p && p->responder_resources != RDMA_MAX_RESP_RES ? p->responder_resources : in;
	m->initiator_depth = p && p->initiator_depth != RDMA_MAX_INIT_DEPTH ? p->initiator_depth : out;
	m->flow_control = p ? p->flow_control : 1;
	m->retry_count = p ? p->retry_count & 7 : 7;
	m->rnr_retry_count = p ? p->rnr_retry_count & 7 : 7;
	m->data_len = p ? p->private_data_len : 0;
	if (m->data_len)
		memcpy(m->data, p->private_data, m->data_len);

	return m->responder_resources > in || m->initiator_depth > out ? EINVAL : 0;
}

static int
connect_locked(struct cm_id *i, const struct rdma_conn_param *p)
{
	struct ibv_port_attr port = { 0 };
	int r;

	if (i->state != CM_ROUTE)
		return EINVAL;
	if (i->pub.qp_type != IBV_QPT_RC)
		return EOPNOTSUPP;
	r = fill(i, p, &i->own, CM_REQ_DATA);
	if (r)
		return r;
	ibv_query_port(i->pub.verbs, 1, &port);
	i->own.mtu = (uint8_t)port.active_mtu;
	i->own.from = i->from;
	i->own.to = i->to;
	i->own.from_addr = i->pub.route.addr.src_storage;
	i->own.to_addr = i->pub.route.addr.dst_storage;
	i->state = CM_CONNECTING;
	i->give_up_ns = cm_now() + give_up_ns();
	cm_try(i);

	return 0;
}

CM_EXPORT int
rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	int r;

	pthread_mutex_lock(&cm_lock);
	r = connect_locked(cm_id(id), conn_param);
	pthread_mutex_unlock(&cm_lock);

	return r ? cm_err(r) : cm_complete(id);
}

static int
accept_locked(struct cm_id *i, const struct rdma_conn_param *p)
{
	int r;

	if (i->state != CM_REQUESTED)
		return EINVAL;
	r = fill(i, p, &i->own, CM_REP_DATA);
	if (r == 0 && !p) {
		/* Not more than the peer offers. */
		if (i->own.responder_resources > i->peer.initiator_depth)
			i->own.responder_resources = i->peer.initiator_depth;
		if (i->own.initiator_depth > i->peer.responder_resources)
			i->own.initiator_depth = i->peer.responder_resources;
	}
	if (r == 0 && i->pub.qp)
		r = cm_qp_connect(i);
	if (r)
		return r;
	i->state = CM_ACCEPTED;
	cm_send(i, &i->own, CM_REP);

	return 0;
}

CM_EXPORT int
rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	int r;

	pthread_mutex_lock(&cm_lock);
	r = accept_locked(cm_id(id), conn_param);
	pthread_mutex_unlock(&cm_lock);

	return r ? cm_err(r) : cm_complete(id);
}

CM_EXPORT int
rdma_establish(struct rdma_cm_id *id)
{
	struct cm_id *i = cm_id(id);
	int r = EINVAL;

	pthread_mutex_lock(&cm_lock);
	if (i->state == CM_ANSWERED && !id->qp) {
		cm_send_kind(i, CM_RTU);
		i->state = CM_CONNECTED;
		r = 0;
	}
	pthread_mutex_unlock(&cm_lock);

	return cm_err(r);
}

CM_EXPORT int
rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	struct cm_id *i = cm_id(id);
	int r = EINVAL;

	pthread_mutex_lock(&cm_lock);
	if ((i->state == CM_REQUESTED || i->state == CM_ANSWERED) && private_data_len <= CM_REJ_DATA) {
		cm_send_rej(i, CM_REJ_CONSUMER, private_data, private_data_len);
		cm_hang_up(i);
		i->state = CM_LEFT;
		r = 0;
	}
	pthread_mutex_unlock(&cm_lock);

	return cm_err(r);
}

static int
disconnect_locked(struct cm_id *i)
{
	switch (i->state) {
	case CM_ACCEPTED:
	case CM_ANSWERED:
	case CM_CONNECTED:
		cm_qp_err(i);
		i->state = CM_LEAVING;
		if (softnic_cm_passes(i->pub.verbs, &i->to))
			cm_send_kind(i, CM_DREQ);
		cm_raise(i, RDMA_CM_EVENT_DISCONNECTED, 0, give_up_ns());
		return 0;
	case CM_LEFT:
		cm_qp_err(i);
		cm_send_kind(i, CM_DREP);
		cm_hang_up(i);
		return 0;
	default:
		return EINVAL;
	}
}

CM_EXPORT int
rdma_disconnect(struct rdma_cm_id *id)
{
	struct cm_id *i = cm_id(id);
	bool waits;
	int r;

	pthread_mutex_lock(&cm_lock);
	r = disconnect_locked(i);
	waits = r == 0 && i->state == CM_LEAVING;
	pthread_mutex_unlock(&cm_lock);

	return r ? cm_err(r) : waits ? cm_complete(id) : 0;
}
