/*
 * A core's endpoint: making and freeing it, its descriptors, and the bell by which helper threads are heard.
 * Called by core/ (life, polling) on the core's own thread, but for chan_new(), which may run on the main
 * thread before the core starts.
 *
 * Helpers answer into a mailbox of our own, and ring one bell in the core's: so the core's mailbox never
 * holds a message of ours but the bell, and freeing a chan need not wait for that.
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

static void
on_bell(struct msg *m)
{
	struct chan_bell *bell = container_of(m, struct chan_bell, msg);

	if (bell->left)
		return;
	if (!bell->ch) {
		free(bell);
		return;
	}
	atomic_store(&bell->rung, false);
	chan_run(bell->ch);
}

void
chan_ring(struct chan *ch)
{
	if (!atomic_exchange(&ch->bell->rung, true))
		mailbox_post(ch->mb, &ch->bell->msg, on_bell);
}

void
chan_answer(struct chan *ch, struct msg *m, void (*fn)(struct msg *))
{
	mailbox_post(&ch->inbox, m, fn);
	chan_ring(ch);
	/* The core may have seen the message long ago; only now may it free the chan. */
	atomic_fetch_sub(&ch->answers_due, 1);
}

/* On a helper thread, rails locked. */
static void
on_rails_changed(struct rdma_watch *w)
{
	struct chan *ch = container_of(w, struct chan, watch);

	atomic_store(&ch->rails_changed, true);
	chan_ring(ch);
}

/* item 111: a rail that is gone declines who waits for it, and what was under way there ends; one that
 * returns serves again. */
static void
look_at_rails(struct chan *ch)
{
	for (int i = 0; i < ch->rail_nr; i++) {
		struct chan_rail *cr = &ch->rail[i];
		unsigned generation = rdma_rail_generation(cr->rail);

		if (generation != cr->generation) {
			cr->generation = generation;
			for (int k = 0; k < cr->dci_nr; k++)
				dci_replace(&cr->dci[k]);
		}
		rail_look(cr);
		if (rdma_rail_state(cr->rail) == RAIL_UP)
			dcis_rail_is_up(cr);
		else
			lease_decline_waiting(cr, CHAN_NO_RAIL);
	}
}

int
chan_run(struct chan *ch)
{
	int n = mailbox_run(&ch->inbox, 0);

	if (atomic_exchange(&ch->rails_changed, false))
		look_at_rails(ch);
	n += op_run_ended(ch);
	n += lease_run_ready(ch);
	for (int i = 0; i < ch->rail_nr; i++)
		rail_end_step(&ch->rail[i]);
	return n;
}

/* --- life --- */

static void
dci_init(struct chan_rail *cr, int nr)
{
	struct chan_dci *dci = &cr->dci[nr];
	int r;

	dci->cr = cr;
	dci->nr = (uint32_t)nr;
	dci->generation = cr->generation;
	list_init(&dci->posted);
	cr->dci_nr++;
	atomic_fetch_add(&rdma_rail_stats(cr->rail)->dcis, 1);
	atomic_fetch_add(&rdma_rail_stats(cr->rail)->dcis_free, 1);
	if (!has_cq(cr)) {
		dci_set_state(dci, DCI_BROKEN); /* dci_revive() comes */
		return;
	}
	r = rdma_dci_new(cr->rail, cr->cq, cr->limits.send_depth, &dci->qp);
	/* A port without an address, say: it may get one, so that is no reason not to start. */
	if (r < 0)
		dci_unborn(dci, r);
	else
		list_push_tail(&cr->free, &dci->free);
}

static int
rail_init(struct chan *ch, struct chan_rail *cr, const struct chan_params *p, int nr)
{
	int share = (p->conf->channels + p->core_nr - 1) / p->core_nr, spares, r;

	cr->ch = ch;
	cr->rail = rdma_rail(p->rdma, nr);
	list_init(&cr->free);
	fair_init(&cr->waiting);
	cr->generation = rdma_rail_generation(cr->rail);
	if (share < CHANNELS_PER_CORE_MIN) {
		share = CHANNELS_PER_CORE_MIN;
		if (p->core == 0)
			log_note("rdma.channels %d is raised to %d a core, %d in all", p->conf->channels,
				 share, share * p->core_nr);
	}
	spares = share / 8;
	cr->lease_max = share;
	rdma_dci_limits(cr->rail, p->pieces_max, &cr->limits);
	cr->cq_depth = p->conf->cq_depth;
	if (cr->cq_depth && cr->cq_depth < (share + spares) * cr->limits.send_depth) {
		log_error("rdma.cq_depth %d is less than %d channels with %d work requests each need: %d",
			  cr->cq_depth, share + spares, cr->limits.send_depth,
			  (share + spares) * cr->limits.send_depth);
		return -EINVAL;
	}
	cr->dci = calloc((size_t)(share + spares), sizeof *cr->dci);
	if (!cr->dci)
		return -ENOMEM;
	cr->dci_nr = share + spares;
	r = rdma_cq_new(cr->rail, rail_cq_depth(cr), &cr->cq);
	cr->dci_nr = 0;
	/* A device that died since it was opened (registering buffers takes its time) is opened anew, and
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
		dci_init(cr, i);
	return 0;
}

int
chan_new(const struct chan_params *params, struct chan **ret_chan)
{
	struct chan *ch = calloc(1, sizeof *ch);
	int wait_nr = 2 * params->queue_max + 8, r = -ENOMEM;

	if (!ch)
		return -ENOMEM;
	check(params->pieces_max > 0);
	check(params->core_nr > 0);
	ch->rdma = params->rdma;
	ch->mb = params->mb;
	ch->timers = params->timers;
	ch->core = params->core;
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
	list_init(&ch->ready);
	list_init(&ch->ended);
	list_init(&ch->waits_free);
	r = mailbox_init(&ch->inbox);
	if (r < 0) {
		free(ch);
		return r;
	}
	r = -ENOMEM;
	ch->mode = params->conf->mode == RDMA_NONE            ? CHAN_MODE_NONE
		   : !ch->rdma || rdma_rail_nr(ch->rdma) == 0 ? CHAN_MODE_NO_DEVICE
							      : CHAN_MODE_ON;
	ch->bell = calloc(1, sizeof *ch->bell);
	ch->waits = calloc((size_t)wait_nr, sizeof *ch->waits);
	ch->region_map = calloc((size_t)params->region_nr + 1, sizeof *ch->region_map);
	if (!ch->bell || !ch->waits || !ch->region_map)
		goto fail;
	ch->bell->ch = ch;
	ch->region_nr = params->region_nr;
	if (params->region_nr)
		memcpy(ch->region_map, params->region_map,
		       (size_t)params->region_nr * sizeof *ch->region_map);
	for (int i = 0; i < wait_nr; i++)
		list_push_tail(&ch->waits_free, &ch->waits[i].link);
	if (ch->mode == CHAN_MODE_ON) {
		int nr = rdma_rail_nr(ch->rdma);

		ch->rail = calloc((size_t)nr, sizeof *ch->rail);
		if (!ch->rail)
			goto fail;
		for (r = 0; r == 0 && ch->rail_nr < nr; ch->rail_nr++)
			r = rail_init(ch, &ch->rail[ch->rail_nr], params, ch->rail_nr);
		if (r < 0)
			goto fail;
		ch->watch.changed = on_rails_changed;
		rdma_watch_add(ch->rdma, &ch->watch);
		/* What happened before is not told. */
		atomic_store(&ch->rails_changed, true);
		for (int i = 0; ch->watch_fd && i < nr; i++) {
			if (!has_cq(&ch->rail[i]))
				continue;
			ch->rail[i].watched = true;
			ch->watch_fd(ch->fd_cookie, rdma_cq_fd(ch->rail[i].cq));
		}
		chan_ring(ch);
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

	for (int i = 0; i < cr->dci_nr; i++) {
		int r;

		timer_disarm(ch->timers, &cr->dci[i].timer);
		dci_set_state(&cr->dci[i], DCI_FREE);
		r = rdma_dci_free(cr->dci[i].qp, true);
		if (r < 0)
			log_warn("a channel cannot be destroyed: %s", strerror(-r));
		atomic_fetch_sub(&st->dcis, 1);
		atomic_fetch_sub(&st->dcis_free, 1);
	}
	timer_disarm(ch->timers, &cr->cq_timer);
	rdma_cq_free(cr->cq);
	free(cr->dci);
}

/* Helpers may still answer, into the inbox; the core's mailbox will not be there any more. */
static void
leave(struct chan *ch)
{
	ch->bell->left = true;
	atomic_store(&ch->bell->rung, true);
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
	if (ch->bell && atomic_load(&ch->bell->rung))
		ch->bell->ch = NULL; /* on its way: on_bell() frees it */
	else
		free(ch->bell);
	free(ch->rail);
	free(ch->waits);
	free(ch->region_map);
	free(ch);
}

/* --- waiting --- */

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

int
chan_fds(const struct chan *ch, int *ret_fds, int max)
{
	int n = 0;

	for (int i = 0; i < ch->rail_nr && n < max; i++) {
		if (has_cq(&ch->rail[i]))
			ret_fds[n++] = rdma_cq_fd(ch->rail[i].cq);
	}
	return n;
}

void
chan_arm(struct chan *ch)
{
	for (int i = 0; i < ch->rail_nr; i++) {
		struct chan_rail *cr = &ch->rail[i];

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
		if (!has_cq(&ch->rail[i]) || rdma_cq_fd(ch->rail[i].cq) != fd)
			continue;
		rdma_cq_event(ch->rail[i].cq);
		ch->rail[i].armed = false;
		ch->rail[i].look = true;
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

void
chan_get_stats(const struct chan *ch, struct chan_stats *ret_stats)
{
	ret_stats->leases = atomic_load_explicit(&ch->stats.leases, memory_order_relaxed);
	ret_stats->waits = atomic_load_explicit(&ch->stats.waits, memory_order_relaxed);
	for (int i = 0; i < CHAN_REASON_NR; i++)
		ret_stats->declines[i] = atomic_load_explicit(&ch->stats.declines[i], memory_order_relaxed);
	ret_stats->leased = atomic_load_explicit(&ch->stats.leased, memory_order_relaxed);
	ret_stats->waiting = atomic_load_explicit(&ch->stats.waiting, memory_order_relaxed);
	ret_stats->recovering = atomic_load_explicit(&ch->stats.recovering, memory_order_relaxed);
}
