/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of one, two and three engines in memory under the suite that every back end must pass, with
 * completions at once, late, and in between.  SEED= repeats a run.
 */
#include "set_rig.h"
#include "tests/fake/store_contract.h"

static struct loop l;

static void
turn(struct contract *c)
{
	loop_turn(&l);
}

/* Its own, or an engine's: who has a key does what concerns it. */
static bool
is_ours(const struct contract *c, const struct store_port *p)
{
	const struct set_port *sp = set_port(c->port);
	bool is_engine = false;

	for (int i = 0; i < sp->nr; i++)
		is_engine |= p == port_engine(sp, i);
	return is_engine || p == c->port;
}

int
main(void)
{
	static const struct mem_store_tuning tunings[] = {
		{ .open_at_once = 100, .stat_at_once = 100, .other_at_once = 100 },
		{ .open_at_once = 50, .stat_at_once = 50, .other_at_once = 30, .delay_max_us = 50 },
		{ .open_at_once = 0, .other_at_once = 0, .delay_max_us = 100 },
	};
	struct contract con = { .turn = turn, .is_ours = is_ours };
	struct bufpool bufs;
	int failed = 0;

	con.seed = seed_from_env();
	con.bufs = &bufs;
	if (bufpool_init(&bufs, 64 << 20) < 0)
		return 1;
	for (int engines = 1; engines <= ENGINES_MAX; engines++) {
		for (unsigned i = 0; i < sizeof tunings / sizeof *tunings; i++) {
			struct mem_store_tuning t = tunings[i];

			/* Each way with the most engines; with fewer, the one that has something of all. */
			if (engines < ENGINES_MAX && i != 1)
				continue;
			t.seed = con.seed + i;
			printf("a set of %d\n", engines);
			set_begin(engines, 1, &t);
			loop_begin(&l);
			con.store = st;
			con.port = l.port;
			failed += store_contract_run(&con);
			loop_end(&l);
			set_end();
		}
	}
	bufpool_fini(&bufs);
	return failed != 0;
}
