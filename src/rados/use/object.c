/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: open, read, parts. */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "base/crc64.h"
#include "rados/io/rstore.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A part of an open object. The part is decoded when it is used, so that an object with many parts takes little memory. */
struct place {
	uint64_t off;        /* offset of the part in the object, in bytes */
	uint32_t number, at; /* number of the part; its offset in the list, in bytes */
};

/* An open object. */
struct robj {
	struct rport *port;
	struct open_op *opens; /* the open in progress; NULL: the object is open */
	struct bytes value;
	struct map_read map;
	struct record rec;
	const uint8_t *list;  /* encoded parts, rec.parts_len bytes, in value or map */
	struct place *places; /* positions of the parts, in the order of part numbers */
	uint64_t epoch;
	uint32_t reads;
	struct ahead *ahead; /* parallel read of the first bytes; NULL after the first read */
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
	free(o->map.list.p);
	free(o->places);
	free(o);
}

/* ---- open ---- */

struct open_op {
	struct txn txn;
	struct robj *o;
	bool is_to_read;
};

static void
open_end(struct open_op *oo, int result)
{
	struct store_obj *obj = container_of(oo->txn.op, struct store_obj, op);
	struct robj *o = oo->o;

	if (result < 0) {
		if (o->epoch)
			gateway_unpin(oo->txn.port->st, o->epoch);
		ahead_drop(o->ahead);
		robj_free(o);
	} else {
		obj->size_bytes = o->rec.size_bytes;
		obj->version = o->rec.version;
		obj->crc64 = o->rec.crc64;
		obj->meta = record_meta(&o->rec);
		obj->part_nr = o->rec.part_nr;
		obj->is_open = true;
		memcpy(obj->priv, &o, sizeof(struct robj *));
	}
	txn_op_end(&oo->txn, result);
}

/* Finds the places of the parts. list: rec.parts_len bytes. Returns 0, -ENOMEM or -EBADMSG. */
static int
take_parts(struct robj *o, const void *list)
{
	struct cur c = cursor(list, o->rec.parts_len);
	struct record part = { 0 };
	uint64_t off = 0;

	check(!o->places && o->rec.part_nr > 0);
	o->list = list;
	o->places = calloc(o->rec.part_nr, sizeof *o->places);
	if (!o->places)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->rec.part_nr; i++) {
		uint32_t at = (uint32_t)(c.p - o->list);

		if (part_next(&c, &part) <= 0)
			return -EBADMSG;
		o->places[i] = (struct place){ off, part.number, at };
		off += part.size_bytes;
	}
	return c.p == c.end && off == o->rec.size_bytes ? 0 : -EBADMSG;
}

/* Decodes a part. Its pointers are valid while the object is open. */
static struct record
part_at(const struct robj *o, uint32_t i)
{
	uint32_t at = o->places[i].at;
	struct cur c = cursor(o->list + at, o->rec.parts_len - at);
	struct record part = { 0 };

	/* take_parts() has decoded the same bytes. */
	check(part_next(&c, &part) > 0);
	return part;
}

static void
on_map(struct call *c)
{
	struct robj *o = container_of(c, struct robj, map.call);
	struct open_op *oo = o->opens;
	int e = map_read_check(&o->map, &o->rec);

	if (e == 0)
		e = take_parts(o, o->map.list.p);
	if (e == -ENOENT || e == -EBADMSG) {
		log_error("the list of parts of '%.*s/%.*s' is damaged", (int)oo->txn.bucket_len,
			  oo->txn.bucket, (int)oo->txn.object_len, oo->txn.object);
		e = -EBADMSG;
	}
	open_end(oo, result_of(e));
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
		t->result = take_parts(o, o->rec.parts);
	if (t->result < 0) {
		log_error("the record of '%.*s/%.*s' is damaged", (int)t->bucket_len, t->bucket,
			  (int)t->object_len, t->object);
		return TXN_OVER;
	}
	if (!record_is_there(&o->rec))
		t->result = -ENOENT;
	if (oo->is_to_read)
		o->ahead = ahead_judge(o->ahead, t, t->result == 0 ? &o->rec : NULL);
	if (t->result < 0)
		return TXN_OVER;
	/* The pin remains until store_close(). */
	o->epoch = t->epoch;
	t->is_pinned = false;
	return TXN_OVER;
}

static void
on_open_over(struct txn *t)
{
	struct open_op *oo = container_of(t, struct open_op, txn);
	struct robj *o = oo->o;
	bool has_map = t->result == 0 && o->rec.kind == REC_MAP;

	o->opens = oo;
	if (has_map)
		t->result = map_read_send(t->port, &o->map, &o->rec, on_map);
	if (!has_map || t->result < 0)
		open_end(oo, t->result);
}

int
rstore_open_object(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct rport *p = rport(sp);
	struct open_op *oo = txn_op_new(p, sizeof *oo, &l->key, NULL, true);

	if (oo)
		oo->o = calloc(1, sizeof *oo->o);
	if (!oo || !oo->o) {
		txn_op_drop(oo);
		return -ENOMEM;
	}
	oo->o->port = p;
	oo->is_to_read = l->is_to_read;
	oo->txn.is_read = true;
	txn_op_start(&oo->txn, op, decide_open, on_open_over);
	/* The read begins before the transaction can end, which takes a turn of the event loop. */
	if (l->is_to_read)
		oo->o->ahead = ahead_begin(&oo->txn, l->want);
	return 0;
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

/* Returns the index of the last part that begins at or before off; by_number: of the last part with this
 * number or a lower one. Of parts that begin at the same offset, all but the last are empty. */
static uint32_t
place_of(const struct robj *o, uint64_t off, bool by_number)
{
	uint32_t lo = 0, hi = o->rec.part_nr;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if ((by_number ? o->places[mid].number : o->places[mid].off) <= off)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

int
rstore_obj_part(struct store_obj *obj, uint32_t nr, bool by_number, struct store_part *ret_part)
{
	const struct robj *o = robj(obj);
	uint32_t i = by_number ? place_of(o, nr, true) : nr;
	struct record part;

	if (i >= o->rec.part_nr || (by_number && o->places[i].number != nr))
		return -ENOENT;
	part = part_at(o, i);
	*ret_part = part_show(&part, o->places[i].off);
	return 0;
}

/* ---- read ---- */

/* Returns the record, or the part, with the byte at off, and in *ret_from the offset of its first byte in
 * the object. off is in the object. */
static struct record
bytes_at(const struct robj *o, uint64_t off, uint64_t *ret_from)
{
	uint32_t i;

	*ret_from = 0;
	if (!o->rec.part_nr)
		return o->rec;
	i = place_of(o, off, false);
	*ret_from = o->places[i].off;
	return part_at(o, i);
}

uint32_t
rstore_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap, uint32_t *ret_skew)
{
	const struct robj *o = robj(obj);
	uint64_t from;
	const struct record x = bytes_at(o, off, &from);

	return data_read_plan(o->port->st, x.size_bytes, off - from, want, cap, ret_skew);
}

#define READ_CALLS 3 /* a read has bytes of at most this number of data objects, which have at least 2 MiB */

struct rread {
	struct store_read *rd; /* NULL: cancelled */
	struct robj *o;
	const uint8_t *crcs; /* CRCs of the record or part whose bytes are read */
	struct buf *buf;     /* buffer of the caller */
	uint32_t len, left;
	int result;
	/* parallel read for which this read waits, without calls; NULL: this read has calls */
	struct ahead *ahead;
	struct rread_call {
		struct data_read dr;
		struct rread *r;
	} call[READ_CALLS];
	uint8_t trailers[];
};

static void
say_damaged(const struct data_read *dr)
{
	atomic_fetch_add(&dr->call.port->st->stats[POOL_DATA].crc_errors, 1);
	log_error("%s: data object %s is %s", dr->call.port->st->data_pool, data_name(dr->id, dr->n).text,
		  dr->call.result == -ENOENT ? "missing" : "damaged");
}

static void
on_read(struct call *c)
{
	struct rread_call *rc = container_of(c, struct rread_call, dr.call);
	struct rread *r = rc->r;
	struct rport *p = c->port;
	struct store_read *rd = r->rd;
	/* After a cancellation the buffer may have other bytes. */
	int e = rd ? data_read_check(&rc->dr, r->crcs) : c->result, result;

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

/* Ends the read with the bytes of the parallel read; if these are missing or wrong, sends the read again,
 * which then shows the error. */
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
	if (ahead_take(a, r->buf, 0, r->len, r->crcs, &rd->instead) == 0) {
		send_reads(r);
		return;
	}
	r->o->reads--;
	free(r);
	rop_end(p, &rd->op, len);
}

/* Returns true if the range from `rel` on begins and ends at granules of the bytes of x, or at the end of
 * these bytes. */
static bool
range_ok(const struct record *x, uint64_t rel, uint32_t len)
{
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
	struct record x;
	struct rread *r;
	uint64_t rel;
	int got;

	rd->op.port = sp;
	if (off >= o->rec.size_bytes)
		return -EINVAL;
	x = bytes_at(o, off, &rel);
	rel = off - rel;
	if (!range_ok(&x, rel, len))
		return -EINVAL;
	if (x.kind == REC_INLINE) {
		memcpy(buf->mem, (const char *)x.inline_data + rel, len);
		rd->op.result = (int)len;
		return 1;
	}
	o->ahead = NULL;
	got = a ? ahead_take(a, buf, off, len, x.crcs, &rd->instead) : 0;
	if (got > 0) {
		rd->op.result = (int)len;
		return 1;
	}
	if (got == 0)
		a = NULL;
	r = calloc(1, sizeof *r + READ_CALLS * (size_t)trailer_bytes(each));
	if (!r) {
		ahead_drop(a);
		return -ENOMEM;
	}
	r->rd = rd;
	r->o = o;
	r->crcs = x.crcs;
	r->buf = buf;
	r->len = len;
	for (uint32_t at = 0; at < len; nr++) {
		struct data_read *dr = &r->call[nr].dr;

		check(nr < READ_CALLS);
		r->call[nr].r = r;
		/* For an OSD one read of data and trailer is cheaper than two reads; the buffer has room
		 * for a trailer. */
		data_read_init(dr, p->st, x.data, x.size_bytes, !x.crc_nr, rel + at, len - at);
		at += dr->len;
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
	/* A call whose answer has come cannot be cancelled; the caller waits for it. */
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
