/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user - a thread's access to one or several stores, for a thread that starts an operation only after the
 * previous operation has ended: background work of the daemon, and starts. The user has a ring, a mailbox and
 * timers.
 */
#ifndef GANTRY_STORE_USER_H
#define GANTRY_STORE_USER_H

#include "store/store.h"

struct store_user;

/* Makes a user with a port at each of nr stores. Returns 0, or -errno without a user. */
int store_user_new(struct store *const *stores, int nr, struct store_user **ret_user);
/* Detaches the ports and frees the user. Called on the thread that made the user. NULL is allowed. */
void store_user_free(struct store_user *u);
/* Returns the port at the i-th store. */
struct store_port *store_user_port(struct store_user *u, int i);
/* Runs the user's event loop once, for at most a millisecond. For a thread that waits for another event. */
void store_user_turn(struct store_user *u);
/* Prepares an operation for store_user_wait(). Called before the operation is started. */
void store_user_begin(struct store_user *u, struct store_op *op);
/* Waits for an operation whose start returned r. Returns the result of the operation, or r if r < 0. */
int store_user_wait(struct store_user *u, const struct store_op *op, int r);

/* Starts an operation by the expression `call`, and waits for its result. */
#define STORE_DO(u, op, call) (store_user_begin((u), (op)), store_user_wait((u), (op), (call)))

#endif
