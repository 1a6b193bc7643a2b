/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans the changes of replica pairs, for the rebalancer:
 *
 * - heal: the secondary is present and not in sync. The primary sends the whole slot; then a map says that
 *   the secondary is in sync.
 * - pair: a slot has no secondary, or the secondary is away for too long. Another disk becomes the secondary,
 *   and is then resynchronised.
 * - drain: a disk leaves. If it is the primary and the secondary is in sync, the two swap roles. If it is the
 *   secondary, another disk becomes the secondary.
 * - fill: a disk has fewer slots than its share. The disk becomes the secondary of more slots, and swaps
 *   roles with some primaries.
 */
#include "set/disk_names.h"
#include "set/mover.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

struct plan {
	const struct set *s;
	const struct disk_table *t;
	const struct store_slots *stuck; /* slots that cannot move now; NULL: all slots can move */
	uint64_t serving;                /* bitmap of the numbers of disks in service */
	struct store_slots slots;        /* slots that move together, of one kind, source and target */
	enum move_kind kind;
	int from, to; /* numbers of the source and target disks of `slots`, if nr > 0 */
	int nr;
	bool waits; /* true: a slot that is to move cannot move now */
};

/* Adds a slot to the group of slots that move together. Returns false if the slot does not fit into this
 * group. */
static bool
add(struct plan *p, enum move_kind kind, int slot, int from, int to)
{
	unsigned place = (unsigned)(STORE_SLOT_NR + slot);

	check(from != to && table_has(p->serving, to));
	if (p->stuck && slots_has(p->stuck, place)) {
		p->waits = true;
		return false;
	}
	if (p->nr == MOVE_SLOTS || (p->nr && (p->kind != kind || p->from != from || p->to != to)))
		return false;
	if (!p->nr) {
		p->kind = kind;
		p->from = from;
		p->to = to;
	}
	slots_add(&p->slots, place);
	p->nr++;
	return true;
}

static void
plan_heal(struct plan *p)
{
	const struct disk_table *t = p->t;
	int stay = __builtin_popcountll(t->members & ~t->draining);

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		/* A slot without a secondary waits for another disk only if at least two disks remain. */
		if (table_is_full(t, i) || (t->second[i] == TABLE_NO_DISK && stay < 2))
			continue;
		if (table_has(p->serving, t->first[i]) && table_has(p->serving, t->second[i]))
			add(p, MOVE_SECOND, i, t->first[i], t->second[i]);
		else
			p->waits = true;
	}
}

static bool
is_away_long(const struct set *s, int number)
{
	uint64_t away = set_away_ns(s, number);

	return away && away >= s->conf.disks.heal_after_ns;
}

/*
 * Assigns a secondary to slots that have none, and to slots whose secondary is away for too long. Returns
 * true if the map has changed.
 */
static bool
pair_up(const struct set *s, struct disk_table *t, uint64_t serving)
{
	uint64_t size[STORE_DISKS_MAX];
	uint8_t was[STORE_SLOT_NR];
	bool changes = false;

	disk_sizes(s, size);
	memcpy(was, t->second, sizeof was);
	for (int i = 0; i < STORE_DISKS_MAX; i++)
		size[i] = table_has(serving, i) ? size[i] : 0;
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		/* The secondary is replaced only if the primary is in service and can send the keys. */
		if (was[i] != TABLE_NO_DISK && !table_has(serving, was[i]) &&
		    table_has(serving, t->first[i]) && is_away_long(s, was[i]))
			t->second[i] = TABLE_NO_DISK;
	}
	table_pair(t, size, false);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (t->second[i] == TABLE_NO_DISK)
			t->second[i] = was[i];
		changes |= t->second[i] != was[i];
	}
	return changes;
}

/* Returns the disk that lacks most slots of its share, among the disks in service that are not drained. */
static int
poorest(const struct plan *p, const int *want, const int *has, uint64_t but)
{
	return table_poorest(p->serving & p->t->members & ~p->t->draining & ~but, want, has);
}

static void
plan_drain(struct plan *p, const int *want, int *has)
{
	const struct disk_table *t = p->t;

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		int first = t->first[i], second = t->second[i], to;
		uint64_t pair = (uint64_t)1 << first;

		if (second != TABLE_NO_DISK)
			pair |= (uint64_t)1 << second;
		if (!(t->draining & pair))
			continue;
		if (table_has(t->draining, first) && table_is_full(t, i) && table_has(p->serving, second)) {
			add(p, MOVE_SWAP, i, first, second);
			continue;
		}
		to = poorest(p, want, has, pair);
		if (to < 0 || !table_has(p->serving, first)) {
			p->waits = true;
			continue;
		}
		add(p, table_has(t->draining, first) ? MOVE_FIRST : MOVE_SECOND, i, first, to);
		/* Slots that do not fit into the group are counted, too; otherwise all following slots would
		 * get the same target. */
		has[to]++;
	}
}

/* Plans how to fill a new disk. The disk first becomes the secondary of some slots, and then the primary of
 * some of these. */
static void
plan_fill(struct plan *p, const int *want, int *firsts, int *seconds)
{
	const struct disk_table *t = p->t;

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		int first = t->first[i], second = t->second[i];
		int to = poorest(p, want, seconds, ~t->filling | (uint64_t)1 << first);

		if (second == TABLE_NO_DISK || !table_is_full(t, i) || !table_has(p->serving, first) ||
		    !table_has(p->serving, second))
			continue;
		if (table_has(t->filling, second) && firsts[second] < want[second] &&
		    firsts[first] > want[first]) {
			if (add(p, MOVE_SWAP, i, first, second)) {
				firsts[second]++;
				firsts[first]--;
			}
			continue;
		}
		if (to < 0 || to == second || table_has(t->filling, second) || seconds[to] >= want[to] ||
		    seconds[second] <= want[second])
			continue;
		if (add(p, MOVE_SECOND, i, first, to)) {
			seconds[to]++;
			seconds[second]--;
		}
	}
}

static void
plan_members(struct plan *p)
{
	const struct disk_table *t = p->t;
	uint64_t size[STORE_DISKS_MAX];
	int want[STORE_DISKS_MAX], firsts[STORE_DISKS_MAX] = { 0 }, seconds[STORE_DISKS_MAX] = { 0 };

	if (!move_members_change(t) || table_gives_up(t))
		return;
	disk_sizes(p->s, size);
	table_shares(t->members & ~t->draining, size, want);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		firsts[t->first[i]]++;
		if (t->second[i] != TABLE_NO_DISK)
			seconds[t->second[i]]++;
	}
	plan_drain(p, want, seconds);
	if (!p->nr)
		plan_fill(p, want, firsts, seconds);
}

/* Writes a map that assigns secondaries to the slots without one. */
static int
write_pairs(struct mover *m, uint64_t serve)
{
	int r = move_take_turn(m);

	if (r < 0)
		return r;
	if (pair_up(m->set, &m->next, serve))
		r = move_change_table(m, set_all(m->set), 0);
	move_give_turn(m);
	return r < 0 ? r : -EINTR;
}

int
move_next_pairs(struct mover *m, const struct disk_table *t, int *ret_from, int *ret_to)
{
	struct plan p = { .s = m->set, .t = t, .stuck = &m->stuck, .serving = disks_serving(m->set) };

	if (!set_uses_pairs(m->set))
		return 0;
	plan_heal(&p);
	m->next = *t;
	if (!p.nr && pair_up(m->set, &m->next, p.serving))
		return write_pairs(m, p.serving);
	if (!p.nr)
		plan_members(&p);
	if (!p.nr)
		return p.waits ? -EAGAIN : 0;
	m->slots = p.slots;
	m->kind = p.kind;
	*ret_from = set_engine_of(m->set, p.from);
	*ret_to = set_engine_of(m->set, p.to);
	return 1;
}

void
move_change_pair(struct disk_table *t, enum move_kind kind, int slot, int to)
{
	if (kind == MOVE_SECOND) {
		t->second[slot] = (uint8_t)to;
		table_set_full(t, slot, true);
	} else if (kind == MOVE_SWAP) {
		/* Only a secondary that is in sync becomes the primary. */
		check(t->second[slot] == to && table_is_full(t, slot));
		t->second[slot] = t->first[slot];
		t->first[slot] = (uint8_t)to;
	} else {
		t->first[slot] = (uint8_t)to;
	}
	check(t->first[slot] != t->second[slot]);
}

void
move_plan_drain(const struct set *s, struct disk_table *t)
{
	struct plan p;

	/* The final map assumes that every secondary is in sync, because resynchronisation comes first. */
	for (int i = 0; i < STORE_SLOT_NR; i++)
		table_set_full(t, i, t->second[i] != TABLE_NO_DISK);
	do {
		p = (struct plan){ .s = s, .t = t, .serving = disks_serving(s) };
		if (set_uses_pairs(s))
			plan_members(&p);
		for (int i = 0; i < STORE_SLOT_NR; i++) {
			if (slots_has(&p.slots, (unsigned)(STORE_SLOT_NR + i)))
				move_change_pair(t, p.kind, i, p.to);
		}
	} while (p.nr);
}

bool
set_pairs_wait(const struct set *s, const struct disk_table *t)
{
	uint64_t serve = disks_serving(s);

	/* A slot waits if its primary can send the keys: to its secondary, or to a disk that takes the place of an
	 * away secondary. */
	for (int i = 0; set_uses_pairs(s) && __builtin_popcountll(serve) > 1 && i < STORE_SLOT_NR; i++) {
		if (!table_is_full(t, i) && table_has(serve, t->first[i]))
			return true;
	}
	return false;
}
