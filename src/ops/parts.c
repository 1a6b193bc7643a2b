/* SPDX-License-Identifier: Apache-2.0 */
/* What there is of a multipart upload: its parts, and the parts of an object that was one
 * (GetObjectAttributes). The core's thread. */
#include "ops/ops_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- ListParts ---- */

struct parts_job {
	struct store_part_list list;
	struct req *rq;
	uint16_t last;
	bool full, composite;
};

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	struct parts_job *j = container_of(pl, struct parts_job, list);
	struct xml_part_entry e = { .number = (uint16_t)part->number,
				    .size_bytes = part->size_bytes,
				    .mtime_ns = part->mtime_ns };
	struct xml_sums sums;
	char etag[48];

	if (j->rq->out.len > REQ_PAGE_BYTES) {
		j->full = true;
		return false;
	}
	e.etag_len = etag_text(&part->etag, etag);
	e.etag = etag;
	sums_stored(part->attrs, part->attrs_len, &part->crc64, &sums);
	sums.type = SUM_TYPE_NONE;
	e.sums = &sums;
	xml_parts_entry(&j->rq->out, &e);
	j->last = e.number;
	return true;
}

static void
on_parts(struct store_op *op)
{
	struct parts_job *j =
		container_of(container_of(op, struct store_part_list, op), struct parts_job, list);

	req_on_store(j->rq);
}

static enum verdict
parts_done(struct req *rq)
{
	struct parts_job *j = rq->job;

	if (j->list.op.result < 0)
		return req_fail(rq, upload_fault(j->list.op.result), NULL);
	xml_parts_end(&rq->out, &rq->target, j->full || j->list.more, j->last);
	return req_reply_xml(rq);
}

static enum verdict
parts_begin(struct req *rq)
{
	struct target *t = &rq->target;
	struct store_key k = req_key(rq);
	struct declared d;
	struct parts_job *j;
	char storage_class[32];
	int r = rq->stat.op.result;

	t->attrs_len = rq->stat.attrs_len;
	if (r < 0)
		return req_fail(rq, upload_fault(r), NULL);
	if (upload_declared(t->attrs, t->attrs_len, &d) < 0)
		return req_fail(rq, FAULT_DAMAGED, NULL);
	j = req_job(rq, sizeof *j, NULL);
	if (!j || req_hold_text(rq, REQ_PAGE_BYTES) < 0)
		return req_fail(rq, FAULT_BUSY, NULL);
	j->rq = rq;
	xml_parts_begin(&rq->out, t, storage_class_of(t->attrs, t->attrs_len, storage_class),
			d.have ? checksum_name(d.kind) : NULL, d.have ? d.type : SUM_TYPE_NONE);
	if (t->list->max == 0)
		return req_go(rq, parts_done);
	j->list.after = t->list->part_number_marker;
	j->list.max = t->list->max;
	j->list.part = on_part;
	j->list.op.done = on_parts;
	return req_await(rq, store_list_parts(rq->rs->env.store, &k, t->upload_id, &j->list), "parts",
			 parts_done);
}

enum verdict
parts_start(struct req *rq)
{
	return req_stat_upload(rq, parts_begin);
}

/* ---- GetObjectAttributes ---- */

/* A page of them: large, and asked for rarely. */
struct part_page {
	struct xml_sums sums[DIALECT_LIST_MAX];
	struct xml_part_entry part[DIALECT_LIST_MAX];
	char etag[DIALECT_LIST_MAX][48];
};

struct attributes_job {
	struct part_page *page;
};

static void
attributes_fini(struct req *rq)
{
	free(((struct attributes_job *)rq->job)->page);
}

static struct part_page *
page_new(struct req *rq)
{
	struct attributes_job *j = req_job(rq, sizeof *j, attributes_fini);

	if (!j || req_hold_text(rq, sizeof *j->page) < 0)
		return NULL;
	j->page = calloc(1, sizeof *j->page);
	return j->page;
}

static void
one_part(struct part_page *pg, uint32_t i, const struct store_part *p)
{
	pg->part[i] = (struct xml_part_entry){ .number = (uint16_t)p->number,
					       .size_bytes = p->size_bytes,
					       .mtime_ns = p->mtime_ns,
					       .etag_len = etag_text(&p->etag, pg->etag[i]),
					       .etag = pg->etag[i],
					       .sums = &pg->sums[i] };
	sums_stored(p->attrs, p->attrs_len, &p->crc64, &pg->sums[i]);
	pg->sums[i].type = SUM_TYPE_NONE;
}

/* Those above the marker, as many as asked for. */
static void
gather_parts(struct req *rq, struct xml_attributes *a, struct part_page *pg)
{
	const struct target *t = &rq->target;
	uint32_t max = t->list->max < DIALECT_LIST_MAX ? t->list->max : DIALECT_LIST_MAX;

	a->parts = pg->part;
	a->parts_total = rq->obj.part_nr;
	for (uint32_t i = 0; i < rq->obj.part_nr; i++) {
		struct store_part p;

		if (store_obj_part_at(&rq->obj, i, &p) < 0)
			return;
		if (p.number <= t->list->part_number_marker)
			continue;
		if (a->part_nr == max) {
			a->truncated = true;
			return;
		}
		one_part(pg, a->part_nr++, &p);
	}
}

static enum verdict
attributes_opened(struct req *rq)
{
	struct xml_attributes a = { .size_bytes = rq->obj.size_bytes };
	struct xml_sums sums;
	char etag[48], storage_class[32];
	enum fault f;

	if (rq->obj.op.result < 0)
		return req_fail(rq, fault_of(rq->obj.op.result), NULL);
	a.etag_len = etag_text(&rq->obj.meta.etag, etag);
	a.etag = etag;
	f = dialect_conditions(&rq->target, etag, a.etag_len, rq->obj.meta.mtime_ns / NS_PER_S);
	if (f != FAULT_NONE)
		return req_fail(rq, f, NULL);
	a.storage_class = storage_class_of(rq->obj.meta.attrs, rq->obj.meta.attrs_len, storage_class);
	sums_of_obj(&rq->obj, &sums);
	a.sums = &sums;
	if (rq->obj.part_nr && (rq->target.object_attributes & ATTR_PARTS)) {
		struct part_page *page = page_new(rq);

		if (!page)
			return req_fail(rq, FAULT_BUSY, NULL);
		gather_parts(rq, &a, page);
	}
	xml_object_attributes(&rq->out, &rq->target, &a);
	rq->etag = rq->obj.meta.etag;
	return req_reply_xml(rq);
}

enum verdict
attributes_start(struct req *rq)
{
	struct store_key k = req_key(rq);

	return req_open(rq, &k, attributes_opened);
}

/* Last-Modified is a field, and no element. */
static void
attributes_headers(struct req *rq, const struct outcome *o, enum outcome_kind kind)
{
	char date[30];

	if (kind != OUT_DONE)
		return;
	http_date_format(rq->obj.meta.mtime_ns / NS_PER_S, date);
	reply_text(rq, reply_name(rq, FIELD_LAST_MODIFIED), date);
}

const struct op_hooks attributes_hooks = { .headers = attributes_headers };
