/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of all cores, and their sums.  main makes the struct before the cores start and frees it after
 * they ended; each core writes to its own part, the admin thread reads them all.
 */
#include "stats/stats_int.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stats {
	struct stats_core *cores;
	struct stats_keys *keys;
	int core_nr;
	struct stats_names names;
};

int
stats_new(int core_nr, const struct stats_names *names, struct stats **ret_stats)
{
	struct stats *st;

	if (core_nr < 1 || names->op_nr > STATS_OPS_MAX || names->reason_nr > STATS_REASONS_MAX)
		return -EINVAL;
	st = calloc(1, sizeof *st);
	if (!st)
		return -ENOMEM;
	st->cores = aligned_alloc(_Alignof(struct stats_core), (size_t)core_nr * sizeof *st->cores);
	if (!st->cores || stats_keys_new(&st->keys) < 0) {
		free(st->cores);
		free(st);
		return -ENOMEM;
	}
	memset(st->cores, 0, (size_t)core_nr * sizeof *st->cores);
	for (int i = 0; i < core_nr; i++)
		st->cores[i].keys = st->keys;
	st->core_nr = core_nr;
	st->names = *names;
	*ret_stats = st;
	return 0;
}

void
stats_free(struct stats *st)
{
	if (!st)
		return;
	free(st->cores);
	stats_keys_free(st->keys);
	free(st);
}

struct stats_core *
stats_core(struct stats *st, int core)
{
	check(core >= 0 && core < st->core_nr);
	return &st->cores[core];
}

static void
observe(struct stats_histogram *h, uint64_t ns)
{
	stats_add(&h->buckets[latency_bucket(ns)], 1);
	stats_add(&h->sum_ns, ns);
}

void
stats_request(struct stats_core *st, int dialect, int op, int http_code, enum stats_transport transport,
	      uint64_t duration_ns)
{
	check(dialect >= 0 && dialect < STATS_DIALECT_NR);
	check(op >= 0 && op < STATS_OPS_MAX);
	stats_add(&st->requests[dialect][op][transport][stats_code_slot(http_code)], 1);
	observe(&st->duration[op][transport], duration_ns);
}

void
stats_first_byte(struct stats_core *st, int op, enum stats_transport transport, uint64_t ns)
{
	check(op >= 0 && op < STATS_OPS_MAX);
	observe(&st->first_byte[op][transport], ns);
}

void
stats_phases(struct stats_core *st, enum stats_transport transport, const uint64_t phase_ns[STATS_PHASE_NR])
{
	for (int i = 0; i < STATS_PHASE_NR; i++) {
		if (phase_ns[i])
			observe(&st->phase[i][transport], phase_ns[i]);
	}
}

uint64_t
stats_requests_of(const struct stats_core *st, int dialect, int http_code)
{
	int slot = stats_code_slot(http_code);
	uint64_t sum = 0;

	for (int op = 0; op < STATS_OPS_MAX; op++) {
		for (int t = 0; t < STATS_TRANSPORT_NR; t++)
			sum += stats_get(&st->requests[dialect][op][t][slot]);
	}
	return sum;
}

/* ---- sums ---- */

/* The sum over the cores of the counter that lies where `c` lies in the first one. */
static uint64_t
sum_of(const struct stats *st, const stats_counter *c)
{
	size_t offset = (size_t)((const char *)c - (const char *)st->cores);
	uint64_t sum = 0;

	for (int i = 0; i < st->core_nr; i++)
		sum += stats_get((const stats_counter *)(const void *)((const char *)&st->cores[i] + offset));
	return sum;
}

const char *const stats_phase_name[STATS_PHASE_NR] = { "auth", "open", "queue", "disk", "wire", "commit" };
static const char *const dialect_text[STATS_DIALECT_NR] = { "s3", "scality" };
static const char *const transport_text[STATS_TRANSPORT_NR] = { "http", "rdma" };
static const char *const dir_text[STATS_DIR_NR] = { "push", "pull" };

int
stats_core_nr(const struct stats *st)
{
	return st->core_nr;
}

const struct stats_core *
stats_core_at(const struct stats *st, int core)
{
	check(core >= 0 && core < st->core_nr);
	return &st->cores[core];
}

const char *
stats_op_name(const struct stats *st, int op)
{
	const char *name = op >= 0 && op < st->names.op_nr ? st->names.op[op] : NULL;

	return name && *name ? name : "other";
}

const char *
stats_reason_name(const struct stats *st, int reason)
{
	const char *name = reason >= 0 && reason < st->names.reason_nr ? st->names.reason[reason] : NULL;

	return name ? name : "";
}

/* Label sets appear with their first request, or the text would be thousands of zeros. */
static void
collect_requests(const struct stats *st, struct stats_out *out)
{
	const struct stats_core *c = st->cores;

	for (int d = 0; d < STATS_DIALECT_NR; d++) {
		for (int op = 0; op < st->names.op_nr; op++) {
			for (int t = 0; t < STATS_TRANSPORT_NR; t++) {
				for (int code = 0; code < STATS_CODES_NR; code++) {
					uint64_t n = sum_of(st, &c->requests[d][op][t][code]);

					if (n)
						stats_emit(out, M_REQUESTS, n, dialect_text[d],
							   stats_op_name(st, op), stats_code_text[code],
							   transport_text[t], NULL);
				}
			}
		}
	}
}

/* h: in the first core's part. */
static void
collect_histogram(const struct stats *st, const struct stats_histogram *h, enum stats_metric m,
		  const char *name, int t, struct stats_out *out)
{
	uint64_t each[STATS_BUCKETS_NR];

	for (int i = 0; i < STATS_BUCKETS_NR; i++)
		each[i] = sum_of(st, &h->buckets[i]);
	stats_emit_buckets(out, m, each, sum_of(st, &h->sum_ns), name, transport_text[t]);
}

static void
collect_histograms(const struct stats *st, struct stats_out *out)
{
	const struct stats_core *c = st->cores;

	for (int t = 0; t < STATS_TRANSPORT_NR; t++) {
		for (int op = 0; op < st->names.op_nr; op++) {
			collect_histogram(st, &c->duration[op][t], M_REQUEST_DURATION, stats_op_name(st, op),
					  t, out);
			collect_histogram(st, &c->first_byte[op][t], M_FIRST_BYTE, stats_op_name(st, op), t,
					  out);
		}
		for (int p = 0; p < STATS_PHASE_NR; p++)
			collect_histogram(st, &c->phase[p][t], M_PHASE_DURATION, stats_phase_name[p], t, out);
	}
}

void
stats_collect(const struct stats *st, struct stats_out *out)
{
	const struct stats_core *c = st->cores;

	stats_emit(out, M_BUILD_INFO, 1, GANTRY_VERSION, NULL);
	collect_requests(st, out);
	collect_histograms(st, out);
	for (int d = 0; d < STATS_DIR_NR; d++) {
		for (int t = 0; t < STATS_TRANSPORT_NR; t++)
			stats_emit(out, M_TRANSFER_BYTES, sum_of(st, &c->bytes[d][t]), dir_text[d],
				   transport_text[t], NULL);
	}
	for (int i = 0; i < st->names.reason_nr; i++) {
		if (st->names.reason[i] && *st->names.reason[i])
			stats_emit(out, M_DECLINES, sum_of(st, &c->declines[i]), st->names.reason[i], NULL);
	}
	stats_keys_collect(st->keys, out);
	for (int i = 0; i < STATS_EVENT_NR; i++)
		stats_emit_values(out, stats_event_desc[i].metric, sum_of(st, &c->events[i]),
				  stats_event_desc[i].values);
	stats_process(out);
}
