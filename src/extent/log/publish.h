/* SPDX-License-Identifier: Apache-2.0 */
/* publish - after the flush: the index, what died, and when its space may be used again.  The leader's. */
#ifndef GANTRY_EXTENT_LOG_PUBLISH_H
#define GANTRY_EXTENT_LOG_PUBLISH_H

struct vol;

/* Publishes the block, which is flushed: index, dead records, counters. */
void publish_block(struct vol *vol);
/* Gives back what may be. */
void publish_reclaim(struct vol *vol);

#endif
