/*
 * One device: opening it, its protection domain and memory regions, and whether it can do DC.  Main thread,
 * and the recovery helper when it opens a device anew.  Verbs' two error conventions (positive errno here,
 * NULL there) end in this folder.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *
device_why_not(struct ibv_device *dev)
{
	if (!mlx5dv_is_supported(dev))
		return "no DC transport: not an mlx5 device";
	return NULL;
}

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
context_open(struct ibv_device *ibdev, struct rdma_context **ret_c, const char **ret_why)
{
	struct mlx5dv_context dv = { 0 };
	struct rdma_context *c = calloc(1, sizeof *c);
	int r = -ENOMEM;

	*ret_why = "out of memory";
	if (!c)
		return r;
	errno = 0;
	c->ctx = ibv_open_device(ibdev);
	if (!c->ctx) {
		r = errno ? -errno : -EIO;
		*ret_why = "it cannot be opened";
		goto fail;
	}
	r = ibv_query_device(c->ctx, &c->attr);
	if (r) {
		r = -r;
		*ret_why = "it cannot be queried";
		goto fail;
	}
	r = mlx5dv_query_device(c->ctx, &dv);
	if (r) {
		r = -r;
		*ret_why = "no DC transport: the mlx5 interface does not answer";
		goto fail;
	}
	errno = 0;
	c->pd = ibv_alloc_pd(c->ctx);
	if (!c->pd) {
		r = errno ? -errno : -ENOMEM;
		*ret_why = "no protection domain";
		goto fail;
	}
	r = context_probe_dc(c);
	if (r < 0) {
		*ret_why = "no DC transport: an initiator cannot be created";
		goto fail;
	}
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
	const char *name = c->dev ? c->dev->name : "a device";
	int r = 0;

	for (int i = 0; i < RDMA_REGIONS_MAX; i++) {
		if (c->mr[i] && ibv_dereg_mr(c->mr[i]))
			log_limited(LOG_WARN, "%s: region %d cannot be deregistered", name, i);
		c->mr[i] = NULL;
	}
	if (c->pd && ibv_dealloc_pd(c->pd))
		log_warn("%s: its protection domain cannot be given back", name);
	c->pd = NULL;
	errno = 0;
	if (c->ctx && ibv_close_device(c->ctx))
		r = errno ? -errno : -EIO;
	if (r == 0)
		free(c);
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
	r = context_open(ibdev, &c, ret_why);
	if (r < 0) {
		free(dev);
		return r;
	}
	dev->rd = rd;
	snprintf(dev->name, sizeof dev->name, "%s", ibv_get_device_name(ibdev));
	dev->numa_node = device_read_numa_node(dev->name);
	pthread_mutex_init(&dev->lock, NULL);
	pthread_rwlock_init(&dev->event_lock, NULL);
	dev->async_fd = c->ctx->async_fd;
	dev->attr = c->attr;
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

/*
 * A DC initiator: a queue pair of the driver's own type, with the two operations we post declared up front.
 * Nothing else towards the client can leave through it (item 17).
 */
struct ibv_qp *
dci_create(struct rdma_context *c, struct ibv_cq *cq, int send_depth, int max_sge)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = (uint32_t)send_depth, .max_send_sge = (uint32_t)max_sge },
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = c->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};

	return mlx5dv_create_qp(c->ctx, &attr, &dv);
}

/* No capability bit says DC; creating one initiator does (as libraries in the field find out at their first
 * transfer). */
int
context_probe_dc(struct rdma_context *c)
{
	struct ibv_cq *cq = ibv_create_cq(c->ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp;
	int r = 0;

	if (!cq)
		return errno ? -errno : -ENOMEM;
	qp = dci_create(c, cq, 4, 1);
	if (!qp)
		r = errno ? -errno : -EOPNOTSUPP;
	else
		ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	return r;
}

static int
region_register(const struct rdma *rd, struct rdma_context *c, int region)
{
	const struct iovec *iov = &rd->region[region];

	/* We start every transfer, so no peer ever needs access to our memory: local writes (by READs)
	 * only. */
	errno = 0;
	c->mr[region] = ibv_reg_mr(c->pd, iov->iov_base, iov->iov_len, IBV_ACCESS_LOCAL_WRITE);
	return c->mr[region] ? 0 : errno ? -errno : -ENOMEM;
}

int
regions_register(struct rdma *rd, struct rdma_context *c)
{
	int r = 0;

	for (int i = 0; r == 0 && i < rd->region_nr; i++)
		r = region_register(rd, c, i);
	return r;
}

/* The region that is being added, with the first nr devices: nobody keeps it. */
static void
region_withdraw(struct rdma *rd, int nr)
{
	for (int i = 0; i < nr; i++) {
		struct rdma_context *c = context_get(rd->dev[i]);

		if (!c)
			continue;
		ibv_dereg_mr(c->mr[rd->region_nr]);
		c->mr[rd->region_nr] = NULL;
		context_put(c);
	}
}

int
rdma_region_add(struct rdma *rd, void *mem, size_t len, int *ret_region, char *err, size_t err_len)
{
	int region = rd->region_nr, r = 0;

	if (region >= RDMA_REGIONS_MAX) {
		snprintf(err, err_len, "more than %d memory regions", RDMA_REGIONS_MAX);
		return -ENOSPC;
	}
	pthread_mutex_lock(&rd->region_lock);
	rd->region[region] = (struct iovec){ .iov_base = mem, .iov_len = len };
	for (int i = 0; i < rd->dev_nr; i++) {
		struct rdma_context *c = context_get(rd->dev[i]);

		if (!c)
			continue; /* it gets them all when it is opened anew */
		r = region_register(rd, c, region);
		context_put(c);
		if (r == 0)
			continue;
		if (r == -ENOMEM)
			snprintf(err, err_len,
				 "%s: %zu bytes of buffers cannot be registered: raise the limit of locked "
				 "memory "
				 "(LimitMEMLOCK=, ulimit -l) to at least memory.buffers",
				 rd->dev[i]->name, len);
		else
			snprintf(err, err_len, "%s: %zu bytes of buffers cannot be registered: %s",
				 rd->dev[i]->name, len, strerror(-r));
		region_withdraw(rd, i);
		break;
	}
	if (r == 0) {
		rd->region_nr++;
		*ret_region = region;
	}
	pthread_mutex_unlock(&rd->region_lock);
	return r;
}
