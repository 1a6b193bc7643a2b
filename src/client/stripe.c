/* SPDX-License-Identifier: Apache-2.0 */
/* See stripe.h. A reader takes one lock, a writer all of them in the order of their numbers. */
#include "client/stripe.h"

#include "client/client_int.h"

#include <stdlib.h>
#include <string.h>

static _Atomic unsigned thread_count;
static _Thread_local unsigned thread_nr; /* number of the thread, from 1 on; 0: it has none yet */

void
stripes_init(struct gantry *g)
{
	pthread_rwlockattr_t a;

	pthread_rwlockattr_init(&a);
	/* A registration waits for tokens that are being made, not for all that are to be made. */
	pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	for (unsigned i = 0; i < STRIPES; i++) {
		pthread_rwlock_init(&g->map_lock[i].lock, &a);
		g->map_lock[i].turn = i;
	}
	pthread_rwlockattr_destroy(&a);
}

void
stripes_destroy(struct gantry *g)
{
	for (int i = 0; i < STRIPES; i++)
		pthread_rwlock_destroy(&g->map_lock[i].lock);
}

unsigned
stripe_mine(void)
{
	if (!thread_nr)
		thread_nr = ++thread_count;
	return (thread_nr - 1) % STRIPES;
}

void
map_rdlock(struct gantry *g)
{
	pthread_rwlock_rdlock(&g->map_lock[stripe_mine()].lock);
}

void
map_rdunlock(struct gantry *g)
{
	pthread_rwlock_unlock(&g->map_lock[stripe_mine()].lock);
}

void
map_wrlock(struct gantry *g)
{
	for (int i = 0; i < STRIPES; i++)
		pthread_rwlock_wrlock(&g->map_lock[i].lock);
}

void
map_wrunlock(struct gantry *g)
{
	for (int i = STRIPES - 1; i >= 0; i--)
		pthread_rwlock_unlock(&g->map_lock[i].lock);
}

void *
stripe_alloc(size_t size)
{
	size_t all = (size + STRIPE_BYTES - 1) / STRIPE_BYTES * STRIPE_BYTES;
	void *p = aligned_alloc(STRIPE_BYTES, all);

	if (p)
		memset(p, 0, all);
	return p;
}
