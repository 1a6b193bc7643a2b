/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building work requests: the ibv_qp_ex and mlx5dv builders and ibv_post_send.  On the posting thread, which
 * holds post_lock from wr_start to wr_complete or wr_abort.  What is built lies in ring slots that the engine
 * does not look at before wr_complete moves head.
 */
#include "softnic/engine.h"
#include "softnic/message.h"

static struct sn_qp *
of(struct ibv_qp_ex *ex)
{
	return (struct sn_qp *)ex;
}

static struct sn_qp *
of_dv(struct mlx5dv_qp_ex *dv)
{
	return (struct sn_qp *)((char *)dv - offsetof(struct sn_qp, dv));
}

static uint32_t
slot_of(const struct sn_qp *qp)
{
	return (qp->head + qp->build_nr - 1) & qp->mask;
}

/* The work request being built; NULL after an error, which wr_complete reports. */
static struct sn_wqe *
cur(struct sn_qp *qp)
{
	return qp->build_err || qp->build_nr == 0 ? NULL : &qp->sq[slot_of(qp)];
}

/* Starts the reader of the inbox if a work request is a message, because the receiver answers to the inbox. */
static void
expect_answer(const struct sn_qp *qp, enum ibv_wr_opcode op)
{
	bool message = op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (message && !sn_inherited(qp->ex.qp_base.context))
		sn_mail_start();
}

static struct sn_wqe *
begin(struct sn_qp *qp, enum ibv_wr_opcode op)
{
	struct sn_wqe *w;

	if (qp->build_err)
		return NULL;
	if (qp->head + qp->build_nr - atomic_load_explicit(&qp->freed, memory_order_acquire) >= qp->depth) {
		qp->build_err = ENOMEM;
		return NULL;
	}
	expect_answer(qp, op);
	qp->build_nr++;
	w = &qp->sq[slot_of(qp)];
	*w = (struct sn_wqe){
		.wr_id = qp->ex.wr_id,
		.opcode = (uint8_t)op,
		.signaled = qp->sig_all || qp->ex.wr_flags & IBV_SEND_SIGNALED,
		.solicited = qp->ex.wr_flags & IBV_SEND_SOLICITED,
	};

	return w;
}

static void
wr_start(struct ibv_qp_ex *ex)
{
	struct sn_qp *qp = of(ex);

	pthread_mutex_lock(&qp->post_lock);
	qp->build_nr = 0;
	qp->build_err = 0;
}

static int
check_built(const struct sn_qp *qp)
{
	if (qp->build_err || qp->type != FAB_QP_DCI)
		return qp->build_err;
	for (uint32_t i = 0; i < qp->build_nr; i++) {
		if (!qp->sq[(qp->head + i) & qp->mask].has_dc)
			return EINVAL;
	}

	return 0;
}

/* Hands what was built to the engine, or runs it right here when inline. */
static int
publish(struct sn_qp *qp)
{
	int r = sn_inherited(qp->ex.qp_base.context) ? EINVAL : check_built(qp);

	if (r || qp->build_nr == 0)
		return r;
	pthread_mutex_lock(&qp->lock);
	if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT || qp->state == IBV_QPS_RTR) {
		r = EINVAL;
	} else {
		qp->head += qp->build_nr;
		if (sn_conf.run_inline)
			sn_qp_run(qp, UINT32_MAX);
		else
			sn_engine_kick(qp);
	}
	pthread_mutex_unlock(&qp->lock);

	return r;
}

static int
wr_complete(struct ibv_qp_ex *ex)
{
	struct sn_qp *qp = of(ex);
	int r = publish(qp);

	pthread_mutex_unlock(&qp->post_lock);
	return r;
}

static void
wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&of(ex)->post_lock);
}

/* ---- operations ---- */

static void
begin_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey, uint64_t raddr)
{
	struct sn_wqe *w = begin(of(ex), op);

	if (w) {
		w->rkey = rkey;
		w->raddr = raddr;
	}
}

static void
wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr)
{
	begin_rdma(ex, IBV_WR_RDMA_WRITE, rkey, raddr);
}

static void
wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr)
{
	begin_rdma(ex, IBV_WR_RDMA_READ, rkey, raddr);
}

static void
begin_imm(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, __be32 imm)
{
	struct sn_wqe *w = begin(of(ex), op);

	if (w)
		w->imm = imm;
}

static void
wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, __be32 imm)
{
	struct sn_wqe *w = begin(of(ex), IBV_WR_RDMA_WRITE_WITH_IMM);

	if (!w)
		return;
	w->rkey = rkey;
	w->raddr = raddr;
	w->imm = imm;
}

static void
wr_send(struct ibv_qp_ex *ex)
{
	begin(of(ex), IBV_WR_SEND);
}

static void
wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	begin_imm(ex, IBV_WR_SEND_WITH_IMM, imm);
}

/* The rest of the mlx5 set can be built, since programs ask for it at creation; it fails when it is run. Atomic operations, which the
 * attributes of the device exclude, are refused as libmlx5 does. */

static void
wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin(of(ex), IBV_WR_SEND_WITH_INV);
}

static void
wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	begin(of(ex), IBV_WR_TSO);
}

static void
wr_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t compare, uint64_t swap)
{
	of(ex)->build_err = EOPNOTSUPP;
}

static void
wr_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t add)
{
	of(ex)->build_err = EOPNOTSUPP;
}

static void
wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, const void *data)
{
	of(ex)->build_err = EOPNOTSUPP;
}

static void
wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin(of(ex), IBV_WR_LOCAL_INV);
}

static void
wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	begin(of(ex), IBV_WR_BIND_MW);
}

/* ---- setters ---- */

static void
set_sges(struct sn_qp *qp, size_t n, const struct ibv_sge *list)
{
	struct sn_wqe *w = cur(qp);

	if (!w)
		return;
	if (n > qp->cap.max_send_sge) {
		qp->build_err = ENOMEM;
		return;
	}
	struct ibv_sge *to = qp->sge + (size_t)slot_of(qp) * qp->cap.max_send_sge;

	w->sge_nr = 0;
	w->total = 0;
	for (size_t i = 0; i < n; i++) {
		if (list[i].length == 0)
			continue; /* mlx5 leaves it out */
		to[w->sge_nr++] = list[i];
		w->total += list[i].length;
	}
}

static void
wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge s = { .addr = addr, .length = length, .lkey = lkey };

	set_sges(of(ex), 1, &s);
}

static void
wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	set_sges(of(ex), n, list);
}

/* The data are the application's again when this returns. */
static void
add_inline(struct sn_qp *qp, const void *data, size_t len)
{
	struct sn_wqe *w = cur(qp);

	if (!w)
		return;
	if (w->total + len > qp->cap.max_inline_data) {
		qp->build_err = ENOMEM;
		return;
	}
	if (len)
		memcpy(qp->inl + (size_t)slot_of(qp) * qp->cap.max_inline_data + w->total, data, len);
	w->is_inline = true;
	w->total += len;
}

static void
wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t len)
{
	add_inline(of(ex), addr, len);
}

static void
wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	for (size_t i = 0; i < n; i++)
		add_inline(of(ex), list[i].addr, list[i].length);
}

static void
wr_set_dc_addr(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t dctn, uint64_t dc_key)
{
	struct sn_qp *qp = of_dv(dv);
	struct sn_wqe *w = cur(qp);

	if (!w)
		return;
	w->to = ((struct sn_ah *)ah)->to;
	w->dctn = dctn;
	w->dc_key = dc_key;
	w->has_dc = true;
}

static void
wr_set_dc_addr_stream(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t dctn, uint64_t dc_key, uint16_t id)
{
	wr_set_dc_addr(dv, ah, dctn, dc_key);
}

/* Only what was asked for at creation is there, as in libmlx5:
 * a call of anything else is the program's bug. */
void
sn_wr_ops(struct sn_qp *qp)
{
	struct ibv_qp_ex *x = &qp->ex;
	uint64_t ops = qp->send_ops;

	if (!qp->has_ex)
		return;
	x->wr_start = wr_start;
	x->wr_complete = wr_complete;
	x->wr_abort = wr_abort;
	x->wr_set_sge = wr_set_sge;
	x->wr_set_sge_list = wr_set_sge_list;
	x->wr_set_inline_data = wr_set_inline_data;
	x->wr_set_inline_data_list = wr_set_inline_data_list;
#define OP(bit, member, fn) ((ops & (bit)) ? (void)(x->member = (fn)) : (void)0)
	OP(IBV_QP_EX_WITH_RDMA_WRITE, wr_rdma_write, wr_rdma_write);
	OP(IBV_QP_EX_WITH_RDMA_READ, wr_rdma_read, wr_rdma_read);
	OP(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, wr_rdma_write_imm, wr_rdma_write_imm);
	OP(IBV_QP_EX_WITH_SEND, wr_send, wr_send);
	OP(IBV_QP_EX_WITH_SEND_WITH_IMM, wr_send_imm, wr_send_imm);
	OP(IBV_QP_EX_WITH_SEND_WITH_INV, wr_send_inv, wr_send_inv);
	OP(IBV_QP_EX_WITH_TSO, wr_send_tso, wr_send_tso);
	OP(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp, wr_cmp_swp);
	OP(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add, wr_fetch_add);
	OP(IBV_QP_EX_WITH_ATOMIC_WRITE, wr_atomic_write, wr_atomic_write);
	OP(IBV_QP_EX_WITH_LOCAL_INV, wr_local_inv, wr_local_inv);
	OP(IBV_QP_EX_WITH_BIND_MW, wr_bind_mw, wr_bind_mw);
#undef OP
	if (qp->type == FAB_QP_DCI) {
		qp->dv.wr_set_dc_addr = wr_set_dc_addr;
		qp->dv.wr_set_dc_addr_stream = wr_set_dc_addr_stream;
	}
}

/* ---- ibv_post_send ---- */

static int
build_one(struct sn_qp *qp, const struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return ENOSYS;
	qp->ex.wr_id = wr->wr_id;
	qp->ex.wr_flags = wr->send_flags;
	if (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM)
		begin(qp, wr->opcode);
	else
		begin_rdma(&qp->ex, wr->opcode, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
	if (cur(qp))
		cur(qp)->imm = wr->imm_data;
	if (wr->num_sge < 0)
		qp->build_err = EINVAL;
	else if (wr->send_flags & IBV_SEND_INLINE)
		for (int i = 0; i < wr->num_sge; i++)
			add_inline(qp, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
	else
		set_sges(qp, (size_t)wr->num_sge, wr->sg_list);

	return qp->build_err;
}

/* Posts up to the first bad one, which is reported.  A DCI has nowhere to put its target here, so it is
 * refused. */
int
sn_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sn_qp *qp = sn_qp(ibqp);
	struct ibv_send_wr *first = wr;
	int r = qp->type == FAB_QP_RC ? 0 : EINVAL, rp;

	pthread_mutex_lock(&qp->post_lock);
	qp->build_nr = 0;
	qp->build_err = 0;
	for (; wr && r == 0; wr = r ? wr : wr->next) {
		uint32_t before = qp->build_nr;

		r = build_one(qp, wr);
		if (r) {
			qp->build_nr = before;
			qp->build_err = 0;
		}
	}
	rp = publish(qp);
	pthread_mutex_unlock(&qp->post_lock);
	if (rp)
		wr = first;
	if (rp || r)
		*bad = wr;

	return rp ? rp : r;
}
