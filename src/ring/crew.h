/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker threads of a ring without io_uring, and their jobs. The ring's thread hands over lists of jobs, and collects the
 * finished ones; the number of workers grows while all of them are busy. The functions are called by the ring's thread.
 */
#ifndef GANTRY_RING_CREW_H
#define GANTRY_RING_CREW_H

#include "ring/ring.h"

#include <pthread.h>
#include <stdatomic.h>

enum job_kind {
	JOB_READ,
	JOB_WRITE,
	JOB_FDATASYNC,
	JOB_POLL,
	JOB_ACCEPT,
};

/* The state of an operation of a ring: of a read, write or flush, which a worker executes, or of a wait for events of
 * a descriptor, which epoll watches. */
struct job {
	struct job *next;
	struct ring_op *op; /* operation of the job; NULL: the job is free */
	enum job_kind kind;
	int fd;
	/* descriptor in the epoll descriptor: fd, or a duplicate if fd is there already; -1: none */
	int watched_fd;
	bool listed; /* true: the job is in the list of ready jobs */
	bool ended;  /* true: later events do not count, res is the result of the end */
	int res;     /* the result, or the events so far */
	unsigned events;
	void *buf;
	size_t len;
	uint64_t off;
};

/* A queue of jobs. */
struct job_list {
	struct job *head, **tail;
};

struct job_chunk {
	struct job_chunk *next;
	unsigned nr;
	struct job job[];
};

/* The workers of a ring, and the data that they share with it. */
struct crew {
	pthread_mutex_t lock; /* protects the members up to `orphan`, apart from nr */
	pthread_cond_t work, gone;
	struct job_list queue;
	unsigned queued; /* number of jobs in the queue */
	unsigned idle;   /* number of waiting workers */
	unsigned nr;     /* number of started workers; owned by the ring's thread */
	unsigned exited; /* number of workers that have ended */
	bool stop;
	bool orphan; /* true: the ring is gone, so the last worker frees the crew */
	int wake_fd, stop_fd;
	struct job *_Atomic done; /* stack of finished jobs, the latest first */
	_Atomic bool asleep;      /* true: the ring's thread waits, and a worker must wake it */
	struct job_chunk *chunks; /* all jobs; owned by the ring's thread */
	pthread_attr_t attr;      /* attributes of the worker threads */
	pthread_t thread[RING_WORKERS];
};

/* ---- queues ---- */

static inline void
jobs_init(struct job_list *l)
{
	l->head = NULL;
	l->tail = &l->head;
}

static inline void
jobs_append(struct job_list *l, struct job *j)
{
	j->next = NULL;
	*l->tail = j;
	l->tail = &j->next;
}

/* Removes the first job. Returns NULL if the queue is empty. */
static inline struct job *
jobs_take_first(struct job_list *l)
{
	struct job *j = l->head;

	if (j && !(l->head = j->next))
		l->tail = &l->head;
	return j;
}

/* Removes a job from the queue. Returns false if the queue does not have it. */
bool jobs_take_out(struct job_list *l, struct job *j);

/* ---- workers ---- */

/* Makes a crew without workers. Returns 0 or -errno. */
int crew_new(struct crew **ret_crew);
/* Ends the workers, and frees the crew with its jobs. A worker that a disk holds for longer than RING_FREE_WAIT_NS keeps the
 * crew, and frees it later. */
void crew_free(struct crew *c);
/* Starts a worker. Returns 0 or -errno. */
int crew_add_worker(struct crew *c);
/* Hands the jobs of a list to the workers, and empties the list. Starts as many workers as the jobs need, if
 * possible. */
void crew_submit(struct crew *c, struct job_list *held);
/* Takes back a job that no worker has begun. Returns false if a worker has begun it. */
bool crew_take_back(struct crew *c, struct job *j);
/* Appends the jobs that the workers have finished to a list, in the order of their ends. */
void crew_collect(struct crew *c, struct job_list *finished);

#endif
