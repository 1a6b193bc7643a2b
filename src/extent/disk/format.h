/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format - the numbers that shape a disk and the contents of its superblock: sizes, extents, geometry,
 * positions in the log.
 *
 * Pure functions, any thread. docs/disk-format.md gives the reasons; all integers are little endian. Records,
 * log blocks and snapshot blocks are in log/rec_codec.h.
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

#define FMT_VERSION 3u /* version written */
/* version of superblocks while a table names second disks; otherwise the same format */
#define FMT_VERSION_COPIES 4u
#define FMT_START_NO_MAX 0xffffffu /* numbers of starts: a version has 24 bits for them */
#define FMT_COUNTER_BITS 40        /* a record's version: start number, then a counter of that many bits */
#define FMT_CHANGE_BITS TABLE_CHANGE_BITS
#define FMT_ALIGN 4096u              /* alignment of every I/O: offset, length and memory */
#define FMT_UNIT_BYTES (16u << 10)   /* allocation unit */
#define FMT_CHUNK_BYTES (64u << 20)  /* larger objects are manifests of chunks */
#define FMT_FLUSHED_BYTES (8u << 20) /* larger objects enter the log after a flush of their data */
#define FMT_BLOCK_MAX (1u << 20)     /* largest log block and snapshot block */
#define FMT_BLOCK_MIN (128u << 10)   /* minimum size of a log block at format */
/* minimum size of the log at format */
#define FMT_LOG_MIN (4u << 20)
/* the size of the log is a multiple of this */
#define FMT_LOG_STEP (1u << 20)
/* minimum size of a segment at format */
#define FMT_SEG_MIN (8u << 20)
/* most extents or chunks in a record itself; a longer list is in a map */
#define FMT_ENTRY_MAX 64u
#define FMT_MAP_ENTRY_MAX (1u << 20) /* sanity bound */
#define FMT_DISKS_MAX STORE_DISKS_MAX
#define FMT_SLOT_NR STORE_SLOT_NR
#define FMT_SUPER_BYTES (64u << 10)               /* size of one superblock */
#define FMT_DEVICE_HEAD_BYTES ((uint64_t)1 << 20) /* bytes before the log on a device */
#define FMT_DEVICE_TAIL_BYTES                                                                                \
	((uint64_t)2 << 20) /* at the end of a device: beginning of the second superblock */

/* offset of the host block (host.h) on a device, in the head before the log */
#define FMT_HOST_OFF ((uint64_t)256 << 10)
#define PART_BYTES_MAX ((uint64_t)1 << 48) /* sanity bound */
#define FMT_CRC_BLOCK_MAX (FMT_CHUNK_BYTES / STORE_GRANULE * 8)

/* ---- extents ---- */

/* Makes an extent: its first unit in the upper 40 bits, the number of units in the lower 24. */
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
	uint64_t size_bytes;  /* size of the whole disk, as formatted */
	uint64_t log_bytes;   /* size of the log's ring */
	uint64_t seg_bytes;   /* size of a data segment */
	uint32_t seg_nr;      /* number of segments when all are made */
	uint32_t unit_bytes;  /* allocation unit */
	uint32_t block_bytes; /* largest log block */
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
/* Returns true if an extent is not empty, and on the disk. */
bool ext_ok(uint64_t ext, const struct geometry *g);
/* Chooses the geometry for a disk of size_bytes and an index of at most index_bytes in memory (0: unknown).
 * 0 or -ENOSPC (too small). */
int geo_choose(uint64_t size_bytes, uint64_t index_bytes, struct geometry *ret_geo);
/* Returns the offset of a device's second superblock: FMT_DEVICE_TAIL_BYTES before its formatted end. */
uint64_t geo_second_off(const struct geometry *g);

/* ---- superblock ---- */

/*
 * Oldest format version that is read. A superblock of a version from here to below FMT_VERSION has the
 * bytes of FMT_VERSION, a start refuses it, and disk_upgrade() writes it as FMT_VERSION. No such version
 * exists yet, hence the value is FMT_VERSION. Tests of the upgrade lower the value before they open a disk.
 */
extern uint32_t fmt_oldest;

/* The expected position of a log block, with everything that identifies it. */
struct log_pos {
	uint64_t seq, lap, pos; /* pos: bytes into the ring */
	uint64_t prev_crc;      /* CRC of the previous block */
	uint64_t epoch;
	uint8_t nonce[16];
};

struct snap_ref {
	uint64_t id;       /* number of the snapshot, increasing; 0: no snapshot */
	uint64_t head_ext; /* first block of the chain; 0 blocks: an empty snapshot */
	uint32_t head_bytes;
	uint64_t block_nr, record_nr, bytes;
	uint64_t crc64;       /* over the CRCs of the blocks, in order */
	uint64_t version_max; /* newest version in the snapshot or before it */
	struct log_pos begin; /* position at which the log continues */
};

enum super_kind { SUPER_DIRECTORY = 1, SUPER_DEVICE = 2 };

struct super {
	uint32_t version; /* format version as read; FMT_VERSION is written */
	uint64_t gen;     /* incremented with each write; the newer valid copy counts */
	uint8_t store_uuid[16], disk_uuid[16];
	enum super_kind kind;
	struct geometry geo;
	uint64_t epoch; /* the running epoch: replay must reach it */
	uint8_t nonce[16];
	struct snap_ref snap[2]; /* current, previous */
	uint64_t start_no;       /* the newest start that this disk knows */
	struct disk_table table;
	/* true if the disk was stale when it learned of the start start_no, or if a repair dropped records,
	 * and the disk has received no table since then (set/start/begin_disks.c) */
	bool is_behind;
};

/* Makes the table of a store of this one disk, whose UUID and start number are set. */
void super_table_of_one(struct super *sb);
/* Returns true if buf begins like a superblock. */
bool super_peek(const void *buf);
/* Writes a superblock to buf, of FMT_SUPER_BYTES. */
void super_encode(void *buf, const struct super *sb);
/* Reads a superblock of this format version or an earlier one, for which the table of one disk is made. 0;
 * -ENOENT: not a superblock; -EBADMSG: a damaged superblock; -EPROTONOSUPPORT: another format version, for
 * which *ret_super has only the version and the UUIDs, which are at the same offsets. */
int super_decode(const void *buf, size_t len, struct super *ret_super);

#endif
