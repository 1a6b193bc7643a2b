/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as they are: opened, read, deleted, given other attributes. */
#include "rados/use/use_int.h"

#include "model/decide.h"
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
	const struct model_record there = { .version = old ? old->version : 0,
					    .etag = old ? old->etag : (struct store_etag){ .parts = 0 } };

	return model_judge_pre(pre, old ? &there : NULL);
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

	check(!o->parts && o->rec.part_nr > 0);
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
open_object(struct store_port *sp, const struct store_key *k, struct store_obj *obj, bool is_to_read,
	    uint64_t want)
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
		oo->o->ahead = ahead_begin(&oo->txn, want);
	return 0;
}

int
rstore_open_object(struct store_port *sp, const struct store_key *k, struct store_obj *obj)
{
	return open_object(sp, k, obj, false, 0);
}

int
rstore_open_to_read(struct store_port *sp, const struct store_key *k, uint64_t want, struct store_obj *obj)
{
	return open_object(sp, k, obj, true, want);
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
data_read_plan(const struct rstore *st, uint64_t size_bytes, uint64_t from, uint64_t want, uint32_t cap,
	       uint32_t *ret_skew)
{
	uint64_t begin = from / STORE_GRANULE * STORE_GRANULE, each = st->gw.format.object_bytes,
		 end = round_up(begin + 1, each), len;

	*ret_skew = (uint32_t)(from - begin);
	end = end < size_bytes ? end : size_bytes;
	len = round_up(*ret_skew + want, STORE_GRANULE);
	len = len < cap ? len : cap;
	len = len < STORE_READ ? len : STORE_READ;
	return (uint32_t)(len < end - begin ? len : end - begin);
}

uint32_t
rstore_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap, uint32_t *ret_skew)
{
	const struct robj *o = robj(obj);
	struct extent x = extent_at(o, off);

	return data_read_plan(o->port->st, x.size_bytes, off - x.off, want, cap, ret_skew);
}

void
data_read_init(struct data_read *dr, const struct rstore *st, struct rid id, uint64_t size_bytes,
	       bool has_trailer, uint64_t from, uint32_t len)
{
	uint32_t each = st->gw.format.object_bytes;
	uint64_t rest;

	check(len > 0 && from < size_bytes && from % STORE_GRANULE == 0);
	dr->id = id;
	dr->n = (uint32_t)(from / each);
	dr->off = (uint32_t)(from % each);
	dr->len = len < each - dr->off ? len : each - dr->off;
	rest = size_bytes - (uint64_t)dr->n * each;
	dr->data_bytes = rest < each ? (uint32_t)rest : each;
	dr->has_trailer = has_trailer;
	dr->along = 0;
	dr->got = dr->trailer_got = 0;
	dr->rv = dr->trailer_rv = 0;
}

void
data_read_join(struct data_read *dr)
{
	if (dr->has_trailer && dr->off + dr->len == dr->data_bytes)
		dr->along = trailer_bytes(dr->data_bytes);
}

void
data_read_send(struct rport *p, struct data_read *dr, char *to, uint8_t *trailer,
	       void (*back)(struct call *c))
{
	rados_read_op_t op = rados_create_read_op();
	char name[DATA_NAME];

	check(dr->off + dr->len <= dr->data_bytes && (dr->along == 0 || dr->off + dr->len == dr->data_bytes));
	dr->to = to;
	dr->trailer = dr->along ? (uint8_t *)to + dr->len : trailer;
	data_name(name, dr->id, dr->n);
	rados_read_op_read(op, dr->off, dr->len + dr->along, to, &dr->got, &dr->rv);
	if (dr->has_trailer && !dr->along)
		rados_read_op_read(op, dr->data_bytes, trailer_bytes(dr->data_bytes), (char *)trailer,
				   &dr->trailer_got, &dr->trailer_rv);
	call_read(p, &dr->call, POOL_DATA, name, op, dr->len, back);
}

int
data_read_check(const struct data_read *dr, const uint8_t *crcs)
{
	size_t got = dr->got, trailer_got = dr->trailer_got;
	int e = dr->call.result < 0 ? dr->call.result
		: dr->rv < 0        ? dr->rv
		: dr->has_trailer   ? dr->trailer_rv
				    : 0;

	if (e < 0)
		return e == -ENOENT ? -EBADMSG : e;
	if (dr->along && got > dr->len) {
		trailer_got = got - dr->len;
		got = dr->len;
	}
	if (got != dr->len)
		return -EBADMSG;
	if (dr->has_trailer) {
		if (trailer_got != trailer_bytes(dr->data_bytes) ||
		    trailer_check(dr->trailer, dr->data_bytes, dr->id, dr->n) < 0)
			return -EBADMSG;
		crcs = dr->trailer;
	}
	for (uint32_t at = 0; at < dr->len; at += STORE_GRANULE) {
		uint32_t n = dr->len - at < STORE_GRANULE ? dr->len - at : STORE_GRANULE;
		uint64_t crc = crc64_nvme(0, dr->to + at, n);

		if (memcmp(&crc, crcs + (size_t)(dr->off + at) / STORE_GRANULE * 8, 8) != 0)
			return -EBADMSG;
	}
	return 0;
}

#define READ_CALLS 3 /* data objects of 2 MiB and more that STORE_READ bytes lie in */

struct rread {
	struct store_read *rd; /* NULL: cancelled */
	struct robj *o;
	struct extent x;
	struct buf *buf; /* that was given, while it waits for what is read already */
	uint32_t len, left;
	int result;
	struct ahead *ahead; /* what it waits for instead of calls of its own */
	struct rread_call {
		struct data_read dr;
		struct rread *r;
	} call[READ_CALLS];
	uint8_t trailers[];
};

static void
say_damaged(const struct data_read *dr)
{
	char name[DATA_NAME];

	data_name(name, dr->id, dr->n);
	atomic_fetch_add(&dr->call.port->st->stats[POOL_DATA].crc_errors, 1);
	log_error("%s: data object %s is %s", dr->call.port->st->data_pool, name,
		  dr->call.result == -ENOENT ? "missing" : "damaged");
}

static void
on_read(struct call *c)
{
	struct rread_call *rc = container_of(c, struct rread_call, dr.call);
	struct rread *r = rc->r;
	struct rport *p = c->port;
	struct store_read *rd = r->rd;
	/* The buffer of one that was cancelled is somebody else's. */
	int e = rd ? data_read_check(&rc->dr, r->x.crcs) : c->result, result;

	if (rd && e == -EBADMSG)
		say_damaged(&rc->dr);
	if (e < 0 && r->result >= 0)
		r->result = result_of(e);
	check(r->left > 0 && (!rd || r->o->reads > 0));
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
send_reads(struct rread *r)
{
	struct rport *p = r->o->port;
	uint32_t trailer = trailer_bytes(p->st->gw.format.object_bytes), nr = r->left, at = 0;

	check(nr > 0 && nr <= READ_CALLS);
	for (uint32_t i = 0; i < nr; i++) {
		struct data_read *dr = &r->call[i].dr;
		uint32_t len = dr->len;

		data_read_send(p, dr, r->buf->mem + at, r->trailers + (size_t)i * trailer, on_read);
		at += len;
	}
}

/* What was not read well beside the look is read again, which says what is wrong with it. */
static void
on_ahead_back(void *cookie)
{
	struct rread *r = cookie;
	struct rport *p = r->o->port;
	struct store_read *rd = r->rd;
	struct ahead *a = r->ahead;
	int len = (int)r->len;

	check(rd && a && r->o->reads > 0);
	r->ahead = NULL;
	if (!ahead_take(a, r->buf, r->x.crcs, &rd->instead)) {
		send_reads(r);
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
	/* Other bytes than were foreseen, or no place for them. */
	o->ahead = NULL;
	if (a && !ahead_fits(a, buf, off, len)) {
		ahead_drop(a);
		a = NULL;
	}
	if (a && ahead_is_back(a)) {
		if (ahead_take(a, buf, x.crcs, &rd->instead)) {
			rd->op.result = (int)len;
			return 1;
		}
		a = NULL;
	}
	r = calloc(1, sizeof *r + READ_CALLS * (size_t)trailer_bytes(each));
	if (!r) {
		ahead_drop(a);
		return -ENOMEM;
	}
	r->rd = rd;
	r->o = o;
	r->x = x;
	r->buf = buf;
	r->len = len;
	for (uint32_t at = 0; at < len; nr++) {
		struct data_read *dr = &r->call[nr].dr;

		check(nr < READ_CALLS);
		r->call[nr].r = r;
		data_read_init(dr, p->st, x.data, x.size_bytes, !x.crc_nr, rel + at, len - at);
		at += dr->len;
		/* One read of both is less for an OSD than two; behind the buffer's bytes there is room. */
		if (at == len)
			data_read_join(dr);
	}
	memcpy(rd->priv, &r, sizeof(struct rread *));
	o->reads++;
	p->inflight++;
	r->left = nr;
	r->ahead = a;
	if (a)
		ahead_await(a, on_ahead_back, r);
	else
		send_reads(r);
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
		if (r->call[i].dr.call.comp)
			all &= call_cancel(&r->call[i].dr.call);
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
	check(t->more_nr <= 1);
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
