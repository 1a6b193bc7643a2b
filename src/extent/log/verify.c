/* SPDX-License-Identifier: Apache-2.0 */
/* Compares data with its record: the tail of the log at a start, and all records in fsck. */
#include "extent/log/recover_int.h"

#include "store/damage.h"

#include "extent/disk/rules.h"
#include "extent/disk/sync.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERIFY_BYTES
#define VERIFY_BYTES ((size_t)4 << 20) /* a multiple of the granule */
#endif

int
verify_map(struct disk *d, struct ring *r, const struct rec_view *v, void **ret_entries)
{
	size_t image = map_image_bytes(&d->geo, v->map.len_bytes);
	void *buf = sync_alloc(image);
	int e = buf ? sio_read(d, r, v->map.ext, v->map.nr, 0, buf, image) : -ENOMEM;

	if (e == 0)
		map_take_in(buf, buf, v->map.len_bytes, &d->geo);
	if (e == 0 && crc64_nvme(0, buf, v->map.len_bytes) != v->map.crc64)
		e = -EBADMSG;
	if (e == 0)
		e = rec_check_entries(v, buf, &d->geo);
	if (e < 0) {
		free(buf);
		return e;
	}
	*ret_entries = buf;
	return 0;
}

/* Reads the CRC block, and checks it against the record. */
static int
read_crc_block(struct disk *d, struct ring *r, const struct rec_view *v, const uint64_t *ext,
	       uint64_t *crc_block)
{
	int e;

	if (granules(v->size_bytes) == 1) {
		crc_block[0] = v->crc64;
		return 0;
	}
	e = sio_read(d, r, ext, v->entry_nr, align_up(v->size_bytes, FMT_ALIGN), crc_block,
		     align_up(crc_block_bytes(v->size_bytes), FMT_ALIGN));
	if (e < 0)
		return e;
	return crc_block_fits(crc_block, v->size_bytes, v->crc64) ? 0 : -EBADMSG;
}

bool
crc_block_fits(const uint64_t *crc, uint64_t size_bytes, uint64_t crc64)
{
	uint32_t nr = granules(size_bytes);
	uint64_t all = crc[0];

	for (uint32_t i = 1; i < nr; i++) {
		uint64_t len = i + 1 < nr ? STORE_GRANULE : size_bytes - (uint64_t)i * STORE_GRANULE;

		all = crc64_nvme_combine(all, crc[i], len);
	}
	return all == crc64;
}

int
check_granules(const void *bytes, uint64_t len, const uint64_t *crc)
{
	for (const char *at = bytes; len; crc++) {
		uint64_t n = len < STORE_GRANULE ? len : STORE_GRANULE;

		if (crc64_nvme(0, at, n) != *crc)
			return -EBADMSG;
		at += n;
		len -= n;
	}
	return 0;
}

static int
verify_packed(struct disk *d, struct ring *r, const struct rec_view *v)
{
	struct place_pages pg = place_pages(*(const uint64_t *)v->entries, v->size_bytes);
	uint8_t *buf = sync_alloc(pg.len);
	int e = buf ? sio_read(d, r, &pg.ext, 1, pg.off, buf, pg.len) : -ENOMEM;

	if (e == 0 && crc64_nvme(0, buf + pg.skew, v->size_bytes) != v->crc64)
		e = -EBADMSG;
	free(buf);
	return e;
}

int
verify_data(struct disk *d, struct ring *r, const struct rec_view *v, const uint64_t *entries)
{
	/* No more memory than needed: most objects are small, and there are millions. */
	uint64_t most = v->size_bytes < VERIFY_BYTES ? v->size_bytes : VERIFY_BYTES;
	uint8_t *buf;
	uint64_t *crc_block;
	void *mapped = NULL;
	int e = 0;

	if (v->body == BODY_INLINE)
		return crc64_nvme(0, v->inline_data, v->inline_len) == v->crc64 ? 0 : -EBADMSG;
	if (v->body == BODY_PACKED)
		return verify_packed(d, r, v);
	if (v->body != BODY_EXTENTS)
		return 0;
	if (!entries) {
		e = verify_map(d, r, v, &mapped);
		if (e < 0)
			return e;
		entries = mapped;
	}
	buf = sync_alloc(most);
	/* The CRC of a single granule is that of the record. */
	crc_block = sync_alloc(granules(v->size_bytes) * sizeof *crc_block);
	if (!buf || !crc_block)
		e = -ENOMEM;
	if (e == 0)
		e = read_crc_block(d, r, v, entries, crc_block);
	for (uint64_t off = 0; e == 0 && off < v->size_bytes; off += VERIFY_BYTES) {
		uint64_t n = v->size_bytes - off < VERIFY_BYTES ? v->size_bytes - off : VERIFY_BYTES;

		e = sio_read(d, r, entries, v->entry_nr, off, buf, align_up(n, FMT_ALIGN));
		if (e == 0)
			e = check_granules(buf, n, crc_block + off / STORE_GRANULE);
	}
	free(buf);
	free(crc_block);
	free(mapped);
	return e;
}

/* ---- the tail ---- */

static int
verify_record(struct replay *rp, const struct rec_view *v)
{
	if (!RULE_TAIL_VERIFIED || v->op != REC_PUT || v->flags & REC_FLUSHED)
		return 0;
	/* The bytes are lost with their file, not because of a missing flush. */
	if (disk_lost(&rp->vol->disk, v))
		return 0;
	return verify_data(&rp->vol->disk, rp->r, v, v->entries);
}

/* Writes the location of the unreadable byte in the record's data, CRC block or map. */
static void
data_place(struct replay *rp, const struct rec_view *v, char ret_text[DISK_PLACE_BYTES])
{
	const struct disk *d = &rp->vol->disk;
	const uint64_t *entries = v->entries;
	void *mapped = NULL;

	if (v->body == BODY_PACKED) {
		uint64_t ext = ext_make(ext_unit(entries[0]), 1);

		maps_place(rp, &ext, 1, d->geo.unit_bytes, ret_text);
		return;
	}
	if (!entries && verify_map(&rp->vol->disk, rp->r, v, &mapped) < 0) {
		maps_place(rp, v->map.ext, v->map.nr, map_image_bytes(&d->geo, v->map.len_bytes), ret_text);
		return;
	}
	maps_place(rp, entries ? entries : mapped, v->entry_nr, stored_bytes(v->size_bytes), ret_text);
	free(mapped);
}

static void
keep(struct replay *rp, const uint8_t *bytes, uint32_t len)
{
	memcpy(rp->survivors + rp->survivors_len, bytes, len);
	rp->survivors_len += len;
	rp->survivors_nr++;
}

/* Verifies the records of one block of the tail, and applies the valid ones. Returns 1: the log is cut
 * here; 0; or -errno. */
static int
verify_block(struct replay *rp, const struct tail_block *b)
{
	uint32_t at = BLOCK_HEAD_BYTES;
	bool cut = false;

	rp->survivors_len = rp->survivors_nr = 0;
	for (uint32_t i = 0; i < b->head.record_nr; i++) {
		struct rec_view v;
		char name[160];
		int n = rec_decode(b->bytes + at, b->head.used_bytes - at, &rp->vol->disk.geo, &v), e;

		if (n < 0)
			return disk_refuse(&rp->vol->disk, -ENOTRECOVERABLE,
					   "log offset %llu: record %u is impossible",
					   (unsigned long long)b->head.pos, i);
		name_text(rp, name, sizeof name, &v);
		e = cut && RULE_TAIL_PREFIX ? -EBADMSG : verify_record(rp, &v);
		if (sync_is_unreadable(e) && rp->rep->repair) {
			rp->rep->was_damaged = true;
			if (rp->rep->damage)
				rp->rep->damage->sums.has_unknown = true;
			e = -EBADMSG;
		}
		if (sync_is_unreadable(e)) {
			char where[DISK_PLACE_BYTES];

			data_place(rp, &v, where);
			return refuse_with(
				rp, e, ADVICE_LOG_DAMAGED,
				&(struct advice_values){
					.loss = "1 record of an object, and those after it," },
				"%s cannot be read: %s; it is of %s, which may have been acknowledged", where,
				strerror(-e), name);
		}
		if (e < 0 && e != -EBADMSG)
			return disk_refuse(&rp->vol->disk, e,
					   "log offset %llu: the data of %s cannot be read: %s",
					   (unsigned long long)b->head.pos, name, strerror(-e));
		if (e < 0) {
			if (!cut)
				snprintf(rp->cut_key, sizeof rp->cut_key, "%s", name);
			cut = true;
			rp->cut_records++;
			report(rp->rep,
			       "%s: log offset %llu: %s (version %llu) was not whole and not acknowledged: "
			       "dropped",
			       rp->vol->disk.name, (unsigned long long)b->head.pos, name,
			       (unsigned long long)v.version);
		} else {
			keep(rp, b->bytes + at, (uint32_t)n);
			e = apply_record(rp, &v);
			if (e < 0)
				return refuse_memory(rp, e, 0);
		}
		at += (uint32_t)n;
	}
	return cut;
}

int
verify_tail(struct replay *rp)
{
	const struct tail_block *b = rp->tail;
	int e = 0;

	rp->cut = rp->pos;
	for (; b && e == 0; b = b->next) {
		e = verify_block(rp, b);
		if (e == 1) {
			rp->cut = b->at;
			break;
		}
	}
	if (e != 1)
		rp->survivors_len = rp->survivors_nr = 0;
	if (e == 1 && b) {
		for (b = b->next; b; b = b->next)
			rp->cut_records += b->head.record_nr;
	}
	return e < 0 ? e : 0;
}
