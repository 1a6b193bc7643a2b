/* SPDX-License-Identifier: Apache-2.0 */
/* publish - the leader's work after a flush: the index, the dead records, and the reuse of their space. */
#ifndef GANTRY_EXTENT_LOG_PUBLISH_H
#define GANTRY_EXTENT_LOG_PUBLISH_H

struct vol;

/* Publishes the flushed block: updates index, dead records and counters. */
void publish_block(struct vol *vol);
/* Frees the space of dead records that may be reused. */
void publish_reclaim(struct vol *vol);

#endif
