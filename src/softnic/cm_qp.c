/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs, completion queues and shared receive queues of ids. */
#include "softnic/cm.h"

#include <stddef.h>
#include <string.h>

/* ---- states ---- */

static void
attr_init(const struct cm_id *i, struct ibv_qp_attr *a, int *mask)
{
	bool known = i->peer.version != 0;

	a->port_num = 1;
	a->pkey_index = 0;
	a->qp_access_flags = known ? IBV_ACCESS_REMOTE_WRITE : 0;
	if (known && i->own.responder_resources)
		a->qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

static void
attr_rtr(const struct cm_id *i, struct ibv_qp_attr *a, int *mask)
{
	bool active = i->peer.kind == CM_REP;

	a->ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	a->ah_attr.grh.dgid = i->to;
	a->ah_attr.grh.sgid_index = (uint8_t)i->sgid_index;
	a->ah_attr.grh.hop_limit = 64;
	a->path_mtu = active ? i->own.mtu : i->peer.mtu;
	a->dest_qp_num = i->peer.qpn;
	a->rq_psn = i->peer.psn;
	a->max_dest_rd_atomic = i->own.responder_resources;
	a->min_rnr_timer = 0;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static void
attr_rts(const struct cm_id *i, struct ibv_qp_attr *a, int *mask)
{
	bool active = i->peer.kind == CM_REP;

	a->sq_psn = i->psn;
	a->timeout = i->ack_timeout;
	a->retry_cnt = active ? i->own.retry_count : i->peer.retry_count;
	a->rnr_retry = i->peer.rnr_retry_count;
	a->max_rd_atomic = i->own.initiator_depth;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		IBV_QP_MAX_QP_RD_ATOMIC;
}

int
cm_qp_attr(struct cm_id *i, struct ibv_qp_attr *a, int *mask)
{
	switch (a->qp_state) {
	case IBV_QPS_INIT:
		attr_init(i, a, mask);
		return i->dev ? 0 : EINVAL;
	case IBV_QPS_RTR:
		attr_rtr(i, a, mask);
		return i->peer.version ? 0 : EINVAL;
	case IBV_QPS_RTS:
		attr_rts(i, a, mask);
		return i->peer.version ? 0 : EINVAL;
	default:
		return EINVAL;
	}
}

static int
to(struct cm_id *i, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };
	int mask = 0, r = cm_qp_attr(i, &a, &mask);

	return r ? r : ibv_modify_qp(i->pub.qp, &a, mask);
}

int
cm_qp_connect(struct cm_id *i)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	int r = 0;

	for (int k = 0; k < 3 && r == 0; k++)
		r = to(i, states[k]);

	return r;
}

void
cm_qp_err(struct cm_id *i)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	if (i->pub.qp)
		ibv_modify_qp(i->pub.qp, &a, IBV_QP_STATE);
}

CM_EXPORT int
rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	int r;

	pthread_mutex_lock(&cm_lock);
	r = cm_qp_attr(cm_id(id), qp_attr, qp_attr_mask);
	pthread_mutex_unlock(&cm_lock);

	return cm_err(r);
}

/* ---- objects ---- */

/* Makes a completion queue with a channel of its own. Returns 0 or an errno value. */
static int
make_cq(struct rdma_cm_id *id, uint32_t depth, struct ibv_comp_channel **ret_channel, struct ibv_cq **ret_cq)
{
	*ret_channel = ibv_create_comp_channel(id->verbs);
	if (!*ret_channel)
		return errno;
	*ret_cq = ibv_create_cq(id->verbs, depth ? (int)depth : 1, id, *ret_channel, 0);

	return *ret_cq ? 0 : errno;
}

static void
free_cq(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	if (*cq)
		ibv_destroy_cq(*cq);
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

static void
free_cqs(struct rdma_cm_id *id)
{
	free_cq(&id->send_cq_channel, &id->send_cq);
	free_cq(&id->recv_cq_channel, &id->recv_cq);
}

/* Returns the protection domain of queue pairs and receive queues for which the program names none, or NULL. */
static struct ibv_pd *
default_pd(struct rdma_cm_id *id)
{
	struct cm_dev *d = cm_id(id)->dev;
	struct ibv_pd *pd;

	pthread_mutex_lock(&cm_lock);
	if (!d->pd)
		d->pd = ibv_alloc_pd(d->verbs);
	pd = d->pd;
	pthread_mutex_unlock(&cm_lock);

	return pd;
}

CM_EXPORT int
rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = NULL;
	int r = 0;

	if (!id->verbs || id->qp)
		return cm_err(EINVAL);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->pd ? id->pd : default_pd(id);
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
	}
	if (!attr->pd || attr->pd->context != id->verbs)
		return cm_err(EINVAL);
	id->pd = attr->pd;
	if (!attr->srq)
		attr->srq = id->srq;
	if (!attr->send_cq)
		r = make_cq(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq);
	if (r == 0 && !attr->recv_cq)
		r = make_cq(id, attr->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq);
	if (r == 0) {
		attr->send_cq = attr->send_cq ? attr->send_cq : id->send_cq;
		attr->recv_cq = attr->recv_cq ? attr->recv_cq : id->recv_cq;
		qp = ibv_create_qp_ex(id->verbs, attr);
		r = qp ? 0 : errno;
	}
	if (r == 0) {
		id->qp = qp;
		r = to(cm_id(id), IBV_QPS_INIT);
	}
	if (r) {
		id->qp = NULL;
		if (qp)
			ibv_destroy_qp(qp);
		free_cqs(id);
	}

	return cm_err(r);
}

CM_EXPORT int
rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex a = { .comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0, .pd = pd };
	/* The members of the older struct are the first ones of the newer. */
	size_t len = offsetof(struct ibv_qp_init_attr_ex, comp_mask);
	int r;

	memcpy(&a, qp_init_attr, len);
	r = rdma_create_qp_ex(id, &a);
	memcpy(qp_init_attr, &a, len);

	return r;
}

CM_EXPORT void
rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct ibv_qp *qp;

	pthread_mutex_lock(&cm_lock);
	qp = id->qp;
	id->qp = NULL;
	pthread_mutex_unlock(&cm_lock);
	if (qp)
		ibv_destroy_qp(qp);
	free_cqs(id);
}

CM_EXPORT int
rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	if (!id->verbs || id->srq)
		return cm_err(EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->pd ? id->pd : default_pd(id);
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	if (!attr->pd)
		return -1;
	id->srq = ibv_create_srq_ex(id->verbs, attr);
	if (!id->srq)
		return -1;
	id->pd = attr->pd;

	return 0;
}

CM_EXPORT int
rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex a = { .srq_context = attr->srq_context,
					  .attr = attr->attr,
					  .comp_mask = IBV_SRQ_INIT_ATTR_PD,
					  .pd = pd };
	int r = rdma_create_srq_ex(id, &a);

	attr->attr = a.attr;

	return r;
}

CM_EXPORT void
rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq)
		ibv_destroy_srq(id->srq);
	id->srq = NULL;
}
