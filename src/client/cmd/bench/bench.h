/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of gantry bench, which measures a server from this machine.  Closed loop: each of `at once` threads has one
 * request at a time and sends the next when the answer is there, so a slow server is asked less; with --rate requests
 * have times of their own, and latency counts from those.
 *
 *     bench_plan.c    what the options ask for
 *     bench_work.c    threads and their requests
 *     bench_report.c  table and JSON
 *     bench.c         the order of it all
 *
 * A plan is a list of rows: a mix of sizes, so many at once, a mix of operations.  A row has rounds, and in each round
 * every way (RDMA, HTTP) has its turn.  Objects belong to threads: number i is touched by thread i % at_once alone, so
 * that what an object has to contain is known at every moment.
 */
#ifndef GANTRY_CLIENT_CMD_BENCH_H
#define GANTRY_CLIENT_CMD_BENCH_H

#include "base/histogram.h"
#include "client/cmd/common/cmd.h"

#include <sys/resource.h>

/* ---- the plan: bench_plan.c, which is pure ---- */

#define BENCH_LIST_MAX 16
#define BENCH_SIZES_MAX 8 /* in one mix */
#define BENCH_AT_ONCE_MAX 1024
#define BENCH_OBJECTS_MAX 10000000u
#define BENCH_ROUNDS_MAX 100

enum bench_op { BENCH_PUT, BENCH_GET, BENCH_HEAD, BENCH_DELETE, BENCH_OP_NR };
enum bench_way { BENCH_RDMA, BENCH_HTTP, BENCH_WAY_NR };

extern const char *const bench_op_name[BENCH_OP_NR];
extern const char *const bench_way_name[BENCH_WAY_NR];

/* Sizes, chosen at random. */
struct bench_sizes {
	int nr;
	uint64_t size[BENCH_SIZES_MAX];
	unsigned weight[BENCH_SIZES_MAX];
	char text[64]; /* the text of the option */
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

/* Parses an option, as each of these functions does: parts between commas are rows, and "a:3+b:1" in one of
 * them is a mix. Returns false for an invalid text; the plan cannot be used then. */
/* Reads a size above 0: 4096, 4k, 4K, 4KiB, 4kb, always powers of 1024. */
bool bench_size(const char *text, uint64_t *ret);
bool bench_plan_sizes(struct bench_plan *p, const char *text);   /* "4k,1MiB", "4k:70+1m:30" */
bool bench_plan_at_once(struct bench_plan *p, const char *text); /* "1,8,64" */
bool bench_plan_mix(struct bench_plan *p, const char *text);     /* "put,get", "get:90+put:10" */
bool bench_plan_ways(struct bench_plan *p, const char *text);    /* "rdma", "http", "rdma,http" */

int bench_plan_most_at_once(const struct bench_plan *p);
uint64_t bench_plan_largest(const struct bench_plan *p);
/* Returns the default number of objects of a row: 1 GiB of them, at least one for each of at_once, at most
 * 1024 or as many as at_once. */
uint64_t bench_usual_objects(const struct bench_sizes *s, int at_once);
/* Picks one of nr by weight; `random` is any number. */
int bench_pick(const unsigned *weight, int nr, uint64_t random);

/* ---- at work: bench_work.c ---- */

#define BENCH_KINDS_MAX 16

/* Frequencies of events; the last entry counts all others. */
struct bench_kinds {
	struct {
		char name[160];
		uint64_t nr;
	} kind[BENCH_KINDS_MAX];
	int nr;
};

struct bench_figures {
	struct histogram latency; /* ns, of successful requests */
	_Atomic uint64_t nr, bytes;
};

/* The measurements of a row with one way, over all its rounds. */
struct bench_row {
	const struct bench_sizes *sizes;
	const struct bench_mix *mix;
	int at_once;
	enum bench_way way;
	uint64_t objects;
	struct bench_figures op[BENCH_OP_NR];
	_Atomic uint64_t rdma_bytes, http_bytes, errors, damaged;
	struct bench_kinds error, not_rdma; /* bench.lock */
	double seconds, client_cpu_s, server_cpu_s;
	/* One value per round. */
	double rate[BENCH_ROUNDS_MAX], byte_rate[BENCH_ROUNDS_MAX];
	int rounds;
};

/* Sums of all requests, including unmeasured ones. */
struct bench_total {
	_Atomic uint64_t nr[BENCH_OP_NR];
	/* by way */
	_Atomic uint64_t put_bytes[BENCH_WAY_NR], get_bytes[BENCH_WAY_NR];
};

struct bench_object {
	uint32_t version; /* of its bytes */
	uint8_t size;     /* index of its size */
	bool is_there;    /* exists with the known content */
	bool is_left;     /* may exist on the server: to be removed */
};

struct bench {
	struct cmd *c;
	struct bench_plan plan;
	char *base; /* URL prefix of the objects, which are base/KEY */
	bool own_bucket;
	uint64_t seed;
	struct buffer *buffer; /* of each thread */
	int buffers;
	struct bench_object *object;
	uint64_t objects;
	unsigned group; /* part of the keys: one per mix of sizes */
	bool has_server_cpu;
	pthread_mutex_t lock;
	struct bench_total total;
};

enum bench_job {
	BENCH_PREPARE, /* puts missing objects */
	BENCH_MEASURE,
	BENCH_REMOVE, /* deletes possible remains */
};

/* Does one job with all threads: a row of BENCH_MEASURE for the time or count of the command line, added to
 * the row. 0; -EINTR a signal came; -EIO it was aborted after too many failures, with a message on standard
 * error. */
int bench_work(struct bench *b, enum bench_job job, struct bench_row *row);
/* Returns true after a signal to end. */
bool bench_ended(void);
void bench_catch_signals(void);

/* ---- what it says: bench_report.c ---- */

void bench_report_head(const struct bench *b);
void bench_report_row(const struct bench *b, const struct bench_row *row);
/* Compares RDMA with HTTP. */
void bench_report_ratio(const struct bench *b, const struct bench_row *rdma, const struct bench_row *http);
void bench_report_total(const struct bench *b);

#endif
