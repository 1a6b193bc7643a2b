/* SPDX-License-Identifier: Apache-2.0 */
/* Initiators and targets of the RC transport; see hw_verbs.h. */
#include "client/cmd/hwcheck/hw_verbs.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

/* Returns the error of the call before it, which some providers do not put into errno. */
static int
why(void)
{
	return errno ? -errno : -EIO;
}

static struct ibv_qp *
qp_new(struct hw_port *p, struct ibv_cq *cq, const struct hw_dci_opt *opt)
{
	struct ibv_qp_init_attr a = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = opt->depth, .max_send_sge = opt->sge, .max_inline_data = opt->inl },
		.qp_type = IBV_QPT_RC
	};

	return ibv_create_qp(p->pd, &a);
}

int
hw_rc_new(struct hw_dci *i, struct hw_port *p, const struct hw_dci_opt *opt)
{
	int r;

	*i = (struct hw_dci){ .port = p };
	errno = 0;
	i->plain_cq = ibv_create_cq(p->ctx, (int)opt->cqe, NULL, opt->chan, 0);
	if (i->plain_cq)
		i->qp = qp_new(p, i->plain_cq, opt);
	if (i->qp)
		return 0;
	r = why();
	hw_dci_free(i);
	return r;
}

int
hw_rc_end(struct hw_port *p, struct ibv_qp *qp, struct hw_end *ret)
{
	struct ibv_port_attr attr;

	*ret = (struct hw_end){ .qpn = qp->qp_num, .mtu = p->mtu };
	errno = 0;
	if (ibv_query_port(p->ctx, p->nr, &attr) != 0)
		return why();
	ret->lid = p->is_ib ? attr.lid : 0;
	return ibv_query_gid(p->ctx, p->nr, p->gid_index, &ret->gid) ? why() : 0;
}

/* Returns the largest number of READs of the peer that a queue pair of the device can answer at a time, at most 16. */
static uint8_t
reads_answered(struct hw_port *p)
{
	struct ibv_device_attr a;

	if (ibv_query_device(p->ctx, &a) != 0 || a.max_qp_rd_atom < 1)
		return 1;
	return (uint8_t)(a.max_qp_rd_atom < 16 ? a.max_qp_rd_atom : 16);
}

int
hw_rc_connect(struct hw_port *p, struct ibv_qp *qp, const struct hw_end *peer, unsigned access,
	      const struct hw_dci_opt *opt)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = p->nr, .qp_access_flags = access };
	int r = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				  .path_mtu = peer->mtu,
				  .dest_qp_num = peer->qpn,
				  .rq_psn = peer->psn,
				  .max_dest_rd_atomic = reads_answered(p),
				  .min_rnr_timer = 12,
				  .ah_attr = hw_vector(p) };
	a.ah_attr.dlid = peer->lid;
	a.ah_attr.grh.dgid = peer->gid;
	if (r == 0)
		r = ibv_modify_qp(qp, &a,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .timeout = (uint8_t)opt->timeout,
				  .retry_cnt = (uint8_t)opt->retry,
				  .rnr_retry = 7,
				  .sq_psn = peer->psn,
				  .max_rd_atomic = (uint8_t)(opt->reads ? opt->reads : 16) };
	if (r == 0)
		r = ibv_modify_qp(qp, &a,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	return -r;
}

int
hw_rc_target_new(struct hw_target *t, struct hw_port *p, size_t len, unsigned access, unsigned mr_access)
{
	*t = (struct hw_target){ .port = p, .len = len, .is_rc = true, .access = access };
	errno = 0;
	t->mr = hw_mem_new(p, len, mr_access);
	if (t->mr)
		t->cq = ibv_create_cq(p->ctx, 2, NULL, NULL, 0);
	if (t->cq)
		t->dct = qp_new(p, t->cq, &hw_dci_plain);
	if (!t->dct) {
		int r = why();

		hw_target_free(t);
		return r;
	}
	t->buf = t->mr->addr;
	return 0;
}

int
hw_rc_target_connect(struct hw_target *t, const struct hw_end *peer)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	int r;

	if (!t->is_rc)
		return -EINVAL;
	if (!t->dct)
		return -ENOENT;
	r = ibv_modify_qp(t->dct, &a, IBV_QP_STATE);
	return r ? -r : hw_rc_connect(t->port, t->dct, peer, t->access, &hw_dci_plain);
}

/* Connects both to each other, writes some bytes, and waits for the completion. */
static int
write_once(struct hw_dci *i, struct hw_target *t, const char **ret_step)
{
	struct hw_end ours, theirs;
	struct hw_done done;
	struct hw_token tok;
	int r = hw_rc_end(i->port, i->qp, &ours);

	*ret_step = "connecting it";
	if (r == 0)
		r = hw_rc_end(t->port, t->dct, &theirs);
	if (r == 0)
		r = hw_rc_target_connect(t, &ours);
	if (r == 0)
		r = hw_rc_connect(i->port, i->qp, &theirs, 0, &hw_dci_plain);
	if (r == 0)
		r = hw_target_token(t, &tok);
	if (r < 0)
		return r;
	*ret_step = "a WRITE over it";
	r = -hw_post(i, false, &tok, tok.addr + tok.len / 2, t->mr, t->buf, 64, 1);
	if (r == 0)
		r = hw_wait(i, 2000, &done);
	return r == 0 && done.status != IBV_WC_SUCCESS ? -EIO : r;
}

int
hw_rc_try(struct hw_port *p, const char **ret_step)
{
	struct hw_target t;
	struct hw_dci i;
	int r = hw_rc_new(&i, p, &hw_dci_plain);

	*ret_step = "creating it";
	if (r < 0)
		return r;
	r = hw_rc_target_new(&t, p, 4096, HW_REMOTE, HW_REMOTE);
	if (r == 0) {
		r = write_once(&i, &t, ret_step);
		hw_target_free(&t);
	}
	hw_dci_free(&i);
	return r;
}
