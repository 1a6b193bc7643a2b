/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that takes its time: a write or flush beyond the timeout fails it, whoever waits for that, and what comes late
 * does no harm; a read fails nothing.  And the workers that one of several disks may have.
 */
/* Each of these tests waits until a timeout of the disk is over. */
#define WAIT_USUAL_NS (10 * NS_PER_S)

#include "extent/engine.h"

#include "crumbs.h"
#include "fixture.h"
#include "extent/disk/watch.h"
#include "extent/disk/xio.h"
#include "tests/fake/fault_ring.h"

/* A process that stands still for a second fails no disk of these tests. */
#define TIMEOUT_NS (3 * NS_PER_S / 2)

static int slow_kind = -1;
static const char *slow_name;
/* What ends the hold. */
static enum until { NOTHING, SOME_LOOKS, FAILURE, TIME } until;
static int looks;        /* so often the ring has asked since the hold began */
static uint64_t held_ns; /* TIME: since when */

static _Atomic bool is_over;

static int
hook(const struct fault_io *io)
{
	if ((int)io->kind != slow_kind || strncmp(io->name, slow_name, strlen(slow_name)) != 0 || is_over)
		return 0;
	if (!looks++)
		held_ns = clock_ns();
	if ((until == SOME_LOOKS && looks < 20) ||
	    (until == FAILURE && !disk_failed(&extent_store(st)->vol->disk)) ||
	    (until == TIME && clock_ns() - held_ns < TIMEOUT_NS * 3 / 2))
		return FAULT_HOLD;
	is_over = true;
	return 0;
}

static void
slow(int kind, const char *name, enum until end)
{
	slow_kind = -1;
	slow_name = name;
	looks = 0;
	until = end;
	is_over = false;
	slow_kind = kind;
}

static int
setup(void **state)
{
	int r;

	slow(-1, "", NOTHING);
	fault_ring_hook = hook;
	dir_make(dir);
	conf = conf_for(&dc, dir, 100 * MIB);
	conf.disks.timeout_ns = TIMEOUT_NS;
	conf.disks.beside = 1;
	if (store_format(&conf, false, err, sizeof err) < 0)
		return -1;
	open_store();
	r = bucket_make(&l, "b");
	wait_segments(&l);
	loop_for(&l, 30 * NS_PER_MS);
	return r;
}

/* It was told why, takes nothing more, and serves again after a restart, with all that it had said it has. */
static void
has_failed(int answer)
{
	struct store_unit_info info = disk_info();

	assert_int_equal(info.state, UNIT_FAILED);
	if (!strstr(info.reason, "longer than 1.5 s (store.disk_timeout)"))
		fail_msg("%s", info.reason);
	assert_int_equal(put_simple(&l, "b", "late", 10, 1), -EROFS);
	assert_int_equal(obj_check(&l, "b", "before", 100000, 1), 0);
	slow(-1, "", NOTHING);
	close_store();
	open_store();
	wait_segments(&l);
	assert_int_equal(disk_info().state, UNIT_OK);
	assert_int_equal(obj_check(&l, "b", "before", 100000, 1), 0);
	if (answer == 0)
		assert_int_equal(obj_check(&l, "b", "x", 100000, 2), 0);
	assert_int_equal(put_simple(&l, "b", "late", 10, 1), 0);
}

static void
test_writes(void **state)
{
	static const struct {
		int kind;
		const char *name;
	} of[] = { { FAULT_WRITE, "seg-" }, { FAULT_WRITE, "log" }, { FAULT_FLUSH, "log" } };

	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		int r;

		assert_int_equal(put_simple(&l, "b", "before", 100000, 1), 0);
		/* Slow, but not too slow. */
		slow(of[i].kind, of[i].name, SOME_LOOKS);
		assert_int_equal(put_simple(&l, "b", "x", 100000, 2), 0);
		assert_true(is_over);
		assert_int_equal(disk_info().state, UNIT_OK);
		slow(of[i].kind, of[i].name, FAILURE);
		r = put_simple(&l, "b", "x", 100000, 2);
		assert_true(is_over);
		/* What became of it in the end, or that nobody knows. */
		assert_true(r == 0 || r == -ECANCELED || r == -EROFS);
		has_failed(r);
	}
}

static void
test_reads(void **state)
{
	assert_int_equal(put_simple(&l, "b", "x", 100000, 1), 0);
	slow(FAULT_READ, "seg-", TIME);
	assert_int_equal(obj_check(&l, "b", "x", 100000, 1), 0);
	assert_true(is_over);
	assert_int_equal(disk_info().state, UNIT_OK);
}

/* A process that stands still while a write is in flight, of a core or of the disk's own thread: the machine's clock goes on, the
 * run clock does not, and the disk has done nothing wrong. */
static void
test_pause(void **state)
{
	static const char *const of[] = { "log", "super" };

	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		run_clock_tick(clock_ns());
		slow(FAULT_WRITE, of[i], TIME);
		if (strcmp(of[i], "super") == 0)
			assert_int_equal(store_snapshot(st), 0);
		else
			assert_int_equal(put_simple(&l, "b", "x", 100000, 2), 0);
		wait_until(is_over)
			loop_for(&l, 5 * NS_PER_MS);
		loop_for(&l, 5 * NS_PER_MS);
		assert_int_equal(disk_info().state, UNIT_OK);
		assert_int_equal(disk_number("oldest_wait_us"), 0);
		run_clock_tick(0);
	}
	assert_int_equal(obj_check(&l, "b", "x", 100000, 2), 0);
}

/* A write that hangs is given its full time once more by a pause, however often, and then the disk fails. */
static void
test_paused_often(void **state)
{
	struct timers timers = { 0 };
	struct disk d;
	struct disk_watch w = { .timers = &timers };
	uint64_t now = 1000 * NS_PER_S, third = 5 * NS_PER_S;
	uint8_t old;

	clock_fake(&now);
	run_clock_tick(now);
	disk_init(&d);
	d.timeout_ns = 30 * NS_PER_S;
	old = watch_begin(&w, &d);
	for (int i = 0; i < 200; i++) {
		uint8_t brief = watch_begin(&w, &d);

		if (i % 5 == 4) {
			now += 3600 * NS_PER_S;
			run_clock_tick(now);
		}
		for (uint64_t ran = 0; ran < third; ran += RUN_TICK_NS) {
			now += RUN_TICK_NS;
			run_clock_tick(now);
			timers_run(&timers, now);
		}
		watch_end(&w, &d, brief);
		assert_false(disk_failed(&d));
		assert_true(disk_writes_wait_ns(&d) < third);
	}
	for (uint64_t ran = 0; ran < 2 * d.timeout_ns; ran += RUN_TICK_NS) {
		now += RUN_TICK_NS;
		run_clock_tick(now);
		timers_run(&timers, now);
	}
	assert_true(disk_failed(&d));
	assert_true(disk_writes_wait_ns(&d) >= 2 * d.timeout_ns);
	watch_end(&w, &d, old);
	assert_int_equal(disk_writes_wait_ns(&d), 0);
	watch_fini(&w);
	run_clock_tick(0);
	clock_fake(NULL);
}

/* Nobody writes but the disk's own thread. */
static void
test_helper(void **state)
{
	assert_int_equal(put_simple(&l, "b", "before", 100000, 1), 0);
	loop_for(&l, 20 * NS_PER_MS);
	slow(FAULT_WRITE, "super", FAILURE);
	assert_int_equal(store_snapshot(st), 0);
	wait_until(disk_info().state != UNIT_OK)
		loop_for(&l, 5 * NS_PER_MS);
	wait_until(is_over)
		loop_for(&l, 5 * NS_PER_MS);
	has_failed(-EROFS);
}

/* Without a timeout, or without other disks, it is waited for. */
static void
test_for_ever(void **state)
{
	for (int i = 0; i < 2; i++) {
		close_store();
		conf.disks.timeout_ns = i ? TIMEOUT_NS : 0;
		conf.disks.beside = !i;
		open_store();
		wait_segments(&l);
		assert_int_equal(extent_store(st)->vol->disk.timeout_ns, 0);
		slow(FAULT_FLUSH, "log", SOME_LOOKS);
		assert_int_equal(put_simple(&l, "b", "x", 100000, 1), 0);
		assert_true(is_over);
		assert_int_equal(disk_info().state, UNIT_OK);
		slow(-1, "", NOTHING);
	}
}

/* ---- workers ---- */

#define XIOS 7

static struct xio xios[XIOS];
static int over_nr;

static void
on_xio(struct xio *x)
{
	assert_int_equal(x->error, 0);
	over_nr++;
}

/* However many there are, and however many pieces each has: two have a worker at a time, and all have their turn. */
static void
test_workers(void **state)
{
	struct disk *d = &extent_store(st)->vol->disk;
	struct disk_port p = { .is_threads = true };
	uint64_t ext[8];
	unsigned most = 0;
	char *mem = aligned_alloc(4096, 8 * (size_t)d->geo.unit_bytes);

	check(mem);
	assert_int_equal(ring_new(&(struct ring_params){ .entries = 32 }, &p.ring), 0);
	for (int limit = 2; limit >= 0; limit--) {
		d->workers_max = (unsigned)limit;
		over_nr = 0;
		for (uint32_t i = 0; i < 8; i++)
			ext[i] = ext_make(i * 2, 1);
		for (int i = 0; i < XIOS; i++)
			xio_start(&xios[i], &p, d, false, ext, 8, 0, mem, (uint32_t)(8 * d->geo.unit_bytes),
				  RING_NO_REGION, on_xio);
		for (most = 0; over_nr < XIOS;) {
			unsigned out = ring_inflight(p.ring);

			most = out > most ? out : most;
			assert_int_equal(p.workers, out);
			assert_true(p.inflight >= out);
			assert_true(ring_turn(p.ring, NS_PER_MS) >= 0);
		}
		assert_int_equal(most, limit ? limit : XIOS * XIO_DEPTH);
		assert_int_equal(p.inflight + p.workers, 0);
	}
	ring_free(p.ring);
	free(mem);
}

/* Writes have three quarters of the workers, also of the only disk: a read that comes while they hang has one. */
static void
test_write_workers(void **state)
{
	struct disk *d = &extent_store(st)->vol->disk;
	struct disk_port p = { .is_threads = true };
	char *mem = aligned_alloc(4096, 32 * (size_t)d->geo.unit_bytes);
	uint64_t ext[8];

	check(mem);
	assert_int_equal(ring_new(&(struct ring_params){ .entries = 32 }, &p.ring), 0);
	for (uint32_t i = 0; i < 8; i++)
		ext[i] = ext_make(i * 2, 1);
	memset(mem, 0, 32 * (size_t)d->geo.unit_bytes);
	d->workers_max = 4;
	over_nr = 0;
	for (int i = 0; i < XIOS - 1; i++)
		xio_start(&xios[i], &p, d, true, ext, 8, 0, mem, (uint32_t)(8 * d->geo.unit_bytes),
			  RING_NO_REGION, on_xio);
	assert_int_equal(p.workers, 3);
	assert_int_equal(p.write_workers, 3);
	xio_start(&xios[XIOS - 1], &p, d, false, ext, 8, 0, mem + 8 * (size_t)d->geo.unit_bytes,
		  (uint32_t)(8 * d->geo.unit_bytes), RING_NO_REGION, on_xio);
	assert_int_equal(p.workers, 4);
	while (over_nr < XIOS) {
		assert_true(p.write_workers <= 3 && p.workers <= 4);
		assert_true(ring_turn(p.ring, NS_PER_MS) >= 0);
	}
	assert_int_equal(p.inflight + p.workers + p.write_workers, 0);
	d->workers_max = 0;
	ring_free(p.ring);
	free(mem);
}

static unsigned ends[XIOS];

/* Starts the transfer again at once, as a client with many requests does. */
static void
on_xio_again(struct xio *x)
{
	assert_int_equal(x->error, 0);
	ends[x - xios]++;
	if (++over_nr < 40 * XIOS)
		xio_start(x, x->p, x->d, x->is_write, x->ext, x->ext_nr, 0, x->mem - x->len, x->len,
			  RING_NO_REGION, on_xio_again);
}

/* More reads and writes than workers: each transfer that ends starts again at once, and no other one waits for ever. */
static void
test_worker_turns(void **state)
{
	struct disk *d = &extent_store(st)->vol->disk;
	size_t unit = d->geo.unit_bytes;
	char *mem = aligned_alloc(4096, XIOS * unit);
	uint64_t ext[XIOS];

	check(mem);
	memset(mem, 0, XIOS * unit);
	for (uint32_t i = 0; i < XIOS; i++)
		ext[i] = ext_make(i * 2, 1);
	d->workers_max = 2;
	for (int writes = 1; writes < XIOS; writes++) {
		struct disk_port p = { .is_threads = true };

		assert_int_equal(ring_new(&(struct ring_params){ .entries = 32 }, &p.ring), 0);
		memset(ends, 0, sizeof ends);
		over_nr = 0;
		for (int i = 0; i < XIOS; i++)
			xio_start(&xios[i], &p, d, i >= XIOS - writes, &ext[i], 1, 0, mem + (size_t)i * unit,
				  (uint32_t)unit, RING_NO_REGION, on_xio_again);
		wait_until(!p.inflight)
			assert_true(ring_turn(p.ring, NS_PER_MS) >= 0);
		for (int i = 0; i < XIOS; i++) {
			int alike = i >= XIOS - writes ? writes : XIOS - writes;

			/* Reads have a quarter of all at least, and so have writes; the transfers of a kind share that. */
			assert_in_range(ends[i], 10 * XIOS / alike - 4, 40 * XIOS);
		}
		assert_int_equal(p.workers + p.write_workers, 0);
		ring_free(p.ring);
	}
	d->workers_max = 0;
	free(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_writes, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_reads, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_pause, setup, remove_store),
		cmocka_unit_test(test_paused_often),
		cmocka_unit_test_setup_teardown(test_helper, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_for_ever, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_workers, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_write_workers, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_worker_turns, setup, remove_store),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_hang", tests, NULL, NULL);
}
