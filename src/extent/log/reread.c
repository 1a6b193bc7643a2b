/* SPDX-License-Identifier: Apache-2.0 */
/* Reads superblocks, snapshots and log again; see reread.h. */
#include "extent/log/vol.h"

#include "extent/disk/sync.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAL_NS (2 * NS_PER_S) /* pause before another snapshot is requested, after one has failed */

enum step { IDLE, SUPERS, NEWER, OLDER, LOG };

void
reread_ask(struct vol *vol)
{
	atomic_store(&vol->reread.asked, true);
	helper_ring(&vol->helper);
}

static void found(struct vol *vol, unsigned what, int error, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void
found(struct vol *vol, unsigned what, int error, const char *fmt, ...)
{
	struct reread *rr = &vol->reread;
	char place[96];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(place, sizeof place, fmt, ap);
	va_end(ap);
	log_event(LOG_EV_DAMAGED, LOG_ERROR, "scrub: %s: %s %s%s; it is rewritten", vol->disk.name, place,
		  error == -EBADMSG ? "is damaged" : "cannot be read: ",
		  error == -EBADMSG ? "" : strerror(-error));
	atomic_fetch_add(&rr->found, 1);
	atomic_fetch_or(&rr->bad, what);
	if (what != REREAD_SUPER)
		rr->heal_id = vol->disk.sb.snap[0].id;
	rr->heal_seen = 0;
}

/* ---- superblocks ---- */

static void
read_supers(struct vol *vol, struct ring *r)
{
	struct reread *rr = &vol->reread;
	bool healed = true;

	for (int copy = 0; copy < 2; copy++) {
		int e = disk_check_super(&vol->disk, r, copy);

		if (!sync_is_lost(e))
			continue;
		found(vol, REREAD_SUPER, e, "superblock copy %d", copy);
		e = disk_mend_super(&vol->disk, r, copy);
		if (e == 0)
			e = disk_check_super(&vol->disk, r, copy);
		if (e < 0)
			log_error("scrub: %s: superblock copy %d cannot be rewritten: %s", vol->disk.name,
				  copy, e == -EBADMSG ? "it is not what was written" : strerror(-e));
		else
			log_note("scrub: %s: superblock copy %d is whole again", vol->disk.name, copy);
		healed = healed && e == 0;
	}
	if (healed)
		atomic_fetch_and(&rr->bad, ~REREAD_SUPER);
}

/* ---- snapshots ---- */

static const struct snap_ref *
ref_of(const struct vol *vol, int step)
{
	return &vol->disk.sb.snap[step == NEWER ? 0 : 1];
}

/* Reads the next block of a snapshot. Returns 1: more blocks follow; 0: the end, and the snapshot is
 * intact; or -errno. */
static int
chain_block(struct vol *vol, struct ring *r)
{
	struct reread *rr = &vol->reread;
	struct snap_chain *c = &rr->chain;
	struct snap_head h;
	int e;

	if (c->index == c->ref->block_nr)
		return snap_chain_end(c);
	e = snap_chain_ok(c, &vol->disk.geo);
	if (e == 0)
		e = sio_read(&vol->disk, r, &c->ext, 1, 0, rr->buf, c->len);
	if (e == 0)
		e = snap_chain_take(c, &vol->disk.sb, rr->buf, &h);
	return e < 0 ? e : 1;
}

/* ---- the log ---- */

static void
log_begin(struct vol *vol)
{
	const struct snap_ref *snap = vol->disk.sb.snap;
	struct reread *rr = &vol->reread;

	rr->pos = snap[snap[1].id ? 1 : 0].begin;
	rr->log_end = atomic_load(&vol->log_head);
	rr->log = (struct log_reader){
		.disk = &vol->disk, .bytes = rr->buf, .size = FMT_BLOCK_MAX, .at = UINT64_MAX
	};
}

/* Reads blocks until the window moves. Returns 1: more blocks follow; 0: the end, and the blocks are
 * intact; or -errno. */
static int
log_piece(struct vol *vol, struct ring *r)
{
	struct reread *rr = &vol->reread;
	struct block_head h;
	const uint8_t *bytes;
	uint64_t was;
	int e;

	rr->log.r = r;
	do {
		if (vol_linear(vol, &rr->pos) >= rr->log_end)
			return 0;
		was = rr->log.at;
		e = log_next(&rr->log, &rr->pos, &h, &bytes);
		if (e < 0)
			return e == -ENOENT ? -EBADMSG : e;
		block_advance(&rr->pos, &vol->disk.geo, &h);
	} while (rr->log.at == was);
	return 1;
}

/* ---- a reading ---- */

static void
step_begin(struct vol *vol, int step)
{
	struct reread *rr = &vol->reread;

	rr->step = step;
	rr->gen = vol->disk.sb.gen;
	if (step == NEWER || step == OLDER)
		snap_chain_begin(&rr->chain, ref_of(vol, step));
	else if (step == LOG)
		log_begin(vol);
}

static void
reading_ends(struct vol *vol)
{
	struct reread *rr = &vol->reread;

	rr->step = IDLE;
	free(rr->buf);
	rr->buf = NULL;
}

/* Begins the step again if a snapshot was made in the meantime: the space that it freed may be
 * overwritten, and its own blocks have been read back. */
static void
look_where(struct vol *vol)
{
	struct reread *rr = &vol->reread;

	if (rr->gen == vol->disk.sb.gen)
		return;
	if (rr->step == NEWER || rr->step == OLDER ||
	    vol_linear(vol, &rr->pos) < atomic_load(&vol->snap.trim_at))
		step_begin(vol, rr->step);
	rr->gen = vol->disk.sb.gen;
}

static void
read_on(struct vol *vol, struct ring *r)
{
	struct reread *rr = &vol->reread;
	int e = 0;

	look_where(vol);
	switch (rr->step) {
	case SUPERS:
		read_supers(vol, r);
		break;
	case NEWER:
	case OLDER:
		e = chain_block(vol, r);
		/* If a new snapshot has made this one the older one, its damage is not reported again. */
		if (sync_is_lost(e) && ref_of(vol, rr->step)->id != rr->bad_snapshot) {
			rr->bad_snapshot = ref_of(vol, rr->step)->id;
			found(vol, REREAD_SNAPSHOT, e, "snapshot %llu, block %llu,",
			      (unsigned long long)rr->bad_snapshot, (unsigned long long)rr->chain.index);
		}
		break;
	case LOG:
		e = log_piece(vol, r);
		if (sync_is_lost(e))
			found(vol, REREAD_LOG, e, "the log at offset %llu", (unsigned long long)rr->pos.pos);
		break;
	}
	/* After another error the same piece is read once more. */
	if (e == 1 || (e < 0 && !sync_is_lost(e)))
		return;
	if (rr->step == LOG) {
		atomic_fetch_add(&rr->ended, 1);
		reading_ends(vol);
	} else {
		step_begin(vol, rr->step + 1);
	}
}

/* Requests snapshots until two are newer than the damage: then the damaged space is no longer used.
 * Returns the time until the next call. */
static uint64_t
heal(struct vol *vol)
{
	struct reread *rr = &vol->reread;
	const struct snap_ref *snap = vol->disk.sb.snap;

	if (!rr->heal_id)
		return UINT64_MAX;
	if (snap[1].id > rr->heal_id) {
		rr->heal_id = 0;
		atomic_fetch_and(&rr->bad, REREAD_SUPER);
		log_note("scrub: %s: snapshots %llu and %llu have replaced the damaged parts", vol->disk.name,
			 (unsigned long long)snap[1].id, (unsigned long long)snap[0].id);
		return UINT64_MAX;
	}
	/* The second one immediately after the first; after a failed one, later. */
	if (atomic_load(&vol->snap.state) != SNAP_WANTED &&
	    (rr->heal_seen != snap[0].id || clock_ns() >= rr->heal_ns)) {
		rr->heal_seen = snap[0].id;
		rr->heal_ns = clock_ns() + HEAL_NS;
		atomic_store(&vol->snap.asked, true);
		vol_wake(vol);
	}
	return HEAL_NS / 2;
}

uint64_t
reread_work(struct vol *vol, struct ring *r)
{
	struct reread *rr = &vol->reread;

	if (disk_failed(&vol->disk)) {
		reading_ends(vol);
		return UINT64_MAX;
	}
	if (rr->step == IDLE && !rr->heal_id && atomic_exchange(&rr->asked, false)) {
		rr->buf = sync_alloc(FMT_BLOCK_MAX);
		if (!rr->buf)
			return UINT64_MAX;
		step_begin(vol, SUPERS);
	}
	if (rr->step == IDLE)
		return heal(vol);
	read_on(vol, r);
	return 0;
}
