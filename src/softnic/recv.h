/* SPDX-License-Identifier: Apache-2.0 */
/* Receive queues and shared receive queues (recv.c). softnic.h includes this header. */
#ifndef SOFTNIC_RECV_H
#define SOFTNIC_RECV_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sn_qp;

struct sn_rq { /* The receive queue of a queue pair, or a shared receive queue. */
	pthread_mutex_t lock;
	uint64_t *wr_id;
	uint32_t depth, head, tail;
	uint32_t max_sge;
};

struct sn_srq {
	struct ibv_srq srq;
	struct sn_rq rq;
	uint32_t limit, num;
	_Atomic uint32_t users;
};

int sn_rq_init(struct sn_rq *rq, uint32_t depth, uint32_t max_sge);
void sn_rq_fini(struct sn_rq *rq);
void sn_rq_flush(struct sn_qp *qp); /* Flushes the receive queue. The caller holds qp->lock. */
void sn_rq_drop(struct sn_rq *rq);
int sn_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int sn_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_srq *sn_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *a);
int sn_get_srq_num(struct ibv_srq *srq, uint32_t *num);

#endif
