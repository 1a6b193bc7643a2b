/* SPDX-License-Identifier: Apache-2.0 */
/* The buckets of all duration histograms, the same everywhere, so that histograms can be compared. Pure. */
#ifndef GANTRY_BASE_LATENCY_H
#define GANTRY_BASE_LATENCY_H

#include <stdint.h>

#define LATENCY_NR 18 /* the last one has no bound */

extern const uint64_t latency_bound_ns[LATENCY_NR];      /* inclusive; UINT64_MAX for the last */
extern const char *const latency_bound_text[LATENCY_NR]; /* in seconds; "+Inf" */

static inline int
latency_bucket(uint64_t ns)
{
	int i = 0;

	while (ns > latency_bound_ns[i])
		i++;
	return i;
}

#endif
