/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_wire - the lines of JSON with which a worker of --hosts reports its rows, and their sums. A line has
 * the members of --json, and the counts of its histograms, so that the quantiles of all hosts together can be
 * computed.
 */
#ifndef GANTRY_CLIENT_CMD_BENCH_WIRE_H
#define GANTRY_CLIENT_CMD_BENCH_WIRE_H

#include "client/cmd/bench/bench.h"

#include <jansson.h>

/* The sum of one row over several hosts. */
struct bench_sum {
	struct bench_row row; /* its pointers point to the members below */
	struct bench_sizes sizes;
	struct bench_plan plan;      /* plan.mix[0] is the mix */
	struct histogram *of_second; /* latencies of each second of row.second, of all hosts */
};

/* Writes the counts of a histogram. Returns a new object; NULL: no memory. */
json_t *bench_histogram_json(const struct histogram *h);
/* Adds the counts that a worker wrote to a histogram. Returns false if they are invalid. */
bool bench_histogram_take(struct histogram *h, const json_t *o);
/* Adds the row of a worker to a sum, which is zeroed before the first. endpoints: number of endpoints of the
 * row. Returns false if the row is invalid, or is another row than that of the sum; the sum is then not
 * valid. */
bool bench_sum_add(struct bench_sum *sum, const json_t *row, int endpoints);
void bench_sum_fini(struct bench_sum *sum);

#endif
