/*
 * chan's logic against scripted verbs: who gets a channel, what is posted, and what becomes of an initiator
 * in every way that a transfer can end.  The device itself is in test_wire.c.
 */
#include "../../fake/fake_dc.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "chan/chan_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASES 64
#define OPS 16

static struct fix {
	struct chan *ch;
	struct mailbox mb;
	struct timers timers;
	struct conf_rdma conf;
	uint64_t now;
	struct token tok;
	char mem[BUF_SMALL_BYTES + BUF_SLACK_BYTES];
	struct buf buf;
	struct chan_lease ls[LEASES];
	struct chan_op op[OPS];
	int order[LEASES], lease_nr; /* in which order leases heard */
	int op_nr;
} f;

static void
on_lease(struct chan_lease *ls)
{
	f.order[f.lease_nr++ % LEASES] = (int)(ls - f.ls);
}

static void
on_op(struct chan_op *op)
{
	f.op_nr++;
}

static void
open_chan(int channels, int queue_max)
{
	static const int map[] = { 3 };

	f.conf.channels = channels;
	f.conf.mode = RDMA_AUTO;
	assert_int_equal(chan_new(&(struct chan_params){ .rdma = (struct rdma *)&fake_dc,
							 .conf = &f.conf,
							 .mb = &f.mb,
							 .timers = &f.timers,
							 .core_nr = 1,
							 .pieces_max = 12,
							 .queue_max = queue_max,
							 .region_map = map,
							 .region_nr = 1 },
				  &f.ch),
			 0);
}

static int
setup(void **state)
{
	memset(&f, 0, sizeof f);
	log_init(LOG_PLAIN, getenv("VERBOSE") ? LOG_DEBUG : LOG_ERROR);
	fake_dc_init();
	assert_int_equal(mailbox_init(&f.mb), 0);
	f.now = NS_PER_S;
	clock_fake(&f.now);
	f.conf.qp_reset_on_failure = true;
	f.conf.delay_mode = DELAY_NONE;
	f.conf.poll_batch = 16;
	f.tok = (struct token){
		.kind = TOKEN_DC, .addr = 0x10000, .size = 1 << 20, .rkey = 7, .dctn = 9, .have_gid = true
	};
	f.buf = (struct buf){ .mem = f.mem, .cap_bytes = BUF_SMALL_BYTES };
	for (int i = 0; i < LEASES; i++)
		f.ls[i].done = on_lease;
	for (int i = 0; i < OPS; i++)
		f.op[i].done = on_op;
	return 0;
}

/* The core's turn: mailbox, timers, completions. */
static void
turn(void)
{
	for (int i = 0; i < 4; i++) {
		mailbox_run(&f.mb, 0);
		timers_run(&f.timers, f.now);
		chan_poll(f.ch);
	}
}

/* The core's and the helper's, until nothing is left to do. */
static void
settle(void)
{
	do
		turn();
	while (fake_dc_run_jobs(0));
	turn();
}

static void
later(uint64_t ns)
{
	f.now += ns;
	turn();
}

static int
teardown(void **state)
{
	settle();
	for (int i = 0; i < LEASES; i++) {
		chan_lease_put(f.ch, &f.ls[i]);
		settle();
	}
	assert_int_equal(fake_dc.ah_refs, 0);
	fake_dc.free_result = 0;
	chan_free(f.ch);
	mailbox_run(&f.mb, 0);
	mailbox_fini(&f.mb);
	assert_int_equal(fake_dc.dcis, 0);
	assert_int_equal(fake_dc.stats.dcis, 0);
	assert_int_equal(fake_dc.stats.dcis_free, 0);
	assert_int_equal(fake_dc.stats.dcis_leased, 0);
	assert_int_equal(fake_dc.stats.dcis_recovering, 0);
	clock_fake(NULL);
	return 0;
}

static int
get(int i)
{
	return chan_lease_get(f.ch, &f.ls[i], &f.tok, NULL);
}

static void
push(int lease, int op, uint64_t at)
{
	chan_push(f.ch, &f.ls[lease], &f.op[op], &f.buf, 0, 100, at);
}

static void
pull(int lease, int op, uint64_t at)
{
	chan_pull(f.ch, &f.ls[lease], &f.op[op], &f.buf, 0, 100, at);
}

/* item 17, item 18, item 19: one READ or WRITE for each piece, at ADDR + at, with the token's key. */
static void
posts_what_was_asked(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	chan_push(f.ch, &f.ls[0], &f.op[0], &f.buf, 17, 100, 4096);
	assert_int_equal(fake_dc.writes, 1);
	assert_int_equal(fake_dc.reads, 0);
	assert_int_equal(fake_dc_wr(0)->wr.remote, 0x10000 + 4096);
	assert_int_equal(fake_dc_wr(0)->wr.rkey, 7);
	assert_int_equal(fake_dc_wr(0)->wr.dctn, 9);
	assert_int_equal(fake_dc_wr(0)->wr.region, 3);
	assert_ptr_equal(fake_dc_wr(0)->wr.mem, f.mem + 17);
	/* The last byte of the window. */
	chan_pull(f.ch, &f.ls[0], &f.op[1], &f.buf, 0, 100, (1 << 20) - 100);
	assert_int_equal(fake_dc.reads, 1);
	assert_true(chan_busy(f.ch));
	fake_dc_complete_all();
	assert_int_equal(f.op_nr, 0);
	turn();
	assert_int_equal(f.op_nr, 2);
	assert_int_equal(f.op[0].result | f.op[1].result, 0);
	assert_int_equal(f.ls[0].outstanding, 0);
	assert_false(chan_busy(f.ch));
	assert_int_equal(fake_dc.stats.written_bytes, 100);
	assert_int_equal(fake_dc.stats.read_ops, 1);
	assert_int_equal(fake_dc.stats.status[WCS_SUCCESS], 2); /* item 109 */
}

/* item 32 */
static void
reads_are_limited_and_stay_in_order(void **state)
{
	fake_dc.limits.read_depth = 4;
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	for (int i = 0; i < 10; i++)
		pull(0, i, (uint64_t)i * 1000);
	assert_int_equal(fake_dc_wr_nr(), 4);
	assert_int_equal(f.ls[0].outstanding, 10);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(fake_dc_wr(0)->wr.remote, 0x10000 + i * 1000);
		fake_dc_complete(fake_dc_wr(0), WCS_SUCCESS);
		turn();
		assert_int_equal(f.op_nr, i + 1);
		assert_true(fake_dc_wr_nr() <= 4);
	}
	/* WRITEs have the whole depth. */
	for (int i = 0; i < 12; i++)
		push(0, i, 0);
	assert_int_equal(fake_dc_wr_nr(), 12);
	fake_dc_complete_all();
}

static void
waits_in_order(void **state)
{
	open_chan(8, 56);
	for (int i = 0; i < 64; i++)
		assert_int_equal(get(i), i < 8 ? 1 : 0);
	assert_int_equal(fake_dc.stats.dcis_leased, 8);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(f.lease_nr, i < 8 ? i : i < 56 ? i : 56);
		chan_lease_put(f.ch, &f.ls[i]);
		assert_int_equal(f.lease_nr, i < 56 ? i : 56); /* never from inside a call */
		turn();
		if (i < 56)
			assert_int_equal(f.order[i], i + 8);
	}
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
	fake_dc.ah_result = 0;
	open_chan(8, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(get(i), 0);
	assert_int_equal(get(4), -EAGAIN);
	chan_lease_cancel(f.ch, &f.ls[1]);
	/* A reachable target does not stand behind them. */
	fake_dc.ah_result = 1;
	assert_int_equal(get(5), 1);
	assert_int_equal(fake_dc_ah_answer(0),
			 5); /* the refused one's and the cancelled one's too: their references come back */
	turn();
	assert_int_equal(f.lease_nr, 3);
	assert_int_equal(f.ls[0].result | f.ls[2].result | f.ls[3].result, 0);
	fake_dc.ah_result = 0;
	assert_int_equal(get(1), 0);
	fake_dc_ah_answer(-EHOSTUNREACH);
	turn();
	assert_int_equal(f.ls[1].result, -EOPNOTSUPP);
	assert_int_equal(f.ls[1].reason, CHAN_UNREACHABLE);
	fake_dc.ah_result = -EHOSTUNREACH;
	assert_int_equal(get(1), -EOPNOTSUPP);
	assert_int_equal(f.ls[1].reason, CHAN_UNREACHABLE);
}

static void
declines_have_reasons(void **state)
{
	static const struct {
		int route, result;
		enum chan_reason reason;
	} row[] = { { -ENETDOWN, -EOPNOTSUPP, CHAN_NO_RAIL },
		    { -ENETUNREACH, -EOPNOTSUPP, CHAN_NEEDS_ROUTER },
		    { -EINVAL, -EINVAL, CHAN_OK } };
	struct chan_stats st;

	open_chan(8, 4);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		fake_dc.route_result = row[i].route;
		f.ls[0].reason = CHAN_OK;
		assert_int_equal(get(0), row[i].result);
		assert_int_equal(f.ls[0].reason, row[i].reason);
	}
	f.tok.kind = TOKEN_OFI;
	assert_int_equal(get(0), -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_FAMILY);
	chan_get_stats(f.ch, &st);
	assert_int_equal(st.declines[CHAN_FAMILY], 1);
	assert_int_equal(st.declines[CHAN_NO_RAIL], 1);
	assert_int_equal(fake_dc.posts, 0);
}

static void
without_a_device_all_is_declined(void **state)
{
	fake_dc.rail_nr = 0;
	open_chan(8, 4);
	assert_int_equal(get(0), -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_NO_DEVICE);
	chan_free(f.ch);
	f.conf.mode = RDMA_NONE;
	assert_int_equal(chan_new(&(struct chan_params){ .conf = &f.conf,
							 .mb = &f.mb,
							 .timers = &f.timers,
							 .core_nr = 1,
							 .pieces_max = 1 },
				  &f.ch),
			 0);
	assert_int_equal(get(0), -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_DISABLED);
	assert_int_equal(chan_fds(f.ch, NULL, 0), 0);
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
	fake_dc_complete(fake_dc_wr(1),
			 WCS_RETRY_EXC); /* the second; the first is lost in the confusion: flushed */
	turn();
	assert_int_equal(f.op[1].result, -EIO);
	assert_int_equal(f.op[1].status, WCS_RETRY_EXC);
	assert_int_equal(f.op[0].result, -ECANCELED);
	assert_int_equal(f.op[2].result, -ECANCELED);
	assert_true(f.ls[0].failed);
	assert_true(f.ls[0].flushed_writes);
	assert_int_equal(f.ls[0].status, WCS_RETRY_EXC);
	assert_int_equal(f.ls[0].outstanding, 0);
	assert_int_equal(fake_dc.forgotten, 1);
	assert_false(f.ls[1].failed);
	assert_int_equal(fake_dc_wr_nr(), 1);
	/* Posting on: never reaches the wire, ends later. */
	push(0, 0, 0);
	assert_int_equal(f.op_nr, 3);
	turn();
	assert_int_equal(f.op_nr, 4);
	assert_int_equal(f.op[0].result, -ECANCELED);
	chan_lease_put(f.ch, &f.ls[0]);
	assert_int_equal(fake_dc.stats.dcis_recovering, 1);
	settle();
	assert_int_equal(fake_dc.resets, 1);
	assert_int_equal(fake_dc.stats.dci_resets, 1);
	assert_int_equal(fake_dc.stats.dcis_recovering, 0);
	assert_int_equal(fake_dc.writes, 4); /* nothing was repeated */
	fake_dc_complete_all();
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
	fake_dc_complete(fake_dc_wr(0), WCS_REM_ACCESS);
	turn();
	/* The failed one is not back yet, and not even put; the ninth runs. */
	assert_int_equal(f.lease_nr, 1);
	assert_int_equal(f.ls[8].result, 0);
	assert_int_equal(fake_dc_job_nr(), 1);
}

/* item 27, item 28: cancelled, flushed, and heard of only then */
static void
cancel_drains(void **state)
{
	fake_dc.limits.read_depth = 2;
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
	assert_int_equal(fake_dc.errors, 1);
	assert_int_equal(f.op_nr, 5);
	assert_int_equal(f.op[0].result, -ECANCELED);
	assert_false(f.ls[0].flushed_writes);
	assert_int_equal(fake_dc.resets, 1);
	assert_int_equal(fake_dc.destroyed, 0);
	/* With nothing outstanding nothing needs repair. */
	assert_int_equal(get(1), 1);
	chan_lease_fail(f.ch, &f.ls[1]);
	chan_lease_put(f.ch, &f.ls[1]);
	settle();
	assert_int_equal(fake_dc.errors, 1);
}

static void
completions_that_outrun_the_cancel(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	chan_lease_fail(f.ch, &f.ls[0]);
	fake_dc_complete_all(); /* well, and before the helper came to it */
	turn();
	assert_int_equal(f.op[0].result, 0);
	assert_false(f.ls[0].flushed_writes);
	chan_lease_put(f.ch, &f.ls[0]);
	settle();
	assert_int_equal(fake_dc.resets, 1); /* it went to the error state all the same */
	assert_int_equal(fake_dc.stats.dcis_free, 9);
}

/* draining -> destroying -> creating -> free: a lost completion */
static void
a_lost_completion_is_ended_by_destruction(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	fake_dc.no_flush = true;
	chan_lease_fail(f.ch, &f.ls[0]);
	settle();
	later(99 * NS_PER_MS);
	assert_int_equal(fake_dc_job_nr(), 0);
	later(NS_PER_MS);
	assert_int_equal(fake_dc_job_nr(), 1);
	assert_int_equal(f.op_nr, 0); /* its buffer may still be touched */
	assert_int_equal(fake_dc_run_jobs(1), 1);
	turn();
	assert_int_equal(f.op_nr, 1);
	assert_false(fake_dc_holds(f.mem));
	assert_int_equal(f.op[0].result, -ECANCELED);
	assert_true(f.ls[0].flushed_writes);
	chan_lease_put(f.ch, &f.ls[0]);
	settle();
	assert_int_equal(fake_dc.stats.dci_recreated, 1);
	assert_int_equal(fake_dc.stats.dcis_free, 9);
}

static void
a_destroy_that_hangs_loses_the_rail_until_it_returns(void **state)
{
	open_chan(8, 4);
	for (int i = 0; i < 8; i++)
		assert_int_equal(get(i), 1);
	assert_int_equal(get(8), 0);
	push(0, 0, 0);
	fake_dc.no_flush = true;
	chan_lease_fail(f.ch, &f.ls[0]);
	settle();
	later(100 * NS_PER_MS);
	later(5 * NS_PER_S - 1);
	assert_int_equal(fake_dc.stuck, 0);
	later(1);
	assert_int_equal(fake_dc.stuck, 1);
	turn();
	assert_int_equal(f.ls[8].result, -EOPNOTSUPP);
	assert_int_equal(f.ls[8].reason, CHAN_NO_RAIL);
	assert_int_equal(f.op_nr, 0);
	later(3600 * NS_PER_S);
	assert_int_equal(f.op_nr, 0); /* the buffer stays held, however long */
	settle();
	assert_int_equal(fake_dc.stuck, 0);
	assert_int_equal(f.op_nr, 1);
	assert_int_equal(get(9), 1);
}

static void
a_destroy_that_fails_is_tried_again(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	fake_dc.no_flush = true;
	fake_dc.free_result = -EIO;
	chan_lease_fail(f.ch, &f.ls[0]);
	settle();
	later(100 * NS_PER_MS);
	settle();
	assert_int_equal(fake_dc.stuck, 1);
	assert_int_equal(f.op_nr, 0);
	fake_dc.free_result = 0;
	later(NS_PER_S);
	settle();
	assert_int_equal(fake_dc.stuck, 0);
	assert_int_equal(f.op_nr, 1);
	assert_int_equal(fake_dc.stats.dcis_free, 9);
}

static void
a_reset_that_fails_makes_a_new_one(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	fake_dc.reset_result = -EIO;
	fake_dc.new_result = -ENOMEM;
	fake_dc_complete(fake_dc_wr(0), WCS_FATAL);
	settle();
	assert_int_equal(fake_dc.destroyed, 1);
	assert_int_equal(fake_dc.stats.dcis_recovering, 1);
	later(NS_PER_S);
	settle();
	fake_dc.new_result = 0;
	later(NS_PER_S);
	settle();
	assert_int_equal(fake_dc.stats.dcis_recovering, 0);
	assert_int_equal(fake_dc.stats.dcis_free, 9);
}

/* A port that has no address yet: nothing is served, and then it is. */
static void
channels_that_cannot_be_made_yet(void **state)
{
	log_set_level((enum log_level) - 1);
	fake_dc.new_result = -EINVAL;
	open_chan(8, 4);
	assert_int_equal(get(0), -EOPNOTSUPP);
	assert_int_equal(f.ls[0].reason, CHAN_NO_CHANNEL);
	later(NS_PER_S);
	settle();
	assert_int_equal(get(0), -EOPNOTSUPP);
	fake_dc.new_result = 0;
	later(NS_PER_S);
	settle();
	assert_int_equal(fake_dc.stats.dcis_free, 9);
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
		fake_dc_complete(fake_dc_wr(0), WCS_REM_OP);
		settle();
		chan_lease_put(f.ch, &f.ls[i]);
	}
	assert_int_equal(get(9), -EOPNOTSUPP);
	assert_int_equal(f.ls[9].reason, CHAN_NO_CHANNEL);
	assert_int_equal(fake_dc.resets, 0);
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
	fake_dc_set_state(RAIL_LOST, true);
	settle();
	assert_int_equal(f.ls[8].reason, CHAN_NO_RAIL);
	assert_true(f.ls[0].failed);
	assert_int_equal(f.op_nr, 1);
	assert_int_equal(get(9), -EOPNOTSUPP);
	for (int i = 0; i < 8; i++)
		chan_lease_put(f.ch, &f.ls[i]);
	settle();
	fake_dc_set_state(RAIL_UP, false);
	settle();
	assert_int_equal(fake_dc.destroyed, 9); /* every queue pair of before */
	assert_int_equal(fake_dc.stats.dcis_free, 9);
	assert_int_equal(get(9), 1);
	push(9, 1, 0);
	fake_dc_complete_all();
	turn();
	assert_int_equal(f.op[1].result, 0);
}

/* A lost device makes no queue pairs either; when it is back nobody is declined because they come a second
 * later. */
static void
channels_are_there_when_the_device_is_back(void **state)
{
	open_chan(8, 4);
	fake_dc.new_result = -EIO;
	fake_dc_set_state(RAIL_LOST, true);
	settle();
	assert_int_equal(fake_dc.destroyed, 9);
	assert_int_equal(fake_dc.stats.dcis_free, 0);
	fake_dc.new_result = 0;
	fake_dc_set_state(RAIL_UP, false);
	assert_int_equal(get(0), 0); /* even before the chan has heard of it */
	settle();
	assert_int_equal(f.ls[0].result, 0);
	assert_int_equal(fake_dc.stats.dcis_free, 8);
	assert_int_equal(fake_dc.stats.dcis_recovering, 0);
}

static void
strays_harm_nobody(void **state)
{
	uint64_t id;

	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	push(0, 1, 0);
	id = fake_dc_wr(0)->wr.wr_id;
	fake_dc_complete(fake_dc_wr(0), WCS_SUCCESS);
	fake_dc_stray(id, WCS_SUCCESS); /* twice */
	fake_dc_stray(id, WCS_REM_ACCESS);
	fake_dc_stray(~0ull, WCS_REM_ACCESS);
	fake_dc_stray(77ull << 32, WCS_SUCCESS);
	turn();
	assert_int_equal(f.op_nr, 1);
	assert_false(f.ls[0].failed);
	fake_dc_complete_all();
	turn();
	assert_int_equal(f.op_nr, 2);
}

static void
a_queue_pair_that_takes_no_work(void **state)
{
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	fake_dc.post_result = -ENOMEM;
	push(0, 0, 0);
	assert_int_equal(f.op_nr, 0);
	turn();
	assert_int_equal(f.op_nr, 1);
	assert_int_equal(f.op[0].result, -EIO);
	assert_true(f.ls[0].failed);
	assert_false(f.ls[0].flushed_writes);
	settle();
	assert_int_equal(fake_dc.resets, 1);
}

static void
arming_defeats_the_delay(void **state)
{
	f.conf.delay_mode = DELAY_BATCH;
	f.conf.delay_interval_ns = 5000;
	open_chan(8, 4);
	assert_int_equal(get(0), 1);
	push(0, 0, 0);
	assert_int_equal(chan_poll(f.ch), 0);
	fake_dc_complete_all();
	assert_int_equal(chan_poll(f.ch), 0); /* not yet */
	f.now += 5000;
	assert_int_equal(chan_poll(f.ch), 1);
	f.now += 5000;
	push(0, 1, 0);
	assert_int_equal(chan_poll(f.ch), 0);
	fake_dc_complete_all();
	chan_arm(f.ch);
	assert_int_equal(fake_dc.armed, 1);
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
	before = fake_dc.polls;
	for (int us = 0; us < 200; us++) {
		f.now += NS_PER_US;
		chan_poll(f.ch);
	}
	*ret_idle = (int)(fake_dc.polls - before);
	fake_dc_complete_all();
	f.now += NS_PER_MS;
	chan_poll(f.ch);
	before = fake_dc.polls;
	for (int us = 0; us < 200; us++) {
		f.now += NS_PER_US;
		if (us % 10 == 0)
			push(0, us / 10 % 4, 0);
		if (us % 10 == 1)
			fake_dc_complete_all();
		chan_poll(f.ch);
	}
	*ret_busy = (int)(fake_dc.polls - before);
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

/* Everything at once, seeded: nothing may end while the device holds its buffer, and everything must end. */
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
	fake_dc.limits.read_depth = 2;
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
			if (!out[i] && list_empty(&fake_dc.ah_waits)) {
				fake_dc.ah_result = (int)(random() % 3) != 0;
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
			fake_dc_ah_answer(random() % 4 ? 0 : -EHOSTUNREACH);
			break;
		case 10:
		case 11:
			if (fake_dc_wr_nr())
				fake_dc_complete(fake_dc_wr(0), random() % 8 ? WCS_SUCCESS : WCS_RETRY_EXC);
			break;
		case 12:
			if (fake_dc_wr_nr() && random() % 8 == 0)
				fake_dc_wr(0)->lost = true;
			fake_dc_run_jobs(1);
			break;
		case 13:
			f.now += (uint64_t)(random() % 40) * NS_PER_MS;
			fake_dc.reset_result = random() % 4 ? 0 : -EIO;
			break;
		case 14:
			if (random() % 64 == 0)
				fake_dc_set_state(random() % 2 ? RAIL_UP : RAIL_LOST, random() % 2);
			break;
		default:
			turn();
		}
		for (int k = 0; k < 4; k++)
			assert_true(op[i][k].posted || !fake_dc_holds(mem[i] + k * 16));
	}
	fake_dc.reset_result = 0;
	fake_dc.ah_result = 1;
	fake_dc_set_state(RAIL_UP, false);
	fake_dc_ah_answer(0);
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
	assert_int_equal(fake_dc.stats.dcis_free, 9);
	assert_int_equal(fake_dc.stuck, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(posts_what_was_asked),
		T(reads_are_limited_and_stay_in_order),
		T(waits_in_order),
		T(a_full_queue_says_so),
		T(address_handles_are_waited_for),
		T(declines_have_reasons),
		T(without_a_device_all_is_declined),
		T(a_bad_completion_ends_its_lease_only),
		T(spares_cover),
		T(cancel_drains),
		T(completions_that_outrun_the_cancel),
		T(a_lost_completion_is_ended_by_destruction),
		T(a_destroy_that_hangs_loses_the_rail_until_it_returns),
		T(a_destroy_that_fails_is_tried_again),
		T(a_reset_that_fails_makes_a_new_one),
		T(channels_that_cannot_be_made_yet),
		T(without_reset_it_stays_fenced),
		T(a_lost_device_declines_and_comes_back),
		T(channels_are_there_when_the_device_is_back),
		T(strays_harm_nobody),
		T(a_queue_pair_that_takes_no_work),
		T(arming_defeats_the_delay),
		T(delay_none),
		T(delay_batch),
		T(delay_entry),
		T(delay_adaptive),
		T(random_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
