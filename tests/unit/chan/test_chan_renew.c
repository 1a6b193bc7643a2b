/* SPDX-License-Identifier: Apache-2.0 */
/* chan's logic against scripted verbs: a rail whose context dies, and comes again as another one. */
#include "rig.h"

/* The rail's context dies: fatal, and given up a second later. */
static void
die(void)
{
	fake_ep_set_state(RAIL_LOST, true);
	settle();
	fake_ep_set_context(0, fake_ep.closed);
	settle();
}

/* item 30: what cannot be destroyed for certain ends when the context is closed, and not before; then all is
 * made on another one. */
static void
a_device_is_opened_anew(void **state)
{
	open_chan(8, 4);
	turn();
	assert_int_equal(f.watching, 100);
	assert_int_equal(get(0), 1);
	assert_int_equal(get(1), 1);
	push(0, 0, 0);
	pull(0, 1, 0);
	chan_arm(f.ch);
	assert_int_equal(fake_ep.armed, 1);
	fake_ep.free_result = -EIO; /* verbs of a dead context */
	fake_ep.error_result = -EIO;
	die();
	/* The watch on the flush. */
	f.slow_unwatch = true;
	later(100 * NS_PER_MS);
	settle();
	later(NS_PER_S);
	settle();
	assert_int_equal(fake_ep.eps, 0);
	assert_int_equal(fake_ep.cqs, 1);
	assert_int_equal(f.watching, 100);
	assert_int_equal(f.unwatches, 1);
	f.watching = 0;
	chan_fd_unwatched(f.ch, 100);
	settle();
	assert_int_equal(fake_ep.cqs, 0);
	/* Nothing is left, but for what the hardware may still do. */
	assert_int_equal(f.watching, 0);
	later(10 * NS_PER_S);
	settle();
	assert_int_equal(f.op_nr, 0);
	assert_true(fake_ep_holds(f.mem));
	assert_true(f.ls[0].failed);
	/* A lease without anything on the wire keeps nothing. */
	push(1, 2, 0);
	turn();
	assert_int_equal(f.op_nr, 1);
	assert_int_equal(f.op[2].result, -ECANCELED);
	chan_arm(f.ch);
	assert_int_equal(fake_ep.armed, 1);
	/* Another context may be seen before the news that the old one is closed. */
	fake_ep_set_context(2, 0);
	settle();
	assert_int_equal(fake_ep.cqs, 0);
	fake_ep_set_context(0, 1);
	turn();
	assert_int_equal(f.op_nr, 3);
	assert_false(fake_ep_holds(f.mem));
	assert_int_equal(f.op[0].result, -ECANCELED);
	assert_true(f.ls[0].flushed_writes);
	assert_int_equal(get(2), -EOPNOTSUPP);
	assert_int_equal(f.ls[2].reason, CHAN_NO_RAIL);
	/* Back: who comes before the queue is made waits for it. */
	fake_ep.free_result = fake_ep.error_result = 0;
	fake_ep_set_context(2, 1);
	fake_ep_set_state(RAIL_UP, false);
	assert_int_equal(get(2), 0);
	settle();
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.ls[2].result, 0);
	assert_int_equal(f.watching, 101);
	assert_int_equal(fake_ep.eps, 9);
	push(2, 3, 0);
	/* The new queue is not armed because the old one was. */
	chan_arm(f.ch);
	assert_int_equal(fake_ep.armed, 2);
	fake_ep_complete_all();
	turn();
	assert_int_equal(f.op[3].result, 0);
	f.slow_unwatch = false;
}

/* It dies again while its queue is being made, and that fails when it is back. */
static void
a_device_that_dies_twice(void **state)
{
	open_chan(8, 4);
	die();
	assert_int_equal(fake_ep.cqs, 0);
	assert_int_equal(f.watching, 0);
	fake_ep_set_context(2, 1);
	turn();
	assert_int_equal(fake_ep_run_jobs(1), 1);
	assert_int_equal(fake_ep.cqs, 1);
	die();
	assert_int_equal(fake_ep.cqs, 0);
	assert_int_equal(fake_ep.eps, 0);
	fake_ep.cq_result = -ENOMEM;
	fake_ep_set_context(3, 2);
	fake_ep_set_state(RAIL_UP, false);
	assert_int_equal(get(0), 0);
	settle();
	assert_int_equal(f.ls[0].result, -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_NO_CHANNEL);
	fake_ep.cq_result = 0;
	later(NS_PER_S);
	settle();
	assert_int_equal(fake_ep.eps, 9);
	assert_int_equal(get(1), 1);
}

/* No queue for it: tried again every second, not for everybody who comes meanwhile, and these are not kept
 * waiting for what has just failed. */
static void
a_queue_that_cannot_be_made(void **state)
{
	open_chan(8, 4);
	die();
	fake_ep.cq_result = -ENOMEM;
	fake_ep.cq_tries = 0;
	fake_ep_set_context(2, 1);
	fake_ep_set_state(RAIL_UP, false);
	settle();
	assert_int_equal(fake_ep.cq_tries, 1);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(get(i), -EOPNOTSUPP);
		assert_int_equal(f.ls[i].reason, CHAN_NO_CHANNEL);
		settle();
	}
	assert_int_equal(fake_ep.cq_tries, 1);
	later(NS_PER_S);
	settle();
	assert_int_equal(fake_ep.cq_tries, 2);
	/* Another context is another matter. */
	fake_ep.cq_result = 0;
	fake_ep_set_state(RAIL_LOST, true);
	fake_ep_set_context(0, 2);
	settle();
	fake_ep_set_context(3, 2);
	fake_ep_set_state(RAIL_UP, false);
	assert_int_equal(get(5), 0);
	settle();
	assert_int_equal(f.ls[5].result, 0);
	assert_int_equal(fake_ep.cq_tries, 3);
}

/* Given up before the core has begun, or about to be: it begins all the same, and serves when the device is
 * back. */
static void
a_device_that_is_dead_at_the_start(void **state)
{
	fake_ep_set_state(RAIL_LOST, false);
	fake_ep_set_context(0, 0);
	open_chan(8, 4);
	assert_int_equal(f.watching, 0);
	assert_int_equal(f.watching, 0);
	settle();
	assert_int_equal(get(0), -EOPNOTSUPP);
	later(5 * NS_PER_S);
	settle();
	assert_int_equal(fake_ep.cqs, 0);
	fake_ep_set_context(2, 1);
	fake_ep_set_state(RAIL_UP, false);
	assert_int_equal(get(1), 0);
	settle();
	assert_int_equal(f.ls[1].result, 0);
	assert_int_equal(f.watching, 101);
	assert_int_equal(fake_ep.eps, 9);
}

static void
a_device_that_dies_at_the_start(void **state)
{
	fake_ep_set_state(RAIL_LOST, false);
	fake_ep.cq_result = -EIO;
	open_chan(8, 4);
	settle();
	assert_int_equal(fake_ep.cqs, 0);
	/* It was not that bad. */
	fake_ep.cq_result = 0;
	fake_ep_set_state(RAIL_UP, true);
	settle();
	later(NS_PER_S);
	settle();
	assert_int_equal(f.watching, 100);
	assert_int_equal(fake_ep.eps, 9);
	assert_int_equal(get(0), 1);
}

/* Channels that stay fenced, as no reset is wanted, do not keep the old context;
 * on the new one they serve. */
static void
fenced_channels_let_go(void **state)
{
	f.conf.qp_reset_on_failure = false;
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	fake_ep_complete(fake_ep_wr(0), WCS_REM_ACCESS);
	settle();
	assert_true(f.ls[0].failed);
	chan_lease_put(f.ch, &f.ls[0]);
	assert_int_equal(fake_ep.stats->eps.free, fake_ep.stats->eps.all - 1);
	fake_ep_set_context(0, 0);
	settle();
	assert_int_equal(fake_ep.eps, 0);
	assert_int_equal(fake_ep.cqs, 0);
	fake_ep_set_context(2, 1);
	fake_ep_set_state(RAIL_UP, false);
	settle();
	assert_int_equal(fake_ep.cqs, 1);
	assert_int_equal(fake_ep.stats->eps.free, fake_ep.stats->eps.all);
}

/* The completion queue is as deep as was configured, also the next one, and holds what the channels post. */
static void
the_queue_is_as_deep_as_configured(void **state)
{
	int channels;

	fake_ep.limits.send_depth = 4;
	f.conf.cq_depth = 100;
	open_chan(8, 4);
	channels = fake_ep.stats->eps.all;
	assert_int_equal(fake_ep.cq_depth, 100);
	die();
	fake_ep.cq_depth = 0;
	/* This firmware takes more at once; the queue does not. */
	fake_ep.limits.send_depth = 100;
	fake_ep_set_context(2, 1);
	fake_ep_set_state(RAIL_UP, false);
	settle();
	assert_int_equal(fake_ep.cq_depth, 100);
	assert_int_equal(get(0), 1);
	for (int i = 0; i < 12; i++)
		push(0, i, 0);
	assert_int_equal(fake_ep_wr_nr(), 100 / channels);
	for (int i = 0; i < 12; i++) {
		fake_ep_complete_all();
		turn();
	}
	assert_int_equal(f.op_nr, 12);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_device_is_opened_anew),
		T(a_device_that_dies_twice),
		T(a_queue_that_cannot_be_made),
		T(a_device_that_is_dead_at_the_start),
		T(a_device_that_dies_at_the_start),
		T(fenced_channels_let_go),
		T(the_queue_is_as_deep_as_configured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
