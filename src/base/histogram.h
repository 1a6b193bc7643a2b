/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram in bounded memory, for quantiles of latencies. Between two powers of two there are 128 buckets
 * of equal width, so a quantile is too large by less than 1/128 (0.8 %), and exact below 256. (The buckets of
 * base/latency.h, few and equal for all metrics, are too wide for a p99.9.) Any number of threads may add
 * values, while another thread reads. Zeroed memory is an empty histogram. */
#ifndef GANTRY_BASE_HISTOGRAM_H
#define GANTRY_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_SUB_BITS 7
/* number of bits of the largest value; a larger value counts as 2^42 - 1 (73 minutes in ns) */
#define HISTOGRAM_TOP_BITS 42
#define HISTOGRAM_NR ((HISTOGRAM_TOP_BITS - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

struct histogram {
	_Atomic uint64_t max, sum;
	_Atomic uint64_t count[HISTOGRAM_NR];
};

void histogram_add(struct histogram *h, uint64_t value);
uint64_t histogram_count(const struct histogram *h);
/* Returns the p-quantile (p from 0 to 1): the upper end of the first bucket up to which the share p of all
 * values lies, or the largest value if that is smaller. Returns 0 if no value was added. */
uint64_t histogram_quantile(const struct histogram *h, double p);
/* Removes all values. A value that another thread adds meanwhile may be lost. */
void histogram_clear(struct histogram *h);
/* Returns the mean of the values; 0 if no value was added. */
double histogram_mean(const struct histogram *h);

#endif
