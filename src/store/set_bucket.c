/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets of a set: each is on every engine, and what the first one says is so.
 *
 * A change goes from engine to engine; of all changes of a set one is under way at a time (M11).  Meanwhile the gate of the
 * bucket is closed on the engines, so nothing is acknowledged in a bucket that a cut may take or give back:
 *
 *	make	on all others with a closed gate --> on the first --> the gates open
 *	remove	gates closed, each engine says that it has nothing --> removed, the first last --> the gates open
 *
 * What a cut leaves half done the next start makes as the first one has it (set_align.c).  A removal that has begun is
 * completed wherever it can be, and where it cannot the gate stays closed: it never opens on a mixture (M31).
 */
#include "store/set_int.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum step { LOOK, CHANGE, CLEAR, OPEN, UNDO, UNDO_OPEN };

#define TRIES 5 /* of a removal for which there is no room now */

struct change {
	struct list link; /* of set.waiting */
	struct msg msg;   /* it is its turn */
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
	int at;     /* the engine of this step; -1: none yet */
	int failed; /* why it is not done, or not wholly; 0 */
	int tries;
	uint64_t closed; /* engines whose gate stays closed */
	char name[STORE_BUCKET_MAX];
	size_t len;
	const void *attrs; /* to be set; the caller's */
	uint32_t attrs_len;
	uint64_t version;
	uint64_t ctime_ns;
	struct store_use max_quota;
	union {
		struct store_op op;
		struct store_del del;
		struct store_bucket_set set;
		struct store_stat stat;
	} sub;
};

/* ---- taking turns ---- */

/* Goes on until an engine has to be waited for (false), or all is done. */
static bool
drive(struct change *c, int r)
{
	for (;;) {
		int started = c->next(c, r);

		if (c->is_over)
			return true;
		if (started == 0)
			return false;
		r = started < 0 ? started : c->sub.op.result;
	}
}

static int
is_done(struct change *c, int result)
{
	c->is_over = true;
	c->result = result;
	return 0;
}

static void on_turn(struct msg *m);

/* Gives the turn to the one that waits longest. */
static void
end(struct change *c)
{
	struct set *s = c->port->set;
	struct change *next = NULL;
	struct list *l;

	pthread_mutex_lock(&s->lock);
	l = list_pop(&s->waiting);
	s->is_changing = l != NULL;
	if (l)
		next = container_of(l, struct change, link);
	pthread_mutex_unlock(&s->lock);
	if (next)
		mailbox_post(next->port->mb, &next->msg, on_turn);
	c->op->result = c->result;
	c->port->inflight--;
	free(c);
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
	go_on(container_of(op, struct change, sub.op), op->result);
}

static void
on_turn(struct msg *m)
{
	go_on(container_of(m, struct change, msg), 0);
}

static struct change *
change_new(struct set_port *p, struct store_op *op, const char *name, size_t len,
	   int (*next)(struct change *, int))
{
	struct change *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	op->port = &p->base;
	c->port = p;
	c->op = op;
	c->next = next;
	c->at = -1;
	memcpy(c->name, name, len);
	c->len = len;
	return c;
}

/* What the caller's start returns. */
static int
begin(struct change *c)
{
	struct set *s = c->port->set;
	bool waits;

	c->port->inflight++;
	pthread_mutex_lock(&s->lock);
	waits = s->is_changing;
	s->is_changing = true;
	if (waits)
		list_push_tail(&s->waiting, &c->link);
	pthread_mutex_unlock(&s->lock);
	if (waits || !drive(c, 0))
		return 0;
	end(c);
	return 1;
}

/* ---- on one engine ---- */

static struct store_port *
engine_at(struct change *c)
{
	memset(&c->sub, 0, sizeof c->sub);
	c->sub.op.done = on_sub;
	return c->port->engine[c->at];
}

static int
make_at(struct change *c)
{
	struct store_port *e = engine_at(c);

	return e->ops->bucket_make(e, c->name, c->len, c->ctime_ns, c->at > 0, &c->sub.del);
}

static int
remove_at(struct change *c)
{
	return store_bucket_delete(engine_at(c), c->name, c->len, &c->sub.del);
}

static int
gate_at(struct change *c, bool close)
{
	struct store_port *e = engine_at(c);

	return e->ops->bucket_gate(e, c->name, c->len, close, &c->sub.del);
}

static int
set_at(struct change *c, uint64_t version, const void *attrs, uint32_t len)
{
	return store_bucket_set_attrs(engine_at(c), c->name, c->len, version, attrs, len, &c->sub.set);
}

/* Opens the gates of the engines behind this one, but for those that stay closed. */
static int
open_next(struct change *c)
{
	c->step = OPEN;
	do {
		c->at++;
	} while (c->at < c->port->nr && c->closed >> c->at & 1);
	return c->at < c->port->nr ? gate_at(c, false) : is_done(c, c->failed);
}

/* ---- make ---- */

/* What was made is removed again, up to the last engine. */
static int
undo_next(struct change *c, int r)
{
	if (c->step == UNDO && (r == 0 || r == -ENXIO)) {
		c->step = UNDO_OPEN;
		return gate_at(c, false);
	}
	/* It stays, behind its gate. */
	if (c->step == UNDO)
		c->failed = -ECANCELED;
	c->step = UNDO;
	return ++c->at < c->port->nr ? remove_at(c) : is_done(c, c->failed);
}

static int
create_next(struct change *c, int r)
{
	switch (c->step) {
	case LOOK:
		if (r != -ENXIO)
			return is_done(c, r < 0 ? r : -EEXIST);
		c->step = CHANGE;
		c->at = c->port->nr - 1;
		return make_at(c);
	case CHANGE:
		if (r == 0)
			return --c->at >= 0 ? make_at(c) : open_next(c);
		/* The rest of one that could not be undone. */
		if (r == -EEXIST && c->at > 0 && c->tries++ < TRIES) {
			c->step = CLEAR;
			return remove_at(c);
		}
		c->failed = r;
		c->step = r == -ECANCELED ? UNDO : UNDO_OPEN;
		return r == -ECANCELED ? remove_at(c) : gate_at(c, false);
	case CLEAR:
		c->step = CHANGE;
		return make_at(c);
	case OPEN:
		return open_next(c);
	default:
		return undo_next(c, r);
	}
}

static int
create_start(struct change *c, int r)
{
	c->next = create_next;
	c->closed = 1; /* the first one's was never closed */
	c->at = 0;
	return store_bucket_head(engine_at(c), c->name, c->len, &c->sub.stat);
}

int
set_bucket_create(struct store_port *sp, const char *name, size_t len, struct store_del *op)
{
	struct set_port *p = set_port(sp);
	struct change *c;

	if (p->nr == 1)
		return p->engine[0]->ops->bucket_create(p->engine[0], name, len, op);
	c = change_new(p, &op->op, name, len, create_start);
	if (!c)
		return -EAGAIN;
	c->step = LOOK;
	c->ctime_ns = clock_wall_ns();
	return begin(c);
}

/* ---- remove ---- */

/* Every engine has said that it has nothing. */
static int
remove_next(struct change *c, int r)
{
	if (r == -EAGAIN && c->tries++ < TRIES)
		return remove_at(c);
	if (r < 0 && r != -ENXIO) {
		c->failed = -ECANCELED;
		c->closed |= (uint64_t)1 << c->at;
	}
	if (--c->at >= 0)
		return remove_at(c);
	return open_next(c);
}

static int
delete_next(struct change *c, int r)
{
	if (c->step == OPEN)
		return open_next(c);
	if (c->step == CHANGE)
		return remove_next(c, r);
	if (r < 0 && !(r == -ENXIO && c->at > 0)) {
		c->failed = r;
		/* Those behind it were not closed. */
		for (int i = c->at < 0 ? 0 : c->at; i < c->port->nr; i++)
			c->closed |= (uint64_t)1 << i;
		c->at = -1;
		return open_next(c);
	}
	if (++c->at < c->port->nr)
		return gate_at(c, true);
	c->step = CHANGE;
	c->at = c->port->nr - 1;
	return remove_at(c);
}

int
set_bucket_delete(struct store_port *sp, const char *name, size_t len, struct store_del *op)
{
	struct set_port *p = set_port(sp);
	struct change *c;

	/* What the missing one holds is not known (M31). */
	if (set_misses_some(p->set))
		return -ENODEV;
	if (p->nr == 1)
		return p->engine[0]->ops->bucket_delete(p->engine[0], name, len, op);
	c = change_new(p, &op->op, name, len, delete_next);
	if (!c)
		return -EAGAIN;
	c->step = LOOK;
	return begin(c);
}

/* ---- attributes ---- */

/* The first engine judges the version, which is its own; the others take what it took. */
static int
set_attrs_next(struct change *c, int r)
{
	if (r < 0)
		return is_done(c, c->at == 0 ? r : -ECANCELED);
	if (++c->at == c->port->nr)
		return is_done(c, 0);
	return set_at(c, c->at == 0 ? c->version : STORE_VERSION_ANY, c->attrs, c->attrs_len);
}

int
set_bucket_set_attrs(struct store_port *sp, const char *name, size_t len, uint64_t version, const void *attrs,
		     uint32_t attrs_len, struct store_bucket_set *op)
{
	struct set_port *p = set_port(sp);
	struct change *c;

	if (p->nr == 1)
		return p->engine[0]->ops->bucket_set_attrs(p->engine[0], name, len, version, attrs, attrs_len,
							   op);
	c = change_new(p, &op->op, name, len, set_attrs_next);
	if (!c)
		return -EAGAIN;
	c->version = version;
	c->attrs = attrs;
	c->attrs_len = attrs_len;
	return begin(c);
}

/* ---- looks ---- */

int
set_bucket_head(struct store_port *sp, const char *name, size_t len, struct store_stat *st)
{
	struct store_port *first = set_port(sp)->engine[0];

	return first->ops->bucket_head(first, name, len, st);
}

int
set_bucket_get_attrs(struct store_port *sp, const char *name, size_t len, void *attrs, uint32_t cap,
		     struct store_stat *st)
{
	struct store_port *first = set_port(sp)->engine[0];

	return first->ops->bucket_get_attrs(first, name, len, attrs, cap, st);
}

/* ---- quotas ---- */

/* What the first engine has counts, and the book is one for all; the others have it for when the first is missing. */
static int
set_quota_next(struct change *c, int r)
{
	struct store_port *e;

	if (r < 0)
		return is_done(c, c->at == 0 ? r : -ECANCELED);
	if (++c->at == c->port->nr)
		return is_done(c, 0);
	e = engine_at(c);
	return e->ops->bucket_set_quota(e, c->name, c->len, &c->max_quota, &c->sub.set);
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
		return first->ops->bucket_set_quota(first, name, len, max, op);
	c = change_new(p, &op->op, name, len, set_quota_next);
	if (!c)
		return -EAGAIN;
	c->max_quota = *max;
	return begin(c);
}
