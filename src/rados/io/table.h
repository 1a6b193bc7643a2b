/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on buckets: rows of the table of buckets (table.c, bucket.c). */
#ifndef GANTRY_RADOS_IO_TABLE_H
#define GANTRY_RADOS_IO_TABLE_H

#include "rados/io/txn.h"

/* Allocates an operation of the given size, zeroed, whose first member is a transaction on the bucket's
 * row and (unless kind is 0) another row of the bucket. Returns NULL without memory. */
void *table_op_new(struct rport *p, size_t bytes, const char *name, size_t len, char kind);
/* Reads the row of the bucket, key 0. Returns 0; -ENXIO: no bucket; or -EBADMSG. */
int table_row(const struct txn *t, struct bucket_row *ret_row);
/* Decides an operation on the bucket, for decide() of a transaction. has_object: the bucket has an object.
 * Returns true if the caller has to change rows; false: t->result is the final result. */
bool table_decide(struct txn *t, const struct model_op *op, bool has_object, struct model_answer *ret);

/* ---- bucket.c, table.c: calls of store.h ---- */

int rstore_bucket_create(struct store_port *p, const struct store_change *c, struct store_op *op);
int rstore_bucket_delete(struct store_port *p, const struct store_change *c, struct store_op *op);
int rstore_bucket_look(struct store_port *p, const struct store_look *l, struct store_op *op);
bool rstore_bucket_was_there(struct store_port *p, const char *name, size_t len);
/* Sets the attributes or the quota of a bucket. */
int rstore_bucket_set(struct store_port *p, const struct store_change *c, struct store_op *op);

#endif
