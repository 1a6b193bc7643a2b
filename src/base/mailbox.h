/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between threads: a lock-free queue per receiver. Its nodes are embedded in the operations, so the
 * queue cannot be full. The doorbell (an eventfd) rings only when the receiver has declared that it sleeps.
 *
 * Senders: any thread. Everything else: the receiver's thread. Order is kept per sender.
 */
#ifndef GANTRY_BASE_MAILBOX_H
#define GANTRY_BASE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

struct msg {
	_Atomic(struct msg *) next;
	void (*fn)(struct msg *m); /* runs on the receiver's thread; the node may be reused from then on */
};

struct mailbox {
	_Alignas(64) _Atomic(struct msg *) tail; /* senders */
	_Alignas(64) struct msg *head;           /* receiver */
	struct msg anchor;
	_Atomic bool asleep;
	/* the doorbell; becomes readable when a message arrives after mailbox_sleep() returned true */
	int efd;
};

/* Makes an empty mailbox.  0 or -errno (no descriptor left). */
int mailbox_init(struct mailbox *mb);
/* Closes the doorbell. */
void mailbox_fini(struct mailbox *mb);

/* Hands m over. m must not be in a mailbox already. */
void mailbox_post(struct mailbox *mb, struct msg *m, void (*fn)(struct msg *));

/* Runs the messages that have arrived, at most max (0: all that are there now); returns how many ran. */
int mailbox_run(struct mailbox *mb, int max);

/* Declares that the receiver is about to wait. True: the mailbox is empty, and the doorbell will ring; false:
 * do not wait, run first. */
bool mailbox_sleep(struct mailbox *mb);
/* Declares that the receiver is awake again (also drains the doorbell, which may or may not have rung). */
void mailbox_wake(struct mailbox *mb);

#endif
