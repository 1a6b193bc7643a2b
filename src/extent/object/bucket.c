/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups of buckets, and of their attributes: up to BATTRS_NR records behind the bucket's name, which are read where they lie
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
