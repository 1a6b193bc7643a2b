/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core of the machine, below everything else of req/ and ops/: how a step waits, wakes, fails and is
 * cancelled.  Nothing here calls a step; req.c runs them.  The core's thread.
 *
 * Failing, timing out or losing the client frees nothing: it marks the request and cancels what can be
 * cancelled; the drain (drain.c) waits until nothing is in flight; one place (req_free) releases.
 */
#include "req/machine.h"

#include "base/check.h"

#include <errno.h>

/* ---- waiting ---- */

void
req_wake(struct req *rq)
{
	check(rq->magic == REQ_MAGIC);
	if (!list_linked(&rq->ready))
		list_push_tail(&rq->rs->ready, &rq->ready);
}

enum verdict
req_await_to(struct req *rq, int r, const char *what, step_fn next, const char *name)
{
	if (r < 0)
		return req_fail(rq, fault_of(r), NULL);
	if (r > 0)
		return req_go_to(rq, next, name);
	rq->holds++;
	rq->awaiting = true;
	return req_wait_to(rq, what, next, name);
}

enum verdict
req_await_commit_to(struct req *rq, int r, const char *what, step_fn next, const char *name)
{
	if (r >= 0)
		rq->phase = PHASE_COMMIT;
	return req_await_to(rq, r, what, next, name);
}

enum verdict
req_open_to(struct req *rq, const struct store_key *k, step_fn next, const char *name)
{
	rq->obj.op.done = req_on_obj;
	rq->obj.op.result = 0;
	return req_await_to(rq, store_open(rq->rs->env.store, k, &rq->obj), "open", next, name);
}

enum verdict
req_open_to_read_to(struct req *rq, const struct store_key *k, uint64_t want, step_fn next, const char *name)
{
	rq->obj.op.done = req_on_obj;
	rq->obj.op.result = 0;
	return req_await_to(rq, store_open_to_read(rq->rs->env.store, k, want, &rq->obj), "open", next, name);
}

struct store_key
req_key(const struct req *rq)
{
	return (struct store_key){ .bucket = rq->target.bucket,
				   .bucket_len = rq->target.bucket_len,
				   .key = rq->target.key,
				   .key_len = rq->target.key_len };
}

static void
on_stat(struct store_op *op)
{
	req_on_store(container_of(container_of(op, struct store_stat, op), struct req, stat));
}

static void
on_battrs(struct store_op *op)
{
	req_on_store(container_of(container_of(op, struct store_stat, op), struct req, battrs.stat));
}

static enum verdict
bucket_seen(struct req *rq)
{
	int r = rq->stat.op.result;

	return r < 0 ? req_fail(rq, fault_of(r), NULL) : req_go_to(rq, rq->bucket_next, rq->bucket_next_name);
}

enum verdict
req_need_bucket_to(struct req *rq, step_fn next, const char *name)
{
	rq->bucket_next = next;
	rq->bucket_next_name = name;
	rq->stat.op.done = on_stat;
	rq->stat.op.result = 0;
	return req_await(
		rq, store_bucket_head(rq->rs->env.store, rq->target.bucket, rq->target.bucket_len, &rq->stat),
		"bucket", bucket_seen);
}

enum verdict
req_expect_bucket_to(struct req *rq, step_fn next, const char *name)
{
	if (store_bucket_was_there(rq->rs->env.store, rq->target.bucket, rq->target.bucket_len))
		return req_go_to(rq, next, name);
	return req_need_bucket_to(rq, next, name);
}

enum verdict
req_stat_upload_to(struct req *rq, step_fn next, const char *name)
{
	struct target *t = &rq->target;
	struct store_key k = req_key(rq);
	int r;

	rq->stat.op.done = on_stat;
	rq->stat.op.result = 0;
	rq->stat.attrs_len = 0;
	r = store_upload_stat(rq->rs->env.store, &k, t->upload_id, t->attrs, DIALECT_ATTRS_MAX, &rq->stat);
	return req_await_to(rq, r, "upload", next, name);
}

enum verdict
req_read_battrs_to(struct req *rq, step_fn next, const char *name)
{
	const struct target *t = &rq->target;
	int r;

	bucket_attrs_free(&rq->battrs);
	rq->battrs.stat.op.done = on_battrs;
	r = bucket_attrs_read(rq->rs->env.store, t->bucket, t->bucket_len, &rq->battrs);
	if (r < 0) {
		rq->battrs.stat.op.result = r;
		return req_go_to(rq, next, name);
	}
	return req_await_to(rq, r, "bucket", next, name);
}

void
req_on_store(struct req *rq)
{
	rq->holds--;
	rq->awaiting = false;
	req_wake(rq);
}

void
req_on_obj(struct store_op *op)
{
	req_on_store(container_of(container_of(op, struct store_obj, op), struct req, obj));
}

void
req_on_put(struct store_op *op)
{
	req_on_store(container_of(container_of(op, struct store_put, op), struct req_change, put)->rq);
}

void
req_on_del(struct store_op *op)
{
	req_on_store(container_of(container_of(op, struct store_del, op), struct req_change, del)->rq);
}

/* ---- failing ---- */

enum verdict
req_fail(struct req *rq, enum fault f, const char *why)
{
	if (rq->fault == FAULT_NONE) {
		rq->fault = f;
		rq->why = why;
	}
	if (f == FAULT_BUSY)
		stats_event(rq->rs->env.stats, STATS_QUEUE_FULL);
	return req_go_to(rq, rq->rs->drain, "drain");
}

/*
 * What is going on is to end for f.  Depending on what it waits for that happens now (queues), soon (flushing
 * work requests, disk operations under way) or not at all (a commit: the reply leaves and the request stays
 * until the store is done).
 */
void
req_cancel(struct req *rq, enum fault f, const char *why)
{
	if (rq->replied) {
		if (rq->reply.body == REPLY_STREAM && rq->xfer.pool)
			xfer_cancel(&rq->xfer, -ECANCELED);
		return;
	}
	if (rq->phase == PHASE_COMMIT && rq->holds == 0)
		return; /* it is done: the step that says so is about to run */
	if (rq->fault == FAULT_NONE) {
		rq->fault = f;
		rq->why = why;
	}
	if (rq->phase == PHASE_COMMIT) {
		/* The outcome will be known to nobody; the store's completion finds the request detached. */
		rq->detached = true;
		rq->awaiting = false;
		rq->step = rq->rs->drain;
		req_wake(rq);
		return;
	}
	if (rq->holds > 0)
		return; /* a lookup or the like: ends by itself, the step then sees the fault */
	if (rq->lease_waiting) {
		chan_lease_cancel(rq->rs->env.chan, &rq->lease);
		rq->lease_waiting = false;
	}
	rq->step = rq->rs->drain;
	req_wake(rq);
}
