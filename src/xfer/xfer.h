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

/* Counts of a client. Clients with the same client_id % XFER_CLIENTS share them. */
struct xfer_client {
	/* number of buffers of main_cls that the client has, plus one for each of its tickets without a
	 * buffer */
	int held;
	int waits;         /* number of transfers of the client in xfer_pool.waiting and xfer_pool.hungry */
	int queued;        /* number of transfers of the client that wait for a ticket */
	int queued_writes; /* number of writes among them */
};

/* Number of entries for slow clients. If several clients belong to one entry, the entry has the latest of
 * them. */
#define XFER_SLOW_NR 1024
struct xfer_slow {
	uint32_t id; /* id of the client, from xfer_client_of() */
	uint32_t until_look;
};

#define XFER_LANES 64
/* A lane: the transfers from or to one of several disks. A lane has at most half of the buffers, so that a
 * disk that hangs cannot occupy all of them; its writes have three quarters of that half. */
struct xfer_lane {
	/* sum of three numbers: buffers of the lane's transfers; tickets of the lane without a buffer;
	 * transfers of the lane that wait for a ticket and are not held back */
	int held;
	int writes; /* sum of the same three numbers, of writes only */
	int shut;   /* number of transfers in back[] */
	/* transfers that wait because the lane has its share of the buffers, in order of arrival: reads,
	 * writes */
	struct list back[2];
	bool turn_of_writes; /* true: the next transfer of back[] that begins is a write, if there is room for one */
};

struct xfer_pool {
	struct bufpool *bp;
	enum buf_class main_cls; /* class of the buffer that a ticket guarantees */
	int tickets, tickets_out;
	/* number of issued tickets that hold no buffer of main_cls; that many free buffers of main_cls are
	 * reserved for them */
	int bare;
	/* number of buffers of main_cls of writes, plus one for each of their tickets without a buffer, and
	 * its limit: three quarters of the buffers, so that reads have a buffer while writes hang */
	int writes, writes_max;
	int queue_max, queued; /* queued: number of transfers that wait for a ticket */
	int queued_writes;     /* number of writes among them */
	/* transfers that wait for a ticket, reads and writes; clients take turns, and the reads, or writes, of
	 * one client keep their order */
	struct fair waiting[2];
	/* true: a write gets the next ticket if the least weights of reading and writing clients are equal
	 * (weight() in pool.c) */
	bool turn_of_writes;
	struct list hungry;                      /* transfers that can use another buffer; they get buffers in
	                                          * turn */
	int waits;                               /* number of transfers in waiting and hungry */
	int pieces_max;                          /* largest number of pieces of a transfer */
	struct list holders;                     /* transfers with a ticket, the oldest first */
	uint64_t looked_ns;                      /* time of the last xfer_pool_revoke() */
	uint32_t looks;                          /* number of calls of xfer_pool_revoke() */
	struct xfer_client client[XFER_CLIENTS]; /* state of each client, by xfer.client */
	/* index 0: transfers between two lanes; index i + 1: lane i */
	struct xfer_lane lane[XFER_LANES + 1];
	/* number of transfers, of all lanes, that wait because their lane holds its share of the buffers */
	int shut;
	struct store_spares spares;          /* functions by which the store borrows idle buffers */
	struct xfer_slow slow[XFER_SLOW_NR]; /* clients that were slow, by client_id % XFER_SLOW_NR */
};

void xfer_pool_init(struct xfer_pool *xp, struct bufpool *bp, enum buf_class main_cls, int pieces_max,
		    int queue_max);
/* Returns the id of the client at an address, without the port. All addresses of an IPv6 /64 have one id,
 * because a client may use any of them. key: a secret, so that a client cannot choose or predict which other
 * clients have its id. */
uint32_t xfer_client_of(const struct sockaddr *peer, const uint64_t key[2]);
/* Returns the id of a client that is identified by its access key `name` (limits.fair_by) and not by its
 * address. key: the secret of xfer_client_of(). */
uint32_t xfer_client_named(const char *name, const uint64_t key[2]);

/* ---- clients that are too slow (pace.c) ---- */

struct xfer;
struct xfer_pool;

/* The minimum speed of a client while other clients wait for a ticket. */
struct xfer_pace {
	uint64_t rate; /* minimum rate in bytes a second; 0: no minimum */
	uint64_t grace_ns;
};

/* The start of a client's measurement. since_ns: time of the start; 0: the client is not measured, because
 * the transfer does not wait for it. bytes: number of bytes moved before the start. */
struct pace_mark {
	uint64_t since_ns, bytes;
};
#define PACE_UNKNOWN UINT64_MAX

#define PACE_ANEW UINT64_MAX

/* Returns the time in ns that is left out of all measurements, because this check is late; PACE_ANEW: the
 * last check is so long ago that all measurements restart. */
uint64_t pace_skip(uint64_t looked_ns, uint64_t now_ns);
/* Updates the measurement of a client, which begins when the transfer begins to wait for the client, and ends
 * when the transfer does not wait any longer. m: start of the measurement, which moves ahead by skip_ns.
 * bytes: number of bytes moved so far. owes: true: the transfer waits for the client. skip_ns: result of
 * pace_skip(); after PACE_ANEW the measurement begins again. */
void pace_look(struct pace_mark *m, uint64_t bytes, bool owes, uint64_t skip_ns, uint64_t now_ns);
/* Returns the rate of a client in bytes a second since the start m; PACE_UNKNOWN: the client is not measured.
 * bytes: number of bytes moved so far. */
uint64_t pace_rate(const struct pace_mark *m, uint64_t bytes, uint64_t now_ns);
/* Returns true if the client was measured for at least the grace, and its rate is below the minimum. */
bool pace_is_slow(const struct pace_mark *m, uint64_t bytes, const struct xfer_pace *pace, uint64_t now_ns);
/* Restarts the measurement of a client that was fast enough for the whole grace. */
void pace_forgive(struct pace_mark *m, uint64_t bytes, const struct xfer_pace *pace, uint64_t now_ns);

/* Numbers of candidates by the order of magnitude of their rate. With these numbers the slowest candidates
 * are found in two passes over all candidates. */
struct pace_count {
	int of[66];
};
void pace_count_add(struct pace_count *pc, uint64_t rate);
/* Returns true if a candidate with this rate is among the *nr slowest candidates; then decrements *nr, and
 * removes the candidate from the numbers. */
bool pace_count_take(struct pace_count *pc, uint64_t rate, int *nr);

enum xfer_revoke {
	XFER_TOO_SLOW, /* the transfer is slower than the pace while another request waits */
	/* the transfer is the slowest of the client with most buffers, while a client with less than its
	 * share waits */
	XFER_OVER_SHARE
};

/* Returns true if the client has lost a ticket because it was slow, at most ten seconds ago; only time in
 * which a transfer waits for a ticket counts. */
bool xfer_was_slow(const struct xfer_pool *xp, uint32_t client_id);
struct xfer_pace_ops {
	/* Returns the number of bytes of a SERVE that were taken from the transfer and have not reached the
	 * client. */
	uint64_t (*unsent)(struct xfer *x);
	/* Returns true if most of the body of a transfer that waits for a ticket has not arrived, so that a
	 * buffer would stay almost empty. */
	bool (*is_late)(struct xfer *x);
	/* Asks for the return of the ticket of x. Must only note the request, because it runs inside calls of
	 * this header. */
	void (*revoke)(struct xfer *x, enum xfer_revoke why);
};
/* Checks the transfers that hold tickets, and requests tickets back from the slowest ones if other transfers
 * wait. Called every XFER_LOOK_NS while a transfer waits for a ticket. Returns the number of requested
 * tickets. */
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
	uint64_t at;   /* offset in the transfer of the first byte of the piece, in bytes */
	uint32_t skew; /* offset in the buffer of the first byte of the piece, in bytes */
	uint32_t len;  /* number of bytes of the transfer in this piece */
	/* COPY: carry: number of bytes taken over from the previous piece; carries_on: true: all bytes of the
	 * piece are passed on to the next piece */
	uint32_t carry;
	bool carries_on;
	union {
		struct store_read rd;
		struct store_write wr;
	};
	struct chan_op cop;
};

enum xfer_mode { XFER_NONE, XFER_PUSH, XFER_PULL, XFER_SERVE, XFER_ACCEPT, XFER_COPY };

/* A transfer. Embedded in the request, which calls xfer_idle() once, and xfer_init() before each transfer. */
struct xfer {
	struct xfer_pool *pool;
	struct store_port *store;
	struct chan *chan;
	/* Called when the transfer has ended, without pieces in flight; its outcome is in `result`. Also
	 * called when the ticket for which the transfer waits is granted. */
	void (*done)(struct xfer *x);
	/* Called in SERVE when bytes are ready to be taken; in ACCEPT when a buffer is ready to be fed; in
	 * PUSH and PULL when the transfer has failed and only disk operations are in flight. */
	void (*wake)(struct xfer *x);

	enum xfer_mode mode;
	bool have_ticket, is_waiting;
	/* true: the transfer writes to the store. Set by the request before xfer_init(), which does not
	 * change the value */
	bool is_write;
	/* true: xfer_pool_revoke() has requested the ticket, and the ticket is not returned yet */
	bool revoked;
	/* lane that holds this waiting transfer back, because the lane has its share of the buffers; NULL:
	 * not held back */
	struct xfer_lane *back;
	/* lane of the source and lane of the destination of the bytes, each as its index plus 1; 0: no
	 * lane */
	uint8_t lane[2];
	bool was_slow; /* true: the client was slow when the transfer began to wait for a ticket */
	/* true: most of the body had not arrived at the last check (xfer_pace_ops.is_late) */
	bool is_late;
	uint8_t client;     /* index of the client: client_id % XFER_CLIENTS */
	uint32_t client_id; /* id of the client, from xfer_client_of() */
	struct list link;   /* private to the pool: link of waiting or hungry transfers */
	struct list holder; /* private to the pool: link of transfers with a ticket */
	struct pace_mark mark;
	/* number of bytes received from the client, or delivered to it, at the last check of
	 * xfer_pool_revoke() */
	uint64_t reached;

	struct store_obj *obj;
	struct store_put *put;
	struct chan_lease *lease;
	struct digest *digest; /* PULL, ACCEPT, COPY: checksums over all bytes in order */

	uint64_t base; /* offset in the object of the first byte of the transfer */
	uint64_t len;  /* number of bytes to move; UINT64_MAX: until xfer_feed_end() */
	uint64_t next; /* number of bytes of the transfer that were assigned to pieces so far */
	/* PULL: number of bytes digested and passed to the store, in the order of the object; SERVE: number
	 * of bytes that the HTTP answer has taken from the pieces */
	uint64_t in_order;
	uint64_t moved;       /* number of bytes that reached the destination */
	uint64_t progress_ns; /* time of the last progress */
	/* wire_ns: total time with outstanding work requests; wire_since_ns: start of the current time with
	 * outstanding work requests (0: there are none) */
	uint64_t wire_ns, wire_since_ns;
	uint64_t first_ns; /* time at which the first bytes of a GET reached the client; 0: not yet */
	/* wire_bytes: number of bytes in work requests that were posted and have not completed; wire_max:
	 * limit of wire_bytes; 0: no limit */
	uint64_t wire_bytes, wire_max;
	int active;   /* number of pieces that are not idle */
	int inflight; /* number of pieces that the store or the NIC uses */
	/* number of buffers of the transfer; a run of adjacent buffers counts as its number of buffers */
	int bufs;
	int main_bufs;     /* number of buffers of main_cls of the transfer */
	int result;        /* -errno of the first error of the transfer; 0: no error */
	bool ended;        /* true: done() was called or will not be called */
	bool fed_all;      /* ACCEPT: true: the body has ended */
	bool wire_started; /* true: a work request was posted, or bytes were sent */

	struct piece *filling; /* ACCEPT: the piece that is being filled */
	struct piece *last;    /* PULL, ACCEPT, COPY: the last piece, kept for the commit */
	/* COPY: number of bytes at the end of a piece that belong to a granule which the next pieces
	 * complete */
	uint32_t carry;
	unsigned char *carry_buf; /* COPY: memory for a copy of the `carry` bytes */
	struct piece pieces[XFER_PIECES_MAX];
};

/* Initializes x, whose memory an earlier request may have used, as a transfer of `client` that has not begun.
 * fn: value of x->done and x->wake. Does not change the pieces. */
void xfer_idle(struct xfer *x, uint32_t client, void (*fn)(struct xfer *x));
/* Sets the lanes of the transfer's source and destination (store_lane(); -1: none), before xfer_init(). */
void xfer_set_lanes(struct xfer *x, int a, int b);
/* Assigns the transfer to another client, before xfer_init(). */
void xfer_set_client(struct xfer *x, uint32_t client);
void xfer_init(struct xfer *x, struct xfer_pool *pool, struct store_port *store, struct chan *chan);
/* Returns pieces and ticket of the transfer to the pool. No piece may be in flight. A transfer that was never
 * started is allowed. */
void xfer_fini(struct xfer *x);

/* Asks for a ticket. Returns > 0 if it was granted; 0 if x waits, and done() is called when the ticket is
 * granted; -EAGAIN if the queue is full. */
int xfer_ticket(struct xfer *x);

/* Starts a PUSH: moves len bytes of the object, from off on, to the memory of the client. The transfer has a
 * ticket and a granted lease. wire_max: limit of x->wire_bytes; 0: no limit. done() always follows. */
void xfer_push(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len, struct chan_lease *lease,
	       uint64_t wire_max);
/* Starts a PULL: moves len bytes from the memory of the client to the put. The transfer has a ticket and a
 * granted lease. wire_max: limit of x->wire_bytes; 0: no limit. done() always follows. */
void xfer_pull(struct xfer *x, struct store_put *put, uint64_t len, struct chan_lease *lease,
	       struct digest *dg, uint64_t wire_max);
/* Starts a SERVE of len bytes of the object, from off on, for xfer_take(). The transfer ends without done()
 * when all bytes were taken; done() is called only after an error or xfer_cancel(). */
void xfer_serve(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len);
/* Copies up to max bytes of a SERVE, from position pos on, to out; each byte is copied once, in ascending
 * order. Returns the number of bytes; 0 if no byte is ready, and wake() follows; or the -errno with which the
 * transfer has failed. */
ssize_t xfer_take(struct xfer *x, uint64_t pos, void *out, size_t max);
bool xfer_has_bytes(const struct xfer *x);
/* Returns true if the transfer waits for the client: for bytes of the body, or until the client takes
 * bytes. */
bool xfer_client_owes(const struct xfer *x);
/* Returns true if the transfer waits for the store, without an outstanding work request. */
bool xfer_waits_for_store(const struct xfer *x);
void xfer_accept(struct xfer *x, struct store_put *put, struct digest *dg);
/* Takes bytes of the body, and returns their number. If the number is less than len, wake() follows, or the
 * transfer has failed (x->result < 0). */
size_t xfer_feed(struct xfer *x, const void *data, size_t len);
/* Ends the body of an ACCEPT; done() follows when all pieces except the last one are on the disk. */
void xfer_feed_end(struct xfer *x);

/* Copies len bytes of an opened object, from off on, to a put, at any alignment. done() follows when all
 * pieces except the last one are on the disk; it may run inside this call. */
void xfer_copy(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len, struct store_put *put,
	       struct digest *dg);

/* Stops the transfer with the error err as soon as possible: outstanding work requests are flushed. An
 * earlier error remains the result. Returns 0 if pieces are in flight, and done() follows after their end; >
 * 0 if no piece is in flight, and done() does not follow. */
int xfer_cancel(struct xfer *x, int err);

/* Returns the total time in ns, up to now_ns, during which work requests of the transfer were outstanding. */
uint64_t xfer_wire_ns(const struct xfer *x, uint64_t now_ns);

/* Returns the buffer of the last piece of a successful PULL, ACCEPT or COPY, which was kept for the commit,
 * and the length of the piece in *ret_len; NULL: there is no last piece. */
struct buf *xfer_last(struct xfer *x, uint32_t *ret_len);

/* Counters per thread, for tests: they prove that no payload byte is copied and that memory is bounded. */
struct xfer_counts {
	uint64_t copied_bytes; /* bytes copied by the CPU: HTTP bodies only */
	uint64_t pushed_bytes, pulled_bytes;
	/* largest number of buffers of one transfer so far; a run of adjacent buffers counts as its number of
	 * buffers */
	int bufs_peak;
};
extern _Thread_local struct xfer_counts xfer_counts;

#endif
