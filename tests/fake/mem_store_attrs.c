/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: attributes of objects and buckets, parts of objects, plans of reads.  See mem_store.c. */
#include "tests/fake/mem_store_int.h"

#include "base/check.h"
#include "base/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- other attributes ---- */

void *
mem_copy_of(const void *bytes, size_t len)
{
	char *copy = malloc(len + 1);

	check(copy);
	if (len)
		memcpy(copy, bytes, len);
	return copy;
}

struct version *
mem_version_copy(const struct version *old)
{
	struct version *v = mem_version_new(old->bucket, old->bucket_len, old->key, old->key_len);

	*v = *old;
	v->refs = 1;
	v->older = NULL;
	v->kept_in = NULL;
	v->is_counted = false;
	v->data = mem_copy_of(old->data, old->size_bytes);
	v->attrs = mem_copy_of(old->attrs, old->attrs_len);
	v->own_parts = old->part_nr > 0;
	if (old->part_nr)
		v->parts = mem_copy_of(old->parts, old->part_nr * sizeof *old->parts);
	for (uint32_t i = 0; i < v->part_nr; i++)
		v->parts[i].attrs = mem_copy_of(v->parts[i].attrs, v->parts[i].attrs_len);
	return v;
}

void
mem_set_attrs_work(struct mem_store *st, struct job *j)
{
	struct model_answer a;
	struct version *v;

	if (!mem_decide(st, j, (struct model_op){ .act = MODEL_SET_ATTRS, .version = j->c.version }, &a))
		return;
	v = mem_version_copy(mem_object(st, j->v));
	free(v->attrs);
	v->attrs = mem_copy_of(j->c.attrs, j->c.attrs_len);
	v->attrs_len = j->c.attrs_len;
	v->number = 0;
	mem_index_set(st, v);
	st->commits++;
}

void
mem_set_bucket_attrs_work(struct mem_store *st, struct job *j)
{
	const struct model_op op = { .act = MODEL_SET_BUCKET_ATTRS,
				     .version = j->c.version,
				     .removes = !j->c.attrs_len };
	struct version *b = mem_bucket(st, j->v);
	struct model_answer a;

	if (!mem_decide(st, j, op, &a))
		return;
	j->result = mem_quota_docs(st, b, j->c.attrs_len);
	if (j->result < 0)
		return;
	free(b->attrs);
	b->attrs = mem_copy_of(j->c.attrs, j->c.attrs_len);
	b->attrs_len = j->c.attrs_len;
	b->battrs_number = j->c.attrs_len ? ++st->number : 0;
}

void
mem_bucket_get_attrs_work(struct mem_store *st, struct job *j)
{
	struct store_stat *stat = container_of(j->op, struct store_stat, op);
	const struct version *b = mem_bucket(st, j->v);

	j->result = b ? 0 : -ENXIO;
	if (!b)
		return;
	stat->attrs_len = b->attrs_len;
	stat->ctime_ns = b->mtime_ns;
	stat->version = b->battrs_number;
	if (b->has_max)
		stat->max = b->max;
	if (b->attrs_len && j->len)
		memcpy(j->to, b->attrs, b->attrs_len < j->len ? b->attrs_len : j->len);
}

/* ---- parts of an object ---- */

static const struct version *
version_of(const struct store_obj *obj)
{
	const struct version *v;

	memcpy(&v, obj->priv, sizeof v);
	return v;
}

int
mem_obj_part(struct store_obj *obj, uint32_t nr, bool by_number, struct store_part *ret_part)
{
	for (uint32_t i = 0; i < obj->part_nr; i++) {
		const struct store_part *part = &version_of(obj)->parts[i];

		if (nr != (by_number ? part->number : i))
			continue;
		*ret_part = *part;
		return 0;
	}
	return -ENOENT;
}

/* Returns the begin and the end of the run of granules that holds byte off. */
static void
run_of(const struct store_obj *obj, uint64_t off, uint64_t *ret_begin, uint64_t *ret_end)
{
	const struct version *v = version_of(obj);

	*ret_begin = 0;
	*ret_end = v->size_bytes;
	for (uint32_t i = 0; i < v->part_nr; i++) {
		const struct store_part *part = &v->parts[i];

		if (off < part->off_bytes || off - part->off_bytes >= part->size_bytes)
			continue;
		*ret_begin = part->off_bytes;
		*ret_end = part->off_bytes + part->size_bytes;
		return;
	}
}

uint32_t
mem_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap, uint32_t *ret_skew)
{
	uint64_t begin, end, from, to;

	check(want > 0 && off <= obj->size_bytes && want <= obj->size_bytes - off && cap >= STORE_GRANULE);
	run_of(obj, off, &begin, &end);
	from = begin + (off - begin) / STORE_GRANULE * STORE_GRANULE;
	to = begin + (off + want - begin + STORE_GRANULE - 1) / STORE_GRANULE * STORE_GRANULE;
	to = to < end ? to : end;
	if (to - from > cap)
		to = from + cap / STORE_GRANULE * STORE_GRANULE;
	*ret_skew = (uint32_t)(off - from);
	return (uint32_t)(to - from);
}

bool
mem_range_ok(const struct store_obj *obj, uint64_t off, uint32_t len)
{
	uint64_t begin, end;

	if (len == 0 || off > obj->size_bytes || len > obj->size_bytes - off)
		return false;
	run_of(obj, off, &begin, &end);
	return (off - begin) % STORE_GRANULE == 0 && off + len <= end &&
	       (len % STORE_GRANULE == 0 || off + len == end);
}
