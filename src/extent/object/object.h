/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object - objects, uploads, buckets and lists on one volume: most of the engine's struct store_ops.
 *
 * Each function extent_*() implements the function store_*() of store.h with the same name. All functions are
 * called on the port's thread: they look up records in the published index, write pieces to the disk, and
 * submit commits to the leader (log/commit.h).
 */
#ifndef GANTRY_EXTENT_OBJECT_OBJECT_H
#define GANTRY_EXTENT_OBJECT_OBJECT_H

#include "extent/object/port.h"

void extent_close(struct store_port *p, struct store_obj *obj);
uint32_t extent_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
			  uint32_t *ret_skew);
int extent_read(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf,
		uint64_t off, uint32_t len);
int extent_put_init(struct store_port *p, struct store_put *put, const struct store_put_spec *spec);
int extent_put_write(struct store_port *p, struct store_put *put, struct store_write *w, struct buf *buf,
		     uint32_t len, bool last);
int extent_put_commit(struct store_port *p, struct store_put *put, const struct store_commit *c);
void extent_put_abort(struct store_port *p, struct store_put *put);

/* ---- changes: change.c, and upload.c for the completion of an upload, which extent_apply() calls ---- */

int extent_apply(struct store_port *p, const struct store_change *c, struct store_op *op);
int extent_complete(struct store_port *p, const struct store_change *c, struct store_op *op);

/* ---- the look-ups of extent_look(), one for each kind; op->port is set ---- */

int extent_open(struct store_port *p, const struct store_look *l, struct store_op *op);
int extent_open_part(struct store_port *p, const struct store_look *l, struct store_op *op);
int extent_upload_stat(struct store_port *p, const struct store_look *l, struct store_op *op);
int extent_list_parts(struct store_port *p, const struct store_look *l, struct store_op *op);
int extent_bucket_head(struct store_port *p, const struct store_look *l, struct store_op *op);
int extent_bucket_get_attrs(struct store_port *p, const struct store_look *l, struct store_op *op);
int extent_open_put(struct store_port *p, const struct store_look *l, struct store_op *op);

/* ---- parts and lists ---- */

int extent_obj_part(struct store_obj *obj, uint32_t nr, bool by_number, struct store_part *ret_part);
int extent_list(struct store_port *p, struct store_list *ls);

/* ---- of struct store_member_ops ---- */

int extent_walk(struct store_port *p, struct store_walk *w);
int extent_send(struct store_port *from, struct store_port *to, struct store_send *s);
int extent_copy_commit(struct store_port *to, struct store_put *put, struct store_port *from,
		       uint64_t version, const struct store_commit *sc);
int extent_slots(struct store_port *p, enum store_slots_act act, struct store_slots_op *o);

/* ---- functions for port.c ---- */

/* Allocates the cache of CRC blocks. Returns 0 or -ENOMEM. */
int crc_blocks_init(struct extent_port *p);
/* Frees the cache of CRC blocks. */
void crc_blocks_fini(struct extent_port *p);

/* ---- functions for the other files of this folder ---- */

/* Completes an operation immediately: sets its result, and returns 1. */
static inline int
finish(struct store_op *op, int result)
{
	op->result = result;
	return 1;
}

/* Returns true if the records r and `there` of two engines for one key are equal, except for the location of
 * their bytes. If the other engine has no record, `there` is NULL, and the result is false. Defined in
 * send_record.c. */
bool send_is_same(const struct rec *r, const struct rec *there);

/* Makes the id of a chunk list or of an upload: {0, epoch of the log, a counter}. The ids of any two calls
 * differ. */
void extent_new_id(struct vol *vol, uint8_t id[CHUNK_ID_BYTES]);
/* Returns the published record of a bucket; NULL: there is none. */
const struct rec *bucket_find(struct extent_port *p, const char *name, size_t len);
/* Finds the published record of an upload. Returns 0; -ENXIO if the bucket does not exist; -ENOENT if the
 * bucket has no such upload. */
int upload_find(struct vol *vol, const uint8_t *upload_key, size_t len, const struct rec **ret_rec);
/* Finds the upload of a look-up in the same way; also returns an error of the names. */
int upload_look(struct store_port *p, const struct store_look *l, const struct rec **ret_rec);

#endif
