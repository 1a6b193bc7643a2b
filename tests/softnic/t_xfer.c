/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers of the software NIC, to a target in another process: the bytes, the completion statuses, the
 * order of flushes, the accounting of send queue slots, completion queues and channels.  Run in both modes.
 */
#include "sn_test.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEN = 1 << 20 };

static struct hw_port dev;
static struct sn_remote far;
static struct hw_dci dci;
static uint8_t *buf;
static struct ibv_mr *mr;

static void
pattern(int seed)
{
	for (size_t i = 0; i < LEN; i++)
		buf[i] = (uint8_t)(i * 7 + (size_t)seed);
}

static bool
has_pattern(int seed)
{
	for (size_t i = 0; i < LEN; i++) {
		if (buf[i] != (uint8_t)(i * 7 + (size_t)seed))
			return false;
	}

	return true;
}

static void
make_ready(struct hw_dci *i)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	must(ibv_modify_qp(i->qp, &a, IBV_QP_STATE) == 0);
	must(sn_dci_rts(i, 8, 3) == 0);
}

/* Starts one work request; the caller adds its buffers. */
static void
begin(struct hw_dci *i, bool read, uint32_t rkey, uint64_t raddr, uint64_t id, unsigned flags)
{
	i->ex->wr_id = id;
	i->ex->wr_flags = flags;
	if (read)
		ibv_wr_rdma_read(i->ex, rkey, raddr);
	else
		ibv_wr_rdma_write(i->ex, rkey, raddr);
	mlx5dv_wr_set_dc_addr(i->dv, i->ah, far.tok.dctn, far.tok.dc_key);
}

static void
test_write_read(void)
{
	pattern(3);
	ok(sn_xfer(&dci, false, &far.tok, mr, buf, LEN) == IBV_WC_SUCCESS, "WRITE of 1 MiB");
	ok(sn_remote_ask(&far, SN_PATTERN, 3) == 1, "every byte is there");
	memset(buf, 0, LEN);
	ok(sn_xfer(&dci, true, &far.tok, mr, buf, LEN) == IBV_WC_SUCCESS, "READ of 1 MiB");
	ok(has_pattern(3), "every byte is back");
}

/* The bytes of a dma-buf move, and the program cannot touch one of them; an address is iova, not a pointer. */
static void
test_dmabuf(void)
{
	const int rw = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const uint64_t iova = 0x700000000000 + 33;
	int fd = memfd_create("device", MFD_CLOEXEC);
	struct ibv_mr *dma;

	must(ftruncate(fd, 2 * LEN) == 0);
	dma = ibv_reg_dmabuf_mr(dev.pd, 4096 + 33, LEN, iova, fd, rw);
	must(dma != NULL);
	pattern(4);
	must(pwrite(fd, buf, LEN, 4096 + 33) == LEN);
	ok(sn_xfer(&dci, false, &far.tok, dma, (void *)iova, LEN) == IBV_WC_SUCCESS, "WRITE from a dma-buf");
	ok(sn_remote_ask(&far, SN_PATTERN, 4) == 1, "every byte is there");
	must(ftruncate(fd, 0) == 0 && ftruncate(fd, 2 * LEN) == 0);
	ok(sn_xfer(&dci, true, &far.tok, dma, (void *)iova, LEN) == IBV_WC_SUCCESS, "READ into a dma-buf");
	memset(buf, 0, LEN);
	must(pread(fd, buf, LEN, 4096 + 33) == LEN);
	ok(has_pattern(4), "every byte is back");
	must(pread(fd, buf, 1, 4096 + 32) == 1 && pread(fd, buf + 1, 1, 4096 + 33 + LEN) == 1);
	ok(!buf[0] && !buf[1], "and none around them");
	must(ftruncate(fd, 0) == 0);
	ok(sn_xfer(&dci, true, &far.tok, dma, (void *)iova, LEN) == IBV_WC_LOC_PROT_ERR,
	   "what became smaller");
	make_ready(&dci);
	ok(ibv_dereg_mr(dma) == 0, "dereg_mr");
	close(fd);
}

static void
test_sge(void)
{
	struct ibv_sge s[5] = {
		{ (uintptr_t)buf, 1000, mr->lkey },
		{ (uintptr_t)buf + 1000, 0, 12345 }, /* of no length: not looked at */
		{ (uintptr_t)buf + 1000, 200000, mr->lkey },
		{ (uintptr_t)buf + 201000, LEN - 201000, mr->lkey },
		{ (uintptr_t)buf, 1, mr->lkey },
	};

	pattern(5);
	ibv_wr_start(dci.ex);
	begin(&dci, false, far.tok.rkey, far.tok.addr, 1, IBV_SEND_SIGNALED);
	ibv_wr_set_sge_list(dci.ex, 4, s);
	ok(ibv_wr_complete(dci.ex) == 0 && sn_wait(&dci, NULL) == IBV_WC_SUCCESS,
	   "WRITE gathers three pieces");
	ok(sn_remote_ask(&far, SN_PATTERN, 5) == 1, "in their order");
	memset(buf, 0, LEN);
	ibv_wr_start(dci.ex);
	begin(&dci, true, far.tok.rkey, far.tok.addr, 1, IBV_SEND_SIGNALED);
	ibv_wr_set_sge_list(dci.ex, 4, s);
	ok(ibv_wr_complete(dci.ex) == 0 && sn_wait(&dci, NULL) == IBV_WC_SUCCESS, "READ scatters");
	ok(has_pattern(5), "in their order");
	ibv_wr_start(dci.ex);
	begin(&dci, false, far.tok.rkey, far.tok.addr, 1, IBV_SEND_SIGNALED);
	ibv_wr_set_sge_list(dci.ex, 5, s);
	ok(ibv_wr_complete(dci.ex) == ENOMEM, "five SGEs where four were asked for");
	ok(sn_xfer(&dci, false, &far.tok, mr, buf, 1) == IBV_WC_SUCCESS, "nothing was posted, all is well");
}

static void
test_inline_data(void)
{
	struct ibv_data_buf list[3] = { { buf, 10 }, { buf + 10, 20 }, { buf + 30, 30 } };
	char big[65];

	sn_remote_ask(&far, SN_FILL, 0);
	pattern(9);
	ibv_wr_start(dci.ex);
	begin(&dci, false, far.tok.rkey, far.tok.addr, 1, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	ibv_wr_set_inline_data_list(dci.ex, 3, list);
	ok(ibv_wr_complete(dci.ex) == 0, "60 bytes of inline data");
	memset(buf, 0, 60); /* ours again at once */
	ok(sn_wait(&dci, NULL) == IBV_WC_SUCCESS, "arrive");
	ok(sn_xfer(&dci, true, &far.tok, mr, buf + 100, 61) == IBV_WC_SUCCESS && buf[100] == 9 &&
		   buf[159] == (uint8_t)(59 * 7 + 9) && buf[160] == 0,
	   "as they were when posted");
	ibv_wr_start(dci.ex);
	begin(&dci, false, far.tok.rkey, far.tok.addr, 1, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	ibv_wr_set_inline_data(dci.ex, big, sizeof(big));
	ok(ibv_wr_complete(dci.ex) == ENOMEM, "65 bytes where 64 were asked for");
}

static void
test_zero_length(void)
{
	struct hw_token t = far.tok;

	t.rkey = 0xdead00;
	ok(sn_xfer(&dci, false, &t, mr, buf, 0) == IBV_WC_SUCCESS, "no bytes, no rkey");
	t.dctn ^= 1;
	ok(sn_xfer(&dci, false, &t, mr, buf, 0) == IBV_WC_RETRY_EXC_ERR, "but somebody must answer");
	ibv_wr_start(dci.ex);
	begin(&dci, false, far.tok.rkey, far.tok.addr, 5, IBV_SEND_SIGNALED);
	ibv_wr_abort(dci.ex);
	ok(sn_xfer(&dci, false, &far.tok, mr, buf, 1) == IBV_WC_SUCCESS, "an aborted batch leaves nothing");
}

/* Slots come back when a completion is polled, not when work is done. */
static void
test_slots(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev.ctx);
	struct hw_dci_opt opt = {
		.depth = 5, .sge = 1, .cqe = 15, .timeout = 8, .retry = 3, .send_ops = 0x15, .chan = ch
	};
	struct pollfd p = { .events = POLLIN };
	struct ibv_cq *cq;
	struct hw_dci i;
	uint64_t id = 0;
	int r = 0, n = 0;
	void *cx;

	must(ch);
	p.fd = ch->fd;
	sn_dci_init(&i, &dev, &opt);
	sn_dci_to(&i, &far.tok);
	must(ibv_req_notify_cq(ibv_cq_ex_to_cq(i.cq), 0) == 0);
	while (n < 100 && r == 0) {
		ibv_wr_start(i.ex);
		begin(&i, false, far.tok.rkey, far.tok.addr, (uint64_t)n, n == 7 ? IBV_SEND_SIGNALED : 0);
		ibv_wr_set_sge(i.ex, mr->lkey, (uintptr_t)buf, 8);
		r = ibv_wr_complete(i.ex);
		n += r == 0;
	}
	ok(n == 8 && r == ENOMEM, "depth 5 is 8 slots, then ENOMEM: %d, %d", n, r);
	ok(poll(&p, 1, SN_PATIENCE_MS) == 1, "they are done: the completion of the last one is there");
	ok(sn_post(&i, false, &far.tok, far.tok.addr, mr, buf, 8, 9) == ENOMEM, "done is not polled");
	ok(sn_wait(&i, &id) == IBV_WC_SUCCESS && id == 7, "one completion, of the one that asked for it");
	for (n = 0; n < 8; n++) {
		if (sn_post(&i, false, &far.tok, far.tok.addr, mr, buf, 8, 9))
			break;
	}
	ok(n == 8, "polled, so all eight are free again: %d", n);
	for (n = 0; n < 8; n++)
		must(sn_wait(&i, NULL) == IBV_WC_SUCCESS);
	ibv_wr_start(i.ex);
	for (n = 0; n < 9; n++) {
		begin(&i, false, far.tok.rkey, far.tok.addr, 1, IBV_SEND_SIGNALED);
		ibv_wr_set_sge(i.ex, mr->lkey, (uintptr_t)buf, 8);
	}
	ok(ibv_wr_complete(i.ex) == ENOMEM, "a batch of nine is refused whole");
	ok(sn_xfer(&i, false, &far.tok, mr, buf, 8) == IBV_WC_SUCCESS, "and nothing of it is left");
	must(ibv_get_cq_event(ch, &cq, &cx) == 0);
	ibv_ack_cq_events(cq, 1);
	sn_dci_fini(&i);
	ok(ibv_destroy_comp_channel(ch) == 0, "destroy the channel");
}

static void
post_send(struct hw_dci *i)
{
	ibv_wr_start(i->ex);
	i->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(i->ex);
	mlx5dv_wr_set_dc_addr(i->dv, i->ah, far.tok.dctn, far.tok.dc_key);
	ibv_wr_set_sge(i->ex, mr->lkey, (uintptr_t)buf, 8);
	ok(ibv_wr_complete(i->ex) == 0, "SEND to a target without a receive");
}

/* Waits for the end of a SEND to the same target, which is tried again six times: other SENDs of the engine were, too. */
static void
six_tries(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 3, .rnr_retry = 6 };
	struct hw_dci i;

	must(hw_dci_create(&i, &dev,
			   &(struct hw_dci_opt){
				   .depth = 1, .sge = 1, .cqe = 1, .send_ops = IBV_QP_EX_WITH_SEND }) == 0);
	must(hw_dci_rtr(&i) == 0 &&
	     ibv_modify_qp(i.qp, &a,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN) == 0);
	sn_dci_to(&i, &far.tok);
	post_send(&i);
	ok(sn_wait(&i, NULL) == IBV_WC_RNR_RETRY_EXC_ERR, "six times more");
	sn_dci_fini(&i);
}

static void
test_flush_order(void)
{
	uint64_t id;
	int st;

	ibv_wr_start(dci.ex);
	for (uint64_t n = 0; n < 6; n++) {
		begin(&dci, false, n == 1 ? 0xdead00 : far.tok.rkey, far.tok.addr, n,
		      n == 3 ? 0 : IBV_SEND_SIGNALED);
		ibv_wr_set_sge(dci.ex, mr->lkey, (uintptr_t)buf, 64);
	}
	ok(ibv_wr_complete(dci.ex) == 0, "six, the second with a wrong rkey");
	ok(sn_wait(&dci, &id) == IBV_WC_SUCCESS && id == 0, "the first is done");
	st = sn_wait(&dci, &id);
	ok(st == IBV_WC_REM_ACCESS_ERR && id == 1, "the second is a remote access error: %d", st);
	for (uint64_t n = 2; n < 6; n++) {
		st = sn_wait(&dci, &id);
		ok(st == IBV_WC_WR_FLUSH_ERR && id == n, "%d is flushed in its turn, signaled or not",
		   (int)n);
	}
	ok(sn_state(dci.qp) == IBV_QPS_ERR, "the queue pair is in ERR");
	ok(sn_post(&dci, false, &far.tok, far.tok.addr, mr, buf, 8, 77) == 0, "a later post is taken");
	ok(sn_wait(&dci, &id) == IBV_WC_WR_FLUSH_ERR && id == 77, "and flushed");
	make_ready(&dci);
	ok(sn_xfer(&dci, false, &far.tok, mr, buf, 64) == IBV_WC_SUCCESS, "reset, it works again");
}

static void
test_bounds(void)
{
	struct hw_token t = far.tok;

	sn_remote_ask(&far, SN_FILL, 0x5a);
	t.addr = far.tok.addr + 1;
	ok(sn_xfer(&dci, false, &t, mr, buf, LEN) == IBV_WC_REM_ACCESS_ERR, "a byte behind the end");
	t.addr = far.tok.addr - 1;
	ok(sn_xfer(&dci, false, &t, mr, buf, 2) == IBV_WC_REM_ACCESS_ERR, "a byte before the start");
	t.addr = UINT64_MAX - 3;
	ok(sn_xfer(&dci, false, &t, mr, buf, 64) == IBV_WC_REM_ACCESS_ERR, "a sum that wraps");
	t.addr = far.tok.addr + LEN;
	ok(sn_xfer(&dci, false, &t, mr, buf, 1) == IBV_WC_REM_ACCESS_ERR, "just behind");
	ok(sn_remote_ask(&far, SN_SAME, 0x5a) == 1, "not a byte was written");
	t.addr = far.tok.addr + LEN - 1;
	ok(sn_xfer(&dci, false, &t, mr, buf, 1) == IBV_WC_SUCCESS, "the last byte is in");
}

static void
test_dereg(void)
{
	struct hw_token old = far.tok;

	sn_remote_ask(&far, SN_FILL, 0x11);
	sn_remote_ask(&far, SN_DEREG, 0);
	ok(sn_xfer(&dci, false, &old, mr, buf, 64) == IBV_WC_REM_ACCESS_ERR, "deregistered");
	sn_remote_ask(&far, SN_REG, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	ok(far.tok.rkey != old.rkey, "registered again, another key");
	ok(sn_xfer(&dci, false, &old, mr, buf, 64) == IBV_WC_REM_ACCESS_ERR, "the old key stays dead");
	ok(sn_xfer(&dci, false, &far.tok, mr, buf, 64) == IBV_WC_REM_ACCESS_ERR,
	   "no WRITE where only READ is allowed");
	ok(sn_xfer(&dci, true, &far.tok, mr, buf, 64) == IBV_WC_SUCCESS && buf[0] == 0x11, "READ is");
	ok(sn_remote_ask(&far, SN_SAME, 0x11) == 1, "not a byte was written");
	sn_remote_ask(&far, SN_DEREG, 0);
	sn_remote_ask(&far, SN_REG,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
}

/* While one queue pair waits for an answer that never comes, the others of the context go on: did they, and
 * did the failure come, in time? */
static bool
others_go_on(void)
{
	struct hw_token t = far.tok;
	uint64_t start, posted, done, failed, id;
	struct hw_dci other;

	sn_dci_init(&other, &dev,
		    &(struct hw_dci_opt){
			    .depth = 4, .sge = 1, .cqe = 15, .timeout = 14, .retry = 7, .send_ops = 0x15 });
	t.dctn ^= 1;
	sn_dci_to(&other, &t);
	start = sn_now_ms();
	ok(sn_post(&other, false, &t, t.addr, mr, buf, 8, 1) == 0, "post to nobody");
	ok(sn_post(&other, false, &far.tok, far.tok.addr, mr, buf, 8, 2) == 0, "and one behind it");
	posted = sn_now_ms() - start;
	for (int n = 0; n < 20; n++)
		must(sn_xfer(&dci, false, &far.tok, mr, buf, 4096) == IBV_WC_SUCCESS);
	done = sn_now_ms() - start;
	ok(sn_wait(&other, &id) == IBV_WC_RETRY_EXC_ERR && id == 1, "retries used up");
	failed = sn_now_ms() - start;
	ok(failed >= 400, "after timeout 14, 7 times: about 470 ms, not %d", (int)failed);
	ok(sn_wait(&other, &id) == IBV_WC_WR_FLUSH_ERR && id == 2, "the one behind is flushed");
	sn_dci_fini(&other);

	return posted < 200 && done < 300 && failed < 2000;
}

static void
test_unreachable(void)
{
	struct hw_token t = far.tok;

	t.dctn ^= 1;
	ok(sn_xfer(&dci, false, &t, mr, buf, 8) == IBV_WC_RETRY_EXC_ERR, "no such DCT");
	t = far.tok;
	t.gid.raw[15] ^= 0x40;
	sn_dci_to(&dci, &t);
	ok(sn_xfer(&dci, false, &t, mr, buf, 8) == IBV_WC_RETRY_EXC_ERR, "another GID");
	sn_dci_to(&dci, &far.tok);
	t = far.tok;
	t.dc_key++;
	ok(sn_xfer(&dci, false, &t, mr, buf, 8) == IBV_WC_RETRY_EXC_ERR, "a wrong DC key");

	/* A machine with other work may hold us up as well, but not every time. */
	bool in_time = false;

	for (int n = 0; n < 30 && !in_time; n++)
		in_time = others_go_on();
	ok(in_time, "neither the post nor other queue pairs wait; the failure comes after about 470 ms");
}

static void
test_local_errors(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *own = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_pd *pd2 = ibv_alloc_pd(dev.ctx);
	struct ibv_mr bogus = { .lkey = 0x7fff00 },
		      *foreign = ibv_reg_mr(pd2, own, page, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *ro = ibv_reg_mr(dev.pd, own, page, 0);
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;

	must(foreign && ro);
	ok(sn_xfer(&dci, false, &far.tok, &bogus, buf, 8) == IBV_WC_LOC_PROT_ERR, "no such lkey");
	ok(sn_xfer(&dci, false, &far.tok, foreign, own, 8) == IBV_WC_LOC_PROT_ERR, "of another domain");
	ok(sn_xfer(&dci, false, &far.tok, ro, own + page - 4, 8) == IBV_WC_LOC_PROT_ERR,
	   "out of the local region");
	ok(sn_xfer(&dci, true, &far.tok, ro, own, 8) == IBV_WC_LOC_PROT_ERR,
	   "READ into a region without LOCAL_WRITE");
	ok(sn_xfer(&dci, false, &far.tok, ro, own, 8) == IBV_WC_SUCCESS, "WRITE from it");
	munmap(own, page);
	ok(sn_xfer(&dci, false, &far.tok, ro, own, 8) == IBV_WC_LOC_PROT_ERR, "local memory gone");
	ibv_dereg_mr(ro);
	ibv_dereg_mr(foreign);
	ibv_dealloc_pd(pd2);
	post_send(&dci);
	/* More than seven tries, the largest number but "without end". */
	for (int n = 0; n < 3; n++)
		six_tries();
	ok(ibv_poll_cq(ibv_cq_ex_to_cq(dci.cq), 1, &wc) == 0, "is tried without end");
	must(ibv_modify_qp(dci.qp, &err, IBV_QP_STATE) == 0);
	ok(sn_wait(&dci, NULL) == IBV_WC_WR_FLUSH_ERR, "until it is flushed");
	make_ready(&dci);
	struct ibv_sge huge[2] = { { (uintptr_t)buf, 0x40000000, mr->lkey },
				   { (uintptr_t)buf, 1, mr->lkey } };

	ibv_wr_start(dci.ex);
	begin(&dci, false, far.tok.rkey, far.tok.addr, 1, IBV_SEND_SIGNALED);
	ibv_wr_set_sge_list(dci.ex, 2, huge);
	ok(ibv_wr_complete(dci.ex) == 0 && sn_wait(&dci, NULL) == IBV_WC_LOC_LEN_ERR, "1 GiB and a byte");
	make_ready(&dci);
}

static void
test_remote_memory_gone(void)
{
	struct sn_remote r;

	sn_remote_start(&r, 1 << 16);
	sn_dci_to(&dci, &r.tok);
	ok(sn_xfer(&dci, false, &r.tok, mr, buf, 1 << 16) == IBV_WC_SUCCESS, "another target");
	sn_remote_ask(&r, SN_UNMAP, 0);
	ok(sn_xfer(&dci, false, &r.tok, mr, buf, 1 << 16) == IBV_WC_REM_OP_ERR,
	   "its memory is gone, its region not");
	sn_remote_kill(&r);
	sn_dci_to(&dci, &far.tok);
}

/* ERR and RESET while work is queued behind a request that waits for an answer. */
static void
test_err_and_reset(void)
{
	struct hw_token nobody = far.tok;
	struct ibv_qp_attr a;
	struct ibv_wc wc;
	struct hw_dci i;
	uint64_t id;

	nobody.dctn ^= 1;
	for (int round = 0; round < 2; round++) {
		sn_dci_init(&i, &dev,
			    &(struct hw_dci_opt){ .depth = 8,
						  .sge = 1,
						  .cqe = 15,
						  .timeout = 18,
						  .retry = 7,
						  .send_ops = 0x15 });
		sn_dci_to(&i, &far.tok);
		must(sn_post(&i, false, &nobody, nobody.addr, mr, buf, 8, 0) == 0);
		for (uint64_t n = 1; n < 4; n++)
			must(sn_post(&i, false, &far.tok, far.tok.addr, mr, buf, LEN, n) == 0);
		sn_nap_ms(5);
		a = (struct ibv_qp_attr){ .qp_state = round ? IBV_QPS_RESET : IBV_QPS_ERR };
		ok(ibv_modify_qp(i.qp, &a, IBV_QP_STATE) == 0, "modify_qp to %s", round ? "RESET" : "ERR");
		for (uint64_t n = 0; n < 4 && !round; n++)
			ok(sn_wait(&i, &id) == IBV_WC_WR_FLUSH_ERR && id == n, "flush %d", (int)n);
		ok(ibv_poll_cq(ibv_cq_ex_to_cq(i.cq), 1, &wc) == 0, "and no more completions");
		if (!round) {
			a.qp_state = IBV_QPS_RESET;
			ok(ibv_modify_qp(i.qp, &a, IBV_QP_STATE) == 0, "RESET after ERR");
		}
		must(sn_dci_rts(&i, 8, 3) == 0);
		ok(sn_xfer(&i, false, &far.tok, mr, buf, 8) == IBV_WC_SUCCESS, "and usable");
		sn_dci_fini(&i);
	}
}

/* Extended polling in batches, and the plain one. */
static void
test_polling(void)
{
	struct ibv_poll_cq_attr pa = { 0 };
	struct ibv_wc wc[4];
	uint64_t n;
	int got = 0, r;

	for (n = 0; n < 8; n++)
		must(sn_post(&dci, n % 2, &far.tok, far.tok.addr, mr, buf, 100 + (uint32_t)n, n) == 0);
	uint64_t end = sn_now_ms() + SN_PATIENCE_MS;

	for (n = 0; n < 8 && sn_now_ms() < end;) {
		if (ibv_start_poll(dci.cq, &pa) == ENOENT)
			continue;
		do {
			ok(dci.cq->wr_id == n && dci.cq->status == IBV_WC_SUCCESS, "in order");
			ok(ibv_wc_read_opcode(dci.cq) == (n % 2 ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE),
			   "opcode");
			ok(ibv_wc_read_byte_len(dci.cq) == 100 + n, "length");
			ok(ibv_wc_read_qp_num(dci.cq) == dci.qp->qp_num, "queue pair");
			n++;
			r = ibv_next_poll(dci.cq);
		} while (r == 0);
		ok(r == ENOENT, "next_poll ends with ENOENT");
		/* A post between start and end must not deadlock, whichever thread completes it. */
		if (n == 8)
			must(sn_post(&dci, false, &far.tok, far.tok.addr, mr, buf, 8, 99) == 0);
		ibv_end_poll(dci.cq);
	}
	ok(n == 8, "eight");
	for (n = 0; n < 4; n++)
		must(sn_post(&dci, false, &far.tok, far.tok.addr, mr, buf, 8, n) == 0);
	while (got < 5 && sn_now_ms() < end)
		got += ibv_poll_cq(ibv_cq_ex_to_cq(dci.cq), 4, wc);
	ok(got == 5, "plain polling of the same queue");
}

static void
test_channel(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev.ctx);
	struct ibv_cq *got = NULL;
	void *cx = NULL;
	struct hw_dci i;

	must(ch);
	sn_dci_init(&i, &dev,
		    &(struct hw_dci_opt){ .depth = 8,
					  .sge = 1,
					  .cqe = 15,
					  .timeout = 8,
					  .retry = 3,
					  .send_ops = 0x15,
					  .chan = ch });
	sn_dci_to(&i, &far.tok);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(i.cq);
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };

	must(sn_post(&i, false, &far.tok, far.tok.addr, mr, buf, 8, 1) == 0);
	must(sn_wait(&i, NULL) == 0);
	/* An event of the completion before is there when the question returns: both hold the lock of the queue. */
	ok(ibv_req_notify_cq(cq, 0) == 0, "ask");
	ok(poll(&p, 1, 0) == 0, "nobody asked, no event");
	must(sn_post(&i, false, &far.tok, far.tok.addr, mr, buf, 8, 2) == 0);
	ok(poll(&p, 1, SN_PATIENCE_MS) == 1, "readable");
	ok(ibv_get_cq_event(ch, &got, &cx) == 0 && got == cq, "the event");
	must(sn_wait(&i, NULL) == 0);
	must(sn_post(&i, false, &far.tok, far.tok.addr, mr, buf, 8, 3) == 0);
	must(sn_wait(&i, NULL) == 0);
	ok(ibv_req_notify_cq(cq, 1) == 0, "ask for errors only");
	ok(poll(&p, 1, 0) == 0, "one question, one event");
	ok(sn_xfer(&i, false, &far.tok, mr, buf, 8) == 0 && ibv_req_notify_cq(cq, 1) == 0 &&
		   poll(&p, 1, 0) == 0,
	   "success is none");
	struct hw_token bad = far.tok;

	bad.rkey = 0xdead00;
	must(sn_xfer(&i, false, &bad, mr, buf, 8) == IBV_WC_REM_ACCESS_ERR);
	ok(poll(&p, 1, SN_PATIENCE_MS) == 1 && ibv_get_cq_event(ch, &got, &cx) == 0, "an error is one");
	ibv_ack_cq_events(cq, 2);
	sn_dci_fini(&i);
	ok(ibv_destroy_comp_channel(ch) == 0, "destroy the channel");
}

static void
test_overrun(void)
{
	struct ibv_async_event ev;
	struct hw_dci i;
	int seen = 0;

	sn_dci_init(&i, &dev,
		    &(struct hw_dci_opt){
			    .depth = 8, .sge = 1, .cqe = 3, .timeout = 8, .retry = 3, .send_ops = 0x15 });
	sn_dci_to(&i, &far.tok);
	for (uint64_t n = 0; n < 6; n++)
		must(sn_post(&i, false, &far.tok, far.tok.addr, mr, buf, 8, n) == 0);
	for (int n = 0; n < 2; n++) {
		int t = sn_next_event(dev.ctx, SN_PATIENCE_MS, &ev);

		seen |= t == IBV_EVENT_CQ_ERR ? 1 : t == IBV_EVENT_QP_FATAL && ev.element.qp == i.qp ? 2 : 0;
	}
	ok(seen == 3, "a completion queue overrun raises CQ_ERR and QP_FATAL: %d", seen);
	ok(sn_state(i.qp) == IBV_QPS_ERR, "and breaks the queue pair");
	sn_dci_fini(&i);
}

/* Two threads post and poll on queue pairs of one context. */
static void *
hammer(void *arg)
{
	struct hw_dci i;
	long bad = 0;

	sn_dci_init(&i, &dev,
		    &(struct hw_dci_opt){
			    .depth = 8, .sge = 1, .cqe = 15, .timeout = 8, .retry = 3, .send_ops = 0x15 });
	sn_dci_to(&i, &far.tok);
	for (int n = 0; n < 300; n++)
		bad += sn_xfer(&i, n % 2, &far.tok, mr, buf + 4096 * (uintptr_t)arg, 4096) != IBV_WC_SUCCESS;
	sn_dci_fini(&i);

	return (void *)bad;
}

static void
test_threads(void)
{
	pthread_t t[3];

	for (uintptr_t n = 0; n < 3; n++)
		must(pthread_create(&t[n], NULL, hammer, (void *)n) == 0);
	for (int n = 0; n < 3; n++) {
		void *bad;

		pthread_join(t[n], &bad);
		ok(bad == NULL, "thread %d", n);
	}
}

int
main(int argc, char **argv)
{
	sn_maybe_target(argc, argv);
	sn_remote_start(&far, LEN);
	sn_open(&dev, "mlx5_0");
	mr = sn_mem_new(&dev, LEN);
	buf = mr->addr;
	sn_dci_init(&dci, &dev, NULL);
	sn_dci_to(&dci, &far.tok);
	test_write_read();
	test_dmabuf();
	test_sge();
	test_inline_data();
	test_zero_length();
	test_slots();
	test_flush_order();
	test_bounds();
	test_dereg();
	test_unreachable();
	test_local_errors();
	test_remote_memory_gone();
	test_err_and_reset();
	test_polling();
	test_channel();
	test_overrun();
	test_threads();
	sn_dci_fini(&dci);
	sn_mem_free(mr);
	sn_remote_stop(&far);
	sn_close(&dev);

	return sn_summary("transfers");
}
