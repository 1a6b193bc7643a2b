/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recovery - the recovery task of a set, which applies a new placement map to keys with two copies after a
 * failure. A run of the task is a round; one round at a time runs, on the thread of a port. The task has a
 * separate lock, under which only a message is posted to a port (ports.h). Any thread may call these
 * functions.
 */
#ifndef GANTRY_SET_RECOVERY_H
#define GANTRY_SET_RECOVERY_H

#include "base/list.h"
#include "base/mailbox.h"

struct set;
struct set_recovery;

/* An entry of a caller that waits until the newest map is applied; go() then runs through the mailbox.
 * Embedded by the caller. */
struct set_wait {
	struct mailbox *mb;
	void (*go)(struct msg *m);
	struct msg msg;
	struct list link;
};

/* Allocates the recovery task, which is idle. Returns 0 or -ENOMEM. */
int set_recovery_new(struct set_recovery **ret_recovery);
/* Frees the recovery task, which is idle. NULL is allowed. */
void set_recovery_free(struct set_recovery *rc);
/* Starts a round of the task, which begins soon on the thread of a port. */
void set_keep(struct set *s);
/* Starts a requested round, after the first port was attached. */
void set_keep_on(struct set *s);
/* Waits for the end of a round that begins after this call. w->go() then follows. */
void set_wait_kept(struct set *s, struct set_wait *w);
/* Returns true if a round runs or is requested. */
bool set_recovers(struct set *s);

#endif
