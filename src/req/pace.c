/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits what slow clients hold: buffers for HTTP bodies, and requests; for space of the store see space.c.
 *
 * A quarter of a core's requests is for requests with a descriptor. A client may have all others until they run out: then
 * requests of the client with most are ended for a client with fewer, first those that wait for a buffer, then the slowest. A
 * body slower than limits.body_rate loses its buffer as soon as another request waits for one (xfer/pace.c), and its request
 * when few requests are left.
 *
 * Writes, which may hang while reads are answered at once, have three quarters of the requests, with and without a descriptor.
 * Each of several disks has half of the requests, and its writes have three quarters of this half.
 *
 * A request that is ended before its reply began is answered (400 RequestTimeout, or 503 SlowDown for a share), and
 * stores nothing; a reply in progress is cut off. The core's thread; a timer runs while a request waits or few are left.
 */
#include "req/machine.h"

#include "base/clock.h"

#include <errno.h>

#define SENT_NS XFER_LOOK_NS /* so long a reply of one text takes that the client reads */

static void on_pace(struct timer *t);
static void look(struct reqs *rs);

/* Returns the part of n that writes may have. */
static int
share_of_writes(int n)
{
	return n > 1 ? n - (n + 3) / 4 : 1;
}

void
pace_init(struct reqs *rs)
{
	rs->plain_max = rs->nr - rs->nr / 4;
	rs->writes_max = share_of_writes(rs->plain_max);
	rs->all_writes_max = share_of_writes(rs->nr);
	rs->lane_max = rs->nr > 1 ? rs->nr / 2 : 1;
	rs->lane_writes_max = share_of_writes(rs->lane_max);
	for (int i = 0; i < SLOT_CLIENTS; i++)
		list_init(&rs->slots.reqs[i]);
}

static int
slot_of(const struct req *rq)
{
	return (int)(rq->xfer.client_id % SLOT_CLIENTS);
}

/* ---- ending one ---- */

enum why { SLOW_BUFFER, SHARE_BUFFER, SLOW_REQUEST, SHARE_REQUEST, STORE_BUFFER, SLOW_SPACE };

static const struct {
	enum stats_event event;
	enum fault fault;
	const char *text;
} whys[] = {
	[SLOW_BUFFER] = { STATS_REVOKED_SLOW_BUFFER, FAULT_REQUEST_TIMEOUT,
			  "The body came too slowly while others waited." },
	[SHARE_BUFFER] = { STATS_REVOKED_SHARE_BUFFER, FAULT_BUSY,
			   "Others wait, and this client has more than its share of the buffers." },
	[SLOW_REQUEST] = { STATS_REVOKED_SLOW_REQUEST, FAULT_REQUEST_TIMEOUT,
			   "The body came too slowly while requests were few." },
	[SHARE_REQUEST] = { STATS_REVOKED_SHARE_REQUEST, FAULT_BUSY,
			    "Others wait, and this client has more than its share of the requests." },
	[STORE_BUFFER] = { STATS_REVOKED_STORE_BUFFER, FAULT_BUSY,
			   "Others wait for the buffers, and the store does not answer." },
	[SLOW_SPACE] = { STATS_REVOKED_SLOW_SPACE, FAULT_REQUEST_TIMEOUT,
			 "The body came too slowly while the store had no space for others." },
};

static void
revoke(struct req *rq, enum why why)
{
	struct reqs *rs = rq->rs;

	if (rq->revoked)
		return;
	rq->revoked = true;
	if (list_linked(&rq->slot)) {
		rs->plain_revoked++;
		rs->slots.held[slot_of(rq)]--;
		rs->writes_revoked += rq->xfer.is_write;
		rs->slots.writes[slot_of(rq)] -= rq->xfer.is_write;
	}
	stats_event(rs->env.stats, whys[why].event);
	req_cancel(rq,
		   rq->is_tokened && rq->xfer.wire_started && rq->phase < PHASE_COMMIT ? FAULT_TRANSFER
										       : whys[why].fault,
		   whys[why].text);
	if (rq->replied && !rq->ended)
		rs->env.ops->abort(rq->conn);
}

static uint64_t
unsent(struct xfer *x)
{
	struct req *rq = container_of(x, struct req, xfer);
	uint64_t n = rq->replied && !rq->ended ? rq->rs->env.ops->unsent(rq->conn) : 0;

	return n < x->moved ? n : x->moved;
}

/* The kernel has room for some more than that, whatever the segments are like. */
#define ARRIVED_BYTES (32u << 10)

/* Of a body whose length nobody knows, any part may be the last. */
static bool
is_late(struct xfer *x)
{
	struct req *rq = container_of(x, struct req, xfer);
	uint64_t want = rq->target.content_length;

	if (!rq->wants_body || rq->ended || !rq->target.have_content_length)
		return false;
	return rq->rs->env.ops->arrived(rq->conn) < (want < ARRIVED_BYTES ? want : ARRIVED_BYTES);
}

static void
on_revoked(struct xfer *x, enum xfer_revoke why)
{
	revoke(container_of(x, struct req, xfer), why == XFER_TOO_SLOW ? SLOW_BUFFER : SHARE_BUFFER);
}

/* ---- how fast a request's client is ---- */

/* Returns true if the request waits for its client: for the body, or for the client to read the reply. */
static bool
owes(const struct req *rq, uint64_t now_ns)
{
	if (rq->ended || rq->holds > 0 || list_linked(&rq->ready))
		return false;
	if (rq->replied && rq->reply.body == REPLY_STREAM)
		return xfer_client_owes(&rq->xfer);
	if (rq->replied)
		return now_ns - rq->reply_ns > SENT_NS;
	if (rq->fault != FAULT_NONE || rq->phase >= PHASE_COMMIT || !rq->wants_body || rq->body_ended)
		return false;
	return rq->xfer.mode == XFER_NONE ? rq->take != NULL && !rq->xfer.is_waiting
					  : xfer_client_owes(&rq->xfer);
}

static bool
has_xfer(const struct req *rq)
{
	return rq->xfer.pool && rq->xfer.mode != XFER_NONE;
}

static struct pace_mark *
mark_of(struct req *rq)
{
	return has_xfer(rq) ? &rq->xfer.mark : &rq->mark;
}

/* Returns the bytes moved so far; of a reply of one text, whose progress is not known, all of them. */
static uint64_t
bytes_of(const struct req *rq)
{
	if (has_xfer(rq))
		return rq->xfer.reached;
	if (!rq->replied)
		return rq->body_len;
	return rq->mark.since_ns ? rq->reply.len_bytes : 0;
}

static void
look_at(struct req *rq, uint64_t skip_ns, const struct xfer_pace *pace, uint64_t now_ns)
{
	struct pace_mark *m = mark_of(rq);

	if (has_xfer(rq))
		rq->xfer.reached = rq->xfer.moved - (rq->replied ? unsent(&rq->xfer) : 0);
	/* A text has its time from the reply on. */
	if (rq->replied && !has_xfer(rq) && skip_ns == PACE_ANEW)
		skip_ns = 0;
	pace_look(m, bytes_of(rq), owes(rq, now_ns), skip_ns, now_ns);
	if (has_xfer(rq) || !rq->replied)
		pace_forgive(m, bytes_of(rq), pace, now_ns);
}

static bool
is_slow(struct req *rq, const struct xfer_pace *pace, uint64_t now_ns)
{
	return !rq->revoked && pace_is_slow(mark_of(rq), bytes_of(rq), pace, now_ns);
}

bool
pace_is_slow_request(struct req *rq, const struct xfer_pace *pace, uint64_t now_ns)
{
	return list_linked(&rq->slot) && is_slow(rq, pace, now_ns);
}

void
pace_end_for_space(struct req *rq)
{
	revoke(rq, SLOW_SPACE);
}

/* ---- slots ---- */

/* Requests without a descriptor that have a limit together. */
struct scope {
	int nr, max;
	bool writes; /* of writes only */
	int lane;    /* of one lane only: its index + 1; 0: of any */
};

static bool
are_few(struct scope s)
{
	return s.nr >= s.max - s.max / 8;
}

static bool
is_within(const struct req *rq, const struct scope *s)
{
	return list_linked(&rq->slot) && (!s->writes || rq->xfer.is_write) &&
	       (!s->lane || rq->lane == s->lane);
}

static struct scope
scope_of(const struct reqs *rs, bool writes)
{
	return writes ? (struct scope){ rs->writes_nr, rs->writes_max, true, 0 }
		      : (struct scope){ rs->plain_nr, rs->plain_max, false, 0 };
}

static struct scope
scope_of_lane(const struct reqs *rs, int lane, bool writes)
{
	return writes ? (struct scope){ rs->lane_writes[lane], rs->lane_writes_max, true, lane + 1 }
		      : (struct scope){ rs->lane_nr[lane], rs->lane_max, false, lane + 1 };
}

static bool
waits_for_ticket(const struct req *rq)
{
	return rq->xfer.is_waiting && rq->xfer.pool == &rq->rs->http_pieces;
}

static bool
is_candidate(const struct req *rq, bool writes, uint64_t now_ns)
{
	return !rq->revoked && (rq->xfer.is_write || !writes) && (waits_for_ticket(rq) || owes(rq, now_ns));
}

uint64_t
pace_rate_of(struct req *rq, uint64_t now_ns)
{
	return waits_for_ticket(rq) ? 0 : pace_rate(mark_of(rq), bytes_of(rq), now_ns);
}

/* Ends up to nr of the requests of one slot, or of the writes among them; but_for: none of that client's, and only of
 * those that were slow. Returns how many. */
static int
take_from(struct reqs *rs, int slot, int nr, bool writes, const struct req *but_for, uint64_t now_ns)
{
	struct pace_count count = { { 0 } };
	int before = rs->plain_revoked;

	for (int pass = 0; pass < 2; pass++) {
		list_for_each_safe(l, &rs->slots.reqs[slot])
		{
			struct req *rq = container_of(l, struct req, slot);

			if (!is_candidate(rq, writes, now_ns) ||
			    (but_for && (rq->xfer.client_id == but_for->xfer.client_id ||
					 !xfer_was_slow(&rs->http_pieces, rq->xfer.client_id))))
				continue;
			if (pass == 0)
				pace_count_add(&count, pace_rate_of(rq, now_ns));
			else if (nr > 0 && pace_count_take(&count, pace_rate_of(rq, now_ns), &nr))
				revoke(rq, SHARE_REQUEST);
		}
	}
	return rs->plain_revoked - before;
}

static bool
has_candidate(const struct reqs *rs, int slot, bool writes, uint64_t now_ns)
{
	list_for_each(l, &rs->slots.reqs[slot])
	{
		if (is_candidate(container_of(l, struct req, slot), writes, now_ns))
			return true;
	}
	return false;
}

/* Takes from the client that has most of the clients with a candidate, several at once, since more may come. Where no such
 * client has more than this one, takes one from a client that shares its number and was slow. writes: of writes, which have
 * their share. */
static bool
make_room(const struct req *rq, bool writes)
{
	struct reqs *rs = rq->rs;
	const int *held = writes ? rs->slots.writes : rs->slots.held;
	int slot = slot_of(rq), most = slot, batch = scope_of(rs, writes).max / 16, even;
	uint64_t now = clock_ns();

	for (int i = 0; i < SLOT_CLIENTS; i++) {
		if (held[i] > held[most] && has_candidate(rs, i, writes, now))
			most = i;
	}
	even = (held[most] - held[slot]) / 2;
	batch = batch < 1 ? 1 : batch;
	return (even > 0 && take_from(rs, most, even < batch ? even : batch, writes, NULL, now) > 0) ||
	       take_from(rs, slot, 1, writes, rq, now) > 0;
}

/* Those that are on their way out count no more, but leave half of what is kept for descriptors, or for reads. */
static bool
is_full(const struct reqs *rs, bool writes)
{
	return writes ? rs->writes_nr - rs->writes_revoked >= rs->writes_max
		      : rs->plain_nr - rs->plain_revoked >= rs->plain_max;
}

static bool
is_room_left(const struct reqs *rs, bool writes)
{
	return rs->plain_nr < rs->plain_max + (rs->nr - rs->plain_max) / 2 &&
	       (!writes || rs->writes_nr < rs->writes_max + (rs->plain_max - rs->writes_max) / 2);
}

static void
fair_by_key(struct req *rq)
{
	const char *name = identity_access_key(&rq->identity);

	if (name && rq->rs->env.conf->limits.fair_by == FAIR_BY_ACCESS_KEY)
		xfer_set_client(&rq->xfer, xfer_client_named(name, rq->rs->client_key));
}

static bool
is_lane_short(const struct reqs *rs, int lane)
{
	return are_few(scope_of_lane(rs, lane, false)) || are_few(scope_of_lane(rs, lane, true));
}

static bool
are_requests_few(const struct reqs *rs)
{
	bool few = are_few(scope_of(rs, false)) || are_few(scope_of(rs, true));

	for (int i = 0; i < XFER_LANES && !few; i++)
		few = is_lane_short(rs, i);
	return few;
}

enum fault
pace_lane_get(struct req *rq)
{
	struct reqs *rs = rq->rs;
	struct store_key k = req_key(rq);
	bool writes = op_info[rq->target.op].writes;
	int lane = k.key_len ? store_lane(rs->env.store, &k, writes) : -1;

	rq->xfer.is_write = writes;
	if (lane == -EROFS)
		return fault_of(lane);
	if (lane < 0)
		return FAULT_NONE;
	if (rs->lane_nr[lane] >= rs->lane_max || (writes && rs->lane_writes[lane] >= rs->lane_writes_max))
		return FAULT_BUSY;
	rs->lane_nr[lane]++;
	rs->lane_writes[lane] += writes;
	rq->lane = (uint8_t)(lane + 1);
	if (!rs->pace.armed && is_lane_short(rs, lane))
		look(rs);
	xfer_set_lanes(&rq->xfer, lane, -1);
	return FAULT_NONE;
}

void
pace_lane_put(struct req *rq)
{
	if (rq->lane) {
		rq->rs->lane_nr[rq->lane - 1]--;
		rq->rs->lane_writes[rq->lane - 1] -= rq->xfer.is_write;
	}
	rq->lane = 0;
}

static bool
may_write_more(const struct reqs *rs)
{
	return rs->writes_nr - rs->writes_revoked + rs->wire_writes < rs->all_writes_max;
}

bool
pace_slot_get(struct req *rq)
{
	struct reqs *rs = rq->rs;
	bool writes = rq->xfer.is_write, full = writes && is_full(rs, true);

	fair_by_key(rq);
	if (list_linked(&rq->slot) || rq->wire_write)
		return true;
	if (rq->target.wire == WIRE_NONE && (full || is_full(rs, false)) && !make_room(rq, full))
		return false;
	if (writes && !may_write_more(rs))
		return false;
	if (rq->target.wire != WIRE_NONE) {
		rq->wire_write = writes;
		rs->wire_writes += writes;
		return true;
	}
	if (!is_room_left(rs, writes))
		return false;
	list_push_tail(&rs->slots.reqs[slot_of(rq)], &rq->slot);
	rs->slots.held[slot_of(rq)]++;
	rs->slots.writes[slot_of(rq)] += writes;
	rs->plain_nr++;
	rs->writes_nr += writes;
	if (!rs->pace.armed && (are_few(scope_of(rs, false)) || are_few(scope_of(rs, true))))
		look(rs);
	return true;
}

void
pace_slot_put(struct req *rq)
{
	struct reqs *rs = rq->rs;

	rs->wire_writes -= rq->wire_write;
	rq->wire_write = false;
	if (!list_linked(&rq->slot))
		return;
	list_del(&rq->slot);
	if (--rs->plain_nr == 0)
		timer_disarm(rs->env.timers, &rs->space);
	rs->writes_nr -= rq->xfer.is_write;
	if (rq->revoked) {
		rs->plain_revoked--;
		rs->writes_revoked -= rq->xfer.is_write;
	} else {
		rs->slots.held[slot_of(rq)]--;
		rs->slots.writes[slot_of(rq)] -= rq->xfer.is_write;
	}
}

/* Once few are left, the slow ones go, the slowest first, until there are some more. */
static void
end_slow(struct reqs *rs, struct scope s, const struct xfer_pace *pace, uint64_t now_ns)
{
	struct pace_count count = { { 0 } };
	int nr = s.nr - s.max * 3 / 4;

	if (!are_few(s))
		return;
	list_for_each(l, &rs->live)
	{
		struct req *rq = container_of(l, struct req, link);

		nr -= rq->revoked && is_within(rq, &s);
		if (is_within(rq, &s) && is_slow(rq, pace, now_ns))
			pace_count_add(&count, pace_rate_of(rq, now_ns));
	}
	list_for_each_safe(l, &rs->live)
	{
		struct req *rq = container_of(l, struct req, link);

		if (nr <= 0)
			break;
		if (is_within(rq, &s) && is_slow(rq, pace, now_ns) &&
		    pace_count_take(&count, pace_rate_of(rq, now_ns), &nr))
			revoke(rq, SLOW_REQUEST);
	}
}

void
pace_measure(struct reqs *rs, const struct xfer_pace *pace, uint64_t now_ns)
{
	uint64_t skip = pace_skip(rs->looked_ns, now_ns);

	rs->looked_ns = now_ns;
	list_for_each(l, &rs->live)
	{
		struct req *rq = container_of(l, struct req, link);

		if (list_linked(&rq->slot))
			look_at(rq, skip, pace, now_ns);
	}
}

static void
look_at_slots(struct reqs *rs, const struct xfer_pace *pace, uint64_t now_ns)
{
	pace_measure(rs, pace, now_ns);
	for (int w = 0; w < 2; w++) {
		for (int i = 0; i < XFER_LANES; i++)
			end_slow(rs, scope_of_lane(rs, i, w), pace, now_ns);
		end_slow(rs, scope_of(rs, w), pace, now_ns);
	}
}

/* ---- the store ---- */

#define STORE_NS (2 * NS_PER_S)

/* Since when a holder of a ticket waits for the store alone; UINT64_MAX: it does not. */
static uint64_t
waits_since(const struct req *rq, const struct xfer_pool *xp)
{
	const struct xfer *x = &rq->xfer;

	if (x->pool != xp || !x->have_ticket || rq->revoked || rq->detached || rq->fault != FAULT_NONE)
		return UINT64_MAX;
	return xfer_waits_for_store(x) || (rq->phase == PHASE_COMMIT && rq->holds > 0) ? x->progress_ns
										       : UINT64_MAX;
}

/*
 * Requests that wait for a part of the store that does not answer must not have all tickets: for each that wait, the one that
 * has waited longest for the store, and longer than STORE_NS, is ended.
 */
static void
look_at_store(struct reqs *rs, struct xfer_pool *xp, uint64_t now_ns)
{
	for (int left = xp->queued; left > 0; left--) {
		uint64_t oldest_ns = UINT64_MAX;
		struct req *oldest = NULL;

		list_for_each(l, &rs->live)
		{
			struct req *rq = container_of(l, struct req, link);
			uint64_t since_ns = waits_since(rq, xp);

			if (since_ns < oldest_ns) {
				oldest_ns = since_ns;
				oldest = rq;
			}
		}
		if (!oldest || now_ns < oldest_ns + STORE_NS)
			return;
		revoke(oldest, STORE_BUFFER);
	}
}

/* ---- the looks ---- */

static const struct xfer_pace_ops pace_ops = { .unsent = unsent, .is_late = is_late, .revoke = on_revoked };

/* Looks now, and again as long as a request waits or few requests are left. */
static void
look(struct reqs *rs)
{
	const struct conf *conf = rs->env.conf;
	struct xfer_pace pace = { .rate = conf->limits.body_rate, .grace_ns = conf->limits.body_grace_ns };
	uint64_t now = clock_ns();
	bool few = are_requests_few(rs), wait = rs->http_pieces.queued + rs->http_pieces.shut > 0;
	bool lets_go = store_limits(rs->env.store)->lets_go, wire_waits = lets_go && rs->pieces.queued > 0;

	if (lets_go && wait)
		look_at_store(rs, &rs->http_pieces, now);
	if (wire_waits)
		look_at_store(rs, &rs->pieces, now);
	if (wait)
		xfer_pool_revoke(&rs->http_pieces, &pace, &pace_ops, now);
	if (few && pace.rate)
		look_at_slots(rs, &pace, now);
	if (few || wait || wire_waits)
		timer_arm(rs->env.timers, &rs->pace, now + XFER_LOOK_NS, on_pace);
}

static void
on_pace(struct timer *t)
{
	look(container_of(t, struct reqs, pace));
}

/* ---- tickets ---- */

void
pace_wait(struct reqs *rs)
{
	if (!rs->pace.armed)
		look(rs);
}

enum verdict
req_http_ticket_to(struct req *rq, step_fn next, const char *name)
{
	struct reqs *rs = rq->rs;
	int r;

	rq->phase = PHASE_QUEUED;
	xfer_init(&rq->xfer, &rs->http_pieces, rs->env.store, rs->env.chan);
	r = xfer_ticket(&rq->xfer);
	if (r < 0)
		return req_fail(rq, FAULT_BUSY, NULL);
	if (r > 0)
		return req_go_to(rq, next, name);
	pace_wait(rs);
	return req_wait_to(rq, "ticket", next, name);
}
