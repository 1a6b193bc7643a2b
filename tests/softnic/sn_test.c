/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the software NIC's tests; sn_test.h says what each does. */
#include "sn_test.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

_Atomic int sn_checks, sn_failed;

bool
sn_ok(bool good, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	sn_checks++;
	if (good)
		return true;
	sn_failed++;
	fprintf(stderr, "%s:%d: not so: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);

	return false;
}

void
sn_must_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: cannot go on: %s (errno: %s)\n", file, line, what, strerror(errno));
	exit(1);
}

int
sn_summary(const char *name)
{
	printf("%s, %s: %d checks, %d failed\n", name, sn_is_inline() ? "inline" : "thread", sn_checks,
	       sn_failed);
	return sn_failed ? 1 : 0;
}

uint64_t
sn_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
sn_nap_ms(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

void
sn_ctl(const char *args)
{
	const char *build = getenv("BUILD");
	char cmd[512];

	snprintf(cmd, sizeof(cmd), "%s/softnicctl %s", build ? build : "build/release", args);
	must(system(cmd) == 0);
}

bool
sn_is_inline(void)
{
	const char *e = getenv("SOFTNIC_EXEC");

	return e && strcmp(e, "inline") == 0;
}

/* ---- device ---- */

void
sn_open(struct sn_dev_ctx *d, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	must(list);
	d->ctx = NULL;
	for (int i = 0; list[i] && !d->ctx; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			d->ctx = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	must(d->ctx);
	d->pd = ibv_alloc_pd(d->ctx);
	must(d->pd);
}

void
sn_close(struct sn_dev_ctx *d)
{
	ok(ibv_dealloc_pd(d->pd) == 0, "the protection domain is no longer used");
	ok(ibv_close_device(d->ctx) == 0, "close");
}

struct ibv_mr *
sn_mem_new(struct sn_dev_ctx *d, size_t len)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	must(mem != MAP_FAILED);
	mr = ibv_reg_mr(d->pd, mem, len, IBV_ACCESS_LOCAL_WRITE);
	must(mr);
	return mr;
}

void
sn_mem_free(struct ibv_mr *mr)
{
	void *mem = mr->addr;
	size_t len = mr->length;

	ibv_dereg_mr(mr);
	munmap(mem, len);
}

/* ---- target ---- */

struct ibv_qp *
sn_dct_new(struct sn_dev_ctx *d, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = d->pd,
	};
	struct mlx5dv_qp_init_attr m = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = SN_DC_KEY },
	};

	return mlx5dv_create_qp(d->ctx, &a, &m);
}

int
sn_dct_init(struct ibv_qp *dct, unsigned access)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access };

	return ibv_modify_qp(dct, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* A vector from port 1 of the device, without a destination: InfiniBand needs no global header. */
static struct ibv_ah_attr
vector(struct ibv_context *ctx)
{
	struct ibv_ah_attr av = { .port_num = 1 };
	struct ibv_port_attr port;

	must(ibv_query_port(ctx, 1, &port) == 0);
	if (port.link_layer == IBV_LINK_LAYER_INFINIBAND)
		return av;
	av.is_global = 1;
	av.grh.sgid_index = SN_GID_ROW;
	av.grh.hop_limit = 64;

	return av;
}

int
sn_dct_rtr(struct ibv_qp *dct)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .min_rnr_timer = 12 };

	a.ah_attr = vector(dct->context);

	return ibv_modify_qp(dct, &a, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_MIN_RNR_TIMER);
}

void
sn_target_init(struct sn_target *t, struct sn_dev_ctx *d, size_t len, unsigned dct_access, unsigned mr_access)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 1, .max_sge = 1 } };

	t->dev = d;
	t->len = len;
	t->buf = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(t->buf != MAP_FAILED);
	t->cq = ibv_create_cq(d->ctx, 2, NULL, NULL, 0);
	t->srq = ibv_create_srq(d->pd, &sa);
	must(t->cq && t->srq);
	t->dct = sn_dct_new(d, t->cq, t->srq);
	must(t->dct);
	must(sn_dct_init(t->dct, dct_access) == 0);
	must(sn_dct_rtr(t->dct) == 0);
	t->mr = ibv_reg_mr(d->pd, t->buf, len, mr_access);
	must(t->mr);
}

void
sn_target_token(const struct sn_target *t, struct sn_token *tok)
{
	struct ibv_port_attr port;

	*tok = (struct sn_token){
		.dctn = t->dct->qp_num,
		.rkey = t->mr ? t->mr->rkey : 0,
		.dc_key = SN_DC_KEY,
		.addr = (uintptr_t)t->buf,
		.len = t->len,
	};
	must(ibv_query_port(t->dev->ctx, 1, &port) == 0);
	tok->lid = port.lid;
	must(ibv_query_gid(t->dev->ctx, 1, port.lid ? 0 : SN_GID_ROW, &tok->gid) == 0);
}

void
sn_target_fini(struct sn_target *t)
{
	if (t->mr)
		ok(ibv_dereg_mr(t->mr) == 0, "dereg_mr");
	ok(ibv_destroy_qp(t->dct) == 0, "destroy the DCT");
	ok(ibv_destroy_srq(t->srq) == 0, "destroy the SRQ");
	ok(ibv_destroy_cq(t->cq) == 0, "destroy the CQ");
	munmap(t->buf, t->len);
}

/* ---- initiator ---- */

int
sn_dci_rts(struct sn_dci *i, unsigned timeout, unsigned retry)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int r = ibv_modify_qp(i->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT);

	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024 };
	a.ah_attr = vector(i->qp->context);
	if (r == 0)
		r = ibv_modify_qp(i->qp, &a, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .timeout = (uint8_t)timeout,
				  .retry_cnt = (uint8_t)retry,
				  .rnr_retry = 7,
				  .max_rd_atomic = 16 };
	if (r == 0)
		r = ibv_modify_qp(i->qp, &a,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN);

	return r;
}

void
sn_dci_init(struct sn_dci *i, struct sn_dev_ctx *d, const struct sn_dci_opt *opt)
{
	struct sn_dci_opt o = { .depth = 16,
				.sge = 4,
				.inl = 64,
				.cqe = 63,
				.timeout = 8,
				.retry = 3,
				.send_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
					    IBV_QP_EX_WITH_SEND };

	if (opt)
		o = *opt;
	struct ibv_cq_init_attr_ex ca = { .cqe = o.cqe,
					  .wc_flags = IBV_WC_STANDARD_FLAGS,
					  .channel = o.chan };

	i->dev = d;
	i->ah = NULL;
	i->cq = ibv_create_cq_ex(d->ctx, &ca);
	must(i->cq);
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = ibv_cq_ex_to_cq(i->cq),
		.recv_cq = ibv_cq_ex_to_cq(i->cq),
		.cap = { .max_send_wr = o.depth, .max_send_sge = o.sge, .max_inline_data = o.inl },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = d->pd,
		.send_ops_flags = o.send_ops,
	};
	struct mlx5dv_qp_init_attr m = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					 .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI } };

	i->qp = mlx5dv_create_qp(d->ctx, &a, &m);
	must(i->qp);
	i->ex = ibv_qp_to_qp_ex(i->qp);
	must(i->ex);
	i->dv = mlx5dv_qp_ex_from_ibv_qp_ex(i->ex);
	must(sn_dci_rts(i, o.timeout, o.retry) == 0);
}

void
sn_dci_to(struct sn_dci *i, const struct sn_token *t)
{
	struct ibv_ah_attr a = vector(i->qp->context);

	if (i->ah)
		ibv_destroy_ah(i->ah);
	a.dlid = t->lid;
	a.grh.dgid = t->gid;
	i->ah = ibv_create_ah(i->dev->pd, &a);
	must(i->ah);
}

void
sn_dci_fini(struct sn_dci *i)
{
	ok(ibv_destroy_qp(i->qp) == 0, "destroy the DCI");
	ok(ibv_destroy_cq(ibv_cq_ex_to_cq(i->cq)) == 0, "destroy its CQ");
	if (i->ah)
		ibv_destroy_ah(i->ah);
}

int
sn_post(struct sn_dci *i, bool read, const struct sn_token *t, uint64_t raddr, struct ibv_mr *mr, void *buf,
	uint32_t len, uint64_t wr_id)
{
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

int
sn_wait(struct sn_dci *i, uint64_t *ret_wr_id)
{
	struct ibv_poll_cq_attr pa = { 0 };
	uint64_t end = sn_now_ms() + SN_PATIENCE_MS;
	int r, status;

	while ((r = ibv_start_poll(i->cq, &pa)) == ENOENT) {
		if (sn_now_ms() > end)
			return -1;
	}
	must(r == 0);
	status = (int)i->cq->status;
	if (ret_wr_id)
		*ret_wr_id = i->cq->wr_id;
	ibv_end_poll(i->cq);

	return status;
}

int
sn_xfer(struct sn_dci *i, bool read, const struct sn_token *t, struct ibv_mr *mr, void *buf, uint32_t len)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	int r = sn_post(i, read, t, t->addr, mr, buf, len, 1);

	if (r)
		return -r;
	r = sn_wait(i, NULL);
	if (r != IBV_WC_SUCCESS) {
		must(ibv_modify_qp(i->qp, &a, IBV_QP_STATE) == 0);
		must(sn_dci_rts(i, 8, 3) == 0);
	}

	return r;
}

int
sn_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr ia;
	struct ibv_qp_attr a;

	must(ibv_query_qp(qp, &a, IBV_QP_STATE, &ia) == 0);
	return (int)a.qp_state;
}

int
sn_next_event(struct ibv_context *ctx, int wait_ms, struct ibv_async_event *ret_ev)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	if (poll(&p, 1, wait_ms) != 1 || ibv_get_async_event(ctx, &ev) < 0)
		return -1;
	ibv_ack_async_event(&ev);
	if (ret_ev)
		*ret_ev = ev;

	return (int)ev.event_type;
}

/* ---- a target in another process ---- */

struct msg {
	int cmd;
	long arg;
};

static struct sn_dev_ctx tdev;
static struct sn_target target;

static long
obey(const struct msg *m)
{
	long sum = 0;

	switch (m->cmd) {
	case SN_FILL:
		memset(target.buf, (int)m->arg, target.len);
		return 1;
	case SN_SAME:
		for (size_t i = 0; i < target.len; i++) {
			if (target.buf[i] != (uint8_t)m->arg)
				return 0;
		}
		return 1;
	case SN_PATTERN:
		for (size_t i = 0; i < target.len; i++) {
			if (target.buf[i] != (uint8_t)(i * 7 + (size_t)m->arg))
				return 0;
		}
		return 1;
	case SN_SUM:
		for (size_t i = 0; i < target.len; i++)
			sum = (sum * 31 + target.buf[i]) & 0xffffffffffff;
		return sum;
	case SN_DEREG:
		must(ibv_dereg_mr(target.mr) == 0);
		target.mr = NULL;
		return 1;
	case SN_REG:
		target.mr = ibv_reg_mr(tdev.pd, target.buf, target.len, (unsigned)m->arg);
		must(target.mr);
		return 1;
	case SN_UNMAP:
		munmap(target.buf, target.len);
		return 1;
	case SN_EVENT:
		return sn_next_event(tdev.ctx, SN_PATIENCE_MS, NULL);
	default:
		return -1;
	}
}

static void *
serve(void *arg)
{
	int fd = *(int *)arg;
	struct msg m;

	while (read(fd, &m, sizeof(m)) == sizeof(m) && m.cmd != SN_QUIT) {
		struct sn_token tok;
		pthread_t th;
		long answer = 1;

		if (m.cmd == SN_LEAVE) {
			must(pthread_create(&th, NULL, serve, arg) == 0);
			must(write(fd, &answer, sizeof(answer)) == sizeof(answer));
			pthread_exit(NULL);
		}
		answer = obey(&m);
		must(write(fd, &answer, sizeof(answer)) == sizeof(answer));
		if (m.cmd == SN_REG) {
			sn_target_token(&target, &tok);
			must(write(fd, &tok, sizeof(tok)) == sizeof(tok));
		}
	}
	sn_target_fini(&target);
	sn_close(&tdev);
	exit(sn_failed ? 1 : 0);
}

void
sn_maybe_target(int argc, char **argv)
{
	const unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	const char *uid = getenv("SN_TARGET_UID");
	static int fd;
	struct sn_token tok;

	if (argc != 4 || strcmp(argv[1], "--target") != 0)
		return;
	fd = atoi(argv[2]);
	if (uid) {
		uid_t u = (uid_t)atoi(uid);

		must(setresgid(u, u, u) == 0 && setresuid(u, u, u) == 0);
		must(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
	}
	sn_open(&tdev, "mlx5_0");
	sn_target_init(&target, &tdev, (size_t)atol(argv[3]), all, all);
	sn_target_token(&target, &tok);
	must(write(fd, &tok, sizeof(tok)) == sizeof(tok));
	serve(&fd);
}

void
sn_remote_start(struct sn_remote *r, size_t len)
{
	char fd[16], size[32];
	int sv[2];

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0);
	snprintf(fd, sizeof(fd), "%d", sv[1]);
	snprintf(size, sizeof(size), "%zu", len);
	r->pid = fork();
	must(r->pid >= 0);
	if (r->pid == 0) {
		fcntl(sv[1], F_SETFD, 0);
		execl("/proc/self/exe", "target", "--target", fd, size, (char *)NULL);
		_exit(127);
	}
	close(sv[1]);
	r->fd = sv[0];
	must(read(r->fd, &r->tok, sizeof(r->tok)) == sizeof(r->tok));
}

long
sn_remote_ask(struct sn_remote *r, enum sn_cmd cmd, long arg)
{
	struct msg m = { .cmd = cmd, .arg = arg };
	long answer;

	must(write(r->fd, &m, sizeof(m)) == sizeof(m));
	must(read(r->fd, &answer, sizeof(answer)) == sizeof(answer));
	if (cmd == SN_REG)
		must(read(r->fd, &r->tok, sizeof(r->tok)) == sizeof(r->tok));

	return answer;
}

void
sn_remote_stop(struct sn_remote *r)
{
	struct msg m = { .cmd = SN_QUIT };
	int status = -1;

	must(write(r->fd, &m, sizeof(m)) == sizeof(m));
	must(waitpid(r->pid, &status, 0) == r->pid);
	ok(status == 0, "the target process ended well (status %#x)", (unsigned)status);
	close(r->fd);
}

void
sn_remote_kill(struct sn_remote *r)
{
	kill(r->pid, SIGKILL);
	must(waitpid(r->pid, NULL, 0) == r->pid);
	close(r->fd);
}
