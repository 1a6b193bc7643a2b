/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the keys that change while their slots are sent to another engine; see rebalance.h. */
#include "set/map/set_rules.h"
#include "set/mover.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

#ifndef KEYS_MAX
/* largest number of changed keys that are recorded; if more keys change, all keys are sent again */
#define KEYS_MAX 262144
#endif

bool
move_begin_noting(struct mover *m)
{
	struct move_changed *ch = &m->changed;

	check(!ch->keys);
	ch->keys = calloc(1, sizeof *ch->keys);
	ch->no_memory = false;
	return ch->keys != NULL;
}

void
move_end_noting(struct mover *m)
{
	move_keys_free(m->changed.keys);
	m->changed.keys = NULL;
}

static uint32_t
hash(const struct store_key *k)
{
	return table_slot(k->bucket, k->bucket_len, k->key, k->key_len) * 2654435761u +
	       (uint32_t)crc64_nvme(0, k->key, k->key_len);
}

void
move_note(struct mover *m, const struct store_key *k)
{
	struct move_changed *ch = &m->changed;
	struct move_key **list, *at;

	pthread_mutex_lock(&ch->lock);
	check(ch->keys);
	list = &ch->keys->list[hash(k) % MOVE_KEY_LISTS];
	for (at = *list; at && !(key_same_name(&at->key, k) && at->key.copies == k->copies);)
		at = at->next;
	if (!at && ch->keys->nr < KEYS_MAX)
		at = malloc(sizeof *at + k->bucket_len + k->key_len);
	else if (at)
		list = NULL;
	if (!at) {
		ch->no_memory = true;
	} else if (list) {
		at->key = key_copy(at->name, k);
		at->next = *list;
		*list = at;
		ch->keys->nr++;
	}
	pthread_mutex_unlock(&ch->lock);
}

void
move_on_change(void *cookie, const struct store_key *k)
{
	struct mover *m = cookie;

	/* A swap sends no keys, because primary and secondary both receive every change. */
	if (RULE_MOVE_WATCH && m->kind != MOVE_SWAP)
		move_note(m, k);
}

void
move_keys_free(struct move_keys *keys)
{
	for (int i = 0; keys && i < MOVE_KEY_LISTS; i++) {
		for (struct move_key *k = keys->list[i], *next; k; k = next) {
			next = k->next;
			free(k);
		}
	}
	free(keys);
}

struct move_keys *
move_take_changed(struct mover *m, bool *ret_lost)
{
	struct move_changed *ch = &m->changed;
	struct move_keys *fresh = calloc(1, sizeof *fresh), *old;

	if (!fresh)
		return NULL;
	pthread_mutex_lock(&ch->lock);
	old = ch->keys;
	check(old);
	ch->keys = fresh;
	*ret_lost = ch->no_memory;
	ch->no_memory = false;
	pthread_mutex_unlock(&ch->lock);
	return old;
}

size_t
move_changed_nr(struct mover *m)
{
	struct move_changed *ch = &m->changed;
	size_t nr;

	pthread_mutex_lock(&ch->lock);
	check(ch->keys);
	nr = ch->no_memory ? SIZE_MAX : ch->keys->nr;
	pthread_mutex_unlock(&ch->lock);
	return nr;
}
