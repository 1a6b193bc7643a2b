/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which back end a ring has: io_uring, or threads where the kernel or a container forbids io_uring.  One
 * indirect call for each operation.
 */
#include "ring/ring.h"

#include "base/check.h"
#include "base/clock.h"
#include "ring/ring_int.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define DISABLED "/proc/sys/kernel/io_uring_disabled"

/* Says in words why io_uring answered so. */
static const char *
why_not(int error)
{
	int fd;
	char c = '0';

	if (error == -ENOSYS)
		return "this kernel has no io_uring, or a filter of system calls denies it";
	fd = open(DISABLED, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, &c, 1) != 1)
			c = '0';
		close(fd);
	}
	return c == '2'   ? "kernel.io_uring_disabled is 2"
	       : c == '1' ? "kernel.io_uring_disabled is 1, and this process is not of kernel.io_uring_group"
			  : "a filter of system calls denies it, as Docker's, Podman's and containerd's do";
}

int
ring_new(const struct ring_params *params, struct ring **ret_ring)
{
	const char *why = "chosen";
	int rc;

	if (params->backend != RING_THREADS) {
		rc = uring_new(params, ret_ring);
		if (rc != -EPERM && rc != -EACCES && rc != -ENOSYS)
			return rc;
		why = why_not(rc);
	}
	rc = threads_new(params, ret_ring);
	if (rc == 0)
		(*ret_ring)->why_threads = why;
	return rc;
}

void
ring_free(struct ring *r)
{
	if (r)
		r->ops->free(r);
}

const char *
ring_describe(const struct ring *r)
{
	return r->describe;
}

const char *
ring_why_threads(const struct ring *r)
{
	return r->why_threads;
}

int
ring_register_regions(struct ring *r, const struct iovec *regions, int nr)
{
	return nr < 1 ? 0 : r->ops->register_regions(r, regions, nr);
}

/* ---- starting ---- */

void
ring_begin(struct ring *r, struct ring_op *op, bool multishot)
{
	check(op->magic != RING_OP_MAGIC && op->done && !(op->is_first && multishot));
	op->magic = RING_OP_MAGIC;
	op->multishot = multishot;
	r->inflight++;
	r->first += op->is_first;
}

void
ring_read(struct ring *r, struct ring_op *op, int fd, void *buf, size_t len, uint64_t off, int region)
{
	check(len <= INT32_MAX);
	r->ops->read(r, op, fd, buf, len, off, region);
}

void
ring_write(struct ring *r, struct ring_op *op, int fd, const void *buf, size_t len, uint64_t off, int region)
{
	check(len <= INT32_MAX);
	r->ops->write(r, op, fd, buf, len, off, region);
}

void
ring_fdatasync(struct ring *r, struct ring_op *op, int fd)
{
	r->ops->fdatasync(r, op, fd);
}

void
ring_poll(struct ring *r, struct ring_op *op, int fd, unsigned events, bool multishot)
{
	r->ops->poll(r, op, fd, events, multishot);
}

void
ring_accept(struct ring *r, struct ring_op *op, int listen_fd)
{
	r->ops->accept(r, op, listen_fd);
}

void
ring_cancel(struct ring *r, struct ring_op *op)
{
	check(op->magic == RING_OP_MAGIC);
	r->ops->cancel(r, op);
}

unsigned
ring_inflight(const struct ring *r)
{
	return r->inflight;
}

/* ---- turning ---- */

void
ring_complete(struct ring *r, struct ring_op *op, int res, bool more)
{
	check(op->magic == RING_OP_MAGIC);
	check(!more || op->multishot);
	if (!more) {
		op->magic = 0;
		r->inflight--;
		r->first -= op->is_first;
	}
	op->done(op, res, more);
}

int
ring_wait(struct ring *r, uint64_t wait_ns)
{
	return r->ops->wait(r, wait_ns);
}

int
ring_turn(struct ring *r, uint64_t wait_ns)
{
	int rc = r->ops->wait(r, wait_ns);

	return rc < 0 ? rc : r->ops->reap(r);
}

int
ring_first(struct ring *r)
{
	uint64_t now;

	if (!r->first)
		return 0;
	now = clock_ns();
	if (now - r->first_ns < RING_FIRST_NS)
		return 0;
	r->first_ns = now;
	return r->ops->first(r);
}
