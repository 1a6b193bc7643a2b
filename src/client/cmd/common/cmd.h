/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the gantry command. main.c has the options parsed (options.c) and calls one of the functions
 * below; put.c and get.c move files, report.c prints the results. All of it is program code: it may print,
 * and abort when out of memory.
 */
#ifndef GANTRY_CLIENT_CMD_CMD_H
#define GANTRY_CLIENT_CMD_CMD_H

#include "client/gantry.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_FOUND = 3,
	EXIT_NOT_RDMA = 4,      /* done, but with --require-rdma, and some bytes used HTTP */
	EXIT_INTERRUPTED = 130, /* ended by a signal, after cleaning up */
};

#define BUFFER_BYTES (16u << 20) /* one registered buffer; also the piece of a get */
#define JOBS_MAX 64
#define FILTERS_MAX 64

#define HW_LARGEST (1ull << 30) /* of a window of hwcheck, and of a work request on mlx5 */

/* A part of an object: bytes first to last, or the last `last` of them. */
struct part {
	uint64_t first, last;
	bool is_suffix;
};

struct cmd {
	struct gantry *g;
	bool no_rdma, scality, json, quiet, checksum, require_rdma, help;
	const char *device, *dc_key, *config, *dir, *acks;
	int traffic_class, service_level, path_mtu, pkey_index; /* as struct gantry_options has them */
	const char *access_key, *secret, *region;               /* NULL: from the environment, if set */
	unsigned timeout_ms;
	int jobs;          /* 0: the command's default */
	const char *admin; /* NULL: as admin_name() chooses */
	double interval_s; /* top; 0: the default */
	int count;         /* top, bench; 0: no limit, or the limit of --time */
	struct part part;
	const char *method; /* presign */
	unsigned expires_s;
	bool recursive, is_long, human, yes, dry_run, deletes, force;
	int depth;  /* du */
	int copies; /* mb; 0: the server's default */
	struct filter {
		const char *glob;
		bool is_include;
	} filter[FILTERS_MAX];
	int filter_nr;
	bool total_is_known; /* for the bar: single files do not add to the total */
	struct {
		const char *bucket, *prefix, *until, *from, *file, *conf;
		bool read_only, no_delete, no_overwrite;
	} key;                                             /* key */
	const char *disk_size;                             /* disk add */
	const char *max_objects, *max_bytes, *max_uploads; /* bucket set, key new */
	const char *max_buckets;                           /* key new */
	const char *mute_for;                              /* health mute */
	/* bench; NULL or 0: the default */
	const char *sizes, *at_once, *mix, *ways;
	double time_s, warm_up_s, rate;
	uint64_t objects, seed;
	int rounds;
	bool has_seed, verify;
	/* hwcheck */
	bool listens, no_times;
	const char *only;
	uint64_t largest; /* 0: the default */
};

/* Sums of all results; guarded by lock when several threads add to it. */
struct tally {
	pthread_mutex_t lock;
	uint64_t files, failed, not_found, rdma_bytes, http_bytes, http_files;
	uint64_t copied_bytes, kept_bytes; /* as in an outcome */
	uint64_t same, deleted, skipped;   /* sync; entries that are not files */
	char reason[160];                  /* of the first transfer without RDMA */
	double start_s;
};

/* One file or object. */
struct outcome {
	const char *op, *url, *file; /* file may be NULL */
	int error;                   /* 0 or -errno */
	bool is_local;               /* a local error: described in message */
	struct gantry_result res;    /* bytes: summed over pieces */
	uint64_t rdma_bytes, http_bytes;
	uint64_t kept_bytes, copied_bytes; /* from an earlier run; copied by the server */
	double seconds;
};

/* A buffer that is registered during its lifetime. */
struct buffer {
	struct gantry *g;
	char *mem;
	size_t cap;
};

int cmd_put(struct cmd *c, const char *file, const char *url);
int cmd_get(struct cmd *c, const char *url, const char *file);
/* Writes an object, or c->part of it, to standard output. */
int cmd_cat(struct cmd *c, const char *url);
int cmd_head(struct cmd *c, const char *url);
int cmd_stat(struct cmd *c, const char *url);
int cmd_presign(struct cmd *c, const char *url);
/* Lists buckets or objects, and sums them up. */
int cmd_ls(struct cmd *c, const char *url);
int cmd_du(struct cmd *c, const char *url);
/* Copies files and objects in any direction; makes one tree equal to another. */
int cmd_cp(struct cmd *c, const char *from, const char *to);
int cmd_sync(struct cmd *c, const char *from, const char *to);
/* Measures a server; bench.h. */
int cmd_bench(struct cmd *c, const char *url);
int cmd_rm(struct cmd *c, const char *url);
int cmd_mb(struct cmd *c, const char *url);
int cmd_rb(struct cmd *c, const char *url);
int cmd_ports(struct cmd *c);
/* Shows operators a running gantryd (status.c, top.c) and this machine (doctor.c); client may be NULL. */
int cmd_status(struct cmd *c);
int cmd_top(struct cmd *c);
/* Shows health (NULL), or does "mute" or "unmute" with a reason's code. */
int cmd_health(struct cmd *c, const char *what, const char *code);
int cmd_doctor(struct cmd *c, const char *client);
/* Does "status", "drain", "add" or "cancel" with a disk; NULL: none was named. */
int cmd_disk(struct cmd *c, const char *what, const char *disk);
/* Does "set" or "show" with the quota of a bucket; NULL: shows all quotas. */
int cmd_bucket(struct cmd *c, const char *what, const char *name);
/* Examines RDMA ports: each against itself, or one against that of another host; with c->listens host is a
 * local address. */
int cmd_hwcheck(struct cmd *c, const char *host);
/* Does "new", "list" or "revoke" with the access keys of a daemon on this machine; access_key: the key to
 * revoke. */
int cmd_key(struct cmd *c, const char *what, const char *access_key);
/* Returns the meaning of a decline's reason in words. */
const char *decline_meaning(const char *reason);
/* Puts or gets many files: names from a list file ("-": standard input), one a line, below -C DIR and
 * below url. */
int cmd_many(struct cmd *c, bool is_put, const char *list, const char *url);

/* Reads a time of at least a second and at most max_s: 90, 90s, 15m, 12h, 7d. */
bool duration_parse(const char *text, uint64_t max_s, uint64_t *ret_s);

/* Makes a buffer of BUFFER_BYTES.  0 or -ENOMEM. */
int buffer_init(struct buffer *b, struct gantry *g);
/* Makes a buffer of another size. */
int buffer_make(struct buffer *b, struct gantry *g, size_t cap);
void buffer_fini(struct buffer *b);
struct gantry_request request_of(const struct cmd *c);

/* Adds a suggestion to o's message for an error of address, scheme or port; sends another request to that
 * address to find it. Other messages stay unchanged. */
void explain(struct outcome *o);

/* ---- report.c ---- */

/* Returns the monotonic clock in seconds. */
double now_s(void);
void outcome_init(struct outcome *o, const char *op, const char *url, const char *file);
/* Sums a result into o. */
void outcome_add(struct outcome *o, int error, const struct gantry_result *res);
void outcome_local(struct outcome *o, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Returns true if another run may succeed, using the result of this one. */
bool outcome_may_pass(const struct outcome *o);
/* Prints one line (or JSON) about one file; data_on_stdout sends it to standard error. */
void report(const struct cmd *c, const struct outcome *o, bool data_on_stdout);
/* Reports the result of a request that moves no bytes; returns the program's exit status. */
int report_without_bytes(const struct cmd *c, struct outcome *o, int e, const struct gantry_result *res);
/* Prints an action that --dry-run omits for prefix and name. */
void would(const struct cmd *c, const char *what, const char *prefix, const char *name);
void report_head(const struct cmd *c, const struct outcome *o);
void tally_init(struct tally *t);
void tally_add(struct tally *t, const struct outcome *o);
void tally_report(const struct cmd *c, const struct tally *t, const char *op);
int tally_exit(const struct cmd *c, const struct tally *t);
/* Returns a name for output to f: its bytes, or on a terminal a harmless form of it in room. */
const char *name_shown(FILE *f, const char *name, char *room, size_t cap);
/* Prints a size as "1.5 MiB". */
const char *size_text(uint64_t bytes, char out[32]);
/* Updates the one bar of all transfers: adds to the bytes to move, and to the bytes moved. */
void progress_more(const struct cmd *c, uint64_t bytes);
void progress_add(const struct cmd *c, uint64_t bytes);
void progress_end(const struct cmd *c);

#endif
