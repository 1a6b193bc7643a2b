/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a target, for threads that may. */
#include "rdma/rdma_int.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

struct sleeper {
	struct rdma_target_wait w;
	pthread_mutex_t lock;
	pthread_cond_t heard;
	bool is_done;
};

/* On the helper. */
static void
on_done(struct rdma_target_wait *w)
{
	struct sleeper *s = container_of(w, struct sleeper, w);

	pthread_mutex_lock(&s->lock);
	s->is_done = true;
	pthread_cond_signal(&s->heard);
	pthread_mutex_unlock(&s->lock);
}

/* Waits for on_done(); false: not until then. */
static bool
sleep_until(struct sleeper *s, uint64_t until_ns)
{
	struct timespec until = { .tv_sec = (time_t)(until_ns / NS_PER_S),
				  .tv_nsec = (long)(until_ns % NS_PER_S) };
	bool is_done;
	int r = 0;

	pthread_mutex_lock(&s->lock);
	while (!s->is_done && r == 0)
		r = until_ns ? pthread_cond_timedwait(&s->heard, &s->lock, &until)
			     : pthread_cond_wait(&s->heard, &s->lock);
	is_done = s->is_done;
	pthread_mutex_unlock(&s->lock);
	return is_done;
}

int
rdma_target_wait(struct rdma_rail *rail, const struct token *tok, const struct rail_route *route,
		 uint8_t client, int limit_ms, struct rdma_target *ret_target)
{
	struct sleeper s = { .w = { .done = on_done, .client = client, .patient = true } };
	pthread_condattr_t attr;
	int r;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s.heard, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&s.lock, NULL);
	r = rdma_target_get(rail, tok, route, &s.w, ret_target);
	if (r > 0) {
		r = 0;
	} else if (r == 0) {
		bool is_done = sleep_until(&s, clock_ns() + (uint64_t)limit_ms * NS_PER_MS);

		if (!is_done && rdma_target_leave(route->ops, rail, &s.w)) {
			r = -ETIMEDOUT;
		} else {
			sleep_until(&s, 0); /* it has run, or runs */
			r = s.w.result;
			if (r == 0)
				*ret_target = s.w.target;
		}
	}
	pthread_mutex_destroy(&s.lock);
	pthread_cond_destroy(&s.heard);
	return r;
}
