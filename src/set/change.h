/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change - the state of a change of one key, from the key lock to the answer, for change.c and put.c. A key
 * with one copy is a key without a secondary, and its changes take no key lock.
 */
#ifndef GANTRY_SET_CHANGE_H
#define GANTRY_SET_CHANGE_H

#include "set/key_op.h"

/* The operation of a change on the secondary. The operation has separate memory, because a disk that hangs
 * may still use this memory after the change was answered. */
struct copy {
	struct key_op ko;
	struct key_change *of; /* change that uses the copy; NULL after copy_drop() */
	int engine;
	bool is_busy;
	struct store_put put; /* PUT on the secondary, with the same pieces as on the primary */
	bool has_put;         /* true: `put` has begun */
	struct store_send send;
	struct buf buf; /* buffer of `send`; mem NULL: not allocated */
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	/* Number of pieces being written to the secondary, and the first error of a piece. */
	unsigned writes;
	int write_error;
};

struct key_change {
	struct key_op ko;
	struct store_op *op; /* operation of the caller */
	/* copies the result to the operation of the caller, and frees the change; called before op->done() */
	void (*give)(struct key_change *c);
	struct store_change call; /* the change, with its own copies of names and ids, unless it is a PUT */
	bool is_put;
	struct store_pre pre;
	uint8_t id[STORE_UPLOAD_ID_BYTES]; /* id of the upload that the change concerns */
	bool is_starting, is_over, is_unsettled;
	/* true: an engine has accepted the change, so an error is the result of the change, not a refusal to
	 * start it */
	bool was_begun;
	bool is_open; /* true: the primary failed during the change, and may or may not have the change */
	/* true: the change was started on the secondary, which may be the primary now, and may or may not
	 * have the change */
	bool was_copied;
	/* tries: number of attempts; done: result of the primary; result: result of the change */
	int tries, done, result;
	int first; /* engine that was the primary at the start of the change */
	struct copy *copy;
	struct list link; /* link in the port's list of changes that wait for the secondary */
	/* operation on the primary; the kind of the change determines the member */
	union {
		struct store_op op;
		struct store_del del;
		struct store_upload upload;
		struct store_complete complete;
		struct store_put put;
	} u;
	struct store_commit commit; /* arguments of the commit of a PUT */
};

/* Begins a change, for which key_op_init() was called: takes the key lock, makes the change on the primary and then on the secondary, and
 * answers. Returns true if the change has ended with c->result; otherwise give() and done() follow. */
bool key_change_begin(struct key_change *c);
/* Allocates a copy of a change on an engine, without an operation. Returns NULL if there is no memory. */
struct copy *copy_new(struct key_change *c, int engine);
/* Frees a copy now, or as soon as its disk no longer uses the memory. */
void copy_drop(struct copy *cp);

#endif
