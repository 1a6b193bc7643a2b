/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of chan/ share.  Everything here belongs to the core that owns the chan, but for what says
 * otherwise.
 *
 *   chan.c    making and freeing, the core's turns, descriptors
 *   wake.c    how other threads are heard
 *   lease.c   who has a channel and who waits for one
 *   op.c      posting, completion dispatch
 *   repair.c  what becomes of an endpoint whose lease failed; connecting
 *   renew.c   a rail whose device is opened anew
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
 * Where a device has room for fewer than all cores ask for, FREE goes to DESTROYING and BROKEN on cores that have more than their share.
 *
 * FREE goes to RESETTING where the rail's MTU, P_Key or source address has changed, and so does what is put then.
 *
 * CONNECTING: where the transport connects an endpoint to its target before it takes work
 * (rdma_ep_connects()); DC does not.
 *
 * When its device has died, FREE and FENCED go to DESTROYING too, and so does what was reset or created for
 * the old one.  While the rail has no completion queue, what was destroyed is BROKEN.  With
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
	struct rdma_ep *rdma; /* NULL while there is none */
	uint32_t nr;
	enum ep_state state;
	struct chan_lease *lease; /* until its last operation ended */
	struct list posted;       /* chan_op.link, in posting order */
	int outstanding, reads;
	uint32_t
		seq; /* of the next work request; never starts again, so a stale completion matches nothing */
	unsigned generation; /* of the rail, when this queue pair was made */
	bool connected;      /* to some target, or it was tried: reset before the next lease */
	bool lost;           /* a completion stayed away */
	bool stuck;          /* the rail was told that destroying hangs */
	bool awaits_rail;    /* BROKEN: it could not be created because the rail was not up */
	bool idle;           /* the job's: nothing was outstanding when it was posted */
	bool gone; /* DESTROYING: nothing of it is left but what the hardware may still do: its operations end
		      when its context was closed */
	struct rdma_target target; /* CONNECTING: the lease's, which may go meanwhile */
	/* DRAINING: the watch; CONNECTING, DESTROYING: the patience; BROKEN: the next attempt */
	struct timer timer;
	struct list free;
	/* The job on its way through the recovery helper; its result and rdma are the helper's until it comes
	 * back. */
	enum job_kind kind;
	int job_result;
	struct rdma_job job;
	struct msg back;
};

/*
 * A rail's completion queue and the endpoints on it, when the rail's context is given up and another comes
 * (rdma/ep.h, "contexts"):
 *
 *     ON --given up--> ENDING --all is given back--> FREEING --> NONE --another context--> MAKING --> ON
 *                                                               ^      fails, again in 1 s    |
 *                                                               `-----------------------------'
 *
 * ENDING: until no endpoint is left on the queue, and nobody waits on its descriptor.
 */
enum cq_state { CQ_NONE, CQ_MAKING, CQ_ON, CQ_ENDING, CQ_FREEING };

/* A rail by one of its transports. */
struct chan_rail {
	struct chan *ch;
	struct rdma_rail *rail;
	int nr; /* of the rail */
	const struct rdma_ep_ops *ops;
	struct rdma_cq *cq; /* ON, ENDING; the job's while it is out */
	enum cq_state cq_state;
	unsigned context; /* the number of the queue's */
	bool watched, unwatching;
	int cq_depth;           /* as configured; 0: as deep as is needed */
	struct timer cq_timer;  /* NONE: the next attempt */
	struct rdma_job cq_job; /* FREEING, MAKING */
	struct msg cq_back;
	int cq_result;
	unsigned cq_tried; /* the context that a queue was last asked for on */
	struct rdma_ep_limits limits;
	struct chan_ep *ep;
	int ep_nr, lease_max; /* spares beyond lease_max cover for those being repaired */
	int leased;
	int unusable; /* BROKEN or FENCED */
	int made;     /* neither of these, nor on the way to or from it */
	struct list free;
	struct fair waiting; /* leases with a target, without a channel */
	int outstanding;
	bool armed, must_poll; /* must_poll: even with nothing outstanding */
	bool logged;           /* the log knows that channels cannot be created */
	unsigned generation;
};

/* Waits for a target.  Not part of the lease: a cancelled lease is gone at once, the helper's answer comes
 * when it comes. */
struct chan_wait {
	struct rdma_target_wait target;
	struct chan *ch;
	struct chan_rail *cr;
	struct chan_lease *lease; /* NULL: cancelled */
	struct msg back;
	struct list link; /* free */
};

/* Heap, and outlives the chan while it is in the core's mailbox. */
struct chan_wakeup {
	struct msg msg;
	void (*run)(struct msg *m);
	_Atomic bool posted;
	struct chan *ch; /* NULL: freed meanwhile */
	bool left;       /* the chan was left alone: stays posted for good, so that nobody posts it */
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
	int rails_seen; /* of rdma/'s */
	int core, core_nr, numa_node;
	int channels, cq_depth; /* as configured */
	unsigned turn;          /* whose among equal rails */
	void (*watch_fd)(void *cookie, int fd);
	bool (*unwatch_fd)(void *cookie, int fd);
	void *fd_cookie;

	int free_patience_ms; /* so long chan_free() waits for the helper */

	int leased, waiting; /* waiting: for a target, a channel, or its connection */
	struct list ready;   /* leases whose done() is due */
	/* operations whose done() is due; they never reached the wire, or came back otherwise */
	struct list ended;
	int outstanding; /* work requests */
	struct chan_wait *waits;
	struct list waits_free;
	int waits_out, jobs_out;
	struct delay delay;
	uint64_t next_poll_ns;

	/* From other threads: what has come back, and that rails changed.  The wake-up brings the core
	 * here. */
	struct mailbox inbox;
	struct chan_wakeup *wakeup;
	_Atomic bool rails_changed;
	_Atomic int answers_due; /* helpers that will still touch us; taken back as the last thing they do */
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
	struct chan_ep *ep; /* NULL once its work is over */
	struct rdma_target target;
	struct chan_wait *wait;
	struct timer timer;      /* TARGET: no longer than this */
	const struct token *tok; /* what it asks for, until it has it */
	const struct sockaddr *local;
	unsigned tried;       /* bit i: rail i does not lead there */
	enum chan_reason why; /* the first of them did not */
	struct list queue;    /* operations not posted yet: depth, or READs, are used up */
	uint64_t addr, size;
	uint32_t rkey;
};
_Static_assert(sizeof(struct lease) <= sizeof(((struct chan_lease *)0)->priv), "a lease fits");

/* Tells whether there is a queue to be polled. */
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

/* Has the core's thread come to look at what others have said.  Any thread. */
void chan_wake(struct chan *ch);
/* Has the core run fn(m): a helper's last word.  Was announced with answers_due. */
void chan_answer(struct chan *ch, struct msg *m, void (*fn)(struct msg *));

/* ---- lease.c ---- */

/* Gives free channels to who waits for one, or begins to connect them. */
void lease_grant_waiting(struct chan_rail *cr);
/* Declines all who wait for a channel of this rail. */
void lease_decline_waiting(struct chan_rail *cr, enum chan_reason reason);
/* Takes an endpoint off its lease, whose work is over. */
void lease_detach(struct chan_ep *ep);
/* Is called when the endpoint was connected to its lease's target, or could not be (r: -errno). */
void lease_connected(struct chan_ep *ep, int r);
/* Puts the lease in error: nothing is posted any more, and what waits for a place ends. */
void lease_error(struct chan *ch, struct chan_lease *ls);
/* Calls done() of leases that are due; returns of how many. */
int lease_run_ready(struct chan *ch);

/* ---- op.c ---- */

/* Ends an operation that is off the wire. */
void op_end(struct chan *ch, struct chan_op *op, enum rdma_status status);
/* Calls done() of operations that ended without a completion; returns of how many. */
int op_run_ended(struct chan *ch);
/* Moves what waits on a failed lease to chan.ended. */
void op_cancel_queue(struct chan *ch, struct chan_lease *ls);
/* Polls the rail's completion queue until it is empty; returns how many completions it dispatched. */
int rail_poll(struct chan_rail *cr);

/* ---- repair.c ---- */

void ep_set_state(struct chan_ep *ep, enum ep_state state);
/* Begins to connect it to its lease's target; lease_connected() follows. */
void ep_connect(struct chan_ep *ep);
/* Begins to repair a channel in error whose lease can no longer use it: drained, reset, back in the pool; or
 * destroyed and made anew. */
void ep_fail(struct chan_ep *ep);
/* Is called when the last completion of one in error came. */
void ep_drained(struct chan_ep *ep);
/* Returns one that is well and not leased any more to the pool. */
void ep_to_pool(struct chan_ep *ep);
/* Is called when creation failed with r: makes it BROKEN, tried again every second. */
void ep_create_failed(struct chan_ep *ep, int r);
/* Creates at once what could not be created while the rail was not up, which need not wait for its second to
 * pass: a decline now would be one too many (protocol.md 4.7). */
void eps_retry(struct chan_rail *cr);
/* Gives back what is beyond the core's share of a device that has not room for all. */
void eps_follow_share(struct chan_rail *cr);
/* Resets one that is free, where what it was connected with has changed. */
void ep_follow_path(struct chan_ep *ep);
/* Replaces one whose queue pair is gone, as the device says. */
void ep_replace(struct chan_ep *ep);
/* Destroys it, or tries once more. */
void ep_step_destroy(struct chan_ep *ep);
/* Creates what has waited for a completion queue. */
void ep_create_again(struct chan_ep *ep);

/* ---- renew.c ---- */

/* Does what follows from the rail's context: it may have been given up, closed, or replaced. */
void rail_follow_context(struct chan_rail *cr);
/* Goes on with giving up: an endpoint may have come back. */
void rail_end_step(struct chan_rail *cr);
/* Says that a channel is wanted and none can be used, nor soon. */
bool rail_unusable(struct chan_rail *cr);
/* Returns how deep the completion queue has to be never to overrun. */
int rail_cq_depth(const struct chan_rail *cr);

#endif
