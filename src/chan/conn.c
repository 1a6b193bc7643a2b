/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels of a transport whose targets are connections (rdma/ep.h): the connection that a token names brings its
 * endpoint and its completion queue.  On the core.
 *
 * A channel is then a slot, struct chan_ep, which has an endpoint only while a lease uses it or its failure is being
 * cleared away.  In chan_int.h's machine a slot is FREE, LEASED, DRAINING or DESTROYING: a connection is never reset
 * nor made here.
 *
 *   FREE --granted--> LEASED --put, all good--> FREE, and the connection may be leased by any core
 *                        `--failed--> DRAINING --> DESTROYING --> FREE, and the connection is no more
 *
 * While the core sleeps, one epoll descriptor of the rail stands for all its connections: the loop watches it like
 * the descriptor of a completion queue, for as long as the core lives.  A connection is in it from the first sleep of
 * its lease until the lease is put or the endpoint is destroyed, and leaves it at once: no other core can have the
 * connection while this one waits on it.
 */
#include "chan/chan_int.h"

#include "base/check.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS 16

int
conn_init(struct chan_rail *cr)
{
	struct chan *ch = cr->ch;

	list_init(&cr->used);
	cr->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (cr->epoll_fd < 0)
		return -errno;
	if (ch->watch_fd)
		ch->watch_fd(ch->fd_cookie, cr->epoll_fd);
	return 0;
}

void
conn_fini(struct chan_rail *cr)
{
	close(cr->epoll_fd);
}

/* Removes the channel's queue from the descriptor by which the core waits. */
static void
unwatch(struct chan_ep *ep)
{
	if (ep->watched)
		epoll_ctl(ep->cr->epoll_fd, EPOLL_CTL_DEL, rdma_cq_fd(ep->cq), NULL);
	ep->watched = ep->armed = false;
}

void
conn_take(struct chan_ep *ep)
{
	struct rdma_connection conn;

	rdma_target_ep(&lease_of(ep->lease)->target, &conn);
	check(!ep->rdma);
	ep->rdma = conn.ep;
	ep->cq = conn.cq;
	ep->limits = conn.limits;
	ep->context = conn.context;
	ep->generation = conn.generation;
	ep->deaf = false;
	list_push_tail(&ep->cr->used, &ep->free);
}

void
conn_leave_queue(struct chan_ep *ep)
{
	if (!ep->cq)
		return;
	unwatch(ep);
	ep->cq = NULL;
}

void
conn_put(struct chan_ep *ep)
{
	conn_leave_queue(ep);
	rdma_ep_put(ep->rdma);
	conn_gone(ep);
}

void
conn_gone(struct chan_ep *ep)
{
	list_del(&ep->free);
	ep->rdma = NULL;
	ep->cq = NULL;
}

void
conn_arm(struct chan_rail *cr)
{
	list_for_each_safe(l, &cr->used)
	{
		struct chan_ep *ep = container_of(l, struct chan_ep, free);
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = ep };

		if (!ep->cq || ep->outstanding == 0 || ep->armed || ep->deaf)
			continue;
		if (!ep->watched) {
			ep->watched = epoll_ctl(cr->epoll_fd, EPOLL_CTL_ADD, rdma_cq_fd(ep->cq), &event) == 0;
			if (!ep->watched) {
				ep->deaf = true;
				rdma_rail_broken(cr->rail, "a connection cannot be waited on");
				continue;
			}
		}
		rdma_cq_arm(ep->cq);
		ep->armed = true;
	}
}

void
conn_event(struct chan_rail *cr)
{
	struct epoll_event event[EVENTS];
	int n;

	do {
		n = epoll_wait(cr->epoll_fd, event, EVENTS, 0);
		for (int i = 0; i < n; i++) {
			struct chan_ep *ep = event[i].data.ptr;

			if (event[i].events & EPOLLIN) {
				rdma_cq_event(ep->cq);
				ep->armed = false;
			} else {
				/* A descriptor that only reports errors belongs to a device that is gone; the rail will report that. */
				unwatch(ep);
				ep->deaf = true;
			}
		}
	} while (n == EVENTS);
}
