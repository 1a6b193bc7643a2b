/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch - how long a thread's writes and flushes take: one that takes longer than the disk's timeout fails the disk.
 *
 * Time goes in quarters of the timeout.  An operation is counted in the quarter in which it begins, and what is still
 * counted five quarters later is late: so it costs an increment and a decrement, and a timer only while something is
 * out.  What is late stays out, and whoever waits for it goes on waiting: the kernel may still use its memory.
 *
 * Threads: the port's.
 */
#ifndef GANTRY_EXTENT_DISK_WATCH_H
#define GANTRY_EXTENT_DISK_WATCH_H

#include "base/timer.h"

#include <stdbool.h>
#include <stdint.h>

#define WATCH_QUARTERS 8
#define WATCH_LATE 5

struct disk;

struct disk_watch {
	struct timers *timers; /* NULL: nothing is watched */
	struct disk *disk;     /* of the operations */
	struct timer timer;
	unsigned nr; /* operations that are out */
	unsigned out[WATCH_QUARTERS];
	uint8_t now;
};

/* Begins to watch an operation on d.  Returns what watch_end() takes. */
uint8_t watch_begin(struct disk_watch *w, struct disk *d);

static inline void
watch_end(struct disk_watch *w, uint8_t quarter)
{
	w->out[quarter]--;
	w->nr--;
}

/* Stops the timer.  Nothing is out. */
static inline void
watch_fini(struct disk_watch *w)
{
	if (w->timers)
		timer_disarm(w->timers, &w->timer);
}

#endif
