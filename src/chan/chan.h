/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA of one core: leases of channels, posting, dispatch of completions, recovery.
 *
 * A chan belongs to one core. All calls are made on this core, and done() is always called on this core, from
 * chan_poll() or the mailbox, never inside a call that starts an operation. A channel (for DC: an initiator)
 * is leased to one request, and so to one target, from its first post to its last completion (protocol.md
 * items 17-32).
 *
 * A push moves a buffer of the daemon to client memory (RDMA WRITE, for a GET). A pull moves client memory
 * to a buffer of the daemon (RDMA READ, for a PUT).
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

/* Largest number of descriptors of a chan: one for the completion queue of each transport of each rail. */
#define CHAN_FDS_MAX (RDMA_RAILS_MAX * RDMA_TRANSPORTS_MAX)

struct chan_params {
	struct rdma *rdma;
	const struct conf_rdma *conf;
	struct mailbox *mb;    /* mailbox of the core */
	struct timers *timers; /* timers of the core */
	int core, core_nr;     /* number of the core; number of cores, which share the channels */
	int numa_node;         /* NUMA node of the core; -1: unknown */
	int pieces_max;        /* limit of outstanding operations of one lease */
	int queue_max;         /* limit of waiting leases; chan_lease_get() returns -EAGAIN at the limit */
	/* Callbacks of the owner of the event loop, called on the core; NULL: there is no loop. watch_fd
	 * is called for the descriptor of each completion queue, at most CHAN_FDS_MAX. unwatch_fd is
	 * called for the descriptor of a queue that is removed because its device is re-opened; it returns
	 * true if no wait on the descriptor is pending, otherwise the owner calls chan_fd_unwatched()
	 * later. */
	void (*watch_fd)(void *cookie, int fd);
	bool (*unwatch_fd)(void *cookie, int fd);
	void *fd_cookie;
	/* region_map[i]: number that rdma_region_add() returned for region i of the core */
	const uint64_t *region_map;
	int region_nr;
};

/* Makes the channels of a core. Returns 0 or -ENOMEM. Without a rail every lease is declined. While the
 * device of a rail has failed, leases on this rail are declined, until the device is re-opened; an
 * operation on this rail ends when the hardware can no longer work on it. */
int chan_new(const struct chan_params *params, struct chan **ret_chan);
/* Frees the chan. No lease may be held, and no wait on a descriptor may be pending. */
void chan_free(struct chan *ch);

/* The reason for a decline (x-gantry-rdma-reason, access log, metric label). */
enum chan_reason {
	CHAN_OK,
	CHAN_DISABLED,  /* "disabled": rdma.devices is none */
	CHAN_NO_DEVICE, /* "no-device": the daemon has no RDMA device */
	CHAN_NO_RAIL,   /* "no-rail": no rail is up, or no rail has an address of the token's family */
	/* "unreachable": no rail reaches the target, or no rail was ready for it in time */
	CHAN_UNREACHABLE,
	CHAN_NEEDS_ROUTER, /* "needs-router": the target is reached only through an InfiniBand router
	                    * (protocol.md 2.8) */
	/* "token-family": no transport serves tokens of this family (protocol.md 2.4, 2.6; rc:, ofi) */
	CHAN_FAMILY,
	/* "no-channel": every channel is fenced or lost, or no address handle can be created */
	CHAN_NO_CHANNEL,
	CHAN_NOT_ALLOWED, /* "not-allowed": rdma.allow does not contain the token's address; set by req/ */
	/* "not-connected": the connection that the token names does not exist, or belongs to another client */
	CHAN_NOT_CONNECTED,
	/* "connection-busy": another request has the connection that the token names */
	CHAN_CONNECTION_BUSY,
	CHAN_REASON_NR
};
extern const char *const chan_reason_name[CHAN_REASON_NR];

/* Returns true if a rail serves tokens of this family; otherwise leases for these tokens are declined with
 * CHAN_FAMILY. Any thread may call this function. */
bool chan_serves(const struct chan *ch, enum token_kind kind);

/* A lease of a channel, embedded in the request and zeroed before use. */
struct chan_lease {
	void (*done)(struct chan_lease *ls); /* called after the lease was granted or refused, with
	                                      * `result` set */
	/* result of the lease: 0: granted; -EOPNOTSUPP: declined for `reason`; -EINVAL: the token is invalid
	 * (400; protocol.md 2.8: G=0 on Ethernet); -ECANCELED: cancelled */
	int result;
	enum chan_reason reason;
	int outstanding;         /* number of operations that were posted and have not completed */
	bool failed;             /* true: the channel is in error, so that nothing more is posted */
	bool flushed_writes;     /* true if a WRITE did not succeed: the error reply waits for the linger
	                          * time (item 30) */
	enum rdma_status status; /* status of the first completion that was not a success */
	/* number of the client (base/fair.h); the caller sets it before chan_lease_get() */
	uint8_t client;
	/* true: a target counts as reachable only if the kernel has a route to it (rdma_gid_allowed());
	 * the caller sets it before chan_lease_get() */
	bool must_route;
	struct list link; /* private to chan: link in a list of leases */
	_Alignas(8) unsigned char priv[256];
};

/*
 * Asks for a channel to the token's target. local: the local address of the HTTP connection, by which the
 * rail is chosen (item 26); may be NULL. *tok and *local must be valid until the lease is granted or refused.
 * If a rail does not reach the target, the next best rail is tried; the wait for each rail is limited by
 * RDMA_TARGET_WAIT_NS.
 *
 * Returns > 0: granted immediately. 0: done() is called later, because the target is being looked up or
 * connected, or because all channels are busy (the clients take turns, and the leases of one client are
 * granted in order). -EOPNOTSUPP: declined, see ls->reason; -EINVAL: the token is invalid on the daemon's
 * port (400); -EAGAIN: the queue is full.
 */
int chan_lease_get(struct chan *ch, struct chan_lease *ls, const struct token *tok,
		   const struct sockaddr *local);
/* Cancels a lease that was not granted yet; done() is not called. */
void chan_lease_cancel(struct chan *ch, struct chan_lease *ls);
/* Releases the lease. ls->outstanding must be 0. ls may be NULL, or a lease that was never granted. */
void chan_lease_put(struct chan *ch, struct chan_lease *ls);

/* Stops the work of a lease: the QP enters the error state, and outstanding operations end with
 * -ECANCELED. If a completion has not arrived after 100 ms, the QP is destroyed and its operations end.
 * After the last done() no work of the daemon accesses the client's memory. */
void chan_lease_fail(struct chan *ch, struct chan_lease *ls);

struct chan_op {
	void (*done)(struct chan_op *op);
	/* result of the operation: 0; -EIO: completed without success (see status); -ECANCELED: flushed */
	int result;
	enum rdma_status status;
	/* status reported by the device, an enum ibv_wc_status; 0: a success, or the device reported no
	 * status */
	int wc_status;
	uint32_t vendor_err; /* vendor's error code, reported by the device; 0: none */
	struct chan_lease *lease;
	uint32_t len_bytes;
	/* private to chan: link in the list of the lease's outstanding operations, in posting order */
	struct list link;
	uint32_t magic;
	bool is_write;
	bool posted; /* true from the post of the operation to its end */
	/* private to chan from post to end: sequence number of the work request */
	uint32_t seq;
	int region; /* region of the buffer, an index of chan_params.region_map */
	char *mem;
	uint64_t remote;
};

/* Posts a WRITE of one piece: len bytes from buf->mem + buf_off to byte `at` of the client's window.
 * Checks that at + len is within the window (item 18). The call cannot fail: on a lease in error the
 * operation ends later with -ECANCELED. */
void chan_push(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
	       uint32_t len, uint64_t at);
/* Posts a READ of one piece: len bytes from byte `at` of the client's window to buf->mem + buf_off. Checks
 * that at + len is within the window (item 18). The call cannot fail: on a lease in error the operation ends
 * later with -ECANCELED. */
void chan_pull(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
	       uint32_t len, uint64_t at);

/* Returns the number of leases that wait for a target, a channel, or the connection of a channel. */
int chan_waiting(const struct chan *ch);

/* Polls the completion queues, and ends the operations of the completions. Returns the number of
 * completions. */
int chan_poll(struct chan *ch);
/* Returns true if work requests are outstanding, so that polling is useful. */
bool chan_busy(const struct chan *ch);
/* Arms the descriptors of the completion queues: the next completion makes the descriptor of its queue
 * readable. The core polls once more after this call, before it sleeps. */
void chan_arm(struct chan *ch);
/* Handles a descriptor of watch_fd() that became readable. */
void chan_event(struct chan *ch, int fd);
/* Ends the removal of a descriptor, when no wait on it is pending any longer; called after unwatch_fd()
 * returned false. */
void chan_fd_unwatched(struct chan *ch, int fd);

#endif
