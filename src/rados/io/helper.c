/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that do something again and again: what may wait for the cluster, and holds up nobody but itself. */
#include "rados/io/rados_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <time.h>

static void *
helper_main(void *cookie)
{
	struct helper *h = cookie;

	pthread_mutex_lock(&h->lock);
	while (!h->stop) {
		struct timespec until;

		h->asked = false;
		pthread_mutex_unlock(&h->lock);
		h->turn(h->st);
		pthread_mutex_lock(&h->lock);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += (time_t)(h->every_ns / NS_PER_S);
		while (!h->stop && !h->asked) {
			if (pthread_cond_timedwait(&h->wake, &h->lock, &until) == ETIMEDOUT)
				break;
		}
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

int
helper_start(struct helper *h, struct rstore *st, uint64_t every_ns, void (*turn)(struct rstore *st))
{
	pthread_condattr_t attr;
	int e;

	check(turn && every_ns > 0);
	*h = (struct helper){ .st = st, .every_ns = every_ns, .turn = turn };
	pthread_mutex_init(&h->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h->wake, &attr);
	pthread_condattr_destroy(&attr);
	e = -pthread_create(&h->thread, NULL, helper_main, h);
	h->is_running = e == 0;
	return e;
}

void
helper_wake(struct helper *h)
{
	pthread_mutex_lock(&h->lock);
	h->asked = true;
	pthread_cond_signal(&h->wake);
	pthread_mutex_unlock(&h->lock);
}

void
helper_stop(struct helper *h)
{
	if (!h->is_running)
		return;
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	pthread_cond_signal(&h->wake);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	h->is_running = false;
	pthread_cond_destroy(&h->wake);
	pthread_mutex_destroy(&h->lock);
}
