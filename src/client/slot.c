/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the texts of tokens lie: slots in slabs of a page, which a context keeps until it is closed.  A registration has
 * slots of its own, so that its tokens take one from it and give it back under its own lock; only for a first one it asks
 * the context.  From a text's address its slot is known; whether a slab is there says a table, which is read without a
 * lock.
 */
#include "client/client_int.h"

#include <stdlib.h>
#include <string.h>

#define SLAB ((uintptr_t)4096)
#define SLAB_SLOTS (SLAB / sizeof(struct token_slot))
/* Of tokens that the program has when their registration ends: so many are left alone, to be given back later. */
#define DEAD_MAX 4096

/* Addresses of slabs, open addressing; 0: none.  Full by half at most.  One that was too small stays, for readers. */
struct slabs {
	struct slabs *smaller;
	size_t cap, nr;
	_Atomic uintptr_t at[];
};

static _Atomic uintptr_t *
place_of(struct slabs *t, uintptr_t slab)
{
	size_t i = (size_t)((slab / SLAB) * 0x9e3779b97f4a7c15ull >> 20);

	for (;; i++) {
		_Atomic uintptr_t *at = &t->at[i & (t->cap - 1)];
		uintptr_t have = *at;

		if (!have || have == slab)
			return at;
	}
}

struct token_slot *
slot_of(struct gantry *g, const char *text)
{
	uintptr_t at = (uintptr_t)text - offsetof(struct token_slot, text), slab = at & ~(SLAB - 1);
	struct slabs *t = g->slabs;

	if (!t || at % sizeof(struct token_slot) || *place_of(t, slab) != slab)
		return NULL;
	return (struct token_slot *)at;
}

/* Has room for one more.  Locked. */
static bool
has_place(struct gantry *g)
{
	struct slabs *old = g->slabs, *t;
	size_t cap = old ? 2 * old->cap : 64;

	if (old && 2 * old->nr < old->cap)
		return true;
	t = calloc(1, sizeof *t + cap * sizeof *t->at);
	if (!t)
		return false;
	t->cap = cap;
	t->smaller = old;
	for (size_t i = 0; old && i < old->cap; i++) {
		uintptr_t slab = old->at[i];

		if (slab)
			*place_of(t, slab) = slab;
	}
	t->nr = old ? old->nr : 0;
	g->slabs = t;
	return true;
}

/* Locked. */
static void
push_free(struct gantry *g, struct token_slot *s)
{
	s->region = NULL;
	s->conn = NULL;
	s->state = SLOT_FREE;
	s->next = g->free_slots;
	g->free_slots = s;
}

/* Makes a slab.  Locked. */
static void
new_slab(struct gantry *g)
{
	struct token_slot *s = has_place(g) ? aligned_alloc(SLAB, SLAB) : NULL;
	struct slabs *t = g->slabs;

	if (!s)
		return;
	memset(s, 0, SLAB);
	for (size_t i = 0; i < SLAB_SLOTS; i++)
		push_free(g, &s[i]);
	*place_of(t, (uintptr_t)s) = (uintptr_t)s;
	t->nr++;
}

/* Takes one of the context's. */
static struct token_slot *
take_free(struct gantry *g)
{
	struct token_slot *s;

	pthread_mutex_lock(&g->lock);
	if (!g->free_slots)
		new_slab(g);
	s = g->free_slots;
	if (s)
		g->free_slots = s->next;
	pthread_mutex_unlock(&g->lock);
	return s;
}

struct token_slot *
slot_take(struct gantry *g, struct region *r)
{
	struct token_slot *s;

	pthread_mutex_lock(&r->lock);
	s = r->free;
	if (s)
		r->free = s->next;
	else
		s = take_free(g);
	if (s) {
		s->region = r;
		s->state = SLOT_OUT;
		s->prev = NULL;
		s->next = r->out;
		if (r->out)
			r->out->prev = s;
		r->out = s;
	}
	pthread_mutex_unlock(&r->lock);
	return s;
}

/* Locked: the region. */
static void
unlink_out(struct region *r, struct token_slot *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		r->out = s->next;
	if (s->next)
		s->next->prev = s->prev;
}

/* Locked: the region. */
static void
free_of_region(struct region *r, struct token_slot *s)
{
	s->state = SLOT_FREE;
	s->next = r->free;
	r->free = s;
}

bool
slot_give(struct gantry *g, struct token_slot *s)
{
	struct region *r = s->region;
	bool is_out;

	pthread_mutex_t *lock = r ? &r->lock : &g->lock;

	pthread_mutex_lock(lock);
	is_out = s->region == r && s->state == (r ? SLOT_OUT : SLOT_DEAD);
	if (is_out && r) {
		unlink_out(r, s);
		free_of_region(r, s);
	} else if (is_out) {
		/* It goes on when its turn comes. */
		s->state = SLOT_FREE;
	}
	pthread_mutex_unlock(lock);
	return is_out;
}

void
slot_give_late(struct region *r, struct token_slot *s)
{
	struct token_slot *oldest = s;

	pthread_mutex_lock(&r->lock);
	unlink_out(r, s);
	s->state = SLOT_FREE;
	if (!r->recent)
		r->recent = calloc(REGION_TEXTS, sizeof *r->recent);
	if (r->recent) {
		struct token_slot **at = &r->recent[r->recent_at++ % REGION_TEXTS];

		oldest = *at;
		*at = s;
	}
	if (oldest)
		free_of_region(r, oldest);
	pthread_mutex_unlock(&r->lock);
}

void
slots_release(struct gantry *g, struct region *r)
{
	struct token_slot *s;

	pthread_mutex_lock(&g->lock);
	while ((s = r->free)) {
		r->free = s->next;
		push_free(g, s);
	}
	for (int i = 0; r->recent && i < REGION_TEXTS; i++) {
		if (r->recent[i])
			push_free(g, r->recent[i]);
	}
	free(r->recent);
	r->recent = NULL;
	while ((s = r->out)) {
		r->out = s->next;
		s->region = NULL;
		s->state = SLOT_DEAD;
		s->next = NULL;
		if (g->dead)
			g->dead_last->next = s;
		else
			g->dead = s;
		g->dead_last = s;
		g->dead_nr++;
	}
	while (g->dead_nr > DEAD_MAX) {
		s = g->dead;
		g->dead = s->next;
		g->dead_nr--;
		push_free(g, s);
	}
	pthread_mutex_unlock(&g->lock);
}

void
slots_close(struct gantry *g)
{
	struct slabs *t = g->slabs;

	for (size_t i = 0; t && i < t->cap; i++)
		free((void *)t->at[i]);
	while (t) {
		struct slabs *smaller = t->smaller;

		free(t);
		t = smaller;
	}
	g->slabs = NULL;
}
