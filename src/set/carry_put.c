/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a PUT. If the key of a PUT moves to another engine between the beginning of the PUT and its commit,
 * the commit fails with -EXDEV. A replay reads the bytes from the former engine, and writes them to the
 * current engine with the same arguments. The client does not notice the replay, which runs on the thread of
 * the PUT. The steps of a replay:
 *
 * 1. The current engine of the key is looked up. If the key has two copies and its primary has failed, the
 *   replay waits until the recovery task has named the new primary.
 * 2. A PUT begins at the current engine. Pieces are read from the former engine and written to the current
 *   one.
 * 3. The PUT is committed. If the key has moved again, another replay begins with the bytes written here.
 * 4. done() of the caller's PUT is called.
 *
 * The current engine validates the PUT like any other PUT: preconditions, quotas and free space. The caller
 * gets the errors of the current engine. If the former engine cannot deliver the bytes, nothing was changed,
 * and the result is -EXDEV.
 */
#include "set/key_op.h"

#include "store/own_buf.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

#define CARRY_BYTES (4 * STORE_GRANULE) /* number of bytes that a replay reads in one operation */
#define MOVES_MAX 8                     /* largest number of replays of one PUT */
#define KEPT_MAX 8                      /* largest number of waits for the recovery task in one replay */

struct carry {
	struct key_op ko;
	struct store_put *of; /* PUT at the former engine, which has the bytes */
	struct store_port *from;
	struct store_obj obj; /* object at the former engine, opened to read the bytes of the PUT */
	struct store_put_args args;
	struct store_carrier again; /* carrier of the new PUT, in case the key moves again */
	int moves, kept_nr;
	struct store_put put; /* PUT at the current engine */
	struct store_read rd;
	struct store_write w;
	uint64_t off;
	uint32_t len;
	struct buf *buf; /* buffer of the pieces: the caller's buffer in the first replay, `mine` in later
	                  * replays */
	struct buf mine;
};

static void read_piece(struct carry *c);

/* Ends the replay, and completes the caller's PUT with `result`. */
static void
end(struct carry *c, int result)
{
	struct store_put *of = c->of;

	store_close(c->from, &c->obj);
	store_put_abort(c->put.op.port, &c->put);
	store_put_abort(c->from, of);
	if (c->put.op.port)
		of->op.port = c->put.op.port;
	of->version = c->put.version;
	of->op.result = result;
	key_op_end(&c->ko);
	free(c->mine.mem);
	free(c);
	of->op.done(&of->op);
}

/* Ends a replay for which the former engine cannot deliver the bytes. The caller gets -EXDEV, because nothing
 * was changed. */
static void
lost(struct carry *c)
{
	end(c, -EXDEV);
}

static void
on_committed(struct store_op *op)
{
	end(container_of(container_of(op, struct store_put, op), struct carry, put), op->result);
}

/* Commits the PUT at the current engine, with the last piece in the buffer, or without a piece if len is
 * 0. */
static void
commit(struct carry *c)
{
	struct store_commit *sc = &c->args.commit;
	int r;

	if (c->obj.size_bytes <= store_limits(c->put.op.port)->inline_bytes) {
		sc->inline_data = c->buf->mem;
		sc->inline_len = c->len;
	} else {
		sc->last = c->buf;
		sc->last_len = c->len;
	}
	c->put.op.done = on_committed;
	r = store_put_commit(c->put.op.port, &c->put, sc);
	if (r == -EILSEQ)
		/* the granules match their CRCs, but the CRC of all bytes differs from that of the former
		 * PUT */
		lost(c);
	else if (r != 0)
		end(c, r < 0 ? r : c->put.op.result);
}

static void
on_written(struct store_op *op)
{
	struct carry *c = container_of(container_of(op, struct store_write, op), struct carry, w);

	if (op->result < 0)
		end(c, op->result);
	else
		read_piece(c);
}

static void
write_piece(struct carry *c)
{
	int r;

	check(!c->rd.lead);
	if (c->args.commit.progress_ns)
		*c->args.commit.progress_ns = clock_ns();
	c->off += c->len;
	if (c->off == c->obj.size_bytes) {
		commit(c);
		return;
	}
	c->w.op.done = on_written;
	r = store_put_write(c->put.op.port, &c->put, &c->w, c->buf, c->len, false);
	if (r < 0)
		end(c, r);
	else if (r > 0)
		on_written(&c->w.op);
}

static void
on_read(struct store_op *op)
{
	struct carry *c = container_of(container_of(op, struct store_read, op), struct carry, rd);

	if (op->result < 0)
		lost(c);
	else
		write_piece(c);
}

static void
read_piece(struct carry *c)
{
	uint64_t left = c->obj.size_bytes - c->off;
	int r;

	c->len = left < c->buf->cap_bytes ? (uint32_t)left : c->buf->cap_bytes;
	c->rd.op.done = on_read;
	r = store_read(c->from, &c->obj, &c->rd, c->buf, c->off, c->len);
	if (r < 0)
		lost(c);
	else if (r > 0)
		on_read(&c->rd.op);
}

static void
begin(struct key_op *ko)
{
	struct carry *c = container_of(ko, struct carry, ko);
	struct set_port *p = ko->port;
	int r;
	struct store_port *e = set_port_to_write(&p->base, &ko->key, &r);

	/* The primary has failed, and the recovery task has not yet named another primary: the replay
	 * waits. */
	if (store_has_two(&ko->key) && (e == c->from || (!e && r == -EROFS)) && !set_is_read_only(p->set) &&
	    c->kept_nr++ < KEPT_MAX) {
		key_op_wait(ko, begin);
		return;
	}
	if (e)
		r = set_engine_put_init(p, e, &c->put, &c->args.spec);
	if (r < 0) {
		end(c, r);
		return;
	}
	c->put.carrier = &c->again;
	if (c->obj.size_bytes)
		read_piece(c);
	else
		commit(c);
}

static bool
has_buf(struct carry *c)
{
	uint64_t bytes = c->obj.size_bytes;

	bytes = bytes > CARRY_BYTES ? CARRY_BYTES
				    : (bytes + STORE_GRANULE - 1) / STORE_GRANULE * STORE_GRANULE;
	bytes = bytes ? bytes : STORE_GRANULE;
	if (!store_buf_make(&c->mine, (uint32_t)bytes))
		return false;
	c->buf = &c->mine;
	return true;
}

static bool carry_again(struct store_carrier *sc, struct store_put *put);

/* Begins a replay of `put`. before: the previous replay of the same PUT; NULL: this is the first replay.
 * Returns false if the PUT cannot be replayed. */
static bool
carry(struct set_port *p, struct store_put *put, struct carry *before)
{
	struct store_port *from = put->op.port;
	struct carry *c = before && before->moves == MOVES_MAX ? NULL : calloc(1, sizeof *c);
	struct store_look l;

	if (!c)
		return false;
	c->of = put;
	c->from = from;
	c->moves = before ? before->moves + 1 : 1;
	c->again.carry = carry_again;
	l = (struct store_look){ .kind = LOOK_PUT, .put = put, .ret_args = &c->args };
	if (from->ops->look(from, &l, &c->obj.op) < 0) {
		free(c);
		return false;
	}
	c->buf = before ? before->buf : NULL;
	if (!c->buf && !has_buf(c)) {
		store_close(from, &c->obj);
		free(c);
		return false;
	}
	key_op_init(&c->ko, p, &c->args.spec.key);
	port_pin(p);
	begin(&c->ko);
	return true;
}

static bool
carry_again(struct store_carrier *sc, struct store_put *put)
{
	struct carry *c = container_of(sc, struct carry, again);

	return carry(c->ko.port, put, c);
}

bool
set_carry(struct store_carrier *sc, struct store_put *put)
{
	return carry(container_of(sc, struct set_port, carrier), put, NULL);
}
