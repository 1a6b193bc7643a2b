/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running daemon: start, the wait for signals, shutdown. All functions run on the main thread unless
 * stated otherwise; the functions of the admin pages (pages.c) read struct daemon on the admin thread.
 */
#ifndef GANTRY_MAIN_DAEMON_H
#define GANTRY_MAIN_DAEMON_H

#include "admin/admin.h"
#include "conf/conf.h"
#include "walk/walks.h"

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

/* Indices of certificates: those of listeners are the indices in struct conf, the last one is that of
 * admin.address. */
#define CERT_OF_ADMIN CONF_LISTEN_MAX
#define DAEMON_CERTS (CONF_LISTEN_MAX + 1)

/* State of the checks whether the space, or the index, of a disk or pool is full. With this state a reason of
 * health stays until a later check, so that the reason does not come and go. */
struct health_fill {
	bool is_full;
	/* value, at the last check, of the count of writes that the store has refused for lack of room */
	uint64_t refused;
	/* clock_ns() of the last check at which `refused` had grown; 0: it has never grown */
	uint64_t refused_ns;
};
/* State of health.c for a disk or pool. object: UUID of the disk, or name of the pool. */
struct health_unit {
	char object[64];
	struct health_fill space, index;
};

/* The state of the daemon. The main thread sets each pointer once, before the phase that uses it, and frees
 * the objects after the admin thread has ended. */
struct daemon {
	const struct conf *conf; /* first configuration, which is used for keys that need a restart */
	const struct conf_source *source;
	_Atomic int phase;
	uint64_t started_ns; /* time of clock_ns() at the start of the daemon */
	struct rdma *rdma;
	struct stats *stats;
	_Atomic(struct store *) store;
	_Atomic(struct cores *) cores;
	struct admin *admin;
	_Atomic bool admin_listens;
	int listen_fds[CONF_LISTEN_MAX];
	struct tls_cert *certs[DAEMON_CERTS]; /* an element is NULL for plain HTTP */
	/* a reference to the access keys, replaced by reload.c after the start, under conf_lock; NULL: there are
	 * none */
	struct auth_keys *keys;
	_Atomic int key_nr;         /* number of access keys */
	struct auth_replay *replay; /* table of used signatures; NULL: auth.replay is off */

	/* state of reload.c */
	pthread_mutex_t conf_lock; /* protects conf_now and keys */
	/* a reference to the configuration in use; daemon_conf() takes another one for its caller */
	const struct conf *conf_now;
	pthread_mutex_t reload_lock; /* allows one reload at a time */
	_Atomic int reloads_running; /* reloads started by SIGHUP */
	/* reload_failures: number of failed reloads; reloaded_ns: wall clock of the last successful reload;
	 * without a reload, of the start */
	_Atomic uint64_t reload_failures, reloaded_ns;
	_Atomic int restart_pending; /* number of keys that were changed since the start and need a restart */
	/* Names of these keys, separated by ", "; protected by conf_lock. */
	char restart_keys[1024];
	char reload_why[512]; /* why the last reload failed; empty: it did not; protected by conf_lock */
	_Atomic bool drained; /* true: an operator drains the daemon by a control call */

	struct health_unit unit_health[HEALTH_UNITS_MAX]; /* state of health.c */
	struct remember *remember;                        /* state of remember.c; set by start_store() */
	/* state of rescan.c; owned by the main thread */
	enum { RESCAN_UNKNOWN, RESCAN_RUNS, RESCAN_OVER } rescan;
};

/* Runs the daemon until a signal ends it. source: origin of conf, for reloads. ready_file: path of the file
 * to which the ready line is written; NULL: no file. Returns an exit code of options.h. */
int daemon_run(const struct conf *conf, const struct conf_source *source, const char *ready_file);

/* ---- reload.c ---- */

/* Returns a reference to the configuration in use, which the caller releases with daemon_conf_put(). Any
 * thread may call this function. */
const struct conf *daemon_conf(struct daemon *d);
void daemon_conf_put(const struct conf *c);
void daemon_log_levels(const struct conf *c);
/* Reads the bearer token of admin.token_file into token; an empty text if no token file is configured.
 * Returns 0, or -EINVAL after writing the reason to err. */
int daemon_read_token(const struct conf *c, char token[ADMIN_TOKEN_MAX + 2], FILE *err);
/* Reads the configuration again, and applies all of it or, after an error, nothing. Writes the answer of the
 * control call as JSON, and returns its HTTP status. Blocks while it reads files. Called by any thread except
 * a core. */
int daemon_reload(struct daemon *d, FILE *out);
/* Writes to out why the files on disk are not in use: the reason of the last reload that failed. Returns false if the last
 * reload, or the start, has used them. */
bool daemon_reload_failed(struct daemon *d, char *out, size_t cap);
/* Writes to out, as a JSON object, why the files on disk are not in use, and the keys that need a restart. */
void daemon_reload_show(struct daemon *d, FILE *out);
/* Runs daemon_reload() on a thread of its own. */
void daemon_reload_begin(struct daemon *d);
/* Waits until all running reloads have ended. */
void daemon_reload_wait(struct daemon *d);

/* ---- audit.c: the audit stream ---- */

struct auth_keys;
struct stats_out;
/* Begins or ends the audit stream, or changes its settings. Called at the start and by each reload. */
void daemon_audit(const struct conf *conf);
/* Waits at most two seconds until all records are written, and ends the stream. */
void daemon_audit_stop(void);
/* Writes a record for each access key that a reload has added, removed or changed; NULL: there are no
 * keys. */
void daemon_audit_keys(const struct auth_keys *old, const struct auth_keys *new);
/* Adds a reason of health if records are lost or wait. */
void daemon_audit_health(struct admin_reasons *r);
void daemon_audit_metrics(struct stats_out *out);
/* Runs POST /control/trace/live. */
int audit_trace_live(void *cookie, const struct admin_args *args, FILE *out);

/* ---- sockets.c ---- */

/* Sets listen_fds to the sockets that systemd has passed to this process; -1: a listener has none. */
void daemon_take_sockets(struct daemon *d);

/* ---- state.c ---- */

/* Writes to out the path of a file in store.state_dir, made from `name` and the real path of the
 * configuration file, so that daemons with different configuration files use different files. Returns 0;
 * -ENOENT: store.state_dir is not set or does not exist; -ENAMETOOLONG. */
int daemon_state_path(const struct conf *conf, const struct conf_source *source, const char *name, char *out,
		      size_t cap);

/* Finds the owner of store.state_dir, who is the user of the daemon, and writes the directory to dir. Returns 0; -ENOENT:
 * there is no such directory. */
int daemon_state_owner(const struct conf *conf, char *dir, size_t cap, uid_t *ret_uid, gid_t *ret_gid);
/* Does the work that is due once a second. Called by the main thread while the daemon serves. */
void daemon_look(struct daemon *d);
/* Waits for work that daemon_look() has begun, and frees its state. Called before the store is stopped. */
void daemon_look_end(struct daemon *d);

/* ---- seen.c: the capacity of the store, its largest buckets ---- */

struct stats_out;
/* Takes a sample of the usage, and begins to read attributes of the largest buckets if the page asked for
 * them. Called by daemon_look(). */
void seen_look(struct daemon *d);
/* Waits until the reading of attributes has ended. */
void seen_end(void);
void seen_metrics(struct daemon *d, struct stats_out *out);
/* Writes the host's name and the capacity as members of a JSON object, beginning with a comma. */
void seen_status(struct daemon *d, FILE *out);
/* Writes the identity of the store as a JSON text: UUID, or pools and namespace; null: there is no store. */
void seen_store_id(struct daemon *d, FILE *out);
/* Writes the JSON value of /buckets: the number of buckets, and the largest of them. */
void seen_buckets(void *cookie, FILE *out);

/* ---- rescan.c: the scrub after a repair ---- */

/* Makes the next start begin a scrub, and writes to out whether this was possible. */
void rescan_want(const struct conf *conf, const struct conf_source *source, FILE *out);
/* Begins the scrub that a repair has asked for, and forgets it after its end. Called by daemon_look(). */
void rescan_look(struct daemon *d);

struct admin_reasons;
/* ---- remember.c: the record of the store outside of its disks (store/record.h) ---- */

struct store_conf;
struct store_disk_conf;
struct store_record;
/* Reads the record of this configuration file into *ret_m, which remember_free() frees. Returns 0, also if
 * there is no record or no store.state_dir; or -errno, with a sentence in err, if the record is damaged or
 * unreadable. After such an error *ret_m can be used as if there were no record; it is NULL only with
 * -ENOMEM. */
int remember_open(const struct conf *conf, const struct conf_source *source, struct remember **ret_m,
		  char *err, size_t err_len);
/* Fills in *ret_conf with the configuration of the store (daemon_store_conf()) and with the record. An
 * unreadable record counts as absent, and is logged with the way to repair it. Returns 0, and *ret_m, which
 * remember_free() frees; or -errno with the reason in err, and *ret_m is NULL. */
int remember_store_conf(const struct conf *conf, const struct conf_source *source,
			struct store_disk_conf *disks, struct store_conf *ret_conf, struct remember **ret_m,
			char *err, size_t err_len);
/* Appends the remedies to the message of a start that has failed because the disks belong to another store
 * than the record. error: result of the start; for an error other than -EXDEV nothing is appended. */
void remember_way_out(const struct remember *m, int error, char *out, size_t cap);
/* Waits for a write in progress, then frees m. NULL is allowed. */
void remember_free(struct remember *m);
/* Returns the record of the store; NULL: there is no record. */
const struct store_record *remember_known(const struct remember *m);
/* Returns true if the last write of the record succeeded, so that the file is current. */
bool remember_keeps(struct remember *m);
/* Returns the path of the record's file; an empty text if there is no store.state_dir. */
const char *remember_file(const struct remember *m);
/* Writes the record of the running store (remember_store()), or of a store that was just formatted
 * (remember_made()), to its file. Returns 0, also if there is no store.state_dir; or -errno with a sentence
 * in err. Blocks. */
int remember_store(struct remember *m, const struct store *st, char *err, size_t err_len);
int remember_made(struct remember *m, const struct store_record *made, char *err, size_t err_len);
/* Adds a disk to the record before the disk becomes a member of the store, so that a start after a kill finds
 * it. The record keeps the disk until remember_joined(); a start ignores a recorded disk that has not become
 * a member. Any thread may call this function; a failure is logged. */
void remember_joins(struct remember *m, const uint8_t uuid[UUID_BYTES], uint64_t size_bytes,
		    const char *path);
/* Ends the effect of remember_joins(): from now on the record has only the members of the store. */
void remember_joined(struct remember *m);
/* Removes from the record nr disks that the operator has given up, and writes the record. Returns 0, also if
 * there is no store.state_dir; or -errno with a sentence in err. Blocks. */
int remember_less(struct remember *m, const uint8_t (*uuid)[UUID_BYTES], int nr, char *err, size_t err_len);
/* Writes to out a line for each disk of the record that the configuration does not name, and one for each
 * disk that shares a file system with the record. */
void remember_notes(const struct remember *m, const struct conf *conf, FILE *out);
/* Writes the record of the store that has just started, and logs a failure. */
void remember_start(struct daemon *d);
/* Checks whether the members of the running store have changed; if they have, writes the record again on a
 * separate thread. Called by the main thread once a second. */
void remember_look(struct daemon *d);
/* Stores which disks a configuration names. Called at the start and for each reload. */
void remember_named(struct remember *m, const struct conf *conf);
/* Returns true if the last configuration that was read names exactly the disks of the running store. */
bool remember_names_all(struct remember *m, const struct store *st);
/* Writes to out the line by which store.disks names a disk. */
void remember_line(const char *path, uint64_t size_bytes, char *out, size_t cap);
/* Adds reasons of health: disks that serve without a line in the configuration file, and a record that
 * cannot be written. */
void remember_health(struct daemon *d, struct admin_reasons *r);
/* Writes the state of the record as a JSON object. */
void remember_show(const struct remember *m, const struct conf *conf, FILE *out);

/* ---- below.c: devices and file systems below the disks ---- */

/* Waits, at most the time store.wait_for_disks, until absent devices appear, and until directories that had a
 * store according to the record of the store (store/record.h) have one again. Does not wait for a disk that
 * may be missing according to store.accept_missing. Then logs the disks that share a device or file
 * system. */
void below_wait(struct daemon *d, const struct store_conf *sc);
/* Writes to text a sentence about disks that share a device or file system. Returns false if no two disks
 * do. */
bool below_shared(const struct conf *conf, char *text, size_t len);
/* Finds out which disks of the running store share a device or file system, and stores the result for
 * below_health(). Blocks. */
void below_look(const struct store *st);
/* Adds a reason of health if disks share a device or file system and a bucket has two copies. st NULL: the
 * store is not open yet. */
void below_health(const struct store *st, struct admin_reasons *r);
/* Checks that this user may write where --format would make the disks. Returns 0, or -EROFS with a sentence
 * in err. */
int below_check_writable(const struct conf *conf, char *err, size_t err_len);
/* Checks that the path of a new disk is not in the directory of another disk, unless something is mounted
 * in between. Returns 0, or -EINVAL with a sentence in err. */
int below_check_inside(const char *path, const char *other, char *err, size_t err_len);
/* Checks that each file system has room for all new disks on it. Returns 0, or -ENOSPC with a sentence in
 * err. */
int below_check_room(const struct conf *conf, char *err, size_t err_len);

/* ---- format.c ---- */
struct options;
/* Formats the disks of a new store (--format). Returns an exit code of options.h. */
int format_store(const struct options *o, const struct conf *conf, const struct conf_source *source);

/* ---- health.c: functions of struct admin_env ---- */
void health_ready(void *cookie, struct admin_reasons *r);
void health_reasons(void *cookie, struct admin_reasons *r);
struct store_unit_info;
/* Writes to out a sentence about how long the writes of a disk, or the operations of a pool, have waited.
 * Returns true if the wait is a reason of health. */
bool health_waits(const struct store_unit_info *info, bool is_pool, char *out, size_t cap);

/* ---- admin_start.c ---- */
/* Starts the admin thread, if an address or a socket is configured. Returns an exit code of options.h, after
 * logging the error. */
int daemon_start_admin(struct daemon *d);

/* ---- control.c ---- */
void control_env(struct admin_env *env);

/* ---- disks.c: POST /control/disk/... ---- */
struct admin_args;
int disks_drain(void *cookie, const struct admin_args *args, FILE *out);
int disks_add(void *cookie, const struct admin_args *args, FILE *out);
int disks_cancel(void *cookie, const struct admin_args *args, FILE *out);
/* Writes the state of the current drain or addition of a disk as JSON. */
void disks_show_move(void *cookie, FILE *out);
/* Adds a disk to a store that is stopped (--add). Returns an exit code of options.h. */
int disks_add_stopped(const struct conf *conf, const struct conf_source *source, const char *path,
		      bool force);

/* ---- copies.c: keys with two copies ---- */

struct admin_reasons;
struct stats_out;
/* Adds the problems of keys with two copies to the reasons of health. st NULL: the store is not open yet. */
void copies_health(const struct store *st, struct admin_reasons *r);
void copies_metrics(const struct store *st, struct stats_out *out);
/* Writes the state of keys with two copies as a further member of a JSON object, beginning with a comma;
 * writes nothing if no bucket has two copies. */
void copies_show(const struct store *st, FILE *out);

/* ---- bucket_control.c: POST /control/bucket ---- */

struct store_quota_info;
struct bucket_rules;
int control_bucket(void *cookie, const struct admin_args *args, FILE *out);
/* Writes a quota and its usage as a JSON object. rules: rules of the bucket; NULL: unknown. */
void control_quota(const struct store_quota_info *q, const struct bucket_rules *rules, FILE *out);

/* Fills in *ret_conf, with which the store is opened, formatted and checked. disks: array of CONF_DISKS_MAX
 * elements, to which *ret_conf then points. Returns 0, or -errno with the reason in err: the module of the
 * back end is missing, or was built for another version of the daemon. */
int daemon_store_conf(const struct conf *conf, struct store_disk_conf *disks, struct store_conf *ret_conf,
		      char *err, size_t err_len);
/* Returns the number of ports attached at a time to a store on disks: one for each core, one for
 * buckets.c, one for seen.c, and two for the rebalancer (set/disk_admin.c). */
static inline int
daemon_store_ports(const struct conf *conf)
{
	return conf->core_nr + 4;
}

/* Creates the buckets of scality listeners that do not exist yet (buckets.c). Returns 0, or the -errno of the
 * store after logging it. */
int daemon_make_buckets(const struct conf *conf, struct store *store);

struct store_use;
/* Sets the quota of a bucket; max: the limits. Called by any thread except a core; blocks. Returns 0 or the
 * -errno of the store. */
int daemon_set_bucket_quota(struct store *store, const char *name, const struct store_use *max);
/* Sets the lifecycle rule of LIFECYCLE_EXPIRE_ID (s3doc/lifecycle.h) of a bucket; days 0: removes it. Called by any thread
 * except a core; blocks. Returns 0 or the -errno of the store; -E2BIG: the bucket has too many rules; -EINVAL: the rules of
 * the bucket are damaged. */
int daemon_set_bucket_expiry(struct store *store, const char *name, uint32_t days);
/* Rules for the objects of a bucket. */
struct bucket_rules {
	unsigned copies;      /* number of copies of each object; 0: unknown */
	uint32_t expire_days; /* days of the lifecycle rule of LIFECYCLE_EXPIRE_ID; 0: no such rule */
	int other_rules;      /* number of lifecycle rules apart from it */
};
/* Reads the rules of a bucket; unknown ones are 0. Called by any thread except a core; blocks. */
void daemon_bucket_rules(struct store *store, const char *name, struct bucket_rules *ret_rules);

/* Loads the certificates of HTTPS listeners (certs.c). Returns 0, or -errno after logging it. */
int daemon_load_certs(const struct conf *conf, struct tls_cert *certs[DAEMON_CERTS]);
/* Checks the certificates that a reload would read. Returns 0, or -EINVAL after writing a line for each invalid
 * one to err. */
int daemon_check_certs(const struct conf *conf, struct tls_cert *const certs[DAEMON_CERTS], FILE *err);
/* Reads the certificates of HTTPS listeners again. A listener whose new certificate is invalid keeps its old
 * one. Returns 0; or -errno of an invalid certificate, after logging it. */
int daemon_reload_certs(const struct conf *conf, struct tls_cert *const certs[DAEMON_CERTS]);
/* Frees the certificates. */
void daemon_free_certs(struct tls_cert *certs[DAEMON_CERTS]);
/* Adds a reason of health for each certificate that has expired, expires soon or is not valid yet. */
void certs_health(struct daemon *d, struct admin_reasons *r);
void certs_metrics(struct daemon *d, struct stats_out *out);
/* Writes two further members of a JSON object about the listener with the index i of a certificate: whether it
 * uses HTTPS, and its certificate (null: none). */
void certs_show(struct daemon *d, int i, FILE *out);

/* Loads the access keys of auth.credentials_file (access.c). *ret_keys is NULL if no file is configured, or
 * if the file does not exist, which is logged. Returns 0, or -errno after logging it. */
int daemon_load_keys(const struct conf *conf, struct auth_keys **ret_keys);
/* Creates auth.credentials_file with one access key, and prints the key (--format). Does nothing if the file
 * exists or no file is configured. Returns 0, or -errno after printing the reason. */
int daemon_first_key(const struct conf *conf);
/* Applies the quotas of all grants to the store; keys NULL: there are no access keys. Returns 0, or
 * -ENOMEM with nothing changed. */
int daemon_set_quotas(struct store *store, const struct auth_keys *keys);
/* Replaces the access keys in use (keys.c). Returns the previous keys, whose reference the caller then has. */
struct auth_keys *daemon_use_keys(struct daemon *d, struct auth_keys *keys);
/* Writes the last use of each secret as JSON: the control call /control/keys. Returns the HTTP status. */
int control_keys(void *cookie, const struct admin_args *args, FILE *out);
/* Makes the table of used signatures; *ret_replay is NULL if auth.replay is off. Returns 0, or -errno
 * after logging it. */
int daemon_make_replay(const struct conf *conf, struct auth_replay **ret_replay);

/* ---- ready.c ---- */

/* Writes the address of a listener with its actual port: "127.0.0.1:9000". */
void daemon_listen_text(const struct conf_listen *l, int port, char *out, size_t cap);
/* Sets PHASE_SERVING, tells the service manager that the daemon is ready, and writes the ready line to the
 * log and to ready_file (NULL: no file). Returns 0; or an exit code of options.h, after logging the error. */
int daemon_say_ready(struct daemon *d, const char *ready_file);

/* Fills in the functions of pages.c that the admin thread calls. */
/* Writes the state of a walk as a JSON object. */
void pages_walk(struct daemon *d, enum walk_id id, FILE *out);
void pages_env(struct daemon *d, struct admin_env *ret_env);

#endif
