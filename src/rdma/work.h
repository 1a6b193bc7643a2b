/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What everybody does who posts work requests and takes their completions, be it a core (chan/) or a thread
 * of a program (server/).
 */
#ifndef GANTRY_RDMA_WORK_H
#define GANTRY_RDMA_WORK_H

#include "rdma/ep.h"

#define RDMA_WR_BYTES_MAX (1u << 30) /* of one work request (protocol.md item 20) */

/* Says whether another work request has room beside `outstanding`, of which `reads` are READs (item 32). */
static inline bool
rdma_has_room(const struct rdma_ep_limits *limits, int outstanding, int reads, bool is_write)
{
	return outstanding < limits->send_depth && (is_write || reads < limits->read_depth);
}

/* Returns what an operation comes to whose work request ended so: 0, -ECANCELED (flushed) or -EIO. */
int rdma_status_result(enum rdma_status status);

/* Returns what to look at where a transfer ended so, as the end of a sentence; "" where that is nothing. */
const char *rdma_status_hint(enum rdma_status status);

/* Tells the rail, and whoever asks next for the target, of a transfer that failed: what is known of the port
 * and of the way there may be out of date (item 31). */
void rdma_heed_status(struct rdma_rail *rail, const struct rdma_target *target, enum rdma_status status);

#endif
