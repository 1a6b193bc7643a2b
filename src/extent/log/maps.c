/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps at a start: lists of extents or parts that are too long for their record. If a map is lost, the space
 * of its record is unknown. A record without an owner is then dropped; otherwise the start fails, and a
 * repair drops the record.
 *
 * A record whose removal was cut by a repair is dropped as well, if a snapshot uses its space.
 *
 * The epoch block has a removal for each dropped record, so that the record does not come back after requests
 * are served: its space is free, and may be overwritten.
 */
#include "extent/log/recover_int.h"

#include "extent/disk/sync.h"
#include "extent/log/parts.h"
#include "store/damage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lost_map {
	struct lost_map *next;
	int error;
	uint16_t len;
	uint8_t key[];
};

static int
note(struct replay *rp, const uint8_t *key, size_t len, int error)
{
	struct lost_map *lost = malloc(sizeof *lost + len);

	if (!lost)
		return disk_refuse(&rp->vol->disk, -ENOMEM, "no memory for the list of damage");
	lost->next = rp->lost;
	lost->error = error;
	lost->len = (uint16_t)len;
	memcpy(lost->key, key, len);
	rp->lost = lost;
	return 1;
}

int
maps_load(struct replay *rp, const uint8_t *key, size_t len, struct rec *r)
{
	struct rec_view v;
	void *entries;
	int e;

	if (!(r->flags & REC_MAPPED))
		return 0;
	rec_view_of(r, key, len, &v);
	e = verify_map(&rp->vol->disk, rp->r, &v, &entries);
	if (e == 0) {
		e = rec_load_entries(r, entries);
		free(entries);
	}
	if (e == 0)
		return 0;
	if (!sync_is_lost(e))
		return disk_refuse(&rp->vol->disk, e, "a map cannot be read: %s", strerror(-e));
	return note(rp, key, len, e);
}

static bool
is_of_snapshot(const struct vol *vol, uint64_t ext)
{
	for (int s = 0; s < 2; s++) {
		for (uint32_t i = 0; i < vol->snap.space[s].nr; i++) {
			uint64_t x = vol->snap.space[s].ext[i];

			if (ext_unit(ext) < ext_unit(x) + ext_nr(x) &&
			    ext_unit(x) < ext_unit(ext) + ext_nr(ext))
				return true;
		}
	}
	return false;
}

int
maps_check_space(struct replay *rp, const uint8_t *key, size_t len, struct rec *r)
{
	const uint64_t *ext = rec_entries(r);
	struct map_ref map;

	if (!rp->rep->repair || !rp->rep->was_damaged)
		return 0;
	for (uint32_t i = 0; r->body == BODY_EXTENTS && i < r->entry_nr; i++) {
		if (is_of_snapshot(rp->vol, ext[i]))
			return note(rp, key, len, -EEXIST);
	}
	if (r->body == BODY_PACKED && is_of_snapshot(rp->vol, ext_make(ext_unit(ext[0]), 1)))
		return note(rp, key, len, -EEXIST);
	for (uint32_t i = 0; rec_map(r, &map) && i < map.nr; i++) {
		if (is_of_snapshot(rp->vol, map.ext[i]))
			return note(rp, key, len, -EEXIST);
	}
	return 0;
}

void
maps_place(struct replay *rp, const uint64_t *ext, uint32_t nr, uint64_t len_bytes,
	   char ret_text[DISK_PLACE_BYTES])
{
	struct disk *d = &rp->vol->disk;
	uint64_t unit = d->geo.unit_bytes, at = 0, off = 0, per_seg = geo_seg_units(&d->geo), first;
	void *page = sync_alloc(FMT_ALIGN);
	uint32_t i = 0;

	for (uint64_t o = 0; page && o < len_bytes; o += FMT_ALIGN) {
		if (sync_is_unreadable(sio_read(d, rp->r, ext, nr, o, page, FMT_ALIGN))) {
			off = o;
			break;
		}
	}
	free(page);
	while (i + 1 < nr && at + ext_nr(ext[i]) * unit <= off)
		at += ext_nr(ext[i++]) * unit;
	first = ext_unit(ext[i]) + (off - at) / unit;
	disk_place(d, (int64_t)(first / per_seg), first % per_seg * unit + (off - at) % unit, ret_text);
}

/* Removes a record from the index, and adds its removal to the epoch block. */
static int
drop(struct replay *rp, const struct lost_map *lost)
{
	struct rec_view v = {
		.op = REC_DELETE, .key = lost->key, .key_len = lost->len, .version = rp->version_max + 1
	};
	size_t n = rec_encoded_bytes(&v);
	int e;

	if (BLOCK_HEAD_BYTES + rp->survivors_len + n > rp->vol->disk.geo.block_bytes)
		return disk_refuse(
			&rp->vol->disk, -ENOTRECOVERABLE,
			"more maps are lost than can be dropped at once, put the disk back from a copy");
	rec_encode(rp->survivors + rp->survivors_len, &v);
	rp->survivors_len += (uint32_t)n;
	rp->survivors_nr++;
	e = apply_record(rp, &v);
	return e < 0 ? refuse_memory(rp, e, 0) : 0;
}

static int
judge(struct replay *rp, const struct lost_map *lost)
{
	struct rec *r = tree_find(rp->vol->tree, lost->key, lost->len);
	const bool is_object = key_is_object(lost->key[0]);
	const char *how = lost->error == -EBADMSG ? "is damaged" : "cannot be read";
	char name[OWNER_TEXT], where[DISK_PLACE_BYTES], line[OWNER_TEXT + DISK_PLACE_BYTES + 100];
	struct rec_view v;
	struct map_ref map;

	rec_view_of(r, lost->key, lost->len, &v);
	name_text(rp, name, sizeof name, &v);
	if (lost->error == -EEXIST) {
		report(rp->rep,
		       "%s: drops %s (version %llu), whose removal was cut: a snapshot has its space",
		       rp->vol->disk.name, name, (unsigned long long)r->version);
		return drop(rp, lost);
	}
	rec_map(r, &map);
	maps_place(rp, map.ext, map.nr, map_image_bytes(&rp->vol->disk.geo, map.len_bytes), where);
	if (!is_object && !has_owner(rp->vol->tree, lost->key, r)) {
		report(rp->rep, "%s %s: the map of a record without an owner; it is dropped", where, how);
		return drop(rp, lost);
	}
	if (!rp->rep->repair)
		return refuse_with(
			rp, lost->error == -EBADMSG ? -ENOTRECOVERABLE : lost->error, ADVICE_MAP_DAMAGED,
			&(struct advice_values){ .loss = is_object ? "1 object" : "1 part of an object" },
			"%s %s: the map of %s", where, how, name);
	rp->rep->was_damaged = true;
	snprintf(line, sizeof line, "drops %s (version %llu), whose map at %s %s", name,
		 (unsigned long long)r->version, where, how);
	if (!report_dropped(rp, &v, line) && rp->rep->damage)
		rp->rep->damage->sums.has_unknown = true;
	return drop(rp, lost);
}

int
maps_judge(struct replay *rp)
{
	int e = 0;

	for (const struct lost_map *lost = rp->lost; lost && e == 0; lost = lost->next)
		e = judge(rp, lost);
	if (e == 0 && rp->lost) {
		tree_publish(rp->vol->tree);
		tree_reclaim(rp->vol->tree);
	}
	return e;
}

void
maps_forget(struct replay *rp)
{
	while (rp->lost) {
		struct lost_map *lost = rp->lost;

		rp->lost = lost->next;
		free(lost);
	}
}
