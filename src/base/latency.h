/* SPDX-License-Identifier: Apache-2.0 */
/* The buckets of all histograms of durations in metrics. All these histograms have the same buckets, so
 * that they can be compared. Pure. */
#ifndef GANTRY_BASE_LATENCY_H
#define GANTRY_BASE_LATENCY_H

#include <stdatomic.h>
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

/* Counted durations. Any thread may count and read. */
struct latency_counts {
	_Atomic uint64_t buckets[LATENCY_NR], sum_ns;
};

static inline void
latency_count(struct latency_counts *l, uint64_t ns)
{
	atomic_fetch_add_explicit(&l->buckets[latency_bucket(ns)], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->sum_ns, ns, memory_order_relaxed);
}

static inline void
latency_read(const struct latency_counts *l, uint64_t ret_buckets[LATENCY_NR], uint64_t *ret_sum_ns)
{
	for (int i = 0; i < LATENCY_NR; i++)
		ret_buckets[i] = atomic_load_explicit(&l->buckets[i], memory_order_relaxed);
	*ret_sum_ns = atomic_load_explicit(&l->sum_ns, memory_order_relaxed);
}

#endif
