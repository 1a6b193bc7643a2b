/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk - the writer of one chunk, or of an object that is not larger than one.
 *
 * Takes bytes, allocates space, and writes; makes the record, and hands it over. Writers are in the port's
 * pool. All of it on the port's thread. After a failed write its space is quarantined until a restart.
 */
#ifndef GANTRY_EXTENT_OBJECT_CHUNK_H
#define GANTRY_EXTENT_OBJECT_CHUNK_H

#include "extent/object/map.h"
#include "extent/object/port.h"

struct put_int;

/* One granule-checked run of bytes being written: an object up to a chunk, or one chunk of a larger one. From
 * the port's pool. */
#define WRITER_EXTENTS (FMT_CHUNK_BYTES / FMT_UNIT_BYTES + 64)
struct chunk_writer {
	/* link of free writers, or of the PUT's chunks that are being committed */
	struct chunk_writer *next;
	struct extent_port *port;
	struct vol *vol;
	struct put_int *put;     /* NULL: aborted */
	struct commit *commit;   /* commit that is notified at io_left == 0; NULL: not submitted yet */
	struct commit c;         /* commit of a chunk */
	struct xio crc_block_io; /* the write of the CRC block, if separate */
	struct space_wait wait;  /* wait for the space of a CRC block */
	struct map_out map;
	uint64_t size_bytes; /* bytes taken so far */
	uint64_t crc64;
	uint64_t units; /* number of allocated units */
	uint32_t ext_nr, granule_nr;
	uint32_t io_left; /* writes in flight or waiting for space */
	/* error of a write: the space of this write stays quarantined, because the write may still access
	 * it */
	int error;
	bool has_crc_block, is_closed, hand_over_when_written, close_when_written;
	uint32_t index; /* index of the chunk in the object */
	uint8_t key[CHUNK_KEY_BYTES];
	uint8_t owner[KEY_BYTES_MAX];
	/* Bytes to be written, aligned. */
	_Alignas(FMT_ALIGN) uint64_t granule[FMT_CRC_BLOCK_MAX / 8];
	_Alignas(FMT_ALIGN) uint64_t ext[WRITER_EXTENTS];
};

/* Makes the port's pool of writers. 0 or -ENOMEM. */
int writers_init(struct extent_port *p);
/* Frees the port's pool of writers. */
void writers_fini(struct extent_port *p);
/* Takes a writer from the pool; NULL: all are in use. */
struct chunk_writer *writer_get(struct extent_port *p, struct put_int *put);
/* Returns true if nr writers are free. */
bool writer_avail(const struct extent_port *p, unsigned nr);
/* Adds len bytes at mem to checksums and sizes, without a write, and returns the CRC of the bytes. The
 * bytes must fit into the chunk. */
uint64_t writer_take(struct chunk_writer *w, const void *mem, uint32_t len);
/* Allocates space for upto_bytes stored bytes in all; expect: final size of the chunk, if known. 0 or
 * -ENOSPC. */
int writer_reserve(struct chunk_writer *w, uint64_t upto_bytes, uint64_t expect_bytes);
/* Copies the CRC block to mem, padded, and returns its length (0: none). */
uint32_t writer_crc_block(struct chunk_writer *w, void *mem);
/* Ends the chunk: returns surplus space; writes CRC block and map if necessary. 0; 1: the CRC block or the
 * map waits for space, so the record is submitted by writer_hand_over_later(); or -errno. */
int writer_close(struct chunk_writer *w);
/* Copies and writes the whole contents of the chunk, of the size of an inline object. 0 or -ENOSPC. */
int writer_write_small(struct chunk_writer *w, const void *bytes, uint32_t len);
/* Writes the first len bytes of w's array of extents, which contains another list, as the map of the record
 * that w hands over next. 0 or -errno. */
int writer_map_list(struct chunk_writer *w, uint32_t len);
/* Fills in the fields of the record of w, except the key and the map. */
void writer_view(const struct chunk_writer *w, struct rec_view *v);
/* Submits the record as soon as the rules allow: immediately, or when the data is written. */
void writer_hand_over(struct chunk_writer *w, struct commit *c);
/* Submits a chunk with writes in flight or waiting for space: the chunk is closed and its record made when
 * these writes have completed. */
void writer_hand_over_later(struct chunk_writer *w, struct commit *c);
/* Ends one write of w. */
void writer_io_done(struct chunk_writer *w, int error);
/* Returns w to the pool. give_back: frees the space of w, too. */
void writer_put(struct chunk_writer *w, bool give_back);

#endif
