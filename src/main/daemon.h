/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running daemon: start-up, the wait for signals, shutdown.  Everything here runs on the main thread; the
 * pages (pages.c) read struct daemon on the admin thread.
 */
#ifndef GANTRY_MAIN_DAEMON_H
#define GANTRY_MAIN_DAEMON_H

#include "admin/admin.h"
#include "conf/conf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct auth_keys;
struct auth_replay;
struct cores;
struct rdma;
struct remember;
struct stats;
struct store;
struct tls_cert;

enum daemon_phase {
	PHASE_STARTING,
	PHASE_RECOVERING,
	PHASE_CLUSTER,
	PHASE_DISKS,
	PHASE_SERVING,
	PHASE_DRAINING,
	PHASE_NR
};
extern const char *const phase_name[PHASE_NR];

#define HEALTH_UNITS_MAX 64

/* Fullness of one thing, with the memory that keeps a reason from coming and going. */
struct health_fill {
	bool is_full;
	uint64_t refused;    /* writes that found no room, since the start, as of the last look */
	uint64_t refused_ns; /* clock_ns() of the look that saw the last of them; 0: none was seen */
};
/* What health.c remembers of a disk or pool, which is named by UUID or name. */
struct health_unit {
	char object[64];
	struct health_fill space, index;
};

/* The main thread writes each pointer once, before the phase that uses it; all are freed after the admin
 * thread has ended. */
struct daemon {
	const struct conf *conf; /* the first configuration: authoritative for keys that need a restart */
	const struct conf_source *source;
	_Atomic int phase;
	uint64_t started_ns; /* clock_ns() */
	struct rdma *rdma;
	struct stats *stats;
	_Atomic(struct store *) store;
	_Atomic(struct cores *) cores;
	struct admin *admin;
	_Atomic bool admin_listens;
	int listen_fds[CONF_LISTEN_MAX];
	struct tls_cert *certs[CONF_LISTEN_MAX]; /* NULL: plain HTTP */
	struct auth_keys *keys;     /* a reference; NULL: none; owned by reload.c after the start */
	_Atomic int key_nr;         /* number of keys */
	struct auth_replay *replay; /* NULL: off */

	/* reload.c's */
	pthread_mutex_t conf_lock;   /* protects conf_now */
	const struct conf *conf_now; /* a reference; daemon_conf() */
	pthread_mutex_t reload_lock; /* allows one reload at a time */
	_Atomic int reloads_running; /* reloads started by SIGHUP */
	/* wall clock of the last successful one, or of the start */
	_Atomic uint64_t reload_failures, reloaded_ns;
	_Atomic int restart_pending; /* number of changed keys that need a restart */
	_Atomic bool drained;        /* an operator has requested the drain */
	_Atomic bool reload_failed;  /* the last one */

	struct health_unit unit_health[HEALTH_UNITS_MAX]; /* of health.c */
	struct remember *remember;                        /* of remember.c; from start_store() on */
};

/* Serves until a signal ends it; returns an exit code of options.h. source: origin of conf, for reloads.
 * ready_file: NULL or the file for the ready line. */
int daemon_run(const struct conf *conf, const struct conf_source *source, const char *ready_file);

/* ---- reload.c ---- */

/* Takes a reference to the configuration in use, for daemon_conf_put().  Any thread. */
const struct conf *daemon_conf(struct daemon *d);
void daemon_conf_put(const struct conf *c);
void daemon_log_levels(const struct conf *c);
/* Reads the bearer token into token; empty without admin.token_file. 0 or -EINVAL, the reason in err. */
int daemon_read_token(const struct conf *c, char token[ADMIN_TOKEN_MAX + 2], FILE *err);
/* Reads the configuration again, and applies all of it or nothing; writes the answer as JSON and returns its
 * HTTP status. Blocks while files are read; any thread but a core's. */
int daemon_reload(struct daemon *d, FILE *out);
/* Reloads on a thread of its own. */
void daemon_reload_begin(struct daemon *d);
/* Waits for all reloads that have begun. */
void daemon_reload_wait(struct daemon *d);

/* ---- state.c ---- */

/* Makes the path of a file of that name in store.state_dir, one for each configuration file, by its real path.  0; -ENOENT: there is
 * no such directory; -ENAMETOOLONG. */
int daemon_state_path(const struct conf *conf, const struct conf_source *source, const char *name, char *out,
		      size_t cap);

struct admin_reasons;
/* ---- remember.c: the record of the store outside of its disks (store/record.h) ---- */

struct store_conf;
struct store_disk_conf;
struct store_record;
/* Reads the record of this configuration file into *ret_m, for remember_free().  0, also where there is no record, or no place for
 * one; or -errno with a sentence in err: the record is damaged or unreadable; *ret_m is usable then, and knows no store; NULL only
 * for -ENOMEM. */
int remember_open(const struct conf *conf, const struct conf_source *source, struct remember **ret_m,
		  char *err, size_t err_len);
/* Does as daemon_store_conf(), and adds what is remembered; *ret_m is for remember_free(), and NULL after an error.  A record that
 * cannot be read is logged with the way out, and counts as none. */
int remember_store_conf(const struct conf *conf, const struct conf_source *source,
			struct store_disk_conf *disks, struct store_conf *ret_conf, struct remember **ret_m,
			char *err, size_t err_len);
/* Writes the way out for disks of another store than the remembered one (-EXDEV of a start). */
void remember_way_out(const struct remember *m, char *out, size_t cap);
/* Waits for a write in progress.  NULL is allowed. */
void remember_free(struct remember *m);
/* Returns what is known of the store; NULL: nothing. */
const struct store_record *remember_known(const struct remember *m);
/* Returns true if the record is as it was last to be written. */
bool remember_keeps(struct remember *m);
/* Returns the file of the record; "": there is no place for one. */
const char *remember_file(const struct remember *m);
/* Writes the disks of a store that serves; or of a new one, whose record is given.  0, also without a place; or -errno with a sentence
 * in err.  Blocks. */
int remember_store(struct remember *m, const struct store *st, char *err, size_t err_len);
int remember_made(struct remember *m, const struct store_record *made, char *err, size_t err_len);
/* Removes disks that were given up.  As remember_store(). */
int remember_less(struct remember *m, const uint8_t (*uuid)[UUID_BYTES], int nr, char *err, size_t err_len);
/* Writes a note on each disk of the record that the configuration does not name, and on a disk that shares a file system with the
 * record, a line each. */
void remember_notes(const struct remember *m, const struct conf *conf, FILE *out);
/* Writes the record of the store that was started, and logs where it cannot be written. */
void remember_start(struct daemon *d);
/* Has the record follow a change of the members of the running store, on a thread of its own.  The main thread, once a second. */
void remember_look(struct daemon *d);
/* Takes the disks that a configuration names, which was read for a reload. */
void remember_named(struct remember *m, const struct conf *conf);
/* Writes the line of store.disks for a disk. */
void remember_line(const char *path, uint64_t size_bytes, char *out, size_t cap);
/* Adds the reasons of health: members without a line in the file, a record that cannot be written. */
void remember_health(struct daemon *d, struct admin_reasons *r);
/* Writes the state of the record as a JSON object. */
void remember_show(const struct remember *m, const struct conf *conf, FILE *out);

/* ---- below.c: devices and file systems below the disks ---- */

/* Waits for absent devices, and for directories that had a store and have none, for store.wait_for_disks at most; logs disks that
 * share a device or file system.  record: NULL: unknown. */
void below_wait(struct daemon *d, const struct store_record *record);
/* Names two disks that share a device or file system.  False: there are none. */
bool below_shared(const struct conf *conf, char *text, size_t len);
/* Adds up what new disks want of each file system.  0, or -ENOSPC with a sentence in err. */
int below_check_room(const struct conf *conf, char *err, size_t err_len);

/* ---- format.c ---- */
struct options;
/* Makes a store (--format); returns an exit code. */
int format_store(const struct options *o, const struct conf *conf, const struct conf_source *source);

/* ---- health.c: as admin_env has them ---- */
void health_ready(void *cookie, struct admin_reasons *r);
void health_reasons(void *cookie, struct admin_reasons *r);

/* ---- control.c ---- */
void control_env(struct admin_env *env);
/* Writes the state and findings of the scrub as a JSON object. */
void control_scrub_state(struct daemon *d, FILE *out);

/* ---- disks.c: POST /control/disk/... ---- */
struct admin_args;
int disks_drain(void *cookie, const struct admin_args *args, FILE *out);
int disks_add(void *cookie, const struct admin_args *args, FILE *out);
int disks_cancel(void *cookie, const struct admin_args *args, FILE *out);
/* Writes the state of the current move. */
void disks_show_move(void *cookie, FILE *out);
/* Adds a disk to a stopped store (--add); returns an exit code. */
int disks_add_stopped(const struct conf *conf, const struct conf_source *source, const char *path,
		      bool force);

/* ---- copies.c: of keys with two copies ---- */

struct admin_reasons;
struct stats_out;
/* Adds the problems of keys with two copies to the reasons; st NULL: there is no store yet. */
void copies_health(const struct store *st, struct admin_reasons *r);
void copies_metrics(const struct store *st, struct stats_out *out);
/* Writes their state as one more member of a JSON object; nothing if no bucket has two copies. */
void copies_show(const struct store *st, FILE *out);

struct store_quota_info;
/* Writes a quota and its usage as a JSON object. copies: of the bucket; 0: unknown. */
void control_quota(const struct store_quota_info *q, unsigned copies, FILE *out);

/* The configuration for opening, formatting and checking the store; disks has room for CONF_DISKS_MAX. */
/* Fills it in. 0, or -errno with the reason in err: the module of the back end is missing, or was built for
 * another daemon. */
int daemon_store_conf(const struct conf *conf, struct store_disk_conf *disks, struct store_conf *ret_conf,
		      char *err, size_t err_len);
/* Returns the number of ports attached to a store on disks at a time: one per core, one of buckets.c, and two
 * of the rebalancer (set/disk_admin.c). */
static inline int
daemon_store_ports(const struct conf *conf)
{
	return conf->core_nr + 3;
}

/* Makes missing buckets of scality listeners (buckets.c). 0, or -errno, which was logged. */
int daemon_make_buckets(const struct conf *conf, struct store *store);

struct store_use;
/* Sets a bucket's own quota. Any thread but a core's; blocks. 0 or -errno. */
int daemon_set_bucket_quota(struct store *store, const char *name, const struct store_use *max);
/* Returns the number of copies of each object of a bucket; 0: unknown. Any thread but a core's; blocks. */
unsigned daemon_bucket_copies(struct store *store, const char *name);

/* Loads the certificates of HTTPS listeners (certs.c).  0, or -errno, which was logged. */
int daemon_load_certs(const struct conf *conf, struct tls_cert *certs[CONF_LISTEN_MAX]);
/* Reads the certificates again; an invalid one leaves its listener unchanged. 0, or -errno, which was
 * logged. */
int daemon_reload_certs(const struct conf *conf, struct tls_cert *const certs[CONF_LISTEN_MAX]);
/* Frees the certificates. */
void daemon_free_certs(struct tls_cert *certs[CONF_LISTEN_MAX]);

/* Loads the access keys of auth.credentials_file (access.c); NULL: there is no file, which is reported if one
 * is configured. 0, or -errno, which was logged. */
int daemon_load_keys(const struct conf *conf, struct auth_keys **ret_keys);
/* Makes the first access key (--format) if auth.credentials_file is set and does not exist, and prints it. 0,
 * or -errno, which was printed. */
int daemon_first_key(const struct conf *conf);
/* Applies the quotas of grants to the store; keys NULL: there are none. 0 or -errno (then nothing has
 * changed). */
int daemon_set_quotas(struct store *store, const struct auth_keys *keys);
/* Makes the table of used signatures; NULL: auth.replay is off. 0, or -errno, which was logged. */
int daemon_make_replay(const struct conf *conf, struct auth_replay **ret_replay);

/* ---- ready.c ---- */

/* Prints "127.0.0.1:9000", with the actual port. */
void daemon_listen_text(const struct conf_listen *l, int port, char *out, size_t cap);
/* Sets PHASE_SERVING and notifies the processes that wait for it. 0, or an exit code of options.h: ready_file
 * (NULL: none) cannot be written; logged. */
int daemon_say_ready(struct daemon *d, const char *ready_file);

/* Fills in the functions used by the admin thread (pages.c). */
void pages_env(struct daemon *d, struct admin_env *ret_env);

#endif
