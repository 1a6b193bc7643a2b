/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives and shared receive queues, as the application posts and makes them. rq.c has the queues, rx.c the requests
 * of senders. Called on the application's threads. Each post starts the reader of the inbox (mail.c), which senders need.
 */
#include "softnic/message.h"
#include "softnic/softnic.h"

int
sn_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sn_qp *qp = sn_qp(ibqp);
	int r;

	if (sn_inherited(ibqp->context)) {
		*bad = wr;
		return EINVAL;
	}
	pthread_mutex_lock(&qp->lock);
	if (qp->state == IBV_QPS_RESET || qp->ex.qp_base.srq) {
		*bad = wr;
		r = EINVAL;
	} else {
		sn_mail_start();
		r = sn_rq_push(&qp->rq, wr, bad);
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
	if (sn_inherited(context) || a->attr.max_wr > SN_MAX_WR - 1 || a->attr.max_sge > SN_MAX_SGE + 1) {
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
	if (sn_inherited(srq->context)) {
		*bad = wr;
		return EINVAL;
	}
	sn_mail_start();

	return sn_rq_push(&((struct sn_srq *)srq)->rq, wr, bad);
}
