/* SPDX-License-Identifier: Apache-2.0 */
/* The work of the helper thread: snapshots that the leader requests, segments prepared ahead of need,
 * packing of small objects, heartbeats. */
#include "extent/log/vol.h"

#include "base/clock.h"
#include "base/list.h"
#include "ring/ring.h"

#include <time.h>

#define SEGMENT_RETRY_NS (10 * NS_PER_S)
#define MEND_REST_NS (15 * NS_PER_MS)
#define REREAD_REST_NS (60 * NS_PER_MS) /* at most 1 MiB is read in between */
#define REST_MAX_NS (NS_PER_S / 2)

/* Does a piece of the work that is not urgent: the layout of the segments in the file system (which claims
 * free space for a moment), and the reading of superblocks, snapshots and log. Returns the time until the
 * next call. */
static uint64_t
look_after(struct vol *vol, struct ring *r)
{
	uint64_t began_ns = clock_ns(), layout_ns, reread_ns, took_ns, least_ns;

	atomic_fetch_add(&vol->dead_nr, 1);
	layout_ns = disk_layout_work(&vol->disk, r);
	atomic_fetch_sub(&vol->dead_nr, 1);
	reread_ns = reread_work(vol, r);
	if (layout_ns && reread_ns)
		return layout_ns < reread_ns ? layout_ns : reread_ns;
	/* Between two pieces requests come first. */
	took_ns = clock_ns() - began_ns;
	least_ns = reread_ns ? MEND_REST_NS : REREAD_REST_NS;
	took_ns = took_ns < least_ns ? least_ns : took_ns < REST_MAX_NS ? took_ns : REST_MAX_NS;
	nanosleep(&(struct timespec){ .tv_nsec = (long)took_ns }, NULL);
	return 0;
}

void
vol_ask_version(struct vol *vol, uint32_t version)
{
	struct ring *r;

	disk_ask_version(&vol->disk, version);
	if (vol->helper.runs) {
		helper_ring(&vol->helper);
	} else if (ring_new(&(struct ring_params){ .entries = 64 }, &r) == 0) {
		disk_super_work(&vol->disk, r);
		ring_free(r);
	}
}

uint64_t
vol_upkeep(struct helper *h, struct ring *r)
{
	struct vol *vol = container_of(h, struct vol, helper);
	uint64_t wait_ns, move_ns, beat_ns;
	int e;

	disk_super_work(&vol->disk, r);
	if (atomic_load(&vol->snap.state) == SNAP_WANTED) {
		snapshot_write(vol, r);
		atomic_store(&vol->snap.state, SNAP_WALKED);
		vol_wake(vol);
	}
	e = disk_grow(&vol->disk, r);
	if (e > 0)
		vol->space(vol->above);
	wait_ns = e > 0 ? 0 : look_after(vol, r);
	move_ns = mover_work(vol, r);
	wait_ns = move_ns < wait_ns ? move_ns : wait_ns;
	beat_ns = disk_beat(&vol->disk, r);
	if (e < 0 && wait_ns > SEGMENT_RETRY_NS)
		wait_ns = SEGMENT_RETRY_NS;
	return beat_ns < wait_ns ? beat_ns : wait_ns;
}
