/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases by a transport that connects an endpoint to its target before it takes work: in time, late, in vain,
 * for somebody who waits no more, on a device that dies meanwhile.  DC has none of this; tests/fake/fake_ep.c
 * checks that what is posted on is connected, and that nothing is connected twice without a reset.
 */
#include "rig.h"

static int
setup_connecting(void **state)
{
	int r = setup(state);

	fake_ep_connecting();
	return r;
}

/* The core's turn, the helper's one job, the core's turn. */
static void
one_job(void)
{
	turn();
	assert_int_equal(fake_ep_run_jobs(1), 1);
	turn();
}

static void
a_lease_waits_for_its_connection(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 0);
	assert_int_equal(chan_waiting(f.ch), 1);
	assert_int_equal(f.ch->rail[0].ep[0].state, EP_CONNECTING);
	assert_int_equal(fake_ep.stats->eps.leased, 1);
	turn();
	assert_int_equal(f.lease_nr, 0);
	one_job();
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.ls[0].result, 0);
	assert_int_equal(chan_waiting(f.ch), 0);
	assert_int_equal(fake_ep.connects, 1);
	push(0, 0, 0);
	assert_int_equal(fake_ep.writes, 1);
	fake_ep_complete_all();
	turn();
	assert_int_equal(f.op[0].result, 0);
	/* Given back, it is connected to somebody: nobody else has it before it was reset. */
	chan_lease_put(f.ch, &f.ls[0]);
	assert_int_equal(fake_ep.stats->eps.leased, 0);
	assert_int_equal(fake_ep.stats->eps.free, 8);
	settle();
	assert_int_equal(fake_ep.resets, 1);
	assert_int_equal(fake_ep.stats->eps.free, 9);
	assert_int_equal(get(1), 0);
	settle();
	assert_int_equal(f.ls[1].result, 0);
	assert_int_equal(fake_ep.connects, 2);
}

/* The target first, the connection then. */
static void
after_a_target_that_is_made(void **state)
{
	fake_ep.target_result = 0;
	open_chan(8, 4);
	assert_int_equal(get(0), 0);
	settle();
	assert_int_equal(fake_ep.connects, 0);
	fake_ep_target_answer(0);
	turn();
	assert_int_equal(f.lease_nr, 0);
	one_job();
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.ls[0].result, 0);
}

static void
who_cannot_be_connected_is_declined(void **state)
{
	open_chan(8, 4);
	fake_ep.connect_result = -ETIMEDOUT;
	assert_int_equal(get(0), 0);
	settle();
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.ls[0].result, -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_UNREACHABLE);
	assert_int_equal(fake_ep.targets, 0);
	assert_int_equal(chan_waiting(f.ch), 0);
	assert_int_equal(fake_ep.resets, 1); /* half connected is connected */
	assert_int_equal(fake_ep.stats->eps.free, 9);
	fake_ep.connect_result = 0;
	assert_int_equal(get(0), 0);
	settle();
	assert_int_equal(f.ls[0].result, 0);
}

/* One that is late delays nobody but itself and who needs its channel. */
static void
a_late_one_delays_nobody(void **state)
{
	open_chan(8, 16);
	assert_int_equal(get(0), 0);
	assert_int_equal(get(1), 0);
	assert_int_equal(fake_ep_job_nr(), 2);
	/* The first of the helper's jobs takes its time; who has a channel works on meanwhile. */
	one_job();
	assert_int_equal(f.lease_nr, 1);
	for (int i = 0; i < 3; i++) {
		push(0, i, 0);
		fake_ep_complete_all();
		turn();
		assert_int_equal(f.op[i].result, 0);
	}
	for (int i = 2; i < 8; i++)
		assert_int_equal(get(i), 0);
	later(NS_PER_S);
	assert_int_equal(f.lease_nr, 1);
	settle();
	assert_int_equal(f.lease_nr, 8);
	for (int i = 0; i < 8; i++)
		assert_int_equal(f.order[i], i);
}

/* Waiting for a connection is waiting: the queue's bound holds for it. */
static void
the_queue_is_bounded(void **state)
{
	open_chan(8, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(get(i), 0);
	assert_int_equal(get(3), -EAGAIN);
	assert_int_equal(fake_ep.targets, 3);
	one_job();
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(get(3), 0);
	settle();
	assert_int_equal(f.lease_nr, 4);
}

/* All channels taken: the next gets one that was reset and connected for it. */
static void
a_channel_changes_hands(void **state)
{
	open_chan(8, 16);
	for (int i = 0; i < 9; i++)
		assert_int_equal(get(i), 0);
	settle();
	assert_int_equal(f.lease_nr, 8);
	assert_int_equal(fake_ep.connects, 8);
	chan_lease_put(f.ch, &f.ls[2]);
	settle();
	assert_int_equal(f.lease_nr, 9);
	assert_int_equal(f.order[8], 8);
	assert_int_equal(f.ls[8].result, 0);
	push(8, 0, 0);
	assert_int_equal(fake_ep.writes, 1);
	fake_ep_complete_all();
	turn();
}

/* Cancelled while the helper connects: the target stays until it has answered, done() never comes. */
static void
cancelled_meanwhile(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 0);
	assert_int_equal(get(1), 0);
	turn();
	chan_lease_cancel(f.ch, &f.ls[0]);
	memset(&f.ls[0], 0x5a, sizeof f.ls[0]); /* the request is gone */
	assert_int_equal(chan_waiting(f.ch), 1);
	assert_int_equal(fake_ep.targets, 2);
	settle();
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.order[0], 1);
	assert_int_equal(fake_ep.targets, 1);
	assert_int_equal(fake_ep.resets, 1);
	assert_int_equal(fake_ep.stats->eps.free, 8);
	memset(&f.ls[0], 0, sizeof f.ls[0]);
	f.ls[0].done = on_lease;
	assert_int_equal(get(0), 0);
	settle();
	assert_int_equal(f.ls[0].result, 0);
}

/* Granted, and cancelled before it heard. */
static void
cancelled_when_connected(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 0);
	assert_int_equal(fake_ep_run_jobs(1), 1);
	assert_int_equal(mailbox_run(&f.ch->inbox, 0), 1);
	assert_int_equal(chan_waiting(f.ch), 0);
	chan_lease_cancel(f.ch, &f.ls[0]);
	settle();
	assert_int_equal(f.lease_nr, 0);
	assert_int_equal(fake_ep.targets, 0);
	assert_int_equal(fake_ep.stats->eps.free, 9);
}

/* A call that does not return: the rail is lost until it does, and then its lease is declined. */
static void
a_connect_that_hangs_loses_the_rail(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 0);
	later(5 * NS_PER_S - 1);
	assert_int_equal(fake_ep_stuck(), 0);
	later(1);
	assert_int_equal(fake_ep_stuck(), 1);
	assert_int_equal(rdma_rail_state(&fake_ep.rail), RAIL_LOST);
	assert_int_equal(get(1), -EOPNOTSUPP);
	assert_int_equal(f.ls[1].reason, CHAN_NO_RAIL);
	assert_int_equal(f.lease_nr, 0);
	settle();
	assert_int_equal(fake_ep_stuck(), 0);
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.ls[0].result, 0); /* the rail was well again when it heard */
}

static void
the_rail_goes_down_meanwhile(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 0);
	fake_ep_set_state(RAIL_DOWN, false);
	settle();
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.ls[0].result, -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_NO_RAIL);
	assert_int_equal(fake_ep.targets, 0);
	fake_ep_set_state(RAIL_UP, false);
	settle();
	assert_int_equal(get(0), 0);
	settle();
	assert_int_equal(f.ls[0].result, 0);
}

/* Its queue pairs are gone, and the rail is well again before the helper has answered: another channel. */
static void
the_device_renews_its_queue_pairs_meanwhile(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 0);
	fake_ep_set_state(RAIL_UP, true);
	settle();
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.ls[0].result, 0);
	assert_int_equal(fake_ep.connects, 2);
	assert_int_equal(fake_ep.destroyed, 9);
	push(0, 0, 0);
	assert_int_equal(fake_ep.writes, 1);
	fake_ep_complete_all();
	turn();
	assert_int_equal(f.op[0].result, 0);
}

/* The whole context goes: everything on it is given back, connecting or not. */
static void
the_context_dies_meanwhile(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 0);
	fake_ep_set_state(RAIL_LOST, true);
	fake_ep_set_context(0, 0);
	settle();
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.ls[0].reason, CHAN_NO_RAIL);
	assert_int_equal(fake_ep.eps, 0);
	assert_int_equal(fake_ep.cqs, 0);
	fake_ep_set_context(2, 1);
	fake_ep_set_state(RAIL_UP, false);
	settle();
	assert_int_equal(get(0), 0);
	settle();
	assert_int_equal(f.ls[0].result, 0);
}

/* An error on the wire: drained, reset once, connected to the next. */
static void
a_bad_completion_resets_once(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 0);
	settle();
	push(0, 0, 0);
	fake_ep_complete(fake_ep_wr(0), WCS_RETRY_EXC);
	turn();
	assert_int_equal(f.op[0].result, -EIO);
	chan_lease_put(f.ch, &f.ls[0]);
	settle();
	assert_int_equal(fake_ep.resets, 1);
	assert_int_equal(fake_ep.stats->eps.free, 9);
	assert_int_equal(get(0), 0);
	settle();
	assert_int_equal(f.ls[0].result, 0);
}

#define C(name) cmocka_unit_test_setup_teardown(name, setup_connecting, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		C(a_lease_waits_for_its_connection),
		C(after_a_target_that_is_made),
		C(who_cannot_be_connected_is_declined),
		C(a_late_one_delays_nobody),
		C(the_queue_is_bounded),
		C(a_channel_changes_hands),
		C(cancelled_meanwhile),
		C(cancelled_when_connected),
		C(a_connect_that_hangs_loses_the_rail),
		C(the_rail_goes_down_meanwhile),
		C(the_device_renews_its_queue_pairs_meanwhile),
		C(the_context_dies_meanwhile),
		C(a_bad_completion_resets_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
