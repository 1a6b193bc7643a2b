/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc - free space of one disk, in allocation units; in memory only. Recovery adds the existing units, and
 * marks each unit to which a record refers; the other units are free.
 *
 * Units are numbered through the disk's data space; a segment has `seg_units` of them, and no extent crosses
 * a segment boundary. A port takes space from its own *run*, leased from the allocator and without a lock;
 * only the lease of another run takes the mutex. A run is one atomic word. If space is short, alloc_take()
 * takes back the runs of idle or sleeping ports, without any action of these ports, before it returns
 * -ENOSPC.
 *
 * The allocator does not know when an extent may be reused. The store calls alloc_free() when all conditions
 * are met: the stamp block is flushed, the grace period has passed, and no pin and no write of the extent is
 * left.
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

/* A port's lease of a run of units. Embedded in the port. */
struct alloc_run {
	/* leased units: first unit << 24 | number of units; 0: no lease */
	_Alignas(64) _Atomic uint64_t span;
	struct alloc_run *next; /* link in the allocator's list */
};

/* Allocates an allocator for seg_nr segments, of which each has seg_units units. run_units: largest lease of a port, in units (64
 * MiB). seg_units and run_units are less than 1 << 24. Returns 0 or -ENOMEM. */
int alloc_new(uint32_t seg_nr, uint32_t seg_units, uint32_t run_units, struct alloc **ret_a);
/* Frees an allocator, from which all runs were removed. NULL is allowed. */
void alloc_free_all(struct alloc *a);

/* ---- adding space: recovery, and new segments. Any thread may call this function. ---- */

/* Adds a segment, whose units are free. Returns 0 or -ENOMEM. */
int alloc_add(struct alloc *a, uint32_t seg);
/* Marks an extent as used by a record, or (is_held) by a snapshot. Returns 0; -ERANGE if the extent is outside of the
 * data space or crosses a segment boundary, because the record is damaged; or -EEXIST if one of its units is
 * already in use. */
int alloc_mark(struct alloc *a, const struct extent *x, bool is_held);

/* ---- allocation. Functions with a run: on the thread of the run's port; others: on any thread. ---- */

/* Returns the largest size of a run, in units. */
uint32_t alloc_most(const struct alloc *a);
/* Adds an empty run to the allocator. */
void alloc_run_init(struct alloc *a, struct alloc_run *run);
/* Returns the unused units of a run to the free space, and removes the run. */
void alloc_run_fini(struct alloc *a, struct alloc_run *run);

/*
 * Takes a contiguous range of up to `units` units (<= run_units) within a segment. Takes fewer than `units` only if no free range
 * is long enough; the caller calls again for the missing units. Returns 0, or -ENOSPC if neither the free space outside the
 * reserve for snapshots nor any run has a unit.
 */
int alloc_take(struct alloc *a, struct alloc_run *run, uint32_t units, struct extent *ret_x);
/* Takes the longest contiguous range of up to `units` units (<= seg_units) for a snapshot, also from the reserve for snapshots.
 * Always takes the mutex. Returns 0 or -ENOSPC. */
int alloc_take_held(struct alloc *a, uint32_t units, struct extent *ret_x);
/* Frees an extent, or a part of one, immediately. is_held: it was of a snapshot: taken by alloc_take_held(), or marked so. */
void alloc_free(struct alloc *a, const struct extent *x, bool is_held);

/* Sets the reserve for snapshots, in units, including the units that snapshots use, if enough units are free, or (anyway) also if
 * too few are. alloc_take() does not use the reserve. Returns true if enough units are free. */
bool alloc_hold_back(struct alloc *a, uint64_t units, bool anyway);

/* ---- claims: one at a time, of one thread ---- */

/* Notes which units of a segment are in use, so that alloc_claim() can claim them. Called once for each
 * segment, while no thread writes to the segment; after the call no thread writes to a noted unit until the
 * unit is freed. Returns 0 or -ENOMEM. */
int alloc_note_old(struct alloc *a, uint32_t seg);
/* Claims units among the nr (<= 64) units of one segment that begin at `unit`: units that are free, or that
 * have been in use since alloc_note_old(). Free units are not claimed while space is short. Returns a mask:
 * bit i is set if unit + i was claimed. Until alloc_unclaim() no other thread writes to a claimed unit. */
uint64_t alloc_claim(struct alloc *a, uint64_t unit, uint32_t nr);
/* Ends the claim. */
void alloc_unclaim(struct alloc *a);
/* Returns true between an alloc_claim() that has claimed units and alloc_unclaim(). */
bool alloc_is_claimed(struct alloc *a);

struct alloc_stats {
	uint64_t units;     /* number of units added so far */
	uint64_t free;      /* number of units that are neither in use nor leased */
	uint64_t leased;    /* number of leased units that are not in use yet */
	uint64_t held_back; /* unused part of the reserve for snapshots, in units */
	uint64_t held_used; /* number of units that snapshots use */
};
void alloc_stats(struct alloc *a, struct alloc_stats *ret_stats);

#endif
