/*
 * One device: opening it, its protection domain and memory regions, and whether it can do DC.  Main thread
 * (open, close). Verbs' two error conventions (positive errno here, NULL there) end in this folder.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

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

static int
read_numa_node(const char *name)
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
device_open(struct rdma *rd, struct ibv_device *ibdev, struct rdma_device **ret_dev, const char **ret_why)
{
	struct mlx5dv_context dv = { 0 };
	struct rdma_device *dev = calloc(1, sizeof *dev);
	int r = -ENOMEM;

	*ret_why = "out of memory";
	if (!dev)
		return r;
	dev->rd = rd;
	snprintf(dev->name, sizeof dev->name, "%s", ibv_get_device_name(ibdev));
	dev->numa_node = read_numa_node(dev->name);
	errno = 0;
	dev->ctx = ibv_open_device(ibdev);
	if (!dev->ctx) {
		r = errno ? -errno : -EIO;
		*ret_why = "it cannot be opened";
		goto fail;
	}
	r = ibv_query_device(dev->ctx, &dev->attr);
	if (r) {
		r = -r;
		*ret_why = "it cannot be queried";
		goto fail;
	}
	snprintf(dev->fw_ver, sizeof dev->fw_ver, "%.*s", (int)sizeof dev->attr.fw_ver, dev->attr.fw_ver);
	r = mlx5dv_query_device(dev->ctx, &dv);
	if (r) {
		r = -r;
		*ret_why = "no DC transport: the mlx5 interface does not answer";
		goto fail;
	}
	errno = 0;
	dev->pd = ibv_alloc_pd(dev->ctx);
	if (!dev->pd) {
		r = errno ? -errno : -ENOMEM;
		*ret_why = "no protection domain";
		goto fail;
	}
	r = device_probe_dc(dev);
	if (r < 0) {
		*ret_why = "no DC transport: an initiator cannot be created";
		goto fail;
	}
	*ret_dev = dev;
	return 0;
fail:
	device_free(dev);
	return r;
}

void
device_free(struct rdma_device *dev)
{
	if (!dev)
		return;
	for (int i = 0; i < RDMA_REGIONS_MAX; i++) {
		if (dev->mr[i] && ibv_dereg_mr(dev->mr[i]))
			log_warn("%s: region %d cannot be deregistered", dev->name, i);
	}
	if (dev->pd && ibv_dealloc_pd(dev->pd))
		log_warn("%s: its protection domain is still in use", dev->name);
	if (dev->ctx)
		ibv_close_device(dev->ctx);
	free(dev);
}

/*
 * A DC initiator: a queue pair of the driver's own type, with the two operations we post declared up front.
 * Nothing else towards the client can leave through it (item 17).
 */
struct ibv_qp *
dci_create(struct rdma_device *dev, struct ibv_cq *cq, int send_depth, int max_sge)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = (uint32_t)send_depth, .max_send_sge = (uint32_t)max_sge },
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = dev->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};

	return mlx5dv_create_qp(dev->ctx, &attr, &dv);
}

/* No capability bit says DC; creating one initiator does (as libraries in the field find out at their first
 * transfer). */
int
device_probe_dc(struct rdma_device *dev)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp;
	int r = 0;

	if (!cq)
		return errno ? -errno : -ENOMEM;
	qp = dci_create(dev, cq, 4, 1);
	if (!qp)
		r = errno ? -errno : -EOPNOTSUPP;
	else
		ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	return r;
}

int
rdma_region_add(struct rdma *rd, void *mem, size_t len, int *ret_region, char *err, size_t err_len)
{
	int region = rd->region_nr;

	if (region >= RDMA_REGIONS_MAX) {
		snprintf(err, err_len, "more than %d memory regions", RDMA_REGIONS_MAX);
		return -ENOSPC;
	}
	for (int i = 0; i < rd->dev_nr; i++) {
		struct rdma_device *dev = rd->dev[i];
		int r;

		/* We start every transfer, so no peer ever needs access to our memory: local writes (by
		 * READs) only. */
		errno = 0;
		dev->mr[region] = ibv_reg_mr(dev->pd, mem, len, IBV_ACCESS_LOCAL_WRITE);
		if (dev->mr[region])
			continue;
		r = errno ? -errno : -ENOMEM;
		if (r == -ENOMEM)
			snprintf(err, err_len,
				 "%s: %zu bytes of buffers cannot be registered: raise the limit of locked "
				 "memory "
				 "(LimitMEMLOCK=, ulimit -l) to at least memory.buffers",
				 dev->name, len);
		else
			snprintf(err, err_len, "%s: %zu bytes of buffers cannot be registered: %s", dev->name,
				 len, strerror(-r));
		for (int k = 0; k < i; k++) {
			ibv_dereg_mr(rd->dev[k]->mr[region]);
			rd->dev[k]->mr[region] = NULL;
		}
		return r;
	}
	rd->region_nr++;
	*ret_region = region;
	return 0;
}
