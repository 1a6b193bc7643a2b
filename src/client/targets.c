/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DC targets between calls.  Making one takes the driver some 100 us, so calls hand them on; but a token is as
 * good as the target that it names, and any host that saw one on its way could use it for as long.  So each
 * is destroyed when it has lived for g->target_life_ns, used or not: by the call that ends then, or else by a
 * thread that has nothing else to do, and that is there once a target waits.  See the locks in client_int.h.
 */
#include "client/client_int.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* One that the driver does not let go is tried again so often. */
#define AGAIN_NS NS_PER_S

static bool has_reaper(struct gantry *g);

static bool
is_old(const struct gantry *g, const struct target *t, uint64_t now)
{
	return now - t->made_ns >= g->target_life_ns;
}

static void
push(struct target **list, struct target *t)
{
	t->next = *list;
	*list = t;
}

/* Moves what is old from the free ones to *old, with those that did not go; says when the next is.  Locked. */
static void
collect(struct gantry *g, struct target **old, uint64_t *ret_next_ns)
{
	uint64_t now = clock_ns();

	*ret_next_ns = UINT64_MAX;
	for (int i = 0; i < g->port_nr; i++) {
		struct target **at = &g->port[i].free;

		while (*at) {
			struct target *t = *at;

			if (is_old(g, t, now)) {
				*at = t->next;
				push(old, t);
				continue;
			}
			if (t->made_ns + g->target_life_ns < *ret_next_ns)
				*ret_next_ns = t->made_ns + g->target_life_ns;
			at = &t->next;
		}
	}
	while (g->undead && now >= g->undead_again_ns) {
		struct target *t = g->undead;

		g->undead = t->next;
		push(old, t);
	}
	if (g->undead && g->undead_again_ns < *ret_next_ns)
		*ret_next_ns = g->undead_again_ns;
}

/* Destroys a list; what the driver keeps is tried again.  Not locked. */
static void
destroy(struct gantry *g, struct target *list)
{
	while (list) {
		struct target *t = list;

		list = t->next;
		if (target_free(t) == 0)
			continue;
		pthread_mutex_lock(&g->lock);
		push(&g->undead, t);
		g->undead_again_ns = clock_ns() + AGAIN_NS;
		pthread_mutex_unlock(&g->lock);
	}
}

int
target_end(struct gantry *g, struct target *t)
{
	int e = target_free(t);

	if (e < 0) {
		pthread_mutex_lock(&g->lock);
		push(&g->undead, t);
		g->undead_again_ns = clock_ns() + AGAIN_NS;
		if (has_reaper(g) && g->reaper_waits)
			pthread_cond_signal(&g->reap);
		pthread_mutex_unlock(&g->lock);
	}
	return e;
}

/* Sleeps until then, or until there is something new.  Locked. */
static void
rest(struct gantry *g, uint64_t until_ns)
{
	struct timespec ts = { .tv_sec = (time_t)(until_ns / NS_PER_S),
			       .tv_nsec = (long)(until_ns % NS_PER_S) };

	g->reaper_waits = until_ns == UINT64_MAX;
	if (g->reaper_waits)
		pthread_cond_wait(&g->reap, &g->lock);
	else
		pthread_cond_timedwait(&g->reap, &g->lock, &ts);
	g->reaper_waits = false;
}

static void *
reaper(void *arg)
{
	struct gantry *g = arg;

	pthread_mutex_lock(&g->lock);
	while (!g->closes) {
		struct target *old = NULL;
		uint64_t next_ns;

		collect(g, &old, &next_ns);
		if (!old) {
			rest(g, next_ns);
			continue;
		}
		pthread_mutex_unlock(&g->lock);
		destroy(g, old);
		pthread_mutex_lock(&g->lock);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

/* Has the thread, or makes it.  Locked. */
static bool
has_reaper(struct gantry *g)
{
	sigset_t all, before;

	if (g->reaper_runs)
		return true;
	/* Signals are the program's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	g->reaper_runs = pthread_create(&g->reaper, NULL, reaper, g) == 0;
	g->reaper_pid = getpid();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return g->reaper_runs;
}

int
targets_init(struct gantry *g)
{
	pthread_condattr_t a;
	int r = pthread_condattr_init(&a);

	if (r == 0) {
		/* That of clock_ns(). */
		pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
		r = pthread_cond_init(&g->reap, &a);
		if (r == 0)
			r = pthread_cond_init(&g->settled, &a);
		pthread_condattr_destroy(&a);
	}
	return -r;
}

void
targets_close(struct gantry *g)
{
	pthread_mutex_lock(&g->lock);
	g->closes = true;
	pthread_cond_signal(&g->reap);
	pthread_mutex_unlock(&g->lock);
	/* A child that was forked has the context, and not the thread. */
	if (g->reaper_runs && g->reaper_pid == getpid())
		pthread_join(g->reaper, NULL);
	for (int i = 0; i < g->port_nr; i++) {
		while (g->port[i].free) {
			struct target *t = g->port[i].free;

			g->port[i].free = t->next;
			push(&g->undead, t);
		}
	}
	while (g->undead) {
		struct target *t = g->undead;

		g->undead = t->next;
		target_free(t);
	}
	pthread_cond_destroy(&g->reap);
	pthread_cond_destroy(&g->settled);
}

struct target *
target_take(struct gantry *g, struct port *p)
{
	uint64_t now = clock_ns();
	struct target *t, *old = NULL;

	pthread_mutex_lock(&g->lock);
	while ((t = p->free)) {
		p->free = t->next;
		if (!is_old(g, t, now))
			break;
		push(&old, t);
	}
	pthread_mutex_unlock(&g->lock);
	destroy(g, old);
	if (!t) {
		t = target_new(p);
		if (t)
			t->made_ns = now;
	}
	return t;
}

int
target_give(struct gantry *g, struct port *p, struct target *t)
{
	bool is_kept = false;

	if (!is_old(g, t, clock_ns())) {
		pthread_mutex_lock(&g->lock);
		is_kept = t->changes == p->changes && has_reaper(g);
		if (is_kept)
			push(&p->free, t);
		if (is_kept && g->reaper_waits)
			pthread_cond_signal(&g->reap);
		pthread_mutex_unlock(&g->lock);
	}
	return is_kept ? 0 : target_free(t);
}

/* ---- addresses ---- */

static bool
is_address(const struct port *p, const struct address *a)
{
	return p->gid_index == a->gid_index && p->lid == a->lid && !memcmp(p->gid, a->gid, sizeof p->gid);
}

bool
port_reread(struct gantry *g, struct port *p)
{
	struct target *old, *shared;
	struct address now;
	bool is_same;

	if (!port_address(p, &now))
		return false;
	map_rdlock(g);
	is_same = is_address(p, &now);
	map_rdunlock(g);
	if (is_same)
		return false;
	map_wrlock(g);
	is_same = is_address(p, &now); /* by now: another call may have been faster */
	memcpy(p->gid, now.gid, sizeof p->gid);
	p->lid = now.lid;
	p->gid_index = now.gid_index;
	p->changes += !is_same;
	pthread_mutex_lock(&g->lock);
	old = p->free;
	p->free = NULL;
	pthread_mutex_unlock(&g->lock);
	map_wrunlock(g);
	destroy(g, old);
	if (is_same)
		return true;
	/* Tokens that the program has keep theirs: the address may come back. */
	shared = target_new(p);
	if (shared) {
		map_wrlock(g);
		for (int i = 0; i < SHARED_MAX; i++) {
			if (p->shared[i])
				push(&p->retired, p->shared[i]);
			p->shared[i] = NULL;
		}
		p->shared[0] = shared;
		map_wrunlock(g);
	}
	return true;
}
