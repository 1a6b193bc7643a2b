/* SPDX-License-Identifier: Apache-2.0 */
/* The fair queue against a plain model: random pushes, pops, yields and removals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 60, CLIENTS = 5, STEPS = 200000 };

struct item {
	struct list link;
	unsigned client;
	int arrived; /* < 0: does not wait */
};

static struct item items[N];
static unsigned turns[CLIENTS]; /* the model: clients that wait, whose turn it is first */
static int turn_nr;
static const unsigned number[CLIENTS] = { 0, 3, 77, 254, FAIR_CLIENTS - 1 };

static struct item *
oldest_of(unsigned client)
{
	struct item *best = NULL;

	for (int i = 0; i < N; i++) {
		struct item *it = &items[i];

		if (it->client == client && it->arrived >= 0 && (!best || it->arrived < best->arrived))
			best = it;
	}
	return best;
}

static void
turn_ends(int at, bool again)
{
	unsigned c = turns[at];

	memmove(&turns[at], &turns[at + 1], sizeof turns[0] * (size_t)(--turn_nr - at));
	if (again)
		turns[turn_nr++] = c;
}

static void
leave(struct item *it)
{
	it->arrived = -1;
	for (int i = 0; i < turn_nr; i++) {
		if (turns[i] == it->client && !oldest_of(it->client))
			turn_ends(i, false);
	}
}

static void
test_model(void **state)
{
	const char *env = getenv("SEED");
	unsigned seed = env ? (unsigned)strtoul(env, NULL, 0) : (unsigned)time(NULL);
	static struct fair f;

	printf("SEED=%u\n", seed);
	fair_init(&f);
	for (int i = 0; i < N; i++) {
		items[i].arrived = -1;
		items[i].client = number[rand_r(&seed) % CLIENTS];
		list_init(&items[i].link);
	}
	for (int s = 0; s < STEPS; s++) {
		struct item *it = &items[rand_r(&seed) % N], *want;

		assert_true(fair_empty(&f) == (turn_nr == 0));
		if (it->arrived < 0 && rand_r(&seed) % 3) {
			if (!oldest_of(it->client))
				turns[turn_nr++] = it->client;
			it->arrived = s;
			fair_push(&f, it->client, &it->link);
		} else if (it->arrived >= 0 && rand_r(&seed) % 4 == 0) {
			fair_del(&f, it->client, &it->link);
			leave(it);
		} else if (turn_nr && rand_r(&seed) % 8 == 0) {
			fair_yield(&f, fair_first(&f));
			turn_ends(0, true);
		} else {
			struct list *l = fair_pop(&f);

			want = turn_nr ? oldest_of(turns[0]) : NULL;
			assert_ptr_equal(l ? container_of(l, struct item, link) : NULL, want);
			if (!want)
				continue;
			turn_ends(0, true);
			leave(want);
			assert_false(list_linked(&want->link));
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_model) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
