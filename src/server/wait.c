/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping until there is a completion.  A channel that somebody has waited on has a descriptor of its own,
 * an epoll set: its completion channels, a timer for the moment at which a completion is late, and what the
 * keeper wakes it by.
 */
#include "server/server_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS (200 * NS_PER_US)  /* where there is no descriptor */
#define ENDING_NS (1 * NS_PER_MS) /* while a queue pair is being destroyed, which nobody tells of */

static int
watch(struct gantry_channel *c, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

void
wait_watch(struct lane *l)
{
	check(l->cq);
	if (l->c->epoll_fd >= 0 && watch(l->c, rdma_cq_fd(l->cq)) < 0)
		say(l->c->s, GANTRY_SERVER_LOG_ERROR, "channel %u cannot sleep: %s", l->c->nr,
		    strerror(errno));
}

void
wait_unwatch(struct lane *l)
{
	l->armed = false;
	if (l->c->epoll_fd >= 0)
		epoll_ctl(l->c->epoll_fd, EPOLL_CTL_DEL, rdma_cq_fd(l->cq), NULL);
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void
waits_free(struct gantry_channel *c)
{
	atomic_store(&c->can_be_kicked, false);
	close_fd(&c->epoll_fd);
	close_fd(&c->timer_fd);
	close_fd(&c->kick_fd);
}

/* Makes the set, once; 0 or -errno. */
static int
make_set(struct gantry_channel *c)
{
	int r = 0;

	if (c->epoll_fd >= 0)
		return 0;
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	c->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->epoll_fd < 0 || c->timer_fd < 0 || c->kick_fd < 0)
		r = -errno;
	if (r == 0)
		r = watch(c, c->timer_fd);
	if (r == 0)
		r = watch(c, c->kick_fd);
	if (r < 0) {
		say(c->s, GANTRY_SERVER_LOG_ERROR, "channel %u cannot sleep: %s", c->nr, strerror(-r));
		waits_free(c);
		return r;
	}
	for (int i = 0; i < RDMA_RAILS_MAX; i++) {
		if (c->lane[i] && c->lane[i]->cq)
			wait_watch(c->lane[i]);
	}
	atomic_store(&c->can_be_kicked, true);
	return 0;
}

void
channel_kick(struct gantry_channel *c)
{
	uint64_t one = 1;

	if (atomic_load(&c->can_be_kicked) && write(c->kick_fd, &one, sizeof one) < 0 && errno != EAGAIN)
		say(c->s, GANTRY_SERVER_LOG_ERROR, "channel %u cannot be woken: %s", c->nr, strerror(errno));
}

void
wait_take_events(struct gantry_channel *c)
{
	if (c->epoll_fd < 0)
		return;
	for (int i = 0; i < RDMA_RAILS_MAX; i++) {
		struct lane *l = c->lane[i];

		if (l && l->armed && l->cq) {
			rdma_cq_event(l->cq);
			l->armed = false;
		}
	}
}

static void
take_wakes(struct gantry_channel *c)
{
	uint64_t n;

	wait_take_events(c);
	if (read(c->timer_fd, &n, sizeof n) < 0 && errno != EAGAIN)
		say(c->s, GANTRY_SERVER_LOG_ERROR, "channel %u: %s", c->nr, strerror(errno));
	if (read(c->kick_fd, &n, sizeof n) < 0 && errno != EAGAIN)
		say(c->s, GANTRY_SERVER_LOG_ERROR, "channel %u: %s", c->nr, strerror(errno));
}

/* Has completions wake; true: some queue was not armed before, and must be looked at again. */
static bool
arm(struct gantry_channel *c)
{
	bool is_new = false;

	for (int i = 0; i < RDMA_RAILS_MAX; i++) {
		struct lane *l = c->lane[i];

		if (!l || l->state != LANE_ON || !l->outstanding || l->armed)
			continue;
		rdma_cq_arm(l->cq);
		l->armed = is_new = true;
	}
	return is_new;
}

static bool
is_ending(const struct gantry_channel *c)
{
	for (int i = 0; i < RDMA_RAILS_MAX; i++) {
		if (c->lane[i] && c->lane[i]->state == LANE_ENDING)
			return true;
	}
	return false;
}

uint64_t
channel_deadline(const struct gantry_channel *c)
{
	uint64_t first = 0;

	for (int i = 0; i < RDMA_RAILS_MAX; i++) {
		uint64_t at = c->lane[i] ? lane_deadline(c->lane[i]) : 0;

		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

static struct timespec
timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
}

/* Has the timer wake at that time; 0: never. */
static void
set_timer(struct gantry_channel *c, uint64_t at_ns)
{
	struct itimerspec t = { .it_value = timespec_of(at_ns) };

	if (timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &t, NULL) < 0)
		say(c->s, GANTRY_SERVER_LOG_ERROR, "channel %u: %s", c->nr, strerror(errno));
}

/* Sleeps where everything is armed. */
static void
doze(struct gantry_channel *c, uint64_t until_ns)
{
	uint64_t now = clock_ns();
	struct epoll_event ev[4];

	check(c->epoll_fd >= 0 && c->timer_fd >= 0 && c->kick_fd >= 0);
	if (is_ending(c) && (!until_ns || until_ns > now + ENDING_NS))
		until_ns = now + ENDING_NS;
	set_timer(c, until_ns && until_ns <= now ? now + 1 : until_ns);
	epoll_wait(c->epoll_fd, ev, sizeof ev / sizeof *ev, -1);
	take_wakes(c);
}

void
channel_sleep(struct gantry_channel *c, uint64_t until_ns)
{
	if (make_set(c) < 0) {
		struct timespec nap = timespec_of(NAP_NS);

		nanosleep(&nap, NULL);
		return;
	}
	/* What came before it was armed wakes nobody. */
	if (!arm(c) || channel_reap(c) == 0)
		doze(c, until_ns);
}

int
gantry_channel_wait(struct gantry_channel *c, int timeout_ms)
{
	uint64_t end = timeout_ms > 0 ? clock_ns() + (uint64_t)timeout_ms * NS_PER_MS : 0;
	int r = channel_enter(c);

	if (r < 0)
		return r;
	if (make_set(c) == 0)
		take_wakes(c);
	for (;;) {
		uint64_t late;

		channel_reap(c);
		if (!list_empty(&c->over))
			r = 1;
		if (r || (!c->under_way && timeout_ms) || (end && clock_ns() >= end))
			break;
		late = channel_deadline(c);
		if (!timeout_ms) {
			if (c->epoll_fd < 0)
				break;
			if (arm(c))
				continue;
			set_timer(c, is_ending(c) ? clock_ns() + ENDING_NS : late);
			break;
		}
		channel_sleep(c, !end || (late && late < end) ? late : end);
	}
	channel_leave(c);
	return r;
}

int
gantry_channel_fd(struct gantry_channel *c)
{
	int r = channel_enter(c);

	if (r < 0)
		return r;
	r = make_set(c);
	channel_leave(c);
	return r < 0 ? r : c->epoll_fd;
}
