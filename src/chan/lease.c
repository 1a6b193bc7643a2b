/*
 * Leases: a channel towards one target, from first post to last completion (item 30).  Called by xfer/ and
 * req/ on the core.
 *
 *   get --> AH (a helper makes the handle) --> QUEUED (all channels busy) --> READY --> HELD --> put
 *     \___________________________________________\____________________________/
 *
 * QUEUED: for a channel of that rail; clients take turns.
 * READY: granted, and done() is due.  Who waits for a handle is not in the queue yet, so a target that does
 * not answer delays nobody.  An initiator goes back to the pool when its lease is put or, after an error, by
 * way of repair.c.
 */
#define LOG_MODULE "chan"
#include "chan/chan_int.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

static void
count(_Atomic uint64_t *n)
{
	atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

static void
set_waiting(struct chan *ch, int by)
{
	ch->waiting += by;
	atomic_store_explicit(&ch->stats.waiting, ch->waiting, memory_order_relaxed);
}

static int
decline(struct chan *ch, struct chan_lease *ls, enum chan_reason reason)
{
	ls->reason = reason;
	ls->result = -EOPNOTSUPP;
	count(&ch->stats.declines[reason]);
	return ls->result;
}

static void
set_leased(struct chan_rail *cr, int by)
{
	struct chan *ch = cr->ch;

	cr->leased += by;
	ch->leased += by;
	atomic_store_explicit(&ch->stats.leased, ch->leased, memory_order_relaxed);
}

/* A free channel becomes this lease's. */
static void
take(struct chan_rail *cr, struct chan_lease *ls)
{
	struct list *l = list_pop(&cr->free);
	struct chan_dci *dci = container_of(l, struct chan_dci, free);

	check(l);
	check(list_empty(&dci->posted));
	check(dci->outstanding == 0);
	dci_set_state(dci, DCI_LEASED);
	dci->lease = ls;
	lease_of(ls)->dci = dci;
	ls->result = 0;
	ls->reason = CHAN_OK;
	set_leased(cr, 1);
	count(&cr->ch->stats.leases);
}

static bool
can_take(const struct chan_rail *cr)
{
	return !list_empty(&cr->free) && cr->leased < cr->lease_max;
}

static void
give_back_ah(struct lease *p)
{
	if (p->ah)
		rdma_ah_put(p->cr->rail, p->ah);
	p->ah = NULL;
}

/* done() is due, from chan_poll() or the mailbox. */
static void
make_ready(struct chan *ch, struct chan_lease *ls, enum lease_state state)
{
	lease_of(ls)->state = state;
	list_push_tail(&ch->ready, &ls->link);
	chan_ring(ch);
}

void
lease_grant_waiting(struct chan_rail *cr)
{
	while (can_take(cr) && !fair_empty(&cr->waiting)) {
		struct chan_lease *ls = container_of(fair_pop(&cr->waiting), struct chan_lease, link);

		set_waiting(cr->ch, -1);
		take(cr, ls);
		make_ready(cr->ch, ls, LEASE_READY);
	}
}

void
lease_decline_waiting(struct chan_rail *cr, enum chan_reason reason)
{
	for (struct list *l; (l = fair_pop(&cr->waiting));) {
		struct chan_lease *ls = container_of(l, struct chan_lease, link);

		set_waiting(cr->ch, -1);
		give_back_ah(lease_of(ls));
		decline(cr->ch, ls, reason);
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

/* --- address handles --- */

/* The helper's answer, on the core. */
static void
on_ah_back(struct msg *m)
{
	struct chan_wait *w = container_of(m, struct chan_wait, back);
	struct chan *ch = w->ch;
	struct chan_rail *cr = w->cr;
	struct chan_lease *ls = w->lease;
	struct lease *p;

	ch->waits_out--;
	list_push_tail(&ch->waits_free, &w->link);
	if (!ls) {
		if (w->ah.ah)
			rdma_ah_put(cr->rail, w->ah.ah);
		return;
	}
	p = lease_of(ls);
	p->wait = NULL;
	p->ah = w->ah.ah;
	if (w->ah.result < 0 || rdma_rail_state(cr->rail) != RAIL_UP || rail_is_hopeless(cr)) {
		set_waiting(ch, -1);
		give_back_ah(p);
		decline(ch, ls,
			rdma_rail_state(cr->rail) != RAIL_UP ? CHAN_NO_RAIL
			: w->ah.result < 0                   ? CHAN_UNREACHABLE
							     : CHAN_NO_CHANNEL);
		make_ready(ch, ls, LEASE_DECLINED);
		return;
	}
	p->state = LEASE_QUEUED;
	fair_push(&cr->waiting, ls->client, &ls->link);
	lease_grant_waiting(cr);
}

void
on_ah(struct rdma_ah_wait *ahw)
{
	struct chan_wait *w = container_of(ahw, struct chan_wait, ah);

	chan_answer(w->ch, &w->back, on_ah_back);
}

/* > 0: the lease has its handle; 0: it waits; < 0: it does not get one. */
static int
get_ah(struct chan *ch, struct chan_lease *ls, const struct rdma_ah_key *key)
{
	struct lease *p = lease_of(ls);
	struct list *l = list_pop(&ch->waits_free);
	struct chan_wait *w;
	int r;

	if (!l)
		return -EAGAIN;
	w = container_of(l, struct chan_wait, link);
	*w = (struct chan_wait){ .ah.done = on_ah, .ch = ch, .cr = p->cr, .lease = ls };
	ch->waits_out++; /* before: the answer may come at once */
	atomic_fetch_add(&ch->answers_due, 1);
	r = rdma_ah_get(p->cr->rail, key, &w->ah, &p->ah);
	if (r != 0) {
		ch->waits_out--;
		atomic_fetch_sub(&ch->answers_due, 1);
		list_push_head(&ch->waits_free, &w->link);
	} else {
		p->wait = w;
	}
	return r;
}

/* --- what others call --- */

bool
chan_serves(const struct chan *ch, enum token_kind kind)
{
	return kind == TOKEN_DC; /* the one transport that there is */
}

static int
find_rail(struct chan *ch, struct chan_lease *ls, const struct token *tok, const struct sockaddr *local,
	  struct rail_route *ret_route)
{
	struct chan_rail *cr;

	if (!chan_serves(ch, tok->kind))
		return decline(ch, ls, CHAN_FAMILY);
	if (ch->mode != CHAN_MODE_ON)
		return decline(ch, ls, ch->mode == CHAN_MODE_NONE ? CHAN_DISABLED : CHAN_NO_DEVICE);
	switch (rdma_route(ch->rdma, tok, local, ret_route)) {
	case 0:
		break;
	case -EINVAL:
		return ls->result = -EINVAL;
	case -ENETUNREACH:
		return decline(ch, ls, CHAN_NEEDS_ROUTER);
	default:
		return decline(ch, ls, CHAN_NO_RAIL);
	}
	cr = &ch->rail[ret_route->rail];
	return rail_is_hopeless(cr) ? decline(ch, ls, CHAN_NO_CHANNEL) : 0;
}

int
chan_lease_get(struct chan *ch, struct chan_lease *ls, const struct token *tok, const struct sockaddr *local)
{
	struct lease *p = lease_of(ls);
	struct rail_route route;
	struct chan_rail *cr;
	int r;

	check(p->state == LEASE_NONE);
	check(ls->done);
	ls->outstanding = 0;
	ls->failed = ls->flushed_writes = false;
	ls->status = WCS_SUCCESS;
	r = find_rail(ch, ls, tok, local, &route);
	if (r < 0)
		return r;
	cr = &ch->rail[route.rail];
	*p = (struct lease){
		.cr = cr, .addr = tok->addr, .size = tok->size, .rkey = tok->rkey, .dctn = tok->dctn
	};
	list_init(&p->queue);
	r = get_ah(ch, ls, &route.key);
	if (r == -EAGAIN)
		return ls->result = -EAGAIN;
	if (r < 0)
		return decline(ch, ls, CHAN_UNREACHABLE);
	if (r > 0 && fair_empty(&cr->waiting) && can_take(cr)) {
		take(cr, ls);
		p->state = LEASE_HELD;
		return 1;
	}
	if (ch->waiting >= ch->queue_max) {
		give_back_ah(p);
		if (p->wait)
			p->wait->lease = NULL;
		p->wait = NULL;
		return ls->result = -EAGAIN;
	}
	set_waiting(ch, 1);
	count(&ch->stats.waits);
	p->state = r == 0 ? LEASE_AH : LEASE_QUEUED;
	if (r > 0)
		fair_push(&cr->waiting, ls->client, &ls->link);
	return 0;
}

void
lease_detach(struct chan_dci *dci)
{
	if (!dci->lease)
		return;
	lease_of(dci->lease)->dci = NULL;
	dci->lease = NULL;
	set_leased(dci->cr, -1);
}

/* Its channel and its handle, back to where they came from. */
static void
release(struct chan_lease *ls)
{
	struct lease *p = lease_of(ls);
	struct chan_dci *dci = p->dci;

	give_back_ah(p);
	p->state = LEASE_NONE;
	if (dci) {
		check(dci->state == DCI_LEASED);
		check(dci->outstanding == 0);
		lease_detach(dci);
		dci_to_pool(dci);
	}
}

void
chan_lease_cancel(struct chan *ch, struct chan_lease *ls)
{
	struct lease *p = lease_of(ls);

	switch (p->state) {
	case LEASE_NONE:
		return;
	case LEASE_AH:
		p->wait->lease = NULL;
		set_waiting(ch, -1);
		break;
	case LEASE_QUEUED:
		fair_del(&p->cr->waiting, ls->client, &ls->link);
		set_waiting(ch, -1);
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
	if (p->dci && p->dci->outstanding > 0)
		dci_fail(p->dci);
}
