/* SPDX-License-Identifier: Apache-2.0 */
/* Killed at any moment (SIGKILL from outside): see crash.h.
 * The moment of the kill is not repeated by SEED=. */
#include <stdbool.h>
#include <stdint.h>

static const bool child_ends_itself = false;

static void
child_turned(bool due, uint64_t seed)
{
}

#include "crash.h"

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_history),
	};

	log_init(LOG_PLAIN, LOG_WARN);
	return cmocka_run_group_tests_name("store_crash", tests, NULL, NULL);
}
