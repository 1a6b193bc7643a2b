/* SPDX-License-Identifier: Apache-2.0 */
/* The end of queue pairs, and the pieces of memory of their work requests; see qp.h. */
#include "rdma/qp.h"

#include <errno.h>

void
verbs_ep_init(struct verbs_ep *ep, const struct rdma_ep_ops *ops, struct rdma_rail *rail,
	      struct rdma_context *c)
{
	ep->base = (struct rdma_ep){ .ops = ops, .rail = rail };
	ep->c = c;
	ep->context = c->nr;
}

int
verbs_ep_destroy_qp(struct verbs_ep *ep)
{
	pthread_rwlock_t *lock = &ep->base.rail->dev->event_lock;
	int r;

	pthread_rwlock_rdlock(lock);
	r = ibv_destroy_qp(ep->qp);
	pthread_rwlock_unlock(lock);
	if (r == 0)
		ep->qp = NULL;
	return -r;
}

int
verbs_ep_release(struct verbs_ep *ep, bool idle)
{
	struct rdma_context *c = ep->c;
	struct ibv_port_attr attr;
	int r = 0;

	if (c) {
		bool gone = context_is_given_up(c);

		if (ep->qp)
			r = verbs_ep_destroy_qp(ep);
		if (ep->qp && !gone)
			return r;
		/* The library may report success for a device that it cannot reach any more but that still works (a
		 * driver that is being unbound). The queue pair is destroyed only if the device still answers. */
		if (!idle && !ep->qp)
			r = ibv_query_port(c->ctx, ep->base.rail->port, &attr);
		if (idle || (!ep->qp && r == 0)) {
			context_put(c);
			return 0;
		}
		if (!gone) {
			if (r == EIO || r == ENODEV)
				rdma_rail_broken(ep->base.rail, "the device does not answer");
			return -EAGAIN;
		}
		/* Else when the context is closed, which nothing of ours may hold up. */
		ep->c = NULL;
		context_put(c);
	}
	if (!idle && atomic_load(&ep->base.rail->dev->closed) < ep->context)
		return -EINPROGRESS;
	return 0;
}

int
verbs_ep_error(struct rdma_ep *ep)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return -ibv_modify_qp(verbs_ep_of(ep)->qp, &attr, IBV_QP_STATE);
}

int
verbs_sge(const struct rdma_context *c, const struct rdma_sge *sge, struct ibv_sge *ret_sge)
{
	ret_sge->addr = (uint64_t)(uintptr_t)sge->mem;
	ret_sge->length = sge->len;
	return region_key(c, sge->region, &ret_sge->lkey);
}
