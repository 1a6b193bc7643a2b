/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the software NIC's tests; sn_test.h says what each does. */
#include "sn_test.h"

#include "tests/fake/wait.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

_Atomic int sn_checks, sn_failed;
uint64_t sn_usual_ns = WAIT_USUAL_NS;

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
sn_open(struct hw_port *d, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	must(list);
	d->ctx = NULL;
	for (int i = 0; list[i] && !d->ctx; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			must(hw_open(d, list[i]) == 0);
	}
	ibv_free_device_list(list);
	must(d->ctx);
	must(hw_port_ask(d, 1, SN_GID_ROW) == 0);
	d->mtu = IBV_MTU_1024;
}

void
sn_close(struct hw_port *d)
{
	ok(hw_close(d) == 0, "the protection domain is no longer used, and the device is closed");
}

struct ibv_mr *
sn_mem_new(struct hw_port *d, size_t len)
{
	struct ibv_mr *mr = hw_mem_new(d, len, IBV_ACCESS_LOCAL_WRITE);

	must(mr);
	return mr;
}

void
sn_mem_free(struct ibv_mr *mr)
{
	hw_mem_free(mr);
}

/* ---- target ---- */

struct ibv_qp *
sn_dct_new(struct hw_port *d, struct ibv_cq *cq, struct ibv_srq *srq)
{
	return hw_dct_new(d, cq, srq, SN_DC_KEY);
}

int
sn_dct_init(struct hw_port *d, struct ibv_qp *dct, unsigned access)
{
	return -hw_dct_init(d, dct, access);
}

int
sn_dct_rtr(struct hw_port *d, struct ibv_qp *dct)
{
	return -hw_dct_rtr(d, dct, 0);
}

void
sn_target_init(struct hw_target *t, struct hw_port *d, size_t len, unsigned dct_access, unsigned mr_access)
{
	must(hw_target_new(t, d, len, dct_access, mr_access, SN_DC_KEY, 0) == 0);
}

void
sn_target_token(const struct hw_target *t, struct hw_token *tok)
{
	must(hw_target_token(t, tok) == 0);
}

void
sn_target_fini(struct hw_target *t)
{
	ok(hw_target_free(t) == 0, "destroy the target");
}

/* ---- initiator ---- */

int
sn_dci_rts(struct hw_dci *i, unsigned timeout, unsigned retry)
{
	return -hw_dci_rts(i, timeout, retry, 0);
}

void
sn_dci_init(struct hw_dci *i, struct hw_port *d, const struct hw_dci_opt *opt)
{
	static const struct hw_dci_opt usual = { .depth = 16,
						 .sge = 4,
						 .inl = 64,
						 .cqe = 63,
						 .timeout = 8,
						 .retry = 3,
						 .send_ops = IBV_QP_EX_WITH_RDMA_WRITE |
							     IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND };

	must(hw_dci_new(i, d, opt ? opt : &usual) == 0);
}

void
sn_dci_to(struct hw_dci *i, const struct hw_token *t)
{
	must(hw_dci_to(i, t) == 0);
}

void
sn_dci_fini(struct hw_dci *i)
{
	ok(hw_dci_free(i) == 0, "destroy the DCI and its CQ");
}

int
sn_post(struct hw_dci *i, bool read, const struct hw_token *t, uint64_t raddr, struct ibv_mr *mr, void *buf,
	uint32_t len, uint64_t wr_id)
{
	return hw_post(i, read, t, raddr, mr, buf, len, wr_id);
}

/* Ends the test if the wait, whose end has come, has the mark of a lost wake-up. */
static void
end_wait(const struct wait *w)
{
	if (wait_was_lost(w)) {
		fprintf(stderr, "it took %d ms with idle processors: a lost wake-up?\n",
			(int)((wait_clock_ns() - w->began_ns) / NS_PER_MS));
		sn_must_failed("a wait in its usual time", __FILE__, __LINE__);
	}
}

int
sn_wait(struct hw_dci *i, uint64_t *ret_wr_id)
{
	struct wait w = wait_begin(sn_usual_ns);
	struct hw_done done;
	int r = hw_wait(i, SN_PATIENCE_MS, &done);

	if (r == -ETIMEDOUT)
		return -1;
	must(r == 0);
	end_wait(&w);
	if (ret_wr_id)
		*ret_wr_id = done.wr_id;

	return done.status;
}

int
sn_xfer(struct hw_dci *i, bool read, const struct hw_token *t, struct ibv_mr *mr, void *buf, uint32_t len)
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
	struct wait w = wait_begin(sn_usual_ns);
	struct ibv_async_event ev;

	if (poll(&p, 1, wait_ms) != 1 || ibv_get_async_event(ctx, &ev) < 0)
		return -1;
	end_wait(&w);
	ibv_ack_async_event(&ev);
	if (ret_ev)
		*ret_ev = ev;

	return (int)ev.event_type;
}

/* ---- proofs that something does not come ---- */

bool
sn_quiet(struct ibv_context *ctx)
{
	char cmd[64];

	snprintf(cmd, sizeof(cmd), "port %s pkey ffff", ibv_get_device_name(ctx->device));
	for (int i = 0; i < 2; i++) {
		sn_ctl(cmd);
		if (sn_next_event(ctx, SN_PATIENCE_MS, NULL) != IBV_EVENT_PKEY_CHANGE)
			return false;
	}

	return true;
}

/* Reads the first line of a file of a thread; returns false if the thread has ended. */
static bool
read_of_thread(const char *tid, const char *name, char *ret_line, int len)
{
	char path[300];
	FILE *f;
	bool is_read;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", tid, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	is_read = fgets(ret_line, len, f);
	fclose(f);
	ret_line[strcspn(ret_line, "\n")] = 0;

	return is_read;
}

/* Returns true if a thread waits for a condition variable. A wait for a mutex is another operation of a futex. */
static bool
rests(const char *tid)
{
	char line[200] = "";
	unsigned long op;
	long call;

	return read_of_thread(tid, "syscall", line, sizeof(line)) &&
	       sscanf(line, "%ld %*x %lx", &call, &op) == 2 && call == SYS_futex &&
	       (op & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

/* Counts the threads with this name, NULL: any; only_busy: without those that rest. */
static int
count_threads(const char *name, bool only_busy)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int nr = 0;

	must(d);
	while ((e = readdir(d))) {
		char comm[32] = "";

		if (e->d_name[0] == '.' || !read_of_thread(e->d_name, "comm", comm, sizeof(comm)))
			continue;
		nr += (!name || strcmp(comm, name) == 0) && !(only_busy && rests(e->d_name));
	}
	closedir(d);

	return nr;
}

int
sn_threads(const char *name)
{
	return count_threads(name, false);
}

void
sn_engines_rest(void)
{
	for (uint64_t end = sn_now_ms() + SN_PATIENCE_MS; count_threads("softnic-engine", true) > 0;)
		must(sn_now_ms() < end);
}

void
sn_threads_wait(const char *name, int nr)
{
	for (uint64_t end = sn_now_ms() + SN_PATIENCE_MS; sn_threads(name) != nr;)
		must(sn_now_ms() < end);
}

void
sn_turns_init(struct sn_turns *t, struct hw_port *d)
{
	struct hw_dci_opt o = { .depth = SN_TURNS, .sge = 1, .cqe = 1, .timeout = 14, .retry = 7 };
	struct hw_end self;

	t->chan = o.chan = ibv_create_comp_channel(d->ctx);
	t->mr = hw_mem_new(d, 16, HW_REMOTE);
	must(t->chan && t->mr);
	must(hw_rc_new(&t->rc, d, &o) == 0 && hw_rc_end(d, t->rc.qp, &self) == 0 &&
	     hw_rc_connect(d, t->rc.qp, &self, HW_REMOTE, &o) == 0);
}

void
sn_turns(struct sn_turns *t, unsigned nr)
{
	struct ibv_sge s = { (uintptr_t)t->mr->addr, 8, t->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE }, *bad;
	struct pollfd p = { .fd = t->chan->fd, .events = POLLIN };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD };
	struct ibv_wc wc = { 0 };
	struct ibv_cq *cq;
	void *cx;

	wr.wr.rdma.remote_addr = (uintptr_t)t->mr->addr + 8;
	wr.wr.rdma.rkey = t->mr->rkey;
	must(nr > 0 && nr <= SN_TURNS && ibv_req_notify_cq(t->rc.plain_cq, 0) == 0);
	/* Work that is posted in SQD is the engine's, also in inline mode. */
	must(ibv_modify_qp(t->rc.qp, &a, IBV_QP_STATE) == 0);
	for (unsigned n = 0; n < nr; n++) {
		wr.send_flags = n + 1 == nr ? IBV_SEND_SIGNALED : 0;
		must(ibv_post_send(t->rc.qp, &wr, &bad) == 0);
	}
	a.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(t->rc.qp, &a, IBV_QP_STATE) == 0);
	must(poll(&p, 1, SN_PATIENCE_MS) == 1 && ibv_get_cq_event(t->chan, &cq, &cx) == 0);
	ibv_ack_cq_events(cq, 1);
	must(ibv_poll_cq(cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

void
sn_turns_fini(struct sn_turns *t)
{
	must(hw_dci_free(&t->rc) == 0 && hw_mem_free(t->mr) == 0 && ibv_destroy_comp_channel(t->chan) == 0);
}

/* ---- a target in another process ---- */

struct msg {
	int cmd;
	long arg;
};

static struct hw_port tdev;
static struct hw_target target;

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
	case SN_REMAP:
		must(mmap(target.buf, target.len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
		memset(target.buf, 1, target.len);
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
		struct hw_token tok;
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
	struct hw_token tok;

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
