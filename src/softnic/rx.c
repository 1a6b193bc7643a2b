/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of senders for the receives of a queue pair. Senders take receives and end them through the inbox of this
 * process (mail.c), one message of a sender at a time:
 *
 *     queued -> taken (struct sn_rx): the sender copies -> completed, or flushed with its queue pair
 */
#include "softnic/softnic.h"

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
