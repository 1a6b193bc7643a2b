/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creation and removal of buckets.
 *
 * Creation: the row is set to "making", the shards are made, the row is set to "there". Removal: the row is set to
 * "ending", and the generation of every shard is closed, so that no change passes. If a shard has an object, the
 * shards are opened again; else the row is removed, and another row (doom()) remains, by which the shards and the
 * leftovers of uploads in them are removed later.
 */
#include "rados/io/rados_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define SHARDS_AT_ONCE 16

struct bucket_op;

/* The steps of one shard; its calls follow each other. */
struct gate {
	struct call call;
	struct page page;
	struct bucket_op *bo;
	uint32_t n;
	rados_xattrs_iter_t xattrs;
	int xattrs_rv;
	uint64_t generation; /* the generation of the shard as read, later as set */
};

struct bucket_op {
	struct txn txn;
	struct model_view view; /* removal: of the bucket, after its shards were closed */
	struct store_del *op;
	struct rport *port;
	char name[STORE_BUCKET_MAX];
	uint8_t name_len;
	struct bucket_row row;
	const void *attrs; /* creation: attributes, owned by the caller */
	uint32_t attrs_len;
	struct quota_plan plan;                 /* creation */
	void (*step)(struct gate *g);           /* begins the step of one shard */
	void (*all_over)(struct bucket_op *bo); /* runs after the steps of all shards */
	uint32_t next, left;
	int result;    /* of the steps: the first error */
	int said;      /* result of the operation, while the operation is undone */
	bool is_found; /* a shard has an object */
	struct gate gate[];
};

static void
bucket_op_end(struct bucket_op *bo, int result)
{
	struct rport *p = bo->port;
	struct store_op *op = &bo->op->op;

	quota_plan_end(p->st->book, 0, bo->name, bo->name_len, &bo->plan);
	txn_fini(&bo->txn);
	free(bo);
	rop_end(p, op, result);
}

/* Begins another change of the row, after the change before has ended. */
static void
change_row(struct bucket_op *bo, enum txn_say (*decide)(struct txn *t), void (*over)(struct txn *t))
{
	txn_fini(&bo->txn);
	memset(&bo->txn, 0, sizeof bo->txn);
	bo->txn.decide = decide;
	bo->txn.over = over;
	if (table_add_key(&bo->txn, 'b', bo->name, bo->name_len) < 0) {
		bo->txn.result = -ENOMEM;
		bo->txn.port = bo->port;
		over(&bo->txn);
		return;
	}
	txn_start(bo->port, &bo->txn);
}

/* Returns true if the row is as this operation has set it. */
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

/* Removes the row, the attributes and the quota of the bucket, and sets the row by which the shards are removed later. */
static enum txn_say
doom(struct txn *t, const struct bucket_row *row)
{
	struct bucket_row doomed = *row;
	char key[2 + STORE_BUCKET_MAX], text[RID_TEXT];
	struct bytes value;
	int e;

	if (!bytes_new(&value, BUCKET_ROW_BYTES)) {
		t->result = -ENOMEM;
		return TXN_OVER;
	}
	check(rid_same(row->uid, container_of(t, struct bucket_op, txn)->row.uid));
	doomed.state = BUCKET_ENDING;
	doomed.version = t->epoch;
	bucket_encode((uint8_t *)value.p, &doomed);
	rid_text(text, row->uid);
	key[0] = 'd';
	memcpy(key + 1, text, sizeof text);
	e = txn_more(t, key, strlen(key), value);
	if (e == 0) {
		struct bucket_op *bo = container_of(t, struct bucket_op, txn);

		table_key(key, 'a', bo->name, bo->name_len);
		e = txn_more(t, key, bo->name_len + 1u, (struct bytes){ 0 });
		table_key(key, 'q', bo->name, bo->name_len);
		if (e == 0)
			e = txn_more(t, key, bo->name_len + 1u, (struct bytes){ 0 });
	}
	t->result = e;
	if (e < 0)
		return TXN_OVER;
	txn_remove(t, 0);
	return TXN_COMMIT;
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
	while (bo->next < bo->row.shards && bo->next < SHARDS_AT_ONCE) {
		struct gate *g = &bo->gate[bo->next];

		g->bo = bo;
		g->n = bo->next++;
		step(g);
	}
}

static void
gate_over(struct gate *g, int result)
{
	struct bucket_op *bo = g->bo;

	check(g->n < bo->next && bo->next <= bo->row.shards && bo->left > 0);
	if (result < 0 && bo->result == 0)
		bo->result = result;
	if (bo->next < bo->row.shards) {
		struct gate *next = &bo->gate[bo->next];

		next->bo = bo;
		next->n = bo->next++;
		bo->left--;
		bo->step(next);
	} else if (--bo->left == 0) {
		bo->all_over(bo);
	}
}

static void
on_gate_written(struct call *c)
{
	gate_over(container_of(c, struct gate, call), c->result);
}

static void
gate_write(struct gate *g, rados_write_op_t op, void (*back)(struct call *c))
{
	char name[64];

	shard_name(name, g->bo->row.uid, g->n);
	call_write(g->bo->port, &g->call, POOL_META, name, op, 0, back);
}

/* -- making -- */

static void
make_shard(struct gate *g)
{
	rados_write_op_t op = rados_create_write_op();
	uint64_t generation = 1;

	rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
	rados_write_op_setxattr(op, XATTR_GENERATION, (const char *)&generation, sizeof generation);
	gate_write(g, op, on_gate_written);
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
	struct rbucket *rb;

	/* The usage of the bucket is counted from now on; the bucket is empty. */
	bo->row.state = BUCKET_THERE;
	rb = t->result == 0 ? rbucket_put_in(bo->port->st, bo->name, bo->name_len, &bo->row) : NULL;
	if (rb)
		rbucket_release(rb);
	if (rb && bo->attrs_len)
		usage_set_docs(bo->port->st, bo->name, bo->name_len, bo->attrs_len);
	fault_point("bucket.made");
	bucket_op_end(bo, t->result);
}

static enum txn_say
decide_not_made(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	struct bucket_row row;

	if (is_mine(bo, &row))
		return doom(t, &row);
	t->result = 0;
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
		change_row(bo, decide_not_made, on_undone);
	else
		change_row(bo, decide_there, on_there);
}

/* Adds the row of the attributes to the change of the bucket's row: no reader sees either before the bucket exists. */
static int
add_attrs(struct txn *t, const struct bucket_op *bo)
{
	char key[2 + STORE_BUCKET_MAX];
	struct bytes value;

	if (!bo->attrs_len)
		return 0;
	if (!bytes_new(&value, battrs_bytes(bo->attrs_len)))
		return -ENOMEM;
	battrs_encode(value.p, clock_wall_ns(), bo->attrs, bo->attrs_len);
	table_key(key, 'a', bo->name, bo->name_len);
	return txn_more(t, key, bo->name_len + 1u, value);
}

static enum txn_say
decide_making(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	const struct model_op op = { .act = MODEL_MAKE_BUCKET };
	struct model_answer a;

	if (table_decide(t, &op, &a))
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
bucket_op_new(struct rport *p, const char *name, size_t len, struct store_del *op, uint32_t shards)
{
	struct bucket_op *bo = calloc(1, sizeof *bo + shards * sizeof bo->gate[0]);

	if (!bo)
		return NULL;
	bo->port = p;
	bo->op = op;
	bo->name_len = (uint8_t)len;
	memcpy(bo->name, name, len);
	bo->row.shards = shards;
	bo->row.instance = p->st->gw.instance;
	return bo;
}

int
rstore_bucket_create(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	const char *name = c->key.bucket;
	size_t len = c->key.bucket_len;
	struct rport *p = rport(sp);
	struct bucket_op *bo;
	int e;

	/* The cluster decides how many replicas a pool has. */
	if (c->copies > 1)
		return -EOPNOTSUPP;
	op->port = sp;
	bo = bucket_op_new(p, name, len, container_of(op, struct store_del, op), p->st->index_shards);
	if (!bo)
		return -ENOMEM;
	e = quota_plan(p->st->book, 0, name, len, true, c->attrs_len, &bo->plan);
	if (e == 0)
		e = gateway_id(p->st, &bo->row.uid);
	if (e < 0) {
		quota_plan_end(p->st->book, 0, name, len, &bo->plan);
		free(bo);
		return e;
	}
	gateway_id_over(p->st, bo->row.uid);
	bo->attrs = c->attrs;
	bo->attrs_len = c->attrs_len;
	bo->row.state = BUCKET_MAKING;
	bo->row.ctime_ns = clock_wall_ns();
	bo->row.version = bo->row.ctime_ns;
	p->inflight++;
	change_row(bo, decide_making, on_making);
	return 0;
}

/* -- removing -- */

static void
on_opened(struct bucket_op *bo)
{
	fault_point("bucket.opened");
	change_row(bo, decide_there, on_undone);
}

static void open_gate(struct gate *g);

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
on_gone(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	struct rbucket *rb = rbucket_get(bo->port->st, bo->name, bo->name_len);

	if (rb) {
		if (rid_same(rb->row.uid, bo->row.uid))
			rbucket_drop(rb);
		rbucket_release(rb);
	}
	fault_point("bucket.gone");
	gateway_dirty(bo->port->st, &bo->port->st->buckets);
	bucket_op_end(bo, t->result);
}

static int
find_closed(struct model_view *v, enum model_kind kind, uint32_t number, struct model_record *ret_record)
{
	check(kind == MODEL_BUCKET);
	*ret_record = (struct model_record){ .copies = 1 };
	return 1;
}

static int
has_any_closed(struct model_view *v, enum model_kind kind, uint64_t after)
{
	check(kind == MODEL_OBJECT);
	return container_of(v, struct bucket_op, view)->is_found;
}

static void
on_closed(struct bucket_op *bo)
{
	const struct model_op op = { .act = MODEL_REMOVE_BUCKET };
	struct model_answer a;

	fault_point("bucket.closed");
	bo->view = (struct model_view){ find_closed, has_any_closed };
	if (bo->result == 0 && model_decide(&op, &bo->view, &a)) {
		change_row(bo, decide_gone, on_gone);
		return;
	}
	bo->said = bo->result < 0 ? result_of(bo->result) : a.result;
	each_shard(bo, open_gate, on_opened);
}

static void
on_gate_looked(struct page *pg)
{
	struct gate *g = container_of(pg, struct gate, page);
	const char *key, *val;
	size_t key_len, val_len;

	if (page_next(pg, &key, &key_len, &val, &val_len))
		g->bo->is_found = true;
	page_end(pg);
	gate_over(g, pg->call.result);
}

static void close_gate(struct gate *g);

static void
on_gate_closed(struct call *c)
{
	struct gate *g = container_of(c, struct gate, call);
	char name[64];

	if (c->result == -ECANCELED) {
		close_gate(g);
		return;
	}
	if (c->result < 0) {
		gate_over(g, c->result);
		return;
	}
	fault_point("bucket.shard_closed");
	g->generation = (g->generation + 1) | GENERATION_CLOSED;
	shard_name(name, g->bo->row.uid, g->n);
	page_read(g->bo->port, &g->page, name, NULL, "o", 1, on_gate_looked);
}

/* Reads the generation of the shard. */
static void
read_gate(struct gate *g, void (*back)(struct call *c))
{
	rados_read_op_t op = rados_create_read_op();
	char name[64];

	shard_name(name, g->bo->row.uid, g->n);
	g->xattrs_rv = 0;
	rados_read_op_getxattrs(op, &g->xattrs, &g->xattrs_rv);
	call_read(g->bo->port, &g->call, POOL_META, name, op, 0, back);
}

/* Takes the generation that was read. Returns 0 or -errno. */
static int
take_gate(struct gate *g)
{
	const char *name = NULL, *val;
	size_t len;
	int e = g->call.result < 0 ? g->call.result : g->xattrs_rv;

	while (e >= 0 && rados_getxattrs_next(g->xattrs, &name, &val, &len) == 0 && name) {
		if (strcmp(name, XATTR_GENERATION) == 0 && len == sizeof g->generation) {
			memcpy(&g->generation, val, len);
			break;
		}
	}
	if (e >= 0 && !name)
		e = -EBADMSG;
	rados_getxattrs_end(g->xattrs);
	return e < 0 ? e : 0;
}

/* Sets the generation of the shard if it is as it was found. */
static void
set_gate(struct gate *g, uint64_t generation, void (*back)(struct call *c))
{
	rados_write_op_t op = rados_create_write_op();

	rados_write_op_cmpxattr(op, XATTR_GENERATION, LIBRADOS_CMPXATTR_OP_EQ, (const char *)&g->generation,
				sizeof g->generation);
	rados_write_op_setxattr(op, XATTR_GENERATION, (const char *)&generation, sizeof generation);
	gate_write(g, op, back);
}

static void
on_gate_read(struct call *c)
{
	struct gate *g = container_of(c, struct gate, call);
	int e = take_gate(g);

	if (e < 0)
		gate_over(g, e);
	else
		set_gate(g, (g->generation + 1) | GENERATION_CLOSED, on_gate_closed);
}

static void
close_gate(struct gate *g)
{
	read_gate(g, on_gate_read);
}

static void
on_gate_read_again(struct call *c)
{
	struct gate *g = container_of(c, struct gate, call);
	int e = take_gate(g);

	if (e < 0 || !(g->generation & GENERATION_CLOSED))
		gate_over(g, e);
	else
		open_gate(g);
}

static void
on_gate_opened(struct call *c)
{
	struct gate *g = container_of(c, struct gate, call);

	/* Another gateway, which cleans up after a dead one, has raised the generation: the shard is still closed. */
	if (c->result == -ECANCELED)
		read_gate(g, on_gate_read_again);
	else
		gate_over(g, c->result);
}

static void
open_gate(struct gate *g)
{
	set_gate(g, (g->generation & ~GENERATION_CLOSED) + 1, on_gate_opened);
}

static enum txn_say
decide_ending(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	const struct model_op op = { .act = MODEL_REMOVE_BUCKET };
	struct model_answer a;
	struct bucket_row row;

	/* Objects are looked for after the shards were closed. */
	table_decide(t, &op, &a);
	if (t->result == -EINPROGRESS)
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
	struct bucket_op *bo = container_of(t, struct bucket_op, txn), *grown;

	if (t->result < 0) {
		bucket_op_end(bo, t->result);
		return;
	}
	/* The number of shards is known from the row. */
	grown = bucket_op_new(bo->port, bo->name, bo->name_len, bo->op, bo->row.shards);
	if (!grown) {
		bo->said = -ENOMEM;
		change_row(bo, decide_there, on_undone);
		return;
	}
	grown->row = bo->row;
	txn_fini(&bo->txn);
	free(bo);
	fault_point("bucket.ending");
	each_shard(grown, close_gate, on_closed);
}

int
rstore_bucket_delete(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct rport *p = rport(sp);
	struct bucket_op *bo =
		bucket_op_new(p, c->key.bucket, c->key.bucket_len, container_of(op, struct store_del, op), 0);

	op->port = sp;
	if (!bo)
		return -ENOMEM;
	bo->row.version = clock_wall_ns();
	p->inflight++;
	change_row(bo, decide_ending, on_ending);
	return 0;
}
