/*
 * Quiescent states: when may memory that readers found without a lock be used again?
 *
 * A *user* is one thread that reads the index: a port (core) or a helper.  It says quiesce_point() once per
 * turn of its loop: "I hold nothing that I found before".  A user that sleeps counts as quiescent.  A *token*
 * names an instant; it has passed when every user has been quiescent since.  What was unlinked (and that
 * published) before quiesce_now() may be used again once that token has passed.
 *
 *	publish the new root;
 *	token = quiesce_now(q);
 *	...later...
 *	if (quiesce_passed(q, token))
 *		reuse the old nodes;
 *
 * One struct quiesce serves a whole store: all its disks, all its ports.
 */
#ifndef GANTRY_EXTENT_INDEX_QUIESCE_H
#define GANTRY_EXTENT_INDEX_QUIESCE_H

#include <stdbool.h>
#include <stdint.h>

struct quiesce;
struct quiesce_user;

/* 0 or -ENOMEM.  users_max: how many may take part at once. */
int quiesce_new(int users_max, struct quiesce **ret_q);
/* No user is left.  NULL is fine. */
void quiesce_free(struct quiesce *q);

/* Takes part from now on, awake.  Any thread; NULL when users_max take part already.  The user's other calls
 * are made on its own thread. */
struct quiesce_user *quiesce_join(struct quiesce *q);
void quiesce_leave(struct quiesce_user *u);

/* Nothing found before this call is used after it.  Cheap: a load, and a store when a token was taken since
 * the last one. */
void quiesce_point(struct quiesce_user *u);
/* Quiescent until quiesce_wake(); in between the thread must not touch what it could find in the index. */
void quiesce_sleep(struct quiesce_user *u);
void quiesce_wake(struct quiesce_user *u);

/* Any thread.  Tokens grow; 0 has always passed.  A user that takes a token is waited for like the others. */
uint64_t quiesce_now(struct quiesce *q);
bool quiesce_passed(struct quiesce *q, uint64_t token);

/*
 * A list of things to be freed after a grace period, for whatever has room for a link that readers do not
 * look at.  A limbo belongs to one thread at a time (the writer).  Zeroed memory is an empty one.
 */
struct quiesce_item {
	struct quiesce_item *next;
	uint64_t token; /* 0: not sealed yet */
	void (*fn)(struct quiesce_item *item);
};

struct quiesce_limbo {
	struct quiesce_item *head, *tail;
	struct quiesce_item *open; /* the first one not sealed */
	uint64_t nr;
};

/* Adds item; it waits for the next seal. */
void quiesce_retire(struct quiesce_limbo *limbo, struct quiesce_item *item,
		    void (*fn)(struct quiesce_item *item));
/* All items added so far have been unlinked and that was published: one token for all of them. */
void quiesce_seal(struct quiesce *q, struct quiesce_limbo *limbo);
/* Runs fn of every item whose token has passed, in the order of retirement; fn may free the item and may
 * retire others. Returns how many. */
unsigned quiesce_reclaim(struct quiesce *q, struct quiesce_limbo *limbo);

#endif
