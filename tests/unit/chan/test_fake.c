/* SPDX-License-Identifier: Apache-2.0 */
/* The fake channel keeps the promises of chan.h, so that what stands on it is tested against the contract. */
#include "tests/fake/fake_chan.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"

#include <errno.h>
#include <string.h>

struct fix {
	struct chan *ch;
	struct timers timers;
	struct token tok;
	char mem[BUF_SMALL_BYTES + BUF_SLACK_BYTES];
	struct buf buf;
	char client[4096];
	struct chan_lease ls[3];
	struct chan_op op[8];
};
static int lease_done, op_done;

static void
on_lease(struct chan_lease *ls)
{
	lease_done++;
}

static void
on_op(struct chan_op *op)
{
	op_done++;
}

static int
setup(void **state)
{
	static struct fix f;

	f = (struct fix){ .tok = { .kind = TOKEN_DC, .addr = 0x10000, .size = 4096 } };
	f.buf = (struct buf){ .mem = f.mem, .cap_bytes = BUF_SMALL_BYTES };
	assert_int_equal(
		chan_new(&(struct chan_params){ .timers = &f.timers, .pieces_max = 8, .queue_max = 1 },
			 &f.ch),
		0);
	fake_chan_window(f.ch, 0x10000, f.client, sizeof f.client);
	for (int i = 0; i < 3; i++)
		f.ls[i].done = on_lease;
	for (int i = 0; i < 8; i++)
		f.op[i].done = on_op;
	lease_done = op_done = 0;
	*state = &f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	for (int i = 0; i < 3; i++)
		chan_lease_put(f->ch, &f->ls[i]);
	chan_free(f->ch);
	clock_fake(NULL);
	return 0;
}

static void
moves_bytes_at_completion(void **state)
{
	struct fix *f = *state;

	assert_int_equal(chan_lease_get(f->ch, &f->ls[0], &f->tok, NULL), 1);
	memset(f->mem, 'a', 100);
	chan_push(f->ch, &f->ls[0], &f->op[0], &f->buf, 0, 100, 7);
	assert_int_equal(f->client[7], 0);
	assert_true(chan_busy(f->ch));
	assert_int_equal(chan_poll(f->ch), 1);
	assert_int_equal(f->client[7], 'a');
	assert_int_equal(f->client[106], 'a');
	assert_int_equal(f->client[107], 0);
	memset(f->client, 'b', 10);
	chan_pull(f->ch, &f->ls[0], &f->op[1], &f->buf, 50, 10, 0);
	assert_int_equal((unsigned char)f->mem[50], 0xa5);
	chan_poll(f->ch);
	assert_memory_equal(f->mem + 50, f->client, 10);
	assert_int_equal(f->op[1].result, 0);
	assert_false(chan_busy(f->ch));
}

static void
waits_in_order_and_bounded(void **state)
{
	struct fix *f = *state;

	fake_chan_channels(f->ch, 1);
	assert_int_equal(chan_lease_get(f->ch, &f->ls[0], &f->tok, NULL), 1);
	assert_int_equal(chan_lease_get(f->ch, &f->ls[1], &f->tok, NULL), 0);
	assert_int_equal(chan_lease_get(f->ch, &f->ls[2], &f->tok, NULL), -EAGAIN);
	chan_lease_put(f->ch, &f->ls[0]);
	assert_int_equal(lease_done, 0);
	chan_poll(f->ch);
	assert_int_equal(lease_done, 1);
	assert_int_equal(f->ls[1].result, 0);
}

static void
an_error_flushes_its_lease_only(void **state)
{
	struct fix *f = *state;

	fake_chan_hold(f->ch, true);
	assert_int_equal(chan_lease_get(f->ch, &f->ls[0], &f->tok, NULL), 1);
	assert_int_equal(chan_lease_get(f->ch, &f->ls[1], &f->tok, NULL), 1);
	for (int i = 0; i < 3; i++)
		chan_push(f->ch, &f->ls[i == 2], &f->op[i], &f->buf, 0, 10, 0);
	assert_int_equal(fake_chan_op_nr(f->ch), 3);
	fake_chan_fail(f->ch, fake_chan_op(f->ch, 0), WCS_RETRY_EXC);
	assert_int_equal(f->op[0].result, -EIO);
	assert_int_equal(f->ls[0].status, WCS_RETRY_EXC);
	chan_poll(f->ch);
	assert_int_equal(f->op[1].result, -ECANCELED);
	assert_true(f->ls[0].flushed_writes);
	assert_false(f->ls[1].failed);
	assert_int_equal(fake_chan_complete_all(f->ch), 1);
	assert_int_equal(f->op[2].result, 0);
	chan_push(f->ch, &f->ls[0], &f->op[3], &f->buf, 0, 10, 0);
	assert_int_equal(op_done, 3);
	chan_poll(f->ch);
	assert_int_equal(f->op[3].result, -ECANCELED);
}

static void
a_lost_one_ends_100_ms_after_the_failure(void **state)
{
	struct fix *f = *state;
	uint64_t now = NS_PER_S;

	clock_fake(&now);
	assert_int_equal(chan_lease_get(f->ch, &f->ls[0], &f->tok, NULL), 1);
	fake_chan_script(f->ch, 1, WCS_NR);
	chan_push(f->ch, &f->ls[0], &f->op[0], &f->buf, 0, 10, 0);
	assert_int_equal(chan_poll(f->ch), 0);
	chan_lease_fail(f->ch, &f->ls[0]);
	now += 99 * NS_PER_MS;
	timers_run(&f->timers, now);
	chan_poll(f->ch);
	assert_int_equal(op_done, 0);
	now += NS_PER_MS;
	timers_run(&f->timers, now);
	assert_int_equal(op_done, 1);
	assert_int_equal(f->op[0].result, -ECANCELED);
}

static void
random_ends_everything(void **state)
{
	struct fix *f = *state;

	fake_chan_random(f->ch, 42, 200000, 0);
	assert_int_equal(chan_lease_get(f->ch, &f->ls[0], &f->tok, NULL), 1);
	for (int i = 0; i < 8; i++)
		chan_pull(f->ch, &f->ls[0], &f->op[i], &f->buf, 0, 10, 0);
	for (int i = 0; i < 1000 && op_done < 8; i++)
		chan_poll(f->ch);
	assert_int_equal(op_done, 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(moves_bytes_at_completion, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_in_order_and_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(an_error_flushes_its_lease_only, setup, teardown),
		cmocka_unit_test_setup_teardown(a_lost_one_ends_100_ms_after_the_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(random_ends_everything, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
