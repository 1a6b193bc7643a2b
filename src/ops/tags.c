/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object's tags and its access control list.  Tags live among the object's attributes under the name
 * x-amz-tagging; changing them writes the attributes again, against the version that was read, and leaves
 * bytes, ETag and time alone.  The core's thread.
 *
 *   start -> open ... opened -> reply (GET)
 *      ^---- changed -> set ... set -> reply       against a version that is gone: again
 */
#include "ops/ops_int.h"

#include "base/check.h"
#include "s3doc/tags_xml.h"

#include <errno.h>
#include <string.h>

#define TRIES_MAX 16

struct tags_job {
	struct text tags;
	int tries;
};

static enum verdict tags_opened(struct req *rq);
static enum verdict tags_set(struct req *rq);

static void
tags_fini(struct req *rq)
{
	text_free(&((struct tags_job *)rq->job)->tags);
}

static bool
is_not_tags(const char *name, size_t len)
{
	return len != strlen(ATTR_TAGGING) || memcmp(name, ATTR_TAGGING, len) != 0;
}

/* ---- tags ---- */

static enum verdict
tags_open(struct req *rq)
{
	struct store_key k = req_key(rq);

	return req_open(rq, &k, tags_opened);
}

enum verdict
tagging_start(struct req *rq)
{
	struct tags_job *j = req_job(rq, sizeof *j, tags_fini);
	const char *why = NULL;
	enum fault f;
	int nr;

	if (!j)
		return req_fail(rq, FAULT_BUSY, NULL);
	if (rq->target.op == OP_PUT_OBJECT_TAGGING) {
		f = tags_from_xml(rq->body, rq->body_len, TAGS_OBJECT_MAX, &j->tags, &nr, &why);
		if (f != FAULT_NONE)
			return req_fail(rq, f, why);
	}
	return req_go(rq, tags_open);
}

static enum verdict
tags_opened(struct req *rq)
{
	struct tags_job *j = rq->job;
	struct target *t = &rq->target;
	struct store_key k = req_key(rq);
	struct store_del *del;
	size_t len;
	const char *tags;
	int r = rq->obj.op.result;

	if (r < 0)
		return req_fail(rq, fault_of(r), NULL);
	if (t->op == OP_GET_OBJECT_TAGGING) {
		tags = dialect_attr(rq->obj.meta.attrs, rq->obj.meta.attrs_len, ATTR_TAGGING, &len);
		tags_to_xml(&rq->out, tags ? tags : "", tags ? len : 0);
		return req_reply_xml(rq);
	}
	t->attrs_len = 0;
	r = attrs_add_from(rq, rq->obj.meta.attrs, rq->obj.meta.attrs_len, is_not_tags);
	if (r == 0 && j->tags.len)
		r = dialect_attrs_add(t->attrs, &t->attrs_len, DIALECT_ATTRS_MAX, ATTR_TAGGING,
				      strlen(ATTR_TAGGING), j->tags.p, j->tags.len);
	if (r < 0)
		return req_fail(rq, r == -ENOSPC ? FAULT_META_TOO_LARGE : FAULT_DAMAGED, NULL);
	del = req_del_part(rq);
	if (!del)
		return req_fail(rq, FAULT_BUSY, NULL);
	del->op.done = req_on_del;
	r = store_set_attrs(rq->rs->env.store, &k, rq->obj.version, t->attrs, t->attrs_len, del);
	store_close(rq->rs->env.store, &rq->obj);
	return req_await_commit(rq, r, "attributes", tags_set);
}

static enum verdict
tags_set(struct req *rq)
{
	struct tags_job *j = rq->job;
	int r = rq->change->del.op.result;

	if (r == -ESTALE && j->tries++ < TRIES_MAX) {
		rq->phase = PHASE_FRONT;
		return req_go(rq, tags_open);
	}
	if (r < 0)
		return req_fail(rq, r == -ESTALE ? FAULT_CONFLICT : fault_of(r), NULL);
	return req_go(rq, req_reply_step);
}

/* ---- access control lists: the owner's FULL_CONTROL and nothing else ---- */

static enum verdict
acl_opened(struct req *rq)
{
	const char *why = NULL;
	enum fault f;

	if (rq->obj.op.result < 0)
		return req_fail(rq, fault_of(rq->obj.op.result), NULL);
	if (rq->target.op == OP_GET_OBJECT_ACL) {
		xml_acl(&rq->out);
		return req_reply_xml(rq);
	}
	f = xml_acl_parse(rq->body, rq->body_len, &why);
	return f != FAULT_NONE ? req_fail(rq, f, why) : req_go(rq, req_reply_step);
}

enum verdict
object_acl_start(struct req *rq)
{
	struct store_key k = req_key(rq);

	return req_open(rq, &k, acl_opened);
}
