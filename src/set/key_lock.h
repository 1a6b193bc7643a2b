/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_lock - locks of a set on keys with two copies (docs/set.md, M16 and M17). A change holds the lock of
 * its key until both disks have the change, or until the map records that the secondary is not in sync. All
 * changes of a key therefore have one order on both disks, and no reader sees a change that the loss of a
 * disk could undo.
 *
 * A key has at most one holder; other changes wait in order. A change that can be neither finished nor undone
 * leaves its key in doubt ("open"): until the next start has decided about the change, no other change is
 * made and no reader sees the key. The locks are only in memory. Any thread may call these functions.
 */
#ifndef GANTRY_SET_KEY_LOCK_H
#define GANTRY_SET_KEY_LOCK_H

#include "base/list.h"
#include "base/mailbox.h"
#include "model/merge.h"

#include <pthread.h>

#define HOLD_SHARDS 64
#define HOLD_CHAINS 64 /* number of hash chains in a shard */

/* The lock table of a set. */
struct set_holds {
	struct hold_shard {
		pthread_mutex_t lock;
		struct held_key *chain[HOLD_CHAINS];
		unsigned nr;
	} shard[HOLD_SHARDS];
};

/* An entry in the queue of a key's lock. Embedded by the caller. */
struct set_hold {
	struct mailbox *mb;
	/* called when the lock is granted after a wait, on the thread of the mailbox */
	void (*go)(struct msg *m);
	struct msg msg;
	struct list link;
	struct held_key *key; /* key whose lock this entry has; NULL: the entry is not the holder */
};

/* Makes a lock table, which is zeroed. */
void set_holds_init(struct set_holds *hs);
/* Ends the use of a lock table. No key is locked. */
void set_holds_fini(struct set_holds *hs);
/* Takes the lock of a key. Returns 1 if the lock is granted; 0 if go() follows through the mailbox; -EAGAIN
 * if the key is in doubt; -ENOMEM. */
int set_hold(struct set_holds *hs, const struct store_key *k, struct set_hold *h);
/* Releases the lock, and grants it to the next entry in the queue. is_open: marks the key as in doubt; entries in the
 * queue still get the lock, one after the other, and find the mark with set_is_open(). */
void set_release(struct set_holds *hs, struct set_hold *h, bool is_open);
/* Returns true if the key of this holder is in doubt. */
bool set_is_open(const struct set_hold *h);
/* Returns true if the key is locked or in doubt. */
bool set_is_held(struct set_holds *hs, const struct store_key *k);
/* Waits until the current holders of locks on keys of a bucket have released these locks. Returns 1 if no key
 * is locked; 0 if w->go() follows; -EAGAIN if a key is in doubt; -ENOMEM. */
int set_wait_held(struct set_holds *hs, const char *bucket, size_t len, struct merge_wait *w);

#endif
