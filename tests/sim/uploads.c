/* SPDX-License-Identifier: Apache-2.0 */
/* What clients do with uploads and attributes, see sim.h. */
#include "tests/sim/client_int.h"

#include "base/check.h"
#include "base/list.h"

#include <errno.h>
#include <string.h>

/* ---- uploads ---- */

static int
new_upload_op(struct client *c, enum op_kind kind, uint32_t create)
{
	int op = client_new_op(c, kind, ops[create].bucket, ops[create].key);

	ops[op].slot = ops[create].slot;
	ops[op].create = create;
	return op;
}

static void
do_create(struct client *c, int b, int k)
{
	struct store_key key = client_key(b, k);
	int slot = model_free_slot(), op, r;

	if (slot < 0)
		return;
	op = client_new_op(c, OP_CREATE, b, k);
	ops[op].slot = slot;
	ops[op].create = (uint32_t)op;
	say("op %d: client %d begins upload %d of bucket %d key %d", op, c->nr, slot, b, k);
	model_op_begin(op);
	c->f_up = false;
	c->up.op.done = client_done;
	r = store_upload_create(client_port(c), &key, "", 0, &c->up);
	if (r == 0) {
		client_wait(c, &c->f_up);
		r = c->up.op.result;
	}
	if (r == 0 && memcmp(c->up.id, ops[op].uid, sizeof c->up.id) != 0)
		sim_fail("op %d: another id than in the log", op);
	model_op_over(op, r);
}

static void
do_part(struct client *c, uint32_t create)
{
	const struct sim_op *up = &ops[create];
	struct store_key key = client_key(up->bucket, up->key);
	struct store_commit sc = { .inline_data = NULL };
	uint32_t size = one_in(12) ? 0 : client_size();
	int op = new_upload_op(c, OP_PART, create), r;

	ops[op].number = 1 + (int)below(PARTS_MAX);
	ops[op].size = size;
	sc.meta.etag = model_etag((uint32_t)op);
	say("op %d: client %d puts part %d of upload op %u, %u bytes", op, c->nr, ops[op].number, create,
	    size);
	model_op_begin(op);
	counts.puts++;
	r = store_put_init_part(client_port(c), &c->put, &key, up->uid, (uint32_t)ops[op].number,
				one_in(3) ? STORE_SIZE_UNKNOWN : size);
	model_op_over(op, client_put(c, r, size, &sc, false));
}

static void
do_abort(struct client *c, uint32_t create)
{
	struct store_key key = client_key(ops[create].bucket, ops[create].key);
	int op = new_upload_op(c, OP_ABORT, create), r;

	say("op %d: client %d aborts upload op %u", op, c->nr, create);
	model_op_begin(op);
	c->f_up = false;
	c->up.op.done = client_done;
	r = store_upload_abort(client_port(c), &key, ops[create].uid, &c->up);
	if (r == 0) {
		client_wait(c, &c->f_up);
		r = c->up.op.result;
	}
	model_op_over(op, r);
}

/* The list of an earlier completion again, or the parts that are there:
 * perhaps not all, perhaps not these. */
static void
choose_list(struct sim_op *o, uint32_t create)
{
	for (int i = op_nr - 2; i > 0 && !one_in(3); i--) {
		if (ops[i].kind == OP_COMPLETE && ops[i].create == create) {
			memcpy(o->part, ops[i].part, sizeof o->part);
			return;
		}
	}
	for (int i = 0; i < PARTS_MAX; i++) {
		o->part[i] = model.up[o->slot] == create ? model.part[o->slot][i] : 0;
		if (one_in(6))
			o->part[i] = 0;
	}
	for (int i = op_nr - 2; i > 0 && one_in(4); i--) {
		if (ops[i].kind == OP_PART && ops[i].create == create)
			o->part[ops[i].number - 1] = (uint32_t)i;
	}
}

static void
do_complete(struct client *c, uint32_t create)
{
	struct store_key key = client_key(ops[create].bucket, ops[create].key);
	int op = new_upload_op(c, OP_COMPLETE, create), r;
	struct sim_op *o = &ops[op];
	uint32_t nr = 0;

	choose_list(o, create);
	for (int i = 0; i < PARTS_MAX; i++) {
		if (!o->part[i])
			continue;
		c->refs[nr++] =
			(struct store_part_ref){ .number = (uint32_t)i + 1, .etag = model_etag(o->part[i]) };
		o->size += ops[o->part[i]].size;
	}
	if (nr == 0) {
		o->kind = OP_ABORT; /* never begun */
		return;
	}
	o->pre = client_pre(o->bucket, o->key);
	c->complete = (struct store_complete){ .op.done = client_done,
					       .parts = c->refs,
					       .part_nr = nr,
					       .pre = o->pre,
					       .meta.etag = model_etag((uint32_t)op),
					       .meta.expires_ns = sim_expiry((uint32_t)op) };
	say("op %d: client %d completes upload op %u with %u parts, %u bytes, pre %d", op, c->nr, create, nr,
	    o->size, o->pre.kind);
	model_op_begin(op);
	c->f_complete = false;
	r = store_upload_complete(client_port(c), &key, ops[create].uid, &c->complete);
	if (r == 0)
		client_wait(c, &c->f_complete);
	if (r >= 0)
		r = c->complete.op.result;
	if (r == 0 && c->complete.size_bytes != o->size)
		sim_fail("op %d: %llu bytes were completed", op, (unsigned long long)c->complete.size_bytes);
	model_op_over(op, r == 0 && c->complete.was_done ? 2 : r);
}

void
upload_prepare(struct client *c)
{
	do_create(c, 0, 0);
	for (uint32_t n = 1 + below(3); n && model.up[0]; n--)
		do_part(c, model.up[0]);
}

void
upload_op(struct client *c, int b, int k)
{
	uint32_t create = 0, w = below(16);

	/* Mostly one that is there; sometimes any that ever was. */
	if (one_in(8)) {
		for (int i = op_nr - 1; i > 0 && !create; i--) {
			if (ops[i].kind == OP_CREATE && ops[i].published && one_in(2))
				create = (uint32_t)i;
		}
	} else {
		create = model.up[below(UPS_MAX)];
	}
	if (!create || w < 2)
		do_create(c, b, k);
	else if (w < 11)
		do_part(c, create);
	else if (w < 15)
		do_complete(c, create);
	else
		do_abort(c, create);
}

/* ---- attributes ---- */

static uint64_t
choose_version(uint32_t id, uint64_t any)
{
	switch (below(4)) {
	case 0:
		return any;
	case 1:
		return 1 + below((uint32_t)op_nr);
	default:
		return id ? ops[id].version : 0;
	}
}

static void
do_attrs(struct client *c, int b, int k)
{
	struct store_key key = client_key(b, k);
	int op = client_new_op(c, OP_ATTRS, b, k), r;
	struct sim_op *o = &ops[op];

	o->want = choose_version(model.attr[b][k] ? model.attr[b][k] : model.id[b][k], 0);
	o->attrs_len = model_attrs(c->attrs, 8 + below(200), (uint32_t)op);
	say("op %d: client %d sets attributes of bucket %d key %d, version %llu", op, c->nr, b, k,
	    (unsigned long long)o->want);
	model_op_begin(op);
	c->f_del = false;
	c->del.op.done = client_done;
	r = store_set_attrs(client_port(c), &key, o->want, c->attrs, o->attrs_len, &c->del);
	if (r == 0) {
		client_wait(c, &c->f_del);
		r = c->del.op.result;
	}
	model_op_over(op, r);
}

static void
do_battrs(struct client *c, int b)
{
	int op = client_new_op(c, OP_BATTRS, b, -1), r;
	struct sim_op *o = &ops[op];

	o->want = choose_version(model.battr[b], STORE_VERSION_ANY);
	o->attrs_len =
		model_attrs(c->attrs, one_in(4) ? 0 : 8 + below(BATTRS_NR * BATTRS_BYTES - 8), (uint32_t)op);
	if (o->attrs_len == 0) {
		/* None; that there are none already leaves no record. */
		if (o->want == 0 || !model.battr[b])
			return;
	}
	say("op %d: client %d sets %u bytes of attributes of bucket %d, version %llu", op, c->nr,
	    o->attrs_len, b, (unsigned long long)o->want);
	model_op_begin(op);
	c->f_set = false;
	c->set.op.done = client_done;
	r = store_bucket_set_attrs(client_port(c), bucket_name(b), strlen(bucket_name(b)), o->want, c->attrs,
				   o->attrs_len, &c->set);
	if (r == 0) {
		client_wait(c, &c->f_set);
		r = c->set.op.result;
	}
	model_op_over(op, r == 0 && o->attrs_len == 0 && !o->published ? -EINTR : r);
}

void
attrs_op(struct client *c, int b, int k)
{
	if (one_in(3))
		do_battrs(c, b);
	else
		do_attrs(c, b, k);
}
