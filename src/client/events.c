/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the ports of the devices.  A port that is down gets no tokens until it is up again; one whose
 * addresses changed has them read again.  One thread a context sleeps on all devices; signals are the
 * program's.
 */
#include "client/client_int.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void
port_is(struct gantry *g, struct port *p, bool is_down, const char *why)
{
	if (p->is_down == is_down)
		return;
	p->is_down = is_down;
	client_log(g, GANTRY_LOG_INFO, "%s %s", p->name, why);
}

static void
on_event(struct gantry *g, struct port *p, const struct ibv_async_event *ev)
{
	switch (ev->event_type) {
	case IBV_EVENT_PORT_ERR:
		if (ev->element.port_num == p->port_num)
			port_is(g, p, true, "went down: it gets no tokens");
		break;
	case IBV_EVENT_PORT_ACTIVE:
		if (ev->element.port_num == p->port_num) {
			port_reread(g, p);
			port_is(g, p, false, "is up again");
		}
		break;
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
		if (ev->element.port_num == p->port_num)
			port_reread(g, p);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		port_is(g, p, true, "has a device that died: open it again");
		break;
	default:
		break;
	}
}

/* Takes all that there is; the descriptor does not block. */
static void
read_events(struct gantry *g, struct port *p)
{
	struct ibv_async_event ev;

	while (ibv_get_async_event(p->ctx, &ev) == 0) {
		on_event(g, p, &ev);
		ibv_ack_async_event(&ev);
	}
}

static void *
watcher(void *arg)
{
	struct gantry *g = arg;
	struct pollfd fd[PORTS_MAX + 1];

	fd[0] = (struct pollfd){ .fd = g->wake_fd, .events = POLLIN };
	for (int i = 0; i < g->port_nr; i++)
		fd[i + 1] = (struct pollfd){ .fd = g->port[i].ctx->async_fd, .events = POLLIN };
	for (;;) {
		int n = poll(fd, (nfds_t)g->port_nr + 1, -1);

		if ((n < 0 && errno != EINTR) || (n > 0 && fd[0].revents))
			return NULL;
		for (int i = 0; n > 0 && i < g->port_nr; i++) {
			if (fd[i + 1].revents & POLLIN)
				read_events(g, &g->port[i]);
			else if (fd[i + 1].revents)
				fd[i + 1].fd = -1; /* nothing comes from there any more */
		}
	}
}

int
events_start(struct gantry *g)
{
	sigset_t all, before;
	int r;

	g->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (g->wake_fd < 0)
		return -errno;
	for (int i = 0; i < g->port_nr; i++) {
		int fd = g->port[i].ctx->async_fd;

		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&g->watcher, NULL, watcher, g);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	g->watcher_runs = r == 0;
	return -r;
}

void
events_stop(struct gantry *g)
{
	const uint64_t one = 1;

	if (g->watcher_runs && write(g->wake_fd, &one, sizeof one) == sizeof one)
		pthread_join(g->watcher, NULL);
	if (g->wake_fd >= 0)
		close(g->wake_fd);
}
