/* SPDX-License-Identifier: Apache-2.0 */
/* Adds completions to completion queues, and removes those of a queue pair. Called by
 * the threads that execute work (run.c), and by those that flush or end receives. */
#include "softnic/softnic.h"

bool
sn_cq_push(struct sn_cq *cq, const struct sn_cqe *e)
{
	bool notify = false, first = false;

	pthread_mutex_lock(&cq->lock);
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	if (cq->overrun || head - atomic_load(&cq->tail) > cq->mask - 1) {
		first = !cq->overrun;
		cq->overrun = true;
		pthread_mutex_unlock(&cq->lock);
		if (first) {
			sn_warn("completion queue of %d entries overrun", cq->ex.cqe);
			sn_async_raise(cq->ctx, IBV_EVENT_CQ_ERR, cq);
		}
		return false;
	}
	cq->ring[head & cq->mask] = *e;
	atomic_store_explicit(&cq->head, head + 1, memory_order_release);
	if (cq->armed == 1 || (cq->armed == 2 && (e->status != IBV_WC_SUCCESS || e->solicited))) {
		cq->armed = 0;
		notify = true;
	}
	if (notify && cq->ex.channel)
		sn_chan_notify((struct sn_chan *)cq->ex.channel, cq);
	pthread_mutex_unlock(&cq->lock);

	return true;
}

/* Takes the entries of one queue pair out, keeping the order of the others. */
void
sn_cq_purge(struct sn_cq *cq, const struct sn_qp *qp)
{
	pthread_mutex_lock(&cq->lock);
	uint32_t tail = atomic_load(&cq->tail), head = atomic_load(&cq->head), to = tail;

	for (uint32_t i = tail; i != head; i++) {
		if (cq->ring[i & cq->mask].qp == qp)
			continue;
		if (to != i)
			cq->ring[to & cq->mask] = cq->ring[i & cq->mask];
		to++;
	}
	atomic_store(&cq->head, to);
	pthread_mutex_unlock(&cq->lock);
}
