/*
 * What the files of chan/ share.  Everything here belongs to the core that owns the chan, but for what says
 * otherwise.
 *
 *   chan.c    making and freeing, descriptors, the bell by which other threads are heard
 *   lease.c   who has a channel and who waits for one
 *   op.c      posting, polling, completion dispatch
 *   repair.c  what becomes of an initiator whose lease failed
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
 *    ^ ^ <---- put ----------'                               |    |
 *    | |                                     all are in      |    | 100 ms, and completions are missing
 *    | '---- reset ------- RESETTING <-----------------------'    |
 *    |                         | does not succeed                 |
 *    |                         v                                  |
 *    |                     DESTROYING <---------------------------'
 *    |                         | destroyed: its operations end now
 *    |   created               v               fails
 *    '--------------------- CREATING -----------------> BROKEN
 *                              ^------ 1 s, or the rail is up --'
 *
 * When its device has died, FREE and FENCED go to DESTROYING too, and so does what was reset or created for
 * the old one.  While the rail has no completion queue, what was destroyed is BROKEN.  With
 * rdma.qp_reset_on_failure off, DRAINING and DESTROYING end in FENCED.
 */
enum dci_state {
	DCI_FREE,
	DCI_LEASED,
	DCI_DRAINING,
	DCI_RESETTING,
	DCI_DESTROYING,
	DCI_CREATING,
	DCI_BROKEN,
	DCI_FENCED,
	DCI_STATE_NR
};

enum job_kind { JOB_NONE, JOB_ERROR, JOB_RESET, JOB_DESTROY, JOB_CREATE };

struct chan_dci {
	struct chan_rail *cr;
	struct rdma_dci *qp; /* NULL while there is none */
	uint32_t nr;
	enum dci_state state;
	struct chan_lease *lease; /* until its last operation ended */
	struct list posted;       /* chan_op.link, in posting order */
	int outstanding, reads;
	uint32_t
		seq; /* of the next work request; never starts again, so a stale completion matches nothing */
	unsigned generation; /* of the rail, when this queue pair was made */
	bool lost;           /* a completion stayed away */
	bool stuck;          /* the rail was told that destroying hangs */
	bool awaits_rail;    /* BROKEN: it could not be created because the rail was not up */
	bool idle;           /* the job's: nothing was outstanding when it was posted */
	bool gone; /* DESTROYING: nothing of it is left but what the hardware may still do: its operations end
		      when its context was closed */
	struct timer timer; /* DRAINING: the watch; DESTROYING: the patience; BROKEN: the next attempt */
	struct list free;
	/* The job on its way through the recovery helper; result and qp
	 * are the helper's until it comes back. */
	enum job_kind kind;
	int job_result;
	struct rdma_job job;
	struct msg back;
};

/*
 * A rail's completion queue and the initiators on it, when the rail's context is given up and another comes
 * (rdma/ep.h, "contexts"):
 *
 *     ON --given up--> ENDING --all is given back--> FREEING --> NONE --another context--> MAKING --> ON
 *                                                               ^      fails, again in 1 s    |
 *                                                               `-----------------------------'
 *
 * ENDING: until no initiator is left on the queue, and nobody waits on its descriptor.
 */
enum cq_state { CQ_NONE, CQ_MAKING, CQ_ON, CQ_ENDING, CQ_FREEING };

struct chan_rail {
	struct chan *ch;
	struct rdma_rail *rail;
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
	struct rdma_dci_limits limits;
	struct chan_dci *dci;
	int dci_nr, lease_max; /* spares beyond lease_max cover for those being repaired */
	int leased;
	int unusable; /* BROKEN or FENCED */
	struct list free;
	struct fair waiting; /* leases with a handle, without a channel */
	int outstanding;
	bool armed, look; /* look: poll even with nothing outstanding */
	bool said;        /* the log knows that channels cannot be created */
	unsigned generation;
};

/* Waits for an address handle.  Not part of the lease: a cancelled lease is gone at once, the helper's answer
 * comes when it comes. */
struct chan_wait {
	struct rdma_ah_wait ah;
	struct chan *ch;
	struct chan_rail *cr;
	struct chan_lease *lease; /* NULL: cancelled */
	struct msg back;
	struct list link; /* free */
};

/* Heap, and outlives the chan while it is in the core's mailbox. */
struct chan_bell {
	struct msg msg;
	_Atomic bool rung;
	struct chan *ch; /* NULL: freed meanwhile */
	bool left;       /* the chan was left alone: stays rung for good, so that nobody rings it */
};

struct chan {
	struct rdma *rdma;
	struct mailbox *mb;
	struct timers *timers;
	enum { CHAN_MODE_NONE, CHAN_MODE_NO_DEVICE, CHAN_MODE_ON } mode;
	bool reset_on_failure;
	int poll_batch, pieces_max, queue_max;
	int *region_map;
	int region_nr;
	struct chan_rail *rail;
	int rail_nr;
	int core;
	void (*watch_fd)(void *cookie, int fd);
	bool (*unwatch_fd)(void *cookie, int fd);
	void *fd_cookie;

	int free_patience_ms; /* so long chan_free() waits for the helper */

	int leased, waiting; /* waiting: for a handle or a channel */
	struct list ready;   /* leases whose done() is due */
	/* operations whose done() is due; they never reached the wire, or came back otherwise */
	struct list ended;
	int outstanding; /* work requests */
	struct chan_wait *waits;
	struct list waits_free;
	int waits_out, jobs_out;
	struct delay delay;
	uint64_t next_poll_ns;

	/* From other threads: what has come back, and that rails changed.  The bell brings the core here. */
	struct mailbox inbox;
	struct chan_bell *bell;
	_Atomic bool rails_changed;
	_Atomic int answers_due; /* helpers that will still touch us; taken back as the last thing they do */
	struct rdma_watch watch;

	struct {
		_Atomic uint64_t leases, waits, declines[CHAN_REASON_NR];
		_Atomic int leased, waiting, recovering;
	} stats;
};

enum lease_state { LEASE_NONE, LEASE_AH, LEASE_QUEUED, LEASE_READY, LEASE_DECLINED, LEASE_HELD };

/* chan_lease.priv */
struct lease {
	enum lease_state state;
	struct chan_rail *cr;
	struct chan_dci *dci; /* NULL once its work is over */
	struct rdma_ah *ah;
	struct chan_wait *wait;
	struct list queue; /* operations not posted yet: depth, or READs, are used up */
	uint64_t addr, size;
	uint32_t rkey, dctn;
};
_Static_assert(sizeof(struct lease) <= sizeof(((struct chan_lease *)0)->priv), "a lease fits");

/* Is there a queue to be polled? */
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

/* chan.c: the core's thread will come to chan_run().  Any thread. */
void chan_ring(struct chan *ch);
/* A helper's last word: fn(m) runs on the core.  Was announced with answers_due. */
void chan_answer(struct chan *ch, struct msg *m, void (*fn)(struct msg *));
int chan_run(struct chan *ch);

/* lease.c */
void lease_grant_waiting(struct chan_rail *cr);
void lease_decline_waiting(struct chan_rail *cr, enum chan_reason reason);
/* Takes it off its lease, whose work is over. */
void lease_detach(struct chan_dci *dci);
/* The lease is in error: nothing is posted any more, and what waits for a place ends. */
void lease_error(struct chan *ch, struct chan_lease *ls);
void on_ah(struct rdma_ah_wait *w); /* on the helper */
int lease_run_ready(struct chan *ch);

/* op.c */
void op_end(struct chan *ch, struct chan_op *op, enum rdma_status status);
int op_run_ended(struct chan *ch);
/* Moves what waits on a failed lease to chan.ended. */
void op_cancel_queue(struct chan *ch, struct chan_lease *ls);

/* repair.c */
void dci_set_state(struct chan_dci *dci, enum dci_state state);
/* A channel in error whose lease can no longer use it: drained, reset, back in the pool; or destroyed and
 * made anew. */
void dci_fail(struct chan_dci *dci);
/* Its last completion came. */
void dci_drained(struct chan_dci *dci);
/* Not leased any more and well. */
void dci_to_pool(struct chan_dci *dci);
/* It could not be created (r: -errno): BROKEN, tried again every second. */
void dci_unborn(struct chan_dci *dci, int r);
/* What could not be created while the rail was not up need not wait for its second to pass: a decline now
 * would be one too many (protocol.md 4.7). */
void dcis_rail_is_up(struct chan_rail *cr);
/* The device says its queue pairs are gone. */
void dci_replace(struct chan_dci *dci);
/* Destroyed now; or once more, when that has not worked. */
void dci_step_destroy(struct chan_dci *dci);
/* There is a completion queue again. */
void dci_revive(struct chan_dci *dci);

/* renew.c */
/* Its context may have been given up, closed, or replaced. */
void rail_look(struct chan_rail *cr);
/* Goes on with giving up: an initiator may have come back. */
void rail_end_step(struct chan_rail *cr);
/* A channel is wanted and none can be used: could there be one soon? */
bool rail_is_hopeless(struct chan_rail *cr);
/* So deep that it never overruns. */
int rail_cq_depth(const struct chan_rail *cr);

#endif
