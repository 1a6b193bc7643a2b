/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit - one change being written to the log: the submission by a port, and the work of the leader.
 *
 * A port fills in a struct commit (embedded in its operation) and submits the commit with commit_submit();
 * c->finished reports the result on the port's thread. Data writes may be in flight at the submission:
 * commit_data_done() reports their end. A thread that finds no leader becomes the leader (commit.c has a
 * diagram); so every function of this header may do the leader's work, on a thread that only submits a
 * commit.
 *
 * Threads: a port's calls on its own thread. The commit belongs to the log from commit_submit() until
 * c->finished.
 *
 * Results in c->result are those of store.h; -ECANCELED: the outcome is unknown.
 */
#ifndef GANTRY_EXTENT_LOG_COMMIT_H
#define GANTRY_EXTENT_LOG_COMMIT_H

#include "extent/log/rec_codec.h"
#include "base/mailbox.h"
#include "model/decide.h"

#include <stdatomic.h>

struct dead;
struct gc_job;
struct vol_port;

/* The kinds below MODEL_ACTS are acts of the object model. */
enum commit_kind {
	COMMIT_PUT = MODEL_PUT,
	COMMIT_DELETE = MODEL_DELETE,
	COMMIT_BUCKET_MAKE = MODEL_MAKE_BUCKET,
	COMMIT_BUCKET_REMOVE = MODEL_REMOVE_BUCKET,
	COMMIT_BUCKET_ATTRS = MODEL_SET_BUCKET_ATTRS,
	/* changes the number of copies in the existing record of a bucket: the leader makes the views */
	COMMIT_BUCKET_COPIES = MODEL_SET_COPIES,
	/* changes the attributes of the existing record: the leader makes the view */
	COMMIT_ATTRS = MODEL_SET_ATTRS,
	COMMIT_UPLOAD_MAKE = MODEL_CREATE_UPLOAD,
	COMMIT_UPLOAD_ABORT = MODEL_ABORT,
	COMMIT_PART = MODEL_PUT_PART,
	COMMIT_COMPLETE = MODEL_COMPLETE,
	COMMIT_GATE_CLOSE = MODEL_CLOSE_BUCKET, /* closes the gate of a bucket; writes no record */
	COMMIT_CHUNK = MODEL_ACTS,
	/* a commit of the leader: moves the bytes of the existing record to another place (pack.h) */
	COMMIT_MOVE,
	COMMIT_GATE_OPEN,
	COMMIT_SLOTS, /* executes a command (slots.h); writes no record */
};

/* The fields that a record from another disk keeps. */
struct commit_sent {
	uint64_t version; /* version of the record; 0: a new version */
#define OPTIONAL(name, flag, bit, kinds, places) uint64_t name;
#include "model/record.def"
	/* true: a repair: other bytes for the volume's own record with this version, whose other fields do
	 * not change */
	bool is_repair;
	uint64_t pin_id; /* for a repair: the id that readers of the replaced record pin; 0: the usual id */
};

/* Bits of struct commit's state. */
#define CS_DATA_DONE 1u /* no data write is in flight */
#define CS_IN_BLOCK 2u  /* the block waits for the end of the data writes */
#define CS_ANSWERED 4u  /* the result is known */

struct commit {
	/* link of the pending list, then of the leader's queue, then of the block */
	struct commit *next;
	struct commit *hash_next; /* link of the block's overlay; used by the leader */
	struct vol_port *port;
	struct msg msg;
	void (*finished)(struct commit *c); /* called on the port's thread */
	enum commit_kind kind;
	bool is_gc;     /* true: a commit of the leader: finished() is called immediately */
	bool is_gated;  /* BUCKET_MAKE: true: the bucket is made with a closed gate */
	bool is_bare;   /* GATE_CLOSE: true: refused if the bucket has uploads in progress */
	uint8_t copies; /* BUCKET_COPIES: the new number of copies */
	/* For a record from another disk, or the removal of a foreign record; NULL: any other change. */
	const struct commit_sent *sent;
	/*
	 * Further records of the same operation (is_also): they are directly before this record in the same
	 * block, and none has data to be verified, so a cut removes all or none of them. The removal of a
	 * record that does not exist is omitted (is_idle).
	 */
	struct commit *also;
	bool is_also, is_idle;
	bool is_published; /* true: step_ns is the time of the publication */
	_Atomic unsigned state;
	_Atomic int data_error;
	int result;
	/* flush that must succeed before the record enters the log; 0: the data may be flushed with the
	 * block */
	uint64_t flush_ticket;
	uint64_t came_ns; /* time at which the leader first examined the commit; 0: not yet */
	/* Time by clock_ns() at which the newest step of the commit ended (steps.h), of those that are the
	 * commit's own; before the submission: of the call of the store. 0: the steps are not counted. */
	uint64_t step_ns;
	uint32_t key_hash;
	const uint8_t *upload_key; /* PART, COMPLETE: key of the upload, which must exist */
	uint16_t upload_key_len;
	/* PUT, PART: the reservation in the quotas, which ends when c is packed; NULL: there is no
	 * reservation */
	struct quota_hold *hold;
	struct rec_view view;
	struct store_pre pre;
	/* required version: ATTRS (0: any), BUCKET_ATTRS (of view.key), UPLOAD_MAKE (of the bucket; 0: any) */
	uint64_t want_version;
	const void *attrs; /* ATTRS: the new attributes */
	uint32_t attrs_len;
	const struct store_part_ref *parts; /* COMPLETE: the parts, view.entry_nr of them */
	uint32_t bad;
	/* job that begins when the commit is published; if the commit fails, its submitter frees the job;
	 * NULL: no job */
	struct gc_job *job;
	/* used by the leader while the commit is in the block */
	struct rec *rec;
	struct dead *dead; /* for the record that the commit replaces */
};

/* Returns true if the commit does not increase the used space. */
static inline bool
commit_is_no_growth(const struct commit *c)
{
	return c->view.op == REC_DELETE || c->kind == COMMIT_BUCKET_COPIES;
}

/* Returns true if c changes an object, an upload or attributes, whose bucket must exist. Removals that are sent from another disk
 * need no bucket. */
static inline bool
commit_has_bucket(const struct commit *c)
{
	uint8_t type = (c->kind == COMMIT_PART ? c->upload_key : c->view.key)[0];

	return (disk_key_traits(type).copies || type == KEY_BATTRS) && !c->is_also && !c->is_gc &&
	       !(c->sent && c->view.op == REC_DELETE);
}

/* Writes the key of this bucket, and returns its length; 0: c has none. */
static inline size_t
commit_bucket(const struct commit *c, uint8_t *key)
{
	bool is_part = c->kind == COMMIT_PART;

	return commit_has_bucket(c) ? key_bucket_of(key, is_part ? c->upload_key : c->view.key,
						    is_part ? c->upload_key_len : c->view.key_len)
				    : 0;
}

/* Submits c; c->finished runs later. c->state: whether data writes are in flight. */
void commit_submit(struct vol_port *p, struct commit *c);
/* Reports the end of the last data write of c. err: 0 or -errno of the writes. Called on the port's thread;
 * the caller must not use c after the call. */
void commit_data_done(struct vol_port *p, struct commit *c, int err);
/* Becomes the leader, if there is none, and does the leader's work. Called by the loop, the timers and the
 * messages of a port. */
void commit_try_lead(struct vol_port *p);
/* Does the leader's work if work waits for a leader. Called once per turn of the port's loop. */
void commit_idle(struct vol_port *p);
/* Makes the port do the leader's work in some milliseconds: stamps, and frees space. For a port that was
 * just attached. */
void commit_look_later(struct vol_port *p);

/* ---- answer.c ---- */

/* Ends c with the result `result`, after the end of its data writes. */
void commit_answer(struct commit *c, int result);
/* Sends the result of c to its port. */
void commit_send(struct commit *c);

#endif
