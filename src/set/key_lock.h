/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds of a set on keys with two copies (docs/set.md, M16 and M17): who changes one has it until both disks have the change, or it
 * stands in the table that one of them has not.  So all changes of a key have one order on both, and nobody sees one that the loss of a
 * disk could take back.
 *
 * One at a time has a key; others wait in order.  A change that can be neither finished nor taken back leaves its key open: nobody gets it any more,
 * or sees what is there, until the next start has decided.  Any thread.  In memory alone.
 */
#ifndef GANTRY_SET_KEY_LOCK_H
#define GANTRY_SET_KEY_LOCK_H

#include "base/list.h"
#include "base/mailbox.h"
#include "store/merge.h"

struct set_holds;
struct held_key;

/* A place in the queue of a key.  Embedded by the caller. */
struct set_hold {
	struct mailbox *mb;
	void (*go)(struct msg *m); /* comes when it has the key, if it had to wait */
	struct msg msg;
	struct list link;
	struct held_key *key; /* NULL: it has none */
};

/* Makes the holds of a set, none yet.  0 or -ENOMEM. */
int set_holds_new(struct set_holds **ret_holds);
/* Frees them, of which there are none any more.  NULL is fine. */
void set_holds_free(struct set_holds *hs);
/* Takes a key.  1: it has it; 0: go() will run through its mailbox; -EAGAIN: it was left open; -ENOMEM. */
int set_hold(struct set_holds *hs, const struct store_key *k, struct set_hold *h);
/* Gives it to the next in the queue. */
void set_release(struct set_holds *hs, struct set_hold *h);
/* Leaves the key open.  Those in the queue get it all the same, and learn that. */
void set_leave_open(struct set_holds *hs, struct set_hold *h);
/* Tells who has a key whether it was left open before. */
bool set_is_open(const struct set_hold *h);
/* Tells whether anybody has the key, or it was left open. */
bool set_is_held(struct set_holds *hs, const struct store_key *k);
/* Waits until all keys of a bucket that are locked now were released once.  1: none is locked; 0: w->go() will run; -EAGAIN: a key
 * was left open; -ENOMEM. */
int set_wait_held(struct set_holds *hs, const char *bucket, size_t len, struct merge_wait *w);

#endif
