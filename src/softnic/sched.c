/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues of the engine: the run queue of a context, and its timer heap, in which queue pairs are parked. A queue pair
 * is parked if no answer to its packets arrives, and tried again until its retries are used up; or if a fault rule
 * delays it.
 *
 *     post -> run queue -> busy (a step, no lock) -> run queue | completed | parked -> timer -> run queue
 *
 * A queue pair that the engine uses is pinned; its destruction waits for the pins.
 */
#include "softnic/engine.h"

/* ---- timer heap, under ctx->lock ---- */

static void
heap_put(struct sn_ctx *ctx, uint32_t at, struct sn_qp *qp)
{
	ctx->heap[at] = qp;
	qp->heap_at = (int32_t)at;
}

static void
heap_up(struct sn_ctx *ctx, uint32_t at)
{
	struct sn_qp *qp = ctx->heap[at];

	while (at > 0 && ctx->heap[(at - 1) / 2]->park_until_ns > qp->park_until_ns) {
		heap_put(ctx, at, ctx->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_put(ctx, at, qp);
}

static void
heap_down(struct sn_ctx *ctx, uint32_t at)
{
	struct sn_qp *qp = ctx->heap[at];

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < ctx->heap_nr &&
		    ctx->heap[child + 1]->park_until_ns < ctx->heap[child]->park_until_ns)
			child++;
		if (child >= ctx->heap_nr || ctx->heap[child]->park_until_ns >= qp->park_until_ns)
			break;
		heap_put(ctx, at, ctx->heap[child]);
		at = child;
	}
	heap_put(ctx, at, qp);
}

static bool
heap_add(struct sn_ctx *ctx, struct sn_qp *qp)
{
	if (ctx->heap_nr == ctx->heap_max) {
		uint32_t max = ctx->heap_max ? 2 * ctx->heap_max : 64;
		struct sn_qp **h = realloc(ctx->heap, max * sizeof(struct sn_qp *));

		if (!h)
			return false;
		ctx->heap = h;
		ctx->heap_max = max;
	}
	ctx->heap[ctx->heap_nr++] = qp;
	heap_up(ctx, ctx->heap_nr - 1);

	return true;
}

void
sn_heap_remove(struct sn_ctx *ctx, struct sn_qp *qp)
{
	uint32_t at = (uint32_t)qp->heap_at;
	struct sn_qp *last = ctx->heap[--ctx->heap_nr];

	qp->heap_at = -1;
	if (last == qp)
		return;
	heap_put(ctx, at, last);
	heap_up(ctx, at);
	heap_down(ctx, (uint32_t)last->heap_at);
}

/* ---- run queue, under ctx->lock ---- */

static void
runq_push(struct sn_ctx *ctx, struct sn_qp *qp)
{
	qp->queued = true;
	qp->queued_ns = sn_now_ns();
	qp->run_next = NULL;
	if (ctx->run_last)
		ctx->run_last->run_next = qp;
	else
		ctx->run_first = qp;
	ctx->run_last = qp;
	atomic_fetch_add_explicit(&ctx->runq_nr, 1, memory_order_relaxed);
	if (ctx->idle)
		pthread_cond_signal(&ctx->wake);
}

void
sn_runq_remove(struct sn_ctx *ctx, struct sn_qp *qp)
{
	struct sn_qp **at = &ctx->run_first, *before = NULL;

	while (*at != qp) {
		before = *at;
		at = &before->run_next;
	}
	*at = qp->run_next;
	if (ctx->run_last == qp)
		ctx->run_last = before;
	qp->queued = false;
	atomic_fetch_sub_explicit(&ctx->runq_nr, 1, memory_order_relaxed);
}

/* ---- one queue pair, under qp->lock ---- */

bool
sn_engine_may_run(const struct sn_qp *qp)
{
	if (qp->next == qp->head || qp->parked)
		return false;
	if (sn_dead(qp->ctx) && qp->state != IBV_QPS_ERR && !sn_dead_how(qp->ctx, FAB_RESET_RUNS))
		return false;
	/* In SQD what has begun is finished. */
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_ERR ||
	       (qp->state == IBV_QPS_SQD && (qp->off > 0 || qp->send.phase));
}

bool
sn_engine_park(struct sn_qp *qp, uint64_t until_ns)
{
	struct sn_ctx *ctx = qp->ctx;

	qp->park_until_ns = until_ns;
	pthread_mutex_lock(&ctx->lock);
	qp->parked = heap_add(ctx, qp);
	if (ctx->idle)
		pthread_cond_signal(&ctx->wake);
	pthread_mutex_unlock(&ctx->lock);

	return qp->parked;
}

void
sn_engine_unpark(struct sn_qp *qp)
{
	if (!qp->parked)
		return;
	qp->parked = false;
	qp->send.waiting = false;
	pthread_mutex_lock(&qp->ctx->lock);
	if (qp->heap_at >= 0)
		sn_heap_remove(qp->ctx, qp);
	pthread_mutex_unlock(&qp->ctx->lock);
}

void
sn_engine_kick(struct sn_qp *qp)
{
	if (qp->busy || !sn_engine_may_run(qp))
		return;
	pthread_mutex_lock(&qp->ctx->lock);
	if (!qp->queued)
		runq_push(qp->ctx, qp);
	pthread_mutex_unlock(&qp->ctx->lock);
}

/* ---- pins ---- */

void
sn_engine_unpin(struct sn_qp *qp)
{
	struct sn_ctx *ctx = qp->ctx;

	pthread_mutex_lock(&ctx->lock);
	if (--qp->pins == 0)
		pthread_cond_broadcast(&ctx->unpin);
	pthread_mutex_unlock(&ctx->lock);
}

/* The queue pair is in RESET, not busy and not parked. */
void
sn_engine_forget(struct sn_qp *qp)
{
	struct sn_ctx *ctx = qp->ctx;

	pthread_mutex_lock(&ctx->lock);
	if (qp->queued)
		sn_runq_remove(ctx, qp);
	if (qp->heap_at >= 0)
		sn_heap_remove(ctx, qp);
	*qp->all_at = qp->all_next;
	if (qp->all_next)
		qp->all_next->all_at = qp->all_at;
	while (qp->pins)
		pthread_cond_wait(&ctx->unpin, &ctx->lock);
	pthread_mutex_unlock(&ctx->lock);
}
