/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of a set on keys with two copies (docs/set.md, M16 and M17). A change holds the lock of its key until
 * both disks have the change, or the map says that one of them is not in sync. All changes of a key therefore
 * have one order on both disks, and no reader sees a change that the loss of a disk could undo.
 *
 * A key has at most one holder; other changes wait in order. A change that can be neither finished nor undone
 * leaves its key in doubt (open): until the next start has decided, no change gets the lock and no reader
 * sees the key. The locks are only in memory. Any thread.
 */
#ifndef GANTRY_SET_KEY_LOCK_H
#define GANTRY_SET_KEY_LOCK_H

#include "base/list.h"
#include "base/mailbox.h"
#include "store/merge.h"

struct set_holds;
struct held_key;

/* An entry in the queue of a key's lock. Embedded by the caller. */
struct set_hold {
	struct mailbox *mb;
	void (*go)(struct msg *m); /* called when the lock was granted after a wait */
	struct msg msg;
	struct list link;
	struct held_key *key; /* NULL: not the holder */
};

/* Makes the lock table of a set, without locks. 0 or -ENOMEM. */
int set_holds_new(struct set_holds **ret_holds);
/* Frees the table, in which no key is locked. NULL is allowed. */
void set_holds_free(struct set_holds *hs);
/* Takes the lock of a key. 1: granted; 0: go() follows through the mailbox; -EAGAIN: the key was left open;
 * -ENOMEM. */
int set_hold(struct set_holds *hs, const struct store_key *k, struct set_hold *h);
/* Releases the lock to the next in the queue. */
void set_release(struct set_holds *hs, struct set_hold *h);
/* Leaves the key open. Waiting changes get the lock nevertheless, and set_is_open() is true for them. */
void set_leave_open(struct set_holds *hs, struct set_hold *h);
/* Returns true to the holder if the key was left open before. */
bool set_is_open(const struct set_hold *h);
/* Returns true if the key is locked, or was left open. */
bool set_is_held(struct set_holds *hs, const struct store_key *k);
/* Waits until all keys of a bucket that are locked now were released once. 1: no key is locked; 0: w->go()
 * follows; -EAGAIN: a key was left open; -ENOMEM. */
int set_wait_held(struct set_holds *hs, const char *bucket, size_t len, struct merge_wait *w);

#endif
