/* SPDX-License-Identifier: Apache-2.0 */
/* The helper thread; see helper.h. */
#include "extent/disk/helper.h"

#include "extent/disk/disk.h"
#include "extent/disk/sync.h"
#include "base/clock.h"
#include "ring/ring.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define WAIT_MAX_NS (3600 * NS_PER_S)

void
helper_init(struct helper *h, struct disk *d, helper_work_fn work)
{
	pthread_condattr_t attr;

	memset(h, 0, sizeof *h);
	h->disk = d;
	h->work = work;
	pthread_mutex_init(&h->lock, NULL);
	/* Not the wall clock, which may be set back: other hosts rely on the heartbeats. */
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h->cond, &attr);
	pthread_condattr_destroy(&attr);
}

void
helper_fini(struct helper *h)
{
	pthread_mutex_destroy(&h->lock);
	pthread_cond_destroy(&h->cond);
}

static bool
wait_for_bell(struct helper *h, uint64_t wait_ns)
{
	struct timespec until;
	uint64_t at_ns;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	wait_ns = wait_ns == UINT64_MAX || wait_ns < WAIT_MAX_NS ? wait_ns : WAIT_MAX_NS;
	at_ns = (uint64_t)until.tv_nsec + wait_ns % NS_PER_S;
	until.tv_sec += (time_t)(wait_ns / NS_PER_S + at_ns / NS_PER_S);
	until.tv_nsec = (long)(at_ns % NS_PER_S);
	pthread_mutex_lock(&h->lock);
	while (!h->bell && !atomic_load(&h->stop) && wait_ns) {
		if (wait_ns == UINT64_MAX)
			pthread_cond_wait(&h->cond, &h->lock);
		else if (pthread_cond_timedwait(&h->cond, &h->lock, &until) == ETIMEDOUT)
			break;
	}
	h->bell = false;
	stop = atomic_load(&h->stop);
	pthread_mutex_unlock(&h->lock);
	return !stop;
}

static void *
helper_main(void *cookie)
{
	struct helper *h = cookie;
	struct ring *r;
	int e = ring_new(&(struct ring_params){ .entries = 64 }, &r);

	if (e < 0) {
		disk_fail(h->disk, "the helper thread has no ring: %s%s", strerror(-e), ring_hint(e));
		return NULL;
	}
	sync_watch(h->disk);
	for (uint64_t wait_ns = 0; wait_for_bell(h, wait_ns);)
		wait_ns = h->work(h, r);
	ring_free(r);
	return NULL;
}

int
helper_start(struct helper *h)
{
	sigset_t all, before;
	int e;

	/* Signals are for the threads that wait for them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	e = pthread_create(&h->thread, NULL, helper_main, h);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (e == 0)
		pthread_setname_np(h->thread, "store-helper");
	h->runs = e == 0;
	return -e;
}

void
helper_stop(struct helper *h)
{
	if (!h->runs)
		return;
	pthread_mutex_lock(&h->lock);
	atomic_store(&h->stop, true);
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	h->runs = false;
}

void
helper_ring(struct helper *h)
{
	pthread_mutex_lock(&h->lock);
	h->bell = true;
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->lock);
}
