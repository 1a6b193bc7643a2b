/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Missing and incomplete files of a disk at a start: only the data in them is lost. A start refuses, and
 * names the files. A repair keeps the records, and makes the files again with zeros: reads of these objects
 * fail as those of damaged objects do, until the objects are written again, deleted, or restored from their
 * other copy.
 */
#include "extent/log/recover_int.h"

#include "store/damage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool
any_lost(const struct disk *d, const uint64_t *ext, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (!disk_has(d, ext_unit(ext[i]), ext_nr(ext[i])))
			return true;
	}
	return false;
}

bool
disk_lost(const struct disk *d, const struct rec_view *v)
{
	uint64_t unit;

	if (d->is_device)
		return false;
	if (v->flags & REC_MAPPED && any_lost(d, v->map.ext, v->map.nr))
		return true;
	if (!v->entries)
		return false;
	if (v->body == BODY_PACKED) {
		unit = ext_make(ext_unit(((const uint64_t *)v->entries)[0]), 1);
		return any_lost(d, &unit, 1);
	}
	return v->body == BODY_EXTENTS && any_lost(d, v->entries, v->entry_nr);
}

void
lost_note(struct replay *rp, uint64_t ext)
{
	struct disk *d = &rp->vol->disk;

	d->seg[ext_unit(ext) / geo_seg_units(&d->geo)].is_lost = true;
}

int
lost_judge(struct replay *rp)
{
	struct disk *d = &rp->vol->disk;
	char files[300] = "", one[400], name[300] = "", segment[32], loss[64];
	struct advice_values v = { .path = name, .loss = loss };
	int nr = 0;

	if (!d->is_device && d->log.fault != FILE_WHOLE) {
		/* Only a repair gets here. */
		rp->rep->was_damaged = true;
		disk_fault_text(d, -1, one, sizeof one);
		report(rp->rep,
		       "%s: all that was written after the newest snapshot, whose names are not known, is "
		       "lost",
		       one);
		if (rp->rep->damage)
			rp->rep->damage->sums.has_unknown = true;
	}
	for (uint32_t i = 0; !d->is_device && i < d->geo.seg_nr; i++) {
		if (!d->seg[i].is_lost)
			continue;
		disk_fault_text(d, i, one, sizeof one);
		if (rp->rep->repair)
			report(rp->rep, "%s: what was in it is lost", one);
		if (nr++ == 0) {
			snprintf(files, sizeof files, "%.290s", one);
			disk_seg_name(segment, i);
			snprintf(name, sizeof name, "%.250s/%s", d->path, segment);
		}
	}
	if (!nr)
		return 0;
	rp->rep->lost_files += (unsigned)nr;
	if (rp->rep->repair)
		return 0;
	if (nr > 1)
		snprintf(one, sizeof one, "; %d more of its files are not whole", nr - 1);
	snprintf(loss, sizeof loss, "%llu records of objects", (unsigned long long)rp->lost_nr);
	return refuse_with(rp, -ENOTRECOVERABLE, ADVICE_FILE_LOST, &v,
			   "%s%s; %llu records of objects have bytes there", files, nr > 1 ? one : "",
			   (unsigned long long)rp->lost_nr);
}

void
lost_drop_older(struct replay *rp)
{
	struct vol *vol = rp->vol;

	if (!vol->disk.sb.snap[1].id ||
	    (vol->disk.log.fault == FILE_WHOLE &&
	     !any_lost(&vol->disk, vol->snap.space[1].ext, vol->snap.space[1].nr)))
		return;
	report(rp->rep,
	       "%s: the older snapshot %llu, or the log after it, is in a file that is not there: it is "
	       "given up",
	       vol->disk.name, (unsigned long long)vol->disk.sb.snap[1].id);
	vol->snap.space[1].nr = 0;
	vol->disk.sb.snap[1] = (struct snap_ref){ 0 };
	atomic_store(&vol->snap.trim_at, atomic_load(&vol->snap.begin));
}
