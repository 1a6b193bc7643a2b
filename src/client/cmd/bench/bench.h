/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench - declarations shared by the files of gantry bench, which measures a server from this machine. The
 * measurement is a closed loop: each of `at_once` threads sends a request when the previous one has its
 * answer, so a slow server gets fewer requests. With --rate the requests have planned times, and latency
 * counts from these times.
 *
 *     bench_plan.c    parses the options
 *     bench_work.c    threads and their requests; bench_int.h has their parts
 *     bench_report.c  table and JSON
 *     bench_csv.c     CSV
 *     bench_meter.c   the progress of the whole measurement
 *     bench.c         the order of all steps
 *
 * A plan is a list of rows, which are measured one after the other. A row is a combination of a mix of sizes,
 * a number of requests at a time and a mix of operations. It has rounds, and in each round every way (RDMA,
 * HTTP) is measured once. Only thread i % at_once accesses object number i, so the expected contents of each
 * object are known.
 */
#ifndef GANTRY_CLIENT_CMD_BENCH_H
#define GANTRY_CLIENT_CMD_BENCH_H

#include "base/histogram.h"
#include "client/cmd/common/cmd.h"

#include <jansson.h>

/* ---- the plan: bench_plan.c, which is pure ---- */

#define BENCH_LIST_MAX 16
#define BENCH_SIZES_MAX 8 /* largest number of sizes in a mix */
#define BENCH_AT_ONCE_MAX 1024
#define BENCH_OBJECTS_MAX 10000000u
#define BENCH_ROUNDS_MAX 100
#define BENCH_ENDPOINTS_MAX 16

enum bench_op { BENCH_PUT, BENCH_GET, BENCH_HEAD, BENCH_DELETE, BENCH_OP_NR };
enum bench_way { BENCH_RDMA, BENCH_HTTP, BENCH_WAY_NR };

extern const char *const bench_op_name[BENCH_OP_NR];
extern const char *const bench_way_name[BENCH_WAY_NR];

/* A mix of sizes: the size of each object is chosen from it at random, by weight. */
struct bench_sizes {
	int nr;
	uint64_t size[BENCH_SIZES_MAX];
	unsigned weight[BENCH_SIZES_MAX];
	char text[64]; /* the mix as text, as the option gave it */
};

struct bench_mix {
	unsigned weight[BENCH_OP_NR];
	char text[64];
};

struct bench_plan {
	struct bench_sizes sizes[BENCH_LIST_MAX];
	int sizes_nr;
	int at_once[BENCH_LIST_MAX];
	int at_once_nr;
	struct bench_mix mix[BENCH_LIST_MAX];
	int mix_nr;
	enum bench_way way[BENCH_WAY_NR];
	int way_nr;
};

/* Options of the plan are lists of rows, separated by commas. A row can be a mix: "a:3+b:1" has three times
 * as much of a as of b. The functions bench_plan_*() that parse options return false if a text is invalid;
 * then the plan cannot be used. */
/* Parses a size above 0, such as 4096, 4k, 4K, 4KiB or 4kb; all units are powers of 1024. Returns false if
 * the text is invalid. */
bool bench_size(const char *text, uint64_t *ret);
/* Parses sizes, such as "4k,1MiB" or "4k:70+1m:30". */
bool bench_plan_sizes(struct bench_plan *p, const char *text);
/* Parses numbers of requests at a time, such as "1,8,64". */
bool bench_plan_at_once(struct bench_plan *p, const char *text);
/* Parses operations, such as "put,get" or "get:90+put:10". */
bool bench_plan_mix(struct bench_plan *p, const char *text);
/* Parses ways, such as "rdma", "http" or "rdma,http". */
bool bench_plan_ways(struct bench_plan *p, const char *text);
/* Returns the number of rows of the plan, each with all its ways and rounds. */
int bench_plan_rows(const struct bench_plan *p);
/* Returns the time in seconds that the measurements of the plan take, with `rounds` rounds that last
 * seconds each; 0 if seconds is 0. */
double bench_plan_seconds(const struct bench_plan *p, int rounds, double seconds);

int bench_plan_most_at_once(const struct bench_plan *p);
uint64_t bench_plan_largest(const struct bench_plan *p);
/* Returns the default number of objects of a row: 1 GiB divided by the largest size, at most 1024, but never
 * less than at_once. */
uint64_t bench_usual_objects(const struct bench_sizes *s, int at_once);
/* Returns the index of one of nr entries, chosen by weight. random: a random number, any value. */
int bench_pick(const unsigned *weight, int nr, uint64_t random);

/* ---- at work: bench_work.c ---- */

#define BENCH_KINDS_MAX 16

/* Numbers of events by kind; if there are more kinds than entries, the last entry counts all others. */
struct bench_kinds {
	struct {
		char name[160];
		uint64_t nr;
	} kind[BENCH_KINDS_MAX];
	int nr;
};

/* Counts a kind of event nr times (bench_plan.c). */
void bench_count_kind(struct bench_kinds *k, const char *name, uint64_t nr);

struct bench_figures {
	struct histogram latency; /* latencies of successful requests, in ns */
	/* of gets: times until the first byte of the answer, in ns, from the same beginning as latencies */
	struct histogram first_byte;
	_Atomic uint64_t nr, bytes;
};

/* The measurements of one endpoint: its successful requests, their latencies and bytes, and failures. */
struct bench_endpoint {
	struct histogram latency;
	_Atomic uint64_t nr, bytes, errors;
};

#define BENCH_SERIES_MAX 86400 /* largest number of seconds in a series; further ones are not stored */

/* A second of the measurement, or a part of one at the end of a round. at_s: its end, from the beginning of
 * the row, without the times between rounds. */
struct bench_second {
	double at_s, seconds;
	uint64_t nr, bytes, p50_ns, p99_ns;
	json_t *counts; /* in a worker: counts of the latencies; NULL: none */
};

/* The second that is being counted. */
struct bench_now {
	struct histogram latency;
	_Atomic uint64_t nr, bytes;
};

static inline void
bench_second_add(struct bench_now *now, uint64_t ns, uint64_t bytes)
{
	histogram_add(&now->latency, ns);
	now->nr++;
	now->bytes += bytes;
}

/* The measurements of a row with one way (RDMA or HTTP), over all its rounds. */
struct bench_row {
	const struct bench_sizes *sizes;
	const struct bench_mix *mix;
	int at_once;
	enum bench_way way;
	uint64_t objects;
	struct bench_figures op[BENCH_OP_NR];
	_Atomic uint64_t rdma_bytes, http_bytes, errors, damaged;
	/* error: errors by message; not_rdma: reasons why RDMA was not used. Protected by bench.lock */
	struct bench_kinds error, not_rdma;
	double seconds, client_cpu_s, server_cpu_s;
	/* Rates of each round. rate: requests per second; byte_rate: bytes per second. */
	double rate[BENCH_ROUNDS_MAX], byte_rate[BENCH_ROUNDS_MAX];
	int rounds;
	int hosts;            /* number of hosts that measured the row */
	struct bench_now now; /* counters of the current second */
	struct bench_second *second;
	int second_nr, second_cap;
	struct bench_endpoint *endpoint; /* measurements of each endpoint; NULL: there is one endpoint */
};

/* Sums over all requests, also those that are not measured. */
struct bench_total {
	_Atomic uint64_t nr[BENCH_OP_NR];
	/* numbers of bytes, by way */
	_Atomic uint64_t put_bytes[BENCH_WAY_NR], get_bytes[BENCH_WAY_NR];
};

struct bench_object {
	uint32_t version; /* version of the object's contents, which are computed from this number */
	uint8_t size;     /* index of the object's size */
	bool is_there;    /* true: the object exists and has the expected contents */
	bool is_left;     /* true: the object may exist on the server, so it must be deleted at the end */
};

struct bench {
	struct cmd *c;
	struct bench_plan plan;
	char *base; /* beginning of the URLs of all objects at the first endpoint; each URL is base/KEY */
	/* the servers, as http://HOST:PORT; requests use them in turn */
	char *endpoint[BENCH_ENDPOINTS_MAX];
	int endpoints;
	const char *path;   /* rest of base after the first endpoint */
	char left_why[400]; /* reason why the first object could not be removed; "": there is none */
	uint64_t left;      /* number of objects that could not be removed */
	bool own_bucket;
	uint64_t seed;
	struct buffer *buffer; /* buffer of each thread */
	int buffers;
	struct bench_object *object;
	uint64_t objects;
	unsigned group; /* number of the current mix of sizes, which the keys contain */
	bool has_server_cpu;
	bool has_explained_few; /* the table has explained its marks of quantiles */
	pthread_mutex_t lock;
	struct bench_total total;
};

enum bench_job {
	BENCH_PREPARE, /* puts the objects that do not exist yet */
	BENCH_MEASURE,
	BENCH_REMOVE, /* deletes the objects that may exist */
};

/* Does a job with all threads. BENCH_MEASURE measures a round of row, for the time or the number of requests
 * that the command line sets, and adds the results to row. Returns 0; -EINTR: a signal has ended the job;
 * -EIO: the job was aborted after too many failures, after printing a message on standard error. */
int bench_work(struct bench *b, enum bench_job job, struct bench_row *row);
/* Returns the number that the key of object i is made of. */
uint64_t bench_id(const struct bench *b, uint64_t i);
/* Returns true if a signal has requested the end of the program. */
bool bench_ended(void);
void bench_catch_signals(void);

/* The verdict of all rows together. */
struct bench_verdict {
	uint64_t errors, damaged, not_rdma;
	int e; /* 0, or the -errno with which the measurement ended */
};

/* Adds a row to the verdict. */
void bench_judge(struct bench_verdict *v, const struct bench_row *row);
/* Compares two files of --json. Returns an exit status: EXIT_FAILED if a row of the new one is worse than the
 * limit allows, or absent. */
int bench_compare(const struct cmd *c, const char *old_path, const char *new_path);

/* ---- what it says: bench_report.c ---- */

void bench_report_head(const struct bench *b);
void bench_report_row(struct bench *b, const struct bench_row *row);
/* Prints a comparison of RDMA with HTTP. */
void bench_report_ratio(const struct bench *b, const struct bench_row *rdma, const struct bench_row *http);
void bench_report_total(const struct bench *b);
/* Prints the objects that could not be removed, and the reason of the first. left: their number. */
void bench_report_left(struct bench *b, uint64_t left);

/* ---- bench_csv.c ---- */

void bench_csv_head(void);
/* Prints the lines of a row: one for each operation, endpoint and second. */
void bench_csv_row(const struct bench *b, const struct bench_row *row);

#endif
