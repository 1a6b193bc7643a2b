/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chan's logic against scripted verbs: who gets a channel, what is posted, what ends when a lease is given
 * up.  What becomes of an initiator is in test_chan_repair.c, the device itself in test_wire.c.
 */
#include "rig.h"

/* item 17, item 18, item 19, claim TM1: one READ or WRITE for each piece, at ADDR + at, with the token's
 * key. */
static void
posts_what_was_asked(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	chan_push(f.ch, &f.ls[0], &f.op[0], &f.buf, 17, 100, 4096);
	assert_int_equal(fake_ep.writes, 1);
	assert_int_equal(fake_ep.reads, 0);
	assert_int_equal(fake_ep_wr(0)->wr.remote, 0x10000 + 4096);
	assert_int_equal(fake_ep_wr(0)->wr.rkey, 7);
	assert_int_equal(fake_ep_wr(0)->target.nr, 9);
	assert_int_equal(fake_ep_wr(0)->wr.sge_nr, 1);
	assert_int_equal(fake_ep_wr(0)->sge[0].region, 3);
	assert_ptr_equal(fake_ep_wr(0)->sge[0].mem, f.mem + 17);
	/* The last byte of the window. */
	chan_pull(f.ch, &f.ls[0], &f.op[1], &f.buf, 0, 100, (1 << 20) - 100);
	assert_int_equal(fake_ep.reads, 1);
	assert_true(chan_busy(f.ch));
	fake_ep_complete_all();
	assert_int_equal(f.op_nr, 0);
	turn();
	assert_int_equal(f.op_nr, 2);
	assert_int_equal(f.op[0].result | f.op[1].result, 0);
	assert_int_equal(f.ls[0].outstanding, 0);
	assert_false(chan_busy(f.ch));
	assert_int_equal(fake_ep.stats->written_bytes, 100);
	assert_int_equal(fake_ep.stats->read_ops, 1);
	assert_int_equal(fake_ep.stats->status[WCS_SUCCESS], 2); /* item 109 */
}

/* item 32 */
static void
reads_are_limited_and_stay_in_order(void **state)
{
	fake_ep.limits.read_depth = 4;
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	for (int i = 0; i < 10; i++)
		pull(0, i, (uint64_t)i * 1000);
	assert_int_equal(fake_ep_wr_nr(), 4);
	assert_int_equal(f.ls[0].outstanding, 10);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(fake_ep_wr(0)->wr.remote, 0x10000 + i * 1000);
		fake_ep_complete(fake_ep_wr(0), WCS_SUCCESS);
		turn();
		assert_int_equal(f.op_nr, i + 1);
		assert_true(fake_ep_wr_nr() <= 4);
	}
	/* WRITEs have the whole depth. */
	for (int i = 0; i < 12; i++)
		push(0, i, 0);
	assert_int_equal(fake_ep_wr_nr(), 12);
	fake_ep_complete_all();
}

/* No more at once than the queue pair has places, in order, and all of them in the end. */
static void
work_fits_the_queue_pair(void **state)
{
	fake_ep.limits.send_depth = 3;
	fake_ep.limits.read_depth = 16;
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	for (int i = 0; i < 8; i++) {
		if (i % 2)
			push(0, i, (uint64_t)i * 1000);
		else
			pull(0, i, (uint64_t)i * 1000);
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(fake_ep_wr_nr(), i < 6 ? 3 : 8 - i);
		assert_int_equal(fake_ep_wr(0)->wr.remote, 0x10000 + i * 1000);
		fake_ep_complete(fake_ep_wr(0), WCS_SUCCESS);
		turn();
		assert_int_equal(f.op_nr, i + 1);
	}
}

static void
waits_in_order(void **state)
{
	open_chan(8, 56);
	for (int i = 0; i < 64; i++)
		assert_int_equal(get(i), i < 8 ? 1 : 0);
	assert_int_equal(fake_ep.stats->eps.leased, 8);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(f.lease_nr, i < 8 ? i : i < 56 ? i : 56);
		chan_lease_put(f.ch, &f.ls[i]);
		assert_int_equal(f.lease_nr, i < 56 ? i : 56); /* never from inside a call */
		turn();
		if (i < 56)
			assert_int_equal(f.order[i], i + 8);
	}
}

/* A client with many in the queue delays another by one of them, whoever was there first. */
static void
clients_take_turns(void **state)
{
	static const int client[] = { 1, 1, 1, 1, 1, 1, 2, 2, 3, 1 };
	static const int order[] = { 8, 14, 16, 9, 15, 11, 12, 13, 17 };
	int heard = 0;

	open_chan(8, 56);
	for (int i = 0; i < 18; i++) {
		f.ls[i].client = (uint8_t)(i < 8 ? 1 : client[i - 8]);
		assert_int_equal(get(i), i < 8);
	}
	chan_lease_cancel(f.ch, &f.ls[10]);
	for (int i = 0; i < 9; i++) {
		chan_lease_put(f.ch, &f.ls[i == 8 ? f.order[0] : i]);
		turn();
		assert_int_equal(f.lease_nr, ++heard);
		assert_int_equal(f.order[i], order[i]);
	}
	/* Of a client whose last one was cancelled nobody waits. */
	f.ls[0].client = 1;
	f.ls[1].client = 2;
	assert_int_equal(get(0), 0);
	assert_int_equal(get(1), 0);
	chan_lease_cancel(f.ch, &f.ls[0]);
	chan_lease_put(f.ch, &f.ls[14]);
	turn();
	assert_int_equal(f.order[heard], 1);
}

/* Also those that waited for an address handle first. */
static void
clients_take_turns_behind_handles(void **state)
{
	open_chan(8, 56);
	for (int i = 0; i < 8; i++)
		assert_int_equal(get(i), 1);
	fake_ep.target_result = 0;
	for (int i = 8; i < 12; i++) {
		f.ls[i].client = i == 11;
		assert_int_equal(get(i), 0);
	}
	assert_int_equal(fake_ep_target_answer(0), 4);
	turn();
	assert_int_equal(f.lease_nr, 0);
	for (int i = 0; i < 3; i++)
		chan_lease_put(f.ch, &f.ls[i]);
	turn();
	assert_int_equal(f.lease_nr, 3);
	assert_int_equal(f.order[0], 8);
	assert_int_equal(f.order[1], 11);
	assert_int_equal(f.order[2], 9);
}

static void
a_full_queue_says_so(void **state)
{
	open_chan(8, 2);
	for (int i = 0; i < 8; i++)
		assert_int_equal(get(i), 1);
	assert_int_equal(get(8), 0);
	assert_int_equal(get(9), 0);
	assert_int_equal(get(10), -EAGAIN);
	/* A cancelled one makes room and is never heard of. */
	chan_lease_cancel(f.ch, &f.ls[8]);
	assert_int_equal(get(10), 0);
	chan_lease_put(f.ch, &f.ls[0]);
	chan_lease_cancel(f.ch, &f.ls[9]); /* granted, but not told yet: the channel goes to the next */
	turn();
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.order[0], 10);
}

static void
address_handles_are_waited_for(void **state)
{
	fake_ep.target_result = 0;
	open_chan(8, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(get(i), 0);
	assert_int_equal(get(4), -EAGAIN);
	chan_lease_cancel(f.ch, &f.ls[1]);
	/* A reachable target does not stand behind them. */
	fake_ep.target_result = 1;
	assert_int_equal(get(5), 1);
	/* The refused one and the cancelled one wait no more; whose answer is on its way gives its reference back. */
	fake_ep.target_result = 0;
	assert_int_equal(fake_ep_target_answer(0), 3);
	assert_int_equal(get(1), 0);
	assert_int_equal(fake_ep_target_answer(0), 1);
	chan_lease_cancel(f.ch, &f.ls[1]);
	assert_int_equal(fake_ep.targets, 5);
	turn();
	assert_int_equal(fake_ep.targets, 4);
	assert_int_equal(f.lease_nr, 3);
	assert_int_equal(f.ls[0].result | f.ls[2].result | f.ls[3].result, 0);
	assert_int_equal(get(1), 0);
	fake_ep_target_answer(-EHOSTUNREACH);
	turn();
	assert_int_equal(f.ls[1].result, -EOPNOTSUPP);
	assert_int_equal(f.ls[1].reason, CHAN_UNREACHABLE);
	fake_ep.target_result = -EHOSTUNREACH;
	assert_int_equal(get(1), -EOPNOTSUPP);
	assert_int_equal(f.ls[1].reason, CHAN_UNREACHABLE);
}

/* A target that is not made in time has become a decline; its waiting place is free at once, its answer comes to nobody. */
static void
slow_targets_are_declined(void **state)
{
	fake_ep.target_result = 0;
	open_chan(8, 4);
	for (int round = 0; round < 20; round++) {
		f.lease_nr = 0;
		for (int i = 0; i < 4; i++)
			assert_int_equal(get(i), 0);
		later(RDMA_TARGET_WAIT_NS - 1);
		assert_int_equal(f.lease_nr, 0);
		assert_int_equal(chan_waiting(f.ch), 4);
		later(1);
		assert_int_equal(f.lease_nr, 4);
		for (int i = 0; i < 4; i++) {
			assert_int_equal(f.ls[i].result, -EOPNOTSUPP);
			assert_int_equal(f.ls[i].reason, CHAN_UNREACHABLE);
		}
		assert_int_equal(chan_waiting(f.ch), 0);
		assert_int_equal(fake_ep_target_answer(0), 0);
	}
	/* The answer and the end of patience at once: one of them counts. */
	assert_int_equal(get(0), 0);
	assert_int_equal(fake_ep_target_answer(0), 1);
	f.now += RDMA_TARGET_WAIT_NS;
	timers_run(&f.timers, f.now);
	turn();
	assert_int_equal(f.ls[0].result, -EOPNOTSUPP);
	assert_int_equal(fake_ep.targets, 0);
}

static void
declines_have_reasons(void **state)
{
	static const struct {
		bool down, infiniband, without_gid;
		int result;
		enum chan_reason reason;
	} row[] = { { true, false, false, -EOPNOTSUPP, CHAN_NO_RAIL },
		    { false, true, false, -EOPNOTSUPP, CHAN_NEEDS_ROUTER },
		    { false, false, true, -EINVAL, CHAN_OK } };

	open_chan(8, 4);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		fake_ep_set_state(row[i].down ? RAIL_DOWN : RAIL_UP, false);
		fake_ep.rail.view.is_ethernet = !row[i].infiniband;
		f.tok.have_gid = !row[i].without_gid;
		f.ls[0].reason = CHAN_OK;
		assert_int_equal(get(0), row[i].result);
		assert_int_equal(f.ls[0].reason, row[i].reason);
	}
	f.tok.kind = TOKEN_OFI;
	assert_int_equal(get(0), -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_FAMILY);
	for (int k = 0; k < TOKEN_KIND_NR; k++)
		assert_int_equal(chan_serves(f.ch, (enum token_kind)k), k == TOKEN_DC);
	assert_int_equal(fake_ep.posts, 0);
}

static void
without_a_device_all_is_declined(void **state)
{
	fake_ep.rd.rail_nr = 0;
	open_chan(8, 4);
	assert_int_equal(get(0), -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_NO_DEVICE);
	chan_free(f.ch);
	f.conf.mode = RDMA_NONE;
	assert_int_equal(chan_new(&(struct chan_params){ .conf = &f.conf,
							 .mb = &f.mb,
							 .timers = &f.timers,
							 .watch_fd = watch_fd,
							 .core_nr = 1,
							 .pieces_max = 1 },
				  &f.ch),
			 0);
	assert_int_equal(get(0), -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_DISABLED);
	assert_int_equal(f.watching, 0);
	assert_int_equal(chan_poll(f.ch), 0);
}

/* leased -> draining -> resetting -> free; item 29, item 30, item 31 */
static void
a_bad_completion_ends_its_lease_only(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	assert_int_equal(get(1), 1);
	for (int i = 0; i < 3; i++)
		push(0, i, 0);
	push(1, 3, 0);
	fake_ep_complete(fake_ep_wr(1),
			 WCS_RETRY_EXC); /* the second; the first is lost in the confusion: flushed */
	turn();
	assert_int_equal(f.op[1].result, -EIO);
	assert_int_equal(f.op[1].status, WCS_RETRY_EXC);
	assert_int_equal(f.op[1].wc_status, 100 + WCS_RETRY_EXC); /* as the device said it */
	assert_int_equal(f.op[1].vendor_err, 200 + WCS_RETRY_EXC);
	assert_int_equal(f.op[0].result, -ECANCELED);
	assert_int_equal(f.op[2].result, -ECANCELED);
	assert_true(f.ls[0].failed);
	assert_true(f.ls[0].flushed_writes);
	assert_int_equal(f.ls[0].status, WCS_RETRY_EXC);
	assert_int_equal(f.ls[0].outstanding, 0);
	assert_int_equal(fake_ep.forgotten, 1);
	assert_false(f.ls[1].failed);
	assert_int_equal(fake_ep_wr_nr(), 1);
	/* Posting on: never reaches the wire, ends later. */
	push(0, 0, 0);
	assert_int_equal(f.op_nr, 3);
	turn();
	assert_int_equal(f.op_nr, 4);
	assert_int_equal(f.op[0].result, -ECANCELED);
	assert_int_equal(f.op[0].wc_status, 0); /* of which the device knows nothing */
	assert_int_equal(f.op[0].vendor_err, 0);
	chan_lease_put(f.ch, &f.ls[0]);
	assert_int_equal(fake_ep.stats->eps.recovering, 1);
	settle();
	assert_int_equal(fake_ep.resets, 1);
	assert_int_equal(fake_ep.stats->ep_resets, 1);
	assert_int_equal(fake_ep.stats->eps.recovering, 0);
	assert_int_equal(fake_ep.writes, 4); /* nothing was repeated */
	fake_ep_complete_all();
	turn();
	assert_int_equal(f.op[3].result, 0);
}

static void
spares_cover(void **state)
{
	open_chan(8, 4);
	for (int i = 0; i < 8; i++)
		assert_int_equal(get(i), 1);
	assert_int_equal(get(8), 0);
	push(0, 0, 0);
	fake_ep_complete(fake_ep_wr(0), WCS_REM_ACCESS);
	turn();
	/* The failed one is not back yet, and not even put; the ninth runs. */
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.ls[8].result, 0);
	assert_int_equal(fake_ep_job_nr(), 1);
}

/* item 27, item 28: cancelled, flushed, and heard of only then */
static void
cancel_drains(void **state)
{
	fake_ep.limits.read_depth = 2;
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	for (int i = 0; i < 5; i++)
		pull(0, i, 0);
	chan_lease_fail(f.ch, &f.ls[0]);
	assert_int_equal(f.op_nr, 0);
	turn();
	assert_int_equal(f.op_nr, 3); /* those that were never posted */
	assert_int_equal(f.ls[0].outstanding, 2);
	settle();
	assert_int_equal(fake_ep.errors, 1);
	assert_int_equal(f.op_nr, 5);
	assert_int_equal(f.op[0].result, -ECANCELED);
	assert_false(f.ls[0].flushed_writes);
	assert_int_equal(fake_ep.resets, 1);
	assert_int_equal(fake_ep.destroyed, 0);
	/* With nothing outstanding nothing needs repair. */
	assert_int_equal(get(1), 1);
	chan_lease_fail(f.ch, &f.ls[1]);
	chan_lease_put(f.ch, &f.ls[1]);
	settle();
	assert_int_equal(fake_ep.errors, 1);
}

static void
completions_that_outrun_the_cancel(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	chan_lease_fail(f.ch, &f.ls[0]);
	fake_ep_complete_all(); /* well, and before the helper came to it */
	turn();
	assert_int_equal(f.op[0].result, 0);
	assert_false(f.ls[0].flushed_writes);
	chan_lease_put(f.ch, &f.ls[0]);
	settle();
	assert_int_equal(fake_ep.resets, 1); /* it went to the error state all the same */
	assert_int_equal(fake_ep.stats->eps.free, 9);
}

/* The next step in the life of a device. */
static void
live_and_die(void)
{
	static unsigned nr;

	if (fake_ep.context) {
		nr = fake_ep.context;
		fake_ep_set_state(RAIL_LOST, true);
		fake_ep.free_result = fake_ep.error_result = random() % 2 ? -EIO : 0;
		if (random() % 2)
			turn();
		fake_ep_set_context(0, fake_ep.closed);
	} else if (fake_ep.closed < nr && fake_ep.cqs == 0 && fake_ep.eps == 0) {
		fake_ep_set_context(0, nr);
	} else if (fake_ep.closed == nr) {
		fake_ep.free_result = fake_ep.error_result = 0;
		fake_ep_set_context(nr + 1, nr);
		fake_ep_set_state(RAIL_UP, false);
	}
}

/* Everything at once, seeded: nothing may end while the device holds its buffer, and everything must end.
 * *state: the transport connects. */
static void
random_walk(void **state)
{
	static char mem[LEASES][64];
	static struct chan_op op[LEASES][4];
	static struct buf buf[LEASES];
	const char *env = getenv("SEED");
	unsigned seed = env ? (unsigned)strtoul(env, NULL, 0) : 1;
	bool out[LEASES] = { false };

	print_message("SEED=%u\n", seed);
	srandom(seed);
	log_set_level(LOG_ERROR);
	fake_ep.limits.read_depth = 2;
	if (*state)
		fake_ep_connecting();
	open_chan(8, 56);
	memset(op, 0, sizeof op);
	for (int i = 0; i < LEASES; i++)
		buf[i] = (struct buf){ .mem = mem[i], .cap_bytes = 64 };
	for (int step = 0; step < 60000; step++) {
		int i = (int)(random() % LEASES);
		struct chan_lease *ls = &f.ls[i];

		switch (random() % 16) {
		case 0:
		case 1:
		case 2:
			if (!out[i] && list_empty(&fake_ep.target_waits)) {
				fake_ep.target_result = (int)(random() % 3) != 0;
				out[i] = get(i) >= 0;
				if (ls->result == 0 && out[i])
					ls->result = 1; /* asked */
			}
			break;
		case 3:
		case 4:
		case 5:
		case 6:
			for (int k = 0; k < 4 && out[i]; k++) {
				if (lease_of(ls)->state != LEASE_HELD || op[i][k].posted)
					continue;
				op[i][k].done = on_op;
				chan_push(f.ch, ls, &op[i][k], &buf[i], (uint32_t)k * 16, 16, 0);
				break;
			}
			break;
		case 7:
			if (out[i])
				chan_lease_fail(f.ch, ls);
			break;
		case 8:
			if (out[i] && ls->outstanding == 0) {
				if (lease_of(ls)->state == LEASE_HELD)
					chan_lease_put(f.ch, ls);
				else
					chan_lease_cancel(f.ch, ls);
				out[i] = false;
			}
			break;
		case 9:
			fake_ep_target_answer(random() % 4 ? 0 : -EHOSTUNREACH);
			break;
		case 10:
		case 11:
			if (fake_ep_wr_nr())
				fake_ep_complete(fake_ep_wr(0), random() % 8 ? WCS_SUCCESS : WCS_RETRY_EXC);
			break;
		case 12:
			if (fake_ep_wr_nr() && random() % 8 == 0)
				fake_ep_wr(0)->lost = true;
			fake_ep_run_jobs(1);
			break;
		case 13:
			f.now += (uint64_t)(random() % 40) * NS_PER_MS;
			fake_ep.reset_result = random() % 4 ? 0 : -EIO;
			fake_ep.connect_result = random() % 4 ? 0 : -ETIMEDOUT;
			break;
		case 14:
			if (random() % 64 == 0 && fake_ep.context)
				fake_ep_set_state(random() % 2 ? RAIL_UP : RAIL_LOST, random() % 2);
			else if (random() % 256 == 0)
				live_and_die();
			break;
		default:
			turn();
		}
		for (int k = 0; k < 4; k++)
			assert_true(op[i][k].posted || !fake_ep_holds(mem[i] + k * 16));
	}
	fake_ep.reset_result = fake_ep.connect_result = 0;
	fake_ep.target_result = 1;
	for (int i = 0; i < 8; i++) {
		if (!fake_ep.context)
			live_and_die();
		settle();
		later(NS_PER_S);
	}
	assert_true(fake_ep.context > 3);
	fake_ep_set_state(RAIL_UP, false);
	fake_ep_target_answer(0);
	for (int i = 0; i < LEASES; i++)
		chan_lease_fail(f.ch, &f.ls[i]);
	for (int i = 0; i < 20; i++) {
		settle();
		later(NS_PER_S);
	}
	for (int i = 0; i < LEASES; i++) {
		assert_int_equal(f.ls[i].outstanding, 0);
		if (lease_of(&f.ls[i])->state == LEASE_HELD)
			chan_lease_put(f.ch, &f.ls[i]);
		else
			chan_lease_cancel(f.ch, &f.ls[i]);
		settle();
	}
	settle();
	assert_int_equal(fake_ep.stats->eps.free, 9);
	assert_int_equal(fake_ep_stuck(), 0);
}

int
main(void)
{
	static bool connecting = true;
	const struct CMUnitTest tests[] = {
		T(posts_what_was_asked),
		T(reads_are_limited_and_stay_in_order),
		T(work_fits_the_queue_pair),
		T(waits_in_order),
		T(clients_take_turns),
		T(clients_take_turns_behind_handles),
		T(a_full_queue_says_so),
		T(address_handles_are_waited_for),
		T(slow_targets_are_declined),
		T(declines_have_reasons),
		T(without_a_device_all_is_declined),
		T(a_bad_completion_ends_its_lease_only),
		T(spares_cover),
		T(cancel_drains),
		T(completions_that_outrun_the_cancel),
		T(random_walk),
		{ "random_walk, connecting", random_walk, setup, teardown, &connecting },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
