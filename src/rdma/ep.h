/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ep - the interface of rdma/ for chan/ and server/ only: rails, routes, completion queues, endpoints and
 * their targets, the recovery helper. No verbs type is visible here.
 *
 * Work requests are posted on an endpoint. The transport of the endpoint decides how the work requests reach
 * a client. A transport is a table of functions (struct rdma_ep_ops) in a separate file; transport.c lists
 * all tables. When a device is opened, rdma/ determines the transports that the device supports; these are
 * the transports of the device's rails. DC (dc.c) is the first transport, RC (rc.c) the second: its targets are
 * connections (struct rdma_connection), which are made before a lease uses them. Unit tests give a rail another
 * table: tests/fake/fake_ep.c.
 *
 * Threads: the comment of each function names the threads that may call it. The owning core is the core that
 * owns the completion queue or the endpoint.
 */
#ifndef GANTRY_RDMA_EP_H
#define GANTRY_RDMA_EP_H

#include "base/list.h"
#include "rdma/rdma.h"
#include "token/token.h"

struct rdma_context;
struct rdma_ep_ops;

/* ---- rails ---- */

/* Returns the rail's state. Any thread may call this function. */
enum rail_state rdma_rail_state(const struct rdma_rail *rail);

/* Returns the rail's generation: the number of times that the device has reported the loss of its queue
 * pairs. Any thread may call this function. */
unsigned rdma_rail_generation(const struct rdma_rail *rail);

/*
 * Contexts. A device that remains fatal is re-opened, which makes another context; contexts have the numbers
 * 1, 2, ... Completion queues, endpoints and targets belong to the context on which they were made. The order
 * of steps; the watches are notified of each:
 *
 *   1. the device is fatal: the rail has another generation and is LOST
 *   2. its context is abandoned: rdma_rail_context() is 0, no object can be made on the rail. Each core
 *      releases its endpoints, then its completion queue; after the last core the context has no references
 *   3. the recovery helper destroys address handles, regions and domain and closes the context. After
 *      that the hardware does no work for this context, and rdma_ep_free() of its endpoints returns 0
 *   4. the recovery helper opens the device by name, once a second until it succeeds, and registers all regions
 *   5. rdma_rail_context() returns the number of the new context, the rail is UP or DOWN like its port, and the
 *      cores make their completion queues and endpoints on the new context
 */

/* Returns the number of the rail's context; 0: the rail has no context. Any thread may call this function. */
unsigned rdma_rail_context(const struct rdma_rail *rail);

/* Counts the kernel calls on this rail that do not return. by: 1 for a call that is late; -1 when a late call
 * has returned. The rail is LOST while the count is not 0. Any thread may call this function. */
void rdma_rail_stuck(struct rdma_rail *rail, int by);
/* Limits the number of endpoints of each core to `share` until the time until_ns, because the device has no
 * room for more, and notifies the watches. */
void rdma_rail_share(struct rdma_rail *rail, int share, uint64_t until_ns);

/* Returns the number of changes of the connection parameters (MTU, P_Key, GID of the source). An endpoint
 * with an older number remains usable for its lease, and is reset as soon as it is free. Any thread may call
 * this function. */
unsigned rdma_rail_path(const struct rdma_rail *rail);

/* Makes a helper thread read the rail's port again, because a transfer ended with an error that a change of
 * the port's settings can cause. Any thread may call this function. */
void rdma_rail_suspect(struct rdma_rail *rail);

/* Abandons the context of the rail's device, because one of its completion queues has overrun or cannot be
 * polled. The device is then re-opened. Any thread may call this function. */
void rdma_rail_broken(struct rdma_rail *rail, const char *why);

/* Returns the i-th transport of the rail; NULL: the rail has at most i transports. Any thread may call this
 * function. */
const struct rdma_ep_ops *rdma_rail_transport(const struct rdma_rail *rail, int i);

/* A receiver of notifications of every change of a rail's state or generation; changed() is called on a
 * helper thread. The caller owns the memory, and frees it after rdma_watch_del() has returned. */
struct rdma_watch {
	void (*changed)(struct rdma_watch *w);
	struct list link;
};
void rdma_watch_add(struct rdma *rd, struct rdma_watch *w);
void rdma_watch_del(struct rdma *rd, struct rdma_watch *w);

/* ---- routes ---- */

/* The attributes by which address handles of a rail differ. Service level, traffic class and hop limit are
 * the same for the whole rail. */
struct rdma_ah_key {
	uint8_t dgid[16];
	uint32_t sgid_index;
	uint16_t dlid;
	bool is_global;
	/* number of the path of rdma.paths; each path has another flow label for the same address */
	uint8_t path;
	bool must_route; /* true: the address is allowed only if the kernel has a route to it */
};

struct rail_route {
	int rail;
	const struct rdma_ep_ops *ops; /* transport of the rail that will use the address handle */
	struct rdma_ah_key key;
};

/* The caller of rdma_route(), and the data by which a rail is chosen. */
struct rdma_asker {
	const struct sockaddr *local; /* local address of the client's HTTP connection; NULL: unknown */
	unsigned tried;               /* bitmap of the rails that were tried and did not reach the target */
	int numa_node;                /* NUMA node of the core; -1: unknown */
	/* number that selects one of equally good rails, so that they are used in turn: number of earlier
	 * calls of rdma_route() by this core; in libgantry-server the number of the channel */
	unsigned turn;
	unsigned core;   /* number of the core; each core uses one of the paths */
	bool must_route; /* true: rdma_gid_allowed() returned 1, so a route is required */
};

/* Chooses the rail, its transport and the address handle that lead to the token's target (protocol.md 2.8,
 * items 22, 23, 26): the best combination that was not tried yet. Returns 0; -ENODEV if no rail has a
 * transport for the family of the token; -ENETDOWN if the rails with a transport for this family are not up,
 * or have no address of the target's kind; -ENOTCONN if the token names a connection that does not exist;
 * -ENETUNREACH if the target is on InfiniBand and has a GID without
 * a LID, so that a router is needed; -EINVAL if the token has no GID, and all rails are Ethernet. Any thread
 * may call this function. */
int rdma_route(struct rdma *rd, const struct token *tok, const struct rdma_asker *asker,
	       struct rail_route *ret_route);

/* ---- targets ---- */

/* The destination of work requests. A plain value, which may be copied; the last user releases one of the
 * copies. */
struct rdma_target {
	const struct rdma_ep_ops *ops; /* functions of the transport; NULL: no target */
	void *at;                      /* for DC: reference to the address handle */
	uint32_t nr;                   /* for DC: number of the client's DC target */
};

/* A wait for a target that a helper thread makes. Embedded by the caller. */
struct rdma_target_wait {
	/* called on the helper thread when the wait has ended, with `result` and `target` */
	void (*done)(struct rdma_target_wait *w);
	struct rdma_target target; /* target, owned by the waiter, if result is 0 */
	int result;                /* result of the wait: 0, -EHOSTUNREACH or -ENOMEM */
	uint8_t client;            /* number of the requesting client (base/fair.h) */
	/* true: also waits for a target whose creation takes longer than RDMA_TARGET_WAIT_NS */
	bool patient;
	struct list link;
};

/* ---- completion queues ---- */

struct rdma_completion {
	uint64_t wr_id;
	enum rdma_status status; /* class of the status that the device reported */
	int wc_status;           /* status that the device reported, an enum ibv_wc_status */
	uint32_t vendor_err;     /* vendor's error code; 0 if wc_status is a success */
};

/* The completion queue of a core for one transport of a rail. The transport's own struct for a queue begins
 * with this struct. */
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

/* An endpoint. The transport's own struct for an endpoint begins with this struct. */
struct rdma_ep {
	const struct rdma_ep_ops *ops;
	struct rdma_rail *rail;
	/* value of rdma_rail_path() when the endpoint was made or last reset; owned by the recovery helper
	 * during a reset */
	unsigned path;
};

struct rdma_ep_limits {
	int send_depth; /* largest number of outstanding work requests */
	/* largest number of READs among the outstanding work requests: min(device, 16, rdma.max_rd_atomic);
	 * item 32 */
	int read_depth;
	int max_sge; /* largest number of pieces in a work request: min(device, conf_rdma.max_sge) */
};

#define RDMA_SGE_MAX 32

/* A piece of local memory in a work request. */
struct rdma_sge {
	void *mem;
	uint64_t region; /* number of the region, from rdma_region_add() */
	uint32_t len;
};

struct rdma_wr {
	uint64_t wr_id;
	bool is_write;
	int sge_nr; /* number of pieces, 1 to rdma_ep_limits.max_sge */
	const struct rdma_target *target;
	uint32_t rkey;
	uint64_t remote;
	const struct rdma_sge *sge; /* pieces in the order of the remote bytes; not accessed after the post */
};

/* A connection: an endpoint that was connected before the lease that uses it, with a completion queue of its own.
 * The thread that has it posts to the endpoint and polls the queue. */
struct rdma_connection {
	struct rdma_ep *ep;
	struct rdma_cq *cq; /* destroyed by rdma_ep_free() of the endpoint */
	struct rdma_ep_limits limits;
	unsigned context;    /* number of the context of endpoint and queue */
	unsigned generation; /* generation of the rail at the time when the connection was made */
};

/* The functions of a transport. A transport that serves no token has families 0, and needs only name and
 * probe. */
struct rdma_ep_ops {
	const char *name;
	unsigned families; /* bitmap of the kinds of tokens that the transport serves */
	const struct rdma_cq_ops *cq;
	/* Checks whether a newly opened device supports the transport. Returns 0, or -errno with the reason
	 * in *ret_why. */
	int (*probe)(struct rdma_context *c, const char **ret_why);
	/* Returns true if the configuration asks for the transport. NULL: every configuration does. */
	bool (*enabled)(const struct conf_rdma *conf);
	const char *setting; /* setting that makes enabled() return true; NULL without enabled() */
	/* Finds the rail of a target that exists before the lease. NULL: the rail is chosen by the address in the
	 * token. */
	int (*route)(struct rdma *rd, const struct token *tok, const struct rdma_asker *asker,
		     struct rail_route *ret_route);
	void (*limits)(const struct rdma_rail *rail, int want, struct rdma_ep_limits *ret_limits);
	int (*target_get)(struct rdma_rail *rail, const struct token *tok, const struct rail_route *route,
			  struct rdma_target_wait *w, struct rdma_target *ret_target);
	bool (*target_leave)(struct rdma_rail *rail, struct rdma_target_wait *w);
	void (*target_put)(struct rdma_rail *rail, const struct rdma_target *target);
	void (*target_forget)(struct rdma_rail *rail, const struct rdma_target *target);
	bool (*target_forgotten)(const struct rdma_target *target);
	/* target_ep, ep_put and ep_spend: of a transport whose targets are connections; ep_new, ep_reset, cq: of the
	 * others. NULL: not of this transport. */
	void (*target_ep)(const struct rdma_target *target, struct rdma_connection *ret);
	void (*ep_put)(struct rdma_ep *ep);
	void (*ep_spend)(struct rdma_ep *ep);
	int (*ep_new)(struct rdma_rail *rail, struct rdma_cq *cq, int send_depth, struct rdma_ep **ret_ep);
	/* Connects an endpoint to a target. NULL: the transport needs no connection. */
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

/* Returns true if tokens of this family are served by a rail of rd, or may be served later because this
 * program has a transport for them and a device may appear. rd may be NULL. Any thread may call this
 * function. */
bool rdma_serves(const struct rdma *rd, enum token_kind kind);

/* Returns the limits that an endpoint of this rail would have if `want` work requests were requested. Any
 * thread may call this function. */
static inline void
rdma_ep_limits(const struct rdma_ep_ops *ops, const struct rdma_rail *rail, int want,
	       struct rdma_ep_limits *ret_limits)
{
	ops->limits(rail, want, ret_limits);
}

/* Longest wait for a target, in ns. If making the target takes longer, the request is declined. */
#define RDMA_TARGET_WAIT_NS (300 * NS_PER_MS)

/* Finds or makes the target that the token names. Returns > 0 if *ret_target is set; 0 if w->done() follows;
 * -ENOTCONN if the token names a connection that does not exist, -EBUSY if another lease has the connection;
 * -EHOSTUNREACH if making the target failed a short time ago, takes longer than RDMA_TARGET_WAIT_NS, or if
 * the client has too many pending targets; -EAGAIN if too many targets are in use. Any thread may call this
 * function. */
static inline int
rdma_target_get(struct rdma_rail *rail, const struct token *tok, const struct rail_route *route,
		struct rdma_target_wait *w, struct rdma_target *ret_target)
{
	return route->ops->target_get(rail, tok, route, w, ret_target);
}

/* Ends a wait for a target. Returns true if w->done() will not run, false if it has run or is running. Any
 * thread may call this function. */
static inline bool
rdma_target_leave(const struct rdma_ep_ops *ops, struct rdma_rail *rail, struct rdma_target_wait *w)
{
	return ops->target_leave(rail, w);
}

/* Releases the target; a target without ops is allowed. Any thread may call this function. */
static inline void
rdma_target_put(struct rdma_rail *rail, struct rdma_target *target)
{
	if (target->ops)
		target->ops->target_put(rail, target);
	target->ops = NULL;
}

/* Invalidates the cached path to the target after a transfer to the target ended in RETRY_EXC (item 31), so
 * that the next rdma_target_get() determines the path again. The caller's target stays valid; a target without ops
 * is allowed. Any thread may call this function. */
static inline void
rdma_target_forget(struct rdma_rail *rail, const struct rdma_target *target)
{
	if (target->ops)
		target->ops->target_forget(rail, target);
}

/* Returns true if the rail or the path has changed since the target was made. A caller that keeps targets for
 * a long time then calls rdma_target_get() again. Any thread may call this function, which costs one load. */
static inline bool
rdma_target_is_forgotten(const struct rdma_target *target)
{
	return target->ops->target_forgotten(target);
}

/* Returns true if the targets of this transport are connections, which have their endpoints already. */
static inline bool
rdma_ep_precedes(const struct rdma_ep_ops *ops)
{
	return ops->target_ep != NULL;
}

/* Hands the endpoint and the completion queue of a connection to the calling thread, which returns them by
 * rdma_ep_put() or destroys them by rdma_ep_free(). The target is used up. Called by the core of the lease. */
static inline void
rdma_target_ep(struct rdma_target *target, struct rdma_connection *ret)
{
	target->ops->target_ep(target, ret);
	target->ops = NULL;
}

/* Finds or makes the target that the token names, and waits for it, at most limit_ms. client: number of the
 * requesting client (base/fair.h). Returns 0 with *ret_target; -EHOSTUNREACH if the target cannot be reached;
 * -EAGAIN if too many targets are in use; -ETIMEDOUT; -ENOMEM. Blocks, so it must not be called on a core. */
int rdma_target_wait(struct rdma_rail *rail, const struct token *tok, const struct rail_route *route,
		     uint8_t client, int limit_ms, struct rdma_target *ret_target);

/* Makes a completion queue on the rail's context. The interrupt of the queue is one of the device's
 * interrupts, chosen by the number of the core. -EINVAL: the queue is deeper than the device allows; -ENODEV:
 * the rail has no context. May block; called by the main thread, by a core that starts, or by the recovery
 * helper. */
static inline int
rdma_cq_new(const struct rdma_ep_ops *ops, struct rdma_rail *rail, int depth, int core,
	    struct rdma_cq **ret_cq)
{
	return ops->cq->cq_new(rail, depth, core, ret_cq);
}

/* Frees a completion queue. Only endpoints for which rdma_ep_free() returned -EINPROGRESS may be left on the
 * queue, and no thread waits on the descriptor of the queue. May block; called by the recovery helper, or by
 * a core that ends. NULL is allowed. */
static inline void
rdma_cq_free(struct rdma_cq *cq)
{
	if (cq)
		cq->ops->cq_free(cq);
}

/* Returns the number of the context on which the queue was made. Any thread may call this function. */
static inline unsigned
rdma_cq_context(const struct rdma_cq *cq)
{
	return cq->ops->context(cq);
}

/* Returns the descriptor that becomes readable at the first completion after rdma_cq_arm(). */
static inline int
rdma_cq_fd(const struct rdma_cq *cq)
{
	return cq->ops->fd(cq);
}

/* Takes up to max completions (at most 64) from the queue. Returns their number, or -EIO. Called by the
 * owning core. */
static inline int
rdma_cq_poll(struct rdma_cq *cq, struct rdma_completion *ret_wc, int max)
{
	return cq->ops->poll(cq, ret_wc, max);
}

/* Arms the queue: the next completion makes the descriptor readable. Called by the owning core. */
static inline void
rdma_cq_arm(struct rdma_cq *cq)
{
	cq->ops->arm(cq);
}

/* Takes the events that made the descriptor readable, so that the core can wait on the descriptor again.
 * Called by the owning core. */
static inline void
rdma_cq_event(struct rdma_cq *cq)
{
	cq->ops->event(cq);
}

/* Makes an endpoint on the queue's context. The endpoint is ready for work requests or, if rdma_ep_connects()
 * is true, ready to be connected. Returns 0, or the -errno of the driver. May block; called by the main
 * thread or by the recovery helper. */
static inline int
rdma_ep_new(const struct rdma_ep_ops *ops, struct rdma_rail *rail, struct rdma_cq *cq, int send_depth,
	    struct rdma_ep **ret_ep)
{
	return ops->ep_new(rail, cq, send_depth, ret_ep);
}

/* Returns true if an endpoint of this transport must be connected to a target before it accepts work
 * requests, and must be reset before it is connected to another target. */
static inline bool
rdma_ep_connects(const struct rdma_ep_ops *ops)
{
	return ops->ep_connect != NULL;
}

/* Connects an endpoint to a target. Returns 0, or -errno if the endpoint must be reset. May block; called by
 * the recovery helper. */
static inline int
rdma_ep_connect(struct rdma_ep *ep, const struct rdma_target *target)
{
	return ep->ops->ep_connect ? ep->ops->ep_connect(ep, target) : 0;
}

/* Posts one work request. Returns 0, or -errno if nothing was posted. -ESTALE: the target belongs to another
 * context, or a region was removed. Called by the owning core. */
static inline int
rdma_ep_post(struct rdma_ep *ep, const struct rdma_wr *wr)
{
	return ep->ops->ep_post(ep, wr);
}

/* Returns the endpoint of a connection, after a lease without a failure. No work request may be outstanding, and no
 * thread waits on the descriptor of its queue. Called by the owning core. */
static inline void
rdma_ep_put(struct rdma_ep *ep)
{
	ep->ops->ep_put(ep);
}

/* Tells that an operation on a connection has failed, so that rdma_ep_free() is its end: from now on tokens that name it are
 * declined like those of an unknown one. Called by the owning core. */
static inline void
rdma_ep_spend(struct rdma_ep *ep)
{
	ep->ops->ep_spend(ep);
}

/* Puts an endpoint into the error state, so that its outstanding work requests end as flushed. May block;
 * called by the recovery helper. */
static inline int
rdma_ep_error(struct rdma_ep *ep)
{
	return ep->ops->ep_error(ep);
}

/* Resets an endpoint to its initial state. No work request may be outstanding. May block; called by the
 * recovery helper. */
static inline int
rdma_ep_reset(struct rdma_ep *ep)
{
	return ep->ops->ep_reset(ep);
}

/*
 * Destroys an endpoint. After a return of 0 the device accesses no memory for the endpoint any longer, no
 * completion of the endpoint is left, and the endpoint is freed. After another result the caller calls again
 * later:
 *
 *   -EINPROGRESS   the endpoint only waits until its context is closed; further calls do not block
 *   -EAGAIN        the endpoint is destroyed, but the device does not answer
 *   other          the endpoint still exists
 *
 * idle: no work request of the endpoint is outstanding; then an endpoint on an abandoned context is released
 * whatever the device answers. NULL is allowed. May block; called by the recovery helper, and after
 * -EINPROGRESS also by a core.
 */
static inline int
rdma_ep_free(struct rdma_ep *ep, bool idle)
{
	return ep ? ep->ops->ep_free(ep, idle) : 0;
}

/* ---- the recovery helper: one helper thread for each rail, for calls that may block ---- */

struct rdma_job {
	/* called by the recovery helper, which does not access the job after this call began */
	void (*run)(struct rdma_job *job);
	struct list link;
};
/* Adds a job to the queue of the recovery helper, which runs jobs in order. Any thread may call this
 * function. */
void rdma_job_post(struct rdma_rail *rail, struct rdma_job *job);
/* Adds a job to the queue of the recovery helper, before all other jobs. Any thread may call this
 * function. */
void rdma_job_post_first(struct rdma_rail *rail, struct rdma_job *job);

#endif
