/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_ep.h. */
#include "fake_ep.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fake_cq {
	struct rdma_cq base;
	unsigned context;
	int depth;
};

/* An endpoint. */
struct end {
	struct rdma_ep base;
	unsigned context;
	bool gone, connected;
	enum { QP_RTS, QP_ERR } state;
	int depth;
};

struct fake_ep fake_ep;
static char the_target;

static struct end *
end_of(struct rdma_ep *ep)
{
	return container_of(ep, struct end, base);
}

static struct fake_cq *
cq_of(const struct rdma_cq *cq)
{
	return container_of(cq, struct fake_cq, base);
}

/* ---- the rail ---- */

void
fake_ep_set_context(unsigned context, unsigned closed)
{
	/* Of a context that is given up nobody hears any more; its work requests stay the hardware's. */
	for (int i = 0; !context && i < FAKE_WRS_MAX; i++)
		fake_ep.wr[i].lost = fake_ep.wr[i].used;
	if (closed > fake_ep.closed)
		check(fake_ep.eps == 0 && fake_ep.cqs == 0);
	fake_ep.context = context;
	fake_ep.closed = closed;
	atomic_store(&fake_ep.dev.serving, context);
	atomic_store(&fake_ep.dev.closed, closed);
	watches_notify(&fake_ep.rd);
}

void
fake_ep_set_state(enum rail_state state, bool new_generation)
{
	/* A device that becomes fatal counts its generation up; here that may be left out, or come alone. */
	atomic_fetch_add(&fake_ep.rail.generation, (unsigned)new_generation - (state == RAIL_LOST));
	fake_ep.rail.port_up = state != RAIL_DOWN;
	device_set_fatal(&fake_ep.dev, state == RAIL_LOST);
	watches_notify(&fake_ep.rd);
}

int
fake_ep_stuck(void)
{
	return fake_ep.rail.stuck;
}

/* ---- targets ---- */

static int
target_get(struct rdma_rail *rail, const struct token *tok, const struct rail_route *route,
	   struct rdma_target_wait *w, struct rdma_target *ret_target)
{
	check(route->ops == &fake_ep.ops);
	w->target = (struct rdma_target){ .ops = &fake_ep.ops, .at = &the_target, .nr = tok->dctn };
	if (fake_ep.target_result > 0) {
		fake_ep.targets++;
		*ret_target = w->target;
	} else if (fake_ep.target_result == 0) {
		list_push_tail(&fake_ep.target_waits, &w->link);
	}
	return fake_ep.target_result;
}

int
fake_ep_target_answer(int result)
{
	int n = 0;

	for (struct list *l; (l = list_pop(&fake_ep.target_waits)); n++) {
		struct rdma_target_wait *w = container_of(l, struct rdma_target_wait, link);

		w->result = result;
		fake_ep.targets += result == 0;
		w->done(w);
	}
	return n;
}

static bool
target_leave(struct rdma_rail *rail, struct rdma_target_wait *w)
{
	bool waits = list_linked(&w->link);

	if (waits)
		list_del(&w->link);
	return waits;
}

static void
target_put(struct rdma_rail *rail, const struct rdma_target *target)
{
	check(target->at == &the_target);
	check(fake_ep.targets-- > 0);
}

static void
target_forget(struct rdma_rail *rail, const struct rdma_target *target)
{
	check(target->at == &the_target);
	fake_ep.forgotten++;
}

static bool
target_forgotten(const struct rdma_target *target)
{
	return false;
}

/* ---- completion queues ---- */

static const struct rdma_cq_ops cq_ops;

static int
cq_new(struct rdma_rail *rail, int depth, int core, struct rdma_cq **ret_cq)
{
	struct fake_cq *cq;

	fake_ep.cq_tries++;
	if (fake_ep.cq_result)
		return fake_ep.cq_result;
	if (!fake_ep.context)
		return -ENODEV;
	cq = calloc(1, sizeof *cq);
	check(cq);
	cq->base = (struct rdma_cq){ .ops = &cq_ops, .rail = rail };
	cq->depth = fake_ep.cq_depth = depth;
	cq->context = fake_ep.context;
	fake_ep.cqs++;
	*ret_cq = &cq->base;
	return 0;
}

static void
cq_free(struct rdma_cq *cq)
{
	check(fake_ep.eps == 0);
	fake_ep.cqs--;
	fake_ep.cqe_nr = 0;
	free(cq_of(cq));
}

static int
cq_fd(const struct rdma_cq *cq)
{
	return 99 + (int)cq_of(cq)->context;
}

static int
cq_poll(struct rdma_cq *cq, struct rdma_completion *ret_wc, int max)
{
	int n = fake_ep.cqe_nr < max ? fake_ep.cqe_nr : max;

	fake_ep.polls++;
	check(fake_ep.cqe_nr <= cq_of(cq)->depth);
	memcpy(ret_wc, fake_ep.cqe, (size_t)n * sizeof *ret_wc);
	memmove(fake_ep.cqe, fake_ep.cqe + n, (size_t)(fake_ep.cqe_nr - n) * sizeof *ret_wc);
	fake_ep.cqe_nr -= n;
	return n;
}

static unsigned
cq_context(const struct rdma_cq *cq)
{
	return cq_of(cq)->context;
}

static void
cq_arm(struct rdma_cq *cq)
{
	fake_ep.armed++;
}

static void
cq_event(struct rdma_cq *cq)
{
}

static const struct rdma_cq_ops cq_ops = {
	.cq_new = cq_new,
	.cq_free = cq_free,
	.context = cq_context,
	.fd = cq_fd,
	.poll = cq_poll,
	.arm = cq_arm,
	.event = cq_event,
};

void
fake_ep_stray(uint64_t wr_id, enum rdma_status status)
{
	check(fake_ep.cqe_nr < FAKE_WRS_MAX);
	fake_ep.cqe[fake_ep.cqe_nr++] = (struct rdma_completion){
		.wr_id = wr_id,
		.status = status,
		.wc_status = status == WCS_SUCCESS ? 0 : 100 + (int)status, /* nothing that verbs say */
		.vendor_err = status == WCS_SUCCESS ? 0 : 200 + (uint32_t)status,
	};
}

/* ---- endpoints ---- */

static void
limits(const struct rdma_rail *rail, int want, struct rdma_ep_limits *ret_limits)
{
	*ret_limits = fake_ep.limits;
	if (!ret_limits->send_depth)
		ret_limits->send_depth = want;
}

static int
ep_new(struct rdma_rail *rail, struct rdma_cq *cq, int send_depth, struct rdma_ep **ret_ep)
{
	struct end *e;

	if (fake_ep.new_result)
		return fake_ep.new_result;
	if (cq_of(cq)->context != fake_ep.context)
		return -ENODEV;
	e = calloc(1, sizeof *e);
	check(e);
	e->base = (struct rdma_ep){ .ops = &fake_ep.ops, .rail = rail, .path = rdma_rail_path(rail) };
	e->depth = send_depth;
	e->context = cq_of(cq)->context;
	fake_ep.eps++;
	fake_ep.created++;
	*ret_ep = &e->base;
	return 0;
}

static int
ep_connect(struct rdma_ep *ep, const struct rdma_target *target)
{
	struct end *e = end_of(ep);

	check(target->at == &the_target);
	check(fake_ep.targets > 0);
	check(!e->connected); /* only what is new, or was reset */
	e->connected = true;
	fake_ep.connects++;
	return e->context != fake_ep.context ? -EIO : fake_ep.connect_result;
}

/* The oldest work request, of ep or of anybody; lost ones too when asked. */
static struct fake_wr *
oldest(const struct rdma_ep *ep, uint64_t from, bool lost_too)
{
	struct fake_wr *best = NULL;

	for (int i = 0; i < FAKE_WRS_MAX; i++) {
		struct fake_wr *w = &fake_ep.wr[i];

		if (w->used && w->order >= from && (!ep || w->ep == ep) && (lost_too || !w->lost) &&
		    (!best || w->order < best->order))
			best = w;
	}
	return best;
}

static int
ep_error(struct rdma_ep *ep)
{
	struct fake_wr *w;

	fake_ep.errors++;
	if (end_of(ep)->context != fake_ep.context)
		return -EIO;
	if (fake_ep.error_result)
		return fake_ep.error_result;
	end_of(ep)->state = QP_ERR;
	while (!fake_ep.no_flush && (w = oldest(ep, 0, false)))
		fake_ep_complete(w, WCS_FLUSHED);
	return 0;
}

static int
ep_reset(struct rdma_ep *ep)
{
	struct end *e = end_of(ep);

	if (e->context != fake_ep.context)
		return -EIO;
	if (fake_ep.reset_result)
		return fake_ep.reset_result;
	check(!oldest(ep, 0, true)); /* nothing may be outstanding */
	e->state = QP_RTS;
	e->connected = false;
	e->base.path = rdma_rail_path(ep->rail);
	fake_ep.resets++;
	return 0;
}

static int
ep_free(struct rdma_ep *ep, bool idle)
{
	struct end *e = end_of(ep);
	struct fake_wr *w;
	int n = 0;

	if (!e->gone && fake_ep.free_result && e->context == fake_ep.context)
		return fake_ep.free_result;
	if (e->context != fake_ep.context && !idle && fake_ep.closed < e->context) {
		fake_ep.eps -= !e->gone;
		e->gone = true;
		return -EINPROGRESS;
	}
	while ((w = oldest(ep, 0, true)))
		w->used = false;
	/* The device's library cleans the queue of this pair's completions; they are told by their number. */
	for (int i = 0; i < fake_ep.cqe_nr; i++)
		fake_ep.cqe[n++] = fake_ep.cqe[i];
	fake_ep.cqe_nr = n;
	fake_ep.eps -= !e->gone;
	fake_ep.destroyed++;
	free(e);
	return 0;
}

static int
ep_post(struct rdma_ep *ep, const struct rdma_wr *wr)
{
	struct end *e = end_of(ep);
	int n = 0;

	if (fake_ep.post_result)
		return fake_ep.post_result;
	check(wr->target->at == &the_target);
	check(e->connected == (fake_ep.ops.ep_connect != NULL));
	check(wr->sge_nr > 0 && wr->sge_nr <= RDMA_SGE_MAX);
	for (int i = 0; i < FAKE_WRS_MAX; i++)
		n += fake_ep.wr[i].used && fake_ep.wr[i].ep == ep;
	check(n < e->depth);
	for (int i = 0; i < FAKE_WRS_MAX; i++) {
		struct fake_wr *w = &fake_ep.wr[i];

		if (w->used)
			continue;
		*w = (struct fake_wr){ .wr = *wr, .ep = ep, .order = fake_ep.order++, .used = true };
		memcpy(w->sge, wr->sge, (size_t)wr->sge_nr * sizeof *w->sge);
		w->wr.sge = w->sge;
		w->target = *wr->target;
		w->wr.target = &w->target;
		fake_ep.posts++;
		*(wr->is_write ? &fake_ep.writes : &fake_ep.reads) += 1;
		if (e->state == QP_ERR &&
		    !fake_ep.no_flush) /* in error already, which the core has not seen yet */
			fake_ep_complete(w, WCS_FLUSHED);
		return 0;
	}
	check(!"room for a work request");
	return -ENOMEM;
}

int
fake_ep_wr_nr(void)
{
	int n = 0;

	for (int i = 0; i < FAKE_WRS_MAX; i++)
		n += fake_ep.wr[i].used && !fake_ep.wr[i].lost;
	return n;
}

struct fake_wr *
fake_ep_wr(int i)
{
	struct fake_wr *w = oldest(NULL, 0, false);

	while (w && i-- > 0)
		w = oldest(NULL, w->order + 1, false);
	return w;
}

void
fake_ep_complete(struct fake_wr *w, enum rdma_status status)
{
	check(w->used);
	w->used = false;
	fake_ep_stray(w->wr.wr_id, status);
	if (status != WCS_SUCCESS && status != WCS_FLUSHED) {
		struct rdma_ep *ep = w->ep;

		end_of(ep)->state = QP_ERR; /* and everything behind it flushes */
		while (!fake_ep.no_flush && (w = oldest(ep, 0, false)))
			fake_ep_complete(w, WCS_FLUSHED);
	}
}

void
fake_ep_complete_all(void)
{
	for (struct fake_wr *w; (w = oldest(NULL, 0, false));)
		fake_ep_complete(w, WCS_SUCCESS);
}

bool
fake_ep_holds(const void *mem)
{
	for (int i = 0; i < FAKE_WRS_MAX; i++) {
		const struct fake_wr *w = &fake_ep.wr[i];

		for (int k = 0; w->used && k < w->wr.sge_nr; k++) {
			const char *from = w->sge[k].mem;

			if ((const char *)mem >= from && (const char *)mem < from + w->sge[k].len)
				return true;
		}
	}
	return false;
}

/* ---- the helper ---- */

int
fake_ep_run_jobs(int max)
{
	int n = 0;

	for (struct list *l; (!max || n < max) && (l = list_pop(&fake_ep.rail.recovery.jobs)); n++) {
		struct rdma_job *job = container_of(l, struct rdma_job, link);

		job->run(job);
	}
	return n;
}

int
fake_ep_job_nr(void)
{
	int n = 0;

	list_for_each(l, &fake_ep.rail.recovery.jobs) n++;
	return n;
}

/* ---- the world ---- */

void
fake_ep_connecting(void)
{
	fake_ep.ops.ep_connect = ep_connect;
}

void
fake_ep_init(void)
{
	struct rdma_rail *rail = &fake_ep.rail;
	struct rdma *rd = &fake_ep.rd;

	memset(&fake_ep, 0, sizeof fake_ep);
	fake_ep.ops = (struct rdma_ep_ops){
		.name = "fake",
		.families = 1u << TOKEN_DC,
		.cq = &cq_ops,
		.limits = limits,
		.target_get = target_get,
		.target_leave = target_leave,
		.target_put = target_put,
		.target_forget = target_forget,
		.target_forgotten = target_forgotten,
		.ep_new = ep_new,
		.ep_post = ep_post,
		.ep_error = ep_error,
		.ep_reset = ep_reset,
		.ep_free = ep_free,
	};
	fake_ep.context = 1;
	fake_ep.target_result = 1;
	fake_ep.limits.read_depth = 16;
	fake_ep.limits.max_sge = 1;
	fake_ep.stats = &rail->stats;
	list_init(&fake_ep.target_waits);

	pthread_rwlock_init(&rd->table_lock, NULL);
	pthread_mutex_init(&rd->state_lock, NULL);
	pthread_mutex_init(&rd->region_lock, NULL);
	list_init(&rd->watches);
	rd->async.stop_fd = rd->async.wake_fd = -1;
	rd->dev[0] = &fake_ep.dev;
	rd->dev_nr = 1;
	rd->rail[0] = rail;
	rd->rail_nr = 1;

	fake_ep.dev.rd = rd;
	snprintf(fake_ep.dev.name, sizeof fake_ep.dev.name, "fake");
	fake_ep.dev.transport[0] = &fake_ep.ops;
	fake_ep.dev.transport_nr = 1;
	atomic_init(&fake_ep.dev.serving, 1);

	rail->rd = rd;
	rail->dev = &fake_ep.dev;
	rail->port = 1;
	rail->is_ethernet = rail->view.is_ethernet = true;
	rail->port_up = true;
	atomic_init(&rail->state, RAIL_UP);
	rail->view.port = 1;
	rail->view.gid_nr = 1;
	rail->view.gid[0] = (struct rail_gid){ .raw = { 0xfd, [15] = 1 }, .prefix = 64 };
	pthread_mutex_init(&rail->recovery.lock, NULL);
	pthread_cond_init(&rail->recovery.more, NULL);
	list_init(&rail->recovery.jobs);
}
