/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rc - connections of the RC transport, for req/. A client asks for a connection before a token names it: its
 * queue pair is connected to one of ours, which initiates everything and grants no access to memory of the
 * server. A token then names the connection by an id of 128 random bits; one request at a time uses a connection.
 *
 *     connect            taken by a token            lease put, all good
 *   (none) -> MAKING -> READY -------------> LEASED -------------------> READY
 *                | fails  | idle, disconnect,   | an operation failed, or the rail is lost
 *                v        v rail lost           v
 *              (none) <- CLOSING            (drained and destroyed by the core that leased it)
 *
 * A connection that was lost is never repaired: its id stays unknown, and the client connects again. An id gives no
 * right by itself: the request that names it is authorised like any other, and must come from the address that
 * connected. Ids are never logged.
 */
#ifndef GANTRY_RDMA_RC_H
#define GANTRY_RDMA_RC_H

#include "base/list.h"
#include "rdma/rdma.h"
#include "token/token.h"

#define RDMA_RC_ID_BYTES 16

/* Client's end of a connection, and its wishes. */
struct rdma_rc_ask {
	uint8_t gid[16];
	bool have_gid;
	uint16_t lid;
	uint32_t qpn, psn;
	int reads;     /* number of READs that the client's queue pair allows to be outstanding; 0: one */
	uint16_t pkey; /* partition of the client's queue pair; 0: unknown */
	int mtu;       /* path MTU in bytes; 0: that of our route */
	/* service level of the path, as the client knows it, for a path of InfiniBand whose level is unknown here */
	int service_level;
	bool must_route;                     /* true: rdma_gid_allowed() returned 1, so a route is required */
	struct sockaddr_storage local, peer; /* addresses of the HTTP connection */
	uint8_t client;                      /* number of the requesting client (base/fair.h) */
};

/* Our end of a connection, and the values that hold. */
struct rdma_rc_answer {
	uint8_t id[RDMA_RC_ID_BYTES];
	uint8_t gid[16];
	uint16_t lid;
	uint8_t port;
	uint32_t qpn, psn;
	int reads, mtu, service_level;
	uint16_t pkey;
};

/* A connect. Embedded by the caller, who keeps it until done() was called. */
struct rdma_rc_wait {
	void (*done)(struct rdma_rc_wait *w); /* called on a thread of the table */
	struct rdma_rc_ask ask;
	/* result: 0 with `answer`; -EHOSTUNREACH: no rail leads to the client; -ENODEV: no rail has the transport
	 * or is up; -EINVAL: the form of the address does not fit; another -errno: the queue pair cannot be made */
	int result;
	struct rdma_rc_answer answer;
	struct rc_conn *conn; /* private to rdma/ */
	struct list link;
};

/* Begins to make a connection; done() follows. Returns 0; -EOPNOTSUPP: connections are switched off (rdma.rc.shim);
 * -EAGAIN: a limit of rdma.rc is reached, and nothing follows. Any thread may call this function. */
int rdma_rc_connect(struct rdma *rd, struct rdma_rc_wait *w);

/* Replaces the limits of connections by those of a reloaded configuration. Connections above a lower limit stay open
 * until they end. Any thread may call this function; rd may be NULL. */
void rdma_rc_set_limits(struct rdma *rd, const struct conf_rc *conf);

/* Closes a connection of this peer, after its lease if it has one. An id that is unknown or another peer's has no
 * effect. Any thread may call this function. */
void rdma_rc_disconnect(struct rdma *rd, const uint8_t id[RDMA_RC_ID_BYTES], const struct sockaddr *peer);

/* Finds the connection that a token names, and sets the token's GID to that of the client's end. Returns false if the peer
 * has no such connection. Any thread may call this function. */
bool rdma_rc_find(struct rdma *rd, const struct sockaddr *peer, struct token *tok);

/* The limits that refuse connects: rdma.rc.connections (also of memory for connections and their clients), per_peer and
 * connect_rate; QUEUE: the number of connects that wait, of all clients or of one. */
enum rdma_rc_limit { RDMA_RC_ALL, RDMA_RC_PER_PEER, RDMA_RC_RATE, RDMA_RC_QUEUE, RDMA_RC_LIMIT_NR };
extern const char *const rdma_rc_limit_name[RDMA_RC_LIMIT_NR];

struct rdma_rc_stats {
	/* connects: made, failed, refused because of a limit; closed: all closed connections, for one of the reasons idle,
	 * lost, broken by a failed transfer, left by the client, room for another client's; tokens: busy, unknown */
	_Atomic uint64_t made, failed, refused, closed, idle, lost, broken, left, room, busy, unknown;
	_Atomic uint64_t refused_by[RDMA_RC_LIMIT_NR]; /* connects refused, for each limit */
	_Atomic int open, leased, waiting;
};
/* Returns the counters of connections; NULL: they are switched off. Any thread may call this function. */
struct rdma_rc_stats *rdma_rc_stats(struct rdma *rd);

#endif
