/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_bits - the bitmap of a segment of the allocator, and the search for a free range of units in it; for
 * alloc.c, which holds the mutex of the allocator.
 */
#ifndef GANTRY_EXTENT_DISK_ALLOC_BITS_H
#define GANTRY_EXTENT_DISK_ALLOC_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* A segment. Positions in a segment are in units, from its beginning. */
struct segment {
	uint64_t *
		bits; /* bitmap, a bit for each unit, set if the unit is free; NULL: the segment was not added */
	uint32_t units;   /* number of units, once the segment was added */
	uint32_t free;    /* number of free units */
	uint32_t longest; /* upper bound of the length of the longest free range, in units */
	uint32_t at;      /* position at which the next search of a limited number of free ranges begins */
	uint64_t *old;    /* bitmap of the units in use since alloc_note_old(); NULL: unknown */
};

/* The last two values are questions. */
enum bits_op { BITS_SET, BITS_CLEAR, BITS_ALL_SET, BITS_ALL_CLEAR };

/* Sets or clears nr bits from `from` on, and returns true; or returns whether all these bits are set, or
 * clear. */
bool bits_range(uint64_t *bits, uint32_t from, uint32_t nr, enum bits_op op);

/* Examines up to max_ranges free ranges in [*at, s->units), until one has at least `want` units. Returns the
 * length of the longest of them, which begins at *ret_from; 0: there is none. Moves *at beyond the last range
 * that was examined. */
uint32_t bits_find(const struct segment *s, uint32_t *at, uint32_t max_ranges, uint32_t want,
		   uint32_t *ret_from);

/*
 * Finds a free range as bits_find() does, but examines only a few ranges, in each round other ones, and each
 * round accepts a shorter range. Returns 0 if none was found. On a full disk with
 * fragmented space no range is as long as a lease or a large object, and the whole bitmap would be read to
 * find this out. asked: number of units that are needed now; a range of this length is sufficient in every
 * round.
 */
uint32_t bits_look_around(struct segment *s, uint32_t want, uint32_t asked, uint32_t *ret_from);

#endif
