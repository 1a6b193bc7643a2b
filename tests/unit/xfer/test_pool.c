/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharing out buffers: the ticket's guarantee under random load.  Whoever holds a ticket and no large buffer
 * gets one at once, whatever the others hold; nobody is forgotten; everything comes back.  And between
 * clients: half for one while another waits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/check.h"
#include "xfer/xfer_int.h"

#include <errno.h>
#include <netinet/in.h>
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

/* What a client has, counted by hand: large buffers, and a place for each ticket without one. */
static int
has(int client)
{
	int n = 0;

	for (int i = 0; i < N; i++) {
		if (xs[i].client == client && xs[i].have_ticket)
			n += xs[i].main_bufs ? xs[i].main_bufs : 1;
	}
	return n;
}

/* The same of writes, of all clients. */
static int
writes_have(void)
{
	int n = 0;

	for (int i = 0; i < N; i++) {
		if (xs[i].is_write && xs[i].have_ticket)
			n += xs[i].main_bufs ? xs[i].main_bufs : 1;
	}
	return n;
}

static bool
others_wait(int client)
{
	for (int i = 0; i < N; i++) {
		if (xs[i].client != client && list_linked(&xs[i].link))
			return true;
	}
	return false;
}

static void
random_run(bool runs)
{
	const char *env = getenv("SEED");
	unsigned seed = env ? (unsigned)strtoul(env, NULL, 0) : (unsigned)time(NULL);
	struct bufpool bp;
	struct xfer_pool xp;
	int taken = 0;

	granted = 0;
	printf("SEED=%u\n", seed);
	assert_int_equal(runs ? bufpool_init_runs(&bp, 120u << 20) : bufpool_init(&bp, 12u << 20), 0);
	/* Room for all in the queue but its last quarter, which is not
	 * for the client that has most of them. */
	xfer_pool_init(&xp, &bp, BUF_LARGE, 8, 2 * N);
	for (int i = 0; i < N; i++) {
		xs[i].done = xs[i].wake = on_done;
		xs[i].client = (uint8_t)(i % 5 > 2 ? 2 : i % 5); /* the third has most of them */
		xs[i].is_write = i % 2;
		xfer_init(&xs[i], &xp, NULL, NULL);
	}
	for (int s = 0; s < STEPS; s++) {
		int i = (int)(rand_r(&seed) % N);
		struct xfer *x = &xs[i];
		unsigned what = rand_r(&seed) % 8;

		if (!x->have_ticket && !x->is_waiting) {
			assert_true(xfer_ticket(x) >= 0);
		} else if (x->have_ticket && what < 4) {
			static const size_t lens[] = { BUF_SMALL_BYTES, BUF_LARGE_BYTES, BUF_RUN_BYTES };
			size_t len = lens[rand_r(&seed) % (runs ? 3 : 2)];
			bool bare = x->main_bufs == 0, wait = others_wait(x->client);
			struct buf *b = pool_buf_get(x, len);

			if (b && (!bare || b->cls == BUF_RUN) && wait && b->cls != BUF_SMALL)
				assert_true(has(x->client) <= bp.total[BUF_LARGE] / 2);
			assert_true(x->bufs <= 8);
			taken += b && b->cls == BUF_RUN;

			if (b)
				held[i][held_nr[i]++] = b;
			else if (bare)
				/* the guarantee, unless it has all it may have */
				assert_true(x->bufs + (len > BUF_LARGE_BYTES ? BUF_RUN_NR : 1) > 8);
		} else if (held_nr[i] && what < 7) {
			pool_buf_put(x, held[i][--held_nr[i]]);
		} else if (x->have_ticket && !held_nr[i]) {
			pool_ticket_put(x);
		}
		assert_true(bp.avail[BUF_LARGE] >= xp.bare);
		assert_true(xp.tickets_out <= xp.tickets);
		for (int c = 0; c < 3; c++)
			assert_int_equal(xp.client[c].held, has(c));
		assert_int_equal(xp.writes, writes_have());
		assert_true(xp.writes <= xp.writes_max);
	}
	assert_true(xp.writes_max < bp.total[BUF_LARGE]);
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
	assert_true(!runs || taken > STEPS / 1000);
	assert_int_equal(xp.tickets_out, 0);
	assert_int_equal(xp.waits + xp.writes + xp.queued + xp.queued_writes, 0);
	for (int c = 0; c < 3; c++) {
		assert_int_equal(xp.client[c].held, 0);
		assert_int_equal(xp.client[c].waits, 0);
		assert_int_equal(xp.client[c].queued + xp.client[c].queued_writes, 0);
	}
	assert_int_equal(bp.avail[BUF_LARGE], bp.total[BUF_LARGE]);
	assert_int_equal(bp.avail[BUF_SMALL], bp.total[BUF_SMALL]);
	bufpool_fini(&bp);
}

static void
test_random(void **state)
{
	random_run(false);
}

static void
test_random_runs(void **state)
{
	random_run(true);
}

/* A run is what is left over, whole, and not all that the transfer may have; else one buffer does, or it waits for its own. */
static void
test_run(void **state)
{
	struct bufpool bp, plain;
	struct xfer_pool xp;
	struct buf *b[16], *other;
	struct xfer *x = &xs[0];

	assert_int_equal(bufpool_init_runs(&bp, 20u << 20), 0);
	assert_int_equal(bp.total[BUF_LARGE], 16);
	xfer_pool_init(&xp, &bp, BUF_LARGE, 8, 16);
	for (int i = 0; i < 2; i++) {
		xs[i] = (struct xfer){ .done = on_done, .wake = on_done };
		xfer_init(&xs[i], &xp, NULL, NULL);
		assert_int_equal(xfer_ticket(&xs[i]), 1);
	}
	/* Half empty it would be. */
	assert_non_null(b[0] = pool_buf_get(x, BUF_RUN_BYTES / 2));
	assert_int_equal(b[0]->cls, BUF_LARGE);
	pool_buf_put(x, b[0]);
	/* Two are all that it may have: it is not hungry, its own comes back. */
	for (int i = 0; i < 2; i++) {
		assert_non_null(b[i] = pool_buf_get(x, BUF_RUN_BYTES / 2 + 1));
		assert_int_equal(b[i]->cls, BUF_RUN);
		assert_int_equal(x->bufs, 4 * (i + 1));
		assert_int_equal(x->main_bufs, 4 * (i + 1));
	}
	assert_int_equal(xp.client[0].held, 9);
	assert_null(pool_buf_get(x, BUF_RUN_BYTES));
	assert_false(list_linked(&x->link));
	pool_buf_put(x, b[1]);
	assert_int_equal(xp.client[0].held, 5);
	/* None is whole: single ones. */
	for (int i = 0; i < 3; i++)
		b[2 + i] = bufpool_get_run(&bp);
	assert_null(bufpool_get_run(&bp));
	bufpool_put(&bp, b[2]);
	other = bufpool_get(&bp, BUF_LARGE);
	assert_non_null(b[1] = pool_buf_get(x, BUF_RUN_BYTES));
	assert_int_equal(b[1]->cls, BUF_LARGE);
	/* No room for four beside what it has. */
	assert_null(pool_buf_get(x, BUF_RUN_BYTES));
	assert_false(list_linked(&x->link));
	pool_buf_put(x, b[0]);
	pool_buf_put(x, b[1]);
	assert_int_equal(xp.bare, 2);
	bufpool_put(&bp, other);
	/* Whole, and kept for a ticket in part. */
	pool_ticket_put(x);
	assert_int_equal(xfer_ticket(x), 1);
	bufpool_put(&bp, b[3]);
	bufpool_put(&bp, b[4]);
	for (int i = 0; i < 3; i++)
		b[i] = bufpool_get_run(&bp);
	assert_int_equal(bp.avail[BUF_LARGE], 4);
	assert_int_equal(xp.bare, 2);
	assert_non_null(b[3] = pool_buf_get(x, BUF_RUN_BYTES));
	assert_int_equal(b[3]->cls, BUF_LARGE);
	pool_buf_put(x, b[3]);
	for (int i = 0; i < 3; i++)
		bufpool_put(&bp, b[i]);
	xfer_fini(&xs[0]);
	xfer_fini(&xs[1]);
	/* Where one is all that a transfer could have at a time there are none. */
	xfer_pool_init(&xp, &bp, BUF_LARGE, 7, 16);
	xfer_init(x, &xp, NULL, NULL);
	assert_int_equal(xfer_ticket(x), 1);
	assert_non_null(b[0] = pool_buf_get(x, BUF_RUN_BYTES));
	assert_int_equal(b[0]->cls, BUF_LARGE);
	pool_buf_put(x, b[0]);
	xfer_fini(x);
	bufpool_fini(&bp);
	/* Nor of a pool without. */
	assert_int_equal(bufpool_init(&plain, 20u << 20), 0);
	xfer_pool_init(&xp, &plain, BUF_LARGE, 8, 16);
	xfer_init(x, &xp, NULL, NULL);
	assert_int_equal(xfer_ticket(x), 1);
	for (int i = 0; i < 8; i++) {
		assert_non_null(b[i] = pool_buf_get(x, BUF_RUN_BYTES));
		assert_int_equal(b[i]->cls, BUF_LARGE);
	}
	for (int i = 0; i < 8; i++)
		pool_buf_put(x, b[i]);
	xfer_fini(x);
	bufpool_fini(&plain);
}

/* The store has what nobody needs: while somebody waits it has nothing more, and half stays.  What comes back goes to who waits. */
static void
test_spares(void **state)
{
	struct store_spares *s;
	struct bufpool bp;
	struct xfer_pool xp;
	struct buf *b[XFER_PIECES_MAX], *spare[N];
	int nr = 0, total;

	assert_int_equal(bufpool_init_runs(&bp, 40u << 20), 0);
	xfer_pool_init(&xp, &bp, BUF_LARGE, 8, 16);
	s = &xp.spares;
	total = bp.total[BUF_LARGE];
	assert_int_equal(total % BUF_RUN_NR, 0);
	assert_null(s->take(s, BUF_SMALL));
	while ((spare[nr] = s->take(s, nr % 2 ? BUF_LARGE : BUF_RUN)))
		assert_true(++nr < N);
	assert_in_range(bp.avail[BUF_LARGE], total / 2, total / 2 + BUF_RUN_NR - 1);
	while (nr)
		s->give(s, spare[--nr]);
	assert_int_equal(bp.avail[BUF_LARGE], total);
	while ((spare[nr] = s->take(s, BUF_LARGE)))
		assert_true(++nr < N);
	assert_int_equal(nr, total / 2);

	/* Tickets for all the others, and one that waits. */
	memset(xs, 0, sizeof xs);
	granted = 0;
	for (int i = 0; i <= total - nr; i++) {
		xs[i].done = xs[i].wake = on_done;
		xfer_init(&xs[i], &xp, NULL, NULL);
		assert_int_equal(xfer_ticket(&xs[i]), i < total - nr);
	}
	assert_null(s->take(s, BUF_LARGE));
	s->give(s, spare[--nr]);
	assert_true(xs[total / 2].have_ticket);
	assert_int_equal(granted, 1);
	/* Nobody waits, and what is left is their tickets'. */
	assert_null(s->take(s, BUF_LARGE));
	for (int i = 0; i <= total / 2; i++)
		xfer_fini(&xs[i]);

	/* The tickets' and half of all stay, and one that would like another buffer has it first. */
	while (nr)
		s->give(s, spare[--nr]);
	xs[0].done = xs[0].wake = on_done;
	xfer_init(&xs[0], &xp, NULL, NULL);
	assert_int_equal(xfer_ticket(&xs[0]), 1);
	assert_non_null(b[0] = pool_buf_get(&xs[0], BUF_RUN_BYTES));
	while ((spare[nr] = s->take(s, BUF_RUN)))
		nr++;
	assert_true(nr > 0);
	xp.waits++;
	assert_null(s->take(s, BUF_LARGE));
	xp.waits--;
	xp.shut++;
	assert_null(s->take(s, BUF_LARGE));
	xp.shut--;
	pool_buf_put(&xs[0], b[0]);
	xfer_fini(&xs[0]);
	while (nr)
		s->give(s, spare[--nr]);
	assert_int_equal(xp.bare + xp.tickets_out, 0);
	assert_int_equal(bp.avail[BUF_LARGE], total);
	bufpool_fini(&bp);

	/* No runs where requests have none. */
	assert_int_equal(bufpool_init_runs(&bp, 40u << 20), 0);
	xfer_pool_init(&xp, &bp, BUF_LARGE, 7, 16);
	assert_null(s->take(s, BUF_RUN));
	assert_non_null(spare[0] = s->take(s, BUF_LARGE));
	s->give(s, spare[0]);
	bufpool_fini(&bp);
}

/* A read whose bytes came into another buffer: the piece has that one, also where the transfer had failed meanwhile. */
static void
test_exchange(void **state)
{
	struct bufpool bp;
	struct xfer_pool xp;
	struct buf *spare, *own;
	struct xfer *x = &xs[0];
	struct piece *p;

	assert_int_equal(bufpool_init_runs(&bp, 20u << 20), 0);
	xfer_pool_init(&xp, &bp, BUF_LARGE, 8, 16);
	for (int failed = 0; failed < 2; failed++) {
		memset(xs, 0, sizeof xs[0]);
		x->done = x->wake = on_done;
		xfer_init(x, &xp, NULL, NULL);
		assert_int_equal(xfer_ticket(x), 1);
		assert_non_null(spare = xp.spares.take(&xp.spares, BUF_RUN));
		p = piece_get(x, BUF_RUN_BYTES);
		assert_non_null(p);
		own = p->buf;
		p->state = PIECE_READING;
		p->len = 1000;
		x->inflight = 1;
		x->result = failed ? -EINTR : 0;
		p->rd.lead = 0;
		p->rd.instead = spare;
		assert_int_equal(piece_read_arrived(p, 1000, 1), !failed);
		assert_ptr_equal(p->buf, failed ? NULL : spare);
		assert_int_equal(own->in_use, 1);
		assert_int_equal(spare->in_use, !failed);
		/* As the store does. */
		xp.spares.give(&xp.spares, own);
		x->ended = true;
		xfer_fini(x);
		assert_int_equal(bp.avail[BUF_LARGE], bp.total[BUF_LARGE]);
	}
	bufpool_fini(&bp);
}

/* So much of a lane's is out (-1: of those with two), counted by hand: all buffers, and a place for each ticket without one. */
static int
lane_has(int lane, int *ret_large)
{
	int n = 0;

	*ret_large = 0;
	for (int i = 0; i < N; i++) {
		bool two = xs[i].lane[0] && xs[i].lane[1];

		if (!xs[i].have_ticket || (lane < 0 ? !two : two || xs[i].lane[0] != lane + 1))
			continue;
		n += xs[i].bufs ? xs[i].bufs : 1;
		*ret_large += xs[i].main_bufs ? xs[i].main_bufs : 1;
	}
	return n;
}

/* Of four lanes one gives nothing back for a long while: it has half at most, and the others get what they want. */
static void
test_lanes(void **state)
{
	const char *env = getenv("SEED");
	unsigned seed = env ? (unsigned)strtoul(env, NULL, 0) : (unsigned)time(NULL);
	struct bufpool bp;
	struct xfer_pool xp;
	long served[N] = { 0 };
	int half, large;

	printf("SEED=%u\n", seed);
	assert_int_equal(bufpool_init(&bp, 12u << 20), 0);
	xfer_pool_init(&xp, &bp, BUF_LARGE, 8, 4 * N);
	half = bp.total[BUF_LARGE] / 2;
	memset(xs, 0, sizeof xs);
	memset(held_nr, 0, sizeof held_nr);
	for (int i = 0; i < N; i++) {
		xs[i].done = xs[i].wake = on_done;
		xs[i].client = (uint8_t)(i % 3);
		/* Some copy from one to another. */
		xfer_set_lanes(&xs[i], i % 4, i % 7 ? i % 4 : (i + 1) % 4);
		xs[i].is_write = i % 7 == 0 || i % 3 == 0;
		xfer_init(&xs[i], &xp, NULL, NULL);
	}
	for (int s = 0; s < STEPS; s++) {
		int i = (int)(rand_r(&seed) % N);
		struct xfer *x = &xs[i];
		bool hangs = s > STEPS / 4 && s < STEPS / 4 * 3 && (x->lane[0] == 1 || x->lane[1] == 1);
		unsigned what = rand_r(&seed) % 8;

		if (!x->have_ticket && !x->is_waiting) {
			assert_true(xfer_ticket(x) >= 0);
		} else if (x->have_ticket && what < 3) {
			bool bare = x->main_bufs == 0;
			struct buf *b =
				pool_buf_get(x, rand_r(&seed) % 2 ? BUF_SMALL_BYTES : BUF_LARGE_BYTES);

			if (b)
				held[i][held_nr[i]++] = b;
			else if (bare)
				assert_int_equal(x->bufs, 8);
		} else if (hangs && rand_r(&seed) % 16) {
			/* What would come back does not; now and then one that waits gives up. */
		} else if (hangs && x->is_waiting) {
			pool_ticket_put(x);
		} else if (!hangs && held_nr[i] && what < 7) {
			pool_buf_put(x, held[i][--held_nr[i]]);
			served[i] += s > STEPS / 2 && s < STEPS / 4 * 3;
		} else if (!hangs && x->have_ticket && !held_nr[i]) {
			pool_ticket_put(x);
		}
		for (int l = -1; l < 4; l++) {
			int waits = 0;
			int n = lane_has(l, &large);

			for (int k = 0; k < N; k++) {
				bool two = xs[k].lane[0] && xs[k].lane[1];

				waits += xs[k].is_waiting && !xs[k].back &&
					 (l < 0 ? two : !two && xs[k].lane[0] == l + 1);
			}
			assert_int_equal(xp.lane[l + 1].held, n + waits);
			assert_true(l < 0 ||
				    xp.lane[l + 1].writes <=
					    (half - half / 4 > 1 ? half - half / 4 : 1) + XFER_PIECES_MAX);
			assert_true(large <= (l < 0 ? (half / 4 ? half / 4 : 1) : half));
		}
	}
	for (int i = 0; i < N; i++)
		/* Those that copy have few places, and all of these may hang. */
		assert_true(served[i] > 0 || xs[i].lane[0] == 1 || xs[i].lane[1]);
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
	for (int l = 0; l <= 4; l++)
		assert_int_equal(xp.lane[l].held + xp.lane[l].writes + xp.lane[l].shut, 0);
	assert_int_equal(bp.avail[BUF_LARGE], bp.total[BUF_LARGE]);
	assert_int_equal(bp.avail[BUF_SMALL], bp.total[BUF_SMALL]);
	bufpool_fini(&bp);
}

/* Writes of a lane that give nothing back: its reads have a quarter of what the lane may have, and pass the writes. */
static void
test_lane_writes(void **state)
{
	enum { WRITES = 6, READS = 3 };
	struct bufpool bp;
	struct xfer_pool xp;
	int half, i = 0;

	assert_int_equal(bufpool_init_class(&bp, BUF_SMALL, 16 * (BUF_SMALL_BYTES + BUF_SLACK_BYTES), 0), 0);
	xfer_pool_init(&xp, &bp, BUF_SMALL, 8, 16);
	half = xp.tickets / 2;
	assert_int_equal(half, 8);
	memset(xs, 0, sizeof xs);
	for (; i < WRITES + 2 + READS; i++) {
		xs[i].done = xs[i].wake = on_done;
		xs[i].is_write = i < WRITES + 2;
		xfer_set_lanes(&xs[i], 0, -1);
		xfer_init(&xs[i], &xp, NULL, NULL);
		assert_int_equal(xfer_ticket(&xs[i]),
				 i < WRITES || (i >= WRITES + 2 && i < WRITES + 4) ? 1 : 0);
	}
	/* The two writes are held back, and a read behind them that has the lane's share gets what a read gives back. */
	pool_ticket_put(&xs[WRITES + 2]);
	assert_true(xs[WRITES + 4].have_ticket && !xs[WRITES].have_ticket);
	pool_ticket_put(&xs[0]);
	assert_true(xs[WRITES].have_ticket && !xs[WRITES + 1].have_ticket);
	/* Half of the queue for the lane, and for its writes three quarters of that. */
	for (int n = 1; n < 8; n++, i++) {
		xs[i].done = xs[i].wake = on_done;
		xs[i].is_write = true;
		xfer_set_lanes(&xs[i], 0, -1);
		xfer_init(&xs[i], &xp, NULL, NULL);
		assert_int_equal(xfer_ticket(&xs[i]), n < 6 ? 0 : -EAGAIN);
	}
	for (int k = 0; k < i; k++)
		xfer_fini(&xs[k]);
	assert_int_equal(xp.tickets_out + xp.queued + xp.shut + xp.lane[1].writes + xp.lane[1].held, 0);
	bufpool_fini(&bp);
}

/* A lane is full of reads, and each read that ends is followed by another one: the lane's write gets a place within two
 * ends, and the next write not before a read had its turn. */
static void
test_lane_turns(void **state)
{
	enum { HALF = 8, READS = HALF + 2, WRITES = 2 };
	struct bufpool bp;
	struct xfer_pool xp;

	assert_int_equal(bufpool_init_class(&bp, BUF_SMALL, 16 * (BUF_SMALL_BYTES + BUF_SLACK_BYTES), 0), 0);
	xfer_pool_init(&xp, &bp, BUF_SMALL, 8, 16);
	assert_int_equal(xp.tickets / 2, HALF);
	memset(xs, 0, sizeof xs);
	for (int i = 0; i < READS + WRITES; i++) {
		xs[i].done = xs[i].wake = on_done;
		xs[i].is_write = i >= READS;
		xfer_set_lanes(&xs[i], 0, -1);
		xfer_init(&xs[i], &xp, NULL, NULL);
		assert_int_equal(xfer_ticket(&xs[i]), i < HALF);
	}
	for (int i = 0; i < 4; i++) {
		assert_true(xs[i].have_ticket);
		pool_ticket_put(&xs[i]);
		assert_int_equal(xfer_ticket(&xs[i]), 0);
		assert_int_equal(xs[READS].have_ticket + xs[READS + 1].have_ticket, (i + 1) / 2);
	}
	for (int i = 0; i < READS + WRITES; i++)
		xfer_fini(&xs[i]);
	assert_int_equal(xp.tickets_out + xp.queued + xp.shut + xp.lane[1].writes + xp.lane[1].held, 0);
	bufpool_fini(&bp);
}

/* Writes that give nothing back have three quarters of the buffers and of the queue; reads are served at once, also those of
 * the client whose writes wait, and a read that waits does not wait for them.  The first that comes back is the next
 * write's. */
static void
test_writes(void **state)
{
	enum { WRITES = 12, QUEUE = 8, READS = 4 };
	struct bufpool bp;
	struct xfer_pool xp;
	struct buf *first[N] = { NULL };
	int reads = WRITES + QUEUE;

	assert_int_equal(bufpool_init_class(&bp, BUF_SMALL, 16 * (BUF_SMALL_BYTES + BUF_SLACK_BYTES), 0), 0);
	xfer_pool_init(&xp, &bp, BUF_SMALL, 8, QUEUE);
	memset(xs, 0, sizeof xs);
	for (int i = 0; i < reads + READS + 2; i++) {
		xs[i].done = xs[i].wake = on_done;
		xs[i].is_write = i < reads;
		xs[i].client = i < reads + 2 ? 1 : 2;
		xfer_init(&xs[i], &xp, NULL, NULL);
	}
	for (int i = 0; i < reads; i++)
		assert_int_equal(xfer_ticket(&xs[i]), i < WRITES                       ? 1
						      : i < WRITES + QUEUE - QUEUE / 4 ? 0
										       : -EAGAIN);
	/* Each has its one buffer, and none has two. */
	for (int i = 0; i < WRITES; i++) {
		assert_non_null(first[i] = pool_buf_get(&xs[i], BUF_SMALL_BYTES));
		assert_null(pool_buf_get(&xs[i], BUF_SMALL_BYTES));
	}
	for (int i = reads; i < reads + READS + 2; i++) {
		assert_int_equal(xfer_ticket(&xs[i]), i < reads + READS ? 1 : 0);
		if (i < reads + READS)
			assert_non_null(first[i] = pool_buf_get(&xs[i], BUF_SMALL_BYTES));
	}
	pool_buf_put(&xs[reads], first[reads]);
	pool_ticket_put(&xs[reads]);
	assert_true(xs[reads + READS].have_ticket && !xs[WRITES].have_ticket);
	/* A read takes what a write gives back only if no write waits that has less. */
	pool_buf_put(&xs[0], first[0]);
	pool_ticket_put(&xs[0]);
	pool_buf_put(&xs[1], first[1]);
	pool_ticket_put(&xs[1]);
	assert_true(xs[reads + READS + 1].have_ticket && xs[WRITES].have_ticket);
	for (int i = 0; i < reads + READS + 2; i++) {
		if (xs[i].bufs)
			pool_buf_put(&xs[i], first[i]);
		xfer_fini(&xs[i]);
	}
	assert_int_equal(xp.tickets_out + xp.queued + xp.queued_writes + xp.writes, 0);
	bufpool_fini(&bp);
}

/* A lane has half of the queue as well. */
static void
test_lane_queue(void **state)
{
	struct bufpool bp;
	struct xfer_pool xp;
	int half;

	assert_int_equal(bufpool_init(&bp, 10u << 20), 0);
	xfer_pool_init(&xp, &bp, BUF_LARGE, 8, 8);
	half = xp.tickets / 2;
	assert_true(half >= 1 && half + 7 <= N);
	memset(xs, 0, sizeof xs);
	for (int i = 0; i < half + 7; i++) {
		bool other = i >= half + 5;

		xs[i].done = xs[i].wake = on_done;
		xfer_set_lanes(&xs[i], other, -1);
		xfer_init(&xs[i], &xp, NULL, NULL);
		assert_int_equal(xfer_ticket(&xs[i]), i < half || other ? 1 : i < half + 4 ? 0 : -EAGAIN);
	}
	/* In order, and one that gives up is in nobody's way. */
	pool_ticket_put(&xs[half]);
	pool_ticket_put(&xs[0]);
	assert_true(xs[half + 1].have_ticket && !xs[half + 2].have_ticket);
	for (int i = 0; i < half + 7; i++)
		xfer_fini(&xs[i]);
	assert_int_equal(xp.tickets_out + xp.queued, 0);
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

/* One client does not fill the queue: its last quarter is others'. */
static void
test_queue_shared(void **state)
{
	struct bufpool bp;
	struct xfer_pool xp;
	int nr;

	assert_int_equal(bufpool_init(&bp, 4u << 20), 0);
	xfer_pool_init(&xp, &bp, BUF_LARGE, 8, 8);
	nr = xp.tickets;
	assert_true(nr + 10 <= N);
	memset(xs, 0, sizeof xs);
	for (int i = 0; i < nr + 10; i++) {
		int in_queue = i - nr;

		xs[i].done = xs[i].wake = on_done;
		xs[i].client = in_queue >= 7;
		xfer_init(&xs[i], &xp, NULL, NULL);
		assert_int_equal(xfer_ticket(&xs[i]), i < nr                           ? 1
						      : in_queue == 6 || in_queue == 9 ? -EAGAIN
										       : 0);
	}
	for (int i = 0; i < nr + 10; i++)
		xfer_fini(&xs[i]);
	assert_int_equal(xp.client[0].queued + xp.client[1].queued, 0);
	bufpool_fini(&bp);
}

/* claim TM27: a client with everything: what comes back goes to the other one in the queue, until it has
 * half. */
static void
test_two_clients(void **state)
{
	struct bufpool bp;
	struct xfer_pool xp;
	int nr, half;

	assert_int_equal(bufpool_init(&bp, 10u << 20), 0);
	xfer_pool_init(&xp, &bp, BUF_LARGE, 8, N);
	nr = xp.tickets;
	half = nr / 2;
	assert_true(nr >= 6 && 3 * nr <= N);
	memset(xs, 0, sizeof xs);
	for (int i = 0; i < 3 * nr; i++) {
		xs[i].done = xs[i].wake = on_done;
		xs[i].client = i >= 2 * nr; /* two thirds are the first client's, and come first */
		xfer_init(&xs[i], &xp, NULL, NULL);
		assert_int_equal(xfer_ticket(&xs[i]), i < nr);
	}
	for (int i = 0; i < nr; i++)
		pool_ticket_put(&xs[i]);
	/* The other one's went ahead while the first had half or more, then each got its own. */
	assert_int_equal(has(0) + has(1), nr);
	assert_true(has(1) >= half && has(1) <= half + 1);
	assert_true(xs[nr].have_ticket);
	for (int i = 0; i < 3 * nr; i++)
		xfer_fini(&xs[i]);
	assert_int_equal(xp.tickets_out, 0);
	assert_int_equal(xp.waits, 0);
	assert_int_equal(bp.avail[BUF_LARGE], nr);
	bufpool_fini(&bp);
}

/* Three clients in the queue, the first with most and in front:
 * they take turns, and each one's are in order. */
static void
test_turns(void **state)
{
	static const int client[] = { 1, 1, 1, 1, 2, 2, 3 };
	static const int order[] = { 0, 4, 6, 1, 5, 2, 3 };
	struct bufpool bp;
	struct xfer_pool xp;
	int nr, n = 7;

	assert_int_equal(bufpool_init(&bp, 24u << 20), 0);
	xfer_pool_init(&xp, &bp, BUF_LARGE, 8, 100);
	nr = xp.tickets;
	assert_true(nr > 2 * n && nr + n <= N);
	memset(xs, 0, sizeof xs);
	for (int i = 0; i < nr + n; i++) {
		xs[i].done = xs[i].wake = on_done;
		xs[i].client = (uint8_t)(i < nr ? 10 + i : client[i - nr]); /* nobody has half */
		xfer_init(&xs[i], &xp, NULL, NULL);
		assert_int_equal(xfer_ticket(&xs[i]), i < nr);
	}
	for (int i = 0; i < n; i++) {
		assert_false(xs[nr + order[i]].have_ticket);
		pool_ticket_put(&xs[i]);
		assert_true(xs[nr + order[i]].have_ticket);
	}
	for (int i = 0; i < nr + n; i++)
		xfer_fini(&xs[i]);
	assert_int_equal(xp.tickets_out, 0);
	assert_int_equal(xp.waits, 0);
	bufpool_fini(&bp);
}

/* What a transfer does when it is fed. */
static void
on_fed(struct xfer *x)
{
	struct buf *b = pool_buf_get(x, BUF_LARGE_BYTES);
	long i = x - xs;

	if (b)
		held[i][held_nr[i]++] = b;
}

/* Three transfers on eight large buffers, each of which takes some; the last one is of client `last`. */
static void
begin_three(struct bufpool *bp, struct xfer_pool *xp, void (*wake)(struct xfer *), const int takes[3],
	    uint8_t last)
{
	assert_int_equal(bufpool_init(bp, 10u << 20), 0);
	xfer_pool_init(xp, bp, BUF_LARGE, 8, N);
	assert_int_equal(xp->tickets, 8);
	memset(xs, 0, sizeof xs);
	memset(held_nr, 0, sizeof held_nr);
	for (int i = 0; i < 3; i++) {
		xs[i].done = on_done;
		xs[i].wake = wake;
		xs[i].client = i == 2 ? last : 0;
		xfer_init(&xs[i], xp, NULL, NULL);
		xs[i].mode = XFER_ACCEPT; /* feeding it is waking it */
		assert_int_equal(xfer_ticket(&xs[i]), 1);
	}
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < takes[i]; k++)
			on_fed(&xs[i]);
		assert_int_equal(held_nr[i], takes[i]);
	}
}

/* The first nr of them end, and nothing is left. */
static void
end_them(struct bufpool *bp, struct xfer_pool *xp, int nr)
{
	for (int i = 0; i < nr; i++) {
		xs[i].ended = true;
		while (held_nr[i])
			pool_buf_put(&xs[i], held[i][--held_nr[i]]);
		xfer_fini(&xs[i]);
	}
	assert_int_equal(xp->waits, 0);
	assert_int_equal(xp->tickets_out, 0);
	assert_int_equal(bp->avail[BUF_LARGE], 8);
	bufpool_fini(bp);
}

/* Both clients hungry, the first one's first in line and within its even share: the surplus goes to the
 * other. */
static void
test_surplus(void **state)
{
	struct bufpool bp;
	struct xfer_pool xp;

	begin_three(&bp, &xp, on_fed, (int[]){ 6, 1, 1 }, 1);
	on_fed(&xs[1]);
	on_fed(&xs[2]);
	assert_int_equal(xp.waits, 2);
	pool_buf_put(&xs[0], held[0][--held_nr[0]]);
	assert_int_equal(held_nr[1], 1);
	assert_int_equal(held_nr[2], 2);
	end_them(&bp, &xp, 3);
}

/* A transfer that takes whatever there is, and stays in line for more. */
static void
on_fed_all(struct xfer *x)
{
	struct buf *b;
	long i = x - xs;

	while ((b = pool_buf_get(x, BUF_LARGE_BYTES)))
		held[i][held_nr[i]++] = b;
}

/* One that wants more and ends leaves the line, also when what it gives back goes to those before it. */
static void
test_hungry_ends(void **state)
{
	struct bufpool bp;
	struct xfer_pool xp;

	begin_three(&bp, &xp, on_fed_all, (int[]){ 5, 2, 1 }, 0);
	for (int i = 0; i < 3; i++)
		on_fed_all(&xs[i]);
	assert_int_equal(xp.waits, 3);
	xs[2].ended = true;
	pool_buf_put(&xs[2], held[2][--held_nr[2]]);
	xfer_fini(&xs[2]);
	assert_false(list_linked(&xs[2].link));
	assert_int_equal(xp.waits, 2);
	end_them(&bp, &xp, 2);
}

/* claim TM36: a client is an IPv4 address, or a /64 of IPv6, whatever the port; who is near whom depends
 * on the key. */
static void
test_client_of(void **state)
{
	static const uint64_t key[2] = { 1, 2 }, other_key[2] = { 1, 3 };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = 1, .sin_addr.s_addr = 0x0100007f }, b = a;
	struct sockaddr_in6 c = { .sin6_family = AF_INET6, .sin6_port = 1 }, d = c;
	int apart = 0, other = 0;

	b.sin_port = 2;
	assert_int_equal(xfer_client_of((struct sockaddr *)&a, key),
			 xfer_client_of((struct sockaddr *)&b, key));
	for (unsigned i = 0; i < 1000; i++) {
		unsigned x = xfer_client_of((struct sockaddr *)&b, key), y;

		b.sin_addr.s_addr = htonl(0x0a000000u + i);
		y = xfer_client_of((struct sockaddr *)&b, key);
		apart += y % XFER_CLIENTS != x % XFER_CLIENTS;
		other += y != xfer_client_of((struct sockaddr *)&b, other_key);
		/* The rest of the address is the client's to choose. */
		d.sin6_port = (uint16_t)i;
		d.sin6_addr.s6_addr[8] = (uint8_t)(i >> 8);
		d.sin6_addr.s6_addr[15] = (uint8_t)i;
		assert_int_equal(xfer_client_of((struct sockaddr *)&c, key),
				 xfer_client_of((struct sockaddr *)&d, key));
	}
	assert_true(apart > 900); /* neighbours */
	assert_true(other > 990);
	for (int i = 0; i < 8; i++) {
		d.sin6_addr.s6_addr[i] ^= 1;
		assert_int_not_equal(xfer_client_of((struct sockaddr *)&c, key),
				     xfer_client_of((struct sockaddr *)&d, key));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),       cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_lane_queue),   cmocka_unit_test(test_queue),
		cmocka_unit_test(test_lane_writes),  cmocka_unit_test(test_writes),
		cmocka_unit_test(test_queue_shared), cmocka_unit_test(test_two_clients),
		cmocka_unit_test(test_turns),        cmocka_unit_test(test_surplus),
		cmocka_unit_test(test_hungry_ends),  cmocka_unit_test(test_client_of),
		cmocka_unit_test(test_random_runs),  cmocka_unit_test(test_run),
		cmocka_unit_test(test_spares),       cmocka_unit_test(test_exchange),
		cmocka_unit_test(test_lane_turns)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
