/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slow clients' tickets, on a clock of the test's: who is too slow while others wait gives way, the slowest
 * first; nobody does while nobody waits, or while it is the server that is waited for; and who has most makes
 * room for who has less than its share (claim TM34).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "xfer/xfer_int.h"

#include <stdio.h>
#include <string.h>

enum { TICKETS = 16, N = 64 };

static const struct xfer_pace pace = { .rate = 64u << 10, .grace_ns = 400 * NS_PER_MS };
static struct bufpool bp;
static struct xfer_pool xp;
static struct xfer xs[N];
static struct buf *held[N];
static uint64_t now;
static int nr;
static struct {
	int x;
	enum xfer_revoke why;
} gone[N];
static int gone_nr;

static void
on_done(struct xfer *x)
{
}

static void
on_revoked(struct xfer *x, enum xfer_revoke why)
{
	gone[gone_nr].x = (int)(x - xs);
	gone[gone_nr++].why = why;
}

static uint64_t unsent_bytes[N];

static uint64_t
unsent(struct xfer *x)
{
	return unsent_bytes[x - xs];
}

static bool late[N];

static bool
is_late(struct xfer *x)
{
	return late[x - xs];
}

static const struct xfer_pace_ops ops = { .unsent = unsent, .is_late = is_late, .revoke = on_revoked };

static int
begin(void **state)
{
	now = 1000 * NS_PER_S;
	clock_fake(&now);
	assert_int_equal(bufpool_init_class(&bp, BUF_SMALL, TICKETS * (BUF_SMALL_BYTES + BUF_SLACK_BYTES), 0),
			 0);
	xfer_pool_init(&xp, &bp, BUF_SMALL, 8, N);
	assert_int_equal(xp.tickets, TICKETS);
	memset(xs, 0, sizeof xs);
	memset(held, 0, sizeof held);
	memset(unsent_bytes, 0, sizeof unsent_bytes);
	memset(late, 0, sizeof late);
	nr = gone_nr = 0;
	return 0;
}

/* It ends, as one whose ticket is to come back does. */
static void
end_one(int i)
{
	if (held[i])
		pool_buf_put(&xs[i], held[i]);
	held[i] = NULL;
	xfer_fini(&xs[i]);
}

static int
end(void **state)
{
	for (int i = nr; i-- > 0;)
		end_one(i);
	assert_int_equal(xp.tickets_out, 0);
	assert_int_equal(xp.queued, 0);
	assert_true(list_empty(&xp.holders));
	bufpool_fini(&bp);
	clock_fake(NULL);
	return 0;
}

/* One more transfer, of that client; returns its number. */
static int
ask(int client)
{
	struct xfer *x = &xs[nr];
	bool is_write = x->is_write;
	uint8_t lane = x->lane[0];

	xfer_idle(x, (unsigned)client, on_done);
	x->is_write = is_write;
	x->lane[0] = lane;
	xfer_init(x, &xp, NULL, NULL);
	assert_true(xfer_ticket(x) >= 0);
	return nr++;
}

static int
ask_write(int client)
{
	xs[nr].is_write = true;
	return ask(client);
}

static int
ask_in(int lane, int client)
{
	xs[nr].lane[0] = (uint8_t)(lane + 1);
	return ask(client);
}

/* Has its ticket and takes a body: a buffer that is being filled. */
static int
fill(int i)
{
	assert_true(xs[i].have_ticket);
	xs[i].mode = XFER_ACCEPT;
	held[i] = pool_buf_get(&xs[i], BUF_SMALL_BYTES);
	assert_non_null(held[i]);
	return i;
}

static int
hold(int client)
{
	return fill(ask(client));
}

static int
hold_write(int client)
{
	return fill(ask_write(client));
}

static int
hold_in(int lane, int client)
{
	return fill(ask_in(lane, client));
}

/* Looks for so long, while each holder's bytes come as `rate` says of it. */
static void
looks(int ms, const uint64_t *rate)
{
	for (int t = 0; t < ms; t += 100) {
		now += XFER_LOOK_NS;
		for (int i = 0; rate && i < nr; i++)
			xs[i].moved += rate[i] / 10;
		xfer_pool_revoke(&xp, &pace, &ops, now);
	}
}

/* As many as wait, no more, and the slowest: not before the grace is over. */
static void
test_slowest_first(void **state)
{
	uint64_t rate[N] = { 0 };

	for (int i = 0; i < TICKETS; i++) {
		hold(i);
		rate[i] = i == 5 ? 10 : i == 9 ? 1000 : i < 12 ? 30000 : 100000;
	}
	ask(100);
	looks(400, rate);
	assert_int_equal(gone_nr, 0);
	looks(100, rate);
	assert_int_equal(gone_nr, 1);
	assert_int_equal(gone[0].x, 5);
	assert_int_equal(gone[0].why, XFER_TOO_SLOW);
	/* It is on its way: nobody else goes for the same one. */
	looks(300, rate);
	assert_int_equal(gone_nr, 1);
	end_one(5);
	assert_true(xs[TICKETS].have_ticket);
	looks(1000, rate);
	assert_int_equal(gone_nr, 1);
	ask(101);
	looks(100, rate);
	assert_int_equal(gone_nr, 2);
	assert_int_equal(gone[1].x, 9);
}

/* However many wait, who keeps the pace stays, and who had been slow before anybody waited gets the grace. */
static void
test_pace_kept(void **state)
{
	uint64_t rate[N] = { 0 };

	for (int i = 0; i < TICKETS; i++)
		hold(i);
	looks(60000, rate);
	assert_int_equal(gone_nr, 0);
	for (int i = 0; i < TICKETS; i++)
		rate[i] = 70000;
	for (int i = 0; i < 20; i++)
		ask(100 + i);
	now += 10 * NS_PER_S;
	looks(10000, rate);
	assert_int_equal(gone_nr, 0);
	/* It stops: that is seen within two graces. */
	rate[3] = 0;
	looks(900, rate);
	assert_int_equal(gone_nr, 1);
	assert_int_equal(gone[0].x, 3);
}

/* A look that comes late, because the core had other things to do, blames nobody. */
static void
test_late_look(void **state)
{
	for (int i = 0; i < TICKETS; i++)
		hold(i);
	ask(100);
	looks(300, NULL);
	for (int i = 0; i < 5; i++) {
		now += 5 * NS_PER_S;
		xfer_pool_revoke(&xp, &pace, &ops, now);
	}
	assert_int_equal(gone_nr, 0);
	/* Nor does it forget what was seen: of the second it counts as much as there should have been. */
	looks(200, NULL);
	now += NS_PER_S;
	xfer_pool_revoke(&xp, &pace, &ops, now);
	assert_int_equal(gone_nr, 0);
	looks(100, NULL);
	assert_int_equal(gone_nr, 1);
}

/* Who waits for our disk or for a buffer is not slow, and neither is who gave all of its body. */
static void
test_our_turn(void **state)
{
	for (int i = 0; i < TICKETS; i++)
		hold(i);
	for (int i = 0; i < TICKETS; i++) {
		if (i % 4 == 0)
			xs[i].inflight = 1;
		else if (i % 4 == 1)
			xs[i].fed_all = true;
		else if (i % 4 == 2)
			assert_null(pool_buf_get(&xs[i], BUF_SMALL_BYTES)); /* in line for another */
		else
			xs[i].mode = XFER_COPY;
	}
	ask(100);
	looks(5000, NULL);
	assert_int_equal(gone_nr, 0);
	xs[4].inflight = 0;
	looks(500, NULL);
	assert_int_equal(gone_nr, 1);
	assert_int_equal(gone[0].x, 4);
	for (int i = 0; i < TICKETS; i++)
		xs[i].inflight = 0;
}

/* A reader is as fast as the bytes reach it, not as the kernel takes them. */
static void
test_unsent(void **state)
{
	uint64_t rate[N] = { 0 };

	for (int i = 0; i < TICKETS; i++) {
		hold(i);
		xs[i].mode = XFER_SERVE;
		xs[i].in_order = xs[i].len = 1;
		rate[i] = 1000000;
	}
	ask(100);
	for (int t = 0; t < 10; t++) {
		looks(100, rate);
		unsent_bytes[7] += 99900;
	}
	assert_int_equal(gone_nr, 1);
	assert_int_equal(gone[0].x, 7);
	assert_int_equal(gone[0].why, XFER_TOO_SLOW);
	for (int i = 0; i < TICKETS; i++)
		xs[i].mode = XFER_ACCEPT;
}

/* One client has everything and is fast; another waits, and gets its share once it was patient. */
static void
test_share(void **state)
{
	uint64_t rate[N] = { 0 };

	for (int i = 0; i < TICKETS; i++) {
		hold(1);
		rate[i] = 1000000u * (unsigned)(20 - i);
	}
	looks(5000, rate);
	for (int i = 0; i < 3; i++)
		ask(2);
	looks(100, rate);
	assert_int_equal(gone_nr, 0);
	looks(100, rate);
	assert_int_equal(gone_nr, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gone[i].why, XFER_OVER_SHARE);
		assert_true(gone[i].x >= TICKETS - 7); /* of the slower ones, to within a factor of two */
	}
	for (int i = 0; i < 3; i++)
		end_one(gone[i].x);
	assert_int_equal(xp.client[2].held, 3);
	/* No more than an even share, however many wait. */
	for (int i = 0; i < 20; i++)
		ask(2);
	looks(3000, rate);
	assert_int_equal(gone_nr, TICKETS / 2);
	for (int i = 3; i < gone_nr; i++)
		end_one(gone[i].x);
	looks(3000, rate);
	assert_int_equal(gone_nr, TICKETS / 2);
	assert_int_equal(xp.client[2].held, TICKETS / 2);
}

/* Writes have their share, of slow bodies: the slowest give way to a write that waits, and readers that are as slow do not;
 * for a read that waits any does. */
static void
test_writes(void **state)
{
	int read;

	for (int i = 0; i < TICKETS - TICKETS / 4; i++)
		hold_write(i);
	for (int i = 0; i < TICKETS / 4 - 1; i++)
		xs[hold(30 + i)].mode = XFER_ACCEPT;
	assert_false(xs[ask_write(100)].have_ticket);
	read = ask(100);
	assert_true(xs[read].have_ticket);
	xs[read].fed_all = true;
	looks(5000, NULL);
	assert_int_equal(gone_nr, 1);
	assert_true(xs[gone[0].x].is_write);
	assert_int_equal(gone[0].why, XFER_TOO_SLOW);
	for (int i = 0; i < 2; i++)
		ask(101 + i);
	looks(1000, NULL);
	assert_int_equal(gone_nr, 3);
}

/* A client has all that writes may have, and is fast: another's write gets its share of that, from writes alone. */
static void
test_share_of_writes(void **state)
{
	uint64_t rate[N] = { 0 };

	for (int i = 0; i < TICKETS; i++) {
		if (i < TICKETS - TICKETS / 4)
			hold_write(1);
		else
			hold(1);
		rate[i] = 1000000u * (unsigned)(20 - i);
	}
	for (int i = 0; i < 20; i++)
		ask_write(2);
	looks(3000, rate);
	assert_int_equal(gone_nr, (TICKETS - TICKETS / 4) / 2);
	for (int i = 0; i < gone_nr; i++)
		assert_true(xs[gone[i].x].is_write);
}

/* Slow bodies have the share of a lane: as many give way as are held back, of that lane alone. */
static void
test_lane(void **state)
{
	for (int i = 0; i < TICKETS; i++)
		hold_in(i % 2, i);
	ask_in(1, 100);
	ask_in(1, 101);
	assert_int_equal(xp.shut, 2);
	assert_int_equal(xp.queued, 0);
	looks(5000, NULL);
	assert_int_equal(gone_nr, 2);
	for (int i = 0; i < gone_nr; i++) {
		assert_int_equal(xs[gone[i].x].lane[0], 2);
		end_one(gone[i].x);
	}
	assert_int_equal(xp.shut, 0);
}

/* Among those that wait, who has least is next, also behind many who came before. */
static void
test_least_first(void **state)
{
	int mine;

	for (int i = 0; i < TICKETS; i++)
		hold(i % 8);
	for (int i = 0; i < 8; i++)
		ask(i);
	mine = ask(100);
	end_one(0);
	assert_true(xs[mine].have_ticket);
	end_one(1);
	assert_true(xs[TICKETS + 0].have_ticket || xs[TICKETS + 1].have_ticket);
}

/* Who was slow of late waits behind who was not, and is forgiven after a while. */
static void
test_slow_last(void **state)
{
	int slow, other;

	for (int i = 0; i < TICKETS; i++)
		hold(i);
	for (int i = 0; i < 4; i++)
		ask(50 + i);
	looks(500, NULL);
	assert_int_equal(gone_nr, 4);
	slow = ask(gone[0].x);
	other = ask(99);
	for (int i = 0; i < 4; i++)
		end_one(gone[i].x);
	for (int i = 0; i < 4; i++)
		assert_true(xs[TICKETS + i].have_ticket);
	for (int i = 0; i < TICKETS; i++)
		xs[i].fed_all = true;
	end_one(TICKETS);
	assert_true(xs[other].have_ticket);
	assert_false(xs[slow].have_ticket);
	looks(10000, NULL);
	other = ask(98);
	end_one(TICKETS + 1);
	assert_true(xs[slow].have_ticket);
	assert_false(xs[other].have_ticket);
}

/* claim TM37: whose body has not begun to arrive comes behind whose has, until it does. */
static void
test_late(void **state)
{
	int first, second, third;

	for (int i = 0; i < TICKETS; i++) {
		hold(i);
		xs[i].fed_all = true;
	}
	first = ask(50);
	second = ask(51);
	third = ask(52);
	late[first] = late[second] = true;
	looks(100, NULL);
	end_one(0);
	assert_true(xs[third].have_ticket);
	late[second] = false;
	looks(100, NULL);
	end_one(1);
	assert_true(xs[second].have_ticket);
	/* Nobody else: it is better with a buffer than that lying idle. */
	end_one(2);
	assert_true(xs[first].have_ticket);
}

/* Clients whose numbers fall together: the one that was not slow is not in line behind the one that was. */
static void
test_slow_neighbour(void **state)
{
	int slow, other, third;

	for (int i = 0; i < TICKETS; i++)
		hold(i);
	ask(50);
	looks(500, NULL);
	assert_int_equal(gone_nr, 1);
	assert_true(xfer_was_slow(&xp, (uint32_t)gone[0].x));
	assert_false(xfer_was_slow(&xp, (uint32_t)gone[0].x + XFER_CLIENTS));
	end_one(gone[0].x);
	for (int i = 0; i < TICKETS; i++)
		xs[i].fed_all = true;
	slow = ask(gone[0].x);
	other = ask(gone[0].x + XFER_CLIENTS);
	third = ask(gone[0].x + 2 * XFER_CLIENTS);
	assert_int_equal(xs[slow].client, xs[other].client);
	end_one(TICKETS);
	assert_true(xs[other].have_ticket);
	end_one(1);
	assert_true(xs[third].have_ticket);
	assert_false(xs[slow].have_ticket);
	end_one(2);
	assert_true(xs[slow].have_ticket);
}

/* Who was slow of late has a quarter of the grace when it comes again. */
static void
test_slow_again(void **state)
{
	uint64_t rate[N] = { 0 };
	int again;

	for (int i = 0; i < TICKETS; i++) {
		hold(i);
		rate[i] = i ? 1000000 : 0;
	}
	ask(50);
	looks(500, rate);
	assert_int_equal(gone_nr, 1);
	end_one(0);
	xs[TICKETS].fed_all = true;
	end_one(1);
	again = hold(0);
	ask(51);
	looks(100, rate);
	assert_int_equal(gone_nr, 1);
	looks(100, rate);
	assert_int_equal(gone_nr, 2);
	assert_int_equal(gone[1].x, again);
}

/* With no pace to keep nobody is slow; shares hold all the same. */
static void
test_no_pace(void **state)
{
	static const struct xfer_pace none = { .grace_ns = 400 * NS_PER_MS };

	for (int i = 0; i < TICKETS; i++)
		hold(i == 0 ? 1 : 2);
	ask(1);
	for (int t = 0; t < 30; t++) {
		now += XFER_LOOK_NS;
		xfer_pool_revoke(&xp, &none, &ops, now);
	}
	assert_int_equal(gone_nr, 1);
	assert_int_equal(gone[0].why, XFER_OVER_SHARE);
	assert_int_equal(xs[gone[0].x].client, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_slowest_first, begin, end),
		cmocka_unit_test_setup_teardown(test_pace_kept, begin, end),
		cmocka_unit_test_setup_teardown(test_late_look, begin, end),
		cmocka_unit_test_setup_teardown(test_our_turn, begin, end),
		cmocka_unit_test_setup_teardown(test_unsent, begin, end),
		cmocka_unit_test_setup_teardown(test_share, begin, end),
		cmocka_unit_test_setup_teardown(test_writes, begin, end),
		cmocka_unit_test_setup_teardown(test_share_of_writes, begin, end),
		cmocka_unit_test_setup_teardown(test_lane, begin, end),
		cmocka_unit_test_setup_teardown(test_least_first, begin, end),
		cmocka_unit_test_setup_teardown(test_slow_last, begin, end),
		cmocka_unit_test_setup_teardown(test_late, begin, end),
		cmocka_unit_test_setup_teardown(test_slow_neighbour, begin, end),
		cmocka_unit_test_setup_teardown(test_slow_again, begin, end),
		cmocka_unit_test_setup_teardown(test_no_pace, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
