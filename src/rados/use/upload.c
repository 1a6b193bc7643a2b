/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads: create, stat, list of parts. All rows of an upload and of its object lie in the shard of the key. */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum txn_say
upload_set(struct txn *t, struct upload *u, struct rid act)
{
	void *value = txn_set(t, 0, upload_bytes(u));

	if (!value)
		return TXN_OVER;
	u->closer = act.instance;
	u->close = act;
	upload_encode(value, u);
	return TXN_COMMIT;
}

int
upload_row(const struct txn *t, struct upload *ret_upload)
{
	const struct bytes *row = &t->key[0].old;

	return row->p ? upload_decode(row->p, row->len, ret_upload) : -ENOENT;
}

/* ---- create, stat ---- */

struct upload_op {
	struct txn txn;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint64_t ctime_ns;
	const void *attrs; /* create: attributes, owned by the caller */
	uint32_t attrs_len;
	void *to; /* stat: the attributes are copied to this memory */
	uint32_t cap;
};

static int
start(struct upload_op *uo, struct store_op *op, enum txn_say (*decide)(struct txn *t),
      void (*over)(struct txn *t))
{
	char key[OMAP_KEY_MAX];

	if (txn_add_key(&uo->txn, key, key_upload(key, uo->txn.object, uo->txn.object_len, uo->id)) < 0) {
		txn_op_drop(&uo->txn);
		return -ENOMEM;
	}
	return txn_op_start(&uo->txn, op, decide, over);
}

static enum txn_say
decide_create(struct txn *t)
{
	struct upload_op *uo = container_of(t, struct upload_op, txn);
	struct upload u = { .ctime_ns = uo->ctime_ns, .attrs = uo->attrs, .attrs_len = uo->attrs_len };
	const struct model_op op = { .act = MODEL_CREATE_UPLOAD };
	struct rows rows = { .txn = t };
	struct model_answer a;
	enum txn_say say;

	t->result = 0;
	/* The id belongs to this operation alone, so the row was set by an earlier try. */
	if (t->key[0].old.p)
		return TXN_OVER;
	say = rows_decide(&rows, &op, &a);
	if (say != TXN_COMMIT)
		return say;
	memcpy(u.id, uo->id, sizeof u.id);
	t->delta = a.usage;
	return upload_set(t, &u, (struct rid){ 0 });
}

static void
on_created(struct txn *t)
{
	const struct upload_op *uo = container_of(t, struct upload_op, txn);

	if (t->result == 0)
		memcpy(container_of(t->op, struct store_upload, op)->id, uo->id, sizeof uo->id);
	txn_op_over(t);
}

int
rstore_upload_create(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct rport *p = rport(sp);
	struct upload_op *uo;
	uint64_t time;
	uint32_t half;
	struct rid id;
	int e = gateway_id(p->st, &id);

	if (e < 0)
		return e;
	gateway_id_over(p->st, id);
	uo = txn_op_new(p, sizeof *uo, &c->key);
	if (!uo)
		return -ENOMEM;
	uo->attrs = c->attrs;
	uo->attrs_len = c->attrs_len;
	uo->ctime_ns = clock_wall_ns();
	/* The ids of all gateways sort by the time of creation, and are unique. */
	time = htobe64(uo->ctime_ns);
	memcpy(uo->id, &time, 8);
	half = htobe32(id.instance);
	memcpy(uo->id + 8, &half, 4);
	half = htobe32((uint32_t)id.counter);
	memcpy(uo->id + 12, &half, 4);
	return start(uo, op, decide_create, on_created);
}

static enum txn_say
decide_stat(struct txn *t)
{
	struct upload_op *uo = container_of(t, struct upload_op, txn);
	struct store_stat *stat = container_of(t->op, struct store_stat, op);
	struct upload u;

	t->result = upload_row(t, &u);
	if (t->result < 0)
		return TXN_OVER;
	stat->ctime_ns = u.ctime_ns;
	stat->attrs_len = u.attrs_len;
	if (u.attrs_len && uo->cap)
		memcpy(uo->to, u.attrs, u.attrs_len < uo->cap ? u.attrs_len : uo->cap);
	return TXN_OVER;
}

int
rstore_upload_stat(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct upload_op *uo = txn_op_new(rport(sp), sizeof *uo, &l->key);

	if (!uo)
		return -ENOMEM;
	uo->to = l->attrs;
	uo->cap = l->attrs ? l->cap : 0;
	memcpy(uo->id, l->id, sizeof uo->id);
	return start(uo, op, decide_stat, txn_op_over);
}

/* ---- list ---- */

struct parts_op {
	struct txn txn;
	struct store_part_list *pl;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct page page;
	char after[OMAP_KEY_MAX], prefix[OMAP_KEY_MAX];
	uint32_t given;
	bool is_full;
};

static void on_parts_page(struct page *pg);

static void
next_parts(struct parts_op *po)
{
	uint32_t left = po->pl->max - po->given;

	check(po->given <= po->pl->max);
	/* One entry more shows whether others follow. */
	page_read(po->txn.port, &po->page, po->txn.shard->name, po->after, po->prefix,
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

/* The list of parts is complete only if the upload still exists, because the parts end with their upload. */
static void
on_parts_over(struct txn *t)
{
	struct parts_op *po = container_of(t, struct parts_op, txn);

	txn_op_end(t, t->result < 0 ? t->result : (int)po->given);
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
		txn_op_end(&po->txn, result_of(e));
}

static enum txn_say
decide_parts(struct txn *t)
{
	struct upload u;

	t->result = upload_row(t, &u);
	return TXN_OVER;
}

static void
on_parts_looked(struct txn *t)
{
	struct parts_op *po = container_of(t, struct parts_op, txn);

	if (t->result < 0)
		txn_op_end(&po->txn, t->result);
	else
		next_parts(po);
}

/* Looks up the upload. Returns 0 or -ENOMEM. */
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
		txn_start(po->txn.port, &po->txn);
	return e;
}

int
rstore_list_parts(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_part_list *pl = container_of(op, struct store_part_list, op);
	struct parts_op *po = txn_op_new(rport(sp), sizeof *po, &l->key);
	int e;

	pl->more = false;
	if (!po)
		return -ENOMEM;
	po->pl = pl;
	memcpy(po->id, l->id, sizeof po->id);
	key_part(po->prefix, l->id, 0);
	key_part(po->after, l->id, pl->after);
	txn_op_begin(&po->txn, op);
	e = start_parts(po, on_parts_looked);
	if (e < 0) {
		rport(sp)->inflight--;
		txn_op_drop(&po->txn);
	}
	return e;
}
