/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core's chan: making and freeing it, its turns, its descriptors.  Called by core/ on the core's own thread,
 * but for chan_new(), which may run on the main thread before the core starts.
 */
#define LOG_MODULE "chan"
#include "chan/chan_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHANNELS_PER_CORE_MIN 8
#define FREE_PATIENCE_MS 10000

/* On a helper thread, rails locked. */
static void
on_rails_changed(struct rdma_watch *w)
{
	struct chan *ch = container_of(w, struct chan, watch);

	atomic_store(&ch->rails_changed, true);
	chan_wake(ch);
}

static int rails_add(struct chan *ch, bool late);

/* item 111: a rail that is gone declines who waits for it, and what was under way there ends; one that
 * returns serves again. */
static void
follow_rails(struct chan *ch)
{
	int r = rails_add(ch, true);

	if (r < 0)
		log_error("core %d has no channels on a new rail: %s", ch->core, strerror(-r));
	for (int i = 0; i < ch->rail_nr; i++) {
		struct chan_rail *cr = &ch->rail[i];
		unsigned generation = rdma_rail_generation(cr->rail);

		if (generation != cr->generation) {
			cr->generation = generation;
			for (int k = 0; k < cr->ep_nr; k++)
				ep_replace(&cr->ep[k]);
		}
		for (int k = 0; k < cr->ep_nr; k++)
			ep_follow_path(&cr->ep[k]);
		eps_follow_share(cr);
		rail_follow_context(cr);
		if (rdma_rail_state(cr->rail) == RAIL_UP)
			eps_retry(cr);
		else
			lease_decline_waiting(cr, CHAN_NO_RAIL);
	}
}

static int
chan_run(struct chan *ch)
{
	int n = mailbox_run(&ch->inbox, 0);

	if (atomic_exchange(&ch->rails_changed, false))
		follow_rails(ch);
	n += op_run_ended(ch);
	n += lease_run_ready(ch);
	for (int i = 0; i < ch->rail_nr; i++)
		rail_end_step(&ch->rail[i]);
	return n;
}

static void
on_wake(struct msg *m)
{
	struct chan_wakeup *w = container_of(m, struct chan_wakeup, msg);

	if (w->left)
		return;
	if (!w->ch) {
		free(w);
		return;
	}
	atomic_store(&w->posted, false);
	chan_run(w->ch);
}

int
chan_poll(struct chan *ch)
{
	int n = op_run_ended(ch) + lease_run_ready(ch), found = 0;
	bool polled = false;

	if (ch->next_poll_ns && clock_ns() < ch->next_poll_ns)
		return n;
	for (int i = 0; i < ch->rail_nr; i++) {
		if (ch->rail[i].outstanding == 0 && !ch->rail[i].must_poll)
			continue;
		polled = true;
		found += rail_poll(&ch->rail[i]);
	}
	if (polled) {
		uint64_t wait = delay_next_ns(&ch->delay, found);

		ch->next_poll_ns = wait ? clock_ns() + wait : 0;
	}
	n += found + op_run_ended(ch) + lease_run_ready(ch);
	for (int i = 0; polled && i < ch->rail_nr; i++)
		rail_end_step(&ch->rail[i]);
	return n;
}

/* ---- life ---- */

static void
ep_init(struct chan_rail *cr, int nr)
{
	struct chan_ep *ep = &cr->ep[nr];
	int r;

	ep->cr = cr;
	ep->nr = (uint32_t)nr;
	ep->generation = cr->generation;
	list_init(&ep->posted);
	cr->ep_nr++;
	atomic_fetch_add(&ep_counts(cr)->all, 1);
	atomic_fetch_add(&ep_counts(cr)->free, 1);
	if (has_connections(cr)) {
		list_push_tail(&cr->free, &ep->free);
		return;
	}
	cr->made++;
	atomic_fetch_add(&rdma_rail_stats(cr->rail)->eps_made, 1);
	if (!has_cq(cr)) {
		ep_set_state(ep, EP_BROKEN); /* ep_create_again() comes */
		return;
	}
	r = rdma_ep_new(cr->ops, cr->rail, cr->cq, cr->limits.send_depth, &ep->rdma);
	/* A port without an address, say: it may get one, so that is no reason not to start. */
	if (r < 0)
		ep_create_failed(ep, r);
	else
		list_push_tail(&cr->free, &ep->free);
}

/* late: the core runs, so what may block is left to the helper. */
static int
rail_init(struct chan *ch, struct chan_rail *cr, int nr, const struct rdma_ep_ops *ops, bool late)
{
	int share = (ch->channels + ch->core_nr - 1) / ch->core_nr, spares, r;

	cr->ch = ch;
	cr->nr = nr;
	cr->rail = rdma_rail(ch->rdma, nr);
	cr->ops = ops;
	cr->epoll_fd = -1;
	list_init(&cr->free);
	fair_init(&cr->waiting);
	cr->generation = rdma_rail_generation(cr->rail);
	if (share < CHANNELS_PER_CORE_MIN) {
		share = CHANNELS_PER_CORE_MIN;
		if (ch->core == 0 && !late)
			log_note("rdma.channels %d is raised to %d a core, %d in all", ch->channels, share,
				 share * ch->core_nr);
	}
	spares = share / 8;
	cr->lease_max = share;
	rdma_ep_limits(cr->ops, cr->rail, ch->pieces_max, &cr->limits);
	cr->cq_depth = has_connections(cr) ? 0 : ch->cq_depth;
	if (cr->cq_depth && cr->cq_depth < (share + spares) * cr->limits.send_depth) {
		log_error("rdma.cq_depth %d is less than %d channels with %d work requests each need: %d",
			  cr->cq_depth, share + spares, cr->limits.send_depth,
			  (share + spares) * cr->limits.send_depth);
		return -EINVAL;
	}
	cr->ep = calloc((size_t)(share + spares), sizeof *cr->ep);
	if (!cr->ep)
		return -ENOMEM;
	if (has_connections(cr)) {
		r = conn_init(cr);
		for (int i = 0; r == 0 && i < share; i++)
			ep_init(cr, i);
		return r;
	}
	cr->ep_nr = share + spares;
	r = late ? -ENODEV : rdma_cq_new(cr->ops, cr->rail, rail_cq_depth(cr), ch->core, &cr->cq);
	cr->ep_nr = 0;
	/* A device that died since it was opened (registering buffers takes its time) is reopened, and
	 * that is when its queue is made. */
	if (r < 0 && r != -ENODEV && rdma_rail_state(cr->rail) != RAIL_LOST) {
		log_error("rail %d: no completion queue for %d channels: %s", nr, share + spares,
			  strerror(-r));
		return r;
	}
	if (r == 0) {
		cr->cq_state = CQ_ON;
		cr->context = rdma_cq_context(cr->cq);
	}
	for (int i = 0; i < share + spares; i++)
		ep_init(cr, i);
	return 0;
}

/* Adds the rail's transports that serve any token, each with channels of its own. */
static int
rail_add(struct chan *ch, int nr, bool late)
{
	const struct rdma_ep_ops *ops;
	int r = 0;

	for (int i = 0; r == 0 && (ops = rdma_rail_transport(rdma_rail(ch->rdma, nr), i)); i++) {
		if (!ops->families)
			continue;
		check(ch->rail_nr < CHAN_FDS_MAX);
		r = rail_init(ch, &ch->rail[ch->rail_nr], nr, ops, late);
		ch->rail_nr++;
	}
	return r;
}

/* Adds those that have come since the last time; 0 or -errno. */
static int
rails_add(struct chan *ch, bool late)
{
	int r = 0;

	while (r == 0 && ch->rails_seen < rdma_rail_nr(ch->rdma))
		r = rail_add(ch, ch->rails_seen++, late);
	if (ch->rails_seen > 0)
		ch->mode = CHAN_MODE_ON;
	return r;
}

/* Takes over the parameters of a pool. */
static void
take_params(struct chan *ch, const struct chan_params *params)
{
	ch->rdma = params->rdma;
	ch->mb = params->mb;
	ch->timers = params->timers;
	ch->core = params->core;
	ch->core_nr = params->core_nr;
	ch->channels = params->conf->channels;
	ch->cq_depth = params->conf->cq_depth;
	ch->numa_node = params->numa_node;
	ch->turn = (unsigned)params->core;
	ch->reset_on_failure = params->conf->qp_reset_on_failure;
	ch->poll_batch = params->conf->poll_batch > 0 ? params->conf->poll_batch : 16;
	ch->pieces_max = params->pieces_max;
	ch->watch_fd = params->watch_fd;
	ch->unwatch_fd = params->unwatch_fd;
	ch->fd_cookie = params->fd_cookie;
	ch->queue_max = params->queue_max;
	ch->free_patience_ms = FREE_PATIENCE_MS;
	ch->delay = (struct delay){ .mode = params->conf->delay_mode,
				    .interval_ns = params->conf->delay_interval_ns };
	ch->region_nr = params->region_nr;
	ch->mode = params->conf->mode == RDMA_NONE ? CHAN_MODE_NONE : CHAN_MODE_NO_DEVICE;
}

/* Makes the endpoints of all rails, and begins to watch them. Returns 0 or -errno. */
static int
rails_begin(struct chan *ch)
{
	int r;

	/* An array of full size: rails keep their places when others are added. */
	ch->rail = calloc(CHAN_FDS_MAX, sizeof *ch->rail);
	if (!ch->rail)
		return -ENOMEM;
	r = rails_add(ch, false);
	if (r < 0)
		return r;
	ch->watch.changed = on_rails_changed;
	rdma_watch_add(ch->rdma, &ch->watch);
	/* Changes before rdma_watch_add() were not reported. */
	atomic_store(&ch->rails_changed, true);
	for (int i = 0; ch->watch_fd && i < ch->rail_nr; i++) {
		if (!has_cq(&ch->rail[i]))
			continue;
		ch->rail[i].watched = true;
		ch->watch_fd(ch->fd_cookie, rdma_cq_fd(ch->rail[i].cq));
	}
	chan_wake(ch);
	return 0;
}

int
chan_new(const struct chan_params *params, struct chan **ret_chan)
{
	struct chan *ch = calloc(1, sizeof *ch);
	int wait_nr = 2 * params->queue_max + 8, r;

	if (!ch)
		return -ENOMEM;
	check(params->pieces_max > 0);
	check(params->core_nr > 0);
	take_params(ch, params);
	list_init(&ch->ready);
	list_init(&ch->ended);
	list_init(&ch->waits_free);
	r = mailbox_init(&ch->inbox);
	if (r < 0) {
		free(ch);
		return r;
	}
	r = -ENOMEM;
	ch->wakeup = calloc(1, sizeof *ch->wakeup);
	ch->waits = calloc((size_t)wait_nr, sizeof *ch->waits);
	ch->region_map = calloc((size_t)params->region_nr + 1, sizeof *ch->region_map);
	if (!ch->wakeup || !ch->waits || !ch->region_map)
		goto fail;
	ch->wakeup->ch = ch;
	ch->wakeup->run = on_wake;
	if (params->region_nr)
		memcpy(ch->region_map, params->region_map,
		       (size_t)params->region_nr * sizeof *ch->region_map);
	for (int i = 0; i < wait_nr; i++)
		list_push_tail(&ch->waits_free, &ch->waits[i].link);
	if (ch->mode != CHAN_MODE_NONE && ch->rdma) {
		r = rails_begin(ch);
		if (r < 0)
			goto fail;
	}
	*ret_chan = ch;
	return 0;
fail:
	chan_free(ch);
	return r;
}

static void
rail_fini(struct chan *ch, struct chan_rail *cr)
{
	struct rdma_rail_stats *st = rdma_rail_stats(cr->rail);

	for (int i = 0; i < cr->ep_nr; i++) {
		int r;

		timer_disarm(ch->timers, &cr->ep[i].timer);
		ep_set_state(&cr->ep[i], EP_FREE);
		r = rdma_ep_free(cr->ep[i].rdma, true);
		if (r < 0)
			log_warn("a channel cannot be destroyed: %s", strerror(-r));
		atomic_fetch_sub(&ep_counts(cr)->all, 1);
		atomic_fetch_sub(&st->eps_made, !has_connections(cr));
		atomic_fetch_sub(&ep_counts(cr)->free, 1);
	}
	if (has_connections(cr))
		conn_fini(cr);
	timer_disarm(ch->timers, &cr->cq_timer);
	rdma_cq_free(cr->cq);
	free(cr->ep);
}

/* Helpers may still answer, into the inbox; the core's mailbox will not be there any more. */
static void
leave(struct chan *ch)
{
	ch->wakeup->left = true;
	atomic_store(&ch->wakeup->posted, true);
}

void
chan_free(struct chan *ch)
{
	if (!ch)
		return;
	check(ch->leased == 0);
	check(ch->waiting == 0);
	if (ch->watch.changed)
		rdma_watch_del(ch->rdma, &ch->watch);
	for (int ms = 0; ch->jobs_out || ch->waits_out || atomic_load(&ch->answers_due); ms++) {
		if (ms >= ch->free_patience_ms) {
			/* The kernel has our queue pair and does not come back; neither may its memory go. */
			log_error("%d channels are still being repaired: left alone", ch->jobs_out);
			leave(ch);
			return;
		}
		mailbox_run(&ch->inbox, 0);
		usleep(1000);
	}
	for (int i = 0; i < ch->rail_nr; i++)
		rail_fini(ch, &ch->rail[i]);
	mailbox_fini(&ch->inbox);
	if (ch->wakeup && atomic_load(&ch->wakeup->posted))
		ch->wakeup->ch = NULL; /* on its way: on_wake() frees it */
	else
		free(ch->wakeup);
	free(ch->rail);
	free(ch->waits);
	free(ch->region_map);
	free(ch);
}

/* ---- waiting ---- */

int
chan_waiting(const struct chan *ch)
{
	return ch->waiting;
}

bool
chan_busy(const struct chan *ch)
{
	return ch->outstanding > 0 || !list_empty(&ch->ready) || !list_empty(&ch->ended);
}

void
chan_arm(struct chan *ch)
{
	for (int i = 0; i < ch->rail_nr; i++) {
		struct chan_rail *cr = &ch->rail[i];

		if (has_connections(cr))
			conn_arm(cr);
		if (has_cq(cr) && cr->outstanding > 0 && !cr->armed) {
			rdma_cq_arm(cr->cq);
			cr->armed = true;
		}
	}
	/* What came before the arming makes no event: the poll that follows must look, delay or not. */
	ch->next_poll_ns = 0;
}

void
chan_event(struct chan *ch, int fd)
{
	for (int i = 0; i < ch->rail_nr; i++) {
		struct chan_rail *cr = &ch->rail[i];

		if (has_connections(cr) ? cr->epoll_fd != fd : !has_cq(cr) || rdma_cq_fd(cr->cq) != fd)
			continue;
		if (has_connections(cr))
			conn_event(cr);
		else
			rdma_cq_event(cr->cq);
		cr->armed = false;
		cr->must_poll = true;
		ch->next_poll_ns = 0;
	}
}

void
chan_fd_unwatched(struct chan *ch, int fd)
{
	for (int i = 0; i < ch->rail_nr; i++) {
		struct chan_rail *cr = &ch->rail[i];

		if (!cr->unwatching || rdma_cq_fd(cr->cq) != fd)
			continue;
		cr->unwatching = cr->watched = false;
		rail_end_step(cr);
	}
}
