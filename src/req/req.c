/*
 * The machine that runs requests: pool, ready list, deadlines, cancelling and draining.  The steps themselves
 * are in front.c, get.c, put.c, bucket.c; the reply is put together in reply.c.
 *
 * Failing, timing out or losing the client frees nothing: it marks the request and cancels what can be
 * cancelled; the drain waits until nothing is in flight; one place (req_free) releases.
 */
#include "req/machine.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static enum verdict drain(struct req *rq);
static enum verdict drained(struct req *rq);

/* ---- life of the pool ---- */

int
reqs_new(const struct req_env *env, struct reqs **ret_reqs)
{
	struct reqs *rs = calloc(1, sizeof *rs);

	if (!rs)
		return -ENOMEM;
	rs->env = *env;
	rs->nr = env->conf->limits.requests;
	rs->pool = calloc((size_t)rs->nr, sizeof *rs->pool);
	if (!rs->pool || getrandom(rs->rng, sizeof rs->rng, 0) != sizeof rs->rng ||
	    getrandom(&rs->id_salt, sizeof rs->id_salt, 0) != sizeof rs->id_salt) {
		free(rs->pool);
		free(rs);
		return -ENOMEM;
	}
	list_init(&rs->free);
	list_init(&rs->live);
	list_init(&rs->ready);
	for (int i = 0; i < rs->nr; i++)
		list_push_tail(&rs->free, &rs->pool[i].link);
	xfer_pool_init(&rs->pieces, env->bufs, BUF_LARGE, env->conf->limits.pieces_per_request,
		       env->conf->limits.queue);
	xfer_pool_init(&rs->http_pieces, env->http_bufs, BUF_SMALL, env->conf->limits.pieces_per_request,
		       env->conf->limits.queue);
	*ret_reqs = rs;
	return 0;
}

void
reqs_free(struct reqs *rs)
{
	if (!rs)
		return;
	check(rs->live_nr == 0);
	reqs_set_conf(rs, NULL);
	for (int i = 0; i < rs->nr; i++)
		digest_fini(&rs->pool[i].digest);
	free(rs->pool);
	free(rs);
}

int
reqs_live(const struct reqs *rs)
{
	return rs->live_nr;
}

void
reqs_drain(struct reqs *rs, bool on)
{
	rs->draining = on;
}

/* Everything that a request may hold is given back here and nowhere else;
 * each part accepts "never started". */
static void
req_free(struct req *rq)
{
	struct reqs *rs = rq->rs;

	check(rq->holds == 0);
	check(rq->lease.outstanding == 0);
	timer_disarm(rs->env.timers, &rq->deadline);
	timer_disarm(rs->env.timers, &rq->linger);
	xfer_fini(&rq->xfer);
	lease_release(rq);
	store_put_abort(rs->env.store, &rq->put);
	store_close(rs->env.store, &rq->obj);
	req_text_free(rq);
	identity_put(&rq->identity);
	req_drop_conf(rq);
	rq->magic = 0;
	if (list_linked(&rq->ready))
		list_del(&rq->ready);
	list_del(&rq->link);
	rs->live_nr--;
	/* Head: the request that was used last is still in the cache. */
	list_push_head(&rs->free, &rq->link);
}

static void
free_if_over(struct req *rq)
{
	if (rq->ended && rq->replied && rq->holds == 0)
		req_free(rq);
}

/* ---- running ---- */

static void
req_run(struct req *rq)
{
	enum verdict v;

	if (rq->was_waiting)
		req_clock_wait(rq);
	do {
		rq->wait = NULL;
		/* Cancelled while it waited for something that could not be stopped. */
		if (rq->fault != FAULT_NONE && rq->phase < PHASE_COMMIT && rq->step != drained &&
		    rq->step != req_reply_step)
			rq->step = drain;
		if (rq->trace_left)
			trace_line(rq, "runs");
		v = rq->step(rq);
		if (!rq->phase_ns[STATS_PH_AUTH])
			req_clock_front(rq);
	} while (v == REQ_GO);
	check(v != REQ_WAIT || rq->wait);
	if (rq->trace_left)
		trace_line(rq, v == REQ_WAIT ? "waits" : "answers");
	if (v == REQ_STOP)
		rq->step = NULL;
}

void
req_wake(struct req *rq)
{
	check(rq->magic == REQ_MAGIC);
	if (!list_linked(&rq->ready))
		list_push_tail(&rq->rs->ready, &rq->ready);
}

int
reqs_run(struct reqs *rs)
{
	struct list batch;
	struct list *l;
	int n = 0;

	/* What becomes ready now runs in the next turn: nobody starves the loop. */
	if (list_empty(&rs->ready))
		return 0;
	list_init(&batch);
	batch.next = rs->ready.next;
	batch.prev = rs->ready.prev;
	batch.next->prev = batch.prev->next = &batch;
	list_init(&rs->ready);
	while ((l = list_pop(&batch))) {
		struct req *rq = container_of(l, struct req, ready);
		bool was_replied = rq->replied;

		n++;
		/* Woken for something else (the end of a body, a vanished client) while the store works. */
		if (rq->step && !rq->awaiting)
			req_run(rq);
		if (rq->replied && (!was_replied || rq->reply.body == REPLY_STREAM) && !rq->ended)
			rs->env.ops->ready(rq->conn);
		else if (!rq->replied && rq->wants_body && !rq->body_ended && !rq->ended)
			rs->env.ops->ready(rq->conn); /* a buffer may be there for the body */
		free_if_over(rq);
	}
	return n;
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
req_on_del(struct store_op *op)
{
	req_on_store(container_of(container_of(op, struct store_del, op), struct req, del));
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
	return req_go(rq, drain);
}

static void
on_linger(struct timer *t)
{
	req_wake(container_of(t, struct req, linger));
}

/*
 * Nothing may touch the client's window when the reply leaves (items 27, 30).  What the disk has touches our
 * buffers alone: the reply does not wait for a disk that may hang, but the request stays until it is over.
 */
static enum verdict
drain(struct req *rq)
{
	if (rq->xfer.pool && rq->xfer.mode != XFER_NONE && !rq->xfer.ended && !rq->disk_has &&
	    xfer_cancel(&rq->xfer, -ECANCELED) == 0) {
		if (rq->xfer.wire_bytes > 0 || rq->lease.outstanding > 0)
			return req_wait(rq, "drain", drain);
		rq->disk_has = rq->detached = true;
		rq->holds++;
	}
	check(rq->xfer.inflight == 0 || rq->disk_has);
	if (rq->lease_held) {
		bool flushed = rq->lease.flushed_writes;

		check(rq->lease.outstanding == 0);
		lease_release(rq);
		if (flushed && rq->rs->env.conf->rdma.linger_ns) {
			uint64_t at = clock_ns() + rq->rs->env.conf->rdma.linger_ns;

			timer_arm(rq->rs->env.timers, &rq->linger,
				  at < rq->answer_by_ns ? at : rq->answer_by_ns, on_linger);
			return req_wait(rq, "linger", drained);
		}
	}
	return req_go(rq, drained);
}

static enum verdict
drained(struct req *rq)
{
	if (rq->linger.armed)
		return req_wait(rq, "linger", drained);
	return req_go(rq, req_reply_step);
}

/* The reply is known: resources that nobody needs for sending go back before it leaves. */
enum verdict
req_reply_step(struct req *rq)
{
	enum outcome_kind kind =
		rq->fault == FAULT_NONE ? (rq->declined ? OUT_DECLINED : OUT_DONE) : OUT_ERROR;

	/* A deadline that passes before the first byte moved is 503, whatever the transfer was about to do
	 * (4.7). */
	if (rq->fault == FAULT_TRANSFER || (rq->fault == FAULT_DAMAGED && rq->xfer.wire_started))
		kind = OUT_FAILED;
	rq->phase = PHASE_REPLY;
	if (!rq->ended)
		reply_build(rq, kind);
	if (rq->reply.body != REPLY_STREAM) {
		timer_disarm(rq->rs->env.timers, &rq->deadline);
		/* A detached commit still has the last piece, a hung disk any. */
		if (rq->holds == 0)
			xfer_fini(&rq->xfer);
	}
	rq->replied = true;
	rq->reply_ns = clock_ns();
	return REQ_STOP;
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
		rq->step = drain;
		req_wake(rq);
		return;
	}
	if (rq->holds > 0)
		return; /* a lookup or the like: ends by itself, the step then sees the fault */
	if (rq->lease_waiting) {
		chan_lease_cancel(rq->rs->env.chan, &rq->lease);
		rq->lease_waiting = false;
	}
	rq->step = drain;
	req_wake(rq);
}

/* ---- what http/ calls ---- */

static void
on_xfer_done(struct xfer *x)
{
	struct req *rq = container_of(x, struct req, xfer);

	if (rq->disk_has && x->ended) {
		rq->disk_has = false;
		rq->holds--;
	}
	req_wake(rq);
}

struct req *
req_begin(struct reqs *rs, const struct req_in *in)
{
	struct list *l = list_pop(&rs->free);
	struct req *rq;

	if (!l)
		return NULL;
	rq = container_of(l, struct req, link);
	/* Not one memset: target, pieces and texts are large and set by whoever fills them. */
	rq->magic = REQ_MAGIC;
	rq->rs = rs;
	list_push_tail(&rs->live, &rq->link);
	list_init(&rq->ready);
	rs->live_nr++;
	rq->id = ++rs->next_id;
	rq->began_ns = clock_ns();
	rq->conn = in->conn;
	rq->listen = in->in.listen;
	rq->in = in->in;
	memcpy(&rq->local, in->local,
	       in->local->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	memcpy(&rq->peer, in->peer,
	       in->peer->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	rq->step = front;
	rq->wait = NULL;
	rq->phase = PHASE_FRONT;
	rq->fault = FAULT_NONE;
	rq->why = NULL;
	rq->errno_seen = 0;
	rq->awaiting = rq->replied = rq->ended = rq->sent = rq->gone = rq->is_tokened = rq->detached =
		rq->disk_has = false;
	rq->wants_body = rq->body_ended = rq->lease_held = rq->lease_waiting = rq->retried = rq->partial =
		rq->declined = false;
	rq->holds = 0;
	rq->answer_by_ns = UINT64_MAX;
	rq->obj.is_open = rq->put.is_started = false;
	memset(&rq->lease, 0, sizeof rq->lease);
	memset(&rq->etag, 0, sizeof rq->etag);
	rq->xfer.pool = NULL;
	rq->xfer.mode = XFER_NONE; /* req_body() asks before there is a transfer */
	rq->xfer.client = (uint8_t)xfer_client_of(in->peer);
	rq->xfer.wire_started = false;
	rq->xfer.inflight = 0;
	rq->xfer.done = rq->xfer.wake = on_xfer_done;
	rq->digest.mask = 0;
	rq->off = rq->len = rq->rdma_bytes = rq->http_bytes = 0;
	rq->reason = CHAN_OK;
	rq->reply = (struct reply){ .status = 0 };
	rq->header_nr = 0;
	rq->header_used = 0;
	rq->send_attrs = false;
	rq->in_frames = false;
	identity_init(&rq->identity);
	rq->body_len = rq->body_cap = 0;
	rq->collecting = rq->is_form = false;
	rq->status_instead = 0;
	rq->progress_ns = rq->began_ns;
	req_use_conf(rq);
	req_clock_begin(rq);
	req_run(rq);
	return rq;
}

bool
req_wants_body(const struct req *rq)
{
	return rq->wants_body;
}

/* Where the bytes of a body go: a text that is collected, or the store. */
size_t
take_body(struct req *rq, const void *data, size_t len)
{
	if (rq->collecting)
		return body_feed(rq, data, len);
	return rq->is_form ? form_take(rq, data, len) : feed_store(rq, data, len);
}

size_t
feed_store(struct req *rq, const void *data, size_t len)
{
	size_t n;

	if (rq->xfer.mode != XFER_ACCEPT)
		return 0; /* waits for its ticket */
	n = xfer_feed(&rq->xfer, data, len);
	rq->http_bytes += n;
	if (rq->xfer.result < 0) {
		req_wake(rq);
		return len;
	}
	if (rq->http_bytes > put_limit(rq))
		req_cancel(rq, FAULT_TOO_LARGE, NULL);
	return n;
}

size_t
req_body(struct req *rq, const void *data, size_t len)
{
	if (rq->replied || rq->fault != FAULT_NONE)
		return len; /* read and thrown away: the answer is known or coming */
	return rq->in_frames ? frames_feed(rq, data, len) : take_body(rq, data, len);
}

void
req_body_end(struct req *rq)
{
	rq->body_ended = true;
	if (rq->in_frames && !rq->replied && rq->fault == FAULT_NONE)
		frames_end(rq);
	if (!rq->replied)
		req_wake(rq);
}

void
req_gone(struct req *rq)
{
	if (rq->gone || rq->ended)
		return;
	rq->gone = true;
	if (rq->is_tokened && !rq->replied) {
		stats_event(rq->rs->env.stats, STATS_CLIENT_GONE);
		req_cancel(rq, FAULT_TRANSFER, "The client closed its connection.");
	}
}

bool
req_is_tokened(const struct req *rq)
{
	return rq->is_tokened;
}

bool
req_is_ready(const struct req *rq)
{
	return rq->replied;
}

ssize_t
req_stream_read(struct req *rq, uint64_t pos, void *buf, size_t max)
{
	ssize_t n = xfer_take(&rq->xfer, pos, buf, max);

	if (n > 0)
		rq->http_bytes += (uint64_t)n;
	else if (n < 0)
		rq->errno_seen = (int)n;
	return n;
}

void
req_end(struct req *rq, bool sent)
{
	struct stats_core *st = rq->rs->env.stats;
	enum stats_transport tr = rq->rdma_bytes ? STATS_RDMA : STATS_HTTP;

	check(rq->magic == REQ_MAGIC && !rq->ended);
	rq->sent = sent;
	if (!rq->replied && !rq->is_tokened) {
		stats_event(st, STATS_CLIENT_GONE);
		req_cancel(rq, FAULT_INCOMPLETE_BODY, NULL);
	} else if (!rq->replied) {
		req_gone(rq);
	}
	stats_request(st, rq->listen->dialect, rq->target.op, rq->replied ? rq->reply.status : 0, tr,
		      clock_ns() - rq->began_ns);
	if (rq->http_bytes)
		stats_bytes(st, rq->wants_body ? STATS_PULL : STATS_PUSH, STATS_HTTP, rq->http_bytes);
	if (rq->rdma_bytes)
		stats_bytes(st, op_pulls(rq->target.op) ? STATS_PULL : STATS_PUSH, STATS_RDMA,
			    rq->rdma_bytes);
	req_note(rq);
	if (rq->rs->env.conf->log.access)
		access_log(rq);
	req_clock_end(rq);
	if (rq->trace_left)
		trace_line(rq, sent ? "sent" : "not sent");
	rq->ended = true;
	/* Its strings go now; the step behind a commit that was over just then still runs. */
	rq->in.fields = NULL;
	rq->in.field_nr = 0;
	rq->in.method = rq->in.target = "";
	rq->in.target_len = 0;
	timer_disarm(rq->rs->env.timers, &rq->deadline);
	if (rq->replied && rq->xfer.pool && !rq->disk_has) {
		/* A stream that was cut short, or read to its end. */
		if (xfer_cancel(&rq->xfer, -ECANCELED) == 0) {
			rq->reply.body = REPLY_EMPTY;
			rq->replied = false;
			rq->phase = PHASE_MOVING;
			req_fail(rq, FAULT_INCOMPLETE_BODY, NULL); /* sets the step; xfer's done() wakes it */
			return;
		}
	}
	/* A request that is on the ready list goes when its turn comes. */
	if (!list_linked(&rq->ready))
		free_if_over(rq);
}
