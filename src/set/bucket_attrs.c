/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the attributes and the quota of a bucket (bucket_change.h), and reads them from the metadata leader
 * (set_int.h). */
#include "set/bucket_change.h"

#include "model/quota.h"
#include "base/check.h"

#include <errno.h>

/*
 * Returns the version of bucket attributes that callers get. The version contains the engine's number:
 * versions differ between engines, and a version read from one engine must not match that of another engine
 * by chance. The same call turns a caller's version into that of the engine.
 */
static uint64_t
attrs_version(uint64_t version, int engine)
{
	return version && version != STORE_VERSION_ANY ? version ^ (uint64_t)(engine + 1) << 56 : version;
}

int
set_look_bucket(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_stat *st = container_of(op, struct store_stat, op);
	struct set_port *p = set_port(sp);
	int head = set_head(p->set), r = port_engine(p, head)->ops->look(port_engine(p, head), l, op);

	check(r != 0);
	if (r > 0 && l->kind == LOOK_BUCKET_ATTRS)
		st->version = attrs_version(st->version, head);
	return r;
}

/* ---- changes ---- */

/*
 * Handles the result of one step of a change. The first engine validates the change; the other engines make
 * the accepted change without a validation. If the first engine fails before its answer, the next engine
 * validates the change. A change that requires a version then ends with -EAGAIN, because engines have
 * different versions. Returns true if the change is complete.
 */
static bool
judge_step(struct change *c, int r)
{
	if (change_is_lost(c) && !c->judged) {
		if (c->version != STORE_VERSION_ANY)
			change_is_done(c, -EAGAIN);
		c->at = -1;
	} else if (c->at >= 0 && !change_is_lost(c)) {
		if (r < 0)
			change_is_done(c, c->judged ? -ECANCELED : r);
		c->judged = true;
	}
	c->at = change_next_of(c, c->at);
	if (!c->is_over && c->at == c->port->nr)
		change_is_done(c, 0);
	return c->is_over;
}

/* Sets the limit of a bucket in the quota ledger. The row of the bucket is looked up with the counter of the
 * metadata leader. The metadata leader cannot change during the call, because the caller holds the map change
 * lock (M11). */
static void
bound(struct change *c)
{
	const struct set *s = c->port->set;
	struct quota_book *book = s->base.quotas;
	struct quota_row *row;

	quota_lock(book);
	row = quota_find(book, s->counter[change_next_of(c, -1)], c->name, c->len);
	if (row)
		quota_bound(book, row, &c->max_quota);
	quota_unlock(book);
}

/* Makes the change on each engine in turn. All engines share one quota ledger in memory. Each disk has a copy of
 * the quota, so that a start without the first engine finds the quota. */
static int
set_next(struct change *c, int r)
{
	bool is_quota = c->act == ACT_SET_QUOTA;

	if (judge_step(c, r)) {
		if (is_quota && c->result == 0)
			bound(c);
		return 0;
	}
	c->touched = true;
	return change_apply_at(c,
			       (struct store_change){ .act = c->act,
						      .version = c->judged ? STORE_VERSION_ANY
									   : attrs_version(c->version, c->at),
						      .attrs = c->sub->attrs,
						      .attrs_len = c->attrs_len,
						      .max = &c->max_quota });
}

int
set_bucket_set(struct store_port *sp, const struct store_change *sc, struct store_op *op)
{
	return change_begin(change_new(sp, op, sc, set_next));
}
