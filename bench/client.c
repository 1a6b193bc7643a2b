/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of libgantry's own part: what a token and a registration cost, and whether operations cost memory.  No
 * byte moves.
 *
 *	bench-client FIGURE...
 */
#include "bench/bench.h"

#include "base/clock.h"
#include "client/client_int.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REGISTRATIONS 10000
#define THREADS 8
#define PIECE 4096
#define BATCH 1000

static struct gantry *
open_one_port(void)
{
	const struct gantry_options o = { .size = sizeof o, .config_file = "", .device = "mlx5_0" };
	struct gantry *g;

	if (gantry_open(&o, &g) < 0)
		bench_die("gantry_open: %s", gantry_open_error());
	return g;
}

static char *
memory_of(size_t size)
{
	char *p = aligned_alloc(PIECE, size);

	if (!p)
		bench_die("no memory");
	memset(p, 1, size);
	return p;
}

static void
register_at(struct gantry *g, char *p, size_t size)
{
	if (gantry_register(g, p, size, 0) < 0)
		bench_die("gantry_register: %s", gantry_register_error());
}

static void
token_once(struct gantry *g, const char *p)
{
	char *text;
	int e = gantry_token_get(g, p, PIECE, 0, GANTRY_OP_PUT, &text, NULL);

	if (e == 0)
		e = gantry_token_put(g, text);
	if (e < 0)
		bench_die("token: %s", strerror(-e));
}

/* ---- tokens: with many registrations against one ---- */

/* Nanoseconds for a token, made and given back, of one after the other of nr pieces. */
static double
tokens(struct gantry *g, const char *memory, unsigned nr, uint64_t for_ns)
{
	uint64_t begin = clock_ns(), done = 0;
	unsigned at = 0;

	do {
		for (int i = 0; i < BATCH; i++, at = at + 1 < nr ? at + 1 : 0)
			token_once(g, memory + (size_t)at * PIECE);
		done += BATCH;
	} while (clock_ns() - begin < for_ns);
	return (double)(clock_ns() - begin) / (double)done;
}

static void
figure_registrations(void)
{
	struct row row = { .figure = "token_10k", .unit = "ns" };
	char *memory = memory_of((size_t)REGISTRATIONS * PIECE);
	struct gantry *many = open_one_port(), *one = open_one_port();

	register_at(one, memory, PIECE);
	for (int i = 0; i < REGISTRATIONS; i++)
		register_at(many, memory + (size_t)i * PIECE, PIECE);
	for (int n = -1; n < bench_rounds(); n++) {
		double ours = tokens(many, memory, REGISTRATIONS, bench_ns());
		double reference = tokens(one, memory, 1, bench_ns());

		if (n >= 0)
			row_add(&row, ours, reference);
	}
	row_print(&row);
	gantry_close(many);
	gantry_close(one);
	free(memory);
}

/* ---- tokens by several threads ---- */

static struct gantry *shared;
static char *thread_memory;
static uint64_t
make_tokens(int nr, const _Atomic bool *ends)
{
	const char *p = thread_memory + (size_t)nr * PIECE;
	uint64_t made = 0;

	for (; !*ends; made++)
		token_once(shared, p);
	return made;
}

static void
figure_threads(void)
{
	struct row row = { .figure = "token_threads", .unit = "1/s" };
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	thread_memory = memory_of((size_t)THREADS * PIECE);
	shared = open_one_port();
	for (int i = 0; i < THREADS; i++)
		register_at(shared, thread_memory + (size_t)i * PIECE, PIECE);
	for (int n = -1; n < bench_rounds(); n++) {
		double ours = bench_threads(THREADS, make_tokens);
		double one = bench_threads(1, make_tokens);

		if (n >= 0)
			row_add(&row, ours, one * (double)(cores < THREADS ? cores : THREADS));
	}
	row_print(&row);
	gantry_close(shared);
	free(thread_memory);
}

/* ---- registrations ---- */

/* Microseconds for one and its end; by verbs where g is NULL. */
static double
registrations(struct gantry *g, struct ibv_pd *pd, char *p, uint64_t for_ns)
{
	uint64_t begin = clock_ns(), done = 0;

	do {
		struct ibv_mr *mr = NULL;

		if (g)
			register_at(g, p, MIB);
		else
			mr = ibv_reg_mr(pd, p, MIB,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
						IBV_ACCESS_REMOTE_WRITE);
		if (g ? gantry_deregister(g, p) != 0 : !mr || ibv_dereg_mr(mr) != 0)
			bench_die("a registration failed");
		done++;
	} while (clock_ns() - begin < for_ns);
	return (double)(clock_ns() - begin) / 1e3 / (double)done;
}

static void
figure_register(void)
{
	struct row row = { .figure = "register_1m", .unit = "us" };
	char *memory = memory_of(MIB);
	struct gantry *g = open_one_port();

	for (int n = -1; n < bench_rounds(); n++) {
		double ours = registrations(g, NULL, memory, bench_ns());
		double reference = registrations(NULL, g->port[0].pd, memory, bench_ns());

		if (n >= 0)
			row_add(&row, ours, reference);
	}
	row_print(&row);
	gantry_close(g);
	free(memory);
}

/* ---- memory ---- */

static ssize_t
on_get(const void *handle, char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	return (ssize_t)size;
}

static double
used_kib(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)(m.uordblks + m.hblkhd) / 1024;
}

/* Measures the KiB that 10^6 operations take beyond 10^3, compared with one. The figure is at least one KiB, since a ratio of 0 cannot be
 * compared. */
static void
figure_memory(void)
{
	const struct gantry_ops ops = { .get = on_get };
	struct row row = { .figure = "obj_get_memory", .unit = "KiB" };
	char *memory = memory_of(MIB);

	for (int n = 0; n < bench_rounds(); n++) {
		struct gantry *g = open_one_port();
		double before = 0;

		register_at(g, memory, MIB);
		for (int i = 0; i < 1000000; i++) {
			if (i == 1000)
				before = used_kib();
			if (gantry_obj_move(g, GANTRY_OP_GET, &ops, NULL, memory, PIECE, 0, i % 1000) !=
			    PIECE)
				bench_die("gantry_obj_move");
		}
		double more = used_kib() - before;

		row_add(&row, more < 1 ? 1 : more, 1);
		gantry_close(g);
	}
	row_print(&row);
	free(memory);
}

int
main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "token_10k"))
			figure_registrations();
		else if (!strcmp(argv[i], "token_threads"))
			figure_threads();
		else if (!strcmp(argv[i], "register_1m"))
			figure_register();
		else if (!strcmp(argv[i], "obj_get_memory"))
			figure_memory();
		else
			bench_die("no figure %s", argv[i]);
	}
	return 0;
}
