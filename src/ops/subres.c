/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a bucket has besides objects, the rows of subres.def; and the answers that never vary.  The core's
 * thread.
 *
 * They live together in the bucket's attributes (walk/bucket_config.h).  Changing one writes all of them
 * again, against the version that was read: two changes at once, and the second is tried again.
 */
#include "ops/ops_int.h"

#include "base/check.h"
#include "s3doc/subres.h"
#include "s3doc/tags_xml.h"
#include "walk/bucket_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 16

/* ---- the rows of subres.def ---- */

static const struct subres {
	enum fault absent;
	enum fault (*from_xml)(const char *body, size_t len, struct text *packed, const char **ret_why);
	int (*to_xml)(struct text *x, const void *packed, size_t packed_len);
} subresources[BUCKET_ATTR_NR] = {
#define SUBRES(id, number, code, message, from, to) [number] = { FAULT_NO_SUCH_##id, from, to },
#include "dialect/subres.def"
};

static enum bucket_attr
kind_of(enum op op)
{
	static const enum bucket_attr kinds[OP_NR] = {
#define SUBRES(id, ...)                                                                                      \
	[OP_GET_BUCKET_##id] = BUCKET_##id, [OP_PUT_BUCKET_##id] = BUCKET_##id,                              \
	[OP_DELETE_BUCKET_##id] = BUCKET_##id,
#include "dialect/subres.def"
	};

	check(kinds[op]);
	return kinds[op];
}

/* ---- reading ---- */

static enum fault
write_answer(enum bucket_attr kind, const struct bucket_attrs *ba, struct text *out)
{
	const void *p;
	uint32_t len;

	if (!bucket_attrs_find(ba, kind, &p, &len))
		return subresources[kind].absent;
	return subresources[kind].to_xml(out, p, len) < 0 ? FAULT_INTERNAL : FAULT_NONE;
}

static enum verdict
subres_known(struct req *rq)
{
	int r = rq->battrs.stat.op.result;
	enum fault f;

	if (r < 0)
		return req_fail(rq, fault_of(r), NULL);
	f = write_answer(kind_of(rq->target.op), &rq->battrs, &rq->out);
	return f != FAULT_NONE ? req_fail(rq, f, NULL) : req_reply_xml(rq);
}

enum verdict
subres_get(struct req *rq)
{
	return req_read_battrs(rq, subres_known);
}

/* ---- writing ---- */

struct subres_job {
	struct store_bucket_set set;
	struct req *rq;
	enum bucket_attr kind;
	struct text value; /* packed; empty: to be deleted */
	struct text attrs; /* all of the bucket's: kept until the store has done */
	int tries;
	step_fn read; /* where another try begins */
};
_Static_assert(sizeof(struct subres_job) <= REQ_JOB_BYTES, "bucket.c takes a large job in addition");

static enum verdict subres_read(struct req *rq);

static void
subres_fini(struct req *rq)
{
	struct subres_job *j = rq->job;

	text_free(&j->value);
	text_free(&j->attrs);
}

static void
on_set(struct store_op *op)
{
	struct subres_job *j =
		container_of(container_of(op, struct store_bucket_set, op), struct subres_job, set);

	req_on_store(j->rq);
}

static enum verdict
subres_written(struct req *rq)
{
	struct subres_job *j = rq->job;
	int r = j->set.op.result;

	if (r == -ESTALE && j->tries++ < TRIES_MAX)
		return req_go(rq, j->read);
	if (r < 0)
		return req_fail(rq, r == -ESTALE ? FAULT_CONFLICT : fault_of(r), NULL);
	return req_go(rq, req_reply_step);
}

static enum verdict
subres_write(struct req *rq)
{
	const struct target *t = &rq->target;
	struct subres_job *j = rq->job;
	int r = rq->battrs.stat.op.result;

	if (r < 0)
		return req_fail(rq, fault_of(r), NULL);
	text_reset(&j->attrs);
	bucket_attrs_replace(&rq->battrs, j->kind, j->value.p, (uint32_t)j->value.len, &j->attrs);
	bucket_attrs_free(&rq->battrs);
	if (!text_ok(&j->attrs))
		return req_fail(rq, FAULT_BUSY, NULL);
	if (j->attrs.len > STORE_BUCKET_ATTRS_MAX)
		return req_fail(
			rq, FAULT_TEXT_TOO_LARGE,
			"The bucket's configuration (rules, tags and the like) is too large together.");
	j->set.op.done = on_set;
	r = store_bucket_set_attrs(rq->rs->env.store, t->bucket, t->bucket_len, rq->battrs.stat.version,
				   j->attrs.p, (uint32_t)j->attrs.len, &j->set);
	return req_await_commit(rq, r, "bucket", subres_written);
}

static enum verdict
subres_read(struct req *rq)
{
	return req_read_battrs(rq, subres_write);
}

enum verdict
subres_put(struct req *rq)
{
	struct subres_job *j = req_job(rq, sizeof *j, subres_fini);
	const char *why = NULL;
	enum fault f;

	if (!j)
		return req_fail(rq, FAULT_BUSY, NULL);
	j->rq = rq;
	j->read = subres_read;
	j->kind = kind_of(rq->target.op);
	f = subresources[j->kind].from_xml(rq->body, rq->body_len, &j->value, &why);
	if (f != FAULT_NONE)
		return req_fail(rq, f, why);
	return req_go(rq, subres_read);
}

enum verdict
subres_delete(struct req *rq)
{
	struct subres_job *j = req_job(rq, sizeof *j, subres_fini);

	if (!j)
		return req_fail(rq, FAULT_BUSY, NULL);
	j->rq = rq;
	j->read = subres_read;
	j->kind = kind_of(rq->target.op);
	return req_go(rq, subres_read);
}

/* ---- tags that a bucket is made with ---- */

int
create_tags_new(struct req *rq, struct text *tags)
{
	const struct bucket_attrs none = { 0 };
	struct subres_job *j = req_job(rq, sizeof *j, subres_fini);

	if (!j)
		return -EAGAIN;
	j->rq = rq;
	j->kind = BUCKET_TAGGING;
	j->value = *tags;
	*tags = (struct text){ 0 };
	bucket_attrs_replace(&none, j->kind, j->value.p, (uint32_t)j->value.len, &j->attrs);
	return text_ok(&j->attrs) ? 0 : -EAGAIN;
}

void
create_tags_spec(const struct req *rq, struct store_bucket_spec *spec)
{
	const struct subres_job *j = rq->job;

	spec->attrs = j ? j->attrs.p : NULL;
	spec->attrs_len = j ? (uint32_t)j->attrs.len : 0;
}

/* Are those the tags that the bucket has, in whatever order? */
static bool
are_tags(const struct text *tags, const void *there, uint32_t len)
{
	struct text a = { 0 }, b = { 0 };
	bool same;

	tags_to_xml(&a, tags->p, tags->len);
	tags_to_xml(&b, there, len);
	same = text_ok(&a) && text_ok(&b) && a.len == b.len && memcmp(a.p, b.p, a.len) == 0;
	text_free(&a);
	text_free(&b);
	return same;
}

static enum verdict
create_tags_known(struct req *rq)
{
	struct subres_job *j = rq->job;
	const void *there;
	uint32_t len;
	bool same;

	if (rq->battrs.stat.op.result < 0 || !bucket_attrs_find(&rq->battrs, BUCKET_TAGGING, &there, &len))
		return req_go(rq, subres_write);
	same = are_tags(&j->value, there, len);
	bucket_attrs_free(&rq->battrs);
	return same ? req_go(rq, req_reply_step)
		    : req_fail(rq, FAULT_BUCKET_EXISTS, "The bucket exists already, with other tags.");
}

static enum verdict
create_tags_read(struct req *rq)
{
	return req_read_battrs(rq, create_tags_known);
}

enum verdict
create_tags_check(struct req *rq)
{
	struct subres_job *j = rq->job;

	j->read = create_tags_read;
	return req_go(rq, create_tags_read);
}

/* ---- answers that never vary ---- */

static enum verdict
canned_answer(struct req *rq)
{
	const char *why = NULL;
	enum fault f = dialect_canned(rq->target.op, conf_region(rq->rs->env.conf), &rq->out, &why);

	return f != FAULT_NONE ? req_fail(rq, f, why) : req_reply_xml(rq);
}

enum verdict
canned_start(struct req *rq)
{
	return req_need_bucket(rq, canned_answer);
}

/* ... but for this one, which the operator may have declared. */
static enum verdict
encryption_answer(struct req *rq)
{
	if (!rq->rs->env.conf->s3.encrypted_below)
		return req_fail(rq, FAULT_NO_SUCH_ENCRYPTION, NULL);
	xml_encryption(&rq->out);
	return req_reply_xml(rq);
}

enum verdict
encryption_start(struct req *rq)
{
	return req_need_bucket(rq, encryption_answer);
}

static enum fault
judge_encryption(const struct req *rq, const char **ret_why)
{
	if (rq->rs->env.conf->s3.encrypted_below)
		return xml_encryption_parse(rq->body, rq->body_len, ret_why);
	*ret_why = "Nothing is encrypted here: s3.encrypted_below is not set.";
	return FAULT_NOT_IMPLEMENTED;
}

static enum fault
judge(const struct req *rq, const char **ret_why)
{
	static enum fault (*const parsers[OP_NR])(const char *body, size_t len, const char **ret_why) = {
		[OP_PUT_BUCKET_ABAC] = xml_abac_parse,
		[OP_PUT_BUCKET_ACCELERATE] = xml_acceleration_parse,
		[OP_PUT_BUCKET_ACL] = xml_acl_parse,
		[OP_PUT_BUCKET_LOGGING] = xml_logging_parse,
		[OP_PUT_BUCKET_NOTIFICATION] = xml_notifications_parse,
		[OP_PUT_BUCKET_REQUEST_PAYMENT] = xml_payer_parse,
		[OP_PUT_BUCKET_VERSIONING] = xml_versioning_parse,
		[OP_PUT_OBJECT_LOCK] = xml_object_lock_parse,
	};

	if (rq->target.op == OP_PUT_BUCKET_ENCRYPTION)
		return judge_encryption(rq, ret_why);
	check(parsers[rq->target.op]);
	return parsers[rq->target.op](rq->body, rq->body_len, ret_why);
}

/* Asking for what is so anyway is granted; for anything else, refused. */
static enum verdict
canned_judge(struct req *rq)
{
	const char *why = NULL;
	enum fault f = judge(rq, &why);

	return f != FAULT_NONE ? req_fail(rq, f, why) : req_go(rq, req_reply_step);
}

enum verdict
canned_put(struct req *rq)
{
	return req_need_bucket(rq, canned_judge);
}

/* No bucket has one, so it is gone. */
enum verdict
canned_delete(struct req *rq)
{
	return req_need_bucket(rq, req_reply_step);
}
