/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of each second of a row; see bench.h. Main thread. */
#include "client/cmd/bench/bench_int.h"
#include "client/cmd/bench/bench_wire.h"

#include "base/clock.h"

#include <stdlib.h>

void
bench_series_begin(struct crew *crew, uint64_t now_ns)
{
	crew->second_ns = now_ns;
	crew->before_s = crew->row->seconds;
	crew->second_s = 0;
	histogram_clear(&crew->row->now.latency);
	crew->row->now.nr = crew->row->now.bytes = 0;
}

/* Stores the requests that have ended since the last call as those of a second, or of its part. */
static void
store(struct crew *crew, double until_s, double seconds)
{
	struct bench_row *row = crew->row;
	struct bench_second *all = row->second;

	if (row->second_nr == BENCH_SERIES_MAX)
		return;
	if (row->second_nr == row->second_cap) {
		all = realloc(all, (size_t)(row->second_cap + 64) * sizeof *all);
		if (!all)
			return;
		row->second = all;
		row->second_cap += 64;
	}
	all[row->second_nr++] =
		(struct bench_second){ .at_s = crew->before_s + until_s,
				       .seconds = seconds,
				       .nr = atomic_exchange(&row->now.nr, 0),
				       .bytes = atomic_exchange(&row->now.bytes, 0),
				       .p50_ns = histogram_quantile(&row->now.latency, .5),
				       .p99_ns = histogram_quantile(&row->now.latency, .99),
				       .counts = crew->b->c->worker ? bench_histogram_json(&row->now.latency)
								    : NULL };
	histogram_clear(&row->now.latency);
}

void
bench_series_turn(struct crew *crew, uint64_t now_ns)
{
	double s = (double)(now_ns - crew->second_ns) / 1e9;

	if (s < 1)
		return;
	crew->second_ns = now_ns;
	crew->second_s += s;
	store(crew, crew->second_s, s);
}

void
bench_series_end(struct crew *crew, uint64_t now_ns)
{
	double s = now_ns > crew->second_ns ? (double)(now_ns - crew->second_ns) / 1e9 : 0;

	if (crew->second_ns && (crew->row->now.nr || s >= .5))
		store(crew, crew->second_s + s, s);
}
