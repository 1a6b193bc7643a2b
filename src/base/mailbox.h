/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between threads: a lock-free queue for each receiver. The nodes of the queue are embedded in the
 * senders' operations, so the queue cannot be full. The doorbell (an eventfd) rings only when the receiver
 * has declared that it sleeps. Any thread may post a message; all other functions are called on the
 * receiver's thread. The messages of each sender keep their order. */
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

/* Runs at most max messages that have arrived; max 0: all messages that arrived before the call. Returns the
 * number of messages run. */
int mailbox_run(struct mailbox *mb, int max);

/* Declares that the receiver is about to wait. Returns true if the mailbox is empty: the doorbell then rings
 * at the next message. Returns false if messages must run first. */
bool mailbox_sleep(struct mailbox *mb);
/* Declares that the receiver is awake again, and clears the doorbell, whether or not it has rung. */
void mailbox_wake(struct mailbox *mb);

#endif
