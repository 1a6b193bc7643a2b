/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block - the log block that the leader fills, and then the one in flight.
 *
 * All fields belong to the leader, except `left` and `error`, which the end of a data write changes on any
 * thread.
 */
#ifndef GANTRY_EXTENT_LOG_BLOCK_H
#define GANTRY_EXTENT_LOG_BLOCK_H

#include "extent/log/rec_codec.h"
#include "ring/ring.h"

#include <stdatomic.h>

struct commit;
struct vol;

#define BLOCK_RECORDS_MAX 4096u
#define OVERLAY_SLOTS 1024u

struct block {
	char *mem; /* memory of the block, of geo.block_bytes */
	uint32_t used, records;
	uint32_t counted; /* number of records whose steps are counted (steps.h) */
	/* number of bytes of data that recovery may have to read because of the block */
	uint64_t data_bytes;
	struct commit *batch, **batch_end;     /* the block's records, in order */
	struct commit *after, **after_end;     /* commits whose answers wait for the flush of the block */
	struct commit *overlay[OVERLAY_SLOTS]; /* for each key in the block, its newest record */
	struct block_head head;
	struct ring_op op;
	uint8_t watched; /* watch_begin() */
	/* true: the first write failed because the kernel had no memory, or ended short, and was repeated */
	bool tried;
	uint64_t written_ns; /* time at which the block and all data were written; 0: not yet */
	_Atomic int left;    /* number of block and data writes in flight */
	_Atomic int error;   /* -errno of the first write that failed; 0: none has failed */
	int log_error;       /* -ENOSPC: the write of the block found no room; owned by the leader */
};

/* Empties the block. */
void block_reset(struct vol *vol);
/* Returns whether the block and the log have room for a record of that many bytes (0: for a stamp).
 * last_stand: true: the record may use the reserved end of the log. */
enum room { ROOM_YES, ROOM_NEXT_BLOCK, ROOM_LOG_FULL };
enum room block_room(const struct vol *vol, size_t rec_bytes, bool last_stand);
/* Encodes c->view into the block and links c. */
void block_pack(struct vol *vol, struct commit *c);
/* Returns the newest record of the block with this key; NULL: the block has no record of the key. */
struct commit *block_find(const struct vol *vol, const uint8_t *key, size_t len, uint32_t hash);
/* Returns the head of a block of this kind at a position in the log. */
struct block_head block_head_at(const struct log_pos *at, enum block_kind kind, uint32_t used_bytes,
				uint32_t record_nr);
/* Makes the head of the block for its position in the log, and seals the block. */
void block_make_head(struct vol *vol);
/* Moves pos to the position after the block; a block never crosses the end of the ring. */
void block_advance(struct log_pos *pos, const struct geometry *geo, const struct block_head *h);

#endif
