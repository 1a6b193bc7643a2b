/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of store.h that begin with a transaction: their memory, begin and end. */
#include "rados/io/txn.h"

#include "base/check.h"
#include "rados/io/rstore.h"

#include <string.h>

void *
txn_op_new(struct rport *p, size_t bytes, const struct store_key *k, const uint8_t *upload_id,
	   bool has_object)
{
	char *op = calloc(1, bytes + k->bucket_len + k->key_len), key[OMAP_KEY_MAX];
	struct txn *t = (struct txn *)op;
	int e = 0;

	check(bytes >= sizeof *t && k->bucket_len <= STORE_BUCKET_MAX && k->key_len <= STORE_KEY_MAX);
	if (!op)
		return NULL;
	t->port = p;
	t->bucket = memcpy(op + bytes, k->bucket, k->bucket_len);
	t->bucket_len = k->bucket_len;
	t->object = memcpy(op + bytes + k->bucket_len, k->key, k->key_len);
	t->object_len = k->key_len;
	if (upload_id)
		e = txn_add_key(t, key, key_upload(key, k->key, k->key_len, upload_id));
	if (e == 0 && has_object)
		e = txn_add_key(t, key, key_object(key, k->key, k->key_len));
	if (e == 0)
		return op;
	txn_op_drop(op);
	return NULL;
}

void
txn_op_drop(void *op)
{
	if (op)
		txn_fini(op);
	free(op);
}

int
txn_op_start(struct txn *t, struct store_op *op, enum txn_say (*decide)(struct txn *t),
	     void (*over)(struct txn *t))
{
	op->port = &t->port->base;
	t->op = op;
	t->port->inflight++;
	t->decide = decide;
	t->over = over;
	txn_start(t->port, t);
	return 0;
}

void
txn_op_end(struct txn *t, int result)
{
	struct rport *p = t->port;
	struct store_op *op = t->op;

	txn_op_drop(t);
	rop_end(p, op, result);
}

void
txn_op_over(struct txn *t)
{
	txn_op_end(t, t->result);
}

void
txn_again(struct txn *t, enum txn_say (*decide)(struct txn *t), void (*over)(struct txn *t))
{
	struct txn next = { .port = t->port,
			    .op = t->op,
			    .decide = decide,
			    .over = over,
			    .bucket = t->bucket,
			    .object = t->object,
			    .bucket_len = t->bucket_len,
			    .object_len = t->object_len,
			    .key_nr = t->key_nr };

	for (int i = 0; i < t->key_nr; i++) {
		next.key[i] = (struct txn_key){ .key = t->key[i].key, .len = t->key[i].len };
		t->key[i].key = NULL;
	}
	txn_fini(t);
	*t = next;
	txn_start(t->port, t);
}
