/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one context of a process that gantry_open_shared() hands out, and what becomes of contexts in a child that was
 * forked: it has their memory, and neither their threads nor, on an adapter, their registrations.  So they stay its
 * parent's, and it opens its own.
 */
#include "client/client_int.h"

#include <errno.h>
#include <stdlib.h>

static struct {
	pthread_mutex_t lock;
	struct gantry *g;
	unsigned count;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
before_fork(void)
{
	pthread_mutex_lock(&shared.lock);
}

static void
in_parent(void)
{
	pthread_mutex_unlock(&shared.lock);
}

static void
in_child(void)
{
	forks++;
	shared.g = NULL;
	shared.count = 0;
	pthread_mutex_unlock(&shared.lock);
}

/* When the library is loaded, so that what a program or a library above it has for forks takes its locks before ours. */
static __attribute__((constructor)) void
watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* What the environment says of the stage, as options: GANTRY_STAGE is 0, 1, or its bytes. */
static struct gantry_options
options_of_environment(void)
{
	const char *stage = getenv("GANTRY_STAGE");
	unsigned long long bytes = stage ? strtoull(stage, NULL, 10) : 0;

	return (struct gantry_options){ .size = sizeof(struct gantry_options),
					.flags = OPEN_FOR_TOKENS,
					.stage = bytes > 0,
					.stage_bytes = bytes > 1 ? bytes : 0 };
}

int
gantry_open_shared(struct gantry **ret_g)
{
	int e = 0;

	pthread_mutex_lock(&shared.lock);
	if (!shared.g) {
		const struct gantry_options o = options_of_environment();

		e = gantry_open(&o, &shared.g);
	}
	if (e == 0) {
		shared.count++;
		*ret_g = shared.g;
	}
	pthread_mutex_unlock(&shared.lock);
	return e;
}

bool
shared_give(struct gantry *g)
{
	bool ends = true;

	pthread_mutex_lock(&shared.lock);
	if (g == shared.g) {
		if (shared.count > 0)
			shared.count--;
		/* What is registered stays so: it is the process's, and tokens may be under way. */
		map_rdlock(g);
		ends = shared.count == 0 && g->map.nr == g->own_regions;
		map_rdunlock(g);
		if (ends)
			shared.g = NULL;
	}
	pthread_mutex_unlock(&shared.lock);
	return ends;
}
