/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving on the software NIC: SEND and RDMA writes with immediate data between two RC queue pairs of this process, from a DC initiator
 * to a DC target, and from another process; statuses of both ends as in the InfiniBand specification. Run in both modes.
 */
#include "sn_test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 3 << 20, DEPTH = 16 };

static const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

/* One end of a connection. Numbers of its options: 0 is the usual value. */
struct end {
	struct ibv_cq *scq, *rcq;
	struct ibv_cq_ex *rcx;
	struct ibv_qp *qp;
};
struct opt {
	struct ibv_comp_channel *chan;
	struct ibv_srq *srq;
	uint8_t rnr_retry, rnr_timer, timeout;
	bool sig_all, extended;
	bool to_rtr; /* the queue pairs stay in RTR */
};

static struct hw_port dev;
static uint8_t *buf, *mem;
static struct ibv_mr *mr, *to;
static struct end a, b;

static void
end_new(struct end *e, const struct opt *o)
{
	struct ibv_cq_init_attr_ex ca = { .cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS, .channel = o->chan };
	struct ibv_qp_init_attr_ex x = {
		.qp_type = IBV_QPT_RC,
		.srq = o->srq,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 3,
			 .max_recv_sge = 3,
			 .max_inline_data = 64 },
		.sq_sig_all = o->sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = dev.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	e->scq = ibv_create_cq(dev.ctx, 64, NULL, NULL, 0);
	e->rcx = ibv_create_cq_ex(dev.ctx, &ca);
	must(e->scq && e->rcx);
	e->rcq = ibv_cq_ex_to_cq(e->rcx);
	x.send_cq = e->scq;
	x.recv_cq = e->rcq;
	if (o->extended)
		x.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	e->qp = ibv_create_qp_ex(dev.ctx, &x);
	must(e->qp);
}

static void
end_free(struct end *e)
{
	ok(ibv_destroy_qp(e->qp) == 0 && ibv_destroy_cq(e->scq) == 0 && ibv_destroy_cq(e->rcq) == 0,
	   "destroy");
}

static void
to_rts(struct ibv_qp *qp, const struct opt *o)
{
	struct ibv_qp_attr t = { .qp_state = IBV_QPS_RTS,
				 .timeout = o->timeout ? o->timeout : 8,
				 .retry_cnt = 3,
				 .rnr_retry = o->rnr_retry,
				 .max_rd_atomic = 1 };

	must(ibv_modify_qp(qp, &t,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void
connect_to(struct ibv_qp *qp, uint32_t peer, const struct opt *o)
{
	struct ibv_qp_attr t = { .qp_state = IBV_QPS_RESET };

	must(ibv_modify_qp(qp, &t, IBV_QP_STATE) == 0);
	t = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned)all };
	must(ibv_modify_qp(qp, &t, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
	     0);
	t = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = peer,
				  .max_dest_rd_atomic = 1,
				  .min_rnr_timer = o->rnr_timer ? o->rnr_timer : 1 };
	t.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	must(ibv_query_gid(dev.ctx, 1, SN_GID_ROW, &t.ah_attr.grh.dgid) == 0);
	t.ah_attr.grh.sgid_index = SN_GID_ROW;
	must(ibv_modify_qp(qp, &t,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
	if (!o->to_rtr)
		to_rts(qp, o);
}

static void
pair(const struct opt *o)
{
	end_new(&a, o);
	end_new(&b, o);
	connect_to(a.qp, b.qp->qp_num, o);
	connect_to(b.qp, a.qp->qp_num, o);
}

static void
unpair(void)
{
	end_free(&a);
	end_free(&b);
}

static int
post_recv_sge(struct end *e, uint64_t id, struct ibv_sge *s, int n)
{
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = s, .num_sge = n }, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

static void
post_recv(struct end *e, uint64_t id, uint32_t len)
{
	struct ibv_sge s = { (uintptr_t)mem, len, to->lkey };

	must(post_recv_sge(e, id, &s, 1) == 0);
}

static int
post_send(struct end *e, enum ibv_wr_opcode op, uint64_t id, uint32_t len, unsigned flags)
{
	struct ibv_sge s = { (uintptr_t)buf, len, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &s,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = flags,
				  .imm_data = htonl(0x1234abcd) },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)mem + 4096;
	wr.wr.rdma.rkey = to->rkey;

	return ibv_post_send(e->qp, &wr, &bad);
}

/* The next completion; its status, -1 if none comes. */
static int
wait_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	uint64_t end = sn_now_ms() + SN_PATIENCE_MS;

	while (sn_now_ms() < end) {
		if (ibv_poll_cq(cq, 1, wc) == 1)
			return (int)wc->status;
	}

	return -1;
}

static bool
is_wc(struct ibv_cq *cq, int status, uint64_t id)
{
	struct ibv_wc wc = { 0 };
	int s = wait_wc(cq, &wc);

	return ok(s == status && wc.wr_id == id, "status %d of work request %d, not %d of %d", status,
		  (int)id, s, (int)wc.wr_id);
}

static void
pattern(int seed)
{
	for (size_t i = 0; i < LEN; i++)
		buf[i] = (uint8_t)(i * 7 + i / 4096 + (size_t)seed);
	memset(mem, 0, LEN);
}

static void
test_send(void)
{
	struct ibv_wc wc = { 0 };

	pair(&(struct opt){ 0 });
	pattern(1);
	post_recv(&b, 11, LEN);
	ok(post_send(&a, IBV_WR_SEND, 1, LEN - 5, IBV_SEND_SIGNALED) == 0, "SEND of 3 MiB");
	ok(wait_wc(b.rcq, &wc) == IBV_WC_SUCCESS && wc.wr_id == 11 && wc.opcode == IBV_WC_RECV &&
		   wc.byte_len == LEN - 5 && wc.qp_num == b.qp->qp_num && !(wc.wc_flags & IBV_WC_WITH_IMM),
	   "the receive has length and opcode");
	ok(memcmp(buf, mem, LEN - 5) == 0 && mem[LEN - 5] == 0, "every byte, and none after the last");
	ok(wait_wc(a.scq, &wc) == IBV_WC_SUCCESS && wc.wr_id == 1 && wc.opcode == IBV_WC_SEND,
	   "the sender's completion");
	post_recv(&b, 12, 64);
	ok(post_send(&a, IBV_WR_SEND_WITH_IMM, 2, 0, IBV_SEND_SIGNALED) == 0 &&
		   is_wc(a.scq, IBV_WC_SUCCESS, 2),
	   "SEND of no bytes");
	ok(wait_wc(b.rcq, &wc) == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.byte_len == 0 &&
		   wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htonl(0x1234abcd),
	   "with immediate data");
	/* Both directions, and a receive in its order. */
	post_recv(&a, 13, 64);
	post_recv(&a, 14, 64);
	must(post_send(&b, IBV_WR_SEND, 3, 64, 0) == 0 &&
	     post_send(&b, IBV_WR_SEND, 4, 64, IBV_SEND_SIGNALED) == 0);
	is_wc(a.rcq, IBV_WC_SUCCESS, 13);
	is_wc(a.rcq, IBV_WC_SUCCESS, 14);
	is_wc(b.scq, IBV_WC_SUCCESS, 4);
	ok(ibv_poll_cq(b.scq, 1, &wc) == 0, "an unsignaled SEND has no completion");
	unpair();
}

static void
test_pieces(void)
{
	struct ibv_sge from[3] = { { (uintptr_t)buf, 1000, mr->lkey },
				   { (uintptr_t)buf + 1000, 0, mr->lkey },
				   { (uintptr_t)buf + 1000, 9000, mr->lkey } };
	struct ibv_sge into[3] = { { (uintptr_t)mem + 7, 4000, to->lkey },
				   { (uintptr_t)mem + 4007, 3000, to->lkey },
				   { (uintptr_t)mem + 9000, 5000, to->lkey } };
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = from, .num_sge = 3, .opcode = IBV_WR_SEND }, *bad;
	char text[16] = "inline data";
	struct ibv_wc wc;

	pair(&(struct opt){ .sig_all = true });
	pattern(2);
	must(post_recv_sge(&b, 5, into, 3) == 0);
	ok(ibv_post_send(a.qp, &wr, &bad) == 0 && is_wc(a.scq, IBV_WC_SUCCESS, 1),
	   "sq_sig_all: a completion");
	ok(is_wc(b.rcq, IBV_WC_SUCCESS, 5) && memcmp(mem + 7, buf, 7000) == 0 &&
		   memcmp(mem + 9000, buf + 7000, 3000) == 0 && mem[7007] == 0 && mem[12000] == 0,
	   "gathered and scattered");
	post_recv(&b, 6, 16);
	from[0] = (struct ibv_sge){ (uintptr_t)text, sizeof(text), 0 };
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	must(ibv_post_send(a.qp, &wr, &bad) == 0);
	memset(text, 0, sizeof(text));
	ok(wait_wc(b.rcq, &wc) == IBV_WC_SUCCESS && wc.byte_len == 16 &&
		   strcmp((char *)mem, "inline data") == 0,
	   "inline data is sent as it was when posted");
	is_wc(a.scq, IBV_WC_SUCCESS, 1);
	unpair();
}

static void
test_write_imm(void)
{
	struct ibv_wc wc = { 0 };

	pair(&(struct opt){ 0 });
	pattern(3);
	post_recv(&b, 1, 16);
	must(post_send(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 2 << 20, IBV_SEND_SIGNALED) == 0);
	ok(wait_wc(b.rcq, &wc) == IBV_WC_SUCCESS && wc.wr_id == 1 && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
		   wc.byte_len == 2 << 20 && wc.wc_flags & IBV_WC_WITH_IMM &&
		   wc.imm_data == htonl(0x1234abcd),
	   "a write with immediate data ends a receive: opcode, length, data");
	ok(memcmp(mem + 4096, buf, 2 << 20) == 0 && mem[0] == 0 && mem[15] == 0,
	   "the bytes are at the remote address, the receive's buffer is as it was");
	ok(wait_wc(a.scq, &wc) == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_WRITE,
	   "the sender's completion");
	post_recv(&b, 3, 0);
	must(post_send(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 4, 0, IBV_SEND_SIGNALED) == 0);
	ok(wait_wc(b.rcq, &wc) == IBV_WC_SUCCESS && wc.byte_len == 0 && is_wc(a.scq, IBV_WC_SUCCESS, 4),
	   "of no bytes");
	post_recv(&b, 5, 16);
	to->rkey += 256;
	must(post_send(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 6, 8, 0) == 0);
	to->rkey -= 256;
	is_wc(a.scq, IBV_WC_REM_ACCESS_ERR, 6);
	is_wc(b.rcq, IBV_WC_WR_FLUSH_ERR, 5); /* a wrong rkey ends no receive, but the queue pair */
	unpair();
}

/* The extended interfaces: ibv_wr_*, and ibv_start_poll. */
static void
test_extended(void)
{
	struct ibv_poll_cq_attr pa = { 0 };
	struct ibv_qp_ex *x;
	unsigned n = 0;

	pair(&(struct opt){ .extended = true });
	pattern(4);
	x = ibv_qp_to_qp_ex(a.qp);
	must(x);
	for (unsigned i = 0; i < 3; i++)
		post_recv(&b, i, 64);
	ibv_wr_start(x);
	x->wr_id = 1;
	x->wr_flags = 0;
	ibv_wr_send(x);
	ibv_wr_set_sge(x, mr->lkey, (uintptr_t)buf, 30);
	ibv_wr_send_imm(x, htonl(77));
	ibv_wr_set_inline_data(x, buf, 31);
	x->wr_id = 3;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write_imm(x, to->rkey, (uintptr_t)mem + 4096, htonl(78));
	ibv_wr_set_sge(x, mr->lkey, (uintptr_t)buf, 32);
	ok(ibv_wr_complete(x) == 0 && is_wc(a.scq, IBV_WC_SUCCESS, 3), "three messages by ibv_wr_*");
	for (uint64_t end = sn_now_ms() + SN_PATIENCE_MS; n < 3 && sn_now_ms() < end;) {
		if (ibv_start_poll(b.rcx, &pa) == ENOENT)
			continue;
		ok(b.rcx->wr_id == n && b.rcx->status == IBV_WC_SUCCESS &&
			   ibv_wc_read_byte_len(b.rcx) == 30 + n,
		   "receive %u", n);
		ok(!(ibv_wc_read_wc_flags(b.rcx) & IBV_WC_WITH_IMM) == (n == 0), "its flags");
		ok(n == 0 || ibv_wc_read_imm_data(b.rcx) == htonl(76 + n), "its immediate data");
		ok(ibv_wc_read_opcode(b.rcx) == (n == 2 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV),
		   "its opcode");
		ibv_end_poll(b.rcx);
		n++;
	}
	ok(n == 3, "three receives");
	ibv_wr_start(x);
	x->wr_id = 4;
	ibv_wr_send_inv(x, 1);
	ok(ibv_wr_complete(x) == 0 && is_wc(a.scq, IBV_WC_LOC_QP_OP_ERR, 4),
	   "SEND with invalidation is not there");
	unpair();
}

/* Waits for three RNR NAKs more of a SEND to a queue pair without a receive, 10.24 ms each: the engine has looked at all of its other
 * queue pairs between two of them. */
static void
three_naks(void)
{
	const struct opt o = { .rnr_retry = 3, .rnr_timer = 20 };
	struct end from, into;

	end_new(&from, &o);
	end_new(&into, &o);
	connect_to(from.qp, into.qp->qp_num, &o);
	connect_to(into.qp, from.qp->qp_num, &o);
	must(post_send(&from, IBV_WR_SEND, 77, 8, 0) == 0);
	is_wc(from.scq, IBV_WC_RNR_RETRY_EXC_ERR, 77);
	end_free(&from);
	end_free(&into);
}

static void
test_rnr(void)
{
	struct ibv_wc wc;
	uint64_t start;

	/* Two more tries, each after 40.96 ms. */
	pair(&(struct opt){ .rnr_retry = 2, .rnr_timer = 24 });
	start = sn_now_ms();
	must(post_send(&a, IBV_WR_SEND, 1, 8, 0) == 0);
	is_wc(a.scq, IBV_WC_RNR_RETRY_EXC_ERR, 1);
	ok(sn_now_ms() - start >= 81, "after both waits: %d ms", (int)(sn_now_ms() - start));
	ok(sn_state(a.qp) == IBV_QPS_ERR && sn_state(b.qp) == IBV_QPS_RTS,
	   "the sender is in ERR, the receiver is not");
	unpair();
	pair(&(struct opt){ .rnr_retry = 0, .rnr_timer = 31 });
	start = sn_now_ms();
	must(post_send(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 8, 0) == 0);
	is_wc(a.scq, IBV_WC_RNR_RETRY_EXC_ERR, 2);
	unpair();
	pair(&(struct opt){ .rnr_retry = 7, .rnr_timer = 20 });
	must(post_send(&a, IBV_WR_SEND, 3, 8, IBV_SEND_SIGNALED) == 0);
	/* More than seven. */
	for (int n = 0; n < 4; n++)
		three_naks();
	ok(ibv_poll_cq(a.scq, 1, &wc) == 0, "seven is without end");
	post_recv(&b, 4, 8);
	is_wc(a.scq, IBV_WC_SUCCESS, 3);
	is_wc(b.rcq, IBV_WC_SUCCESS, 4);
	unpair();
}

/* Buffers of receives that violate their registration. */
static void
test_bad_buffers(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev.ctx);
	struct ibv_mr *foreign, *constant, *part;

	must(pd);
	foreign = ibv_reg_mr(pd, mem, 4096, IBV_ACCESS_LOCAL_WRITE);
	constant = ibv_reg_mr(dev.pd, mem, 4096, 0);
	part = ibv_reg_mr(dev.pd, mem + 4096, 4096, IBV_ACCESS_LOCAL_WRITE);
	must(foreign && constant && part);
	const struct {
		const char *what;
		struct ibv_sge s;
	} bad[] = { { "no such key", { (uintptr_t)mem, 64, 0x7fff00 } },
		    { "a byte after the end", { (uintptr_t)mem + LEN - 63, 64, to->lkey } },
		    { "before its region", { (uintptr_t)mem, 64, part->lkey } },
		    { "after its region", { (uintptr_t)mem + 8256, 64, part->lkey } },
		    { "another protection domain", { (uintptr_t)mem, 64, foreign->lkey } },
		    { "not registered for writing", { (uintptr_t)mem, 64, constant->lkey } } };

	memset(mem, 0, LEN);
	for (unsigned n = 0; n < sizeof(bad) / sizeof(bad[0]); n++) {
		struct ibv_sge s = bad[n].s;

		pair(&(struct opt){ 0 });
		must(post_recv_sge(&b, 6, &s, 1) == 0);
		must(post_send(&a, IBV_WR_SEND, 7, 64, 0) == 0);
		ok(is_wc(a.scq, IBV_WC_REM_OP_ERR, 7) && is_wc(b.rcq, IBV_WC_LOC_PROT_ERR, 6) &&
			   mem[0] == 0 && mem[8256] == 0,
		   "a buffer: %s", bad[n].what);
		unpair();
	}
	ok(ibv_dereg_mr(foreign) == 0 && ibv_dereg_mr(constant) == 0 && ibv_dereg_mr(part) == 0 &&
		   ibv_dealloc_pd(pd) == 0,
	   "deregister");
}

static void
test_errors(void)
{
	struct ibv_sge s = { (uintptr_t)mem, 64, 0 };
	struct ibv_wc wc;

	pair(&(struct opt){ 0 });
	pattern(5);
	post_recv(&b, 1, 63);
	post_recv(&b, 2, 64);
	must(post_send(&a, IBV_WR_SEND, 3, 64, 0) == 0 && post_send(&a, IBV_WR_SEND, 4, 64, 0) == 0);
	is_wc(a.scq, IBV_WC_REM_INV_REQ_ERR, 3);
	is_wc(a.scq, IBV_WC_WR_FLUSH_ERR, 4);
	is_wc(b.rcq, IBV_WC_LOC_LEN_ERR, 1);
	is_wc(b.rcq, IBV_WC_WR_FLUSH_ERR, 2);
	ok(sn_state(a.qp) == IBV_QPS_ERR && sn_state(b.qp) == IBV_QPS_ERR && mem[0] == 0,
	   "a SEND that is too long: both ends in ERR");
	post_recv(&b, 5, 64);
	is_wc(b.rcq, IBV_WC_WR_FLUSH_ERR, 5);
	unpair();
	test_bad_buffers();
	pair(&(struct opt){ 0 });
	mr->lkey += 256;
	must(post_send(&a, IBV_WR_SEND, 8, 64, 0) == 0);
	mr->lkey -= 256;
	is_wc(a.scq, IBV_WC_LOC_PROT_ERR, 8);
	s.lkey = to->lkey;
	ok(post_recv_sge(&b, 9, (struct ibv_sge[4]){ s, s, s, s }, 4) == EINVAL,
	   "four buffers where three were asked for");
	for (int i = 0; i < DEPTH; i++)
		post_recv(&b, (uint64_t)i, 8);
	ok(post_recv_sge(&b, 9, &s, 1) == ENOMEM, "a full receive queue");
	struct ibv_qp_attr t = { .qp_state = IBV_QPS_RESET };

	must(ibv_modify_qp(b.qp, &t, IBV_QP_STATE) == 0);
	ok(ibv_poll_cq(b.rcq, 1, &wc) == 0, "a reset drops receives without completions");
	ok(post_recv_sge(&b, 9, &s, 1) == EINVAL && post_send(&b, IBV_WR_SEND, 9, 64, 0) == EINVAL,
	   "neither a receive nor a SEND in RESET");
	unpair();
}

static bool
is_event(enum ibv_event_type type, const struct ibv_qp *qp)
{
	struct ibv_async_event e = { 0 };
	int got = sn_next_event(dev.ctx, SN_PATIENCE_MS, &e);

	return ok(got == (int)type && e.element.qp == qp, "event %d, not %d", type, got);
}

/* The first packet of the peer arrives in RTR. */
static void
test_established(void)
{
	const struct opt o = { .to_rtr = true };

	for (int n = 0; n < 2; n++) {
		pair(&o);
		to_rts(a.qp, &o);
		post_recv(&b, 1, 64);
		must(post_send(&a, n ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, 1, 64, IBV_SEND_SIGNALED) == 0);
		is_wc(a.scq, IBV_WC_SUCCESS, 1);
		must(post_send(&a, IBV_WR_RDMA_READ, 2, 64, IBV_SEND_SIGNALED) == 0);
		is_wc(a.scq, IBV_WC_SUCCESS, 2);
		is_event(IBV_EVENT_COMM_EST, b.qp);
		/* The next event is another one: there is one COMM_EST. */
		must(post_send(&a, IBV_WR_RDMA_READ, 3, LEN, IBV_SEND_SIGNALED) == 0);
		is_wc(a.scq, IBV_WC_REM_ACCESS_ERR, 3);
		is_event(IBV_EVENT_QP_ACCESS_ERR, b.qp);
		unpair();
	}
}

/* A violation breaks the queue pair of the peer, too: its receives are flushed, and it sends no more. */
static void
test_violations(void)
{
	struct ibv_qp_attr t = { .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	for (int n = 0; n < 2; n++) {
		pair(&(struct opt){ 0 });
		post_recv(&b, 1, 64);
		if (n) {
			must(ibv_modify_qp(b.qp, &t, IBV_QP_ACCESS_FLAGS) == 0);
			must(post_send(&a, IBV_WR_RDMA_READ, 2, 64, 0) == 0);
			is_wc(a.scq, IBV_WC_REM_INV_REQ_ERR, 2);
		} else {
			must(post_send(&a, IBV_WR_RDMA_WRITE, 2, LEN, 0) == 0);
			is_wc(a.scq, IBV_WC_REM_ACCESS_ERR, 2);
		}
		is_event(n ? IBV_EVENT_QP_REQ_ERR : IBV_EVENT_QP_ACCESS_ERR, b.qp);
		ok(sn_state(b.qp) == IBV_QPS_ERR, "the peer is in ERR");
		is_wc(b.rcq, IBV_WC_WR_FLUSH_ERR, 1);
		must(post_send(&b, IBV_WR_SEND, 3, 64, 0) == 0);
		is_wc(b.scq, IBV_WC_WR_FLUSH_ERR, 3);
		connect_to(a.qp, b.qp->qp_num, &(struct opt){ 0 });
		connect_to(b.qp, a.qp->qp_num, &(struct opt){ 0 });
		must(post_send(&a, IBV_WR_RDMA_WRITE, 4, 64, IBV_SEND_SIGNALED) == 0);
		is_wc(a.scq, IBV_WC_SUCCESS, 4);
		unpair();
	}
}

static void
qp_fatal(const struct ibv_qp *qp)
{
	char cmd[64];

	snprintf(cmd, sizeof(cmd), "qp %#x fatal", qp->qp_num);
	sn_ctl(cmd);
}

/* What a queue pair has been told ends with a reset, and in RESET it is told nothing. */
static void
test_reset_forgets(void)
{
	const struct opt o = { .to_rtr = true };
	struct ibv_qp_attr t = { .qp_state = IBV_QPS_RESET };
	enum ibv_event_type type;
	struct ibv_async_event e;
	struct end c;

	pair(&o);
	for (int n = 0; n < 3; n++) {
		to_rts(a.qp, &o);
		must(post_send(&a, IBV_WR_RDMA_WRITE, 1, 64, IBV_SEND_SIGNALED) == 0);
		is_wc(a.scq, IBV_WC_SUCCESS, 1);
		is_event(IBV_EVENT_COMM_EST, b.qp);
		connect_to(a.qp, b.qp->qp_num, &o);
		connect_to(b.qp, a.qp->qp_num, &o);
	}
	unpair();

	/* Between two others in the device's list, whichever way the device goes through it. */
	end_new(&a, &o);
	end_new(&c, &o);
	end_new(&b, &o);
	connect_to(a.qp, b.qp->qp_num, &(struct opt){ 0 });
	connect_to(b.qp, a.qp->qp_num, &(struct opt){ 0 });
	must(ibv_modify_qp(c.qp, &t, IBV_QP_STATE) == 0);
	qp_fatal(c.qp);
	qp_fatal(a.qp);
	qp_fatal(b.qp);
	for (int n = 0; n < 2; n++) {
		type = (enum ibv_event_type)sn_next_event(dev.ctx, SN_PATIENCE_MS, &e);
		ok(type == IBV_EVENT_QP_FATAL && e.element.qp != c.qp, "QP_FATAL of the two in RTS");
	}
	ok(sn_state(c.qp) == IBV_QPS_RESET, "in RESET");
	connect_to(a.qp, c.qp->qp_num, &(struct opt){ 0 });
	connect_to(c.qp, a.qp->qp_num, &(struct opt){ 0 });
	must(post_send(&c, IBV_WR_RDMA_WRITE, 2, 64, IBV_SEND_SIGNALED) == 0 &&
	     post_send(&a, IBV_WR_RDMA_WRITE, 3, 64, IBV_SEND_SIGNALED) == 0);
	is_wc(c.scq, IBV_WC_SUCCESS, 2);
	is_wc(a.scq, IBV_WC_SUCCESS, 3);
	end_free(&c);
	unpair();
}

/* The device has no atomic operations, and says so. */
static void
test_atomics(void)
{
	struct ibv_device_attr attr;
	struct ibv_qp_ex *x;

	pair(&(struct opt){ .extended = true });
	must(ibv_query_device(dev.ctx, &attr) == 0);
	ok(attr.atomic_cap == IBV_ATOMIC_NONE, "no atomics");
	ok(post_send(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 8, 0) == ENOSYS &&
		   post_send(&a, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 8, 0) == ENOSYS,
	   "refused");
	x = ibv_qp_to_qp_ex(a.qp);
	must(x);
	ibv_wr_start(x);
	ibv_wr_atomic_fetch_add(x, to->rkey, (uintptr_t)mem, 1);
	ibv_wr_set_sge(x, mr->lkey, (uintptr_t)buf, 8);
	ok(ibv_wr_complete(x) == EOPNOTSUPP, "refused by ibv_wr_complete()");
	must(post_send(&a, IBV_WR_RDMA_WRITE, 2, 8, IBV_SEND_SIGNALED) == 0);
	is_wc(a.scq, IBV_WC_SUCCESS, 2);
	unpair();
}

static void
test_solicited(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev.ctx);
	struct pollfd p = { .events = POLLIN };
	struct ibv_cq *got;
	void *cx;

	must(ch);
	p.fd = ch->fd;
	pair(&(struct opt){ .chan = ch });
	must(ibv_req_notify_cq(b.rcq, 1) == 0);
	post_recv(&b, 1, 8);
	post_recv(&b, 2, 8);
	must(post_send(&a, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED) == 0);
	is_wc(a.scq, IBV_WC_SUCCESS, 1);
	ok(poll(&p, 1, 0) == 0, "not solicited, no event");
	must(post_send(&a, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED) == 0);
	ok(poll(&p, 1, SN_PATIENCE_MS) == 1 && ibv_get_cq_event(ch, &got, &cx) == 0 && got == b.rcq,
	   "solicited, an event");
	ibv_ack_cq_events(b.rcq, 1);
	unpair();
	ok(ibv_destroy_comp_channel(ch) == 0, "destroy the channel");
}

static void
test_srq(void)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 15, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(dev.pd, &sa);
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	struct ibv_sge s = { (uintptr_t)mem, 64, to->lkey };
	struct ibv_recv_wr wr = { .sg_list = &s, .num_sge = 1 }, *bad;
	struct ibv_qp_attr t = { .qp_state = IBV_QPS_ERR };
	struct ibv_async_event ev;
	struct ibv_wc wc = { 0 };
	struct end c;

	must(srq);
	pair(&(struct opt){ .srq = srq });
	end_new(&c, &(struct opt){ .srq = srq });
	for (wr.wr_id = 1; wr.wr_id <= 3; wr.wr_id++)
		must(ibv_post_srq_recv(srq, &wr, &bad) == 0);
	must(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
	must(post_send(&a, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED) == 0);
	is_wc(a.scq, IBV_WC_SUCCESS, 1);
	ok(wait_wc(b.rcq, &wc) == 0 && wc.wr_id == 1 && wc.qp_num == b.qp->qp_num,
	   "from the shared queue, in order");
	must(post_send(&b, IBV_WR_SEND, 2, 8, IBV_SEND_SIGNALED) == 0);
	is_wc(b.scq, IBV_WC_SUCCESS, 2);
	ok(wait_wc(a.rcq, &wc) == 0 && wc.wr_id == 2 && wc.qp_num == a.qp->qp_num, "for either queue pair");
	ok(sn_next_event(dev.ctx, SN_PATIENCE_MS, &ev) == IBV_EVENT_SRQ_LIMIT_REACHED &&
		   ev.element.srq == srq,
	   "below the limit: an event");
	must(ibv_query_srq(srq, &limit) == 0);
	ok(limit.srq_limit == 0, "once");
	must(ibv_modify_qp(b.qp, &t, IBV_QP_STATE) == 0);
	ok(sn_next_event(dev.ctx, SN_PATIENCE_MS, &ev) == IBV_EVENT_QP_LAST_WQE_REACHED &&
		   ev.element.qp == b.qp,
	   "ERR: the last receive of the queue pair");
	ok(ibv_poll_cq(b.rcq, 1, &wc) == 0, "the shared queue is not flushed");
	connect_to(c.qp, a.qp->qp_num, &(struct opt){ 0 });
	connect_to(a.qp, c.qp->qp_num, &(struct opt){ 0 });
	must(post_send(&a, IBV_WR_SEND, 3, 8, IBV_SEND_SIGNALED) == 0);
	ok(wait_wc(c.rcq, &wc) == 0 && wc.wr_id == 3, "another queue pair gets the rest");
	ok(ibv_destroy_srq(srq) == EBUSY, "in use");
	unpair();
	end_free(&c);
	ok(ibv_destroy_srq(srq) == 0, "destroy");
}

static void
test_dc(void)
{
	static const struct hw_dci_opt o = { .depth = 16,
					     .sge = 1,
					     .inl = 64,
					     .cqe = 63,
					     .timeout = 8,
					     .retry = 3,
					     .send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
							 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM };
	struct ibv_sge s = { (uintptr_t)mem, 4096, to->lkey };
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &s, .num_sge = 1 }, *bad;
	struct ibv_wc wc = { 0 };
	struct hw_target t;
	struct hw_token tok;
	struct hw_dci i;

	sn_target_init(&t, &dev, 4096, (unsigned)all, (unsigned)all);
	sn_target_token(&t, &tok);
	sn_dci_init(&i, &dev, &o);
	sn_dci_to(&i, &tok);
	pattern(6);
	for (int n = 0; n < 2; n++) {
		must(ibv_post_srq_recv(t.srq, &wr, &bad) == 0);
		ibv_wr_start(i.ex);
		i.ex->wr_id = 1;
		i.ex->wr_flags = IBV_SEND_SIGNALED;
		if (n)
			ibv_wr_rdma_write_imm(i.ex, tok.rkey, tok.addr, htonl(99));
		else
			ibv_wr_send_imm(i.ex, htonl(99));
		mlx5dv_wr_set_dc_addr(i.dv, i.ah, tok.dctn, tok.dc_key);
		ibv_wr_set_sge(i.ex, mr->lkey, (uintptr_t)buf, 4096);
		ok(ibv_wr_complete(i.ex) == 0 && sn_wait(&i, NULL) == IBV_WC_SUCCESS, "to a DC target, %d",
		   n);
		ok(wait_wc(t.cq, &wc) == 0 && wc.wr_id == 5 && wc.byte_len == 4096 &&
			   wc.imm_data == htonl(99) &&
			   wc.opcode == (n ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) &&
			   wc.qp_num == t.dct->qp_num,
		   "its receive");
		ok(memcmp(n ? t.buf : mem, buf, 4096) == 0, "the bytes");
	}
	sn_dci_fini(&i);
	sn_target_fini(&t);
}

static void
test_faults(void)
{
	struct ibv_wc wc = { 0 };
	char cmd[600], trace[400];

	snprintf(trace, sizeof(trace), "%s/trace.recv", getenv("SOFTNIC_DIR"));
	snprintf(cmd, sizeof(cmd), "trace on %s", trace);
	sn_ctl(cmd);
	sn_ctl("rule add op=send corrupt=100 >/dev/null");
	pair(&(struct opt){ 0 });
	pattern(7);
	post_recv(&b, 1, 4096);
	must(post_send(&a, IBV_WR_SEND, 1, 4096, IBV_SEND_SIGNALED) == 0);
	ok(wait_wc(b.rcq, &wc) == 0 && (mem[100] ^ buf[100]) == 0xff, "a byte of a SEND is inverted");
	mem[100] = buf[100];
	ok(memcmp(mem, buf, 4096) == 0 && is_wc(a.scq, IBV_WC_SUCCESS, 1), "and no other");
	sn_ctl("rule clear");
	sn_ctl("rule add op=send scramble=512 torn=50 drop >/dev/null");
	post_recv(&b, 2, 4096);
	pattern(8);
	must(post_send(&a, IBV_WR_SEND, 2, 4096, IBV_SEND_SIGNALED) == 0);
	ok(wait_wc(b.rcq, &wc) == 0 && memcmp(mem, buf, 2048) == 0 && mem[2048] == 0, "half of a SEND");
	sn_ctl("rule clear");
	sn_ctl("rule add op=send status=REM_OP_ERR >/dev/null");
	post_recv(&b, 3, 4096);
	must(post_send(&a, IBV_WR_SEND, 3, 4096, 0) == 0);
	is_wc(a.scq, IBV_WC_REM_OP_ERR, 3);
	ok(ibv_poll_cq(b.rcq, 1, &wc) == 0, "a SEND that fails by a rule ends no receive");
	sn_ctl("rule clear");
	sn_ctl("trace off");
	unpair();
	snprintf(cmd, sizeof(cmd), "trace show %s | grep -Ec ' send .* (SUCCESS|REM_OP_ERR) ' | grep -qx 3",
		 trace);
	sn_ctl(cmd);
	/* A receive whose sender has copied a part, while the receiver enters ERR. */
	sn_ctl("rule add op=send scramble=512 pause=20ms >/dev/null");
	pair(&(struct opt){ 0 });
	post_recv(&b, 4, 1 << 16);
	post_recv(&b, 5, 8);
	must(post_send(&a, IBV_WR_SEND, 4, 1 << 16, 0) == 0);
	for (uint64_t end = sn_now_ms() + SN_PATIENCE_MS;
	     memcmp(mem, buf, 1 << 16) != 0 && sn_now_ms() < end;) {
		uint32_t there = 0;

		for (int i = 0; i < 1 << 16; i += 512)
			there += mem[i + 1] == buf[i + 1];
		if (there > 8)
			break;
	}
	struct ibv_qp_attr t = { .qp_state = IBV_QPS_ERR };

	must(ibv_modify_qp(b.qp, &t, IBV_QP_STATE) == 0);
	memset(mem, 0x5a, 1 << 16);
	is_wc(b.rcq, IBV_WC_WR_FLUSH_ERR, 4);
	is_wc(b.rcq, IBV_WC_WR_FLUSH_ERR, 5);
	is_wc(a.scq, IBV_WC_RETRY_EXC_ERR, 4);
	ok(mem[0] == 0x5a && memcmp(mem, mem + 1, (1 << 16) - 1) == 0, "no byte arrives after the flush");
	sn_ctl("rule clear");
	unpair();
}

static void
test_port_and_device(void)
{
	static const enum ibv_event_type events[] = { IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE,
						      IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE,
						      IBV_EVENT_DEVICE_FATAL };
	struct ibv_wc wc;
	struct end c;

	pair(&(struct opt){ .timeout = 17 });
	post_recv(&b, 1, 8);
	sn_ctl("port mlx5_0 down");
	must(post_send(&a, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED) == 0);
	/* The engine tries it, and after it the one of another pair, which gives up sooner. */
	end_new(&c, &(struct opt){ 0 });
	connect_to(c.qp, b.qp->qp_num, &(struct opt){ 0 });
	must(post_send(&c, IBV_WR_RDMA_WRITE, 9, 8, 0) == 0);
	is_wc(c.scq, IBV_WC_RETRY_EXC_ERR, 9);
	end_free(&c);
	ok(ibv_poll_cq(b.rcq, 1, &wc) == 0, "port down: nothing is received");
	sn_ctl("port mlx5_0 up");
	ok(is_wc(a.scq, IBV_WC_SUCCESS, 1) && is_wc(b.rcq, IBV_WC_SUCCESS, 1), "the retry delivers");
	unpair();
	pair(&(struct opt){ 0 });
	post_recv(&b, 2, 8);
	sn_ctl("port mlx5_0 down");
	must(post_send(&a, IBV_WR_SEND, 2, 8, 0) == 0);
	is_wc(a.scq, IBV_WC_RETRY_EXC_ERR, 2);
	sn_ctl("port mlx5_0 up");
	unpair();
	pair(&(struct opt){ 0 });
	post_recv(&b, 3, 8);
	sn_ctl("device mlx5_0 lost");
	is_wc(b.rcq, IBV_WC_WR_FLUSH_ERR, 3);
	sn_ctl("device mlx5_0 back");
	connect_to(a.qp, b.qp->qp_num, &(struct opt){ 0 });
	connect_to(b.qp, a.qp->qp_num, &(struct opt){ 0 });
	post_recv(&b, 4, 8);
	must(post_send(&a, IBV_WR_SEND, 4, 8, IBV_SEND_SIGNALED) == 0);
	ok(is_wc(a.scq, IBV_WC_SUCCESS, 4), "after the device is back, a reset queue pair works");
	unpair();
	for (size_t n = 0; n < sizeof(events) / sizeof(events[0]); n++)
		ok(sn_next_event(dev.ctx, SN_PATIENCE_MS, NULL) == (int)events[n], "event %zu", n);
	ok(sn_quiet(dev.ctx), "and no more");
}

/* ---- another process ---- */

/* --far FD: receives on one queue pair; each byte read is a command. */
static void
far_end(int fd)
{
	struct ibv_wc wc;
	uint32_t peer;
	char c;

	end_new(&b, &(struct opt){ 0 });
	must(write(fd, &b.qp->qp_num, 4) == 4 && read(fd, &peer, 4) == 4);
	connect_to(b.qp, peer, &(struct opt){ .rnr_timer = 20 });
	must(write(fd, "c", 1) == 1);
	while (read(fd, &c, 1) == 1) {
		if (c == 'p') {
			post_recv(&b, 1, LEN);
		} else if (c == 'w') {
			ok(wait_wc(b.rcq, &wc) == IBV_WC_SUCCESS && wc.byte_len == LEN, "received");
			for (size_t i = 0; i < LEN && !sn_failed; i++)
				ok(mem[i] == (uint8_t)(i * 7 + i / 4096 + 9), "byte %zu", i);
		} else if (c == 's') {
			must(post_send(&b, IBV_WR_SEND, 1, LEN, IBV_SEND_SIGNALED) == 0);
			wait_wc(b.scq, &wc);
		} else if (c == 'e') {
			ok(sn_next_event(dev.ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_DEVICE_FATAL, "reset");
		}
		must(write(fd, &c, 1) == 1);
	}
	exit(sn_failed != 0);
}

static pid_t
far_start(int *ret_fd, const struct opt *o)
{
	uint32_t peer;
	int sv[2];
	char num[16], c;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
	snprintf(num, sizeof(num), "%d", sv[1]);
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0) {
		close(sv[0]);
		execl("/proc/self/exe", "far", "--far", num, (char *)NULL);
		_exit(127);
	}
	close(sv[1]);
	*ret_fd = sv[0];
	end_new(&a, o);
	must(read(sv[0], &peer, 4) == 4 && write(sv[0], &a.qp->qp_num, 4) == 4);
	connect_to(a.qp, peer, o);
	must(read(sv[0], &c, 1) == 1);

	return pid;
}

static void
ask(int fd, char c)
{
	must(write(fd, &c, 1) == 1 && read(fd, &c, 1) == 1);
}

static void
test_process(void)
{
	const struct opt o = { .rnr_retry = 7, .rnr_timer = 10 };
	struct ibv_wc wc;
	int fd, status;
	pid_t pid = far_start(&fd, &o);

	pattern(9);
	must(post_send(&a, IBV_WR_SEND, 1, LEN, IBV_SEND_SIGNALED) == 0);
	/* With its first message that process begins to read its inbox. The request comes again, and before those of two more messages. */
	for (uint64_t n = 0; n < 3; n++) {
		post_recv(&a, 20 + n, LEN);
		ask(fd, 's');
		is_wc(a.rcq, IBV_WC_SUCCESS, 20 + n);
		if (n == 0)
			three_naks();
	}
	ok(ibv_poll_cq(a.scq, 1, &wc) == 0, "a process that has not posted a receive: RNR");
	ask(fd, 'p');
	ok(is_wc(a.scq, IBV_WC_SUCCESS, 1), "another process receives");
	ask(fd, 'w');
	/* The other direction: a stopped and a killed sender. */
	must(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid);
	must(post_send(&a, IBV_WR_SEND, 2, LEN, IBV_SEND_SIGNALED) == 0);
	/* The sender looks for a dead receiver every 5 ms. */
	three_naks();
	ok(ibv_poll_cq(a.scq, 1, &wc) == 0, "a stopped process receives nothing");
	kill(pid, SIGCONT);
	ask(fd, 'p');
	ok(is_wc(a.scq, IBV_WC_SUCCESS, 2), "until it continues");
	ask(fd, 'w');
	close(fd);
	must(waitpid(pid, &status, 0) == pid);
	ok(status == 0, "every byte arrived there: %#x", (unsigned)status);
	must(post_send(&a, IBV_WR_SEND, 3, 8, 0) == 0);
	is_wc(a.scq, IBV_WC_RETRY_EXC_ERR, 3);
	end_free(&a);
}

/* Killed in the middle of a SEND, which the receiver has to survive. */
static void
test_killed_sender(void)
{
	int fd;
	struct ibv_wc wc;
	pid_t pid = far_start(&fd, &(struct opt){ 0 });
	char c = 's';

	sn_ctl("rule add op=send scramble=1024 pause=2ms >/dev/null");
	memset(mem, 0xee, LEN);
	post_recv(&a, 1, LEN);
	must(write(fd, &c, 1) == 1);
	for (uint64_t end = sn_now_ms() + SN_PATIENCE_MS; sn_now_ms() < end;) {
		size_t i = 0;

		while (i < LEN && mem[i] == 0xee)
			i += 1024;
		if (i < LEN)
			break;
	}
	kill(pid, SIGKILL);
	must(waitpid(pid, NULL, 0) == pid);
	close(fd);
	sn_ctl("rule clear");
	ok(ibv_poll_cq(a.rcq, 1, &wc) == 0, "half a message is no message");
	struct ibv_qp_attr t = { .qp_state = IBV_QPS_ERR };

	must(ibv_modify_qp(a.qp, &t, IBV_QP_STATE) == 0);
	is_wc(a.rcq, IBV_WC_WR_FLUSH_ERR, 1);
	end_free(&a);
}

/* A queue pair of a context from before a reset of its device answers no more, though it exists and is in RTS. */
static void
test_reset_peer(void)
{
	static const enum ibv_wr_opcode ops[2] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND };

	for (int i = 0; i < 2; i++) {
		char cmd[64];
		int fd, status;
		pid_t pid = far_start(&fd, &(struct opt){ 0 });

		ask(fd, 'p');
		must(post_send(&a, IBV_WR_RDMA_WRITE, 1, 0, IBV_SEND_SIGNALED) == 0);
		is_wc(a.scq, IBV_WC_SUCCESS, 1);
		snprintf(cmd, sizeof(cmd), "device mlx5_0 reset pid=%d", (int)pid);
		sn_ctl(cmd);
		ask(fd, 'e');
		must(post_send(&a, ops[i], 2, 0, IBV_SEND_SIGNALED) == 0);
		is_wc(a.scq, IBV_WC_RETRY_EXC_ERR, 2);
		close(fd);
		must(waitpid(pid, &status, 0) == pid);
		ok(status == 0, "it had its event: %#x", (unsigned)status);
		end_free(&a);
	}
}

int
main(int argc, char **argv)
{
	sn_open(&dev, "mlx5_0");
	mr = sn_mem_new(&dev, LEN);
	to = hw_mem_new(&dev, LEN, (unsigned)all);
	must(to);
	buf = mr->addr;
	mem = to->addr;
	if (argc == 3 && strcmp(argv[1], "--far") == 0)
		far_end(atoi(argv[2]));
	test_send();
	test_pieces();
	test_write_imm();
	test_extended();
	test_rnr();
	test_errors();
	test_established();
	test_violations();
	test_reset_forgets();
	test_atomics();
	test_solicited();
	test_srq();
	test_dc();
	test_faults();
	test_port_and_device();
	test_process();
	test_killed_sender();
	test_reset_peer();
	sn_mem_free(mr);
	sn_mem_free(to);
	sn_close(&dev);

	return sn_summary("receives");
}
