/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to transfers of the software NIC when processes, ports and queue pairs come and go under them:
 * killed and stopped targets, ports down and up, a queue pair broken from outside, ERR in the middle of a
 * large transfer, stale tokens.  Also RC, between two queue pairs of this process.  Run in both modes.
 */
#include "sn_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 1 << 20 };

static struct hw_port dev;
static struct hw_dci dci;
static uint8_t *buf;
static struct ibv_mr *mr;

static int
go(bool read, const struct hw_token *t, uint32_t len)
{
	sn_dci_to(&dci, t);
	return sn_xfer(&dci, read, t, mr, buf, len);
}

static void
test_several_targets(void)
{
	struct sn_remote r[3];

	for (int n = 0; n < 3; n++)
		sn_remote_start(&r[n], LEN);
	for (int n = 0; n < 3; n++) {
		memset(buf, 0x31 + n, LEN);
		ok(go(false, &r[n].tok, LEN) == IBV_WC_SUCCESS, "target %d of three", n);
	}
	for (int n = 0; n < 3; n++)
		ok(sn_remote_ask(&r[n], SN_SAME, 0x31 + n) == 1, "each has its own bytes");
	/* A key of one process is nothing to a DCT of another. */
	struct hw_token t = r[0].tok;

	t.rkey = r[1].tok.rkey;
	t.addr = r[1].tok.addr;
	ok(go(false, &t, 8) == IBV_WC_REM_ACCESS_ERR, "DCT of one, key of another");
	for (int n = 0; n < 3; n++)
		sn_remote_stop(&r[n]);
	ok(go(false, &r[0].tok, 8) == IBV_WC_RETRY_EXC_ERR, "a target that has closed its device");
}

/* Waits until the main thread of a process has ended, while others of its threads run: a zombie. */
static void
main_thread_ends(pid_t pid)
{
	uint64_t end = sn_now_ms() + SN_PATIENCE_MS;
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state != 'Z') {
		FILE *f = fopen(path, "re");

		must(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && fclose(f) == 0 && sn_now_ms() < end);
	}
}

static void
test_stopped(void)
{
	struct sn_remote r;

	sn_remote_start(&r, LEN);
	memset(buf, 0x77, LEN);
	kill(r.pid, SIGSTOP);
	ok(go(false, &r.tok, LEN) == IBV_WC_SUCCESS, "a stopped target is written");
	ok(go(true, &r.tok, LEN) == IBV_WC_SUCCESS, "and read");
	kill(r.pid, SIGCONT);
	ok(sn_remote_ask(&r, SN_SAME, 0x77) == 1, "it finds the bytes when continued");
	ok(sn_remote_ask(&r, SN_LEAVE, 0) == 1, "its main thread leaves");
	main_thread_ends(r.pid);
	memset(buf, 0x78, LEN);
	ok(go(false, &r.tok, LEN) == IBV_WC_SUCCESS, "the others can still be reached");
	ok(sn_remote_ask(&r, SN_SAME, 0x78) == 1, "with every byte");
	sn_remote_stop(&r);
}

static void
test_killed(void)
{
	struct sn_remote r, next[4];
	struct hw_token stale;
	int hits = 0;

	sn_remote_start(&r, LEN);
	ok(go(false, &r.tok, LEN) == IBV_WC_SUCCESS, "alive");
	stale = r.tok;
	sn_remote_kill(&r);
	ok(go(false, &stale, 0) == IBV_WC_RETRY_EXC_ERR, "killed: nobody answers, not even to no bytes");
	ok(go(false, &stale, LEN) == IBV_WC_RETRY_EXC_ERR, "nor to a megabyte");
	ok(go(true, &stale, 64) == IBV_WC_RETRY_EXC_ERR, "nor to a READ");
	/* Others start and reap it; its numbers must not hit them. */
	for (int n = 0; n < 4; n++) {
		sn_remote_start(&next[n], LEN);
		sn_remote_ask(&next[n], SN_FILL, 0x42);
		hits += next[n].tok.dctn == stale.dctn || next[n].tok.rkey == stale.rkey;
	}
	ok(hits == 0, "no number is used again soon");
	ok(go(false, &stale, LEN) == IBV_WC_RETRY_EXC_ERR, "the stale token stays dead");
	for (int n = 0; n < 4; n++) {
		ok(sn_remote_ask(&next[n], SN_SAME, 0x42) == 1, "and touches nobody");
		sn_remote_stop(&next[n]);
	}
}

/* A killed initiator leaves nothing that a deregistration would wait for. */
static void
test_killed_initiator(void)
{
	const unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct hw_target t;
	struct hw_token tok;

	sn_target_init(&t, &dev, LEN, all, all);
	sn_target_token(&t, &tok);
	for (int n = 0; n < 5; n++) {
		pid_t pid = fork();

		must(pid >= 0);
		if (pid == 0) {
			char hex[2 * sizeof(tok) + 1];

			for (size_t i = 0; i < sizeof(tok); i++)
				sprintf(hex + 2 * i, "%02x", ((uint8_t *)&tok)[i]);
			execl("/proc/self/exe", "writer", "--writer", hex, (char *)NULL);
			_exit(127);
		}
		for (int w = 0; w < SN_PATIENCE_MS / 10 && *(volatile uint8_t *)t.buf == 0; w++)
			sn_nap_ms(10);
		ok(t.buf[0] != 0, "the writer writes");
		kill(pid, SIGKILL);
		uint64_t start = sn_now_ms();

		/* What was left would be waited for without end; dying takes a moment on a busy machine. */
		ok(ibv_dereg_mr(t.mr) == 0 && sn_now_ms() - start < SN_PATIENCE_MS / 3,
		   "deregistered while the writer dies");
		memset(t.buf, 0, LEN);
		must(waitpid(pid, NULL, 0) == pid);
		ok(t.buf[0] == 0 && memcmp(t.buf, t.buf + 1, LEN - 1) == 0, "no byte came late");
		t.mr = ibv_reg_mr(dev.pd, t.buf, LEN, all);
		must(t.mr);
		sn_target_token(&t, &tok);
	}
	sn_target_fini(&t);
}

static void
writer(const char *hex)
{
	struct hw_token tok;

	for (size_t i = 0; i < sizeof(tok); i++)
		must(sscanf(hex + 2 * i, "%2hhx", &((uint8_t *)&tok)[i]) == 1);
	memset(buf, 0x99, LEN);
	for (;;)
		go(false, &tok, LEN);
}

static void
test_port(void)
{
	struct ibv_port_attr p;
	struct sn_remote r;

	sn_remote_start(&r, LEN);
	ok(go(false, &r.tok, 64) == IBV_WC_SUCCESS, "port up");
	sn_ctl("port mlx5_0 down");
	ok(sn_next_event(dev.ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_PORT_ERR, "PORT_ERR here");
	ok(sn_remote_ask(&r, SN_EVENT, 0) == IBV_EVENT_PORT_ERR, "and in the other process");
	ok(ibv_query_port(dev.ctx, 1, &p) == 0 && p.state == IBV_PORT_DOWN, "query_port says down");
	ok(go(false, &r.tok, 64) == IBV_WC_RETRY_EXC_ERR, "no transfer");
	sn_ctl("port 0 up");
	ok(sn_next_event(dev.ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_PORT_ACTIVE, "PORT_ACTIVE here");
	ok(sn_remote_ask(&r, SN_EVENT, 0) == IBV_EVENT_PORT_ACTIVE, "and there");
	ok(go(false, &r.tok, 64) == IBV_WC_SUCCESS, "transfers again");

	/* A flap shorter than the retries is survived, as on the wire. */
	struct hw_dci i;

	sn_dci_init(&i, &dev,
		    &(struct hw_dci_opt){
			    .depth = 8, .sge = 1, .cqe = 15, .timeout = 16, .retry = 7, .send_ops = 0x15 });
	sn_dci_to(&i, &r.tok);
	sn_ctl("port mlx5_0 down");
	memset(buf, 0x55, LEN);
	must(sn_post(&i, false, &r.tok, r.tok.addr, mr, buf, LEN, 1) == 0);
	sn_nap_ms(50);
	sn_ctl("port mlx5_0 up");
	ok(sn_wait(&i, NULL) == IBV_WC_SUCCESS, "the retry finds the port up");
	ok(sn_remote_ask(&r, SN_SAME, 0x55) == 1, "and delivers");
	sn_dci_fini(&i);
	sn_remote_stop(&r);
	ok(sn_next_event(dev.ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_PORT_ERR &&
		   sn_next_event(dev.ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_PORT_ACTIVE,
	   "the events of the flap");
}

static void
test_poked(void)
{
	struct ibv_async_event ev;
	struct sn_remote r;
	char cmd[64];

	sn_remote_start(&r, LEN);
	ok(go(false, &r.tok, 64) == IBV_WC_SUCCESS, "before");
	snprintf(cmd, sizeof(cmd), "qp %#x fatal", dci.qp->qp_num);
	sn_ctl(cmd);
	ok(sn_next_event(dev.ctx, SN_PATIENCE_MS, &ev) == IBV_EVENT_QP_FATAL && ev.element.qp == dci.qp,
	   "QP_FATAL");
	ok(sn_state(dci.qp) == IBV_QPS_ERR, "in ERR");
	ok(go(false, &r.tok, 64) == IBV_WC_WR_FLUSH_ERR, "posts are flushed");
	ok(go(false, &r.tok, 64) == IBV_WC_SUCCESS, "reset, it works");
	sn_remote_stop(&r);
}

/* ERR in the middle of large transfers: whatever was not done is flushed, and nothing moves after the last
 * flush. */
static void
test_err_in_flight(void)
{
	enum { BIG = 64 << 20, WRS = 4, TURNS = WRS * 64 + 8 }; /* more than all of it takes, at 1 MiB each */
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_mr *bmr = sn_mem_new(&dev, BIG);
	uint8_t *big = bmr->addr;
	struct sn_remote r;
	int done, flushed, other;
	struct sn_turns turns;

	sn_remote_start(&r, BIG);
	memset(big, 0x66, BIG);
	sn_dci_to(&dci, &r.tok);
	sn_turns_init(&turns, &dev);
	/* All of it may be done before we get to say ERR, if the machine has other work; then again. */
	for (int tries = 0;; tries++) {
		done = flushed = other = 0;
		for (uint64_t n = 0; n < WRS; n++)
			must(sn_post(&dci, false, &r.tok, r.tok.addr, bmr, big, BIG, n) == 0);
		a.qp_state = IBV_QPS_ERR;
		must(ibv_modify_qp(dci.qp, &a, IBV_QP_STATE) == 0);
		for (int n = 0; n < WRS; n++) {
			int st = sn_wait(&dci, NULL);

			done += st == IBV_WC_SUCCESS;
			flushed += st == IBV_WC_WR_FLUSH_ERR;
			other += st != IBV_WC_SUCCESS && st != IBV_WC_WR_FLUSH_ERR;
		}
		ok(other == 0 && done + flushed == WRS, "%d done, %d flushed, %d others", done, flushed,
		   other);
		if (flushed > 0 || sn_is_inline() || tries == 50)
			break;
		a.qp_state = IBV_QPS_RESET;
		must(ibv_modify_qp(dci.qp, &a, IBV_QP_STATE) == 0);
		must(sn_dci_rts(&dci, 8, 3) == 0);
	}
	ok(sn_is_inline() || flushed > 0, "something was flushed");
	sn_remote_ask(&r, SN_FILL, 0);
	sn_turns(&turns, TURNS);
	ok(sn_remote_ask(&r, SN_SAME, 0) == 1, "nothing lands after the last flush");
	a.qp_state = IBV_QPS_RESET;
	must(ibv_modify_qp(dci.qp, &a, IBV_QP_STATE) == 0);
	must(sn_dci_rts(&dci, 8, 3) == 0);
	/* RESET: when modify_qp returns the transfer is over, with no completion. */
	must(sn_post(&dci, false, &r.tok, r.tok.addr, bmr, big, BIG, 0) == 0);
	must(sn_is_inline() || sn_post(&dci, false, &r.tok, r.tok.addr, bmr, big, BIG, 1) == 0);
	must(ibv_modify_qp(dci.qp, &a, IBV_QP_STATE) == 0);
	sn_remote_ask(&r, SN_FILL, 0);
	sn_turns(&turns, TURNS);
	ok(sn_remote_ask(&r, SN_SAME, 0) == 1, "nothing lands after RESET");
	struct ibv_wc wc;

	ok(ibv_poll_cq(ibv_cq_ex_to_cq(dci.cq), 1, &wc) == 0, "and no completion is left");
	must(sn_dci_rts(&dci, 8, 3) == 0);
	ok(go(false, &r.tok, 64) == IBV_WC_SUCCESS, "usable");
	sn_turns_fini(&turns);
	sn_mem_free(bmr);
	sn_remote_stop(&r);
}

/* ---- RC ---- */

static int
rc_connect(struct ibv_qp *qp, uint32_t to, const union ibv_gid *gid)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	int r = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = to,
				  .max_dest_rd_atomic = 1,
				  .min_rnr_timer = 12 };
	a.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	a.ah_attr.grh.dgid = *gid;
	a.ah_attr.grh.sgid_index = SN_GID_ROW;
	if (r == 0)
		r = ibv_modify_qp(qp, &a,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 3, .rnr_retry = 3, .max_rd_atomic = 1
	};
	if (r == 0)
		r = ibv_modify_qp(qp, &a,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);

	return r;
}

static int
rc_go(struct ibv_qp *qp, struct ibv_cq *cq, enum ibv_wr_opcode op, struct ibv_mr *to)
{
	struct ibv_sge s = { (uintptr_t)buf, 4096, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 7,
				  .sg_list = &s,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad = NULL;
	struct ibv_wc wc;
	uint64_t end = sn_now_ms() + SN_PATIENCE_MS;

	wr.wr.rdma.remote_addr = (uintptr_t)to->addr;
	wr.wr.rdma.rkey = to->rkey;
	if (ibv_post_send(qp, &wr, &bad))
		return -1;
	while (sn_now_ms() < end) {
		if (ibv_poll_cq(cq, 1, &wc) == 1)
			return wc.wr_id == 7 ? (int)wc.status : -3;
	}

	return -2;
}

static void
test_rc(void)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0),
		      *rcq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr ia = {
		.send_cq = cq,
		.recv_cq = rcq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct ibv_qp *a = ibv_create_qp(dev.pd, &ia), *b = ibv_create_qp(dev.pd, &ia);
	uint8_t *mem = aligned_alloc(4096, 4096);
	struct ibv_mr *to = ibv_reg_mr(dev.pd, mem, 4096, (unsigned)all);
	struct ibv_recv_wr rw = { .wr_id = 21 }, *bad_rw;
	union ibv_gid gid;
	struct ibv_wc wc;

	must(a && b && to);
	uint32_t b_num = b->qp_num;

	must(ibv_query_gid(dev.ctx, 1, SN_GID_ROW, &gid) == 0);
	ok(rc_connect(a, b_num, &gid) == 0 && rc_connect(b, a->qp_num, &gid) == 0, "connect");
	memset(buf, 0x21, 4096);
	ok(rc_go(a, cq, IBV_WR_RDMA_WRITE, to) == IBV_WC_SUCCESS && mem[0] == 0x21 && mem[4095] == 0x21,
	   "RC WRITE");
	memset(mem, 0x22, 4096);
	ok(rc_go(a, cq, IBV_WR_RDMA_READ, to) == IBV_WC_SUCCESS && buf[0] == 0x22 && buf[4095] == 0x22,
	   "RC READ");
	ok(ibv_post_recv(a, &rw, &bad_rw) == 0, "post_recv");
	struct ibv_mr wrong = *to;

	wrong.rkey += 256;
	ok(rc_go(a, cq, IBV_WR_RDMA_WRITE, &wrong) == IBV_WC_REM_ACCESS_ERR, "a wrong rkey");
	/* The engine flushes after it has told of the error. */
	int flushed = 0;
	for (uint64_t end = sn_now_ms() + SN_PATIENCE_MS; flushed == 0 && sn_now_ms() < end;)
		flushed = ibv_poll_cq(rcq, 1, &wc);
	ok(flushed == 1 && wc.wr_id == 21 && wc.status == IBV_WC_WR_FLUSH_ERR, "its receive is flushed");
	ok(ibv_destroy_qp(b) == 0, "the peer goes");
	struct ibv_qp_attr at = { .qp_state = IBV_QPS_RESET };

	must(ibv_modify_qp(a, &at, IBV_QP_STATE) == 0 && rc_connect(a, b_num, &gid) == 0);
	ok(rc_go(a, cq, IBV_WR_RDMA_WRITE, to) == IBV_WC_RETRY_EXC_ERR, "nobody there");
	ok(ibv_destroy_qp(a) == 0 && ibv_destroy_cq(cq) == 0 && ibv_destroy_cq(rcq) == 0, "destroy");
	ibv_dereg_mr(to);
	free(mem);
}

/* DCT without the right, and queue pairs of two contexts of one process. */
static void
test_own_process(void)
{
	const unsigned rw = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct hw_port second;
	struct hw_target t;
	struct hw_token tok;

	sn_open(&second, "mlx5_0");
	sn_target_init(&t, &second, LEN, IBV_ACCESS_REMOTE_READ, rw);
	sn_target_token(&t, &tok);
	ok(go(false, &tok, 8) == IBV_WC_REM_INV_REQ_ERR, "a DCT that does not take WRITE");
	memset(t.buf, 0x3c, LEN);
	ok(go(true, &tok, LEN) == IBV_WC_SUCCESS && buf[LEN - 1] == 0x3c, "READ from our own process");
	sn_target_fini(&t);
	sn_close(&second);
}

/* ---- a forked child, with copies of everything that its parent has ---- */

/* What both ends of a fork have. */
struct both {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp, *shared; /* shared: its receives are those of srq */
};

static void
child_posts(const struct both *p)
{
	struct ibv_sge s = { (uintptr_t)buf, 8, mr->lkey };
	struct ibv_recv_wr rw = { .wr_id = 1, .sg_list = &s, .num_sge = 1 }, *bad_rw = NULL;
	struct ibv_send_wr sw = { .wr_id = 2, .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad_sw;
	struct ibv_wc wc;
	int got = 0;

	/* Of the parent's, which is queued: twice the time after which a poller helps (SOFTNIC_ASSIST_US). */
	for (uint64_t end = sn_now_ms() + 2; sn_now_ms() < end;)
		got += ibv_poll_cq(p->cq, 1, &wc);
	ok(got == 0, "poll_cq executes no work of the parent");
	ok(ibv_post_recv(p->qp, &rw, &bad_rw) == EINVAL && bad_rw == &rw, "post_recv");
	bad_rw = NULL;
	ok(ibv_post_srq_recv(p->srq, &rw, &bad_rw) == EINVAL && bad_rw == &rw, "post_srq_recv");
	ok(ibv_post_send(p->qp, &sw, &bad_sw) == EINVAL, "post_send");
}

static void
child_asks(const struct both *p)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_ah_attr aa = { .is_global = 1, .port_num = 1, .grh.sgid_index = SN_GID_ROW };
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_device_attr_ex dx;
	struct ibv_gid_entry e[16];
	struct ibv_device_attr da;
	struct ibv_port_attr pa;
	union ibv_gid gid;
	__be16 pkey;

	ok(ibv_modify_qp(p->qp, &a, IBV_QP_STATE) == EINVAL, "modify_qp");
	ok(!ibv_create_cq(dev.ctx, 1, NULL, NULL, 0) && errno == EINVAL, "create_cq");
	ok(!ibv_create_srq(dev.pd, &sa) && errno == EINVAL, "create_srq");
	ok(!ibv_create_ah(dev.pd, &aa) && errno == EINVAL, "create_ah");
	ok(!ibv_reg_mr(dev.pd, buf, 8, 0) && errno == EINVAL, "reg_mr");
	ok(ibv_query_device(dev.ctx, &da) == EINVAL, "query_device");
	ok(ibv_query_device_ex(dev.ctx, NULL, &dx) == EINVAL, "query_device_ex");
	ok(ibv_query_port(dev.ctx, 1, &pa) == EINVAL, "query_port");
	ok(ibv_query_gid(dev.ctx, 1, SN_GID_ROW, &gid) == -1 && errno == EINVAL, "query_gid");
	ok(ibv_query_gid_ex(dev.ctx, 1, SN_GID_ROW, e, 0) == EINVAL, "query_gid_ex");
	ok(ibv_query_gid_table(dev.ctx, e, 16, 0) == -EINVAL, "query_gid_table");
	ok(ibv_query_pkey(dev.ctx, 1, 0, &pkey) == -1 && errno == EINVAL, "query_pkey");
	ok(ibv_get_pkey_index(dev.ctx, 1, 0xffff) == -1 && errno == EINVAL, "get_pkey_index");
}

/* In a child that has a place in the fabric of its own (attached), and in one that has none. */
static void
child(const struct both *p, bool attached)
{
	struct ibv_device **list = attached ? ibv_get_device_list(NULL) : NULL;

	must(!attached || list);
	child_posts(p);
	child_asks(p);
	ok(ibv_destroy_qp(p->qp) == 0 && ibv_dereg_mr(mr) == 0, "its copies can be destroyed");
	_exit(sn_failed ? 1 : 0);
}

static void
test_forked(void)
{
	enum { WORK = 16 };
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 7, .max_sge = 1 } };
	struct both p = { .cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0),
			  .srq = ibv_create_srq(dev.pd, &sa) };
	struct ibv_qp_init_attr ia = { .send_cq = p.cq, .recv_cq = p.cq, .qp_type = IBV_QPT_RC };
	struct sn_remote r;
	struct hw_dci more;
	union ibv_gid gid;

	ia.cap = (struct ibv_qp_cap){
		.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1
	};
	p.qp = ibv_create_qp(dev.pd, &ia);
	ia.srq = p.srq;
	p.shared = ibv_create_qp(dev.pd, &ia);
	must(p.cq && p.srq && p.qp && p.shared && ibv_query_gid(dev.ctx, 1, SN_GID_ROW, &gid) == 0);
	must(rc_connect(p.qp, p.shared->qp_num, &gid) == 0 && rc_connect(p.shared, p.qp->qp_num, &gid) == 0);
	sn_remote_start(&r, LEN);
	sn_dci_to(&dci, &r.tok);
	sn_dci_init(&more, &dev, NULL);
	sn_dci_to(&more, &r.tok);
	for (int attached = 0; attached < 2; attached++) {
		pid_t pid;
		int status;

		/* Work that waits in the queue of the engine when the child is made, except in inline mode. */
		for (int n = 0; n < WORK; n++)
			must(sn_post(&dci, false, &r.tok, r.tok.addr, mr, buf, LEN, 1) == 0 &&
			     sn_post(&more, false, &r.tok, r.tok.addr, mr, buf, LEN, 1) == 0);
		pid = fork();
		must(pid >= 0);
		if (pid == 0)
			child(&p, attached);
		must(waitpid(pid, &status, 0) == pid);
		for (int n = 0; n < WORK; n++)
			must(sn_wait(&dci, NULL) == IBV_WC_SUCCESS && sn_wait(&more, NULL) == IBV_WC_SUCCESS);
		ok(status == 0, "a child, attached %d: status %#x", attached, (unsigned)status);
	}
	ok(sn_state(p.qp) == IBV_QPS_RTS, "the parent's queue pair is as it was");
	ok(ibv_destroy_qp(p.qp) == 0 && ibv_destroy_qp(p.shared) == 0 && ibv_destroy_srq(p.srq) == 0 &&
		   ibv_destroy_cq(p.cq) == 0,
	   "destroy");
	sn_dci_fini(&more);
	sn_remote_stop(&r);
}

/* t_life --dckey: what ctl.sh asks with various settings. */
static int
wrong_dc_key(void)
{
	struct sn_remote r;
	uint64_t start;

	sn_remote_start(&r, LEN);
	r.tok.dc_key++;
	start = sn_now_ms();
	int status = go(false, &r.tok, 64);

	printf("%d %d\n", status, (int)(sn_now_ms() - start));
	sn_remote_stop(&r);

	return 0;
}

int
main(int argc, char **argv)
{
	sn_maybe_target(argc, argv);
	sn_open(&dev, "mlx5_0");
	mr = sn_mem_new(&dev, LEN);
	buf = mr->addr;
	sn_dci_init(&dci, &dev, NULL);
	if (argc == 3 && strcmp(argv[1], "--writer") == 0)
		writer(argv[2]);
	if (argc == 2 && strcmp(argv[1], "--dckey") == 0)
		return wrong_dc_key();
	test_several_targets();
	test_stopped();
	test_killed();
	test_killed_initiator();
	test_port();
	test_poked();
	test_err_in_flight();
	test_rc();
	test_own_process();
	test_forked();
	sn_dci_fini(&dci);
	sn_mem_free(mr);
	sn_close(&dev);

	return sn_summary("lives");
}
