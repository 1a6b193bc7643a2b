/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: a channel towards one target, from first post to last completion (item 30).  Called by xfer/ and
 * req/ on the core.
 *
 *   get --> TARGET --> QUEUED --> CONNECTING --> READY --> HELD --> put
 *     \________\_________\____________\____________/
 *
 * TARGET: a helper makes what the token names; if it cannot, or takes long, the next rail is tried.  Who waits for that is not in
 * the queue yet, so a target that does not answer delays nobody.
 * QUEUED: for a channel of that rail; clients take turns.
 * CONNECTING: the channel is being connected, where the transport does so.
 * READY: granted, and done() is due.
 * An endpoint goes back to the pool when its lease is put or, after an error, by way of repair.c.
 */
#define LOG_MODULE "chan"
#include "chan/chan_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

static int
decline(struct chan_lease *ls, enum chan_reason reason)
{
	ls->reason = reason;
	ls->result = -EOPNOTSUPP;
	return ls->result;
}

static void
set_leased(struct chan_rail *cr, int by)
{
	cr->leased += by;
	cr->ch->leased += by;
}

/* A free channel becomes this lease's. */
static void
take(struct chan_rail *cr, struct chan_lease *ls)
{
	struct list *l = list_pop(&cr->free);
	struct chan_ep *ep = container_of(l, struct chan_ep, free);

	check(l);
	check(list_empty(&ep->posted));
	check(ep->outstanding == 0);
	ep->lease = ls;
	lease_of(ls)->ep = ep;
	ls->result = 0;
	ls->reason = CHAN_OK;
	set_leased(cr, 1);
	if (has_connections(cr))
		conn_take(ep);
	if (rdma_ep_connects(cr->ops)) {
		lease_of(ls)->state = LEASE_CONNECTING;
		ep_connect(ep);
	} else {
		ep_set_state(ep, EP_LEASED);
	}
}

static bool
can_take(const struct chan_rail *cr)
{
	return !list_empty(&cr->free) && cr->leased < cr->lease_max;
}

static void
give_back_target(struct lease *p)
{
	if (p->cr)
		rdma_target_put(p->cr->rail, &p->target);
}

/* done() is due, from chan_poll() or the mailbox. */
static void
make_ready(struct chan *ch, struct chan_lease *ls, enum lease_state state)
{
	lease_of(ls)->state = state;
	list_push_tail(&ch->ready, &ls->link);
	chan_wake(ch);
}

void
lease_grant_waiting(struct chan_rail *cr)
{
	while (can_take(cr) && !fair_empty(&cr->waiting)) {
		struct chan_lease *ls = container_of(fair_pop(&cr->waiting), struct chan_lease, link);

		take(cr, ls);
		if (lease_of(ls)->state == LEASE_CONNECTING)
			continue; /* waits on */
		cr->ch->waiting--;
		make_ready(cr->ch, ls, LEASE_READY);
	}
}

/* It waits for a channel of that rail. */
static void
queue(struct chan_rail *cr, struct chan_lease *ls)
{
	lease_of(ls)->state = LEASE_QUEUED;
	fair_push(&cr->waiting, ls->client, &ls->link);
	lease_grant_waiting(cr);
}

void
lease_decline_waiting(struct chan_rail *cr, enum chan_reason reason)
{
	for (struct list *l; (l = fair_pop(&cr->waiting));) {
		struct chan_lease *ls = container_of(l, struct chan_lease, link);

		cr->ch->waiting--;
		give_back_target(lease_of(ls));
		decline(ls, reason);
		make_ready(cr->ch, ls, LEASE_DECLINED);
	}
}

int
lease_run_ready(struct chan *ch)
{
	int n = 0;

	for (struct list *l; (l = list_pop(&ch->ready)); n++) {
		struct chan_lease *ls = container_of(l, struct chan_lease, link);
		struct lease *p = lease_of(ls);

		p->state = p->state == LEASE_READY ? LEASE_HELD : LEASE_NONE;
		ls->done(ls);
	}
	return n;
}

/* Who waited for a target or for its connection does not get a channel of this rail. */
static void
decline_late(struct chan_rail *cr, struct chan_lease *ls, enum chan_reason reason)
{
	cr->ch->waiting--;
	give_back_target(lease_of(ls));
	decline(ls, rdma_rail_state(cr->rail) != RAIL_UP ? CHAN_NO_RAIL : reason);
	make_ready(cr->ch, ls, LEASE_DECLINED);
}

void
lease_connected(struct chan_ep *ep, int r)
{
	struct chan_rail *cr = ep->cr;
	struct chan_lease *ls = ep->lease;

	if (!ls) {
		/* Cancelled meanwhile. */
		rdma_target_put(cr->rail, &ep->target);
		ep_to_pool(ep);
		return;
	}
	lease_of(ls)->target = ep->target;
	ep->target.ops = NULL;
	if (r < 0 || rdma_rail_state(cr->rail) != RAIL_UP) {
		lease_detach(ep);
		decline_late(cr, ls, CHAN_UNREACHABLE);
		ep_to_pool(ep);
		return;
	}
	if (ep->generation != cr->generation) {
		/* What was connected is gone, and the rail is well again: another channel. */
		lease_detach(ep);
		queue(cr, ls);
		ep_to_pool(ep);
		return;
	}
	ep_set_state(ep, EP_LEASED);
	cr->ch->waiting--;
	make_ready(cr->ch, ls, LEASE_READY);
}

/* ---- targets ---- */

static int seek(struct chan *ch, struct chan_lease *ls);

/* Its rail does not lead to the target: the next one, or none. */
static void
seek_on(struct chan *ch, struct chan_lease *ls, enum chan_reason why)
{
	struct lease *p = lease_of(ls);
	int r;

	give_back_target(p);
	if (!p->why)
		p->why = rdma_rail_state(p->cr->rail) != RAIL_UP ? CHAN_NO_RAIL : why;
	r = seek(ch, ls);
	if (r > 0) {
		queue(p->cr, ls);
	} else if (r < 0) {
		ch->waiting--;
		/* It has waited already, and coming again would not help. */
		if (r == -EAGAIN)
			decline(ls, p->why);
		make_ready(ch, ls, LEASE_DECLINED);
	}
}

/* The helper's answer, on the core. */
static void
on_target_back(struct msg *m)
{
	struct chan_wait *w = container_of(m, struct chan_wait, back);
	struct chan *ch = w->ch;
	struct chan_rail *cr = w->cr;
	struct chan_lease *ls = w->lease;
	struct lease *p;

	ch->waits_out--;
	list_push_tail(&ch->waits_free, &w->link);
	if (!ls) {
		if (w->target.result == 0)
			rdma_target_put(cr->rail, &w->target.target);
		return;
	}
	p = lease_of(ls);
	p->wait = NULL;
	timer_disarm(ch->timers, &p->timer);
	if (w->target.result == 0)
		p->target = w->target.target;
	if (w->target.result < 0 || rdma_rail_state(cr->rail) != RAIL_UP || rail_unusable(cr))
		seek_on(ch, ls, w->target.result == -EHOSTUNREACH ? CHAN_UNREACHABLE : CHAN_NO_CHANNEL);
	else
		queue(cr, ls);
}

static void
on_target(struct rdma_target_wait *target)
{
	struct chan_wait *w = container_of(target, struct chan_wait, target);

	chan_answer(w->ch, &w->back, on_target_back);
}

/* The lease waits for its target no longer; the helper's answer, if it is on its way, comes to nobody. */
static void
leave_wait(struct chan *ch, struct lease *p)
{
	struct chan_wait *w = p->wait;

	timer_disarm(ch->timers, &p->timer);
	p->wait = NULL;
	if (rdma_target_leave(w->cr->ops, w->cr->rail, &w->target)) {
		ch->waits_out--;
		atomic_fetch_sub(&ch->answers_due, 1);
		list_push_head(&ch->waits_free, &w->link);
	} else {
		w->lease = NULL;
	}
}

static void
on_late(struct timer *t)
{
	struct lease *p = container_of(t, struct lease, timer);
	struct chan_lease *ls = p->wait->lease;

	leave_wait(p->cr->ch, p);
	seek_on(p->cr->ch, ls, CHAN_UNREACHABLE);
}

/* > 0: the lease has its target; 0: it waits; < 0: it does not get one. */
static int
get_target(struct chan *ch, struct chan_lease *ls, const struct rail_route *route)
{
	struct lease *p = lease_of(ls);
	struct list *l = list_pop(&ch->waits_free);
	struct chan_wait *w;
	int r;

	if (!l)
		return -EAGAIN;
	w = container_of(l, struct chan_wait, link);
	*w = (struct chan_wait){
		.target = { .done = on_target, .client = ls->client }, .ch = ch, .cr = p->cr, .lease = ls
	};
	ch->waits_out++; /* before: the answer may come at once */
	atomic_fetch_add(&ch->answers_due, 1);
	r = rdma_target_get(p->cr->rail, p->tok, route, &w->target, &p->target);
	if (r != 0) {
		ch->waits_out--;
		atomic_fetch_sub(&ch->answers_due, 1);
		list_push_head(&ch->waits_free, &w->link);
	} else {
		p->wait = w;
		p->state = LEASE_TARGET;
		timer_arm(ch->timers, &p->timer, clock_ns() + RDMA_TARGET_WAIT_NS, on_late);
	}
	return r;
}

/* ---- what others call ---- */

bool
chan_serves(const struct chan *ch, enum token_kind kind)
{
	return rdma_serves(ch->rdma, kind);
}

static struct chan_rail *
rail_of(struct chan *ch, const struct rail_route *route)
{
	for (int i = 0; i < ch->rail_nr; i++) {
		if (ch->rail[i].nr == route->rail && ch->rail[i].ops == route->ops)
			return &ch->rail[i];
	}
	check(!"every transport that serves a family has channels");
	return NULL;
}

/* The best rail that was not tried yet: 0, or what the lease ends with. */
static int
find_rail(struct chan *ch, struct chan_lease *ls, struct rail_route *ret_route)
{
	struct lease *p = lease_of(ls);
	int r = rdma_route(ch->rdma, p->tok,
			   &(struct rdma_asker){ .local = p->local,
						 .tried = p->tried,
						 .numa_node = ch->numa_node,
						 .turn = ch->turn++,
						 .core = (unsigned)ch->core,
						 .must_route = ls->must_route },
			   ret_route);

	if (r == 0)
		return 0;
	if (p->tried)
		return decline(ls, p->why);
	switch (r) {
	case -ENODEV:
		return decline(ls, CHAN_NO_DEVICE);
	case -EINVAL:
		return ls->result = -EINVAL;
	case -ENETUNREACH:
		return decline(ls, CHAN_NEEDS_ROUTER);
	case -ENOTCONN:
		return decline(ls, CHAN_NOT_CONNECTED);
	default:
		return decline(ls, CHAN_NO_RAIL);
	}
}

/* From rail to rail until one leads to the target.  > 0: the lease has it; 0: it waits; < 0: what the lease ends with. */
static int
seek(struct chan *ch, struct chan_lease *ls)
{
	struct lease *p = lease_of(ls);
	struct rail_route route;
	int r;

	while ((r = find_rail(ch, ls, &route)) == 0) {
		p->tried |= 1u << route.rail;
		p->cr = rail_of(ch, &route);
		if (!rail_unusable(p->cr)) {
			r = get_target(ch, ls, &route);
			if (r == -ENOTCONN || r == -EBUSY)
				return decline(ls, r == -EBUSY ? CHAN_CONNECTION_BUSY : CHAN_NOT_CONNECTED);
			if (r != -EHOSTUNREACH)
				return r == -EAGAIN ? ls->result = r : r;
		}
		if (!p->why)
			p->why = r < 0 ? CHAN_UNREACHABLE : CHAN_NO_CHANNEL;
	}
	return r;
}

int
chan_lease_get(struct chan *ch, struct chan_lease *ls, const struct token *tok, const struct sockaddr *local)
{
	struct lease *p = lease_of(ls);
	int r;

	check(p->state == LEASE_NONE);
	check(ls->done);
	ls->outstanding = 0;
	ls->failed = ls->flushed_writes = false;
	ls->status = WCS_SUCCESS;
	if (!chan_serves(ch, tok->kind))
		return decline(ls, CHAN_FAMILY);
	if (ch->mode != CHAN_MODE_ON)
		return decline(ls, ch->mode == CHAN_MODE_NONE ? CHAN_DISABLED : CHAN_NO_DEVICE);
	*p = (struct lease){
		.tok = tok, .local = local, .addr = tok->addr, .size = tok->size, .rkey = tok->rkey
	};
	list_init(&p->queue);
	r = seek(ch, ls);
	if (r < 0) {
		p->state = LEASE_NONE;
		return r;
	}
	if (r > 0 && fair_empty(&p->cr->waiting) && can_take(p->cr) && !rdma_ep_connects(p->cr->ops)) {
		take(p->cr, ls);
		p->state = LEASE_HELD;
		return 1;
	}
	if (ch->waiting >= ch->queue_max) {
		give_back_target(p);
		if (p->wait)
			leave_wait(ch, p);
		p->state = LEASE_NONE;
		return ls->result = -EAGAIN;
	}
	ch->waiting++;
	if (r > 0)
		queue(p->cr, ls); /* or to be connected */
	return 0;
}

void
lease_detach(struct chan_ep *ep)
{
	if (!ep->lease)
		return;
	lease_of(ep->lease)->ep = NULL;
	ep->lease = NULL;
	set_leased(ep->cr, -1);
}

/* Gives its channel and its target back to where they came from. */
static void
release(struct chan_lease *ls)
{
	struct lease *p = lease_of(ls);
	struct chan_ep *ep = p->ep;

	give_back_target(p);
	p->state = LEASE_NONE;
	if (ep) {
		check(ep->state == EP_LEASED);
		check(ep->outstanding == 0);
		lease_detach(ep);
		ep_to_pool(ep);
	}
}

void
chan_lease_cancel(struct chan *ch, struct chan_lease *ls)
{
	struct lease *p = lease_of(ls);

	switch (p->state) {
	case LEASE_NONE:
		return;
	case LEASE_TARGET:
		leave_wait(ch, p);
		ch->waiting--;
		break;
	case LEASE_QUEUED:
		fair_del(&p->cr->waiting, ls->client, &ls->link);
		ch->waiting--;
		break;
	case LEASE_CONNECTING:
		lease_detach(p->ep); /* which goes back when the helper has answered */
		ch->waiting--;
		break;
	case LEASE_READY:
	case LEASE_DECLINED:
		list_del(&ls->link);
		break;
	case LEASE_HELD:
		check(!"a lease that was granted is put, not cancelled");
	}
	release(ls);
}

void
chan_lease_put(struct chan *ch, struct chan_lease *ls)
{
	if (!ls || lease_of(ls)->state == LEASE_NONE)
		return;
	/* A destructor takes what it is given: one that still waits stops waiting. */
	if (lease_of(ls)->state != LEASE_HELD) {
		chan_lease_cancel(ch, ls);
		return;
	}
	check(lease_of(ls)->cr->ch == ch);
	check(ls->outstanding == 0);
	release(ls);
}

void
lease_error(struct chan *ch, struct chan_lease *ls)
{
	if (ls->failed)
		return;
	ls->failed = true;
	op_cancel_queue(ch, ls);
}

void
chan_lease_fail(struct chan *ch, struct chan_lease *ls)
{
	struct lease *p = lease_of(ls);

	if (p->state != LEASE_HELD || ls->failed)
		return;
	lease_error(ch, ls);
	/* With nothing outstanding the queue pair is as good as new. */
	if (p->ep && p->ep->outstanding > 0)
		ep_fail(p->ep);
}
