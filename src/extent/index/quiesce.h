/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiesce - when may memory that readers found without a lock be used again?
 *
 * A *user* is one thread that reads the index: a port (core) or a helper.  It calls quiesce_point() once
 * per turn of its loop: "I hold nothing that I found before".  A user that sleeps counts as quiescent.  An
 * *epoch* names an instant; it has passed when every user has been quiescent since.  What was unlinked (and
 * that published) before quiesce_now() may be used again once that epoch has passed.
 *
 *	publish the new root;
 *	epoch = quiesce_now(q);
 *	...later...
 *	if (quiesce_passed(q, epoch))
 *		reuse the old nodes;
 *
 * One struct quiesce serves one engine: its index and all its ports.
 *
 * Threads: quiesce_join(), quiesce_now() and quiesce_passed() on any; a user's other calls on its own.
 * Errors: quiesce_new() -ENOMEM; quiesce_join() NULL.  Nothing else fails, nothing blocks but joining and
 * leaving.
 */
#ifndef GANTRY_EXTENT_INDEX_QUIESCE_H
#define GANTRY_EXTENT_INDEX_QUIESCE_H

#include <stdbool.h>
#include <stdint.h>

struct quiesce;
struct quiesce_user;

/* Makes one for at most users_max users at once.  0 or -ENOMEM. */
int quiesce_new(int users_max, struct quiesce **ret_q);
/* Frees q, which no user is part of any more.  NULL is fine. */
void quiesce_free(struct quiesce *q);

/* Makes a user that takes part from now on, awake.  NULL when users_max take part already. */
struct quiesce_user *quiesce_join(struct quiesce *q);
/* Ends a user: nobody waits for it any more. */
void quiesce_leave(struct quiesce_user *u);

/* States that nothing found before this call is used after it.  Cheap: a load, and a store when an epoch was
 * named since the last one. */
void quiesce_point(struct quiesce_user *u);
/* Makes the user quiescent until quiesce_wake(); in between the thread must not touch what it could find in
 * the index. */
void quiesce_sleep(struct quiesce_user *u);
void quiesce_wake(struct quiesce_user *u);

/* Names the present instant.  Epochs grow; a user that names one is waited for like the others. */
uint64_t quiesce_now(struct quiesce *q);
/* Tells whether every user has been quiescent since that epoch.  0 has always passed. */
bool quiesce_passed(struct quiesce *q, uint64_t epoch);

#endif
