/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide - shows the records of a volume to the object model (model/decide.h), which decides the commits of the
 * leader's queue. The records are those of the index and, before these, those of the block. All functions run
 * on the leader.
 */
#ifndef GANTRY_EXTENT_LOG_DECIDE_H
#define GANTRY_EXTENT_LOG_DECIDE_H

#include "extent/log/commit.h"

struct tree;
struct vol;

/* The state of a key after the block is flushed. */
struct key_state {
	bool exists;
	bool depends; /* the state is that of a record in the block */
	struct model_record record;
};

struct key_state key_state(const struct vol *vol, const uint8_t *key, size_t len, uint32_t hash);

/* The result for a commit that the leader judges. */
enum verdict {
	V_PACKED, /* the records of the commit change: it belongs into the block */
	V_NOW,    /* c->result is the answer */
	V_AFTER,  /* the same after the flush of the block: the answer depends on a record in the block */
	V_LATER,  /* the commit stays in the queue */
	V_FULL,   /* the commit and all later ones stay in the queue */
};

/* Decides a commit for which the object model has an act: V_PACKED, V_NOW, V_AFTER or V_LATER. *ret_refused: the verdict for
 * a commit that the caller refuses although its records could change. */
enum verdict decide_commit(const struct vol *vol, struct commit *c, struct model_answer *ret,
			   enum verdict *ret_refused);

/* Adds up the list of a completion from the published parts, writes the parts to refs, and checks the list.
 * Returns 0 or the error of the list. Any thread that reads the index. */
int decide_parts(const struct tree *t, const uint8_t *id, const struct store_complete *sc,
		 struct chunk_ref *refs, struct model_answer *ret);

#endif
