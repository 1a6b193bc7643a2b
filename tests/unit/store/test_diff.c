/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories on the store in memory, the engine on files, and the store on RADOS on a cluster in memory, whose answers are
 * compared (tests/fake/diff.h). SEED= repeats a run, HISTORIES= is the number of histories, FIRST= the number of the first one,
 * VERBOSE=1 prints every operation, ENDS=mr leaves out the engine.
 */
#include "tests/unit/extent/harness.h"
#include "tests/fake/diff.h"
#include "tests/fake/fault_ring.h"

static struct loop l;
static char dir[128];
static struct store_disk_conf disk;

static void
turn(struct diff_end *e)
{
	loop_turn(&l);
}

static void
stop(struct diff_end *e)
{
	loop_stop(&l);
	store_stop(e->store);
	e->store = NULL;
}

static void
start(struct diff_end *e, bool is_new)
{
	struct store_conf conf;
	char err[512] = "";

	if (is_new && dir[0])
		dir_remove(dir);
	if (is_new)
		dir_make(dir);
	conf = conf_for(&disk, dir, 128 * MIB);
	check(!is_new || store_format(&conf, false, err, sizeof err) == 0);
	check(store_start(&conf, &e->store, err, sizeof err) == 0);
	loop_start_with(&l, e->store, 8 * MIB);
	e->port = l.p;
	e->bufs = &l.bufs;
}

static int
refuse_writes(const struct fault_io *io)
{
	return io->kind == FAULT_READ ? 0 : -EIO;
}

/* No write reaches the files any more, as after the end of the process; another start recovers. */
static void
kill_it(struct diff_end *e)
{
	struct store_conf conf = conf_for(&disk, dir, 128 * MIB);
	char err[512] = "";

	fault_ring_hook = refuse_writes;
	while (!store_detach(l.p))
		loop_turn(&l);
	store_stop(e->store);
	fault_ring_hook = NULL;
	if (store_start(&conf, &e->store, err, sizeof err) < 0) {
		fprintf(stderr, "engine: %s\n", err);
		abort();
	}
	check(store_attach(e->store, l.ring, &l.mb, &l.timers, &l.p) == 0);
	e->port = l.p;
}

int
main(void)
{
	static struct diff_end engine = {
		.name = "engine", .start = start, .stop = stop, .turn = turn, .kill = kill_it
	};
	const char *which = getenv("ENDS");
	struct diff_end *ends[DIFF_ENDS_MAX];
	struct bufpool bufs;
	int nr = 0, failed;

	log_init(LOG_PLAIN, getenv("VERBOSE") ? LOG_WARN : (enum log_level) - 1);
	check(bufpool_init(&bufs, 8 * MIB) == 0);
	ends[nr++] = diff_mem_end(&bufs);
	if (!which || strchr(which, 'e'))
		ends[nr++] = &engine;
	if (diff_rados_end && (!which || strchr(which, 'r'))) {
		ends[nr] = diff_rados_end(&bufs, nr == 1);
		nr++;
	}
	failed = diff_main(ends, nr, 200);
	if (dir[0])
		dir_remove(dir);
	bufpool_fini(&bufs);
	return failed;
}
