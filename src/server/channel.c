/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: making and freeing, and whose one is at the moment. */
#include "server/server_int.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

int
channel_enter(struct gantry_channel *c)
{
	if (!is_mine(c->s))
		return -ENODEV;
	for (;;) {
		int was = FREE;

		if (atomic_compare_exchange_strong_explicit(&c->taken, &was, USED, memory_order_acquire,
							    memory_order_relaxed))
			return 0;
		if (was == USED) {
			say(c->s, GANTRY_SERVER_LOG_ERROR,
			    "channel %u is used by two threads at once: one of them gets an error", c->nr);
			return -EIO;
		}
		/* The keeper's, which gives back what is a dead device's. */
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	}
}

void
channel_leave(struct gantry_channel *c)
{
	check(atomic_load_explicit(&c->taken, memory_order_relaxed) != FREE);
	atomic_store_explicit(&c->taken, FREE, memory_order_release);
}

bool
channel_keep(struct gantry_channel *c)
{
	bool had = !list_empty(&c->over), again = false;

	for (int i = 0; i < RDMA_RAILS_MAX; i++) {
		if (c->lane[i])
			again |= lane_step(c->lane[i]);
	}
	if (!had && !list_empty(&c->over))
		channel_kick(c);
	return again;
}

int
gantry_channel_new(struct gantry_server *s, struct gantry_channel **ret_c)
{
	struct gantry_channel *c;
	int nr;

	if (!is_mine(s))
		return -ENODEV;
	if (server_is_dead(s)) {
		say(s, GANTRY_SERVER_LOG_ERROR, "no channel: the device has died, and is not back yet");
		return -ENODEV;
	}
	c = calloc(1, sizeof *c);
	if (!c) {
		say(s, GANTRY_SERVER_LOG_ERROR, "no memory for a channel");
		return -ENOMEM;
	}
	c->s = s;
	c->epoll_fd = c->timer_fd = c->kick_fd = -1;
	list_init(&c->free);
	list_init(&c->over);
	list_init(&c->link);
	pthread_mutex_lock(&s->lock);
	nr = s->channel_nr;
	if (nr < s->p.channels) {
		s->channel_nr++;
		c->nr = s->channel_count++;
		list_push_tail(&s->channels, &c->link);
	}
	pthread_mutex_unlock(&s->lock);
	if (nr >= s->p.channels) {
		say(s, GANTRY_SERVER_LOG_ERROR, "no channel: all %d are out (channels)", s->p.channels);
		free(c);
		return -ENOSPC;
	}
	say(s, GANTRY_SERVER_LOG_DEBUG, "channel %u made", c->nr);
	*ret_c = c;
	return 0;
}

int
gantry_channel_free(struct gantry_channel *c)
{
	struct gantry_server *s;

	if (!c || !is_mine(c->s))
		return 0;
	s = c->s;
	if (channel_enter(c) < 0)
		return -EBUSY;
	/* Step by step, as long as it takes: two of them may hold the same dead device. */
	for (bool again = true; again;) {
		again = false;
		for (int i = 0; i < RDMA_RAILS_MAX; i++)
			again |= c->lane[i] && lane_end(c->lane[i]);
		if (again)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	check(c->under_way == 0);
	pthread_mutex_lock(&s->lock);
	check(s->channel_nr > 0);
	list_del(&c->link);
	s->channel_nr--;
	pthread_mutex_unlock(&s->lock);
	held_drop(c, NULL);
	for (int i = 0; i < RDMA_RAILS_MAX; i++)
		lane_free(c->lane[i]);
	waits_free(c);
	ops_free(c);
	say(s, GANTRY_SERVER_LOG_DEBUG, "channel %u freed", c->nr);
	free(c);
	return 0;
}
