/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin thread: health, metrics and state over HTTP or HTTPS on a TCP address, and over HTTP on a Unix
 * socket (mode 0600), or on one of them.
 *
 *   GET /livez /readyz   200, or 503 with the reasons (JSON)
 *   GET /healthz         200 for "ok" and "degraded", 503 for "unavailable", the status while
 *                 /readyz is 503; aliases /health, /health/live, /health/ready, /minio/health/live,
 *                 /minio/health/ready, /minio/health/cluster
 *   GET /metrics  Prometheus text
 *   GET /         the status page (HTML)
 *   GET /runbook  docs/runbook.md
 *   GET /events   the latest declines and errors (JSON)
 *   GET /status /rails /rails/ADDRESS /disks /quotas /buckets /requests /requests/ID /config    JSON
 *   POST /control/...             over the Unix socket, or with the bearer token; main defines the calls
 *
 * With a bearer token, a TCP address that is not a loopback address needs the token for all pages except those
 * of health. A GET may have the token as the password of Basic authorization, because browsers ask for no other;
 * a POST may not, because browsers send this password with requests of other sites' pages.
 *
 * The TCP address and the Unix socket each have their own limit of connections. A request must arrive within
 * 5 s. If a new connection exceeds the limit, a connection with an incomplete request is closed.
 *
 * The thread waits for no core, so it answers also while a core is stuck, and reports the stuck core. The
 * thread gets its data through struct admin_env, which main/ fills in; admin/ includes no code of the cores.
 * No page shows object keys, tokens, signatures or secrets.
 */
#ifndef GANTRY_ADMIN_ADMIN_H
#define GANTRY_ADMIN_ADMIN_H

#include "conf/conf.h"
#include "stats/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct admin;
struct admin_closed;
struct admin_reasons;
struct tls_cert;

/* If the loop of an awake core has made no turn for this time in ns, the core counts as stuck, and the daemon
 * is not ready. */
#define ADMIN_STUCK_NS 1000000000ull
/* If the loop of a core has made no turn for this time in ns, the core counts as dead, and /livez is 503, so
 * that a supervisor restarts the daemon. */
#define ADMIN_DEAD_NS 10000000000ull

struct admin_core {
	bool asleep;            /* the core waits for work */
	uint64_t turned_ago_ns; /* time in ns since the last turn of the core's loop */
};

#define ADMIN_ARGS_MAX 8
#define ADMIN_TOKEN_MAX 255

/* The arguments of a control call as texts: the members of its JSON body and its query. */
struct admin_args {
	int nr;
	struct {
		char name[24], value[256];
	} arg[ADMIN_ARGS_MAX];
};
/* Returns the value of an argument; NULL if it was not given. */
const char *admin_arg(const struct admin_args *args, const char *name);

/*
 * The thread that runs a control call. CONTROL_AT_ONCE: the admin thread, immediately. Each other value is a
 * thread of its own, which runs one call at a time. CONTROL_SLOW: for calls that take too long for the admin
 * thread. CONTROL_DISKS: for calls that change disks, because formatting a disk takes minutes. CONTROL_WAIT:
 * for calls that wait for work to end.
 */
enum control_lane { CONTROL_AT_ONCE, CONTROL_SLOW, CONTROL_DISKS, CONTROL_WAIT, CONTROL_LANE_NR };

struct admin_control {
	const char *path; /* path of the call, such as "/control/drain"; NULL: there is no such call */
	/* names of the allowed arguments, separated by blanks; "": no argument is allowed */
	const char *args;
	enum control_lane lane;
	/* Runs the call, and writes one JSON value. Returns the HTTP status. Called only for authorized
	 * clients. */
	int (*post)(void *cookie, const struct admin_args *args, FILE *out);
	/* writes the answer to a GET of the path, which needs no authorization; NULL: a GET is answered with
	 * 405 */
	void (*get)(void *cookie, FILE *out);
	/* true: the call changes nothing, and the audit stream has no record of it */
	bool is_quiet;
};

/* The data and functions that the pages use; main/ provides them. All functions are called on the admin
 * thread, and must not block for long. A function may be NULL: then its page is 404, and the pages of health
 * get no reason from it. */
struct admin_env {
	void *cookie;
	const struct conf *conf;   /* the configuration that /config shows if config() is NULL; NULL: none */
	const struct stats *stats; /* the counters that /metrics shows; NULL: /metrics shows only the
	                            * result of metrics() */
	int (*core_nr)(void *cookie);
	void (*core)(void *cookie, int core, struct admin_core *ret_core);
	/* ready() calls admin_reason() for each reason why the daemon is not ready, health() for each other
	 * reason why it is not healthy. admin/ itself adds the stuck cores. admin_show_health() calls both
	 * functions on the thread of its caller; two threads never call them at the same time. */
	void (*ready)(void *cookie, struct admin_reasons *r);
	void (*health)(void *cookie, struct admin_reasons *r);
	/* Adds the metrics of rails, disks and buffers, which stats/ does not have. */
	stats_collect_fn metrics;
	/* Writes the JSON value of the page /status. rails(), disks(), quotas(), requests() and config()
	 * write those of /rails, /disks, /quotas, /requests and /config. */
	void (*status)(void *cookie, FILE *out);
	void (*rails)(void *cookie, FILE *out);
	/* Writes the JSON value of /rails/ADDRESS: whether tokens may name the address, and the rail that
	 * reaches the address. Returns the HTTP status; nothing is written unless it is 200. */
	int (*reach)(void *cookie, const char *address, FILE *out);
	void (*disks)(void *cookie, FILE *out);
	void (*quotas)(void *cookie, FILE *out);
	/* Writes the JSON value of /buckets: the number of buckets, and the largest of them. */
	void (*buckets)(void *cookie, FILE *out);
	void (*requests)(void *cookie, FILE *out);
	/* Writes the JSON value of /requests/ID, about one request. Returns the HTTP status; nothing is
	 * written unless it is 200. */
	int (*request)(void *cookie, const char *id, FILE *out);
	void (*config)(void *cookie, FILE *out);
	const struct admin_control *controls;
	int control_nr;
	const struct admin_closed *closed; /* set by admin/: the numbers of connections that it closed */
	struct admin_health *reasons;      /* set by admin/: begin and mute of each reason of health */
};

/* Parameters of admin_start(): addresses of the listeners, and the rules for control calls. address NULL: no
 * TCP listener; socket NULL: no Unix socket. */
struct admin_params {
	const char *address; /* text of the TCP address, for messages */
	const struct sockaddr_storage *sa;
	socklen_t sa_len;
	/* certificate of the TCP address, which the caller frees after admin_stop(); NULL: plain HTTP */
	struct tls_cert *cert;
	const char *socket;
	/* bearer token; NULL: control calls are accepted on the Unix socket only, and pages need no token */
	const char *token;
	/* Settings with the domains (s3.domain) that a Host field may name if the TCP address is a loopback
	 * address; the caller keeps them. NULL: no domains. */
	const struct conf_s3 *s3;
};

/* Starts the listeners and the thread. Copies *env; the caller keeps the objects to which it points. Returns
 * 0, or -errno with the reason in err; -EADDRINUSE, -EADDRNOTAVAIL, -EACCES or -ENOENT if the address or the
 * path of the socket cannot be used. */
int admin_start(const struct admin_params *params, const struct admin_env *env, struct admin **ret_admin,
		char *err, size_t err_len);
/* Returns the TCP port: the configured one, or the one that the kernel chose if the configured port is 0.
 * Returns 0 if there is no TCP listener. Any thread may call this function. */
int admin_port(const struct admin *a);
/* Replaces the bearer token; NULL: control calls are accepted on the Unix socket only, and pages need no
 * token. Any thread may call this function. */
void admin_set_token(struct admin *a, const char *token);
/* Ends the thread and removes the socket. NULL is allowed. */
void admin_stop(struct admin *a);

/* ---- health ---- */

enum admin_reason_id {
#define REASON(id, ...) REASON_##id,
#include "admin/reason.def"
#undef REASON
	REASON_NR
};
/* Adds a reason, whose text is formatted as by printf(). object: name of the affected disk, rail or listener;
 * "": the whole daemon. */
void admin_reason(struct admin_reasons *r, enum admin_reason_id id, const char *object, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Mutes all reasons of health whose code is `code`. The mute ends after for_s seconds; for_s 0: the mute ends
 * now. A muted reason is still shown, but no longer makes the status "degraded"; a reason of "unavailable"
 * still does. The mute is stored in the file of admin_keep_mutes(). Returns 0; -ENOENT: there is no such
 * code; another -errno: the file could not be written, and the mute ends when the process does. Any thread
 * may call this function, which blocks while the file is written. */
int admin_mute(struct admin *a, const char *code, uint64_t for_s);
/* Sets the file in which mutes are stored, and reads it. Called before requests arrive. Returns 0, also if
 * the file does not exist; the -errno of opening it; or -ENOMEM. */
int admin_keep_mutes(struct admin *a, const char *path);
/* Writes the codes of all reasons of health, separated by commas. */
void admin_show_codes(FILE *out);
/* Writes the answer to GET /healthz. Any thread may call this function. */
void admin_show_health(struct admin *a, FILE *out);

/* ---- for the functions that write JSON ---- */

/* Writes text as a JSON string, with question marks in place of bytes that are not UTF-8. text NULL: writes
 * null. */
void json_string(FILE *out, const char *text);

#endif
