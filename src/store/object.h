/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object - the operations on objects: open, read, PUT, removal, and replacement of attributes. Part of
 * store.h, which callers include.
 */
#ifndef GANTRY_STORE_OBJECT_H
#define GANTRY_STORE_OBJECT_H

#include "base/buf.h"
#include "store/op.h"

/* An opened and pinned version of an object. Its bytes stay until store_close(). */
struct store_obj {
	struct store_op op;
	/* size in bytes; this field and the following ones are valid after success */
	uint64_t size_bytes;
	uint64_t version; /* version of the object; every commit to the store gets a higher version */
	uint64_t crc64;   /* CRC64-NVME of the whole object */
	struct store_meta meta;
	bool is_open;
	bool has_second; /* true: store_open_second() may find a secondary copy */
	/* true: a read that finds damage waits for the repair of the damage, if a repair is possible. Set by
	 * the caller after the open. */
	bool mends_first;
	/* number of parts of the upload that made the object; 0: one PUT wrote the object */
	uint32_t part_nr;
	_Alignas(8) unsigned char priv[STORE_PRIV_OBJ]; /* private to the store */
};

/* Looks up and pins an object. Usually completes before it returns. */
int store_open(struct store_port *p, const struct store_key *k, struct store_obj *obj);
/* Opens the secondary copy of a key with two copies, for a scrub: other readers use this copy only if the
 * primary is damaged. Damage that the read finds is repaired after the read, one object at a time. -ENODATA:
 * there is no secondary copy, or it is being made. */
int store_open_second(struct store_port *p, const struct store_key *k, struct store_obj *obj);
/*
 * Opens a part of an upload in progress, to be read like an object. ETag, time and attributes are those of
 * the part. is_second: the secondary copy of the part is opened, as by store_open_second(). -ENOENT: the
 * upload or the part does not exist; -ENXIO: no such bucket; -EOPNOTSUPP: this back end cannot open parts.
 */
int store_open_part(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		    uint32_t number, bool is_second, struct store_obj *obj);
/* Opens an object as store_open() does, for a caller that reads immediately afterwards. A back end can then
 * combine the open and the first read, if they are separate round trips otherwise. want: number of bytes that
 * the caller reads from the beginning, or fewer if the object is smaller; 0: the whole object if it has one
 * granule, nothing otherwise. */
int store_open_to_read(struct store_port *p, const struct store_key *k, uint64_t want, struct store_obj *obj);
/* Closes an object that has no read in flight. NULL, and an object that was never open, are allowed. */
void store_close(struct store_port *p, struct store_obj *obj);

struct store_read {
	struct store_op op; /* operation of the read; result: number of bytes read, or -errno */
	/* offset in buf->mem of the first byte, valid after success; less than a page, and 0 except for small
	 * objects */
	uint32_t lead;
	/* Buffer with the bytes, after success, if the object was opened to be read with lent buffers. The
	 * reader then owns `instead`, and the store owns the buffer that was passed to store_read(); the two
	 * buffers are of one class and pool. NULL: the bytes are in the buffer that was passed to
	 * store_read(). */
	struct buf *instead;
	_Alignas(8) unsigned char priv[STORE_PRIV_READ];
};

/*
 * Plans the first read of a range of `want` bytes from off on (off + want <= size_bytes, want > 0) into a
 * buffer of cap bytes (a multiple of STORE_GRANULE). Returns the length of the read. The read begins
 * *ret_skew (< STORE_GRANULE) bytes before off, because checksums cover whole granules. After these bytes
 * come at least 1 byte and possibly more than `want` bytes from off on. In an object made of parts the
 * granules begin at each part, so reads may begin and end at any offset.
 */
uint32_t store_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
			 uint32_t *ret_skew);

/*
 * Reads [off, off + len) of obj to buf->mem + rd->lead. The CRCs of these bytes are verified before done().
 * The range is a result of store_read_plan(). (If part_nr is 0, another range is also valid: off is a
 * multiple of STORE_GRANULE, and the range ends at such a multiple or at the end of the object.) len <=
 * buf->cap_bytes; the slack after the buffer is used too. Reads of one object may overlap. -EINVAL: the range
 * is not valid.
 */
int store_read(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf,
	       uint64_t off, uint32_t len);
/*
 * Cancels a read that was started and has not completed, if the back end can. Returns true: the read has
 * ended, done() does not run, and the buffer is not written any longer. Returns false: no change, and the
 * store owns the buffer until done().
 */
bool store_read_cancel(struct store_port *p, struct store_read *rd);

/* Sets the owner ("asker") of all operations that begin after this call, and of the operations that these
 * operations cause. NULL: the owner never aborts look-ups. */
void store_asker(struct store_port *p, const void *asker);
/* Aborts look-ups of this asker that have taken longer than older_ns, as far as the back end can. done() of
 * an aborted look-up runs soon, with -EAGAIN. For requests that cannot wait any longer. */
void store_give_up(struct store_port *p, const void *asker, uint64_t older_ns);

/*
 * A PUT. The caller calls store_put_init(), then store_put_write() for each piece in order (several may be in
 * flight), and, after every write has completed, store_put_commit() or store_put_abort(). The last piece may
 * be passed to the commit; one flush then covers data and log.
 */
struct store_put {
	struct store_op op; /* operation of the commit; result 0: the object is durable and visible */
	struct store_carrier *carrier; /* private to the store (store/ops.h) */
	/* number of bytes in all pieces passed to store_put_write() so far, and the CRC of these bytes */
	uint64_t size_bytes;
	uint64_t crc64;
	/* version of the object, valid after success */
	uint64_t version;
	bool is_started;
	/* private to the store; the granule CRCs of a chunk are in a side buffer of the port */
	_Alignas(8) unsigned char priv[STORE_PRIV_PUT];
};

/*
 * Begins a PUT. size_bytes: size of the object, or STORE_SIZE_UNKNOWN.
 *   0
 *   -ENOSPC        no room for size_bytes
 *   -EROFS         the disk failed
 *   -EAGAIN        not possible now
 *   -ENXIO         no such bucket: an early answer, which the commit checks again
 *   -ENAMETOOLONG  bucket or key
 */
int store_put_init(struct store_port *p, struct store_put *put, const struct store_key *k,
		   uint64_t size_bytes);

struct store_write {
	struct store_op op; /* operation of the write; result: 0 (on the disk, not yet flushed) or -errno */
	_Alignas(8) unsigned char priv[STORE_PRIV_WRITE];
};

/* Writes the next len bytes of the object, from buf->mem: at most a piece, and a multiple of the granule
 * except for the last piece (store_limits()). The store owns the buffer until done(). After the data the
 * store may write padding and a CRC block into the slack of the buffer. May wait for space. */
int store_put_write(struct store_port *p, struct store_put *put, struct store_write *w, struct buf *buf,
		    uint32_t len, bool last);

struct store_commit {
	struct store_meta meta;
	struct store_pre pre;
	/* last: buffer with the last piece; NULL: all pieces were passed to store_put_write(). inline_data:
	 * all bytes of an object of at most STORE_INLINE_MAX bytes that has no pieces; copied during the
	 * call. */
	struct buf *last;
	uint32_t last_len;
	const void *inline_data;
	uint32_t inline_len;
	/* true: store_put_commit() returns -EILSEQ if the CRC64-NVME of the content differs from
	 * expect_crc64. */
	bool have_expect_crc64;
	uint64_t expect_crc64;
	/* Variable of the caller in which the store notes the time of clock_ns() of its last progress, while
	 * it writes the bytes again to another disk. Kept by the caller until the end of the commit. NULL:
	 * the time is not needed. */
	uint64_t *progress_ns;
};

/* Hands the PUT over to the store. Returns 0: the PUT can no longer be cancelled, and put->op.done() follows;
 * -errno: the PUT was not handed over, and the caller aborts it. *c is copied, but not the memory to which
 * its pointers lead (attrs, last, inline_data). */
int store_put_commit(struct store_port *p, struct store_put *put, const struct store_commit *c);
/* Abandons a write that has not completed. Returns true if the write was abandoned: done() does not run, the
 * caller owns the buffer, and the only further call for the PUT is store_put_abort(). Returns false if
 * nothing has changed. */
bool store_write_cancel(struct store_port *p, struct store_write *w);
/* Aborts a PUT and frees its space. Every write of the PUT has ended or was cancelled. NULL, a PUT that was
 * never started, and a call after the end of the commit are allowed. */
void store_put_abort(struct store_port *p, struct store_put *put);

struct store_del {
	/* operation of the removal; result: 1: the object was removed; 0: the object did not exist, or had expired and was
	 * removed (with PRE_EXPIRED: 1); or -errno */
	struct store_op op;
	_Alignas(8) unsigned char priv[STORE_PRIV_DEL];
};
int store_delete(struct store_port *p, const struct store_key *k, const struct store_pre *pre,
		 struct store_del *del);

/*
 * Replaces an object's attributes; bytes, ETag and mtime do not change, the version increases. version: the
 * version that the object must have; 0: any version. The caller keeps attrs until the end. Objects opened
 * earlier keep their attributes.
 *   0         durable
 *   -ENOENT   no such object (-ENXIO: nor bucket)
 *   -ESTALE   the object has another version
 *   -ENOSPC   no room for the attributes
 */
int store_set_attrs(struct store_port *p, const struct store_key *k, uint64_t version, const void *attrs,
		    uint32_t attrs_len, struct store_del *op);

#endif
