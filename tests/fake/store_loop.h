/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's loop over a port of a store that needs no more than a mailbox. */
#ifndef TESTS_FAKE_STORE_LOOP_H
#define TESTS_FAKE_STORE_LOOP_H

#include "base/mailbox.h"
#include "store/store.h"

#include <poll.h>

struct loop {
	struct mailbox mb;
	struct store_port *port;
	bool is_over; /* the operation that is waited for */
};

/* Runs what has come; waits a millisecond at most if nothing has. */
static inline void
port_turn(struct mailbox *mb, struct store_port *port)
{
	if (mailbox_sleep(mb)) {
		struct pollfd p = { .fd = mb->efd, .events = POLLIN };

		store_turn(port, TURN_SLEEPS);
		poll(&p, 1, 1);
		store_turn(port, TURN_WAKES);
	}
	mailbox_wake(mb);
	mailbox_run(mb, 0);
	store_turn(port, TURN_QUIESCENT);
}

static inline void
loop_turn(struct loop *l)
{
	port_turn(&l->mb, l->port);
}

/* Gives the port back. */
static inline void
loop_end(struct loop *l)
{
	while (!store_detach(l->port))
		loop_turn(l);
	mailbox_fini(&l->mb);
}

#endif
