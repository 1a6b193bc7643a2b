/* SPDX-License-Identifier: Apache-2.0 */
/* See periodic.h. */
#include "base/periodic.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

static void *
periodic_main(void *cookie)
{
	struct periodic *p = cookie;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		struct timespec until;
		uint64_t ns;

		p->is_asked = false;
		pthread_mutex_unlock(&p->lock);
		p->turn(p->cookie);
		pthread_mutex_lock(&p->lock);
		clock_gettime(CLOCK_MONOTONIC, &until);
		ns = (uint64_t)until.tv_nsec + p->every_ns;
		until.tv_sec += (time_t)(ns / NS_PER_S);
		until.tv_nsec = (long)(ns % NS_PER_S);
		while (!p->stop && !p->is_asked) {
			if (pthread_cond_timedwait(&p->wake, &p->lock, &until) == ETIMEDOUT)
				break;
		}
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int
periodic_start(struct periodic *p, const char *name, uint64_t every_ns, void (*turn)(void *cookie),
	       void *cookie)
{
	pthread_condattr_t attr;
	sigset_t all, before;
	int e;

	check(turn && every_ns > 0);
	*p = (struct periodic){ .every_ns = every_ns, .turn = turn, .cookie = cookie };
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	e = -pthread_create(&p->thread, NULL, periodic_main, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	p->is_running = e == 0;
	if (e == 0)
		pthread_setname_np(p->thread, name);
	return e;
}

void
periodic_wake(struct periodic *p)
{
	pthread_mutex_lock(&p->lock);
	p->is_asked = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

void
periodic_stop(struct periodic *p)
{
	if (!p->is_running)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	p->is_running = false;
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
}
