/* SPDX-License-Identifier: Apache-2.0 */
/* Reads data of buckets from the metadata leader: attributes and lists; see set_int.h. */
#include "set/set_int.h"

#include <errno.h>
#include <stdlib.h>

uint64_t
set_attrs_version(uint64_t version, int engine)
{
	return version && version != STORE_VERSION_ANY ? version ^ (uint64_t)(engine + 1) << 56 : version;
}

static struct store_port *
head_port(struct store_port *sp)
{
	struct set_port *p = set_port(sp);

	return port_engine(p, set_head(port_set(p)));
}

/* A read of a bucket's attributes. The version in the result includes the number of the engine. */
struct attrs_look {
	struct store_stat st;
	struct store_stat *of; /* result, owned by the caller */
	struct set_port *port;
	int engine;
};

static void
attrs_seen(struct attrs_look *l)
{
	void (*done)(struct store_op * op) = l->of->op.done;
	struct store_port *port = l->of->op.port;

	*l->of = l->st;
	l->of->op.done = done;
	l->of->op.port = port;
	l->of->version = set_attrs_version(l->st.version, l->engine);
	port_unpin(l->port);
	free(l);
}

static void
on_attrs(struct store_op *op)
{
	struct attrs_look *l = container_of(op, struct attrs_look, st.op);
	struct store_stat *of = l->of;

	attrs_seen(l);
	of->op.done(&of->op);
}

int
set_look_bucket(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_stat *st = container_of(op, struct store_stat, op);
	struct set_port *p = set_port(sp);
	struct store_port *e = head_port(sp);
	struct attrs_look *al;
	int r;

	if (l->kind == LOOK_BUCKET)
		return e->ops->look(e, l, op);
	al = malloc(sizeof *al);
	if (!al)
		return -EAGAIN;
	op->port = sp;
	*al = (struct attrs_look){ .st = *st, .of = st, .port = p };
	al->st.op.done = on_attrs;
	while (port_engine(p, al->engine) != e)
		al->engine++;
	port_pin(p);
	r = e->ops->look(e, l, &al->st.op);
	if (r == 1) {
		attrs_seen(al);
	} else if (r < 0) {
		port_unpin(p);
		free(al);
	}
	return r;
}

int
set_list_buckets(struct store_port *sp, struct store_list *ls)
{
	struct store_port *head = head_port(sp);

	return head->ops->list(head, ls);
}
