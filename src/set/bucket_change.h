/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucket_change - changes of buckets of a set: each bucket is on every engine in service, and the metadata
 * leader (the first engine) determines its state.
 *
 * A change visits the engines one after the other; a set has one change in progress at a time (M11). During
 * the change the gate of the bucket is closed on the engines, so no write is acknowledged in a bucket that a
 * power cut may remove or restore:
 *
 *	make on all others with a closed gate --> on the first --> the gates open * remove gates closed,
 * bucket empty on each engine --> removed on the first, then on the others --> the gates open * copies gates
 * closed, bucket empty on each engine --> changed on the first, then on the others --> the gates open
 *
 * If a power cut interrupts a change, the next start makes all engines equal to the first one
 * (align_buckets.c): so uploads, which end with a bucket, have not ended where the first engine has the
 * bucket. Until the end of a removal the last engine answers. A removal that has begun is completed wherever
 * possible, and otherwise the gate stays closed: the gate never opens on a mixture (M31).
 *
 * An engine whose disk fails during a change no longer counts after the map is written without the engine,
 * for which the change waits (M15, map_change.c): then the change continues without the engine. The metadata
 * leader is replaced when all remaining engines have the change.
 */
#ifndef GANTRY_SET_BUCKET_CHANGE_H
#define GANTRY_SET_BUCKET_CHANGE_H

#include "set/set_int.h"

enum step { LOOK, CHANGE, CLEAR, OPEN, UNDO, UNDO_OPEN };

#define TRIES 5 /* attempts of a removal without space */

/* An operation on one engine. */
struct sub {
	/* NULL: the engine failed during the operation, and no change waits for the result */
	struct change *c;
	struct set_port *port;
	bool is_busy;
	void *attrs; /* copy of the attributes; NULL: none */
	union {
		struct store_op op;
		struct store_del del;
		struct store_bucket_set set;
		struct store_stat stat;
	} u;
};

struct change {
	struct set_turn turn; /* the wait for the map change lock, or for a written map */
	struct set_port *port;
	struct store_op *op; /* the caller's operation */
	/*
	 * Starts the next operation on an engine, and returns the result of this start. r: result of the
	 * previous operation, 0 at first. After the last operation it calls change_is_done() instead.
	 */
	int (*next)(struct change *c, int r);
	bool is_over;
	int result;

	enum step step;
	int at;       /* engine of the current step; -1: none yet */
	int r;        /* result of the step, kept while the map is written */
	int failed;   /* error of a change that was not made, or only partly; 0: none */
	bool touched; /* a write was started on an engine */
	bool judged;  /* the first engine has accepted the change */
	int tries;
	uint64_t closed; /* bitmap of the engines whose gate stays closed */
	uint64_t made;   /* bitmap of the engines that have made the bucket */
	char name[STORE_BUCKET_MAX];
	size_t len;
	const void *attrs; /* new attributes, which belong to the caller */
	uint32_t attrs_len;
	uint64_t version;
	uint64_t ctime_ns;
	struct store_use max_quota;
	unsigned copies;     /* number of copies of a new or changed bucket */
	unsigned had_copies; /* previous number of copies */
	bool is_wanted;      /* an existing bucket must get this number, too */
	bool has_ended;      /* the change has ended, except for an alarm that will arrive */
	struct sub *sub;
};

/* ---- bucket_change.c ---- */

/* Returns the engine in service after engine `at`, or the number of engines. */
int change_next_of(const struct change *c, int at);
/* Returns the engine in service before engine `at`; -1: none. */
int change_before(const struct change *c, int at);
/* Returns true if the engine of the current step is out of service, so that its result does not count. */
bool change_is_lost(const struct change *c);
/* Ends the change with `result`. Returns 0. */
int change_is_done(struct change *c, int result);
/* Makes a change of a bucket.  NULL: no memory. */
struct change *change_new(struct set_port *p, struct store_op *op, const char *name, size_t len,
			  int (*next)(struct change *, int));
/* Takes the map change lock and begins the change. Returns the result of a start of store.h. */
int change_begin(struct change *c);
/* Returns the port of the engine of the current step, with an initialized operation. */
struct store_port *change_engine_at(struct change *c);
/* Copies the attributes for the engine of the current step, which may read them after the caller's answer. 0
 * or -ENOMEM. */
int change_copy_attrs(struct change *c);
/* Removes the bucket on the engine of the current step. */
int change_remove_at(struct change *c);
/* Opens or closes the gate on the engine of the current step. */
int change_gate_at(struct change *c, enum store_gate gate);
/* Opens the gates of the later engines, except those that stay closed. */
int change_open_next(struct change *c);

/* ---- bucket_through.c ---- */

/* Creates a bucket in a set of one engine. */
int through_create(struct set_port *p, const char *name, size_t len, unsigned copies,
		   const struct store_bucket_spec *spec, struct store_del *op);
/* Removes a bucket in a set of one engine. */
int through_delete(struct set_port *p, const char *name, size_t len, struct store_del *op);
/* Sets the attributes of a bucket in a set of one engine. */
int through_attrs(struct set_port *p, const char *name, size_t len, uint64_t version, const void *attrs,
		  uint32_t attrs_len, struct store_bucket_set *op);
/* Sets the quota of a bucket in a set of one engine. */
int through_quota(struct set_port *p, const char *name, size_t len, const struct store_use *max,
		  struct store_bucket_set *op);

/* ---- bucket_remove.c ---- */

/* Closes the gates, one after the other; then, with all gates closed and the bucket empty on each engine,
 * continues with rest(). */
int change_close_next(struct change *c, int r, enum store_gate gate, int (*rest)(struct change *c));

/* ---- bucket_copies.c ---- */

/* Begins a change of the number of copies of an existing bucket. The contents of a missing disk are unknown
 * (M31). */
int change_copies_begin(struct change *c, unsigned had_copies);

#endif
