/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of chan/. All data belongs to the core that owns the chan, unless stated
 * otherwise.
 *
 *   chan.c    making and freeing, the core's turns, descriptors
 *   wake.c    messages of other threads
 *   lease.c   granted and waiting leases
 *   op.c      posting, dispatch of completions
 *   repair.c  connecting an endpoint, and repairing it after a failed lease
 *   renew.c   a rail whose device is re-opened
 *   conn.c    channels whose endpoints are connections
 */
#ifndef GANTRY_CHAN_INT_H
#define GANTRY_CHAN_INT_H

#include "chan/chan.h"
#include "chan/delay.h"
#include "rdma/ep.h"

#include <stdatomic.h>

#define OP_MAGIC 0x676f7021u

struct chan_rail;
struct lease;

/*
 * The states of an endpoint:
 *
 *            granted               a bad completion, or chan_lease_fail()
 *   FREE ---------------> LEASED -------------------------> DRAINING
 *   ^ ^ | <---- put ----'  ^ |                               |    |
 *   | | |                  | '- put, where it is connected   |    |
 *   | | '--> CONNECTING ---' |          .--------------------'    |
 *   | |          |           v          v  all have completed     |
 *   | |          '--------> RESETTING <-'                         | 100 ms, and completions are missing
 *   | |  fails, or no lease  | |                                  |
 *   | |  waits any longer    | | does not succeed                 |
 *   | '-------- reset -------' v                                  |
 *   |                     DESTROYING <----------------------------'
 *   |                         | destroyed: its operations end now
 *   |   created               v               fails
 *   '--------------------- CREATING -----------------> BROKEN
 *                              ^------ 1 s, or the rail is up --'
 *
 * If a device has no room for the endpoints of all cores, a core that has more than its share moves FREE
 * endpoints to DESTROYING and then to BROKEN.
 *
 * If the rail's MTU, P_Key or source address has changed, a FREE endpoint moves to RESETTING, and a LEASED
 * endpoint does so when its lease is put.
 *
 * CONNECTING is used by transports that connect an endpoint to its target before it can work
 * (rdma_ep_connects()); DC has no such step.
 *
 * A channel of a transport whose targets are connections (rdma_ep_precedes()) has an endpoint only while it is not FREE:
 * conn.c. DRAINING then ends in DESTROYING, and DESTROYING in FREE.
 *
 * If the device has died, FREE and FENCED endpoints move to DESTROYING, and so does an endpoint whose reset or
 * creation for the dead device ends. While the rail has no completion queue, destroyed endpoints are BROKEN.
 * With rdma.qp_reset_on_failure off, DRAINING and DESTROYING end in FENCED.
 */
enum ep_state {
	EP_FREE,
	EP_CONNECTING,
	EP_LEASED,
	EP_DRAINING,
	EP_RESETTING,
	EP_DESTROYING,
	EP_CREATING,
	EP_BROKEN,
	EP_FENCED,
	EP_STATE_NR
};

enum job_kind { JOB_NONE, JOB_CONNECT, JOB_ERROR, JOB_RESET, JOB_DESTROY, JOB_CREATE };

struct chan_ep {
	struct chan_rail *cr;
	struct rdma_ep *rdma; /* endpoint of rdma/; NULL: no endpoint */
	uint32_t nr;          /* number of the endpoint in its rail */
	enum ep_state state;
	/* lease that uses the endpoint; set until the last operation of the endpoint has ended; NULL: no
	 * lease */
	struct chan_lease *lease;
	/* operations that are outstanding, linked by chan_op.link, in posting order */
	struct list posted;
	int outstanding, reads;
	/* sequence number of the next work request; it never restarts, so that a stale completion matches
	 * no request */
	uint32_t seq;
	unsigned generation; /* generation of the rail at the time when this queue pair was created */
	/* true if the endpoint was connected to a target, or an attempt was made: it is reset before the
	 * next lease */
	bool connected;
	bool lost; /* true if a completion did not arrive in time */
	/* true: rdma_rail_stuck() counts the endpoint, because the call that destroys it does not return */
	bool stuck;
	bool awaits_rail; /* BROKEN: true if the creation failed because the rail was not up */
	bool idle;        /* private to the job: no work was outstanding when the job was posted */
	/* DESTROYING: true if the endpoint is destroyed but the hardware may still work for it; its
	 * operations end when its context is closed */
	bool gone;
	/* CONNECTING: target of the lease, kept here because the lease may be cancelled meanwhile */
	struct rdma_target target;
	/* DRAINING: time of the next check for missing completions; CONNECTING, DESTROYING: time limit;
	 * BROKEN: time of the next attempt to create the endpoint */
	struct timer timer;
	struct list free; /* link in chan_rail.free; of a connection in use: link in chan_rail.used */
	/* cq to deaf: of a connection. cq: its completion queue; NULL: there is none, or it is being destroyed */
	struct rdma_cq *cq;
	struct rdma_ep_limits limits;
	unsigned context;    /* number of the context of the endpoint */
	bool watched, armed; /* watched: the queue's descriptor is in chan_rail.epoll_fd */
	bool deaf;           /* true: the queue's descriptor is of no use */
	/* The job that runs in the recovery helper. job_result and rdma belong to the recovery helper until
	 * the job returns. */
	enum job_kind kind;
	int job_result;
	struct rdma_job job;
	struct msg back;
};

/*
 * The states of a rail's completion queue while the rail's context is abandoned and replaced (rdma/ep.h,
 * "contexts"):
 *
 *     ON --abandoned--> ENDING --all released--> FREEING --> NONE --new context--> MAKING --> ON
 *
 * If MAKING fails, the state is NONE again, and the next attempt follows in 1 s.
 * ENDING lasts until the queue has no endpoints, and no wait on its descriptor is pending.
 */
enum cq_state { CQ_NONE, CQ_MAKING, CQ_ON, CQ_ENDING, CQ_FREEING };

/* One transport of a rail: its completion queue and its endpoints. */
struct chan_rail {
	struct chan *ch;
	struct rdma_rail *rail;
	int nr; /* number of the rail */
	const struct rdma_ep_ops *ops;
	struct rdma_cq *cq; /* the completion queue in state ON or ENDING; owned by the job while cq_job
	                     * runs */
	enum cq_state cq_state;
	unsigned context; /* number of the context in which the queue was created */
	bool watched, unwatching;
	int cq_depth;           /* configured depth of the queue, entries; 0: rail_cq_depth() */
	struct timer cq_timer;  /* CQ_NONE: time of the next attempt to make a queue */
	struct rdma_job cq_job; /* job of states FREEING and MAKING */
	struct msg cq_back;
	int cq_result;
	unsigned cq_tried; /* number of the context for which a queue was last requested */
	struct rdma_ep_limits limits;
	struct chan_ep *ep;
	/* lease_max: limit of leased endpoints; the other endpoints replace endpoints under repair */
	int ep_nr, lease_max;
	int leased;
	int unusable; /* number of endpoints in state BROKEN or FENCED */
	int made;     /* number of endpoints in a state other than BROKEN, FENCED, CREATING and DESTROYING */
	struct list free;
	struct list used;    /* of connections: channels that have an endpoint */
	int epoll_fd;        /* of connections: descriptor by which the core waits for all of them */
	struct fair waiting; /* leases that have a target and wait for a channel */
	int outstanding;
	bool armed, must_poll; /* must_poll: the queue is polled even without outstanding work */
	bool logged;           /* true if the failure to create channels was logged */
	unsigned generation;
};

/* A wait of a lease for its target. It is separate from the lease, because a cancelled lease ends
 * immediately, and the helper thread answers later. */
struct chan_wait {
	struct rdma_target_wait target;
	struct chan *ch;
	struct chan_rail *cr;
	struct chan_lease *lease; /* waiting lease; NULL: it was cancelled */
	struct msg back;
	struct list link; /* link in chan.waits_free */
};

/* The message with which other threads wake the core. It is allocated on its own, because it outlives the
 * chan while it is in the core's mailbox. */
struct chan_wakeup {
	struct msg msg;
	void (*run)(struct msg *m);
	_Atomic bool posted;
	struct chan *ch; /* NULL: the chan was freed */
	/* true: the chan was abandoned, and `posted` stays true, so that the message is never posted again */
	bool left;
};

struct chan {
	struct rdma *rdma;
	struct mailbox *mb;
	struct timers *timers;
	enum { CHAN_MODE_NONE, CHAN_MODE_NO_DEVICE, CHAN_MODE_ON } mode;
	bool reset_on_failure;
	int poll_batch, pieces_max, queue_max;
	uint64_t *region_map;
	int region_nr;
	struct chan_rail *rail;
	int rail_nr;
	int rails_seen; /* number of rails of rdma/ for which this chan has made its channels so far */
	int core, core_nr, numa_node;
	int channels, cq_depth; /* configured values */
	unsigned turn;          /* index of the rail to try first among equally good rails */
	void (*watch_fd)(void *cookie, int fd);
	bool (*unwatch_fd)(void *cookie, int fd);
	void *fd_cookie;

	/* longest time that chan_free() waits for the recovery helper, in milliseconds */
	int free_patience_ms;

	/* leased: number of granted leases; waiting: number of leases that wait for a target, for a channel,
	 * or for the connection of a channel */
	int leased, waiting;
	struct list ready; /* leases that were granted or refused, and whose done() has not been called yet */
	/* operations that ended without a completion, because they were never posted or their endpoint was
	 * destroyed, and whose done() has not been called yet */
	struct list ended;
	int outstanding; /* number of outstanding work requests */
	struct chan_wait *waits;
	struct list waits_free;
	int waits_out, jobs_out;
	struct delay delay;
	uint64_t next_poll_ns;

	/* Messages from other threads: results of jobs, and changes of rails. The wake-up makes the core
	 * read this mailbox. */
	struct mailbox inbox;
	struct chan_wakeup *wakeup;
	_Atomic bool rails_changed;
	/* number of jobs and waits for targets whose answer is still to come from another thread. The other
	 * thread decrements the number after its last access to the chan; chan_free() waits for 0. */
	_Atomic int answers_due;
	struct rdma_watch watch;
};

enum lease_state {
	LEASE_NONE,
	LEASE_TARGET,
	LEASE_QUEUED,
	LEASE_CONNECTING,
	LEASE_READY,
	LEASE_DECLINED,
	LEASE_HELD
};

/* The private part of a lease, chan_lease.priv. */
struct lease {
	enum lease_state state;
	struct chan_rail *cr;
	struct chan_ep *ep; /* endpoint; NULL: the work of the lease has ended */
	struct rdma_target target;
	struct chan_wait *wait;
	struct timer timer;      /* LEASE_TARGET: time limit of the wait */
	const struct token *tok; /* token of the request, valid until the lease is granted */
	const struct sockaddr *local;
	unsigned tried;       /* bit i: rail i does not reach the target */
	enum chan_reason why; /* reason why the first rail did not reach the target */
	/* operations that are not posted yet, because the endpoint has no room for further work requests or
	 * READs */
	struct list queue;
	uint64_t addr, size;
	uint32_t rkey;
};
_Static_assert(sizeof(struct lease) <= sizeof(((struct chan_lease *)0)->priv), "a lease fits");

/* Returns true if the rail has a completion queue to poll. */
static inline bool
has_cq(const struct chan_rail *cr)
{
	return cr->cq_state == CQ_ON || cr->cq_state == CQ_ENDING;
}

/* Returns true if the endpoints of the rail are connections (conn.c). */
static inline bool
has_connections(const struct chan_rail *cr)
{
	return rdma_ep_precedes(cr->ops);
}

static inline struct rdma_ep_counts *
ep_counts(const struct chan_rail *cr)
{
	struct rdma_rail_stats *st = rdma_rail_stats(cr->rail);

	return has_connections(cr) ? &st->conns : &st->eps;
}

static inline const struct rdma_ep_limits *
ep_limits(const struct chan_ep *ep)
{
	return has_connections(ep->cr) ? &ep->limits : &ep->cr->limits;
}

static inline struct lease *
lease_of(struct chan_lease *ls)
{
	return (struct lease *)(void *)ls->priv;
}

/* ---- wake.c ---- */

/* Wakes the core, which then reads the messages of other threads. Any thread may call this function. */
void chan_wake(struct chan *ch);
/* Makes the core run fn(m), and then decrements answers_due. The calling thread must not access the chan
 * after this call. Any thread may call this function. */
void chan_answer(struct chan *ch, struct msg *m, void (*fn)(struct msg *));

/* ---- lease.c ---- */

/* Grants free channels to waiting leases, or begins to connect them. */
void lease_grant_waiting(struct chan_rail *cr);
/* Declines all leases that wait for a channel of this rail. */
void lease_decline_waiting(struct chan_rail *cr, enum chan_reason reason);
/* Removes an endpoint from its lease. All work requests of the endpoint have ended. */
void lease_detach(struct chan_ep *ep);
/* Handles the end of an attempt to connect the endpoint to its lease's target. r: 0 if it is connected, else
 * -errno. */
void lease_connected(struct chan_ep *ep, int r);
/* Marks the lease as failed: nothing more is posted, and operations that wait to be posted end. */
void lease_error(struct chan *ch, struct chan_lease *ls);
/* Calls done() of all leases in chan.ready. Returns the number of these leases. */
int lease_run_ready(struct chan *ch);

/* ---- op.c ---- */

/* Ends a posted operation with `status`, after its completion or the destruction of its endpoint, and calls
 * its done(). If the status is not a success, the lease is marked as failed, and the endpoint of the lease is
 * repaired. */
void op_end(struct chan *ch, struct chan_op *op, enum rdma_status status);
/* Calls done() of all operations in chan.ended. Returns the number of these operations. */
int op_run_ended(struct chan *ch);
/* Moves to chan.ended all operations of a failed lease that were not posted yet. */
void op_cancel_queue(struct chan *ch, struct chan_lease *ls);
/* Polls the completion queues of the rail until they are empty. Returns the number of completions. */
int rail_poll(struct chan_rail *cr);

/* ---- repair.c ---- */

void ep_set_state(struct chan_ep *ep, enum ep_state state);
/* Begins to connect the endpoint to its lease's target; lease_connected() follows. */
void ep_connect(struct chan_ep *ep);
/* Begins to repair an endpoint in error that its lease can no longer use: the endpoint is drained, reset
 * and returned to the pool, or it is destroyed and created again. */
void ep_fail(struct chan_ep *ep);
/* Handles the last completion of an endpoint in error: removes the endpoint from its lease, and resets the
 * endpoint. */
void ep_drained(struct chan_ep *ep);
/* Returns an endpoint without a lease to the pool of free endpoints, so that waiting leases get it. If the
 * endpoint was connected or its rail has changed, the endpoint is first reset or destroyed. */
void ep_to_pool(struct chan_ep *ep);
/* Handles a failed creation (r: -errno): marks the endpoint BROKEN, and creates it again every second
 * until that succeeds. */
void ep_create_failed(struct chan_ep *ep, int r);
/* Creates the endpoints that could not be created while the rail was not up, without the usual wait of a
 * second: otherwise leases would be declined for lack of endpoints (protocol.md 4.7). */
void eps_retry(struct chan_rail *cr);
/* Destroys the endpoints that exceed the core's share of a device that has no room for the endpoints of
 * all cores. */
void eps_follow_share(struct chan_rail *cr);
/* Resets a free endpoint if the MTU, P_Key or source address of its rail has changed. */
void ep_follow_path(struct chan_ep *ep);
/* Replaces an endpoint whose queue pair the device has lost. */
void ep_replace(struct chan_ep *ep);
/* Begins to destroy the endpoint; called again after a failed attempt. */
void ep_step_destroy(struct chan_ep *ep);
/* Creates the endpoint again if it waited for a completion queue. */
void ep_create_again(struct chan_ep *ep);

/* ---- conn.c: of a rail whose endpoints are connections ---- */

/* Makes the descriptor by which the core waits. Returns 0 or -errno. */
int conn_init(struct chan_rail *cr);
void conn_fini(struct chan_rail *cr);
/* Takes over the connection that is the target of the channel's lease. */
void conn_take(struct chan_ep *ep);
/* Returns the channel's connection, whose lease ended without a failure; the channel has no endpoint then. */
void conn_put(struct chan_ep *ep);
/* Ends polling of and waiting on the queue, which will be destroyed with the endpoint. */
void conn_leave_queue(struct chan_ep *ep);
/* Notes that the channel has no endpoint any longer. */
void conn_gone(struct chan_ep *ep);
void conn_arm(struct chan_rail *cr);
void conn_event(struct chan_rail *cr);

/* ---- renew.c ---- */

/* Handles a change of the rail's context: releases the completion queue and the endpoints of an abandoned
 * context, and makes a queue on a new context. */
void rail_follow_context(struct chan_rail *cr);
/* Continues to release the rail's abandoned context; called after an endpoint was released. Frees the
 * completion queue when no endpoint is left. */
void rail_end_step(struct chan_rail *cr);
/* Returns true if no channel of the rail will be usable soon, so that waiting leases must be declined. Before
 * that, begins to make the missing queue and the missing endpoints. */
bool rail_unusable(struct chan_rail *cr);
/* Returns the depth of the completion queue, in entries: the configured depth, or a depth at which the queue
 * never overruns. */
int rail_cq_depth(const struct chan_rail *cr);

#endif
