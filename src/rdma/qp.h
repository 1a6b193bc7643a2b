/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qp - completion queues and queue pairs of verbs, for the transports of rdma/: their making and their end, which
 * do not depend on the kind of the queue pair. The threads are those of rdma/ep.h.
 */
#ifndef GANTRY_RDMA_QP_H
#define GANTRY_RDMA_QP_H

#include "rdma/rdma_int.h"

/* ---- cq.c ---- */

struct verbs_cq {
	struct rdma_cq base;
	struct rdma_context *c;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_td *td; /* thread domain of the core (rdma.thread_domains); NULL: none */
	/* protection domain for queue pairs: that of the context, or one whose doorbells are for this core
	 * only */
	struct ibv_pd *pd;
	int vector; /* number of the interrupt */
};
extern const struct rdma_cq_ops verbs_cq_ops;

/* Makes a completion queue without doorbells of its own. turn: number that selects one of the device's
 * interrupts. Returns 0; -EINVAL: the queue is deeper than the device allows; -ENODEV: the rail has no context; or
 * -errno. */
int verbs_cq_new(struct rdma_rail *rail, int depth, unsigned turn, struct verbs_cq **ret_cq);

/* ---- qp.c ---- */

/* An endpoint that is a queue pair. The transport's own struct begins with this struct. */
struct verbs_ep {
	struct rdma_ep base;
	struct rdma_context *c; /* context of the queue pair; NULL: released, because it was abandoned */
	unsigned context;       /* number of the context */
	struct ibv_qp *qp;      /* NULL: destroyed, but the device has not answered since */
};

static inline struct verbs_ep *
verbs_ep_of(struct rdma_ep *base)
{
	return container_of(base, struct verbs_ep, base);
}

/* Sets all fields but qp. Takes no reference to the context. */
void verbs_ep_init(struct verbs_ep *ep, const struct rdma_ep_ops *ops, struct rdma_rail *rail,
		   struct rdma_context *c);
/* Destroys the queue pair. Returns 0 or -errno. */
int verbs_ep_destroy_qp(struct verbs_ep *ep);
/* Destroys the queue pair, and releases the reference to its context. Returns the result of rdma_ep_free(); after
 * 0 the caller frees the struct. */
int verbs_ep_release(struct verbs_ep *ep, bool idle);
/* Puts the queue pair into the error state: the function ep_error of a transport. */
int verbs_ep_error(struct rdma_ep *ep);
/* Translates a piece of memory. Returns 0, or -ESTALE if the region was removed. */
int verbs_sge(const struct rdma_context *c, const struct rdma_sge *sge, struct ibv_sge *ret_sge);

#endif
