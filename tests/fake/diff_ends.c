/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory as a back end of a history; see diff.h. */
#include "tests/fake/diff.h"

#include "tests/fake/mem_store.h"

#include "base/check.h"

static void
turn(struct diff_end *e)
{
	mem_store_step(e->store, 1);
	mailbox_run(&e->mb, 0);
}

/* It has no disk, so it goes on where the others are started again. */
static void
stop(struct diff_end *e)
{
	while (!store_detach(e->port))
		turn(e);
	e->port = NULL;
}

static void
start(struct diff_end *e, bool is_new)
{
	struct store_disk_conf disk = { .path = "memory", .size_bytes = (uint64_t)4 << 30 };
	struct store_conf conf = {
		.ops = &mem_store_ops, .disks.disk = &disk, .disks.nr = 1, .ports_max = 1
	};
	struct mem_store_tuning t = {
		.seed = 1, .open_at_once = 50, .stat_at_once = 50, .other_at_once = 30
	};
	char err[256];

	if (is_new) {
		store_stop(e->store);
		check(store_format(&conf, true, err, sizeof err) == 0);
		check(store_start(&conf, &e->store, err, sizeof err) == 0);
		mem_store_tune(e->store, &t);
		mem_store_manual(e->store, true);
	}
	check(store_attach(e->store, NULL, &e->mb, NULL, &e->port) == 0);
}

struct diff_end *
diff_mem_end(struct bufpool *bufs)
{
	static struct diff_end e = { .name = "mem", .start = start, .stop = stop, .turn = turn };

	e.bufs = bufs;
	check(mailbox_init(&e.mb) == 0);
	return &e;
}
