/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the members of the set: formats and opens a new disk and makes it a member, and removes a drained disk from
 * the placement map; see rebalance.h. */
#include "set/disk_names.h"
#include "set/mover.h"

#include "model/quota.h"
#include "base/advice.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/refuse.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- a disk that joins ---- */

/* Returns a number for a new disk. Within one start no number is given to two disks, so data that was written
 * with a number since the start refers to one disk. */
static int
free_number(struct mover *m)
{
	uint64_t taken;

	set_get_table(m->set, &m->next);
	taken = m->next.members;
	for (int i = 0; i < set_engines(m->set); i++)
		taken |= (uint64_t)1 << set_number(m->set, i);
	return taken == UINT64_MAX ? -1 : __builtin_ctzll(~taken);
}

/* Fills in a map with this disk as the only member, with a version below those of all maps in use. */
static void
table_before(struct disk_table *t, int number, const uint8_t uuid[UUID_BYTES])
{
	memset(t, 0, sizeof *t);
	t->version = 1;
	t->members = t->in = (uint64_t)1 << number;
	memcpy(t->uuid[number], uuid, UUID_BYTES);
	memset(t->home, number, sizeof t->home);
	memset(t->first, number, sizeof t->first);
	memset(t->second, TABLE_NO_DISK, sizeof t->second);
}

static int
make_disk(struct mover *m, struct store_conf *c, int number, uint8_t uuid[UUID_BYTES])
{
	struct set *s = m->set;
	struct store_birth *birth = calloc(1, sizeof *birth);
	int r = birth ? 0 : -ENOMEM;

	if (r == 0 && getrandom(uuid, UUID_BYTES, 0) != UUID_BYTES)
		r = -EIO;
	if (r == 0) {
		memcpy(birth->store_uuid, set_store_uuid(s), UUID_BYTES);
		birth->number = number;
		table_before(&birth->table, number, uuid);
		c->disks.birth = birth;
		r = store_format(c, m->force, m->said, sizeof m->said);
		c->disks.birth = NULL;
	}
	free(birth);
	return r;
}

static int
open_disk(struct mover *m, struct store_conf *c, struct store **ret_store)
{
	const struct store_member_ops *ops = m->set->conf.disks.engine->member;
	static const struct store_slots none;
	struct set *s = m->set;
	struct store_member id;
	uint64_t start_no, total = 0;
	struct store *st = NULL;
	int r = ops->open(c, &st, &id, m->said, sizeof m->said);

	if (r < 0)
		return r;
	for (int i = 0; i < set_engines(s); i++) {
		struct store_unit_info info;

		store_unit_info(set_engine(s, i), 0, &info);
		total += info.size_bytes;
	}
	m->said[0] = 0;
	/* The index of the new disk uses memory in addition to the limit of the other engines. The next start
	 * divides the limit among all engines again. */
	m->index_bytes = set_share_of(s->conf.disks.index_bytes, id.size_bytes, total + id.size_bytes);
	r = ops->recover(st, &none, m->index_bytes, s->base.quotas, set_engines(s), &start_no, m->said,
			 sizeof m->said);
	if (r == 0 && start_no > set_start_no(s))
		r = refuse(m->said, sizeof m->said, -EINVAL,
			   "%s: the disk has seen later starts than this one", m->path);
	if (r == 0)
		r = ops->begin(st, set_start_no(s), false, m->said, sizeof m->said);
	if (r == 0)
		r = ops->serve(st, m->said, sizeof m->said);
	if (r < 0)
		store_stop(st);
	else
		*ret_store = st;
	return r;
}

/*
 * Adds the engine to the set, and waits until every port has attached to it. The engine remains until the set
 * ends, even if its disk does not become a member.
 */
static int
attach_all(struct mover *m, struct store *st, int number)
{
	struct set *s = m->set;
	int r;

	set_add_engine(s, st, number);
	r = move_visit(m);
	if (r < 0)
		return refuse(m->said, sizeof m->said, r, "not every core could use %s: %s", m->path,
			      strerror(-r));
	return 0;
}

static int
align(struct mover *m, int engine)
{
	struct set *s = m->set;
	struct store *pair[2] = { set_engine(s, set_head(s)), set_engine(s, engine) };

	return set_align_buckets(pair, 2, m->said, sizeof m->said);
}

/* Makes the disk a member: aligns its buckets, and writes the map with the disk. The caller holds the map
 * change lock, so no bucket changes during the call. */
static int
enter(struct mover *m, int engine, const uint8_t uuid[UUID_BYTES])
{
	struct set *s = m->set;
	uint64_t bit = (uint64_t)1 << engine;
	char name[DISK_NAME_BYTES];
	int r = align(m, engine);

	if (r < 0)
		return r;
	table_add(&m->next, set_number(s, engine), uuid);
	r = move_change_table(m, set_all(s) | bit, bit);
	if (r < 0)
		return refuse(m->said, sizeof m->said, r, "a disk failed while %s was added", m->path);
	set_add_unit(s, engine, uuid);
	log_note("disk %s is a member of the store now", disk_called(s, set_units(s) - 1, name));
	return 0;
}

int
move_add(struct mover *m)
{
	struct set *s = m->set;
	struct store_disk_conf disk = { .path = m->path, .size_bytes = m->size_bytes };
	struct store_conf c = s->conf;
	uint8_t uuid[UUID_BYTES];
	struct store *st;
	int engine = set_engines(s), number = free_number(m), r;

	if (number < 0)
		return refuse(m->said, sizeof m->said, -EAGAIN, "a disk can be added after a restart");
	c.ops = c.disks.engine;
	c.disks.disk = &disk;
	c.disks.nr = 1;
	c.disks.beside = engine;
	c.disks.index_bytes /= (uint64_t)engine + 1;
	r = quota_book_grow(s->base.quotas, engine + 1);
	if (r == 0)
		r = make_disk(m, &c, number, uuid);
	if (r == 0)
		r = open_disk(m, &c, &st);
	if (r == 0)
		r = attach_all(m, st, number);
	/* Most buckets are copied here, before the map change lock is taken: the lock is then held only
	 * briefly. An error, for example because a bucket was just removed, is ignored here: enter() aligns
	 * the buckets again. */
	if (r == 0 && align(m, engine) < 0)
		m->said[0] = 0;
	if (r == 0 && m->joins)
		m->joins(m->joins_cookie, uuid);
	if (r == 0)
		r = move_take_turn(m);
	if (r < 0)
		return r;
	r = disks_all_serve(s) ? enter(m, engine, uuid)
			       : refuse(m->said, sizeof m->said, -EROFS, "a disk of the store has failed");
	move_give_turn(m);
	return r;
}

/* ---- a disk that leaves ---- */

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
		return refuse(m->said, sizeof m->said, -EROFS,
			      "a disk is missing or has failed: members change only when all others serve");
	for (int i = 0; r == 0 && i < set_engines(s); i++)
		r = set_all(s) >> i & 1 ? set_find_two(set_engine(s, i), name) : 0;
	if (r < 0)
		return refuse(m->said, sizeof m->said, r, "cannot list buckets: %s", strerror(-r));
	if (r > 0) {
		refuse(m->said, sizeof m->said, -EPERM,
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

/* Writes m->next, which does not contain the disk, to the disk's own superblock. The wait is limited, because
 * the disk may hang. */
static void
tell_it(struct mover *m, int engine)
{
	uint64_t until = clock_ns() + 10 * NS_PER_S;

	set_write_left(m->set, engine, &m->next);
	while (!set_left_is_written(m->set, engine) && clock_ns() < until)
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
