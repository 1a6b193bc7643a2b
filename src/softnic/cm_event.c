/* SPDX-License-Identifier: Apache-2.0 */
/* Event channels for the program: rdma_get_cm_event() reads the sockets of the ids, and makes the changes of each event that the program
 * fetches. */
#include "softnic/cm.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define ROUNDS 1000 /* number of times that sockets are read before the first of their events is returned */

CM_EXPORT struct rdma_event_channel *
rdma_create_event_channel(void)
{
	struct cm_chan *ch = NULL;
	struct epoll_event e = { .events = EPOLLIN };

	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return NULL;
	ch->pub.fd = epoll_create1(EPOLL_CLOEXEC);
	ch->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (ch->pub.fd < 0 || ch->timer < 0 || epoll_ctl(ch->pub.fd, EPOLL_CTL_ADD, ch->timer, &e) < 0) {
		rdma_destroy_event_channel(&ch->pub);
		return NULL;
	}
	pthread_mutex_lock(&cm_lock);
	cm_devs_refresh();
	ch->next = cm_chans;
	cm_chans = ch;
	pthread_mutex_unlock(&cm_lock);

	return &ch->pub;
}

CM_EXPORT void
rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct cm_chan *ch = (struct cm_chan *)channel, **at = &cm_chans;
	struct cm_event *e;

	pthread_mutex_lock(&cm_lock);
	while (*at && *at != ch)
		at = &(*at)->next;
	if (*at)
		*at = ch->next;
	while ((e = ch->events) != NULL) {
		ch->events = e->next;
		free(e);
	}
	pthread_mutex_unlock(&cm_lock);
	if (ch->timer >= 0)
		close(ch->timer);
	if (ch->pub.fd >= 0)
		close(ch->pub.fd);
	free(ch);
}

/* Reads the sockets of a channel that are readable. Returns true if there were any. The handler of one frees no other. */
static bool
read_some(struct cm_chan *ch)
{
	struct epoll_event e[16];
	int n = epoll_wait(ch->pub.fd, e, 16, 0);
	bool got = false;

	for (int i = 0; i < n; i++) {
		if (e[i].data.ptr)
			cm_socket(e[i].data.ptr);
		got |= e[i].data.ptr != NULL;
	}

	return got;
}

static void
collect(struct cm_chan *ch)
{
	for (int i = 0; i < ROUNDS && read_some(ch); i++)
		;
}

/* What an event changes in its id when the program fetches it. */
static void
arrive(struct cm_event *e)
{
	struct cm_id *id = cm_id(e->ev.id);

	switch (e->ev.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		id->state = CM_ADDR;
		cm_id_bind_dev(id, id->dev);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		id->state = CM_BOUND;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		id->state = CM_ROUTE;
		cm_id_path(id);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		id->state = CM_ADDR;
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		id->listener->waiting--;
		id->listener = NULL;
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		cm_qp_err(id);
		cm_leave(id);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		cm_leave(id);
		break;
	default:
		break;
	}
	e->of->got++;
}

static struct cm_event *
next(struct cm_chan *ch)
{
	struct cm_event *e;

	while ((e = ch->events) != NULL && e->due_ns <= cm_now()) {
		ch->events = e->next;
		cm_arm(ch);
		if (!e->retry) {
			arrive(e);
			return e;
		}
		cm_try(e->of);
		free(e);
	}

	return NULL;
}

CM_EXPORT int
rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct cm_chan *ch = (struct cm_chan *)channel;
	struct pollfd p = { .events = POLLIN };
	struct cm_event *e;

	if (!event)
		return cm_err(EINVAL);
	p.fd = channel->fd;
	for (;;) {
		pthread_mutex_lock(&cm_lock);
		collect(ch);
		e = next(ch);
		pthread_mutex_unlock(&cm_lock);
		if (e) {
			*event = &e->ev;
			return 0;
		}
		if (fcntl(channel->fd, F_GETFL) & O_NONBLOCK)
			return cm_err(EAGAIN);
		if (poll(&p, 1, -1) < 0)
			return -1;
	}
}

CM_EXPORT int
rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct cm_event *e = (struct cm_event *)((char *)event - offsetof(struct cm_event, ev));

	if (!event)
		return cm_err(EINVAL);
	pthread_mutex_lock(&cm_lock);
	e->of->acked++;
	pthread_cond_broadcast(&e->of->acks);
	pthread_mutex_unlock(&cm_lock);
	free(e);

	return 0;
}

int
cm_complete(struct rdma_cm_id *id)
{
	int status;

	if (!cm_id(id)->sync)
		return 0;
	if (id->event) {
		rdma_ack_cm_event(id->event);
		id->event = NULL;
	}
	if (rdma_get_cm_event(id->channel, &id->event))
		return -1;
	status = id->event->status;
	if (id->event->event == RDMA_CM_EVENT_REJECTED)
		return cm_err(ECONNREFUSED);

	return status < 0 ? cm_err(-status) : status ? cm_err(status) : 0;
}

/* Moves the events of an id to another channel. */
static void
move_events(struct cm_id *id, struct cm_chan *from, struct cm_chan *to)
{
	struct cm_event **at = &from->events, *e;

	while ((e = *at) != NULL) {
		if (e->of == id) {
			*at = e->next;
			cm_insert(to, e);
		} else {
			at = &e->next;
		}
	}
	cm_arm(from);
}

CM_EXPORT int
rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	struct cm_id *i = cm_id(id);
	struct cm_chan *old = cm_chan(i), *own = i->sync ? old : NULL;
	bool sync = !channel;

	if (sync && i->sync)
		return 0;
	if (sync && !(channel = rdma_create_event_channel()))
		return -1;
	if (i->sync && id->event) {
		rdma_ack_cm_event(id->event);
		id->event = NULL;
	}
	pthread_mutex_lock(&cm_lock);
	while (i->got != i->acked)
		pthread_cond_wait(&i->acks, &cm_lock);
	for (int k = 0; k < 2; k++) {
		int fd = k ? i->fd : i->state == CM_LISTEN ? i->bound : -1;

		if (fd >= 0) {
			cm_unwatch(i, fd);
			id->channel = channel;
			cm_watch(i, fd);
			id->channel = &old->pub;
		}
	}
	id->channel = channel;
	move_events(i, old, (struct cm_chan *)channel);
	i->sync = sync;
	pthread_mutex_unlock(&cm_lock);
	if (own)
		rdma_destroy_event_channel(&own->pub);

	return 0;
}
