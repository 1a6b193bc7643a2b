/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core without HTTP, NIC and disk: the request machine on the fake channel and the store in memory.  Each
 * test sends header fields in, turns the loop and looks at the reply.
 */
#ifndef TESTS_UNIT_REQ_RIG_H
#define TESTS_UNIT_REQ_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "conf/conf.h"
#include "ops/ops.h"
#include "req/machine.h"
#include "ring/ring.h"
#include "stats/stats.h"
#include "tests/fake/fake_chan.h"
#include "tests/fake/mem_store.h"
#include "tests/fake/wait.h"
#include "walk/expiry.h"
#include "walk/walks.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Not every test uses all of it. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define WIN_ADDR 0x7f0000000000ull
#define WIN_MAX (9u << 20)
#define GUARD 0xa5
#define RIG_DEADLINE_NS (100 * NS_PER_S) /* nobody is so late by himself, whatever else the machine does */
#define RIG_LATE_NS (RIG_DEADLINE_NS + NS_PER_S)

struct rig {
	struct conf *conf;
	struct mailbox mb;
	struct timers timers;
	struct space_want want; /* refusals for want of space, of this core and of others */
	struct bufpool bufs, http_bufs;
	struct rdma *rdma; /* no device: only its rules about addresses */
	struct chan *chan;
	struct store *store;
	struct ring *ring; /* with a store on a disk only */
	struct store_port *port;
	struct stats *stats;
	struct walks walks;
	struct reqs *reqs;
	unsigned char *win; /* the client's memory */
	int between_nr;
};

/* One exchange. */
struct xchg {
	struct req *rq;
	int ready_nr, abort_nr;
	struct field fields[32];
	int field_nr;
	char text[4096];
	size_t used;
	char target[DIALECT_TARGET_MAX + 1];
	struct req_in in;
};

static struct rig rig;

/* A smaller core, set before rig_start(); 0: as it stands there. */
static struct {
	size_t bufs_bytes, http_bytes; /* http_bytes: small ones only, as the daemon has it */
	int requests, queue, pieces;
	/* Instead of the store in memory: a back end on a directory, with a ring. */
	const struct store_ops *store;
	const char *dir;
} rig_small;

static void
rig_ready(void *conn)
{
	((struct xchg *)conn)->ready_nr++;
}

static void
rig_abort(void *conn)
{
	((struct xchg *)conn)->abort_nr++;
}

static uint64_t rig_unsent_bytes;

static uint64_t
rig_unsent(void *conn)
{
	return rig_unsent_bytes;
}

static uint64_t rig_arrived_bytes = UINT32_MAX;

static uint64_t
rig_arrived(void *conn)
{
	return rig_arrived_bytes;
}

static void
rig_between(void *cookie)
{
	((struct rig *)cookie)->between_nr++;
}

static const struct reply_ops rig_ops = {
	.ready = rig_ready, .abort = rig_abort, .arrived = rig_arrived, .unsent = rig_unsent
};
static struct sockaddr_in rig_sa;

static void
rig_turn(void)
{
	int before, n;

	mailbox_run(&rig.mb, 0);
	timers_run(&rig.timers, clock_ns());
	chan_poll(rig.chan);
	/* The core is called before each request that runs. */
	before = rig.between_nr;
	n = reqs_run(rig.reqs);
	assert_int_equal(rig.between_nr - before, n);
	store_turn(rig.port, TURN_QUIESCENT);
	if (rig.ring)
		assert_true(ring_turn(rig.ring, reqs_live(rig.reqs) ? 20 * NS_PER_US : 0) >= 0);
}

/* Turns until cond, in real time: the store in memory completes on a thread of its own. */
#define rig_until(cond)                                                                                      \
	do {                                                                                                 \
		wait_until(cond) {                                                                           \
			rig_turn();                                                                          \
			if (!rig.ring)                                                                       \
				usleep(100);                                                                 \
		}                                                                                            \
	} while (0)

static void
conf_defaults(struct conf *c)
{
	c->listen_nr = 2;
	c->listen[0].dialect = DIALECT_S3;
	c->listen[0].anonymous = true;
	c->listen[1].dialect = DIALECT_SCALITY;
	c->listen[1].bucket = (char *)".scality";
	c->listen[1].decode = true;
	c->rdma.allow_loopback = c->rdma.allow_self = true;
	c->rdma.inflight_bytes = 2u << 20;
	c->rdma.linger_ns = 20 * NS_PER_MS;
	c->limits.requests = 64;
	c->limits.pieces_per_request = 8;
	c->limits.queue = 32;
	c->limits.object_bytes = 5ull << 30;
	c->limits.part_bytes = 5ull << 30;
	c->limits.xml_bytes = 64u << 10;
	c->auth.region = (char *)"us-east-1";
	c->limits.s3_progress_ns = RIG_DEADLINE_NS;
	c->limits.s3_total_ns = RIG_DEADLINE_NS;
	c->limits.s3_rate = 256u << 20;
	c->limits.scality_total_ns = RIG_DEADLINE_NS;
	c->limits.idle_ns = 75 * NS_PER_S;
	c->lifecycle.day_ns = 86400 * NS_PER_S;
}

static void rig_bucket(int listen, const char *target);

static int
rig_start(void **state)
{
	struct store_disk_conf disk = { .path = "memory", .size_bytes = 1u << 30 };
	struct store_conf sc = { .ops = rig_small.store ? rig_small.store : &mem_store_ops,
				 .disks.disk = &disk,
				 .disks.nr = 1,
				 .disks.index_bytes = 64u << 20,
				 .ports_max = 4 };
	struct stats_names sn = {
		.op = op_name, .op_nr = OP_NR, .reason = chan_reason_name, .reason_nr = CHAN_REASON_NR
	};
	struct chan_params cp = { 0 };
	struct req_env env = { 0 };
	char err[256] = "";

	memset(&rig, 0, sizeof rig);
	rig.conf = calloc(1, sizeof *rig.conf);
	conf_defaults(rig.conf);
	assert_int_equal(mailbox_init(&rig.mb), 0);
	if (rig_small.requests)
		rig.conf->limits.requests = rig_small.requests;
	if (rig_small.queue)
		rig.conf->limits.queue = rig_small.queue;
	if (rig_small.pieces)
		rig.conf->limits.pieces_per_request = rig_small.pieces;
	assert_int_equal(bufpool_init(&rig.bufs, rig_small.bufs_bytes ? rig_small.bufs_bytes : 32u << 20), 0);
	if (rig_small.http_bytes)
		assert_int_equal(bufpool_init_class(&rig.http_bufs, BUF_SMALL, rig_small.http_bytes,
						    rig.bufs.region_nr),
				 0);
	else
		assert_int_equal(bufpool_init(&rig.http_bufs, 16u << 20), 0);
	assert_int_equal(stats_new(1, &sn, &rig.stats), 0);
	rig.conf->rdma.mode = RDMA_NONE;
	assert_int_equal(rdma_open(&rig.conf->rdma, &rig.rdma, err, sizeof err), 0);
	cp.mb = &rig.mb;
	cp.timers = &rig.timers;
	cp.core_nr = 1;
	cp.pieces_max = rig.conf->limits.pieces_per_request;
	cp.queue_max = rig.conf->limits.queue;
	assert_int_equal(chan_new(&cp, &rig.chan), 0);
	if (rig_small.store) {
		disk.path = rig_small.dir;
		assert_int_equal(ring_new(&(struct ring_params){ .entries = 128 }, &rig.ring), 0);
		if (store_format(&sc, false, err, sizeof err) < 0)
			fail_msg("format: %s", err);
	}
	if (store_start(&sc, &rig.store, err, sizeof err) < 0)
		fail_msg("store: %s", err);
	assert_int_equal(store_attach(rig.store, rig.ring, &rig.mb, &rig.timers, &rig.port), 0);
	rig.win = malloc(WIN_MAX);
	memset(rig.win, GUARD, WIN_MAX);
	fake_chan_window(rig.chan, WIN_ADDR, rig.win, WIN_MAX);
	rig_sa.sin_family = AF_INET;
	inet_pton(AF_INET, "127.0.0.1", &rig_sa.sin_addr);
	env.conf = rig.conf;
	env.store = rig.port;
	env.chan = rig.chan;
	env.rdma = rig.rdma;
	env.bufs = &rig.bufs;
	env.http_bufs = &rig.http_bufs;
	env.timers = &rig.timers;
	env.want = &rig.want;
	env.stats = stats_core(rig.stats, 0);
	env.ops = &rig_ops;
	env.between = rig_between;
	env.between_cookie = &rig;
	assert_int_equal(expiry_new(rig.port, &rig.walks.expiry), 0);
	env.walks = &rig.walks;
	env.operations = op_table;
	assert_int_equal(reqs_new(&env, &rig.reqs), 0);
	rig_bucket(0, "/bkt");
	rig_bucket(1, NULL);
	return 0;
}

static void
rig_check_empty(void)
{
	rig_until(reqs_live(rig.reqs) == 0);
	assert_int_equal(fake_chan_stats(rig.chan)->outstanding, 0);
	assert_int_equal(fake_chan_stats(rig.chan)->leased, 0);
	assert_int_equal(fake_chan_stats(rig.chan)->waiting, 0);
	for (int i = 0; i < BUF_CLASS_NR; i++) {
		assert_int_equal(rig.bufs.avail[i], rig.bufs.total[i]);
		assert_int_equal(rig.http_bufs.avail[i], rig.http_bufs.total[i]);
	}
}

static int
rig_stop(void **state)
{
	rig_check_empty();
	rig_until(store_detach(rig.port));
	reqs_free(rig.reqs);
	expiry_free(rig.walks.expiry);
	store_stop(rig.store);
	ring_free(rig.ring);
	chan_free(rig.chan);
	rdma_close(rig.rdma);
	bufpool_fini(&rig.bufs);
	bufpool_fini(&rig.http_bufs);
	stats_free(rig.stats);
	mailbox_fini(&rig.mb);
	free(rig.win);
	free(rig.conf);
	clock_fake(NULL);
	return 0;
}

/* ---- exchanges ---- */

static void x_field(struct xchg *x, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void
x_field(struct xchg *x, const char *name, const char *fmt, ...)
{
	char *v = x->text + x->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(v, sizeof x->text - x->used, fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < sizeof x->text - x->used);
	x->used += (size_t)n + 1;
	x->fields[x->field_nr++] = (struct field){ name, v, (uint32_t)strlen(name), (uint32_t)n };
}

static void
x_init(struct xchg *x, int listen, const char *method, const char *target)
{
	memset(x, 0, sizeof *x);
	x->in.in.listen = &rig.conf->listen[listen];
	x->in.in.rdma = &rig.conf->rdma;
	x->in.in.s3 = &rig.conf->s3;
	x->in.in.method = method;
	x->in.target_len = (size_t)snprintf(x->target, sizeof x->target, "%s", target);
	x->in.target = x->target;
	x->in.local = x->in.peer = (struct sockaddr *)&rig_sa;
	x->in.conn = x;
	x_field(x, "host", "127.0.0.1:9000");
}

static void
x_token(struct xchg *x, const char *header, uint64_t off, uint64_t size)
{
	x_field(x, header, "%016llx:%08llx:01f2e973:0000:007a03:1:00000000000000000000ffff7f000001",
		(unsigned long long)(WIN_ADDR + off), (unsigned long long)size);
}

static void
x_begin(struct xchg *x)
{
	int before = rig.between_nr;

	x->in.in.fields = x->fields;
	x->in.in.field_nr = x->field_nr;
	x->in.client = reqs_client_of(rig.reqs, x->in.peer);
	x->rq = req_begin(rig.reqs, &x->in);
	assert_non_null(x->rq);
	assert_int_equal(rig.between_nr - before, 1);
}

/* Begins and turns until the reply is there. */
static int
x_run(struct xchg *x)
{
	x_begin(x);
	if (!req_wants_body(x->rq) && !req_is_ready(x->rq))
		req_body_end(x->rq);
	rig_until(req_is_ready(x->rq));
	return req_reply(x->rq)->status;
}

static void
x_end(struct xchg *x)
{
	req_end(x->rq, true);
	rig_turn();
	x->rq = NULL;
}

struct x_find {
	const char *name;
	enum conf_dialect dialect;
	char value[8192];
	int nr;
};

static void
x_on_header(void *cookie, const char *name, const char *value)
{
	struct x_find *f = cookie;

	char lower[128];
	enum reply_field h;
	size_t n = 0;

	for (; name[n]; n++) {
		assert_true(n < sizeof lower - 1);
		lower[n] = (char)tolower((unsigned char)name[n]);
	}
	lower[n] = 0;
	h = reply_field_find(lower, n);
	/* item 78: as AWS spells it, on S3 listeners; ours in lower case */
	if (h != FIELD_NR)
		assert_string_equal(name, field_name[f->dialect][h]);
	else if (strncmp(name, "x-amz-", 6) == 0 || strncmp(name, "x-gantry-", 9) == 0)
		assert_string_equal(name, lower);
	else
		fail_msg("the name of the header %s is not in reply_field.def", name);
	if (strcmp(lower, f->name) == 0) {
		snprintf(f->value, sizeof f->value, "%s", value);
		f->nr++;
	}
}

/* The header's value, or NULL; never twice. */
static const char *
x_header(struct xchg *x, const char *name)
{
	static struct x_find f[4];
	static int turn;
	struct x_find *mine = &f[turn++ % 4];

	*mine = (struct x_find){ .name = name, .dialect = x->rq->listen->dialect };
	req_reply_headers(x->rq, x_on_header, mine);
	assert_true(mine->nr <= 1);
	return mine->nr ? mine->value : NULL;
}

#define assert_header(x, name, text)                                                                         \
	do {                                                                                                 \
		const char *h_ = x_header(x, name);                                                          \
		if (!h_)                                                                                     \
			fail_msg("no header %s", name);                                                      \
		assert_string_equal(h_, text);                                                               \
	} while (0)
#define assert_no_header(x, name) assert_null(x_header(x, name))

static bool rig_del_done;

static void
rig_on_del(struct store_op *op)
{
	rig_del_done = true;
}

static void
rig_bucket(int listen, const char *target)
{
	struct xchg x;

	if (listen == 0) {
		x_init(&x, 0, "PUT", target);
		assert_int_equal(x_run(&x), 200);
		x_end(&x);
	} else {
		/* What the daemon does at start for a scality listener. */
		struct store_del del = { .op.done = rig_on_del };
		int r;

		rig_del_done = false;
		r = store_bucket_create(rig.port, ".scality", 8, 0, &del);
		assert_true(r >= 0);
		if (r == 0)
			rig_until(rig_del_done);
	}
}

static void
pattern(unsigned char *p, size_t len, unsigned seed)
{
	uint32_t v = seed * 2654435761u + 1;

	for (size_t i = 0; i < len; i++) {
		v = v * 1664525u + 1013904223u;
		p[i] = (unsigned char)(v >> 24);
	}
}

/* PUT with a token over win[0, len) filled with pattern seed. */
static void
put_object(const char *key, size_t len, unsigned seed)
{
	struct xchg x;
	char target[128];

	snprintf(target, sizeof target, "/bkt/%s", key);
	pattern(rig.win, len, seed);
	x_init(&x, 0, "PUT", target);
	x_token(&x, "x-amz-rdma-token", 0, len);
	if (x_run(&x) != 200)
		fail_msg("PUT of %s: %d %s", key, req_reply(x.rq)->status, x.rq->error);
	assert_header(&x, "x-amz-rdma-reply", "200");
	x_end(&x);
	memset(rig.win, GUARD, WIN_MAX);
}

#endif
