/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a traced request says of its steps, one log line each; how long a request spent in which phase; and
 * the configuration that it looks at.  Called by the machine (req.c), on the core's thread.
 *
 * A trace names steps, waits and counts; no key, no token.
 */
#define LOG_MODULE "trace"
#include "req/machine.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_KEPT 64
#define TRACE_LINES 400 /* of one request: a stream that goes on and on */

/* The latest ones; texts are static. */
struct trace_steps {
	int nr; /* in all */
	struct {
		uint64_t us, moved;
		const char *what, *step, *wait;
		int holds, pieces, outstanding;
	} at[STEPS_KEPT];
};

/* ---- configuration ---- */

static void
use_put(struct req_conf *use)
{
	if (use && --use->users == 0)
		use->unused(use);
}

void
reqs_set_conf(struct reqs *rs, struct req_conf *use)
{
	struct req_conf *old = rs->use;

	rs->use = use;
	if (use) {
		use->users++;
		rs->env.conf = use->conf;
		rs->env.keys = use->keys;
	}
	use_put(old);
}

void
req_use_conf(struct req *rq)
{
	rq->use = rq->rs->use;
	if (rq->use)
		rq->use->users++;
}

void
req_drop_conf(struct req *rq)
{
	use_put(rq->use);
	rq->use = NULL;
	free(rq->steps);
	rq->steps = NULL;
}

static void
trace_begin(struct req *rq)
{
	rq->trace_left = TRACE_LINES;
	/* Without memory its lines are logged all the same. */
	if (!rq->steps)
		rq->steps = calloc(1, sizeof *rq->steps);
}

/* ---- phases ---- */

static enum stats_phase
phase_of(const char *wait)
{
	static const struct {
		const char *wait;
		enum stats_phase phase;
	} waits[] = {
		{ "open", STATS_PH_OPEN },     { "list", STATS_PH_OPEN },     { "bucket", STATS_PH_COMMIT },
		{ "ticket", STATS_PH_QUEUE },  { "lease", STATS_PH_QUEUE },   { "push", STATS_PH_WIRE },
		{ "pull", STATS_PH_WIRE },     { "body", STATS_PH_WIRE },     { "linger", STATS_PH_WIRE },
		{ "drain", STATS_PH_WIRE },    { "read", STATS_PH_DISK },     { "write", STATS_PH_DISK },
		{ "commit", STATS_PH_COMMIT }, { "delete", STATS_PH_COMMIT },
	};

	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
		if (strcmp(waits[i].wait, wait) == 0)
			return waits[i].phase;
	}
	return STATS_PH_OPEN;
}

void
req_clock_front(struct req *rq)
{
	rq->mark_ns = clock_ns();
	rq->phase_ns[STATS_PH_AUTH] = rq->mark_ns - rq->began_ns;
}

void
req_clock_wait(struct req *rq)
{
	uint64_t now = clock_ns(), ns = now - rq->mark_ns;
	enum stats_phase ph;

	rq->mark_ns = now;
	if (!rq->was_waiting)
		return;
	ph = phase_of(rq->was_waiting);
	/* A transfer by RDMA waits for both ends: what the wire had none of is the disk's, but for the linger, when it is over. */
	if (ph == STATS_PH_WIRE && rq->lease_held && rq->xfer.lease && rq->xfer.pool) {
		uint64_t wire = xfer_wire_ns(&rq->xfer, now) - rq->wire_seen_ns;

		rq->wire_seen_ns += wire;
		wire = wire < ns ? wire : ns;
		rq->phase_ns[STATS_PH_DISK] += ns - wire;
		ns = wire;
	}
	rq->phase_ns[ph] += ns;
	rq->was_waiting = NULL;
}

void
req_clock_end(const struct req *rq)
{
	struct stats_core *st = rq->rs->env.stats;
	enum stats_transport tr = rq->rdma_bytes ? STATS_RDMA : STATS_HTTP;
	uint64_t first = rq->xfer.first_ns > rq->began_ns ? rq->xfer.first_ns : rq->reply_ns;

	stats_phases(st, tr, rq->phase_ns);
	if (first >= rq->began_ns)
		stats_first_byte(st, rq->target.op, tr, first - rq->began_ns);
}

static bool
trace_takes(struct reqs *rs)
{
	int n;

	if (!rs->env.trace_next || atomic_load_explicit(rs->env.trace_next, memory_order_relaxed) <= 0)
		return false;
	n = atomic_fetch_sub(rs->env.trace_next, 1);
	if (n > 0)
		return true;
	atomic_fetch_add(rs->env.trace_next, 1);
	return false;
}

void
req_clock_begin(struct req *rq)
{
	rq->mark_ns = rq->began_ns;
	rq->step_name = "front";
	if (trace_takes(rq->rs))
		trace_begin(rq);
}

/* ---- tracing ---- */

static struct req *
find(const struct reqs *rs, const char *id)
{
	list_for_each(l, &rs->live)
	{
		struct req *rq = container_of(l, struct req, link);
		char text[17];

		req_id_text(rq, text);
		if (strcmp(text, id) == 0)
			return rq;
	}
	return NULL;
}

bool
reqs_trace(struct reqs *rs, const char *id)
{
	struct req *rq = find(rs, id);

	if (!rq)
		return false;
	trace_begin(rq);
	trace_line(rq, "from here");
	return true;
}

bool
reqs_show(const struct reqs *rs, const char *id, void (*line)(void *cookie, const char *text), void *cookie)
{
	const struct req *rq = find(rs, id);
	const struct trace_steps *ts = rq ? rq->steps : NULL;
	char text[REQ_LINE_BYTES];

	if (!rq)
		return false;
	req_line(rq, text, sizeof text);
	line(cookie, text);
	for (int i = ts && ts->nr > STEPS_KEPT ? ts->nr - STEPS_KEPT : 0; ts && i < ts->nr; i++) {
		int at = i % STEPS_KEPT;

		/* "from here" is two words. */
		snprintf(text, sizeof text,
			 "us=%llu did=%s step=%s%s%s holds=%d pieces=%d outstanding=%d moved=%llu",
			 (unsigned long long)ts->at[at].us,
			 strcmp(ts->at[at].what, "from here") == 0 ? "traced" : ts->at[at].what,
			 ts->at[at].step, ts->at[at].wait ? " for=" : "",
			 ts->at[at].wait ? ts->at[at].wait : "", ts->at[at].holds, ts->at[at].pieces,
			 ts->at[at].outstanding, (unsigned long long)ts->at[at].moved);
		line(cookie, text);
	}
	return true;
}

static void
keep_step(struct req *rq, const char *what, const char *step)
{
	int at = rq->steps->nr++ % STEPS_KEPT;

	rq->steps->at[at].us = (clock_ns() - rq->began_ns) / NS_PER_US;
	rq->steps->at[at].moved = rq->xfer.pool ? rq->xfer.moved : 0;
	rq->steps->at[at].what = what;
	rq->steps->at[at].step = step;
	rq->steps->at[at].wait = rq->wait;
	rq->steps->at[at].holds = rq->holds;
	rq->steps->at[at].pieces = rq->xfer.pool ? rq->xfer.active : 0;
	rq->steps->at[at].outstanding = rq->lease.outstanding;
}

void
trace_line(struct req *rq, const char *what)
{
	const char *step = rq->step_name;
	char id[17];

	if (rq->trace_left <= 0)
		return;
	rq->trace_left--;
	req_id_text(rq, id);
	/* Where the next step is chosen on the spot its name is an expression, or a variable's. */
	if (strspn(step, "abcdefghijklmnopqrstuvwxyz_0123456789") != strlen(step) ||
	    strcmp(step, "next") == 0 || strcmp(step, "start") == 0)
		step = "-";
	if (rq->steps)
		keep_step(rq, what, step);
	log_write_event(
		LOG_EV_TRACE, LOG_NOTE, LOG_MODULE, id,
		"core=%d us=%llu op=%s %s step=%s%s%s holds=%d pieces=%d outstanding=%d moved=%llu%s%s%s",
		rq->rs->env.core, (unsigned long long)((clock_ns() - rq->began_ns) / NS_PER_US),
		op_name[rq->target.op], what, step, rq->wait ? " for=" : "", rq->wait ? rq->wait : "",
		rq->holds, rq->xfer.pool ? rq->xfer.active : 0, rq->lease.outstanding,
		(unsigned long long)(rq->xfer.pool ? rq->xfer.moved : 0), rq->fault ? " fault=" : "",
		rq->fault ? fault_info(rq->fault)->code : "", rq->gone ? " gone" : "");
}

int
reqs_queued(const struct reqs *rs)
{
	return rs->pieces.queued + rs->http_pieces.queued;
}
