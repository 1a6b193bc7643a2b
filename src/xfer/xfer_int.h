/* What the files of xfer/ share. */
#ifndef GANTRY_XFER_XFER_INT_H
#define GANTRY_XFER_XFER_INT_H

#include "xfer/xfer.h"

/* A buffer for another piece of x, of at least `len` bytes if one of that class is free; NULL: none now, x is
 * on the hungry list and pool_feed() will call xfer_more() when one came back. */
struct buf *pool_buf_get(struct xfer *x, size_t len);
void pool_buf_put(struct xfer *x, struct buf *b);
void pool_ticket_put(struct xfer *x);

/* An idle piece, given a buffer for len bytes; NULL: none now. */
struct piece *piece_get(struct xfer *x, size_t len);
void piece_put(struct piece *p);
/* What filled p is over (a read of the store's, or a pull), with this result.  true: p is READY; false: the
 * transfer failed, now or before, and p is given back. */
bool piece_arrived(struct piece *p, int result, uint64_t now_ns);
/* PULL and COPY: the READY piece that begins with the next byte in order; NULL: that one is not here yet. */
struct piece *piece_in_turn(struct xfer *x);

/* Each mode's "go on as far as you can". */
void xfer_more(struct xfer *x);
void push_more(struct xfer *x);
void pull_more(struct xfer *x);
void serve_more(struct xfer *x);
void copy_more(struct xfer *x);

/* PUSH and SERVE: starts reading the object, from transfer byte x->next on,
 * into as many pieces as there are. */
void xfer_read_ahead(struct xfer *x, void (*done)(struct store_op *));
/* One read, of a piece whose place and length are set; off: in the object. */
void piece_read_start(struct piece *p, uint64_t off, uint32_t len, void (*done)(struct store_op *));
/* Hands p to the store; what is freed afterwards is the piece. */
void piece_write(struct piece *p);
/* p had its turn (x->in_order is behind it): it is written, or, as the last, kept for the commit. */
void piece_write_or_keep(struct piece *p);

/* A work request is being posted; one came back. */
void xfer_wire_begin(struct xfer *x);
void xfer_wire_end(struct xfer *x, uint64_t now_ns);

void xfer_set_error(struct xfer *x, int err);
/* Calls done() when nothing is left to do. */
void xfer_end_if_over(struct xfer *x);

#endif
