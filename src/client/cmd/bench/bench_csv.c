/* SPDX-License-Identifier: Apache-2.0 */
/* What gantry bench prints as CSV (man/gantry.1 has the columns). Main thread. */
#include "client/cmd/bench/bench.h"

#include <stdio.h>
#include <string.h>

void
bench_csv_head(void)
{
	printf("record,op,mix,sizes,at_once,way,hosts,endpoint,at,seconds,operations,operations_per_second,"
	       "bytes,"
	       "bytes_per_second,p50_us,p90_us,p99_us,p99_9_us,max_us,first_byte_p50_us,first_byte_p99_us,"
	       "errors,"
	       "damaged,rdma_bytes,http_bytes,client_cpu_seconds,server_cpu_seconds\n");
	fflush(stdout);
}

/* Prints the columns that all lines of a row begin with. */
static void
begin(const struct bench_row *row, const char *record, const char *op, const char *endpoint)
{
	printf("%s,%s,%s,%s,%d,%s,%d,%s", record, op, row->mix->text, row->sizes->text, row->at_once,
	       bench_way_name[row->way], row->hosts, endpoint);
}

static void
amounts(double at_s, double seconds, uint64_t nr, uint64_t bytes)
{
	if (at_s > 0)
		printf(",%.3f", at_s);
	else
		putchar(',');
	printf(",%.6f,%llu,%.3f,%llu,%.0f", seconds, (unsigned long long)nr,
	       seconds > 0 ? (double)nr / seconds : 0, (unsigned long long)bytes,
	       seconds > 0 ? (double)bytes / seconds : 0);
}

/* Prints a time in us, or an empty column. */
static void
us(bool has, uint64_t ns)
{
	if (has)
		printf(",%.3f", (double)ns / 1e3);
	else
		putchar(',');
}

static void
latencies(const struct histogram *h, const struct histogram *first_byte)
{
	static const double p[] = { .5, .9, .99, .999, 1 };
	bool has = histogram_count(h) > 0, has_first = first_byte && histogram_count(first_byte) > 0;

	for (size_t i = 0; i < sizeof p / sizeof *p; i++)
		us(has, histogram_quantile(h, p[i]));
	us(has_first, has_first ? histogram_quantile(first_byte, .5) : 0);
	us(has_first, has_first ? histogram_quantile(first_byte, .99) : 0);
}

void
bench_csv_row(const struct bench *b, const struct bench_row *row)
{
	for (int i = 0; i < BENCH_OP_NR; i++) {
		const struct bench_figures *f = &row->op[i];

		if (!row->mix->weight[i] && !f->nr)
			continue;
		begin(row, "row", bench_op_name[i], "");
		amounts(0, row->seconds, f->nr, f->bytes);
		latencies(&f->latency, &f->first_byte);
		printf(",%llu,%llu,%llu,%llu,%.6f,", (unsigned long long)row->errors,
		       (unsigned long long)row->damaged, (unsigned long long)row->rdma_bytes,
		       (unsigned long long)row->http_bytes, row->client_cpu_s);
		if (b->has_server_cpu)
			printf("%.6f", row->server_cpu_s);
		putchar('\n');
	}
	for (int i = 0; row->endpoint && i < b->endpoints; i++) {
		const struct bench_endpoint *e = &row->endpoint[i];

		begin(row, "endpoint", "", b->endpoint[i]);
		amounts(0, row->seconds, e->nr, e->bytes);
		latencies(&e->latency, NULL);
		printf(",%llu,,,,,\n", (unsigned long long)e->errors);
	}
	for (int i = 0; i < row->second_nr; i++) {
		const struct bench_second *s = &row->second[i];

		begin(row, "second", "", "");
		amounts(s->at_s, s->seconds, s->nr, s->bytes);
		us(s->nr > 0, s->p50_ns);
		putchar(',');
		us(s->nr > 0, s->p99_ns);
		printf(",,,,,,,,,,\n");
	}
	fflush(stdout);
}
