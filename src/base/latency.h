/* SPDX-License-Identifier: Apache-2.0 */
/* The buckets of all histograms of durations in metrics. All these histograms have the same buckets, so
 * that they can be compared. Pure. */
#ifndef GANTRY_BASE_LATENCY_H
#define GANTRY_BASE_LATENCY_H

#include <stdint.h>

#define LATENCY_NR 18 /* number of buckets; the last bucket has no upper bound */

/* upper bounds of the buckets in ns, inclusive; UINT64_MAX for the last bucket */
extern const uint64_t latency_bound_ns[LATENCY_NR];
/* upper bounds in seconds as text; "+Inf" for the last bucket */
extern const char *const latency_bound_text[LATENCY_NR];

static inline int
latency_bucket(uint64_t ns)
{
	int i = 0;

	while (ns > latency_bound_ns[i])
		i++;
	return i;
}

#endif
