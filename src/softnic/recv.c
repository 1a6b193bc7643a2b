/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receive queues and shared receive queues. The application posts receives; senders take them and end them through the inbox of this
 * process (mail.c), one message of a sender at a time:
 *
 *     queued -> taken (struct sn_rx): the sender copies -> completed, or flushed with its queue pair
 */
#include "softnic/message.h"
#include "softnic/softnic.h"

/* A receive that a sender has taken. */
struct sn_rx {
	struct sn_rx *next;
	uint32_t from; /* number of the sender's queue pair */
	uint32_t sge_nr;
	uint64_t wr_id;
	uint64_t room; /* number of bytes that fit into its buffers */
	struct ibv_sge sge[];
};

int
sn_rq_init(struct sn_rq *rq, uint32_t depth, uint32_t max_sge)
{
	pthread_mutex_init(&rq->lock, NULL);
	rq->depth = depth;
	rq->max_sge = max_sge;
	if (depth == 0)
		return 0;
	rq->wqe = calloc(depth, sizeof(*rq->wqe));
	rq->sge = calloc((size_t)depth * max_sge, sizeof(*rq->sge));

	return rq->wqe && rq->sge ? 0 : ENOMEM;
}

void
sn_rq_fini(struct sn_rq *rq)
{
	pthread_mutex_destroy(&rq->lock);
	free(rq->wqe);
	free(rq->sge);
}

static int
push(struct sn_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int r = 0;

	sn_mail_start();
	pthread_mutex_lock(&rq->lock);
	for (; wr && r == 0; wr = r ? wr : wr->next) {
		uint32_t at = rq->depth ? rq->head % rq->depth : 0;

		if (rq->head - rq->tail >= rq->depth) {
			r = ENOMEM;
		} else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge) {
			r = EINVAL;
		} else {
			rq->wqe[at] = (struct sn_rwqe){ .wr_id = wr->wr_id, .sge_nr = (uint32_t)wr->num_sge };
			for (int i = 0; i < wr->num_sge; i++)
				rq->sge[(size_t)at * rq->max_sge + (size_t)i] = wr->sg_list[i];
			rq->head++;
		}
	}
	pthread_mutex_unlock(&rq->lock);
	if (r)
		*bad = wr;

	return r;
}

static void
flush_one(struct sn_qp *qp, uint64_t wr_id)
{
	struct sn_cqe e = { .wr_id = wr_id,
			    .ts_ns = sn_now_ns(),
			    .qp = qp,
			    .qpn = qp->qpn,
			    .vendor = SN_VE_FLUSH,
			    .status = IBV_WC_WR_FLUSH_ERR,
			    .opcode = IBV_WC_RECV,
			    .is_recv = true };

	sn_cq_push((struct sn_cq *)qp->ex.qp_base.recv_cq, &e);
}

/* Removes the oldest receive that a sender has taken, after the last byte that the sender copies into it. */
static struct sn_rx *
remove_taken(struct sn_qp *qp)
{
	struct sn_rx *rx = qp->rx;

	if (rx) {
		sn_qp_quiesce(qp->qpn);
		qp->rx = rx->next;
	}

	return rx;
}

void
sn_rq_flush(struct sn_qp *qp)
{
	struct sn_rq *rq = &qp->rq;
	struct sn_rx *rx;

	while ((rx = remove_taken(qp)) != NULL) {
		flush_one(qp, rx->wr_id);
		free(rx);
	}
	pthread_mutex_lock(&rq->lock);
	while (rq->tail != rq->head)
		flush_one(qp, rq->wqe[rq->tail++ % rq->depth].wr_id);
	pthread_mutex_unlock(&rq->lock);
}

void
sn_rq_drop(struct sn_qp *qp)
{
	struct sn_rx *rx;

	while ((rx = remove_taken(qp)) != NULL)
		free(rx);
	pthread_mutex_lock(&qp->rq.lock);
	qp->rq.tail = qp->rq.head;
	pthread_mutex_unlock(&qp->rq.lock);
}

int
sn_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sn_qp *qp = sn_qp(ibqp);
	int r;

	pthread_mutex_lock(&qp->lock);
	if (qp->state == IBV_QPS_RESET || qp->ex.qp_base.srq) {
		*bad = wr;
		r = EINVAL;
	} else {
		r = push(&qp->rq, wr, bad);
		if (qp->state == IBV_QPS_ERR)
			sn_rq_flush(qp);
	}
	pthread_mutex_unlock(&qp->lock);

	return r;
}

/* ---- requests of senders ---- */

static bool
is_ready(const struct sn_qp *qp, uint32_t from)
{
	if (sn_dead(qp->ctx))
		return false;
	if (qp->type == FAB_QP_DCT)
		return qp->state == IBV_QPS_RTR;

	return qp->type == FAB_QP_RC && qp->attr.dest_qp_num == from &&
	       (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD);
}

/* Under rq->lock: has the shared receive queue become too empty? */
static bool
below_limit(struct sn_srq *s)
{
	bool below = s && s->limit && s->rq.head - s->rq.tail < s->limit;

	if (below)
		s->limit = 0;

	return below;
}

/* Takes the next receive for a sender. NULL: there is none. */
static struct sn_rx *
take(struct sn_qp *qp, uint32_t from)
{
	struct sn_srq *s = (struct sn_srq *)qp->ex.qp_base.srq;
	struct sn_rq *rq = s ? &s->rq : &qp->rq;
	struct sn_rx *rx = calloc(1, sizeof(*rx) + rq->max_sge * sizeof(rx->sge[0]));
	bool below = false;

	pthread_mutex_lock(&rq->lock);
	if (!rx || rq->tail == rq->head) {
		pthread_mutex_unlock(&rq->lock);
		free(rx);
		return NULL;
	}
	uint32_t at = rq->tail++ % rq->depth;

	rx->from = from;
	rx->wr_id = rq->wqe[at].wr_id;
	rx->sge_nr = rq->wqe[at].sge_nr;
	memcpy(rx->sge, rq->sge + (size_t)at * rq->max_sge, rx->sge_nr * sizeof(rx->sge[0]));
	below = below_limit(s);
	pthread_mutex_unlock(&rq->lock);
	for (uint32_t i = 0; i < rx->sge_nr; i++)
		rx->room += rx->sge[i].length;
	rx->next = qp->rx;
	qp->rx = rx;
	if (below)
		sn_async_raise(sn_ctx(s->srq.context), IBV_EVENT_SRQ_LIMIT_REACHED, s);

	return rx;
}

/* Completes a receive. A failure breaks the queue pair, but not a DC target, which has other senders. */
static void
complete(struct sn_qp *qp, struct sn_rx *rx, const struct fab_msg *m, uint8_t status, uint8_t vendor)
{
	struct sn_rx **at = &qp->rx;
	struct sn_cqe e = {
		.wr_id = rx->wr_id,
		.ts_ns = sn_now_ns(),
		.qp = qp,
		.qpn = qp->qpn,
		.vendor = vendor,
		.status = status,
		.opcode = m->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.is_recv = true,
		.solicited = m->solicited,
	};

	if (status == IBV_WC_SUCCESS)
		e.byte_len = (uint32_t)m->len;
	if (status == IBV_WC_SUCCESS && m->opcode != IBV_WR_SEND) {
		e.flags = IBV_WC_WITH_IMM;
		e.imm = m->imm;
	}
	while (*at != rx)
		at = &(*at)->next;
	*at = rx->next;
	free(rx);
	if (!sn_cq_push((struct sn_cq *)qp->ex.qp_base.recv_cq, &e) && qp->type == FAB_QP_RC) {
		sn_qp_to_err(qp);
		sn_async_raise(qp->ctx, IBV_EVENT_QP_FATAL, qp);
	} else if (status != IBV_WC_SUCCESS && qp->type == FAB_QP_RC) {
		sn_qp_to_err(qp);
	}
}

static void
grant(const struct sn_qp *qp, const struct sn_rx *rx, struct fab_msg *m)
{
	const struct ibv_qp *b = &qp->ex.qp_base;

	m->sge = (uintptr_t)rx->sge;
	m->sge_nr = rx->sge_nr;
	m->pd = b->srq ? b->srq->pd->handle : b->pd->handle;
	m->result = FAB_MSG_OK;
}

void
sn_rx_request(struct sn_qp *qp, uint32_t from, bool put, struct fab_msg *m)
{
	bool imm = m->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct sn_rx *rx = qp->rx;

	m->result = FAB_MSG_NOBODY;
	if (!is_ready(qp, from))
		return;
	while (rx && rx->from != from)
		rx = rx->next;
	if (!rx && put && !imm)
		return;
	if (!rx)
		rx = take(qp, from);
	if (!rx) {
		m->result = FAB_MSG_NOT_READY;
	} else if (!imm && m->len > rx->room) {
		complete(qp, rx, m, IBV_WC_LOC_LEN_ERR, SN_VE_LOC_LEN);
		m->result = FAB_MSG_INVALID;
	} else if (!put) {
		grant(qp, rx, m);
	} else if (m->broken) {
		complete(qp, rx, m, IBV_WC_LOC_PROT_ERR, SN_VE_LOC_PROT);
		m->result = FAB_MSG_BROKEN;
	} else {
		complete(qp, rx, m, IBV_WC_SUCCESS, 0);
		m->result = FAB_MSG_OK;
	}
}

/* ---- shared receive queues ---- */

struct ibv_srq *
sn_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *a)
{
	static _Atomic uint32_t next;
	struct sn_srq *s;

	if ((a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && a->srq_type != IBV_SRQT_BASIC) ||
	    !(a->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (a->attr.max_wr > SN_MAX_WR - 1 || a->attr.max_sge > SN_MAX_SGE + 1) {
		errno = EINVAL;
		return NULL;
	}
	if (sn_lost(sn_ctx(context))) {
		errno = EIO;
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	a->attr.max_wr = sn_pow2(a->attr.max_wr + 1) - 1;
	if (!a->attr.max_sge)
		a->attr.max_sge = 1;
	if (sn_rq_init(&s->rq, a->attr.max_wr, a->attr.max_sge)) {
		sn_rq_fini(&s->rq);
		free(s);
		errno = ENOMEM;
		return NULL;
	}
	s->num = atomic_fetch_add(&next, 1) + 1;
	s->srq.context = context;
	s->srq.srq_context = a->srq_context;
	s->srq.pd = a->pd;
	s->srq.handle = s->num;
	pthread_mutex_init(&s->srq.mutex, NULL);
	pthread_cond_init(&s->srq.cond, NULL);
	atomic_fetch_add(&((struct sn_pd *)a->pd)->uses, 1);

	return &s->srq;
}

SN_EXPORT struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex a = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq = sn_create_srq_ex(pd->context, &a);

	if (srq)
		attr->attr = a.attr;

	return srq;
}

int
sn_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
	*num = ((struct sn_srq *)srq)->num;
	return 0;
}

SN_EXPORT int
ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct sn_srq *s = (struct sn_srq *)srq;

	if (mask & IBV_SRQ_MAX_WR || (mask & IBV_SRQ_LIMIT && attr->srq_limit > s->rq.depth))
		return EINVAL;
	pthread_mutex_lock(&s->rq.lock);
	if (mask & IBV_SRQ_LIMIT)
		s->limit = attr->srq_limit;
	pthread_mutex_unlock(&s->rq.lock);

	return 0;
}

SN_EXPORT int
ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct sn_srq *s = (struct sn_srq *)srq;

	*attr = (struct ibv_srq_attr){ .max_wr = s->rq.depth,
				       .max_sge = s->rq.max_sge,
				       .srq_limit = s->limit };
	return 0;
}

SN_EXPORT int
ibv_destroy_srq(struct ibv_srq *srq)
{
	int r = sn_left_keep(srq->context, SN_SRQ, srq);

	return r < 0 ? sn_srq_destroy(srq) : r;
}

/* Waits until the application has acknowledged every event that it fetched. */
static void
wait_acks(struct sn_srq *s)
{
	struct sn_ctx *ctx = sn_ctx(s->srq.context);

	sn_async_forget(ctx, s);
	pthread_mutex_lock(&ctx->async.lock);
	uint32_t got = s->async_got;

	pthread_mutex_unlock(&ctx->async.lock);
	pthread_mutex_lock(&s->srq.mutex);
	while (s->srq.events_completed != got)
		pthread_cond_wait(&s->srq.cond, &s->srq.mutex);
	pthread_mutex_unlock(&s->srq.mutex);
}

int
sn_srq_destroy(struct ibv_srq *srq)
{
	struct sn_srq *s = (struct sn_srq *)srq;

	if (atomic_load(&s->users) != 0)
		return EBUSY;
	wait_acks(s);
	atomic_fetch_sub(&((struct sn_pd *)srq->pd)->uses, 1);
	pthread_mutex_destroy(&srq->mutex);
	pthread_cond_destroy(&srq->cond);
	sn_rq_fini(&s->rq);
	free(s);

	return 0;
}

int
sn_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return push(&((struct sn_srq *)srq)->rq, wr, bad);
}
