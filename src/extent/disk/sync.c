/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking I/O over a ring; see sync.h. */
#include "extent/disk/sync.h"

#include "extent/disk/disk.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/run_clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING_ENTRIES 64
#ifndef ZERO_BYTES
#define ZERO_BYTES ((size_t)1 << 20)
#endif
#define ZERO_DEPTH 4

static void
on_done(struct ring_op *op, int res, bool more)
{
	struct sync_op *s = container_of(op, struct sync_op, op);

	s->res = res;
	s->done = true;
}

static _Thread_local struct disk *watched;

void
sync_watch(struct disk *d)
{
	watched = d;
}

/* Turns the ring until the end of s. A ring that fails ends the process, because its operation is on the
 * stack. A write or flush of a watched thread that takes longer than the disk's timeout makes the disk
 * fail; the wait continues. */
static void
wait_for(struct sync_op *s, bool is_write)
{
	uint64_t timeout_ns = is_write && watched ? watched->timeout_ns : 0;
	uint64_t since_ns = run_ns();

	if (is_write && watched)
		disk_write_begins(watched);
	while (!s->done) {
		int n = ring_turn(s->r, timeout_ns ? timeout_ns / 4 : UINT64_MAX);

		check(n >= 0 || n == -EINTR);
		if (s->done || !timeout_ns || run_since_ns(since_ns) < timeout_ns)
			continue;
		disk_fail(watched, "a write or flush has taken longer than %.3g s (store.disk_timeout)",
			  (double)timeout_ns / NS_PER_S);
		timeout_ns = 0;
	}
	if (is_write && watched)
		disk_write_ends(watched);
}

int
sync_error(int res, size_t len)
{
	switch (res) {
	case -ENOMEM:
	case -EINTR:
	case -ENOBUFS:
		return -EAGAIN;
	default:
		return res < 0 ? res : (size_t)res == len ? 0 : -EAGAIN;
	}
}

int
sync_write_error(int res, size_t len, bool is_last)
{
	return is_last && res >= 0 && (size_t)res < len ? -ENOSPC : sync_error(res, len);
}

bool
sync_is_unreadable(int error)
{
	/* The last three are errors of block devices: of the medium, of their target, and of their own
	 * checksums. */
	return error == -EIO || error == -ENODATA || error == -EREMOTEIO || error == -EILSEQ;
}

bool
sync_is_lost(int error)
{
	return error == -EBADMSG || sync_is_unreadable(error);
}

bool
sync_is_no_room(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
}

int
sync_no_room(int error, char *err, size_t err_len)
{
	size_t at = strlen(err);

	if (!sync_is_no_room(error) || error == -ENOSPC)
		return error;
	if (at && at < err_len)
		snprintf(err + at, err_len - at,
			 "; there is no room: a quota, or a limit on the size of files");
	return -ENOSPC;
}

static int
transfer(struct ring *r, int fd, bool is_write, void *buf, size_t len, uint64_t off)
{
	int e = -EAGAIN;

	for (int i = 0; i < SYNC_TRIES && e == -EAGAIN; i++) {
		struct sync_op s = { .op.done = on_done, .r = r };

		if (is_write)
			ring_write(r, &s.op, fd, buf, len, off, RING_NO_REGION);
		else
			ring_read(r, &s.op, fd, buf, len, off, RING_NO_REGION);
		wait_for(&s, is_write);
		e = sync_write_error(s.res, len, is_write && i == SYNC_TRIES - 1);
	}
	return e;
}

int
sync_read(struct ring *r, int fd, void *buf, size_t len, uint64_t off)
{
	return transfer(r, fd, false, buf, len, off);
}

int
sync_write(struct ring *r, int fd, const void *buf, size_t len, uint64_t off)
{
	return transfer(r, fd, true, (void *)(uintptr_t)buf, len, off);
}

void
sync_read_begin(struct sync_op *s, struct ring *r, int fd, void *buf, size_t len, uint64_t off)
{
	int n;

	check(!s->r);
	*s = (struct sync_op){ .op.done = on_done, .r = r, .len = len };
	ring_read(r, &s->op, fd, buf, len, off, RING_NO_REGION);
	n = ring_turn(r, 0);
	check(n >= 0 || n == -EINTR);
}

int
sync_read_end(struct sync_op *s)
{
	if (!s->r)
		return 0;
	wait_for(s, false);
	s->r = NULL;
	return sync_error(s->res, s->len);
}

int
sync_flush(struct ring *r, int fd)
{
	struct sync_op s = { .op.done = on_done, .r = r };

	ring_fdatasync(r, &s.op, fd);
	wait_for(&s, true);
	return s.res < 0 ? s.res : 0;
}

int
sync_zero(struct ring *r, int fd, uint64_t off, uint64_t len)
{
	struct sync_op ops[ZERO_DEPTH], *s;
	char *zero = sync_alloc(len < ZERO_BYTES ? len : ZERO_BYTES);
	unsigned begun = 0, ended = 0;
	int result = zero ? 0 : -ENOMEM;

	while (ended < begun || (len && result == 0)) {
		if (len && result == 0 && begun - ended < ZERO_DEPTH) {
			s = &ops[begun++ % ZERO_DEPTH];
			*s = (struct sync_op){ .op.done = on_done,
					       .r = r,
					       .len = len < ZERO_BYTES ? len : ZERO_BYTES };
			ring_write(r, &s->op, fd, zero, s->len, off, RING_NO_REGION);
			off += s->len;
			len -= s->len;
		} else {
			s = &ops[ended++ % ZERO_DEPTH];
			wait_for(s, true);
			result = result ? result : sync_write_error(s->res, s->len, true);
		}
	}
	free(zero);
	return result;
}

int
sync_ring(struct ring **ret_ring, char *err, size_t err_len)
{
	int e = ring_new(&(struct ring_params){ .entries = RING_ENTRIES }, ret_ring);

	if (e < 0)
		snprintf(err, err_len, "cannot make a ring: %s%s", strerror(-e), ring_hint(e));
	return e;
}

void *
sync_alloc(size_t len)
{
	void *p = aligned_alloc(FMT_ALIGN, align_up(len, FMT_ALIGN));

	if (p)
		memset(p, 0, align_up(len, FMT_ALIGN));
	return p;
}
