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

/* Each mode's "go on as far as you can". */
void xfer_more(struct xfer *x);
void push_more(struct xfer *x);
void pull_more(struct xfer *x);
void serve_more(struct xfer *x);
void copy_more(struct xfer *x);

/* Starts reading piece p from the object: transfer bytes [x->next, ...).  Common to PUSH and SERVE. */
void piece_read(struct piece *p, void (*done)(struct store_op *));
/* How many bytes the buffer of the next read has to hold. */
size_t piece_read_bytes(const struct xfer *x);
/* Hands p to the store; what is freed afterwards is the piece. */
void piece_write(struct piece *p);

/* A work request is being posted; one came back. */
void xfer_wire_begin(struct xfer *x);
void xfer_wire_end(struct xfer *x, uint64_t now_ns);

void xfer_set_error(struct xfer *x, int err);
/* Calls done() when nothing is left to do. */
void xfer_end_if_over(struct xfer *x);

#endif
