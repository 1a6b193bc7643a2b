/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_read - reads the log of a disk block by block, through a window in memory: for a start, and for the reading of
 * structures while the volume serves (reread.h). Blocking; a reader belongs to one thread.
 */
#ifndef GANTRY_EXTENT_LOG_LOG_READ_H
#define GANTRY_EXTENT_LOG_LOG_READ_H

#include "extent/log/rec_codec.h"

struct disk;
struct ring;

struct log_reader {
	const struct disk *disk;
	struct ring *r;
	uint8_t *bytes; /* memory of the window */
	size_t size;    /* of this memory; at least FMT_ALIGN, and of every block that is opened */
	uint64_t at;    /* offset of the window in the log; it changes with every read */
	size_t len;     /* bytes of the log in the window */
	/* end of a range with a bad sector, in which only the requested bytes are read */
	uint64_t careful_until;
};

/* Brings len bytes of the log at pos into memory. Returns 0 or -errno. */
int log_window(struct log_reader *lr, uint64_t pos, size_t len, const uint8_t **ret_bytes);
/* Opens the block at pos. Returns 0; -ENOENT or -EBADMSG: there is no whole block; or the -errno of the read. */
int log_open(struct log_reader *lr, uint64_t pos, const uint8_t nonce[16], struct block_head *ret_head,
	     const uint8_t **ret_bytes);
/* Opens the block that is expected at a position. Returns 0; -ENOENT: the log ends there; or the -errno of the read. */
int log_next(struct log_reader *lr, const struct log_pos *at, struct block_head *ret_head,
	     const uint8_t **ret_bytes);
/* Returns true if this is, or claims to be, the block that is expected at a position. */
bool log_is_expected(const struct log_pos *at, const struct block_head *h);

#endif
