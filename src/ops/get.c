/*
 * GET and HEAD: one object (or a range of it) into the client's memory, or into the HTTP body.
 *
 *   start -> opened -> [ticket -> lease] -> leased -> pushed -> reply
 *                 \                  \-> declined -> over_http, or reply
 *                  \-> over_http -> ticketed -> first bytes -> reply (stream)
 *      any of them -> req_fail() -> drain -> reply
 *
 * An arrow goes over a wait where the name behind it says so: opened, leased, pushed, ticketed.
 */
#include "ops/ops.h"
#include "req/machine.h"

#include "base/check.h"

#include <errno.h>

static enum verdict get_opened(struct req *rq);
static enum verdict get_pushed(struct req *rq);
static enum verdict get_http_ticketed(struct req *rq);
static enum verdict get_first_bytes(struct req *rq);

enum verdict
get_start(struct req *rq)
{
	struct store_key k = req_key(rq);

	return req_open(rq, &k, get_opened);
}

/*
 * A part of what was uploaded in parts, a range, or all of it.  An object of one PUT is its only part.  Parts
 * count from 1 in their order, whatever their numbers were: clients ask for 1 to x-amz-mp-parts-count.
 */
static enum fault
which_bytes(struct req *rq)
{
	const struct target *t = &rq->target;
	struct store_part part;

	if (!t->part_number)
		return range_resolve(&t->range, rq->obj.size_bytes, &rq->off, &rq->len, &rq->partial) < 0
			       ? FAULT_RANGE
			       : FAULT_NONE;
	rq->partial = true;
	rq->off = 0;
	rq->len = rq->obj.size_bytes;
	if (rq->obj.part_nr == 0)
		return t->part_number == 1 ? FAULT_NONE : FAULT_INVALID_PART_NUMBER;
	if (store_obj_part_at(&rq->obj, t->part_number - 1, &part) < 0)
		return FAULT_INVALID_PART_NUMBER;
	rq->off = part.off_bytes;
	rq->len = part.size_bytes;
	return FAULT_NONE;
}

/* Which bytes: the range against the object's size, then (tokened) against the window (protocol.md 4.3). */
static enum verdict
get_range(struct req *rq)
{
	const struct target *t = &rq->target;
	const char *why;
	enum fault f;
	bool ranged;

	f = which_bytes(rq);
	if (f != FAULT_NONE)
		return req_fail(rq, f, NULL);
	ranged = rq->partial;
	if (!rq->is_tokened)
		return req_go(rq, get_over_http);
	if (!chan_serves(rq->rs->env.chan, t->token.kind))
		return req_go(rq, lease_start);
	if (rq->len == 0)
		return req_go(rq, req_reply_step); /* a zero-byte object moves nothing (item 64) */
	if (token_check_move(&t->token, &why) < 0)
		return req_fail(rq, FAULT_BAD_TOKEN, why);
	if (rq->len > t->token.size) {
		if (!ranged && !dialect_wire_clips(t->wire) && rq->rs->env.conf->rdma.short_get_reject)
			return req_fail(rq, FAULT_BAD_REQUEST,
					"The object is larger than the token's window.");
		rq->len = t->token.size;
		/* Scality's clients without Range want 200 for what fits (4.3); everybody else must see that
		 * it is a part. */
		rq->partial = ranged || !dialect_wire_clips(t->wire);
	}
	req_deadlines(rq, rq->len);
	return req_go(rq, lease_start);
}

static enum verdict
get_opened(struct req *rq)
{
	char etag[48];
	size_t len;
	enum fault f;

	if (rq->obj.op.result < 0)
		return req_fail(rq, fault_of(rq->obj.op.result), NULL);
	rq->etag = rq->obj.meta.etag;
	len = etag_text(&rq->etag, etag);
	f = dialect_conditions(&rq->target, etag, len, rq->obj.meta.mtime_ns / 1000000000u);
	if (f != FAULT_NONE)
		return req_fail(rq, f, NULL);
	return req_go(rq, get_range);
}

/* ---- by RDMA ---- */

enum verdict
get_leased(struct req *rq)
{
	rq->phase = PHASE_MOVING;
	xfer_push(&rq->xfer, &rq->obj, rq->off, rq->len, &rq->lease, rq->rs->env.conf->rdma.inflight_bytes);
	return req_go(rq, get_pushed);
}

static enum verdict
get_pushed(struct req *rq)
{
	if (!rq->xfer.ended)
		return req_wait(rq, "push", get_pushed);
	/* Once we reply the client may reuse its memory. */
	check(rq->xfer.inflight == 0);
	check(rq->lease.outstanding == 0);
	rq->rdma_bytes = rq->xfer.moved;
	if (rq->xfer.result == -EBADMSG)
		return req_fail(rq, FAULT_DAMAGED, NULL);
	if (rq->xfer.result < 0) {
		rq->errno_seen = rq->xfer.result;
		return req_fail(rq, rq->lease.failed ? FAULT_TRANSFER : fault_of(rq->xfer.result), NULL);
	}
	check(rq->xfer.moved == rq->len);
	lease_release(rq);
	return req_go(rq, req_reply_step);
}

/* ---- over HTTP ---- */

enum verdict
get_declined(struct req *rq)
{
	enum fault f;

	rq->declined = true;
	stats_decline(rq->rs->env.stats, (int)rq->reason);
	xfer_fini(&rq->xfer);
	/* Where a decline is a 2xx the data comes with it; where clients take any 2xx for success it is a 501
	 * (4.2). */
	if (!dialect_outcome(rq->target.wire, rq->target.op, OUT_DECLINED, false, FAULT_NONE).body_data)
		return req_go(rq, req_reply_step);
	/* What a window would have clipped, a body need not. */
	f = which_bytes(rq);
	if (f != FAULT_NONE)
		return req_fail(rq, f, NULL);
	rq->total_deadline_ns = UINT64_MAX;
	rq->progress_limit_ns = rq->rs->env.conf->limits.s3_progress_ns;
	return req_go(rq, get_over_http);
}

enum verdict
get_over_http(struct req *rq)
{
	int r;

	rq->reply.len_bytes = rq->len;
	if (rq->target.op == OP_HEAD_OBJECT) {
		rq->reply.body = REPLY_LENGTH_ONLY;
		return req_go(rq, req_reply_step);
	}
	if (rq->len == 0)
		return req_go(rq, req_reply_step);
	rq->phase = PHASE_QUEUED;
	xfer_init(&rq->xfer, &rq->rs->http_pieces, rq->rs->env.store, rq->rs->env.chan);
	r = xfer_ticket(&rq->xfer);
	if (r < 0)
		return req_fail(rq, FAULT_BUSY, NULL);
	return r > 0 ? req_go(rq, get_http_ticketed) : req_wait(rq, "ticket", get_http_ticketed);
}

static enum verdict
get_http_ticketed(struct req *rq)
{
	if (!rq->xfer.have_ticket)
		return req_wait(rq, "ticket", get_http_ticketed);
	rq->phase = PHASE_MOVING;
	rq->reply.body = REPLY_STREAM;
	xfer_serve(&rq->xfer, &rq->obj, rq->off, rq->len);
	return req_go(rq, get_first_bytes);
}

/* The status line waits for the first bytes: a damaged object can still be an honest 500. */
static enum verdict
get_first_bytes(struct req *rq)
{
	if (rq->xfer.result < 0) {
		if (rq->xfer.inflight > 0)
			return req_wait(rq, "read", get_first_bytes);
		rq->reply.body = REPLY_EMPTY;
		return req_fail(rq, fault_of(rq->xfer.result), NULL);
	}
	if (!xfer_has_bytes(&rq->xfer))
		return req_wait(rq, "read", get_first_bytes);
	return req_go(rq, req_reply_step);
}
