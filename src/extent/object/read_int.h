/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files that read: read.c (objects and pieces) and crc_block.c (the cache of
 * granule checksums). */
#ifndef GANTRY_EXTENT_OBJECT_READ_INT_H
#define GANTRY_EXTENT_OBJECT_READ_INT_H

#include "extent/object/object.h"

/* A CRC block in memory, verified against its record. Cached by version and checksum: the pair is never
 * reused with other bytes. */
enum crc_block_state { CRC_BLOCK_EMPTY, CRC_BLOCK_LOADING, CRC_BLOCK_GOOD };
struct crc_block {
	struct list lru; /* link of unused blocks */
	struct crc_block *hash_next;
	uint64_t version; /* 0: none */
	uint64_t crc64;   /* CRC of the record */
	uint32_t refs;
	enum crc_block_state state;
	struct list waiters;   /* reads that wait for the block */
	const struct rec *rec; /* record while LOADING, pinned by the read that began the load */
	struct xio x;
	uint64_t *crc; /* FMT_CRC_BLOCK_MAX bytes, aligned */
};

struct obj_int {
	struct pin pin;
	struct vol *vol;
	struct rec *rec; /* valid as long as the pin */
	void *mem;       /* memory of a record outside of any index; NULL: the record is in an index */
	/* For objects made of parts: the part of the last read, and its offset, as reading proceeds
	 * forward. */
	uint32_t hint;
	uint64_t hint_off;
};

/* One read: parts one after the other, as a range may touch two chunks. */
struct read_int {
	struct extent_port *port;
	struct store_read *rd;
	struct obj_int *obj;
	struct buf *buf;
	uint64_t off;
	uint32_t len, done; /* bytes requested; bytes read and checked */
	/* the part in flight */
	const struct rec *rec;
	uint64_t seg_off; /* offset of the part in flight in rec */
	uint32_t seg_len;
	uint64_t unit; /* unit of a packed record, as an extent */
	bool has_tail; /* the CRC block follows the data, in the same read */
	bool data_done, crc_block_done;
	int error;
	struct crc_block *crc_block;
	struct list link; /* link of reads that wait for a CRC block */
	struct xio x;
};

static inline struct obj_int *
obj_int(struct store_obj *obj)
{
	return (struct obj_int *)obj->priv;
}

/* Returns the record of a part that an object names; NULL: the part is absent, or has been replaced.
 * part.c */
const struct rec *part_record(const struct vol *vol, const struct chunk_ref *ref);
/* Returns the record of a chunk that a manifest names; NULL: the chunk is absent, or different. whole.c */
const struct rec *chunk_record(const struct vol *vol, const struct chunk_ref *ref);
/* Returns true if all chunks or parts that a record names exist. Checks at most `most` of an object's
 * entry_nr parts, from part *at on, and advances *at. whole.c */
bool rec_is_whole(const struct vol *vol, const struct rec *r, uint32_t *at, uint32_t most);

/* Returns true if a CRC block belongs to the record r. */
bool crc_block_fits(const uint64_t *crc, const struct rec *r);
/* Takes the CRC block of ri->rec into ri->crc_block. 1: taken; 0: read_crc_block_done() follows; -EAGAIN:
 * all CRC blocks are in use, and ri waits until one is free and then begins again. */
int crc_block_get(struct extent_port *p, struct read_int *ri);
void crc_block_put(struct extent_port *p, struct crc_block *t);

/* ---- read.c ---- */

/* Continues a read when its CRC block is loaded, or the load has failed (error). */
void read_crc_block_done(struct read_int *ri, int error);
/* Begins the next segment of a read. */
void read_segment_begin(struct read_int *ri);

#endif
