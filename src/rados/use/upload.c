/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads: create, stat, list of parts. All rows of an upload and of its object lie in the shard of the key. */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* ---- create, stat ---- */

struct upload_op {
	struct txn txn;
	struct store_upload *u;
	struct store_stat *stat;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint64_t ctime_ns;
	const void *attrs; /* create: attributes, owned by the caller */
	uint32_t attrs_len;
	void *to; /* stat: the attributes are copied to this memory */
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
start(struct rport *p, struct upload_op *uo, enum txn_say (*decide)(struct txn *t))
{
	char key[OMAP_KEY_MAX];

	check(!uo->u != !uo->stat);
	if (txn_add_key(&uo->txn, key, key_upload(key, uo->txn.object, uo->txn.object_len, uo->id)) < 0) {
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
	const struct model_op op = { .act = MODEL_CREATE_UPLOAD };
	struct rows rows = { .txn = t };
	struct model_answer a;
	struct bytes value;
	enum txn_say say;

	t->result = 0;
	/* The id belongs to this operation alone, so the row was set by an earlier try. */
	if (t->key[0].old.p)
		return TXN_OVER;
	say = rows_decide(&rows, &op, &a);
	if (say != TXN_COMMIT)
		return say;
	memcpy(u.id, uo->id, sizeof u.id);
	if (!bytes_new(&value, upload_bytes(&u))) {
		t->result = -ENOMEM;
		return TXN_OVER;
	}
	upload_encode(value.p, &u);
	txn_set(t, 0, value);
	t->delta = a.usage;
	return TXN_COMMIT;
}

int
rstore_upload_create(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct rport *p = rport(sp);
	struct upload_op *uo;
	uint64_t time;
	uint32_t half;
	struct rid id;
	int e;

	op->port = sp;
	e = gateway_id(p->st, &id);
	if (e < 0)
		return e;
	gateway_id_over(p->st, id);
	uo = txn_op_new(sizeof *uo, offsetof(struct upload_op, txn), &c->key);
	if (!uo)
		return -ENOMEM;
	uo->u = container_of(op, struct store_upload, op);
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
	return start(p, uo, decide_create);
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
rstore_upload_stat(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct upload_op *uo = txn_op_new(sizeof *uo, offsetof(struct upload_op, txn), &l->key);

	op->port = sp;
	if (!uo)
		return -ENOMEM;
	uo->stat = container_of(op, struct store_stat, op);
	uo->to = l->attrs;
	uo->cap = l->attrs ? l->cap : 0;
	memcpy(uo->id, l->id, sizeof uo->id);
	return start(rport(sp), uo, decide_stat);
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
	/* One entry more shows whether others follow. */
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

/* The list of parts is complete only if the upload still exists, because the parts end with their upload. */
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
		txn_start(po->port, &po->txn);
	return e;
}

int
rstore_list_parts(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_part_list *pl = container_of(op, struct store_part_list, op);
	struct parts_op *po = txn_op_new(sizeof *po, offsetof(struct parts_op, txn), &l->key);
	int e;

	op->port = sp;
	pl->more = false;
	if (!po)
		return -ENOMEM;
	po->port = rport(sp);
	po->pl = pl;
	memcpy(po->id, l->id, sizeof po->id);
	key_part(po->prefix, l->id, 0);
	key_part(po->after, l->id, pl->after);
	po->port->inflight++;
	e = start_parts(po, on_parts_looked);
	if (e < 0) {
		po->port->inflight--;
		txn_fini(&po->txn);
		free(po);
	}
	return e;
}
