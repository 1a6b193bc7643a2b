/* SPDX-License-Identifier: Apache-2.0 */
/* Decides operations of the object model; see decide.h. */
#include "model/decide.h"

#include "base/check.h"
#include "base/crc64.h"

#include <errno.h>
#include <string.h>

static bool
same_etag(const struct store_etag *a, const struct store_etag *b)
{
	return a->parts == b->parts && memcmp(a->sum, b->sum, sizeof a->sum) == 0;
}

/* ---- preconditions ---- */

static bool
is_named(const struct store_pre *pre, const struct store_etag *e)
{
	for (int i = 0; i < pre->etag_nr && i < STORE_PRE_ETAGS; i++) {
		if (same_etag(&pre->etags[i], e))
			return true;
	}
	return false;
}

static int
judge_kind(const struct store_pre *pre, const struct model_record *there)
{
	switch (pre->kind) {
	case PRE_ABSENT:
		return there ? -EEXIST : 0;
	case PRE_MATCH_ANY:
		return there ? 0 : -ENOENT;
	case PRE_MATCH:
		return !there ? -ENOENT : is_named(pre, &there->etag) ? 0 : -ESTALE;
	case PRE_NONE_MATCH:
		return there && is_named(pre, &there->etag) ? -EEXIST : 0;
	case PRE_VERSION:
		return !there ? -ENOENT : there->version == pre->version ? 0 : -ESTALE;
	case PRE_EXPIRED:
		return there && !model_is_there(there, pre->expired_ns) ? 0 : -ESTALE;
	default:
		return 0;
	}
}

/* Compares a precondition with an object; there NULL: no object. The condition of the caller precedes `keep`: a
 * caller that requires an absent object learns that it exists. */
static int
judge_pre(const struct store_pre *pre, const struct model_record *there)
{
	int e = judge_kind(pre, there);

	return e == 0 && pre->keep && there ? -EPERM : e;
}

/* ---- lists of parts ---- */

int
model_check_list(struct store_complete *c)
{
	if (c->part_nr == 0 || c->part_nr > STORE_PART_NR_MAX || c->meta.attrs_len > STORE_ATTRS_MAX ||
	    c->pre.etag_nr > STORE_PRE_ETAGS)
		return -EINVAL;
	for (uint32_t i = 0; i < c->part_nr; i++) {
		c->bad = i;
		if (c->parts[i].number < 1 || c->parts[i].number > STORE_PART_NR_MAX ||
		    (i && c->parts[i].number <= c->parts[i - 1].number))
			return -EINVAL;
	}
	c->bad = 0;
	return 0;
}

/* Returns true if the ETag and version in an entry of a list are those of the part; the number is not compared. */
static bool
is_part(const struct store_part_ref *ref, const struct model_record *part)
{
	return same_etag(&ref->etag, &part->etag) && (!ref->version || ref->version == part->version);
}

int
model_judge_parts(const struct store_complete *c, struct model_view *v, bool adds_crc,
		  struct model_answer *ret)
{
	check(c->part_nr > 0 && c->part_nr <= STORE_PART_NR_MAX);
	ret->size_bytes = ret->crc64 = 0;
	for (uint32_t i = 0; i < c->part_nr; i++) {
		struct model_record part = { 0 };
		int r = v->find(v, MODEL_PART, c->parts[i].number, &part);

		ret->bad = i;
		if (r < 0)
			return r;
		if (r == 0 || !is_part(&c->parts[i], &part))
			return -EBADR;
		if (i + 1 < c->part_nr && part.size_bytes < c->part_min_bytes)
			return -EMSGSIZE;
		if (adds_crc && part.size_bytes)
			ret->crc64 = ret->size_bytes
					     ? crc64_nvme_combine(ret->crc64, part.crc64, part.size_bytes)
					     : part.crc64;
		ret->size_bytes += part.size_bytes;
	}
	ret->bad = 0;
	if (c->have_expect_size && c->expect_size_bytes != ret->size_bytes)
		return -ERANGE;
	return adds_crc && c->have_expect_crc64 && c->expect_crc64 != ret->crc64 ? -EILSEQ : 0;
}

void
model_tell_object(struct store_complete *c, const struct model_record *object, uint64_t mtime_ns)
{
	c->version = object->version;
	c->size_bytes = object->size_bytes;
	c->crc64 = object->crc64;
	c->mtime_ns = mtime_ns;
	c->etag = object->etag;
}

bool
model_was_done(struct store_complete *c, const struct model_record *object, uint64_t mtime_ns,
	       uint32_t part_nr, struct model_view *parts)
{
	const struct store_complete list = { .parts = c->parts, .part_nr = c->part_nr };
	struct model_answer a;

	if (part_nr != c->part_nr || model_judge_parts(&list, parts, false, &a) < 0)
		return false;
	model_tell_object(c, object, mtime_ns);
	return c->was_done = true;
}

/* ---- usage ---- */

static struct quota_change
usage_of(enum model_kind kind, const uint64_t *size_bytes)
{
	if (!size_bytes)
		return (struct quota_change){ 0 };
	switch (kind) {
	case MODEL_OBJECT:
		return (struct quota_change){ .objects = 1, .bytes = (int64_t)*size_bytes };
	case MODEL_UPLOAD:
		return (struct quota_change){ .uploads = 1, .bytes = (int64_t)*size_bytes };
	default:
		check(kind == MODEL_PART);
		return (struct quota_change){ .bytes = (int64_t)quota_part_bytes(*size_bytes) };
	}
}

struct quota_change
model_usage(enum model_kind kind, const uint64_t *size_bytes, const uint64_t *old_bytes)
{
	struct quota_change change = usage_of(kind, size_bytes), old = usage_of(kind, old_bytes);

	old = quota_negative(&old);
	quota_add(&change, &old);
	return change;
}

/* ---- operations ---- */

/* A decision in progress. */
struct decision {
	const struct model_op *op;
	struct model_view *view;
	struct model_answer *answer;
	struct model_record bucket;
	bool has_bucket;
};

/* Finds the record that the operation sets or removes. Returns 0 or an error of the view. */
static int
find_old(struct decision *d, enum model_kind kind)
{
	int r = d->view->find(d->view, kind, d->op->part_number, &d->answer->old);

	d->answer->replaces = r > 0;
	return r < 0 ? r : 0;
}

/* Returns the change of the usage when a record of this size (NULL: none) replaces the old one. */
static struct quota_change
usage_with(const struct decision *d, enum model_kind kind, const uint64_t *size_bytes)
{
	const struct model_answer *a = d->answer;

	return model_usage(kind, size_bytes, a->replaces ? &a->old.size_bytes : NULL);
}

/* Returns the object that is there for preconditions, or NULL. */
static const struct model_record *
object_there(const struct decision *d)
{
	const struct model_answer *a = d->answer;

	return a->replaces && model_is_there(&a->old, d->op->now_ns) ? &a->old : NULL;
}

static int
judge_object(const struct decision *d)
{
	const struct store_pre *pre = d->op->pre;

	if (pre && pre->kind == PRE_EXPIRED)
		return d->answer->replaces ? judge_pre(pre, &d->answer->old) : -ENOENT;
	return pre ? judge_pre(pre, object_there(d)) : 0;
}

/* Returns 0 if the upload of the operation exists and belongs to this bucket; -ENOENT; or an error of the view. */
static int
find_upload(struct decision *d, struct model_record *ret_upload)
{
	int r = d->view->find(d->view, MODEL_UPLOAD, 0, ret_upload);

	return r < 0 ? r : r > 0 && model_is_of(ret_upload->version, d->bucket.version) ? 0 : -ENOENT;
}

/* Decides a PUT of an object of this size, or (NULL) its removal. */
static int
decide_object(struct decision *d, const uint64_t *size_bytes)
{
	int e = find_old(d, MODEL_OBJECT);

	if (e == 0)
		e = judge_object(d);
	d->answer->usage = usage_with(d, MODEL_OBJECT, size_bytes);
	return e;
}

/* Returns the result of an allowed removal: 0 if the object was absent for readers, otherwise 1. */
static int
was_removed(const struct decision *d)
{
	const struct store_pre *pre = d->op->pre;

	return (pre && pre->kind == PRE_EXPIRED) || object_there(d);
}

static int
decide_set_attrs(struct decision *d)
{
	int e = find_old(d, MODEL_OBJECT);

	if (e == 0 && !object_there(d))
		e = -ENOENT;
	return e == 0 && d->op->version && d->op->version != d->answer->old.version ? -ESTALE : e;
}

static int
decide_put_part(struct decision *d)
{
	struct model_record upload;
	int e = find_upload(d, &upload);

	if (e == 0)
		e = find_old(d, MODEL_PART);
	d->answer->usage = usage_with(d, MODEL_PART, &d->op->size_bytes);
	return e;
}

static int
decide_complete(struct decision *d)
{
	struct model_answer *a = d->answer;
	struct model_record upload = { 0 };
	struct quota_change ended;
	int e = find_upload(d, &upload);

	if (e == 0)
		e = find_old(d, MODEL_OBJECT);
	if (e == 0)
		e = judge_object(d);
	if (e == 0 && d->op->complete)
		e = model_judge_parts(d->op->complete, d->view, d->op->adds_crc, a);
	a->usage = usage_with(d, MODEL_OBJECT, &a->size_bytes);
	ended = model_usage(MODEL_UPLOAD, NULL, &upload.size_bytes);
	quota_add(&a->usage, &ended);
	return e;
}

static int
decide_abort(struct decision *d)
{
	struct model_answer *a = d->answer;
	int e = find_upload(d, &a->old);

	a->replaces = e == 0;
	a->usage = usage_with(d, MODEL_UPLOAD, NULL);
	return e;
}

/* Returns 0 if the bucket has no object, and, with_uploads, no upload; -ENOTEMPTY; or an error of the view. */
static int
is_empty(struct decision *d, bool with_uploads)
{
	int r = d->view->has_any(d->view, MODEL_OBJECT, 0);

	if (r == 0 && with_uploads)
		r = d->view->has_any(d->view, MODEL_UPLOAD, d->bucket.version);
	return r > 0 ? -ENOTEMPTY : r;
}

static int
decide_bucket_attrs(struct decision *d)
{
	const struct model_op *op = d->op;
	struct model_answer *a = d->answer;
	int e = find_old(d, MODEL_BUCKET_ATTRS);
	bool are_own = a->replaces && model_is_of(a->old.version, d->bucket.version);

	if (e == 0 && op->version != STORE_VERSION_ANY && op->version != (are_own ? a->old.version : 0))
		e = -ESTALE;
	return e;
}

/* Decides an operation on a bucket. */
static int
decide_bucket(struct decision *d)
{
	const struct model_op *op = d->op;

	if (op->act == MODEL_MAKE_BUCKET)
		return d->has_bucket ? -EEXIST : 0;
	if (!d->has_bucket)
		return -ENXIO;
	d->answer->replaces = true;
	d->answer->old = d->bucket;
	switch (op->act) {
	case MODEL_REMOVE_BUCKET:
		return is_empty(d, false);
	case MODEL_CLOSE_BUCKET:
		return is_empty(d, op->is_alone);
	case MODEL_SET_COPIES:
		return op->copies == d->bucket.copies ? 0 : is_empty(d, true);
	default:
		check(op->act == MODEL_SET_BUCKET_ATTRS);
		return decide_bucket_attrs(d);
	}
}

/* Decides an operation on a key. A key that was placed for another number of copies was looked up before the
 * bucket was made, or before the number changed: the caller looks it up again. */
static int
decide_key(struct decision *d)
{
	const struct model_op *op = d->op;
	bool removes = op->act == MODEL_DELETE || op->act == MODEL_ABORT;

	if (!d->has_bucket)
		return -ENXIO;
	if (op->copies && !removes && (op->copies > 1) != (d->bucket.copies > 1))
		return -EAGAIN;
	switch (op->act) {
	case MODEL_PUT:
		return decide_object(d, &op->size_bytes);
	case MODEL_DELETE:
		return decide_object(d, NULL);
	case MODEL_SET_ATTRS:
		return decide_set_attrs(d);
	case MODEL_CREATE_UPLOAD:
		d->answer->usage = model_usage(MODEL_UPLOAD, &d->op->size_bytes, NULL);
		return op->version && op->version != d->bucket.version ? -ESTALE : 0;
	case MODEL_PUT_PART:
		return decide_put_part(d);
	case MODEL_COMPLETE:
		return decide_complete(d);
	default:
		check(op->act == MODEL_ABORT);
		return decide_abort(d);
	}
}

/* Returns true if an allowed operation changes no record. */
static bool
is_idle(const struct decision *d)
{
	const struct model_op *op = d->op;

	switch (op->act) {
	case MODEL_DELETE:
		return !d->answer->replaces;
	case MODEL_SET_BUCKET_ATTRS:
		return op->removes && !d->answer->replaces;
	case MODEL_SET_COPIES:
		return op->copies == d->bucket.copies;
	default:
		return op->act == MODEL_CLOSE_BUCKET;
	}
}

bool
model_decide(const struct model_op *op, struct model_view *v, struct model_answer *ret)
{
	struct decision d = { .op = op, .view = v, .answer = ret };
	int r;

	check(op->act >= 0 && op->act < MODEL_ACTS);
	*ret = (struct model_answer){ 0 };
	r = v->find(v, MODEL_BUCKET, 0, &d.bucket);
	d.has_bucket = r > 0;
	if (r >= 0)
		r = op->act < MODEL_MAKE_BUCKET ? decide_key(&d) : decide_bucket(&d);
	ret->result = r;
	if (r == 0 && !is_idle(&d)) {
		ret->result = op->act == MODEL_DELETE ? was_removed(&d) : 0;
		return true;
	}
	ret->usage = (struct quota_change){ 0 };
	return false;
}
