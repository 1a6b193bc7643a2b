/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiesce - grace periods, after which memory that readers found without a lock may be reused.
 *
 * A *user* is one thread that reads the index: a port (core) or a helper thread. A user calls quiesce_point()
 * once per turn of its loop, to declare that it uses no pointer found before. A user that sleeps counts as
 * quiescent. An *epoch* names an instant; an epoch has passed when every user has been quiescent since.
 * Memory whose removal was published before quiesce_now() may be reused when the epoch has passed.
 *
 * 	publish the new root;
 * 	epoch = quiesce_now(q);
 * 	...later...
 * 	if (quiesce_passed(q, epoch))
 * 		reuse the old nodes;
 *
 * One struct quiesce serves one engine: its index and all its ports.
 *
 * Threads: any thread may call quiesce_join(), quiesce_now() and quiesce_passed(); the other calls of a user
 * are made on its thread. Errors: quiesce_new() returns -ENOMEM, quiesce_join() returns NULL; the other
 * functions cannot fail. Only joining and leaving may block.
 */
#ifndef GANTRY_EXTENT_INDEX_QUIESCE_H
#define GANTRY_EXTENT_INDEX_QUIESCE_H

#include <stdbool.h>
#include <stdint.h>

struct quiesce;
struct quiesce_user;

/* Allocates an instance for at most users_max users at a time. Returns 0 or -ENOMEM. */
int quiesce_new(int users_max, struct quiesce **ret_q);
/* Frees an instance that has no users. NULL is allowed. */
void quiesce_free(struct quiesce *q);

/* Adds a user, which is awake. Returns NULL if there are users_max users already. */
struct quiesce_user *quiesce_join(struct quiesce *q);
/* Removes a user: no epoch waits for this user any longer. */
void quiesce_leave(struct quiesce_user *u);

/* Declares that the user will not use any pointer that it found before this call. The cost is a load, and a
 * store if a new epoch began since the last call. */
void quiesce_point(struct quiesce_user *u);
/* Makes the user quiescent until quiesce_wake(); until then the thread must not access the index. */
void quiesce_sleep(struct quiesce_user *u);
/* Ends the sleep of a user: from now on the thread may access the index. */
void quiesce_wake(struct quiesce_user *u);

/* Returns a new epoch, which names the present instant and is larger than all earlier epochs. If a user calls
 * this function, this user, too, must be quiescent again before the epoch has passed. */
uint64_t quiesce_now(struct quiesce *q);
/* Returns true if every user has been quiescent since `epoch`. The epoch 0 has always passed. */
bool quiesce_passed(struct quiesce *q, uint64_t epoch);

#endif
