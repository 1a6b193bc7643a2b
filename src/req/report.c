/* What people see of a request: the fault that an error becomes, its id, and its line in the dump.  The
 * core's thread. */
#include "req/machine.h"

#include "base/clock.h"
#include "base/hex.h"

#include <errno.h>
#include <stdio.h>

enum fault
fault_of(int err)
{
	switch (err) {
	case -ENOENT:
		return FAULT_NO_SUCH_KEY;
	case -ENXIO:
		return FAULT_NO_SUCH_BUCKET;
	case -EEXIST:
	case -ESTALE:
		return FAULT_PRECONDITION;
	case -ENOTEMPTY:
		return FAULT_BUCKET_NOT_EMPTY;
	case -EILSEQ:
		return FAULT_BAD_DIGEST;
	case -ENOSPC:
	case -ENOMEM:
		return FAULT_FULL;
	case -EAGAIN:
		return FAULT_BUSY;
	case -EROFS:
	case -ECANCELED:
		return FAULT_UNAVAILABLE;
	case -EBADMSG:
		return FAULT_DAMAGED;
	case -ENAMETOOLONG:
		return FAULT_KEY_TOO_LONG;
	case -EFBIG:
		return FAULT_TOO_LARGE;
	default:
		return FAULT_INTERNAL;
	}
}

/* Unique in this process by the counter, across cores and restarts by the salt. */
static uint64_t
id_bits(const struct reqs *rs, uint64_t id)
{
	return id * 0x9e3779b97f4a7c15ull ^ rs->id_salt;
}

static void
id_text(uint64_t v, char out[17])
{
	uint8_t b[8];

	sum_of_u64(v, b);
	hex_write(out, b, 8);
	out[16] = 0;
}

uint64_t
req_id_bits(const struct req *rq)
{
	return id_bits(rq->rs, rq->id);
}

void
req_id_text(const struct req *rq, char out[17])
{
	id_text(req_id_bits(rq), out);
}

void
reqs_next_id(struct reqs *rs, char out[17])
{
	id_text(id_bits(rs, ++rs->next_id), out);
}

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
