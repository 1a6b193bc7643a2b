/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up a key: opens an object or a part of an upload, reads the state of an upload, or lists its parts. A
 * look-up of a key with one copy is passed to the engine of the key.
 *
 * The result for a key with two copies is a state of the primary that both disks have (M16): if the key is
 * locked, the look-up waits for the lock, and then looks up the key again. Parts are listed with the lock,
 * because a long list takes several steps.
 */
#include "set/look.h"

#include "set/map/set_rules.h"
#include "store/own_buf.h"
#include "base/check.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAILED_TRIES 2

/* ---- at one engine ---- */

static bool
is_open_call(const struct look *lk)
{
	return lk->call.kind == LOOK_OBJECT || lk->call.kind == LOOK_PART;
}

/* Looks up the key at an engine. Returns 1 if the look-up has succeeded; 0 if a list of parts is in progress;
 * or -errno. */
static int
look_at(struct look *lk, int engine)
{
	struct set_port *p = lk->ko.port;
	const struct store_key *k = &lk->ko.key;
	struct store_op *op = lk->call.kind == LOOK_UPLOAD ? lk->op : &lk->u.op;
	bool is_there;
	int r;

	/* M39: a failed disk is not asked about the contents of a bucket that has changed since the
	 * failure. */
	if (set_has_missed(p->set, engine, k->bucket, k->bucket_len, &is_there))
		return is_there ? -ENOENT : -ENXIO;
	r = port_engine(p, engine)->ops->look(port_engine(p, engine), &lk->call, op);
	check(r != 0 || lk->call.kind == LOOK_PARTS);
	return r > 0 && op->result < 0 ? op->result : r;
}

/* ---- the end ---- */

/* Passes the record that was opened to the object of the caller. */
static void
found(struct look *lk)
{
	struct store_obj *obj = container_of(lk->op, struct store_obj, op), *f = &lk->u.obj;

	_Static_assert(sizeof lk <= STORE_PRIV_OBJ, "a pointer fits");
	obj->size_bytes = f->size_bytes;
	obj->version = f->version;
	obj->crc64 = f->crc64;
	obj->meta = f->meta;
	obj->part_nr = f->part_nr;
	obj->has_second = !lk->is_second && set_secondary(lk->ko.port->set, &lk->ko.key) != SET_NOWHERE;
	obj->is_open = true;
	memcpy(obj->priv, &lk, sizeof lk);
}

/* Ends a look-up, and sets the result of the caller's operation. r: 1 or -errno. */
static void
end(struct look *lk, int r)
{
	bool is_list = lk->call.kind == LOOK_PARTS;

	lk->op->result = r < 0 ? r : is_list ? lk->u.op.result : 0;
	if (is_list)
		container_of(lk->op, struct store_part_list, op)->more = r >= 0 && lk->u.parts.more;
	if (is_open_call(lk) && r >= 0) {
		key_op_unlock(&lk->ko);
		found(lk);
		return;
	}
	key_op_end(&lk->ko);
	free(lk);
}

static void
looked(struct look *lk, int r)
{
	struct store_op *op = lk->op;

	if (r == 0)
		return;
	end(lk, r);
	op->done(op);
}

/* ---- repairs of damaged copies with the bytes of their other copies, one after the other at each port ---- */

struct mend {
	struct key_op ko;
	bool of_second; /* true: the damaged copy is the secondary */
	struct list link;
	struct set_wait *waits; /* wait of a read for the repair; NULL: no read waits */
	struct store_send send;
	struct buf buf;
	uint8_t id[STORE_UPLOAD_ID_BYTES]; /* id of the upload whose part is damaged */
};

static void mend_start(struct mend *m);

static void
mend_over(struct mend *m, int result)
{
	struct set_port *p = m->ko.port;
	struct list *next;

	if (result >= 0 && !m->send.changes) {
		/* The repair read the bytes without an error, so nothing was rewritten. */
	} else if (result >= 0) {
		set_count(p->set, COUNT_REPAIRED);
		log_note("%s of bucket %.*s that was damaged was rewritten from its other copy",
			 m->send.only_upload ? "a part of an upload" : "an object", m->send.key.bucket_len,
			 m->send.key.bucket);
	} else if (result != -ESTALE) {
		log_limited(LOG_WARN,
			    "an object that is damaged could not be rewritten from its other copy: %s",
			    strerror(-result));
	}
	/* The port is not freed before this message arrives, because objects are open. */
	if (m->waits)
		mailbox_post(m->waits->mb, &m->waits->msg, m->waits->go);
	key_op_end(&m->ko);
	list_del(&m->link);
	free(m->buf.mem);
	free(m);
	next = list_first(port_waiting(p, PORT_REPAIRS));
	if (next)
		mend_start(container_of(next, struct mend, link));
}

static void
on_sent(struct store_op *op)
{
	mend_over(container_of(container_of(op, struct store_send, op), struct mend, send), op->result);
}

static void
mend_send(struct key_op *ko)
{
	struct mend *m = container_of(ko, struct mend, ko);
	struct set *s = ko->port->set;
	int home = set_primary(s, &ko->key), second = set_secondary(s, &ko->key), r = -ESTALE;

	m->send.key = ko->key;
	m->send.op.done = on_sent;
	m->send.is_repair = true;
	m->send.buf = &m->buf;
	if (home != SET_NOWHERE && second != SET_NOWHERE) {
		struct store_port *from = port_engine(ko->port, m->of_second ? home : second);
		struct store_port *to = port_engine(ko->port, m->of_second ? second : home);

		r = from->ops->member->send(from, to, &m->send);
	}
	if (r != 0)
		mend_over(m, r < 0 ? r : m->send.op.result);
}

static void
mend_start(struct mend *m)
{
	int r = -EAGAIN;

	if (store_buf_make(&m->buf, BUF_LARGE_BYTES))
		r = key_op_lock(&m->ko, mend_send);
	if (r < 0)
		mend_over(m, r);
	else if (r > 0)
		mend_send(&m->ko);
}

bool
mend_begin(struct look *lk, struct set_wait *waits)
{
	struct set_port *p = lk->ko.port;
	struct list *repairs = port_waiting(p, PORT_REPAIRS);
	bool is_first = list_empty(repairs);
	struct mend *m = is_first || waits ? calloc(1, sizeof *m) : NULL;

	if (!m)
		return false;
	key_op_init(&m->ko, p, &lk->ko.key);
	port_pin(p);
	m->waits = waits;
	m->of_second = lk->is_second;
	if (lk->call.kind == LOOK_PART)
		m->send.only_upload = memcpy(m->id, lk->id, sizeof m->id);
	list_push_tail(repairs, &m->link);
	if (is_first)
		mend_start(m);
	return waits != NULL;
}

/* ---- keys with two copies ---- */

bool
look_is_lost(int error)
{
	return error == -EBADMSG || error == -EIO || error == -ENODEV || error == -EROFS;
}

/* Handles the result of a look-up at the primary, while no change of the key is in progress. If the record of
 * the primary is damaged, opens the record of the secondary, and begins to repair the primary. */
static int
settled(struct look *lk, int r)
{
	struct set *s = lk->ko.port->set;
	int engine = set_secondary(s, &lk->ko.key);

	if (r >= 0 || !look_is_lost(r) || !is_open_call(lk) || lk->is_second || engine == SET_NOWHERE ||
	    engine == lk->home || look_at(lk, engine) < 0)
		return r;
	/* The record opened above is that of the secondary, so this disk is not tried again. */
	lk->asked_other = true;
	set_count(s, COUNT_READ_SECONDARY);
	if (!set_has_failed(s, lk->home))
		mend_begin(lk, NULL);
	return 1;
}

/* Returns true if the look-up has to wait for the recovery task: the primary has failed, and another disk may
 * have a newer record. */
static bool
has_failed(const struct look *lk)
{
	return !lk->is_second && lk->tries < FAILED_TRIES && !set_is_in(lk->ko.port->set, lk->home);
}

static int look(struct look *lk);

static void
look_again(struct key_op *ko)
{
	struct look *lk = container_of(ko, struct look, ko);

	looked(lk, look(lk));
}

static int
look_with_lock(struct look *lk)
{
	int r = key_op_lock(&lk->ko, look_again);

	return r > 0 ? look(lk) : r;
}

static void
forget(struct look *lk)
{
	if (is_open_call(lk))
		store_close(&lk->ko.port->base, &lk->u.obj);
}

/* Looks up the key. Returns 1 if the look-up has succeeded, 0 if it continues later, or -errno. */
static int
look(struct look *lk)
{
	struct set *s = lk->ko.port->set;
	const struct store_key *k = &lk->ko.key;
	bool has_lock = key_op_has_lock(&lk->ko), waits;
	int r;

	if (has_lock && set_is_open(&lk->ko.hold))
		return -EAGAIN;
	if (lk->call.kind == LOOK_PARTS && RULE_SETTLED_VISIBLE && !has_lock)
		return look_with_lock(lk);
	lk->home = lk->is_second ? set_secondary(s, k) : set_primary(s, k);
	if (lk->home == SET_NOWHERE)
		return lk->is_second ? -ENODATA : -ENODEV;
	waits = has_failed(lk);
	r = waits ? 1 : look_at(lk, lk->home);
	/* The disk may have failed during the look-up. */
	if (waits || (r != 0 && has_failed(lk))) {
		forget(lk);
		lk->tries++;
		key_op_wait(&lk->ko, look_again);
		return 0;
	}
	if (r == 0 || has_lock || !RULE_SETTLED_VISIBLE || !set_is_held(set_key_locks(s), k))
		return settled(lk, r);
	forget(lk);
	return look_with_lock(lk);
}

bool
look_open_other(struct look *lk)
{
	struct set_port *p = lk->ko.port;
	const struct store_key *k = &lk->ko.key;
	const struct store_obj *obj = &lk->u.obj;
	int engine = set_secondary(p->set, k);
	struct store_port *e;

	/* If the object was not opened at the primary, the other copy is at the primary. */
	if (engine == SET_NOWHERE || engine == lk->home)
		engine = set_primary(p->set, k);
	if (lk->asked_other || lk->is_second)
		return lk->has_other;
	lk->asked_other = true;
	if (engine == SET_NOWHERE || engine == lk->home)
		return false;
	e = port_engine(p, engine);
	if (e->ops->look(e, &lk->call, &lk->other.op) < 0 || lk->other.op.result < 0)
		return false;
	if (RULE_SAME_VERSION_READ && (lk->other.version != obj->version || lk->other.crc64 != obj->crc64 ||
				       lk->other.size_bytes != obj->size_bytes)) {
		store_close(e, &lk->other);
		return false;
	}
	lk->has_other = true;
	return true;
}

/* ---- parts ---- */

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	struct look *lk = container_of(pl, struct look, u.parts);
	struct store_part_list *of = container_of(lk->op, struct store_part_list, op);

	return of->part(of, part);
}

static void
on_list(struct store_op *op)
{
	looked(container_of(op, struct look, u.op), op->result < 0 ? op->result : 1);
}

static void
init_list(struct look *lk, struct store_part_list *of)
{
	of->more = false;
	lk->u.parts.op.done = on_list;
	lk->u.parts.part = on_part;
	lk->u.parts.after = of->after;
	lk->u.parts.max = of->max;
}

/* ---- the entry ---- */

int
set_look_key(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	const struct store_key *k = &l->key;
	struct set_port *p = set_port(sp);
	struct store_key key;
	struct look *lk;
	int r = -ENODATA;

	if (!set_has_two(sp, k, &key)) {
		struct store_port *e = l->is_second ? NULL : set_port_to_read(sp, k, &r);

		return e ? e->ops->look(e, l, op) : r;
	}
	lk = calloc(1, sizeof *lk);
	if (!lk)
		return -EAGAIN;
	op->port = sp;
	key_op_init(&lk->ko, p, &key);
	port_pin(p);
	lk->op = op;
	lk->call = *l;
	lk->call.key = lk->ko.key;
	lk->call.is_second = false;
	lk->is_second = l->is_second;
	if (l->id)
		lk->call.id = memcpy(lk->id, l->id, sizeof lk->id);
	if (l->kind == LOOK_PARTS)
		init_list(lk, container_of(op, struct store_part_list, op));
	r = look(lk);
	if (r == 0)
		return 0;
	end(lk, r);
	return 1;
}
