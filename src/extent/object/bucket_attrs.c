/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of buckets: up to BATTRS_NR records behind the bucket's name, replaced together in one block,
 * and read where they lie in the index.  Those that are older than the bucket belong to an earlier one of its
 * name and are on their way out.  On the port's thread.
 */
#include "extent/object/object.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

struct battrs_int {
	struct store_bucket_set *set;
	uint8_t bucket_key[1 + STORE_BUCKET_MAX];
	uint8_t key[BATTRS_NR][1 + STORE_BUCKET_MAX + 2];
	uint8_t bound[USAGE_BOUND_BYTES];
	struct commit c[BATTRS_NR];
};
_Static_assert(sizeof(struct battrs_int) <= STORE_PRIV_BUCKET_SET, "STORE_PRIV_BUCKET_SET is too small");
_Static_assert(STORE_BUCKET_ATTRS_MAX <= BATTRS_NR * STORE_ATTRS_MAX, "the records hold them");

static void
on_done(struct commit *c)
{
	struct store_op *op = &container_of(c, struct battrs_int, c[0])->set->op;

	op->result = c->result;
	op->done(op);
}

void
battrs_view(struct rec_view *v, const void *attrs, uint32_t attrs_len, uint32_t i)
{
	uint32_t at = i * BATTRS_BYTES, left = at < attrs_len ? attrs_len - at : 0;

	v->op = left ? REC_PUT : REC_DELETE;
	if (!left)
		return;
	v->body = BODY_NONE;
	v->mtime_ns = clock_wall_ns();
	v->attrs = (const char *)attrs + at;
	v->attrs_len = left < BATTRS_BYTES ? left : BATTRS_BYTES;
}

int
extent_set_bucket_attrs(struct store_port *sp, const struct store_change *sc, struct store_op *op)
{
	struct store_bucket_set *set = container_of(op, struct store_bucket_set, op);
	struct extent_port *p = extent_port(sp);
	struct battrs_int *bi = (struct battrs_int *)set->priv;
	int bucket_len = key_bucket(bi->bucket_key, sc->key.bucket, sc->key.bucket_len);

	if (bucket_len < 0)
		return bucket_len;
	if (sc->attrs_len > BATTRS_NR * BATTRS_BYTES)
		return -EINVAL;
	if (disk_failed(&p->vp.vol->disk))
		return -EROFS;
	bi->set = set;
	for (uint32_t i = 0; i < BATTRS_NR; i++) {
		struct commit *c = &bi->c[i];
		*c = (struct commit){ .kind = COMMIT_BUCKET_ATTRS, .state = CS_DATA_DONE };
		c->also = i + 1 < BATTRS_NR ? &bi->c[i + 1] : NULL;
		c->is_also = i > 0;
		c->view.key = bi->key[i];
		c->view.key_len = (uint16_t)key_battrs(bi->key[i], bi->bucket_key, (size_t)bucket_len, i);
		battrs_view(&c->view, sc->attrs, sc->attrs_len, i);
	}
	bi->c[0].finished = on_done;
	bi->c[0].bucket_key = bi->bucket_key;
	bi->c[0].bucket_key_len = (uint16_t)bucket_len;
	bi->c[0].want_version = sc->version;
	commit_submit(&p->vp, &bi->c[0]);
	return 0;
}

int
extent_set_quota(struct store_port *sp, const struct store_change *sc, struct store_op *op)
{
	struct store_bucket_set *set = container_of(op, struct store_bucket_set, op);
	const struct store_use *max = sc->max;
	struct extent_port *p = extent_port(sp);
	struct battrs_int *bi = (struct battrs_int *)set->priv;
	struct commit *c = &bi->c[0];
	int bucket_len = key_bucket(bi->bucket_key, sc->key.bucket, sc->key.bucket_len);
	bool any = quota_is_bound(max);

	if (bucket_len < 0)
		return bucket_len;
	if (disk_failed(&p->vp.vol->disk))
		return -EROFS;
	bi->set = set;
	*c = (struct commit){ .kind = COMMIT_BUCKET_ATTRS,
			      .state = CS_DATA_DONE,
			      .finished = on_done,
			      .bucket_key = bi->bucket_key,
			      .bucket_key_len = (uint16_t)bucket_len,
			      .want_version = STORE_VERSION_ANY };
	c->view.key = bi->key[0];
	c->view.key_len = (uint16_t)key_battrs(bi->key[0], bi->bucket_key, (size_t)bucket_len, BATTRS_QUOTA);
	c->view.op = any ? REC_PUT : REC_DELETE;
	if (any) {
		usage_bound_pack(max, bi->bound);
		c->view.body = BODY_NONE;
		c->view.mtime_ns = clock_wall_ns();
		c->view.attrs = bi->bound;
		c->view.attrs_len = sizeof bi->bound;
	}
	commit_submit(&p->vp, c);
	return 0;
}

int
extent_bucket_get_attrs(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_stat *st = container_of(op, struct store_stat, op);
	struct extent_port *p = extent_port(sp);
	uint8_t bucket[1 + STORE_BUCKET_MAX], key[1 + STORE_BUCKET_MAX + 2];
	int bucket_len = key_bucket(bucket, l->key.bucket, l->key.bucket_len);
	uint32_t total = 0;
	const struct rec *b = NULL;
	const struct tree *t;
	struct tree_cursor c;
	size_t key_len;

	if (bucket_len < 0)
		return finish(op, -ENXIO);
	st->version = 0;
	st->max = usage_bound_of(NULL);
	t = p->vp.vol->tree;
	/* All of it in one state of the index. */
	tree_cursor_init(&c, t, tree_root(t));
	if (tree_seek(&c, bucket, (size_t)bucket_len, false) && c.key_len == bucket_len &&
	    memcmp(c.key, bucket, (size_t)bucket_len) == 0)
		b = c.rec;
	if (!b)
		return finish(op, -ENXIO);
	st->ctime_ns = b->mtime_ns;
	key_len = (size_t)key_battrs(key, bucket, (size_t)bucket_len, 0);
	for (bool there = tree_seek(&c, key, key_len, false); there; there = tree_next(&c)) {
		const struct rec *r = c.rec;

		if (c.key_len != key_len || memcmp(c.key, key, key_len - 1) != 0 ||
		    (uint8_t)c.key[key_len - 1] > '0' + BATTRS_QUOTA)
			break;
		if (!model_is_of(r->version, b->version))
			continue;
		if (c.key[key_len - 1] == '0' + BATTRS_QUOTA) {
			st->max = usage_bound_of(r);
			break;
		}
		if (c.key[key_len - 1] == '0')
			st->version = r->version;
		if (total < l->cap)
			memcpy((char *)l->attrs + total, rec_attrs(r),
			       r->attrs_len < l->cap - total ? r->attrs_len : l->cap - total);
		total += r->attrs_len;
	}
	st->attrs_len = total;
	return finish(op, 0);
}
