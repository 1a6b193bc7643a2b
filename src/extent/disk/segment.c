/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of a directory, made ready ahead of need (docs/disk-format.md section 2). */
#include "extent/disk/disk.h"

#define LOG_MODULE "store"
#include "base/log.h"

#include <string.h>

bool
disk_segments_left(const struct disk *d)
{
	for (uint32_t i = 0; i < d->geo.seg_nr; i++) {
		if (d->seg_fd[i] < 0)
			return true;
	}
	return false;
}

/* Is it time for one more? */
static bool
is_due(struct disk *d)
{
	uint64_t per_seg = geo_seg_units(&d->geo), ahead = geo_units(&d->geo) / 16;
	struct alloc_stats as;

	if (atomic_exchange(&d->seg_hungry, false))
		return true;
	alloc_stats(d->alloc, &as);
	ahead = ahead < 2 * per_seg ? 2 * per_seg : ahead;
	return as.free < ahead + as.held_back;
}

int
disk_grow(struct disk *d, struct ring *r)
{
	int e;

	if (!disk_segments_left(d)) {
		atomic_store(&d->segs_coming, false);
		return 0;
	}
	if (disk_failed(d) || !is_due(d))
		return 0;
	for (uint32_t i = 0; i < d->geo.seg_nr; i++) {
		if (d->seg_fd[i] >= 0)
			continue;
		e = disk_make_segment(d, r, i);
		if (e < 0) {
			/* The file system is full, or failing: nothing that is served is lost by it. */
			if (atomic_exchange(&d->seg_error, e) != e)
				log_warn("%s: cannot make segment %u: %s", d->path, i, strerror(-e));
			atomic_store(&d->segs_coming, false);
			return e;
		}
		atomic_store(&d->seg_error, 0);
		atomic_store(&d->segs_coming, disk_segments_left(d));
		return 1;
	}
	return 0;
}
