/* SPDX-License-Identifier: Apache-2.0 */
/* Ports, initiators, targets and memory of an examination; see hw_verbs.h. */
#include "client/cmd/hwcheck/hw_verbs.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* What the last call left in errno, which some providers forget to set. */
static int
why(void)
{
	return errno ? -errno : -EIO;
}

/* ---- port and memory ---- */

int
hw_open(struct hw_port *p, struct ibv_device *dev)
{
	*p = (struct hw_port){ .nr = 1 };
	errno = 0;
	p->ctx = ibv_open_device(dev);
	if (!p->ctx)
		return why();
	p->pd = ibv_alloc_pd(p->ctx);
	if (!p->pd) {
		int r = why();

		ibv_close_device(p->ctx);
		return r;
	}
	return 0;
}

int
hw_port_ask(struct hw_port *p, uint8_t nr, uint8_t gid_index)
{
	struct ibv_port_attr attr;
	int r = ibv_query_port(p->ctx, nr, &attr);

	if (r)
		return -r;
	p->nr = nr;
	p->gid_index = gid_index;
	p->is_ib = attr.link_layer == IBV_LINK_LAYER_INFINIBAND;
	p->mtu = attr.active_mtu;
	return 0;
}

int
hw_close(struct hw_port *p)
{
	int r = ibv_dealloc_pd(p->pd), r2 = ibv_close_device(p->ctx);

	return r ? -r : -r2;
}

struct ibv_mr *
hw_mem_new(struct hw_port *p, size_t len, unsigned access)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	if (mem == MAP_FAILED)
		return NULL;
	mr = ibv_reg_mr(p->pd, mem, len, access);
	if (!mr) {
		int e = errno;

		munmap(mem, len);
		errno = e;
	}
	return mr;
}

int
hw_mem_free(struct ibv_mr *mr)
{
	void *mem = mr->addr;
	size_t len = mr->length;
	int r = ibv_dereg_mr(mr);

	/* What is still registered stays mapped. */
	if (r == 0)
		munmap(mem, len);
	return -r;
}

/* A vector from the port, without a destination: InfiniBand needs no global header. */
struct ibv_ah_attr
hw_vector(const struct hw_port *p)
{
	struct ibv_ah_attr av = { .port_num = p->nr };

	if (p->is_ib)
		return av;
	av.is_global = 1;
	av.grh.sgid_index = p->gid_index;
	av.grh.hop_limit = 64;
	av.grh.traffic_class = p->traffic_class;
	return av;
}

/* ---- targets ---- */

struct ibv_qp *
hw_dct_new(struct hw_port *p, struct ibv_cq *cq, struct ibv_srq *srq, uint64_t dc_key)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = p->pd,
	};
	struct mlx5dv_qp_init_attr m = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = dc_key },
	};

	return mlx5dv_create_qp(p->ctx, &a, &m);
}

int
hw_dct_init(struct hw_port *p, struct ibv_qp *dct, unsigned access)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = p->nr, .qp_access_flags = access };

	return -ibv_modify_qp(dct, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int
hw_dct_rtr(struct hw_port *p, struct ibv_qp *dct, enum ibv_mtu mtu)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = mtu ? mtu : p->mtu,
				 .min_rnr_timer = 12 };

	a.ah_attr = hw_vector(p);
	return -ibv_modify_qp(dct, &a, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_MIN_RNR_TIMER);
}

int
hw_target_new(struct hw_target *t, struct hw_port *p, size_t len, unsigned dct_access, unsigned mr_access,
	      uint64_t dc_key, enum ibv_mtu mtu)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 1, .max_sge = 1 } };
	int r;

	*t = (struct hw_target){ .port = p, .len = len, .dc_key = dc_key };
	errno = 0;
	t->mr = hw_mem_new(p, len, mr_access);
	if (t->mr)
		t->cq = ibv_create_cq(p->ctx, 2, NULL, NULL, 0);
	if (t->cq)
		t->srq = ibv_create_srq(p->pd, &sa);
	if (t->srq)
		t->dct = hw_dct_new(p, t->cq, t->srq, dc_key);
	r = t->dct ? hw_dct_init(p, t->dct, dct_access) : why();
	if (r == 0)
		r = hw_dct_rtr(p, t->dct, mtu);
	if (r < 0) {
		hw_target_free(t);
		return r;
	}
	t->buf = t->mr->addr;
	return 0;
}

int
hw_target_token(const struct hw_target *t, struct hw_token *ret_tok)
{
	struct ibv_port_attr attr;

	*ret_tok = (struct hw_token){
		.dctn = t->dct ? t->dct->qp_num : 0,
		.rkey = t->mr ? t->mr->rkey : 0,
		.dc_key = t->dc_key,
		.addr = (uintptr_t)t->buf,
		.len = t->len,
	};
	if (ibv_query_port(t->port->ctx, t->port->nr, &attr) != 0)
		return why();
	ret_tok->lid = t->port->is_ib ? attr.lid : 0;
	return ibv_query_gid(t->port->ctx, t->port->nr, t->port->gid_index, &ret_tok->gid) ? why() : 0;
}

int
hw_target_free(struct hw_target *t)
{
	int r = 0;

	/* The target first: it is what lets others in. */
	if (t->dct)
		r = -ibv_destroy_qp(t->dct);
	if (t->mr) {
		int r2 = hw_mem_free(t->mr);

		r = r ? r : r2;
	} else if (t->buf) {
		munmap(t->buf, t->len);
	}
	if (r == 0 && t->srq)
		r = -ibv_destroy_srq(t->srq);
	if (r == 0 && t->cq)
		r = -ibv_destroy_cq(t->cq);
	*t = (struct hw_target){ 0 };
	return r;
}

/* ---- initiators ---- */

const struct hw_dci_opt hw_dci_plain = { .depth = 4,
					 .sge = 1,
					 .cqe = 8,
					 .timeout = 14,
					 .retry = 7,
					 .reads = 1,
					 .send_ops = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE };

int
hw_dci_rtr(struct hw_dci *i)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = i->port->nr };
	int r = ibv_modify_qp(i->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT);

	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = i->port->mtu };
	a.ah_attr = hw_vector(i->port);
	if (r == 0)
		r = ibv_modify_qp(i->qp, &a, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV);
	return -r;
}

int
hw_dci_rtr_to_rts(struct hw_dci *i, unsigned timeout, unsigned retry, unsigned reads)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .timeout = (uint8_t)timeout,
				 .retry_cnt = (uint8_t)retry,
				 .rnr_retry = 7,
				 .max_rd_atomic = (uint8_t)(reads ? reads : 16) };

	return -ibv_modify_qp(i->qp, &a,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN);
}

int
hw_dci_rts(struct hw_dci *i, unsigned timeout, unsigned retry, unsigned reads)
{
	int r = hw_dci_rtr(i);

	return r < 0 ? r : hw_dci_rtr_to_rts(i, timeout, retry, reads);
}

int
hw_dci_move(struct hw_dci *i, enum ibv_qp_state to)
{
	struct ibv_qp_attr a = { .qp_state = to };

	return -ibv_modify_qp(i->qp, &a, IBV_QP_STATE);
}

int
hw_dci_create(struct hw_dci *i, struct hw_port *p, const struct hw_dci_opt *opt)
{
	struct ibv_cq_init_attr_ex ca = { .cqe = opt->cqe,
					  .wc_flags = IBV_WC_STANDARD_FLAGS,
					  .channel = opt->chan };
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_DRIVER,
		.cap = { .max_send_wr = opt->depth,
			 .max_send_sge = opt->sge,
			 .max_inline_data = opt->inl,
			 .max_recv_wr = opt->recv_wr,
			 .max_recv_sge = opt->recv_wr ? 1 : 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = p->pd,
		.send_ops_flags = opt->send_ops,
	};
	struct mlx5dv_qp_init_attr m = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					 .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI } };

	*i = (struct hw_dci){ .port = p };
	errno = 0;
	i->cq = ibv_create_cq_ex(p->ctx, &ca);
	if (!i->cq)
		return why();
	a.send_cq = a.recv_cq = ibv_cq_ex_to_cq(i->cq);
	i->qp = mlx5dv_create_qp(p->ctx, &a, &m);
	i->ex = i->qp ? ibv_qp_to_qp_ex(i->qp) : NULL;
	if (!i->ex) {
		int r = why();

		hw_dci_free(i);
		return r;
	}
	i->dv = mlx5dv_qp_ex_from_ibv_qp_ex(i->ex);
	return 0;
}

int
hw_dci_new(struct hw_dci *i, struct hw_port *p, const struct hw_dci_opt *opt)
{
	int r = hw_dci_create(i, p, opt);

	if (r < 0)
		return r;
	r = hw_dci_rts(i, opt->timeout, opt->retry, opt->reads);
	if (r < 0)
		hw_dci_free(i);
	return r;
}

int
hw_dci_to(struct hw_dci *i, const struct hw_token *t)
{
	struct ibv_ah_attr a = hw_vector(i->port);

	if (i->ah)
		ibv_destroy_ah(i->ah);
	a.dlid = t->lid;
	a.grh.dgid = t->gid;
	errno = 0;
	i->ah = ibv_create_ah(i->port->pd, &a);
	return i->ah ? 0 : why();
}

int
hw_dci_free(struct hw_dci *i)
{
	int r = i->qp ? -ibv_destroy_qp(i->qp) : 0;

	if (r == 0 && hw_dci_cq(i))
		r = -ibv_destroy_cq(hw_dci_cq(i));
	if (i->ah)
		ibv_destroy_ah(i->ah);
	i->ah = NULL;
	return r;
}

/* Plain verbs, which every provider has. */
static int
post_rc(struct hw_dci *i, bool read, const struct hw_token *t, uint64_t raddr, struct ibv_mr *mr,
	const void *buf, uint32_t len, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = len, .lkey = mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = wr_id,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = { .remote_addr = raddr, .rkey = t->rkey } };

	return ibv_post_send(i->qp, &wr, &bad);
}

static int
post_chain_rc(struct hw_dci *i, const struct hw_token *t, struct ibv_mr *mr, int nr)
{
	struct ibv_sge sge = { .addr = (uintptr_t)mr->addr, .length = 64, .lkey = mr->lkey };
	struct ibv_send_wr *bad, wr[HW_CHAIN];

	for (int k = 0; k < nr; k++)
		wr[k] = (struct ibv_send_wr){ .wr_id = (uint64_t)k,
					      .next = k < nr - 1 ? &wr[k + 1] : NULL,
					      .sg_list = &sge,
					      .num_sge = 1,
					      .opcode = IBV_WR_RDMA_WRITE,
					      .send_flags = k == nr - 1 ? IBV_SEND_SIGNALED : 0,
					      .wr.rdma = { .remote_addr = t->addr, .rkey = t->rkey } };
	return ibv_post_send(i->qp, wr, &bad);
}

int
hw_post_chain(struct hw_dci *i, const struct hw_token *t, struct ibv_mr *mr, int nr)
{
	if (!i->ex)
		return post_chain_rc(i, t, mr, nr);
	ibv_wr_start(i->ex);
	for (int k = 0; k < nr; k++) {
		i->ex->wr_id = (uint64_t)k;
		i->ex->wr_flags = k == nr - 1 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_rdma_write(i->ex, t->rkey, t->addr);
		mlx5dv_wr_set_dc_addr(i->dv, i->ah, t->dctn, t->dc_key);
		ibv_wr_set_sge(i->ex, mr->lkey, (uintptr_t)mr->addr, 64);
	}
	return ibv_wr_complete(i->ex);
}

int
hw_post(struct hw_dci *i, bool read, const struct hw_token *t, uint64_t raddr, struct ibv_mr *mr,
	const void *buf, uint32_t len, uint64_t wr_id)
{
	if (!i->ex)
		return post_rc(i, read, t, raddr, mr, buf, len, wr_id);
	ibv_wr_start(i->ex);
	i->ex->wr_id = wr_id;
	i->ex->wr_flags = IBV_SEND_SIGNALED;
	if (read)
		ibv_wr_rdma_read(i->ex, t->rkey, raddr);
	else
		ibv_wr_rdma_write(i->ex, t->rkey, raddr);
	mlx5dv_wr_set_dc_addr(i->dv, i->ah, t->dctn, t->dc_key);
	ibv_wr_set_sge(i->ex, mr->lkey, (uintptr_t)buf, len);
	return ibv_wr_complete(i->ex);
}

/* Returns false after the end of a wait. A completion that takes more than .2 ms is an error or a long
 * transfer: the wait leaves the processor to other threads. */
static bool
wait_more(uint64_t began, uint64_t end)
{
	uint64_t now = clock_ns();

	if (now > began + NS_PER_MS / 5)
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	return now <= end;
}

static int
wait_plain(struct hw_dci *i, uint64_t began, uint64_t end, struct hw_done *ret_done)
{
	struct ibv_wc wc;
	int r;

	while ((r = ibv_poll_cq(i->plain_cq, 1, &wc)) == 0)
		if (!wait_more(began, end))
			return -ETIMEDOUT;
	if (r < 0)
		return -EIO;
	*ret_done = (struct hw_done){ .wr_id = wc.wr_id, .status = (int)wc.status };
	if (wc.status != IBV_WC_SUCCESS)
		ret_done->vendor_err = wc.vendor_err;
	return 0;
}

int
hw_wait(struct hw_dci *i, unsigned ms, struct hw_done *ret_done)
{
	struct ibv_poll_cq_attr pa = { 0 };
	uint64_t began = clock_ns(), end = began + ms * NS_PER_MS;
	int r;

	if (i->plain_cq)
		return wait_plain(i, began, end, ret_done);
	while ((r = ibv_start_poll(i->cq, &pa)) == ENOENT)
		if (!wait_more(began, end))
			return -ETIMEDOUT;
	if (r)
		return -r;
	*ret_done = (struct hw_done){ .wr_id = i->cq->wr_id, .status = (int)i->cq->status };
	if (ret_done->status != IBV_WC_SUCCESS)
		ret_done->vendor_err = ibv_wc_read_vendor_err(i->cq);
	ibv_end_poll(i->cq);
	return 0;
}
