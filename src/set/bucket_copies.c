/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the number of copies of a bucket; see bucket_change.h. */
#include "set/bucket_change.h"

#include "base/check.h"

#include <errno.h>

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

int
change_copies_begin(struct change *c, unsigned had_copies)
{
	if (set_misses_some(c->port->set))
		return change_is_done(c, -ENODEV);
	c->next = change_copies;
	c->had_copies = had_copies;
	c->at = -1;
	return change_copies(c, 0);
}
