/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One core's RDMA endpoint: leases of channels, posting, completion dispatch, recovery.
 *
 * A chan belongs to one core; every call is made there and every done() runs there (from chan_poll() or the
 * mailbox), never from inside a start call.  A channel (an endpoint: DC's initiator) is leased to one request,
 * hence one target, from first post to last completion (protocol.md items 17-32).
 *
 * Push: our buffer to client memory (RDMA WRITE, serves a GET).  Pull: client memory to our buffer (RDMA READ,
 * a PUT).
 */
#ifndef GANTRY_CHAN_CHAN_H
#define GANTRY_CHAN_CHAN_H

#include "base/buf.h"
#include "base/fair.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "rdma/rdma.h"
#include "token/token.h"

struct chan;

/* A rail has a completion queue for each of its transports. */
#define CHAN_FDS_MAX (RDMA_RAILS_MAX * RDMA_TRANSPORTS_MAX)

struct chan_params {
	struct rdma *rdma;
	const struct conf_rdma *conf;
	struct mailbox *mb;    /* the core's */
	struct timers *timers; /* the core's */
	int core, core_nr;     /* this core's share of the channels */
	int numa_node;         /* of the core; -1: unknown */
	int pieces_max;        /* most operations one lease has outstanding */
	int queue_max;         /* waiting leases; one more is -EAGAIN */
	/* Who waits on the completion queues' descriptors, at most CHAN_FDS_MAX: told of each there is,
	 * and of each that goes because its device is opened anew.  unwatch_fd: true when nobody waits on
	 * it any more, else chan_fd_unwatched() follows.  On the core.  NULL: nobody waits. */
	void (*watch_fd)(void *cookie, int fd);
	bool (*unwatch_fd)(void *cookie, int fd);
	void *fd_cookie;
	/* the core's region i is region region_map[i] of rdma_region_add() */
	const uint64_t *region_map;
	int region_nr;
};

/* Makes a core's channels.  0 or -errno.  With no rail it still works: every lease is declined.  A rail whose
 * device dies is declined until the device was opened anew; its operations end when the hardware can do
 * nothing more for them. */
int chan_new(const struct chan_params *params, struct chan **ret_chan);
/* Frees it.  No lease may be out, and nobody waits on a descriptor. */
void chan_free(struct chan *ch);

/* Why RDMA is not used: the reason of a decline (x-gantry-rdma-reason, access log, metric label). */
enum chan_reason {
	CHAN_OK,
	CHAN_DISABLED,     /* "disabled": rdma.devices is none */
	CHAN_NO_DEVICE,    /* "no-device" */
	CHAN_NO_RAIL,      /* "no-rail": none is up, or none has an address of that family */
	CHAN_UNREACHABLE,  /* "unreachable": no rail leads there, or none in time */
	CHAN_NEEDS_ROUTER, /* "needs-router": InfiniBand, GID without LID (2.8) */
	CHAN_FAMILY,       /* "token-family": 2.4, 2.6, rc:, ofi */
	CHAN_NO_CHANNEL,   /* "no-channel": every channel is fenced or lost, or no memory for a way there */
	CHAN_NOT_ALLOWED,  /* "not-allowed": the token's address is outside rdma.allow; req/'s to find out */
	CHAN_REASON_NR
};
extern const char *const chan_reason_name[CHAN_REASON_NR];

/* Says whether tokens of this family are served here, by whatever rail.  No: each of them is declined with
 * CHAN_FAMILY.  Any thread. */
bool chan_serves(const struct chan *ch, enum token_kind kind);

/* Embedded by the request; zeroed before use. */
struct chan_lease {
	void (*done)(struct chan_lease *ls); /* granted or not: look at result */
	/* 0, -EOPNOTSUPP with the reason: decline; -EINVAL: 400 (2.8: G=0 on Ethernet); -ECANCELED */
	int result;
	enum chan_reason reason;
	int outstanding;     /* operations posted and not completed */
	bool failed;         /* the channel is in error; no more posts */
	bool flushed_writes; /* WRITEs did not all complete well: linger before the error reply (item 30) */
	enum rdma_status status; /* of the first bad completion */
	uint8_t client;   /* for whom (base/fair.h); set before chan_lease_get(), which leaves it alone */
	bool must_route;  /* only where the kernel has a route to (rdma_gid_allowed()); the same */
	struct list link; /* chan's */
	_Alignas(8) unsigned char priv[256];
};

/*
 * Asks for a channel towards the token's target.  local: the address on which the HTTP connection came in
 * (rail choice, item 26); may be NULL.  *tok and *local stay until the lease was granted or not.  A rail that does not lead there is
 * followed by the next best one; none is waited for longer than RDMA_TARGET_WAIT_NS. > 0: granted at once; 0: done() comes later (the target is being found or
 * connected, or all channels are busy: clients take turns, each one's leases are in order); < 0: -EOPNOTSUPP
 * (decline, ls->reason), -EINVAL (the token cannot work on our port: 400), -EAGAIN (the queue is full).
 */
int chan_lease_get(struct chan *ch, struct chan_lease *ls, const struct token *tok,
		   const struct sockaddr *local);
/* Stops waiting; done() will not run.  Only while it has not been granted. */
void chan_lease_cancel(struct chan *ch, struct chan_lease *ls);
/* Gives it back.  outstanding must be 0.  NULL-safe and fine on one never granted. */
void chan_lease_put(struct chan *ch, struct chan_lease *ls);

/* Cancels a lease: the QP goes to error, what is outstanding comes back with -ECANCELED.  If a completion
 * stays away 100 ms the QP is destroyed and its operations end then: whatever happens, after the last
 * done() nothing of ours touches the client. */
void chan_lease_fail(struct chan *ch, struct chan_lease *ls);

struct chan_op {
	void (*done)(struct chan_op *op);
	int result; /* 0, -EIO (bad completion: status), -ECANCELED (flushed) */
	enum rdma_status status;
	int wc_status;       /* what the device said: enum ibv_wc_status; 0 also where it said nothing */
	uint32_t vendor_err; /* beside it */
	struct chan_lease *lease;
	uint32_t len_bytes;
	struct list link; /* chan's: the lease's outstanding operations, in posting order */
	uint32_t magic;
	bool is_write;
	bool posted; /* handed to chan and not done yet */
	/* chan's own, while posted */
	uint32_t seq;
	int region; /* of its buffer: an index of region_map */
	char *mem;
	uint64_t remote;
};

/* Posts one piece: len bytes between buf->mem + buf_off and window byte `at`.  Checks at + len <= window
 * (item 18).  Cannot fail: a lease that is already in error completes the operation with -ECANCELED,
 * later. */
void chan_push(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
	       uint32_t len, uint64_t at);
void chan_pull(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
	       uint32_t len, uint64_t at);

/* Returns how many leases wait for a target, a channel or its connection. */
int chan_waiting(const struct chan *ch);

/* Reaps completion queues; returns how many completions it dispatched. */
int chan_poll(struct chan *ch);
/* Tells whether work requests are outstanding, so that polling is worth it. */
bool chan_busy(const struct chan *ch);
/* Makes the next completion make its queue's descriptor readable: after this poll once more, then sleep. */
void chan_arm(struct chan *ch);
/* Is called when a watched descriptor became readable. */
void chan_event(struct chan *ch, int fd);
/* Is called when nobody waits on it any more, as unwatch_fd() asked. */
void chan_fd_unwatched(struct chan *ch, int fd);

#endif
