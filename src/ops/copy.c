/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CopyObject and UploadPartCopy: bytes of one object become another, or a part, inside the server.  The core's
 * thread.
 *
 *   start -> open ... opened -> ticket ... ticketed -> pump ... moved -> commit ... copied -> reply
 *                        \-> set ... replaced -> reply     onto itself: other attributes, the same bytes and no expiry
 *
 * rq->obj is the source, rq->change's put what comes of it.  No byte goes through HTTP; the pieces are those
 * of the RDMA transfers, because they are large.
 */
#include "ops/ops_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "dialect/tags.h"

#include <errno.h>
#include <string.h>

struct copy_job {
	uint64_t mtime_ns;
	uint32_t given_len;
	unsigned char given[DIALECT_ATTRS_MAX]; /* what the request says of headers, metadata, tags */
};

static enum verdict copy_opened(struct req *rq);
static enum verdict copy_ticketed(struct req *rq);
static enum verdict copy_moved(struct req *rq);
static enum verdict copied(struct req *rq);
static enum verdict replaced(struct req *rq);

static bool
is_part(const struct req *rq)
{
	return rq->target.op == OP_UPLOAD_PART_COPY;
}

static enum verdict
copy_source(struct req *rq)
{
	struct target *t = &rq->target;
	struct store_key k = { .bucket = t->copy->bucket,
			       .bucket_len = t->copy->bucket_len,
			       .key = t->copy->key,
			       .key_len = t->copy->key_len };
	const char *why = NULL;
	struct copy_job *j;
	enum fault f = is_part(rq) ? part_prepare(rq, &why) : FAULT_NONE;

	if (f != FAULT_NONE)
		return req_fail(rq, f, why);
	j = req_job(rq, sizeof *j, NULL);
	if (!j)
		return req_fail(rq, FAULT_BUSY, NULL);
	memcpy(j->given, t->attrs, t->attrs_len);
	j->given_len = t->attrs_len;
	xfer_set_lanes(&rq->xfer, store_lane(rq->rs->env.store, &k, false), rq->lane - 1);
	/* It is of the body, and there is none. */
	t->sum[SUM_MD5].given = false;
	return req_open(rq, &k, copy_opened);
}

enum verdict
copy_start(struct req *rq)
{
	const char *why = NULL;
	enum fault f;

	if (is_part(rq))
		return req_stat_upload(rq, copy_source);
	f = put_pre_fault(&rq->target, &why);
	return f != FAULT_NONE ? req_fail(rq, f, why) : req_expect_bucket(rq, copy_source);
}

/* ---- the attributes of the copy ---- */

static bool
begins(const char *name, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(name, with, strlen(with)) == 0;
}

static bool
is_tagging(const char *name, size_t len)
{
	return len == strlen(ATTR_TAGGING) && begins(name, len, ATTR_TAGGING);
}

static bool
is_storage_class(const char *name, size_t len)
{
	return begins(name, len, "x-amz-storage-class");
}

static bool
is_sum(const char *name, size_t len)
{
	return begins(name, len, "x-amz-checksum-");
}

static bool
is_header(const char *name, size_t len)
{
	return !is_tagging(name, len) && !is_sum(name, len) && !is_storage_class(name, len);
}

/* Headers and metadata, tags, storage class, checksums: each from where it belongs, into target.attrs. */
static enum fault
copy_attrs(struct req *rq, bool keep_sums)
{
	struct copy_job *j = rq->job;
	struct target *t = &rq->target;
	const void *src = rq->obj.meta.attrs;
	uint32_t src_len = rq->obj.meta.attrs_len;
	bool meta = t->copy->metadata == DIRECTIVE_REPLACE, tags = t->copy->tagging == DIRECTIVE_REPLACE;
	int r;

	t->attrs_len = 0;
	r = attrs_add_from(rq, meta ? j->given : src, meta ? j->given_len : src_len, is_header);
	if (r == 0)
		r = attrs_add_from(rq, tags ? j->given : src, tags ? j->given_len : src_len, is_tagging);
	if (r == 0)
		r = attrs_add_from(rq, j->given, j->given_len, is_storage_class);
	if (r == 0 && keep_sums)
		r = attrs_add_from(rq, src, src_len, is_sum);
	if (r == -ENOSPC)
		return FAULT_META_TOO_LARGE;
	return r < 0 ? FAULT_DAMAGED : FAULT_NONE;
}

/* ---- onto itself ---- */

static bool
is_onto_itself(const struct target *t)
{
	return t->op == OP_COPY_OBJECT && t->bucket_len == t->copy->bucket_len &&
	       t->key_len == t->copy->key_len && memcmp(t->bucket, t->copy->bucket, t->bucket_len) == 0 &&
	       memcmp(t->key, t->copy->key, t->key_len) == 0;
}

static enum verdict
replace_attrs(struct req *rq)
{
	struct copy_job *j = rq->job;
	const struct checksum *crc = &rq->target.sum[SUM_CRC64NVME];
	struct store_key k = req_key(rq);
	char etag[48];
	size_t len = etag_text(&rq->obj.meta.etag, etag);
	/* Judged here: the store compares the version that they were judged of. */
	enum fault f = dialect_conditions(&rq->target, etag, len, rq->obj.meta.mtime_ns / NS_PER_S);
	struct store_del *del;
	int r;

	if (f == FAULT_NONE && !may_key(rq, AUTH_REPLACE, rq->target.key, rq->target.key_len))
		f = FAULT_NO_OVERWRITE;
	if (f == FAULT_NONE && crc->given && sum_to_u64(crc->value) != rq->obj.crc64)
		f = FAULT_BAD_DIGEST;
	if (f == FAULT_NONE)
		f = copy_attrs(rq, true);
	if (f != FAULT_NONE)
		return req_fail(rq, f, NULL);
	rq->etag = rq->obj.meta.etag;
	j->mtime_ns = rq->obj.meta.mtime_ns;
	del = req_del_part(rq);
	if (!del)
		return req_fail(rq, FAULT_BUSY, NULL);
	del->op.done = req_on_del;
	r = store_set_attrs(rq->rs->env.store, &k, rq->obj.version, rq->target.attrs, rq->target.attrs_len,
			    del);
	return req_await_commit(rq, r, "attributes", replaced);
}

static enum verdict
reply_result(struct req *rq, uint64_t crc64)
{
	struct copy_job *j = rq->job;
	struct xml_sums sums;
	char etag[48];
	size_t len = etag_text(&rq->etag, etag);

	sums_stored(rq->target.attrs, rq->target.attrs_len, &crc64, &sums);
	xml_copy_result(&rq->out, rq->target.op, etag, len, j->mtime_ns, &sums);
	return req_reply_xml(rq);
}

static enum verdict
replaced(struct req *rq)
{
	int r = rq->change->del.op.result;

	if (r < 0)
		return req_fail(rq, r == -ESTALE ? FAULT_CONFLICT : fault_of(r), NULL);
	return reply_result(rq, rq->obj.crc64);
}

/* ---- what of the source ---- */

static enum fault
copy_range(struct req *rq, const char **why)
{
	const struct range *g = &rq->target.copy->range;

	rq->off = 0;
	rq->len = rq->obj.size_bytes;
	if (g->kind == RANGE_FROM_TO) {
		if (g->last >= rq->obj.size_bytes) {
			*why = "x-amz-copy-source-range is not within the source.";
			return FAULT_BAD_ARGUMENT;
		}
		rq->off = g->first;
		rq->len = g->last - g->first + 1;
	}
	return rq->len > put_limit(rq) ? FAULT_TOO_LARGE : FAULT_NONE;
}

static bool
is_computed(const struct target *t, enum checksum_kind k)
{
	return k != SUM_CRC64NVME && (t->sum[k].wanted || t->sum[k].given);
}

/* Does the request name a checksum that has to be computed over the copy? */
static bool
wants_sum(const struct target *t)
{
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		if (is_computed(t, k))
			return true;
	}
	return false;
}

/* A composite checksum is one of an upload's parts; the copy has none: it gets the same of the whole. */
static bool
plain_sums(struct req *rq)
{
	struct xml_sums sums;

	sums_of_obj(&rq->obj, &sums);
	if (sums.type != SUM_TYPE_COMPOSITE)
		return true;
	for (enum checksum_kind k = 0; k < SUM_MD5; k++)
		rq->target.sum[k].wanted |= k != SUM_CRC64NVME && sums.sum[k].have;
	return false;
}

static enum verdict
copy_begin(struct req *rq)
{
	struct target *t = &rq->target;
	bool whole = rq->len == rq->obj.size_bytes, keep_sums = false;
	enum fault f = FAULT_NONE;
	unsigned mask = 0;
	int r;

	if (!is_part(rq)) {
		keep_sums = !wants_sum(t) && plain_sums(rq);
		f = copy_attrs(rq, keep_sums);
	}
	if (f != FAULT_NONE)
		return req_fail(rq, f, NULL);
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		if (is_computed(t, k))
			mask |= DIGEST_BIT(digest_of_sum(k));
	}
	/* The MD5 of these bytes is known where they are all that was put in one go over HTTP. */
	if (whole && rq->obj.meta.etag.parts == 0)
		rq->etag = rq->obj.meta.etag;
	else
		mask |= DIGEST_BIT(DIGEST_MD5);
	if (digest_begin(&rq->digest, mask) < 0)
		return req_fail(rq, FAULT_BUSY, NULL);
	rq->phase = PHASE_QUEUED;
	xfer_init(&rq->xfer, &rq->rs->pieces, rq->rs->env.store, rq->rs->env.chan);
	r = xfer_ticket(&rq->xfer);
	if (r < 0)
		return req_fail(rq, FAULT_BUSY, NULL);
	return r > 0 ? req_go(rq, copy_ticketed) : req_wait(rq, "ticket", copy_ticketed);
}

static enum verdict
copy_opened(struct req *rq)
{
	struct target *t = &rq->target;
	const char *why = NULL;
	char etag[48];
	size_t len;
	enum fault f;

	if (rq->obj.op.result < 0)
		return req_fail(rq, fault_of(rq->obj.op.result), NULL);
	len = etag_text(&rq->obj.meta.etag, etag);
	f = dialect_copy_conditions(t->copy, etag, len, rq->obj.meta.mtime_ns / NS_PER_S);
	if (f == FAULT_NONE)
		f = copy_range(rq, &why);
	if (f != FAULT_NONE)
		return req_fail(rq, f, why);
	if (is_onto_itself(t)) {
		if (t->copy->metadata == DIRECTIVE_COPY && t->copy->tagging == DIRECTIVE_COPY &&
		    !t->copy->names_change && !wants_sum(t) && !t->ttl_s)
			return req_fail(rq, FAULT_COPY_TO_ITSELF, NULL);
		/* Other attributes leave the expiry as it is. */
		if (!wants_sum(t) && !t->ttl_s && !rq->obj.meta.expires_ns)
			return req_go(rq, replace_attrs);
	}
	return req_go(rq, copy_begin);
}

/* ---- the bytes ---- */

static enum verdict
copy_ticketed(struct req *rq)
{
	int r;

	if (!rq->xfer.have_ticket)
		return req_wait(rq, "ticket", copy_ticketed);
	r = put_init(rq, rq->len);
	if (r < 0)
		return req_fail(rq, is_part(rq) ? upload_fault(r) : fault_of(r), NULL);
	rq->phase = PHASE_MOVING;
	xfer_copy(&rq->xfer, &rq->obj, rq->off, rq->len, &rq->change->put, &rq->digest);
	return req_go(rq, copy_moved);
}

static enum verdict
copy_moved(struct req *rq)
{
	struct copy_job *j = rq->job;
	enum fault f;

	if (!rq->xfer.ended)
		return req_wait(rq, "copy", copy_moved);
	if (rq->xfer.result < 0) {
		rq->errno_seen = rq->xfer.result;
		return req_fail(rq, fault_of(rq->xfer.result), NULL);
	}
	f = put_sums(rq);
	if (f != FAULT_NONE)
		return req_fail(rq, f, NULL);
	/* What was read is what is written, or nothing is. */
	if (rq->len == rq->obj.size_bytes && !rq->target.sum[SUM_CRC64NVME].given) {
		rq->target.sum[SUM_CRC64NVME].given = true;
		sum_of_u64(rq->obj.crc64, rq->target.sum[SUM_CRC64NVME].value);
	}
	j->mtime_ns = clock_wall_ns();
	return put_commit_to(rq, j->mtime_ns, copied);
}

static enum verdict
copied(struct req *rq)
{
	int r = rq->change->put.op.result;

	if (r < 0) {
		rq->errno_seen = r;
		return req_fail(rq, is_part(rq) ? upload_fault(r) : fault_of(r), NULL);
	}
	expires_written(rq);
	return reply_result(rq, rq->change->put.crc64);
}
