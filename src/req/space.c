/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends slow clients whose requests hold space of the store that another client was refused (507).
 *
 * A PUT in progress holds the space of the bytes that it has stored, and a GET holds that of an object which was removed or replaced
 * after the GET began. As long as no request is refused, these clients may be slow. A refusal is noted for all
 * cores (struct space_want) with the bytes that were missing. Each core then measures its clients as pace.c does,
 * and publishes the bytes that the slow ones hold. Once these bytes are enough over all cores, the cores end
 * their slowest clients until the bytes are free. If they are never enough, no client is ended: a PUT that the
 * store cannot take at all costs other clients nothing.
 */
#include "req/machine.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

/* Time for which a refusal is remembered. */
#define WANT_NS (60 * NS_PER_S)
/* Time after which a later refusal replaces an unsatisfied one. A smaller refusal of the same disk replaces it at once. */
#define KEEP_NS (3 * NS_PER_S)
#define WATCH_NS NS_PER_S

/* ---- the refusal ---- */

static uint64_t
load(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

/* Returns true for one minute after a refusal, until the missing bytes are free. */
static bool
is_wanted(const struct reqs *rs, uint64_t now_ns)
{
	const struct space_want *w = rs->env.want;
	uint64_t at = w ? atomic_load_explicit(&w->at_ns, memory_order_acquire) : 0;

	return at && now_ns < at + WANT_NS && load(&w->left) > 0;
}

void
space_refused(struct req *rq)
{
	struct space_want *w = rq->rs->env.want;
	uint64_t now = clock_ns(), need = rq->target.have_content_length ? rq->target.content_length : 0;

	if (rq->target.wire != WIRE_NONE)
		need = rq->target.token.size;
	if (need == 0 && rq->xfer.pool)
		need = rq->xfer.moved;
	/* A commit is refused for want of space in the log or the index, which no body holds. */
	if (!w || need == 0 || rq->phase >= PHASE_COMMIT || !rq->xfer.is_write)
		return;
	if (is_wanted(rq->rs, now) && now < load(&w->at_ns) + KEEP_NS &&
	    (load(&w->lane) != rq->lane || need >= load(&w->left)))
		return;
	atomic_store(&w->lane, rq->lane);
	atomic_store(&w->left, need);
	atomic_store_explicit(&w->at_ns, now, memory_order_release);
}

/* ---- what a request holds ---- */

/* A look-up of the object that a GET sends. */
struct probe {
	struct store_obj obj;
	struct store_port *port;
	bool is_over;
};

static void
probe_end(struct probe *p)
{
	if (p->obj.is_open)
		store_close(p->port, &p->obj);
	free(p);
}

/* Ends a look-up that took longer than the call; its result is not used. */
static void
on_probe(struct store_op *op)
{
	probe_end(container_of(container_of(op, struct store_obj, op), struct probe, obj));
}

/* Returns true if a GET sends an object that its key does not name any longer. If the store does not answer at once,
 * the object counts as present. */
static bool
is_removed(const struct req *rq)
{
	struct probe *p = calloc(1, sizeof *p);
	struct store_key k = req_key(rq);
	bool removed;
	int r;

	if (!p)
		return false;
	p->port = rq->rs->env.store;
	p->obj.op.done = on_probe;
	r = store_open(p->port, &k, &p->obj);
	if (r == 0)
		return false;
	if (r > 0)
		r = p->obj.op.result;
	/* Changed attributes make a new version of the same bytes. */
	removed = r == -ENOENT || r == -ENXIO ||
		  (r >= 0 && p->obj.version != rq->obj.version &&
		   (p->obj.crc64 != rq->obj.crc64 || p->obj.size_bytes != rq->obj.size_bytes));
	probe_end(p);
	return removed;
}

/* Returns the bytes of the store that would be free if the request ended. */
static uint64_t
held_by(const struct req *rq)
{
	if (rq->replied)
		return rq->reply.body == REPLY_STREAM && rq->obj.is_open && is_removed(rq)
			       ? rq->obj.size_bytes
			       : 0;
	if (!rq->change || !rq->change->is_put || rq->phase >= PHASE_COMMIT)
		return 0;
	return rq->xfer.moved;
}

/* ---- ending ---- */

static uint64_t
held_by_all(const struct space_want *w)
{
	uint64_t sum = 0, at = load(&w->at_ns);

	for (int i = 0; i < CONF_CORES_MAX; i++)
		sum += load(&w->seen_ns[i]) == at ? load(&w->held[i]) : 0;
	return sum;
}

/* Ends the slowest request of this core that holds space. Returns the bytes that it held; 0: there is none. */
static uint64_t
end_slowest(struct reqs *rs, uint64_t lane, const struct xfer_pace *pace, uint64_t now_ns)
{
	struct req *slowest = NULL;
	uint64_t held = 0, rate = UINT64_MAX;

	list_for_each(l, &rs->live)
	{
		struct req *rq = container_of(l, struct req, link);

		if (rq->lane == lane && pace_is_slow_request(rq, pace, now_ns) &&
		    (!slowest || pace_rate_of(rq, now_ns) < rate) && held_by(rq) > 0) {
			slowest = rq;
			rate = pace_rate_of(rq, now_ns);
		}
	}
	if (slowest) {
		held = held_by(slowest);
		pace_end_for_space(slowest);
	}
	return held;
}

/* Ends the slowest clients that hold space, as many as are needed, after their measurement. */
static void
end_slow(struct reqs *rs, const struct xfer_pace *pace, uint64_t now_ns)
{
	struct space_want *w = rs->env.want;
	int core = rs->env.core;
	uint64_t held = 0, lane = load(&w->lane), at = load(&w->at_ns), left;

	list_for_each(l, &rs->live)
	{
		struct req *rq = container_of(l, struct req, link);

		if (rq->lane == lane && pace_is_slow_request(rq, pace, now_ns))
			held += held_by(rq);
	}
	atomic_store(&w->held[core], held);
	atomic_store(&w->seen_ns[core], at);
	if (held_by_all(w) < load(&w->left))
		return;
	while ((left = load(&w->left)) > 0) {
		uint64_t freed = end_slowest(rs, lane, pace, now_ns), less;

		if (!freed)
			break;
		held -= freed < held ? freed : held;
		atomic_store(&w->held[core], held);
		do
			less = freed < left ? left - freed : 0;
		while (!atomic_compare_exchange_weak(&w->left, &left, less));
	}
}

/* ---- watching ---- */

static void
on_watch(struct timer *t)
{
	struct reqs *rs = container_of(t, struct reqs, space);
	const struct conf *c = rs->env.conf;
	struct xfer_pace pace = { .rate = c->limits.body_rate, .grace_ns = c->limits.body_grace_ns };
	uint64_t now = clock_ns();
	bool wanted = pace.rate && is_wanted(rs, now);

	if (wanted) {
		pace_measure(rs, &pace, now);
		end_slow(rs, &pace, now);
	}
	if (rs->plain_nr > 0)
		timer_arm(rs->env.timers, t, now + (wanted ? XFER_LOOK_NS : WATCH_NS), on_watch);
}

void
space_watch(struct reqs *rs)
{
	if (rs->env.want && !rs->space.armed && rs->plain_nr > 0)
		timer_arm(rs->env.timers, &rs->space, clock_ns() + WATCH_NS, on_watch);
}
