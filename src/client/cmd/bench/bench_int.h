/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_int - declarations shared by the files that send requests: bench_work.c (threads), bench_count.c
 * (counters of answers and failures), bench_cost.c (CPU time), bench_series.c (the measurements of each
 * second).
 */
#ifndef GANTRY_CLIENT_CMD_BENCH_INT_H
#define GANTRY_CLIENT_CMD_BENCH_INT_H

#include "client/cmd/bench/bench.h"

#define FAILURES_MAX 10 /* number of failures of a thread in a row after which the job is aborted */
/* longest wait in ms before a request that was answered 503 is repeated; if the server asks for a longer wait, the request
 * has failed */
#define BUSY_MS 2000

/* Phases of a round. GATHER: each thread waits, after its answer, for the others, so that the measurement begins
 * without requests in flight. */
enum phase { WARM_UP, GATHER, MEASURE, END };

struct crew {
	struct bench *b;
	struct bench_row *row;
	enum bench_job job;
	int nr;
	_Atomic enum phase phase;
	_Atomic uint64_t begun; /* number of requests begun, for --count */
	_Atomic int working, gathered;
	_Atomic bool gave_up;
	uint64_t round;
	_Atomic uint64_t ended_ns; /* time of clock_ns() at which the last thread ended */
	/* of the series of seconds, owned by the main thread: beginning of the second that is being counted,
	 * by clock_ns(); time of this round before it, and of earlier rounds of the row, in seconds */
	uint64_t second_ns;
	double second_s, before_s;
};

struct worker {
	struct crew *crew;
	int nr;
	uint64_t random, due_ns, puts;
	uint64_t asked; /* number of requests so far, which the endpoints take in turn */
	int failures;   /* number of failures in a row */
	bool counts;    /* true: the current request is measured */
};

/* A request. */
struct ask {
	struct bench_object *o;
	char url[2048];
	uint64_t id;
	int endpoint; /* index of the endpoint */
	struct gantry_request req;
	struct gantry_result res;
};

/* ---- bench_count.c ---- */

/* Counts a failed request, with its kind and a sentence, and prints the first failures. */
void bench_count_failure(struct worker *w, enum bench_op op, const struct ask *a, const char *kind,
			 const char *message);
/* Counts a request that failed with -errno e. */
void bench_count_error(struct worker *w, enum bench_op op, const struct ask *a, int e);
/* Counts a successful request. ns: its latency; late_ns: time between its due time and its beginning. */
void bench_count_success(struct worker *w, enum bench_op op, const struct ask *a, uint64_t ns,
			 uint64_t late_ns);

/* ---- bench_cost.c ---- */

struct cost {
	uint64_t ns;
	double client_s, server_s;
};

/* Returns the time of clock_ns() and the CPU times of both sides so far. */
struct cost bench_cost_now(const struct bench *b);

/* ---- bench_series.c ---- */

/* Begins the series of seconds of a round that begins at a time. */
void bench_series_begin(struct crew *crew, uint64_t now_ns);
/* Stores the second that has ended, if any. Called by the main thread several times a second. */
void bench_series_turn(struct crew *crew, uint64_t now_ns);
/* Stores the rest of the last second. */
void bench_series_end(struct crew *crew, uint64_t now_ns);

#endif
