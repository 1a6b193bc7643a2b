/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rail whose device is reopened: the completion queue and the endpoints of the old context are given
 * back, and those of the new one made.  The machine is drawn in chan_int.h, the order of the whole in
 * rdma/ep.h.  On the core; making and freeing a queue may block and runs on the rail's recovery helper.
 *
 * A work request whose queue pair could not be destroyed for certain stays outstanding beyond all this,
 * without a queue, until its context was closed: only then its request may be answered.
 */
#define LOG_MODULE "chan"
#include "chan/chan_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#define AGAIN_NS (1 * NS_PER_S)

static void on_cq_back(struct msg *m);

int
rail_cq_depth(const struct chan_rail *cr)
{
	return cr->cq_depth ? cr->cq_depth : cr->ep_nr * cr->limits.send_depth;
}

/* ---- the job, on the helper ---- */

static void
cq_job_run(struct rdma_job *job)
{
	struct chan_rail *cr = container_of(job, struct chan_rail, cq_job);

	if (cr->cq_state == CQ_FREEING) {
		rdma_cq_free(cr->cq);
		cr->cq = NULL;
		cr->cq_result = 0;
	} else {
		cr->cq_result = rdma_cq_new(cr->ops, cr->rail, rail_cq_depth(cr), cr->ch->core, &cr->cq);
	}
	chan_answer(cr->ch, &cr->cq_back, on_cq_back);
}

static void
cq_job_start(struct chan_rail *cr, enum cq_state state)
{
	cr->cq_state = state;
	cr->cq_job.run = cq_job_run;
	cr->ch->jobs_out++;
	atomic_fetch_add(&cr->ch->answers_due, 1);
	rdma_job_post(cr->rail, &cr->cq_job);
}

/* ---- giving up ---- */

/* One step towards having no queue pair; true: it has none. */
static bool
give_up_ep(struct chan_ep *ep)
{
	struct chan *ch = ep->cr->ch;

	if (ep->kind != JOB_NONE)
		return false;
	switch (ep->state) {
	case EP_FREE:
		list_del(&ep->free);
		ep_step_destroy(ep);
		break;
	case EP_LEASED:
		/* Granted or held: nothing is posted any more.  A lease that has nothing on the wire may keep
		 * its request waiting for a disk; the endpoint goes now. */
		lease_error(ch, ep->lease);
		if (ep->outstanding > 0) {
			ep_fail(ep);
		} else {
			lease_detach(ep);
			ep_step_destroy(ep);
		}
		break;
	case EP_DESTROYING:
		if (!ep->gone)
			ep_step_destroy(ep);
		break;
	case EP_FENCED:
		if (ep->rdma)
			ep_step_destroy(ep);
		break;
	default:
		break; /* on its way, by a completion, a timer or a job */
	}
	return ep->kind == JOB_NONE && (!ep->rdma || ep->gone);
}

/* Connections of a context that was given up. */
static void
conn_follow_context(struct chan_rail *cr)
{
	unsigned context = rdma_rail_context(cr->rail);

	for (int i = 0; i < cr->ep_nr; i++) {
		struct chan_ep *ep = &cr->ep[i];

		if (ep->rdma && ep->gone && ep->kind == JOB_NONE)
			ep_step_destroy(ep);
		else if (ep->rdma && ep->context != context)
			give_up_ep(ep);
	}
}

void
rail_end_step(struct chan_rail *cr)
{
	struct chan *ch = cr->ch;
	bool all = true;

	if (has_connections(cr)) {
		conn_follow_context(cr);
		return;
	}
	if (cr->cq_state != CQ_ENDING)
		return;
	for (int i = 0; i < cr->ep_nr; i++)
		all &= give_up_ep(&cr->ep[i]);
	if (!all || cr->unwatching)
		return;
	if (cr->watched && !ch->unwatch_fd(ch->fd_cookie, rdma_cq_fd(cr->cq))) {
		cr->unwatching = true;
		return;
	}
	cr->watched = cr->armed = cr->must_poll = false;
	cq_job_start(cr, CQ_FREEING);
}

/* ---- making again ---- */

static void
on_again(struct timer *t)
{
	rail_follow_context(container_of(t, struct chan_rail, cq_timer));
}

static bool
may_make(const struct chan_rail *cr)
{
	if (cr->cq_state != CQ_NONE || !rdma_rail_context(cr->rail))
		return false;
	for (int i = 0; i < cr->ep_nr; i++) {
		if (cr->ep[i].gone)
			return false; /* the news that it is over are on their way */
	}
	return true;
}

static void
make(struct chan_rail *cr)
{
	timer_disarm(cr->ch->timers, &cr->cq_timer);
	cr->cq_tried = rdma_rail_context(cr->rail);
	rdma_ep_limits(cr->ops, cr->rail, cr->ch->pieces_max, &cr->limits);
	if (cr->cq_depth && cr->cq_depth < cr->ep_nr * cr->limits.send_depth)
		cr->limits.send_depth = cr->cq_depth / cr->ep_nr;
	cq_job_start(cr, CQ_MAKING);
}

static void
on_made(struct chan_rail *cr)
{
	struct chan *ch = cr->ch;

	cr->context = rdma_cq_context(cr->cq);
	cr->cq_state = CQ_ON;
	cr->logged = false;
	if (ch->watch_fd) {
		cr->watched = true;
		ch->watch_fd(ch->fd_cookie, rdma_cq_fd(cr->cq));
	}
	for (int i = 0; i < cr->ep_nr; i++)
		ep_create_again(&cr->ep[i]);
	rail_follow_context(cr); /* it may have been given up meanwhile */
}

static void
on_cq_back(struct msg *m)
{
	struct chan_rail *cr = container_of(m, struct chan_rail, cq_back);
	struct chan *ch = cr->ch;

	ch->jobs_out--;
	if (cr->cq_state == CQ_MAKING && cr->cq_result == 0) {
		on_made(cr);
		return;
	}
	if (cr->cq_state == CQ_MAKING) {
		if (rdma_rail_state(cr->rail) == RAIL_UP)
			log_limited(LOG_ERROR,
				    "core %d has no completion queue (tried again every second): %s",
				    ch->core, strerror(-cr->cq_result));
		cr->cq_state = CQ_NONE;
		lease_decline_waiting(cr, CHAN_NO_CHANNEL);
		timer_arm(ch->timers, &cr->cq_timer, clock_ns() + AGAIN_NS, on_again);
		return;
	}
	cr->cq_state = CQ_NONE;
	rail_follow_context(cr);
}

void
rail_follow_context(struct chan_rail *cr)
{
	if (has_connections(cr)) {
		conn_follow_context(cr);
		return;
	}
	/* One that waits for its context to be closed. */
	for (int i = 0; i < cr->ep_nr; i++) {
		if (cr->ep[i].gone && cr->ep[i].kind == JOB_NONE)
			ep_step_destroy(&cr->ep[i]);
	}
	if (cr->cq_state == CQ_ON && rdma_rail_context(cr->rail) != cr->context)
		cr->cq_state = CQ_ENDING;
	rail_end_step(cr);
	if (may_make(cr))
		make(cr);
}

bool
rail_unusable(struct chan_rail *cr)
{
	bool has_failed = cr->cq_timer.armed && cr->cq_tried == rdma_rail_context(cr->rail);

	if (cr->unusable < cr->ep_nr)
		return false;
	/* The rail may be up since a moment ago, and we have not been told yet. */
	if (!has_failed && may_make(cr))
		make(cr);
	eps_retry(cr);
	return cr->unusable == cr->ep_nr && cr->cq_state != CQ_MAKING;
}
