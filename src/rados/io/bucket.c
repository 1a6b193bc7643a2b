/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets: rows of one table, an object of the meta pool, and the cache of what is known of them.
 *
 * Making one: row "making", its shards, row "there".  Removing one: row "ending", every shard's generation is
 * closed, so that no change passes; if an object is found they are opened again, else the row goes, and one is
 * left (DOOMED) by which the shards, and all that uploads left in them, are removed later.
 */
#include "rados/io/rados_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SHARDS_AT_ONCE 16
#define THERE_NS NS_PER_S

/* ---- the cache ---- */

static struct rbucket **
cache_place(struct rstore *st, const char *name, size_t len)
{
	struct rbucket **link = &st->cache[crc64_nvme(0, name, len) % BUCKET_HASH];

	while (*link && ((*link)->name_len != len || memcmp((*link)->name, name, len) != 0))
		link = &(*link)->next;
	return link;
}

static void
rbucket_free(struct rbucket *rb)
{
	check(!rb->is_cached);
	for (uint32_t i = 0; i < rb->row.shards; i++)
		shard_fini(&rb->shard[i]);
	free(rb);
}

void
rbucket_release(struct rbucket *rb)
{
	uint32_t was = atomic_fetch_sub(&rb->refs, 1);

	check(was > 0);
	if (was == 1)
		rbucket_free(rb);
}

struct rbucket *
rbucket_get(struct rstore *st, const char *name, size_t len)
{
	struct rbucket *rb;

	pthread_mutex_lock(&st->cache_lock);
	rb = *cache_place(st, name, len);
	if (rb)
		atomic_fetch_add(&rb->refs, 1);
	pthread_mutex_unlock(&st->cache_lock);
	return rb;
}

/* Under the lock.  Returns whether the cache's reference is to be dropped. */
static bool
take_out(struct rbucket *rb)
{
	struct rbucket **link = cache_place(rb->store, rb->name, rb->name_len);

	if (!rb->is_cached)
		return false;
	check(*link == rb && rb->store->cache_nr > 0);
	*link = rb->next;
	rb->is_cached = false;
	rb->store->cache_nr--;
	usage_leave(rb);
	return true;
}

void
rbucket_is_there(struct rbucket *rb)
{
	atomic_store_explicit(&rb->there_ns, clock_ns(), memory_order_relaxed);
}

void
rbucket_doubt(struct rbucket *rb)
{
	atomic_store(&rb->there_ns, 0);
	atomic_store(&rb->is_doubtful, true);
}

void
rbucket_drop(struct rbucket *rb)
{
	bool was_there;

	pthread_mutex_lock(&rb->store->cache_lock);
	was_there = take_out(rb);
	pthread_mutex_unlock(&rb->store->cache_lock);
	if (was_there)
		rbucket_release(rb);
}

struct rbucket **
rbuckets_all(struct rstore *st, uint32_t *ret_nr)
{
	struct rbucket **list;
	uint32_t nr = 0;

	pthread_mutex_lock(&st->cache_lock);
	list = calloc(st->cache_nr + 1, sizeof(struct rbucket *));
	for (int i = 0; list && i < BUCKET_HASH; i++) {
		for (struct rbucket *rb = st->cache[i]; rb; rb = rb->next) {
			atomic_fetch_add(&rb->refs, 1);
			list[nr++] = rb;
		}
	}
	pthread_mutex_unlock(&st->cache_lock);
	*ret_nr = nr;
	return list;
}

void
shard_name(char out[64], struct rid uid, uint32_t n)
{
	char text[RID_TEXT];

	rid_text(text, uid);
	snprintf(out, 64, "idx.%s.%u", text, n);
}

static struct rbucket *
rbucket_new(struct rstore *st, const char *name, size_t len, const struct bucket_row *row)
{
	struct rbucket *rb = calloc(1, sizeof *rb + row->shards * sizeof rb->shard[0]);
	char text[64];

	check(len > 0 && len <= STORE_BUCKET_MAX && row->shards > 0 && row->shards <= BUCKET_SHARDS_MAX);
	if (!rb)
		return NULL;
	rb->store = st;
	rb->row = *row;
	rb->serial = atomic_fetch_add(&st->bucket_serial, 1) + 1;
	rb->seen = atomic_load(&st->usage_turn);
	rb->name_len = (uint8_t)len;
	memcpy(rb->name, name, len);
	for (uint32_t i = 0; i < row->shards; i++) {
		shard_name(text, row->uid, i);
		shard_init(&rb->shard[i], text, rb);
	}
	return rb;
}

struct rbucket *
rbucket_put_in(struct rstore *st, const char *name, size_t len, const struct bucket_row *row)
{
	struct rbucket *rb = rbucket_get(st, name, len), *old, *unused = NULL, **link;

	if (rb && rid_same(rb->row.uid, row->uid)) {
		atomic_store(&rb->is_doubtful, false);
		rbucket_is_there(rb);
		return rb;
	}
	if (rb)
		rbucket_release(rb);
	rb = rbucket_new(st, name, len, row);
	if (!rb)
		return NULL;
	rbucket_is_there(rb);
	atomic_store(&rb->refs, 2); /* the cache's and the caller's */
	pthread_mutex_lock(&st->cache_lock);
	link = cache_place(st, name, len);
	old = *link;
	if (old && rid_same(old->row.uid, row->uid)) {
		/* Another one was faster.  There is one of each shard: its queue is the order. */
		atomic_fetch_add(&old->refs, 1);
		unused = rb;
		rb = old;
		old = NULL;
	} else {
		if (old)
			take_out(old);
		link = cache_place(st, name, len);
		rb->next = *link;
		*link = rb;
		rb->is_cached = true;
		st->cache_nr++;
		usage_enter(rb);
	}
	pthread_mutex_unlock(&st->cache_lock);
	if (unused)
		rbucket_free(unused);
	if (old)
		rbucket_release(old);
	return rb;
}

void
rbuckets_fini(struct rstore *st)
{
	for (int i = 0; i < BUCKET_HASH; i++) {
		while (st->cache[i])
			rbucket_drop(st->cache[i]);
	}
}

struct rshard *
rbucket_shard(struct rbucket *rb, const char *key, size_t len)
{
	return &rb->shard[(crc64_nvme(0, key, len) >> 32) % rb->row.shards];
}

/* ---- looks at the table ---- */

struct bucket_look {
	struct txn txn;
	struct store_stat *stat;
	void *attrs;
	uint32_t cap;
};

static void
name_key(char key[2 + STORE_BUCKET_MAX], char kind, const char *name, size_t len)
{
	check(len <= STORE_BUCKET_MAX);
	key[0] = kind;
	memcpy(key + 1, name, len);
	key[1 + len] = 0;
}

static int
add_name_key(struct txn *t, char kind, const char *name, size_t len)
{
	char key[2 + STORE_BUCKET_MAX];

	name_key(key, kind, name, len);
	return txn_add_key(t, key, len + 1);
}

/* The bucket's row: 0, -ENXIO, -EBADMSG. */
static int
row_of(const struct txn *t, struct bucket_row *ret_row)
{
	int e = t->key[0].old.p ? bucket_decode(t->key[0].old.p, t->key[0].old.len, ret_row) : -ENXIO;

	return e == 0 && ret_row->state == BUCKET_MAKING ? -ENXIO : e;
}

static enum txn_say
decide_look(struct txn *t)
{
	struct bucket_look *bl = container_of(t, struct bucket_look, txn);
	struct bucket_row row;
	const void *attrs;

	t->result = row_of(t, &row);
	if (t->result < 0)
		return TXN_OVER;
	quota_fill_stat(t->port->st->book, t->key[0].key + 1, t->key[0].len - 1u, bl->stat);
	bl->stat->ctime_ns = row.ctime_ns;
	bl->stat->copies = 1;
	bl->stat->version = 0;
	bl->stat->attrs_len = 0;
	if (t->key_nr == 2 && t->key[1].old.p) {
		t->result = battrs_decode(t->key[1].old.p, t->key[1].old.len, &bl->stat->version, &attrs,
					  &bl->stat->attrs_len);
		if (t->result == 0 && bl->attrs && bl->stat->attrs_len)
			memcpy(bl->attrs, attrs,
			       bl->cap < bl->stat->attrs_len ? bl->cap : bl->stat->attrs_len);
	}
	return TXN_OVER;
}

static void
on_look_over(struct txn *t)
{
	struct bucket_look *bl = container_of(t, struct bucket_look, txn);
	struct rport *p = t->port;
	struct store_op *op = &bl->stat->op;
	int result = t->result;

	txn_fini(t);
	free(bl);
	rop_end(p, op, result);
}

static int
start_look(struct store_port *sp, const char *name, size_t len, struct store_stat *st, bool with_attrs,
	   void *attrs, uint32_t cap)
{
	struct rport *p = rport(sp);
	struct bucket_look *bl = calloc(1, sizeof *bl);

	st->op.port = sp;
	if (!bl || add_name_key(&bl->txn, 'b', name, len) < 0 ||
	    (with_attrs && add_name_key(&bl->txn, 'a', name, len) < 0)) {
		if (bl)
			txn_fini(&bl->txn);
		free(bl);
		return -ENOMEM;
	}
	bl->stat = st;
	bl->attrs = attrs;
	bl->cap = cap;
	bl->txn.decide = decide_look;
	bl->txn.over = on_look_over;
	p->inflight++;
	txn_start(p, &bl->txn);
	return 0;
}

int
rstore_bucket_head(struct store_port *sp, const char *name, size_t len, struct store_stat *st)
{
	return start_look(sp, name, len, st, false, NULL, 0);
}

bool
rstore_bucket_was_there(struct store_port *sp, const char *name, size_t len)
{
	struct rbucket *rb = rbucket_get(rport(sp)->st, name, len);
	bool was = rb && clock_ns() - atomic_load_explicit(&rb->there_ns, memory_order_relaxed) < THERE_NS;

	if (rb)
		rbucket_release(rb);
	return was;
}

int
rstore_bucket_get_attrs(struct store_port *sp, const char *name, size_t len, void *attrs, uint32_t cap,
			struct store_stat *st)
{
	return start_look(sp, name, len, st, true, attrs, cap);
}

/* ---- attributes ---- */

struct battrs_op {
	struct txn txn;
	struct store_bucket_set *op;
	uint64_t version;
	const void *attrs;
	uint32_t attrs_len;
	struct quota_plan plan;
};

static enum txn_say
decide_attrs(struct txn *t)
{
	struct battrs_op *bo = container_of(t, struct battrs_op, txn);
	uint64_t version = 0, now = clock_wall_ns();
	struct bucket_row row;
	const void *attrs;
	struct bytes value;
	uint32_t len;

	t->result = row_of(t, &row);
	if (t->result == 0 && t->key[1].old.p)
		t->result = battrs_decode(t->key[1].old.p, t->key[1].old.len, &version, &attrs, &len);
	if (t->result < 0)
		return TXN_OVER;
	if (bo->version != STORE_VERSION_ANY && bo->version != version) {
		t->result = -ESTALE;
		return TXN_OVER;
	}
	t->result =
		usage_plan_docs(t->port->st, t->key[0].key + 1, t->key[0].len - 1u, bo->attrs_len, &bo->plan);
	if (t->result < 0)
		return TXN_OVER;
	if (bo->attrs_len == 0) {
		if (!t->key[1].old.p)
			return TXN_OVER;
		txn_remove(t, 1);
		return TXN_COMMIT;
	}
	if (!bytes_new(&value, battrs_bytes(bo->attrs_len))) {
		t->result = -ENOMEM;
		return TXN_OVER;
	}
	battrs_encode(value.p, now > version ? now : version + 1, bo->attrs, bo->attrs_len);
	txn_set(t, 1, value);
	return TXN_COMMIT;
}

static void
on_attrs_over(struct txn *t)
{
	struct battrs_op *bo = container_of(t, struct battrs_op, txn);
	struct rport *p = t->port;
	struct store_op *op = &bo->op->op;
	int result = t->result;

	if (result == 0)
		usage_set_docs(p->st, t->key[0].key + 1, t->key[0].len - 1u, bo->attrs_len);
	usage_plan_end(p->st, t->key[0].key + 1, t->key[0].len - 1u, &bo->plan);
	txn_fini(t);
	free(bo);
	rop_end(p, op, result);
}

int
rstore_bucket_set_attrs(struct store_port *sp, const char *name, size_t len, uint64_t version,
			const void *attrs, uint32_t attrs_len, struct store_bucket_set *op)
{
	struct rport *p = rport(sp);
	struct battrs_op *bo = calloc(1, sizeof *bo);

	op->op.port = sp;
	if (!bo || add_name_key(&bo->txn, 'b', name, len) < 0 || add_name_key(&bo->txn, 'a', name, len) < 0) {
		if (bo)
			txn_fini(&bo->txn);
		free(bo);
		return -ENOMEM;
	}
	bo->op = op;
	bo->version = version;
	bo->attrs = attrs;
	bo->attrs_len = attrs_len;
	bo->txn.decide = decide_attrs;
	bo->txn.over = on_attrs_over;
	p->inflight++;
	txn_start(p, &bo->txn);
	return 0;
}

/* ---- a bound ---- */

struct bound_op {
	struct txn txn;
	struct store_bucket_set *op;
	struct store_use max;
};

static enum txn_say
decide_bound(struct txn *t)
{
	struct bound_op *bo = container_of(t, struct bound_op, txn);
	struct bucket_row row;
	struct bytes value;

	t->result = row_of(t, &row);
	if (t->result < 0)
		return TXN_OVER;
	if (bo->max.objects == STORE_UNBOUNDED && bo->max.bytes == STORE_UNBOUNDED &&
	    bo->max.uploads == STORE_UNBOUNDED) {
		txn_remove(t, 1);
		return TXN_COMMIT;
	}
	if (!bytes_new(&value, BOUND_BYTES)) {
		t->result = -ENOMEM;
		return TXN_OVER;
	}
	bound_encode((uint8_t *)value.p, &bo->max);
	txn_set(t, 1, value);
	return TXN_COMMIT;
}

static void
on_bound_over(struct txn *t)
{
	struct bound_op *bo = container_of(t, struct bound_op, txn);
	struct rport *p = t->port;
	struct store_op *op = &bo->op->op;
	int result = t->result;

	if (result == 0)
		usage_bound(p->st, t->key[0].key + 1, t->key[0].len - 1u, &bo->max);
	txn_fini(t);
	free(bo);
	rop_end(p, op, result);
}

int
rstore_bucket_set_quota(struct store_port *sp, const char *name, size_t len, const struct store_use *max,
			struct store_bucket_set *op)
{
	struct rport *p = rport(sp);
	struct bound_op *bo = calloc(1, sizeof *bo);

	op->op.port = sp;
	if (!bo || add_name_key(&bo->txn, 'b', name, len) < 0 || add_name_key(&bo->txn, 'q', name, len) < 0) {
		if (bo)
			txn_fini(&bo->txn);
		free(bo);
		return -ENOMEM;
	}
	bo->op = op;
	bo->max = *max;
	bo->txn.decide = decide_bound;
	bo->txn.over = on_bound_over;
	p->inflight++;
	txn_start(p, &bo->txn);
	return 0;
}

/* ---- making and removing ---- */

struct bucket_op;

/* What is done with one shard: its calls follow each other. */
struct gate {
	struct call call;
	struct page page;
	struct bucket_op *bo;
	uint32_t n;
	rados_xattrs_iter_t xattrs;
	int xattrs_rv;
	uint64_t generation; /* as it was found; then as it was set */
};

struct bucket_op {
	struct txn txn;
	struct store_del *op;
	struct rport *port;
	char name[STORE_BUCKET_MAX];
	uint8_t name_len;
	struct bucket_row row;
	const void *attrs; /* of the bucket that is made; the caller's */
	uint32_t attrs_len;
	struct quota_plan plan;                 /* of the bucket that is made */
	void (*step)(struct gate *g);           /* one shard's, begun */
	void (*all_over)(struct bucket_op *bo); /* all shards' */
	uint32_t next, left;
	int result;    /* of all steps */
	int said;      /* of the operation, while it is undone */
	bool is_found; /* an object */
	struct gate gate[];
};

static void
bucket_op_end(struct bucket_op *bo, int result)
{
	struct rport *p = bo->port;
	struct store_op *op = &bo->op->op;

	usage_plan_end(p->st, bo->name, bo->name_len, &bo->plan);
	txn_fini(&bo->txn);
	free(bo);
	rop_end(p, op, result);
}

/* Another change of the row; the one before is over. */
static void
change_row(struct bucket_op *bo, enum txn_say (*decide)(struct txn *t), void (*over)(struct txn *t))
{
	txn_fini(&bo->txn);
	memset(&bo->txn, 0, sizeof bo->txn);
	bo->txn.decide = decide;
	bo->txn.over = over;
	if (add_name_key(&bo->txn, 'b', bo->name, bo->name_len) < 0) {
		bo->txn.result = -ENOMEM;
		bo->txn.port = bo->port;
		over(&bo->txn);
		return;
	}
	txn_start(bo->port, &bo->txn);
}

/* Sets the row, as long as it is what this operation made it. */
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
	struct bytes value;

	if (!bytes_new(&value, BUCKET_ROW_BYTES)) {
		t->result = -ENOMEM;
		return TXN_OVER;
	}
	bucket_encode((uint8_t *)value.p, row);
	txn_set(t, 0, value);
	t->result = 0;
	return TXN_COMMIT;
}

/* The row goes, its attributes and its bound as well, and what is left of it is noted. */
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

		name_key(key, 'a', bo->name, bo->name_len);
		e = txn_more(t, key, bo->name_len + 1u, (struct bytes){ 0 });
		name_key(key, 'q', bo->name, bo->name_len);
		if (e == 0)
			e = txn_more(t, key, bo->name_len + 1u, (struct bytes){ 0 });
	}
	t->result = e;
	if (e < 0)
		return TXN_OVER;
	txn_remove(t, 0);
	return TXN_COMMIT;
}

/* Runs a step for each shard, some at once. */
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

	/* What it holds is counted from now on: nothing. */
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
	name_key(key, 'a', bo->name, bo->name_len);
	return txn_more(t, key, bo->name_len + 1u, value);
}

static enum txn_say
decide_making(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	struct bucket_row row;

	if (!t->key[0].old.p) {
		t->result = add_attrs(t, bo);
		return t->result < 0 ? TXN_OVER : set_row(t, &bo->row);
	}
	t->result = bucket_decode(t->key[0].old.p, t->key[0].old.len, &row);
	if (t->result == 0)
		t->result = row.state == BUCKET_THERE ? -EEXIST : -EAGAIN;
	return TXN_OVER;
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
rstore_bucket_create(struct store_port *sp, const char *name, size_t len,
		     const struct store_bucket_spec *spec, struct store_del *op)
{
	struct rport *p = rport(sp);
	struct bucket_op *bo;
	int e;

	/* How often a pool keeps its objects is the cluster's affair. */
	if (spec->copies > 1)
		return -EOPNOTSUPP;
	op->op.port = sp;
	bo = bucket_op_new(p, name, len, op, p->st->index_shards);
	if (!bo)
		return -ENOMEM;
	e = usage_plan_bucket(p->st, name, len, spec->attrs_len, &bo->plan);
	if (e == 0)
		e = gateway_id(p->st, &bo->row.uid);
	if (e < 0) {
		usage_plan_end(p->st, name, len, &bo->plan);
		free(bo);
		return e;
	}
	gateway_id_over(p->st, bo->row.uid);
	bo->attrs = spec->attrs;
	bo->attrs_len = spec->attrs_len;
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

static void
open_gate(struct gate *g)
{
	rados_write_op_t op = rados_create_write_op();
	uint64_t generation = (g->generation & ~GENERATION_CLOSED) + 1;

	rados_write_op_cmpxattr(op, XATTR_GENERATION, LIBRADOS_CMPXATTR_OP_EQ, (const char *)&g->generation,
				sizeof g->generation);
	rados_write_op_setxattr(op, XATTR_GENERATION, (const char *)&generation, sizeof generation);
	gate_write(g, op, on_gate_written);
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

static void
on_closed(struct bucket_op *bo)
{
	fault_point("bucket.closed");
	if (bo->result < 0 || bo->is_found) {
		bo->said = bo->result < 0 ? result_of(bo->result) : -ENOTEMPTY;
		each_shard(bo, open_gate, on_opened);
		return;
	}
	change_row(bo, decide_gone, on_gone);
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

static void
on_gate_read(struct call *c)
{
	struct gate *g = container_of(c, struct gate, call);
	const char *name = NULL, *val;
	rados_write_op_t op;
	uint64_t closed;
	size_t len;
	int e = c->result < 0 ? c->result : g->xattrs_rv;

	while (e >= 0 && rados_getxattrs_next(g->xattrs, &name, &val, &len) == 0 && name) {
		if (strcmp(name, XATTR_GENERATION) == 0 && len == sizeof g->generation) {
			memcpy(&g->generation, val, len);
			break;
		}
	}
	if (e >= 0 && !name)
		e = -EBADMSG;
	rados_getxattrs_end(g->xattrs);
	if (e < 0) {
		gate_over(g, e);
		return;
	}
	closed = (g->generation + 1) | GENERATION_CLOSED;
	op = rados_create_write_op();
	rados_write_op_cmpxattr(op, XATTR_GENERATION, LIBRADOS_CMPXATTR_OP_EQ, (const char *)&g->generation,
				sizeof g->generation);
	rados_write_op_setxattr(op, XATTR_GENERATION, (const char *)&closed, sizeof closed);
	gate_write(g, op, on_gate_closed);
}

static void
close_gate(struct gate *g)
{
	rados_read_op_t op = rados_create_read_op();
	char name[64];

	shard_name(name, g->bo->row.uid, g->n);
	g->xattrs_rv = 0;
	rados_read_op_getxattrs(op, &g->xattrs, &g->xattrs_rv);
	call_read(g->bo->port, &g->call, POOL_META, name, op, 0, on_gate_read);
}

static enum txn_say
decide_ending(struct txn *t)
{
	struct bucket_op *bo = container_of(t, struct bucket_op, txn);
	struct bucket_row row;

	t->result = row_of(t, &row);
	if (t->result < 0)
		return TXN_OVER;
	if (row.state == BUCKET_ENDING) {
		t->result = -EAGAIN;
		return TXN_OVER;
	}
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
	/* Only now it is known how many shards there are. */
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
rstore_bucket_delete(struct store_port *sp, const char *name, size_t len, struct store_del *op)
{
	struct rport *p = rport(sp);
	struct bucket_op *bo = bucket_op_new(p, name, len, op, 0);

	op->op.port = sp;
	if (!bo)
		return -ENOMEM;
	bo->row.version = clock_wall_ns();
	p->inflight++;
	change_row(bo, decide_ending, on_ending);
	return 0;
}
