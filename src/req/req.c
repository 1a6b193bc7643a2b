/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a request as http/ sees it, and the one place where steps are run.  The first steps are in
 * front.c, those of the operations in ops/, the last ones in drain.c; what a step may say is in machine.c.
 */
#include "req/machine.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- life of the pool ---- */

/* One for all cores: what a client may have under way is counted over all of them, too (rdma/). */
static uint64_t client_key[2];
static bool have_client_key;

static void
make_client_key(void)
{
	have_client_key = getrandom(client_key, sizeof client_key, 0) == sizeof client_key;
}

int
reqs_new(const struct req_env *env, struct reqs **ret_reqs)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct reqs *rs = calloc(1, sizeof *rs);

	if (!rs)
		return -ENOMEM;
	pthread_once(&once, make_client_key);
	memcpy(rs->client_key, client_key, sizeof client_key);
	rs->env = *env;
	rs->nr = env->conf->limits.requests;
	rs->drain = drain;
	rs->pool = calloc((size_t)rs->nr, sizeof *rs->pool);
	if (!rs->pool || !have_client_key || parts_init(rs, rs->nr) < 0 ||
	    getrandom(rs->rng, sizeof rs->rng, 0) != sizeof rs->rng ||
	    getrandom(&rs->id_salt, sizeof rs->id_salt, 0) != sizeof rs->id_salt) {
		parts_fini(rs);
		free(rs->pool);
		free(rs);
		return -ENOMEM;
	}
	list_init(&rs->free);
	list_init(&rs->live);
	list_init(&rs->ready);
	xfer_pool_init(&rs->pieces, env->bufs, BUF_LARGE, env->conf->limits.pieces_per_request,
		       env->conf->limits.queue);
	xfer_pool_init(&rs->http_pieces, env->http_bufs, BUF_SMALL, env->conf->limits.pieces_per_request,
		       env->conf->limits.queue);
	if (env->store)
		store_set_spares(env->store, &rs->pieces.spares);
	pace_init(rs);
	*ret_reqs = rs;
	return 0;
}

void
reqs_free(struct reqs *rs)
{
	if (!rs)
		return;
	check(rs->live_nr == 0);
	timer_disarm(rs->env.timers, &rs->pace);
	timer_disarm(rs->env.timers, &rs->space);
	reqs_set_conf(rs, NULL);
	for (int i = 0; i < rs->begun_nr; i++)
		digest_fini(&rs->pool[i].digest);
	parts_fini(rs);
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
	pace_slot_put(rq);
	pace_lane_put(rq);
	parts_release(rq);
	store_close(rs->env.store, &rq->obj);
	bucket_attrs_free(&rq->battrs);
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
free_if_done(struct req *rq)
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
	store_asker(rq->rs->env.store, rq);
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
	store_asker(rq->rs->env.store, NULL);
	check(v != REQ_WAIT || rq->wait);
	if (rq->trace_left)
		trace_line(rq, v == REQ_WAIT ? "waits" : "answers");
	if (v == REQ_STOP)
		rq->step = NULL;
}

static void
between(struct reqs *rs)
{
	if (rs->env.between)
		rs->env.between(rs->env.between_cookie);
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
	list_take(&batch, &rs->ready);
	while ((l = list_pop(&batch))) {
		struct req *rq = container_of(l, struct req, ready);
		bool was_replied = rq->replied;

		n++;
		between(rs);
		/* Woken for something else (the end of a body, a vanished client) while the store works. */
		if (rq->step && !rq->awaiting)
			req_run(rq);
		if (rq->replied && (!was_replied || rq->reply.body == REPLY_STREAM) && !rq->ended)
			rs->env.ops->ready(rq->conn);
		else if (!rq->replied && rq->wants_body && !rq->body_ended && !rq->ended)
			rs->env.ops->ready(rq->conn); /* a buffer may be there for the body */
		free_if_done(rq);
	}
	return n;
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

static void
address_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memcpy(to, from,
	       from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

/* The parts that are asked for before, or without, their being used. */
static void
parts_begin(struct req *rq, const struct req_in *in)
{
	rq->in = in->in;
	rq->in.uri = &rq->uri;
	dialect_read_target(&rq->in, in->target, in->target_len, &rq->uri);
	address_copy(&rq->local, in->local);
	address_copy(&rq->peer, in->peer);
	identity_init(&rq->identity);
	rq->obj.is_open = false;
	rq->battrs.p = NULL;
	rq->digest.mask = 0;
	rq->target.op = OP_NONE;
	memset(&rq->lease, 0, sizeof rq->lease);
	xfer_idle(&rq->xfer, in->client, on_xfer_done);
}

uint32_t
reqs_client_of(const struct reqs *rs, const struct sockaddr *peer)
{
	return xfer_client_of(peer, rs->client_key);
}

struct req *
req_begin(struct reqs *rs, const struct req_in *in)
{
	struct list *l = list_pop(&rs->free);
	struct req *rq;

	if (!l && rs->begun_nr == rs->nr)
		return NULL;
	between(rs);
	rq = l ? container_of(l, struct req, link) : &rs->pool[rs->begun_nr++];
	/* Not all of it: the fields from `in` on are large, and begun by the code that fills them. */
	memset(&rq->magic, 0, offsetof(struct req, in) - offsetof(struct req, magic));
	rq->magic = REQ_MAGIC;
	rq->rs = rs;
	rq->id = ++rs->next_id;
	rq->began_ns = rq->progress_ns = clock_ns();
	rq->conn = in->conn;
	rq->listen = in->in.listen;
	rq->step = front;
	rq->feed = body_take;
	rq->answer_by_ns = UINT64_MAX;
	list_init(&rq->ready);
	list_init(&rq->slot);
	parts_begin(rq, in);
	list_push_tail(&rs->live, &rq->link);
	rs->live_nr++;
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

size_t
req_body(struct req *rq, const void *data, size_t len)
{
	if (rq->replied || rq->fault != FAULT_NONE)
		return len; /* read and thrown away: the answer is known or coming */
	return rq->feed(rq, data, len);
}

void
req_body_end(struct req *rq)
{
	rq->body_ended = true;
	if (rq->feed_end && !rq->replied && rq->fault == FAULT_NONE)
		rq->feed_end(rq);
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
	if (rq->rdma_bytes) {
		stats_bytes(st, op_pulls(rq->target.op) ? STATS_PULL : STATS_PUSH, STATS_RDMA,
			    rq->rdma_bytes);
		stats_event(st, rq->target.token.kind == TOKEN_RC_SHIM ? STATS_RC_SERVED : STATS_DC_SERVED);
	}
	req_note(rq);
	report_end(rq);
	req_clock_end(rq);
	if (rq->trace_left)
		trace_line(rq, sent ? "sent" : "not sent");
	rq->ended = true;
	/* Its strings go now; the step after a commit that was over just then still runs. */
	rq->in.fields = NULL;
	rq->in.field_nr = 0;
	rq->in.method = "";
	rq->uri.path = span_of("");
	rq->uri.param_nr = 0;
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
		free_if_done(rq);
}
