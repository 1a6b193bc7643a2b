/* SPDX-License-Identifier: Apache-2.0 */
/* The delay modes of protocol.md 5: item 108. */
#include "chan/delay.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

/* item 108 */
static void
modes(void **state)
{
	struct delay d = { .mode = DELAY_NONE, .interval_ns = 5000 };

	assert_int_equal(delay_next_ns(&d, 0), 0);
	assert_int_equal(delay_next_ns(&d, 9), 0);
	d.mode = DELAY_BATCH;
	assert_int_equal(delay_next_ns(&d, 0), 5000);
	assert_int_equal(delay_next_ns(&d, 9), 5000);
	d.mode = DELAY_ENTRY;
	assert_int_equal(delay_next_ns(&d, 0), 0);
	assert_int_equal(delay_next_ns(&d, 1), 5000);
	assert_int_equal(delay_next_ns(&d, 3), 15000);
}

static void
adaptive_grows_and_is_bounded(void **state)
{
	struct delay d = { .mode = DELAY_ADAPTIVE, .interval_ns = 5000 };
	uint64_t last = 0;

	assert_int_equal(delay_next_ns(&d, 1), 0);
	for (int i = 0; i < 100; i++) {
		uint64_t now = delay_next_ns(&d, 0);

		assert_true(now >= last);
		assert_true(now <= 20000);
		last = now;
	}
	assert_int_equal(last, 20000);
	assert_int_equal(delay_next_ns(&d, 2), 0);
	assert_int_equal(delay_next_ns(&d, 0), 5000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes),
		cmocka_unit_test(adaptive_grows_and_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
