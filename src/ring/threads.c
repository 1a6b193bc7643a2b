/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring on epoll and threads, for where io_uring is forbidden.
 *
 * Reads, writes and flushes go to a crew of workers, which grows while all of them are busy; polls and
 * accepts are entries of an epoll descriptor, where the ring's thread waits for both.  What was started waits
 * in `held` until the next turn hands it over in one go, or until much payload has come together.
 *
 * Everything but the crew (crew.c) is the ring's thread's.  A worker that a disk does not let go outlives its
 * ring: then the crew is left to it.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "ring/crew.h"
#include "ring/ring_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 64
#define ACCEPTS 16 /* of one listener, before others have their turn */
#define SUBMIT_BYTES ((size_t)512 << 10)
#define JOBS_MIN 64

struct threads {
	struct ring ring;
	struct crew *crew;
	struct job *free;
	struct job_list held;     /* I/O that the crew does not have yet */
	struct job_list finished; /* I/O that is done */
	struct job_list ready;    /* polls and accepts that have something to say */
	size_t held_bytes;
	unsigned watched; /* entries of epoll_fd, the crew's aside */
	int epoll_fd;
	bool no_pwait2;
};

static const struct ring_ops threads_ops;

static struct threads *
threads_of(struct ring *r)
{
	return container_of(r, struct threads, ring);
}

/* ---- jobs ---- */

static int
more_jobs(struct threads *t, unsigned nr)
{
	struct job_chunk *c = calloc(1, sizeof *c + nr * sizeof c->job[0]);

	if (!c)
		return -ENOMEM;
	c->nr = nr;
	c->next = t->crew->chunks;
	t->crew->chunks = c;
	for (unsigned i = 0; i < nr; i++) {
		c->job[i].next = t->free;
		t->free = &c->job[i];
	}
	return 0;
}

static struct job *
new_job(struct threads *t, struct ring_op *op, enum job_kind kind, int fd, bool multishot)
{
	struct job *j;

	if (!t->free)
		check(more_jobs(t, t->crew->chunks->nr * 2) == 0); /* an operation cannot fail to start */
	j = t->free;
	t->free = j->next;
	*j = (struct job){ .op = op, .kind = kind, .fd = fd, .watched_fd = -1 };
	ring_begin(&t->ring, op, multishot);
	op->job = j;
	return j;
}

/* Gives the job back, then tells whose it was. */
static void
finish(struct threads *t, struct job *j)
{
	struct ring_op *op = j->op;
	int res = j->res;

	j->op = NULL;
	op->job = NULL;
	j->next = t->free;
	t->free = j;
	ring_complete(&t->ring, op, res, false);
}

/* Hands the held jobs over to the workers. */
static void
submit(struct threads *t)
{
	t->held_bytes = 0;
	if (t->held.head)
		crew_submit(t->crew, &t->held);
}

static void
start_io(struct ring *r, struct ring_op *op, enum job_kind kind, int fd, void *buf, size_t len, uint64_t off)
{
	struct threads *t = threads_of(r);
	struct job *j = new_job(t, op, kind, fd, false);

	j->buf = buf;
	j->len = len;
	j->off = off;
	jobs_append(&t->held, j);
	t->held_bytes += len;
	if (t->held_bytes >= SUBMIT_BYTES)
		submit(t);
}

static void
threads_read(struct ring *r, struct ring_op *op, int fd, void *buf, size_t len, uint64_t off, int region)
{
	start_io(r, op, JOB_READ, fd, buf, len, off);
}

static void
threads_write(struct ring *r, struct ring_op *op, int fd, const void *buf, size_t len, uint64_t off,
	      int region)
{
	start_io(r, op, JOB_WRITE, fd, (void *)(uintptr_t)buf, len, off);
}

static void
threads_fdatasync(struct ring *r, struct ring_op *op, int fd)
{
	start_io(r, op, JOB_FDATASYNC, fd, NULL, 0, 0);
}

/* ---- polls and accepts ---- */

static void
say(struct threads *t, struct job *j)
{
	if (!j->listed)
		jobs_append(&t->ready, j);
	j->listed = true;
}

static void
unwatch(struct threads *t, struct job *j)
{
	if (j->watched_fd < 0)
		return;
	/* A descriptor that was closed is not there any more. */
	epoll_ctl(t->epoll_fd, EPOLL_CTL_DEL, j->watched_fd, NULL);
	t->watched--;
	if (j->watched_fd != j->fd)
		close(j->watched_fd);
	j->watched_fd = -1;
}

static void
end(struct threads *t, struct job *j, int res)
{
	unwatch(t, j);
	j->ended = true;
	j->res = res;
	say(t, j);
}

static void
watch(struct threads *t, struct job *j, unsigned events)
{
	struct epoll_event ev = { .events = events, .data.ptr = j };
	int fd = j->fd, r = epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, fd, &ev), error = errno;

	if (r < 0 && error == EEXIST) {
		/* An epoll descriptor knows each number once. */
		fd = fcntl(j->fd, F_DUPFD_CLOEXEC, 0);
		r = fd < 0 ? -1 : epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
		error = errno;
		if (r < 0 && fd >= 0)
			close(fd);
	}
	if (r < 0) {
		/* EPERM: a file, which is always ready. */
		end(t, j, error == EPERM ? (int)(events & (POLLIN | POLLOUT)) : -error);
		return;
	}
	j->watched_fd = fd;
	t->watched++;
}

static void
threads_poll(struct ring *r, struct ring_op *op, int fd, unsigned events, bool multishot)
{
	struct threads *t = threads_of(r);
	struct job *j = new_job(t, op, JOB_POLL, fd, multishot);

	watch(t, j, events | (multishot ? EPOLLET : EPOLLONESHOT));
}

static void
threads_accept(struct ring *r, struct ring_op *op, int listen_fd)
{
	struct threads *t = threads_of(r);
	struct job *j = new_job(t, op, JOB_ACCEPT, listen_fd, true);
	int flags = fcntl(listen_fd, F_GETFL);

	/* Another core may take the connection that this one was told of. */
	if (flags >= 0 && !(flags & O_NONBLOCK))
		fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK);
	watch(t, j, EPOLLIN | EPOLLEXCLUSIVE);
}

static int
say_events(struct threads *t, struct job *j)
{
	int events = j->res;

	j->res = 0;
	if (j->op->multishot) {
		ring_complete(&t->ring, j->op, events, true);
		return 1;
	}
	j->res = events;
	finish(t, j);
	return 1;
}

static int
say_accepted(struct threads *t, struct job *j)
{
	int n = 0;

	for (int i = 0; i < ACCEPTS && !j->ended; i++) {
		int fd = accept4(j->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			ring_complete(&t->ring, j->op, fd, true);
			n++;
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			end(t, j, -errno);
		}
	}
	return n;
}

static int
say_ready(struct threads *t, struct job *j)
{
	j->listed = false;
	if (j->ended) {
		finish(t, j);
		return 1;
	}
	return j->kind == JOB_ACCEPT ? say_accepted(t, j) : say_events(t, j);
}

static void
threads_cancel(struct ring *r, struct ring_op *op)
{
	struct threads *t = threads_of(r);
	struct job *j = op->job;

	if (j->kind == JOB_POLL || j->kind == JOB_ACCEPT) {
		/* What has its result keeps it. */
		if (!j->ended && (!j->listed || op->multishot))
			end(t, j, -ECANCELED);
		return;
	}
	if (!jobs_take_out(&t->held, j) && !crew_take_back(t->crew, j))
		return;
	j->res = -ECANCELED;
	jobs_append(&t->finished, j);
}

/* ---- turning ---- */

static int
wait_events(struct threads *t, struct epoll_event *ev, uint64_t wait_ns)
{
	struct timespec ts = { .tv_sec = (time_t)(wait_ns / NS_PER_S),
			       .tv_nsec = (long)(wait_ns % NS_PER_S) };
	uint64_t ms = wait_ns / NS_PER_MS + (wait_ns % NS_PER_MS != 0);
	int n;

	if (!t->no_pwait2) {
		n = epoll_pwait2(t->epoll_fd, ev, EVENTS, wait_ns == UINT64_MAX ? NULL : &ts, NULL);
		if (n >= 0 || (errno != ENOSYS && errno != EPERM))
			return n;
		t->no_pwait2 = true; /* a kernel before 5.11, or a filter that does not know it */
	}
	return epoll_wait(t->epoll_fd, ev, EVENTS,
			  wait_ns == UINT64_MAX ? -1
			  : ms > INT32_MAX      ? INT32_MAX
						: (int)ms);
}

static int
threads_wait(struct ring *r, uint64_t wait_ns)
{
	struct threads *t = threads_of(r);
	struct epoll_event ev[EVENTS];
	int n;

	submit(t);
	crew_collect(t->crew, &t->finished);
	if (t->finished.head || t->ready.head)
		wait_ns = 0;
	if (wait_ns) {
		atomic_store(&t->crew->asleep, true);
		if (atomic_load(&t->crew->done))
			wait_ns = 0;
	}
	if (!wait_ns && !t->watched)
		n = 0;
	else
		n = wait_events(t, ev, wait_ns);
	atomic_store_explicit(&t->crew->asleep, false, memory_order_relaxed);
	if (n < 0 && errno != EINTR)
		return -errno;
	for (int i = 0; i < n; i++) {
		struct job *j = ev[i].data.ptr;

		if (!j || j->ended) /* the workers', which are looked at below */
			continue;
		j->res |= (int)ev[i].events;
		/* Now, since until it is told its descriptor may be closed, and another have its number. */
		if (j->kind == JOB_POLL && !j->op->multishot)
			unwatch(t, j);
		say(t, j);
	}
	crew_collect(t->crew, &t->finished);
	return 0;
}

static int
threads_reap(struct ring *r)
{
	struct threads *t = threads_of(r);
	struct job *last_io = NULL, *last_ready = NULL, *j;
	uint64_t begun_ns = clock_ns();
	int n = 0;

	r->first_ns = begun_ns;
	/* What comes up meanwhile is the next turn's. */
	if (t->finished.head)
		last_io = container_of(t->finished.tail, struct job, next);
	if (t->ready.head)
		last_ready = container_of(t->ready.tail, struct job, next);
	while ((last_io || last_ready) && (!n || clock_ns() - begun_ns < RING_TURN_NS)) {
		if (last_io && (j = jobs_take_first(&t->finished))) {
			if (j == last_io)
				last_io = NULL;
			finish(t, j);
			n++;
		}
		if (last_ready && (j = jobs_take_first(&t->ready))) {
			if (j == last_ready)
				last_ready = NULL;
			n += say_ready(t, j);
		}
	}
	return n;
}

static int
threads_first(struct ring *r)
{
	struct threads *t = threads_of(r);
	struct job *found[RING_FIRST_MAX], *next;
	int nr = 0;

	submit(t);
	crew_collect(t->crew, &t->finished);
	for (struct job *j = t->finished.head; j && nr < RING_FIRST_MAX; j = next) {
		next = j->next;
		if (j->op->is_first && jobs_take_out(&t->finished, j))
			found[nr++] = j;
	}
	for (int i = 0; i < nr; i++)
		finish(t, found[i]);
	return nr;
}

/* ---- set-up ---- */

static int
threads_register_regions(struct ring *r, const struct iovec *regions, int nr)
{
	return 0; /* a thread reads into any memory alike */
}

static void
threads_free(struct ring *r)
{
	struct threads *t = threads_of(r);

	for (struct job_chunk *k = t->crew->chunks; k; k = k->next) {
		for (unsigned i = 0; i < k->nr; i++) {
			if (k->job[i].op && (k->job[i].kind == JOB_POLL || k->job[i].kind == JOB_ACCEPT))
				unwatch(t, &k->job[i]);
		}
	}
	if (t->epoll_fd >= 0)
		close(t->epoll_fd);
	crew_free(t->crew);
	free(t);
}

int
threads_new(const struct ring_params *params, struct ring **ret_ring)
{
	struct threads *t = calloc(1, sizeof *t);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int r;

	if (!t)
		return -ENOMEM;
	r = crew_new(&t->crew);
	if (r < 0) {
		free(t);
		return r;
	}
	t->ring.ops = &threads_ops;
	jobs_init(&t->held);
	jobs_init(&t->finished);
	jobs_init(&t->ready);
	r = more_jobs(t, params->entries > JOBS_MIN ? params->entries : JOBS_MIN);
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r == 0 && (t->epoll_fd < 0 || epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->crew->wake_fd, &ev) < 0))
		r = -errno;
	/* One must be there: without any, an operation could wait for ever. */
	if (r == 0)
		r = crew_add_worker(t->crew);
	if (r < 0) {
		threads_free(&t->ring);
		return r;
	}
	snprintf(t->ring.describe, sizeof t->ring.describe, "epoll and up to %d threads", RING_WORKERS);
	*ret_ring = &t->ring;
	return 0;
}

static const struct ring_ops threads_ops = {
	.free = threads_free,
	.register_regions = threads_register_regions,
	.read = threads_read,
	.write = threads_write,
	.fdatasync = threads_fdatasync,
	.poll = threads_poll,
	.accept = threads_accept,
	.cancel = threads_cancel,
	.wait = threads_wait,
	.reap = threads_reap,
	.first = threads_first,
};
