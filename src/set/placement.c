/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the copy of the placement map that requests consult; see placement.h. */
#include "set/set_int.h"

#include "base/check.h"

/* ---- partitions ---- */

int
set_replica_at(const struct set *s, unsigned place, enum set_role role)
{
	check(place < STORE_PLACE_NR);
	return atomic_load(&s->placement.replica[place][role]);
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
	check(place < STORE_PLACE_NR);
	check(engine == SET_NOWHERE ||
	      (engine >= 0 && engine < set_engines(s) && (role == SET_PRIMARY || place >= STORE_SLOT_NR)));
	atomic_store(&s->placement.replica[place][role], (uint8_t)engine);
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
	atomic_fetch_add(&s->placement.relocations, 1);
}

_Atomic uint64_t *
set_relocations(struct set *s)
{
	return &s->placement.relocations;
}

void
set_note_leaving(struct set *s, int engine, bool leaves)
{
	check(engine == SET_NOWHERE || (engine >= 0 && engine < set_engines(s)));
	if (leaves)
		atomic_fetch_or(&s->placement.leaving, (uint64_t)1 << engine);
	else
		atomic_fetch_and(&s->placement.leaving, ~((uint64_t)1 << engine));
	set_note_relocation(s);
}

bool
set_is_leaving(const struct set *s, int engine)
{
	return atomic_load(&s->placement.leaving) >> engine & 1;
}

void
set_note_moving(struct set *s, bool moves)
{
	check(atomic_load(&s->placement.is_moving) != moves);
	atomic_store(&s->placement.is_moving, moves);
}

bool
set_is_moving(const struct set *s)
{
	return atomic_load(&s->placement.is_moving);
}

/* ---- engines in service ---- */

uint64_t
set_all(const struct set *s)
{
	return atomic_load(&s->placement.all);
}

uint64_t
set_in(const struct set *s)
{
	return atomic_load(&s->placement.in);
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
	return atomic_load(&s->placement.is_read_only);
}

int
set_head(const struct set *s)
{
	return atomic_load(&s->placement.head);
}

void
set_publish_in(struct set *s, uint64_t all, uint64_t in)
{
	struct set_placement *pl = &s->placement;

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
	atomic_store(&s->placement.is_read_only, true);
}

void
set_publish_head(struct set *s, int engine)
{
	check(engine >= 0 && engine < set_engines(s));
	atomic_store(&s->placement.head, engine);
}
