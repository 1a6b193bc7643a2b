/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes of objects, and changes of their attributes. */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "rados/io/fault.h"
#include "rados/io/rstore.h"

#include <errno.h>

struct change_op {
	struct txn txn; /* key 0: the object */
	struct model_op op;
	struct store_pre pre;
	struct rid id; /* id of the commit */
	const void *attrs;
	uint32_t attrs_len;
};

static enum txn_say
set_attrs(struct change_op *co, const struct record *old)
{
	struct record new = *old;

	new.version = next_version(old->version);
	new.replaced = old->id;
	new.id = co->id;
	new.attrs = co->attrs;
	new.attrs_len = co->attrs_len;
	fault_point("attrs.decided");
	return txn_set_record(&co->txn, 0, &new);
}

static enum txn_say
decide_change(struct txn *t)
{
	struct change_op *co = container_of(t, struct change_op, txn);
	struct rows rows = { .txn = t };
	enum txn_say say = rows_decide(&rows, &co->op);
	int e;

	if (say != TXN_COMMIT)
		return say;
	if (co->op.act == MODEL_SET_ATTRS)
		return set_attrs(co, &rows.old);
	e = txn_garbage(t, &rows.old);
	if (e < 0) {
		t->result = e;
		return TXN_OVER;
	}
	check(t->more_nr <= 1);
	txn_remove(t, 0);
	fault_point("delete.decided");
	return TXN_COMMIT;
}

static void
on_change_over(struct txn *t)
{
	struct change_op *co = container_of(t, struct change_op, txn);

	fault_point(co->op.act == MODEL_SET_ATTRS ? "attrs.done" : "delete.done");
	gateway_id_over(t->port->st, co->id);
	txn_op_over(t);
}

/* Copies the precondition and the names, which are valid only until the return. */
int
rstore_change_object(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct change_op *co = txn_op_new(rport(sp), sizeof *co, &c->key, NULL, true);
	int e = co ? gateway_id(rport(sp)->st, &co->id) : -ENOMEM;

	if (e < 0) {
		txn_op_drop(co);
		return e;
	}
	co->op.act = c->act == ACT_DELETE ? MODEL_DELETE : MODEL_SET_ATTRS;
	co->op.version = c->version;
	if (c->pre) {
		co->pre = *c->pre;
		co->op.pre = &co->pre;
	}
	co->attrs = c->attrs;
	co->attrs_len = c->attrs_len;
	return txn_op_start(&co->txn, op, decide_change, on_change_over);
}
