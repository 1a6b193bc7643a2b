/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the program: who registers it, and what keeps it. */
#include "server/server_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define CLOSE_LIMIT_NS (30 * NS_PER_S) /* for a device that has died to be closed */

static void
say_why(struct gantry_server *s, const void *mem, size_t len, int r)
{
	struct rlimit limit;
	char locked[48] = "unlimited";

	if (r != -ENOMEM) {
		say(s, GANTRY_SERVER_LOG_ERROR, "%zu bytes at %p cannot be registered: %s", len, mem,
		    strerror(-r));
		return;
	}
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		snprintf(locked, sizeof locked, "%llu bytes", (unsigned long long)limit.rlim_cur);
	say(s, GANTRY_SERVER_LOG_ERROR,
	    "%zu bytes at %p cannot be registered: the limit of locked memory is %s, and each adapter counts "
	    "what "
	    "is registered with it: raise it (ulimit -l, LimitMEMLOCK=)",
	    len, mem, locked);
}

int
gantry_region_add(struct gantry_server *s, void *mem, size_t len, struct gantry_region **ret_r)
{
	struct gantry_region *g;
	char err[320];
	int r;

	if (!is_mine(s))
		return -ENODEV;
	if (!mem || !len || (uintptr_t)mem + len < (uintptr_t)mem) {
		say(s, GANTRY_SERVER_LOG_ERROR, "%zu bytes at %p are nothing to register", len, mem);
		return -EINVAL;
	}
	if (server_is_dead(s)) {
		say(s, GANTRY_SERVER_LOG_ERROR,
		    "%zu bytes at %p cannot be registered: the device has died, and is not back yet", len,
		    mem);
		return -ENODEV;
	}
	g = calloc(1, sizeof *g);
	if (!g) {
		say(s, GANTRY_SERVER_LOG_ERROR, "no memory for a region");
		return -ENOMEM;
	}
	*g = (struct gantry_region){ .s = s, .mem = mem, .len = len };
	r = rdma_region_add(s->rd, mem, len, &g->nr, err, sizeof err);
	if (r < 0) {
		say_why(s, mem, len, r);
		free(g);
		return r;
	}
	pthread_mutex_lock(&s->lock);
	list_push_tail(&s->regions, &g->link);
	pthread_mutex_unlock(&s->lock);
	say(s, GANTRY_SERVER_LOG_INFO, "region of %zu bytes at %p registered", len, mem);
	*ret_r = g;
	return 0;
}

/* Waits for a device that has died to be closed. */
static int
take_back(struct gantry_region *g)
{
	uint64_t until = clock_ns() + CLOSE_LIMIT_NS;
	int r;

	while ((r = rdma_region_del(g->s->rd, g->nr)) == -EINPROGRESS && clock_ns() < until)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	return r;
}

int
gantry_region_del(struct gantry_region *g)
{
	struct gantry_server *s;
	int r = -EBUSY;

	if (!g || !is_mine(g->s))
		return 0;
	s = g->s;
	/* Who begins an operation counts it first, and looks then. */
	atomic_store(&g->is_going, true);
	if (atomic_load(&g->uses) > 0)
		say(s, GANTRY_SERVER_LOG_ERROR,
		    "the region of %zu bytes at %p stays: %llu operations in it are not over, or not polled",
		    g->len, (void *)g->mem, (unsigned long long)atomic_load(&g->uses));
	else
		r = take_back(g);
	if (r < 0) {
		if (r != -EBUSY)
			say(s, GANTRY_SERVER_LOG_ERROR,
			    "the region of %zu bytes at %p stays: a device keeps it: %s", g->len,
			    (void *)g->mem, strerror(-r));
		atomic_store(&g->is_going, false);
		return r;
	}
	check(atomic_load(&g->uses) == 0);
	pthread_mutex_lock(&s->lock);
	list_del(&g->link);
	pthread_mutex_unlock(&s->lock);
	say(s, GANTRY_SERVER_LOG_INFO, "region of %zu bytes at %p taken back", g->len, (void *)g->mem);
	free(g);
	return 0;
}
