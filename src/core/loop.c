/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core's thread: it makes its parts, turns its loop until it is told to stop, drains and takes the parts
 * down.
 *
 * The loop waits in one place, ring_turn().  Everything that may need it wakes that: the mailbox through its
 * doorbell, the RDMA completion queues through their channels once they are armed, connections through the
 * epoll descriptors of their daemons, timers through the time it waits.
 */
#define LOG_MODULE "core"
#include "core/core_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/run_clock.h"
#include "base/slice.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#define RING_ENTRIES 1024
#define SPIN_NS (20 * NS_PER_US) /* polling without progress, at most */
#define STOP_TICK_NS (10 * NS_PER_MS)
#define STOP_IDLE_NS (200 * NS_PER_MS) /* how long idle connections get to close by themselves */
#define STOP_SAY_NS (5 * NS_PER_S)     /* how often a drain that does not end is logged */

/* ---- what others see ---- */

static void
put(_Atomic int *to, int v)
{
	atomic_store_explicit(to, v, memory_order_relaxed);
}

static void
put_high(_Atomic int *to, int v)
{
	if (v > atomic_load_explicit(to, memory_order_relaxed))
		put(to, v);
}

void
core_publish(struct core *c)
{
	int live = reqs_live(c->reqs), queued = reqs_queued(c->reqs) + chan_waiting(c->chan);

	put(&c->pub.requests, live);
	put(&c->pub.queued, queued);
	put_high(&c->pub.requests_high, live);
	put_high(&c->pub.queued_high, queued);
	put(&c->pub.http_bufs_low, c->http_bufs.low[BUF_SMALL]);
	put(&c->pub.connections, http_connections(c->http));
	for (int i = 0; i < BUF_CLASS_NR; i++) {
		put(&c->pub.bufs_avail[i], c->bufs.avail[i]);
		put(&c->pub.bufs_low[i], c->bufs.low[i]);
	}
	put(&c->pub.http_bufs_avail, c->http_bufs.avail[BUF_SMALL]);
}

/* ---- waiting ---- */

static void
on_mail(struct ring_op *op, int res, bool more)
{
	struct core *c = container_of(op, struct core, mail_op);

	/* The messages themselves are looked at in every turn. */
	if (!more && c->phase < CORE_OVER)
		ring_poll(c->ring, op, c->mb.efd, POLLIN, true);
}

static void
on_chan_event(struct ring_op *op, int res, bool more)
{
	struct chan_wait *w = container_of(op, struct chan_wait, op);

	int fd = w->fd;

	if (w->core->phase == CORE_OVER)
		return;
	if (w->leaving) {
		if (more)
			return;
		w->leaving = false;
		w->fd = -1;
		chan_fd_unwatched(w->core->chan, fd);
		return;
	}
	chan_event(w->core->chan, fd);
	/* A descriptor that only reports errors belongs to a device that is gone: chan will say so. */
	if (!more && res > 0 && res & POLLIN)
		ring_poll(w->core->ring, op, fd, POLLIN, true);
}

static void
watch_fd(void *cookie, int fd)
{
	struct core *c = cookie;

	for (int i = 0; i < CHAN_FDS_MAX && c->phase != CORE_OVER; i++) {
		struct chan_wait *w = &c->chan_waits[i];

		if (w->core && w->fd >= 0)
			continue;
		*w = (struct chan_wait){ .op.done = on_chan_event, .core = c, .fd = fd };
		ring_poll(c->ring, &w->op, fd, POLLIN, true);
		return;
	}
}

static bool
unwatch_fd(void *cookie, int fd)
{
	struct core *c = cookie;

	for (int i = 0; i < CHAN_FDS_MAX && c->phase != CORE_OVER; i++) {
		struct chan_wait *w = &c->chan_waits[i];

		if (!w->core || w->fd != fd)
			continue;
		if (w->op.magic == RING_OP_MAGIC) {
			w->leaving = true;
			ring_cancel(c->ring, &w->op);
			return false;
		}
		w->fd = -1;
	}
	return true;
}

static uint64_t
how_long(const struct core *c, uint64_t now)
{
	uint64_t http = http_timeout_ns(c->http), at = timers_next(&c->timers);

	if (at == UINT64_MAX)
		return http;
	if (at <= now)
		return 0;
	return at - now < http ? at - now : http;
}

/* With work requests outstanding: looks for completions for a while before it sleeps, and never sleeps on one
 * that came before the queues were armed. */
static uint64_t
spin_or_arm(struct core *c, uint64_t now, uint64_t wait)
{
	if (now - c->progress_ns < SPIN_NS)
		return 0;
	chan_arm(c->chan);
	if (chan_poll(c->chan) == 0)
		return wait;
	c->progress_ns = now;
	return 0;
}

/* The one place where a core waits.  Returns how much came. */
static int
wait_for_work(struct core *c, uint64_t now)
{
	uint64_t wait = c->more ? 0 : how_long(c, now);
	int n;

	if (wait && chan_busy(c->chan))
		wait = spin_or_arm(c, now, wait);
	if (wait && !mailbox_sleep(&c->mb))
		wait = 0;
	if (!wait) {
		n = ring_turn(c->ring, 0);
	} else {
		if (c->port)
			store_turn(c->port, TURN_SLEEPS);
		atomic_store_explicit(&c->pub.asleep, true, memory_order_relaxed);
		n = ring_wait(c->ring, wait);
		/* Awake before the first done(): one that hangs is a core that hangs, and one that reads the
		 * index must not count as quiescent. */
		atomic_store_explicit(&c->pub.turned_ns, run_ns(), memory_order_relaxed);
		atomic_store_explicit(&c->pub.asleep, false, memory_order_release);
		mailbox_wake(&c->mb);
		if (c->port)
			store_turn(c->port, TURN_WAKES);
		if (n == 0)
			n = ring_turn(c->ring, 0);
	}
	if (n < 0) {
		log_error("core %d: the ring is broken: %s", c->index, strerror(-n));
		check(n >= 0);
	}
	return n;
}

static void
turn(struct core *c)
{
	uint64_t now = clock_ns();
	bool more;
	int n;

	atomic_store_explicit(&c->pub.turned_ns, run_ns(), memory_order_relaxed);
	n = wait_for_work(c, now);
	n += mailbox_run(&c->mb, 0);
	n += chan_poll(c->chan);
	now = clock_ns();
	n += timers_run(&c->timers, now);
	n += reqs_run(c->reqs);
	more = http_run(c->http);
	/* What the new requests started may have finished at once. */
	more |= reqs_run(c->reqs) > 0;
	c->more = more;
	if (n || more)
		c->progress_ns = now;
	if (c->port)
		store_turn(c->port, TURN_QUIESCENT);
	core_publish(c);
}

/* ---- stopping ---- */

static void
on_stop_tick(struct timer *t)
{
	/* Wakes the loop, which looks by itself. */
}

static void
enter_phase(struct core *c, enum core_phase phase)
{
	c->phase = phase;
	c->phase_ns = c->say_ns = clock_ns();
}

static void
on_stop(struct msg *m)
{
	struct core *c = container_of(m, struct core, stop_msg);

	if (c->phase != CORE_RUN)
		return;
	enter_phase(c, CORE_DRAIN);
	if (c->reqs)
		reqs_drain(c->reqs, true);
	walks_pause(&c->walks, true);
}

static void
say_line(void *cookie, const char *text)
{
	log_note("%s", text);
}

/* Looked at in every turn while the core stops. */
static void
stop_step(struct core *c)
{
	uint64_t now = clock_ns(), since = now - c->phase_ns;
	int live = reqs_live(c->reqs) + walks_busy(&c->walks);
	int conns = http_connections(c->http);

	timer_arm(&c->timers, &c->stop_timer, now + STOP_TICK_NS, on_stop_tick);
	if (c->phase == CORE_DRAIN) {
		http_drain(c->http);
		if (live == 0 && (conns == 0 || since > STOP_IDLE_NS)) {
			/* nothing left to wait for */
		} else if (since < c->cs->drain_ns && !atomic_load(&c->cs->stop_now)) {
			return;
		} else if (live) {
			log_note("core %d: %d requests are still running; their connections are reset",
				 c->index, live);
		}
		atomic_store(&c->pub.serving, false);
		enter_phase(c, CORE_ABORT);
		accept_stop(c);
		http_abort(c->http);
		c->more = true;
		return;
	}
	if (conns)
		http_abort(c->http);
	else if (live == 0)
		c->phase = CORE_OVER;
	else if (now - c->say_ns > STOP_SAY_NS) {
		c->say_ns = now;
		log_warn("core %d: waits for %d requests whose transfers or disk operations have not ended:",
			 c->index, live);
		reqs_dump(c->reqs, say_line, NULL);
	}
}

/* ---- life ---- */

static void
pin(struct core *c)
{
	cpu_set_t set;
	char name[16];

	snprintf(name, sizeof name, "core%d", c->index);
	pthread_setname_np(pthread_self(), name);
	/* Time-outs come when they are due, not bundled with others 50 us later. */
	prctl(PR_SET_TIMERSLACK, 1000ul);
	slice_short();
	if (!c->cs->conf->pin)
		return;
	CPU_ZERO(&set);
	CPU_SET(c->cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) < 0)
		log_warn("core %d cannot be pinned to CPU %d: %s", c->index, c->cpu, strerror(errno));
}

static int
fail(struct core *c, int rc, const char *what)
{
	pthread_mutex_lock(&c->cs->lock);
	if (c->cs->rc == 0) {
		c->cs->rc = rc;
		snprintf(c->cs->err, sizeof c->cs->err, "core %d: %s: %s", c->index, what, strerror(-rc));
	}
	pthread_mutex_unlock(&c->cs->lock);
	return rc;
}

static void
register_buffers(struct core *c)
{
	struct iovec all[2 * BUF_REGIONS_MAX];
	int nr = c->bufs.region_nr, rc;

	memcpy(all, c->bufs.region, (size_t)nr * sizeof *all);
	memcpy(all + nr, c->http_bufs.region, (size_t)c->http_bufs.region_nr * sizeof *all);
	rc = ring_register_regions(c->ring, all, nr + c->http_bufs.region_nr);
	put(&c->pub.unregistered, rc < 0);
	if (rc < 0)
		log_warn("core %d: buffers cannot be registered with io_uring, disk I/O costs more: %s%s",
			 c->index, strerror(-rc), ring_hint(rc));
}

/* Of the CPU that the core stays on; -1: it may move. */
static int
numa_node(const struct core *c)
{
	unsigned cpu, node;

	return c->cs->conf->pin && getcpu(&cpu, &node) == 0 ? (int)node : -1;
}

static int
make_chan(struct core *c)
{
	const struct conf *conf = c->cs->conf;
	struct chan_params p = { .rdma = c->cs->rdma,
				 .conf = &conf->rdma,
				 .mb = &c->mb,
				 .timers = &c->timers,
				 .core = c->index,
				 .core_nr = c->cs->nr,
				 .numa_node = numa_node(c),
				 .pieces_max = conf->limits.pieces_per_request,
				 .queue_max = conf->limits.queue,
				 .region_map = c->region_map,
				 .region_nr = c->bufs.region_nr,
				 .watch_fd = watch_fd,
				 .unwatch_fd = unwatch_fd,
				 .fd_cookie = c };

	return chan_new(&p, &c->chan);
}

/* Takes completions of the log, for which commits of all cores wait, before the end of the turn. A single core does
 * not: its answers are messages to itself, which wait for the next turn, and its commits would only be smaller. */
static void
between_requests(void *cookie)
{
	ring_first(((struct core *)cookie)->ring);
}

static int
make_reqs(struct core *c)
{
	struct req_env env = { .conf = c->cs->conf,
			       .store = c->port,
			       .chan = c->chan,
			       .rdma = c->cs->rdma,
			       .bufs = &c->bufs,
			       .http_bufs = &c->http_bufs,
			       .timers = &c->timers,
			       .stats = c->stats,
			       .ops = &http_reply_ops,
			       .operations = c->cs->operations,
			       .core = c->index,
			       .replay = c->cs->replay,
			       .walks = &c->walks,
			       .trace_next = &c->cs->trace_next,
			       .want = &c->cs->want,
			       .between = c->cs->nr > 1 ? between_requests : NULL,
			       .between_cookie = c };
	struct req_conf *use = core_conf_new(env.conf, c->cs->keys);
	int rc = use ? reqs_new(&env, &c->reqs) : -ENOMEM;

	if (rc == 0)
		reqs_set_conf(c->reqs, use);
	else if (use)
		use->unused(use);
	return rc;
}

static int
make_walks(struct core *c)
{
	struct walk_env env = { .store = c->port, .bufs = &c->bufs, .timers = &c->timers, .stats = c->stats };

	return walks_start(&c->walks, c->cs->walks, &env, c->cs->conf, c->index == 0);
}

static int
make_parts(struct core *c)
{
	struct ring_params rp = { .entries = RING_ENTRIES };
	int rc = ring_new(&rp, &c->ring);

	if (rc < 0)
		return fail(c, rc,
			    rc == -ENOMEM ? "io_uring (limit of locked memory: LimitMEMLOCK=, ulimit -l)"
					  : "io_uring");
	put(&c->pub.on_threads, ring_why_threads(c->ring) != NULL);
	if (c->index == 0)
		log_info("ring: %s", ring_describe(c->ring));
	if (c->index == 0 && ring_why_threads(c->ring))
		log_warn("io_uring cannot be used: %s; threads do its work, which costs speed (gantryd(8), "
			 "IO_URING)",
			 ring_why_threads(c->ring));
	register_buffers(c);
	c->mail_op.done = on_mail;
	ring_poll(c->ring, &c->mail_op, c->mb.efd, POLLIN, true);
	c->stats = stats_core(c->cs->stats, c->index);
	if (c->cs->store)
		rc = store_attach(c->cs->store, c->ring, &c->mb, &c->timers, &c->port);
	if (rc < 0)
		return fail(c, rc, "store");
	rc = make_chan(c);
	if (rc < 0)
		return fail(c, rc, "RDMA channels");
	rc = make_walks(c);
	if (rc < 0)
		return fail(c, rc, "walks");
	rc = make_reqs(c);
	if (rc < 0)
		return fail(c, rc, "requests");
	rc = http_new(c->cs->conf, c->cs->certs, c->cs->peers, c->ring, c->stats, &c->http);
	if (rc < 0)
		return fail(c, rc, "HTTP");
	http_set_reqs(c->http, c->reqs);
	return 0;
}

static void
end_poll(struct core *c, struct ring_op *op)
{
	if (op->magic == RING_OP_MAGIC)
		ring_cancel(c->ring, op);
}

/* Takes down what was made, in the order in which the parts stand on each other. */
static void
end_parts(struct core *c)
{
	struct http *h = c->http;

	walks_pause(&c->walks, true);
	while (c->port && !store_detach(c->port)) {
		check(ring_turn(c->ring, NS_PER_MS) >= 0);
		mailbox_run(&c->mb, 0);
		timers_run(&c->timers, clock_ns());
		store_turn(c->port, TURN_QUIESCENT);
	}
	c->port = NULL;
	c->phase = CORE_OVER;
	c->http = NULL; /* sockets that still come are closed */
	http_free(h);
	reqs_free(c->reqs);
	c->reqs = NULL;
	walks_end(&c->walks);
	if (!c->ring)
		return;
	for (int i = 0; i < CHAN_FDS_MAX; i++)
		end_poll(c, &c->chan_waits[i].op);
	end_poll(c, &c->mail_op);
	for (uint64_t until = clock_ns() + NS_PER_S; ring_inflight(c->ring) && clock_ns() < until;)
		check(ring_turn(c->ring, NS_PER_MS) >= 0);
	chan_free(c->chan);
	c->chan = NULL;
	mailbox_run(&c->mb, 0);
	ring_free(c->ring);
	c->ring = NULL;
}

void *
core_main(void *arg)
{
	struct core *c = arg;
	bool good;

	pin(c);
	good = make_parts(c) == 0;
	if (good) {
		c->more = true;
		c->progress_ns = clock_ns();
		core_publish(c);
		turn(c); /* cores_start() returns when every loop turns */
	}
	pthread_mutex_lock(&c->cs->lock);
	c->cs->said++;
	pthread_cond_broadcast(&c->cs->cond);
	/* Nobody serves before everybody can. */
	while (c->cs->said < c->cs->nr && c->cs->rc == 0)
		pthread_cond_wait(&c->cs->cond, &c->cs->lock);
	good = good && c->cs->rc == 0;
	pthread_mutex_unlock(&c->cs->lock);
	if (good) {
		atomic_store(&c->pub.serving, true);
		accept_start(c);
		while (c->phase < CORE_OVER) {
			turn(c);
			if (c->phase != CORE_RUN)
				stop_step(c);
		}
	}
	atomic_store(&c->pub.serving, false);
	end_parts(c);
	atomic_store_explicit(&c->pub.requests, 0, memory_order_relaxed);
	atomic_store_explicit(&c->pub.connections, 0, memory_order_relaxed);
	atomic_store(&c->pub.asleep, true); /* not stuck */
	atomic_store(&c->pub.over, true);
	return NULL;
}

void
core_stop_post(struct core *c)
{
	mailbox_post(&c->mb, &c->stop_msg, on_stop);
}
