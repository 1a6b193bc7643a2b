/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs PUTs. A PUT of a key without a secondary is passed to the engine of the key. Each piece of a PUT of a
 * key with two copies is written to both engines from the same buffer, so no byte is read again. If the
 * secondary fails during the PUT, the copy is sent after the primary has all bytes. If one of the disks has
 * no space, the PUT fails on both disks.
 */
#include "set/change.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A PUT of an object or a part: the PUT on the primary (c.u.put), and the copy on the secondary. */
struct put {
	struct key_change c;
	int error; /* -ENOSPC: the secondary has no space for the bytes; 0: no error */
	char inline_data[STORE_INLINE_MAX];
};

static void give(struct key_change *c);

/* ---- begin ---- */

#define INIT_TRIES 3

int
set_engine_put_init(struct set_port *p, struct store_port *e, struct store_put *put,
		    const struct store_put_spec *spec)
{
	int r = e->ops->put_init(e, put, spec);

	put->carrier = &p->carrier;
	return r;
}

/* Begins the PUT on the primary. If the primary has failed and the map does not record that yet, begins the
 * PUT on the secondary, which is becoming the primary; the commit then waits until this engine is the
 * primary. Returns 0 or -errno. */
static int
init_first(struct key_change *c, const struct store_put_spec *spec)
{
	struct set_port *p = c->ko.port;
	const struct store_key *k = &c->ko.key;
	struct set *s = p->set;
	int r = -EROFS;

	for (int i = 0; r == -EROFS && i < INIT_TRIES; i++) {
		struct store_port *e = set_port_to_write(&p->base, k, &r);
		int second = set_secondary(s, k);

		c->first = set_primary(s, k);
		if (e)
			r = set_engine_put_init(p, e, &c->u.put, spec);
		if (r == -EROFS && set_has_failed(s, c->first) && second != SET_NOWHERE &&
		    !set_is_read_only(s)) {
			c->first = second;
			r = set_engine_put_init(p, port_engine(p, second), &c->u.put, spec);
		}
	}
	return r;
}

/* Returns true if the error means that a disk in service has no space for the copy. */
static bool
has_no_room(const struct copy *cp, int error)
{
	return error == -ENOSPC && !set_has_failed(cp->ko.port->set, cp->engine);
}

/* Begins the copy on the secondary. After an error the copy is made at the commit instead; only after -ENOSPC
 * the PUT fails. */
static int
init_copy(struct key_change *c, const struct store_put_spec *spec)
{
	struct set_port *p = c->ko.port;
	int engine = set_secondary(p->set, &c->ko.key), r;
	bool is_none = engine == SET_NOWHERE || engine == c->first;
	struct copy *cp = is_none ? NULL : copy_new(c, engine);
	struct store_port *e = cp ? port_engine(p, engine) : NULL;

	if (!cp)
		return 0;
	r = e->ops->put_init(e, &cp->put, spec);
	if (has_no_room(cp, r)) {
		copy_drop(cp);
		return r;
	}
	cp->has_put = r == 0;
	c->copy = cp;
	return 0;
}

int
set_put_init(struct store_port *sp, struct store_put *put, const struct store_put_spec *spec)
{
	struct set_port *p = set_port(sp);
	struct store_put_spec two = *spec;
	struct put *pt;
	int r;

	_Static_assert(sizeof pt <= STORE_PRIV_PUT, "a pointer fits");
	if (!set_has_two(sp, &spec->key, &two.key)) {
		struct store_port *e = set_port_to_write(sp, &spec->key, &r);

		return e ? set_engine_put_init(p, e, put, spec) : r;
	}
	pt = calloc(1, sizeof *pt);
	if (!pt)
		return -EAGAIN;
	key_op_init(&pt->c.ko, p, &two.key);
	pt->c.op = &put->op;
	pt->c.give = give;
	pt->c.is_put = true;
	r = init_first(&pt->c, &two);
	if (r == 0) {
		two.is_copy = true;
		r = init_copy(&pt->c, &two);
		if (r < 0)
			store_put_abort(sp, &pt->c.u.put);
	}
	if (r < 0) {
		free(pt);
		return r;
	}
	put->op.port = sp;
	put->is_started = true;
	put->size_bytes = put->crc64 = put->version = 0;
	memcpy(put->priv, &pt, sizeof pt);
	return 0;
}

/* ---- pieces ---- */

/* A piece of a PUT that is being written to both engines. A disk that hangs may use this memory after the
 * operation of the caller has ended. */
struct piece {
	struct put *pt;
	struct store_write *of;       /* write operation of the caller; NULL: it has ended */
	struct copy *cp;              /* copy to which the piece is being written; NULL: to none */
	struct list link;             /* link in the port's list of pieces that are being written to a copy */
	bool is_starting, is_writing; /* is_writing: the piece is being written to the primary */
	bool waits;                   /* true: the operation of the caller waits for the secondary */
	int result;                   /* result of the primary */
	struct store_write first, second;
};

/* Ends the operation of the caller when the operation has nothing to wait for, and frees the piece when no
 * disk uses it. Returns true if done() is to be called. */
static bool
piece_ends(struct piece *pc)
{
	struct store_write *w = pc->of;

	if (pc->is_starting || pc->is_writing || pc->waits)
		return false;
	pc->of = NULL;
	if (w) {
		w->op.result = pc->result >= 0 && pc->pt->error ? pc->pt->error : pc->result;
		port_unpin(pc->pt->c.ko.port);
	}
	if (!pc->cp)
		free(pc);
	return w != NULL;
}

static void
piece_over(struct piece *pc)
{
	struct store_write *w = pc->of;

	if (piece_ends(pc))
		w->op.done(&w->op);
}

static void
copy_written(struct piece *pc, int result)
{
	struct copy *cp = pc->cp;

	list_del(&pc->link);
	pc->cp = NULL;
	cp->writes--;
	if (result < 0)
		cp->write_error = result;
	if (pc->waits && has_no_room(cp, result))
		pc->pt->error = result;
	pc->waits = false;
	if (!cp->of)
		copy_drop(cp);
	piece_over(pc);
}

static void
on_copy_written(struct store_op *op)
{
	copy_written(container_of(container_of(op, struct store_write, op), struct piece, second),
		     op->result);
}

static void
on_written(struct store_op *op)
{
	struct piece *pc = container_of(container_of(op, struct store_write, op), struct piece, first);

	pc->is_writing = false;
	pc->result = op->result;
	piece_over(pc);
}

static void
write_copy(struct piece *pc, struct copy *cp, struct buf *buf, uint32_t len, bool last)
{
	struct store_port *e = port_engine(cp->ko.port, cp->engine);
	int r;

	pc->cp = cp;
	pc->waits = true;
	pc->second.op.done = on_copy_written;
	cp->writes++;
	list_push_tail(port_waiting(cp->ko.port, PORT_PIECES), &pc->link);
	r = e->ops->put_write(e, &cp->put, &pc->second, buf, len, last);
	if (r != 0)
		copy_written(pc, r < 0 ? r : pc->second.op.result);
}

int
set_put_write(struct store_port *sp, struct store_put *put, struct store_write *w, struct buf *buf,
	      uint32_t len, bool last)
{
	struct put *pt = key_op_stored(put->priv);
	struct store_put *first = &pt->c.u.put;
	struct piece *pc = pt->error ? NULL : calloc(1, sizeof *pc);
	struct copy *cp = pt->c.copy;
	int r;

	_Static_assert(sizeof pc <= STORE_PRIV_WRITE, "a pointer fits");
	if (!pc)
		return pt->error ? pt->error : -EAGAIN;
	w->op.port = sp;
	memcpy(w->priv, &pc, sizeof pc);
	pc->pt = pt;
	pc->of = w;
	pc->first.op.done = on_written;
	pc->is_starting = pc->is_writing = true;
	r = first->op.port->ops->put_write(first->op.port, first, &pc->first, buf, len, last);
	if (r < 0) {
		free(pc);
		return r;
	}
	port_pin(pt->c.ko.port);
	if (r > 0) {
		pc->is_writing = false;
		pc->result = pc->first.op.result;
	}
	put->size_bytes = first->size_bytes;
	put->crc64 = first->crc64;
	/* The secondary has failed, and the port has already ended its waits: the piece is not written
	 * there. */
	if (cp && set_has_failed(cp->ko.port->set, cp->engine))
		cp->write_error = -EIO;
	if (cp && cp->has_put && !cp->write_error)
		write_copy(pc, cp, buf, len, last);
	pc->is_starting = false;
	return piece_ends(pc);
}

/* Ends the wait of a piece for its write at the secondary, and marks the secondary copy as failed (-EIO). */
static void
let_go(struct piece *pc)
{
	pc->waits = false;
	pc->cp->write_error = -EIO;
}

bool
set_write_cancel(struct store_port *sp, struct store_write *w)
{
	struct piece *pc = key_op_stored(w->priv);

	if (pc->is_writing && !store_write_cancel(sp, &pc->first))
		return false;
	pc->is_writing = false;
	pc->of = NULL;
	port_unpin(pc->pt->c.ko.port);
	if (pc->cp)
		let_go(pc);
	if (pc->cp && store_write_cancel(sp, &pc->second))
		copy_written(pc, -EIO);
	else
		piece_over(pc);
	return true;
}

void
set_poke_pieces(struct set_port *p)
{
	list_for_each_safe(l, port_waiting(p, PORT_PIECES))
	{
		struct piece *pc = container_of(l, struct piece, link);

		if (!pc->waits || !set_has_failed(p->set, pc->cp->engine))
			continue;
		let_go(pc);
		piece_over(pc);
	}
}

/* ---- commit ---- */

static void
give(struct key_change *c)
{
	struct store_put *put = container_of(c->op, struct store_put, op), *first = &c->u.put;

	put->size_bytes = first->size_bytes;
	put->crc64 = first->crc64;
	put->version = first->version;
	put->op.result = c->result;
	if (c->result < 0)
		store_put_abort(put->op.port, first);
	put->is_started = false;
	free(container_of(c, struct put, c));
}

int
set_put_commit(struct store_port *sp, struct store_put *put, const struct store_commit *sc)
{
	struct put *pt = key_op_stored(put->priv);

	if (pt->error)
		return pt->error;
	pt->c.commit = *sc;
	if (sc->inline_len) {
		if (sc->inline_len > STORE_INLINE_MAX)
			return -EINVAL;
		pt->c.commit.inline_data = memcpy(pt->inline_data, sc->inline_data, sc->inline_len);
	}
	if (!key_change_begin(&pt->c))
		return 0;
	/* The change failed before the commit was handed to an engine. */
	check(pt->c.result < 0);
	return pt->c.result;
}

void
set_put_abort(struct store_port *sp, struct store_put *put)
{
	struct put *pt = key_op_stored(put->priv);

	store_put_abort(sp, &pt->c.u.put);
	put->is_started = false;
	if (pt->c.copy)
		copy_drop(pt->c.copy);
	free(pt);
}
