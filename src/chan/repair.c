/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of an endpoint whose lease failed, and connecting; the machine is drawn in chan_int.h.  On the
 * core; the calls that may block run on the rail's recovery helper, one job of an endpoint at a time.
 *
 * The change to the error state is such a call, though it is quick: it is a firmware command, and a firmware
 * that is busy or ill makes it wait for up to a minute, in which the core would serve nobody.  The handover
 * costs some 20 us, of a lease that is lost anyway.
 */
#define LOG_MODULE "chan"
#include "chan/chan_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#define WATCH_NS (100 * NS_PER_MS) /* how long a flush may take, once the queue pair is in error */
#define HANG_NS (5 * NS_PER_S)     /* then a call hangs: the rail counts as lost, until it returns */
#define AGAIN_NS (1 * NS_PER_S)
#define SHARE_NS (30 * NS_PER_S) /* so long nobody has more than a share; there may be room again then */

static void step_create(struct chan_ep *ep);
static void conn_to_free(struct chan_ep *ep);
static void on_destroyed(struct chan_ep *ep);

static bool
is_leased(enum ep_state s)
{
	return s == EP_LEASED || s == EP_CONNECTING;
}

static bool
is_recovering(enum ep_state s)
{
	return s != EP_FREE && !is_leased(s) && s != EP_FENCED;
}

static bool
is_made(enum ep_state s)
{
	return s == EP_FREE || s == EP_RESETTING || s == EP_DRAINING || is_leased(s);
}

void
ep_set_state(struct chan_ep *ep, enum ep_state state)
{
	struct chan_rail *cr = ep->cr;
	struct rdma_rail_stats *st = rdma_rail_stats(cr->rail);
	struct rdma_ep_counts *n = ep_counts(cr);
	enum ep_state was = ep->state;
	int by;

	ep->state = state;
	atomic_fetch_add(&n->free, (state == EP_FREE) - (was == EP_FREE));
	atomic_fetch_add(&n->leased, is_leased(state) - is_leased(was));
	atomic_fetch_add(&n->recovering, is_recovering(state) - is_recovering(was));
	by = has_connections(cr) ? 0 : is_made(state) - is_made(was);
	cr->made += by;
	if (by)
		atomic_fetch_add(&st->eps_made, by);
	by = (state == EP_BROKEN || state == EP_FENCED) - (was == EP_BROKEN || was == EP_FENCED);
	cr->unusable += by;
	if (by)
		atomic_fetch_add(&st->eps_unusable, by);
	if (cr->unusable == cr->ep_nr && cr->cq_state != CQ_MAKING)
		lease_decline_waiting(cr, CHAN_NO_CHANNEL);
}

/* ---- a device with room for fewer than were asked for: each core has its share ---- */

/* Whether the core has more than its share and n. */
static bool
has_beyond(const struct chan_rail *cr, int n)
{
	const struct rdma_rail_stats *st = rdma_rail_stats(cr->rail);
	int share = atomic_load_explicit(&st->eps_share, memory_order_relaxed);

	return share && cr->made > share + n && clock_ns() < atomic_load(&st->eps_share_until_ns);
}

/* One that comes first takes all there are; another that finds none left has it give some back. */
static void
ask_for_share(struct chan_rail *cr)
{
	int all = atomic_load(&rdma_rail_stats(cr->rail)->eps_made), share = all / cr->ch->core_nr;

	if (share == 0)
		share = 1;
	if (cr->made < share && cr->made < all)
		rdma_rail_share(cr->rail, share, clock_ns() + SHARE_NS);
}

void
eps_follow_share(struct chan_rail *cr)
{
	while (has_beyond(cr, 0) && !list_empty(&cr->free))
		ep_step_destroy(container_of(list_pop(&cr->free), struct chan_ep, free));
}

/* ---- jobs ---- */

static void on_job_back(struct msg *m);

/* On the helper. */
static void
job_run(struct rdma_job *job)
{
	struct chan_ep *ep = container_of(job, struct chan_ep, job);
	struct chan_rail *cr = ep->cr;

	switch (ep->kind) {
	case JOB_CONNECT:
		ep->job_result = rdma_ep_connect(ep->rdma, &ep->target);
		break;
	case JOB_ERROR:
		ep->job_result = rdma_ep_error(ep->rdma);
		break;
	case JOB_RESET:
		ep->job_result = rdma_ep_reset(ep->rdma);
		break;
	case JOB_DESTROY:
		ep->job_result = rdma_ep_free(ep->rdma, ep->idle);
		break;
	case JOB_CREATE:
		ep->job_result = rdma_ep_new(cr->ops, cr->rail, cr->cq, cr->limits.send_depth, &ep->rdma);
		break;
	case JOB_NONE:
		check(!"a job has a kind");
	}
	/* The mailbox orders what we wrote before what the core reads; the chan lives until its jobs are
	 * back. */
	chan_answer(cr->ch, &ep->back, on_job_back);
}

static void
job_start(struct chan_ep *ep, enum job_kind kind)
{
	check(ep->kind == JOB_NONE);
	ep->kind = kind;
	ep->idle = ep->outstanding == 0;
	ep->job.run = job_run;
	ep->cr->ch->jobs_out++;
	atomic_fetch_add(&ep->cr->ch->answers_due, 1);
	/* What is on the wire is ended before anything is made good again. */
	if (kind == JOB_ERROR)
		rdma_job_post_first(ep->cr->rail, &ep->job);
	else
		rdma_job_post(ep->cr->rail, &ep->job);
}

/* ---- steps ---- */

/* The rail counts as lost while a call of ours hangs, or a queue pair cannot be got rid of. */
static void
set_stuck(struct chan_ep *ep, bool stuck)
{
	if (ep->stuck == stuck)
		return;
	ep->stuck = stuck;
	rdma_rail_stuck(ep->cr->rail, stuck ? 1 : -1);
}

static void
on_timer(struct timer *t)
{
	struct chan_ep *ep = container_of(t, struct chan_ep, timer);
	struct chan *ch = ep->cr->ch;

	switch (ep->state) {
	case EP_DRAINING:
		if (ep->kind == JOB_ERROR) {
			set_stuck(ep, true); /* already the change to the error state hangs */
			break;
		}
		log_warn("channel %u of core %d: %d completions are missing: it is destroyed", ep->nr,
			 ch->core, ep->outstanding);
		ep->lost = true;
		ep_step_destroy(ep);
		break;
	case EP_CONNECTING:
		set_stuck(ep, true);
		break;
	case EP_DESTROYING:
		if (ep->kind == JOB_NONE)
			ep_step_destroy(ep);
		else
			set_stuck(ep, true);
		break;
	case EP_BROKEN:
		if (rdma_rail_state(ep->cr->rail) == RAIL_UP && ep->cr->cq_state == CQ_ON) {
			step_create(ep);
		} else {
			timer_arm(ch->timers, &ep->timer, clock_ns() + AGAIN_NS, on_timer);
		}
		break;
	default:
		break;
	}
}

static void
step_create(struct chan_ep *ep)
{
	if (ep->cr->cq_state != CQ_ON) {
		/* ep_create_again() comes. */
		ep->awaits_rail = true;
		ep_set_state(ep, EP_BROKEN);
		return;
	}
	if (has_beyond(ep->cr, -1)) {
		ep_set_state(ep, EP_BROKEN);
		timer_arm(ep->cr->ch->timers, &ep->timer, clock_ns() + AGAIN_NS, on_timer);
		return;
	}
	ep->generation = ep->cr->generation;
	ep_set_state(ep, EP_CREATING);
	job_start(ep, JOB_CREATE);
}

void
ep_create_again(struct chan_ep *ep)
{
	if ((ep->state != EP_BROKEN && ep->state != EP_FENCED) || ep->kind != JOB_NONE || ep->rdma)
		return;
	timer_disarm(ep->cr->ch->timers, &ep->timer);
	step_create(ep);
}

void
ep_step_destroy(struct chan_ep *ep)
{
	ep_set_state(ep, EP_DESTROYING);
	if (has_connections(ep->cr))
		conn_leave_queue(ep);
	if (ep->gone) {
		if (rdma_ep_free(ep->rdma, false) == 0)
			on_destroyed(ep);
		else
			timer_arm(ep->cr->ch->timers, &ep->timer, clock_ns() + AGAIN_NS, on_timer);
		return;
	}
	timer_arm(ep->cr->ch->timers, &ep->timer, clock_ns() + HANG_NS, on_timer);
	job_start(ep, JOB_DESTROY);
}

static void
reset(struct chan_ep *ep)
{
	ep_set_state(ep, EP_RESETTING);
	job_start(ep, JOB_RESET);
}

static void
step_reset(struct chan_ep *ep)
{
	if (has_connections(ep->cr))
		ep_step_destroy(ep);
	else if (ep->cr->ch->reset_on_failure)
		reset(ep);
	else
		ep_set_state(ep, EP_FENCED);
}

void
ep_connect(struct chan_ep *ep)
{
	struct lease *p = lease_of(ep->lease);

	ep->target = p->target;
	p->target.ops = NULL;
	ep->connected = true;
	ep_set_state(ep, EP_CONNECTING);
	timer_arm(ep->cr->ch->timers, &ep->timer, clock_ns() + HANG_NS, on_timer);
	job_start(ep, JOB_CONNECT);
}

void
ep_create_failed(struct chan_ep *ep, int r)
{
	ep->awaits_rail = rdma_rail_state(ep->cr->rail) != RAIL_UP;
	/* One line for all channels of a rail; of one that is not up the log knows already. */
	if (!ep->cr->logged && !ep->awaits_rail) {
		log_limited(LOG_ERROR,
			    "channel %u of core %d cannot be created (tried again every second): %s", ep->nr,
			    ep->cr->ch->core, strerror(-r));
		ep->cr->logged = true;
	}
	ep_set_state(ep, EP_BROKEN);
	timer_arm(ep->cr->ch->timers, &ep->timer, clock_ns() + AGAIN_NS, on_timer);
	if (r == -ENOMEM && !ep->awaits_rail)
		ask_for_share(ep->cr);
}

void
eps_retry(struct chan_rail *cr)
{
	for (int i = 0; cr->cq_state == CQ_ON && i < cr->ep_nr; i++) {
		struct chan_ep *ep = &cr->ep[i];

		if (ep->state != EP_BROKEN || !ep->awaits_rail)
			continue;
		timer_disarm(cr->ch->timers, &ep->timer);
		step_create(ep);
	}
}

void
ep_fail(struct chan_ep *ep)
{
	struct chan *ch = ep->cr->ch;

	check(ep->state == EP_LEASED);
	ep_set_state(ep, EP_DRAINING);
	if (has_connections(ep->cr))
		rdma_ep_spend(ep->rdma);
	ep->lost = false;
	if (ep->outstanding == 0) {
		ep_drained(ep);
		return;
	}
	/* Its wait for the helper, and a firmware that takes its time, are no reason to think that completions are missing. */
	timer_arm(ch->timers, &ep->timer, clock_ns() + HANG_NS, on_timer);
	job_start(ep, JOB_ERROR);
}

void
ep_drained(struct chan_ep *ep)
{
	check(ep->outstanding == 0);
	timer_disarm(ep->cr->ch->timers, &ep->timer);
	lease_detach(ep);
	/* Else when the change to the error state is back. */
	if (ep->kind == JOB_NONE)
		step_reset(ep);
	lease_grant_waiting(ep->cr); /* a spare may serve */
}

/* A channel whose connection is another's, or is no more. */
static void
conn_to_free(struct chan_ep *ep)
{
	ep_set_state(ep, EP_FREE);
	list_push_head(&ep->cr->free, &ep->free);
	lease_grant_waiting(ep->cr);
}

void
ep_to_pool(struct chan_ep *ep)
{
	if (ep->generation != ep->cr->generation || has_beyond(ep->cr, 0)) {
		ep_step_destroy(ep);
		return;
	}
	if (has_connections(ep->cr)) {
		conn_put(ep);
		conn_to_free(ep);
		return;
	}
	if (ep->connected || ep->rdma->path != rdma_rail_path(ep->cr->rail)) {
		reset(ep);
		return;
	}
	ep_set_state(ep, EP_FREE);
	list_push_head(&ep->cr->free, &ep->free); /* the one used last is warm */
	lease_grant_waiting(ep->cr);
}

void
ep_follow_path(struct chan_ep *ep)
{
	if (ep->state != EP_FREE || has_connections(ep->cr) || ep->rdma->path == rdma_rail_path(ep->cr->rail))
		return;
	list_del(&ep->free);
	reset(ep);
}

void
ep_replace(struct chan_ep *ep)
{
	struct chan *ch = ep->cr->ch;

	switch (ep->state) {
	case EP_FREE:
		if (has_connections(ep->cr))
			break;
		list_del(&ep->free);
		ep_step_destroy(ep);
		break;
	case EP_LEASED:
		chan_lease_fail(ch, ep->lease);
		break;
	case EP_FENCED:
		if (ep->kind == JOB_NONE && ep->rdma)
			ep_step_destroy(ep);
		break;
	default:
		break; /* its repair ends in ep_to_pool(), which looks at the generation */
	}
}

/* The queue pair is gone: nothing of ours can be touched by it any more, and what it still held ends now. */
static void
on_destroyed(struct chan_ep *ep)
{
	struct chan *ch = ep->cr->ch;

	set_stuck(ep, false);
	timer_disarm(ch->timers, &ep->timer);
	ep->rdma = NULL;
	ep->gone = ep->connected = false;
	for (struct list *l; (l = list_first(&ep->posted));)
		op_end(ch, container_of(l, struct chan_op, link), WCS_FLUSHED);
	check(ep->outstanding == 0);
	lease_detach(ep);
	if (has_connections(ep->cr)) {
		conn_gone(ep);
		conn_to_free(ep);
		return;
	}
	if (ep->lost && !ch->reset_on_failure) {
		ep_set_state(ep, EP_FENCED);
		return;
	}
	step_create(ep);
	lease_grant_waiting(ep->cr);
}

static void
on_job_back(struct msg *m)
{
	struct chan_ep *ep = container_of(m, struct chan_ep, back);
	struct chan_rail *cr = ep->cr;
	enum job_kind kind = ep->kind;
	struct chan *ch = cr->ch;
	int r = ep->job_result;

	ep->kind = JOB_NONE;
	ch->jobs_out--;
	switch (kind) {
	case JOB_CONNECT:
		timer_disarm(ch->timers, &ep->timer);
		set_stuck(ep, false);
		lease_connected(ep, r);
		break;
	case JOB_ERROR:
		set_stuck(ep, false);
		if (ep->outstanding == 0)
			step_reset(ep);
		else
			timer_arm(ch->timers, &ep->timer, clock_ns() + WATCH_NS, on_timer);
		break;
	case JOB_RESET:
		if (r < 0) {
			if (rdma_rail_state(cr->rail) == RAIL_UP)
				log_limited(LOG_WARN, "channel %u of core %d cannot be reset: %s", ep->nr,
					    cr->ch->core, strerror(-r));
			ep_step_destroy(ep);
			break;
		}
		atomic_fetch_add(&rdma_rail_stats(cr->rail)->ep_resets, 1);
		ep->connected = false;
		ep_to_pool(ep);
		break;
	case JOB_DESTROY:
		timer_disarm(ch->timers, &ep->timer);
		if (r == 0) {
			on_destroyed(ep);
			break;
		}
		timer_arm(ch->timers, &ep->timer, clock_ns() + AGAIN_NS, on_timer);
		/* The device is dead, which the rail's state says; its buffers stay held until it is sure
		 * that the hardware is done with them. */
		ep->gone = r == -EINPROGRESS;
		if (ep->gone)
			set_stuck(ep, false);
		if (r == -EINPROGRESS || r == -EAGAIN)
			break;
		/* It still exists, so its buffers stay held; the rail is not to be trusted with more. */
		if (rdma_rail_state(cr->rail) == RAIL_UP)
			log_limited(LOG_ERROR, "channel %u of core %d cannot be destroyed: %s", ep->nr,
				    ch->core, strerror(-r));
		set_stuck(ep, true);
		break;
	case JOB_CREATE:
		if (r < 0) {
			ep_create_failed(ep, r);
			break;
		}
		cr->logged = false;
		atomic_fetch_add(&rdma_rail_stats(cr->rail)->ep_recreated, 1);
		if (has_beyond(cr, -1))
			ep_step_destroy(ep); /* more than one were made at once */
		else
			ep_to_pool(ep);
		break;
	case JOB_NONE:
		check(!"a job has a kind");
	}
}
