/* SPDX-License-Identifier: Apache-2.0 */
/* What only the ring on threads can do wrong: jobs that wait for a worker, a worker that a disk does not let
 * go, descriptors that epoll takes once or never, events that were there before a cancel. */
#include "ring/ring.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/fake/wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORKERS 64
#define STUCK 9999999 /* an offset whose read does not come back before `let_go` */

static sem_t let_go;
static _Atomic int stuck, returned;

/* Stands in front of libc's. */
ssize_t
pread(int fd, void *buf, size_t len, off_t off)
{
	ssize_t n;

	if (off == STUCK) {
		atomic_fetch_add(&stuck, 1);
		while (sem_wait(&let_go) < 0)
			;
	}
	n = syscall(SYS_pread64, fd, buf, len, off);
	if (off == STUCK)
		atomic_fetch_add(&returned, 1);
	return n;
}

struct op {
	struct ring_op op;
	int res, calls, mores;
};

static struct ring *ring;
static struct op *to_cancel;
static int threads_at_start;

/* Returns the number of threads of this process. */
static int
threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int nr = -2; /* . and .. */

	assert_non_null(d);
	while (readdir(d))
		nr++;
	closedir(d);
	return nr;
}

static void
on_done(struct ring_op *op, int res, bool more)
{
	struct op *o = (struct op *)op;

	o->res = res;
	o->calls++;
	o->mores += more;
	if (more && to_cancel)
		ring_cancel(ring, &to_cancel->op);
	to_cancel = NULL;
}

static struct op
new_op(void)
{
	return (struct op){ .op.done = on_done, .res = INT32_MIN };
}

static int
set_up(void **state)
{
	to_cancel = NULL;
	stuck = returned = 0;
	sem_init(&let_go, 0, 0);
	return ring_new(&(struct ring_params){ .entries = 4, .backend = RING_THREADS }, &ring);
}

static int
tear_down(void **state)
{
	ring_free(ring);
	sem_destroy(&let_go);
	return 0;
}

static void
turn_until(const struct op *o, int calls)
{
	wait_until(o->calls >= calls)
		assert_true(ring_turn(ring, 10 * NS_PER_MS) >= 0);
}

/* 64 reads that a disk holds up: the 65th waits, and can be cancelled; polls go on meanwhile; another read
 * has its turn as soon as one comes back. */
static void
a_disk_that_hangs(void **state)
{
	static struct op held[WORKERS];
	struct op waiting = new_op(), after = new_op(), p = new_op();
	static char mem[WORKERS + 2];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC), efd = eventfd(0, EFD_CLOEXEC);

	for (int i = 0; i < WORKERS; i++) {
		held[i] = new_op();
		ring_read(ring, &held[i].op, fd, &mem[i], 1, STUCK, RING_NO_REGION);
	}
	wait_until(stuck >= WORKERS)
		assert_int_equal(ring_turn(ring, NS_PER_MS), 0);
	ring_read(ring, &waiting.op, fd, &mem[WORKERS], 1, 0, RING_NO_REGION);
	ring_read(ring, &after.op, fd, &mem[WORKERS + 1], 1, 0, RING_NO_REGION);
	ring_poll(ring, &p.op, efd, POLLIN, false);
	assert_int_equal(ring_turn(ring, 5 * NS_PER_MS), 0);
	assert_int_equal(eventfd_write(efd, 1), 0);
	turn_until(&p, 1);
	ring_cancel(ring, &waiting.op);
	turn_until(&waiting, 1);
	assert_int_equal(waiting.res, -ECANCELED);
	assert_int_equal(after.calls, 0);
	/* One that a worker is at has its own result. */
	ring_cancel(ring, &held[0].op);
	assert_int_equal(ring_turn(ring, 0), 0);
	sem_post(&let_go);
	turn_until(&after, 1);
	assert_int_equal(after.res, 1);
	for (int i = 1; i < WORKERS; i++)
		sem_post(&let_go);
	for (int i = 0; i < WORKERS; i++) {
		turn_until(&held[i], 1);
		assert_int_equal(held[i].res, 1);
	}
	assert_int_equal(ring_inflight(ring), 0);
	close(fd);
	close(efd);
}

/* A ring that is freed while its disk hangs gives up after its time; what the worker needs stays until it
 * is back. */
static void
freed_while_the_disk_hangs(void **state)
{
	static struct op o;
	static char c;
	static const uint64_t past = 1;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	o = new_op();
	ring_read(ring, &o.op, fd, &c, 1, STUCK, RING_NO_REGION);
	wait_until(stuck)
		assert_int_equal(ring_turn(ring, NS_PER_MS), 0);
	clock_fake(&past); /* its deadline is over already */
	ring_free(ring);
	clock_fake(NULL);
	ring = NULL;
	assert_int_equal(o.calls, 0);
	sem_post(&let_go);
	/* It frees all that was left to it before it ends; a leak checker sees whether it did. */
	wait_until(threads() == threads_at_start)
		usleep(1000);
	assert_int_equal(returned, stuck);
	close(fd);
}

/* What was never handed over is cancelled, too, and from the middle of what is held. */
static void
cancelled_before_it_began(void **state)
{
	struct op o[3] = { new_op(), new_op(), new_op() };
	char c[3];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < 3; i++)
		ring_read(ring, &o[i].op, fd, &c[i], 1, 0, RING_NO_REGION);
	ring_cancel(ring, &o[2].op);
	ring_cancel(ring, &o[1].op);
	ring_cancel(ring, &o[1].op); /* twice is once */
	assert_int_equal(o[1].calls + o[2].calls, 0);
	for (int i = 0; i < 3; i++)
		turn_until(&o[i], 1);
	assert_int_equal(o[0].res, 1);
	assert_int_equal(o[1].res, -ECANCELED);
	assert_int_equal(o[2].res, -ECANCELED);
	/* And the queue is whole. */
	o[0] = new_op();
	ring_read(ring, &o[0].op, fd, &c[0], 1, 0, RING_NO_REGION);
	turn_until(&o[0], 1);
	assert_int_equal(o[0].res, 1);
	close(fd);
}

/* A file is always ready, a closed descriptor an error; neither stops the others. */
static void
descriptors_that_epoll_refuses(void **state)
{
	struct op f = new_op(), b = new_op();
	char name[] = "/var/tmp/gantry-test-ring-XXXXXX";
	int fd = mkstemp(name);

	unlink(name);
	ring_poll(ring, &f.op, fd, POLLIN, true);
	ring_poll(ring, &b.op, -1, POLLIN, false);
	assert_int_equal(f.calls + b.calls, 0);
	turn_until(&f, 1);
	turn_until(&b, 1);
	assert_int_equal(f.res, POLLIN);
	assert_int_equal(f.mores, 0);
	assert_int_equal(b.res, -EBADF);
	close(fd);
}

/* Two events in one wait: the first one's done() cancels the second, which says so once and nothing else. */
static void
cancelled_by_another(void **state)
{
	struct op a = new_op(), b = new_op();
	int fa = eventfd(0, EFD_CLOEXEC), fb = eventfd(0, EFD_CLOEXEC);

	ring_poll(ring, &a.op, fa, POLLIN, true);
	ring_poll(ring, &b.op, fb, POLLIN, true);
	assert_int_equal(eventfd_write(fa, 1), 0);
	assert_int_equal(eventfd_write(fb, 1), 0);
	to_cancel = &b; /* or a cancels itself, if b is first */
	turn_until(&a, 1);
	turn_until(&b, 1);
	assert_int_equal(b.res, -ECANCELED);
	assert_int_equal(b.mores, b.calls - 1);
	assert_int_equal(ring_inflight(ring), 1);
	/* An edge: nothing is said again until something new comes. */
	assert_int_equal(ring_turn(ring, 5 * NS_PER_MS), 0);
	assert_int_equal(eventfd_write(fa, 1), 0);
	turn_until(&a, 2);
	ring_cancel(ring, &a.op);
	turn_until(&a, 3);
	assert_int_equal(a.res, -ECANCELED);
	close(fa);
	close(fb);
}

static struct op *old, *fresh;
static int old_fd, fresh_fd;

/* What a server does in one turn: it ends a connection that has something to say, and the next one that it
 * takes has its number. */
static void
on_replace(struct ring_op *op, int res, bool more)
{
	close(old_fd);
	ring_cancel(ring, &old->op);
	assert_int_equal(dup2(fresh_fd, old_fd), old_fd);
	ring_poll(ring, &fresh->op, old_fd, POLLIN, false);
	on_done(op, res, more);
}

/* The result of the one that was there still comes, and takes nothing from the poll of its successor. */
static void
a_number_that_is_used_again(void **state)
{
	struct op first = new_op(), a = new_op(), b = new_op();
	int fd = eventfd(1, EFD_CLOEXEC);

	old = &a;
	fresh = &b;
	old_fd = eventfd(0, EFD_CLOEXEC);
	fresh_fd = eventfd(0, EFD_CLOEXEC);
	first.op.done = on_replace;
	ring_poll(ring, &first.op, fd, POLLIN, false);
	ring_poll(ring, &a.op, old_fd, POLLIN, false);
	assert_int_equal(eventfd_write(old_fd, 1), 0);
	turn_until(&first, 1);
	turn_until(&a, 1);
	assert_int_equal(b.calls, 0);
	assert_int_equal(eventfd_write(fresh_fd, 1), 0);
	for (int i = 0; i < 100 && !b.calls; i++)
		assert_true(ring_turn(ring, 10 * NS_PER_MS) >= 0);
	assert_int_equal(b.calls, 1);
	assert_int_equal(b.res, POLLIN);
	close(fd);
	close(old_fd);
	close(fresh_fd);
}

static int
listener(struct sockaddr_in *ret_sa)
{
	socklen_t len = sizeof *ret_sa;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret_sa = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(fd, (struct sockaddr *)ret_sa, len), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret_sa, &len), 0);
	return fd;
}

static void
on_accepted(struct ring_op *op, int res, bool more)
{
	if (res >= 0)
		close(res);
	on_done(op, res, more);
}

/* Forty connections at once, on a listener that blocks and that another ring is at as well: each is
 * accepted once, nobody waits. */
static void
two_rings_at_one_listener(void **state)
{
	enum { N = 40 };
	struct op a = new_op(), b = new_op();
	struct sockaddr_in sa;
	struct ring *other;
	int lfd = listener(&sa), fds[N];

	a.op.done = b.op.done = on_accepted;
	assert_int_equal(ring_new(&(struct ring_params){ .entries = 4, .backend = RING_THREADS }, &other), 0);
	ring_accept(ring, &a.op, lfd);
	ring_accept(other, &b.op, lfd);
	for (int i = 0; i < N; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&sa, sizeof sa), 0);
	}
	wait_until(a.calls + b.calls >= N) {
		assert_true(ring_turn(ring, NS_PER_MS) >= 0);
		assert_true(ring_turn(other, NS_PER_MS) >= 0);
	}
	assert_int_equal(a.calls + b.calls, N);
	assert_int_equal(a.mores + b.mores, N);
	ring_free(other);
	for (int i = 0; i < N; i++)
		close(fds[i]);
	close(lfd);
}

/* Cancelled in the middle of a batch: the rest of it is left to whoever accepts next. */
static void
accepting_ends_at_once(void **state)
{
	enum { N = 5 };
	struct op a = new_op();
	struct sockaddr_in sa;
	int lfd = listener(&sa), fds[N];

	a.op.done = on_accepted;
	for (int i = 0; i < N; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&sa, sizeof sa), 0);
	}
	ring_accept(ring, &a.op, lfd);
	to_cancel = &a;
	turn_until(&a, 2);
	assert_int_equal(a.mores, 1);
	assert_int_equal(a.res, -ECANCELED);
	assert_int_equal(ring_inflight(ring), 0);
	ring_accept(ring, &a.op, lfd);
	turn_until(&a, 2 + N - 1);
	close(lfd);
	for (int i = 0; i < N; i++)
		close(fds[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_disk_that_hangs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(freed_while_the_disk_hangs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cancelled_before_it_began, set_up, tear_down),
		cmocka_unit_test_setup_teardown(descriptors_that_epoll_refuses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cancelled_by_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_number_that_is_used_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_rings_at_one_listener, set_up, tear_down),
		cmocka_unit_test_setup_teardown(accepting_ends_at_once, set_up, tear_down),
	};

	threads_at_start = threads();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
