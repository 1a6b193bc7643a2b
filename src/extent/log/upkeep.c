/* SPDX-License-Identifier: Apache-2.0 */
/* What the helper thread does: snapshots when the leader wants one, segments made ready ahead of need, beats. */
#include "extent/log/vol.h"

#include "base/clock.h"
#include "base/list.h"

#include <time.h>

#define SEGMENT_RETRY_NS (10 * NS_PER_S)
#define REST_MIN_NS (15 * NS_PER_MS) /* of mending */
#define REST_MAX_NS (NS_PER_S / 2)

/* How the file system has the segments; what is free is claimed for a moment, and comes back. */
static uint64_t
look_after(struct vol *vol, struct ring *r)
{
	uint64_t began_ns = clock_ns(), wait_ns, took_ns;

	atomic_fetch_add(&vol->dead_nr, 1);
	wait_ns = disk_layout_work(&vol->disk, r);
	atomic_fetch_sub(&vol->dead_nr, 1);
	took_ns = clock_ns() - began_ns;
	took_ns = took_ns < REST_MIN_NS ? REST_MIN_NS : took_ns < REST_MAX_NS ? took_ns : REST_MAX_NS;
	/* Between two pieces requests come first. */
	if (wait_ns == 0)
		nanosleep(&(struct timespec){ .tv_nsec = (long)took_ns }, NULL);
	return wait_ns;
}

uint64_t
vol_upkeep(struct helper *h, struct ring *r)
{
	struct vol *vol = container_of(h, struct vol, helper);
	uint64_t wait_ns, beat_ns;
	int e;

	if (atomic_load(&vol->snap.state) == SNAP_WANTED) {
		snapshot_write(vol, r);
		atomic_store(&vol->snap.state, SNAP_WALKED);
		atomic_store(&vol->want_lead, true);
		vol->kick(vol->above, NULL);
	}
	e = disk_grow(&vol->disk, r);
	if (e > 0)
		vol->space(vol->above);
	wait_ns = e > 0 ? 0 : look_after(vol, r);
	beat_ns = disk_beat(&vol->disk, r);
	if (e < 0 && wait_ns > SEGMENT_RETRY_NS)
		wait_ns = SEGMENT_RETRY_NS;
	return beat_ns < wait_ns ? beat_ns : wait_ns;
}
