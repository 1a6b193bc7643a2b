/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes keys with two copies:
 *
 * 1. The change takes the key lock.
 * 2. The primary validates and commits the change. If the primary fails, the change waits for the recovery
 *   task, and begins again at the new primary.
 * 3. The secondary commits the change. If the secondary fails or misses the update, the change waits until
 *   the map says that the secondary is not in sync.
 * 4. The change is answered.
 *
 * No reader sees a change that only the primary has, because readers wait for the key lock. If the primary is
 * lost between the two commits, the change has not happened, and begins again at the new primary. A PUT does
 * not begin again, because its bytes are no longer available.
 */
#include "set/two_change.h"
#include "set/two_waiting.h"

#include "set/map/set_rules.h"
#include "store/own_buf.h"
#include "base/buf.h"
#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_TRIES 8
#define SECOND_TRIES 4

static void first(struct change_two *c);
static void second(struct change_two *c);

/* ---- the end ---- */

/* Ends the change with `result`. is_open: leaves the key in doubt, because the primary has the change, and
 * the next start may keep or drop the change. */
static void
end(struct change_two *c, int result, bool is_open)
{
	struct set_port *p = c->port;

	if (result < 0 && c->was_copied)
		result = -ECANCELED;
	if (c->is_unsettled)
		set_end_doubt(port_set(p), set_slot(&c->key));
	if (c->hold.key && is_open)
		set_leave_open(set_key_locks(port_set(p)), &c->hold);
	else if (c->hold.key)
		set_release(set_key_locks(port_set(p)), &c->hold);
	if (c->copy)
		two_copy_drop(c->copy);
	c->copy = NULL;
	check(!c->is_over);
	c->is_over = true;
	c->result = result;
	port_unpin(p);
	if (!c->is_starting)
		c->op->done(c->op);
}

static void
over(struct change_two *c, int result)
{
	end(c, result, false);
}

static void
on_kept(struct msg *m)
{
	struct change_two *c = container_of(m, struct change_two, wait.msg);

	c->kept(c);
}

static void
wait_kept(struct change_two *c, void (*kept)(struct change_two *c))
{
	c->kept = kept;
	c->wait.mb = port_mailbox(c->port);
	c->wait.go = on_kept;
	set_wait_kept(port_set(c->port), &c->wait);
}

/* ---- the secondary ---- */

static void
copy_free(struct copy *cp)
{
	free(cp->buf.mem);
	port_unpin(cp->port);
	free(cp);
}

struct copy *
two_copy_new(struct set_port *p, const struct store_key *k, int engine)
{
	struct copy *cp = calloc(1, sizeof *cp);

	if (!cp)
		return NULL;
	check(engine != SET_NOWHERE);
	cp->port = p;
	cp->engine = engine;
	cp->send.key = *k;
	cp->send.key.bucket = memcpy(cp->name, k->bucket, k->bucket_len);
	cp->send.key.key = memcpy(cp->name + k->bucket_len, k->key, k->key_len);
	cp->is_kept = true;
	port_pin(p);
	return cp;
}

void
two_copy_drop(struct copy *cp)
{
	struct store_port *e = port_engine(cp->port, cp->engine);

	cp->of = NULL;
	cp->is_kept = false;
	if (cp->is_busy || cp->writes)
		return;
	if (cp->has_put)
		e->ops->put_abort(e, &cp->put);
	copy_free(cp);
}

static void
second_over(struct change_two *c)
{
	over(c, c->done);
}

/* The role, in the newest map, of the engine that was the primary at the start of a change. The newest map
 * may not be effective yet. */
enum first_is { FIRST_LOST, FIRST_ALONE, FIRST_OF_TWO };

static enum first_is
first_by_table(const struct change_two *c)
{
	struct set *s = port_set(c->port);
	bool has_failed = set_has_failed(s, c->first), is_full;
	int number;

	is_full = set_look_up_slot(s, (int)set_slot(&c->key), &number);
	/* If the primary has not failed, a move took the change along with the other records of the slot. Only
	 * a failed primary can have lost the change. */
	if (has_failed && (set_primary(s, &c->key) != c->first || number != set_number(s, c->first)))
		return FIRST_LOST;
	return is_full ? FIRST_OF_TWO : FIRST_ALONE;
}

/* Continues a change after the wait for the recovery task. By now the secondary is another disk, or is not in
 * sync, or the set is read-only. */
static void
second_kept(struct change_two *c)
{
	struct set *s = port_set(c->port);
	enum first_is is = first_by_table(c);

	if (set_is_read_only(s))
		end(c, -ECANCELED, true);
	else if (is == FIRST_LOST)
		/* The change is repeated with the same arguments, with two exceptions: a PUT, and the
		 * creation of an upload that the secondary may already have, because the repetition would
		 * give the upload another id. */
		c->put || (c->call.kind == CALL_CREATE && c->was_copied) ? over(c, -ECANCELED) : first(c);
	else if (set_secondary(s, &c->key) != SET_NOWHERE)
		second(c);
	else if (is == FIRST_ALONE)
		second_over(c);
	else
		/* Both disks have failed. The secondary is in sync according to the map, and may become the
		 * primary at the next start (M36). */
		end(c, -ECANCELED, true);
}

/* Handles the result of the secondary for this change. engine: the engine of that secondary. */
static void
second_ended(struct change_two *c, int engine, int result)
{
	struct set *s = port_set(c->port);
	bool has_failed = engine != SET_NOWHERE && set_has_failed(s, engine);

	if (list_linked(&c->link))
		list_del(&c->link);
	if (result >= 0 || (has_failed && !RULE_AWAY_BEFORE_COPY_ANSWER)) {
		second_over(c);
		return;
	}
	/* The secondary returns -EPERM while it is becoming the primary. */
	if (result == -EPERM || has_failed || set_has_failed(s, c->first)) {
		wait_kept(c, second_kept);
	} else if (c->tries++ < SECOND_TRIES) {
		second(c);
	} else {
		set_miss(s, store_place(&c->key));
		wait_kept(c, second_kept);
	}
}

static void
copy_ended(struct copy *cp, int result)
{
	struct change_two *c = cp->of;

	cp->is_busy = false;
	if (!c)
		two_copy_drop(cp);
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

/* Allocates the buffer for bytes that the secondary lacks. Few changes need the buffer. Returns false if
 * there is no memory. */
static bool
has_buf(struct copy *cp)
{
	if (!store_buf_make(&cp->buf, BUF_LARGE_BYTES))
		return false;
	cp->send.buf = &cp->buf;
	return true;
}

static int
send(struct change_two *c, struct store_port *from, struct store_port *to)
{
	struct copy *cp = c->copy;

	if (!has_buf(cp))
		return -EAGAIN;
	cp->send.op.done = on_sent;
	cp->send.only_upload = c->call.kind == CALL_CREATE || c->call.kind == CALL_ABORT ? cp->id : NULL;
	return to->ops->member->send(from, to, &cp->send);
}

static int
put(struct change_two *c, struct store_port *from, struct store_port *to)
{
	struct copy *cp = c->copy;
	int r;

	cp->put.op.done = on_put;
	r = to->ops->member->copy_commit(to, &cp->put, from, c->put->version, &c->commit);
	if (r < 0) {
		to->ops->put_abort(to, &cp->put);
		cp->has_put = false;
	}
	return r;
}

static void
second(struct change_two *c)
{
	struct set_port *p = c->port;
	struct set *s = port_set(p);
	int engine = set_secondary(s, &c->key), r;
	struct store_port *from, *to;

	/* The slot has no secondary, but the newest map does not record that: the engine that was the
	 * secondary may be becoming the primary without this change, or may have failed, too. The change
	 * waits for the recovery task. */
	if (engine == SET_NOWHERE && RULE_BOTH_TABLES && first_by_table(c) != FIRST_ALONE) {
		wait_kept(c, second_kept);
		return;
	}
	if (engine == SET_NOWHERE || !RULE_COPY_BEFORE_ANSWER) {
		second_over(c);
		return;
	}
	/* The map still lists the failed disk. The copy is not started: the port has already ended the waits
	 * for this disk, and a new wait would not end while the disk hangs. */
	if (set_has_failed(s, engine)) {
		second_ended(c, engine, -EROFS);
		return;
	}
	if (c->copy && c->copy->engine != engine) {
		two_copy_drop(c->copy);
		c->copy = NULL;
	}
	if (!c->copy)
		c->copy = two_copy_new(p, &c->key, engine);
	if (!c->copy) {
		second_ended(c, engine, -EAGAIN);
		return;
	}
	c->copy->of = c;
	memcpy(c->copy->id, c->call.kind == CALL_CREATE ? c->u.upload.id : c->id, sizeof c->copy->id);
	/* The slot may have moved to another engine since the commit of the primary. The records of the slot,
	 * including this change, moved with the slot. */
	c->first = set_primary(s, &c->key);
	from = port_engine(p, c->first);
	to = port_engine(p, engine);
	c->copy->is_busy = c->was_copied = true;
	list_push_tail(&port_two(p)->changes, &c->link);
	r = c->copy->has_put && !c->copy->write_error ? put(c, from, to) : send(c, from, to);
	if (r < 0)
		copy_ended(c->copy, r);
	else if (r > 0)
		copy_ended(c->copy, c->copy->send.op.result);
}

void
set_two_poke(struct set_port *p)
{
	list_for_each_safe(l, &port_two(p)->changes)
	{
		struct change_two *c = container_of(l, struct change_two, link);
		int engine = c->copy->engine;

		if (!set_has_failed(port_set(p), engine))
			continue;
		two_copy_drop(c->copy);
		c->copy = NULL;
		/* The copy ends with an error. The recovery task may have removed the secondary from the map
		 * already. */
		second_ended(c, engine, -EROFS);
	}
}

/* ---- the primary ---- */

static void
first_kept(struct change_two *c)
{
	/* The failed primary was not replaced in the recovery round, so the change ends. */
	if (set_primary(port_set(c->port), &c->key) == c->first &&
	    set_has_failed(port_set(c->port), c->first))
		over(c, c->is_open ? -ECANCELED : -EROFS);
	else
		first(c);
}

static void
first_ended(struct change_two *c, int result)
{
	struct set *s = port_set(c->port);

	if (result >= 0) {
		c->tries = 0;
		c->done = result;
		if (!c->is_unsettled)
			set_begin_doubt(s, set_slot(&c->key));
		c->is_unsettled = true;
		second(c);
	} else if (c->first != SET_NOWHERE && set_has_failed(s, c->first) && c->tries++ < FIRST_TRIES) {
		c->is_open |= result != -EROFS;
		if (c->put)
			over(c, result == -EROFS ? result : -ECANCELED);
		else
			wait_kept(c, first_kept);
	} else if (result == -EXDEV && c->tries++ < FIRST_TRIES) {
		/* The slot is moving to another engine: the change waits, and is made at that engine. */
		if (c->put)
			over(c, result);
		else
			wait_kept(c, first);
	} else {
		over(c, result);
	}
}

static void
on_first(struct store_op *op)
{
	first_ended(container_of(op, struct change_two, u.op), op->result);
}

static void
on_first_put(struct store_op *op)
{
	struct put_two *pt = container_of(container_of(op, struct store_put, op), struct put_two, first);
	struct change_two *c = &pt->c;

	/* The PUT may have been replayed at another engine, which then is the primary. */
	for (int i = 0; i < port_engines(c->port); i++) {
		if (port_engine(c->port, i) == op->port)
			c->first = i;
	}
	first_ended(c, op->result);
}

static void
first(struct change_two *c)
{
	struct set_port *p = c->port;
	struct store_op *op = c->put ? &c->put->op : &c->u.op;
	int error, r;
	struct store_port *e = set_port_to_write(port_base(p), &c->key, &error);
	int home = set_primary(port_set(p), &c->key);

	/* The PUT was begun on the engine that is becoming the primary (two_put.c): the commit waits until
	 * this engine is the primary. */
	if (c->put && home != c->first && set_has_failed(port_set(p), home) && c->tries++ < FIRST_TRIES) {
		wait_kept(c, first);
		return;
	}
	/* If another engine is the primary now, it does not matter whether the former primary has the
	 * change. */
	c->is_open &= home == c->first;
	c->first = home;
	if (!e) {
		/*
		 * The engine is out of service. The partition may be assigned to another engine now or soon.
		 */
		first_ended(c, error);
		return;
	}
	op->done = c->put ? on_first_put : on_first;
	/* A PUT is committed at the engine at which it began, which may be the former primary: that engine hands
	 * it over (carry_put.c). */
	r = c->put ? store_put_commit(c->put->op.port, c->put, &c->commit)
		   : set_start_call(e, &c->key, op, &c->call);
	c->was_begun |= r >= 0;
	if (r != 0)
		first_ended(c, r < 0 ? r : op->result);
}

/* ---- the whole change ---- */

static void
on_hold(struct msg *m)
{
	first(container_of(m, struct change_two, hold.msg));
}

int
two_begin(struct change_two *c)
{
	struct set_port *p = c->port;
	int r;

	port_pin(p);
	c->is_starting = true;
	c->hold.mb = port_mailbox(p);
	c->hold.go = on_hold;
	list_init(&c->link);
	r = RULE_ONE_PER_KEY ? set_hold(set_key_locks(port_set(p)), &c->key, &c->hold) : 1;
	if (r < 0)
		over(c, -EAGAIN);
	else if (r > 0)
		first(c);
	c->is_starting = false;
	return c->is_over;
}

void
two_set_key(struct change_two *c, const struct store_key *k)
{
	c->key = *k;
	c->key.bucket = memcpy(c->name, k->bucket, k->bucket_len);
	c->key.key = memcpy(c->name + k->bucket_len, k->key, k->key_len);
}

/* ---- changes in one step ---- */

struct issue_two {
	struct change_two c;
	struct store_op mine; /* operation that c.op points to; its done() ends the change */
	struct store_op *of;
};

/* Copies the result of the primary to the caller's operation. */
static void
give(struct issue_two *i)
{
	struct change_two *c = &i->c;

	if (c->call.kind == CALL_CREATE)
		memcpy(container_of(i->of, struct store_upload, op)->id, c->u.upload.id,
		       STORE_UPLOAD_ID_BYTES);
	if (c->call.kind == CALL_COMPLETE)
		set_give_completed(container_of(i->of, struct store_complete, op), &c->u.complete);
	i->of->result = c->result;
}

static void
on_issue(struct store_op *op)
{
	struct issue_two *i = container_of(op, struct issue_two, mine);
	struct store_op *of = i->of;

	give(i);
	free(i);
	of->done(of);
}

int
set_two_issue(struct set_port *p, const struct store_key *k, struct store_op *op, const struct set_call *call)
{
	struct issue_two *i = calloc(1, sizeof *i);
	struct change_two *c = &i->c;
	int r;

	if (!i)
		return -EAGAIN;
	op->port = port_base(p);
	i->of = op;
	i->mine.done = on_issue;
	c->port = p;
	c->op = &i->mine;
	c->call = *call;
	two_set_key(c, k);
	if (call->pre) {
		c->pre = *call->pre;
		c->call.pre = &c->pre;
	}
	if (call->id) {
		memcpy(c->id, call->id, sizeof c->id);
		c->call.id = c->id;
	}
	if (call->kind == CALL_COMPLETE)
		c->u.complete = *container_of(op, struct store_complete, op);
	if (!two_begin(c))
		return 0;
	give(i);
	r = c->was_begun ? 1 : c->result;
	free(i);
	return r;
}
