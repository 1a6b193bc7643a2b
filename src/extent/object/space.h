/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space - operations that wait for space on the disk: data, CRC blocks, maps.
 *
 *   space_get() --> is there enough? --> over at once
 *                     ^    | no, but some is on its way, or segments are being made
 *                     |    v
 *                     '-- waits, and looks again when some has come, and every few milliseconds;
 *                         a second of that at most
 *
 * Embedded in the operation that waits; all of it on the port's thread.
 */
#ifndef GANTRY_EXTENT_OBJECT_SPACE_H
#define GANTRY_EXTENT_OBJECT_SPACE_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct extent_port;

struct space_wait {
	struct list link;
	uint64_t since_ns;
	/* Takes the space and goes on with it.  False: there is not enough (a part of it may be taken). */
	bool (*take)(struct space_wait *sw);
	/* Ends the waiting: 0 (it was taken), -ENOSPC, -EAGAIN (it takes too long to come back), -EROFS (the disk has
	 * failed). */
	void (*over)(struct space_wait *sw, int error);
};

/* Takes the space for sw.  0: it was there; 1: sw waits, and over() will run; -ENOSPC, -EAGAIN or -EROFS: there is none,
 * and over() will not run. */
int space_get(struct extent_port *p, struct space_wait *sw, bool (*take)(struct space_wait *sw),
	      void (*over)(struct space_wait *sw, int error));
/* Lets sw, whose functions are set, wait from now on; over() will run. */
void space_wait_on(struct extent_port *p, struct space_wait *sw);
/* Tries those that wait again. */
void space_retry(struct extent_port *p);

#endif
