/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine under the suite that every back end of store.h must pass, on a directory, with restarts in
 * between: twice by itself, and as the one engine of a set.  SEED= repeats a run.
 */
#include "harness.h"
#include "store/set_int.h"
#include "tests/fake/store_contract.h"

static struct loop l;

static void
turn(struct contract *c)
{
	loop_turn(&l);
}

/* Of a set of one every operation is its engine's. */
static bool
is_ours(const struct contract *c, const struct store_port *p)
{
	return p == c->port || p == set_port(c->port)->engine[0];
}

int
main(void)
{
	struct store_disk_conf dc;
	struct store_conf conf;
	struct contract con = { .turn = turn, .bufs = &l.bufs };
	char dir[128], err[512] = "";
	int failed = 0;

	log_init(LOG_PLAIN, LOG_WARN);
	con.seed = seed_from_env();
	dir_make(dir);
	conf = conf_for(&dc, dir, 256 * MIB);
	if (store_format(&conf, false, err, sizeof err) < 0) {
		printf("%s\n", err);
		return 1;
	}
	for (int i = 0; i < 3; i++, con.seed++) {
		if (i == 2) {
			conf.disks.engine = conf.ops;
			conf.disks.engines_max = 1;
			conf.ops = &store_set_ops;
			con.is_ours = is_ours;
		}
		if (store_start(&conf, &con.store, err, sizeof err) < 0) {
			printf("%s\n", err);
			return 1;
		}
		loop_start_with(&l, con.store, 64 * MIB);
		con.port = l.p;
		failed += store_contract_run(&con);
		loop_stop(&l);
		store_stop(con.store);
	}
	dir_remove(dir);
	return failed != 0;
}
