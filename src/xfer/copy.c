/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy pump: bytes of one object into the pieces of a PUT, without a wire.
 *
 *   piece: IDLE -> READING -> READY -> WRITING -> IDLE      READY until its turn in order
 *                                  \-> KEPT                 the last one rides with the commit
 *
 * What is written has to be whole granules but at its end; what is read begins and ends where the source's
 * own granules do (store_read_plan()).  Where both fall together, as from the start of an object of one PUT,
 * no byte is touched.  Otherwise a piece's bytes are moved to the front of its buffer.  Where a part of the
 * source ends within a granule of the copy, what there is of that granule waits in carry_buf for the next
 * piece.
 */
#include "xfer/xfer_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Moves its bytes to the front, after the bytes that were carried over. */
static void
settle(struct xfer *x, struct piece *p)
{
	uint32_t fresh = p->len - p->carry;

	if (p->skew != p->carry) {
		memmove(p->buf->mem + p->carry, p->buf->mem + p->skew, fresh);
		xfer_counts.copied_bytes += fresh;
	}
	if (p->carry)
		memcpy(p->buf->mem, x->carry_buf, p->carry);
	x->in_order += fresh;
}

static void
copy_in_order(struct xfer *x)
{
	struct piece *p;

	while (x->result == 0 && (p = piece_in_turn(x))) {
		settle(x, p);
		if (p->carries_on) {
			memcpy(x->carry_buf, p->buf->mem, p->len);
			piece_put(p);
			continue;
		}
		if (x->digest->mask)
			digest_update(x->digest, p->buf->mem, p->len);
		x->moved += p->len;
		piece_write_or_keep(p);
	}
}

static void
on_read(struct store_op *op)
{
	struct piece *p = container_of(op, struct piece, rd.op);
	struct xfer *x = p->x;

	if (piece_read_arrived(p, op->result, clock_ns())) {
		copy_in_order(x);
		copy_more(x);
	}
	xfer_end_if_over(x);
}

/* What the next read brings, and what becomes of it; returns its length. */
static uint32_t
plan(struct xfer *x, struct piece *p)
{
	uint32_t cap = piece_room(p), granule = store_limits(x->store)->granule_bytes, read_len, n;
	uint64_t want = x->len - x->next;
	bool last;

	if (want > cap - x->carry)
		want = cap - x->carry;
	read_len = store_read_plan(x->obj, x->base + x->next, want, cap, &p->skew);
	n = read_len - p->skew < want ? read_len - p->skew : (uint32_t)want;
	last = x->next + n == x->len;
	p->state = PIECE_READING;
	p->at = x->next - x->carry;
	p->carry = x->carry;
	p->len = x->carry + n;
	p->carries_on = !last && p->len < granule;
	/* The odd end of it is read once more, with what follows. */
	if (!last && !p->carries_on) {
		n -= p->len % granule;
		p->len -= p->len % granule;
	}
	x->next += n;
	x->carry = p->carries_on ? p->len : 0;
	return read_len;
}

void
copy_more(struct xfer *x)
{
	const struct store_limits *limits = store_limits(x->store);

	while (x->result == 0 && x->next < x->len) {
		uint64_t left = x->len - x->next + x->carry, from = x->base + x->next;
		struct piece *p =
			piece_get(x, left < limits->piece_bytes ? (size_t)left : limits->piece_bytes);
		uint32_t len;

		if (!p)
			return;
		len = plan(x, p);
		if (p->carries_on && !x->carry_buf)
			x->carry_buf = malloc(limits->granule_bytes);
		if (p->carries_on && !x->carry_buf) {
			xfer_set_error(x, -ENOMEM);
			piece_put(p);
			xfer_end_if_over(x);
			return;
		}
		piece_read_start(p, from - p->skew, len, on_read);
	}
}

void
xfer_copy(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len, struct store_put *put,
	  struct digest *dg)
{
	check(x->have_ticket);
	check(off + len <= obj->size_bytes);
	x->mode = XFER_COPY;
	x->obj = obj;
	x->put = put;
	x->digest = dg;
	x->base = off;
	x->len = len;
	x->progress_ns = clock_ns();
	copy_more(x);
	xfer_end_if_over(x);
}
