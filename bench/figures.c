/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's figures: the load generator in turn with the raw loop (same disk) or with nginx.
 *
 *	bench-load -s HOST:PORT -p PID -c SOFTNICCTL -r RAWFILE [-n HOST:PORT -q PID] [-t HOST:PORT -u PID]
 *	           [-v HOST:PORT -w PID] FIGURE...
 *
 * -s, -p: gantryd on one core; -n, -q: nginx and its worker; -t, -u: gantryd on two cores; -v, -w: a second
 * gantryd on one core (cpu_2_cores).  CPU times are those of whole processes.  softnic's copies are made by
 * the daemon's processor, as no adapter's would be: how long they took, softnicctl says, and figures that are
 * given net have it taken off.  The curves of growth.c are asked for by their names, too.
 */
#include "bench/load.h"

#include "base/clock.h"
#include "base/crc64.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct raw_result
raw_on_server_cpu(bool write, uint32_t len, int qd, bool flush, uint64_t ns)
{
	struct raw_result res;

	bench_pin(SERVER_CPU);
	res = raw_run(load.raw, write, len, qd, flush, ns);
	bench_pin(LOAD_CPU);
	return res;
}

static void
put_many(const struct server *s, const char *prefix, size_t size)
{
	load_put_all(&(struct job){ .server = s, .prefix = prefix, .size = size, .conns = 32 });
}

static void
put_empty(void)
{
	load_put_all(&(struct job){ .server = &load.one, .prefix = "empty", .conns = 1 });
}

/* ---- figures: throughput ---- */

static const struct moved {
	const char *name;
	enum op op;
	size_t size;
	int conns;
} moved[] = {
	{ "put_256k_q32", OP_PUT, 256u << 10, 32 }, { "put_1m_q16", OP_PUT, MIB, 16 },
	{ "put_64m_q8", OP_PUT, 64 * MIB, 8 },      { "get_256k_q32", OP_GET, 256u << 10, 32 },
	{ "get_4m_q32", OP_GET, 4 * MIB, 32 },
};

static void
say_run(const char *name, const struct result *res, const struct raw_result *raw)
{
	double n = (double)res->n * 1e3;

	fprintf(stderr, "%s: %.0f MB/s, raw %.0f; %.1f us each: CPU %.1f (copies %.1f), none free %.1f; ",
		name, per_second(res->bytes, res->ns) / 1e6, per_second(raw->bytes, raw->ns) / 1e6,
		us_each(res->ns, res->n), us_each(res->cpu_ns, res->n), us_each(res->copy_ns, res->n),
		res->waited_ns / n);
	fprintf(stderr, "the load's CPU %.1f, none free %.1f\n", res->load_cpu_ns / n,
		res->load_waited_ns / n);
}

static void
throughput(const struct moved *m)
{
	struct row row = { .figure = m->name, .unit = "MB/s", .has_net = true };
	struct job j = { .server = &load.one,
			 .op = m->op,
			 .prefix = load_prefix(m->size),
			 .size = m->size,
			 .conns = m->conns };
	uint32_t len = m->size < MIB ? (uint32_t)m->size : (uint32_t)MIB;
	size_t pieces = m->size / len < 8 ? m->size / len : 8;
	uint64_t ns = m->size > 16 * MIB ? 2 * bench_ns() : bench_ns();

	/* Three times over: space that was used once, and comes back, is what a store lives on. */
	for (int i = 0; i < (m->op == OP_PUT ? 3 : 1); i++)
		load_put_all(&j);
	sleep(2);
	for (int n = -1; n < bench_rounds(); n++) {
		struct raw_result raw = { 0 };
		struct result res;

		if (n & 1)
			raw = raw_on_server_cpu(m->op == OP_PUT, len, m->conns * (int)pieces, false, ns);
		res = load_run(&j, ns);
		if (!(n & 1))
			raw = raw_on_server_cpu(m->op == OP_PUT, len, m->conns * (int)pieces, false, ns);
		if (n < 0)
			continue;
		if (getenv("BENCH_VERBOSE"))
			say_run(m->name, &res, &raw);
		row_add_net(&row, per_second(res.bytes, res.ns) / 1e6,
			    per_second(res.bytes, res.ns - res.copy_ns) / 1e6,
			    per_second(raw.bytes, raw.ns) / 1e6);
	}
	row_print(&row);
}

/* ---- figures: CPU and latency ---- */

static const struct job *
no_op(const struct server *s)
{
	static struct job j;

	j = (struct job){ .server = s, .op = OP_GET, .prefix = "empty", .conns = 64 };
	return &j;
}

static void
say_side(const char *side, const struct result *res)
{
	double n = (double)(res->n ? res->n : 1);

	fprintf(stderr, "%s: CPU %.2f us, %.3f sleeps; the load: %.2f us, %.3f sleeps; %.2f us each\n", side,
		us_each(res->cpu_ns, res->n), res->sleeps / n, res->load_cpu_ns / n / 1e3,
		res->load_sleeps / n, us_each(res->ns, res->n));
}

static void
http_cpu(void)
{
	struct row row = { .figure = "http_cpu", .unit = "us" };
	struct job one = *no_op(&load.one), nginx = *no_op(&load.nginx);

	if (!load.nginx.pid)
		bench_die("http_cpu needs nginx");
	one.spins = nginx.spins = true;
	put_empty();
	for (int n = -1; n < bench_rounds(); n++) {
		struct result ours = { 0 }, theirs;

		if (n & 1)
			ours = load_run(&one, bench_ns());
		theirs = load_run(&nginx, bench_ns());
		if (!(n & 1))
			ours = load_run(&one, bench_ns());
		if (n >= 0)
			row_add(&row, us_each(ours.cpu_ns, ours.n), us_each(theirs.cpu_ns, theirs.n));
		if (n >= 0 && getenv("BENCH_VERBOSE")) {
			say_side("http_cpu, gantryd", &ours);
			say_side("http_cpu, nginx", &theirs);
		}
	}
	row_print(&row);
}

/* CRC64-NVME of 256 KiB that lie in no cache of the core's own. */
static double
crc_us(size_t len)
{
	uint64_t begin = clock_ns();
	volatile uint64_t sum = 0;
	unsigned n = 0;
	size_t mem_len;
	const char *mem = load_bytes(&mem_len);

	for (size_t at = 0; at + len <= mem_len && at < 256 * MIB; at += len, n++)
		sum = crc64_nvme(sum, mem + at, len);
	return us_each(clock_ns() - begin, n);
}

static void
put_cpu(void)
{
	struct row row = { .figure = "put_cpu", .unit = "us", .has_net = true };
	size_t size = 256u << 10;
	struct job j = {
		.server = &load.one, .op = OP_PUT, .prefix = load_prefix(size), .size = size, .conns = 32
	};

	put_empty();
	for (int i = 0; i < 3; i++)
		put_many(&load.one, j.prefix, size);
	sleep(2);
	for (int n = -1; n < bench_rounds(); n++) {
		struct raw_result raw = raw_on_server_cpu(true, (uint32_t)size, 32, false, bench_ns() / 2);
		struct result put = load_run(&j, bench_ns()),
			      nop = load_run(no_op(&load.one), bench_ns() / 2);
		double a = us_each(nop.cpu_ns, nop.n), c = us_each(raw.cpu_ns, raw.ops), sum = crc_us(size);

		if (n < 0)
			continue;
		if (getenv("BENCH_VERBOSE"))
			fprintf(stderr,
				"put_cpu: %.1f us, copies %.1f; no-op %.1f, raw write %.1f, CRC %.1f\n",
				us_each(put.cpu_ns, put.n), us_each(put.copy_ns, put.n), a, c, sum);
		row_add_net(&row, us_each(put.cpu_ns, put.n), us_each(put.cpu_ns - put.copy_ns, put.n),
			    a + c + sum);
	}
	row_print(&row);
}

/* The reference is a microsecond, so that the ratio is in microseconds. */
static void
us_256k(const char *name, enum op op)
{
	struct row row = { .figure = name, .unit = "us", .has_net = true };
	size_t size = 256u << 10;
	struct job j = { .server = &load.one,
			 .op = op,
			 .prefix = load_prefix(size),
			 .size = size,
			 .conns = 32,
			 .spins = true };

	for (int i = 0; i < (op == OP_PUT ? 3 : 1); i++)
		load_put_all(&j);
	sleep(2);
	for (int n = -1; n < bench_rounds(); n++) {
		struct result res = load_run(&j, bench_ns());
		double all = us_each(res.cpu_ns, res.n), copies = us_each(res.copy_ns, res.n);

		if (n >= 0 && getenv("BENCH_VERBOSE")) {
			fprintf(stderr, "%s: copies %.1f; ", name, copies);
			say_side("gantryd", &res);
		}
		if (n >= 0)
			row_add_net(&row, all, all - copies, 1);
	}
	row_print(&row);
}

static void
put_p50(void)
{
	struct row row = { .figure = "put_p50_q1", .unit = "us", .has_net = true };
	size_t size = 256u << 10;
	struct job j = {
		.server = &load.one, .op = OP_PUT, .prefix = load_prefix(size), .size = size, .conns = 1
	};
	struct job nop = { .server = &load.one, .op = OP_GET, .prefix = "empty", .conns = 1 };

	put_empty();
	for (int i = 0; i < 3; i++)
		put_many(&load.one, j.prefix, size);
	sleep(2);
	for (int n = -1; n < bench_rounds(); n++) {
		struct raw_result raw = raw_on_server_cpu(true, (uint32_t)size, 1, true, bench_ns());
		struct result put = load_run(&j, bench_ns()), none = load_run(&nop, bench_ns() / 2);

		if (n < 0)
			continue;
		if (getenv("BENCH_VERBOSE"))
			fprintf(stderr,
				"put_p50: %.1f us, copies %.1f; no-op %.1f, raw write and flush %.1f\n",
				put.p50_us, us_each(put.copy_ns, put.n), none.p50_us, raw.p50_us);
		row_add_net(&row, put.p50_us, put.p50_us - us_each(put.copy_ns, put.n),
			    none.p50_us + raw.p50_us);
	}
	row_print(&row);
}

/*
 * The clients share the two CPUs with the cores under test.  So the reference has the same share of them: two
 * daemons of one core each, which have nothing in common.
 */
static void
cpu_2_cores(void)
{
	struct row row = { .figure = "cpu_2_cores", .unit = "us" };
	size_t size = 4096;
	struct job one = { .server = &load.one,
			   .op = OP_GET,
			   .prefix = load_prefix(size),
			   .size = size,
			   .conns = 64 },
		   two = one;

	if (!load.two.pid || !load.other.pid)
		bench_die("cpu_2_cores needs three daemons");
	two.server = &load.two;
	one.other = &load.other;
	put_many(&load.other, one.prefix, size);
	put_many(&load.one, one.prefix, size);
	put_many(&load.two, one.prefix, size);
	for (int n = -1; n < bench_rounds(); n++) {
		struct result x = { 0 }, y;

		if (n & 1)
			x = load_run(&one, bench_ns());
		y = load_run(&two, bench_ns());
		if (!(n & 1))
			x = load_run(&one, bench_ns());
		if (n >= 0)
			row_add(&row, us_each(y.cpu_ns - y.copy_ns, y.n), us_each(x.cpu_ns - x.copy_ns, x.n));
	}
	row_print(&row);
}

/* ---- main ---- */

static void
figure(const char *name)
{
	for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
		if (!strcmp(moved[i].name, name)) {
			throughput(&moved[i]);
			return;
		}
	}
	if (!strcmp(name, "http_cpu"))
		http_cpu();
	else if (!strcmp(name, "put_cpu"))
		put_cpu();
	else if (!strcmp(name, "put_us_256k"))
		us_256k("put_us_256k", OP_PUT);
	else if (!strcmp(name, "get_us_256k"))
		us_256k("get_us_256k", OP_GET);
	else if (!strcmp(name, "put_p50_q1"))
		put_p50();
	else if (!strcmp(name, "cpu_2_cores"))
		cpu_2_cores();
	else if (!s3_figure(name) && !rc_figure(name) && !growth(name))
		bench_die("no figure %s", name);
}

int
main(int argc, char **argv)
{
	const char *raw_path = NULL;
	int opt;

	load.one.is_gantry = load.two.is_gantry = load.other.is_gantry = true;
	while ((opt = getopt(argc, argv, "s:p:n:q:t:u:v:w:c:r:")) != -1) {
		switch (opt) {
		case 's':
			load.one.at = bench_address(optarg);
			break;
		case 'p':
			load.one.pid = atoi(optarg);
			break;
		case 'n':
			load.nginx.at = bench_address(optarg);
			break;
		case 'q':
			load.nginx.pid = atoi(optarg);
			break;
		case 't':
			load.two.at = bench_address(optarg);
			break;
		case 'u':
			load.two.pid = atoi(optarg);
			break;
		case 'v':
			load.other.at = bench_address(optarg);
			break;
		case 'w':
			load.other.pid = atoi(optarg);
			break;
		case 'c':
			load.softnicctl = optarg;
			break;
		case 'r':
			raw_path = optarg;
			break;
		default:
			return 2;
		}
	}
	if (!load.one.pid || !load.softnicctl || !raw_path || optind == argc)
		bench_die("usage: see bench/load.c");
	bench_pin(LOAD_CPU);
	load_memory(512 * MIB);
	load.raw = raw_open(raw_path, bench_live_bytes(LIVE_BYTES), 260);
	for (int i = optind; i < argc; i++)
		figure(argv[i]);
	raw_close(load.raw);
	bench_quiet_say();
	return 0;
}
