/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format - the constants of the disk format and the contents of the superblock: sizes, extents, geometry,
 * positions in the log. Pure functions, which any thread may call. docs/disk-format.md gives the reasons; all
 * integers are little endian. Records, log blocks and snapshot blocks are in log/rec_codec.h.
 *
 * Decoders accept hostile bytes: they return -EBADMSG, never read outside their buffer, and their results
 * obey every limit named here.
 */
#ifndef GANTRY_EXTENT_DISK_FORMAT_H
#define GANTRY_EXTENT_DISK_FORMAT_H

#include "store/store.h"
#include "set/map/disk_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FMT_VERSION 3u /* format version that is written */
/* format version of superblocks whose placement map names secondary disks; FMT_VERSION has the same layout */
#define FMT_VERSION_COPIES 4u
/* the highest format version of superblocks: of a row of model/record.def, or FMT_VERSION_COPIES; the layout is that of
 * FMT_VERSION */
#define FMT_VERSION_MAX ((uint32_t)sizeof(union fmt_since))
union fmt_since {
	char copies[FMT_VERSION_COPIES];
#define DISK_SINCE(v) v
#define HERE(name, type, v) char name[v];
#include "model/record.def"
};
#define FMT_START_NO_MAX 0xffffffu /* largest start number; a version of a record has 24 bits for it */
/* number of bits of the counter in a record's version; the higher bits are the start number */
#define FMT_COUNTER_BITS 40
#define FMT_CHANGE_BITS TABLE_CHANGE_BITS
#define FMT_ALIGN 4096u             /* alignment in bytes of every I/O: offset, length and memory */
#define FMT_UNIT_BYTES (16u << 10)  /* size of an allocation unit, in bytes */
#define FMT_CHUNK_BYTES (64u << 20) /* size of a chunk, in bytes; a larger object is a manifest of chunks */
/* size in bytes above which an object's record enters the log only after a flush of the data */
#define FMT_FLUSHED_BYTES (8u << 20)
#define FMT_BLOCK_MAX (1u << 20)   /* largest size of a log block or snapshot block, in bytes */
#define FMT_BLOCK_MIN (128u << 10) /* smallest size of a log block that format chooses, in bytes */
/* smallest size of the log that format chooses, in bytes */
#define FMT_LOG_MIN (4u << 20)
/* unit of the size of the log, in bytes: the size is a multiple of this number */
#define FMT_LOG_STEP (1u << 20)
/* smallest size of a segment that format chooses, in bytes */
#define FMT_SEG_MIN (8u << 20)
/* largest number of extents or chunks in a record; a longer list is in a map, outside of the record */
#define FMT_ENTRY_MAX 64u
#define FMT_MAP_ENTRY_MAX (1u << 20) /* largest number of entries in a map; decoders refuse more */
#define FMT_SLOT_NR STORE_SLOT_NR
#define FMT_SUPER_BYTES (64u << 10)               /* size of a superblock, in bytes */
#define FMT_DEVICE_HEAD_BYTES ((uint64_t)1 << 20) /* number of bytes before the log on a device */
#define FMT_DEVICE_TAIL_BYTES                                                                                \
	((uint64_t)2 << 20) /* distance of the second superblock from the end of a device, in bytes */

/* offset of the host block (host.h) on a device, in bytes; the block is in the head before the log */
#define FMT_HOST_OFF ((uint64_t)256 << 10)
#define PART_BYTES_MAX ((uint64_t)1 << 48) /* largest size of a part, in bytes; decoders refuse more */
#define FMT_CRC_BLOCK_MAX (FMT_CHUNK_BYTES / STORE_GRANULE * 8)

/* ---- extents ---- */

/* Returns an extent: its first unit in the upper 40 bits, its number of units in the lower 24 bits. */
static inline uint64_t
ext_make(uint64_t unit, uint32_t nr)
{
	return unit << 24 | nr;
}
static inline uint64_t
ext_unit(uint64_t e)
{
	return e >> 24;
}
static inline uint32_t
ext_nr(uint64_t e)
{
	return (uint32_t)(e & 0xffffff);
}
#define EXT_NR_MAX 0xffffffu

static inline uint64_t
align_up(uint64_t n, uint64_t a)
{
	return (n + a - 1) / a * a;
}

/* ---- geometry: every number that shapes the disk ---- */

struct geometry {
	uint64_t size_bytes;  /* size of the whole disk in bytes, as formatted */
	uint64_t log_bytes;   /* size of the log's ring, in bytes */
	uint64_t seg_bytes;   /* size of a data segment, in bytes */
	uint32_t seg_nr;      /* number of segments when all are made */
	uint32_t unit_bytes;  /* size of an allocation unit, in bytes */
	uint32_t block_bytes; /* size of the largest log block, in bytes */
	uint32_t granule_bytes, chunk_bytes;
};

static inline uint64_t
geo_seg_units(const struct geometry *g)
{
	return g->seg_bytes / g->unit_bytes;
}
static inline uint64_t
geo_units(const struct geometry *g)
{
	return geo_seg_units(g) * g->seg_nr;
}
/* Returns true if an extent is not empty and lies within the disk. */
bool ext_ok(uint64_t ext, const struct geometry *g);
/* Chooses the geometry for a disk of size_bytes, and an index of at most index_bytes in memory (0: unknown).
 * Returns 0, or -ENOSPC if the disk is too small. */
int geo_choose(uint64_t size_bytes, uint64_t index_bytes, struct geometry *ret_geo);
/* Returns the offset of a device's second superblock: FMT_DEVICE_TAIL_BYTES before the end of the formatted
 * size. */
uint64_t geo_second_off(const struct geometry *g);

/* ---- superblock ---- */

/*
 * Oldest format version that can be read. All versions from fmt_oldest to FMT_VERSION have the same layout. A
 * start refuses a superblock of a version before FMT_VERSION, and disk_write_supers() writes the superblock as
 * FMT_VERSION. No older version exists yet, so the value is FMT_VERSION. Tests of the upgrade lower the value
 * before they open a disk.
 */
extern uint32_t fmt_oldest;

/* The expected position of a log block, with all numbers that identify the block. */
struct log_pos {
	/* number of the block, number of the lap around the ring, and offset in the ring in bytes */
	uint64_t seq, lap, pos;
	uint64_t prev_crc; /* CRC of the previous block in the log */
	uint64_t epoch;
	uint8_t nonce[16];
};

struct snap_ref {
	uint64_t id; /* number of the snapshot; later snapshots have larger numbers; 0: no snapshot */
	/* extent of the first block of the chain; an extent of 0 units: the snapshot is empty */
	uint64_t head_ext;
	uint32_t head_bytes;
	uint64_t block_nr, record_nr, bytes;
	uint64_t crc64;       /* CRC64 over the CRCs of the blocks, in order */
	uint64_t version_max; /* newest version that any record had when the snapshot began */
	struct log_pos begin; /* position at which the log continues after the snapshot */
};

enum super_kind { SUPER_DIRECTORY = 1, SUPER_DEVICE = 2 };

struct super {
	uint32_t version; /* format version that was read */
	/* Lowest format version with which readers know the records on the disk; 0: FMT_VERSION. The version that is
	 * written is this one, or a higher one that the placement map needs. */
	uint32_t records_version;
	/* generation number, incremented with each write; of two valid superblocks the one with the larger
	 * number is used */
	uint64_t gen;
	uint8_t store_uuid[16], disk_uuid[16];
	enum super_kind kind;
	struct geometry geo;
	/* number of the running epoch of the log; the replay of the log must reach this epoch */
	uint64_t epoch;
	uint8_t nonce[16];
	struct snap_ref snap[2]; /* references to the current and the previous snapshot */
	uint64_t start_no;       /* number of the newest start that this disk knows */
	struct disk_table table;
	/* true: the disk was stale when it stored start_no, or a repair dropped records, and the disk has
	 * received no placement map since then (set/start/begin_disks.c) */
	bool is_behind;
};

/* Makes the placement map of a store with this disk as its only member. The caller has
 * set the UUID and the start number of sb. */
void super_table_of_one(struct super *sb);
/* Returns true if buf begins like a superblock. */
bool super_peek(const void *buf);
/* Encodes a superblock into buf, FMT_SUPER_BYTES long. */
void super_encode(void *buf, const struct super *sb);
/* Decodes a superblock of a format version from fmt_oldest to FMT_VERSION_MAX. Returns 0; -ENOENT if the
 * bytes are not a superblock; -EBADMSG if the superblock is damaged; -EPROTONOSUPPORT if it has another
 * format version. In the last case *ret_super has only the version and the UUIDs, whose offsets are the same
 * in all versions. */
int super_decode(const void *buf, size_t len, struct super *ret_super);

#endif
