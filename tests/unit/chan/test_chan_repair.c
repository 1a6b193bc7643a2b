/* SPDX-License-Identifier: Apache-2.0 */
/* chan's logic against scripted verbs: what becomes of an initiator, and of a device, in every way that one
 * can fail. */
#include "rig.h"

/* draining -> destroying -> creating -> free: a lost completion */
static void
a_lost_completion_is_ended_by_destruction(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	fake_ep.no_flush = true;
	chan_lease_fail(f.ch, &f.ls[0]);
	settle();
	later(99 * NS_PER_MS);
	assert_int_equal(fake_ep_job_nr(), 0);
	later(NS_PER_MS);
	assert_int_equal(fake_ep_job_nr(), 1);
	assert_int_equal(f.op_nr, 0); /* its buffer may still be touched */
	assert_int_equal(fake_ep_run_jobs(1), 1);
	turn();
	assert_int_equal(f.op_nr, 1);
	assert_false(fake_ep_holds(f.mem));
	assert_int_equal(f.op[0].result, -ECANCELED);
	assert_true(f.ls[0].flushed_writes);
	chan_lease_put(f.ch, &f.ls[0]);
	settle();
	assert_int_equal(fake_ep.stats->ep_recreated, 1);
	assert_int_equal(fake_ep.stats->eps.free, 9);
}

static void
a_destroy_that_hangs_loses_the_rail_until_it_returns(void **state)
{
	open_chan(8, 4);
	for (int i = 0; i < 8; i++)
		assert_int_equal(get(i), 1);
	assert_int_equal(get(8), 0);
	push(0, 0, 0);
	fake_ep.no_flush = true;
	chan_lease_fail(f.ch, &f.ls[0]);
	settle();
	later(100 * NS_PER_MS);
	later(5 * NS_PER_S - 1);
	assert_int_equal(fake_ep_stuck(), 0);
	later(1);
	assert_int_equal(fake_ep_stuck(), 1);
	turn();
	assert_int_equal(f.ls[8].result, -EOPNOTSUPP);
	assert_int_equal(f.ls[8].reason, CHAN_NO_RAIL);
	assert_int_equal(f.op_nr, 0);
	later(3600 * NS_PER_S);
	assert_int_equal(f.op_nr, 0); /* the buffer stays held, however long */
	settle();
	assert_int_equal(fake_ep_stuck(), 0);
	assert_int_equal(f.op_nr, 1);
	assert_int_equal(get(9), 1);
}

static void
a_destroy_that_fails_is_tried_again(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	fake_ep.no_flush = true;
	fake_ep.free_result = -EIO;
	chan_lease_fail(f.ch, &f.ls[0]);
	settle();
	later(100 * NS_PER_MS);
	settle();
	assert_int_equal(fake_ep_stuck(), 1);
	assert_int_equal(f.op_nr, 0);
	fake_ep.free_result = 0;
	later(NS_PER_S);
	settle();
	assert_int_equal(fake_ep_stuck(), 0);
	assert_int_equal(f.op_nr, 1);
	assert_int_equal(fake_ep.stats->eps.free, 9);
}

static void
a_reset_that_fails_makes_a_new_one(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	fake_ep.reset_result = -EIO;
	fake_ep.new_result = -ENOMEM;
	fake_ep_complete(fake_ep_wr(0), WCS_FATAL);
	settle();
	assert_int_equal(fake_ep.destroyed, 1);
	assert_int_equal(fake_ep.stats->eps.recovering, 1);
	later(NS_PER_S);
	settle();
	fake_ep.new_result = 0;
	later(NS_PER_S);
	settle();
	assert_int_equal(fake_ep.stats->eps.recovering, 0);
	assert_int_equal(fake_ep.stats->eps.free, 9);
}

/* A port that has no address yet: nothing is served, and then it is. */
static void
channels_that_cannot_be_made_yet(void **state)
{
	log_set_level((enum log_level) - 1);
	fake_ep.new_result = -EINVAL;
	open_chan(8, 4);
	assert_int_equal(get(0), -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_NO_CHANNEL);
	later(NS_PER_S);
	settle();
	assert_int_equal(get(0), -EOPNOTSUPP);
	fake_ep.new_result = 0;
	later(NS_PER_S);
	settle();
	assert_int_equal(fake_ep.stats->eps.free, 9);
	assert_int_equal(get(0), 1);
}

static void
without_reset_it_stays_fenced(void **state)
{
	f.conf.qp_reset_on_failure = false;
	open_chan(8, 4);
	for (int i = 0; i < 9; i++) {
		assert_int_equal(get(i), 1);
		push(i, 0, 0);
		fake_ep_complete(fake_ep_wr(0), WCS_REM_OP);
		settle();
		chan_lease_put(f.ch, &f.ls[i]);
	}
	assert_int_equal(get(9), -EOPNOTSUPP);
	assert_int_equal(f.ls[9].reason, CHAN_NO_CHANNEL);
	assert_int_equal(fake_ep.resets, 0);
}

/* Who waits for a channel when the last one is lost is declined, not forgotten. */
static void
those_who_wait_hear_of_the_end(void **state)
{
	f.conf.qp_reset_on_failure = false;
	open_chan(8, 4);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(get(i), 1);
		push(i, i, 0);
	}
	assert_int_equal(get(8), 0);
	assert_int_equal(get(9), 0);
	for (int i = 0; i < 8; i++) {
		fake_ep_complete(fake_ep_wr(0), WCS_REM_OP);
		settle();
		chan_lease_put(f.ch, &f.ls[i]);
		settle();
	}
	/* The spare serves one of them, and is lost as well. */
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.ls[8].result, 0);
	push(8, 8, 0);
	fake_ep_complete(fake_ep_wr(0), WCS_REM_OP);
	settle();
	assert_int_equal(f.lease_nr, 2);
	assert_int_equal(f.ls[9].result, -EOPNOTSUPP);
	assert_int_equal(f.ls[9].reason, CHAN_NO_CHANNEL);
	chan_lease_put(f.ch, &f.ls[8]);
}

/* item 111 */
static void
a_lost_device_declines_and_comes_back(void **state)
{
	open_chan(8, 4);
	for (int i = 0; i < 8; i++)
		assert_int_equal(get(i), 1);
	assert_int_equal(get(8), 0);
	push(0, 0, 0);
	fake_ep_set_state(RAIL_LOST, true);
	settle();
	assert_int_equal(f.ls[8].reason, CHAN_NO_RAIL);
	assert_true(f.ls[0].failed);
	assert_int_equal(f.op_nr, 1);
	assert_int_equal(get(9), -EOPNOTSUPP);
	for (int i = 0; i < 8; i++)
		chan_lease_put(f.ch, &f.ls[i]);
	settle();
	fake_ep_set_state(RAIL_UP, false);
	settle();
	assert_int_equal(fake_ep.destroyed, 9); /* every queue pair of before */
	assert_int_equal(fake_ep.stats->eps.free, 9);
	assert_int_equal(get(9), 1);
	push(9, 1, 0);
	fake_ep_complete_all();
	turn();
	assert_int_equal(f.op[1].result, 0);
}

/* A lost device makes no queue pairs either; when it is back nobody is declined because they come a second
 * later. */
static void
channels_are_there_when_the_device_is_back(void **state)
{
	open_chan(8, 4);
	fake_ep.new_result = -EIO;
	fake_ep_set_state(RAIL_LOST, true);
	settle();
	assert_int_equal(fake_ep.destroyed, 9);
	assert_int_equal(fake_ep.stats->eps.free, 0);
	fake_ep.new_result = 0;
	fake_ep_set_state(RAIL_UP, false);
	assert_int_equal(get(0), 0); /* even before the chan has heard of it */
	settle();
	assert_int_equal(f.ls[0].result, 0);
	assert_int_equal(fake_ep.stats->eps.free, 8);
	assert_int_equal(fake_ep.stats->eps.recovering, 0);
}

static void
strays_harm_nobody(void **state)
{
	uint64_t id;

	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	push(0, 1, 0);
	id = fake_ep_wr(0)->wr.wr_id;
	fake_ep_complete(fake_ep_wr(0), WCS_SUCCESS);
	fake_ep_stray(id, WCS_SUCCESS); /* twice */
	fake_ep_stray(id, WCS_REM_ACCESS);
	fake_ep_stray(~0ull, WCS_REM_ACCESS);
	fake_ep_stray(77ull << 32, WCS_SUCCESS);
	turn();
	assert_int_equal(f.op_nr, 1);
	assert_false(f.ls[0].failed);
	fake_ep_complete_all();
	turn();
	assert_int_equal(f.op_nr, 2);
}

static void
a_queue_pair_that_takes_no_work(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	fake_ep.post_result = -ENOMEM;
	push(0, 0, 0);
	assert_int_equal(f.op_nr, 0);
	turn();
	assert_int_equal(f.op_nr, 1);
	assert_int_equal(f.op[0].result, -EIO);
	assert_int_equal(f.op[0].status, WCS_GENERAL);
	assert_int_equal(f.ls[0].status, WCS_GENERAL);
	assert_int_equal(f.ls[0].outstanding, 0);
	assert_false(chan_busy(f.ch));
	assert_true(f.ls[0].failed);
	assert_false(f.ls[0].flushed_writes);
	settle();
	assert_int_equal(fake_ep.resets, 1);
	assert_int_equal(fake_ep.stats->eps.leased, 0);
	assert_int_equal(fake_ep.stats->eps.recovering, 0);
	assert_int_equal(fake_ep.stats->eps.free, fake_ep.stats->eps.all);
}

/* The same with others before it and behind: each hears what became of its own, the lease of the first. */
static void
a_queue_pair_that_takes_no_more_work(void **state)
{
	fake_ep.limits.read_depth = 1;
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	pull(0, 1, 0);
	pull(0, 2, 0);
	push(0, 3, 0);
	assert_int_equal(fake_ep_wr_nr(), 2);
	fake_ep.post_result = -ENOMEM;
	fake_ep_complete(fake_ep_wr(1), WCS_SUCCESS);
	turn();
	assert_int_equal(f.op_nr, 3);
	assert_int_equal(f.op[1].status, WCS_SUCCESS);
	assert_int_equal(f.op[2].status, WCS_GENERAL);
	assert_int_equal(f.op[2].result, -EIO);
	assert_int_equal(f.op[3].status, WCS_FLUSHED);
	assert_int_equal(f.op[3].result, -ECANCELED);
	assert_int_equal(f.ls[0].status, WCS_GENERAL);
	assert_int_equal(f.ls[0].outstanding, 1);
	assert_true(chan_busy(f.ch));
	settle();
	assert_int_equal(f.op_nr, 4);
	assert_int_equal(f.op[0].status, WCS_FLUSHED);
	assert_int_equal(f.ls[0].status, WCS_GENERAL);
	assert_true(f.ls[0].flushed_writes);
	assert_false(chan_busy(f.ch));
	assert_int_equal(fake_ep.resets, 1);
	assert_int_equal(fake_ep.stats->eps.free, fake_ep.stats->eps.all);
	/* Reads have their places again, too. */
	fake_ep.post_result = 0;
	for (int i = 1; i < 9; i++) {
		assert_int_equal(get(i), 1);
		pull(i, i, 0);
	}
	assert_int_equal(fake_ep_wr_nr(), 8);
	fake_ep_complete_all();
}

/*
 * The core ends while a call hangs in the kernel: the chan is left alone, and when the call returns after
 * all, nobody is rung: the core's mailbox is gone by then.
 */
static void
a_core_that_ends_before_a_call_returns(void **state)
{
	static struct chan *left[2]; /* reachable */
	bool rung = *state;

	open_chan(8, 4);
	settle();
	if (rung)
		fake_ep_set_state(RAIL_LOST, true); /* its bell is on its way to the core */
	assert_int_equal(get(0), rung ? -EOPNOTSUPP : 1);
	if (!rung) {
		push(0, 0, 0);
		fake_ep_complete(fake_ep_wr(0), WCS_REM_ACCESS);
		turn();
		chan_lease_put(f.ch, &f.ls[0]);
	} else {
		turn();
		fake_ep_set_state(RAIL_UP, true);
	}
	assert_true(fake_ep_job_nr() > 0);
	left[rung] = f.ch;
	assert_non_null(left[rung]);
	f.ch->free_patience_ms = 20;
	chan_free(f.ch);
	/* As cores_free() does. */
	mailbox_run(&f.mb, 0);
	mailbox_fini(&f.mb);
	memset(&f.mb, 0xa5, sizeof f.mb);
	assert_true(fake_ep_run_jobs(0) > 0);
	assert_int_equal(fake_ep_run_jobs(0), 0);
	for (size_t i = 0; i < sizeof f.mb; i++)
		assert_int_equal(((unsigned char *)&f.mb)[i], 0xa5);
	clock_fake(NULL);
}

/* free -> resetting -> free, leased -> put -> resetting -> free: each once, without a failure. */
static void
another_path_is_taken_when_free(void **state)
{
	open_chan(8, 4);
	settle();
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	atomic_fetch_add(&fake_ep.rail.path, 1);
	watches_notify(&fake_ep.rd);
	settle();
	assert_int_equal(fake_ep.resets, 8); /* of nine */
	assert_int_equal(fake_ep.stats->eps.free, 8);
	fake_ep_complete_all();
	settle();
	assert_int_equal(f.op[0].result, 0);
	chan_lease_put(f.ch, &f.ls[0]);
	settle();
	assert_int_equal(fake_ep.resets, 9);
	assert_int_equal(get(0), 1);
	chan_lease_put(f.ch, &f.ls[0]);
	watches_notify(&fake_ep.rd);
	settle();
	assert_int_equal(fake_ep.resets, 9);
	assert_int_equal(fake_ep.destroyed, 0);
}

/* A core that began without a rail gets its channels when one comes. */
static void
a_rail_comes_later(void **state)
{
	fake_ep.rd.rail_nr = 0;
	open_chan(8, 4);
	settle();
	assert_int_equal(get(0), -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_NO_DEVICE);
	fake_ep.rd.rail_nr = 1;
	watches_notify(&fake_ep.rd);
	turn();
	assert_int_equal(fake_ep.eps, 0); /* nothing that may block */
	settle();
	assert_int_equal(fake_ep.eps, 9);
	assert_int_equal(get(0), 1);
}

/* A device with room for fewer than all cores ask for: who has more than the share gives it back when nobody holds it, and takes it
 * again when there may be room. */
static void
a_share_is_kept(void **state)
{
	open_chan(8, 4);
	for (int i = 0; i < 6; i++)
		assert_int_equal(get(i), 1);
	rdma_rail_share(&fake_ep.rail, 4, f.now + 30 * NS_PER_S);
	settle();
	assert_int_equal(fake_ep.stats->eps.free, 0);
	assert_int_equal(fake_ep.stats->eps_made, 6);
	for (int i = 0; i < 6; i++)
		chan_lease_put(f.ch, &f.ls[i]);
	settle();
	assert_int_equal(fake_ep.stats->eps.free, 4);
	assert_int_equal(fake_ep.eps, 4);
	for (int i = 0; i < 29; i++) {
		later(NS_PER_S);
		settle();
		assert_int_equal(fake_ep.eps, 4);
	}
	for (int i = 0; i < 3; i++) {
		later(NS_PER_S);
		settle();
	}
	assert_int_equal(fake_ep.stats->eps.free, 9);
	assert_int_equal(fake_ep.stats->eps_made, 9);
}

static void
a_core_without_asks_for_its_share(void **state)
{
	atomic_store(&fake_ep.stats->eps_made, 9); /* another core's */
	fake_ep.new_result = -ENOMEM;
	open_chan(8, 4);
	f.ch->core_nr = 2;
	fake_ep.stats->eps_share = 0;
	later(NS_PER_S);
	settle();
	assert_int_equal(fake_ep.stats->eps_share, 4);
	fake_ep.new_result = 0;
	for (int i = 0; i < 3; i++) {
		later(NS_PER_S);
		settle();
	}
	assert_int_equal(fake_ep.stats->eps_made, 9 + 4);
	assert_int_equal(fake_ep.stats->eps.free, 4);
	/* One that has its share takes nothing from anybody. */
	atomic_store(&fake_ep.stats->eps_made, 4 + 4);
	fake_ep.new_result = -ENOMEM;
	fake_ep.stats->eps_share = 0;
	later(NS_PER_S);
	settle();
	assert_int_equal(fake_ep.stats->eps_share, 0);
}

int
main(void)
{
	static bool rung = true;
	const struct CMUnitTest tests[] = {
		T(a_lost_completion_is_ended_by_destruction),
		T(a_destroy_that_hangs_loses_the_rail_until_it_returns),
		T(a_destroy_that_fails_is_tried_again),
		T(a_reset_that_fails_makes_a_new_one),
		T(channels_that_cannot_be_made_yet),
		T(without_reset_it_stays_fenced),
		T(those_who_wait_hear_of_the_end),
		T(a_lost_device_declines_and_comes_back),
		T(channels_are_there_when_the_device_is_back),
		T(strays_harm_nobody),
		T(a_queue_pair_that_takes_no_work),
		T(a_queue_pair_that_takes_no_more_work),
		T(another_path_is_taken_when_free),
		T(a_rail_comes_later),
		T(a_share_is_kept),
		T(a_core_without_asks_for_its_share),
		cmocka_unit_test_setup(a_core_that_ends_before_a_call_returns, setup),
		{ "... and its bell was rung", a_core_that_ends_before_a_call_returns, setup, NULL, &rung },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
