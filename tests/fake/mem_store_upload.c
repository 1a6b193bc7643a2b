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

static int
compare(const struct mem_upload *u, const char *bucket, size_t bucket_len, const char *key, size_t key_len,
	const uint8_t *id)
{
	int c = memcmp(u->bucket, bucket, u->bucket_len < bucket_len ? u->bucket_len : bucket_len);

	if (c || u->bucket_len != bucket_len)
		return c ? c : u->bucket_len < bucket_len ? -1 : 1;
	c = memcmp(u->key, key, u->key_len < key_len ? u->key_len : key_len);
	if (c || u->key_len != key_len)
		return c ? c : u->key_len < key_len ? -1 : 1;
	return memcmp(u->id, id, sizeof u->id);
}

/* The link to it, or to where it would be. */
static struct mem_upload **
place(struct mem_store *st, const char *bucket, size_t bucket_len, const char *key, size_t key_len,
      const uint8_t *id)
{
	struct mem_upload **link = &st->uploads;

	while (*link && compare(*link, bucket, bucket_len, key, key_len, id) < 0)
		link = &(*link)->next;
	return link;
}

struct mem_upload **
mem_upload_find(struct mem_store *st, const struct version *like, const uint8_t *id)
{
	struct mem_upload **link = place(st, like->bucket, like->bucket_len, like->key, like->key_len, id);

	return *link && compare(*link, like->bucket, like->bucket_len, like->key, like->key_len, id) == 0
		       ? link
		       : NULL;
}

void
mem_upload_drop(struct mem_store *st, struct mem_upload **link)
{
	struct mem_upload *u = *link;

	*link = u->next;
	for (unsigned i = 0; i <= STORE_PART_NR_MAX; i++)
		mem_removed(st, u->part[i]);
	free(u->attrs);
	free(u);
}

void
mem_upload_enter(struct mem_store *st, struct mem_upload *u)
{
	struct mem_upload **link = place(st, u->bucket, u->bucket_len, u->key, u->key_len, u->id);

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

	for (unsigned i = 0; i <= STORE_PART_NR_MAX; i++)
		bytes += u->part[i] ? quota_part_bytes(u->part[i]->size_bytes) : 0;
	return bytes;
}

struct version *
mem_upload_part(struct mem_store *st, const struct version *like, const uint8_t *id, uint32_t number)
{
	return (*mem_upload_find(st, like, id))->part[number];
}

int
mem_part_commit(struct mem_store *st, struct version *v, const uint8_t *id, uint32_t number)
{
	struct mem_upload **link = mem_upload_find(st, v, id);

	if (mem_bucket_judge(st, v) < 0)
		return mem_bucket_judge(st, v);
	if (!link)
		return -ENOENT;
	mem_removed(st, (*link)->part[number]);
	(*link)->part[number] = v;
	mem_number(st, v);
	return 0;
}

int
mem_upload_exists(struct mem_store *st, const struct version *like, const uint8_t *id)
{
	return !mem_bucket_exists(st, like) ? -ENXIO : mem_upload_find(st, like, id) ? 0 : -ENOENT;
}

/* ---- begin, abort, stat ---- */

static void
free_v(struct mem_store *st, struct job *j)
{
	pthread_mutex_lock(&st->lock);
	mem_version_put(st, j->v);
	pthread_mutex_unlock(&st->lock);
}

static void
create_work(struct mem_store *st, struct job *j)
{
	struct store_upload *up = container_of(j->op, struct store_upload, op);
	struct mem_upload *u;
	const struct version *v = j->v;

	j->result = mem_bucket_judge(st, v);
	if (j->result < 0)
		return;
	j->result = mem_quota_change(st, v, &(struct quota_change){ .uploads = 1 });
	if (j->result < 0)
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
	u->attrs_len = j->len;
	u->attrs = malloc(j->len + 1);
	check(u->attrs);
	if (j->len)
		memcpy(u->attrs, j->attrs, j->len);
	mem_upload_enter(st, u);
	j->result = 0;
}

static struct job *
upload_job(struct mem_port *p, const struct store_key *k, struct store_op *op, const uint8_t *id,
	   enum mem_fault kind, void (*work)(struct mem_store *, struct job *))
{
	struct job *j = mem_job_new(p, op, kind, work);

	j->finish = free_v;
	j->v = mem_version_new(k->bucket, k->bucket_len, k->key, k->key_len);
	j->of = kind == MEM_LIST ? NULL : j->v;
	j->has_two = store_has_two(k);
	if (id)
		memcpy(j->id, id, sizeof j->id);
	return j;
}

int
mem_upload_create(struct store_port *sp, const struct store_key *k, const void *attrs, uint32_t attrs_len,
		  struct store_upload *u)
{
	struct mem_port *p = mem_port(sp);
	int r = mem_key_check(k);
	struct job *j;

	if (r < 0)
		return r;
	if (attrs_len > STORE_ATTRS_MAX)
		return -EINVAL;
	j = upload_job(p, k, &u->op, NULL, MEM_COMMIT, create_work);
	j->attrs = attrs;
	j->len = attrs_len;
	return mem_job_start(j);
}

static void
abort_work(struct mem_store *st, struct job *j)
{
	struct quota_change less = { .uploads = -1 };

	j->result = mem_upload_exists(st, j->v, j->id);
	if (j->result < 0)
		return;
	less.bytes = -(int64_t)mem_upload_bytes(*mem_upload_find(st, j->v, j->id));
	check(mem_quota_change(st, j->v, &less) == 0);
	mem_upload_drop(st, mem_upload_find(st, j->v, j->id));
}

int
mem_upload_abort(struct store_port *sp, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		 struct store_upload *u)
{
	struct mem_port *p = mem_port(sp);
	int r = mem_key_check(k);

	return r < 0 ? r : mem_job_start(upload_job(p, k, &u->op, id, MEM_DELETE, abort_work));
}

static void
stat_work(struct mem_store *st, struct job *j)
{
	struct store_stat *stat = container_of(j->op, struct store_stat, op);
	const struct mem_upload *u;

	j->result = mem_upload_exists(st, j->v, j->id);
	if (j->result < 0)
		return;
	u = *mem_upload_find(st, j->v, j->id);
	stat->ctime_ns = u->mtime_ns;
	stat->attrs_len = u->attrs_len;
	if (u->attrs_len && j->len)
		memcpy(j->to, u->attrs, u->attrs_len < j->len ? u->attrs_len : j->len);
}

int
mem_upload_stat(struct store_port *sp, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		void *attrs, uint32_t cap, struct store_stat *stat)
{
	struct version *v = mem_version_new(k->bucket, k->bucket_len, k->key, k->key_len);

	return mem_stat_start(mem_port(sp), stat, v, id, attrs, cap, stat_work);
}

/* ---- completion ---- */

static bool
same_etag(const struct store_etag *a, const struct store_etag *b)
{
	return a->parts == b->parts && memcmp(a->sum, b->sum, sizeof a->sum) == 0;
}

/* The object that the same list made before? */
static bool
was_done(struct mem_store *st, struct job *j, struct store_complete *c)
{
	struct version *v = mem_lookup(st, j->v->bucket, j->v->bucket_len, j->v->key, j->v->key_len);

	if (!v || v->part_nr != c->part_nr || memcmp(v->id, j->id, sizeof v->id) != 0)
		return false;
	for (uint32_t i = 0; i < c->part_nr; i++) {
		if (v->parts[i].number != c->parts[i].number ||
		    !same_etag(&v->parts[i].etag, &c->parts[i].etag))
			return false;
	}
	c->version = v->number;
	c->size_bytes = v->size_bytes;
	c->crc64 = v->crc64;
	c->mtime_ns = v->mtime_ns;
	c->etag = v->etag;
	return c->was_done = true;
}

static int
check_parts(struct mem_upload *u, struct store_complete *c)
{
	for (uint32_t i = 0; i < c->part_nr; i++) {
		const struct store_part_ref *ref = &c->parts[i];
		const struct version *part = u->part[ref->number];

		c->bad = i;
		if (!part || !same_etag(&part->etag, &ref->etag) ||
		    (ref->version && ref->version != part->number))
			return -EBADR;
		if (i + 1 < c->part_nr && part->size_bytes < c->part_min_bytes)
			return -EMSGSIZE;
	}
	c->bad = 0;
	return 0;
}

/* The object's bytes are copied here: only the real store need not. */
static void
put_together(struct mem_upload *u, struct store_complete *c, struct version *v)
{
	v->parts = calloc(c->part_nr, sizeof *v->parts);
	check(v->parts);
	v->part_nr = c->part_nr;
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
						   .attrs = part->attrs,
						   .attrs_len = part->attrs_len };
		if (part->size_bytes)
			memcpy(v->data + v->size_bytes, part->data, part->size_bytes);
		v->size_bytes += part->size_bytes;
	}
	v->crc64 = crc64_nvme(0, v->data, v->size_bytes);
}

static void
complete_work(struct mem_store *st, struct job *j)
{
	struct store_complete *c = container_of(j->op, struct store_complete, op);
	struct version *v = j->v;
	struct mem_upload *u;

	j->result = mem_upload_exists(st, v, j->id);
	if (j->result == -ENOENT && was_done(st, j, c)) {
		j->result = 0;
		return;
	}
	if (j->result == 0)
		j->result = mem_judge(st, v, &c->pre);
	if (j->result < 0)
		return;
	u = *mem_upload_find(st, v, j->id);
	j->result = check_parts(u, c);
	if (j->result < 0)
		return;
	put_together(u, c, v);
	if (c->have_expect_size && c->expect_size_bytes != v->size_bytes)
		j->result = -ERANGE;
	else if (c->have_expect_crc64 && c->expect_crc64 != v->crc64)
		j->result = -EILSEQ;
	if (j->result == 0) {
		const struct version *old = mem_lookup(st, v->bucket, v->bucket_len, v->key, v->key_len);

		j->result = mem_quota_change(
			st, v,
			&(struct quota_change){ .objects = !old,
						.bytes = (int64_t)(v->size_bytes - mem_upload_bytes(u) -
								   (old ? old->size_bytes : 0)),
						.uploads = -1 });
	}
	if (j->result < 0)
		return;
	/* Attributes of parts live as long as the object. */
	for (uint32_t i = 0; i < c->part_nr; i++) {
		void *copy = malloc(v->parts[i].attrs_len + 1);

		check(copy);
		if (v->parts[i].attrs_len)
			memcpy(copy, v->parts[i].attrs, v->parts[i].attrs_len);
		v->parts[i].attrs = copy;
	}
	v->own_parts = true;
	memcpy(v->id, j->id, sizeof v->id);
	v->etag = c->etag = c->meta.etag;
	v->mtime_ns = c->mtime_ns = c->meta.mtime_ns ? c->meta.mtime_ns : clock_wall_ns();
	v->attrs_len = c->meta.attrs_len;
	v->attrs = malloc(v->attrs_len + 1);
	check(v->attrs);
	if (v->attrs_len)
		memcpy(v->attrs, c->meta.attrs, v->attrs_len);
	/* Its bytes live on. */
	for (uint32_t i = 0; i < c->part_nr; i++) {
		mem_version_put(st, u->part[c->parts[i].number]);
		u->part[c->parts[i].number] = NULL;
	}
	mem_upload_drop(st, mem_upload_find(st, v, j->id));
	v->refs++;
	mem_index_set(st, v);
	c->version = v->number;
	c->size_bytes = v->size_bytes;
	c->crc64 = v->crc64;
	st->commits++;
}

int
mem_upload_complete(struct store_port *sp, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		    struct store_complete *c)
{
	struct mem_port *p = mem_port(sp);
	int r = mem_key_check(k);

	if (r < 0)
		return r;
	c->was_done = false;
	c->version = c->size_bytes = c->crc64 = 0;
	for (uint32_t i = 0; i < c->part_nr; i++) {
		c->bad = i;
		if (c->parts[i].number < 1 || c->parts[i].number > STORE_PART_NR_MAX ||
		    (i && c->parts[i].number <= c->parts[i - 1].number))
			r = -EINVAL;
		if (r < 0)
			break;
	}
	if (r < 0 || !c->part_nr || c->part_nr > STORE_PART_NR_MAX || c->meta.attrs_len > STORE_ATTRS_MAX) {
		c->op.port = &p->base;
		c->op.result = -EINVAL;
		return 1;
	}
	c->bad = 0;
	return mem_job_start(upload_job(p, k, &c->op, id, MEM_COMMIT, complete_work));
}

/* ---- listing ---- */

static void
parts_finish(struct mem_store *st, struct job *j)
{
	struct store_part_list *pl = container_of(j->op, struct store_part_list, op);
	struct version **page = calloc(STORE_PART_NR_MAX, sizeof(struct version *));
	uint32_t *number = calloc(STORE_PART_NR_MAX, sizeof *number), nr = 0, given = 0;
	struct mem_upload **link;
	bool go_on = true;

	check(page && number);
	pthread_mutex_lock(&st->lock);
	link = mem_upload_find(st, j->v, j->id);
	pl->op.result = mem_upload_exists(st, j->v, j->id);
	for (uint32_t i = pl->after + 1; link && i <= STORE_PART_NR_MAX; i++) {
		if (!(*link)->part[i])
			continue;
		number[nr] = i;
		page[nr] = (*link)->part[i];
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

static void
nothing(struct mem_store *st, struct job *j)
{
}

int
mem_list_parts(struct store_port *sp, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
	       struct store_part_list *pl)
{
	struct mem_port *p = mem_port(sp);
	int r = mem_key_check(k);
	struct job *j;

	if (r < 0)
		return r;
	pl->more = false;
	j = upload_job(p, k, &pl->op, id, MEM_LIST, nothing);
	j->finish = parts_finish;
	return mem_job_start(j);
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

static void
uploads_finish(struct mem_store *st, struct job *j)
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
		/* Under the lock: what is given lies in the uploads.
		 * The callback must not start anything. */
		for (bool go_on = true; go_on && given < nr && given < ls->max; given++)
			go_on = ls->entry(ls, &page[given]);
		/* The caller's until the end, so it may be looked at until then. */
		check(!ls->after || memcmp(after, ls->after, ls->after_len) == 0);
		check(!ls->after_id || memcmp(after_id, ls->after_id, sizeof after_id) == 0);
		ls->more = given < nr;
		ls->op.result = (int)given;
	}
	pthread_mutex_unlock(&st->lock);
	free(page);
}

int
mem_list_uploads(struct store_port *sp, struct store_list *ls)
{
	struct mem_port *p = mem_port(sp);
	struct job *j;

	if (!ls->bucket)
		return -EINVAL;
	if (ls->bucket_len > STORE_BUCKET_MAX || ls->prefix_len > STORE_KEY_MAX ||
	    ls->after_len > STORE_KEY_MAX)
		return -ENAMETOOLONG;
	ls->more = false;
	j = mem_job_new(p, &ls->op, MEM_LIST, nothing);
	j->finish = uploads_finish;
	return mem_job_start(j);
}
