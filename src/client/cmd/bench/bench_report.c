/* SPDX-License-Identifier: Apache-2.0 */
/* What gantry bench prints: a table, or one JSON object a line.  Main thread. */
#include "client/cmd/bench/bench.h"

#include "client/cmd/bench/bench_meter.h"
#include "client/cmd/bench/bench_wire.h"
#include "client/cmd/common/admin_client.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GB 1e9
#define LEFT_TOLD_MAX 1000 /* number of objects that are named which could not be removed */
#define FEW_ABOVE 10       /* number of values above a quantile with which the quantile means something */

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

/* Returns the time of all rounds with their warm-up, in seconds; 0: unknown. */
static double
planned_s(const struct bench *b)
{
	const struct cmd *c = b->c;

	return c->count ? 0 : bench_plan_seconds(&b->plan, c->rounds, c->warm_up_s + c->time_s);
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

static json_t *
endpoints_json(const struct bench *b)
{
	json_t *all = json_array();

	for (int i = 0; i < b->endpoints; i++)
		json_array_append_new(all, json_pack("s", b->endpoint[i]));
	return all;
}

/* Announces the rows, and how long they take. */
static void
print_plan(const struct bench *b)
{
	int rows = bench_plan_rows(&b->plan), rounds = b->c->rounds * b->plan.way_nr;
	char time[AMOUNT_TEXT];

	for (int i = 1; i < b->endpoints; i++)
		printf("also by %s\n", b->endpoint[i]);
	printf("%d row%s of %d round%s", rows, rows == 1 ? "" : "s", rounds, rounds == 1 ? "" : "s");
	if (!b->c->count)
		printf(", which take %s, besides making and removing the objects",
		       interval_text((uint64_t)(planned_s(b) + .5), time));
	putchar('\n');
}

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
		json_object_set_new(o, "rows", json_integer(bench_plan_rows(&b->plan)));
		json_object_set_new(o, "planned_seconds", json_real(planned_s(b)));
		json_object_set_new(o, "endpoints", endpoints_json(b));
		json_object_set_new(o, "no_rdma_because", json_pack("s", gantry_rdma_reason(c->g)));
		print_json(o);
		return;
	}
	if (c->csv) {
		bench_csv_head();
		return;
	}
	if (c->quiet)
		return;
	printf("%s/, seed %llu\n", c->hosts ? b->endpoint[0] : b->base, (unsigned long long)b->seed);
	if (c->rate > 0)
		printf("open loop: %g requests a second; latency counts from when each was due\n", c->rate);
	else
		printf("closed loop: each of those at once sends its next request when the answer is "
		       "there\n");
	if (c->hosts)
		printf("from the hosts %s together\n", c->hosts);
	else if (!gantry_is_connected(c->g))
		printf("no RDMA: %s\n", gantry_rdma_reason(c->g));
	print_plan(b);
	printf("CPU: seconds for a GB, of %s%s\n\n", c->hosts ? "all of them" : "this process",
	       c->hosts            ? ""
	       : b->has_server_cpu ? " and of the server"
				   : "; --admin adds the server's");
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

static bool
is_few(uint64_t nr, double p)
{
	return p < 1 && (double)nr * (1 - p) < FEW_ABOVE - 1e-6;
}

/* Prints quantiles, with a '~' before one that says little. */
static void
print_latency(const struct histogram *h)
{
	static const double p[] = { .5, .9, .99, .999, 1 };
	uint64_t nr = histogram_count(h);
	char text[32], marked[40];

	for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
		snprintf(marked, sizeof marked, "%s%s", is_few(nr, p[i]) ? "~" : "",
			 ns_text(histogram_quantile(h, p[i]), text));
		printf(" %8s", nr ? marked : "-");
	}
}

/* Prints the times to the first byte below a row of gets. */
static void
print_first_byte(const struct histogram *h)
{
	char a[32], b[32];

	if (histogram_count(h))
		printf("       first byte after %s (p50), %s%s (p99)\n",
		       ns_text(histogram_quantile(h, .5), a), is_few(histogram_count(h), .99) ? "~" : "",
		       ns_text(histogram_quantile(h, .99), b));
}

static void
print_endpoints(const struct bench *b, const struct bench_row *row)
{
	for (int i = 0; row->endpoint && i < b->endpoints; i++) {
		const struct bench_endpoint *e = &row->endpoint[i];
		char p50[32], p99[32];

		printf("       %s: %.1f objects/s, %.3f GB/s, p50 %s, p99 %s, %llu failed\n", b->endpoint[i],
		       by((double)e->nr, row->seconds), by((double)e->bytes / GB, row->seconds),
		       ns_text(histogram_quantile(&e->latency, .5), p50),
		       ns_text(histogram_quantile(&e->latency, .99), p99), (unsigned long long)e->errors);
	}
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

static bool
is_few_somewhere(const struct bench_row *row)
{
	for (int i = 0; i < BENCH_OP_NR; i++)
		if (row->op[i].nr && is_few(row->op[i].nr, .999))
			return true;
	return false;
}

static void
print_row(struct bench *b, const struct bench_row *row)
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
	print_first_byte(&row->op[BENCH_GET].first_byte);
	print_endpoints(b, row);
	print_kinds("not by RDMA", &row->not_rdma);
	print_kinds("failed", &row->error);
	if (!b->has_explained_few && is_few_somewhere(row)) {
		printf("       ~: fewer than %d requests took longer\n", FEW_ABOVE);
		b->has_explained_few = true;
	}
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

/* The quantiles of a histogram in us. */
static json_t *
quantiles_json(const struct histogram *h)
{
	json_t *o = json_pack(
		"{s:f, s:f, s:f, s:f, s:f, s:f}", "mean", histogram_mean(h) / 1e3, "p50",
		(double)histogram_quantile(h, .5) / 1e3, "p90", (double)histogram_quantile(h, .9) / 1e3,
		"p99", (double)histogram_quantile(h, .99) / 1e3, "p99_9",
		(double)histogram_quantile(h, .999) / 1e3, "max", (double)histogram_quantile(h, 1) / 1e3);
	json_t *few = json_array();
	uint64_t nr = histogram_count(h);

	if (is_few(nr, .99))
		json_array_append_new(few, json_pack("s", "p99"));
	if (is_few(nr, .999))
		json_array_append_new(few, json_pack("s", "p99_9"));
	json_object_set_new(o, "few", few);
	return o;
}

static json_t *
reals_json(const double *v, int nr)
{
	json_t *all = json_array();

	for (int i = 0; i < nr; i++)
		json_array_append_new(all, json_real(v[i]));
	return all;
}

static json_t *
series_json(const struct bench_row *row)
{
	json_t *all = json_array();

	for (int i = 0; i < row->second_nr; i++) {
		const struct bench_second *s = &row->second[i];

		json_t *o = json_pack("{s:f, s:f, s:I, s:I, s:f, s:f}", "at", s->at_s, "seconds", s->seconds,
				      "operations", (json_int_t)s->nr, "bytes", (json_int_t)s->bytes,
				      "p50_us", (double)s->p50_ns / 1e3, "p99_us", (double)s->p99_ns / 1e3);

		if (s->counts)
			json_object_set(o, "histogram", s->counts);
		json_array_append_new(all, o);
	}
	return all;
}

static json_t *
by_endpoint_json(const struct bench *b, const struct bench_row *row)
{
	json_t *all = json_array();

	for (int i = 0; i < b->endpoints; i++) {
		const struct bench_endpoint *e = &row->endpoint[i];
		json_t *o =
			json_pack("{s:s, s:I, s:I, s:f, s:f, s:I}", "url", b->endpoint[i], "operations",
				  (json_int_t)e->nr, "bytes", (json_int_t)e->bytes, "operations_per_second",
				  by((double)e->nr, row->seconds), "bytes_per_second",
				  by((double)e->bytes, row->seconds), "errors", (json_int_t)e->errors);

		json_object_set_new(o, "latency_us", quantiles_json(&e->latency));
		if (b->c->worker)
			json_object_set_new(o, "histogram", bench_histogram_json(&e->latency));
		json_array_append_new(all, o);
	}
	return all;
}

static json_t *
figures_json(const struct bench *b, const struct bench_figures *f, double seconds)
{
	const struct histogram *h = &f->latency;
	json_t *o = json_pack("{s:I, s:I, s:f, s:f}", "operations", (json_int_t)f->nr, "bytes",
			      (json_int_t)f->bytes, "operations_per_second", by((double)f->nr, seconds),
			      "bytes_per_second", by((double)f->bytes, seconds));

	json_object_set_new(o, "latency_us", quantiles_json(h));
	if (histogram_count(&f->first_byte))
		json_object_set_new(o, "first_byte_us", quantiles_json(&f->first_byte));
	if (b->c->worker) {
		json_object_set_new(o, "histogram", bench_histogram_json(h));
		json_object_set_new(o, "first_byte_histogram", bench_histogram_json(&f->first_byte));
	}
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
			json_object_set_new(o, bench_op_name[i], figures_json(b, &row->op[i], row->seconds));
	json_object_set_new(o, "rates", reals_json(row->rate, row->rounds));
	json_object_set_new(o, "byte_rates", reals_json(row->byte_rate, row->rounds));
	json_object_set_new(o, "hosts", json_integer(row->hosts));
	json_object_set_new(o, "series", series_json(row));
	if (row->endpoint)
		json_object_set_new(o, "endpoints", by_endpoint_json(b, row));
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
bench_report_row(struct bench *b, const struct bench_row *row)
{
	if (b->c->json)
		print_json(row_json(b, row));
	else if (b->c->csv)
		bench_csv_row(b, row);
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

	if (b->c->csv)
		return;
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

void
bench_report_left(struct bench *b, uint64_t left)
{
	uint64_t told = 0;

	b->left += left;
	bench_meter_hide();
	fprintf(stderr, "gantry: bench: %llu objects could not be removed: %s/%s%s\n",
		(unsigned long long)left, b->base, *b->left_why ? ": " : "", b->left_why);
	for (uint64_t i = 0; i < b->objects && told < LEFT_TOLD_MAX; i++) {
		if (!b->object[i].is_left)
			continue;
		fprintf(stderr, "    %s/%016llx\n", b->base, (unsigned long long)bench_id(b, i));
		told++;
	}
	if (left > told)
		fprintf(stderr, "    and %llu more\n", (unsigned long long)(left - told));
	bench_meter_show();
}

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
	json_object_set_new(o, "not_removed", json_integer((json_int_t)b->left));
	print_json(o);
}

/* ---- the verdict ---- */

void
bench_judge(struct bench_verdict *v, const struct bench_row *row)
{
	v->errors += row->errors;
	v->damaged += row->damaged;
	if (row->way == BENCH_RDMA)
		v->not_rdma += row->http_bytes;
}
