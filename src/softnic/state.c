/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the state of a queue pair, and their effects on its work and its receives: by ibv_modify_qp() (modify.c), by
 * failures (run.c, rx.c), and by events of its device (watch.c). Called under qp->lock, on any thread.
 */
#include "softnic/engine.h"
#include "softnic/message.h"

void
sn_qp_set_state(struct sn_qp *qp, enum ibv_qp_state s)
{
	qp->state = s;
	atomic_store(&qp->slot->state, s);
}

void
sn_qp_to_err(struct sn_qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	sn_qp_set_state(qp, IBV_QPS_ERR);
	sn_engine_unpark(qp);
	sn_rq_flush(qp);
	if (qp->ex.qp_base.srq)
		sn_async_raise(qp->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, qp);
}

void
sn_qp_reset(struct sn_qp *qp)
{
	struct ibv_qp *b = &qp->ex.qp_base;

	sn_qp_set_state(qp, IBV_QPS_RESET);
	sn_engine_unpark(qp);
	while (qp->busy)
		pthread_cond_wait(&qp->quiet, &qp->lock);
	sn_send_cancel(qp);
	sn_mark_drop(qp);
	if (b->send_cq)
		sn_cq_purge((struct sn_cq *)b->send_cq, qp);
	if (b->recv_cq && b->recv_cq != b->send_cq)
		sn_cq_purge((struct sn_cq *)b->recv_cq, qp);
	qp->next = qp->head;
	atomic_store(&qp->freed, qp->head);
	qp->off = 0;
	qp->haunted = false;
	qp->give_up_ns = 0;
	qp->attr = (struct ibv_qp_attr){ 0 };
	atomic_store(&qp->slot->access, 0);
	atomic_store(&qp->slot->dest_qpn, 0);
	atomic_store(&qp->slot->poke, 0);
	sn_rq_drop(qp);
}
