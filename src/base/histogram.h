/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts values in buckets that are as narrow for small ones as for large ones, in bounded memory: quantiles of
 * latencies, however many there are.  Between two powers of two there are 128 buckets of one width, so what a
 * quantile says is too large by less than 1/128 (0.8 %), and by nothing below 256.
 *
 * The buckets of base/latency.h are for metrics, few and everywhere alike; they tell no p99.9.
 *
 * Any number of threads may add; who asks sees what was added before.  Zeroed memory is an empty one.
 */
#ifndef GANTRY_BASE_HISTOGRAM_H
#define GANTRY_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_SUB_BITS 7
#define HISTOGRAM_TOP_BITS 42 /* what is larger counts as 2^42 - 1: 73 minutes in ns */
#define HISTOGRAM_NR ((HISTOGRAM_TOP_BITS - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

struct histogram {
	_Atomic uint64_t max, sum;
	_Atomic uint64_t count[HISTOGRAM_NR];
};

void histogram_add(struct histogram *h, uint64_t value);
uint64_t histogram_count(const struct histogram *h);
/* Returns a value that p (0 to 1) of what was added does not exceed: the end of its bucket, or the largest
 * value.  0 when nothing was added. */
uint64_t histogram_quantile(const struct histogram *h, double p);
/* Returns the mean; 0 when nothing was added. */
double histogram_mean(const struct histogram *h);

#endif
