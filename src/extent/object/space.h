/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space - waits of operations for space on the disk, for data, CRC blocks and maps.
 *
 * space_get() takes the space if enough is free. Otherwise, if space is being freed or segments are being
 * made, the operation waits: it tries again whenever space was freed, and every few milliseconds, for a
 * second at most.
 *
 * Embedded in the operation that waits; all functions are called on the port's thread.
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
	/* Tries to take the space, and continues the operation. Returns false if not enough space is free;
	 * some of the space may have been taken. */
	bool (*take)(struct space_wait *sw);
	/* Ends the wait. error: 0 (the space was taken), -ENOSPC, -EAGAIN (space is being freed, but not soon
	 * enough) or -EROFS (the disk has failed). */
	void (*over)(struct space_wait *sw, int error);
};

/* Takes the space for sw. Returns 0 if it was taken; 1 if sw waits, and over() follows; or -ENOSPC, -EAGAIN
 * or -EROFS if there is no space, and over() does not follow. */
int space_get(struct extent_port *p, struct space_wait *sw, bool (*take)(struct space_wait *sw),
	      void (*over)(struct space_wait *sw, int error));
/* Queues sw until space is free. The caller has set sw->take and sw->over. The wait ends with over(). */
void space_wait_on(struct extent_port *p, struct space_wait *sw);
/* Tries again to take space for the waiting operations. */
void space_retry(struct extent_port *p);

#endif
