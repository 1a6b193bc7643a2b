/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a request has taken too long, and what that means by how far it got (protocol.md 4.7).  A suspended
 * connection has no time-out of libmicrohttpd's: these are all there are.  The core's thread.
 */
#include "req/machine.h"

#include "base/clock.h"

#define GIVE_UP_NS (NS_PER_S) /* what the store has looked up for so long does not come soon */

static uint64_t
next_deadline(const struct req *rq)
{
	uint64_t progress = rq->xfer.pool ? rq->xfer.progress_ns : rq->progress_ns;
	uint64_t at = rq->progress_limit_ns ? progress + rq->progress_limit_ns : UINT64_MAX;

	return at < rq->total_deadline_ns ? at : rq->total_deadline_ns;
}

static void
on_deadline(struct timer *t)
{
	struct req *rq = container_of(t, struct req, deadline);
	uint64_t at = next_deadline(rq);
	bool moving = (rq->phase == PHASE_MOVING && rq->xfer.wire_started) || rq->retried;

	/* A stream whose reader is slow is libmicrohttpd's business (its idle time-out); ours is a disk that
	 * hangs. */
	if (rq->replied && rq->xfer.inflight == 0)
		at = clock_ns() + rq->progress_limit_ns;
	if (at > clock_ns()) {
		timer_arm(rq->rs->env.timers, t, at, on_deadline);
		return;
	}
	/* It waits for something that is looked up, and was told before. */
	if (rq->fault == FAULT_NONE)
		stats_event(rq->rs->env.stats, STATS_DEADLINE_PASSED);
	if (rq->phase == PHASE_COMMIT)
		req_cancel(rq, FAULT_UNAVAILABLE,
			   "The deadline passed during the commit; the object may exist.");
	else if (rq->is_tokened && moving)
		req_cancel(rq, FAULT_TRANSFER, "The deadline passed during the transfer.");
	else if (rq->wants_body && !rq->body_ended && rq->xfer.inflight == 0 && rq->holds == 0 &&
		 !rq->xfer.is_waiting)
		req_cancel(rq, FAULT_REQUEST_TIMEOUT, NULL);
	else if (!rq->is_tokened && rq->phase == PHASE_MOVING)
		req_cancel(rq, FAULT_DEADLINE, NULL);
	else
		req_cancel(rq, FAULT_DEADLINE, "The deadline passed before the transfer began.");
	if (rq->holds > 0 && rq->phase == PHASE_COMMIT) {
		/* What it looks up before the change is made: nobody is told, and it would wait as long as the store does. */
		store_give_up(rq->rs->env.store, rq, 0);
	} else if (rq->holds > 0 && !rq->replied) {
		store_give_up(rq->rs->env.store, rq, GIVE_UP_NS);
		timer_arm(rq->rs->env.timers, t, clock_ns() + GIVE_UP_NS, on_deadline);
	}
	/* The reply is out already: only the connection can be ended. */
	if (rq->replied && rq->reply.body == REPLY_STREAM && !rq->ended)
		rq->rs->env.ops->abort(rq->conn);
}

/* item 97: ended so early that a flush that stays away (chan/repair.c: 100 ms) and the linger have their time
 * before the client expects its answer; of short limits a tenth. */
static uint64_t
scality_limit_ns(const struct req *rq)
{
	uint64_t total = rq->rs->env.conf->limits.scality_total_ns;
	uint64_t spare = 110 * NS_PER_MS + rq->rs->env.conf->rdma.linger_ns;

	return total - (spare < total / 10 ? spare : total / 10);
}

void
req_deadlines(struct req *rq, uint64_t len)
{
	const struct conf *c = rq->rs->env.conf;

	rq->total_deadline_ns = UINT64_MAX;
	rq->answer_by_ns = UINT64_MAX;
	rq->progress_limit_ns = c->limits.s3_progress_ns;
	if (rq->is_tokened && rq->listen->dialect == DIALECT_SCALITY) {
		rq->total_deadline_ns = rq->began_ns + scality_limit_ns(rq);
		rq->answer_by_ns = rq->began_ns + c->limits.scality_total_ns;
		rq->progress_limit_ns = 0;
	} else if (rq->is_tokened) {
		rq->total_deadline_ns = rq->began_ns + c->limits.s3_total_ns +
					len / c->limits.s3_rate * NS_PER_S +
					len % c->limits.s3_rate * NS_PER_S / c->limits.s3_rate;
	}
	timer_arm(rq->rs->env.timers, &rq->deadline, next_deadline(rq), on_deadline);
}
