/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the list of disks of a set; see members.h. */
#include "set/set_int.h"

#include "base/check.h"

#include <string.h>

/* ---- life ---- */

void
set_members_begin(struct set *s, const struct set_found *f)
{
	struct set_members *m = &s->members;

	check(m->engine_nr == 0 && s->base.unit_nr == 0);
	check(f->nr > 0 && f->nr <= f->member_nr && f->member_nr <= STORE_SET_MAX);
	check(f->nr + f->missing_nr <= f->member_nr);
	memcpy(m->engine, f->engine, sizeof m->engine);
	memcpy(m->number, f->number, sizeof m->number);
	memcpy(m->unit, f->member, sizeof m->unit);
	memcpy(m->store_uuid, f->store_uuid, UUID_BYTES);
	m->missing_nr = f->missing_nr;
	atomic_store(&m->drained, f->drained);
	atomic_store(&m->engine_nr, f->nr);
	atomic_store(&s->base.unit_nr, f->member_nr);
	atomic_store(&m->serves, true);
}

void
set_members_end(struct set *s)
{
	struct set_members *m = &s->members;

	atomic_store(&m->serves, false);
	for (int i = 0; i < m->engine_nr; i++)
		store_stop(m->engine[i]);
}

/* ---- engines ---- */

int
set_engines(const struct set *s)
{
	return atomic_load(&s->members.engine_nr);
}

struct store *
set_engine(const struct set *s, int engine)
{
	const struct set_members *m = &s->members;

	check(engine >= 0 && engine < atomic_load(&m->engine_nr));
	return m->engine[engine];
}

const struct store_member_ops *
set_engine_ops(const struct set *s, int engine)
{
	return set_engine(s, engine)->ops->member;
}

int
set_number(const struct set *s, int engine)
{
	const struct set_members *m = &s->members;

	check(engine >= 0 && engine < atomic_load(&m->engine_nr));
	return m->number[engine];
}

void
set_add_engine(struct set *s, struct store *engine, int number)
{
	struct set_members *m = &s->members;
	int at;

	check(engine && number >= 0 && number < STORE_DISKS_MAX);
	pthread_mutex_lock(&m->lock);
	at = atomic_load(&m->engine_nr);
	check(at < STORE_SET_MAX);
	for (int i = 0; i < at; i++)
		check(m->number[i] != number);
	m->engine[at] = engine;
	m->number[at] = (uint8_t)number;
	atomic_store(&m->engine_nr, at + 1);
	pthread_mutex_unlock(&m->lock);
}

bool
set_has_failed(const struct set *s, int engine)
{
	const struct store *e = set_engine(s, engine);

	return atomic_load(&s->members.serves) && e->ops->member->has_failed(e);
}

/* ---- units ---- */

int
set_units(const struct set *s)
{
	return atomic_load(&s->base.unit_nr);
}

const struct set_member *
set_unit(const struct set *s, int unit)
{
	const struct set_members *m = &s->members;

	check(unit >= 0 && unit < atomic_load(&s->base.unit_nr));
	return &m->unit[unit];
}

void
set_add_unit(struct set *s, int engine, const uint8_t *uuid)
{
	struct set_members *m = &s->members;
	int at;

	check(engine >= 0 && engine < set_engines(s));
	pthread_mutex_lock(&m->lock);
	at = atomic_load(&s->base.unit_nr);
	check(at < STORE_SET_MAX);
	for (int i = 0; i < at; i++)
		check(m->unit[i].engine != engine);
	m->unit[at].engine = (uint8_t)engine;
	m->unit[at].number = m->number[engine];
	uuid_write(m->unit[at].uuid, uuid);
	atomic_store(&s->base.unit_nr, at + 1);
	pthread_mutex_unlock(&m->lock);
}

bool
set_is_drained(const struct set *s, int unit)
{
	check(unit >= 0 && unit < set_units(s));
	return atomic_load(&s->members.drained) >> unit & 1;
}

void
set_note_drained(struct set *s, int unit)
{
	check(!set_is_drained(s, unit));
	atomic_fetch_or(&s->members.drained, (uint64_t)1 << unit);
}

const uint8_t *
set_store_uuid(const struct set *s)
{
	return s->members.store_uuid;
}

int
set_disks(const struct set *s)
{
	return set_units(s) - __builtin_popcountll(atomic_load(&s->members.drained));
}

bool
set_misses_some(const struct set *s)
{
	return s->members.missing_nr > 0;
}
