/*
 * What becomes of an initiator whose lease failed; the machine is drawn in chan_int.h.  On the core; the
 * calls that may block run on the rail's recovery helper, one job of an initiator at a time.
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

#define WATCH_NS (100 * NS_PER_MS) /* how long a flush may take */
#define DESTROY_NS (5 * NS_PER_S)  /* then the rail counts as lost, until it returns */
#define AGAIN_NS (1 * NS_PER_S)

static void step_create(struct chan_dci *dci);
static void on_destroyed(struct chan_dci *dci);

static bool
is_recovering(enum dci_state s)
{
	return s != DCI_FREE && s != DCI_LEASED && s != DCI_FENCED;
}

void
dci_set_state(struct chan_dci *dci, enum dci_state state)
{
	struct chan_rail *cr = dci->cr;
	struct rdma_rail_stats *st = rdma_rail_stats(cr->rail);
	enum dci_state was = dci->state;

	dci->state = state;
	atomic_fetch_add(&st->dcis_free, (state == DCI_FREE) - (was == DCI_FREE));
	atomic_fetch_add(&st->dcis_leased, (state == DCI_LEASED) - (was == DCI_LEASED));
	atomic_fetch_add(&st->dcis_recovering, is_recovering(state) - is_recovering(was));
	atomic_fetch_add(&cr->ch->stats.recovering, is_recovering(state) - is_recovering(was));
	cr->unusable +=
		(state == DCI_BROKEN || state == DCI_FENCED) - (was == DCI_BROKEN || was == DCI_FENCED);
	if (cr->unusable == cr->dci_nr && cr->cq_state != CQ_MAKING)
		lease_decline_waiting(cr, CHAN_NO_CHANNEL);
}

/* --- jobs --- */

static void on_job_back(struct msg *m);

/* On the helper. */
static void
job_run(struct rdma_job *job)
{
	struct chan_dci *dci = container_of(job, struct chan_dci, job);
	struct chan_rail *cr = dci->cr;

	switch (dci->kind) {
	case JOB_ERROR:
		dci->job_result = rdma_dci_error(dci->qp);
		break;
	case JOB_RESET:
		dci->job_result = rdma_dci_reset(dci->qp);
		break;
	case JOB_DESTROY:
		dci->job_result = rdma_dci_free(dci->qp, dci->idle);
		break;
	case JOB_CREATE:
		dci->job_result = rdma_dci_new(cr->rail, cr->cq, cr->limits.send_depth, &dci->qp);
		break;
	case JOB_NONE:
		check(!"a job has a kind");
	}
	/* The mailbox orders what we wrote before what the core reads; the chan lives until its jobs are
	 * back. */
	chan_answer(cr->ch, &dci->back, on_job_back);
}

static void
job_start(struct chan_dci *dci, enum job_kind kind)
{
	check(dci->kind == JOB_NONE);
	dci->kind = kind;
	dci->idle = dci->outstanding == 0;
	dci->job.run = job_run;
	dci->cr->ch->jobs_out++;
	atomic_fetch_add(&dci->cr->ch->answers_due, 1);
	rdma_job_post(dci->cr->rail, &dci->job);
}

/* --- steps --- */

/* The rail counts as lost while a call of ours hangs, or a queue pair cannot be got rid of. */
static void
set_stuck(struct chan_dci *dci, bool stuck)
{
	if (dci->stuck == stuck)
		return;
	dci->stuck = stuck;
	rdma_rail_stuck(dci->cr->rail, stuck ? 1 : -1);
}

static void
on_timer(struct timer *t)
{
	struct chan_dci *dci = container_of(t, struct chan_dci, timer);
	struct chan *ch = dci->cr->ch;

	switch (dci->state) {
	case DCI_DRAINING:
		if (dci->lost) {
			set_stuck(dci, true); /* already the change to the error state hangs */
			break;
		}
		log_warn("channel %u of core %d: %d completions are missing: it is destroyed", dci->nr,
			 ch->core, dci->outstanding);
		dci->lost = true;
		if (dci->kind == JOB_NONE)
			dci_step_destroy(dci);
		else
			timer_arm(ch->timers, &dci->timer, clock_ns() + DESTROY_NS, on_timer);
		break;
	case DCI_DESTROYING:
		if (dci->kind == JOB_NONE)
			dci_step_destroy(dci);
		else
			set_stuck(dci, true);
		break;
	case DCI_BROKEN:
		if (rdma_rail_state(dci->cr->rail) == RAIL_UP && dci->cr->cq_state == CQ_ON) {
			step_create(dci);
		} else {
			timer_arm(ch->timers, &dci->timer, clock_ns() + AGAIN_NS, on_timer);
		}
		break;
	default:
		break;
	}
}

static void
step_create(struct chan_dci *dci)
{
	if (dci->cr->cq_state != CQ_ON) {
		/* dci_revive() comes. */
		dci->awaits_rail = true;
		dci_set_state(dci, DCI_BROKEN);
		return;
	}
	dci->generation = dci->cr->generation;
	dci_set_state(dci, DCI_CREATING);
	job_start(dci, JOB_CREATE);
}

void
dci_revive(struct chan_dci *dci)
{
	if ((dci->state != DCI_BROKEN && dci->state != DCI_FENCED) || dci->kind != JOB_NONE || dci->qp)
		return;
	timer_disarm(dci->cr->ch->timers, &dci->timer);
	step_create(dci);
}

void
dci_step_destroy(struct chan_dci *dci)
{
	dci_set_state(dci, DCI_DESTROYING);
	if (dci->gone) {
		if (rdma_dci_free(dci->qp, false) == 0)
			on_destroyed(dci);
		else
			timer_arm(dci->cr->ch->timers, &dci->timer, clock_ns() + AGAIN_NS, on_timer);
		return;
	}
	timer_arm(dci->cr->ch->timers, &dci->timer, clock_ns() + DESTROY_NS, on_timer);
	job_start(dci, JOB_DESTROY);
}

static void
step_reset(struct chan_dci *dci)
{
	if (!dci->cr->ch->reset_on_failure) {
		dci_set_state(dci, DCI_FENCED);
		return;
	}
	dci_set_state(dci, DCI_RESETTING);
	job_start(dci, JOB_RESET);
}

void
dci_unborn(struct chan_dci *dci, int r)
{
	dci->awaits_rail = rdma_rail_state(dci->cr->rail) != RAIL_UP;
	/* One line for all channels of a rail; of one that is not up the log knows already. */
	if (!dci->cr->said && !dci->awaits_rail) {
		log_limited(LOG_ERROR,
			    "channel %u of core %d cannot be created (tried again every second): %s", dci->nr,
			    dci->cr->ch->core, strerror(-r));
		dci->cr->said = true;
	}
	dci_set_state(dci, DCI_BROKEN);
	timer_arm(dci->cr->ch->timers, &dci->timer, clock_ns() + AGAIN_NS, on_timer);
}

void
dcis_rail_is_up(struct chan_rail *cr)
{
	for (int i = 0; cr->cq_state == CQ_ON && i < cr->dci_nr; i++) {
		struct chan_dci *dci = &cr->dci[i];

		if (dci->state != DCI_BROKEN || !dci->awaits_rail)
			continue;
		timer_disarm(cr->ch->timers, &dci->timer);
		step_create(dci);
	}
}

void
dci_fail(struct chan_dci *dci)
{
	struct chan *ch = dci->cr->ch;

	check(dci->state == DCI_LEASED);
	dci_set_state(dci, DCI_DRAINING);
	dci->lost = false;
	if (dci->outstanding == 0) {
		dci_drained(dci);
		return;
	}
	timer_arm(ch->timers, &dci->timer, clock_ns() + WATCH_NS, on_timer);
	job_start(dci, JOB_ERROR);
}

void
dci_drained(struct chan_dci *dci)
{
	check(dci->outstanding == 0);
	timer_disarm(dci->cr->ch->timers, &dci->timer);
	lease_detach(dci);
	/* Else when the change to the error state is back. */
	if (dci->kind == JOB_NONE)
		step_reset(dci);
	lease_grant_waiting(dci->cr); /* a spare may serve */
}

void
dci_to_pool(struct chan_dci *dci)
{
	if (dci->generation != dci->cr->generation) {
		dci_step_destroy(dci);
		return;
	}
	dci_set_state(dci, DCI_FREE);
	list_push_head(&dci->cr->free, &dci->free); /* the one used last is warm */
	lease_grant_waiting(dci->cr);
}

void
dci_replace(struct chan_dci *dci)
{
	struct chan *ch = dci->cr->ch;

	switch (dci->state) {
	case DCI_FREE:
		list_del(&dci->free);
		dci_step_destroy(dci);
		break;
	case DCI_LEASED:
		chan_lease_fail(ch, dci->lease);
		break;
	case DCI_FENCED:
		if (dci->kind == JOB_NONE && dci->qp)
			dci_step_destroy(dci);
		break;
	default:
		break; /* its repair ends in dci_to_pool(), which looks at the generation */
	}
}

/* The queue pair is gone: nothing of ours can be touched by it any more, and what it still held ends now. */
static void
on_destroyed(struct chan_dci *dci)
{
	struct chan *ch = dci->cr->ch;

	set_stuck(dci, false);
	timer_disarm(ch->timers, &dci->timer);
	dci->qp = NULL;
	dci->gone = false;
	for (struct list *l; (l = list_first(&dci->posted));)
		op_end(ch, container_of(l, struct chan_op, link), WCS_FLUSHED);
	check(dci->outstanding == 0);
	lease_detach(dci);
	if (dci->lost && !ch->reset_on_failure) {
		dci_set_state(dci, DCI_FENCED);
		return;
	}
	step_create(dci);
	lease_grant_waiting(dci->cr);
}

static void
on_job_back(struct msg *m)
{
	struct chan_dci *dci = container_of(m, struct chan_dci, back);
	struct chan_rail *cr = dci->cr;
	enum job_kind kind = dci->kind;
	struct chan *ch = cr->ch;
	int r = dci->job_result;

	dci->kind = JOB_NONE;
	ch->jobs_out--;
	switch (kind) {
	case JOB_ERROR:
		if (dci->outstanding == 0) {
			set_stuck(dci, false);
			step_reset(dci);
		} else if (dci->lost) {
			dci_step_destroy(dci);
		}
		break; /* else completions, or the watch */
	case JOB_RESET:
		if (r < 0) {
			if (rdma_rail_state(cr->rail) == RAIL_UP)
				log_limited(LOG_WARN, "channel %u of core %d cannot be reset: %s", dci->nr,
					    cr->ch->core, strerror(-r));
			dci_step_destroy(dci);
			break;
		}
		atomic_fetch_add(&rdma_rail_stats(cr->rail)->dci_resets, 1);
		dci_to_pool(dci);
		break;
	case JOB_DESTROY:
		timer_disarm(ch->timers, &dci->timer);
		if (r == 0) {
			on_destroyed(dci);
			break;
		}
		timer_arm(ch->timers, &dci->timer, clock_ns() + AGAIN_NS, on_timer);
		/* The device is dead, which the rail's state says; its buffers stay held until it is sure
		 * that the hardware is done with them. */
		dci->gone = r == -EINPROGRESS;
		if (dci->gone)
			set_stuck(dci, false);
		if (r == -EINPROGRESS || r == -EAGAIN)
			break;
		/* It still exists, so its buffers stay held; the rail is not to be trusted with more. */
		if (rdma_rail_state(cr->rail) == RAIL_UP)
			log_limited(LOG_ERROR, "channel %u of core %d cannot be destroyed: %s", dci->nr,
				    ch->core, strerror(-r));
		set_stuck(dci, true);
		break;
	case JOB_CREATE:
		if (r < 0) {
			dci_unborn(dci, r);
			break;
		}
		cr->said = false;
		atomic_fetch_add(&rdma_rail_stats(cr->rail)->dci_recreated, 1);
		dci_to_pool(dci);
		break;
	case JOB_NONE:
		check(!"a job has a kind");
	}
}
