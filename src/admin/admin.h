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
 * Address and socket have connections of their own, and a request has 5 s to arrive; a connection with half of
 * one makes room for others.
 *
 * It has a thread of its own and waits for no core, so it answers when one is stuck, and reports that.  It
 * gets its data through struct admin_env, filled in by main; it includes nothing of the cores.  No page
 * shows keys of objects, tokens, signatures or secrets.
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

/* A core that is awake and whose loop has not turned for that time is stuck: not ready, not healthy. */
#define ADMIN_STUCK_NS 1000000000ull
/* After that time the core is not alive (a supervisor should restart the daemon). */
#define ADMIN_DEAD_NS 10000000000ull

struct admin_core {
	bool asleep;            /* the core waits for work */
	uint64_t turned_ago_ns; /* time since the last turn of its loop */
};

#define ADMIN_ARGS_MAX 8
#define ADMIN_TOKEN_MAX 255

/* The members of a control call's JSON object and of its query, as texts. */
struct admin_args {
	int nr;
	struct {
		char name[24], value[256];
	} arg[ADMIN_ARGS_MAX];
};
/* Returns the value of an argument. NULL: it was not given. */
const char *admin_arg(const struct admin_args *args, const char *name);

/*
 * The place where a call runs: immediately, on the admin thread; or, if it may take longer than a page, on a
 * thread that runs such calls one at a time. Calls that change disks have a thread of their own, because
 * formatting a disk takes minutes, and so have calls that wait for work to end.
 */
enum control_lane { CONTROL_AT_ONCE, CONTROL_SLOW, CONTROL_DISKS, CONTROL_WAIT, CONTROL_LANE_NR };

struct admin_control {
	const char *path; /* "/control/drain" */
	/* names of the members allowed in body or query, separated by blanks; "": none */
	const char *args;
	enum control_lane lane;
	/* Writes one JSON value and returns the HTTP status. Only called for authorized clients. */
	int (*post)(void *cookie, const struct admin_args *args, FILE *out);
	void (*get)(void *cookie, FILE *out); /* the public answer to a GET; NULL: 405 */
};

/* The functions of main for the pages. All run on the admin thread and must not block longer than a page may
 * take. A function may be NULL: the page of a missing function is 404, and health has no reason from it. */
struct admin_env {
	void *cookie;
	const struct conf *conf;   /* /config, if there is no config(); NULL: none */
	const struct stats *stats; /* /metrics; NULL: collectors only */
	int (*core_nr)(void *cookie);
	void (*core)(void *cookie, int core, struct admin_core *ret_core);
	/* Add one admin_reason() for each reason why the daemon is not ready, or not healthy. admin/ adds stuck
	 * cores itself. admin_show_health() calls both on its caller's thread, one call at a time. */
	void (*ready)(void *cookie, struct admin_reasons *r);
	void (*health)(void *cookie, struct admin_reasons *r);
	/* Metrics unknown to stats/: rails, disks, buffers. */
	stats_collect_fn metrics;
	/* Each writes one JSON value. */
	void (*status)(void *cookie, FILE *out);
	void (*rails)(void *cookie, FILE *out);
	/* /rails/ADDRESS: whether tokens may name that address, and the rail that leads there. As
	 * request(). */
	int (*reach)(void *cookie, const char *address, FILE *out);
	void (*disks)(void *cookie, FILE *out);
	void (*quotas)(void *cookie, FILE *out);
	void (*requests)(void *cookie, FILE *out);
	/* /requests/ID: a single request. Returns the HTTP status; without 200 no text was written. */
	int (*request)(void *cookie, const char *id, FILE *out);
	void (*config)(void *cookie, FILE *out);
	const struct admin_control *controls;
	int control_nr;
	const struct admin_closed *closed; /* set by admin/ itself: the connections that it closed */
	struct admin_health *reasons;      /* the same: since when each reason holds, and which are muted */
};

/* The addresses to listen on. address NULL: no TCP; socket NULL: no Unix socket. */
struct admin_params {
	const char *address; /* for messages */
	const struct sockaddr_storage *sa;
	socklen_t sa_len;
	const char *socket;
	const char *token; /* NULL: control calls are accepted on the Unix socket only */
	/* Its domains are names that Host may have on a loopback address; kept by the caller. NULL: none. */
	const struct conf_s3 *s3;
};

/* Starts the listener and its thread. *env is copied; the caller keeps the objects it points to. 0, or
 * -errno with the reason in err (-EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -ENOENT for an unavailable address
 * or path). */
int admin_start(const struct admin_params *params, const struct admin_env *env, struct admin **ret_admin,
		char *err, size_t err_len);
/* Returns the actual TCP port (port 0 picks a free one); 0 without TCP. Any thread. */
int admin_port(const struct admin *a);
/* Replaces the bearer token; NULL: none is required. Any thread. */
void admin_set_token(struct admin *a, const char *token);
/* Ends the thread, removes the socket.  NULL is allowed. */
void admin_stop(struct admin *a);

/* ---- health ---- */

enum admin_reason_id {
#define REASON(id, ...) REASON_##id,
#include "admin/reason.def"
#undef REASON
	REASON_NR
};
/* Adds a reason, printf-like.  object: which disk, rail or listener it is about; "": the code has one object. */
void admin_reason(struct admin_reasons *r, enum admin_reason_id id, const char *object, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Mutes a reason by its code for so many seconds, 0: ends that.  A muted reason is shown and does not count, except that
 * "unavailable" stays so.  Kept in the file that admin_keep_mutes() named.  0; -ENOENT: no such code; another -errno: it is muted
 * until the end of the process alone, as the file cannot be written.  Any thread; blocks while the file is written. */
int admin_mute(struct admin *a, const char *code, uint64_t for_s);
/* Names the file of mutes, and reads it.  0 (also where it is not there), or -errno.  Before requests come. */
int admin_keep_mutes(struct admin *a, const char *path);
/* Writes the codes that there are, with a comma between. */
void admin_show_codes(FILE *out);
/* Writes what GET /healthz answers.  Any thread. */
void admin_show_health(struct admin *a, FILE *out);

/* ---- for the functions that write JSON ---- */

/* Writes a quoted string; text that is not UTF-8 shows as question marks.  NULL: null. */
void json_string(FILE *out, const char *text);

#endif
