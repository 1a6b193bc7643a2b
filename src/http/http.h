/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adaptor of libmicrohttpd: passes connections and header fields to req/, and replies to the library.
 *
 * Each core has a struct http, with a libmicrohttpd daemon for each listener, in external-epoll mode and
 * without a listening socket. All functions run on the core's thread. libmicrohttpd 0.9.75 accepts some
 * malformed requests. mhd_head_check.c refuses those whose error the library hides from its program; dialect/
 * refuses those whose error is visible in the header fields.
 *
 * An idle connection uses at most 4 KiB of the daemon's memory, in addition to HTTP_POOL_BYTES of the library
 * and the socket; a head (some 11 KiB) exists only while a request runs.
 */
#ifndef GANTRY_HTTP_HTTP_H
#define GANTRY_HTTP_HTTP_H

#include "conf/conf.h"
#include "req/req.h"

struct http;
struct peers;
struct ring;
struct tls_cert;

/* The functions by which req/ reaches a connection of http/; a core stores them in `ops` of its struct
 * req_env. */
extern const struct reply_ops http_reply_ops;

/*
 * Makes the HTTP server of a core, with a libmicrohttpd daemon for each listener of conf. certs: array with a
 * certificate for each listener, NULL for a listener of plain HTTP; certs NULL: all listeners are plain. The
 * caller keeps certs, conf, peers (shared by all cores), ring and stats until http_free(). Returns
 *   0
 *   -ENOMEM   no memory
 *   -EMFILE   no descriptor for a daemon's epoll (-ENFILE: in the whole system)
 */
int http_new(const struct conf *conf, struct tls_cert *const *certs, struct peers *peers, struct ring *ring,
	     struct stats_core *stats, struct http **ret_http);
/* Returns the largest number of connections that a core has at a time, including connections that are being
 * ended. */
int http_connections_max(const struct conf *conf);
/* Sets the state machine (req/) that handles the requests. Called before the first http_add(). */
void http_set_reqs(struct http *h, struct reqs *rs);
/* Replaces the configuration for requests that begin from now on. The new configuration must have the same
 * listeners as the first; the caller keeps it until the next one is set. */
void http_set_conf(struct http *h, const struct conf *conf);
/* Ends every connection, busy ones with a reset, and runs the ring until no operation of http/ is in it.
 * Calls req_end() for each request; a request may still drain after the return, so the caller frees reqs
 * after http. */
void http_free(struct http *h);

/*
 * Takes over an accepted socket of listener number `listener`. If limits.connections connections are open,
 * ends a connection without a request to make room. Closes the socket on failure. Returns
 *   0
 *   -EBUSY    limits.connections connections are open, and all of them have requests
 *   -EUSERS   limits.connections_per_address is reached
 *   or another -errno
 */
int http_add(struct http *h, int listener, int fd, const struct sockaddr *peer, socklen_t peer_len);
/* Ends the connection that has waited longest for the rest of a head. Called when a resource other than
 * connections is used up. Returns false if no connection waits for the rest of a head. */
bool http_make_room(struct http *h);
/* Returns the number of connections that are open or being opened. */
int http_connections(const struct http *h);

/* Runs the libmicrohttpd daemons of the listeners. Returns true if they have more work. The core calls this
 * function in every turn of its loop in which an event arrived. */
bool http_run(struct http *h);
/* Returns the time that the loop may wait, in ns, before a time-out of libmicrohttpd or of http/ is due. */
uint64_t http_timeout_ns(const struct http *h);
/* Begins a drain: closes idle connections now, and each busy connection after the answer to its request. */
void http_drain(struct http *h);
/* Resets every connection. Called when a drain takes too long. The next http_run() calls req_end() for the
 * requests. */
void http_abort(struct http *h);

#endif
