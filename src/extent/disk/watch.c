/* SPDX-License-Identifier: Apache-2.0 */
/* How long writes and flushes take, see watch.h. */
#include "extent/disk/watch.h"

#include "extent/disk/disk.h"
#include "base/clock.h"
#include "base/list.h"

static void on_quarter(struct timer *t);

static void
arm(struct disk_watch *w)
{
	timer_arm(w->timers, &w->timer, clock_ns() + w->disk->timeout_ns / 4, on_quarter);
}

static void
on_quarter(struct timer *t)
{
	struct disk_watch *w = container_of(t, struct disk_watch, timer);
	unsigned late = 0;

	w->now = (uint8_t)((w->now + 1) % WATCH_QUARTERS);
	for (int i = WATCH_LATE; i < WATCH_QUARTERS; i++)
		late += w->out[(w->now + WATCH_QUARTERS - i) % WATCH_QUARTERS];
	if (late)
		disk_fail(w->disk, "a write or flush has taken longer than %.3g s (store.disk_timeout)",
			  (double)w->disk->timeout_ns / NS_PER_S);
	else if (w->nr)
		arm(w);
}

uint8_t
watch_begin(struct disk_watch *w, struct disk *d)
{
	if (w->timers && d->timeout_ns && !w->timer.armed && !disk_failed(d)) {
		w->disk = d;
		arm(w);
	}
	w->out[w->now]++;
	w->nr++;
	disk_write_begins(d);
	return w->now;
}

void
watch_end(struct disk_watch *w, struct disk *d, uint8_t quarter)
{
	w->out[quarter]--;
	w->nr--;
	disk_write_ends(d);
}
