/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA of one core: leases of channels, posting, completion dispatch, recovery.
 *
 * A chan belongs to one core; all calls are made and every done() runs on this core (from chan_poll() or the
 * mailbox), never inside a start call. A channel (for DC: an initiator) is leased to one request, and so to
 * one target, from its first post to its last completion (protocol.md items 17-32).
 *
 * A push moves a buffer of the daemon to client memory (RDMA WRITE, for a GET). A pull moves client memory to
 * a buffer of the daemon (RDMA READ, for a PUT).
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
	struct mailbox *mb;    /* mailbox of the core */
	struct timers *timers; /* timers of the core */
	int core, core_nr;     /* the core and the number of cores, which share the channels */
	int numa_node;         /* NUMA node of the core; -1: unknown */
	int pieces_max;        /* limit of outstanding operations of one lease */
	int queue_max;         /* limit of waiting leases; a further request gets -EAGAIN */
	/* Callbacks of the owner of the event loop. watch_fd is called for each descriptor of a completion
	 * queue, at most CHAN_FDS_MAX; unwatch_fd for each descriptor that is removed because its device is
	 * re-opened: true if no wait on the descriptor is pending, otherwise chan_fd_unwatched() follows.
	 * Called on the core. NULL: no loop. */
	void (*watch_fd)(void *cookie, int fd);
	bool (*unwatch_fd)(void *cookie, int fd);
	void *fd_cookie;
	/* region i of the core is region region_map[i] of rdma_region_add() */
	const uint64_t *region_map;
	int region_nr;
};

/* Makes a core's channels. 0 or -errno. Without a rail every lease is declined. Leases on a rail with a
 * failed device are declined until the device is re-opened; operations on this rail end when the hardware can
 * no longer work on them. */
int chan_new(const struct chan_params *params, struct chan **ret_chan);
/* Frees the chan. No lease may be held, and no wait on a descriptor may be pending. */
void chan_free(struct chan *ch);

/* The reason for a decline (x-gantry-rdma-reason, access log, metric label). */
enum chan_reason {
	CHAN_OK,
	CHAN_DISABLED,     /* "disabled": rdma.devices is none */
	CHAN_NO_DEVICE,    /* "no-device" */
	CHAN_NO_RAIL,      /* "no-rail": no rail is up, or no rail has an address of that family */
	CHAN_UNREACHABLE,  /* "unreachable": no rail reaches the target, or none was ready in time */
	CHAN_NEEDS_ROUTER, /* "needs-router": InfiniBand, GID without LID (2.8) */
	CHAN_FAMILY,       /* "token-family": 2.4, 2.6, rc:, ofi */
	/* "no-channel": every channel is fenced or lost, or no memory for an address handle */
	CHAN_NO_CHANNEL,
	CHAN_NOT_ALLOWED, /* "not-allowed": the token's address is outside rdma.allow; set by req/ */
	CHAN_REASON_NR
};
extern const char *const chan_reason_name[CHAN_REASON_NR];

/* Returns true if any rail serves tokens of this family. False: each such token is declined with CHAN_FAMILY.
 * Any thread. */
bool chan_serves(const struct chan *ch, enum token_kind kind);

/* Embedded by the request; zeroed before use. */
struct chan_lease {
	void (*done)(struct chan_lease *ls); /* called when the lease was granted or refused: see result */
	/* 0, -EOPNOTSUPP with the reason: decline; -EINVAL: 400 (2.8: G=0 on Ethernet); -ECANCELED */
	int result;
	enum chan_reason reason;
	int outstanding;         /* operations posted and not completed */
	bool failed;             /* the channel is in error; no more posts */
	bool flushed_writes;     /* not all WRITEs succeeded: linger before the error reply (item 30) */
	enum rdma_status status; /* status of the first bad completion */
	/* client number (base/fair.h); set before chan_lease_get(), which does not change it */
	uint8_t client;
	/* true: the kernel must have a route to the target (rdma_gid_allowed()); set before
	 * chan_lease_get() */
	bool must_route;
	struct list link; /* private to chan */
	_Alignas(8) unsigned char priv[256];
};

/*
 * Asks for a channel towards the token's target. local: the local address of the HTTP connection (rail
 * choice, item 26); may be NULL. *tok and *local stay valid until the lease was granted or refused. If a rail
 * does not reach the target the next best rail is tried, and each rail is waited for at most
 * RDMA_TARGET_WAIT_NS. > 0: granted immediately; 0: done() follows (the target is being found or connected,
 * or all channels are busy: clients take turns, the leases of one client are in order); < 0: -EOPNOTSUPP
 * (decline, ls->reason), -EINVAL (the token is invalid for the daemon's port: 400), -EAGAIN (the queue is
 * full).
 */
int chan_lease_get(struct chan *ch, struct chan_lease *ls, const struct token *tok,
		   const struct sockaddr *local);
/* Stops the wait for a lease that is not granted yet; done() does not run. */
void chan_lease_cancel(struct chan *ch, struct chan_lease *ls);
/* Releases the lease. ls->outstanding must be 0. NULL and a lease that was never granted are allowed. */
void chan_lease_put(struct chan *ch, struct chan_lease *ls);

/* Cancels a lease: the QP enters the error state, outstanding operations return with -ECANCELED. If a
 * completion is missing after 100 ms, the QP is destroyed and its operations end. After the last done() no
 * work of the daemon accesses the client's memory. */
void chan_lease_fail(struct chan *ch, struct chan_lease *ls);

struct chan_op {
	void (*done)(struct chan_op *op);
	int result; /* 0, -EIO (bad completion: status), -ECANCELED (flushed) */
	enum rdma_status status;
	int wc_status;       /* status of the device: enum ibv_wc_status; 0 also without a status */
	uint32_t vendor_err; /* the device's second status value */
	struct chan_lease *lease;
	uint32_t len_bytes;
	/* private to chan: link of the lease's outstanding operations, in posting order */
	struct list link;
	uint32_t magic;
	bool is_write;
	bool posted; /* the operation was posted and has not ended */
	/* private to chan while posted */
	uint32_t seq;
	int region; /* region of the buffer: an index of region_map */
	char *mem;
	uint64_t remote;
};

/* Posts a WRITE of one piece: len bytes from buf->mem + buf_off to window byte `at`. Checks at + len <=
 * window (item 18). Cannot fail: on a lease in error the operation completes later with -ECANCELED. */
void chan_push(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
	       uint32_t len, uint64_t at);
/* Posts a READ of one piece: len bytes from window byte `at` to buf->mem + buf_off. Otherwise as
 * chan_push(). */
void chan_pull(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
	       uint32_t len, uint64_t at);

/* Returns the number of leases that wait for a target, a channel or its connection. */
int chan_waiting(const struct chan *ch);

/* Polls the completion queues; returns the number of completions dispatched. */
int chan_poll(struct chan *ch);
/* Returns true if work requests are outstanding, so that polling is useful. */
bool chan_busy(const struct chan *ch);
/* Arms the descriptors: the next completion makes its queue's descriptor readable. The core polls once more
 * after this call, then sleeps. */
void chan_arm(struct chan *ch);
/* Is called when a watched descriptor became readable. */
void chan_event(struct chan *ch, int fd);
/* Is called when no wait on the descriptor is pending any longer, as unwatch_fd() requested. */
void chan_fd_unwatched(struct chan *ch, int fd);

#endif
