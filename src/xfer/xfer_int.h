/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of xfer/ share. */
#ifndef GANTRY_XFER_XFER_INT_H
#define GANTRY_XFER_XFER_INT_H

#include "xfer/xfer.h"

/* Takes a buffer for another piece of x, of at least `len` bytes if one of that class is free; NULL: none
 * now, x is on the hungry list and pool_feed() will call xfer_more() when one came back, or one of its own has
 * to come back first. */
struct buf *pool_buf_get(struct xfer *x, size_t len);
void pool_buf_put(struct xfer *x, struct buf *b);
void pool_ticket_put(struct xfer *x);
/* Notes that a client was slow, for so many looks of xfer_pool_revoke(). */
void pool_slow_set(struct xfer_pool *xp, uint32_t client_id, uint32_t looks);

/* Returns how many bytes the piece may have that are to be written: what its buffer holds, and the store takes
 * at once. */
static inline uint32_t
piece_room(const struct piece *p)
{
	uint32_t most = store_limits(p->x->store)->piece_bytes;

	return p->buf->cap_bytes < most ? p->buf->cap_bytes : most;
}

/* Returns how many bytes of the store one read may put into the piece. */
static inline uint32_t
read_room(const struct piece *p)
{
	uint32_t most = store_limits(p->x->store)->read_bytes;

	return p->buf->cap_bytes < most ? p->buf->cap_bytes : most;
}

/* Takes an idle piece, given a buffer for len bytes; NULL: none now. */
struct piece *piece_get(struct xfer *x, size_t len);
void piece_put(struct piece *p);
/* Ends what filled p (a read of the store's, or a pull), with that result.  true: p is READY; false: the
 * transfer failed, now or before, and p is given back. */
bool piece_arrived(struct piece *p, int result, uint64_t now_ns);
/* Ends a read that filled p in the same way; the store has said where in the buffer its bytes are. */
bool piece_read_arrived(struct piece *p, int result, uint64_t now_ns);
/* Returns, for PULL and COPY, the READY piece that begins with the next byte in order; NULL: that one is
 * not here yet. */
struct piece *piece_in_turn(struct xfer *x);

/* Goes on as far as x can, in whatever mode it is. */
void xfer_more(struct xfer *x);
void push_more(struct xfer *x);
void pull_more(struct xfer *x);
void serve_more(struct xfer *x);
void copy_more(struct xfer *x);

/* Starts reading the object, for PUSH and SERVE, from transfer byte x->next on, into as many pieces as there
 * are. */
void xfer_read_ahead(struct xfer *x, void (*done)(struct store_op *));
/* Starts one read, of a piece whose place and length are set; off: in the object. */
void piece_read_start(struct piece *p, uint64_t off, uint32_t len, void (*done)(struct store_op *));
/* Hands p to the store; what is freed afterwards is the piece. */
void piece_write(struct piece *p);
/* Writes a piece that had its turn (x->in_order is behind it), or keeps it, as the last, for the commit. */
void piece_write_or_keep(struct piece *p);

/* Notes that a work request is being posted. */
void xfer_wire_begin(struct xfer *x);
/* Notes that a work request came back. */
void xfer_wire_end(struct xfer *x, uint64_t now_ns);

void xfer_set_error(struct xfer *x, int err);
/* Calls done() when nothing is left to do. */
void xfer_end_if_over(struct xfer *x);

#endif
