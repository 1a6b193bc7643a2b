/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes that consist of one step: deletes, other attributes, uploads made and aborted, buckets and their attributes. The
 * leader decides; here is only the hand-over. On the port's thread.
 */
#include "extent/object/object.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

/* The records of a bucket's attributes and of its quota that change together with another record. */
struct change_more {
	uint8_t key[BATTRS_NR + 1][1 + STORE_BUCKET_MAX + 2];
	struct commit c[BATTRS_NR + 1];
};

/* One change, in the private bytes of its operation. */
struct change_int {
	struct store_op *op;
	struct commit c;
	struct change_more *more; /* NULL: no other record changes */
	uint8_t bound[USE_BYTES];
	uint8_t key[KEY_BYTES_MAX];
};
_Static_assert(sizeof(struct change_int) <= STORE_PRIV_DEL, "STORE_PRIV_DEL is too small");
_Static_assert(sizeof(struct change_int) <= STORE_PRIV_UPLOAD, "STORE_PRIV_UPLOAD is too small");
_Static_assert(sizeof(struct change_int) <= STORE_PRIV_BUCKET_SET, "STORE_PRIV_BUCKET_SET is too small");
_Static_assert(STORE_BUCKET_ATTRS_MAX <= BATTRS_NR * STORE_ATTRS_MAX, "the records hold them");

#define PRIV(type) offsetof(struct type, priv)
/* The commit of each act, with the type of its key. */
static const struct change_row {
	enum commit_kind kind;
	enum rec_op op;
	enum key_type key;
	size_t priv; /* offset of the private bytes in the caller's operation */
} rows[] = {
	[ACT_DELETE] = { COMMIT_DELETE, REC_DELETE, KEY_OBJECT, PRIV(store_del) },
	[ACT_SET_ATTRS] = { COMMIT_ATTRS, REC_PUT, KEY_OBJECT, PRIV(store_del) },
	[ACT_CREATE_UPLOAD] = { COMMIT_UPLOAD_MAKE, REC_PUT, KEY_UPLOAD, PRIV(store_upload) },
	[ACT_ABORT_UPLOAD] = { COMMIT_UPLOAD_ABORT, REC_DELETE, KEY_UPLOAD, PRIV(store_upload) },
	[ACT_CREATE_BUCKET] = { COMMIT_BUCKET_MAKE, REC_PUT, KEY_BUCKET, PRIV(store_del) },
	[ACT_DELETE_BUCKET] = { COMMIT_BUCKET_REMOVE, REC_DELETE, KEY_BUCKET, PRIV(store_del) },
	[ACT_SET_BUCKET_ATTRS] = { COMMIT_BUCKET_ATTRS, REC_PUT, KEY_BATTRS, PRIV(store_bucket_set) },
	[ACT_SET_QUOTA] = { COMMIT_BUCKET_ATTRS, REC_PUT, KEY_BATTRS, PRIV(store_bucket_set) },
	[ACT_MAKE_BUCKET] = { COMMIT_BUCKET_MAKE, REC_PUT, KEY_BUCKET, PRIV(store_del) },
	[ACT_GATE_BUCKET] = { COMMIT_GATE_CLOSE, REC_DELETE, KEY_BUCKET, PRIV(store_del) },
	[ACT_SET_COPIES] = { COMMIT_BUCKET_COPIES, REC_PUT, KEY_BUCKET, PRIV(store_del) },
};

static void
on_done(struct commit *c)
{
	struct change_int *ci = container_of(c, struct change_int, c);
	struct store_op *op = ci->op;

	free(c->job);
	free(ci->more);
	op->result = c->result;
	op->done(op);
}

/* Writes the key of the change, whose names store.c has checked. */
static void
set_key(struct vol *vol, struct change_int *ci, const struct store_change *sc)
{
	struct store_upload *u = container_of(ci->op, struct store_upload, op);
	const struct store_key *k = &sc->key;
	int len;

	switch (rows[sc->act].key) {
	case KEY_OBJECT:
		len = key_object(ci->key, k);
		break;
	case KEY_UPLOAD:
		if (sc->act == ACT_CREATE_UPLOAD)
			extent_new_id(vol, u->id);
		len = key_upload(ci->key, k, sc->act == ACT_CREATE_UPLOAD ? u->id : sc->id);
		break;
	case KEY_BATTRS:
		len = key_battrs(ci->key, k->bucket, k->bucket_len,
				 sc->act == ACT_SET_QUOTA ? BATTRS_QUOTA : 0);
		break;
	default:
		len = key_bucket(ci->key, k->bucket, k->bucket_len);
		break;
	}
	ci->c.view.key = ci->key;
	ci->c.view.key_len = (uint16_t)len;
	check(len > 0);
}

/* Fills in record i of a bucket's attributes: a put of their part i, or a removal if they need fewer records. */
static void
attrs_view(struct rec_view *v, const struct store_change *sc, uint32_t i)
{
	uint32_t at = i * BATTRS_BYTES, left = at < sc->attrs_len ? sc->attrs_len - at : 0;

	v->op = left ? REC_PUT : REC_DELETE;
	if (!left)
		return;
	v->mtime_ns = clock_wall_ns();
	v->attrs = (const char *)sc->attrs + at;
	v->attrs_len = left < BATTRS_BYTES ? left : BATTRS_BYTES;
}

/* Adds the records of a bucket's attributes from `from` to `end` - 1 to the change. Returns 0 or -EAGAIN. */
static int
add_attrs(struct change_int *ci, const struct store_change *sc, enum commit_kind kind, uint32_t from,
	  uint32_t end)
{
	struct commit **link = &ci->c.also;

	check(end <= BATTRS_NR + 1 && sc->attrs_len <= STORE_BUCKET_ATTRS_MAX);
	ci->more = from < end ? calloc(1, sizeof *ci->more) : NULL;
	for (uint32_t i = from; ci->more && i < end; i++) {
		struct commit *a = &ci->more->c[i];
		uint8_t *key = ci->more->key[i];

		*a = (struct commit){ .kind = kind, .state = CS_DATA_DONE, .is_also = true, .view.key = key };
		a->view.key_len = (uint16_t)key_battrs(key, sc->key.bucket, sc->key.bucket_len, i);
		if (kind == COMMIT_BUCKET_ATTRS)
			attrs_view(&a->view, sc, i);
		*link = a;
		link = &a->also;
	}
	return from < end && !ci->more ? -EAGAIN : 0;
}

/* Prepares the commit of a bucket that is made. */
static int
make_bucket(struct change_int *ci, const struct store_change *sc)
{
	struct rec_view *v = &ci->c.view;
	uint32_t nr = (sc->attrs_len + BATTRS_BYTES - 1) / BATTRS_BYTES;
	bool is_only = sc->act == ACT_CREATE_BUCKET;

	/* A store of one engine is one disk. */
	if (is_only && sc->copies > 1)
		return -EDOM;
	v->copies = is_only ? 1 : (uint8_t)sc->copies;
	v->mtime_ns = is_only ? clock_wall_ns() : sc->ctime_ns;
	return add_attrs(ci, sc, COMMIT_BUCKET_ATTRS, 0, nr);
}

static void
set_quota(struct change_int *ci, const struct store_use *max)
{
	struct rec_view *v = &ci->c.view;

	ci->c.want_version = STORE_VERSION_ANY;
	v->op = quota_is_bound(max) ? REC_PUT : REC_DELETE;
	if (v->op == REC_DELETE)
		return;
	use_move((struct store_use *)max, ci->bound, true);
	v->mtime_ns = clock_wall_ns();
	v->attrs = ci->bound;
	v->attrs_len = sizeof ci->bound;
}

/* Sets the fields of the commit that only this act has. Returns 0 or -errno. */
static int
prepare(struct change_int *ci, const struct store_change *sc)
{
	struct commit *c = &ci->c;

	switch (sc->act) {
	case ACT_CREATE_UPLOAD:
		c->view.mtime_ns = clock_wall_ns();
		c->view.attrs = sc->attrs;
		c->view.attrs_len = sc->attrs_len;
		return 0;
	case ACT_ABORT_UPLOAD:
		c->job = gc_upload_job(sc->id, NULL, 0);
		return c->job ? 0 : -ENOSPC;
	case ACT_DELETE_BUCKET:
		c->job = gc_bucket_job(ci->key + 1, sc->key.bucket_len, 0);
		return c->job ? 0 : -ENOSPC;
	case ACT_CREATE_BUCKET:
	case ACT_MAKE_BUCKET:
		return make_bucket(ci, sc);
	case ACT_SET_BUCKET_ATTRS:
		attrs_view(&c->view, sc, 0);
		return add_attrs(ci, sc, c->kind, 1, BATTRS_NR);
	case ACT_SET_QUOTA:
		set_quota(ci, sc->max);
		return 0;
	case ACT_SET_COPIES:
		return add_attrs(ci, sc, c->kind, 0, BATTRS_NR + 1);
	case ACT_GATE_BUCKET:
		c->kind = sc->gate == GATE_OPEN ? COMMIT_GATE_OPEN : COMMIT_GATE_CLOSE;
		c->is_bare = sc->gate == GATE_CLOSE_BARE;
		return 0;
	default:
		return 0;
	}
}

int
extent_apply(struct store_port *sp, const struct store_change *sc, struct store_op *op)
{
	struct extent_port *p = extent_port(sp);
	const struct change_row *row = &rows[sc->act];
	struct change_int *ci = (struct change_int *)(void *)((char *)op + row->priv);
	int e;

	check(sc->act < sizeof rows / sizeof rows[0]);
	op->port = sp;
	op->result = 0;
	if (sc->act == ACT_COMPLETE)
		return extent_complete(sp, sc, op);
	ci->op = op;
	ci->more = NULL;
	ci->c = (struct commit){ .kind = row->kind,
				 .finished = on_done,
				 .state = CS_DATA_DONE,
				 .is_gated = sc->is_gated,
				 .copies = (uint8_t)sc->copies,
				 .want_version = sc->version,
				 .attrs = sc->attrs,
				 .attrs_len = sc->attrs_len,
				 .view = { .op = row->op, .body = BODY_NONE } };
	if (sc->pre)
		ci->c.pre = *sc->pre;
	set_key(p->vp.vol, ci, sc);
	e = disk_failed(&p->vp.vol->disk) ? -EROFS : prepare(ci, sc);
	if (e < 0)
		return e;
	commit_submit(&p->vp, &ci->c);
	return 0;
}
