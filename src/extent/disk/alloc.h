/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc - free space of one disk, in allocation units; in memory only. Recovery fills the allocator:
 * recovery adds the existing units and marks each unit to which a record refers; the other units are free.
 *
 * Units are numbered through the disk's data space; a segment has `seg_units` of them, and no extent
 * crosses a segment boundary. A port takes space from its own *run*, leased from the allocator and without
 * a lock; only the lease of another run takes the mutex. A run is one atomic word, so before alloc_take()
 * returns -ENOSPC it takes back the runs of idle or sleeping ports, without any action of these ports.
 *
 * The allocator does not know when an extent may be reused (flushed stamp, grace period, pins, writes in
 * flight): the store calls alloc_free() after all of these.
 *
 * Memory: one bit per unit (8 KiB per GiB at 16 KiB units), allocated by alloc_add().
 */
#ifndef GANTRY_EXTENT_DISK_ALLOC_H
#define GANTRY_EXTENT_DISK_ALLOC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct alloc;

struct extent {
	uint64_t unit;
	uint32_t units;
};

/* A port's lease; embedded in the port. */
struct alloc_run {
	_Alignas(64) _Atomic uint64_t span; /* first unit << 24 | units; 0: none */
	struct alloc_run *next;             /* link of the allocator's list */
};

/* Makes an allocator. run_units: largest lease (64 MiB worth); < 1 << 24, as is seg_units. units_max: limit
 * of the data space. 0, -EINVAL, -ENOMEM. */
int alloc_new(uint64_t units_max, uint32_t seg_units, uint32_t run_units, struct alloc **ret_a);
/* Frees a; all runs were removed before. NULL is allowed. */
void alloc_free_all(struct alloc *a);

/* ---- adding space: recovery, and new segments. Any thread. ---- */

/* Adds free units: a new segment, or many segments of a block device. 0, -ENOMEM, -ERANGE, -EEXIST (some
 * were added before). */
int alloc_add(struct alloc *a, uint64_t unit, uint64_t units);
/* Marks an extent as used, since a record refers to it. 0, -ERANGE (outside the space, or across segments: a
 * damaged record), -EEXIST (a second reference). */
int alloc_mark_used(struct alloc *a, const struct extent *x);
/* Marks an extent used by a snapshot. */
int alloc_mark_held(struct alloc *a, const struct extent *x);

/* ---- allocation. Functions with a run: on the thread of the run's port; others: on any thread. ---- */

/* Returns the largest size of a run: run_units. */
uint32_t alloc_most(const struct alloc *a);
/* Adds a run, empty, to the allocator. */
void alloc_run_init(struct alloc *a, struct alloc_run *run);
/* Returns the rest of a run to the free space and removes the run. */
void alloc_run_fini(struct alloc *a, struct alloc_run *run);

/*
 * Takes up to `units`, at least `min_units` (1 <= min_units <= units <= run_units), contiguous, within a
 * segment. Takes less than `units` only when no free range is long enough (the caller calls again for the
 * rest). 0 or -ENOSPC: no range of min_units is left outside the reserve, in any run.
 */
int alloc_take(struct alloc *a, struct alloc_run *run, uint32_t units, uint32_t min_units,
	       struct extent *ret_x);
/* Takes space for a snapshot, also from the reserve for it; always takes the mutex. As alloc_take(), but
 * units may be up to seg_units. */
int alloc_take_held(struct alloc *a, uint32_t units, uint32_t min_units, struct extent *ret_x);
/* Frees an extent, or a part of one, immediately. */
void alloc_free(struct alloc *a, const struct extent *x);

/* Frees an extent, or a part of one, that was taken by alloc_take_held() or marked by alloc_mark_held(). */
void alloc_free_held(struct alloc *a, const struct extent *x);

/* Reserves this many units for snapshots, including those in use by snapshots: alloc_take() does not use
 * the reserve. The reserve may exceed the existing space. */
void alloc_hold_back(struct alloc *a, uint64_t units);
/* Reserves this many units for snapshots if enough are free; false: too few are free, and the reserve is
 * unchanged. */
bool alloc_hold_more(struct alloc *a, uint64_t units);

/* ---- claims: one at a time, of one thread ---- */

/* Notes the units of a segment that are in use, while no thread writes to the segment: no thread writes to
 * a noted unit until the unit is freed. Once for each segment. 0 or -ENOMEM. */
int alloc_note_old(struct alloc *a, uint32_t seg);
/* Claims nr (<= 64) units of a segment and returns a bit for each claimed unit: until the claim ends no
 * other thread writes to a claimed unit. A claimed unit is free, or in use since alloc_note_old(). */
uint64_t alloc_claim(struct alloc *a, uint64_t unit, uint32_t nr);
/* Ends the claim. */
void alloc_unclaim(struct alloc *a);
/* Returns true if there is a claim now. */
bool alloc_is_claimed(struct alloc *a);

struct alloc_stats {
	uint64_t units;     /* units added so far */
	uint64_t free;      /* units neither in use nor leased */
	uint64_t leased;    /* units in runs that are not in use yet */
	uint64_t held_back; /* unused part of the reserve for snapshots, in units */
	uint64_t held_used; /* units used by snapshots */
	uint64_t refills, steals;
};
void alloc_stats(struct alloc *a, struct alloc_stats *ret_stats);

#endif
