/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd - the parts of the gantry command. main.c parses the options with options.c, and calls one of the
 * functions below. put.c and get.c move files, and report.c prints the results. All functions are program
 * code: they may print, and may abort if there is no memory.
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
	EXIT_NOT_RDMA = 4,      /* exit status: done, but with --require-rdma some bytes used HTTP */
	EXIT_INTERRUPTED = 130, /* exit status: ended by a signal, after cleaning up */
};

#define BUFFER_BYTES (16u << 20) /* size in bytes of a registered buffer, and of a piece of a get */
#define JOBS_MAX 64
#define FILTERS_MAX 64

#define HW_LARGEST (1ull << 30) /* largest window of hwcheck, and largest work request on mlx5, in bytes */

/* A part of an object: the bytes `first` to `last`, or the last `last` bytes. */
struct part {
	uint64_t first, last;
	bool is_suffix;
};

struct cmd {
	struct gantry *g;
	bool no_rdma, scality, json, quiet, checksum, require_rdma, help;
	const char *device, *dc_key, *config, *dir, *acks;
	/* settings of packets, as in struct gantry_options */
	int traffic_class, service_level, path_mtu, pkey_index;
	const char *access_key, *secret, *region; /* keys and region for signatures; NULL: those of the
	                                           * environment, if set */
	unsigned timeout_ms;
	int jobs;          /* number of requests at a time; 0: the default of the command */
	const char *admin; /* admin listener; NULL: chosen by admin_name() */
	double interval_s; /* top: interval in seconds; 0: the default */
	int count;         /* top, bench: number of rounds or requests; 0: no limit, or the limit of --time */
	struct part part;
	const char *method; /* presign: method of the request */
	unsigned expires_s;
	bool recursive, is_long, human, yes, dry_run, deletes, force;
	int depth;  /* du: depth of the listed prefixes */
	int copies; /* mb: number of copies; 0: the default of the server */
	struct filter {
		const char *glob;
		bool is_include;
	} filter[FILTERS_MAX];
	int filter_nr;
	bool total_is_known; /* for the progress bar, true: single files do not add to the total */
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
	/* hwcheck: true: the command listens; true: no times are measured */
	bool listens, no_times;
	const char *only;
	uint64_t largest; /* largest window or request in bytes; 0: the default */
};

/* Sums of all results. Protected by the lock if several threads add to them. */
struct tally {
	pthread_mutex_t lock;
	uint64_t files, failed, not_found, rdma_bytes, http_bytes, http_files;
	uint64_t copied_bytes, kept_bytes; /* copied_bytes: bytes that the server copied; kept_bytes: bytes of
	                                    * an earlier run */
	uint64_t same, deleted, skipped;   /* sync: numbers of objects; skipped: entries that are not files */
	char reason[160];                  /* reason of the first transfer without RDMA */
	double start_s;
};

/* The outcome of the transfer of one file or object. */
struct outcome {
	const char *op, *url, *file; /* op: verb for reports; file may be NULL */
	int error;                   /* 0, or the -errno of the transfer */
	bool is_local;               /* true: a local error, which message describes */
	struct gantry_result res;    /* result of the library; bytes: sum over all pieces */
	uint64_t rdma_bytes, http_bytes;
	/* number of bytes from an earlier run, and number of bytes that the server copied */
	uint64_t kept_bytes, copied_bytes;
	double seconds;
};

/* A buffer, registered as long as it exists. */
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
/* Lists buckets or objects; cmd_du() sums their sizes. */
int cmd_ls(struct cmd *c, const char *url);
int cmd_du(struct cmd *c, const char *url);
/* Copies files and objects in any direction; cmd_sync() makes one tree equal to another. */
int cmd_cp(struct cmd *c, const char *from, const char *to);
int cmd_sync(struct cmd *c, const char *from, const char *to);
/* Measures a server; see bench.h. */
int cmd_bench(struct cmd *c, const char *url);
int cmd_rm(struct cmd *c, const char *url);
int cmd_mb(struct cmd *c, const char *url);
int cmd_rb(struct cmd *c, const char *url);
int cmd_ports(struct cmd *c);
/* Shows the state of a running gantryd (status.c). cmd_top() is in top.c. cmd_doctor(), in doctor.c, examines
 * this machine; its argument client may be NULL. */
int cmd_status(struct cmd *c);
int cmd_top(struct cmd *c);
/* Shows the health of a daemon (what NULL), or mutes or unmutes ("mute", "unmute") the reason with this
 * code. */
int cmd_health(struct cmd *c, const char *what, const char *code);
int cmd_doctor(struct cmd *c, const char *client);
/* Runs `gantry disk`: "status", "drain", "add" or "cancel". disk NULL: the command line names no disk. */
int cmd_disk(struct cmd *c, const char *what, const char *disk);
/* Runs `gantry bucket`: "set" or "show" for the quota of a bucket; name NULL: shows all quotas. */
int cmd_bucket(struct cmd *c, const char *what, const char *name);
/* Examines RDMA ports: each against itself, or one against a port of another host. With c->listens, host is a
 * local address. */
int cmd_hwcheck(struct cmd *c, const char *host);
/* Runs `gantry key`: "new", "list" or "revoke" for the access keys of a daemon on this machine. access_key:
 * key to revoke. */
int cmd_key(struct cmd *c, const char *what, const char *access_key);
/* Returns the meaning in words of a reason for declining RDMA. */
const char *decline_meaning(const char *reason);
/* Puts or gets many files. list: file with their names, one a line ("-": standard input). The names are
 * relative to -C DIR and to url. */
int cmd_many(struct cmd *c, bool is_put, const char *list, const char *url);

/* Reads a time of at least a second and at most max_s: 90, 90s, 15m, 12h, 7d. */
bool duration_parse(const char *text, uint64_t max_s, uint64_t *ret_s);

/* Makes a buffer of BUFFER_BYTES bytes. Returns 0 or -ENOMEM. */
int buffer_init(struct buffer *b, struct gantry *g);
/* Makes a buffer of another size. */
int buffer_make(struct buffer *b, struct gantry *g, size_t cap);
void buffer_fini(struct buffer *b);
struct gantry_request request_of(const struct cmd *c);

/* Adds a suggestion to the message of an outcome, if an address, scheme or port caused the error. The
 * function sends another request to the address to find the suggestion. Other messages stay unchanged. */
void explain(struct outcome *o);

/* ---- report.c ---- */

/* Returns the time of the monotonic clock in seconds. */
double now_s(void);
void outcome_init(struct outcome *o, const char *op, const char *url, const char *file);
/* Adds a result to the outcome o. */
void outcome_add(struct outcome *o, int error, const struct gantry_result *res);
void outcome_local(struct outcome *o, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Returns true if another attempt may succeed, and can use the bytes that this attempt has moved. */
bool outcome_may_pass(const struct outcome *o);
/* Prints one line (or JSON) about one file. data_on_stdout: the line goes to standard error. */
void report(const struct cmd *c, const struct outcome *o, bool data_on_stdout);
/* Reports the result of a request that moves no bytes. Returns the exit status of the program. */
int report_without_bytes(const struct cmd *c, struct outcome *o, int e, const struct gantry_result *res);
/* Prints an action that --dry-run does not execute, for the object prefix/name. */
void would(const struct cmd *c, const char *what, const char *prefix, const char *name);
void report_head(const struct cmd *c, const struct outcome *o);
void tally_init(struct tally *t);
void tally_add(struct tally *t, const struct outcome *o);
void tally_report(const struct cmd *c, const struct tally *t, const char *op);
int tally_exit(const struct cmd *c, const struct tally *t);
/* Returns a name in the form for output to f: its bytes, or on a terminal a harmless form of them, written to
 * room. */
const char *name_shown(FILE *f, const char *name, char *room, size_t cap);
/* Writes a size as text: "1.5 MiB". */
const char *size_text(uint64_t bytes, char out[32]);
/* Adds to the number of bytes to move in the progress bar, which all transfers share. progress_add() adds
 * moved bytes. */
void progress_more(const struct cmd *c, uint64_t bytes);
void progress_add(const struct cmd *c, uint64_t bytes);
void progress_end(const struct cmd *c);

#endif
