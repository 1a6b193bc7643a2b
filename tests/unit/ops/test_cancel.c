/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines, vanished clients, late and lost completions: nothing leaks, and no reply leaves while a work
 * request is outstanding. */
#include "tests/unit/ops/rig.h"
#include "tests/fake/mem_store.h"

#include <errno.h>

static uint64_t rig_now; /* the fake clock */

static void
fake_time(void)
{
	rig_now = 1000 * NS_PER_S;
	clock_fake(&rig_now);
}

static void
begin_get(struct xchg *x, const char *key, size_t len)
{
	char target[64];

	snprintf(target, sizeof target, "/bkt/%s", key);
	x_init(x, 0, "GET", target);
	x_token(x, "x-amz-rdma-token", 0, len);
	x_begin(x);
	req_body_end(x->rq);
}

/* item 27, item 30, claim TM13: the reply waits for the flush, and after flushed WRITEs for the linger */
static void
test_deadline_moving(void **state)
{
	uint64_t wire, disk;
	struct xchg x;

	put_object("o", 4 << 20, 1);
	fake_time();
	fake_chan_hold(rig.chan, true);
	fake_chan_hold_flush(rig.chan, true);
	begin_get(&x, "o", 4 << 20);
	rig_until(fake_chan_op_nr(rig.chan) > 0);
	rig_now += RIG_LATE_NS;
	for (int i = 0; i < 50; i++)
		rig_turn();
	assert_false(req_is_ready(x.rq)); /* work requests are outstanding */
	fake_chan_hold(rig.chan, false);
	fake_chan_hold_flush(rig.chan, false);
	rig_until(fake_chan_release(rig.chan) >= 0 && fake_chan_stats(rig.chan)->outstanding == 0);
	for (int i = 0; i < 50; i++)
		rig_turn();
	assert_false(req_is_ready(x.rq)); /* lingers */
	wire = x.rq->phase_ns[STATS_PH_WIRE];
	disk = x.rq->phase_ns[STATS_PH_DISK];
	rig_now += 25 * NS_PER_MS;
	rig_until(req_is_ready(x.rq));
	/* For the sake of the wire, the disk has had nothing to do. */
	assert_int_equal(x.rq->phase_ns[STATS_PH_WIRE] - wire, 25 * NS_PER_MS);
	assert_int_equal(x.rq->phase_ns[STATS_PH_DISK], disk);
	assert_int_equal(req_reply(x.rq)->status, 500);
	assert_header(&x, "x-amz-rdma-reply", "500");
	x_end(&x);
	clock_fake(NULL);
}

/* 4.7: before any byte moved a passed deadline is 503 without a reply header */
static void
test_deadline_queued(void **state)
{
	struct xchg x;

	put_object("o", 1000, 1);
	fake_time();
	fake_chan_hold_leases(rig.chan, true);
	begin_get(&x, "o", 1000);
	rig_until(fake_chan_stats(rig.chan)->waiting == 1);
	rig_now += RIG_LATE_NS;
	rig_until(req_is_ready(x.rq));
	assert_int_equal(req_reply(x.rq)->status, 503);
	assert_no_header(&x, "x-amz-rdma-reply");
	x_end(&x);
	fake_chan_hold_leases(rig.chan, false);
	clock_fake(NULL);
}

/* item 97: the scality budget is 1.5 s in all, the answer included */
static void
test_deadline_scality(void **state)
{
	struct xchg x;

	rig.conf->limits.scality_total_ns = 1500 * NS_PER_MS;
	fake_time();
	fake_chan_hold_leases(rig.chan, true);
	x_init(&x, 1, "PUT", "/k");
	x_token(&x, "x-scal-rdma", 0, 1000);
	x_begin(&x);
	req_body_end(x.rq);
	rig_until(fake_chan_stats(rig.chan)->waiting == 1);
	rig_now += 1380 * NS_PER_MS;
	rig_until(req_is_ready(x.rq));
	assert_int_equal(req_reply(x.rq)->status, 503);
	x_end(&x);
	fake_chan_hold_leases(rig.chan, false);
	clock_fake(NULL);
}

/* A disk that hangs keeps its pieces and the request, but not the reply: by token and over HTTP. */
static void
test_deadline_disk(void **state)
{
	struct xchg x;

	put_object("o", 4 << 20, 1);
	for (int i = 0; i < 2; i++) {
		fake_time();
		mem_store_manual(rig.store, true);
		x_init(&x, 0, "GET", "/bkt/o");
		if (i == 0)
			x_token(&x, "x-amz-rdma-token", 0, 4 << 20);
		x_begin(&x);
		req_body_end(x.rq);
		for (int t = 0; t < 1000 && x.rq->xfer.inflight == 0; t++) {
			mem_store_step(rig.store, 1); /* opening may take its time too */
			rig_turn();
		}
		assert_true(x.rq->xfer.inflight > 0);
		rig_now += RIG_LATE_NS;
		rig_until(req_is_ready(x.rq));
		assert_int_equal(req_reply(x.rq)->status, 503);
		assert_no_header(&x, "x-amz-rdma-reply");
		req_end(x.rq, true);
		for (int t = 0; t < 50; t++)
			rig_turn();
		assert_int_equal(reqs_live(rig.reqs), 1);
		mem_store_manual(rig.store, false);
		rig_until(reqs_live(rig.reqs) == 0);
		clock_fake(NULL);
	}
}

static int
slow_start(void **state)
{
	rig_small.http_bytes = 4 * (BUF_SMALL_BYTES + BUF_SLACK_BYTES);
	return rig_start(state);
}

static int
slow_stop(void **state)
{
	rig_small.http_bytes = 0;
	clock_fake(NULL);
	return rig_stop(state);
}

/*
 * A reader may be as slow as it likes (the idle time-out is http/'s); a read of the disk may not.  Other
 * streams give a buffer back just before the slow one's deadline is looked at: its read has just begun then,
 * however long ago anything moved.
 */
static void
test_slow_reader(void **state)
{
	struct xchg fast, slow;
	char sink[64 << 10];
	uint64_t pos = 0;

	put_object("o", 4 << 20, 1);
	fake_time();
	x_init(&fast, 0, "GET", "/bkt/o");
	assert_int_equal(x_run(&fast), 200);
	rig_until(fast.rq->xfer.inflight == 0);
	assert_int_equal(rig.http_bufs.avail[BUF_SMALL], 0);
	x_init(&slow, 0, "GET", "/bkt/o");
	x_begin(&slow);
	req_body_end(slow.rq);
	wait_until(req_is_ready(slow.rq)) {
		ssize_t n = req_stream_read(fast.rq, pos, sink, sizeof sink);

		pos += (uint64_t)n;
		rig_turn();
		usleep(100);
	}
	rig_until(slow.rq->xfer.inflight == 0 && fast.rq->xfer.inflight == 0);
	/* The first time that it is looked at. */
	rig_now += RIG_LATE_NS;
	rig_turn();
	assert_int_equal(slow.abort_nr, 0);
	rig_now += RIG_DEADLINE_NS - NS_PER_MS;
	rig_turn();
	mem_store_hold(rig.store, true);
	req_end(fast.rq, false);
	rig_turn();
	assert_true(slow.rq->xfer.inflight > 0);
	rig_now += 2 * NS_PER_MS;
	rig_turn();
	assert_int_equal(slow.abort_nr, 0);
	/* This read never ends. */
	rig_now += RIG_DEADLINE_NS;
	rig_turn();
	assert_int_equal(slow.abort_nr, 1);
	mem_store_hold(rig.store, false);
	req_end(slow.rq, false);
	rig_until(reqs_live(rig.reqs) == 0);
}

/* item 28, item 98: a client that leaves in the middle ends all access to its window */
static void
test_gone(void **state)
{
	struct xchg x;
	bool put;

	put_object("g", 4 << 20, 1);
	for (int i = 0; i < 2; i++) {
		put = i == 1;
		fake_chan_hold(rig.chan, true);
		x_init(&x, 0, put ? "PUT" : "GET", "/bkt/g");
		x_token(&x, "x-amz-rdma-token", 0, 4 << 20);
		x_begin(&x);
		req_body_end(x.rq);
		rig_until(fake_chan_op_nr(rig.chan) > 0);
		req_gone(x.rq);
		fake_chan_hold(rig.chan, false);
		rig_until(req_is_ready(x.rq));
		assert_int_equal(fake_chan_stats(rig.chan)->outstanding, 0);
		x_end(&x);
	}
	x_init(&x, 0, "HEAD", "/bkt/g");
	assert_int_equal(x_run(&x), 200); /* the version before */
	x_end(&x);
}

/* The connection dies at once (http/ is done with it) in every state there is: nothing is left over. */
static void
test_ended_early(void **state)
{
	struct xchg x;

	put_object("q", 2 << 20, 1);
	/* in the queue for a lease */
	fake_chan_hold_leases(rig.chan, true);
	begin_get(&x, "q", 2 << 20);
	rig_until(fake_chan_stats(rig.chan)->waiting == 1);
	req_end(x.rq, false);
	rig_until(reqs_live(rig.reqs) == 0);
	fake_chan_hold_leases(rig.chan, false);
	/* right after the start */
	begin_get(&x, "q", 2 << 20);
	req_end(x.rq, false);
	rig_until(reqs_live(rig.reqs) == 0);
	/* in the middle of a body, and of a stream */
	x_init(&x, 0, "PUT", "/bkt/b");
	x_field(&x, "content-length", "500000");
	x_begin(&x);
	rig_turn();
	req_body(x.rq, rig.win, 100000);
	req_end(x.rq, false);
	rig_until(reqs_live(rig.reqs) == 0);
	x_init(&x, 0, "GET", "/bkt/q");
	assert_int_equal(x_run(&x), 200);
	req_end(x.rq, false);
	rig_until(reqs_live(rig.reqs) == 0);
	x_init(&x, 0, "HEAD", "/bkt/b");
	assert_int_equal(x_run(&x), 404);
	x_end(&x);
}

/* item 29: after a failure the next request works; a lost completion ends by the deadline */
static void
test_lost(void **state)
{
	struct xchg x;

	put_object("l", 3 << 20, 7);
	fake_time();
	fake_chan_script(rig.chan, 2, WCS_NR);
	begin_get(&x, "l", 3 << 20);
	/* All of it is posted, and all but that one is over. */
	rig_until(fake_chan_stats(rig.chan)->push_bytes >= 2 << 20 && mem_store_inflight(rig.store) == 0);
	for (int i = 0; i < 2000; i++)
		rig_turn();
	assert_int_equal(fake_chan_stats(rig.chan)->outstanding, 1);
	assert_int_equal(fake_chan_stats(rig.chan)->push_bytes, 2 << 20);
	assert_false(req_is_ready(x.rq));
	rig_now += RIG_LATE_NS;
	for (int i = 0; i < 10; i++)
		rig_turn();
	rig_now += 200 * NS_PER_MS;
	for (int i = 0; i < 10; i++)
		rig_turn();
	rig_now += 200 * NS_PER_MS;
	rig_until(req_is_ready(x.rq));
	assert_int_equal(req_reply(x.rq)->status, 500);
	x_end(&x);
	clock_fake(NULL);
	begin_get(&x, "l", 3 << 20);
	rig_until(req_is_ready(x.rq));
	assert_int_equal(req_reply(x.rq)->status, 200);
	x_end(&x);
}

/* item 86: overload queues first, then 503 SlowDown with Retry-After, never a decline */
static void
test_overload(void **state)
{
	enum { N = 60 };
	static struct xchg x[N];
	int busy = 0, good = 0;

	put_object("w", 100000, 1);
	fake_chan_hold_leases(rig.chan, true);
	for (int i = 0; i < N; i++)
		begin_get(&x[i], "w", 100000);
	for (int i = 0; i < 100; i++)
		rig_turn();
	fake_chan_hold_leases(rig.chan, false);
	for (int i = 0; i < N; i++) {
		rig_until(((void)fake_chan_grant(rig.chan), req_is_ready(x[i].rq)));
		if (req_reply(x[i].rq)->status == 503) {
			assert_header(&x[i], "retry-after", "1");
			assert_no_header(&x[i], "x-amz-rdma-reply");
			busy++;
		} else {
			assert_int_equal(req_reply(x[i].rq)->status, 200);
			good++;
		}
		x_end(&x[i]);
	}
	assert_true(good >= 32);
	assert_int_equal(good + busy, N);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_deadline_moving, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_deadline_queued, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_deadline_scality, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_deadline_disk, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_slow_reader, slow_start, slow_stop),
		cmocka_unit_test_setup_teardown(test_gone, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_ended_early, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_lost, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_overload, rig_start, rig_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
