/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups of buckets, and of their attributes: up to BATTRS_NR records whose keys begin with the bucket's, read where they lie
 * in the index. Records that are older than the bucket belong to an earlier bucket of its name, and are being removed. On the
 * port's thread.
 */
#include "extent/object/object.h"

#include <errno.h>
#include <string.h>

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

/* Returns the record of a key in the state of a cursor; NULL: there is none. */
static const struct rec *
find(struct tree_cursor *c, const uint8_t *key, int len)
{
	return tree_seek(c, key, (size_t)len, false) && c->key_len == len && tree_begins(c, key, (size_t)len)
		       ? c->rec
		       : NULL;
}

int
extent_bucket_get_attrs(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_stat *st = container_of(op, struct store_stat, op);
	const struct tree *t = extent_port(sp)->vp.vol->tree;
	uint8_t bucket[1 + STORE_BUCKET_MAX], key[1 + STORE_BUCKET_MAX + 2];
	int bucket_len = key_bucket(bucket, l->key.bucket, l->key.bucket_len);
	const struct rec *b, *r;
	struct tree_cursor c;

	/* All of it in one state of the index. */
	tree_cursor_init(&c, t, tree_root(t));
	b = bucket_len < 0 ? NULL : find(&c, bucket, bucket_len);
	if (!b)
		return finish(op, -ENXIO);
	st->ctime_ns = b->mtime_ns;
	st->version = st->attrs_len = 0;
	st->max = usage_bound_of(NULL);
	for (uint32_t i = 0; i <= BATTRS_QUOTA; i++) {
		r = find(&c, key, key_battrs(key, l->key.bucket, l->key.bucket_len, i));
		if (!r || !model_is_of(r->version, b->version))
			continue;
		if (i == BATTRS_QUOTA) {
			st->max = usage_bound_of(r);
			break;
		}
		if (i == 0)
			st->version = r->version;
		if (st->attrs_len < l->cap)
			memcpy((char *)l->attrs + st->attrs_len, rec_attrs(r),
			       r->attrs_len < l->cap - st->attrs_len ? r->attrs_len : l->cap - st->attrs_len);
		st->attrs_len += r->attrs_len;
	}
	return finish(op, 0);
}
