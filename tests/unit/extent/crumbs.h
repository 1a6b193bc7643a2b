/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk of which the helper has made all, and its free space as single units, none of them beside another:
 * by hand, where it would take thousands of objects.
 */
#ifndef GANTRY_TESTS_STORE_CRUMBS_H
#define GANTRY_TESTS_STORE_CRUMBS_H

#include "base/check.h"
#include "extent/engine.h"

#include <stdlib.h>

#include "harness.h"

#define CRUMBS_MAX 50000

/* The helper makes no more segments: their writes are not mixed with ours, nor their space. */
static inline void
wait_segments(struct loop *l)
{
	struct vol *vol = extent_port(l->p)->st->vol;

	wait_until(!vol->disk.segs_coming) {
		vol->disk.seg_hungry = true;
		helper_ring(&vol->helper);
		loop_for(l, NS_PER_MS);
	}
}

/* The last records have their stamp, and nothing is written to the log any more. */
static inline void
wait_stamped(struct loop *l)
{
	const struct vol *vol = extent_port(l->p)->st->vol;

	wait_until(!atomic_load(&vol->pending) && !atomic_load(&vol->is_led) &&
		   vol->leader.stamped >= vol->leader.last_records_seq)
		loop_turn(l);
}

/* Until the store is opened again. */
static inline void
make_crumbs(struct loop *l)
{
	struct alloc *a = extent_port(l->p)->st->vol->disk.alloc;
	struct extent *x = calloc(CRUMBS_MAX, sizeof *x);
	int n = 0, held;

	wait_segments(l);
	check(x);
	while (alloc_take(a, &extent_port(l->p)->run, 1, &x[n]) == 0)
		check(++n < CRUMBS_MAX);
	held = n;
	while (alloc_take_held(a, 1, &x[n]) == 0)
		check(++n < CRUMBS_MAX);
	for (int i = 0; i < n; i++) {
		if (x[i].unit % 2 && i < held)
			alloc_free(a, &x[i], false);
		else if (x[i].unit % 2)
			alloc_free(a, &x[i], true);
	}
	free(x);
}

/* Others take what is free beyond that many units, until the store is opened again. */
static inline void
leave_units(struct loop *l, uint64_t units)
{
	struct extent_port *p = extent_port(l->p);
	struct alloc *a = p->st->vol->disk.alloc;
	struct alloc_stats as;
	struct extent x;

	for (alloc_stats(a, &as); as.free + as.leased > units + as.held_back; alloc_stats(a, &as))
		check(alloc_take(a, &p->run, 1, &x) == 0);
	check(as.free + as.leased == units + as.held_back);
}

#endif
