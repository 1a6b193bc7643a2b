/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receive queues and shared receive queues.  Nothing is ever received (SEND and WRITE_WITH_IMM fail at the
 * sender); what is kept is the bookkeeping a program can see: full queues, flushes, numbers.
 */
#include "softnic/softnic.h"

int
sn_rq_init(struct sn_rq *rq, uint32_t depth, uint32_t max_sge)
{
	pthread_mutex_init(&rq->lock, NULL);
	rq->depth = depth;
	rq->max_sge = max_sge;
	if (depth == 0)
		return 0;
	rq->wr_id = calloc(depth, sizeof(*rq->wr_id));

	return rq->wr_id ? 0 : ENOMEM;
}

void
sn_rq_fini(struct sn_rq *rq)
{
	pthread_mutex_destroy(&rq->lock);
	free(rq->wr_id);
}

static int
push(struct sn_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int r = 0;

	pthread_mutex_lock(&rq->lock);
	for (; wr && r == 0; wr = r ? wr : wr->next) {
		if (rq->head - rq->tail >= rq->depth)
			r = ENOMEM;
		else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
			r = EINVAL;
		else
			rq->wr_id[rq->head++ % rq->depth] = wr->wr_id;
	}
	pthread_mutex_unlock(&rq->lock);
	if (r)
		*bad = wr;

	return r;
}

void
sn_rq_flush(struct sn_qp *qp)
{
	struct sn_rq *rq = &qp->rq;
	struct sn_cqe e = { .qp = qp,
			    .qpn = qp->qpn,
			    .vendor = SN_VE_FLUSH,
			    .status = IBV_WC_WR_FLUSH_ERR,
			    .opcode = IBV_WC_RECV,
			    .is_recv = true };

	pthread_mutex_lock(&rq->lock);
	while (rq->tail != rq->head) {
		e.wr_id = rq->wr_id[rq->tail++ % rq->depth];
		e.ts_ns = sn_now_ns();
		sn_cq_push((struct sn_cq *)qp->ex.qp_base.recv_cq, &e);
	}
	pthread_mutex_unlock(&rq->lock);
}

void
sn_rq_drop(struct sn_rq *rq)
{
	pthread_mutex_lock(&rq->lock);
	rq->tail = rq->head;
	pthread_mutex_unlock(&rq->lock);
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
	if (mask & IBV_SRQ_LIMIT)
		s->limit = attr->srq_limit;

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

int
sn_srq_destroy(struct ibv_srq *srq)
{
	struct sn_srq *s = (struct sn_srq *)srq;

	if (atomic_load(&s->users) != 0)
		return EBUSY;
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
