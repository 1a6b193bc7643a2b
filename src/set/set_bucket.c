/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets of a set: each is on every engine in service, and what the first one says is so.
 *
 * A change goes from engine to engine; of all changes of a set one is under way at a time (M11).  Meanwhile the gate of the
 * bucket is closed on the engines, so nothing is acknowledged in a bucket that a cut may take or give back:
 *
 *	make	on all others with a closed gate --> on the first --> the gates open
 *	remove	gates closed, each engine says that it has nothing --> removed on the first, then on the others --> the gates open
 *	copies	gates closed, each engine says that it has nothing --> changed on the first, then on the others --> the gates open
 *
 * What a cut leaves half done the next start makes as the first one has it (align_buckets.c): so nothing that ends with a bucket
 * (uploads) has ended where it has the bucket.  Up to the end of a removal it is the last engine that answers.  A removal that has begun is
 * completed wherever it can be, and where it cannot the gate stays closed: it never opens on a mixture (M31).
 *
 * An engine whose disk fails on the way does not count any more once the table is written without it, for which a change
 * waits (M15, map_change.c): then it goes on as if there were none.  The one that answers about buckets is another one when
 * all that are left have the change.
 */
#include "store/quota.h"
#include "set/map/set_rules.h"
#include "set/replicas.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum step { LOOK, CHANGE, CLEAR, OPEN, UNDO, UNDO_OPEN };

#define TRIES 5 /* of a removal for which there is no room now */

/* An operation on one engine. */
struct sub {
	struct change *c; /* NULL: its engine failed under it, and nobody waits for it any more */
	struct set_port *port;
	bool is_busy;
	void *attrs; /* NULL: it has none */
	union {
		struct store_op op;
		struct store_del del;
		struct store_bucket_set set;
		struct store_stat stat;
	} u;
};

struct change {
	struct set_turn turn; /* it is its turn, or the table is written */
	struct set_port *port;
	struct store_op *op; /* the caller's */
	/*
	 * Starts the next operation on an engine, and returns what that start returned.  r: the result of the
	 * one before, 0 at first.  When there is no more to do it calls is_done() instead.
	 */
	int (*next)(struct change *c, int r);
	bool is_over;
	int result;

	enum step step;
	int at;       /* the engine of this step; -1: none yet */
	int r;        /* that the step came to, while the table is written */
	int failed;   /* why it is not done, or not wholly; 0 */
	bool touched; /* an engine was given something to write */
	bool judged;  /* the first engine has taken it */
	int tries;
	uint64_t closed; /* engines whose gate stays closed */
	uint64_t made;   /* engines that have made it */
	char name[STORE_BUCKET_MAX];
	size_t len;
	const void *attrs; /* to be set; the caller's */
	uint32_t attrs_len;
	uint64_t version;
	uint64_t ctime_ns;
	struct store_use max_quota;
	unsigned copies;     /* that the bucket is made with, or given */
	unsigned had_copies; /* that it had before */
	bool is_wanted;      /* a bucket that is there is to have so many, too */
	bool has_ended;      /* what is left is an alarm that will come */
	struct sub *sub;
};

/* ---- the engines that count ---- */

/* Returns the engine in service behind that one, or how many there are. */
static int
next_of(const struct change *c, int at)
{
	do
		at++;
	while (at < c->port->nr && !set_counts(c->port->set, at));
	return at;
}

/* Returns the engine in service before that one; -1: none is. */
static int
before(const struct change *c, int at)
{
	do
		at--;
	while (at >= 0 && !set_counts(c->port->set, at));
	return at;
}

/* Tells whether the engine of this step has left: what it said counts for nothing. */
static bool
is_lost(const struct change *c)
{
	return c->at >= 0 && c->at < c->port->nr && !set_counts(c->port->set, c->at);
}

/* ---- taking turns ---- */

static int is_done(struct change *c, int result);

/* Goes on until an engine, or the table, has to be waited for (false), or all is done. */
static bool
drive(struct change *c, int r)
{
	struct set *s = c->port->set;

	for (;;) {
		int started;

		c->r = r;
		if (!set_settle(s, &c->turn))
			return false;
		if (atomic_load(&s->is_read_only))
			is_done(c, c->touched ? -ECANCELED : -EROFS);
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

static int
is_done(struct change *c, int result)
{
	c->is_over = true;
	c->result = result;
	return 0;
}

static void
sub_free(struct sub *sub)
{
	if (sub)
		free(sub->attrs);
	free(sub);
}

static struct sub *
sub_new(struct change *c)
{
	struct sub *sub = calloc(1, sizeof *sub);

	if (!sub)
		return NULL;
	sub->c = c;
	sub->port = c->port;
	return sub;
}

static void
change_free(struct change *c)
{
	c->port->inflight--;
	sub_free(c->sub);
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
	sub->port->inflight--;
	sub_free(sub);
}

/* A disk failed.  If it is the one that is waited for, that may be long in coming. */
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
	c->port->inflight++;
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

static struct change *
change_new(struct set_port *p, struct store_op *op, const char *name, size_t len,
	   int (*next)(struct change *, int))
{
	struct change *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	op->port = &p->base;
	c->turn.mb = p->mb;
	c->turn.go = on_turn;
	c->turn.on_alarm = on_alarm;
	c->port = p;
	c->op = op;
	c->next = next;
	c->at = -1;
	memcpy(c->name, name, len);
	c->len = len;
	c->sub = sub_new(c);
	if (!c->sub) {
		free(c);
		return NULL;
	}
	return c;
}

/* What the caller's start returns. */
static int
begin(struct change *c)
{
	c->port->inflight++;
	if (!set_take_turn(c->port->set, &c->turn) || !drive(c, 0))
		return 0;
	end(c);
	return 1;
}

/*
 * Returns the time of a bucket that is made now.  A start knows a bucket of another of its name by nothing else (M32), and of a clock that is
 * coarse, or is asked on two cores at once, two may get one time: so no two of a life have the same.  One that was set back stays back.
 */
static uint64_t
birth_time(struct set *s)
{
	uint64_t last = atomic_load(&s->last_made_ns), now;

	do {
		now = clock_wall_ns();
		if (now <= last && last - now < NS_PER_S)
			now = last + 1;
	} while (!atomic_compare_exchange_weak(&s->last_made_ns, &last, now));
	return now;
}

/* ---- a set of one ---- */

/*
 * One engine takes them as they come, without turns.  They are counted, so that another one can be made a member when none is
 * under way any more: from then on they take turns.
 */
struct through {
	struct set_port *port;
	struct store_op *op; /* the caller's */
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
	atomic_fetch_sub(&t->port->set->through, 1);
	t->port->inflight--;
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
	op->port = &p->base;
	p->inflight++;
	atomic_fetch_add(&p->set->through, 1);
	return t;
}

/* What the engine's start returned. */
static int
through_started(struct through *t, int r)
{
	if (r != 0)
		through_end(t, r < 0 ? r : t->u.op.result);
	return r;
}

static int
through_create(struct set_port *p, const char *name, size_t len, unsigned copies, struct store_del *op)
{
	struct through *t = through_new(p, &op->op);
	struct store_port *e = p->engine[0];

	return t ? through_started(
			   t, e->ops->bucket_make(e, name, len, birth_time(p->set), copies, false, &t->u.del))
		 : -EAGAIN;
}

static int
through_delete(struct set_port *p, const char *name, size_t len, struct store_del *op)
{
	struct through *t = through_new(p, &op->op);
	struct store_port *e = p->engine[0];

	return t ? through_started(t, e->ops->bucket_delete(e, name, len, &t->u.del)) : -EAGAIN;
}

static int
through_attrs(struct set_port *p, const char *name, size_t len, uint64_t version, const void *attrs,
	      uint32_t attrs_len, struct store_bucket_set *op)
{
	struct through *t = through_new(p, &op->op);
	struct store_port *e = p->engine[0];

	return t ? through_started(
			   t, e->ops->bucket_set_attrs(e, name, len, version, attrs, attrs_len, &t->u.set))
		 : -EAGAIN;
}

static int
through_quota(struct set_port *p, const char *name, size_t len, const struct store_use *max,
	      struct store_bucket_set *op)
{
	struct through *t = through_new(p, &op->op);
	struct store_port *e = p->engine[0];

	return t ? through_started(t, e->ops->bucket_set_quota(e, name, len, max, &t->u.set)) : -EAGAIN;
}

/* ---- on one engine ---- */

static struct store_port *
engine_at(struct change *c)
{
	memset(&c->sub->u, 0, sizeof c->sub->u);
	c->sub->u.op.done = on_sub;
	return c->port->engine[c->at];
}

static int
make_at(struct change *c)
{
	struct store_port *e = engine_at(c);
	bool is_gated = RULE_BUCKET_ON_ALL && before(c, c->at) >= 0;

	c->touched = true;
	if (!is_gated)
		c->closed |= (uint64_t)1 << c->at; /* it was never closed */
	return e->ops->bucket_make(e, c->name, c->len, c->ctime_ns, c->copies, is_gated, &c->sub->u.del);
}

static int
remove_at(struct change *c)
{
	c->touched = true;
	return store_bucket_delete(engine_at(c), c->name, c->len, &c->sub->u.del);
}

static int
copies_at(struct change *c)
{
	struct store_port *e = engine_at(c);

	c->touched = true;
	return e->ops->bucket_set_copies(e, c->name, c->len, c->copies, &c->sub->u.del);
}

static int
gate_at(struct change *c, enum store_gate gate)
{
	struct store_port *e = engine_at(c);

	return e->ops->bucket_gate(e, c->name, c->len, gate, &c->sub->u.del);
}

/* The engine may hold on to the attributes when the caller has its answer, see on_alarm(). */
static int
set_at(struct change *c, uint64_t version)
{
	struct sub *sub = c->sub;

	if (!sub->attrs && c->attrs_len) {
		sub->attrs = malloc(c->attrs_len);
		if (!sub->attrs)
			return -EAGAIN;
		memcpy(sub->attrs, c->attrs, c->attrs_len);
	}
	c->touched = true;
	return store_bucket_set_attrs(engine_at(c), c->name, c->len, version, sub->attrs, c->attrs_len,
				      &sub->u.set);
}

/* Opens the gates of the engines behind this one, but for those that stay closed. */
static int
open_next(struct change *c)
{
	if (c->step != OPEN && !c->failed)
		set_new_head(c->port->set);
	c->step = OPEN;
	do
		c->at = next_of(c, c->at);
	while (c->at < c->port->nr && c->closed >> c->at & 1);
	return c->at < c->port->nr ? gate_at(c, GATE_OPEN) : is_done(c, c->failed);
}

/* ---- make ---- */

static int copies_begin(struct change *c, unsigned had_copies);

/* What was made is removed again, up to the last engine. */
static int
undo_next(struct change *c, int r)
{
	if (c->step == UNDO && !is_lost(c)) {
		if (r == 0 || r == -ENXIO) {
			c->step = UNDO_OPEN;
			return gate_at(c, GATE_OPEN);
		}
		/* It stays, behind its gate. */
		c->failed = -ECANCELED;
	}
	c->step = UNDO;
	c->at = next_of(c, c->at);
	return c->at < c->port->nr ? remove_at(c) : is_done(c, c->failed);
}

static int
make_next(struct change *c)
{
	c->step = CHANGE;
	c->at = before(c, c->at);
	return c->at >= 0 ? make_at(c) : open_next(c);
}

static int
create_next(struct change *c, int r)
{
	switch (c->step) {
	case LOOK:
		if (c->at < 0 || is_lost(c)) {
			/* The seconds were taken off since it was begun: the next try makes them, or is refused. */
			if (c->copies > 1 && !set_has_pairs(c->port->set))
				return is_done(c, -EAGAIN);
			if (set_expect_missed(c->port->set) < 0)
				return is_done(c, -EAGAIN);
			c->at = next_of(c, -1);
			return store_bucket_head(engine_at(c), c->name, c->len, &c->sub->u.stat);
		}
		if (r == 0 && c->is_wanted && c->sub->u.stat.copies != c->copies)
			return copies_begin(c, c->sub->u.stat.copies);
		if (r != -ENXIO)
			return is_done(c, r < 0 ? r : -EEXIST);
		c->at = c->port->nr;
		return make_next(c);
	case CHANGE:
		c->made |= (uint64_t)(r == 0) << c->at;
		if (r == 0 || is_lost(c))
			return make_next(c);
		/* The rest of one that could not be undone. */
		if (r == -EEXIST && before(c, c->at) >= 0 && c->tries++ < TRIES) {
			c->step = CLEAR;
			return remove_at(c);
		}
		c->failed = r;
		c->step = r == -ECANCELED ? UNDO : UNDO_OPEN;
		return r == -ECANCELED ? remove_at(c) : gate_at(c, GATE_OPEN);
	case CLEAR:
		if (is_lost(c))
			return make_next(c);
		c->step = CHANGE;
		return make_at(c);
	case OPEN:
		return open_next(c);
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

int
set_bucket_create(struct store_port *sp, const char *name, size_t len, unsigned copies, struct store_del *op)
{
	struct set_port *p = set_port(sp);
	unsigned by_default = p->set->conf.default_copies ? p->set->conf.default_copies : 1;
	struct change *c;

	if (copies > 1 || (!copies && by_default > 1)) {
		if (set_disks(p->set) < 2)
			return -EDOM;
	}
	if ((copies ? copies : by_default) > 1 && !set_has_pairs(p->set))
		return set_pair_first(p, name, len, copies, op);
	if (p->nr == 1 && !copies)
		return through_create(p, name, len, by_default, op);
	c = change_new(p, &op->op, name, len, create_over);
	if (!c)
		return -EAGAIN;
	c->step = LOOK;
	c->copies = copies ? copies : by_default;
	c->is_wanted = copies != 0;
	c->ctime_ns = birth_time(p->set);
	return begin(c);
}

/* ---- remove ---- */

/* Returns the engine that removes behind that one: the head is the first (M38); the number behind the last, or -1: none does. */
static int
remover_behind(const struct change *c, int at)
{
	return RULE_HEAD_REMOVES_FIRST ? next_of(c, at) : before(c, at);
}

/* Every engine has said that it has nothing. */
static int
remove_next(struct change *c, int r)
{
	int nobody = RULE_HEAD_REMOVES_FIRST ? -1 : c->port->nr;
	bool is_first = c->at == remover_behind(c, nobody);

	if (!RULE_GATE_FORWARD && is_lost(c)) {
		c->failed = -ECANCELED;
		c->at = -1;
		return open_next(c);
	}
	if (c->at != nobody && !is_lost(c)) {
		if (r == -EAGAIN && c->tries++ < TRIES)
			return remove_at(c);
		if (r < 0 && r != -ENXIO && r != -ECANCELED && is_first && !c->failed) {
			/* Nobody has removed it. */
			c->failed = r;
			c->at = -1;
			return open_next(c);
		}
		if (r < 0 && r != -ENXIO) {
			c->failed = -ECANCELED;
			c->closed |= (uint64_t)1 << c->at;
		}
	}
	c->at = remover_behind(c, c->at);
	if (c->at >= 0 && c->at < c->port->nr)
		return remove_at(c);
	c->at = -1;
	return open_next(c);
}

/* Opens the gates before that of this step again, and this one's if it was closed. */
static int
give_up(struct change *c, int why, bool is_closed)
{
	c->failed = why;
	for (int i = c->at < 0 ? 0 : c->at + is_closed; i < c->port->nr; i++)
		c->closed |= (uint64_t)1 << i;
	c->at = -1;
	return open_next(c);
}

/* Closes the gates, one after the other, and goes on with rest(): the gates are closed, and each engine has said that it has
 * nothing. */
static int
close_next(struct change *c, int r, enum store_gate gate, int (*rest)(struct change *c))
{
	const struct set *s = c->port->set;

	/* What one that has failed was given last is not known (M31). */
	if (RULE_GATE_ALL_PRESENT && atomic_load(&s->in) != set_all(s))
		return give_up(c, -EROFS, r >= 0);
	if (r < 0 && !is_lost(c) && !(r == -ENXIO && before(c, c->at) >= 0))
		return give_up(c, r, false);
	if (c->at < 0 && set_expect_missed(c->port->set) < 0)
		return is_done(c, -EAGAIN);
	c->at = RULE_GATE_CLOSED ? next_of(c, c->at) : c->port->nr;
	if (c->at < c->port->nr)
		return gate_at(c, gate);
	c->step = CHANGE;
	return rest(c);
}

static int
remove_first(struct change *c)
{
	c->at = c->port->nr;
	if (RULE_HEAD_REMOVES_FIRST) {
		atomic_store(&c->port->set->head, before(c, c->port->nr));
		c->at = -1;
	}
	return remove_next(c, 0);
}

static int
delete_next(struct change *c, int r)
{
	switch (c->step) {
	case OPEN:
		return open_next(c);
	case CHANGE:
		return remove_next(c, r);
	default:
		return close_next(c, r, GATE_CLOSE_EMPTY, remove_first);
	}
}

/* An engine that has left on the way does not count what was in it any more. */
static void
forget_use(struct change *c)
{
	struct set *s = c->port->set;
	struct quota_row *row;

	for (int i = 0; i < s->nr; i++) {
		if (set_is_in(s, i))
			continue;
		quota_lock(s->quotas);
		row = quota_find(s->quotas, i, c->name, c->len);
		if (row && quota_version(row, i))
			quota_gone(s->quotas, i, row);
		quota_unlock(s->quotas);
	}
}

static int
delete_over(struct change *c, int r)
{
	int started = delete_next(c, r);

	if (c->is_over && c->touched) {
		atomic_fetch_add(&c->port->set->buckets_removed, 1);
		set_note_missed(c->port->set, c->name, c->len, c->closed >> next_of(c, -1) & 1, 0);
		if (c->result == 0)
			forget_use(c);
	}
	return started;
}

int
set_bucket_delete(struct store_port *sp, const char *name, size_t len, struct store_del *op)
{
	struct set_port *p = set_port(sp);
	struct change *c;

	/* What the missing one holds is not known (M31). */
	if (RULE_GATE_ALL_PRESENT && set_misses_some(p->set))
		return -ENODEV;
	if (p->nr == 1)
		return through_delete(p, name, len, op);
	c = change_new(p, &op->op, name, len, delete_over);
	if (!c)
		return -EAGAIN;
	c->step = LOOK;
	return begin(c);
}

/* ---- another number of copies ---- */

/*
 * Up to the end the last engine answers about buckets.  An engine that cannot have it has what it had, so all the others get that back; where
 * that cannot be either, the gate stays closed.
 */
static int
copies_next(struct change *c, int r)
{
	if (c->at >= 0 && !is_lost(c) && r < 0) {
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
	c->at = next_of(c, c->at);
	if (c->at < c->port->nr)
		return copies_at(c);
	c->at = -1;
	return open_next(c);
}

static int
copies_first(struct change *c)
{
	atomic_store(&c->port->set->head, before(c, c->port->nr));
	c->at = -1;
	return copies_next(c, 0);
}

static int
change_copies(struct change *c, int r)
{
	int started;

	switch (c->step) {
	case OPEN:
		started = open_next(c);
		break;
	case CHANGE:
		started = copies_next(c, r);
		break;
	default:
		started = close_next(c, r, GATE_CLOSE_BARE, copies_first);
		break;
	}
	if (c->is_over && c->touched)
		set_note_missed(c->port->set, c->name, c->len, true, 0);
	/* A set of one removes buckets without turns. */
	if (c->is_over && c->result == -ENXIO)
		c->result = -EAGAIN;
	return started;
}

/* The bucket is there with another number of copies than is wanted.  What a missing disk has in it is not known (M31). */
static int
copies_begin(struct change *c, unsigned had_copies)
{
	if (set_misses_some(c->port->set))
		return is_done(c, -ENODEV);
	c->next = change_copies;
	c->had_copies = had_copies;
	c->at = -1;
	return change_copies(c, 0);
}

/* ---- attributes ---- */

/*
 * What comes of a step of a change that the first engine judges; the others take what it took.  True: it is over.  If the
 * first one leaves before it has said anything the next one judges; a version that was read from the one is none of the
 * other's.
 */
static bool
judge_step(struct change *c, int r)
{
	if (is_lost(c) && !c->judged) {
		if (c->version != STORE_VERSION_ANY)
			is_done(c, -EAGAIN);
		c->at = -1;
	} else if (c->at >= 0 && !is_lost(c)) {
		if (r < 0)
			is_done(c, c->judged ? -ECANCELED : r);
		c->judged = true;
	}
	c->at = next_of(c, c->at);
	if (!c->is_over && c->at == c->port->nr)
		is_done(c, 0);
	return c->is_over;
}

/*
 * Versions of attributes are an engine's own: what was read from one must not by chance be what another one has when it judges
 * in its place.  So callers get them with the engine's number.
 */
static uint64_t
version_of(uint64_t version, int engine)
{
	return version && version != STORE_VERSION_ANY ? version ^ (uint64_t)(engine + 1) << 56 : version;
}

static int
set_attrs_next(struct change *c, int r)
{
	if (judge_step(c, r))
		return 0;
	return set_at(c, c->judged ? STORE_VERSION_ANY : version_of(c->version, c->at));
}

int
set_bucket_set_attrs(struct store_port *sp, const char *name, size_t len, uint64_t version, const void *attrs,
		     uint32_t attrs_len, struct store_bucket_set *op)
{
	struct set_port *p = set_port(sp);
	struct change *c;

	if (p->nr == 1)
		return through_attrs(p, name, len, version, attrs, attrs_len, op);
	c = change_new(p, &op->op, name, len, set_attrs_next);
	if (!c)
		return -EAGAIN;
	c->version = version;
	c->attrs = attrs;
	c->attrs_len = attrs_len;
	return begin(c);
}

/* ---- looks ---- */

static struct store_port *
head_port(struct store_port *sp)
{
	struct set_port *p = set_port(sp);

	return p->engine[atomic_load_explicit(&p->set->head, memory_order_acquire)];
}

int
set_bucket_head(struct store_port *sp, const char *name, size_t len, struct store_stat *st)
{
	struct store_port *head = head_port(sp);

	return head->ops->bucket_head(head, name, len, st);
}

/* A look at the attributes, whose version is the engine's. */
struct attrs_look {
	struct store_stat st;
	struct store_stat *of; /* the caller's */
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
	l->of->version = version_of(l->st.version, l->engine);
	l->port->inflight--;
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

	if (p->nr == 1)
		return e->ops->bucket_get_attrs(e, name, len, attrs, cap, st);
	l = malloc(sizeof *l);
	if (!l)
		return -EAGAIN;
	st->op.port = sp;
	*l = (struct attrs_look){ .st = *st, .of = st, .port = p };
	l->st.op.done = on_attrs;
	while (p->engine[l->engine] != e)
		l->engine++;
	p->inflight++;
	r = e->ops->bucket_get_attrs(e, name, len, attrs, cap, &l->st);
	if (r == 1) {
		attrs_seen(l);
	} else if (r < 0) {
		p->inflight--;
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

/* ---- quotas ---- */

/* What counter 0 is given counts: that is an engine's which may have left.  One change is under way at a time (M11). */
static void
bound(struct change *c)
{
	struct quota_book *book = c->port->set->quotas;
	struct quota_row *row;

	quota_lock(book);
	row = quota_find(book, next_of(c, -1), c->name, c->len);
	if (row)
		quota_bound(book, row, &c->max_quota);
	quota_unlock(book);
}

/* The book is one for all; the others have the bound for when the first is missing. */
static int
set_quota_next(struct change *c, int r)
{
	struct store_port *e;

	if (judge_step(c, r)) {
		if (c->result == 0)
			bound(c);
		return 0;
	}
	e = engine_at(c);
	c->touched = true;
	return e->ops->bucket_set_quota(e, c->name, c->len, &c->max_quota, &c->sub->u.set);
}

int
set_bucket_set_quota(struct store_port *sp, const char *name, size_t len, const struct store_use *max,
		     struct store_bucket_set *op)
{
	struct set_port *p = set_port(sp);
	struct store_port *first = p->engine[0];
	struct change *c;

	if (!first->ops->bucket_set_quota)
		return -EOPNOTSUPP;
	if (p->nr == 1)
		return through_quota(p, name, len, max, op);
	c = change_new(p, &op->op, name, len, set_quota_next);
	if (!c)
		return -EAGAIN;
	c->max_quota = *max;
	c->version = STORE_VERSION_ANY;
	return begin(c);
}
