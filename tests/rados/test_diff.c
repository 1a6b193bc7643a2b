/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories on the store in memory and on the store on RADOS, on a cluster, whose answers are compared (tests/fake/diff.h).
 * CEPH_CONF names the cluster, whose pools gantry.meta and gantry.data are used, in namespaces of this process. SEED=, HISTORIES=,
 * FIRST= and VERBOSE=1 as in tests/unit/store/test_diff.c, which has a cluster in memory.
 */
#include "tests/fake/diff.h"
#include "tests/fake/store_loop.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "rados/rados.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned stores;

static void
turn(struct diff_end *e)
{
	port_turn(&e->mb, e->port);
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
	char ns[48], err[512] = "";
	struct store_conf conf = { .ops = &rados_store_ops,
				   .ports_max = 1,
				   .rados = { .conf = getenv("CEPH_CONF"),
					      .user = "admin",
					      .meta_pool = "gantry.meta",
					      .data_pool = "gantry.data",
					      .ns = ns,
					      .index_shards = 2,
					      .object_bytes = 2 << 20,
					      .dead_after_ns = 15 * NS_PER_S } };
	int r = 0;

	stores += is_new;
	snprintf(ns, sizeof ns, "diff-%d-%u", (int)getpid(), stores);
	if (is_new)
		r = store_format(&conf, false, err, sizeof err);
	if (r == 0)
		r = store_start(&conf, &e->store, err, sizeof err);
	if (r < 0) {
		fprintf(stderr, "rados: %s\n", err);
		exit(1);
	}
	check(store_attach(e->store, NULL, &e->mb, NULL, &e->port) == 0);
}

int
main(void)
{
	static struct diff_end rados = { .name = "rados", .start = start, .stop = stop, .turn = turn };
	struct diff_end *ends[2];
	struct bufpool bufs;
	int failed;

	if (!getenv("CEPH_CONF")) {
		fprintf(stderr, "CEPH_CONF is not set\n");
		return 1;
	}
	log_init(LOG_PLAIN, LOG_WARN);
	check(bufpool_init(&bufs, 8 << 20) == 0);
	check(mailbox_init(&rados.mb) == 0);
	ends[0] = diff_mem_end(&bufs);
	ends[1] = &rados;
	rados.bufs = &bufs;
	failed = diff_main(ends, 2, 1000);
	bufpool_fini(&bufs);
	return failed;
}
