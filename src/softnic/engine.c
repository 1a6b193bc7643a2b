/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that execute work. One engine thread per context takes queue pairs from the run queue and from the timer
 * heap (sched.c), one step of one work request at a time (run.c), so that queue pairs interleave. Two other threads may do
 * its work: the posting thread with SOFTNIC_EXEC=inline, and a thread that polls an empty completion queue while work has
 * waited for SOFTNIC_ASSIST_US (on two CPUs such a poller can keep the engine from its CPU for milliseconds). Only the
 * engine thread reads the timer heap.
 */
#include "softnic/engine.h"
#include "softnic/message.h"

#include <signal.h>

/* One step of a pinned queue pair; its pin goes. */
static void
serve(struct sn_qp *qp, bool timer)
{
	pthread_mutex_lock(&qp->lock);
	if (timer)
		sn_engine_unpark(qp); /* not only the flag: it may have been reset and parked again */
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
			sn_heap_remove(ctx, qp);
		else
			sn_runq_remove(ctx, qp);
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
	if (atomic_load_explicit(&ctx->runq_nr, memory_order_relaxed) == 0 || sn_inherited(&ctx->v.context))
		return false;
	pthread_mutex_lock(&ctx->lock);
	qp = ctx->run_first;
	if (!qp || sn_now_ns() - qp->queued_ns < (uint64_t)sn_conf.assist_ns) {
		pthread_mutex_unlock(&ctx->lock);
		return false;
	}
	sn_runq_remove(ctx, qp);
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
