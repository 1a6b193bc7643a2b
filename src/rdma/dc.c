/*
 * DC initiators: creation, the way to RTS with everything the operator configured (item 24), posting.  Who
 * calls what on which thread is in rdma/ep.h.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/check.h"
#include "base/log.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rdma_cq {
	struct rdma_rail *rail;
	struct rdma_context *c;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
};

struct rdma_dci {
	struct rdma_rail *rail;
	struct rdma_context *c; /* NULL: given up, and we with it */
	unsigned context;       /* its number */
	struct ibv_qp *qp;      /* NULL: destroyed, and the device has not been heard since */
	struct ibv_qp_ex *qpx;
	struct mlx5dv_qp_ex *mqpx;
};

static int
min_int(int a, int b)
{
	return a < b ? a : b;
}

void
rdma_dci_limits(const struct rdma_rail *rail, int want, struct rdma_dci_limits *ret_limits)
{
	pthread_rwlock_t *lock = &rail->rd->table_lock;
	int reads, depth;

	pthread_rwlock_rdlock(lock);
	reads = rail->dev->attr.max_qp_init_rd_atom;
	depth = rail->dev->attr.max_qp_wr;
	pthread_rwlock_unlock(lock);
	reads = reads > 0 ? min_int(reads, RDMA_MAX_READS) : 1;
	if (rail->rd->conf.max_rd_atomic > 0)
		reads = min_int(reads, rail->rd->conf.max_rd_atomic);
	ret_limits->send_depth = depth > 0 ? min_int(want, depth) : want;
	ret_limits->read_depth = reads;
}

static int
to_init(struct rdma_dci *dci)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = (uint16_t)dci->rail->rd->conf.pkey_index,
		.port_num = dci->rail->port,
	};

	return -ibv_modify_qp(dci->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
}

static int
to_rtr(struct rdma_dci *dci)
{
	struct rdma_rail *rail = dci->rail;
	struct ah_params p = rail_ah_params(rail);
	pthread_rwlock_t *lock = &rail->rd->table_lock;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = { .sl = p.service_level, .port_num = rail->port },
	};
	int mtu;

	/* The target comes with each work request; what stands here is the port, the level and the source's
	 * index. */
	pthread_rwlock_rdlock(lock);
	mtu = mtu_bytes(rail->port_attr.active_mtu);
	if (rail->is_ethernet) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.sgid_index = (uint8_t)(rail->view.gid_nr ? rail->view.gid[0].index : 0);
		attr.ah_attr.grh.hop_limit = p.hop_limit;
		attr.ah_attr.grh.traffic_class = p.traffic_class;
	}
	pthread_rwlock_unlock(lock);
	attr.path_mtu = mtu_enum(rail->rd->conf.path_mtu ? rail->rd->conf.path_mtu : min_int(mtu, 4096));
	return -ibv_modify_qp(dci->qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV);
}

static int
to_rts(struct rdma_dci *dci)
{
	const struct conf_rdma *c = &dci->rail->rd->conf;
	struct rdma_dci_limits limits;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)c->timeout,
		.retry_cnt = (uint8_t)c->retry_cnt,
		.rnr_retry = (uint8_t)c->rnr_retry,
	};

	rdma_dci_limits(dci->rail, 1, &limits);
	attr.max_rd_atomic = (uint8_t)limits.read_depth;
	return -ibv_modify_qp(dci->qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int
connect_dci(struct rdma_dci *dci)
{
	int r = to_init(dci);

	if (r == 0)
		r = to_rtr(dci);
	if (r == 0)
		r = to_rts(dci);
	return r;
}

static int
destroy_qp(struct rdma_dci *dci)
{
	pthread_rwlock_t *lock = &dci->rail->dev->event_lock;
	int r;

	pthread_rwlock_rdlock(lock);
	r = ibv_destroy_qp(dci->qp);
	pthread_rwlock_unlock(lock);
	if (r == 0)
		dci->qp = NULL;
	return -r;
}

int
rdma_dci_new(struct rdma_rail *rail, struct rdma_cq *cq, int send_depth, struct rdma_dci **ret_dci)
{
	struct rdma_context *c = cq->c;
	int sge = rail->rd->conf.max_sge, r;
	struct rdma_dci *dci;

	if (context_is_given_up(c))
		return -ENODEV;
	dci = calloc(1, sizeof *dci);
	if (!dci)
		return -ENOMEM;
	if (sge < 1)
		sge = 1;
	if (c->attr.max_sge > 0)
		sge = min_int(sge, c->attr.max_sge);
	dci->rail = rail;
	dci->c = c;
	dci->context = c->nr;
	errno = 0;
	dci->qp = dci_create(c, cq->cq, send_depth, sge);
	if (!dci->qp) {
		r = errno ? -errno : -ENOMEM;
		free(dci);
		return r;
	}
	dci->qpx = ibv_qp_to_qp_ex(dci->qp);
	dci->mqpx = mlx5dv_qp_ex_from_ibv_qp_ex(dci->qpx);
	r = connect_dci(dci);
	if (r < 0) {
		/* Nothing was posted on it, so it matters to nobody whether that is heard. */
		destroy_qp(dci);
		free(dci);
		return r;
	}
	context_hold(c);
	*ret_dci = dci;
	return 0;
}

int
rdma_dci_error(struct rdma_dci *dci)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return -ibv_modify_qp(dci->qp, &attr, IBV_QP_STATE);
}

int
rdma_dci_reset(struct rdma_dci *dci)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	int r = -ibv_modify_qp(dci->qp, &attr, IBV_QP_STATE);

	return r < 0 ? r : connect_dci(dci);
}

int
rdma_dci_free(struct rdma_dci *dci, bool idle)
{
	struct ibv_port_attr attr;
	struct rdma_context *c;
	int r = 0;

	if (!dci)
		return 0;
	c = dci->c;
	if (c) {
		bool gone = context_is_given_up(c);

		if (dci->qp)
			r = destroy_qp(dci);
		if (dci->qp && !gone)
			return r;
		/* The library may say so of a device that it cannot reach any more, while the device goes on
		 * (a driver that is being unbound): it is true if the device still answers. */
		if (!idle && !dci->qp)
			r = ibv_query_port(c->ctx, dci->rail->port, &attr);
		if (idle || (!dci->qp && r == 0)) {
			context_put(c);
			free(dci);
			return 0;
		}
		if (!gone) {
			if (r == EIO || r == ENODEV)
				rdma_rail_broken(dci->rail, "the device does not answer");
			return -EAGAIN;
		}
		/* Else when the context is closed, which nothing of ours may hold up. */
		dci->c = NULL;
		context_put(c);
	}
	if (!idle && atomic_load(&dci->rail->dev->closed) < dci->context)
		return -EINPROGRESS;
	free(dci);
	return 0;
}

int
rdma_dci_post(struct rdma_dci *dci, const struct rdma_wr *wr)
{
	struct ibv_qp_ex *q = dci->qpx;

	check(wr->region >= 0);
	check(wr->region < dci->rail->rd->region_nr);
	/* A handle that a lease has kept since before the device was opened anew: it may be gone. */
	if (atomic_load_explicit(&wr->ah->context, memory_order_acquire) != dci->context)
		return -ESTALE;
	ibv_wr_start(q);
	q->wr_id = wr->wr_id;
	q->wr_flags =
		IBV_SEND_SIGNALED; /* every one: credits, accounting and cancellation all count completions */
	if (wr->is_write)
		ibv_wr_rdma_write(q, wr->rkey, wr->remote);
	else
		ibv_wr_rdma_read(q, wr->rkey, wr->remote);
	mlx5dv_wr_set_dc_addr(dci->mqpx, wr->ah->ah, wr->dctn, dci->rail->rd->conf.dc_key);
	ibv_wr_set_sge(q, dci->c->mr[wr->region]->lkey, (uint64_t)(uintptr_t)wr->mem, wr->len);
	return -ibv_wr_complete(q);
}

/* --- completion queues --- */

static enum rdma_status
status_of(enum ibv_wc_status s)
{
	switch (s) {
	case IBV_WC_SUCCESS:
		return WCS_SUCCESS;
	case IBV_WC_WR_FLUSH_ERR:
		return WCS_FLUSHED;
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
	case IBV_WC_LOC_QP_OP_ERR:
	case IBV_WC_LOC_EEC_OP_ERR:
	case IBV_WC_MW_BIND_ERR:
		return WCS_LOCAL_PROT;
	case IBV_WC_REM_ACCESS_ERR:
		return WCS_REM_ACCESS;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return WCS_REM_OP;
	case IBV_WC_RETRY_EXC_ERR:
		return WCS_RETRY_EXC;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return WCS_RNR_EXC;
	case IBV_WC_FATAL_ERR:
		return WCS_FATAL;
	case IBV_WC_RESP_TIMEOUT_ERR:
		return WCS_RESP_TIMEOUT;
	default:
		return WCS_GENERAL;
	}
}

int
rdma_cq_new(struct rdma_rail *rail, int depth, struct rdma_cq **ret_cq)
{
	struct rdma_context *c = context_get(rail->dev);
	struct rdma_cq *cq = calloc(1, sizeof *cq);
	int r = c ? cq ? 0 : -ENOMEM : -ENODEV;

	if (r == 0 && c->attr.max_cqe > 0 && depth > c->attr.max_cqe)
		r = -EINVAL;
	if (r < 0)
		goto fail;
	cq->rail = rail;
	cq->c = c;
	errno = 0;
	cq->channel = ibv_create_comp_channel(c->ctx);
	r = errno ? -errno : -ENOMEM;
	if (!cq->channel)
		goto fail;
	r = fd_nonblock(cq->channel->fd);
	if (r < 0)
		goto fail_channel;
	errno = 0;
	cq->cq = ibv_create_cq(c->ctx, depth, NULL, cq->channel, 0);
	r = errno ? -errno : -ENOMEM;
	if (!cq->cq)
		goto fail_channel;
	*ret_cq = cq;
	return 0;

fail_channel:
	ibv_destroy_comp_channel(cq->channel);
fail:
	free(cq);
	if (c)
		context_put(c);
	return r;
}

unsigned
rdma_cq_context(const struct rdma_cq *cq)
{
	return cq->c->nr;
}

void
rdma_cq_free(struct rdma_cq *cq)
{
	pthread_rwlock_t *lock;
	int fd, r;

	if (!cq)
		return;
	lock = &cq->rail->dev->event_lock;
	fd = cq->channel->fd;
	pthread_rwlock_rdlock(lock);
	r = ibv_destroy_cq(cq->cq);
	pthread_rwlock_unlock(lock);
	if (r)
		log_limited(LOG_WARN, "%s: a completion queue cannot be destroyed: %s", cq->rail->dev->name,
			    strerror(r));
	/* A channel with a queue on it cannot be destroyed either: its memory stays the library's, but not
	 * its descriptor. */
	if (ibv_destroy_comp_channel(cq->channel))
		close(fd);
	context_put(cq->c);
	free(cq);
}

int
rdma_cq_fd(const struct rdma_cq *cq)
{
	return cq->channel->fd;
}

int
rdma_cq_poll(struct rdma_cq *cq, struct rdma_completion *ret_wc, int max)
{
	struct ibv_wc wc[64];
	int n = ibv_poll_cq(cq->cq, min_int(max, (int)(sizeof wc / sizeof *wc)), wc);

	if (n < 0)
		return -EIO;
	for (int i = 0; i < n; i++) {
		ret_wc[i].wr_id = wc[i].wr_id;
		ret_wc[i].status = status_of(wc[i].status);
		ret_wc[i].vendor_err = wc[i].status == IBV_WC_SUCCESS ? 0 : wc[i].vendor_err;
	}
	return n;
}

void
rdma_cq_arm(struct rdma_cq *cq)
{
	if (ibv_req_notify_cq(cq->cq, 0))
		rdma_rail_broken(cq->rail, "a completion queue cannot be armed");
}

void
rdma_cq_event(struct rdma_cq *cq)
{
	struct ibv_cq *which;
	void *cookie;
	unsigned n = 0;

	while (ibv_get_cq_event(cq->channel, &which, &cookie) == 0)
		n++;
	if (n)
		ibv_ack_cq_events(cq->cq, n);
}
