/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of http/ share: connections, listeners, canned answers.  Everything on the core's thread.
 *
 *   http.c             daemons and connections: made, run, drained, ended
 *   conn.c             what is done to one connection
 *   admit.c            who may have a connection; how long a head may take
 *   preface.c          headers of the PROXY protocol, in front of HTTP and TLS (proxy.c reads them)
 *   peers.c            how many connections an address has
 *   call.c             the library's calls about a request
 *   answer.c           replies handed to the library
 *   past_library.c     answers written to the socket
 *   mhd_head_check.c   refuses heads that libmicrohttpd lets through
 *   mhd_early_reply.c  answers before the end of a body that does not come
 *   mhd_own_answer.c   answers in place of those that libmicrohttpd would make by itself
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

#define HTTP_TARGET_MAX DIALECT_TARGET_MAX /* longer is 400 */
#define HTTP_HEADER_MAX (16u << 10)        /* bytes of target and fields together; more is 431 */
#define HTTP_FIELD_BYTES 64                /* what the library notes of a field, beside its text */
#define HTTP_NOTED_MAX (20u << 10)         /* bytes of text and notes together; more is 431, too */
/*
 * libmicrohttpd's memory per connection: the largest head, and 4 KiB for the head of its reply.  It clears
 * one and a half times as much for each request, and with many connections all of that is in no cache: 32 KiB
 * cost every small request 4 % more.
 */
#define HTTP_POOL_BYTES (24u << 10)
#define HTTP_STREAM_BYTES (64u << 10)
/* Connections beyond limits.connections, for those that are on their way out: as many as may come in one turn
 * of the loop. */
#define HTTP_SPARE 4096
#define VICTIMS_MAX 64

/* Answers that need no request: made once per dialect. */
enum canned { CANNED_BAD, CANNED_BAD_URI, CANNED_TOO_LARGE, CANNED_BUSY, CANNED_NR };

enum conn_where {
	CONN_FREE,    /* in http->conns */
	CONN_PREFACE, /* on http->prefacing: the header of the PROXY protocol is not there yet */
	CONN_COMING,  /* given to libmicrohttpd, which has not said hello yet */
	CONN_OPEN,    /* on http->open */
	CONN_CLOSED,  /* libmicrohttpd has let go; waits for its poll to come back */
	CONN_LINGERS, /* the same, and reads off what still comes (mhd_linger.c); on http->lingering */
};

/* Where the request of a connection stands, seen from the library's calls. */
enum conn_stage {
	STAGE_IDLE,   /* none, or its head has not been handed to us yet */
	STAGE_HEAD,   /* the first call: nothing of a body was read */
	STAGE_BODY,   /* body bytes come, or the last call is next */
	STAGE_ANSWER, /* a response is queued */
};

/*
 * A reply without a body that was sent before.  The library copies each header into three pieces of memory of
 * their own; the next reply mostly has the same names and values just as long, which are then written over
 * the old ones.  A core keeps a few of them for all of its connections: one for each would be memory that no
 * cache holds by the time it is used again.
 */
#define KEPT_NR 8
#define KEPT_HEADERS_MAX 16
struct kept {
	struct MHD_Response *resp; /* NULL: none */
	int nr;
	bool other; /* while comparing: it does not fit */
	int at;
	struct {
		const char *name; /* the library's copies */
		char *value;
		size_t len;
	} header[KEPT_HEADERS_MAX];
};

/*
 * The head of a request.  A connection has one from the request line to the end of the request and none while
 * it is idle; a core has a pool of as many as it may have connections.
 */
#define HEAD_TARGET_SHORT 1024
struct head {
	int field_nr;
	size_t header_bytes;
	size_t target_len; /* > HTTP_TARGET_MAX: cut off */
	const char *uri;   /* where the library has it; only to be compared */
	char expect[16];   /* the value of Expect, which the library must not see (mhd_head_check.c) */
	char *target; /* short_target, or for a longer one memory of http->long_targets; req/ decodes it in place */
	char short_target[HEAD_TARGET_SHORT];
	struct field fields[DIALECT_FIELDS_MAX];
};

/* The header of the PROXY protocol, as far as it has come. */
struct preface {
	size_t have, need; /* need is PROXY_FIRST until these are there */
	bool stranger;     /* no balancer, who must not send one */
	uint8_t bytes[PROXY_HEADER_MAX];
};

struct hconn {
	struct listener *l;
	struct list link;
	struct list todo; /* on http->todo: something to do when the library has returned */
	struct list
		owed; /* on http->owed: the reply is there, the rest of the body is not (mhd_early_reply.c) */
	enum conn_where where;
	struct MHD_Connection *mc;
	int fd;
	struct sockaddr_storage local, peer;

	/* Watches for the client's end of the connection closing; later for what lingers. */
	struct ring_op poll;
	bool polling;
	bool gone;    /* it closed */
	bool aborted; /* end it, whatever it does */
	bool linger;  /* we closed with input unread: read on for a while so that the answer arrives */
	int linger_fd;
	uint64_t linger_until_ns;
	uint64_t lingered_bytes;

	/* who may have it (admit.c) */
	struct peer *peer_count; /* NULL: not known yet whose it is */
	struct preface *preface; /* NULL: there is none, or not any more */
	struct list unfinished;  /* on http->unfinished: no whole head has come yet, or one has begun */
	uint64_t stamp;          /* of its beginning, then of its last request's end: larger is later */
	uint64_t taken;          /* bytes that belong to requests; over TLS records */
	uint64_t bytes;   /* over TLS: that had come by the end of the last request, or of the handshake */
	uint64_t head_ns; /* when a head, or a handshake, began; 0: none has, as far as is known */
	bool shaken;      /* the handshake is over */
	bool leaving;     /* it was told to go */

	/* the request */
	enum conn_stage stage;
	struct req *rq;
	bool suspended;
	bool park;     /* suspend it when the library has returned (call.c) */
	bool has_body; /* the fields announce one */
	bool replied_early; /* answered past the library (mhd_early_reply.c): to be closed, nothing more to be said */
	bool close_after; /* the connection ends with this request's answer, in good order */
	bool must_close;  /* where the body ends is a matter of opinion: nothing behind it can be trusted */
	bool body_ended;
	size_t offered;   /* of the body, in the library's buffer: what was not taken when it was suspended */
	uint64_t body_ns; /* when the last of the body came */
	uint64_t owed_since_ns,
		look_ns;   /* on http->owed: since when, and when to look whether the body flows */
	struct head *head; /* NULL: idle */
	unsigned kept;     /* the one that its last reply was written into: mostly the next one is the same */
};
/* What an idle kept-alive connection takes of us, beside the library's pool (HTTP_POOL_BYTES) and the
 * socket. */
_Static_assert(sizeof(struct hconn) <= 4096, "an idle connection is small");
/* Together with struct req (req/machine.h) a request in flight has at most 24 KiB of us. */
_Static_assert(sizeof(struct hconn) + sizeof(struct head) <= REQ_OUTSIDE_BYTES,
	       "a connection with a request");

struct listener {
	struct http *h;
	const struct conf_listen *conf;
	struct tls_cert *cert; /* NULL: plain HTTP */
	struct MHD_Daemon *d;
	int epfd;
	struct ring_op poll;
	bool polling;
	bool hot;        /* the daemon has something to do */
	uint64_t due_ns; /* when one of its own time-outs passes */
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
	struct list unfinished; /* the one that has waited longest for its head first */
	struct peers *peers;
	int open_nr;      /* prefacing, coming and open */
	int leaving_nr;   /* of these, told to go */
	uint64_t stamps;  /* given out */
	uint64_t look_ns; /* when the next connections are looked at */
	bool stirred;     /* something came since this round began, or has to be looked at again */
	int look_left;    /* of this round */
	struct {
		struct hconn *c;
		uint64_t stamp; /* it has another: it is not what it was */
	} victim[VICTIMS_MAX];
	int victim_nr, victim_at;
	int polls;       /* ring operations in flight */
	unsigned idle_s; /* the daemons' own: what conf said at first */
	bool draining, stopping;
	bool folds_wrong; /* this libmicrohttpd glues folded lines to the name, and stops at a NUL (mhd_head_check.c) */
	struct MHD_Response *canned[2][CANNED_NR]; /* by dialect */
	struct kept kept[KEPT_NR];
	unsigned kept_next; /* the one to give up next */
};

/* ---- conn.c ---- */
/* Gives the connection back to http->conns.  Neither the library nor the ring may still have it. */
void conn_release(struct hconn *c);
/* Puts the connection on http->todo, for what cannot be done inside the library's calls. */
void conn_todo(struct hconn *c);
/* Gives the connection a head for the request that begins; one that has a head keeps it. */
void conn_head_get(struct hconn *c);
/* Keeps a target of at most HTTP_TARGET_MAX bytes in the connection's head. */
void conn_target_set(struct hconn *c, const char *target, size_t len);
/* Takes the head back; a connection without one is fine. */
void conn_head_put(struct hconn *c);
/* Lets the library go on with a connection that is suspended. */
void conn_resume(struct hconn *c);
/* Resets the TCP connection, so that no client takes what came so far for the whole. */
void conn_reset(struct hconn *c);
/* Resets the connection and has the library end it, whatever it waits for. */
void conn_abort(struct hconn *c);
/* Has the library end an idle connection in good order, as if the client had. */
void conn_dismiss(struct hconn *c);

/* Makes an IPv4 address of one that is mapped into IPv6, since everybody above takes it for IPv4. */
void conn_unmap(struct sockaddr_storage *sa);
/* Takes the connection out of all counts of open ones. */
void conn_uncount(struct hconn *c);
/* Closes a connection that waits for its preface. */
void conn_drop(struct hconn *c);

/* ---- http.c ---- */
/* Counts the connection for its address.  0, or as peers_add(). */
int conn_count_peer(struct hconn *c);
/* Hands the connection to the library.  0 or -errno; then it is gone. */
int conn_start(struct hconn *c);

/* ---- preface.c ---- */
/* Begins to wait for the header of the PROXY protocol, or to see that there is none; what follows it is
 * conn_start(). */
void preface_begin(struct hconn *c);
/* Reads on, when there is something to read. */
void preface_read(struct hconn *c);
/* Ends the connections whose header takes too long.  Returns when the next one is due. */
uint64_t preface_run(struct http *h, uint64_t now_ns);

/* ---- admit.c ---- */
/* Looks at some connections, whether a head takes too long there, if that is due. */
void admit_run(struct http *h, uint64_t now);
/* Returns when that is due; UINT64_MAX: when something comes. */
uint64_t admit_due_ns(const struct http *h);
/* Begins to count for a connection that the library has. */
void admit_opened(struct hconn *c);
/* Begins to count anew for what comes behind a request. */
void admit_request_over(struct hconn *c);
/* Sees that there is room for one more connection, by ending another if need be.  False: there is none. */
bool admit_room(struct http *h);
/* Ends the connection that has waited longest for the rest of its head.  False: there is none. */
bool admit_half_head(struct http *h);

/* ---- mhd_head_check.c ---- */
/* Keeps the raw target, before the library parses the head (MHD_OPTION_URI_LOG_CALLBACK). */
void *head_target(void *cls, const char *uri, struct MHD_Connection *mc);
/* Gathers the fields in the first call of a request and refuses what dialect/ cannot see.  Returns the answer
 * to give, or CANNED_NR when the head is fine. */
enum canned head_check(struct hconn *c, const char *method, const char *version);

/* ---- call.c: the library's calls ---- */
/* Handles MHD_AccessHandlerCallback: the head, parts of the body, its end. */
enum MHD_Result on_call(void *cls, struct MHD_Connection *mc, const char *url, const char *method,
			const char *version, const char *data, size_t *data_len, void **req_cls);
/* Ends the request of a connection (MHD_OPTION_NOTIFY_COMPLETED). */
void on_completed(void *cls, struct MHD_Connection *mc, void **req_cls, enum MHD_RequestTerminationCode why);

/* ---- answer.c ---- */
/* Queues the reply that c->rq has ready.  MHD_NO closes the connection. */
enum MHD_Result answer_reply(struct hconn *c);
/* Queues an answer that needs no request.  MHD_NO closes the connection. */
enum MHD_Result answer_canned(struct hconn *c, enum canned which, const struct req_in *in);
/* Makes the canned answers.  0 or -ENOMEM. */
int answer_init(struct http *h);
/* Frees the canned and the kept answers. */
void answer_fini(struct http *h);

/* ---- past_library.c: answers written to the socket, each the last of its connection ---- */
struct past_answer {
	char s[8192 + 2048]; /* the largest text of an error, and headers */
	size_t len;
	bool cut; /* there was more than room */
	enum conf_dialect dialect;
};
/* Begins an answer: its status line and the date. */
void past_begin(struct past_answer *a, const struct hconn *c, int status);
/* Adds a header field; cookie is the answer. */
void past_line(void *cookie, const char *name, const char *value);
/* Ends the head and adds len bytes of body; NULL: none of them, len is said only. */
void past_end(struct past_answer *a, bool has_length, const char *body, uint64_t len);
/* Writes it.  False: not all of it went out. */
bool past_send(struct hconn *c, const struct past_answer *a);
/* Ends our side of the connection: what the library still has for it goes nowhere. */
void past_close(struct hconn *c);
/* Answers what never became a request with f; why NULL: the fault's own sentence.  False: not all of it went
 * out. */
bool past_refuse(struct hconn *c, enum fault f, const char *why);

/* ---- mhd_own_answer.c ---- */
/* Queues an answer of ours, as MHD_queue_response() does for everybody else. */
enum MHD_Result mhd_queue(struct MHD_Connection *mc, unsigned status, struct MHD_Response *resp);
/* Runs a daemon; what the library would answer by itself is answered here. */
void mhd_run(struct MHD_Daemon *d);

/* ---- mhd_early_reply.c ---- */
/* Puts c on http->owed: its reply is ready, and the library waits for the rest of the body. */
void early_reply_watch(struct hconn *c);
/* Takes c off http->owed; one that is not on it is fine. */
void early_reply_forget(struct hconn *c);
/* Answers the connections on http->owed whose body does not go on.  Called outside of the library's calls.
 * Returns true when the library has to run again. */
bool early_reply_run(struct http *h);

/* ---- mhd_linger.c ---- */
/* Keeps the socket that the library is about to close, where an answer has to get through first. */
void linger_begin(struct hconn *c);
/* Reads from a lingering socket that can be read or was closed. */
void linger_poll(struct hconn *c);
/* Ends the connection that has lingered longest, if there is one. */
void linger_end_oldest(struct http *h);
/* Ends the connections that lingered long enough (all: every one).  Returns when the next one is due. */
uint64_t linger_run(struct http *h, uint64_t now_ns, bool all);

#endif
