/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations by their addresses: an array in the order of starts, which may overlap.  Each entry knows the nearest
 * one before it that ends after it, so that a look-up goes from a start to what holds it without a look at what does
 * not.  Pure: the caller has the lock.
 */
#include "client/client_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* Says of all entries from i on which one is above them. */
static void
link_from(struct map *m, size_t i)
{
	for (; i < m->nr; i++) {
		uint32_t k = i > 0 ? (uint32_t)i - 1 : NONE;

		while (k != NONE && m->at[k].end <= m->at[i].end)
			k = m->at[k].above;
		m->at[i].above = k;
	}
}

size_t
map_from(const struct map *m, uintptr_t start)
{
	size_t low = 0, n = m->nr;

	while (n > 0) {
		size_t half = n / 2;
		bool is_less = m->at[low + half].start < start;

		low = is_less ? low + half + 1 : low;
		n = is_less ? n - half - 1 : half;
	}
	return low;
}

int
map_add(struct map *m, struct region *r)
{
	uintptr_t start = (uintptr_t)r->ptr, end = start + r->size;
	size_t i = map_from(m, start);

	if (m->nr == m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 16;
		struct held *at = reallocarray(m->at, cap, sizeof *at);

		if (!at)
			return -ENOMEM;
		m->at = at;
		m->cap = cap;
	}
	/* Of one start the larger one first: it is above the other. */
	while (i < m->nr && m->at[i].start == start && m->at[i].end > end)
		i++;
	memmove(&m->at[i + 1], &m->at[i], (m->nr - i) * sizeof *m->at);
	m->at[i] = (struct held){ .start = start, .end = end, .region = r };
	m->nr++;
	link_from(m, i);
	return 0;
}

void
map_remove(struct map *m, const struct region *r)
{
	for (size_t i = map_from(m, (uintptr_t)r->ptr); i < m->nr && m->at[i].start == (uintptr_t)r->ptr;
	     i++) {
		if (m->at[i].region != r)
			continue;
		m->nr--;
		memmove(&m->at[i], &m->at[i + 1], (m->nr - i) * sizeof *m->at);
		link_from(m, i);
		return;
	}
}

bool
map_replace(struct map *m, const struct region *old, struct region *r)
{
	for (size_t i = map_from(m, (uintptr_t)old->ptr); i < m->nr && m->at[i].start == (uintptr_t)old->ptr;
	     i++) {
		if (m->at[i].region == old) {
			m->at[i].region = r;
			return true;
		}
	}
	return false;
}

struct region *
map_find(const struct map *m, uintptr_t start, uintptr_t end)
{
	struct region *found = NULL;
	size_t i = map_from(m, start);
	uint32_t k;

	/* After the last that begins there. */
	while (i < m->nr && m->at[i].start == start)
		i++;
	for (k = i > 0 ? (uint32_t)i - 1 : NONE; k != NONE;) {
		const struct held *s = &m->at[k];
		bool is_writable = !(s->region->flags & GANTRY_READ_ONLY);

		if (s->end < end) {
			k = s->above;
			continue;
		}
		/* The smallest that can be written to, else the smallest. */
		bool is_better = found && is_writable != !(found->flags & GANTRY_READ_ONLY)
					 ? is_writable
					 : !found || s->region->size < found->size;

		if (is_better)
			found = s->region;
		/* What begins still earlier and reaches so far is larger. */
		if (!(found->flags & GANTRY_READ_ONLY) && end - s->start >= found->size)
			break;
		k = k > 0 ? k - 1 : NONE;
	}
	return found;
}
