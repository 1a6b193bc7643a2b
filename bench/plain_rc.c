/* SPDX-License-Identifier: Apache-2.0 */
/* See plain_rc.h. */
#include "bench/plain_rc.h"

#include "bench/bench.h"
#include "bench/plain.h"

#include <errno.h>
#include <string.h>

#define PSN 0x4242

void
plain_rc_join(struct peer *peer, int nr, const struct peer_qp *to, const uint8_t gid[16])
{
	struct peer_qp *q = &peer->qp[nr];

	q->their_qpn = to->their_qpn;
	q->their_psn = to->their_psn;
	q->mtu = to->mtu;
	q->reads = to->reads;
	memcpy(q->their_gid, gid, 16);
	if (peer_ask(peer, 'c', nr) < 0)
		bench_die("the peer's queue pair is not connected");
}

static void
make_ready(struct plain_rc *v, int nr)
{
	const struct peer *i = v->peer;
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_4096,
				   .dest_qp_num = i->qp[nr].qpn,
				   .rq_psn = i->qp[nr].psn,
				   .min_rnr_timer = 12,
				   .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
				   .timeout = 16,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .sq_psn = PSN,
				   .max_rd_atomic = 1 };

	rtr.ah_attr.grh.sgid_index = plain_source_gid(v->ctx);
	memcpy(rtr.ah_attr.grh.dgid.raw, i->tok.gid, 16);
	if (ibv_modify_qp(v->qp, &init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0 ||
	    ibv_modify_qp(v->qp, &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0 ||
	    ibv_modify_qp(v->qp, &rts,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0)
		bench_die("queue pair's state: %s", strerror(errno));
}

void
plain_rc_open(struct plain_rc *v, struct peer *peer, int nr, int depth)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr qa = { .qp_type = IBV_QPT_RC,
				       .cap = { .max_send_wr = (uint32_t)depth, .max_send_sge = 1 } };
	union ibv_gid gid;

	*v = (struct plain_rc){ .peer = peer };
	v->ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!v->ctx)
		bench_die("no RDMA device: run under scripts/with-softnic");
	ibv_free_device_list(list);
	v->pd = ibv_alloc_pd(v->ctx);
	v->cq = ibv_create_cq(v->ctx, depth, NULL, NULL, 0);
	qa.send_cq = qa.recv_cq = v->cq;
	v->qp = v->pd && v->cq ? ibv_create_qp(v->pd, &qa) : NULL;
	if (!v->qp || ibv_query_gid(v->ctx, 1, plain_source_gid(v->ctx), &gid) != 0)
		bench_die("queue pair: %s", strerror(errno));
	make_ready(v, nr);
	plain_rc_join(
		peer, nr,
		&(struct peer_qp){ .their_qpn = v->qp->qp_num, .their_psn = PSN, .mtu = 4096, .reads = 1 },
		gid.raw);
}

void
plain_rc_post(struct plain_rc *v, uint64_t id, const struct ibv_mr *mr, void *mem, uint32_t len, uint64_t at)
{
	struct ibv_sge sge = { .addr = (uintptr_t)mem, .length = len, .lkey = mr->lkey };
	struct ibv_send_wr w = { .wr_id = id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = { .remote_addr = v->peer->tok.addr + at,
					      .rkey = v->peer->tok.rkey } },
			   *bad;

	errno = ibv_post_send(v->qp, &w, &bad);
	if (errno)
		bench_die("post: %s", strerror(errno));
}
