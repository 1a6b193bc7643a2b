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
struct stats;
struct store;
struct tls_cert;

enum daemon_phase {
	PHASE_STARTING,
	PHASE_RECOVERING,
	PHASE_CLUSTER,
	PHASE_SERVING,
	PHASE_DRAINING,
	PHASE_NR
};
extern const char *const phase_name[PHASE_NR];

/* The pointers are written once, by the main thread, before the phase that uses them; nothing is freed before
 * the admin thread ended. */
struct daemon {
	const struct conf *conf; /* the first one, which stays: good for what needs a restart */
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
	struct auth_keys *keys;                  /* a reference; NULL: none; reload.c's after the start */
	_Atomic int key_nr;                      /* how many are in it */
	struct auth_replay *replay;              /* NULL: off */

	/* reload.c's */
	pthread_mutex_t conf_lock;                     /* of conf_now */
	const struct conf *conf_now;                   /* a reference; daemon_conf() */
	pthread_mutex_t reload_lock;                   /* one at a time */
	_Atomic int reloads_running;                   /* by SIGHUP */
	_Atomic uint64_t reload_failures, reloaded_ns; /* wall clock of the last good one, or of the start */
	_Atomic int restart_pending;                   /* keys that were changed and need a restart */
	_Atomic bool drained;                          /* on request */
};

/* Serves until a signal ends it; an exit code of options.h.  source: where conf came from, for reloads.
 * ready_file: NULL or where the ready line goes. */
int daemon_run(const struct conf *conf, const struct conf_source *source, const char *ready_file);

/* ---- reload.c ---- */

/* Takes a reference to the configuration in use, for daemon_conf_put().  Any thread. */
const struct conf *daemon_conf(struct daemon *d);
void daemon_conf_put(const struct conf *c);
void daemon_log_levels(const struct conf *c);
/* Reads the bearer into token; empty when there is no admin.token_file.  0 or -EINVAL, the reason in err. */
int daemon_read_token(const struct conf *c, char token[ADMIN_TOKEN_MAX + 2], FILE *err);
/* Reads the configuration anew, and takes it or nothing of it; writes the answer as JSON and returns its HTTP
 * status.  Blocks while files are read; any thread but a core's. */
int daemon_reload(struct daemon *d, FILE *out);
/* Reloads on a thread of its own. */
void daemon_reload_begin(struct daemon *d);
/* Waits for the reloads that were begun. */
void daemon_reload_wait(struct daemon *d);

/* ---- control.c ---- */
void control_env(struct admin_env *env);
/* Writes what the scrub does and has found, as a JSON object. */
void control_scrub_state(struct daemon *d, FILE *out);

/* ---- disks.c: POST /control/disk/... ---- */
struct admin_args;
int disks_drain(void *cookie, const struct admin_args *args, FILE *out);
int disks_add(void *cookie, const struct admin_args *args, FILE *out);
int disks_cancel(void *cookie, const struct admin_args *args, FILE *out);
/* Shows what is being moved. */
void disks_show_move(void *cookie, FILE *out);
/* Adds a disk to a store that does not run (--add); an exit code. */
int disks_add_stopped(const struct conf *conf, const char *path, bool force);

/* ---- copies.c: of keys with two copies ---- */

struct admin_reasons;
struct stats_out;
/* Adds why not all is well with them; st NULL: there is no store yet. */
void copies_health(const struct store *st, struct admin_reasons *r);
void copies_metrics(const struct store *st, struct stats_out *out);
/* Writes what is known as one more member of a JSON object; nothing where no bucket has two copies. */
void copies_show(const struct store *st, FILE *out);

struct store_quota_info;
/* Writes a quota and what counts towards it, as a JSON object.  copies: of the bucket; 0: not known. */
void control_quota(const struct store_quota_info *q, unsigned copies, FILE *out);

/* What the store is opened, made and checked with; disks has room for CONF_DISKS_MAX. */
struct store_conf;
struct store_disk_conf;
/* Fills it.  0, or -errno with the reason in err: the module of the back end is not there, or not this daemon's. */
int daemon_store_conf(const struct conf *conf, struct store_disk_conf *disks, struct store_conf *ret_conf,
		      char *err, size_t err_len);
/* Returns how many ports are attached to a store on disks at once: the cores', that of buckets.c, and two of who moves what is on disks
 * (set/disk_admin.c). */
static inline int
daemon_store_ports(const struct conf *conf)
{
	return conf->core_nr + 3;
}

/* Loads the module of the store on RADOS (backend.c), once, and fills the configuration for it.  As
 * daemon_store_conf(). */
int rados_store_conf(const struct conf *conf, struct store_conf *ret_conf, char *err, size_t err_len);

/* Makes the buckets of scality listeners where they are missing (buckets.c).
 * 0, or -errno, which was logged. */
int daemon_make_buckets(const struct conf *conf, struct store *store);

struct store_use;
/* Sets a bucket's own bound.  Any thread but a core's; blocks.  0 or -errno. */
int daemon_set_bucket_quota(struct store *store, const char *name, const struct store_use *max);
/* Returns on how many disks each object of a bucket is; 0: that cannot be said.  Any thread but a core's; blocks. */
unsigned daemon_bucket_copies(struct store *store, const char *name);

/* Loads the certificates of HTTPS listeners (certs.c).  0, or -errno, which was logged. */
int daemon_load_certs(const struct conf *conf, struct tls_cert *certs[CONF_LISTEN_MAX]);
/* Reads the certificates anew; a bad one changes nothing of its listener.  0, or -errno, which was logged. */
int daemon_reload_certs(const struct conf *conf, struct tls_cert *const certs[CONF_LISTEN_MAX]);
/* Frees the certificates. */
void daemon_free_certs(struct tls_cert *certs[CONF_LISTEN_MAX]);

/* Loads the access keys of auth.credentials_file (access.c); NULL: there is no file, which is told where one is named.  0, or
 * -errno, which was logged. */
int daemon_load_keys(const struct conf *conf, struct auth_keys **ret_keys);
/* Makes the first access key (--format) where auth.credentials_file is set and not there, and shows it.  0, or -errno,
 * which was said. */
int daemon_first_key(const struct conf *conf);
/* Has the store heed the quotas of grants; keys NULL: there are none.  0 or -errno (then nothing has changed). */
int daemon_set_quotas(struct store *store, const struct auth_keys *keys);
/* Makes the table of signatures seen; NULL: auth.replay is off.  0, or -errno, which was logged. */
int daemon_make_replay(const struct conf *conf, struct auth_replay **ret_replay);

/* ---- ready.c ---- */

/* Prints "127.0.0.1:9000", with the port that it really has. */
void daemon_listen_text(const struct conf_listen *l, int port, char *out, size_t cap);
/* Sets PHASE_SERVING and tells whoever waits for it.  0, or an exit code of options.h: ready_file
 * (NULL: none) cannot be written; logged. */
int daemon_say_ready(struct daemon *d, const char *ready_file);

/* Fills in the functions that the admin thread asks (pages.c). */
void pages_env(struct daemon *d, struct admin_env *ret_env);

#endif
