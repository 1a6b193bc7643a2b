/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs: creation, query, destruction.  RC, DC initiator (DCI) and DC target (DCT).  Called by the
 * application on any thread; state changes are in state.c.
 */
#include "softnic/engine.h"
#include "softnic/message.h"

static const uint64_t send_ops_known =
	IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
	IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
	IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_TSO | IBV_QP_EX_WITH_ATOMIC_WRITE;

/* What the caller asked for, checked.  Unknown bits are refused: they may promise a member that our qp_ex
 * lacks. */
static int
check_attr(const struct ibv_qp_init_attr_ex *a, enum fab_qp_type type)
{
	const uint32_t known =
		IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	if (a->comp_mask & ~known || !(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd)
		return EINVAL;
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && a->send_ops_flags & ~send_ops_known)
		return EOPNOTSUPP;
	if (type == FAB_QP_DCT)
		return !a->srq || !a->recv_cq || a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? EINVAL : 0;
	if (!a->send_cq || (type == FAB_QP_RC && !a->recv_cq))
		return EINVAL;
	/* An initiator receives nothing, and mlx5 says so. */
	if (type == FAB_QP_DCI && (a->cap.max_recv_wr || a->cap.max_recv_sge))
		return EINVAL;
	if (a->cap.max_send_wr > SN_MAX_WR || a->cap.max_recv_wr > SN_MAX_WR ||
	    a->cap.max_send_sge > SN_MAX_SGE || a->cap.max_recv_sge > SN_MAX_SGE ||
	    a->cap.max_inline_data > SN_MAX_INLINE)
		return EINVAL;

	return 0;
}

/* Powers of two, as mlx5 has them; the caller is told what it got. */
static void
round_caps(struct ibv_qp_cap *c, enum fab_qp_type type, bool srq)
{
	if (type == FAB_QP_DCT) {
		*c = (struct ibv_qp_cap){ 0 };
		return;
	}
	if (c->max_send_wr)
		c->max_send_wr = sn_pow2(c->max_send_wr);
	if (!c->max_send_sge)
		c->max_send_sge = 1;
	if (c->max_inline_data)
		c->max_inline_data = sn_pow2(c->max_inline_data < 16 ? 16 : c->max_inline_data);
	if (type == FAB_QP_DCI || srq) {
		c->max_recv_wr = 0;
		c->max_recv_sge = 0;
	} else {
		if (c->max_recv_wr)
			c->max_recv_wr = sn_pow2(c->max_recv_wr);
		if (!c->max_recv_sge)
			c->max_recv_sge = 1;
	}
}

static int
alloc_queues(struct sn_qp *qp)
{
	const struct ibv_qp_cap *c = &qp->cap;

	qp->depth = c->max_send_wr;
	qp->mask = qp->depth ? qp->depth - 1 : 0;
	if (qp->depth) {
		qp->sq = calloc(qp->depth, sizeof(*qp->sq));
		qp->sge = calloc((size_t)qp->depth * c->max_send_sge, sizeof(*qp->sge));
		if (!qp->sq || !qp->sge)
			return ENOMEM;
	}
	if (qp->depth && c->max_inline_data) {
		qp->inl = calloc(qp->depth, c->max_inline_data);
		if (!qp->inl)
			return ENOMEM;
	}

	return sn_rq_init(&qp->rq, c->max_recv_wr, c->max_recv_sge);
}

static void
free_queues(struct sn_qp *qp)
{
	sn_rq_fini(&qp->rq);
	free(qp->sq);
	free(qp->sge);
	free(qp->inl);
	free(qp->send.sge);
}

static void
hold(struct sn_qp *qp, int by)
{
	struct ibv_qp *b = &qp->ex.qp_base;

	atomic_fetch_add(&((struct sn_pd *)b->pd)->uses, (uint32_t)by);
	if (b->send_cq)
		atomic_fetch_add(&((struct sn_cq *)b->send_cq)->users, (uint32_t)by);
	if (b->recv_cq)
		atomic_fetch_add(&((struct sn_cq *)b->recv_cq)->users, (uint32_t)by);
	if (b->srq)
		atomic_fetch_add(&((struct sn_srq *)b->srq)->users, (uint32_t)by);
}

static void
init_base(struct sn_qp *qp, struct ibv_context *context, const struct ibv_qp_init_attr_ex *a)
{
	struct ibv_qp *b = &qp->ex.qp_base;

	b->context = context;
	b->qp_context = a->qp_context;
	b->pd = a->pd;
	b->send_cq = a->send_cq;
	b->recv_cq = a->recv_cq;
	b->srq = a->srq;
	b->handle = qp->qpn & 0xffff;
	/* The number of a DCT is not known before RTR on mlx5: a program that reads it earlier must see
	 * that. */
	b->qp_num = qp->type == FAB_QP_DCT ? 0 : qp->qpn;
	b->state = IBV_QPS_RESET;
	b->qp_type = a->qp_type;
	pthread_mutex_init(&b->mutex, NULL);
	pthread_cond_init(&b->cond, NULL);
	pthread_mutex_init(&qp->post_lock, NULL);
	pthread_mutex_init(&qp->lock, NULL);
	pthread_cond_init(&qp->quiet, NULL);
	hold(qp, 1);
}

static void
init_slot(struct sn_qp *qp, uint64_t dc_key)
{
	struct fab_qp *s = qp->slot;

	s->type = qp->type;
	s->pd = qp->ex.qp_base.pd->handle;
	s->dev = qp->ctx->dev->index;
	s->dc_key = dc_key;
	atomic_store(&s->state, IBV_QPS_RESET);
	atomic_store(&s->access, 0);
	atomic_store(&s->dest_qpn, 0);
	if (qp->type == FAB_QP_RC)
		atomic_store(&s->qpn, qp->qpn);
}

static void
enlist(struct sn_qp *qp)
{
	struct sn_ctx *ctx = qp->ctx;

	pthread_mutex_lock(&ctx->lock);
	qp->all_next = ctx->qps;
	qp->all_at = &ctx->qps;
	if (ctx->qps)
		ctx->qps->all_at = &qp->all_next;
	ctx->qps = qp;
	pthread_mutex_unlock(&ctx->lock);
}

/* Has the device as many as it may? */
static bool
is_full(const struct sn_ctx *ctx)
{
	struct fabric *f = sn_self.fab;
	uint64_t max = atomic_load(&f->qps_max), nr = 0;

	for (uint32_t i = 0, high = max ? fab_qp_high(f) : 0; i < high; i++)
		nr += atomic_load(&f->qp[i].owner) != 0 && f->qp[i].dev == ctx->dev->index;

	return max && nr >= max;
}

static struct ibv_qp *
create(struct ibv_context *context, struct ibv_qp_init_attr_ex *a, enum fab_qp_type type, uint64_t dc_key)
{
	int r = sn_inherited(context) ? EINVAL : check_attr(a, type);

	if (r == 0)
		r = sn_refused(context, FAB_OP_CREATE_QP, 0);
	if (r == 0 && type == FAB_QP_DCT)
		r = sn_refused(context, FAB_OP_CREATE_DCT, 0);
	if (r == 0 && is_full(sn_ctx(context)))
		r = ENOMEM;

	struct sn_qp *qp = r ? NULL : calloc(1, sizeof(*qp));

	if (!qp) {
		errno = r ? r : ENOMEM;
		return NULL;
	}
	qp->ctx = sn_ctx(context);
	qp->type = type;
	qp->heap_at = -1;
	qp->sig_all = a->sq_sig_all;
	qp->cap = a->cap;
	round_caps(&qp->cap, type, a->srq != NULL);
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		qp->has_ex = true;
		qp->send_ops = a->send_ops_flags;
	}
	r = alloc_queues(qp);
	if (r == 0 && type != FAB_QP_DCT)
		r = -sn_engine_start(qp->ctx);
	if (r == 0)
		qp->slot = sn_qp_claim(&qp->qpn);
	if (!qp->slot) {
		free_queues(qp);
		free(qp);
		errno = r ? r : ENOMEM;
		return NULL;
	}
	init_base(qp, context, a);
	init_slot(qp, dc_key);
	sn_wr_ops(qp);
	enlist(qp);
	sn_mail_add(qp);
	a->cap = qp->cap;

	return &qp->ex.qp_base;
}

/* The mlx5dv entry, through libmlx5.so.1. */
struct ibv_qp *
softnic_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *a, struct mlx5dv_qp_init_attr *m)
{
	const uint64_t known = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DC |
			       MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;

	if (m && (m->comp_mask & ~known ||
		  (m->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS && m->send_ops_flags))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (a->qp_type == IBV_QPT_RC)
		return create(context, a, FAB_QP_RC, 0);
	if (sn_conf.no_dc || a->qp_type != IBV_QPT_DRIVER || !m ||
	    !(m->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC)) {
		errno = a->qp_type == IBV_QPT_DRIVER ? EINVAL : EOPNOTSUPP;
		return NULL;
	}
	switch (m->dc_init_attr.dc_type) {
	case MLX5DV_DCTYPE_DCI:
		return create(context, a, FAB_QP_DCI, 0);
	case MLX5DV_DCTYPE_DCT:
		return create(context, a, FAB_QP_DCT, m->dc_init_attr.dct_access_key);
	}
	errno = EINVAL;

	return NULL;
}

struct ibv_qp *
sn_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *a)
{
	return softnic_create_qp(context, a, NULL);
}

SN_EXPORT struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = softnic_create_qp(pd->context, &a, NULL);

	if (qp)
		attr->cap = a.cap;

	return qp;
}

SN_EXPORT struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return sn_qp(qp)->has_ex ? &sn_qp(qp)->ex : NULL;
}

struct mlx5dv_qp_ex *
softnic_qp_dv(struct ibv_qp_ex *qp)
{
	return &((struct sn_qp *)qp)->dv;
}

SN_EXPORT int
ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct sn_qp *qp = sn_qp(ibqp);

	if (sn_dead(qp->ctx))
		return EIO;
	pthread_mutex_lock(&qp->lock);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = qp->state;
	attr->sq_draining = qp->state == IBV_QPS_SQD && (qp->busy || qp->send.phase);
	attr->cap = qp->cap;
	ibqp->state = attr->qp_state;
	pthread_mutex_unlock(&qp->lock);
	*init = (struct ibv_qp_init_attr){
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = qp->cap,
		.qp_type = ibqp->qp_type,
		.sq_sig_all = qp->sig_all,
	};

	return 0;
}

static void
wait_acks(struct sn_qp *qp)
{
	struct ibv_qp *b = &qp->ex.qp_base;

	sn_async_forget(qp->ctx, qp);
	pthread_mutex_lock(&qp->ctx->async.lock);
	uint32_t got = qp->async_got;

	pthread_mutex_unlock(&qp->ctx->async.lock);
	pthread_mutex_lock(&b->mutex);
	while (b->events_completed != got)
		pthread_cond_wait(&b->cond, &b->mutex);
	pthread_mutex_unlock(&b->mutex);
}

SN_EXPORT int
ibv_destroy_qp(struct ibv_qp *ibqp)
{
	int r;

	if (sn_inherited(ibqp->context))
		return 0;
	r = sn_refused_by_rule(ibqp->context, FAB_OP_DESTROY_QP, 0);
	if (r)
		return r;
	r = sn_left_keep(ibqp->context, SN_QP, ibqp);
	if (r >= 0)
		return r;
	sn_qp_destroy(ibqp);

	return 0;
}

void
sn_qp_destroy(struct ibv_qp *ibqp)
{
	struct sn_qp *qp = sn_qp(ibqp);

	pthread_mutex_lock(&qp->lock);
	qp->state = IBV_QPS_RESET;
	atomic_store(&qp->slot->state, IBV_QPS_RESET);
	sn_engine_unpark(qp);
	while (qp->busy)
		pthread_cond_wait(&qp->quiet, &qp->lock);
	sn_send_cancel(qp);
	sn_mark_drop(qp);
	sn_rq_drop(qp);
	pthread_mutex_unlock(&qp->lock);
	sn_mail_remove(qp);
	sn_engine_forget(qp);
	sn_qp_release(qp->slot, qp->qpn);
	if (ibqp->send_cq)
		sn_cq_purge((struct sn_cq *)ibqp->send_cq, qp);
	if (ibqp->recv_cq && ibqp->recv_cq != ibqp->send_cq)
		sn_cq_purge((struct sn_cq *)ibqp->recv_cq, qp);
	wait_acks(qp);
	hold(qp, -1);
	free_queues(qp);
	pthread_mutex_destroy(&ibqp->mutex);
	pthread_cond_destroy(&ibqp->cond);
	pthread_mutex_destroy(&qp->post_lock);
	pthread_mutex_destroy(&qp->lock);
	pthread_cond_destroy(&qp->quiet);
	free(qp);
}
