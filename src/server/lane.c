/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a channel has on one rail: a completion queue and a queue pair, made when the first token leads there,
 * and given back when the rail's device has died (rdma/ep.h, "contexts").  The state is drawn in
 * server_int.h.
 */
#include "server/server_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLUSH_NS (100 * NS_PER_MS) /* how long a flush may take, once the queue pair is in error */
#define HANG_NS (5 * NS_PER_S)     /* then the log hears that the device keeps a queue pair */

bool
lane_is_good(const struct lane *l)
{
	return l->state == LANE_ON && rdma_rail_state(l->rail) == RAIL_UP &&
	       rdma_rail_context(l->rail) == l->context;
}

/* ---- the end of one ---- */

/* What waits for room on the wire is over. */
static void
flush_waiting(struct lane *l)
{
	for (struct list *i = l->waiting.next, *next; i != &l->waiting; i = next) {
		struct op *op = container_of(i, struct op, link);

		next = i->next;
		check(op->lane == l && op->unposted > 0);
		op->unposted = 0;
		op_note(op, IBV_WC_WR_FLUSH_ERR);
		list_del(&op->link);
		if (op->on_wire == 0)
			op_end(op);
	}
}

static void
end_wire(struct lane *l)
{
	for (uint64_t i = 0; l->outstanding > 0 && i <= l->wire_mask; i++) {
		struct op *op = l->wire[i].op;

		if (!op)
			continue;
		check(op->lane == l && op->on_wire > 0);
		l->wire[i].op = NULL;
		l->outstanding--;
		op_note(op, l->end_wc_status);
		if (--op->on_wire == 0)
			op_end(op);
	}
	check(l->outstanding == 0);
	l->reads = 0;
}

static void
free_cq(struct lane *l)
{
	wait_unwatch(l);
	rdma_cq_free(l->cq);
	l->cq = NULL;
}

static void
begin_to_end(struct lane *l, int wc_status)
{
	check(l->state == LANE_ON && l->ep && l->cq);
	flush_waiting(l);
	held_drop(l->c, l);
	l->state = LANE_ENDING;
	l->end_wc_status = wc_status;
	l->ending_ns = clock_ns();
}

/* ENDING. */
static bool
step(struct lane *l)
{
	int r;

	check(l->state == LANE_ENDING && list_empty(&l->waiting));
	r = l->ep ? rdma_ep_free(l->ep, l->outstanding == 0) : 0;
	if (r == 0) {
		l->ep = NULL;
		end_wire(l);
		if (l->cq)
			free_cq(l);
		l->state = LANE_OFF;
		return false;
	}
	/* It waits to hear that its context is closed, for which nothing may refer to that. */
	if (r == -EINPROGRESS && l->cq)
		free_cq(l);
	if (clock_ns() - l->ending_ns > HANG_NS) {
		l->ending_ns = clock_ns();
		say(l->c->s, GANTRY_SERVER_LOG_ERROR,
		    "channel %u: a queue pair cannot be destroyed yet, and its %d operations are not over: "
		    "%s",
		    l->c->nr, l->outstanding, strerror(-r));
	}
	return true;
}

bool
lane_step(struct lane *l)
{
	if (l->state == LANE_ON && rdma_rail_context(l->rail) != l->context)
		begin_to_end(l, IBV_WC_FATAL_ERR);
	return l->state == LANE_ENDING && step(l);
}

bool
lane_end(struct lane *l)
{
	if (l->state == LANE_ON)
		begin_to_end(l, IBV_WC_WR_FLUSH_ERR);
	return l->state == LANE_ENDING && step(l);
}

void
lane_free(struct lane *l)
{
	if (!l)
		return;
	check(l->state == LANE_OFF && !l->ep && !l->cq && l->outstanding == 0);
	free(l->wire);
	free(l);
}

/* ---- repair ---- */

/* Collects what the error state flushes; false: something stays away. */
static bool
drain(struct lane *l)
{
	uint64_t until = clock_ns() + FLUSH_NS;
	int nr;

	while (l->outstanding > 0) {
		lane_reap(l, &nr);
		if (l->outstanding == 0)
			break;
		if (clock_ns() > until)
			return false;
		if (!nr)
			nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
	return true;
}

void
lane_repair(struct lane *l, int wc_status)
{
	struct gantry_channel *c = l->c;
	struct gantry_server *s = c->s;
	bool drained;
	int r;

	if (l->state != LANE_ON)
		return;
	r = rdma_ep_error(l->ep);
	drained = r == 0 && drain(l);
	flush_waiting(l);
	if (!s->p.qp_reset_on_failure && !c->is_fenced) {
		c->is_fenced = true;
		say(s, GANTRY_SERVER_LOG_ERROR,
		    "channel %u is fenced: a transfer has failed, and qp_reset_on_failure is off: free it",
		    c->nr);
	}
	if (drained && !c->is_fenced) {
		r = rdma_ep_reset(l->ep);
		if (r == 0) {
			l->generation = rdma_rail_generation(l->rail);
			say(s, GANTRY_SERVER_LOG_DEBUG, "channel %u was reset", c->nr);
			return;
		}
	}
	if (!drained && r == 0)
		say(s, GANTRY_SERVER_LOG_ERROR,
		    "channel %u: %d completions stay away: its queue pair is destroyed, and created again "
		    "when "
		    "it is "
		    "needed",
		    c->nr, l->outstanding);
	begin_to_end(l, wc_status);
	step(l);
}

/* ---- making one ---- */

static uint64_t
places(int depth)
{
	uint64_t n = 1;

	while (n < (uint64_t)depth)
		n *= 2;
	return n;
}

static struct lane *
lane_new(struct gantry_channel *c, struct rdma_rail *rail, const struct rdma_ep_ops *ops)
{
	struct lane *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->c = c;
	l->rail = rail;
	l->ops = ops;
	list_init(&l->waiting);
	return l;
}

static int
switch_on(struct lane *l)
{
	struct gantry_server *s = l->c->s;
	struct rdma_rail_info info;
	uint64_t nr;
	int r;

	check(l->state == LANE_OFF && !l->ep && !l->cq && l->outstanding == 0);
	rdma_rail_get_info(l->rail, &info);
	rdma_ep_limits(l->ops, l->rail, (int)s->p.cq_depth, &l->limits);
	l->message_max = info.max_msg_bytes && info.max_msg_bytes < RDMA_WR_BYTES_MAX ? info.max_msg_bytes
										      : RDMA_WR_BYTES_MAX;
	nr = places(l->limits.send_depth);
	if (!l->wire || l->wire_mask != nr - 1) {
		free(l->wire);
		l->wire = calloc(nr, sizeof *l->wire);
		if (!l->wire)
			return -ENOMEM;
		l->wire_mask = nr - 1;
	}
	check((uint64_t)l->limits.send_depth <= l->wire_mask + 1);
	l->generation = rdma_rail_generation(l->rail);
	r = rdma_cq_new(l->ops, l->rail, l->limits.send_depth, (int)(l->c->nr & 0xffff), &l->cq);
	if (r < 0)
		return r;
	r = rdma_ep_new(l->ops, l->rail, l->cq, l->limits.send_depth, &l->ep);
	if (r < 0) {
		rdma_cq_free(l->cq);
		l->cq = NULL;
		return r;
	}
	l->context = rdma_cq_context(l->cq);
	l->oldest_nr = l->next_nr;
	l->state = LANE_ON;
	l->armed = false;
	wait_watch(l);
	say(s, GANTRY_SERVER_LOG_INFO, "channel %u: a queue pair on %s:%d, %d deep, %d READs, %d pieces",
	    l->c->nr, info.device, info.port, l->limits.send_depth, l->limits.read_depth, l->limits.max_sge);
	return 0;
}

/* What it was connected with has changed: the path, or all that the device had. */
static bool
is_stale(const struct lane *l)
{
	return l->ep->path != rdma_rail_path(l->rail) || l->generation != rdma_rail_generation(l->rail);
}

static int
make_good(struct lane *l)
{
	unsigned generation;

	if (lane_step(l))
		return -ENODEV;
	if (l->state == LANE_OFF)
		return switch_on(l);
	if (!is_stale(l) || l->outstanding || !list_empty(&l->waiting))
		return 0;
	generation = rdma_rail_generation(l->rail);
	if (rdma_ep_reset(l->ep) == 0) {
		l->generation = generation;
		return 0;
	}
	begin_to_end(l, IBV_WC_FATAL_ERR);
	return step(l) ? -ENODEV : switch_on(l);
}

int
lane_get(struct gantry_channel *c, int rail, const struct rdma_ep_ops *ops, struct lane **ret_lane)
{
	struct gantry_server *s = c->s;
	int r;

	check(rail >= 0 && rail < RDMA_RAILS_MAX);
	if (!c->lane[rail]) {
		c->lane[rail] = lane_new(c, rdma_rail(s->rd, rail), ops);
		if (!c->lane[rail])
			return -ENOMEM;
	}
	r = make_good(c->lane[rail]);
	if (r < 0) {
		say(s, GANTRY_SERVER_LOG_ERROR, "channel %u: no queue pair: %s%s", c->nr, strerror(-r),
		    r == -ENOMEM ? ": the adapter has no more, or the limit of locked memory is too small"
				 : "");
		return r == -ENODEV || r == -EIO ? -ENODEV : -ENOMEM;
	}
	*ret_lane = c->lane[rail];
	return 0;
}

uint64_t
lane_deadline(const struct lane *l)
{
	uint64_t limit = l->c->s->limit_ns;

	/* A long one takes its time on a slow network. */
	return limit && l->state == LANE_ON && l->outstanding ? l->since_ns + limit + 16 * l->bytes : 0;
}
