/* SPDX-License-Identifier: Apache-2.0 */
/* Timers against a plain array: arming, re-arming, disarming in any order, also from a timer that runs. SEED=
 * repeats a run. */
#include "base/timer.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <setjmp.h>
#include <cmocka.h>

#define NR 200

static uint64_t seed;
static struct timers ts;
static uint64_t now;

struct thing {
	struct timer timer;
	bool armed; /* the model's idea */
	uint64_t at_ns;
	int ran;
};
static struct thing things[NR];

static uint64_t
rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void
on_time(struct timer *t)
{
	struct thing *th = (struct thing *)t;

	assert_true(th->armed);
	assert_false(t->armed);
	assert_true(th->at_ns <= now);
	/* the earliest of all */
	for (int i = 0; i < NR; i++)
		assert_false(things[i].armed && things[i].at_ns < th->at_ns);
	th->armed = false;
	th->ran++;
	if (rnd() % 3 == 0) { /* again, later */
		th->armed = true;
		th->at_ns = now + 1 + rnd() % 100;
		timer_arm(&ts, t, th->at_ns, on_time);
	}
	if (rnd() % 3 == 0) { /* another one never runs */
		struct thing *other = &things[rnd() % NR];

		timer_disarm(&ts, &other->timer);
		other->armed = false;
	}
}

static void
test_model(void **state)
{
	int armed = 0;

	for (int n = 0; n < 30000; n++) {
		struct thing *th = &things[rnd() % NR];
		uint64_t next = UINT64_MAX;

		switch (rnd() % 8) {
		case 0:
			timer_disarm(&ts, &th->timer);
			th->armed = false;
			break;
		case 1:
			now += rnd() % 50;
			timers_run(&ts, now);
			for (int i = 0; i < NR; i++)
				assert_false(things[i].armed && things[i].at_ns <= now);
			break;
		default:
			th->armed = true;
			th->at_ns = now + rnd() % 300;
			timer_arm(&ts, &th->timer, th->at_ns, on_time);
		}
		for (int i = 0; i < NR; i++) {
			assert_int_equal(things[i].timer.armed, things[i].armed);
			if (things[i].armed && things[i].at_ns < next)
				next = things[i].at_ns;
		}
		assert_true(timers_next(&ts) == next);
	}
	now = UINT64_MAX - 1000;
	for (int i = 0; i < NR; i++)
		armed += things[i].armed;
	assert_true(armed > 0);
	timers_run(&ts, now);
	for (int i = 0; i < NR; i++)
		timer_disarm(&ts, &things[i].timer);
	assert_true(timers_next(&ts) == UINT64_MAX);
	assert_int_equal(timers_run(&ts, UINT64_MAX), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_model) };
	const char *s = getenv("SEED");

	seed = s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);
	seed = seed ? seed : 1;
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
