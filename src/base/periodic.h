/* SPDX-License-Identifier: Apache-2.0 */
/* periodic - a thread that calls a function again and again, with all signals blocked: work that may wait, and holds up nothing but
 * itself. The thread that starts a struct periodic also stops it; any thread may wake it. */
#ifndef GANTRY_BASE_PERIODIC_H
#define GANTRY_BASE_PERIODIC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct periodic {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool is_running, is_asked;
	_Atomic bool stop; /* a long turn may end early when this is true */
	uint64_t every_ns; /* time from the end of a turn to the begin of the next */
	void (*turn)(void *cookie);
	void *cookie;
};

/* Starts the thread, which calls turn() immediately. name: of the thread, at most 15 bytes. Returns 0 or -errno. */
int periodic_start(struct periodic *p, const char *name, uint64_t every_ns, void (*turn)(void *cookie),
		   void *cookie);
/* Begins the next turn before its time; during a turn: immediately after this turn. */
void periodic_wake(struct periodic *p);
/* Ends the thread after the turn in progress, and waits for the end. A zeroed struct is allowed. */
void periodic_stop(struct periodic *p);

#endif
