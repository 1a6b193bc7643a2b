/* SPDX-License-Identifier: Apache-2.0 */
/* Who has keys with two copies, see replicas.h. */
#include "set/replicas.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

int
set_copies_new(struct set *s)
{
	struct set_copies *c = calloc(1, sizeof *c);

	if (!c)
		return -ENOMEM;
	if (set_holds_new(&c->holds) < 0) {
		free(c);
		return -ENOMEM;
	}
	pthread_mutex_init(&c->lock, NULL);
	list_init(&c->waiting);
	list_init(&c->round);
	s->copies = c;
	return 0;
}

void
set_copies_free(struct set *s)
{
	if (s->copies) {
		set_holds_free(s->copies->holds);
		pthread_mutex_destroy(&s->copies->lock);
	}
	free(s->copies);
	s->copies = NULL;
}

void
set_copies_begin(struct set *s, const struct disk_table *t, const uint8_t engine[STORE_DISKS_MAX],
		 bool is_used)
{
	atomic_store(&s->copies->is_used, is_used);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		uint8_t second = t->second[i] == TABLE_NO_DISK ? SET_NOWHERE : engine[t->second[i]];
		bool is_full = table_is_full(t, i);

		set_assign_primary(s, (unsigned)(STORE_SLOT_NR + i), engine[t->first[i]]);
		set_assign_secondary(s, i, is_full ? second : SET_NOWHERE);
	}
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (table_has(t->members & ~t->in, i))
			atomic_store(&s->copies->away_since_ns[i], clock_ns());
	}
}

void
set_copies_end(struct set *s)
{
	for (int i = 0; i < STORE_SLOT_NR; i++)
		set_assign_secondary(s, i, SET_NOWHERE);
	atomic_store(&s->copies->is_used, false);
}

/* ---- buckets ---- */

bool
set_bucket_has_two(struct store_port *sp, const char *bucket, size_t len)
{
	const struct set_copies *c = port_set(set_port(sp))->copies;
	struct store_stat st = { .copies = 0 };

	return c && atomic_load_explicit(&c->is_used, memory_order_acquire) &&
	       set_bucket_head(sp, bucket, len, &st) > 0 && st.copies == 2;
}

bool
set_has_two(struct store_port *sp, const struct store_key *k, struct store_key *ret_key)
{
	if (!set_bucket_has_two(sp, k->bucket, k->bucket_len))
		return false;
	*ret_key = *k;
	ret_key->copies = 2;
	return true;
}
