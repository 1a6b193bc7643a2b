/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Issues changes of one key that consist of one step. While slots move, a change may reach an engine that is
 * handing over the key; this engine returns -EXDEV after a wait. The change is then issued again at the key's
 * current engine. This file keeps the arguments of the change until the change ends.
 */
#include "set/replicas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 3

struct issue {
	struct set_port *port;
	struct store_op *op; /* operation of the caller */
	int tries;
	struct set_call call;
	struct store_pre pre;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint16_t bucket_len, key_len;
	char bucket[STORE_BUCKET_MAX], key[STORE_KEY_MAX];
	/* Operation at the engine, with its arguments; the kind of the change determines the member. */
	union {
		struct store_op op;
		struct store_del del;
		struct store_upload upload;
		struct store_complete complete;
	} u;
};

static struct issue *
issue_new(struct set_port *p, const struct store_key *k, struct store_op *op, const struct set_call *c)
{
	struct issue *i = calloc(1, sizeof *i);

	if (!i)
		return NULL;
	i->port = p;
	i->op = op;
	i->call = *c;
	i->bucket_len = k->bucket_len;
	i->key_len = k->key_len;
	memcpy(i->bucket, k->bucket, k->bucket_len);
	memcpy(i->key, k->key, k->key_len);
	if (c->pre) {
		i->pre = *c->pre;
		i->call.pre = &i->pre;
	}
	if (c->id) {
		memcpy(i->id, c->id, sizeof i->id);
		i->call.id = i->id;
	}
	if (c->kind == CALL_COMPLETE)
		i->u.complete = *container_of(op, struct store_complete, op);
	return i;
}

static void on_done(struct store_op *op);

/* Starts the change at the key's current engine, and returns the result of the engine's start function. After
 * the result 1, op.result of the engine's operation is set. */
static int
go(struct issue *i)
{
	struct store_key k = { i->bucket, i->key, i->bucket_len, i->key_len };

	for (;;) {
		int error, r;
		struct store_port *e = set_port_to_write(port_base(i->port), &k, &error);

		if (!e)
			return error;
		i->u.op.done = on_done;
		r = set_start_call(e, &k, &i->u.op, &i->call);
		if (!(r > 0 && i->u.op.result == -EXDEV && i->tries++ < TRIES))
			return r;
	}
}

/* Copies the result to the caller's operation, and frees the change. */
static void
end(struct issue *i)
{
	struct store_op *op = i->op;

	switch (i->call.kind) {
	case CALL_CREATE:
		memcpy(container_of(op, struct store_upload, op)->id, i->u.upload.id, STORE_UPLOAD_ID_BYTES);
		break;
	case CALL_COMPLETE:
		set_give_completed(container_of(op, struct store_complete, op), &i->u.complete);
		break;
	default:
		break;
	}
	op->result = i->u.op.result;
	port_unpin(i->port);
	free(i);
}

static void
on_done(struct store_op *sub)
{
	struct issue *i = container_of(sub, struct issue, u.op);
	struct store_op *op = i->op;
	int r = 1;

	if (sub->result == -EXDEV && i->tries++ < TRIES)
		r = go(i);
	if (r == 0)
		return;
	if (r < 0)
		sub->result = r;
	end(i);
	op->done(op);
}

int
set_issue(struct store_port *sp, const struct store_key *k, struct store_op *op, const struct set_call *c)
{
	struct set_port *p = set_port(sp);
	struct store_key two;
	struct issue *i;
	int r;

	if (set_has_two(sp, k, &two))
		return set_two_issue(p, &two, op, c);
	if (!set_is_moving(port_set(p))) {
		int error;
		struct store_port *e = set_port_to_write(sp, k, &error);

		return e ? set_start_call(e, k, op, c) : error;
	}
	i = issue_new(p, k, op, c);
	if (!i)
		return -EAGAIN;
	op->port = sp;
	port_pin(p);
	r = go(i);
	if (r < 0)
		i->u.op.result = r;
	if (r != 0)
		end(i);
	return r;
}
