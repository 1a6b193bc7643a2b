/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc - free space of one disk, in allocation units; in memory only.  Recovery makes it: add what there
 * is, mark what somebody names, and the rest is free.
 *
 * Units are numbered through the disk's data space; a segment is `seg_units` of them, and no extent crosses
 * from one segment into another.  A port takes space from its own *run*, leased from the allocator and
 * without a lock; only getting another run takes the mutex.  A run is one atomic word, so whoever finds no
 * space left takes back what idle (or sleeping) ports hold before it says -ENOSPC: a port need not give back
 * anything for that.
 *
 * Nothing here knows when an extent may be used again (flushed stamp, grace period, pins, writes in flight):
 * the store calls alloc_free() when all that is past.
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
	struct alloc_run *next;             /* the allocator's list */
};

/* Makes an allocator.  run_units: the most that is leased at once (64 MiB worth); < 1 << 24, as is
 * seg_units.  units_max: bound of the data space. 0, -EINVAL, -ENOMEM. */
int alloc_new(uint64_t units_max, uint32_t seg_units, uint32_t run_units, struct alloc **ret_a);
/* Frees a, whose runs are gone.  NULL is fine. */
void alloc_free_all(struct alloc *a);

/* ---- filling: recovery, and segments that appear later.  Any thread. ---- */

/* Adds units, free: a new segment, or (a block device) many.  0, -ENOMEM, -ERANGE, -EEXIST (partly there
 * already). */
int alloc_add(struct alloc *a, uint64_t unit, uint64_t units);
/* Marks an extent as used, since a record names it.  0, -ERANGE (not there, or across segments: a
 * damaged record), -EEXIST (two name it). */
int alloc_mark_used(struct alloc *a, const struct extent *x);
/* Marks an extent that a snapshot names. */
int alloc_mark_held(struct alloc *a, const struct extent *x);

/* ---- taking and giving.  A run's calls: its port's thread; the rest: any. ---- */

/* Returns the most that a run may be asked for at once: run_units. */
uint32_t alloc_most(const struct alloc *a);
/* Adds a run, empty, to the allocator. */
void alloc_run_init(struct alloc *a, struct alloc_run *run);
/* Gives the rest back and forgets the run. */
void alloc_run_fini(struct alloc *a, struct alloc_run *run);

/*
 * Takes up to `units`, at least `min_units` (1 <= min_units <= units <= run_units), contiguous, within a
 * segment. Prefers the whole; takes less when no free range is long enough (ask again for the rest).  0 or
 * -ENOSPC: no range of min_units is left outside of what is held back, whoever holds it.
 */
int alloc_take(struct alloc *a, struct alloc_run *run, uint32_t units, uint32_t min_units,
	       struct extent *ret_x);
/* Takes space for a snapshot, which may use what is held back for it; always takes the mutex.  As
 * alloc_take(), but units may be up to seg_units. */
int alloc_take_held(struct alloc *a, uint32_t units, uint32_t min_units, struct extent *ret_x);
/* Gives an extent back to the free space, at once.  It may be a piece of what was taken. */
void alloc_free(struct alloc *a, const struct extent *x);

/* Gives back what alloc_take_held() took, or alloc_mark_held() marked, or a piece of it. */
void alloc_free_held(struct alloc *a, const struct extent *x);

/* Keeps this many units for snapshots, those included that they have: alloc_take() leaves the rest alone.  May
 * be more than there are. */
void alloc_hold_back(struct alloc *a, uint64_t units);
/* Does so if they are there; false: they are not, and nothing has changed. */
bool alloc_hold_more(struct alloc *a, uint64_t units);

/* ---- claims: one at a time, of one thread ---- */

/* Remembers which units of a segment are in use, when nobody writes to any of them: until they are given back
 * nobody will.  Once for each segment.  0 or -ENOMEM. */
int alloc_note_old(struct alloc *a, uint32_t seg);
/* Claims nr (<= 64) units of a segment: until the claim ends nobody else writes to those whose bits are returned.
 * They are free, or in use since alloc_note_old(). */
uint64_t alloc_claim(struct alloc *a, uint64_t unit, uint32_t nr);
/* Ends the claim. */
void alloc_unclaim(struct alloc *a);
/* Tells whether there is a claim now. */
bool alloc_is_claimed(struct alloc *a);

struct alloc_stats {
	uint64_t units;     /* added */
	uint64_t free;      /* neither used nor leased */
	uint64_t leased;    /* in runs, not taken yet */
	uint64_t held_back; /* for snapshots, without what they have */
	uint64_t held_used; /* what they have */
	uint64_t refills, steals;
};
void alloc_stats(struct alloc *a, struct alloc_stats *ret_stats);

#endif
