/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads objects of keys with two copies, which look.c has opened. Bytes that the primary cannot deliver are
 * read from the secondary if it has the same version (M19), and are then repaired at the primary. Objects of
 * keys with one copy are read at their engine, without these functions.
 */
#include "set/look.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct read {
	struct look *lk;
	struct store_read *of; /* read operation of the caller */
	struct buf *buf;
	uint64_t off;
	uint32_t len;
	/* Source of the last attempt. READ_WAITS: the primary has failed, and the read waits for the recovery
	 * task to name another primary. READ_MENDS: the read waits for a repair. */
	enum { READ_FIRST, READ_WAITS, READ_SECOND, READ_MENDS } stage;
	int first_error;
	int result;
	struct set_wait wait;
	struct store_read rd;
};

static bool read_came(struct read *r, int result);

static struct look *
look_of(const struct store_obj *obj)
{
	return key_op_stored(obj->priv);
}

/* Returns true for damage that can be repaired. A read error (-EIO) of a failed disk cannot be repaired. */
static bool
is_damage(const struct look *lk, int error)
{
	return error == -EBADMSG || (error == -EIO && !set_has_failed(lk->ko.port->set, lk->home));
}

static void
wait_for(struct read *r, void (*go)(struct msg *m))
{
	r->wait = (struct set_wait){ .mb = r->lk->ko.port->mb, .go = go };
}

static void
on_repaired(struct msg *m)
{
	struct read *r = container_of(m, struct read, wait.msg);
	struct store_read *of = r->of;

	free(r);
	of->op.done(&of->op);
}

/* Ends a read. Returns false if the read ends only after a repair. */
static bool
read_over(struct read *r)
{
	struct store_read *rd = r->of;
	struct look *lk = r->lk;
	/* Damage that a reader of the secondary copy finds is on the secondary. */
	bool mends = lk->is_second && is_damage(lk, r->result);
	bool waits = container_of(lk->op, struct store_obj, op)->mends_first;

	rd->lead = r->rd.lead;
	rd->op.result = r->result;
	if (r->stage == READ_SECOND && r->result >= 0) {
		set_count(lk->ko.port->set, COUNT_READ_SECONDARY);
		mends = is_damage(lk, r->first_error);
	}
	wait_for(r, on_repaired);
	if (mends && mend_begin(lk, waits ? &r->wait : NULL)) {
		r->stage = READ_MENDS;
		return false;
	}
	free(r);
	return true;
}

/* Continues a read with the result of an attempt. */
static void
read_step(struct read *r, int result)
{
	struct store_read *of = r->of;

	if (read_came(r, result) && read_over(r))
		of->op.done(&of->op);
}

static void
on_read(struct store_op *op)
{
	read_step(container_of(container_of(op, struct store_read, op), struct read, rd), op->result);
}

static void
on_kept(struct msg *m)
{
	struct read *r = container_of(m, struct read, wait.msg);

	read_step(r, r->first_error);
}

/* Reads at the engine of an object. Returns the result of a start function (store.h). */
static int
read_at(struct read *r, struct store_obj *obj)
{
	struct store_port *e = obj->op.port;

	memset(&r->rd, 0, offsetof(struct store_read, priv));
	r->rd.op.done = on_read;
	return e->ops->read(e, obj, &r->rd, r->buf, r->off, r->len);
}

/* Returns true if the primary has failed, and the recovery task has not yet assigned another engine. */
static bool
is_about_to_change(const struct look *lk)
{
	const struct set *s = lk->ko.port->set;

	return !lk->is_second && !lk->has_other && set_primary(s, &lk->ko.key) == lk->home &&
	       set_secondary(s, &lk->ko.key) == SET_NOWHERE && set_has_failed(s, lk->home);
}

/* Handles the result of a read. Returns true if the read ends with this result. */
static bool
read_came(struct read *r, int result)
{
	struct look *lk = r->lk;

	r->result = result;
	if (result >= 0 || (r->stage == READ_FIRST && !look_is_lost(result)))
		return true;
	if (r->stage == READ_FIRST) {
		r->first_error = result;
		if (is_about_to_change(lk)) {
			r->stage = READ_WAITS;
			wait_for(r, on_kept);
			set_wait_kept(lk->ko.port->set, &r->wait);
			return false;
		}
	} else if (r->stage == READ_WAITS) {
		lk->asked_other = lk->has_other;
	}
	r->result = r->first_error;
	if (r->stage == READ_SECOND || !look_open_other(lk))
		return true;
	r->stage = READ_SECOND;
	result = read_at(r, &lk->other);
	if (result == 0)
		return false;
	result = result < 0 ? result : r->rd.op.result;
	r->result = result < 0 ? r->first_error : result;
	return true;
}

int
set_read(struct store_port *sp, struct store_obj *obj, struct store_read *rd, struct buf *buf, uint64_t off,
	 uint32_t len)
{
	struct read *r = calloc(1, sizeof *r);
	int got;

	_Static_assert(sizeof r <= STORE_PRIV_READ, "a pointer fits");
	rd->op.port = sp;
	if (!r)
		return -EAGAIN;
	memcpy(rd->priv, &r, sizeof r);
	r->lk = look_of(obj);
	r->of = rd;
	r->buf = buf;
	r->off = off;
	r->len = len;
	got = read_at(r, &r->lk->u.obj);
	if (got == 0 || !read_came(r, got < 0 ? got : r->rd.op.result))
		return 0;
	got = r->result < 0 ? r->result : 1;
	return read_over(r) ? got : 0;
}

bool
set_read_cancel(struct store_port *sp, struct store_read *rd)
{
	struct read *r = key_op_stored(rd->priv);

	if (r->stage == READ_WAITS || r->stage == READ_MENDS || !store_read_cancel(sp, &r->rd))
		return false;
	free(r);
	return true;
}

/* ---- other operations on open objects ---- */

void
set_close(struct store_port *sp, struct store_obj *obj)
{
	struct look *lk = look_of(obj);

	store_close(sp, &lk->u.obj);
	store_close(sp, &lk->other);
	obj->is_open = false;
	key_op_end(&lk->ko);
	free(lk);
}

uint32_t
set_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap, uint32_t *ret_skew)
{
	return store_read_plan(&look_of(obj)->u.obj, off, want, cap, ret_skew);
}

int
set_obj_part(struct store_obj *obj, uint32_t nr, bool by_number, struct store_part *ret_part)
{
	int (*find)(struct store_obj *, uint32_t, struct store_part *) =
		by_number ? store_obj_part : store_obj_part_at;
	struct look *lk = look_of(obj);
	int r = find(&lk->u.obj, nr, ret_part);

	return look_is_lost(r) && look_open_other(lk) ? find(&lk->other, nr, ret_part) : r;
}
