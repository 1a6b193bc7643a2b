/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stripe - the lock of the map, in parts that threads do not share: making a token writes to no memory that
 * another thread writes to, if both use different stripes and different registrations. Any thread may call these functions.
 */
#ifndef GANTRY_CLIENT_STRIPE_H
#define GANTRY_CLIENT_STRIPE_H

#include <pthread.h>
#include <stddef.h>

struct gantry;

#define STRIPES 16
/* number of bytes that processors fetch together: two lines of a cache */
#define STRIPE_BYTES 128

struct stripe {
	_Alignas(STRIPE_BYTES) pthread_rwlock_t lock;
	_Atomic unsigned turn; /* number of the port that is used next, modulo the number of ports */
};

/* Initializes or destroys the stripes of a context. */
void stripes_init(struct gantry *g);
void stripes_destroy(struct gantry *g);
/* Returns the calling thread's stripe, the same for the life of the thread: 0 for the first thread that asks, 1 for
 * the second, and again from 0 after STRIPES threads. */
unsigned stripe_mine(void);
/* Locks g->map_lock for reading, which writes to the calling thread's stripe only; or unlocks it. */
void map_rdlock(struct gantry *g);
void map_rdunlock(struct gantry *g);
/* Locks g->map_lock for writing, in all stripes; or unlocks it. */
void map_wrlock(struct gantry *g);
void map_wrunlock(struct gantry *g);
/* Returns zeroed memory that shares no STRIPE_BYTES with other memory; free() frees it. NULL: no memory. */
void *stripe_alloc(size_t size);

#endif
