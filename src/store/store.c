/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of store.h, except those of units.h (units.c) and of quotas (model/quota_calls.c): each makes
 * the checks that are the same for all back ends, and calls the function with the same name of the back end of
 * the store or of the port, or, without either, of the configuration. An operation that continues an earlier
 * one (on an open object, a read, a PUT) is on the port of the earlier one: in a set the port of an engine, not
 * the port of the caller. No state.
 */
#include "store/store.h"

#include "base/age_clock.h"
#include "base/crc64.h"
#include "store/ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

static int
bucket_check(const char *name, size_t len)
{
	if (len > STORE_BUCKET_MAX)
		return -ENAMETOOLONG;
	return len == 0 || memchr(name, 0, len) ? -EINVAL : 0;
}

static int
key_check(const struct store_key *k)
{
	if (k->bucket_len > STORE_BUCKET_MAX || k->key_len > STORE_KEY_MAX)
		return -ENAMETOOLONG;
	if (k->bucket_len == 0 || k->key_len == 0 || memchr(k->bucket, 0, k->bucket_len) ||
	    memchr(k->key, 0, k->key_len))
		return -EINVAL;
	return 0;
}

/* ---- life ---- */

int
store_task(const struct store_conf *conf, enum store_task task, char *said, size_t said_len)
{
	/* the answers of a back end without the task; no text: 0 */
	static const struct {
		const char *text;
		int result;
	} without[] = {
		[TASK_UPGRADE] = { "has one format", 0 },
		[TASK_FORGET] = { "has no disks to give up", -EOPNOTSUPP },
	};
	int r;

	said[0] = 0;
	r = conf->ops->task ? conf->ops->task(conf, task, said, said_len) : -ENOSYS;
	if (r != -ENOSYS)
		return r;
	if (without[task].text)
		snprintf(said, said_len, "a store on %s %s", conf->ops->name, without[task].text);
	return without[task].result;
}

int
store_format(const struct store_conf *conf, bool force, char *err, size_t err_len)
{
	return conf->ops->format(conf, force, err, err_len);
}

int
store_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len)
{
	return conf->ops->start(conf, ret_store, err, err_len);
}

int
store_fsck(const struct store_conf *conf, enum fsck_mode mode, void (*say)(void *cookie, const char *line),
	   void *cookie)
{
	char line[96];

	if (conf->ops->fsck)
		return conf->ops->fsck(conf, mode, say, cookie);
	snprintf(line, sizeof line, "a store on %s has no fsck", conf->ops->name);
	if (say)
		say(cookie, line);
	return -EOPNOTSUPP;
}

void
store_stop(struct store *st)
{
	if (st)
		st->ops->stop(st);
}

int
store_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
	     struct store_port **ret_port)
{
	return st->ops->attach(st, ring, mb, timers, ret_port);
}

bool
store_detach(struct store_port *p)
{
	return p->ops->detach(p);
}

void
store_turn(struct store_port *p, enum store_turn turn)
{
	if (p->ops->turn)
		p->ops->turn(p, turn);
}

void
store_set_spares(struct store_port *p, struct store_spares *s)
{
	p->spares = s;
}

const struct store_limits *
store_limits(const struct store_port *p)
{
	return p->limits;
}

uint32_t
store_shard(const char *key, size_t len)
{
	return (uint32_t)(crc64_nvme(0, key, len) >> 32);
}

bool
store_share(struct store_port *p, uint32_t shard)
{
	return p->ops->share ? p->ops->share(p, shard) : true;
}

int
store_lane(struct store_port *p, const struct store_key *k, bool changes)
{
	return p->ops->lane ? p->ops->lane(p, k, changes) : -1;
}

/* ---- objects ---- */

static int
look_up(struct store_port *p, const struct store_look *l, struct store_op *op)
{
	int r = key_check(&l->key);

	return r < 0 ? r : p->ops->look(p, l, op);
}

static int
open_it(struct store_port *p, const struct store_look *l, struct store_obj *obj)
{
	obj->is_open = obj->has_second = obj->mends_first = false;
	return look_up(p, l, &obj->op);
}

int
store_open(struct store_port *p, const struct store_key *k, struct store_obj *obj)
{
	const struct store_look l = { .kind = LOOK_OBJECT, .key = *k };

	return open_it(p, &l, obj);
}

int
store_open_to_read(struct store_port *p, const struct store_key *k, uint64_t want, struct store_obj *obj)
{
	const struct store_look l = { .kind = LOOK_OBJECT, .key = *k, .is_to_read = true, .want = want };

	return open_it(p, &l, obj);
}

int
store_open_second(struct store_port *p, const struct store_key *k, struct store_obj *obj)
{
	const struct store_look l = { .kind = LOOK_OBJECT, .key = *k, .is_second = true };

	return open_it(p, &l, obj);
}

int
store_open_part(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		uint32_t number, bool is_second, struct store_obj *obj)
{
	const struct store_look l = {
		.kind = LOOK_PART, .key = *k, .id = id, .number = number, .is_second = is_second
	};

	obj->is_open = false;
	return number < 1 || number > STORE_PART_NR_MAX ? -EINVAL : open_it(p, &l, obj);
}

void
store_close(struct store_port *p, struct store_obj *obj)
{
	if (obj && obj->is_open)
		obj->op.port->ops->close(obj->op.port, obj);
}

uint32_t
store_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap, uint32_t *ret_skew)
{
	return obj->op.port->ops->read_plan(obj, off, want, cap, ret_skew);
}

int
store_read(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf, uint64_t off,
	   uint32_t len)
{
	rd->lead = 0;
	rd->instead = NULL;
	return obj->op.port->ops->read(obj->op.port, obj, rd, buf, off, len);
}

bool
store_read_cancel(struct store_port *p, struct store_read *rd)
{
	p = rd->op.port;
	return p->ops->read_cancel && p->ops->read_cancel(p, rd);
}

void
store_asker(struct store_port *p, const void *asker)
{
	p->asker = asker;
}

void
store_give_up(struct store_port *p, const void *asker, uint64_t older_ns)
{
	if (p->ops->give_up)
		p->ops->give_up(p, asker, older_ns);
}

bool
store_write_cancel(struct store_port *p, struct store_write *w)
{
	p = w->op.port;
	return p->ops->write_cancel && p->ops->write_cancel(p, w);
}

static int
put_init(struct store_port *p, struct store_put *put, const struct store_put_spec *spec)
{
	int r = key_check(&spec->key);

	put->is_started = false;
	return r < 0 ? r : p->ops->put_init(p, put, spec);
}

int
store_put_init(struct store_port *p, struct store_put *put, const struct store_key *k, uint64_t size_bytes)
{
	const struct store_put_spec spec = { .key = *k, .size_bytes = size_bytes };

	return put_init(p, put, &spec);
}

int
store_put_write(struct store_port *p, struct store_put *put, struct store_write *w, struct buf *buf,
		uint32_t len, bool last)
{
	return put->op.port->ops->put_write(put->op.port, put, w, buf, len, last);
}

int
store_put_commit(struct store_port *p, struct store_put *put, const struct store_commit *c)
{
	if (c->meta.attrs_len > STORE_ATTRS_MAX || c->pre.etag_nr > STORE_PRE_ETAGS)
		return -EINVAL;
	return put->op.port->ops->put_commit(put->op.port, put, c);
}

void
store_put_abort(struct store_port *p, struct store_put *put)
{
	if (put && put->is_started)
		put->op.port->ops->put_abort(put->op.port, put);
}

static int
change_key(struct store_port *p, const struct store_change *c, struct store_op *op)
{
	int r = key_check(&c->key);

	return r < 0 ? r : p->ops->apply(p, c, op);
}

int
store_delete(struct store_port *p, const struct store_key *k, const struct store_pre *pre,
	     struct store_del *del)
{
	const struct store_change c = { .act = ACT_DELETE, .key = *k, .pre = pre };

	return change_key(p, &c, &del->op);
}

int
store_set_attrs(struct store_port *p, const struct store_key *k, uint64_t version, const void *attrs,
		uint32_t attrs_len, struct store_del *op)
{
	const struct store_change c = {
		.act = ACT_SET_ATTRS, .key = *k, .version = version, .attrs = attrs, .attrs_len = attrs_len
	};

	return attrs_len > STORE_ATTRS_MAX ? -EINVAL : change_key(p, &c, &op->op);
}

/* ---- multipart uploads ---- */

int
store_upload_create(struct store_port *p, const struct store_key *k, const void *attrs, uint32_t attrs_len,
		    struct store_upload *u)
{
	const struct store_change c = {
		.act = ACT_CREATE_UPLOAD, .key = *k, .attrs = attrs, .attrs_len = attrs_len
	};

	return attrs_len > STORE_ATTRS_MAX ? -EINVAL : change_key(p, &c, &u->op);
}

int
store_upload_abort(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		   struct store_upload *u)
{
	const struct store_change c = { .act = ACT_ABORT_UPLOAD, .key = *k, .id = id };

	return change_key(p, &c, &u->op);
}

int
store_upload_stat(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		  void *attrs, uint32_t cap, struct store_stat *st)
{
	const struct store_look l = { .kind = LOOK_UPLOAD, .key = *k, .id = id, .attrs = attrs, .cap = cap };

	return look_up(p, &l, &st->op);
}

int
store_put_init_part(struct store_port *p, struct store_put *put, const struct store_key *k,
		    const uint8_t id[STORE_UPLOAD_ID_BYTES], uint32_t number, uint64_t size_bytes)
{
	const struct store_put_spec spec = {
		.key = *k, .upload_id = id, .part_number = number, .size_bytes = size_bytes
	};

	put->is_started = false;
	return number < 1 || number > STORE_PART_NR_MAX ? -EINVAL : put_init(p, put, &spec);
}

int
store_upload_complete(struct store_port *p, const struct store_key *k,
		      const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_complete *c)
{
	const struct store_change change = { .act = ACT_COMPLETE, .key = *k, .id = id };

	return change_key(p, &change, &c->op);
}

int
store_list_parts(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		 struct store_part_list *pl)
{
	const struct store_look l = { .kind = LOOK_PARTS, .key = *k, .id = id };

	return look_up(p, &l, &pl->op);
}

int
store_obj_part(struct store_obj *obj, uint32_t number, struct store_part *ret_part)
{
	return obj->is_open ? obj->op.port->ops->obj_part(obj, number, true, ret_part) : -ENOENT;
}

int
store_obj_part_at(struct store_obj *obj, uint32_t index, struct store_part *ret_part)
{
	if (!obj->is_open || index >= obj->part_nr)
		return -ENOENT;
	return obj->op.port->ops->obj_part(obj, index, false, ret_part);
}

/* ---- buckets ---- */

/* Makes a change of a bucket. c: the change without the name. */
static int
change_bucket(struct store_port *p, const char *name, size_t len, struct store_change c, struct store_op *op)
{
	int r = bucket_check(name, len);

	c.key = (struct store_key){ .bucket = name, .bucket_len = (uint16_t)len };
	return r < 0 ? r : p->ops->apply(p, &c, op);
}

int
store_bucket_create_as(struct store_port *p, const char *name, size_t len,
		       const struct store_bucket_spec *spec, struct store_del *op)
{
	const struct store_change c = { .act = ACT_CREATE_BUCKET,
					.copies = spec->copies,
					.attrs = spec->attrs,
					.attrs_len = spec->attrs_len };

	if (spec->copies > STORE_COPIES_MAX || spec->attrs_len > STORE_BUCKET_ATTRS_MAX)
		return -EINVAL;
	return change_bucket(p, name, len, c, &op->op);
}

int
store_bucket_create(struct store_port *p, const char *name, size_t len, unsigned copies, struct store_del *op)
{
	const struct store_bucket_spec spec = { .copies = copies };

	return store_bucket_create_as(p, name, len, &spec, op);
}

int
store_bucket_delete(struct store_port *p, const char *name, size_t len, struct store_del *op)
{
	return change_bucket(p, name, len, (struct store_change){ .act = ACT_DELETE_BUCKET }, &op->op);
}

static int
look_bucket(struct store_port *p, enum store_look_kind kind, const char *name, size_t len, void *attrs,
	    uint32_t cap, struct store_stat *st)
{
	const struct store_look l = { .kind = kind,
				      .key = { .bucket = name, .bucket_len = (uint16_t)len },
				      .attrs = attrs,
				      .cap = cap };

	if (bucket_check(name, len) == 0)
		return p->ops->look(p, &l, &st->op);
	/* No bucket has such a name. */
	st->op.port = p;
	st->op.result = -ENXIO;
	return 1;
}

int
store_bucket_head(struct store_port *p, const char *name, size_t len, struct store_stat *st)
{
	return look_bucket(p, LOOK_BUCKET, name, len, NULL, 0, st);
}

bool
store_bucket_was_there(struct store_port *p, const char *name, size_t len)
{
	return p->ops->bucket_was_there && bucket_check(name, len) == 0 &&
	       p->ops->bucket_was_there(p, name, len);
}

int
store_bucket_set_attrs(struct store_port *p, const char *name, size_t len, uint64_t version,
		       const void *attrs, uint32_t attrs_len, struct store_bucket_set *op)
{
	const struct store_change c = {
		.act = ACT_SET_BUCKET_ATTRS, .version = version, .attrs = attrs, .attrs_len = attrs_len
	};

	return attrs_len > STORE_BUCKET_ATTRS_MAX ? -EINVAL : change_bucket(p, name, len, c, &op->op);
}

int
store_bucket_set_quota(struct store_port *p, const char *name, size_t len, const struct store_use *max,
		       struct store_bucket_set *op)
{
	const struct store_change c = { .act = ACT_SET_QUOTA, .max = max };

	return change_bucket(p, name, len, c, &op->op);
}

int
store_bucket_get_attrs(struct store_port *p, const char *name, size_t len, void *attrs, uint32_t cap,
		       struct store_stat *st)
{
	return look_bucket(p, LOOK_BUCKET_ATTRS, name, len, attrs, cap, st);
}

/* ---- lists ---- */

static int
list_check(const struct store_list *ls)
{
	if (ls->bucket_len > STORE_BUCKET_MAX || ls->prefix_len > STORE_KEY_MAX ||
	    ls->after_len > STORE_KEY_MAX)
		return -ENAMETOOLONG;
	return 0;
}

int
store_list(struct store_port *p, struct store_list *ls)
{
	int r = list_check(ls);

	ls->of_uploads = false;
	ls->now_ns = ls->shows_gone ? 0 : age_clock_ns();
	return r < 0 ? r : p->ops->list(p, ls);
}

int
store_list_uploads(struct store_port *p, struct store_list *ls)
{
	int r = ls->bucket ? list_check(ls) : -EINVAL;

	ls->of_uploads = true;
	return r < 0 ? r : p->ops->list(p, ls);
}
