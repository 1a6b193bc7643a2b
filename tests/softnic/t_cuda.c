/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a device on the software NIC (SOFTNIC_CUDA=1): windows that only the CUDA driver of their process can read
 * and write are targets of transfers like any others.  Run with a libcuda.so.1 in LD_LIBRARY_PATH: a driver, or the
 * stand-in of tests/gpu, whose copies can be made slow.  Another process owns the memory (t_cuda --owner FD SIZE).
 *
 *     t_cuda         all of it
 *     t_cuda --off   without SOFTNIC_CUDA: errno 524
 */
#include "pair.h"
#include "softnic/fabric.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = (3 << 20) + 12345, OFF = 4097, MEM = LEN + 3 * 4096, EDGE = 0xe7, NOTSUPP = 524 };

/* ---- the driver ---- */

typedef unsigned long long ptr_t;

static struct {
	int (*init)(unsigned flags);
	int (*device)(int *device, int ordinal);
	int (*retain)(void **ctx, int device);
	int (*current)(void *ctx);
	int (*alloc)(ptr_t *ret, size_t size);
	int (*free)(ptr_t ptr);
	int (*to_device)(ptr_t to, const void *from, size_t len);
	int (*to_host)(void *to, ptr_t from, size_t len);
	int (*set)(ptr_t ptr, unsigned char value, size_t len);
	int (*export)(void *handle, ptr_t ptr, size_t size, int type, unsigned long long flags);
	/* Of the stand-in, or NULL. */
	void (*slow)(unsigned us);
	int (*contexts)(void);
} cu;

static void
load_cuda(void)
{
	const struct {
		const char *name;
		void *fn;
	} symbol[] = { { "cuInit", &cu.init },
		       { "cuDeviceGet", &cu.device },
		       { "cuDevicePrimaryCtxRetain", &cu.retain },
		       { "cuCtxSetCurrent", &cu.current },
		       { "cuMemAlloc_v2", &cu.alloc },
		       { "cuMemFree_v2", &cu.free },
		       { "cuMemcpyHtoD_v2", &cu.to_device },
		       { "cuMemcpyDtoH_v2", &cu.to_host },
		       { "cuMemsetD8_v2", &cu.set },
		       { "cuMemGetHandleForAddressRange", &cu.export },
		       { "standin_slow", &cu.slow },
		       { "standin_contexts", &cu.contexts } };
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx;
	int device;

	must(lib);
	for (size_t i = 0; i < sizeof(symbol) / sizeof(*symbol); i++)
		*(void **)symbol[i].fn = dlsym(lib, symbol[i].name);
	must(cu.init(0) == 0 && cu.device(&device, 0) == 0 && cu.retain(&ctx, device) == 0 &&
	     cu.current(ctx) == 0);
}

static int export(ptr_t ptr, size_t size)
{
	int fd = -1;

	must(cu.export(&fd, ptr, size, 1, 0) == 0);
	return fd;
}

static size_t
paged(size_t size)
{
	return (size + 4095) & ~(size_t)4095;
}

static void
fill(uint8_t *at, size_t len, long seed)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(i * 7 + i / 251 + (size_t)seed);
}

static bool
filled(const uint8_t *at, size_t len, long seed)
{
	for (size_t i = 0; i < len; i++) {
		if (at[i] != (uint8_t)(i * 7 + i / 251 + (size_t)seed))
			return false;
	}

	return true;
}

static bool
all_are(const uint8_t *at, size_t len, int value)
{
	for (size_t i = 0; i < len; i++) {
		if (at[i] != (uint8_t)value)
			return false;
	}

	return true;
}

/* ---- the owner ---- */

enum cmd {
	SET,    /* every byte of the memory is a */
	FILL,   /* its window has the pattern of seed a, the rest EDGE */
	IS_SET, /* answers whether every byte is a */
	BYTE,   /* answers a byte of the window */
	FILLED, /* answers whether [0, b) of the window has the pattern of seed a, and all else is EDGE */
	REG,    /* registers the window with access a; the token follows */
	DEREG,  /* answers 0 */
	FREE,   /* of the memory */
	ALLOC,  /* of as much; answers whether it has the address that it had */
	SLOW,   /* each copy takes a us */
	FORK,   /* a child that asks and ends */
	CONTEXTS,
	EXIT, /* the program ends, the window still registered */
};

struct msg {
	enum cmd cmd;
	long a, b;
};

static ptr_t memory;
static struct ibv_mr *window;
static uint8_t *host;

static void
reg_window(unsigned access, int fd)
{
	int dmabuf = export(memory, paged(MEM));
	struct hw_token t = tok;

	window = ibv_reg_dmabuf_mr(dev.pd, OFF, LEN, memory + OFF, dmabuf, (int)access);
	must(window && window->addr == NULL);
	close(dmabuf);
	t.rkey = window->rkey;
	t.addr = memory + OFF;
	t.len = LEN;
	must(write(fd, &t, sizeof(t)) == sizeof(t));
}

static long
forked(void)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		/* It has no CUDA, and none of the parent's regions. */
		struct ibv_device **list = ibv_get_device_list(NULL);

		ibv_free_device_list(list);
		ibv_dereg_mr(window);
		exit(list ? 0 : 1);
	}
	must(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

static long
obey(const struct msg *m, int fd)
{
	const ptr_t was = memory;

	switch (m->cmd) {
	case SET:
		return cu.set(memory, (unsigned char)m->a, MEM);
	case FILL:
		memset(host, EDGE, MEM);
		fill(host + OFF, LEN, m->a);
		return cu.to_device(memory, host, MEM);
	case IS_SET:
		must(cu.to_host(host, memory, MEM) == 0);
		return all_are(host, MEM, (int)m->a);
	case BYTE:
		must(cu.to_host(host, memory + OFF + (ptr_t)m->a, 1) == 0);
		return host[0];
	case FILLED:
		must(cu.to_host(host, memory, MEM) == 0);
		return all_are(host, OFF, EDGE) && filled(host + OFF, (size_t)m->b, m->a) &&
		       all_are(host + OFF + m->b, (size_t)(MEM - OFF - m->b), EDGE);
	case REG:
		reg_window((unsigned)m->a, fd);
		return 0;
	case DEREG:
		return ibv_dereg_mr(window);
	case FREE:
		return cu.free(memory);
	case ALLOC:
		must(cu.alloc(&memory, MEM) == 0);
		return memory == was;
	case SLOW:
		if (cu.slow)
			cu.slow((unsigned)m->a);
		return 0;
	case FORK:
		return forked();
	case CONTEXTS:
		return cu.contexts ? cu.contexts() : -1;
	case EXIT:
		exit(0);
	}
	return -1;
}

static _Noreturn void
own(int fd)
{
	struct msg m;

	load_cuda();
	host = malloc(MEM);
	must(host && cu.alloc(&memory, MEM) == 0);
	while (read(fd, &m, sizeof(m)) == sizeof(m)) {
		long answer = obey(&m, fd);

		must(write(fd, &answer, sizeof(answer)) == sizeof(answer));
	}
	exit(0);
}

/* ---- the owner as it is seen from here ---- */

static pid_t owner;
static int owner_fd;

static long
ask(enum cmd cmd, long a, long b)
{
	struct msg m = { .cmd = cmd, .a = a, .b = b };
	long answer;

	must(write(owner_fd, &m, sizeof(m)) == sizeof(m));
	if (cmd == REG)
		must(read(owner_fd, &tok, sizeof(tok)) == sizeof(tok));
	must(read(owner_fd, &answer, sizeof(answer)) == sizeof(answer));
	return answer;
}

static void
start_owner(void)
{
	char fd[16];
	int sv[2];

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0);
	snprintf(fd, sizeof(fd), "%d", sv[1]);
	owner = fork();
	must(owner >= 0);
	if (owner == 0) {
		char *args[] = { "t_cuda", "--owner", fd, NULL };
		int moved = dup(sv[1]);

		snprintf(fd, sizeof(fd), "%d", moved);
		execv("/proc/self/exe", args);
		_exit(127);
	}
	close(sv[1]);
	owner_fd = sv[0];
	must(ask(REG, (long)all, 0) == 0);
	sn_dci_to(&dci, &tok);
}

/* Its exit status. */
static int
end_owner(void)
{
	int status = -1;

	close(owner_fd);
	must(waitpid(owner, &status, 0) == owner);
	return status;
}

/* ---- bytes ---- */

static void
test_bytes(void)
{
	static const size_t size[] = { 1, 2, 4095, 4097, 65536, 1 << 20, (1 << 20) + 1, LEN };

	for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++) {
		must(ask(SET, EDGE, 0) == 0);
		fill(buf, LEN, (long)i);
		ok(go(false, (uint32_t)size[i]) == IBV_WC_SUCCESS, "WRITE of %zu bytes", size[i]);
		ok(ask(FILLED, (long)i, (long)size[i]) == 1, "each is there, and none around them");
		must(ask(FILL, (long)i + 50, 0) == 0);
		memset(buf, 0, LEN);
		ok(go(true, (uint32_t)size[i]) == IBV_WC_SUCCESS, "READ of %zu bytes", size[i]);
		ok(filled(buf, size[i], (long)i + 50) && all_are(buf + size[i], LEN - size[i], 0),
		   "each is back, and none around them");
	}
	ok(go(false, 0) == IBV_WC_SUCCESS, "none");
}

/* A READ sees what a WRITE before it wrote. */
static void
test_order(void)
{
	uint64_t id = 0;

	must(ask(SET, EDGE, 0) == 0);
	fill(buf, 1000, 3);
	memset(buf + 2000, 0, 1000);
	post(false, 1000, 1);
	must(sn_post(&dci, true, &tok, tok.addr, mr, buf + 2000, 1000, 2) == 0);
	ok(sn_wait(&dci, &id) == IBV_WC_SUCCESS && id == 1, "a WRITE");
	ok(sn_wait(&dci, &id) == IBV_WC_SUCCESS && id == 2, "and a READ after it");
	ok(filled(buf + 2000, 1000, 3), "which has its bytes");
}

static void
test_access(void)
{
	struct hw_token good = tok, t = tok;

	must(ask(SET, EDGE, 0) == 0);
	t.rkey ^= 0x100;
	ok(sn_xfer(&dci, false, &t, mr, buf, 10) == IBV_WC_REM_ACCESS_ERR, "another key");
	t = tok;
	t.rkey ^= 1;
	ok(sn_xfer(&dci, false, &t, mr, buf, 10) == IBV_WC_REM_ACCESS_ERR, "another generation");
	t = tok;
	t.addr += 1;
	ok(sn_xfer(&dci, false, &t, mr, buf, LEN) == IBV_WC_REM_ACCESS_ERR, "a byte more than there are");
	t.addr = tok.addr - 1;
	ok(sn_xfer(&dci, false, &t, mr, buf, 2) == IBV_WC_REM_ACCESS_ERR, "a byte before the first");
	must(ask(DEREG, 0, 0) == 0);
	ok(sn_xfer(&dci, false, &good, mr, buf, 10) == IBV_WC_REM_ACCESS_ERR, "deregistered");
	must(ask(REG, IBV_ACCESS_REMOTE_READ, 0) == 0);
	ok(go(false, 10) == IBV_WC_REM_ACCESS_ERR, "a WRITE where only READs may be");
	ok(go(true, 10) == IBV_WC_SUCCESS, "a READ there");
	must(ask(DEREG, 0, 0) == 0 && ask(REG, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0) == 0);
	ok(go(true, 10) == IBV_WC_REM_ACCESS_ERR, "a READ where only WRITEs may be");
	ok(ask(IS_SET, EDGE, 0) == 1, "not a byte was changed");
	must(ask(DEREG, 0, 0) == 0 && ask(REG, (long)all, 0) == 0);
}

/* Memory that is freed while a window of it is registered, and is then another allocation's. */
static void
test_freed(void)
{
	must(ask(SET, EDGE, 0) == 0 && ask(FREE, 0, 0) == 0);
	ok(go(false, LEN) == IBV_WC_REM_OP_ERR, "freed: a WRITE fails");
	ok(go(true, LEN) == IBV_WC_REM_OP_ERR, "and a READ");
	/* With a driver it may be elsewhere. */
	if (ask(ALLOC, 0, 0) == 1) {
		must(ask(SET, 0x31, 0) == 0);
		ok(go(false, LEN) == IBV_WC_REM_OP_ERR && go(true, LEN) == IBV_WC_REM_OP_ERR,
		   "another allocation at that address is not the window");
		ok(ask(IS_SET, 0x31, 0) == 1, "it has its bytes");
	}
	must(ask(DEREG, 0, 0) == 0 && ask(REG, (long)all, 0) == 0);
	ok(go(false, LEN) == IBV_WC_SUCCESS, "registered again");
}

/* ---- faults ---- */

static void
test_rules(void)
{
	must(ask(SET, EDGE, 0) == 0);
	fill(buf, LEN, 1);
	rule("torn=50 limit=1");
	ok(go(false, LEN) == IBV_WC_SUCCESS && ask(FILLED, 1, LEN / 2) == 1, "torn: the first half");
	clear();
	must(ask(SET, EDGE, 0) == 0);
	rule("torn=10 status=RETRY_EXC_ERR limit=1");
	ok(go(false, LEN) == IBV_WC_RETRY_EXC_ERR && ask(FILLED, 1, LEN / 10) == 1, "and with an error");
	clear();
	must(ask(SET, EDGE, 0) == 0);
	rule("status=REM_ACCESS_ERR limit=1");
	ok(go(false, LEN) == IBV_WC_REM_ACCESS_ERR && ask(IS_SET, EDGE, 0) == 1, "an error before any byte");
	clear();
	rule("scramble=65536 limit=1");
	ok(go(false, LEN) == IBV_WC_SUCCESS && ask(FILLED, 1, LEN) == 1, "in pieces, in any order");
	clear();
	rule("corrupt=2000000 limit=1");
	ok(go(false, LEN) == IBV_WC_SUCCESS && ask(BYTE, 2000000, 0) == (uint8_t)~buf[2000000] &&
		   ask(BYTE, 2000001, 0) == buf[2000001] && ask(BYTE, 1999999, 0) == buf[1999999],
	   "one byte is inverted, and no other");
	ok(filled(buf, LEN, 1), "not in the buffer");
	clear();
	must(ask(FILL, 4, 0) == 0);
	rule("op=read corrupt=5 limit=1");
	ok(go(true, LEN) == IBV_WC_SUCCESS, "a READ with such a byte");
	buf[5] = (uint8_t)~buf[5];
	ok(filled(buf, LEN, 4), "the others are right");
	clear();
	rule("drop limit=1");
	fill(buf, LEN, 6);
	post(false, LEN, 1);
	rule("delay=20ms limit=1");
	must(sn_post(&dci, false, &tok, tok.addr, mr, buf, 1, 2) == 0);
	uint64_t id = 0;

	ok(sn_wait(&dci, &id) == IBV_WC_SUCCESS && id == 2, "a completion that never comes, a late one");
	ok(ask(FILLED, 6, LEN) == 1, "and the bytes of both");
	clear();
	ready();
}

/* Bytes that the network still has land after the flush. */
static void
test_ghost(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	uint64_t end = sn_now_ms() + SN_PATIENCE_MS;

	must(ask(SET, EDGE, 0) == 0);
	fill(buf, LEN, 9);
	sn_ctl("firmware ghost=30ms");
	rule("delay=3600s");
	post(false, 100, 1);
	under_way(1);
	must(ibv_modify_qp(dci.qp, &a, IBV_QP_STATE) == 0);
	ok(sn_wait(&dci, NULL) == IBV_WC_WR_FLUSH_ERR, "flushed");
	while (ask(FILLED, 9, 100) != 1 && sn_now_ms() < end)
		sn_nap_ms(5);
	ok(ask(FILLED, 9, 100) == 1, "and there later");
	sn_ctl("firmware ghost=0");
	clear();
	ready();
}

static void
test_trace(void)
{
	const char *dir = getenv("SOFTNIC_DIR"), *build = getenv("BUILD");
	const char *want[] = { "write SUCCESS 3158073 3158073", "read SUCCESS 1000 1000",
			       "write REM_ACCESS_ERR 10 0", "write SUCCESS 1000 500" };
	struct hw_token t = tok;
	char line[1024];
	size_t n = 0;
	FILE *p;

	must(dir && build && LEN == 3158073);
	snprintf(line, sizeof(line), "trace on %s/device.trace 100", dir);
	sn_ctl(line);
	ok(go(false, LEN) == IBV_WC_SUCCESS && go(true, 1000) == IBV_WC_SUCCESS, "traced");
	t.rkey ^= 1;
	ok(sn_xfer(&dci, false, &t, mr, buf, 10) == IBV_WC_REM_ACCESS_ERR, "a failure");
	rule("torn=50 limit=1");
	ok(go(false, 1000) == IBV_WC_SUCCESS, "a part");
	clear();
	sn_ctl("trace off");
	snprintf(line, sizeof(line), "%s/softnicctl trace show %s/device.trace", build, dir);
	p = popen(line, "r");
	must(p);
	while (fgets(line, sizeof(line), p)) {
		unsigned long long start, end, done, len, landed;
		char op[16], status[32], has[96];

		if (line[0] == '#')
			continue;
		must(sscanf(line, "%llu %llu %llu %*u %*x %15s %*x %*x %*x %llu %llu %31s", &start, &end,
			    &done, op, &len, &landed, status) == 7);
		snprintf(has, sizeof(has), "%s %s %llu %llu", op, status, len, landed);
		ok(n < 4 && strcmp(has, want[n]) == 0, "line %zu of the trace: %s", n, has);
		ok(start && start <= end && end <= done, "its times");
		n++;
	}
	ok(pclose(p) == 0 && n == 4, "four lines");
}

/* ---- ends ---- */

/* Six WRITEs of the window, posted by another thread: in inline mode it does the work. */
static void *
post_six(void *arg)
{
	for (uint64_t id = 0; id < 6; id++)
		post(false, LEN, id);
	return arg;
}

static pthread_t
start_six(void)
{
	pthread_t thread;

	must(pthread_create(&thread, NULL, post_six, NULL) == 0);
	return thread;
}

/* The first status but SUCCESS, when all have been posted. */
static int
first_failure(pthread_t thread)
{
	int st = IBV_WC_SUCCESS;

	pthread_join(thread, NULL);
	for (int i = 0; i < 6 && st == IBV_WC_SUCCESS; i++)
		st = sn_wait(&dci, NULL);
	return st;
}

/* Deregistered in the middle of transfers: from then on not a byte arrives. */
static void
test_dereg(void)
{
	unsigned refused = 0;

	fill(buf, LEN, 2);
	for (long round = 0; round < 8; round++) {
		pthread_t thread;
		int st;

		must(ask(SLOW, 2000, 0) == 0);
		thread = start_six();
		sn_nap_ms((unsigned)round * 4);
		must(ask(DEREG, 0, 0) == 0 && ask(SLOW, 0, 0) == 0 && ask(SET, EDGE, 0) == 0);
		st = first_failure(thread);
		refused += st == IBV_WC_REM_ACCESS_ERR;
		ok(st == IBV_WC_SUCCESS || st == IBV_WC_REM_ACCESS_ERR, "status %d", st);
		ok(ask(IS_SET, EDGE, 0) == 1, "round %ld: no byte after dereg_mr", round);
		must(ask(REG, (long)all, 0) == 0);
		ready();
	}
	ok(refused > 0, "some were in the middle");
}

/* The same of a queue pair that was reset; in inline mode nothing is in the middle by then. */
static void
test_reset(void)
{
	struct sn_turns turns;

	sn_turns_init(&turns, &dev);
	must(ask(SLOW, 3000, 0) == 0);
	for (unsigned round = 0; round < 8; round++) {
		for (uint64_t id = 0; id < 4; id++)
			post(false, LEN, id);
		sn_nap_ms(round * 3);
		ready();
		must(ask(SET, EDGE, 0) == 0);
		/* More turns than the rest of it takes, of the engine, and two more looks of the owner's thread for copies to do. */
		sn_turns(&turns, 32);
		ok(go(true, 8) == IBV_WC_SUCCESS && go(true, 8) == IBV_WC_SUCCESS, "two READs");
		ok(ask(IS_SET, EDGE, 0) == 1, "round %u: no byte after RESET", round);
	}
	must(ask(SLOW, 0, 0) == 0);
	sn_turns_fini(&turns);
}

static pid_t
start_writer(void)
{
	char hex[2 * sizeof(tok) + 1];
	char *args[] = { "t_cuda", "--writer", hex, NULL };
	pid_t pid;

	for (size_t i = 0; i < sizeof(tok); i++)
		snprintf(hex + 2 * i, 3, "%02x", ((uint8_t *)&tok)[i]);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		execv("/proc/self/exe", args);
		_exit(127);
	}
	return pid;
}

/* Initiators that are killed in the middle, more of them than there are jobs: none is lost. */
static void
test_killed_writers(void)
{
	must(ask(SLOW, 20000, 0) == 0);
	for (int i = 0; i < FAB_JOBS + 4; i++) {
		uint64_t end = sn_now_ms() + SN_PATIENCE_MS;
		pid_t pid;

		must(ask(SET, 0, 0) == 0);
		pid = start_writer();
		/* Half of its first step is there, and the rest takes time. */
		while (ask(BYTE, 0, 0) != 0x71 && sn_now_ms() < end)
			sn_nap_ms(1);
		must(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	}
	must(ask(SLOW, 0, 0) == 0);
	fill(buf, LEN, 5);
	must(ask(DEREG, 0, 0) == 0 && ask(SET, EDGE, 0) == 0 && ask(IS_SET, EDGE, 0) == 1);
	must(ask(REG, (long)all, 0) == 0);
	ok(go(false, LEN) == IBV_WC_SUCCESS && ask(FILLED, 5, LEN) == 1, "after %d of them", FAB_JOBS + 4);
}

static void
test_fork(void)
{
	ok(ask(FORK, 0, 0) == 0, "the owner has a child, which ends");
	fill(buf, LEN, 8);
	must(ask(SET, EDGE, 0) == 0);
	ok(go(false, LEN) == IBV_WC_SUCCESS && ask(FILLED, 8, LEN) == 1, "the window is served as before");
}

/* Writes the window again and again until a WRITE fails, however fast the driver copies.  Returns its status. */
static void *
write_on(void *arg)
{
	uint64_t end = sn_now_ms() + SN_PATIENCE_MS;
	int st;

	do
		st = go(false, LEN);
	while (st == IBV_WC_SUCCESS && sn_now_ms() < end);
	return (void *)(intptr_t)st;
}

static void
test_ends(void)
{
	const uint64_t usual_ns = sn_usual_ns;
	pthread_t thread;
	void *failed;
	int st;

	must(kill(owner, SIGSTOP) == 0 && waitpid(owner, &st, WUNTRACED) == owner);
	/* The initiator waits some seconds for an owner before it gives up. */
	sn_usual_ns = 10 * usual_ns;
	st = go(false, LEN);
	sn_usual_ns = usual_ns;
	ok(st == IBV_WC_RETRY_EXC_ERR, "a stopped owner does not answer: %d", st);
	must(kill(owner, SIGCONT) == 0);
	ok(go(false, LEN) == IBV_WC_SUCCESS, "and does afterwards");
	must(ask(SLOW, 5000, 0) == 0);
	must(pthread_create(&thread, NULL, write_on, NULL) == 0);
	sn_nap_ms(10);
	must(kill(owner, SIGKILL) == 0);
	must(pthread_join(thread, &failed) == 0);
	st = (int)(intptr_t)failed;
	ok(st == IBV_WC_RETRY_EXC_ERR, "a killed owner: %d", st);
	ready();
	end_owner();
	ok(go(true, LEN) == IBV_WC_RETRY_EXC_ERR, "nor READs");

	start_owner();
	must(ask(SLOW, 5000, 0) == 0);
	must(pthread_create(&thread, NULL, write_on, NULL) == 0);
	sn_nap_ms(10);
	must(write(owner_fd, &(struct msg){ .cmd = EXIT }, sizeof(struct msg)) == sizeof(struct msg));
	must(pthread_join(thread, &failed) == 0);
	st = (int)(intptr_t)failed;
	ok(st == IBV_WC_RETRY_EXC_ERR || st == IBV_WC_REM_ACCESS_ERR, "an owner that exits: %d", st);
	st = end_owner();
	ok(st == 0, "it does so in peace: %#x", (unsigned)st);
	ready();
}

/* ---- threads ---- */

enum { THREADS = 4, SHARE = LEN / THREADS };

static void *
run_thread(void *arg)
{
	const size_t nr = (size_t)(uintptr_t)arg;
	struct ibv_mr *m = sn_mem_new(&dev, 2 * SHARE);
	uint8_t *mine = m->addr;
	struct hw_token t = tok;
	struct hw_dci i;

	sn_dci_init(&i, &dev, NULL);
	sn_dci_to(&i, &tok);
	for (long n = 0; n < 24; n++) {
		uint32_t len = (uint32_t)(1 + (size_t)(n * 7919 + (long)nr * 131) * 97 % SHARE);

		t.addr = tok.addr + nr * SHARE + (SHARE - len) / 2;
		fill(mine, len, n + (long)nr);
		memset(mine + SHARE, 0, SHARE);
		ok(sn_xfer(&i, false, &t, m, mine, len) == IBV_WC_SUCCESS, "WRITE of thread %zu", nr);
		ok(sn_xfer(&i, true, &t, m, mine + SHARE, len) == IBV_WC_SUCCESS, "READ of thread %zu", nr);
		ok(memcmp(mine, mine + SHARE, len) == 0, "the same bytes, of thread %zu, round %ld", nr, n);
	}
	sn_dci_fini(&i);
	sn_mem_free(m);

	return NULL;
}

static void
test_threads(void)
{
	pthread_t thread[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		must(pthread_create(&thread[i], NULL, run_thread, (void *)(uintptr_t)i) == 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* ---- this process's own memory: what is registered, and what not ---- */

/* Registers, and lets the bytes of a WRITE arrive at `at`.  0 or errno. */
static int
try_window(int fd, uint64_t offset, size_t len, uint64_t iova, ptr_t at)
{
	struct ibv_mr *m = ibv_reg_dmabuf_mr(dev.pd, offset, len, iova, fd, (int)all);
	static uint8_t back[LEN];
	int r = errno;

	if (!m)
		return r;
	sn_target_token(&target, &tok);
	tok.rkey = m->rkey;
	tok.addr = iova;
	sn_dci_to(&dci, &tok);
	fill(buf, len, (long)offset);
	ok(go(false, (uint32_t)len) == IBV_WC_SUCCESS, "a WRITE to own memory");
	must(cu.to_host(back, at, len) == 0);
	ok(memcmp(back, buf, len) == 0, "is where it should be");
	ok(sn_xfer(&dci, false, &tok, m, (void *)(uintptr_t)iova, 1) == IBV_WC_LOC_PROT_ERR,
	   "it is no buffer of a work request");
	ok(ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) != 0,
	   "nor registered again in place");
	ok(ibv_dereg_mr(m) == 0, "dereg_mr");
	return 0;
}

static void
test_own(void)
{
	const size_t size = 1 << 20;
	ptr_t a, small, next;
	struct ibv_mr *m;
	int fd, part = -1;

	must(cu.alloc(&a, size) == 0 && cu.alloc(&small, 1000) == 0 && cu.alloc(&next, 1000) == 0);
	fd = export(a, size);
	/* A driver may have none of a part, and put something else behind an allocation. */
	must(cu.export(&part, a + 8192, 65536, 1, 0) == 0 || !cu.slow);
	ok(try_window(fd, 0, size, a, a) == 0, "a whole allocation");
	ok(try_window(fd, 5000, 70000, a + 5000, a + 5000) == 0, "a part of it");
	ok(try_window(fd, 4096, 8192, a + 40960, a + 4096) == 0, "the address is the dma-buf's, not iova's");
	ok(part < 0 || try_window(part, 4096, 8192, a + 12288, a + 12288) == 0, "of a dma-buf of a part");
	ok(!cu.slow || try_window(part, 4096, 8192, small & ~4095ull, 0) == NOTSUPP,
	   "whose address is not known");
	ok(try_window(fd, 4096, 8192, 0x1000, 0) == NOTSUPP, "iova that is no address");
	ok(try_window(fd, 4096, 8192, (uintptr_t)buf & ~4095ull, 0) == NOTSUPP, "iova of the host");
	ok(try_window(fd, 4096, size, a + 4096, 0) == EINVAL, "more than there is");
	ok(try_window(fd, 1, 10, a, 0) == EINVAL, "another place in the page");
	if (part >= 0)
		close(part);
	close(fd);
	ok(small / 4096 == next / 4096 || !cu.slow, "the stand-in has two in one page");
	fd = export(next & ~4095ull, 4096);
	ok(try_window(fd, next & 4095, 1000, next, next) == 0, "the second of two in a page");
	ok(!cu.slow || try_window(fd, (next & 4095) + 100, 1000, next + 100, 0) == NOTSUPP,
	   "and what is not of it");
	close(fd);
	must(cu.free(next) == 0);
	ok(ibv_reg_mr(dev.pd, (void *)(uintptr_t)a, size, (int)all) == NULL && errno == EFAULT,
	   "without a dma-buf: EFAULT");
	must(cu.free(a) == 0 && cu.free(small) == 0);
	/* A dma-buf that the CPU can map is mapped, as ever. */
	fd = memfd_create("host", MFD_CLOEXEC);
	must(ftruncate(fd, 8192) == 0);
	m = ibv_reg_dmabuf_mr(dev.pd, 0, 8192, 0, fd, (int)all);
	ok(m != NULL && ibv_dereg_mr(m) == 0, "memory of the host");
	close(fd);
	ok(!cu.contexts || cu.contexts() == 1, "the context is retained by this test alone");
}

/* A peer-memory driver: by the address alone (SOFTNIC_PEER_MEM=1). */
static void
test_peer(void)
{
	struct ibv_mr *m;
	uint8_t back[1000];
	ptr_t a;

	must(cu.alloc(&a, 100000) == 0);
	m = ibv_reg_mr(dev.pd, (void *)(uintptr_t)(a + 33), 99000, (int)all);
	ok(m != NULL, "peer memory");
	if (!m)
		return;
	sn_target_token(&target, &tok);
	tok.rkey = m->rkey;
	tok.addr = a + 33 + 5000;
	sn_dci_to(&dci, &tok);
	fill(buf, 1000, 12);
	ok(go(false, 1000) == IBV_WC_SUCCESS && cu.to_host(back, a + 5033, 1000) == 0 &&
		   filled(back, 1000, 12),
	   "has the bytes");
	ok(ibv_dereg_mr(m) == 0 && cu.free(a) == 0, "dereg_mr");
}

static void
test_off(void)
{
	ptr_t a;
	int fd;

	must(cu.alloc(&a, 1 << 20) == 0);
	fd = export(a, 1 << 20);
	ok(try_window(fd, 0, 4096, a, 0) == NOTSUPP, "without SOFTNIC_CUDA");
	close(fd);
}

int
main(int argc, char **argv)
{
	pair_open(argc, argv, LEN);
	if (argc == 3 && strcmp(argv[1], "--owner") == 0)
		own(atoi(argv[2]));
	if (argc == 2) {
		load_cuda();
		if (strcmp(argv[1], "--off") == 0)
			test_off();
		else
			test_peer();
		pair_close();
		return sn_summary("t_cuda, another setting");
	}
	start_owner();
	test_bytes();
	test_order();
	test_access();
	test_freed();
	test_rules();
	test_ghost();
	test_trace();
	test_threads();
	test_dereg();
	test_reset();
	test_killed_writers();
	test_fork();
	ok(ask(CONTEXTS, 0, 0) != 1, "the context is retained for the window");
	must(ask(DEREG, 0, 0) == 0);
	ok(ask(CONTEXTS, 0, 0) <= 1, "and is released");
	must(ask(REG, (long)all, 0) == 0);
	test_ends();
	load_cuda();
	test_own();
	pair_close();

	return sn_summary("t_cuda");
}
