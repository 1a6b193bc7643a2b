/* SPDX-License-Identifier: Apache-2.0 */
/* read_int - declarations shared by the files that read objects: read.c (objects and pieces) and crc_block.c
 * (the cache of granule checksums). */
#ifndef GANTRY_EXTENT_OBJECT_READ_INT_H
#define GANTRY_EXTENT_OBJECT_READ_INT_H

#include "extent/object/object.h"
#include "extent/log/parts.h"
#include "extent/log/recover.h"

/* States of a CRC block in memory. GOOD: the CRC block was verified against its record. The key of a CRC
 * block in the cache is the version and the checksum of its record; two records with different bytes never
 * have the same key. */
enum crc_block_state { CRC_BLOCK_EMPTY, CRC_BLOCK_LOADING, CRC_BLOCK_GOOD };
struct crc_block {
	struct list lru; /* link in the list of unused CRC blocks */
	struct crc_block *hash_next;
	uint64_t version; /* version of the record; 0: the CRC block is empty */
	uint64_t crc64;   /* CRC64 of the record */
	uint32_t refs;
	enum crc_block_state state;
	struct list waiters;   /* reads that wait until the CRC block is loaded */
	const struct rec *rec; /* record while the state is LOADING, pinned by the read that began the load */
	struct xio x;
	uint64_t *crc; /* checksums of the granules: FMT_CRC_BLOCK_MAX bytes, aligned */
};

struct obj_int {
	struct pin pin;
	struct vol *vol;
	struct rec *rec; /* record of the object; valid while it is pinned */
	void *mem;       /* memory of a record that is not in an index; NULL: the record is in an index */
	/* For objects made of parts: index and offset of the part that was read last, because reads usually
	 * proceed forward. */
	uint32_t hint;
	uint64_t hint_off;
};

/* A read. It reads one segment after the other, because its range may extend over several chunks or parts. */
struct read_int {
	struct extent_port *port;
	struct store_read *rd;
	struct obj_int *obj;
	struct buf *buf;
	uint64_t off;
	uint32_t len, done; /* number of bytes requested, and number of bytes read and verified */
	/* record of the chunk or part that is being read */
	const struct rec *rec;
	uint64_t seg_off; /* offset in bytes, in rec, of the segment that is being read */
	uint32_t seg_len;
	uint64_t unit; /* for a packed record: its allocation unit, as an extent */
	bool has_tail; /* true: the CRC block follows the data, and is read in the same operation */
	bool data_done, crc_block_done;
	int error;
	struct crc_block *crc_block;
	struct list link; /* link in a list of reads that wait for a CRC block */
	struct xio x;
};

static inline struct obj_int *
obj_int(struct store_obj *obj)
{
	return (struct obj_int *)obj->priv;
}

/* Returns true if all chunks or parts to which a record refers exist. For an object made of parts, checks at
 * most `most` parts, beginning with part *at, and advances *at. Defined in whole.c. */
bool rec_is_whole(const struct vol *vol, const struct rec *r, uint32_t *at, uint32_t most);

/* Takes a reference to the CRC block of ri->rec, and sets ri->crc_block. Returns 1 if the CRC block is in
 * memory; 0 if it is being loaded, and read_crc_block_done() follows; -EAGAIN if all CRC blocks are in use:
 * ri waits for a free one, and then begins its segment again. */
int crc_block_get(struct extent_port *p, struct read_int *ri);
void crc_block_put(struct extent_port *p, struct crc_block *t);

/* ---- read.c ---- */

/* Opens a published record, or one in no index, of an object or a part, and pins it. */
void obj_open(struct store_obj *obj, struct vol *vol, struct rec *r);

/* Continues a read after the load of its CRC block has ended. error: -errno of the load; 0: the CRC block is
 * loaded. */
void read_crc_block_done(struct read_int *ri, int error);
/* Begins the next segment of a read. */
void read_segment_begin(struct read_int *ri);

#endif
