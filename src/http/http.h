/*
 * libmicrohttpd adaptor: connections and header fields in, replies out, nothing else.
 *
 * One struct http per core: a libmicrohttpd daemon per listener in external-epoll mode, without a listening
 * socket of its own. Everything on the core's thread.  The door guard against libmicrohttpd 0.9.75 (design.md
 * section 3) is split: what the library hides is caught here, what header fields show is caught in dialect/.
 */
#ifndef GANTRY_HTTP_HTTP_H
#define GANTRY_HTTP_HTTP_H

#include "conf/conf.h"
#include "req/req.h"

struct http;
struct ring;
struct tls_cert;

/* The table that reqs_new() wants. */
extern const struct reply_ops http_reply_ops;

/* certs: one per listener, NULL for plain HTTP (certs may be NULL: none has one); kept by the caller.  0 or
 * -errno. */
int http_new(const struct conf *conf, struct tls_cert *const *certs, struct ring *ring,
	     struct stats_core *stats, struct http **ret_http);
void http_set_reqs(struct http *h, struct reqs *rs);
/* Requests that begin from now on see this one, which must have the listeners of the first; it is kept by
 * the caller as long as it is the newest.  The core's thread. */
void http_set_conf(struct http *h, const struct conf *conf);
/* Closes every connection (those left with a reset) and waits, turning the ring, until nothing of ours is in
 * it.  A request that still belonged to one gets its req_end() here; it may go on draining, so reqs outlives
 * http. */
void http_free(struct http *h);

/* Takes over an accepted socket of listener number `listener`.  0 or -errno (the socket is closed then). */
int http_add(struct http *h, int listener, int fd, const struct sockaddr *peer, socklen_t peer_len);
int http_connections(const struct http *h);

/* Lets the daemons work; true: they have more to do at once.
 * Called every turn in which something happened. */
bool http_run(struct http *h);
/* How long the loop may wait for libmicrohttpd's own time-outs. */
uint64_t http_timeout_ns(const struct http *h);
/* No new requests on kept-alive connections: closes idle ones (drain). */
void http_drain(struct http *h);
/* The drain took too long: resets every connection.  Their requests get req_end() from the http_run() that
 * follows. */
void http_abort(struct http *h);

#endif
