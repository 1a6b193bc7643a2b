/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads in parts.  All of one lies in the shard of its key: the upload, its parts, and the object it becomes.
 *
 * Who completes or aborts an upload closes it first (its row names the act): from then on parts are refused,
 * so the list that is read next is the last word, however many pages it has; then one change takes all of it
 * out of the index.  One whose closer is dead may be closed by another.
 */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- create, stat ---- */

struct upload_op {
	struct txn txn;
	struct store_upload *u;
	struct store_stat *stat;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint64_t ctime_ns;
	const void *attrs; /* to be set */
	uint32_t attrs_len;
	void *to; /* where they are to be copied */
	uint32_t cap;
};

static void
on_upload_over(struct txn *t)
{
	struct upload_op *uo = container_of(t, struct upload_op, txn);
	struct store_op *op = uo->u ? &uo->u->op : &uo->stat->op;
	struct rport *p = t->port;
	int result = t->result;

	if (uo->u && result == 0)
		memcpy(uo->u->id, uo->id, sizeof uo->id);
	txn_fini(t);
	free(uo);
	rop_end(p, op, result);
}

static int
start(struct rport *p, struct upload_op *uo, const struct store_key *k, enum txn_say (*decide)(struct txn *t))
{
	char key[OMAP_KEY_MAX];

	check(!uo->u != !uo->stat);
	if (txn_add_key(&uo->txn, key, key_upload(key, k->key, k->key_len, uo->id)) < 0) {
		free(uo);
		return -ENOMEM;
	}
	uo->txn.decide = decide;
	uo->txn.over = on_upload_over;
	p->inflight++;
	txn_start(p, &uo->txn);
	return 0;
}

static enum txn_say
decide_create(struct txn *t)
{
	struct upload_op *uo = container_of(t, struct upload_op, txn);
	struct upload u = { .ctime_ns = uo->ctime_ns, .attrs = uo->attrs, .attrs_len = uo->attrs_len };
	struct bytes value;

	t->result = 0;
	/* Nobody else has this id: it was sent before, and is there. */
	if (t->key[0].old.p)
		return TXN_OVER;
	memcpy(u.id, uo->id, sizeof u.id);
	if (!bytes_new(&value, upload_bytes(&u))) {
		t->result = -ENOMEM;
		return TXN_OVER;
	}
	upload_encode(value.p, &u);
	txn_set(t, 0, value);
	t->delta.uploads = 1;
	return TXN_COMMIT;
}

int
rstore_upload_create(struct store_port *sp, const struct store_key *k, const void *attrs, uint32_t attrs_len,
		     struct store_upload *u)
{
	struct rport *p = rport(sp);
	struct upload_op *uo;
	uint64_t time;
	uint32_t half;
	struct rid id;
	int e;

	u->op.port = sp;
	if (attrs_len > STORE_ATTRS_MAX)
		return -EINVAL;
	e = gateway_id(p->st, &id);
	if (e < 0)
		return e;
	gateway_id_over(p->st, id);
	uo = txn_op_new(sizeof *uo, offsetof(struct upload_op, txn), k);
	if (!uo)
		return -ENOMEM;
	uo->u = u;
	uo->attrs = attrs;
	uo->attrs_len = attrs_len;
	uo->ctime_ns = clock_wall_ns();
	/* In the order in which they were made, of all gateways; and never twice. */
	time = htobe64(uo->ctime_ns);
	memcpy(uo->id, &time, 8);
	half = htobe32(id.instance);
	memcpy(uo->id + 8, &half, 4);
	half = htobe32((uint32_t)id.counter);
	memcpy(uo->id + 12, &half, 4);
	return start(p, uo, k, decide_create);
}

static enum txn_say
decide_stat(struct txn *t)
{
	struct upload_op *uo = container_of(t, struct upload_op, txn);
	struct upload u;

	t->result = t->key[0].old.p ? upload_decode(t->key[0].old.p, t->key[0].old.len, &u) : -ENOENT;
	if (t->result < 0)
		return TXN_OVER;
	uo->stat->ctime_ns = u.ctime_ns;
	uo->stat->attrs_len = u.attrs_len;
	if (u.attrs_len && uo->cap)
		memcpy(uo->to, u.attrs, u.attrs_len < uo->cap ? u.attrs_len : uo->cap);
	return TXN_OVER;
}

int
rstore_upload_stat(struct store_port *sp, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		   void *attrs, uint32_t cap, struct store_stat *st)
{
	struct upload_op *uo = txn_op_new(sizeof *uo, offsetof(struct upload_op, txn), k);

	st->op.port = sp;
	if (!uo)
		return -ENOMEM;
	uo->stat = st;
	uo->to = attrs;
	uo->cap = attrs ? cap : 0;
	memcpy(uo->id, id, sizeof uo->id);
	return start(rport(sp), uo, k, decide_stat);
}

/* ---- reading all parts ---- */

struct found {
	struct bytes value; /* the record, as it lay there */
	struct record rec;
	uint32_t number;
};

/* ---- complete, abort ---- */

struct close_op {
	struct txn txn; /* keys: the upload; of a completion: the object as well */
	struct rport *port;
	struct store_complete *c; /* NULL: it is aborted */
	struct store_upload *u;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct rid act; /* of this closing, and of the object's record */
	struct page page;
	char after[OMAP_KEY_MAX], prefix[OMAP_KEY_MAX];
	struct found *found;
	uint32_t found_nr, found_cap;
	struct part *parts; /* that the object is made of */
	uint64_t size_bytes, crc64;
	struct bytes list; /* of parts, encoded */
	bool has_map;
	bool is_map_left; /* written, and nothing names it yet */
	struct call call; /* of the map */
	size_t got;
	int rv;
	struct bytes there; /* of the object's record: was_done */
	int said;           /* the result, once the upload is open again */
};

static void remove_map(struct close_op *co, int result);

static void
close_end(struct close_op *co, int result)
{
	struct rport *p = co->port;
	struct store_op *op = co->c ? &co->c->op : &co->u->op;

	/* Where another one has taken over, the map is its to clean up. */
	if (co->is_map_left && result != -ESHUTDOWN) {
		remove_map(co, result);
		return;
	}
	for (uint32_t i = 0; i < co->found_nr; i++)
		free(co->found[i].value.p);
	free(co->found);
	free(co->parts);
	free(co->list.p);
	free(co->there.p);
	gateway_id_over(p->st, co->act);
	txn_fini(&co->txn);
	free(co);
	rop_end(p, op, result);
}

static int
add_keys(struct close_op *co)
{
	struct txn *t = &co->txn;
	char key[OMAP_KEY_MAX];
	int e = txn_add_key(t, key, key_upload(key, t->object, t->object_len, co->id));

	return e < 0 || !co->c ? e : txn_add_object(t);
}

/* Another change of the upload; the one before is over. */
static void
change(struct close_op *co, enum txn_say (*decide)(struct txn *t), void (*over)(struct txn *t))
{
	struct txn *t = &co->txn;

	txn_renew(t);
	t->decide = decide;
	t->over = over;
	if (add_keys(co) < 0) {
		close_end(co, -ENOMEM);
		return;
	}
	txn_start(co->port, t);
}

static bool
is_ours(const struct txn *t, const struct close_op *co, struct upload *ret_upload)
{
	return t->key[0].old.p && upload_decode(t->key[0].old.p, t->key[0].old.len, ret_upload) == 0 &&
	       ret_upload->closer == co->act.instance && rid_same(ret_upload->close, co->act);
}

static enum txn_say
set_upload(struct txn *t, const struct upload *u)
{
	struct bytes value;

	if (!bytes_new(&value, upload_bytes(u))) {
		t->result = -ENOMEM;
		return TXN_OVER;
	}
	upload_encode(value.p, u);
	txn_set(t, 0, value);
	t->result = 0;
	return TXN_COMMIT;
}

/* -- it is opened again, as an error was found -- */

static enum txn_say
decide_open_again(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);
	struct upload u;

	t->result = 0;
	if (!is_ours(t, co, &u))
		return TXN_OVER;
	u.closer = 0;
	u.close = (struct rid){ 0 };
	return set_upload(t, &u);
}

static void
on_open_again(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);

	close_end(co, co->said);
}

static void
give_up(struct close_op *co, int result)
{
	co->said = result;
	fault_point("complete.given_up");
	if (result == -ESHUTDOWN)
		close_end(co, result);
	else
		change(co, decide_open_again, on_open_again);
}

/* -- the last change -- */

static int
remove_parts(struct close_op *co)
{
	char key[OMAP_KEY_MAX];
	int e = 0;

	for (uint32_t i = 0; e == 0 && i < co->found_nr; i++)
		e = txn_more(&co->txn, key, key_part(key, co->id, co->found[i].number), (struct bytes){ 0 });
	return e;
}

static bool
is_used(const struct close_op *co, uint32_t number)
{
	uint32_t lo = 0, hi = co->c ? co->c->part_nr : 0;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (co->c->parts[mid].number < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return co->c && lo < co->c->part_nr && co->c->parts[lo].number == number;
}

/* The data of the parts that the object is not made of. */
static int
drop_parts(struct close_op *co)
{
	struct garbage_data *data = calloc(co->found_nr + 1, sizeof *data);
	uint32_t nr = 0;
	int e = data ? 0 : -ENOMEM;

	for (uint32_t i = 0; e == 0 && i < co->found_nr; i++) {
		const struct record *r = &co->found[i].rec;

		if (r->kind == REC_DATA && !is_used(co, co->found[i].number))
			data[nr++] = (struct garbage_data){ r->data, r->size_bytes };
	}
	if (e == 0)
		e = txn_garbage_data(&co->txn, data, nr, NULL);
	free(data);
	return e;
}

static enum txn_say
put_object(struct close_op *co, const struct record *old)
{
	struct store_complete *c = co->c;
	struct record new = { .kind = co->has_map ? REC_MAP : REC_PARTS,
			      .size_bytes = co->size_bytes,
			      .crc64 = co->crc64,
			      .mtime_ns = c->meta.mtime_ns ? c->meta.mtime_ns : clock_wall_ns(),
			      .version = record_next_version(old),
			      .id = co->act,
			      .data = co->act,
			      .etag = c->meta.etag,
			      .attrs = c->meta.attrs,
			      .attrs_len = c->meta.attrs_len,
			      .upload_id = co->id,
			      .part_nr = c->part_nr,
			      .parts = (const uint8_t *)co->list.p,
			      .parts_len = (uint32_t)co->list.len };

	check(co->list.p && (co->has_map || co->list.len <= REC_PARTS_BYTES_MAX));
	if (co->has_map)
		new.parts_crc64 = crc64_nvme(0, co->list.p, co->list.len);
	c->version = new.version;
	c->size_bytes = new.size_bytes;
	c->crc64 = new.crc64;
	c->mtime_ns = new.mtime_ns;
	c->etag = new.etag;
	return txn_put_record(&co->txn, 1, &new, old);
}

static enum txn_say
decide_last(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);
	struct record rec, *old = NULL;
	struct upload u;

	t->result = 0;
	if (co->c && t->key[1].old.p)
		t->result = record_decode(t->key[1].old.p, t->key[1].old.len, old = &rec);
	if (t->result < 0)
		return TXN_OVER;
	if (!is_ours(t, co, &u)) {
		/* A new closer took us for dead. */
		t->result = -ECANCELED;
		return TXN_OVER;
	}
	if (co->c)
		t->result = record_judge(&co->c->pre, old);
	if (t->result == 0)
		t->result = remove_parts(co);
	if (t->result == 0)
		t->result = drop_parts(co);
	if (t->result < 0)
		return TXN_OVER;
	check(!co->c || co->parts);
	txn_remove(t, 0);
	fault_point(co->c ? "complete.decided" : "abort.decided");
	t->delta.uploads = -1;
	for (uint32_t i = 0; i < co->found_nr; i++)
		t->delta.bytes -= (int64_t)quota_part_bytes(co->found[i].rec.size_bytes);
	if (!co->c)
		return TXN_COMMIT;
	t->delta.objects = !old;
	t->delta.bytes += (int64_t)(co->size_bytes - (old ? old->size_bytes : 0));
	return put_object(co, old);
}

static void
on_last(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);

	fault_point(co->c ? "complete.done" : "abort.done");
	/* Lost for good, or won and followed by others already: then their garbage names the map. */
	co->is_map_left &= t->result != 0 && t->result != -ECANCELED;
	if (t->result == 0 || t->result == -ECANCELED || t->result == -ESHUTDOWN)
		close_end(co, t->result);
	else
		give_up(co, t->result);
}

/* -- the map -- */

static void
on_map_written(struct call *c)
{
	struct close_op *co = container_of(c, struct close_op, call);

	fault_point("complete.map_written");
	co->is_map_left = true;
	if (c->result < 0)
		give_up(co, result_of(c->result));
	else
		change(co, decide_last, on_last);
}

static void
map_name(const struct close_op *co, char name[40])
{
	char text[RID_TEXT];

	rid_text(text, co->act);
	snprintf(name, 40, "map.%s", text);
}

static void
on_map_removed(struct call *c)
{
	struct close_op *co = container_of(c, struct close_op, call);

	close_end(co, co->said);
}

/* Nothing came of it: the end follows. */
static void
remove_map(struct close_op *co, int result)
{
	rados_write_op_t op = rados_create_write_op();
	char name[40];

	check(co->has_map && co->is_map_left);
	co->is_map_left = false;
	co->said = result;
	map_name(co, name);
	rados_write_op_remove(op);
	call_write(co->port, &co->call, POOL_META, name, op, 0, on_map_removed);
}

static void
write_map(struct close_op *co)
{
	rados_write_op_t op = rados_create_write_op();
	uint64_t crc = crc64_nvme(0, co->list.p, co->list.len);
	char name[40];

	check(co->has_map && !co->is_map_left && co->list.len > REC_PARTS_BYTES_MAX);
	map_name(co, name);
	rados_write_op_write_full(op, co->list.p, co->list.len);
	rados_write_op_setxattr(op, XATTR_CRC, (const char *)&crc, sizeof crc);
	txn_set_owner(op, &co->txn);
	call_write(co->port, &co->call, POOL_META, name, op, co->list.len, on_map_written);
}

/* -- what was found -- */

static struct found *
find_part(struct close_op *co, uint32_t number)
{
	uint32_t lo = 0, hi = co->found_nr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (co->found[mid].number < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < co->found_nr && co->found[lo].number == number ? &co->found[lo] : NULL;
}

static struct part
part_of(const struct found *f)
{
	const struct record *r = &f->rec;

	return (struct part){ .number = f->number,
			      .attrs_len = r->attrs_len,
			      .size_bytes = r->size_bytes,
			      .crc64 = r->crc64,
			      .mtime_ns = r->mtime_ns,
			      .version = r->version,
			      .etag = r->etag,
			      .kind = r->kind,
			      .data = r->data,
			      .attrs = r->attrs,
			      .inline_data = r->inline_data,
			      .crcs = r->crcs,
			      .crc_nr = r->crc_nr };
}

static bool
same_etag(const struct store_etag *a, const struct store_etag *b)
{
	return a->parts == b->parts && memcmp(a->sum, b->sum, sizeof a->sum) == 0;
}

static int
judge_parts(struct close_op *co)
{
	struct store_complete *c = co->c;
	size_t at = 0;

	check(!co->parts && co->size_bytes == 0 && co->list.len == 0);
	co->parts = calloc(c->part_nr, sizeof *co->parts);
	if (!co->parts)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->part_nr; i++) {
		const struct store_part_ref *ref = &c->parts[i];
		const struct found *f = find_part(co, ref->number);

		c->bad = i;
		if (!f || !same_etag(&f->rec.etag, &ref->etag) ||
		    (ref->version && ref->version != f->rec.version))
			return -EBADR;
		if (i + 1 < c->part_nr && f->rec.size_bytes < c->part_min_bytes)
			return -EMSGSIZE;
		co->parts[i] = part_of(f);
		co->crc64 = crc64_nvme_combine(co->crc64, f->rec.crc64, f->rec.size_bytes);
		co->size_bytes += f->rec.size_bytes;
		co->list.len += part_encode(NULL, &co->parts[i]);
	}
	c->bad = 0;
	if (c->have_expect_size && c->expect_size_bytes != co->size_bytes)
		return -ERANGE;
	if (c->have_expect_crc64 && c->expect_crc64 != co->crc64)
		return -EILSEQ;
	co->list.p = malloc(co->list.len);
	if (!co->list.p)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->part_nr; i++)
		at += part_encode(co->list.p + at, &co->parts[i]);
	check(at == co->list.len);
	co->has_map = co->list.len > REC_PARTS_BYTES_MAX;
	return 0;
}

static void
on_all_found(struct close_op *co)
{
	int e = co->c ? judge_parts(co) : 0;

	fault_point("complete.judged");
	if (e < 0)
		give_up(co, e);
	else if (co->has_map)
		write_map(co);
	else
		change(co, decide_last, on_last);
}

static int
keep_found(struct close_op *co, const char *key, size_t key_len, const char *val, size_t val_len)
{
	uint32_t number = key_part_number(key, key_len), cap;
	struct found *f;

	if (!number || key_len >= sizeof co->after)
		return -EBADMSG;
	if (co->found_nr == co->found_cap) {
		cap = co->found_cap ? 2 * co->found_cap : 16;
		f = realloc(co->found, cap * sizeof *f);
		if (!f)
			return -ENOMEM;
		co->found = f;
		co->found_cap = cap;
	}
	f = &co->found[co->found_nr];
	if (!bytes_new(&f->value, val_len))
		return -ENOMEM;
	co->found_nr++;
	memcpy(f->value.p, val, val_len);
	f->number = number;
	memcpy(co->after, key, key_len);
	co->after[key_len] = 0;
	return record_decode(f->value.p, val_len, &f->rec);
}

static void
on_parts(struct page *pg)
{
	struct close_op *co = container_of(pg, struct close_op, page);
	const char *key, *val;
	size_t key_len, val_len;
	bool more = pg->more;
	int e = pg->call.result;

	while (e == 0 && page_next(pg, &key, &key_len, &val, &val_len))
		e = keep_found(co, key, key_len, val, val_len);
	page_end(pg);
	if (e < 0)
		give_up(co, result_of(e));
	else if (more)
		page_read(co->port, pg, co->txn.shard->name, co->after, co->prefix, OMAP_PAGE, on_parts);
	else
		on_all_found(co);
}

static void
on_closed(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);

	if (t->result < 0) {
		close_end(co, t->result);
		return;
	}
	fault_point(co->c ? "complete.closed" : "abort.closed");
	key_part(co->prefix, co->id, 0);
	page_read(co->port, &co->page, t->shard->name, NULL, co->prefix, OMAP_PAGE, on_parts);
}

/* -- the same completion, sent again -- */

static int
judge_done(struct close_op *co, const struct record *r, const void *parts, size_t len)
{
	struct store_complete *c = co->c;
	int e;

	check(c && r->part_nr == c->part_nr && !co->parts);
	co->parts = calloc(r->part_nr, sizeof *co->parts);
	e = co->parts ? parts_decode(parts, len, r->part_nr, co->parts) : -ENOMEM;
	for (uint32_t i = 0; e == 0 && i < r->part_nr; i++) {
		if (co->parts[i].number != c->parts[i].number ||
		    !same_etag(&co->parts[i].etag, &c->parts[i].etag))
			e = -ENOENT;
	}
	if (e < 0)
		return e;
	c->version = r->version;
	c->size_bytes = r->size_bytes;
	c->crc64 = r->crc64;
	c->mtime_ns = r->mtime_ns;
	c->etag = r->etag;
	c->was_done = true;
	return 0;
}

static void
on_done_map(struct call *call)
{
	struct close_op *co = container_of(call, struct close_op, call);
	struct record r;
	int e = call->result < 0 ? call->result : co->rv;

	if (e >= 0)
		e = record_decode(co->there.p, co->there.len, &r);
	if (e >= 0 && (co->got != co->list.len || crc64_nvme(0, co->list.p, co->list.len) != r.parts_crc64))
		e = -EBADMSG;
	if (e >= 0)
		e = judge_done(co, &r, co->list.p, co->list.len);
	close_end(co, result_of(e));
}

static void
read_done_map(struct close_op *co, const struct record *r)
{
	char text[RID_TEXT], name[40];
	rados_read_op_t op;

	if (!bytes_new(&co->list, r->parts_len)) {
		close_end(co, -ENOMEM);
		return;
	}
	rid_text(text, r->data);
	snprintf(name, sizeof name, "map.%s", text);
	op = rados_create_read_op();
	rados_read_op_read(op, 0, co->list.len, co->list.p, &co->got, &co->rv);
	call_read(co->port, &co->call, POOL_META, name, op, co->list.len, on_done_map);
}

static void
on_first(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);
	struct record r;

	if (!co->there.p) {
		on_closed(t);
		return;
	}
	t->result = record_decode(co->there.p, co->there.len, &r);
	if (t->result == 0 && r.kind == REC_MAP) {
		read_done_map(co, &r);
		return;
	}
	if (t->result == 0)
		t->result = judge_done(co, &r, r.parts, r.parts_len);
	close_end(co, t->result);
}

/* -- closing it -- */

/* There is no such upload: perhaps because this very list completed it. */
static enum txn_say
look_for_done(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);
	struct record r;

	t->result = -ENOENT;
	if (!co->c || !t->key[1].old.p || record_decode(t->key[1].old.p, t->key[1].old.len, &r) < 0 ||
	    (r.kind != REC_PARTS && r.kind != REC_MAP) || r.part_nr != co->c->part_nr ||
	    memcmp(r.upload_id, co->id, sizeof co->id) != 0)
		return TXN_OVER;
	t->result = 0;
	co->there = t->key[1].old;
	t->key[1].old = (struct bytes){ 0 };
	return TXN_OVER;
}

static enum txn_say
decide_close(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);
	struct record rec, *old = NULL;
	struct upload u;

	if (!t->key[0].old.p)
		return look_for_done(t);
	t->result = upload_decode(t->key[0].old.p, t->key[0].old.len, &u);
	if (t->result == 0 && co->c && t->key[1].old.p)
		t->result = record_decode(t->key[1].old.p, t->key[1].old.len, old = &rec);
	if (t->result < 0)
		return TXN_OVER;
	if (is_ours(t, co, &u))
		return TXN_OVER;
	/* Another one is at it: what it makes of the upload is soon known.  If it died, this one goes on. */
	if (u.closer && (u.closer == co->act.instance || gateway_is_alive(co->port->st, u.closer)))
		return TXN_AGAIN;
	if (co->c)
		t->result = record_judge(&co->c->pre, old);
	if (t->result < 0)
		return TXN_OVER;
	u.closer = co->act.instance;
	u.close = co->act;
	return set_upload(t, &u);
}

static int
start_close(struct rport *p, const struct store_key *k, const uint8_t *id, struct store_complete *c,
	    struct store_upload *u)
{
	struct close_op *co = txn_op_new(sizeof *co, offsetof(struct close_op, txn), k);
	int e = co ? gateway_id(p->st, &co->act) : -ENOMEM;

	if (e < 0) {
		free(co);
		return e;
	}
	co->port = p;
	co->c = c;
	co->u = u;
	memcpy(co->id, id, sizeof co->id);
	p->inflight++;
	change(co, decide_close, on_first);
	return 0;
}

int
rstore_upload_abort(struct store_port *sp, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		    struct store_upload *u)
{
	u->op.port = sp;
	return start_close(rport(sp), k, id, NULL, u);
}

int
rstore_upload_complete(struct store_port *sp, const struct store_key *k,
		       const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_complete *c)
{
	c->op.port = sp;
	c->was_done = false;
	c->version = c->size_bytes = c->crc64 = 0;
	c->op.result = -EINVAL;
	if (!c->part_nr || c->part_nr > STORE_PART_NR_MAX || c->meta.attrs_len > STORE_ATTRS_MAX)
		return 1;
	for (uint32_t i = 0; i < c->part_nr; i++) {
		c->bad = i;
		if (c->parts[i].number < 1 || c->parts[i].number > STORE_PART_NR_MAX ||
		    (i && c->parts[i].number <= c->parts[i - 1].number))
			return 1;
	}
	c->bad = 0;
	return start_close(rport(sp), k, id, c, NULL);
}

/* ---- list ---- */

struct parts_op {
	struct txn txn;
	struct store_part_list *pl;
	struct rport *port;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct page page;
	char after[OMAP_KEY_MAX], prefix[OMAP_KEY_MAX];
	uint32_t given;
	bool is_full;
};

static void
parts_end(struct parts_op *po, int result)
{
	struct rport *p = po->port;
	struct store_op *op = &po->pl->op;

	txn_fini(&po->txn);
	free(po);
	rop_end(p, op, result);
}

static void on_parts_page(struct page *pg);

static void
next_parts(struct parts_op *po)
{
	uint32_t left = po->pl->max - po->given;

	check(po->given <= po->pl->max);
	/* One more says whether there are others. */
	page_read(po->port, &po->page, po->txn.shard->name, po->after, po->prefix,
		  left < OMAP_PAGE ? left + 1 : OMAP_PAGE, on_parts_page);
}

static int
give_entry(struct parts_op *po, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct store_part_list *pl = po->pl;
	struct store_part part;
	struct record r;
	int e = record_decode(val, val_len, &r);

	if (e < 0 || !key_part_number(key, key_len) || key_len >= sizeof po->after)
		return -EBADMSG;
	if (po->is_full || po->given == pl->max) {
		pl->more = true;
		return 1;
	}
	memcpy(po->after, key, key_len);
	po->after[key_len] = 0;
	part = (struct store_part){ .number = key_part_number(key, key_len),
				    .size_bytes = r.size_bytes,
				    .crc64 = r.crc64,
				    .mtime_ns = r.mtime_ns,
				    .version = r.version,
				    .etag = r.etag,
				    .attrs = r.attrs,
				    .attrs_len = r.attrs_len };
	po->given++;
	po->is_full = !pl->part(pl, &part);
	return 0;
}

static int start_parts(struct parts_op *po, void (*over)(struct txn *t));

/* Its parts go with an upload: only if it is there still, what was read is all. */
static void
on_parts_over(struct txn *t)
{
	struct parts_op *po = container_of(t, struct parts_op, txn);

	parts_end(po, t->result < 0 ? t->result : (int)po->given);
}

static void
on_parts_page(struct page *pg)
{
	struct parts_op *po = container_of(pg, struct parts_op, page);
	const char *key, *val;
	size_t key_len, val_len;
	int e = pg->call.result;

	while (e == 0 && page_next(pg, &key, &key_len, &val, &val_len))
		e = give_entry(po, key, key_len, val, val_len);
	page_end(pg);
	if (e == 0 && pg->more)
		next_parts(po);
	else if (e < 0 || (e = start_parts(po, on_parts_over)) < 0)
		parts_end(po, result_of(e));
}

static enum txn_say
decide_parts(struct txn *t)
{
	struct upload u;

	t->result = t->key[0].old.p ? upload_decode(t->key[0].old.p, t->key[0].old.len, &u) : -ENOENT;
	return TXN_OVER;
}

static void
on_parts_looked(struct txn *t)
{
	struct parts_op *po = container_of(t, struct parts_op, txn);

	if (t->result < 0)
		parts_end(po, t->result);
	else
		next_parts(po);
}

/* Looks whether the upload is there. */
static int
start_parts(struct parts_op *po, void (*over)(struct txn *t))
{
	char key[OMAP_KEY_MAX];
	int e;

	txn_renew(&po->txn);
	po->txn.decide = decide_parts;
	po->txn.over = over;
	e = txn_add_key(&po->txn, key, key_upload(key, po->txn.object, po->txn.object_len, po->id));
	if (e == 0)
		txn_start(po->port, &po->txn);
	return e;
}

int
rstore_list_parts(struct store_port *sp, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		  struct store_part_list *pl)
{
	struct parts_op *po = txn_op_new(sizeof *po, offsetof(struct parts_op, txn), k);
	int e;

	pl->op.port = sp;
	pl->more = false;
	if (!po)
		return -ENOMEM;
	po->port = rport(sp);
	po->pl = pl;
	memcpy(po->id, id, sizeof po->id);
	key_part(po->prefix, id, 0);
	key_part(po->after, id, pl->after);
	po->port->inflight++;
	e = start_parts(po, on_parts_looked);
	if (e < 0) {
		po->port->inflight--;
		txn_fini(&po->txn);
		free(po);
	}
	return e;
}
