/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge - the leader fills a block: preconditions judged in log order, against the index and the records of
 * the block.
 */
#ifndef GANTRY_EXTENT_LOG_JUDGE_H
#define GANTRY_EXTENT_LOG_JUDGE_H

struct vol;

/* Judges the commits of the leader's queue: each is added to the block, answered, or remains in the
 * queue. */
void judge_queue(struct vol *vol);

#endif
