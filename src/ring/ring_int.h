/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by ring.c and the back ends of a ring. */
#ifndef GANTRY_RING_RING_INT_H
#define GANTRY_RING_RING_INT_H

#include "ring/ring.h"

/* Time for which ring_free() waits for operations in flight. */
#define RING_FREE_WAIT_NS (5ull * 1000 * 1000 * 1000)
/* Longest time for which one turn runs completions; the next turn runs the remaining ones. Without this limit
 * a disk that reports its reads in batches of 32 would be idle while the core handles a batch. Between two
 * turns the core sends replies and accepts requests. */
#define RING_TURN_NS (100ull * 1000)
/* Shortest time between two looks of ring_first(), and between a turn and the next look. A look enters the
 * kernel if there is a completion, or something to submit. */
#define RING_FIRST_NS (50ull * 1000)
/* Largest number of completions that one look takes. */
#define RING_FIRST_MAX 64

/* The functions of a back end; each of them implements the function of ring.h with the same name. */
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
	int (*first)(struct ring *r);
};

/* The first member of the ring of every back end. */
struct ring {
	const struct ring_ops *ops;
	unsigned inflight;
	unsigned first;          /* number of operations in flight with is_first */
	uint64_t first_ns;       /* time of clock_ns() of the last turn or look of ring_first() */
	const char *why_threads; /* reason why the ring uses threads; NULL: it uses io_uring */
	char describe[256];
};

/* Makes a ring that uses io_uring. Returns 0, or the kernel's -errno. */
int uring_new(const struct ring_params *params, struct ring **ret_ring);
/* Makes a ring that uses epoll and threads. Returns 0, or the -errno of a system call. */
int threads_new(const struct ring_params *params, struct ring **ret_ring);

/* Marks an operation as in flight. */
void ring_begin(struct ring *r, struct ring_op *op, bool multishot);
/* Handles a completion: removes the mark of ring_begin(), unless `more` is true, and runs done() of the
 * operation. */
void ring_complete(struct ring *r, struct ring_op *op, int res, bool more);

#endif
