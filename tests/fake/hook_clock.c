/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hook_clock.h.
 *
 * A wait is cut into slices of real time, so that whoever waits sees a hop without being woken.  The thread
 * says that it waits, until when, and how many slices went by in which nothing came; hook_clock_skip() looks
 * at that.  All of it is under one lock, the reading of the clocks too: they never go back.
 */
#include "hook_clock.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"

#include <dlfcn.h>
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS NS_PER_MS
#define SLICE_HOPPING_NS (100 * NS_PER_US) /* between hops only the threads themselves can send something */
#define PATIENCE_NS (60 * NS_PER_S)
#define WALL_NS (1000000000 * NS_PER_S) /* no machine is up for so long: later is the wall clock's */

/* A thread that has made a ring. */
struct sleeper {
	struct list link;
	bool is_known, sleeps;
	uint64_t until_ns;
	unsigned idle; /* slices without anything, since the last time that anybody began to sleep or a hop */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list sleepers = { &sleepers, &sleepers };
static uint64_t skipped_ns; /* the clocks' lead over the real ones ... */
static uint64_t frozen_ns;  /* ... or, in hook_clock_skip(), what they show */
static uint64_t hops;
static uint64_t slice_ns = SLICE_NS;
static _Thread_local struct sleeper me;
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int (*real_init)(unsigned, struct io_uring *, struct io_uring_params *);
static int (*real_wait)(struct io_uring *, struct io_uring_cqe **, unsigned, struct __kernel_timespec *,
			sigset_t *);

/* ---- the clocks ---- */

static uint64_t
real_ns(clockid_t id)
{
	struct timespec t = { 0 };

	/* Not through a library: a sanitizer's may not be ready yet. */
	syscall(SYS_clock_gettime, id, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static struct timespec
timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
}

/* How far the wall clock is ahead of the monotonic one, from the first question on. */
static uint64_t
wall_ns(void)
{
	static uint64_t ahead;

	if (!ahead)
		ahead = real_ns(CLOCK_REALTIME) - real_ns(CLOCK_MONOTONIC);
	return ahead;
}

static uint64_t
now_ns(void)
{
	return frozen_ns ? frozen_ns : real_ns(CLOCK_MONOTONIC) + skipped_ns;
}

int
clock_gettime(clockid_t id, struct timespec *ret_t)
{
	uint64_t ns;

	switch (id) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		pthread_mutex_lock(&lock);
		ns = now_ns();
		if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
			ns += wall_ns();
		pthread_mutex_unlock(&lock);
		*ret_t = timespec_of(ns);
		return 0;
	default:
		return (int)syscall(SYS_clock_gettime, id, ret_t);
	}
}

/* ---- waiting ---- */

static void
on_exit_of_thread(void *arg)
{
	struct sleeper *s = arg;

	pthread_mutex_lock(&lock);
	list_del(&s->link);
	pthread_mutex_unlock(&lock);
}

static void
init(void)
{
	check(pthread_key_create(&exit_key, on_exit_of_thread) == 0);
	real_init = dlsym(RTLD_NEXT, "io_uring_queue_init_params");
	real_wait = dlsym(RTLD_NEXT, "io_uring_submit_and_wait_timeout");
	check(real_init && real_wait);
}

/* From now on time does not hop before this thread sleeps. */
static void
know_me(void)
{
	if (me.is_known)
		return;
	me.is_known = true;
	check(pthread_setspecific(exit_key, &me) == 0);
	pthread_mutex_lock(&lock);
	list_push_tail(&sleepers, &me.link);
	pthread_mutex_unlock(&lock);
}

/* What somebody did may be news to the others. */
static void
all_look_again(void)
{
	list_for_each(l, &sleepers)
	{
		container_of(l, struct sleeper, link)->idle = 0;
	}
}

/* Begins to sleep for ns; UINT64_MAX: until something comes. */
static void
sleep_begin(uint64_t ns)
{
	pthread_mutex_lock(&lock);
	me.until_ns = ns == UINT64_MAX ? UINT64_MAX : now_ns() + ns;
	me.sleeps = true;
	if (me.is_known)
		all_look_again();
	pthread_mutex_unlock(&lock);
}

/* How long the next slice is; 0: time is up, and nobody hops before this thread sleeps again. */
static uint64_t
sleep_slice(bool was_idle)
{
	uint64_t now, ns;

	pthread_mutex_lock(&lock);
	me.idle += was_idle;
	now = now_ns();
	ns = me.until_ns > now ? me.until_ns - now : 0;
	/* While the clocks stand still nobody is late, and a slice is long enough to hear of something. */
	if (ns && (frozen_ns || ns > slice_ns))
		ns = slice_ns;
	pthread_mutex_unlock(&lock);
	return ns;
}

static void
sleep_end(void)
{
	pthread_mutex_lock(&lock);
	me.sleeps = false;
	pthread_mutex_unlock(&lock);
}

int
io_uring_queue_init_params(unsigned entries, struct io_uring *r, struct io_uring_params *p)
{
	pthread_once(&once, init);
	know_me();
	return real_init(entries, r, p);
}

static int
ring_sleep(struct io_uring *r, struct io_uring_cqe **ret_cqe, unsigned nr, uint64_t ns, sigset_t *mask)
{
	bool idle = false;
	uint64_t slice;
	int rc = -ETIME;

	pthread_once(&once, init);
	sleep_begin(ns);
	while ((slice = sleep_slice(idle)) > 0) {
		struct __kernel_timespec ts = { .tv_nsec = (long long)slice };

		rc = real_wait(r, ret_cqe, nr, &ts, mask);
		/* What was submitted is told instead of the time-out. */
		if (io_uring_cq_ready(r) >= nr || (rc < 0 && rc != -ETIME))
			break;
		rc = -ETIME;
		idle = true;
	}
	sleep_end();
	return rc;
}

int
io_uring_submit_and_wait_timeout(struct io_uring *r, struct io_uring_cqe **ret_cqe, unsigned nr,
				 struct __kernel_timespec *ts, sigset_t *mask)
{
	return ring_sleep(r, ret_cqe, nr, (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec, mask);
}

int
io_uring_submit_and_wait(struct io_uring *r, unsigned nr)
{
	struct io_uring_cqe *cqe = NULL;

	return ring_sleep(r, &cqe, nr, UINT64_MAX, NULL);
}

/* Where the ring on threads waits, which does not make an io_uring. */
int
epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *ts, const sigset_t *mask)
{
	uint64_t ns = ts ? (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec : UINT64_MAX, slice;
	struct timespec t = { 0 };
	bool idle = false;
	int n = 0;

	pthread_once(&once, init);
	know_me();
	if (!ns)
		return (int)syscall(SYS_epoll_pwait2, fd, events, max, &t, mask, sizeof(unsigned long));
	sleep_begin(ns);
	while (n == 0 && (slice = sleep_slice(idle)) > 0) {
		t = timespec_of(slice);
		n = (int)syscall(SYS_epoll_pwait2, fd, events, max, &t, mask, sizeof(unsigned long));
		idle = true;
	}
	sleep_end();
	return n;
}

int
usleep(useconds_t us)
{
	bool idle = false;
	uint64_t slice;

	sleep_begin(us * NS_PER_US);
	while ((slice = sleep_slice(idle)) > 0) {
		struct timespec t = timespec_of(slice);

		nanosleep(&t, NULL);
		idle = true;
	}
	sleep_end();
	return 0;
}

int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	uint64_t until_ns = (uint64_t)until->tv_sec * NS_PER_S + (uint64_t)until->tv_nsec;
	uint64_t now, left;
	struct timespec t;
	int rc;

	pthread_mutex_lock(&lock);
	now = now_ns() + (until_ns > WALL_NS ? wall_ns() : 0);
	left = until_ns > now ? until_ns - now : 0;
	pthread_mutex_unlock(&lock);
	if (!left)
		return ETIMEDOUT;
	t = timespec_of(real_ns(CLOCK_MONOTONIC) + (left < SLICE_NS ? left : SLICE_NS));
	rc = pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &t);
	/* A wake-up without a reason: a signal that came at the end of the slice is seen by who waits
	 * only. */
	return rc == ETIMEDOUT ? 0 : rc;
}

/* ---- skipping ---- */

static bool
all_rest(void)
{
	list_for_each(l, &sleepers)
	{
		const struct sleeper *s = container_of(l, const struct sleeper, link);

		/* Of two slices the second one has begun since. */
		if (s != &me && (!s->sleeps || s->until_ns <= frozen_ns || s->idle < 2))
			return false;
	}
	return true;
}

static uint64_t
first_due(void)
{
	uint64_t due = UINT64_MAX;

	list_for_each(l, &sleepers)
	{
		const struct sleeper *s = container_of(l, const struct sleeper, link);

		if (s != &me && s->until_ns < due)
			due = s->until_ns;
	}
	return due;
}

static void
wait_for_rest(void)
{
	uint64_t until = real_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

	all_look_again();
	while (!all_rest()) {
		struct timespec t = timespec_of(slice_ns / 2);

		pthread_mutex_unlock(&lock);
		check(real_ns(CLOCK_MONOTONIC) < until);
		nanosleep(&t, NULL);
		pthread_mutex_lock(&lock);
	}
}

void
hook_clock_skip(uint64_t ns)
{
	uint64_t end, due;

	pthread_mutex_lock(&lock);
	check(!frozen_ns);
	frozen_ns = now_ns();
	end = frozen_ns + ns;
	wait_for_rest();
	slice_ns = SLICE_HOPPING_NS;
	while (frozen_ns < end) {
		due = first_due();
		frozen_ns = due < end ? due : end;
		hops++;
		wait_for_rest();
	}
	slice_ns = SLICE_NS;
	skipped_ns = frozen_ns - real_ns(CLOCK_MONOTONIC);
	frozen_ns = 0;
	pthread_mutex_unlock(&lock);
}

uint64_t
hook_clock_hops(void)
{
	uint64_t nr;

	pthread_mutex_lock(&lock);
	nr = hops;
	pthread_mutex_unlock(&lock);
	return nr;
}
