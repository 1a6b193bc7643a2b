/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multipart uploads: making, completing and ending them.  Parts come in put.c and copy.c, lists of them in
 * parts.c.  The core's thread.
 *
 *   create:    start -> create ... created -> reply
 *   abort:     start -> abort ... aborted -> reply
 *   complete:  start -> parts ... known -> complete ... completed -> reply
 *                   \-> complete ... completed -> open ... completed_before -> reply     sent again
 *
 * What the object will need (headers, metadata, tags, the checksum that was declared) lies with the upload.
 * Completing looks at its parts first, because the object's checksum is made of theirs; the store then judges
 * again whether the parts are still those.
 */
#include "ops/ops_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PART_MIN_BYTES (5u << 20) /* all but the last */

struct part_seen {
	uint64_t version, size_bytes, crc64;
	struct store_etag etag;
	uint16_t number;
	bool have_sum; /* of the declared algorithm */
	uint8_t value[32];
};

struct upload_job {
	struct req *rq;
	struct store_upload up;
	/* complete */
	struct xml_complete body;
	struct part_seen *seen;
	struct store_part_ref *refs;
	uint32_t seen_nr, seen_cap;
	bool out_of_memory;
	bool found; /* the upload is there, or was a moment ago */
	struct declared declared;
	struct xml_sums sums; /* of the object */
	struct store_part_list list;
	struct store_complete complete;
};

static enum verdict complete_begin(struct req *rq);
static enum verdict complete_known(struct req *rq);
static enum verdict completed(struct req *rq);

static void
upload_fini(struct req *rq)
{
	struct upload_job *j = rq->job;

	xml_complete_free(&j->body);
	free(j->seen);
	free(j->refs);
}

static struct upload_job *
job_new(struct req *rq)
{
	struct upload_job *j = req_job(rq, sizeof *j, upload_fini);

	if (j)
		j->rq = rq;
	return j;
}

static void
on_upload(struct store_op *op)
{
	struct upload_job *j = container_of(container_of(op, struct store_upload, op), struct upload_job, up);

	req_on_store(j->rq);
}

/* ---- create ---- */

static enum verdict
created(struct req *rq)
{
	struct upload_job *j = rq->job;

	if (j->up.op.result < 0)
		return req_fail(rq, upload_fault(j->up.op.result), NULL);
	xml_create_result(&rq->out, &rq->target, j->up.id);
	return req_reply_xml(rq);
}

enum verdict
upload_create_start(struct req *rq)
{
	struct target *t = &rq->target;
	struct upload_job *j = job_new(rq);
	struct store_key k = req_key(rq);
	int r;

	if (!j)
		return req_fail(rq, FAULT_BUSY, NULL);
	if (upload_declare(t) < 0)
		return req_fail(rq, FAULT_META_TOO_LARGE, NULL);
	j->up.op.done = on_upload;
	r = store_upload_create(rq->rs->env.store, &k, t->attrs, t->attrs_len, &j->up);
	if (r < 0)
		return req_fail(rq, upload_fault(r), NULL);
	rq->phase = PHASE_COMMIT;
	return req_await(rq, r, "upload", created);
}

static void
create_headers(struct req *rq, const struct outcome *o, enum outcome_kind kind)
{
	struct declared d;

	if (kind != OUT_DONE || !rq->target.have_algorithm ||
	    upload_declared(rq->target.attrs, rq->target.attrs_len, &d) < 0 || !d.have)
		return;
	reply_text(rq, ATTR_SUM_ALGORITHM, checksum_name(d.kind));
	reply_text(rq, ATTR_SUM_TYPE, d.type == SUM_TYPE_COMPOSITE ? "COMPOSITE" : "FULL_OBJECT");
}

const struct op_hooks upload_create_hooks = { .headers = create_headers };

/* ---- abort ---- */

static enum verdict
aborted(struct req *rq)
{
	struct upload_job *j = rq->job;

	if (j->up.op.result < 0)
		return req_fail(rq, upload_fault(j->up.op.result), NULL);
	return req_go(rq, req_reply_step);
}

enum verdict
upload_abort_start(struct req *rq)
{
	struct upload_job *j = job_new(rq);
	struct store_key k = req_key(rq);
	int r;

	if (!j)
		return req_fail(rq, FAULT_BUSY, NULL);
	j->up.op.done = on_upload;
	r = store_upload_abort(rq->rs->env.store, &k, rq->target.upload_id, &j->up);
	if (r < 0)
		return req_fail(rq, upload_fault(r), NULL);
	rq->phase = PHASE_COMMIT;
	return req_await(rq, r, "upload", aborted);
}

/* ---- complete: the parts as they are ---- */

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	struct upload_job *j = container_of(pl, struct upload_job, list);
	struct part_seen *s;
	struct xml_sums sums;

	if (j->seen_nr == j->seen_cap) {
		uint32_t cap = j->seen_cap ? j->seen_cap * 2 : 64;
		struct part_seen *more;

		if (req_hold_text(j->rq, (cap - j->seen_cap) * sizeof *more) < 0)
			more = NULL;
		else
			more = realloc(j->seen, cap * sizeof *more);
		if (!more) {
			j->out_of_memory = true;
			return false;
		}
		j->seen = more;
		j->seen_cap = cap;
	}
	s = &j->seen[j->seen_nr++];
	*s = (struct part_seen){ .version = part->version,
				 .size_bytes = part->size_bytes,
				 .crc64 = part->crc64,
				 .etag = part->etag,
				 .number = (uint16_t)part->number };
	sums_stored(part->attrs, part->attrs_len, &part->crc64, &sums);
	if (j->declared.have && sums.sum[j->declared.kind].have) {
		s->have_sum = true;
		memcpy(s->value, sums.sum[j->declared.kind].value, sizeof s->value);
	}
	return true;
}

static void
on_list(struct store_op *op)
{
	struct upload_job *j =
		container_of(container_of(op, struct store_part_list, op), struct upload_job, list);

	req_on_store(j->rq);
}

/* By number: both are in ascending order. */
static const struct part_seen *
find_part(const struct upload_job *j, uint16_t number, uint32_t *at)
{
	while (*at < j->seen_nr && j->seen[*at].number < number)
		++*at;
	return *at < j->seen_nr && j->seen[*at].number == number ? &j->seen[*at] : NULL;
}

/* A client may name each part's checksum; it must be the one that the part has. */
static bool
part_is(const struct upload_job *j, const struct xml_part *p, const struct part_seen *s)
{
	uint8_t crc[8];

	if (!p->have_sum)
		return true;
	if (p->sum == SUM_CRC64NVME) {
		sum_of_u64(s->crc64, crc);
		return memcmp(p->value, crc, sizeof crc) == 0;
	}
	/* Of another algorithm than the declared one: nobody can say. */
	if (!j->declared.have || p->sum != j->declared.kind)
		return !j->declared.have;
	return s->have_sum && memcmp(p->value, s->value, checksum_len(p->sum)) == 0;
}

static enum fault
make_refs(struct req *rq, struct upload_job *j, bool known)
{
	uint32_t at = 0;

	if (req_hold_text(rq, (size_t)j->body.part_nr * sizeof *j->refs) < 0)
		return FAULT_BUSY;
	j->refs = calloc((size_t)j->body.part_nr, sizeof *j->refs);
	if (!j->refs)
		return FAULT_BUSY;
	for (int i = 0; i < j->body.part_nr; i++) {
		const struct xml_part *p = &j->body.parts[i];
		const struct part_seen *s;

		j->refs[i].number = p->number;
		if (etag_parse(p->etag, p->etag_len, &j->refs[i].etag) < 0)
			return FAULT_INVALID_PART;
		if (!known)
			continue;
		s = find_part(j, p->number, &at);
		if (!s || memcmp(&s->etag.sum, &j->refs[i].etag.sum, 16) != 0 ||
		    s->etag.parts != j->refs[i].etag.parts || !part_is(j, p, s))
			return FAULT_INVALID_PART;
		j->refs[i].version = s->version;
	}
	return FAULT_NONE;
}

/* ---- complete: what the object is ---- */

static int
composite_etag(struct req *rq, const struct upload_job *j)
{
	uint8_t md5[32];

	if (digest_begin(&rq->digest, DIGEST_BIT(DIGEST_MD5)) < 0)
		return -ENOMEM;
	for (int i = 0; i < j->body.part_nr; i++)
		digest_update(&rq->digest, j->refs[i].etag.sum, 16);
	digest_value(&rq->digest, DIGEST_MD5, md5);
	memcpy(rq->etag.sum, md5, sizeof rq->etag.sum);
	rq->etag.parts = (uint32_t)j->body.part_nr;
	return 0;
}

static uint32_t
be32(const uint8_t b[4])
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The object's checksum of the declared algorithm, from those of the parts. */
static int
object_sum(struct req *rq, struct upload_job *j)
{
	enum checksum_kind k = j->declared.kind;
	bool composite = j->declared.type == SUM_TYPE_COMPOSITE;
	uint32_t crc = 0, at = 0;
	uint8_t *value = j->sums.sum[k].value;

	if (composite && digest_begin(&rq->digest, DIGEST_BIT(digest_of_sum(k))) < 0)
		return -ENOMEM;
	for (int i = 0; i < j->body.part_nr; i++) {
		const struct part_seen *s = find_part(j, j->body.parts[i].number, &at);

		if (!s || !s->have_sum)
			return -EBADMSG;
		if (composite)
			digest_update(&rq->digest, s->value, checksum_len(k));
		else
			crc = sum_crc32_combine(k, crc, be32(s->value), s->size_bytes);
	}
	if (composite) {
		digest_value(&rq->digest, digest_of_sum(k), value);
		j->sums.composite_parts = (uint32_t)j->body.part_nr;
	} else {
		for (int i = 0; i < 4; i++)
			value[i] = (uint8_t)(crc >> (24 - 8 * i));
	}
	j->sums.sum[k].have = true;
	j->sums.type = j->declared.type;
	return 0;
}

/* What lay with the upload, and the checksum: into target.attrs, which has held the former so far. */
static enum fault
object_attrs(struct req *rq, struct upload_job *j)
{
	struct target *t = &rq->target;
	enum checksum_kind k = j->declared.kind;
	unsigned char *upload;
	uint32_t len = t->attrs_len;
	char text[64];
	size_t n;
	int r;

	upload = malloc(len ? len : 1);
	if (!upload)
		return FAULT_BUSY;
	memcpy(upload, t->attrs, len);
	t->attrs_len = 0;
	r = attrs_add_from(rq, upload, len, upload_attr_stays);
	free(upload);
	if (r < 0)
		return FAULT_DAMAGED;
	if (!j->declared.have || k == SUM_CRC64NVME)
		return FAULT_NONE;
	r = object_sum(rq, j);
	if (r < 0)
		return r == -ENOMEM ? FAULT_BUSY : FAULT_INVALID_PART;
	n = sum_text(j->sums.sum[k].value, k, j->sums.composite_parts, text);
	r = dialect_attrs_add(t->attrs, &t->attrs_len, DIALECT_ATTRS_MAX, checksum_header[k],
			      strlen(checksum_header[k]), text, n);
	return r < 0 ? FAULT_META_TOO_LARGE : FAULT_NONE;
}

/* What the client says the object's checksum is (CRC64-NVME: the store compares). */
static enum fault
compare_sums(const struct req *rq, const struct upload_job *j)
{
	const struct target *t = &rq->target;

	if (t->checksum_type != SUM_TYPE_NONE && j->declared.have && t->checksum_type != j->declared.type)
		return FAULT_BAD_REQUEST;
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		const struct checksum *c = &t->sum[k];

		if (!c->given || c->payload_hash || k == SUM_CRC64NVME)
			continue;
		if (!j->sums.sum[k].have)
			return FAULT_BAD_REQUEST;
		if (t->composite_parts && t->composite_parts != j->sums.composite_parts)
			return FAULT_BAD_DIGEST;
		if (memcmp(c->value, j->sums.sum[k].value, checksum_len(k)) != 0)
			return FAULT_BAD_DIGEST;
	}
	return FAULT_NONE;
}

const struct op_hooks upload_complete_hooks = { .sums_of_object = true };

/* ---- complete ---- */

static void
on_complete(struct store_op *op)
{
	struct upload_job *j =
		container_of(container_of(op, struct store_complete, op), struct upload_job, complete);

	req_on_store(j->rq);
}

static enum verdict
complete_go(struct req *rq)
{
	const struct target *t = &rq->target;
	struct upload_job *j = rq->job;
	struct store_complete *c = &j->complete;
	struct store_key k = req_key(rq);
	int r;

	if (composite_etag(rq, j) < 0)
		return req_fail(rq, FAULT_BUSY, NULL);
	c->parts = j->refs;
	c->part_nr = (uint32_t)j->body.part_nr;
	c->meta.etag = rq->etag;
	c->meta.attrs = t->attrs;
	c->meta.attrs_len = t->attrs_len;
	c->meta.expires_ns = rq->expires_ns = expires_after(t->ttl_s);
	put_fill_write_pre(rq, &c->pre);
	c->part_min_bytes = PART_MIN_BYTES;
	c->have_expect_size = t->have_mp_object_size;
	c->expect_size_bytes = t->mp_object_size;
	c->have_expect_crc64 = t->sum[SUM_CRC64NVME].given;
	c->expect_crc64 = c->have_expect_crc64 ? sum_to_u64(t->sum[SUM_CRC64NVME].value) : 0;
	c->op.done = on_complete;
	r = store_upload_complete(rq->rs->env.store, &k, t->upload_id, c);
	if (r < 0)
		return req_fail(rq, upload_fault(r), NULL);
	rq->phase = PHASE_COMMIT;
	return req_await(rq, r, "complete", completed);
}

enum verdict
upload_complete_start(struct req *rq)
{
	struct upload_job *j = job_new(rq);
	const char *why = NULL;
	enum fault f;

	if (!j)
		return req_fail(rq, FAULT_BUSY, NULL);
	f = put_pre_fault(&rq->target, &why);
	if (f == FAULT_NONE)
		f = xml_complete_parse(rq->body, rq->body_len, &j->body, &why);
	return f != FAULT_NONE ? req_fail(rq, f, why) : req_stat_upload(rq, complete_begin);
}

/* Asks the store without the upload, which an equal request may have completed. */
static enum verdict
complete_again(struct req *rq)
{
	enum fault f = make_refs(rq, rq->job, false);

	rq->target.attrs_len = 0;
	return f != FAULT_NONE ? req_fail(rq, f, NULL) : req_go(rq, complete_go);
}

static enum verdict
complete_begin(struct req *rq)
{
	struct target *t = &rq->target;
	struct upload_job *j = rq->job;
	struct store_key k = req_key(rq);
	int r = rq->stat.op.result;

	t->attrs_len = rq->stat.attrs_len;
	if (r == -ENOENT)
		return complete_again(rq);
	if (r < 0)
		return req_fail(rq, upload_fault(r), NULL);
	j->found = true;
	t->ttl_s = upload_ttl(t->attrs, t->attrs_len);
	if (upload_declared(t->attrs, t->attrs_len, &j->declared) < 0)
		return req_fail(rq, FAULT_DAMAGED, NULL);
	j->list.max = STORE_PART_NR_MAX;
	j->list.part = on_part;
	j->list.op.done = on_list;
	return req_await(rq, store_list_parts(rq->rs->env.store, &k, t->upload_id, &j->list), "parts",
			 complete_known);
}

static enum verdict
complete_known(struct req *rq)
{
	struct upload_job *j = rq->job;
	enum fault f;

	if (j->list.op.result == -ENOENT)
		return complete_again(rq);
	if (j->list.op.result < 0)
		return req_fail(rq, upload_fault(j->list.op.result), NULL);
	if (j->out_of_memory)
		return req_fail(rq, FAULT_BUSY, NULL);
	f = make_refs(rq, j, true);
	if (f == FAULT_NONE)
		f = object_attrs(rq, j);
	if (f == FAULT_NONE)
		f = compare_sums(rq, j);
	return f != FAULT_NONE ? req_fail(rq, f, NULL) : req_go(rq, complete_go);
}

static enum fault
complete_fault(int err)
{
	switch (err) {
	case -EINVAL:
		return FAULT_INVALID_PART_ORDER;
	case -EBADR:
		return FAULT_INVALID_PART;
	case -EMSGSIZE:
		return FAULT_ENTITY_TOO_SMALL;
	case -ERANGE:
		return FAULT_BAD_REQUEST;
	default:
		return upload_fault(err);
	}
}

/* The answer; of an object that declared no checksum it is the CRC64NVME that every object has. */
static enum verdict
complete_reply(struct req *rq)
{
	struct upload_job *j = rq->job;
	struct text location = { 0 };
	char etag[48];
	size_t len = etag_text(&rq->etag, etag);

	if (!j->sums.type) {
		j->sums.type = SUM_TYPE_FULL_OBJECT;
		j->sums.sum[SUM_CRC64NVME].have = true;
		sum_of_u64(j->complete.crc64, j->sums.sum[SUM_CRC64NVME].value);
	}
	write_location(rq, &location);
	if (text_ok(&location))
		xml_complete_result(&rq->out, &rq->target, location.p, etag, len, &j->sums);
	else
		rq->out.failed = true;
	text_free(&location);
	return req_reply_xml(rq);
}

/* Of a repetition: the upload is gone, and what it declared with it; the object has the checksum. */
static enum verdict
completed_before(struct req *rq)
{
	struct upload_job *j = rq->job;

	if (rq->obj.op.result < 0 && rq->obj.op.result != -ENOENT)
		return req_fail(rq, fault_of(rq->obj.op.result), NULL);
	/* It may have been replaced meanwhile. */
	if (rq->obj.op.result >= 0 && rq->obj.version == j->complete.version)
		sums_of_obj(&rq->obj, &j->sums);
	return complete_reply(rq);
}

/* The store did not find the upload, or there was no object for If-Match: clients take the former for a
 * completion that was done before, and give the upload up. */
static enum verdict
complete_missed(struct req *rq)
{
	int r = rq->stat.op.result;

	return req_fail(rq, r < 0 ? upload_fault(r) : FAULT_NO_SUCH_KEY, NULL);
}

static enum verdict
completed(struct req *rq)
{
	struct upload_job *j = rq->job;
	const struct store_complete *c = &j->complete;
	struct store_key k = req_key(rq);

	if (c->op.result == -ENOENT && j->found && rq->target.if_match.present) {
		/* Nothing was changed. */
		rq->phase = PHASE_FRONT;
		return req_stat_upload(rq, complete_missed);
	}
	if (c->op.result < 0)
		return req_fail(rq, complete_fault(c->op.result),
				c->op.result == -ERANGE
					? "x-amz-mp-object-size is not the sum of the parts' sizes."
					: NULL);
	if (!c->was_done) {
		expires_written(rq);
		return complete_reply(rq);
	}
	rq->etag = c->etag;
	/* Nothing is changed any more. */
	rq->phase = PHASE_FRONT;
	return req_open(rq, &k, completed_before);
}
