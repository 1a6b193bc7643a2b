/* The helper thread of a disk: a ring of its own, a bell, and upkeep().  The simulation brings its own
 * helper.c. */
#include "extent/extent_int.h"

#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static bool
wait_for_bell(struct disk *d, uint64_t wait_ns)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(wait_ns / NS_PER_S % 3600);
	pthread_mutex_lock(&d->helper_lock);
	while (!d->helper_bell && !atomic_load(&d->helper_stop) && wait_ns) {
		if (wait_ns == UINT64_MAX)
			pthread_cond_wait(&d->helper_cond, &d->helper_lock);
		else if (pthread_cond_timedwait(&d->helper_cond, &d->helper_lock, &until) == ETIMEDOUT)
			break;
	}
	d->helper_bell = false;
	stop = atomic_load(&d->helper_stop);
	pthread_mutex_unlock(&d->helper_lock);
	return !stop;
}

static void *
helper_main(void *cookie)
{
	struct disk *d = cookie;
	struct ring *r;
	int e = ring_new(&(struct ring_params){ .entries = 64 }, &r);

	if (e < 0) {
		disk_fail(d, "the helper thread has no ring: %s", strerror(-e));
		return NULL;
	}
	for (uint64_t wait_ns = 0; wait_for_bell(d, wait_ns);)
		wait_ns = upkeep(d, r);
	ring_free(r);
	return NULL;
}

int
helper_start(struct disk *d)
{
	sigset_t all, before;
	int e;

	/* Signals are for the threads that wait for them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	e = pthread_create(&d->helper, NULL, helper_main, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (e == 0)
		pthread_setname_np(d->helper, "store-helper");
	d->helper_runs = e == 0;
	return -e;
}

void
helper_stop(struct disk *d)
{
	if (!d->helper_runs)
		return;
	pthread_mutex_lock(&d->helper_lock);
	atomic_store(&d->helper_stop, true);
	pthread_cond_signal(&d->helper_cond);
	pthread_mutex_unlock(&d->helper_lock);
	pthread_join(d->helper, NULL);
	d->helper_runs = false;
}

void
helper_ring(struct disk *d)
{
	pthread_mutex_lock(&d->helper_lock);
	d->helper_bell = true;
	pthread_cond_signal(&d->helper_cond);
	pthread_mutex_unlock(&d->helper_lock);
}
