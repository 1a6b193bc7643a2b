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
	/* Takes the space and continues the operation. False: not enough space is free (a part may have
	 * been taken). */
	bool (*take)(struct space_wait *sw);
	/* Ends the wait: 0 (the space was taken), -ENOSPC, -EAGAIN (space is being freed, but not soon
	 * enough), -EROFS (the disk has failed). */
	void (*over)(struct space_wait *sw, int error);
};

/* Takes the space for sw. 0: taken; 1: sw waits, and over() follows; -ENOSPC, -EAGAIN or -EROFS: no space,
 * and over() does not run. */
int space_get(struct extent_port *p, struct space_wait *sw, bool (*take)(struct space_wait *sw),
	      void (*over)(struct space_wait *sw, int error));
/* Begins the wait of sw, whose functions are set; over() follows. */
void space_wait_on(struct extent_port *p, struct space_wait *sw);
/* Tries the waiting operations again. */
void space_retry(struct extent_port *p);

#endif
