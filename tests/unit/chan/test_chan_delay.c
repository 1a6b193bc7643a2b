/* SPDX-License-Identifier: Apache-2.0 */
/* chan's logic against scripted verbs: how often the completion queue is looked at. */
#include "rig.h"

static void
arming_defeats_the_delay(void **state)
{
	f.conf.delay_mode = DELAY_BATCH;
	f.conf.delay_interval_ns = 5000;
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	assert_int_equal(chan_poll(f.ch), 0);
	fake_ep_complete_all();
	assert_int_equal(chan_poll(f.ch), 0); /* not yet */
	f.now += 5000;
	assert_int_equal(chan_poll(f.ch), 1);
	f.now += 5000;
	push(0, 1, 0);
	assert_int_equal(chan_poll(f.ch), 0);
	fake_ep_complete_all();
	chan_arm(f.ch);
	assert_int_equal(fake_ep.armed, 1);
	assert_int_equal(chan_poll(f.ch), 1);
}

/* How often the queue is looked at in 200 us, asked each microsecond: while nothing comes, and while a
 * completion comes every tenth. */
static void
count_polls(enum conf_delay_mode mode, int *ret_idle, int *ret_busy)
{
	uint64_t before;

	f.conf.delay_mode = mode;
	f.conf.delay_interval_ns = 5000;
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	chan_poll(f.ch);
	before = fake_ep.polls;
	for (int us = 0; us < 200; us++) {
		f.now += NS_PER_US;
		chan_poll(f.ch);
	}
	*ret_idle = (int)(fake_ep.polls - before);
	fake_ep_complete_all();
	f.now += NS_PER_MS;
	chan_poll(f.ch);
	before = fake_ep.polls;
	for (int us = 0; us < 200; us++) {
		f.now += NS_PER_US;
		if (us % 10 == 0)
			push(0, us / 10 % 4, 0);
		if (us % 10 == 1)
			fake_ep_complete_all();
		chan_poll(f.ch);
	}
	*ret_busy = (int)(fake_ep.polls - before);
}

/* item 108: the four modes, by how often they look. */
static void
delay_none(void **state)
{
	int idle, busy;

	count_polls(DELAY_NONE, &idle, &busy);
	assert_int_equal(idle, 200);
	assert_in_range(busy, 40, 200);
}

static void
delay_batch(void **state)
{
	int idle, busy;

	count_polls(DELAY_BATCH, &idle, &busy);
	/* A pause of 5 us behind every look. */
	assert_in_range(idle, 39, 41);
	assert_in_range(busy, 20, 41);
}

static void
delay_entry(void **state)
{
	int idle, busy;

	count_polls(DELAY_ENTRY, &idle, &busy);
	/* No pause but behind a completion. */
	assert_int_equal(idle, 200);
	assert_in_range(busy, 20, 60);
}

static void
delay_adaptive(void **state)
{
	int idle, busy;

	count_polls(DELAY_ADAPTIVE, &idle, &busy);
	/* 5, 10, 15 and then 20 us, as long as nothing comes; no pause behind a completion. */
	assert_in_range(idle, 11, 14);
	assert_in_range(busy, 20, 60);
	assert_true(busy > idle);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(arming_defeats_the_delay), T(delay_none), T(delay_batch), T(delay_entry), T(delay_adaptive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
