/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A start (docs/engine.md section 3): snapshot, log, tail, damage or end, space; then, before requests are
 * served, a new epoch:
 *
 *     flush --> epoch block at the cut --> flush --> superblock (running epoch, start number) --> flush
 */
#include "extent/log/recover_int.h"

#include "store/damage.h"
#include "store/meter.h"

#include "extent/disk/rules.h"
#include "extent/disk/sync.h"
#include "extent/log/parts.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define START_NO_GAP 1000 /* more starts than are possible between two writes of the superblock */

/* ---- space ---- */

/* Marks an extent as used. v: record with the extent; NULL: the extent belongs to a snapshot. */
static int
mark(struct replay *rp, uint64_t ext, const struct rec_view *v)
{
	char name[160] = "a snapshot";
	struct extent x = { ext_unit(ext), ext_nr(ext) };
	int e;

	if (!disk_has(&rp->vol->disk, x.unit, x.units)) {
		lost_note(rp, ext);
		return 0;
	}
	/* A segment that a repair will make again has no free space before that, so nothing is marked. */
	if (!disk_is_whole(&rp->vol->disk, x.unit))
		return 0;
	e = alloc_mark(rp->vol->disk.alloc, &x, !v);
	if (e == 0)
		return 0;
	if (v)
		name_text(rp, name, sizeof name, v);
	return disk_refuse(&rp->vol->disk, -ENOTRECOVERABLE, "units %llu to %llu of %s %s",
			   (unsigned long long)ext_unit(ext),
			   (unsigned long long)ext_unit(ext) + ext_nr(ext) - 1, name,
			   e == -EEXIST ? "belong to something else, too" : "are not on this disk");
}

/* Marks a place as used. The first record in a unit marks the unit. */
static int
mark_place(struct replay *rp, uint64_t place, const struct rec_view *v)
{
	struct vol *vol = rp->vol;
	int e = pack_steps(vol, ext_unit(place)) ? 0 : mark(rp, ext_make(ext_unit(place), 1), v);
	char name[160];

	if (e == 0 && disk_is_whole(&vol->disk, ext_unit(place)))
		e = pack_make(vol, ext_unit(place), place_steps(v->size_bytes));
	if (e == -ENOMEM)
		return disk_refuse(&rp->vol->disk, e, "no memory to count what shares a unit");
	if (e != -EEXIST)
		return e;
	name_text(rp, name, sizeof name, v);
	return disk_refuse(&rp->vol->disk, -ENOTRECOVERABLE,
			   "what shares unit %llu with %s takes more than there is of it",
			   (unsigned long long)ext_unit(place), name);
}

/* Marks the space of a record as used, after its entries are loaded from its map, if it has one. */
static int
mark_record(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	int e = maps_load(cookie, key, len, r);
	struct replay *rp = cookie;
	const uint64_t *ext;
	struct map_ref map;
	struct rec_view v;

	meter_add(rp->rep->meter, 1);
	if (e == 0)
		e = maps_check_space(cookie, key, len, r);
	ext = rec_entries(r);
	rec_view_of(r, key, len, &v);
	rp->lost_nr += disk_lost(&rp->vol->disk, &v);
	if (e == 1) {
		/* maps_judge() decides about the record, after all records are loaded. */
		for (uint32_t i = 0; rec_map(r, &map) && i < map.nr; i++) {
			if (!disk_has(&rp->vol->disk, ext_unit(map.ext[i]), ext_nr(map.ext[i])))
				lost_note(rp, map.ext[i]);
		}
		return 0;
	}
	for (uint32_t i = 0; e == 0 && r->body == BODY_EXTENTS && i < r->entry_nr; i++)
		e = mark(cookie, ext[i], &v);
	if (e == 0 && r->body == BODY_PACKED)
		e = mark_place(cookie, ext[0], &v);
	if (rec_map(r, &map)) {
		for (uint32_t i = 0; e == 0 && i < map.nr; i++)
			e = mark(cookie, map.ext[i], &v);
	}
	if (e == 0 && key[0] != KEY_BUCKET)
		e = usage_start(rp->vol, rp->vol->quotas, key, len, r);
	return e;
}

static int
count_bucket(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	struct replay *rp = cookie;

	return usage_start(rp->vol, rp->vol->quotas, key, len, r);
}

/* Finds the free space, which neither a record nor one of the two snapshots names. */
static int
find_space(struct replay *rp)
{
	struct vol *vol = rp->vol;
	struct tree_stats ts;
	int e = 0;

	for (uint32_t i = 0; e == 0 && i < vol->disk.geo.seg_nr; i++) {
		if (vol->disk.seg[i].fd >= 0 && vol->disk.seg[i].fault == FILE_WHOLE)
			e = alloc_add(vol->disk.alloc, i);
	}
	if (e < 0)
		return disk_refuse(&rp->vol->disk, e, "no memory for the map of free space");
	/* Buckets come before their contents, some of whose types are lower. */
	e = each_record(vol, KEY_BUCKET, count_bucket, rp);
	tree_stats(vol->tree, &ts);
	meter_step(rp->rep->meter, METER_SPACE, ts.keys);
	if (e == 0)
		e = each_record(vol, 0, mark_record, rp);
	if (e == 0)
		e = lost_judge(rp);
	if (e == 0)
		e = maps_judge(rp);
	lost_drop_older(rp);
	for (int s = 0; s < 2; s++) {
		for (uint32_t i = 0; e == 0 && i < vol->snap.space[s].nr; i++)
			e = mark(rp, vol->snap.space[s].ext[i], NULL);
	}
	return e;
}

/* ---- chunks without an owner ---- */

/* Begins the removal of all remaining records of a removed bucket; r is one of them. */
static int
collect_of_bucket(struct replay *rp, const uint8_t *key, size_t len, const struct rec *r)
{
	const uint8_t *nul = memchr(key, 0, len);
	struct gc_job *job;

	if (rp->rep->check_only) {
		report(rp->rep, "%s: something of a bucket that was removed is left; a start collects it",
		       rp->vol->disk.name);
	}
	/* The records of the removed bucket are not newer than this one. */
	job = gc_bucket_job(key + 1, (size_t)(nul - key - 1), r->version + 1);
	if (!job)
		return -ENOMEM;
	gc_add(rp->vol, job);
	return 0;
}

static int
collect(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	struct replay *rp = cookie;
	uint32_t index;

	if (key_is_upload(key[0]) || key[0] == KEY_BATTRS)
		return has_bucket(rp->vol->tree, key, len, r) ? 0 : collect_of_bucket(rp, key, len, r);
	if (has_owner(rp->vol->tree, key, r))
		return 0;
	index = key_index(key);
	/* No PUT has begun in this epoch yet, so every chunk is of an earlier one. */
	if (rp->rep->check_only)
		report(rp->rep, "%s: a %s of %llu bytes has no owner; a start collects it",
		       rp->vol->disk.name, key[0] == KEY_PART ? "part" : "chunk",
		       (unsigned long long)r->size_bytes);
	else
		gc_orphans(rp->vol, key[0], key + 1, index, index + 1);
	return 0;
}

/* Collects all attributes, chunks, parts and uploads without an owner. */
static int
collect_all(struct replay *rp)
{
	static const enum model_kind kinds[] = { MODEL_BUCKET_ATTRS, MODEL_CHUNK, MODEL_PART, MODEL_UPLOAD };
	int e = 0;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		for (uint8_t type = 0; e == 0 && (type = disk_key_next(kinds[i], type));)
			e = each_record(rp->vol, type, collect, rp);
	}
	return e;
}

/* ---- the new epoch ---- */

/*
 * Makes room in the log for the epoch block. Starts that are killed before they serve leave an epoch block
 * each, and nothing else frees their space: if the next epoch block would not fit, two snapshots are written
 * first. They begin at the cut, and use no space of the log, so this step may be interrupted any number of
 * times.
 *
 * Without snapshots if there is a tail: its data must not be overwritten before an epoch block follows,
 * although the index may call its space free. Records stop well before this limit (block_room()), so there is
 * room after a tail. There is one exception: if the newest superblock was lost, the previous one names an
 * older snapshot whose log has been trimmed and overwritten since. This snapshot is dropped.
 */
static int
room_for_epoch(struct replay *rp)
{
	struct vol *vol = rp->vol;
	uint64_t until = vol_linear(vol, &rp->cut) + 2 * (uint64_t)vol->disk.geo.block_bytes;
	int e;

	if (until - atomic_load(&vol->snap.trim_at) <= vol->disk.geo.log_bytes)
		return 0;
	if (rp->tail && vol->disk.sb.snap[1].id) {
		report(rp->rep, "%s: the log of the older snapshot %llu was written over; it is given up",
		       vol->disk.name, (unsigned long long)vol->disk.sb.snap[1].id);
		snapshot_drop_older(vol);
	}
	if (rp->tail)
		return 0;
	vol->leader.next = rp->cut;
	e = snapshot_now(vol, rp->r);
	if (e == 0)
		e = snapshot_now(vol, rp->r);
	if (e < 0)
		return disk_refuse(&rp->vol->disk, e,
				   "the log has no room for a new epoch, and no snapshot can make some: %s",
				   disk_failed(&vol->disk) ? vol->disk.reason : strerror(-e));
	log_note("%s: starts had used up the log; it was trimmed", vol->disk.name);
	return 0;
}

/* Returns a random gap between start numbers. Two starts that both know too little, because each has lost
 * a superblock, must not take the same number. */
static uint64_t
gap(void)
{
	uint16_t more;

	return START_NO_GAP +
	       (getrandom(&more, sizeof more, 0) == (ssize_t)sizeof more ? more % START_NO_GAP : 0);
}

/*
 * Returns a start number above those of all existing records. The superblock has the last start number; a
 * lost superblock may have had a later one, of which clients may still have ids.
 */
static uint64_t
next_start_no(const struct replay *rp)
{
	const struct disk *d = &rp->vol->disk;
	uint64_t newest = rp->version_max >> FMT_COUNTER_BITS;
	uint64_t no = (newest > d->sb.start_no ? newest : d->sb.start_no) + 1;

	return rp->rep->was_damaged || d->lost_super ? no + gap() : no;
}

static int
write_epoch_block(struct replay *rp)
{
	struct vol *vol = rp->vol;
	struct block_head *h = &vol->block.head;

	*h = block_head_at(&rp->cut, BLOCK_EPOCH, BLOCK_HEAD_BYTES + rp->survivors_len, rp->survivors_nr);
	h->flushed_upto = rp->cut.seq;
	h->new_epoch = (vol->disk.sb.epoch > rp->cut.epoch ? vol->disk.sb.epoch : rp->cut.epoch) + 1;
	if (getrandom(h->new_nonce, sizeof h->new_nonce, 0) != sizeof h->new_nonce)
		return -EIO;
	if (vol_linear(vol, &rp->cut) + h->len_bytes - atomic_load(&vol->snap.trim_at) >
	    vol->disk.geo.log_bytes)
		return -ENOSPC;
	memcpy(vol->block.mem + BLOCK_HEAD_BYTES, rp->survivors, rp->survivors_len);
	block_seal(vol->block.mem, h, RULE_EPOCH_KEYED_OLD ? rp->cut.nonce : h->new_nonce);
	return sync_write(rp->r, vol->disk.log.fd, vol->block.mem, h->len_bytes, vol->disk.log_off + h->pos);
}

/* Begins an epoch. Records made from now on belong to the start with this number, which is the same for
 * all disks of a store. */
static int
begin_epoch(struct replay *rp, uint64_t start_no)
{
	struct vol *vol = rp->vol;
	int e;

	if (start_no > FMT_START_NO_MAX)
		return disk_refuse(&rp->vol->disk, -ENOTRECOVERABLE,
				   "started more often than can be counted: %llu times",
				   (unsigned long long)start_no);
	vol->start_no = vol->disk.sb.start_no = start_no;
	if (RULE_VERSION_HAS_START)
		atomic_store(&vol->version, vol->start_no << FMT_COUNTER_BITS);
	if (!RULE_EPOCH_BEFORE_SERVING) {
		vol->leader.next = rp->pos;
		return 0;
	}
	e = RULE_BEFORE_FLUSH ? disk_flush_sync(&vol->disk, rp->r) : 0;
	vol->leader.next = rp->cut;
	if (e == 0 && RULE_BEFORE_BLOCK) {
		e = write_epoch_block(rp);
		block_advance(&vol->leader.next, &vol->disk.geo, &vol->block.head);
	}
	if (e == 0 && RULE_BEFORE_BLOCK_FLUSHED)
		e = disk_flush_sync(&vol->disk, rp->r);
	if (e == 0 && RULE_BEFORE_SUPER) {
		vol->disk.sb.epoch = vol->leader.next.epoch;
		memcpy(vol->disk.sb.nonce, vol->leader.next.nonce, 16);
		e = disk_write_super(&vol->disk, rp->r);
	}
	if (e < 0)
		return disk_refuse(&rp->vol->disk, e, "cannot begin a new epoch at log offset %llu: %s",
				   (unsigned long long)rp->cut.pos, strerror(-e));
	return 0;
}

/* Overwrites bad sectors in the free part of the log, so that the log can end there later. */
static int
mend_log(struct replay *rp)
{
	struct vol *vol = rp->vol;
	uint64_t log = vol->disk.geo.log_bytes, head = vol_head(vol);
	uint64_t room = atomic_load(&vol->snap.trim_at) + log - head;
	void *zeros = rp->unreadable_nr ? sync_alloc(FMT_ALIGN) : NULL;
	int e = 0;

	for (uint32_t i = 0; zeros && i < rp->unreadable_nr; i++) {
		uint64_t pos = rp->unreadable[i];

		if ((pos + log - vol->leader.next.pos) % log < room)
			e = sync_write(rp->r, vol->disk.log.fd, zeros, FMT_ALIGN, vol->disk.log_off + pos);
		if (e < 0)
			break;
	}
	free(zeros);
	if (e < 0)
		return disk_refuse(&rp->vol->disk, e, "the log has bad sectors that cannot be written: %s",
				   strerror(-e));
	return 0;
}

/* ---- the whole recovery ---- */

/* Judges the end of the log: it is damage if the log is known to have been longer. */
static int
judge_end(struct replay *rp)
{
	struct recover_report *rep = rp->rep;
	struct vol *vol = rp->vol;
	const struct host *h = &vol->disk.host;
	char loss[64] = "An unknown number of objects";
	int found = replay_look_behind(rp, rep->repair);

	if (found < 0)
		return found;
	if (!found && rp->pos.epoch < vol->disk.sb.epoch) {
		snprintf(rp->damage, sizeof rp->damage,
			 "the log ends at offset %llu in epoch %llu, but epoch %llu had begun: it is damaged "
			 "there",
			 (unsigned long long)rp->pos.pos, (unsigned long long)rp->pos.epoch,
			 (unsigned long long)vol->disk.sb.epoch);
		found = 1;
	}
	if (!found && h->there && h->seen.log_seq >= rp->pos.seq) {
		snprintf(rp->damage, sizeof rp->damage,
			 "the log ends at offset %llu with block %llu, but block %llu was flushed: it is an "
			 "older copy, or damaged there",
			 (unsigned long long)rp->pos.pos, (unsigned long long)rp->pos.seq - 1,
			 (unsigned long long)h->seen.log_seq);
		found = 1;
	}
	if (!found || !RULE_DAMAGE_STOPS)
		return 0;
	rep->was_damaged = true;
	if (rp->behind_records)
		snprintf(loss, sizeof loss, "%llu records of objects",
			 (unsigned long long)rp->behind_records);
	report(rep, "%s: %s", vol->disk.name, rp->damage);
	if (!rep->repair)
		return refuse_with(rp, -ENOTRECOVERABLE, ADVICE_LOG_DAMAGED,
				   &(struct advice_values){ .loss = loss }, "%s: %s", vol->disk.name,
				   rp->damage);
	report(rep, "%s: cut at log offset %llu; %llu records dropped", vol->disk.name,
	       (unsigned long long)rp->cut.pos, (unsigned long long)rp->cut_records);
	if (rep->damage)
		rep->damage->sums.has_unknown = true; /* the records of the damaged block are unknown */
	return 0;
}

/* Writes up to two snapshots, which trim the log, if many starts with an epoch block each have filled it,
 * and none has served long enough for a snapshot. This is done before requests wait; a start that is
 * killed here leaves room for more (room_for_epoch()). */
static int
make_room(struct replay *rp)
{
	struct vol *vol = rp->vol;

	for (int i = 0; i < 2 && atomic_load(&vol->log_used) > vol->disk.geo.log_bytes / 100 * 85; i++) {
		int e = snapshot_now(vol, rp->r);

		if (disk_failed(&vol->disk))
			return disk_refuse(&rp->vol->disk, e, "%s", vol->disk.reason);
		if (e < 0)
			break; /* the volume can serve; PUTs wait */
	}
	return 0;
}

/* Reports that the index is larger than its limit: the start succeeds, but new objects are refused. */
static void
say_memory(struct replay *rp)
{
	uint64_t used = tree_used_bytes(rp->vol->tree);

	if (used > tree_max_bytes(rp->vol->tree))
		report(rp->rep,
		       "%s: the index takes %llu MiB, more than memory.index: new objects are refused",
		       rp->vol->disk.name, (unsigned long long)(used >> 20) + 1);
}

/* Reads snapshot and log, without a change of the disk. */
static int
read_all(struct replay *rp)
{
	const struct snap_ref *snap = rp->vol->disk.sb.snap;
	struct vol *vol = rp->vol;
	int e;

	if (RULE_START_EXTENDS)
		tree_start_begin(vol->tree);
	e = snapshots_load(rp);

	if (e < 0)
		return e;
	atomic_store(&vol->snap.begin, vol_linear(vol, &snap[0].begin));
	atomic_store(&vol->snap.trim_at,
		     vol_linear(vol, &snap[RULE_TRIM_TO_PREVIOUS && snap[1].id ? 1 : 0].begin));
	e = replay_log(rp);
	if (e == 0)
		e = verify_tail(rp);
	if (e == 0)
		e = judge_end(rp);
	if (e < 0)
		return e;
	tree_publish(vol->tree);
	tree_reclaim(vol->tree);
	tree_start_end(vol->tree);
	say_memory(rp);
	e = find_space(rp);
	if (e < 0)
		return e;
	atomic_store(&vol->version, rp->version_max);
	rp->rep->cut_records += rp->cut_records;
	atomic_store(&vol->stats.cut_records, rp->cut_records);
	return 0;
}

int
recover_begin(struct vol *vol, uint64_t start_no, struct ring *r)
{
	struct replay *rp = vol->replay;
	int e = 0;

	rp->r = r;
	if (!rp->rep->check_only) {
		if (rp->cut_records)
			log_note("%s: %llu records after the last flush were cut", vol->disk.name,
				 (unsigned long long)rp->cut_records);
		e = disk_claim(&vol->disk, rp->r, rp->cut.seq);
		if (e == 0)
			e = room_for_epoch(rp);
		if (e == 0)
			e = begin_epoch(rp, start_no);
		if (e == 0)
			e = mend_log(rp);
	}
	if (e == 0)
		e = collect_all(rp);
	if (e < 0)
		return e;
	vol->leader.flushed_seq = vol->leader.stamped = vol->leader.next.seq ? vol->leader.next.seq - 1 : 0;
	atomic_store(&vol->log_head, vol_head(vol));
	atomic_store(&vol->disk.log_seq, vol->leader.flushed_seq);
	atomic_store(&vol->log_used, vol_head(vol) - atomic_load(&vol->snap.trim_at));
	atomic_store(&vol->disk.segs_coming, disk_segments_left(&vol->disk));
	rec_hold_back(vol);
	/* If only one snapshot exists, another one is made immediately. */
	if (vol->disk.sb.snap[0].id > 1 && !vol->disk.sb.snap[1].id) {
		atomic_store(&vol->snap.one_left, true);
		atomic_store(&vol->snap.asked, true);
	}
	/* The first port whose loop turns does the pending work: it collects chunks, and makes a snapshot
	 * that is due. */
	atomic_store(&vol->want_lead, true);
	return rp->rep->check_only ? 0 : make_room(rp);
}

int
recover(struct vol *vol, struct ring *r, struct recover_report *rep, uint64_t *ret_start_no)
{
	struct replay *rp = calloc(1, sizeof *rp);
	int e = -ENOMEM;

	vol->replay = rp;
	if (!rp)
		return e;
	*rp = (struct replay){ .vol = vol, .r = r, .rep = rep };
	rp->log = (struct log_reader){
		.disk = &vol->disk, .r = r, .bytes = sync_alloc(WINDOW_BYTES), .size = WINDOW_BYTES
	};
	rp->tail_end = &rp->tail;
	rp->survivors = malloc(FMT_BLOCK_MAX);
	if (rp->log.bytes && rp->survivors)
		e = read_all(rp);
	meter_step(rep->meter, METER_WAITS, 0);
	*ret_start_no = e == 0 ? next_start_no(rp) : 0;
	return e;
}

void
recover_free(struct vol *vol)
{
	struct replay *rp = vol->replay;

	vol->replay = NULL;
	if (!rp)
		return;
	while (rp->tail) {
		struct tail_block *b = rp->tail;

		rp->tail = b->next;
		free(b);
	}
	maps_forget(rp);
	free(rp->log.bytes);
	free(rp->survivors);
	free(rp);
}
