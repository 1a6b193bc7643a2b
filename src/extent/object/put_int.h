/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put_int - the state of a PUT, shared by put.c (pieces and commit), put_write.c (writes of pieces) and
 * large.c (objects of more than one chunk).
 */
#ifndef GANTRY_EXTENT_OBJECT_PUT_INT_H
#define GANTRY_EXTENT_OBJECT_PUT_INT_H

#include "extent/object/chunk.h"
#include "extent/object/object.h"

/* Largest number of chunks of a PUT. The list of chunks is in the memory of a chunk writer: enough for 52
 * GiB; S3 allows 5 GiB in one PUT. */
#define PUT_CHUNKS_MAX (WRITER_EXTENTS * sizeof(uint64_t) / sizeof(struct chunk_ref))

/* The write of those bytes of a piece that belong to one chunk. */
struct chunk_io {
	struct chunk_writer *w;
	char *mem;
	uint32_t off; /* offset in the chunk, in bytes */
	uint32_t len; /* length in bytes, with padding, and with the CRC block if there is one */
};

/* A piece being written, into one chunk or across the boundary of two chunks. */
struct write_int {
	struct put_int *pi;
	struct store_op *op; /* operation of the caller; NULL: the last piece, which came with the commit */
	struct buf *buf;
	struct space_wait wait;
	int error;
	uint8_t io_nr, at;
	struct chunk_io io[2];
	struct xio x;
};

/* The record of an object or a part that is copied from another disk. */
struct put_sent {
	const struct rec *rec; /* record at the source, pinned */
	struct commit_sent sent;
};

/* The secondary copy of a PUT. The secondary copy gets the same pieces as the primary copy. It is committed
 * after the primary copy, with version and attributes from the record of the primary copy. */
struct put_copy {
	/* port of the primary copy's engine; NULL: the primary copy is not committed yet */
	struct extent_port *from;
	struct pin pin; /* pin on the record of the primary copy */
	struct put_sent ps;
};

struct put_int {
	struct store_put *put;
	struct extent_port *port;
	struct vol *vol;
	struct chunk_writer *cw; /* writer that takes the next bytes */
	/* writer whose memory has the list of chunks (chunk_refs) of an object of more than one chunk */
	struct chunk_writer *list;
	struct chunk_writer *chunks; /* writers of chunks that are being committed to the log */
	uint32_t chunk_nr, chunks_inflight;
	uint32_t writes; /* number of pieces in flight */
	int error;       /* -errno of the first error, after which only an abort is possible; 0: no error */
	uint64_t expect_bytes;
	struct quota_hold hold; /* the reservation of this PUT's bytes in the quotas */
	/* time of the last progress of the commit, for the carrier (set/carry_put.c) */
	uint64_t *progress_ns;
	bool is_ended, is_committing, handed_over;
	/* true: the commit ended with -EXDEV, and the written data is kept for the carrier */
	bool is_carried;
	/* true: the PUT writes a part of an upload; the record of a part is always a manifest */
	bool is_part;
	/* object or part copied from another disk; NULL: the bytes come from a client */
	const struct put_sent *sent;
	struct put_copy copy;
	uint8_t id[CHUNK_ID_BYTES];
	struct commit c;
	const uint8_t *name; /* key of the object: `key`; or of the part's upload: `upload_key` */
	uint16_t key_len, name_len;
	/* write of the last piece; put_init() does not clear this field and the later ones */
	struct write_int last;
	uint8_t key[KEY_BYTES_MAX];
	uint8_t upload_key[KEY_BYTES_MAX];
	uint8_t inline_data[STORE_INLINE_MAX];
};

static inline struct put_int *
put_int(struct store_put *put)
{
	return (struct put_int *)put->priv;
}

/* ---- put.c ---- */

/* Begins a PUT of an object or part that is copied from another disk. Quotas are not applied, and the commit alone checks
 * bucket and upload. The caller keeps *ps until the PUT has ended. Returns 0, or an error of store_put_init(). */
int put_init_sent(struct extent_port *p, struct store_put *put, const struct store_put_spec *spec,
		  const struct put_sent *ps);
/* Returns the fields of a record that are kept when it is copied to another disk. */
static inline struct commit_sent
put_sent_of(const struct rec *r)
{
	return (struct commit_sent){
		.version = r->version,
#define OPTIONAL(name, flag, bit, kinds, places) .name = rec_optional(r, bit),
#include "model/record.def"
	};
}
/* Ends the operation of a PUT with `result`, on the thread of the PUT: releases its resources and calls
 * op.done(). If the result is -EXDEV, and the carrier of the PUT takes over the PUT (struct store_carrier),
 * does neither. */
void put_done(struct put_int *pi, int result);
/* Continues a commit after all writes of its last piece were started. Submits the record immediately if the
 * PUT consists of this piece and its record alone; otherwise put_last_written() submits it. */
void put_last_issued(struct put_int *pi);
/* Continues a commit after its last piece was written. Submits the record if put_last_issued() has not
 * submitted it; after an error ends the PUT. */
void put_last_written(struct put_int *pi);

/* ---- copy.c ---- */

/* Unpins the source of a secondary copy. Does nothing for other PUTs. */
void put_copy_over(struct put_int *pi);

/* ---- put_write.c ---- */

/* Begins to write a piece. Returns 0 if writes are in flight; 1 if the piece waits for space; or -errno if no
 * write was begun. After an error the PUT must be aborted. */
int put_write_begin(struct put_int *pi, struct write_int *wi);
/* Ends a piece without writing the rest of it: each chunk_io of the piece that is not written yet counts as
 * failed. The error of the piece is `error`, unless the piece has an error already. */
void put_write_give_up(struct write_int *wi, int error);

/* ---- large.c ---- */

/* Turns a PUT of a single run of bytes into a PUT of a manifest of chunks. Does nothing if the PUT has a
 * manifest already. */
void large_begin(struct put_int *pi);
/* Ends pi->cw as a complete chunk, because the chunk is full and more bytes follow. */
void large_chunk_full(struct put_int *pi);
/* Begins the commit of a large PUT: submits the last chunk to the log, and the manifest when the records of
 * all chunks are flushed. Called after all writes of the PUT were started. Returns 0. */
int large_hand_over(struct put_int *pi);
/* Releases all resources of the chunks after the operation has ended or was aborted with `result`. After an
 * error other than -ECANCELED no record refers to the chunks that are in the log, and garbage collection
 * frees these chunks. */
void large_done(struct put_int *pi, int result);

#endif
