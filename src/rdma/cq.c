/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion queues of verbs, for whichever transport makes queue pairs.  Who calls what on which thread is in
 * rdma/ep.h.
 */
#define LOG_MODULE "rdma"
#include "rdma/qp.h"
#include "rdma/rdma_int.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Doorbells of the core's own, without a lock: the queue pairs on this queue are made in a domain that has them.  Memory that is
 * registered with the context's domain is good there too. */
static void
own_doorbells(struct verbs_cq *cq, int core)
{
	struct ibv_td_init_attr td = { 0 };
	struct ibv_parent_domain_init_attr parent = { .pd = cq->c->pd };

	errno = 0;
	cq->td = ibv_alloc_td(cq->c->ctx, &td);
	parent.td = cq->td;
	cq->pd = cq->td ? ibv_alloc_parent_domain(cq->c->ctx, &parent) : NULL;
	if (cq->pd) {
		log_debug("%s:%d: core %d has doorbells of its own", cq->base.rail->dev->name,
			  cq->base.rail->port, core);
		return;
	}
	log_info("%s:%d: core %d has no doorbells of its own (rdma.thread_domains): %s",
		 cq->base.rail->dev->name, cq->base.rail->port, core, strerror(errno));
	if (cq->td)
		ibv_dealloc_td(cq->td);
	cq->td = NULL;
	cq->pd = cq->c->pd;
}

int
verbs_cq_new(struct rdma_rail *rail, int depth, unsigned turn, struct verbs_cq **ret_cq)
{
	struct rdma_context *c = context_get(rail->dev);
	struct verbs_cq *cq = calloc(1, sizeof *cq);
	int r = c ? cq ? 0 : -ENOMEM : -ENODEV, vector;

	if (r == 0 && c->attr.max_cqe > 0 && depth > c->attr.max_cqe)
		r = -EINVAL;
	if (r < 0)
		goto fail;
	cq->base = (struct rdma_cq){ .ops = &verbs_cq_ops, .rail = rail };
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
	/* One interrupt, and one processor's time for it, would wake all cores. */
	vector = c->ctx->num_comp_vectors > 0 ? (int)(turn % (unsigned)c->ctx->num_comp_vectors) : 0;
	cq->cq = ibv_create_cq(c->ctx, depth, NULL, cq->channel, vector);
	r = errno ? -errno : -ENOMEM;
	if (!cq->cq)
		goto fail_channel;
	cq->pd = c->pd;
	cq->vector = vector;
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

static int
cq_new(struct rdma_rail *rail, int depth, int core, struct rdma_cq **ret_cq)
{
	struct verbs_cq *cq;
	int r = verbs_cq_new(rail, depth, (unsigned)core, &cq);

	if (r < 0)
		return r;
	log_debug("%s:%d: the completion queue of core %d is on vector %d", rail->dev->name, rail->port, core,
		  cq->vector);
	if (rail->rd->conf.thread_domains)
		own_doorbells(cq, core);
	*ret_cq = &cq->base;
	return 0;
}

static struct verbs_cq *
of(const struct rdma_cq *base)
{
	return container_of(base, struct verbs_cq, base);
}

static unsigned
cq_context(const struct rdma_cq *base)
{
	return of(base)->c->nr;
}

static void
cq_free(struct rdma_cq *base)
{
	struct verbs_cq *cq = of(base);
	struct rdma_device *dev = base->rail->dev;
	pthread_rwlock_t *lock = &dev->event_lock;
	int fd = cq->channel->fd, r;

	pthread_rwlock_rdlock(lock);
	r = ibv_destroy_cq(cq->cq);
	pthread_rwlock_unlock(lock);
	if (r)
		log_limited(LOG_WARN, "%s: a completion queue cannot be destroyed: %s", dev->name,
			    strerror(r));
	/* A channel with a queue on it cannot be destroyed either: its memory stays the library's, but not
	 * its descriptor. */
	if (ibv_destroy_comp_channel(cq->channel))
		close(fd);
	if (cq->td && (ibv_dealloc_pd(cq->pd) || ibv_dealloc_td(cq->td)))
		log_limited(LOG_WARN, "%s: a thread domain cannot be given back", dev->name);
	context_put(cq->c);
	free(cq);
}

static int
cq_fd(const struct rdma_cq *base)
{
	return of(base)->channel->fd;
}

static int
cq_poll(struct rdma_cq *base, struct rdma_completion *ret_wc, int max)
{
	struct ibv_wc wc[64];
	int n = ibv_poll_cq(of(base)->cq, min_int(max, (int)(sizeof wc / sizeof *wc)), wc);

	if (n < 0)
		return -EIO;
	for (int i = 0; i < n; i++) {
		ret_wc[i].wr_id = wc[i].wr_id;
		ret_wc[i].status = status_of(wc[i].status);
		ret_wc[i].wc_status = (int)wc[i].status;
		ret_wc[i].vendor_err = wc[i].status == IBV_WC_SUCCESS ? 0 : wc[i].vendor_err;
	}
	return n;
}

static void
cq_arm(struct rdma_cq *base)
{
	if (ibv_req_notify_cq(of(base)->cq, 0))
		rdma_rail_broken(base->rail, "a completion queue cannot be armed");
}

static void
cq_event(struct rdma_cq *base)
{
	struct verbs_cq *cq = of(base);
	struct ibv_cq *which;
	void *cookie;
	unsigned n = 0;

	while (ibv_get_cq_event(cq->channel, &which, &cookie) == 0)
		n++;
	if (n)
		ibv_ack_cq_events(cq->cq, n);
}

const struct rdma_cq_ops verbs_cq_ops = {
	.cq_new = cq_new,
	.cq_free = cq_free,
	.context = cq_context,
	.fd = cq_fd,
	.poll = cq_poll,
	.arm = cq_arm,
	.event = cq_event,
};
