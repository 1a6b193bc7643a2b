/* SPDX-License-Identifier: Apache-2.0 */
/* The duration of writes and flushes; see watch.h. */
#include "extent/disk/watch.h"

#include "extent/disk/disk.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/run_clock.h"

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
	uint8_t next = (uint8_t)((w->now + 1) % WATCH_QUARTERS);
	bool is_late = false;

	for (int i = 0; i < WATCH_QUARTERS; i++)
		is_late |= i != w->now && w->out[i] && run_since_ns(w->end_ns[i]) >= w->disk->timeout_ns;
	/* A quarter with operations from before a pause is not used again before they end. */
	if (!w->out[next]) {
		w->end_ns[w->now] = run_ns();
		w->now = next;
	}
	if (is_late)
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
