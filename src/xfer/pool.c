/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core's buffers, shared out between its transfers.
 *
 * The invariant: free buffers of the main class >= tickets out that hold none of that class (`bare`).  There
 * are at most as many tickets as such buffers, a surplus buffer is handed out only while the inequality stays
 * true, so the holder of a ticket gets its one buffer without waiting, whatever the others do: nobody who
 * holds a lease waits for somebody who waits for a lease.  Buffers of the other class are extra: taken while
 * there are some, guaranteed to nobody.
 *
 * A run (buf.h) is the four buffers of the main class that it is, wherever something is counted: of a request's
 * pieces, of a client's share, of what is kept for tickets.  Where one of these leaves no room for four, or none is
 * whole, a single buffer does.
 *
 * A ticket goes to the client that has least of the main class among those that wait for one; those that
 * have as much take turns.  While another client's transfers wait, one client gets no surplus beyond half of
 * the main class.  The last quarter of the queue is for clients that have less than a quarter of it.  This
 * only ever refuses or reorders, so the invariant does not know of it.  Who has a ticket and does nothing
 * with it is the business of pace.c.
 *
 * The store has spares of the main class (struct store_spares), for bytes that it reads before it is asked for them: as long as nobody
 * waits, and half of the class stays.  They are no ticket's, and no client's.
 *
 * Writes have three quarters of the main class, and reads what is left at least: writes may hang where reads are
 * answered at once, and the buffers of a write that hangs do not come back.  A write that waits for that share waits in
 * the same lines as one that waits for a buffer, so that clients take turns, and slow bodies give way (pace.c); reads
 * pass it.
 *
 * Where the store has several disks, what goes to or comes from one of them has no more than half of the buffers,
 * and half of the queue, whether others wait or not, and its writes three quarters of that: a disk may hang, and what
 * hangs on it does not come back.  Transfers over that are held back, and delay no transfer of other disks; reads and
 * writes that one disk holds back take turns.
 */
#include "xfer/xfer_int.h"

#include "base/address.h"
#include "base/check.h"
#include "base/siphash.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>

_Thread_local struct xfer_counts xfer_counts;

/* Can requests have runs?  Not where one would be the only one that a request has at a time. */
static bool
has_runs(const struct xfer_pool *xp)
{
	return xp->bp->runs && xp->pieces_max >= 2 * BUF_RUN_NR;
}

static void pool_feed(struct xfer_pool *xp);

static int
at_least_one(int n)
{
	return n < 1 ? 1 : n;
}

/* Returns the part of n that writes may have. */
static int
share_of_writes(int n)
{
	return at_least_one(n - (n + 3) / 4);
}

static struct buf *
spare_take(struct store_spares *s, enum buf_class cls)
{
	struct xfer_pool *xp = container_of(s, struct xfer_pool, spares);
	int nr = cls == BUF_RUN ? BUF_RUN_NR : 1;

	if ((cls != BUF_RUN && cls != xp->main_cls) || (cls == BUF_RUN && !has_runs(xp)) || xp->waits ||
	    xp->shut || xp->bp->avail[xp->main_cls] - xp->bare - nr < xp->bp->total[xp->main_cls] / 2)
		return NULL;
	return cls == BUF_RUN ? bufpool_get_run(xp->bp) : bufpool_get(xp->bp, cls);
}

static void
spare_give(struct store_spares *s, struct buf *b)
{
	struct xfer_pool *xp = container_of(s, struct xfer_pool, spares);

	bufpool_put(xp->bp, b);
	pool_feed(xp);
}

void
xfer_pool_init(struct xfer_pool *xp, struct bufpool *bp, enum buf_class main_cls, int pieces_max,
	       int queue_max)
{
	check(pieces_max > 0);
	check(pieces_max <= XFER_PIECES_MAX);
	memset(xp, 0, sizeof *xp);
	xp->bp = bp;
	xp->main_cls = main_cls;
	xp->tickets = bp->total[main_cls];
	xp->pieces_max = pieces_max;
	xp->writes_max = share_of_writes(xp->tickets);
	xp->queue_max = queue_max;
	xp->spares = (struct store_spares){ spare_take, spare_give };
	list_init(&xp->hungry);
	list_init(&xp->holders);
	for (int w = 0; w < 2; w++) {
		fair_init(&xp->waiting[w]);
		for (int i = 0; i <= XFER_LANES; i++)
			list_init(&xp->lane[i].back[w]);
	}
}

uint32_t
xfer_client_of(const struct sockaddr *peer, const uint64_t key[2])
{
	struct in6_addr client;

	address_client(peer, &client);
	return (uint32_t)siphash(key, &client, sizeof client);
}

uint32_t
xfer_client_named(const char *name, const uint64_t key[2])
{
	return (uint32_t)siphash(key, name, strlen(name));
}

bool
xfer_was_slow(const struct xfer_pool *xp, uint32_t client_id)
{
	const struct xfer_slow *s = &xp->slow[client_id % XFER_SLOW_NR];

	return s->id == client_id && (int32_t)(s->until_look - xp->looks) > 0;
}

/* ---- lanes ---- */

static bool
has_two(const struct xfer *x)
{
	return x->lane[0] && x->lane[1];
}

/* Where x is counted; NULL: nowhere. */
static struct xfer_lane *
lane_of(const struct xfer *x)
{
	int lane = has_two(x) ? 0 : x->lane[0] ? x->lane[0] : x->lane[1];

	return lane || has_two(x) ? &x->pool->lane[lane] : NULL;
}

/* Is that all that x may have of a lane? */
static bool
is_full(const struct xfer *x, const struct xfer_lane *lane, int share)
{
	return lane->held >= at_least_one(share) || (x->is_write && lane->writes >= share_of_writes(share));
}

/* The lane that has all that it may have, or NULL.  Of what copies from one to another it cannot be said on which it hangs:
 * it counts for each. */
static struct xfer_lane *
full_lane(const struct xfer *x)
{
	struct xfer_pool *xp = x->pool;
	int half = xp->bp->total[xp->main_cls] / 2, both = xp->lane[0].held;

	if (has_two(x) && both >= at_least_one(half / 4))
		return &xp->lane[0];
	for (int i = 0; i < 2; i++) {
		if (x->lane[i] && is_full(x, &xp->lane[x->lane[i]], half - both))
			return &xp->lane[x->lane[i]];
	}
	return NULL;
}

static void
lane_take(const struct xfer *x, int nr)
{
	struct xfer_lane *lane = lane_of(x);

	if (!lane)
		return;
	lane->held += nr;
	lane->writes += x->is_write ? nr : 0;
}

/* Does not let in who was held back: lanes_open() does. */
static void
lane_give(const struct xfer *x, int nr)
{
	lane_take(x, -nr);
}

/* ---- lines ---- */

/* In its client's line, in front of those whose client was slow: several clients may have one line. */
static void
line_up_waiting(struct xfer *x)
{
	struct fair *waiting = &x->pool->waiting[x->is_write];
	struct list *line = &waiting->line[x->client].waiting, *pos = line;

	x->was_slow = xfer_was_slow(x->pool, x->client_id);
	while (!x->was_slow && pos->prev != line && container_of(pos->prev, struct xfer, link)->was_slow)
		pos = pos->prev;
	fair_push_before(waiting, x->client, pos, &x->link);
}

static void
line_up(struct xfer *x)
{
	if (x->is_waiting)
		line_up_waiting(x);
	else
		list_push_tail(&x->pool->hungry, &x->link);
	x->pool->waits++;
	x->pool->client[x->client].waits++;
}

static void
line_leave(struct xfer *x)
{
	if (x->is_waiting)
		fair_del(&x->pool->waiting[x->is_write], x->client, &x->link);
	else
		list_del(&x->link);
	x->pool->waits--;
	x->pool->client[x->client].waits--;
}

/* Would x's client, with so many more, have more than it may have while others wait? */
static bool
is_over_half(const struct xfer *x, int more)
{
	const struct xfer_pool *xp = x->pool;
	int half = xp->bp->total[xp->main_cls] / 2;

	return xp->client[x->client].held + more > at_least_one(half) &&
	       xp->waits > xp->client[x->client].waits;
}

/* Counts nr more buffers of the main class as x's. */
static void
hold(const struct xfer *x, int nr)
{
	x->pool->client[x->client].held += nr;
	x->pool->writes += x->is_write ? nr : 0;
}

static void
grant(struct xfer_pool *xp, struct xfer *x)
{
	xp->tickets_out++;
	xp->bare++;
	hold(x, 1);
	x->have_ticket = true;
	list_push_tail(&xp->holders, &x->holder);
	check(xp->bp->avail[xp->main_cls] >= xp->bare);
}

/* A ticket is free only while the invariant would survive it: surplus buffers may be out. */
static bool
can_grant(const struct xfer_pool *xp)
{
	return xp->tickets_out < xp->tickets && xp->bp->avail[xp->main_cls] > xp->bare;
}

/* May nr more buffers of the main class be for writes? */
static bool
may_write(const struct xfer_pool *xp, int nr)
{
	return xp->writes + nr <= xp->writes_max;
}

/* Does a transfer wait that would get the next ticket? */
static bool
is_next_there(const struct xfer_pool *xp)
{
	return !fair_empty(&xp->waiting[false]) || (!fair_empty(&xp->waiting[true]) && may_write(xp, 1));
}

static bool
may_queue(const struct xfer *x)
{
	const struct xfer_pool *xp = x->pool;
	int quarter = xp->queue_max / 4;

	if (x->is_write && xp->queued_writes >= share_of_writes(xp->queue_max))
		return false;
	return xp->queued < xp->queue_max - (xp->client[x->client].queued >= quarter ? quarter : 0);
}

static void
count_queued(const struct xfer *x, int nr)
{
	struct xfer_client *client = &x->pool->client[x->client];

	x->pool->queued += nr;
	client->queued += nr;
	x->pool->queued_writes += x->is_write ? nr : 0;
	client->queued_writes += x->is_write ? nr : 0;
}

static void
begin_waiting(struct xfer *x)
{
	count_queued(x, 1);
	x->is_waiting = true;
	lane_take(x, 1);
	line_up(x);
}

/* Holds a transfer back, after the others of a lane that is full. */
static void
hold_back(struct xfer *x, struct xfer_lane *lane)
{
	lane->shut++;
	x->pool->shut++;
	x->is_waiting = true;
	x->back = lane;
	list_push_tail(&lane->back[x->is_write], &x->link);
}

static void
let_go(struct xfer *x)
{
	x->back->shut--;
	x->pool->shut--;
	list_del(&x->link);
	x->is_waiting = false;
	x->back = NULL;
}

/* Lets in transfers that the lane holds back, until it is full. With reads first a write would wait as long as reads
 * keep coming. */
static void
lane_open(struct xfer_lane *lane)
{
	for (int refused = 0; refused < 2; refused++) {
		struct list *l = list_first(&lane->back[lane->turn_of_writes]);
		struct xfer *y = l ? container_of(l, struct xfer, link) : NULL;
		struct xfer_lane *full = y ? full_lane(y) : lane;

		lane->turn_of_writes = !lane->turn_of_writes;
		if (full == lane)
			continue;
		let_go(y);
		if (full)
			hold_back(y, full);
		else
			begin_waiting(y);
		refused = -1;
	}
}

/* Lets in who was held back for want of what came back. */
static void
lanes_open(struct xfer_pool *xp)
{
	for (int i = 0; i <= XFER_LANES && xp->shut; i++)
		lane_open(&xp->lane[i]);
}

int
xfer_ticket(struct xfer *x)
{
	struct xfer_pool *xp = x->pool;
	struct xfer_lane *full = full_lane(x);
	int half = xp->queue_max / 2;

	check(!x->have_ticket && !x->is_waiting);
	if (full && full->shut >= (x->is_write ? half - half / 4 : half))
		return -EAGAIN;
	if (full) {
		hold_back(x, full);
		return 0;
	}
	if (can_grant(xp) && !is_next_there(xp) && (!x->is_write || may_write(xp, 1))) {
		lane_take(x, 1);
		grant(xp, x);
		return 1;
	}
	if (!may_queue(x))
		return -EAGAIN;
	begin_waiting(x);
	return 0;
}

static void
stop_waiting(struct xfer *x)
{
	line_leave(x);
	x->is_waiting = false;
	count_queued(x, -1);
}

/* What a client counts as when tickets are given out: what it has, and more for one that was slow of late, or
 * has no use for a buffer yet. */
static int
weight(const struct xfer_pool *xp, const struct fair_line *line)
{
	const struct xfer *first = container_of(list_first(&line->waiting), struct xfer, link);

	bool slow = first->is_late || xfer_was_slow(xp, first->client_id);

	return xp->client[first->client].held + (slow ? xp->bp->total[xp->main_cls] / 8 + 1 : 0);
}

/* The first of the client that has least, of several the one whose turn it is; writes as long as they have not their
 * share.  Its turn is over. */
static struct xfer *
next_waiting(struct xfer_pool *xp)
{
	struct fair_line *line = NULL;
	bool is_write = false;
	int least = INT_MAX;

	for (int i = 0; i < 2; i++) {
		bool writes = xp->turn_of_writes == (i == 0);

		if (writes && !may_write(xp, 1))
			continue;
		list_for_each(l, &xp->waiting[writes].turns)
		{
			struct fair_line *this = container_of(l, struct fair_line, turn);
			int w = weight(xp, this);

			if (w < least) {
				line = this;
				least = w;
				is_write = writes;
			}
		}
	}
	if (!line)
		return NULL;
	fair_yield(&xp->waiting[is_write], line);
	xp->turn_of_writes = !is_write;
	return container_of(list_first(&line->waiting), struct xfer, link);
}

/* Something came back: first those without a ticket, by turns, then those who would like one more, round
 * robin. */
static void
pool_feed(struct xfer_pool *xp)
{
	struct xfer *x;
	int n;

	while (can_grant(xp) && (x = next_waiting(xp))) {
		stop_waiting(x);
		grant(xp, x);
		x->done(x);
	}
	/* Each once, until one stays hungry because there is nothing left; one that has its share or its
	 * client's half leaves something to the next. */
	for (n = xp->waits - xp->queued; n > 0 && !list_empty(&xp->hungry); n--) {
		x = container_of(list_first(&xp->hungry), struct xfer, link);
		line_leave(x);
		xfer_more(x);
		if (list_linked(&x->link) && xp->bp->avail[xp->main_cls] <= xp->bare)
			return;
	}
}

void
pool_ticket_put(struct xfer *x)
{
	struct xfer_pool *xp = x->pool;

	if (x->back) {
		let_go(x);
		return;
	}
	if (x->is_waiting) {
		stop_waiting(x);
		lane_give(x, 1);
		lanes_open(xp);
		pool_feed(xp);
		return;
	}
	if (list_linked(&x->link))
		line_leave(x);
	if (!x->have_ticket)
		return;
	check(x->bufs == 0 && x->main_bufs == 0);
	x->have_ticket = x->revoked = false;
	list_del(&x->holder);
	xp->tickets_out--;
	xp->bare--;
	hold(x, -1);
	lane_give(x, 1);
	lanes_open(xp);
	pool_feed(xp);
}

/* May x have nr more buffers of the main class?  Its first always; more while the guaranteed ones stay, and
 * while others wait no more than an even share, and half for its client. */
static bool
may_take_main(const struct xfer *x, int nr)
{
	const struct xfer_pool *xp = x->pool;
	int more = x->main_bufs == 0 ? nr - 1 : nr; /* than the ticket counts */

	if (more == 0)
		return true;
	if (xp->bp->avail[xp->main_cls] - xp->bare < more || is_over_half(x, more) ||
	    (x->is_write && !may_write(xp, more)))
		return false;
	if (!list_empty(&xp->hungry) || is_next_there(xp)) {
		int share = xp->bp->total[xp->main_cls] / (xp->tickets_out ? xp->tickets_out : 1);

		return x->main_bufs + nr <= at_least_one(share);
	}
	return true;
}

/* Is a run right for len bytes?  Not where it would be half empty. */
static bool
wants_run(const struct xfer *x, size_t len)
{
	return len > BUF_RUN_BYTES / 2 && has_runs(x->pool);
}

/* NULL: none of those that would do can be had. */
static struct buf *
choose_buf(const struct xfer *x, size_t len)
{
	const struct xfer_pool *xp = x->pool;
	enum buf_class want = buf_class_for(len);
	bool may_more = x->bufs == 0 || !full_lane(x);
	struct buf *b = NULL;

	if (want != xp->main_cls && may_more)
		b = bufpool_get(xp->bp, want);
	else if (wants_run(x, len) && may_more && may_take_main(x, BUF_RUN_NR))
		b = bufpool_get_run(xp->bp);
	if (!b && (may_more || x->main_bufs == 0) && may_take_main(x, 1)) {
		b = bufpool_get(xp->bp, xp->main_cls);
		check(b || x->main_bufs > 0);
	}
	return b;
}

static bool
is_main(const struct xfer_pool *xp, const struct buf *b)
{
	return b->cls == xp->main_cls || b->cls == BUF_RUN;
}

struct buf *
pool_buf_get(struct xfer *x, size_t len)
{
	struct xfer_pool *xp = x->pool;
	struct buf *b;
	int nr;

	check(x->have_ticket);
	/* Comes back by itself when one of its own pieces is done. */
	if (x->bufs + (wants_run(x, len) ? BUF_RUN_NR : 1) > xp->pieces_max)
		return NULL;
	b = choose_buf(x, len);
	if (!b) {
		if (!list_linked(&x->link))
			line_up(x);
		return NULL;
	}
	nr = buf_nr(b);
	/* The ticket counts as the first one. */
	lane_take(x, x->bufs ? nr : nr - 1);
	x->bufs += nr;
	if (x->bufs > xfer_counts.bufs_peak)
		xfer_counts.bufs_peak = x->bufs;
	if (is_main(xp, b)) {
		xp->bare -= x->main_bufs == 0;
		hold(x, x->main_bufs ? nr : nr - 1);
		x->main_bufs += nr;
	}
	check(xp->bp->avail[xp->main_cls] >= xp->bare);
	return b;
}

void
pool_buf_put(struct xfer *x, struct buf *b)
{
	struct xfer_pool *xp = x->pool;
	int nr = buf_nr(b);

	x->bufs -= nr;
	lane_give(x, x->bufs ? nr : nr - 1);
	if (is_main(xp, b)) {
		x->main_bufs -= nr;
		xp->bare += x->main_bufs == 0;
		hold(x, x->main_bufs ? -nr : 1 - nr);
	}
	bufpool_put(xp->bp, b);
	lanes_open(xp);
	pool_feed(xp);
}
