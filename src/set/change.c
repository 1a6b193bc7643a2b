/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes one key:
 *
 * 1. A change of a key with two copies takes the key lock.
 * 2. The primary validates and commits the change. If the primary fails, the change waits for the recovery
 *   task, and begins again at the new primary. If the key moves to another engine, the primary returns -EXDEV
 *   after a wait, and the change begins again at the key's current engine.
 * 3. The secondary commits the change. If the secondary fails or misses the update, the change waits until
 *   the map says that the secondary is not in sync. A key with one copy has no secondary.
 * 4. The change is answered.
 *
 * No reader sees a change that only the primary has, because readers wait for the key lock. If the primary is
 * lost between the two commits, the change has not happened, and begins again at the new primary. A PUT does
 * not begin again, because its bytes are no longer available.
 *
 * A change of a key with one copy is passed to the engine of the key without any of this while no slot moves.
 */
#include "set/change.h"

#include "set/map/set_rules.h"
#include "store/own_buf.h"
#include "base/buf.h"
#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_TRIES 8
#define SECOND_TRIES 4

static void first(struct key_op *ko);
static void second(struct key_change *c);

static struct key_change *
change_of(struct key_op *ko)
{
	return container_of(ko, struct key_change, ko);
}

/* ---- the end ---- */

/* Ends the change with `result`. is_open: leaves the key in doubt, because the primary has the change, and
 * the next start may keep or drop the change. */
static void
end(struct key_change *c, int result, bool is_open)
{
	struct set *s = c->ko.port->set;
	struct store_op *op = c->op;

	check(!c->is_over);
	c->is_over = true;
	c->result = result < 0 && c->was_copied ? -ECANCELED : result;
	if (c->is_unsettled)
		set_end_doubt(s, set_slot(&c->ko.key));
	if (is_open && key_op_has_lock(&c->ko))
		set_release(set_key_locks(s), &c->ko.hold, true);
	key_op_end(&c->ko);
	if (c->copy)
		copy_drop(c->copy);
	c->copy = NULL;
	if (c->is_starting)
		return;
	c->give(c);
	op->done(op);
}

static void
over(struct key_change *c, int result)
{
	end(c, result, false);
}

/* ---- the secondary ---- */

struct copy *
copy_new(struct key_change *c, int engine)
{
	struct copy *cp = calloc(1, sizeof *cp);

	if (!cp)
		return NULL;
	check(engine != SET_NOWHERE);
	key_op_init(&cp->ko, c->ko.port, &c->ko.key);
	port_pin(c->ko.port);
	cp->of = c;
	cp->engine = engine;
	cp->send.key = cp->ko.key;
	return cp;
}

void
copy_drop(struct copy *cp)
{
	struct store_port *e = port_engine(cp->ko.port, cp->engine);

	cp->of = NULL;
	if (cp->is_busy || cp->writes)
		return;
	if (cp->has_put)
		e->ops->put_abort(e, &cp->put);
	free(cp->buf.mem);
	key_op_end(&cp->ko);
	free(cp);
}

/* The role, in the newest map, of the engine that was the primary at the start of a change. The newest map
 * may not be effective yet. */
enum first_is { FIRST_LOST, FIRST_ALONE, FIRST_OF_TWO };

static enum first_is
first_by_table(const struct key_change *c)
{
	struct set *s = c->ko.port->set;
	bool has_failed = set_has_failed(s, c->first), is_full;
	int number;

	is_full = set_look_up_slot(s, (int)set_slot(&c->ko.key), &number);
	/* If the primary has not failed, a move took the change along with the other records of the slot. Only
	 * a failed primary can have lost the change. */
	if (has_failed && (set_primary(s, &c->ko.key) != c->first || number != set_number(s, c->first)))
		return FIRST_LOST;
	return is_full ? FIRST_OF_TWO : FIRST_ALONE;
}

/* Continues a change after the wait for the recovery task. By now the secondary is another disk, or is not in
 * sync, or the set is read-only. */
static void
second_kept(struct key_op *ko)
{
	struct key_change *c = change_of(ko);
	struct set *s = c->ko.port->set;
	enum first_is is = first_by_table(c);

	if (set_is_read_only(s))
		end(c, -ECANCELED, true);
	else if (is == FIRST_LOST)
		/* The change is repeated with the same arguments, with two exceptions: a PUT, and the
		 * creation of an upload that the secondary may already have, because the repetition would
		 * give the upload another id. */
		c->is_put || (c->call.act == ACT_CREATE_UPLOAD && c->was_copied) ? over(c, -ECANCELED)
										 : first(ko);
	else if (set_secondary(s, &c->ko.key) != SET_NOWHERE)
		second(c);
	else if (is == FIRST_ALONE)
		over(c, c->done);
	else
		/* Both disks have failed. The secondary is in sync according to the map, and may become the
		 * primary at the next start (M36). */
		end(c, -ECANCELED, true);
}

/* Handles the result of the secondary for this change. engine: the engine of that secondary. */
static void
second_ended(struct key_change *c, int engine, int result)
{
	struct set *s = c->ko.port->set;
	bool has_failed = engine != SET_NOWHERE && set_has_failed(s, engine);

	if (list_linked(&c->link))
		list_del(&c->link);
	if (result >= 0 || (has_failed && !RULE_AWAY_BEFORE_COPY_ANSWER)) {
		over(c, c->done);
		return;
	}
	/* The secondary returns -EPERM while it is becoming the primary. */
	if (result == -EPERM || has_failed || set_has_failed(s, c->first)) {
		key_op_wait(&c->ko, second_kept);
	} else if (c->tries++ < SECOND_TRIES) {
		second(c);
	} else {
		set_miss(s, store_place(&c->ko.key));
		key_op_wait(&c->ko, second_kept);
	}
}

static void
copy_ended(struct copy *cp, int result)
{
	struct key_change *c = cp->of;

	cp->is_busy = false;
	if (!c)
		copy_drop(cp);
	else
		second_ended(c, cp->engine, result);
}

static void
on_sent(struct store_op *op)
{
	copy_ended(container_of(container_of(op, struct store_send, op), struct copy, send), op->result);
}

static void
on_put(struct store_op *op)
{
	struct copy *cp = container_of(container_of(op, struct store_put, op), struct copy, put);

	cp->has_put = false;
	copy_ended(cp, op->result);
}

static int
send(struct key_change *c, struct store_port *from, struct store_port *to)
{
	struct copy *cp = c->copy;

	/* the buffer for bytes that the secondary lacks; few changes need the buffer */
	if (!store_buf_make(&cp->buf, BUF_LARGE_BYTES))
		return -EAGAIN;
	cp->send.buf = &cp->buf;
	cp->send.op.done = on_sent;
	cp->send.only_upload =
		c->call.act == ACT_CREATE_UPLOAD || c->call.act == ACT_ABORT_UPLOAD ? cp->id : NULL;
	return to->ops->member->send(from, to, &cp->send);
}

static int
put(struct key_change *c, struct store_port *from, struct store_port *to)
{
	struct copy *cp = c->copy;
	int r;

	cp->put.op.done = on_put;
	r = to->ops->member->copy_commit(to, &cp->put, from, c->u.put.version, &c->commit);
	if (r < 0) {
		to->ops->put_abort(to, &cp->put);
		cp->has_put = false;
	}
	return r;
}

static void
second(struct key_change *c)
{
	struct set_port *p = c->ko.port;
	struct set *s = p->set;
	int engine = set_secondary(s, &c->ko.key), r;
	struct store_port *from, *to;

	/* The slot has no secondary, but the newest map does not record that: the engine that was the
	 * secondary may be becoming the primary without this change, or may have failed, too. The change
	 * waits for the recovery task. */
	if (engine == SET_NOWHERE && RULE_BOTH_TABLES && first_by_table(c) != FIRST_ALONE) {
		key_op_wait(&c->ko, second_kept);
		return;
	}
	if (engine == SET_NOWHERE || !RULE_COPY_BEFORE_ANSWER) {
		over(c, c->done);
		return;
	}
	/* The map still lists the failed disk. The copy is not started: the port has already ended the waits
	 * for this disk, and a new wait would not end while the disk hangs. */
	if (set_has_failed(s, engine)) {
		second_ended(c, engine, -EROFS);
		return;
	}
	if (c->copy && c->copy->engine != engine) {
		copy_drop(c->copy);
		c->copy = NULL;
	}
	if (!c->copy)
		c->copy = copy_new(c, engine);
	if (!c->copy) {
		second_ended(c, engine, -EAGAIN);
		return;
	}
	memcpy(c->copy->id, c->call.act == ACT_CREATE_UPLOAD ? c->u.upload.id : c->id, sizeof c->copy->id);
	/* The slot may have moved to another engine since the commit of the primary. The records of the slot,
	 * including this change, moved with the slot. */
	c->first = set_primary(s, &c->ko.key);
	from = port_engine(p, c->first);
	to = port_engine(p, engine);
	c->copy->is_busy = c->was_copied = true;
	list_push_tail(port_waiting(p, PORT_CHANGES), &c->link);
	r = c->copy->has_put && !c->copy->write_error ? put(c, from, to) : send(c, from, to);
	if (r < 0)
		copy_ended(c->copy, r);
	else if (r > 0)
		copy_ended(c->copy, c->copy->send.op.result);
}

void
set_poke_changes(struct set_port *p)
{
	list_for_each_safe(l, port_waiting(p, PORT_CHANGES))
	{
		struct key_change *c = container_of(l, struct key_change, link);
		int engine = c->copy->engine;

		if (!set_has_failed(p->set, engine))
			continue;
		copy_drop(c->copy);
		c->copy = NULL;
		/* The copy ends with an error. The recovery task may have removed the secondary from the map
		 * already. */
		second_ended(c, engine, -EROFS);
	}
}

/* ---- the primary ---- */

static void
first_kept(struct key_op *ko)
{
	struct key_change *c = change_of(ko);
	struct set *s = c->ko.port->set;

	/* The failed primary was not replaced in the recovery round, so the change ends. */
	if (set_primary(s, &ko->key) == c->first && set_has_failed(s, c->first))
		over(c, c->is_open ? -ECANCELED : -EROFS);
	else
		first(ko);
}

static void
first_ended(struct key_change *c, int result)
{
	struct set *s = c->ko.port->set;
	bool may_wait = store_has_two(&c->ko.key);

	if (result >= 0 && may_wait) {
		c->tries = 0;
		c->done = result;
		if (!c->is_unsettled)
			set_begin_doubt(s, set_slot(&c->ko.key));
		c->is_unsettled = true;
		second(c);
	} else if (may_wait && c->first != SET_NOWHERE && set_has_failed(s, c->first) &&
		   c->tries++ < FIRST_TRIES) {
		c->is_open |= result != -EROFS;
		if (c->is_put)
			over(c, result == -EROFS ? result : -ECANCELED);
		else
			key_op_wait(&c->ko, first_kept);
	} else if (result == -EXDEV && !c->is_put && c->tries++ < FIRST_TRIES) {
		/* The slot has moved to another engine. A new primary may not have accepted the slot yet. */
		if (may_wait)
			key_op_wait(&c->ko, first);
		else
			first(&c->ko);
	} else {
		over(c, result);
	}
}

static void
on_first(struct store_op *op)
{
	struct key_change *c = container_of(op, struct key_change, u.op);

	/* A PUT may have been replayed at another engine, which then is the primary. */
	for (int i = 0; c->is_put && i < c->ko.port->nr; i++) {
		if (port_engine(c->ko.port, i) == op->port)
			c->first = i;
	}
	first_ended(c, op->result);
}

static void
first(struct key_op *ko)
{
	struct key_change *c = change_of(ko);
	struct set *s = c->ko.port->set;
	int home = set_primary(s, &ko->key), error, r;
	struct store_port *e = set_port_to_write(&ko->port->base, &ko->key, &error);

	/* The PUT was begun on the engine that is becoming the primary (put.c): the commit waits until
	 * this engine is the primary. */
	if (c->is_put && home != c->first && set_has_failed(s, home) && c->tries++ < FIRST_TRIES) {
		key_op_wait(ko, first);
		return;
	}
	/* If another engine is the primary now, it does not matter whether the former primary has the
	 * change. */
	c->is_open &= home == c->first;
	c->first = home;
	if (!e) {
		/* The engine is out of service: the partition may be assigned to another engine soon. */
		first_ended(c, error);
		return;
	}
	c->u.op.done = on_first;
	/* A PUT is committed at the engine at which it began, which may be the former primary: that engine hands
	 * it over (carry_put.c). */
	r = c->is_put ? store_put_commit(c->u.put.op.port, &c->u.put, &c->commit)
		      : e->ops->apply(e, &c->call, &c->u.op);
	c->was_begun |= r >= 0;
	if (r != 0)
		first_ended(c, r < 0 ? r : c->u.op.result);
}

/* ---- the whole change ---- */

bool
key_change_begin(struct key_change *c)
{
	struct key_op *ko = &c->ko;
	int r;

	port_pin(ko->port);
	c->is_starting = true;
	list_init(&c->link);
	r = RULE_ONE_PER_KEY && store_has_two(&ko->key) ? key_op_lock(ko, first) : 1;
	if (r < 0)
		over(c, r);
	else if (r > 0)
		first(ko);
	c->is_starting = false;
	return c->is_over;
}

/* ---- changes in one step ---- */

/* Copies the result of the primary to the caller's operation, and frees the change. */
static void
give_step(struct key_change *c)
{
	/* Keeps op of the caller unchanged when the whole struct store_complete is copied to the caller below. */
	c->u.op = *c->op;
	if (c->call.act == ACT_CREATE_UPLOAD)
		memcpy(container_of(c->op, struct store_upload, op)->id, c->u.upload.id,
		       STORE_UPLOAD_ID_BYTES);
	if (c->call.act == ACT_COMPLETE)
		*container_of(c->op, struct store_complete, op) = c->u.complete;
	c->op->result = c->result;
	free(c);
}

int
set_change(struct store_port *sp, const struct store_change *call, struct store_op *op)
{
	struct set_port *p = set_port(sp);
	struct store_key key;
	struct key_change *c;
	int r;

	if (!set_has_two(sp, &call->key, &key) && !set_is_moving(p->set)) {
		struct store_port *e = set_port_to_write(sp, &call->key, &r);

		return e ? e->ops->apply(e, call, op) : r;
	}
	c = calloc(1, sizeof *c);
	if (!c)
		return -EAGAIN;
	op->port = sp;
	key_op_init(&c->ko, p, &key);
	c->op = op;
	c->give = give_step;
	c->call = *call;
	c->call.key = c->ko.key;
	if (call->pre) {
		c->pre = *call->pre;
		c->call.pre = &c->pre;
	}
	if (call->id) {
		memcpy(c->id, call->id, sizeof c->id);
		c->call.id = c->id;
	}
	if (call->act == ACT_COMPLETE)
		c->u.complete = *container_of(op, struct store_complete, op);
	if (!key_change_begin(c))
		return 0;
	r = c->was_begun ? 1 : c->result;
	give_step(c);
	return r;
}
