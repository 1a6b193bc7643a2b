/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory regions: registered with every device that has a transport, by any thread, while others post.
 *
 * A region's number is its slot and, above it, the how manieth use of the slot that is; a context keeps each
 * slot's local key together with that count in one word.  So a post reads one word, and a number that is not
 * the slot's any more is refused.  Numbers do not come again: a slot whose counts are used up is left alone.
 *
 *   FREE --add--> LIVE --del--> GOING --no device can touch it any more--> FREE (or SPENT)
 *
 * A context's words lie in chunks, which are made when their first slot is used and stay where they are.
 * They are written under region_lock; registrations too, and without it by who closes a context that nobody
 * refers to any more.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the context has of the slot's chunk; NULL: nothing. */
static struct region_keys *
keys_of(const struct rdma_context *c, int slot)
{
	return atomic_load_explicit(&c->keys[slot / REGION_CHUNK], memory_order_acquire);
}

static int
region_register(struct rdma_context *c, int slot, const struct rdma_region *g)
{
	struct region_keys *keys = keys_of(c, slot);
	int access = IBV_ACCESS_LOCAL_WRITE, at = slot % REGION_CHUNK;

	/* We start every transfer, so no peer ever needs access to our memory: local writes (by READs)
	 * only.  Their order is nobody's business: no byte is looked at before its completion, which comes
	 * last in any case.  A driver that does not know the flag leaves it out. */
	if (relaxed_ordering(c->conf))
		access |= IBV_ACCESS_RELAXED_ORDERING;
	if (!keys) {
		keys = calloc(1, sizeof *keys);
		if (!keys)
			return -ENOMEM;
		atomic_store_explicit(&c->keys[slot / REGION_CHUNK], keys, memory_order_release);
	}
	errno = 0;
	keys->mr[at] = ibv_reg_mr(c->pd, g->iov.iov_base, g->iov.iov_len, access);
	if (!keys->mr[at])
		return errno ? -errno : -ENOMEM;
	atomic_store_explicit(&keys->key[at], (uint64_t)g->count << 32 | keys->mr[at]->lkey,
			      memory_order_release);
	return 0;
}

int
regions_register(struct rdma *rd, struct rdma_context *c)
{
	int r = 0;

	for (int i = 0; r == 0 && c->transport_nr && i < rd->region_nr; i++) {
		if (rd->region[i].state == REGION_LIVE)
			r = region_register(c, i, &rd->region[i]);
	}
	return r;
}

void
regions_deregister(struct rdma_context *c)
{
	for (int i = 0; i < RDMA_REGIONS_MAX; i++) {
		struct region_keys *keys = keys_of(c, i);

		if (!keys) {
			i += REGION_CHUNK - 1;
			continue;
		}
		atomic_store_explicit(&keys->key[i % REGION_CHUNK], 0, memory_order_release);
		if (keys->mr[i % REGION_CHUNK] && ibv_dereg_mr(keys->mr[i % REGION_CHUNK]))
			log_limited(LOG_WARN, "%s: region %d cannot be deregistered",
				    c->dev ? c->dev->name : "a device", i);
		keys->mr[i % REGION_CHUNK] = NULL;
	}
}

void
regions_free(struct rdma_context *c)
{
	for (int i = 0; i < RDMA_REGIONS_MAX / REGION_CHUNK; i++)
		free(c->keys[i]);
}

static int
deregister(struct rdma_context *c, int slot)
{
	struct region_keys *keys = keys_of(c, slot);
	int at = slot % REGION_CHUNK, r;

	if (!keys)
		return 0;
	atomic_store_explicit(&keys->key[at], 0, memory_order_release);
	if (!keys->mr[at])
		return 0;
	r = ibv_dereg_mr(keys->mr[at]);
	if (r == 0)
		keys->mr[at] = NULL;
	return -r;
}

/* Takes the region that is being added back from the first nr devices. */
static void
withdraw(struct rdma *rd, int slot, int nr)
{
	for (int i = 0; i < nr; i++) {
		struct rdma_context *c = context_get(rd->dev[i]);

		if (!c)
			continue;
		if (deregister(c, slot) < 0)
			log_limited(LOG_WARN, "%s: region %d cannot be deregistered", rd->dev[i]->name, slot);
		context_put(c);
	}
}

/* Destroying may have been said to be done by a library that cannot reach the device any more, while the
 * device goes on (a driver that is being unbound): it is true if the device still answers. */
static bool
answers(struct rdma_context *c)
{
	struct ibv_port_attr attr;

	return !context_is_given_up(c) && ibv_query_port(c->ctx, 1, &attr) == 0;
}

/* Says whether a device that refused (r) is only dead: it gets all regions when it is reopened. */
static bool
has_died(struct rdma_context *c, int r)
{
	if (r == -ENOMEM || answers(c))
		return false;
	if (!context_is_given_up(c))
		device_lost_region(c->dev);
	return true;
}

static int
register_with_all(struct rdma *rd, int slot, char *err, size_t err_len)
{
	const struct rdma_region *g = &rd->region[slot];

	for (int i = 0; i < rd->dev_nr; i++) {
		struct rdma_context *c = context_get(rd->dev[i]);
		int r;

		if (!c)
			continue; /* it gets them all when it is reopened */
		r = c->transport_nr ? region_register(c, slot, g) : 0;
		if (r < 0 && has_died(c, r))
			r = 0;
		context_put(c);
		if (r == 0)
			continue;
		if (r == -ENOMEM)
			snprintf(err, err_len,
				 "%s: %zu bytes of buffers cannot be registered: raise the limit of locked "
				 "memory (LimitMEMLOCK=, ulimit -l) to %d times all buffers (memory.buffers, "
				 "memory.http_buffers): once for each adapter, and once for io_uring",
				 rd->dev[i]->name, g->iov.iov_len, rd->dev_nr + 1);
		else
			snprintf(err, err_len, "%s: %zu bytes of buffers cannot be registered: %s",
				 rd->dev[i]->name, g->iov.iov_len, strerror(-r));
		withdraw(rd, slot, i);
		return r;
	}
	return 0;
}

/* A slot that is free, made if there is none: its number, -ENOSPC or -ENOMEM. */
static int
slot_find(struct rdma *rd)
{
	int cap = rd->region_cap ? 2 * rd->region_cap : 16, slot = rd->region_free;
	struct rdma_region *more;

	if (slot >= 0)
		return slot;
	if (rd->region_nr == RDMA_REGIONS_MAX)
		return -ENOSPC;
	if (rd->region_nr == rd->region_cap) {
		more = realloc(rd->region, (size_t)cap * sizeof *more);
		if (!more)
			return -ENOMEM;
		rd->region = more;
		rd->region_cap = cap;
	}
	slot = rd->region_nr++;
	rd->region[slot] = (struct rdma_region){ .state = REGION_FREE, .count = 1, .next = -1 };
	rd->region_free = slot;
	return slot;
}

int
rdma_region_add(struct rdma *rd, void *mem, size_t len, uint64_t *ret_region, char *err, size_t err_len)
{
	int slot, r;

	pthread_mutex_lock(&rd->region_lock);
	slot = slot_find(rd);
	if (slot < 0) {
		pthread_mutex_unlock(&rd->region_lock);
		if (slot == -ENOSPC)
			snprintf(err, err_len, "more than %d memory regions", RDMA_REGIONS_MAX);
		else
			snprintf(err, err_len, "out of memory");
		return slot;
	}
	rd->region[slot].iov = (struct iovec){ .iov_base = mem, .iov_len = len };
	r = register_with_all(rd, slot, err, err_len);
	if (r == 0) {
		rd->region_free = rd->region[slot].next;
		rd->region[slot].state = REGION_LIVE;
		*ret_region = (uint64_t)rd->region[slot].count << 32 | (uint32_t)slot;
	}
	pthread_mutex_unlock(&rd->region_lock);
	return r;
}

/* ---- removing ---- */

/* Takes a region from one device: 0, or what rdma_region_del() says. */
static int
leave(struct rdma_device *dev, struct rdma_region *g, int slot)
{
	struct rdma_context *c = context_get(dev);
	unsigned *until = &g->until[dev->index];
	const struct region_keys *keys = c ? keys_of(c, slot) : NULL;
	bool had = keys && keys->mr[slot % REGION_CHUNK];
	int r = c ? deregister(c, slot) : 0;

	if (had && !answers(c)) {
		*until = c->nr;
		if (!context_is_given_up(c))
			device_lost_region(dev);
		r = 0;
	}
	if (c)
		context_put(c);
	/* One that was given up may have it too: the latest there was.  Its own memory may be gone, where it
	 * is being closed. */
	pthread_mutex_lock(&dev->lock);
	if (dev->old && dev->opened > *until)
		*until = dev->opened;
	pthread_mutex_unlock(&dev->lock);
	return r < 0 ? r : atomic_load(&dev->closed) < *until ? -EINPROGRESS : 0;
}

int
rdma_region_del(struct rdma *rd, uint64_t region)
{
	uint32_t slot = (uint32_t)region;
	struct rdma_region *g;
	int ret = 0;

	pthread_mutex_lock(&rd->region_lock);
	g = slot < (uint32_t)rd->region_nr ? &rd->region[slot] : NULL;
	if (!g || (g->state != REGION_LIVE && g->state != REGION_GOING) || g->count != region >> 32) {
		pthread_mutex_unlock(&rd->region_lock);
		return -ENOENT;
	}
	g->state = REGION_GOING;
	for (int i = 0; i < rd->dev_nr; i++) {
		int r = leave(rd->dev[i], g, (int)slot);

		ret = ret ? ret : r;
	}
	if (ret == 0) {
		memset(g->until, 0, sizeof g->until);
		g->state = g->count < UINT32_MAX ? REGION_FREE : REGION_SPENT;
		if (g->state == REGION_FREE) {
			g->count++;
			g->next = rd->region_free;
			rd->region_free = (int)slot;
		}
	}
	pthread_mutex_unlock(&rd->region_lock);
	return ret;
}
