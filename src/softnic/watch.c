/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watcher, one thread for each process. It sleeps on the fabric's event futex. After each event it informs the
 * open contexts that a port changed or that a device is lost, raises the events of queue pairs that softnicctl or other
 * processes request (fab_qp.poke), and lets work requests continue whose fault rule was removed. The thread never
 * ends. Initiators therefore pass its thread id to process_vm_writev(): the main thread of a program may end
 * before the others.
 */
#include "softnic/engine.h"
#include "softnic/rule.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sn_ctx *watched;

/* ---- queue pairs ---- */

/* Ends the waits of queue pairs that are parked because of a rule which was removed. While a queue pair is in the heap, no
 * thread writes its fault. */
static void
release_faults(struct sn_ctx *ctx)
{
	for (;;) {
		struct sn_qp *qp = NULL;

		pthread_mutex_lock(&ctx->lock);
		for (uint32_t i = 0; i < ctx->heap_nr && !qp; i++) {
			qp = ctx->heap[i];
			if (!qp->fault.rule || sn_rule_there(qp->fault.rule))
				qp = NULL;
		}
		if (qp)
			qp->pins++;
		pthread_mutex_unlock(&ctx->lock);
		if (!qp)
			return;
		pthread_mutex_lock(&qp->lock);
		sn_engine_unpark(qp);
		sn_engine_kick(qp);
		pthread_mutex_unlock(&qp->lock);
		sn_engine_unpin(qp);
	}
}

/* Raises the events of the bits of fab_qp.poke. The caller holds qp->lock. When an adapter finds a queue broken, or refuses a
 * packet of RC, there is an event and no completion. */
static void
poked(struct sn_qp *qp, uint32_t bits)
{
	if (qp->type == FAB_QP_DCT || qp->state == IBV_QPS_RESET)
		return;
	if (bits & FAB_POKE_COMM)
		sn_async_raise(qp->ctx, IBV_EVENT_COMM_EST, qp);
	if (bits & (FAB_POKE_FATAL | FAB_POKE_BROKEN)) {
		sn_qp_to_err(qp);
		sn_async_raise(qp->ctx,
			       bits & FAB_POKE_FATAL    ? IBV_EVENT_QP_FATAL
			       : bits & FAB_POKE_ACCESS ? IBV_EVENT_QP_ACCESS_ERR
							: IBV_EVENT_QP_REQ_ERR,
			       qp);
		sn_qp_run(qp, 0);
	}
}

static void
read_pokes(struct sn_ctx *ctx)
{
	for (;;) {
		uint32_t bits = 0;
		struct sn_qp *qp;

		pthread_mutex_lock(&ctx->lock);
		for (qp = ctx->qps; qp; qp = qp->all_next) {
			bits = atomic_load_explicit(&qp->slot->poke, memory_order_relaxed) & FAB_POKE_EVENTS;
			if (bits)
				break;
		}
		if (qp)
			qp->pins++;
		pthread_mutex_unlock(&ctx->lock);
		if (!qp)
			return;
		pthread_mutex_lock(&qp->lock);
		bits &= atomic_load(&qp->slot->poke); /* a reset clears them */
		poked(qp, bits);
		if (bits & FAB_POKE_COMM)
			atomic_fetch_or(&qp->slot->poke, FAB_POKE_TOLD);
		atomic_fetch_and(&qp->slot->poke, ~bits);
		pthread_mutex_unlock(&qp->lock);
		sn_engine_unpin(qp);
	}
}

/* Under ctx->lock. */
static bool
in_use(const struct sn_qp *qp, bool targets_alone)
{
	uint32_t s = atomic_load(&qp->slot->state);

	return s != IBV_QPS_RESET && s != IBV_QPS_ERR && (!targets_alone || qp->type != FAB_QP_DCI);
}

/* Puts the queue pairs of a context into the error state, because its device is lost or reset. Targets can then only be destroyed,
 * also after the return of the device. targets_alone: true: only targets; initiators stay unchanged. */
static void
all_to_err(struct sn_ctx *ctx, bool targets_alone)
{
	for (;;) {
		struct sn_qp *qp;

		pthread_mutex_lock(&ctx->lock);
		for (qp = ctx->qps; qp && !in_use(qp, targets_alone);)
			qp = qp->all_next;
		if (qp)
			qp->pins++;
		pthread_mutex_unlock(&ctx->lock);
		if (!qp)
			return;
		pthread_mutex_lock(&qp->lock);
		if (in_use(qp, targets_alone) && qp->type == FAB_QP_DCT)
			sn_qp_set_state(qp, IBV_QPS_ERR);
		else if (in_use(qp, targets_alone) && targets_alone)
			atomic_store(&qp->slot->state,
				     IBV_QPS_ERR); /* as a target; its own work stops, or runs */
		else if (in_use(qp, targets_alone))
			sn_qp_to_err(qp);
		sn_qp_run(qp, 0);
		pthread_mutex_unlock(&qp->lock);
		sn_engine_unpin(qp);
	}
}

/* ---- devices and ports ---- */

static void
look_at_port(struct sn_ctx *ctx)
{
	uint32_t changes = atomic_load(&sn_port(ctx)->changes);

	/* Each of them, also of those that came while we did not run; every other one is downwards. */
	while (ctx->async.port_changes != changes) {
		bool down = ++ctx->async.port_changes % 2;

		sn_async_raise_port(ctx, down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
	}
}

static void
look_at_news(struct sn_ctx *ctx)
{
	static const enum ibv_event_type type[FAB_NEWS_NR] = { [FAB_NEWS_ACTIVE] = IBV_EVENT_PORT_ACTIVE,
							       [FAB_NEWS_GID] = IBV_EVENT_GID_CHANGE,
							       [FAB_NEWS_PKEY] = IBV_EVENT_PKEY_CHANGE,
							       [FAB_NEWS_LID] = IBV_EVENT_LID_CHANGE };

	for (int i = 0; i < FAB_NEWS_NR; i++) {
		for (uint32_t nr = atomic_load(&sn_port(ctx)->news[i]); ctx->async.news[i] != nr;) {
			ctx->async.news[i]++;
			sn_async_raise_port(ctx, type[i]);
		}
	}
}

static void
look_at_device(struct sn_ctx *ctx)
{
	uint32_t losses = atomic_load(&sn_port(ctx)->losses);

	if (losses == ctx->async.losses)
		return;
	ctx->async.losses = losses;
	all_to_err(ctx, false);
	sn_async_raise_port(ctx, IBV_EVENT_DEVICE_FATAL);
}

/* True: dead, and nothing else will ever be heard of it. */
static bool
look_at_death(struct sn_ctx *ctx)
{
	if (!sn_dead(ctx))
		return false;
	if (!ctx->dead_reported) {
		ctx->dead_reported = true;
		all_to_err(ctx, !sn_dead_how(ctx, FAB_RESET_FLUSH));
		sn_async_raise_port(ctx, IBV_EVENT_DEVICE_FATAL);
	}

	return true;
}

/* ---- the thread ---- */

static void *
watch(void *arg)
{
	struct sn_self self = *(struct sn_self *)arg;
	struct fabric *f = self.fab;

	atomic_store(&self.proc->tid, (uint32_t)syscall(SYS_gettid));
	pthread_setname_np(pthread_self(), "softnic-watch");
	for (;;) {
		uint32_t seq = atomic_load(&f->event_seq);

		pthread_mutex_lock(&watch_lock);
		for (struct sn_ctx *c = watched; c; c = c->next) {
			release_faults(c);
			if (look_at_death(c))
				continue;
			look_at_port(c);
			look_at_news(c);
			look_at_device(c);
			read_pokes(c);
		}
		pthread_mutex_unlock(&watch_lock);
		syscall(SYS_futex, &f->event_seq, FUTEX_WAIT, seq, NULL, NULL, 0);
	}

	return NULL;
}

int
sn_watch_start(void)
{
	pthread_attr_t at;
	sigset_t all, old;
	pthread_t t;
	int r;

	pthread_mutex_init(&watch_lock,
			   NULL); /* also in a forked child, which has the parent's state of it */
	watched = NULL;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&at);
	pthread_attr_setdetachstate(&at, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&t, &at, watch, &sn_self);
	pthread_attr_destroy(&at);
	pthread_sigmask(SIG_SETMASK, &old, NULL);

	return -r;
}

void
sn_watch_add(struct sn_ctx *ctx)
{
	pthread_mutex_lock(&watch_lock);
	ctx->next = watched;
	watched = ctx;
	pthread_mutex_unlock(&watch_lock);
}

void
sn_watch_remove(struct sn_ctx *ctx)
{
	struct sn_ctx **at = &watched;

	pthread_mutex_lock(&watch_lock);
	while (*at && *at != ctx)
		at = &(*at)->next;
	if (*at)
		*at = ctx->next;
	pthread_mutex_unlock(&watch_lock);
}
