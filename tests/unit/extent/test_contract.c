/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine under the suite that every back end of store.h must pass, on a directory; twice, with a restart
 * in between. SEED= repeats a run.
 */
#include "harness.h"
#include "tests/fake/store_contract.h"

static struct loop l;

static void
turn(struct contract *c)
{
	loop_turn(&l);
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
	for (int i = 0; i < 2; i++, con.seed++) {
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
