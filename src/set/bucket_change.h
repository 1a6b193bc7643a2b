/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucket_change - buckets of a set: each is on every engine in service, and what the first one says is so.
 *
 * A change goes from engine to engine; of all changes of a set one is under way at a time (M11).  Meanwhile the gate of the
 * bucket is closed on the engines, so nothing is acknowledged in a bucket that a cut may take or give back:
 *
 *	make	on all others with a closed gate --> on the first --> the gates open
 *	remove	gates closed, each engine says that it has nothing --> removed on the first, then on the others --> the gates open
 *	copies	gates closed, each engine says that it has nothing --> changed on the first, then on the others --> the gates open
 *
 * What a cut leaves half done the next start makes as the first one has it (align_buckets.c): so nothing that ends with a bucket
 * (uploads) has ended where it has the bucket.  Up to the end of a removal it is the last engine that answers.  A removal that has begun is
 * completed wherever it can be, and where it cannot the gate stays closed: it never opens on a mixture (M31).
 *
 * An engine whose disk fails on the way does not count any more once the table is written without it, for which a change
 * waits (M15, map_change.c): then it goes on as if there were none.  The one that answers about buckets is another one when
 * all that are left have the change.
 */
#ifndef GANTRY_SET_BUCKET_CHANGE_H
#define GANTRY_SET_BUCKET_CHANGE_H

#include "set/set_int.h"

enum step { LOOK, CHANGE, CLEAR, OPEN, UNDO, UNDO_OPEN };

#define TRIES 5 /* of a removal for which there is no room now */

/* An operation on one engine. */
struct sub {
	struct change *c; /* NULL: its engine failed under it, and nobody waits for it any more */
	struct set_port *port;
	bool is_busy;
	void *attrs; /* NULL: it has none */
	union {
		struct store_op op;
		struct store_del del;
		struct store_bucket_set set;
		struct store_stat stat;
	} u;
};

struct change {
	struct set_turn turn; /* it is its turn, or the table is written */
	struct set_port *port;
	struct store_op *op; /* the caller's */
	/*
	 * Starts the next operation on an engine, and returns what that start returned.  r: the result of the
	 * one before, 0 at first.  When there is no more to do it calls change_is_done() instead.
	 */
	int (*next)(struct change *c, int r);
	bool is_over;
	int result;

	enum step step;
	int at;       /* the engine of this step; -1: none yet */
	int r;        /* that the step came to, while the table is written */
	int failed;   /* why it is not done, or not wholly; 0 */
	bool touched; /* an engine was given something to write */
	bool judged;  /* the first engine has taken it */
	int tries;
	uint64_t closed; /* engines whose gate stays closed */
	uint64_t made;   /* engines that have made it */
	char name[STORE_BUCKET_MAX];
	size_t len;
	const void *attrs; /* to be set; the caller's */
	uint32_t attrs_len;
	uint64_t version;
	uint64_t ctime_ns;
	struct store_use max_quota;
	unsigned copies;     /* that the bucket is made with, or given */
	unsigned had_copies; /* that it had before */
	bool is_wanted;      /* a bucket that is there is to have so many, too */
	bool has_ended;      /* what is left is an alarm that will come */
	struct sub *sub;
};

/* ---- bucket_change.c ---- */

/* Returns the engine in service behind that one, or how many there are. */
int change_next_of(const struct change *c, int at);
/* Returns the engine in service before that one; -1: none is. */
int change_before(const struct change *c, int at);
/* Tells whether the engine of this step has left: what it said counts for nothing. */
bool change_is_lost(const struct change *c);
/* Ends the change with that result.  Returns 0. */
int change_is_done(struct change *c, int result);
/* Makes a change of a bucket.  NULL: no memory. */
struct change *change_new(struct set_port *p, struct store_op *op, const char *name, size_t len,
			  int (*next)(struct change *, int));
/* Takes the turn and begins.  Returns what the start of an operation returns. */
int change_begin(struct change *c);
/* Returns the port of the engine of this step, with the operation for it made ready. */
struct store_port *change_engine_at(struct change *c);
/* Makes a copy of the attributes for the engine of this step, which may read them after the caller has its answer.  0 or -ENOMEM. */
int change_copy_attrs(struct change *c);
/* Removes the bucket on the engine of this step. */
int change_remove_at(struct change *c);
/* Opens or closes the gate on the engine of this step. */
int change_gate_at(struct change *c, enum store_gate gate);
/* Opens the gates of the engines behind this one, but for those that stay closed. */
int change_open_next(struct change *c);

/* ---- bucket_through.c ---- */

/* Makes a change on the one engine that there is. */
int through_create(struct set_port *p, const char *name, size_t len, unsigned copies,
		   const struct store_bucket_spec *spec, struct store_del *op);
int through_delete(struct set_port *p, const char *name, size_t len, struct store_del *op);
int through_attrs(struct set_port *p, const char *name, size_t len, uint64_t version, const void *attrs,
		  uint32_t attrs_len, struct store_bucket_set *op);
int through_quota(struct set_port *p, const char *name, size_t len, const struct store_use *max,
		  struct store_bucket_set *op);

/* ---- bucket_remove.c ---- */

/* Closes the gates, one after the other, and goes on with rest(): the gates are closed, and each engine has said that it has
 * nothing. */
int change_close_next(struct change *c, int r, enum store_gate gate, int (*rest)(struct change *c));

/* ---- bucket_copies.c ---- */

/* Begins to give a bucket that is there another number of copies.  What a missing disk has in it is not known (M31). */
int change_copies_begin(struct change *c, unsigned had_copies);

#endif
