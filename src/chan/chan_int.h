/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of chan/. Everything here belongs to the core that owns the chan, unless
 * stated otherwise.
 *
 *   chan.c    making and freeing, the core's turns, descriptors
 *   wake.c    messages of other threads
 *   lease.c   leases: granted and waiting ones
 *   op.c      posting, completion dispatch
 *   repair.c  repair of an endpoint after a failed lease; connecting
 *   renew.c   a rail whose device is re-opened
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
 *            granted               a bad completion, or chan_lease_fail()
 *   FREE ---------------> LEASED -------------------------> DRAINING
 *   ^ ^ | <---- put ----'  ^ |                               |    |
 *   | | |                  | '- put, where it is connected   |    |
 *   | | '--> CONNECTING ---' |          .--------------------'    |
 *   | |          |           v          v  all are in             |
 *   | |          '--------> RESETTING <-'                         | 100 ms, and completions are missing
 *   | |  fails, or nobody    | |                                  |
 *   | |  waits any more      | | does not succeed                 |
 *   | '-------- reset -------' v                                  |
 *   |                     DESTROYING <----------------------------'
 *   |                         | destroyed: its operations end now
 *   |   created               v               fails
 *   '--------------------- CREATING -----------------> BROKEN
 *                              ^------ 1 s, or the rail is up --'
 *
 * Where a device has room for fewer than all cores ask for, FREE goes to DESTROYING and BROKEN on cores that
 * have more than their share.
 *
 * FREE goes to RESETTING where the rail's MTU, P_Key or source address has changed, and so does an endpoint
 * that is put then.
 *
 * CONNECTING: where the transport connects an endpoint to its target before it takes work
 * (rdma_ep_connects()); DC does not.
 *
 * When its device has died, FREE and FENCED go to DESTROYING too, and so does an endpoint reset or created
 * for the old one. While the rail has no completion queue, destroyed endpoints are BROKEN. With
 * rdma.qp_reset_on_failure off, DRAINING and DESTROYING end in FENCED.
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
	struct rdma_ep *rdma; /* NULL: no endpoint */
	uint32_t nr;
	enum ep_state state;
	struct chan_lease *lease; /* until its last operation has ended */
	struct list posted;       /* chan_op.link, in posting order */
	int outstanding, reads;
	/* sequence number of the next work request; never restarts, so a stale completion matches no
	 * request */
	uint32_t seq;
	unsigned generation; /* generation of the rail when this queue pair was made */
	/* the endpoint is connected to a target, or a connection was tried: it is reset before the next
	 * lease */
	bool connected;
	bool lost;        /* a completion is missing */
	bool stuck;       /* the rail was notified that destroying hangs */
	bool awaits_rail; /* BROKEN: the creation failed because the rail was not up */
	bool idle;        /* private to the job: no work was outstanding when it was posted */
	/* DESTROYING: the endpoint is destroyed, but the hardware may still work for it: its operations end
	 * when its context is closed */
	bool gone;
	/* CONNECTING: target of the lease, which may be cancelled in the meantime */
	struct rdma_target target;
	/* DRAINING: watches the drain; CONNECTING, DESTROYING: limits the wait; BROKEN: the next attempt */
	struct timer timer;
	struct list free;
	/* The job in the recovery helper; job_result and rdma belong to the helper until the job returns. */
	enum job_kind kind;
	int job_result;
	struct rdma_job job;
	struct msg back;
};

/*
 * A rail's completion queue and its endpoints, when the rail's context is abandoned and replaced (rdma/ep.h,
 * "contexts"):
 *
 *     ON --given up--> ENDING --all is given back--> FREEING --> NONE --another context--> MAKING --> ON
 *                                                               ^      fails, again in 1 s    |
 *                                                               `-----------------------------'
 *
 * ENDING: until the queue has no endpoints, and no wait on its descriptor is pending.
 */
enum cq_state { CQ_NONE, CQ_MAKING, CQ_ON, CQ_ENDING, CQ_FREEING };

/* A rail with one of its transports. */
struct chan_rail {
	struct chan *ch;
	struct rdma_rail *rail;
	int nr; /* number of the rail */
	const struct rdma_ep_ops *ops;
	struct rdma_cq *cq; /* the queue in state ON or ENDING; owned by the job while cq_job runs */
	enum cq_state cq_state;
	unsigned context; /* number of the queue's context */
	bool watched, unwatching;
	int cq_depth;           /* configured depth; 0: the necessary depth */
	struct timer cq_timer;  /* NONE: the next attempt */
	struct rdma_job cq_job; /* FREEING, MAKING */
	struct msg cq_back;
	int cq_result;
	unsigned cq_tried; /* the context for which a queue was last requested */
	struct rdma_ep_limits limits;
	struct chan_ep *ep;
	int ep_nr, lease_max; /* endpoints beyond lease_max replace endpoints under repair */
	int leased;
	int unusable; /* number of BROKEN or FENCED endpoints */
	int made;     /* number of endpoints not BROKEN, FENCED, CREATING or DESTROYING */
	struct list free;
	struct fair waiting; /* leases with a target and without a channel */
	int outstanding;
	bool armed, must_poll; /* must_poll: polls are needed even without outstanding work */
	bool logged;           /* the log has a line that channels cannot be created */
	unsigned generation;
};

/* A wait for a target. Separate from the lease: a cancelled lease ends immediately, while the helper answers
 * later. */
struct chan_wait {
	struct rdma_target_wait target;
	struct chan *ch;
	struct chan_rail *cr;
	struct chan_lease *lease; /* NULL: cancelled */
	struct msg back;
	struct list link; /* link of the free list */
};

/* Heap memory that outlives the chan while it is in the core's mailbox. */
struct chan_wakeup {
	struct msg msg;
	void (*run)(struct msg *m);
	_Atomic bool posted;
	struct chan *ch; /* NULL: the chan was freed */
	/* the chan was abandoned: posted stays true, so that the message is never posted again */
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
	int rails_seen; /* number of rails of rdma/ seen so far */
	int core, core_nr, numa_node;
	int channels, cq_depth; /* configured values */
	unsigned turn;          /* number of the next rail among equal ones */
	void (*watch_fd)(void *cookie, int fd);
	bool (*unwatch_fd)(void *cookie, int fd);
	void *fd_cookie;

	int free_patience_ms; /* time for which chan_free() waits for the helper, in ms */

	/* number of leases granted; waiting: for a target, a channel, or its connection */
	int leased, waiting;
	struct list ready; /* leases whose done() is due */
	/* operations whose done() is due without a completion: never posted, or ended in another way */
	struct list ended;
	int outstanding; /* outstanding work requests */
	struct chan_wait *waits;
	struct list waits_free;
	int waits_out, jobs_out;
	struct delay delay;
	uint64_t next_poll_ns;

	/* Messages from other threads: results, and changes of rails. The wake-up makes the core read the
	 * inbox. */
	struct mailbox inbox;
	struct chan_wakeup *wakeup;
	_Atomic bool rails_changed;
	/* number of helpers that will still access this chan; decremented by the last action of each */
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

/* chan_lease.priv */
struct lease {
	enum lease_state state;
	struct chan_rail *cr;
	struct chan_ep *ep; /* NULL: the work of the lease has ended */
	struct rdma_target target;
	struct chan_wait *wait;
	struct timer timer;      /* TARGET: time limit of the wait */
	const struct token *tok; /* the requested token, until the lease is granted */
	const struct sockaddr *local;
	unsigned tried;       /* bit i: rail i does not reach the target */
	enum chan_reason why; /* reason of the first rail that does not reach the target */
	struct list queue;    /* operations not posted yet, because the depth or the READs are used up */
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

static inline struct lease *
lease_of(struct chan_lease *ls)
{
	return (struct lease *)(void *)ls->priv;
}

/* ---- wake.c ---- */

/* Wakes the core, which then reads the messages of other threads. Any thread. */
void chan_wake(struct chan *ch);
/* Makes the core run fn(m): the last message of a helper. Announced by answers_due. */
void chan_answer(struct chan *ch, struct msg *m, void (*fn)(struct msg *));

/* ---- lease.c ---- */

/* Grants free channels to waiting leases, or begins to connect them. */
void lease_grant_waiting(struct chan_rail *cr);
/* Declines all leases that wait for a channel of this rail. */
void lease_decline_waiting(struct chan_rail *cr, enum chan_reason reason);
/* Removes an endpoint from its lease, whose work has ended. */
void lease_detach(struct chan_ep *ep);
/* Is called when the endpoint was connected to its lease's target, or when that failed (r: -errno). */
void lease_connected(struct chan_ep *ep, int r);
/* Marks the lease as failed: no more operations are posted, and waiting ones end. */
void lease_error(struct chan *ch, struct chan_lease *ls);
/* Calls done() of leases that are due; returns their number. */
int lease_run_ready(struct chan *ch);

/* ---- op.c ---- */

/* Ends an operation without outstanding work request. */
void op_end(struct chan *ch, struct chan_op *op, enum rdma_status status);
/* Calls done() of operations that ended without a completion; returns their number. */
int op_run_ended(struct chan *ch);
/* Moves the waiting operations of a failed lease to chan.ended. */
void op_cancel_queue(struct chan *ch, struct chan_lease *ls);
/* Polls the rail's completion queue until it is empty; returns the number of completions dispatched. */
int rail_poll(struct chan_rail *cr);

/* ---- repair.c ---- */

void ep_set_state(struct chan_ep *ep, enum ep_state state);
/* Begins to connect the endpoint to its lease's target; lease_connected() follows. */
void ep_connect(struct chan_ep *ep);
/* Begins to repair a channel in error whose lease can no longer use it: the endpoint is drained, reset and
 * returned to the pool; or destroyed and created again. */
void ep_fail(struct chan_ep *ep);
/* Is called when the last completion of an endpoint in error has arrived. */
void ep_drained(struct chan_ep *ep);
/* Returns an endpoint that works and has no lease to the pool. */
void ep_to_pool(struct chan_ep *ep);
/* Is called when creation failed with r: marks the endpoint BROKEN, to be tried again every second. */
void ep_create_failed(struct chan_ep *ep, int r);
/* Creates immediately the endpoints that could not be created while the rail was not up, without the wait of
 * a second, so that leases are not declined unnecessarily (protocol.md 4.7). */
void eps_retry(struct chan_rail *cr);
/* Destroys endpoints beyond the core's share of a device that has no room for all. */
void eps_follow_share(struct chan_rail *cr);
/* Resets a free endpoint whose connection parameters have changed. */
void ep_follow_path(struct chan_ep *ep);
/* Replaces an endpoint whose queue pair the device has lost. */
void ep_replace(struct chan_ep *ep);
/* Begins to destroy the endpoint, again after a failure. */
void ep_step_destroy(struct chan_ep *ep);
/* Creates the endpoints that waited for a completion queue. */
void ep_create_again(struct chan_ep *ep);

/* ---- renew.c ---- */

/* Follows a change of the rail's context: abandoned, closed, or replaced. */
void rail_follow_context(struct chan_rail *cr);
/* Continues the removal of a context, after the return of an endpoint. */
void rail_end_step(struct chan_rail *cr);
/* Returns true if a lease waits for a channel of the rail and none can be used soon. */
bool rail_unusable(struct chan_rail *cr);
/* Returns a depth with which the completion queue never overruns. */
int rail_cq_depth(const struct chan_rail *cr);

#endif
