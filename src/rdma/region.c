/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory regions: registered with every device that has a transport, by any thread, while others post.
 *
 * A region's number is its slot and how often the slot was used before, and a context keeps each slot's local
 * key together with that count in one word.  So a post reads one word, and a number that is not the slot's
 * any more is refused.  Numbers do not come again: a slot whose counts are used up is left alone.
 *
 *   FREE --add--> LIVE --del--> GOING --no device can touch it any more--> FREE (or SPENT)
 *
 * The keys of a context are written under region_lock; its registrations too, and without it by who closes a
 * context that nobody refers to any more.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

#define COUNT_MAX ((unsigned)INT32_MAX / RDMA_REGIONS_MAX)

static int
region_register(struct rdma_context *c, int slot, const struct rdma_region *g)
{
	uint64_t count = g->count + 1;
	int access = IBV_ACCESS_LOCAL_WRITE;

	/* We start every transfer, so no peer ever needs access to our memory: local writes (by READs)
	 * only.  Their order is nobody's business: no byte is looked at before its completion, which comes
	 * last in any case.  A driver that does not know the flag leaves it out. */
	if (relaxed_ordering(c->conf))
		access |= IBV_ACCESS_RELAXED_ORDERING;
	errno = 0;
	c->mr[slot] = ibv_reg_mr(c->pd, g->iov.iov_base, g->iov.iov_len, access);
	if (!c->mr[slot])
		return errno ? -errno : -ENOMEM;
	atomic_store_explicit(&c->key[slot], count << 32 | c->mr[slot]->lkey, memory_order_release);
	return 0;
}

int
regions_register(struct rdma *rd, struct rdma_context *c)
{
	int r = 0;

	for (int i = 0; r == 0 && c->transport_nr && i < RDMA_REGIONS_MAX; i++) {
		if (rd->region[i].state == REGION_LIVE)
			r = region_register(c, i, &rd->region[i]);
	}
	return r;
}

void
regions_deregister(struct rdma_context *c)
{
	for (int i = 0; i < RDMA_REGIONS_MAX; i++) {
		atomic_store_explicit(&c->key[i], 0, memory_order_release);
		if (c->mr[i] && ibv_dereg_mr(c->mr[i]))
			log_limited(LOG_WARN, "%s: region %d cannot be deregistered",
				    c->dev ? c->dev->name : "a device", i);
		c->mr[i] = NULL;
	}
}

static int
deregister(struct rdma_context *c, int slot)
{
	int r;

	atomic_store_explicit(&c->key[slot], 0, memory_order_release);
	if (!c->mr[slot])
		return 0;
	r = ibv_dereg_mr(c->mr[slot]);
	if (r == 0)
		c->mr[slot] = NULL;
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

/* Says whether a device that refused (r) is only dead: it gets all regions when it is opened anew. */
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
			continue; /* it gets them all when it is opened anew */
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

int
rdma_region_add(struct rdma *rd, void *mem, size_t len, int *ret_region, char *err, size_t err_len)
{
	int slot = 0, r;

	pthread_mutex_lock(&rd->region_lock);
	while (slot < RDMA_REGIONS_MAX && rd->region[slot].state != REGION_FREE)
		slot++;
	if (slot == RDMA_REGIONS_MAX) {
		pthread_mutex_unlock(&rd->region_lock);
		snprintf(err, err_len, "more than %d memory regions", RDMA_REGIONS_MAX);
		return -ENOSPC;
	}
	rd->region[slot].iov = (struct iovec){ .iov_base = mem, .iov_len = len };
	r = register_with_all(rd, slot, err, err_len);
	if (r == 0) {
		rd->region[slot].state = REGION_LIVE;
		*ret_region = (int)(rd->region[slot].count * RDMA_REGIONS_MAX) + slot;
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
	bool had = c && c->mr[slot];
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
rdma_region_del(struct rdma *rd, int region)
{
	int slot = region % RDMA_REGIONS_MAX, ret = 0;
	struct rdma_region *g;

	if (region < 0)
		return -ENOENT;
	g = &rd->region[slot];
	pthread_mutex_lock(&rd->region_lock);
	if ((g->state != REGION_LIVE && g->state != REGION_GOING) ||
	    g->count != (unsigned)region / RDMA_REGIONS_MAX) {
		pthread_mutex_unlock(&rd->region_lock);
		return -ENOENT;
	}
	g->state = REGION_GOING;
	for (int i = 0; i < rd->dev_nr; i++) {
		int r = leave(rd->dev[i], g, slot);

		ret = ret ? ret : r;
	}
	if (ret == 0) {
		memset(g->until, 0, sizeof g->until);
		g->state = g->count < COUNT_MAX ? REGION_FREE : REGION_SPENT;
		g->count++;
	}
	pthread_mutex_unlock(&rd->region_lock);
	return ret;
}
