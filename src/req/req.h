/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request machine: from header fields to a reply, in steps (docs/architecture.md, "The life of a GET").
 *
 * One struct reqs per core, everything on that core's thread.  req/ knows no HTTP library: http/ hands header
 * fields and body bytes in, and gets told through struct reply_ops when a reply or more body is there.  It
 * finds its services in struct req_env, filled in by core/.
 *
 * The life of a request as http/ sees it:
 *
 *   req_begin() -> [req_body() ...] -> req_body_end() -> ops->ready()
 *               -> req_reply() -> [req_stream_read() ...] -> req_end()
 *
 * A reply may be ready early: already when req_begin() returns (then http/ answers before any body was read
 * and closes the connection if one was coming), or in the middle of a body (the rest is read and thrown
 * away while it flows).  ops->ready() is never called from inside a call of http/ into req/; whoever calls in
 * looks at req_is_ready() afterwards.
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

/* What http/ may have of a request in flight, the connection and its head: with struct req 24 KiB. */
#define REQ_OUTSIDE_BYTES 4736u

struct auth_keys;
struct auth_replay;
struct bufpool;
struct chan;
struct expiry;
struct op_entry;
struct rdma;
struct req;
struct reqs;
struct stats_core;
struct store_port;
struct timers;

/* Filled in by http/.  conn is http's own pointer, as given to req_begin(). */
struct reply_ops {
	/* The reply is there, or a stream that had nothing has bytes, or a body that was not taken can be:
	 * resume. */
	void (*ready)(void *conn);
	/* Nobody takes the bytes that were promised: end the connection (a timer's doing). */
	void (*abort)(void *conn);
	/* Returns how many bytes of a body have arrived, or of what it is wrapped in, and were not taken. */
	uint64_t (*arrived)(void *conn);
	/* Returns how many bytes of the answer the kernel has and the client does not. */
	uint64_t (*unsent)(void *conn);
};

struct req_env {
	const struct conf *conf;
	struct store_port *store;
	struct chan *chan;
	struct rdma *rdma;
	struct bufpool *bufs;      /* pieces of tokened requests */
	struct bufpool *http_bufs; /* pieces of HTTP bodies: their own quota */
	struct timers *timers;
	struct stats_core *stats;
	const struct reply_ops *ops;
	const struct op_entry *operations; /* by enum op: op_table of ops/ops.h */
	/* Credentials; NULL: none.  A reload puts others here, on the core's own thread; requests that run
	 * keep a reference of their own. */
	struct auth_keys *keys;
	struct auth_replay *replay; /* NULL: off */
	struct expiry *expiry;      /* for x-amz-expiration (walk/expiry.h); NULL: no answer has it */
	/* So many requests, of all cores, are traced from their beginning; NULL: none ever. */
	_Atomic int *trace_next;
	int core;
};

/* A configuration as the requests of one core use it.  Requests point into it until they are gone, so it goes
 * when the last of them does: unused() is called then, on the core's thread. */
struct req_conf {
	const struct conf *conf;
	struct auth_keys *keys;
	int users; /* req/'s */
	void (*unused)(struct req_conf *use);
};

/* Makes a core's requests, limits.requests of them.  0 or -ENOMEM. */
int reqs_new(const struct req_env *env, struct reqs **ret_reqs);
/* Frees them; none may be live.  NULL is fine. */
void reqs_free(struct reqs *rs);

/* Runs every request that became ready to go on; called once per turn of the loop.  Returns how many steps
 * ran. */
int reqs_run(struct reqs *rs);
/* Gives a configuration to the requests that begin from now on, and its limits to those that run.  Before the
 * first call env->conf is used, which nobody counts. */
void reqs_set_conf(struct reqs *rs, struct req_conf *use);
/* Logs every step of the live request with that id from now on; false: there is none. */
bool reqs_trace(struct reqs *rs, const char *id);
/* Returns how many transfers wait for a buffer. */
int reqs_queued(const struct reqs *rs);
/* Returns how many requests are not gone yet, drained ones included. */
int reqs_live(const struct reqs *rs);
/* Makes new requests be answered 503 with Retry-After from now on, or ends that. */
void reqs_drain(struct reqs *rs, bool on);
/* Hands out one line for each live request: id, operation, step, age, holds. */
void reqs_dump(const struct reqs *rs, void (*line)(void *cookie, const char *text), void *cookie);
/* Hands out the line of one request, then one for each of its latest steps since it is traced.  false: no
 * live one has that id. */
bool reqs_show(const struct reqs *rs, const char *id, void (*line)(void *cookie, const char *text),
	       void *cookie);

struct req_in {
	struct dialect_in in; /* but for uri; fields and strings are kept by http/ until req_end() */
	/* As on the request line, and a NUL: decoded in place, and kept likewise. */
	char *target;
	size_t target_len;
	const struct sockaddr *local, *peer; /* likewise */
	void *conn;
};

/* Says that a request is answered with f before it became one: writes its line of the access log, and an
 * id for the answer, 16 digits and NUL, as x-amz-request-id has it.  in may lack the target. */
void reqs_refused(struct reqs *rs, const struct req_in *in, enum fault f, char out[17]);

/* Begins a request: parses, authorises, starts what can be started.  NULL: no request is free (answer 503
 * SlowDown). */
struct req *req_begin(struct reqs *rs, const struct req_in *in);
/* Tells whether a body has to be read (req_body) before the reply. */
bool req_wants_body(const struct req *rq);
/* Takes up to len bytes and returns how many; fewer: suspend the connection until ops->ready(). */
size_t req_body(struct req *rq, const void *data, size_t len);
/* Says that all of the body was given. */
void req_body_end(struct req *rq);
/* Says that the client went away (its side of the connection is closed): cancels and drains a request with a
 * descriptor. */
void req_gone(struct req *rq);
/* Tells whether the request carries a descriptor that is used. */
bool req_is_tokened(const struct req *rq);
/* Tells whether the reply is there. */
bool req_is_ready(const struct req *rq);

enum reply_body {
	REPLY_EMPTY,
	REPLY_TEXT,
	REPLY_STREAM,
	REPLY_LENGTH_ONLY /* HEAD: Content-Length without a body */
};
struct reply {
	int status;
	enum reply_body body;
	const char *text; /* REPLY_TEXT; the request's memory */
	uint64_t len_bytes;
	bool close;   /* close the connection after this reply */
	bool at_once; /* ... and do not wait for the rest of a body first, also if it flows */
};
/* Returns the reply; valid from req_is_ready() to req_end(). */
const struct reply *req_reply(struct req *rq);
/* Hands out each header of the reply: names as the listener's dialect spells them, values terminated.  Content-Length is http's
 * business. */
void req_reply_headers(struct req *rq, void (*header)(void *cookie, const char *name, const char *value),
		       void *cookie);
/* Reads up to max bytes of a REPLY_STREAM at pos (ascending).  0: nothing yet, suspend until ops->ready();
 * -errno: reset the connection. */
ssize_t req_stream_read(struct req *rq, uint64_t pos, void *buf, size_t max);

/* Says that http/ has done with it (sent, or the connection died).  The request goes when nothing of it is in
 * flight any more. */
void req_end(struct req *rq, bool sent);

#endif
