/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librdmacm.so.1 of the software NIC: the connection manager (RDMA-CM) as a library over the public verbs, without a kernel. Only
 * the files cm_*.c use this header.
 *
 * A connection is a socket (AF_UNIX, SOCK_SEQPACKET) between two ids, over which the library sends the messages of the connection
 * manager (struct cm_msg). A listening id has a name in the abstract namespace, made of the fabric, the port and the address. The
 * descriptor of an event channel is an epoll instance with the sockets of its ids, and a timer for events that are already known.
 * So no thread serves connections: rdma_get_cm_event() reads the sockets, and moves queue pairs to RTS when the answer of the peer
 * arrives. A thread for each device waits for its loss.
 *
 * One lock, cm_lock, protects all structs below; it is not held while a thread waits for an event.
 */
#ifndef SOFTNIC_CM_H
#define SOFTNIC_CM_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define CM_EXPORT __attribute__((visibility("default")))

enum cm_kind { CM_REQ = 1, CM_REP, CM_RTU, CM_REJ, CM_DREQ, CM_DREP };
/* Reasons of a reject, as in the InfiniBand specification. */
enum { CM_REJ_NO_SERVICE = 8, CM_REJ_CONSUMER = 28 };
/* Room for private data in each message. The events of a real adapter have these lengths, whatever the peer has sent. */
enum { CM_REQ_DATA = 56, CM_REP_DATA = 196, CM_REJ_DATA = 148 };
#define CM_VERSION 1

struct cm_msg {
	uint32_t version;
	uint32_t kind; /* kind of the message, an enum cm_kind */
	uint32_t qpn;
	uint32_t psn;
	uint32_t reason; /* reason of a reject */
	uint8_t mtu;     /* MTU of the path, an enum ibv_mtu */
	uint8_t responder_resources, initiator_depth;
	uint8_t flow_control, retry_count, rnr_retry_count, srq;
	uint8_t data_len;
	union ibv_gid from, to; /* GIDs of the sender of REQ and of its receiver */
	struct sockaddr_storage from_addr, to_addr;
	uint8_t data[CM_REP_DATA];
};

enum cm_state {
	CM_IDLE,
	CM_BOUND,
	CM_LISTEN,
	CM_ADDR_QUERY,
	CM_ADDR, /* rdma_resolve_addr() has succeeded */
	CM_ROUTE_QUERY,
	CM_ROUTE,
	CM_CONNECTING, /* active side: rdma_connect() was called */
	CM_REQUESTED,  /* passive side: before rdma_accept() */
	CM_ACCEPTED,   /* passive side: REP is sent */
	CM_ANSWERED,   /* active side without a queue pair: REP has arrived, before rdma_establish() */
	CM_CONNECTED,
	CM_LEAVING, /* DREQ is sent */
	CM_LEFT,    /* the connection has ended, or was refused */
};

struct cm_dev {
	struct cm_dev *next;
	__be64 guid;
	struct ibv_context *verbs; /* context that ids have; NULL before its first use */
	struct ibv_context *watch; /* context for asynchronous events; NULL: the device was lost */
	struct ibv_pd *pd; /* protection domain of queue pairs without one; NULL before its first use */
};

struct cm_event {
	struct cm_event *next;
	struct rdma_cm_event ev;
	struct cm_id *of; /* id whose destruction waits for rdma_ack_cm_event() */
	uint64_t due_ns;  /* time of CLOCK_MONOTONIC at which the event happens */
	bool retry;       /* true: not an event, but the time to send REQ again */
	uint8_t data[CM_REP_DATA];
};

struct cm_chan {
	struct rdma_event_channel pub; /* first member, because programs hold a pointer to it */
	struct cm_chan *next;
	int timer;
	struct cm_event *events; /* events that the program has not fetched, the earliest first */
};

struct cm_id {
	struct rdma_cm_id pub; /* first member, because programs hold a pointer to it */
	struct cm_id *next;
	enum cm_state state;
	struct cm_dev *dev; /* device of the id; NULL: the id is not bound to a device */
	uint32_t sgid_index;
	union ibv_gid from, to; /* GIDs of this end and of the peer */
	int bound;              /* socket with the name of a bound id; -1: none */
	int fd;                 /* socket of the connection; -1: none */
	bool sync;              /* the program has no event channel: calls wait for their event */
	struct cm_id *listener; /* the id that listens, until the program has fetched CONNECT_REQUEST */
	unsigned backlog, waiting;
	uint32_t got, acked; /* numbers of events that the program has fetched and acknowledged */
	pthread_cond_t acks;
	uint32_t psn;
	uint8_t ack_timeout;
	bool reuse;
	uint64_t give_up_ns;              /* time at which a connect attempt ends */
	struct cm_msg own, peer;          /* REQ and REP of this end and of the peer */
	struct ibv_qp_init_attr *ep_attr; /* argument of rdma_create_ep() for a listening id */
	struct ibv_pd *ep_pd;
};

extern pthread_mutex_t cm_lock;
extern struct cm_id *cm_ids; /* all ids, and requests that the program has not fetched */
extern struct cm_chan *cm_chans;

static inline struct cm_id *
cm_id(struct rdma_cm_id *id)
{
	return (struct cm_id *)id;
}

static inline struct cm_chan *
cm_chan(struct cm_id *id)
{
	return (struct cm_chan *)id->pub.channel;
}

static inline int
cm_err(int err) /* Sets errno unless err is 0. Returns 0 or -1. */
{
	if (err)
		errno = err;

	return err ? -1 : 0;
}

uint64_t cm_now(void);

/* The caller of the functions below holds cm_lock, unless stated otherwise. */

/* ---- event channels: cm_chan.c, cm_event.c ---- */

/* Adds an event of an id, with status, after wait_ns; out of memory: the event is lost. Returns it, or NULL. */
struct cm_event *cm_raise(struct cm_id *id, enum rdma_cm_event_type type, int status, uint64_t wait_ns);
/* Lets the timer expire, and the descriptor of the channel be readable, while an event is due. */
void cm_arm(const struct cm_chan *ch);
void cm_insert(struct cm_chan *ch, struct cm_event *e); /* Adds an event to a channel, by its time. */
void cm_retry(struct cm_id *id, uint64_t wait_ns);
void cm_forget(struct cm_id *id); /* Removes the events of an id that the program has not fetched. */
/* Watches (cm_watch()) a socket of an id, or stops (cm_unwatch()). */
int cm_watch(struct cm_id *id, int fd);
void cm_unwatch(struct cm_id *id, int fd);
void cm_leave(struct cm_id *id); /* Ends the connection of an id: it reads no more messages. */
/* Waits for the event of a call of an id without an event channel; without cm_lock. Returns 0, or -1 with errno. */
int cm_complete(struct rdma_cm_id *id);

/* ---- devices and addresses: cm_dev.c ---- */

void cm_devs_refresh(void); /* Finds new devices. */
/* Finds the device that has an address (RoCE v2). Returns NULL if there is none. */
struct cm_dev *cm_dev_of_gid(const union ibv_gid *gid, uint32_t *ret_index);
/* Finds the device that reaches a GID from any of its addresses, and this address. Returns 0 or an errno value; *ret_wait_ns:
 * the time that the answer takes. */
int cm_dev_to(const union ibv_gid *to, struct cm_dev **ret_dev, union ibv_gid *ret_from,
	      uint64_t *ret_wait_ns);
int cm_dev_open(struct cm_dev *d); /* Opens d->verbs. Returns 0 or an errno value. */
bool cm_is_any(const struct sockaddr *a);
bool cm_gid_of(const struct sockaddr *a, union ibv_gid *ret_gid); /* Returns false if it is no IP address. */
void cm_addr_of(const union ibv_gid *gid, uint16_t port, struct sockaddr_storage *ret);
uint16_t cm_port_of(const struct sockaddr *a);

/* ---- ids: cm_id.c ---- */

struct cm_id *cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
			uint8_t qp_type);
void cm_id_free(struct cm_id *id); /* Frees an id that has no unacknowledged events. */
void cm_id_bind_dev(struct cm_id *id, struct cm_dev *d);
void cm_id_path(struct cm_id *id); /* Fills id->route.path_rec. */

/* ---- connections: cm_peer.c ---- */

/* Handles the events of the socket of an id, which the call may free. */
void cm_socket(struct cm_id *id);
void cm_try(struct cm_id *id); /* Sends REQ, or later again if the peer cannot be reached. */
void cm_send_rej(struct cm_id *id, uint32_t reason, const void *data, uint8_t len);
void cm_send(struct cm_id *id, struct cm_msg *m, enum cm_kind kind);
void cm_send_kind(struct cm_id *id, enum cm_kind kind); /* Sends a message without parameters. */
void cm_hang_up(struct cm_id *id);                      /* Closes the socket of an id. */

/* ---- queue pairs: cm_qp.c ---- */

int cm_qp_attr(struct cm_id *id, struct ibv_qp_attr *attr, int *mask);
int cm_qp_connect(struct cm_id *id); /* INIT -> RTR -> RTS. Returns 0 or an errno value. */
void cm_qp_err(struct cm_id *id);

#endif
