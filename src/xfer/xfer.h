/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces in flight between the store and the wire: one pipeline with two wire ends, a channel or an HTTP
 * body.
 *
 *   GET by token:  disk read -> CRC -> RDMA WRITE -> buffer free           xfer_push()
 *   PUT by token:  RDMA READ -> CRC, digests -> disk write -> buffer free  xfer_pull()
 *   GET over HTTP: disk read -> CRC -> copied out by the reader            xfer_serve(), xfer_take()
 *   PUT over HTTP: copied in by the writer -> disk write                   xfer_accept(), xfer_feed(),
 *                                                                          xfer_feed_end()
 *   copy:          disk read -> CRC -> disk write -> buffer free           xfer_copy()
 *
 * A piece is one pool buffer, or for a large read a run of adjacent buffers; the number of pieces in flight
 * per transfer is limited, so memory per request is limited for any object size. All data belongs to the
 * core's thread. done() and wake() only note an event: they may run inside any call of this header, and must
 * not call functions of this header.
 *
 * Resources are acquired in one order, so that no deadlock is possible: ticket -> channel lease -> pieces. A
 * ticket guarantees one buffer; further buffers are taken from the surplus without a wait. pool.c has the
 * invariant.
 */
#ifndef GANTRY_XFER_XFER_H
#define GANTRY_XFER_XFER_H

#include "base/buf.h"
#include "base/fair.h"
#include "base/list.h"
#include "chan/chan.h"
#include "conf/conf.h"
#include "store/store.h"
#include "xfer/digest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define XFER_PIECES_MAX CONF_PIECES_MAX
#define XFER_CLIENTS FAIR_CLIENTS

/* ---- a core's buffers, shared out ---- */

/* Counts of a client. Clients whose addresses lead to the same number share these counts. */
struct xfer_client {
	int held;   /* number of buffers of main_cls, plus one for each ticket without a buffer */
	int waits;  /* number of transfers of the client on either list */
	int queued; /* number of transfers of the client without a ticket */
};

/* An entry for a slow client; if several clients have the same entry, the latest of them. */
#define XFER_SLOW_NR 1024
struct xfer_slow {
	uint32_t id; /* id of the client, from xfer_client_of() */
	uint32_t until_look;
};

/* A lane: one of several disks. Requests that wait for a disk that hangs have at most half of the buffers. */
#define XFER_LANES 64
struct xfer_lane {
	/* number of tickets without a buffer, of all buffers, and of transfers that wait for a ticket and are
	 * not held back */
	int held;
	int shut;         /* number of transfers held back */
	struct list back; /* transfers that are held back, in order */
};

struct xfer_pool {
	struct bufpool *bp;
	enum buf_class main_cls; /* class of the buffer that a ticket guarantees */
	int tickets, tickets_out;
	int bare; /* number of tickets without a buffer of main_cls, for which as many buffers are reserved */
	int queue_max, queued;
	/* transfers without a ticket: clients take turns, transfers of one client in order */
	struct fair waiting;
	struct list hungry;                      /* transfers that can use another buffer; they get buffers in
	                                          * turn */
	int waits;                               /* number of transfers on either list */
	int pieces_max;                          /* largest number of pieces of a transfer */
	struct list holders;                     /* transfers with a ticket, the oldest first */
	uint64_t looked_ns;                      /* time of the last xfer_pool_revoke() */
	uint32_t looks;                          /* number of calls of xfer_pool_revoke() */
	struct xfer_client client[XFER_CLIENTS]; /* state of each client, by xfer.client */
	/* state of each lane, by xfer.lane; index 0: transfers between two lanes */
	struct xfer_lane lane[XFER_LANES + 1];
	int shut;                            /* number of transfers held back */
	struct store_spares spares;          /* functions by which the store borrows idle buffers */
	struct xfer_slow slow[XFER_SLOW_NR]; /* clients that were slow, by client_id % XFER_SLOW_NR */
};

void xfer_pool_init(struct xfer_pool *xp, struct bufpool *bp, enum buf_class main_cls, int pieces_max,
		    int queue_max);
/* Returns a number for the client at an address, without the port; for IPv6 the number is that of the /64, in
 * which a client may use any address. Without the key a client cannot choose or predict collisions. */
uint32_t xfer_client_of(const struct sockaddr *peer, const uint64_t key[2]);
/* Returns a number for a client that has a name. */
uint32_t xfer_client_named(const char *name, const uint64_t key[2]);

/* ---- clients that are too slow (pace.c) ---- */

struct xfer;
struct xfer_pool;

/* The minimum speed of a client while others wait. */
struct xfer_pace {
	uint64_t rate; /* minimum rate in bytes a second; 0: no minimum */
	uint64_t grace_ns;
};

/* The start of a client's measurement, and its bytes moved until then. since_ns 0: not measured, because the
 * transfer does not wait for the client. */
struct pace_mark {
	uint64_t since_ns, bytes;
};
#define PACE_UNKNOWN UINT64_MAX

#define PACE_ANEW UINT64_MAX

/* Returns the part of the time since the last check that does not count, because the check is late;
 * PACE_ANEW: the last check is too old, and the measurement restarts. */
uint64_t pace_skip(uint64_t looked_ns, uint64_t now_ns);
/* Checks a client that has moved `bytes` in all; owes: the transfer waits for the client. */
void pace_look(struct pace_mark *m, uint64_t bytes, bool owes, uint64_t skip_ns, uint64_t now_ns);
/* Returns the bytes a second since the mark; PACE_UNKNOWN: no mark. */
uint64_t pace_rate(const struct pace_mark *m, uint64_t bytes, uint64_t now_ns);
/* Returns true if the client was measured for the whole grace and is too slow. */
bool pace_is_slow(const struct pace_mark *m, uint64_t bytes, const struct xfer_pace *pace, uint64_t now_ns);
/* Restarts the measurement after a grace in which the client was fast enough. */
void pace_forgive(struct pace_mark *m, uint64_t bytes, const struct xfer_pace *pace, uint64_t now_ns);

/* Counts candidates by the order of magnitude of their rate, so that the slowest are found in two passes. */
struct pace_count {
	int of[66];
};
void pace_count_add(struct pace_count *pc, uint64_t rate);
/* Returns true if a candidate with that rate is among the *nr slowest; if so, decrements *nr and the
 * count. */
bool pace_count_take(struct pace_count *pc, uint64_t rate, int *nr);

enum xfer_revoke {
	XFER_TOO_SLOW, /* the transfer is slower than the pace while another request waits */
	/* the transfer is the slowest of the client with most buffers, while a client with less than its
	 * share waits */
	XFER_OVER_SHARE
};

/* Returns true if that client lost a ticket for being slow within the last ten seconds of waiting. */
bool xfer_was_slow(const struct xfer_pool *xp, uint32_t client_id);
struct xfer_pace_ops {
	/* Returns the number of bytes of a SERVE that were taken from the transfer and have not reached the
	 * client. */
	uint64_t (*unsent)(struct xfer *x);
	/* Returns true if a transfer that waits for a ticket has little to put into a buffer: most of its
	 * body has not arrived. */
	bool (*is_late)(struct xfer *x);
	/* Asks for the return of the ticket. Only notes the request, like done(). */
	void (*revoke)(struct xfer *x, enum xfer_revoke why);
};
/* Checks the holders of tickets, and requests tickets back. Called every XFER_LOOK_NS while a transfer waits
 * for a ticket. Returns the number of requested tickets. */
int xfer_pool_revoke(struct xfer_pool *xp, const struct xfer_pace *pace, const struct xfer_pace_ops *ops,
		     uint64_t now_ns);
#define XFER_LOOK_NS (100ull * 1000 * 1000)

/* ---- one transfer ---- */

enum piece_state {
	PIECE_IDLE,
	PIECE_READING,
	PIECE_READY,
	PIECE_WIRE,
	PIECE_WRITING,
	PIECE_FILLING,
	PIECE_KEPT
};

struct piece {
	struct xfer *x;
	enum piece_state state;
	struct buf *buf;
	uint64_t at;   /* offset in the transfer of the piece's first byte */
	uint32_t skew; /* offset in the buffer of the piece's first byte */
	uint32_t len;  /* number of bytes of the transfer in this piece */
	/* COPY: carry: bytes taken from the previous piece; carries_on: all bytes of the piece go to the next
	 * one */
	uint32_t carry;
	bool carries_on;
	union {
		struct store_read rd;
		struct store_write wr;
	};
	struct chan_op cop;
};

enum xfer_mode { XFER_NONE, XFER_PUSH, XFER_PULL, XFER_SERVE, XFER_ACCEPT, XFER_COPY };

/* A transfer, embedded by the request, which calls xfer_idle() once, and xfer_init() for each transfer. */
struct xfer {
	struct xfer_pool *pool;
	struct store_port *store;
	struct chan *chan;
	/* Called when the transfer has ended, without pieces in flight: `result` has the outcome. Also called
	 * when a ticket was granted. */
	void (*done)(struct xfer *x);
	/* Called in SERVE when bytes are ready to be taken; in ACCEPT when a buffer is ready to be fed; in
	 * PUSH and PULL when the transfer has failed and only disk operations are in flight. */
	void (*wake)(struct xfer *x);

	enum xfer_mode mode;
	bool have_ticket, is_waiting;
	bool revoked; /* xfer_pool_revoke() has requested the ticket, which is not returned yet */
	/* lane that holds this waiting transfer back, because the lane has half of the buffers; NULL: not
	 * held back */
	struct xfer_lane *back;
	uint8_t lane[2];    /* lanes of source and destination of the bytes, each + 1; 0: none */
	bool was_slow;      /* the client was slow when the wait began */
	bool is_late;       /* the body was late at the last check */
	uint8_t client;     /* index of the client: client_id % XFER_CLIENTS */
	uint32_t client_id; /* id of the client, from xfer_client_of() */
	struct list link;   /* private to the pool: link of waiting or hungry transfers */
	struct list holder; /* private to the pool: link of transfers with a ticket */
	struct pace_mark mark;
	uint64_t reached; /* bytes received from the client, or delivered to it, at the last check */

	struct store_obj *obj;
	struct store_put *put;
	struct chan_lease *lease;
	struct digest *digest; /* PULL, ACCEPT, COPY: checksums over all bytes in order */

	uint64_t base;        /* offset in the object of the first byte of the transfer */
	uint64_t len;         /* number of bytes to move; UINT64_MAX: until xfer_feed_end() */
	uint64_t next;        /* number of bytes of the transfer that have a piece so far */
	uint64_t in_order;    /* PULL: bytes digested and written in order; SERVE: bytes taken */
	uint64_t moved;       /* number of bytes that reached the destination */
	uint64_t progress_ns; /* time of the last progress */
	/* wire_ns: total time with outstanding work requests; wire_since_ns: start of the current time with
	 * outstanding work requests (0: there are none) */
	uint64_t wire_ns, wire_since_ns;
	uint64_t first_ns; /* time at which the first bytes of a GET reached the client; 0: not yet */
	/* number of bytes posted and not completed, and their limit; wire_max 0: no limit */
	uint64_t wire_bytes, wire_max;
	int active;        /* number of pieces that are not idle */
	int inflight;      /* number of pieces that the store or the NIC uses */
	int bufs;          /* number of buffers of the transfer; a run counts as its buffers */
	int main_bufs;     /* number of buffers of main_cls of the transfer */
	int result;        /* first error of the transfer */
	bool ended;        /* done() was called or is not needed */
	bool fed_all;      /* ACCEPT: the body has ended */
	bool wire_started; /* a work request was posted, or bytes were sent */

	struct piece *filling;    /* ACCEPT: the piece that is being filled */
	struct piece *last;       /* PULL, ACCEPT, COPY: the last piece, kept for the commit */
	uint32_t carry;           /* COPY: number of bytes of a granule that a later piece completes */
	unsigned char *carry_buf; /* COPY: memory of the `carry` bytes, after they are read */
	struct piece pieces[XFER_PIECES_MAX];
};

/* Initializes memory of a former request as a transfer of `client` that was not begun, with fn as done and as
 * wake. Does not change the pieces. */
void xfer_idle(struct xfer *x, uint32_t client, void (*fn)(struct xfer *x));
/* Sets the lanes of the transfer's source and destination (store_lane(); -1: none), before xfer_init(). */
void xfer_set_lanes(struct xfer *x, int a, int b);
/* Assigns the transfer to another client, before xfer_init(). */
void xfer_set_client(struct xfer *x, uint32_t client);
void xfer_init(struct xfer *x, struct xfer_pool *pool, struct store_port *store, struct chan *chan);
/* Returns pieces and ticket of the transfer to the pool. No piece may be in flight. A transfer that was never
 * started is allowed. */
void xfer_fini(struct xfer *x);

/* Asks for a ticket. Returns > 0 if it is granted; 0 if done() follows; -EAGAIN if the queue is full. */
int xfer_ticket(struct xfer *x);

/* Starts a PUSH with a ticket and a granted lease; done() always follows. */
void xfer_push(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len, struct chan_lease *lease,
	       uint64_t wire_max);
/* Starts a PULL with a ticket and a granted lease; done() always follows. */
void xfer_pull(struct xfer *x, struct store_put *put, uint64_t len, struct chan_lease *lease,
	       struct digest *dg, uint64_t wire_max);
/* Starts SERVE: done() follows only after xfer_cancel(); otherwise the transfer ends when all bytes were
 * taken. */
void xfer_serve(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len);
/* Copies up to max bytes at pos to out; each byte is copied once, in ascending order. Returns the number of
 * bytes; 0 if wake() follows; or the -errno with which the transfer has ended. */
ssize_t xfer_take(struct xfer *x, uint64_t pos, void *out, size_t max);
bool xfer_has_bytes(const struct xfer *x);
/* Returns true if the transfer waits for the client: for bytes of the body, or until the client takes
 * bytes. */
bool xfer_client_owes(const struct xfer *x);
/* Returns true if the transfer waits for the store, without an outstanding work request. */
bool xfer_waits_for_store(const struct xfer *x);
void xfer_accept(struct xfer *x, struct store_put *put, struct digest *dg);
/* Takes bytes of the body, and returns their number. If it is less than len, wake() follows, or the transfer
 * has failed (see result). */
size_t xfer_feed(struct xfer *x, const void *data, size_t len);
/* Ends the body; done() follows when all but the last piece is on the disk. */
void xfer_feed_end(struct xfer *x);

/* Copies bytes of an opened object to a put, at any alignment; done() follows when all but the last piece is
 * on the disk, possibly in the call. */
void xfer_copy(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len, struct store_put *put,
	       struct digest *dg);

/* Stops the transfer as soon as possible; work requests are flushed, and an earlier error remains the result.
 * Returns 0 if done() follows when no piece is in flight; > 0 if no piece was in flight, and done() does not
 * follow. */
int xfer_cancel(struct xfer *x, int err);

/* Returns the total time, up to now, with work requests of the transfer outstanding. */
uint64_t xfer_wire_ns(const struct xfer *x, uint64_t now_ns);

/* Returns the kept last piece after a successful PULL, ACCEPT or COPY, for the commit; NULL if there is
 * none. */
struct buf *xfer_last(struct xfer *x, uint32_t *ret_len);

/* Counters per thread, for tests: they prove that no payload byte is copied and that memory is bounded. */
struct xfer_counts {
	uint64_t copied_bytes; /* bytes copied by the CPU: HTTP bodies only */
	uint64_t pushed_bytes, pulled_bytes;
	int bufs_peak; /* the largest number of buffers of one transfer; a run counts as its buffers */
};
extern _Thread_local struct xfer_counts xfer_counts;

#endif
