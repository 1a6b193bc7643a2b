/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of http/: connections, listeners, canned answers. All functions run on the core's
 * thread.
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
 *   tls.c              certificates
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

#define HTTP_TARGET_MAX DIALECT_TARGET_MAX /* limit of a target in bytes; a longer target is 400 */
#define HTTP_HEADER_MAX (16u << 10)        /* limit of target and fields together, in bytes; above it 431 */
#define HTTP_FIELD_BYTES 64                /* memory of the library for a field, in addition to the text */
/* limit of text and HTTP_FIELD_BYTES per field, in bytes; above it 431 */
#define HTTP_NOTED_MAX (20u << 10)
/*
 * libmicrohttpd's memory per connection: the largest head, and 4 KiB for the head of its reply. The library
 * clears one and a half times as much for each request, and with many connections this memory is not in the
 * CPU's cache: 32 KiB cost every small request 4 % more.
 */
#define HTTP_POOL_BYTES (24u << 10)
#define HTTP_STREAM_BYTES (64u << 10)
/* Connections beyond limits.connections, for connections that are being ended: the largest number of new
 * connections in one turn of the loop. */
#define HTTP_SPARE 4096
#define VICTIMS_MAX 64

/* Answers that need no request: made once per dialect. */
enum canned { CANNED_BAD, CANNED_BAD_URI, CANNED_TOO_LARGE, CANNED_BUSY, CANNED_NR };

enum conn_where {
	CONN_FREE,    /* unused, in http->conns */
	CONN_PREFACE, /* in http->prefacing: waits for the header of the PROXY protocol */
	CONN_COMING,  /* passed to libmicrohttpd, which has not called back yet */
	CONN_OPEN,    /* open, in http->open */
	CONN_CLOSED,  /* closed by libmicrohttpd; waits for its poll to return */
	/* closed by libmicrohttpd; in http->lingering: remaining input is read (mhd_linger.c) */
	CONN_LINGERS,
};

/* The stage of a connection's request, as seen from the library's calls. */
enum conn_stage {
	STAGE_IDLE,   /* no request, or the library has not passed the head of the request yet */
	STAGE_HEAD,   /* the first call: no part of a body was read */
	STAGE_BODY,   /* body bytes arrive, or the last call is next */
	STAGE_ANSWER, /* a response is queued */
};

/*
 * A former reply without a body. The library copies each header into three allocations; the next reply mostly
 * has the same names and values of equal length, which are then written over the old ones. A core keeps a few
 * such replies for all of its connections: one for each connection would not be in the CPU's cache at its
 * next use.
 */
#define KEPT_NR 8
#define KEPT_HEADERS_MAX 16
struct kept {
	struct MHD_Response *resp; /* kept reply; NULL: none */
	int nr;
	bool other; /* true during a comparison: the reply does not match */
	int at;
	struct {
		const char *name; /* name of the header, in the library's memory */
		char *value;
		size_t len;
	} header[KEPT_HEADERS_MAX];
};

/*
 * The head of a request. A connection has a head from the request line to the end of the request, and no head
 * while idle; a core has a pool with a head per possible connection.
 */
#define HEAD_TARGET_SHORT 1024
struct head {
	int field_nr;
	size_t header_bytes;
	size_t target_len; /* length of the target; above HTTP_TARGET_MAX the text is truncated */
	const char *uri;   /* the library's pointer to the target, used only in comparisons */
	char expect[16];   /* value of Expect, which is hidden from the library (mhd_head_check.c) */
	/* short_target, or memory of http->long_targets for a longer target; req/ decodes the target in
	 * place */
	char *target;
	char short_target[HEAD_TARGET_SHORT];
	struct field fields[DIALECT_FIELDS_MAX];
};

/* The received part of the PROXY protocol's header. */
struct preface {
	/* number of bytes received and needed; need is PROXY_FIRST until that many bytes have arrived */
	size_t have, need;
	bool stranger; /* true: the peer is not a configured proxy, and a PROXY header is refused */
	uint8_t bytes[PROXY_HEADER_MAX];
};

struct hconn {
	struct listener *l;
	struct list link;
	struct list todo; /* link in http->todo: work that must wait until the library returns */
	/* link in http->owed: the reply is ready, and the rest of the body has not arrived
	 * (mhd_early_reply.c) */
	struct list owed;
	enum conn_where where;
	struct MHD_Connection *mc;
	int fd;
	struct sockaddr_storage local, peer;

	/* Poll for the close of the client's side; later for remaining input. */
	struct ring_op poll;
	bool polling;
	bool gone;    /* true: the client has closed its side */
	bool aborted; /* true: the connection must be ended in any state */
	/* true: the connection closes with unread input, which is read for a while, so that the client
	 * receives the answer */
	bool linger;
	int linger_fd;
	uint64_t linger_until_ns;
	uint64_t lingered_bytes;

	/* Fields of admission (admit.c). */
	struct peer *peer_count; /* counter of the client's address; NULL: the client is not known yet */
	struct preface *preface; /* state of reading the PROXY header; NULL: no PROXY header is expected */
	struct list unfinished; /* link in http->unfinished: no complete head has arrived, or one has begun */
	/* number that orders connections by time: of the beginning, then of the end of the last request */
	uint64_t stamp;
	uint64_t taken; /* number of bytes of requests received so far; over TLS number of bytes of records */
	uint64_t bytes; /* over TLS: value of `taken` at the end of the last request, or of the handshake */
	/* time at which the current head or handshake began; 0: none has begun, as far as known */
	uint64_t head_ns;
	bool shaken;  /* true: the TLS handshake is complete */
	bool leaving; /* true: the connection is being ended */

	/* Fields of the request. */
	enum conn_stage stage;
	struct req *rq;
	bool suspended;
	bool park;     /* true: the connection must be suspended after the library has returned (call.c) */
	bool has_body; /* true: the fields announce a body */
	/* the answer was written to the socket (mhd_early_reply.c), and the connection closes without another
	 * answer */
	bool replied_early;
	bool close_after; /* true: the connection closes normally after the answer to this request */
	bool must_close;  /* true: the end of the body is ambiguous, so no byte after it can be trusted */
	bool body_ended;
	/* number of bytes of the body in the library's buffer that were not taken before the suspension */
	size_t offered;
	uint64_t body_ns;       /* time of the last body bytes */
	uint64_t owed_since_ns; /* time at which the connection entered http->owed */
	uint64_t owed_taken;    /* value of `taken` at the time owed_since_ns */
	uint64_t look_ns;  /* time of the next check whether the body still arrives, while on http->owed */
	struct head *head; /* head of the current request; NULL: idle */
	/* index of the kept reply of the last answer: mostly the next reply has the same form */
	unsigned kept;
};
/* The daemon's memory of an idle connection, in addition to the library's pool (HTTP_POOL_BYTES) and the
 * socket. */
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
	bool hot;       /* true: the daemon has work */
	unsigned calls; /* number of the library's calls about connections of this listener */
	/* number of consecutive runs without a call after which the daemon claimed to have work */
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
	/* connections without a complete head; the one that has waited longest is first */
	struct list unfinished;
	struct peers *peers;
	int open_nr;      /* number of connections in the states PREFACE, COMING and OPEN */
	int leaving_nr;   /* number of connections of open_nr that are being ended */
	uint64_t stamps;  /* stamp that was assigned last */
	uint64_t look_ns; /* time of the next check of connections */
	bool stirred;     /* true: input has arrived since this round began, or a check must be repeated */
	int look_left;    /* number of checks left in this round */
	struct {
		struct hconn *c;
		uint64_t stamp; /* stamp after which a connection has changed */
	} victim[VICTIMS_MAX];
	int victim_nr, victim_at;
	int polls;       /* number of ring operations in flight */
	unsigned idle_s; /* time-out of the library's daemons in s, from the first configuration */
	bool draining, stopping;
	/* true: this version of libmicrohttpd joins folded lines to the name, and stops at a NUL
	 * (mhd_head_check.c) */
	bool folds_wrong;
	struct MHD_Response *canned[2][CANNED_NR]; /* canned answers by dialect */
	struct kept kept[KEPT_NR];
	unsigned kept_next; /* index of the reply that is replaced next */
};

/* ---- conn.c ---- */
/* Returns the connection to http->conns. Neither the library nor the ring may still use it. */
void conn_release(struct hconn *c);
/* Puts the connection on http->todo, for work that is not possible inside the library's calls. */
void conn_todo(struct hconn *c);
/* Gives the connection a head for the request that begins; an existing head is kept. */
void conn_head_get(struct hconn *c);
/* Stores a target of at most HTTP_TARGET_MAX bytes in the connection's head. */
void conn_target_set(struct hconn *c, const char *target, size_t len);
/* Releases the head; a connection without one is allowed. */
void conn_head_put(struct hconn *c);
/* Resumes a suspended connection in the library. */
void conn_resume(struct hconn *c);
/* Resets the TCP connection, so that no client takes the bytes sent so far for the complete answer. */
void conn_reset(struct hconn *c);
/* Resets the connection and makes the library end it, in any state. */
void conn_abort(struct hconn *c);
/* Makes the library end an idle connection normally, as if the client had closed it. */
void conn_dismiss(struct hconn *c);

/* Converts a mapped IPv4 address to IPv4, which callers expect. */
void conn_unmap(struct sockaddr_storage *sa);
/* Removes the connection from all counts of open connections. */
void conn_uncount(struct hconn *c);
/* Closes a connection that waits for its preface. */
void conn_drop(struct hconn *c);

/* ---- http.c ---- */
/* Counts the connection for its address. 0, or an error of peers_add(). */
int conn_count_peer(struct hconn *c);
/* Hands the connection to the library. Returns 0, or -errno: the connection was freed. */
int conn_start(struct hconn *c);

/* ---- preface.c ---- */
/* Begins to wait for the header of the PROXY protocol, or for other bytes in its place; conn_start()
 * follows. */
void preface_begin(struct hconn *c);
/* Continues reading, when input is available. */
void preface_read(struct hconn *c);
/* Ends the connections whose header takes too long. Returns the time of the next check. */
uint64_t preface_run(struct http *h, uint64_t now_ns);

/* ---- admit.c ---- */
/* Checks some connections for a late head, if a check is due. */
void admit_run(struct http *h, uint64_t now);
/* Returns the time of the next check; UINT64_MAX: at the next input. */
uint64_t admit_due_ns(const struct http *h);
/* Begins the time-outs of a connection that the library has. */
void admit_opened(struct hconn *c);
/* Restarts the time-outs after a request. */
void admit_request_over(struct hconn *c);
/* Makes room for one more connection, if necessary by ending another one. Returns false if that is
 * impossible. */
bool admit_room(struct http *h);
/* Ends the connection that has waited longest for the rest of its head. Returns false if there is no such
 * connection. */
bool admit_half_head(struct http *h);

/* ---- mhd_head_check.c ---- */
/* Stores the raw target, before the library parses the head (MHD_OPTION_URI_LOG_CALLBACK). */
void *head_target(void *cls, const char *uri, struct MHD_Connection *mc);
/* Collects the fields in the first call of a request and refuses errors that dialect/ cannot see. Returns the
 * answer to give, or CANNED_NR for a valid head. */
enum canned head_check(struct hconn *c, const char *method, const char *version);

/* ---- call.c: the library's calls ---- */
/* Handles MHD_AccessHandlerCallback: the head, parts of the body, its end. */
enum MHD_Result on_call(void *cls, struct MHD_Connection *mc, const char *url, const char *method,
			const char *version, const char *data, size_t *data_len, void **req_cls);
/* Ends the request of a connection (MHD_OPTION_NOTIFY_COMPLETED). */
void on_completed(void *cls, struct MHD_Connection *mc, void **req_cls, enum MHD_RequestTerminationCode why);

/* ---- answer.c ---- */
/* Queues the ready reply of c->rq. MHD_NO closes the connection. */
enum MHD_Result answer_reply(struct hconn *c);
/* Queues an answer that needs no request.  MHD_NO closes the connection. */
enum MHD_Result answer_canned(struct hconn *c, enum canned which, const struct req_in *in);
/* Makes the canned answers.  0 or -ENOMEM. */
int answer_init(struct http *h);
/* Frees the canned and the kept answers. */
void answer_fini(struct http *h);

/* ---- past_library.c: answers written to the socket; each answer is the last of its connection ---- */
struct past_answer {
	char s[8192 + 2048]; /* text of the answer: the largest text of an error, and headers */
	size_t len;
	bool cut; /* true: the text was truncated */
	enum conf_dialect dialect;
};
/* Begins an answer: its status line and the date. */
void past_begin(struct past_answer *a, const struct hconn *c, int status);
/* Adds a header field; cookie is the answer. */
void past_line(void *cookie, const char *name, const char *value);
/* Ends the head and adds len bytes of body; NULL: only the length is announced. */
void past_end(struct past_answer *a, bool has_length, const char *body, uint64_t len);
/* Writes the answer to the socket. Returns false if it was not written completely. */
bool past_send(struct hconn *c, const struct past_answer *a);
/* Closes the daemon's side of the connection: later output of the library is discarded. */
void past_close(struct hconn *c);
/* Answers input that did not become a request with f; why NULL: the sentence of the fault is used. Returns
 * false if the answer was not written completely. */
bool past_refuse(struct hconn *c, enum fault f, const char *why);

/* ---- mhd_own_answer.c ---- */
/* Queues an answer of the daemon, as MHD_queue_response() does for other programs. */
enum MHD_Result mhd_queue(struct MHD_Connection *mc, unsigned status, struct MHD_Response *resp);
/* Runs a daemon; answers that the library would make itself are replaced here. */
void mhd_run(struct MHD_Daemon *d);

/* ---- mhd_early_reply.c ---- */
/* Puts c on http->owed, because the reply is ready and the library waits for the rest of the body. */
void early_reply_watch(struct hconn *c);
/* Removes c from http->owed; a connection outside of the list is allowed. */
void early_reply_forget(struct hconn *c);
/* Answers the connections on http->owed whose body has stopped. Called outside of the library's calls.
 * Returns true if the library must run again. */
bool early_reply_run(struct http *h);

/* ---- mhd_linger.c ---- */
/* Keeps the socket that the library is about to close, so that an answer can reach the client first. */
void linger_begin(struct hconn *c);
/* Reads from a lingering socket that can be read or was closed. */
void linger_poll(struct hconn *c);
/* Ends the connection that has lingered longest, if any. */
void linger_end_oldest(struct http *h);
/* Ends the connections that have lingered long enough (all: every lingering connection). Returns the time of
 * the next end. */
uint64_t linger_run(struct http *h, uint64_t now_ns, bool all);

#endif
