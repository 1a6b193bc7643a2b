/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of several disks against a store of one, in turns, on disks that are each slower than the processor (bench/disks.sh makes
 * them); the store alone, one port.
 *
 *	bench-disks SECONDS FIGURE ONE DISK...           a row; ONE is the reference's disk, the others are one store
 *	bench-disks start KEYS BYTES ONE DISK...         how long starts take with so many objects in all, on stores of directories
 *	bench-disks heal BYTES RATE DISK DISK DISK       how fast a disk that was away gets about so many bytes, where RATE a second may be
 *
 * FIGURE is put_256k_q32, put_1m_q16, get_4m_q32, put_256k_q64, get_1m_q64 (bytes a second) or put_p50_q1 (the median).  copies_ before it:
 * a bucket with two copies against one with one.  move_ before it: the last disk is drained, and so many MOVE_RATE (bytes a second) go to the
 * others, against a store where nothing is moved; ONE is then a list with commas, of as many disks.  A row whose disks were not the limit,
 * because the processors were busy for 70 % of the time or more, is void, and says so instead.
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
	uint64_t size, next, key_nr, done, again;
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
	/* Where the key is has changed under it: a client asks again. */
	if (result == -EXDEV) {
		b.again++;
		begin(w);
		return;
	}
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

	/* Whoever waits for all ports to be between two turns does not wait for the other. */
	if (b.side[!side].p)
		store_turn(b.side[!side].p, TURN_SLEEPS);
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
	if (b.side[!side].p)
		store_turn(b.side[!side].p, TURN_WAKES);
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
	{ "get_1m_q16", false, false, MIB, 16 },
};

/* ---- while a disk is drained ---- */

static void
begin_drain(struct store *st)
{
	struct store_disk_change c = { .kind = DISK_DRAIN };
	struct store_unit_info unit;
	char said[512];

	store_unit_info(st, store_unit_nr(st) - 1, &unit);
	c.disk = unit.name;
	if (store_change_disks(st, &c, said, sizeof said) < 0)
		bench_die("draining %s: %s", unit.name, said);
}

/* The rows of a move would be those of a store at rest. */
static void
check_drains(const struct store *st)
{
	struct store_move_info move;

	store_move_info(st, &move);
	if (!move.is_running || move.trouble[0])
		bench_die("the disk was not being drained any more when this ended: %s", move.trouble);
	fprintf(stderr, "bench: %llu bytes were moved meanwhile, %llu PUTs had to begin again\n",
		(unsigned long long)move.bytes_done, (unsigned long long)b.again);
}

static double
one_side(const struct figure *f, int side, uint64_t for_ns)
{
	double rate = run(side, f->is_put, f->qd, for_ns, 0);

	return f->is_median ? bench_median(b.sample, b.sample_nr) : rate / 1e6;
}

static void
figure(const struct figure *f, double seconds, const char *as, int disks)
{
	bool moves = strncmp(as, "move_", 5) == 0;
	char name[64];
	struct row row = { .figure = name, .unit = f->is_median ? "us" : "MB/s" };
	uint64_t ns = (uint64_t)(seconds * 1e9);
	double all[2], idle[2], busy;

	snprintf(name, sizeof name, "disks%d_%s", disks, as);
	b.size = f->size;
	b.key_nr = LIVE_BYTES / f->size < KEYS_MAX ? LIVE_BYTES / f->size : KEYS_MAX;
	for (int side = 0; side < 2; side++) {
		b.next = 0;
		run(side, true, f->qd, 0, b.key_nr + (unsigned)f->qd);
	}
	if (moves)
		begin_drain(b.side[1].st);
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
	if (moves)
		check_drains(b.side[1].st);
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

/* ---- a disk that was away ---- */

#define HEAL_OBJECT (4 * MIB)
#define HEAL_LIMIT_NS (3600 * NS_PER_S)

/* Two of three disks take the objects while the third is away, two thirds of them in its place as well. */
static void
heal(uint64_t bytes, uint64_t rate, char **disk)
{
	struct row row = { .figure = "disks3_heal", .unit = "MB/s" };
	struct store_copies_info info;
	struct store_unit_info unit;
	char all[2048], two[2048], uuid[64];
	uint64_t begun, size = bytes * 2 + 1024 * MIB, to_heal = 0;

	snprintf(all, sizeof all, "%s,%s,%s", disk[0], disk[1], disk[2]);
	snprintf(two, sizeof two, "%s,%s", disk[0], disk[1]);
	port_wishes = (struct port_wishes){ .copies = 2, .move_rate = rate, .heal_after_ns = HEAL_LIMIT_NS };
	port_format(all, size);
	b.p = &b.side[0];
	port_open(b.p, all, size, 64 * MIB, &b.bufs);
	store_unit_info(b.p->st, 2, &unit);
	snprintf(uuid, sizeof uuid, "%s", unit.uuid);
	port_close(b.p);

	port_wishes.accept_missing = uuid;
	port_open(b.p, two, size, 64 * MIB, &b.bufs);
	b.size = HEAL_OBJECT;
	b.key_nr = bytes * 3 / 2 / HEAL_OBJECT + 1;
	b.next = 0;
	run(0, true, 8, 0, b.key_nr);
	port_close(b.p);

	port_wishes.accept_missing = NULL;
	port_open(b.p, all, size, 64 * MIB, &b.bufs);
	begun = clock_ns();
	do {
		port_turn(b.p);
		store_copies_info(b.p->st, &info);
		if (info.exposed_bytes > to_heal)
			to_heal = info.exposed_bytes;
		if (clock_ns() - begun > HEAL_LIMIT_NS)
			bench_die("not healed: %s", info.trouble);
	} while (info.is_healing || info.exposed_objects);
	row_add(&row, per_second(to_heal, clock_ns() - begun) / 1e6, (double)rate / 1e6);
	fprintf(stderr, "bench: %llu bytes in %.1f s\n", (unsigned long long)to_heal,
		(double)(clock_ns() - begun) / 1e9);
	/* Faster than it may is no better than slower. */
	if (row.ratio[0] > 1.1)
		bench_die("healed at %.3f of its rate", row.ratio[0]);
	row_print(&row);
	port_close(b.p);
	port_remove(all);
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

static void
make_buffers(void)
{
	if (bufpool_init_class(&b.bufs, BUF_LARGE, (QD_MAX + 1) * (MIB + BUF_SLACK_BYTES), 0) < 0)
		bench_die("no memory");
	for (int k = 0; k < QD_MAX; k++) {
		b.work[k].buf = bufpool_get(&b.bufs, BUF_LARGE);
		check(b.work[k].buf);
		memset(b.work[k].buf->mem, 0x5a + k, MIB);
	}
}

/* The figure of that name, behind a word of what is compared. */
static const struct figure *
figure_named(const char *name)
{
	const char *base = strncmp(name, "copies_", 7) == 0 ? name + 7
			   : strncmp(name, "move_", 5) == 0 ? name + 5
							    : name;

	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
		if (strcmp(figures[i].name, base) == 0)
			return &figures[i];
	}
	bench_die("no figure %s", name);
}

int
main(int argc, char **argv)
{
	const struct figure *f;
	const char *dir[2], *rate = getenv("MOVE_RATE");

	if (argc < 5)
		bench_die("usage: see bench/disks.c");
	if (strcmp(argv[1], "start") == 0) {
		dir[0] = argv[4];
		dir[1] = joined(argv + 5, argc - 5);
		starts(dir, strtoull(argv[3], NULL, 10), strtoull(argv[2], NULL, 10));
		return 0;
	}
	if (strcmp(argv[1], "heal") == 0) {
		if (argc != 7)
			bench_die("healing wants three disks");
		bench_pin(0);
		make_buffers();
		heal(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), argv + 4);
		return 0;
	}
	f = figure_named(argv[2]);
	dir[0] = argv[3];
	dir[1] = joined(argv + 4, argc - 4);
	bench_pin(0);
	make_buffers();
	for (int side = 0; side < 2; side++) {
		port_wishes.copies = side && strncmp(argv[2], "copies_", 7) == 0 ? 2 : 1;
		port_wishes.move_rate = rate ? strtoull(rate, NULL, 10) : 0;
		port_format(dir[side], 0);
		port_open(&b.side[side], dir[side], 0, 64 * MIB, &b.bufs);
	}
	figure(f, strtod(argv[1], NULL), argv[2], argc - 4);
	for (int side = 0; side < 2; side++)
		port_close(&b.side[side]);
	return 0;
}
