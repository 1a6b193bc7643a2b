/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The power goes at any moment: a volatile cache in front of the files, of which each 4 KiB that was not
 * flushed survives or does not; operations complete in any order.  See crash.h.
 */
#include "tests/fake/fault_ring.h"

#include <stddef.h>

static const bool child_ends_itself = true;

static void
child_turned(bool due, uint64_t seed)
{
	if (due)
		fault_ring_cut(seed);
}

/* Every fourth time during the start: recovery is cut, too. */
static _Atomic int ios_left;
static uint64_t cut_seed;

static int
count_down(const struct fault_io *io)
{
	if (ios_left-- == 0)
		fault_ring_cut(cut_seed);
	return 0;
}

static void
child_begins(uint64_t seed)
{
	fault_ring_cache();
	cut_seed = seed;
	fault_ring_seed = seed | 1;
	ios_left = (int)(seed >> 8) % 24;
	fault_ring_hook = seed % 4 == 0 ? count_down : NULL;
}

#define CHILD_BEGINS child_begins(seed)
#include "crash.h"

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_history),
	};

	log_init(LOG_PLAIN, LOG_WARN);
	return cmocka_run_group_tests_name("store_power", tests, NULL, NULL);
}
