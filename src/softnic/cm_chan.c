/* SPDX-License-Identifier: Apache-2.0 */
/* Event channels: their events, timers and sockets. cm_event.c has the calls of the program. */
#include "softnic/cm.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

pthread_mutex_t cm_lock = PTHREAD_MUTEX_INITIALIZER;
struct cm_id *cm_ids;
struct cm_chan *cm_chans;

uint64_t
cm_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);

	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void
cm_arm(const struct cm_chan *ch)
{
	struct itimerspec t = { 0 };

	if (ch->events) {
		t.it_value.tv_sec = (time_t)(ch->events->due_ns / 1000000000u);
		t.it_value.tv_nsec = (long)(ch->events->due_ns % 1000000000u);
	}
	timerfd_settime(ch->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

void
cm_insert(struct cm_chan *ch, struct cm_event *e)
{
	struct cm_event **at = &ch->events;

	while (*at && (*at)->due_ns <= e->due_ns)
		at = &(*at)->next;
	e->next = *at;
	*at = e;
	cm_arm(ch);
}

struct cm_event *
cm_raise(struct cm_id *id, enum rdma_cm_event_type type, int status, uint64_t wait_ns)
{
	struct cm_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->ev.id = &id->pub;
	e->ev.event = type;
	e->ev.status = status;
	e->of = id;
	e->due_ns = cm_now() + wait_ns;
	cm_insert(cm_chan(id), e);

	return e;
}

void
cm_retry(struct cm_id *id, uint64_t wait_ns)
{
	struct cm_event *e = cm_raise(id, RDMA_CM_EVENT_UNREACHABLE, 0, wait_ns);

	if (e)
		e->retry = true;
}

void
cm_forget(struct cm_id *id)
{
	struct cm_event **at = &cm_chan(id)->events;

	while (*at) {
		struct cm_event *e = *at;

		if (e->of == id || e->ev.id == &id->pub) {
			*at = e->next;
			free(e);
		} else {
			at = &e->next;
		}
	}
	cm_arm(cm_chan(id));
}

int
cm_watch(struct cm_id *id, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = id };

	return epoll_ctl(id->pub.channel->fd, EPOLL_CTL_ADD, fd, &e) < 0 ? errno : 0;
}

void
cm_unwatch(struct cm_id *id, int fd)
{
	epoll_ctl(id->pub.channel->fd, EPOLL_CTL_DEL, fd, NULL);
}

void
cm_leave(struct cm_id *id)
{
	id->state = CM_LEFT;
	if (id->fd >= 0)
		cm_unwatch(id, id->fd);
}
