/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of libgantry-server: one transfer after the other on a channel, against the same by verbs alone
 * (post, poll); sixteen at once; two channels on two threads, towards a client each.  A client's window is in
 * another process.
 *
 *	bench-server FIGURE...
 */
#include "bench/bench.h"
#include "bench/plain.h"
#include "server/gantry_server.h"
#include "tests/fake/peer.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DC_KEY 0xffeeddccull
#define WINDOW (16u << 20)
#define DEPTH 16
#define PIECE (64u << 10)
#define THREADS 2

static struct {
	struct peer peer[THREADS];
	char token[THREADS][TOKEN_DC_LEN + 1];
	unsigned char *mem; /* WINDOW bytes */
	struct gantry_server *s;
	struct gantry_region *r;
	struct gantry_channel *c[THREADS];
	struct plain plain;
	struct ibv_mr *mr;
} b;

static uint64_t
cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* What one transfer costs. */
struct cost {
	double us, cpu_us;
};

static struct cost
cost_of(uint64_t ns, uint64_t cpu, uint64_t nr)
{
	return (struct cost){ (double)ns / 1e3 / (double)nr, (double)cpu / 1e3 / (double)nr };
}

/* By the channel of that number, to or from its client. */
static void
move_one(uintptr_t nr, enum gantry_dir d, size_t at, size_t len)
{
	struct gantry_piece p = { b.r, b.mem + at, len };

	if (gantry_channel_move(b.c[nr], d, &p, 1, b.peer[nr].tok.addr + at, b.token[nr], GANTRY_INTERVAL,
				NULL) != (ssize_t)len)
		bench_die("gantry_channel_move");
}

static struct cost
run_ours(enum gantry_dir d, uint32_t len, uint64_t for_ns)
{
	uint64_t begin = clock_ns(), cpu = cpu_ns(), nr = 0, end = begin;

	for (size_t at = 0; end - begin < for_ns; nr++, at = (at + len) % WINDOW) {
		move_one(0, d, at, len);
		end = clock_ns();
	}
	return cost_of(end - begin, cpu_ns() - cpu, nr);
}

static struct cost
run_plain(enum gantry_dir d, uint32_t len, uint64_t for_ns)
{
	uint64_t begin = clock_ns(), cpu = cpu_ns(), nr = 0, end = begin;

	for (size_t at = 0; end - begin < for_ns; nr++, at = (at + len) % WINDOW) {
		struct ibv_wc wc;

		plain_post(&b.plain, d == GANTRY_PUSH, 1, b.mr, b.mem + at, len, at);
		while (ibv_poll_cq(b.plain.cq, 1, &wc) == 0)
			;
		if (wc.status != IBV_WC_SUCCESS)
			bench_die("plain: %s", ibv_wc_status_str(wc.status));
		end = clock_ns();
	}
	return cost_of(end - begin, cpu_ns() - cpu, nr);
}

static void
figure_one(const char *name, enum gantry_dir d, uint32_t len, bool is_cpu)
{
	struct row row = { .figure = name, .unit = "us" };

	for (int n = -1; n < bench_rounds(); n++) {
		struct cost ours = { 0 }, theirs;

		if (n & 1)
			ours = run_ours(d, len, bench_ns());
		theirs = run_plain(d, len, bench_ns());
		if (!(n & 1))
			ours = run_ours(d, len, bench_ns());
		if (n >= 0)
			row_add(&row, is_cpu ? ours.cpu_us : ours.us, is_cpu ? theirs.cpu_us : theirs.us);
	}
	row_print(&row);
}

/* ---- sixteen at once ---- */

static void
start_one(uintptr_t slot)
{
	struct gantry_piece p = { b.r, b.mem + slot * PIECE, PIECE };

	if (gantry_channel_start(b.c[0], GANTRY_PUSH, &p, 1, b.peer[0].tok.addr + slot * PIECE, b.token[0],
				 (void *)slot) < 0)
		bench_die("gantry_channel_start");
}

/* Operations a second. */
static double
run_async(uint64_t for_ns)
{
	uint64_t begin = clock_ns(), nr = 0, end = begin;
	int left = DEPTH;

	for (uintptr_t i = 0; i < DEPTH; i++)
		start_one(i);
	while (left) {
		struct gantry_done done[DEPTH];
		int n = gantry_channel_poll(b.c[0], done, DEPTH);

		if (n < 0)
			bench_die("gantry_channel_poll");
		end = n ? clock_ns() : end;
		for (int i = 0; i < n; i++) {
			if (done[i].error)
				bench_die("a transfer failed");
			nr++;
			if (end - begin < for_ns)
				start_one((uintptr_t)done[i].handle);
			else
				left--;
		}
	}
	return per_second(nr, end - begin);
}

static void
figure_async(void)
{
	struct row row = { .figure = "server_async_64k", .unit = "1/s" };

	for (int n = -1; n < bench_rounds(); n++) {
		double ours = run_async(bench_ns());
		double one = 1e6 / run_ours(GANTRY_PUSH, PIECE, bench_ns()).us;

		if (n >= 0)
			row_add(&row, ours, one);
	}
	row_print(&row);
}

/* ---- two threads ---- */

static uint64_t
move_on(int nr, const _Atomic bool *ends)
{
	uint64_t done = 0;

	for (; !*ends; done++)
		move_one(nr, GANTRY_PUSH, (uintptr_t)nr * (WINDOW / 2), PIECE);
	return done;
}

static void
figure_threads(void)
{
	struct row row = { .figure = "server_threads", .unit = "1/s" };

	for (int n = -1; n < bench_rounds(); n++) {
		double two = bench_threads(THREADS, move_on);
		double one = bench_threads(1, move_on);

		if (n >= 0)
			row_add(&row, two, one);
	}
	row_print(&row);
}

static void
open_all(void)
{
	struct gantry_server_params p;

	gantry_server_defaults(&p, sizeof p);
	p.address = "mlx5_0";
	p.allow = "subnet, loopback, self"; /* its clients are on this machine */
	b.mem = gantry_host_alloc(WINDOW);
	if (!b.mem)
		bench_die("no memory");
	memset(b.mem, 1, WINDOW);
	if (gantry_server_open(&p, &b.s) < 0)
		bench_die("%s", gantry_server_open_error());
	if (gantry_region_add(b.s, b.mem, WINDOW, &b.r) < 0)
		bench_die("gantry_region_add");
	for (int i = 0; i < THREADS; i++) {
		if (gantry_channel_new(b.s, &b.c[i]) < 0)
			bench_die("gantry_channel_new");
	}
	plain_open(&b.plain, &b.peer[0].tok, DC_KEY, DEPTH);
	b.mr = plain_register(b.plain.pd, b.mem, WINDOW);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum gantry_dir d;
		uint32_t len;
		bool is_cpu;
	} one[] = {
		{ "server_get_4k", GANTRY_PUSH, 4096, false },
		{ "server_put_4k", GANTRY_PULL, 4096, false },
		{ "server_get_4k_cpu", GANTRY_PUSH, 4096, true },
		{ "server_put_4k_cpu", GANTRY_PULL, 4096, true },
		{ "server_get_1m", GANTRY_PUSH, 1u << 20, false },
		{ "server_put_1m", GANTRY_PULL, 1u << 20, false },
	};

	peer_main(argc, argv);
	for (int i = 0; i < THREADS; i++) {
		if (peer_start(&b.peer[i], WINDOW, DC_KEY) < 0 ||
		    token_format(&b.peer[i].tok, b.token[i]) < 0)
			bench_die("no peer");
	}
	open_all();
	for (int i = 1; i < argc; i++) {
		bool found = true;

		if (!strcmp(argv[i], "server_async_64k"))
			figure_async();
		else if (!strcmp(argv[i], "server_threads"))
			figure_threads();
		else
			found = false;
		for (size_t k = 0; k < sizeof one / sizeof *one; k++) {
			if (strcmp(argv[i], one[k].name) != 0)
				continue;
			figure_one(one[k].name, one[k].d, one[k].len, one[k].is_cpu);
			found = true;
		}
		if (!found)
			bench_die("no figure %s", argv[i]);
	}
	gantry_server_close(b.s);
	for (int i = 0; i < THREADS; i++)
		peer_stop(&b.peer[i]);
	return 0;
}
