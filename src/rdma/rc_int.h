/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rc_int - declarations shared by rc.c (queue pairs), rctable.c (the connections of the process) and rcpeer.c (their
 * clients). States are drawn in rc.h.
 */
#ifndef GANTRY_RDMA_RC_INT_H
#define GANTRY_RDMA_RC_INT_H

#include "rdma/qp.h"
#include "rdma/rc.h"

#include "base/fair.h"
#include "base/siphash.h"

#include <semaphore.h>

/* Number of work requests that a connection may have outstanding, and of entries of its completion queue. */
#define RC_DEPTH 16
#define RC_THREADS 4
#define RC_BUCKETS 1024
#define RC_WAITING_MAX 256     /* connects that wait or are being made */
#define RC_WAITING_PER_PEER 16 /* those of one peer */

enum rc_state { RC_MAKING, RC_READY, RC_LEASED, RC_CLOSING };

/* Counts the connections of a client's address, and limits them. IPv6 clients count by /64, the usual assignment to one
 * client. Under the lock of the table. */
struct rc_peer {
	uint8_t addr[16];
	int conns, waiting;
	uint64_t next_ns; /* time at which the peer's allowance of connects is full again */
	struct list bucket;
};

/* A connection. Its endpoint and queue belong to the thread that makes it, then to the table, and from
 * rdma_target_ep() to rdma_ep_put() or rdma_ep_free() to the core that leases it. */
struct rc_conn {
	struct verbs_ep ep;
	struct rdma_cq *cq;
	struct rdma_ep_limits limits;
	unsigned generation; /* generation of the rail at the time when the connection was made */
	unsigned rail;       /* number of the rail */
	/* values of the rail's counters of this name when the connection was made */
	unsigned link, addresses;
	/* own address: row and contents of the GID table on Ethernet, LID on InfiniBand */
	uint32_t gid_index;
	uint8_t own_gid[16];
	uint16_t own_lid;
	_Atomic bool spent; /* true: an operation has failed, so that no token finds the connection */

	/* under the lock of the table */
	uint8_t id[RDMA_RC_ID_BYTES];
	enum rc_state state;
	bool close; /* LEASED: closed when its lease is put */
	struct rc_peer *peer;
	uint8_t addr[16]; /* address of the client that connected */
	uint8_t gid[16];  /* GID of the client's end, if have_gid */
	bool have_gid;
	_Atomic uint64_t *why; /* CLOSING: counter of the reason */
	uint64_t used_ns;      /* time at which the connection was last made or put */
	struct list bucket, all;
};

/* The connections of the process (rctable.c). */
struct rc_table {
	struct rdma *rd;
	struct rdma_watch watch;
	sem_t more;
	pthread_t thread[RC_THREADS];
	int thread_nr;

	pthread_mutex_t lock;
	struct conf_rc conf;
	bool stop;
	uint64_t key[2];
	struct list ids[RC_BUCKETS], peers[RC_BUCKETS];
	struct list all, closing; /* connections, linked by rc_conn.all */
	int peer_nr, conn_nr, waiting;
	struct fair work;
	uint64_t reap_ns;
	_Atomic bool rails_changed;
	struct rdma_rc_stats stats;
};

/* Returns the list of a table of hashes that has the key. */
static inline struct list *
rc_bucket(const struct rc_table *t, const struct list *buckets, const uint8_t key[16])
{
	return (struct list *)&buckets[siphash(t->key, key, 16) % RC_BUCKETS];
}

/* ---- rcpeer.c.  Under the lock of the table. ---- */

/* Writes the address of a client, IPv4 as an IPv4-mapped IPv6 address; zeros if it is of another family. */
void rc_address(const struct sockaddr *sa, uint8_t ret_addr[16]);
/* Finds or makes the peer of an address, and frees peers of the same bucket that have no connection and their full
 * allowance. Returns NULL if there are too many peers, or no memory. */
struct rc_peer *rc_peer_get(struct rc_table *t, const uint8_t addr[16], uint64_t now);
void rc_peer_drop(struct rc_table *t, struct rc_peer *p);
/* Takes one connect of the peer's allowance, which has connect_rate connects and fills up within a second. Returns false if
 * the allowance is empty. */
bool rc_rate_take(const struct rc_table *t, struct rc_peer *p, uint64_t now);

/* ---- rc.c ---- */

/* Makes the endpoint and the queue of a connection, and connects them to the client. Blocks while the kernel resolves
 * the client's address. Returns 0 with *ret_answer but for its id; or the result of struct rdma_rc_wait. */
int rc_conn_open(struct rdma *rd, struct rc_conn *conn, const struct rdma_rc_ask *ask,
		 struct rdma_rc_answer *ret_answer);
/* Destroys endpoint and queue of a connection without outstanding work requests, if it has them. May block. */
void rc_conn_close(struct rc_conn *conn);
/* Returns true if the connection cannot be used any longer: its rail was lost, has other parameters, or no longer the
 * address of our end. */
bool rc_conn_is_lost(const struct rc_conn *conn);

static inline struct rc_conn *
rc_conn_of(struct rdma_ep *base)
{
	return container_of(verbs_ep_of(base), struct rc_conn, ep);
}

/* ---- rctable.c ---- */

/* Takes the connection with this id for a lease. Returns 0 with *ret_conn; -ENOTCONN: it is unknown or was lost;
 * -EBUSY: another lease has it. */
int rc_take(struct rdma *rd, const uint8_t id[RDMA_RC_ID_BYTES], struct rc_conn **ret_conn);
/* Returns a connection whose lease has ended without a failure. */
void rc_put(struct rc_conn *conn);
/* Removes a connection, whose endpoint was released, from the table, and frees it. */
void rc_gone(struct rc_conn *conn);
/* Finds the rail of the connection with this id. Returns 0, or -ENOTCONN. */
int rc_find_rail(struct rdma *rd, const uint8_t id[RDMA_RC_ID_BYTES], unsigned *ret_rail);

/* Makes the table and starts its threads, if the configuration asks for it. Returns 0 or -errno. */
int rc_table_new(struct rdma *rd);
/* Closes all connections, after the last chan was freed and before the rails end. */
void rc_table_free(struct rdma *rd);

#endif
