/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: uploads and their parts.  See mem_store.c. */
#include "tests/fake/mem_store_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#include "base/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- under the lock ---- */

/* Finds the link to an upload, or to the place that it would have. */
static struct mem_upload **
place(struct mem_store *st, struct mem_name n, const uint8_t *id)
{
	struct mem_upload **link = &st->uploads;

	for (; *link; link = &(*link)->next) {
		int c = mem_compare(MEM_NAME(*link), n);

		if (c > 0 || (c == 0 && memcmp((*link)->id, id, sizeof(*link)->id) >= 0))
			break;
	}
	return link;
}

struct mem_upload **
mem_upload_find(struct mem_store *st, const struct version *like, const uint8_t *id)
{
	struct mem_upload **link = place(st, MEM_NAME(like), id), *u = *link;

	return u && mem_compare(MEM_NAME(u), MEM_NAME(like)) == 0 && memcmp(u->id, id, sizeof u->id) == 0
		       ? link
		       : NULL;
}

void
mem_upload_drop(struct mem_store *st, struct mem_upload **link)
{
	struct mem_upload *u = *link;

	*link = u->next;
	for (unsigned i = 0; i <= u->part_top; i++)
		mem_removed(st, u->part[i]);
	free(u->attrs);
	free(u);
}

void
mem_upload_enter(struct mem_store *st, struct mem_upload *u)
{
	struct mem_upload **link = place(st, MEM_NAME(u), u->id);

	u->next = *link;
	*link = u;
}

void
mem_uploads_drop(struct mem_store *st, const char *bucket, size_t len)
{
	for (struct mem_upload **link = &st->uploads; *link;) {
		if (!bucket || ((*link)->bucket_len == len && memcmp((*link)->bucket, bucket, len) == 0))
			mem_upload_drop(st, link);
		else
			link = &(*link)->next;
	}
}

bool
mem_uploads_any(const struct mem_store *st, const char *bucket, size_t len)
{
	for (const struct mem_upload *u = st->uploads; u; u = u->next) {
		if (u->bucket_len == len && memcmp(u->bucket, bucket, len) == 0 &&
		    mem_owns(st, bucket, len, u->key, u->key_len))
			return true;
	}
	return false;
}

uint64_t
mem_upload_bytes(const struct mem_upload *u)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i <= u->part_top; i++)
		bytes += u->part[i] ? quota_part_bytes(u->part[i]->size_bytes) : 0;
	return bytes;
}

void
mem_part_set(struct mem_store *st, struct mem_upload *u, uint32_t number, struct version *v)
{
	mem_removed(st, u->part[number]);
	u->part[number] = v;
	u->part_top = v && number > u->part_top ? number : u->part_top;
	if (v)
		mem_number(st, v);
}

int
mem_upload_get(struct mem_store *st, const struct version *like, const uint8_t *id,
	       struct mem_upload **ret_upload)
{
	struct mem_upload **link = mem_upload_find(st, like, id);

	*ret_upload = link ? *link : NULL;
	return !mem_bucket(st, like) ? -ENXIO : link ? 0 : -ENOENT;
}

/* ---- begin, abort, stat ---- */

void
mem_create_upload_work(struct mem_store *st, struct job *j)
{
	struct store_upload *up = container_of(j->op, struct store_upload, op);
	struct mem_upload *u;
	const struct version *v = j->v;
	struct model_answer a;

	if (!mem_decide(st, j, (struct model_op){ .act = MODEL_CREATE_UPLOAD }, &a))
		return;
	u = calloc(1, sizeof *u);
	check(u);
	u->number = ++st->number;
	for (int i = 0; i < 8; i++)
		u->id[15 - i] = (uint8_t)(u->number >> 8 * i);
	memcpy(up->id, u->id, sizeof u->id);
	memcpy(u->bucket, v->bucket, u->bucket_len = v->bucket_len);
	memcpy(u->key, v->key, u->key_len = v->key_len);
	u->mtime_ns = clock_wall_ns();
	u->attrs_len = j->c.attrs_len;
	u->attrs = mem_copy_of(j->c.attrs, j->c.attrs_len);
	mem_upload_enter(st, u);
}

void
mem_abort_upload_work(struct mem_store *st, struct job *j)
{
	struct model_answer a;

	if (mem_decide(st, j, (struct model_op){ .act = MODEL_ABORT }, &a))
		mem_upload_drop(st, mem_upload_find(st, j->v, j->id));
}

void
mem_upload_stat_work(struct mem_store *st, struct job *j)
{
	struct store_stat *stat = container_of(j->op, struct store_stat, op);
	struct mem_upload *u;

	j->result = mem_upload_get(st, j->v, j->id, &u);
	if (j->result < 0)
		return;
	stat->ctime_ns = u->mtime_ns;
	stat->attrs_len = u->attrs_len;
	if (u->attrs_len && j->len)
		memcpy(j->to, u->attrs, u->attrs_len < j->len ? u->attrs_len : j->len);
}

/* ---- completion ---- */

/* Makes the object of its parts; copies their bytes and attributes, and frees the parts. */
static void
put_together(struct mem_store *st, struct mem_upload *u, struct store_complete *c, struct version *v)
{
	v->parts = calloc(c->part_nr, sizeof *v->parts);
	check(v->parts);
	v->part_nr = c->part_nr;
	v->own_parts = true;
	for (uint32_t i = 0; i < c->part_nr; i++)
		v->size_bytes += u->part[c->parts[i].number]->size_bytes;
	v->data = malloc(v->size_bytes + 1);
	check(v->data);
	v->size_bytes = 0;
	for (uint32_t i = 0; i < c->part_nr; i++) {
		struct version *part = u->part[c->parts[i].number];

		v->parts[i] = (struct store_part){ .number = c->parts[i].number,
						   .size_bytes = part->size_bytes,
						   .crc64 = part->crc64,
						   .mtime_ns = part->mtime_ns,
						   .version = part->number,
						   .off_bytes = v->size_bytes,
						   .etag = part->etag,
						   .attrs = mem_copy_of(part->attrs, part->attrs_len),
						   .attrs_len = part->attrs_len };
		memcpy(v->data + v->size_bytes, part->data, part->size_bytes);
		v->size_bytes += part->size_bytes;
		/* The bytes belong to the object: no reader keeps them in the quota. */
		mem_version_put(st, part);
		u->part[c->parts[i].number] = NULL;
	}
	v->crc64 = crc64_nvme(0, v->data, v->size_bytes);
}

void
mem_complete_work(struct mem_store *st, struct job *j)
{
	struct store_complete *c = container_of(j->op, struct store_complete, op);
	const struct model_op op = { .act = MODEL_COMPLETE, .pre = &c->pre, .complete = c, .adds_crc = true };
	struct version *v = j->v;
	struct model_answer a;
	bool changes = mem_decide(st, j, op, &a);

	c->bad = a.bad;
	if (j->result == -ENOENT && mem_was_done(mem_object(st, v), j->id, c))
		j->result = 0;
	if (!changes)
		return;
	put_together(st, *mem_upload_find(st, v, j->id), c, v);
	check(v->size_bytes == a.size_bytes && v->crc64 == a.crc64);
	memcpy(v->id, j->id, sizeof v->id);
	mem_take(v, &c->meta);
	c->etag = v->etag;
	c->mtime_ns = v->mtime_ns;
	v->attrs = mem_copy_of(c->meta.attrs, v->attrs_len);
	mem_upload_drop(st, mem_upload_find(st, v, j->id));
	v->refs++;
	mem_index_set(st, v);
	c->version = v->number;
	c->size_bytes = v->size_bytes;
	c->crc64 = v->crc64;
	st->commits++;
}

/* ---- listing ---- */

void
mem_list_parts_finish(struct mem_store *st, struct job *j)
{
	struct store_part_list *pl = container_of(j->op, struct store_part_list, op);
	uint32_t nr = 0, given = 0, top, *number;
	struct version **page;
	struct mem_upload *u;
	bool go_on = true;

	pthread_mutex_lock(&st->lock);
	pl->more = false;
	pl->op.result = mem_upload_get(st, j->v, j->id, &u);
	top = u ? u->part_top : 0;
	page = calloc(top + 1, sizeof(struct version *));
	number = calloc(top + 1, sizeof *number);
	check(page && number);
	for (uint32_t i = pl->after + 1; i <= top; i++) {
		if (!u->part[i])
			continue;
		number[nr] = i;
		page[nr] = u->part[i];
		page[nr++]->refs++;
	}
	pthread_mutex_unlock(&st->lock);
	for (; go_on && given < nr && given < pl->max; given++) {
		const struct version *v = page[given];
		struct store_part part = { .number = number[given],
					   .size_bytes = v->size_bytes,
					   .crc64 = v->crc64,
					   .mtime_ns = v->mtime_ns,
					   .version = v->number,
					   .etag = v->etag,
					   .attrs = v->attrs,
					   .attrs_len = v->attrs_len };

		go_on = pl->part(pl, &part);
	}
	if (pl->op.result == 0) {
		pl->more = given < nr;
		pl->op.result = (int)given;
	}
	pthread_mutex_lock(&st->lock);
	for (uint32_t i = 0; i < nr; i++)
		mem_version_put(st, page[i]);
	mem_version_put(st, j->v);
	pthread_mutex_unlock(&st->lock);
	free(page);
	free(number);
}

void
mem_no_work(struct mem_store *st, struct job *j)
{
}

static bool
is_listed(const struct mem_store *st, const struct store_list *ls, const struct mem_upload *u)
{
	int c;

	if (u->bucket_len != ls->bucket_len || memcmp(u->bucket, ls->bucket, ls->bucket_len) != 0 ||
	    u->key_len < ls->prefix_len ||
	    (ls->prefix_len && memcmp(u->key, ls->prefix, ls->prefix_len) != 0) ||
	    mem_is_skipped(ls, u->key, u->key_len) ||
	    !mem_is_shown(st, ls, u->bucket, u->bucket_len, u->key, u->key_len))
		return false;
	if (!ls->after || !ls->after_len)
		return true;
	c = memcmp(u->key, ls->after, u->key_len < ls->after_len ? u->key_len : ls->after_len);
	if (c == 0)
		c = (u->key_len > ls->after_len) - (u->key_len < ls->after_len);
	return c > 0 || (c == 0 && ls->after_id && memcmp(u->id, ls->after_id, sizeof u->id) > 0);
}

void
mem_uploads_finish(struct mem_store *st, struct job *j)
{
	struct store_list *ls = container_of(j->op, struct store_list, op);
	struct store_entry *page;
	uint32_t nr = 0, given = 0;
	uint8_t after_id[STORE_UPLOAD_ID_BYTES];
	char after[STORE_KEY_MAX];

	if (ls->after)
		memcpy(after, ls->after, ls->after_len);
	if (ls->after_id)
		memcpy(after_id, ls->after_id, sizeof after_id);
	pthread_mutex_lock(&st->lock);
	for (const struct mem_upload *u = st->uploads; u; u = u->next)
		nr++;
	page = calloc(nr + 1, sizeof *page);
	check(page);
	nr = 0;
	ls->op.result = mem_lookup(st, ls->bucket, ls->bucket_len, "", 0) ? 0 : -ENXIO;
	for (const struct mem_upload *u = st->uploads; u && ls->op.result == 0; u = u->next) {
		size_t common = mem_common_len(ls, u->key, u->key_len);

		if (!is_listed(st, ls, u))
			continue;
		if (common && nr && page[nr - 1].is_prefix && page[nr - 1].name_len == common &&
		    memcmp(page[nr - 1].name, u->key, common) == 0)
			continue;
		page[nr++] = (struct store_entry){ .name = u->key,
						   .name_len = common ? common : u->key_len,
						   .is_prefix = common > 0,
						   .mtime_ns = common ? 0 : u->mtime_ns,
						   .version = common ? 0 : u->number,
						   .upload_id = common ? NULL : u->id,
						   .attrs = common ? NULL : u->attrs,
						   .attrs_len = common ? 0 : u->attrs_len };
	}
	if (ls->op.result == 0) {
		/* Under the lock, because the entries refer to the uploads.
		 * The callback must not start anything. */
		for (bool go_on = true; go_on && given < nr && given < ls->max; given++)
			go_on = ls->entry(ls, &page[given]);
		/* The store may read the caller's bytes until the end. */
		check(!ls->after || memcmp(after, ls->after, ls->after_len) == 0);
		check(!ls->after_id || memcmp(after_id, ls->after_id, sizeof after_id) == 0);
		ls->more = given < nr;
		ls->op.result = (int)given;
	}
	pthread_mutex_unlock(&st->lock);
	free(page);
}
