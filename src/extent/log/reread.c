/* SPDX-License-Identifier: Apache-2.0 */
/* Superblocks, snapshots and log, read again, see reread.h. */
#include "extent/log/vol.h"

#include "extent/disk/sync.h"
#include "base/clock.h"
#include "base/crc64.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HEAL_NS (2 * NS_PER_S) /* until another snapshot is asked for, where one failed */

enum step { IDLE, SUPERS, NEWER, OLDER, LOG };

void
reread_ask(struct vol *vol)
{
	atomic_store(&vol->reread.asked, true);
	helper_ring(&vol->helper);
}

void
reread_fini(struct vol *vol)
{
	sync_free(vol->reread.buf);
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

static void
chain_begin(struct vol *vol)
{
	struct reread *rr = &vol->reread;
	const struct snap_ref *ref = ref_of(vol, rr->step);

	rr->ext = ref->head_ext;
	rr->len = ref->head_bytes;
	rr->index = rr->crc64 = 0;
}

/* 1: there is more; 0: that was the last, and all is well. */
static int
chain_block(struct vol *vol, struct ring *r)
{
	struct reread *rr = &vol->reread;
	const struct snap_ref *ref = ref_of(vol, rr->step);
	struct snap_head h;
	int e;

	if (ref->id == 0 || rr->index == ref->block_nr)
		return rr->crc64 == ref->crc64 || ref->id == 0 ? 0 : -EBADMSG;
	if (!ext_ok(rr->ext, &vol->disk.geo) || rr->len > FMT_BLOCK_MAX ||
	    (uint64_t)ext_nr(rr->ext) * vol->disk.geo.unit_bytes < rr->len)
		return -EBADMSG;
	e = sio_read(&vol->disk, r, &rr->ext, 1, 0, rr->buf, rr->len);
	if (e == 0)
		e = snap_open(rr->buf, rr->len, &h);
	if (e == 0 && (h.id != ref->id || h.index != (uint32_t)rr->index))
		e = -EBADMSG;
	if (e < 0)
		return e;
	rr->crc64 = crc64_nvme(rr->crc64, &h.crc64, 8);
	rr->ext = h.next_ext;
	rr->len = h.next_bytes;
	rr->index++;
	return 1;
}

/* ---- the log ---- */

static void
log_begin(struct vol *vol)
{
	const struct snap_ref *snap = vol->disk.sb.snap;

	vol->reread.pos = snap[snap[1].id ? 1 : 0].begin;
	vol->reread.log_end = atomic_load(&vol->log_head);
}

/* Is there, in memory, the block that is expected?  Goes on behind it; how long it is. */
static int
take_block(struct vol *vol, const uint8_t *bytes, size_t len)
{
	struct log_pos *at = &vol->reread.pos;
	struct block_head h;
	int e = block_open(bytes, len, at->nonce, &h);

	if (e < 0 || h.epoch != at->epoch || h.seq != at->seq || h.lap != at->lap || h.pos != at->pos ||
	    h.prev_crc != at->prev_crc)
		return -EBADMSG;
	block_advance(at, &vol->disk.geo, &h);
	return (int)h.len_bytes;
}

static int
read_log(struct vol *vol, struct ring *r, uint64_t pos, size_t len)
{
	return sync_read(r, vol->disk.log.fd, vol->reread.buf, len, vol->disk.log_off + pos);
}

/* One block alone: something near it cannot be read. */
static int
read_block(struct vol *vol, struct ring *r)
{
	uint64_t pos = vol->reread.pos.pos;
	uint32_t len;
	int e = read_log(vol, r, pos, FMT_ALIGN);

	if (e < 0)
		return e;
	len = block_peek(vol->reread.buf);
	if (len == 0 || len % FMT_ALIGN || len > vol->disk.geo.block_bytes)
		return -EBADMSG;
	e = read_log(vol, r, pos, len);
	return e < 0 ? e : take_block(vol, vol->reread.buf, len);
}

/* 1: there is more; 0: that was the last, and all is well. */
static int
log_piece(struct vol *vol, struct ring *r)
{
	struct reread *rr = &vol->reread;
	const struct log_pos *at = &rr->pos;
	uint64_t begin = at->pos, lap = at->lap, left = vol->disk.geo.log_bytes - begin;
	size_t len = left < FMT_BLOCK_MAX ? left : FMT_BLOCK_MAX;
	int e;

	if (vol_linear(vol, lap, begin) >= rr->log_end)
		return 0;
	e = read_log(vol, r, begin, len);
	if (sync_is_unreadable(e)) {
		e = read_block(vol, r);
		return e < 0 ? e : 1;
	}
	if (e < 0)
		return e;
	while (at->lap == lap && vol_linear(vol, lap, at->pos) < rr->log_end && at->pos - begin < len) {
		const uint8_t *bytes = rr->buf + (at->pos - begin);
		size_t there = len - (at->pos - begin);
		uint32_t need = block_peek(bytes);

		/* The rest of it comes with the next piece. */
		if (need > there && at->pos != begin && need <= vol->disk.geo.block_bytes)
			break;
		e = take_block(vol, bytes, there);
		if (e < 0)
			return e;
	}
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
		chain_begin(vol);
	else if (step == LOG)
		log_begin(vol);
}

static void
reading_ends(struct vol *vol)
{
	struct reread *rr = &vol->reread;

	rr->step = IDLE;
	sync_free(rr->buf);
	rr->buf = NULL;
	atomic_store(&rr->runs, false);
}

/* A snapshot was made meanwhile: what it left behind may be written to, and what it wrote was read back. */
static void
look_where(struct vol *vol)
{
	struct reread *rr = &vol->reread;

	if (rr->gen == vol->disk.sb.gen)
		return;
	if (rr->step == NEWER || rr->step == OLDER ||
	    vol_linear(vol, rr->pos.lap, rr->pos.pos) < atomic_load(&vol->snap.trim_at))
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
		/* Another one came meanwhile, and this is the older one now. */
		if (sync_is_lost(e) && ref_of(vol, rr->step)->id != rr->bad_snapshot) {
			rr->bad_snapshot = ref_of(vol, rr->step)->id;
			found(vol, REREAD_SNAPSHOT, e, "snapshot %llu, block %llu,",
			      (unsigned long long)rr->bad_snapshot, (unsigned long long)rr->index);
		}
		break;
	case LOG:
		e = log_piece(vol, r);
		if (sync_is_lost(e))
			found(vol, REREAD_LOG, e, "the log at offset %llu", (unsigned long long)rr->pos.pos);
		break;
	}
	/* What has passed is tried once more. */
	if (e == 1 || (e < 0 && !sync_is_lost(e)))
		return;
	if (rr->step == LOG) {
		atomic_fetch_add(&rr->ended, 1);
		reading_ends(vol);
	} else {
		step_begin(vol, rr->step + 1);
	}
}

/* Two snapshots behind the one that was newest leave behind what is damaged. */
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
	/* At once behind the one before; after one that failed, later. */
	if (atomic_load(&vol->snap.state) != SNAP_WANTED &&
	    (rr->heal_seen != snap[0].id || clock_ns() >= rr->heal_ns)) {
		rr->heal_seen = snap[0].id;
		rr->heal_ns = clock_ns() + HEAL_NS;
		atomic_store(&vol->snap.asked, true);
		atomic_store(&vol->want_lead, true);
		vol->kick(vol->above, NULL);
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
		atomic_store(&rr->runs, true);
		step_begin(vol, SUPERS);
	}
	if (rr->step == IDLE)
		return heal(vol);
	read_on(vol, r);
	return 0;
}
