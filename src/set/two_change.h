/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change of a key with two copies, from the hold to the answer: for two_change.c and two_put.c.
 */
#ifndef GANTRY_SET_TWO_CHANGE_H
#define GANTRY_SET_TWO_CHANGE_H

#include "set/replicas.h"

/* What the second is given.  In memory of its own: a disk that hangs may hold on to it when the change is answered. */
struct copy {
	struct change_two *of; /* who waits for it; NULL: nobody does */
	bool is_kept;          /* its owner drops it */
	struct set_port *port;
	int engine;
	bool is_busy;
	struct store_put put; /* the bytes of a PUT, as they come */
	bool has_put;         /* put was begun */
	struct store_send send;
	struct buf buf; /* of send; mem NULL: it has none yet */
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
	/* Of pieces that are written. */
	unsigned writes;
	int write_error;
};

enum two_stage { TWO_HOLD, TWO_FIRST, TWO_SECOND, TWO_KEPT };

struct change_two {
	struct set_port *port;
	struct store_op *op; /* the caller's */
	struct set_call call;
	struct store_pre pre;
	uint8_t id[STORE_UPLOAD_ID_BYTES]; /* of the upload */
	struct store_key key;              /* in name */
	struct set_hold hold;
	struct set_wait wait;
	void (*kept)(struct change_two *c); /* what follows when the keeper was waited for */
	bool is_starting, is_over, is_unsettled;
	bool was_begun;  /* an engine has taken it: what comes of it is a result, and no refusal */
	bool is_open;    /* the first failed under it: it has it, or not */
	bool was_copied; /* the second, which may be the first by now, has been given it, and has it, or not */
	int tries, done, result; /* done: what the first one's result was */
	int first;               /* the engine of the first stage */
	struct copy *copy;
	struct list link; /* of the port's, while the second is waited for */
	/* What the first is given, if it is no PUT. */
	union {
		struct store_op op;
		struct store_del del;
		struct store_upload upload;
		struct store_complete complete;
	} u;
	/* A PUT */
	struct store_put *put; /* the first's; NULL: it is none */
	struct store_commit commit;
	char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
};

/* A PUT, or a part: one of the first engine, and a copy. */
struct put_two {
	struct change_two c;
	struct store_op mine; /* c.op */
	struct store_put first;
	struct store_put *of; /* the caller's */
	int error;            /* the second has no room for it */
	char inline_data[STORE_INLINE_MAX];
};

/* Takes the key, has the first make the change, then the second, and answers.  1: it is over, c->result is what came of it; 0: c->op->done()
 * will run; */
int two_begin(struct change_two *c);
/* Gives the copy back, now or when its disk lets go of it. */
void two_copy_drop(struct copy *cp);
struct copy *two_copy_new(struct set_port *p, const struct store_key *k, int engine);
/* Takes a key over into a change. */
void two_set_key(struct change_two *c, const struct store_key *k);

#endif
