/* SPDX-License-Identifier: Apache-2.0 */
/* Removes a drained disk from the placement map; see rebalance.h. */
#include "set/disk_names.h"
#include "set/mover.h"

#include "base/advice.h"
#include "base/check.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns true if two disks that are not draining remain; keys with two copies need two disks. */
static bool
leaves_pairs(struct set *s, const struct disk_table *t, uint64_t draining)
{
	return !set_uses_pairs(s) || !(draining & ~t->draining) ||
	       __builtin_popcountll(t->members & ~draining) > 1;
}

/*
 * Removes all secondaries from m->next, a map that will have one disk. The first bucket with two copies that is made
 * later assigns secondaries again. The caller holds the map change lock, so no bucket is made during the
 * call. Returns 0; -EPERM if any disk has a bucket with two copies; or another -errno. A disk may have such a
 * bucket alone, after an incomplete removal; the bucket counts, because this disk may be the only one at the
 * next start.
 */
static int
drop_pairs(struct mover *m)
{
	struct set *s = m->set;
	char name[STORE_BUCKET_MAX + 1];
	int r = 0;

	check(set_uses_pairs(s));
	if (!disks_all_serve(s))
		return disk_say(m->said, sizeof m->said, -EROFS,
				"a disk is missing or has failed: members change only when all others serve");
	for (int i = 0; r == 0 && i < set_engines(s); i++)
		r = set_all(s) >> i & 1 ? set_find_two(set_engine(s, i), name) : 0;
	if (r < 0)
		return disk_say(m->said, sizeof m->said, r, "cannot list buckets: %s", strerror(-r));
	if (r > 0) {
		disk_say(m->said, sizeof m->said, -EPERM,
			 "bucket %s has two copies of each object, which need two disks", name);
		advice_add(m->said, sizeof m->said, ADVICE_TWO_DISKS_NEEDED,
			   &(struct advice_values){ .path = name });
		return -EPERM;
	}
	memset(m->next.second, TABLE_NO_DISK, sizeof m->next.second);
	memset(m->next.full, 0, sizeof m->next.full);
	return 0;
}

int
move_set_bits(struct mover *m, uint64_t draining, uint64_t filling)
{
	struct disk_table *next = &m->next;
	int r = move_take_turn(m);
	bool drops;

	if (r < 0)
		return r;
	check(!((draining | filling) & ~next->members));
	/* A disk with both bits (draining and filling) remains, because its drain was cancelled. */
	drops = !(draining & filling) && !leaves_pairs(m->set, next, draining);
	if (drops)
		r = drop_pairs(m);
	if (r == 0) {
		next->draining = draining;
		next->filling = filling;
		r = move_change_table(m, set_all(m->set), 0);
	}
	if (r == 0 && drops)
		set_end_pairs(m->set);
	move_give_turn(m);
	return r;
}

/* ---- the disk ---- */

/* Writes m->next, which does not contain the disk, to the disk's own superblock. The wait is limited, because
 * the disk may hang. */
static void
tell_it(struct mover *m, int engine)
{
	uint64_t until = clock_ns() + 10 * NS_PER_S;

	set_tell_left(m->set, engine, &m->next);
	while (!set_left_is_told(m->set, engine) && clock_ns() < until)
		move_turn(m);
}

int
move_leave(struct mover *m, int engine)
{
	struct set *s = m->set;
	int number = set_number(s, engine), unit = disk_unit_of(s, engine), r = move_take_turn(m);
	uint64_t stay = set_all(s) & ~((uint64_t)1 << engine);
	char name[DISK_NAME_BYTES];

	if (r < 0)
		return r;
	if (!disks_all_serve(s)) {
		r = -EBUSY;
	} else if (table_roles(&m->next, number)) {
		/* The disk has slots again: either the first bucket with two copies was made during the
		 * drain, or another disk failed and this disk became a primary. */
		r = -EINTR;
	} else {
		table_remove(&m->next, number);
		check(m->next.members);
		/* The disk leaves only if every remaining disk accepts the map. Otherwise the disks without
		 * the new map, together with this disk, could be enough for a start (M35). */
		r = move_change_table(m, stay, stay);
	}
	if (r == 0) {
		set_note_drained(s, unit);
		set_get_table(s, &m->next);
	}
	move_give_turn(m);
	if (r < 0)
		return r;
	tell_it(m, engine);
	log_note("disk %s is drained, and no member of the store any more", disk_called(s, unit, name));
	return 0;
}
