/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disk I/O, polls and accepts of one thread: one embedded operation struct, one completion path. A core waits
 * only here. The ring uses io_uring; where the kernel or a container's filter of system calls forbids that,
 * it uses epoll and worker threads, which are slower.
 *
 * A ring belongs to the thread that made it (SINGLE_ISSUER, DEFER_TASKRUN where the kernel has them); every
 * call is made on that thread, and done() runs there, from ring_turn() and ring_first() only, never from inside
 * a start call.
 * An operation cannot fail to start: when the submission queue is full, the ring submits and continues. The
 * fakes of tests/fake and tests/sim implement the same header and inject disk faults.
 */
#ifndef GANTRY_RING_RING_H
#define GANTRY_RING_RING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring;

#define RING_OP_MAGIC 0x52494e47u
#define RING_NO_REGION (-1)
/* The maximum number of workers of all disks (by_worker, and threads in place of io_uring). A disk that hangs
 * may occupy all of them; later operations then wait for a free worker. */
#define RING_WORKERS 64

/* An operation, embedded by the caller. The operation must stay in place until done() has run, for a
 * multishot operation until done() has run without `more`. */
struct ring_op {
	uint32_t magic; /* RING_OP_MAGIC while the operation is in flight; checked at the completion */
	bool multishot;
	/* true: a worker of the kernel submits the read or write instead of this thread, because the
	 * submission can block (for a file system's journal, or a slot in the device's queue). The worker
	 * costs some microseconds. Set by the caller before it starts the operation. */
	bool by_worker;
	/* true: ring_first() may run done() of the operation. Set by the caller before it starts the operation,
	 * which is not multishot. */
	bool is_first;
	void *job; /* memory of the back end of the ring */
	/* res: the kernel's result, a count or -errno. more: true: a multishot operation continues; false:
	 * the operation has ended, so the caller owns op again, and can restart it, even in done(). */
	void (*done)(struct ring_op *op, int res, bool more);
};

enum ring_backend {
	RING_AUTO,    /* io_uring, or threads if io_uring is forbidden */
	RING_THREADS, /* threads even if io_uring is available */
};

struct ring_params {
	/* size of the submission queue; the completion queue has four times as many entries */
	unsigned entries;
	enum ring_backend backend;
};

/* Makes a ring. Set-up flags that the kernel lacks are omitted. Returns 0, or the -errno of the kernel. */
int ring_new(const struct ring_params *params, struct ring **ret_ring);
/* Names the limit that an operator can raise when ring_new() or ring_register_regions() returned e: a text to
 * put after strerror(-e), or "". */
static inline const char *
ring_hint(int e)
{
	return e == -ENOMEM ? " (limit of locked memory: LimitMEMLOCK=, ulimit -l)" : "";
}
/* Ends all operations in flight without their done(), and frees the ring. NULL is allowed. */
void ring_free(struct ring *r);
/* Returns a description of the ring in one line for the log: its flags and the operations that the kernel
 * supports. */
const char *ring_describe(const struct ring *r);
/* Returns the reason for using threads instead of io_uring, in words; NULL: io_uring is used. Lives as long
 * as r. */
const char *ring_why_threads(const struct ring *r);

/* Registers payload regions as fixed buffers; the index of a region is its position in the array. Returns 0,
 * or the -errno of the kernel (-ENOMEM: the memlock limit). After a failure the regions are used without
 * registration, which is slower. Threads need no registration. */
int ring_register_regions(struct ring *r, const struct iovec *regions, int nr);

/* Reads len bytes at off. region: index of the fixed buffer that contains buf; RING_NO_REGION: no fixed
 * buffer contains it. */
void ring_read(struct ring *r, struct ring_op *op, int fd, void *buf, size_t len, uint64_t off, int region);
void ring_write(struct ring *r, struct ring_op *op, int fd, const void *buf, size_t len, uint64_t off,
		int region);
void ring_fdatasync(struct ring *r, struct ring_op *op, int fd);
/* Polls a descriptor, one-shot or multishot. The result in done() is the mask of events. A nested epoll
 * descriptor reports only edges, so the caller must take all of its events. */
void ring_poll(struct ring *r, struct ring_op *op, int fd, unsigned events, bool multishot);
/* Accepts connections, multishot, as non-blocking, close-on-exec sockets. The result in done() is the new
 * descriptor. Without multishot accept in the kernel each call accepts one connection. */
void ring_accept(struct ring *r, struct ring_op *op, int listen_fd);
/* Cancels op; its done() still runs, with -ECANCELED or the result of the operation. A read or write that a
 * worker thread executes is not cancelled. */
void ring_cancel(struct ring *r, struct ring_op *op);

/* Returns the number of operations in flight (multishot ones included). */
unsigned ring_inflight(const struct ring *r);

/* Submits operations and waits, without running done(): the first half of ring_turn(), for callers with work
 * between the wake-up and the first done(). Returns 0, or the -errno of the kernel. */
int ring_wait(struct ring *r, uint64_t wait_ns);

/* Submits, waits for a completion or for wait_ns (0: does not wait; UINT64_MAX: no limit), and runs the
 * completed operations. Returns the number of completions, or -errno for a broken ring. */
int ring_turn(struct ring *r, uint64_t wait_ns);

/* Runs the completed operations with is_first, after it has submitted all operations; the completions of other
 * operations wait for the next turn, in their order. Called by a thread with much to do between two turns, as
 * often as the thread likes, but not from inside done(): the ring looks for completions at most every 50 us,
 * and only while an operation with is_first is in flight. Returns the number of completions. */
int ring_first(struct ring *r);

#endif
