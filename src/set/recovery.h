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
#include "set/map_change.h"
#include "store/ops.h"

#include <pthread.h>

struct set;
struct set_port;

/* A caller that waits until the recovery task has applied the newest map. At the end of the wait go() runs in
 * mailbox mb. Embedded by the caller. */
struct set_wait {
	struct mailbox *mb;
	void (*go)(struct msg *m);
	struct msg msg;
	struct list link;
	bool pairs; /* true: the round also assigns secondaries to all slots, if no slot has one */
};

struct set_recovery {
	pthread_mutex_t lock; /* protects the fields down to `round` */
	bool is_keeping, again;
	/* entries of struct set_wait that wait for the next round, and for the current round */
	struct list waiting, round;
	/* Port on whose thread the round runs; this thread owns the fields below. */
	struct set_port *keeper;
	/* error for which the latest attempt to assign secondaries was not made; 0: none. Any thread. */
	_Atomic int not_paired;
	struct set_turn turn;
	bool pairs; /* true: the round has yet to assign secondaries */
	struct msg msg;
	struct disk_table table;
	struct store_slots places;
	struct store_slots_op op;
	struct leaving *leaving;
	int from, to; /* from: engine of the former primary of `places`; to: engine of the new primary */
};

/* Asks for a round of the recovery task. The round begins on the thread of a port, after the round in
 * progress. Does nothing if no bucket has two copies. */
void set_keep(struct set *s);
/* Begins a round that was requested while the set had no port. Called after a port was attached. */
void set_keep_on(struct set *s);
/* Asks for a round of the recovery task, and waits for its end: w->go() follows. */
void set_wait_kept(struct set *s, struct set_wait *w);
/* Returns the error for which the latest attempt to assign secondaries was not made, or 0. */
int set_pairs_error(const struct set *s);
/* Returns true if a round runs or is requested. */
bool set_recovers(struct set *s);

#endif
