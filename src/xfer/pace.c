/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slow clients, and what they hold while others wait.
 *
 * A body that comes or goes byte by byte holds a ticket for as long as the client likes.  While nobody waits
 * that hurts nobody.  While somebody does, holders are looked at every XFER_LOOK_NS:
 *
 * - One of which less came (or went) than the pace asks for, over the grace, gives its ticket back: as many
 * of
 *   them as wait, the slowest first.
 * - Where a client with less than its even share waits longer than PATIENCE_NS, the client that has most
 *   gives back, also of what moves; again the slowest first.
 *
 * Among those that wait, one whose body has hardly begun to arrive comes after those that have something to
 * put into a buffer.  It stays with the kernel until then.
 *
 * Where writes have their share, a write that waits gains only by the end of another write: reads are left alone for
 * it, and end only for reads that wait.  For transfers that are held back because their lane has its share, bodies of
 * that lane that are too slow end.
 *
 * What the kernel has taken for a client and could not send yet is not the client's doing: with a large
 * buffer of the socket's it would look like a fast reader for a while.
 *
 * A holder that waits for our disk or for a buffer is not slow, and when the look itself comes late, because
 * the core had other things to do, that time is nobody's.  Nothing is counted while nobody waits: the marks
 * are made by the looks.
 */
#include "xfer/xfer_int.h"

#include "base/check.h"

#define PATIENCE_NS (2 * XFER_LOOK_NS)
#define OLD_NS (20 * XFER_LOOK_NS)
#define SLOW_LOOKS 100
#define LINES_A_LOOK 16 /* clients with less than their share that one look helps */

/* ---- one client ---- */

uint64_t
pace_skip(uint64_t looked_ns, uint64_t now_ns)
{
	uint64_t gap = now_ns - looked_ns;

	if (gap > OLD_NS)
		return PACE_ANEW;
	return gap > 2 * XFER_LOOK_NS ? gap - XFER_LOOK_NS : 0;
}

void
pace_look(struct pace_mark *m, uint64_t bytes, bool owes, uint64_t skip_ns, uint64_t now_ns)
{
	if (!owes)
		m->since_ns = 0;
	else if (!m->since_ns || skip_ns == PACE_ANEW)
		*m = (struct pace_mark){ now_ns, bytes };
	else
		m->since_ns = m->since_ns + skip_ns < now_ns ? m->since_ns + skip_ns : now_ns;
}

/* Milliseconds, so that products with a rate stay far from 64 bits. */
static uint64_t
watched_ms(const struct pace_mark *m, uint64_t now_ns)
{
	return (now_ns - m->since_ns) / 1000000;
}

uint64_t
pace_rate(const struct pace_mark *m, uint64_t bytes, uint64_t now_ns)
{
	if (!m->since_ns)
		return PACE_UNKNOWN;
	return (bytes - m->bytes) * 1000 / (watched_ms(m, now_ns) + 1);
}

static bool
is_over(const struct pace_mark *m, const struct xfer_pace *pace, uint64_t now_ns)
{
	return m->since_ns && now_ns - m->since_ns >= pace->grace_ns;
}

bool
pace_is_slow(const struct pace_mark *m, uint64_t bytes, const struct xfer_pace *pace, uint64_t now_ns)
{
	return is_over(m, pace, now_ns) && (bytes - m->bytes) * 1000 < pace->rate * watched_ms(m, now_ns);
}

void
pace_forgive(struct pace_mark *m, uint64_t bytes, const struct xfer_pace *pace, uint64_t now_ns)
{
	if (is_over(m, pace, now_ns) && !pace_is_slow(m, bytes, pace, now_ns))
		*m = (struct pace_mark){ now_ns, bytes };
}

/* ---- the slowest of many ---- */

static int
magnitude(uint64_t rate)
{
	return rate ? 64 - __builtin_clzll(rate) : 0;
}

void
pace_count_add(struct pace_count *pc, uint64_t rate)
{
	pc->of[magnitude(rate)]++;
}

bool
pace_count_take(struct pace_count *pc, uint64_t rate, int *nr)
{
	int mine = magnitude(rate), slower = 0;

	for (int i = 0; i < mine; i++)
		slower += pc->of[i];
	if (*nr <= slower)
		return false;
	pc->of[mine]--;
	--*nr;
	return true;
}

/* ---- clients that were slow ---- */

static void
set_slow(struct xfer_pool *xp, uint32_t client_id)
{
	xp->slow[client_id % XFER_SLOW_NR] = (struct xfer_slow){ client_id, xp->looks + SLOW_LOOKS };
}

/* ---- tickets ---- */

struct look {
	struct xfer_pool *xp;
	const struct xfer_pace *pace;
	const struct xfer_pace_ops *ops;
	uint64_t now_ns;
	/* what each client keeps of the main class: of all of it, of what writes have */
	int have[2][XFER_CLIENTS];
	int active;    /* clients that have some or wait for some */
	int coming[2]; /* tickets on their way back: all, those of writes */
	int revoked;
	/* whose tickets are looked at: those of writes only, those of one lane only (its index + 1; 0: any) */
	bool writes;
	int lane;
};

static int
holds(const struct xfer *x)
{
	return x->main_bufs ? x->main_bufs : 1;
}

/* Who was slow of late has less time to show that it is not. */
static struct xfer_pace
pace_for(const struct look *k, const struct xfer *x)
{
	struct xfer_pace pace = *k->pace;

	if (xfer_was_slow(k->xp, x->client_id))
		pace.grace_ns /= 4;
	return pace;
}

/* client < 0: all of them that are too slow. */
static bool
is_candidate(const struct look *k, const struct xfer *x, int client)
{
	struct xfer_pace pace = pace_for(k, x);

	if (x->revoked || !x->mark.since_ns || (k->writes && !x->is_write) ||
	    (k->lane && x->lane[0] != k->lane && x->lane[1] != k->lane))
		return false;
	return client < 0 ? pace_is_slow(&x->mark, x->reached, &pace, k->now_ns) : x->client == client;
}

static void
revoke_slowest(struct look *k, int client, int nr)
{
	struct pace_count count = { { 0 } };

	list_for_each(l, &k->xp->holders)
	{
		struct xfer *x = container_of(l, struct xfer, holder);

		if (is_candidate(k, x, client))
			pace_count_add(&count, pace_rate(&x->mark, x->reached, k->now_ns));
	}
	list_for_each_safe(l, &k->xp->holders)
	{
		struct xfer *x = container_of(l, struct xfer, holder);

		if (nr <= 0)
			return;
		if (!is_candidate(k, x, client) ||
		    !pace_count_take(&count, pace_rate(&x->mark, x->reached, k->now_ns), &nr))
			continue;
		x->revoked = true;
		for (int w = 0; w <= x->is_write; w++) {
			k->have[w][x->client] -= holds(x);
			k->coming[w]++;
		}
		k->revoked++;
		if (client < 0)
			set_slow(k->xp, x->client_id);
		k->ops->revoke(x, client < 0 ? XFER_TOO_SLOW : XFER_OVER_SHARE);
	}
}

static void
look_at_all(struct look *k, uint64_t skip_ns)
{
	list_for_each(l, &k->xp->holders)
	{
		struct xfer *x = container_of(l, struct xfer, holder);

		for (int w = 0; w <= x->is_write; w++) {
			k->coming[w] += x->revoked;
			k->have[w][x->client] += x->revoked ? 0 : holds(x);
		}
		if (x->revoked)
			continue;
		x->reached = x->moved - (x->mode == XFER_SERVE ? k->ops->unsent(x) : 0);
		pace_look(&x->mark, x->reached, xfer_client_owes(x), skip_ns, k->now_ns);
		pace_forgive(&x->mark, x->reached, k->pace, k->now_ns);
	}
	for (int i = 0; i < XFER_CLIENTS; i++)
		k->active += k->xp->client[i].held > 0 || k->xp->client[i].queued > 0;
	/* What was long ago is forgotten as well. */
	k->xp->looks += skip_ns == PACE_ANEW ? SLOW_LOOKS : 1;
}

/* A ticket is of use to who has something to put into the buffer. */
static void
look_who_waits(struct look *k)
{
	for (int i = 0; i < 2; i++) {
		list_for_each(l, &k->xp->waiting[i].turns)
		{
			list_for_each(w, &container_of(l, struct fair_line, turn)->waiting)
			{
				struct xfer *x = container_of(w, struct xfer, link);

				x->is_late = k->ops->is_late(x);
			}
		}
	}
}

static int
richest(const struct look *k)
{
	const int *have = k->have[k->writes];
	int best = 0;

	for (int i = 1; i < XFER_CLIENTS; i++) {
		if (have[i] > have[best])
			best = i;
	}
	return best;
}

static int
at_most(int a, int b)
{
	return a < b ? a : b;
}

/* The tickets for reads, or writes, that clients wait for with less than their share, from the client that
 * has most.  left: the number of tickets on their way back that are counted for no client. */
static void
level(struct look *k, bool of_writes, int *left)
{
	struct xfer_pool *xp = k->xp;
	int all = k->writes ? xp->writes_max : xp->bp->total[xp->main_cls];
	int share = all / (k->active ? k->active : 1), lines = 0;
	const int *have = k->have[k->writes];

	list_for_each(l, &xp->waiting[of_writes].turns)
	{
		struct fair_line *line = container_of(l, struct fair_line, turn);
		const struct xfer *first = container_of(list_first(&line->waiting), struct xfer, link);
		int client = (int)(line - xp->waiting[of_writes].line), from = richest(k);
		const struct xfer_client *c = &xp->client[client];
		int reads = c->queued - c->queued_writes;
		/* What its reads want it has asked for before. */
		int has = have[client] + (of_writes && !k->writes ? reads : 0);
		int want = at_most(of_writes ? c->queued_writes : reads, share - has);
		int covered = at_most(*left, want > 0 ? want : 0);

		if (k->now_ns - first->progress_ns < PATIENCE_NS)
			continue;
		*left -= covered;
		want = at_most(want - covered, have[from] - share);
		if (want <= 0 || ++lines > LINES_A_LOOK)
			continue;
		revoke_slowest(k, from, want);
	}
}

/* For as many as wait.  claimed: tickets on their way back that others wait for. */
static void
look_at_tickets(struct look *k, int waiting, int claimed)
{
	int left;

	if (k->pace->rate)
		revoke_slowest(k, -1, waiting - (k->coming[k->writes] - claimed));
	left = k->coming[k->writes] - claimed;
	if (!k->writes)
		level(k, false, &left);
	if (waiting == k->xp->queued || k->writes)
		level(k, true, &left);
}

/* For those that their lane holds back: bodies of the lane that are too slow. */
static void
look_at_lanes(struct look *k)
{
	struct xfer_pool *xp = k->xp;

	for (int i = 1; i <= XFER_LANES && k->pace->rate && xp->shut; i++) {
		int nr = xp->lane[i].shut;

		k->lane = i;
		list_for_each(l, &xp->holders)
		{
			const struct xfer *x = container_of(l, struct xfer, holder);

			nr -= x->revoked && (x->lane[0] == i || x->lane[1] == i);
		}
		if (xp->lane[i].shut)
			revoke_slowest(k, -1, nr);
	}
	k->lane = 0;
}

int
xfer_pool_revoke(struct xfer_pool *xp, const struct xfer_pace *pace, const struct xfer_pace_ops *ops,
		 uint64_t now_ns)
{
	struct look k = { .xp = xp, .pace = pace, .ops = ops, .now_ns = now_ns };

	look_at_all(&k, pace_skip(xp->looked_ns, now_ns));
	xp->looked_ns = now_ns;
	look_at_lanes(&k);
	if (xp->queued == 0)
		return k.revoked;
	look_who_waits(&k);
	if (xp->writes < xp->writes_max) {
		look_at_tickets(&k, xp->queued, 0);
		return k.revoked;
	}
	/* Writes have their share: what waits for it gains by the end of writes alone. */
	k.writes = true;
	look_at_tickets(&k, xp->queued_writes, 0);
	k.writes = false;
	look_at_tickets(&k, xp->queued - xp->queued_writes, at_most(k.coming[true], xp->queued_writes));
	return k.revoked;
}
