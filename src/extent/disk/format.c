/* SPDX-License-Identifier: Apache-2.0 */
/* Geometry and superblocks, see format.h. */
#include "extent/disk/format.h"

#include "base/cursor.h"
#include "base/crc64.h"

#include <errno.h>
#include <string.h>

/* ---- geometry ---- */

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
/* A directory's files count the same, so that both hold as much. */
#define HEAD_BYTES FMT_DEVICE_HEAD_BYTES

/*
 * What may come between two snapshots shall not be less than a quarter of what one takes (log/snapshot.c): a snapshot of
 * all that the index can hold, a quarter larger than in memory at most, and of that 0.7.  No more than an eighth of the disk: an
 * index that would want more would take half of it for its three snapshots, and leave no room for objects.
 */
static uint64_t
log_bytes_for(uint64_t size_bytes, uint64_t index_bytes)
{
	uint64_t log = index_bytes / 8 * 7, plain = size_bytes / 32;

	plain = plain > 16 * GIB ? 16 * GIB : plain;
	log = log > size_bytes / 8 ? size_bytes / 8 : log;
	log = log > 64 * GIB ? 64 * GIB : log;
	return (log > plain ? log : plain) / MIB * MIB;
}

int
geo_choose(uint64_t size_bytes, uint64_t index_bytes, struct geometry *ret_geo)
{
	struct geometry g = { .size_bytes = size_bytes,
			      .unit_bytes = FMT_UNIT_BYTES,
			      .granule_bytes = STORE_GRANULE,
			      .chunk_bytes = FMT_CHUNK_BYTES };
	bool is_small = size_bytes < 512 * MIB;
	uint64_t least = is_small ? 4 * MIB : 16 * MIB;

	g.log_bytes = log_bytes_for(size_bytes, is_small ? 0 : index_bytes);
	g.log_bytes = g.log_bytes < least ? least : g.log_bytes;
	g.block_bytes = g.log_bytes / 32 < FMT_BLOCK_MAX ? (uint32_t)(g.log_bytes / 32) : FMT_BLOCK_MAX;
	/* At least eight segments where that is possible: giving space back, and making it, work by the
	 * segment. */
	for (g.seg_bytes = GIB; g.seg_bytes > 8 * MIB && size_bytes / g.seg_bytes < 8;)
		g.seg_bytes /= 2;
	if (size_bytes < HEAD_BYTES + g.log_bytes + g.seg_bytes)
		return -ENOSPC;
	if ((size_bytes - HEAD_BYTES - g.log_bytes) / g.seg_bytes > UINT32_MAX)
		return -ENOSPC;
	g.seg_nr = (uint32_t)((size_bytes - HEAD_BYTES - g.log_bytes) / g.seg_bytes);
	*ret_geo = g;
	return 0;
}

static bool
geo_ok(const struct geometry *g)
{
	uint64_t data;

	if (g->unit_bytes < FMT_UNIT_BYTES || g->unit_bytes > MIB || g->unit_bytes & (g->unit_bytes - 1))
		return false;
	if (g->granule_bytes != STORE_GRANULE || g->chunk_bytes != FMT_CHUNK_BYTES)
		return false;
	if (g->log_bytes < FMT_LOG_MIN || g->log_bytes > 64 * GIB || g->log_bytes % FMT_LOG_STEP)
		return false;
	if (g->block_bytes < FMT_BLOCK_MIN || g->block_bytes > FMT_BLOCK_MAX || g->block_bytes % FMT_ALIGN)
		return false;
	if (g->seg_bytes < FMT_SEG_MIN || g->seg_bytes > GIB || g->seg_bytes & (g->seg_bytes - 1) ||
	    g->seg_nr == 0)
		return false;
	if (g->size_bytes < HEAD_BYTES + g->log_bytes)
		return false;
	data = g->size_bytes - HEAD_BYTES - g->log_bytes;
	return data / g->seg_bytes >= g->seg_nr && geo_units(g) < (uint64_t)1 << 40;
}

bool
ext_ok(uint64_t e, const struct geometry *g)
{
	return ext_nr(e) != 0 && ext_unit(e) < geo_units(g) && ext_nr(e) <= geo_units(g) - ext_unit(e);
}

/* ---- superblock ---- */

static const char super_magic[8] = "GANTRYSB";

static void
put_log_pos(struct cur *c, const struct log_pos *p)
{
	put_u64(c, p->seq);
	put_u64(c, p->lap);
	put_u64(c, p->pos);
	put_u64(c, p->prev_crc);
	put_u64(c, p->epoch);
	put_bytes(c, p->nonce, 16);
}

static void
take_log_pos(struct cur *c, struct log_pos *p)
{
	p->seq = take_u64(c);
	p->lap = take_u64(c);
	p->pos = take_u64(c);
	p->prev_crc = take_u64(c);
	p->epoch = take_u64(c);
	take_bytes(c, p->nonce, 16);
}

static void
put_snap_ref(struct cur *c, const struct snap_ref *s)
{
	put_u64(c, s->id);
	put_u64(c, s->head_ext);
	put_u64(c, s->head_bytes);
	put_u64(c, s->block_nr);
	put_u64(c, s->record_nr);
	put_u64(c, s->bytes);
	put_u64(c, s->crc64);
	put_u64(c, s->version_max);
	put_log_pos(c, &s->begin);
}

static void
take_snap_ref(struct cur *c, struct snap_ref *s)
{
	s->id = take_u64(c);
	s->head_ext = take_u64(c);
	s->head_bytes = (uint32_t)take_u64(c);
	s->block_nr = take_u64(c);
	s->record_nr = take_u64(c);
	s->bytes = take_u64(c);
	s->crc64 = take_u64(c);
	s->version_max = take_u64(c);
	take_log_pos(c, &s->begin);
}

/*
 * magic (8), version (4), kind (4), CRC64 of the whole copy with these 8 bytes zero, then the fields in the
 * order below.
 */
void
super_encode(void *buf, const struct super *sb)
{
	struct cur c = cursor(buf, FMT_SUPER_BYTES);
	uint64_t crc;

	memset(buf, 0, FMT_SUPER_BYTES);
	put_bytes(&c, super_magic, 8);
	put_u32(&c, FMT_VERSION);
	put_u32(&c, sb->kind);
	put_u64(&c, 0);
	put_u64(&c, sb->gen);
	put_bytes(&c, sb->store_uuid, 16);
	put_bytes(&c, sb->disk_uuid, 16);
	put_u64(&c, sb->geo.size_bytes);
	put_u64(&c, sb->geo.log_bytes);
	put_u64(&c, sb->geo.seg_bytes);
	put_u32(&c, sb->geo.seg_nr);
	put_u32(&c, sb->geo.unit_bytes);
	put_u32(&c, sb->geo.block_bytes);
	put_u32(&c, sb->geo.granule_bytes);
	put_u32(&c, sb->geo.chunk_bytes);
	put_u32(&c, 0);
	put_u64(&c, sb->epoch);
	put_bytes(&c, sb->nonce, 16);
	put_snap_ref(&c, &sb->snap[0]);
	put_snap_ref(&c, &sb->snap[1]);
	put_u64(&c, sb->table_version);
	put_u32(&c, sb->disk);
	put_u32(&c, sb->disk_nr);
	put_bytes(&c, sb->disk_uuids, sizeof sb->disk_uuids);
	put_bytes(&c, sb->disk_state, sizeof sb->disk_state);
	put_bytes(&c, sb->slot, sizeof sb->slot);
	crc = crc64_nvme(0, buf, FMT_SUPER_BYTES);
	memcpy((uint8_t *)buf + 16, &crc, 8);
}

static bool
log_pos_ok(const struct log_pos *p, const struct geometry *g)
{
	return p->pos % FMT_ALIGN == 0 && p->pos <= g->log_bytes && p->seq != 0;
}

static bool
super_ok(const struct super *sb)
{
	if (sb->kind != SUPER_DIRECTORY && sb->kind != SUPER_DEVICE)
		return false;
	if (!geo_ok(&sb->geo) || sb->disk_nr == 0 || sb->disk_nr > FMT_DISKS_MAX || sb->disk >= sb->disk_nr)
		return false;
	for (int i = 0; i < FMT_SLOT_NR; i++) {
		if (sb->slot[i] >= sb->disk_nr)
			return false;
	}
	for (int i = 0; i < 2; i++) {
		const struct snap_ref *s = &sb->snap[i];

		if (s->id == 0)
			continue;
		if (!log_pos_ok(&s->begin, &sb->geo) || s->head_bytes > FMT_BLOCK_MAX)
			return false;
		if (s->block_nr &&
		    (!ext_ok(s->head_ext, &sb->geo) || s->head_bytes == 0 || s->head_bytes % FMT_ALIGN ||
		     (uint64_t)ext_nr(s->head_ext) * sb->geo.unit_bytes < s->head_bytes))
			return false;
	}
	return sb->snap[0].id != 0;
}

int
super_decode(const void *buf, size_t len, struct super *ret_super)
{
	struct cur c = cursor(buf, len);
	struct super sb = { 0 };
	static const uint8_t zero8[8];
	uint32_t version;
	uint64_t crc, sum;

	if (len < FMT_SUPER_BYTES || memcmp(buf, super_magic, 8) != 0)
		return -ENOENT;
	take(&c, 8);
	version = take_u32(&c);
	sb.kind = take_u32(&c);
	crc = take_u64(&c);
	sum = crc64_nvme(0, buf, 16);
	sum = crc64_nvme(sum, zero8, 8);
	sum = crc64_nvme(sum, (const uint8_t *)buf + 24, FMT_SUPER_BYTES - 24);
	if (sum != crc)
		return -EBADMSG;
	if (version < FMT_VERSION_MIN || version > FMT_VERSION)
		return -EPROTONOSUPPORT;
	sb.gen = take_u64(&c);
	take_bytes(&c, sb.store_uuid, 16);
	take_bytes(&c, sb.disk_uuid, 16);
	sb.geo.size_bytes = take_u64(&c);
	sb.geo.log_bytes = take_u64(&c);
	sb.geo.seg_bytes = take_u64(&c);
	sb.geo.seg_nr = take_u32(&c);
	sb.geo.unit_bytes = take_u32(&c);
	sb.geo.block_bytes = take_u32(&c);
	sb.geo.granule_bytes = take_u32(&c);
	sb.geo.chunk_bytes = take_u32(&c);
	take_u32(&c);
	sb.epoch = take_u64(&c);
	take_bytes(&c, sb.nonce, 16);
	take_snap_ref(&c, &sb.snap[0]);
	take_snap_ref(&c, &sb.snap[1]);
	sb.table_version = take_u64(&c);
	sb.disk = take_u32(&c);
	sb.disk_nr = take_u32(&c);
	take_bytes(&c, sb.disk_uuids, sizeof sb.disk_uuids);
	take_bytes(&c, sb.disk_state, sizeof sb.disk_state);
	take_bytes(&c, sb.slot, sizeof sb.slot);
	if (c.bad || !super_ok(&sb))
		return -EBADMSG;
	*ret_super = sb;
	return 0;
}
