/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DC transport.  Its endpoints are initiators: any of them reaches any target, so nothing is connected.
 * Its targets are an address handle with the number of a DCT.  Here are creation, the way to RTS with
 * everything the operator configured (item 24), and posting.  Who calls what on which thread is in rdma/ep.h.
 */
#define LOG_MODULE "rdma"
#include "rdma/qp.h"
#include "rdma/rdma_int.h"

#include "base/check.h"
#include "base/log.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

struct dci {
	struct verbs_ep ep;
	struct ibv_qp_ex *qpx;
	struct mlx5dv_qp_ex *mqpx;
	int mtu; /* bytes */
};

static struct dci *
of(struct rdma_ep *base)
{
	return container_of(verbs_ep_of(base), struct dci, ep);
}

static void
dc_limits(const struct rdma_rail *rail, int want, struct rdma_ep_limits *ret_limits)
{
	pthread_rwlock_t *lock = &rail->rd->table_lock;
	int depth, sge;

	pthread_rwlock_rdlock(lock);
	depth = rail->dev->attr.max_qp_wr;
	sge = rail->dev->attr.max_sge;
	pthread_rwlock_unlock(lock);
	ret_limits->send_depth = depth > 0 ? min_int(want, depth) : want;
	ret_limits->read_depth = rail_reads_max(rail);
	ret_limits->max_sge = sge_max(rail->rd, sge);
}

static int
to_init(struct dci *dci)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = (uint16_t)dci->ep.base.rail->rd->conf.pkey_index,
		.port_num = dci->ep.base.rail->port,
	};

	return -ibv_modify_qp(dci->ep.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
}

static int
to_rtr(struct dci *dci)
{
	struct rdma_rail *rail = dci->ep.base.rail;
	struct ah_params p = rail_ah_params(rail);
	pthread_rwlock_t *lock = &rail->rd->table_lock;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = { .sl = p.service_level, .port_num = rail->port },
	};
	int mtu;

	/* The target comes with each work request; what stands here is the port, the level and the source's
	 * index. */
	pthread_rwlock_rdlock(lock);
	dci->ep.base.path = atomic_load(&rail->path);
	mtu = mtu_bytes(rail->port_attr.active_mtu);
	if (rail->is_ethernet) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.sgid_index = (uint8_t)(rail->view.gid_nr ? rail->view.gid[0].index : 0);
		attr.ah_attr.grh.hop_limit = p.hop_limit;
		attr.ah_attr.grh.traffic_class = p.traffic_class;
	}
	pthread_rwlock_unlock(lock);
	attr.path_mtu = mtu_enum(rail->rd->conf.path_mtu ? rail->rd->conf.path_mtu : min_int(mtu, 4096));
	dci->mtu = mtu_bytes(attr.path_mtu);
	return -ibv_modify_qp(dci->ep.qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV);
}

static int
to_rts(struct dci *dci)
{
	const struct conf_rdma *c = &dci->ep.base.rail->rd->conf;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)c->timeout,
		.retry_cnt = (uint8_t)c->retry_cnt,
		.rnr_retry = (uint8_t)c->rnr_retry,
	};
	int reads = rail_reads_max(dci->ep.base.rail), r;

	/* As many as were found out when the device was opened, or fewer where that was not possible then. */
	do {
		attr.max_rd_atomic = (uint8_t)reads;
		r = -ibv_modify_qp(dci->ep.qp, &attr,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	} while (r == -EINVAL && (reads /= 2) > 0);
	return r;
}

static int
to_ready(struct dci *dci)
{
	struct rdma_rail *rail = dci->ep.base.rail;
	const char *step = "RESET to INIT";
	int r = to_init(dci);

	if (r == 0) {
		step = "INIT to RTR";
		r = to_rtr(dci);
	}
	if (r == 0) {
		step = "RTR to RTS";
		r = to_rts(dci);
	}
	/* One line for all of a rail; of one that is not up the log knows already. */
	if (r == 0)
		atomic_store_explicit(&rail->refused, false, memory_order_relaxed);
	else if (rdma_rail_state(rail) == RAIL_UP && !atomic_exchange(&rail->refused, true))
		log_warn("%s:%d: an initiator is refused from %s (MTU %d, max_rd_atomic %d, P_Key index %d): "
			 "%s",
			 rail->dev->name, rail->port, step, dci->mtu, rail_reads_max(rail),
			 rail->rd->conf.pkey_index, strerror(-r));
	return r;
}

/*
 * A queue pair of the driver's own type, with the two operations we post declared up front.  Nothing else
 * towards the client can leave through it (item 17).
 */
static struct ibv_qp *
qp_new(struct rdma_context *c, struct ibv_pd *pd, struct ibv_cq *cq, int send_depth, int max_sge)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = (uint32_t)send_depth, .max_send_sge = (uint32_t)max_sge },
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};

	return mlx5dv_create_qp(c->ctx, &attr, &dv);
}

/*
 * How many READs an initiator may have outstanding: the device's own number is another queue pair's, and what an initiator may
 * have is only found out by asking for it.  It is left as it is where that cannot be asked (a port that takes no initiator now).
 */
static int
probe_reads(struct rdma_context *c, struct ibv_qp *qp)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_256 };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 7, .rnr_retry = 7 };
	/* What the device says is another queue pair's limit: the operator may know better. */
	int reads = c->conf->max_rd_atomic > 0        ? c->conf->max_rd_atomic
		    : c->attr.max_qp_init_rd_atom > 0 ? min_int(c->attr.max_qp_init_rd_atom, RDMA_MAX_READS)
						      : 1,
	    r;

	if (ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT) ||
	    ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_PATH_MTU))
		return 0;
	do {
		rts.max_rd_atomic = (uint8_t)reads;
		r = ibv_modify_qp(qp, &rts,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
		if (r == 0)
			c->attr.max_qp_init_rd_atom = reads;
	} while (r == EINVAL && (reads /= 2) > 0);
	return -r;
}

/* No capability bit says DC; creating one initiator does (as libraries in the field find out at their first
 * transfer). */
static int
dc_probe(struct rdma_context *c, const char **ret_why)
{
	struct mlx5dv_context dv = { 0 };
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int r = 0;

	*ret_why = "not an mlx5 device";
	if (!mlx5dv_is_supported(c->ctx->device))
		return -ENODEV;
	*ret_why = "the mlx5 interface does not answer";
	r = mlx5dv_query_device(c->ctx, &dv);
	if (r)
		return -r;
	*ret_why = "an initiator cannot be created";
	errno = 0;
	cq = ibv_create_cq(c->ctx, 16, NULL, NULL, 0);
	if (!cq)
		return errno ? -errno : -ENOMEM;
	errno = 0;
	qp = qp_new(c, c->pd, cq, 4, 1);
	if (!qp) {
		r = errno ? -errno : -EOPNOTSUPP;
	} else {
		*ret_why = "an initiator is refused from RTR to RTS, even with max_rd_atomic 1";
		r = probe_reads(c, qp);
		ibv_destroy_qp(qp);
	}
	ibv_destroy_cq(cq);
	return r;
}

static int
dc_new(struct rdma_rail *rail, struct rdma_cq *base, int send_depth, struct rdma_ep **ret_ep)
{
	struct verbs_cq *cq = container_of(base, struct verbs_cq, base);
	struct rdma_context *c = cq->c;
	struct dci *dci;
	int r;

	if (context_is_given_up(c))
		return -ENODEV;
	dci = calloc(1, sizeof *dci);
	if (!dci)
		return -ENOMEM;
	verbs_ep_init(&dci->ep, &rdma_dc, rail, c);
	errno = 0;
	dci->ep.qp = qp_new(c, cq->pd, cq->cq, send_depth, sge_max(rail->rd, c->attr.max_sge));
	if (!dci->ep.qp) {
		r = errno ? -errno : -ENOMEM;
		free(dci);
		return r;
	}
	dci->qpx = ibv_qp_to_qp_ex(dci->ep.qp);
	dci->mqpx = mlx5dv_qp_ex_from_ibv_qp_ex(dci->qpx);
	r = to_ready(dci);
	if (r < 0) {
		/* Nothing was posted on it, so it matters to nobody whether that is heard. */
		verbs_ep_destroy_qp(&dci->ep);
		free(dci);
		return r;
	}
	context_hold(c);
	*ret_ep = &dci->ep.base;
	return 0;
}

static int
dc_reset(struct rdma_ep *ep)
{
	struct dci *dci = of(ep);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	int r = -ibv_modify_qp(dci->ep.qp, &attr, IBV_QP_STATE);

	return r < 0 ? r : to_ready(dci);
}

static int
dc_free(struct rdma_ep *ep, bool idle)
{
	struct dci *dci = of(ep);
	int r = verbs_ep_release(&dci->ep, idle);

	if (r == 0)
		free(dci);
	return r;
}

static int
dc_post(struct rdma_ep *ep, const struct rdma_wr *wr)
{
	struct dci *dci = of(ep);
	const struct rdma_ah *ah = wr->target->at;
	struct ibv_qp_ex *q = dci->qpx;
	struct ibv_sge sge[RDMA_SGE_MAX];

	check(wr->sge_nr > 0);
	check(wr->sge_nr <= RDMA_SGE_MAX);
	/* A handle that a lease has kept since before the device was re-opened: it may be gone. */
	if (atomic_load_explicit(&ah->context, memory_order_acquire) != dci->ep.context)
		return -ESTALE;
	for (int i = 0; i < wr->sge_nr; i++) {
		int r = verbs_sge(dci->ep.c, &wr->sge[i], &sge[i]);

		if (r < 0)
			return r;
	}
	ibv_wr_start(q);
	q->wr_id = wr->wr_id;
	q->wr_flags =
		IBV_SEND_SIGNALED; /* every one: credits, accounting and cancellation all count completions */
	if (wr->is_write)
		ibv_wr_rdma_write(q, wr->rkey, wr->remote);
	else
		ibv_wr_rdma_read(q, wr->rkey, wr->remote);
	mlx5dv_wr_set_dc_addr(dci->mqpx, ah->ah, wr->target->nr, ep->rail->rd->conf.dc_key);
	if (wr->sge_nr == 1)
		ibv_wr_set_sge(q, sge[0].lkey, sge[0].addr, sge[0].length);
	else
		ibv_wr_set_sge_list(q, (size_t)wr->sge_nr, sge);
	return -ibv_wr_complete(q);
}

/* ---- targets ---- */

static int
dc_target_get(struct rdma_rail *rail, const struct token *tok, const struct rail_route *route,
	      struct rdma_target_wait *w, struct rdma_target *ret_target)
{
	struct rdma_ah *ah;
	int r;

	w->target = (struct rdma_target){ .ops = &rdma_dc, .nr = tok->dctn };
	r = ah_get(rail, &route->key, w, &ah);
	if (r > 0)
		*ret_target = (struct rdma_target){ .ops = &rdma_dc, .at = ah, .nr = tok->dctn };
	return r;
}

static bool
dc_target_leave(struct rdma_rail *rail, struct rdma_target_wait *w)
{
	return ah_leave(rail, w);
}

static void
dc_target_put(struct rdma_rail *rail, const struct rdma_target *target)
{
	ah_put(rail, target->at);
}

static void
dc_target_forget(struct rdma_rail *rail, const struct rdma_target *target)
{
	ah_forget(rail, target->at);
}

static bool
dc_target_forgotten(const struct rdma_target *target)
{
	const struct rdma_ah *ah = target->at;

	return atomic_load_explicit(&ah->forgotten, memory_order_acquire);
}

const struct rdma_ep_ops rdma_dc = {
	.name = "DC",
	.families = 1u << TOKEN_DC,
	.cq = &verbs_cq_ops,
	.probe = dc_probe,
	.limits = dc_limits,
	.target_get = dc_target_get,
	.target_leave = dc_target_leave,
	.target_put = dc_target_put,
	.target_forget = dc_target_forget,
	.target_forgotten = dc_target_forgotten,
	.ep_new = dc_new,
	.ep_post = dc_post,
	.ep_error = verbs_ep_error,
	.ep_reset = dc_reset,
	.ep_free = dc_free,
};
