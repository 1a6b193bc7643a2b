/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a request's work: what is in flight comes to its end, then the reply is put together.  Every
 * request goes through req_reply_step(), one that failed through drain() before.  The core's thread.
 */
#include "req/machine.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>

static void
on_linger(struct timer *t)
{
	req_wake(container_of(t, struct req, linger));
}

/*
 * Nothing may touch the client's window when the reply leaves (items 27, 30).  What the disk has touches our
 * buffers alone: the reply does not wait for a disk that may hang, but the request stays until it is over.
 */
enum verdict
drain(struct req *rq)
{
	if (rq->xfer.pool && rq->xfer.mode != XFER_NONE && !rq->xfer.ended && !rq->disk_has &&
	    xfer_cancel(&rq->xfer, -ECANCELED) == 0) {
		if (rq->xfer.wire_bytes > 0 || rq->lease.outstanding > 0)
			return req_wait(rq, "drain", drain);
		rq->disk_has = rq->detached = true;
		rq->holds++;
	}
	check(rq->xfer.inflight == 0 || rq->disk_has);
	if (rq->lease_held) {
		bool flushed = rq->lease.flushed_writes;

		check(rq->lease.outstanding == 0);
		lease_release(rq);
		if (flushed && rq->rs->env.conf->rdma.linger_ns) {
			uint64_t at = clock_ns() + rq->rs->env.conf->rdma.linger_ns;

			timer_arm(rq->rs->env.timers, &rq->linger,
				  at < rq->answer_by_ns ? at : rq->answer_by_ns, on_linger);
			return req_wait(rq, "linger", drained);
		}
	}
	return req_go(rq, drained);
}

enum verdict
drained(struct req *rq)
{
	if (rq->linger.armed)
		return req_wait(rq, "linger", drained);
	if (rq->fault == FAULT_FULL)
		space_refused(rq);
	return req_go(rq, req_reply_step);
}

/* The reply is known: resources that nobody needs for sending go back before it leaves. */
enum verdict
req_reply_step(struct req *rq)
{
	enum outcome_kind kind = rq->fault != FAULT_NONE ? OUT_ERROR
				 : rq->declined_2xx      ? OUT_DECLINED_2XX
				 : rq->declined          ? OUT_DECLINED
							 : OUT_DONE;

	/* A deadline that passes before the first byte moved is 503, whatever the transfer was about to do
	 * (4.7). */
	if (rq->fault == FAULT_TRANSFER || (rq->fault == FAULT_DAMAGED && rq->xfer.wire_started))
		kind = OUT_FAILED;
	rq->phase = PHASE_REPLY;
	if (!rq->ended)
		reply_build(rq, kind);
	if (rq->reply.body != REPLY_STREAM) {
		timer_disarm(rq->rs->env.timers, &rq->deadline);
		/* A detached commit still has the last piece, a hung disk any; but a store that lets go has neither. */
		if (rq->holds == 0 ||
		    (rq->detached && !rq->disk_has && store_limits(rq->rs->env.store)->lets_go))
			xfer_fini(&rq->xfer);
	}
	rq->replied = true;
	rq->mark.since_ns = 0;
	rq->reply_ns = clock_ns();
	return REQ_STOP;
}

enum verdict
req_reply_xml(struct req *rq)
{
	if (!text_ok(&rq->out))
		return req_fail(rq, FAULT_BUSY, NULL);
	rq->reply.body = REPLY_TEXT;
	rq->reply.text = rq->out.p;
	rq->reply.len_bytes = rq->out.len;
	return req_go(rq, req_reply_step);
}
