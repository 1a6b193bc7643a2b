/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker threads of a ring without io_uring, see crew.h. The queue is under the crew's mutex. Finished jobs go onto a stack
 * without one, and the worker that finds the ring asleep wakes it.
 */
#include "ring/crew.h"

#include "base/check.h"
#include "base/clock.h"
#include "ring/ring_int.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)128 << 10)

/* ---- queues ---- */

static void
append_all(struct job_list *l, struct job_list *from)
{
	if (!from->head)
		return;
	*l->tail = from->head;
	l->tail = from->tail;
	jobs_init(from);
}

bool
jobs_take_out(struct job_list *l, struct job *j)
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
release(struct crew *c)
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
		j = jobs_take_first(&c->queue);
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
		release(c);
	return NULL;
}

int
crew_add_worker(struct crew *c)
{
	sigset_t all, old;
	int r;

	/* Signals are for other threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&c->thread[c->nr], &c->attr, worker_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r == 0)
		c->nr++;
	return -r;
}

void
crew_submit(struct crew *c, struct job_list *held)
{
	unsigned n = 0, wanted;

	for (const struct job *j = held->head; j; j = j->next)
		n++;
	pthread_mutex_lock(&c->lock);
	append_all(&c->queue, held);
	c->queued += n;
	wanted = c->queued > c->idle ? c->queued - c->idle : 0;
	/* If no more workers can be started, the existing ones do all of the work. */
	while (wanted-- && c->nr < RING_WORKERS && crew_add_worker(c) == 0)
		;
	if (n >= c->idle)
		pthread_cond_broadcast(&c->work);
	else
		while (n--)
			pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
}

bool
crew_take_back(struct crew *c, struct job *j)
{
	bool taken;

	pthread_mutex_lock(&c->lock);
	taken = jobs_take_out(&c->queue, j);
	c->queued -= taken;
	pthread_mutex_unlock(&c->lock);
	return taken;
}

void
crew_collect(struct crew *c, struct job_list *finished)
{
	struct job *j, *next, *first = NULL;

	if (!atomic_load_explicit(&c->done, memory_order_relaxed))
		return;
	for (j = atomic_exchange(&c->done, NULL); j; j = next) {
		next = j->next;
		j->next = first;
		first = j;
	}
	for (j = first; j; j = next) {
		next = j->next;
		jobs_append(finished, j);
	}
}

/* Waits until the workers have ended, and joins them. Returns false if a disk holds one of them, which then owns the crew. */
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

void
crew_free(struct crew *c)
{
	if (dismiss(c))
		release(c);
}

int
crew_new(struct crew **ret_crew)
{
	struct crew *c = calloc(1, sizeof *c);
	pthread_condattr_t at;
	cpu_set_t cpus;

	if (!c)
		return -ENOMEM;
	/* The core that starts workers is bound to one CPU; the workers may use all CPUs of the process. */
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

		release(c);
		return e;
	}
	*ret_crew = c;
	return 0;
}
