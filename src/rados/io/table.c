/* SPDX-License-Identifier: Apache-2.0 */
/* The table of buckets, an object of the meta pool: look-ups, attributes and quotas. */
#include "rados/io/table.h"

#include "base/check.h"
#include "base/clock.h"
#include "rados/io/rstore.h"
#include "rados/io/usage.h"

#include <errno.h>
#include <string.h>

#define THERE_NS NS_PER_S

/* ---- rows ---- */

void *
table_op_new(struct rport *p, size_t bytes, const char *name, size_t len, char kind)
{
	struct txn *t = calloc(1, bytes);

	if (!t)
		return NULL;
	t->port = p;
	if (txn_add_key(t, table_key('b', name, len).text, len + 1) < 0 ||
	    (kind && txn_add_key(t, table_key(kind, name, len).text, len + 1) < 0)) {
		txn_op_drop(t);
		return NULL;
	}
	t->bucket = t->key[0].key + 1;
	t->bucket_len = (uint16_t)len;
	return t;
}

int
table_row(const struct txn *t, struct bucket_row *ret_row)
{
	int e = t->key[0].old.p ? bucket_decode(t->key[0].old.p, t->key[0].old.len, ret_row) : -ENXIO;

	return e == 0 && ret_row->state == BUCKET_MAKING ? -ENXIO : e;
}

/* ---- decisions ---- */

/* A view of the rows that a transaction has read: key 0: the bucket; key 1: its attributes, or its quota. */
struct table_view {
	struct model_view view;
	const struct txn *txn;
	enum model_act act;
	bool has_object;
};

static int
find_bucket(const struct table_view *tv, struct model_record *ret_record)
{
	const struct bytes *value = &tv->txn->key[0].old;
	struct bucket_row row;
	int e = value->p ? bucket_decode(value->p, value->len, &row) : 0;

	if (!value->p || e < 0)
		return e;
	/* A bucket exists until its removal has ended; until then it can be neither created nor removed
	 * again. */
	if (row.state == BUCKET_ENDING ? tv->act != MODEL_SET_BUCKET_ATTRS
				       : row.state == BUCKET_MAKING && tv->act == MODEL_MAKE_BUCKET)
		return -EAGAIN;
	/* The attributes are removed together with their bucket, so all of them belong to it:
	 * the model accepts them, because the version of the bucket is given as 0. */
	*ret_record = (struct model_record){ .copies = 1 };
	return row.state != BUCKET_MAKING;
}

static int
find_attrs(const struct table_view *tv, struct model_record *ret_record)
{
	const struct bytes *value = &tv->txn->key[1].old;
	struct battrs b = { 0 };

	if (value->p && tv->txn->key[1].key[0] == 'a' && battrs_decode(value->p, value->len, &b) < 0)
		return -EBADMSG;
	*ret_record = (struct model_record){ .version = b.version };
	return value->p != NULL;
}

static int
find(struct model_view *v, enum model_kind kind, uint32_t number, struct model_record *ret_record)
{
	const struct table_view *tv = container_of(v, struct table_view, view);

	(void)number;
	return kind == MODEL_BUCKET ? find_bucket(tv, ret_record) : find_attrs(tv, ret_record);
}

static int
has_any(struct model_view *v, enum model_kind kind, uint64_t after)
{
	check(kind == MODEL_OBJECT);
	return container_of(v, struct table_view, view)->has_object;
}

bool
table_decide(struct txn *t, const struct model_op *op, bool has_object, struct model_answer *ret)
{
	struct table_view tv = { { find, has_any }, t, op->act, has_object };
	bool changes = model_decide(op, &tv.view, ret);

	t->result = ret->result;
	return changes;
}

/* ---- look-ups in the table ---- */

struct bucket_look {
	struct txn txn;
	void *attrs;
	uint32_t cap;
};

static enum txn_say
decide_look(struct txn *t)
{
	struct bucket_look *bl = container_of(t, struct bucket_look, txn);
	struct store_stat *stat = container_of(t->op, struct store_stat, op);
	const struct bytes *value = &t->key[1].old;
	struct battrs b = { 0 };
	struct bucket_row row;

	t->result = table_row(t, &row);
	if (t->result == 0 && value->p)
		t->result = battrs_decode(value->p, value->len, &b);
	if (t->result < 0)
		return TXN_OVER;
	quota_fill_stat(t->port->st->book, t->bucket, t->bucket_len, stat);
	stat->ctime_ns = row.ctime_ns;
	stat->copies = 1;
	stat->version = b.version;
	stat->attrs_len = b.attrs_len;
	if (bl->attrs && b.attrs_len)
		memcpy(bl->attrs, b.attrs, bl->cap < b.attrs_len ? bl->cap : b.attrs_len);
	return TXN_OVER;
}

int
rstore_bucket_look(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct bucket_look *bl = table_op_new(rport(sp), sizeof *bl, l->key.bucket, l->key.bucket_len,
					      l->kind == LOOK_BUCKET_ATTRS ? 'a' : 0);

	if (!bl)
		return -ENOMEM;
	bl->attrs = l->attrs;
	bl->cap = l->cap;
	return txn_op_start(&bl->txn, op, decide_look, txn_op_over);
}

bool
rstore_bucket_was_there(struct store_port *sp, const char *name, size_t len)
{
	struct rbucket *rb = rbucket_get(rport(sp)->st, name, len);
	bool was = rb && clock_ns() - atomic_load_explicit(&rb->there_ns, memory_order_relaxed) < THERE_NS;

	rbucket_release(rb);
	return was;
}

/* ---- attributes, quotas ---- */

/* Sets or removes the row of the attributes, or of the quota, which is key 1. */
struct set_op {
	struct txn txn;
	bool removes;
	uint64_t version;
	struct battrs docs;     /* owned by the caller */
	struct quota_plan plan; /* reserves space for the attributes */
	bool is_quota;
	struct store_use max;
};

static enum txn_say
decide_set(struct txn *t)
{
	struct set_op *so = container_of(t, struct set_op, txn);
	const struct model_op op = { .act = MODEL_SET_BUCKET_ATTRS,
				     .version = so->version,
				     .removes = so->removes };
	struct quota_book *book = t->port->st->book;
	struct model_answer a;
	bool changes = table_decide(t, &op, false, &a);
	void *value;

	/* decide() may run again: the plan of the last run ends. */
	quota_plan_end(book, 0, t->bucket, t->bucket_len, &so->plan);
	if (t->result == 0 && !so->is_quota)
		t->result =
			quota_plan(book, 0, t->bucket, t->bucket_len, false, so->docs.attrs_len, &so->plan);
	if (t->result < 0 || !changes)
		return TXN_OVER;
	if (so->removes) {
		txn_remove(t, 1);
		return TXN_COMMIT;
	}
	so->docs.version = next_version(a.old.version);
	value = txn_set(t, 1, so->is_quota ? BOUND_BYTES : battrs_bytes(so->docs.attrs_len));
	if (!value)
		return TXN_OVER;
	if (so->is_quota)
		bound_encode(value, &so->max);
	else
		battrs_encode(value, &so->docs);
	return TXN_COMMIT;
}

static void
on_set_over(struct txn *t)
{
	struct set_op *so = container_of(t, struct set_op, txn);
	struct rstore *st = t->port->st;

	if (t->result == 0 && so->is_quota)
		usage_bound(st, t->bucket, t->bucket_len, &so->max);
	else if (t->result == 0)
		usage_set_docs(st, t->bucket, t->bucket_len, so->docs.attrs_len);
	quota_plan_end(st->book, 0, t->bucket, t->bucket_len, &so->plan);
	txn_op_over(t);
}

int
rstore_bucket_set(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	bool is_quota = c->act == ACT_SET_QUOTA;
	struct set_op *so =
		table_op_new(rport(sp), sizeof *so, c->key.bucket, c->key.bucket_len, is_quota ? 'q' : 'a');

	if (!so)
		return -ENOMEM;
	so->is_quota = is_quota;
	so->removes = is_quota ? !quota_is_bound(c->max) : !c->attrs_len;
	so->version = is_quota ? STORE_VERSION_ANY : c->version;
	so->docs = (struct battrs){ .attrs = c->attrs, .attrs_len = c->attrs_len };
	if (is_quota)
		so->max = *c->max;
	return txn_op_start(&so->txn, op, decide_set, on_set_over);
}
