/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user - a thread that waits for each of its operations, one after the other, with ports at one or several
 * stores: for work of the daemon and of a start. The user has its own ring, mailbox and timers.
 */
#ifndef GANTRY_STORE_USER_H
#define GANTRY_STORE_USER_H

#include "store/store.h"

struct store_user;

/* Makes a user with a port at each of nr stores. 0 or -errno, and then no user exists. */
int store_user_new(struct store *const *stores, int nr, struct store_user **ret_user);
/* Detaches the ports and frees the user, on the thread that made the user. NULL is allowed. */
void store_user_free(struct store_user *u);
/* Returns the port at the i-th store. */
struct store_port *store_user_port(struct store_user *u, int i);
/* Turns the user's loop once, for at most a millisecond: for a thread that waits for another event. */
void store_user_turn(struct store_user *u);
/* Announces, before an operation is started, that store_user_wait() will follow. */
void store_user_begin(struct store_user *u, struct store_op *op);
/* Waits for the operation, whose start returned r: its result, or r < 0. */
int store_user_wait(struct store_user *u, const struct store_op *op, int r);

/* Starts an operation by `call`, and waits for its result. */
#define STORE_DO(u, op, call) (store_user_begin((u), (op)), store_user_wait((u), (op), (call)))

#endif
