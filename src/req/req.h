/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine of requests: from header fields to a reply, in steps (docs/architecture.md, "The life of
 * a GET").
 *
 * Each core has a struct reqs; all functions run on the core's thread. req/ knows no HTTP library: http/
 * hands header fields and body bytes in, and is notified through struct reply_ops when a reply or more body
 * is ready. The services that req/ uses are in struct req_env, filled in by core/.
 *
 * The life of a request as http/ sees it:
 *
 *   req_begin() -> [req_body() ...] -> req_body_end() -> ops->ready()
 *               -> req_reply() -> [req_stream_read() ...] -> req_end()
 *
 * A reply can be ready early. If it is ready when req_begin() returns, http/ answers before the body is read,
 * and closes the connection if the request has a body. If it is ready in the middle of a body, the rest of
 * the body is read and discarded while it arrives. ops->ready() is never called from inside a call of http/
 * into req/; the caller checks req_is_ready() afterwards.
 */
#ifndef GANTRY_REQ_REQ_H
#define GANTRY_REQ_REQ_H

#include "conf/conf.h"
#include "dialect/dialect.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Limit, in bytes, of the memory that http/ uses for the connection and the head of a request in flight. This
 * memory and struct req together take 24 KiB. */
#define REQ_OUTSIDE_BYTES 4704u

struct auth_keys;
struct auth_replay;
struct bufpool;
struct chan;
struct op_entry;
struct rdma;
struct req;
struct reqs;
struct stats_core;
struct store_port;
struct timers;
struct walks;

/* Functions of http/. conn is the pointer of http/ that was passed to req_begin(). */
struct reply_ops {
	/* Resumes the connection: the reply is ready, a stream has more bytes, or the request takes more
	 * bytes of the body. */
	void (*ready)(void *conn);
	/* Resets the connection, because the client does not read the answer. Called by a timer. */
	void (*abort)(void *conn);
	/* Returns the number of bytes of a body, including its framing, that have arrived and were not passed
	 * to the request yet. */
	uint64_t (*arrived)(void *conn);
	/* Returns the number of bytes of the answer that the kernel has and the client has not
	 * acknowledged. */
	uint64_t (*unsent)(void *conn);
};

/* The latest refusal of a request for want of space, shared by all cores. Zeroed: there was none. */
struct space_want {
	_Atomic uint64_t at_ns; /* time of the refusal by clock_ns(); 0: none */
	_Atomic uint64_t left;  /* number of bytes that are still to be freed */
	_Atomic uint64_t lane;  /* lane of the refused key + 1 (store_lane()); 0: the store has no lanes */
	/* number of bytes that slow requests of each core hold, and the at_ns of the refusal after which the core
	 * counted them */
	_Atomic uint64_t held[CONF_CORES_MAX], seen_ns[CONF_CORES_MAX];
};

struct req_env {
	const struct conf *conf;
	struct store_port *store;
	struct chan *chan;
	struct rdma *rdma;
	struct bufpool *bufs; /* pool of buffers for pieces of requests with a descriptor */
	/* pool of buffers for pieces of HTTP bodies, which is limited separately */
	struct bufpool *http_bufs;
	struct timers *timers;
	struct stats_core *stats;
	const struct reply_ops *ops;
	const struct op_entry *operations; /* code of the operations, by enum op: op_table of ops/ops.h */
	/* Credentials; NULL: there are no access keys. A reload replaces the credentials on the core's
	 * thread; running requests keep a reference to the old credentials. */
	struct auth_keys *keys;
	/* table of used signatures (auth.replay); NULL: repeated signatures are not detected */
	struct auth_replay *replay;
	const struct walks *walks; /* walks of the core (walk/walks.h) */
	/* Number of new requests that will be traced from their beginning, shared by all cores; NULL: no
	 * tracing. */
	_Atomic int *trace_next;
	struct space_want *want; /* NULL: no request is ended for want of space */
	/* Called before each request and each step of a request, outside of any request, for work of the core
	 * that does not wait for the next turn; must not call req/ or http/. NULL: not called. */
	void (*between)(void *cookie);
	void *between_cookie;
	int core;
};

/* A configuration that the requests of one core use. Requests have pointers into the configuration until they
 * end. After the end of its last request unused() is called on the core's thread. */
struct req_conf {
	const struct conf *conf;
	struct auth_keys *keys;
	int users; /* number of requests that use the configuration, counted by req/ */
	void (*unused)(struct req_conf *use);
};

/* Makes the request structs of a core, limits.requests of them. Returns 0 or -ENOMEM. */
int reqs_new(const struct req_env *env, struct reqs **ret_reqs);
/* Frees the request structs of a core, in which no request is live. NULL is allowed. */
void reqs_free(struct reqs *rs);

/* Runs every request that is ready; called once per turn of the loop. Returns the number of steps run. */
int reqs_run(struct reqs *rs);
/* Sets the configuration of requests that begin from now on. Its limits also apply to running requests.
 * Before the first call env->conf is used. */
void reqs_set_conf(struct reqs *rs, struct req_conf *use);
/* Logs every step of the live request with this id from now on. Returns false if there is no such request. */
bool reqs_trace(struct reqs *rs, const char *id);
/* Returns the number of transfers that wait for a buffer. */
int reqs_queued(const struct reqs *rs);
/* Returns the number of requests that have not ended, including draining ones. */
int reqs_live(const struct reqs *rs);
/* Refuses new requests with 503 and Retry-After from now on (on: true), or accepts them again (on: false). */
void reqs_drain(struct reqs *rs, bool on);
/* Passes one line for each live request to line(): id, operation, step, age, holds. */
void reqs_dump(const struct reqs *rs, void (*line)(void *cookie, const char *text), void *cookie);
/* Passes the line of the live request with this id to line(), then a line for each of its latest traced
 * steps. Returns false if there is no such request. */
bool reqs_show(const struct reqs *rs, const char *id, void (*line)(void *cookie, const char *text),
	       void *cookie);

struct req_in {
	/* head of the request, without uri; http/ keeps its fields and strings until req_end() */
	struct dialect_in in;
	/* Target of the request line, terminated. req/ decodes it in place; http/ keeps the memory until
	 * req_end(). */
	char *target;
	size_t target_len;
	const struct sockaddr *local, *peer; /* addresses of the connection, kept by http/ until req_end() */
	uint32_t client;                     /* id of the client, from reqs_client_of() */
	void *conn;
};

/* Returns the id of the client at an address. http/ asks once for each connection. */
uint32_t reqs_client_of(const struct reqs *rs, const struct sockaddr *peer);

/* Writes a line of the access log for a message that was answered with f before a request began, and the id
 * for the answer to out: 16 digits and a NUL, as in x-amz-request-id. in->target may be NULL. */
void reqs_refused(struct reqs *rs, const struct req_in *in, enum fault f, char out[17]);

/* Begins a request: parses and authorises it, and starts its first operations. Returns NULL if no request
 * struct is free: http/ then answers 503 SlowDown. */
struct req *req_begin(struct reqs *rs, const struct req_in *in);
/* Returns true if the body must be passed to req_body() before the reply. */
bool req_wants_body(const struct req *rq);
/* Takes at most len bytes of the body. Returns the number of bytes taken; fewer than len: the caller suspends
 * the connection until ops->ready(). */
size_t req_body(struct req *rq, const void *data, size_t len);
/* Notes that the whole body was passed to req_body(). */
void req_body_end(struct req *rq);
/* Notes that the client has closed its side of the connection. A request with a descriptor is cancelled and
 * drained. */
void req_gone(struct req *rq);
/* Returns true if the request has a descriptor that its operation uses. */
bool req_is_tokened(const struct req *rq);
/* Returns true if the reply is ready. */
bool req_is_ready(const struct req *rq);

enum reply_body {
	REPLY_EMPTY,
	REPLY_TEXT,
	REPLY_STREAM,
	REPLY_LENGTH_ONLY /* the answer to a HEAD: it has Content-Length and no body */
};
struct reply {
	int status;
	enum reply_body body;
	const char *text; /* body of the reply for REPLY_TEXT, in the request's memory */
	uint64_t len_bytes;
	bool close; /* true: the connection must be closed after this reply */
	/* true: the connection must be closed immediately; the rest of the request's body is not read */
	bool at_once;
};
/* Returns the reply; valid from req_is_ready() to req_end(). */
const struct reply *req_reply(struct req *rq);
/* Passes each header field of the reply, except Content-Length, to header(). name: in the spelling of the
 * listener's dialect; name and value are terminated. http/ adds Content-Length. */
void req_reply_headers(struct req *rq, void (*header)(void *cookie, const char *name, const char *value),
		       void *cookie);
/* Reads at most max bytes of a REPLY_STREAM, from the position pos on, which never decreases. Returns the
 * number of bytes read; 0: no bytes yet, the caller suspends the connection until ops->ready(); -errno: the
 * caller resets the connection. */
ssize_t req_stream_read(struct req *rq, uint64_t pos, void *buf, size_t max);

/* Notes that http/ no longer needs the request: its reply was sent (sent: true), or the connection has failed
 * (sent: false). The request is freed when none of its operations is in flight. */
void req_end(struct req *rq, bool sent);

#endif
