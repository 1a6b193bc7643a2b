/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The insides of a PUT, shared by put.c (pieces and commit), put_write.c (their writes) and large.c (objects
 * of more than one chunk).
 */
#ifndef GANTRY_EXTENT_OBJECT_PUT_INT_H
#define GANTRY_EXTENT_OBJECT_PUT_INT_H

#include "extent/object/chunk.h"
#include "extent/object/object.h"

/* Most chunks of a PUT, whose list is in a chunk writer's memory: 52 GiB; S3 allows 5 GiB in one PUT. */
#define PUT_CHUNKS_MAX (WRITER_EXTENTS * sizeof(uint64_t) / sizeof(struct chunk_ref))

/* The part of a piece that belongs to one chunk. */
struct segment_io {
	struct chunk_writer *w;
	char *mem;
	uint32_t off; /* in the chunk */
	uint32_t len; /* padded, with the CRC block if there is one */
};

/* One piece being written: in one chunk, or across the boundary of two. */
struct write_int {
	struct put_int *pi;
	struct store_op *op; /* NULL: the last piece, which came with the commit */
	struct buf *buf;
	struct space_wait wait;
	int error;
	uint8_t seg_nr, at;
	struct segment_io seg[2];
	struct xio x;
};

/* An object or a part copied from another disk, with its keys; the caller keeps all of it until the end. */
struct put_sent {
	const uint8_t *key, *upload_key, *bucket_key; /* upload_key: key of a part's upload; otherwise NULL */
	uint16_t key_len, upload_key_len, bucket_key_len;
	const struct rec *rec; /* record on the source, pinned */
	struct commit_sent sent;
};

/* The secondary copy of an object of `from`. */
struct put_copy {
	struct extent_port *from; /* NULL: not committed yet */
	struct pin pin;           /* pin on the source */
	struct put_sent ps;
};

struct put_int {
	struct store_put *put;
	struct extent_port *port;
	struct vol *vol;
	struct chunk_writer *cw; /* takes the next bytes */
	/* writer whose memory has the chunk_refs of an object of more than a chunk */
	struct chunk_writer *list;
	struct chunk_writer *chunks; /* chunks being committed to the log */
	uint32_t chunk_nr, chunks_inflight;
	uint32_t writes; /* pieces in flight */
	int error;       /* the first error: only an abort is possible */
	uint64_t expect_bytes;
	struct quota_hold hold; /* the reservation of this PUT's bytes in the quotas */
	/* time of the last progress of the commit, for the carrier (set/carry_put.c) */
	uint64_t *progress_ns;
	bool is_ended, is_committing, handed_over;
	bool is_carried; /* the commit ended with -EXDEV, and the written data is kept for the carrier */
	bool is_part;    /* a part of an upload: always a manifest */
	const struct put_sent *sent; /* NULL: from a client */
	struct put_copy copy;
	uint8_t id[CHUNK_ID_BYTES];
	struct commit c;
	uint16_t key_len, bucket_key_len, upload_key_len;
	/* put_init does not clear the fields from here on */
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

/* Begins as extent_put_init(), for an object from another disk: quotas are not applied. */
int put_init_sent(struct extent_port *p, struct store_put *put, const struct put_sent *ps);
/* Begins a secondary copy, of an object (id NULL) or a part. */
int put_init_copy(struct extent_port *p, struct store_put *put, const struct store_key *k, const uint8_t *id,
		  uint32_t number, uint64_t size_bytes);
/* Returns the fields of a record that stay when it is copied to another disk. */
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
/* Ends the operation, on its thread. */
void put_done(struct put_int *pi, int result);
/* Continues after the last piece, which came with the commit, was issued: submits the commit if allowed. */
void put_last_issued(struct put_int *pi);
/* Continues after the last piece is written: submits the commit, if not submitted yet. */
void put_last_written(struct put_int *pi);

/* ---- copy.c ---- */

/* Unpins the source of a secondary copy; does nothing without one. */
void put_copy_over(struct put_int *pi);

/* ---- put_write.c ---- */

/* Begins to write a piece. 0: in flight; 1: waits for space; or -errno, and nothing was begun (but the PUT
 * must be aborted). */
int put_write_begin(struct put_int *pi, struct write_int *wi);
/* Abandons the remaining segments: they are not written. */
void put_write_give_up(struct write_int *wi, int error);

/* ---- large.c ---- */

/* Turns the PUT into a manifest of chunks. */
void large_begin(struct put_int *pi);
/* Ends pi->cw as a chunk, because it is full and more bytes follow. */
void large_chunk_full(struct put_int *pi);
/* Submits the last chunk and then the manifest, when all writes are issued. */
int large_hand_over(struct put_int *pi);
/* Releases all resources when the operation has ended, or was aborted. result < 0 other than -ECANCELED: the
 * chunks have no owner. */
void large_done(struct put_int *pi, int result);

#endif
