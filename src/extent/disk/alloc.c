/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extent allocator; see alloc.h. Each segment has a bitmap (alloc_bits.h), allocated when the segment is
 * added, so that no later call allocates memory. `longest` bounds the longest free range of a segment: it is
 * exact after a search that failed, and every free raises it again. A search for space begins where the
 * previous search ended, continues from segment to segment, and reads the bitmap only where the bound is
 * sufficient.
 */
#include "extent/disk/alloc.h"

#include "extent/disk/alloc_bits.h"
#include "extent/disk/rules.h"
#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SPAN_BITS 24
#define SPAN_MASK ((1u << SPAN_BITS) - 1)

struct alloc {
	pthread_mutex_t lock;
	uint32_t seg_units, run_units;
	uint64_t seg_nr, cursor;
	uint64_t units, free;
	uint64_t held, held_used; /* reserve for snapshots; units that snapshots use */
	struct alloc_run *runs;
	uint32_t run_nr;
	struct {
		/* first unit; masks of the following units: those that the claim has taken, and those
		 * freed since */
		uint64_t unit, taken, freed;
		uint32_t nr; /* number of units; 0: no claim */
	} claim;
	struct segment seg[];
};

int
alloc_new(uint32_t seg_nr, uint32_t seg_units, uint32_t run_units, struct alloc **ret_a)
{
	struct alloc *a = calloc(1, sizeof *a + seg_nr * sizeof a->seg[0]);

	check(seg_nr && seg_units <= SPAN_MASK && run_units && run_units <= seg_units);
	check((uint64_t)seg_nr * seg_units <= (uint64_t)1 << (64 - SPAN_BITS));
	if (!a)
		return -ENOMEM;
	pthread_mutex_init(&a->lock, NULL);
	a->seg_units = seg_units;
	a->run_units = run_units;
	a->seg_nr = seg_nr;
	*ret_a = a;
	return 0;
}

void
alloc_free_all(struct alloc *a)
{
	if (!a)
		return;
	check(!a->runs);
	for (uint64_t i = 0; i < a->seg_nr; i++) {
		free(a->seg[i].bits);
		free(a->seg[i].old);
	}
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* ---- under the lock ---- */

static void
give_some(struct alloc *a, uint64_t unit, uint32_t units)
{
	struct segment *s = &a->seg[unit / a->seg_units];

	if (s->old && RULE_MEND_CLAIMS)
		bits_range(s->old, (uint32_t)(unit % a->seg_units), units, BITS_CLEAR);
	bits_range(s->bits, (uint32_t)(unit % a->seg_units), units, BITS_SET);
	s->free += units;
	s->longest = s->free;
	a->free += units;
}

/* Frees units. A claimed unit becomes free at the end of the claim. */
static void
give(struct alloc *a, uint64_t unit, uint32_t units)
{
	for (; RULE_MEND_CLAIMS && units && a->claim.nr && unit < a->claim.unit + a->claim.nr &&
	       unit + units > a->claim.unit;
	     unit++, units--) {
		if (unit >= a->claim.unit)
			a->claim.freed |= (uint64_t)1 << (unit - a->claim.unit);
		else
			give_some(a, unit, 1);
	}
	if (units)
		give_some(a, unit, units);
}

static void
take(struct alloc *a, uint64_t unit, uint32_t units)
{
	struct segment *s = &a->seg[unit / a->seg_units];

	bits_range(s->bits, (uint32_t)(unit % a->seg_units), units, BITS_CLEAR);
	s->free -= units;
	if (s->longest > s->free)
		s->longest = s->free;
	a->free -= units;
}

/* Returns the segment with the best bound, or the first one from the cursor on whose bound is at least
 * `want`. */
static struct segment *
best_segment(struct alloc *a, uint32_t want, uint64_t *ret_seg)
{
	struct segment *best = NULL;

	for (uint64_t i = 0, at = a->cursor; i < a->seg_nr; i++, at = at + 1 < a->seg_nr ? at + 1 : 0) {
		struct segment *s = &a->seg[at];

		if (!s->longest || (best && s->longest <= best->longest))
			continue;
		best = s;
		*ret_seg = at;
		if (s->longest >= want)
			break;
	}
	return best;
}

/* Takes a range of `want` units; or a shorter one that a short search finds, with `asked` units if
 * possible (asked 0: no short search); or the longest free range. Returns its length; 0: no unit is free. */
static uint32_t
take_range(struct alloc *a, uint32_t want, uint32_t asked, uint64_t *ret_unit)
{
	for (;;) {
		uint64_t seg;
		struct segment *s = best_segment(a, want, &seg);
		uint32_t from = 0, found, at = 0;

		if (!s)
			return 0;
		found = asked ? bits_look_around(s, want, asked, &from) : 0;
		if (!found) {
			found = bits_find(s, &at, UINT32_MAX, want, &from);
			if (found < want && found < s->longest) {
				s->longest = found; /* now exact; another segment may be better */
				continue;
			}
		}
		found = found < want ? found : want;
		*ret_unit = seg * a->seg_units + from;
		take(a, *ret_unit, found);
		a->cursor = seg;
		return found;
	}
}

/* Returns the unused part of the reserve for snapshots. */
static uint64_t
held_back(const struct alloc *a)
{
	return a->held > a->held_used ? a->held - a->held_used : 0;
}

static void
return_run(struct alloc *a, struct alloc_run *run)
{
	uint64_t span = atomic_exchange(&run->span, 0);

	if (span)
		give(a, span >> SPAN_BITS, (uint32_t)(span & SPAN_MASK));
}

static void
return_runs(struct alloc *a)
{
	for (struct alloc_run *r = a->runs; r; r = r->next)
		return_run(a, r);
}

/* Takes a range as take_range() does, but leaves `keep` units free. Takes back the runs of all ports
 * before it fails. */
static uint32_t
take_or_steal(struct alloc *a, uint32_t want, uint32_t asked, uint64_t keep, uint64_t *ret_unit)
{
	for (int round = 0; round < 2; round++) {
		uint64_t avail = a->free > keep ? a->free - keep : 0;
		uint32_t got = 0;

		if (avail)
			got = take_range(a, avail < want ? (uint32_t)avail : want, asked, ret_unit);
		if (got)
			return got;
		if (round == 0)
			return_runs(a);
	}
	return 0;
}

/* ---- filling ---- */

int
alloc_add(struct alloc *a, uint32_t seg)
{
	struct segment *s = &a->seg[seg];
	uint64_t *bits = calloc((a->seg_units + 63) / 64, sizeof *bits);

	if (!bits)
		return -ENOMEM;
	pthread_mutex_lock(&a->lock);
	check(!s->bits);
	s->bits = bits;
	s->units = a->seg_units;
	a->units += s->units;
	give(a, (uint64_t)seg * a->seg_units, s->units);
	pthread_mutex_unlock(&a->lock);
	return 0;
}

/* Returns true if x names existing units within one segment. */
static bool
is_valid(const struct alloc *a, const struct extent *x)
{
	uint64_t seg = x->unit / a->seg_units;

	return x->units && seg < a->seg_nr && a->seg[seg].bits &&
	       x->units <= a->seg_units - x->unit % a->seg_units;
}

int
alloc_mark(struct alloc *a, const struct extent *x, bool is_held)
{
	int r = 0;

	pthread_mutex_lock(&a->lock);
	if (!is_valid(a, x))
		r = -ERANGE;
	else if (!bits_range(a->seg[x->unit / a->seg_units].bits, (uint32_t)(x->unit % a->seg_units),
			     x->units, BITS_ALL_SET))
		r = -EEXIST;
	else
		take(a, x->unit, x->units);
	if (r == 0 && is_held)
		a->held_used += x->units;
	pthread_mutex_unlock(&a->lock);
	return r;
}

/* ---- allocation ---- */

uint32_t
alloc_most(const struct alloc *a)
{
	return a->run_units;
}

void
alloc_run_init(struct alloc *a, struct alloc_run *run)
{
	atomic_init(&run->span, 0);
	pthread_mutex_lock(&a->lock);
	run->next = a->runs;
	a->runs = run;
	a->run_nr++;
	pthread_mutex_unlock(&a->lock);
}

void
alloc_run_fini(struct alloc *a, struct alloc_run *run)
{
	struct alloc_run **link = &a->runs;

	pthread_mutex_lock(&a->lock);
	return_run(a, run);
	while (*link != run)
		link = &(*link)->next;
	*link = run->next;
	a->run_nr--;
	pthread_mutex_unlock(&a->lock);
}

/* Returns the size of a lease: less with more ports, and with less space. */
static uint32_t
lease_units(const struct alloc *a, uint32_t units)
{
	uint64_t avail = a->free > held_back(a) ? a->free - held_back(a) : 0;
	uint64_t share = avail / (4 * (uint64_t)(a->run_nr ? a->run_nr : 1));

	if (share > a->run_units)
		share = a->run_units;
	return share > units ? (uint32_t)share : units;
}

int
alloc_take(struct alloc *a, struct alloc_run *run, uint32_t units, struct extent *ret_x)
{
	uint64_t span = atomic_load(&run->span), unit;
	uint32_t got;

	check(units && units <= a->run_units);
	/* Another port can take the whole run away at any time, but never a part of it. */
	while ((span & SPAN_MASK) >= units) {
		uint64_t left =
			(span & SPAN_MASK) == units ? 0 : span + ((uint64_t)units << SPAN_BITS) - units;

		if (atomic_compare_exchange_weak(&run->span, &span, left)) {
			*ret_x = (struct extent){ span >> SPAN_BITS, units };
			return 0;
		}
	}
	pthread_mutex_lock(&a->lock);
	return_run(a, run);
	got = take_or_steal(a, lease_units(a, units), units, held_back(a), &unit);
	if (got) {
		*ret_x = (struct extent){ unit, got < units ? got : units };
		if (got > units)
			atomic_store(&run->span, (unit + units) << SPAN_BITS | (got - units));
	}
	pthread_mutex_unlock(&a->lock);
	return got ? 0 : -ENOSPC;
}

int
alloc_take_held(struct alloc *a, uint32_t units, struct extent *ret_x)
{
	uint64_t unit;
	uint32_t got;

	check(units);
	pthread_mutex_lock(&a->lock);
	got = take_or_steal(a, units < a->seg_units ? units : a->seg_units, 0, 0, &unit);
	a->held_used += got;
	pthread_mutex_unlock(&a->lock);
	if (!got)
		return -ENOSPC;
	*ret_x = (struct extent){ unit, got };
	return 0;
}

void
alloc_free(struct alloc *a, const struct extent *x, bool is_held)
{
	pthread_mutex_lock(&a->lock);
	check(is_valid(a, x));
	check(bits_range(a->seg[x->unit / a->seg_units].bits, (uint32_t)(x->unit % a->seg_units), x->units,
			 BITS_ALL_CLEAR));
	give(a, x->unit, x->units);
	if (is_held) {
		check(a->held_used >= x->units);
		a->held_used -= x->units;
	}
	pthread_mutex_unlock(&a->lock);
}

bool
alloc_hold_back(struct alloc *a, uint64_t units, bool anyway)
{
	bool there;

	pthread_mutex_lock(&a->lock);
	if (a->free + a->held_used < units)
		return_runs(a);
	there = a->free + a->held_used >= units;
	if (there || anyway)
		a->held = units;
	pthread_mutex_unlock(&a->lock);
	return there;
}

/* ---- claims ---- */

int
alloc_note_old(struct alloc *a, uint32_t seg)
{
	struct segment *s = &a->seg[seg];
	uint32_t words = (a->seg_units + 63) / 64;
	uint64_t *old = calloc(words, sizeof *old);

	if (!old)
		return -ENOMEM;
	pthread_mutex_lock(&a->lock);
	check(s->bits && !s->old);
	for (uint32_t i = 0; i < words; i++)
		old[i] = ~s->bits[i];
	s->old = old;
	pthread_mutex_unlock(&a->lock);
	return 0;
}

uint64_t
alloc_claim(struct alloc *a, uint64_t unit, uint32_t nr)
{
	struct segment *s = &a->seg[unit / a->seg_units];
	uint32_t first = (uint32_t)(unit % a->seg_units);
	uint64_t claimed = 0;
	bool is_scarce;

	check(nr && nr <= 64 && first + nr <= a->seg_units);
	pthread_mutex_lock(&a->lock);
	check(!a->claim.nr);
	a->claim.unit = unit;
	a->claim.nr = nr;
	a->claim.taken = a->claim.freed = 0;
	/* A claim must not be the reason for a lack of space. */
	is_scarce = a->free < held_back(a) + 4 * (uint64_t)nr;
	for (uint32_t i = 0; s->bits && i < nr; i++) {
		uint64_t bit = (uint64_t)1 << (first + i) % 64;

		if (s->bits[(first + i) / 64] & bit) {
			if (is_scarce)
				continue;
			take(a, unit + i, 1);
			a->claim.taken |= (uint64_t)1 << i;
		} else if (!s->old || !(s->old[(first + i) / 64] & bit)) {
			continue;
		}
		claimed |= (uint64_t)1 << i;
	}
	pthread_mutex_unlock(&a->lock);
	return claimed;
}

void
alloc_unclaim(struct alloc *a)
{
	uint64_t unit, bits;

	pthread_mutex_lock(&a->lock);
	unit = a->claim.unit;
	bits = a->claim.taken | a->claim.freed;
	a->claim.nr = 0;
	for (; bits; bits >>= 1, unit++) {
		if (bits & 1)
			give(a, unit, 1);
	}
	pthread_mutex_unlock(&a->lock);
}

bool
alloc_is_claimed(struct alloc *a)
{
	bool is;

	pthread_mutex_lock(&a->lock);
	is = a->claim.nr != 0;
	pthread_mutex_unlock(&a->lock);
	return is;
}

void
alloc_stats(struct alloc *a, struct alloc_stats *ret_stats)
{
	uint64_t leased = 0;

	pthread_mutex_lock(&a->lock);
	for (struct alloc_run *r = a->runs; r; r = r->next)
		leased += atomic_load(&r->span) & SPAN_MASK;
	*ret_stats = (struct alloc_stats){ .units = a->units,
					   .free = a->free,
					   .leased = leased,
					   .held_back = held_back(a),
					   .held_used = a->held_used };
	pthread_mutex_unlock(&a->lock);
}
