/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_codec - what lies in the log and in snapshots: records, and the blocks that hold them.
 *
 * Encoding, and decoding with every bound checked.  Pure functions, any thread.  Decoders take hostile
 * bytes: they return -EBADMSG, never read outside their buffer, and what they accept obeys every limit
 * named here and in disk/format.h.
 */
#ifndef GANTRY_EXTENT_LOG_REC_CODEC_H
#define GANTRY_EXTENT_LOG_REC_CODEC_H

#include "extent/disk/format.h"
#include "extent/log/key.h"

/* ---- bytes on disk ---- */

/* Granules of a record's bytes; its CRC block's length (0 for one granule); all it takes on disk. */
static inline uint32_t
granules(uint64_t size_bytes)
{
	return (uint32_t)((size_bytes + STORE_GRANULE - 1) / STORE_GRANULE);
}
static inline uint32_t
crc_block_bytes(uint64_t size_bytes)
{
	return size_bytes > STORE_GRANULE ? granules(size_bytes) * 8 : 0;
}
static inline uint64_t
stored_bytes(uint64_t size_bytes)
{
	return align_up(size_bytes, FMT_ALIGN) + align_up(crc_block_bytes(size_bytes), FMT_ALIGN);
}

/*
 * Small objects lie side by side in a unit, in steps of 64 bytes.  A place says where: the unit in the upper 40 bits, as
 * of an extent, and the step in the lower 24.  Of one granule at most, so that they have no CRC block.
 */
#define PLACE_STEP 64u
static inline uint64_t
place_make(uint64_t unit, uint32_t step)
{
	return ext_make(unit, step);
}
static inline uint64_t
place_off(uint64_t place)
{
	return (uint64_t)ext_nr(place) * PLACE_STEP;
}
static inline uint32_t
place_steps(uint64_t size_bytes)
{
	return (uint32_t)((size_bytes + PLACE_STEP - 1) / PLACE_STEP);
}
/* Returns the largest object of which a unit holds two. */
static inline uint32_t
place_bytes_max(const struct geometry *g)
{
	return g->unit_bytes / 2 < STORE_GRANULE ? g->unit_bytes / 2 : STORE_GRANULE;
}

/* What is read for the bytes at a place: whole pages. */
struct place_pages {
	uint64_t ext;      /* the unit */
	uint32_t off, len; /* in it */
	uint32_t skew;     /* so far behind that the bytes begin */
};
static inline struct place_pages
place_pages(uint64_t place, uint64_t size_bytes)
{
	uint32_t at = (uint32_t)place_off(place), off = at / FMT_ALIGN * FMT_ALIGN;

	return (struct place_pages){ .ext = ext_make(ext_unit(place), 1),
				     .off = off,
				     .len = (uint32_t)(align_up(at + size_bytes, FMT_ALIGN) - off),
				     .skew = at - off };
}

/* One chunk of a manifest, as it lies in a record.  Of an object made of parts: the upload's id, the part's
 * number. */
struct chunk_ref {
	uint8_t id[CHUNK_ID_BYTES];
	uint32_t index;
	uint32_t reserved;
	uint64_t len_bytes;
	uint64_t crc64;
};
_Static_assert(sizeof(struct chunk_ref) == 40, "on-disk layout");

/* Where a list lies that a record cannot hold.  The extents are those of whoever holds the record. */
struct map_ref {
	const uint64_t *ext;
	uint32_t nr;
	uint32_t len_bytes;
	uint64_t crc64;
};
#define FMT_MAP_EXT_MAX 64u /* the longest list there is, of 10,000 parts, takes 25 units */

/* Bytes of a map that lie in one unit: all of it, but in the simulation, whose lists are short. */
#ifndef MAP_UNIT_MAX
#define MAP_UNIT_MAX UINT32_MAX
#endif
static inline uint32_t
map_unit_bytes(const struct geometry *g)
{
	return g->unit_bytes < MAP_UNIT_MAX ? g->unit_bytes : MAP_UNIT_MAX;
}
static inline uint32_t
map_units(const struct geometry *g, uint32_t len)
{
	return (len + map_unit_bytes(g) - 1) / map_unit_bytes(g);
}
/* Returns the bytes that a map of that length takes on the disk, from its first unit on. */
static inline uint64_t
map_image_bytes(const struct geometry *g, uint32_t len)
{
	uint32_t whole = map_units(g, len) - 1;

	return (uint64_t)whole * g->unit_bytes + align_up(len - whole * map_unit_bytes(g), FMT_ALIGN);
}
/* Writes len bytes of entries to image, of map_image_bytes(), as they will lie on the disk. */
void map_lay_out(void *image, const void *entries, uint32_t len, const struct geometry *g);
/* Takes them out of there; entries may be image. */
void map_take_in(void *entries, const void *image, uint32_t len, const struct geometry *g);

/* ---- record ---- */

enum rec_op { REC_PUT = 1, REC_DELETE = 2, REC_OP_NR };
/* PARTS: of parts, each a record of its own, whose body is a manifest (or inline and empty).
 * PACKED (format 3): an object at a place (one entry); what it was put as has been moved there. */
enum rec_body { BODY_NONE, BODY_INLINE, BODY_EXTENTS, BODY_MANIFEST, BODY_PARTS, BODY_PACKED, BODY_NR };
#define REC_FLUSHED 1u  /* the data was flushed before the record entered the log */
#define REC_MAPPED 2u   /* the entries lie in the map extent */
#define REC_SHARED 4u   /* an earlier record had the same extents; data_version is the first one's */
#define REC_MAP_LIST 8u /* the map lies in several extents (format 3) */
#define REC_EXPIRES 16u /* expires_ns says when (format 3) */
/* On disk alone, with copies above 1: so earlier versions, which know no such keys, take no bucket for one of theirs. */
#define REC_COPIES 32u
#define REC_COPIES_MAX 2
#define REC_HEAD_BYTES 96
#define REC_SUMS_MAX 128
/* The largest record there is: a manifest with all that it may have (a chunk has an owner, but no
 * attributes). */
#define REC_MAP_BYTES 24u /* and the extents, where they are a list */
#define REC_MAP_MAX (REC_MAP_BYTES + FMT_MAP_EXT_MAX * sizeof(uint64_t))
#define REC_ENTRIES_MAX (FMT_ENTRY_MAX * sizeof(struct chunk_ref))
#define REC_BYTES_MAX                                                                                        \
	(REC_HEAD_BYTES + KEY_BYTES_MAX + STORE_ATTRS_MAX +                                                  \
	 (REC_ENTRIES_MAX > REC_MAP_MAX ? REC_ENTRIES_MAX : REC_MAP_MAX) + REC_SUMS_MAX + 8)

/* A record, with pointers into whoever holds it.  Entries are 8-byte aligned: extents, a place (uint64_t)
 * or struct chunk_ref. */
struct rec_view {
	uint8_t op, body;
	uint16_t flags;
	uint16_t key_len, owner_len, sums_len, inline_len;
	uint32_t attrs_len, entry_nr;
	uint64_t version, size_bytes, mtime_ns, crc64;
	uint64_t data_version; /* REC_SHARED: what its readers pin */
	uint64_t expires_ns;   /* REC_EXPIRES: from then on it is not there; 0: never */
	uint8_t copies;        /* of a bucket: on how many disks each of its keys is; 0: one */
	struct store_etag etag;
	struct map_ref map;
	const void *entries; /* NULL when mapped */
	const uint8_t *key;  /* with type byte */
	const uint8_t
		*owner; /* of a chunk: the key of the object or part it belongs to; of a part: the upload's */
	const uint8_t *sums; /* checksums beside the CRC64; opaque here */
	const void *inline_data;
	const void *attrs;
};

/* Returns the bytes that a record takes, a multiple of 8. */
size_t rec_encoded_bytes(const struct rec_view *v);
/* Encodes a record and returns the bytes written.  The caller made room of rec_encoded_bytes(). */
size_t rec_encode(void *buf, const struct rec_view *v);
/* Decodes a record; buf is 8-byte aligned.  Returns the bytes taken, or -EBADMSG.  geo: extents must lie
 * on the disk and cover the bytes. */
int rec_decode(const void *buf, size_t len, const struct geometry *geo, struct rec_view *ret_view);
/* Checks the entries of a map that was read, as rec_decode() checks a record's own. */
int rec_check_entries(const struct rec_view *v, const void *entries, const struct geometry *geo);
/* Returns the bytes of a map's place in a record with such flags. */
static inline size_t
rec_map_bytes(uint16_t flags, uint32_t ext_nr)
{
	return REC_MAP_BYTES + (flags & REC_MAP_LIST ? ext_nr * sizeof(uint64_t) : 0);
}
static inline size_t
rec_entry_bytes(uint8_t body)
{
	return body == BODY_EXTENTS || body == BODY_PACKED   ? sizeof(uint64_t)
	       : body == BODY_MANIFEST || body == BODY_PARTS ? sizeof(struct chunk_ref)
							     : 0;
}

/* ---- log block ---- */

enum block_kind { BLOCK_RECORDS = 1, BLOCK_EPOCH = 2 };
#define BLOCK_HEAD_BYTES 128

struct block_head {
	enum block_kind kind;
	uint32_t len_bytes;  /* whole block, a multiple of FMT_ALIGN */
	uint32_t used_bytes; /* header and records */
	uint32_t record_nr;
	uint64_t epoch, seq, lap, pos, prev_crc;
	uint64_t flushed_upto; /* blocks up to this sequence were flushed before this one was written */
	uint64_t new_epoch;    /* BLOCK_EPOCH: what begins behind it */
	uint8_t new_nonce[16];
	uint64_t crc64; /* of the block; filled in by the encoder and the decoder */
};

/* Writes the header in front of the records that lie at buf + BLOCK_HEAD_BYTES, zeroes the padding, and seals
 * it. */
void block_seal(void *buf, struct block_head *h, const uint8_t nonce[16]);
/*
 * Opens the block at buf, of at most len bytes.  0, or -ENOENT: nothing here that says to be a block;
 * -EBADMSG: header impossible or CRC wrong under this nonce.  Does not judge epoch, sequence and position.
 */
int block_open(const void *buf, size_t len, const uint8_t nonce[16], struct block_head *ret_head);
/* Returns the length that the header claims, before the whole block was read; 0: not a block. */
uint32_t block_peek(const void *buf);
/* Reads what the header claims to be, unchecked.  False: it does not say to be a block. */
bool block_claims(const void *buf, struct block_head *ret_head);
/* Returns the epoch that the header claims; of what block_peek() took for a block. */
uint64_t block_epoch(const void *buf);

/* ---- snapshot block ---- */

#define SNAP_HEAD_BYTES 80

struct snap_head {
	uint8_t disk_uuid[16];
	uint64_t id; /* of the snapshot */
	uint32_t index;
	uint32_t used_bytes, record_nr;
	uint64_t next_ext;   /* where the next block lies; ~0: this is the last */
	uint32_t next_bytes; /* room there, not yet what is used of it */
	uint64_t older_id;   /* the snapshot before this one; 0: not said (format versions 1 and 2) */
	uint32_t older_nr;   /* so many extents of its chain stand at the end of what is used, 8 bytes each */
	uint64_t crc64;
};
#define SNAP_LAST UINT64_MAX
#define SNAP_OLDER_BYTES 8u
/* A snapshot can be written to a disk of which only single units are left. */
_Static_assert(REC_BYTES_MAX + SNAP_HEAD_BYTES <= FMT_UNIT_BYTES, "a record fits into a block of one unit");

/* Seals and opens a block, len bytes long on disk; records at buf + SNAP_HEAD_BYTES, and the extents of the older
 * snapshot behind them, up to used_bytes. */
void snap_seal(void *buf, size_t len, struct snap_head *h);
int snap_open(const void *buf, size_t len, struct snap_head *ret_head);
/* Returns the i-th of the extents of the older snapshot that the block names. */
uint64_t snap_older(const void *buf, const struct snap_head *h, uint32_t i);

#endif
