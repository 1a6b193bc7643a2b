/* SPDX-License-Identifier: Apache-2.0 */
/* GET by token: read ahead from the store, write to the client's window, bounded on the wire. */
#include "xfer/xfer_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>

static void push_ready(struct xfer *x);

static void
on_pushed(struct chan_op *op)
{
	struct piece *p = container_of(op, struct piece, cop);
	struct xfer *x = p->x;
	uint64_t now = clock_ns();

	x->inflight--;
	x->wire_bytes -= p->len;
	xfer_wire_end(x, now);
	if (op->result < 0) {
		xfer_set_error(x, op->result);
	} else {
		x->moved += p->len;
		xfer_counts.pushed_bytes += p->len;
		x->progress_ns = now;
		if (!x->first_ns)
			x->first_ns = now;
	}
	piece_put(p);
	if (x->result == 0) {
		push_ready(x);
		push_more(x);
	}
	xfer_end_if_over(x);
}

/* Posts what was read, lowest offset first, as far as the bound on the wire allows (one piece always). */
static void
push_ready(struct xfer *x)
{
	for (;;) {
		struct piece *first = NULL;

		for (int i = 0; i < XFER_PIECES_MAX; i++) {
			struct piece *p = &x->pieces[i];

			if (p->state == PIECE_READY && (!first || p->at < first->at))
				first = p;
		}
		if (!first || (x->wire_max && x->wire_bytes && x->wire_bytes + first->len > x->wire_max))
			return;
		first->state = PIECE_WIRE;
		first->cop.done = on_pushed;
		x->wire_bytes += first->len;
		x->inflight++;
		xfer_wire_begin(x);
		chan_push(x->chan, x->lease, &first->cop, first->buf, first->skew, first->len, first->at);
	}
}

static void
on_read(struct store_op *op)
{
	struct piece *p = container_of(op, struct piece, rd.op);
	struct xfer *x = p->x;

	if (piece_read_arrived(p, op->result, clock_ns()))
		push_ready(x);
	xfer_end_if_over(x);
}

void
push_more(struct xfer *x)
{
	xfer_read_ahead(x, on_read);
}

void
xfer_push(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len, struct chan_lease *lease,
	  uint64_t wire_max)
{
	check(x->have_ticket && len > 0);
	x->mode = XFER_PUSH;
	x->obj = obj;
	x->lease = lease;
	x->base = off;
	x->len = len;
	x->wire_max = wire_max;
	x->progress_ns = clock_ns();
	push_more(x);
	xfer_end_if_over(x);
}
