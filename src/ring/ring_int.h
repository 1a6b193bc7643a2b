/* SPDX-License-Identifier: Apache-2.0 */
/* What the back ends of a ring share with ring.c. */
#ifndef GANTRY_RING_RING_INT_H
#define GANTRY_RING_RING_INT_H

#include "ring/ring.h"

/* So long ring_free() waits for what is under way. */
#define RING_FREE_WAIT_NS (5ull * 1000 * 1000 * 1000)
/* So long completions are run in one turn; the rest is the next one's.  A disk that tells of its reads in
 * batches would idle while a core goes through 32 of them: in between it answers, and takes in the requests
 * that come next. */
#define RING_TURN_NS (100ull * 1000)

/* A back end: the calls of ring.h. */
struct ring_ops {
	void (*free)(struct ring *r);
	int (*register_regions)(struct ring *r, const struct iovec *regions, int nr);
	void (*read)(struct ring *r, struct ring_op *op, int fd, void *buf, size_t len, uint64_t off,
		     int region);
	void (*write)(struct ring *r, struct ring_op *op, int fd, const void *buf, size_t len, uint64_t off,
		      int region);
	void (*fdatasync)(struct ring *r, struct ring_op *op, int fd);
	void (*poll)(struct ring *r, struct ring_op *op, int fd, unsigned events, bool multishot);
	void (*accept)(struct ring *r, struct ring_op *op, int listen_fd);
	void (*cancel)(struct ring *r, struct ring_op *op);
	int (*wait)(struct ring *r, uint64_t wait_ns);
	int (*reap)(struct ring *r);
};

/* The head of every back end's ring. */
struct ring {
	const struct ring_ops *ops;
	unsigned inflight;
	const char *why_threads; /* NULL: it is on io_uring */
	char describe[256];
};

/* Makes a ring on io_uring.  0 or -errno: what the kernel said. */
int uring_new(const struct ring_params *params, struct ring **ret_ring);
/* Makes a ring on epoll and threads.  0 or -errno. */
int threads_new(const struct ring_params *params, struct ring **ret_ring);

/* Marks an operation as under way. */
void ring_begin(struct ring *r, struct ring_op *op, bool multishot);
/* Takes the operation's mark off unless it goes on, and runs its done(). */
void ring_complete(struct ring *r, struct ring_op *op, int res, bool more);

#endif
