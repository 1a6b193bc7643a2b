/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the moves for joining and leaving disks: finds the next slots to move, counts the slots and bytes
 * that are still to move, and checks whether the disks have space for the moves; see rebalance.h. */
#include "set/disk_names.h"
#include "set/mover.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/refuse.h"

#include <errno.h>
#include <string.h>

bool
move_members_change(const struct disk_table *t)
{
	return (t->draining | t->filling) != 0;
}

bool
move_has_leftovers(const struct set *s)
{
	bool has_pairs = set_uses_pairs(s);
	struct store_unit_info info;
	bool has = false;

	for (int i = 0; i < set_engines(s); i++) {
		store_unit_info(set_engine(s, i), 0, &info);
		has |= store_unit_number(&info, "leftover_objects") ||
		       store_unit_number(&info, "leftover_uploads");
		/* If the map has no secondaries, all records of keys with two copies are foreign records. */
		has |= !has_pairs &&
		       (store_unit_number(&info, "copy_objects") || store_unit_number(&info, "copy_uploads"));
	}
	return has;
}

/* Returns the disk from which a slot that has no keys with two copies moves to the planned disk; the planned disk: the
 * slot does not move. The home and the primary of the slot move together; the primary moves alone if the home
 * has moved before, for example when another disk was forgotten. */
static int
source_of(const struct disk_table *t, int slot, int planned)
{
	bool is_alone = t->home[slot] == planned && t->second[slot] == TABLE_NO_DISK;

	return is_alone && table_has(t->draining, t->first[slot]) ? t->first[slot] : t->home[slot];
}

bool
move_next_slots(struct mover *m, const struct disk_table *t, int *ret_from, int *ret_to, int *ret_left)
{
	struct set *s = m->set;
	uint64_t size[STORE_DISKS_MAX];
	uint8_t home[STORE_SLOT_NR];
	int nr = 0;

	disk_sizes(s, size);
	table_plan(t, size, home);
	memset(&m->slots, 0, sizeof m->slots);
	m->kind = MOVE_HOME;
	*ret_from = *ret_to = -1;
	*ret_left = 0;
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		int to = home[i], from = source_of(t, i, to);

		if (from == to)
			continue;
		++*ret_left;
		if (slots_has(&m->stuck, (unsigned)i) || set_engine_of(s, from) < 0 ||
		    set_engine_of(s, to) < 0)
			continue;
		if (*ret_from < 0) {
			*ret_from = from;
			*ret_to = to;
		}
		if (from == *ret_from && to == *ret_to && nr < MOVE_SLOTS) {
			if (t->home[i] == from)
				slots_add(&m->slots, (unsigned)i);
			if (t->second[i] == TABLE_NO_DISK && t->first[i] == from)
				slots_add(&m->slots, (unsigned)(STORE_SLOT_NR + i));
			nr++;
		}
	}
	if (!nr)
		return false;
	check(*ret_from != *ret_to && table_has(t->members, *ret_to));
	*ret_from = set_engine_of(s, *ret_from);
	*ret_to = set_engine_of(s, *ret_to);
	return true;
}

/* ---- how much ---- */

/* The partitions that are yet to move. A slot of keys with one copy counts once; a slot of keys with two
 * copies counts once for each copy. A swap of primary and secondary counts as no move. */
struct to_go {
	/* number of slots of keys with one copy that are to move away from each disk */
	uint64_t homes[STORE_DISKS_MAX];
	/* number of copies that are to move away from each disk, in slots of keys with two copies */
	uint64_t pairs[STORE_DISKS_MAX];
	/* number of copies that filling disks will receive, in slots of keys with two copies */
	uint64_t come;
	uint64_t nr; /* sum of homes, pairs and come, over all disks */
};

static uint64_t
lacks(int want, int has)
{
	return want > has ? (uint64_t)(want - has) : 0;
}

static void
count_pairs(const struct disk_table *t, const uint64_t size[STORE_DISKS_MAX], struct to_go *g)
{
	int want[STORE_DISKS_MAX], firsts[STORE_DISKS_MAX] = { 0 }, seconds[STORE_DISKS_MAX] = { 0 };

	table_shares(t->members & ~t->draining, size, want);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (t->second[i] == TABLE_NO_DISK)
			continue;
		check(t->first[i] != t->second[i]);
		firsts[t->first[i]]++;
		seconds[t->second[i]]++;
	}
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (table_has(t->draining, i))
			g->pairs[i] = (uint64_t)(firsts[i] + seconds[i]);
		else if (table_has(t->filling, i))
			g->come += lacks(want[i], firsts[i]) + lacks(want[i], seconds[i]);
		g->nr += g->pairs[i];
	}
	g->nr += g->come;
}

static void
count_to_go(struct set *s, const struct disk_table *t, struct to_go *g)
{
	uint64_t size[STORE_DISKS_MAX];
	uint8_t home[STORE_SLOT_NR];

	memset(g, 0, sizeof *g);
	if (table_gives_up(t))
		return;
	disk_sizes(s, size);
	table_plan(t, size, home);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		g->homes[t->home[i]] += home[i] != t->home[i];
		g->nr += source_of(t, i, home[i]) != home[i];
	}
	if (set_uses_pairs(s))
		count_pairs(t, size, g);
}

void
move_begin_count(struct mover *m, const struct disk_table *t)
{
	struct set *s = m->set;
	uint64_t bytes = 0, all = 0, roles = 0;
	struct to_go g;

	count_to_go(s, t, &g);
	for (int i = 0; i < set_engines(s); i++) {
		uint64_t has, go = g.homes[set_number(s, i)] + g.pairs[set_number(s, i)], used;

		if (!(set_all(s) >> i & 1))
			continue;
		has = (uint64_t)table_roles(t, set_number(s, i));
		/* If no key has two copies, only slots of keys with one copy count, although all slots have a
		 * primary. */
		if (!set_uses_pairs(s))
			has = (uint64_t)table_count(t, set_number(s, i));
		used = disk_used_bytes(s, i);
		all += used;
		roles += has;
		check(go <= has);
		if (go)
			bytes += (uint64_t)((double)used * (double)go / (double)has);
	}
	/* The bytes of the secondary copies to be made are estimated: their share of all copies, times all
	 * bytes of keys with two copies. */
	if (g.come && roles)
		bytes += (uint64_t)((double)all * (double)g.come / (double)roles);
	pthread_mutex_lock(&m->lock);
	m->info.slots_total = g.nr;
	m->info.slots_done = m->info.bytes_done = m->info.keys = 0;
	m->info.bytes_total = bytes;
	m->info.began_ns = clock_ns();
	m->info.draining = m->info.filling = 0;
	for (int i = 0; i < set_units(s); i++) {
		int engine = set_unit(s, i)->engine;
		uint64_t bit = (uint64_t)1 << i;

		if (engine == SET_NOWHERE)
			continue;
		m->info.draining |= table_has(t->draining, set_number(s, engine)) ? bit : 0;
		m->info.filling |= table_has(t->filling, set_number(s, engine)) ? bit : 0;
	}
	pthread_mutex_unlock(&m->lock);
}

void
move_note_progress(struct mover *m, const struct disk_table *t)
{
	struct to_go g;

	if (table_gives_up(t))
		return;
	count_to_go(m->set, t, &g);
	pthread_mutex_lock(&m->lock);
	m->info.slots_total = g.nr > m->info.slots_total ? g.nr : m->info.slots_total;
	m->info.slots_done = m->info.slots_total - g.nr;
	pthread_mutex_unlock(&m->lock);
}

/* ---- room ---- */

/*
 * Estimates the bytes that each disk receives when an engine is drained. Keys with one copy are assumed to be
 * spread evenly over the slots. For keys with two copies the usage of each slot is known; a slot goes to a
 * disk that does not have the other copy.
 */
static void
reckon(const struct set *s, int engine, const struct disk_table *t, uint64_t ret_come[STORE_DISKS_MAX])
{
	struct disk_table end = *t; /* the map at the end of the drain */
	uint64_t size[STORE_DISKS_MAX], used = disk_used_bytes(s, engine), two = 0;
	const struct store_member_ops *ops = set_engine_ops(s, engine);
	int number = set_number(s, engine), homes = table_count(t, number), come[STORE_DISKS_MAX] = { 0 };
	uint8_t home[STORE_SLOT_NR];

	memset(ret_come, 0, STORE_DISKS_MAX * sizeof *ret_come);
	end.draining |= (uint64_t)1 << number;
	disk_sizes(s, size);
	table_plan(&end, size, home);
	move_plan_drain(s, &end);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		struct store_use use = { 0 };
		int to = end.first[i];

		come[home[i]] += t->home[i] == number;
		if (t->second[i] == TABLE_NO_DISK || (t->first[i] != number && t->second[i] != number))
			continue;
		if (to == t->first[i] || to == t->second[i])
			to = end.second[i];
		check(to < STORE_DISKS_MAX);
		ops->two_use(set_engine(s, engine), (unsigned)i, &use);
		two += use.bytes;
		ret_come[to] += use.bytes;
	}
	used -= two < used ? two : used;
	for (int i = 0; homes && i < STORE_DISKS_MAX; i++)
		ret_come[i] += (uint64_t)((double)used * (double)come[i] / homes);
}

int
move_check_room(struct set *s, int engine, char *said, size_t len)
{
	struct disk_table t;
	uint64_t come[STORE_DISKS_MAX];
	int r = 0;

	set_get_table(s, &t);
	reckon(s, engine, &t, come);
	for (int i = 0; r == 0 && i < set_engines(s); i++) {
		struct store_unit_info info;
		char name[DISK_NAME_BYTES];

		if (i == engine || !(set_all(s) >> i & 1))
			continue;
		store_unit_info(set_engine(s, i), 0, &info);
		if (come[set_number(s, i)] > info.free_bytes - info.free_bytes / 20)
			r = refuse(said, len, -ENOSPC,
				   "there is no room: disk %s would get %llu MiB and has %llu MiB left",
				   disk_called(s, disk_unit_of(s, i), name),
				   (unsigned long long)(come[set_number(s, i)] >> 20),
				   (unsigned long long)(info.free_bytes >> 20));
	}
	return r;
}
