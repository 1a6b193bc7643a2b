/* What an operator sees of the latest requests that were declined or went wrong (stats/recent.c). */
#include "req/machine.h"

#include "base/clock.h"

#include <time.h>

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
