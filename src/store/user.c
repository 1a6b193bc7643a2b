/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits for its operations, see user.h. */
#include "store/user.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "ring/ring.h"

#include <stdlib.h>
#include <errno.h>
#include <string.h>

struct store_user {
	struct ring *ring;
	struct mailbox mb;
	bool has_mailbox;
	struct timers timers;
	int nr;
	struct store_port *port[];
};

/* One operation at a time is under way.  That it has none to call is what is waited for. */
static void
on_done(struct store_op *op)
{
	op->done = NULL;
}

void
store_user_turn(struct store_user *u)
{
	/* The mailbox is looked at each time round, so nobody has to ring. */
	check(ring_turn(u->ring, NS_PER_MS) >= 0);
	mailbox_run(&u->mb, 0);
	timers_run(&u->timers, clock_ns());
	for (int i = 0; i < u->nr; i++) {
		if (u->port[i])
			store_turn(u->port[i], TURN_QUIESCENT);
	}
}

int
store_user_new(struct store *const *stores, int nr, struct store_user **ret_user)
{
	struct store_user *u;
	size_t len = sizeof *u + (size_t)nr * sizeof(struct store_port *);
	void *mem;
	int r;

	/* A mailbox begins at a cache line. */
	if (posix_memalign(&mem, _Alignof(struct store_user), len) != 0)
		return -ENOMEM;
	u = memset(mem, 0, len);
	u->nr = nr;
	r = ring_new(&(struct ring_params){ .entries = 32 }, &u->ring);
	if (r < 0)
		log_error("cannot make a ring: %s%s", strerror(-r), ring_hint(r));
	if (r == 0) {
		r = mailbox_init(&u->mb);
		u->has_mailbox = r == 0;
	}
	for (int i = 0; r == 0 && i < nr; i++)
		r = store_attach(stores[i], u->ring, &u->mb, &u->timers, &u->port[i]);
	if (r < 0)
		store_user_free(u);
	else
		*ret_user = u;
	return r;
}

void
store_user_free(struct store_user *u)
{
	if (!u)
		return;
	for (int i = 0; i < u->nr; i++) {
		while (u->port[i] && !store_detach(u->port[i]))
			store_user_turn(u);
		u->port[i] = NULL;
	}
	if (u->has_mailbox)
		mailbox_fini(&u->mb);
	if (u->ring)
		ring_free(u->ring);
	free(u);
}

struct store_port *
store_user_port(struct store_user *u, int i)
{
	return u->port[i];
}

void
store_user_begin(struct store_user *u, struct store_op *op)
{
	op->done = on_done;
}

int
store_user_wait(struct store_user *u, const struct store_op *op, int r)
{
	if (r < 0)
		return r;
	while (r == 0 && op->done)
		store_user_turn(u);
	return op->result;
}
