/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on RADOS, without a daemon, in turn with a loop of librados' own calls: the same sizes, as many under
 * way, the same pools.
 *
 *	bench-rados FIGURE...		CEPH_CONF names the cluster; pools gantry.meta and gantry.data
 *
 * A reference GET is one read; a reference PUT one write of a whole object under a name that is new, and the removal,
 * which nobody waits for, of what it replaced: data that somebody may still read is written over by neither side.  The
 * reference of rados_put_*_over writes the same objects over and over.  That of rados_put_small is one compare-and-set
 * of a value in an omap for each, as an index without batches would do it.  The bucket of that has one shard, so
 * that all changes meet in one place.  rados_get_cpu is the CPU time of librados' own threads for a GiB.
 *
 * The reference of rados_put_64k_whole does by librados' calls what a PUT of ours leaves behind: besides the new object
 * a look at its row of an index, and one operation that compares and sets that and notes what it replaced.  So it tells
 * what the gateway costs, and the figure without "whole" what the index does.
 */
#include "bench/bench.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "rados/rados.h"
#include "store/store.h"

#include <errno.h>
#include <poll.h>
#include <rados/librados.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define QD_MAX 32
#define PIECES_MAX 4
#define SMALL_BYTES 200
#define KEY_NR 64 /* objects of one size */
/* So many rounds of a figure are on the same objects: which placement groups, and so which threads of the OSD, they fall to is chance,
 * another one for either side. */
#define ROUNDS_OF_SAME 4

static struct {
	struct store *st;
	struct store_port *p;
	struct mailbox mb;
	struct bufpool bufs;
	rados_t cluster;
	rados_ioctx_t meta, data;
	const char *bucket;
	uint64_t next, named; /* requests begun: of ours, of librados' */
	int layout;           /* objects of a size made anew so often */
	int busy;
	bool stopping;
	uint64_t ops;
} b;

static void
must(int e, const char *what)
{
	if (e < 0)
		bench_die("%s: %s", what, strerror(-e));
}

static uint64_t
cpu_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void
turn(void)
{
	if (mailbox_sleep(&b.mb)) {
		struct pollfd p = { .fd = b.mb.efd, .events = POLLIN };

		store_turn(b.p, TURN_SLEEPS);
		poll(&p, 1, 10);
		store_turn(b.p, TURN_WAKES);
	}
	mailbox_wake(&b.mb);
	mailbox_run(&b.mb, 0);
	store_turn(b.p, TURN_QUIESCENT);
}

/* ---- ours ---- */

struct work {
	bool is_put;
	uint64_t size, at, moved;
	char text[32];
	struct store_key key;
	struct store_put put;
	struct store_obj obj;
	struct store_commit commit;
	int inflight;
	struct piece {
		struct work *w;
		struct buf *out; /* what a PUT writes */
		struct buf *in;  /* what a GET reads into, had for that read alone, as requests have theirs */
		bool is_busy;
		union {
			struct store_write wr;
			struct store_read rd;
		} op;
	} piece[PIECES_MAX];
};
static struct work works[QD_MAX];
static char small[SMALL_BYTES];

static void begin(struct work *w);

static void
work_over(struct work *w)
{
	b.ops++;
	if (b.stopping)
		b.busy--;
	else
		begin(w);
}

static void
on_commit(struct store_op *op)
{
	must(op->result, "commit");
	work_over(container_of(op, struct work, put.op));
}

static struct buf *
spare_take(struct store_spares *s, enum buf_class cls)
{
	return cls == BUF_RUN ? bufpool_get_run(&b.bufs) : bufpool_get(&b.bufs, cls);
}

static void
spare_give(struct store_spares *s, struct buf *buf)
{
	bufpool_put(&b.bufs, buf);
}
static struct store_spares spares = { spare_take, spare_give };

static void go_on(struct work *w);

static void
on_piece(struct store_op *op)
{
	struct piece *p = container_of(op, struct piece, op.wr.op);

	must(op->result, p->w->is_put ? "write" : "read");
	p->is_busy = false;
	p->w->inflight--;
	if (!p->w->is_put) {
		p->w->moved += (uint64_t)op->result;
		bufpool_put(&b.bufs, p->op.rd.instead ? p->op.rd.instead : p->in);
	}
	go_on(p->w);
}

static struct piece *
free_piece(struct work *w)
{
	for (int i = 0; i < PIECES_MAX; i++) {
		if (!w->piece[i].is_busy)
			return &w->piece[i];
	}
	return NULL;
}

static void
put_more(struct work *w)
{
	uint64_t rest = w->size - w->at;
	struct piece *p;

	for (; rest > STORE_PIECE && (p = free_piece(w)); rest -= STORE_PIECE) {
		p->is_busy = true;
		w->inflight++;
		w->at += STORE_PIECE;
		p->op.wr.op.done = on_piece;
		must(store_put_write(b.p, &w->put, &p->op.wr, p->out, STORE_PIECE, false), "write");
	}
	if (rest > STORE_PIECE || w->inflight)
		return;
	w->commit = (struct store_commit){ 0 };
	if (w->size <= STORE_INLINE_MAX) {
		w->commit.inline_data = small;
		w->commit.inline_len = (uint32_t)w->size;
	} else {
		w->commit.last = w->piece[0].out;
		w->commit.last_len = (uint32_t)rest;
	}
	w->put.op.done = on_commit;
	must(store_put_commit(b.p, &w->put, &w->commit), "commit");
}

static void
get_more(struct work *w)
{
	struct piece *p;

	if (w->moved == w->size) {
		store_close(b.p, &w->obj);
		work_over(w);
		return;
	}
	while (w->at < w->size && (p = free_piece(w))) {
		uint64_t off = w->at, room, len = w->size - off;

		p->in = len > BUF_RUN_BYTES / 2 ? bufpool_get_run(&b.bufs) : bufpool_get(&b.bufs, BUF_LARGE);
		if (!p->in)
			bench_die("no buffers");
		room = p->in->cap_bytes;
		len = len < room ? len : room;
		p->is_busy = true;
		w->inflight++;
		w->at += len;
		p->op.rd.op.done = on_piece;
		int r = store_read(b.p, &w->obj, &p->op.rd, p->in, off, (uint32_t)len);

		must(r, "read");
		if (r > 0) {
			on_piece(&p->op.rd.op);
			return;
		}
	}
}

static void
go_on(struct work *w)
{
	if (w->is_put)
		put_more(w);
	else
		get_more(w);
}

static void
on_open(struct store_op *op)
{
	must(op->result, "open");
	get_more(container_of(op, struct work, obj.op));
}

static void
begin(struct work *w)
{
	w->at = w->moved = 0;
	snprintf(w->text, sizeof w->text, "%llu/%d/%llu", (unsigned long long)w->size, b.layout,
		 (unsigned long long)(b.next++ % KEY_NR));
	w->key = (struct store_key){ b.bucket, w->text, (uint16_t)strlen(b.bucket),
				     (uint16_t)strlen(w->text) };
	if (w->is_put) {
		must(store_put_init(b.p, &w->put, &w->key, w->size), "put");
		put_more(w);
		return;
	}
	w->obj.op.done = on_open;
	must(store_open_to_read(b.p, &w->key, w->size, &w->obj), "open");
}

struct result {
	double per_s;  /* operations */
	double cpu_ns; /* of librados' threads, an operation */
};

/* Runs qd requests at once; for_ns 0: one of each key. */
static struct result
ours(bool is_put, uint64_t size, int qd, uint64_t for_ns)
{
	uint64_t begun = clock_ns(), cpu = cpu_of(CLOCK_PROCESS_CPUTIME_ID),
		 own = cpu_of(CLOCK_THREAD_CPUTIME_ID), ns;

	b.stopping = false;
	b.ops = 0;
	b.busy = qd;
	for (int i = 0; i < qd; i++) {
		works[i].is_put = is_put;
		works[i].size = size;
		begin(&works[i]);
	}
	while (for_ns ? clock_ns() - begun < for_ns : b.ops + (uint64_t)qd < KEY_NR)
		turn();
	ns = clock_ns() - begun;
	own = cpu_of(CLOCK_THREAD_CPUTIME_ID) - own;
	cpu = cpu_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	struct result r = { per_second(b.ops, ns), b.ops ? (double)(cpu - own) / (double)b.ops : 0 };

	b.stopping = true;
	while (b.busy)
		turn();
	return r;
}

/* ---- librados alone ---- */

#define RAW_SHARDS 32
#define RAW_ROW 300

/* What a reference does. */
enum raw_kind {
	RAW_GET,
	RAW_PUT,   /* writes a new object, then removes what it replaced */
	RAW_OVER,  /* writes over what is there */
	RAW_WHOLE, /* RAW_PUT with an index */
};

struct raw_op {
	rados_completion_t comp[2];
	_Atomic int left; /* of them */
	int step;         /* those before this one are over */
	char *buf;
	/* The data object that a PUT wrote, and the one before it; of a whole PUT: where its row is, what that is. */
	char name[64], old[64], shard[32], key[32], row[RAW_ROW];
	rados_omap_iter_t rows;
	rados_xattrs_iter_t xattrs;
	int rows_rv, xattrs_rv;
};
static struct raw_op raw_ops[QD_MAX];

static void
on_raw(rados_completion_t comp, void *cookie)
{
	struct raw_op *r = cookie;
	eventfd_t one = 1;

	if (atomic_fetch_sub(&r->left, 1) == 1 && write(b.mb.efd, &one, sizeof one) < 0)
		abort();
}

/* Expects so many calls, whose completions are made. */
static void
raw_expect(struct raw_op *r, int nr)
{
	atomic_store(&r->left, nr);
	for (int i = 0; i < nr; i++)
		must(rados_aio_create_completion2(r, on_raw, &r->comp[i]), "completion");
}

/* Takes a name for a data object that none has had. */
static void
raw_name(struct raw_op *r, uint64_t n)
{
	memcpy(r->old, r->name, sizeof r->old);
	snprintf(r->name, sizeof r->name, "new.%llu", (unsigned long long)n);
}

static void
raw_begin(struct raw_op *r, enum raw_kind kind, uint64_t size)
{
	uint64_t n = b.named++;
	char same[64];
	int e;

	raw_expect(r, 1);
	if (size <= STORE_INLINE_MAX) {
		rados_write_op_t op = rados_create_write_op();
		const char *k = r->key, *v = r->buf;
		size_t len = RAW_ROW;

		/* A key is set once, as a new object's is. */
		snprintf(r->key, sizeof r->key, "o%llu", (unsigned long long)n);
		rados_write_op_cmpxattr(op, "g", LIBRADOS_CMPXATTR_OP_EQ, "1", 1);
		rados_write_op_omap_cmp(op, k, LIBRADOS_CMPXATTR_OP_EQ, "", 0, NULL);
		rados_write_op_omap_set(op, &k, &v, &len, 1);
		e = rados_aio_write_op_operate(op, b.meta, r->comp[0], "raw.index.0", NULL, 0);
		rados_release_write_op(op);
	} else if (kind == RAW_PUT) {
		raw_name(r, n);
		e = rados_aio_write_full(b.data, r->name, r->comp[0], r->buf, size);
	} else {
		snprintf(same, sizeof same, "raw.%llu.%d.%llu", (unsigned long long)size, b.layout,
			 (unsigned long long)(n % KEY_NR));
		e = kind == RAW_OVER ? rados_aio_write_full(b.data, same, r->comp[0], r->buf, size)
				     : rados_aio_read(b.data, same, r->comp[0], r->buf, size, 0);
	}
	must(e, "librados");
}

/* The first step of a whole PUT: the data, and meanwhile the look. */
static void
raw_data(struct raw_op *r, uint64_t size)
{
	rados_write_op_t data = rados_create_write_op();
	rados_read_op_t look = rados_create_read_op();
	const char *key = r->key;
	size_t key_len;

	raw_expect(r, 2);
	raw_name(r, b.named++);
	snprintf(r->shard, sizeof r->shard, "raw.index.%d", (int)(r - raw_ops) % RAW_SHARDS);
	snprintf(r->key, sizeof r->key, "w%d", (int)(r - raw_ops));
	key_len = strlen(key);
	rados_write_op_write(data, r->buf, size, 0);
	rados_write_op_setxattr(data, "o", r->key, key_len);
	must(rados_aio_write_op_operate(data, b.data, r->comp[0], r->name, NULL, 0), "librados");
	rados_release_write_op(data);
	rados_read_op_getxattrs(look, &r->xattrs, &r->xattrs_rv);
	rados_read_op_omap_get_vals_by_keys2(look, &key, 1, &key_len, &r->rows, &r->rows_rv);
	must(rados_aio_read_op_operate(look, b.meta, r->comp[1], r->shard, 0), "librados");
	rados_release_read_op(look);
}

/* The second: the row, as long as it is what it was, and a row of what it named before. */
static void
raw_index(struct raw_op *r)
{
	rados_write_op_t op = rados_create_write_op();
	const char *key = r->key, *row = r->row, *garbage = r->old, *named = r->old;
	size_t key_len = strlen(key), row_len = RAW_ROW, garbage_len = strlen(garbage), named_len = 40;

	rados_getxattrs_end(r->xattrs);
	rados_omap_get_end(r->rows);
	raw_expect(r, 1);
	rados_write_op_cmpxattr(op, "g", LIBRADOS_CMPXATTR_OP_EQ, "1", 1);
	rados_write_op_omap_cmp2(op, key, LIBRADOS_CMPXATTR_OP_EQ, row, key_len, *r->old ? row_len : 0, NULL);
	snprintf(r->row, sizeof r->row, "%s", r->name);
	rados_write_op_omap_set2(op, &key, &row, &key_len, &row_len, 1);
	if (*r->old)
		rados_write_op_omap_set2(op, &garbage, &named, &garbage_len, &named_len, 1);
	must(rados_aio_write_op_operate(op, b.meta, r->comp[0], r->shard, NULL, 0), "librados");
	rados_release_write_op(op);
}

/* What nobody waits for. */
static void
raw_remove(struct raw_op *r)
{
	rados_completion_t comp;

	if (!*r->old)
		return;
	must(rados_aio_create_completion2(NULL, NULL, &comp), "completion");
	must(rados_aio_remove(b.data, r->old, comp), "librados");
	rados_aio_release(comp);
	r->old[0] = '\0';
}

/* Ends a step, and begins the next.  True: there was none. */
static bool
raw_step(struct raw_op *r, enum raw_kind kind)
{
	for (int i = 0; i < 2 && r->comp[i]; i++) {
		must(rados_aio_get_return_value(r->comp[i]), "librados");
		rados_aio_release(r->comp[i]);
		r->comp[i] = NULL;
	}
	if (kind == RAW_WHOLE && r->step++ == 0) {
		raw_index(r);
		return false;
	}
	if (kind == RAW_WHOLE || kind == RAW_PUT)
		raw_remove(r);
	r->step = 0;
	return true;
}

static void
raw_go(struct raw_op *r, enum raw_kind kind, uint64_t size)
{
	kind == RAW_WHOLE ? raw_data(r, size) : raw_begin(r, kind, size);
}

static struct result
raw(enum raw_kind kind, uint64_t size, int qd, uint64_t for_ns)
{
	uint64_t begun = clock_ns(), cpu = cpu_of(CLOCK_PROCESS_CPUTIME_ID),
		 own = cpu_of(CLOCK_THREAD_CPUTIME_ID);
	uint64_t ops = 0, ns = 0;
	int busy = qd;
	struct result r = { 0 };

	for (int i = 0; i < qd; i++)
		raw_go(&raw_ops[i], kind, size);
	while (busy) {
		struct pollfd p = { .fd = b.mb.efd, .events = POLLIN };
		eventfd_t n;

		poll(&p, 1, 100);
		if ((p.revents & POLLIN) && read(b.mb.efd, &n, sizeof n) < 0 && errno != EAGAIN)
			bench_die("eventfd: %s", strerror(errno));
		for (int i = 0; i < qd; i++) {
			struct raw_op *o = &raw_ops[i];

			if (!o->comp[0] || atomic_load(&o->left) || !raw_step(o, kind))
				continue;
			ops++;
			if (for_ns ? clock_ns() - begun >= for_ns : ops + (uint64_t)qd > KEY_NR)
				busy--;
			else
				raw_go(o, kind, size);
		}
		if (!ns && busy < qd) {
			ns = clock_ns() - begun;
			own = cpu_of(CLOCK_THREAD_CPUTIME_ID) - own;
			cpu = cpu_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
			r = (struct result){ per_second(ops, ns),
					     ops ? (double)(cpu - own) / (double)ops : 0 };
		}
	}
	/* Removals, which are nobody else's. */
	rados_aio_flush(b.data);
	return r;
}

/* ---- figures ---- */

static const struct figure {
	const char *name, *unit;
	enum raw_kind kind;
	bool is_cpu;
	uint64_t size;
	int qd;
} figures[] = {
	{ "rados_get_4m_q8", "MiB/s", RAW_GET, false, 4 * MIB, 8 },
	{ "rados_get_1m_q32", "MiB/s", RAW_GET, false, MIB, 32 },
	{ "rados_get_64k_q32", "MiB/s", RAW_GET, false, 65536, 32 },
	{ "rados_get_cpu", "ms/GiB", RAW_GET, true, MIB, 32 },
	{ "rados_put_4m_q8", "MiB/s", RAW_PUT, false, 4 * MIB, 8 },
	{ "rados_put_1m_q32", "MiB/s", RAW_PUT, false, MIB, 32 },
	{ "rados_put_64k_q32", "MiB/s", RAW_PUT, false, 65536, 32 },
	{ "rados_put_4m_over", "MiB/s", RAW_OVER, false, 4 * MIB, 8 },
	{ "rados_put_64k_over", "MiB/s", RAW_OVER, false, 65536, 32 },
	{ "rados_put_64k_whole", "MiB/s", RAW_WHOLE, false, 65536, 32 },
	{ "rados_put_cpu", "ms/GiB", RAW_PUT, true, MIB, 32 },
	{ "rados_put_small", "1/s", RAW_PUT, false, SMALL_BYTES, 32 },
};

static double
value(const struct figure *f, struct result r)
{
	if (f->is_cpu)
		return r.cpu_ns / 1e6 * ((double)(1024 * MIB) / (double)f->size);
	return f->size <= STORE_INLINE_MAX ? r.per_s : r.per_s * (double)f->size / (double)MIB;
}

static void
measure(const struct figure *f)
{
	struct row row = { .figure = f->name, .unit = f->unit };
	bool is_put = f->kind != RAW_GET;
	int rounds = bench_rounds();

	b.bucket = f->size <= STORE_INLINE_MAX ? "small" : "large";
	/* Of the figure before. */
	for (int i = 0; i < QD_MAX; i++)
		raw_ops[i].name[0] = '\0';
	for (int i = 0; i < rounds; i++) {
		struct result o, r;

		/* What is read has been written, on both sides; and both are warm. */
		if (i % ROUNDS_OF_SAME == 0 && f->size > STORE_INLINE_MAX) {
			b.layout++;
			b.next = 0;
			ours(true, f->size, f->qd, 0);
			raw(is_put ? f->kind : RAW_OVER, f->size, f->qd, 0);
		}
		/* Each goes first every other time. */
		if (i % 2)
			r = raw(f->kind, f->size, f->qd, bench_ns());
		o = ours(is_put, f->size, f->qd, bench_ns());
		if (i % 2 == 0)
			r = raw(f->kind, f->size, f->qd, bench_ns());
		row_add(&row, value(f, o), value(f, r));
	}
	row_print(&row);
	fflush(stdout);
}

/* ---- beginning and end ---- */

static bool bucket_made;

static void
on_bucket(struct store_op *op)
{
	must(op->result, "bucket");
	bucket_made = true;
}

static void
make_bucket(const char *name)
{
	struct store_del del = { .op.done = on_bucket };

	bucket_made = false;
	must(store_bucket_create(b.p, name, strlen(name), 0, &del), "bucket");
	while (!bucket_made)
		turn();
}

static void
start(uint32_t shards, const char *ns, bool format)
{
	char err[256];
	struct store_conf conf = { .ops = &rados_store_ops,
				   .ports_max = 1,
				   .rados = { .conf = getenv("CEPH_CONF"),
					      .user = "admin",
					      .meta_pool = "gantry.meta",
					      .data_pool = "gantry.data",
					      .ns = ns,
					      .index_shards = shards,
					      .object_bytes = 4 << 20,
					      .dead_after_ns = 15 * NS_PER_S } };

	if (format && store_format(&conf, false, err, sizeof err) < 0)
		bench_die("format: %s", err);
	if (store_start(&conf, &b.st, err, sizeof err) < 0)
		bench_die("start: %s", err);
	must(store_attach(b.st, NULL, &b.mb, NULL, &b.p), "attach");
	store_set_spares(b.p, &spares);
}

static void
stop(void)
{
	while (!store_detach(b.p))
		turn();
	store_stop(b.st);
}

static void
raw_start(const char *ns)
{
	rados_write_op_t op;

	must(rados_create(&b.cluster, "admin"), "librados");
	must(rados_conf_read_file(b.cluster, getenv("CEPH_CONF")), "CEPH_CONF");
	/* As ours: the throttles hold nobody up. */
	rados_conf_set(b.cluster, "objecter_inflight_ops", "1048576");
	rados_conf_set(b.cluster, "objecter_inflight_op_bytes", "1099511627776");
	must(rados_connect(b.cluster), "connect");
	must(rados_ioctx_create(b.cluster, "gantry.meta", &b.meta), "pool");
	must(rados_ioctx_create(b.cluster, "gantry.data", &b.data), "pool");
	rados_ioctx_set_namespace(b.meta, ns);
	rados_ioctx_set_namespace(b.data, ns);
	for (int i = 0; i < RAW_SHARDS; i++) {
		char name[32];

		snprintf(name, sizeof name, "raw.index.%d", i);
		op = rados_create_write_op();
		rados_write_op_setxattr(op, "g", "1", 1);
		must(rados_write_op_operate(op, b.meta, name, NULL, 0), name);
		rados_release_write_op(op);
	}
	for (int i = 0; i < QD_MAX; i++) {
		raw_ops[i].buf = malloc(4 * MIB);
		check(raw_ops[i].buf);
		memset(raw_ops[i].buf, 0x5a, 4 * MIB);
	}
}

int
main(int argc, char **argv)
{
	char ours_ns[32], raw_ns[32];

	if (!getenv("CEPH_CONF"))
		bench_die("CEPH_CONF is not set");
	snprintf(ours_ns, sizeof ours_ns, "bench-%d", (int)getpid());
	snprintf(raw_ns, sizeof raw_ns, "raw-%d", (int)getpid());
	if (mailbox_init(&b.mb) < 0 || bufpool_init_runs(&b.bufs, 448 << 20) < 0)
		bench_die("no memory");
	for (int i = 0; i < QD_MAX; i++) {
		for (int k = 0; k < PIECES_MAX; k++) {
			struct piece *p = &works[i].piece[k];

			p->w = &works[i];
			p->out = bufpool_get(&b.bufs, BUF_LARGE);
			if (!p->out)
				bench_die("no buffers");
			memset(p->out->mem, 0x5a, p->out->cap_bytes);
		}
	}
	/* A bucket's shards are those of the start that made it. */
	start(1, ours_ns, true);
	make_bucket("small");
	stop();
	start(32, ours_ns, false);
	make_bucket("large");
	raw_start(raw_ns);
	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
		for (int a = 1; a < argc; a++) {
			if (strcmp(argv[a], figures[i].name) == 0)
				measure(&figures[i]);
		}
	}
	stop();
	rados_ioctx_destroy(b.meta);
	rados_ioctx_destroy(b.data);
	rados_shutdown(b.cluster);
	return 0;
}
