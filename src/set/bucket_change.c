/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a change of a bucket: the change visits the engines in turn, and a set has one change in progress at a
 * time. See bucket_change.h. */
#include "set/bucket_change.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
change_next_of(const struct change *c, int at)
{
	do
		at++;
	while (at < c->port->nr && !set_counts(c->port->set, at));
	return at;
}

int
change_before(const struct change *c, int at)
{
	do
		at--;
	while (at >= 0 && !set_counts(c->port->set, at));
	return at;
}

bool
change_is_lost(const struct change *c)
{
	return c->at >= 0 && c->at < c->port->nr && !set_counts(c->port->set, c->at);
}

/* ---- taking turns ---- */

/* Advances the change. Returns true if the change is complete; false: it waits for an engine or for the
 * map. */
static bool
drive(struct change *c, int r)
{
	struct set *s = c->port->set;

	for (;;) {
		int started;

		c->r = r;
		if (!set_settle(s, &c->turn))
			return false;
		if (set_is_read_only(s))
			change_is_done(c, c->touched ? -ECANCELED : -EROFS);
		started = c->is_over ? 0 : c->next(c, r);
		if (c->is_over)
			return true;
		if (started == 0) {
			c->sub->is_busy = true;
			return false;
		}
		r = started < 0 ? started : c->sub->u.op.result;
	}
}

int
change_is_done(struct change *c, int result)
{
	check(!c->is_over);
	c->is_over = true;
	c->result = result;
	return 0;
}

static struct sub *
sub_new(struct change *c)
{
	struct sub *sub = calloc(1, sizeof *sub + c->attrs_len);

	if (!sub)
		return NULL;
	sub->c = c;
	sub->port = c->port;
	if (c->attrs_len)
		memcpy(sub->attrs, c->attrs, c->attrs_len);
	return sub;
}

void
change_free(struct change *c)
{
	port_unpin(c->port);
	free(c->sub);
	free(c);
}

static void
end(struct change *c)
{
	set_new_head(c->port->set);
	c->op->result = c->result;
	c->has_ended = true;
	if (!set_give_turn(c->port->set, &c->turn))
		change_free(c);
}

static void
go_on(struct change *c, int r)
{
	struct store_op *op = c->op;

	if (!drive(c, r))
		return;
	end(c);
	op->done(op);
}

static void
on_sub(struct store_op *op)
{
	struct sub *sub = container_of(op, struct sub, u.op);

	sub->is_busy = false;
	if (sub->c) {
		go_on(sub->c, op->result);
		return;
	}
	port_unpin(sub->port);
	free(sub);
}

/* Handles the notification that a disk has failed. If the change waits for that disk, the change continues
 * without the answer, because a disk that hangs may answer late. */
static void
on_alarm(struct msg *m)
{
	struct change *c = container_of(m, struct change, turn.alarm);
	struct sub *next;

	set_hear_alarm(c->port->set, &c->turn);
	if (c->has_ended) {
		change_free(c);
		return;
	}
	if (!c->sub->is_busy || !set_has_failed(c->port->set, c->at) || !(next = sub_new(c)))
		return;
	port_pin(c->port);
	c->sub->c = NULL;
	c->sub = next;
	go_on(c, -EROFS);
}

static void
on_turn(struct msg *m)
{
	struct change *c = container_of(m, struct change, turn.msg);

	go_on(c, c->r);
}

struct change *
change_new(struct store_port *sp, struct store_op *op, const struct store_change *sc,
	   int (*next)(struct change *, int))
{
	struct set_port *p = set_port(sp);
	struct change *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	op->port = sp;
	c->turn.mb = p->mb;
	c->turn.go = on_turn;
	c->turn.on_alarm = on_alarm;
	c->port = p;
	c->op = op;
	c->next = next;
	c->at = -1;
	c->len = sc->key.bucket_len;
	check(c->len > 0 && c->len <= sizeof c->name);
	memcpy(c->name, sc->key.bucket, c->len);
	c->attrs = sc->attrs;
	c->attrs_len = sc->attrs_len;
	c->act = sc->act;
	c->version = sc->act == ACT_SET_BUCKET_ATTRS ? sc->version : STORE_VERSION_ANY;
	if (sc->max)
		c->max_quota = *sc->max;
	c->sub = sub_new(c);
	if (!c->sub) {
		free(c);
		return NULL;
	}
	port_pin(p);
	return c;
}

int
change_begin(struct change *c)
{
	if (!c)
		return -EAGAIN;
	if (!set_take_turn(c->port->set, &c->turn) || !drive(c, 0))
		return 0;
	end(c);
	return 1;
}

/* ---- on one engine ---- */

struct store_port *
change_engine_at(struct change *c)
{
	check(!c->sub->is_busy && c->at >= 0);
	memset(&c->sub->u, 0, sizeof c->sub->u);
	c->sub->u.op.done = on_sub;
	return port_engine(c->port, c->at);
}

int
change_apply_at(struct change *c, struct store_change sc)
{
	struct store_port *e = change_engine_at(c);

	sc.key = (struct store_key){ .bucket = c->name, .bucket_len = (uint16_t)c->len };
	return e->ops->apply(e, &sc, &c->sub->u.op);
}

int
change_remove_at(struct change *c)
{
	c->touched = true;
	return change_apply_at(c, (struct store_change){ .act = ACT_DELETE_BUCKET });
}

int
change_gate_at(struct change *c, enum store_gate gate)
{
	return change_apply_at(c, (struct store_change){ .act = ACT_GATE_BUCKET, .gate = gate });
}

int
change_open_next(struct change *c)
{
	if (c->step != OPEN && !c->failed)
		set_new_head(c->port->set);
	c->step = OPEN;
	do
		c->at = change_next_of(c, c->at);
	while (c->at < c->port->nr && c->closed >> c->at & 1);
	return c->at < c->port->nr ? change_gate_at(c, GATE_OPEN) : change_is_done(c, c->failed);
}
