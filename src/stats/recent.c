/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latest requests that were declined or went wrong: a ring per core, read by the admin thread while the
 * core goes on.  An entry that is being written over while it is read is left out.
 */
#include "stats/stats_int.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct stats_whose) % sizeof(uint64_t) == 0, "copied by words");

void
stats_note(struct stats_core *st, const struct stats_note *n)
{
	uint64_t at = stats_get(&st->notes_nr);
	struct stats_note_slot *s = &st->notes[at % STATS_NOTES_NR];
	uint64_t whose[STATS_WHOSE_WORDS];

	memcpy(whose, &n->whose, sizeof whose);
	/* Odd while it is written.  Every part is released,
	 * so who sees a new part sees the odd number too. */
	atomic_store_explicit(&s->seq, 2 * at + 1, memory_order_relaxed);
	atomic_store_explicit(&s->unix_ns, n->unix_ns, memory_order_release);
	atomic_store_explicit(&s->id, n->id, memory_order_release);
	atomic_store_explicit(&s->code, (uintptr_t)n->code, memory_order_release);
	for (size_t i = 0; i < STATS_WHOSE_WORDS; i++)
		atomic_store_explicit(&s->whose[i], whose[i], memory_order_release);
	atomic_store_explicit(
		&s->what, (uint64_t)n->op << 32 | (uint64_t)(n->reason & 0xffff) << 16 | (uint64_t)n->status,
		memory_order_release);
	atomic_store_explicit(&s->seq, 2 * at + 2, memory_order_release);
	atomic_store_explicit(&st->notes_nr, at + 1, memory_order_relaxed);
}

static bool
read_slot(const struct stats_note_slot *s, struct stats_note *out)
{
	uint64_t seq = atomic_load_explicit(&s->seq, memory_order_acquire), what, whose[STATS_WHOSE_WORDS];

	if (seq == 0 || seq % 2)
		return false;
	out->unix_ns = atomic_load_explicit(&s->unix_ns, memory_order_acquire);
	out->id = atomic_load_explicit(&s->id, memory_order_acquire);
	out->code = (const char *)atomic_load_explicit(&s->code, memory_order_acquire);
	what = atomic_load_explicit(&s->what, memory_order_acquire);
	out->op = (int)(what >> 32);
	out->reason = (int)(what >> 16 & 0xffff);
	out->status = (int)(what & 0xffff);
	for (size_t i = 0; i < STATS_WHOSE_WORDS; i++)
		whose[i] = atomic_load_explicit(&s->whose[i], memory_order_acquire);
	memcpy(&out->whose, whose, sizeof whose);
	return atomic_load_explicit(&s->seq, memory_order_relaxed) == seq;
}

static int
newest_first(const void *a, const void *b)
{
	const struct stats_note *x = a, *y = b;

	return x->unix_ns > y->unix_ns ? -1 : x->unix_ns < y->unix_ns;
}

int
stats_recent(const struct stats *st, struct stats_note *notes, int max)
{
	int nr = 0;

	for (int c = 0; c < stats_core_nr(st); c++) {
		const struct stats_core *core = stats_core_at(st, c);

		for (int i = 0; i < STATS_NOTES_NR && nr < max; i++)
			nr += read_slot(&core->notes[i], &notes[nr]);
	}
	qsort(notes, (size_t)nr, sizeof *notes, newest_first);
	return nr;
}
