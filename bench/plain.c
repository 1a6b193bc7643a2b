/* SPDX-License-Identifier: Apache-2.0 */
/* See plain.h. */
#include "bench/plain.h"

#include "bench/bench.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#define READS 16

uint8_t
plain_source_gid(struct ibv_context *ctx)
{
	struct ibv_gid_entry e[64];
	ssize_t nr = ibv_query_gid_table(ctx, e, 64, 0);

	for (ssize_t i = 0; i < nr; i++) {
		if (e[i].gid_type == IBV_GID_TYPE_ROCE_V2 && e[i].gid.raw[10] == 0xff && e[i].gid.raw[0] == 0)
			return (uint8_t)e[i].gid_index;
	}
	bench_die("no RoCE v2 GID");
}

static void
make_ready(struct plain *v)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 },
			   rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096 },
			   rts = { .qp_state = IBV_QPS_RTS,
				   .timeout = 16,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = READS };
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } };

	ah.grh.sgid_index = plain_source_gid(v->ctx);
	memcpy(ah.grh.dgid.raw, v->tok->gid, 16);
	rtr.ah_attr = ah;
	if (ibv_modify_qp(v->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT) != 0 ||
	    ibv_modify_qp(v->qp, &rtr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV) != 0 ||
	    ibv_modify_qp(v->qp, &rts,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0)
		bench_die("DCI state: %s", strerror(errno));
	v->ah = ibv_create_ah(v->pd, &ah);
	if (!v->ah)
		bench_die("address handle: %s", strerror(errno));
}

void
plain_open(struct plain *v, const struct token *tok, uint64_t dc_key, int depth)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr_ex qa = { .qp_type = IBV_QPT_DRIVER,
					  .cap = { .max_send_wr = (uint32_t)depth, .max_send_sge = 1 },
					  .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					  .send_ops_flags =
						  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ };
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI } };

	*v = (struct plain){ .tok = tok, .dc_key = dc_key };
	v->ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!v->ctx)
		bench_die("no RDMA device: run under scripts/with-softnic");
	ibv_free_device_list(list);
	v->pd = ibv_alloc_pd(v->ctx);
	v->cq = ibv_create_cq(v->ctx, 2 * depth, NULL, NULL, 0);
	qa.pd = v->pd;
	qa.send_cq = qa.recv_cq = v->cq;
	v->qp = v->pd && v->cq ? mlx5dv_create_qp(v->ctx, &qa, &dv) : NULL;
	if (!v->qp)
		bench_die("DCI: %s", strerror(errno));
	make_ready(v);
}

struct ibv_mr *
plain_register(struct ibv_pd *pd, void *mem, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, len, IBV_ACCESS_LOCAL_WRITE);

	if (!mr)
		bench_die("registering: %s", strerror(errno));
	return mr;
}

void
plain_post(struct plain *v, bool is_write, uint64_t id, const struct ibv_mr *mr, void *mem, uint32_t len,
	   uint64_t at)
{
	struct ibv_qp_ex *q = ibv_qp_to_qp_ex(v->qp);

	ibv_wr_start(q);
	q->wr_id = id;
	q->wr_flags = IBV_SEND_SIGNALED;
	if (is_write)
		ibv_wr_rdma_write(q, v->tok->rkey, v->tok->addr + at);
	else
		ibv_wr_rdma_read(q, v->tok->rkey, v->tok->addr + at);
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(q), v->ah, v->tok->dctn, v->dc_key);
	ibv_wr_set_sge(q, mr->lkey, (uint64_t)(uintptr_t)mem, len);
	if (ibv_wr_complete(q) != 0)
		bench_die("post: %s", strerror(errno));
}
