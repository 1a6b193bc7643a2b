/*
 * What people see of a request: its id, its line in the dump, and its entry among the latest that were
 * declined or went wrong (stats/recent.c).  The core's thread.
 */
#include "req/machine.h"

#include "base/clock.h"
#include "base/hex.h"

#include <stdio.h>
#include <time.h>

/* ---- ids ---- */

/* Unique in this process by the counter, across cores and restarts by the salt. */
static uint64_t
id_bits(const struct reqs *rs, uint64_t id)
{
	return id * 0x9e3779b97f4a7c15ull ^ rs->id_salt;
}

uint64_t
req_id_bits(const struct req *rq)
{
	return id_bits(rq->rs, rq->id);
}

void
req_id_text(const struct req *rq, char out[17])
{
	hex_write_u64(out, req_id_bits(rq));
}

void
reqs_next_id(struct reqs *rs, char out[17])
{
	hex_write_u64(out, id_bits(rs, ++rs->next_id));
}

/* ---- the dump ---- */

void
req_line(const struct req *rq, char *out, size_t cap)
{
	char id[17];

	req_id_text(rq, id);
	snprintf(out, cap, "id=%s core=%d op=%s step=%s age_ms=%llu holds=%d pieces=%d outstanding=%d%s%s%s",
		 id, rq->rs->env.core, op_name[rq->target.op],
		 rq->wait      ? rq->wait
		 : rq->replied ? "reply"
			       : "run",
		 (unsigned long long)((clock_ns() - rq->began_ns) / NS_PER_MS), rq->holds,
		 rq->xfer.pool ? rq->xfer.active : 0, rq->lease.outstanding, rq->gone ? " gone" : "",
		 rq->ended ? " ended" : "", rq->detached ? " detached" : "");
}

void
reqs_dump(const struct reqs *rs, void (*line)(void *cookie, const char *text), void *cookie)
{
	list_for_each(l, &rs->live)
	{
		char text[256];

		req_line(container_of(l, struct req, link), text, sizeof text);
		line(cookie, text);
	}
}

/* ---- the status page ---- */

void
req_note(const struct req *rq)
{
	struct timespec now;
	struct stats_note n = { .id = req_id_bits(rq),
				.op = (int)rq->target.op,
				.status = rq->replied ? rq->reply.status : 0 };

	if (!rq->declined && n.status < 500)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	n.unix_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	if (rq->declined)
		n.reason = (int)rq->reason;
	else if (rq->fault != FAULT_NONE)
		n.code = fault_info(rq->fault)->code;
	stats_note(rq->rs->env.stats, &n);
}
