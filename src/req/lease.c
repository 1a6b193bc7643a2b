/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Getting what a tokened transfer needs, in the one order there is: ticket, then channel.  The pieces come in
 * xfer/. Ends in the step rq->leased, in the step rq->not_leased, or in a fault.
 */
#include "req/machine.h"

#include "base/check.h"

#include <errno.h>

static enum verdict leased(struct req *rq);

static void
on_lease(struct chan_lease *ls)
{
	struct req *rq = container_of(ls, struct req, lease);

	rq->lease_waiting = false;
	if (ls->result == 0)
		rq->lease_held = true;
	req_wake(rq);
}

static enum verdict
lease_answer(struct req *rq, int r)
{
	/* Bytes moved already: it failed, and is neither declined nor asked to come again (4.7). */
	if (r < 0 && rq->retried)
		return req_fail(rq, FAULT_TRANSFER, NULL);
	switch (r) {
	case 0:
		return req_go(rq, rq->leased);
	case -EOPNOTSUPP:
		rq->reason = rq->lease.reason;
		return req_go(rq, rq->not_leased);
	case -EINVAL:
		return req_fail(rq, FAULT_BAD_TOKEN,
				"The token's address form does not fit the server's network.");
	case -EAGAIN:
		return req_fail(rq, FAULT_BUSY, NULL);
	default:
		return req_fail(rq, FAULT_INTERNAL, NULL);
	}
}

static enum verdict
ticketed(struct req *rq)
{
	int r;

	if (!rq->xfer.have_ticket)
		return req_wait(rq, "ticket", ticketed);
	rq->lease.done = on_lease;
	rq->lease.client = rq->xfer.client;
	rq->lease.must_route = rq->must_route;
	r = chan_lease_get(rq->rs->env.chan, &rq->lease, &rq->target.token, (struct sockaddr *)&rq->local);
	if (r == 0) {
		rq->lease_waiting = true;
		return req_wait(rq, "lease", leased);
	}
	if (r > 0)
		rq->lease_held = true;
	return lease_answer(rq, r > 0 ? 0 : r);
}

static enum verdict
leased(struct req *rq)
{
	if (rq->lease_waiting)
		return req_wait(rq, "lease", leased);
	return lease_answer(rq, rq->lease.result);
}

enum verdict
lease_start(struct req *rq)
{
	int r;

	/* A family that is recognised and not served never reaches the wire, and takes no ticket. */
	if (!chan_serves(rq->rs->env.chan, rq->target.token.kind)) {
		rq->reason = CHAN_FAMILY;
		return req_go(rq, rq->not_leased);
	}
	if (rq->not_connected) {
		rq->reason = CHAN_NOT_CONNECTED;
		return req_go(rq, rq->not_leased);
	}
	if (rq->not_allowed) {
		rq->reason = CHAN_NOT_ALLOWED;
		rdma_say_not_allowed(rq->rs->env.rdma, &rq->rs->env.conf->rdma,
				     rq->target.token.have_gid ? rq->target.token.gid : NULL);
		return req_go(rq, rq->not_leased);
	}
	rq->phase = PHASE_QUEUED;
	xfer_init(&rq->xfer, &rq->rs->pieces, rq->rs->env.store, rq->rs->env.chan);
	r = xfer_ticket(&rq->xfer);
	if (r < 0)
		return req_fail(rq, rq->retried ? FAULT_TRANSFER : FAULT_BUSY, NULL);
	if (r > 0)
		return req_go(rq, ticketed);
	pace_wait(rq->rs);
	return req_wait(rq, "ticket", ticketed);
}

/* Here, and not when the request ends for its client: who guesses keys of memory may be gone before the
 * answer is. */
static void
lease_put(struct req *rq)
{
	if (rq->lease.status == WCS_REM_ACCESS)
		stats_remote_access(rq->rs->env.stats, identity_access_key(&rq->identity));
	chan_lease_put(rq->rs->env.chan, &rq->lease);
}

void
lease_release(struct req *rq)
{
	if (rq->lease_waiting)
		chan_lease_cancel(rq->rs->env.chan, &rq->lease);
	else if (rq->lease_held)
		lease_put(rq);
	rq->lease_waiting = rq->lease_held = false;
}
