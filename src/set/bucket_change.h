/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucket_change - changes of buckets of a set. Each bucket is on every engine in service, and the metadata
 * leader (the first engine) determines the state of the bucket.
 *
 * A change visits the engines one after the other; a set has one change in progress at a time (M11). During
 * the change the gate of the bucket is closed on the engines, so no write is acknowledged in a bucket that a
 * power cut may remove or restore. The steps of each kind of change:
 *
 * - make: the bucket is made with a closed gate on all engines except the first; then on the first; then the
 *   gates open.
 * - remove: the gates close, and each engine confirms that the bucket is empty; the bucket is removed on the
 *   first engine, then on the others; then the gates open.
 * - change of the number of copies: the gates close, and each engine confirms that the bucket is empty; the
 *   number changes on all engines, on the first one last; then the gates open.
 *
 * If a power cut interrupts a change, the next start makes all engines equal to the first engine
 * (align_buckets.c). The removal of a bucket ends the uploads in it; if the first engine still has the bucket
 * after a power cut, the uploads still exist. Until a removal has ended, the last engine answers requests
 * about the bucket. A removal that has begun is completed on every engine on which this is possible. If the
 * removal fails on an engine, the gate stays closed there: the gate never opens while only some engines have
 * the bucket (M31).
 *
 * If a disk fails during a change, the change waits until the map is written without that disk (M15,
 * map_change.c), and then continues without the engine of this disk. The metadata leader is replaced when all
 * remaining engines have the change.
 */
#ifndef GANTRY_SET_BUCKET_CHANGE_H
#define GANTRY_SET_BUCKET_CHANGE_H

#include "set/set_int.h"

enum step { LOOK, CHANGE, CLEAR, LOOK_AGAIN, OPEN, UNDO, UNDO_OPEN };

/* largest number of attempts to remove a bucket on an engine that has no space for the record */
#define TRIES 5

/* The operation on one engine in one step of a change. The operation may outlive the change. */
struct sub {
	/* change that waits for the result; NULL: no change waits, because the engine failed during the
	 * operation */
	struct change *c;
	struct set_port *port;
	bool is_busy;
	union {
		struct store_op op;
		struct store_del del;
		struct store_bucket_set set;
		struct store_stat stat;
	} u;
	/* copy of the new attributes, because the engine may read them after the caller was answered */
	unsigned char attrs[];
};

struct change {
	/* entry of the change while it waits for the map change lock, or until a map is written */
	struct set_turn turn;
	struct set_port *port;
	struct store_op *op; /* operation of the caller, completed at the end of the change */
	/*
	 * Starts the operation on the next engine, and returns the result of the engine's start function
	 * (store.h). r is the result of the previous operation, 0 at first. After the last operation the
	 * function calls change_is_done() instead.
	 */
	int (*next)(struct change *c, int r);
	bool is_over;
	int result;

	enum store_act act;
	enum step step;
	int at;     /* index of the engine of the current step; -1: no step has begun */
	int r;      /* result of the step, kept during the write of the map */
	int failed; /* error of a change that was not made, or was made on some engines only; 0: no error */
	/* error of the last attempt to remove the remains of the bucket before its creation; -EAGAIN: the attempt
	 * succeeded; 0: no attempt has ended */
	int not_cleared;
	bool touched; /* true after a write was started on an engine */
	bool judged;  /* true after the first engine has accepted the change */
	int tries;
	uint64_t closed; /* bitmap of the engines whose gate the last step must not open */
	uint64_t made;   /* bitmap of the engines that have made the bucket */
	char name[STORE_BUCKET_MAX];
	size_t len;
	const void *attrs; /* new attributes, owned by the caller */
	uint32_t attrs_len;
	uint64_t version;
	uint64_t ctime_ns;
	struct store_use max_quota;
	unsigned copies;     /* number of copies of each object in a new or changed bucket */
	unsigned had_copies; /* previous number of copies of each object */
	/* true: the caller named the number of copies, so an existing bucket with another number is
	 * changed */
	bool is_wanted;
	/* true: the change has ended, and is freed when the failure notification that is in flight has
	 * arrived */
	bool has_ended;
	struct set_wait paired; /* wait of a creation until all slots have secondaries */
	struct sub *sub;
};

/* ---- bucket_change.c ---- */

/* Returns the index of the next engine in service after engine `at`; the number of engines: no engine
 * follows. */
int change_next_of(const struct change *c, int at);
/* Returns the index of the last engine in service before engine `at`; -1: no such engine. */
int change_before(const struct change *c, int at);
/* Returns true if the engine of the current step is out of service, so that its result is ignored. */
bool change_is_lost(const struct change *c);
/* Ends the change with `result`, and returns 0. */
int change_is_done(struct change *c, int result);
/* Allocates a change of a bucket, and pins the port. Returns NULL if there is no memory. */
struct change *change_new(struct store_port *sp, struct store_op *op, const struct store_change *sc,
			  int (*next)(struct change *, int));
/* Frees a change that has not begun or has ended, and unpins the port. */
void change_free(struct change *c);
/* Takes the map change lock and begins the change. Returns 1 if the change has ended with its result in
 * op->result; 0: op->done() follows; -EAGAIN: c is NULL. */
int change_begin(struct change *c);
/* Initializes the operation of the current step for its engine. Returns the port of this engine. */
struct store_port *change_engine_at(struct change *c);
/* Starts a change of the bucket on the engine of the current step; sc: the change, without the name of the
 * bucket. Returns the result of the engine's start function (store.h). */
int change_apply_at(struct change *c, struct store_change sc);
/* Starts the removal of the bucket on the engine of the current step. Returns the result of the engine's
 * start function (store.h). */
int change_remove_at(struct change *c);
/* Starts to open or close the gate on the engine of the current step. Returns the result of the engine's
 * start function (store.h). */
int change_gate_at(struct change *c, enum store_gate gate);
/* Starts to open the gate on the next engine, except on engines whose gate stays closed. After the last
 * engine the change ends. Returns the result of the engine's start function (store.h). */
int change_open_next(struct change *c);

/* ---- bucket_remove.c ---- */

/* Starts to close the gate on the next engine; r: result on the previous engine. When all gates are closed
 * and every engine has confirmed that the bucket is empty, calls rest(). Returns the result of the function
 * that was called. */
int change_close_next(struct change *c, int r, enum store_gate gate, int (*rest)(struct change *c));

#endif
