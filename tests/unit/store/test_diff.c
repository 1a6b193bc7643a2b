/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories on the store in memory, the engine on files, and the store on RADOS on a cluster in memory, whose answers are
 * compared (tests/fake/diff.h). SEED= repeats a run, HISTORIES= is the number of histories, FIRST= the number of the first one,
 * VERBOSE=1 prints every operation, ENDS=mr leaves out the engine.
 */
#include "tests/unit/extent/harness.h"
#include "tests/fake/diff.h"
#include "tests/fake/fault_ring.h"

#include <malloc.h>

static struct loop l;
static char dir[128];
static struct store_disk_conf disk;

/* Waits only if nothing has come: the history looks after each turn whether its operation has ended. */
static void
turn(struct diff_end *e)
{
	bool any = mailbox_run(&l.mb, 0) > 0;

	timers_run(&l.timers, clock_ns());
	store_turn(l.p, TURN_QUIESCENT);
	check(ring_turn(l.ring, any ? 0 : 100 * NS_PER_US) >= 0);
}

static void
stop(struct diff_end *e)
{
	wait_until(store_detach(l.p))
		turn(e);
	store_stop(e->store);
	e->store = NULL;
}

/* Ring, mailbox and buffers stay from start to start. */
static void
attach(struct diff_end *e)
{
	if (!l.ring) {
		check(ring_new(&(struct ring_params){ .entries = 128 }, &l.ring) == 0);
		check(mailbox_init(&l.mb) == 0);
		check(bufpool_init(&l.bufs, 8 * MIB) == 0);
	}
	check(store_attach(e->store, l.ring, &l.mb, &l.timers, &l.p) == 0);
	e->port = l.p;
	e->bufs = &l.bufs;
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
	attach(e);
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
	wait_until(store_detach(l.p))
		turn(e);
	store_stop(e->store);
	fault_ring_hook = NULL;
	if (store_start(&conf, &e->store, err, sizeof err) < 0) {
		fprintf(stderr, "engine: %s\n", err);
		abort();
	}
	attach(e);
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
	if (!which || strchr(which, 'e')) {
		/* The memory of a start stays for the next one: the kernel would clear it again. */
		mallopt(M_MMAP_MAX, 0);
		mallopt(M_TRIM_THRESHOLD, 1 << 30);
		ends[nr++] = &engine;
	}
	if (diff_rados_end && (!which || strchr(which, 'r'))) {
		if (nr == 1)
			diff_clock_all();
		ends[nr++] = diff_rados_end(&bufs);
	}
	failed = diff_main(ends, nr, 600);
	if (dir[0])
		dir_remove(dir);
	if (l.ring) {
		ring_free(l.ring);
		mailbox_fini(&l.mb);
		bufpool_fini(&l.bufs);
	}
	bufpool_fini(&bufs);
	return failed;
}
