/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves slots from one engine to another while both serve (docs/set.md, "Moves"). The states of a move:
 *
 * - filling: the source reports changes. All keys are sent; keys that change are sent again, until few are
 *   left.
 * - frozen: writers wait, and the remaining changed keys are sent.
 * - switching: a map that assigns the slots to the target is written.
 * - switched: the target accepts the slots, and keys are looked up there. After every port has passed a
 *   barrier, the source hands over the slots, and waiting writers continue at the target.
 * - removing: the records at the source are foreign now, and are removed.
 *
 * Until the map is written, the records at the target are foreign records; after an error before that, the
 * source continues as before. If the target fails during the write of the map, the map falls back to the
 * previous one. If any other disk fails during the write, the move is not cancelled, because source and
 * target have the same keys by then: the next map contains the move, and lists that disk as away.
 */
#include "set/map/set_rules.h"
#include "set/mover.h"

#include "base/check.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#ifndef FEW
#define FEW 64 /* largest number of keys that may be sent while writers wait */
#endif
/* longest time of sends while writers wait, in ns. A writer waits for a second at most (SLOTS_FREEZE in
 * store/ops.h); the rest of this second remains for the write of the map. */
#define FROZEN_SEND_NS (500 * NS_PER_MS)
#define ROUNDS 50
#define AGAIN_NS (20 * NS_PER_MS)

/* ---- what leaders are told ---- */

/* Sends a request about m->slots to the leader of an engine, and waits for its end. SLOTS_WATCH ends the reports. */
static int
tell(struct mover *m, struct store_port *p, enum store_slots_act act)
{
	struct store_slots_op *o = &m->op;

	*o = (struct store_slots_op){ .slots = act == SLOTS_WATCH ? NULL : &m->slots, .moved = o->moved };
	return STORE_DO(m->user, &o->op, p->ops->member->slots(p, act, o));
}

/* ---- the switch ---- */

/* Assigns secondaries to the slots of m->slots: the previous secondaries in was[], or, with `was` NULL,
 * `engine` to every slot. M8: a secondary receives every acknowledged change even before the map says that
 * the secondary is in sync. */
static void
set_seconds(struct mover *m, const uint8_t *was, int engine)
{
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (slots_has(&m->slots, (unsigned)(STORE_SLOT_NR + i)))
			set_assign(m->set, table_place((unsigned)i, true), SET_SECONDARY,
				   was ? was[i] : (uint8_t)engine);
	}
}

/* Returns true if the slots are still assigned as in the plan. The assignment may have changed because a disk
 * has failed, or because the first bucket with two copies was made. */
static bool
is_as_planned(const struct mover *m, const struct disk_table *t, int from, int to)
{
	uint8_t f = set_number(m->set, from), g = set_number(m->set, to);

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (slots_has(&m->slots, (unsigned)i) && t->home[i] != f)
			return false;
		if (!slots_has(&m->slots, (unsigned)(STORE_SLOT_NR + i)))
			continue;
		if (t->first[i] != f || (m->kind == MOVE_HOME && t->second[i] != TABLE_NO_DISK) ||
		    (m->kind == MOVE_FIRST && t->second[i] == g) ||
		    (m->kind == MOVE_SWAP && (t->second[i] != g || !table_is_full(t, i))))
			return false;
	}
	return true;
}

static int
write_homes(struct mover *m, int from, int to)
{
	struct set *s = m->set;
	struct disk_table *next = &m->next;
	uint8_t was[STORE_SLOT_NR];
	int r;

	if (!is_as_planned(m, next, from, to))
		return -EINTR;
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (slots_has(&m->slots, (unsigned)i))
			next->home[i] = (uint8_t)set_number(s, to);
		if (slots_has(&m->slots, (unsigned)(STORE_SLOT_NR + i)))
			move_change_pair(next, m->kind, i, set_number(s, to));
		was[i] = (uint8_t)set_secondary_at(s, table_place((unsigned)i, true));
	}
	if (m->kind == MOVE_SECOND && RULE_BOTH_TABLES)
		set_seconds(m, NULL, to);
	/* M8: the secondary receives every change already before the write of the map that marks the
	 * secondary as in sync. */
	for (int i = 0; RULE_BOTH_TABLES && m->kind == MOVE_SECOND && i < STORE_SLOT_NR; i++)
		check(!slots_has(&m->slots, (unsigned)(STORE_SLOT_NR + i)) ||
		      set_secondary_at(s, table_place((unsigned)i, true)) == to);
	r = move_change_table(m, set_all(s), (uint64_t)1 << to);
	if (m->kind == MOVE_SECOND)
		/* After -EROFS the set is read-only, and the next start may find the map in which the
		 * secondary is in sync. */
		set_seconds(m, r == 0 || r == -EROFS ? NULL : was, to);
	return r;
}

/* Directs look-ups of the slots to the new engine, after the map has become effective. was_first: in a swap,
 * the engine that becomes the secondary; -1: the move is no swap. */
static void
go_over(struct mover *m, int source, int target, int was_first, int engine)
{
	struct store_port *from = move_port(m, source), *to = move_port(m, target);
	struct set *s = m->set;
	int r;

	m->op.moved = NULL;
	r = tell(m, to, SLOTS_TAKE);
	/* The secondary is assigned before the first look-up at the new primary: all changes still wait at
	 * the source. */
	if (was_first >= 0)
		set_seconds(m, NULL, was_first);
	/* The target lists the keys, and lists leave out of the source those that are looked up at the target. */
	set_note_leaving(s, source, true);
	for (int i = 0; i < STORE_PLACE_NR; i++) {
		if (slots_has(&m->slots, (unsigned)i))
			set_assign(s, (unsigned)i, SET_PRIMARY, engine);
	}
	if (RULE_REMOVE_AFTER_SWITCH)
		move_visit(m);
	if (r >= 0)
		r = tell(m, from, SLOTS_LEAVE);
	set_note_leaving(s, source, false);
	if (r < 0)
		log_error("slots that have moved are not counted where they are: %s", strerror(-r));
}

/* Waits, after a freeze, until every change that the primary has already made is complete on the secondary.
 * The messages of these changes reach their ports before the barrier does. */
static int
wait_unsettled(struct mover *m)
{
	struct set *s = m->set;
	uint64_t until = clock_ns() + FROZEN_SEND_NS;

	move_visit(m);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (!slots_has(&m->slots, (unsigned)(STORE_SLOT_NR + i)))
			continue;
		while (set_in_doubt(s, (unsigned)i)) {
			if (clock_ns() > until)
				return -EAGAIN;
			move_turn(m);
		}
		/* The secondary was removed from the map, or has missed an update: the swap is not
		 * possible. */
		if (set_secondary_at(s, table_place((unsigned)i, true)) == SET_NOWHERE || set_has_miss(s))
			return -EAGAIN;
	}
	return 0;
}

/* Switches the slots to the target. The caller holds the map change lock, and every writer waits. */
static int
switch_over(struct mover *m, int from, int to, uint64_t removed)
{
	struct set *s = m->set;
	struct store_port *f = move_port(m, from);
	bool lost = false, is_open = false;
	int r = RULE_MOVE_FREEZE ? tell(m, f, SLOTS_FREEZE) : 0;

	/* A bucket was removed during the move, and the uploads that ended with it were not reported: all
	 * keys are sent again. */
	if (r >= 0 && set_removed(s) != removed)
		r = -ESTALE;
	if (r >= 0) {
		m->sender.limit_ns = clock_ns() + FROZEN_SEND_NS;
		r = move_send_changed(m, from, to, &lost);
		m->sender.limit_ns = 0;
		if (r == -EINTR)
			r = -EAGAIN;
	}
	if (r >= 0 && (lost || (RULE_MOVE_WATCH && move_changed_nr(m))))
		r = -EAGAIN;
	if (r >= 0 && m->kind == MOVE_SWAP)
		r = wait_unsettled(m);
	if (r >= 0) {
		r = write_homes(m, from, to);
		/* The set is read-only, and the next start may find either map: the slots stay frozen. */
		is_open = r == -EROFS;
	}
	if (m->kind != MOVE_SECOND && (r == 0 || is_open))
		go_over(m, from, to, r == 0 && m->kind == MOVE_SWAP ? from : -1, r == 0 ? to : from);
	else if (RULE_MOVE_FREEZE)
		/* The primary has not changed, so the writers that wait at the primary continue. */
		tell(m, f, SLOTS_THAW);
	return r;
}

/* ---- a set of slots ---- */

static int
fill(struct mover *m, int from, int to)
{
	struct set *s = m->set;
	int r = -ESTALE;
	uint64_t removed = 0;

	for (int round = 0; round < ROUNDS; round++) {
		bool lost = false;

		if (r == -ESTALE) {
			removed = set_removed(s);
			r = m->kind == MOVE_SWAP ? 0 : move_walk_both(m, from, to);
		} else if (move_changed_nr(m) > FEW || r == -EAGAIN) {
			uint64_t until = clock_ns() + AGAIN_NS;

			while (r == -EAGAIN && clock_ns() < until)
				move_turn(m);
			r = move_send_changed(m, from, to, &lost);
			if (lost && r >= 0)
				r = -ESTALE;
		}
		if (move_is_to_end(m))
			return -EINTR;
		if (r == 0 && move_changed_nr(m) <= FEW) {
			r = move_take_turn(m);
			if (r < 0)
				return r;
			r = switch_over(m, from, to, removed);
			move_give_turn(m);
			if (r == 0)
				return 0;
		}
		/* After a repair, and after -ESTALE, all keys are sent again. */
		if ((r == -EBADMSG || r == -EIO) && move_end_rotten(m, from, true))
			r = -ESTALE;
		if (r < 0 && r != -EAGAIN && r != -ESTALE)
			return r;
	}
	return -EAGAIN;
}

int
move_slots(struct mover *m, int from, int to)
{
	struct store_port *f = move_port(m, from);
	int r;

	check(from != to && set_is_moving(m->set));
	m->sender.error = 0;
	if (!move_begin_noting(m))
		return -EAGAIN;
	m->watch = (struct store_slots_op){ .slots = &m->slots, .changed = move_on_change, .cookie = m };
	r = STORE_DO(m->user, &m->watch.op, f->ops->member->slots(f, SLOTS_WATCH, &m->watch));
	if (r >= 0) {
		int e;

		r = fill(m, from, to);
		e = tell(m, f, SLOTS_WATCH);
		if (e < 0 && !set_has_failed(m->set, from))
			log_error("a watch on slots that move does not end: %s", strerror(-e));
	}
	if (set_has_failed(m->set, from) || set_has_failed(m->set, to))
		r = r < 0 ? -EROFS : r;
	move_end_rotten(m, from, false);
	move_end_noting(m);
	return r;
}

/* ---- leftovers ---- */

bool
set_removes_foreign(const struct set *s)
{
	return atomic_load(&s->mover->cleans);
}

/* Notes that foreign records are being removed, and copies the newest map to m->next. Both happen under the
 * map change lock, so a change of the map either precedes the copy or sees the note. A read-only set makes no
 * further map. */
static void
begin_clean(struct mover *m)
{
	int r = move_take_turn(m);

	atomic_store(&m->cleans, true);
	if (r == 0)
		move_give_turn(m);
}

int
move_clean(struct mover *m, int but)
{
	struct set *s = m->set;
	const struct disk_table *t = &m->next;
	struct store_slots theirs;
	int r = 0, e;

	m->sender.error = 0;
	begin_clean(m);
	for (int i = 0; r == 0 && i < set_engines(s); i++) {
		if (i == but || !set_is_in(s, i) || set_has_failed(s, i))
			continue;
		memset(&theirs, 0, sizeof theirs);
		for (int place = 0; place < STORE_PLACE_NR; place++) {
			int slot = place - STORE_SLOT_NR;
			/* The engine that the newest map names as primary keeps its records, even before the
			 * recovery task has assigned the partition to the engine. */
			bool is_of_pair = slot >= 0 && (t->first[slot] == set_number(s, i) ||
							t->second[slot] == set_number(s, i));

			if (set_primary_at(s, (unsigned)place) != i && !is_of_pair)
				slots_add(&theirs, (unsigned)place);
		}
		r = move_walk(m, i, move_port(m, i), NULL, &theirs);
		/* All sends have ended now, so the next attempt after an error sends all keys again. */
		e = move_sends_end(m);
		if (e == -EROFS || (e == -EAGAIN && r == 0))
			r = e;
	}
	atomic_store(&m->cleans, false);
	return r;
}
