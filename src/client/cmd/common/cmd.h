/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd - declarations shared by the files of the gantry command. main.c parses the options with options.c, and
 * calls the function cmd_*() of the command. put.c and get.c move files, and report.c prints the results. The
 * functions are part of a program, not of a library: they may print, and may end the program if there is no
 * memory.
 */
#ifndef GANTRY_CLIENT_CMD_CMD_H
#define GANTRY_CLIENT_CMD_CMD_H

#include "base/amount.h"
#include "base/progress.h"
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
	/* the work was done, but --require-rdma was given and some bytes moved over HTTP */
	EXIT_NOT_RDMA = 4,
	/* a signal has ended the command, which has removed incomplete files and uploads */
	EXIT_INTERRUPTED = 130,
};

#define BUFFER_BYTES (16u << 20) /* size of a registered buffer, and of a piece of a get, in bytes */
#define JOBS_MAX 64
#define FILTERS_MAX 64

/* largest window of hwcheck in bytes; also the largest work request of mlx5 */
#define HW_LARGEST (1ull << 30)

/* A range of an object: the bytes `first` to `last`; is_suffix: the last `last` bytes. */
struct part {
	uint64_t first, last;
	bool is_suffix;
};

struct cmd {
	struct gantry *g;
	const char *name; /* name of the command, for messages */
	bool no_rdma, scality, json, quiet, checksum, require_rdma, help;
	const char *device, *dc_key, *config, *dir, *acks;
	enum gantry_transport transport;
	bool verbose;
	/* settings of packets: see the members of struct gantry_options */
	int traffic_class, service_level, path_mtu, pkey_index;
	/* keys and region for signatures; NULL: those in the environment, if it has them */
	const char *access_key, *secret, *region;
	const char *ca_file; /* certificates for https (PEM); NULL: AWS_CA_BUNDLE, else those of the system */
	/* file with the token of the admin listener; NULL: admin_secure() chooses it */
	const char *token_file;
	unsigned timeout_ms;
	int jobs;          /* number of requests at a time; 0: the default of the command */
	const char *admin; /* name of the admin listener; NULL: admin_name() chooses it */
	double interval_s; /* top: time between two samples in seconds; 0: the default */
	/* top: number of samples, 0: no limit; bench: number of requests, 0: the time limit --time counts */
	int count;
	struct part part;
	const char *method; /* presign: method of the request */
	unsigned expires_s;
	bool recursive, is_long, human, yes, dry_run, deletes, force;
	int depth;      /* du: number of levels of prefixes that are listed */
	uint64_t ttl_s; /* put, cp, sync, mput: time in seconds after which the objects expire; 0: never */
	int copies;     /* mb: number of copies of each object; 0: the default of the server */
	struct filter {
		const char *glob;
		bool is_include;
	} filter[FILTERS_MAX];
	int filter_nr;
	/* true: the total of the progress is final, so that single files do not add to it */
	bool total_is_known;
	bool has_no_bar; /* true: no progress is shown */
	struct {
		const char *bucket, *prefix, *until, *from, *file, *conf, *comment, *compare;
		bool read_only, no_delete, no_overwrite;
	} key;                 /* options of the command key */
	const char *disk_size; /* option of the command disk add */
	/* commands disk add and disk drain: true: writes the configuration */
	bool writes;
	bool waits; /* command disk: true: waits for the end of the moves */
	/* options of the commands bucket set and key new */
	const char *max_objects, *max_bytes, *max_uploads;
	const char *max_buckets; /* option of the command key new */
	const char *expire;      /* option of the command bucket set */
	const char *mute_for;    /* option of the command health mute */
	struct {
		const char *client, *op, *slow;
		bool errors;
	} trace;            /* options of the command trace, besides those of other commands */
	const char *output; /* support: path of the archive; NULL: a name made of host and time */
	/* options of bench; NULL or 0: the default */
	const char *sizes, *at_once, *mix, *ways;
	const char *endpoints; /* bench: further servers, separated by commas; NULL: none */
	bool csv;              /* bench: true: prints CSV */
	/* bench: hosts that measure, separated by commas, and the command that reaches them; NULL: this host,
	 * and ssh */
	const char *hosts, *ssh;
	bool worker;  /* bench: true: this process is a worker of --hosts */
	double limit; /* bench: percentage by which a row may be worse; 0: the default */
	double time_s, warm_up_s, rate;
	uint64_t objects, seed;
	int rounds;
	bool has_seed, verify;
	/* hwcheck: listens: true: serves another host; no_times: true: no times are measured */
	bool listens, no_times;
	const char *only;
	uint64_t largest; /* hwcheck: largest window or transfer in bytes; 0: the default */
};

/* Sums over the results of all files. Threads that add to them take the lock. */
struct tally {
	pthread_mutex_t lock;
	uint64_t files, failed, not_found, rdma_bytes, http_bytes, http_files;
	/* copied_bytes: bytes that the server copied itself; kept_bytes: bytes that an earlier run had
	 * moved */
	uint64_t copied_bytes, kept_bytes;
	/* sync: numbers of equal and of deleted objects; skipped: number of entries that are not files */
	uint64_t same, deleted, skipped;
	/* reason why the first transfer without RDMA did not use RDMA, and the address in its token */
	char reason[160], address[48];
	double start_s;
};

/* The outcome of the transfer of one file or object. */
struct outcome {
	const char *op, *url, *file; /* op: verb for reports ("put"); file: path of the file, NULL: none */
	int error;                   /* 0, or the -errno of the transfer */
	bool is_local;               /* true: the error is local; res.message describes it */
	struct gantry_result res;    /* result from the library; res.bytes: sum over all pieces */
	uint64_t rdma_bytes, http_bytes;
	/* kept_bytes: number of bytes that an earlier run had moved; copied_bytes: number of bytes that the
	 * server copied itself */
	uint64_t kept_bytes, copied_bytes;
	double seconds;
};

/* A buffer for the bytes of objects, which is registered as long as it exists. */
struct buffer {
	struct gantry *g;
	char *mem;
	size_t cap;
};

int cmd_put(struct cmd *c, const char *file, const char *url);
int cmd_get(struct cmd *c, const char *url, const char *file);
/* Writes an object, or the range c->part of it, to standard output. */
int cmd_cat(struct cmd *c, const char *url);
int cmd_head(struct cmd *c, const char *url);
int cmd_stat(struct cmd *c, const char *url);
int cmd_presign(struct cmd *c, const char *url);
/* Lists buckets or objects (cmd_ls()), or prints the sum of the sizes of objects (cmd_du()). */
int cmd_ls(struct cmd *c, const char *url);
int cmd_du(struct cmd *c, const char *url);
/* Copies files and objects in any direction (cmd_cp()), or makes the tree `to` equal to the tree `from`
 * (cmd_sync()). */
int cmd_cp(struct cmd *c, const char *from, const char *to);
int cmd_sync(struct cmd *c, const char *from, const char *to);
/* Measures a server; see bench.h. With c->key.compare, compares two measurements, and url is the path of the newer
 * one. */
int cmd_bench(struct cmd *c, const char *url);
/* Reads the credentials of a worker of `gantry bench --hosts` from standard input into the environment, before
 * the library is opened. Returns an exit status. */
int bench_worker_begin(void);
int cmd_rm(struct cmd *c, const char *url);
int cmd_mb(struct cmd *c, const char *url);
int cmd_rb(struct cmd *c, const char *url);
int cmd_ports(struct cmd *c);
/* Shows the state of a running gantryd, once (cmd_status()) or continuously (cmd_top()). */
int cmd_status(struct cmd *c);
int cmd_top(struct cmd *c);
/* Shows the requests of a running gantryd as they end. */
int cmd_trace(struct cmd *c);
/* Shows the health of a daemon (what NULL), or mutes or unmutes the reason with a code (what "mute" or
 * "unmute"). cmd_doctor() examines this machine; client: address of a client to reach, NULL: none. */
int cmd_health(struct cmd *c, const char *what, const char *code);
int cmd_doctor(struct cmd *c, const char *client);
/* Packs the state of a daemon and of this machine into an archive. */
int cmd_support(struct cmd *c);
/* Runs `gantry disk`. what: "status", "drain", "add" or "cancel"; disk NULL: the command line names no
 * disk. */
int cmd_disk(struct cmd *c, const char *what, const char *disk);
/* Runs `gantry bucket`. what: "set" or "show", for the quota of a bucket; name NULL: shows all quotas. */
int cmd_bucket(struct cmd *c, const char *what, const char *name);
/* Tests RDMA ports: each port with itself as the target (host NULL), or one with a port of another host. With
 * c->listens the command serves another host, and `host` is the local address. */
int cmd_hwcheck(struct cmd *c, const char *host);
/* Runs `gantry key` for the access keys of a daemon on this machine. what: "new", "list", "rotate" or "revoke";
 * access_key: the key to rotate or to revoke. */
int cmd_key(struct cmd *c, const char *what, const char *access_key);
/* Returns a description of a reason why a server declines RDMA (x-gantry-rdma-reason); NULL: the text is no such
 * reason. */
const char *decline_meaning(const char *reason);
/* Prints a reason, its description, and the address that the declined token named; address "": unknown. */
void decline_print(FILE *f, const char *reason, const char *address);
/* Puts or gets many files. list: path of a file with their names, one per line; "-": standard input. Each
 * name is both a path below the directory of -C and the end of the object's URL, which begins with url. */
int cmd_many(struct cmd *c, bool is_put, const char *list, const char *url);

/* Parses a time of at least a second and at most max_s, such as 90, 90s, 15m, 12h or 7d. Returns false if the
 * text is invalid. */
bool duration_parse(const char *text, uint64_t max_s, uint64_t *ret_s);

/* Makes a buffer of BUFFER_BYTES bytes (buffer_make()). Returns 0 or -ENOMEM. */
int buffer_init(struct buffer *b, struct gantry *g);
/* Allocates and registers a buffer of cap bytes; if the registration fails, each request reports the reason.
 * Returns 0 or -ENOMEM. */
int buffer_make(struct buffer *b, struct gantry *g, size_t cap);
void buffer_fini(struct buffer *b);
struct gantry_request request_of(const struct cmd *c);

/* Adds a suggestion to the message of an outcome whose error was caused by a wrong address, scheme or port.
 * Sends another request to the address to find the cause. Other messages stay unchanged. */
void explain(struct outcome *o);

/* ---- report.c ---- */

/* Returns the time of the monotonic clock in seconds. */
double now_s(void);
void outcome_init(struct outcome *o, const char *op, const char *url, const char *file);
/* Adds the result of a call of the library, and its error (0 or -errno), to the outcome o. */
void outcome_add(struct outcome *o, int error, const struct gantry_result *res);
void outcome_local(struct outcome *o, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Returns true if another run may succeed, so that the bytes that this run has moved are kept for it. */
bool outcome_may_pass(const struct outcome *o);
/* Prints a line, or JSON, about a file or object. data_on_stdout: true: standard output has the object's
 * bytes, so the line goes to standard error. */
void report(const struct cmd *c, const struct outcome *o, bool data_on_stdout);
/* Reports the result of a request that moves no bytes; e: 0 or its -errno. Returns the exit status of the
 * program. */
int report_without_bytes(const struct cmd *c, struct outcome *o, int e, const struct gantry_result *res);
/* Prints the action `what` on the object prefix/name, which --dry-run prevents. */
void would(const struct cmd *c, const char *what, const char *prefix, const char *name);
void report_head(const struct cmd *c, const struct outcome *o);
void tally_init(struct tally *t);
void tally_add(struct tally *t, const struct outcome *o);
void tally_report(const struct cmd *c, const struct tally *t, const char *op);
int tally_exit(const struct cmd *c, const struct tally *t);
/* Returns the text of a name for output to f: the name itself or, if f is a terminal, a form without control
 * characters, which it writes to room. */
const char *name_shown(FILE *f, const char *name, char *room, size_t cap);

/* ---- bar.c: the progress of all transfers of the process ---- */

/* Returns the form of the progress that the options allow. */
enum progress_form bar_form(const struct cmd *c);
/* Adds bytes to the total of the transfers, and begins the display with the first of them. Each call is
 * followed by bar_end(). Both do nothing for a part of a tree whose total is known. */
void bar_begin(const struct cmd *c, uint64_t bytes);
void bar_end(const struct cmd *c);
/* Adds bytes to the total of a transfer that has begun. */
void bar_more(const struct cmd *c, uint64_t bytes);
/* Counts bytes that have moved. */
void bar_add(uint64_t bytes);
/* Erases the display, and prevents its drawing until bar_show(), while the caller prints lines. */
void bar_hide(void);
void bar_show(void);

#endif
