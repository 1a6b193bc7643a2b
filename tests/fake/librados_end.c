/* SPDX-License-Identifier: Apache-2.0 */
/* The store on RADOS, on the cluster in memory, as a back end of a history (diff.h). */
#include "tests/fake/diff.h"
#include "tests/fake/librados.h"

#include "base/check.h"
#include "base/clock.h"
#include "rados/rados.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned owner, turns;
static uint64_t now_ns = 1700000000 * NS_PER_S;

static void
turn(struct diff_end *e)
{
	bool any = fake_rados_step();

	now_ns += 500;

	any |= mailbox_run(&e->mb, 0) > 0;
	any |= fake_rados_turn_woken();
	/* An operation may wait for a helper, and ask the cluster meanwhile: whether a gateway is dead, say. */
	if (!any || ++turns % 64 == 0)
		fake_rados_turn_helpers();
	store_quiesce(e->port);
}

static void
stop(struct diff_end *e)
{
	while (!store_detach(e->port))
		turn(e);
	store_stop(e->store);
	e->port = NULL;
	e->store = NULL;
}

static void
start(struct diff_end *e, bool is_new)
{
	static const struct fake_rados_tuning tuning = {
		.seed = 1, .page_max = 5, .conflict = 12, .twice = 12, .raise = 30
	};
	/* A gateway is dead when its row stands still between two looks of another one. */
	struct store_conf conf = { .ops = &rados_store_ops,
				   .ports_max = 1,
				   .rados = { .conf = "memory",
					      .user = "admin",
					      .meta_pool = "gantry.meta",
					      .data_pool = "gantry.data",
					      .ns = "diff",
					      .index_shards = 2,
					      .object_bytes = 2 << 20,
					      .dead_after_ns = 1 } };
	char err[512] = "";

	if (is_new) {
		owner = turns = 0;
		now_ns = 1700000000 * NS_PER_S;
		fake_rados_reset(&tuning);
		check(store_format(&conf, false, err, sizeof err) == 0);
	}
	fake_rados_owner(++owner);
	if (store_start(&conf, &e->store, err, sizeof err) < 0) {
		fprintf(stderr, "rados: %s\n", err);
		abort();
	}
	check(store_attach(e->store, NULL, &e->mb, NULL, &e->port) == 0);
}

static void
idle(struct diff_end *e)
{
	/* Now and then as much as a pause of recall.c. */
	now_ns += now_ns % 3 * NS_PER_S;
	fake_rados_turn_helpers();
}

static void
kill_it(struct diff_end *e)
{
	fake_rados_kill(owner);
	stop(e);
	start(e, false);
}

struct diff_end *
diff_rados_end(struct bufpool *bufs, bool has_clock)
{
	static struct diff_end e = {
		.name = "rados", .start = start, .stop = stop, .turn = turn, .idle = idle, .kill = kill_it
	};

	if (has_clock)
		clock_fake(&now_ns);
	e.bufs = bufs;
	check(mailbox_init(&e.mb) == 0);
	return &e;
}
