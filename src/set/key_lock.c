/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the key locks of a set; see key_lock.h. */
#include "set/key_lock.h"

#include "store/key_copy.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct held_key {
	struct held_key *next;
	struct list queue; /* entries of struct set_hold; the first entry has the lock */
	struct watcher *watchers;
	bool is_open;         /* true: the key is in doubt */
	struct store_key key; /* stored in name[] */
	char name[];
};

/* A wait until the current holder of a key releases the key. Linked in the list of this key. w: wait of the
 * caller, which may have an entry at each of several keys. */
struct watcher {
	struct watcher *next;
	struct merge_wait *w;
};

void
set_holds_init(struct set_holds *hs)
{
	for (int i = 0; i < HOLD_SHARDS; i++)
		pthread_mutex_init(&hs->shard[i].lock, NULL);
}

void
set_holds_fini(struct set_holds *hs)
{
	for (int i = 0; i < HOLD_SHARDS; i++) {
		for (int k = 0; k < HOLD_CHAINS; k++) {
			for (struct held_key *hk = hs->shard[i].chain[k], *next; hk; hk = next) {
				next = hk->next;
				check(hk->is_open && list_empty(&hk->queue));
				free(hk);
			}
		}
		pthread_mutex_destroy(&hs->shard[i].lock);
	}
}

/*
 * Locks the shard of a key, and returns the shard. *ret_link is the link to the key's entry, or the link at
 * which to insert an entry.
 */
static struct hold_shard *
lock(struct set_holds *hs, const struct store_key *k, struct held_key ***ret_link)
{
	uint64_t hash = crc64_nvme(crc64_nvme(0, k->bucket, k->bucket_len), k->key, k->key_len);
	struct hold_shard *sh = &hs->shard[hash % HOLD_SHARDS];
	struct held_key **link = &sh->chain[hash / HOLD_SHARDS % HOLD_CHAINS];

	pthread_mutex_lock(&sh->lock);
	while (*link && !key_same_name(&(*link)->key, k))
		link = &(*link)->next;
	*ret_link = link;
	return sh;
}

int
set_hold(struct set_holds *hs, const struct store_key *k, struct set_hold *h)
{
	struct held_key **link, *hk;
	struct hold_shard *sh;
	int r;

	check(h->mb && h->go && !h->key);
	sh = lock(hs, k, &link);
	if (*link) {
		r = (*link)->is_open ? -EAGAIN : 0;
	} else {
		hk = malloc(sizeof *hk + k->bucket_len + k->key_len);
		r = hk ? 1 : -ENOMEM;
	}
	if (r > 0) {
		*hk = (struct held_key){ .key = key_copy(hk->name, k) };
		list_init(&hk->queue);
		*link = hk;
		sh->nr++;
	}
	if (r >= 0) {
		h->key = *link;
		list_push_tail(&h->key->queue, &h->link);
	}
	pthread_mutex_unlock(&sh->lock);
	return r;
}

static void
wake(struct watcher *list, int error)
{
	while (list) {
		struct watcher *next = list->next;
		struct merge_wait *w = list->w;

		free(list);
		if (error)
			atomic_store(&w->error, error);
		if (atomic_fetch_sub(&w->left, 1) == 1)
			mailbox_post(w->mb, &w->msg, w->go);
		list = next;
	}
}

void
set_release(struct set_holds *hs, struct set_hold *h, bool is_open)
{
	struct held_key *hk = h->key, **link;
	struct hold_shard *sh = lock(hs, &hk->key, &link);
	struct watcher *watchers = hk->watchers;
	struct list *l;
	int error;

	check(*link == hk && hk->queue.next == &h->link);
	hk->is_open |= is_open;
	error = hk->is_open ? -EAGAIN : 0;
	hk->watchers = NULL;
	list_del(&h->link);
	h->key = NULL;
	l = hk->queue.next;
	if (l != &hk->queue) {
		struct set_hold *next = container_of(l, struct set_hold, link);

		mailbox_post(next->mb, &next->msg, next->go);
	} else if (!hk->is_open) {
		*link = hk->next;
		sh->nr--;
		free(hk);
	}
	pthread_mutex_unlock(&sh->lock);
	wake(watchers, error);
}

bool
set_is_open(const struct set_hold *h)
{
	check(h->key);
	return h->key->is_open;
}

bool
set_is_held(struct set_holds *hs, const struct store_key *k)
{
	struct held_key **link;
	struct hold_shard *sh = lock(hs, k, &link);
	bool is = *link != NULL;

	pthread_mutex_unlock(&sh->lock);
	return is;
}

static int
watch_shard(struct hold_shard *sh, const char *bucket, size_t len, struct merge_wait *w)
{
	int r = 0;

	pthread_mutex_lock(&sh->lock);
	for (int i = 0; r == 0 && sh->nr && i < HOLD_CHAINS; i++) {
		for (struct held_key *hk = sh->chain[i]; r == 0 && hk; hk = hk->next) {
			struct watcher *one;

			if (hk->key.bucket_len != len || memcmp(hk->name, bucket, len) != 0)
				continue;
			one = hk->is_open ? NULL : malloc(sizeof *one);
			if (!one) {
				r = hk->is_open ? -EAGAIN : -ENOMEM;
				break;
			}
			atomic_fetch_add(&w->left, 1);
			*one = (struct watcher){ hk->watchers, w };
			hk->watchers = one;
		}
	}
	pthread_mutex_unlock(&sh->lock);
	return r;
}

int
set_wait_held(struct set_holds *hs, const char *bucket, size_t len, struct merge_wait *w)
{
	int r = 0;

	/* The count starts at 1 for this call, so that no watcher can end the wait before all watchers are
	 * counted. */
	atomic_store(&w->left, 1);
	atomic_store(&w->error, 0);
	for (int i = 0; r == 0 && i < HOLD_SHARDS; i++)
		r = watch_shard(&hs->shard[i], bucket, len, w);
	if (r < 0)
		atomic_store(&w->error, r);
	if (atomic_fetch_sub(&w->left, 1) == 1)
		return r < 0 ? r : atomic_load(&w->error) ? atomic_load(&w->error) : 1;
	/* The wait continues: the watchers that were added before the error will be notified. */
	return 0;
}
