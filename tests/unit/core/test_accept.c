/* SPDX-License-Identifier: Apache-2.0 */
/* Spreading where it is not all smooth: a core that does not turn, many who come and go. */
#include "rig.h"

#include "tests/fake/hook_clock.h"

#define MANY 64

static void
open_many(struct cores *cs, int *fd, int nr)
{
	for (int i = 0; i < nr; i++)
		fd[i] = call(cs, 0);
}

/* Until one connection is core 1's: it serves.  How many there are in all. */
static int
reach_second(struct cores *cs, int first[], int max)
{
	int nr = 0;

	do {
		if (nr == max)
			close(first[--nr]);
		wait_for(all_connections(cs) == nr);
		first[nr] = call(cs, 0);
		nr++;
		wait_for(all_connections(cs) == nr);
	} while (connections(cs, 1) == 0);
	return nr;
}

/* Sockets on their way to a core count as its own: one that does not turn for a while is not given all of a
 * crowd. */
static void
test_crowd(void **state)
{
	int fd[MANY], first[4], nr;
	struct cores *cs;

	make_conf(2, 1);
	cs = start();
	/* Core 0 accepts; core 1 is kept busy. */
	nr = reach_second(cs, first, 4);
	assert_int_equal(connections(cs, 1), 1);
	put_text(first[nr - 1], GET("/block/1000"));
	wait_for(fake_req_counts.begun == 1);
	open_many(cs, fd, MANY);
	/* All of them are given out before core 1 turns again. */
	hook_clock_skip(NS_PER_S);
	wait_for(all_connections(cs) == nr + MANY);
	print_message("%d + %d\n", connections(cs, 0), connections(cs, 1));
	assert_in_range(connections(cs, 0), MANY / 4, MANY / 4 * 3);
	expect_ok(first[nr - 1]);
	while (nr)
		close(first[--nr]);
	for (int i = 0; i < MANY; i++)
		close(fd[i]);
	finish(cs, NS_PER_S);
}

/* And no longer than until they are there: cores that many came to are as good as before when those are
 * gone. */
static void
test_crowds(void **state)
{
	int fd[MANY], first[4], nr;
	struct cores *cs;

	make_conf(2, 1);
	cs = start();
	nr = reach_second(cs, first, 4);
	while (nr)
		close(first[--nr]);
	wait_for(all_connections(cs) == 0);
	for (int round = 0; round < 5; round++) {
		open_many(cs, fd, MANY);
		wait_for(all_connections(cs) == MANY);
		print_message("%d + %d\n", connections(cs, 0), connections(cs, 1));
		assert_in_range(connections(cs, 0), MANY / 4, MANY / 4 * 3);
		for (int i = 0; i < MANY; i++)
			close(fd[i]);
		wait_for(all_connections(cs) == 0);
	}
	finish(cs, NS_PER_S);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_crowds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
