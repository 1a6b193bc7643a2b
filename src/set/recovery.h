/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recovery - the recovery task of a set: after a failure it makes effective what the new placement map says of keys with two copies.
 *
 * One round at a time runs on the thread of a port.  Its lock is its own; with it only a message is posted to a port (ports.h).  Any thread.
 */
#ifndef GANTRY_SET_RECOVERY_H
#define GANTRY_SET_RECOVERY_H

#include "base/list.h"
#include "base/mailbox.h"

struct set;
struct set_recovery;

/* A caller that waits until what the newest map says is so: go() comes through the mailbox.  Embedded by the caller. */
struct set_wait {
	struct mailbox *mb;
	void (*go)(struct msg *m);
	struct msg msg;
	struct list link;
};

/* Makes the recovery task, which does nothing yet.  0 or -ENOMEM. */
int set_recovery_new(struct set_recovery **ret_recovery);
/* Frees it, while it does nothing.  NULL is fine. */
void set_recovery_free(struct set_recovery *rc);
/* Has the task look at the map: soon, on the thread of some port. */
void set_keep(struct set *s);
/* Does so for what no port was there for: one has come. */
void set_keep_on(struct set *s);
/* Waits until a round that begins from now on has ended: w->go() will run. */
void set_wait_kept(struct set *s, struct set_wait *w);
/* Returns true if a round runs, or is wanted. */
bool set_recovers(struct set *s);

#endif
