/*
 * Sharing out buffers: the ticket's guarantee under random load.  Whoever holds a ticket and no large buffer
 * gets one at once, whatever the others hold; nobody is forgotten; everything comes back.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/check.h"
#include "xfer/xfer_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 40, STEPS = 200000 };

static struct xfer xs[N];
static struct buf *held[N][XFER_PIECES_MAX];
static int held_nr[N];
static int granted;

static void
on_done(struct xfer *x)
{
	granted++;
}

static void
test_random(void **state)
{
	const char *env = getenv("SEED");
	unsigned seed = env ? (unsigned)strtoul(env, NULL, 0) : (unsigned)time(NULL);
	struct bufpool bp;
	struct xfer_pool xp;

	printf("SEED=%u\n", seed);
	assert_int_equal(bufpool_init(&bp, 12u << 20), 0);
	xfer_pool_init(&xp, &bp, BUF_LARGE, 8, N);
	for (int i = 0; i < N; i++) {
		xs[i].done = xs[i].wake = on_done;
		xfer_init(&xs[i], &xp, NULL, NULL);
	}
	for (int s = 0; s < STEPS; s++) {
		int i = (int)(rand_r(&seed) % N);
		struct xfer *x = &xs[i];
		unsigned what = rand_r(&seed) % 8;

		if (!x->have_ticket && !x->is_waiting) {
			assert_true(xfer_ticket(x) >= 0);
		} else if (x->have_ticket && what < 4) {
			size_t len = rand_r(&seed) % 2 ? BUF_SMALL_BYTES : BUF_LARGE_BYTES;
			bool bare = x->main_bufs == 0;
			struct buf *b = pool_buf_get(x, len);

			if (b)
				held[i][held_nr[i]++] = b;
			else if (bare)
				assert_int_equal(x->bufs,
						 8); /* the guarantee, unless it has all it may have */
		} else if (held_nr[i] && what < 7) {
			pool_buf_put(x, held[i][--held_nr[i]]);
		} else if (x->have_ticket && !held_nr[i]) {
			pool_ticket_put(x);
		}
		assert_true(bp.avail[BUF_LARGE] >= xp.bare);
		assert_true(xp.tickets_out <= xp.tickets);
	}
	/* Everybody gives back what they have; those who wait get their turn and give back too. */
	for (int round = 0; round < N; round++) {
		for (int i = 0; i < N; i++) {
			while (held_nr[i])
				pool_buf_put(&xs[i], held[i][--held_nr[i]]);
			if (xs[i].have_ticket)
				pool_ticket_put(&xs[i]);
		}
	}
	for (int i = 0; i < N; i++) {
		assert_false(xs[i].is_waiting);
		xfer_fini(&xs[i]);
	}
	assert_true(granted > 0);
	assert_int_equal(xp.tickets_out, 0);
	assert_int_equal(bp.avail[BUF_LARGE], bp.total[BUF_LARGE]);
	assert_int_equal(bp.avail[BUF_SMALL], bp.total[BUF_SMALL]);
	bufpool_fini(&bp);
}

/* One more than the queue holds is refused, in order otherwise. */
static void
test_queue(void **state)
{
	struct bufpool bp;
	struct xfer_pool xp;
	int tickets;

	assert_int_equal(bufpool_init(&bp, 4u << 20), 0);
	xfer_pool_init(&xp, &bp, BUF_LARGE, 8, 3);
	tickets = xp.tickets;
	assert_true(tickets + 4 <= N);
	memset(xs, 0, sizeof xs);
	for (int i = 0; i < tickets + 4; i++) {
		xs[i].done = xs[i].wake = on_done;
		xfer_init(&xs[i], &xp, NULL, NULL);
		assert_int_equal(xfer_ticket(&xs[i]), i < tickets ? 1 : i < tickets + 3 ? 0 : -EAGAIN);
	}
	pool_ticket_put(&xs[0]);
	assert_true(xs[tickets].have_ticket);
	assert_false(xs[tickets + 1].have_ticket);
	for (int i = 0; i < tickets + 4; i++)
		xfer_fini(&xs[i]);
	assert_int_equal(xp.tickets_out, 0);
	bufpool_fini(&bp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random), cmocka_unit_test(test_queue) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
