/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of http/: connections, listeners, canned answers. All functions run on the
 * core's thread.
 *
 *   http.c             daemons and connections: made, run, drained, ended
 *   conn.c             actions on one connection
 *   admit.c            admission of connections; time limits of heads
 *   preface.c          headers of the PROXY protocol, in front of HTTP and TLS (proxy.c reads them)
 *   peers.c            number of connections of an address
 *   call.c             the library's calls about a request
 *   answer.c           replies handed to the library
 *   past_library.c     answers written to the socket
 *   mhd_head_check.c   refuses heads that libmicrohttpd lets through
 *   mhd_early_reply.c  answers before the end of a body that has stopped
 *   mhd_own_answer.c   answers in place of libmicrohttpd's own answers
 *   mhd_linger.c       keeps sockets open until an early answer has arrived
 */
#ifndef GANTRY_HTTP_HTTP_INT_H
#define GANTRY_HTTP_HTTP_INT_H

#include "base/list.h"
#include "base/pool.h"
#include "http/http.h"
#include "http/peers.h"
#include "http/proxy.h"
#include "ring/ring.h"

#include <microhttpd.h>

/* limit of a request target in bytes; a longer one is answered with 400 */
#define HTTP_TARGET_MAX DIALECT_TARGET_MAX
/* limit of target and fields together, in bytes; beyond it the answer is 431 */
#define HTTP_HEADER_MAX (16u << 10)
/* bytes of the library's memory for a field, in addition to its text */
#define HTTP_FIELD_BYTES 64
/* limit of the library's memory for the fields (text, and HTTP_FIELD_BYTES for each), in bytes; beyond it the
 * answer is 431 */
#define HTTP_NOTED_MAX (20u << 10)
/*
 * libmicrohttpd's memory of a connection, in bytes: the largest head of a request, and 4 KiB for the head of
 * its reply. The library clears one and a half times this size for each request, and with many connections
 * this memory is not in the CPU's cache: with 32 KiB every small request costs 4 % more.
 */
#define HTTP_POOL_BYTES (24u << 10)
#define HTTP_STREAM_BYTES (64u << 10)
/* Number of connections that may exist in addition to limits.connections, because old ones are still being
 * ended: the largest number of new connections in one turn of the loop. */
#define HTTP_SPARE 4096
#define VICTIMS_MAX 64

/* Answers to input for which there is no struct req; answer_init() makes one of each kind for each
 * dialect. */
enum canned { CANNED_BAD, CANNED_BAD_URI, CANNED_TOO_LARGE, CANNED_BUSY, CANNED_NR };

enum conn_where {
	CONN_FREE,    /* unused, in the pool http->conns */
	CONN_PREFACE, /* in http->prefacing: waits for the PROXY header */
	/* in http->coming: passed to libmicrohttpd, which has not called its connection callback yet */
	CONN_COMING,
	CONN_OPEN,   /* open, in http->open */
	CONN_CLOSED, /* closed by libmicrohttpd; waits until its operation in the ring (poll) ends */
	/* in http->lingering: closed by libmicrohttpd; its remaining input is read (mhd_linger.c) */
	CONN_LINGERS,
};

/* The stage of a connection's request, as seen from the library's calls. */
enum conn_stage {
	STAGE_IDLE,   /* no request, or its head has not arrived completely */
	STAGE_HEAD,   /* during the library's first call for the request: no byte of a body was read */
	STAGE_BODY,   /* body bytes arrive; without a body: the library's last call for the request is next */
	STAGE_ANSWER, /* a response is queued */
};

#define KEPT_NR 8
#define KEPT_HEADERS_MAX 17
/*
 * A sent reply without a body, kept to be used again. The library makes three allocations for each header of
 * a new reply. The next reply mostly has the same headers with values of equal length, so the new values are
 * written over those of a kept reply. A core keeps KEPT_NR replies for all of its connections: a kept reply
 * per connection would not be in the CPU's cache at its next use.
 */
struct kept {
	struct MHD_Response *resp; /* the reply in the library; NULL: this entry is empty */
	int nr;
	bool other; /* true: the comparison found that the next reply has other headers than resp */
	int at;
	struct {
		const char *name; /* name of the header, in the library's memory */
		char *value;
		size_t len;
	} header[KEPT_HEADERS_MAX];
};

#define HEAD_TARGET_SHORT 1024
/*
 * The head of a request: target and header fields. A connection has a struct head from the request line to
 * the end of the request; an idle connection has none. The pool of a core has one struct head for each
 * possible connection.
 */
struct head {
	int field_nr;
	uint64_t absent_lengths; /* as in struct dialect_in */
	size_t header_bytes;
	/* length of the received target in bytes; beyond HTTP_TARGET_MAX the text in `target` is truncated */
	size_t target_len;
	const char *uri; /* the library's pointer to the target, used only in comparisons */
	char expect[16]; /* value of Expect, which is hidden from the library (mhd_head_check.c) */
	/* text of the target: in short_target, or in a block of http->long_targets; req/ decodes it in
	 * place */
	char *target;
	char short_target[HEAD_TARGET_SHORT];
	struct field fields[DIALECT_FIELDS_MAX];
};

/* State of reading the PROXY header of a connection. */
struct preface {
	/* have: number of bytes received; need: length of the header in bytes; PROXY_FIRST while this length
	 * is unknown */
	size_t have, need;
	bool stranger; /* true: the peer is not a configured proxy, and a PROXY header is refused */
	uint8_t bytes[PROXY_HEADER_MAX];
};

struct hconn {
	struct listener *l;
	struct list link;
	/* link in http->todo: connections with work that is done after the library has returned */
	struct list todo;
	/* link in http->owed: connections with a ready reply whose body has not arrived completely
	 * (mhd_early_reply.c) */
	struct list owed;
	enum conn_where where;
	struct MHD_Connection *mc;
	int fd;
	uint32_t client; /* id of the client for req/, from conn_start() on */
	bool polling;    /* true: `poll` is in the ring */
	bool gone;       /* true: the client has closed its side */
	bool aborted;    /* true: conn_abort() was called; the connection ends in any state */
	bool failed;     /* true: the library has closed the connection because of an error or a time-out */
	/* true: input may be unread when the connection closes; it is read for a while (mhd_linger.c), so
	 * that the client receives the answer */
	bool linger;

	/* Fields of admission (admit.c). */
	/* counter of the client's address; NULL: the address is not known yet, or not counted */
	struct peer *peer_count;
	/* state of reading the PROXY header; NULL: it was read, or none is expected */
	struct preface *preface;
	/* link in http->unfinished. The connection is in this list while its first head is awaited, and while
	 * the head of a later request has begun and is incomplete */
	struct list unfinished;
	/* value of http->stamps when the connection began or, later, when its last request ended; orders
	 * connections by time */
	uint64_t stamp;
	/* number of bytes received so far that belong to a PROXY header or to requests; over TLS, after the
	 * handshake: number of TLS records received until the last request ended */
	uint64_t taken;
	/* over TLS: number of bytes that TCP had received at the end of the last request, or of the
	 * handshake */
	uint64_t bytes;
	/* time at which the current head, handshake or PROXY header began; 0: no beginning was seen */
	uint64_t head_ns;
	bool shaken;  /* true: the TLS handshake is complete */
	bool leaving; /* true: the connection is being ended */

	/* Fields of the request. */
	enum conn_stage stage;
	struct req *rq;
	bool suspended;
	bool park;     /* true: the connection is suspended as soon as the library has returned (call.c) */
	bool has_body; /* true: the fields announce a body */
	/* true: the answer was written to the socket (mhd_early_reply.c), and the connection closes without
	 * another answer */
	bool replied_early;
	bool close_after; /* true: the connection closes normally after the answer to this request */
	bool must_close;  /* true: the end of the body is ambiguous, so no byte after it can be trusted */
	bool body_ended;
	/* number of body bytes in the library's buffer that req/ did not take before the connection was
	 * suspended */
	size_t offered;
	uint64_t body_ns;       /* time at which the last body bytes arrived */
	uint64_t owed_since_ns; /* time at which the connection entered http->owed */
	uint64_t owed_taken;    /* value of `taken` at the time owed_since_ns */
	uint64_t look_ns;  /* while on http->owed: time of the next check whether the body still arrives */
	struct head *head; /* head of the current request; NULL: idle */
	/* index in http->kept of the reply that the last answer used; it is tried first for the next
	 * answer */
	unsigned kept;

	/* Fields that a request leaves alone, or reads at their beginning only; they are last, so that the fields
	 * above are in fewer lines of the cache. */
	struct sockaddr_storage local, peer;
	/* Poll of the socket: for the PROXY header, then for the client's close (POLLRDHUP), then, after the
	 * library has closed the connection, for unread input (linger_poll()). */
	struct ring_op poll;
	int linger_fd;
	uint64_t linger_until_ns;
	uint64_t lingered_bytes;
};
/* An idle connection uses this memory, the library's (HTTP_POOL_BYTES) and that of the socket. */
_Static_assert(sizeof(struct hconn) <= 4096, "an idle connection is small");
/* Together with struct req (req/machine.h) a request in flight uses at most 24 KiB. */
_Static_assert(sizeof(struct hconn) + sizeof(struct head) <= REQ_OUTSIDE_BYTES,
	       "a connection with a request");

struct listener {
	struct http *h;
	const struct conf_listen *conf;
	struct tls_cert *cert; /* certificate of the listener; NULL: plain HTTP */
	struct MHD_Daemon *d;
	int epfd;
	struct ring_op poll;
	bool polling;
	bool hot; /* true: the daemon has work and must run in the next turn of the loop */
	/* number of calls that the library has made so far about connections of this listener */
	unsigned calls;
	/* number of consecutive runs of the daemon in which it made no call and after which it reported more
	 * work */
	unsigned vain;
	uint64_t due_ns; /* time of the daemon's next time-out */
};

struct http {
	const struct conf *conf;
	struct ring *ring;
	struct stats_core *stats;
	struct reqs *reqs;
	struct listener listeners[CONF_LISTEN_MAX];
	int listener_nr;
	struct pool conns, heads, long_targets, prefaces;
	struct list prefacing, coming, open, lingering, todo, owed;
	/* connections whose head is awaited or incomplete (hconn.unfinished), in the order in which they were
	 * added */
	struct list unfinished;
	struct peers *peers;
	int open_nr;      /* number of connections in the states CONN_PREFACE, CONN_COMING and CONN_OPEN */
	int leaving_nr;   /* number of connections counted in open_nr that are being ended */
	uint64_t stamps;  /* stamp that was assigned last */
	uint64_t look_ns; /* time of the next checks of connections for a late head (admit_run()) */
	/* true: another round of checks must follow: input has arrived since this round began, or a head is
	 * incomplete */
	bool stirred;
	int look_left; /* number of connections to check until the end of this round */
	struct {
		struct hconn *c;
		/* stamp of the connection when it was chosen; if the connection has another stamp now, it has
		 * had a request since */
		uint64_t stamp;
	} victim[VICTIMS_MAX];
	int victim_nr, victim_at;
	int polls;       /* number of ring operations in flight */
	unsigned idle_s; /* time-out of the library's daemons in s, from the first configuration */
	bool draining, stopping;
	/* true: this version of libmicrohttpd appends a folded line to the name of the field, and ends the
	 * text at a NUL (mhd_head_check.c) */
	bool folds_wrong;
	uint64_t date_s;                           /* time of `date`, seconds since 1970 */
	char date[30];                             /* date of kept replies, as of this turn of the loop */
	struct MHD_Response *canned[2][CANNED_NR]; /* canned answers by dialect and kind */
	struct kept kept[KEPT_NR];
	unsigned kept_next; /* index in kept[] of the reply that is replaced next */
};

/* ---- conn.c ---- */
/* Frees the connection (to the pool http->conns). The library and the ring no longer use it. */
void conn_release(struct hconn *c);
/* Puts the connection on http->todo, for work that is not possible inside the library's calls. */
void conn_todo(struct hconn *c);
/* Gives the connection a struct head for the request that begins, if it has none. */
void conn_head_get(struct hconn *c);
/* Stores a target of at most HTTP_TARGET_MAX bytes in the connection's head. */
void conn_target_set(struct hconn *c, const char *target, size_t len);
/* Frees the head of the connection, if it has one. */
void conn_head_put(struct hconn *c);
/* Resumes a suspended connection in the library. */
void conn_resume(struct hconn *c);
/* Makes the library look at a connection that it has closed and not freed. */
void conn_remind(struct hconn *c);
/* Resets the TCP connection, so that the client does not take the bytes sent so far for the complete
 * answer. */
void conn_reset(struct hconn *c);
/* Resets the connection and makes the library end it, in any state. */
void conn_abort(struct hconn *c);
/* Makes the library end an idle connection normally, as if the client had closed it. */
void conn_dismiss(struct hconn *c);

/* Replaces an IPv4-mapped IPv6 address by the IPv4 address. */
void conn_unmap(struct sockaddr_storage *sa);
/* Removes the connection from the counts of open connections: of the core, and of its client's address. */
void conn_uncount(struct hconn *c);
/* Closes a connection that waits for its PROXY header. */
void conn_drop(struct hconn *c);

/* ---- http.c ---- */
/* Counts the connection for its client's address. Returns 0, or an error of peers_add(). */
int conn_count_peer(struct hconn *c);
/* Passes the connection to the library. Returns 0; -errno: the library refused it, and the connection was
 * closed and freed. */
int conn_start(struct hconn *c);

/* ---- preface.c ---- */
/* Begins to wait for the PROXY header, or, from a peer that is not a configured proxy, for the first bytes of
 * HTTP or TLS. When they have arrived, conn_start() is called. */
void preface_begin(struct hconn *c);
/* Reads the PROXY header as far as it has arrived. Called when input is available. */
void preface_read(struct hconn *c);
/* Ends each connection whose PROXY header is still incomplete after limits.head_ns. Returns the time of the
 * next check; UINT64_MAX: no connection waits for its PROXY header. */
uint64_t preface_run(struct http *h, uint64_t now_ns);

/* ---- admit.c ---- */
/* Checks some open connections, if a check is due, and ends those whose head takes longer than
 * limits.head_ns. */
void admit_run(struct http *h, uint64_t now);
/* Returns the time at which admit_run() is due; UINT64_MAX: not before input arrives. */
uint64_t admit_due_ns(const struct http *h);
/* Begins the time-outs of a connection that the library has taken over. */
void admit_opened(struct hconn *c);
/* Restarts the time-outs of a connection whose request has ended. */
void admit_request_over(struct hconn *c);
/* Makes room for one more connection, if necessary by ending another one. Returns false if all
 * limits.connections connections have requests. */
bool admit_room(struct http *h);
/* Ends the connection that has waited longest for the rest of its head. Returns false if there is no such
 * connection. */
bool admit_half_head(struct http *h);

/* ---- mhd_head_check.c ---- */
/* Stores the raw target, before the library parses the head (MHD_OPTION_URI_LOG_CALLBACK). */
void *head_target(void *cls, const char *uri, struct MHD_Connection *mc);
/* Stores the header fields in c->head, and checks for errors that dialect/ cannot see. Called in the
 * library's first call for a request. Returns the canned answer for an invalid head; CANNED_NR: the head is
 * valid. */
enum canned head_check(struct hconn *c, const char *method, const char *version);

/* ---- call.c: the library's calls ---- */
/* Handles the library's calls for a request (MHD_AccessHandlerCallback): one for the head, one for each block
 * of body bytes, one for the end. */
enum MHD_Result on_call(void *cls, struct MHD_Connection *mc, const char *url, const char *method,
			const char *version, const char *data, size_t *data_len, void **req_cls);
/* Ends the request of a connection (MHD_OPTION_NOTIFY_COMPLETED). */
void on_completed(void *cls, struct MHD_Connection *mc, void **req_cls, enum MHD_RequestTerminationCode why);

/* ---- answer.c ---- */
/* Queues the ready reply of c->rq. Returns MHD_YES; MHD_NO: it was not queued, and the library closes the
 * connection. */
enum MHD_Result answer_reply(struct hconn *c);
/* Queues a canned answer. in: the refused request. Returns MHD_YES; MHD_NO: it was not queued, and the
 * library closes the connection. */
enum MHD_Result answer_canned(struct hconn *c, enum canned which, const struct req_in *in);
/* Makes the canned answers. Returns 0 or -ENOMEM. */
int answer_init(struct http *h);
/* Frees the canned and the kept answers. */
void answer_fini(struct http *h);

/* ---- past_library.c: answers written to the socket; each answer is the last of its connection ---- */
struct past_answer {
	char s[8192 + 2048]; /* text of the answer, with room for the largest error body and its headers */
	size_t len;
	bool cut; /* true: the text was truncated */
	enum conf_dialect dialect;
};
/* Begins an answer with the status line and the Date header. */
void past_begin(struct past_answer *a, const struct hconn *c, int status);
/* Adds a header field to an answer. cookie: the struct past_answer. */
void past_line(void *cookie, const char *name, const char *value);
/* Ends the head of an answer and adds len bytes of body; body NULL: adds none. has_length: true:
 * Content-Length announces len. */
void past_end(struct past_answer *a, bool has_length, const char *body, uint64_t len);
/* Writes the answer to the socket, without waiting. Returns false if it was not written completely. */
bool past_send(struct hconn *c, const struct past_answer *a);
/* Closes the server's side of the connection: later output of the library is discarded. */
void past_close(struct hconn *c);
/* Sends fault f as the answer to input that did not become a request. why: sentence for the error text; NULL: the
 * sentence of the fault. Returns false if the answer was not written completely. */
bool past_refuse(struct hconn *c, enum fault f, const char *why);

/* ---- mhd_own_answer.c ---- */
/* Queues an answer in the library. http/ calls this in place of MHD_queue_response(), because
 * mhd_own_answer.c replaces that function to catch the answers that the library makes itself. */
enum MHD_Result mhd_queue(struct MHD_Connection *mc, unsigned status, struct MHD_Response *resp);
/* Runs a daemon of the library (MHD_run()), and replaces the answers that the library makes itself. */
void mhd_run(struct MHD_Daemon *d);

/* ---- mhd_early_reply.c ---- */
/* Puts c on http->owed, because the reply is ready and the library waits for the rest of the body. */
void early_reply_watch(struct hconn *c);
/* Removes c from http->owed, if it is in the list. */
void early_reply_forget(struct hconn *c);
/* Answers the connections on http->owed whose body has stopped or takes too long. Not called inside the
 * library's calls. Returns true if the library must run again. */
bool early_reply_run(struct http *h);

/* ---- mhd_linger.c ---- */
/* Keeps a duplicate of the socket that the library is about to close, and reads remaining input from it, so
 * that the answer reaches the client before a reset can. */
void linger_begin(struct hconn *c);
/* Reads and discards the input of a lingering socket, and ends the connection if the client has closed it.
 * Called when the poll of the socket has ended. */
void linger_poll(struct hconn *c);
/* Ends the connection that has lingered longest, if any. */
void linger_end_oldest(struct http *h);
/* Ends the connections that have lingered long enough; all: true: ends every lingering connection. Returns
 * the time at which the next one ends; UINT64_MAX: no connection lingers. */
uint64_t linger_run(struct http *h, uint64_t now_ns, bool all);

#endif
