/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP wire end: bytes are copied, out of pieces that were read ahead
 * or into pieces that go to the disk. */
#include "xfer/xfer_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

/* ---- GET: serve ---- */

static void
on_read(struct store_op *op)
{
	struct piece *p = container_of(op, struct piece, rd.op);
	struct xfer *x = p->x;

	if (piece_read_arrived(p, op->result, clock_ns())) {
		x->wake(x);
		return;
	}
	if (x->wake && !x->ended)
		x->wake(x);
	xfer_end_if_over(x);
}

void
serve_more(struct xfer *x)
{
	xfer_read_ahead(x, on_read);
}

void
xfer_serve(struct xfer *x, struct store_obj *obj, uint64_t off, uint64_t len)
{
	check(x->have_ticket && len > 0);
	x->mode = XFER_SERVE;
	x->obj = obj;
	x->base = off;
	x->len = len;
	x->progress_ns = clock_ns();
	serve_more(x);
}

/* The piece that holds the next byte to take, if it has been read. */
static const struct piece *
next_piece(const struct xfer *x)
{
	for (int i = 0; i < XFER_PIECES_MAX; i++) {
		const struct piece *p = &x->pieces[i];

		if (p->state == PIECE_READY && p->at <= x->in_order && x->in_order - p->at < p->len)
			return p;
	}
	return NULL;
}

bool
xfer_has_bytes(const struct xfer *x)
{
	return next_piece(x) != NULL;
}

ssize_t
xfer_take(struct xfer *x, uint64_t pos, void *out, size_t max)
{
	struct piece *p;
	size_t n;

	if (x->result < 0)
		return x->result;
	check(pos == x->in_order);
	p = (struct piece *)next_piece(x);
	if (!p)
		return 0;
	n = p->len - (size_t)(pos - p->at);
	n = n < max ? n : max;
	memcpy(out, p->buf->mem + p->skew + (pos - p->at), n);
	xfer_counts.copied_bytes += n;
	x->in_order += n;
	x->moved += n;
	x->wire_started = true;
	if (!x->first_ns)
		x->first_ns = clock_ns();
	x->progress_ns = clock_ns();
	if (x->in_order == p->at + p->len) {
		piece_put(p);
		serve_more(x);
	}
	/* What is left to do is the network's: no buffer is needed for it. */
	if (x->in_order == x->len)
		pool_ticket_put(x);
	return (ssize_t)n;
}

bool
xfer_client_owes(const struct xfer *x)
{
	if (x->ended || x->result < 0)
		return false;
	/* Whatever else is read ahead, or would be. */
	if (x->mode == XFER_SERVE)
		return x->in_order == x->len || xfer_has_bytes(x);
	if (x->mode != XFER_ACCEPT || x->fed_all || list_linked(&x->link))
		return false;
	return x->inflight == 0 || (x->filling && x->filling->len < piece_room(x->filling));
}

/* ---- PUT: accept ---- */

void
xfer_accept(struct xfer *x, struct store_put *put, struct digest *dg)
{
	check(x->have_ticket);
	x->mode = XFER_ACCEPT;
	x->put = put;
	x->digest = dg;
	x->len = UINT64_MAX;
	x->progress_ns = clock_ns();
}

/* A buffer with room in it.  A full one is written only when more bytes come, because the last piece is kept
 * for the commit. */
static struct piece *
accept_piece(struct xfer *x)
{
	struct piece *p = x->filling;

	if (p && p->len < piece_room(p))
		return p;
	if (p) {
		x->filling = NULL;
		piece_write(p);
		if (x->result < 0)
			return NULL;
	}
	p = piece_get(x, BUF_SMALL_BYTES);
	if (!p)
		return NULL;
	p->state = PIECE_FILLING;
	p->at = x->next;
	p->skew = p->len = 0;
	return x->filling = p;
}

size_t
xfer_feed(struct xfer *x, const void *data, size_t len)
{
	const char *in = data;
	size_t done = 0;

	while (done < len && x->result == 0) {
		struct piece *p = accept_piece(x);
		size_t n = len - done;

		if (!p)
			break;
		if (n > piece_room(p) - p->len)
			n = piece_room(p) - p->len;
		memcpy(p->buf->mem + p->len, in + done, n);
		if (x->digest->mask)
			digest_update(x->digest, in + done, n);
		xfer_counts.copied_bytes += n;
		p->len += (uint32_t)n;
		x->next += n;
		x->moved += n;
		done += n;
	}
	if (done)
		x->progress_ns = clock_ns();
	return done;
}

void
xfer_feed_end(struct xfer *x)
{
	x->fed_all = true;
	x->len = x->next;
	x->in_order = x->next;
	if (x->filling) {
		x->last = x->filling;
		x->last->state = PIECE_KEPT;
		x->filling = NULL;
	}
	xfer_end_if_over(x);
}
