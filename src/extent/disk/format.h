/*
 * What lies on a disk: superblock, log block, record, trailer, map extent, snapshot block; encoding, and
 * decoding with every bound checked.  Pure functions, any thread.  store.md sections 2-6 say why; all
 * integers are little endian.
 *
 * Decoders take hostile bytes: they return -EBADMSG, never read outside their buffer, and what they accept
 * obeys every limit named here.
 */
#ifndef GANTRY_EXTENT_DISK_FORMAT_H
#define GANTRY_EXTENT_DISK_FORMAT_H

#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FMT_VERSION 2u               /* written; 2: uploads, parts, attributes of buckets, shared extents */
#define FMT_VERSION_MIN 1u           /* and read: what it has means the same */
#define FMT_ALIGN 4096u              /* every I/O: offset, length, memory */
#define FMT_UNIT_BYTES (16u << 10)   /* allocation unit */
#define FMT_CHUNK_BYTES (64u << 20)  /* larger objects are manifests of chunks */
#define FMT_FLUSHED_BYTES (8u << 20) /* larger objects enter the log after a flush of their data */
#define FMT_BLOCK_MAX (1u << 20)     /* largest log block and snapshot block */
#define FMT_BLOCK_MIN (128u << 10)   /* and the least a disk may be made with: log block, log, segment */
#define FMT_LOG_MIN (4u << 20)
#define FMT_LOG_STEP (1u << 20)
#define FMT_SEG_MIN (8u << 20)
#define FMT_ENTRY_MAX 64u            /* extents or chunks named by a record itself; more go to a map extent */
#define FMT_MAP_ENTRY_MAX (1u << 20) /* sanity bound */
#define FMT_DISKS_MAX 64
#define FMT_SLOT_NR 4096
#define FMT_SUPER_BYTES (64u << 10)        /* one copy; two of them lie one after the other */
#define PART_BYTES_MAX ((uint64_t)1 << 48) /* sanity bound */
#define FMT_TRAILER_MAX (FMT_CHUNK_BYTES / STORE_GRANULE * 8)

/* ---- keys: type byte, then what the type says ---- */

#define KEY_BUCKET 'b' /* name */
#define KEY_OBJECT 'o' /* bucket, 0x00, key */
#define KEY_CHUNK 'c'  /* id (16), index (4, big endian) */
#define KEY_PART 'p'   /* of an upload: its id, the part's number; as a chunk's */
#define KEY_UPLOAD 'u' /* bucket, 0x00, key, 0x00, id */
#define KEY_BATTRS 'a' /* attributes of a bucket: its name, 0x00, '0' and up */
#define CHUNK_ID_BYTES 16
#define UPLOAD_TAIL_BYTES (1 + CHUNK_ID_BYTES)
#define BATTRS_NR 3u
#define BATTRS_BYTES (12u << 10) /* of one of these records */
#define KEY_BYTES_MAX (2 + STORE_BUCKET_MAX + STORE_KEY_MAX + UPLOAD_TAIL_BYTES)
#define CHUNK_KEY_BYTES (1 + CHUNK_ID_BYTES + 4)

/* Writes the key to buf (KEY_BYTES_MAX); the length, or -EINVAL (empty, NUL inside), -ENAMETOOLONG. */
int key_bucket(uint8_t *buf, const char *name, size_t len);
int key_object(uint8_t *buf, const struct store_key *k);
int key_chunk(uint8_t *buf, const uint8_t *id, uint32_t index);
int key_part(uint8_t *buf, const uint8_t *id, uint32_t number);
int key_upload(uint8_t *buf, const struct store_key *k, const uint8_t *id);
/* index: 0 to BATTRS_NR - 1. */
int key_battrs(uint8_t *buf, const uint8_t *bucket_key, size_t bucket_key_len, uint32_t index);
/* The index in a chunk's key, the number in a part's. */
uint32_t key_index(const uint8_t *chunk_key);
/* True for a well-formed key of any type. */
bool key_ok(const uint8_t *key, size_t len);
/* For messages: type and name, unprintable bytes as '?'.  Always terminated. */
void key_text(char *text, size_t cap, const uint8_t *key, size_t len);

/* ---- extents ---- */

/* First unit in the upper 40 bits, number of units in the lower 24. */
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

/* Granules of a record's bytes; its trailer's length (0 for one granule); all it takes on disk. */
static inline uint32_t
granules(uint64_t size_bytes)
{
	return (uint32_t)((size_bytes + STORE_GRANULE - 1) / STORE_GRANULE);
}
static inline uint32_t
trailer_bytes(uint64_t size_bytes)
{
	return size_bytes > STORE_GRANULE ? granules(size_bytes) * 8 : 0;
}
static inline uint64_t
stored_bytes(uint64_t size_bytes)
{
	return align_up(size_bytes, FMT_ALIGN) + align_up(trailer_bytes(size_bytes), FMT_ALIGN);
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

/* Where a list lies that a record cannot hold: one extent. */
struct map_ref {
	uint64_t ext;
	uint32_t len_bytes;
	uint64_t crc64;
};

/* ---- geometry: every number that shapes the disk ---- */

struct geometry {
	uint64_t size_bytes;  /* of the whole disk, as formatted */
	uint64_t log_bytes;   /* the ring */
	uint64_t seg_bytes;   /* a data segment */
	uint32_t seg_nr;      /* segments when all are made */
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
/* Not empty, and on the disk? */
bool ext_ok(uint64_t ext, const struct geometry *g);
/* Chooses the numbers for a disk of that size.  0 or -ENOSPC (too small). */
int geo_choose(uint64_t size_bytes, struct geometry *ret_geo);

/* ---- superblock ---- */

/* Where a log block is expected: all that says that it is the right one. */
struct log_pos {
	uint64_t seq, lap, pos; /* pos: bytes into the ring */
	uint64_t prev_crc;      /* of the block before */
	uint64_t epoch;
	uint8_t nonce[16];
};

struct snap_ref {
	uint64_t id;       /* grows; 0: none */
	uint64_t head_ext; /* first block of the chain; 0 blocks: an empty snapshot */
	uint32_t head_bytes;
	uint64_t block_nr, record_nr, bytes;
	uint64_t crc64;       /* over the CRCs of the blocks, in order */
	uint64_t version_max; /* newest version it holds, or before */
	struct log_pos begin; /* the log goes on here */
};

enum super_kind { SUPER_DIRECTORY = 1, SUPER_DEVICE = 2 };

struct super {
	uint64_t gen; /* grows with each writing; the newer good copy counts */
	uint8_t store_uuid[16], disk_uuid[16];
	enum super_kind kind;
	struct geometry geo;
	uint64_t epoch; /* the running one: replay must reach it */
	uint8_t nonce[16];
	struct snap_ref snap[2]; /* current, previous */
	uint64_t table_version;
	uint32_t disk, disk_nr;
	uint8_t disk_uuids[FMT_DISKS_MAX][16];
	uint8_t disk_state[FMT_DISKS_MAX];
	uint8_t slot[FMT_SLOT_NR]; /* hash(key) -> disk */
};

/* buf: FMT_SUPER_BYTES. */
void super_encode(void *buf, const struct super *sb);
/* 0; -ENOENT: no superblock of ours; -EBADMSG: ours, but damaged;
 * -EPROTONOSUPPORT: another format version. */
int super_decode(const void *buf, size_t len, struct super *ret_super);

/* ---- record ---- */

enum rec_op { REC_PUT = 1, REC_DELETE = 2, REC_OP_NR };
/* PARTS: of parts, each a record of its own, whose body is a manifest (or inline and empty). */
enum rec_body { BODY_NONE, BODY_INLINE, BODY_EXTENTS, BODY_MANIFEST, BODY_PARTS, BODY_NR };
#define REC_FLUSHED 1u /* the data was flushed before the record entered the log */
#define REC_MAPPED 2u  /* the entries lie in the map extent */
#define REC_SHARED 4u  /* an earlier record had the same extents; data_version is the first one's */
#define REC_HEAD_BYTES 96
#define REC_SUMS_MAX 128
/* The largest record there is: a manifest with all that it may have (a chunk has an owner, but no
 * attributes). */
#define REC_BYTES_MAX                                                                                        \
	(REC_HEAD_BYTES + KEY_BYTES_MAX + STORE_ATTRS_MAX + FMT_ENTRY_MAX * sizeof(struct chunk_ref) +       \
	 REC_SUMS_MAX + 8)

/* A record, with pointers into whoever holds it.  Entries are 8-byte aligned: extents (uint64_t) or struct
 * chunk_ref. */
struct rec_view {
	uint8_t op, body;
	uint16_t flags;
	uint16_t key_len, owner_len, sums_len, inline_len;
	uint32_t attrs_len, entry_nr;
	uint64_t version, size_bytes, mtime_ns, crc64;
	uint64_t data_version; /* REC_SHARED: what its readers pin */
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

size_t rec_encoded_bytes(const struct rec_view *v);
/* Returns the bytes written (a multiple of 8).  The caller made room of rec_encoded_bytes(). */
size_t rec_encode(void *buf, const struct rec_view *v);
/* buf is 8-byte aligned.  Returns the bytes taken, or -EBADMSG.  geo: extents must lie on the disk and cover
 * the bytes. */
int rec_decode(const void *buf, size_t len, const struct geometry *geo, struct rec_view *ret_view);
/* The entries of a map that was read: same checks as rec_decode() makes of a record's own. */
int rec_check_entries(const struct rec_view *v, const void *entries, const struct geometry *geo);
static inline size_t
rec_entry_bytes(uint8_t body)
{
	return body == BODY_EXTENTS                          ? sizeof(uint64_t)
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
 * The block at buf, of at most len bytes.  0, or -ENOENT: nothing here that says to be a block; -EBADMSG:
 * header impossible or CRC wrong under this nonce.  Does not judge epoch, sequence and position.
 */
int block_open(const void *buf, size_t len, const uint8_t nonce[16], struct block_head *ret_head);
/* Length that the header claims, before the whole block was read; 0: not a block. */
uint32_t block_peek(const void *buf);
/* The epoch that the header claims; of what block_peek() took for a block. */
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
	uint64_t crc64;
};
#define SNAP_LAST UINT64_MAX
/* A snapshot can be written to a disk of which only single units are left. */
_Static_assert(REC_BYTES_MAX + SNAP_HEAD_BYTES <= FMT_UNIT_BYTES, "a record fits into a block of one unit");

/* The block is len_bytes long on disk; records at buf + SNAP_HEAD_BYTES up to used_bytes. */
void snap_seal(void *buf, size_t len, struct snap_head *h);
int snap_open(const void *buf, size_t len, struct snap_head *ret_head);

#endif
