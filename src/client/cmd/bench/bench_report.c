/* SPDX-License-Identifier: Apache-2.0 */
/* What gantry bench prints: a table, or one JSON object a line.  Main thread. */
#include "client/cmd/bench/bench.h"

#include "client/cmd/common/admin_client.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GB 1e9

struct sum {
	uint64_t nr, bytes;
};

static struct sum
sum_of(const struct bench_row *row)
{
	struct sum s = { 0 };

	for (int i = 0; i < BENCH_OP_NR; i++) {
		s.nr += row->op[i].nr;
		s.bytes += row->op[i].bytes;
	}
	return s;
}

static double
by(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* How many operations the mix has. */
static int
ops_of(const struct bench_mix *m)
{
	int nr = 0;

	for (int i = 0; i < BENCH_OP_NR; i++)
		nr += m->weight[i] > 0;
	return nr;
}

static void
print_json(json_t *o)
{
	json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	putchar('\n');
	fflush(stdout);
	json_decref(o);
}

/* ---- the head ---- */

void
bench_report_head(const struct bench *b)
{
	const struct cmd *c = b->c;
	json_t *o;

	if (c->json) {
		o = json_pack("{s:s, s:s, s:s, s:I, s:b, s:s, s:f, s:f, s:i, s:i, s:f}", "op", "bench-begin",
			      "url", b->base, "version", gantry_version(), "seed", (json_int_t)b->seed,
			      "verify", c->verify, "loop", c->rate > 0 ? "open" : "closed", "rate", c->rate,
			      "seconds", c->count ? 0. : c->time_s, "count", c->count, "rounds", c->rounds,
			      "warm_up_seconds", c->warm_up_s);
		json_object_set_new(o, "rdma_ports", json_integer(0));
		for (int i = 0; gantry_port(c->g, i); i++)
			json_object_set_new(o, "rdma_ports", json_integer(i + 1));
		json_object_set_new(o, "no_rdma_because", json_pack("s", gantry_rdma_reason(c->g)));
		print_json(o);
		return;
	}
	if (c->quiet)
		return;
	printf("%s/, seed %llu\n", b->base, (unsigned long long)b->seed);
	if (c->rate > 0)
		printf("open loop: %g requests a second; latency counts from when each was due\n", c->rate);
	else
		printf("closed loop: each of those at once sends its next request when the answer is "
		       "there\n");
	if (!gantry_is_connected(c->g))
		printf("no RDMA: %s\n", gantry_rdma_reason(c->g));
	printf("CPU: seconds for a GB, of this process%s\n\n",
	       b->has_server_cpu ? " and of the server" : "; --admin adds the server's");
	printf("%-6s %-11s %7s %-4s %5s %10s %7s  %8s %8s %8s %8s %8s  %6s %6s\n", "op", "size", "at once",
	       "way", "RDMA", "objects/s", "GB/s", "p50", "p90", "p99", "p99.9", "max", "client", "server");
}

/* ---- a row ---- */

static const char *
ns_text(uint64_t ns, char out[32])
{
	return seconds_text((double)ns / 1e9, out);
}

static void
print_op(const struct bench_row *row, const char *op, const struct sum *s)
{
	printf("%-6s %-11.11s %7d %-4s", op, row->sizes->text, row->at_once, bench_way_name[row->way]);
	if (s->bytes)
		printf(" %4.0f%%",
		       100 * by((double)row->rdma_bytes, (double)row->rdma_bytes + (double)row->http_bytes));
	else
		printf(" %5s", "-");
	printf(" %10.1f", by((double)s->nr, row->seconds));
	if (s->bytes)
		printf(" %7.3f ", by((double)s->bytes / GB, row->seconds));
	else
		printf(" %7s ", "-");
}

static void
print_latency(const struct histogram *h)
{
	static const double p[] = { .5, .9, .99, .999, 1 };
	char text[32];

	for (size_t i = 0; i < sizeof p / sizeof *p; i++)
		printf(" %8s", histogram_count(h) ? ns_text(histogram_quantile(h, p[i]), text) : "-");
}

static void
print_cpu(const struct bench *b, const struct bench_row *row, const struct sum *s)
{
	double gb = (double)s->bytes / GB;

	if (gb > 0)
		printf("  %6.3f", row->client_cpu_s / gb);
	else
		printf("  %6s", "-");
	if (gb > 0 && b->has_server_cpu)
		printf(" %6.3f", row->server_cpu_s / gb);
	else
		printf(" %6s", "-");
}

static void
print_kinds(const char *what, const struct bench_kinds *k)
{
	for (int i = 0; i < k->nr; i++)
		printf("       %s: %llu: %s\n", what, (unsigned long long)k->kind[i].nr, k->kind[i].name);
}

static void
print_row(const struct bench *b, const struct bench_row *row)
{
	struct sum all = sum_of(row);
	bool mixed = ops_of(row->mix) > 1;

	for (int i = 0; i < BENCH_OP_NR; i++) {
		struct sum s = { row->op[i].nr, row->op[i].bytes };

		if (!row->mix->weight[i] && !s.nr)
			continue;
		print_op(row, bench_op_name[i], &s);
		print_latency(&row->op[i].latency);
		if (!mixed)
			print_cpu(b, row, &s);
		putchar('\n');
	}
	if (mixed) {
		print_op(row, "all", &all);
		printf("%45s", "");
		print_cpu(b, row, &all);
		putchar('\n');
	}
	print_kinds("not by RDMA", &row->not_rdma);
	print_kinds("failed", &row->error);
	fflush(stdout);
}

static json_t *
kinds_json(const struct bench_kinds *k)
{
	json_t *o = json_object();

	for (int i = 0; i < k->nr; i++)
		json_object_set_new(o, k->kind[i].name, json_integer((json_int_t)k->kind[i].nr));
	return o;
}

static json_t *
figures_json(const struct bench_figures *f, double seconds)
{
	const struct histogram *h = &f->latency;
	json_t *o = json_pack("{s:I, s:I, s:f, s:f}", "operations", (json_int_t)f->nr, "bytes",
			      (json_int_t)f->bytes, "operations_per_second", by((double)f->nr, seconds),
			      "bytes_per_second", by((double)f->bytes, seconds));

	json_object_set_new(o, "latency_us",
			    json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "mean", histogram_mean(h) / 1e3,
				      "p50", (double)histogram_quantile(h, .5) / 1e3, "p90",
				      (double)histogram_quantile(h, .9) / 1e3, "p99",
				      (double)histogram_quantile(h, .99) / 1e3, "p99_9",
				      (double)histogram_quantile(h, .999) / 1e3, "max",
				      (double)histogram_quantile(h, 1) / 1e3));
	return o;
}

static json_t *
cpu_json(double seconds, const struct sum *s)
{
	return json_pack("{s:f, s:f, s:f}", "seconds", seconds, "seconds_per_gb",
			 by(seconds, (double)s->bytes / GB), "us_per_operation",
			 by(seconds * 1e6, (double)s->nr));
}

static json_t *
row_json(const struct bench *b, const struct bench_row *row)
{
	struct sum all = sum_of(row);
	json_t *o =
		json_pack("{s:s, s:s, s:s, s:i, s:s, s:I, s:i, s:f, s:I, s:I, s:f, s:f}", "op", "bench",
			  "mix", row->mix->text, "sizes", row->sizes->text, "at_once", row->at_once, "way",
			  bench_way_name[row->way], "objects", (json_int_t)row->objects, "rounds",
			  row->rounds, "seconds", row->seconds, "operations", (json_int_t)all.nr, "bytes",
			  (json_int_t)all.bytes, "operations_per_second", by((double)all.nr, row->seconds),
			  "bytes_per_second", by((double)all.bytes, row->seconds));

	for (int i = 0; i < BENCH_OP_NR; i++)
		if (row->mix->weight[i] || row->op[i].nr)
			json_object_set_new(o, bench_op_name[i], figures_json(&row->op[i], row->seconds));
	json_object_set_new(o, "rdma_bytes", json_integer((json_int_t)row->rdma_bytes));
	json_object_set_new(o, "http_bytes", json_integer((json_int_t)row->http_bytes));
	json_object_set_new(o, "not_rdma", kinds_json(&row->not_rdma));
	json_object_set_new(o, "errors", json_integer((json_int_t)row->errors));
	json_object_set_new(o, "errors_by_kind", kinds_json(&row->error));
	json_object_set_new(o, "damaged", json_integer((json_int_t)row->damaged));
	json_object_set_new(o, "client_cpu", cpu_json(row->client_cpu_s, &all));
	if (b->has_server_cpu)
		json_object_set_new(o, "server_cpu", cpu_json(row->server_cpu_s, &all));
	return o;
}

void
bench_report_row(const struct bench *b, const struct bench_row *row)
{
	if (b->c->json)
		print_json(row_json(b, row));
	else
		print_row(b, row);
}

/* ---- RDMA against HTTP ---- */

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median of the rounds' own ratios, and the distance between their quartiles. */
static double
ratio_of_rounds(const double *a, const double *b, int nr, double *ret_spread)
{
	double r[BENCH_ROUNDS_MAX];

	for (int i = 0; i < nr; i++)
		r[i] = by(a[i], b[i]);
	qsort(r, (size_t)nr, sizeof *r, by_value);
	*ret_spread = nr ? r[nr * 3 / 4 < nr ? nr * 3 / 4 : nr - 1] - r[nr / 4] : 0;
	return !nr ? 0 : nr % 2 ? r[nr / 2] : (r[nr / 2 - 1] + r[nr / 2]) / 2;
}

/* The latency of a mix is that of its first operation. */
static double
p_ratio(const struct bench_row *a, const struct bench_row *b, double p)
{
	int i = 0;

	while (i + 1 < BENCH_OP_NR && !a->mix->weight[i])
		i++;
	return by((double)histogram_quantile(&a->op[i].latency, p),
		  (double)histogram_quantile(&b->op[i].latency, p));
}

void
bench_report_ratio(const struct bench *b, const struct bench_row *rdma, const struct bench_row *http)
{
	struct sum r = sum_of(rdma), h = sum_of(http);
	int rounds = rdma->rounds < http->rounds ? rdma->rounds : http->rounds;
	double spread, rate = ratio_of_rounds(rdma->rate, http->rate, rounds, &spread);
	double client = by(by(rdma->client_cpu_s, (double)r.nr), by(http->client_cpu_s, (double)h.nr));
	double server = by(by(rdma->server_cpu_s, (double)r.nr), by(http->server_cpu_s, (double)h.nr));
	bool is_one = rdma->rdma_bytes > 0 && rdma->http_bytes == 0 && h.nr > 0 && rounds > 0;
	json_t *o;

	if (!b->c->json && !is_one) {
		printf("ratio  none: what was to go by RDMA did not, or nothing was moved\n");
		return;
	}
	if (!b->c->json) {
		printf("ratio  RDMA : HTTP = %.2f objects/s (spread %.2f over %d rounds), %.2f p50, %.2f "
		       "p99, CPU %.2f client",
		       rate, spread, rounds, p_ratio(rdma, http, .5), p_ratio(rdma, http, .99), client);
		if (b->has_server_cpu)
			printf(", %.2f server", server);
		putchar('\n');
		return;
	}
	o = json_pack("{s:s, s:s, s:s, s:i, s:b, s:i, s:f, s:f, s:f, s:f, s:f}", "op", "bench-ratio", "mix",
		      rdma->mix->text, "sizes", rdma->sizes->text, "at_once", rdma->at_once, "valid", is_one,
		      "rounds", rounds, "rate", rate, "spread", spread, "p50", p_ratio(rdma, http, .5), "p99",
		      p_ratio(rdma, http, .99), "client_cpu", client);
	if (b->has_server_cpu)
		json_object_set_new(o, "server_cpu", json_real(server));
	print_json(o);
}

/* ---- the end ---- */

static json_t *
ways_json(const _Atomic uint64_t bytes[BENCH_WAY_NR])
{
	return json_pack("{s:I, s:I}", "rdma", (json_int_t)bytes[BENCH_RDMA], "http",
			 (json_int_t)bytes[BENCH_HTTP]);
}

void
bench_report_total(const struct bench *b)
{
	const struct bench_total *t = &b->total;
	json_t *o;

	if (!b->c->json)
		return;
	o = json_pack("{s:s, s:I, s:I, s:I, s:I}", "op", "bench-end", "puts", (json_int_t)t->nr[BENCH_PUT],
		      "gets", (json_int_t)t->nr[BENCH_GET], "heads", (json_int_t)t->nr[BENCH_HEAD], "deletes",
		      (json_int_t)t->nr[BENCH_DELETE]);
	json_object_set_new(o, "put_bytes", ways_json(t->put_bytes));
	json_object_set_new(o, "get_bytes", ways_json(t->get_bytes));
	json_object_set_new(o, "interrupted", json_pack("b", bench_ended()));
	print_json(o);
}
