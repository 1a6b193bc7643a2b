/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on RADOS under the suite that every back end must pass.  CEPH_CONF names the cluster (rados-one
 * makes one), whose pools gantry.meta and gantry.data are used, in a namespace of this process.  SEED= repeats a
 * run.  An argument is the size of data objects in MiB.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "rados/rados.h"
#include "tests/fake/store_contract.h"
#include "tests/fake/store_loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct mailbox mb;
static struct contract con;
static struct bufpool bufs;

static void
turn(struct contract *c)
{
	port_turn(&mb, c->port);
}

static int
fail(const char *what, const char *err)
{
	fprintf(stderr, "%s: %s\n", what, err);
	return 1;
}

int
main(int argc, char **argv)
{
	const char *s = getenv("SEED"), *ceph_conf = getenv("CEPH_CONF");
	char ns[32], err[256];
	struct store_conf conf = { .ops = &rados_store_ops,
				   .ports_max = 1,
				   .rados = { .conf = ceph_conf,
					      .user = "admin",
					      .meta_pool = "gantry.meta",
					      .data_pool = "gantry.data",
					      .ns = ns,
					      .index_shards = 4,
					      .object_bytes = (argc > 1 ? (uint32_t)atoi(argv[1]) : 4) << 20,
					      .dead_after_ns = 15 * NS_PER_S } };
	int failed;

	if (!ceph_conf)
		return fail("CEPH_CONF", "not set");
	con.seed = s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);
	con.seed += !con.seed;
	con.turn = turn;
	con.bufs = &bufs;
	con.random_ops = 400;
	con.keeps_uncounted = true;
	printf("SEED=%llu\n", (unsigned long long)con.seed);
	snprintf(ns, sizeof ns, "contract-%d", (int)getpid());
	if (mailbox_init(&mb) < 0 || bufpool_init_runs(&bufs, 64 << 20) < 0)
		return 1;
	if (store_format(&conf, false, err, sizeof err) < 0)
		return fail("format", err);
	if (store_format(&conf, false, err, sizeof err) != -EALREADY)
		return fail("format again", err);
	printf("%s\n", err);
	if (store_start(&conf, &con.store, err, sizeof err) < 0)
		return fail("start", err);
	if (store_attach(con.store, NULL, &mb, NULL, &con.port) < 0)
		return fail("attach", "failed");
	failed = store_contract_run(&con);
	while (!store_detach(con.port))
		turn(&con);
	store_stop(con.store);
	bufpool_fini(&bufs);
	mailbox_fini(&mb);
	return failed != 0;
}
