/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The async helper: one thread that reads every device's events, keeps ports' states and GID tables fresh,
 * checks again once a second whatever is not well (an event can be lost with the device that should have
 * sent it), and decides when a device is given up and reopened (reopen.c does it).
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CHECK_AGAIN_MS 1000
#define READ_AGAIN_MS 60000 /* of RoCE nobody says that the MTU has changed */
#define BUSY_MS 5

static void
set_fatal(struct rdma_device *dev, const char *why)
{
	log_error("%s: %s", dev->name, why);
	dev->fatal_ns = clock_ns();
	device_set_fatal(dev, true);
}

static void
on_event(struct rdma_device *dev, const struct ibv_async_event *ev)
{
	log_debug("%s: %s", dev->name, ibv_event_type_str(ev->event_type));
	switch (ev->event_type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
		device_refresh(dev, ev->element.port_num);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		set_fatal(dev, "the device reports a fatal error");
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

/* False: a queue is being destroyed, which may take its time; later, then. */
static bool
drain_events(struct rdma_device *dev)
{
	struct rdma_context *c = context_get(dev);
	struct ibv_async_event ev;
	bool more = true;

	while (c && more) {
		if (pthread_rwlock_trywrlock(&dev->event_lock)) {
			context_put(c);
			return false;
		}
		more = ibv_get_async_event(c->ctx, &ev) == 0;
		/* Acknowledged at once: destroying what an event speaks of waits for that. */
		if (more)
			ibv_ack_async_event(&ev);
		pthread_rwlock_unlock(&dev->event_lock);
		if (more)
			on_event(dev, &ev);
	}
	if (c)
		context_put(c);
	return true;
}

static int
sooner(int a_ms, int b_ms)
{
	return a_ms < 0 ? b_ms : b_ms < 0 || a_ms < b_ms ? a_ms : b_ms;
}

/* A rail that is not up, of a device that is not fatal. */
static int
check_rail(struct rdma_rail *rail)
{
	struct rdma_context *c;
	struct ibv_port_attr attr;
	int r;

	if (rdma_rail_state(rail) == RAIL_UP || rail->dev->fatal)
		return -1;
	c = rail->port_up ? NULL : context_get(rail->dev);
	if (!c)
		return CHECK_AGAIN_MS;
	r = ibv_query_port(c->ctx, rail->port, &attr);
	context_put(c);
	if (r)
		set_fatal(rail->dev, "the device does not answer");
	else if (attr.state == IBV_PORT_ACTIVE)
		device_refresh(rail->dev, rail->port);
	return CHECK_AGAIN_MS;
}

static bool
is_due(uint64_t since_ns, unsigned ms)
{
	return clock_ns() - since_ns >= ms * NS_PER_MS;
}

/* Reads the ports that are up once a minute, and sooner those that look as if they had changed. */
static int
read_again(struct rdma *rd)
{
	bool all = is_due(rd->async.read_ns, READ_AGAIN_MS);
	int ms = READ_AGAIN_MS;

	all |= atomic_exchange(&rd->async.read_now, false);
	if (all)
		rd->async.read_ns = clock_ns();
	for (int i = 0; i < rd->rail_nr; i++) {
		struct rdma_rail *rail = rd->rail[i];
		bool suspect = atomic_load(&rail->suspect);

		if (suspect && !all && !is_due(rail->suspect_ns, CHECK_AGAIN_MS)) {
			ms = CHECK_AGAIN_MS;
			continue;
		}
		if (!(suspect || all) || rdma_rail_state(rail) != RAIL_UP)
			continue;
		atomic_store(&rail->suspect, false);
		rail->suspect_ns = clock_ns();
		rail_reread(rail);
	}
	return ms;
}

/* In how many ms again. */
static int
check_all(struct rdma *rd)
{
	int ms = read_again(rd);

	for (int i = 0; i < rd->rail_nr; i++)
		ms = sooner(ms, check_rail(rd->rail[i]));
	for (int i = 0; i < rd->dev_nr; i++) {
		if (!rd->dev[i]->fatal && device_is_broken(rd->dev[i]))
			set_fatal(rd->dev[i], "a completion queue of it cannot be used any more");
		ms = sooner(ms, device_tend(rd->dev[i]));
	}
	return ms;
}

static void *
async_main(void *arg)
{
	enum { STOP, WAKE, FIRST };
	struct rdma *rd = arg;
	struct pollfd p[RDMA_RAILS_MAX + FIRST] = { [STOP] = { .fd = rd->async.stop_fd, .events = POLLIN },
						    [WAKE] = { .fd = rd->async.wake_fd, .events = POLLIN } };
	uint64_t taken;

	for (int ms = CHECK_AGAIN_MS;;) {
		int dev_nr = rd->dev_nr, n; /* more may come meanwhile */
		bool busy = false;

		for (int i = 0; i < dev_nr; i++)
			p[FIRST + i] = (struct pollfd){ .fd = rd->dev[i]->async_fd, .events = POLLIN };
		n = poll(p, (nfds_t)(FIRST + dev_nr), ms);
		if (p[STOP].revents)
			return NULL;
		if (n > 0 && p[WAKE].revents && read(rd->async.wake_fd, &taken, sizeof taken) < 0)
			log_debug("the async helper was woken without a reason");
		for (int i = 0; n > 0 && i < dev_nr; i++) {
			struct rdma_device *dev = rd->dev[i];

			if (p[FIRST + i].revents & POLLIN) {
				busy |= !drain_events(dev);
			} else if (p[FIRST + i].revents) {
				/* The descriptor itself is dead: the device went away. */
				dev->async_fd = -1;
				if (!dev->fatal)
					set_fatal(dev, "the device went away");
			}
		}
		if (busy)
			usleep(BUSY_MS * 1000); /* the descriptor stays readable */
		ms = check_all(rd);
	}
}

int
async_init(struct rdma *rd)
{
	rd->async.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rd->async.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rd->async.stop_fd < 0 || rd->async.wake_fd < 0)
		return -errno;
	return 0;
}

int
async_start(struct rdma *rd)
{
	int r;

	rd->async.read_ns = clock_ns();
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
	rd->async.started = false;
	if (rd->async.stop_fd >= 0)
		close(rd->async.stop_fd);
	rd->async.stop_fd = -1;
}

void
async_fini(struct rdma *rd)
{
	if (rd->async.wake_fd >= 0)
		close(rd->async.wake_fd);
	rd->async.wake_fd = -1;
}
