/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets of a set: each is on every engine, and what the first one says is so.
 *
 * A change goes from engine to engine; of all changes of a set one is under way at a time.  The first engine
 * gets a bucket before the others and loses it after them: whatever ends a change half way, no other engine
 * has a bucket that the first has not.
 */
#include "store/set_int.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum step { LOOK, CHANGE, READ_ATTRS, GIVE_BACK, GIVE_ATTRS };

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
	int failed; /* why what was done is given back */
	char name[STORE_BUCKET_MAX];
	size_t len;
	const void *attrs; /* to be set; the caller's */
	uint32_t attrs_len;
	uint64_t version;
	uint64_t ctime_ns;
	struct store_use max_quota;
	void *saved; /* attributes to give back, saved_len of them */
	uint32_t saved_len;
	union {
		struct store_op op;
		struct store_del del;
		struct store_bucket_set set;
		struct store_list list;
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
	free(c->saved);
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

	return e->ops->member ? e->ops->member->bucket_make(e, c->name, c->len, c->ctime_ns, &c->sub.del)
			      : store_bucket_create(e, c->name, c->len, &c->sub.del);
}

static int
remove_at(struct change *c)
{
	return store_bucket_delete(engine_at(c), c->name, c->len, &c->sub.del);
}

static bool
on_object(struct store_list *ls, const struct store_entry *e)
{
	return false;
}

static int
look_at(struct change *c)
{
	struct store_port *e = engine_at(c);

	c->sub.list.bucket = c->name;
	c->sub.list.bucket_len = (uint16_t)c->len;
	c->sub.list.max = 1;
	c->sub.list.entry = on_object;
	return store_list(e, &c->sub.list);
}

static int
set_at(struct change *c, uint64_t version, const void *attrs, uint32_t len)
{
	return store_bucket_set_attrs(engine_at(c), c->name, c->len, version, attrs, len, &c->sub.set);
}

/* ---- make ---- */

static int
create_next(struct change *c, int r)
{
	if (c->step == CHANGE) {
		if (r == 0 || (r == -EEXIST && c->at > 0))
			return ++c->at < c->port->nr ? make_at(c) : is_done(c, 0);
		if (c->at == 0)
			return is_done(c, r);
		c->step = GIVE_BACK;
		c->failed = r;
		if (r != -ECANCELED)
			c->at--;
	} else {
		/* Somebody may have put an object into it meanwhile. */
		if (r < 0 && r != -ENXIO)
			return is_done(c, -ECANCELED);
		c->at--;
	}
	return c->at >= 0 ? remove_at(c) : is_done(c, c->failed);
}

int
set_bucket_create(struct store_port *sp, const char *name, size_t len, struct store_del *op)
{
	struct set_port *p = set_port(sp);
	struct change *c;

	if (p->nr == 1)
		return p->engine[0]->ops->bucket_create(p->engine[0], name, len, op);
	c = change_new(p, &op->op, name, len, create_next);
	if (!c)
		return -EAGAIN;
	c->step = CHANGE;
	c->ctime_ns = clock_wall_ns();
	return begin(c);
}

/* ---- remove ---- */

static int give_back_next(struct change *c, int r);

/* Of the engines behind the one that refused. */
static int
give_back(struct change *c, int r)
{
	/* Whether the first one has it is not known: then it had better be alone. */
	if (c->at == c->port->nr - 1 || (c->at == 0 && r == -ECANCELED))
		return is_done(c, r);
	c->failed = r;
	c->next = give_back_next;
	c->step = READ_ATTRS;
	if (r != -ECANCELED)
		c->at++;
	/* They are on every engine; the first one lost nothing. */
	memset(&c->sub, 0, sizeof c->sub);
	c->sub.op.done = on_sub;
	return store_bucket_get_attrs(c->port->engine[0], c->name, c->len, c->saved, STORE_BUCKET_ATTRS_MAX,
				      &c->sub.stat);
}

static int
give_back_next(struct change *c, int r)
{
	if (r < 0 && !(c->step == GIVE_BACK && r == -EEXIST))
		return is_done(c, -ECANCELED);
	switch (c->step) {
	case READ_ATTRS:
		c->saved_len = c->sub.stat.attrs_len;
		c->ctime_ns = c->sub.stat.ctime_ns;
		c->step = GIVE_BACK;
		return make_at(c);
	case GIVE_BACK:
		c->step = GIVE_ATTRS;
		return set_at(c, STORE_VERSION_ANY, c->saved, c->saved_len);
	default:
		c->step = GIVE_BACK;
		return ++c->at < c->port->nr ? make_at(c) : is_done(c, c->failed);
	}
}

static int
delete_next(struct change *c, int r)
{
	if (r == -ENXIO && c->at > 0)
		r = 0;
	if (c->step == LOOK) {
		if (r != 0)
			return is_done(c, r < 0 ? r : -ENOTEMPTY);
		if (++c->at < c->port->nr)
			return look_at(c);
		c->step = CHANGE;
	} else if (r < 0) {
		return give_back(c, r);
	}
	return --c->at >= 0 ? remove_at(c) : is_done(c, 0);
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
	if (c)
		c->saved = malloc(STORE_BUCKET_ATTRS_MAX);
	if (!c || !c->saved) {
		free(c);
		return -EAGAIN;
	}
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
