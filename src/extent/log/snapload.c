/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots at start: the newest good one becomes the index, and it says where the one before lies.  That one is
 * read where the newest is lost; and for its space only where nothing says it, or not for certain: a newer
 * superblock is lost, so that it may have been given up and written over.
 */
#include "extent/disk/rules.h"
#include "extent/log/recover_int.h"

#include "extent/disk/sync.h"
#include "base/check.h"
#include "base/crc64.h"
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

/* A chain being read: the next block is on its way while the one before is taken in. */
struct chain {
	struct replay *rp;
	const struct snap_ref *ref;
	struct snap_space *space;
	struct sync_op reading;
	uint8_t *buf[2];
	uint64_t ext; /* of the block that is on its way */
	uint32_t len;
	uint64_t crc, records;
	bool names_older; /* its blocks say where the older one lies: in snap.space[1] */
};

static int
fetch(struct chain *c, uint64_t i)
{
	struct vol *vol = c->rp->vol;
	int e;

	if (ext_nr(c->ext) == 0 || ext_unit(c->ext) + ext_nr(c->ext) > geo_units(&vol->disk.geo) ||
	    (uint64_t)ext_nr(c->ext) * vol->disk.geo.unit_bytes < c->len || c->len > FMT_BLOCK_MAX)
		return -EBADMSG;
	e = snap_space_add(c->space, &(struct extent){ ext_unit(c->ext), ext_nr(c->ext) });
	if (e == 0)
		sio_read_begin(&vol->disk, c->rp->r, &c->reading, c->ext, c->buf[i % 2], c->len);
	return e;
}

/* The extents of the older snapshot that the block names. */
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

		e = ext_ok(ext, &vol->disk.geo)
			    ? snap_space_add(&vol->snap.space[1],
					     &(struct extent){ ext_unit(ext), ext_nr(ext) })
			    : -EBADMSG;
	}
	return e;
}

/* Takes in block i, which has been asked for, and asks for the one behind it. */
static int
take_block(struct chain *c, uint64_t i, bool apply)
{
	const uint8_t *buf = c->buf[i % 2];
	struct snap_head h;
	int e = sio_read_end(&c->reading);

	if (e == -EAGAIN)
		e = sio_read(&c->rp->vol->disk, c->rp->r, &c->ext, 1, 0, c->buf[i % 2], c->len);
	if (e == 0)
		e = snap_open(buf, c->len, &h);
	if (e < 0)
		return e;
	if (h.id != c->ref->id || h.index != (uint32_t)i ||
	    memcmp(h.disk_uuid, c->rp->vol->disk.sb.disk_uuid, 16) != 0 ||
	    (h.next_ext == SNAP_LAST) != (i + 1 == c->ref->block_nr))
		return -EBADMSG;
	meter_add(c->rp->rep->meter, c->len);
	meter_estimate(c->rp->rep->meter, i + 1, c->ref->block_nr);
	c->crc = crc64_nvme(c->crc, &h.crc64, 8);
	c->records += h.record_nr;
	c->ext = h.next_ext;
	c->len = h.next_bytes;
	if (i + 1 < c->ref->block_nr)
		e = fetch(c, i + 1);
	if (e == 0)
		e = take_older(c, buf, &h);
	return e == 0 && apply ? apply_records(c->rp, buf, &h) : e;
}

/* Walks one chain.  apply: its records into the index.  *ret_names_older: it said where the older one lies. */
static int
walk(struct replay *rp, const struct snap_ref *ref, struct snap_space *space, bool apply,
     bool *ret_names_older)
{
	struct chain c = { .rp = rp,
			   .ref = ref,
			   .space = space,
			   .buf = { sync_alloc(FMT_BLOCK_MAX), sync_alloc(FMT_BLOCK_MAX) },
			   .ext = ref->head_ext,
			   .len = ref->head_bytes,
			   .names_older = apply && ref->block_nr };
	int e = c.buf[0] && c.buf[1] ? 0 : -ENOMEM;

	space->nr = 0;
	if (e == 0 && apply && !(rp->load = tree_load_new(rp->vol->tree)))
		e = -ENOMEM;
	meter_step(rp->rep->meter, METER_INDEX, 0);
	if (e == 0 && ref->block_nr)
		e = fetch(&c, 0);
	for (uint64_t i = 0; e == 0 && i < ref->block_nr; i++)
		e = take_block(&c, i, apply);
	tree_load_end(rp->load);
	rp->load = NULL;
	/* One that is on its way still writes to its buffer. */
	sync_read_end(&c.reading);
	sync_free(c.buf[0]);
	sync_free(c.buf[1]);
	if (e == 0 && (c.crc != ref->crc64 || c.records != ref->record_nr))
		e = -EBADMSG;
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

/* What is in the log comes to it. */
static int
no_memory(struct replay *rp)
{
	const struct snap_ref *snap = &rp->vol->disk.sb.snap[0];

	rp->pos = snap->begin;
	return refuse_memory(rp, -ENOSPC, snap->record_nr + replay_count(rp));
}

/* Reads the older snapshot, if there is one, for where it lies. */
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
		return refuse(rp, e, "%s: cannot read snapshot %llu: %s", vol->disk.name,
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
		/* The one before is as good, and the log goes back to it. */
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
		return refuse(rp, -ENOTRECOVERABLE, "%s: snapshot %llu is damaged, and there is no other",
			      vol->disk.name, (unsigned long long)snap[0].id);
	if (e == -ENOSPC)
		return no_memory(rp);
	if (e < 0)
		return refuse(rp, e, "%s: cannot load snapshot %llu: %s", vol->disk.name,
			      (unsigned long long)snap[0].id, strerror(-e));
	rp->version_max = rp->version_max > snap[0].version_max ? rp->version_max : snap[0].version_max;
	return named && !vol->disk.lost_super ? 0 : find_older(rp);
}
