/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs work, and when.  One engine thread per context takes queue pairs from a run queue, one step of one
 * work request at a time, so that queue pairs interleave.  Two others may do its work: the posting thread
 * with SOFTNIC_EXEC=inline, and a thread that polls an empty completion queue while work has waited for
 * SOFTNIC_ASSIST_US (on two CPUs the engine may be scheduled out for milliseconds behind such a poller).  The
 * engine alone runs the timer heap: a queue pair whose packets nobody answers is parked there and tried again
 * until its retries are used up, and one that a fault rule delays waits there, while the others go on.
 *
 *     post -> run queue -> busy (a step, no lock) -> run queue | completed | parked -> timer -> run queue
 *
 * A queue pair in the engine's hands is pinned; destroying it waits for the pins.
 */
#include "softnic/message.h"
#include "softnic/softnic.h"

#include <signal.h>

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

static void
heap_remove(struct sn_ctx *ctx, struct sn_qp *qp)
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

static void
runq_remove(struct sn_ctx *ctx, struct sn_qp *qp)
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

/* Nothing of this queue pair runs before then.  False: no memory. */
static bool
park(struct sn_qp *qp, uint64_t until_ns)
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
	if (!park(qp, qp->give_up_ns - now < gap ? qp->give_up_ns : now + gap))
		fail(qp, out);
}

static bool
may_run(const struct sn_qp *qp)
{
	if (qp->next == qp->head || qp->parked)
		return false;
	if (sn_dead(qp->ctx) && qp->state != IBV_QPS_ERR && !sn_dead_how(qp->ctx, FAB_RESET_RUNS))
		return false;
	/* In SQD what has begun is finished. */
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_ERR ||
	       (qp->state == IBV_QPS_SQD && (qp->off > 0 || qp->send.phase));
}

/* There is no receive: again after the receiver's time, or give up. */
static void
not_ready(struct sn_qp *qp, const struct sn_outcome *out)
{
	const uint8_t unlimited = 7;

	if (qp->attr.rnr_retry != unlimited && qp->send.naks++ >= qp->attr.rnr_retry)
		fail(qp, out);
	else if (!park(qp, out->wait_ns))
		fail(qp, out);
}

/* The receiver has the message: its answer ends the wait (mail.c), which is therefore looked for under qp->lock once more. */
static void
await_answer(struct sn_qp *qp, const struct sn_outcome *out)
{
	sn_mail_start();
	if (!sn_send_answered(qp))
		qp->send.waiting = park(qp, out->wait_ns);
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
			park(qp, out->wait_ns);
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
		if (!may_run(qp) || steps-- == 0)
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

void
sn_engine_kick(struct sn_qp *qp)
{
	if (qp->busy || !may_run(qp))
		return;
	pthread_mutex_lock(&qp->ctx->lock);
	if (!qp->queued)
		runq_push(qp->ctx, qp);
	pthread_mutex_unlock(&qp->ctx->lock);
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
		heap_remove(qp->ctx, qp);
	pthread_mutex_unlock(&qp->ctx->lock);
}

/* ---- the engine thread ---- */

void
sn_engine_unpin(struct sn_qp *qp)
{
	struct sn_ctx *ctx = qp->ctx;

	pthread_mutex_lock(&ctx->lock);
	if (--qp->pins == 0)
		pthread_cond_broadcast(&ctx->unpin);
	pthread_mutex_unlock(&ctx->lock);
}

/* One step of a pinned queue pair; its pin goes. */
static void
serve(struct sn_qp *qp, bool timer)
{
	pthread_mutex_lock(&qp->lock);
	if (timer)
		sn_engine_unpark(
			qp); /* it may have been reset and parked anew meanwhile, hence not just the flag */
	sn_qp_run(qp, 1);
	sn_engine_kick(qp);
	pthread_mutex_unlock(&qp->lock);
	sn_engine_unpin(qp);
}

/* Under ctx->lock, which it drops while waiting. */
static void
sleep_a_while(struct sn_ctx *ctx)
{
	ctx->idle = true;
	if (ctx->heap_nr) {
		uint64_t t = ctx->heap[0]->park_until_ns;
		struct timespec ts = { .tv_sec = (time_t)(t / 1000000000u),
				       .tv_nsec = (long)(t % 1000000000u) };

		pthread_cond_timedwait(&ctx->wake, &ctx->lock, &ts);
	} else {
		pthread_cond_wait(&ctx->wake, &ctx->lock);
	}
	ctx->idle = false;
}

static void *
engine(void *arg)
{
	struct sn_ctx *ctx = arg;

	pthread_setname_np(pthread_self(), "softnic-engine");
	pthread_mutex_lock(&ctx->lock);
	while (!ctx->stop) {
		bool timer = ctx->heap_nr && ctx->heap[0]->park_until_ns <= sn_now_ns();
		struct sn_qp *qp = timer ? ctx->heap[0] : ctx->run_first;

		if (!qp) {
			sleep_a_while(ctx);
			continue;
		}
		if (timer)
			heap_remove(ctx, qp);
		else
			runq_remove(ctx, qp);
		qp->pins++;
		pthread_mutex_unlock(&ctx->lock);
		serve(qp, timer);
		pthread_mutex_lock(&ctx->lock);
	}
	pthread_mutex_unlock(&ctx->lock);

	return NULL;
}

bool
sn_engine_assist(struct sn_ctx *ctx)
{
	struct sn_qp *qp;

	if (sn_conf.assist_ns < 0)
		return false;
	if (sn_mail_assist())
		return true;
	if (atomic_load_explicit(&ctx->runq_nr, memory_order_relaxed) == 0)
		return false;
	pthread_mutex_lock(&ctx->lock);
	qp = ctx->run_first;
	if (!qp || sn_now_ns() - qp->queued_ns < (uint64_t)sn_conf.assist_ns) {
		pthread_mutex_unlock(&ctx->lock);
		return false;
	}
	runq_remove(ctx, qp);
	qp->pins++;
	pthread_mutex_unlock(&ctx->lock);
	serve(qp, false);

	return true;
}

int
sn_engine_start(struct sn_ctx *ctx)
{
	sigset_t all, old;
	int r = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&ctx->lock);
	if (!ctx->thread_on) {
		r = pthread_create(&ctx->thread, NULL, engine, ctx);
		ctx->thread_on = r == 0;
	}
	pthread_mutex_unlock(&ctx->lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);

	return -r;
}

void
sn_engine_stop(struct sn_ctx *ctx)
{
	pthread_mutex_lock(&ctx->lock);
	ctx->stop = true;
	pthread_cond_signal(&ctx->wake);
	pthread_mutex_unlock(&ctx->lock);
	if (ctx->thread_on)
		pthread_join(ctx->thread, NULL);
}

/* The queue pair is in RESET, not busy and not parked. */
void
sn_engine_forget(struct sn_qp *qp)
{
	struct sn_ctx *ctx = qp->ctx;

	pthread_mutex_lock(&ctx->lock);
	if (qp->queued)
		runq_remove(ctx, qp);
	if (qp->heap_at >= 0)
		heap_remove(ctx, qp);
	*qp->all_at = qp->all_next;
	if (qp->all_next)
		qp->all_next->all_at = qp->all_at;
	while (qp->pins)
		pthread_cond_wait(&ctx->unpin, &ctx->lock);
	pthread_mutex_unlock(&ctx->lock);
}
