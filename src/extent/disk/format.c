/* SPDX-License-Identifier: Apache-2.0 */
/* Geometry and superblocks; see format.h. */
#include "extent/disk/format.h"

#include "base/cursor.h"
#include "base/crc64.h"

#include <errno.h>
#include <string.h>

uint32_t fmt_oldest = FMT_VERSION;

/* ---- geometry ---- */

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
/* The files of a directory count for the same sizes, so that directories and devices have the same
 * capacity. */
#define HEAD_BYTES FMT_DEVICE_HEAD_BYTES
#define TAIL_BYTES FMT_DEVICE_TAIL_BYTES

/*
 * Returns the size of the log. The log between two snapshots, at most 36 % of the ring, must be at least a
 * quarter of a snapshot (log/snapshot.c). So the ring has 0.7 of the size of a snapshot of the full index,
 * which is at most a quarter larger than the index in memory. The ring has at most an eighth of the disk: a
 * larger index would need half of the disk for its three snapshots, and leave no room for objects.
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
	/* At least eight segments if possible, because space is prepared and freed by segments. */
	for (g.seg_bytes = GIB; g.seg_bytes > 8 * MIB && size_bytes / g.seg_bytes < 8;)
		g.seg_bytes /= 2;
	if (size_bytes < HEAD_BYTES + g.log_bytes + g.seg_bytes + TAIL_BYTES)
		return -ENOSPC;
	if ((size_bytes - HEAD_BYTES - g.log_bytes - TAIL_BYTES) / g.seg_bytes > UINT32_MAX)
		return -ENOSPC;
	g.seg_nr = (uint32_t)((size_bytes - HEAD_BYTES - g.log_bytes - TAIL_BYTES) / g.seg_bytes);
	*ret_geo = g;
	return 0;
}

/* Returns true if the second superblock of a device is after its data. */
static bool
has_tail(const struct geometry *g)
{
	uint64_t data_end = HEAD_BYTES + g->log_bytes + g->seg_nr * g->seg_bytes;

	return g->size_bytes / FMT_ALIGN * FMT_ALIGN >= data_end + TAIL_BYTES;
}

uint64_t
geo_second_off(const struct geometry *g)
{
	return g->size_bytes / FMT_ALIGN * FMT_ALIGN - TAIL_BYTES;
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
move_log_pos(struct cur *c, struct log_pos *p, bool puts)
{
	MOVE(c, p->seq, puts);
	MOVE(c, p->lap, puts);
	MOVE(c, p->pos, puts);
	MOVE(c, p->prev_crc, puts);
	MOVE(c, p->epoch, puts);
	MOVE(c, p->nonce, puts);
}

static void
move_snap_ref(struct cur *c, struct snap_ref *s, bool puts)
{
	uint64_t head_bytes = s->head_bytes;

	MOVE(c, s->id, puts);
	MOVE(c, s->head_ext, puts);
	MOVE(c, head_bytes, puts);
	s->head_bytes = (uint32_t)head_bytes;
	MOVE(c, s->block_nr, puts);
	MOVE(c, s->record_nr, puts);
	MOVE(c, s->bytes, puts);
	MOVE(c, s->crc64, puts);
	MOVE(c, s->version_max, puts);
	move_log_pos(c, &s->begin, puts);
}

static void
move_geometry(struct cur *c, struct geometry *g, bool puts)
{
	uint32_t zero = 0;

	MOVE(c, g->size_bytes, puts);
	MOVE(c, g->log_bytes, puts);
	MOVE(c, g->seg_bytes, puts);
	MOVE(c, g->seg_nr, puts);
	MOVE(c, g->unit_bytes, puts);
	MOVE(c, g->block_bytes, puts);
	MOVE(c, g->granule_bytes, puts);
	MOVE(c, g->chunk_bytes, puts);
	MOVE(c, zero, puts);
}

static void
move_table(struct cur *c, struct disk_table *t, bool puts)
{
	MOVE(c, t->version, puts);
	MOVE(c, t->members, puts);
	MOVE(c, t->in, puts);
	MOVE(c, t->draining, puts);
	MOVE(c, t->uuid, puts);
	MOVE(c, t->home, puts);
	MOVE(c, t->first, puts);
	MOVE(c, t->second, puts);
	MOVE(c, t->full, puts);
}

/* Moves the fields after the UUIDs. */
static void
move_fields(struct cur *c, struct super *sb, bool puts)
{
	uint64_t is_behind = sb->is_behind;

	move_geometry(c, &sb->geo, puts);
	MOVE(c, sb->start_no, puts);
	move_table(c, &sb->table, puts);
	MOVE(c, sb->epoch, puts);
	MOVE(c, sb->nonce, puts);
	move_snap_ref(c, &sb->snap[0], puts);
	move_snap_ref(c, &sb->snap[1], puts);
	MOVE(c, sb->table.filling, puts);
	MOVE(c, is_behind, puts);
	sb->is_behind = is_behind != 0;
}

void
super_table_of_one(struct super *sb)
{
	table_make(&sb->table, (const uint8_t(*)[16])sb->disk_uuid, &sb->geo.size_bytes, 1, sb->start_no);
}

static uint32_t
table_version(const struct disk_table *t)
{
	for (int i = 0; i < FMT_SLOT_NR; i++) {
		if (t->second[i] != TABLE_NO_DISK)
			return FMT_VERSION_COPIES;
	}
	return FMT_VERSION;
}

static uint32_t
version_for(const struct super *sb)
{
	uint32_t version = table_version(&sb->table);

	return version > sb->records_version ? version : sb->records_version;
}

/*
 * Layout: magic (8), version (4), kind (4), CRC64 of the whole superblock with these 8 bytes zero, then the
 * fields in the order below. Fields that change with each write are before and after the placement map, in
 * different sectors, so that the CRC alone detects an interrupted write.
 */
void
super_encode(void *buf, const struct super *sb)
{
	struct cur c = cursor(buf, FMT_SUPER_BYTES);
	struct super copy = *sb;
	uint64_t crc;

	memset(buf, 0, FMT_SUPER_BYTES);
	put_bytes(&c, super_magic, 8);
	put_u32(&c, version_for(sb));
	put_u32(&c, sb->kind);
	put_u64(&c, 0);
	put_u64(&c, sb->gen);
	put_bytes(&c, sb->store_uuid, 16);
	put_bytes(&c, sb->disk_uuid, 16);
	move_fields(&c, &copy, true);
	crc = crc64_nvme(0, buf, FMT_SUPER_BYTES);
	memcpy((uint8_t *)buf + 16, &crc, 8);
}

static bool
log_pos_ok(const struct log_pos *p, const struct geometry *g)
{
	return p->pos % FMT_ALIGN == 0 && p->pos <= g->log_bytes && p->seq != 0;
}

static bool
snap_ref_ok(const struct snap_ref *s, const struct geometry *g)
{
	if (s->id == 0)
		return true;
	if (!log_pos_ok(&s->begin, g) || s->head_bytes > FMT_BLOCK_MAX)
		return false;
	return s->block_nr == 0 ||
	       (ext_ok(s->head_ext, g) && s->head_bytes && s->head_bytes % FMT_ALIGN == 0 &&
		(uint64_t)ext_nr(s->head_ext) * g->unit_bytes >= s->head_bytes);
}

static bool
table_ok(const struct disk_table *t)
{
	if (t->version == 0 || t->in == 0 || (t->in | t->draining | t->filling) & ~t->members)
		return false;
	for (int i = 0; i < FMT_SLOT_NR; i++) {
		bool alone = t->second[i] == TABLE_NO_DISK;

		if (!table_has(t->members, t->home[i]) || !table_has(t->members, t->first[i]))
			return false;
		if (alone ? table_is_full(t, i)
			  : !table_has(t->members, t->second[i]) || t->second[i] == t->first[i])
			return false;
	}
	return true;
}

static bool
super_ok(const struct super *sb)
{
	if (sb->kind != SUPER_DIRECTORY && sb->kind != SUPER_DEVICE)
		return false;
	/* The second superblock of a device is after its data. */
	if (!geo_ok(&sb->geo) || (sb->kind == SUPER_DEVICE && !has_tail(&sb->geo)))
		return false;
	if (sb->start_no == 0 || sb->start_no > FMT_START_NO_MAX)
		return false;
	if (!table_ok(&sb->table) || sb->table.version >> FMT_CHANGE_BITS > sb->start_no)
		return false;
	return sb->snap[0].id != 0 && snap_ref_ok(&sb->snap[0], &sb->geo) &&
	       snap_ref_ok(&sb->snap[1], &sb->geo);
}

bool
super_peek(const void *buf)
{
	return memcmp(buf, super_magic, sizeof super_magic) == 0;
}

int
super_decode(const void *buf, size_t len, struct super *ret_super)
{
	struct cur c = cursor(buf, len);
	struct super sb = { 0 };

	if (len < FMT_SUPER_BYTES || !super_peek(buf))
		return -ENOENT;
	take(&c, 8);
	sb.version = take_u32(&c);
	sb.kind = take_u32(&c);
	if (take_u64(&c) != crc64_nvme_without(0, buf, FMT_SUPER_BYTES, 16))
		return -EBADMSG;
	sb.gen = take_u64(&c);
	take_bytes(&c, sb.store_uuid, 16);
	take_bytes(&c, sb.disk_uuid, 16);
	if (sb.version < fmt_oldest || sb.version > FMT_VERSION_MAX) {
		*ret_super = sb;
		return -EPROTONOSUPPORT;
	}
	move_fields(&c, &sb, false);
	if (sb.version > FMT_VERSION_COPIES)
		sb.records_version = sb.version;
	if (c.bad || !super_ok(&sb) || (sb.version >= FMT_VERSION && sb.version != version_for(&sb)))
		return -EBADMSG;
	*ret_super = sb;
	return 0;
}
