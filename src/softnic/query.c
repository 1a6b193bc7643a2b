/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the device says of itself: attributes, port, GID and P_Key tables.  Numbers are those of a ConnectX-7
 * where they do not promise what we lack (atomics, ODP, memory windows).  fw_ver names us, so that nobody
 * takes a measurement for one of a real adapter.
 */
#include "softnic/softnic.h"

#include <arpa/inet.h>
#include <time.h>

#undef ibv_query_port

/* From rdma-core's provider interface; programs look ibv_query_gid_type up by name in the private version
 * node. */
enum ibv_gid_type_sysfs { IBV_GID_TYPE_SYSFS_IB_ROCE_V1, IBV_GID_TYPE_SYSFS_ROCE_V2 };
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum ibv_gid_type_sysfs *type);

/* Returns 0; EINVAL: this process is a forked child, and the context is its parent's; EIO: the device was reset. */
static int
unusable(struct ibv_context *context)
{
	return sn_inherited(context) ? EINVAL : sn_dead(sn_ctx(context)) ? EIO : 0;
}

static void
fill_device(struct sn_ctx *ctx, struct ibv_device_attr *a)
{
	*a = (struct ibv_device_attr){
		.fw_ver = "28.43.1014 SOFTNIC",
		.node_guid = ctx->dev->guid,
		.sys_image_guid = ctx->dev->guid,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffffffffffff000,
		.vendor_id = 0x02c9,
		.vendor_part_id = 4129,
		.max_qp = FAB_QPS - FAB_QP_FIRST,
		.max_qp_wr = SN_MAX_WR,
		.device_cap_flags =
			IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN,
		.max_sge = SN_MAX_SGE,
		.max_sge_rd = SN_MAX_SGE,
		.max_cq = 1 << 24,
		.max_cqe = SN_MAX_CQE,
		.max_mr = FAB_MRS - FAB_MR_FIRST,
		.max_pd = 1 << 23,
		.max_qp_rd_atom = SN_MAX_RD_ATOM,
		.max_res_rd_atom = (FAB_QPS - FAB_QP_FIRST) * SN_MAX_RD_ATOM,
		.max_qp_init_rd_atom = SN_MAX_RD_ATOM,
		.atomic_cap = IBV_ATOMIC_NONE,
		.max_ah = INT32_MAX,
		.max_srq = 1 << 23,
		.max_srq_wr = SN_MAX_WR - 1,
		.max_srq_sge = SN_MAX_SGE + 1,
		.max_pkeys = 1,
		.local_ca_ack_delay = 16,
		.phys_port_cnt = 1,
	};
	if (atomic_load(&sn_self.fab->qps_max))
		a->max_qp = (int)atomic_load(&sn_self.fab->qps_max);
}

SN_EXPORT int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int r = unusable(context);

	if (r == 0)
		fill_device(sn_ctx(context), attr);
	return r;
}

static int
query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex a = {
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = 1000000, /* kHz: a tick is a nanosecond */
		.phys_port_cnt_ex = 1,
	};
	int r = size < sizeof(attr->orig_attr) ? EINVAL : unusable(context);

	if (r)
		return r;
	fill_device(sn_ctx(context), &a.orig_attr);
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	memset(attr, 0, size);
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));

	return 0;
}

int
sn_fill_port(struct sn_ctx *ctx, uint8_t port, struct ibv_port_attr *a)
{
	if (port != 1 || sn_inherited(&ctx->v.context))
		return EINVAL;
	if (sn_lost(ctx))
		return EIO;
	bool down = atomic_load(&sn_port(ctx)->down);
	uint32_t lid = sn_port(ctx)->lid, mtu = atomic_load(&sn_port(ctx)->mtu);

	*a = (struct ibv_port_attr){
		.state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = mtu ? (enum ibv_mtu)mtu : IBV_MTU_4096,
		.gid_tbl_len = atomic_load(&sn_port(ctx)->no_gids) ? 0 : FAB_GIDS,
		.lid = (uint16_t)lid,
		.sm_lid = lid ? 1 : 0,
		.port_cap_flags = IBV_PORT_CM_SUP | (lid ? 0 : IBV_PORT_IP_BASED_GIDS),
		.max_msg_sz = SN_MAX_MSG,
		.pkey_tbl_len = 1,
		.max_vl_num = 0,
		.active_width = 2,          /* 4X */
		.active_speed = 64,         /* HDR */
		.phys_state = down ? 3 : 5, /* disabled, link up */
		.link_layer = lid ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET,
		.flags = lid ? 0 : IBV_QPF_GRH_REQUIRED,
	};

	return 0;
}

/* The extended entry: writes no more than the caller's structure holds. */
static int
query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
	struct ibv_port_attr a;
	int r = sn_fill_port(sn_ctx(context), port, &a);

	if (r)
		return r;
	memset(attr, 0, len);
	memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));

	return 0;
}

/* The exported entry is the old one: its structure ends before port_cap_flags2. */
SN_EXPORT int
ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr a;
	int r = sn_fill_port(sn_ctx(context), port, &a);

	if (r)
		return r;
	memcpy(attr, &a, offsetof(struct ibv_port_attr, port_cap_flags2));

	return 0;
}

/* ---- GID table ---- */

SN_EXPORT int
ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	int r = unusable(context);

	if (r == 0 && (port != 1 || index < 0 || index >= FAB_GIDS))
		r = EINVAL;
	if (r) {
		errno = r;
		return -1;
	}
	/* An empty row is a zero GID, not an error. */
	if (sn_has_row(sn_port(sn_ctx(context)), (uint32_t)index))
		memcpy(gid->raw, sn_port(sn_ctx(context))->gid[index].raw, 16);
	else
		memset(gid->raw, 0, 16);

	return 0;
}

static void
fill_entry(const struct fab_port *port, uint32_t index, void *to, size_t size)
{
	const struct fab_gid *g = &port->gid[index];
	struct ibv_gid_entry e = {
		.gid_index = index,
		.port_num = 1,
		.gid_type = g->type == FAB_GID_V2   ? IBV_GID_TYPE_ROCE_V2
			    : g->type == FAB_GID_V1 ? IBV_GID_TYPE_ROCE_V1
						    : IBV_GID_TYPE_IB,
		.ndev_ifindex = sn_ifindex(port, g->raw),
	};

	memcpy(e.gid.raw, g->raw, 16);
	memset(to, 0, size);
	memcpy(to, &e, size < sizeof(e) ? size : sizeof(e));
}

SN_EXPORT int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
		  uint32_t flags, size_t size)
{
	const struct fab_port *p;
	int r = port != 1 || index >= FAB_GIDS ? EINVAL : unusable(context);

	if (flags || r)
		return flags ? EOPNOTSUPP : r;
	p = sn_port(sn_ctx(context));
	if (!sn_has_row(p, index))
		return ENODATA;
	fill_entry(p, index, entry, size);

	return 0;
}

SN_EXPORT ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
		     size_t size)
{
	int r = flags ? EOPNOTSUPP : unusable(context);
	const struct fab_port *port;
	size_t n = 0;

	if (r)
		return -r;
	port = sn_port(sn_ctx(context));
	for (uint32_t i = 0; i < FAB_GIDS; i++) {
		if (!sn_has_row(port, i))
			continue;
		if (n == max)
			return -EINVAL;
		fill_entry(port, i, (char *)entries + n * size, size);
		n++;
	}

	return (ssize_t)n;
}

SN_EXPORT int
ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
		   enum ibv_gid_type_sysfs *type)
{
	if (port != 1 || index >= FAB_GIDS || sn_inherited(context)) {
		errno = EINVAL;
		return -1;
	}
	*type = sn_port(sn_ctx(context))->gid[index].type == FAB_GID_V2 ? IBV_GID_TYPE_SYSFS_ROCE_V2
									: IBV_GID_TYPE_SYSFS_IB_ROCE_V1;

	return 0;
}

static __be16
own_pkey(struct ibv_context *context)
{
	uint16_t pkey = atomic_load(&sn_port(sn_ctx(context))->pkey);

	return htons(pkey ? pkey : 0xffff);
}

SN_EXPORT int
ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (port != 1 || index != 0 || sn_inherited(context)) {
		errno = EINVAL;
		return -1;
	}
	*pkey = own_pkey(context);

	return 0;
}

SN_EXPORT int
ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	if (port != 1 || sn_inherited(context) || pkey != own_pkey(context)) {
		errno = EINVAL;
		return -1;
	}

	return 0;
}

static int
query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint32_t asked = values->comp_mask;

	values->comp_mask = 0;
	if (asked & IBV_VALUES_MASK_RAW_CLOCK) {
		uint64_t now = sn_now_ns();

		values->raw_clock.tv_sec = (time_t)(now / 1000000000u);
		values->raw_clock.tv_nsec = (long)(now % 1000000000u);
		values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	}

	return 0;
}

static int
modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	return attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE ? EOPNOTSUPP : 0;
}

void
sn_ctx_ops(struct sn_ctx *ctx)
{
	struct ibv_context_ops *o = &ctx->v.context.ops;

	ctx->v.query_port = query_port;
	ctx->v.query_device_ex = query_device_ex;
	ctx->v.query_rt_values = query_rt_values;
	/* Among adapters without DC are some whose library has plain queues alone. */
	ctx->v.create_cq_ex = sn_conf.no_dc ? NULL : sn_create_cq_ex;
	ctx->v.modify_cq = modify_cq;
	ctx->v.create_qp_ex = sn_create_qp_ex;
	ctx->v.create_srq_ex = sn_create_srq_ex;
	ctx->v.get_srq_num = sn_get_srq_num;
	sn_pd_ops(ctx);
	o->poll_cq = sn_poll_cq;
	o->req_notify_cq = sn_req_notify;
	o->post_send = sn_post_send;
	o->post_recv = sn_post_recv;
	o->post_srq_recv = sn_post_srq_recv;
}
