/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of several disks against a store of one, in turns, on disks that are each slower than the processor (bench/disks.sh makes
 * them); the store alone, one port.
 *
 *	bench-disks SECONDS FIGURE ONE DISK...           a row; ONE is the reference's disk, the others are one store
 *	bench-disks start KEYS BYTES ONE DISK...         how long starts take with so many objects in all, on stores of directories
 *
 * FIGURE is put_256k_q32, put_1m_q16, get_4m_q32, put_256k_q64, get_1m_q64 (bytes a second) or put_p50_q1 (the median).  A row whose
 * disks were not the limit, because the processors were busy for 70 % of the time or more, is void, and says so instead.
 */
#include "bench/bench.h"
#include "bench/port.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QD_MAX 64
#define LIVE_BYTES (192 * MIB)
#define KEYS_MAX 1024
#define INDEX_BYTES (3072 * MIB)
#define SAMPLES (1u << 16)
#define CPU_MOST 0.7
#define DEPTH 256

struct work {
	struct store_put put;
	struct store_write write;
	struct store_commit commit;
	struct store_obj obj;
	struct store_read read;
	struct store_key key;
	char text[64];
	uint64_t at, begun_ns;
	struct buf *buf;
};

static struct {
	struct port side[2], *p; /* one disk, several; that which works */
	struct bufpool bufs;
	struct work work[DEPTH];
	bool is_put, stopping;
	uint64_t size, next, key_nr, done;
	int busy;
	double sample[SAMPLES];
	int sample_nr;
} b;

static void begin(struct work *w);
static void put_more(struct work *w);
static void get_more(struct work *w);

/* ---- PUT and GET ---- */

static void
over(struct work *w, int result)
{
	if (result < 0)
		bench_die("%s: %s", w->text, strerror(-result));
	b.done++;
	bench_note_us(b.sample, &b.sample_nr, (int)SAMPLES, w->begun_ns);
	if (b.stopping)
		b.busy--;
	else
		begin(w);
}

static void
on_commit(struct store_op *op)
{
	over(container_of(op, struct work, put.op), op->result);
}

static void
on_write(struct store_op *op)
{
	struct work *w = container_of(op, struct work, write.op);

	if (op->result < 0)
		bench_die("write: %s", strerror(-op->result));
	put_more(w);
}

static void
put_more(struct work *w)
{
	int r;

	if (b.size - w->at > STORE_PIECE) {
		w->at += STORE_PIECE;
		w->write.op.done = on_write;
		r = store_put_write(b.p->p, &w->put, &w->write, w->buf, STORE_PIECE, false);
	} else {
		w->commit = (struct store_commit){ .last = w->buf, .last_len = (uint32_t)(b.size - w->at) };
		w->put.op.done = on_commit;
		r = store_put_commit(b.p->p, &w->put, &w->commit);
	}
	if (r < 0)
		bench_die("PUT: %s", strerror(-r));
}

static void
on_read(struct store_op *op)
{
	struct work *w = container_of(op, struct work, read.op);

	if (op->result < 0)
		bench_die("read: %s", strerror(-op->result));
	w->at += (uint64_t)op->result;
	get_more(w);
}

static void
get_more(struct work *w)
{
	uint32_t len = b.size - w->at < STORE_PIECE ? (uint32_t)(b.size - w->at) : STORE_PIECE;

	if (len == 0) {
		store_close(b.p->p, &w->obj);
		over(w, 0);
		return;
	}
	w->read.op.done = on_read;
	if (store_read(b.p->p, &w->obj, &w->read, w->buf, w->at, len) != 0)
		bench_die("%s cannot be read", w->text);
}

static void
begin(struct work *w)
{
	snprintf(w->text, sizeof w->text, "%llu/%llu", (unsigned long long)b.size,
		 (unsigned long long)(b.next++ % b.key_nr));
	w->key = (struct store_key){ BENCH_BUCKET, w->text, sizeof BENCH_BUCKET - 1,
				     (uint16_t)strlen(w->text) };
	w->at = 0;
	w->begun_ns = clock_ns();
	if (b.is_put) {
		int r = store_put_init(b.p->p, &w->put, &w->key, b.size);

		if (r < 0)
			bench_die("PUT: %s", strerror(-r));
		put_more(w);
		return;
	}
	if (store_open(b.p->p, &w->key, &w->obj) <= 0 || w->obj.op.result < 0)
		bench_die("%s cannot be opened", w->text);
	get_more(w);
}

/* Bytes a second: qd at a time, for so long, or until so many are done. */
static double
run(int side, bool is_put, int qd, uint64_t for_ns, uint64_t ops)
{
	uint64_t begun = clock_ns();

	b.p = &b.side[side];
	b.is_put = is_put;
	b.stopping = false;
	b.done = 0;
	b.sample_nr = 0;
	b.busy = qd;
	for (int i = 0; i < qd; i++)
		begin(&b.work[i]);
	while (b.busy) {
		port_turn(b.p);
		b.stopping = ops ? b.done + (unsigned)qd > ops : clock_ns() - begun > for_ns;
	}
	return per_second(b.done * b.size, clock_ns() - begun);
}

/* Seconds of all processors since the machine was started: in all, and idle. */
static void
cpu_now(double *ret_all, double *ret_idle)
{
	double v[8] = { 0 };
	FILE *f = fopen("/proc/stat", "re");

	if (!f || fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", v, v + 1, v + 2, v + 3, v + 4, v + 5,
			 v + 6, v + 7) < 5)
		bench_die("/proc/stat cannot be read");
	fclose(f);
	*ret_idle = v[3] + v[4];
	*ret_all = 0;
	for (int i = 0; i < 8; i++)
		*ret_all += v[i];
}

static const struct figure {
	const char *name;
	bool is_put, is_median;
	uint64_t size;
	int qd;
} figures[] = {
	{ "put_256k_q32", true, false, 256u << 10, 32 }, { "put_1m_q16", true, false, MIB, 16 },
	{ "get_4m_q32", false, false, 4 * MIB, 32 },     { "put_256k_q64", true, false, 256u << 10, 64 },
	{ "get_1m_q64", false, false, MIB, 64 },         { "put_p50_q1", true, true, 4096, 1 },
};

static double
one_side(const struct figure *f, int side, uint64_t for_ns)
{
	double rate = run(side, f->is_put, f->qd, for_ns, 0);

	return f->is_median ? bench_median(b.sample, b.sample_nr) : rate / 1e6;
}

static void
figure(const struct figure *f, double seconds, int disks)
{
	char name[64];
	struct row row = { .figure = name, .unit = f->is_median ? "us" : "MB/s" };
	uint64_t ns = (uint64_t)(seconds * 1e9);
	double all[2], idle[2], busy;

	snprintf(name, sizeof name, "disks%d_%s", disks, f->name);
	b.size = f->size;
	b.key_nr = LIVE_BYTES / f->size < KEYS_MAX ? LIVE_BYTES / f->size : KEYS_MAX;
	for (int side = 0; side < 2; side++) {
		b.next = 0;
		run(side, true, f->qd, 0, b.key_nr + (unsigned)f->qd);
	}
	for (int n = -1; n < bench_rounds(); n++) {
		double v[2];

		if (n == 0)
			cpu_now(&all[0], &idle[0]);
		for (int i = 0; i < 2; i++)
			v[i ^ (n & 1)] = one_side(f, i ^ (n & 1), ns);
		if (n >= 0)
			row_add(&row, v[1], v[0]);
	}
	cpu_now(&all[1], &idle[1]);
	busy = 1 - (idle[1] - idle[0]) / (all[1] - all[0]);
	if (busy < CPU_MOST)
		row_print(&row);
	else
		printf("VOID\t%s\tbecause processors were busy for %.0f %% of the time: the disks were not "
		       "the "
		       "limit\n",
		       name, 100 * busy);
	fprintf(stderr, "bench: %s: processors busy for %.0f %%; %.0f and %.0f %s, ratio %.3f\n", name,
		100 * busy, bench_median(row.ours, row.nr), bench_median(row.reference, row.nr), row.unit,
		bench_median(row.ratio, row.nr));
}

/* ---- many small objects ---- */

static void fill_next(struct work *w);

static void
on_filled(struct store_op *op)
{
	if (op->result < 0)
		bench_die("PUT: %s", strerror(-op->result));
	fill_next(container_of(op, struct work, put.op));
}

static void
fill_next(struct work *w)
{
	static const char data[16] = "sixteen bytes  ";

	if (b.next == b.key_nr) {
		b.busy--;
		return;
	}
	snprintf(w->text, sizeof w->text, "data/2026/%010llu/object.bin",
		 (unsigned long long)(b.next++ * 7919 % b.key_nr));
	w->key = (struct store_key){ BENCH_BUCKET, w->text, sizeof BENCH_BUCKET - 1,
				     (uint16_t)strlen(w->text) };
	w->put.op.done = on_filled;
	w->commit = (struct store_commit){ .inline_data = data, .inline_len = sizeof data };
	port_put_inline(b.p, &w->put, &w->key, &w->commit);
}

static void
fill(int side)
{
	b.p = &b.side[side];
	b.next = 0;
	b.busy = DEPTH;
	for (int i = 0; i < DEPTH; i++)
		fill_next(&b.work[i]);
	while (b.busy)
		port_turn(b.p);
}

static void
starts(const char *const dir[2], uint64_t size_bytes, uint64_t keys)
{
	struct row row = { .figure = "disks4_start", .unit = "s" };

	b.key_nr = keys;
	for (int side = 0; side < 2; side++) {
		port_format(dir[side], side ? size_bytes / 4 : size_bytes);
		port_open(&b.side[side], dir[side], side ? size_bytes / 4 : size_bytes, INDEX_BYTES, NULL);
		fill(side);
		port_close(&b.side[side]);
	}
	for (int n = 0; n < bench_rounds(); n++) {
		double v[2];

		for (int i = 0; i < 2; i++) {
			int side = i ^ (n & 1);
			uint64_t begun = clock_ns();

			port_open(&b.side[side], dir[side], side ? size_bytes / 4 : size_bytes, INDEX_BYTES,
				  NULL);
			v[side] = (double)(clock_ns() - begun) / 1e9;
			port_close(&b.side[side]);
		}
		row_add(&row, v[1], v[0]);
	}
	row_print(&row);
	for (int side = 0; side < 2; side++)
		port_remove(dir[side]);
}

/* ---- all of it ---- */

/* The words from the i-th on, with commas. */
static const char *
joined(char **word, int nr)
{
	static char text[4096];

	for (int i = 0; i < nr; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "," : "", word[i]);
	return text;
}

int
main(int argc, char **argv)
{
	const char *dir[2];
	size_t i = 0;

	if (argc < 5)
		bench_die("usage: see bench/disks.c");
	if (strcmp(argv[1], "start") == 0) {
		dir[0] = argv[4];
		dir[1] = joined(argv + 5, argc - 5);
		starts(dir, strtoull(argv[3], NULL, 10), strtoull(argv[2], NULL, 10));
		return 0;
	}
	while (i < sizeof figures / sizeof *figures && strcmp(figures[i].name, argv[2]) != 0)
		i++;
	if (i == sizeof figures / sizeof *figures)
		bench_die("no figure %s", argv[2]);
	dir[0] = argv[3];
	dir[1] = joined(argv + 4, argc - 4);
	bench_pin(0);
	if (bufpool_init_class(&b.bufs, BUF_LARGE, (QD_MAX + 1) * (MIB + BUF_SLACK_BYTES), 0) < 0)
		bench_die("no memory");
	for (int k = 0; k < QD_MAX; k++) {
		b.work[k].buf = bufpool_get(&b.bufs, BUF_LARGE);
		check(b.work[k].buf);
		memset(b.work[k].buf->mem, 0x5a + k, MIB);
	}
	for (int side = 0; side < 2; side++) {
		port_format(dir[side], 0);
		port_open(&b.side[side], dir[side], 0, 64 * MIB, &b.bufs);
	}
	figure(&figures[i], strtod(argv[1], NULL), argc - 4);
	for (int side = 0; side < 2; side++)
		port_close(&b.side[side]);
	return 0;
}
