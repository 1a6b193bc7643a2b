/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters by access key, for what is rare and says something about a client: remote-access errors.  One table
 * for all cores, of a fixed size; a key's place is its own for the life of the process, so that a counter
 * never goes back. Any thread.
 */
#include "stats/stats_int.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES 129       /* an access key has at most 128 */
#define UNSIGNED "-"        /* neither can be an access key: too short, ... */
#define OTHERS "other keys" /* ... and with a blank */

struct stats_keys {
	pthread_mutex_t lock; /* of those who add a key */
	_Atomic int nr;       /* places that are taken: their keys do not change any more */
	struct {
		char key[KEY_BYTES];
		stats_counter errors;
	} place[STATS_KEYS_NR];
	stats_counter unsigned_errors, other_errors;
};

int
stats_keys_new(struct stats_keys **ret_keys)
{
	struct stats_keys *k = calloc(1, sizeof *k);

	if (!k)
		return -ENOMEM;
	pthread_mutex_init(&k->lock, NULL);
	*ret_keys = k;
	return 0;
}

void
stats_keys_free(struct stats_keys *k)
{
	if (!k)
		return;
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static stats_counter *
find(struct stats_keys *k, int from, int to, const char *key)
{
	for (int i = from; i < to; i++) {
		if (strcmp(k->place[i].key, key) == 0)
			return &k->place[i].errors;
	}
	return NULL;
}

/* The lock is taken once for each key; and for those without a place never, once the table is full. */
static stats_counter *
find_or_add(struct stats_keys *k, const char *key)
{
	int nr = atomic_load_explicit(&k->nr, memory_order_acquire), now;
	stats_counter *c = find(k, 0, nr, key);

	if (c)
		return c;
	if (nr == STATS_KEYS_NR || strlen(key) >= KEY_BYTES)
		return &k->other_errors;
	pthread_mutex_lock(&k->lock);
	now = atomic_load_explicit(&k->nr, memory_order_relaxed);
	c = find(k, nr, now, key);
	if (!c && now < STATS_KEYS_NR) {
		strcpy(k->place[now].key, key);
		c = &k->place[now].errors;
		atomic_store_explicit(&k->nr, now + 1, memory_order_release);
	}
	pthread_mutex_unlock(&k->lock);
	return c ? c : &k->other_errors;
}

void
stats_remote_access(struct stats_core *st, const char *access_key)
{
	stats_counter *c = access_key ? find_or_add(st->keys, access_key) : &st->keys->unsigned_errors;

	atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

void
stats_keys_collect(const struct stats_keys *k, struct stats_out *out)
{
	int nr = atomic_load_explicit(&k->nr, memory_order_acquire);

	stats_emit(out, M_REMOTE_ACCESS, stats_get(&k->unsigned_errors), UNSIGNED, NULL);
	for (int i = 0; i < nr; i++)
		stats_emit(out, M_REMOTE_ACCESS, stats_get(&k->place[i].errors), k->place[i].key, NULL);
	stats_emit(out, M_REMOTE_ACCESS, stats_get(&k->other_errors), OTHERS, NULL);
}
