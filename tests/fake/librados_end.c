/* SPDX-License-Identifier: Apache-2.0 */
/* The store on RADOS, on the cluster in memory, as a back end of a history (diff.h). */
#include "tests/fake/diff.h"
#include "tests/fake/librados.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

/* The gateways of the store. The history selects one for each operation. */
#define GATEWAYS 2
static struct gateway_of_end {
	struct store *store;
	struct store_port *port;
	unsigned owner; /* of its connections, for fake_rados_kill() */
} gateways[GATEWAYS];
static unsigned at, owner, turns;

static void
turn(struct diff_end *e)
{
	/* An operation may send requests for as long as it waits for a helper, e.g. until a gateway is
	 * declared dead. */
	if (!fake_rados_turn(&e->mb) || ++turns % 64 == 0)
		fake_rados_turn_helpers();
	for (int i = 0; i < GATEWAYS; i++) {
		if (gateways[i].port)
			store_turn(gateways[i].port, TURN_QUIESCENT);
	}
}

static void
select_one(struct diff_end *e, unsigned process)
{
	at = process;
	e->store = gateways[at].store;
	e->port = gateways[at].port;
}

static void
stop_one(struct diff_end *e, struct gateway_of_end *g)
{
	while (!store_detach(g->port))
		turn(e);
	g->port = NULL;
	store_stop(g->store);
	g->store = NULL;
}

static void
stop(struct diff_end *e)
{
	for (int i = 0; i < GATEWAYS; i++)
		stop_one(e, &gateways[i]);
	select_one(e, 0);
}

/* Returns the configuration. A gateway is declared dead if its row did not change between two reads. */
static struct store_conf
diff_conf(void)
{
	struct store_conf conf = fake_rados_conf("diff", 2);

	conf.rados.dead_after_ns = 1;
	return conf;
}

static void
start_one(struct diff_end *e, struct gateway_of_end *g)
{
	const struct store_conf conf = diff_conf();
	char err[512] = "";

	g->owner = ++owner;
	fake_rados_owner(owner);
	if (store_start(&conf, &g->store, err, sizeof err) < 0) {
		fprintf(stderr, "rados: %s\n", err);
		abort();
	}
	check(store_attach(g->store, NULL, &e->mb, NULL, &g->port) == 0);
}

static void
start(struct diff_end *e, bool is_new)
{
	static const struct fake_rados_tuning tuning = {
		.seed = 1, .page_max = 5, .conflict = 12, .twice = 12, .raise = 30
	};
	const struct store_conf conf = diff_conf();
	char err[512] = "";

	if (is_new) {
		owner = turns = 0;
		fake_rados_reset(&tuning);
		check(store_format(&conf, false, err, sizeof err) == 0);
	}
	for (int i = 0; i < GATEWAYS; i++)
		start_one(e, &gateways[i]);
	select_one(e, 0);
}

static void
idle(struct diff_end *e)
{
	fake_rados_turn_helpers();
}

static void
kill_it(struct diff_end *e)
{
	fake_rados_kill(gateways[at].owner);
	stop_one(e, &gateways[at]);
	start_one(e, &gateways[at]);
	select_one(e, at);
}

struct diff_end *
diff_rados_end(struct bufpool *bufs)
{
	static struct diff_end e = { .name = "rados",
				     .start = start,
				     .stop = stop,
				     .turn = turn,
				     .idle = idle,
				     .kill = kill_it,
				     .select = select_one };

	e.bufs = bufs;
	check(mailbox_init(&e.mb) == 0);
	return &e;
}
