/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the set's record of bucket changes in memory; see buckets.h. */
#include "set/set_int.h"

#include "set/map/set_rules.h"
#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A bucket that was made or removed while an engine was out of service. */
struct missed {
	/* bitmap of the engines that were out of service during the change, and have older records of the
	 * bucket */
	uint64_t engines;
	uint8_t len;
	bool is_there;
	char name[STORE_BUCKET_MAX];
};

/* ---- changes that engines missed ---- */

/* Returns the entry of a bucket, or the position at which to insert one. The caller holds the lock. */
static struct missed *
place(const struct set_buckets *b, const char *name, size_t len, bool *ret_is_found)
{
	size_t lo = 0, hi = b->nr;

	*ret_is_found = false;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct missed *m = &b->missed[mid];
		int c = memcmp(m->name, name, m->len < len ? m->len : len);

		c = c ? c : (m->len > len) - (m->len < len);
		if (c == 0)
			*ret_is_found = true;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return &b->missed[lo];
}

int
set_expect_missed(struct set *s)
{
	struct set_buckets *b = &s->buckets;
	int r = 0;

	pthread_mutex_lock(&b->lock);
	if (b->nr == b->cap) {
		size_t cap = b->cap ? 2 * b->cap : 8;
		struct missed *grown = realloc(b->missed, cap * sizeof *grown);

		if (grown) {
			b->missed = grown;
			b->cap = cap;
		}
		r = grown ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&b->lock);
	return r;
}

void
set_note_missed(struct set *s, const char *name, size_t len, bool is_there, uint64_t but)
{
	struct set_buckets *b = &s->buckets;
	struct missed *m;
	bool is_found;

	check(len > 0 && len <= STORE_BUCKET_MAX);
	if (set_in(s) == set_all(s))
		return;
	pthread_mutex_lock(&b->lock);
	m = place(b, name, len, &is_found);
	if (!is_found && b->nr == b->cap) {
		/* Another change has used the reserved memory. */
		check(!RULE_ONE_CHANGE);
		pthread_mutex_unlock(&b->lock);
		return;
	}
	if (!is_found) {
		memmove(m + 1, m, (size_t)(b->missed + b->nr++ - m) * sizeof *m);
		m->engines = 0;
		m->len = (uint8_t)len;
		memcpy(m->name, name, len);
	}
	m->is_there = is_there;
	m->engines |= set_all(s) & ~set_in(s) & ~but;
	pthread_mutex_unlock(&b->lock);
}

bool
set_has_missed(struct set *s, int engine, const char *name, size_t len, bool *ret_is_there)
{
	struct set_buckets *b = &s->buckets;
	const struct missed *m;
	bool is_found;

	if (set_is_in(s, engine) || !RULE_FAILED_HAS_NO_BUCKETS)
		return false;
	pthread_mutex_lock(&b->lock);
	m = place(b, name, len, &is_found);
	is_found = is_found && (m->engines >> engine & 1);
	if (is_found)
		*ret_is_there = m->is_there;
	pthread_mutex_unlock(&b->lock);
	return is_found;
}

void
set_note_removed(struct set *s)
{
	atomic_fetch_add(&s->buckets.removed, 1);
}

uint64_t
set_removed(const struct set *s)
{
	return atomic_load(&s->buckets.removed);
}

uint64_t
change_birth_time(struct set *s)
{
	uint64_t last = atomic_load(&s->buckets.last_made_ns), now;

	do {
		now = clock_wall_ns();
		if (now <= last && last - now < NS_PER_S)
			now = last + 1;
	} while (!atomic_compare_exchange_weak(&s->buckets.last_made_ns, &last, now));
	check(now != last);
	return now;
}
