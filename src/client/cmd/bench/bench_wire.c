/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cmd/bench/bench_wire.h"

#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX 86400.

json_t *
bench_histogram_json(const struct histogram *h)
{
	json_t *counts = json_array();

	for (unsigned i = 0; i < HISTOGRAM_NR; i++)
		if (h->count[i])
			json_array_append_new(counts,
					      json_pack("[I, I]", (json_int_t)i, (json_int_t)h->count[i]));
	return json_pack("{s:I, s:I, s:o}", "max", (json_int_t)h->max, "sum", (json_int_t)h->sum, "counts",
			 counts);
}

/* Takes a count of at most 2^53. */
static bool
take_count(const json_t *o, uint64_t *ret)
{
	if (!json_is_integer(o) || json_integer_value(o) < 0 || json_integer_value(o) > (json_int_t)1 << 53)
		return false;
	*ret = (uint64_t)json_integer_value(o);
	return true;
}

bool
bench_histogram_take(struct histogram *h, const json_t *o)
{
	const json_t *counts = json_object_get(o, "counts");
	uint64_t max, sum, at, nr;

	if (!json_is_array(counts) || !take_count(json_object_get(o, "max"), &max) ||
	    !take_count(json_object_get(o, "sum"), &sum))
		return false;
	for (size_t i = 0; i < json_array_size(counts); i++) {
		const json_t *pair = json_array_get(counts, i);

		if (json_array_size(pair) != 2 || !take_count(json_array_get(pair, 0), &at) ||
		    !take_count(json_array_get(pair, 1), &nr) || at >= HISTOGRAM_NR)
			return false;
		h->count[at] += nr;
	}
	h->max = h->max > max ? h->max : max;
	h->sum += sum;
	return true;
}

/* ---- a row ---- */

static bool
take_real(const json_t *o, const char *name, double most, double *ret)
{
	const json_t *v = json_object_get(o, name);

	*ret = json_number_value(v);
	return json_is_number(v) && *ret >= 0 && *ret <= most;
}

static bool
take_figures(struct bench_figures *f, const json_t *o)
{
	const json_t *first = json_object_get(o, "first_byte_histogram");
	uint64_t nr, bytes;

	if (!o)
		return true;
	if (!take_count(json_object_get(o, "operations"), &nr) ||
	    !take_count(json_object_get(o, "bytes"), &bytes) ||
	    !bench_histogram_take(&f->latency, json_object_get(o, "histogram")) ||
	    (first && !bench_histogram_take(&f->first_byte, first)))
		return false;
	f->nr += nr;
	f->bytes += bytes;
	return true;
}

static bool
take_kinds(struct bench_kinds *k, const json_t *o)
{
	const char *name;
	json_t *nr;
	uint64_t n;

	json_object_foreach((json_t *)(uintptr_t)o, name, nr)
	{
		if (!take_count(nr, &n))
			return false;
		bench_count_kind(k, name, n);
	}
	return json_is_object(o);
}

/* Adds up the rates of each round. */
static bool
take_rounds(struct bench_row *row, const json_t *o)
{
	const json_t *rate = json_object_get(o, "rates"), *bytes = json_object_get(o, "byte_rates");
	size_t nr = json_array_size(rate);

	if (nr > BENCH_ROUNDS_MAX || json_array_size(bytes) != nr)
		return false;
	for (size_t i = 0; i < nr; i++) {
		row->rate[i] += json_number_value(json_array_get(rate, i));
		row->byte_rate[i] += json_number_value(json_array_get(bytes, i));
	}
	row->rounds = row->rounds > (int)nr ? row->rounds : (int)nr;
	return true;
}

/* Makes room for so many seconds. */
static bool
grow(struct bench_sum *sum, int nr)
{
	struct bench_second *second = realloc(sum->row.second, (size_t)nr * sizeof *second);
	struct histogram *of;

	if (!second)
		return false;
	sum->row.second = second;
	of = realloc(sum->of_second, (size_t)nr * sizeof *of);
	if (!of)
		return false;
	sum->of_second = of;
	for (int i = sum->row.second_nr; i < nr; i++) {
		second[i] = (struct bench_second){ 0 };
		memset(&of[i], 0, sizeof of[i]);
	}
	sum->row.second_nr = nr;
	return true;
}

static bool
take_series(struct bench_sum *sum, const json_t *all)
{
	size_t nr = json_array_size(all);

	if (!json_is_array(all) || nr > BENCH_SERIES_MAX ||
	    ((int)nr > sum->row.second_nr && !grow(sum, (int)nr)))
		return false;
	for (size_t i = 0; i < nr; i++) {
		const json_t *o = json_array_get(all, i);
		struct bench_second *s = &sum->row.second[i];
		double at, seconds;
		uint64_t n, bytes;

		if (!take_real(o, "at", SECONDS_MAX * BENCH_ROUNDS_MAX, &at) ||
		    !take_real(o, "seconds", SECONDS_MAX, &seconds) ||
		    !take_count(json_object_get(o, "operations"), &n) ||
		    !take_count(json_object_get(o, "bytes"), &bytes) ||
		    !bench_histogram_take(&sum->of_second[i], json_object_get(o, "histogram")))
			return false;
		s->at_s = s->at_s > at ? s->at_s : at;
		s->seconds = s->seconds > seconds ? s->seconds : seconds;
		s->nr += n;
		s->bytes += bytes;
		s->p50_ns = histogram_quantile(&sum->of_second[i], .5);
		s->p99_ns = histogram_quantile(&sum->of_second[i], .99);
	}
	return true;
}

static bool
take_endpoints(struct bench_row *row, const json_t *all, int endpoints)
{
	if (endpoints < 2)
		return true;
	if (!row->endpoint)
		row->endpoint = calloc((size_t)endpoints, sizeof *row->endpoint);
	if (!row->endpoint || json_array_size(all) != (size_t)endpoints)
		return false;
	for (int i = 0; i < endpoints; i++) {
		const json_t *o = json_array_get(all, (size_t)i);
		uint64_t nr, bytes, errors;

		if (!take_count(json_object_get(o, "operations"), &nr) ||
		    !take_count(json_object_get(o, "bytes"), &bytes) ||
		    !take_count(json_object_get(o, "errors"), &errors) ||
		    !bench_histogram_take(&row->endpoint[i].latency, json_object_get(o, "histogram")))
			return false;
		row->endpoint[i].nr += nr;
		row->endpoint[i].bytes += bytes;
		row->endpoint[i].errors += errors;
	}
	return true;
}

/* Takes the names of the row, which have to be the same on all hosts. */
static bool
take_name(struct bench_sum *sum, const json_t *o)
{
	const char *sizes = json_string_value(json_object_get(o, "sizes"));
	const char *mix = json_string_value(json_object_get(o, "mix"));
	const char *way = json_string_value(json_object_get(o, "way"));
	struct bench_row *row = &sum->row;
	uint64_t at_once;
	int w = 0;

	while (way && w < BENCH_WAY_NR && strcmp(way, bench_way_name[w]) != 0)
		w++;
	if (!sizes || !mix || !way || w == BENCH_WAY_NR || strlen(sizes) >= sizeof sum->sizes.text ||
	    !take_count(json_object_get(o, "at_once"), &at_once) || at_once > BENCH_AT_ONCE_MAX)
		return false;
	if (row->hosts)
		return !strcmp(sizes, row->sizes->text) && !strcmp(mix, row->mix->text) && (int)row->way == w;
	if (!bench_plan_mix(&sum->plan, mix) || sum->plan.mix_nr != 1)
		return false;
	memcpy(sum->sizes.text, sizes, strlen(sizes) + 1);
	row->sizes = &sum->sizes;
	row->mix = &sum->plan.mix[0];
	row->way = (enum bench_way)w;
	return true;
}

bool
bench_sum_add(struct bench_sum *sum, const json_t *o, int endpoints)
{
	static const char *const counts[] = { "at_once",    "objects", "rdma_bytes",
					      "http_bytes", "errors",  "damaged" };
	struct bench_row *row = &sum->row;
	uint64_t n[6];
	double s, cpu;

	if (!take_name(sum, o) || !take_real(o, "seconds", SECONDS_MAX * BENCH_ROUNDS_MAX, &s) ||
	    !take_real(json_object_get(o, "client_cpu"), "seconds", 1e12, &cpu))
		return false;
	for (int i = 0; i < 6; i++)
		if (!take_count(json_object_get(o, counts[i]), &n[i]))
			return false;
	for (int i = 0; i < BENCH_OP_NR; i++)
		if (!take_figures(&row->op[i], json_object_get(o, bench_op_name[i])))
			return false;
	row->hosts++;
	row->at_once += (int)n[0];
	row->objects += n[1];
	row->rdma_bytes += n[2];
	row->http_bytes += n[3];
	row->errors += n[4];
	row->damaged += n[5];
	row->client_cpu_s += cpu;
	row->seconds = row->seconds > s ? row->seconds : s;
	return take_rounds(row, o) && take_kinds(&row->error, json_object_get(o, "errors_by_kind")) &&
	       take_kinds(&row->not_rdma, json_object_get(o, "not_rdma")) &&
	       take_series(sum, json_object_get(o, "series")) &&
	       take_endpoints(row, json_object_get(o, "endpoints"), endpoints);
}

void
bench_sum_fini(struct bench_sum *sum)
{
	free(sum->row.second);
	free(sum->row.endpoint);
	free(sum->of_second);
}
