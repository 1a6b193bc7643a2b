/* SPDX-License-Identifier: Apache-2.0 */
/*
 * two_change - the state of a change of a key with two copies, from the key lock to the answer, for
 * two_change.c and two_put.c.
 */
#ifndef GANTRY_SET_TWO_CHANGE_H
#define GANTRY_SET_TWO_CHANGE_H

#include "set/replicas.h"

/* The operation of a change on the secondary. The operation has separate memory, because a disk that hangs
 * may still use this memory after the change was answered. */
struct copy {
	struct change_two *of; /* change that waits for the copy; NULL: no change waits */
	bool is_kept;          /* true until two_copy_drop(): the change still uses the copy */
	struct set_port *port;
	int engine;
	bool is_busy;
	struct store_put put; /* PUT on the secondary, with the same pieces as on the primary */
	bool has_put;         /* true: `put` has begun */
	struct store_send send;
	struct buf buf; /* buffer of `send`; mem NULL: not allocated */
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
	/* Number of pieces being written to the secondary, and the first error of a piece. */
	unsigned writes;
	int write_error;
};

enum two_stage { TWO_HOLD, TWO_FIRST, TWO_SECOND, TWO_KEPT };

struct change_two {
	struct set_port *port;
	struct store_op *op; /* operation of the caller */
	struct set_call call;
	struct store_pre pre;
	uint8_t id[STORE_UPLOAD_ID_BYTES]; /* id of the upload that the change concerns */
	struct store_key key;              /* key of the change, stored in name[] */
	struct set_hold hold;
	struct set_wait wait;
	void (*kept)(struct change_two *c); /* function that continues the change after a wait for the
	                                     * recovery task */
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
	/* Operation on the primary, unless the change is a PUT. */
	union {
		struct store_op op;
		struct store_del del;
		struct store_upload upload;
		struct store_complete complete;
	} u;
	/* For a PUT. */
	struct store_put *put; /* PUT on the primary; NULL: the change is not a PUT */
	struct store_commit commit;
	char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
};

/* A PUT of an object or a part: the PUT on the primary, and the copy on the secondary. */
struct put_two {
	struct change_two c;
	struct store_op mine; /* operation that c.op points to, for the end of the commit */
	struct store_put first;
	struct store_put *of; /* PUT of the caller */
	int error;            /* -ENOSPC: the secondary has no space for the bytes; 0: no error */
	char inline_data[STORE_INLINE_MAX];
};

/* Begins a change: takes the key lock, makes the change on the primary and then on the secondary, and
 * answers. Returns 1 if the change has ended with c->result; 0: c->op->done() follows. */
int two_begin(struct change_two *c);
/* Frees a copy now, or as soon as its disk no longer uses the memory. */
void two_copy_drop(struct copy *cp);
struct copy *two_copy_new(struct set_port *p, const struct store_key *k, int engine);
/* Copies a key to c->name[], and makes c->key refer to the copy. */
void two_set_key(struct change_two *c, const struct store_key *k);

#endif
