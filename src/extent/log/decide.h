/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide - shows the records of a volume to the object model (model/decide.h), which decides the commits of the
 * leader's queue. The records are those of the index and, before these, those of the block. All functions run
 * on the leader.
 */
#ifndef GANTRY_EXTENT_LOG_DECIDE_H
#define GANTRY_EXTENT_LOG_DECIDE_H

#include "extent/log/commit.h"
#include "model/decide.h"

struct tree;
struct vol;

/* The state of a key after the block is flushed. */
struct key_state {
	bool exists;
	bool depends; /* the state is that of a record in the block */
	struct model_record record;
};

struct key_state key_state(const struct vol *vol, const uint8_t *key, size_t len, uint32_t hash);

/* The result of a decision. */
enum decided {
	DECIDED_CHANGE, /* the records of the commit change */
	DECIDED_RESULT, /* no record changes; c->result is the result */
	DECIDED_LATER,  /* a record of the block matters: the commit is decided again after the block */
};

/* Decides a commit for which the object model has an act. *ret_depends: the result depends on a record in the
 * block, so it may be reported only after the flush. */
enum decided decide_commit(const struct vol *vol, struct commit *c, struct model_answer *ret,
			   bool *ret_depends);
/* Returns true if the object model has an act for the commit. */
bool decide_knows(const struct commit *c);

/* Adds up the list of a completion from the published parts, writes the parts to refs, and checks the list.
 * Returns 0 or the error of the list. Any thread that reads the index. */
int decide_parts(const struct tree *t, const uint8_t *id, const struct store_complete *sc,
		 struct chunk_ref *refs, struct model_answer *ret);

#endif
