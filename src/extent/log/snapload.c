/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots at a start. The newest intact snapshot becomes the index, and names the blocks of the older one.
 * The older one is read as the index if the newest is lost. It is read only for its space if its blocks are
 * not named, or not reliably: after the loss of a newer superblock, which may have dropped this snapshot, its
 * space may have been overwritten.
 */
#include "extent/disk/rules.h"
#include "extent/log/recover_int.h"

#include "extent/disk/sync.h"
#include "store/meter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
apply_records(struct replay *rp, const uint8_t *buf, const struct snap_head *h)
{
	uint32_t at = SNAP_HEAD_BYTES;

	for (uint32_t i = 0; i < h->record_nr; i++) {
		struct rec_view v;
		int n = rec_decode(buf + at, h->used_bytes - at, &rp->vol->disk.geo, &v), e;

		if (n < 0 || v.op != REC_PUT)
			return -EBADMSG;
		e = apply_record(rp, &v);
		if (e < 0)
			return e;
		at += (uint32_t)n;
	}
	return 0;
}

/* A chain that is being read: the next block is read while the previous one is applied. */
struct chain {
	struct replay *rp;
	struct snap_chain at; /* its next block is being read */
	struct snap_space *space;
	struct sync_op reading;
	uint8_t *buf[2];
	bool names_older; /* its blocks name those of the older snapshot, which are added to snap.space[1] */
};

static int
fetch(struct chain *c)
{
	struct vol *vol = c->rp->vol;
	int e = snap_chain_ok(&c->at, &vol->disk.geo);

	if (e == 0)
		e = snap_space_add(c->space, c->at.ext);
	if (e == 0)
		sio_read_begin(&vol->disk, c->rp->r, &c->reading, c->at.ext, c->buf[c->at.index % 2],
			       c->at.len);
	return e;
}

/* Adds the extents of the older snapshot that the block names. */
static int
take_older(struct chain *c, const uint8_t *buf, const struct snap_head *h)
{
	struct vol *vol = c->rp->vol;
	int e = 0;

	if (!c->names_older || h->older_id != vol->disk.sb.snap[1].id) {
		c->names_older = false;
		return 0;
	}
	for (uint32_t i = 0; e == 0 && i < h->older_nr; i++) {
		uint64_t ext = snap_older(buf, h, i);

		e = ext_ok(ext, &vol->disk.geo) ? snap_space_add(&vol->snap.space[1], ext) : -EBADMSG;
	}
	return e;
}

/* Takes the block that was requested, and requests the next one. */
static int
take_block(struct chain *c, bool apply)
{
	uint8_t *buf = c->buf[c->at.index % 2];
	struct disk *d = &c->rp->vol->disk;
	uint32_t len = c->at.len;
	struct snap_head h;
	int e = sio_read_end(&c->reading);

	if (e == -EAGAIN)
		e = sio_read(d, c->rp->r, &c->at.ext, 1, 0, buf, len);
	if (e == 0)
		e = snap_chain_take(&c->at, &d->sb, buf, &h);
	if (e < 0)
		return e;
	meter_add(c->rp->rep->meter, len);
	meter_estimate(c->rp->rep->meter, c->at.index, c->at.ref->block_nr);
	if (c->at.index < c->at.ref->block_nr)
		e = fetch(c);
	if (e == 0)
		e = take_older(c, buf, &h);
	return e == 0 && apply ? apply_records(c->rp, buf, &h) : e;
}

/* Reads a chain. apply: its records are added to the index. *ret_names_older: its blocks named those of
 * the older snapshot. */
static int
walk(struct replay *rp, const struct snap_ref *ref, struct snap_space *space, bool apply,
     bool *ret_names_older)
{
	struct chain c = { .rp = rp,
			   .space = space,
			   .buf = { sync_alloc(FMT_BLOCK_MAX), sync_alloc(FMT_BLOCK_MAX) },
			   .names_older = apply && ref->block_nr };
	int e = c.buf[0] && c.buf[1] ? 0 : -ENOMEM;

	snap_chain_begin(&c.at, ref);
	space->nr = 0;
	if (e == 0 && apply && !(rp->load = tree_load_new(rp->vol->tree)))
		e = -ENOMEM;
	meter_step(rp->rep->meter, METER_INDEX, 0);
	if (e == 0 && ref->block_nr)
		e = fetch(&c);
	while (e == 0 && c.at.index < ref->block_nr)
		e = take_block(&c, apply);
	tree_load_end(rp->load);
	rp->load = NULL;
	/* A read in flight still writes to its buffer. */
	sync_read_end(&c.reading);
	free(c.buf[0]);
	free(c.buf[1]);
	if (e == 0)
		e = snap_chain_end(&c.at);
	*ret_names_older = e == 0 && c.names_older;
	return e;
}

static int
empty_index(struct replay *rp)
{
	struct vol *vol = rp->vol;
	int e;

	records_drop_outside(vol);
	tree_free(vol->tree);
	vol->tree = NULL;
	vol->leader.rec_bytes = vol->leader.large_bytes = 0;
	atomic_store(&vol->stats.objects, 0);
	pack_forget(vol);
	rp->applied = 0;
	e = tree_new(vol->index_bytes, vol->quiesce, &vol->tree);
	if (e == 0 && RULE_START_EXTENDS)
		tree_start_begin(vol->tree);
	return e;
}

/* Refuses a start because of memory; the memory that is needed includes the records of the log. */
static int
no_memory(struct replay *rp)
{
	const struct snap_ref *snap = &rp->vol->disk.sb.snap[0];

	rp->pos = snap->begin;
	return refuse_memory(rp, -ENOSPC, snap->record_nr + replay_count(rp));
}

/* Reads the older snapshot, if there is one, to find its space. */
static int
find_older(struct replay *rp)
{
	struct vol *vol = rp->vol;
	struct snap_ref *older = &vol->disk.sb.snap[1];
	bool named;
	int e;

	vol->snap.space[1].nr = 0;
	e = older->id ? walk(rp, older, &vol->snap.space[1], false, &named) : 0;
	if (e == 0)
		return 0;
	if (!sync_is_lost(e))
		return disk_refuse(&rp->vol->disk, e, "cannot read snapshot %llu: %s",
				   (unsigned long long)older->id, strerror(-e));
	report(rp->rep, "%s: the older snapshot %llu %s and is given up", vol->disk.name,
	       (unsigned long long)older->id, e == -EBADMSG ? "is damaged" : "cannot be read");
	*older = (struct snap_ref){ 0 };
	vol->snap.space[1].nr = 0;
	return 0;
}

int
snapshots_load(struct replay *rp)
{
	struct vol *vol = rp->vol;
	struct snap_ref *snap = vol->disk.sb.snap;
	bool named;
	int e = walk(rp, &snap[0], &vol->snap.space[0], true, &named);

	if (sync_is_lost(e) && snap[1].id) {
		/* The older snapshot is as good, and the log reaches back to it. */
		report(rp->rep, "%s: snapshot %llu %s; starting from the one before", vol->disk.name,
		       (unsigned long long)snap[0].id, e == -EBADMSG ? "is damaged" : "cannot be read");
		e = empty_index(rp);
		snap[0] = snap[1];
		snap[1] = (struct snap_ref){ 0 };
		vol->snap.space[1].nr = 0;
		if (e == 0)
			e = walk(rp, &snap[0], &vol->snap.space[0], true, &named);
	}
	if (e == -EBADMSG)
		return disk_refuse(&rp->vol->disk, -ENOTRECOVERABLE,
				   "snapshot %llu is damaged, and there is no other",
				   (unsigned long long)snap[0].id);
	if (e == -ENOSPC)
		return no_memory(rp);
	if (e < 0)
		return disk_refuse(&rp->vol->disk, e, "cannot load snapshot %llu: %s",
				   (unsigned long long)snap[0].id, strerror(-e));
	rp->version_max = rp->version_max > snap[0].version_max ? rp->version_max : snap[0].version_max;
	return named && !vol->disk.lost_super ? 0 : find_older(rp);
}
