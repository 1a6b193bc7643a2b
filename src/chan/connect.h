/* SPDX-License-Identifier: Apache-2.0 */
/* connect - connects of RC clients, answered on the core that asked for them; see rdma/rc.h. */
#ifndef GANTRY_CHAN_CONNECT_H
#define GANTRY_CHAN_CONNECT_H

#include "base/mailbox.h"
#include "rdma/rc.h"

struct chan;

/* A connect. Embedded by the caller, who keeps it until done() was called. */
struct chan_connect {
	void (*done)(struct chan_connect *c); /* called on the core, with the result in `wait` */
	struct rdma_rc_wait wait;             /* the caller sets wait.ask */
	/* private to chan */
	struct chan *ch;
	struct msg back;
};

/* Begins a connect; done() follows. Returns the result of rdma_rc_connect(). */
int chan_connect(struct chan *ch, struct chan_connect *c);

#endif
