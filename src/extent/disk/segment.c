/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of a directory: made ready ahead of need (docs/disk-format.md section 2), made again
 * by a repair. */
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
	uint64_t per_seg = geo_seg_units(&d->geo);
	char name[32];
	int fd, e;

	check(!d->is_device && d->seg_fd[seg] < 0);
	disk_seg_name(name, seg);
	fd = disk_make_file(d, name, d->geo.seg_bytes, r);
	if (fd < 0)
		return fd;
	d->seg_fd[seg] = fd;
	d->seg_have[seg] = d->geo.seg_bytes;
	d->seg_fault[seg] = FILE_WHOLE;
	e = alloc_add(d->alloc, seg * per_seg, per_seg);
	if (e == 0)
		atomic_fetch_add(&d->freed_nr, 1);
	return e;
}

/* ---- repair ---- */

void
disk_fault_text(const struct disk *d, int64_t seg, char *text, size_t len)
{
	char name[32] = "log";

	if (seg >= 0)
		disk_seg_name(name, (uint32_t)seg);
	switch (seg < 0 ? d->log_fault : d->seg_fault[seg]) {
	case FILE_ODD:
		snprintf(text, len, "%s/%s is not as large as it was made: it has %llu bytes instead of %llu",
			 d->path, name, (unsigned long long)(seg < 0 ? d->log_have : d->seg_have[seg]),
			 (unsigned long long)(seg < 0 ? d->geo.log_bytes : d->geo.seg_bytes));
		break;
	case FILE_FOREIGN:
		snprintf(text, len, "%s/%s is not this disk's file of that name", d->path, name);
		break;
	default:
		snprintf(text, len, "%s/%s is not there", d->path, name);
		break;
	}
}

/* Makes one file whole.  A file that is too short keeps its bytes, and zeros come after them. */
static int
mend_file(struct disk *d, struct ring *r, const char *name, int *fd, enum file_fault fault, uint64_t have,
	  uint64_t bytes)
{
	char aside[48];
	int e = 0;

	if (fault == FILE_ODD) {
		e = have < bytes ? sync_zero(r, *fd, have, bytes - have) : 0;
		return e < 0 ? e : file_fsync(*fd);
	}
	if (fault == FILE_FOREIGN) {
		snprintf(aside, sizeof aside, "%s.foreign", name);
		e = file_rename(d->dir_fd, name, aside);
		file_close(*fd);
		*fd = -1;
	}
	if (e == 0)
		e = disk_make_file(d, name, bytes, r);
	if (e < 0)
		return e;
	*fd = e;
	return 0;
}

int
disk_mend_log(struct disk *d, struct ring *r, char *err, size_t err_len)
{
	int e;

	if (d->log_fault == FILE_WHOLE)
		return 0;
	e = mend_file(d, r, "log", &d->log_fd, d->log_fault, d->log_have, d->geo.log_bytes);
	if (e < 0)
		return disk_refuse(err, err_len, e, "%s: cannot make the log again: %s", d->name,
				   strerror(-e));
	d->log_have = d->geo.log_bytes;
	return 0;
}

int
disk_mend_segments(struct disk *d, struct ring *r, char *err, size_t err_len)
{
	char name[32];
	int e;

	for (uint32_t i = 0; !d->is_device && i < d->geo.seg_nr; i++) {
		if (d->seg_fault[i] == FILE_WHOLE || (d->seg_fault[i] == FILE_ABSENT && !d->seg_lost[i]))
			continue;
		disk_seg_name(name, i);
		e = mend_file(d, r, name, &d->seg_fd[i], d->seg_fault[i], d->seg_have[i], d->geo.seg_bytes);
		if (e < 0)
			return disk_refuse(err, err_len, e, "%s: cannot make %s again: %s", d->name, name,
					   strerror(-e));
		d->seg_have[i] = d->geo.seg_bytes;
	}
	return 0;
}

/* ---- ahead of need ---- */

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
		e = make_segment(d, r, i);
		if (e < 0) {
			/* The file system is full, or failing: nothing that is served is lost by it. */
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
