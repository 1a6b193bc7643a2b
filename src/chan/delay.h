/* SPDX-License-Identifier: Apache-2.0 */
/* The delay modes of protocol.md 5 (item 108): the pause of a core between two polls of its completion
 * queues. Pure. */
#ifndef GANTRY_CHAN_DELAY_H
#define GANTRY_CHAN_DELAY_H

#include "conf/rdma.h"

#include <stdint.h>

struct delay {
	enum conf_delay_mode mode;
	uint64_t interval_ns;
	unsigned idle_rounds; /* adaptive: number of polls since the last completion */
};

/* Returns the pause before the next poll, in ns; 0: poll immediately. completions: number of completions that
 * the last poll found. */
uint64_t delay_next_ns(struct delay *d, int completions);

#endif
