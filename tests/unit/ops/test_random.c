/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulation: one core's request machine on the fake channel, the store in memory and a clock of the
 * test's own. Requests of every kind under changing weather (work requests that fail or get lost, a store
 * with errors, no rail, deadlines, a drain), clients that vanish in any state, and never enough of anything.
 *
 * Checked all the time: no reply is ready while a work request of it is outstanding; after the reply nobody
 * touches the client's window; statuses come from what happened; a GET returns a version that could be there;
 * every exchange ends within its time.  And whenever the core falls quiet: nothing is left over.
 *
 * One thread does everything, so SEED= replays a run.  SECS= goes on for so long (default: one round).
 */
#include "tests/unit/ops/rig.h"
#include "tests/fake/mem_store.h"
#include "tests/fake/fake_rctable.h"
#include "tests/unit/ops/sim_start.h"

#include <errno.h>
#include <time.h>

/* ---- the reply ---- */

static void
complain(const struct sim_x *s, const char *what)
{
	const struct req *rq = s->x.rq;

	fail_msg("%s: kind %d path %s status %d fault %d phase %d weather %#x window %zu moved %llu "
		 "age %llu ms step %s",
		 what, s->kind, s->path, rq->replied ? rq->reply.status : 0, rq->fault, rq->phase, s->weather,
		 s->win_len, (unsigned long long)rq->rdma_bytes,
		 (unsigned long long)((now - s->began_ns) / NS_PER_MS), rq->wait ? rq->wait : "-");
}

/* Could this fault be, in such weather and of such a request? */
static bool
fault_fits(const struct sim_x *s, enum fault f)
{
	unsigned w = s->weather;

	switch (f) {
	case FAULT_NONE:
		return true;
	case FAULT_NO_SUCH_KEY:
	case FAULT_RANGE:
		return kind_is_get(s->kind) || s->kind == K_HEAD || s->kind == K_BAD;
	case FAULT_PRECONDITION:
		return s->kind == K_PUT_IF || s->kind == K_PUT_IF_BODY;
	case FAULT_BAD_TOKEN:
	case FAULT_ACCESS_DENIED:
	case FAULT_BAD_REQUEST:
		return s->kind == K_BAD;
	case FAULT_SHA_MISMATCH:
	case FAULT_BAD_DIGEST:
		return s->kind == K_PUT_SUM;
	case FAULT_NO_SUCH_BUCKET:
	case FAULT_BUCKET_EXISTS:
	case FAULT_BUCKET_NOT_EMPTY:
	case FAULT_METHOD:
	case FAULT_BAD_BUCKET_NAME:
	case FAULT_NOT_IMPLEMENTED:
		return s->kind >= K_BUCKET_PUT;
	case FAULT_BUSY: /* the queues are short, and so are the slots of requests without a token */
		return kind_is_tokened(s->kind) || kind_is_get(s->kind) || kind_has_body(s->kind) ||
		       (w & W_STORE) || !list_linked(&s->x.rq->slot);
	case FAULT_TRANSFER:
		return kind_is_tokened(s->kind) && (w & (W_CHAN | W_LOSE | W_TIME | W_STUCK | W_LEASES));
	case FAULT_DEADLINE:
		return w & (W_LOSE | W_TIME | W_STUCK | W_LEASES | W_CHAN);
	case FAULT_REQUEST_TIMEOUT:
		return s->body_len && (w & (W_TIME | W_STUCK | W_LOSE));
	case FAULT_UNAVAILABLE:
	case FAULT_NO_DISK:
		return w & (W_DRAIN | W_STORE | W_TIME | W_STUCK);
	case FAULT_DAMAGED:
	case FAULT_FULL:
	case FAULT_INTERNAL:
		return w & W_STORE;
	default:
		return false;
	}
}

/* GET: which version is it?  data: what came, from byte `from` of an object of `total` bytes. */
static void
check_version(const struct sim_x *s, const unsigned char *data, size_t len, uint64_t from, uint64_t total)
{
	if (!ver_could_be(s->space, s->key, s->began, data, len, from, total))
		complain(s, "a GET returned what was not there");
	moved_nr += len > 0;
}

static void
check_absent(const struct sim_x *s)
{
	if (!ver_could_be_absent(s->space, s->key, s->began))
		complain(s, "an object is gone");
}

static void
content_range(const struct sim_x *s, uint64_t *ret_from, uint64_t *ret_len, uint64_t *ret_total)
{
	unsigned long long a, b, total;
	const char *h = x_header((struct xchg *)&s->x, "content-range");

	assert_non_null(h);
	assert_int_equal(sscanf(h, "bytes %llu-%llu/%llu", &a, &b, &total), 3);
	*ret_from = a;
	*ret_len = b - a + 1;
	*ret_total = total;
}

/* Returns whether all of these bytes are those of the guard, at the speed of memcmp(): each byte is equal to the next one. */
static bool
is_guard(const unsigned char *p, size_t n)
{
	return n == 0 || (p[0] == GUARD && memcmp(p, p + 1, n - 1) == 0);
}

static void
check_guard(const struct sim_x *s, size_t untouched_from)
{
	if (untouched_from < s->win_len + SIM_GUARD &&
	    !is_guard(s->win + untouched_from, s->win_len + SIM_GUARD - untouched_from))
		complain(s, "a byte of the window after those that were moved");
	if (!is_guard(s->win - SIM_GUARD, SIM_GUARD))
		complain(s, "a byte before the window");
}

static void
check_get(struct sim_x *s)
{
	const struct req *rq = s->x.rq;
	int status = rq->reply.status;
	uint64_t from = 0, len = rq->rdma_bytes, total = rq->rdma_bytes;

	if (status == 404)
		check_absent(s);
	if (rq->declined || (status != 200 && status != 206)) {
		/* Failed in the middle: anything may lie in the window, and nothing behind it. */
		check_guard(s,
			    rq->xfer.wire_started || rq->fault == FAULT_TRANSFER || s->left ? s->win_len : 0);
		return;
	}
	if (status == 206)
		content_range(s, &from, &len, &total);
	else if (s->kind == K_GET_SCAL && len == s->win_len)
		total = UINT64_MAX; /* as much as fits, said to nobody (4.3) */
	assert_int_equal(from, s->from);
	assert_int_equal(len, rq->rdma_bytes);
	assert_true(len <= s->win_len);
	check_guard(s, len);
	check_version(s, s->win, len, from, total);
}

/* What a PUT or DELETE came to, for the model. */
static void
settle(struct sim_x *s)
{
	const struct req *rq = s->x.rq;
	int status = rq->reply.status;

	if (s->left || status == 503 || (rq->fault && rq->phase == PHASE_COMMIT)) {
		s->v->state = V_UNKNOWN; /* and its end is when the request is gone */
	} else if (rq->declined || (status != 200 && status != 204)) {
		s->v->state = V_FAILED;
	} else {
		s->v->state = V_DONE;
		s->v->end = ++sim_step;
	}
}

static void
check_reply(struct sim_x *s)
{
	struct req *rq = s->x.rq;
	const struct reply *r = req_reply(rq);
	bool rdma = kind_is_tokened(s->kind);

	if (rq->lease.outstanding != 0 || rq->lease_held || rq->lease_waiting)
		complain(s, "a reply, and work requests are outstanding");
	revoked_nr += rq->revoked;
	if (!s->left && !fault_fits(s, rq->fault) && !rq->revoked)
		complain(s, "a fault that does not fit");
	if (r->status == 503 && !s->left)
		assert_header(&s->x, "retry-after", rq->fault == FAULT_NO_DISK ? "30" : "1");
	if (rq->declined && !s->left && !(s->weather & W_DECLINE) && !s->shared)
		complain(s, "a decline");
	if (s->named && rq->retried)
		complain(s, "a second lease of a connection that has failed");
	rc_nr += s->named && rq->fault == FAULT_NONE;
	if (r->body == REPLY_STREAM)
		assert_true(rq->reply.len_bytes > 0);
	good_nr += rq->fault == FAULT_NONE;
	fault_nr[rq->fault]++;
	declined_nr += rq->declined;
	if (s->left)
		rdma = false;
	if (rdma && kind_is_get(s->kind))
		check_get(s);
	if (rdma && kind_is_put(s->kind) && memcmp(s->win, sim_noise + s->v->off, s->win_len) != 0)
		complain(s, "a PUT changed the window");
	if (s->kind == K_GET_HTTP && r->status == 404 && !s->left)
		check_absent(s);
	if (s->kind == K_HEAD && r->status == 200)
		assert_true(ver_could_have_size(0, s->key, s->began, r->len_bytes));
	if (s->v && s->v->state == V_LIVE)
		settle(s);
	/* From now on the client uses its memory for something else. */
	if (kind_is_tokened(s->kind) && !s->left)
		memset(s->win, GUARD, s->win_len);
}

/* ---- one turn of an exchange ---- */

static void
slot_end(struct sim_x *s, bool sent)
{
	if (s->v && s->v->state == V_LIVE)
		s->v->state = V_UNKNOWN;
	s->left |= !sent;
	left_nr += s->left;
	s->state = S_ENDED;
	req_end(s->x.rq, sent);
}

static void
feed(struct sim_x *s)
{
	size_t n = 1 + rnd(often(50) ? 3000 : 150000), took;

	if (s->stalls && s->body_at > s->body_len / 2)
		return;
	if (n > s->body_len - s->body_at)
		n = s->body_len - s->body_at;
	s->calls_in = true;
	if (n) {
		took = req_body(s->x.rq, sim_noise + s->v->off + s->body_at, n);
		assert_true(took <= n);
		s->body_at += took;
		s->suspended = took < n && !req_is_ready(s->x.rq);
	}
	if (s->body_at == s->body_len) {
		s->body_over = true;
		req_body_end(s->x.rq);
	}
}

static void
slot_running(struct sim_x *s)
{
	struct req *rq = s->x.rq;
	/* http/ looks when it calls in, and when it was told. */
	bool looks = s->turns++ == 0 || s->x.ready_nr > s->ready_seen || s->calls_in, was_gone = s->left;

	s->calls_in = false;
	if (s->x.ready_nr > s->ready_seen) {
		s->ready_seen = s->x.ready_nr;
		s->suspended = false;
	}
	if (req_is_ready(rq) && looks) {
		s->state = S_READY;
		s->turns = (int)rnd(6);
		check_reply(s);
		return;
	}
	if (req_is_ready(rq))
		complain(s, "ready, and nobody was told");
	if (s->leaves_in >= 0 && s->leaves_in-- == 0) {
		s->left = true;
		if (!req_is_tokened(rq) || was_gone || often(30)) {
			slot_end(s, false);
			return;
		}
		if (s->v)
			s->v->state = V_UNKNOWN;
		s->leaves_in = often(50) ? (int)rnd(100) : -1;
		req_gone(rq);
	}
	if (s->body_len && !s->body_over && req_wants_body(rq) && !s->suspended && !req_is_ready(rq))
		feed(s);
}

static void
stream(struct sim_x *s)
{
	size_t max = 1 + rnd(often(50) ? 5000 : 200000), total = s->x.rq->reply.len_bytes;
	uint64_t from = 0, len = total, size = total;
	ssize_t n;

	if (s->x.abort_nr) {
		revoked_nr += s->x.rq->revoked;
		assert_true(s->weather & (W_TIME | W_STUCK | W_STORE) || s->x.rq->revoked);
		slot_end(s, false);
		return;
	}
	if (s->x.ready_nr > s->ready_seen) {
		s->ready_seen = s->x.ready_nr;
		s->suspended = false;
	}
	if (s->leaves_in >= 0 && s->leaves_in-- == 0) {
		slot_end(s, false);
		return;
	}
	if (s->suspended)
		return;
	n = req_stream_read(s->x.rq, s->pos, s->win + s->pos, max < total - s->pos ? max : total - s->pos);
	if (n < 0) {
		assert_true(s->weather & (W_STORE | W_TIME | W_STUCK) || s->x.rq->revoked);
		slot_end(s, false);
		return;
	}
	s->pos += (uint64_t)n;
	s->suspended = n == 0;
	if (s->pos < total)
		return;
	if (s->x.rq->reply.status == 206)
		content_range(s, &from, &len, &size);
	assert_int_equal(len, total);
	check_version(s, s->win, len, from, size);
	memset(s->win, GUARD, total);
	slot_end(s, true);
}

static void
slot_turn(struct sim_x *s)
{
	uint64_t limit = s->body_len || s->kind == K_GET_HTTP ? 60 * NS_PER_S
			 : s->space                           ? 1500 * NS_PER_MS
							      : 8100 * NS_PER_MS;

	if (s->state == S_FREE)
		return;
	if (s->state == S_ENDED) {
		if (s->x.rq->magic == REQ_MAGIC && s->x.rq->id == s->id)
			return;
		if (s->v && s->v->state == V_UNKNOWN)
			s->v->end = ++sim_step;
		memset(s->win, GUARD, s->pos);
		check_guard(s, s->left && kind_is_tokened(s->kind) ? s->win_len : 0);
		memset(s->win, GUARD, s->win_len);
		s->state = S_FREE;
		live_nr--;
		done_nr++;
		return;
	}
	if (s->state == S_RUNNING) {
		if (now - s->began_ns > limit + SIM_SLACK_NS)
			complain(s, "takes too long");
		slot_running(s);
	} else if (req_reply(s->x.rq)->body == REPLY_STREAM) {
		stream(s);
	} else if (s->turns-- <= 0) {
		slot_end(s, often(90));
	}
}

/* ---- the weather, and the core's turn ---- */

static void
weather_set(unsigned w)
{
	static const struct {
		enum mem_fault kind;
		int error;
	} faults[] = { { MEM_READ, -EBADMSG },    { MEM_READ, -EIO },      { MEM_WRITE, -ENOSPC },
		       { MEM_WRITE, -EIO },       { MEM_COMMIT, -ENOSPC }, { MEM_COMMIT, -EAGAIN },
		       { MEM_COMMIT, -EROFS },    { MEM_OPEN, -EIO },      { MEM_DELETE, -EROFS },
		       { MEM_PUT_INIT, -EAGAIN }, { MEM_LIST, -EIO },      { MEM_COMMIT, -ECANCELED },
		       { MEM_COMMIT, -EXDEV } };
	struct mem_store_tuning t = { .seed = rnd(UINT32_MAX) + 1,
				      .open_at_once = (uint32_t)rnd(101),
				      .stat_at_once = (uint32_t)rnd(101),
				      .other_at_once = often(50) ? 0 : (uint32_t)rnd(101) };

	weather = w;
	for (int i = 0; i < SIM_SLOTS; i++) {
		if (xs[i].state != S_FREE)
			xs[i].weather |= w;
	}
	mem_store_tune(rig.store, &t);
	for (int k = 0; k < MEM_FAULT_NR; k++)
		mem_store_fail(rig.store, (enum mem_fault)k, 0, 0, 0);
	for (int i = 0; (w & W_STORE) && i < 4; i++) {
		unsigned f = (unsigned)rnd(sizeof faults / sizeof *faults);

		mem_store_fail(rig.store, faults[f].kind, faults[f].error, (unsigned)rnd(10),
			       1 + (unsigned)rnd(20));
	}
	fake_chan_random(rig.chan, rnd(UINT32_MAX) + 1, w & W_CHAN ? 60000 : 0, w & W_LOSE ? 20000 : 0);
	fake_chan_torn(rig.chan, w & W_CHAN ? (uint32_t)rnd(100000) : 0);
	fake_chan_decline(rig.chan, w & W_DECLINE ? -EOPNOTSUPP : 0, CHAN_NO_RAIL);
	fake_chan_hold_leases(rig.chan, w & W_LEASES);
	fake_chan_channels(rig.chan, 1 + (int)rnd(5));
	reqs_drain(rig.reqs, w & W_DRAIN);
}

static void
weather_pick(void)
{
	unsigned w = 0;

	if (!often(30)) {
		for (unsigned bit = 1; bit <= W_LEASES; bit <<= 1)
			w |= often(bit == W_DRAIN || bit == W_DECLINE ? 10 : 25) ? bit : 0;
	}
	weather_set(w);
}

/* Whatever happens: what the pools promise, and nobody told the client while its memory may be touched. */
static void
check_always(void)
{
	const struct xfer_pool *xp[2] = { &rig.reqs->pieces, &rig.reqs->http_pieces };

	for (int i = 0; i < 2; i++) {
		assert_true(xp[i]->bp->avail[xp[i]->main_cls] >= xp[i]->bare);
		assert_true(xp[i]->tickets_out <= xp[i]->tickets);
		assert_true(xp[i]->queued <= rig.conf->limits.queue);
	}
	for (int i = 0; i < SIM_SLOTS; i++) {
		const struct sim_x *s = &xs[i];

		if ((s->state == S_RUNNING || s->state == S_READY) && req_is_ready(s->x.rq) &&
		    s->x.rq->lease.outstanding)
			complain(s, "ready, and work requests are outstanding");
	}
}

static void
core_turn(void)
{
	unsigned taint = weather;

	for (int i = 0; i < SIM_SLOTS; i++)
		taint |= xs[i].state != S_FREE ? xs[i].weather : 0;
	now += rnd(300) * NS_PER_US;
	if ((taint & (W_LOSE | W_TIME)) && rnd(30) == 0)
		now += rnd(300) * NS_PER_MS;
	if (!(weather & W_STUCK))
		mem_store_step(rig.store, (unsigned)rnd(12));
	else if (rnd(150) == 0)
		mem_store_step(rig.store, 1000);
	if ((weather & W_LEASES) && often(40) && !(often(10) && fake_chan_deny(rig.chan, -EAGAIN, CHAN_OK)))
		fake_chan_grant(rig.chan);
	if (often(80))
		mailbox_run(&rig.mb, 0);
	if (often(80))
		timers_run(&rig.timers, now);
	if (often(80))
		chan_poll(rig.chan);
	if (often(90))
		reqs_run(rig.reqs);
	store_turn(rig.port, TURN_QUIESCENT);
	for (int i = 0; i < SIM_SLOTS; i++)
		slot_turn(&xs[i]);
	check_always();
}

static void
check_nothing_left(void)
{
	const struct xfer_pool *xp[2] = { &rig.reqs->pieces, &rig.reqs->http_pieces };

	rig_check_empty();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(xp[i]->tickets_out, 0);
		assert_int_equal(xp[i]->bare, 0);
		assert_int_equal(xp[i]->queued, 0);
		assert_true(fair_empty(&xp[i]->waiting[0]) && fair_empty(&xp[i]->waiting[1]));
		assert_true(list_empty(&xp[i]->hungry));
	}
	assert_int_equal(fake_chan_conns_leased(rig.chan), 0);
	assert_int_equal(mem_store_open_nr(rig.store), 0);
	assert_int_equal(mem_store_put_nr(rig.store), 0);
	assert_int_equal(mem_store_inflight(rig.store), 0);
	/* The one timer that is nobody's: it looks once more after the last that waited. */
	timer_disarm(&rig.timers, &rig.reqs->pace);
	assert_null(rig.timers.root);
	assert_int_equal(rig.reqs->plain_nr, 0);
	assert_int_equal(rig.reqs->plain_revoked, 0);
}

static void
fall_quiet(void)
{
	weather_set(0);
	/* What the core itself looks up, when objects of a bucket expire, outlives the request that made it look. */
	for (int i = 0; live_nr > 0 || mem_store_inflight(rig.store) > 0; i++) {
		assert_true(i < 400000);
		core_turn();
	}
	check_nothing_left();
}

static void
one_round(unsigned long requests)
{
	unsigned long until = done_nr + requests, epoch = 0;

	while (done_nr < until) {
		uint64_t oldest = sim_step;

		if (done_nr >= epoch) {
			epoch = done_nr + 20 + rnd(200);
			if (often(50))
				fall_quiet();
			for (int i = 0; i < SIM_SLOTS; i++) {
				if (xs[i].state != S_FREE && xs[i].began < oldest)
					oldest = xs[i].began;
			}
			ver_prune(oldest);
			weather_pick();
		}
		for (int i = 0; i < SIM_SLOTS; i++) {
			if (xs[i].state == S_FREE && rnd(12) == 0)
				slot_start(&xs[i]);
		}
		core_turn();
	}
	fall_quiet();
}

/* item 27, item 28, item 29, item 30: whatever fails, and whenever */
static void
test_random(void **state)
{
	const char *secs = getenv("SECS"), *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL);
	time_t until = time(NULL) + (secs ? atol(secs) : 0);

	arena = malloc((size_t)SIM_SLOTS * SIM_SPAN);
	assert_non_null(arena);
	do {
		void *none = NULL;

		printf("SEED=%llu\n", (unsigned long long)seed);
		fflush(stdout);
		rng = (seed + 1) * 0x9e3779b97f4a7c15u | 1;
		now = 1000 * NS_PER_S;
		weather = 0;
		done_nr = good_nr = moved_nr = left_nr = declined_nr = revoked_nr = rc_nr = 0;
		memset(fault_nr, 0, sizeof fault_nr);
		sim_init();
		memset(arena, GUARD, (size_t)SIM_SLOTS * SIM_SPAN);
		rig_start(&none);
		rig.conf->rdma.inflight_bytes = 1u << 20;
		rig.conf->limits.s3_progress_ns = rig.conf->limits.s3_total_ns = 8 * NS_PER_S;
		rig.conf->limits.scality_total_ns = 1500 * NS_PER_MS;
		/* So that some are too slow, in a world where most wait for milliseconds. */
		rig.conf->limits.body_rate = 256u << 20;
		rig.conf->limits.body_grace_ns = 10 * NS_PER_MS;
		put_object("keep", 100, 1); /* the bucket is never empty */
		clock_fake(&now);
		mem_store_manual(rig.store, true);
		fake_chan_serve_rc(rig.chan);
		fake_rctable(rig.chan);
		fake_chan_window(rig.chan, SIM_ADDR, arena, (size_t)SIM_SLOTS * SIM_SPAN);
		for (int i = 0; i < SIM_SLOTS; i++) {
			xs[i].state = S_FREE;
			xs[i].conn = xs[i].named = 0;
			xs[i].win = arena + (size_t)i * SIM_SPAN + SIM_GUARD;
		}
		one_round(4000);
		printf("%lu exchanges, %lu without a fault, %lu GETs compared, %llu s of fake time\n",
		       done_nr, good_nr, moved_nr, (unsigned long long)(now / NS_PER_S - 1000));
		printf("%lu clients left, %lu declines, %lu revoked, faults:", left_nr, declined_nr,
		       revoked_nr);
		for (int f = 1; f < FAULT_NR; f++) {
			if (fault_nr[f])
				printf(" %s %lu", fault_info((enum fault)f)->code, fault_nr[f]);
		}
		printf("\n");
		printf("%lu over RC without a fault\n", rc_nr);
		assert_true(good_nr > done_nr / 4);
		assert_true(rc_nr > done_nr / 20);
		mem_store_manual(rig.store, false);
		fake_rctable(NULL);
		rig_stop(&none);
		seed++;
	} while (time(NULL) < until);
	free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

	rig_small.bufs_bytes = 6u << 20;
	rig_small.http_bytes = 12 * (BUF_SMALL_BYTES + BUF_SLACK_BYTES);
	rig_small.requests = 22;
	rig_small.queue = 6;
	rig_small.pieces = 4;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
