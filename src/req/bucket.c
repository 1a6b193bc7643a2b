/* DELETE of an object, and the operations on buckets: one call into the store each. */
#include "req/req_int.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
on_del(struct store_op *op)
{
	req_on_store(container_of(container_of(op, struct store_del, op), struct req, del));
}

static enum verdict
delete_done(struct req *rq)
{
	int r = rq->del.op.result;

	if (r < 0)
		return req_fail(rq, fault_of(r), NULL);
	/* S3 deletes what is not there with success; a scality listener may want to know (protocol.md item
	 * 92). */
	if (r == 0 && rq->listen->dialect == DIALECT_SCALITY && rq->listen->delete_404)
		return req_fail(rq, FAULT_NO_SUCH_KEY, NULL);
	return req_go(rq, req_reply_step);
}

enum verdict
delete_start(struct req *rq)
{
	struct store_key k = req_key(rq);
	struct store_pre pre;
	int r;

	put_fill_pre(&rq->target, &pre);
	rq->del.op.done = on_del;
	r = store_delete(rq->rs->env.store, &k, &pre, &rq->del);
	if (r >= 0)
		rq->phase = PHASE_COMMIT;
	return req_await(rq, r, "delete", delete_done);
}

static enum verdict
bucket_done(struct req *rq)
{
	int r = rq->del.op.result;

	if (r == -EEXIST)
		return req_fail(rq, FAULT_BUCKET_EXISTS, NULL);
	if (r < 0)
		return req_fail(rq, fault_of(r), NULL);
	return req_go(rq, req_reply_step);
}

/* ---- the list of buckets
 * --------------------------------------------------------------------------------------------- */

/* Grows by doubling: this is not the data path, and a page of buckets has no fixed size. */
struct bucket_page {
	struct store_list ls;
	struct req *rq;
	size_t used, cap;
	int err;
	char after[STORE_BUCKET_MAX + 1];
};

static bool
page_room(struct bucket_page *pg)
{
	char *bigger;

	if (pg->cap - pg->used >= 1024)
		return true;
	bigger = realloc(pg->rq->big_text, pg->cap * 2);
	if (!bigger) {
		pg->err = -ENOMEM;
		return false;
	}
	pg->rq->big_text = bigger;
	pg->cap *= 2;
	return true;
}

static bool
on_bucket(struct store_list *ls, const struct store_entry *e)
{
	struct bucket_page *pg = container_of(ls, struct bucket_page, ls);

	/* Names that S3 does not allow belong to scality listeners. */
	if (e->name_len == 0 || e->name[0] == '.')
		return true;
	if (!page_room(pg))
		return false;
	pg->used += dialect_buckets_entry(pg->rq->big_text + pg->used, pg->cap - pg->used, e->name,
					  e->name_len, e->mtime_ns);
	return true;
}

static void
on_list(struct store_op *op)
{
	struct bucket_page *pg =
		container_of(container_of(op, struct store_list, op), struct bucket_page, ls);

	req_on_store(pg->rq);
}

static enum verdict
list_done(struct req *rq)
{
	struct bucket_page *pg = rq->page;
	int err = pg->err ? pg->err : pg->ls.op.result < 0 ? pg->ls.op.result : 0;

	if (err == 0 && page_room(pg)) {
		pg->used += dialect_buckets_end(rq->big_text + pg->used, pg->cap - pg->used);
		rq->reply.body = REPLY_TEXT;
		rq->reply.text = rq->big_text;
		rq->reply.len_bytes = pg->used;
	}
	rq->page = NULL;
	free(pg);
	return err < 0 ? req_fail(rq, fault_of(err), NULL) : req_go(rq, req_reply_step);
}

static enum verdict
list_start(struct req *rq)
{
	struct bucket_page *pg = calloc(1, sizeof *pg);
	int r;

	if (!pg)
		return req_fail(rq, FAULT_BUSY, NULL);
	rq->page = pg;
	pg->rq = rq;
	pg->cap = 16384;
	rq->big_text = malloc(pg->cap);
	if (!rq->big_text)
		return req_fail(rq, FAULT_BUSY, NULL);
	pg->used = dialect_buckets_begin(rq->big_text, pg->cap);
	pg->ls.max = 10000; /* as many as an S3 account may have */
	pg->ls.entry = on_bucket;
	pg->ls.op.done = on_list;
	r = store_list(rq->rs->env.store, &pg->ls);
	/* Not cancellable, and over soon. */
	if (r >= 0)
		rq->phase = PHASE_COMMIT;
	return req_await(rq, r, "list", list_done);
}

enum verdict
bucket_start(struct req *rq)
{
	struct store_port *p = rq->rs->env.store;
	const struct target *t = &rq->target;
	int r;

	rq->del.op.done = on_del;
	switch (t->op) {
	case OP_LIST_BUCKETS:
		return req_go(rq, list_start);
	case OP_HEAD_BUCKET:
		r = store_bucket_head(p, t->bucket, t->bucket_len, NULL);
		return r < 0 ? req_fail(rq, fault_of(r), NULL) : req_go(rq, req_reply_step);
	case OP_CREATE_BUCKET:
		r = store_bucket_create(p, t->bucket, t->bucket_len, &rq->del);
		break;
	default:
		r = store_bucket_delete(p, t->bucket, t->bucket_len, &rq->del);
		break;
	}
	if (r == -EEXIST)
		return req_fail(rq, FAULT_BUCKET_EXISTS, NULL);
	if (r >= 0)
		rq->phase = PHASE_COMMIT;
	return req_await(rq, r, "bucket", bucket_done);
}
