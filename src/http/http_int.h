/* What the files of http/ share: connections, listeners, canned answers.  Everything on the core's thread. */
#ifndef GANTRY_HTTP_HTTP_INT_H
#define GANTRY_HTTP_HTTP_INT_H

#include "base/list.h"
#include "http/http.h"
#include "ring/ring.h"

#include <microhttpd.h>

#define HTTP_TARGET_MAX 8192        /* bytes of a request target; longer is 400 */
#define HTTP_HEADER_MAX (16u << 10) /* bytes of target and fields together; more is 431 */
#define HTTP_FIELD_BYTES 64         /* what the library notes of a field, beside its text */
#define HTTP_NOTED_MAX (20u << 10)  /* bytes of text and notes together; more is 431, too */
/*
 * libmicrohttpd's memory per connection: the largest head, and 4 KiB for the head of its reply.  It clears
 * one and a half times as much for each request, and with many connections all of that is in no cache: 32 KiB
 * cost every small request 4 % more.
 */
#define HTTP_POOL_BYTES (24u << 10)
#define HTTP_STREAM_BYTES (64u << 10)

/* Answers that need no request: made once per dialect. */
enum canned { CANNED_BAD, CANNED_BAD_URI, CANNED_TOO_LARGE, CANNED_BUSY, CANNED_NR };

enum conn_where {
	CONN_FREE,    /* on http->free */
	CONN_COMING,  /* given to libmicrohttpd, which has not said hello yet */
	CONN_OPEN,    /* on http->open */
	CONN_CLOSED,  /* libmicrohttpd has let go; waits for its poll to come back */
	CONN_LINGERS, /* the same, and reads off what still comes (linger.c); on http->lingering */
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

struct hconn {
	struct listener *l;
	struct list link;
	struct list todo; /* on http->todo: something to do when the library has returned */
	struct list owed; /* on http->owed: the reply is there, the rest of the body is not (past.c) */
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

	/* the request */
	enum conn_stage stage;
	struct req *rq;
	bool suspended;
	bool park;        /* suspend it when the library has returned (call.c) */
	bool has_body;    /* the fields announce one */
	bool past;        /* answered past the library (past.c): to be closed, nothing more to be said */
	bool close_after; /* the connection ends with this request's answer, in good order */
	bool must_close;  /* the fields contradict each other: nothing after this request can be trusted */
	bool body_ended;
	uint64_t body_ns; /* when the last of the body came */
	uint64_t owed_since_ns,
		look_ns; /* on http->owed: since when, and when to look whether the body flows */
	int field_nr;
	size_t header_bytes;
	size_t target_len; /* > HTTP_TARGET_MAX: cut off */
	const char *uri;   /* where the library has it; only to be compared */
	unsigned kept;     /* the one that its last reply was written into: mostly the next one is the same */
	char expect[16];   /* the value of Expect, which the library must not see (door.c) */
	char target[HTTP_TARGET_MAX + 1];
	struct field fields[DIALECT_FIELDS_MAX];
};

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
	struct hconn *conns;
	struct list free, coming, open, lingering, todo, owed;
	int open_nr;     /* coming and open */
	int polls;       /* ring operations in flight */
	unsigned idle_s; /* the daemons' own: what conf said at first */
	bool draining, stopping;
	bool folds_wrong; /* this libmicrohttpd glues folded lines to the name, and stops at a NUL (door.c) */
	struct MHD_Response *canned[2][CANNED_NR]; /* by dialect */
	struct kept kept[KEPT_NR];
	unsigned kept_next; /* the one to give up next */
};

/* ---- http.c ---- */
/* The connection is with nobody any more and its poll came back: free again. */
void conn_release(struct hconn *c);
/* Lets the daemon look at a connection that it was told to leave alone. */
void conn_resume(struct hconn *c);
/* Looks at it when the library has returned. */
void conn_todo(struct hconn *c);
/* Ends it with a reset: no client may take what came so far for the whole. */
void conn_reset(struct hconn *c);
/* The same, whatever the library waits for. */
void conn_abort(struct hconn *c);

/* ---- door.c ---- */
/* Before the head is parsed: keeps the raw target. */
void *door_target(void *cls, const char *uri, struct MHD_Connection *mc);
/* The first call of a request: gathers the fields and looks at what dialect/ cannot see.  CANNED_NR: fine. */
enum canned door_check(struct hconn *c, const char *method, const char *version);

/* ---- call.c: the library's calls ---- */
enum MHD_Result on_call(void *cls, struct MHD_Connection *mc, const char *url, const char *method,
			const char *version, const char *data, size_t *data_len, void **req_cls);
void on_completed(void *cls, struct MHD_Connection *mc, void **req_cls, enum MHD_RequestTerminationCode why);

/* ---- answer.c ---- */
/* Queues the reply that c->rq has ready. */
enum MHD_Result answer_reply(struct hconn *c);
enum MHD_Result answer_canned(struct hconn *c, enum canned which);
int answer_init(struct http *h);
void answer_fini(struct http *h);

/* ---- past.c ---- */
/* The reply is ready, and the library waits for the rest of the body. */
void past_watch(struct hconn *c);
/* It does so no more. */
void past_forget(struct hconn *c);
/* Answers those whose rest does not come.  Outside of the library's calls; true: it has to run again. */
bool past_run(struct http *h);

/* ---- linger.c ---- */
/* The library is about to close c's socket: keeps it if an answer has to get through first. */
void linger_begin(struct hconn *c);
/* The socket can be read, or was closed. */
void linger_poll(struct hconn *c);
/* Ends those that lingered long enough (all: every one).  Returns when the next one is due. */
uint64_t linger_run(struct http *h, uint64_t now_ns, bool all);

#endif
