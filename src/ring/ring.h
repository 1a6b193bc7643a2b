/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disk I/O, polls and accepts of one thread: one embedded operation struct, one completion path.  The only
 * place a core waits.  On io_uring; where the kernel or a container's filter of system calls forbids that, on
 * epoll and worker threads that do the same more slowly.
 *
 * A ring belongs to the thread that made it (SINGLE_ISSUER, DEFER_TASKRUN where the kernel has them); every
 * call is made on that thread and done() runs there, from ring_turn() only, never from inside a start call.
 * An operation cannot fail to start: when the submission queue is full the ring submits and goes on.  The
 * same header is implemented by the fakes of tests/fake and tests/sim: this is the seam where disk faults
 * enter.
 */
#ifndef GANTRY_RING_RING_H
#define GANTRY_RING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring;

#define RING_OP_MAGIC 0x52494e47u
#define RING_NO_REGION (-1)
/* A disk that hangs keeps as many workers (by_worker; threads that stand in for io_uring) as it can get, of these; what
 * comes then waits for one of them. */
#define RING_WORKERS 64

/* Embedded by the caller; must stay in place until done() ran (and !more, for a multishot operation). */
struct ring_op {
	uint32_t magic; /* RING_OP_MAGIC while in flight; checked on the way back */
	bool multishot;
	/* By the caller, before it starts a read or write: the kernel may wait before the I/O is even under
	 * way (a file system's journal, a place in the device's queue), so a worker of the kernel hands it
	 * in, not this thread.  That costs some microseconds. */
	bool by_worker;
	void *job; /* the ring's own */
	/* res: what the kernel answered, a count or -errno.  more: a multishot operation goes on; without it
	 * the op is the caller's again, who starts it anew if that is wanted (from here, too). */
	void (*done)(struct ring_op *op, int res, bool more);
};

enum ring_backend {
	RING_AUTO,    /* io_uring, or threads where it is forbidden */
	RING_THREADS, /* threads in any case */
};

struct ring_params {
	unsigned entries; /* submission queue; the completion queue gets four times as many */
	enum ring_backend backend;
};

/* Makes a ring.  0 or -errno.  What the kernel lacks of the wanted set-up flags is left out. */
int ring_new(const struct ring_params *params, struct ring **ret_ring);
/* Ends what is under way without its done(), and frees the ring.  NULL is fine. */
void ring_free(struct ring *r);
/* Describes the ring in one line for the log: flags and operations found. */
const char *ring_describe(const struct ring *r);
/* Returns the reason why threads stand in for io_uring, in words; NULL: they do not.  Lives as long as r. */
const char *ring_why_threads(const struct ring *r);

/* Registers payload regions as fixed buffers, index = position.  0 or -errno (-ENOMEM: memlock); then the
 * regions are used unregistered, which is slower and right.  Threads have no use for it. */
int ring_register_regions(struct ring *r, const struct iovec *regions, int nr);

/* Reads len bytes at off.  region: where buf lies (its fixed-buffer index), or RING_NO_REGION. */
void ring_read(struct ring *r, struct ring_op *op, int fd, void *buf, size_t len, uint64_t off, int region);
void ring_write(struct ring *r, struct ring_op *op, int fd, const void *buf, size_t len, uint64_t off,
		int region);
void ring_fdatasync(struct ring *r, struct ring_op *op, int fd);
/* Polls a descriptor, one-shot or multishot (res: the events seen).  A nested epoll descriptor reports
 * edges: drain it fully. */
void ring_poll(struct ring *r, struct ring_op *op, int fd, unsigned events, bool multishot);
/* Accepts, multishot, non-blocking, close-on-exec sockets; res: the new descriptor.  Falls back to one shot a
 * call. */
void ring_accept(struct ring *r, struct ring_op *op, int listen_fd);
/* Asks for op's end; its done() still runs, with -ECANCELED or its own result.  A read or write that a thread
 * is at cannot be ended. */
void ring_cancel(struct ring *r, struct ring_op *op);

/* Operations in flight (multishot ones included). */
unsigned ring_inflight(const struct ring *r);

/* Submits and waits, and runs nothing: the first half of ring_turn().  For who must do something between
 * sleeping and the first done().  0 or -errno. */
int ring_wait(struct ring *r, uint64_t wait_ns);

/* Submits, waits until a completion is there or wait_ns passed (0: does not wait; UINT64_MAX: for ever), runs
 * what completed.  Returns the number of completions, or -errno for a broken ring. */
int ring_turn(struct ring *r, uint64_t wait_ns);

#endif
