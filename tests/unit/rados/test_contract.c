/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on RADOS under the suite that every back end must pass, on a cluster in memory (tests/fake/librados.h): without faults,
 * and with lost replies, conflicts of gateways, raised generations and short pages. tests/rados/test_contract.c is the same on a
 * cluster. SEED= repeats a run.
 */
#include "base/buf.h"
#include "tests/fake/librados.h"
#include "tests/fake/store_contract.h"
#include "tests/fake/store_loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct loop l;
static struct contract con;
static struct bufpool bufs;
static unsigned idle;

static void
turn(struct contract *c)
{
	/* gantryd runs the helpers every two seconds. */
	if (!fake_rados_turn(&l.mb) || ++idle % 256 == 0)
		fake_rados_turn_helpers();
	store_turn(c->port, TURN_QUIESCENT);
}

static int
run(const struct fake_rados_tuning *tuning, uint32_t object_mib)
{
	struct store_conf conf = fake_rados_conf("contract", 4);
	char err[256] = "";
	int failed = 1;

	conf.rados.object_bytes = object_mib << 20;
	fake_rados_reset(tuning);
	if (store_format(&conf, false, err, sizeof err) < 0 ||
	    store_format(&conf, false, err, sizeof err) != -EALREADY ||
	    store_start(&conf, &con.store, err, sizeof err) < 0) {
		fprintf(stderr, "start: %s\n", err);
		return 1;
	}
	if (store_attach(con.store, NULL, &l.mb, NULL, &con.port) == 0) {
		failed = store_contract_run(&con);
		while (!store_detach(con.port))
			turn(&con);
	}
	store_stop(con.store);
	printf("%llu faults, %u objects are left\n", (unsigned long long)fake_rados_faults(),
	       fake_rados_objects());
	return failed;
}

int
main(void)
{
	static const struct fake_rados_tuning tunings[] = {
		{ .seed = 0 },
		{ .conflict = 10, .twice = 10, .raise = 20, .page_max = 7 },
	};
	const char *s = getenv("SEED");
	int failed = 0;

	con.seed = s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);
	con.seed += !con.seed;
	con.turn = turn;
	con.bufs = &bufs;
	con.random_ops = 400;
	con.keeps_uncounted = true;
	printf("SEED=%llu\n", (unsigned long long)con.seed);
	if (mailbox_init(&l.mb) < 0 || bufpool_init_runs(&bufs, 64 << 20) < 0)
		return 1;
	for (unsigned i = 0; i < sizeof tunings / sizeof *tunings; i++) {
		struct fake_rados_tuning t = tunings[i];

		t.seed = con.seed + i;
		failed += run(&t, i ? 2 : 4);
	}
	fake_rados_reset(NULL);
	bufpool_fini(&bufs);
	mailbox_fini(&l.mb);
	return failed != 0;
}
