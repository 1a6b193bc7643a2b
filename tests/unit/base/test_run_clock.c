/* SPDX-License-Identifier: Apache-2.0 */
/* base/run_clock.h: time in which nobody looked at the clock does not count, and after a pause the full time is there again. */
#include "base/run_clock.h"

#include "base/clock.h"
#include "tests/fake/wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t now_ns;

static int
setup(void **state)
{
	now_ns = 1000 * NS_PER_S;
	run_clock_tick(now_ns);
	return 0;
}

static int
teardown(void **state)
{
	run_clock_tick(0);
	clock_fake(NULL);
	return 0;
}

static void
tick(uint64_t ns)
{
	now_ns += ns;
	run_clock_tick(now_ns);
}

/* Without a thread and without ticks there is the clock of the machine. */
static void
test_none(void **state)
{
	uint64_t t = 5 * NS_PER_S;

	run_clock_tick(0);
	clock_fake(&t);
	assert_int_equal(run_ns(), t);
	t += NS_PER_S;
	assert_int_equal(run_since_ns(5 * NS_PER_S), NS_PER_S);
	assert_int_equal(run_since_ns(9 * NS_PER_S), 0);
}

static void
test_runs(void **state)
{
	uint64_t since = run_ns();

	assert_int_equal(since, now_ns);
	for (int i = 0; i < 100; i++)
		tick(RUN_TICK_NS);
	assert_int_equal(run_since_ns(since), 10 * NS_PER_S);
	/* A tick that comes somewhat late counts whole. */
	tick(2 * RUN_TICK_NS);
	assert_int_equal(run_since_ns(since), 10 * NS_PER_S + 2 * RUN_TICK_NS);
	assert_int_equal(run_ns() - since, 10 * NS_PER_S + 2 * RUN_TICK_NS);
	assert_int_equal(run_since_ns(run_ns() + 1), 0);
}

/* A machine without time for us: slower, and it does not stand still. */
static void
test_slow(void **state)
{
	uint64_t since = run_ns();

	for (int i = 0; i < 50; i++)
		tick(RUN_PAUSE_NS);
	assert_int_equal(run_since_ns(since), 50 * RUN_TICK_NS);
}

static void
test_pause(void **state)
{
	uint64_t since = run_ns();

	for (int i = 0; i < 29; i++)
		tick(RUN_TICK_NS);
	/* An hour counts as one tick, and the limits begin again. */
	tick(3600 * NS_PER_S);
	assert_int_equal(run_ns() - since, 3 * NS_PER_S);
	assert_int_equal(run_since_ns(since), 0);
	tick(RUN_TICK_NS);
	assert_int_equal(run_since_ns(since), RUN_TICK_NS);
	/* What began after it counts from its beginning. */
	since = run_ns();
	tick(RUN_TICK_NS);
	assert_int_equal(run_since_ns(since), RUN_TICK_NS);
	/* Many short stops add up to nothing. */
	for (int i = 0; i < 9; i++)
		tick(900 * NS_PER_MS);
	assert_int_equal(run_since_ns(since), NS_PER_S);
}

static void
test_thread(void **state)
{
	uint64_t since;

	run_clock_tick(0);
	assert_int_equal(run_clock_start(), 0);
	since = run_ns();
	wait_until(run_ns() - since >= 2 * RUN_TICK_NS)
		;
	assert_true(run_ns() <= clock_ns());
	run_clock_stop();
	run_clock_stop();
	assert_true(run_ns() + NS_PER_S > clock_ns());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thread, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
