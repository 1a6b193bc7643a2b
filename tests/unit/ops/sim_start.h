/* SPDX-License-Identifier: Apache-2.0 */
/* The simulation's exchanges: what one is, and how it starts.  See test_random.c. */
#ifndef TESTS_UNIT_REQ_SIM_START_H
#define TESTS_UNIT_REQ_SIM_START_H

#include "tests/unit/ops/rig.h"
#include "tests/unit/ops/sim.h"

enum {
	W_CHAN = 1,     /* work requests fail */
	W_LOSE = 2,     /* and get lost */
	W_STORE = 4,    /* the store has errors */
	W_DECLINE = 8,  /* leases are declined */
	W_TIME = 16,    /* the clock jumps */
	W_DRAIN = 32,   /* the core was told to stop */
	W_STUCK = 64,   /* the disk stands still for a while */
	W_LEASES = 128, /* leases wait for an address handle */
};

enum state { S_FREE, S_RUNNING, S_READY, S_ENDED };

struct sim_x {
	struct xchg x; /* first: http's pointer */
	enum state state;
	enum sim_kind kind;
	struct sockaddr_in peer;
	uint64_t id, began_ns, began;
	unsigned weather;
	uint32_t conn;  /* the slot's connection of RC; 0: none yet */
	uint32_t named; /* the connection that the token names; 0: the token is DC's */
	bool shared;    /* another request names the same, or it may be gone: a decline may be */
	bool left;      /* the client went away: nobody looks at the reply */
	bool stalls;    /* the client stops in the middle of its body */
	int space, key;
	char path[64];
	struct ver *v;
	unsigned char *win;
	size_t win_len;
	uint64_t from;
	bool ranged;
	/* a body, and a stream (taken into win) */
	size_t body_len, body_at;
	bool body_over, suspended, calls_in;
	uint64_t pos;
	int ready_seen, turns, leaves_in; /* turns until the client vanishes; never: < 0 */
};

static struct sim_x xs[SIM_SLOTS];
static unsigned char *arena;
static uint64_t now, rng;
static unsigned weather;
static int live_nr;
static unsigned long done_nr, good_nr, moved_nr, fault_nr[FAULT_NR], left_nr, declined_nr, revoked_nr, rc_nr;

static uint64_t
rnd(uint64_t n)
{
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return (rng * 0x2545f4914f6cdd1dull >> 16) % n;
}

static bool
often(unsigned percent)
{
	return rnd(100) < percent;
}

static size_t
some_size(void)
{
	static const size_t odd[] = { 1, 255, 256, 257, 4096, 65535, 65536, 65537, 131072, 1048576, 1048577 };

	if (often(15))
		return odd[rnd(sizeof odd / sizeof *odd)];
	return 1 + rnd(often(60) ? 60000 : often(70) ? 600000 : SIM_WIN);
}

/* ---- starting one ---- */

/* An rc: token of the slot's own connection, or now and then of one that another slot has, or nobody. */
static void
slot_rc_token(struct sim_x *s, const char *header, uint64_t at)
{
	/* A client whose connection is gone makes another. */
	if (!fake_chan_joined(rig.chan, s->conn))
		s->conn = fake_chan_join(rig.chan);
	s->named = s->conn;
	s->shared = often(10);
	if (s->shared)
		s->named = often(80) ? xs[rnd(SIM_SLOTS)].conn : FAKE_CONNS_MAX + (uint32_t)rnd(9);
	for (int i = 0; i < SIM_SLOTS; i++) {
		if (&xs[i] != s && xs[i].state != S_FREE && xs[i].named == s->named)
			xs[i].shared = s->shared = true;
	}
	x_field(&s->x, header, "rc:%08x%024x:%016llx:%08llx:01f2e973", s->named, 0, (unsigned long long)at,
		(unsigned long long)s->win_len);
}

static void
slot_token(struct sim_x *s, const char *header)
{
	uint64_t at = (uint64_t)(s->win - arena) + SIM_ADDR;
	if (often(50)) {
		slot_rc_token(s, header, at);
		return;
	}
	x_field(&s->x, header, "%016llx:%08llx:01f2e973:0000:007a03:1:00000000000000000000ffff7f000001",
		(unsigned long long)at, (unsigned long long)s->win_len);
}

static void
slot_bad_token(struct sim_x *s)
{
	static const char *const bad[] = {
		"0000000000000000:00001000:01f2e973:0000:007a03:1:00000000000000000000ffff7f000001",
		"00007f0000000000:00000000:01f2e973:0000:007a03:1:00000000000000000000ffff7f000001",
		"00007f0000000000:00001000:01f2e973:0000:007a03:1:00000000000000000000ffff08080808",
		"00007f0000000000:00001000:01f2e973:0000:007a03:2:00000000000000000000ffff7f000001",
		"zz007f0000000000:00001000:01f2e973:0000:007a03:1:00000000000000000000ffff7f000001",
		"ffffffffffffff00:00001000:01f2e973:0000:007a03:1:00000000000000000000ffff7f000001",
		"short",
		"",
	};

	x_field(&s->x, "x-amz-rdma-token", "%s", bad[rnd(sizeof bad / sizeof *bad)]);
}

static void
slot_range(struct sim_x *s)
{
	s->ranged = often(30);
	s->from = s->ranged ? rnd(often(80) ? 5000 : 300000) : 0;
	if (s->ranged && often(50))
		x_field(&s->x, "range", "bytes=%llu-", (unsigned long long)s->from);
	else if (s->ranged)
		x_field(&s->x, "range", "bytes=%llu-%llu", (unsigned long long)s->from,
			(unsigned long long)(s->from + rnd(400000)));
}

/* What a PUT is going to write: in the window, or as its body. */
static void
slot_content(struct sim_x *s)
{
	s->v = ver_new(s->space, s->key, s->win_len);
	s->v->begin = s->began;
	if (kind_is_tokened(s->kind))
		memcpy(s->win, sim_noise + s->v->off, s->win_len);
}

static void
slot_fields(struct sim_x *s)
{
	const char *put_header = s->kind == K_PUT_DELL ? "x-rdma-info" : "x-amz-rdma-token";

	switch (s->kind) {
	case K_PUT_SUM:
		x_field(&s->x, "x-amz-checksum-sha256", "%s", "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=");
		slot_token(s, put_header);
		break;
	case K_PUT_IF:
		x_field(&s->x, "if-none-match", "*");
		slot_token(s, put_header);
		break;
	case K_PUT:
	case K_PUT_DELL:
		x_field(&s->x, "content-length", "0");
		if (often(20))
			x_field(&s->x, "x-amz-checksum-algorithm", "CRC32C");
		slot_token(s, put_header);
		break;
	case K_GET:
		slot_range(s);
		slot_token(s, often(80) ? "x-amz-rdma-token" : "x-rdma-info");
		break;
	case K_PUT_SCAL:
		slot_token(s, "x-scal-rdma");
		break;
	case K_GET_SCAL:
		slot_range(s);
		slot_token(s, "x-scal-rdma");
		break;
	case K_GET_HTTP:
		slot_range(s);
		break;
	case K_PUT_IF_BODY:
		x_field(&s->x, "if-none-match", "*");
		/* fall through */
	case K_PUT_BODY:
		x_field(&s->x, "content-length", "%zu", s->win_len);
		break;
	case K_PUT_CHUNKED:
		x_field(&s->x, "transfer-encoding", "chunked");
		break;
	case K_BAD:
		slot_bad_token(s);
		break;
	default:
		break;
	}
}

static const char *
slot_target(struct sim_x *s)
{
	static const char *const buckets[] = { "/tmp-bucket", "/bkt", "/", "/other" };

	if (s->kind >= K_BUCKET_PUT)
		return buckets[rnd(4)];
	sprintf(s->path, "%s/k%d", s->space ? "" : "/bkt", s->key);
	return s->path;
}

static void
slot_start(struct sim_x *s)
{
	bool put;

	s->kind = kind_pick(rnd(1000));
	put = kind_is_put(s->kind);
	s->space = s->kind == K_PUT_SCAL || s->kind == K_GET_SCAL || (s->kind == K_DELETE && often(30));
	s->key = (int)rnd(SIM_KEYS);
	x_init(&s->x, s->space, kind_method(s->kind), slot_target(s));
	s->x.in.peer = (struct sockaddr *)&s->peer;
	s->peer = rig_sa;
	s->peer.sin_addr.s_addr = htonl(0x0a000001u + (uint32_t)rnd(3));
	s->began = ++sim_step;
	s->began_ns = now;
	s->weather = weather;
	for (int i = 0; i < SIM_SLOTS; i++) {
		if (xs[i].state != S_FREE)
			s->weather |= xs[i].weather; /* they may have in hand what we wait for */
	}
	s->named = 0;
	s->shared = false;
	s->left = s->suspended = s->calls_in = s->body_over = s->ranged = false;
	s->v = NULL;
	s->from = s->pos = s->body_at = 0;
	s->ready_seen = s->turns = 0;
	s->win_len = some_size();
	s->body_len = kind_has_body(s->kind) ? s->win_len : 0;
	s->leaves_in = !often(s->weather ? 25 : 4) ? -1 : (int)rnd(often(50) ? 10 : often(50) ? 100 : 1000);
	s->stalls = s->body_len && (weather & W_TIME) && often(10);
	if (put)
		slot_content(s);
	if (s->kind == K_DELETE) {
		s->v = ver_new(s->space, s->key, 0);
		s->v->begin = s->began;
		s->v->absent = true;
	}
	slot_fields(s);
	s->x.in.in.fields = s->x.fields;
	s->x.in.in.field_nr = s->x.field_nr;
	rig_sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)rnd(5));
	s->x.in.client = reqs_client_of(rig.reqs, s->x.in.peer);
	s->x.rq = req_begin(rig.reqs, &s->x.in);
	if (!s->x.rq) { /* every request is in use: 503 by http/ */
		assert_int_equal(reqs_live(rig.reqs), rig.conf->limits.requests);
		if (s->v)
			s->v->state = V_FREE;
		memset(s->win, GUARD, s->win_len);
		return;
	}
	s->id = s->x.rq->id;
	s->state = S_RUNNING;
	live_nr++;
}

#endif
