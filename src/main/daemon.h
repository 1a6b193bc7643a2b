/*
 * The running daemon: start-up, the wait for signals, shutdown.  Everything here runs on the main thread; the
 * pages (pages.c) read struct daemon on the admin thread.
 */
#ifndef GANTRY_MAIN_DAEMON_H
#define GANTRY_MAIN_DAEMON_H

#include "conf/conf.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct admin;
struct admin_env;
struct auth_keys;
struct auth_replay;
struct cores;
struct rdma;
struct stats;
struct store;
struct tls_cert;

enum phase { PHASE_STARTING, PHASE_RECOVERING, PHASE_SERVING, PHASE_DRAINING, PHASE_NR };
extern const char *const phase_name[PHASE_NR];

/* The pointers are written once, by the main thread, before the phase that uses them; nothing is freed before
 * the admin thread ended. */
struct daemon {
	const struct conf *conf;
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
	struct auth_keys *keys;                  /* a reference; NULL: none */
	struct auth_replay *replay;              /* NULL: off */
};

/* Serves until a signal ends it; an exit code of options.h.  ready_file: NULL or where the ready line goes.
 */
int daemon_run(const struct conf *conf, const char *ready_file);

/* What the store is opened, made and checked with; disks has room for CONF_DISKS_MAX. */
struct store_conf;
struct store_disk_conf;
void daemon_store_conf(const struct conf *conf, struct store_disk_conf *disks, struct store_conf *ret_conf);

/* Makes the buckets of scality listeners where they are missing (buckets.c).  0, or -errno, which was logged.
 */
int daemon_make_buckets(const struct conf *conf, struct store *store);

/* The certificates of HTTPS listeners (certs.c): read; read anew, where a bad one changes nothing of its
 * listener; freed.  0, or -errno, which was logged. */
int daemon_load_certs(const struct conf *conf, struct tls_cert *certs[CONF_LISTEN_MAX]);
int daemon_reload_certs(const struct conf *conf, struct tls_cert *const certs[CONF_LISTEN_MAX]);
void daemon_free_certs(struct tls_cert *certs[CONF_LISTEN_MAX]);

/* The access keys of auth.credentials_file, a reference (NULL: there is no file), and the table of signatures
 * seen (NULL: off); access.c.  0, or -errno, which was logged. */
int daemon_load_keys(const struct conf *conf, struct auth_keys **ret_keys);
int daemon_make_replay(const struct conf *conf, struct auth_replay **ret_replay);

/* "127.0.0.1:9000" with the port it really has. */
void daemon_listen_text(const struct conf_listen *l, int port, char *out, size_t cap);

/* The functions that the admin thread asks (pages.c). */
void pages_env(struct daemon *d, struct admin_env *ret_env);

#endif
