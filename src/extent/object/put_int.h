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

/* The write of the part of a piece that belongs to one chunk. */
struct segment_io {
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
	uint8_t seg_nr, at;
	struct segment_io seg[2];
	struct xio x;
};

/* An object or a part that is copied from another disk, with its keys. The caller keeps all of it until the
 * end. */
struct put_sent {
	/* key in the index; upload_key: key of the upload of a part, otherwise NULL; bucket_key: key of the
	 * bucket */
	const uint8_t *key, *upload_key, *bucket_key;
	uint16_t key_len, upload_key_len, bucket_key_len;
	const struct rec *rec; /* record at the source, pinned */
	struct commit_sent sent;
};

/* The secondary copy of an object, made while the primary `from` has the object. */
struct put_copy {
	struct extent_port *from; /* port of the primary; NULL: the primary has not committed yet */
	struct pin pin;           /* pin on the record at the primary */
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
	int error;       /* first error; after an error only an abort is possible */
	uint64_t expect_bytes;
	struct quota_hold hold; /* the reservation of this PUT's bytes in the quotas */
	/* time of the last progress of the commit, for the carrier (set/carry_put.c) */
	uint64_t *progress_ns;
	bool is_ended, is_committing, handed_over;
	/* true: the commit ended with -EXDEV, and the written data is kept for the carrier */
	bool is_carried;
	bool is_part; /* true: the PUT writes a part of an upload, whose record is always a manifest */
	/* object or part copied from another disk; NULL: the bytes come from a client */
	const struct put_sent *sent;
	struct put_copy copy;
	uint8_t id[CHUNK_ID_BYTES];
	struct commit c;
	uint16_t key_len, bucket_key_len, upload_key_len;
	/* first field that put_init does not clear */
	struct write_int last;
	uint8_t bucket_key[1 + STORE_BUCKET_MAX];
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

/* Begins a PUT as extent_put_init() does, for an object from another disk. Quotas are not applied. */
int put_init_sent(struct extent_port *p, struct store_put *put, const struct put_sent *ps);
/* Begins a secondary copy of an object (id NULL) or of a part. */
int put_init_copy(struct extent_port *p, struct store_put *put, const struct store_key *k, const uint8_t *id,
		  uint32_t number, uint64_t size_bytes);
/* Returns the fields of a record that are kept when it is copied to another disk. */
static inline struct commit_sent
put_sent_of(const struct rec *r)
{
	struct commit_sent sent = { .version = r->version };
	struct rec_view v;

	if (r->flags & REC_SHARED)
		sent.data_version = rec_data_version(r);
	if (r->flags & REC_EXPIRES) {
		rec_view_of(r, NULL, 0, &v);
		sent.expires_ns = v.expires_ns;
	}
	return sent;
}
/* Ends the operation of a PUT, on the thread of the PUT. */
void put_done(struct put_int *pi, int result);
/* Continues after the writes of the last piece, which came with the commit, were started. Submits the commit
 * if this piece and its record are all that is to be written; otherwise put_last_written() does. */
void put_last_issued(struct put_int *pi);
/* Continues after the last piece was written. Submits the commit if it was not submitted yet. */
void put_last_written(struct put_int *pi);

/* ---- copy.c ---- */

/* Unpins the source of a secondary copy. Does nothing for other PUTs. */
void put_copy_over(struct put_int *pi);

/* ---- put_write.c ---- */

/* Begins to write a piece. Returns 0 if writes are in flight; 1 if the piece waits for space; or -errno if
 * nothing was begun. After an error the PUT must be aborted. */
int put_write_begin(struct put_int *pi, struct write_int *wi);
/* Abandons the remaining segments of a piece, which are not written. */
void put_write_give_up(struct write_int *wi, int error);

/* ---- large.c ---- */

/* Turns a PUT of a single run of bytes into a PUT of a manifest of chunks. */
void large_begin(struct put_int *pi);
/* Ends pi->cw as a complete chunk, because the chunk is full and more bytes follow. */
void large_chunk_full(struct put_int *pi);
/* Submits the last chunk and then the manifest, after all writes were started. */
int large_hand_over(struct put_int *pi);
/* Releases all resources of the chunks after the operation has ended or was aborted. After a result < 0 other
 * than -ECANCELED the chunks have no owner, and are collected. */
void large_done(struct put_int *pi, int result);

#endif
