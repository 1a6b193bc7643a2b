/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit - one change on its way into the log: who hands it over, and who leads.
 *
 * A port fills in a struct commit (embedded in its operation), hands it over with commit_submit(), and
 * hears of its end by c->finished on its own thread.  Data writes may still be in flight then:
 * commit_data_done() ends them. Whoever finds no leader leads (commit.c draws it); so every function here
 * may run as leader, on a thread that only wanted to hand something over.
 *
 * Threads: a port's calls on its own thread.  The commit is the log's from commit_submit() until c->finished.
 *
 * Results in c->result are those of store.h; -ECANCELED: the outcome is unknown.
 */
#ifndef GANTRY_EXTENT_LOG_COMMIT_H
#define GANTRY_EXTENT_LOG_COMMIT_H

#include "extent/log/rec_codec.h"
#include "base/mailbox.h"

#include <stdatomic.h>

struct dead;
struct gc_job;
struct vol_port;

enum commit_kind {
	COMMIT_PUT,
	COMMIT_CHUNK,
	COMMIT_DELETE,
	COMMIT_BUCKET_MAKE,
	COMMIT_BUCKET_REMOVE,
	COMMIT_BUCKET_ATTRS,
	COMMIT_BUCKET_COPIES, /* the record that is there, with another number of copies: the leader makes the views */
	COMMIT_ATTRS, /* the record that is there, with other attributes: the leader makes the view */
	COMMIT_UPLOAD_MAKE,
	COMMIT_UPLOAD_ABORT,
	COMMIT_PART,
	COMMIT_COMPLETE,
	COMMIT_MOVE, /* the leader's own: the record that is there, with its bytes at another place (pack.h) */
	COMMIT_GATE_CLOSE, /* of a bucket: no record */
	COMMIT_GATE_OPEN,
	COMMIT_SLOTS, /* a command (slots.h): no record */
};

/* What a record keeps that comes from another disk. */
struct commit_sent {
	uint64_t version; /* 0: a new one, as any other */
	uint64_t data_version, expires_ns;
	bool is_repair; /* other bytes for the record of that version, which is the volume's own, and stays as it is */
	uint64_t pin_id; /* a repair: whoever reads what is replaced pins this; 0: as ever */
};

/* Bits of struct commit's state. */
#define CS_DATA_DONE 1u /* no data write is in flight any more */
#define CS_IN_BLOCK 2u  /* the block waits for that */
#define CS_ANSWERED 4u  /* the result is known */

struct commit {
	struct commit *next;      /* the pending list, then the leader's queue, then the block's */
	struct commit *hash_next; /* leader: overlay */
	struct vol_port *port;
	struct msg msg;
	void (*finished)(struct commit *c); /* on the port's thread */
	enum commit_kind kind;
	bool is_gc;     /* the leader's own: finished() at once */
	bool is_gated;  /* BUCKET_MAKE: with its gate closed */
	bool is_bare;   /* GATE_CLOSE: not if there are uploads in progress */
	uint8_t copies; /* BUCKET_COPIES: so many */
	/* From another disk, or a removal of what is left over; NULL: a change as any other. */
	const struct commit_sent *sent;
	/*
	 * Further records of the same operation (is_also): they lie in front of this one in the same block,
	 * with nothing between, and none of them has data to be verified; so a cut takes all or none.  A
	 * removal of what is not there is left out (is_idle).
	 */
	struct commit *also;
	bool is_also, is_idle;
	_Atomic unsigned state;
	_Atomic int data_error;
	int result;
	uint64_t flush_ticket; /* not before this flush ended well; 0: may be flushed with the block */
	uint64_t came_ns;      /* leader: when first looked at */
	uint32_t key_hash;
	const uint8_t *bucket_key; /* of an object: its bucket's key; length below */
	uint16_t bucket_key_len;
	const uint8_t *upload_key; /* PART, COMPLETE: the upload must be there */
	uint16_t upload_key_len;
	struct rec_view view;
	struct store_pre pre;
	uint64_t want_version; /* ATTRS (0: any), BUCKET_ATTRS (of view.key) */
	const void *attrs;     /* ATTRS */
	uint32_t attrs_len;
	const struct store_part_ref *parts; /* COMPLETE: as many as view.entries */
	uint32_t bad;
	struct gc_job *job; /* begins when this is published; otherwise the committer's to free */
	/* leader, while in the block */
	struct rec *rec;
	struct dead *dead; /* for what this replaces */
};

/* Hands c over; c->finished runs later.  c->state says whether data is in flight. */
void commit_submit(struct vol_port *p, struct commit *c);
/* Ends the last data write of c; err 0 or -errno.  On the port's thread; the caller touches c no more. */
void commit_data_done(struct vol_port *p, struct commit *c, int err);
/* Takes leadership if it is free and leads.  From the loop, timers, messages of a port. */
void commit_try_lead(struct vol_port *p);
/* Leads if something waits for a leader.  Once per turn of the port's loop. */
void commit_idle(struct vol_port *p);
/* Leads in some milliseconds: stamps, and gives space back.  For a port that has just come. */
void commit_look_later(struct vol_port *p);

/* ---- answer.c ---- */

/* Answers c with result; waits for its data writes if need be. */
void commit_answer(struct commit *c, int result);
/* Sends the answer of c, which is known, to its port. */
void commit_send(struct commit *c);

#endif
