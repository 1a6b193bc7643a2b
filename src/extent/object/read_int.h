/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of reading, shared by read.c (objects and pieces) and CRC block.c (the cache of granule
 * checksums). */
#ifndef GANTRY_EXTENT_OBJECT_READ_INT_H
#define GANTRY_EXTENT_OBJECT_READ_INT_H

#include "extent/object/object.h"

/* A CRC block in memory, verified against its record. Cached by version and checksum: the pair is never
 * reused with other bytes. */
enum crc_block_state { CRC_BLOCK_EMPTY, CRC_BLOCK_LOADING, CRC_BLOCK_GOOD };
struct crc_block {
	struct list lru; /* while unused */
	struct crc_block *hash_next;
	uint64_t version; /* 0: none */
	uint64_t crc64;   /* of the record */
	uint32_t refs;
	enum crc_block_state state;
	struct list waiters;   /* reads */
	const struct rec *rec; /* while loading; pinned by the read that began it */
	struct xio x;
	uint64_t *crc; /* FMT_CRC_BLOCK_MAX bytes, aligned */
};

struct obj_int {
	struct pin pin;
	struct vol *vol;
	struct rec *rec; /* valid as long as the pin */
	void *mem;       /* memory of a record that is in no index; NULL: it is in one */
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
	uint32_t len, done; /* wanted; read and checked */
	/* the part in flight */
	const struct rec *rec;
	uint64_t seg_off; /* in rec */
	uint32_t seg_len;
	uint64_t unit; /* of a packed one, as an extent */
	bool has_tail; /* the CRC block follows the data, in the same read */
	bool data_done, crc_block_done;
	int error;
	struct crc_block *crc_block;
	struct list link; /* waits for a CRC block */
	struct xio x;
};

static inline struct obj_int *
obj_int(struct store_obj *obj)
{
	return (struct obj_int *)obj->priv;
}

/* Returns the record of a part that an object names; NULL: it is not there, or is another.  part.c */
const struct rec *part_record(const struct vol *vol, const struct chunk_ref *ref);
/* Returns the record of a chunk that a manifest names; NULL: it is not there, or is another.  whole.c */
const struct rec *chunk_record(const struct vol *vol, const struct chunk_ref *ref);
/* Returns true if all is there that a record names.  Of an object made of parts it looks at so many, from the
 * one of *at on, which becomes the next; there are entry_nr.  whole.c */
bool rec_is_whole(const struct vol *vol, const struct rec *r, uint32_t *at, uint32_t most);

/* Returns true if this CRC block belongs to that record. */
bool crc_block_fits(const uint64_t *crc, const struct rec *r);
/* Takes the CRC block of ri->rec into ri->crc_block.  1: it is there; 0: read_crc_block_done() will run;
 * -EAGAIN all are in use: ri waits, and is begun again when one is free. */
int crc_block_get(struct extent_port *p, struct read_int *ri);
void crc_block_put(struct extent_port *p, struct crc_block *t);

/* ---- read.c ---- */

/* Goes on with a read whose CRC block has come, or has not (error). */
void read_crc_block_done(struct read_int *ri, int error);
/* Begins the next segment of a read. */
void read_segment_begin(struct read_int *ri);

#endif
