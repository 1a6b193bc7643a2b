/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles against sorted values, at the edges of buckets and by chance; threads that add at once. */
#include "base/histogram.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct histogram h;

static int
empty(void **state)
{
	memset(&h, 0, sizeof h);
	return 0;
}

static void
nothing(void **state)
{
	assert_int_equal(histogram_count(&h), 0);
	assert_int_equal(histogram_quantile(&h, .5), 0);
	assert_int_equal(histogram_quantile(&h, 1), 0);
	assert_true(histogram_mean(&h) == 0);
}

/* Below 256 every value has a bucket of its own; a quantile never exceeds the largest value. */
static void
small_values_are_exact(void **state)
{
	for (unsigned v = 0; v < 256; v++) {
		memset(&h, 0, sizeof h);
		histogram_add(&h, v);
		histogram_add(&h, 100000);
		assert_int_equal(histogram_quantile(&h, .5), v);
		assert_int_equal(histogram_quantile(&h, 1), 100000);
	}
}

/* The first and the last value of each power of two, and what lies beside them. */
static void
edges(void **state)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		for (int beside = -1; beside <= 1; beside++) {
			uint64_t v = ((uint64_t)1 << bit) + (uint64_t)(int64_t)beside, have;

			memset(&h, 0, sizeof h);
			histogram_add(&h, v);
			histogram_add(&h, UINT64_MAX);
			have = histogram_quantile(&h, .5);
			if (v >= (uint64_t)1 << HISTOGRAM_TOP_BITS) {
				assert_int_equal(have, ((uint64_t)1 << HISTOGRAM_TOP_BITS) - 1);
				continue;
			}
			assert_true(have >= v);
			assert_true((double)(have - v) <= (double)v / 128);
		}
	}
	assert_int_equal(histogram_count(&h), 2);
}

static int
by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
as_sorting_says(void **state)
{
	enum { NR = 20001 };
	static const double p[] = { 0, .001, .25, .5, .9, .99, .999, .9999, 1 };
	static uint64_t value[NR];
	const char *env = getenv("SEED");
	unsigned seed = env ? (unsigned)strtoul(env, NULL, 10) : 7;
	double sum = 0;

	print_message("SEED=%u\n", seed);
	for (int i = 0; i < NR; i++) {
		seed = seed * 1664525 + 1013904223;
		value[i] = (((uint64_t)seed << 8 | seed >> 24) >> (seed % 37));
		histogram_add(&h, value[i]);
		sum += (double)value[i];
	}
	qsort(value, NR, sizeof *value, by_value);
	for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
		size_t rank = (size_t)(p[i] * NR);

		rank += (double)rank < p[i] * NR;
		uint64_t want = value[rank ? rank - 1 : 0], have = histogram_quantile(&h, p[i]);

		assert_true(have >= want);
		assert_true((double)(have - want) <= (double)want / 128);
	}
	assert_int_equal(histogram_quantile(&h, 1), value[NR - 1]);
	assert_int_equal(histogram_count(&h), NR);
	assert_true((uint64_t)histogram_mean(&h) == (uint64_t)(sum / NR));
}

static void *
add_many(void *arg)
{
	for (uint64_t i = 0; i < 50000; i++)
		histogram_add(&h, i % 1000 + (uint64_t)(uintptr_t)arg);
	return NULL;
}

static void
threads_lose_nothing(void **state)
{
	pthread_t t[4];

	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, add_many, (void *)i), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(histogram_count(&h), 200000);
	assert_int_equal(histogram_quantile(&h, 1), 1002);
	assert_true(histogram_mean(&h) == 501);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing, empty),
		cmocka_unit_test_setup(small_values_are_exact, empty),
		cmocka_unit_test_setup(edges, empty),
		cmocka_unit_test_setup(as_sorting_says, empty),
		cmocka_unit_test_setup(threads_lose_nothing, empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
