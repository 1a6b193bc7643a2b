/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel on scripted verbs, a clock that the test moves, and the leases and operations that work with it:
 * what the tests of chan's logic share.  Included once per program.
 */
#ifndef GANTRY_TESTS_CHAN_RIG_H
#define GANTRY_TESTS_CHAN_RIG_H

#include "tests/fake/fake_ep.h"

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
	int watching; /* the descriptor that is waited on; 0: none */
	bool slow_unwatch;
	int unwatches; /* how often it was asked for */
} f;

static inline void
on_lease(struct chan_lease *ls)
{
	f.order[f.lease_nr++ % LEASES] = (int)(ls - f.ls);
}

static inline void
on_op(struct chan_op *op)
{
	f.op_nr++;
}

static inline void
watch_fd(void *cookie, int fd)
{
	assert_int_equal(f.watching, 0);
	f.watching = fd;
}

static inline bool
unwatch_fd(void *cookie, int fd)
{
	assert_int_equal(f.watching, fd);
	f.unwatches++;
	if (!f.slow_unwatch)
		f.watching = 0;
	return !f.slow_unwatch;
}

static inline void
open_chan(int channels, int queue_max)
{
	static const uint64_t map[] = { 3 };

	f.conf.channels = channels;
	f.conf.mode = RDMA_AUTO;
	assert_int_equal(chan_new(&(struct chan_params){ .rdma = &fake_ep.rd,
							 .conf = &f.conf,
							 .mb = &f.mb,
							 .timers = &f.timers,
							 .core_nr = 1,
							 .numa_node = -1,
							 .pieces_max = 12,
							 .queue_max = queue_max,
							 .watch_fd = watch_fd,
							 .unwatch_fd = unwatch_fd,
							 .region_map = map,
							 .region_nr = 1 },
				  &f.ch),
			 0);
}

static inline int
setup(void **state)
{
	memset(&f, 0, sizeof f);
	log_init(LOG_PLAIN, getenv("VERBOSE") ? LOG_DEBUG : LOG_ERROR);
	fake_ep_init();
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
static inline void
turn(void)
{
	for (int i = 0; i < 4; i++) {
		mailbox_run(&f.mb, 0);
		timers_run(&f.timers, f.now);
		chan_poll(f.ch);
	}
}

/* The core's and the helper's, until nothing is left to do. */
static inline void
settle(void)
{
	do
		turn();
	while (fake_ep_run_jobs(0));
	turn();
}

static inline void
later(uint64_t ns)
{
	f.now += ns;
	turn();
}

static inline int
teardown(void **state)
{
	settle();
	for (int i = 0; i < LEASES; i++) {
		chan_lease_put(f.ch, &f.ls[i]);
		settle();
	}
	assert_int_equal(fake_ep.targets, 0);
	fake_ep.free_result = 0;
	chan_free(f.ch);
	mailbox_run(&f.mb, 0);
	mailbox_fini(&f.mb);
	assert_int_equal(fake_ep.eps, 0);
	assert_int_equal(fake_ep.stats->eps.all, 0);
	assert_int_equal(fake_ep.stats->eps.free, 0);
	assert_int_equal(fake_ep.stats->eps.leased, 0);
	assert_int_equal(fake_ep.stats->eps.recovering, 0);
	clock_fake(NULL);
	return 0;
}

static inline int
get(int i)
{
	return chan_lease_get(f.ch, &f.ls[i], &f.tok, NULL);
}

static inline void
push(int lease, int op, uint64_t at)
{
	chan_push(f.ch, &f.ls[lease], &f.op[op], &f.buf, 0, 100, at);
}

static inline void
pull(int lease, int op, uint64_t at)
{
	chan_pull(f.ch, &f.ls[lease], &f.op[op], &f.buf, 0, 100, at);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
