/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of xfer/. */
#ifndef GANTRY_XFER_XFER_INT_H
#define GANTRY_XFER_XFER_INT_H

#include "xfer/xfer.h"

/* Takes a buffer for another piece of x, of at least `len` bytes if the class has a free buffer of this size.
 * Returns NULL if x has its largest number of buffers, and must return one first; or if no buffer is
 * available: x is then in the list `hungry`, and pool_feed() calls xfer_more() when a buffer is returned. */
struct buf *pool_buf_get(struct xfer *x, size_t len);
void pool_buf_put(struct xfer *x, struct buf *b);
void pool_ticket_put(struct xfer *x);

/* Returns the largest number of bytes that may be written with the piece: limited by its buffer and by the
 * store. */
static inline uint32_t
piece_room(const struct piece *p)
{
	uint32_t most = store_limits(p->x->store)->piece_bytes;

	return p->buf->cap_bytes < most ? p->buf->cap_bytes : most;
}

/* Returns the largest number of bytes that one read of the store may put into the piece: limited by its
 * buffer and by the store. */
static inline uint32_t
read_room(const struct piece *p)
{
	uint32_t most = store_limits(p->x->store)->read_bytes;

	return p->buf->cap_bytes < most ? p->buf->cap_bytes : most;
}

/* Takes an idle piece with a buffer for len bytes. Returns NULL if no piece or buffer is available now. */
struct piece *piece_get(struct xfer *x, size_t len);
void piece_put(struct piece *p);
/* Handles the end of the operation that has filled p: a read of the store, or a pull. result: -errno if it
 * has failed. Returns true if p is READY; false if the transfer has failed, now or before, and p was returned
 * to the pool. */
bool piece_arrived(struct piece *p, int result, uint64_t now_ns);
/* Ends a read of the store that filled p: takes the buffer and the offset of the first byte from p->rd, and
 * calls piece_arrived(). Returns its result. */
bool piece_read_arrived(struct piece *p, int result, uint64_t now_ns);
/* Returns, for PULL and COPY, the READY piece that begins with the next byte in order; NULL: the piece has
 * not arrived. */
struct piece *piece_in_turn(struct xfer *x);

/* Continues x as far as possible, in any mode. */
void xfer_more(struct xfer *x);
void push_more(struct xfer *x);
void pull_more(struct xfer *x);
void serve_more(struct xfer *x);
void copy_more(struct xfer *x);

/* Starts reads of the object, for PUSH and SERVE, from transfer byte x->next on, into all available
 * pieces. */
void xfer_read_ahead(struct xfer *x, void (*done)(struct store_op *));
/* Starts a read of len bytes at off of the object into a piece. The caller has set p->at, p->len and
 * p->skew. */
void piece_read_start(struct piece *p, uint64_t off, uint32_t len, void (*done)(struct store_op *));
/* Hands p to the store; when the write ends, the piece is freed. */
void piece_write(struct piece *p);
/* Writes a piece that was processed in its turn, so that x->in_order is after its bytes. Keeps it for the
 * commit instead if it is the last piece of the transfer. */
void piece_write_or_keep(struct piece *p);

/* Notes that a work request is being posted. */
void xfer_wire_begin(struct xfer *x);
/* Notes that a work request has completed. Ends the measurement of x->wire_ns if no work request is
 * outstanding. */
void xfer_wire_end(struct xfer *x, uint64_t now_ns);

void xfer_set_error(struct xfer *x, int err);
/* Calls done() if no work of the transfer is left. Calls wake() if a failed transfer only has disk operations
 * in flight. */
void xfer_end_if_over(struct xfer *x);

#endif
