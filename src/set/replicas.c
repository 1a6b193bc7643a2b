/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the state of keys with two copies; see replicas.h. */
#include "set/set_int.h"

#include "base/check.h"
#include "base/run_clock.h"

#include <string.h>

void
set_replicas_begin(struct set *s, const struct disk_table *t, const uint8_t engine[STORE_DISKS_MAX],
		   bool is_used)
{
	check(!set_uses_pairs(s));
	atomic_store(&s->replicas.is_used, is_used);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		uint8_t second = t->second[i] == TABLE_NO_DISK ? SET_NOWHERE : engine[t->second[i]];
		bool is_full = table_is_full(t, i);

		set_assign(s, (unsigned)(STORE_SLOT_NR + i), SET_PRIMARY, engine[t->first[i]]);
		set_assign(s, table_place((unsigned)i, true), SET_SECONDARY, is_full ? second : SET_NOWHERE);
	}
	set_note_away(s, t);
}

/* ---- buckets with two copies ---- */

bool
set_uses_pairs(const struct set *s)
{
	return atomic_load(&s->replicas.is_used);
}

bool
set_has_pairs(const struct set *s)
{
	const struct set_replicas *r = &s->replicas;

	return atomic_load(&r->is_used) && atomic_load(&r->paired) == atomic_load(&r->paired_kept);
}

void
set_begin_pairs(struct set *s)
{
	struct set_replicas *r = &s->replicas;

	if (!atomic_load(&r->is_used))
		atomic_fetch_add(&r->paired, 1);
	atomic_store(&r->is_used, true);
}

void
set_note_pairs_answer(struct set *s)
{
	atomic_store(&s->replicas.paired_kept, atomic_load(&s->replicas.paired));
}

void
set_end_pairs(struct set *s)
{
	check(set_uses_pairs(s));
	for (int i = 0; i < STORE_SLOT_NR; i++)
		set_assign(s, table_place((unsigned)i, true), SET_SECONDARY, SET_NOWHERE);
	atomic_store(&s->replicas.is_used, false);
}

bool
set_bucket_has_two(struct store_port *sp, const char *bucket, size_t len)
{
	struct store_stat st = { .copies = 0 };

	return set_uses_pairs(set_port(sp)->set) && store_bucket_head(sp, bucket, len, &st) > 0 &&
	       st.copies == 2;
}

bool
set_has_two(struct store_port *sp, const struct store_key *k, struct store_key *ret_key)
{
	bool has_two = set_bucket_has_two(sp, k->bucket, k->bucket_len);

	*ret_key = *k;
	ret_key->copies = has_two ? 2 : 1;
	return has_two;
}

/* ---- keys, disks, counts ---- */

struct set_holds *
set_key_locks(struct set *s)
{
	return &s->replicas.locks;
}

void
set_begin_doubt(struct set *s, unsigned slot)
{
	check(slot < STORE_SLOT_NR);
	atomic_fetch_add(&s->replicas.in_doubt[slot], 1);
}

void
set_end_doubt(struct set *s, unsigned slot)
{
	uint32_t before;

	check(slot < STORE_SLOT_NR);
	before = atomic_fetch_sub(&s->replicas.in_doubt[slot], 1);
	check(before);
}

unsigned
set_in_doubt(const struct set *s, unsigned slot)
{
	check(slot < STORE_SLOT_NR);
	return atomic_load(&s->replicas.in_doubt[slot]);
}

void
set_note_away(struct set *s, const struct disk_table *t)
{
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		_Atomic uint64_t *since = &s->replicas.away_since_ns[i];
		bool is_away = table_has(t->members & ~t->in, i);

		if (!is_away)
			atomic_store(since, 0);
		else if (!atomic_load(since))
			atomic_store(since, run_ns());
	}
}

uint64_t
set_away_ns(const struct set *s, int number)
{
	uint64_t since, now = run_ns();

	check(number >= 0 && number < STORE_DISKS_MAX);
	since = atomic_load(&s->replicas.away_since_ns[number]);
	return !since ? 0 : now > since ? now - since : 1;
}

void
set_miss(struct set *s, unsigned place)
{
	struct set_replicas *r = &s->replicas;

	check(place >= STORE_SLOT_NR && place < STORE_PLACE_NR);
	set_count(s, COUNT_MISSED);
	pthread_mutex_lock(&r->lock);
	slots_add(&r->missed, place);
	r->has_missed = true;
	pthread_mutex_unlock(&r->lock);
}

void
set_take_missed(struct set *s, struct store_slots *ret_places)
{
	struct set_replicas *r = &s->replicas;

	pthread_mutex_lock(&r->lock);
	*ret_places = r->missed;
	memset(&r->missed, 0, sizeof r->missed);
	r->has_missed = false;
	pthread_mutex_unlock(&r->lock);
}

bool
set_has_miss(struct set *s)
{
	struct set_replicas *r = &s->replicas;
	bool has;

	pthread_mutex_lock(&r->lock);
	has = r->has_missed;
	pthread_mutex_unlock(&r->lock);
	return has;
}

void
set_count(struct set *s, enum set_counter what)
{
	check(what < COUNT_NR);
	atomic_fetch_add(&s->replicas.count[what], 1);
}

uint64_t
set_counted(const struct set *s, enum set_counter what)
{
	check(what < COUNT_NR);
	return atomic_load(&s->replicas.count[what]);
}
