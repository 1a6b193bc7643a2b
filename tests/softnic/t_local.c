/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one process can see of the software NIC without moving a byte: device, port and GID queries,
 * registration, completion queues, address handles, and the transition masks of every type of queue pair.
 */
#include "sn_test.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static struct hw_port dev;

static void
test_device(void)
{
	struct ibv_device_attr_ex ax;
	struct ibv_device_attr a;
	struct ibv_device **list;
	int n = 0;

	list = ibv_get_device_list(&n);
	ok(list && n == 2, "SOFTNIC_DEVICES=2 gives two devices, not %d", n);
	ok(strcmp(ibv_get_device_name(list[0]), "mlx5_0") == 0, "name");
	ok(strcmp(ibv_get_device_name(list[1]), "mlx5_1") == 0, "name of the second");
	ok(ibv_get_device_guid(list[0]) && ibv_get_device_guid(list[0]) != ibv_get_device_guid(list[1]),
	   "GUIDs");
	ok(mlx5dv_is_supported(list[0]), "is an mlx5 device");
	ibv_free_device_list(list);
	ok(ibv_query_device(dev.ctx, &a) == 0, "query_device");
	ok(strstr(a.fw_ver, "SOFTNIC") != NULL, "the firmware string names the software NIC");
	ok(a.max_qp_init_rd_atom == 16 && a.max_sge == 30 && a.phys_port_cnt == 1, "plausible limits");
	ok(ibv_query_device_ex(dev.ctx, NULL, &ax) == 0 && ax.orig_attr.vendor_id == 0x02c9,
	   "query_device_ex");
	ok(ibv_fork_init() == 0, "fork_init");
	ok(strcmp(ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR), "remote access error") == 0, "status names");
	ok(strcmp(ibv_event_type_str(IBV_EVENT_PORT_ERR), "port error") == 0, "event names");
}

/* The exported query_port is the old entry, the inline one knows the caller's size. */
static void
test_port(void)
{
	int (*compat)(struct ibv_context *, uint8_t, void *) =
		(int (*)(struct ibv_context *, uint8_t, void *))dlsym(RTLD_DEFAULT, "ibv_query_port");
	struct ibv_port_attr p;
	__be16 pkey = 0;

	memset(&p, 0xee, sizeof(p));
	ok(ibv_query_port(dev.ctx, 1, &p) == 0, "query_port");
	ok(p.state == IBV_PORT_ACTIVE && p.link_layer == IBV_LINK_LAYER_ETHERNET, "active, Ethernet");
	ok(p.max_msg_sz == 0x40000000, "1 GiB messages");
	ok(p.port_cap_flags2 == 0 && p.gid_tbl_len == 1024, "all of the structure is written");
	memset(&p, 0xee, sizeof(p));
	ok(compat && compat(dev.ctx, 1, &p) == 0 && p.state == IBV_PORT_ACTIVE, "the exported entry");
	ok(p.port_cap_flags2 == 0xeeee, "the exported entry stops before port_cap_flags2");
	ok(ibv_query_port(dev.ctx, 2, &p) == EINVAL, "no second port");
	ok(ibv_query_pkey(dev.ctx, 1, 0, &pkey) == 0 && pkey == 0xffff, "pkey");
}

static void
test_gids(void)
{
	static const uint8_t v4[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 };
	int (*type_of)(struct ibv_context *, uint8_t, unsigned, int *) =
		(int (*)(struct ibv_context *, uint8_t, unsigned, int *))dlvsym(
			RTLD_DEFAULT, "ibv_query_gid_type", "IBVERBS_PRIVATE_34");
	struct ibv_gid_entry e, table[16];
	union ibv_gid g;
	int type = -1;

	ok(ibv_query_gid(dev.ctx, 1, 3, &g) == 0 && memcmp(g.raw, v4, 16) == 0, "row 3 is 127.0.0.1");
	memset(&g, 0xee, sizeof(g));
	ok(ibv_query_gid(dev.ctx, 1, 1023, &g) == 0 && !g.global.interface_id, "an empty row reads as zero");
	ok(ibv_query_gid(dev.ctx, 1, 1024, &g) == -1, "there is no row 1024");
	ok(ibv_query_gid_ex(dev.ctx, 1, 3, &e, 0) == 0 && e.gid_type == IBV_GID_TYPE_ROCE_V2,
	   "row 3 is RoCE v2");
	ok(ibv_query_gid_ex(dev.ctx, 1, 2, &e, 0) == 0 && e.gid_type == IBV_GID_TYPE_ROCE_V1,
	   "row 2 is RoCE v1");
	ok(ibv_query_gid_ex(dev.ctx, 1, 1023, &e, 0) == ENODATA, "an empty row has no entry");
	ok(ibv_query_gid_table(dev.ctx, table, 16, 0) == 6 && table[5].gid_index == 5, "six rows");
	ok(table[0].gid.raw[0] == 0xfe && table[4].gid.raw[0] == 0xfd, "link-local first, IPv6 last");
	ok(type_of && type_of(dev.ctx, 1, 3, &type) == 0 && type == 1, "query_gid_type, by its private name");
	/* A caller with a larger entry than ours: we stride by its size. */
	struct {
		struct ibv_gid_entry e;
		uint64_t more;
	} big[16];

	ok(_ibv_query_gid_table(dev.ctx, &big[0].e, 16, 0, sizeof(big[0])) == 6 && big[5].e.gid_index == 5 &&
		   big[5].more == 0,
	   "the caller's entry size counts");
}

static void
test_dv_query(void)
{
	struct mlx5dv_context c;

	memset(&c, 0xee, sizeof(c));
	c.comp_mask = MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS;
	ok(mlx5dv_query_device(dev.ctx, &c) == 0, "mlx5dv_query_device");
	ok(c.num_lag_ports == 1 && c.comp_mask == MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS, "what was asked for");
	ok(c.max_wr_memcpy_length == 0xeeeeeeeeeeeeeeee, "and nothing else");
}

static void
test_mr(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *buf = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile unsigned relaxed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
	const unsigned lw = IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mr *a, *b;

	must(buf != MAP_FAILED);
	munmap(buf + 2 * page, page);
	must(mprotect(buf + 3 * page, page, PROT_READ) == 0);
	a = ibv_reg_mr(dev.pd, buf, 2 * page, lw | IBV_ACCESS_REMOTE_WRITE);
	b = ibv_reg_mr(dev.pd, buf + 1, 100, relaxed);
	ok(a && b && a->rkey != b->rkey && a->rkey == a->lkey,
	   "two regions, two keys; lkey is rkey, as on mlx5");
	ok(ibv_dealloc_pd(dev.pd) == EBUSY, "the domain is in use");
	ok(ibv_rereg_mr(b, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == 0, "rereg_mr");
	ok(ibv_dereg_mr(a) == 0 && ibv_dereg_mr(b) == 0, "dereg_mr");
	errno = 0;
	ok(!ibv_reg_mr(dev.pd, buf + page, 2 * page, lw) && errno == EFAULT, "a hole: EFAULT, not %d", errno);
	ok(!ibv_reg_mr(dev.pd, buf + 3 * page, page, lw) && errno == EFAULT,
	   "read-only memory to be written");
	a = ibv_reg_mr(dev.pd, buf + 3 * page, page, IBV_ACCESS_REMOTE_READ);
	ok(a != NULL, "read-only memory to be read");
	if (a)
		ibv_dereg_mr(a);
	ok(!ibv_reg_mr(dev.pd, buf, page, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL,
	   "REMOTE_ without LOCAL_WRITE");
	ok(!ibv_reg_mr(dev.pd, buf, 0, lw) && errno == EINVAL, "no bytes");
	ok(!ibv_reg_mr(dev.pd, buf, SIZE_MAX, lw) && errno == EINVAL, "more than there is");
	ok(!ibv_reg_mr(dev.pd, buf, page, lw | IBV_ACCESS_ON_DEMAND) && errno == EOPNOTSUPP,
	   "no paging on demand");
	munmap(buf, 2 * page);
	munmap(buf + 3 * page, page);
}

/* A dma-buf is refused where the kernel refuses it; here a memfd is in its place. */
static void
test_dmabuf(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int rw = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	int fd = memfd_create("device", MFD_CLOEXEC), pipes[2];
	uint8_t *at = mmap(NULL, 4 * page, PROT_NONE, MAP_SHARED, fd, 0);
	uint64_t iova = (uintptr_t)at;
	struct ibv_mr *a, *b;

	must(ftruncate(fd, (off_t)(4 * page)) == 0 && at != MAP_FAILED && pipe(pipes) == 0);
	errno = 0;
	ok(!ibv_reg_mr(dev.pd, at, page, rw) && errno == EFAULT, "no peer-memory driver: EFAULT, not %d",
	   errno);
	a = ibv_reg_dmabuf_mr(dev.pd, 0, 4 * page, iova, fd, rw);
	b = ibv_reg_dmabuf_mr(dev.pd, page + 7, 100, iova + 7, fd, rw);
	ok(a && b && a->rkey != b->rkey && !a->addr && b->length == 100, "a whole one, and 100 bytes of it");
	ok(ibv_rereg_mr(b, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != 0, "it is not registered anew");
	ok(ibv_dereg_mr(a) == 0 && ibv_dereg_mr(b) == 0, "dereg_mr");
	ok(!ibv_reg_dmabuf_mr(dev.pd, 1, 4 * page, iova + 1, fd, rw) && errno == EINVAL, "beyond its end");
	ok(!ibv_reg_dmabuf_mr(dev.pd, UINT64_MAX, 2, iova, fd, rw) && errno == EINVAL,
	   "an offset that wraps");
	ok(!ibv_reg_dmabuf_mr(dev.pd, 1, 10, iova, fd, rw) && errno == EINVAL,
	   "an address in another place of its page");
	ok(!ibv_reg_dmabuf_mr(dev.pd, 0, 0, iova, fd, rw) && errno == EINVAL, "no bytes");
	ok(!ibv_reg_dmabuf_mr(dev.pd, 0, 1, iova, fd, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL,
	   "REMOTE_ without LOCAL_WRITE");
	ok(!ibv_reg_dmabuf_mr(dev.pd, 0, 1, iova, pipes[0], rw) && errno == EINVAL, "a pipe");
	close(pipes[0]);
	ok(!ibv_reg_dmabuf_mr(dev.pd, 0, 1, iova, pipes[0], rw) && errno == EBADF,
	   "a descriptor that is closed");
	close(pipes[1]);
	close(fd);
	munmap(at, 4 * page);
}

static void
test_cq(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev.ctx);
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 100, NULL, ch, 0), *got;
	struct ibv_cq_init_attr_ex ca = { .cqe = 5, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *x = ibv_create_cq_ex(dev.ctx, &ca);
	struct ibv_poll_cq_attr pa = { 0 };
	struct ibv_wc wc;
	void *cx;

	must(ch && cq && x);
	ok(cq->cqe == 127 && x->cqe == 7, "powers of two less one: %d, %d", cq->cqe, x->cqe);
	ok(ibv_poll_cq(cq, 1, &wc) == 0, "empty");
	ok(ibv_start_poll(x, &pa) == ENOENT && ibv_start_poll(x, &pa) == ENOENT, "ENOENT holds no lock");
	ok(ibv_resize_cq(cq, 10) == 0 && cq->cqe == 15, "resize");
	ok(!ibv_create_cq(dev.ctx, 0, NULL, NULL, 0) && !ibv_create_cq(dev.ctx, 1 << 23, NULL, NULL, 0),
	   "limits");
	ca.wc_flags = 1ull << 40;
	ok(!ibv_create_cq_ex(dev.ctx, &ca), "unknown completion fields");
	fcntl(ch->fd, F_SETFL, O_NONBLOCK);
	ok(ibv_get_cq_event(ch, &got, &cx) == -1 && errno == EAGAIN, "no event on a non-blocking channel");
	ok(ibv_destroy_comp_channel(ch) == EBUSY, "the channel is in use");
	ok(ibv_destroy_cq(cq) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(x)) == 0, "destroy");
	ok(ibv_destroy_comp_channel(ch) == 0, "destroy the channel");
}

static void
test_ah(void)
{
	struct ibv_ah_attr a = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah;

	a.grh.dgid.raw[0] = 0x20;
	a.grh.sgid_index = SN_GID_ROW;
	ah = ibv_create_ah(dev.pd, &a);
	ok(ah && ibv_destroy_ah(ah) == 0, "any GID will do");
	a.grh.sgid_index = 15;
	ok(!ibv_create_ah(dev.pd, &a) && errno == EINVAL, "but not from an empty row");
	a.grh.sgid_index = SN_GID_ROW;
	a.is_global = 0;
	ok(!ibv_create_ah(dev.pd, &a), "nor without a route on RoCE");
}

/* ---- transitions ---- */

/* Every required bit left out must be refused, every bit outside may must be refused, need itself taken. */
static void
try_masks(struct ibv_qp *qp, const struct ibv_qp_attr *a, int need, int may, const char *what)
{
	const int all = (1 << 21) - 1;
	struct ibv_qp_attr copy;
	int bad = 0;

	for (int bit = 2; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		copy = *a;
		if (need & bit)
			bad += ibv_modify_qp(qp, &copy, IBV_QP_STATE | (need & ~bit)) == 0;
		else if (!(may & bit) && (all & bit))
			bad += ibv_modify_qp(qp, &copy, IBV_QP_STATE | need | bit) == 0;
		if (bad)
			break;
	}
	ok(bad == 0, "%s: wrong masks are refused", what);
	copy = *a;
	ok(ibv_modify_qp(qp, &copy, IBV_QP_STATE | need) == 0, "%s: the right one is taken", what);
	ok(sn_state(qp) == (int)a->qp_state, "%s: state", what);
}

static struct ibv_qp_attr
full_attr(enum ibv_qp_state s)
{
	struct ibv_qp_attr a = { .qp_state = s,
				 .port_num = 1,
				 .path_mtu = IBV_MTU_1024,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 1,
				 .max_dest_rd_atomic = 1,
				 .min_rnr_timer = 12,
				 .dest_qp_num = 99 };

	a.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	a.ah_attr.grh.sgid_index = SN_GID_ROW;

	return a;
}

static void
test_dct(void)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 1, NULL, NULL, 0);
	struct ibv_srq *srq = ibv_create_srq(dev.pd, &sa);
	struct ibv_qp_attr a;
	struct ibv_qp *dct;

	must(cq && srq);
	ok(!sn_dct_new(&dev, cq, NULL), "a DCT wants a shared receive queue");
	dct = sn_dct_new(&dev, cq, srq);
	must(dct);
	ok(dct->qp_num == 0, "no number before RTR");
	a = full_attr(IBV_QPS_RTR);
	ok(ibv_modify_qp(dct, &a, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_MIN_RNR_TIMER) ==
		   EINVAL,
	   "RTR only after INIT");
	a = full_attr(IBV_QPS_INIT);
	try_masks(dct, &a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0, "DCT INIT");
	ok(dct->qp_num == 0, "none in INIT either");
	a = full_attr(IBV_QPS_RTR);
	a.ah_attr.is_global = 0;
	ok(ibv_modify_qp(dct, &a, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_MIN_RNR_TIMER) ==
		   EINVAL,
	   "no route");
	a.ah_attr.is_global = 1;
	try_masks(dct, &a, IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_MIN_RNR_TIMER, 0, "DCT RTR");
	ok(dct->qp_num != 0, "a number from RTR on");
	a = full_attr(IBV_QPS_ERR);
	ok(ibv_modify_qp(dct, &a, IBV_QP_STATE) == EINVAL, "no ERR");
	a = full_attr(IBV_QPS_RESET);
	ok(ibv_modify_qp(dct, &a, IBV_QP_STATE) == EINVAL, "no RESET");
	ok(ibv_destroy_srq(srq) == EBUSY && ibv_destroy_cq(cq) == EBUSY, "its queues are in use");
	ok(ibv_destroy_qp(dct) == 0 && ibv_destroy_srq(srq) == 0 && ibv_destroy_cq(cq) == 0, "destroy");
}

static void
test_dci(void)
{
	struct hw_dci i;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_init_attr ia;

	sn_dci_init(&i, &dev,
		    &(struct hw_dci_opt){
			    .depth = 100, .sge = 1, .cqe = 10, .timeout = 14, .retry = 7, .send_ops = 0x15 });
	ok(ibv_query_qp(i.qp, &a, IBV_QP_CAP, &ia) == 0 && ia.cap.max_send_wr == 128, "100 slots become 128");
	ok(a.timeout == 14 && a.retry_cnt == 7 && a.path_mtu == IBV_MTU_1024, "query_qp knows what was set");
	a.qp_state = IBV_QPS_RESET;
	ok(ibv_modify_qp(i.qp, &a, IBV_QP_STATE) == 0, "RESET");
	a = full_attr(IBV_QPS_ERR);
	ok(ibv_modify_qp(i.qp, &a, IBV_QP_STATE) == EINVAL, "no ERR from RESET");
	a = full_attr(IBV_QPS_INIT);
	try_masks(i.qp, &a, IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0, "DCI INIT");
	a = full_attr(IBV_QPS_RTR);
	try_masks(i.qp, &a, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX | IBV_QP_AV, "DCI RTR");
	a = full_attr(IBV_QPS_RTS);
	ibv_wr_start(i.ex);
	ibv_wr_rdma_write(i.ex, 1, 1);
	ok(ibv_wr_complete(i.ex) == EINVAL, "a post without a DC address is refused");
	try_masks(i.qp, &a,
		  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
			  IBV_QP_SQ_PSN,
		  IBV_QP_MIN_RNR_TIMER, "DCI RTS");
	a.qp_state = IBV_QPS_SQD;
	ok(ibv_modify_qp(i.qp, &a, IBV_QP_STATE) == EINVAL, "no SQD");
	/* The masks that third parties use. */
	a.qp_state = IBV_QPS_RESET;
	ok(ibv_modify_qp(i.qp, &a, IBV_QP_STATE) == 0, "RESET");
	a = full_attr(IBV_QPS_INIT);
	ok(ibv_modify_qp(i.qp, &a, 0x31) == 0, "0x31");
	a = full_attr(IBV_QPS_RTR);
	ok(ibv_modify_qp(i.qp, &a, 0x181) == 0, "0x181");
	a = full_attr(IBV_QPS_RTS);
	ok(ibv_modify_qp(i.qp, &a, 0x12e01) == 0, "0x12e01");
	sn_dci_fini(&i);
}

static void
test_create_limits(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = dev.pd,
		.send_ops_flags = 1ull << 20,
	};
	struct mlx5dv_qp_init_attr m = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					 .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI } };
	struct ibv_qp *qp;

	ok(!mlx5dv_create_qp(dev.ctx, &a, &m), "unknown send operations are refused");
	a.send_ops_flags = 0x7f;
	a.cap.max_send_sge = 31;
	ok(!mlx5dv_create_qp(dev.ctx, &a, &m), "31 SGEs are refused");
	a.cap.max_send_sge = 1;
	a.cap.max_send_wr = 40000;
	ok(!mlx5dv_create_qp(dev.ctx, &a, &m), "40000 slots are refused");
	a.cap.max_send_wr = 4;
	a.cap.max_recv_wr = 1;
	ok(!mlx5dv_create_qp(dev.ctx, &a, &m) && errno == EINVAL, "an initiator that receives is refused");
	a.cap.max_recv_wr = 0;
	m.comp_mask = 0;
	ok(!mlx5dv_create_qp(dev.ctx, &a, &m), "a driver queue pair must say which");
	m.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC;
	a.comp_mask = IBV_QP_INIT_ATTR_PD;
	qp = mlx5dv_create_qp(dev.ctx, &a, &m);
	ok(qp && !ibv_qp_to_qp_ex(qp), "without send operations there is no extended interface");
	if (qp)
		ibv_destroy_qp(qp);
	a.qp_type = IBV_QPT_UD;
	ok(!ibv_create_qp_ex(dev.ctx, &a), "no UD");
	ibv_destroy_cq(cq);
}

static void
test_rc_masks(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr ia = { .send_cq = cq,
				       .recv_cq = cq,
				       .qp_type = IBV_QPT_RC,
				       .cap = { .max_send_wr = 4, .max_recv_wr = 4 } };
	struct ibv_qp *qp = ibv_create_qp(dev.pd, &ia);
	struct ibv_qp_attr a;

	must(qp);
	ok(qp->qp_num != 0, "an RC queue pair has its number from the start");
	a = full_attr(IBV_QPS_INIT);
	try_masks(qp, &a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0, "RC INIT");
	a = full_attr(IBV_QPS_RTR);
	try_masks(qp, &a,
		  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER,
		  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, "RC RTR");
	a = full_attr(IBV_QPS_RTS);
	a.cur_qp_state = IBV_QPS_INIT; /* a CUR_STATE that is not so is refused as well */
	try_masks(qp, &a,
		  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			  IBV_QP_MAX_QP_RD_ATOMIC,
		  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE,
		  "RC RTS");
	a.qp_state = IBV_QPS_SQD;
	ok(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0 && sn_state(qp) == IBV_QPS_SQD, "SQD");
	a.qp_state = IBV_QPS_RTS;
	ok(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0, "and back");
	a.qp_state = IBV_QPS_ERR;
	ok(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0 && sn_state(qp) == IBV_QPS_ERR, "ERR");
	ok(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0, "destroy");
}

/* t_local --gids: the rows of both devices, for ctl.sh. */
static void
print_gids(void)
{
	for (int n = 0; n < 2; n++) {
		struct ibv_gid_entry e;
		struct hw_port d;
		char s[64];

		sn_open(&d, n ? "mlx5_1" : "mlx5_0");
		for (uint32_t row = 0; row < 32; row++) {
			if (ibv_query_gid_ex(d.ctx, 1, row, &e, 0) == 0)
				printf("mlx5_%d %u %s v%u\n", n, row,
				       inet_ntop(AF_INET6, e.gid.raw, s, sizeof(s)), e.gid_type);
		}
		sn_close(&d);
	}
}

int
main(int argc, char **argv)
{
	setenv("SOFTNIC_DEVICES", "2", 1);
	if (argc == 2 && strcmp(argv[1], "--gids") == 0) {
		print_gids();
		return 0;
	}
	sn_open(&dev, "mlx5_0");
	test_device();
	test_port();
	test_gids();
	test_dv_query();
	test_mr();
	test_dmabuf();
	test_cq();
	test_ah();
	test_dct();
	test_dci();
	test_create_limits();
	test_rc_masks();
	sn_close(&dev);

	return sn_summary("local");
}
