/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper - a disk's helper thread: a separate I/O ring, a bell, and a work function that runs when another
 * thread rings the bell. The work function returns the time in ns until its next call if the bell is not
 * rung: 0 means immediately, UINT64_MAX never. During long work the work function checks `stop`. The
 * simulation replaces helper.c. Threads: any thread may call helper_ring(); the other functions are called on
 * the thread that starts and stops the engine.
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
	struct disk *disk; /* disk of the thread; the disk fails if the thread cannot work */
	helper_work_fn work;
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool bell;
	_Atomic bool stop;
};

void helper_init(struct helper *h, struct disk *d, helper_work_fn work);
/* Frees the state of a helper thread that was stopped. */
void helper_fini(struct helper *h);
/* Starts the thread. Returns 0 or -errno. */
int helper_start(struct helper *h);
/* Stops the thread and waits for its end. A thread that does not run is allowed. */
void helper_stop(struct helper *h);
/* Wakes the thread to run its work function. */
void helper_ring(struct helper *h);

#endif
