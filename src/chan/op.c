/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: posting within the window, waiting for a place, completion dispatch.  On the core.
 *
 * A work request carries (endpoint, sequence number), not a pointer: a completion that comes twice, or after
 * its queue pair was destroyed, then matches nothing and harms nobody.  Completions of one endpoint come in
 * order, but each finds its operation by number, so that a lost one leaves the others sound.
 */
#define LOG_MODULE "chan"
#include "chan/chan_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "rdma/work.h"

/* The caller hears of it.  Not from inside a start call. */
static void
finish(struct chan *ch, struct chan_op *op)
{
	struct chan_lease *ls = op->lease;

	check(op->magic == OP_MAGIC);
	check(ls->outstanding > 0);
	op->magic = 0;
	op->posted = false;
	ls->outstanding--;
	op->done(op);
}

static void
set_status(struct chan_op *op, enum rdma_status status)
{
	op->status = status;
	op->result = rdma_status_result(status);
}

/* To the list of those whose done() is due. */
static void
end_later(struct chan *ch, struct chan_op *op, enum rdma_status status)
{
	set_status(op, status);
	list_push_tail(&ch->ended, &op->link);
	chan_wake(ch);
}

int
op_run_ended(struct chan *ch)
{
	int n = 0;

	for (struct list *l; (l = list_pop(&ch->ended)); n++)
		finish(ch, container_of(l, struct chan_op, link));
	return n;
}

void
op_cancel_queue(struct chan *ch, struct chan_lease *ls)
{
	for (struct list *l; (l = list_pop(&lease_of(ls)->queue));)
		end_later(ch, container_of(l, struct chan_op, link), WCS_FLUSHED);
}

/* ---- posting ---- */

static int
post_one(struct chan_ep *ep, struct chan_lease *ls, struct chan_op *op)
{
	const struct lease *p = lease_of(ls);
	struct rdma_sge sge = { .mem = op->mem,
				.len = op->len_bytes,
				.region = ep->cr->ch->region_map[op->region] };
	struct rdma_wr wr = {
		.wr_id = (uint64_t)ep->nr << 32 | ep->seq,
		.is_write = op->is_write,
		.target = &p->target,
		.rkey = p->rkey,
		.remote = op->remote,
		.sge = &sge,
		.sge_nr = 1,
	};
	int r = rdma_ep_post(ep->rdma, &wr);

	if (r < 0)
		return r;
	op->seq = ep->seq++;
	list_push_tail(&ep->posted, &op->link);
	ep->outstanding++;
	ep->reads += !op->is_write;
	ep->cr->outstanding++;
	ep->cr->ch->outstanding++;
	return 0;
}

/* Posts what waits on this lease, in order, as far as there is room. */
static void
post_waiting(struct chan *ch, struct chan_lease *ls)
{
	struct lease *p = lease_of(ls);

	while (!list_empty(&p->queue)) {
		struct chan_op *op = container_of(list_first(&p->queue), struct chan_op, link);
		struct chan_ep *ep = p->ep;
		int r;

		if (!rdma_has_room(ep_limits(ep), ep->outstanding, ep->reads, op->is_write))
			return;
		list_del(&op->link);
		r = post_one(ep, ls, op);
		if (r == 0)
			continue;
		/* Credits were there, so the queue pair is not what we think it is. */
		log_limited(LOG_WARN, "channel %u of core %d takes no work: errno %d", ep->nr, ch->core, -r);
		end_later(ch, op, WCS_GENERAL);
		if (ls->status == WCS_SUCCESS)
			ls->status = WCS_GENERAL;
		lease_error(ch, ls);
		ep_fail(ep);
		return;
	}
}

static void
start(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
      uint32_t len, uint64_t at, bool is_write)
{
	struct lease *p = lease_of(ls);

	check(p->state == LEASE_HELD);
	check(p->cr->ch == ch);
	check(op->done);
	check(!op->posted);
	check(len > 0);
	check(len <= RDMA_WR_BYTES_MAX);
	check((uint64_t)buf_off + len <= (uint64_t)buf->cap_bytes + BUF_SLACK_BYTES);
	check(buf->region < ch->region_nr);
	/* item 18: inside the window, by arithmetic that cannot overflow. */
	check(at <= p->size);
	check(len <= p->size - at);
	check(ls->outstanding < ch->pieces_max);
	op->lease = ls;
	op->len_bytes = len;
	op->is_write = is_write;
	op->posted = true;
	op->magic = OP_MAGIC;
	op->mem = buf->mem + buf_off;
	op->region = buf->region;
	op->remote = p->addr + at;
	op->result = 0;
	op->wc_status = 0;
	op->vendor_err = 0;
	ls->outstanding++;
	if (ls->failed) {
		end_later(ch, op, WCS_FLUSHED);
		return;
	}
	list_push_tail(&p->queue, &op->link);
	post_waiting(ch, ls);
}

void
chan_push(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
	  uint32_t len, uint64_t at)
{
	start(ch, ls, op, buf, buf_off, len, at, true);
}

void
chan_pull(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
	  uint32_t len, uint64_t at)
{
	start(ch, ls, op, buf, buf_off, len, at, false);
}

/* ---- completions ---- */

/* One poll's counts: added to the rail's shared ones at the end, once. */
struct tally {
	uint64_t status[WCS_NR], read_bytes, written_bytes, read_ops, write_ops;
};

static void
add(_Atomic uint64_t *to, uint64_t n)
{
	if (n)
		atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static void
tally_flush(const struct tally *t, struct rdma_rail_stats *st)
{
	for (int i = 0; i < WCS_NR; i++)
		add(&st->status[i], t->status[i]);
	add(&st->read_bytes, t->read_bytes);
	add(&st->written_bytes, t->written_bytes);
	add(&st->read_ops, t->read_ops);
	add(&st->write_ops, t->write_ops);
}

/* The operation is off the wire: its place is free, its lease knows how it went; who posted it hears now. */
void
op_end(struct chan *ch, struct chan_op *op, enum rdma_status status)
{
	struct chan_lease *ls = op->lease;
	struct chan_ep *ep = lease_of(ls)->ep;

	check(op->magic == OP_MAGIC);
	list_del(&op->link);
	ep->outstanding--;
	ep->reads -= !op->is_write;
	ep->cr->outstanding--;
	ch->outstanding--;
	set_status(op, status);
	if (status != WCS_SUCCESS) {
		if (ls->status == WCS_SUCCESS)
			ls->status = status;
		if (op->is_write)
			ls->flushed_writes = true; /* item 30 */
		lease_error(ch, ls);
		if (ep->state == EP_LEASED)
			ep_fail(ep);
	} else if (!ls->failed) {
		post_waiting(ch, ls);
	}
	/* Before done(), which may put the lease. */
	if (ep->outstanding == 0 && ep->state == EP_DRAINING)
		ep_drained(ep);
	else if (ep->outstanding == 0 && ep->state == EP_DESTROYING)
		lease_detach(ep);
	finish(ch, op);
}

static void
log_bad(const struct chan_op *op, const struct chan_ep *ep, const struct rdma_completion *c)
{
	const char *verb = op->is_write ? "WRITE" : "READ";

	if (c->status == WCS_FLUSHED)
		return;
	if (c->status == WCS_LOCAL_PROT) {
		/* Our own buffer or length: nothing a client can cause. Soft-RoCE says the same of packets that
		 * it cannot send, after the loss of its link or address. */
		log_limited(LOG_ERROR,
			    "channel %u: %s of %u bytes: local protection error (vendor 0x%x): this is our "
			    "own mistake, or Soft-RoCE without a route",
			    ep->nr, verb, op->len_bytes, c->vendor_err);
		return;
	}
	log_limited(LOG_INFO, "channel %u: %s of %u bytes: %s (vendor 0x%x)%s", ep->nr, verb, op->len_bytes,
		    rdma_status_name[c->status], c->vendor_err, rdma_status_hint(c->status));
}

static void
dispatch(struct chan_rail *cr, const struct rdma_completion *c, struct tally *t)
{
	uint64_t nr = c->wr_id >> 32;
	uint32_t seq = (uint32_t)c->wr_id;
	struct chan_op *op = NULL;
	struct chan_ep *ep;

	t->status[c->status]++;
	if (nr < (uint64_t)cr->ep_nr) {
		list_for_each(l, &cr->ep[nr].posted)
		{
			op = container_of(l, struct chan_op, link);
			if (op->seq == seq)
				break;
			op = NULL;
		}
	}
	if (!op) {
		log_limited(LOG_WARN, "a completion (%s) of nothing that is outstanding: ignored",
			    rdma_status_name[c->status]);
		return;
	}
	ep = &cr->ep[nr];
	op->wc_status = c->wc_status;
	op->vendor_err = c->vendor_err;
	if (c->status == WCS_SUCCESS) {
		*(op->is_write ? &t->written_bytes : &t->read_bytes) += op->len_bytes;
		*(op->is_write ? &t->write_ops : &t->read_ops) += 1;
	} else {
		log_bad(op, ep, c);
		rdma_heed_status(cr->rail, &lease_of(op->lease)->target, c->status);
	}
	op_end(cr->ch, op, c->status);
}

/* Polls one completion queue of the rail until it is empty.  Returns the number of completions. */
static int
queue_poll(struct chan_rail *cr, struct rdma_cq *cq)
{
	struct rdma_completion wc[64];
	int batch = cr->ch->poll_batch < 64 ? cr->ch->poll_batch : 64;
	struct tally t = { 0 };
	int total = 0, n;

	/* Until it is empty: an armed queue makes no event for what was in it already.  Bounded: done() may
	 * post more. */
	do {
		n = rdma_cq_poll(cq, wc, batch);
		if (n < 0) {
			rdma_rail_broken(cr->rail, "a completion queue cannot be polled");
			break;
		}
		for (int i = 0; i < n; i++)
			dispatch(cr, &wc[i], &t);
		total += n;
	} while (n == batch && total < 1024);
	if (total)
		tally_flush(&t, rdma_rail_stats(cr->rail));
	return total;
}

/* Polls the connections in use. */
static int
conn_poll(struct chan_rail *cr)
{
	int total = 0, n = 0;

	list_for_each(l, &cr->used) n++;
	/* What completes may put its lease, and another be granted meanwhile: each has its turn once. */
	for (struct list *l; n > 0 && (l = list_pop(&cr->used)); n--) {
		struct chan_ep *ep = container_of(l, struct chan_ep, free);

		list_push_tail(&cr->used, l);
		if (ep->cq && ep->outstanding > 0)
			total += queue_poll(cr, ep->cq);
	}
	return total;
}

int
rail_poll(struct chan_rail *cr)
{
	cr->must_poll = false;
	if (has_connections(cr))
		return conn_poll(cr);
	/* Without a queue what is outstanding ends when its context is closed. */
	return has_cq(cr) ? queue_poll(cr, cr->cq) : 0;
}
