/*
 * The seam below chan/ (rdma/ep.h) with scripted results: no device, no helper thread.  Jobs wait until the
 * test runs them, work requests until it completes, flushes or loses them.  One thread; one world at a time
 * (fake_ep).
 */
#ifndef GANTRY_TESTS_FAKE_EP_H
#define GANTRY_TESTS_FAKE_EP_H

#include "rdma/ep.h"

#define FAKE_WRS_MAX 4096

struct fake_wr {
	struct rdma_wr wr;
	struct rdma_dci *dci;
	uint64_t order;
	bool used, lost;
};

struct fake_ep {
	int rail_nr;
	struct rdma_dci_limits limits; /* send_depth 0: what is asked for */
	int route_result;
	int ah_result; /* > 0 at once, 0: fake_dc_ah_answer(), < 0 */
	int new_result, error_result, reset_result, free_result, post_result, cq_result;
	unsigned context, closed; /* fake_dc_set_context() */
	bool no_flush;            /* the error state flushes nothing: completions are lost */

	/* what happened */
	uint64_t posts, reads, writes, resets, destroyed, created, errors, forgotten, armed, polls;
	int ah_refs, dcis, cqs, stuck;
	int cq_tries; /* rdma_cq_new() was called */
	int cq_depth; /* of the newest queue */
	bool broken;
	enum rail_state state;
	unsigned generation;

	/* its own */
	struct rdma_rail_stats stats;
	struct fake_wr wr[FAKE_WRS_MAX];
	uint64_t order;
	struct rdma_completion cqe[FAKE_WRS_MAX];
	int cqe_nr;
	struct list jobs, ah_waits;
	struct rdma_watch *watch;
};
extern struct fake_ep fake_ep;

/* A fresh world with one rail. */
void fake_dc_init(void);
/* The helper's turn: runs waiting jobs, at most max (0: all); how many ran. */
int fake_dc_run_jobs(int max);
int fake_dc_job_nr(void);
/* Answers all who wait for an address handle: 0 or -EHOSTUNREACH. */
int fake_dc_ah_answer(int result);
/* Outstanding work requests, oldest first. */
int fake_dc_wr_nr(void);
struct fake_wr *fake_dc_wr(int i);
/* Its completion goes to the queue. */
void fake_dc_complete(struct fake_wr *w, enum rdma_status status);
void fake_dc_complete_all(void);
/* A completion out of nowhere. */
void fake_dc_stray(uint64_t wr_id, enum rdma_status status);
void fake_dc_set_state(enum rail_state state, bool new_generation);
/* The rail's context, 0: given up; and the latest that was closed. */
void fake_dc_set_context(unsigned context, unsigned closed);
/* Is memory named by some work request that the device still has? */
bool fake_dc_holds(const void *mem);

#endif
