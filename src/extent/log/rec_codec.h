/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_codec - the contents of the log and of snapshots: records, and the blocks with the records.
 *
 * Encoding, and decoding with every bound checked. Pure functions, any thread. Decoders accept hostile bytes:
 * they return -EBADMSG, never read outside their buffer, and their results obey every limit named here and in
 * disk/format.h.
 */
#ifndef GANTRY_EXTENT_LOG_REC_CODEC_H
#define GANTRY_EXTENT_LOG_REC_CODEC_H

#include "extent/disk/format.h"
#include "extent/log/key.h"

/* ---- bytes on disk ---- */

/* Returns the number of granules of size_bytes. */
static inline uint32_t
granules(uint64_t size_bytes)
{
	return (uint32_t)((size_bytes + STORE_GRANULE - 1) / STORE_GRANULE);
}
/* Returns the length of the CRC block of an object of size_bytes; 0 for one granule. */
static inline uint32_t
crc_block_bytes(uint64_t size_bytes)
{
	return size_bytes > STORE_GRANULE ? granules(size_bytes) * 8 : 0;
}
/* Returns the bytes on the disk of an object of size_bytes, with its CRC block. */
static inline uint64_t
stored_bytes(uint64_t size_bytes)
{
	return align_up(size_bytes, FMT_ALIGN) + align_up(crc_block_bytes(size_bytes), FMT_ALIGN);
}

/*
 * Packed objects are side by side in a unit, at steps of 64 bytes. A place has the unit in the upper 40 bits,
 * like an extent, and the step in the lower 24. A packed object has at most one granule, so it has no CRC
 * block.
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
/* Returns the size of the largest object of which two fit into a unit. */
static inline uint32_t
place_bytes_max(const struct geometry *g)
{
	return g->unit_bytes / 2 < STORE_GRANULE ? g->unit_bytes / 2 : STORE_GRANULE;
}

/* The whole pages that are read for the bytes at a place. */
struct place_pages {
	uint64_t ext;      /* the unit, as an extent */
	uint32_t off, len; /* offset and length in the unit, in bytes */
	uint32_t skew;     /* offset of the object's first byte after `off` */
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

/* One chunk of a manifest, as stored in a record. In an object made of parts: id is the upload's id, index
 * the part's number. */
struct chunk_ref {
	uint8_t id[CHUNK_ID_BYTES];
	uint32_t index;
	uint32_t reserved;
	uint64_t len_bytes;
	uint64_t crc64;
};
_Static_assert(sizeof(struct chunk_ref) == 40, "on-disk layout");

/* The location of a list that is too long for a record. The array of extents belongs to the owner of the
 * record. */
struct map_ref {
	const uint64_t *ext;
	uint32_t nr;
	uint32_t len_bytes;
	uint64_t crc64;
};
#define FMT_MAP_EXT_MAX 64u /* the longest list, of 10,000 parts, needs 25 units */

/* Most bytes of a map in one unit: the whole unit, except in the simulation, whose lists are short. */
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
/* Returns the bytes that a map of len bytes occupies on the disk, from its first unit on. */
static inline uint64_t
map_image_bytes(const struct geometry *g, uint32_t len)
{
	uint32_t whole = map_units(g, len) - 1;

	return (uint64_t)whole * g->unit_bytes + align_up(len - whole * map_unit_bytes(g), FMT_ALIGN);
}
/* Writes len bytes of entries to image, of map_image_bytes(), in their layout on the disk. */
void map_lay_out(void *image, const void *entries, uint32_t len, const struct geometry *g);
/* Reads len bytes of entries from image, in the layout of the disk; entries may be image. */
void map_take_in(void *entries, const void *image, uint32_t len, const struct geometry *g);

/* ---- record ---- */

enum rec_op { REC_PUT = 1, REC_DELETE = 2, REC_OP_NR };
/* Kinds of a record's body. PARTS: a list of parts, each a separate record whose body is a manifest (or
 * inline and empty). PACKED (format 3): an object at a place (one entry), to which the mover has moved the
 * bytes. */
enum rec_body { BODY_NONE, BODY_INLINE, BODY_EXTENTS, BODY_MANIFEST, BODY_PARTS, BODY_PACKED, BODY_NR };
/* Flags of records, which model/record.def describes. */
enum rec_flag {
#define FLAG(name, bit) REC_##name = bit,
#define OPTIONAL(name, flag, bit, kinds, places) REC_##flag = bit,
#include "model/record.def"
};
#define REC_COPIES_MAX 2
#define REC_HEAD_BYTES 96
#define REC_SUMS_MAX 128
#define REC_MORE_MAX 64 /* optional fields after the head */
/* Size of the largest record: a manifest with all optional fields (a chunk has an owner, but no
 * attributes). */
#define REC_MAP_BYTES 24u /* without the extents of REC_MAP_LIST */
#define REC_MAP_MAX (REC_MAP_BYTES + FMT_MAP_EXT_MAX * sizeof(uint64_t))
#define REC_ENTRIES_MAX (FMT_ENTRY_MAX * sizeof(struct chunk_ref))
#define REC_BYTES_MAX                                                                                        \
	(REC_HEAD_BYTES + REC_MORE_MAX + KEY_BYTES_MAX + STORE_ATTRS_MAX +                                   \
	 (REC_ENTRIES_MAX > REC_MAP_MAX ? REC_ENTRIES_MAX : REC_MAP_MAX) + REC_SUMS_MAX + 8)

/* A decoded record, with pointers into memory of its owner; model/record.def describes the fields. Entries are
 * 8-byte aligned: extents, a place (uint64_t) or struct chunk_ref. */
struct rec_view {
#define DISK(at) at
#define DISK_MORE 0
#define HERE(name, type, at) type name;
#include "model/record.def"
	struct map_ref map;
	const void *entries; /* NULL when mapped */
#define BYTES(name, type, len, len_type, max, kinds, places) const type *name;
#include "model/record.def"
};

/* Returns the encoded size of a record in bytes, a multiple of 8. */
size_t rec_encoded_bytes(const struct rec_view *v);
/* Encodes a record and returns the bytes written. buf has rec_encoded_bytes() bytes. */
size_t rec_encode(void *buf, const struct rec_view *v);
/* Returns the format version of superblocks with which readers know a record with these flags. */
uint32_t rec_version(uint16_t flags);
/* Decodes a record; buf is 8-byte aligned. Returns the number of bytes read, or -EBADMSG. geo: the extents
 * must be on the disk and cover the record's bytes. */
int rec_decode(const void *buf, size_t len, const struct geometry *geo, struct rec_view *ret_view);
/* Checks the entries read from a map, as rec_decode() checks the entries in a record. */
int rec_check_entries(const struct rec_view *v, const void *entries, const struct geometry *geo);
/* Returns the size of the map's reference in a record with these flags. */
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

/* The head of a block, as it lies on the disk. block_seal() sets magic, version and crc64; `zero` and `zeros` are 0. */
struct block_head {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;       /* enum block_kind */
	uint32_t len_bytes;  /* whole block, a multiple of FMT_ALIGN */
	uint32_t used_bytes; /* header and records */
	uint32_t record_nr, zero;
	uint64_t epoch, seq, lap, pos, prev_crc;
	uint64_t flushed_upto; /* blocks up to this sequence were flushed before this one was written */
	uint64_t new_epoch;    /* BLOCK_EPOCH: the epoch that begins after this block */
	uint8_t new_nonce[16];
	uint64_t zeros[3];
	uint64_t crc64; /* CRC of the block */
};
_Static_assert(sizeof(struct block_head) == BLOCK_HEAD_BYTES, "on-disk layout");

/* Seals a block: writes the header before the records at buf + BLOCK_HEAD_BYTES, and zeroes the padding. */
void block_seal(void *buf, struct block_head *h, const uint8_t nonce[16]);
/*
 * Opens the block at buf, of at most len bytes. Returns 0, or -ENOENT: the bytes do not begin like a block;
 * -EBADMSG: header invalid or CRC wrong under this nonce. The caller checks epoch, sequence and position.
 */
int block_open(const void *buf, size_t len, const uint8_t nonce[16], struct block_head *ret_head);
/* Returns the length in the header, before the whole block was read; 0: not a block. */
uint32_t block_peek(const void *buf);
/* Reads the header without a check. Returns false: the bytes do not begin like a block. */
bool block_claims(const void *buf, struct block_head *ret_head);

/* ---- snapshot block ---- */

#define SNAP_HEAD_BYTES 80

/* The head of a block, as it lies on the disk. snap_seal() sets magic, version and crc64; `zero` is 0. */
struct snap_head {
	uint32_t magic, version;
	uint8_t disk_uuid[16];
	uint64_t id; /* id of the snapshot */
	uint32_t index;
	uint32_t used_bytes, record_nr;
	uint32_t next_bytes; /* size of the next block's extent, not its used bytes */
	uint64_t next_ext;   /* extent of the next block; SNAP_LAST: this block is the last */
	uint64_t older_id;   /* id of the previous snapshot; 0: there is none */
	/* number of extents of the previous snapshot's chain, 8 bytes each, at the end of the used bytes */
	uint32_t older_nr;
	uint32_t zero;
	uint64_t crc64;
};
_Static_assert(sizeof(struct snap_head) == SNAP_HEAD_BYTES, "on-disk layout");
#define SNAP_LAST UINT64_MAX
#define SNAP_OLDER_BYTES 8u
/* A snapshot can be written to a disk whose free space is only single units. */
_Static_assert(REC_BYTES_MAX + SNAP_HEAD_BYTES <= FMT_UNIT_BYTES, "a record fits into a block of one unit");

/* Seals a block of len bytes on disk; the records begin at buf + SNAP_HEAD_BYTES, followed by the extents of
 * the previous snapshot, up to used_bytes. */
void snap_seal(void *buf, size_t len, struct snap_head *h);
/* Reads and checks the header of a block of len bytes. Returns 0, -ENOENT or -EBADMSG. */
int snap_open(const void *buf, size_t len, struct snap_head *ret_head);
/* Returns extent i of the previous snapshot's extents in the block. */
uint64_t snap_older(const void *buf, const struct snap_head *h, uint32_t i);

#endif
