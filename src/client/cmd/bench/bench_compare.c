/* SPDX-License-Identifier: Apache-2.0 */
/* gantry bench --compare OLD NEW: the ratios of two measurements, row by row, from what --json has printed. Main thread. */
#include "client/cmd/bench/bench.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_USUAL 10.

/* Reads the rows of a file. Returns a new array; NULL after a message. */
static json_t *
read_rows(const char *path)
{
	FILE *f = fopen(path, "re");
	json_t *rows = json_array();
	json_error_t error;
	char *line = NULL;
	size_t cap = 0;
	int nr = 0;

	if (!f) {
		fprintf(stderr, "gantry: bench: %s: %s\n", path, strerror(errno));
		json_decref(rows);
		return NULL;
	}
	for (ssize_t len; (len = getline(&line, &cap, f)) > 0;) {
		json_t *o = json_loads(line, 0, &error);

		nr++;
		if (!json_is_object(o)) {
			fprintf(stderr, "gantry: bench: %s:%d: not a line of gantry bench --json\n", path,
				nr);
			json_decref(o);
			json_decref(rows);
			rows = NULL;
			break;
		}
		if (!strcmp(json_string_value(json_object_get(o, "op")) ?: "", "bench"))
			json_array_append(rows, o);
		json_decref(o);
	}
	free(line);
	fclose(f);
	if (rows && json_array_size(rows) == 0) {
		fprintf(stderr, "gantry: bench: %s has no rows of gantry bench --json\n", path);
		json_decref(rows);
		return NULL;
	}
	return rows;
}

static const char *
text_at(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name)) ?: "";
}

static double
number_at(const json_t *o, const char *name)
{
	return json_number_value(json_object_get(o, name));
}

static bool
is_same_row(const json_t *a, const json_t *b)
{
	static const char *const names[] = { "mix", "sizes", "way" };

	for (int i = 0; i < 3; i++)
		if (strcmp(text_at(a, names[i]), text_at(b, names[i])) != 0)
			return false;
	return number_at(a, "at_once") == number_at(b, "at_once");
}

static const json_t *
find_row(const json_t *rows, const json_t *like)
{
	for (size_t i = 0; i < json_array_size(rows); i++)
		if (is_same_row(json_array_get(rows, i), like))
			return json_array_get(rows, i);
	return NULL;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Returns the distance of the quartiles of the rounds' rates, divided by their median; 0 with fewer than two rounds. */
static double
spread_of(const json_t *row)
{
	const json_t *rates = json_object_get(row, "rates");
	size_t nr = json_array_size(rates);
	double v[BENCH_ROUNDS_MAX];

	if (nr < 2 || nr > BENCH_ROUNDS_MAX)
		return 0;
	for (size_t i = 0; i < nr; i++)
		v[i] = json_number_value(json_array_get(rates, i));
	qsort(v, nr, sizeof *v, by_value);
	return v[nr / 2] > 0 ? (v[nr * 3 / 4] - v[nr / 4]) / v[nr / 2] : 0;
}

/* Returns the ratio of a quantile of the first operation that both rows have; 0: none. */
static double
quantile_ratio(const json_t *was, const json_t *is, const char *name)
{
	for (int i = 0; i < BENCH_OP_NR; i++) {
		double old = number_at(json_object_get(json_object_get(was, bench_op_name[i]), "latency_us"),
				       name),
		       now = number_at(json_object_get(json_object_get(is, bench_op_name[i]), "latency_us"),
				       name);

		if (old > 0 && now > 0)
			return now / old;
	}
	return 0;
}

/* Prints the comparison of a row. Returns true if the new one is worse than the limit allows. */
static bool
compare(const struct cmd *c, const json_t *was, const json_t *is, double limit)
{
	double old = number_at(was, "operations_per_second"),
	       now = is ? number_at(is, "operations_per_second") : 0;
	double ratio = old > 0 ? now / old : 0;
	bool worse = !is || ratio < 1 - limit / 100;
	json_t *o;

	if (!c->json) {
		printf("%s of %s, %.0f at once, %s: ", text_at(was, "mix"), text_at(was, "sizes"),
		       number_at(was, "at_once"), text_at(was, "way"));
		if (is)
			printf("%.2f objects/s (spread %.2f old, %.2f new), %.2f p50, %.2f p99%s\n", ratio,
			       spread_of(was), spread_of(is), quantile_ratio(was, is, "p50"),
			       quantile_ratio(was, is, "p99"), worse ? ", WORSE" : "");
		else
			printf("the new measurement does not have this row\n");
		return worse;
	}
	o = json_pack("{s:s, s:s, s:s, s:f, s:s, s:b, s:b}", "op", "bench-compare", "mix",
		      text_at(was, "mix"), "sizes", text_at(was, "sizes"), "at_once",
		      number_at(was, "at_once"), "way", text_at(was, "way"), "missing", !is, "worse", worse);
	if (is)
		json_object_update_new(o, json_pack("{s:f, s:f, s:f, s:f, s:f}", "rate", ratio, "old_spread",
						    spread_of(was), "new_spread", spread_of(is), "p50",
						    quantile_ratio(was, is, "p50"), "p99",
						    quantile_ratio(was, is, "p99")));
	json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(o);
	return worse;
}

int
bench_compare(const struct cmd *c, const char *old_path, const char *new_path)
{
	double limit = c->limit > 0 ? c->limit : LIMIT_USUAL;
	json_t *was = read_rows(old_path), *is = was ? read_rows(new_path) : NULL;
	int worse = 0;

	for (size_t i = 0; is && i < json_array_size(was); i++) {
		const json_t *row = json_array_get(was, i);

		worse += compare(c, row, find_row(is, row), limit);
	}
	if (worse && !c->json && !c->quiet)
		printf("%d of %zu rows are worse than 1 by more than %.4g %%\n", worse, json_array_size(was),
		       limit);
	json_decref(was);
	json_decref(is);
	return !is ? EXIT_FAILED : worse ? EXIT_FAILED : EXIT_OK;
}
