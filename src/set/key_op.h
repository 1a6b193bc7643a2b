/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_op - an operation of the set itself on one key, with the waits that such operations have: for the lock
 * of the key, and for the recovery task. Embedded by the operation, and used on the thread of its port.
 */
#ifndef GANTRY_SET_KEY_OP_H
#define GANTRY_SET_KEY_OP_H

#include "set/set_int.h"

#include <string.h>

struct key_op {
	struct set_port *port;
	struct store_key key; /* key of the operation, stored in name[] */
	struct set_hold hold;
	struct set_wait wait;
	void (*go)(struct key_op *ko); /* function that continues the operation after a wait */
	char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
};

/* Returns the pointer that is stored in the private bytes of an operation of the caller. */
static inline void *
key_op_stored(const unsigned char *priv)
{
	void *p;

	memcpy(&p, priv, sizeof p);
	return p;
}

/* Initializes an operation, which is zeroed: copies the key. The operation then calls port_pin(). */
void key_op_init(struct key_op *ko, struct set_port *p, const struct store_key *k);
/* Takes the lock of the key. Returns 1 if the lock is granted; 0 if go() follows; or -EAGAIN. */
int key_op_lock(struct key_op *ko, void (*go)(struct key_op *ko));
static inline bool
key_op_has_lock(const struct key_op *ko)
{
	return ko->hold.key != NULL;
}

/* Releases the lock of the key, if the operation has the lock. */
void key_op_unlock(struct key_op *ko);
/* Waits until the recovery task has applied the newest map; go() follows. */
void key_op_wait(struct key_op *ko, void (*go)(struct key_op *ko));
/* Releases the lock of the key, if the operation has the lock, and calls port_unpin(). */
void key_op_end(struct key_op *ko);

#endif
