/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device whose context has died, and how it comes to another one.
 *
 *   well --> fatal --1 s, and no port is active--> given up --nobody refers to it--> closed --> opened
 *   ^  ^       |                                                                       ^  |fails    |
 *   |  `-------' a port is active again                                                `--'1 s      |
 *   `-----------------------------------------------------------------------------------------------'
 *
 * The async helper decides (device_tend()); what may block, closing and opening, is a job of the recovery
 * helper of the device's first rail, so that other devices' events are heard meanwhile.  Only one context of a device exists at a time: the old one is closed before another is
 * opened, which also is what locked memory has room for.
 *
 * A call that hangs in the kernel keeps its context, and so the device: nothing that the daemon does could
 * make sure that the hardware has let go.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#define PATIENCE_NS (1 * NS_PER_S) /* a device that survives its reset has that long to say so */
#define AGAIN_NS (1 * NS_PER_S)

/* ---- the job, on the recovery helper ---- */

static int
close_old(struct rdma_device *dev)
{
	struct rdma_context *c = dev->old; /* ours alone: nobody refers to it */
	struct rdma *rd = dev->rd;
	unsigned nr = c->nr;
	int r;

	for (int i = 0; i < rd->rail_nr; i++) {
		if (rd->rail[i]->dev == dev)
			ah_cache_drop(rd->rail[i]);
	}
	r = context_close(c);
	if (r < 0) {
		log_limited(LOG_WARN, "%s: its context cannot be closed: %s", dev->name, strerror(-r));
		return r;
	}
	pthread_mutex_lock(&dev->lock);
	dev->old = NULL;
	pthread_mutex_unlock(&dev->lock);
	atomic_store(&dev->closed, nr);
	log_info("%s: the old context is closed", dev->name);
	watches_notify(rd);
	return 0;
}

static bool
is_another(const struct rdma_device *dev, __be64 guid)
{
	for (int i = 0; i < dev->rd->dev_nr; i++) {
		if (dev->rd->dev[i] != dev && dev->rd->dev[i]->guid == guid)
			return true;
	}
	return false;
}

/* The device with its GUID: after a reset it may have another name, and its name may be another's.  An adapter that was replaced
 * has a new GUID and, in the same slot, the old name. */
static struct ibv_device *
find_again(const struct rdma_device *dev, struct ibv_device **list, int nr)
{
	struct ibv_device *named = NULL;

	for (int i = 0; i < nr; i++) {
		if (dev->guid && ibv_get_device_guid(list[i]) == dev->guid)
			return list[i];
		if (strcmp(ibv_get_device_name(list[i]), dev->name) == 0 &&
		    !is_another(dev, ibv_get_device_guid(list[i])))
			named = list[i];
	}
	return named;
}

static int
open_again(const struct rdma_device *dev, struct rdma_context **ret_c, const char **ret_why)
{
	int nr = 0, r = -ENODEV;
	struct ibv_device **list = ibv_get_device_list(&nr);
	struct ibv_device *found = list ? find_again(dev, list, nr) : NULL;

	*ret_why = "there is no such device";
	if (found && strcmp(ibv_get_device_name(found), dev->name) != 0)
		log_note("%s is called %s now", dev->name, ibv_get_device_name(found));
	if (found)
		r = context_open(&dev->rd->conf, found, ret_c, ret_why);
	if (list)
		ibv_free_device_list(list);
	return r;
}

/* Says whether a context has every transport that the device's rails have. */
static bool
can_replace(const struct rdma_device *dev, const struct rdma_context *c)
{
	for (int i = 0; i < dev->transport_nr; i++) {
		bool has = false;

		for (int k = 0; k < c->transport_nr; k++)
			has |= c->transport[k] == dev->transport[i];
		if (!has)
			return false;
	}
	return true;
}

static int
open_new(struct rdma_device *dev)
{
	struct rdma *rd = dev->rd;
	char why_not[WHY_BYTES];
	struct rdma_context *c;
	const char *why;
	int r = open_again(dev, &c, &why);

	if (r == 0) {
		why = "its events cannot be read";
		c->dev = dev;
		c->nr = dev->opened + 1;
		c->refs = 1;
		r = fd_nonblock(c->ctx->async_fd);
		if (r == 0 && !can_replace(dev, c)) {
			snprintf(why_not, sizeof why_not, "%s", c->why);
			why = why_not;
			r = -EOPNOTSUPP;
		}
		pthread_mutex_lock(&rd->region_lock);
		if (r == 0) {
			why = "buffers cannot be registered";
			r = regions_register(rd, c);
		}
		if (r == 0) {
			pthread_mutex_lock(&dev->lock);
			dev->cur = c;
			dev->opened = c->nr;
			pthread_mutex_unlock(&dev->lock);
		}
		pthread_mutex_unlock(&rd->region_lock);
		if (r < 0 && context_close(c) < 0)
			log_limited(LOG_WARN, "%s cannot be closed", dev->name);
	}
	if (r < 0)
		log_limited(LOG_INFO, "%s cannot be re-opened yet: %s: %s", dev->name, why, strerror(-r));
	return r;
}

static void
reopen_run(struct rdma_job *job)
{
	struct rdma_device *dev = container_of(job, struct rdma_device, job);

	if (!dev->old || close_old(dev) == 0)
		open_new(dev);
	atomic_store(&dev->job_state, REOPEN_DONE);
	async_wake(dev->rd);
}

/* ---- the async helper ---- */

/* A device that reported itself dead serves again as soon as one of its ports says it is active. */
static bool
is_well_again(struct rdma_device *dev)
{
	struct rdma_context *c = context_get(dev);
	struct rdma *rd = dev->rd;
	struct ibv_port_attr attr;
	bool active = false;

	for (int i = 0; c && i < rd->rail_nr; i++) {
		active |= rd->rail[i]->dev == dev && ibv_query_port(c->ctx, rd->rail[i]->port, &attr) == 0 &&
			  attr.state == IBV_PORT_ACTIVE;
	}
	if (c)
		context_put(c);
	return active;
}

static void
give_up(struct rdma_device *dev)
{
	struct rdma *rd = dev->rd;

	log_warn("%s: its context has died: its objects are abandoned, and the device is re-opened as "
		 "soon "
		 "as that works",
		 dev->name);
	dev->async_fd = -1;
	for (int i = 0; i < rd->rail_nr; i++) {
		if (rd->rail[i]->dev == dev)
			ah_cache_forget_all(rd->rail[i]);
	}
	pthread_mutex_lock(&dev->lock);
	dev->old = dev->cur;
	dev->old->refs--;
	dev->cur = NULL;
	pthread_mutex_unlock(&dev->lock);
	atomic_store(&dev->serving, 0);
	watches_notify(rd);
}

static void
begin_to_serve(struct rdma_device *dev)
{
	struct rdma_context *c = context_get(dev);

	check(c);
	dev->async_fd = c->ctx->async_fd;
	device_renew(dev, c);
	device_refresh(dev, 0);
	log_event(LOG_EV_REOPENED, LOG_NOTE, "%s was re-opened, firmware %.*s", dev->name,
		  (int)sizeof c->attr.fw_ver, c->attr.fw_ver);
	atomic_store(&dev->serving, c->nr);
	device_set_fatal(dev, false);
	context_put(c);
}

/* Is a context there that nobody refers to, or none at all? */
static bool
can_reopen(struct rdma_device *dev)
{
	bool can;

	pthread_mutex_lock(&dev->lock);
	can = !dev->cur && (!dev->old || dev->old->refs == 0);
	pthread_mutex_unlock(&dev->lock);
	return can;
}

static int
ms_until(uint64_t ns)
{
	uint64_t now = clock_ns();

	return ns > now ? (int)((ns - now) / NS_PER_MS) + 1 : 0;
}

int
device_tend(struct rdma_device *dev)
{
	bool done = atomic_load(&dev->job_state) == REOPEN_DONE;

	if (!dev->fatal)
		return -1;
	if (atomic_load(&dev->job_state) == REOPEN_OUT)
		return -1; /* it wakes us */
	if (atomic_load(&dev->serving)) {
		if (!device_is_broken(dev) && is_well_again(dev)) {
			device_refresh(dev, 0);
			device_set_fatal(dev, false);
			return -1;
		}
		if (ms_until(dev->fatal_ns + PATIENCE_NS) > 0)
			return ms_until(dev->fatal_ns + PATIENCE_NS);
		give_up(dev);
		dev->again_ns = 0;
	}
	if (done) {
		struct rdma_context *c = context_get(dev);

		atomic_store(&dev->job_state, REOPEN_IDLE);
		dev->again_ns = clock_ns() + AGAIN_NS;
		if (c) {
			context_put(c);
			begin_to_serve(dev);
			return -1;
		}
	}
	if (!can_reopen(dev))
		return -1; /* who lets go last wakes us */
	if (ms_until(dev->again_ns) > 0)
		return ms_until(dev->again_ns);
	atomic_store(&dev->job_state, REOPEN_OUT);
	dev->job.run = reopen_run;
	rdma_job_post(device_first_rail(dev), &dev->job);
	return -1;
}
