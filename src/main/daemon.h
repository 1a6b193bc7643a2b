/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running daemon: start, the wait for signals, shutdown. All functions run on the main thread unless
 * stated otherwise; the pages (pages.c) read struct daemon on the admin thread.
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

/* Fullness of a disk's or pool's space or index, with the memory that keeps a reason of health from
 * flickering. */
struct health_fill {
	bool is_full;
	uint64_t refused;    /* writes refused for lack of room since the start, as of the last check */
	uint64_t refused_ns; /* clock_ns() of the last check that found a further refused write; 0: no such
	                      * check */
};
/* The memory of health.c about a disk or pool. object: UUID of the disk, or name of the pool. */
struct health_unit {
	char object[64];
	struct health_fill space, index;
};

/* The state of the daemon. The main thread writes each pointer once, before the phase that uses it. All
 * pointers are freed after the admin thread has ended. */
struct daemon {
	const struct conf *conf; /* first configuration, which is used for keys that need a restart */
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
	struct tls_cert *certs[CONF_LISTEN_MAX]; /* an element is NULL for plain HTTP */
	struct auth_keys *keys;     /* a reference, owned by reload.c after the start; NULL: no access keys */
	_Atomic int key_nr;         /* number of access keys */
	struct auth_replay *replay; /* NULL: auth.replay is off */

	/* state of reload.c */
	pthread_mutex_t conf_lock;   /* protects conf_now */
	const struct conf *conf_now; /* a reference to the configuration in use; daemon_conf() returns
	                              * another */
	pthread_mutex_t reload_lock; /* allows one reload at a time */
	_Atomic int reloads_running; /* reloads started by SIGHUP */
	/* wall clock of the last successful reload, or of the start */
	_Atomic uint64_t reload_failures, reloaded_ns;
	_Atomic int restart_pending; /* number of changed keys that need a restart */
	_Atomic bool drained;        /* an operator drains the daemon by a control call */
	_Atomic bool reload_failed;  /* the last reload has failed */

	struct health_unit unit_health[HEALTH_UNITS_MAX]; /* state of health.c */
	struct remember *remember;                        /* state of remember.c; set by start_store() */
};

/* Serves until a signal arrives. Returns an exit code of options.h. source: origin of conf, for reloads.
 * ready_file: file for the ready line; NULL: none. */
int daemon_run(const struct conf *conf, const struct conf_source *source, const char *ready_file);

/* ---- reload.c ---- */

/* Takes a reference to the configuration in use, which daemon_conf_put() releases. Any thread. */
const struct conf *daemon_conf(struct daemon *d);
void daemon_conf_put(const struct conf *c);
void daemon_log_levels(const struct conf *c);
/* Reads the bearer token of admin.token_file into token; an empty text if there is no such file. Returns
 * 0, or -EINVAL after writing the reason to err. */
int daemon_read_token(const struct conf *c, char token[ADMIN_TOKEN_MAX + 2], FILE *err);
/* Reads the configuration again, and applies all of it or nothing. Writes the answer as JSON and returns
 * its HTTP status. Blocks while it reads files. Any thread but a core's. */
int daemon_reload(struct daemon *d, FILE *out);
/* Runs daemon_reload() on a thread of its own. */
void daemon_reload_begin(struct daemon *d);
/* Waits until all running reloads have ended. */
void daemon_reload_wait(struct daemon *d);

/* ---- state.c ---- */

/* Writes the path of the file `name` in store.state_dir; each configuration file (by its real path) has a
 * file of its own. Returns 0; -ENOENT: there is no such directory; -ENAMETOOLONG. */
int daemon_state_path(const struct conf *conf, const struct conf_source *source, const char *name, char *out,
		      size_t cap);

struct admin_reasons;
/* ---- remember.c: the record of the store outside of its disks (store/record.h) ---- */

struct store_conf;
struct store_disk_conf;
struct store_record;
/* Reads the record of this configuration file into *ret_m, which remember_free() frees. Returns 0, also if
 * there is no record or no store.state_dir. Returns -errno with a sentence in err if the record is damaged
 * or unreadable; then *ret_m is usable and knows no store. *ret_m is NULL only with -ENOMEM. */
int remember_open(const struct conf *conf, const struct conf_source *source, struct remember **ret_m,
		  char *err, size_t err_len);
/* Fills in *ret_conf as daemon_store_conf() does, and adds the record. *ret_m is for remember_free(), and
 * NULL after an error. A record that cannot be read is logged with the way to repair it, and counts as
 * absent. */
int remember_store_conf(const struct conf *conf, const struct conf_source *source,
			struct store_disk_conf *disks, struct store_conf *ret_conf, struct remember **ret_m,
			char *err, size_t err_len);
/* Appends the remedies for disks of another store than that of the record to the message of a start that ended
 * with this error; nothing unless the error is -EXDEV. */
void remember_way_out(const struct remember *m, int error, char *out, size_t cap);
/* Waits for a write in progress, then frees m. NULL is allowed. */
void remember_free(struct remember *m);
/* Returns the record of the store; NULL if there is no record. */
const struct store_record *remember_known(const struct remember *m);
/* Returns true if the file has the current record, because the last write succeeded. */
bool remember_keeps(struct remember *m);
/* Returns the path of the record's file; an empty text if there is no store.state_dir. */
const char *remember_file(const struct remember *m);
/* Writes the record of a store that serves. Returns 0, also if there is no store.state_dir; or -errno with
 * a sentence in err. Blocks. */
int remember_store(struct remember *m, const struct store *st, char *err, size_t err_len);
int remember_made(struct remember *m, const struct store_record *made, char *err, size_t err_len);
/* Adds a disk before it becomes a member, so that a start after a kill finds it. The record keeps the disk until remember_joined(); a
 * start ignores a disk that has not become a member. Any thread; a failure is logged. */
void remember_joins(struct remember *m, const uint8_t uuid[UUID_BYTES], uint64_t size_bytes,
		    const char *path);
/* Ends this: the record follows the members again. */
void remember_joined(struct remember *m);
/* Removes disks from the record, after the operator gave them up. The result is that of remember_store().
 * Blocks. */
int remember_less(struct remember *m, const uint8_t (*uuid)[UUID_BYTES], int nr, char *err, size_t err_len);
/* Writes a line on each disk of the record that the configuration does not name, and a line on a disk that
 * shares a file system with the record. */
void remember_notes(const struct remember *m, const struct conf *conf, FILE *out);
/* Writes the record of the store that was started, and logs a failure. */
void remember_start(struct daemon *d);
/* Writes the record again on a thread of its own if the members of the running store have changed. Main
 * thread, once a second. */
void remember_look(struct daemon *d);
/* Notes the disks that a configuration names, which was read for a reload. */
void remember_named(struct remember *m, const struct conf *conf);
/* Writes the line that names a disk in store.disks. */
void remember_line(const char *path, uint64_t size_bytes, char *out, size_t cap);
/* Adds reasons of health: disks that serve without a line in the configuration file, and a record that
 * cannot be written. */
void remember_health(struct daemon *d, struct admin_reasons *r);
/* Writes the state of the record as a JSON object. */
void remember_show(const struct remember *m, const struct conf *conf, FILE *out);

/* ---- below.c: devices and file systems below the disks ---- */

/* Waits for disks at most store.wait_for_disks: for absent devices, and for directories that had a store
 * according to the record and have none. Logs disks that share a device or file system. record: NULL if
 * there is none. */
void below_wait(struct daemon *d, const struct store_record *record);
/* Writes a sentence about disks that share a device or file system. Returns false if no disks do. */
bool below_shared(const struct conf *conf, char *text, size_t len);
/* Looks which disks of a store that serves share a device or file system, for below_health(). Blocks. */
void below_look(const struct store *st);
/* Adds a reason where disks share, and a bucket has two copies. st: NULL: there is no store yet. */
void below_health(const struct store *st, struct admin_reasons *r);
/* Checks that each file system has room for the sizes of all new disks on it. Returns 0, or -ENOSPC with a
 * sentence in err. */
int below_check_room(const struct conf *conf, char *err, size_t err_len);

/* ---- format.c ---- */
struct options;
/* Makes a store (--format). Returns an exit code of options.h. */
int format_store(const struct options *o, const struct conf *conf, const struct conf_source *source);

/* ---- health.c: functions of struct admin_env ---- */
void health_ready(void *cookie, struct admin_reasons *r);
void health_reasons(void *cookie, struct admin_reasons *r);
struct store_unit_info;
/* Writes how long the writes of a disk, or the operations of a pool, wait. Returns true if that is a reason of
 * health. */
bool health_waits(const struct store_unit_info *info, bool is_pool, char *out, size_t cap);

/* ---- control.c ---- */
void control_env(struct admin_env *env);
/* Writes the state and findings of the scrub as a JSON object. */
void control_scrub_state(struct daemon *d, FILE *out);

/* ---- disks.c: POST /control/disk/... ---- */
struct admin_args;
int disks_drain(void *cookie, const struct admin_args *args, FILE *out);
int disks_add(void *cookie, const struct admin_args *args, FILE *out);
int disks_cancel(void *cookie, const struct admin_args *args, FILE *out);
/* Writes the state of the current move as JSON. */
void disks_show_move(void *cookie, FILE *out);
/* Adds a disk to a store that is stopped (--add). Returns an exit code of options.h. */
int disks_add_stopped(const struct conf *conf, const struct conf_source *source, const char *path,
		      bool force);

/* ---- copies.c: keys with two copies ---- */

struct admin_reasons;
struct stats_out;
/* Adds the problems of keys with two copies to the reasons of health. st: NULL before the store is open. */
void copies_health(const struct store *st, struct admin_reasons *r);
void copies_metrics(const struct store *st, struct stats_out *out);
/* Writes the state of keys with two copies as a member of a JSON object, after its other members; writes
 * nothing if no bucket has two copies. */
void copies_show(const struct store *st, FILE *out);

struct store_quota_info;
/* Writes a quota and its usage as a JSON object. copies: number of copies in the bucket; 0: unknown. */
void control_quota(const struct store_quota_info *q, unsigned copies, FILE *out);

/* Fills in *ret_conf, the configuration for opening, formatting and checking the store; disks has room for
 * CONF_DISKS_MAX elements. Returns 0, or -errno with the reason in err if the module of the back end is
 * missing, or was built for another daemon. */
int daemon_store_conf(const struct conf *conf, struct store_disk_conf *disks, struct store_conf *ret_conf,
		      char *err, size_t err_len);
/* Returns the number of ports attached at a time to a store on disks: one for each core, one for
 * buckets.c, and two for the rebalancer (set/disk_admin.c). */
static inline int
daemon_store_ports(const struct conf *conf)
{
	return conf->core_nr + 3;
}

/* Creates missing buckets of scality listeners (buckets.c). Returns 0, or the -errno of the store after
 * logging it. */
int daemon_make_buckets(const struct conf *conf, struct store *store);

struct store_use;
/* Sets the quota of a bucket. Any thread but a core's; blocks. Returns 0 or the -errno of the store. */
int daemon_set_bucket_quota(struct store *store, const char *name, const struct store_use *max);
/* Returns the number of copies of each object of a bucket; 0 if it is unknown. Any thread but a core's;
 * blocks. */
unsigned daemon_bucket_copies(struct store *store, const char *name);

/* Loads the certificates of HTTPS listeners (certs.c). Returns 0, or -errno after logging it. */
int daemon_load_certs(const struct conf *conf, struct tls_cert *certs[CONF_LISTEN_MAX]);
/* Reads the certificates again; a listener whose new certificate is invalid keeps its old one. Returns 0,
 * or -errno after logging it. */
int daemon_reload_certs(const struct conf *conf, struct tls_cert *const certs[CONF_LISTEN_MAX]);
/* Frees the certificates. */
void daemon_free_certs(struct tls_cert *certs[CONF_LISTEN_MAX]);

/* Loads the access keys of auth.credentials_file (access.c). *ret_keys is NULL if the file does not exist,
 * which is logged if it is configured. Returns 0, or -errno after logging it. */
int daemon_load_keys(const struct conf *conf, struct auth_keys **ret_keys);
/* Creates auth.credentials_file with a first access key, and prints the key (--format). Does nothing if
 * the file exists, or no file is configured. Returns 0, or -errno after printing the reason. */
int daemon_first_key(const struct conf *conf);
/* Applies the quotas of all grants to the store; keys NULL: there are no access keys. Returns 0, or
 * -ENOMEM with nothing changed. */
int daemon_set_quotas(struct store *store, const struct auth_keys *keys);
/* Makes the table of used signatures; *ret_replay is NULL if auth.replay is off. Returns 0, or -errno
 * after logging it. */
int daemon_make_replay(const struct conf *conf, struct auth_replay **ret_replay);

/* ---- ready.c ---- */

/* Writes the address of a listener with its actual port: "127.0.0.1:9000". */
void daemon_listen_text(const struct conf_listen *l, int port, char *out, size_t cap);
/* Sets PHASE_SERVING and notifies the processes that wait for the daemon. Returns 0; or, after logging it,
 * an exit code of options.h if ready_file cannot be written (NULL: no file). */
int daemon_say_ready(struct daemon *d, const char *ready_file);

/* Fills in the functions of pages.c that the admin thread calls. */
void pages_env(struct daemon *d, struct admin_env *ret_env);

#endif
