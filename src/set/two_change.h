/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change of a key with two copies, from the key lock to the answer: for two_change.c and two_put.c.
 */
#ifndef GANTRY_SET_TWO_CHANGE_H
#define GANTRY_SET_TWO_CHANGE_H

#include "set/replicas.h"

/* The operation on the secondary, in separate memory, because a disk that hangs may still use the memory
 * after the answer. */
struct copy {
	struct change_two *of; /* change that waits for the copy; NULL: none */
	bool is_kept;          /* the owner drops the copy */
	struct set_port *port;
	int engine;
	bool is_busy;
	struct store_put put; /* the PUT on the secondary, with the same pieces */
	bool has_put;         /* put was begun */
	struct store_send send;
	struct buf buf; /* buffer of send; mem NULL: not allocated yet */
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
	/* Number of pieces being written, and the first error of a piece. */
	unsigned writes;
	int write_error;
};

enum two_stage { TWO_HOLD, TWO_FIRST, TWO_SECOND, TWO_KEPT };

struct change_two {
	struct set_port *port;
	struct store_op *op; /* the caller's operation */
	struct set_call call;
	struct store_pre pre;
	uint8_t id[STORE_UPLOAD_ID_BYTES]; /* id of the upload */
	struct store_key key;              /* key of the change, in name[] */
	struct set_hold hold;
	struct set_wait wait;
	void (*kept)(struct change_two *c); /* step after a wait for the recovery task */
	bool is_starting, is_over, is_unsettled;
	bool was_begun; /* an engine has accepted the change, so its outcome is a result and not a refusal */
	bool is_open;   /* the primary failed during the change, and may have it or not */
	/* the change was started on the secondary, which may be the primary now, and may have the change or
	 * not */
	bool was_copied;
	int tries, done, result; /* done: result of the primary */
	int first;               /* engine of the primary */
	struct copy *copy;
	struct list link; /* link of the port's list, during the wait for the secondary */
	/* Operation on the primary, except for a PUT. */
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

/* A PUT of an object or a part: on the primary, and a copy on the secondary. */
struct put_two {
	struct change_two c;
	struct store_op mine; /* c.op */
	struct store_put first;
	struct store_put *of; /* the caller's PUT */
	int error;            /* the secondary has no space for the bytes */
	char inline_data[STORE_INLINE_MAX];
};

/* Begins a change: key lock, change on the primary, then on the secondary, answer. 1: ended, with c->result;
 * 0: c->op->done() follows. */
int two_begin(struct change_two *c);
/* Frees the copy, now or when its disk no longer uses it. */
void two_copy_drop(struct copy *cp);
struct copy *two_copy_new(struct set_port *p, const struct store_key *k, int engine);
/* Copies a key into a change. */
void two_set_key(struct change_two *c, const struct store_key *k);

#endif
