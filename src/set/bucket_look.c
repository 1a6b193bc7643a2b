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

int
set_bucket_head(struct store_port *sp, const char *name, size_t len, struct store_stat *st)
{
	struct store_port *head = head_port(sp);

	return head->ops->bucket_head(head, name, len, st);
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
set_bucket_get_attrs(struct store_port *sp, const char *name, size_t len, void *attrs, uint32_t cap,
		     struct store_stat *st)
{
	struct set_port *p = set_port(sp);
	struct store_port *e = head_port(sp);
	struct attrs_look *l;
	int r;

	if (port_engines(p) == 1)
		return e->ops->bucket_get_attrs(e, name, len, attrs, cap, st);
	l = malloc(sizeof *l);
	if (!l)
		return -EAGAIN;
	st->op.port = sp;
	*l = (struct attrs_look){ .st = *st, .of = st, .port = p };
	l->st.op.done = on_attrs;
	while (port_engine(p, l->engine) != e)
		l->engine++;
	port_pin(p);
	r = e->ops->bucket_get_attrs(e, name, len, attrs, cap, &l->st);
	if (r == 1) {
		attrs_seen(l);
	} else if (r < 0) {
		port_unpin(p);
		free(l);
	}
	return r;
}

int
set_list_buckets(struct store_port *sp, struct store_list *ls)
{
	struct store_port *head = head_port(sp);

	return head->ops->list(head, ls);
}
