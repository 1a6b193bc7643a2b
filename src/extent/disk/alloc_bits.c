/* SPDX-License-Identifier: Apache-2.0 */
/* The bitmap of a segment of the allocator, and the search for a free range in it; see alloc_bits.h. */
#include "extent/disk/alloc_bits.h"

#define LOOK_RANGES 32 /* largest number of free ranges that a round of a short search examines */
#define LOOK_MOST 64   /* length, in units, that is sufficient in the first round */
#define LOOK_LEAST 4   /* length, in units, that is sufficient in the last round */

/* Returns a mask of the bits [at, at + n) of one word. */
static uint64_t
word_mask(uint32_t at, uint32_t n)
{
	return (n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1) << at;
}

bool
bits_range(uint64_t *bits, uint32_t from, uint32_t nr, enum bits_op op)
{
	while (nr) {
		uint32_t at = from % 64, n = 64 - at < nr ? 64 - at : nr;
		uint64_t mask = word_mask(at, n), *w = &bits[from / 64];

		if (op == BITS_SET)
			*w |= mask;
		else if (op == BITS_CLEAR)
			*w &= ~mask;
		else if (op == BITS_ALL_SET ? (*w & mask) != mask : (*w & mask) != 0)
			return false;
		from += n;
		nr -= n;
	}
	return true;
}

/* Returns the first set (or clear) bit in [from, to); `to` if there is none. */
static uint32_t
bits_next(const uint64_t *bits, uint32_t from, uint32_t to, bool set)
{
	while (from < to) {
		uint64_t w = (set ? bits[from / 64] : ~bits[from / 64]) >> from % 64;

		if (w) {
			from += (uint32_t)__builtin_ctzll(w);
			return from < to ? from : to;
		}
		from = (from / 64 + 1) * 64;
	}
	return to;
}

uint32_t
bits_find(const struct segment *s, uint32_t *at, uint32_t max_ranges, uint32_t want, uint32_t *ret_from)
{
	uint32_t best = 0, from = bits_next(s->bits, *at, s->units, true);

	while (from < s->units && max_ranges--) {
		uint32_t end = bits_next(s->bits, from, s->units, false);

		if (end - from > best) {
			best = end - from;
			*ret_from = from;
			if (best >= want)
				break;
		}
		from = bits_next(s->bits, end, s->units, true);
	}
	*at = from;
	return best;
}

uint32_t
bits_look_around(struct segment *s, uint32_t want, uint32_t asked, uint32_t *ret_from)
{
	for (uint32_t enough = LOOK_MOST; enough >= LOOK_LEAST; enough /= 2) {
		uint32_t least = asked < enough ? asked : enough, found;

		if (s->at >= s->units)
			s->at = 0;
		found = bits_find(s, &s->at, LOOK_RANGES, want, ret_from);
		if (found && found >= least)
			return found;
	}
	return 0;
}
