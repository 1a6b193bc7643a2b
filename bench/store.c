/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's figures, without a daemon: durable PUTs and checked GETs on one port, in turn with the raw loop
 * and with a file for each object, on the same disk.
 *
 *	bench-store DIR FIGURE...
 *
 * DIR must lie on the disk to be measured; what is put there is removed again.  For store_get_crc the
 * checksum of a whole granule can be replaced by its known value: all granules hold the same bytes, and the
 * linker hands crc64_nvme() to us (-Wl,--wrap).  So the same code runs with and without the sum's cost.
 *
 * For store_small_* there are two stores, too: one moves small objects together, the other does not.
 * BENCH_PACK_RATE=BYTES lets the store of all others do so as well.
 *
 * For store_full_* there are two stores: one is full and has been written over until what is free lies in
 * pieces, the other is as good as empty.  The full one is removed before store_small_*, which need an empty one.
 *
 * BENCH_STORE_MIB (6144): size of each store; objects of one size take a sixth of it, and there are 20,000 small ones in 6 GiB.
 */
#include "bench/bench.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "extent/extent.h"
#include "ring/ring.h"
#include "store/store.h"
#include "tests/fake/engine_alone.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUCKET "bench"
#define STORE_MIB 6144
#define LIVE_BYTES (b.store_bytes / 6) /* objects of one size */
#define PIECES_MAX 8                   /* of one object in flight */
#define QD_MAX 32
#define FILE_THREADS 32
#define FILE_BYTES (256u << 10)

#define FULL_PERCENT 90
#define AGED_ROUNDS 3 /* everything is written over so often, in random order */
#define AGED_SIZES 7  /* 1 to 7 granules, 4 on average */
#define SMALL_NR (b.store_bytes / (STORE_MIB * MIB / 20000)) /* small objects */
#define SMALL_RATE ((uint64_t)1 << 30)                       /* how fast they are moved together */
#define SMALL_PATIENCE_NS (60 * NS_PER_S)
#define FULL_LIVE 2 /* of large objects that come and go on what is left */

struct side {
	char store_dir[480];
	struct store *st;
	struct store_port *p;
};

static struct {
	char dir[400];
	uint64_t store_bytes;            /* size of each store */
	struct side fresh, full, *other; /* other: the one that is not b.st and b.p, if there are two */
	bool is_full;                    /* the second store, b.full, is full */
	struct store *st;
	struct store_port *p;
	struct ring *ring;
	enum ring_backend backend;
	struct mailbox mb;
	struct timers timers;
	struct bufpool bufs;
	struct raw *raw;
} b;

/* ---- the checksum ---- */

static bool sum_is_known;
static uint64_t granule_sum;

uint64_t __real_crc64_nvme(uint64_t crc, const void *data, size_t len);
uint64_t __wrap_crc64_nvme(uint64_t crc, const void *data, size_t len);

uint64_t
__wrap_crc64_nvme(uint64_t crc, const void *data, size_t len)
{
	return sum_is_known && len == STORE_GRANULE ? granule_sum : __real_crc64_nvme(crc, data, len);
}

/* ---- the loop ---- */

static void
turn(void)
{
	uint64_t now = clock_ns(), at = timers_next(&b.timers), wait = at <= now ? 0 : at - now;

	if (wait > 10 * NS_PER_MS)
		wait = 10 * NS_PER_MS;
	if (wait && !mailbox_sleep(&b.mb))
		wait = 0;
	if (wait)
		store_turn(b.p, TURN_SLEEPS);
	if (ring_turn(b.ring, wait) < 0)
		bench_die("the ring is broken");
	if (wait) {
		mailbox_wake(&b.mb);
		store_turn(b.p, TURN_WAKES);
	}
	mailbox_run(&b.mb, 0);
	timers_run(&b.timers, clock_ns());
	store_turn(b.p, TURN_QUIESCENT);
	if (b.other)
		store_turn(b.other->p, TURN_QUIESCENT);
}

static int busy;
static bool stopping;
static uint64_t ops_done, ops_failed;

struct work {
	struct store_key key;
	char key_text[32];
	uint64_t size, at, moved;
	bool is_put;
	int inflight;
	struct store_put put;
	struct store_obj obj;
	struct buf *buf[PIECES_MAX];
	union {
		struct store_write wr;
		struct store_read rd;
	} op[PIECES_MAX];
	bool op_busy[PIECES_MAX];
	struct store_commit commit;
};
static struct work works[QD_MAX];
static uint64_t next_key, key_nr;
static uint64_t aged_nr; /* objects that the full store is full of */
static enum keys {
	KEYS_IN_TURN, /* key_nr of them, each of the one size */
	KEYS_FILLING, /* of the full store: new ones, of sizes by chance */
	KEYS_AGING,   /* of those any, until all have been written again */
	KEYS_SMALL,   /* SMALL_NR of them, as the first */
	KEYS_AGED,    /* the same, of the one size */
} keys;
static uint64_t dice = 1;

static void work_begin(struct work *w);
static void put_more(struct work *w);
static void get_more(struct work *w);

static void
work_over(struct work *w, int result)
{
	if (result < 0) {
		ops_failed++;
		if (result != -EAGAIN)
			bench_die("%s: %s", w->key_text, strerror(-result));
	} else {
		ops_done++;
	}
	if (stopping)
		busy--;
	else
		work_begin(w);
}

static struct work *
work_of(struct store_op *op, int *ret_i)
{
	struct work *w = &works[((char *)op - (char *)works) / (ptrdiff_t)sizeof *works];

	*ret_i = (int)(((char *)op - (char *)w->op) / (ptrdiff_t)sizeof *w->op);
	return w;
}

static int
free_piece(const struct work *w)
{
	for (int i = 0; i < PIECES_MAX; i++) {
		if (w->buf[i] && !w->op_busy[i])
			return i;
	}
	return -1;
}

static void
on_commit(struct store_op *op)
{
	work_over(container_of(op, struct work, put.op), op->result);
}

static void
on_write(struct store_op *op)
{
	int i;
	struct work *w = work_of(op, &i);

	if (op->result < 0)
		bench_die("write: %s", strerror(-op->result));
	w->op_busy[i] = false;
	w->inflight--;
	put_more(w);
}

static void
put_commit(struct work *w, uint32_t len)
{
	int r;

	w->commit = (struct store_commit){ .last = w->buf[0], .last_len = len };
	w->put.op.done = on_commit;
	r = store_put_commit(b.p, &w->put, &w->commit);
	if (r < 0) {
		store_put_abort(b.p, &w->put);
		work_over(w, r);
	}
}

static void
put_more(struct work *w)
{
	int i;

	while (w->size - w->at > STORE_PIECE && (i = free_piece(w)) >= 0) {
		int r;

		w->op_busy[i] = true;
		w->inflight++;
		w->op[i].wr.op.done = on_write;
		w->at += STORE_PIECE;
		r = store_put_write(b.p, &w->put, &w->op[i].wr, w->buf[i], STORE_PIECE, false);
		if (r < 0)
			bench_die("write: %s", strerror(-r));
	}
	if (w->size - w->at <= STORE_PIECE && w->inflight == 0)
		put_commit(w, (uint32_t)(w->size - w->at));
}

static void
on_read(struct store_op *op)
{
	int i;
	struct work *w = work_of(op, &i);

	if (op->result < 0)
		bench_die("read: %s", strerror(-op->result));
	w->op_busy[i] = false;
	w->moved += (uint64_t)op->result;
	get_more(w);
}

static void
get_more(struct work *w)
{
	int i;

	if (w->moved == w->size) {
		store_close(b.p, &w->obj);
		work_over(w, 0);
		return;
	}
	while (w->at < w->size && (i = free_piece(w)) >= 0) {
		uint32_t len = w->size - w->at < STORE_PIECE ? (uint32_t)(w->size - w->at) : STORE_PIECE;
		uint64_t off = w->at;
		int r;

		w->op_busy[i] = true;
		w->op[i].rd.op.done = on_read;
		w->at += len;
		r = store_read(b.p, &w->obj, &w->op[i].rd, w->buf[i], off, len);
		if (r != 0)
			bench_die("read: %s", strerror(r < 0 ? -r : EIO));
	}
}

static uint64_t
roll(void)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return dice >> 33;
}

/* The n-th of the full store's objects in an order without order, in which each comes once before any comes again. */
static uint64_t
shuffled(uint64_t n)
{
	return (n % aged_nr * 7919 + n / aged_nr * 104729) % aged_nr;
}

static void
choose_key(struct work *w)
{
	uint64_t n = next_key++;

	if (keys == KEYS_FILLING)
		aged_nr = n + 1;
	if (keys == KEYS_FILLING || keys == KEYS_AGING)
		w->size = (1 + roll() % AGED_SIZES) * STORE_GRANULE;
	if (keys == KEYS_IN_TURN || keys == KEYS_SMALL)
		snprintf(w->key_text, sizeof w->key_text, "%llu/%llu", (unsigned long long)w->size,
			 (unsigned long long)(n % key_nr));
	else
		snprintf(w->key_text, sizeof w->key_text, "aged/%llu",
			 (unsigned long long)(keys == KEYS_FILLING ? n : shuffled(n)));
}

static void
work_begin(struct work *w)
{
	int r;

	w->at = w->moved = 0;
	choose_key(w);
	w->key = (struct store_key){ BUCKET, w->key_text, sizeof BUCKET - 1, (uint16_t)strlen(w->key_text) };
	if (w->is_put) {
		r = store_put_init(b.p, &w->put, &w->key, w->size);
		if (r < 0)
			bench_die("put: %s", strerror(-r));
		put_more(w);
		return;
	}
	r = store_open(b.p, &w->key, &w->obj);
	if (r <= 0 || w->obj.op.result < 0)
		bench_die("%s: cannot be opened", w->key_text);
	get_more(w);
}

static uint64_t
thread_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void
say_run(uint64_t size, uint64_t ns, uint64_t cpu_ns, const struct store_unit_info *before)
{
	struct store_unit_info now;
	double n = (double)ops_done;

	store_unit_info(b.st, 0, &now);
	fprintf(stderr,
		"%llu KiB: %.1f us each, CPU of the thread %.1f us; for each flush %.1f records, %.1f "
		"writes\n",
		(unsigned long long)size >> 10, (double)ns / 1e3 / n, (double)cpu_ns / 1e3 / n,
		(double)(store_unit_number(&now, "records") - store_unit_number(before, "records")) /
			(double)(now.flushes - before->flushes + 1),
		(double)(now.write_ops - before->write_ops) / (double)(now.flushes - before->flushes + 1));
}

static double
percent_used(void)
{
	struct store_unit_info info;

	store_unit_info(b.st, 0, &info);
	return 100 - 100 * (double)info.free_bytes / (double)info.size_bytes;
}

/* Bytes a second: qd objects at a time, for so long or until so many are done. */
static double
run(bool is_put, uint64_t size, int qd, uint64_t for_ns, uint64_t max_ops)
{
	int pieces = size > STORE_PIECE ? (int)(size / STORE_PIECE) : 1;
	uint64_t begin = clock_ns(), cpu = thread_cpu();
	double waited = bench_waited(getpid());
	struct store_unit_info before;

	store_unit_info(b.st, 0, &before);
	pieces = pieces > PIECES_MAX ? PIECES_MAX : pieces;
	memset(works, 0, sizeof works);
	stopping = false;
	ops_done = ops_failed = 0;
	key_nr = keys == KEYS_IN_TURN && b.other && size > 16 * MIB ? FULL_LIVE : LIVE_BYTES / size;
	if (keys == KEYS_SMALL)
		key_nr = SMALL_NR;
	busy = qd;
	for (int i = 0; i < qd; i++) {
		works[i].size = size;
		works[i].is_put = is_put;
		for (int k = 0; k < pieces; k++) {
			works[i].buf[k] = bufpool_get(&b.bufs, BUF_LARGE);
			if (!works[i].buf[k])
				bench_die("too few buffers");
		}
	}
	for (int i = 0; i < qd; i++)
		work_begin(&works[i]);
	while (busy) {
		turn();
		stopping = clock_ns() - begin > for_ns || (max_ops && ops_done + (unsigned)qd > max_ops) ||
			   (keys == KEYS_FILLING && percent_used() >= FULL_PERCENT);
	}
	for (int i = 0; i < qd; i++) {
		for (int k = 0; k < pieces; k++)
			bufpool_put(&b.bufs, works[i].buf[k]);
	}
	bench_quiet_add(bench_waited(getpid()) - waited, clock_ns() - begin);
	if (getenv("BENCH_VERBOSE"))
		say_run(size, clock_ns() - begin, thread_cpu() - cpu, &before);
	if (ops_failed)
		fprintf(stderr, "bench: %llu of %llu operations were refused for the moment\n",
			(unsigned long long)ops_failed, (unsigned long long)ops_done);
	return per_second(ops_done * size, clock_ns() - begin);
}

/* Until no space comes any more: segments are written ahead in the background. */
static void
settle(void)
{
	struct store_unit_info info;
	uint64_t before = 0, since = clock_ns();

	for (;;) {
		turn();
		store_unit_info(b.st, 0, &info);
		if (info.free_bytes != before) {
			before = info.free_bytes;
			since = clock_ns();
		} else if (clock_ns() - since > NS_PER_S) {
			return;
		}
	}
}

static void
on_bucket(struct store_op *op)
{
	busy--;
}

/* Works on the store through a ring of that kind from now on. */
static void
use_ring(enum ring_backend backend)
{
	struct ring_params rp = { .entries = 1024, .backend = backend };

	if (b.p && backend == b.backend)
		return;
	/* Two stores share the first ring. */
	check(!b.other);
	while (b.p && !store_detach(b.p))
		turn();
	ring_free(b.ring);
	check(ring_new(&rp, &b.ring) == 0);
	if (ring_register_regions(b.ring, b.bufs.region, b.bufs.region_nr) < 0)
		fprintf(stderr, "bench: buffers could not be registered (ulimit -l)\n");
	check(store_attach(b.st, b.ring, &b.mb, &b.timers, &b.p) == 0);
	b.backend = backend;
}

/* Makes a store, attached to the ring there is, with its bucket; it is the one worked on. */
static void
make_side(struct side *s, const char *name, uint64_t pack_rate)
{
	struct store_disk_conf dc = { .path = s->store_dir, .size_bytes = b.store_bytes };
	struct store_conf conf = { .ops = engine_alone(),
				   .disks.disk = &dc,
				   .disks.nr = 1,
				   .disks.index_bytes = 64 * MIB,
				   .disks.pack_rate = pack_rate,
				   .disks.lock_wait_ns = 5 * NS_PER_S,
				   .ports_max = 1 };
	static struct store_del del;
	char err[256];

	snprintf(s->store_dir, sizeof s->store_dir, "%s/%s", b.dir, name);
	if (mkdir(s->store_dir, 0700) < 0 && errno != EEXIST)
		bench_die("%s: %s", s->store_dir, strerror(errno));
	if (store_format(&conf, true, err, sizeof err) < 0 || store_start(&conf, &s->st, err, sizeof err) < 0)
		bench_die("%s", err);
	b.st = s->st;
	b.p = NULL;
	if (b.ring)
		check(store_attach(b.st, b.ring, &b.mb, &b.timers, &b.p) == 0);
	else
		use_ring(RING_AUTO);
	s->p = b.p;
	del.op.done = on_bucket;
	busy = store_bucket_create(b.p, BUCKET, sizeof BUCKET - 1, 0, &del) == 0;
	while (busy)
		turn();
}

static void
begin(const char *dir)
{
	const char *rate = getenv("BENCH_PACK_RATE"), *mib = getenv("BENCH_STORE_MIB");
	char path[480];

	b.store_bytes = (mib ? strtoull(mib, NULL, 0) : STORE_MIB) * MIB;
	snprintf(b.dir, sizeof b.dir, "%s", dir);
	snprintf(path, sizeof path, "%s/raw", dir);
	check(mailbox_init(&b.mb) == 0);
	if (bufpool_init_class(&b.bufs, BUF_LARGE, 260 * MIB, 0) < 0)
		bench_die("no memory");
	for (int i = 0; i < b.bufs.buf_nr; i++) {
		for (uint32_t k = 0; k < BUF_LARGE_BYTES; k += STORE_GRANULE)
			for (uint32_t n = 0; n < STORE_GRANULE; n++)
				b.bufs.bufs[i].mem[k + n] = (char)(n * 2654435761u >> 13);
	}
	granule_sum = __real_crc64_nvme(0, b.bufs.bufs[0].mem, STORE_GRANULE);
	b.raw = raw_open(path, LIVE_BYTES, 130);
	make_side(&b.fresh, "store", rate ? strtoull(rate, NULL, 0) : 0);
}

/* Works on this one of two stores from now on. */
static void
use_side(struct side *s)
{
	use_ring(RING_AUTO);
	if (b.st == s->st)
		return;
	b.other = s == &b.full ? &b.fresh : &b.full;
	b.st = s->st;
	b.p = s->p;
}

static void
make_second(void)
{
	use_ring(RING_AUTO);
	b.fresh.p = b.p;
	b.other = &b.fresh;
	make_side(&b.full, "second", SMALL_RATE);
}

/* Makes the second store, and has it as it is after a long time. */
static void
make_full(void)
{
	make_second();
	next_key = 0;
	keys = KEYS_FILLING;
	run(true, FILE_BYTES, QD_MAX, UINT64_MAX, 0);
	keys = KEYS_AGING;
	next_key = 0;
	run(true, FILE_BYTES, QD_MAX, UINT64_MAX, AGED_ROUNDS * aged_nr);
	settle();
	b.is_full = true;
	fprintf(stderr, "bench: %.0f %% used by %llu objects\n", percent_used(), (unsigned long long)aged_nr);
}

static void
remove_side(struct side *s)
{
	char path[800];

	store_stop(s->st);
	snprintf(path, sizeof path, "rm -rf '%s'", s->store_dir);
	if (system(path) != 0)
		fprintf(stderr, "bench: %s stays behind\n", s->store_dir);
}

/* Removes the second store. */
static void
drop_second(void)
{
	use_side(&b.full);
	while (!store_detach(b.p))
		turn();
	b.st = b.fresh.st;
	b.p = b.fresh.p;
	b.other = NULL;
	b.is_full = false;
	remove_side(&b.full);
}

static void
end(void)
{
	if (b.other)
		drop_second();
	while (!store_detach(b.p))
		turn();
	remove_side(&b.fresh);
	ring_free(b.ring);
	raw_close(b.raw);
	bufpool_fini(&b.bufs);
}

/* ---- a file for each object, strictly ---- */

static struct {
	int dir_fd;
	uint64_t until_ns;
	_Atomic uint64_t done;
	char *mem;
} files;

/* Written, flushed, named, and the name flushed: then the PUT is durable. */
static void *
file_thread(void *arg)
{
	for (unsigned n = 0; clock_ns() < files.until_ns; n++) {
		char name[64], self[64];
		int fd = openat(files.dir_fd, ".", O_TMPFILE | O_WRONLY | O_DIRECT | O_CLOEXEC, 0600);

		snprintf(name, sizeof name, "f%d-%u", (int)(intptr_t)arg, n);
		snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
		if (fd < 0 || pwrite(fd, files.mem, FILE_BYTES, 0) != FILE_BYTES || fdatasync(fd) < 0 ||
		    linkat(AT_FDCWD, self, files.dir_fd, name, AT_SYMLINK_FOLLOW) < 0 ||
		    fsync(files.dir_fd) < 0)
			bench_die("%s: %s", name, strerror(errno));
		close(fd);
		files.done++;
	}
	return NULL;
}

static double
run_files(uint64_t for_ns)
{
	pthread_t t[FILE_THREADS];
	struct buf *buf = bufpool_get(&b.bufs, BUF_LARGE);
	uint64_t begun = clock_ns(), ns;
	char path[480], cmd[1000];

	snprintf(path, sizeof path, "%s/files", b.dir);
	if (mkdir(path, 0700) < 0)
		bench_die("%s: %s", path, strerror(errno));
	files.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	files.mem = buf->mem;
	files.done = 0;
	files.until_ns = begun + for_ns;
	for (intptr_t i = 0; i < FILE_THREADS; i++)
		check(pthread_create(&t[i], NULL, file_thread, (void *)i) == 0);
	for (int i = 0; i < FILE_THREADS; i++)
		pthread_join(t[i], NULL);
	ns = clock_ns() - begun;
	close(files.dir_fd);
	bufpool_put(&b.bufs, buf);
	snprintf(cmd, sizeof cmd, "rm -rf '%s' && sync -f '%s'", path, b.dir);
	if (system(cmd) != 0)
		fprintf(stderr, "bench: %s stays behind\n", path);
	return per_second(files.done * FILE_BYTES, ns);
}

/* ---- figures ---- */

enum against {
	RAW_WRITE,
	RAW_READ,
	RAW_TOUCH,
	FILES,
	NO_SUM,
	PUT_URING,
	GET_URING,
	FRESH,
	ROOM,
	LOOSE_GET,
	LOOSE_PUT
};

static const struct {
	const char *name;
	uint64_t size;
	int qd;
	enum against against;
} figures[] = {
	{ "store_put_256k_q32", 256u << 10, 32, RAW_WRITE },
	{ "store_put_1m_q8", MIB, 8, RAW_WRITE },
	{ "store_put_64m_q8", 64 * MIB, 8, RAW_WRITE },
	{ "store_put_vs_files", 256u << 10, 32, FILES },
	{ "store_get_256k_q32", 256u << 10, 32, RAW_READ },
	{ "store_get_4m_q32", 4 * MIB, 32, RAW_READ },
	{ "store_get_touch", 256u << 10, 32, RAW_TOUCH },
	{ "store_get_crc", 256u << 10, 32, NO_SUM },
	{ "store_put_threads", 256u << 10, 32, PUT_URING },
	{ "store_get_threads", 256u << 10, 32, GET_URING },
	{ "store_full_256k_q32", 256u << 10, 32, FRESH },
	{ "store_full_64m_q2", 64 * MIB, 2, FRESH },
	{ "store_small_room_1k", 1024, 32, ROOM },
	{ "store_small_room_4k", 4096, 32, ROOM },
	{ "store_small_get", 4096, 32, LOOSE_GET },
	{ "store_small_put", 4096, 32, LOOSE_PUT },
	{ "store_small_256k", 256u << 10, 32, LOOSE_PUT },
};

static double
other_side(int i, uint64_t ns)
{
	uint64_t size = figures[i].size;
	uint32_t len = size < STORE_PIECE ? (uint32_t)size : STORE_PIECE;
	uint64_t pieces = size / len < PIECES_MAX ? size / len : PIECES_MAX;
	struct raw_result res;
	double v;

	switch (figures[i].against) {
	case FILES:
		return run_files(ns);
	case NO_SUM:
		sum_is_known = true;
		v = run(false, size, figures[i].qd, ns, 0);
		sum_is_known = false;
		return v;
	case FRESH:
		keys = KEYS_IN_TURN;
		use_side(&b.fresh);
		return run(true, size, figures[i].qd, ns, 0);
	case PUT_URING:
	case GET_URING:
		use_ring(RING_AUTO);
		return run(figures[i].against == PUT_URING, size, figures[i].qd, ns, 0);
	default:
		raw_touch(b.raw, figures[i].against == RAW_TOUCH);
		res = raw_run(b.raw, figures[i].against == RAW_WRITE, len, figures[i].qd * (int)pieces, false,
			      ns);
		return per_second(res.bytes, res.ns);
	}
}

/* Our side of a round. */
static double
our_side(int i, bool is_put, enum ring_backend on, uint64_t ns)
{
	if (figures[i].against == FRESH) {
		use_side(&b.full);
		keys = figures[i].size > 16 * MIB ? KEYS_IN_TURN : KEYS_AGED;
	} else {
		use_ring(on);
	}
	return run(is_put, figures[i].size, figures[i].qd, ns, 0);
}

/* ---- small objects, moved together ---- */

static uint64_t
number_now(const char *name)
{
	struct store_unit_info info;

	store_unit_info(b.st, 0, &info);
	return store_unit_number(&info, name);
}

/* All of them, until what is worth it has been moved, in the store that moves any.  Returns the bytes that they take. */
static uint64_t
put_small(struct side *s, uint64_t size, int qd)
{
	uint64_t before, until;

	use_side(s);
	before = number_now("packed_units") + number_now("loose_objects");
	next_key = 0;
	keys = KEYS_SMALL;
	run(true, size, qd, UINT64_MAX, SMALL_NR);
	until = clock_ns() + SMALL_PATIENCE_NS;
	while (s == &b.full && number_now("loose_objects") > SMALL_NR / 100 && clock_ns() < until)
		turn();
	settle();
	return (number_now("packed_units") + number_now("loose_objects") - before) * 16 * 1024;
}

static void
figure_small(int i)
{
	struct row row = { .figure = figures[i].name, .unit = "MB/s" };
	uint64_t size = figures[i].size, ns = bench_ns();
	bool is_put = figures[i].against == LOOSE_PUT, is_large = size > STORE_GRANULE;
	int qd = figures[i].qd;

	if (b.is_full)
		drop_second();
	if (!b.other)
		make_second();
	if (figures[i].against == ROOM) {
		row.unit = "bytes";
		row_add(&row, (double)put_small(&b.full, size, qd) / (double)SMALL_NR, (double)size);
		row_print(&row);
		return;
	}
	for (int side = 0; side < 2; side++) {
		put_small(side ? &b.fresh : &b.full, is_large ? 4096 : size, qd);
		keys = KEYS_IN_TURN;
		if (is_large)
			run(true, size, qd, UINT64_MAX, 3 * LIVE_BYTES / size);
		settle();
	}
	for (int n = -1; n < bench_rounds(); n++) {
		double rate[2]; /* moved together, and not */

		for (int side = 0; side < 2; side++) {
			int which = side ^ (n & 1);

			use_side(which ? &b.fresh : &b.full);
			keys = is_large ? KEYS_IN_TURN : KEYS_SMALL;
			rate[which] = run(is_put, size, qd, ns, 0);
		}
		if (n >= 0)
			row_add(&row, rate[0] / 1e6, rate[1] / 1e6);
	}
	row_print(&row);
}

/* When its turn comes: what wants a second store behind what wants one, and a full one first. */
static int
turn_of(enum against against)
{
	return against == FRESH ? 1 : against >= ROOM ? 2 : 0;
}

static void
figure(int i)
{
	struct row row = { .figure = figures[i].name, .unit = "MB/s" };
	enum against against = figures[i].against;
	bool is_put = against == RAW_WRITE || against == FILES || against == PUT_URING || against == FRESH;
	enum ring_backend ours_on = against == PUT_URING || against == GET_URING ? RING_THREADS : RING_AUTO;
	uint64_t size = figures[i].size, ns = bench_ns();

	if (size > 16 * MIB)
		ns *= 2;
	next_key = 0;
	keys = KEYS_IN_TURN;
	if (b.other)
		use_side(&b.fresh);
	run(true, size, figures[i].qd, UINT64_MAX,
	    (is_put ? 3 : 1) * LIVE_BYTES / size + (unsigned)figures[i].qd);
	settle();
	if (against == FRESH && !b.other)
		make_full();
	for (int n = -1; n < bench_rounds(); n++) {
		double ours = 0, other;

		if (n & 1)
			ours = our_side(i, is_put, ours_on, ns);
		other = other_side(i, ns);
		if (!(n & 1))
			ours = our_side(i, is_put, ours_on, ns);
		if (n >= 0)
			row_add(&row, ours / 1e6, other / 1e6);
	}
	row_print(&row);
}

int
main(int argc, char **argv)
{
	int nr = sizeof figures / sizeof *figures;

	if (argc < 3)
		bench_die("usage: bench-store DIR FIGURE...");
	bench_pin(0);
	begin(argv[1]);
	for (int k = 0; k < 3 * (argc - 2); k++) {
		const char *name = argv[2 + k % (argc - 2)];
		int i = 0;

		while (i < nr && strcmp(figures[i].name, name) != 0)
			i++;
		if (i == nr)
			bench_die("no figure %s", name);
		if (turn_of(figures[i].against) != k / (argc - 2))
			continue;
		if (figures[i].against >= ROOM)
			figure_small(i);
		else
			figure(i);
	}
	end();
	bench_quiet_say();
	return 0;
}
