/* SPDX-License-Identifier: Apache-2.0 */
/* PUT by token: read from the client's window, digest in order, write to the store; the last piece waits for
 * the commit. */
#include "xfer/xfer_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>

/* Takes the pieces that arrived, in transfer order: the store's CRC and the digests run over the bytes as
 * they lie in the object. */
static void
pull_in_order(struct xfer *x)
{
	struct piece *p;

	while (x->result == 0 && (p = piece_in_turn(x))) {
		if (x->digest->mask)
			digest_update(x->digest, p->buf->mem, p->len);
		x->in_order += p->len;
		piece_write_or_keep(p);
	}
}

static void
on_pulled(struct chan_op *op)
{
	struct piece *p = container_of(op, struct piece, cop);
	struct xfer *x = p->x;
	uint32_t len = p->len;
	uint64_t now = clock_ns();

	x->wire_bytes -= len;
	xfer_wire_end(x, now);
	if (piece_arrived(p, op->result, now)) {
		x->moved += len;
		xfer_counts.pulled_bytes += len;
		pull_in_order(x);
		pull_more(x);
	}
	xfer_end_if_over(x);
}

void
pull_more(struct xfer *x)
{
	while (x->result == 0 && x->next < x->len) {
		uint64_t left = x->len - x->next, most = store_limits(x->store)->piece_bytes;
		struct piece *p;

		if (x->wire_max && x->wire_bytes && x->wire_bytes + (left < most ? left : most) > x->wire_max)
			return; /* on_pulled() goes on */
		p = piece_get(x, left < most ? left : most);
		if (!p)
			return;
		p->at = x->next;
		p->skew = 0;
		p->len = left < piece_room(p) ? (uint32_t)left : piece_room(p);
		x->next += p->len;
		p->state = PIECE_WIRE;
		p->cop.done = on_pulled;
		x->wire_bytes += p->len;
		x->inflight++;
		xfer_wire_begin(x);
		chan_pull(x->chan, x->lease, &p->cop, p->buf, 0, p->len, p->at);
	}
}

void
xfer_pull(struct xfer *x, struct store_put *put, uint64_t len, struct chan_lease *lease, struct digest *dg,
	  uint64_t wire_max)
{
	check(x->have_ticket && len > 0);
	x->mode = XFER_PULL;
	x->put = put;
	x->lease = lease;
	x->digest = dg;
	x->len = len;
	x->wire_max = wire_max;
	x->progress_ns = clock_ns();
	pull_more(x);
}
