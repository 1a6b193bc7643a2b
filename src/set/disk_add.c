/* SPDX-License-Identifier: Apache-2.0 */
/* Formats a new disk, opens it, and makes it a member of the set; see rebalance.h. */
#include "set/disk_names.h"
#include "set/mover.h"

#include "model/quota.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

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
		memcpy(birth->store_uuid, s->members.store_uuid, UUID_BYTES);
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

		disk_look(s, i, &info);
		total += info.size_bytes;
	}
	m->said[0] = 0;
	/* The index of the new disk uses memory in addition to the limit of the other engines. The next start
	 * divides the limit among all engines again. */
	m->index_bytes = set_share_of(s->conf.disks.index_bytes, id.size_bytes, total + id.size_bytes);
	r = ops->recover(st, &none, m->index_bytes, s->quotas, set_engines(s), &start_no, m->said,
			 sizeof m->said);
	if (r == 0 && start_no > s->map.start_no)
		r = disk_say(m->said, sizeof m->said, -EINVAL,
			     "%s: the disk has seen later starts than this one", m->path);
	if (r == 0)
		r = ops->begin(st, s->map.start_no, false, m->said, sizeof m->said);
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
		return disk_say(m->said, sizeof m->said, r, "not every core could use %s: %s", m->path,
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
		return disk_say(m->said, sizeof m->said, r, "a disk failed while %s was added", m->path);
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
		return disk_say(m->said, sizeof m->said, -EAGAIN, "a disk can be added after a restart");
	c.ops = c.disks.engine;
	c.disks.disk = &disk;
	c.disks.nr = 1;
	c.disks.beside = engine;
	c.disks.index_bytes /= (uint64_t)engine + 1;
	r = quota_book_grow(s->quotas, engine + 1);
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
			       : disk_say(m->said, sizeof m->said, -EROFS, "a disk of the store has failed");
	move_give_turn(m);
	return r;
}
