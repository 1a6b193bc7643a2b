/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as they are: opened, read, deleted, given other attributes. */
#include "rados/rados_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* An open object: its record, and where its parts begin. */
struct robj {
	struct rport *port;
	struct bytes value, map;
	struct record rec;
	struct part *parts;
	uint64_t *part_off; /* of each */
	uint64_t epoch;
	uint32_t reads;
	struct ahead *ahead; /* its bytes, which were read beside the look; until the first read */
};

static struct robj *
robj(const struct store_obj *obj)
{
	struct robj *o;

	memcpy(&o, obj->priv, sizeof o);
	return o;
}

static void
robj_free(struct robj *o)
{
	if (!o)
		return;
	free(o->value.p);
	free(o->map.p);
	free(o->parts);
	free(o->part_off);
	free(o);
}

/* ---- judging ---- */

int
record_judge(const struct store_pre *pre, const struct record *old)
{
	return store_judge(pre, old ? &old->etag : NULL, old ? old->version : 0);
}

uint64_t
record_next_version(const struct record *old)
{
	uint64_t now = clock_wall_ns();

	return old && old->version >= now ? old->version + 1 : now;
}

/* ---- open ---- */

struct open_op {
	struct txn txn;
	struct store_obj *obj;
	struct robj *o;
	bool is_to_read;
	struct call call; /* of the map */
	size_t got;
	int rv;
};

static void
open_end(struct open_op *oo, int result)
{
	struct rport *p = oo->txn.port;
	struct store_obj *obj = oo->obj;
	struct robj *o = oo->o;

	txn_fini(&oo->txn);
	free(oo);
	if (result < 0) {
		if (o->epoch)
			gateway_unpin(p->st, o->epoch);
		ahead_drop(o->ahead);
		robj_free(o);
	} else {
		obj->size_bytes = o->rec.size_bytes;
		obj->version = o->rec.version;
		obj->crc64 = o->rec.crc64;
		obj->meta = (struct store_meta){ .etag = o->rec.etag,
						 .mtime_ns = o->rec.mtime_ns,
						 .attrs = o->rec.attrs,
						 .attrs_len = o->rec.attrs_len };
		obj->part_nr = o->rec.part_nr;
		obj->is_open = true;
		memcpy(obj->priv, &o, sizeof(struct robj *));
	}
	rop_end(p, &obj->op, result);
}

/* Takes the parts of the record apart. */
static int
take_parts(struct robj *o, const void *parts, size_t len)
{
	uint64_t off = 0;
	int e;

	o->parts = calloc(o->rec.part_nr, sizeof *o->parts);
	o->part_off = calloc(o->rec.part_nr, sizeof *o->part_off);
	if (!o->parts || !o->part_off)
		return -ENOMEM;
	e = parts_decode(parts, len, o->rec.part_nr, o->parts);
	for (uint32_t i = 0; e == 0 && i < o->rec.part_nr; i++) {
		o->part_off[i] = off;
		off += o->parts[i].size_bytes;
	}
	return e < 0 ? e : off == o->rec.size_bytes ? 0 : -EBADMSG;
}

static void
on_map(struct call *c)
{
	struct open_op *oo = container_of(c, struct open_op, call);
	struct robj *o = oo->o;
	int e = c->result < 0 ? c->result : oo->rv;

	if (e == 0 && (oo->got != o->map.len || crc64_nvme(0, o->map.p, o->map.len) != o->rec.parts_crc64))
		e = -EBADMSG;
	if (e == 0)
		e = take_parts(o, o->map.p, o->map.len);
	if (e == -ENOENT || e == -EBADMSG) {
		log_error("the list of parts of '%.*s/%.*s' is damaged", (int)oo->txn.bucket_len,
			  oo->txn.bucket, (int)oo->txn.object_len, oo->txn.object);
		e = -EBADMSG;
	}
	open_end(oo, result_of(e));
}

static void
read_map(struct open_op *oo)
{
	struct robj *o = oo->o;
	char text[RID_TEXT], name[40];
	rados_read_op_t op;

	if (!bytes_new(&o->map, o->rec.parts_len)) {
		open_end(oo, -ENOMEM);
		return;
	}
	rid_text(text, o->rec.data);
	snprintf(name, sizeof name, "map.%s", text);
	op = rados_create_read_op();
	rados_read_op_read(op, 0, o->map.len, o->map.p, &oo->got, &oo->rv);
	call_read(oo->txn.port, &oo->call, POOL_META, name, op, o->map.len, on_map);
}

static enum txn_say
decide_open(struct txn *t)
{
	struct open_op *oo = container_of(t, struct open_op, txn);
	struct robj *o = oo->o;

	t->result = -ENOENT;
	if (!t->key[0].old.p) {
		if (oo->is_to_read)
			o->ahead = ahead_judge(o->ahead, t, NULL);
		return TXN_OVER;
	}
	o->value = t->key[0].old;
	t->key[0].old = (struct bytes){ 0 };
	t->result = record_decode(o->value.p, o->value.len, &o->rec);
	if (t->result == 0 && o->rec.kind == REC_PARTS)
		t->result = take_parts(o, o->rec.parts, o->rec.parts_len);
	if (t->result < 0) {
		log_error("the record of '%.*s/%.*s' is damaged", (int)t->bucket_len, t->bucket,
			  (int)t->object_len, t->object);
		return TXN_OVER;
	}
	if (oo->is_to_read)
		o->ahead = ahead_judge(o->ahead, t, &o->rec);
	/* The pin goes on until store_close(). */
	o->epoch = t->epoch;
	t->is_pinned = false;
	return TXN_OVER;
}

static void
on_open_over(struct txn *t)
{
	struct open_op *oo = container_of(t, struct open_op, txn);

	if (t->result == 0 && oo->o->rec.kind == REC_MAP)
		read_map(oo);
	else
		open_end(oo, t->result);
}

static int
open_object(struct store_port *sp, const struct store_key *k, struct store_obj *obj, bool is_to_read)
{
	struct rport *p = rport(sp);
	struct open_op *oo = txn_op_new(sizeof *oo, offsetof(struct open_op, txn), k);

	obj->op.port = sp;
	if (!oo)
		return -ENOMEM;
	oo->o = calloc(1, sizeof *oo->o);
	if (!oo->o || txn_add_object(&oo->txn) < 0) {
		free(oo->o);
		free(oo);
		return -ENOMEM;
	}
	oo->o->port = p;
	oo->obj = obj;
	oo->is_to_read = is_to_read;
	oo->txn.is_read = true;
	oo->txn.decide = decide_open;
	oo->txn.over = on_open_over;
	p->inflight++;
	txn_start(p, &oo->txn);
	/* It ends later than here, always. */
	if (is_to_read)
		oo->o->ahead = ahead_begin(&oo->txn);
	return 0;
}

int
rstore_open_object(struct store_port *sp, const struct store_key *k, struct store_obj *obj)
{
	return open_object(sp, k, obj, false);
}

int
rstore_open_to_read(struct store_port *sp, const struct store_key *k, struct store_obj *obj)
{
	return open_object(sp, k, obj, true);
}

void
rstore_close_object(struct store_port *sp, struct store_obj *obj)
{
	struct robj *o = robj(obj);

	check(o->reads == 0);
	ahead_drop(o->ahead);
	gateway_unpin(rport(sp)->st, o->epoch);
	robj_free(o);
	obj->is_open = false;
}

/* ---- parts ---- */

static void
give_part(const struct robj *o, uint32_t i, struct store_part *ret_part)
{
	const struct part *p = &o->parts[i];

	*ret_part = (struct store_part){ .number = p->number,
					 .size_bytes = p->size_bytes,
					 .crc64 = p->crc64,
					 .mtime_ns = p->mtime_ns,
					 .version = p->version,
					 .off_bytes = o->part_off[i],
					 .etag = p->etag,
					 .attrs = p->attrs,
					 .attrs_len = p->attrs_len };
}

int
rstore_obj_part_at(struct store_obj *obj, uint32_t index, struct store_part *ret_part)
{
	if (index >= robj(obj)->rec.part_nr)
		return -ENOENT;
	give_part(robj(obj), index, ret_part);
	return 0;
}

int
rstore_obj_part(struct store_obj *obj, uint32_t number, struct store_part *ret_part)
{
	const struct robj *o = robj(obj);
	uint32_t lo = 0, hi = o->rec.part_nr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (o->parts[mid].number < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == o->rec.part_nr || o->parts[lo].number != number)
		return -ENOENT;
	give_part(o, lo, ret_part);
	return 0;
}

/* ---- read ---- */

/* What has bytes of its own: the object, or one of its parts. */
struct extent {
	uint64_t off, size_bytes; /* in the object */
	enum rec_kind kind;
	struct rid data;
	const void *inline_data;
	const uint8_t *crcs;
	uint32_t crc_nr;
};

/* off lies in the object. */
static struct extent
extent_at(const struct robj *o, uint64_t off)
{
	const struct record *r = &o->rec;
	uint32_t lo = 0, hi = r->part_nr;
	const struct part *p;

	if (!r->part_nr)
		return (struct extent){
			0, r->size_bytes, r->kind, r->data, r->inline_data, r->crcs, r->crc_nr
		};
	/* The last that does not begin behind it; empty ones in front of it begin at the same place. */
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (o->part_off[mid] <= off)
			lo = mid;
		else
			hi = mid;
	}
	p = &o->parts[lo];
	return (struct extent){ o->part_off[lo], p->size_bytes, p->kind,  p->data,
				p->inline_data,  p->crcs,       p->crc_nr };
}

static uint64_t
round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

uint32_t
rstore_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap, uint32_t *ret_skew)
{
	const struct robj *o = robj(obj);
	struct extent x = extent_at(o, off);
	uint64_t rel = off - x.off, from = rel / STORE_GRANULE * STORE_GRANULE;
	uint64_t each = o->port->st->gw.format.object_bytes, end = round_up(from + 1, each), len;

	*ret_skew = (uint32_t)(rel - from);
	end = end < x.size_bytes ? end : x.size_bytes;
	len = round_up(*ret_skew + want, STORE_GRANULE);
	len = len < cap ? len : cap;
	len = len < STORE_READ ? len : STORE_READ;
	return (uint32_t)(len < end - from ? len : end - from);
}

#define READ_CALLS 3 /* data objects of 2 MiB and more that STORE_READ bytes lie in */

/* What a read has of one data object. */
struct rread_call {
	struct call call;
	struct rread *r;
	char *to;
	uint32_t n, off, len, data_bytes; /* of the data object */
	uint32_t along; /* so much of a trailer is read with the bytes, and comes behind them */
	size_t got, trailer_got;
	int rv, trailer_rv;
	uint8_t *trailer;
};

struct rread {
	struct store_read *rd; /* NULL: cancelled */
	struct robj *o;
	struct extent x;
	uint32_t len, left;
	int result;
	struct ahead *ahead; /* what it waits for instead of calls of its own */
	struct rread_call call[READ_CALLS];
	uint8_t trailers[];
};

static int
check_granules(struct rread_call *rc)
{
	const struct extent *x = &rc->r->x;
	const uint8_t *crcs = x->crc_nr ? x->crcs : rc->trailer;

	if (rc->along && rc->got > rc->len) {
		rc->trailer_got = rc->got - rc->len;
		rc->got = rc->len;
	}
	if (rc->got != rc->len)
		return -EBADMSG;
	if (!x->crc_nr && (rc->trailer_got != trailer_bytes(rc->data_bytes) ||
			   trailer_check(rc->trailer, rc->data_bytes, x->data, rc->n) < 0))
		return -EBADMSG;
	for (uint32_t at = 0; at < rc->len; at += STORE_GRANULE) {
		uint32_t n = rc->len - at < STORE_GRANULE ? rc->len - at : STORE_GRANULE;
		uint64_t crc = crc64_nvme(0, rc->to + at, n);

		if (memcmp(&crc, crcs + (size_t)(rc->off + at) / STORE_GRANULE * 8, 8) != 0)
			return -EBADMSG;
	}
	return 0;
}

static void
say_damaged(const struct rread_call *rc)
{
	char name[DATA_NAME];

	data_name(name, rc->r->x.data, rc->n);
	atomic_fetch_add(&rc->call.port->st->stats[POOL_DATA].crc_errors, 1);
	log_error("%s: data object %s is %s", rc->call.port->st->data_pool, name,
		  rc->call.result == -ENOENT ? "missing" : "damaged");
}

static void
on_read(struct call *c)
{
	struct rread_call *rc = container_of(c, struct rread_call, call);
	struct rread *r = rc->r;
	struct rport *p = c->port;
	struct store_read *rd = r->rd;
	int e = c->result < 0 ? c->result : rc->rv < 0 ? rc->rv : r->x.crc_nr ? 0 : rc->trailer_rv, result;

	if (e >= 0 && rd)
		e = check_granules(rc);
	if (e == -EBADMSG || e == -ENOENT) {
		say_damaged(rc);
		e = -EBADMSG;
	}
	if (e < 0 && r->result >= 0)
		r->result = result_of(e);
	if (--r->left)
		return;
	result = r->result < 0 ? r->result : (int)r->len;
	if (rd)
		r->o->reads--;
	free(r);
	if (rd)
		rop_end(p, &rd->op, result);
}

static void
send_read(struct rread *r, int i)
{
	struct rread_call *rc = &r->call[i];
	rados_read_op_t op = rados_create_read_op();
	char name[DATA_NAME];

	data_name(name, r->x.data, rc->n);
	rados_read_op_read(op, rc->off, rc->len + rc->along, rc->to, &rc->got, &rc->rv);
	if (!r->x.crc_nr && !rc->along)
		rados_read_op_read(op, rc->data_bytes, trailer_bytes(rc->data_bytes), (char *)rc->trailer,
				   &rc->trailer_got, &rc->trailer_rv);
	call_read(r->o->port, &rc->call, POOL_DATA, name, op, rc->len, on_read);
}

/* What was not read well beside the look is read again, which says what is wrong with it. */
static void
on_ahead_back(void *cookie)
{
	struct rread *r = cookie;
	struct rport *p = r->o->port;
	struct store_read *rd = r->rd;
	int len = (int)r->len;

	if (!ahead_take(r->ahead, r->call[0].to, r->x.crcs)) {
		r->ahead = NULL;
		send_read(r, 0);
		return;
	}
	r->o->reads--;
	free(r);
	rop_end(p, &rd->op, len);
}

/* The range begins and ends at granules of what has the bytes, or with it. */
static bool
range_ok(const struct robj *o, const struct extent *x, uint64_t off, uint32_t len)
{
	uint64_t rel = off - x->off;

	return len > 0 && len <= STORE_READ && rel % STORE_GRANULE == 0 && rel + len <= x->size_bytes &&
	       ((rel + len) % STORE_GRANULE == 0 || rel + len == x->size_bytes);
}

int
rstore_read_object(struct store_port *sp, struct store_obj *obj, struct store_read *rd, struct buf *buf,
		   uint64_t off, uint32_t len)
{
	struct rport *p = rport(sp);
	struct robj *o = robj(obj);
	uint32_t each = p->st->gw.format.object_bytes, nr = 0;
	struct ahead *a = o->ahead;
	struct extent x;
	struct rread *r;
	uint64_t rel;

	rd->op.port = sp;
	if (off >= o->rec.size_bytes)
		return -EINVAL;
	x = extent_at(o, off);
	rel = off - x.off;
	if (!range_ok(o, &x, off, len))
		return -EINVAL;
	if (x.kind == REC_INLINE) {
		memcpy(buf->mem, (const char *)x.inline_data + rel, len);
		rd->op.result = (int)len;
		return 1;
	}
	/* It is the one granule that the object has, and one read takes it. */
	if (a && ahead_is_back(a)) {
		o->ahead = NULL;
		if (ahead_take(a, buf->mem, x.crcs)) {
			rd->op.result = (int)len;
			return 1;
		}
	}
	r = calloc(1, sizeof *r + READ_CALLS * (size_t)trailer_bytes(each));
	if (!r)
		return -ENOMEM;
	r->rd = rd;
	r->o = o;
	r->x = x;
	r->len = len;
	for (uint32_t at = 0; at < len; nr++) {
		struct rread_call *rc = &r->call[nr];
		uint64_t from = rel + at, rest;

		rc->r = r;
		rc->n = (uint32_t)(from / each);
		rc->off = (uint32_t)(from % each);
		rc->len = len - at < each - rc->off ? len - at : each - rc->off;
		rest = x.size_bytes - (uint64_t)rc->n * each;
		rc->data_bytes = rest < each ? (uint32_t)rest : each;
		rc->to = buf->mem + at;
		rc->trailer = r->trailers + nr * (size_t)trailer_bytes(each);
		at += rc->len;
		/* One read of both is less for an OSD than two; behind the buffer's bytes there is room. */
		if (!x.crc_nr && at == len && rc->off + rc->len == rc->data_bytes) {
			rc->along = trailer_bytes(rc->data_bytes);
			rc->trailer = (uint8_t *)rc->to + rc->len;
		}
	}
	memcpy(rd->priv, &r, sizeof(struct rread *));
	o->reads++;
	p->inflight++;
	r->left = nr;
	r->ahead = o->ahead;
	o->ahead = NULL;
	if (r->ahead) {
		ahead_await(r->ahead, on_ahead_back, r);
		return 0;
	}
	for (uint32_t i = 0; i < nr; i++)
		send_read(r, (int)i);
	return 0;
}

bool
rstore_read_cancel(struct store_port *sp, struct store_read *rd)
{
	bool all = true;
	struct rread *r;

	memcpy(&r, rd->priv, sizeof r);
	if (r->ahead) {
		ahead_drop(r->ahead);
		r->o->reads--;
		rport(sp)->inflight--;
		free(r);
		return true;
	}
	/* One that is on its way back already is waited for, which is not long. */
	for (int i = 0; i < READ_CALLS; i++) {
		if (r->call[i].call.comp)
			all &= call_cancel(&r->call[i].call);
	}
	if (!all)
		return false;
	r->o->reads--;
	r->rd = NULL;
	rport(sp)->inflight--;
	return true;
}

/* ---- delete, other attributes ---- */

struct change_op {
	struct txn txn;
	struct store_del *del;
	struct store_pre pre;
	struct rid id;
	/* of other attributes */
	bool is_attrs;
	const void *attrs;
	uint32_t attrs_len;
};

static enum txn_say
decide_delete(struct txn *t, struct change_op *co, const struct record *old)
{
	t->result = record_judge(&co->pre, old);
	if (t->result < 0 || !old)
		return TXN_OVER;
	t->result = txn_garbage(t, old);
	if (t->result < 0)
		return TXN_OVER;
	txn_remove(t, 0);
	t->delta.objects = -1;
	t->delta.bytes = -(int64_t)old->size_bytes;
	fault_point("delete.decided");
	t->result = 1;
	return TXN_COMMIT;
}

static enum txn_say
decide_attrs(struct txn *t, struct change_op *co, const struct record *old)
{
	struct record new;
	struct bytes value;

	t->result = 0;
	t->result = old ? record_judge(&co->pre, old) : -ENOENT;
	if (t->result < 0)
		return TXN_OVER;
	new = *old;
	new.version = record_next_version(old);
	new.replaced = old->id;
	new.id = co->id;
	new.attrs = co->attrs;
	new.attrs_len = co->attrs_len;
	if (!bytes_new(&value, record_bytes(&new))) {
		t->result = -ENOMEM;
		return TXN_OVER;
	}
	record_encode(value.p, &new);
	txn_set(t, 0, value);
	fault_point("attrs.decided");
	return TXN_COMMIT;
}

static enum txn_say
decide_change(struct txn *t)
{
	struct change_op *co = container_of(t, struct change_op, txn);
	struct record rec, *old = NULL;

	if (t->key[0].old.p) {
		t->result = record_decode(t->key[0].old.p, t->key[0].old.len, &rec);
		if (t->result < 0)
			return TXN_OVER;
		old = &rec;
	}
	return co->is_attrs ? decide_attrs(t, co, old) : decide_delete(t, co, old);
}

static void
on_change_over(struct txn *t)
{
	struct change_op *co = container_of(t, struct change_op, txn);
	struct rport *p = t->port;
	struct store_op *op = &co->del->op;
	int result = t->result;

	fault_point(co->is_attrs ? "attrs.done" : "delete.done");
	gateway_id_over(p->st, co->id);
	txn_fini(t);
	free(co);
	rop_end(p, op, result);
}

static int
start_change(struct store_port *sp, const struct store_key *k, struct store_del *del,
	     struct change_op **ret_co)
{
	struct change_op *co = txn_op_new(sizeof *co, offsetof(struct change_op, txn), k);
	int e = co ? txn_add_object(&co->txn) : -ENOMEM;

	del->op.port = sp;
	if (e == 0)
		e = gateway_id(rport(sp)->st, &co->id);
	if (e < 0) {
		if (co)
			txn_fini(&co->txn);
		free(co);
		return e;
	}
	co->del = del;
	co->txn.decide = decide_change;
	co->txn.over = on_change_over;
	*ret_co = co;
	return 0;
}

int
rstore_delete(struct store_port *sp, const struct store_key *k, const struct store_pre *pre,
	      struct store_del *del)
{
	struct change_op *co;
	int e = start_change(sp, k, del, &co);

	if (e < 0)
		return e;
	if (pre)
		co->pre = *pre;
	rport(sp)->inflight++;
	txn_start(rport(sp), &co->txn);
	return 0;
}

int
rstore_set_attrs(struct store_port *sp, const struct store_key *k, uint64_t version, const void *attrs,
		 uint32_t attrs_len, struct store_del *op)
{
	struct change_op *co;
	int e = start_change(sp, k, op, &co);

	if (e < 0)
		return e;
	co->is_attrs = true;
	co->attrs = attrs;
	co->attrs_len = attrs_len;
	if (version)
		co->pre = (struct store_pre){ .kind = PRE_VERSION, .version = version };
	rport(sp)->inflight++;
	txn_start(rport(sp), &co->txn);
	return 0;
}
