/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes buckets in a set of one engine.
 *
 * The engine accepts changes in any order, without the map change lock. The set counts these changes: a
 * second engine becomes a member only when no such change is in flight. From then on changes take the map
 * change lock.
 */
#include "set/bucket_change.h"

#include <errno.h>
#include <stdlib.h>

struct through {
	struct set_port *port;
	struct store_op *op; /* operation of the caller */
	union {
		struct store_op op;
		struct store_del del;
		struct store_bucket_set set;
	} u;
};

static void
through_end(struct through *t, int r)
{
	t->op->result = r;
	set_end_through(port_set(t->port));
	port_unpin(t->port);
	free(t);
}

static void
on_through(struct store_op *sub)
{
	struct through *t = container_of(sub, struct through, u.op);
	struct store_op *op = t->op;

	through_end(t, sub->result);
	op->done(op);
}

static struct through *
through_new(struct set_port *p, struct store_op *op)
{
	struct through *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->port = p;
	t->op = op;
	t->u.op.done = on_through;
	op->port = port_base(p);
	port_pin(p);
	set_begin_through(port_set(p));
	return t;
}

int
through_apply(struct set_port *p, const struct store_change *sc, struct store_op *op)
{
	struct through *t = through_new(p, op);
	struct store_port *e = port_engine(p, 0);
	int r;

	if (!t)
		return -EAGAIN;
	r = e->ops->apply(e, sc, &t->u.op);
	if (r != 0)
		through_end(t, r < 0 ? r : t->u.op.result);
	return r;
}
