/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes, other attributes, uploads made and aborted, and the records of buckets.  The leader decides; here is only the
 * hand-over.  On the port's thread.
 */
#include "extent/object/object.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One change, in the private bytes of its operation. */
struct change_int {
	struct store_op *op;
	struct commit c;
	uint8_t bucket_key[1 + STORE_BUCKET_MAX];
	uint8_t key[KEY_BYTES_MAX];
};
_Static_assert(sizeof(struct change_int) <= STORE_PRIV_DEL, "STORE_PRIV_DEL is too small");
_Static_assert(sizeof(struct change_int) <= STORE_PRIV_UPLOAD, "STORE_PRIV_UPLOAD is too small");

static void
on_done(struct commit *c)
{
	struct store_op *op = container_of(c, struct change_int, c)->op;

	free(c->job);
	op->result = c->result;
	op->done(op);
}

static struct change_int *
begin_in(struct store_op *op, unsigned char *priv, enum commit_kind kind)
{
	struct change_int *ci = (struct change_int *)priv;

	op->result = 0;
	ci->op = op;
	ci->c = (struct commit){ .kind = kind, .finished = on_done, .state = CS_DATA_DONE };
	return ci;
}

static struct change_int *
begin(struct store_op *op, enum commit_kind kind)
{
	return begin_in(op, container_of(op, struct store_del, op)->priv, kind);
}

static int
hand_over(struct extent_port *p, struct change_int *ci, int key_len)
{
	ci->c.view.key = ci->key;
	ci->c.view.key_len = (uint16_t)key_len;
	if (disk_failed(&p->vp.vol->disk)) {
		free(ci->c.job);
		return -EROFS;
	}
	commit_submit(&p->vp, &ci->c);
	return 0;
}

/* Hands over a change in a bucket. key_len: of ci->key, or the error of making it. */
static int
hand_over_in(struct extent_port *p, struct change_int *ci, const struct store_key *k, int key_len)
{
	if (key_len < 0)
		return key_len;
	ci->c.bucket_key = ci->bucket_key;
	ci->c.bucket_key_len = (uint16_t)key_bucket(ci->bucket_key, k->bucket, k->bucket_len);
	return hand_over(p, ci, key_len);
}

int
extent_delete(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct extent_port *p = extent_port(sp);
	struct change_int *ci = begin(op, COMMIT_DELETE);

	if (c->pre)
		ci->c.pre = *c->pre;
	ci->c.view.op = REC_DELETE;
	return hand_over_in(p, ci, &c->key, key_object(ci->key, &c->key));
}

int
extent_set_attrs(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct extent_port *p = extent_port(sp);
	struct change_int *ci = begin(op, COMMIT_ATTRS);

	ci->c.view.op = REC_PUT;
	ci->c.want_version = c->version;
	ci->c.attrs = c->attrs;
	ci->c.attrs_len = c->attrs_len;
	return hand_over_in(p, ci, &c->key, key_object(ci->key, &c->key));
}

int
extent_create_upload(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct store_upload *u = container_of(op, struct store_upload, op);
	struct extent_port *p = extent_port(sp);
	struct change_int *ci = begin_in(op, u->priv, COMMIT_UPLOAD_MAKE);

	extent_new_id(p->vp.vol, u->id);
	ci->c.view.op = REC_PUT;
	ci->c.view.body = BODY_NONE;
	ci->c.view.mtime_ns = clock_wall_ns();
	ci->c.view.attrs = c->attrs;
	ci->c.view.attrs_len = c->attrs_len;
	return hand_over_in(p, ci, &c->key, key_upload(ci->key, &c->key, u->id));
}

int
extent_abort_upload(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct store_upload *u = container_of(op, struct store_upload, op);
	struct extent_port *p = extent_port(sp);
	struct change_int *ci = begin_in(op, u->priv, COMMIT_UPLOAD_ABORT);
	int len = key_upload(ci->key, &c->key, c->id);

	ci->c.view.op = REC_DELETE;
	ci->c.job = len < 0 ? NULL : gc_upload_job(c->id, NULL, 0);
	return len < 0 || ci->c.job ? hand_over_in(p, ci, &c->key, len) : -ENOSPC;
}

/* The records that hang on the version of a bucket's: its attributes, and its bound. */
struct bucket_also {
	uint8_t key[BATTRS_NR + 1][1 + STORE_BUCKET_MAX + 2];
	struct commit c[BATTRS_NR + 1];
};

static void
on_bucket(struct commit *c)
{
	struct store_op *op = container_of(c, struct change_int, c)->op;

	if (c->also)
		free(container_of(c->also, struct bucket_also, c[0]));
	op->result = c->result;
	op->done(op);
}

/* also_nr: how many of the records that hang on the bucket go with it.  0, or -errno. */
static int
bucket_begin(struct extent_port *p, const struct store_change *sc, enum commit_kind kind, uint32_t also_nr,
	     struct store_op *op, struct commit **ret_c)
{
	struct change_int *ci = begin(op, kind);
	struct bucket_also *also = NULL;
	int len = key_bucket(ci->key, sc->key.bucket, sc->key.bucket_len);

	if (len >= 0 && disk_failed(&p->vp.vol->disk))
		len = -EROFS;
	if (len >= 0 && also_nr && !(also = calloc(1, sizeof *also)))
		len = -EAGAIN;
	if (len < 0)
		return len;
	ci->c.finished = on_bucket;
	ci->c.also = also ? also->c : NULL;
	ci->c.view = (struct rec_view){ .op = REC_PUT, .key = ci->key, .key_len = (uint16_t)len };
	for (uint32_t i = 0; i < also_nr; i++) {
		struct commit *a = &also->c[i];

		*a = (struct commit){ .kind = kind,
				      .state = CS_DATA_DONE,
				      .is_also = true,
				      .also = i + 1 < also_nr ? a + 1 : NULL };
		a->view.key = also->key[i];
		a->view.key_len = (uint16_t)key_battrs(also->key[i], ci->key, (size_t)len, i);
	}
	*ret_c = &ci->c;
	return 0;
}

int
extent_make_bucket(struct store_port *sp, const struct store_change *sc, struct store_op *op)
{
	struct extent_port *p = extent_port(sp);
	uint32_t also_nr = (sc->attrs_len + BATTRS_BYTES - 1) / BATTRS_BYTES, i = 0;
	struct commit *c;
	int e = also_nr > BATTRS_NR ? -EINVAL : bucket_begin(p, sc, COMMIT_BUCKET_MAKE, also_nr, op, &c);

	if (e < 0)
		return e;
	c->view.body = BODY_NONE;
	c->view.copies = (uint8_t)sc->copies;
	c->view.mtime_ns = sc->ctime_ns;
	c->is_gated = sc->is_gated;
	for (struct commit *a = c->also; a; a = a->also) {
		a->kind = COMMIT_BUCKET_ATTRS;
		battrs_view(&a->view, sc->attrs, sc->attrs_len, i++);
	}
	commit_submit(&p->vp, c);
	return 0;
}

int
extent_create_bucket(struct store_port *sp, const struct store_change *sc, struct store_op *op)
{
	struct store_change one = *sc;

	one.copies = 1;
	one.ctime_ns = clock_wall_ns();
	/* A store of one engine is one disk. */
	return sc->copies > 1 ? -EDOM : extent_make_bucket(sp, &one, op);
}

int
extent_set_copies(struct store_port *sp, const struct store_change *sc, struct store_op *op)
{
	struct extent_port *p = extent_port(sp);
	struct commit *c;
	int e = bucket_begin(p, sc, COMMIT_BUCKET_COPIES, BATTRS_NR + 1, op, &c);

	if (e < 0)
		return e;
	c->copies = (uint8_t)sc->copies;
	commit_submit(&p->vp, c);
	return 0;
}

int
extent_gate_bucket(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct extent_port *p = extent_port(sp);
	struct change_int *ci = begin(op, c->gate == GATE_OPEN ? COMMIT_GATE_OPEN : COMMIT_GATE_CLOSE);
	int len = key_bucket(ci->key, c->key.bucket, c->key.bucket_len);

	if (len < 0)
		return len;
	ci->c.is_bare = c->gate == GATE_CLOSE_BARE;
	ci->c.view.op = REC_DELETE;
	return hand_over(p, ci, len);
}

int
extent_delete_bucket(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct extent_port *p = extent_port(sp);
	struct change_int *ci = begin(op, COMMIT_BUCKET_REMOVE);
	int len = key_bucket(ci->key, c->key.bucket, c->key.bucket_len);

	if (len < 0)
		return len;
	ci->c.view.op = REC_DELETE;
	ci->c.job = gc_bucket_job(ci->key + 1, c->key.bucket_len);
	if (!ci->c.job)
		return -ENOSPC;
	return hand_over(p, ci, len);
}

const struct rec *
bucket_find(struct extent_port *p, const char *name, size_t len)
{
	uint8_t key[1 + STORE_BUCKET_MAX];
	int key_len = key_bucket(key, name, len);

	return key_len < 0 ? NULL : tree_get(p->vp.vol->tree, key, (size_t)key_len);
}

int
extent_bucket_head(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_stat *st = container_of(op, struct store_stat, op);
	struct extent_port *p = extent_port(sp);
	const struct rec *r = bucket_find(p, l->key.bucket, l->key.bucket_len);

	if (!r)
		return finish(op, -ENXIO);
	st->ctime_ns = r->mtime_ns;
	st->copies = rec_copies(r);
	quota_fill_stat(p->vp.vol->quotas, l->key.bucket, l->key.bucket_len, st);
	return finish(op, 0);
}
