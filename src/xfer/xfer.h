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
 * A piece is one pool buffer, or for a large read a run of them; several are in flight per transfer, bounded, so
 * memory per request is bounded whatever the object's size.  A core's thread owns it all.  done() and wake() only note that something
 * happened: they may run inside any call of this header, and must not call back into it.
 *
 * Scarcity has one order, so that nothing can deadlock: ticket -> channel lease -> pieces.  A ticket
 * guarantees one buffer; more come from the surplus without waiting.  See pool.c for the invariant.
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

/* Clients whose addresses fall together share what one may have. */
struct xfer_client {
	int held;   /* buffers of main_cls, one more for each ticket without */
	int waits;  /* of its transfers, on either list */
	int queued; /* of these, without a ticket */
};

/* Who was slow of late: the latest of those whose numbers fall together here. */
#define XFER_SLOW_NR 1024
struct xfer_slow {
	uint32_t id; /* xfer_client_of() */
	uint32_t until_look;
};

/* A lane is a disk of several: what hangs on one of them holds no more than half of the buffers. */
#define XFER_LANES 64
struct xfer_lane {
	int held; /* tickets without a buffer, all buffers, and whoever waits for a ticket unless it is held back */
	int shut;         /* held back */
	struct list back; /* xfers that are held back, in order */
};

struct xfer_pool {
	struct bufpool *bp;
	enum buf_class main_cls; /* the class that a ticket guarantees */
	int tickets, tickets_out;
	int bare; /* tickets out that hold no buffer of main_cls: so many are kept for them */
	int queue_max, queued;
	struct fair waiting; /* xfers without a ticket: clients take turns, each one's in order */
	struct list hungry;  /* xfers that would take another buffer, round robin */
	int waits;           /* xfers on either list */
	int pieces_max;      /* per transfer */
	struct list holders; /* xfers with a ticket, the oldest first */
	uint64_t looked_ns;  /* when xfer_pool_revoke() last ran */
	uint32_t looks;      /* how often it did */
	struct xfer_client client[XFER_CLIENTS]; /* by xfer.client */
	struct xfer_lane lane[XFER_LANES + 1];   /* by xfer.lane; 0: those with two */
	int shut;                                /* xfers that are held back */
	struct store_spares spares;              /* what nobody has a use for just now, for the store */
	struct xfer_slow slow[XFER_SLOW_NR];     /* by client_id % XFER_SLOW_NR */
};

void xfer_pool_init(struct xfer_pool *xp, struct bufpool *bp, enum buf_class main_cls, int pieces_max,
		    int queue_max);
/* Returns a number for the client at an address, whatever its port: of IPv6 for the /64, of which one
 * client has as many addresses as it likes.  Without the key nobody can tell who has the same, or nearly. */
uint32_t xfer_client_of(const struct sockaddr *peer, const uint64_t key[2]);
/* Returns one for a client with a name of its own. */
uint32_t xfer_client_named(const char *name, const uint64_t key[2]);

/* ---- who is too slow (pace.c) ---- */

struct xfer;
struct xfer_pool;

/* How fast a client has to be while others wait. */
struct xfer_pace {
	uint64_t rate; /* bytes a second; 0: nobody is too slow */
	uint64_t grace_ns;
};

/* Since when a client's bytes are watched, and how many had moved then.  since_ns 0: not watched, because it
 * is not the client that is waited for. */
struct pace_mark {
	uint64_t since_ns, bytes;
};
#define PACE_UNKNOWN UINT64_MAX

#define PACE_ANEW UINT64_MAX

/* Returns how much of the time since the last look does not count, because the look is late; PACE_ANEW:
 * what was seen then is too old to count. */
uint64_t pace_skip(uint64_t looked_ns, uint64_t now_ns);
/* Looks at a client with so many bytes in all; owes: it is the client that is waited for. */
void pace_look(struct pace_mark *m, uint64_t bytes, bool owes, uint64_t skip_ns, uint64_t now_ns);
/* Returns the bytes a second since the mark; PACE_UNKNOWN where there is none. */
uint64_t pace_rate(const struct pace_mark *m, uint64_t bytes, uint64_t now_ns);
/* Tells whether the client was watched for the grace and is too slow. */
bool pace_is_slow(const struct pace_mark *m, uint64_t bytes, const struct xfer_pace *pace, uint64_t now_ns);
/* Begins to watch anew behind a grace that was kept. */
void pace_forgive(struct pace_mark *m, uint64_t bytes, const struct xfer_pace *pace, uint64_t now_ns);

/* Counts candidates by the order of magnitude of their rate, so that the slowest are found in two walks. */
struct pace_count {
	int of[66];
};
void pace_count_add(struct pace_count *pc, uint64_t rate);
/* Tells whether one with that rate is among the *nr slowest; if so, *nr and the count go down. */
bool pace_count_take(struct pace_count *pc, uint64_t rate, int *nr);

enum xfer_revoke {
	XFER_TOO_SLOW,  /* slower than the pace while somebody waits */
	XFER_OVER_SHARE /* the slowest of the client that has most, while one with less than its share waits */
};

/* Tells whether that client lost a ticket for being slow within the last ten seconds of waiting. */
bool xfer_was_slow(const struct xfer_pool *xp, uint32_t client_id);
struct xfer_pace_ops {
	/* Returns how many bytes of a SERVE were taken and have not reached the client. */
	uint64_t (*unsent)(struct xfer *x);
	/* Tells whether one that waits for a ticket has little to put into a buffer: most of its body is
	 * yet to come. */
	bool (*is_late)(struct xfer *x);
	/* Its ticket is to come back: only notes it, as done() does. */
	void (*revoke)(struct xfer *x, enum xfer_revoke why);
};
/* Looks at who holds tickets, and hands out whose is to come back.  To be called every XFER_LOOK_NS while
 * somebody waits for a ticket.  Returns how many. */
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
	uint64_t at;   /* transfer offset of its first byte */
	uint32_t skew; /* where that byte lies in the buffer */
	uint32_t len;  /* bytes of the transfer in this piece */
	/* COPY: so many of them come from the piece before; and all of them go into the next */
	uint32_t carry;
	bool carries_on;
	union {
		struct store_read rd;
		struct store_write wr;
	};
	struct chan_op cop;
};

enum xfer_mode { XFER_NONE, XFER_PUSH, XFER_PULL, XFER_SERVE, XFER_ACCEPT, XFER_COPY };

/* Embedded by the request; xfer_idle(), then xfer_init() for each transfer. */
struct xfer {
	struct xfer_pool *pool;
	struct store_port *store;
	struct chan *chan;
	/* The transfer ended: nothing of it is in flight; result says how.  Also: a ticket was granted. */
	void (*done)(struct xfer *x);
	/* SERVE: bytes are there to take.  ACCEPT: a buffer is there to feed.  PUSH, PULL: it failed, and
	 * only the disk has some of it still. */
	void (*wake)(struct xfer *x);

	enum xfer_mode mode;
	bool have_ticket, is_waiting;
	bool revoked;           /* xfer_pool_revoke() said so; until the ticket is back */
	struct xfer_lane *back; /* waits, and this lane of its has half already; NULL: it is not held back */
	uint8_t lane[2];        /* where its bytes come from and go to, each + 1; 0: none */
	bool was_slow;          /* its client was, when it began to wait */
	bool is_late;           /* its body was, at the last look */
	uint8_t client;         /* for whom: client_id % XFER_CLIENTS */
	uint32_t client_id;     /* xfer_client_of() */
	struct list link;       /* pool's: waiting or hungry */
	struct list holder;     /* pool's: with a ticket */
	struct pace_mark mark;
	uint64_t reached; /* bytes that had come from the client, or reached it, at the last look */

	struct store_obj *obj;
	struct store_put *put;
	struct chan_lease *lease;
	struct digest *digest; /* PULL, ACCEPT, COPY: over all bytes in order */

	uint64_t base;                   /* object offset of transfer byte 0 */
	uint64_t len;                    /* bytes to move; UINT64_MAX: until xfer_feed_end() */
	uint64_t next;                   /* transfer bytes given to pieces so far */
	uint64_t in_order;               /* PULL: bytes digested and written in order; SERVE: bytes taken */
	uint64_t moved;                  /* bytes that reached the other side */
	uint64_t progress_ns;            /* when something last moved */
	uint64_t wire_ns, wire_since_ns; /* how long work requests were out in all; since when (0: none is) */
	uint64_t first_ns;             /* when the first bytes reached the other side of a GET; 0: not yet */
	uint64_t wire_bytes, wire_max; /* posted and not completed; 0 max: no limit */
	int active;                    /* pieces not idle */
	int inflight;                  /* pieces that the store or the NIC has */
	int bufs;                      /* buffers held; a run is so many as it is */
	int main_bufs;                 /* of main_cls */
	int result;                    /* first error wins */
	bool ended;                    /* done() was called or need not be */
	bool fed_all;                  /* ACCEPT */
	bool wire_started;             /* a work request was posted, or bytes went out */

	struct piece *filling;    /* ACCEPT: the buffer that bytes go to */
	struct piece *last;       /* PULL, ACCEPT, COPY: the last piece, kept for the commit */
	uint32_t carry;           /* COPY: bytes of a granule that a piece to come has to complete, */
	unsigned char *carry_buf; /* ... and when it is read, they */
	struct piece pieces[XFER_PIECES_MAX];
};

/* Makes memory that may have been another request's a transfer that was not begun: for that client, whose
 * done and wake are both fn.  Leaves the pieces alone. */
void xfer_idle(struct xfer *x, uint32_t client, void (*fn)(struct xfer *x));
/* Says which lanes its bytes come from and go to (store_lane(); -1: none), before xfer_init(). */
void xfer_set_lanes(struct xfer *x, int a, int b);
/* Makes it another client's, before xfer_init(). */
void xfer_set_client(struct xfer *x, uint32_t client);
void xfer_init(struct xfer *x, struct xfer_pool *pool, struct store_port *store, struct chan *chan);
/* Gives back pieces and ticket.  Nothing may be in flight.  Fine on one never started. */
void xfer_fini(struct xfer *x);

/* Asks for a ticket.  > 0: granted; 0: done() comes; -EAGAIN: the queue is full. */
int xfer_ticket(struct xfer *x);

/* Starts a transfer, with a ticket in hand (PUSH, PULL: and a granted lease); done() comes, always. */
void xfer_push(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len, struct chan_lease *lease,
	       uint64_t wire_max);
void xfer_pull(struct xfer *x, struct store_put *put, uint64_t len, struct chan_lease *lease,
	       struct digest *dg, uint64_t wire_max);
/* Starts SERVE: done() comes only after xfer_cancel(); otherwise it is over when everything was taken. */
void xfer_serve(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len);
/* Copies out up to max bytes at pos (each byte once, ascending).  0: wake() will come; -errno: over. */
ssize_t xfer_take(struct xfer *x, uint64_t pos, void *out, size_t max);
bool xfer_has_bytes(const struct xfer *x);
/* Tells whether the transfer waits for the client: for bytes of its body, or for it to take some. */
bool xfer_client_owes(const struct xfer *x);
/* Tells whether the transfer waits for the store, and nothing of it is on the wire. */
bool xfer_waits_for_store(const struct xfer *x);
void xfer_accept(struct xfer *x, struct store_put *put, struct digest *dg);
/* Takes bytes and returns how many; fewer than len: wake() will come (or it failed: see result). */
size_t xfer_feed(struct xfer *x, const void *data, size_t len);
/* Ends what xfer_feed() takes; done() comes when all but the last piece is on the disk. */
void xfer_feed_end(struct xfer *x);

/* Copies bytes of an opened object to a put, whatever their alignment; done() comes when all but the
 * last piece is on the disk, perhaps in the call. */
void xfer_copy(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len, struct store_put *put,
	       struct digest *dg);

/* Stops as soon as it can: the first error stays; work requests are flushed; done() comes when nothing is in
 * flight. > 0: nothing was, and done() will not come. */
int xfer_cancel(struct xfer *x, int err);

/* Returns how long, up to now, any work request of the transfer was out. */
uint64_t xfer_wire_ns(const struct xfer *x, uint64_t now_ns);

/* Returns the kept last piece after a good PULL, ACCEPT or COPY, for the commit.  NULL: there was none. */
struct buf *xfer_last(struct xfer *x, uint32_t *ret_len);

/* Counts at the seams, per thread: what a test reads to prove that no payload byte is copied and memory is
 * bounded. */
struct xfer_counts {
	uint64_t copied_bytes; /* by the CPU: HTTP bodies only */
	uint64_t pushed_bytes, pulled_bytes;
	int bufs_peak; /* most buffers one transfer held; a run is so many as it is */
};
extern _Thread_local struct xfer_counts xfer_counts;

#endif
