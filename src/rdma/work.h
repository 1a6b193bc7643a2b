/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work - rules for posting work requests and taking their completions, shared by cores (chan/) and by threads
 * of a program (server/).
 */
#ifndef GANTRY_RDMA_WORK_H
#define GANTRY_RDMA_WORK_H

#include "rdma/ep.h"

#define RDMA_WR_BYTES_MAX (1u << 30) /* largest number of bytes in a work request (protocol.md item 20) */

/* Returns true if an endpoint has room for one more work request, in addition to `outstanding` ones, of which
 * `reads` are READs (item 32). */
static inline bool
rdma_has_room(const struct rdma_ep_limits *limits, int outstanding, int reads, bool is_write)
{
	return outstanding < limits->send_depth && (is_write || reads < limits->read_depth);
}

/* Returns the result of an operation whose work request ended with this status: 0, -ECANCELED (flushed) or
 * -EIO. */
int rdma_status_result(enum rdma_status status);

/* Returns advice about a transfer that ended with this status, as the end of a sentence; "": there is no
 * advice. */
const char *rdma_status_hint(enum rdma_status status);

/* Invalidates cached data after a failed transfer: the data about the rail's port and about the path to the
 * target may be out of date (item 31). */
void rdma_heed_status(struct rdma_rail *rail, const struct rdma_target *target, enum rdma_status status);

#endif
