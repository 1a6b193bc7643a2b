/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the copy of the placement map that requests consult; see placement.h. */
#include "set/placement.h"

#include "set/set_int.h"
#include "base/check.h"

#include <errno.h>
#include <stdlib.h>

struct set_placement {
	/* engines of each partition, by role; partitions of keys with one copy have no secondary */
	_Atomic uint8_t replica[SET_PLACES][SET_ROLES];
	/* counter that is incremented at the beginning and at the end of each move of partitions between
	 * engines; odd: a move is in progress */
	_Atomic uint64_t relocations;
	_Atomic bool is_moving;   /* true: partitions may change their engine */
	_Atomic uint64_t leaving; /* bitmap of engines that partitions leave at the moment */
	_Atomic uint64_t all, in; /* bitmaps of engines: members, and engines in service */
	_Atomic int head;         /* engine of the metadata leader */
	_Atomic bool is_read_only;
};

int
set_placement_new(struct set_placement **ret_placement)
{
	struct set_placement *pl = calloc(1, sizeof *pl);

	if (!pl)
		return -ENOMEM;
	for (int i = 0; i < SET_PLACES; i++)
		atomic_store(&pl->replica[i][SET_SECONDARY], SET_NOWHERE);
	*ret_placement = pl;
	return 0;
}

void
set_placement_free(struct set_placement *pl)
{
	free(pl);
}

/* ---- partitions ---- */

int
set_replica_at(const struct set *s, unsigned place, enum set_role role)
{
	check(place < SET_PLACES);
	return atomic_load(&s->placement->replica[place][role]);
}

int
set_primary(const struct set *s, const struct store_key *k)
{
	return set_units(s) == 1 ? 0 : set_primary_at(s, store_place(k));
}

int
set_secondary(const struct set *s, const struct store_key *k)
{
	return store_has_two(k) ? set_secondary_at(s, store_place(k)) : SET_NOWHERE;
}

void
set_assign(struct set *s, unsigned place, enum set_role role, int engine)
{
	check(place < SET_PLACES);
	check(engine == SET_NOWHERE ||
	      (engine >= 0 && engine < set_engines(s) && (role == SET_PRIMARY || place >= SET_SLOTS)));
	atomic_store(&s->placement->replica[place][role], (uint8_t)engine);
}

bool
set_misses_places(const struct set *s)
{
	for (unsigned i = STORE_SLOT_NR; set_misses_some(s) && i < STORE_PLACE_NR; i++) {
		if (set_primary_at(s, i) == SET_NOWHERE)
			return true;
	}
	return false;
}

void
set_note_relocation(struct set *s)
{
	atomic_fetch_add(&s->placement->relocations, 1);
}

_Atomic uint64_t *
set_relocations(const struct set *s)
{
	return &s->placement->relocations;
}

void
set_note_leaving(struct set *s, int engine, bool leaves)
{
	check(engine == SET_NOWHERE || (engine >= 0 && engine < set_engines(s)));
	if (leaves)
		atomic_fetch_or(&s->placement->leaving, (uint64_t)1 << engine);
	else
		atomic_fetch_and(&s->placement->leaving, ~((uint64_t)1 << engine));
	set_note_relocation(s);
}

bool
set_is_leaving(const struct set *s, int engine)
{
	return atomic_load(&s->placement->leaving) >> engine & 1;
}

void
set_note_moving(struct set *s, bool moves)
{
	check(atomic_load(&s->placement->is_moving) != moves);
	atomic_store(&s->placement->is_moving, moves);
}

bool
set_is_moving(const struct set *s)
{
	return atomic_load(&s->placement->is_moving);
}

/* ---- engines in service ---- */

uint64_t
set_all(const struct set *s)
{
	return atomic_load(&s->placement->all);
}

uint64_t
set_in(const struct set *s)
{
	return atomic_load(&s->placement->in);
}

bool
set_is_in(const struct set *s, int engine)
{
	check(engine >= 0 && engine < STORE_SET_MAX);
	return set_in(s) >> engine & 1;
}

bool
set_is_read_only(const struct set *s)
{
	return atomic_load(&s->placement->is_read_only);
}

int
set_head(const struct set *s)
{
	return atomic_load(&s->placement->head);
}

void
set_publish_in(struct set *s, uint64_t all, uint64_t in)
{
	struct set_placement *pl = s->placement;

	/* Every engine in service is a member. */
	check(in && !(in & ~all));
	/* M9: a map with fewer than half of the members in service never becomes effective. */
	check(!set_is_read_only(s));
	atomic_store(&pl->all, all);
	atomic_store(&pl->in, in);
}

void
set_publish_read_only(struct set *s)
{
	check(!set_is_read_only(s));
	atomic_store(&s->placement->is_read_only, true);
}

void
set_publish_head(struct set *s, int engine)
{
	check(engine >= 0 && engine < set_engines(s));
	atomic_store(&s->placement->head, engine);
}
