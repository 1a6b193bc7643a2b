/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of rdma/ for chan/ and server/ only: rails, routes, completion queues, endpoints and their
 * targets, the recovery helper. No verbs type is visible here.
 *
 * Work requests are posted on an endpoint; its transport decides how it reaches a client. A transport is a
 * table of functions (struct rdma_ep_ops) in a file of its own, named in transport.c. Opening a device
 * determines which transports it supports, and its rails have that set. DC (dc.c) is the first. Unit tests
 * put a table of their own under a rail: tests/fake/fake_ep.c.
 *
 * Threads: each function names them. "Core" is the core that owns the completion queue or the endpoint.
 */
#ifndef GANTRY_RDMA_EP_H
#define GANTRY_RDMA_EP_H

#include "base/list.h"
#include "rdma/rdma.h"
#include "token/token.h"

struct rdma_context;
struct rdma_ep_ops;

/* ---- rails ---- */

/* Returns the rail's state.  Any thread. */
enum rail_state rdma_rail_state(const struct rdma_rail *rail);

/* Returns how often the device reported the loss of its queue pairs. Any thread. */
unsigned rdma_rail_generation(const struct rdma_rail *rail);

/*
 * Contexts.  A device that stays fatal is re-opened, which makes another context: 1, 2, ...  Completion
 * queues, endpoints and targets belong to the one they were made on.  The order, each step told to the
 * watches:
 *
 *   1. the device is fatal: another generation, the rail is LOST
 *   2. its context is abandoned: rdma_rail_context() is 0, nothing can be made on the rail.  Each core
 *      releases its endpoints, then its completion queue; with the last of all cores the context is free
 *   3. the recovery helper destroys address handles, regions and domain and closes the context.  From here on
 *      the hardware does nothing for it, and rdma_ep_free() says so of its endpoints
 *   4. the helper opens the device by name, once a second until that works, and registers all regions
 *   5. rdma_rail_context() is the new number, the rail is UP or DOWN as its port is, and the cores make their
 *      completion queues and endpoints on it
 */

/* Returns the number of the rail's context; 0: none. Any thread. */
unsigned rdma_rail_context(const struct rdma_rail *rail);

/* Counts the kernel calls on this rail that do not return: +1 when one is late, -1 when it returns after all.
 * The rail is LOST while the count is not 0. Any thread. */
void rdma_rail_stuck(struct rdma_rail *rail, int by);
/* Sets the number of endpoints that each core may have until then, because the device has no room for more,
 * and notifies the watches. */
void rdma_rail_share(struct rdma_rail *rail, int share, uint64_t until_ns);

/* Returns the number of changes of the connection parameters (MTU, P_Key, GID of the source). An endpoint
 * with an older number remains usable for its lease, and is reset as soon as it is free. Any thread. */
unsigned rdma_rail_path(const struct rdma_rail *rail);

/* Makes the helper read the rail's port again, because a transfer ended as if its settings had changed. Any
 * thread. */
void rdma_rail_suspect(struct rdma_rail *rail);

/* Abandons the rail's device, because one of its completion queues cannot be trusted any longer (overrun, or
 * a poll that fails): the device is re-opened. Any thread. */
void rdma_rail_broken(struct rdma_rail *rail, const char *why);

/* Returns the i-th transport of the rail; NULL: it has at most i. Any thread. */
const struct rdma_ep_ops *rdma_rail_transport(const struct rdma_rail *rail, int i);

/* A callback for every change of a rail's state or generation, called on a helper thread. The caller owns the
 * memory until _del returned. */
struct rdma_watch {
	void (*changed)(struct rdma_watch *w);
	struct list link;
};
void rdma_watch_add(struct rdma *rd, struct rdma_watch *w);
void rdma_watch_del(struct rdma *rd, struct rdma_watch *w);

/* ---- routes ---- */

/* The attributes by which address handles of a rail differ; service level, class and hop limit are the
 * rail's. */
struct rdma_ah_key {
	uint8_t dgid[16];
	uint32_t sgid_index;
	uint16_t dlid;
	bool is_global;
	uint8_t path;    /* of rdma.paths; another flow label for the same address */
	bool must_route; /* the kernel must have a route to the address, since only that allows it */
};

struct rail_route {
	int rail;
	const struct rdma_ep_ops *ops; /* transport of the rail that the handle is for */
	struct rdma_ah_key key;
};

/* The caller of rdma_route(). */
struct rdma_asker {
	const struct sockaddr *local; /* local address of the client's HTTP connection; may be NULL */
	unsigned tried;               /* bit i: rail i was tried and did not reach the target */
	int numa_node;                /* of the core; -1: unknown */
	unsigned turn;                /* number of this core's calls: chooses among equal rails in turn */
	unsigned core;                /* number of the core: each core uses one of the paths */
	bool must_route;              /* rdma_gid_allowed() was 1 */
};

/* Chooses the rail, its transport and the address handle that lead to the token's target (protocol.md 2.8,
 * items 22, 23, 26): the best one not tried yet. 0, or -ENODEV: no rail has a transport for that family;
 * -ENETDOWN: no such rail is up, or none has an address of that kind; -ENETUNREACH: InfiniBand and a GID
 * without LID, which needs a router; -EINVAL: no GID, and our ports are Ethernet. Any thread. */
int rdma_route(struct rdma *rd, const struct token *tok, const struct rdma_asker *asker,
	       struct rail_route *ret_route);

/* ---- targets ---- */

/* The destination of work requests. A plain value: copied, and released once. */
struct rdma_target {
	const struct rdma_ep_ops *ops; /* NULL: no target */
	void *at;                      /* DC: a reference to the address handle */
	uint32_t nr;                   /* DC: the number of the client's DC target there */
};

/* A waiter for a target that a helper makes. */
struct rdma_target_wait {
	void (*done)(struct rdma_target_wait *w); /* on the helper thread; result and target are set */
	struct rdma_target target;                /* the result, owned by the waiter, when result is 0 */
	int result;                               /* 0, -EHOSTUNREACH, -ENOMEM */
	uint8_t client;                           /* client number of the request (base/fair.h) */
	/* waits also for a target that has been in the making for longer than RDMA_TARGET_WAIT_NS */
	bool patient;
	struct list link;
};

/* ---- completion queues ---- */

struct rdma_completion {
	uint64_t wr_id;
	enum rdma_status status; /* class of the device's status */
	int wc_status;           /* status of the device: enum ibv_wc_status */
	uint32_t vendor_err;     /* 0 with WCS_SUCCESS */
};

/* The completion queue of a core for one transport of a rail. The first member of the transport's own
 * struct. */
struct rdma_cq {
	const struct rdma_cq_ops *ops;
	struct rdma_rail *rail;
};

struct rdma_cq_ops {
	int (*cq_new)(struct rdma_rail *rail, int depth, int core, struct rdma_cq **ret_cq);
	void (*cq_free)(struct rdma_cq *cq);
	unsigned (*context)(const struct rdma_cq *cq);
	int (*fd)(const struct rdma_cq *cq);
	int (*poll)(struct rdma_cq *cq, struct rdma_completion *ret_wc, int max);
	void (*arm)(struct rdma_cq *cq);
	void (*event)(struct rdma_cq *cq);
};

/* ---- endpoints ---- */

/* An endpoint. The first member of the transport's own struct. */
struct rdma_ep {
	const struct rdma_ep_ops *ops;
	struct rdma_rail *rail;
	unsigned path; /* rdma_rail_path() when it was made or last reset; owned by the helper during that */
};

struct rdma_ep_limits {
	int send_depth; /* limit of outstanding work requests */
	int read_depth; /* READs among them: min(device, 16, rdma.max_rd_atomic); item 32 */
	int max_sge;    /* pieces of one work request: min(device, conf_rdma.max_sge) */
};

#define RDMA_SGE_MAX 32

/* One piece of local memory. */
struct rdma_sge {
	void *mem;
	uint64_t region; /* number given by rdma_region_add() */
	uint32_t len;
};

struct rdma_wr {
	uint64_t wr_id;
	bool is_write;
	int sge_nr; /* 1 to rdma_ep_limits.max_sge */
	const struct rdma_target *target;
	uint32_t rkey;
	uint64_t remote;
	const struct rdma_sge *sge; /* in the order of the remote bytes; not read after the post */
};

/* A transport. One that serves no token has no `families` and needs only name and probe. */
struct rdma_ep_ops {
	const char *name;
	unsigned families; /* bit k: it serves tokens of kind k */
	const struct rdma_cq_ops *cq;
	/* Checks whether a newly opened device supports the transport: 0, or -errno and the reason. */
	int (*probe)(struct rdma_context *c, const char **ret_why);
	void (*limits)(const struct rdma_rail *rail, int want, struct rdma_ep_limits *ret_limits);
	int (*target_get)(struct rdma_rail *rail, const struct token *tok, const struct rail_route *route,
			  struct rdma_target_wait *w, struct rdma_target *ret_target);
	bool (*target_leave)(struct rdma_rail *rail, struct rdma_target_wait *w);
	void (*target_put)(struct rdma_rail *rail, const struct rdma_target *target);
	void (*target_forget)(struct rdma_rail *rail, const struct rdma_target *target);
	bool (*target_forgotten)(const struct rdma_target *target);
	int (*ep_new)(struct rdma_rail *rail, struct rdma_cq *cq, int send_depth, struct rdma_ep **ret_ep);
	/* NULL: no connection is needed */
	int (*ep_connect)(struct rdma_ep *ep, const struct rdma_target *target);
	int (*ep_post)(struct rdma_ep *ep, const struct rdma_wr *wr);
	int (*ep_error)(struct rdma_ep *ep);
	int (*ep_reset)(struct rdma_ep *ep);
	int (*ep_free)(struct rdma_ep *ep, bool idle);
};

/* Returns true if a transport serves tokens of this family. */
static inline bool
rdma_ep_serves(const struct rdma_ep_ops *ops, enum token_kind kind)
{
	return ops->families >> kind & 1;
}

/* Returns true if tokens of this family are served: by a rail of rd, or by a transport of this program, in
 * case a device that supports it appears. rd may be NULL. Any thread. */
bool rdma_serves(const struct rdma *rd, enum token_kind kind);

/* Returns the limits of an endpoint of this rail when `want` work requests are requested. Any thread. */
static inline void
rdma_ep_limits(const struct rdma_ep_ops *ops, const struct rdma_rail *rail, int want,
	       struct rdma_ep_limits *ret_limits)
{
	ops->limits(rail, want, ret_limits);
}

/* Maximum time to wait for a target, in ns; a target that takes longer to make is a reason to decline. */
#define RDMA_TARGET_WAIT_NS (300 * NS_PER_MS)

/* Finds or makes the target that the token names. > 0: *ret_target is set; 0: w->done() follows;
 * -EHOSTUNREACH: it failed a short time ago, takes longer than RDMA_TARGET_WAIT_NS, or that client has too
 * many pending; -EAGAIN: too many are in use. Any thread. */
static inline int
rdma_target_get(struct rdma_rail *rail, const struct token *tok, const struct rail_route *route,
		struct rdma_target_wait *w, struct rdma_target *ret_target)
{
	return route->ops->target_get(rail, tok, route, w, ret_target);
}

/* Stops waiting: true, and w->done() will not run; false: it has run, or runs.  Any thread. */
static inline bool
rdma_target_leave(const struct rdma_ep_ops *ops, struct rdma_rail *rail, struct rdma_target_wait *w)
{
	return ops->target_leave(rail, w);
}

/* Releases the target; a target without ops is allowed. Any thread. */
static inline void
rdma_target_put(struct rdma_rail *rail, struct rdma_target *target)
{
	if (target->ops)
		target->ops->target_put(rail, target);
	target->ops = NULL;
}

/* Invalidates the cached path to the target, so that the next get determines it again (a transfer ended in
 * RETRY_EXC: item 31). The caller's target stays valid. Any thread. */
static inline void
rdma_target_forget(struct rdma_rail *rail, const struct rdma_target *target)
{
	target->ops->target_forget(rail, target);
}

/* Returns true if the rail or the path has changed since the target was made; a caller that keeps targets for
 * long then gets another. Any thread; costs one load. */
static inline bool
rdma_target_is_forgotten(const struct rdma_target *target)
{
	return target->ops->target_forgotten(target);
}

/* Finds or makes the target, and waits for it, at most limit_ms: 0 and *ret_target; -EHOSTUNREACH;
 * -EAGAIN: too many are in use; -ETIMEDOUT; -ENOMEM. client: as in struct rdma_target_wait. Blocks: never
 * on a core. */
int rdma_target_wait(struct rdma_rail *rail, const struct token *tok, const struct rail_route *route,
		     uint8_t client, int limit_ms, struct rdma_target *ret_target);

/* Makes a completion queue on the rail's context; its interrupt is one of the device's, chosen by the core's
 * number. -EINVAL: deeper than the device allows; -ENODEV: the rail has no context. May block: main thread, a
 * core that starts, or the recovery helper. */
static inline int
rdma_cq_new(const struct rdma_ep_ops *ops, struct rdma_rail *rail, int depth, int core,
	    struct rdma_cq **ret_cq)
{
	return ops->cq->cq_new(rail, depth, core, ret_cq);
}

/* Frees the queue. The only endpoints left on it may be those for which rdma_ep_free() returned -EINPROGRESS;
 * no thread waits on its descriptor. May block: helper, or a core that ends. NULL is allowed. */
static inline void
rdma_cq_free(struct rdma_cq *cq)
{
	if (cq)
		cq->ops->cq_free(cq);
}

/* Returns the number of the queue's context. Any thread. */
static inline unsigned
rdma_cq_context(const struct rdma_cq *cq)
{
	return cq->ops->context(cq);
}

/* Returns the descriptor that becomes readable at a completion after rdma_cq_arm(). */
static inline int
rdma_cq_fd(const struct rdma_cq *cq)
{
	return cq->ops->fd(cq);
}

/* Takes up to max completions (at most 64); returns their number, or -EIO. Core. */
static inline int
rdma_cq_poll(struct rdma_cq *cq, struct rdma_completion *ret_wc, int max)
{
	return cq->ops->poll(cq, ret_wc, max);
}

/* Arms the queue: the next completion makes the descriptor readable. Core. */
static inline void
rdma_cq_arm(struct rdma_cq *cq)
{
	cq->ops->arm(cq);
}

/* Takes the events that made the descriptor readable. Core. */
static inline void
rdma_cq_event(struct rdma_cq *cq)
{
	cq->ops->event(cq);
}

/* Makes an endpoint on the queue's context, ready for work requests or, if the transport connects, for a
 * connection; 0 or -errno. May block: main thread or the recovery helper. */
static inline int
rdma_ep_new(const struct rdma_ep_ops *ops, struct rdma_rail *rail, struct rdma_cq *cq, int send_depth,
	    struct rdma_ep **ret_ep)
{
	return ops->ep_new(rail, cq, send_depth, ret_ep);
}

/* Returns true if an endpoint must be connected to a target before it takes work, and reset before it is
 * connected to another. */
static inline bool
rdma_ep_connects(const struct rdma_ep_ops *ops)
{
	return ops->ep_connect != NULL;
}

/* Connects the endpoint; 0 or -errno, after which it must be reset. May block: helper. */
static inline int
rdma_ep_connect(struct rdma_ep *ep, const struct rdma_target *target)
{
	return ep->ops->ep_connect ? ep->ops->ep_connect(ep, target) : 0;
}

/* Posts one work request.  0, or -errno: nothing was posted.  -ESTALE: the target is of another context, or a
 * region was removed.  Core. */
static inline int
rdma_ep_post(struct rdma_ep *ep, const struct rdma_wr *wr)
{
	return ep->ops->ep_post(ep, wr);
}

/* Puts the endpoint into the error state, so that outstanding work requests return flushed. May block:
 * helper. */
static inline int
rdma_ep_error(struct rdma_ep *ep)
{
	return ep->ops->ep_error(ep);
}

/* Resets the endpoint to its initial state; no work may be outstanding. May block: helper. */
static inline int
rdma_ep_reset(struct rdma_ep *ep)
{
	return ep->ops->ep_reset(ep);
}

/*
 * Destroys it: when it returned 0, the device touches nothing for it any more and no completion of it is
 * left, and it is freed.  Else call again later:
 *
 *   -EINPROGRESS   nothing refers to its context any more, it only waits to hear that this was closed; a call
 *                  does not block from here on
 *   -EAGAIN        it is destroyed, but the device does not answer
 *   other          it still exists
 *
 * idle: no work request of it is outstanding, so nothing of that matters, and one on a context that was given
 * up is let go whatever the device says.  NULL is fine.  May block: helper; or core, see above.
 */
static inline int
rdma_ep_free(struct rdma_ep *ep, bool idle)
{
	return ep ? ep->ops->ep_free(ep, idle) : 0;
}

/* ---- the recovery helper: one thread a rail, for the calls above that may block ---- */

struct rdma_job {
	void (*run)(struct rdma_job *job); /* runs on the helper; the job may be reused from then on */
	struct list link;
};
/* Hands a job to the helper; jobs run in order.  Any thread. */
void rdma_job_post(struct rdma_rail *rail, struct rdma_job *job);
/* Hands the helper a job that precedes all others. */
void rdma_job_post_first(struct rdma_rail *rail, struct rdma_job *job);

#endif
