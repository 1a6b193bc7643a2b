/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by pages.c and pages_metrics.c. All functions are called by the admin thread. */
#ifndef GANTRY_MAIN_PAGES_H
#define GANTRY_MAIN_PAGES_H

#include "main/daemon.h"

#include "core/core.h"
#include "rdma/rdma.h"
#include "store/store.h"

struct stats_out;

/* Returns the number of disks or pools of the store; 0: the store is not open. */
static inline int
unit_nr(const struct daemon *d)
{
	const struct store *st = atomic_load(&d->store);

	return st ? store_unit_nr(st) : 0;
}

/* Returns the number of rails; 0: there is no RDMA, or it has not started. */
static inline int
rail_nr(const struct daemon *d)
{
	return d->rdma ? rdma_rail_nr(d->rdma) : 0;
}

/* Returns the number of cores; 0: they have not started. */
static inline int
core_nr(const struct daemon *d)
{
	struct cores *cores = atomic_load(&d->cores);

	return cores ? cores_nr(cores) : 0;
}

/* Sums over the cores. The index of the arrays of buffers is the class, small or large; bufs_high, the
 * highest number of used buffers so far, has the HTTP buffers as well. */
struct totals {
	int requests, connections;
	int bufs_total[2], bufs_avail[2];
	int http_total, http_avail;
	int bufs_high[3];
	bool on_threads; /* true: a core uses threads instead of io_uring */
};

/* Words for enum store_unit_state, in metrics and in JSON. */
extern const char *const unit_state_text[UNIT_STATE_NR];

/* Adds a core to the sums. */
void totals_add(struct totals *t, const struct core_info *info);
/* Writes all metrics of the daemon that no module counts by itself. cookie: struct daemon. */
void pages_metrics(void *cookie, struct stats_out *out);

#endif
