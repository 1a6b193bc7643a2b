/* SPDX-License-Identifier: Apache-2.0 */
/* What a ring that stands for disks alone does not do.  Included once, by the file that is that ring. */
#ifndef GANTRY_TESTS_DISK_RING_H
#define GANTRY_TESTS_DISK_RING_H

#include "base/check.h"
#include "ring/ring.h"

void
ring_poll(struct ring *r, struct ring_op *op, int fd, unsigned events, bool multishot)
{
	check(!"not for the store");
}

void
ring_accept(struct ring *r, struct ring_op *op, int listen_fd)
{
	check(!"not for the store");
}

void
ring_cancel(struct ring *r, struct ring_op *op)
{
	check(!"not for the store");
}

#endif
