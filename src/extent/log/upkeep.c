/* SPDX-License-Identifier: Apache-2.0 */
/* What the helper thread does: snapshots when the leader wants one, segments made ready ahead of need, beats. */
#include "extent/log/vol.h"

#include "base/list.h"

#define SEGMENT_RETRY_NS (10 * NS_PER_S)

uint64_t
vol_upkeep(struct helper *h, struct ring *r)
{
	struct vol *vol = container_of(h, struct vol, helper);
	uint64_t beat_ns;
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
	beat_ns = disk_beat(&vol->disk, r);
	if (e > 0)
		return 0;
	return e < 0 && beat_ns > SEGMENT_RETRY_NS ? SEGMENT_RETRY_NS : beat_ns;
}
