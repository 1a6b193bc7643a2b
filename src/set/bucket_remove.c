/* SPDX-License-Identifier: Apache-2.0 */
/* Removes a bucket; see bucket_change.h. */
#include "set/bucket_change.h"

#include "set/map/set_rules.h"
#include "model/quota.h"

#include "base/check.h"

#include <errno.h>

/* Returns the engine that removes the bucket after engine `at`; the metadata leader removes the bucket first
 * (M38). If no engine follows, returns the number of engines or -1. */
static int
remover_after(const struct change *c, int at)
{
	return RULE_HEAD_REMOVES_FIRST ? change_next_of(c, at) : change_before(c, at);
}

/* Removes the bucket on the next engine, after every engine has confirmed that its bucket is empty. */
static int
remove_next(struct change *c, int r)
{
	int none = RULE_HEAD_REMOVES_FIRST ? -1 : c->port->nr;
	bool is_first = c->at == remover_after(c, none);

	if (!RULE_GATE_FORWARD && change_is_lost(c)) {
		c->failed = -ECANCELED;
		c->at = -1;
		return change_open_next(c);
	}
	if (c->at != none && !change_is_lost(c)) {
		if (r == -EAGAIN && c->tries++ < TRIES)
			return change_remove_at(c);
		if (r < 0 && r != -ENXIO && r != -ECANCELED && is_first && !c->failed) {
			/* The first removal failed, so every engine still has the bucket. */
			c->failed = r;
			c->at = -1;
			return change_open_next(c);
		}
		if (r < 0 && r != -ENXIO) {
			c->failed = -ECANCELED;
			c->closed |= (uint64_t)1 << c->at;
		}
	}
	c->at = remover_after(c, c->at);
	if (c->at >= 0 && c->at < c->port->nr)
		return change_remove_at(c);
	c->at = -1;
	return change_open_next(c);
}

/* Cancels a change with the error `why`: opens the gates that earlier steps closed. is_closed: opens the gate
 * of the current step, too. */
static int
give_up(struct change *c, int why, bool is_closed)
{
	c->failed = why;
	for (int i = c->at < 0 ? 0 : c->at + is_closed; i < c->port->nr; i++)
		c->closed |= (uint64_t)1 << i;
	c->at = -1;
	return change_open_next(c);
}

int
change_close_next(struct change *c, int r, enum store_gate gate, int (*rest)(struct change *c))
{
	const struct set *s = c->port->set;

	/* A change is cancelled if an engine has failed, because the last operations of that engine are
	 * unknown (M31). */
	if (RULE_GATE_ALL_PRESENT && set_in(s) != set_all(s))
		return give_up(c, -EROFS, r >= 0);
	if (r < 0 && !change_is_lost(c) && !(r == -ENXIO && change_before(c, c->at) >= 0))
		return give_up(c, r, false);
	if (c->at < 0 && set_expect_missed(c->port->set) < 0)
		return change_is_done(c, -EAGAIN);
	c->at = RULE_GATE_CLOSED ? change_next_of(c, c->at) : c->port->nr;
	if (c->at < c->port->nr)
		return change_gate_at(c, gate);
	c->step = CHANGE;
	return rest(c);
}

static int
remove_first(struct change *c)
{
	/* M31: no engine is missing, and all gates are closed. */
	check(!RULE_GATE_ALL_PRESENT || set_in(c->port->set) == set_all(c->port->set));
	check(c->at == c->port->nr && c->step == CHANGE);
	c->at = c->port->nr;
	if (RULE_HEAD_REMOVES_FIRST) {
		set_publish_head(c->port->set, change_before(c, c->port->nr));
		c->at = -1;
	}
	return remove_next(c, 0);
}

static int
delete_next(struct change *c, int r)
{
	switch (c->step) {
	case OPEN:
		return change_open_next(c);
	case CHANGE:
		return remove_next(c, r);
	default:
		return change_close_next(c, r, GATE_CLOSE_EMPTY, remove_first);
	}
}

/* Removes the bucket from the usage counters of engines that left the map during the removal: their objects
 * no longer count. */
static void
forget_use(struct change *c)
{
	struct set *s = c->port->set;
	struct quota_book *book = s->base.quotas;
	struct quota_row *row;
	int counter;

	for (int i = 0; i < set_engines(s); i++) {
		if (set_is_in(s, i))
			continue;
		counter = s->counter[i];
		quota_lock(book);
		row = quota_find(book, counter, c->name, c->len);
		if (row && quota_version(row, counter))
			quota_gone(book, counter, row);
		quota_unlock(book);
	}
}

static int
delete_over(struct change *c, int r)
{
	int started = delete_next(c, r);

	if (c->is_over && c->touched) {
		set_note_removed(c->port->set);
		set_note_missed(c->port->set, c->name, c->len, c->closed >> change_next_of(c, -1) & 1, 0);
		if (c->result == 0)
			forget_use(c);
	}
	return started;
}

int
set_bucket_delete(struct store_port *sp, const struct store_change *sc, struct store_op *op)
{
	/* The removal is refused while an engine is missing, because the contents of that engine are unknown
	 * (M31). */
	if (RULE_GATE_ALL_PRESENT && set_misses_some(set_port(sp)->set))
		return -ENODEV;
	return change_begin(change_new(sp, op, sc, delete_over));
}
