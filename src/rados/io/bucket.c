/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creation and removal of buckets.
 *
 * Creation: the row is set to "making", the shards are made, the row is set to "there". Removal: the row is
 * set to "ending", and the generation of every shard is closed, so that every change fails. If a shard has an
 * object, the shards are opened again. Otherwise the row is removed, and another row (doom()) remains, by
 * which the shards, with remaining uploads, are removed later.
 */
#include "rados/io/bucket.h"
#include "rados/io/table.h"

#include "base/check.h"
#include "base/clock.h"
#include "rados/io/fault.h"
#include "rados/io/rstore.h"
#include "rados/io/usage.h"

#include <errno.h>
#include <string.h>

#define SHARDS_AT_ONCE 16

struct bucket_op;

/* Calls for one shard; after its step is done, for the next shard. Several gates work at the same time. */
struct gate {
	struct call call;
	struct scan scan;
	struct bucket_op *bo;
	uint32_t n; /* number of the shard */
	struct label name;
	rados_xattrs_iter_t xattrs;
	int xattrs_rv;
};

struct bucket_op {
	struct txn txn; /* key 0: the row of the bucket */
	struct bucket_row row;
	struct battrs docs;                     /* creation; they are owned by the caller */
	struct quota_plan plan;                 /* creation */
	void (*step)(struct gate *g);           /* begins the step of one shard */
	void (*all_over)(struct bucket_op *bo); /* runs after the steps of all shards */
	uint32_t next, left;
	int result;    /* first error of the steps */
	int said;      /* result of the operation, kept while its steps are undone */
	bool is_found; /* a shard has an object */
	bool opens;    /* removal: the shards are opened again */
	struct gate gate[SHARDS_AT_ONCE];
};

static void
bucket_op_end(struct bucket_op *bo, int result)
{
	struct txn *t = &bo->txn;

	quota_plan_end(t->port->st->book, 0, t->bucket, t->bucket_len, &bo->plan);
	txn_op_end(t, result);
}

/* Returns true if the bucket's row is as this operation has set it. */
static bool
is_mine(struct bucket_op *bo, struct bucket_row *ret_row)
{
	struct txn *t = &bo->txn;

	*ret_row = (struct bucket_row){ 0 };
	return t->key[0].old.p && bucket_decode(t->key[0].old.p, t->key[0].old.len, ret_row) == 0 &&
	       rid_same(ret_row->uid, bo->row.uid) && ret_row->state != BUCKET_THERE &&
	       ret_row->instance == bo->row.instance;
}

static enum txn_say
set_row(struct txn *t, const struct bucket_row *row)
{
	void *value = txn_set(t, 0, BUCKET_ROW_BYTES);

	if (!value)
		return TXN_OVER;
	bucket_encode(value, row);
	return TXN_COMMIT;
}

/* Adds to a change of the bucket's row: sets another row of the bucket, or (value.p NULL) removes it. */
static int
set_other_row(struct txn *t, char kind, struct bytes value)
{
	return txn_more(t, table_key(kind, t->bucket, t->bucket_len).text, t->bucket_len + 1u, value);
}

/* Removes the row, the attributes and the quota of the bucket, and sets the row by which the shards are removed later. */
static enum txn_say
doom(struct txn *t, const struct bucket_row *row)
{
	struct bucket_row doomed = *row;
	const struct label key = doomed_key(row->uid);
	struct bytes value;

	if (!bytes_new(&value, BUCKET_ROW_BYTES)) {
		t->result = -ENOMEM;
		return TXN_OVER;
	}
	check(rid_same(row->uid, container_of(t, struct bucket_op, txn)->row.uid));
	doomed.state = BUCKET_ENDING;
	doomed.version = t->epoch;
	bucket_encode((uint8_t *)value.p, &doomed);
	t->result = txn_more(t, key.text, strlen(key.text), value);
	if (t->result == 0)
		t->result = set_other_row(t, 'a', (struct bytes){ 0 });
	if (t->result == 0)
		t->result = set_other_row(t, 'q', (struct bytes){ 0 });
	if (t->result < 0)
		return TXN_OVER;
	txn_remove(t, 0);
	return TXN_COMMIT;
}

/* Begins the step of the next shard. */
static void
next_shard(struct bucket_op *bo, struct gate *g)
{
	g->bo = bo;
	g->n = bo->next++;
	g->name = shard_name(bo->row.uid, g->n);
	bo->step(g);
}

/* Runs a step for each shard, for up to SHARDS_AT_ONCE shards at the same time. */
static void
each_shard(struct bucket_op *bo, void (*step)(struct gate *g), void (*all_over)(struct bucket_op *bo))
{
	check(bo->row.shards > 0 && bo->left == 0);
	bo->step = step;
	bo->all_over = all_over;
	bo->next = 0;
	bo->left = bo->row.shards;
	bo->result = 0;
	while (bo->next < bo->row.shards && bo->next < SHARDS_AT_ONCE)
		next_shard(bo, &bo->gate[bo->next]);
}

static void
gate_over(struct gate *g, int result)
{
	struct bucket_op *bo = g->bo;

	check(g->n < bo->next && bo->next <= bo->row.shards && bo->left > 0);
	if (result < 0 && bo->result == 0)
		bo->result = result;
	bo->left--;
	if (bo->next < bo->row.shards)
		next_shard(bo, g);
	else if (!bo->left)
		bo->all_over(bo);
}

static void
on_gate_written(struct call *c)
{
	gate_over(container_of(c, struct gate, call), c->result);
}

static void
gate_write(struct gate *g, rados_write_op_t op, void (*back)(struct call *c))
{
	call_write(g->bo->txn.port, &g->call, POOL_META, g->name.text, op, 0, back);
}

/* -- making -- */

static void
make_shard(struct gate *g)
{
	const uint64_t one = 1;

	gate_write(g, op_new_object(XATTR_GENERATION, &one, sizeof one), on_gate_written);
}

static enum txn_say
decide_there(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	struct bucket_row row;

	if (!is_mine(bo, &row)) {
		t->result = -EAGAIN;
		return TXN_OVER;
	}
	row.state = BUCKET_THERE;
	return set_row(t, &row);
}

static void
on_there(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	struct rstore *st = t->port->st;
	struct rbucket *rb;

	/* The usage of the bucket is counted from now on; the bucket is empty. */
	bo->row.state = BUCKET_THERE;
	rb = t->result == 0 ? rbucket_put_in(st, t->bucket, t->bucket_len, &bo->row) : NULL;
	rbucket_release(rb);
	if (rb && bo->docs.attrs_len)
		usage_set_docs(st, t->bucket, t->bucket_len, bo->docs.attrs_len);
	fault_point("bucket.made");
	bucket_op_end(bo, t->result);
}

static enum txn_say
decide_gone(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	struct bucket_row row;

	if (is_mine(bo, &row))
		return doom(t, &row);
	t->result = -EAGAIN;
	return TXN_OVER;
}

static void
on_undone(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);

	bucket_op_end(bo, bo->said);
}

static void
on_shards_made(struct bucket_op *bo)
{
	fault_point("bucket.shards_made");
	bo->said = result_of(bo->result);
	if (bo->result < 0)
		txn_again(&bo->txn, decide_gone, on_undone);
	else
		txn_again(&bo->txn, decide_there, on_there);
}

/* Adds the row of the attributes to the change of the bucket's row: no reader sees either before the bucket exists. */
static int
add_attrs(struct txn *t, const struct bucket_op *bo)
{
	struct bytes value;

	if (!bo->docs.attrs_len)
		return 0;
	if (!bytes_new(&value, battrs_bytes(bo->docs.attrs_len)))
		return -ENOMEM;
	battrs_encode(value.p, &bo->docs);
	return set_other_row(t, 'a', value);
}

static enum txn_say
decide_making(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	const struct model_op op = { .act = MODEL_MAKE_BUCKET };
	struct model_answer a;

	if (table_decide(t, &op, false, &a))
		t->result = add_attrs(t, bo);
	return t->result < 0 ? TXN_OVER : set_row(t, &bo->row);
}

static void
on_making(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);

	if (t->result < 0)
		bucket_op_end(bo, t->result);
	else
		each_shard(bo, make_shard, on_shards_made);
	fault_point("bucket.making");
}

static struct bucket_op *
bucket_op_new(struct rport *p, const struct store_change *c)
{
	struct bucket_op *bo = table_op_new(p, sizeof *bo, c->key.bucket, c->key.bucket_len, 0);

	if (!bo)
		return NULL;
	bo->row.version = clock_wall_ns();
	bo->row.instance = p->st->gw.instance;
	return bo;
}

int
rstore_bucket_create(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct rstore *st = rport(sp)->st;
	struct bucket_op *bo;
	int e;

	/* The cluster decides how many replicas a pool has. */
	if (c->copies > 1)
		return -EOPNOTSUPP;
	bo = bucket_op_new(rport(sp), c);
	if (!bo)
		return -ENOMEM;
	e = quota_plan(st->book, 0, c->key.bucket, c->key.bucket_len, true, c->attrs_len, &bo->plan);
	if (e == 0)
		e = gateway_id(st, &bo->row.uid);
	if (e < 0) {
		quota_plan_end(st->book, 0, c->key.bucket, c->key.bucket_len, &bo->plan);
		txn_op_drop(bo);
		return e;
	}
	gateway_id_over(st, bo->row.uid);
	bo->docs =
		(struct battrs){ .version = bo->row.version, .attrs = c->attrs, .attrs_len = c->attrs_len };
	bo->row.shards = st->index_shards;
	bo->row.state = BUCKET_MAKING;
	bo->row.ctime_ns = bo->row.version;
	return txn_op_start(&bo->txn, op, decide_making, on_making);
}

/* -- removing -- */

static void
on_opened(struct bucket_op *bo)
{
	fault_point("bucket.opened");
	txn_again(&bo->txn, decide_there, on_undone);
}

static void turn_gate(struct gate *g);

static void
on_gone(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	struct rbucket *rb = rbucket_get(t->port->st, t->bucket, t->bucket_len);

	if (rb) {
		if (rid_same(rb->row.uid, bo->row.uid))
			rbucket_drop(rb);
		rbucket_release(rb);
	}
	fault_point("bucket.gone");
	gateway_dirty(t->port->st, &t->port->st->buckets);
	bucket_op_end(bo, t->result);
}

static void
on_closed(struct bucket_op *bo)
{
	const struct model_op op = { .act = MODEL_REMOVE_BUCKET };
	struct model_answer a;

	fault_point("bucket.closed");
	if (bo->result == 0 && table_decide(&bo->txn, &op, bo->is_found, &a)) {
		txn_again(&bo->txn, decide_gone, on_gone);
		return;
	}
	bo->said = bo->result < 0 ? result_of(bo->result) : a.result;
	bo->opens = true;
	each_shard(bo, turn_gate, on_opened);
}

static int
on_object(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	return 1;
}

static void
on_gate_looked(struct scan *s, int e)
{
	struct gate *g = container_of(s, struct gate, scan);

	g->bo->is_found |= e > 0;
	gate_over(g, e);
}

static void
on_gate_set(struct call *c)
{
	struct gate *g = container_of(c, struct gate, call);

	if (c->result == -ECANCELED) {
		/* Another gateway, which cleans up after a dead one, has raised the generation. */
		turn_gate(g);
	} else if (c->result < 0 || g->bo->opens) {
		gate_over(g, c->result);
	} else {
		fault_point("bucket.shard_closed");
		g->scan.after[0] = 0;
		scan_begin(c->port, &g->scan, g->name.text, "o", 0, on_object, on_gate_looked);
	}
}

static void
on_gate_read(struct call *c)
{
	struct gate *g = container_of(c, struct gate, call);
	int e = c->result < 0 ? c->result : g->xattrs_rv;
	uint64_t was = 0;

	if (e >= 0)
		e = generation_of(g->xattrs, &was);
	rados_getxattrs_end(g->xattrs);
	if (e < 0 || (g->bo->opens && !(was & GENERATION_CLOSED)))
		gate_over(g, e);
	else
		gate_write(g,
			   op_generation(was, g->bo->opens ? (was & ~GENERATION_CLOSED) + 1
							   : (was + 1) | GENERATION_CLOSED),
			   on_gate_set);
}

/* Closes the shard, and searches it for objects; or opens it, if it is closed. */
static void
turn_gate(struct gate *g)
{
	rados_read_op_t op = rados_create_read_op();

	g->xattrs_rv = 0;
	rados_read_op_getxattrs(op, &g->xattrs, &g->xattrs_rv);
	call_read(g->bo->txn.port, &g->call, POOL_META, g->name.text, op, 0, on_gate_read);
}

static enum txn_say
decide_ending(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	const struct model_op op = { .act = MODEL_REMOVE_BUCKET };
	struct model_answer a;
	struct bucket_row row;

	/* The search for objects follows, after the shards are closed. */
	if (table_decide(t, &op, false, &a))
		t->result = table_row(t, &row);
	if (t->result < 0)
		return TXN_OVER;
	row.state = BUCKET_ENDING;
	row.instance = bo->row.instance;
	row.version = bo->row.version;
	bo->row = row;
	return set_row(t, &row);
}

static void
on_ending(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);

	fault_point("bucket.ending");
	if (t->result < 0)
		bucket_op_end(bo, t->result);
	else
		each_shard(bo, turn_gate, on_closed);
}

int
rstore_bucket_delete(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct bucket_op *bo = bucket_op_new(rport(sp), c);

	return bo ? txn_op_start(&bo->txn, op, decide_ending, on_ending) : -ENOMEM;
}
