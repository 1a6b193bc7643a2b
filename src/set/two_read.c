/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads keys with two copies. An open returns a record of the primary that both disks have: if the key is
 * locked, the open waits for the lock, and then looks up the key again. Bytes that the primary cannot deliver
 * are read from the secondary if it has the same version (M19), and are then repaired at the primary.
 */
#include "set/replicas.h"
#include "set/two_waiting.h"

#include "set/map/set_rules.h"
#include "store/own_buf.h"
#include "base/buf.h"
#include "base/check.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct read_two;

struct open_two {
	struct set_port *port;
	struct store_obj *of; /* object of the caller */
	struct store_key key;
	struct set_hold hold;
	struct set_wait wait;
	int home, tries;
	unsigned reads;
	bool is_second;  /* true: only the secondary copy is read */
	uint32_t number; /* number of a part of an upload in progress; 0: the object itself */
	uint8_t id[STORE_UPLOAD_ID_BYTES]; /* id of the upload that the part belongs to */
	struct store_obj first, second;
	bool has_second, asked_second; /* `second` is open; an attempt to open `second` was made */
	char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
};

static struct open_two *
open_two(const struct store_obj *obj)
{
	struct open_two *o;

	memcpy(&o, obj->priv, sizeof o);
	return o;
}

/* Returns true for an error after which the other copy is tried. */
static bool
is_lost(int error)
{
	return error == -EBADMSG || error == -EIO || error == -ENODEV || error == -EROFS;
}

/* ---- opening ---- */

static int look(struct open_two *o);
static bool begin_mend(struct open_two *o, struct read_two *waits);
static bool open_second(struct open_two *o);

static void
open_free(struct open_two *o)
{
	port_unpin(o->port);
	free(o);
}

/* Ends an open: copies the record found to the caller's object. Returns 1, or the error r. */
static int
found(struct open_two *o, int r)
{
	struct store_obj *obj = o->of, *f = &o->first;

	obj->is_open = r >= 0;
	if (r < 0) {
		open_free(o);
		return r;
	}
	obj->size_bytes = f->size_bytes;
	obj->version = f->version;
	obj->crc64 = f->crc64;
	obj->meta = f->meta;
	obj->part_nr = f->part_nr;
	obj->has_second = !o->is_second && set_secondary(port_set(o->port), &o->key) != SET_NOWHERE;
	return 1;
}

static void
looked(struct open_two *o, int r)
{
	struct store_obj *obj = o->of;

	if (r == 0)
		return;
	if (o->hold.key)
		set_release(set_key_locks(port_set(o->port)), &o->hold);
	r = found(o, r);
	obj->op.result = r < 0 ? r : 0;
	obj->op.done(&obj->op);
}

static void
on_hold(struct msg *m)
{
	struct open_two *o = container_of(m, struct open_two, hold.msg);

	looked(o, look(o));
}

static void
on_kept(struct msg *m)
{
	struct open_two *o = container_of(m, struct open_two, wait.msg);

	looked(o, look(o));
}

/* Opens a record, and completes immediately. Returns a positive number if the record is open, or -errno. */
static int
open_in(struct open_two *o, struct store_port *e, struct store_obj *obj)
{
	int r = !o->number          ? e->ops->open(e, &o->key, obj)
		: e->ops->open_part ? e->ops->open_part(e, &o->key, o->id, o->number, false, obj)
				    : -EOPNOTSUPP;

	check(r != 0);
	return r > 0 && obj->op.result < 0 ? obj->op.result : r;
}

static int
open_at(struct open_two *o, int engine)
{
	return open_in(o, port_engine(o->port, engine), &o->first);
}

/* Handles the result of opening the record of the primary, while no change of the key is in progress. If the
 * record of the primary is damaged, opens the record of the secondary, and begins to repair the primary. */
static int
opened(struct open_two *o, int r)
{
	struct set *s = port_set(o->port);
	int engine = set_secondary(s, &o->key);

	if (r >= 0 || !is_lost(r) || o->is_second || engine == SET_NOWHERE || engine == o->home ||
	    open_at(o, engine) < 0)
		return r;
	/* The record opened above is that of the secondary, so this disk is not tried again. */
	o->asked_second = true;
	set_count(s, COUNT_READ_SECONDARY);
	if (!set_has_failed(s, o->home))
		begin_mend(o, NULL);
	return 1;
}

/* Looks up and opens the record. Returns 1 if the record is open, 0 if the open waits, or -errno. */
static int
look(struct open_two *o)
{
	struct set *s = port_set(o->port);
	struct store_port *e;
	bool is_there;
	int r;

	if (o->hold.key && set_is_open(&o->hold))
		return -EAGAIN;
	o->home = o->is_second ? set_secondary(s, &o->key) : set_primary(s, &o->key);
	if (o->home == SET_NOWHERE)
		return o->is_second ? -ENODATA : -ENODEV;
	/* M39: a failed disk is not asked about a bucket that has changed since the failure. */
	if (set_has_missed(s, o->home, o->key.bucket, o->key.bucket_len, &is_there))
		return is_there ? -ENOENT : -ENXIO;
	e = port_engine(o->port, o->home);
	r = open_at(o, o->home);
	/* The disk has failed, and another disk may have a newer record: the open waits for recovery. */
	if (!o->is_second && !set_is_in(s, o->home) && !o->hold.key && o->tries++ < 2) {
		if (r > 0)
			store_close(e, &o->first);
		o->wait.mb = port_mailbox(o->port);
		o->wait.go = on_kept;
		set_wait_kept(s, &o->wait);
		return 0;
	}
	if (o->hold.key || !RULE_SETTLED_VISIBLE || !set_is_held(set_key_locks(s), &o->key))
		return opened(o, r);
	if (r > 0)
		store_close(e, &o->first);
	o->hold.mb = port_mailbox(o->port);
	o->hold.go = on_hold;
	r = set_hold(set_key_locks(s), &o->key, &o->hold);
	if (r < 0)
		return -EAGAIN;
	return r > 0 ? look(o) : 0;
}

int
set_two_open(struct set_port *p, const struct store_key *k, const struct set_part *part, bool is_second,
	     struct store_obj *obj)
{
	struct open_two *o = calloc(1, sizeof *o);
	int r;

	_Static_assert(sizeof o <= STORE_PRIV_OBJ, "a pointer fits");
	if (!o)
		return -EAGAIN;
	obj->op.port = port_base(p);
	memcpy(obj->priv, &o, sizeof o);
	o->port = p;
	o->of = obj;
	o->is_second = is_second;
	if (part) {
		memcpy(o->id, part->id, sizeof o->id);
		o->number = part->number;
	}
	o->key = *k;
	o->key.bucket = memcpy(o->name, k->bucket, k->bucket_len);
	o->key.key = memcpy(o->name + k->bucket_len, k->key, k->key_len);
	port_pin(p);
	r = look(o);
	if (o->hold.key && r != 0)
		set_release(set_key_locks(port_set(p)), &o->hold);
	if (r == 0)
		return 0;
	r = found(o, r);
	obj->op.result = r < 0 ? r : 0;
	return 1;
}

void
set_two_close(struct store_port *sp, struct store_obj *obj)
{
	struct open_two *o = open_two(obj);

	store_close(sp, &o->first);
	store_close(sp, &o->second);
	obj->is_open = false;
	open_free(o);
}

/* ---- mending ---- */

/* A repair of a damaged copy with the bytes of the other copy. */
struct mend {
	struct set_port *port;
	bool of_second; /* true: the damaged copy is the secondary */
	struct list link;
	struct read_two *read; /* read that waits for the repair; NULL: no read waits */
	struct set_hold hold;
	struct store_send send;
	struct buf buf;
	uint8_t id[STORE_UPLOAD_ID_BYTES]; /* id of the upload whose part is damaged */
	char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
};

static void start_mend(struct mend *m);
static void on_read_mended(struct msg *m);

struct read_two {
	struct open_two *o;
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

static void
mend_over(struct mend *m, int result)
{
	struct set_port *p = m->port;
	struct set *s = port_set(p);
	struct list *next;

	if (result >= 0 && !m->send.changes) {
		/* The repair read the bytes without an error, so nothing was rewritten. */
	} else if (result >= 0) {
		set_count(s, COUNT_REPAIRED);
		log_note("%s of bucket %.*s that was damaged was rewritten from its other copy",
			 m->send.only_upload ? "a part of an upload" : "an object", m->send.key.bucket_len,
			 m->send.key.bucket);
	} else if (result != -ESTALE) {
		log_limited(LOG_WARN,
			    "an object that is damaged could not be rewritten from its other copy: %s",
			    strerror(-result));
	}
	port_two(p)->repairs = false;
	if (m->hold.key)
		set_release(set_key_locks(s), &m->hold);
	/* The port is not freed before this message arrives, because objects are open. */
	if (m->read)
		mailbox_post(port_mailbox(p), &m->read->wait.msg, on_read_mended);
	port_unpin(p);
	free(m->buf.mem);
	free(m);
	next = list_pop(&port_two(p)->repairs_waiting);
	if (next)
		start_mend(container_of(next, struct mend, link));
}

static void
on_mended(struct store_op *op)
{
	mend_over(container_of(container_of(op, struct store_send, op), struct mend, send), op->result);
}

static void
mend(struct mend *m)
{
	struct set *s = port_set(m->port);
	int home = set_primary(s, &m->send.key), second = set_secondary(s, &m->send.key), r = -ESTALE;

	m->send.op.done = on_mended;
	m->send.is_repair = true;
	m->send.buf = &m->buf;
	if (home != SET_NOWHERE && second != SET_NOWHERE) {
		struct store_port *from = port_engine(m->port, m->of_second ? home : second);
		struct store_port *to = port_engine(m->port, m->of_second ? second : home);

		r = from->ops->member->send(from, to, &m->send);
	}
	if (r != 0)
		mend_over(m, r < 0 ? r : m->send.op.result);
}

static void
on_mend(struct msg *msg)
{
	mend(container_of(msg, struct mend, hold.msg));
}

static void
start_mend(struct mend *m)
{
	struct set_port *p = m->port;
	int r = -EAGAIN;

	port_two(p)->repairs = true;
	if (store_buf_make(&m->buf, BUF_LARGE_BYTES))
		r = set_hold(set_key_locks(port_set(p)), &m->send.key, &m->hold);
	if (r < 0)
		mend_over(m, -EAGAIN);
	else if (r > 0)
		mend(m);
}

/* Begins a repair, for which the read `waits` waits (NULL: no read). During another repair the new repair is
 * queued, or dropped if no read waits for it. Returns true if `waits` will continue in on_read_mended(). */
static bool
begin_mend(struct open_two *o, struct read_two *waits)
{
	struct set_port *p = o->port;
	struct mend *m = port_two(p)->repairs && !waits ? NULL : calloc(1, sizeof *m);

	if (!m)
		return false;
	m->port = p;
	m->read = waits;
	m->of_second = o->is_second;
	m->send.key = o->key;
	m->send.key.bucket = memcpy(m->name, o->key.bucket, o->key.bucket_len);
	m->send.key.key = memcpy(m->name + o->key.bucket_len, o->key.key, o->key.key_len);
	if (o->number)
		m->send.only_upload = memcpy(m->id, o->id, sizeof m->id);
	m->hold.mb = port_mailbox(p);
	m->hold.go = on_mend;
	port_pin(p);
	if (port_two(p)->repairs)
		list_push_tail(&port_two(p)->repairs_waiting, &m->link);
	else
		start_mend(m);
	return waits != NULL;
}

/* ---- reading ---- */

static struct read_two *
read_two(const struct store_read *rd)
{
	struct read_two *r;

	memcpy(&r, rd->priv, sizeof r);
	return r;
}

/* Opens the other copy. Returns false if its disk does not have the version that is being read. */
static bool
open_second(struct open_two *o)
{
	struct set_port *p = o->port;
	int engine = set_secondary(port_set(p), &o->key);
	struct store_port *e;

	/* If the object was not opened at the primary, the other copy is at the primary. */
	if (engine == SET_NOWHERE || engine == o->home)
		engine = set_primary(port_set(p), &o->key);
	if (o->asked_second || o->is_second)
		return o->has_second;
	o->asked_second = true;
	if (engine == SET_NOWHERE || engine == o->home)
		return false;
	e = port_engine(p, engine);
	if (open_in(o, e, &o->second) < 0)
		return false;
	if (RULE_SAME_VERSION_READ &&
	    (o->second.version != o->first.version || o->second.crc64 != o->first.crc64 ||
	     o->second.size_bytes != o->first.size_bytes)) {
		store_close(e, &o->second);
		return false;
	}
	o->has_second = true;
	return true;
}

/* Returns true for damage that can be repaired. A read error (-EIO) of a failed disk cannot be repaired. */
static bool
is_damage(const struct open_two *o, int error)
{
	return error == -EBADMSG || (error == -EIO && !set_has_failed(port_set(o->port), o->home));
}

static void
read_free(struct read_two *r)
{
	r->o->reads--;
	free(r);
}

static void
on_read_mended(struct msg *m)
{
	struct read_two *r = container_of(m, struct read_two, wait.msg);
	struct store_read *of = r->of;

	read_free(r);
	of->op.done(&of->op);
}

/* Ends a read. Returns false if the read ends only after a repair. */
static bool
read_over(struct read_two *r)
{
	struct store_read *rd = r->of;
	struct open_two *o = r->o;
	/* Damage that a reader of the secondary copy finds is on the secondary. */
	bool mends = o->is_second && is_damage(o, r->result);

	rd->lead = r->rd.lead;
	rd->op.result = r->result;
	if (r->stage == READ_SECOND && r->result >= 0) {
		set_count(port_set(o->port), COUNT_READ_SECONDARY);
		mends = is_damage(o, r->first_error);
	}
	if (mends && begin_mend(o, o->of->mends_first ? r : NULL)) {
		r->stage = READ_MENDS;
		return false;
	}
	read_free(r);
	return true;
}

static bool read_came(struct read_two *r, int result);

static void
read_goes_on(struct read_two *r, int result)
{
	struct store_read *of = r->of;

	if (read_came(r, result) && read_over(r))
		of->op.done(&of->op);
}

static void
on_read(struct store_op *op)
{
	read_goes_on(container_of(container_of(op, struct store_read, op), struct read_two, rd), op->result);
}

static void
on_read_kept(struct msg *m)
{
	struct read_two *r = container_of(m, struct read_two, wait.msg);

	read_goes_on(r, r->first_error);
}

static int
read_second(struct read_two *r)
{
	struct store_port *e = r->o->second.op.port;

	memset(&r->rd, 0, offsetof(struct store_read, priv));
	r->rd.op.done = on_read;
	return e->ops->read(e, &r->o->second, &r->rd, r->buf, r->off, r->len);
}

/* Returns true if the primary has failed, and the recovery task has not yet assigned another engine. */
static bool
is_about_to_change(const struct open_two *o)
{
	const struct set *s = port_set(o->port);

	return !o->is_second && !o->has_second && set_primary(s, &o->key) == o->home &&
	       set_secondary(s, &o->key) == SET_NOWHERE && set_has_failed(s, o->home);
}

/* Handles the result of a read. Returns true if the read ends with this result. */
static bool
read_came(struct read_two *r, int result)
{
	r->result = result;
	if (result >= 0 || (r->stage == READ_FIRST && !is_lost(result)))
		return true;
	if (r->stage == READ_FIRST) {
		r->first_error = result;
		if (is_about_to_change(r->o)) {
			r->stage = READ_WAITS;
			r->wait.mb = port_mailbox(r->o->port);
			r->wait.go = on_read_kept;
			set_wait_kept(port_set(r->o->port), &r->wait);
			return false;
		}
	} else if (r->stage == READ_WAITS) {
		r->o->asked_second = r->o->has_second;
	}
	r->result = r->first_error;
	if (r->stage == READ_SECOND || !open_second(r->o))
		return true;
	r->stage = READ_SECOND;
	result = read_second(r);
	if (result == 0)
		return false;
	result = result < 0 ? result : r->rd.op.result;
	r->result = result < 0 ? r->first_error : result;
	return true;
}

int
set_two_read(struct store_port *sp, struct store_obj *obj, struct store_read *rd, struct buf *buf,
	     uint64_t off, uint32_t len)
{
	struct open_two *o = open_two(obj);
	struct store_port *e = o->first.op.port;
	struct read_two *r = calloc(1, sizeof *r);
	int got;

	_Static_assert(sizeof r <= STORE_PRIV_READ, "a pointer fits");
	rd->op.port = sp;
	if (!r)
		return -EAGAIN;
	memcpy(rd->priv, &r, sizeof r);
	*r = (struct read_two){ .o = o, .of = rd, .buf = buf, .off = off, .len = len, .rd.op.done = on_read };
	o->reads++;
	got = e->ops->read(e, &o->first, &r->rd, buf, off, len);
	if (got == 0 || !read_came(r, got < 0 ? got : r->rd.op.result))
		return 0;
	got = r->result < 0 ? r->result : 1;
	return read_over(r) ? got : 0;
}

bool
set_two_read_cancel(struct store_port *sp, struct store_read *rd)
{
	struct read_two *r = read_two(rd);

	if (r->stage == READ_WAITS || r->stage == READ_MENDS || !store_read_cancel(sp, &r->rd))
		return false;
	read_free(r);
	return true;
}

/* ---- other operations on open objects ---- */

uint32_t
set_two_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap, uint32_t *ret_skew)
{
	return store_read_plan(&open_two(obj)->first, off, want, cap, ret_skew);
}

int
set_two_obj_part(struct store_obj *obj, uint32_t number, struct store_part *ret_part)
{
	struct open_two *o = open_two(obj);
	int r = store_obj_part(&o->first, number, ret_part);

	return is_lost(r) && open_second(o) ? store_obj_part(&o->second, number, ret_part) : r;
}

int
set_two_obj_part_at(struct store_obj *obj, uint32_t index, struct store_part *ret_part)
{
	struct open_two *o = open_two(obj);
	int r = store_obj_part_at(&o->first, index, ret_part);

	return is_lost(r) && open_second(o) ? store_obj_part_at(&o->second, index, ret_part) : r;
}
