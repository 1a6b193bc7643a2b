/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of buckets, with their shards. */

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#include "rados/io/rstore.h"
#include "rados/io/usage.h"

#include <stdlib.h>
#include <string.h>

void
shard_init(struct rshard *s, const char *name, struct rbucket *rb)
{
	memset(s, 0, sizeof *s);
	memccpy(s->name, name, 0, sizeof s->name);
	pthread_mutex_init(&s->lock, NULL);
	list_init(&s->queue);
	list_init(&s->dirty);
	s->bucket = rb;
	s->is_own_unsure = true;
}

void
shard_fini(struct rshard *s)
{
	check(!s->is_busy && list_empty(&s->queue));
	pthread_mutex_destroy(&s->lock);
}

static struct rbucket **
cache_place(struct rstore *st, const char *name, size_t len)
{
	struct rbucket **link = &st->cache[crc64_nvme(0, name, len) % BUCKET_HASH];

	while (*link && ((*link)->name_len != len || memcmp((*link)->name, name, len) != 0))
		link = &(*link)->next;
	return link;
}

static void
rbucket_free(struct rbucket *rb)
{
	check(!rb->is_cached);
	for (uint32_t i = 0; i < rb->row.shards; i++)
		shard_fini(&rb->shard[i]);
	free(rb);
}

void
rbucket_release(struct rbucket *rb)
{
	uint32_t was = rb ? atomic_fetch_sub(&rb->refs, 1) : 2;

	check(was > 0);
	if (was == 1)
		rbucket_free(rb);
}

struct rbucket *
rbucket_get(struct rstore *st, const char *name, size_t len)
{
	struct rbucket *rb;

	pthread_mutex_lock(&st->cache_lock);
	rb = *cache_place(st, name, len);
	if (rb)
		atomic_fetch_add(&rb->refs, 1);
	pthread_mutex_unlock(&st->cache_lock);
	return rb;
}

/* Removes a bucket from the cache, under the lock. Returns true if the caller has to drop the reference of the cache. */
static bool
take_out(struct rbucket *rb)
{
	struct rbucket **link = cache_place(rb->store, rb->name, rb->name_len);

	if (!rb->is_cached)
		return false;
	check(*link == rb && rb->store->cache_nr > 0);
	*link = rb->next;
	rb->is_cached = false;
	rb->store->cache_nr--;
	usage_leave(rb);
	return true;
}

void
rbucket_is_there(struct rbucket *rb)
{
	atomic_store_explicit(&rb->there_ns, clock_ns(), memory_order_relaxed);
}

void
rbucket_doubt(struct rbucket *rb)
{
	atomic_store(&rb->there_ns, 0);
	atomic_store(&rb->is_doubtful, true);
}

void
rbucket_drop(struct rbucket *rb)
{
	bool was_there;

	pthread_mutex_lock(&rb->store->cache_lock);
	was_there = take_out(rb);
	pthread_mutex_unlock(&rb->store->cache_lock);
	if (was_there)
		rbucket_release(rb);
}

struct rbucket **
rbuckets_all(struct rstore *st, uint32_t *ret_nr)
{
	struct rbucket **list;
	uint32_t nr = 0;

	pthread_mutex_lock(&st->cache_lock);
	list = calloc(st->cache_nr + 1, sizeof(struct rbucket *));
	for (int i = 0; list && i < BUCKET_HASH; i++) {
		for (struct rbucket *rb = st->cache[i]; rb; rb = rb->next) {
			atomic_fetch_add(&rb->refs, 1);
			list[nr++] = rb;
		}
	}
	pthread_mutex_unlock(&st->cache_lock);
	*ret_nr = nr;
	return list;
}

static struct rbucket *
rbucket_new(struct rstore *st, const char *name, size_t len, const struct bucket_row *row)
{
	struct rbucket *rb = calloc(1, sizeof *rb + row->shards * sizeof rb->shard[0]);

	check(len > 0 && len <= STORE_BUCKET_MAX && row->shards > 0 && row->shards <= BUCKET_SHARDS_MAX);
	if (!rb)
		return NULL;
	rb->store = st;
	rb->row = *row;
	rb->serial = atomic_fetch_add(&st->bucket_serial, 1) + 1;
	rb->seen = atomic_load(&st->usage_turn);
	rb->name_len = (uint8_t)len;
	memcpy(rb->name, name, len);
	for (uint32_t i = 0; i < row->shards; i++)
		shard_init(&rb->shard[i], shard_name(row->uid, i).text, rb);
	return rb;
}

struct rbucket *
rbucket_put_in(struct rstore *st, const char *name, size_t len, const struct bucket_row *row)
{
	struct rbucket *rb = rbucket_get(st, name, len), *old, *unused = NULL, **link;

	if (rb && rid_same(rb->row.uid, row->uid)) {
		atomic_store(&rb->is_doubtful, false);
		rbucket_is_there(rb);
		return rb;
	}
	rbucket_release(rb);
	rb = rbucket_new(st, name, len, row);
	if (!rb)
		return NULL;
	rbucket_is_there(rb);
	atomic_store(&rb->refs, 2); /* one of the cache, one of the caller */
	pthread_mutex_lock(&st->cache_lock);
	link = cache_place(st, name, len);
	old = *link;
	if (old && rid_same(old->row.uid, row->uid)) {
		/* Another thread was faster. A shard exists once, because its queue is the order of its changes. */
		atomic_fetch_add(&old->refs, 1);
		unused = rb;
		rb = old;
		old = NULL;
	} else {
		if (old)
			take_out(old);
		link = cache_place(st, name, len);
		rb->next = *link;
		*link = rb;
		rb->is_cached = true;
		st->cache_nr++;
		usage_enter(rb);
	}
	pthread_mutex_unlock(&st->cache_lock);
	if (unused)
		rbucket_free(unused);
	rbucket_release(old);
	return rb;
}

void
rbuckets_fini(struct rstore *st)
{
	for (int i = 0; i < BUCKET_HASH; i++) {
		while (st->cache[i])
			rbucket_drop(st->cache[i]);
	}
}

struct rshard *
rbucket_shard(struct rbucket *rb, const char *key, size_t len)
{
	return &rb->shard[(crc64_nvme(0, key, len) >> 32) % rb->row.shards];
}
