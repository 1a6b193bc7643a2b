/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between threads: a lock-free queue per receiver. Its nodes are embedded in the operations, so the
 * queue cannot be full. The doorbell (an eventfd) rings only when the receiver has declared that it sleeps.
 *
 * Senders: any thread. All other functions: the receiver's thread. The messages of each sender keep their
 * order.
 */
#ifndef GANTRY_BASE_MAILBOX_H
#define GANTRY_BASE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

struct msg {
	_Atomic(struct msg *) next;
	/* function of the message, which runs on the receiver's thread; the node may be reused from then
	 * on */
	void (*fn)(struct msg *m);
};

struct mailbox {
	_Alignas(64) _Atomic(struct msg *) tail; /* end of the queue, for senders */
	_Alignas(64) struct msg *head;           /* beginning of the queue, for the receiver */
	struct msg anchor;
	_Atomic bool asleep;
	/* descriptor of the doorbell; it becomes readable when a message arrives after mailbox_sleep()
	 * returned true */
	int efd;
};

/* Makes an empty mailbox. Returns 0, or -errno if no descriptor is left. */
int mailbox_init(struct mailbox *mb);
/* Closes the doorbell. */
void mailbox_fini(struct mailbox *mb);

/* Posts a message, which must not be in a mailbox already. */
void mailbox_post(struct mailbox *mb, struct msg *m, void (*fn)(struct msg *));

/* Runs messages that have arrived, at most max (0: all messages that have arrived before the call). Returns
 * the number of messages run. */
int mailbox_run(struct mailbox *mb, int max);

/* Declares that the receiver is about to wait. Returns true if the mailbox is empty, and the doorbell will
 * ring; false if the receiver must run messages first. */
bool mailbox_sleep(struct mailbox *mb);
/* Declares that the receiver is awake again, and clears the doorbell, whether or not it has rung. */
void mailbox_wake(struct mailbox *mb);

#endif
