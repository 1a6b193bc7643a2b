/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of omaps: of the index, and of the tables of buckets and of gateways (rows.c). */
#ifndef GANTRY_RADOS_IO_ROWS_H
#define GANTRY_RADOS_IO_ROWS_H

#include "rados/io/call.h"
#include "rados/io/codec.h"

struct rport;
struct rstore;

#define OMAP_PAGE 1000 /* number of entries in one request; the cluster returns at most 1024 */

/* Handles a row; key and value are valid until the return. Returns 0: continue; 1: stop; or -errno. */
typedef int (*row_fn)(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len);

/* Adds to a write: sets a row. */
static inline void
op_set(rados_write_op_t op, const char *key, const void *val, size_t len)
{
	const char *v = val;

	rados_write_op_omap_set(op, &key, &v, &len, 1);
}

/* Adds to a write: compares a row with a value, which is empty if the row must not exist. If they differ,
 * the whole write fails with -ECANCELED. */
static inline void
op_compare(rados_write_op_t op, const char *key, const void *val, size_t len)
{
	rados_write_op_omap_cmp(op, key, LIBRADOS_CMPXATTR_OP_EQ, val, len, NULL);
}

/* Adds to a write: removes a row. */
static inline void
op_remove(rados_write_op_t op, const char *key)
{
	rados_write_op_omap_rm_keys(op, &key, 1);
}

/* Returns a write that creates an object with one attribute, and fails if the object exists. */
static inline rados_write_op_t
op_new_object(const char *xattr, const void *bytes, size_t len)
{
	rados_write_op_t op = rados_create_write_op();

	rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
	rados_write_op_setxattr(op, xattr, bytes, len);
	return op;
}

/* Returns a write that changes the generation of a shard from one value to another. */
static inline rados_write_op_t
op_generation(uint64_t from, uint64_t to)
{
	rados_write_op_t op = rados_create_write_op();

	rados_write_op_cmpxattr(op, XATTR_GENERATION, LIBRADOS_CMPXATTR_OP_EQ, (const char *)&from,
				sizeof from);
	rados_write_op_setxattr(op, XATTR_GENERATION, (const char *)&to, sizeof to);
	return op;
}

/* ---- one row, read by a port ---- */

struct row_read {
	struct call call;
	rados_omap_iter_t iter;
	int rv;
	size_t len; /* length of the whole value */
	/* the beginning of the value; values read in this way are not longer, unless they are damaged */
	uint8_t val[BUCKET_ROW_BYTES];
};
/* Returns an operation that reads a row. Call row_read_end() after the operation. */
rados_read_op_t row_read_op(struct row_read *rr, const char *key);
/* Ends the read. Returns 1 with the value; 0: the row does not exist; or -errno. */
int row_read_end(struct row_read *rr);

/* ---- the rows of an object whose keys begin with a prefix, read by a port ---- */

struct scan {
	struct call call;
	rados_omap_iter_t iter;
	int rv;
	unsigned char more;
	const char *object, *prefix;
	/* key before the first row, set by the caller; row() may set a higher key */
	char after[OMAP_KEY_MAX];
	/* Maximum number of further rows that the caller wants; one more is read, to find out whether
	 * there are others. row() may set another number. */
	uint32_t left;
	row_fn row;
	void (*over)(struct scan *s, int e);
};
/* Begins to read rows; the caller owns object and prefix. The cookie of row() is the scan. over() always
 * runs, after the return, with 0, -errno of a read, or the first result of row() other than 0. */
void scan_begin(struct rport *p, struct scan *s, const char *object, const char *prefix, uint32_t left,
		row_fn row, void (*over)(struct scan *s, int e));

/* ---- any thread that may block ---- */

/* Calls row() for each row whose key begins with the prefix, in the order of the keys. Returns 0; -errno
 * of a read; or the first result of row() other than 0, which ends the iteration. */
int each_row(const struct rstore *st, const char *object, const char *prefix, row_fn row, void *cookie);
/* Reads the value of a row into a buffer. Returns its length; -ENOENT: the row does not exist; -EBADMSG:
 * the value is longer than cap; or another -errno. */
int read_value(const struct rstore *st, const char *object, const char *key, void *buf, size_t cap);
/* Reads a number in the table of gateways: "E": the epoch; "N": the instance number of the next gateway.
 * Returns 0 or -errno. */
int read_number(const struct rstore *st, const char *key, uint64_t *ret_number);
/* Reads the row of a bucket. Returns 0; -ENOENT: no bucket; -EBADMSG; or another -errno. */
int read_bucket_row(const struct rstore *st, const char *name, size_t len, struct bucket_row *ret_row);
/* Executes a write, and releases it. Returns the result. */
int write_now(rados_ioctx_t io, const char *object, rados_write_op_t op);
/* Raises the generation of a shard by one, and clears the bits `clears`. Returns 0; -EBADMSG: the shard has no
 * generation, or a damaged one; or another -errno. */
int raise_generation(const struct rstore *st, const char *shard, uint64_t clears);

#endif
