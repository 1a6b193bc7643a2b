/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rc - connections of the RC transport. Before a token can name a connection, a queue pair of a port is connected to one
 * of the server's (POST /.s3rdma-rc/connect, protocol.md section 8). Calls use the connections to a server one after the
 * other, and no two calls use the same connection at the same time.
 *
 *     made      taken by a call      given back, all good
 *   (none) -> MAKING -> USED <----------------------------> FREE
 *                 | fails  | given back, not good             | unused for target_life_ns, evicted, address changed
 *                 v        v                                  v
 *               (none)   GONE <-------------------------------'
 *
 * A connection that is GONE has no queue pair, apart from one that the driver could not destroy. The keeper, a thread of
 * the context, tells the server (ENDING). Any thread may call these functions.
 */
#ifndef GANTRY_CLIENT_RC_H
#define GANTRY_CLIENT_RC_H

#include "client/client_int.h"

#define RC_ID_LEN 32

enum rc_state { RC_MAKING, RC_USED, RC_FREE, RC_GONE, RC_ENDING };

struct rc_server;

struct rc_conn {
	struct target target; /* the part that windows know */
	struct list link;
	struct rc_server *server;
	struct port *port;
	enum rc_state state;
	int access;             /* rights of the server, IBV_ACCESS_ */
	bool is_fresh;          /* true: no call has given the connection back yet */
	uint64_t used_ns;       /* time of the end of the last call, clock_ns() */
	char id[RC_ID_LEN + 1]; /* id that the server gave; "": the server does not have the connection */
};

/* Makes the struct of a context for connections. Returns 0 or -errno. */
int rc_open(struct gantry *g);
/* Ends all connections, and tells the servers. No call may be running. */
void rc_close(struct gantry *g);

/* Takes an unused connection from port p to the server of a call, or makes one; waits if the server or this library
 * allows no further connection. The server gets the rights for a put or a get. Returns 0 with *ret_target; or -errno
 * with the reason in why: -EOPNOTSUPP: the server has no RC, which is stored (transport_lacks()); -EHOSTUNREACH: the
 * server does not reach the port; -EUSERS: this context has no connection in use, and the server does not allow one;
 * -EBUSY: other calls did not give one back in time; *ret_final: the error also holds for requests without a token. */
int rc_take(struct call *c, struct port *p, bool is_put, struct target **ret_target, bool *ret_final,
	    char *why, size_t why_len);
/* Gives a connection back. clean: true: the server does not access memory any longer; false: the queue pair is
 * destroyed, so that the server cannot. Returns 0; -errno: the driver did not destroy the queue pair yet. */
int rc_give(struct gantry *g, struct target *t, bool clean);
/* Removes the unused connections to the server of t, because the server does not know t any longer. The server is not told
 * of t. Returns true if t was made for this call. */
bool rc_lost(struct gantry *g, struct target *t);
/* Takes a connection from port p for a token that a program sends itself, to g->rc_endpoint; like rc_take(). wait_ms: time
 * limit for a free one; 0: that of rc_take(). */
int rc_dial(struct gantry *g, struct port *p, bool is_put, unsigned wait_ms, struct target **ret_target,
	    char *why, size_t why_len);
/* Writes the token for memory [ptr, ptr + size) with the key rkey and the connection t. */
void rc_mint(const struct target *t, const void *ptr, size_t size, uint32_t rkey, char *text,
	     size_t text_len);

/* ---- one connection: rc_connect.c ---- */

/* Makes the queue pair of conn at its port with the rights conn->access, and connects it to the server of a call. Returns
 * 0; or, with the reason in why and no queue pair left, an error of rc_take(). -EAGAIN: the server answered 503. If
 * the server has made its end, conn->id is set, and the caller disconnects it. */
int rc_connect(struct call *c, struct rc_conn *conn, bool *ret_final, char *why, size_t why_len);
/* Changes the rights of the server. Returns 0 or -errno: the connection cannot be used. */
int rc_allow(struct rc_conn *conn, int access);
/* Tells a server that a connection has ended. base: beginning of the server's URLs. Returns 0 or -errno: no answer. */
int rc_disconnect(struct gantry *g, const char *base, const char *id);

#endif
