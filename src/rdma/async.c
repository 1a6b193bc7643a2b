/*
 * The async helper: one thread that reads every device's events, keeps ports' states and GID tables fresh,
 * and looks again once a second at whatever is not well (an event can be lost with the device that should
 * have sent it).
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 1000

static void
look(struct rdma_rail *rail)
{
	bool answers = rail_refresh(rail);

	ah_cache_forget_all(rail);
	rail_set_port(rail, answers && rail->port_attr.state == IBV_PORT_ACTIVE);
}

static void
look_at(struct rdma_device *dev, int port)
{
	struct rdma *rd = dev->rd;

	for (int i = 0; i < rd->rail_nr; i++) {
		if (rd->rail[i]->dev == dev && (port == 0 || rd->rail[i]->port == port))
			look(rd->rail[i]);
	}
	trust_refresh(rd);
}

/* A device that reported itself dead serves again as soon as one of its ports says it is active. */
static void
look_at_lost(struct rdma_device *dev)
{
	struct ibv_port_attr attr;

	for (int i = 0; i < dev->rd->rail_nr; i++) {
		struct rdma_rail *rail = dev->rd->rail[i];

		if (rail->dev == dev && ibv_query_port(dev->ctx, rail->port, &attr) == 0 &&
		    attr.state == IBV_PORT_ACTIVE) {
			look_at(dev, 0);
			device_set_fatal(dev, false);
			return;
		}
	}
}

static void
on_event(struct rdma_device *dev, const struct ibv_async_event *ev)
{
	log_debug("%s: %s", dev->name, ibv_event_type_str(ev->event_type));
	switch (ev->event_type) {
	case IBV_EVENT_PORT_ACTIVE:
		look_at(dev, ev->element.port_num);
		if (dev->fatal)
			look_at_lost(dev);
		break;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
		look_at(dev, ev->element.port_num);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		log_error("%s: the device reports a fatal error", dev->name);
		device_set_fatal(dev, true);
		break;
	case IBV_EVENT_CQ_ERR:
		for (int i = 0; i < dev->rd->rail_nr; i++) {
			if (dev->rd->rail[i]->dev == dev)
				rdma_rail_broken(dev->rd->rail[i], "a completion queue overran");
		}
		break;
	default:
		break; /* of a queue pair: its completions say so too */
	}
}

static void
drain_events(struct rdma_device *dev)
{
	struct ibv_async_event ev;

	while (ibv_get_async_event(dev->ctx, &ev) == 0) {
		/* Acknowledged at once: destroying what an event speaks of waits for that. */
		ibv_ack_async_event(&ev);
		on_event(dev, &ev);
	}
}

static bool
look_again(struct rdma *rd)
{
	bool ill = false;

	for (int i = 0; i < rd->dev_nr; i++) {
		if (rd->dev[i]->fatal) {
			ill = true;
			look_at_lost(rd->dev[i]);
		}
	}
	for (int i = 0; i < rd->rail_nr; i++) {
		struct ibv_port_attr attr;
		struct rdma_rail *rail = rd->rail[i];

		if (rdma_rail_state(rail) == RAIL_UP || rail->dev->fatal)
			continue;
		ill = true;
		if (!rail->port_up && ibv_query_port(rail->dev->ctx, rail->port, &attr) == 0 &&
		    attr.state == IBV_PORT_ACTIVE)
			look_at(rail->dev, rail->port);
	}
	return ill;
}

static void *
async_main(void *arg)
{
	struct rdma *rd = arg;
	struct pollfd p[RDMA_RAILS_MAX + 1] = { { .fd = rd->async.stop_fd, .events = POLLIN } };

	for (int i = 0; i < rd->dev_nr; i++)
		p[i + 1] = (struct pollfd){ .fd = rd->dev[i]->ctx->async_fd, .events = POLLIN };
	for (bool ill = true;;) {
		int n = poll(p, (nfds_t)rd->dev_nr + 1, ill ? LOOK_AGAIN_MS : -1);

		if (p[0].revents)
			return NULL;
		for (int i = 0; n > 0 && i < rd->dev_nr; i++) {
			if (!p[i + 1].revents)
				continue;
			if (p[i + 1].revents & POLLIN) {
				drain_events(rd->dev[i]);
			} else if (!rd->dev[i]->fatal) {
				/* The descriptor itself is dead: the device went away. */
				device_set_fatal(rd->dev[i], true);
				p[i + 1].fd = -1;
			}
		}
		ill = look_again(rd);
	}
}

int
async_start(struct rdma *rd)
{
	int r;

	rd->async.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rd->async.stop_fd < 0)
		return -errno;
	for (int i = 0; i < rd->dev_nr; i++) {
		r = fd_nonblock(rd->dev[i]->ctx->async_fd);
		if (r < 0)
			return r;
	}
	r = thread_start(&rd->async.thread, "gantry-rdma", async_main, rd);
	rd->async.started = r == 0;
	return r;
}

void
async_stop(struct rdma *rd)
{
	uint64_t one = 1;

	if (rd->async.started) {
		if (write(rd->async.stop_fd, &one, sizeof one) != sizeof one)
			log_warn("the async helper cannot be told to stop");
		pthread_join(rd->async.thread, NULL);
	}
	if (rd->async.stop_fd >= 0)
		close(rd->async.stop_fd);
}
