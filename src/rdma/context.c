/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References to an opening of a device.  Who makes something on a context refers to it; the last one to let
 * go of a context that was given up wakes the async helper, which has it closed (reopen.c).
 */
#include "rdma/rdma_int.h"

#include "base/check.h"

struct rdma_context *
context_get(struct rdma_device *dev)
{
	struct rdma_context *c;

	pthread_mutex_lock(&dev->lock);
	c = dev->cur;
	if (c)
		c->refs++;
	pthread_mutex_unlock(&dev->lock);
	return c;
}

void
context_hold(struct rdma_context *c)
{
	pthread_mutex_lock(&c->dev->lock);
	check(c->refs > 0);
	c->refs++;
	pthread_mutex_unlock(&c->dev->lock);
}

void
context_put(struct rdma_context *c)
{
	struct rdma_device *dev = c->dev;
	bool last;

	pthread_mutex_lock(&dev->lock);
	check(c->refs > 0);
	last = --c->refs == 0;
	pthread_mutex_unlock(&dev->lock);
	if (last)
		async_wake(dev->rd);
}

bool
context_is_given_up(const struct rdma_context *c)
{
	struct rdma_device *dev = c->dev;
	bool given_up;

	pthread_mutex_lock(&dev->lock);
	given_up = dev->cur != c;
	pthread_mutex_unlock(&dev->lock);
	return given_up;
}
