/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The execution of the work requests of one queue pair: their steps (send.c, or fault.c for marked ones), the effect of
 * each step's result, retries, completions, and the flush in the error state. Called under qp->lock, by every thread
 * that executes work (engine.c), and by threads that change the state of the queue pair.
 */
#include "softnic/engine.h"
#include "softnic/message.h"

static uint8_t
wc_opcode(uint8_t op)
{
	switch (op) {
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	default:
		return IBV_WC_SEND;
	}
}

/* The work request at next is over. */
static void
finish(struct sn_qp *qp, uint8_t status, uint8_t vendor, uint64_t now_ns)
{
	const struct sn_wqe *w = &qp->sq[qp->next & qp->mask];
	struct sn_cqe e = {
		.wr_id = w->wr_id,
		.qp = qp,
		.sq_upto = qp->next + 1,
		.qpn = qp->qpn,
		.vendor = vendor,
		.byte_len = status == IBV_WC_SUCCESS ? (uint32_t)w->total : 0,
		.status = status,
		.opcode = wc_opcode(w->opcode),
	};

	unsigned cqes = qp->marked ? sn_mark_end(qp, status, vendor) : 1;

	qp->next++;
	qp->off = 0;
	qp->give_up_ns = 0;
	atomic_fetch_add_explicit(&sn_self.proc->stats.ops, 1, memory_order_relaxed);
	if (status != IBV_WC_SUCCESS)
		atomic_fetch_add_explicit(&sn_self.proc->stats.errors, 1, memory_order_relaxed);
	if (!w->signaled && status == IBV_WC_SUCCESS)
		return;
	if (sn_dead(qp->ctx) && !sn_dead_how(qp->ctx, FAB_RESET_FLUSH))
		return; /* nobody tells any more */
	e.ts_ns = now_ns ? now_ns : sn_now_ns();
	while (cqes--) {
		if (!sn_cq_push((struct sn_cq *)qp->ex.qp_base.send_cq, &e) && qp->state != IBV_QPS_ERR) {
			sn_qp_to_err(qp);
			sn_async_raise(qp->ctx, IBV_EVENT_QP_FATAL, qp);
		}
	}
}

static void
flush_one(struct sn_qp *qp)
{
	const struct sn_wqe *w = &qp->sq[qp->next & qp->mask];

	if (qp->send.phase)
		sn_send_cancel(qp);
	/* The first that was not done: the one whose packets were sent last. */
	if (atomic_load_explicit(&sn_self.fab->ghost_ns, memory_order_relaxed) && !qp->haunted &&
	    w->opcode == IBV_WR_RDMA_WRITE && w->total) {
		qp->haunted = true;
		sn_exec_ghost(qp, w);
	}
	if (!qp->marked && sn_active() & FAB_ACTIVE_TRACE)
		sn_mark_begin(qp, w, false);
	finish(qp, IBV_WC_WR_FLUSH_ERR, SN_VE_FLUSH, 0);
}

static void
fail(struct sn_qp *qp, const struct sn_outcome *out)
{
	sn_debug("qp %06x: work request %#llx fails: %s, vendor %#x", qp->qpn,
		 (unsigned long long)qp->sq[qp->next & qp->mask].wr_id, ibv_wc_status_str(out->status),
		 out->vendor);
	if (qp->send.phase)
		sn_send_cancel(qp);
	finish(qp, out->status, out->vendor, 0);
	sn_qp_to_err(qp);
}

static int64_t
retry_ns(const struct sn_qp *qp)
{
	if (sn_conf.retry_ns >= 0)
		return sn_conf.retry_ns;
	if (qp->attr.timeout == 0)
		return INT64_MAX / 2; /* the IB meaning of 0: no time limit */

	return (4096ll << qp->attr.timeout) * (qp->attr.retry_cnt ? qp->attr.retry_cnt : 1);
}

/* Nobody answered: again later, or give up. */
static void
dropped(struct sn_qp *qp, const struct sn_outcome *out)
{
	uint64_t now = sn_now_ns(), all = (uint64_t)retry_ns(qp);
	uint64_t gap = all / (qp->attr.retry_cnt ? qp->attr.retry_cnt : 1);

	if (qp->give_up_ns == 0)
		qp->give_up_ns = now + all;
	if (now >= qp->give_up_ns) {
		fail(qp, out);
		return;
	}
	gap = gap < 1000000 ? 1000000 : gap > 100000000 ? 100000000 : gap;
	if (!sn_engine_park(qp, qp->give_up_ns - now < gap ? qp->give_up_ns : now + gap))
		fail(qp, out);
}

/* There is no receive: again after the receiver's time, or give up. */
static void
not_ready(struct sn_qp *qp, const struct sn_outcome *out)
{
	const uint8_t unlimited = 7;

	if (qp->attr.rnr_retry != unlimited && qp->send.naks++ >= qp->attr.rnr_retry)
		fail(qp, out);
	else if (!sn_engine_park(qp, out->wait_ns))
		fail(qp, out);
}

/* Parks a sender until the receiver answers. The answer ends the wait (mail.c); it can have arrived already, and is therefore looked
 * for under qp->lock once more. */
static void
await_answer(struct sn_qp *qp, const struct sn_outcome *out)
{
	if (!sn_send_answered(qp))
		qp->send.waiting = sn_engine_park(qp, out->wait_ns);
}

static void
after_step(struct sn_qp *qp, enum sn_step r, const struct sn_outcome *out)
{
	if (qp->state == IBV_QPS_RESET)
		return; /* reset while the step ran: its outcome is nobody's any more */
	switch (r) {
	case SN_STEP_MORE:
		qp->off += out->moved;
		if (out->wait_ns && qp->state != IBV_QPS_ERR)
			sn_engine_park(qp, out->wait_ns);
		break;
	case SN_STEP_DONE:
		finish(qp, IBV_WC_SUCCESS, 0, out->now_ns);
		break;
	case SN_STEP_FAIL:
		fail(qp, out);
		break;
	case SN_STEP_WAIT:
		if (qp->state != IBV_QPS_ERR)
			await_answer(qp, out);
		break;
	case SN_STEP_RNR:
		if (qp->state != IBV_QPS_ERR)
			not_ready(qp, out);
		break;
	case SN_STEP_DROP:
		if (qp->state != IBV_QPS_ERR)
			dropped(qp, out);
		break;
	}
}

static struct sn_wqe *
next_wqe(struct sn_qp *qp)
{
	struct sn_wqe *w = &qp->sq[qp->next & qp->mask];

	if (qp->type == FAB_QP_RC) {
		w->dctn = qp->attr.dest_qp_num;
		w->to = sn_dest_of(&qp->attr.ah_attr);
	}

	return w;
}

void
sn_qp_run(struct sn_qp *qp, unsigned steps)
{
	if (qp->busy)
		return; /* its runner looks again before it leaves */
	qp->busy = true;
	for (;;) {
		struct sn_outcome out = { 0 };
		enum sn_step r;

		while (qp->state == IBV_QPS_ERR && qp->next != qp->head)
			flush_one(qp);
		if (!sn_engine_may_run(qp) || steps-- == 0)
			break;
		const struct sn_wqe *w = next_wqe(qp);

		pthread_mutex_unlock(&qp->lock);
		if (__builtin_expect(sn_active() || qp->marked, 0))
			r = sn_marked_step(qp, w, &out);
		else
			r = sn_step(qp, w, &out);
		pthread_mutex_lock(&qp->lock);
		after_step(qp, r, &out);
	}
	qp->busy = false;
	if (qp->state == IBV_QPS_SQD && qp->sqd_notify && !qp->send.phase) {
		qp->sqd_notify = false;
		sn_async_raise(qp->ctx, IBV_EVENT_SQ_DRAINED, qp);
	}
	pthread_cond_broadcast(&qp->quiet);
}
