/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench - the parts of gantry bench, which measures a server from this machine. The measurement is a closed
 * loop: each of `at_once` threads has one request at a time, and sends the next one after the answer, so a slow
 * server gets fewer requests. With --rate the requests have planned times, and latency counts from these times.
 *
 *     bench_plan.c    parses the options
 *     bench_work.c    threads and their requests
 *     bench_report.c  table and JSON
 *     bench.c         the order of all steps
 *
 * A plan is a list of rows. A row has a mix of sizes, a number of requests at a time, and a mix of operations.
 * A row has rounds, and in each round every way (RDMA, HTTP) has its turn. Objects belong to threads: only
 * thread i % at_once accesses object number i, so the expected contents of an object are always known.
 */
#ifndef GANTRY_CLIENT_CMD_BENCH_H
#define GANTRY_CLIENT_CMD_BENCH_H

#include "base/histogram.h"
#include "client/cmd/common/cmd.h"

#include <sys/resource.h>

/* ---- the plan: bench_plan.c, which is pure ---- */

#define BENCH_LIST_MAX 16
#define BENCH_SIZES_MAX 8 /* largest number of sizes in a mix */
#define BENCH_AT_ONCE_MAX 1024
#define BENCH_OBJECTS_MAX 10000000u
#define BENCH_ROUNDS_MAX 100

enum bench_op { BENCH_PUT, BENCH_GET, BENCH_HEAD, BENCH_DELETE, BENCH_OP_NR };
enum bench_way { BENCH_RDMA, BENCH_HTTP, BENCH_WAY_NR };

extern const char *const bench_op_name[BENCH_OP_NR];
extern const char *const bench_way_name[BENCH_WAY_NR];

/* A mix of sizes, of which one is chosen at random for each object. */
struct bench_sizes {
	int nr;
	uint64_t size[BENCH_SIZES_MAX];
	unsigned weight[BENCH_SIZES_MAX];
	char text[64]; /* text of the option */
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

/* Parses an option, as the functions below do: the parts between commas are rows, and "a:3+b:1" in a part is a
 * mix with weights. They return false for an invalid text; the plan cannot be used then. */
/* Reads a size above 0: 4096, 4k, 4K, 4KiB, 4kb, always powers of 1024. */
bool bench_size(const char *text, uint64_t *ret);
/* Parses sizes, such as "4k,1MiB" or "4k:70+1m:30". */
bool bench_plan_sizes(struct bench_plan *p, const char *text);
/* Parses numbers of requests at a time, such as "1,8,64". */
bool bench_plan_at_once(struct bench_plan *p, const char *text);
/* Parses operations, such as "put,get" or "get:90+put:10". */
bool bench_plan_mix(struct bench_plan *p, const char *text);
/* Parses ways, such as "rdma", "http" or "rdma,http". */
bool bench_plan_ways(struct bench_plan *p, const char *text);

int bench_plan_most_at_once(const struct bench_plan *p);
uint64_t bench_plan_largest(const struct bench_plan *p);
/* Returns the default number of objects of a row: together 1 GiB, at least one for each of at_once, and at
 * most 1024 or at_once, whichever is larger. */
uint64_t bench_usual_objects(const struct bench_sizes *s, int at_once);
/* Picks one of nr entries by weight. `random` is any number. */
int bench_pick(const unsigned *weight, int nr, uint64_t random);

/* ---- at work: bench_work.c ---- */

#define BENCH_KINDS_MAX 16

/* Counts of events by kind; the last entry counts all other kinds. */
struct bench_kinds {
	struct {
		char name[160];
		uint64_t nr;
	} kind[BENCH_KINDS_MAX];
	int nr;
};

struct bench_figures {
	struct histogram latency; /* latencies of successful requests, in ns */
	_Atomic uint64_t nr, bytes;
};

/* The measurements of a row with one way (RDMA or HTTP), over all its rounds. */
struct bench_row {
	const struct bench_sizes *sizes;
	const struct bench_mix *mix;
	int at_once;
	enum bench_way way;
	uint64_t objects;
	struct bench_figures op[BENCH_OP_NR];
	_Atomic uint64_t rdma_bytes, http_bytes, errors, damaged;
	/* errors, and reasons for not using RDMA; protected by bench.lock */
	struct bench_kinds error, not_rdma;
	double seconds, client_cpu_s, server_cpu_s;
	/* Rates of each round: requests a second, bytes a second. */
	double rate[BENCH_ROUNDS_MAX], byte_rate[BENCH_ROUNDS_MAX];
	int rounds;
};

/* Sums over all requests, including requests that are not measured. */
struct bench_total {
	_Atomic uint64_t nr[BENCH_OP_NR];
	/* numbers of bytes, by way */
	_Atomic uint64_t put_bytes[BENCH_WAY_NR], get_bytes[BENCH_WAY_NR];
};

struct bench_object {
	uint32_t version; /* version of the object's contents */
	uint8_t size;     /* index of the object's size */
	bool is_there;    /* true: the object exists with the known contents */
	bool is_left;     /* true: the object may exist on the server, and must be removed */
};

struct bench {
	struct cmd *c;
	struct bench_plan plan;
	char *base; /* URL prefix of the objects, whose URLs are base/KEY */
	bool own_bucket;
	uint64_t seed;
	struct buffer *buffer; /* buffer of each thread */
	int buffers;
	struct bench_object *object;
	uint64_t objects;
	unsigned group; /* part of the keys that differs between mixes of sizes */
	bool has_server_cpu;
	pthread_mutex_t lock;
	struct bench_total total;
};

enum bench_job {
	BENCH_PREPARE, /* job: puts the objects that are missing */
	BENCH_MEASURE,
	BENCH_REMOVE, /* job: deletes the objects that may exist */
};

/* Does one job with all threads. BENCH_MEASURE measures a row for the time or count of the command line, and
 * adds the results to the row. Returns 0; -EINTR after a signal; -EIO if the job was aborted after too many
 * failures, with a message on standard error. */
int bench_work(struct bench *b, enum bench_job job, struct bench_row *row);
/* Returns true if a signal has asked the program to end. */
bool bench_ended(void);
void bench_catch_signals(void);

/* ---- what it says: bench_report.c ---- */

void bench_report_head(const struct bench *b);
void bench_report_row(const struct bench *b, const struct bench_row *row);
/* Prints a comparison of RDMA with HTTP. */
void bench_report_ratio(const struct bench *b, const struct bench_row *rdma, const struct bench_row *http);
void bench_report_total(const struct bench *b);

#endif
