/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to the store on RADOS: objects, uploads and lists, made of calls of rados/io/. The thread of the port calls
 * these functions.
 */
#ifndef GANTRY_RADOS_USE_INT_H
#define GANTRY_RADOS_USE_INT_H

#include "rados/io/txn.h"

/* ---- decide.c: rows of a transaction, for the object model ---- */

/* A view of the rows that a transaction has read. Key 0 is the upload, for operations on uploads and
 * parts; the last key is the object or part. All fields are zero, except those that the caller sets. */
struct rows {
	struct model_view view;
	/* set by the caller */
	struct txn *txn;
	const struct rid *act;    /* id of the completion or abort that has closed the upload; NULL: none */
	struct model_view *parts; /* COMPLETE: the view of the parts */
	uint64_t upload_bytes;    /* COMPLETE, ABORT: usage of the parts, in bytes */
	/* set by rows_decide() if the row exists; valid as long as the values of the transaction */
	struct record old;
	struct upload upload;
	const struct record *replaced; /* old, if the operation sets or removes its record; otherwise NULL */
};

/* Decides an operation on an object, an upload or a part, for decide() of a transaction. Returns
 * TXN_COMMIT if the caller has to change rows, with the result and the change of the usage in the
 * transaction; TXN_OVER, with t->result; or TXN_AGAIN. */
enum txn_say rows_decide(struct rows *rows, const struct model_op *op);
/* Returns true if the record exists for readers: it has not expired. */
bool record_is_there(const struct record *r);

/* ---- upload.c: the row of an upload, key 0 of a transaction ---- */

/* Reads the row. Returns 0, -ENOENT or -EBADMSG. */
int upload_row(const struct txn *t, struct upload *ret_upload);
/* Sets the row: closed by `act`, or open (act is zero). Returns the result of decide(). */
enum txn_say upload_set(struct txn *t, struct upload *u, struct rid act);

/* ---- found.c: the parts of an upload that is completed or aborted ---- */

struct found;
struct found_parts {
	struct found *found;
	uint32_t nr;
	size_t cap;
	uint64_t bytes; /* usage of the parts, in bytes */
};
/* A view for the object model that has only the parts. Queries mark the parts that they find as used. */
struct found_view {
	struct model_view view;
	const struct found_parts *parts;
	uint32_t at; /* index of the next part; the numbers in queries ascend */
};

/* Adds the row of a part; the caller adds the rows in the order of the numbers, and the row is copied.
 * Returns 0, -ENOMEM or -EBADMSG. */
int found_add(struct found_parts *fp, const char *key, size_t key_len, const char *val, size_t val_len);
void found_free(struct found_parts *fp);
struct found_view found_view(const struct found_parts *fp);
/* Encodes the used parts for the record of the object; the caller frees the list. Returns 0 or -ENOMEM. */
int found_encode(const struct found_parts *fp, struct bytes *ret_list);
/* Adds to a change: removes the rows of all parts, and makes the data of unused parts garbage. Returns 0
 * or -errno. */
int found_remove(const struct found_parts *fp, struct txn *t, const uint8_t id[STORE_UPLOAD_ID_BYTES]);

/* ---- data.c: reads of data objects ---- */

/* A read of one data object, and of its trailer if the data object has one. */
struct data_read {
	struct call call;
	struct rid id;
	/* n: number of the data object; data_bytes: its size without trailer */
	uint32_t n, off, len, data_bytes;
	bool has_trailer;
	/* number of bytes of the trailer that are read together with the data, into the memory after the
	 * data */
	uint32_t along;
	char *to;
	uint8_t *trailer;
	size_t got, trailer_got;
	int rv, trailer_rv;
};

/* Prepares a read of up to len bytes, beginning at byte `from` of the data and ending in the same data
 * object. If all len bytes are in this data object and its trailer follows them, the trailer is read
 * together with them. */
void data_read_init(struct data_read *dr, const struct rstore *st, struct rid id, uint64_t size_bytes,
		    bool has_trailer, uint64_t from, uint32_t len);
/* Sends a read. trailer: memory of trailer_bytes(), used if the trailer is read separately. */
void data_read_send(struct rport *p, struct data_read *dr, char *to, uint8_t *trailer,
		    void (*back)(struct call *c));
/* Compares the data with the CRCs of the trailer, or, without a trailer, with those of the record. Returns 0; -EBADMSG:
 * the data is damaged or missing; or -errno. */
int data_read_check(const struct data_read *dr, const uint8_t *crcs);

/* Returns the length of the next read of data of the given size, as store_read_plan() does; the range
 * begins at `from`. */
uint32_t data_read_plan(const struct rstore *st, uint64_t size_bytes, uint64_t from, uint64_t want,
			uint32_t cap, uint32_t *ret_skew);

/* A read of the list of parts of an object, from its map. */
struct map_read {
	struct call call;
	struct bytes list;
	size_t got;
	int rv;
};
/* Sends a read; back() runs at its end, and the caller frees the list. Returns 0 or -ENOMEM. */
int map_read_send(struct rport *p, struct map_read *mr, const struct record *r, void (*back)(struct call *c));
/* Returns 0 if the list has the CRC in the record; -EBADMSG: it is damaged; or -errno of the read. */
int map_read_check(const struct map_read *mr, const struct record *r);

/* ---- ahead.c: reads in parallel with the look-up ---- */

#define AHEAD_MAX 64u /* maximum number of parallel reads of a port, of each kind */

struct ahead;

/* Begins to read the first `want` bytes of the object (0: the whole object, if it has at most one granule)
 * in parallel with the look-up of t. The cache (recall.c) has the names of the data objects. Returns NULL
 * if no read has begun. */
struct ahead *ahead_begin(struct txn *t, uint64_t want);
/* Compares the read with the record that the look-up has found (NULL: none), and caches the data objects
 * of the record. Returns a if it reads the data of the record; otherwise drops a and returns NULL. a may
 * be NULL. */
struct ahead *ahead_judge(struct ahead *a, const struct txn *t, const struct record *rec);
/* Drops a parallel read before or after its answer. a may be NULL. */
void ahead_drop(struct ahead *a);
/* Makes back() run when the answer arrives, which has not arrived yet. */
void ahead_await(struct ahead *a, void (*back)(void *cookie), void *cookie);
/* Uses a parallel read for a read of len bytes at off into buf. Returns 1 if the bytes are in buf, or in
 * *ret_instead, which replaces buf; 0: other bytes were read, the bytes are missing or damaged, or the
 * buffers are of different classes; -EINPROGRESS: the answer has not arrived. With 1 and 0 the parallel
 * read has ended. */
int ahead_take(struct ahead *a, struct buf *buf, uint64_t off, uint32_t len, const uint8_t *crcs,
	       struct buf **ret_instead);
/* Frees the buffers of a port. No read is in progress. */
void ahead_end(struct rport *p);

/* ---- calls of store.h, by file ---- */

int rstore_open_object(struct store_port *p, const struct store_look *l, struct store_op *op);
void rstore_close_object(struct store_port *p, struct store_obj *obj);
uint32_t rstore_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
			  uint32_t *ret_skew);
int rstore_read_object(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf,
		       uint64_t off, uint32_t len);
bool rstore_read_cancel(struct store_port *p, struct store_read *rd);
int rstore_obj_part(struct store_obj *obj, uint32_t nr, bool by_number, struct store_part *ret_part);

int rstore_put_init(struct store_port *p, struct store_put *put, const struct store_put_spec *spec);
int rstore_put_write(struct store_port *p, struct store_put *put, struct store_write *w, struct buf *buf,
		     uint32_t len, bool last);
bool rstore_write_cancel(struct store_port *p, struct store_write *w);
int rstore_put_commit(struct store_port *p, struct store_put *put, const struct store_commit *c);
void rstore_put_abort(struct store_port *p, struct store_put *put);

/* Deletes an object, or replaces its attributes. */
int rstore_change_object(struct store_port *p, const struct store_change *c, struct store_op *op);

int rstore_upload_create(struct store_port *p, const struct store_change *c, struct store_op *op);
int rstore_upload_stat(struct store_port *p, const struct store_look *l, struct store_op *op);
/* Aborts or completes an upload. */
int rstore_upload_close(struct store_port *p, const struct store_change *c, struct store_op *op);
int rstore_list_parts(struct store_port *p, const struct store_look *l, struct store_op *op);

int rstore_list(struct store_port *p, struct store_list *ls);

#endif
