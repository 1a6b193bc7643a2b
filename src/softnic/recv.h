/* SPDX-License-Identifier: Apache-2.0 */
/* Receive queues (rq.c), shared receive queues (recv.c), requests of senders (rx.c), and the message of a queue pair as a sender. softnic.h includes this header. */
#ifndef SOFTNIC_RECV_H
#define SOFTNIC_RECV_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fab_msg;
struct sn_qp;

struct sn_rq { /* The receive queue of a queue pair, or a shared receive queue. */
	pthread_mutex_t lock;
	struct sn_rwqe *wqe;
	struct ibv_sge *sge; /* max_sge entries for each entry of wqe */
	uint32_t depth, head, tail;
	uint32_t max_sge;
};

struct sn_rwqe {
	uint64_t wr_id;
	uint32_t sge_nr;
};

/* A receive that a sender has taken. */
struct sn_rx {
	struct sn_rx *next;
	uint32_t from; /* number of the sender's queue pair */
	uint32_t sge_nr;
	uint64_t wr_id;
	uint64_t room; /* number of bytes that fit into its buffers */
	struct ibv_sge sge[];
};

struct sn_srq {
	struct ibv_srq srq;
	struct sn_rq rq;
	/* limit: an event is raised when fewer receives are in the queue; 0: no event. Protected by rq.lock */
	uint32_t limit, num;
	uint32_t async_got;
	_Atomic uint32_t users;
};

/* The message of the work request at sn_qp.next (send.c). */
enum sn_send_phase { SN_SEND_NONE, SN_SEND_TAKE, SN_SEND_TAKEN, SN_SEND_PUT };
struct sn_send {
	uint8_t phase; /* progress of the message, an enum sn_send_phase */
	bool waiting;  /* true: the queue pair is parked until the answer of the receiver */
	bool broken;   /* true: the receiver's buffers cannot be written */
	uint8_t naks;  /* number of RNR NAKs since the last answer of another kind */
	uint32_t peer; /* index of the receiver's process */
	uint32_t sge_nr, pd;
	struct ibv_sge
		*sge; /* buffers of the receive; SN_MAX_SGE + 1 entries, NULL before the first message */
};

int sn_rq_init(struct sn_rq *rq, uint32_t depth, uint32_t max_sge);
void sn_rq_fini(struct sn_rq *rq);
/* Adds receives up to the first bad one, *ret_bad. Returns 0 or an errno value. */
int sn_rq_push(struct sn_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **ret_bad);
void sn_rq_flush(struct sn_qp *qp); /* Flushes the receive queue. The caller holds qp->lock. */
/* Removes all receives without completions, also those that senders have taken. The caller holds qp->lock. */
void sn_rq_drop(struct sn_qp *qp);
/* Executes the request m of the sender `from`, TAKE or PUT, and writes the answer to m. The caller holds qp->lock. */
void sn_rx_request(struct sn_qp *qp, uint32_t from, bool put, struct fab_msg *m);
int sn_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int sn_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_srq *sn_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *a);
int sn_get_srq_num(struct ibv_srq *srq, uint32_t *num);

#endif
