/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads: create, stat, list of parts. All rows of an upload and of its object are in the same shard. */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "rados/io/rstore.h"

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
	struct upload u; /* create: the new upload; its attributes are owned by the caller */
	void *to;        /* stat: memory for a copy of the attributes */
	uint32_t cap;
};

static enum txn_say
decide_create(struct txn *t)
{
	struct upload_op *uo = container_of(t, struct upload_op, txn);
	const struct model_op op = { .act = MODEL_CREATE_UPLOAD };
	struct rows rows = { .txn = t };
	enum txn_say say;

	t->result = 0;
	/* The id belongs to this operation alone, so the row was set by an earlier try. */
	if (t->key[0].old.p)
		return TXN_OVER;
	say = rows_decide(&rows, &op);
	if (say != TXN_COMMIT)
		return say;
	return upload_set(t, &uo->u, (struct rid){ 0 });
}

static void
on_created(struct txn *t)
{
	const struct upload_op *uo = container_of(t, struct upload_op, txn);

	if (t->result == 0)
		memcpy(container_of(t->op, struct store_upload, op)->id, uo->u.id, sizeof uo->u.id);
	txn_op_over(t);
}

int
rstore_upload_create(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct rport *p = rport(sp);
	uint64_t ctime_ns = clock_wall_ns();
	struct upload_op *uo;
	struct {
		uint64_t time;
		uint32_t instance, counter;
	} in_order;
	struct rid id;
	int e = gateway_id(p->st, &id);

	if (e < 0)
		return e;
	gateway_id_over(p->st, id);
	/* The ids of all gateways sort by the time of creation, and are unique. */
	in_order.time = htobe64(ctime_ns);
	in_order.instance = htobe32(id.instance);
	in_order.counter = htobe32((uint32_t)id.counter);
	uo = txn_op_new(p, sizeof *uo, &c->key, (const uint8_t *)&in_order, false);
	if (!uo)
		return -ENOMEM;
	uo->u = (struct upload){ .ctime_ns = ctime_ns, .attrs = c->attrs, .attrs_len = c->attrs_len };
	memcpy(uo->u.id, &in_order, sizeof uo->u.id);
	return txn_op_start(&uo->txn, op, decide_create, on_created);
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
	struct upload_op *uo = txn_op_new(rport(sp), sizeof *uo, &l->key, l->id, false);

	if (!uo)
		return -ENOMEM;
	uo->to = l->attrs;
	uo->cap = l->attrs ? l->cap : 0;
	return txn_op_start(&uo->txn, op, decide_stat, txn_op_over);
}

/* ---- list ---- */

struct parts_op {
	struct txn txn;
	struct store_part_list *pl;
	struct scan scan;
	char prefix[OMAP_KEY_MAX];
	uint32_t given;
	bool is_full;
};

static int
give_entry(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct parts_op *po = container_of(cookie, struct parts_op, scan);
	struct store_part_list *pl = po->pl;
	struct store_part part;
	struct record r;
	int e = record_decode(val, val_len, &r);

	r.number = e == 0 ? key_part_number(key, key_len) : 0;
	if (!r.number)
		return -EBADMSG;
	if (po->is_full || po->given == pl->max) {
		pl->more = true;
		return 1;
	}
	part = part_show(&r, 0);
	po->scan.left = pl->max - ++po->given;
	po->is_full = !pl->part(pl, &part);
	return 0;
}

static enum txn_say
decide_parts(struct txn *t)
{
	struct upload u;

	t->result = upload_row(t, &u);
	return TXN_OVER;
}

static void
on_parts_over(struct txn *t)
{
	struct parts_op *po = container_of(t, struct parts_op, txn);

	txn_op_end(t, t->result < 0 ? t->result : (int)po->given);
}

static void
on_parts_given(struct scan *s, int e)
{
	struct parts_op *po = container_of(s, struct parts_op, scan);

	/* If the upload still exists, the list of parts is complete, because the parts are removed
	 * together with their upload. */
	if (e < 0)
		txn_op_end(&po->txn, result_of(e));
	else
		txn_again(&po->txn, decide_parts, on_parts_over);
}

static void
on_parts_looked(struct txn *t)
{
	struct parts_op *po = container_of(t, struct parts_op, txn);

	if (t->result < 0) {
		txn_op_end(t, t->result);
		return;
	}
	scan_begin(t->port, &po->scan, t->shard->name, po->prefix, po->pl->max, give_entry, on_parts_given);
}

int
rstore_list_parts(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_part_list *pl = container_of(op, struct store_part_list, op);
	struct parts_op *po = txn_op_new(rport(sp), sizeof *po, &l->key, l->id, false);

	pl->more = false;
	if (!po)
		return -ENOMEM;
	po->pl = pl;
	key_part(po->prefix, l->id, 0);
	key_part(po->scan.after, l->id, pl->after);
	return txn_op_start(&po->txn, op, decide_parts, on_parts_looked);
}
