/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of the counters of steps.h over all ports. */
#include "extent/log/vol.h"

#include <string.h>

static void
add(const struct step_times *from, struct store_times *to)
{
	for (int i = 0; i < LATENCY_NR; i++)
		to->buckets[i] += atomic_load_explicit(&from->buckets[i], memory_order_relaxed);
	to->sum_ns += atomic_load_explicit(&from->sum_ns, memory_order_relaxed);
}

void
steps_info(const struct vol *vol, struct store_times ret[UNTIL_NR])
{
	memset(ret, 0, UNTIL_NR * sizeof *ret);
	for (int i = 0; i < vol->port_steps_nr; i++) {
		add(&vol->port_steps[i].submitted, &ret[UNTIL_SUBMITTED]);
		add(&vol->port_steps[i].answered, &ret[UNTIL_ANSWERED]);
	}
	add(&vol->led, &ret[UNTIL_LED]);
	add(&vol->written, &ret[UNTIL_WRITTEN]);
	add(&vol->flushed, &ret[UNTIL_FLUSHED]);
	add(&vol->published, &ret[UNTIL_PUBLISHED]);
}
