/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the modes share: pieces, reading, writing, the end.  See xfer.h.
 *
 * A piece:   IDLE -> READING -> READY -> WIRE -> IDLE            PUSH
 *            IDLE -> READING -> READY -> IDLE                    SERVE (READY until taken)
 *            IDLE -> WIRE -> READY -> WRITING -> IDLE            PULL  (READY until its turn in order)
 *            IDLE -> FILLING -> WRITING -> IDLE                  ACCEPT
 *                    ... -> KEPT -> IDLE                         the last piece of PULL and ACCEPT: rides
 * with the commit.  COPY: see copy.c.
 */
#include "xfer/xfer_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
xfer_set_client(struct xfer *x, uint32_t client)
{
	x->client = (uint8_t)(client % XFER_CLIENTS);
	x->client_id = client;
}

void
xfer_idle(struct xfer *x, uint32_t client, void (*fn)(struct xfer *x))
{
	memset(x, 0, offsetof(struct xfer, pieces));
	xfer_set_client(x, client);
	x->done = x->wake = fn;
}

void
xfer_set_lanes(struct xfer *x, int a, int b)
{
	check(a < XFER_LANES && b < XFER_LANES);
	x->lane[0] = (uint8_t)(a + 1);
	x->lane[1] = (uint8_t)(b == a ? 0 : b + 1);
}

void
xfer_init(struct xfer *x, struct xfer_pool *pool, struct store_port *store, struct chan *chan)
{
	x->pool = pool;
	x->store = store;
	x->chan = chan;
	x->mode = XFER_NONE;
	x->have_ticket = x->is_waiting = x->ended = x->fed_all = x->wire_started = x->revoked = x->is_late =
		false;
	x->back = NULL;
	list_init(&x->link);
	list_init(&x->holder);
	x->mark.since_ns = x->reached = 0;
	x->obj = NULL;
	x->put = NULL;
	x->lease = NULL;
	x->digest = NULL;
	x->wire_ns = x->wire_since_ns = x->first_ns = 0;
	x->base = x->len = x->next = x->in_order = x->moved = x->wire_bytes = x->wire_max = 0;
	x->active = x->inflight = x->bufs = x->main_bufs = x->result = 0;
	x->filling = x->last = NULL;
	x->carry = 0;
	x->carry_buf = NULL;
	x->progress_ns = clock_ns();
	for (int i = 0; i < XFER_PIECES_MAX; i++) {
		x->pieces[i].x = x;
		x->pieces[i].state = PIECE_IDLE;
		x->pieces[i].buf = NULL;
		x->pieces[i].carry = 0;
		x->pieces[i].cop.posted = false;
	}
}

void
xfer_fini(struct xfer *x)
{
	if (!x->pool)
		return;
	check(x->inflight == 0);
	x->ended = true;
	for (int i = 0; i < XFER_PIECES_MAX; i++) {
		if (x->pieces[i].state != PIECE_IDLE)
			piece_put(&x->pieces[i]);
	}
	x->filling = x->last = NULL;
	free(x->carry_buf);
	x->carry_buf = NULL;
	pool_ticket_put(x);
	x->pool = NULL;
}

struct piece *
piece_get(struct xfer *x, size_t len)
{
	for (int i = 0; i < XFER_PIECES_MAX; i++) {
		struct piece *p = &x->pieces[i];

		if (p->state != PIECE_IDLE)
			continue;
		p->buf = pool_buf_get(x, len);
		if (!p->buf)
			return NULL;
		x->active++;
		return p;
	}
	return NULL;
}

void
piece_put(struct piece *p)
{
	struct xfer *x = p->x;
	struct buf *b = p->buf;

	check(p->state != PIECE_IDLE);
	p->state = PIECE_IDLE;
	p->buf = NULL;
	x->active--;
	pool_buf_put(x, b);
}

bool
piece_arrived(struct piece *p, int result, uint64_t now_ns)
{
	struct xfer *x = p->x;

	x->inflight--;
	if (result < 0 || x->result < 0) {
		xfer_set_error(x, result < 0 ? result : x->result);
		piece_put(p);
		return false;
	}
	x->progress_ns = now_ns;
	p->state = PIECE_READY;
	return true;
}

bool
piece_read_arrived(struct piece *p, int result, uint64_t now_ns)
{
	if (p->rd.instead)
		p->buf = p->rd.instead;
	if (!piece_arrived(p, result, now_ns))
		return false;
	check((uint32_t)result >= p->skew + p->len - p->carry);
	p->skew += p->rd.lead;
	return true;
}

struct piece *
piece_in_turn(struct xfer *x)
{
	for (int i = 0; i < XFER_PIECES_MAX; i++) {
		struct piece *p = &x->pieces[i];

		if (p->state == PIECE_READY && p->at + p->carry == x->in_order)
			return p;
	}
	return NULL;
}

void
xfer_set_error(struct xfer *x, int err)
{
	if (x->result == 0)
		x->result = err;
}

void
xfer_more(struct xfer *x)
{
	if (x->ended)
		return;
	switch (x->mode) {
	case XFER_PUSH:
		push_more(x);
		break;
	case XFER_PULL:
		pull_more(x);
		break;
	case XFER_SERVE:
		serve_more(x);
		break;
	case XFER_ACCEPT:
		x->wake(x);
		break;
	case XFER_COPY:
		copy_more(x);
		break;
	case XFER_NONE:
		break;
	}
}

void
xfer_end_if_over(struct xfer *x)
{
	bool over;

	if (x->ended)
		return;
	if (x->inflight > 0) {
		/* Only the disk has some of it still: who drains the wire has waited long enough. */
		if (x->result < 0 && x->lease && x->wire_bytes == 0)
			x->wake(x);
		return;
	}
	if (x->result < 0)
		over = true;
	else if (x->mode == XFER_PUSH)
		over = x->moved == x->len;
	else if (x->mode == XFER_PULL || x->mode == XFER_COPY)
		over = x->in_order == x->len;
	else if (x->mode == XFER_ACCEPT)
		over = x->fed_all;
	else
		over = false;
	if (!over)
		return;
	x->ended = true;
	/* A failed transfer keeps nothing. */
	if (x->result < 0) {
		for (int i = 0; i < XFER_PIECES_MAX; i++) {
			if (x->pieces[i].state != PIECE_IDLE)
				piece_put(&x->pieces[i]);
		}
		x->filling = x->last = NULL;
	}
	x->done(x);
}

/* ---- reading (PUSH, SERVE, COPY) ---- */

void
piece_read_start(struct piece *p, uint64_t off, uint32_t len, void (*done)(struct store_op *))
{
	struct xfer *x = p->x;
	int r;

	check(p->state == PIECE_READING);
	p->rd.op.done = done;
	/* A slow reader is not the disk's fault: that has had nothing to do. */
	if (x->inflight++ == 0)
		x->progress_ns = clock_ns();
	r = store_read(x->store, x->obj, &p->rd, p->buf, off, len);
	if (r != 0) {
		if (r < 0)
			p->rd.op.result = r;
		done(&p->rd.op);
	}
}

static void
piece_read(struct piece *p, void (*done)(struct store_op *))
{
	struct xfer *x = p->x;
	uint64_t pos = x->base + x->next;
	uint32_t len;

	/* Granules whole, because the store checks CRCs per granule: the transfer's first byte may lie after
	 * the buffer's. */
	len = store_read_plan(x->obj, pos, x->len - x->next, read_room(p), &p->skew);
	p->len = len - p->skew;
	if (p->len > x->len - x->next)
		p->len = (uint32_t)(x->len - x->next);
	p->at = x->next;
	x->next += p->len;
	p->state = PIECE_READING;
	piece_read_start(p, pos - p->skew, len, done);
}

void
xfer_read_ahead(struct xfer *x, void (*done)(struct store_op *))
{
	while (x->result == 0 && x->next < x->len) {
		uint32_t skew;
		struct piece *p = piece_get(x, store_read_plan(x->obj, x->base + x->next, x->len - x->next,
							       store_limits(x->store)->read_bytes, &skew));

		if (!p)
			return;
		piece_read(p, done);
	}
}

/* ---- writing (PULL, ACCEPT, COPY) ---- */

static void
on_written(struct store_op *op)
{
	struct piece *p = container_of(op, struct piece, wr.op);
	struct xfer *x = p->x;

	x->inflight--;
	if (op->result < 0)
		xfer_set_error(x, op->result);
	else
		x->progress_ns = clock_ns();
	piece_put(p);
	if (x->result == 0)
		xfer_more(x);
	xfer_end_if_over(x);
}

void
piece_write(struct piece *p)
{
	struct xfer *x = p->x;
	int r;

	p->state = PIECE_WRITING;
	p->wr.op.done = on_written;
	x->inflight++;
	r = store_put_write(x->store, x->put, &p->wr, p->buf, p->len, false);
	if (r != 0) {
		p->wr.op.result = r < 0 ? r : p->wr.op.result;
		on_written(&p->wr.op);
	}
}

void
piece_write_or_keep(struct piece *p)
{
	struct xfer *x = p->x;

	if (x->in_order < x->len) {
		piece_write(p);
		return;
	}
	p->state = PIECE_KEPT;
	x->last = p;
}

void
xfer_wire_begin(struct xfer *x)
{
	x->wire_started = true;
	if (!x->wire_since_ns)
		x->wire_since_ns = clock_ns();
}

void
xfer_wire_end(struct xfer *x, uint64_t now_ns)
{
	if (x->wire_bytes || !x->wire_since_ns)
		return;
	x->wire_ns += now_ns - x->wire_since_ns;
	x->wire_since_ns = 0;
}

uint64_t
xfer_wire_ns(const struct xfer *x, uint64_t now_ns)
{
	return x->wire_ns + (x->wire_since_ns ? now_ns - x->wire_since_ns : 0);
}

struct buf *
xfer_last(struct xfer *x, uint32_t *ret_len)
{
	if (!x->last)
		return NULL;
	*ret_len = x->last->len;
	return x->last->buf;
}

/* What the store lets go of. */
static void
leave_store(struct xfer *x)
{
	for (int i = 0; i < XFER_PIECES_MAX; i++) {
		struct piece *p = &x->pieces[i];

		if ((p->state == PIECE_READING && store_read_cancel(x->store, &p->rd)) ||
		    (p->state == PIECE_WRITING && store_write_cancel(x->store, &p->wr))) {
			x->inflight--;
			piece_put(p);
		}
	}
}

bool
xfer_waits_for_store(const struct xfer *x)
{
	bool waits = false;

	if (x->ended || x->wire_bytes)
		return false;
	for (int i = 0; i < XFER_PIECES_MAX; i++)
		waits |= x->pieces[i].state == PIECE_READING || x->pieces[i].state == PIECE_WRITING;
	return waits;
}

int
xfer_cancel(struct xfer *x, int err)
{
	if (x->is_waiting) {
		pool_ticket_put(x);
		return 1;
	}
	if (x->mode == XFER_NONE || x->ended)
		return 1;
	xfer_set_error(x, err);
	leave_store(x);
	if (x->inflight == 0) {
		x->ended = true;
		return 1;
	}
	/* Reads and writes of the disk end by themselves; work requests may take seconds: flush them. */
	if (x->lease && x->lease->outstanding > 0)
		chan_lease_fail(x->chan, x->lease);
	return 0;
}
