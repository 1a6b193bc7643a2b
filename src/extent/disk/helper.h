/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper - a disk's helper thread: a ring of its own, a bell, and a work function that runs when the bell
 * is rung.
 *
 * The work function returns the time until its next call without a ring: 0 is immediately, UINT64_MAX
 * never. The work function checks `stop` during long work. The simulation has its own helper.c.
 *
 * Threads: helper_ring() on any; the others on the thread that starts and stops the engine.
 */
#ifndef GANTRY_EXTENT_DISK_HELPER_H
#define GANTRY_EXTENT_DISK_HELPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct disk;
struct helper;
struct ring;

typedef uint64_t (*helper_work_fn)(struct helper *h, struct ring *r);

struct helper {
	struct disk *disk; /* disk of the thread, which is made to fail if the thread cannot work */
	helper_work_fn work;
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool bell;
	_Atomic bool stop;
};

void helper_init(struct helper *h, struct disk *d, helper_work_fn work);
/* Frees h, which is stopped. */
void helper_fini(struct helper *h);
/* Starts the thread.  0 or -errno. */
int helper_start(struct helper *h);
/* Stops the thread, if it runs, and waits for it. */
void helper_stop(struct helper *h);
/* Wakes the thread for its work function. */
void helper_ring(struct helper *h);

#endif
