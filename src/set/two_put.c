/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs PUTs of keys with two copies. Each piece is written to both engines from the same buffer, so no byte
 * is read again. If the secondary fails during the PUT, the copy is sent after the primary has all bytes. If
 * one of the disks has no space, the PUT fails on both disks.
 */
#include "set/two_change.h"
#include "set/two_waiting.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct put_two *
put_two(const struct store_put *put)
{
	struct put_two *pt;

	memcpy(&pt, put->priv, sizeof pt);
	return pt;
}

/* ---- begin ---- */

#define INIT_TRIES 3

/* Begins the PUT on the primary. If the primary has failed and the map does not record that yet, begins the
 * PUT on the secondary, which is becoming the primary; the commit then waits until this engine is the
 * primary. Returns 0 or -errno. */
static int
init_first(struct set_port *p, struct put_two *pt, const struct store_key *k, const uint8_t *id,
	   uint32_t number, uint64_t size_bytes)
{
	struct set *s = port_set(p);
	int r = -EROFS;

	for (int i = 0; r == -EROFS && i < INIT_TRIES; i++) {
		struct store_port *e = set_port_to_write(port_base(p), k, &r);
		int second = set_secondary(s, k);

		pt->c.first = set_primary(s, k);
		if (e)
			r = set_engine_put_init(p, e, &pt->first, k, id, number, size_bytes);
		if (r == -EROFS && set_has_failed(s, pt->c.first) && second != SET_NOWHERE &&
		    !set_is_read_only(s)) {
			pt->c.first = second;
			r = set_engine_put_init(p, port_engine(p, second), &pt->first, k, id, number,
						size_bytes);
		}
	}
	return r;
}

/* Returns true if the error means that a disk in service has no space for the copy. */
static bool
has_no_room(const struct copy *cp, int error)
{
	return error == -ENOSPC && !set_has_failed(port_set(cp->port), cp->engine);
}

/* Begins the copy on the secondary. After an error the copy is made at the commit instead; only after -ENOSPC
 * the PUT fails. */
static int
init_copy(struct set_port *p, struct put_two *pt, const struct store_key *k, const uint8_t *id,
	  uint32_t number, uint64_t size_bytes)
{
	int engine = set_secondary(port_set(p), k);
	bool is_none = engine == SET_NOWHERE || engine == pt->c.first;
	struct copy *cp = is_none ? NULL : two_copy_new(p, k, engine);
	struct store_port *e = cp ? port_engine(p, engine) : NULL;
	int r;

	if (!cp)
		return 0;
	r = e->ops->member->copy_init(e, &cp->put, k, id, number, size_bytes);
	if (has_no_room(cp, r)) {
		two_copy_drop(cp);
		return r;
	}
	cp->has_put = r == 0;
	pt->c.copy = cp;
	return 0;
}

int
set_two_put_init(struct set_port *p, struct store_put *put, const struct store_key *k, const uint8_t *id,
		 uint32_t number, uint64_t size_bytes)
{
	struct put_two *pt = calloc(1, sizeof *pt);
	int r;

	_Static_assert(sizeof pt <= STORE_PRIV_PUT, "a pointer fits");
	if (!pt)
		return -EAGAIN;
	r = init_first(p, pt, k, id, number, size_bytes);
	if (r == 0) {
		r = init_copy(p, pt, k, id, number, size_bytes);
		if (r < 0)
			store_put_abort(pt->first.op.port, &pt->first);
	}
	if (r < 0) {
		free(pt);
		return r;
	}
	pt->of = put;
	pt->c.port = p;
	pt->c.put = &pt->first;
	pt->c.call.kind = CALL_PUT;
	two_set_key(&pt->c, k);
	put->op.port = port_base(p);
	put->is_started = true;
	put->size_bytes = put->crc64 = put->version = 0;
	memcpy(put->priv, &pt, sizeof pt);
	return 0;
}

/* ---- pieces ---- */

struct write_copy;

/* A piece of a PUT that is being written to both engines. */
struct write_two {
	struct put_two *pt;
	struct store_write *of; /* write operation of the caller */
	/* write of the piece at the secondary; NULL: the piece does not wait for the secondary */
	struct write_copy *copy;
	bool is_writing, is_starting;
	int result;
	struct store_write w; /* write of the piece at the primary */
};

/* The write of a piece at the secondary. */
struct write_copy {
	struct write_two *of; /* piece that waits for this write; NULL: no piece waits */
	struct copy *cp;
	struct list link; /* link in the list of the port */
	struct store_write w;
};

static struct write_two *
write_two(const struct store_write *w)
{
	struct write_two *wt;

	memcpy(&wt, w->priv, sizeof wt);
	return wt;
}

static int
piece_result(const struct write_two *wt)
{
	return wt->result < 0 ? wt->result : wt->pt->error ? wt->pt->error : wt->result;
}

/* Ends the piece, unless one of its writes is still in progress. */
static void
piece_over(struct write_two *wt)
{
	struct store_write *w = wt->of;
	struct put_two *pt = wt->pt;

	if (wt->is_writing || wt->copy || wt->is_starting)
		return;
	w->op.result = piece_result(wt);
	port_unpin(pt->c.port);
	free(wt);
	w->op.done(&w->op);
}

static void
copy_written(struct write_copy *wc, int result)
{
	struct write_two *wt = wc->of;
	struct copy *cp = wc->cp;

	list_del(&wc->link);
	free(wc);
	cp->writes--;
	if (result < 0)
		cp->write_error = result;
	if (wt) {
		if (has_no_room(cp, result))
			wt->pt->error = result;
		wt->copy = NULL;
		piece_over(wt);
	} else if (!cp->is_kept) {
		two_copy_drop(cp);
	}
}

static void
on_copy_written(struct store_op *op)
{
	copy_written(container_of(container_of(op, struct store_write, op), struct write_copy, w),
		     op->result);
}

static void
on_written(struct store_op *op)
{
	struct write_two *wt = container_of(container_of(op, struct store_write, op), struct write_two, w);

	wt->is_writing = false;
	wt->result = op->result;
	piece_over(wt);
}

static void
write_copy(struct write_two *wt, struct buf *buf, uint32_t len, bool last)
{
	struct copy *cp = wt->pt->c.copy;
	struct store_port *e = port_engine(cp->port, cp->engine);
	struct write_copy *wc = calloc(1, sizeof *wc);
	int r;

	if (!wc) {
		cp->write_error = -ENOMEM;
		return;
	}
	wc->of = wt;
	wc->cp = cp;
	wc->w.op.done = on_copy_written;
	wt->copy = wc;
	cp->writes++;
	list_push_tail(&port_two(cp->port)->pieces, &wc->link);
	r = e->ops->put_write(e, &cp->put, &wc->w, buf, len, last);
	if (r != 0)
		copy_written(wc, r < 0 ? r : wc->w.op.result);
}

int
set_two_put_write(struct store_port *sp, struct store_put *put, struct store_write *w, struct buf *buf,
		  uint32_t len, bool last)
{
	struct put_two *pt = put_two(put);
	struct store_port *e = pt->first.op.port;
	struct write_two *wt = pt->error ? NULL : calloc(1, sizeof *wt);
	int r;

	_Static_assert(sizeof wt <= STORE_PRIV_WRITE, "a pointer fits");
	if (!wt)
		return pt->error ? pt->error : -EAGAIN;
	w->op.port = sp;
	memcpy(w->priv, &wt, sizeof wt);
	wt->pt = pt;
	wt->of = w;
	wt->w.op.done = on_written;
	wt->is_starting = wt->is_writing = true;
	port_pin(pt->c.port);
	r = e->ops->put_write(e, &pt->first, &wt->w, buf, len, last);
	if (r < 0) {
		port_unpin(pt->c.port);
		free(wt);
		return r;
	}
	if (r > 0) {
		wt->is_writing = false;
		wt->result = wt->w.op.result;
	}
	put->size_bytes = pt->first.size_bytes;
	put->crc64 = pt->first.crc64;
	/* The secondary has failed, and the port has already ended its waits: the piece is not written
	 * there. */
	if (pt->c.copy && set_has_failed(port_set(pt->c.port), pt->c.copy->engine))
		pt->c.copy->write_error = -EIO;
	if (pt->c.copy && pt->c.copy->has_put && !pt->c.copy->write_error)
		write_copy(wt, buf, len, last);
	wt->is_starting = false;
	if (wt->is_writing || wt->copy)
		return 0;
	w->op.result = piece_result(wt);
	port_unpin(pt->c.port);
	free(wt);
	return 1;
}

/* Ends the wait of a piece for its write at the secondary, and marks the secondary copy as failed (-EIO). */
static void
let_go(struct write_copy *wc)
{
	struct write_two *wt = wc->of;

	wc->of = NULL;
	wc->cp->write_error = -EIO;
	if (wt)
		wt->copy = NULL;
}

bool
set_two_write_cancel(struct store_port *sp, struct store_write *w)
{
	struct write_two *wt = write_two(w);

	if (wt->is_writing && !store_write_cancel(wt->w.op.port, &wt->w))
		return false;
	if (wt->copy) {
		struct write_copy *wc = wt->copy;

		let_go(wc);
		if (store_write_cancel(wc->w.op.port, &wc->w))
			copy_written(wc, -EIO);
	}
	port_unpin(wt->pt->c.port);
	free(wt);
	return true;
}

void
set_two_poke_writes(struct set_port *p)
{
	list_for_each_safe(l, &port_two(p)->pieces)
	{
		struct write_copy *wc = container_of(l, struct write_copy, link);
		struct write_two *wt = wc->of;

		if (!wt || !set_has_failed(port_set(p), wc->cp->engine))
			continue;
		let_go(wc);
		piece_over(wt);
	}
}

/* ---- commit ---- */

static void
end(struct put_two *pt)
{
	struct store_put *put = pt->of;

	put->size_bytes = pt->first.size_bytes;
	put->crc64 = pt->first.crc64;
	put->version = pt->first.version;
	put->op.result = pt->c.result;
	if (pt->c.result < 0)
		store_put_abort(pt->first.op.port, &pt->first);
	put->is_started = false;
	free(pt);
}

static void
on_end(struct store_op *op)
{
	struct put_two *pt = container_of(op, struct put_two, mine);
	struct store_put *put = pt->of;

	end(pt);
	put->op.done(&put->op);
}

int
set_two_put_commit(struct store_port *sp, struct store_put *put, const struct store_commit *sc)
{
	struct put_two *pt = put_two(put);

	if (pt->error)
		return pt->error;
	pt->mine.done = on_end;
	pt->c.op = &pt->mine;
	pt->c.commit = *sc;
	if (sc->inline_len) {
		if (sc->inline_len > STORE_INLINE_MAX)
			return -EINVAL;
		pt->c.commit.inline_data = memcpy(pt->inline_data, sc->inline_data, sc->inline_len);
	}
	if (!two_begin(&pt->c))
		return 0;
	/* The change failed before the commit was handed to an engine. */
	check(pt->c.result < 0);
	return pt->c.result;
}

void
set_two_put_abort(struct store_port *sp, struct store_put *put)
{
	struct put_two *pt = put_two(put);

	store_put_abort(pt->first.op.port, &pt->first);
	put->is_started = false;
	if (pt->c.copy)
		two_copy_drop(pt->c.copy);
	free(pt);
}
