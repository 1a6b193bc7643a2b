/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_int - the state of a transfer of a key between two engines, or of the removal of a key from one,
 * shared by send.c (the object, and the start), send_parts.c (objects made of parts), send_upload.c (uploads
 * in progress), send_bytes.c (bytes of objects and parts) and send_record.c (records, and the end). Each of
 * these files calls only those named after it. The target is the engine that is changed. All functions are
 * called on the thread that has the ports of both engines.
 */
#ifndef GANTRY_EXTENT_OBJECT_SEND_INT_H
#define GANTRY_EXTENT_OBJECT_SEND_INT_H

#include "extent/object/map.h"
#include "extent/object/put_int.h"
#include "extent/object/read_int.h"

#define SEND_SLICE 256 /* largest number of parts that are compared in one turn of the event loop */

struct send {
	struct store_send *s;
	/* ports of source and target; from NULL: there is no source, and the key is removed from the target */
	struct extent_port *from, *to;
	bool is_starting; /* true: the function that started the transfer has not returned yet */
	struct timer timer;
	struct msg msg;
	void (*next)(struct send *sd); /* step after the operation in progress */
	uint16_t key_len, upload_key_len;
	/* for an object made of parts: its record in the source, pinned until the object is complete in the
	 * target; the list of parts for the completion; and the list of parts as data */
	struct pin pin;
	const struct rec *whole;
	struct store_part_ref *parts;
	struct map_out map;
	/* id of the upload, or of the upload by which the object was made */
	uint8_t id[CHUNK_ID_BYTES];
	uint32_t at;           /* index in the object, or number in the upload, of the next part */
	bool has_id;           /* for uploads: true: `id` is an upload that was found */
	bool is_checking;      /* for a repair: true: the bytes in the target are being read */
	bool is_part;          /* for a repair: true: a part is being read; false: the object */
	uint64_t version;      /* for a repair: version of the record that is being read */
	uint64_t pin_id;       /* pin that readers of the object made of parts hold; 0: none */
	struct store_obj obj;  /* record whose bytes are being read */
	struct store_read rd;  /* read of a piece */
	struct store_put put;  /* PUT of the bytes in the target */
	struct store_write w;  /* write of a piece */
	struct put_sent ps;    /* record of the PUT, or of a commit without bytes: its kept fields */
	uint64_t off;          /* offset in bytes of the current piece */
	uint32_t len;          /* length in bytes of the current piece */
	struct pin record_pin; /* for a commit without bytes: pin on the record of the source */
	struct commit c;       /* commit without bytes */
	struct commit del;     /* removal of the upload in the same change as `c` */
	uint8_t key[KEY_BYTES_MAX], upload_key[KEY_BYTES_MAX], part_key[CHUNK_KEY_BYTES];
};

/* Returns the index of the source; NULL: there is no source. */
static inline const struct tree *
source(const struct send *sd)
{
	return sd->from ? sd->from->vp.vol->tree : NULL;
}

/* Returns the index of the target. */
static inline const struct tree *
target(const struct send *sd)
{
	return sd->to->vp.vol->tree;
}

/* ---- send_record.c ---- */

/* Returns the result of the transfer for an error of an operation of the target. */
int send_error(const struct send *sd, int error);
/* Ends the transfer with `result`, and releases its resources, including *sd. */
void send_finish(struct send *sd, int result);
/* Prepares sd->c as a change of the key `key` in the target. Returns sd->c. The caller keeps the key until
 * the end of the change. */
struct commit *send_record(struct send *sd, enum commit_kind kind, enum rec_op op, const uint8_t *key,
			   uint16_t key_len);
/* Removes the object from the target. */
void send_remove_object(struct send *sd, void (*next)(struct send *sd));
/* Makes the upload of sd->upload_key in the target, with a new version, which is later than the version of
 * the bucket. If the bucket of the target is replaced before the commit, the transfer ends with -EAGAIN. r: record
 * of the upload in the source; NULL: the source has no record of the upload any more. */
void send_make_upload(struct send *sd, const struct rec *r, void (*next)(struct send *sd));
/* Aborts the upload of sd->upload_key in the target. */
void send_abort_upload(struct send *sd, void (*next)(struct send *sd));
/* Gives the object in the target, which has the record `there`, the attributes and the version of the record
 * r of the source. */
void send_attrs(struct send *sd, const struct rec *r, const struct rec *there, void (*next)(struct send *sd));
/* Removes the part of sd->part_key from the target. The source does not have the part, so its
 * commit was never acknowledged. */
void send_remove_part(struct send *sd, void (*next)(struct send *sd));
/* Continues with next() in another turn of the event loop. */
void send_later(struct send *sd, void (*next)(struct send *sd));
/* Returns true if two records have the same bytes and metadata; the attributes may differ. */
bool send_same_bytes(const struct rec *r, const struct rec *there);

/* ---- send_bytes.c ---- */

/* Sends the object of the record r, or (is_part) the part of sd->part_key, with its bytes to the target. */
void send_bytes(struct send *sd, struct rec *r, bool is_part, void (*next)(struct send *sd));
/* Reads the object, or (is_part) the part of sd->part_key, whose record in the target is r. If the read
 * fails, sends the bytes from the source. */
void send_check(struct send *sd, struct rec *r, bool is_part, void (*next)(struct send *sd));

/* ---- send_upload.c ---- */

/* Returns the record of the upload of sd->upload_key in an index (NULL: an empty index), unless the upload
 * belongs to another bucket of the same name than the bucket of the target; NULL: there is no such upload. */
struct rec *send_get_upload(const struct send *sd, const struct tree *t);
/* Sets sd->id, and the id in sd->upload_key. */
void send_set_id(struct send *sd, const uint8_t *id);
/* Returns true if the target has the part of the record r of the source, with its bytes. there: record of the
 * target for the key of the part; NULL: it has none. */
bool send_has_part(const struct send *sd, const struct rec *r, const struct rec *there);
/* Sends all uploads in progress of the key, removes all other uploads of the key from the target, and ends
 * the transfer. */
void send_uploads(struct send *sd);
/* Sends the upload s->only_upload and nothing else, and ends the transfer. */
void send_only_upload(struct send *sd);

/* ---- send_parts.c ---- */

/* Sends, or repairs in the target, an object made of parts, which has the record r, and then the uploads. */
void send_parts(struct send *sd, struct rec *r);

#endif
