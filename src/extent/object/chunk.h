/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk - the writer of one chunk, or of an object not larger than a chunk. A writer takes bytes, allocates
 * space, writes the bytes, makes the record, and hands the record over to the log. Writers are in the port's
 * pool; all functions are called on the port's thread. The space of a failed write is not used again until a
 * restart.
 */
#ifndef GANTRY_EXTENT_OBJECT_CHUNK_H
#define GANTRY_EXTENT_OBJECT_CHUNK_H

#include "extent/object/map.h"
#include "extent/object/port.h"

struct put_int;

/* Largest number of extents of a writer: one for each unit of a full chunk, and 64 more. */
#define WRITER_EXTENTS (FMT_CHUNK_BYTES / FMT_UNIT_BYTES + 64)
struct chunk_writer {
	struct chunk_writer *next; /* link in the list of the PUT's chunks that are being committed */
	struct extent_port *port;
	struct vol *vol;
	struct put_int *put;     /* PUT that owns the writer; NULL: the PUT was aborted */
	struct commit *commit;   /* commit that is notified when io_left is 0; NULL: not submitted yet */
	struct commit c;         /* commit of the record of a chunk */
	struct xio crc_block_io; /* write of the CRC block, if it is written separately */
	struct space_wait wait;  /* wait for the space of the CRC block */
	struct map_out map;
	uint64_t size_bytes; /* number of bytes taken so far */
	uint64_t crc64;
	uint64_t units; /* number of allocated units */
	uint32_t ext_nr, granule_nr;
	uint32_t io_left; /* number of writes in flight or waiting for space */
	/* -errno of a failed write; 0: no write has failed. The space of a failed write is not used again,
	 * because the write may still access this space. */
	int error;
	bool has_crc_block, is_closed, hand_over_when_written, close_when_written;
	uint32_t index; /* index of the chunk in its object */
	uint8_t key[CHUNK_KEY_BYTES];
	uint8_t owner[KEY_BYTES_MAX];
	/* Bytes that are written to disk, aligned for O_DIRECT. */
	_Alignas(FMT_ALIGN) uint64_t granule[FMT_CRC_BLOCK_MAX / 8];
	_Alignas(FMT_ALIGN) uint64_t ext[WRITER_EXTENTS];
};

/* Takes a writer from the pool. Returns NULL if all writers are in use. */
struct chunk_writer *writer_get(struct extent_port *p, struct put_int *put);
/* Adds len bytes at mem to the checksums and sizes, without writing them. Returns the CRC of the bytes. The
 * bytes must fit into the chunk. */
uint64_t writer_take(struct chunk_writer *w, const void *mem, uint32_t len);
/* Allocates space, so that the chunk has space for upto_bytes stored bytes in total. expect_bytes: final size
 * of the chunk in bytes; 0: unknown. Returns 0 or -ENOSPC. */
int writer_reserve(struct chunk_writer *w, uint64_t upto_bytes, uint64_t expect_bytes);
/* Copies the padded CRC block to mem. Returns its length in bytes; 0: the chunk has no CRC block. */
uint32_t writer_crc_block(struct chunk_writer *w, void *mem);
/* Ends the chunk: frees surplus space, and writes the CRC block and the map if the chunk needs them. Returns
 * 0; 1 if the CRC block or the map waits for space, so that writer_hand_over_later() must submit the record;
 * or the -errno of allocating space. */
int writer_close(struct chunk_writer *w);
/* Copies and writes the whole contents of a chunk that is not larger than an inline object. Returns 0 or
 * -ENOSPC. */
int writer_write_small(struct chunk_writer *w, const void *bytes, uint32_t len);
/* Begins to write the map to which the writer's next record refers. The caller has stored the list, of len
 * bytes, in the writer's array of extents. Returns 0; 1 if the map waits for space; or, without having begun,
 * the -errno of map_begin(). */
int writer_map_list(struct chunk_writer *w, uint32_t len);
/* Fills in the fields of the chunk's record, except the key and the map. */
void writer_view(const struct chunk_writer *w, struct rec_view *v);
/* Submits the record to the log. The record is submitted after the data is written if the record must follow
 * its data or if space is short; otherwise it is submitted immediately. */
void writer_hand_over(struct chunk_writer *w, struct commit *c);
/* Submits a chunk whose writes are in flight or wait for space. When these writes have completed, the chunk
 * is closed and its record is made. */
void writer_hand_over_later(struct chunk_writer *w, struct commit *c);
/* Handles the end of one write of the writer. */
void writer_io_done(struct chunk_writer *w, int error);
/* Returns a writer to the pool. give_back: true: the space of the writer is freed, except the space of a
 * failed write. */
void writer_put(struct chunk_writer *w, bool give_back);

#endif
