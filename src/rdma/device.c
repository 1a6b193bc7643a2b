/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device: opening it, its protection domain, and what it can do.  Main thread, and the recovery helper
 * when it reopens a device.  Verbs' two error conventions (positive errno here,
 * NULL there) end in this folder.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
device_read_numa_node(const char *name)
{
	char path[160], text[16];
	int node = -1, fd;
	ssize_t n;

	snprintf(path, sizeof path, "/sys/class/infiniband/%s/device/numa_node", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = 0;
	return sscanf(text, "%d", &node) == 1 ? node : -1;
}

int
context_open(const struct conf_rdma *conf, struct ibv_device *ibdev, struct rdma_context **ret_c,
	     const char **ret_why)
{
	struct rdma_context *c = calloc(1, sizeof *c);
	int r = -ENOMEM;

	*ret_why = "out of memory";
	if (!c)
		return r;
	c->conf = conf;
	errno = 0;
	c->ctx = ibv_open_device(ibdev);
	if (!c->ctx) {
		r = errno ? -errno : -EIO;
		*ret_why =
			r == -EPERM || r == -EACCES
				? "its file in /dev/infiniband is not open to this process: its mode, or the "
				  "service's DeviceAllow=, as it was when the service started"
				: "it cannot be opened";
		goto fail;
	}
	r = ibv_query_device(c->ctx, &c->attr);
	if (r) {
		r = -r;
		*ret_why = "it cannot be queried";
		goto fail;
	}
	errno = 0;
	c->pd = ibv_alloc_pd(c->ctx);
	if (!c->pd) {
		r = errno ? -errno : -ENOMEM;
		*ret_why = "no protection domain";
		goto fail;
	}
	context_probe(c);
	*ret_c = c;
	return 0;
fail:
	context_close(c);
	return r;
}

/*
 * The kernel ends all that the hardware does for a context when its descriptor is closed, whatever became of
 * the single objects: so this is the last word, where destroying them was refused, or was said to be done by
 * a library that had only heard that the device is gone.
 */
int
context_close(struct rdma_context *c)
{
	int r = 0;

	regions_deregister(c);
	if (c->pd && ibv_dealloc_pd(c->pd))
		log_warn("%s: its protection domain cannot be given back",
			 c->dev ? c->dev->name : "a device");
	c->pd = NULL;
	errno = 0;
	if (c->ctx && ibv_close_device(c->ctx))
		r = errno ? -errno : -EIO;
	if (r == 0) {
		regions_free(c);
		free(c);
	}
	return r;
}

int
device_open(struct rdma *rd, struct ibv_device *ibdev, struct rdma_device **ret_dev, const char **ret_why)
{
	struct rdma_device *dev = calloc(1, sizeof *dev);
	struct rdma_context *c;
	int r;

	*ret_why = "out of memory";
	if (!dev)
		return -ENOMEM;
	r = context_open(&rd->conf, ibdev, &c, ret_why);
	if (r < 0) {
		free(dev);
		return r;
	}
	dev->rd = rd;
	snprintf(dev->name, sizeof dev->name, "%s", ibv_get_device_name(ibdev));
	dev->guid = ibv_get_device_guid(ibdev);
	dev->numa_node = device_read_numa_node(dev->name);
	pthread_mutex_init(&dev->lock, NULL);
	pthread_rwlock_init(&dev->event_lock, NULL);
	dev->async_fd = c->ctx->async_fd;
	dev->attr = c->attr;
	memcpy(dev->transport, c->transport, sizeof dev->transport);
	dev->transport_nr = c->transport_nr;
	dev->cur = c;
	dev->opened = 1;
	atomic_init(&dev->serving, 1);
	c->dev = dev;
	c->nr = 1;
	c->refs = 1;
	*ret_dev = dev;
	return 0;
}

void
device_free(struct rdma_device *dev)
{
	struct rdma_context *c;

	if (!dev)
		return;
	c = dev->cur ? dev->cur : dev->old;
	if (c && context_close(c) < 0)
		log_warn("%s cannot be closed", dev->name);
	pthread_rwlock_destroy(&dev->event_lock);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
}
