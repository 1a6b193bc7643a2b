/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How cost grows as a store fills up: PUTs over what is there and GETs, at 5 to 95 % of its space.
 *
 *	bench-fill DIR
 *
 * Objects of 64 to 448 KiB, by chance; at each level all of them are replaced once in no order first, so that
 * free space lies in pieces as it does after a long time.  One line a level and value, with tabs:
 *
 *	GROW fill <per cent> <name> <value>
 */
#include "bench/bench.h"
#include "bench/port.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/slice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STORE_BYTES (6144 * MIB)
#define QD 32
#define SIZES 7 /* 1 to 7 granules, 4 on average */
#define SETTLE_NS (30 * NS_PER_S)

struct work {
	struct store_put put;
	struct store_commit commit;
	struct store_obj obj;
	struct store_read read;
	struct store_key key;
	char text[24];
	uint32_t len;
	struct buf *buf;
	uint64_t begun_ns;
	bool is_refused;
};

static struct {
	struct port port;
	struct bufpool bufs;
	struct work work[QD];
	uint64_t keys, next, done, bytes, refused, dice;
	bool in_order, is_put, stopping;
	int busy;
	double sample[1u << 18];
	int sample_nr;
} b;

static void begin(struct work *w);

static uint64_t
roll(void)
{
	b.dice = b.dice * 6364136223846793005u + 1442695040888963407u;
	return b.dice >> 33;
}

static void
over(struct work *w, int result)
{
	if (result == -ENOSPC || result == -EAGAIN)
		b.refused++;
	else if (result < 0)
		bench_die("%s: %s", w->text, strerror(-result));
	else {
		b.done++;
		b.bytes += w->len;
		bench_note_us(b.sample, &b.sample_nr, (int)(sizeof b.sample / sizeof *b.sample), w->begun_ns);
	}
	if (b.stopping)
		b.busy--;
	else
		begin(w);
}

static void
on_put(struct store_op *op)
{
	over(container_of(op, struct work, put.op), op->result);
}

static void
on_read(struct store_op *op)
{
	struct work *w = container_of(op, struct work, read.op);

	store_close(b.port.p, &w->obj);
	over(w, op->result);
}

static void
begin_put(struct work *w)
{
	int r;

	w->len = (uint32_t)(1 + roll() % SIZES) * STORE_GRANULE;
	w->put.op.done = on_put;
	w->commit = (struct store_commit){ .last = w->buf, .last_len = w->len };
	r = store_put_init(b.port.p, &w->put, &w->key, w->len);
	if (r == 0 && (r = store_put_commit(b.port.p, &w->put, &w->commit)) < 0)
		store_put_abort(b.port.p, &w->put);
	if (r < 0) {
		/* Again in the next turn. */
		b.refused++;
		w->is_refused = true;
	}
}

static void
begin_get(struct work *w)
{
	if (store_open(b.port.p, &w->key, &w->obj) <= 0 || w->obj.op.result < 0)
		bench_die("%s cannot be opened", w->text);
	w->len = (uint32_t)w->obj.size_bytes;
	w->read.op.done = on_read;
	if (store_read(b.port.p, &w->obj, &w->read, w->buf, 0, w->len) != 0)
		bench_die("%s cannot be read", w->text);
}

static void
begin(struct work *w)
{
	uint64_t n = b.in_order ? b.next++ : roll() % b.keys;

	w->is_refused = false;
	snprintf(w->text, sizeof w->text, "%llu", (unsigned long long)n);
	w->key = (struct store_key){ BENCH_BUCKET, w->text, sizeof BENCH_BUCKET - 1,
				     (uint16_t)strlen(w->text) };
	w->begun_ns = clock_ns();
	if (b.is_put)
		begin_put(w);
	else
		begin_get(w);
}

static uint64_t
thread_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

struct result {
	double mb_s, cpu_us_mib, p50_us, refused;
};

static double
used(void)
{
	struct store_unit_info info;

	store_unit_info(b.port.st, 0, &info);
	return 100 - 100 * (double)info.free_bytes / (double)info.size_bytes;
}

static void
again(void)
{
	for (int i = 0; i < QD; i++) {
		if (!b.work[i].is_refused)
			continue;
		b.work[i].is_refused = false;
		if (b.stopping)
			b.busy--;
		else
			begin(&b.work[i]);
	}
}

/* upto: new keys until so many per cent are used; else any of those there are, for so many operations or so
 * long. */
static struct result
run(bool is_put, double upto, uint64_t ops, uint64_t for_ns)
{
	uint64_t begun = clock_ns(), cpu = thread_cpu(), ns;
	struct result r;

	b.is_put = is_put;
	b.in_order = upto > 0;
	b.done = b.bytes = b.refused = 0;
	b.sample_nr = 0;
	b.stopping = false;
	b.busy = QD;
	for (int i = 0; i < QD; i++)
		begin(&b.work[i]);
	while (b.busy) {
		port_turn(&b.port);
		again();
		if (upto > 0)
			b.stopping = used() >= upto;
		else
			b.stopping = ops ? b.done >= ops : clock_ns() - begun > for_ns;
	}
	b.keys = b.next;
	ns = clock_ns() - begun;
	r.mb_s = per_second(b.bytes, ns) / 1e6;
	r.cpu_us_mib = (double)(thread_cpu() - cpu) / 1e3 / ((double)b.bytes / (double)MIB);
	r.p50_us = bench_median(b.sample, b.sample_nr);
	r.refused = (double)b.refused / (double)(b.done + b.refused);
	return r;
}

/* Segments are written in the background: until what is there is enough,
 * so that nothing is written beside. */
static void
settle(void)
{
	uint64_t begun = clock_ns();
	double before = -1;

	while (clock_ns() - begun < SETTLE_NS && before != used()) {
		uint64_t since = clock_ns();

		before = used();
		while (clock_ns() - since < NS_PER_S)
			port_turn(&b.port);
	}
}

static void
say(int per_cent, const char *name, double value)
{
	printf("GROW\tfill\t%d\t%s\t%.6g\n", per_cent, name, value);
	fflush(stdout);
}

static void
level(int per_cent)
{
	struct result put, get;

	run(true, per_cent, 0, 0);
	run(true, 0, b.keys, 0);
	settle();
	put = run(true, 0, 0, 4 * bench_ns());
	get = run(false, 0, 0, 4 * bench_ns());
	say(per_cent, "used per cent", used());
	say(per_cent, "PUT MB/s", put.mb_s);
	say(per_cent, "PUT, CPU us per MiB", put.cpu_us_mib);
	say(per_cent, "PUT p50 us", put.p50_us);
	say(per_cent, "PUT refused", put.refused);
	say(per_cent, "GET MB/s", get.mb_s);
	say(per_cent, "GET, CPU us per MiB", get.cpu_us_mib);
	say(per_cent, "GET p50 us", get.p50_us);
}

int
main(int argc, char **argv)
{
	static const int levels[] = { 5, 25, 50, 70, 80, 90, 95 };
	char dir[400];

	if (argc != 2)
		bench_die("usage: see bench/fill.c");
	slice_short();
	b.dice = 1;
	snprintf(dir, sizeof dir, "%s/fill", argv[1]);
	port_format(dir, STORE_BYTES);
	if (bufpool_init_class(&b.bufs, BUF_LARGE, (QD + 1) * (MIB + BUF_SLACK_BYTES), 0) < 0)
		bench_die("no memory");
	port_open(&b.port, dir, STORE_BYTES, 64 * MIB, &b.bufs);
	for (int i = 0; i < QD; i++) {
		b.work[i].buf = bufpool_get(&b.bufs, BUF_LARGE);
		check(b.work[i].buf);
		memset(b.work[i].buf->mem, 0x5a + i, MIB);
	}
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
		level(levels[i]);
	port_close(&b.port);
	port_remove(dir);
	return 0;
}
