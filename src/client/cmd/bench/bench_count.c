/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the answers and failures of gantry bench; see bench.h. */
#include "client/cmd/bench/bench_int.h"
#include "client/cmd/bench/bench_meter.h"

#include <stdio.h>
#include <string.h>

#define TOLD_MAX 5 /* number of failures that are printed in full */

void
bench_count_failure(struct worker *w, enum bench_op op, const struct ask *a, const char *kind,
		    const char *message)
{
	static int told;
	struct bench *b = w->crew->b;
	struct bench_row *row = w->crew->row;

	/* What a disk that is away has cannot be removed, and the rest can. */
	if (++w->failures == FAILURES_MAX && !(w->crew->job == BENCH_REMOVE && a->res.status == 503))
		w->crew->gave_up = true;
	pthread_mutex_lock(&b->lock);
	if (told <= TOLD_MAX)
		bench_meter_hide();
	if (told < TOLD_MAX)
		fprintf(stderr, "gantry: bench: %s %s: %s%s%s\n", bench_op_name[op], a->url, kind,
			*message ? ": " : "", message);
	else if (told == TOLD_MAX)
		fprintf(stderr, "gantry: bench: further failures are only counted\n");
	if (told++ <= TOLD_MAX)
		bench_meter_show();
	if (w->crew->job != BENCH_REMOVE) {
		bench_count_kind(&row->error, kind, 1);
		row->errors++;
		if (row->endpoint)
			row->endpoint[a->endpoint].errors++;
	} else if (!*b->left_why) {
		snprintf(b->left_why, sizeof b->left_why, "%s%s%s", kind, *message ? ": " : "", message);
	}
	pthread_mutex_unlock(&b->lock);
}

void
bench_count_error(struct worker *w, enum bench_op op, const struct ask *a, int e)
{
	const struct gantry_result *res = &a->res;
	char kind[64];

	if (*res->code)
		snprintf(kind, sizeof kind, "%s", res->code);
	else if (res->status >= 300)
		snprintf(kind, sizeof kind, "HTTP %d", res->status);
	else
		snprintf(kind, sizeof kind, "%s", strerrorname_np(-e) ? strerrorname_np(-e) : "?");
	bench_count_failure(w, op, a, kind, res->message);
}

static void
count_endpoint(struct bench_endpoint *e, uint64_t ns, uint64_t bytes)
{
	histogram_add(&e->latency, ns);
	e->nr++;
	e->bytes += bytes;
}

void
bench_count_success(struct worker *w, enum bench_op op, const struct ask *a, uint64_t ns, uint64_t late_ns)
{
	const struct gantry_result *res = &a->res;
	struct bench *b = w->crew->b;
	struct bench_row *row = w->crew->row;
	enum bench_way went = res->path == GANTRY_PATH_RDMA ? BENCH_RDMA : BENCH_HTTP;
	bool moves = op == BENCH_PUT || op == BENCH_GET;
	uint64_t bytes = moves ? res->bytes : 0;

	w->failures = 0;
	b->total.nr[op]++;
	if (op == BENCH_PUT)
		b->total.put_bytes[went] += bytes;
	else if (op == BENCH_GET)
		b->total.get_bytes[went] += bytes;
	if (!w->counts)
		return;
	histogram_add(&row->op[op].latency, ns);
	if (op == BENCH_GET && res->first_byte_ns)
		histogram_add(&row->op[op].first_byte, late_ns + res->first_byte_ns);
	bench_second_add(&row->now, ns, bytes);
	if (row->endpoint)
		count_endpoint(&row->endpoint[a->endpoint], ns, bytes);
	row->op[op].nr++;
	row->op[op].bytes += bytes;
	if (went == BENCH_RDMA)
		row->rdma_bytes += bytes;
	else
		row->http_bytes += bytes;
	if (moves && went == BENCH_HTTP && row->way == BENCH_RDMA) {
		pthread_mutex_lock(&b->lock);
		bench_count_kind(&row->not_rdma, res->reason, 1);
		pthread_mutex_unlock(&b->lock);
	}
}
