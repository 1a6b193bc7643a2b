/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pin table; see pin.h.  Chains of pins by a hash of their id; a stripe is one chain's lock together with
 * its neighbours'.
 *
 * Several pins of one id are several nodes of its chain.  Waiters hang on a list of their own per stripe,
 * which is nearly always empty: only versions that were replaced while somebody read them get there.
 */
#include "extent/index/pin.h"

#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#define STRIPES 64u /* power of two */

struct stripe {
	_Alignas(64) pthread_mutex_t lock;
	struct pin_wait *waiters;
	_Atomic uint64_t nr;
};

struct pin_table {
	struct stripe stripe[STRIPES];
	struct pin **chain;
	uint64_t mask;
};

int
pin_table_new(unsigned expected, struct pin_table **ret_t)
{
	struct pin_table *t = aligned_alloc(64, sizeof *t);
	uint64_t chains = STRIPES;

	if (!t)
		return -ENOMEM;
	while (chains < expected)
		chains *= 2;
	t->mask = chains - 1;
	t->chain = calloc(chains, sizeof(struct pin *));
	if (!t->chain) {
		free(t);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < STRIPES; i++) {
		pthread_mutex_init(&t->stripe[i].lock, NULL);
		t->stripe[i].waiters = NULL;
		atomic_init(&t->stripe[i].nr, 0);
	}
	*ret_t = t;
	return 0;
}

void
pin_table_free(struct pin_table *t)
{
	if (!t)
		return;
	check(pin_nr(t) == 0);
	for (unsigned i = 0; i < STRIPES; i++)
		pthread_mutex_destroy(&t->stripe[i].lock);
	free(t->chain);
	free(t);
}

/* Versions count up; multiplying spreads neighbours over the stripes, too. */
static uint64_t
chain_of(const struct pin_table *t, uint64_t id)
{
	return (id * 0x9e3779b97f4a7c15ull >> 20) & t->mask;
}

static struct stripe *
stripe_of(struct pin_table *t, uint64_t chain)
{
	return &t->stripe[chain & (STRIPES - 1)];
}

static bool
find(const struct pin_table *t, uint64_t chain, uint64_t id)
{
	for (const struct pin *p = t->chain[chain]; p; p = p->next) {
		if (p->id == id)
			return true;
	}
	return false;
}

static void
count(struct stripe *s, uint64_t change)
{
	/* Written under the lock; atomic for pin_nr(). */
	atomic_store_explicit(&s->nr, atomic_load_explicit(&s->nr, memory_order_relaxed) + change,
			      memory_order_relaxed);
}

void
pin_add(struct pin_table *t, struct pin *pin, uint64_t id)
{
	uint64_t chain = chain_of(t, id);
	struct stripe *s = stripe_of(t, chain);

	pthread_mutex_lock(&s->lock);
	check(!pin->link);
	pin->id = id;
	pin->next = t->chain[chain];
	pin->link = &t->chain[chain];
	if (pin->next)
		pin->next->link = &pin->next;
	t->chain[chain] = pin;
	count(s, 1);
	pthread_mutex_unlock(&s->lock);
}

/* Takes the waiters of id out of the stripe's list, in the order in which they came. */
static struct pin_wait *
take_waiters(struct stripe *s, uint64_t id)
{
	struct pin_wait *taken = NULL;

	for (struct pin_wait **link = &s->waiters, *w; (w = *link);) {
		if (w->id != id) {
			link = &w->next;
			continue;
		}
		*link = w->next;
		w->next = taken;
		taken = w;
	}
	return taken;
}

void
pin_drop(struct pin_table *t, struct pin *pin)
{
	struct pin_wait *ready = NULL;
	uint64_t chain = chain_of(t, pin->id);
	struct stripe *s = stripe_of(t, chain);

	/* Only under the lock: neighbours in the chain write our link. */
	pthread_mutex_lock(&s->lock);
	if (!pin->link) {
		pthread_mutex_unlock(&s->lock);
		return;
	}
	*pin->link = pin->next;
	if (pin->next)
		pin->next->link = pin->link;
	pin->next = NULL;
	pin->link = NULL;
	count(s, (uint64_t)-1);
	if (s->waiters && !find(t, chain, pin->id))
		ready = take_waiters(s, pin->id);
	pthread_mutex_unlock(&s->lock);
	while (ready) {
		struct pin_wait *w = ready;

		ready = w->next;
		w->fn(w);
	}
}

bool
pin_wait_free(struct pin_table *t, struct pin_wait *w, uint64_t id, void (*fn)(struct pin_wait *w))
{
	uint64_t chain = chain_of(t, id);
	struct stripe *s = stripe_of(t, chain);
	bool found;

	w->id = id;
	w->fn = fn;
	pthread_mutex_lock(&s->lock);
	found = find(t, chain, id);
	if (found) {
		w->next = s->waiters;
		s->waiters = w;
	}
	pthread_mutex_unlock(&s->lock);
	return !found;
}

uint64_t
pin_nr(struct pin_table *t)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < STRIPES; i++)
		n += atomic_load_explicit(&t->stripe[i].nr, memory_order_relaxed);
	return n;
}
