/* SPDX-License-Identifier: Apache-2.0 */
/* DELETE of an object, and the operations on buckets: one call into the store each. */
#include "ops/ops_int.h"

#include "base/age_clock.h"
#include "base/check.h"
#include "base/clock.h"
#include "walk/ttl.h"

#include <errno.h>
#include <string.h>

static enum verdict
delete_done(struct req *rq)
{
	int r = rq->change->del.op.result;

	/* A condition on what is not there fails nothing (docs/s3.md). */
	if (r == -ENOENT)
		r = 0;
	if (r < 0)
		return req_fail(rq, fault_of(r), NULL);
	/* S3 deletes what is not there with success; a scality listener may want to know (protocol.md item
	 * 92). */
	if (r == 0 && rq->listen->dialect == DIALECT_SCALITY && rq->listen->delete_404)
		return req_fail(rq, FAULT_NO_SUCH_KEY, NULL);
	return req_go(rq, req_reply_step);
}

static enum verdict
delete_now(struct req *rq, const struct store_pre *pre)
{
	struct store_del *del = req_del_part(rq);
	struct store_key k = req_key(rq);
	int r;

	if (!del)
		return req_fail(rq, FAULT_BUSY, NULL);
	del->op.done = req_on_del;
	r = store_delete(rq->rs->env.store, &k, pre, del);
	return req_await_commit(rq, r, "delete", delete_done);
}

/* Only if it is as large or as old as the client says: then that very version. */
static enum verdict
delete_opened(struct req *rq)
{
	const struct target *t = &rq->target;
	struct store_pre pre = { .kind = PRE_VERSION, .version = rq->obj.version };
	char etag[48];
	size_t len;
	enum fault f;

	if (rq->obj.op.result == -ENOENT)
		return req_go(rq, req_reply_step);
	if (rq->obj.op.result < 0)
		return req_fail(rq, fault_of(rq->obj.op.result), NULL);
	len = etag_text(&rq->obj.meta.etag, etag);
	f = dialect_conditions(&rq->target, etag, len, rq->obj.meta.mtime_ns / NS_PER_S);
	if (f == FAULT_NONE &&
	    ((t->have_if_match_size && t->if_match_size != rq->obj.size_bytes) ||
	     (t->have_if_match_mtime && t->if_match_mtime_s != rq->obj.meta.mtime_ns / NS_PER_S)))
		f = FAULT_PRECONDITION;
	store_close(rq->rs->env.store, &rq->obj);
	return f != FAULT_NONE ? req_fail(rq, f, NULL) : delete_now(rq, &pre);
}

enum verdict
delete_start(struct req *rq)
{
	struct store_key k = req_key(rq);
	struct store_pre pre;

	if (rq->target.have_if_match_size || rq->target.have_if_match_mtime) {
		return req_open(rq, &k, delete_opened);
	}
	put_fill_pre(&rq->target, &pre);
	return delete_now(rq, &pre);
}

/* Every caller that may make a bucket owns it.  In its first region AWS makes it once more then, and
 * programs that make theirs at every start go by that. */
static enum verdict
bucket_exists(struct req *rq)
{
	if (strcmp(conf_region(rq->rs->env.conf), "us-east-1") != 0)
		return req_fail(rq, FAULT_BUCKET_EXISTS, NULL);
	return rq->job ? create_tags_check(rq) : req_go(rq, req_reply_step);
}

/* ---- expired objects of a bucket that has to be empty ---- */

#define PURGE_MAX 32 /* objects that are removed between two lists */

struct purge {
	struct req *rq;
	struct store_list ls;
	/* the job that the purge interrupts: the tags of CreateBucket; NULL: none */
	void *job;
	void (*job_fini)(struct req *rq);
	uint64_t now_ns;
	bool has_other; /* the bucket has an object that has not expired */
	uint32_t nr, at;
	struct {
		uint16_t len;
		char key[STORE_KEY_MAX];
	} of[PURGE_MAX];
};
_Static_assert(sizeof(struct purge) <= REQ_LARGE_JOB_BYTES, "a job of a request");

static enum verdict purge_next(struct req *rq);
static enum verdict change_again(struct req *rq);

static enum verdict
not_empty(struct req *rq)
{
	bool is_create = rq->target.op == OP_CREATE_BUCKET;

	return req_fail(rq, is_create ? FAULT_BUCKET_STATE : FAULT_BUCKET_NOT_EMPTY, NULL);
}

/* Gives the request the job back that it had before the purge. */
static void
purge_end(struct req *rq)
{
	struct purge *pu = rq->job;

	rq->job = pu->job;
	rq->job_fini = pu->job_fini;
}

static void
purge_fini(struct req *rq)
{
	purge_end(rq);
	if (rq->job_fini)
		rq->job_fini(rq);
}

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct purge *pu = container_of(ls, struct purge, ls);

	pu->has_other |= !e->expires_ns || e->expires_ns > pu->now_ns;
	memcpy(pu->of[pu->nr].key, e->name, e->name_len);
	pu->of[pu->nr].len = (uint16_t)e->name_len;
	return ++pu->nr < PURGE_MAX && !pu->has_other;
}

static void
on_list(struct store_op *op)
{
	req_on_store(container_of(container_of(op, struct store_list, op), struct purge, ls)->rq);
}

static enum verdict
purge_listed(struct req *rq)
{
	struct purge *pu = rq->job;

	if (pu->ls.op.result < 0)
		return req_fail(rq, fault_of(pu->ls.op.result), NULL);
	if (pu->has_other)
		return not_empty(rq);
	if (pu->nr)
		return req_go(rq, purge_next);
	purge_end(rq);
	return req_go(rq, change_again);
}

static enum verdict
purge_list(struct req *rq)
{
	const struct target *t = &rq->target;
	struct purge *pu = rq->job;

	pu->nr = pu->at = 0;
	pu->now_ns = age_clock_ns();
	pu->ls = (struct store_list){ .bucket = t->bucket,
				      .bucket_len = t->bucket_len,
				      .max = PURGE_MAX,
				      .shows_gone = true,
				      .entry = on_entry,
				      .op.done = on_list };
	rq->phase = PHASE_FRONT;
	return req_await(rq, store_list(rq->rs->env.store, &pu->ls), "list", purge_listed);
}

static enum verdict
purge_removed(struct req *rq)
{
	struct purge *pu = rq->job;
	int r = rq->change->del.op.result;

	if (r == 1)
		ttl_removed(rq->rs->env.stats, rq->target.bucket, rq->target.bucket_len, pu->of[pu->at].key,
			    pu->of[pu->at].len);
	if (r < 0 && r != -ENOENT && r != -ESTALE)
		return req_fail(rq, fault_of(r), NULL);
	return req_go(rq, ++pu->at < pu->nr ? purge_next : purge_list);
}

static enum verdict
purge_next(struct req *rq)
{
	struct purge *pu = rq->job;
	struct store_del *del = &rq->change->del;
	const struct store_pre pre = { .kind = PRE_EXPIRED, .expired_ns = pu->now_ns };
	const struct store_key k = { .bucket = rq->target.bucket,
				     .bucket_len = rq->target.bucket_len,
				     .key = pu->of[pu->at].key,
				     .key_len = pu->of[pu->at].len };

	del->op.done = req_on_del;
	return req_await_commit(rq, store_delete(rq->rs->env.store, &k, &pre, del), "delete", purge_removed);
}

/* The store has found objects in the bucket that has to be empty: expired ones are no obstacle. */
static enum verdict
purge(struct req *rq)
{
	void *job = rq->job;
	struct purge *pu;

	rq->job = NULL;
	pu = req_job(rq, sizeof *pu, purge_fini);
	if (!pu) {
		rq->job = job;
		return req_fail(rq, FAULT_BUSY, NULL);
	}
	pu->job = job;
	pu->rq = rq;
	return req_go(rq, purge_list);
}

/* may_purge: expired objects were not removed yet. */
static enum verdict
bucket_failed(struct req *rq, int r, bool may_purge)
{
	switch (r) {
	case -EEXIST:
		return bucket_exists(rq);
	case -EDOM:
		return req_fail(
			rq, FAULT_BAD_ARGUMENT,
			"Two copies of each object (x-gantry-copies, store.default_copies) want two disks "
			"that stay, and the store has one.");
	case -EOPNOTSUPP:
		return req_fail(rq, FAULT_BAD_ARGUMENT,
				"This store keeps its objects on a cluster, which makes the copies: "
				"x-gantry-copies can only be 1.");
	case -ENOTEMPTY:
		return may_purge ? purge(rq) : not_empty(rq);
	default:
		return req_fail(rq, fault_of(r), NULL);
	}
}

static enum verdict
bucket_ended(struct req *rq, bool may_purge)
{
	int r = rq->change->del.op.result;

	if (r < 0)
		return bucket_failed(rq, r, may_purge);
	/* With x-gantry-copies it may have been there. */
	return rq->job && rq->target.copies ? create_tags_check(rq) : req_go(rq, req_reply_step);
}

static enum verdict
bucket_done(struct req *rq)
{
	return bucket_ended(rq, true);
}

static enum verdict
bucket_done_again(struct req *rq)
{
	return bucket_ended(rq, false);
}

/* Reads what the request says of the bucket to be. */
static enum fault
create_parse(struct req *rq, const char **ret_why)
{
	const char *region = rq->rs->env.conf->auth.region;
	struct text tags = { 0 };
	enum fault f = xml_create_bucket_parse(
		rq->body, rq->body_len, strcmp(region, CONF_ANY_REGION) == 0 ? NULL : region, &tags, ret_why);

	if (f == FAULT_NONE && !text_ok(&tags))
		f = FAULT_BUSY;
	if (f == FAULT_NONE && tags.len && create_tags_new(rq, &tags) < 0)
		f = FAULT_BUSY;
	text_free(&tags);
	return f;
}

/* Makes or removes the bucket. may_purge: expired objects were not removed yet. */
static enum verdict
change_bucket(struct req *rq, bool may_purge)
{
	struct store_port *p = rq->rs->env.store;
	struct store_del *del = &rq->change->del;
	const struct target *t = &rq->target;
	struct store_bucket_spec spec = { .copies = t->copies };
	int r;

	del->op.done = req_on_del;
	if (t->op == OP_CREATE_BUCKET) {
		create_tags_spec(rq, &spec);
		r = store_bucket_create_as(p, t->bucket, t->bucket_len, &spec, del);
	} else {
		r = store_bucket_delete(p, t->bucket, t->bucket_len, del);
	}
	if (r < 0)
		return bucket_failed(rq, r, may_purge);
	return req_await_commit(rq, r, "bucket", may_purge ? bucket_done : bucket_done_again);
}

static enum verdict
change_again(struct req *rq)
{
	return change_bucket(rq, false);
}

enum verdict
bucket_start(struct req *rq)
{
	const char *why = NULL;
	enum fault f;

	if (rq->target.op == OP_HEAD_BUCKET)
		return req_need_bucket(rq, req_reply_step);
	if (!req_del_part(rq))
		return req_fail(rq, FAULT_BUSY, NULL);
	if (rq->target.op == OP_CREATE_BUCKET) {
		f = create_parse(rq, &why);
		if (f != FAULT_NONE)
			return req_fail(rq, f, why);
	}
	return change_bucket(rq, true);
}

/* "17/100"; "17" where there is no bound. */
static void
quota_header(struct req *rq, const char *name, uint64_t used, uint64_t max)
{
	if (max == STORE_UNBOUNDED)
		reply_header(rq, name, "%llu", (unsigned long long)used);
	else
		reply_header(rq, name, "%llu/%llu", (unsigned long long)used, (unsigned long long)max);
}

static void
bucket_headers(struct req *rq, const struct outcome *o, enum outcome_kind kind)
{
	/* Who asks for copies goes by it: a server that knows nothing of them makes a bucket, too. */
	if (rq->target.copies && (kind == OUT_DONE || rq->fault == FAULT_BUCKET_EXISTS))
		reply_number(rq, "x-gantry-copies", rq->target.copies);
	if (kind != OUT_DONE)
		return;
	if (rq->target.op == OP_CREATE_BUCKET)
		reply_header(rq, reply_name(rq, FIELD_LOCATION), "/%s", rq->target.bucket);
	if (rq->target.op != OP_HEAD_BUCKET)
		return;
	reply_number(rq, "x-gantry-copies", rq->stat.copies);
	if (!rq->stat.has_quota)
		return;
	quota_header(rq, "x-gantry-quota-objects", rq->stat.used.objects, rq->stat.max.objects);
	quota_header(rq, "x-gantry-quota-bytes", rq->stat.used.bytes, rq->stat.max.bytes);
	quota_header(rq, "x-gantry-quota-uploads", rq->stat.used.uploads, rq->stat.max.uploads);
}

/* Of HeadBucket and CreateBucket. */
const struct op_hooks bucket_hooks = { .headers = bucket_headers };
