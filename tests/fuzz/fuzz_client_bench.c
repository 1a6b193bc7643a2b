/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that workers of gantry bench --hosts write: the same line from two hosts, with one or two endpoints. */
#include "client/cmd/bench/bench_wire.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	json_t *o = len ? json_loadb((const char *)data + 1, len - 1, 0, NULL) : NULL;
	struct bench_sum *s = calloc(1, sizeof *s);
	int endpoints = len ? 1 + data[0] % 2 : 1;

	must(s);
	if (bench_sum_add(s, o, endpoints)) {
		must(s->row.hosts == 1 && s->row.rounds <= BENCH_ROUNDS_MAX &&
		     s->row.second_nr <= BENCH_SERIES_MAX);
		must(s->row.sizes && s->row.mix && s->row.way < BENCH_WAY_NR);
		must(bench_sum_add(s, o, endpoints) && s->row.hosts == 2);
	}
	bench_sum_fini(s);
	free(s);
	json_decref(o);
	return 0;
}
