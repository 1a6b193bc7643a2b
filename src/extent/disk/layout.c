/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a directory's segments in the file system (docs/disk-format.md section 1).
 *
 * A segment made by Gantry has private blocks for all its bytes, and a write changes nothing else: the flush
 * of the log covers it. A copy of a segment may share blocks with the original, or have holes. A write then
 * gets new blocks, and only a flush of the segment itself makes them permanent. Such a segment is *odd*: it
 * is flushed after every write, and repaired. The file system makes shared blocks private; zeros are written
 * into holes, which read as zeros before and after any power cut. Zeros are written only into units that no
 * thread can be writing: free units, and units in use since the start (each may have a hole after the end of
 * its object). Units that were allocated since the start are repaired when they are free, or after the next
 * start.
 *
 *     found odd --> odd, flushed after every write --> repaired or overwritten --> found whole --> flushed --> whole
 *
 * The log and the superblocks are flushed after each write anyway.
 */
#include "extent/disk/disk.h"

#include "extent/disk/file.h"
#include "extent/disk/rules.h"
#include "extent/disk/sync.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#ifndef LOOK_ROUND_NS
#define LOOK_ROUND_NS (10 * NS_PER_S) /* minimum time from one examination of all segments to the next */
#define LOOK_NS NS_PER_S              /* interval of the helper's calls */
#define MEND_AGAIN_NS (60 * NS_PER_S) /* pause between repairs; units in use may be free afterwards */
#endif
#define LOOK_SHARE 100 /* an examination takes at most this part of LOOK_NS */
#define MEND_BYTES (1u << 20)
#define MEND_UNITS 64u

/* ---- examination ---- */

static void
set_odd(struct disk *d, uint32_t seg, bool is_odd)
{
	if (atomic_exchange(&d->seg[seg].odd, is_odd) == is_odd)
		return;
	if (is_odd) {
		atomic_store(&d->layout.is_through, false);
		atomic_fetch_add(&d->layout.odd_nr, 1);
	} else {
		atomic_fetch_sub(&d->layout.odd_nr, 1);
	}
}

/* Examines a limited part of a segment from *off on. Returns 1: the segment is odd; 0: not so far; or
 * -errno. */
static int
look(struct disk *d, uint32_t seg, uint64_t *off)
{
	struct file_odd odd;

	return file_next_odd(d->seg[seg].fd, d->geo.seg_bytes, off, &odd);
}

static void
tell(struct disk *d)
{
	struct layout *l = &d->layout;
	uint32_t nr = atomic_load(&l->odd_nr);

	if (nr && !l->logged_nr)
		log_warn("%s: %u of %u segments have holes, unwritten or shared blocks, as a copy may leave "
			 "them "
			 "(docs/operations.md, Backup): each is flushed whenever it is written, until it is "
			 "rewritten",
			 d->name, nr, d->geo.seg_nr);
	else if (!nr && l->logged_nr)
		log_note("%s: all segments that had holes or shared blocks are rewritten", d->name);
	l->logged_nr = nr;
}

int
disk_layout_in_use(struct disk *d)
{
	int e = 0;

	for (uint32_t i = 0; e == 0 && atomic_load(&d->layout.odd_nr) && i < d->geo.seg_nr; i++) {
		if (d->seg[i].fd >= 0 && d->seg[i].fault == FILE_WHOLE && atomic_load(&d->seg[i].odd))
			e = alloc_note_old(d->alloc, i);
	}
	return e;
}

int
disk_layout_begin(struct disk *d, struct ring *r)
{
	int e = 0;

	if (d->is_device || d->flush_all)
		return 0;
	for (uint32_t i = 0; e >= 0 && i < d->geo.seg_nr; i++) {
		uint64_t off = 0;

		if (d->seg[i].fd < 0)
			continue;
		e = RULE_FLUSHED_BEFORE_LOOKED_AT && !d->read_only ? disk_flush_file(d, r, d->seg[i].fd) : 0;
		while (e == 0 && off < d->geo.seg_bytes)
			e = look(d, i, &off);
		set_odd(d, i, e > 0);
		e = e < 0 ? e : 0;
	}
	if (e == -EOPNOTSUPP) {
		log_warn("%s: the file system does not say where it has the segments: every touched file is "
			 "flushed, which is slower",
			 d->name);
		d->flush_all = true;
		return 0;
	}
	tell(d);
	return e;
}

/* Handles a segment that was examined to its end and is not odd. */
static void
looks_well(struct disk *d, struct ring *r, uint32_t seg)
{
	if (!atomic_load(&d->seg[seg].odd))
		return;
	if (!RULE_REWRITTEN_FLUSHED || disk_flush_file(d, r, d->seg[seg].fd) == 0)
		set_odd(d, seg, false);
}

/* Continues the examination of the segments until until_ns. Returns true at the end of a round. */
static bool
look_on(struct disk *d, struct ring *r, uint64_t until_ns)
{
	struct layout *l = &d->layout;

	do {
		bool is_there = l->seg < d->geo.seg_nr && d->seg[l->seg].fd >= 0;
		int e = is_there ? look(d, l->seg, &l->off) : 0;

		if (is_there && e == 0 && l->off < d->geo.seg_bytes)
			continue;
		/* If the result is unknown, the segment is flushed separately. */
		if (e != 0)
			set_odd(d, l->seg, true);
		else if (is_there)
			looks_well(d, r, l->seg);
		l->seg++;
		l->off = 0;
	} while (l->seg < d->geo.seg_nr && clock_ns() < until_ns);
	return l->seg >= d->geo.seg_nr;
}

/* ---- repair ---- */

/* Writes zeros into the holes of [off, upto), in units whose bits are set, counted from unit `first` on. */
static int
fill_holes(struct disk *d, struct ring *r, uint32_t seg, uint64_t first, uint64_t bits, uint64_t off,
	   uint64_t upto)
{
	uint64_t unit_bytes = d->geo.unit_bytes;

	while (off < upto) {
		struct file_odd odd;
		uint64_t end;
		int e = file_next_odd(d->seg[seg].fd, upto, &off, &odd);

		if (e < 0)
			return e;
		if (e == 0)
			continue;
		for (off = odd.off; off < odd.off + odd.len; off = end) {
			uint64_t i = off / unit_bytes - first;

			end = (off / unit_bytes + 1) * unit_bytes;
			end = end < odd.off + odd.len ? end : odd.off + odd.len;
			if (odd.is_shared || (!(bits >> i & 1) && RULE_MEND_UNWRITTEN))
				continue;
			e = sync_zero(r, d->seg[seg].fd, off, end - off);
			disk_touched(d, seg);
			if (e < 0)
				return e;
		}
	}
	return 0;
}

/* Writes zeros into the holes of up to MEND_UNITS units from off on. *ret_upto: end of these units. */
static int
fill(struct disk *d, struct ring *r, uint32_t seg, uint64_t off, uint64_t *ret_upto)
{
	uint64_t per_seg = geo_seg_units(&d->geo), first = off / d->geo.unit_bytes, bits;
	uint64_t nr = per_seg - first < MEND_UNITS ? per_seg - first : MEND_UNITS;
	int e;

	*ret_upto = (first + nr) * d->geo.unit_bytes;
	bits = alloc_claim(d->alloc, seg * per_seg + first, (uint32_t)nr);
	e = fill_holes(d, r, seg, first, bits, off, *ret_upto);
	alloc_unclaim(d->alloc);
	atomic_fetch_add(&d->freed_nr, 1);
	/* An error makes the disk fail, as for other writes, except lack of space or of memory. */
	if (e < 0 && !sync_is_no_room(e) && e != -EAGAIN && e != -ENOMEM)
		disk_fail(d, "writing into holes of segment %u failed: %s", seg, strerror(-e));
	return e;
}

/* Repairs one piece. Returns 1: a piece was handled; 0, or the error of an unreadable piece: the pass has
 * ended; or -errno. */
static int
mend_piece(struct disk *d, struct ring *r)
{
	struct layout *l = &d->layout;
	struct file_odd odd;
	int e;

	for (; l->mend_seg < d->geo.seg_nr; l->mend_seg++, l->mend_off = 0) {
		if (d->seg[l->mend_seg].fd < 0 || !atomic_load(&d->seg[l->mend_seg].odd))
			continue;
		e = file_next_odd(d->seg[l->mend_seg].fd, d->geo.seg_bytes, &l->mend_off, &odd);
		if (e < 0)
			return e;
		if (e == 0 && l->mend_off < d->geo.seg_bytes)
			return 1;
		if (e == 0)
			continue;
		if (odd.is_shared) {
			odd.len = odd.len < MEND_BYTES ? odd.len : MEND_BYTES;
			l->mend_off = odd.off + odd.len;
			e = file_unshare(d->seg[l->mend_seg].fd, odd.off, odd.len);
		} else {
			e = fill(d, r, l->mend_seg, odd.off, &l->mend_off);
		}
		/* Unreadable bytes remain shared; the bytes after them may still be repaired. */
		if (!sync_is_unreadable(e))
			return e < 0 ? e : 1;
		l->mend_error = e;
		return 1;
	}
	return l->mend_error;
}

/* Repairs a piece if a repair is due. Returns true if the work continues. */
static bool
mend(struct disk *d, struct ring *r)
{
	struct layout *l = &d->layout;
	uint64_t now = clock_ns();
	int e;

	if (!atomic_load(&l->odd_nr) || disk_failed(d) || now < l->mend_ns)
		return false;
	e = mend_piece(d, r);
	if (e > 0)
		return true;
	if (e < 0 && !l->has_logged_error)
		log_warn("%s: not all segments can be rewritten now, and these go on being flushed: %s",
			 d->name, strerror(-e));
	l->has_logged_error = e < 0;
	l->mend_error = 0;
	l->passed = e == 0;
	l->mend_seg = 0;
	l->mend_off = 0;
	l->mend_ns = clock_ns() + MEND_AGAIN_NS;
	l->round_ns = 0; /* the next round examines the result */
	return true;
}

uint64_t
disk_layout_work(struct disk *d, struct ring *r)
{
	struct layout *l = &d->layout;
	uint64_t now = clock_ns();

	if (d->is_device || d->flush_all)
		return UINT64_MAX;
	if (now >= l->round_ns && look_on(d, r, now + LOOK_NS / LOOK_SHARE)) {
		tell(d);
		if (l->passed)
			atomic_store(&l->is_through, true);
		l->passed = false;
		l->seg = 0;
		l->round_ns = now + LOOK_ROUND_NS;
	}
	return mend(d, r) ? 0 : LOOK_NS;
}
