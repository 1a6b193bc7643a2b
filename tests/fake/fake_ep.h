/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rail without a device: struct rdma as rdma/ makes it, with one rail whose only transport is a table of
 * functions with scripted results (rdma/ep.h), and no helper thread.  Jobs wait until the test runs them, work
 * requests until it completes, flushes or loses them.  One thread; one world at a time (fake_ep).
 */
#ifndef GANTRY_TESTS_FAKE_EP_H
#define GANTRY_TESTS_FAKE_EP_H

#include "rdma/rdma_int.h"

#define FAKE_WRS_MAX 4096

struct fake_wr {
	struct rdma_wr wr;
	struct rdma_sge sge[RDMA_SGE_MAX];
	struct rdma_target target;
	struct rdma_ep *ep;
	uint64_t order;
	bool used, lost;
};

struct fake_ep {
	struct rdma_ep_limits limits; /* send_depth 0: what is asked for */
	int target_result;            /* > 0 at once, 0: fake_ep_target_answer(), < 0 */
	int new_result, connect_result, error_result, reset_result, free_result, post_result, cq_result;
	unsigned context, closed; /* read only: fake_ep_set_context() */
	bool no_flush;            /* the error state flushes nothing: completions are lost */

	/* what happened */
	uint64_t posts, reads, writes, resets, destroyed, created, connects, errors, forgotten, armed, polls;
	int targets, eps, cqs;
	int cq_tries; /* a completion queue was asked for */
	int cq_depth; /* of the newest queue */
	struct rdma_rail_stats *stats;

	/* its own */
	struct rdma rd;
	struct rdma_device dev;
	struct rdma_rail rail;
	struct rdma_ep_ops ops;
	struct fake_wr wr[FAKE_WRS_MAX];
	uint64_t order;
	struct rdma_completion cqe[FAKE_WRS_MAX];
	int cqe_nr;
	struct list target_waits;
};
extern struct fake_ep fake_ep;

/* Makes a fresh world with one rail, whose transport serves DC tokens. */
void fake_ep_init(void);
/* Has its endpoints connect before they take work.  Before a chan is made. */
void fake_ep_connecting(void);
/* Takes the helper's turn: runs waiting jobs, at most max (0: all); returns how many ran. */
int fake_ep_run_jobs(int max);
int fake_ep_job_nr(void);
/* Answers all who wait for a target: 0 or -EHOSTUNREACH. */
int fake_ep_target_answer(int result);
/* Returns outstanding work requests, oldest first. */
int fake_ep_wr_nr(void);
struct fake_wr *fake_ep_wr(int i);
/* Puts its completion into the queue. */
void fake_ep_complete(struct fake_wr *w, enum rdma_status status);
void fake_ep_complete_all(void);
/* Puts a completion out of nowhere there. */
void fake_ep_stray(uint64_t wr_id, enum rdma_status status);
void fake_ep_set_state(enum rail_state state, bool new_generation);
/* Sets the rail's context, 0: given up; and the latest that was closed. */
void fake_ep_set_context(unsigned context, unsigned closed);
/* Returns how many calls the rail thinks are stuck. */
int fake_ep_stuck(void);
/* Says whether memory is named by some work request that the device still has. */
bool fake_ep_holds(const void *mem);

#endif
