/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch - a limit on the duration of a thread's writes and flushes: an operation that exceeds the disk's
 * timeout makes the disk fail.
 *
 * The duration is measured by the run clock, so a pause of the process does not count. An operation is
 * counted in the quarter of the timeout in which it begins, and is late when the timeout has passed since the
 * end of that quarter. The cost is an increment and a decrement for each operation, and a timer while
 * operations are in flight. A late operation stays in flight, and its caller keeps waiting, because the
 * kernel may still use its memory. All functions are called on the port's thread.
 */
#ifndef GANTRY_EXTENT_DISK_WATCH_H
#define GANTRY_EXTENT_DISK_WATCH_H

#include "base/timer.h"

#include <stdbool.h>
#include <stdint.h>

#define WATCH_QUARTERS 8

struct disk;

struct disk_watch {
	struct timers *timers; /* timers of the thread; NULL: operations are not watched */
	struct disk *disk;     /* disk of the operations in flight */
	struct timer timer;
	unsigned nr;                  /* number of operations in flight */
	unsigned out[WATCH_QUARTERS]; /* for each quarter: number of operations in flight that began in it */
	/* for each quarter except the current one: time of run_ns() at which it ended */
	uint64_t end_ns[WATCH_QUARTERS];
	uint8_t now; /* index of the current quarter */
};

/* Begins the watch of an operation on d. Returns the argument for watch_end(). */
uint8_t watch_begin(struct disk_watch *w, struct disk *d);

/* Ends the watch of an operation that watch_begin() counted in `quarter`. */
void watch_end(struct disk_watch *w, struct disk *d, uint8_t quarter);

/* Stops the timer. Called when no operation is in flight. */
static inline void
watch_fini(struct disk_watch *w)
{
	if (w->timers)
		timer_disarm(w->timers, &w->timer);
}

#endif
