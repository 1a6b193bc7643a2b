/* SPDX-License-Identifier: Apache-2.0 */
/* The ring against the real kernel, on io_uring and on threads: files, pipes, sockets, cancelling, and far
 * more operations than entries. */
#include "ring/ring.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "tests/fake/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static enum ring_backend backend;

struct op {
	struct ring_op op;
	int res, calls, mores;
};

static void
on_done(struct ring_op *op, int res, bool more)
{
	struct op *o = (struct op *)op;

	o->res = res;
	o->calls++;
	o->mores += more;
}

static struct op
new_op(void)
{
	return (struct op){ .op.done = on_done, .res = INT32_MIN };
}

static struct ring *
make(unsigned entries)
{
	struct ring *r;

	assert_int_equal(ring_new(&(struct ring_params){ .entries = entries, .backend = backend }, &r), 0);
	return r;
}

/* Turns until o was called `calls` times; fails after a minute (a disk with other work can take long). */
static void
turn_until(struct ring *r, const struct op *o, int calls)
{
	wait_until(o->calls >= calls)
		assert_true(ring_turn(r, 100 * NS_PER_MS) >= 0);
}

/* A file on a real disk, gone from its directory already; *ret_direct: whether O_DIRECT was had. */
static int
scratch_file(bool *ret_direct)
{
	char name[] = "/var/tmp/gantry-test-ring-XXXXXX";
	int fd = mkstemp(name), dfd;

	assert_true(fd >= 0);
	dfd = open(name, O_RDWR | O_DIRECT | O_CLOEXEC);
	unlink(name);
	*ret_direct = dfd >= 0;
	if (dfd < 0)
		return fd;
	close(fd);
	return dfd;
}

static void
test_describe(void **state)
{
	struct ring *r = make(64);

	if (backend == RING_THREADS)
		assert_string_equal(ring_why_threads(r), "chosen");
	else
		assert_null(ring_why_threads(r));
	assert_non_null(strstr(ring_describe(r), backend == RING_THREADS ? "threads" : "64 + 256 entries"));
	assert_int_equal(ring_inflight(r), 0);
	assert_int_equal(ring_turn(r, 0), 0);
	ring_free(r);
	ring_free(NULL);
}

static void
test_file(void **state)
{
	struct ring *r = make(8);
	struct bufpool bp;
	struct op w = new_op(), s = new_op(), rd = new_op();
	struct buf *a, *b;
	bool direct, fixed;
	int fd = scratch_file(&direct);

	assert_int_equal(bufpool_init(&bp, 4u << 20), 0);
	fixed = ring_register_regions(r, bp.region, bp.region_nr) == 0;
	print_message("O_DIRECT: %s, fixed buffers: %s\n", direct ? "yes" : "no", fixed ? "yes" : "no");
	for (int turn = 0; turn < 4; turn++) {
		int region = turn % 2 ? 0 : RING_NO_REGION;

		a = bufpool_get(&bp, BUF_LARGE);
		b = bufpool_get(&bp, BUF_LARGE);
		memset(a->mem, 'a' + turn, 8192);
		memset(b->mem, 0, 8192);
		w = s = rd = new_op();
		w.op.by_worker = rd.op.by_worker = turn >= 2;
		ring_write(r, &w.op, fd, a->mem, 8192, 4096, region < 0 ? region : a->region);
		assert_int_equal(ring_inflight(r), 1);
		assert_int_equal(w.calls, 0);
		turn_until(r, &w, 1);
		assert_int_equal(w.res, 8192);
		ring_fdatasync(r, &s.op, fd);
		turn_until(r, &s, 1);
		assert_int_equal(s.res, 0);
		ring_read(r, &rd.op, fd, b->mem, 8192, 4096, region < 0 ? region : b->region);
		turn_until(r, &rd, 1);
		assert_int_equal(rd.res, 8192);
		assert_memory_equal(a->mem, b->mem, 8192);
		assert_int_equal(ring_inflight(r), 0);
		bufpool_put(&bp, a);
		bufpool_put(&bp, b);
	}
	/* A region that was not registered is as good as none; errors come back as they are. */
	a = bufpool_get(&bp, BUF_LARGE);
	rd = new_op();
	ring_read(r, &rd.op, fd, a->mem, 4096, 1u << 30, 60);
	turn_until(r, &rd, 1);
	assert_int_equal(rd.res, 0);
	rd = new_op();
	ring_read(r, &rd.op, -1, a->mem, 4096, 0, RING_NO_REGION);
	turn_until(r, &rd, 1);
	assert_int_equal(rd.res, -EBADF);
	ring_free(r);
	bufpool_fini(&bp);
	close(fd);
}

/* A refused registration (memory not mapped here) leaves a ring that works. */
static void
test_register_fails(void **state)
{
	struct ring *r = make(8);
	struct iovec bad = { (void *)(uintptr_t)0x1000, 4096 };
	struct op rd = new_op();
	char mem[64];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (backend == RING_AUTO)
		assert_true(ring_register_regions(r, &bad, 1) < 0);
	assert_int_equal(ring_register_regions(r, NULL, 0), 0);
	ring_read(r, &rd.op, fd, mem, sizeof mem, 0, 0);
	turn_until(r, &rd, 1);
	assert_int_equal(rd.res, sizeof mem);
	ring_free(r);
	close(fd);
}

/* Hundreds of operations through a ring of four entries, started in one go and again from their own
 * completions. */
static struct ring *many_ring;
static int many_left, many_done, many_fd;

struct many {
	struct ring_op op;
	char mem[16];
};

static void
on_many(struct ring_op *op, int res, bool more)
{
	struct many *m = (struct many *)op;

	assert_int_equal(res, sizeof m->mem);
	assert_false(more);
	many_done++;
	if (many_left > 0) {
		many_left--;
		ring_read(many_ring, op, many_fd, m->mem, sizeof m->mem, 0, RING_NO_REGION);
	}
}

static void
test_more_than_entries(void **state)
{
	enum { N = 1000 };
	struct many *ops = calloc(N, sizeof *ops);

	many_ring = make(4);
	many_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	many_left = 2 * N;
	many_done = 0;
	for (int i = 0; i < N; i++) {
		ops[i].op.done = on_many;
		ring_read(many_ring, &ops[i].op, many_fd, ops[i].mem, sizeof ops[i].mem, 0, RING_NO_REGION);
	}
	assert_int_equal(many_done, 0); /* done() never runs inside a start call */
	assert_int_equal(ring_inflight(many_ring), N);
	wait_until(many_done >= 3 * N)
		assert_true(ring_turn(many_ring, 10 * NS_PER_MS) >= 0);
	assert_int_equal(ring_inflight(many_ring), 0);
	ring_free(many_ring);
	close(many_fd);
	free(ops);
}

/* More events than the completion queue holds: none is lost. */
static void
test_cq_overflow(void **state)
{
	enum { N = 200 };
	struct ring *r = make(4); /* 16 completions */
	static struct op polls[N];
	int fds[2];
	int done = 0;

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	for (int i = 0; i < N; i++) {
		polls[i] = new_op();
		ring_poll(r, &polls[i].op, fds[0], POLLIN, false);
	}
	assert_int_equal(ring_turn(r, 0), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	wait_until(done >= N) {
		int n = ring_turn(r, 100 * NS_PER_MS);

		assert_true(n >= 0);
		done += n;
	}
	for (int i = 0; i < N; i++) {
		assert_int_equal(polls[i].calls, 1);
		assert_true(polls[i].res & POLLIN);
	}
	assert_int_equal(ring_inflight(r), 0);
	ring_free(r);
	close(fds[0]);
	close(fds[1]);
}

/* Waiting runs nothing; what came is the next turn's, which does not wait for more. */
static void
test_wait_alone(void **state)
{
	struct ring *r = make(8);
	struct op p = new_op();
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	ring_poll(r, &p.op, fds[0], POLLIN, false);
	assert_int_equal(ring_wait(r, NS_PER_MS), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(ring_wait(r, 10 * NS_PER_S), 0);
	assert_int_equal(p.calls, 0);
	assert_int_equal(ring_wait(r, UINT64_MAX), 0);
	assert_int_equal(p.calls, 0);
	assert_int_equal(ring_turn(r, UINT64_MAX), 1);
	assert_int_equal(p.calls, 1);
	assert_true(p.res & POLLIN);
	ring_free(r);
	close(fds[0]);
	close(fds[1]);
}

static struct op *ended[64];
static int ended_nr;

static void
on_end(struct ring_op *op, int res, bool more)
{
	if (ended_nr < 64)
		ended[ended_nr++] = (struct op *)op;
	on_done(op, res, more);
}

/* A file of a few blocks, which every back end reads. */
static int
few_blocks(void)
{
	bool direct;
	int fd = scratch_file(&direct);

	assert_int_equal(ftruncate(fd, 64 << 10), 0);
	return fd;
}

/* Looks until n more operations with is_first are over. */
static void
first_until(struct ring *r, int n)
{
	wait_until(n <= 0)
		n -= ring_first(r);
	assert_int_equal(n, 0);
}

/* Between two turns only those end that come first, however many others have ended before them; the others end in the next turn. */
static void
test_first(void **state)
{
	struct ring *r = make(64);
	static _Alignas(4096) char mem[8][4096];
	struct op o[8];
	int fd = few_blocks();

	for (int round = 0; round < 50; round++) {
		ended_nr = 0;
		for (int i = 0; i < 8; i++) {
			o[i] = new_op();
			o[i].op.done = on_end;
			o[i].op.is_first = i == 3 || i == 6;
			ring_read(r, &o[i].op, fd, mem[i], sizeof mem[i], 4096 * (uint64_t)i, RING_NO_REGION);
		}
		first_until(r, 2);
		assert_int_equal(ended_nr, 2);
		assert_int_equal(o[3].res, 4096);
		assert_int_equal(o[6].res, 4096);
		assert_int_equal(ring_inflight(r), 6);
		/* None is in flight. */
		assert_int_equal(ring_first(r), 0);
		for (int i = 0; i < 8; i++) {
			turn_until(r, &o[i], 1);
			assert_int_equal(o[i].calls, 1);
		}
		assert_int_equal(ended_nr, 8);
		assert_int_equal(ring_inflight(r), 0);
	}
	/* A turn takes them as well. */
	o[0] = new_op();
	o[0].op.is_first = true;
	ring_read(r, &o[0].op, fd, mem[0], sizeof mem[0], 0, RING_NO_REGION);
	turn_until(r, &o[0], 1);
	assert_int_equal(ring_first(r), 0);
	ring_free(r);
	close(fd);
}

/* A read with bytes of its own: threads read at the same time. */
struct few {
	struct op o;
	char mem[16];
};
static struct few *afters; /* started by the end of one that comes first, 20 at a time */
static int after_nr;

static void
read_few(struct few *f)
{
	f->o.res = INT32_MIN;
	ring_read(many_ring, &f->o.op, many_fd, f->mem, sizeof f->mem, 0, RING_NO_REGION);
}

static void
on_first(struct ring_op *op, int res, bool more)
{
	for (int i = 0; i < 20; i++) {
		struct few *f = &afters[after_nr++];

		f->o.op.done = on_done;
		read_few(f);
	}
	on_done(op, res, more);
}

/* More of them than one look takes, and than the ring has entries; and each starts others when it ends.  None is lost or comes twice. */
static void
test_many_first(void **state)
{
	enum { N = 200 };
	struct few *first = calloc(N, sizeof *first), *other = calloc(N, sizeof *other);

	many_ring = make(16);
	many_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	afters = calloc((size_t)N * 20, sizeof *afters);
	after_nr = 0;
	for (int i = 0; i < N; i++) {
		other[i].o.op.done = on_done;
		first[i].o.op = (struct ring_op){ .done = on_first, .is_first = true };
		read_few(&other[i]);
		read_few(&first[i]);
	}
	wait_until(!ring_inflight(many_ring)) {
		for (int i = 0; i < 4; i++)
			assert_in_range(ring_first(many_ring), 0, N);
		assert_true(ring_turn(many_ring, NS_PER_MS) >= 0);
	}
	assert_int_equal(after_nr, N * 20);
	for (int i = 0; i < N; i++) {
		assert_int_equal(first[i].o.calls, 1);
		assert_int_equal(other[i].o.calls, 1);
	}
	for (int i = 0; i < after_nr; i++) {
		assert_int_equal(afters[i].o.calls, 1);
		assert_int_equal(afters[i].o.res, sizeof afters[i].mem);
	}
	ring_free(many_ring);
	close(many_fd);
	free(first);
	free(other);
	free(afters);
}

/* The kernel is entered at most every 50 us, and only while one that comes first is in flight. */
static void
test_first_seldom(void **state)
{
	static _Alignas(4096) char mem[4096];
	struct ring *r = make(8);
	struct op o = new_op(), f = new_op();
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), fds[2];
	bool was_seldom = false;
	char c = 'x';

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	/* Another process may have the CPU for longer than 50 us, but not each time. */
	for (int i = 0; i < 10000 && !was_seldom; i++) {
		uint64_t began_ns = clock_ns();
		int n;

		f = new_op();
		f.op.is_first = true;
		ring_read(r, &f.op, fds[0], &c, 1, 0, RING_NO_REGION);
		while (clock_ns() - began_ns < 60 * NS_PER_US)
			;
		began_ns = clock_ns();
		assert_int_equal(ring_first(r), 0);
		assert_int_equal(write(fds[1], "y", 1), 1);
		n = ring_first(r);
		if (clock_ns() - began_ns < 50 * NS_PER_US) {
			assert_int_equal(n, 0);
			was_seldom = true;
		}
		first_until(r, 1 - n);
		assert_int_equal(f.calls, 1);
	}
	assert_true(was_seldom);
	/* None is in flight any more: what is prepared is not submitted. */
	memset(mem, 'x', sizeof mem);
	ring_read(r, &o.op, zero, mem, sizeof mem, 0, RING_NO_REGION);
	for (uint64_t until = clock_ns() + NS_PER_MS; clock_ns() < until;)
		assert_int_equal(ring_first(r), 0);
	assert_int_equal(mem[0], 'x'); /* not submitted */
	turn_until(r, &o, 1);
	assert_int_equal(c, 'y');
	ring_free(r);
	close(zero);
	close(fds[0]);
	close(fds[1]);
}

static void
test_poll_multishot(void **state)
{
	struct ring *r = make(8);
	struct op p = new_op();
	int fds[2];
	char c;

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	ring_poll(r, &p.op, fds[0], POLLIN, true);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(write(fds[1], "x", 1), 1);
		turn_until(r, &p, i);
		assert_true(p.res & POLLIN);
		assert_int_equal(read(fds[0], &c, 1), 1);
		if (p.mores < i) /* what a caller does when the kernel ends it */
			ring_poll(r, &p.op, fds[0], POLLIN, true);
	}
	assert_int_equal(ring_inflight(r), 1);
	ring_cancel(r, &p.op);
	turn_until(r, &p, 4);
	assert_int_equal(p.res, -ECANCELED);
	assert_int_equal(p.mores, 3);
	assert_int_equal(ring_inflight(r), 0);
	ring_free(r);
	close(fds[0]);
	close(fds[1]);
}

static void
test_accept(void **state)
{
	struct ring *r = make(8);
	struct op a = new_op();
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof sa;
	int lfd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(lfd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(lfd, 16), 0);
	assert_int_equal(getsockname(lfd, (struct sockaddr *)&sa, &len), 0);
	ring_accept(r, &a.op, lfd);
	for (int i = 1; i <= 3; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
		turn_until(r, &a, i);
		assert_true(a.res >= 0);
		assert_true(fcntl(a.res, F_GETFL) & O_NONBLOCK);
		assert_true(fcntl(a.res, F_GETFD) & FD_CLOEXEC);
		close(a.res);
		close(fd);
		if (a.mores < i)
			ring_accept(r, &a.op, lfd);
	}
	ring_cancel(r, &a.op);
	turn_until(r, &a, 4);
	assert_int_equal(a.res, -ECANCELED);
	ring_free(r);
	close(lfd);
}

/* Cancelling what has just completed must not disturb what is started in its place. */
static void
test_cancel_late(void **state)
{
	struct ring *r = make(8);
	struct op p = new_op(), n = new_op();
	int fds[2];
	char c;

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	ring_poll(r, &p.op, fds[0], POLLIN, false);
	ring_cancel(r, &p.op);
	turn_until(r, &p, 1);
	assert_true(p.res == -ECANCELED || p.res & POLLIN);
	assert_int_equal(read(fds[0], &c, 1), 1);
	ring_poll(r, &p.op, fds[0], POLLIN, false);
	ring_poll(r, &n.op, fds[0], POLLIN, false);
	assert_true(ring_turn(r, 5 * NS_PER_MS) >= 0);
	assert_int_equal(p.calls, 1);
	assert_int_equal(write(fds[1], "x", 1), 1);
	turn_until(r, &p, 2);
	turn_until(r, &n, 1);
	assert_true(p.res & POLLIN);
	ring_free(r);
	close(fds[0]);
	close(fds[1]);
}

static void
test_waiting(void **state)
{
	struct ring *r = make(8);
	struct rusage a, b;
	uint64_t t = clock_ns();

	getrusage(RUSAGE_SELF, &a);
	assert_int_equal(ring_turn(r, 50 * NS_PER_MS), 0);
	t = clock_ns() - t;
	getrusage(RUSAGE_SELF, &b);
	assert_in_range(t, 45 * NS_PER_MS, 5 * NS_PER_S);
	/* It waited; it did not spin. */
	assert_true(b.ru_utime.tv_usec + b.ru_stime.tv_usec - a.ru_utime.tv_usec - a.ru_stime.tv_usec <
		    20000);
	/* Not told to wait it does not; who else wants the CPU does not want it every time. */
	for (int i = 0; i < 1000; i++) {
		t = clock_ns();
		assert_int_equal(ring_turn(r, 0), 0);
		t = clock_ns() - t;
		if (t < 40 * NS_PER_MS)
			break;
	}
	assert_true(t < 40 * NS_PER_MS);
	ring_free(r);
}

static void
on_alarm(int sig)
{
}

/* A signal ends the wait early and is no error, with a time-out and without. */
static void
test_eintr(void **state)
{
	struct ring *r = make(8);
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	struct itimerval it = { .it_value.tv_usec = 20000, .it_interval.tv_usec = 20000 }, off = { 0 };

	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &it, NULL);
	assert_int_equal(ring_turn(r, UINT64_MAX), 0);
	assert_int_equal(ring_turn(r, 60 * NS_PER_S), 0);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	ring_free(r);
}

/* Freeing with operations under way waits for them: the memory they name may go right after. */
static void
test_free_busy(void **state)
{
	struct ring *r = make(4);
	struct op rd = new_op(), p[20];
	int fds[2];
	char *mem = malloc(4096);

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	ring_read(r, &rd.op, fds[0], mem, 4096, 0, RING_NO_REGION);
	for (int i = 0; i < 20; i++) {
		p[i] = new_op();
		ring_poll(r, &p[i].op, fds[0], POLLIN, i & 1);
	}
	ring_turn(r, 0);
	ring_free(r);
	assert_int_equal(rd.calls, 0);
	free(mem);
	close(fds[0]);
	close(fds[1]);
}

static atomic_int begun; /* number of threads of test_threads() whose read has begun */

/* A ring belongs to the thread that makes it; several threads have one each. */
static void *
ring_thread(void *arg)
{
	struct ring *r;
	struct op rd = new_op();
	char c = 0;
	uint64_t until = clock_ns() + 60 * NS_PER_S;

	if (ring_new(&(struct ring_params){ .entries = 4, .backend = backend }, &r) < 0)
		return NULL;
	ring_read(r, &rd.op, *(int *)arg, &c, 1, 0, RING_NO_REGION);
	ring_turn(r, 0);
	atomic_fetch_add(&begun, 1);
	while (!rd.calls && clock_ns() < until)
		ring_turn(r, UINT64_MAX);
	ring_free(r);
	return rd.res == 1 && c == 'x' ? arg : NULL;
}

static atomic_uint turn; /* number of rings of test_in_turn() that are gone */

static void *
ring_in_turn(void *first)
{
	uint64_t until = clock_ns() + 60 * NS_PER_S;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (unsigned mine = *(unsigned *)first; mine < 64; mine += 2) {
		struct op rd = new_op();
		struct ring *r;
		char c;

		while (atomic_load_explicit(&turn, memory_order_relaxed) < mine && clock_ns() < until)
			sched_yield();
		if (ring_new(&(struct ring_params){ .entries = 8, .backend = backend }, &r) < 0)
			break;
		ring_read(r, &rd.op, fd, &c, 1, 0, RING_NO_REGION);
		while (!rd.calls && clock_ns() < until)
			ring_turn(r, NS_PER_S);
		ring_free(r);
		atomic_store_explicit(&turn, mine + 1, memory_order_relaxed);
	}
	close(fd);
	return NULL;
}

/* Two threads in turns: each makes a ring, often where the other's ring was, uses it and frees it. The thread sanitizer
 * sees nothing that orders the turns. */
static void
test_in_turn(void **state)
{
	unsigned first[2] = { 0, 1 };
	pthread_t t[2];

	atomic_store(&turn, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ring_in_turn, &first[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(atomic_load(&turn), 64);
}

static void
test_threads(void **state)
{
	pthread_t t[2];
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	atomic_store(&begun, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ring_thread, &fds[0]), 0);
	wait_until(atomic_load(&begun) == 2)
		usleep(1000);
	assert_int_equal(write(fds[1], "xx", 2), 2);
	for (int i = 0; i < 2; i++) {
		void *ok;

		pthread_join(t[i], &ok);
		assert_non_null(ok);
	}
	close(fds[0]);
	close(fds[1]);
}

/* Runs all tests with one back end, in a process of its own, and returns how many failed.  A ring of
 * io_uring that was freed leaves the kernel work which, done a while later, ends its thread's next wait as
 * a signal does: so test_waiting(), which a signal may not disturb, comes before any other ring of its
 * process. */
static int
run_on(enum ring_backend which, const char *name, const struct CMUnitTest *tests, size_t nr)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		backend = which;
		status = _cmocka_run_group_tests(name, tests, nr, NULL, NULL);
		fflush(stdout);
		_exit(status);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Says in words why this kernel gives no io_uring; "" when it does. */
static void
why_no_io_uring(char *why, size_t cap)
{
	int fds[2];
	ssize_t n;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	if (fork() == 0) {
		struct ring *r;

		if (ring_new(&(struct ring_params){ .entries = 4 }, &r) == 0 && ring_why_threads(r))
			dprintf(fds[1], "%s", ring_why_threads(r));
		_exit(0);
	}
	close(fds[1]);
	n = read(fds[0], why, cap - 1);
	assert_true(n >= 0);
	why[n] = '\0';
	close(fds[0]);
	wait(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waiting),        cmocka_unit_test(test_wait_alone),
		cmocka_unit_test(test_describe),       cmocka_unit_test(test_file),
		cmocka_unit_test(test_register_fails), cmocka_unit_test(test_more_than_entries),
		cmocka_unit_test(test_cq_overflow),    cmocka_unit_test(test_poll_multishot),
		cmocka_unit_test(test_accept),         cmocka_unit_test(test_cancel_late),
		cmocka_unit_test(test_eintr),          cmocka_unit_test(test_free_busy),
		cmocka_unit_test(test_threads),        cmocka_unit_test(test_in_turn),
		cmocka_unit_test(test_first),          cmocka_unit_test(test_many_first),
		cmocka_unit_test(test_first_seldom),
	};
	char why[256];
	int failed;

	why_no_io_uring(why, sizeof why);
	failed = run_on(RING_THREADS, "threads", tests, sizeof tests / sizeof tests[0]);
	if (why[0])
		printf("skip: io_uring: %s\n", why);
	else
		failed += run_on(RING_AUTO, "io_uring", tests, sizeof tests / sizeof tests[0]);
	return failed;
}
