/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmlx5.so.1: the mlx5dv calls of a DC program.  A thin layer over the SOFTNIC_1 node of our
 * libibverbs.so.1; what is not here is a generated stub (gen_stubs.sh).
 */
#include "softnic/softnic.h"

SN_EXPORT bool
mlx5dv_is_supported(struct ibv_device *device)
{
	return softnic_is_mlx5(device);
}

/* The structure grows with every release: a field is written only when its bit was asked for. */
SN_EXPORT int
mlx5dv_query_device(struct ibv_context *context, struct mlx5dv_context *attr)
{
	uint64_t asked = attr->comp_mask, got = 0;

	if (!softnic_is_mlx5(context->device))
		return EOPNOTSUPP;
	attr->version = 0;
	attr->flags = MLX5DV_CONTEXT_FLAGS_CQE_V1 | MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED;
#define ANSWER(bit, code)                                                                                    \
	do {                                                                                                 \
		if (asked & (bit)) {                                                                         \
			code;                                                                                \
			got |= (bit);                                                                        \
		}                                                                                            \
	} while (0)
	ANSWER(MLX5DV_CONTEXT_MASK_CQE_COMPRESION,
	       memset(&attr->cqe_comp_caps, 0, sizeof(attr->cqe_comp_caps)));
	ANSWER(MLX5DV_CONTEXT_MASK_SWP, memset(&attr->sw_parsing_caps, 0, sizeof(attr->sw_parsing_caps)));
	ANSWER(MLX5DV_CONTEXT_MASK_STRIDING_RQ,
	       memset(&attr->striding_rq_caps, 0, sizeof(attr->striding_rq_caps)));
	ANSWER(MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS, attr->tunnel_offloads_caps = 0);
	ANSWER(MLX5DV_CONTEXT_MASK_DYN_BFREGS, attr->max_dynamic_bfregs = 0);
	ANSWER(MLX5DV_CONTEXT_MASK_FLOW_ACTION_FLAGS, attr->flow_action_flags = 0);
	ANSWER(MLX5DV_CONTEXT_MASK_DC_ODP_CAPS, attr->dc_odp_caps = 0);
	ANSWER(MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS, attr->num_lag_ports = 1);
	ANSWER(MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD, memset(&attr->sig_caps, 0, sizeof(attr->sig_caps)));
	ANSWER(MLX5DV_CONTEXT_MASK_DCI_STREAMS,
	       memset(&attr->dci_streams_caps, 0, sizeof(attr->dci_streams_caps)));
	ANSWER(MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH, attr->max_wr_memcpy_length = 0);
	ANSWER(MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD, memset(&attr->crypto_caps, 0, sizeof(attr->crypto_caps)));
#undef ANSWER
	attr->comp_mask = got;

	return 0;
}

SN_EXPORT struct ibv_context *
mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
	/* The one flag is DevX, which needs the adapter's firmware. */
	if (attr && (attr->flags || attr->comp_mask)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return ibv_open_device(device);
}

SN_EXPORT struct ibv_qp *
mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
		 struct mlx5dv_qp_init_attr *mlx5_attr)
{
	return softnic_create_qp(context, attr, mlx5_attr);
}

SN_EXPORT struct mlx5dv_qp_ex *
mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
	return softnic_qp_dv(qp);
}

/* CQE compression and padding change nothing that a program sees. */
SN_EXPORT struct ibv_cq_ex *
mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
		 struct mlx5dv_cq_init_attr *mlx5_attr)
{
	return ibv_create_cq_ex(context, attr);
}

SN_EXPORT int
mlx5dv_set_context_attr(struct ibv_context *context, enum mlx5dv_set_ctx_attr_type type, void *attr)
{
	return 0;
}

/* There is no wire whose UDP source port could be chosen. */
SN_EXPORT int
mlx5dv_modify_qp_udp_sport(struct ibv_qp *qp, uint16_t sport)
{
	return qp->state == IBV_QPS_RTS ? 0 : EINVAL;
}
