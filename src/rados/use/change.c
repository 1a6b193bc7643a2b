/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes of objects, and their new attributes. */
#include "rados/use/use_int.h"

#include "base/check.h"

#include <errno.h>

struct change_op {
	struct txn txn; /* key 0: the object */
	struct store_del *del;
	struct model_op op;
	struct store_pre pre;
	struct rid id; /* of the commit */
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
	struct model_answer a;
	enum txn_say say = rows_decide(&rows, &co->op, &a);

	if (say != TXN_COMMIT)
		return say;
	t->delta = a.usage;
	if (co->op.act == MODEL_SET_ATTRS)
		return set_attrs(co, &rows.old);
	t->result = txn_garbage(t, &rows.old);
	if (t->result < 0)
		return TXN_OVER;
	check(t->more_nr <= 1);
	txn_remove(t, 0);
	fault_point("delete.decided");
	t->result = a.result;
	return TXN_COMMIT;
}

static void
on_change_over(struct txn *t)
{
	struct change_op *co = container_of(t, struct change_op, txn);
	struct rport *p = t->port;
	struct store_op *op = &co->del->op;
	int result = t->result;

	fault_point(co->op.act == MODEL_SET_ATTRS ? "attrs.done" : "delete.done");
	gateway_id_over(p->st, co->id);
	txn_fini(t);
	free(co);
	rop_end(p, op, result);
}

/* The precondition and the names are copied. */
int
rstore_change_object(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct rport *p = rport(sp);
	struct change_op *co = txn_op_new(sizeof *co, offsetof(struct change_op, txn), &c->key);
	int e = co ? txn_add_object(&co->txn) : -ENOMEM;

	op->port = sp;
	if (e == 0)
		e = gateway_id(p->st, &co->id);
	if (e < 0) {
		if (co)
			txn_fini(&co->txn);
		free(co);
		return e;
	}
	co->del = container_of(op, struct store_del, op);
	co->op.act = c->act == ACT_DELETE ? MODEL_DELETE : MODEL_SET_ATTRS;
	co->op.version = c->version;
	if (c->pre) {
		co->pre = *c->pre;
		co->op.pre = &co->pre;
	}
	co->attrs = c->attrs;
	co->attrs_len = c->attrs_len;
	co->txn.decide = decide_change;
	co->txn.over = on_change_over;
	p->inflight++;
	txn_start(p, &co->txn);
	return 0;
}
