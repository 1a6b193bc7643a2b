/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists: of a bucket's objects in three forms, of its uploads, and of the buckets themselves.  One page is
 * one listing of the store; its entries become XML as they come.  The core's thread.
 */
#include "ops/ops_int.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

struct list_job {
	struct store_list ls;
	struct req *rq;
	struct xml_entry last;
	char last_key[STORE_KEY_MAX + 1];
	uint8_t last_id[STORE_UPLOAD_ID_BYTES];
	uint32_t count;
	bool full; /* the page ended before the listing did */
};

static void
on_list(struct store_op *op)
{
	struct list_job *j = container_of(container_of(op, struct store_list, op), struct list_job, ls);

	req_on_store(j->rq);
}

static void
remember(struct list_job *j, const struct xml_entry *e)
{
	check(e->key_len <= STORE_KEY_MAX);
	memcpy(j->last_key, e->key, e->key_len);
	j->last_key[e->key_len] = 0;
	j->last = *e;
	j->last.key = j->last_key;
	j->last.etag = NULL;
	j->last.storage_class = NULL;
	if (e->upload_id) {
		memcpy(j->last_id, e->upload_id, sizeof j->last_id);
		j->last.upload_id = j->last_id;
	}
	j->count++;
}

/* ---- objects and uploads ---- */

static bool
on_object(struct store_list *ls, const struct store_entry *e)
{
	struct list_job *j = container_of(ls, struct list_job, ls);
	struct xml_entry x = { .key = e->name,
			       .key_len = e->name_len,
			       .is_prefix = e->is_prefix,
			       .size_bytes = e->size_bytes,
			       .mtime_ns = e->mtime_ns };
	char etag[48], storage_class[32];

	if (j->rq->out.len > REQ_PAGE_BYTES) {
		j->full = true;
		return false;
	}
	x.etag_len = etag_text(&e->etag, etag);
	x.etag = etag;
	x.storage_class = storage_class_of(e->attrs, e->attrs_len, storage_class);
	x.checksum_algorithm = e->is_prefix ? NULL : algorithm_of(e->attrs, e->attrs_len, &x.checksum_type);
	xml_list_entry(&j->rq->out, &j->rq->target, &x);
	remember(j, &x);
	return true;
}

static bool
on_upload(struct store_list *ls, const struct store_entry *e)
{
	struct list_job *j = container_of(ls, struct list_job, ls);
	struct xml_entry x = { .key = e->name,
			       .key_len = e->name_len,
			       .is_prefix = e->is_prefix,
			       .mtime_ns = e->mtime_ns,
			       .upload_id = e->upload_id };
	struct declared d;
	char storage_class[32];

	if (j->rq->out.len > REQ_PAGE_BYTES) {
		j->full = true;
		return false;
	}
	if (!e->is_prefix && upload_declared(e->attrs, e->attrs_len, &d) == 0 && d.have) {
		x.checksum_algorithm = checksum_name(d.kind);
		x.checksum_type = d.type;
	}
	x.storage_class = storage_class_of(e->attrs, e->attrs_len, storage_class);
	xml_list_entry(&j->rq->out, &j->rq->target, &x);
	remember(j, &x);
	return true;
}

static enum verdict
list_done(struct req *rq)
{
	struct list_job *j = rq->job;

	if (j->ls.op.result < 0)
		return req_fail(rq, fault_of(j->ls.op.result), NULL);
	xml_list_end(&rq->out, &rq->target, j->full || j->ls.more, j->count ? &j->last : NULL, j->count);
	return req_reply_xml(rq);
}

static enum verdict
page_begin(struct req *rq, const char *what, int (*list)(struct store_port *, struct store_list *),
	   bool (*entry)(struct store_list *, const struct store_entry *))
{
	const struct target *t = &rq->target;
	struct list_job *j;
	int r;

	j = req_job(rq, sizeof *j, NULL);
	if (!j || req_hold_text(rq, REQ_PAGE_BYTES) < 0)
		return req_fail(rq, FAULT_BUSY, NULL);
	j->rq = rq;
	xml_list_begin(&rq->out, t);
	if (t->list->max == 0)
		return req_go(rq, list_done);
	j->ls = (struct store_list){ .op.done = on_list,
				     .bucket = t->bucket,
				     .bucket_len = t->bucket_len,
				     .prefix = t->list->prefix,
				     .prefix_len = t->list->prefix_len,
				     .after = t->list->after_len ? t->list->after : NULL,
				     .after_len = t->list->after_len,
				     .after_id = t->list->have_upload_id_marker ? t->list->upload_id_marker
										: NULL,
				     .delimiter = t->list->delimiter,
				     .delimiter_len = t->list->delimiter_len,
				     .max = t->list->max,
				     .may_be_partial = rq->rs->env.conf->store.partial_listings,
				     .entry = entry };
	r = list(rq->rs->env.store, &j->ls);
	return req_await_commit(rq, r, what, list_done);
}

static enum verdict
list_begin(struct req *rq)
{
	return page_begin(rq, "list", store_list, on_object);
}

enum verdict
list_start(struct req *rq)
{
	return req_need_bucket(rq, list_begin);
}

static enum verdict
uploads_begin(struct req *rq)
{
	return page_begin(rq, "uploads", store_list_uploads, on_upload);
}

enum verdict
uploads_start(struct req *rq)
{
	return req_need_bucket(rq, uploads_begin);
}

static void
list_headers(struct req *rq, const struct outcome *o, enum outcome_kind kind)
{
	const struct list_job *j = rq->job;

	if (kind == OUT_DONE && j && j->ls.is_partial)
		reply_text(rq, "x-gantry-partial", "true");
}

/* Of lists of one bucket. */
const struct op_hooks list_hooks = { .headers = list_headers };

/* ---- buckets ---- */

static bool
on_bucket(struct store_list *ls, const struct store_entry *e)
{
	struct list_job *j = container_of(ls, struct list_job, ls);
	struct req *rq = j->rq;
	struct xml_entry x = { .key = e->name, .key_len = e->name_len };

	/* Names that S3 does not allow belong to scality listeners. */
	if (e->name_len == 0 || e->name[0] == '.' || !may_see_bucket(rq, e->name, e->name_len))
		return true;
	if (j->count == rq->target.list->max || rq->out.len > REQ_PAGE_BYTES) {
		j->full = true;
		return false;
	}
	xml_buckets_entry(&rq->out, e->name, e->name_len, e->mtime_ns);
	remember(j, &x);
	return true;
}

static enum verdict
buckets_done(struct req *rq)
{
	struct list_job *j = rq->job;

	if (j->ls.op.result < 0)
		return req_fail(rq, fault_of(j->ls.op.result), NULL);
	xml_buckets_end(&rq->out, &rq->target, j->full || j->ls.more, j->last.key, j->last.key_len);
	return req_reply_xml(rq);
}

enum verdict
buckets_start(struct req *rq)
{
	const struct target *t = &rq->target;
	struct list_job *j = req_job(rq, sizeof *j, NULL);
	int r;

	if (!j || req_hold_text(rq, REQ_PAGE_BYTES) < 0)
		return req_fail(rq, FAULT_BUSY, NULL);
	j->rq = rq;
	xml_buckets_begin(&rq->out);
	j->ls.prefix = t->list->prefix;
	j->ls.prefix_len = t->list->prefix_len;
	j->ls.after = t->list->after_len ? t->list->after : NULL;
	j->ls.after_len = t->list->after_len;
	j->ls.max = UINT32_MAX;
	j->ls.entry = on_bucket;
	j->ls.op.done = on_list;
	r = store_list(rq->rs->env.store, &j->ls);
	return req_await_commit(rq, r, "list", buckets_done);
}
