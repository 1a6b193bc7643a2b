/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin thread: health, metrics and state over plain HTTP, on a TCP address and/or a Unix socket (mode
 * 0600).
 *
 *   GET /livez /readyz   200, or 503 with the reasons (JSON)
 *   GET /healthz         200 for "ok" and "degraded", 503 for "unavailable", which holds while
 *                 /readyz is 503; aliases /health, /health/live, /health/ready, /minio/health/live,
 *                 /minio/health/ready, /minio/health/cluster
 *   GET /metrics  Prometheus text
 *   GET /         the status page (HTML)
 *   GET /events   the latest declines and errors (JSON)
 *   GET /status /rails /rails/ADDRESS /disks /quotas /requests /requests/ID /config    JSON
 *   POST /control/...             over the Unix socket, or with the bearer token; main defines the calls
 *
 * The TCP address and the socket each have connections of their own. A request must arrive within 5 s; if
 * there are too many connections, one with an incomplete request is closed.
 *
 * The thread waits for no core, so it answers when a core is stuck, and reports that. It gets its data through
 * struct admin_env, which main/ fills in, and includes no code of the cores. No page shows keys of objects,
 * tokens, signatures or secrets.
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

/* Time after which a core that is awake and whose loop does not turn counts as stuck: it is neither ready
 * nor healthy. */
#define ADMIN_STUCK_NS 1000000000ull
/* Time after which a stuck core counts as not alive: a supervisor should restart the daemon. */
#define ADMIN_DEAD_NS 10000000000ull

struct admin_core {
	bool asleep;            /* the core waits for work */
	uint64_t turned_ago_ns; /* time since the last turn of the core's loop */
};

#define ADMIN_ARGS_MAX 8
#define ADMIN_TOKEN_MAX 255

/* The arguments of a control call, from its JSON object and its query, as texts. */
struct admin_args {
	int nr;
	struct {
		char name[24], value[256];
	} arg[ADMIN_ARGS_MAX];
};
/* Returns the value of an argument; NULL if it was not given. */
const char *admin_arg(const struct admin_args *args, const char *name);

/*
 * The thread that runs a control call. CONTROL_AT_ONCE: the admin thread, immediately. CONTROL_SLOW: a
 * thread for calls that may take longer than a page, one at a time. CONTROL_DISKS: a thread for calls that
 * change disks, because formatting a disk takes minutes. CONTROL_WAIT: a thread for calls that wait for work
 * to end.
 */
enum control_lane { CONTROL_AT_ONCE, CONTROL_SLOW, CONTROL_DISKS, CONTROL_WAIT, CONTROL_LANE_NR };

struct admin_control {
	const char *path; /* "/control/drain" */
	/* names of the arguments that body and query may have, separated by blanks; "": none */
	const char *args;
	enum control_lane lane;
	/* Writes one JSON value and returns the HTTP status. Called only for authorized clients. */
	int (*post)(void *cookie, const struct admin_args *args, FILE *out);
	void (*get)(void *cookie, FILE *out); /* writes the answer to a GET, which needs no authorization;
	                                       * NULL: GET is answered 405 */
};

/* The functions of main/ for the pages. All are called on the admin thread, and must not block longer than
 * a page may take. A function may be NULL: then its page is 404, and health gets no reason from it. */
struct admin_env {
	void *cookie;
	const struct conf *conf;   /* the configuration that /config shows if config() is NULL; NULL: none */
	const struct stats *stats; /* the counters that /metrics shows; NULL: /metrics shows only the
	                            * result of metrics() */
	int (*core_nr)(void *cookie);
	void (*core)(void *cookie, int core, struct admin_core *ret_core);
	/* Adds an admin_reason() for each reason why the daemon is not ready (ready) or not healthy
	 * (health). admin/ itself adds stuck cores. admin_show_health() calls both functions on its
	 * caller's thread, one call at a time. */
	void (*ready)(void *cookie, struct admin_reasons *r);
	void (*health)(void *cookie, struct admin_reasons *r);
	/* Emits the metrics that stats/ does not have: of rails, disks and buffers. */
	stats_collect_fn metrics;
	/* Writes the JSON value of /status. rails, disks, quotas, requests and config do so for their
	 * pages. */
	void (*status)(void *cookie, FILE *out);
	void (*rails)(void *cookie, FILE *out);
	/* Writes the JSON value of /rails/ADDRESS: whether tokens may name the address, and the rail that
	 * reaches it. Returns the HTTP status; nothing is written unless it is 200. */
	int (*reach)(void *cookie, const char *address, FILE *out);
	void (*disks)(void *cookie, FILE *out);
	void (*quotas)(void *cookie, FILE *out);
	void (*requests)(void *cookie, FILE *out);
	/* Writes the JSON value of /requests/ID, about one request. Returns the HTTP status; nothing is
	 * written unless it is 200. */
	int (*request)(void *cookie, const char *id, FILE *out);
	void (*config)(void *cookie, FILE *out);
	const struct admin_control *controls;
	int control_nr;
	const struct admin_closed *closed; /* set by admin/ itself: the numbers of connections that it
	                                    * closed */
	struct admin_health *reasons;      /* set by admin/ itself: start and mute of each reason of health */
};

/* The addresses on which the admin thread listens. address NULL: no TCP; socket NULL: no Unix socket. */
struct admin_params {
	const char *address; /* text of the TCP address, for messages */
	const struct sockaddr_storage *sa;
	socklen_t sa_len;
	const char *socket;
	const char *token; /* bearer token; NULL: control calls are accepted on the Unix socket only */
	/* Settings whose domains are names that Host may have on a loopback address; kept by the caller.
	 * NULL: none. */
	const struct conf_s3 *s3;
};

/* Starts the listeners and the thread. *env is copied; the caller keeps the objects to which it points.
 * Returns 0, or -errno with the reason in err (-EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -ENOENT for an
 * unavailable address or path). */
int admin_start(const struct admin_params *params, const struct admin_env *env, struct admin **ret_admin,
		char *err, size_t err_len);
/* Returns the TCP port, which the kernel chose if the configured port is 0; 0 without TCP. Any thread. */
int admin_port(const struct admin *a);
/* Replaces the bearer token; NULL: control calls are accepted on the Unix socket only. Any thread. */
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
/* Adds a reason, with a text as of printf(). object: the disk, rail or listener that is affected; "": the
 * daemon. */
void admin_reason(struct admin_reasons *r, enum admin_reason_id id, const char *object, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Mutes a reason of health by its code for for_s seconds; 0 ends the mute. A muted reason is shown, but it
 * does not count, except that an "unavailable" daemon stays unavailable. The mute is stored in the file of
 * admin_keep_mutes(). Returns 0; -ENOENT: there is no such code; another -errno: the file cannot be
 * written, so the mute ends with the process. Any thread; blocks while the file is written. */
int admin_mute(struct admin *a, const char *code, uint64_t for_s);
/* Sets the file of mutes and reads it. Called before requests arrive. Returns 0, also if the file does not
 * exist; or -errno of opening it, or -ENOMEM. */
int admin_keep_mutes(struct admin *a, const char *path);
/* Writes all codes of reasons, separated by commas. */
void admin_show_codes(FILE *out);
/* Writes the answer to GET /healthz. Any thread. */
void admin_show_health(struct admin *a, FILE *out);

/* ---- for the functions that write JSON ---- */

/* Writes a quoted string, in which question marks replace bytes that are not UTF-8. text NULL: writes
 * null. */
void json_string(FILE *out, const char *text);

#endif
