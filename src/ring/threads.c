/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring on epoll and threads, for where io_uring is forbidden.
 *
 * Reads, writes and flushes go to a crew of workers, which grows while all of them are busy; polls and
 * accepts are entries of an epoll descriptor, where the ring's thread waits for both.  What was started waits
 * in `held` until the next turn hands it over in one go, or until much payload has come together.
 *
 * Everything but the crew is the ring's thread's.  The crew's queue is under its mutex; what is done goes onto
 * a stack without one, and who finds the ring asleep wakes it.  A worker that a disk does not let go outlives
 * its ring: then the crew is left to it.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "ring/ring_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 64
#define ACCEPTS 16 /* of one listener, before others have their turn */
#define SUBMIT_BYTES ((size_t)512 << 10)
#define STACK_BYTES ((size_t)128 << 10)
#define JOBS_MIN 64

enum job_kind {
	JOB_READ,
	JOB_WRITE,
	JOB_FDATASYNC,
	JOB_POLL,
	JOB_ACCEPT,
};

struct job {
	struct job *next;
	struct ring_op *op; /* NULL: the job is free */
	enum job_kind kind;
	int fd;
	int watched_fd; /* what epoll has: fd, or a duplicate where fd is there already; -1: nothing */
	bool listed;    /* it is among the ready */
	bool ended;     /* no event counts any more: res is the end */
	int res;        /* the result, or the events so far */
	unsigned events;
	void *buf;
	size_t len;
	uint64_t off;
};

/* First in, first out. */
struct job_list {
	struct job *head, **tail;
};

struct job_chunk {
	struct job_chunk *next;
	unsigned nr;
	struct job job[];
};

/* The workers of a ring, and what they share with it. */
struct crew {
	pthread_mutex_t lock;
	pthread_cond_t work, gone;
	struct job_list queue; /* lock */
	unsigned queued;       /* lock */
	unsigned idle;         /* lock */
	unsigned nr;           /* ring's thread: threads started */
	unsigned exited;       /* lock */
	bool stop;             /* lock */
	bool orphan;           /* lock: the ring is gone, the last one frees the crew */
	int wake_fd, stop_fd;
	struct job *_Atomic done; /* the latest first */
	_Atomic bool asleep;
	struct job_chunk *chunks; /* ring's thread */
	pthread_attr_t attr;      /* how a worker is started */
	pthread_t thread[RING_WORKERS];
};

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

/* ---- lists ---- */

static void
jobs_init(struct job_list *l)
{
	l->head = NULL;
	l->tail = &l->head;
}

static void
append(struct job_list *l, struct job *j)
{
	j->next = NULL;
	*l->tail = j;
	l->tail = &j->next;
}

static void
append_all(struct job_list *l, struct job_list *from)
{
	if (!from->head)
		return;
	*l->tail = from->head;
	l->tail = from->tail;
	jobs_init(from);
}

static struct job *
take_first(struct job_list *l)
{
	struct job *j = l->head;

	if (j && !(l->head = j->next))
		l->tail = &l->head;
	return j;
}

static bool
take_out(struct job_list *l, struct job *j)
{
	for (struct job **p = &l->head; *p; p = &(*p)->next) {
		if (*p != j)
			continue;
		*p = j->next;
		if (l->tail == &j->next)
			l->tail = p;
		return true;
	}
	return false;
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

/* ---- workers ---- */

/* Reads what has no positions: a pipe, which may stay empty for ever. */
static ssize_t
read_stream(const struct crew *c, const struct job *j)
{
	struct pollfd p[2] = { { .fd = j->fd, .events = POLLIN }, { .fd = c->stop_fd, .events = POLLIN } };

	if (poll(p, 2, -1) < 0)
		return -1;
	if (p[1].revents) {
		errno = ECANCELED;
		return -1;
	}
	return read(j->fd, j->buf, j->len);
}

static int
carry_out(const struct crew *c, const struct job *j)
{
	ssize_t n = -1;

	do {
		switch (j->kind) {
		case JOB_READ:
			n = pread(j->fd, j->buf, j->len, (off_t)j->off);
			if (n < 0 && errno == ESPIPE)
				n = read_stream(c, j);
			break;
		case JOB_WRITE:
			n = pwrite(j->fd, j->buf, j->len, (off_t)j->off);
			break;
		case JOB_FDATASYNC:
			n = fdatasync(j->fd);
			break;
		case JOB_POLL:
		case JOB_ACCEPT:
			check(!"a poll is no work for a thread");
		}
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (int)n;
}

static void
wake(struct crew *c)
{
	uint64_t one = 1;

	/* Full: then it will wake anyway. */
	if (write(c->wake_fd, &one, sizeof one) < 0)
		check(errno == EAGAIN);
}

static void
crew_free(struct crew *c)
{
	struct job_chunk *next;

	for (struct job_chunk *k = c->chunks; k; k = next) {
		next = k->next;
		free(k);
	}
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	if (c->stop_fd >= 0)
		close(c->stop_fd);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->work);
	pthread_cond_destroy(&c->gone);
	pthread_attr_destroy(&c->attr);
	free(c);
}

static void *
worker_main(void *arg)
{
	struct crew *c = arg;
	struct job *j, *head;
	bool last;

	pthread_setname_np(pthread_self(), "disk-io");
	pthread_mutex_lock(&c->lock);
	for (;;) {
		c->idle++;
		while (!c->queue.head && !c->stop)
			pthread_cond_wait(&c->work, &c->lock);
		c->idle--;
		if (c->stop)
			break;
		j = take_first(&c->queue);
		c->queued--;
		pthread_mutex_unlock(&c->lock);
		j->res = carry_out(c, j);
		head = atomic_load_explicit(&c->done, memory_order_relaxed);
		do
			j->next = head;
		while (!atomic_compare_exchange_weak(&c->done, &head, j));
		if (atomic_load(&c->asleep) && atomic_exchange(&c->asleep, false))
			wake(c);
		pthread_mutex_lock(&c->lock);
	}
	c->exited++;
	last = c->orphan && c->exited == c->nr;
	pthread_cond_signal(&c->gone);
	pthread_mutex_unlock(&c->lock);
	if (last)
		crew_free(c);
	return NULL;
}

/* Starts one more; no signal is its. */
static int
add_worker(struct crew *c)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&c->thread[c->nr], &c->attr, worker_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r == 0)
		c->nr++;
	return -r;
}

/* Hands over what is held. */
static void
submit(struct threads *t)
{
	struct crew *c = t->crew;
	unsigned n = 0, wanted;

	t->held_bytes = 0;
	if (!t->held.head)
		return;
	for (const struct job *j = t->held.head; j; j = j->next)
		n++;
	pthread_mutex_lock(&c->lock);
	append_all(&c->queue, &t->held);
	c->queued += n;
	wanted = c->queued > c->idle ? c->queued - c->idle : 0;
	/* As many as there is work for; where no more can be had, those that there are do it. */
	while (wanted-- && c->nr < RING_WORKERS && add_worker(c) == 0)
		;
	if (n >= c->idle)
		pthread_cond_broadcast(&c->work);
	else
		while (n--)
			pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
}

static void
start_io(struct ring *r, struct ring_op *op, enum job_kind kind, int fd, void *buf, size_t len, uint64_t off)
{
	struct threads *t = threads_of(r);
	struct job *j = new_job(t, op, kind, fd, false);

	j->buf = buf;
	j->len = len;
	j->off = off;
	append(&t->held, j);
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
		append(&t->ready, j);
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
	bool taken;

	if (j->kind == JOB_POLL || j->kind == JOB_ACCEPT) {
		/* What has its result keeps it. */
		if (!j->ended && (!j->listed || op->multishot))
			end(t, j, -ECANCELED);
		return;
	}
	taken = take_out(&t->held, j);
	if (!taken) {
		pthread_mutex_lock(&t->crew->lock);
		taken = take_out(&t->crew->queue, j);
		t->crew->queued -= taken;
		pthread_mutex_unlock(&t->crew->lock);
	}
	if (!taken)
		return;
	j->res = -ECANCELED;
	append(&t->finished, j);
}

/* ---- turning ---- */

/* Moves what the workers have done to `finished`, in the order in which they did it. */
static void
collect(struct threads *t)
{
	struct job *j, *next, *first = NULL;

	if (!atomic_load_explicit(&t->crew->done, memory_order_relaxed))
		return;
	for (j = atomic_exchange(&t->crew->done, NULL); j; j = next) {
		next = j->next;
		j->next = first;
		first = j;
	}
	for (j = first; j; j = next) {
		next = j->next;
		append(&t->finished, j);
	}
}

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
	collect(t);
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
	collect(t);
	return 0;
}

static int
threads_reap(struct ring *r)
{
	struct threads *t = threads_of(r);
	struct job *last_io = NULL, *last_ready = NULL, *j;
	uint64_t begun_ns = clock_ns();
	int n = 0;

	/* What comes up meanwhile is the next turn's. */
	if (t->finished.head)
		last_io = container_of(t->finished.tail, struct job, next);
	if (t->ready.head)
		last_ready = container_of(t->ready.tail, struct job, next);
	while ((last_io || last_ready) && (!n || clock_ns() - begun_ns < RING_TURN_NS)) {
		if (last_io && (j = take_first(&t->finished))) {
			if (j == last_io)
				last_io = NULL;
			finish(t, j);
			n++;
		}
		if (last_ready && (j = take_first(&t->ready))) {
			if (j == last_ready)
				last_ready = NULL;
			n += say_ready(t, j);
		}
	}
	return n;
}

/* ---- set-up ---- */

static int
threads_register_regions(struct ring *r, const struct iovec *regions, int nr)
{
	return 0; /* a thread reads into any memory alike */
}

/* Waits until the workers have gone; then joins them.  False: one of them is held up, and the crew is its. */
static bool
dismiss(struct crew *c)
{
	uint64_t one = 1, until = clock_ns() + RING_FREE_WAIT_NS;
	struct timespec ts = { .tv_sec = (time_t)(until / NS_PER_S), .tv_nsec = (long)(until % NS_PER_S) };
	bool all;

	check(write(c->stop_fd, &one, sizeof one) == sizeof one);
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->work);
	while (c->exited < c->nr && pthread_cond_timedwait(&c->gone, &c->lock, &ts) == 0)
		;
	all = c->exited == c->nr;
	c->orphan = !all;
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < c->nr; i++) {
		if (all)
			pthread_join(c->thread[i], NULL);
		else
			pthread_detach(c->thread[i]);
	}
	return all;
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
	if (dismiss(t->crew))
		crew_free(t->crew);
	free(t);
}

static int
make_crew(struct crew **ret_crew)
{
	struct crew *c = calloc(1, sizeof *c);
	pthread_condattr_t at;
	cpu_set_t cpus;

	if (!c)
		return -ENOMEM;
	/* The core that starts workers is at home on one CPU; they may run on all that the process may. */
	pthread_attr_init(&c->attr);
	pthread_attr_setstacksize(&c->attr, STACK_BYTES);
	if (sched_getaffinity(getpid(), sizeof cpus, &cpus) == 0)
		pthread_attr_setaffinity_np(&c->attr, sizeof cpus, &cpus);
	pthread_condattr_init(&at);
	pthread_condattr_setclock(&at, CLOCK_MONOTONIC);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	pthread_cond_init(&c->gone, &at);
	pthread_condattr_destroy(&at);
	jobs_init(&c->queue);
	c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->wake_fd < 0 || c->stop_fd < 0) {
		int e = -errno;

		crew_free(c);
		return e;
	}
	*ret_crew = c;
	return 0;
}

int
threads_new(const struct ring_params *params, struct ring **ret_ring)
{
	struct threads *t = calloc(1, sizeof *t);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int r;

	if (!t)
		return -ENOMEM;
	r = make_crew(&t->crew);
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
		r = add_worker(t->crew);
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
};
