/* SPDX-License-Identifier: Apache-2.0 */
/* Receive queues, of queue pairs and of shared receive queues: their entries, and the flush of receives. */
#include "softnic/softnic.h"

int
sn_rq_init(struct sn_rq *rq, uint32_t depth, uint32_t max_sge)
{
	pthread_mutex_init(&rq->lock, NULL);
	rq->depth = depth;
	rq->max_sge = max_sge;
	if (depth == 0)
		return 0;
	rq->wqe = calloc(depth, sizeof(*rq->wqe));
	rq->sge = calloc((size_t)depth * max_sge, sizeof(*rq->sge));

	return rq->wqe && rq->sge ? 0 : ENOMEM;
}

void
sn_rq_fini(struct sn_rq *rq)
{
	pthread_mutex_destroy(&rq->lock);
	free(rq->wqe);
	free(rq->sge);
}

int
sn_rq_push(struct sn_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int r = 0;

	pthread_mutex_lock(&rq->lock);
	for (; wr && r == 0; wr = r ? wr : wr->next) {
		uint32_t at = rq->depth ? rq->head % rq->depth : 0;

		if (rq->head - rq->tail >= rq->depth) {
			r = ENOMEM;
		} else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge) {
			r = EINVAL;
		} else {
			rq->wqe[at] = (struct sn_rwqe){ .wr_id = wr->wr_id, .sge_nr = (uint32_t)wr->num_sge };
			for (int i = 0; i < wr->num_sge; i++)
				rq->sge[(size_t)at * rq->max_sge + (size_t)i] = wr->sg_list[i];
			rq->head++;
		}
	}
	pthread_mutex_unlock(&rq->lock);
	if (r)
		*bad = wr;

	return r;
}

static void
flush_one(struct sn_qp *qp, uint64_t wr_id)
{
	struct sn_cqe e = { .wr_id = wr_id,
			    .ts_ns = sn_now_ns(),
			    .qp = qp,
			    .qpn = qp->qpn,
			    .vendor = SN_VE_FLUSH,
			    .status = IBV_WC_WR_FLUSH_ERR,
			    .opcode = IBV_WC_RECV,
			    .is_recv = true };

	sn_cq_push((struct sn_cq *)qp->ex.qp_base.recv_cq, &e);
}

/* Removes the oldest receive that a sender has taken, after the last byte that the sender copies into it. */
static struct sn_rx *
remove_taken(struct sn_qp *qp)
{
	struct sn_rx *rx = qp->rx;

	if (rx) {
		sn_qp_quiesce(qp->qpn);
		qp->rx = rx->next;
	}

	return rx;
}

void
sn_rq_flush(struct sn_qp *qp)
{
	struct sn_rq *rq = &qp->rq;
	struct sn_rx *rx;

	while ((rx = remove_taken(qp)) != NULL) {
		flush_one(qp, rx->wr_id);
		free(rx);
	}
	pthread_mutex_lock(&rq->lock);
	while (rq->tail != rq->head)
		flush_one(qp, rq->wqe[rq->tail++ % rq->depth].wr_id);
	pthread_mutex_unlock(&rq->lock);
}

void
sn_rq_drop(struct sn_qp *qp)
{
	struct sn_rx *rx;

	while ((rx = remove_taken(qp)) != NULL)
		free(rx);
	pthread_mutex_lock(&qp->rq.lock);
	qp->rq.tail = qp->rq.head;
	pthread_mutex_unlock(&qp->rq.lock);
}
