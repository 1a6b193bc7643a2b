/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ibv_modify_qp: which attributes each transition needs and takes, per type of queue pair, and what the
 * transitions do to queued work.
 *
 *            INIT          RTR           RTS
 *     RESET ------> INIT ------> RTR ------> RTS <----> SQD (RC only)
 *       ^                                     | an error, or asked for
 *       +-------------- RESET ------------- ERR      work is flushed
 *       work is dropped
 *
 * A DCT goes RESET, INIT, RTR and no further.  The masks are those of the Linux kernel: the RC rows those of
 * the IB core, the DCI and DCT rows those of its mlx5 driver.
 */
#include "softnic/engine.h"

struct rule {
	enum ibv_qp_state from, to;
	int need, may;
};

#define RC_ANY (IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

static const struct rule rc_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		  IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS,
	  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
	  IBV_QP_CUR_STATE | RC_ANY },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_RATE_LIMIT | RC_ANY },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | RC_ANY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX | RC_ANY },
	{ IBV_QPS_ERR, IBV_QPS_ERR, 0, 0 },
};

static const struct rule dci_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT },
	{ IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX | IBV_QP_AV },
	{ IBV_QPS_RTR, IBV_QPS_RTS,
	  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN,
	  IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_ERR, IBV_QPS_ERR, 0, 0 },
};

static const struct rule dct_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU, 0 },
};

static const struct rule *
find_rule(enum fab_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	static const struct rule to_err = { 0 }, to_reset = { 0 };
	static const struct {
		const struct rule *rules;
		size_t nr;
	} tables[] = {
		[FAB_QP_RC] = { rc_rules, sizeof(rc_rules) / sizeof(rc_rules[0]) },
		[FAB_QP_DCI] = { dci_rules, sizeof(dci_rules) / sizeof(dci_rules[0]) },
		[FAB_QP_DCT] = { dct_rules, sizeof(dct_rules) / sizeof(dct_rules[0]) },
	};

	for (size_t i = 0; i < tables[type].nr; i++) {
		if (tables[type].rules[i].from == from && tables[type].rules[i].to == to)
			return &tables[type].rules[i];
	}
	if (type != FAB_QP_DCT && to == IBV_QPS_RESET)
		return &to_reset;
	if (type != FAB_QP_DCT && to == IBV_QPS_ERR && from != IBV_QPS_RESET)
		return &to_err;

	return NULL;
}

static int
check_values(const struct sn_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	int reads = qp->type == FAB_QP_DCI ? sn_conf.dc_rd_atomic : SN_MAX_RD_ATOM;
	bool bad = (mask & IBV_QP_PORT && a->port_num != 1) ||
		   (mask & IBV_QP_PKEY_INDEX && a->pkey_index != 0) ||
		   (mask & IBV_QP_PATH_MTU && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096)) ||
		   (mask & IBV_QP_TIMEOUT && a->timeout > 31) ||
		   (mask & IBV_QP_RETRY_CNT && a->retry_cnt > 7) ||
		   (mask & IBV_QP_RNR_RETRY && a->rnr_retry > 7) ||
		   (mask & IBV_QP_MIN_RNR_TIMER && a->min_rnr_timer > 31) ||
		   (mask & IBV_QP_MAX_QP_RD_ATOMIC && a->max_rd_atomic > reads) ||
		   (mask & IBV_QP_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > SN_MAX_RD_ATOM) ||
		   (mask & IBV_QP_DEST_QPN && a->dest_qp_num > 0xffffff) ||
		   (mask & IBV_QP_SQ_PSN && a->sq_psn > 0xffffff) ||
		   (mask & IBV_QP_RQ_PSN && a->rq_psn > 0xffffff);

	return bad || (mask & IBV_QP_AV && !sn_good_av(qp->ctx, &a->ah_attr)) ? EINVAL : 0;
}

/* Checks a change of the state, under qp->lock. Returns 0 or EINVAL. */
static int
check_modify(const struct sn_qp *qp, const struct ibv_qp_attr *a, int mask, enum ibv_qp_state *ret_new)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? a->qp_state : qp->state;
	const struct rule *r;

	if (mask & IBV_QP_CUR_STATE && a->cur_qp_state != qp->state)
		return EINVAL;
	if (qp->type != FAB_QP_RC && !(mask & IBV_QP_STATE))
		return EINVAL; /* the mlx5 DC paths insist on it */
	r = find_rule(qp->type, qp->state, to);
	if (!r || (mask & r->need) != r->need || mask & ~(r->need | r->may | IBV_QP_STATE))
		return EINVAL;
	*ret_new = to;

	return check_values(qp, a, mask);
}

static void
remember(struct sn_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *m = &qp->attr;

#define KEEP(bit, field) ((mask & (bit)) ? (void)(m->field = a->field) : (void)0)
	KEEP(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	KEEP(IBV_QP_PKEY_INDEX, pkey_index);
	KEEP(IBV_QP_PORT, port_num);
	KEEP(IBV_QP_AV, ah_attr);
	KEEP(IBV_QP_PATH_MTU, path_mtu);
	KEEP(IBV_QP_TIMEOUT, timeout);
	KEEP(IBV_QP_RETRY_CNT, retry_cnt);
	KEEP(IBV_QP_RNR_RETRY, rnr_retry);
	KEEP(IBV_QP_RQ_PSN, rq_psn);
	KEEP(IBV_QP_SQ_PSN, sq_psn);
	KEEP(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	KEEP(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	KEEP(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	KEEP(IBV_QP_DEST_QPN, dest_qp_num);
	KEEP(IBV_QP_ALT_PATH, alt_ah_attr);
	KEEP(IBV_QP_PATH_MIG_STATE, path_mig_state);
	KEEP(IBV_QP_RATE_LIMIT, rate_limit);
#undef KEEP
	if (mask & IBV_QP_ACCESS_FLAGS)
		atomic_store(&qp->slot->access, a->qp_access_flags);
	if (mask & IBV_QP_DEST_QPN)
		atomic_store(&qp->slot->dest_qpn, a->dest_qp_num);
	if (mask & IBV_QP_PATH_MTU)
		atomic_store(&qp->slot->mtu, a->path_mtu);
	if (mask & IBV_QP_MIN_RNR_TIMER)
		atomic_store(&qp->slot->rnr_timer, a->min_rnr_timer);
	if (mask & IBV_QP_AV)
		atomic_store(&qp->slot->marks, sn_dest_of(&a->ah_attr).marks);
}

/* Under qp->lock. */
static void
enter(struct sn_qp *qp, enum ibv_qp_state to, const struct ibv_qp_attr *a, int mask)
{
	enum ibv_qp_state from = qp->state;

	if (to == IBV_QPS_RESET) {
		sn_qp_reset(qp);
		return;
	}
	remember(qp, a, mask);
	if (to == IBV_QPS_ERR) {
		sn_qp_to_err(qp);
		sn_qp_run(qp, 0); /* flushes now, unless a step is running: then its runner does */
		return;
	}
	sn_qp_set_state(qp, to);
	if (qp->type == FAB_QP_DCT && to == IBV_QPS_RTR) {
		qp->ex.qp_base.qp_num = qp->qpn;
		atomic_store(&qp->slot->qpn, qp->qpn);
	}
	if (from == IBV_QPS_RTS && to == IBV_QPS_SQD && mask & IBV_QP_EN_SQD_ASYNC_NOTIFY &&
	    a->en_sqd_async_notify) {
		qp->sqd_notify = qp->busy || qp->send.phase;
		if (!qp->sqd_notify)
			sn_async_raise(qp->ctx, IBV_EVENT_SQ_DRAINED, qp);
	}
	if (to == IBV_QPS_RTS)
		sn_engine_kick(qp);
}

SN_EXPORT int
ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct sn_qp *qp = sn_qp(ibqp);
	enum ibv_qp_state to = IBV_QPS_UNKNOWN;
	int r;

	if (sn_inherited(ibqp->context))
		return EINVAL;
	r = sn_refused_by_rule(ibqp->context, FAB_OP_MODIFY_QP, 0);
	pthread_mutex_lock(&qp->lock);
	r = sn_lost(qp->ctx) ? EIO : r ? r : check_modify(qp, attr, mask, &to);
	if (r == 0)
		enter(qp, to, attr, mask);
	else
		sn_debug("modify_qp %06x type %d: %d -> %d mask %#x refused", qp->qpn, qp->type, qp->state,
			 mask & IBV_QP_STATE ? (int)attr->qp_state : -1, (unsigned)mask);
	if (r == 0 && mask & IBV_QP_STATE)
		ibqp->state = to;
	pthread_mutex_unlock(&qp->lock);

	return r;
}
