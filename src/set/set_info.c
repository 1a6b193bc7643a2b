/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports data about keys with two copies to operators: keys of which only one copy exists, disks that are
 * away, and the progress of resynchronisation. The data comes from the newest map and the counters of the
 * engines; no thread waits for it.
 */
#include "set/disk_names.h"

#include "base/clock.h"

#include <string.h>

struct look {
	const struct set *s;
	const struct disk_table *t;
	struct store_copies_info *info;
	/* bitmaps of disk numbers. serving: disks in service; named: disks of slots without two copies; needed:
	 * disks that have the keys of unreachable slots */
	uint64_t serving, named, needed;
	uint64_t heal_bytes; /* estimated number of bytes yet to be copied */
	bool heals;
};

static struct store_use
use_of(const struct set *s, int engine, int slot)
{
	struct store_use use = { 0 };

	if (engine != SET_NOWHERE && engine >= 0)
		set_engine_ops(s, engine)->two_use(set_engine(s, engine), (unsigned)slot, &use);
	return use;
}

static void
look_at_slot(struct look *l, int slot)
{
	int first = l->t->first[slot], second = l->t->second[slot];
	bool has_first = table_has(l->serving, first),
	     has_second = table_has(l->serving, second) && table_is_full(l->t, slot);
	struct store_use there,
		use = use_of(l->s, set_primary_at(l->s, (unsigned)(STORE_SLOT_NR + slot)), slot);

	l->info->objects += use.objects;
	l->info->bytes += use.bytes;
	if (has_first && has_second)
		return;
	l->info->exposed_objects += use.objects;
	l->info->exposed_bytes += use.bytes;
	l->named |= (uint64_t)1 << first;
	if (second != TABLE_NO_DISK)
		l->named |= (uint64_t)1 << second;
	if (!has_first && !has_second) {
		l->info->unreachable_slots++;
		l->needed |= (uint64_t)1 << first;
	}
	if (!has_first || !table_has(l->serving, second))
		return;
	l->heals = true;
	there = use_of(l->s, set_engine_of(l->s, second), slot);
	l->heal_bytes += use.bytes > there.bytes ? use.bytes - there.bytes : 0;
}

static void
look_at_unit(struct look *l, int unit)
{
	const struct set *s = l->s;
	int number = set_unit(s, unit)->number;
	uint64_t away, after = s->conf.disks.heal_after_ns;

	if (number == TABLE_NO_DISK || set_is_drained(s, unit))
		return;
	if (table_has(l->needed, number))
		l->info->needed |= (uint64_t)1 << unit;
	if (!table_has(l->named, number) || table_has(l->serving, number))
		return;
	l->info->away |= (uint64_t)1 << unit;
	away = set_away_ns(s, number);
	if (!away || away < after)
		l->info->replaced_in_ns[unit] = after - away;
}

static void
look_at_healing(struct look *l, uint64_t now)
{
	struct store_copies_info *info = l->info;
	struct store_move_info move;
	uint64_t ran, left = l->heal_bytes;

	if (!l->heals)
		return;
	set_move_info(&l->s->base, &move);
	if (!move.is_heal)
		move.bytes_done = move.slot_bytes = 0;
	memcpy(info->trouble, move.trouble, sizeof info->trouble);
	info->is_healing = move.is_running && !move.trouble[0];
	info->heal_bytes_done = move.bytes_done;
	/* The bytes of a slot count as left until the whole slot is copied; therefore the copied part is
	 * subtracted. */
	left -= move.slot_bytes < left ? move.slot_bytes : left;
	info->heal_bytes_total = move.bytes_done + left;
	ran = now - move.began_ns;
	if (move.began_ns && move.bytes_done && ran)
		info->heal_rate = (uint64_t)((double)move.bytes_done * NS_PER_S / (double)ran);
	if (info->heal_rate)
		info->heal_left_ns = (uint64_t)((double)left * NS_PER_S / (double)info->heal_rate);
}

/* The recovery task is named first, because it makes work for the rebalancer, whose moves make work for the
 * engines. */
const char *
set_background(const struct store *st)
{
	struct set *s = set_of(st);
	const char *work = set_recovers(s) ? "resync" : set_move_work(s);

	for (int i = 0; !work && i < set_engines(s); i++)
		work = store_background(set_engine(s, i));
	return work;
}

static void
copies_info(const struct store *st, struct store_copies_info *ret_info)
{
	struct set *s = set_of(st);
	struct disk_table t;
	struct look l = { .s = s, .t = &t, .info = ret_info };
	uint64_t now = clock_ns();

	*ret_info = (struct store_copies_info){ .is_used = false };
	if (!set_uses_pairs(s))
		return;
	set_get_table(s, &t);
	l.serving = disks_serving(s);
	ret_info->is_used = true;
	for (int i = 0; i < STORE_SLOT_NR; i++)
		look_at_slot(&l, i);
	for (int i = 0; i < set_units(s); i++)
		look_at_unit(&l, i);
	look_at_healing(&l, now);
	ret_info->may_replace =
		__builtin_popcountll(l.serving) > 1 && !set_is_read_only(s) && !s->conf.disks.moves_wait;
	ret_info->missed = set_counted(s, COUNT_MISSED);
	ret_info->repaired = set_counted(s, COUNT_REPAIRED);
	ret_info->read_second = set_counted(s, COUNT_READ_SECONDARY);
}

void
set_disks_info(const struct store *st, struct store_move_info *ret_move, struct store_copies_info *ret_copies)
{
	if (ret_move)
		set_move_info(st, ret_move);
	if (ret_copies)
		copies_info(st, ret_copies);
}
