/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: opening, reading, listing.  See mem_store.c. */
#include "tests/fake/mem_store_int.h"

#include "base/age_clock.h"
#include "base/check.h"
#include "base/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct obj_state {
	struct version *v;
	uint32_t reads;
};

/* ---- open, read ---- */

static struct obj_state *
obj_state(struct store_obj *obj)
{
	return (struct obj_state *)obj->priv;
}

void
mem_open_work(struct mem_store *st, struct job *j)
{
	struct version *want = j->v, *v = mem_object(st, want);

	if (!mem_is_there(v, age_clock_ns()))
		v = NULL;
	j->result = v ? 0 : mem_bucket(st, want) ? -ENOENT : -ENXIO;
	if (!v)
		return;
	mem_version_put(st, want);
	j->v = v;
	v->refs++;
	st->open_nr++;
}

void
mem_open_part_work(struct mem_store *st, struct job *j)
{
	struct version *want = j->v, *v;
	struct mem_upload *u;

	j->result = mem_upload_get(st, want, j->id, &u);
	v = j->result == 0 ? u->part[j->len] : NULL;
	if (!v) {
		j->result = j->result < 0 ? j->result : -ENOENT;
		return;
	}
	mem_version_put(st, want);
	j->v = v;
	v->refs++;
	st->open_nr++;
}

void
mem_open_finish(struct mem_store *st, struct job *j)
{
	struct store_obj *obj = container_of(j->op, struct store_obj, op);

	if (j->result < 0) /* the name */
		free(j->v);
	else
		mem_open_version(st, obj, j->v);
}

void
mem_open_version(struct mem_store *st, struct store_obj *obj, struct version *v)
{
	*obj_state(obj) = (struct obj_state){ 0 };
	obj_state(obj)->v = v;
	obj->size_bytes = v->size_bytes;
	obj->version = v->number;
	obj->crc64 = v->crc64;
	obj->meta = mem_meta(v);
	obj->part_nr = v->part_nr;
	obj->is_open = true;
}

void
mem_close(struct store_port *sp, struct store_obj *obj)
{
	struct mem_port *p = mem_port(sp);
	mem_on_port(p);
	if (!obj || !obj->is_open)
		return;
	check(obj_state(obj)->reads == 0);
	pthread_mutex_lock(&p->st->lock);
	mem_version_put(p->st, obj_state(obj)->v);
	p->st->open_nr--;
	pthread_mutex_unlock(&p->st->lock);
	obj->is_open = false;
}

static void
read_work(struct mem_store *st, struct job *j)
{
	struct store_read *rd = container_of(j->op, struct store_read, op);
	struct version *v = j->v;

	/* Small objects lie at any place of a page. */
	if (v->size_bytes <= STORE_GRANULE / 8 && !v->is_carried)
		rd->lead = 64 * (1 + (uint32_t)(v->number % 63));
	memset(j->buf->mem, 0x5a, rd->lead);
	memcpy(j->buf->mem + rd->lead, v->data + j->off, j->len);
	mem_spoil_slack(j->buf, rd->lead + j->len);
	j->result = (int)j->len;
	st->info.read_ops++;
	st->info.read_bytes += j->len;
	if (v->bad_granule >= j->off / STORE_GRANULE &&
	    v->bad_granule <= (j->off + j->len - 1) / STORE_GRANULE) {
		st->crc_errors++;
		j->result = -EBADMSG;
	}
}

static void
read_finish(struct mem_store *st, struct job *j)
{
	struct store_read *rd = container_of(j->op, struct store_read, op);
	struct store_obj *obj;

	memcpy(&obj, rd->priv, sizeof obj);
	obj_state(obj)->reads--;
}

int
mem_read(struct store_port *sp, struct store_obj *obj, struct store_read *rd, struct buf *buf, uint64_t off,
	 uint32_t len)
{
	struct mem_port *p = mem_port(sp);
	struct job *j;

	check(obj->is_open);
	check(len <= buf->cap_bytes && len <= p->st->limits.read_bytes);
	if (!mem_range_ok(obj, off, len))
		return -EINVAL;
	j = mem_job_new(p, &rd->op, MEM_READ, read_work);
	j->finish = read_finish;
	j->v = obj_state(obj)->v;
	j->buf = buf;
	j->off = off;
	j->len = len;
	memcpy(rd->priv, &obj, sizeof obj);
	obj_state(obj)->reads++;
	return mem_job_start(j);
}

/* ---- listing ---- */

static void
list_work(struct mem_store *st, struct job *j)
{
	struct store_list *ls = container_of(j->op, struct store_list, op);

	j->result = ls->bucket && !mem_lookup(st, ls->bucket, ls->bucket_len, "", 0) ? -ENXIO : 0;
}

/* Returns true if the list has v, after `after`. */
static bool
listed(const struct mem_store *st, const struct store_list *ls, const struct version *v)
{
	const char *name = ls->bucket ? v->key : v->bucket;
	size_t len = ls->bucket ? v->key_len : v->bucket_len;
	int c;

	if (ls->bucket ? !v->key_len || v->bucket_len != ls->bucket_len ||
				 memcmp(v->bucket, ls->bucket, ls->bucket_len) != 0
		       : v->key_len != 0)
		return false;
	if (len < ls->prefix_len || (ls->prefix_len && memcmp(name, ls->prefix, ls->prefix_len) != 0))
		return false;
	if (ls->bucket && !mem_is_there(v, ls->now_ns))
		return false;
	if (ls->bucket && !mem_is_shown(st, ls, v->bucket, v->bucket_len, v->key, v->key_len))
		return false;
	if (!ls->after)
		return true;
	c = memcmp(name, ls->after, len < ls->after_len ? len : ls->after_len);
	return c ? c > 0 : len > ls->after_len;
}

size_t
mem_common_len(const struct store_list *ls, const char *name, size_t len)
{
	const char *at = NULL;

	if (ls->delimiter_len && len >= ls->prefix_len)
		at = memmem(name + ls->prefix_len, len - ls->prefix_len, ls->delimiter, ls->delimiter_len);
	return at ? (size_t)(at - name) + ls->delimiter_len : 0;
}

bool
mem_is_skipped(const struct store_list *ls, const char *name, size_t len)
{
	return ls->after && ls->after_len >= ls->prefix_len && len >= ls->after_len &&
	       mem_common_len(ls, ls->after, ls->after_len) == ls->after_len && ls->after_len &&
	       memcmp(name, ls->after, ls->after_len) == 0 &&
	       (!ls->prefix_len || memcmp(ls->after, ls->prefix, ls->prefix_len) == 0);
}

static void
list_finish(struct mem_store *st, struct job *j)
{
	struct store_list *ls = container_of(j->op, struct store_list, op);
	struct version **page;
	size_t nr = 0, given = 0, at = 0;
	char after[STORE_KEY_MAX];
	bool go_on = true;

	if (j->result < 0)
		return;
	if (ls->after)
		memcpy(after, ls->after, ls->after_len);
	pthread_mutex_lock(&st->lock);
	page = calloc(st->nr + 1, sizeof(struct version *));
	check(page);
	for (size_t i = 0; i < st->nr; i++) {
		struct version *v = st->index[i];
		const char *name = ls->bucket ? v->key : v->bucket;

		if (listed(st, ls, v) && !mem_is_skipped(ls, name, ls->bucket ? v->key_len : v->bucket_len)) {
			st->index[i]->refs++;
			page[nr++] = st->index[i];
		}
	}
	pthread_mutex_unlock(&st->lock);
	while (go_on && at < nr && given < ls->max) {
		const struct version *v = page[at++];
		size_t common = mem_common_len(ls, v->key, ls->bucket ? v->key_len : 0);
		struct store_entry e = {
			.name = ls->bucket ? v->key : v->bucket,
			.name_len = ls->bucket ? v->key_len : v->bucket_len,
			.size_bytes = v->size_bytes,
			.mtime_ns = v->mtime_ns,
			.version = v->number,
			.etag = v->etag,
			.attrs = v->attrs,
			.attrs_len = v->attrs_len,
			.copies = (uint8_t)v->copies,
#define FIELD(name, type, kinds, places)
#define BYTES(name, type, len, len_type, max, kinds, places)
#define SHOWN 0
#define HERE(name, type, at) .name = v->name,
#include "model/record.def"
		};

		given++;
		if (common) {
			e = (struct store_entry){ .name = v->key, .name_len = common, .is_prefix = true };
			while (at < nr && page[at]->key_len >= common &&
			       memcmp(page[at]->key, v->key, common) == 0)
				at++;
		}
		go_on = ls->entry(ls, &e);
		/* The store may read the caller's bytes until the end. */
		check(!ls->after || memcmp(after, ls->after, ls->after_len) == 0);
	}
	ls->more = at < nr;
	ls->op.result = (int)given;
	pthread_mutex_lock(&st->lock);
	for (size_t i = 0; i < nr; i++)
		mem_version_put(st, page[i]);
	pthread_mutex_unlock(&st->lock);
	free(page);
}

int
mem_list(struct store_port *sp, struct store_list *ls)
{
	struct job *j =
		mem_job_new(mem_port(sp), &ls->op, MEM_LIST, ls->of_uploads ? mem_no_work : list_work);

	ls->more = false;
	j->finish = ls->of_uploads ? mem_uploads_finish : list_finish;
	return mem_job_start(j);
}
