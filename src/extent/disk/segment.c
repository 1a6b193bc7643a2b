/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of a directory: made ahead of need (docs/disk-format.md section 1), and made again by a repair. */
#include "extent/disk/disk.h"

#include "extent/disk/file.h"
#include "extent/disk/rules.h"
#include "extent/disk/sync.h"
#include "base/check.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

static int
make_segment(struct disk *d, struct ring *r, uint32_t seg)
{
	char name[32];
	int fd, e;

	check(!d->is_device && d->seg[seg].fd < 0);
	disk_seg_name(name, seg);
	fd = disk_make_file(d, name, d->geo.seg_bytes, NULL, r);
	if (fd < 0)
		return fd;
	d->seg[seg].fd = fd;
	d->seg[seg].have = d->geo.seg_bytes;
	d->seg[seg].fault = FILE_WHOLE;
	e = alloc_add(d->alloc, seg);
	if (e == 0)
		atomic_fetch_add(&d->freed_nr, 1);
	return e;
}

/* ---- repair ---- */

void
disk_fault_text(struct disk *d, int64_t seg, char *text, size_t len)
{
	const struct disk_file *f = disk_file(d, seg);
	char name[32];

	disk_seg_name(name, seg);
	if (f->fault == FILE_ODD)
		snprintf(text, len, "%s/%s is not as large as it was made: it has %llu bytes instead of %llu",
			 d->path, name, (unsigned long long)f->have,
			 (unsigned long long)disk_file_bytes(d, seg));
	else
		snprintf(text, len, "%s/%s is not %s", d->path, name,
			 f->fault == FILE_FOREIGN ? "this disk's file of that name" : "there");
}

/* Makes the file of a segment, or (seg -1) of the log, whole. A file that is too short keeps its bytes,
 * followed by zeros. */
static int
mend_file(struct disk *d, struct ring *r, int64_t seg)
{
	struct disk_file *f = disk_file(d, seg);
	uint64_t bytes = disk_file_bytes(d, seg);
	char name[32], aside[48];
	int e = 0;

	disk_seg_name(name, seg);
	if (f->fault == FILE_ODD) {
		e = f->have < bytes ? sync_zero(r, f->fd, f->have, bytes - f->have) : 0;
		e = e < 0 ? e : file_fsync(f->fd);
	} else {
		if (f->fault == FILE_FOREIGN) {
			snprintf(aside, sizeof aside, "%s.foreign", name);
			e = file_rename(d->dir_fd, name, aside);
			file_close(f->fd);
		}
		f->fd = e = e == 0 ? disk_make_file(d, name, bytes, NULL, r) : e;
	}
	if (e < 0)
		return disk_refuse(d, e, "cannot make %s%s again: %s", seg < 0 ? "the " : "", name,
				   strerror(-e));
	f->have = bytes;
	return 0;
}

int
disk_mend_log(struct disk *d, struct ring *r)
{
	return d->log.fault == FILE_WHOLE ? 0 : mend_file(d, r, -1);
}

int
disk_mend_segments(struct disk *d, struct ring *r)
{
	int e = 0;

	for (uint32_t i = 0; e == 0 && !d->is_device && i < d->geo.seg_nr; i++) {
		const struct disk_file *f = &d->seg[i];

		if (f->fault != FILE_WHOLE && (f->fault != FILE_ABSENT || f->is_lost))
			e = mend_file(d, r, i);
	}
	return e;
}

/* ---- ahead of need ---- */

bool
disk_segments_left(const struct disk *d)
{
	for (uint32_t i = 0; i < d->geo.seg_nr; i++) {
		if (d->seg[i].fd < 0)
			return true;
	}
	return false;
}

/* Returns true if one more segment is due. */
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
		if (d->seg[i].fd >= 0)
			continue;
		e = make_segment(d, r, i);
		if (e < 0) {
			/* The file system is full, or fails; the existing segments are not affected. */
			if (atomic_exchange(&d->seg_error, e) != e)
				log_warn("%s: cannot make segment %u: %s", d->name, i, strerror(-e));
			atomic_store(&d->segs_coming, false);
			return e;
		}
		atomic_store(&d->seg_error, 0);
		atomic_store(&d->segs_coming, disk_segments_left(d));
		return 1;
	}
	return 0;
}
