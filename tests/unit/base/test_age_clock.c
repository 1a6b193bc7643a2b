/* SPDX-License-Identifier: Apache-2.0 */
/* base/age_clock.h: a clock that jumps ahead for a moment, or before a start, is not followed; one that stays there for an hour is. */
#include "base/age_clock.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/run_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define DAY (86400 * NS_PER_S)
#define HOUR (3600 * NS_PER_S)
#define BEGAN (1700000000 * NS_PER_S)

static uint64_t mono, wall;

static int
setup(void **state)
{
	mono = 5 * NS_PER_S;
	wall = BEGAN;
	clock_fake(&mono);
	clock_fake_wall(&wall);
	age_clock_reset();
	return 0;
}

static int
teardown(void **state)
{
	clock_fake(NULL);
	clock_fake_wall(NULL);
	run_clock_tick(0);
	age_clock_reset();
	return 0;
}

static void
pass(uint64_t ns)
{
	mono += ns;
	wall += ns;
}

static bool
holds(void)
{
	struct age_jump jump;

	return age_clock_jumped(&jump);
}

static void
test_follows(void **state)
{
	assert_int_equal(age_clock_ns(), BEGAN);
	pass(HOUR);
	assert_int_equal(age_clock_ns(), wall);
	/* Small steps ahead and any step back are followed at once. */
	wall += DAY;
	assert_int_equal(age_clock_ns(), wall);
	wall -= 500 * DAY;
	assert_int_equal(age_clock_ns(), wall);
	assert_false(holds());
	/* Back again, within the hour: that was no jump. */
	wall += 500 * DAY;
	assert_int_equal(age_clock_ns(), wall);
	assert_false(holds());
}

static void
test_moment(void **state)
{
	struct age_jump jump;
	uint64_t before;

	age_clock_ns();
	pass(10 * HOUR);
	before = wall;
	wall += 400 * DAY;
	assert_int_equal(age_clock_ns(), before);
	pass(3 * NS_PER_S);
	assert_int_equal(age_clock_ns(), before + 3 * NS_PER_S);
	assert_true(age_clock_jumped(&jump));
	assert_int_equal(jump.from_ns, before);
	assert_int_equal(jump.to_ns, before + 400 * DAY);
	assert_int_equal(jump.left_ns, HOUR - 3 * NS_PER_S);
	wall -= 400 * DAY;
	assert_false(holds());
	assert_int_equal(age_clock_ns(), wall);
}

static void
test_lasts(void **state)
{
	age_clock_ns();
	pass(HOUR);
	wall += DAY + 1;
	for (int i = 0; i < 59; i++) {
		assert_int_equal(age_clock_ns(), wall - DAY - 1);
		pass(HOUR / 60);
	}
	assert_true(holds());
	pass(HOUR / 60);
	assert_false(holds());
	assert_int_equal(age_clock_ns(), wall);
	pass(HOUR);
	assert_int_equal(age_clock_ns(), wall);
}

/* A clock that is another one every half hour is none to be followed. */
static void
test_restless(void **state)
{
	uint64_t began;

	age_clock_ns();
	began = wall - mono;
	for (int i = 0; i < 20; i++) {
		wall += i % 2 ? 5 * DAY : 10 * DAY;
		assert_int_equal(age_clock_ns(), mono + began);
		pass(HOUR / 2);
		assert_int_equal(age_clock_ns(), mono + began);
	}
	pass(HOUR / 2);
	assert_int_equal(age_clock_ns(), wall);
}

/* Many steps of less than a day within the hour are a jump. */
static void
test_steps(void **state)
{
	age_clock_ns();
	wall += 20 * HOUR;
	assert_int_equal(age_clock_ns(), wall);
	wall += 20 * HOUR;
	assert_int_equal(age_clock_ns(), wall - 40 * HOUR);
	assert_true(holds());
}

/* An hour in which the process did not run shows nothing of the clock. */
static void
test_stopped(void **state)
{
	run_clock_tick(mono);
	age_clock_ns();
	wall += 400 * DAY;
	assert_true(holds());
	pass(3 * HOUR);
	run_clock_tick(mono);
	assert_true(holds());
	for (int i = 0; i < 36000; i++) {
		pass(RUN_TICK_NS);
		run_clock_tick(mono);
	}
	assert_false(holds());
}

static void
test_start(void **state)
{
	/* The store knows a time shortly before this one, of one disk or another. */
	age_clock_known(wall - 90 * DAY);
	age_clock_known(wall - HOUR);
	age_clock_known(0);
	assert_int_equal(age_clock_ns(), wall);
	assert_false(holds());

	/* It knows none that is near. */
	age_clock_reset();
	age_clock_known(wall - 90 * DAY);
	assert_true(holds());
	assert_int_equal(age_clock_ns(), wall - 90 * DAY);
	/* A disk comes that does. */
	age_clock_known(wall - HOUR);
	assert_int_equal(age_clock_ns(), wall);
	assert_false(holds());

	/* Somebody has looked before the disks were open. */
	age_clock_reset();
	assert_int_equal(age_clock_ns(), wall);
	age_clock_known(wall - 90 * DAY);
	assert_int_equal(age_clock_ns(), wall - 90 * DAY);
	assert_true(holds());

	/* It knows only a later one, or garbage: a clock that went back needs nothing, and a jump from here on is one. */
	age_clock_reset();
	age_clock_known(wall + 90 * DAY);
	age_clock_known(UINT64_MAX);
	assert_int_equal(age_clock_ns(), wall);
	wall += 90 * DAY;
	assert_int_equal(age_clock_ns(), wall - 90 * DAY);

	/* It heals by itself. */
	age_clock_reset();
	age_clock_known(wall - 90 * DAY);
	assert_true(holds());
	pass(HOUR);
	assert_false(holds());
	assert_int_equal(age_clock_ns(), wall);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_follows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lasts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restless, setup, teardown),
		cmocka_unit_test_setup_teardown(test_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_start, setup, teardown),
	};

	log_set_level((enum log_level) - 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
