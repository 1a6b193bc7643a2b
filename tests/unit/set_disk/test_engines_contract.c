/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine under the suite that every back end of store.h must pass, on directories, with restarts in
 * between: by itself, as the one engine of a set, and as two and three of which each key is on two.
 * SEED= repeats a run.
 */
#include "tests/unit/extent/harness.h"
#include "set/set_int.h"
#include "tests/fake/store_contract.h"

#define DISKS_MAX 3

static struct loop l;

static void
turn(struct contract *c)
{
	loop_turn(&l);
}

/* Of a set of one every operation is its engine's; of several it is an engine's, or the set's own. */
static bool
is_ours(const struct contract *c, const struct store_port *p)
{
	const struct set_port *sp = set_port(c->port);
	bool is_engine = false;

	for (int i = 0; i < sp->nr; i++)
		is_engine |= p == port_engine(sp, i);
	return is_engine || p == c->port;
}

/* The suite on a store that is there; the number of tests that failed. */
static int
run(const struct store_conf *conf, uint64_t seed, unsigned random_ops)
{
	struct contract con = { .turn = turn,
				.bufs = &l.bufs,
				.seed = seed,
				.random_ops = random_ops,
				.has_two_copies = conf->default_copies == 2 };
	char err[512] = "";
	int failed;

	if (conf->ops == &store_set_ops)
		con.is_ours = is_ours;
	if (store_start(conf, &con.store, err, sizeof err) < 0) {
		printf("%s\n", err);
		return 1;
	}
	loop_start_with(&l, con.store, 64 * MIB);
	con.port = l.p;
	failed = store_contract_run(&con);
	loop_stop(&l);
	store_stop(con.store);
	return failed;
}

static void
as_set(struct store_conf *conf)
{
	conf->disks.engine = conf->ops;
	conf->disks.engines_max = STORE_SET_MAX;
	conf->ops = &store_set_ops;
}

static int
formatted(const struct store_conf *conf)
{
	char err[512] = "";

	if (store_format(conf, false, err, sizeof err) == 0)
		return 0;
	printf("%s\n", err);
	return 1;
}

static int
run_one_disk(uint64_t seed)
{
	struct store_disk_conf dc;
	struct store_conf conf;
	char dir[128];
	int failed;

	dir_make(dir);
	conf = conf_for(&dc, dir, 128 * MIB);
	failed = formatted(&conf);
	for (int i = 0; i < 3 && !failed; i++) {
		if (i == 2)
			as_set(&conf);
		failed += run(&conf, seed + (uint64_t)i, 0);
	}
	dir_remove(dir);
	return failed;
}

static int
run_two_copies(int disks, uint64_t seed)
{
	struct store_disk_conf dc[DISKS_MAX];
	struct store_conf conf;
	char dir[DISKS_MAX][128];
	int failed;

	printf("two copies on %d disks\n", disks);
	for (int i = 0; i < disks; i++) {
		dir_make(dir[i]);
		conf = conf_for(&dc[i], dir[i], 128 * MIB);
	}
	conf.disks.disk = dc;
	conf.disks.nr = disks;
	conf.default_copies = 2;
	as_set(&conf);
	failed = formatted(&conf);
	if (!failed)
		failed = run(&conf, seed, 100);
	for (int i = 0; i < disks; i++)
		dir_remove(dir[i]);
	return failed;
}

int
main(void)
{
	uint64_t seed;
	int failed;

	log_init(LOG_PLAIN, LOG_WARN);
	seed = seed_from_env();
	failed = run_one_disk(seed);
	for (int disks = 2; disks <= DISKS_MAX; disks++)
		failed += run_two_copies(disks, seed);
	return failed != 0;
}
