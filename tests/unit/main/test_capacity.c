/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate when a store will be full: no estimate without an hour of history, none without growth, the rate of at most a day. */
#include "main/capacity.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#define GIB (1ull << 30)
#define HOUR_NS (3600 * NS_PER_S)

static struct capacity c;
static struct capacity_view v;

/* Adds a sample a minute, as a daemon does that looks often: growth is in bytes a minute. */
static uint64_t
run(uint64_t from_ns, uint64_t minutes, uint64_t size, uint64_t *used, int64_t growth)
{
	for (uint64_t i = 0; i < minutes; i++) {
		capacity_add(&c, from_ns + i * 60 * NS_PER_S, size, *used);
		*used = (uint64_t)((int64_t)*used + growth);
	}
	return from_ns + minutes * 60 * NS_PER_S;
}

static void
test_young(void **state)
{
	uint64_t used = GIB, at;

	c = (struct capacity){ .nr = 0 };
	capacity_view(&c, 99 * GIB, &v);
	assert_int_equal(v.outlook, CAPACITY_YOUNG);
	at = run(HOUR_NS, 60, 100 * GIB, &used, 1 << 20);
	capacity_view(&c, 99 * GIB, &v);
	assert_int_equal(v.outlook, CAPACITY_YOUNG);
	assert_int_equal(v.history_s, 55 * 60);
	assert_int_equal(v.bytes_per_day, 0);
	run(at, 1, 100 * GIB, &used, 0);
	capacity_view(&c, 99 * GIB, &v);
	assert_int_equal(v.outlook, CAPACITY_FILLS);
	assert_int_equal(v.history_s, 3600);
}

static void
test_fills(void **state)
{
	uint64_t used = GIB;

	/* A GiB in 24 minutes is 60 a day, and 120 are left for two days. */
	c = (struct capacity){ .nr = 0 };
	run(0, 121, 200 * GIB, &used, (int64_t)(GIB / 24));
	capacity_view(&c, 120 * GIB, &v);
	assert_int_equal(v.outlook, CAPACITY_FILLS);
	assert_in_range(v.full_s, 2 * 86400 - 5, 2 * 86400 + 5);
	assert_in_range((uint64_t)v.bytes_per_day, 60 * GIB - 100000, 60 * GIB + 100000);
	capacity_view(&c, 0, &v);
	assert_int_equal(v.outlook, CAPACITY_FILLS);
	assert_int_equal(v.full_s, 0);
}

static void
test_steady(void **state)
{
	uint64_t used = 50 * GIB;

	c = (struct capacity){ .nr = 0 };
	run(0, 121, 100 * GIB, &used, 0);
	capacity_view(&c, 50 * GIB, &v);
	assert_int_equal(v.outlook, CAPACITY_STEADY);
	/* Less is used than before. */
	c = (struct capacity){ .nr = 0 };
	run(0, 121, 100 * GIB, &used, -(1 << 20));
	capacity_view(&c, 50 * GIB, &v);
	assert_int_equal(v.outlook, CAPACITY_STEADY);
	assert_true(v.bytes_per_day < 0);
	/* A byte a minute fills nothing in ten years. */
	c = (struct capacity){ .nr = 0 };
	run(0, 121, 100 * GIB, &used, 1);
	capacity_view(&c, 50 * GIB, &v);
	assert_int_equal(v.outlook, CAPACITY_STEADY);
}

/* The rate is that of the last day: what was before counts no longer. */
static void
test_day(void **state)
{
	uint64_t used = GIB, at;

	c = (struct capacity){ .nr = 0 };
	at = run(0, 1440, 500 * GIB, &used, (int64_t)(GIB / 24));
	run(at, 1441, 500 * GIB, &used, 0);
	capacity_view(&c, 100 * GIB, &v);
	assert_int_equal(v.outlook, CAPACITY_STEADY);
	assert_in_range(v.history_s, 23 * 3600, 86400);
}

/* A disk that was added changes size and usage at once: no growth. */
static void
test_size(void **state)
{
	uint64_t used = GIB, at;

	c = (struct capacity){ .nr = 0 };
	at = run(0, 121, 100 * GIB, &used, 1 << 20);
	used += 5 * GIB;
	at = run(at, 30, 200 * GIB, &used, 1 << 20);
	capacity_view(&c, 100 * GIB, &v);
	assert_int_equal(v.outlook, CAPACITY_YOUNG);
	run(at, 61, 200 * GIB, &used, 1 << 20);
	capacity_view(&c, 100 * GIB, &v);
	assert_int_equal(v.outlook, CAPACITY_FILLS);
	assert_in_range((uint64_t)v.bytes_per_day, (1440ull << 20) - 1000, (1440ull << 20) + 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_young), cmocka_unit_test(test_fills), cmocka_unit_test(test_steady),
		cmocka_unit_test(test_day),   cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
