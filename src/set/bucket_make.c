/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a bucket, or changes the number of copies of an existing one; see bucket_change.h. */
#include "set/bucket_change.h"

#include "set/map/set_rules.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- a change of the number of copies ---- */

static int
copies_at(struct change *c)
{
	/* A failed change restores the previous number. */
	check(c->failed ? c->copies == c->had_copies : c->copies != c->had_copies);
	c->touched = true;
	return change_apply_at(c, (struct store_change){ .act = ACT_SET_COPIES, .copies = c->copies });
}

/* Changes the number of copies on each engine in turn, the metadata leader last: until then the leader
 * answers for the bucket. If an engine cannot make the change, the other engines restore the previous number;
 * if restoring fails too, the gate stays closed. */
static int
copies_next(struct change *c, int r)
{
	if (c->at >= 0 && !change_is_lost(c) && r < 0) {
		if (r == -EAGAIN && c->tries++ < TRIES)
			return copies_at(c);
		if (!c->failed) {
			c->failed = r;
			c->copies = c->had_copies;
			c->at = -1;
		} else if (r != -ENXIO) {
			c->failed = -ECANCELED;
			c->closed |= (uint64_t)1 << c->at;
		}
	}
	c->at = change_next_of(c, c->at);
	if (c->at < c->port->nr)
		return copies_at(c);
	c->at = -1;
	return change_open_next(c);
}

static int
copies_first(struct change *c)
{
	/* M31: no engine is missing, and all gates are closed. */
	check(set_in(c->port->set) == set_all(c->port->set) && c->at == c->port->nr);
	set_publish_head(c->port->set, change_before(c, c->port->nr));
	c->at = -1;
	return copies_next(c, 0);
}

static int
change_copies(struct change *c, int r)
{
	int started;

	switch (c->step) {
	case OPEN:
		started = change_open_next(c);
		break;
	case CHANGE:
		started = copies_next(c, r);
		break;
	default:
		started = change_close_next(c, r, GATE_CLOSE_BARE, copies_first);
		break;
	}
	if (c->is_over && c->touched)
		set_note_missed(c->port->set, c->name, c->len, true, 0);
	return started;
}

/* Begins a change of the number of copies of an existing bucket. The change is refused while a disk is
 * missing, because the contents of a missing disk are unknown (M31). */
static int
change_copies_begin(struct change *c, unsigned had_copies)
{
	if (set_misses_some(c->port->set))
		return change_is_done(c, -ENODEV);
	c->next = change_copies;
	c->had_copies = had_copies;
	c->at = -1;
	return change_copies(c, 0);
}

/* ---- a creation ---- */

static int
make_at(struct change *c)
{
	bool is_gated = RULE_BUCKET_ON_ALL && change_before(c, c->at) >= 0;

	/* M29: the metadata leader makes the bucket last. */
	check(!(c->made >> c->at & 1) && (is_gated || !RULE_BUCKET_ON_ALL || change_next_of(c, -1) == c->at));
	c->touched = true;
	if (!is_gated)
		/* The bucket is made without a closed gate on this engine, so no later step has to open the
		 * gate. */
		c->closed |= (uint64_t)1 << c->at;
	return change_apply_at(c, (struct store_change){ .act = ACT_MAKE_BUCKET,
							 .copies = c->copies,
							 .attrs = c->sub->attrs,
							 .attrs_len = c->attrs_len,
							 .ctime_ns = c->ctime_ns,
							 .is_gated = is_gated });
}

/* Undoes an incomplete creation: removes the bucket from the engines that made it, the metadata leader
 * last. */
static int
undo_next(struct change *c, int r)
{
	if (c->step == UNDO && !change_is_lost(c)) {
		if (r == 0 || r == -ENXIO) {
			c->step = UNDO_OPEN;
			return change_gate_at(c, GATE_OPEN);
		}
		/* The removal failed: the bucket remains on this engine, and its gate stays closed. */
		c->failed = -ECANCELED;
	}
	c->step = UNDO;
	c->at = change_next_of(c, c->at);
	return c->at < c->port->nr ? change_remove_at(c) : change_is_done(c, c->failed);
}

static int
make_next(struct change *c)
{
	c->step = CHANGE;
	c->at = change_before(c, c->at);
	return c->at >= 0 ? make_at(c) : change_open_next(c);
}

/* Handles a creation that failed on the engine of the current step with the error r. The gate opens if the
 * bucket is not on this engine. An incomplete removal or creation may have left the bucket there: if the
 * remains could not be removed, the gate stays closed (M31), and the error is that of their removal. An error
 * such as -ENOSPC does not tell whether there are remains, because an engine without room refuses a creation
 * before it looks: then the next step asks. */
static int
make_failed(struct change *c, int r)
{
	c->failed = r;
	if (r == -ECANCELED) {
		c->step = UNDO;
		return change_remove_at(c);
	}
	if (r != -EEXIST) {
		c->step = LOOK_AGAIN;
		return store_bucket_head(change_engine_at(c), c->name, c->len, &c->sub->u.stat);
	}
	c->step = UNDO_OPEN;
	if (change_before(c, c->at) < 0)
		return change_gate_at(c, GATE_OPEN);
	/* 0: each engine with remains failed while they were removed. */
	c->failed = c->not_cleared ? c->not_cleared : -EAGAIN;
	return undo_next(c, 0);
}

static int
create_next(struct change *c, int r)
{
	switch (c->step) {
	case LOOK:
		if (c->at < 0 || change_is_lost(c)) {
			/* The secondaries of all slots were removed after this change began. The caller's
			 * next attempt assigns secondaries again, or is refused. */
			if (c->copies > 1 && !set_has_pairs(c->port->set))
				return change_is_done(c, -EAGAIN);
			if (set_expect_missed(c->port->set) < 0)
				return change_is_done(c, -EAGAIN);
			c->at = change_next_of(c, -1);
			return store_bucket_head(change_engine_at(c), c->name, c->len, &c->sub->u.stat);
		}
		if (r == 0 && c->is_wanted && c->sub->u.stat.copies != c->copies)
			return change_copies_begin(c, c->sub->u.stat.copies);
		if (r != -ENXIO)
			return change_is_done(c, r < 0 ? r : -EEXIST);
		c->at = c->port->nr;
		return make_next(c);
	case CHANGE:
		c->made |= (uint64_t)(r == 0) << c->at;
		if (r == 0 || change_is_lost(c))
			return make_next(c);
		/* An engine after the leader has the bucket already: the remains of a creation that could not
		 * be undone. */
		if (r == -EEXIST && change_before(c, c->at) >= 0 && c->tries++ < TRIES) {
			c->step = CLEAR;
			return change_remove_at(c);
		}
		return make_failed(c, r);
	case CLEAR:
		if (change_is_lost(c))
			return make_next(c);
		c->not_cleared = r < 0 ? r : -EAGAIN;
		c->step = CHANGE;
		return make_at(c);
	case LOOK_AGAIN:
		c->step = UNDO_OPEN;
		return r == -ENXIO && !change_is_lost(c) ? change_gate_at(c, GATE_OPEN) : undo_next(c, 0);
	case OPEN:
		return change_open_next(c);
	default:
		return undo_next(c, r);
	}
}

static int
create_over(struct change *c, int r)
{
	int started = create_next(c, r);

	if (c->is_over && c->touched && c->next == create_over)
		set_note_missed(c->port->set, c->name, c->len, c->result == 0, c->result == 0 ? c->made : 0);
	return started;
}

/* Begins a creation that has waited until all slots have secondaries. */
static void
on_paired(struct msg *m)
{
	struct change *c = container_of(m, struct change, paired.msg);
	struct set *s = c->port->set;
	struct store_op *op = c->op;
	int not_paired = set_pairs_error(s);

	if (set_has_pairs(s)) {
		if (change_begin(c) == 0)
			return;
	} else {
		op->result = set_is_read_only(s) ? -EROFS : not_paired ? not_paired : -EAGAIN;
		change_free(c);
	}
	op->done(op);
}

int
set_bucket_create(struct store_port *sp, const struct store_change *sc, struct store_op *op)
{
	struct set_port *p = set_port(sp);
	struct set *s = p->set;
	unsigned copies = sc->copies ? sc->copies : s->conf.default_copies ? s->conf.default_copies : 1;
	struct change *c;

	if (copies > 1 && set_disks(s) < 2)
		return -EDOM;
	c = change_new(sp, op, sc, create_over);
	if (c) {
		c->copies = copies;
		c->is_wanted = sc->copies != 0;
		c->ctime_ns = change_birth_time(s);
	}
	if (!c || copies == 1 || set_has_pairs(s))
		return change_begin(c);
	/* The recovery task first assigns secondaries to all slots. In slots of a missing disk the map may then
	 * name another primary than before; the bucket is made only after this primary answers for the slots. */
	c->paired = (struct set_wait){ .mb = p->mb, .go = on_paired, .pairs = true };
	set_wait_kept(s, &c->paired);
	return 0;
}
