/*
 * What the helper thread does: snapshots when the leader wants one, and segments made ready ahead of need
 * (store.md section 2).
 */
#include "extent/extent_int.h"

#include "base/check.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#define SEGMENT_RETRY_NS (10 * NS_PER_S)

bool
upkeep_segments_left(const struct disk *d)
{
	for (uint32_t i = 0; i < d->geo.seg_nr; i++) {
		if (d->seg_fd[i] < 0)
			return true;
	}
	return false;
}

/* Is it time for one more? */
static bool
segment_due(struct disk *d)
{
	uint64_t per_seg = geo_seg_units(&d->geo), ahead = geo_units(&d->geo) / 16;
	struct alloc_stats as;

	if (atomic_exchange(&d->seg_hungry, false))
		return true;
	alloc_stats(d->alloc, &as);
	ahead = ahead < 2 * per_seg ? 2 * per_seg : ahead;
	return as.free < ahead + as.held_back;
}

/* 1: made one, 0: none is due, or -errno. */
static int
make_segment(struct disk *d, struct ring *r)
{
	int e;

	if (!upkeep_segments_left(d)) {
		atomic_store(&d->segs_coming, false);
		return 0;
	}
	if (disk_failed(d) || !segment_due(d))
		return 0;
	for (uint32_t i = 0; i < d->geo.seg_nr; i++) {
		if (d->seg_fd[i] >= 0)
			continue;
		e = disk_make_segment(d, r, i);
		if (e < 0) {
			/* The file system is full, or failing: nothing that is served is lost by it. */
			log_warn("%s: cannot make segment %u: %s", d->path, i, strerror(-e));
			atomic_store(&d->segs_coming, false);
			return e;
		}
		atomic_store(&d->segs_coming, upkeep_segments_left(d));
		port_kick_all(d->st);
		return 1;
	}
	return 0;
}

uint64_t
upkeep(struct disk *d, struct ring *r)
{
	int e;

	if (atomic_load(&d->snap_state) == SNAP_WANTED) {
		snapshot_write(d, r);
		atomic_store(&d->snap_state, SNAP_WALKED);
		atomic_store(&d->want_lead, true);
		port_kick(d->st, NULL);
	}
	e = make_segment(d, r);
	if (e < 0)
		return SEGMENT_RETRY_NS;
	return e > 0 ? 0 : UINT64_MAX;
}
