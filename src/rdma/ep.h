/*
 * What chan/ builds on, and nobody else includes: routes, address handles, completion queues, DC initiators,
 * the recovery helper.  No verbs type is seen here.  It is also the seam for unit tests: tests/fake/fake_ep.c
 * implements these functions (and those of rdma.h that chan/ calls) with scripted results.
 *
 * Threads: each function says which.  "Core" is the core that owns the completion queue or the initiator.
 */
#ifndef GANTRY_RDMA_EP_H
#define GANTRY_RDMA_EP_H

#include "base/list.h"
#include "rdma/rdma.h"
#include "token/token.h"

/* --- rails --- */

enum rail_state rdma_rail_state(const struct rdma_rail *rail); /* any thread */

/* How often the device reported that its queue pairs are gone.  Any thread. */
unsigned rdma_rail_generation(const struct rdma_rail *rail);

/*
 * Contexts.  A device that stays fatal is opened anew, and that is another context: 1, 2, ...  Completion
 * queues, initiators and address handles belong to the one they were made on.  The order, each step told to
 * the watches:
 *
 *   1. the device is fatal: another generation, the rail is LOST
 *   2. its context is given up: rdma_rail_context() is 0, nothing can be made on the rail.  Each core gives
 *      back its initiators, then its completion queue; with the last of all cores the context is free
 *   3. the recovery helper destroys address handles, regions and domain and closes the context.  From here on
 *      the hardware does nothing for it, and rdma_dci_free() says so of its initiators
 *   4. the helper opens the device by name, once a second until that works, and registers all regions
 *   5. rdma_rail_context() is the new number, the rail is UP or DOWN as its port is, and the cores make their
 *      completion queues and initiators on it
 *
 * The number of the rail's context; 0: it has none.  Any thread. */
unsigned rdma_rail_context(const struct rdma_rail *rail);

/* A kernel call on this rail does not return (+1), or has returned at last (-1): the rail counts as lost
 * meanwhile.  Any thread. */
void rdma_rail_stuck(struct rdma_rail *rail, int by);

/* Its completion queue cannot be trusted any more (overrun, or a poll that fails): its device is given up and
 * opened anew.  Any thread. */
void rdma_rail_broken(struct rdma_rail *rail, const char *why);

/* Told of every change of a rail's state or generation, on some helper thread.  The caller owns the memory
 * until _del returned. */
struct rdma_watch {
	void (*changed)(struct rdma_watch *w);
	struct list link;
};
void rdma_watch_add(struct rdma *rd, struct rdma_watch *w);
void rdma_watch_del(struct rdma *rd, struct rdma_watch *w);

/* --- routes --- */

/* What distinguishes one address handle from another on a rail; service level, class and hop limit are the
 * rail's. */
struct rdma_ah_key {
	uint8_t dgid[16];
	uint32_t sgid_index;
	uint16_t dlid;
	bool is_global;
};

struct rail_route {
	int rail;
	struct rdma_ah_key key;
};

/* Which rail and which address handle lead to the token's target (protocol.md 2.8, items 22, 23, 26).  0, or
 * -ENETDOWN: no rail is up, or none has an address of that family; -ENETUNREACH: InfiniBand and a GID without
 * LID, which needs a router; -EINVAL: no GID, and our ports are Ethernet.  local may be NULL.  Any thread. */
int rdma_route(struct rdma *rd, const struct token *tok, const struct sockaddr *local,
	       struct rail_route *ret_route);

/* --- address handles --- */

struct rdma_ah;

/* Somebody who waits for an address handle that a helper makes. */
struct rdma_ah_wait {
	void (*done)(struct rdma_ah_wait *w); /* on the helper thread; result and ah are set */
	struct rdma_ah *ah;
	int result; /* 0 (the reference is the waiter's), -EHOSTUNREACH */
	struct list link;
};

/* > 0: *ret_ah, with a reference; 0: w->done() comes; -EHOSTUNREACH: failed within the last 5 s; -EAGAIN: the
 * cache is full of handles in use.  Any thread. */
int rdma_ah_get(struct rdma_rail *rail, const struct rdma_ah_key *key, struct rdma_ah_wait *w,
		struct rdma_ah **ret_ah);
/* Gives the reference back.  Any thread. */
void rdma_ah_put(struct rdma_rail *rail, struct rdma_ah *ah);
/* The next get makes a new one (a transfer ended in RETRY_EXC: item 31).
 * The reference stays.  Any thread. */
void rdma_ah_forget(struct rdma_rail *rail, struct rdma_ah *ah);

/* --- completion queues --- */

struct rdma_cq;

struct rdma_completion {
	uint64_t wr_id;
	enum rdma_status status;
	uint32_t vendor_err;
};

/* One core's on one rail, on the context that the rail has.  -EINVAL: deeper than the device allows; -ENODEV:
 * the rail has none.  May block: main thread, a core that starts, or the recovery helper. */
int rdma_cq_new(struct rdma_rail *rail, int depth, struct rdma_cq **ret_cq);
/* No initiator may be left on it, but such as rdma_dci_free() said -EINPROGRESS of; nobody waits on its
 * descriptor.  May block: helper, or a core that ends.  NULL is fine. */
void rdma_cq_free(struct rdma_cq *cq);
/* The number of its context.  Any thread. */
unsigned rdma_cq_context(const struct rdma_cq *cq);
int rdma_cq_fd(const struct rdma_cq *cq);
/* Core: takes up to max completions (at most 64); their number, or -EIO. */
int rdma_cq_poll(struct rdma_cq *cq, struct rdma_completion *ret_wc, int max);
/* Core: the next completion makes the descriptor readable. */
void rdma_cq_arm(struct rdma_cq *cq);
/* Core: takes the events that made it so. */
void rdma_cq_event(struct rdma_cq *cq);

/* --- initiators --- */

struct rdma_dci;

struct rdma_dci_limits {
	int send_depth; /* work requests outstanding */
	int read_depth; /* READs among them: min(device, 16, rdma.max_rd_atomic); item 32 */
};
/* What an initiator of this rail can do when `want` work requests are asked for.  Any thread. */
void rdma_dci_limits(const struct rdma_rail *rail, int want, struct rdma_dci_limits *ret_limits);

/* Creates one on the queue's context and brings it to RTS; 0 or -errno.  May block: main thread or the
 * recovery helper. */
int rdma_dci_new(struct rdma_rail *rail, struct rdma_cq *cq, int send_depth, struct rdma_dci **ret_dci);
/* To the error state, so that what is outstanding comes back flushed.  May block: helper. */
int rdma_dci_error(struct rdma_dci *dci);
/* RESET, INIT, RTR, RTS; nothing may be outstanding.  May block: helper. */
int rdma_dci_reset(struct rdma_dci *dci);
/* Destroys the queue pair: when it returned 0, the device touches nothing for it any more and no completion
 * of it is left, and it is freed.  Else call again later: -EINPROGRESS: nothing refers to its context any
 * more, it only waits to hear that this was closed; -EAGAIN: it is destroyed, but the device does not answer;
 * other -errno: it still exists.  After -EINPROGRESS a call does not block.  idle: no work request of it is
 * outstanding, so nothing of that matters, and one on a context that was given up is let go whatever the
 * device says.  May block: helper; or core, see above. */
int rdma_dci_free(struct rdma_dci *dci, bool idle);

struct rdma_wr {
	uint64_t wr_id;
	bool is_write;
	struct rdma_ah *ah;
	uint32_t dctn, rkey;
	uint64_t remote;
	void *mem;
	uint32_t len;
	int region; /* of rdma_region_add() */
};
/* Core.  0 or -errno: nothing was posted.  -ESTALE: the handle is of another context. */
int rdma_dci_post(struct rdma_dci *dci, const struct rdma_wr *wr);

/* --- the recovery helper: one thread a rail, for the calls above that may block --- */

struct rdma_job {
	void (*run)(struct rdma_job *job); /* on the helper; the job is free again when it is called */
	struct list link;
};
/* Any thread.  In order. */
void rdma_job_post(struct rdma_rail *rail, struct rdma_job *job);

#endif
