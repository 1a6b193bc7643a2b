/* SPDX-License-Identifier: Apache-2.0 */
/* The map of registrations: what a look-up finds is what a walk over all of them finds, whatever overlaps. */
#include "client/client_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#define REGIONS 60
#define SPACE 200

static uint64_t seed;

static unsigned
rnd(unsigned below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % below;
}

static const struct region *
walk(struct region *const *all, int nr, uintptr_t start, uintptr_t end)
{
	const struct region *found = NULL;

	for (int writable = 1; writable >= 0 && !found; writable--) {
		for (int i = 0; i < nr; i++) {
			const struct region *r = all[i];
			uintptr_t from = (uintptr_t)r->ptr;

			if (writable != !(r->flags & GANTRY_READ_ONLY) || from > start ||
			    from + r->size < end)
				continue;
			if (!found || r->size < found->size)
				found = r;
		}
	}
	return found;
}

static void
a_lookup_finds_what_a_walk_finds(void **state)
{
	const char *given = getenv("SEED");
	struct region *all[REGIONS];
	struct map m = { 0 };
	int nr = 0;

	seed = given ? strtoull(given, NULL, 10) : (uint64_t)(uintptr_t)&m;
	printf("SEED=%llu\n", (unsigned long long)seed);
	for (int step = 0; step < 20000; step++) {
		if (nr < REGIONS && (nr == 0 || rnd(20) < 10)) {
			struct region *r = calloc(1, sizeof *r);

			r->ptr = (char *)(uintptr_t)(1000 + rnd(SPACE));
			r->size = 1 + rnd(rnd(4) ? 12 : SPACE);
			r->flags = rnd(3) ? 0 : GANTRY_READ_ONLY;
			assert_int_equal(map_add(&m, r), 0);
			all[nr++] = r;
		} else if (rnd(4) == 0) {
			int i = (int)rnd((unsigned)nr);

			map_remove(&m, all[i]);
			free(all[i]);
			all[i] = all[--nr];
		}
		assert_int_equal(m.nr, nr);
		uintptr_t start = 990 + rnd(SPACE + 20), end = start + 1 + rnd(rnd(2) ? 4 : 40);
		const struct region *want = walk(all, nr, start, end), *have = map_find(&m, start, end);

		assert_int_equal(have != NULL, want != NULL);
		if (want) {
			assert_int_equal(have->size, want->size);
			assert_int_equal(have->flags, want->flags);
		}
	}
	while (nr > 0) {
		map_remove(&m, all[--nr]);
		free(all[nr]);
	}
	assert_null(map_find(&m, 1000, 1001));
	free(m.at);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lookup_finds_what_a_walk_finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
