/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cores_tell(): runs something on every core's own thread, and waits a while for it.
 *
 * What was asked and by whom is shared by the asker and the cores, and freed by the last of them: a stuck
 * core may answer long after everybody has gone.
 */
#define LOG_MODULE "core"
#include "core/core_int.h"

#include "base/clock.h"
#include "base/list.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct tell_item {
	struct msg msg;
	struct tell *t;
	struct core *core;
};

struct tell {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	_Atomic int users;
	int nr, done;
	tell_fn fn;
	void (*fini)(void *arg);
	void *arg;
	struct tell_item item[];
};

static void
let_go(struct tell *t)
{
	if (atomic_fetch_sub(&t->users, 1) != 1)
		return;
	t->fini(t->arg);
	pthread_cond_destroy(&t->cond);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* On the core's thread; or on main's when the core has ended: it has no requests then. */
static void
on_item(struct msg *m)
{
	struct tell_item *i = container_of(m, struct tell_item, msg);
	struct tell *t = i->t;

	if (i->core->reqs)
		t->fn(i->core, t->arg);
	pthread_mutex_lock(&t->lock);
	t->done++;
	pthread_cond_signal(&t->cond);
	pthread_mutex_unlock(&t->lock);
	let_go(t);
}

static int
wait_done(struct tell *t, uint64_t wait_ns)
{
	struct timespec until;
	int done;

	clock_gettime(CLOCK_MONOTONIC, &until);
	wait_ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(wait_ns / NS_PER_S);
	until.tv_nsec = (long)(wait_ns % NS_PER_S);
	pthread_mutex_lock(&t->lock);
	while (t->done < t->nr) {
		if (pthread_cond_timedwait(&t->cond, &t->lock, &until) == ETIMEDOUT)
			break;
	}
	done = t->done;
	pthread_mutex_unlock(&t->lock);
	return done;
}

int
cores_tell(struct cores *cs, tell_fn fn, void (*fini)(void *arg), void *arg, uint64_t wait_ns)
{
	struct tell *t = calloc(1, sizeof *t + (size_t)cs->nr * sizeof t->item[0]);
	pthread_condattr_t attr;
	int done;

	if (!t) {
		fini(arg);
		return -ENOMEM;
	}
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->cond, &attr);
	pthread_condattr_destroy(&attr);
	t->fn = fn;
	t->fini = fini;
	t->arg = arg;
	t->nr = cs->nr;
	atomic_init(&t->users, cs->nr + 1);
	for (int i = 0; i < cs->nr; i++) {
		struct tell_item *it = &t->item[i];

		it->t = t;
		it->core = &cs->core[i];
		if (!atomic_load(&it->core->pub.over)) {
			mailbox_post(&it->core->mb, &it->msg, on_item);
			continue;
		}
		pthread_mutex_lock(&t->lock);
		t->done++;
		pthread_mutex_unlock(&t->lock);
		let_go(t);
	}
	done = wait_done(t, wait_ns);
	let_go(t);
	return done;
}
