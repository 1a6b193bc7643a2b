/* SPDX-License-Identifier: Apache-2.0 */
/* See delay.h. */
#include "chan/delay.h"

/* A core sleeps after 20 us without progress: four intervals of the default 5 us. */
#define ADAPTIVE_MAX 4

uint64_t
delay_next_ns(struct delay *d, int completions)
{
	switch (d->mode) {
	case DELAY_NONE:
		return 0;
	case DELAY_BATCH:
		return d->interval_ns;
	case DELAY_ENTRY:
		return d->interval_ns * (uint64_t)completions;
	case DELAY_ADAPTIVE:
		if (completions > 0)
			d->idle_rounds = 0;
		else if (d->idle_rounds < ADAPTIVE_MAX)
			d->idle_rounds++;
		return d->interval_ns * d->idle_rounds;
	}
	return 0;
}
