/* SPDX-License-Identifier: Apache-2.0 */
/* See histogram.h. */
#include "base/histogram.h"

#define SUB (1u << HISTOGRAM_SUB_BITS)
#define LARGEST (((uint64_t)1 << HISTOGRAM_TOP_BITS) - 1)

/* Values below SUB have a bucket each; from there on row r holds [SUB << r, 2 * SUB << r), in SUB steps. */
static unsigned
bucket(uint64_t value)
{
	unsigned row;

	if (value < SUB)
		return (unsigned)value;
	row = 63 - (unsigned)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
	return ((row + 1) << HISTOGRAM_SUB_BITS) + (unsigned)(value >> row) - SUB;
}

/* The largest value of a bucket. */
static uint64_t
bucket_end(unsigned i)
{
	unsigned row;

	if (i < SUB)
		return i;
	row = (i >> HISTOGRAM_SUB_BITS) - 1;
	return ((uint64_t)(SUB + i % SUB + 1) << row) - 1;
}

void
histogram_add(struct histogram *h, uint64_t value)
{
	uint64_t max = atomic_load_explicit(&h->max, memory_order_relaxed);

	if (value > LARGEST)
		value = LARGEST;
	while (value > max && !atomic_compare_exchange_weak_explicit(
				      &h->max, &max, value, memory_order_relaxed, memory_order_relaxed))
		;
	atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
	atomic_fetch_add_explicit(&h->count[bucket(value)], 1, memory_order_relaxed);
}

uint64_t
histogram_count(const struct histogram *h)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < HISTOGRAM_NR; i++)
		n += atomic_load_explicit(&h->count[i], memory_order_relaxed);
	return n;
}

uint64_t
histogram_quantile(const struct histogram *h, double p)
{
	uint64_t all = histogram_count(h), seen = 0,
		 max = atomic_load_explicit(&h->max, memory_order_relaxed);
	double wanted = p * (double)all;

	for (unsigned i = 0; i < HISTOGRAM_NR && all; i++) {
		uint64_t n = atomic_load_explicit(&h->count[i], memory_order_relaxed);

		seen += n;
		if (n && (double)seen >= wanted)
			return bucket_end(i) < max ? bucket_end(i) : max;
	}
	return max;
}

void
histogram_clear(struct histogram *h)
{
	atomic_store(&h->max, 0);
	atomic_store(&h->sum, 0);
	for (unsigned i = 0; i < HISTOGRAM_NR; i++)
		atomic_store_explicit(&h->count[i], 0, memory_order_relaxed);
}

double
histogram_mean(const struct histogram *h)
{
	uint64_t n = histogram_count(h);

	return n ? (double)atomic_load_explicit(&h->sum, memory_order_relaxed) / (double)n : 0;
}
