/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets that engines missed a change of while they were out of service; see set_int.h. */
#include "set/map/set_rules.h"
#include "set/set_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Under the lock: the place of a bucket, or where it would be. */
static struct set_missed *
place(const struct set *s, const char *name, size_t len, bool *ret_is_found)
{
	size_t lo = 0, hi = s->missed_nr;

	*ret_is_found = false;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct set_missed *m = &s->missed[mid];
		int c = memcmp(m->name, name, m->len < len ? m->len : len);

		c = c ? c : (m->len > len) - (m->len < len);
		if (c == 0)
			*ret_is_found = true;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return &s->missed[lo];
}

int
set_expect_missed(struct set *s)
{
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->missed_nr == s->missed_cap) {
		size_t cap = s->missed_cap ? 2 * s->missed_cap : 8;
		struct set_missed *grown = realloc(s->missed, cap * sizeof *grown);

		if (grown) {
			s->missed = grown;
			s->missed_cap = cap;
		}
		r = grown ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

void
set_note_missed(struct set *s, const char *name, size_t len, bool is_there, uint64_t but)
{
	struct set_missed *m;
	bool is_found;

	if (atomic_load(&s->in) == set_all(s))
		return;
	pthread_mutex_lock(&s->lock);
	m = place(s, name, len, &is_found);
	if (!is_found && s->missed_nr == s->missed_cap) {
		/* Only where changes take no turns. */
		pthread_mutex_unlock(&s->lock);
		return;
	}
	if (!is_found) {
		memmove(m + 1, m, (size_t)(s->missed + s->missed_nr++ - m) * sizeof *m);
		m->engines = 0;
		m->len = (uint8_t)len;
		memcpy(m->name, name, len);
	}
	m->is_there = is_there;
	m->engines |= set_all(s) & ~atomic_load(&s->in) & ~but;
	pthread_mutex_unlock(&s->lock);
}

bool
set_has_missed(struct set *s, int engine, const char *name, size_t len, bool *ret_is_there)
{
	const struct set_missed *m;
	bool is_found;

	if (set_is_in(s, engine) || !RULE_FAILED_HAS_NO_BUCKETS)
		return false;
	pthread_mutex_lock(&s->lock);
	m = place(s, name, len, &is_found);
	is_found = is_found && (m->engines >> engine & 1);
	if (is_found)
		*ret_is_there = m->is_there;
	pthread_mutex_unlock(&s->lock);
	return is_found;
}
