/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store in memory under the suite that every back end must pass, with completions at once, late, and in
 * between; and what a test can do to it.  SEED= repeats a run.
 */
#include "tests/fake/mem_store.h"
#include "tests/fake/store_contract.h"
#include "tests/fake/store_loop.h"
#include "tests/fake/wait.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <setjmp.h>
#include <cmocka.h>

static struct loop l;
static struct contract con;
static struct bufpool bufs;

static void
turn(struct contract *c)
{
	l.port = c->port;
	loop_turn(&l);
}

static void
begin(void)
{
	struct store_disk_conf disk = { .path = "memory", .size_bytes = 1 << 30 };
	struct store_conf conf = {
		.ops = &mem_store_ops, .disks.disk = &disk, .disks.nr = 1, .ports_max = 1
	};
	struct store_port *second;
	char err[64];

	assert_int_equal(store_format(&conf, true, err, sizeof err), 0);
	assert_int_equal(store_start(&conf, &con.store, err, sizeof err), 0);
	assert_int_equal(store_attach(con.store, NULL, &l.mb, NULL, &con.port), 0);
	assert_int_equal(store_attach(con.store, NULL, &l.mb, NULL, &second), -EUSERS);
}

static void
end(void)
{
	assert_int_equal(mem_store_inflight(con.store), 0);
	assert_int_equal(mem_store_open_nr(con.store), 0);
	assert_int_equal(mem_store_put_nr(con.store), 0);
	wait_until(store_detach(con.port))
		turn(&con);
	store_stop(con.store);
}

static char said[128];

static void
say(void *cookie, const char *line)
{
	snprintf(said, sizeof said, "%s", line);
}

static int done_nr;

static void
on_done(struct store_op *op)
{
	done_nr++;
}

static int
finish(struct store_op *op, int r, int done_before)
{
	if (r)
		return r < 0 ? r : op->result;
	wait_until(done_nr != done_before)
		turn(&con);
	return op->result;
}

static const struct store_key key = { "b", "k", 1, 1 };

static int
put(uint32_t len)
{
	struct store_put p = { .op.done = on_done };
	struct buf *b = bufpool_get(&bufs, BUF_LARGE);
	struct store_commit c = { .last = b, .last_len = len };
	int n = done_nr, r;

	memset(b->mem, 'x', len);
	r = store_put_init(con.port, &p, &key, len);
	if (r == 0) {
		r = store_put_commit(con.port, &p, &c);
		if (r < 0)
			store_put_abort(con.port, &p);
		r = finish(&p.op, r, n);
	}
	bufpool_put(&bufs, b);
	return r;
}

static int
read_at(struct store_obj *o, uint64_t off)
{
	struct store_read rd = { .op.done = on_done };
	struct buf *b = bufpool_get(&bufs, BUF_SMALL);
	int n = done_nr, r = finish(&rd.op, store_read(con.port, o, &rd, b, off, STORE_GRANULE), n);

	bufpool_put(&bufs, b);
	return r;
}

static void
test_faults(void **state)
{
	struct mem_store_tuning slow = { .seed = con.seed, .delay_max_us = 10 };
	struct store_del d = { .op.done = on_done };
	struct store_obj o = { .op.done = on_done };
	int n, survived = 0, lost = 0;

	begin();
	mem_store_tune(con.store, &slow);
	n = done_nr;
	assert_int_equal(finish(&d.op, store_bucket_create(con.port, "b", 1, 0, &d), n), 0);
	mem_store_fail(con.store, MEM_PUT_INIT, -ENOSPC, 1, 1);
	assert_int_equal(put(200000), 0);
	assert_int_equal(put(200000), -ENOSPC);
	mem_store_fail(con.store, MEM_COMMIT, -EROFS, 0, 1);
	assert_int_equal(put(200000), -EROFS);
	assert_int_equal(put(200000), 0);
	assert_int_equal(mem_store_spoil(con.store, "b", "no", 0), -ENOENT);
	assert_int_equal(mem_store_spoil(con.store, "b", "k", 200000), -ERANGE);
	assert_int_equal(mem_store_spoil(con.store, "b", "k", 70000), 0);
	n = done_nr;
	assert_int_equal(finish(&o.op, store_open(con.port, &key, &o), n), 0);
	assert_int_equal(read_at(&o, 0), STORE_GRANULE);
	assert_int_equal(read_at(&o, STORE_GRANULE), -EBADMSG);
	mem_store_fail(con.store, MEM_READ, -EIO, 0, 2);
	assert_int_equal(read_at(&o, 0), -EIO);
	assert_int_equal(read_at(&o, 0), -EIO);
	assert_int_equal(read_at(&o, 0), STORE_GRANULE);
	store_close(con.port, &o);
	/* an unknown outcome is unknown */
	for (uint32_t i = 0; i < 40; i++) {
		mem_store_fail(con.store, MEM_COMMIT, -ECANCELED, 0, 1);
		assert_int_equal(put(1000 + i), -ECANCELED);
		n = done_nr;
		assert_int_equal(finish(&o.op, store_open(con.port, &key, &o), n), 0);
		survived += o.size_bytes == 1000 + i;
		lost += o.size_bytes != 1000 + i;
		store_close(con.port, &o);
	}
	assert_true(survived > 0);
	assert_true(lost > 0);
	/* what this back end lacks is said */
	assert_int_equal(store_snapshot(con.store), -EOPNOTSUPP);
	assert_string_equal(store_name(con.store), "mem");
	assert_false(store_has_snapshots(con.store));
	assert_int_equal(store_fsck(&(struct store_conf){ .ops = &mem_store_ops }, false, say, NULL),
			 -EOPNOTSUPP);
	assert_string_equal(said, "a store on mem has no fsck");
	/* held: nothing comes */
	mem_store_hold(con.store, true);
	n = done_nr;
	assert_int_equal(store_open(con.port, &key, &o), 0);
	for (int i = 0; i < 5; i++)
		turn(&con);
	assert_int_equal(done_nr, n);
	assert_int_equal(mem_store_inflight(con.store), 1);
	assert_false(store_detach(con.port));
	mem_store_hold(con.store, false);
	assert_int_equal(finish(&o.op, 0, n), 0);
	store_close(con.port, &o);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_faults) };
	static const struct mem_store_tuning tunings[] = {
		{ .open_at_once = 100, .stat_at_once = 100, .other_at_once = 100 },
		{ .open_at_once = 50, .stat_at_once = 50, .other_at_once = 30, .delay_max_us = 50 },
		{ .open_at_once = 0, .other_at_once = 0, .delay_max_us = 100 },
	};
	const char *s = getenv("SEED");
	int failed = 0;

	con.seed = s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);
	con.seed += !con.seed;
	con.turn = turn;
	con.bufs = &bufs;
	printf("SEED=%llu\n", (unsigned long long)con.seed);
	if (mailbox_init(&l.mb) < 0 || bufpool_init(&bufs, 64 << 20) < 0)
		return 1;
	for (unsigned i = 0; i < sizeof tunings / sizeof *tunings; i++) {
		struct mem_store_tuning t = tunings[i];

		t.seed = con.seed + i;
		begin();
		mem_store_tune(con.store, &t);
		failed += store_contract_run(&con);
		end();
	}
	failed += cmocka_run_group_tests(tests, NULL, NULL);
	bufpool_fini(&bufs);
	mailbox_fini(&l.mb);
	return failed != 0;
}
