/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers of one thread: an intrusive pairing heap, so arming allocates nothing. The thread's loop asks
 * timers_next() how long it may wait, and calls timers_run(). No locking.
 */
#ifndef GANTRY_BASE_TIMER_H
#define GANTRY_BASE_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
	uint64_t at_ns; /* time of clock_ns() at which the timer is due */
	void (*fn)(struct timer *t);
	struct timer *child, *sibling, *prev; /* links in the heap; prev: left sibling or parent */
	bool armed;
};

struct timers {
	struct timer *root;
};

/* Arms t, also if t is armed already: timers_run() calls fn(t) when the time at_ns of clock_ns() has come.
 * Zeroed memory is a valid unarmed timer. */
void timer_arm(struct timers *ts, struct timer *t, uint64_t at_ns, void (*fn)(struct timer *));
/* Disarms t; an unarmed timer is allowed. */
void timer_disarm(struct timers *ts, struct timer *t);

/* Returns the time at which the first timer is due; UINT64_MAX: no timer is armed. */
uint64_t timers_next(const struct timers *ts);
/* Runs all timers that are due at now_ns. Returns the number of timers run. */
int timers_run(struct timers *ts, uint64_t now_ns);

#endif
